// Binding calls of functions that are defined in SQL, over their arguments $1, $2 and so on; and who the user is.
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "compiler/bind/catalog_tables.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/parse/parser.h"

namespace tessera {
namespace {

struct Definition {
  std::string_view name;
  size_t arguments;
  std::string_view text;
};
constexpr Definition kDefinitions[] = {
    {"quote_literal", 1,
     R"(CASE WHEN strpos($1::text, '\') > 0 THEN 'E''' || replace(replace($1::text, '\', '\\'), '''', '''''') || ''''
             ELSE '''' || replace($1::text, '''', '''''') || '''' END)"},
    {"quote_nullable", 1, "coalesce(quote_literal($1), 'NULL')"},
    {"quote_ident", 1,
     // Words that PostgreSQL's grammar takes as names in some places only, or nowhere.
     R"(CASE WHEN $1::text ~ '^[a-z_][a-z0-9_]*$' AND $1::text !~ '^(?:all|analyse|analyze|and|any|array|as|asc|asymmetric|)"
     "authorization|between|bigint|binary|bit|boolean|both|case|cast|char|character|check|coalesce|collate|collation|"
     "column|"
     "concurrently|constraint|create|cross|current_catalog|current_date|current_role|current_schema|current_time|"
     "current_timestamp|current_user|dec|decimal|default|deferrable|desc|distinct|do|else|end|except|exists|extract|"
     "false|"
     "fetch|float|for|foreign|freeze|from|full|grant|greatest|group|grouping|having|ilike|in|initially|inner|inout|int|"
     "integer|intersect|interval|into|is|isnull|join|lateral|leading|least|left|like|limit|localtime|localtimestamp|"
     "national|natural|nchar|none|normalize|not|notnull|null|nullif|numeric|offset|on|only|or|order|out|outer|overlaps|"
     "overlay|placing|position|precision|primary|real|references|returning|right|row|select|session_user|setof|similar|"
     "smallint|some|substring|symmetric|system_user|table|tablesample|then|time|timestamp|to|trailing|treat|trim|true|"
     "union|"
     "unique|user|using|values|varchar|variadic|verbose|when|where|window|with|xmlattributes|xmlconcat|xmlelement|"
     R"(xmlexists|xmlforest|xmlnamespaces|xmlparse|xmlpi|xmlroot|xmlserialize|xmltable)$' THEN $1::text
        ELSE '"' || replace($1::text, '"', '""') || '"' END)"},
    {"isfinite", 1, "CASE WHEN $1 IS NOT NULL THEN TRUE END"},
    // What clients of PostgreSQL ask of its catalog.
    {"current_schema", 0, "'public'::text"},
    {"current_database", 0, "'tessera'::text"},
    {"pg_table_is_visible", 1, "CASE WHEN $1 IS NOT NULL THEN TRUE END"},
    {"pg_get_expr", 2, "$1::text"},
    {"pg_get_expr", 3, "$1::text"},
    {"obj_description", 1, "NULL::text"},
    {"obj_description", 2, "NULL::text"},
    {"col_description", 2, "NULL::text"},
    // Of periods: as in PostgreSQL a NULL at one end is passed over where the other ends decide.
    {"overlaps", 4,
     R"(CASE WHEN least($1, $2) > least($3, $4)
             THEN CASE WHEN $3 IS NULL OR $4 IS NULL THEN NULL WHEN least($1, $2) < greatest($3, $4) THEN TRUE
                       WHEN $1 IS NULL OR $2 IS NULL THEN NULL ELSE FALSE END
             WHEN least($1, $2) < least($3, $4)
             THEN CASE WHEN $1 IS NULL OR $2 IS NULL THEN NULL WHEN least($3, $4) < greatest($1, $2) THEN TRUE
                       WHEN $3 IS NULL OR $4 IS NULL THEN NULL ELSE FALSE END
             WHEN least($1, $2) = least($3, $4)
             THEN CASE WHEN $1 IS NULL OR $2 IS NULL OR $3 IS NULL OR $4 IS NULL THEN NULL ELSE TRUE END END)"},
};

bool IsMoment(const Expr& e) { return (ClassOf(e.type) & kClassMoment) != 0 || e.type.id == TypeId::kInterval; }

/// The nodes of a definition have no place of their own.
void PlaceAt(int position, Expr* e) {
  e->position = position;
  for (const ExprPtr& a : e->args) PlaceAt(position, a.get());
}

}  // namespace

Result<ExprPtr> ExpressionBinder::BindText(std::string_view text, const std::vector<ExprPtr>& parameters,
                                           int position) {
  const std::string sql = "SELECT " + std::string(text);
  TESSERA_ASSIGN(const ParsedStatement parsed, Parse(sql));
  Dialect around = dialect();
  around.marks = parsed.dialect.marks;
  BindContext context = *context_;
  context.sql = sql;
  context.dialect = &around;
  context.parameters = &parameters;
  ExpressionBinder inside(&context, nullptr, clause_);
  inside.in_aggregate_ = in_aggregate_;
  inside.may_skip_ = may_skip_;
  Result<ExprPtr> e = inside.Bind(*parsed.statement->Get(Field::k_targetList)->first()->Get(Field::k_val));
  context_->deepest = std::max(context_->deepest, context.deepest);
  context_->copied = context.copied;
  if (!e.ok()) return Status(e.status().code(), e.status().message(), e.status().hint(), position);
  PlaceAt(position, e->get());
  return e;
}

Result<ExprPtr> ExpressionBinder::BindParameter(const ParseNode& node) {
  const auto number = static_cast<size_t>(node.Number(Field::k_number));
  if (context_->parameters == nullptr) return BindStatementParameter(number, node.location());
  if (number == 0 || number > context_->parameters->size()) return NotSupported(node);
  return Copy(*(*context_->parameters)[number - 1]);
}

Result<ExprPtr> ExpressionBinder::BindDefined(std::string_view name, std::vector<ExprPtr>* args, int position) {
  std::vector<ExprPtr>& a = *args;
  if (name == "num_nulls" || name == "num_nonnulls") {
    if (a.empty()) return ExprPtr();
    std::string text;
    for (size_t i = 1; i <= a.size(); ++i) {
      text += std::string(i == 1 ? "" : " + ") + "CASE WHEN $" + std::to_string(i) +
              (name == "num_nulls" ? " IS NULL" : " IS NOT NULL") + " THEN 1 ELSE 0 END";
    }
    return BindText(text, a, position);
  }
  if (name == "hash" && !a.empty()) {
    // NULL is another text than every value.
    std::string text;
    for (size_t i = 1; i <= a.size(); ++i) {
      const std::string x = "$" + std::to_string(i) + "::text";
      text += std::string(i == 1 ? "" : " || chr(31) || ") + "coalesce(" + x + ", chr(30))";
    }
    TESSERA_ASSIGN(ExprPtr all, BindText(text, a, position));
    return Folded(MakeFunction(Function::kHash, SqlType::Of(TypeId::kBigint), position, ExprList(std::move(all))));
  }
  if (name == "isfinite" && (a.size() != 1 || !IsMoment(*a[0]))) return ExprPtr();
  if (name == "format_type" && a.size() == 2) return BindText(FormatTypeText(dialect().types), a, position);
  if (name == "overlaps" && a.size() == 4) {
    // A length in place of an end.
    for (const size_t end : {size_t{1}, size_t{3}}) {
      if (a[end]->type.id != TypeId::kInterval) continue;
      TESSERA_ASSIGN(ExprPtr begin, Copy(*a[end - 1]));
      TESSERA_ASSIGN(a[end], Infix("+", std::move(begin), std::move(a[end]), position));
    }
  }
  const auto* const found = std::find_if(std::begin(kDefinitions), std::end(kDefinitions), [&](const Definition& d) {
    return d.name == name && d.arguments == a.size();
  });
  return found == std::end(kDefinitions) ? Result<ExprPtr>(ExprPtr()) : BindText(found->text, a, position);
}

ExprPtr ExpressionBinder::UserName(int position) {
  std::array<char, 4096> room;
  passwd entry;
  passwd* found = nullptr;
  getpwuid_r(geteuid(), &entry, room.data(), room.size(), &found);
  return MakeConstant(Value::Text(found != nullptr ? found->pw_name : std::to_string(geteuid())), position);
}

}  // namespace tessera
