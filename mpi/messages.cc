// Rows on their way: shipments as bytes.
//
// A column's values travel as they are in memory. Identifiers of strings are valid in one process only, so the strings
// themselves travel, and the receiver makes its own identifiers.

#include "mpi/messages.h"

#include <algorithm>
#include <unordered_map>

namespace tessera {
namespace {

constexpr uint32_t kNoValue = UINT32_MAX;

/// Numbers the identifiers of one text column within a message.
class ValueNumbers {
 public:
  explicit ValueNumbers(const vm::RowColumn& column) {
    const auto is_null = [&](size_t r) { return !column.null.empty() && column.null[r] != 0; };
    const size_t rows = column.low.size();
    uint64_t size = 0;  // a NULL's identifier has no meaning
    for (size_t r = 0; r < rows; ++r) {
      if (!is_null(r)) size = std::max(size, static_cast<uint64_t>(column.low[r]) + 1);
    }
    // The pool numbers its strings from 0, so this is an array, unless few rows use a few of many strings.
    if (size <= 16 * rows + 4096) array_.assign(size, kNoValue);
    numbers_.reserve(rows);
    for (size_t r = 0; r < rows; ++r) numbers_.push_back(is_null(r) ? kNoValue : Of(column.low[r]));
  }
  std::vector<uint32_t>& numbers() { return numbers_; }
  const std::vector<int64_t>& identifiers() const { return identifiers_; }

 private:
  uint32_t Of(int64_t id) {
    uint32_t& number = array_.empty() ? map_.try_emplace(id, kNoValue).first->second : array_[static_cast<size_t>(id)];
    if (number == kNoValue) {
      number = static_cast<uint32_t>(identifiers_.size());
      identifiers_.push_back(id);
    }
    return number;
  }

  std::vector<uint32_t> array_;
  std::unordered_map<int64_t, uint32_t> map_;
  std::vector<uint32_t> numbers_;
  std::vector<int64_t> identifiers_;
};

/// A text column as it travels.
struct TextColumn {
  std::vector<std::string_view> values;  ///< the different ones
  std::vector<uint32_t> numbers;         ///< for each row the index of its value; kNoValue if it is NULL
};

TextColumn TextOf(const vm::RowColumn& column, const vm::StringPool& strings) {
  TextColumn text;
  ValueNumbers numbers(column);
  text.values.reserve(numbers.identifiers().size());
  for (const int64_t id : numbers.identifiers()) text.values.push_back(strings.Get(id));
  text.numbers = std::move(numbers.numbers());
  return text;
}

/// The identifiers of the rows' texts. False if a row has an index that no value has.
bool Intern(const TextColumn& text, vm::StringPool* strings, std::vector<int64_t>* out) {
  std::vector<int64_t> identifiers;
  identifiers.reserve(text.values.size());
  for (const std::string_view value : text.values) identifiers.push_back(strings->Intern(value));
  out->reserve(text.numbers.size());
  for (const uint32_t number : text.numbers) {
    if (number != kNoValue && number >= identifiers.size()) return false;
    out->push_back(number == kNoValue ? 0 : identifiers[number]);
  }
  return true;
}

}  // namespace

/// The fields of a shipment before its columns.
template <class A>
void HeadFields(A& a, vm::Shipment& shipment, uint64_t& columns) {
  a.Vector(shipment.units);
  a.Number(shipment.through);
  a.Number(shipment.last);
  a.Number(shipment.rows.rows);
  a.Number(columns);
}
template <class A>
void Fields(A& a, std::string_view& value) {
  a.Text(value);
}
/// `text`: the values of a TEXT column, instead of its identifiers.
template <class A>
void ColumnFields(A& a, vm::RowColumn& c, TextColumn& text) {
  a.Number(c.type);
  a.Vector(c.null);
  if (c.type.storage() == StorageClass::kText) {
    List(a, text.values, sizeof(uint64_t));
    a.Vector(text.numbers);
  } else {
    a.Vector(c.low);
    a.Vector(c.high);
  }
}

void WriteShipment(const vm::Shipment& shipment, const vm::StringPool& strings, WireWriter* out) {
  const vm::RowSet& rows = shipment.rows;
  size_t size = 64 + shipment.units.size() * sizeof(vm::UnitRows);
  for (const vm::RowColumn& c : rows.columns) size += (c.low.size() + c.high.size()) * 8 + c.null.size() + 64;
  out->Reserve(size);
  uint64_t columns = rows.columns.size();
  HeadFields(*out, const_cast<vm::Shipment&>(shipment), columns);  // a writer changes nothing
  for (const vm::RowColumn& c : rows.columns) {
    TextColumn text;
    if (c.type.storage() == StorageClass::kText) text = TextOf(c, strings);
    ColumnFields(*out, const_cast<vm::RowColumn&>(c), text);
  }
}

Result<vm::Shipment> ReadShipment(std::string_view bytes, vm::StringPool* strings) {
  WireReader in(bytes);
  const Status damaged(ErrorCode::kCorrupt, "rows of another rank are damaged");
  vm::Shipment out;
  uint64_t columns = 0;
  HeadFields(in, out, columns);
  for (uint64_t i = 0; i < columns && !in.failed(); ++i) {
    vm::RowColumn c;
    TextColumn text;
    ColumnFields(in, c, text);
    if (c.type.storage() == StorageClass::kText && !Intern(text, strings, &c.low)) return damaged;
    const auto fits = [&](size_t n) { return n == 0 || n == out.rows.rows; };
    if (c.low.size() != out.rows.rows || !fits(c.high.size()) || !fits(c.null.size())) return damaged;
    out.rows.columns.push_back(std::move(c));
  }
  TESSERA_TRY(in.End());
  uint64_t rows = 0;
  for (const vm::UnitRows& u : out.units) rows += u.rows;
  if (!out.units.empty() && rows != out.rows.rows) return damaged;
  return out;
}

}  // namespace tessera
