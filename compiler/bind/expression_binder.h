// Parse tree of an expression -> bound expression: names, types, casts, operators chosen by type, constants folded.
// Private to compiler/.
//
// An untyped constant (NULL, a quoted literal) has TypeId::kNull until something gives it a type; a quoted literal
// keeps its characters in constant.text and is not NULL. Resolve() gives it a type; no untyped constant leaves the
// binder.
//
// Start at: ExpressionBinder::Bind. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "compiler/parse/dialect.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/bound_query.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/type_rules.h"
#include "tablet/values/interval.h"

namespace tessera {

/// Output columns, group keys and aggregates of one SELECT. Each is compared with all before it; tens of thousands
/// would take seconds.
inline constexpr size_t kMaxItems = 4096;

/// Where an expression stands: decides what it may hold and how errors name the clause.
enum class Clause : uint8_t {
  kSelect,
  kWhere,
  kOn,
  kGroupBy,
  kHaving,
  kQualify,
  kOrderBy,
  kValues,
  kLimit,
  kOffset,
  kConstraint,  ///< CHECK, GENERATED
  kDefault,
};

/// A column that a name may mean.
struct ScopeColumn {
  std::string name;
  int relation = 0, column = 0;
};

/// What FROM calls a table: its name or its alias. Its columns need not be those of one relation: the columns of a side
/// of an outer join are in a derived table.
struct RangeVariable {
  std::string alias;  ///< "" for a derived table without one
  std::string table;  ///< name of the stored table, or ""
  int position = -1;
  std::vector<ScopeColumn> columns;
};

/// What names mean in an expression: the columns of a part of FROM.
struct NameScope {
  std::vector<ScopeColumn> columns;  ///< in the order of *; columns merged by USING once
  std::vector<RangeVariable> variables;
};

struct ComposedEntry;
struct ComposedFunction;
struct CteScope;
struct MacroFrame;
struct MacroText;
struct PrintDirective;
struct RegexFunction;
struct WindowCall;

/// A view whose query is being bound, and the view that names it.
struct BoundView {
  const ViewSchema* view = nullptr;
  const BoundView* outer = nullptr;
  bool is_new = false;  ///< names alone are looked for in the session's path, and not in the default schema
};

/// Units of DATE_TRUNC and DATE_DIFF, by their length.
enum class DateUnit : uint8_t {
  kMicrosecond,
  kMillisecond,
  kSecond,
  kMinute,
  kHour,
  kDay,
  kWeek,
  kMonth,
  kQuarter,
  kYear,
  kDecade,
  kCentury,
  kMillennium,
};

/// GROUPING SETS, ROLLUP and CUBE of a block while it is bound, see grouping_sets.h.
struct GroupingSets {
  bool used = false;                   ///< keys may be NULL where a set leaves them out
  std::vector<std::vector<int>> sets;  ///< numbers of the keys of each
  std::vector<std::vector<ExprPtr>>
      calls;  ///< arguments of each GROUPING(), which is kGroup with index -1 - its number
};

/// The clauses of a query block that its expressions may refer to, as they were parsed.
struct BlockClauses {
  const ParseNode* targets = nullptr;        ///< the select list, whose names WHERE may use
  std::vector<const ParseNode*> in_targets;  ///< those of it that are being bound for that
  const ParseNode* windows = nullptr;        ///< its WINDOW, or nullptr
  const ParseNode* qualify = nullptr;        ///< the last entry of that, if it is the condition of QUALIFY
};

/// What all expressions of one query block share while they are bound.
struct BindContext {
  std::string_view sql;
  const Dialect* dialect = nullptr;        ///< nullptr: there are no marks
  const Snapshot* snapshot = nullptr;      ///< nullptr: no subqueries
  const CteScope* ctes = nullptr;          ///< queries of WITH that a subquery may name
  const BindContext* outer = nullptr;      ///< the block around this one, if it is a subquery
  const NameScope* outer_scope = nullptr;  ///< what names mean in that block
  const BoundView* view = nullptr;         ///< whose query the block belongs to; nullptr: none
  int* views = nullptr;                    ///< how many the statement has named so far
  std::vector<Relation>* relations = nullptr;
  std::vector<Aggregate>* aggregates = nullptr;
  std::vector<WindowCall>* windows = nullptr;
  BlockClauses clauses;
  GroupingSets* grouping = nullptr;   ///< nullptr: no block with GROUP BY
  const MacroFrame* macro = nullptr;  ///< the call in whose text this is; nullptr: see FrameOf
  const ScopeColumn* each = nullptr;  ///< the column that COLUMNS(...) stands for now; nullptr: none
  /// Adds the rows of a function that stands in the select list, and gives their value; empty: none may stand here.
  std::function<Result<ExprPtr>(const ParseNode& call)> rows_of = {};
  const char* no_aggregates = "FROM";  ///< where the subquery that is being bound stands, if none may; or nullptr
  bool has_group_by = false;           ///< without it an aggregate may be over no rows, and so NULL
  int64_t now = MicrosecondsNow();     ///< of the statement: one value, however often it asks
  int nesting = 0;                     ///< levels around what is being bound
  int deepest = 0;                     ///< the most that `nesting` was, in blocks inside of this one, too
  int joined_lists = 0;                ///< long lists of IN that became subqueries, see bind_long_list.cc
  int64_t copied = 0;                  ///< nodes made by copying operands, see ExpressionBinder::Copy
};

/// The session's time zone; nullptr: UTC.
inline const TimeZone* ZoneOf(const BindContext& context) {
  return context.dialect != nullptr ? context.dialect->zone : nullptr;
}

/// The mark of a parse tree's node at `position`, or nullptr.
inline const Dialect::Mark* FindMark(const BindContext& context, Dialect::Mark::Kind kind, int position) {
  return context.dialect != nullptr ? context.dialect->Find(kind, position) : nullptr;
}

/// In place of a clause: inside of an aggregate.
inline constexpr char kInAggregate[] = "an aggregate";

/// How errors name the clause, if no window function may stand there; else nullptr.
const char* ClauseName(Clause clause);

class ExpressionBinder {
 public:
  /// `scope` may be nullptr: then no columns can be named.
  ExpressionBinder(BindContext* context, const NameScope* scope, Clause clause)
      : context_(context), scope_(scope), clause_(clause) {}

  /// The bound expression; may still be an untyped constant.
  Result<ExprPtr> Bind(const ParseNode& node);
  /// The same, with a type.
  Result<ExprPtr> BindTyped(const ParseNode& node);
  /// The same as a BOOLEAN; `what` for the error: "argument of WHERE".
  Result<ExprPtr> BindBoolean(const ParseNode& node, const char* what);
  /// Output columns by name that are tried when no column fits: ORDER BY, HAVING, QUALIFY; in SELECT those before, when
  /// no column of a block around fits either.
  void SetOutputs(const std::vector<Output>* outputs) { outputs_ = outputs; }

  /// The session's time zone; nullptr: UTC.
  const TimeZone* zone() const { return ZoneOf(*context_); }
  const Dialect& dialect() const;

  /// Binds the windows that WINDOW names, whether calls name them or not.
  Status CheckWindowClause();

  /// SQL over the arguments, which are x, y and z.
  Result<ExprPtr> BindText(std::string_view text, std::vector<ExprPtr> args, int position);

  // ---- Types; statements use these, too
  /// An untyped constant gets `type`, and a quoted literal is read as that type. Other expressions stay.
  Result<ExprPtr> Resolve(ExprPtr e, const SqlType& type) const;
  static Result<ExprPtr> Resolve(ExprPtr e, const SqlType& type, const TimeZone* zone);
  /// e as `type`, if the context allows that cast. Errors: kSql "... cannot be cast ..." at its position.
  Result<ExprPtr> Coerce(ExprPtr e, const SqlType& type, CastContext allowed);
  /// e as `type`, whatever the context; between a TIMESTAMP WITH TIME ZONE and another type by the session's time zone.
  Result<ExprPtr> Cast(ExprPtr e, const SqlType& type) const;
  /// A TypeName node. Errors: unknown type, wrong lengths.
  /// `of_elements`: of an array, that of its elements.
  Result<SqlType> BindType(const ParseNode& type_name, int position, bool of_elements = false);
  /// a = b and other comparisons. Both sides may be untyped.
  Result<ExprPtr> Comparison(Function function, ExprPtr left, ExprPtr right, int position);
  /// A column by relation and number.
  ExprPtr Column(int relation, int column, int position) const;
  /// Whether column `column` of `r` may be NULL after the join of `r`.
  static bool IsNullable(const Relation& r, int column);
  /// The integer of an A_Const. (The parser's tree loses a negative one.)
  static int64_t IntegerOfConstant(std::string_view sql, const ParseNode& a_const);

 private:
  struct Nesting;

  // bind_expression.cc
  Result<ExprPtr> BindNode(const ParseNode& node);
  Result<ExprPtr> BindColumn(const ParseNode& node);
  Result<ExprPtr> BindConstant(const ParseNode& node);
  Result<ExprPtr> BindLogic(const ParseNode& node);
  Result<ExprPtr> BindNullTest(const ParseNode& node);
  Result<ExprPtr> BindBooleanTest(const ParseNode& node);
  Result<ExprPtr> BindCase(const ParseNode& node);
  Result<ExprPtr> BindCoalesce(const ParseNode& node);
  Result<ExprPtr> BindGreatest(const ParseNode& node);
  /// The column that `qualifier`.`name` (or `name` alone) means in a scope; nullptr if there is none. Errors: several.
  static Result<const ScopeColumn*> FindIn(const NameScope& scope, std::string_view qualifier, std::string_view name,
                                           int position, bool* qualifier_found);
  /// The same, in the blocks around this one; nullptr if there is none.
  Result<ExprPtr> FindOuter(std::string_view qualifier, std::string_view name, int position) const;
  /// What an output of that name stands for, in the select list after it and in WHERE; nullptr if there is none.
  Result<ExprPtr> FindOutput(std::string_view name, int position);
  Status ColumnNotFound(std::string_view qualifier, std::string_view name, int position) const;
  Status NotSupported(const ParseNode& node) const;
  Result<ExprPtr> MakeCase(std::vector<ExprPtr> args, int position);
  /// The branches of a CASE (every second and the last) get one type; `what` for the error: "CASE".
  Status Unify(std::vector<ExprPtr*> branches, const char* what, SqlType* type);
  Result<ExprPtr> Folded(ExprPtr e) const;
  /// A copy of an operand that is used twice. Errors: too many copies, because copies of copies grow exponentially.
  Result<ExprPtr> Copy(const Expr& e);

  // bind_operator.cc
  Result<ExprPtr> BindOperator(const ParseNode& node);
  Result<ExprPtr> Prefix(std::string_view symbol, ExprPtr operand, int position);
  Result<ExprPtr> Infix(std::string_view symbol, ExprPtr left, ExprPtr right, int position);
  Result<ExprPtr> AddSpan(ExprPtr moment, const Value& span, bool negative, int position);
  Result<ExprPtr> Less(ExprPtr x, int sign, int position);
  Result<ExprPtr> BindIn(const ParseNode& node);
  Result<ExprPtr> InList(ExprPtr x, std::vector<ExprPtr> list, int position);
  Result<ExprPtr> BindBetween(const ParseNode& node);
  /// x >= low AND x <= high; `other`, if not nullptr: with the bounds exchanged.
  Status BindValueBetween(const ParseNode& tested, const ParseNode& first, const ParseNode& second, int position,
                          ExprPtr* both, ExprPtr* other);
  Result<ExprPtr> BindLike(const ParseNode& node);
  Result<ExprPtr> Like(std::string_view symbol, ExprPtr x, const ParseNode* pattern_node, int position);
  /// x = ANY (ARRAY[...]), x LIKE ALL (ARRAY[...]).
  Result<ExprPtr> BindAnyOfArray(const ParseNode& node);
  Result<ExprPtr> BindDistinct(const ParseNode& node);
  /// a IS DISTINCT FROM b; `negated`: IS NOT.
  Result<ExprPtr> Distinct(ExprPtr a, ExprPtr b, bool negated, int position);
  Result<ExprPtr> BindNullIf(const ParseNode& node);
  Status ApplyOperandRule(OperandRule rule, ExprPtr* left, ExprPtr* right);

  // bind_subquery.cc
  Result<ExprPtr> BindSubquery(const ParseNode& node);
  Result<ExprPtr> BindAny(const ParseNode& node, std::shared_ptr<Query> query);

  // bind_long_list.cc
  /// Whether IN of a list of this many constants is better a join.
  bool IsJoinedList(const std::vector<const Expr*>& tested, size_t elements) const;
  /// The elements of a list of rows, or of single values, take the types of what is tested. False: they cannot; then some
  /// may have their types already.
  Result<bool> AlignRows(const std::vector<ExprPtr>& tested, std::vector<std::vector<ExprPtr>>* rows);
  /// (x, ...) IN of rows of constants, of the types of x, ...; as a join.
  Result<ExprPtr> InRows(std::vector<ExprPtr> tested, std::vector<std::vector<ExprPtr>> rows, int position);

  // bind_row.cc
  Result<std::vector<ExprPtr>> BindRowItems(const ParseNode& row);
  Result<ExprPtr> CompareRows(std::string_view symbol, std::vector<ExprPtr> left, std::vector<ExprPtr> right,
                              int position);
  Result<ExprPtr> BindRowComparison(const ParseNode& left, std::string_view symbol, const ParseNode& right,
                                    int position);
  Result<ExprPtr> BindRowNullTest(const ParseNode& row, Function test, int position);
  Result<ExprPtr> BindRowBetween(const ParseNode& row, const ParseNode& low, const ParseNode& high, int position);
  Result<ExprPtr> BindRowDistinct(const ParseNode& left, const ParseNode& right, bool negated, int position);
  Result<ExprPtr> BindRowIn(const ParseNode& row, const ParseNode& items, int position);
  Result<ExprPtr> BindRowSubquery(const ParseNode& row, std::string_view symbol, const ParseNode& subquery,
                                  int position);

  /// Adds an aggregate to the block, or a window: what it gives there.
  using AggregateLeaf = std::function<Result<ExprPtr>(AggregateFunction, ExprPtr argument, const SqlType& result)>;
  // bind_function.cc
  Result<ExprPtr> BindFunction(const ParseNode& node);
  /// A call of a function of bound arguments that is no composed one.
  Result<ExprPtr> BindCall(std::string_view name, std::vector<ExprPtr> args, int position);
  std::string NearestFunction(std::string_view name) const;
  /// DISTINCT, FILTER and others in a call that is not one of an aggregate.
  static Status RefuseAggregateWords(const ParseNode& call, std::string_view name);
  Result<ExprPtr> BindCastCall(std::string_view name, ExprPtr x, int position);
  /// GETVARIABLE.
  Result<ExprPtr> BindVariable(ExprPtr name, int position);
  // bind_path.cc
  /// CURRENT_SCHEMA.
  Result<ExprPtr> BindCurrentSchema(int position);
  /// CURRENT_SCHEMAS.
  Result<ExprPtr> BindCurrentSchemas(ExprPtr implicit, int position);
  /// PG_TABLE_IS_VISIBLE.
  Result<ExprPtr> BindVisible(ExprPtr oid, int position);
  /// PG_GET_SERIAL_SEQUENCE.
  Result<ExprPtr> BindSerialSequence(ExprPtr table, ExprPtr column, int position);
  // bind_sequence.cc
  /// The sequence that an argument of `function` names.
  Result<std::string> SequenceOf(const Expr& name, std::string_view function) const;
  /// Whether the expression is computed for the rows of FROM.
  bool HasRows() const { return context_->relations != nullptr && !context_->relations->empty(); }
  /// Errors: the call would be one for each row.
  Status RefuseRows(std::string_view function, int position) const;
  /// NEXTVAL and CURRVAL.
  Result<ExprPtr> BindSequenceValue(std::string_view function, std::vector<ExprPtr>* args, int position);
  /// pg_backend_pid()
  Result<ExprPtr> BindOwnPid(int position);
  /// pg_cancel_backend(x), pg_terminate_backend(x)
  Result<ExprPtr> BindSignal(std::string_view function, std::vector<ExprPtr>* args, int position);
  Result<ExprPtr> BindLastValue(int position);
  Result<ExprPtr> BindSetValue(std::string_view function, std::vector<ExprPtr>* args, int position);
  Result<ExprPtr> BindAggregate(std::string_view name, const ParseNode& node);
  /// The aggregate that a call names, with its argument as the aggregate takes it; nullptr for count(*).
  struct AggregateCall {
    AggregateFunction function = AggregateFunction::kCountStar;
    ExprPtr argument;
    bool distinct = false;
    SqlType type;
    ExprPtr ordered = nullptr;  ///< an aggregate over all values in order, as a whole; then the others do not count
  };
  /// Whether it counts what is never NULL.
  static bool CountsAllRows(AggregateFunction function, Expr* argument, bool distinct);
  /// Adds the parts of `call` where it stands: aggregates, or windows of its OVER. `call` must outlive it.
  AggregateLeaf LeafOf(const ParseNode& call, bool distinct);
  Result<ExprPtr> BindOfOtherAggregates(std::string_view name, ExprPtr* argument, bool distinct, const ParseNode& node);
  Result<AggregateCall> BindAggregateCall(std::string_view name, const ParseNode& node);
  Result<AggregateCall> AggregateOf(std::string_view name, ExprPtr argument, bool distinct, int position);
  Result<ExprPtr> AddAggregate(AggregateFunction function, ExprPtr argument, bool distinct, const SqlType& type,
                               int position);
  /// By the standard an aggregate over outer columns only belongs to the innermost block that has one of them: that
  /// block, and `arguments` as they are there. `levels`: how far out it is. Errors: no aggregate may stand there.
  Result<const BindContext*> BlockOf(const std::vector<Expr*>& arguments, int position, int* levels) const;
  /// How many blocks out the innermost one is that has a column in one of these; 0 if none has columns.
  static int LevelsOut(const std::vector<Expr*>& arguments);
  /// The value of an aggregate of the block that number of levels out.
  static ExprPtr AggregateValue(size_t index, int levels, const SqlType& type, bool nullable, int position);
  /// The keys of ORDER BY in an aggregate.
  Result<std::vector<AggregateOrder>> BindAggregateOrder(const ParseNode& list);
  class OrderedCall;
  /// An aggregate of StateRule::kValues; `condition` is that of FILTER, or nullptr.
  Result<ExprPtr> BindOrdered(std::string_view name, const ParseNode& node, std::vector<ExprPtr> args,
                              std::vector<AggregateOrder> order, ExprPtr condition, int position);
  Result<ExprPtr> AddOrdered(Aggregate a);
  Result<ExprPtr> BindExtractCall(const ParseNode& call);
  Result<ExprPtr> BindExtract(std::string_view field, int field_position, const ParseNode& argument, int position);
  /// ROUND, and TRUNC of exact numbers.
  Result<ExprPtr> BindRound(Function function, std::vector<ExprPtr> args, const SqlType& type, int position);
  Result<ExprPtr> BindConcat(std::vector<ExprPtr> args, int position);

  // bind_window.cc
  Result<ExprPtr> BindWindow(std::string_view name, const ParseNode& node);
  /// The call with the window of its node, added to the block.
  Result<ExprPtr> AddWindow(WindowCall call, const ParseNode& node);
  /// An aggregate over the window of the node.
  Result<ExprPtr> AddWindow(AggregateFunction f, ExprPtr value, bool distinct, const SqlType& type, int position,
                            const ParseNode& node);
  Status BindWindowArguments(std::string_view name, const ParseNode& node, WindowCall* call);
  /// PARTITION BY, ORDER BY and the frame of OVER, or of an entry of WINDOW.
  Status BindWindowDefinition(const ParseNode& definition, WindowCall* call);
  /// The entry of WINDOW of that name, before the entry `before`.
  Result<const ParseNode*> FindWindow(std::string_view name, const ParseNode* before, int position) const;
  Result<ExprPtr> BindWindowKey(const ParseNode& node);
  Status BindFrame(const ParseNode& definition, WindowCall* call);
  Result<ExprPtr> BindFrameCount(const ParseNode& node, const char* mode, const char* which, int64_t* count);
  Result<ExprPtr> BindFrameRange(const ParseNode& node, const char* which, bool preceding, WindowCall* call);

  // bind_macro.cc
  Result<ExprPtr> BindMacro(const Macro& macro, const ParseNode& call);
  /// The parsed text of a macro over the arguments of the frame. All its nodes stand at `position`, those of arguments
  /// where they do.
  Result<ExprPtr> BindText(const MacroText& text, const MacroFrame& frame, int position);
  /// What a parameter of the macro stands for; nullptr: it is no name of one.
  Result<ExprPtr> BindMacroArgument(std::string_view name, int position);

  // composed_function.cc
  /// The SYNTAX row of functions.def, or nullptr.
  static const ComposedFunction* FindComposed(std::string_view name);
  /// A call of the row by an entry CALLED; nullptr if there is none for that number of arguments.
  Result<ExprPtr> BindCalled(const ComposedFunction& row, const ParseNode& call);
  /// The same by the others; nullptr if there is none for such arguments. Then `args` are as they were, except for the
  /// types of untyped constants.
  Result<ExprPtr> BindComposed(const ComposedFunction& row, std::vector<ExprPtr>* args, int position);
  Result<bool> TakesArguments(const ComposedEntry& entry, std::vector<ExprPtr>* args) const;
  Result<ExprPtr> CallComposed(const ComposedEntry& entry, std::string_view name, std::vector<ExprPtr>* args,
                               int position);

  // bind_composed.cc
  Result<ExprPtr> BindRandom(int position);
  Result<ExprPtr> BindRandomUuid(int position);
  Result<ExprPtr> BindVersion(int position);
  Result<ExprPtr> BindTypeOf(ExprPtr x, int position);
  Result<ExprPtr> BindEnumRange(ExprPtr x, int position);
  Result<ExprPtr> BindEnumFirst(ExprPtr x, int position);
  Result<ExprPtr> BindEnumLast(ExprPtr x, int position);
  Result<ExprPtr> BindHash(std::vector<ExprPtr> args, int position);
  /// NUM_NULLS and NUM_NONNULLS.
  Result<ExprPtr> BindNullCount(std::string_view name, std::vector<ExprPtr>* args, int position);
  Result<ExprPtr> BindIf(const ParseNode& call);
  Result<ExprPtr> BindTruncated(ExprPtr x, int position);
  /// STARTS_WITH, ENDS_WITH and CONTAINS.
  Result<ExprPtr> BindPartOf(std::string_view name, ExprPtr x, ExprPtr part, int position);
  Result<ExprPtr> BindConcatWithSeparator(std::vector<ExprPtr> args, int position);
  Result<ExprPtr> BindTextNumber(ExprPtr x, ExprPtr format, int position);
  Result<ExprPtr> BindFormat(std::string_view name, ExprPtr x, ExprPtr format, int position);
  Result<ExprPtr> BindByteForm(std::string_view name, std::vector<ExprPtr>* args, int position);
  Result<ExprPtr> BindSetSeed(ExprPtr x, int position);
  // bind_text_moment.cc
  /// TO_TIMESTAMP of seconds since 1970.
  Result<ExprPtr> BindEpoch(ExprPtr seconds, int position);
  /// STRPTIME, TRY_STRPTIME, TO_DATE and TO_TIMESTAMP of texts.
  Result<ExprPtr> BindTextMoment(std::string_view name, ExprPtr x, ExprPtr format, int position);
  class MomentOfText;
  // bind_composed.cc
  /// CURRENT_DATE and its kin.
  Result<ExprPtr> BindMoment(const ParseNode& node);
  // bind_interval.cc
  Result<ExprPtr> Part(Function part, const Expr& interval, int position);
  Result<ExprPtr> BindIntervalArithmetic(Function function, ExprPtr left, ExprPtr right, int position);
  /// moment + interval, or -; a DATE becomes a TIMESTAMP.
  Result<ExprPtr> AddInterval(ExprPtr moment, ExprPtr interval, bool negative, int position);
  Result<ExprPtr> BindAge(std::vector<ExprPtr> args, int position);
  Result<ExprPtr> BindIntervalField(std::string_view field, const Expr& interval, int position);
  /// The parts of SUM and AVG of intervals are aggregates of the block, or windows.
  Result<ExprPtr> BindDifferentIntervalsSum(bool mean, ExprPtr interval, const AggregateLeaf& leaf, int position);
  Result<ExprPtr> BindIntervalSum(bool mean, ExprPtr interval, const AggregateLeaf& leaf, int position);
  Result<const TimeZone*> BindZone(const ParseNode& node);
  Result<ExprPtr> BeginInZone(DateUnit unit, ExprPtr moment, const TimeZone& zone, int position);
  Result<ExprPtr> BindAtTimeZone(const ParseNode& call);
  /// A function of x and a time zone.
  Result<ExprPtr> InZone(Function function, const SqlType& type, ExprPtr x, const TimeZone& zone) const;
  Result<ExprPtr> Moment(TypeId type, int position) const;
  /// DATE 'yesterday' and its kin; nullptr if the text is none of these names, or the type no moment.
  Result<ExprPtr> BindNamedMoment(std::string_view text, const SqlType& type, int position) const;

  // bind_regex.cc
  /// ~, ~*, !~ and !~*.
  Result<ExprPtr> BindRegexOperator(std::string_view symbol, ExprPtr x, ExprPtr pattern, int position);
  Result<ExprPtr> BindSimilar(const ParseNode& node);
  /// TRIM and its kin of other characters than blanks: (x, characters).
  Result<ExprPtr> BindTrim(std::string_view name, std::vector<ExprPtr>* args, int position);
  /// REGEXP_... and SUBSTRING(x FROM pattern); nullptr if there is none for such arguments.
  Result<ExprPtr> BindRegexFunction(std::string_view name, std::vector<ExprPtr>* args, int position);
  Result<ExprPtr> BindMatch(ExprPtr x, ExprPtr pattern, int position);
  /// SUBSTRING(x SIMILAR pattern ESCAPE escape); nullptr if it is SUBSTRING(x, m, n).
  Result<ExprPtr> BindSimilarPart(std::string_view name, std::vector<ExprPtr>* args, int position);
  /// x GLOB pattern.
  Result<ExprPtr> BindGlob(const ParseNode& node);

  /// regexp_... of a pattern, or a replacement, that rows have.
  Result<ExprPtr> BindRegexOfRows(const RegexFunction& function, std::vector<ExprPtr> args, int position);
  Result<ExprPtr> Around(const std::string& before, ExprPtr pattern, const std::string& behind, int position);
  Result<ExprPtr> InForm(int64_t form, ExprPtr pattern, ExprPtr escape);
  Result<ExprPtr> MatchesPattern(ExprPtr x, ExprPtr pattern, bool negated, int position);

  // parameter_binder.cc
  /// $number of the statement itself.
  Result<ExprPtr> BindStatementParameter(size_t number, int position);
  /// Comparison(), where `l` and `r` are what was bound. The value of a parameter beside a column is held, if it may be.
  Result<ExprPtr> CompareHeld(Function function, const ParseNode& l, const ParseNode& r, ExprPtr left, ExprPtr right,
                              int position);
  /// The name of a unit of time, a constant text; nullptr: it is another expression. A parameter that has no value yet is
  /// a day.
  Result<ExprPtr> UnitName(const ParseNode& node);
  /// If `e` is a parameter without a type, this is it from now on. Errors: it has another one from another place.
  Status NoteParameter(const Expr& e, const SqlType& type) const;

  // bind_composed.cc
  /// format_type(oid, modifier).
  Result<ExprPtr> BindFormatType(ExprPtr oid, ExprPtr modifier, int position);
  /// Who runs the process.
  ExprPtr UserName(int position) const;

  // bind_printf.cc
  /// PRINTF and FORMAT; as BindComposed.
  Result<ExprPtr> BindPrintf(std::string_view name, std::vector<ExprPtr>* args, int position);
  Result<ExprPtr> Printed(ExprPtr x, std::string flags, int width, int precision, char conversion,
                          std::string_view name, int position);
  Result<ExprPtr> ShownByFormat(ExprPtr x, const PrintDirective& d, int at_format, int position);
  Result<ExprPtr> ShownByDirective(ExprPtr x, PrintDirective d, bool braces, std::string_view name, int at_format,
                                   int position);
  Result<ExprPtr> Pad(ExprPtr x, int width, char align, const std::string& fill, int position);

  // bind_made.cc
  Result<ExprPtr> BindWidthBucket(std::vector<ExprPtr> args, int position);
  Result<ExprPtr> BindMakeInterval(const ParseNode& call);
  Result<ExprPtr> BindMakeTime(std::vector<ExprPtr> args, int position);
  Result<ExprPtr> BindDateBin(std::string_view name, std::vector<ExprPtr>* args, int position);
  /// DATE_TRUNC of an interval.
  Result<ExprPtr> BeginOfInterval(DateUnit unit, const Expr& interval, int position);
  Result<ExprPtr> Micros(ExprPtr seconds, int position);

  // bind_date.cc
  Result<ExprPtr> BindDateTrunc(const ParseNode& call);
  Result<ExprPtr> BindDateDiff(const ParseNode& call);
  Result<ExprPtr> BindLastDay(ExprPtr x, int position);
  /// EXTRACT of a field that is made of others. REQUIRES: IsMadeField(field), x is a date or a timestamp.
  Result<ExprPtr> BindMadeField(std::string_view field, ExprPtr x, int position);
  /// The unit that a literal or a parameter names; `function` for the error.
  Result<DateUnit> BindUnit(const ParseNode& node, std::string_view function);
  /// The moment, in the type of x, at which the unit that has x begins.
  Result<ExprPtr> BeginOf(DateUnit unit, ExprPtr x, int position);
  Result<ExprPtr> BeginOfDays(DateUnit unit, ExprPtr date, int position);
  Result<ExprPtr> FieldOf(DateField field, const Expr& x, int position);
  Result<ExprPtr> WithNumber(std::string_view symbol, ExprPtr x, int64_t n, int position);
  Result<ExprPtr> AddNumber(Function function, ExprPtr moment, ExprPtr number, int position);
  Result<ExprPtr> SecondsToMoment(ExprPtr seconds, int position);
  Result<ExprPtr> Difference(ExprPtr x, ExprPtr y, int position);

  // bind_statistics.cc
  /// An aggregate that is made of others. REQUIRES: IsStatisticName(name).
  Result<ExprPtr> BindStatistic(std::string_view name, const ParseNode& node, const AggregateLeaf& leaf);
  class PairStatistic;
  Result<std::vector<ExprPtr>> BindStatisticNumbers(const std::string& called, size_t wanted, const ParseNode& node);
  /// A row's numbers are NULL unless all are there, and FILTER is true. They become doubles, unless all have exact moments.
  Status LeaveOutPairs(const std::string& called, const ParseNode& node, std::vector<ExprPtr>* numbers);

  // exact_moments.cc
  /// Whether sums of the squares of numbers of this type are exact for any count of rows: they have at most 32 bits.
  static bool HasExactMoments(const SqlType& type);
  class ExactMoments;
  /// The sum of products of differences from the means; the sum; var_samp and its kin: as doubles, from exact sums.
  /// REQUIRES: the numbers have exact moments, and are NULL in the same rows.
  Result<ExprPtr> BindExactProducts(const Expr& x, const Expr& y, const AggregateLeaf& leaf, int position);
  Result<ExprPtr> BindExactSum(const Expr& x, const AggregateLeaf& leaf, int position);
  Result<ExprPtr> BindExactVariance(AggregateFunction function, const Expr& x, const AggregateLeaf& leaf, int position);

  // bind_element.cc
  /// (string_to_array(x, y))[n] and its kin.
  Result<ExprPtr> BindElement(const ParseNode& node);

  // bind_row_aggregate.cc
  /// rank(x) WITHIN GROUP (ORDER BY y) and its kin. REQUIRES: IsHypotheticalName(name), WITHIN GROUP.
  Result<ExprPtr> BindHypothetical(std::string_view name, const ParseNode& node);
  Result<std::vector<ExprPtr>> HypotheticalRow(const std::string& called, const ParseNode& node,
                                               const std::vector<AggregateOrder>& order);
  Result<ExprPtr> PlaceBeside(const AggregateOrder& key, const Expr& x, bool peer, int position);
  Result<ExprPtr> RanksBefore(const std::vector<AggregateOrder>& order, const std::vector<ExprPtr>& row,
                              bool with_peers, int position);
  /// The argument of count((x, y)).
  Result<ExprPtr> BindCountedRow(const ParseNode& row, bool distinct);
  Result<ExprPtr> RowKey(std::vector<ExprPtr> items, int position);
  Result<ExprPtr> Only(ExprPtr condition, ExprPtr value, int position);

  // grouping_sets.cc
  Result<ExprPtr> BindGrouping(const ParseNode& node);

  // bind_type.cc
  Result<ExprPtr> BindCast(const ParseNode& node);

  // bind_try_cast.cc
  /// REQUIRES: x has a type, and there is a cast from it.
  Result<ExprPtr> BindTryCast(ExprPtr x, const SqlType& type, int position);
  /// CASE WHEN the text is one of the type THEN CAST(x) END, for BYTEA and enums.
  Result<ExprPtr> TryTextAs(ExprPtr x, const SqlType& type, int position);
  class CastCondition;

  // bind_interval.cc
  Result<ExprPtr> BindInterval(const ParseNode& type_name, ExprPtr text);

  BindContext* context_;
  const NameScope* scope_;
  Clause clause_;
  const std::vector<Output>* outputs_ = nullptr;
  int in_aggregate_ = 0;  ///< levels of aggregates around
  bool in_window_ = false;
  int may_skip_ = 0;  ///< above 0 inside operands that may not be evaluated for a row
  int in_and_ = 0;    ///< how many of these are operands of AND, which are not if another one is false
};

/// Whether the window function of that name is an aggregate, too, with WITHIN GROUP.
bool IsHypotheticalName(std::string_view name);

/// Whether an aggregate of that name needs all values of a group in order.
bool IsOrderedAggregate(std::string_view name);

/// What a comparison with a constant becomes when the constant takes the other side's type.
struct AlignedConstant {
  enum class Kind : uint8_t {
    kExact,   ///< x `function` value
    kAlways,  ///< true for every x that is not NULL
    kNever,   ///< false for every x that is not NULL
    kNone,    ///< none of these: the comparison needs a cast of x
  } kind = Kind::kNone;
  Function function = Function::kEq;
  Value value;
};
/// REQUIRES: both types are known, and the constant is not NULL. See types.def, "Comparisons".
AlignedConstant AlignConstant(Function function, const SqlType& type, const Value& constant);

Value IntervalOf(const Interval& v);

/// What `e` is ordered, compared and grouped by: of an INTERVAL its length, of others itself.
ExprPtr OrderedForm(ExprPtr e);

/// Splits a conjunction: appends to `out` what must be true. TRUE is dropped; FALSE and NULL become one FALSE.
void SplitConjuncts(ExprPtr e, std::vector<ExprPtr>* out);

}  // namespace tessera
