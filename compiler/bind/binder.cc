// Binding statements: SELECT, INSERT, EXPLAIN, SET, SHOW here; the inside of SELECT in query_binder.cc, tables in
// table_binder.cc, COPY in copy_binder.cc.
#include "compiler/bind/binder.h"

#include <optional>
#include <string>
#include <utility>

#include "compiler/bind/alter_binder.h"
#include "compiler/bind/bind_view.h"
#include "compiler/bind/catalog_query.h"
#include "compiler/bind/catalog_tables.h"
#include "compiler/bind/change_binder.h"
#include "compiler/bind/conflict_binder.h"
#include "compiler/bind/copy_binder.h"
#include "compiler/bind/explain_binder.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/bind/macro_binder.h"
#include "compiler/bind/materialized_view_binder.h"
#include "compiler/bind/merge_binder.h"
#include "compiler/bind/named_table.h"
#include "compiler/bind/parameter_binder.h"
#include "compiler/bind/query_binder.h"
#include "compiler/bind/query_block.h"
#include "compiler/bind/relation_name.h"
#include "compiler/bind/returning_binder.h"
#include "compiler/bind/role_binder.h"
#include "compiler/bind/row_rules.h"
#include "compiler/bind/schema_binder.h"
#include "compiler/bind/sequence_binder.h"
#include "compiler/bind/sequence_values.h"
#include "compiler/bind/set_list.h"
#include "compiler/bind/table_binder.h"
#include "compiler/bind/type_binder.h"
#include "compiler/parse/parser.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/parse/statement_notice.h"
#include "compiler/parse/unsupported_statement.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/fold.h"
#include "tablet/catalog/schema_check.h"

namespace tessera {
namespace {

/// The position of the statement's first word.
int FirstWord(std::string_view sql) {
  Token t = NextToken(sql, 0);
  while (t.kind == Token::Kind::kSpace || (t.kind == Token::Kind::kSymbol && sql[t.begin] == ';'))
    t = NextToken(sql, t.end);
  return static_cast<int>(t.begin);
}

// ---- INSERT

bool IsIdentity(const TableInfo& table, int column, const Snapshot& snapshot) {
  const std::string& name = table.schema.columns[static_cast<size_t>(column)].name;
  return IdentityOfColumn(table, name, snapshot.names.sequences) != nullptr;
}

Status BindValues(const ParseNode& lists, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                  const std::vector<int>& columns, bool named, bool overrides, Statement* out) {
  const TableSchema& schema = out->target->schema;
  BindContext context;
  context.sql = sql;
  context.dialect = &dialect;
  std::vector<Relation> no_relations;
  context.relations = &no_relations;
  ExpressionBinder binder(&context, nullptr, Clause::kValues);

  RowBatch& batch = out->change.values;
  batch.columns.resize(schema.columns.size());
  for (size_t c = 0; c < schema.columns.size(); ++c) batch.columns[c].type = schema.columns[c].type;
  // The others get their defaults.
  std::vector<bool> given(schema.columns.size());
  size_t width = 0;
  for (const ParseNode& list : lists) {
    const ParseNode* items = list.Is(Tag::kList) ? list.Get(Field::k_items) : &list;
    const size_t count = items->size();
    const int position = items->first()->location();
    if (batch.rows == 0) {
      width = count;
      if (count > columns.size()) {
        const ParseNode* extra = items->first();
        for (size_t i = 0; i < columns.size(); ++i) extra = extra->next();
        return SqlError(ErrorKind::kSyntax, "INSERT has more expressions than target columns", extra->location());
      }
      // As in PostgreSQL, there may be fewer values than columns if no columns are named.
      if (count < columns.size() && named)
        return SqlError(ErrorKind::kSyntax, "INSERT has more target columns than expressions", position);
      for (size_t i = 0; i < count; ++i) given[static_cast<size_t>(columns[i])] = true;
    }
    if (count != width) return SqlError(ErrorKind::kSyntax, "VALUES lists must all be the same length", position);
    size_t i = 0;
    for (const ParseNode& item : *items) {
      const auto c = static_cast<size_t>(columns[i++]);
      if (schema.columns[c].generated_text && !item.Is(Tag::kSetToDefault))
        return GivenToGenerated(schema.columns[c], item.FirstLocation());
      if (!overrides && !item.Is(Tag::kSetToDefault))
        TESSERA_TRY(CheckIdentity(*out->target, columns[i - 1], snapshot, item.FirstLocation()));
      TESSERA_ASSIGN(const Value value, InsertValue(&binder, item, schema.columns[c]));
      batch.columns[c].Append(value);
    }
    for (size_t c = 0; c < given.size(); ++c) {
      if (!given[c]) batch.columns[c].Append(DefaultOf(schema.columns[c]));
    }
    ++batch.rows;
  }
  return {};
}

Status BindInsert(const ParseNode& insert, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                  Statement* out) {
  out->kind = Statement::Kind::kInsert;
  const ParseNode& relation = *insert.Get(Field::k_relation);
  if (insert.Get(Field::k_withClause) != nullptr)
    return Unsupported("WITH is not supported", FindKeyword(sql, 0, "with"));
  TESSERA_ASSIGN(out->target, FindTable(relation, snapshot));
  out->table = out->target->schema.name;
  TESSERA_TRY(BindOnConflict(insert, sql, dialect, snapshot, out));
  if (insert.Get(Field::k_returningList) != nullptr) {
    QueryBlock block(sql, &dialect, snapshot);
    TESSERA_TRY(BindReturning(insert, ScopeOf(relation, *out->target), block.context, nullptr, out));
  }
  TESSERA_ASSIGN(const std::vector<int> columns, ListedColumns(insert.Get(Field::k_cols), *out->target));
  // `count`: of these columns the rows have values for the first `count`.
  const std::string_view override = insert.Text(Field::k_override);
  const auto make_rules = [&](size_t count) -> Status {
    std::vector<int> given(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(count));
    // Their values are computed, and then those of the sequence take their places.
    if (override == "OVERRIDING_USER_VALUE")
      std::erase_if(given, [&](int column) { return IsIdentity(*out->target, column, snapshot); });
    TESSERA_ASSIGN(out->change.rules, MakeRowRules(out->target->schema, given, dialect));
    return Status::Ok();
  };
  const ParseNode* select = insert.Get(Field::k_selectStmt);
  if (select == nullptr) {  // DEFAULT VALUES
    TESSERA_TRY(make_rules(0));
    for (const ColumnSchema& column : out->target->schema.columns) {
      out->change.values.columns.emplace_back().type = column.type;
      out->change.values.columns.back().Append(DefaultOf(column));
    }
    out->change.values.rows = 1;
    return {};
  }
  const ParseNode* values = select->Get(Field::k_valuesLists);
  const bool plain = select->Get(Field::k_sortClause) == nullptr && select->Get(Field::k_limitCount) == nullptr &&
                     select->Get(Field::k_limitOffset) == nullptr && select->Get(Field::k_withClause) == nullptr;
  const bool named = insert.Get(Field::k_cols) != nullptr;
  const bool overrides = override == "OVERRIDING_SYSTEM_VALUE" || override == "OVERRIDING_USER_VALUE";
  std::vector<SqlType> types;
  for (const int c : columns) {
    types.push_back(out->target->schema.columns[static_cast<size_t>(c)].type);
    // A text that is too long is an error when it is stored; a literal of that type would be cut.
    if (types.back().id == TypeId::kText) types.back().length = 0;
  }
  if (values != nullptr && plain) {
    const Status status = BindValues(*values, sql, dialect, snapshot, columns, named, overrides, out);
    if (status.ok()) {
      const ParseNode& first = *values->first();
      return make_rules((first.Is(Tag::kList) ? first.Get(Field::k_items) : &first)->size());
    }
    if (status.code() != ErrorCode::kUnsupported) return status;
    // What is not constant, as random() or a subquery, is computed as a query.
    Result<std::unique_ptr<Query>> query = BindQuery(*select, sql, dialect, snapshot, &types);
    if (!query.ok()) return status;
    out->change.values = {};
    out->query = std::move(query).value();
  } else {
    TESSERA_ASSIGN(out->query, BindQuery(*select, sql, dialect, snapshot, &types));
  }
  const auto count = static_cast<size_t>(out->query->visible);
  if (count > columns.size()) {
    return SqlError(ErrorKind::kSyntax, "INSERT has more expressions than target columns",
                    out->query->outputs[columns.size()].expr->position);
  }
  if (count < columns.size() && named) {
    const ParseNode* extra = insert.Get(Field::k_cols)->first();
    for (size_t i = 0; i < count; ++i) extra = extra->next();
    return SqlError(ErrorKind::kSyntax, "INSERT has more target columns than expressions", extra->location());
  }
  for (size_t i = 0; i < count; ++i) {
    const ColumnSchema& column = out->target->schema.columns[static_cast<size_t>(columns[i])];
    if (column.generated_text) return GivenToGenerated(column, out->query->outputs[i].expr->position);
    if (!overrides)
      TESSERA_TRY(CheckIdentity(*out->target, columns[i], snapshot, out->query->outputs[i].expr->position));
  }
  TESSERA_TRY(make_rules(count));
  TESSERA_TRY(FitToTable(out->query.get(), *out->target, columns, dialect));
  return {};
}

// ---- SET, SHOW, EXPLAIN

/// A constant of SET as text.
std::string SettingText(const ParseNode& constant, std::string_view sql) {
  if (const ParseNode* s = constant.Get(Field::k_sval)) return std::string(s->Text(Field::k_sval));
  if (const ParseNode* f = constant.Get(Field::k_fval)) return std::string(f->Text(Field::k_fval));
  return std::to_string(ExpressionBinder::IntegerOfConstant(sql, constant));
}

/// SET search_path = a, b: the names are the statement's tables.
Status BindPath(const ParseNode& set, std::string_view sql, Statement* out) {
  const ParseNode* const args = set.Get(Field::k_args);
  for (const ParseNode* arg = args != nullptr ? args->first() : nullptr; arg != nullptr; arg = arg->next()) {
    if (!arg->Is(Tag::kA_Const) || arg->Get(Field::k_sval) == nullptr)
      return SqlError(ErrorKind::kInvalidParameterValue, "search_path takes names of schemas", arg->location());
    out->tables.push_back(SettingText(*arg, sql));
  }
  return {};
}

Status BindSet(const ParseNode& set, std::string_view sql, Statement* out) {
  out->kind = Statement::Kind::kSet;
  const std::string_view kind = set.Text(Field::k_kind);
  out->setting = set.Text(Field::k_name);
  if (kind == "VAR_SET_DEFAULT" || kind == "VAR_RESET") {
    out->value = "default";
    return {};
  }
  if (kind == "VAR_SET_VALUE" && out->setting == "search_path") return BindPath(set, sql, out);
  if (kind != "VAR_SET_VALUE") {
    return Unsupported(kind == "VAR_RESET_ALL" ? "RESET ALL is not supported" : "this form of SET is not supported",
                       FirstWord(sql));
  }
  const ParseNode* args = set.Get(Field::k_args);
  if (args == nullptr || args->first() == nullptr)
    return SqlError("SET " + out->setting + " takes an argument", FirstWord(sql));
  const ParseNode& arg = *args->first();
  const std::string first = arg.Is(Tag::kA_Const) ? SettingText(arg, sql) : std::string();
  if (std::optional<std::string> notice = SettingNotice(out->setting, first)) {
    out->kind = Statement::Kind::kNotice;
    out->notice = std::move(*notice);
    return {};
  }
  if (arg.next() != nullptr)
    return SqlError("SET " + out->setting + " takes only one argument", arg.next()->location());
  if (!arg.Is(Tag::kA_Const))
    return Unsupported("SET to something that is not a constant is not supported", arg.location());
  out->value = SettingText(arg, sql);
  return {};
}

/// SELECT set_config('name', 'value', false), which a dump of PostgreSQL begins with: of the path, or of a setting without an
/// effect. False: it is another query.
bool BindSetConfig(const ParseNode& select, std::string_view sql, Statement* out) {
  const ParseNode* const targets = select.Get(Field::k_targetList);
  if (targets == nullptr || targets->size() != 1 || select.Get(Field::k_fromClause) != nullptr) return false;
  const ParseNode* const call = targets->first()->Get(Field::k_val);
  if (call == nullptr || !call->Is(Tag::kFuncCall)) return false;
  std::string_view name;
  for (const ParseNode& part : *call->Get(Field::k_funcname)) name = part.Text(Field::k_sval);
  const ParseNode* const args = call->Get(Field::k_args);
  if (name != "set_config" || args == nullptr || args->size() != 3) return false;
  const ParseNode &setting = *args->first(), &value = *setting.next();
  if (!setting.Is(Tag::kA_Const) || !value.Is(Tag::kA_Const)) return false;
  if (SettingText(setting, sql) == "search_path") {
    out->kind = Statement::Kind::kSet;
    out->setting = "search_path";
    std::string_view text = value.Get(Field::k_sval) != nullptr ? value.Get(Field::k_sval)->Text(Field::k_sval) : "";
    out->tables = NamesOfPath(text);
    return true;
  }
  std::optional<std::string> notice = SettingNotice(SettingText(setting, sql), SettingText(value, sql));
  if (!notice) return false;
  out->kind = Statement::Kind::kNotice;
  out->notice = std::move(*notice);
  return true;
}

Status BindShow(const ParseNode& show, const Snapshot& snapshot, Statement* out) {
  out->setting = show.Text(Field::k_name);
  out->kind = out->setting == "tables" ? Statement::Kind::kSelect : Statement::Kind::kShow;
  if (out->setting == "tables") out->query = TablesQuery(snapshot);
  const char* const of_server = ServerSetting(out->setting);
  if (out->setting != "search_path" && of_server == nullptr) return {};
  NoteMoment();
  out->kind = Statement::Kind::kSelect;
  const std::string value = of_server != nullptr ? of_server : PathText(snapshot);
  out->query = ConstantRows({out->setting}, {SqlType::Text()}, {{Value::Text(value)}});
  return {};
}

/// A statement about roles, or else one without an effect, or without support, by its tag.
Status BindOther(const ParseNode& node, std::string_view sql, const Snapshot& snapshot, Statement* out) {
  const int position = FirstWord(sql);
  if (node.Is(Tag::kCreateRoleStmt)) return BindCreateRole(node, position, snapshot, out);
  if (node.Is(Tag::kAlterRoleStmt)) return BindAlterRole(node, position, snapshot, out);
  if (node.Is(Tag::kDropRoleStmt)) return BindDropRole(node, position, snapshot, out);
  if (node.Is(Tag::kGrantStmt)) return BindGrant(node, position, snapshot, out);
  const std::string_view tag = node.text();
  const Token word = NextToken(sql, static_cast<size_t>(position));
  std::optional<std::string> notice = StatementNotice(tag, sql.substr(word.begin, word.end - word.begin));
  if (!notice) return UnsupportedStatement(tag, position);
  out->kind = Statement::Kind::kNotice;
  out->notice = std::move(*notice);
  return {};
}

Status BindDrop(const ParseNode& drop, int position, const Dialect& dialect, const Snapshot& snapshot, Statement* out) {
  if (!dialect.macro.name.empty()) return BindDropMacro(dialect, drop, position, snapshot, out);
  const std::string_view type = drop.Text(Field::k_removeType);
  if (type == "OBJECT_TYPE") return BindDropType(drop, position, snapshot, out);
  if (type == "OBJECT_INDEX") return BindDropIndex(drop, position, snapshot, out);
  if (type == "OBJECT_MATVIEW") return BindDropMaterialized(drop, snapshot, out);
  if (type == "OBJECT_VIEW") return BindDropView(drop, snapshot, out);
  if (type == "OBJECT_SCHEMA") return BindDropSchema(drop, position, snapshot, out);
  if (type == "OBJECT_SEQUENCE") return BindDropSequence(drop, position, dialect, snapshot, out);
  return BindDropTable(drop, position, snapshot, out);
}

Status BindStatement(const ParseNode& node, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                     Statement* out);

Status BindExplain(const ParseNode& explain, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                   Statement* out) {
  bool summarize = false;
  TESSERA_TRY(BindExplainOptions(explain, &out->explain, &summarize));
  const ParseNode& inner = *explain.Get(Field::k_query);
  const bool is_query = inner.Is(Tag::kSelectStmt);
  out->explain.wanted = !summarize || !is_query;
  if (inner.Is(Tag::kExecuteStmt)) return BindExecute(inner, sql, dialect, out);
  const bool changes = inner.Is(Tag::kInsertStmt) || inner.Is(Tag::kDeleteStmt) || inner.Is(Tag::kUpdateStmt) ||
                       inner.Is(Tag::kMergeStmt) || inner.Is(Tag::kCreateTableAsStmt);
  if (!is_query && !changes) {
    return Unsupported("EXPLAIN of this statement is not supported", FirstWord(sql),
                       "EXPLAIN takes SELECT, INSERT, DELETE, UPDATE, MERGE, CREATE TABLE AS and EXECUTE.");
  }
  TESSERA_TRY(BindStatement(inner, sql, dialect, snapshot, out));
  if (!out->explain.wanted) out->query = SummarizeQuery(std::move(out->query));
  return {};
}

Status BindStatement(const ParseNode& node, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                     Statement* out) {
  if (!dialect.notice.empty()) {
    out->kind = Statement::Kind::kNotice;
    out->notice = dialect.notice;
    return {};
  }
  if (dialect.macro.of_rows && !dialect.macro.drops && !node.Is(Tag::kSelectStmt))
    return SqlError("AS TABLE takes a query", dialect.macro.begin);
  switch (node.tag()) {
    case Tag::kSelectStmt: {
      if (!dialect.macro.name.empty()) return BindCreateMacro(dialect, snapshot, out);
      if (BindSetConfig(node, sql, out)) return {};
      out->kind = Statement::Kind::kSelect;
      TESSERA_ASSIGN(out->query, BindQuery(node, sql, dialect, snapshot));
      return {};
    }
    case Tag::kInsertStmt:
      return BindInsert(node, sql, dialect, snapshot, out);
    case Tag::kDeleteStmt:
      return BindDelete(node, sql, dialect, snapshot, out);
    case Tag::kUpdateStmt:
      return BindUpdate(node, sql, dialect, snapshot, out);
    case Tag::kMergeStmt:
      return BindMerge(node, sql, dialect, snapshot, out);
    case Tag::kCreateStmt:
      return BindCreateTable(node, sql, dialect, snapshot, out);
    case Tag::kCreateTableAsStmt:
      if (node.Text(Field::k_objtype) == "OBJECT_MATVIEW")
        return BindCreateMaterialized(node, sql, dialect, snapshot, out);
      return BindCreateTableAs(node, sql, dialect, snapshot, out);
    case Tag::kRefreshMatViewStmt:
      return BindRefresh(node, FirstWord(sql), snapshot, out);
    case Tag::kDropStmt:
      return BindDrop(node, FirstWord(sql), dialect, snapshot, out);
    case Tag::kCreateSeqStmt:
      return BindCreateSequence(node, sql, FirstWord(sql), dialect, snapshot, out);
    case Tag::kAlterSeqStmt:
      return BindAlterSequence(node, sql, FirstWord(sql), dialect, snapshot, out);
    case Tag::kCreateSchemaStmt:
      return BindCreateSchema(node, FirstWord(sql), snapshot, out);
    case Tag::kAlterObjectSchemaStmt:
      return BindSetSchema(node, FirstWord(sql), snapshot, out);
    case Tag::kCommentStmt:
      return BindComment(node, FirstWord(sql), snapshot, out);
    case Tag::kViewStmt:
      return BindCreateView(node, sql, dialect, snapshot, out);
    case Tag::kVacuumStmt:
      if (node.Get(Field::k_is_vacuumcmd) == nullptr) return BindAnalyze(node, snapshot, out);
      return BindVacuum(node, FirstWord(sql), snapshot, out);
    case Tag::kCreateEnumStmt:
      return BindCreateType(node, FirstWord(sql), snapshot, out);
    case Tag::kIndexStmt:
      return BindCreateIndex(node, FirstWord(sql), sql, dialect, snapshot, out);
    case Tag::kAlterTableStmt:
      return BindAlterTable(node, FirstWord(sql), sql, dialect, snapshot, out);
    case Tag::kRenameStmt:
      return BindRename(node, FirstWord(sql), snapshot, out);
    case Tag::kTruncateStmt:
      TESSERA_TRY(BindTruncate(node, snapshot, out));
      return BindRestart(node, snapshot, dialect, out);
    case Tag::kCopyStmt:
      return BindCopy(node, sql, dialect, snapshot, FirstWord(sql), out);
    case Tag::kVariableSetStmt:
      return BindSet(node, sql, out);
    case Tag::kVariableShowStmt:
      return BindShow(node, snapshot, out);
    case Tag::kExplainStmt:
      return BindExplain(node, sql, dialect, snapshot, out);
    case Tag::kPrepareStmt:
      return BindPrepare(node, sql, dialect, out);
    case Tag::kExecuteStmt:
      return BindExecute(node, sql, dialect, out);
    case Tag::kDeallocateStmt:
      return BindDeallocate(node, out);
    default:
      return BindOther(node, sql, snapshot, out);
  }
}

}  // namespace

Result<Statement> Bind(const ParsedStatement& parsed, std::string_view sql, const Snapshot& snapshot) {
  Statement statement;
  TESSERA_TRY(BindStatement(*parsed.statement, sql, parsed.dialect, snapshot, &statement));
  if (!parsed.dialect.variable.empty()) {
    if (statement.kind != Statement::Kind::kSelect || statement.query == nullptr || statement.query->visible != 1)
      return SqlError("SET VARIABLE takes one value", FirstWord(sql), "Write SET VARIABLE x = 5, or x = (SELECT ...).");
    statement.kind = Statement::Kind::kSetVariable;
    statement.variable = parsed.dialect.variable;
    if (parsed.dialect.reset) statement.query = nullptr;
  }
  if (parsed.dialect.sequence_calls != nullptr)
    TESSERA_TRY(FinishSequenceValues(*parsed.dialect.sequence_calls, parsed.dialect, &statement));
  if (parsed.dialect.describe) statement.query = DescribeQuery(*statement.query);
  return statement;
}

}  // namespace tessera
