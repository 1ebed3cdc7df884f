#include "kernels/join/table_layout.h"

#include <algorithm>
#include <bit>

namespace tessera::kernels {
namespace {

/// A direct table of up to this size, or this part of the budget, is taken whatever the number of rows. A larger one is
/// taken if a hash table would not be smaller.
constexpr uint64_t kDirectBytes = uint64_t{64} << 20, kDirectShare = 16;
constexpr uint64_t kDirectBytesPerRow = 32;
/// A bitmap of up to this size is kept beside the values, for blocks that have room for it in shared memory.
constexpr uint64_t kSharedBitsBytes = 16 << 10;
/// ... or if values lie so far apart that most probes end in the bitmap.
constexpr uint64_t kSparseBytes = uint64_t{24} << 20;
constexpr uint64_t kMostSlots = (uint64_t{1} << 32) - 256;

uint64_t RoundUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/// Where the hash that is the number of keys begins the first time. (Another time is for keys with the same hash.)
constexpr int64_t kFirstSeed = 0x1D8E4E27C47D124F;

/// What is known of a column.
PayloadShape ShapeOf(const DeviceRows& rows, const SqlType& type, size_t column, size_t wide_before,
                     const ColumnSummary* summaries) {
  PayloadShape p;
  p.wide = IsWide(type);
  p.column = reinterpret_cast<uint64_t>(rows.low(column));
  p.nulls = reinterpret_cast<uint64_t>(rows.null(column));
  p.nullable = true;
  if (p.wide) p.column_high = reinterpret_cast<uint64_t>(rows.high(wide_before));
  if (column < kMaxSummaries && !p.wide) {
    const ColumnSummary& summary = summaries[column];
    p.nullable = summary.nulls != 0;
    const bool any = summary.low <= summary.high;
    p.low = any ? summary.low : 0;
    p.high = any ? summary.high : -1;
    if (!p.nullable) p.nulls = 0;
  }
  return p;
}

/// Puts a payload column into the value as a bit field above the *bits bits that are taken. false: it does not fit.
bool PackField(bool first_field, PayloadShape* p, uint32_t* bits) {
  // Values count from 1 in the first field, so that the whole is never 0; a NULL comes before them.
  const uint64_t first = (first_field ? 1 : 0) + (p->nullable ? 1 : 0);
  const uint64_t span = static_cast<uint64_t>(p->high) - static_cast<uint64_t>(p->low);
  const uint64_t most = (p->low > p->high ? 0 : span) + first;
  const uint32_t width = static_cast<uint32_t>(std::bit_width(most));
  if ((p->low <= p->high && span >= kMostSlots) || *bits + width > 32) return false;
  // A field of no bits lies nowhere.
  p->shift = width == 0 ? 0 : *bits;
  p->mask = static_cast<uint32_t>((uint64_t{1} << width) - 1);
  p->base = static_cast<int64_t>(static_cast<uint64_t>(p->low) - first);
  p->null_field = p->nullable ? (first_field ? 1 : 0) : -1;
  *bits += width;
  return true;
}

/// Fills in the payload's shapes: bit fields of the value if all fit and no row has several matches, else the rows
/// themselves. Returns the bits of a packed value.
uint32_t LayOutPayload(const vm::Section& builder, const DeviceRows& rows, bool unique, bool outer,
                       const ColumnSummary* summaries, JoinShape* shape) {
  const size_t keys = static_cast<size_t>(builder.keys), payload = builder.columns.size() - keys;
  size_t wide =
      static_cast<size_t>(std::count_if(builder.columns.begin(), builder.columns.begin() + builder.keys, IsWide));
  uint32_t bits = 0;
  bool fits = unique && !outer && keys > 0 && payload <= kMaxPackedPayload && builder.columns.size() <= kMaxSummaries;
  for (size_t c = keys; c < keys + payload; ++c) {
    PayloadShape p = ShapeOf(rows, builder.columns[c], c, wide, summaries);
    p.nullable |= outer;
    wide += p.wide ? 1 : 0;
    fits = fits && !p.wide && PackField(c == keys, &p, &bits);
    shape->payload.push_back(p);
  }
  shape->packed = fits;
  shape->record.rows_in_values = !fits;
  return bits;
}

/// Makes one number of the keys, and sets the greatest one. False: they need more than 64 bits.
bool NumberKeys(const vm::Section& builder, uint64_t rows, const ColumnSummary* summaries, JoinRecord* record,
                JoinBuild* build) {
  const size_t keys = static_cast<size_t>(builder.keys);
  if (keys > kMaxJoinKeys || std::any_of(builder.columns.begin(), builder.columns.begin() + builder.keys, IsWide))
    return false;
  uint64_t numbers = 1;
  for (size_t k = 0; k < keys; ++k) {
    const int64_t low = rows > 0 ? summaries[k].low : 0, high = rows > 0 ? summaries[k].high : 0;
    const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
    build->low[k] = record->low[k] = low;
    record->span[k] = span;
    build->stride[k] = record->stride[k] = numbers;
    uint64_t product;
    if (k == 0 && keys == 1) {
      record->last = span;
    } else if (span == UINT64_MAX || __builtin_mul_overflow(numbers, span + 1, &product)) {
      return false;
    } else {
      numbers = product;
      record->last = numbers - 1;
    }
  }
  return true;
}

/// Makes the hash of the keys their number.
void HashKeys(const vm::Section& builder, JoinRecord* record, JoinBuild* build) {
  record->hashed = build->hashed = 1;
  record->last = UINT64_MAX;
  build->low[0] = record->low[0] = kFirstSeed;
  for (uint32_t k = 0; k < build->keys; ++k) build->wide_keys |= IsWide(builder.columns[k]) ? 1u << k : 0u;
}

/// Tells the kernel where the payload's fields are in a packed value.
void LayOutFields(const JoinShape& shape, JoinBuild* build) {
  build->packed = shape.packed;
  build->payload = static_cast<uint32_t>(shape.payload.size());
  for (size_t p = 0; p < shape.payload.size() && shape.packed; ++p) {
    const PayloadShape& s = shape.payload[p];
    build->column[p] = reinterpret_cast<const int64_t*>(s.column);
    build->null[p] = reinterpret_cast<const uint8_t*>(s.nulls);
    build->base[p] = s.base;
    build->shift[p] = s.shift;
    build->null_field[p] = static_cast<uint32_t>(s.null_field);
  }
}

uint64_t BitsBytes(const JoinRecord& record) {
  return record.last < kMostSlots ? RoundUp(record.last / 8 + 1, 16) : UINT64_MAX;
}

/// What tables may take that are addressed directly.
uint64_t MostBytes(uint64_t rows, uint64_t direct_bytes) { return std::max(direct_bytes, rows * kDirectBytesPerRow); }

/// Chooses how slots are addressed: a bitmap alone, values by the number of the keys, or a hash table.
Status ChooseSlots(bool bits_are_enough, uint64_t value_width, uint64_t rows, uint64_t direct_bytes,
                   TableLayout* layout) {
  JoinRecord& record = layout->table->shape.record;
  const bool few = record.last < kMostSlots;
  const uint64_t bits_bytes = BitsBytes(record);
  const uint64_t value_bytes = few ? (record.last + 1) * value_width : UINT64_MAX;
  const uint64_t most = MostBytes(rows, direct_bytes);
  bool with_bits = false;
  if (bits_are_enough) {
    record.probe = ProbeKind::kBits;
    with_bits = true;
  } else if (few && value_bytes <= most) {
    record.probe = ProbeKind::kDirect;
    record.width = static_cast<uint8_t>(value_width);
    with_bits = bits_bytes <= kSharedBitsBytes || (value_bytes > kSparseBytes && rows < record.last / 2);
    layout->values = value_bytes;
  } else {
    const uint64_t slots = std::bit_ceil(std::max<uint64_t>(2 * rows, 32));
    if (slots > uint64_t{1} << 31)
      return Status(ErrorCode::kResource, "a join table has more rows than a GPU's hash table");
    const bool narrow = record.last <= UINT32_MAX;
    record.probe = narrow ? ProbeKind::kHash32 : ProbeKind::kHash64;
    record.slot_mask = static_cast<uint32_t>(slots - 1);
    record.slot_shift = static_cast<uint32_t>((narrow ? 32 : 64) - std::countr_zero(slots));
    layout->values = slots * (narrow ? 8 : 16);
  }
  if (with_bits) {
    layout->bits = bits_bytes;
    record.bits_bytes = static_cast<uint32_t>(std::min<uint64_t>(bits_bytes, UINT32_MAX / 16 * 16));
  }
  layout->build.probe = record.probe;
  layout->build.width = record.width;
  layout->build.slot_shift = record.slot_shift;
  layout->build.slot_mask = record.slot_mask;
  return Status::Ok();
}

}  // namespace

Result<TableLayout> LayOutTable(DeviceTable* table, const vm::Section& builder, const TableUse& use,
                                const ColumnSummary* summaries, uint64_t direct_bytes) {
  JoinShape& shape = table->shape;
  JoinRecord& record = shape.record;
  const uint64_t n = table->rows.rows();
  const size_t keys = static_cast<size_t>(builder.keys);
  TableLayout layout;
  layout.table = table;
  layout.build.rows = record.rows = static_cast<uint32_t>(n);
  layout.build.keys = static_cast<uint32_t>(keys);
  record.keys = static_cast<uint8_t>(keys);
  record.columns = layout.build.columns = static_cast<uint32_t>(builder.columns.size());
  record.row_columns = layout.build.row_columns = reinterpret_cast<const int64_t*>(table->rows.low(0));
  record.row_capacity = layout.build.row_capacity = table->rows.capacity();
  if (keys > 0 && !NumberKeys(builder, n, summaries, &record, &layout.build)) HashKeys(builder, &record, &layout.build);
  // Bits do not mind that a key comes twice.
  const bool asks_for_keys = keys > 0 && builder.columns.size() == keys && !use.outer && (use.unique || !use.loop);
  const bool bits_are_enough = asks_for_keys && BitsBytes(record) <= MostBytes(n, direct_bytes);
  const bool one_row = (use.unique && record.hashed == 0) || bits_are_enough;
  const uint32_t bits = LayOutPayload(builder, table->rows, one_row, use.outer, summaries, &shape);
  if (keys == 0) {
    record.probe = ProbeKind::kNestedLoop;
    layout.build.rows = 0;
    return layout;
  }
  if (!one_row) layout.next = std::max<uint64_t>(n, 1) * 4;
  if (record.hashed != 0) layout.collided = sizeof(uint32_t);
  LayOutFields(shape, &layout.build);
  const uint64_t value_width = !shape.packed ? 4 : bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
  TESSERA_TRY(ChooseSlots(bits_are_enough, value_width, n, direct_bytes, &layout));
  return layout;
}

RowsToSummarize ToSummarize(const DeviceRows& rows, size_t columns, ColumnSummary* summaries) {
  RowsToSummarize out;
  out.low = reinterpret_cast<const int64_t*>(rows.low(0));
  out.null = rows.null(0);
  out.capacity = rows.capacity();
  out.rows = rows.rows();
  out.summaries = summaries;
  out.columns = static_cast<uint32_t>(std::min<size_t>(columns, kMaxSummaries));
  return out;
}

std::vector<PayloadShape> ShapesOf(const DeviceRows& rows, const std::vector<SqlType>& columns,
                                   const ColumnSummary* summaries) {
  std::vector<PayloadShape> shapes;
  size_t wide = 0;
  for (size_t c = 0; c < columns.size(); ++c) {
    shapes.push_back(ShapeOf(rows, columns[c], c, wide, summaries));
    wide += shapes.back().wide ? 1 : 0;
  }
  return shapes;
}

uint64_t MostDirectBytes(uint64_t budget) { return std::min(kDirectBytes, budget / kDirectShare); }

uint64_t MostTableBytes(const vm::Section& builder, uint64_t rows, uint64_t direct_bytes) {
  // Slots of 16 bytes, at most half of them in use; or values and bits by the key itself, where they are not more.
  const uint64_t slots = std::max(
      {16 * std::bit_ceil(std::max<uint64_t>(2 * rows, 32)), rows * (kDirectBytesPerRow + 4), direct_bytes / 8 * 9});
  return rows * RowBytes(builder.columns) + (builder.keys > 0 ? slots + rows * sizeof(uint32_t) : 0);
}

}  // namespace tessera::kernels
