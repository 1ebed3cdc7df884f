#include "capi/arrow_array.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "base/exception_status.h"
#include "base/uninitialized.h"
#include "capi/arrow_types.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/interval.h"

namespace tessera {
namespace {

/// What an array of ours owns: the values as the session handed them over, and what was made of them.
struct ArrayOwner {
  ColumnVector column;
  UninitializedVector<uint8_t> validity, converted, texts;
  std::array<const void*, 3> buffers = {};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
  ArrowArray dictionary = {};
};

void ReleaseArray(ArrowArray* array) {
  auto* const owner = static_cast<ArrayOwner*>(array->private_data);
  for (ArrowArray& child : owner->children) ReleaseArrow(&child);
  ReleaseArrow(&owner->dictionary);
  array->release = nullptr;
  delete owner;
}

void Export(std::unique_ptr<ArrayOwner> owner, size_t rows, int64_t nulls, int64_t buffers, ArrowArray* out) {
  *out = {};
  for (ArrowArray& child : owner->children) owner->pointers.push_back(&child);
  out->length = static_cast<int64_t>(rows);
  out->null_count = nulls;
  out->n_buffers = buffers;
  out->buffers = owner->buffers.data();
  out->n_children = static_cast<int64_t>(owner->children.size());
  out->children = owner->pointers.empty() ? nullptr : owner->pointers.data();
  out->dictionary = owner->dictionary.release == nullptr ? nullptr : &owner->dictionary;
  out->release = ReleaseArray;
  out->private_data = owner.release();
}

/// A bit for each row, the first in the lowest of a byte.
template <class F>
void PackBits(size_t rows, const F& bit, UninitializedVector<uint8_t>* out) {
  out->resize((rows + 7) / 8);
  for (size_t byte = 0; byte * 8 < rows; ++byte) {
    uint8_t bits = 0;
    const size_t end = std::min<size_t>(8, rows - byte * 8);
    for (size_t i = 0; i < end; ++i) bits |= static_cast<uint8_t>(bit(byte * 8 + i) ? 1 << i : 0);
    (*out)[byte] = bits;
  }
}

/// f(row) of each row as values of T.
template <class T, class F>
void Convert(size_t rows, const F& f, UninitializedVector<uint8_t>* out) {
  out->resize(rows * sizeof(T));
  T* const to = reinterpret_cast<T*>(out->data());
  for (size_t row = 0; row < rows; ++row) to[row] = f(row);
}

struct MonthDayNano {
  int32_t months, days;
  int64_t nanos;
};

Status ConvertIntervals(const ColumnVector& from, size_t rows, UninitializedVector<uint8_t>* out) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 1000;
  bool fits = true;
  Convert<MonthDayNano>(
      rows,
      [&](size_t row) -> MonthDayNano {
        if (from.IsNull(row)) return {};
        const Interval v = UnpackInterval(from.wide[row]);
        fits &= v.micros <= kMost && v.micros >= -kMost;
        return {static_cast<int32_t>(v.months), static_cast<int32_t>(v.days), fits ? v.micros * 1000 : 0};
      },
      out);
  if (fits) return {};
  return SqlError(ErrorKind::kOutOfRange, "an interval of more than 292 years of hours cannot be told in nanoseconds",
                  -1, "justify_hours() makes days of hours.");
}

/// Offsets and characters.
void ConvertUuids(const ColumnVector& from, size_t rows, ArrayOwner* owner) {
  std::string text;
  owner->converted.resize((rows + 1) * sizeof(int32_t));
  auto* const offsets = reinterpret_cast<int32_t*>(owner->converted.data());
  offsets[0] = 0;
  for (size_t row = 0; row < rows; ++row) {
    if (!from.IsNull(row)) AppendText(from, row, &text);
    offsets[row + 1] = static_cast<int32_t>(text.size());
  }
  owner->texts.assign(text.begin(), text.end());
}

void ConvertOffsets(const ColumnVector& from, size_t rows, UninitializedVector<uint8_t>* out) {
  if (from.offsets.empty()) {
    out->assign(sizeof(int32_t), 0);
    return;
  }
  Convert<int32_t>(
      rows + 1, [&](size_t row) { return static_cast<int32_t>(from.offsets[row]); }, out);
}

/// The labels of an ENUM, by place.
void ExportLabels(const SqlType& type, ArrowArray* out) {
  const EnumType& labels = EnumOf(type);
  auto owner = std::make_unique<ArrayOwner>();
  owner->column.type = SqlType::Text();
  for (const std::string& label : labels.labels) owner->column.Append(Value::Text(label));
  ConvertOffsets(owner->column, labels.labels.size(), &owner->converted);
  owner->buffers = {nullptr, owner->converted.data(), owner->column.bytes.data()};
  Export(std::move(owner), labels.labels.size(), 0, 3, out);
}

/// The values of owner->column, in the second and the third buffer. Returns how many buffers there are.
Result<int64_t> ConvertValues(size_t rows, ArrayOwner* owner) {
  const ColumnVector& from = owner->column;
  UninitializedVector<uint8_t>* const made = &owner->converted;
  const auto fixed = [&](size_t row) { return from.fixed[row]; };
  const void*& values = owner->buffers[1];
  switch (from.type.id) {
    case TypeId::kNull:
      return 0;
    case TypeId::kBoolean:
      PackBits(rows, fixed, made);
      break;
    case TypeId::kEnum:
      ExportLabels(from.type, &owner->dictionary);
      [[fallthrough]];
    case TypeId::kSmallint:
      Convert<int16_t>(
          rows, [&](size_t row) { return static_cast<int16_t>(fixed(row)); }, made);
      break;
    case TypeId::kInteger:
    case TypeId::kDate:
      Convert<int32_t>(
          rows, [&](size_t row) { return static_cast<int32_t>(fixed(row)); }, made);
      break;
    case TypeId::kReal:
      Convert<float>(
          rows, [&](size_t row) { return static_cast<float>(from.Float(row)); }, made);
      break;
    case TypeId::kBigint:
    case TypeId::kDouble:
    case TypeId::kTimestamp:
    case TypeId::kTimestampTz:
    case TypeId::kTime:
      values = from.fixed.data();
      return 2;
    case TypeId::kDecimal:
      if (IsWide(from.type)) {
        values = from.wide.data();
        return 2;
      }
      Convert<int128_t>(rows, fixed, made);
      break;
    case TypeId::kInterval:
      TESSERA_TRY(ConvertIntervals(from, rows, made));
      break;
    case TypeId::kUuid:
      ConvertUuids(from, rows, owner);
      owner->buffers[2] = owner->texts.data();
      values = made->data();
      return 3;
    case TypeId::kText:
    case TypeId::kBytea:
      ConvertOffsets(from, rows, made);
      owner->buffers[2] = from.bytes.data();
      values = made->data();
      return 3;
  }
  values = made->data();
  return 2;
}

Status ExportColumn(ColumnVector&& column, const SqlType& type, size_t rows, ArrowArray* out) {
  auto owner = std::make_unique<ArrayOwner>();
  owner->column = std::move(column);
  owner->column.type = type;
  TESSERA_ASSIGN(const int64_t buffers, ConvertValues(rows, owner.get()));
  int64_t nulls = 0;
  if (const std::vector<uint8_t>& null = owner->column.null; !null.empty() && type.id != TypeId::kNull) {
    for (const uint8_t is_null : null) nulls += is_null;
    PackBits(
        rows, [&](size_t row) { return null[row] == 0; }, &owner->validity);
    if (nulls > 0) owner->buffers[0] = owner->validity.data();
  }
  if (type.id == TypeId::kNull) nulls = static_cast<int64_t>(rows);
  Export(std::move(owner), rows, nulls, buffers, out);
  return {};
}

bool HasLongTexts(const RowBatch& batch, uint64_t most_bytes) {
  return std::ranges::any_of(batch.columns, [&](const ColumnVector& c) { return c.bytes.size() > most_bytes; });
}

RowBatch Part(const RowBatch& batch, size_t first, size_t rows) {
  RowBatch out;
  out.rows = rows;
  for (const ColumnVector& column : batch.columns) {
    ColumnVector& to = out.columns.emplace_back();
    to.type = column.type;
    for (size_t row = first; row < first + rows; ++row) to.AppendFrom(column, row);
  }
  return out;
}

}  // namespace

Status ExportRows(RowBatch&& batch, const std::vector<vm::ResultColumn>& columns, std::vector<ArrowArray>* out,
                  uint64_t most_bytes) {
  if (HasLongTexts(batch, most_bytes)) {
    if (batch.rows < 2) {
      return Status(ErrorKind::kLimitExceeded,
                    "a text has more than 2^31 - 1 bytes, which no array of Arrow has room for",
                    "substr() gives its parts.");
    }
    const size_t half = batch.rows / 2;
    TESSERA_TRY(ExportRows(Part(batch, 0, half), columns, out, most_bytes));
    return ExportRows(Part(batch, half, batch.rows - half), columns, out, most_bytes);
  }
  auto owner = std::make_unique<ArrayOwner>();
  owner->children.resize(columns.size());
  const auto release = [&] {
    for (ArrowArray& child : owner->children) ReleaseArrow(&child);
  };
  out->reserve(out->size() + 1);
  const Status status = Caught([&]() -> Status {
    for (size_t i = 0; i < columns.size(); ++i)
      TESSERA_TRY(ExportColumn(std::move(batch.columns[i]), columns[i].type, batch.rows, &owner->children[i]));
    owner->pointers.reserve(columns.size());
    return {};
  });
  if (!status.ok()) {
    release();
    return status;
  }
  Export(std::move(owner), batch.rows, 0, 1, &out->emplace_back());
  return {};
}

}  // namespace tessera
