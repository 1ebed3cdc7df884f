// Binding functions of lists in FROM: string_to_table, regexp_split_to_table, unnest of ARRAY[...] and of a text that is
// split. As for a series, one row is repeated and numbered; its value is the part of that number.
#include <algorithm>
#include <string>
#include <utility>

#include "compiler/bind/array_binder.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/bind/from_binder.h"
#include "compiler/parse/called_name.h"
#include "compiler/parse/parser.h"
#include "compiler/query/correlation.h"
#include "compiler/query/fold.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/subquery_expr.h"
#include "compiler/query/type_rules.h"
#include "tablet/values/array_type.h"
#include "vm/meaning/regex.h"

namespace tessera {
namespace {

const SqlType kBoolean = SqlType::Of(TypeId::kBoolean);
const SqlType kInteger = SqlType::Of(TypeId::kInteger);
const SqlType kBigint = SqlType::Of(TypeId::kBigint);
const SqlType kText = SqlType::Text();

/// Levels of nesting that the blocks count as, as those of a series.
constexpr int kLevels = 12;
constexpr size_t kMostElements = 256;
/// Stands between the parts of a text where a regular expression matched: U+FFFF, which is no character.
constexpr const char* kBetween = "\xEF\xBF\xBF";

struct Split {
  std::string_view name;
  bool regex;
  bool empty_is_none;  ///< an empty text has no parts, else one
};
constexpr Split kSplits[] = {
    {"string_to_table", false, true},      {"string_to_array", false, true}, {"string_split", false, false},
    {"str_split", false, false},           {"split", false, false},          {"regexp_split_to_table", true, false},
    {"regexp_split_to_array", true, false}};
/// Another text is an array.
constexpr Split kArray = {"unnest", false, true};

const Split* FindSplit(std::string_view name) {
  const auto* s = std::find_if(std::begin(kSplits), std::end(kSplits), [&](const Split& x) { return x.name == name; });
  return s == std::end(kSplits) ? nullptr : s;
}

ExprPtr Text(const char* s, int position) { return MakeConstant(Value::Text(s), position); }
ExprPtr Number(int64_t n, int position) { return MakeConstant(Value::Int(kInteger, n), position); }
Result<ExprPtr> Call(Function f, const SqlType& type, std::vector<ExprPtr> args) {
  const int position = args[0]->position;
  return Fold(MakeFunction(f, type, position, std::move(args)), false);
}

/// The text with kBetween where the pattern matches.
Result<ExprPtr> WithParted(std::string_view name, ExprPtr text, ExprPtr pattern, int position) {
  if (!IsConstant(*pattern))
    return Unsupported(std::string(name) + " with a pattern that is not a constant is not supported",
                       pattern->position);
  const vm::Regex regex(pattern->constant.text);
  if (!regex.error().empty())
    return SqlError("invalid regular expression: " + regex.error(), pattern->position, "The syntax is that of RE2.");
  if (regex.Matches("")) {
    return Unsupported(std::string(name) + " by a pattern that matches an empty text is not supported",
                       pattern->position, "Write a + for a *.");
  }
  return Call(Function::kRegexReplace, kText,
              ExprList(std::move(text), std::move(pattern), Text(kBetween, position), Number(1, position)));
}

/// The value of a part of an array of that type.
Result<ExprPtr> ElementValue(ExprPtr part, const SqlType& array, BindContext* context) {
  const int position = part->position;
  const ArrayBinder arrays(context, Clause::kValues);
  TESSERA_ASSIGN(part, arrays.Value(std::move(part), position));
  return arrays.AsElement(std::move(part), array);
}

}  // namespace

Result<ExprPtr> CountParts(const Expr& x, const Expr& delimiter, bool empty_is_none) {
  const int position = x.position;
  TESSERA_ASSIGN(ExprPtr rest,
                 Call(Function::kReplace, kText, ExprList(x.Clone(), delimiter.Clone(), Text("", position))));
  TESSERA_ASSIGN(ExprPtr all, Call(Function::kOctetLength, kInteger, ExprList(x.Clone())));
  TESSERA_ASSIGN(rest, Call(Function::kOctetLength, kInteger, ExprList(std::move(rest))));
  TESSERA_ASSIGN(ExprPtr one, Call(Function::kOctetLength, kInteger, ExprList(delimiter.Clone())));
  TESSERA_ASSIGN(ExprPtr count, Call(Function::kSub, kInteger, ExprList(std::move(all), std::move(rest))));
  TESSERA_ASSIGN(count, Call(Function::kDiv, kInteger, ExprList(std::move(count), std::move(one))));
  TESSERA_ASSIGN(count, Call(Function::kAdd, kInteger, ExprList(std::move(count), Number(1, position))));
  std::vector<ExprPtr> branches;
  for (const auto& [e, n] : {std::pair(&x, 0), std::pair(&delimiter, 0)}) {
    TESSERA_ASSIGN(ExprPtr missing, Call(Function::kIsNull, kBoolean, ExprList(e->Clone())));
    branches.push_back(std::move(missing));
    branches.push_back(Number(n, position));
  }
  if (empty_is_none) {
    TESSERA_ASSIGN(ExprPtr empty, Call(Function::kEq, kBoolean, ExprList(x.Clone(), Text("", position))));
    branches.push_back(std::move(empty));
    branches.push_back(Number(0, position));
  }
  TESSERA_ASSIGN(ExprPtr none, Call(Function::kEq, kBoolean, ExprList(delimiter.Clone(), Text("", position))));
  branches.push_back(std::move(none));
  branches.push_back(Number(1, position));
  branches.push_back(std::move(count));
  TESSERA_ASSIGN(ExprPtr parts, Call(Function::kCase, kInteger, std::move(branches)));
  return Fold(MakeCast(std::move(parts), kBigint), false);
}

bool IsUnnested(std::string_view name) {
  return name == "unnest" || name == "pg_partition_ancestors" || name == "string_to_table" ||
         name == "regexp_split_to_table";
}

namespace {

/// The values of which a call makes rows.
struct ValueList {
  const ParseNode* values = nullptr;
  const Split* split = nullptr;  ///< the first value is split; nullptr: each is a row
  bool is_none = false;          ///< no table is a partition of another: the rows of an empty array
};

Result<ValueList> ListOf(const ParseNode& call, const std::string& name) {
  const int position = call.location();
  ValueList list{call.Get(Field::k_args), FindSplit(name), name == "pg_partition_ancestors"};
  if (list.is_none) list.split = &kArray;
  if (name == "unnest") {
    const ParseNode* const array = list.values != nullptr && list.values->size() == 1 ? list.values->first() : nullptr;
    if (array == nullptr) return Unsupported("unnest of several arrays is not supported", position);
    list.split = array->Is(Tag::kFuncCall) ? FindSplit(CalledName(*array)) : nullptr;
    const bool written = array->Is(Tag::kA_ArrayExpr);
    if (list.split == nullptr && !written) {
      list.split = &kArray;
    } else {
      list.values = array->Get(written ? Field::k_elements : Field::k_args);
    }
  }
  if (list.values == nullptr) return Unsupported(name + " of nothing is not supported", position);
  if (list.values->size() > kMostElements)
    return Unsupported(name + " of more than 256 values is not supported", position, "VALUES makes rows.");
  return list;
}

/// Values of one type, `*type`. `*array`: that of the array that they are, or that the first one is.
Result<std::vector<ExprPtr>> BindValues(const ValueList& list, ExpressionBinder* binder, SqlType* type,
                                        SqlType* array) {
  std::vector<ExprPtr> values;
  *type = SqlType::Of(TypeId::kNull);
  for (const ParseNode& node : *list.values) {
    TESSERA_ASSIGN(ExprPtr e, binder->Bind(node));
    if (list.is_none) e = Text("{}", e->position);
    if (list.split != nullptr) {
      TESSERA_ASSIGN(e, binder->Resolve(std::move(e), kText));
    }
    const std::optional<SqlType> both = UnifyTypes(*type, e->type);
    if (!both || (list.split != nullptr && e->type.id != TypeId::kText)) {
      return SqlError(list.split != nullptr
                          ? std::string(list.split->name) + " takes texts"
                          : "ARRAY types " + type->ToString() + " and " + e->type.ToString() + " cannot be matched",
                      e->position);
    }
    *type = *both;
    values.push_back(std::move(e));
  }
  *array = type->id == TypeId::kNull || IsArrayType(*type) ? std::exchange(*type, kText) : *type;
  for (ExprPtr& e : values) {
    TESSERA_ASSIGN(e, binder->Resolve(std::move(e), *type));
    TESSERA_ASSIGN(e, binder->Coerce(std::move(e), *type, CastContext::kExplicit));
  }
  return values;
}

/// Makes the values a text and what stands between its parts, and maybe the part that is NULL. Returns how many parts there are.
Result<ExprPtr> SplitFirst(const Split& split, std::vector<ExprPtr>* values, int position) {
  std::vector<ExprPtr>& v = *values;
  const bool has_null = !split.regex && v.size() == 3;
  if (v.size() != 2 && !has_null) {
    return SqlError("function " + std::string(split.name) + " does not take " + std::to_string(v.size()) + " arguments",
                    position, "It takes a text and what stands between its parts.");
  }
  ExprPtr& between = v[1];
  if (IsConstant(*between) && between->constant.null)
    return Unsupported(std::string(split.name) + " by NULL is not supported", between->position);
  if (split.regex) {
    TESSERA_ASSIGN(v[0], WithParted(split.name, std::move(v[0]), std::move(between), position));
    between = Text(kBetween, position);
  }
  return CountParts(*v[0], *between, split.empty_is_none);
}

/// One of the values by its number. `column`: makes the column of a value, from 0.
template <class F>
ExprPtr ValueOfNumber(int count, const Expr& number, const SqlType& type, const F& column) {
  if (count == 1) return column(0);
  const int position = number.position;
  std::vector<ExprPtr> branches;
  for (int i = 0; i + 1 < count; ++i) {
    ExprPtr at = MakeConstant(Value::Int(kBigint, i + 1), position);
    branches.push_back(MakeFunction(Function::kEq, kBoolean, position, ExprList(number.Clone(), std::move(at))));
    branches.push_back(column(i));
  }
  branches.push_back(column(count - 1));
  return MakeFunction(Function::kCase, type, position, std::move(branches));
}

/// A part of the text by its number; NULL, if it is the text of `column(2)`.
template <class F>
ExprPtr PartOfNumber(int count, const Expr& number, const F& column) {
  const int position = number.position;
  ExprPtr part = MakeFunction(Function::kSplitPart, kText, position, ExprList(column(0), column(1), number.Clone()));
  if (count < 3) return part;
  ExprPtr equal = MakeFunction(Function::kEq, kBoolean, position, ExprList(part->Clone(), column(2)));
  return MakeFunction(Function::kCase, kText, position,
                      ExprList(std::move(equal), MakeNull(kText, position), std::move(part)));
}

}  // namespace

Status FromBinder::BindUnnest(const ParseNode& item, const ParseNode& call, const std::string& name, NameScope* scope) {
  const int position = call.location();
  TESSERA_ASSIGN(const ValueList list, ListOf(call, name));
  NameScope visible;
  TESSERA_TRY(AddVisible(&visible));
  if (context_.nesting > kMaxNesting) return NestedTooDeeply(position);
  QueryBlock inside(context_, &visible);
  ExpressionBinder binder(&inside.context, &inside.scope, Clause::kValues);
  SqlType type, array;
  TESSERA_ASSIGN(std::vector<ExprPtr> args, BindValues(list, &binder, &type, &array));
  if (list.split == &kArray) {
    TESSERA_ASSIGN(args[0], ArrayBinder(&inside.context, Clause::kValues).Parts(std::move(args[0])));
    args.push_back(Text(kBetween, position));
  }
  ExprPtr times = MakeConstant(Value::Int(kBigint, static_cast<int64_t>(args.size())), position);
  if (list.split != nullptr) {
    TESSERA_ASSIGN(times, SplitFirst(*list.split, &args, position));
  }
  auto one = std::make_shared<Query>();
  for (ExprPtr& e : args) one->outputs.push_back({std::move(e), "part"});
  const auto count = static_cast<int>(args.size());
  one->outputs.push_back({std::move(times), "times"});
  one->visible = count;
  MoveInward(one.get(), 2);
  auto values = std::make_shared<Query>();
  std::shared_ptr<Query> numbered = NumberedRows(std::move(one), name);
  const bool correlated = RefersOutward(*numbered);
  values->relations.push_back(DerivedTable(std::move(numbered)));
  values->relations.back().alias = name;
  values->relations.back().correlated = correlated;
  const auto column = [&](int i) { return MakeColumn(0, i, type, true, position); };
  ExprPtr number = MakeColumn(0, count, kBigint, false, position);
  ExprPtr value =
      list.split != nullptr ? PartOfNumber(count, *number, column) : ValueOfNumber(count, *number, type, column);
  if (list.split == &kArray) {
    TESSERA_ASSIGN(value, ElementValue(std::move(value), array, &inside.context));
    if (list.is_none) value = MakeCast(std::move(value), kBigint);
  }
  context_.deepest = std::max(context_.deepest, inside.context.deepest + kLevels);
  if (context_.deepest > kMaxNesting) return NestedTooDeeply(position);
  return AddValues(item, name, position, std::move(values), std::move(value), std::move(number), scope);
}

bool IsNumbered(const ParseNode& call) {
  const std::string_view name = CalledName(call);
  const ParseNode* const args = call.Get(Field::k_args);
  const size_t count = args == nullptr ? 0 : args->size();
  if (name == "generate_subscripts") return count == 2;
  return name == "unnest" && count == 1 &&
         !(args->first()->Is(Tag::kFuncCall) && FindSplit(CalledName(*args->first())));
}

namespace {

/// The array of the call. Errors: it is none, or another dimension is asked for than the first.
Result<ExprPtr> BindArrayOf(const ParseNode& call, ExpressionBinder* binder) {
  const ParseNode& args = *call.Get(Field::k_args);
  TESSERA_ASSIGN(ExprPtr array, binder->BindTyped(*args.first()));
  if (array->type.id != TypeId::kText)
    return SqlError(std::string(CalledName(call)) + " takes an array", call.location());
  if (args.size() == 1) return array;
  TESSERA_ASSIGN(const ExprPtr dimension, binder->BindTyped(*args.first()->next()));
  if (IsNullConstant(*dimension)) return MakeNull(array->type, call.location());
  if (!IsConstant(*dimension) || !dimension->type.IsInteger() || dimension->constant.i64 != 1)
    return Unsupported("generate_subscripts of another dimension than 1 is not supported", call.location(),
                       "Arrays have one dimension.");
  return array;
}

}  // namespace

Result<ExprPtr> FromBinder::AddNumbers(const std::vector<const ParseNode*>& calls) {
  const int position = calls[0]->location();
  const std::string name(CalledName(*calls[0]));
  before_.push_back(&block_.scope);
  NameScope visible, rows;
  TESSERA_TRY(AddVisible(&visible));
  if (context_.nesting > kMaxNesting) return NestedTooDeeply(position);
  QueryBlock inside(context_, &visible);
  ExpressionBinder binder(&inside.context, &inside.scope, Clause::kValues);
  ExprPtr times;
  for (const ParseNode* call : calls) {
    TESSERA_ASSIGN(ExprPtr array, BindArrayOf(*call, &binder));
    std::vector<ExprPtr> args = ExprList(std::move(array));
    TESSERA_ASSIGN(ExprPtr count, ArrayBinder(&inside.context, Clause::kValues).Call("cardinality", &args, position));
    if (times == nullptr) {
      times = std::move(count);
    } else {
      TESSERA_ASSIGN(times, binder.BindText("greatest(x, y)", ExprList(std::move(times), std::move(count)), position));
    }
  }
  auto values = std::make_shared<Query>();
  TESSERA_ASSIGN(ExprPtr number,
                 VaryingSeries(ExprList(Number(1, position), std::move(times)), true, name, position, values.get()));
  context_.deepest = std::max(context_.deepest, inside.context.deepest + kLevels);
  if (context_.deepest > kMaxNesting) return NestedTooDeeply(position);
  ExprPtr again = number->Clone();
  TESSERA_TRY(AddValues(*calls[0], name, position, std::move(values), std::move(number), std::move(again), &rows));
  before_.pop_back();
  const ScopeColumn& c = rows.columns[0];
  return ExpressionBinder(&context_, &block_.scope, Clause::kSelect).Column(c.relation, c.column, position);
}

Result<ExprPtr> FromBinder::NumberedValue(const ParseNode& call, ExprPtr number) {
  const int position = call.location();
  ExpressionBinder binder(&context_, &block_.scope, Clause::kSelect);
  TESSERA_ASSIGN(ExprPtr array, BindArrayOf(call, &binder));
  const ArrayBinder arrays(&context_, Clause::kSelect);
  TESSERA_ASSIGN(number, binder.Coerce(std::move(number), kInteger, CastContext::kExplicit));
  if (CalledName(call) == "unnest") return arrays.Nth(std::move(array), std::move(number), position);
  std::vector<ExprPtr> counted = ExprList(array->Clone());
  TESSERA_ASSIGN(ExprPtr count, arrays.Call("cardinality", &counted, position));
  return binder.BindText("CASE WHEN y <= z THEN CASE WHEN left(x, 1) = '{' THEN y ELSE y - 1 END END",
                         ExprList(std::move(array), std::move(number), std::move(count)), position);
}

}  // namespace tessera
