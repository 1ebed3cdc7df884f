#include "tablet/schemes/packed_stream.h"

#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/uninitialized.h"
#include "tablet/schemes/bit_packing.h"
#include "tablet/schemes/different_values.h"
#include "tablet/schemes/scaled_code.h"
#include "tablet/schemes/write_run.h"

namespace tessera {
namespace {

constexpr uint64_t kMostBitmaps = 64;
/// Below it every integer is a double.
constexpr double kGreatestScaled = 9007199254740992.0;

uint64_t Words(uint64_t bytes) { return (bytes + 7) / 8; }

int BytesOfNsv(uint64_t value) { return std::max(1, (BitsOf(value) + 7) / 8); }

/// Writes the nodes and payloads of a tree.
class Packer {
 public:
  explicit Packer(const ScaledCodes* scaled) : scaled_(scaled) {}

  bool Add(std::span<const uint64_t> values, const SchemeTree& tree) {
    const size_t at = nodes_.size();
    nodes_.push_back({static_cast<uint8_t>(tree.scheme), 0, 0, static_cast<uint32_t>(values.size()), 0, 0, 0, 0});
    payload_starts_.push_back(payload_.size());
    bool done = false;
    switch (tree.scheme) {
      case Scheme::kNs:
        done = AddNs(at, values);
        break;
      case Scheme::kNsv:
        done = AddNsv(at, values);
        break;
      case Scheme::kFor:
        done = AddFor(at, values, tree);
        break;
      case Scheme::kDelta:
        done = AddDelta(at, values, tree);
        break;
      case Scheme::kRle:
        done = AddRle(at, values, tree);
        break;
      case Scheme::kDict:
        done = AddDict(at, values, tree);
        break;
      case Scheme::kBitmap:
        done = AddBitmap(at, values, tree);
        break;
      case Scheme::kSep:
        done = AddSep(at, values, tree);
        break;
      case Scheme::kScale:
        done = AddScale(at, values, tree);
        break;
      case Scheme::kZstd:
        break;
    }
    return done;
  }

  std::vector<uint8_t> Finish() {
    const uint64_t start = sizeof(PackedHeader) + nodes_.size() * sizeof(PackedNode);
    const PackedHeader header{static_cast<uint32_t>(nodes_.size()), 0, start + payload_.size() * 8};
    std::vector<uint8_t> out(header.bytes);
    for (size_t i = 0; i < nodes_.size(); ++i) nodes_[i].offset = start + payload_starts_[i] * 8;
    memcpy(out.data(), &header, sizeof header);
    memcpy(out.data() + sizeof header, nodes_.data(), nodes_.size() * sizeof(PackedNode));
    if (!payload_.empty()) memcpy(out.data() + start, payload_.data(), payload_.size() * 8);
    return out;
  }

 private:
  /// Room for the payload of node `at`. REQUIRES: none of its children is there yet.
  uint64_t* Payload(size_t at, uint64_t words) {
    nodes_[at].bytes = words * 8;
    payload_.resize(payload_.size() + words);
    return payload_.data() + payload_starts_[at];
  }

  bool AddNs(size_t at, std::span<const uint64_t> values) {
    uint64_t all = 0;
    for (const uint64_t value : values) all |= value;
    const int bits = BitsOf(all);
    nodes_[at].bits = static_cast<uint8_t>(bits);
    PackBits(values, bits, Payload(at, PackedWords(values.size(), bits)));
    return true;
  }

  bool AddNsv(size_t at, std::span<const uint64_t> values) {
    uint64_t bytes = 0;
    for (const uint64_t value : values) {
      if (value > UINT32_MAX) return false;
      bytes += static_cast<uint64_t>(BytesOfNsv(value));
    }
    nodes_[at].parameter = bytes;
    const uint64_t length_words = PackedWords(values.size(), 2);
    Values lengths;
    lengths.reserve(values.size());
    uint64_t* const payload = Payload(at, length_words + Words(bytes));
    if (bytes > 0) payload[length_words + Words(bytes) - 1] = 0;  // (its last bytes may be of no value)
    uint8_t* out = reinterpret_cast<uint8_t*>(payload + length_words);
    for (const uint64_t value : values) {
      const int length = BytesOfNsv(value);
      memcpy(out, &value, static_cast<size_t>(length));
      out += length;
      lengths.push_back(static_cast<uint64_t>(length - 1));
    }
    PackBits(lengths, 2, payload);
    return true;
  }

  bool AddFor(size_t at, std::span<const uint64_t> values, const SchemeTree& tree) {
    // The least as a signed number: differences that were taken modulo 2^64 lie around 0.
    int64_t base = INT64_MAX;
    for (const uint64_t value : values) base = std::min(base, static_cast<int64_t>(value));
    if (values.empty()) base = 0;
    nodes_[at].parameter = static_cast<uint64_t>(base);
    return Add(LessBase(values, static_cast<uint64_t>(base)), tree.children[0]);
  }

  bool AddDelta(size_t at, std::span<const uint64_t> values, const SchemeTree& tree) {
    if (values.empty()) return Add(values, tree.children[0]);
    nodes_[at].parameter = values[0];
    return Add(DeltasOf(values), tree.children[0]);
  }

  bool AddRle(size_t at, std::span<const uint64_t> values, const SchemeTree& tree) {
    Values runs, lengths;
    SplitRuns(values, &runs, &lengths);
    if (runs.empty()) return false;
    nodes_[at].parameter = runs.size();
    return Add(runs, tree.children[0]) && Add(lengths, tree.children[1]);
  }

  bool AddDict(size_t at, std::span<const uint64_t> values, const SchemeTree& tree) {
    if (values.empty()) return false;
    DifferentValues numbers(values);
    const Values different = numbers.Sort();
    nodes_[at].parameter = different.size();
    return Add(different, tree.children[0]) && Add(numbers.NumbersOf(values), tree.children[1]);
  }

  bool AddBitmap(size_t at, std::span<const uint64_t> values, const SchemeTree& tree) {
    Values different;
    for (const uint64_t value : values) {
      const auto place = std::lower_bound(different.begin(), different.end(), value);
      if (place != different.end() && *place == value) continue;
      if (different.size() == kMostBitmaps) return false;
      different.insert(place, value);
    }
    if (different.empty()) return false;
    nodes_[at].parameter = different.size();
    const uint64_t words = PackedWords(values.size(), 1);
    uint64_t* const payload = Payload(at, words * different.size());
    std::fill_n(payload, words * different.size(), 0);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto number = std::lower_bound(different.begin(), different.end(), values[i]) - different.begin();
      payload[static_cast<uint64_t>(number) * words + i / 64] |= uint64_t{1} << (i % 64);
    }
    return Add(different, tree.children[0]);
  }

  bool AddSep(size_t at, std::span<const uint64_t> values, const SchemeTree& tree) {
    const uint64_t divisor = tree.parameter;
    if (divisor == 0) return false;
    nodes_[at].parameter = divisor;
    Values quotients, remainders;
    Separate(values, divisor, &quotients, &remainders);
    return Add(quotients, tree.children[0]) && Add(remainders, tree.children[1]);
  }

  bool AddScale(size_t at, std::span<const uint64_t> values, const SchemeTree& tree) {
    if (scaled_ == nullptr || at != 0) return false;
    int64_t least = 0;
    uint64_t null = 0;
    const auto numbers = ScaleCodes(values, static_cast<int>(tree.parameter), *scaled_, &least, &null);
    if (!numbers) return false;
    nodes_[at].bits = static_cast<uint8_t>(tree.parameter);
    nodes_[at].parameter = static_cast<uint64_t>(least);
    nodes_[at].null = null;
    return Add(*numbers, tree.children[0]);
  }

  const ScaledCodes* const scaled_;
  std::vector<PackedNode> nodes_;
  std::vector<size_t> payload_starts_;  ///< by node, in words
  Values payload_;
};

/// What a scheme reads and writes, once ParsePackedStream has seen to it.
class Unpacker {
 public:
  Unpacker(const uint8_t* stream, const PackedTree& tree, const ScaledCodes* scaled)
      : stream_(stream), tree_(tree), scaled_(scaled) {}

  /// The next node and those below it.
  template <class Value>
  const char* Next(Value* out) {
    const PackedNode& node = tree_[next_++];
    const uint8_t* const payload = stream_ + node.offset;
    switch (static_cast<Scheme>(node.scheme)) {
      case Scheme::kNs:
        UnpackNs(node, payload, 0, out);
        return nullptr;
      case Scheme::kNsv:
        return UnpackNsv(node, payload, out);
      case Scheme::kFor:
        return UnpackFor(node, out);
      case Scheme::kDelta:
        return UnpackDelta(node, out);
      case Scheme::kRle:
        return UnpackRle(node, out);
      case Scheme::kDict:
        return UnpackDict(node, out);
      case Scheme::kBitmap:
        return UnpackBitmap(node, payload, out);
      case Scheme::kSep:
        return UnpackSep(node, out);
      case Scheme::kScale:
        return UnpackScale(node, out);
      case Scheme::kZstd:
        break;
    }
    return "a scheme for bytes among those for integers";
  }

  template <class Value>
  const char* Runs(Value* values, uint32_t* lengths) {
    uint64_t base = 0;
    while (tree_[next_].scheme == static_cast<uint8_t>(Scheme::kFor)) base += tree_[next_++].parameter;
    const PackedNode& node = tree_[next_++];
    const size_t runs = node.parameter;
    if (const char* reason = Next(values)) return reason;
    if (const char* reason = Next(lengths)) return reason;
    uint64_t rows = runs;
    for (size_t i = 0; i < runs; ++i) rows += lengths[i];
    if (rows != node.values) return rows > node.values ? kTooManyRows : kTooFewRows;
    for (size_t i = 0; base != 0 && i < runs; ++i) values[i] = static_cast<Value>(values[i] + base);
    return nullptr;
  }

 private:
  static constexpr char kTooManyRows[] = "runs of more rows than there are",
                        kTooFewRows[] = "runs of fewer rows than there are";

  template <class Value>
  static void UnpackNs(const PackedNode& node, const uint8_t* payload, uint64_t base, Value* out) {
    if (node.bits <= 8 * sizeof(Value)) return UnpackBits(payload, node.values, node.bits, base, out);
    UninitializedVector<uint64_t> wide(node.values);
    UnpackBits(payload, node.values, node.bits, base, wide.data());
    for (size_t i = 0; i < wide.size(); ++i) out[i] = static_cast<Value>(wide[i]);
  }

  template <class Value>
  static const char* UnpackNsv(const PackedNode& node, const uint8_t* payload, Value* out) {
    UninitializedVector<uint8_t> lengths(node.values);
    UnpackBits(payload, node.values, 2, 1, lengths.data());
    const uint8_t* in = payload + PackedWords(node.values, 2) * 8;
    const uint8_t* const end = in + node.parameter;
    size_t i = 0;
    // Without a branch on the length while 4 bytes can be read, which is all but the last three values.
    static constexpr uint32_t kMasks[] = {0, 0xFF, 0xFFFF, 0xFFFFFF, 0xFFFFFFFF};
    for (; i < lengths.size() && end - in >= 4; in += lengths[i++]) {
      uint32_t value;
      memcpy(&value, in, sizeof value);
      out[i] = static_cast<Value>(value & kMasks[lengths[i]]);
    }
    for (; i < lengths.size(); in += lengths[i++]) {
      if (lengths[i] > end - in) return "values of more bytes than there are";
      uint32_t value = 0;
      memcpy(&value, in, lengths[i]);
      out[i] = static_cast<Value>(value);
    }
    return in == end ? nullptr : "values of fewer bytes than there are";
  }

  template <class Value>
  const char* UnpackFor(const PackedNode& node, Value* out) {
    if (const PackedNode& child = tree_[next_]; child.scheme == static_cast<uint8_t>(Scheme::kNs)) {
      ++next_;
      UnpackNs(child, stream_ + child.offset, node.parameter, out);
      return nullptr;
    }
    if (const char* reason = Next(out)) return reason;
    for (size_t i = 0; i < node.values; ++i) out[i] = static_cast<Value>(out[i] + node.parameter);
    return nullptr;
  }

  template <class Value>
  const char* UnpackDelta(const PackedNode& node, Value* out) {
    if (node.values == 0) return Next(out);
    if (const char* reason = Next(out + 1)) return reason;
    Value value = out[0] = static_cast<Value>(node.parameter);
    for (size_t i = 1; i < node.values; ++i) out[i] = value = static_cast<Value>(value + out[i]);
    return nullptr;
  }

  template <class Value>
  const char* UnpackRle(const PackedNode& node, Value* out) {
    UninitializedVector<Value> runs(node.parameter);
    UninitializedVector<uint32_t> lengths(node.parameter);
    if (const char* reason = Next(runs.data())) return reason;
    if (const char* reason = Next(lengths.data())) return reason;
    size_t left = node.values;
    for (size_t i = 0; i < runs.size(); ++i) {
      const size_t length = size_t{lengths[i]} + 1;
      if (length > left) return kTooManyRows;
      if (length + kRunStep<Value> <= left) {
        WriteRun(runs[i], length, out);
      } else {
        std::fill_n(out, length, runs[i]);
      }
      out += length;
      left -= length;
    }
    return left == 0 ? nullptr : kTooFewRows;
  }

  template <class Value>
  const char* UnpackDict(const PackedNode& node, Value* out) {
    UninitializedVector<Value> different(node.parameter);
    UninitializedVector<uint32_t> rows(node.values);
    if (const char* reason = Next(different.data())) return reason;
    if (const char* reason = Next(rows.data())) return reason;
    uint32_t greatest = 0;
    for (const uint32_t row : rows) greatest = std::max(greatest, row);
    if (greatest >= different.size()) return "a number after the end of its dictionary";
    for (size_t i = 0; i < rows.size(); ++i) out[i] = different[rows[i]];
    return nullptr;
  }

  template <class Value>
  const char* UnpackBitmap(const PackedNode& node, const uint8_t* payload, Value* out) {
    UninitializedVector<Value> different(node.parameter);
    if (const char* reason = Next(different.data())) return reason;
    const uint64_t words = PackedWords(node.values, 1);
    uint64_t found = 0;
    for (size_t d = 0; d < different.size(); ++d) {
      for (uint64_t word = 0; word < words; ++word) {
        uint64_t bits;
        memcpy(&bits, payload + (d * words + word) * 8, sizeof bits);
        for (; bits != 0; bits &= bits - 1) {
          const uint64_t row = word * 64 + static_cast<uint64_t>(std::countr_zero(bits));
          if (row >= node.values) return "bits after the last row";
          out[row] = different[d];
          ++found;
        }
      }
    }
    // Two values for one row and none for another would give a row that was not written.
    if (found != node.values) return "a row without a value, or with two";
    for (uint64_t word = 0; word < words; ++word) {
      uint64_t all = 0;
      for (size_t d = 0; d < different.size(); ++d) {
        uint64_t bits;
        memcpy(&bits, payload + (d * words + word) * 8, sizeof bits);
        if ((all & bits) != 0) return "a row with two values";
        all |= bits;
      }
    }
    return nullptr;
  }

  template <class Value>
  const char* UnpackSep(const PackedNode& node, Value* out) {
    UninitializedVector<Value> remainders(node.values);
    if (const char* reason = Next(out)) return reason;
    if (const char* reason = Next(remainders.data())) return reason;
    for (size_t i = 0; i < remainders.size(); ++i) {
      out[i] = static_cast<Value>(uint64_t{out[i]} * node.parameter + remainders[i]);
    }
    return nullptr;
  }

  template <class Value>
  const char* UnpackScale(const PackedNode& node, Value* out) {
    UninitializedVector<uint64_t> numbers(node.values);
    if (const char* reason = Next(numbers.data())) return reason;
    for (size_t i = 0; i < numbers.size(); ++i) out[i] = static_cast<Value>(CodeOfScaled(numbers[i], node, *scaled_));
    return nullptr;
  }

  const uint8_t* const stream_;
  const PackedTree& tree_;
  const ScaledCodes* const scaled_;
  size_t next_ = 0;
};

/// Checks nodes one after the other, and what each says of those below it.
class TreeChecker {
 public:
  TreeChecker(uint64_t bytes, bool scaled, PackedTree* tree) : bytes_(bytes), scaled_(scaled), tree_(*tree) {}

  const char* Check(const uint8_t* stream, uint64_t values, int width) {
    if (bytes_ < sizeof(PackedHeader)) return "a packed stream without a header";
    PackedHeader header;
    memcpy(&header, stream, sizeof header);
    if (header.nodes == 0 || header.nodes > kMostSchemes || header.reserved != 0 || header.bytes != bytes_) {
      return "a packed stream with a wrong header";
    }
    offset_ = sizeof header + header.nodes * sizeof(PackedNode);
    if (offset_ > bytes_) return "a packed stream shorter than its nodes";
    tree_.resize(header.nodes);
    memcpy(tree_.data(), stream + sizeof header, header.nodes * sizeof(PackedNode));
    const char* const reason = width == 0 ? CheckBytes(values) : CheckNext(values, 1);
    if (reason != nullptr) return reason;
    if (next_ != tree_.size() || offset_ != bytes_) return "a packed stream longer than its tree";
    return nullptr;
  }

 private:
  const char* CheckPayload(const PackedNode& node, uint64_t bytes) {
    if (node.bytes != bytes || node.offset != offset_ || bytes > bytes_ - offset_) return "a payload of a wrong size";
    offset_ += bytes;
    return nullptr;
  }

  const char* CheckBytes(uint64_t values) {
    const PackedNode& node = tree_[next_++];
    if (node.scheme != static_cast<uint8_t>(Scheme::kZstd)) return "a scheme for integers where bytes are";
    if (node.bits != 0 || node.reserved != 0 || node.values != 0 || node.parameter != values || node.null != 0)
      return "a wrong node";
    if (node.bytes % 8 != 0) return "a payload of a wrong size";
    return CheckPayload(node, node.bytes);
  }

  const char* CheckNext(uint64_t values, int depth) {
    if (next_ == tree_.size()) return "a tree of schemes without an end";
    if (depth > kDeepestTree) return "a tree of schemes that is too deep";
    const PackedNode& node = tree_[next_++];
    if (node.scheme >= static_cast<uint8_t>(Scheme::kZstd)) return "an unknown scheme";
    const Scheme scheme = static_cast<Scheme>(node.scheme);
    if (node.reserved != 0 || node.values != values) return "a wrong node";
    if (scheme != Scheme::kScale && node.null != 0) return "a wrong node";
    if (scheme != Scheme::kScale && scheme != Scheme::kNs && node.bits != 0) return "a wrong node";
    uint64_t payload = 0, first = values, second = values;
    switch (scheme) {
      case Scheme::kNs:
        if (node.bits > 64 || node.parameter != 0) return "a wrong node";
        payload = PackedWords(values, node.bits) * 8;
        break;
      case Scheme::kNsv:
        if (node.parameter > values * 4) return "a wrong node";
        payload = (PackedWords(values, 2) + Words(node.parameter)) * 8;
        break;
      case Scheme::kDelta:
        first = values - std::min<uint64_t>(values, 1);
        break;
      case Scheme::kRle:
        if (node.parameter == 0 || node.parameter > values) return "a wrong node";
        first = second = node.parameter;
        break;
      case Scheme::kDict:
        if (node.parameter == 0 || node.parameter > values) return "a wrong node";
        first = node.parameter;
        break;
      case Scheme::kBitmap:
        if (node.parameter == 0 || node.parameter > kMostBitmaps || node.parameter > values) return "a wrong node";
        payload = PackedWords(values, 1) * node.parameter * 8;
        first = node.parameter;
        break;
      case Scheme::kSep:
        if (node.parameter == 0) return "a wrong node";
        break;
      case Scheme::kScale:
        if (!scaled_ || depth != 1 || node.bits > kGreatestPower) return "a wrong node";
        break;
      default:
        break;
    }
    if (const char* reason = CheckPayload(node, payload)) return reason;
    const int children = ChildrenOf(scheme);
    if (children >= 1) {
      if (const char* reason = CheckNext(first, depth + 1)) return reason;
    }
    return children == 2 ? CheckNext(second, depth + 1) : nullptr;
  }

  const uint64_t bytes_;
  const bool scaled_;
  PackedTree& tree_;
  size_t next_ = 0;
  uint64_t offset_ = 0;
};

template <class Value>
const char* Unpack(const uint8_t* stream, const PackedTree& tree, const ScaledCodes* scaled, uint8_t* out) {
  return Unpacker(stream, tree, scaled).Next(reinterpret_cast<Value*>(out));
}

std::string Describe(const PackedNode** node) {
  const PackedNode& n = *(*node)++;
  const Scheme scheme = static_cast<Scheme>(n.scheme);
  std::string out = NameOf(scheme);
  if (scheme == Scheme::kNs || scheme == Scheme::kScale) out += std::to_string(n.bits);
  const int children = ChildrenOf(scheme);
  if (children == 0) return out;
  if (children == 1) return out + ", " + Describe(node);
  const auto inner = [&] {
    const bool leaf = ChildrenOf(static_cast<Scheme>((*node)->scheme)) == 0;
    const std::string text = Describe(node);
    return leaf ? text : "[" + text + "]";
  };
  out += ", [" + inner();
  return out + " | " + inner() + "]";
}

}  // namespace

void SplitRuns(std::span<const uint64_t> values, Values* runs, Values* lengths) {
  // Where runs are short a branch at their ends would be guessed wrong, so each row is noted, and kept if it is one.
  Values& ends = *lengths;
  ends.resize(values.size());
  size_t count = 0;
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    ends[count] = i;
    count += values[i] != values[i + 1];
  }
  if (!values.empty()) ends[count++] = values.size() - 1;
  ends.resize(count);
  runs->resize(count);
  uint64_t start = 0;
  for (size_t run = 0; run < count; ++run) {
    const uint64_t end = ends[run];
    (*runs)[run] = values[end];
    (*lengths)[run] = end - start;
    start = end + 1;
  }
}

void Separate(std::span<const uint64_t> values, uint64_t divisor, Values* quotients, Values* remainders) {
  quotients->resize(values.size());
  remainders->resize(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    (*quotients)[i] = values[i] / divisor;
    (*remainders)[i] = values[i] % divisor;
  }
}

Values LessBase(std::span<const uint64_t> values, uint64_t base) {
  Values out(values.size());
  for (size_t i = 0; i < values.size(); ++i) out[i] = values[i] - base;
  return out;
}

Values DeltasOf(std::span<const uint64_t> values) {
  Values out(values.size() - 1);
  for (size_t i = 0; i < out.size(); ++i) out[i] = values[i + 1] - values[i];
  return out;
}

std::optional<Values> ScaleCodes(std::span<const uint64_t> codes, int power, const ScaledCodes& scaled, int64_t* least,
                                 uint64_t* null) {
  std::vector<int64_t> numbers(codes.size());
  int64_t min = INT64_MAX, max = INT64_MIN;
  for (size_t i = 0; i < codes.size(); ++i) {
    if (scaled.has_nulls && codes[i] == scaled.null_code) continue;
    const uint64_t ordered = codes[i] + scaled.base;
    const double number = scaled.single ? static_cast<double>(FromOrderedFloat32(static_cast<uint32_t>(ordered)))
                                        : FromOrderedFloat(ordered);
    const double product = std::nearbyint(number * kPowersOfTen[power]);
    if (!(std::abs(product) < kGreatestScaled)) return std::nullopt;
    numbers[i] = static_cast<int64_t>(product);
    // The same bits must come back: those of -0.0 do not, nor those of what is no decimal.
    if (CodeOfNumber(static_cast<double>(numbers[i]) / kPowersOfTen[power], scaled) != codes[i]) return std::nullopt;
    min = std::min(min, numbers[i]);
    max = std::max(max, numbers[i]);
  }
  if (min > max) return std::nullopt;
  *least = min;
  *null = scaled.has_nulls ? static_cast<uint64_t>(max - min) + 1 : UINT64_MAX;
  Values out(codes.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    const bool is_null = scaled.has_nulls && codes[i] == scaled.null_code;
    out[i] = is_null ? *null : static_cast<uint64_t>(numbers[i] - min);
  }
  return out;
}

std::optional<std::vector<uint8_t>> PackIntegers(std::span<const uint64_t> values, const SchemeTree& tree,
                                                 const ScaledCodes* scaled) {
  Packer packer(scaled);
  if (!packer.Add(values, tree)) return std::nullopt;
  return packer.Finish();
}

std::vector<uint8_t> PackBytes(std::span<const uint8_t> bytes, int level) {
  constexpr uint64_t kStart = sizeof(PackedHeader) + sizeof(PackedNode);
  std::vector<uint8_t> out(kStart + ZSTD_compressBound(bytes.size()));
  const size_t packed = ZSTD_compress(out.data() + kStart, out.size() - kStart, bytes.data(), bytes.size(), level);
  if (ZSTD_isError(packed)) return {};
  out.resize(kStart + Words(packed) * 8);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(kStart + packed), out.end(), uint8_t{0});
  const PackedHeader header{1, 0, out.size()};
  const PackedNode node{static_cast<uint8_t>(Scheme::kZstd), 0, 0, 0, bytes.size(), 0, kStart, out.size() - kStart};
  memcpy(out.data(), &header, sizeof header);
  memcpy(out.data() + sizeof header, &node, sizeof node);
  return out;
}

const char* ParsePackedStream(const uint8_t* stream, uint64_t bytes, uint64_t values, int width, bool scaled,
                              PackedTree* tree) {
  return TreeChecker(bytes, scaled, tree).Check(stream, values, width);
}

const char* UnpackStream(const uint8_t* stream, const PackedTree& tree, int width, const ScaledCodes* scaled,
                         uint8_t* out) {
  switch (width) {
    case 0: {
      const PackedNode& node = tree[0];
      // zstd finds the end of its frame; the payload may have up to 7 zeros after it.
      const size_t frame = ZSTD_findFrameCompressedSize(stream + node.offset, node.bytes);
      if (ZSTD_isError(frame) || Words(frame) * 8 != node.bytes) return "texts that zstd does not know";
      const size_t unpacked = ZSTD_decompress(out, node.parameter, stream + node.offset, frame);
      return ZSTD_isError(unpacked) || unpacked != node.parameter ? "texts that zstd does not unpack" : nullptr;
    }
    case 1:
      return Unpack<uint8_t>(stream, tree, scaled, out);
    case 2:
      return Unpack<uint16_t>(stream, tree, scaled, out);
    case 4:
      return Unpack<uint32_t>(stream, tree, scaled, out);
    default:
      return Unpack<uint64_t>(stream, tree, scaled, out);
  }
}

size_t EndOfTree(const PackedTree& tree, size_t at) {
  for (int open = 1; open > 0; ++at) open += ChildrenOf(static_cast<Scheme>(tree[at].scheme)) - 1;
  return at;
}

uint64_t RunsIn(const PackedTree& tree) {
  const auto root = std::ranges::find_if(
      tree, [](const PackedNode& node) { return node.scheme != static_cast<uint8_t>(Scheme::kFor); });
  return root != tree.end() && root->scheme == static_cast<uint8_t>(Scheme::kRle) ? root->parameter : 0;
}

void KeepOfRuns(bool values, PackedTree* tree) {
  const auto root = std::ranges::find(*tree, static_cast<uint8_t>(Scheme::kRle), &PackedNode::scheme);
  const auto first = static_cast<size_t>(root + 1 - tree->begin());
  const auto second = tree->begin() + static_cast<std::ptrdiff_t>(EndOfTree(*tree, first));
  if (values) {
    for (auto above = tree->begin(); above != root; ++above) above->values = static_cast<uint32_t>(root->parameter);
    tree->erase(second, tree->end());
    tree->erase(root);
  } else {
    tree->erase(tree->begin(), second);
  }
}

const char* UnpackRuns(const uint8_t* stream, const PackedTree& tree, int width, uint8_t* values, uint32_t* lengths) {
  Unpacker unpacker(stream, tree, nullptr);
  switch (width) {
    case 1:
      return unpacker.Runs(values, lengths);
    case 2:
      return unpacker.Runs(reinterpret_cast<uint16_t*>(values), lengths);
    case 4:
      return unpacker.Runs(reinterpret_cast<uint32_t*>(values), lengths);
    default:
      return unpacker.Runs(reinterpret_cast<uint64_t*>(values), lengths);
  }
}

std::string DescribePackedTree(const PackedTree& tree) {
  const PackedNode* node = tree.data();
  return Describe(&node);
}

}  // namespace tessera
