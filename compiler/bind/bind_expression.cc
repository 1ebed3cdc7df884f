// Binding expressions: names, constants, logic, CASE. Operators are in bind_operator.cc, functions in bind_function.cc,
// types and casts in bind_type.cc.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>

#include "base/interrupt.h"
#include "compiler/bind/array_binder.h"
#include "compiler/bind/array_text.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/bind/macro_call.h"
#include "compiler/bind/unreached_branch.h"
#include "compiler/parse/parser.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/query/fold.h"
#include "compiler/query/nearest_name.h"
#include "compiler/query/window_call.h"
#include "tablet/values/array_type.h"

namespace tessera {
namespace {

/// How many nodes copies of operands may have: they take a tenth of a second.
constexpr int64_t kMostCopies = 200'000;

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);

int64_t CountNodes(const Expr& e) {
  int64_t n = 1;
  for (const ExprPtr& a : e.args) n += CountNodes(*a);
  return n;
}

/// A number with as many digits as are written. Errors: more than DECIMAL has.
Result<Value> DecimalLiteral(std::string_view text) {
  std::string_view digits = text;
  if (!digits.empty() && digits[0] == '-') digits.remove_prefix(1);
  const size_t point = digits.find('.');
  std::string_view whole = digits.substr(0, point);
  const std::string_view fraction = point == std::string_view::npos ? std::string_view() : digits.substr(point + 1);
  while (!whole.empty() && whole[0] == '0') whole.remove_prefix(1);
  const size_t precision = std::max<size_t>(1, whole.size() + fraction.size());
  if (precision > 38) {
    const bool is_long = text.size() > 40;
    return SqlError(
        ErrorKind::kOutOfRange,
        "number " + std::string(text.substr(0, 40)) + (is_long ? "..." : "") + " is out of range: more than 38 digits",
        -1, "With an exponent, 1.5e0, it is a DOUBLE PRECISION.");
  }
  return ParseValue(text, SqlType::Decimal(static_cast<int>(precision), static_cast<int>(fraction.size())));
}

/// A number that is not a small integer.
Result<Value> NumberLiteral(std::string_view text) {
  if (text.find_first_of("eE") != std::string_view::npos) return ParseValue(text, SqlType::Of(TypeId::kDouble));
  if (text.find('.') == std::string_view::npos) {
    for (TypeId id : {TypeId::kInteger, TypeId::kBigint}) {
      Result<Value> value = ParseValue(text, SqlType::Of(id));
      if (value.ok()) return value;
    }
  }
  return DecimalLiteral(text);
}

/// The SQL name of a node that cannot be bound, for the error.
std::string FeatureName(const ParseNode& node) {
  struct Row {
    std::string_view tag, feature;
  };
  constexpr Row kRows[] = {
      {"A_Indirection", "a subscript or field selection"},
      {"CollateClause", "COLLATE"},
      {"XmlExpr", "XML"},
      {"XmlSerialize", "XML"},
      {"CurrentOfExpr", "CURRENT OF"},
      {"MultiAssignRef", "assignment of several columns"},
      {"JsonObjectConstructor", "JSON"},
  };
  if (node.Is(Tag::kRowExpr)) return "a row value";
  if (node.Is(Tag::kA_ArrayExpr)) return "ARRAY";
  if (node.Is(Tag::kSetToDefault)) return "DEFAULT here";
  if (node.Is(Tag::kA_Star)) return "* here";
  if (node.Is(Tag::kSQLValueFunction)) {
    std::string_view op = node.Text(Field::k_op);
    if (op.starts_with("SVFOP_")) op.remove_prefix(6);
    if (op.ends_with("_N")) op.remove_suffix(2);  // with a number of digits
    return std::string(op);
  }
  for (const Row& row : kRows) {
    if (row.tag == node.text()) return std::string(row.feature);
  }
  return "this expression (" + std::string(node.text()) + ")";
}

/// ARRAY[1, 2] of constants as a text; nullptr: it has others.
Result<ExprPtr> ConstantArray(ExpressionBinder* binder, const ParseNode& array) {
  std::vector<std::optional<std::string>> texts;
  std::vector<ExprPtr> values;
  if (const ParseNode* const elements = array.Get(Field::k_elements)) {
    for (const ParseNode& element : *elements) {
      TESSERA_ASSIGN(ExprPtr e, binder->Bind(element));
      if (!IsConstant(*e)) return ExprPtr();
      if (e->constant.null) {
        texts.emplace_back();
      } else {
        const bool is_flag = e->type.id == TypeId::kBoolean;
        texts.emplace_back(is_flag                       ? (e->constant.i64 != 0 ? "t" : "f")
                           : e->type.id == TypeId::kNull ? e->constant.text
                                                         : ToText(e->constant));
      }
      values.push_back(std::move(e));
    }
  }
  ExprPtr text = MakeConstant(Value::Text(ArrayText(texts)), array.FirstLocation());
  return ArrayBinder::WithType(std::move(text), ArrayBinder::TypeOfElements(values));
}

/// ... of CREATE SCHEMA.
bool IsSchema(std::string_view name, const BindContext& context) {
  return context.snapshot != nullptr && std::ranges::binary_search(context.snapshot->names.schemas, name);
}

bool IsSchemaName(std::string_view name) {
  return name == "public" || name == "main" || name == "information_schema" || name == "pg_catalog";
}

}  // namespace

/// Counts one level of nesting during its lifetime.
struct ExpressionBinder::Nesting {
  explicit Nesting(BindContext* counter) : context(counter) {
    context->deepest = std::max(context->deepest, ++context->nesting);
  }
  ~Nesting() { --context->nesting; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  BindContext* context;
};

Result<ExprPtr> ExpressionBinder::Bind(const ParseNode& node) {
  ThrowIfInterrupted();
  const Nesting nesting(context_);
  if (context_->nesting > kMaxNesting) return NestedTooDeeply(node.location());
  return BindNode(node);
}

Result<ExprPtr> ExpressionBinder::BindNode(const ParseNode& node) {
  switch (node.tag()) {
    case Tag::kColumnRef:
      return BindColumn(node);
    case Tag::kA_Const:
      return BindConstant(node);
    case Tag::kA_Expr:
      return BindOperator(node);
    case Tag::kBoolExpr:
      return BindLogic(node);
    case Tag::kA_Indirection:
      return BindElement(node);
    case Tag::kFuncCall:
      return BindFunction(node);
    case Tag::kTypeCast:
      return BindCast(node);
    case Tag::kNullTest:
      return BindNullTest(node);
    case Tag::kBooleanTest:
      return BindBooleanTest(node);
    case Tag::kCaseExpr:
      return BindCase(node);
    case Tag::kCoalesceExpr:
      return BindCoalesce(node);
    case Tag::kMinMaxExpr:
      return BindGreatest(node);
    case Tag::kSubLink:
      return BindSubquery(node);
    case Tag::kSQLValueFunction:
      return BindMoment(node);
    case Tag::kGroupingFunc:
      return BindGrouping(node);
    case Tag::kParamRef:
      return BindStatementParameter(static_cast<size_t>(node.Number(Field::k_number)), node.location());
    case Tag::kA_ArrayExpr: {
      TESSERA_ASSIGN(ExprPtr array, ConstantArray(this, node));
      if (array != nullptr) return array;
      std::vector<ExprPtr> elements;
      for (const ParseNode& element : *node.Get(Field::k_elements)) {
        if (IsArray(element)) {
          return Unsupported("an array of arrays is not supported", node.FirstLocation(), "Arrays have one dimension.");
        }
        TESSERA_ASSIGN(ExprPtr e, Bind(element));
        elements.push_back(std::move(e));
      }
      return ArrayBinder(context_, clause_).OfElements(std::move(elements), node.FirstLocation());
    }
    default:
      return NotSupported(node);
  }
}

Result<ExprPtr> ExpressionBinder::BindTyped(const ParseNode& node) {
  TESSERA_ASSIGN(ExprPtr e, Bind(node));
  return Resolve(std::move(e), SqlType::Text());
}

Result<ExprPtr> ExpressionBinder::BindBoolean(const ParseNode& node, const char* what) {
  TESSERA_ASSIGN(ExprPtr e, Bind(node));
  TESSERA_ASSIGN(e, Resolve(std::move(e), kBoolean));
  if (e->type.id != TypeId::kBoolean) {
    return SqlError(ErrorKind::kDatatypeMismatch,
                    std::string(what) + " must be type BOOLEAN, not type " + e->type.ToString(), e->position);
  }
  return e;
}

Status ExpressionBinder::NotSupported(const ParseNode& node) const {
  return Unsupported(FeatureName(node) + " is not supported", node.FirstLocation());
}

Result<ExprPtr> ExpressionBinder::Folded(ExprPtr e) const { return Fold(std::move(e), may_skip_ > 0); }

Result<ExprPtr> ExpressionBinder::Copy(const Expr& e) {
  context_->copied += CountNodes(e);
  if (context_->copied > kMostCopies) {
    return SqlError(ErrorKind::kTooComplex,
                    "expression is too large: operands that are used twice are nested too deeply", e.position);
  }
  return e.Clone();
}

// ---- Names

bool ExpressionBinder::IsNullable(const Relation& r, int column) {
  if (r.join == JoinKind::kLeft) return true;
  const auto c = static_cast<size_t>(column);
  if (r.query != nullptr) {
    bool nullable = r.query->outputs[c].expr->nullable;
    for (const auto& more : r.query->union_all) nullable = nullable || more->outputs[c].expr->nullable;
    return nullable;
  }
  if (r.table == nullptr) return true;
  const bool proved = c < r.table->statistics.size() && r.table->statistics[c].null_count == 0;
  return !r.table->schema.columns[c].not_null && !proved;
}

ExprPtr ExpressionBinder::Column(int relation, int column, int position) const {
  const Relation& r = (*context_->relations)[static_cast<size_t>(relation)];
  const bool nullable = IsNullable(r, column) || (context_->grouping != nullptr && context_->grouping->used);
  return MakeColumn(relation, column, r.column_types[static_cast<size_t>(column)], nullable, position);
}

const Dialect& ExpressionBinder::dialect() const {
  static const Dialect none;
  return context_->dialect != nullptr ? *context_->dialect : none;
}

Status ExpressionBinder::ColumnNotFound(std::string_view qualifier, std::string_view name, int position) const {
  if (clause_ == Clause::kDefault) {
    return SqlError(ErrorKind::kSyntax, "cannot use column reference in DEFAULT expression", position,
                    "GENERATED ALWAYS AS (...) STORED computes a column from others.");
  }
  std::string message = "column \"";
  if (!qualifier.empty()) message.append(qualifier).append(".");
  message.append(name).append("\" does not exist");
  std::vector<std::string_view> candidates;
  if (scope_ != nullptr) {
    for (const RangeVariable& v : scope_->variables) {
      if (!qualifier.empty() && v.alias != qualifier) continue;
      for (const ScopeColumn& c : v.columns) candidates.push_back(c.name);
    }
  }
  const std::string nearest = NearestName(name, candidates);
  return SqlError(ErrorKind::kUndefinedColumn, std::move(message), position,
                  nearest.empty() ? "" : "Perhaps you meant column \"" + nearest + "\".");
}

Result<const ScopeColumn*> ExpressionBinder::FindIn(const NameScope& scope, std::string_view qualifier,
                                                    std::string_view name, int position, bool* qualifier_found) {
  const std::vector<ScopeColumn>* columns = &scope.columns;
  *qualifier_found = qualifier.empty();
  if (!qualifier.empty()) {
    const auto same = [&](const RangeVariable& v) { return v.alias == qualifier; };
    const auto v = std::find_if(scope.variables.begin(), scope.variables.end(), same);
    if (v == scope.variables.end()) return nullptr;
    *qualifier_found = true;
    columns = &v->columns;
  }
  const ScopeColumn* found = nullptr;
  for (const ScopeColumn& c : *columns) {
    if (c.name != name) continue;
    if (found != nullptr)
      return SqlError(ErrorKind::kAmbiguousColumn, "column reference \"" + std::string(name) + "\" is ambiguous",
                      position);
    found = &c;
  }
  return found;
}

Result<ExprPtr> ExpressionBinder::FindOuter(std::string_view qualifier, std::string_view name, int position) const {
  int level = 1;
  for (const BindContext* block = context_; block->outer != nullptr; block = block->outer, ++level) {
    if (block->macro != nullptr) break;  // its text sees nothing of the call's
    if (block->outer_scope == nullptr) continue;
    bool qualifier_found = false;
    TESSERA_ASSIGN(const ScopeColumn* found, FindIn(*block->outer_scope, qualifier, name, position, &qualifier_found));
    if (found != nullptr) {
      const Relation& r = (*block->outer->relations)[static_cast<size_t>(found->relation)];
      ExprPtr e = MakeColumn(found->relation, found->column, r.column_types[static_cast<size_t>(found->column)],
                             IsNullable(r, found->column), position);
      e->kind = Expr::Kind::kOuter;
      e->index = level;
      return e;
    }
    if (qualifier_found && !qualifier.empty()) break;  // the nearest table of that name hides those further out
  }
  return ExprPtr();
}

Result<ExprPtr> ExpressionBinder::FindOutput(std::string_view name, int position) {
  if (outputs_ != nullptr && !in_aggregate_) {
    for (const Output& o : *outputs_) {
      if (o.name != name) continue;
      if (in_window_ && HasWindow(*o.expr))
        return SqlError(ErrorKind::kWindowing, "window function calls cannot be nested", position);
      return Copy(*o.expr);
    }
  }
  if (clause_ != Clause::kWhere || context_->clauses.targets == nullptr) return ExprPtr();
  std::vector<const ParseNode*>& active = context_->clauses.in_targets;
  for (const ParseNode& t : *context_->clauses.targets) {
    if (t.Text(Field::k_name) != name || std::find(active.begin(), active.end(), &t) != active.end()) continue;
    active.push_back(&t);
    Result<ExprPtr> e = Bind(*t.Get(Field::k_val));
    active.pop_back();
    return e.ok() ? Copy(**e) : std::move(e);
  }
  return ExprPtr();
}

Result<ExprPtr> ExpressionBinder::BindColumn(const ParseNode& node) {
  const int position = node.location();
  const ParseNode* fields = node.Get(Field::k_fields);
  for (const ParseNode& f : *fields) {
    if (f.Is(Tag::kA_Star)) return Unsupported("* here is not supported", position);
  }
  // schema.table.column is table.column: FROM has said that it is that schema's.
  const ParseNode* part = fields->first();
  const bool has_schema = fields->size() == 3 &&
                          (IsSchemaName(part->Text(Field::k_sval)) || IsSchema(part->Text(Field::k_sval), *context_));
  if (has_schema) part = part->next();
  const size_t count = fields->size() - (has_schema ? 1 : 0);
  if (count > 2) return Unsupported("a name with more than two parts is not supported", position);
  const std::string_view first = part->Text(Field::k_sval);
  const std::string_view qualifier = count == 2 ? first : std::string_view();
  const std::string_view name = count == 2 ? part->next()->Text(Field::k_sval) : first;

  int levels = 0;
  if (count == 1 && FrameOf(*context_, &levels) != nullptr) {
    TESSERA_ASSIGN(ExprPtr argument, BindMacroArgument(name, position));
    if (argument != nullptr) return argument;
  }
  bool qualifier_found = count == 1;
  if (scope_ != nullptr) {
    TESSERA_ASSIGN(const ScopeColumn* found, FindIn(*scope_, qualifier, name, position, &qualifier_found));
    if (found != nullptr) return Column(found->relation, found->column, position);
  }
  if (count == 1 && clause_ != Clause::kSelect && (!in_window_ || clause_ == Clause::kQualify)) {
    TESSERA_ASSIGN(ExprPtr output, FindOutput(name, position));
    if (output != nullptr) return output;
  }
  if (count == 1 || !qualifier_found) {
    TESSERA_ASSIGN(ExprPtr outer, FindOuter(qualifier, name, position));
    if (outer != nullptr) return outer;
  }
  if (count == 1 && (clause_ == Clause::kSelect || clause_ == Clause::kWhere)) {
    TESSERA_ASSIGN(ExprPtr output, FindOutput(name, position));
    if (output != nullptr) return output;
  }
  if (qualifier_found) return ColumnNotFound(qualifier, name, position);

  std::vector<std::string_view> aliases;
  if (scope_ != nullptr) {
    for (const RangeVariable& v : scope_->variables) {
      if (v.table == first) {
        return SqlError(ErrorKind::kUndefinedTable,
                        "invalid reference to FROM-clause entry for table \"" + std::string(first) + "\"", position,
                        "Perhaps you meant the table alias \"" + v.alias + "\".");
      }
      aliases.push_back(v.alias);
    }
  }
  for (const Relation& relation : *context_->relations) {
    if (relation.alias == first) {
      return SqlError(ErrorKind::kUndefinedTable,
                      "invalid reference to FROM-clause entry for table \"" + std::string(first) + "\"", position,
                      "There is an entry for table \"" + relation.alias +
                          "\", but it cannot be referenced from this part of the query.");
    }
  }
  for (const BindContext* block = context_->outer; block != nullptr; block = block->outer) {
    for (const Relation& relation : *block->relations) {
      if (relation.alias != first) continue;
      return SqlError(
          ErrorKind::kUndefinedTable, "invalid reference to FROM-clause entry for table \"" + std::string(first) + "\"",
          position,
          "A derived table sees the tables before it as LATERAL (SELECT ...), joined by an inner or LEFT JOIN.");
    }
  }
  const std::string nearest = NearestName(first, aliases);
  return SqlError(ErrorKind::kUndefinedTable, "missing FROM-clause entry for table \"" + std::string(first) + "\"",
                  position, nearest.empty() ? "" : "Perhaps you meant table \"" + nearest + "\".");
}

// ---- Constants

int64_t ExpressionBinder::IntegerOfConstant(std::string_view sql, const ParseNode& a_const) {
  const ParseNode* value = a_const.Get(Field::k_ival);
  const int64_t printed = value != nullptr ? value->Number(Field::k_ival) : 0;
  if (printed != 0 || a_const.location() < 0) return printed;
  // libpg_query folds -5 into one constant, and its JSON leaves out the value, as it does for 0. The location is that
  // of the first sign, so the number is read from the text again. Only signs, parentheses, blanks and comments can
  // stand before its digits.
  auto at = static_cast<size_t>(a_const.location());
  bool negative = false;
  while (at < sql.size()) {
    const char c = sql[at];
    if (c >= '0' && c <= '9') break;
    if (sql.substr(at, 2) == "--") {
      while (at < sql.size() && sql[at] != '\n') ++at;
    } else if (sql.substr(at, 2) == "/*") {
      int depth = 0;
      do {
        const std::string_view two = sql.substr(at, 2);
        const int step = two == "/*" ? 1 : (two == "*/" ? -1 : 0);
        depth += step;
        at += step != 0 ? 2 : 1;
      } while (depth > 0 && at < sql.size());
    } else {
      negative = negative != (c == '-');
      ++at;
    }
  }
  int64_t digits = 0;
  const Token number = NextToken(sql, std::min(at, sql.size()));
  const std::string plain = PlainNumber(sql.substr(number.begin, number.end - number.begin));
  std::from_chars(plain.data(), plain.data() + plain.size(), digits);
  return negative ? -digits : digits;
}

Result<ExprPtr> ExpressionBinder::BindConstant(const ParseNode& node) {
  const int position = node.location();
  if (node.Get(Field::k_isnull) != nullptr) return MakeNull({}, position);
  if (const ParseNode* s = node.Get(Field::k_sval)) {
    Value literal = Value::Text(std::string(s->Text(Field::k_sval)));
    literal.type = {};  // until its neighbour gives it one
    return MakeConstant(std::move(literal), position);
  }
  if (const ParseNode* b = node.Get(Field::k_boolval)) return MakeBoolean(b->Number(Field::k_boolval) != 0, position);
  if (const ParseNode* f = node.Get(Field::k_fval)) {
    Result<Value> value = NumberLiteral(f->Text(Field::k_fval));
    if (!value.ok()) return value.status().At(position);
    return MakeConstant(std::move(value).value(), position);
  }
  if (node.Get(Field::k_ival) == nullptr) return Unsupported("a bit string is not supported", position);
  return MakeConstant(Value::Int(SqlType::Of(TypeId::kInteger), IntegerOfConstant(context_->sql, node)), position);
}

// ---- Logic

Result<ExprPtr> ExpressionBinder::BindLogic(const ParseNode& node) {
  const std::string_view op = node.Text(Field::k_boolop);
  const ParseNode* list = node.Get(Field::k_args);
  std::vector<ExprPtr> args;
  if (op == "NOT_EXPR") {
    TESSERA_ASSIGN(ExprPtr x, BindBoolean(*list->first(), "argument of NOT"));
    args.push_back(std::move(x));
    return Folded(MakeFunction(Function::kNot, kBoolean, node.location(), std::move(args)));
  }
  const bool is_and = op == "AND_EXPR";
  ++may_skip_;
  in_and_ += is_and ? 1 : 0;
  for (const ParseNode& child : *list) {
    Result<ExprPtr> x = BindBoolean(child, is_and ? "argument of AND" : "argument of OR");
    if (!x.ok()) return x;
    args.push_back(std::move(x).value());
  }
  --may_skip_;
  in_and_ -= is_and ? 1 : 0;
  return Folded(MakeFunction(is_and ? Function::kAnd : Function::kOr, kBoolean, node.location(), std::move(args)));
}

Result<ExprPtr> ExpressionBinder::BindNullTest(const ParseNode& node) {
  const bool is_null = node.Text(Field::k_nulltesttype) == "IS_NULL";
  const ParseNode& arg = *node.Get(Field::k_arg);
  if (arg.Is(Tag::kRowExpr))
    return BindRowNullTest(arg, is_null ? Function::kIsNull : Function::kIsNotNull, node.location());
  TESSERA_ASSIGN(ExprPtr x, BindTyped(arg));
  return Folded(MakeFunction(is_null ? Function::kIsNull : Function::kIsNotNull, kBoolean, node.location(),
                             ExprList(std::move(x))));
}

Result<ExprPtr> ExpressionBinder::BindBooleanTest(const ParseNode& node) {
  const std::string_view test = node.Text(Field::k_booltesttype);
  const int position = node.location();
  TESSERA_ASSIGN(ExprPtr x, BindBoolean(*node.Get(Field::k_arg), "argument of IS"));
  if (test == "IS_UNKNOWN" || test == "IS_NOT_UNKNOWN") {
    const Function f = test == "IS_UNKNOWN" ? Function::kIsNull : Function::kIsNotNull;
    return Folded(MakeFunction(f, kBoolean, position, ExprList(std::move(x))));
  }
  if (test == "IS_FALSE" || test == "IS_NOT_FALSE") {
    TESSERA_ASSIGN(x, Folded(MakeFunction(Function::kNot, kBoolean, position, ExprList(std::move(x)))));
  }
  const bool plain = test == "IS_TRUE" || test == "IS_FALSE";
  if (!x->nullable) {
    if (plain) return x;
    return Folded(MakeFunction(Function::kNot, kBoolean, position, ExprList(std::move(x))));
  }
  return Folded(MakeFunction(Function::kCase, kBoolean, position,
                             ExprList(std::move(x), MakeBoolean(plain, position), MakeBoolean(!plain, position))));
}

// ---- CASE and its kin

Status ExpressionBinder::Unify(std::vector<ExprPtr*> branches, const char* what, SqlType* type) {
  SqlType common;
  for (ExprPtr* b : branches) {
    const std::optional<SqlType> both = UnifyTypes(common, (*b)->type);
    if (!both) {
      return SqlError(
          ErrorKind::kDatatypeMismatch,
          std::string(what) + " types " + common.ToString() + " and " + (*b)->type.ToString() + " cannot be matched",
          (*b)->position);
    }
    common = *both;
  }
  if (common.id == TypeId::kNull) common = SqlType::Text();
  // If all are literals, or a literal is longer than VARCHAR(n), the common type has no length.
  if (common.id == TypeId::kText) common.length = 0;
  for (ExprPtr* b : branches) {
    Result<ExprPtr> e = Coerce(std::move(*b), common, CastContext::kExplicit);
    if (!e.ok()) return e.status();
    *b = std::move(e).value();
  }
  *type = common;
  return {};
}

Result<ExprPtr> ExpressionBinder::MakeCase(std::vector<ExprPtr> args, int position) {
  SqlType type;
  std::vector<ExprPtr*> branches;
  for (size_t i = 1; i < args.size(); i += 2) branches.push_back(&args[i]);
  branches.push_back(&args.back());
  ++may_skip_;
  const Status status = Unify(branches, "CASE", &type);
  --may_skip_;
  if (!status.ok()) return status;
  return Folded(MakeFunction(Function::kCase, type, position, std::move(args)));
}

Result<ExprPtr> ExpressionBinder::BindCase(const ParseNode& node) {
  const int position = node.location();
  ExprPtr subject;
  if (const ParseNode* arg = node.Get(Field::k_arg)) {
    TESSERA_ASSIGN(subject, BindTyped(*arg));
  }
  std::vector<ExprPtr> args;
  ++may_skip_;
  for (const ParseNode& when : *node.Get(Field::k_args)) {
    const ParseNode& condition = *when.Get(Field::k_expr);
    if (subject != nullptr) {
      TESSERA_ASSIGN(ExprPtr value, Bind(condition));
      ExprPtr x;
      // The last WHEN may take the subject itself instead of a copy.
      if (when.next() == nullptr) {
        x = std::move(subject);
      } else {
        TESSERA_ASSIGN(x, Copy(*subject));
      }
      const int at = value->position;
      TESSERA_ASSIGN(ExprPtr equal, Comparison(Function::kEq, std::move(x), std::move(value), at));
      args.push_back(std::move(equal));
    } else {
      TESSERA_ASSIGN(ExprPtr x, BindBoolean(condition, "argument of CASE/WHEN"));
      args.push_back(std::move(x));
    }
    const ParseNode& branch = *when.Get(Field::k_result);
    const bool is_unreached =
        branch.Is(Tag::kSubLink) && context_->relations != nullptr && IsNeverTrue(*args.back(), *context_->relations);
    std::optional<UnreachedBranch> unreached;
    if (is_unreached) unreached.emplace();
    TESSERA_ASSIGN(ExprPtr result, Bind(branch));
    args.push_back(is_unreached ? MakeNull(StoredType(result->type), result->position) : std::move(result));
  }
  if (const ParseNode* otherwise = node.Get(Field::k_defresult)) {
    TESSERA_ASSIGN(ExprPtr e, Bind(*otherwise));
    args.push_back(std::move(e));
  } else {
    args.push_back(MakeNull({}, position));
  }
  --may_skip_;
  return MakeCase(std::move(args), position);
}

Result<ExprPtr> ExpressionBinder::BindCoalesce(const ParseNode& node) {
  const int position = node.location();
  std::vector<ExprPtr> values;
  ++may_skip_;
  for (const ParseNode& child : *node.Get(Field::k_args)) {
    TESSERA_ASSIGN(ExprPtr e, Bind(child));
    values.push_back(std::move(e));
  }
  SqlType type;
  std::vector<ExprPtr*> branches;
  for (ExprPtr& v : values) branches.push_back(&v);
  TESSERA_TRY(Unify(branches, "COALESCE", &type));
  --may_skip_;
  std::vector<ExprPtr> args;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i + 1 < values.size()) {
      TESSERA_ASSIGN(ExprPtr x, Copy(*values[i]));
      TESSERA_ASSIGN(ExprPtr test,
                     Folded(MakeFunction(Function::kIsNotNull, kBoolean, position, ExprList(std::move(x)))));
      args.push_back(std::move(test));
    }
    args.push_back(std::move(values[i]));
  }
  const bool nullable = args.back()->nullable;
  TESSERA_ASSIGN(ExprPtr e, Folded(MakeFunction(Function::kCase, type, position, std::move(args))));
  // A branch is taken only if it is not NULL.
  if (IsFunction(*e, Function::kCase)) e->nullable = nullable;
  return e;
}

/// GREATEST(a, b, c): the first argument that is not NULL and not less than any argument after it. It is the greatest
/// of all, because each argument before it was less than one after. NULLs are skipped, as in PostgreSQL.
Result<ExprPtr> ExpressionBinder::BindGreatest(const ParseNode& node) {
  const int position = node.location();
  const bool greatest = node.Text(Field::k_op) == "IS_GREATEST";
  std::vector<ExprPtr> values;
  for (const ParseNode& child : *node.Get(Field::k_args)) {
    TESSERA_ASSIGN(ExprPtr e, Bind(child));
    values.push_back(std::move(e));
  }
  SqlType type;
  std::vector<ExprPtr*> branches;
  for (ExprPtr& v : values) branches.push_back(&v);
  TESSERA_TRY(Unify(branches, greatest ? "GREATEST" : "LEAST", &type));
  std::vector<ExprPtr> args;
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    std::vector<ExprPtr> all;
    TESSERA_ASSIGN(ExprPtr x, Copy(*values[i]));
    TESSERA_ASSIGN(ExprPtr present,
                   Folded(MakeFunction(Function::kIsNotNull, kBoolean, position, ExprList(std::move(x)))));
    all.push_back(std::move(present));
    for (size_t j = i + 1; j < values.size(); ++j) {
      TESSERA_ASSIGN(ExprPtr a, Copy(*values[i]));
      TESSERA_ASSIGN(ExprPtr b, Copy(*values[j]));
      TESSERA_ASSIGN(ExprPtr c, Copy(*values[j]));
      TESSERA_ASSIGN(ExprPtr better,
                     Comparison(greatest ? Function::kGe : Function::kLe, std::move(a), std::move(b), position));
      TESSERA_ASSIGN(ExprPtr absent,
                     Folded(MakeFunction(Function::kIsNull, kBoolean, position, ExprList(std::move(c)))));
      TESSERA_ASSIGN(ExprPtr either, Folded(MakeFunction(Function::kOr, kBoolean, position,
                                                         ExprList(std::move(better), std::move(absent)))));
      all.push_back(std::move(either));
    }
    TESSERA_ASSIGN(ExprPtr when, Folded(MakeFunction(Function::kAnd, kBoolean, position, std::move(all))));
    args.push_back(std::move(when));
    args.push_back(std::move(values[i]));
  }
  args.push_back(std::move(values.back()));
  return Folded(MakeFunction(Function::kCase, type, position, std::move(args)));
}

// ---- Conjunctions

void SplitConjuncts(ExprPtr e, std::vector<ExprPtr>* out) {
  if (IsFunction(*e, Function::kAnd)) {
    for (ExprPtr& a : e->args) SplitConjuncts(std::move(a), out);
    return;
  }
  if (IsBoolean(*e, true)) return;
  // Where only "is true" matters, x IS TRUE is x.
  if (IsFunction(*e, Function::kCase) && e->args.size() == 3 && IsBoolean(*e->args[1], true) &&
      IsBoolean(*e->args[2], false)) {
    SplitConjuncts(std::move(e->args[0]), out);
    return;
  }
  if (IsBoolean(*e, false) || IsNullConstant(*e)) {
    out->clear();
    out->push_back(MakeBoolean(false, e->position));
    return;
  }
  if (out->size() == 1 && IsBoolean(*(*out)[0], false)) return;
  out->push_back(std::move(e));
}

}  // namespace tessera
