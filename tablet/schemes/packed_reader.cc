#include "tablet/schemes/packed_reader.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>
#include <utility>

#include "tablet/schemes/bit_packing.h"
#include "tablet/schemes/scaled_code.h"
#include "tablet/schemes/write_run.h"

namespace tessera {
namespace {

/// Larger dictionaries take longer to unpack than few rows, and more memory than a cache has.
constexpr uint64_t kMostEntries = 1 << 16;
/// Shorter runs take longer to unpack and to look up than rows.
constexpr uint64_t kLeastRowsOfRun = 2;
constexpr uint32_t kMostRows = PackedReader::kMostRows, kRoom = PackedReader::kRoom;

/// Rows that are read: place i of what is written is row first + i.
struct RowRange {
  uint32_t first, count;

  template <class F>
  void Each(F f) const {
    for (uint32_t i = 0; i < count; ++i) f(i);
  }
};

struct RowPlaces {
  uint32_t first;
  std::span<const uint16_t> places;

  template <class F>
  void Each(F f) const {
    for (const uint16_t i : places) f(uint32_t{i});
  }
};

uint64_t WordAt(const uint8_t* words, uint64_t number) {
  uint64_t word;
  memcpy(&word, words + number * sizeof word, sizeof word);
  return word;
}

/// Integer `row` of `bits` bits each, 1 to 64.
uint64_t BitsAt(const uint8_t* words, uint64_t row, int bits) {
  const uint64_t at = row * static_cast<uint64_t>(bits), shift = at % 64;
  uint64_t value = WordAt(words, at / 64) >> shift;
  if (shift + static_cast<uint64_t>(bits) > 64) value |= WordAt(words, at / 64 + 1) << (64 - shift);
  return value & (~uint64_t{0} >> (64 - bits));
}

template <class Value>
void ReadBits(const uint8_t* words, const PackedNode& node, uint64_t base, const RowPlaces& rows, Value* out) {
  const int bits = node.bits;
  if (bits == 0) return rows.Each([&](uint32_t i) { out[i] = static_cast<Value>(base); });
  // Most are within the 8 bytes from their first one on, and so are these in the stream.
  constexpr int kMostInWord = 57;
  const uint64_t mask = ~uint64_t{0} >> (64 - bits), last = node.bytes < 8 ? 0 : node.bytes - 8;
  rows.Each([&](uint32_t i) {
    const uint64_t row = uint64_t{rows.first} + i, at = row * static_cast<uint64_t>(bits);
    if (bits <= kMostInWord && at / 8 <= last) {
      uint64_t word;
      memcpy(&word, words + at / 8, sizeof word);
      out[i] = static_cast<Value>((word >> at % 8 & mask) + base);
    } else {
      out[i] = static_cast<Value>(BitsAt(words, row, bits) + base);
    }
  });
}

template <class Value>
void ReadBits(const uint8_t* words, const PackedNode& node, uint64_t base, RowRange rows, Value* out) {
  constexpr uint32_t kBlock = 64;  // of which UnpackBits makes a multiple of whole words
  for (; rows.count > 0 && rows.first % kBlock != 0; ++rows.first, --rows.count) {
    *out++ = static_cast<Value>((node.bits == 0 ? 0 : BitsAt(words, rows.first, node.bits)) + base);
  }
  UnpackBits(words + uint64_t{rows.first} / kBlock * node.bits * sizeof(uint64_t), rows.count, node.bits, base, out);
}

}  // namespace

std::unique_ptr<const PackedReader> PackedReader::Open(const uint8_t* stream, PackedTree tree, int width,
                                                       const ScaledCodes* scaled, const std::optional<Bounds>& bounds) {
  std::unique_ptr<PackedReader> reader(new PackedReader(stream, std::move(tree), width, scaled, bounds));
  const bool is_width = width == 1 || width == 2 || width == 4 || width == 8;
  if (!is_width || reader->Prepare(0, width) == 0) return nullptr;
  return reader;
}

PackedReader::PackedReader(const uint8_t* stream, PackedTree tree, int width, const ScaledCodes* scaled,
                           const std::optional<Bounds>& bounds)
    : stream_(stream),
      tree_(std::move(tree)),
      width_(width),
      scaled_(scaled == nullptr ? ScaledCodes() : *scaled),
      bounds_(bounds),
      second_(tree_.size()),
      unpacked_(tree_.size()) {}

size_t PackedReader::Prepare(size_t at, int width) {
  const PackedNode& node = tree_[at];
  switch (static_cast<Scheme>(node.scheme)) {
    case Scheme::kNs:
      return node.bits <= 8 * width ? at + 1 : 0;
    case Scheme::kFor:
      return Prepare(at + 1, width);
    case Scheme::kScale:
      return Prepare(at + 1, sizeof(uint64_t));
    case Scheme::kSep:
      second_[at] = Prepare(at + 1, width);
      return second_[at] == 0 ? 0 : Prepare(second_[at], width);
    case Scheme::kDict:
      if (node.parameter > kMostEntries) return 0;
      unpacked_[at] = {node.parameter,
                       std::make_unique_for_overwrite<uint8_t[]>(node.parameter * static_cast<size_t>(width))};
      second_[at] = UnpackAll(at + 1, width, unpacked_[at].values.get());
      return second_[at] == 0 ? 0 : Prepare(second_[at], sizeof(uint32_t));
    case Scheme::kRle:
      return node.parameter * kLeastRowsOfRun <= node.values ? PrepareRuns(at, width) : 0;
    default:
      return 0;
  }
}

size_t PackedReader::PrepareRuns(size_t at, int width) {
  const PackedNode& node = tree_[at];
  const size_t runs = node.parameter;
  Unpacked& of = unpacked_[at];
  of = {runs, std::make_unique_for_overwrite<uint8_t[]>(runs * static_cast<size_t>(width)),
        std::make_unique_for_overwrite<uint32_t[]>(runs)};
  const size_t lengths = UnpackAll(at + 1, width, of.values.get());
  const size_t behind =
      lengths == 0 ? 0 : UnpackAll(lengths, sizeof(uint32_t), reinterpret_cast<uint8_t*>(of.ends.get()));
  if (behind == 0) return 0;
  uint64_t rows = 0;
  for (size_t run = 0; run < runs; ++run) {  // ends are lengths less 1 so far
    rows += uint64_t{of.ends[run]} + 1;
    of.ends[run] = static_cast<uint32_t>(rows);
  }
  return rows == node.values ? behind : 0;
}

size_t PackedReader::UnpackAll(size_t at, int width, uint8_t* out) const {
  const size_t end = EndOfTree(tree_, at);
  const auto node = [&](size_t n) { return tree_.begin() + static_cast<std::ptrdiff_t>(n); };
  return UnpackStream(stream_, PackedTree(node(at), node(end)), width, nullptr, out) == nullptr ? end : 0;
}

const char* PackedReader::Read(uint32_t first, uint32_t count, uint8_t* out) const {
  assert(count <= kMostRows);
  return Read(RowRange{first, count}, out);
}

const char* PackedReader::ReadPlaces(uint32_t first, std::span<const uint16_t> places, uint8_t* out) const {
  return Read(RowPlaces{first, places}, out);
}

template <class Rows>
const char* PackedReader::Read(const Rows& rows, uint8_t* out) const {
  switch (width_) {
    case 1:
      return ReadChecked<uint8_t>(rows, out);
    case 2:
      return ReadChecked<uint16_t>(rows, out);
    case 4:
      return ReadChecked<uint32_t>(rows, out);
    default:
      return ReadChecked<uint64_t>(rows, out);
  }
}

template <class Value, class Rows>
const char* PackedReader::ReadChecked(const Rows& rows, uint8_t* out) const {
  Value* const values = reinterpret_cast<Value*>(out);
  if (const char* reason = ReadNode(0, rows, values)) return reason;
  if (!bounds_) return nullptr;
  const Value greatest = static_cast<Value>(bounds_->greatest),
              null = static_cast<Value>(bounds_->null.value_or(greatest));
  Value beyond = 0;
  rows.Each([&](uint32_t i) { beyond |= static_cast<Value>((values[i] > greatest) & (values[i] != null)); });
  return beyond != 0 ? "a code without meaning" : nullptr;
}

template <class Value, class Rows>
const char* PackedReader::ReadNode(size_t at, const Rows& rows, Value* out) const {
  const PackedNode& node = tree_[at];
  switch (static_cast<Scheme>(node.scheme)) {
    case Scheme::kNs:
      ReadBits(stream_ + node.offset, node, 0, rows, out);
      return nullptr;
    case Scheme::kFor:
      return ReadFor(at, rows, out);
    case Scheme::kDict:
      return ReadDictionary(at, rows, out);
    case Scheme::kRle:
      ReadRuns(at, rows, out);
      return nullptr;
    case Scheme::kSep:
      return ReadSeparated(at, rows, out);
    default:
      return ReadScaled(at, rows, out);
  }
}

template <class Value, class Rows>
const char* PackedReader::ReadFor(size_t at, const Rows& rows, Value* out) const {
  const uint64_t base = tree_[at].parameter;
  if (const PackedNode& child = tree_[at + 1]; child.scheme == static_cast<uint8_t>(Scheme::kNs)) {
    ReadBits(stream_ + child.offset, child, base, rows, out);
    return nullptr;
  }
  if (const char* reason = ReadNode(at + 1, rows, out)) return reason;
  rows.Each([&](uint32_t i) { out[i] = static_cast<Value>(out[i] + base); });
  return nullptr;
}

template <class Value, class Rows>
void PackedReader::ReadRuns(size_t at, const Rows& rows, Value* out) const {
  const Unpacked& of = unpacked_[at];
  const Value* const values = reinterpret_cast<const Value*>(of.values.get());
  const uint32_t* const ends = of.ends.get();
  auto run = static_cast<size_t>(std::upper_bound(ends, ends + of.count, rows.first) - ends);
  if constexpr (std::is_same_v<Rows, RowRange>) {
    for (uint32_t i = 0; i < rows.count; ++run) {
      const uint32_t end = std::min(ends[run] - rows.first, rows.count);
      WriteRun(values[run], end - i, out + i);
      i = end;
    }
  } else {
    rows.Each([&](uint32_t i) {
      const uint32_t row = rows.first + i;
      if (ends[run] <= row) {  // the row's run is one of the next kMostRows
        const size_t last = std::min(of.count, run + 1 + kMostRows);
        run = static_cast<size_t>(std::upper_bound(ends + run + 1, ends + last, row) - ends);
      }
      out[i] = values[run];
    });
  }
}

template <class Value, class Rows>
const char* PackedReader::ReadDictionary(size_t at, const Rows& rows, Value* out) const {
  const Value* const values = reinterpret_cast<const Value*>(unpacked_[at].values.get());
  uint32_t numbers[kRoom];
  if (const char* reason = ReadNode(second_[at], rows, numbers)) return reason;
  uint32_t greatest = 0;
  rows.Each([&](uint32_t i) { greatest = std::max(greatest, numbers[i]); });
  if (greatest >= unpacked_[at].count) return "a number after the end of its dictionary";
  rows.Each([&](uint32_t i) { out[i] = values[numbers[i]]; });
  return nullptr;
}

template <class Value, class Rows>
const char* PackedReader::ReadSeparated(size_t at, const Rows& rows, Value* out) const {
  const uint64_t divisor = tree_[at].parameter;
  Value remainders[kRoom];
  if (const char* reason = ReadNode(at + 1, rows, out)) return reason;
  if (const char* reason = ReadNode(second_[at], rows, remainders)) return reason;
  rows.Each([&](uint32_t i) { out[i] = static_cast<Value>(uint64_t{out[i]} * divisor + remainders[i]); });
  return nullptr;
}

template <class Value, class Rows>
const char* PackedReader::ReadScaled(size_t at, const Rows& rows, Value* out) const {
  const PackedNode& node = tree_[at];
  uint64_t numbers[kRoom];
  if (const char* reason = ReadNode(at + 1, rows, numbers)) return reason;
  rows.Each([&](uint32_t i) { out[i] = static_cast<Value>(CodeOfScaled(numbers[i], node, scaled_)); });
  return nullptr;
}

}  // namespace tessera
