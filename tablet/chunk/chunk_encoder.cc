// The encoders: two passes over the rows (range, then codes) for numbers, a dictionary for text.
#include "tablet/chunk/chunk_encoder.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>
#include <string_view>

#include "tablet/values/enum_type.h"
#include "tablet/values/ordered_float.h"

namespace tessera {
namespace {

uint32_t CountRows(std::span<const ColumnPiece> pieces) {
  size_t rows = 0;
  for (const ColumnPiece& piece : pieces) rows += piece.rows;
  assert(rows >= 1 && rows <= kGreatestTabletRows);
  return static_cast<uint32_t>(rows);
}

const uint8_t* NullBytes(const ColumnPiece& piece) {
  return piece.column->null.empty() ? nullptr : piece.column->null.data() + piece.begin;
}

/// Places the streams, `bytes` each, one after the other and allocates them, zeroed.
void AllocateStreams(const uint64_t (&bytes)[kStreams], EncodedChunk* out) {
  uint64_t offset = 0;
  for (int s = 0; s < kStreams; ++s) {
    out->descriptor.streams[s] = {offset, bytes[s]};
    offset += AlignToStream(bytes[s]);
  }
  out->descriptor.bytes = offset;
  out->streams.assign(offset, 0);
}

uint8_t* StreamStart(EncodedChunk* out, Stream s) { return out->streams.data() + out->descriptor.streams[s].offset; }

// How 64-bit values are ordered and turned into the integers that codes are counted in.

struct IntegerKey {
  using Type = int64_t;
  static Type Of(int64_t value) { return value; }
  static uint64_t Counted(Type key) { return static_cast<uint64_t>(key); }
};

struct DoubleKey {
  using Type = uint64_t;
  static Type Of(int64_t value) { return OrderedFloat(std::bit_cast<double>(value)); }
  // -0.0 equals 0.0, so the two are counted as one value.
  static uint64_t Counted(Type key) { return key == OrderedFloat(-0.0) ? OrderedFloat(0.0) : key; }
};

struct RealKey {
  using Type = uint64_t;
  static Type Of(int64_t value) { return OrderedFloat32(static_cast<float>(std::bit_cast<double>(value))); }
  static uint64_t Counted(Type key) { return key == OrderedFloat32(-0.0f) ? OrderedFloat32(0.0f) : key; }
};

template <class Key>
struct Range {
  typename Key::Type min{}, max{};
  uint32_t nulls = 0;
};

template <class Key>
Range<Key> FindRange(std::span<const ColumnPiece> pieces) {
  using T = typename Key::Type;
  T min = std::numeric_limits<T>::max(), max = std::numeric_limits<T>::min();
  uint32_t nulls = 0;
  for (const ColumnPiece& piece : pieces) {
    const int64_t* values = piece.column->fixed.data() + piece.begin;
    if (const uint8_t* null = NullBytes(piece)) {
      for (size_t i = 0; i < piece.rows; ++i) {
        const T key = Key::Of(values[i]);
        const bool is_null = null[i] != 0;
        nulls += is_null;
        min = !is_null && key < min ? key : min;
        max = !is_null && key > max ? key : max;
      }
    } else {
      for (size_t i = 0; i < piece.rows; ++i) {
        const T key = Key::Of(values[i]);
        min = key < min ? key : min;
        max = key > max ? key : max;
      }
    }
  }
  return {min, max, nulls};
}

/// Counts the distinct values. While the range is small, a bitmap finds repeated values before they are hashed. That is
/// enough for most columns and takes less than a nanosecond a row.
template <class Key>
void CountDistinct(std::span<const ColumnPiece> pieces, const Range<Key>& range, uint32_t rows, DistinctCount* out) {
  const uint64_t base = static_cast<uint64_t>(range.min);
  const uint64_t span = static_cast<uint64_t>(range.max) - base;
  if (span < std::max<uint64_t>(65536, uint64_t{4} * rows)) {
    std::vector<uint64_t> seen(span / 64 + 1);
    for (const ColumnPiece& piece : pieces) {
      const int64_t* values = piece.column->fixed.data() + piece.begin;
      const uint8_t* null = NullBytes(piece);
      for (size_t i = 0; i < piece.rows; ++i) {
        if (null != nullptr && null[i] != 0) continue;
        const uint64_t code = static_cast<uint64_t>(Key::Of(values[i])) - base;
        seen[code / 64] |= uint64_t{1} << (code % 64);
      }
    }
    for (size_t word = 0; word < seen.size(); ++word) {
      for (uint64_t bits = seen[word]; bits != 0; bits &= bits - 1) {
        const uint64_t key = base + word * 64 + static_cast<uint64_t>(std::countr_zero(bits));
        out->Add(HashInteger(Key::Counted(static_cast<typename Key::Type>(key))));
      }
    }
    return;
  }
  for (const ColumnPiece& piece : pieces) {
    const int64_t* values = piece.column->fixed.data() + piece.begin;
    const uint8_t* null = NullBytes(piece);
    for (size_t i = 0; i < piece.rows; ++i) {
      if (null == nullptr || null[i] == 0) out->Add(HashInteger(Key::Counted(Key::Of(values[i]))));
    }
  }
}

/// The smallest width in bytes that holds codes 0 .. span, and one more code for NULL if `extra`; 9 if 8 bytes are too few.
int LeastWidth(uint64_t span, bool extra) {
  if (extra) {
    if (span == UINT64_MAX) return 9;
    ++span;
  }
  if (span <= UINT8_MAX) return 1;
  if (span <= UINT16_MAX) return 2;
  if (span <= UINT32_MAX) return 4;
  return 8;
}

template <class Key, class Code>
void WriteCodes(std::span<const ColumnPiece> pieces, uint64_t base, uint64_t null_code, uint8_t* stream) {
  for (const ColumnPiece& piece : pieces) {
    const int64_t* values = piece.column->fixed.data() + piece.begin;
    const uint8_t* null = NullBytes(piece);
    Code* codes = reinterpret_cast<Code*>(stream);
    if (null == nullptr) {
      for (size_t i = 0; i < piece.rows; ++i) {
        codes[i] = static_cast<Code>(static_cast<uint64_t>(Key::Of(values[i])) - base);
      }
    } else {
      for (size_t i = 0; i < piece.rows; ++i) {
        const uint64_t code = static_cast<uint64_t>(Key::Of(values[i])) - base;
        codes[i] = static_cast<Code>(null[i] != 0 ? null_code : code);
      }
    }
    stream += piece.rows * sizeof(Code);
  }
}

/// A code that no row uses, where the values span all 2^64 codes: among rows + 1 candidates one is free.
template <class Key>
uint64_t FindUnusedCode(std::span<const ColumnPiece> pieces, uint64_t base, uint32_t rows) {
  std::vector<bool> used(rows + 1);
  for (const ColumnPiece& piece : pieces) {
    for (size_t i = 0; i < piece.rows; ++i) {
      const size_t row = piece.begin + i;
      if (piece.column->IsNull(row)) continue;
      const uint64_t code = static_cast<uint64_t>(Key::Of(piece.column->fixed[row])) - base;
      if (code <= rows) used[code] = true;
    }
  }
  return static_cast<uint64_t>(std::find(used.begin(), used.end(), false) - used.begin());
}

/// An INTEGER or ordered value as the 128-bit integer of Chunk::min. The sign is extended for int64_t only.
template <class T>
int128_t Widen(T key) {
  return static_cast<int128_t>(key);
}

template <class Key>
void EncodeFixed(std::span<const ColumnPiece> pieces, bool counts, EncodedChunk* out) {
  ChunkDescriptor& d = out->descriptor;
  const uint32_t rows = CountRows(pieces);
  const Range<Key> range = FindRange<Key>(pieces);
  d.null_count = range.nulls;
  d.has_nulls = range.nulls > 0;
  if (range.nulls == rows) {
    d.encoding = static_cast<uint8_t>(Encoding::kConstant);
    d.min = 0;
    d.max = -1;
    AllocateStreams({0, 0, 0, 0}, out);
    return;
  }
  d.base = d.min = Widen(range.min);
  d.max = Widen(range.max);
  if (range.min == range.max && range.nulls == 0) {
    d.encoding = static_cast<uint8_t>(Encoding::kConstant);
    out->distinct.Add(HashInteger(Key::Counted(range.min)));
    AllocateStreams({0, 0, 0, 0}, out);
    return;
  }
  if (counts) CountDistinct(pieces, range, rows, &out->distinct);
  d.encoding = static_cast<uint8_t>(Encoding::kFrame);
  const uint64_t base = static_cast<uint64_t>(range.min);
  const uint64_t span = static_cast<uint64_t>(range.max) - base;
  const int width = LeastWidth(span, d.has_nulls != 0);
  d.width = static_cast<uint8_t>(std::min(width, 8));
  if (d.has_nulls != 0) d.null_code = width <= 8 ? span + 1 : FindUnusedCode<Key>(pieces, base, rows);
  AllocateStreams({uint64_t{rows} * d.width, 0, 0, 0}, out);
  uint8_t* codes = StreamStart(out, kCodes);
  switch (d.width) {
    case 1:
      WriteCodes<Key, uint8_t>(pieces, base, d.null_code, codes);
      break;
    case 2:
      WriteCodes<Key, uint16_t>(pieces, base, d.null_code, codes);
      break;
    case 4:
      WriteCodes<Key, uint32_t>(pieces, base, d.null_code, codes);
      break;
    default:
      WriteCodes<Key, uint64_t>(pieces, base, d.null_code, codes);
      break;
  }
}

/// Calls `visit(row of the chunk, value or nullptr for NULL)` for all rows of a wide column.
template <class Visit>
void ForEachWide(std::span<const ColumnPiece> pieces, Visit visit) {
  size_t at = 0;
  for (const ColumnPiece& piece : pieces) {
    const int128_t* values = piece.column->wide.data() + piece.begin;
    const uint8_t* null = NullBytes(piece);
    for (size_t i = 0; i < piece.rows; ++i, ++at) visit(at, null != nullptr && null[i] != 0 ? nullptr : values + i);
  }
}

template <class Code>
void WriteWideCodes(std::span<const ColumnPiece> pieces, int128_t base, Code null_code, uint8_t* stream) {
  ForEachWide(pieces, [&](size_t row, const int128_t* value) {
    const Code code = value == nullptr ? null_code : static_cast<Code>(*value - base);
    memcpy(stream + row * sizeof code, &code, sizeof code);
  });
}

/// The greatest number below max that is no value.
int128_t UnusedBelow(std::span<const ColumnPiece> pieces, int128_t max) {
  // Of as many numbers as rows one is free, as max is one of the values.
  const uint32_t rows = CountRows(pieces);
  std::vector<bool> used(rows);
  ForEachWide(pieces, [&](size_t, const int128_t* value) {
    if (value != nullptr && *value < max && *value >= max - rows) used[static_cast<size_t>(max - 1 - *value)] = true;
  });
  const auto free = std::find(used.begin(), used.end(), false);
  return max - 1 - (free - used.begin());
}

void EncodeWide(std::span<const ColumnPiece> pieces, EncodedChunk* out) {
  ChunkDescriptor& d = out->descriptor;
  const uint32_t rows = CountRows(pieces);
  int128_t min = kInt128Max, max = kInt128Min;
  ForEachWide(pieces, [&](size_t, const int128_t* value) {
    if (value == nullptr) {
      ++d.null_count;
      return;
    }
    min = std::min(min, *value);
    max = std::max(max, *value);
    out->distinct.Add(HashWide(*value));
  });
  d.has_nulls = d.null_count > 0;
  if (d.null_count == rows) {
    d.encoding = static_cast<uint8_t>(Encoding::kConstant);
    d.min = 0;
    d.max = -1;
    AllocateStreams({0, 0, 0, 0}, out);
    return;
  }
  d.base = d.min = min;
  d.max = max;
  if (min == max && d.null_count == 0) {
    d.encoding = static_cast<uint8_t>(Encoding::kConstant);
    AllocateStreams({0, 0, 0, 0}, out);
    return;
  }
  d.encoding = static_cast<uint8_t>(Encoding::kFrame);
  const uint128_t span = static_cast<uint128_t>(max) - static_cast<uint128_t>(min);
  const int width = span > UINT64_MAX ? 9 : LeastWidth(static_cast<uint64_t>(span), d.has_nulls != 0);
  d.width = static_cast<uint8_t>(width <= 8 ? width : 16);
  if (d.width == 16) {
    d.base = 0;
    if (d.has_nulls != 0) d.null_code_wide = max < kInt128Max ? max + 1 : UnusedBelow(pieces, max);
  } else if (d.has_nulls != 0) {
    d.null_code = static_cast<uint64_t>(span) + 1;
  }
  AllocateStreams({uint64_t{rows} * d.width, 0, 0, 0}, out);
  uint8_t* codes = StreamStart(out, kCodes);
  switch (d.width) {
    case 1:
      WriteWideCodes<uint8_t>(pieces, min, static_cast<uint8_t>(d.null_code), codes);
      break;
    case 2:
      WriteWideCodes<uint16_t>(pieces, min, static_cast<uint16_t>(d.null_code), codes);
      break;
    case 4:
      WriteWideCodes<uint32_t>(pieces, min, static_cast<uint32_t>(d.null_code), codes);
      break;
    case 8:
      WriteWideCodes<uint64_t>(pieces, min, d.null_code, codes);
      break;
    default:
      WriteWideCodes<int128_t>(pieces, 0, d.null_code_wide, codes);
      break;
  }
}

/// Gives each row the number of its text in the order of first appearance.
class TextNumbering {
 public:
  explicit TextNumbering(uint32_t rows) : slots_(1024) { numbers_.reserve(rows); }

  void AddNull() {
    numbers_.push_back(kNullEntry);
    ++nulls_;
  }

  void Add(std::string_view text) {
    // Runs of one value are common in sorted and in low-cardinality data; comparing is cheaper than hashing.
    if (!entries_.empty() && last_ < entries_.size() && entries_[last_] == text) {
      numbers_.push_back(last_);
      return;
    }
    const uint64_t hash = HashBytes(text);
    size_t slot = hash & (slots_.size() - 1);
    for (;; slot = (slot + 1) & (slots_.size() - 1)) {
      const Slot& s = slots_[slot];
      if (s.number == kFree) break;
      if (s.hash == hash && entries_[s.number] == text) {
        last_ = s.number;
        numbers_.push_back(last_);
        return;
      }
    }
    last_ = static_cast<uint32_t>(entries_.size());
    slots_[slot] = {hash, last_};
    entries_.push_back(text);
    hashes_.push_back(hash);
    numbers_.push_back(last_);
    if (entries_.size() * 2 > slots_.size()) Grow();
  }

  const std::vector<std::string_view>& entries() const { return entries_; }
  const std::vector<uint64_t>& hashes() const { return hashes_; }
  const std::vector<uint32_t>& numbers() const { return numbers_; }
  uint32_t nulls() const { return nulls_; }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  struct Slot {
    uint64_t hash = 0;
    uint32_t number = kFree;
  };

  void Grow() {
    std::vector<Slot> larger(slots_.size() * 2);
    for (const Slot& s : slots_) {
      if (s.number == kFree) continue;
      size_t slot = s.hash & (larger.size() - 1);
      while (larger[slot].number != kFree) slot = (slot + 1) & (larger.size() - 1);
      larger[slot] = s;
    }
    slots_ = std::move(larger);
  }

  std::vector<Slot> slots_;
  std::vector<std::string_view> entries_;
  std::vector<uint64_t> hashes_;   ///< of the entries
  std::vector<uint32_t> numbers_;  ///< of the rows
  uint32_t last_ = 0;
  uint32_t nulls_ = 0;
};

template <class Visit>
void ForEachText(std::span<const ColumnPiece> pieces, Visit visit) {
  for (const ColumnPiece& piece : pieces) {
    const uint8_t* null = NullBytes(piece);
    const uint64_t* offsets = piece.column->offsets.data() + piece.begin;
    const char* bytes = piece.column->bytes.data();
    for (size_t i = 0; i < piece.rows; ++i) {
      if (null != nullptr && null[i] != 0) {
        visit(true, std::string_view());
      } else if (!visit(false, std::string_view(bytes + offsets[i], offsets[i + 1] - offsets[i]))) {
        return;
      }
    }
  }
}

/// Appends entries to the offset and byte streams.
class EntryWriter {
 public:
  explicit EntryWriter(EncodedChunk* out)
      : offsets_(StreamStart(out, kEntryOffsets)), bytes_(StreamStart(out, kEntryBytes)) {}
  void Add(std::string_view text) {
    if (!text.empty()) memcpy(bytes_ + at_, text.data(), text.size());
    at_ += text.size();
    memcpy(offsets_ + ++entry_ * sizeof at_, &at_, sizeof at_);
  }

 private:
  uint8_t* offsets_;  ///< the first offset, 0, is there from the start
  uint8_t* bytes_;
  uint64_t at_ = 0;
  size_t entry_ = 0;
};

/// Nearly unique text: offsets and bytes in row order.
void EncodePlain(std::span<const ColumnPiece> pieces, uint32_t rows, bool counts, EncodedChunk* out) {
  ChunkDescriptor& d = out->descriptor;
  d.encoding = static_cast<uint8_t>(Encoding::kPlain);
  d.entries = rows;
  uint64_t bytes = 0;
  ForEachText(pieces, [&](bool is_null, std::string_view text) {
    d.null_count += is_null;
    bytes += text.size();
    return true;
  });
  d.has_nulls = d.null_count > 0;
  d.min = 0;
  d.max = rows - 1;
  AllocateStreams({0, (uint64_t{rows} + 1) * sizeof(uint64_t), bytes, d.has_nulls != 0 ? rows : 0u}, out);
  EntryWriter entries(out);
  uint8_t* null_bytes = StreamStart(out, kNullBytes);
  size_t row = 0;
  ForEachText(pieces, [&](bool is_null, std::string_view text) {
    entries.Add(text);
    if (is_null) {
      null_bytes[row] = 1;
    } else if (counts) {
      out->distinct.Add(HashBytes(text));
    }
    ++row;
    return true;
  });
}

template <class Code>
void WriteRanks(const std::vector<uint32_t>& numbers, const std::vector<uint32_t>& ranks, uint32_t null_code,
                uint8_t* stream) {
  Code* codes = reinterpret_cast<Code*>(stream);
  for (size_t i = 0; i < numbers.size(); ++i) {
    codes[i] = static_cast<Code>(numbers[i] == kNullEntry ? null_code : ranks[numbers[i]]);
  }
}

void SetType(const SqlType& type, ChunkDescriptor* d) {
  d->type = static_cast<uint8_t>(type.id);
  d->precision = type.precision;
  d->scale = type.scale;
  d->length = StoredLength(type);
}

/// Sorts the entries, and writes them and the codes of the rows.
void EncodeDictionary(const std::vector<std::string_view>& texts, const std::vector<uint32_t>& numbers, uint32_t nulls,
                      EncodedChunk* out) {
  ChunkDescriptor& d = out->descriptor;
  const uint32_t entries = static_cast<uint32_t>(texts.size());
  std::vector<uint32_t> order(entries);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return texts[a] < texts[b]; });
  std::vector<uint32_t> ranks(entries);
  uint64_t bytes = 0;
  for (uint32_t rank = 0; rank < entries; ++rank) {
    ranks[order[rank]] = rank;
    bytes += texts[order[rank]].size();
  }

  d.entries = entries;
  d.null_count = nulls;
  d.has_nulls = d.null_count > 0;
  d.min = 0;
  d.max = static_cast<int128_t>(entries) - 1;
  const bool constant = entries == 0 || (entries == 1 && d.null_count == 0);
  if (constant) {
    d.encoding = static_cast<uint8_t>(Encoding::kConstant);
  } else {
    d.encoding = static_cast<uint8_t>(Encoding::kDictionary);
    d.width = static_cast<uint8_t>(LeastWidth(entries - 1, d.has_nulls != 0));
    if (d.has_nulls != 0) d.null_code = entries;
  }
  AllocateStreams({uint64_t{numbers.size()} * d.width, (uint64_t{entries} + 1) * sizeof(uint64_t), bytes, 0}, out);
  EntryWriter writer(out);
  for (uint32_t number : order) writer.Add(texts[number]);
  uint8_t* codes = StreamStart(out, kCodes);
  switch (d.width) {
    case 0:
      break;
    case 1:
      WriteRanks<uint8_t>(numbers, ranks, entries, codes);
      break;
    case 2:
      WriteRanks<uint16_t>(numbers, ranks, entries, codes);
      break;
    default:
      WriteRanks<uint32_t>(numbers, ranks, entries, codes);
      break;
  }
}

void EncodeText(std::span<const ColumnPiece> pieces, bool counts, EncodedChunk* out) {
  const uint32_t rows = CountRows(pieces);
  // A dictionary is worth it if its entries repeat. With more than half as many entries as rows, sorting them and
  // storing codes costs more than it saves. Up to 256 entries always pay, because a code is one byte.
  const size_t greatest_entries = std::max<size_t>(256, rows / 2);
  TextNumbering numbering(rows);
  bool plain = false;
  ForEachText(pieces, [&](bool is_null, std::string_view text) {
    if (is_null) {
      numbering.AddNull();
      return true;
    }
    numbering.Add(text);
    plain = numbering.entries().size() > greatest_entries;
    return !plain;
  });
  if (plain) {
    EncodePlain(pieces, rows, counts, out);
    return;
  }

  const std::vector<std::string_view>& texts = numbering.entries();
  for (size_t i = 0; counts && i < texts.size(); ++i) out->distinct.Add(numbering.hashes()[i]);
  EncodeDictionary(texts, numbering.numbers(), numbering.nulls(), out);
}

}  // namespace

EncodedChunk EncodeNumberedTexts(const SqlType& type, const ColumnVector& entries, std::span<const uint32_t> numbers) {
  EncodedChunk out;
  SetType(type, &out.descriptor);
  // Each text that a row has gets one number: a dictionary has no other entries.
  const size_t all = entries.size();
  std::vector<uint8_t> used(all);
  uint32_t nulls = 0;
  for (const uint32_t number : numbers) {
    if (number == kNullEntry) {
      ++nulls;
    } else {
      used[number] = 1;
    }
  }
  TextNumbering numbering(static_cast<uint32_t>(all));
  std::vector<uint32_t> number_of(all), rows(numbers.size());
  for (size_t entry = 0; entry < all; ++entry) {
    if (used[entry] == 0) continue;
    numbering.Add(entries.Text(entry));
    number_of[entry] = numbering.numbers().back();
  }
  for (size_t row = 0; row < rows.size(); ++row)
    rows[row] = numbers[row] == kNullEntry ? kNullEntry : number_of[numbers[row]];
  EncodeDictionary(numbering.entries(), rows, nulls, &out);
  return out;
}

EncodedChunk EncodeChunk(const SqlType& type, std::span<const ColumnPiece> pieces, bool counts) {
  EncodedChunk out;
  SetType(type, &out.descriptor);
  switch (type.storage()) {
    case StorageClass::kInt:
      EncodeFixed<IntegerKey>(pieces, counts, &out);
      break;
    case StorageClass::kFloat:
      if (type.id == TypeId::kReal) {
        EncodeFixed<RealKey>(pieces, counts, &out);
      } else {
        EncodeFixed<DoubleKey>(pieces, counts, &out);
      }
      break;
    case StorageClass::kWide:
      EncodeWide(pieces, &out);
      break;
    case StorageClass::kText:
      EncodeText(pieces, counts, &out);
      break;
  }
  return out;
}

}  // namespace tessera
