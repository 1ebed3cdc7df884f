// Binding function calls and aggregates.
#include <algorithm>
#include <climits>
#include <set>
#include <string>
#include <utility>

#include "base/lower_case.h"
#include "compiler/bind/array_binder.h"
#include "compiler/bind/calls/composed_function.h"
#include "compiler/bind/catalog_tables.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/bind/from_binder.h"
#include "compiler/bind/macro_call.h"
#include "compiler/query/correlation.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/fold.h"
#include "compiler/query/nearest_name.h"
#include "compiler/query/subquery_expr.h"
#include "compiler/query/window_call.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);
const SqlType kInteger = SqlType::Of(TypeId::kInteger);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);

bool IsUntyped(const Expr& e) { return e.type.id == TypeId::kNull; }

/// The type that an untyped argument gets for a class of types.
SqlType PreferredType(TypeClass c) {
  if (c == kClassBoolean) return kBoolean;
  if ((c & kClassText) != 0) return SqlType::Text();
  if ((c & kClassFloat) != 0) return kDouble;
  if ((c & kClassInteger) != 0) return kInteger;
  return SqlType::Text();
}

std::string Signature(std::string_view name, const std::vector<ExprPtr>& args) {
  std::string out(name);
  out.push_back('(');
  for (size_t i = 0; i < args.size(); ++i) {
    if (i > 0) out.append(", ");
    out.append(IsUntyped(*args[i]) ? "unknown" : args[i]->type.ToString());
  }
  out.push_back(')');
  return out;
}

/// Whether an exact number must become a double, because only doubles have an opcode.
bool NeedsDouble(const OpcodesByClass& opcodes, const SqlType& type) {
  return type.IsNumeric() && opcodes.For(type.storage()) == kNoOpcode && opcodes.real != kNoOpcode;
}

Status NoFunction(const std::string& signature, int position, std::string hint) {
  return SqlError(ErrorKind::kUndefinedFunction, "function " + signature + " does not exist", position,
                  std::move(hint));
}

/// Functions that other engines have and that take or give arrays, maps or JSON; what to write instead, or "".
struct NestedFunction {
  std::string_view name;
  const char* hint;
};
constexpr NestedFunction kNestedFunctions[] = {
    {"list", "string_agg gives one text."},
    {"unnest", "In FROM it is: SELECT u FROM t, unnest(string_to_array(x, ',')) AS u."},
    {"json_agg", ""},
    {"jsonb_agg", ""},
    {"json_object_agg", ""},
    {"regexp_match", "regexp_substr gives a match or a group of it."},
    {"regexp_extract_all", "regexp_substr(x, y, 1, n) gives the n-th match."},
    {"regexp_split_to_array", "split_part gives one part."},
    {"regexp_split_to_table", "In FROM it is: SELECT u FROM t, regexp_split_to_table(x, ',') AS u."},
    {"string_to_table", "In FROM it is: SELECT u FROM t, string_to_table(x, ',') AS u."},
    {"string_to_array", "split_part gives one part; in FROM, unnest(string_to_array(x, ',')) gives a row of each."},
    {"string_split", "split_part gives one part; in FROM, unnest(string_split(x, ',')) gives a row of each."},
    {"str_split", "split_part gives one part; in FROM, unnest(str_split(x, ',')) gives a row of each."},
};

/// What takes or gives JSON, arrays, maps or structs.
Status RefuseNested(std::string_view name, int position) {
  if (name.starts_with("json")) return Unsupported(std::string(name) + " is not supported: there is no JSON", position);
  const auto refused = [&](const char* hint) {
    return Unsupported(std::string(name) + " is not supported: there are no arrays, maps and JSON", position, hint);
  };
  for (const NestedFunction& f : kNestedFunctions) {
    if (f.name == name) return refused(f.hint);
  }
  for (const char* of_lists : {"array_", "list_", "map_", "struct_"}) {
    if (name.starts_with(of_lists)) return refused("");
  }
  return {};
}

constexpr const char* kCastHint =
    "No function matches the given name and argument types. You might need to add explicit type casts.";

}  // namespace

// ---- Functions

Status ExpressionBinder::RefuseAggregateWords(const ParseNode& call, std::string_view name) {
  for (const auto& [field, what] : {std::pair{Field::k_agg_star, "*"},
                                    {Field::k_agg_distinct, "DISTINCT"},
                                    {Field::k_agg_order, "ORDER BY"},
                                    {Field::k_agg_filter, "FILTER"},
                                    {Field::k_agg_within_group, "WITHIN GROUP"}}) {
    if (call.Get(field) != nullptr) {
      return SqlError(ErrorKind::kWrongObjectType,
                      std::string(what) + " specified, but " + std::string(name) + " is not an aggregate function",
                      call.location());
    }
  }
  return {};
}

namespace {

/// Errors: current_setting('x') without its second argument, of a setting that there is not, as PostgreSQL has it.
Status CheckSettingName(const ParseNode& call) {
  const ParseNode* const args = call.Get(Field::k_args);
  if (args == nullptr || args->size() != 1 || !args->first()->Is(Tag::kA_Const)) return {};
  const ParseNode* const text = args->first()->Get(Field::k_sval);
  if (text == nullptr) return {};
  const std::string name(text->Text(Field::k_sval));
  if (ServerSetting(name) != nullptr || LowerCase(name) == "search_path") return {};
  return SqlError(ErrorKind::kUndefinedObject, "unrecognized configuration parameter \"" + name + "\"",
                  args->first()->location(), "SHOW shows those of Tessera, current_setting(name, TRUE) is NULL.");
}

}  // namespace

Result<ExprPtr> ExpressionBinder::BindFunction(const ParseNode& node) {
  const int position = node.location();
  const ParseNode* names = node.Get(Field::k_funcname);
  std::string_view name;
  bool system = false;
  for (const ParseNode& n : *names) {
    system = system || name == "pg_catalog";
    name = n.Text(Field::k_sval);
  }
  if (names->size() > (system ? 2 : 1)) return Unsupported("a function name with a schema is not supported", position);
  if (const Macro* const macro = system ? nullptr : FindMacro(*context_, name, false)) return BindMacro(*macro, node);
  if (node.Get(Field::k_agg_within_group) != nullptr && IsHypotheticalName(name)) return BindHypothetical(name, node);
  const bool series = name == "generate_series";
  const bool makes_rows = series || name == "generate_subscripts" || IsUnnested(name);
  if (makes_rows && context_->rows_of && clause_ == Clause::kSelect && in_aggregate_ == 0 && !in_window_ &&
      may_skip_ == 0)
    return context_->rows_of(node);
  const bool aggregates = name == "array_agg";
  if (aggregates) name = "string_agg";  // BindOrdered asks the node
  if (!aggregates && !IsArrayFunction(name)) TESSERA_TRY(RefuseNested(name, position));
  if (name == "columns") {
    if (context_->each != nullptr) return Column(context_->each->relation, context_->each->column, position);
    return Unsupported("COLUMNS(...) here is not supported", position, "It stands in the select list and in WHERE.");
  }
  if (node.Get(Field::k_over) != nullptr) return BindWindow(name, node);
  if (FindMark(*context_, Dialect::Mark::Kind::kIgnoreNulls, position) != nullptr)
    return SqlError("IGNORE NULLS stands in a window function only", position, "Write OVER (...) after the call.");
  if (node.Get(Field::k_func_variadic) != nullptr) return Unsupported("VARIADIC is not supported", position);
  if (IsAggregateName(name) || IsStatisticName(name)) return BindAggregate(name, node);
  if (series) {
    return Unsupported("generate_series here is not supported", position, "SELECT i FROM generate_series(...) AS i.");
  }
  TESSERA_TRY(RefuseAggregateWords(node, name));
  if (name == "current_setting") TESSERA_TRY(CheckSettingName(node));
  const ComposedFunction* const row = FindComposed(name);
  if (row != nullptr) {
    TESSERA_ASSIGN(ExprPtr made, BindCalled(*row, node));
    if (made != nullptr) return made;
  }
  const ParseNode* list = node.Get(Field::k_args);
  if (list != nullptr && list->size() == 1 && (FindDateField(name) || IsMadeField(name)))
    return BindExtract(name, position, *list->first(), position);

  std::vector<ExprPtr> args;
  if (list != nullptr) {
    for (const ParseNode& child : *list) {
      if (child.Is(Tag::kNamedArgExpr)) return Unsupported("named arguments are not supported", child.location());
      TESSERA_ASSIGN(ExprPtr e, Bind(child));
      args.push_back(std::move(e));
    }
  }
  if (IsArrayFunction(name)) {
    TESSERA_ASSIGN(ExprPtr made, ArrayBinder(context_, clause_).Call(name, &args, position));
    return made != nullptr ? Result<ExprPtr>(std::move(made)) : NoFunction(Signature(name, args), position, kCastHint);
  }
  if (row != nullptr) {
    TESSERA_ASSIGN(ExprPtr composed, BindComposed(*row, &args, position));
    if (composed != nullptr) return composed;
  }
  return BindCall(name, std::move(args), position);
}

Result<ExprPtr> ExpressionBinder::BindCall(std::string_view name, std::vector<ExprPtr> args, int position) {
  std::vector<SqlType> types;
  for (const ExprPtr& a : args) types.push_back(a->type);
  FunctionRule rule;
  const FunctionMatch match = FindFunction(name, types, &rule);
  if (match != FunctionMatch::kFound && args.size() == 1 && FindTypeName(name))
    return BindCastCall(name, std::move(args[0]), position);
  if (match == FunctionMatch::kNoSuchName) {
    if (IsWindowFunctionName(name))
      return SqlError(ErrorKind::kUndefinedFunction,
                      "window function " + std::string(name) + " requires an OVER clause", position);
    return NoFunction(Signature(name, args), position, NearestFunction(name));
  }
  if (match == FunctionMatch::kWrongArguments) return NoFunction(Signature(name, args), position, kCastHint);
  bool resolved = false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!IsUntyped(*args[i])) continue;
    resolved = true;
    TESSERA_ASSIGN(args[i], Resolve(std::move(args[i]), PreferredType(ArgumentClass(name, i))));
    types[i] = args[i]->type;
  }
  // The first row that fits an untyped constant may not fit the type that it got.
  if (resolved && FindFunction(name, types, &rule) != FunctionMatch::kFound)
    return NoFunction(Signature(name, args), position, kCastHint);

  const FunctionInfo& info = Info(rule.function);
  if (info.translation == Translation::kOpcode || info.translation == Translation::kMath) {
    for (ExprPtr& a : args) {
      if (!NeedsDouble(info.opcodes, a->type)) continue;
      TESSERA_ASSIGN(a, Folded(MakeCast(std::move(a), kDouble)));
    }
  }
  switch (rule.function) {
    case Function::kRound:
      return BindRound(rule.function, std::move(args), rule.result, position);
    case Function::kTrunc:
      if (args[0]->type.IsFloat()) return BindTruncated(std::move(args[0]), position);
      return BindRound(rule.function, std::move(args), rule.result, position);
    case Function::kLpad:
    case Function::kRpad:
      if (args.size() == 2) args.push_back(MakeConstant(Value::Text(" "), position));
      break;
    case Function::kFloor:
    case Function::kCeil:
      if (args[0]->type.IsInteger()) return std::move(args[0]);
      break;
    default:
      break;
  }
  return Folded(MakeFunction(rule.function, rule.result, position, std::move(args)));
}

/// What a name that no function has may have meant, as a hint.
std::string ExpressionBinder::NearestFunction(std::string_view name) const {
  if (FindMacro(*context_, name, true) != nullptr)
    return "Macro \"" + std::string(name) + "\" makes a table: it stands in FROM.";
  std::vector<std::string_view> names = FunctionNames();
  const std::vector<Macro>* const macros = dialect().macros;
  if (macros != nullptr) {
    for (const Macro& m : *macros) {
      if (!m.of_rows) names.push_back(m.name);
    }
  }
  const std::string nearest = NearestName(name, names);
  return nearest.empty() ? "" : "Perhaps you meant function \"" + nearest + "\".";
}

/// The name of a type as a function: date('2024-01-31').
Result<ExprPtr> ExpressionBinder::BindCastCall(std::string_view name, ExprPtr x, int position) {
  const SqlType type =
      *FindTypeName(name) == TypeId::kDecimal ? SqlType::Decimal(18, 3) : SqlType::Of(*FindTypeName(name));
  if (IsUntyped(*x) && !x->constant.null) {
    TESSERA_ASSIGN(ExprPtr moment, BindNamedMoment(x->constant.text, type, position));
    if (moment != nullptr) return moment;
  }
  TESSERA_ASSIGN(x, Resolve(std::move(x), type));
  if (x->type == type) return x;
  if (FindCast(x->type, type) == CastContext::kNone)
    return SqlError(ErrorKind::kCannotCoerce, "cannot cast type " + x->type.ToString() + " to " + type.ToString(),
                    position);
  return Cast(std::move(x), type);
}

Result<ExprPtr> ExpressionBinder::BindVariable(ExprPtr name, int position) {
  if (!IsConstant(*name) || (!IsUntyped(*name) && name->type.id != TypeId::kText))
    return Unsupported("getvariable of a name that is not a constant text is not supported", name->position);
  NoteMoment();
  const auto* const variables = dialect().variables;
  const auto found =
      variables == nullptr ? decltype(variables->end()){} : variables->find(LowerCase(name->constant.text));
  if (variables == nullptr || found == variables->end()) return MakeNull(SqlType::Of(TypeId::kNull), position);
  return MakeConstant(found->second, position);
}

Result<ExprPtr> ExpressionBinder::BindExtractCall(const ParseNode& call) {
  const ParseNode& field = *call.Get(Field::k_args)->first();
  TESSERA_ASSIGN(const ExprPtr name, UnitName(field));
  if (name == nullptr)
    return Unsupported("EXTRACT of a field that is not a constant is not supported", call.location());
  return BindExtract(name->constant.text, name->position, *field.next(), call.location());
}

Result<ExprPtr> ExpressionBinder::BindExtract(std::string_view field, int field_position, const ParseNode& argument,
                                              int position) {
  const std::string name = LowerCase(field);
  const std::optional<DateField> part = FindDateField(name);
  if (!part && !IsMadeField(name)) {
    const std::string nearest = NearestName(name, DateFieldNames());
    return SqlError(ErrorKind::kInvalidParameterValue, "unit \"" + name + "\" is not recognized", field_position,
                    nearest.empty() ? "" : "Perhaps you meant \"" + nearest + "\".");
  }
  TESSERA_ASSIGN(ExprPtr x, BindTyped(argument));
  if (x->type.id == TypeId::kInterval) return BindIntervalField(name, *x, position);
  if (x->type.id == TypeId::kTime) {
    constexpr std::string_view kOfTime[] = {"hour", "minute", "second", "milliseconds", "microseconds", "epoch"};
    if (std::find(std::begin(kOfTime), std::end(kOfTime), name) == std::end(kOfTime)) {
      return SqlError("unit \"" + name + "\" not supported for type TIME", field_position,
                      "A TIME has hours, minutes and seconds.");
    }
    // It is that time of the first day.
    const SqlType timestamp = SqlType::Of(TypeId::kTimestamp);
    TESSERA_ASSIGN(
        x, AddNumber(Function::kAddMicros, MakeConstant(Value::Int(timestamp, 0), position), std::move(x), position));
  }
  if (x->type.id == TypeId::kTimestampTz) {
    // Seconds since 1970 are those of UTC, other fields those of the session's time zone.
    if (part != DateField::kEpoch) {
      TESSERA_ASSIGN(x, Cast(std::move(x), SqlType::Of(TypeId::kTimestamp)));
    }
  }
  if ((ClassOf(x->type) & kClassMoment) == 0) {
    return SqlError(ErrorKind::kUndefinedFunction,
                    "function extract(" + name + " from " + x->type.ToString() + ") does not exist", position,
                    "EXTRACT takes a DATE, a TIMESTAMP or a TIME.");
  }
  if (!part) return BindMadeField(name, std::move(x), position);
  // Fields with a fraction are doubles of all types.
  const SqlType fraction = SqlType::Of(TypeId::kDouble);
  const bool has_fraction = *part == DateField::kSecond || *part == DateField::kEpoch;
  if (has_fraction && x->type.id == TypeId::kDate) {
    TESSERA_ASSIGN(ExprPtr seconds, FieldOf(*part, *x, position));
    return Folded(MakeCast(std::move(seconds), fraction));
  }
  if (*part == DateField::kEpoch) {
    ExprPtr begin = MakeConstant(Value::Int(x->type, 0), position);
    TESSERA_ASSIGN(ExprPtr micros, Difference(std::move(x), std::move(begin), position));
    return Infix("/", std::move(micros), MakeConstant(Value::Float(fraction, 1e6), position), position);
  }
  ExprPtr e = MakeFunction(Function::kExtract, has_fraction ? fraction : SqlType::Of(TypeId::kBigint), position,
                           ExprList(std::move(x)));
  e->field = *part;
  return Folded(std::move(e));
}

Result<ExprPtr> ExpressionBinder::BindRound(Function function, std::vector<ExprPtr> args, const SqlType& type,
                                            int position) {
  int64_t digits = 0;
  const std::string name = function == Function::kRound ? "ROUND" : "TRUNC";
  if (args.size() > 1) {
    if (!IsConstant(*args[1]))
      return Unsupported(name + " to a number of digits that is not a constant is not supported", args[1]->position);
    if (args[1]->constant.null) return MakeNull(type, position);
    digits = std::clamp<int64_t>(args[1]->constant.i64, -400, 400);
  }
  SqlType result = type;
  if (!type.IsFloat()) {
    const SqlType from = args[0]->type;
    if (digits >= from.scale) return std::move(args[0]);
    if (from.scale - digits > 38) {  // no digit is left
      ExprPtr zero = MakeConstant(Value::Int(kInteger, 0), position);
      return Infix("*", std::move(args[0]), std::move(zero), position);
    }
    if (!from.IsInteger()) {
      // One more digit before the point: 99.9 rounds to 100.
      const int scale = static_cast<int>(std::max<int64_t>(digits, 0));
      result = SqlType::Decimal(std::min(38, from.precision - from.scale + 1 + scale), scale);
    }
  }
  if (args.size() > 1 || !type.IsFloat()) {
    ExprPtr n = MakeConstant(Value::Int(kInteger, digits), position);
    args.resize(1);
    args.push_back(std::move(n));
  }
  return Folded(MakeFunction(function, result, position, std::move(args)));
}

/// CONCAT skips NULLs: it is a || b with '' in place of NULL. It joins pairs, then pairs of pairs, so that a long list
/// makes no deep expression.
Result<ExprPtr> ExpressionBinder::BindConcat(std::vector<ExprPtr> args, int position) {
  for (ExprPtr& a : args) {
    TESSERA_ASSIGN(a, Coerce(std::move(a), SqlType::Text(), CastContext::kAssignment));
    if (!a->nullable) continue;
    TESSERA_ASSIGN(ExprPtr again, Copy(*a));
    TESSERA_ASSIGN(ExprPtr present,
                   Folded(MakeFunction(Function::kIsNotNull, kBoolean, position, ExprList(std::move(again)))));
    ExprPtr empty = MakeConstant(Value::Text({}), position);
    TESSERA_ASSIGN(a, Folded(MakeFunction(Function::kCase, SqlType::Text(), position,
                                          ExprList(std::move(present), std::move(a), std::move(empty)))));
    if (IsFunction(*a, Function::kCase)) a->nullable = false;
  }
  while (args.size() > 1) {
    std::vector<ExprPtr> pairs;
    for (size_t i = 0; i + 1 < args.size(); i += 2) {
      TESSERA_ASSIGN(ExprPtr pair, Folded(MakeFunction(Function::kConcat, SqlType::Text(), position,
                                                       ExprList(std::move(args[i]), std::move(args[i + 1])))));
      pairs.push_back(std::move(pair));
    }
    if (args.size() % 2 != 0) pairs.push_back(std::move(args.back()));
    args = std::move(pairs);
  }
  return std::move(args[0]);
}

// ---- Aggregates

int ExpressionBinder::LevelsOut(const std::vector<Expr*>& arguments) {
  int least = INT_MAX;
  const auto walk = [&](const Expr& e, auto& self) -> void {
    if (e.kind == Expr::Kind::kColumn && e.relation != kSubqueryColumn) least = 0;
    if (e.kind == Expr::Kind::kOuter) least = std::min(least, e.index);
    if (e.kind == Expr::Kind::kSubquery) {
      ForEachOuter(std::as_const(*e.subquery->query), 0,
                   [&](const Expr& outer, int depth) { least = std::min(least, outer.index - depth - 1); });
    }
    for (const ExprPtr& a : e.args) self(*a, self);
  };
  for (const Expr* e : arguments) {
    if (e != nullptr) walk(*e, walk);
  }
  return least == INT_MAX ? 0 : least;
}

Result<const BindContext*> ExpressionBinder::BlockOf(const std::vector<Expr*>& arguments, int position,
                                                     int* levels) const {
  *levels = LevelsOut(arguments);
  const BindContext* block = context_;
  const char* place = clause_ == Clause::kHaving ? nullptr : ClauseName(clause_);
  if (*levels == 0 && in_aggregate_ > 1) place = kInAggregate;
  for (int i = 0; i < *levels; ++i) {
    block = block->outer;
    place = block->no_aggregates;
  }
  if (place == kInAggregate)
    return SqlError(ErrorKind::kGrouping, "aggregate function calls cannot be nested", position);
  if (place != nullptr)
    return SqlError(ErrorKind::kGrouping, "aggregate functions are not allowed in " + std::string(place), position);
  if (block->aggregates == nullptr)
    return SqlError(ErrorKind::kGrouping, "aggregate functions are not allowed here", position);
  if (*levels == 0) return block;
  std::set<const Subquery*> moved;  // copies of an expression share a subquery
  const auto walk = [&](Expr& e, auto& self) -> void {
    if (e.kind == Expr::Kind::kOuter) {
      e.index -= *levels;
      if (e.index == 0) e.kind = Expr::Kind::kColumn;
    }
    if (e.kind == Expr::Kind::kSubquery && moved.insert(e.subquery.get()).second)
      MoveInward(e.subquery->query.get(), -*levels);
    for (const ExprPtr& a : e.args) self(*a, self);
  };
  for (Expr* e : arguments) {
    if (e != nullptr) walk(*e, walk);
  }
  return block;
}

ExprPtr ExpressionBinder::AggregateValue(size_t index, int levels, const SqlType& type, bool nullable, int position) {
  const auto number = static_cast<int>(index);
  if (levels == 0) {
    ExprPtr e = MakeLeaf(Expr::Kind::kAggregate, number, type, nullable);
    e->position = position;
    return e;
  }
  ExprPtr e = MakeColumn(kOuterAggregate, number, type, nullable, position);
  e->kind = Expr::Kind::kOuter;
  e->index = levels;
  return e;
}

Result<ExprPtr> ExpressionBinder::BindAggregate(std::string_view name, const ParseNode& node) {
  const int position = node.location();
  ++in_aggregate_;
  if (IsStatisticName(name)) {
    TESSERA_ASSIGN(ExprPtr e, BindStatistic(name, node, LeafOf(node, false)));
    --in_aggregate_;
    return e;
  }
  TESSERA_ASSIGN(AggregateCall call, BindAggregateCall(name, node));
  ExprPtr e = std::move(call.ordered);
  if (e == nullptr) {
    TESSERA_ASSIGN(e, AddAggregate(call.function, std::move(call.argument), call.distinct, call.type, position));
  }
  --in_aggregate_;
  return e;
}

bool ExpressionBinder::CountsAllRows(AggregateFunction function, Expr* argument, bool distinct) {
  return function == AggregateFunction::kCount && !distinct && !argument->nullable && LevelsOut({argument}) == 0;
}

ExpressionBinder::AggregateLeaf ExpressionBinder::LeafOf(const ParseNode& call, bool distinct) {
  return [this, &call, distinct](AggregateFunction f, ExprPtr argument, const SqlType& type) {
    const int position = call.location();
    if (!in_aggregate_) return AddWindow(f, std::move(argument), distinct, type, position, call);
    if (CountsAllRows(f, argument.get(), distinct))
      return AddAggregate(AggregateFunction::kCountStar, nullptr, false, type, position);
    return AddAggregate(f, std::move(argument), distinct, type, position);
  };
}

/// Sums of intervals, and moments of exact numbers; nullptr: the aggregate is one by itself. DISTINCT takes `argument` in another
/// form.
Result<ExprPtr> ExpressionBinder::BindOfOtherAggregates(std::string_view name, ExprPtr* argument, bool distinct,
                                                        const ParseNode& node) {
  const int position = node.location();
  const AggregateLeaf leaf = LeafOf(node, distinct);
  const SqlType& type = (*argument)->type;
  if (type.id == TypeId::kInterval && (name == "sum" || name == "avg")) {
    const bool mean = name == "avg";
    return distinct ? BindDifferentIntervalsSum(mean, std::move(*argument), leaf, position)
                    : BindIntervalSum(mean, std::move(*argument), leaf, position);
  }
  if (type.id == TypeId::kInterval && (distinct || name == "approx_count_distinct"))
    *argument = OrderedForm(std::move(*argument));
  if (distinct || !HasExactMoments(type)) return ExprPtr();
  const std::optional<AggregateRule> rule = FindAggregate(name, type);
  if (!rule || !Info(rule->function).HasMoments()) return ExprPtr();
  return BindExactVariance(rule->function, **argument, leaf, position);
}

Result<ExpressionBinder::AggregateCall> ExpressionBinder::BindAggregateCall(std::string_view name,
                                                                            const ParseNode& node) {
  const int position = node.location();
  const bool within_group = node.Get(Field::k_agg_within_group) != nullptr;
  const ParseNode* list = node.Get(Field::k_args);
  const ParseNode* filter = node.Get(Field::k_agg_filter);
  const bool star = node.Get(Field::k_agg_star) != nullptr || (name == "count" && list == nullptr && !within_group);
  bool distinct = node.Get(Field::k_agg_distinct) != nullptr;
  const SqlType bigint = SqlType::Of(TypeId::kBigint);
  if (star && name != "count") return NoFunction(std::string(name) + "(*)", position, {});
  if (!star && list == nullptr && !within_group) {
    return NoFunction(std::string(name) + "()", position, {});
  }
  ExprPtr condition;
  if (filter != nullptr) {
    TESSERA_ASSIGN(condition, BindBoolean(*filter, "argument of FILTER"));
    ++may_skip_;
  }
  // Aggregates that do not depend on the order take any.
  std::vector<AggregateOrder> order;
  if (const ParseNode* keys = node.Get(Field::k_agg_order)) {
    TESSERA_ASSIGN(order, BindAggregateOrder(*keys));
  }
  const bool ordered = IsOrderedAggregate(name);
  if (within_group && !ordered)
    return SqlError(std::string(name) + " is not an ordered-set aggregate, so it cannot have WITHIN GROUP", position);
  ExprPtr argument;
  if (star) {
    if (condition == nullptr) return AggregateCall{AggregateFunction::kCountStar, nullptr, false, bigint, nullptr};
    argument = MakeConstant(Value::Int(kInteger, 1), position);
  } else {
    std::vector<ExprPtr> args;
    const bool counts = name == "count" || name == "approx_count_distinct";
    for (const ParseNode* child = list == nullptr ? nullptr : list->first(); child != nullptr; child = child->next()) {
      const bool row = counts && child->Is(Tag::kRowExpr);
      TESSERA_ASSIGN(ExprPtr e, row ? BindCountedRow(*child, distinct || name != "count") : Bind(*child));
      args.push_back(std::move(e));
    }
    if (counts && distinct && args.size() > 1) {
      return Unsupported("count(DISTINCT ...) of several values is not supported", position,
                         "Write count(DISTINCT (x, y)).");
    }
    if (ordered) {
      if (condition != nullptr) --may_skip_;
      AggregateCall call;
      TESSERA_ASSIGN(call.ordered,
                     BindOrdered(name, node, std::move(args), std::move(order), std::move(condition), position));
      return call;
    }
    if (args.size() != 1) return NoFunction(Signature(name, args), position, kCastHint);
    argument = std::move(args[0]);
    TESSERA_ASSIGN(argument, Resolve(std::move(argument), PreferredType(AggregateArgumentClass(name))));
  }
  if (condition != nullptr) {
    --may_skip_;
    // FILTER (WHERE c) makes the argument NULL where c is not true.
    const SqlType type = argument->type;
    TESSERA_ASSIGN(argument,
                   Folded(MakeFunction(Function::kCase, type, position,
                                       ExprList(std::move(condition), std::move(argument), MakeNull(type, position)))));
  }
  AggregateCall composed;
  TESSERA_ASSIGN(composed.ordered, BindOfOtherAggregates(name, &argument, distinct, node));
  if (composed.ordered != nullptr) return composed;
  return AggregateOf(name, std::move(argument), distinct, position);
}

/// The aggregate of that name over one argument, in the form that it takes.
Result<ExpressionBinder::AggregateCall> ExpressionBinder::AggregateOf(std::string_view name, ExprPtr argument,
                                                                      bool distinct, int position) {
  const std::optional<AggregateRule> rule = FindAggregate(name, argument->type);
  if (!rule) {
    std::vector<ExprPtr> args;
    args.push_back(std::move(argument));
    return NoFunction(Signature(name, args), position, kCastHint);
  }
  const AggregateInfo& info = Info(rule->function);
  if (name == "approx_count_distinct") distinct = true;
  if (name == "count_if" || name == "countif") {
    // count_if counts the rows where it is TRUE.
    const SqlType one = kInteger;
    TESSERA_ASSIGN(argument,
                   Folded(MakeFunction(Function::kCase, one, position,
                                       ExprList(std::move(argument), MakeConstant(Value::Int(one, 1), position),
                                                MakeNull(one, position)))));
  }
  if (rule->function == AggregateFunction::kSum && argument->type.id == TypeId::kBoolean) {
    TESSERA_ASSIGN(argument, Folded(MakeCast(std::move(argument), kInteger)));
  }
  if (NeedsDouble(info.opcodes, argument->type)) {
    TESSERA_ASSIGN(argument, Folded(MakeCast(std::move(argument), kDouble)));
  }
  if (info.ignores_duplicates) distinct = false;
  if (CountsAllRows(rule->function, argument.get(), distinct))
    return AggregateCall{AggregateFunction::kCountStar, nullptr, false, rule->result, nullptr};
  return AggregateCall{rule->function, std::move(argument), distinct, rule->result, nullptr};
}

Result<ExprPtr> ExpressionBinder::AddAggregate(AggregateFunction function, ExprPtr argument, bool distinct,
                                               const SqlType& type, int position) {
  const AggregateInfo& info = Info(function);
  int levels = 0;
  TESSERA_ASSIGN(const BindContext* const block, BlockOf({argument.get()}, position, &levels));
  const bool nullable = !info.zero_if_empty && (argument->nullable || !block->has_group_by || info.NeedsTwoValues());
  std::vector<Aggregate>& all = *block->aggregates;
  size_t index = 0;
  for (; index < all.size(); ++index) {
    const Aggregate& a = all[index];
    if (a.function != function || a.distinct != distinct) continue;
    if (argument == nullptr || a.argument->SameAs(*argument)) break;
  }
  if (index == all.size()) {
    if (index == kMaxItems) return Unsupported("more than 4096 aggregates in one SELECT are not supported", position);
    Aggregate a;
    a.function = function;
    a.argument = std::move(argument);
    a.distinct = distinct;
    a.type = type;
    a.position = position;
    all.push_back(std::move(a));
  }
  return AggregateValue(index, levels, type, nullable, position);
}

}  // namespace tessera
