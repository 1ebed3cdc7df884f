#include "tablet/chunk/packed_chunk.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

namespace tessera {
namespace {

/// Smaller streams stay as they are: nodes have bytes as well, and there is little to win.
constexpr uint64_t kLeastPacked = 1024;
/// zstd shows on this much of the texts whether they can be packed.
constexpr size_t kTextSample = size_t{64} << 10;

/// Bytes of a value of the stream; 0: bytes that are no integers.
int WidthOf(const ChunkDescriptor& d, Stream s) {
  switch (s) {
    case kCodes:
      return d.width;
    case kEntryOffsets:
      return 8;
    case kNullBytes:
      return 1;
    default:
      return 0;
  }
}

template <class Value>
std::vector<uint64_t> Widen(const uint8_t* stream, uint64_t bytes) {
  const Value* values = reinterpret_cast<const Value*>(stream);
  return {values, values + bytes / sizeof(Value)};
}

std::vector<uint64_t> ValuesOf(const uint8_t* stream, uint64_t bytes, int width) {
  switch (width) {
    case 1:
      return Widen<uint8_t>(stream, bytes);
    case 2:
      return Widen<uint16_t>(stream, bytes);
    case 4:
      return Widen<uint32_t>(stream, bytes);
    default:
      return Widen<uint64_t>(stream, bytes);
  }
}

bool IsFloat(const ChunkDescriptor& d) {
  return d.type == static_cast<uint8_t>(TypeId::kDouble) || d.type == static_cast<uint8_t>(TypeId::kReal);
}

std::optional<std::vector<uint8_t>> PackTexts(std::span<const uint8_t> texts, CompressionGoal goal) {
  const int level = TextLevel(goal);
  if (level == 0) return std::nullopt;
  const double most = 1 - std::max(0.1, LeastSaving(goal));
  const std::span<const uint8_t> sample = texts.first(std::min(texts.size(), kTextSample));
  constexpr int kSampleLevel = 1;
  std::vector<uint8_t> packed = PackBytes(sample, kSampleLevel);
  if (static_cast<double>(packed.size()) > most * static_cast<double>(sample.size())) return std::nullopt;
  if (level == kSampleLevel && sample.size() == texts.size()) return packed;
  return PackBytes(texts, level);
}

std::optional<std::vector<uint8_t>> PackStream(const EncodedChunk& chunk, Stream s, CompressionGoal goal) {
  const ChunkDescriptor& d = chunk.descriptor;
  const uint8_t* const stream = chunk.streams.data() + d.streams[s].offset;
  const uint64_t bytes = d.streams[s].bytes;
  const int width = WidthOf(d, s);
  if (bytes < kLeastPacked || width > 8) return std::nullopt;
  if (width == 0) return PackTexts({stream, bytes}, goal);
  const std::vector<uint64_t> values = ValuesOf(stream, bytes, width);
  const std::optional<ScaledCodes> scaled = s == kCodes && IsFloat(d) ? std::optional(ScaledCodesOf(d)) : std::nullopt;
  const uint64_t distinct = s != kCodes ? 0 : d.entries != 0 ? d.entries : chunk.distinct.Estimate();
  const std::vector<SchemePlan> plans = PlanIntegers(values, distinct, scaled ? &*scaled : nullptr, goal);
  std::optional<PackedPlan> best = PackByPlan(values, plans, scaled ? &*scaled : nullptr, goal);
  const double most = (1 - LeastSaving(goal)) * static_cast<double>(bytes);
  if (!best || static_cast<double>(best->bytes.size()) > most) return std::nullopt;
  return std::move(best->bytes);
}

}  // namespace

ScaledCodes ScaledCodesOf(const ChunkDescriptor& d) {
  return {static_cast<uint64_t>(d.base), d.null_code, d.has_nulls != 0, d.type == static_cast<uint8_t>(TypeId::kReal)};
}

ScaledCodes ScaledCodesOf(const Chunk& chunk) {
  return {static_cast<uint64_t>(chunk.base), chunk.null_code, chunk.has_nulls, chunk.type.id == TypeId::kReal};
}

void PackChunk(CompressionGoal goal, EncodedChunk* chunk) {
  ChunkDescriptor& d = chunk->descriptor;
  if (goal == CompressionGoal::kNone || d.bytes < kLeastPacked) return;
  std::optional<std::vector<uint8_t>> packed[kStreams];
  bool any = false;
  for (int s = 0; s < kStreams; ++s) {
    packed[s] = PackStream(*chunk, static_cast<Stream>(s), goal);
    any |= packed[s].has_value();
  }
  if (!any) return;
  std::vector<uint8_t> streams;
  if (packed[kEntryBytes]) d.text_bytes = d.streams[kEntryBytes].bytes;
  for (int s = 0; s < kStreams; ++s) {
    StreamExtent& extent = d.streams[s];
    const uint8_t* from = chunk->streams.data() + extent.offset;
    if (packed[s]) {
      d.packed = static_cast<uint16_t>(d.packed | 1u << s);
      from = packed[s]->data();
      extent.bytes = packed[s]->size();
    }
    extent.offset = streams.size();
    streams.resize(streams.size() + AlignToStream(extent.bytes));
    if (extent.bytes != 0) memcpy(streams.data() + extent.offset, from, extent.bytes);
  }
  d.bytes = streams.size();
  chunk->streams = std::move(streams);
}

uint64_t UnpackedBytes(const ChunkDescriptor& d, uint32_t rows, Stream s) {
  switch (s) {
    case kCodes:
      return uint64_t{rows} * d.width;
    case kEntryOffsets:
      return d.streams[s].bytes == 0 ? 0 : (uint64_t{d.entries} + 1) * sizeof(uint64_t);
    case kEntryBytes:
      return IsPacked(d, s) ? d.text_bytes : d.streams[s].bytes;
    default:
      return d.streams[s].bytes == 0 ? 0 : rows;
  }
}

uint64_t UnpackedRoom(const ChunkDescriptor& d, uint32_t rows, bool codes) {
  uint64_t bytes = 0;
  for (int s = codes ? kCodes : kEntryOffsets; s < kStreams; ++s) {
    if (IsPacked(d, static_cast<Stream>(s))) bytes += AlignToStream(UnpackedBytes(d, rows, static_cast<Stream>(s)));
  }
  return bytes;
}

const char* UnpackChunk(const ChunkDescriptor& d, const uint8_t* file, bool codes, uint8_t* out, Chunk* chunk) {
  const ScaledCodes scaled = ScaledCodesOf(d);
  for (int i = codes ? kCodes : kEntryOffsets; i < kStreams; ++i) {
    const Stream s = static_cast<Stream>(i);
    if (!IsPacked(d, s)) continue;
    const uint64_t bytes = UnpackedBytes(d, chunk->rows, s);
    const int width = WidthOf(d, s);
    const uint8_t* const stream = file + d.streams[s].offset;
    if (width > 8) return "codes of 16 bytes that are packed";
    const bool is_scaled = s == kCodes && IsFloat(d);
    const uint64_t values = width == 0 ? bytes : bytes / static_cast<uint64_t>(width);
    PackedTree tree;
    const char* reason = ParsePackedStream(stream, d.streams[s].bytes, values, width, is_scaled, &tree);
    if (reason == nullptr) reason = UnpackStream(stream, tree, width, is_scaled ? &scaled : nullptr, out);
    if (reason != nullptr) return reason;
    const uint64_t padded = AlignToStream(bytes);
    memset(out + bytes, 0, padded - bytes);
    switch (s) {
      case kCodes:
        chunk->codes = out;
        chunk->codes_bytes = padded;
        break;
      case kEntryOffsets:
        chunk->entry_offsets = reinterpret_cast<const uint64_t*>(out);
        break;
      case kEntryBytes:
        chunk->entry_bytes = reinterpret_cast<const char*>(out);
        break;
      default:
        chunk->null_bytes = out;
        break;
    }
    out += padded;
  }
  return nullptr;
}

const char* CheckPackedCodes(const ChunkDescriptor& d, uint32_t rows, const uint8_t* file) {
  PackedTree tree;
  return ParsePackedStream(file + d.streams[kCodes].offset, d.streams[kCodes].bytes, rows, d.width, IsFloat(d), &tree);
}

const char* ParsePackedCodes(const Chunk& chunk, PackedTree* tree) {
  const bool all = chunk.packed_part == PackedPart::kAll;
  const char* const reason =
      ParsePackedStream(chunk.packed_codes, chunk.packed_bytes, all ? chunk.rows : chunk.packed_rows, chunk.width,
                        chunk.type.IsFloat(), tree);
  if (reason != nullptr || all) return reason;
  if (RunsIn(*tree) != chunk.rows) return "another number of runs than before";
  KeepOfRuns(chunk.packed_part == PackedPart::kRunValues, tree);
  return nullptr;
}

bool ArePlainBits(const Chunk& chunk) {
  PackedTree tree;
  return ParsePackedCodes(chunk, &tree) == nullptr && std::ranges::all_of(tree, [](const PackedNode& node) {
           return node.scheme == static_cast<uint8_t>(Scheme::kFor) || node.scheme == static_cast<uint8_t>(Scheme::kNs);
         });
}

namespace {

template <class Code>
uint32_t CountOf(uint64_t code, uint32_t rows, const uint64_t* stream) {
  const Code* const codes = reinterpret_cast<const Code*>(stream);
  return static_cast<uint32_t>(std::count(codes, codes + rows, static_cast<Code>(code)));
}

uint32_t CountNulls(const Chunk& chunk, uint32_t rows, const uint64_t* codes) {
  switch (chunk.width) {
    case 1:
      return CountOf<uint8_t>(chunk.null_code, rows, codes);
    case 2:
      return CountOf<uint16_t>(chunk.null_code, rows, codes);
    case 4:
      return CountOf<uint32_t>(chunk.null_code, rows, codes);
    default:
      return CountOf<uint64_t>(chunk.null_code, rows, codes);
  }
}

/// Whether the chunk has as many NULLs as it says, and no codes without meaning.
bool HasItsNulls(const Chunk& chunk, const PackedReader& reader) {
  uint64_t codes[PackedReader::kRoom];
  uint32_t nulls = 0;
  for (uint32_t row = 0; row < chunk.rows; row += PackedReader::kMostRows) {
    const uint32_t rows = std::min(chunk.rows - row, PackedReader::kMostRows);
    if (reader.Read(row, rows, reinterpret_cast<uint8_t*>(codes)) != nullptr) return false;
    nulls += CountNulls(chunk, rows, codes);
  }
  return nulls == chunk.null_count;
}

}  // namespace

std::unique_ptr<const PackedReader> OpenPackedCodes(const Chunk& chunk, bool checked) {
  PackedTree tree;
  if (chunk.packed_codes == nullptr || chunk.packed_part != PackedPart::kAll ||
      ParsePackedCodes(chunk, &tree) != nullptr)
    return nullptr;
  const ScaledCodes scaled = ScaledCodesOf(chunk);
  // (Also of codes that were checked: bytes of a file that is cut meanwhile turn into zeros.)
  PackedReader::Bounds bounds{chunk.GreatestCode(), std::nullopt};
  if (chunk.has_nulls) bounds.null = chunk.null_code;
  std::unique_ptr<const PackedReader> reader = PackedReader::Open(chunk.packed_codes, std::move(tree), chunk.width,
                                                                  chunk.type.IsFloat() ? &scaled : nullptr, bounds);
  const bool is_right = reader == nullptr || checked || !chunk.has_nulls || HasItsNulls(chunk, *reader);
  return is_right ? std::move(reader) : nullptr;
}

std::string DescribeChunk(const ChunkDescriptor& d, uint32_t rows, const uint8_t* file) {
  const auto describe = [&](Stream s) -> std::string {
    if (IsPacked(d, s)) {
      const int width = WidthOf(d, s);
      const uint64_t bytes = UnpackedBytes(d, rows, s);
      PackedTree tree;
      const char* const reason =
          ParsePackedStream(file + d.streams[s].offset, d.streams[s].bytes,
                            width == 0 ? bytes : bytes / static_cast<uint64_t>(width), width, IsFloat(d), &tree);
      return reason != nullptr ? reason : DescribePackedTree(tree);
    }
    if (s == kEntryBytes) return "PLAIN";
    return "NS" + std::to_string(8 * WidthOf(d, s));
  };
  switch (static_cast<Encoding>(d.encoding)) {
    case Encoding::kConstant:
      return "CONSTANT";
    case Encoding::kFrame: {
      // Codes are values less the least one, whatever is done to them then.
      const std::string codes = describe(kCodes);
      return codes.starts_with("FOR") || codes.starts_with("SCALE") ? codes : "FOR, " + codes;
    }
    case Encoding::kDictionary:
      return "DICT, [" + describe(kEntryBytes) + " | " + describe(kCodes) + "]";
    case Encoding::kPlain:
      return describe(kEntryBytes);
  }
  return "";
}

}  // namespace tessera
