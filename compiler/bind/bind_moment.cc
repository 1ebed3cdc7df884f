// Binding a table of a DuckLake catalog as it was: lake.t AT (VERSION => 3), lake.s.t AT (TIMESTAMP => now() - INTERVAL '1 day').
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/from_binder.h"
#include "compiler/bind/named_table.h"
#include "compiler/bind/relation_name.h"
#include "compiler/query/dependencies.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {

Status FromBinder::BindMoment(const ParseNode& item, const ParseNode& call, NameScope* scope) {
  const int position = call.location();
  const Snapshot& snapshot = *context_.snapshot;
  std::vector<std::string> names;
  LakeMoment moment;
  const auto take = [&](const ParseNode& node) -> Status {
    if (!node.Is(Tag::kNamedArgExpr)) {
      const ParseNode* const text = node.Is(Tag::kA_Const) ? node.Get(Field::k_sval) : nullptr;
      if (text != nullptr) names.emplace_back(text->Text(Field::k_sval));
      return {};
    }
    const bool is_version = node.Text(Field::k_name) == "version";
    const SqlType type = SqlType::Of(is_version ? TypeId::kBigint : TypeId::kTimestampTz);
    ExpressionBinder binder(&context_, nullptr, Clause::kLimit);
    TESSERA_ASSIGN(ExprPtr e, binder.Bind(*node.Get(Field::k_arg)));
    const int at = e->position;
    TESSERA_ASSIGN(e, binder.Coerce(std::move(e), type, CastContext::kExplicit));
    if (!IsConstant(*e) || e->constant.null) return SqlError("AT takes a constant that is not NULL", at);
    (is_version ? moment.version : moment.time) = e->constant.i64;
    return {};
  };
  if (const ParseNode* const args = call.Get(Field::k_args)) {
    for (const ParseNode& node : *args) TESSERA_TRY(take(node));
  }
  if (names.empty()) names.emplace_back();
  const AttachedDatabase* const database = names.size() > 1 ? snapshot.FindAttached(names.front()) : nullptr;
  if (database == nullptr) {
    return SqlError("\"" + names.front() + "\" is no attached DuckLake catalog: AT is for its tables", position,
                    "Write FROM lake.t AT (VERSION => 3), after ATTACH 'ducklake:sqlite:FILE' AS lake.");
  }
  if (context_.view != nullptr && !context_.view->view->temporary)
    return SqlError("a view cannot read an attached database (\"" + names.front() + "\")", position,
                    "Write CREATE TEMP VIEW, or CREATE TABLE AS.");
  // (Which schemas there were then is not known yet.)
  const std::string schema = names.size() > 2 && !IsDefaultSchema(names[1]) ? names[1] : std::string();
  const std::string qualified = AttachedName(names.front(), QualifiedName(schema, names.back()));
  TESSERA_ASSIGN(std::shared_ptr<const TableInfo> table,
                 LakeTableAt(*database, qualified, moment, context_.dialect, position));
  NoteTable(*table);
  Relation relation = StoredTable(std::move(table));
  relation.alias = names.back();
  return AddRelation(std::move(relation), "", item.Get(Field::k_alias), position, scope);
}

}  // namespace tessera
