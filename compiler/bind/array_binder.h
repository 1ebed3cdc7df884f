// Binding what takes and gives arrays. They are texts in PostgreSQL's form (array_text.h), so each of these is SQL over texts,
// and runs wherever texts do. The type of the elements, where it is known, goes along in the SqlType (array_type.h). Private to compiler/.
//
// Start at: ArrayBinder. One thread.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/bind/expression_binder.h"

namespace tessera {

/// Whether it is a function that ArrayBinder::Call binds: array_to_string and its kin.
bool IsArrayFunction(std::string_view name);
/// Whether the node can give nothing but an array.
bool IsArray(const ParseNode& node);

class ArrayBinder {
 public:
  /// `context` is that of the block in which the result stands, and outlives it.
  ArrayBinder(BindContext* context, Clause clause) : types_(context, nullptr, clause) {}

  /// ARRAY[...].
  Result<ExprPtr> OfElements(std::vector<ExprPtr> elements, int position) const;
  /// ARRAY(SELECT ...), in the order of the query's ORDER BY. Errors: it has not one column.
  Result<ExprPtr> OfQuery(std::shared_ptr<Query> query, int position) const;
  /// A call of an array function; nullptr: it does not take that number of arguments.
  Result<ExprPtr> Call(std::string_view name, std::vector<ExprPtr>* args, int position) const;
  /// array[n], of the type of its elements, or a text; NULL beyond its ends.
  Result<ExprPtr> Subscript(ExprPtr array, ExprPtr n, int position) const;
  /// The nth element, from 1, also of a vector.
  Result<ExprPtr> Nth(ExprPtr array, ExprPtr n, int position) const;
  /// Whether x is equal to an element, as texts.
  Result<ExprPtr> IsElement(ExprPtr x, ExprPtr array, int position) const;
  /// x as an element is written: in quotes if it must be, NULL as such.
  /// `*array`, if it is not nullptr: the type of an array of such.
  Result<ExprPtr> Element(ExprPtr x, SqlType* array = nullptr) const;
  /// The array of that type whose elements are so written in the text.
  Result<ExprPtr> InBraces(ExprPtr elements, const SqlType& type, int position) const;
  /// The elements of an array, with U+FFFF between them. REQUIRES: a text.
  Result<ExprPtr> Parts(ExprPtr array) const;
  /// The value of one of these parts, a text.
  Result<ExprPtr> Value(ExprPtr part, int position) const;
  /// The text of an element as what the elements of that type of arrays are.
  Result<ExprPtr> AsElement(ExprPtr text, const SqlType& array) const;
  /// A text that is in the order of the arrays. REQUIRES: IsArrayType(). Errors: not of elements of this type.
  Result<ExprPtr> Ordered(ExprPtr array) const;
  /// The type of an array of these.
  static SqlType TypeOfElements(const std::vector<ExprPtr>& elements);
  /// The array, of which it is known that it has this type.
  static ExprPtr WithType(ExprPtr array, const SqlType& type);
  /// SQL over the arguments, which are x, y and z.
  Result<ExprPtr> BindText(const char* text, std::vector<ExprPtr> args, int position) const {
    return types_.BindText(text, std::move(args), position);
  }

 private:
  Result<ExprPtr> ElementText(ExprPtr x) const;
  /// The elements one after the other, with U+FFFF after each.
  Result<ExprPtr> Decoded(ExprPtr array) const;

  mutable ExpressionBinder types_;  ///< for conversions and texts
};

}  // namespace tessera
