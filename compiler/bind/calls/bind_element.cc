// Binding elements of lists, where other functions give them: (string_to_array(x, y))[n], (regexp_match(x, y))[n] and
// (array_agg(x ORDER BY y))[1].
#include <algorithm>
#include <string>

#include "compiler/bind/array_binder.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/bind/from_binder.h"
#include "compiler/parse/called_name.h"
#include "compiler/query/fold.h"
#include "vm/meaning/regex.h"

namespace tessera {
namespace {

const SqlType kInteger = SqlType::Of(TypeId::kInteger);
const SqlType kText = SqlType::Text();

}  // namespace

Result<ExprPtr> ExpressionBinder::BindElement(const ParseNode& node) {
  const ParseNode& list = *node.Get(Field::k_arg);
  const ParseNode& subscripts = *node.Get(Field::k_indirection);
  const ParseNode& subscript = *subscripts.first();
  const int position = node.FirstLocation();
  const auto refused = [&] {
    return Unsupported(
        "a subscript or field selection is not supported", position,
        "An array has one subscript, an integer; that of string_to_array and regexp_match is a constant.");
  };
  const auto subscript_of = [&](const ParseNode& of) -> Result<ExprPtr> {
    TESSERA_ASSIGN(ExprPtr array, Bind(of));
    TESSERA_ASSIGN(array, Resolve(std::move(array), kText));
    TESSERA_ASSIGN(ExprPtr n, BindTyped(*subscript.Get(Field::k_uidx)));
    if (array->type.id != TypeId::kText || !n->type.IsInteger()) return refused();
    return ArrayBinder(context_, clause_).Subscript(std::move(array), std::move(n), position);
  };
  const bool one =
      subscripts.size() == 1 && subscript.Get(Field::k_uidx) != nullptr && subscript.Get(Field::k_is_slice) == nullptr;
  if (one && list.Is(Tag::kA_ArrayExpr)) {
    TESSERA_ASSIGN(const ExprPtr place, Bind(*subscript.Get(Field::k_uidx)));
    if (!place->type.IsInteger()) return refused();
    if (!IsConstant(*place) || place->constant.null) return subscript_of(list);
    const ParseNode* const elements = list.Get(Field::k_elements);
    const auto count = elements == nullptr ? 0 : static_cast<int64_t>(elements->size());
    if (place->constant.i64 < 1 || place->constant.i64 > count) return MakeNull(kText, position);
    const ParseNode* element = elements->first();
    for (int64_t n = 1; n < place->constant.i64; ++n) element = element->next();
    return Bind(*element);
  }
  if (!one) return refused();
  if (!list.Is(Tag::kFuncCall)) return subscript_of(list);
  const std::string_view name = CalledName(list);
  TESSERA_ASSIGN(const ExprPtr place, Bind(*subscript.Get(Field::k_uidx)));
  if (!IsConstant(*place) || place->constant.null || !place->type.IsInteger()) return subscript_of(list);
  const int64_t n = place->constant.i64;
  if (name == "array_agg" && n == 1 && list.Get(Field::k_agg_distinct) == nullptr)
    return list.Get(Field::k_over) != nullptr ? BindWindow("first", list) : BindAggregate("first", list);

  const ParseNode* arguments = list.Get(Field::k_args);
  const bool match = name == "regexp_match", array = name == "string_to_array";
  const bool splits = array || name == "string_split" || name == "str_split" || name == "split";
  const size_t count = arguments == nullptr ? 0 : arguments->size();
  if (!match && !splits) return subscript_of(list);
  if (!(match && (count == 2 || count == 3)) && !(splits && count == 2)) return refused();
  std::vector<ExprPtr> args;
  for (const ParseNode& a : *arguments) {
    TESSERA_ASSIGN(ExprPtr e, Bind(a));
    TESSERA_ASSIGN(e, Resolve(std::move(e), kText));
    if (e->type.id != TypeId::kText) return SqlError(std::string(name) + " takes texts", e->position);
    args.push_back(std::move(e));
  }
  if (n < 1) return MakeNull(kText, position);
  if (splits) {
    TESSERA_ASSIGN(ExprPtr parts, CountParts(*args[0], *args[1], array));
    TESSERA_ASSIGN(ExprPtr has, Comparison(Function::kGe, std::move(parts), place->Clone(), position));
    args.push_back(place->Clone());
    TESSERA_ASSIGN(ExprPtr part, Folded(MakeFunction(Function::kSplitPart, kText, position, std::move(args))));
    return Folded(MakeFunction(Function::kCase, kText, position,
                               ExprList(std::move(has), std::move(part), MakeNull(kText, position))));
  }
  if (!IsConstant(*args[1])) return refused();
  if (args[1]->constant.null) return MakeNull(kText, position);
  // Without groups the list has the match alone.
  const vm::Regex regex(args[1]->constant.text);
  const int groups = regex.error().empty() ? regex.groups() : 0;
  if (n > std::max(groups, 1)) return MakeNull(kText, position);
  const auto number = [&](int64_t v) { return MakeConstant(Value::Int(kInteger, v), position); };
  ExprPtr flags = args.size() > 2 ? std::move(args[2]) : MakeConstant(Value::Text({}), position);
  args.resize(2);
  args.push_back(number(1));
  args.push_back(number(1));
  args.push_back(std::move(flags));
  args.push_back(number(groups == 0 ? 0 : n));
  return BindRegexFunction("regexp_substr", &args, position);
}

}  // namespace tessera
