// Rows on their way: shipments as bytes.
//
// A column's values travel less their least one, in as few bytes as that needs. Identifiers of strings are valid in one
// process only, so the strings themselves travel, and the receiver makes its own identifiers.

#include "mpi/messages.h"

#include <algorithm>
#include <unordered_map>

#include "vm/program/program.h"

namespace tessera {
namespace {

constexpr uint32_t kNoValue = UINT32_MAX;
/// Bytes of a packed number for which memory is reserved.
constexpr size_t kUsualWidth = 4;

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

/// The identifiers of the rows' texts. False if a row that is not NULL has an index that no value has.
bool Intern(const TextColumn& text, vm::StringPool* strings, ThreadPool* pool, vm::RowColumn* column) {
  std::vector<int64_t> identifiers(text.values.size());
  // (Where threads cannot be started, this one does it.)
  if (!strings->Intern(pool, text.values, identifiers.data()).ok()) strings->Intern(text.values, identifiers.data());
  column->low.reserve(text.numbers.size());
  for (size_t r = 0; r < text.numbers.size(); ++r) {
    const uint32_t number = text.numbers[r];
    const bool is_null = r < column->null.size() && column->null[r] != 0;  // (then the number says nothing)
    if (!is_null && number >= identifiers.size()) return false;
    column->low.push_back(is_null ? 0 : identifiers[number]);
  }
  return true;
}

/// Whether the column has `rows` values of its type.
bool IsWellFormed(const vm::RowColumn& c, size_t rows) {
  const auto is_flag = [](uint8_t null) { return null <= 1; };
  return c.low.size() == rows && c.high.size() == (IsWide(c.type) ? rows : 0) &&
         (c.null.empty() || (c.null.size() == rows && std::all_of(c.null.begin(), c.null.end(), is_flag)));
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
void ColumnFields(A& a, uint64_t rows, vm::RowColumn& c, TextColumn& text) {
  a.Number(c.type);
  a.Require(vm::IsValueType(c.type));
  a.Vector(c.null);
  if (c.type.storage() == StorageClass::kText) {
    List(a, text.values);
    a.Packed(text.numbers, c.null, rows);
  } else {
    a.Packed(c.low, c.null, rows);
    a.Packed(c.high, c.null, rows);
  }
}

void WriteShipment(const vm::Shipment& shipment, const vm::StringPool& strings, WireWriter* out) {
  const vm::RowSet& rows = shipment.rows;
  size_t size = 64 + shipment.units.size() * sizeof(vm::UnitRows);
  for (const vm::RowColumn& c : rows.columns) size += (c.low.size() + c.high.size()) * kUsualWidth + c.null.size() + 64;
  out->Reserve(size);
  uint64_t columns = rows.columns.size();
  HeadFields(*out, const_cast<vm::Shipment&>(shipment), columns);  // a writer changes nothing
  for (const vm::RowColumn& c : rows.columns) {
    TextColumn text;
    if (c.type.storage() == StorageClass::kText) text = TextOf(c, strings);
    ColumnFields(*out, rows.rows, const_cast<vm::RowColumn&>(c), text);
  }
}

Status DamagedRows() { return {ErrorCode::kCorrupt, "rows of another rank are damaged"}; }

Result<vm::Shipment> ReadShipment(std::string_view bytes, const std::vector<SqlType>& types, vm::StringPool* strings,
                                  ThreadPool* pool) {
  WireReader in(bytes, pool);
  vm::Shipment out;
  uint64_t columns = 0;
  HeadFields(in, out, columns);
  if (in.failed() || columns != types.size()) return DamagedRows();
  for (const SqlType& type : types) {
    vm::RowColumn c;
    TextColumn text;
    ColumnFields(in, out.rows.rows, c, text);
    if (in.failed() || c.type.storage() != type.storage()) return DamagedRows();
    if (type.storage() == StorageClass::kText && !Intern(text, strings, pool, &c)) return DamagedRows();
    if (!IsWellFormed(c, out.rows.rows)) return DamagedRows();
    out.rows.columns.push_back(std::move(c));
  }
  TESSERA_TRY(in.End());
  uint64_t left = out.rows.rows;
  for (size_t i = 0; i < out.units.size(); ++i) {
    if (out.units[i].rows > left || (i > 0 && out.units[i].unit <= out.units[i - 1].unit)) return DamagedRows();
    left -= out.units[i].rows;
  }
  if (!out.units.empty() && left != 0) return DamagedRows();
  return out;
}

}  // namespace tessera
