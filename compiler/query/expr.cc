// Bound expressions: making, copying, comparing and printing them. The recursions are as deep as the expression; the
// binder limits that.
#include <algorithm>
#include <string>

#include "compiler/query/bound_query.h"
#include "compiler/query/expr_builder.h"

namespace tessera {
namespace {

/// Whether the value may be NULL, given the arguments.
bool IsNullable(Function function, const std::vector<ExprPtr>& args) {
  const auto nullable = [](const ExprPtr& e) { return e->nullable; };
  switch (Info(function).nulls) {
    case NullRule::kNever:
      return false;
    case NullRule::kMaybe:
      return true;
    case NullRule::kDivision: {
      // Only a constant proves that the divisor is not 0. A constant NULL is nullable itself.
      const Expr& divisor = *args[1];
      const Value& v = divisor.constant;
      return !IsConstant(divisor) || v.null || (v.i64 == 0 && v.wide == 0 && v.f64 == 0) || args[0]->nullable;
    }
    case NullRule::kBranches:
      for (size_t i = 1; i < args.size(); i += 2) {
        if (args[i]->nullable) return true;
      }
      return args.back()->nullable;
    case NullRule::kStrict:
    case NullRule::kOwn:
      break;
  }
  return std::any_of(args.begin(), args.end(), nullable);
}

bool SameValue(const Value& a, const Value& b) {
  if (a.type != b.type || a.null != b.null) return false;
  if (a.null) return true;
  switch (a.type.storage()) {
    case StorageClass::kInt:
      return a.i64 == b.i64 && a.wide == b.wide;  // an interval uses both
    case StorageClass::kFloat:
      return std::bit_cast<int64_t>(a.f64) == std::bit_cast<int64_t>(b.f64);
    case StorageClass::kWide:
      return a.wide == b.wide;
    case StorageClass::kText:
      return a.text == b.text;
  }
  return false;
}

using Names = std::vector<std::vector<std::string>>;

void Print(const Expr& e, const Names& names, int outer, std::string* out);

void PrintList(const std::vector<ExprPtr>& args, size_t from, const Names& names, std::string* out) {
  for (size_t i = from; i < args.size(); ++i) {
    if (i > from) out->append(", ");
    Print(*args[i], names, 0, out);
  }
}

void PrintConstant(const Value& v, std::string* out) {
  if (v.null) {
    out->append("NULL");
    return;
  }
  const TypeId id = v.type.id;
  const bool quoted = v.type.IsQuoted();
  if (quoted && id != TypeId::kText && id != TypeId::kNull) out->append(v.type.ToString() + " ");
  const std::string text = id == TypeId::kNull ? v.text : ToText(v);
  if (!quoted) {
    out->append(text);
    return;
  }
  out->push_back('\'');
  for (char c : text) {
    if (c == '\'') out->push_back('\'');
    out->push_back(c);
  }
  out->push_back('\'');
}

/// Functions with a notation of their own.
void PrintOwn(const Expr& e, const Names& names, std::string* out) {
  switch (e.function) {
    case Function::kIn:
      Print(*e.args[0], names, 5, out);
      out->append(" IN (");
      PrintList(e.args, 1, names, out);
      out->push_back(')');
      break;
    case Function::kCase:
      out->append("CASE");
      for (size_t i = 0; i + 1 < e.args.size(); i += 2) {
        out->append(" WHEN ");
        Print(*e.args[i], names, 0, out);
        out->append(" THEN ");
        Print(*e.args[i + 1], names, 0, out);
      }
      if (!IsNullConstant(*e.args.back())) {
        out->append(" ELSE ");
        Print(*e.args.back(), names, 0, out);
      }
      out->append(" END");
      break;
    case Function::kCast:
    case Function::kTryCast:
      out->append(e.function == Function::kCast ? "CAST(" : "TRY_CAST(");
      Print(*e.args[0], names, 0, out);
      out->append(" AS ");
      out->append(e.type.ToString());
      out->push_back(')');
      break;
    case Function::kExtract:
      out->append("EXTRACT(");
      for (const char* c = NameOf(e.field); *c != 0; ++c) out->push_back(static_cast<char>(*c - 'a' + 'A'));
      out->append(" FROM ");
      Print(*e.args[0], names, 0, out);
      out->push_back(')');
      break;
    default:
      out->append("?");
      break;
  }
}

void PrintFunction(const Expr& e, const Names& names, int outer, std::string* out) {
  const FunctionInfo& info = Info(e.function);
  if (info.notation == Notation::kCall) {
    out->append(info.text);
    out->push_back('(');
    PrintList(e.args, 0, names, out);
    out->push_back(')');
    return;
  }
  const bool parentheses = info.binding <= outer;
  if (parentheses) out->push_back('(');
  switch (info.notation) {
    case Notation::kInfix: {
      const bool logic = info.translation == Translation::kJunction;
      for (size_t i = 0; i < e.args.size(); ++i) {
        if (i > 0) {
          out->push_back(' ');
          out->append(info.text);
          out->push_back(' ');
        }
        // Left-associative: the first operand needs no parentheses around an operator of the same rank.
        Print(*e.args[i], names, i == 0 && !logic && info.binding > 4 ? info.binding - 1 : info.binding, out);
      }
      break;
    }
    case Notation::kPrefix:
      out->append(info.text);
      // A word is followed by a blank. "--" would start a comment.
      if (info.text[0] >= 'A' || IsFunction(*e.args[0], e.function)) out->push_back(' ');
      Print(*e.args[0], names, info.binding, out);
      break;
    case Notation::kPostfix:
      Print(*e.args[0], names, info.binding + 1, out);
      out->push_back(' ');
      out->append(info.text);
      break;
    case Notation::kCall:
    case Notation::kOwn:
      PrintOwn(e, names, out);
      break;
  }
  if (parentheses) out->push_back(')');
}

/// `outer`: how tightly the operator around binds; 0 for none.
void Print(const Expr& e, const Names& names, int outer, std::string* out) {
  switch (e.kind) {
    case Expr::Kind::kColumn: {
      const auto r = static_cast<size_t>(e.relation), c = static_cast<size_t>(e.column);
      if (e.column == kMarkColumn) {
        out->append("match " + std::to_string(e.relation));
      } else if (r < names.size() && c < names[r].size()) {
        out->append(names[r][c]);
      } else {
        out->append("column " + std::to_string(e.relation) + "." + std::to_string(e.column));
      }
      break;
    }
    case Expr::Kind::kConstant:
    case Expr::Kind::kParameter:
      PrintConstant(e.constant, out);
      break;
    case Expr::Kind::kGroup:
      out->append("group key " + std::to_string(e.index));
      break;
    case Expr::Kind::kAggregate:
      out->append("aggregate " + std::to_string(e.index));
      break;
    case Expr::Kind::kWindow:
      out->append("window " + std::to_string(e.index));
      break;
    case Expr::Kind::kOuter:
    case Expr::Kind::kSubquery:
      out->append("subquery");
      break;
    case Expr::Kind::kFunction:
      PrintFunction(e, names, outer, out);
      break;
  }
}

}  // namespace

ExprPtr MakeColumn(int relation, int column, const SqlType& type, bool nullable, int position) {
  auto e = std::make_unique<Expr>();
  e->kind = Expr::Kind::kColumn;
  e->type = type;
  e->nullable = nullable;
  e->position = position;
  e->relation = relation;
  e->column = column;
  return e;
}

ExprPtr MakeConstant(Value value, int position) {
  auto e = std::make_unique<Expr>();
  e->kind = Expr::Kind::kConstant;
  e->type = value.type;
  e->nullable = value.null;
  e->position = position;
  e->constant = std::move(value);
  return e;
}

ExprPtr MakeBoolean(bool value, int position) {
  return MakeConstant(Value::Int(SqlType::Of(TypeId::kBoolean), value ? 1 : 0), position);
}

ExprPtr MakeNull(const SqlType& type, int position) { return MakeConstant(Value::Null(type), position); }

ExprPtr MakeFunction(Function function, const SqlType& type, int position, std::vector<ExprPtr> args) {
  auto e = std::make_unique<Expr>();
  e->kind = Expr::Kind::kFunction;
  e->type = type;
  e->nullable = IsNullable(function, args);
  e->position = position;
  e->function = function;
  e->args = std::move(args);
  return e;
}

ExprPtr MakeCast(ExprPtr x, const SqlType& type) {
  if (x->type == type) return x;
  const int position = x->position;
  return MakeFunction(Function::kCast, type, position, ExprList(std::move(x)));
}

ExprPtr Expr::Clone() const {
  auto e = std::make_unique<Expr>();
  e->kind = kind;
  e->type = type;
  e->nullable = nullable;
  e->position = position;
  e->relation = relation;
  e->column = column;
  e->index = index;
  e->function = function;
  e->field = field;
  if (kind == Kind::kConstant || kind == Kind::kParameter) e->constant = constant;
  e->subquery = subquery;
  e->args.reserve(args.size());
  for (const ExprPtr& a : args) e->args.push_back(a->Clone());
  return e;
}

bool Expr::SameAs(const Expr& other) const {
  if (kind != other.kind || type != other.type) return false;
  switch (kind) {
    case Kind::kColumn:
      return relation == other.relation && column == other.column;
    case Kind::kGroup:
    case Kind::kAggregate:
    case Kind::kWindow:
    case Kind::kParameter:
      return index == other.index;
    case Kind::kOuter:
      return relation == other.relation && column == other.column && index == other.index;
    case Kind::kSubquery:
      return subquery == other.subquery;
    case Kind::kConstant:
      return SameValue(constant, other.constant);
    case Kind::kFunction:
      break;
  }
  if (function != other.function || args.size() != other.args.size()) return false;
  if (function == Function::kExtract && field != other.field) return false;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i]->SameAs(*other.args[i])) return false;
  }
  return true;
}

std::string Expr::ToString(const std::vector<std::vector<std::string>>& names) const {
  std::string out;
  Print(*this, names, 0, &out);
  return out;
}

}  // namespace tessera
