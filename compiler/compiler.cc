// The stages, each once, in their order; compiler.h draws them.

#include "compiler/compiler.h"

#include <algorithm>
#include <map>

#include "compiler/bind/binder.h"
#include "compiler/bind/parameter_binder.h"
#include "compiler/generate/codegen.h"
#include "compiler/parse/parser.h"
#include "compiler/parse/prepared_text.h"
#include "compiler/plan/plan_tree.h"
#include "compiler/plan/planner.h"
#include "compiler/query/sequence_source.h"
#include "compiler/ranks/co_location.h"
#include "compiler/ranks/exchange_joins.h"
#include "compiler/ranks/key_spans.h"
#include "compiler/rewrite/fold_aggregates.h"
#include "compiler/rewrite/run_rows.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/rewrite/unnest.h"
#include "compiler/rewrite/unread_columns.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/file_tables.h"

namespace tessera {

namespace {

/// What the session says to the binder.
void Tell(const Snapshot& snapshot, const PlanOptions& options, Dialect* dialect) {
  dialect->zone = options.zone;
  dialect->types = &snapshot.types;
  dialect->macros = &snapshot.macros;
  dialect->variables = options.variables;
  dialect->files = options.files;
  dialect->sequences = options.sequences;
  dialect->activity = options.activity;
  dialect->relations = &snapshot;
  if (options.caches) dialect->caches = &options.caches;
}

/// What of the parameters is held, if it is all, and the plan does not depend on them: how many rows a range leaves says
/// which order of joins is best.
std::vector<HeldParameter> AllHeld(Parameters* parameters, const vm::Program& program,
                                   const std::map<int, int>& constants) {
  std::vector<HeldParameter>& held = parameters->held;
  const auto is_equality = [](const HeldParameter& h) { return h.written == Function::kEq; };
  if (held.size() != parameters->bound) return {};
  if (!program.joins.empty() && !std::ranges::all_of(held, is_equality)) return {};
  for (const auto& [number, constant] : constants) held[static_cast<size_t>(number)].constant = constant;
  return std::move(held);
}

/// The stages after the binder.
Status Translate(Query* query, const Snapshot& snapshot, const PlanOptions& options, RandomState* random,
                 Parameters* parameters, Compiled* out) {
  TESSERA_TRY(Unnest(query));
  DropUnread(query);
  RandomState unshared;
  SeedCalls(query, random != nullptr ? random : &unshared);
  FoldAggregates(query);
  Simplify(query);
  if (options.read_runs) ReadRuns(query, options.on_device);
  TESSERA_ASSIGN(const Plan plan, MakePlan(*query, options));
  TESSERA_ASSIGN(Code code, Generate(plan, options));
  TESSERA_TRY(vm::Verify(*code.program));
  if (options.ranks > 1) {
    CoLocate(snapshot, &code);
    if (options.key_spans) AssignSpans(snapshot, options, &code);
    ExchangeJoins(snapshot, options, &code);
  }
  if (parameters != nullptr) out->held = AllHeld(parameters, *code.program, code.held);
  out->program = std::move(code.program);
  out->estimates = std::move(code.estimates);
  if (out->statement.explain.wanted) out->plan = ChangeNode(out->statement, PlanTree(plan, code.sections));
  return {};
}

/// Whether binding failed because a place takes constants only, as the percentage of TABLESAMPLE, and there is no value yet.
/// With one it is bound as the value stands, and so are the parameters after it: then all have got a place in the types.
bool LacksConstant(const Status& error, std::string_view sql, Parameters* parameters) {
  const bool at_parameter = std::ranges::count(parameters->places, error.position()) > 0;
  const size_t count = ParameterCount(sql);
  if (!at_parameter || parameters->inconsistent || count > kMostParameters) return false;
  parameters->types.resize(std::max(parameters->types.size(), count));
  return true;
}

Parameters WithoutValues(std::vector<SqlType> declared) {
  Parameters parameters;
  parameters.types = std::move(declared);
  parameters.positions.resize(parameters.types.size(), -1);
  return parameters;
}

/// Whether what it returns and takes is known by binding it; of others nothing is, and they may name what is not there yet.
bool IsBoundEarly(Tag tag) {
  constexpr Tag kBound[] = {Tag::kSelectStmt,       Tag::kInsertStmt,  Tag::kDeleteStmt,
                            Tag::kUpdateStmt,       Tag::kMergeStmt,   Tag::kCreateTableAsStmt,
                            Tag::kVariableShowStmt, Tag::kExplainStmt, Tag::kExecuteStmt};
  return std::ranges::find(kBound, tag) != std::end(kBound);
}

}  // namespace

Result<Statement> BindWithoutValues(std::string_view sql, const Snapshot& snapshot, const PlanOptions& options,
                                    std::vector<SqlType>* types) {
  TESSERA_ASSIGN(ParsedStatement parsed, Parse(sql, options.run_query));
  Tell(snapshot, options, &parsed.dialect);
  parsed.dialect.activity = nullptr;
  parsed.dialect.takes_values = false;
  SequenceCalls calls;
  parsed.dialect.sequence_calls = &calls;
  Statement nothing;
  nothing.kind = Statement::Kind::kNotice;
  if (!IsBoundEarly(parsed.statement->tag())) {
    types->resize(ParameterCount(sql));
    return nothing;
  }
  Parameters parameters = WithoutValues(std::move(*types));
  parsed.dialect.parameters = &parameters;
  Result<Statement> bound = Bind(parsed, sql, snapshot);
  const bool lacks_constant = !bound.ok() && LacksConstant(bound.status(), sql, &parameters);
  *types = std::move(parameters.types);
  if (!lacks_constant) return bound;
  // The columns do not depend on the values, so any that such places take will do.
  for (const bool null : {true, false}) {
    std::vector<Value> values;
    for (const SqlType& type : *types) {
      Value& value = values.emplace_back(Value::Null(type));
      if (null || !(type.id == TypeId::kNull || type.id == TypeId::kText || type.IsNumeric())) continue;
      value.type = SqlType::Of(TypeId::kNull);
      value.null = false;
      value.text = "1";
    }
    Parameters with_values{&values};
    parsed.dialect.parameters = &with_values;
    calls.clear();
    bound = Bind(parsed, sql, snapshot);
    if (bound.ok()) break;
  }
  return bound;
}

Result<std::vector<SqlType>> ParameterTypes(std::string_view sql, const Snapshot& snapshot, const PlanOptions& options,
                                            std::vector<SqlType> declared) {
  TESSERA_ASSIGN(ParsedStatement parsed, Parse(sql, options.run_query));
  Tell(snapshot, options, &parsed.dialect);
  Parameters parameters = WithoutValues(std::move(declared));
  parsed.dialect.parameters = &parameters;
  parsed.dialect.takes_values = false;
  SequenceCalls calls;
  parsed.dialect.sequence_calls = &calls;
  const Tag tag = parsed.statement->tag();
  const bool runs_plan =
      tag == Tag::kSelectStmt || tag == Tag::kInsertStmt || tag == Tag::kDeleteStmt || tag == Tag::kUpdateStmt;
  if (!runs_plan || !parsed.dialect.variable.empty() || !parsed.dialect.macro.name.empty()) {
    return Unsupported("PREPARE of this statement is not supported", -1,
                       "PREPARE takes SELECT, VALUES, INSERT, UPDATE and DELETE, with WITH in front.");
  }
  const Status bound = Bind(parsed, sql, snapshot).status();
  if (!bound.ok()) {
    if (!LacksConstant(bound, sql, &parameters)) return bound;
    return std::move(parameters.types);
  }
  TESSERA_TRY(CheckParameters(parameters));
  return std::move(parameters.types);
}

Result<Value> ParameterValue(const Value& given, size_t number, const SqlType& type, const TimeZone* zone) {
  return CastArgument(given, number, type, zone);
}

bool FillParameters(const std::vector<HeldParameter>& held, const std::vector<Value>& values, const TimeZone* zone,
                    vm::Program* program) {
  return FillHeld(held, values, zone, program);
}

Result<Compiled> Compile(std::string_view sql, const Snapshot& snapshot, const PlanOptions& options,
                         RandomState* random) {
  Compiled c;
  const DependencyScope scope(&c.dependencies);
  TESSERA_ASSIGN(ParsedStatement parsed, Parse(sql, options.run_query));
  Tell(snapshot, options, &parsed.dialect);
  Parameters parameters{options.parameters};
  if (options.parameters != nullptr) parsed.dialect.parameters = &parameters;
  parameters.holds = options.hold_parameters && parsed.statement->tag() == Tag::kSelectStmt;
  SequenceCalls calls;
  parsed.dialect.sequence_calls = &calls;
  TESSERA_ASSIGN(c.statement, Bind(parsed, sql, snapshot));
  if (c.statement.query == nullptr) {
    if (c.statement.explain.wanted && c.statement.kind != Statement::Kind::kExecute)
      c.plan = ChangeNode(c.statement, ValuesNode(c.statement.change.values.rows));
    return c;
  }
  Snapshot with_files;
  if (options.files != nullptr) with_files.files = options.files->used();
  const bool has_files = !with_files.files.empty();
  if (has_files) {
    with_files.tables = snapshot.tables;
    with_files.attached = snapshot.attached;
  }
  // Rows that a statement changes are found by the process that changes them.
  PlanOptions alone = options;
  const bool changes = ChangesRows(c.statement) || c.statement.kind == Statement::Kind::kAlterTable;
  const auto of_one_rank = [](const Dependencies::Table& table) { return IsOfOneRank(table.name); };
  if (changes || std::ranges::any_of(c.dependencies.tables, of_one_rank)) alone.ranks = 1;
  if (changes) {
    alone.read_runs = false;  // the target gets numbers of its rows, also where a subquery reads it
  }
  TESSERA_TRY(Translate(c.statement.query.get(), has_files ? with_files : snapshot, alone, random, &parameters, &c));
  return c;
}

Result<std::unique_ptr<vm::Program>> CompileQuery(Query* query, const Snapshot& snapshot, const PlanOptions& options,
                                                  RandomState* random) {
  PlanOptions alone = options;
  alone.ranks = 1;
  alone.read_runs = false;  // its tables may be rows of the statement, which are no runs
  Compiled c;
  TESSERA_TRY(Translate(query, snapshot, alone, random, nullptr, &c));
  return std::move(c.program);
}

}  // namespace tessera
