#include "compiler/bind/from_binder.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "compiler/bind/catalog_query.h"
#include "compiler/bind/catalog_tables.h"
#include "compiler/bind/inner_block.h"
#include "compiler/bind/macro_call.h"
#include "compiler/bind/named_table.h"
#include "compiler/bind/populated_check.h"
#include "compiler/bind/pragma_tables.h"
#include "compiler/bind/relation_name.h"
#include "compiler/parse/parser.h"
#include "compiler/query/correlation.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/random_calls.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

/// The planner keeps sets of relations in 64 bits.
constexpr size_t kMaxRelations = 64;

/// Rows that a sample may be of: whole numbers that a double holds.
constexpr double kMostSampled = 1e15;

Status TooManyTables(int position) {
  return Unsupported("a query of more than " + std::to_string(kMaxRelations) + " tables is not supported", position);
}

Relation CatalogRelation(const CatalogTable& table, const BindContext& context) {
  ActivitySource* const activity = context.dialect != nullptr ? context.dialect->activity : nullptr;
  Relation relation = DerivedTable(CatalogTableQuery(table, *context.snapshot, activity));
  relation.alias = table.name;
  return relation;
}

}  // namespace

Relation StoredTable(std::shared_ptr<const TableInfo> table) {
  Relation relation;
  relation.alias = BaseName(table->schema.name);
  const size_t count = table->schema.columns.size();
  relation.column_names.reserve(count);
  relation.column_types.reserve(count);
  for (const ColumnSchema& c : table->schema.columns) {
    relation.column_names.push_back(c.name);
    relation.column_types.push_back(c.type);
  }
  relation.table = std::move(table);
  return relation;
}

Status AddVariables(const NameScope& part, NameScope* scope) {
  for (const RangeVariable& v : part.variables) {
    const auto same = [&](const RangeVariable& other) { return !v.alias.empty() && other.alias == v.alias; };
    if (std::any_of(scope->variables.begin(), scope->variables.end(), same)) {
      return SqlError(ErrorKind::kDuplicateAlias, "table name \"" + v.alias + "\" specified more than once", v.position,
                      "Give one of them an alias.");
    }
    scope->variables.push_back(v);
  }
  return {};
}

int PositionOf(const ParseNode& item) { return item.Is(Tag::kRangeVar) ? item.location() : item.FirstLocation(); }

Status FromBinder::BindTarget(const ParseNode& item, std::shared_ptr<const TableInfo> numbered) {
  NameScope& scope = block_.scope;
  const std::string name = BaseName(numbered->schema.name);
  TESSERA_TRY(AddRelation(StoredTable(std::move(numbered)), name, item.Get(Field::k_alias), item.location(), &scope));
  // Without names: no expression can mean them.
  for (const TypeId type : {TypeId::kBoolean, TypeId::kBigint}) {
    query_.relations.back().column_names.emplace_back();
    query_.relations.back().column_types.push_back(SqlType::Of(type));
  }
  return {};
}

Status FromBinder::Bind(const ParseNode& list) {
  before_.push_back(&block_.scope);
  for (const ParseNode& item : list) TESSERA_TRY(BindOne(item));
  return {};
}

Status FromBinder::BindOne(const ParseNode& item) {
  NameScope& scope = block_.scope;
  NameScope one;
  TESSERA_TRY(BindItem(item, &one));
  scope.columns.insert(scope.columns.end(), one.columns.begin(), one.columns.end());
  return AddVariables(one, &scope);
}

Status FromBinder::BindItem(const ParseNode& item, NameScope* scope) {
  if (item.Is(Tag::kRangeVar)) return BindTable(item, scope);
  if (item.Is(Tag::kRangeSubselect)) return BindDerived(item, scope);
  if (item.Is(Tag::kJoinExpr)) {
    // A chain of joins nests to the left.
    if (++context_.nesting > kMaxNesting) return NestedTooDeeply(item.FirstLocation());
    if (++joins_ > kMaxRelations) return TooManyTables(PositionOf(item));
    context_.deepest = std::max(context_.deepest, context_.nesting);
    const Status status = BindJoin(item, scope);
    --joins_;
    --context_.nesting;
    const ParseNode* alias = item.Get(Field::k_alias);
    return status.ok() && alias != nullptr ? RenameJoin(*alias, PositionOf(item), scope) : status;
  }
  const int position = item.FirstLocation();
  if (item.Is(Tag::kRangeFunction)) return BindRows(item, scope);
  if (item.Is(Tag::kRangeTableSample)) return BindSample(item, scope);
  return Unsupported("this form of FROM (" + std::string(item.text()) + ") is not supported", position);
}

Result<int> FromBinder::PushRelation(Relation relation, int position) {
  if (query_.relations.size() == kMaxRelations) return TooManyTables(position);
  query_.relations.push_back(std::move(relation));
  return static_cast<int>(query_.relations.size()) - 1;
}

Status FromBinder::AddRelation(Relation relation, const std::string& table, const ParseNode* alias, int position,
                               NameScope* scope) {
  if (alias != nullptr) relation.alias = alias->Text(Field::k_aliasname);
  if (relation.alias == kNoAlias || relation.alias == kDescribed || relation.alias == kSummarized)
    relation.alias.clear();
  const size_t count = relation.column_names.size();
  if (const ParseNode* names = alias != nullptr ? alias->Get(Field::k_colnames) : nullptr) {
    size_t i = 0;
    for (const ParseNode& n : *names) {
      if (i == count) {
        return SqlError("table \"" + relation.alias + "\" has " + std::to_string(count) + " columns available but " +
                            std::to_string(names->size()) + " columns specified",
                        position);
      }
      relation.column_names[i++] = n.Text(Field::k_sval);
    }
  }
  RangeVariable variable{relation.alias, table, position, {}};
  TESSERA_ASSIGN(const int r, PushRelation(std::move(relation), position));
  const Relation& kept = query_.relations.back();
  for (size_t c = 0; c < count; ++c) variable.columns.push_back({kept.column_names[c], r, static_cast<int>(c)});
  scope->columns = variable.columns;
  scope->variables.push_back(std::move(variable));
  return {};
}

Status FromBinder::BindTable(const ParseNode& item, NameScope* scope) {
  const std::string_view name = item.Text(Field::k_relname);
  if (item.Get(Field::k_schemaname) == nullptr) {
    int levels = 0;  // this block is inside that of the WITH
    for (const CteScope* level = &block_.ctes; level != nullptr; level = level->outer, ++levels) {
      const auto cte = level->queries.find(name);
      if (cte == level->queries.end()) continue;
      TESSERA_TRY(Enclose(*cte->second.query, &context_, item.location()));
      std::shared_ptr<Query> query = cte->second.query;
      const bool correlated = RefersOutward(*query);
      if (correlated) {  // it is run for each row of a query around that of the WITH, so it is a query of its own here
        query = CopyWithSubqueries(*query);
        MoveInward(query.get(), levels);
      }
      Relation relation = DerivedTable(std::move(query));
      relation.correlated = correlated;
      relation.alias = cte->first;
      relation.column_names = cte->second.columns;
      return AddRelation(std::move(relation), cte->first, item.Get(Field::k_alias), item.location(), scope);
    }
  }
  TESSERA_ASSIGN(Relation relation, NamedRelation(item));
  const std::string stored = relation.alias;
  return AddRelation(std::move(relation), stored, item.Get(Field::k_alias), item.location(), scope);
}

Result<Relation> FromBinder::NamedRelation(const ParseNode& item) {
  const std::string_view name = item.Text(Field::k_relname);
  const std::string_view schema = item.Text(Field::k_schemaname);
  const Snapshot& snapshot = *context_.snapshot;
  const CatalogTable* const catalog = FindCatalogTable(schema, name);
  if (catalog != nullptr && !schema.empty()) return CatalogRelation(*catalog, context_);
  const bool of_session = context_.view == nullptr || context_.view->view->temporary;
  const bool by_path = context_.view == nullptr || context_.view->is_new;
  TESSERA_ASSIGN(const std::string qualified, ReadRelationName(item, snapshot, of_session, by_path));
  const bool temporary = IsTemporaryName(qualified);
  if (!AttachedOfName(qualified).empty() && !of_session) {
    return SqlError("a view cannot read an attached database (\"" + std::string(AttachedOfName(qualified)) + "\")",
                    item.location(), "Write CREATE TEMP VIEW, or CREATE TABLE AS.");
  }
  if (!temporary) {
    TESSERA_ASSIGN(const ViewSchema* const view, FindViewNamed(qualified, item.location()));
    if (view != nullptr) return ViewRelation(*view, item.location());
  }
  std::shared_ptr<const TableInfo> table = temporary && !of_session ? nullptr : snapshot.Find(qualified);
  if (table != nullptr) {
    NoteTable(*table);
    TESSERA_TRY(CheckPopulated(table->schema, item.location()));
    TESSERA_ASSIGN(std::shared_ptr<const TableInfo> read, WithRows(table, context_.dialect, snapshot, item.location()));
    Relation relation = StoredTable(std::move(read));
    relation.alias = BaseName(qualified);
    return relation;
  }
  if (catalog != nullptr) return CatalogRelation(*catalog, context_);
  const bool is_view = FindView(snapshot.views, qualified) != nullptr;
  if (!is_view && (of_session || snapshot.Find(QualifiedName(kTemporarySchema, name)) == nullptr))
    return TableNotFound(schema.empty() ? std::string(name) : qualified, item.location(), snapshot);
  return SqlError(
      (is_view ? "view \"" : "table \"") + std::string(name) + "\" is temporary, and a view that is not cannot read it",
      item.location(), "Write CREATE TEMP VIEW.");
}

/// A derived table of the rows that a random number chooses: of each row, or of each 2,048 rows.
Status FromBinder::BindSample(const ParseNode& item, NameScope* scope) {
  const int position = item.location();
  const ParseNode& source = *item.Get(Field::k_relation);
  const std::string method(item.Get(Field::k_method)->first()->Text(Field::k_sval));
  const bool counts = method == "reservoir";
  if (!counts && method != "bernoulli" && method != "system") {
    return Unsupported(
        "TABLESAMPLE " + method + " is not supported", position,
        "Methods are BERNOULLI, which chooses rows, SYSTEM, which chooses blocks of rows, and RESERVOIR, "
        "which takes a number of rows.");
  }
  const auto number = [&](const ParseNode& node, const char* what) -> Result<double> {
    ExpressionBinder binder(&context_, nullptr, Clause::kLimit);
    TESSERA_ASSIGN(ExprPtr e, binder.Bind(node));
    TESSERA_ASSIGN(e, binder.Coerce(std::move(e), SqlType::Of(TypeId::kDouble), CastContext::kImplicit));
    if (!IsConstant(*e))
      return Unsupported(std::string(what) + " that is not a constant is not supported", e->position);
    if (e->constant.null)
      return SqlError(ErrorKind::kInvalidParameterValue, std::string(what) + " must not be NULL", e->position);
    return e->constant.f64;
  };
  const ParseNode& args = *item.Get(Field::k_args);
  const std::string what = counts ? "number of rows" : "percentage";
  if (args.size() != 1) return SqlError("TABLESAMPLE " + method + " takes one " + what, position);
  TESSERA_ASSIGN(const double percent, number(*args.first(), ("the " + what + " of TABLESAMPLE").c_str()));
  if (counts && !(percent >= 0 && percent <= kMostSampled && percent == std::floor(percent))) {
    return SqlError(ErrorKind::kInvalidParameterValue, "sample size must be a whole number of rows, from 0 to 10^15",
                    args.first()->FirstLocation());
  }
  if (!counts && !(percent >= 0 && percent <= 100))
    return SqlError(ErrorKind::kInvalidParameterValue, "sample percentage must be between 0 and 100",
                    args.first()->FirstLocation());
  const int shift = method == "system" ? 11 : 0;
  ExprPtr chance = MakeRandom(RandomSite(context_, position), position, shift);
  if (const ParseNode* repeatable = item.Get(Field::k_repeatable)) {
    TESSERA_ASSIGN(const double seed, number(*repeatable, "the seed of REPEATABLE"));
    chance = MakeRepeatable(SeedOf(seed), position, shift);
  }

  TESSERA_ASSIGN(Relation sampled, NamedRelation(source));
  const std::string stored = sampled.alias;
  auto rows = std::make_shared<Query>();
  rows->relations.push_back(std::move(sampled));
  BindContext inside;
  inside.relations = &rows->relations;
  const ExpressionBinder columns(&inside, nullptr, Clause::kSelect);
  for (const std::string& name : rows->relations[0].column_names)
    rows->outputs.push_back({columns.Column(0, static_cast<int>(rows->outputs.size()), -1), name});
  rows->visible = static_cast<int>(rows->outputs.size());
  if (counts) {  // the rows with the least random numbers
    rows->order_by.push_back({rows->visible, false, false});
    rows->outputs.push_back({std::move(chance), "chance"});
    rows->limit = static_cast<int64_t>(percent);
    Relation relation = DerivedTable(std::move(rows));
    relation.alias = stored;
    return AddRelation(std::move(relation), stored, source.Get(Field::k_alias), source.location(), scope);
  }
  ExprPtr limit = MakeConstant(Value::Float(SqlType::Of(TypeId::kDouble), percent / 100), position);
  rows->conjuncts.push_back(MakeFunction(Function::kLt, SqlType::Of(TypeId::kBoolean), position,
                                         ExprList(std::move(chance), std::move(limit))));
  Relation relation = DerivedTable(std::move(rows));
  relation.alias = stored;
  return AddRelation(std::move(relation), stored, source.Get(Field::k_alias), source.location(), scope);
}

Status FromBinder::BindDerived(const ParseNode& item, NameScope* scope) {
  const int position = item.FirstLocation();
  if (context_.nesting > kMaxNesting) return NestedTooDeeply(position);
  // Inside, the other tables of FROM are not visible without LATERAL, but those of the blocks around this one are.
  const bool lateral = item.Get(Field::k_lateral) != nullptr;
  NameScope visible;
  if (lateral) {
    for (const NameScope* part : before_) {
      visible.columns.insert(visible.columns.end(), part->columns.begin(), part->columns.end());
      TESSERA_TRY(AddVariables(*part, &visible));
    }
  }
  TESSERA_ASSIGN(std::shared_ptr<Query> query,
                 BindQueryBlock(*item.Get(Field::k_subquery), &context_, lateral ? &visible : nullptr));
  const ParseNode* const alias = item.Get(Field::k_alias);
  const std::string_view name = alias == nullptr ? std::string_view() : alias->Text(Field::k_aliasname);
  if (name == kDescribed) query = DescribeQuery(*query);
  if (name == kSummarized) {
    TESSERA_TRY(RefuseOuterColumns(*query, "SUMMARIZE", position));
    query = SummarizeQuery(CopyQuery(*query));
  }
  const bool correlated = RefersOutward(*query);
  Relation relation = DerivedTable(std::move(query));
  relation.correlated = correlated;
  return AddRelation(std::move(relation), "", alias, position, scope);
}

Status FromBinder::BindChunks(const ParseNode& item, const ParseNode& call, const std::string&, NameScope* scope) {
  const ParseNode* const args = call.Get(Field::k_args);
  const ParseNode* const name = args != nullptr && args->size() == 1 ? args->first()->Get(Field::k_sval) : nullptr;
  if (name == nullptr)
    return SqlError("tessera_chunks takes the name of a table", call.location(), "Write tessera_chunks('table').");
  const std::string text = NameOfText(name->Text(Field::k_sval), context_.snapshot);
  const std::shared_ptr<const TableInfo> table = context_.snapshot->Find(text);
  if (table == nullptr && FindView(context_.snapshot->views, text) != nullptr)
    return NotATable(text, args->first()->location());
  if (table == nullptr) return TableNotFound(text, args->first()->location(), *context_.snapshot);
  NoteTable(*table);
  TESSERA_ASSIGN(std::shared_ptr<Query> query, ChunksQuery(*table));
  Relation relation = DerivedTable(std::move(query));
  relation.alias = "tessera_chunks";
  return AddRelation(std::move(relation), "", item.Get(Field::k_alias), call.location(), scope);
}

Status FromBinder::BindCache(const ParseNode& item, const ParseNode& call, const std::string&, NameScope* scope) {
  if (call.Get(Field::k_args) != nullptr)
    return SqlError("tessera_cache takes no argument", call.location(), "Write tessera_cache().");
  std::vector<CacheReport> caches;
  if (context_.dialect != nullptr && context_.dialect->caches != nullptr) caches = (*context_.dialect->caches)();
  std::shared_ptr<Query> query = CacheQuery(*context_.snapshot, caches);
  Relation relation = DerivedTable(std::move(query));
  relation.alias = "tessera_cache";
  return AddRelation(std::move(relation), "", item.Get(Field::k_alias), call.location(), scope);
}

Status FromBinder::BindPragma(const ParseNode& item, const ParseNode& call, const std::string& name, NameScope* scope) {
  const ParseNode* const args = call.Get(Field::k_args);
  const ParseNode* const text = args != nullptr && args->size() == 1 ? args->first()->Get(Field::k_sval) : nullptr;
  if (args != nullptr && text == nullptr)
    return SqlError(name + " takes the name of a table", call.location(), "Write " + name + "('table').");
  const std::string argument(text != nullptr ? text->Text(Field::k_sval) : "");
  if (text != nullptr && name != "pragma_index_info" && OidOfName(argument, *context_.snapshot) < 0)
    return TableNotFound(argument, args->first()->location(), *context_.snapshot);
  TESSERA_ASSIGN(std::shared_ptr<Query> query,
                 PragmaQuery(name, text != nullptr ? &argument : nullptr, *context_.snapshot, call.location()));
  Relation relation = DerivedTable(std::move(query));
  relation.alias = name;
  return AddRelation(std::move(relation), "", item.Get(Field::k_alias), call.location(), scope);
}

Status FromBinder::BindCatalogCall(const ParseNode& item, const ParseNode& call, const std::string& name,
                                   NameScope* scope) {
  const CatalogTable* const table = FindCatalogTable("main", name);
  if (table == nullptr)
    return Unsupported("function " + name + " in FROM is not supported", call.location(),
                       "duckdb_tables(), duckdb_views() and duckdb_columns() are.");
  if (call.Get(Field::k_args) != nullptr)
    return SqlError(name + " takes no argument", call.location(), "Write " + name + "().");
  return AddRelation(CatalogRelation(*table, context_), "", item.Get(Field::k_alias), call.location(), scope);
}

}  // namespace tessera
