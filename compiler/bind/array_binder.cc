#include "compiler/bind/array_binder.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "compiler/bind/array_text.h"
#include "compiler/parse/called_name.h"
#include "compiler/query/correlation.h"
#include "compiler/query/fold.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/subquery_expr.h"
#include "compiler/query/type_rules.h"
#include "tablet/values/array_type.h"

namespace tessera {
namespace {

// The decoded form of an array has U+FFFE before and U+FFFF after each element, whose quotes are gone, and U+FDD0 for NULL.
// None of the three is a character. A vector of pg_catalog, as 1 2, has that form, too.
#define BEGIN "\xEF\xBF\xBE"
#define END "\xEF\xBF\xBF"
#define NO_VALUE "\xEF\xB7\x90"

/// The elements of x as they are written, with END between them.
constexpr const char* kParts =
    "CASE WHEN left(x, 1) = '{' THEN regexp_replace(substring(x, 2, greatest(length(x) - 2, 0)), "
    R"('(?s)("(?:[^"\\]|\\.)*"|[^",]+),', '\1)" END "', 'g') ELSE replace(x, ' ', '" END "') END";
/// The same with BEGIN before and END after each, of these.
constexpr const char* kMarked =
    "CASE WHEN x = '' THEN '' ELSE '" BEGIN "' || replace(x, '" END "', '" END BEGIN "') || '" END "' END";
/// The decoded form, of these.
constexpr const char* kDecoded =
    "regexp_replace(replace(replace(regexp_replace(x, '" BEGIN "(?i:null)" END "', '" BEGIN NO_VALUE END
    "', 'g'), '" BEGIN "\"', '" BEGIN "'), '\"" END "', '" END R"('), '(?s)\\(.)', '\1', 'g'))";
constexpr const char* kElement =
    R"(CASE WHEN x IS NULL THEN 'NULL' WHEN x = '' OR lower(x) = 'null' OR x ~ '[{}",\\\s]' )"
    R"(THEN '"' || replace(replace(x, '\', '\\'), '"', '\"') || '"' ELSE x END)";
constexpr const char* kCount = "length(x) - length(replace(x, '" END "', ''))";
/// y is a dimension: there is one.
constexpr const char* kLength = "CASE WHEN y = 1 AND x <> '' THEN length(x) - length(replace(x, '" END "', '')) END";
/// x is decoded, y a text.
constexpr const char* kIsElementText =
    "CASE WHEN x = '' THEN FALSE WHEN x IS NULL OR y IS NULL THEN NULL WHEN strpos(x, '" BEGIN "' || y || '" END
    "') > 0 THEN TRUE WHEN strpos(x, '" BEGIN NO_VALUE END "') > 0 THEN NULL ELSE FALSE END";

// The key of an array of integers, by which texts are in the order of the arrays: of each element n or p and 19 digits, those of a
// negative number replaced by letters in the opposite order; NULL is q. x is decoded.
#define PAIR "\\d([a-j])"
constexpr const char* kPadded =
    "regexp_replace(regexp_replace(regexp_replace(regexp_replace(x, '" BEGIN NO_VALUE END "', 'q', 'g'), '" BEGIN
    "-(\\d+)" END "', 'n0000000000000000000\\1', 'g'), '" BEGIN "(\\d+)" END
    "', 'p0000000000000000000\\1', 'g'), '([np])\\d*(\\d{19})', '\\1\\2', 'g')";
/// A negative number in three pieces, whose digits stand beside their letters.
constexpr const char* kPaired =
    "replace(replace(replace(replace(replace(replace(replace(replace(replace(replace(regexp_replace(x, "
    "'n(\\d{7})(\\d{6})(\\d{6})', 'nx\\1y\\2z\\3', 'g'), '0', '0j'), '1', '1i'), '2', '2h'), '3', '3g'), '4', '4f'), "
    "'5', '5e'), '6', '6d'), '7', '7c'), '8', '8b'), '9', '9a')";
constexpr const char* kLetters = "regexp_replace(regexp_replace(x, 'x" PAIR PAIR PAIR PAIR PAIR PAIR PAIR
                                 "', '\\1\\2\\3\\4\\5\\6\\7', 'g'), "
                                 "'[yz]" PAIR PAIR PAIR PAIR PAIR PAIR "', '\\1\\2\\3\\4\\5\\6', 'g')";
constexpr const char* kDigits = "regexp_replace(x, '(\\d)[a-j]', '\\1', 'g')";
#undef PAIR
/// The key of others: a character that is less than all others ends an element, NULL is greater than all.
constexpr const char* kTextKey =
    "replace(replace(replace(x, '" BEGIN NO_VALUE "', '\xF4\x8F\xBF\xBF'), '" BEGIN "', ''), '" END "', '\x01')";

enum class First : uint8_t { kWritten, kUnquoted, kParted };
enum class Second : uint8_t { kNone, kAsIs, kValue, kQuoted };
struct ArrayFunction {
  std::string_view name;
  First x;
  Second y;
  size_t count;
  const char* text;
};
constexpr ArrayFunction kFunctions[] = {
    {"array_to_string", First::kUnquoted, Second::kAsIs, 2,
     "btrim(replace(replace(x, '" BEGIN NO_VALUE END "', ''), '" END BEGIN "', y), '" BEGIN END "')"},
    {"array_to_string", First::kUnquoted, Second::kAsIs, 3,
     "btrim(replace(CASE WHEN z IS NULL THEN replace(x, '" BEGIN NO_VALUE END "', '') ELSE replace(x, '" NO_VALUE
     "', z) END, '" END BEGIN "', y), '" BEGIN END "')"},
    {"array_length", First::kUnquoted, Second::kAsIs, 2, kLength},
    {"array_upper", First::kUnquoted, Second::kAsIs, 2, kLength},
    {"array_lower", First::kUnquoted, Second::kAsIs, 2, "CASE WHEN y = 1 AND x <> '' THEN 1 END"},
    {"cardinality", First::kUnquoted, Second::kNone, 1, kCount},
    {"array_position", First::kUnquoted, Second::kValue, 2,
     "CASE WHEN strpos(x, '" BEGIN "' || y || '" END
     "') > 0 THEN length(regexp_replace(substring(x, 1, strpos(x, '" BEGIN "' || y || '" END "')), '[^" BEGIN
     "]', '', 'g')) END"},
    {"array_append", First::kWritten, Second::kQuoted, 2,
     "CASE WHEN x IS NULL OR x = '{}' THEN '{' || y || '}' ELSE substring(x, 1, length(x) - 1) || ',' || y || '}' END"},
    {"array_prepend", First::kWritten, Second::kQuoted, 2,
     "CASE WHEN x IS NULL OR x = '{}' THEN '{' || y || '}' ELSE '{' || y || ',' || substring(x, 2) END"},
    {"array_cat", First::kWritten, Second::kAsIs, 2,
     "CASE WHEN x IS NULL OR x = '{}' THEN coalesce(y, x) WHEN y IS NULL OR y = '{}' THEN x "
     "ELSE substring(x, 1, length(x) - 1) || ',' || substring(y, 2) END"},
    {"array_remove", First::kParted, Second::kQuoted, 2,
     "'{' || btrim(replace(replace(x, '" BEGIN "' || y || '" END "', ''), '" END BEGIN "', ','), '" BEGIN END
     "') || '}'"},
};

}  // namespace

bool IsArrayFunction(std::string_view name) {
  return std::any_of(std::begin(kFunctions), std::end(kFunctions), [&](const auto& row) { return row.name == name; });
}

/// Its text in an array: t and f of a BOOLEAN.
Result<ExprPtr> ArrayBinder::ElementText(ExprPtr x) const {
  const int position = x->position;
  if (x->type.id == TypeId::kBoolean)
    return BindText("CASE x WHEN TRUE THEN 't' WHEN FALSE THEN 'f' END", ExprList(std::move(x)), position);
  return types_.Coerce(std::move(x), SqlType::Text(), CastContext::kExplicit);
}

Result<ExprPtr> ArrayBinder::InBraces(ExprPtr elements, const SqlType& type, int position) const {
  TESSERA_ASSIGN(elements, BindText("'{' || x || '}'", ExprList(std::move(elements)), position));
  return WithType(std::move(elements), type);
}

Result<ExprPtr> ArrayBinder::Element(ExprPtr x, SqlType* array) const {
  const int position = x->position;
  TESSERA_ASSIGN(x, types_.Resolve(std::move(x), SqlType::Text()));
  if (array != nullptr) *array = ArrayOf(x->type);
  TESSERA_ASSIGN(x, ElementText(std::move(x)));
  return BindText(kElement, ExprList(std::move(x)), position);
}

Result<ExprPtr> ArrayBinder::Decoded(ExprPtr array) const {
  const int position = array->position;
  TESSERA_ASSIGN(array, BindText(kParts, ExprList(std::move(array)), position));
  TESSERA_ASSIGN(array, BindText(kMarked, ExprList(std::move(array)), position));
  return BindText(kDecoded, ExprList(std::move(array)), position);
}

Result<ExprPtr> ArrayBinder::Parts(ExprPtr array) const {
  const int position = array->position;
  TESSERA_ASSIGN(array, Decoded(std::move(array)));
  return BindText("substring(x, 1, greatest(length(x) - 1, 0))", ExprList(std::move(array)), position);
}

Result<ExprPtr> ArrayBinder::Value(ExprPtr part, int position) const {
  return BindText("CASE WHEN x <> '' AND x <> '" BEGIN NO_VALUE "' THEN substring(x, 2) END", ExprList(std::move(part)),
                  position);
}

SqlType ArrayBinder::TypeOfElements(const std::vector<ExprPtr>& elements) {
  SqlType type = SqlType::Of(TypeId::kNull);
  for (const ExprPtr& e : elements) {
    const std::optional<SqlType> both = UnifyTypes(type, e->type);
    if (!both) return SqlType::Text();
    type = *both;
  }
  if (elements.empty()) return SqlType::Text();
  return type.id == TypeId::kNull ? ArrayOf(SqlType::Text()) : ArrayOf(type);
}

ExprPtr ArrayBinder::WithType(ExprPtr array, const SqlType& type) {
  array->type = type;
  if (IsConstant(*array)) array->constant.type = type;
  return array;
}

Result<ExprPtr> ArrayBinder::Ordered(ExprPtr array) const {
  const int position = array->position;
  const SqlType element = ElementOf(array->type);
  if (element.IsFloat() || element.id == TypeId::kDecimal || element.id == TypeId::kInterval) {
    return Unsupported("the order of arrays of " + element.ToString() + " is not supported", position,
                       "Arrays of integers, texts and moments have one.");
  }
  TESSERA_ASSIGN(array, Decoded(std::move(array)));
  if (!element.IsInteger()) return BindText(kTextKey, ExprList(std::move(array)), position);
  for (const char* step : {kPadded, kPaired, kLetters, kDigits}) {
    TESSERA_ASSIGN(array, BindText(step, ExprList(std::move(array)), position));
  }
  return array;
}

Result<ExprPtr> ArrayBinder::IsElement(ExprPtr x, ExprPtr array, int position) const {
  if (IsArrayType(array->type)) {
    const SqlType element = ElementOf(array->type);
    TESSERA_ASSIGN(x, types_.Resolve(std::move(x), element));
    const bool as_texts =
        (element.IsInteger() && x->type.IsInteger()) || element.id == x->type.id || !element.IsNumeric();
    if (!as_texts) {
      return Unsupported(
          "= ANY of a " + x->type.ToString() + " and an array of " + element.ToString() + " is not supported", position,
          "Cast the value.");
    }
  }
  TESSERA_ASSIGN(x, types_.Resolve(std::move(x), SqlType::Text()));
  TESSERA_ASSIGN(array, Decoded(std::move(array)));
  TESSERA_ASSIGN(x, ElementText(std::move(x)));
  return BindText(kIsElementText, ExprList(std::move(array), std::move(x)), position);
}

Result<ExprPtr> ArrayBinder::Call(std::string_view name, std::vector<ExprPtr>* args, int position) const {
  const auto* const f = std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const ArrayFunction& row) {
    return row.name == name && row.count == args->size();
  });
  if (f == std::end(kFunctions)) return ExprPtr();
  if (name == "array_prepend") std::swap((*args)[0], (*args)[1]);
  ExprPtr& x = (*args)[0];
  const SqlType array = f->x != First::kUnquoted ? x->type : SqlType::Of(TypeId::kNull);
  for (size_t i = 0; i < args->size(); ++i) {
    if (i > 0 && f->y != Second::kAsIs) break;
    const bool number = i > 0 && (name == "array_length" || name == "array_upper" || name == "array_lower");
    const SqlType type = number ? SqlType::Of(TypeId::kInteger) : SqlType::Text();
    TESSERA_ASSIGN((*args)[i], types_.Resolve(std::move((*args)[i]), type));
    if (number ? !(*args)[i]->type.IsInteger() : (*args)[i]->type.id != TypeId::kText) return ExprPtr();
  }
  if (f->x == First::kUnquoted) {
    TESSERA_ASSIGN(x, Decoded(std::move(x)));
  } else if (f->x == First::kParted) {
    TESSERA_ASSIGN(x, BindText(kParts, ExprList(std::move(x)), position));
    TESSERA_ASSIGN(x, BindText(kMarked, ExprList(std::move(x)), position));
  }
  if (f->y == Second::kQuoted) {
    TESSERA_ASSIGN((*args)[1], Element(std::move((*args)[1])));
  } else if (f->y == Second::kValue) {
    TESSERA_ASSIGN((*args)[1], types_.Resolve(std::move((*args)[1]), SqlType::Text()));
    TESSERA_ASSIGN((*args)[1], ElementText(std::move((*args)[1])));
  }
  TESSERA_ASSIGN(ExprPtr made, BindText(f->text, std::move(*args), position));
  return IsArrayType(array) ? WithType(std::move(made), array) : std::move(made);
}

Result<ExprPtr> ArrayBinder::OfElements(std::vector<ExprPtr> elements, int position) const {
  const SqlType type = TypeOfElements(elements);
  ExprPtr all = MakeConstant(tessera::Value::Text("{"), position);
  const char* next = "x || y";
  for (ExprPtr& element : elements) {
    TESSERA_ASSIGN(element, Element(std::move(element)));
    TESSERA_ASSIGN(all, BindText(next, ExprList(std::move(all), std::move(element)), position));
    next = "x || ',' || y";
  }
  TESSERA_ASSIGN(all, BindText("x || '}'", ExprList(std::move(all)), position));
  return WithType(std::move(all), type);
}

Result<ExprPtr> ArrayBinder::OfQuery(std::shared_ptr<Query> query, int position) const {
  if (query->visible != 1) return SqlError(ErrorKind::kSyntax, "subquery must return only one column", position);
  const bool plain = !query->grouped && !query->distinct && query->limit < 0 && query->offset == 0 &&
                     query->union_all.empty() && query->working == nullptr && query->repeat < 0 && !query->folds() &&
                     query->windows.empty() && query->series < 0;
  std::vector<OrderKey> order = query->order_by;
  std::vector<ExprPtr> values;
  auto rows = query;
  if (plain) {
    for (Output& o : query->outputs) values.push_back(std::move(o.expr));
  } else {
    if (query->limit < 0 && query->offset == 0) query->order_by.clear();
    query->visible = static_cast<int>(query->outputs.size());
    for (int i = 0; i < query->visible; ++i) {
      const Expr& e = *query->outputs[static_cast<size_t>(i)].expr;
      values.push_back(MakeColumn(0, i, e.type, true, position));
    }
    MoveInward(query.get(), 1);
    rows = std::make_shared<Query>();
    const bool correlated = RefersOutward(*query);
    rows->relations.push_back(DerivedTable(std::move(query)));
    rows->relations.back().alias = "array";
    rows->relations.back().correlated = correlated;
  }
  Aggregate a;
  a.function = AggregateFunction::kStringAgg;
  a.parameter = tessera::Value::Text(",");
  a.type = SqlType::Text();
  a.position = position;
  ExprPtr value = CopyWithSubqueries(*values[0]);
  const SqlType type = ArrayOf(value->type);
  TESSERA_ASSIGN(a.argument, Element(std::move(value)));
  for (const OrderKey& key : order) {
    AggregateOrder by;
    by.expr = CopyWithSubqueries(*values[static_cast<size_t>(key.output)]);
    by.descending = key.descending;
    by.nulls_first = key.nulls_first;
    a.order.push_back(std::move(by));
  }
  rows->order_by.clear();
  rows->grouped = true;
  rows->aggregates.push_back(std::move(a));
  rows->outputs.clear();
  rows->outputs.push_back({MakeLeaf(Expr::Kind::kAggregate, 0, SqlType::Text(), true), "array"});
  rows->visible = 1;
  ExprPtr texts = MakeSubquery(Subquery::Kind::kScalar, std::move(rows), SqlType::Text(), true, position, {});
  TESSERA_ASSIGN(texts, BindText("'{' || coalesce(x, '') || '}'", ExprList(std::move(texts)), position));
  return WithType(std::move(texts), type);
}

Result<ExprPtr> ArrayBinder::AsElement(ExprPtr text, const SqlType& array) const {
  if (!IsArrayType(array) || ElementOf(array).id == TypeId::kText) return text;
  return types_.Coerce(std::move(text), ElementOf(array), CastContext::kExplicit);
}

Result<ExprPtr> ArrayBinder::Subscript(ExprPtr array, ExprPtr n, int position) const {
  // (A vector begins with element 0.)
  TESSERA_ASSIGN(n, BindText("CASE WHEN left(x, 1) = '{' THEN y ELSE y + 1 END", ExprList(array->Clone(), std::move(n)),
                             position));
  return Nth(std::move(array), std::move(n), position);
}

Result<ExprPtr> ArrayBinder::Nth(ExprPtr array, ExprPtr n, int position) const {
  const SqlType type = array->type;
  TESSERA_ASSIGN(array, Decoded(std::move(array)));
  TESSERA_ASSIGN(ExprPtr part, BindText("CASE WHEN y > 0 THEN split_part(x, '" END "', y) END",
                                        ExprList(std::move(array), std::move(n)), position));
  TESSERA_ASSIGN(part, Value(std::move(part), position));
  return AsElement(std::move(part), type);
}

bool IsArray(const ParseNode& node) {
  if (node.Is(Tag::kA_ArrayExpr)) return true;
  if (node.Is(Tag::kSubLink)) return node.Text(Field::k_subLinkType) == "ARRAY_SUBLINK";
  if (node.Is(Tag::kTypeCast)) return node.Get(Field::k_typeName)->Get(Field::k_arrayBounds) != nullptr;
  if (!node.Is(Tag::kFuncCall)) return false;
  const std::string_view name = CalledName(node);
  return name == "array_agg" || name == "array_append" || name == "array_cat" || name == "array_prepend" ||
         name == "array_remove";
}

#undef BEGIN
#undef END
#undef NO_VALUE

}  // namespace tessera
