// Packed tablet files of a stranger: streams by trees of schemes of every shape, of which nodes are changed, exchanged,
// left out and put in, while offsets, sizes and checksums are made right again, so that what lies after them is
// reached. Descriptors lie about sizes and kinds, files are cut. Each tablet is refused as corrupt, or every chunk of it
// can be used. Where checksums are left as they were, no change may stay unnoticed. A GPU, or the emulated one, which
// unpacks codes that were not looked at, refuses the same tablets and reads the same rows.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>

#include "base/status.h"
#include "compiler/compiler.h"
#include "kernels/kernels.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/chunk/chunk_decoder.h"
#include "tablet/chunk/packed_chunk.h"
#include "tablet/files/tablet.h"
#include "tablet/files/tablet_file.h"
#include "tablet/schemes/packed_stream.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tests/tablet/sample_database.h"
#include "tests/torture/campaign.h"
#include "vm/run/statistics.h"
#include "vm/vm.h"

namespace tessera {
namespace {

constexpr size_t kNodes = sizeof(PackedHeader);

/// Around the edges of groups of values that are unpacked together.
constexpr uint32_t kRows[] = {1, 2, 63, 64, 65, 500, 1024, 1025, 3000};

/// The shapes that the schemes are for.
enum class Shape { kSorted, kRuns, kFew, kSmall, kParts, kRandom, kCount };

uint64_t ValueOf(Campaign* campaign, Shape shape, uint64_t row, uint64_t before) {
  switch (shape) {
    case Shape::kSorted:
      return before + campaign->Random(3);
    case Shape::kRuns:
      return campaign->Random(20) == 0 ? campaign->Random(1000) : before;
    case Shape::kFew:
      return campaign->Random(5) * 1000;
    case Shape::kSmall:
      return campaign->Random(200);
    case Shape::kParts:
      return (campaign->Random(40) + row / 100) * 86400 + campaign->Random(4);
    default:
      return campaign->random()() >> 34;
  }
}

std::vector<SqlType> Types() {
  return {SqlType::Of(TypeId::kInteger),
          SqlType::Of(TypeId::kBigint),
          SqlType::Of(TypeId::kDouble),
          SqlType::Of(TypeId::kReal),
          SqlType::Text(),
          SqlType::Text(),
          SqlType::Of(TypeId::kBoolean),
          {TypeId::kDecimal, 30, 2, 0}};
}

/// A column of each type; the first text has few different values, the second many.
RowBatch MakeRows(Campaign* campaign, uint32_t rows) {
  RowBatch batch;
  batch.rows = rows;
  const std::vector<SqlType> types = Types();
  for (size_t c = 0; c < types.size(); ++c) {
    const SqlType& type = types[c];
    ColumnVector& column = batch.columns.emplace_back();
    column.type = type;
    const auto shape = static_cast<Shape>(campaign->Random(static_cast<uint64_t>(Shape::kCount)));
    const bool nulls = campaign->Random(2) == 0;
    uint64_t v = 0;
    for (uint32_t row = 0; row < rows; ++row) {
      v = ValueOf(campaign, shape, row, v);
      const auto number = static_cast<int64_t>(v);
      if (nulls && campaign->Random(7) == 0) {
        column.Append(Value::Null(type));
      } else if (type.storage() == StorageClass::kText) {
        column.Append(Value::Text(c == 4 ? std::to_string(v % 17) : fmt::format("{} of the texts {}", v, row)));
      } else if (type.storage() == StorageClass::kFloat) {
        column.Append(Value::Float(type, type.id == TypeId::kReal ? static_cast<float>(number % 4096) / 4
                                                                  : static_cast<double>(number) / 100));
      } else if (type.storage() == StorageClass::kWide) {
        column.Append(Value::Wide(type, number));
      } else {
        column.Append(Value::Int(type, type.id == TypeId::kBoolean ? number & 1 : number));
      }
    }
  }
  return batch;
}

SchemeTree RandomTree(Campaign* campaign, int depth, bool scaled) {
  SchemeTree tree;
  const bool leaf = depth >= kDeepestTree || campaign->Random(4) == 0;
  if (scaled && campaign->Random(2) == 0) {
    tree = {Scheme::kScale, campaign->Random(4), {}};
  } else {
    tree.scheme = static_cast<Scheme>(campaign->Random(leaf ? 2 : static_cast<uint64_t>(Scheme::kScale)));
  }
  if (tree.scheme == Scheme::kSep) tree.parameter = 1 + campaign->Random(campaign->Random(2) == 0 ? 5 : 100000);
  for (int i = 0; i < ChildrenOf(tree.scheme); ++i) tree.children.push_back(RandomTree(campaign, depth + 1, false));
  return tree;
}

int SchemesOf(const SchemeTree& tree) {
  int schemes = 1;
  for (const SchemeTree& child : tree.children) schemes += SchemesOf(child);
  return schemes;
}

int WidthOf(const ChunkDescriptor& d, int stream) {
  const int widths[] = {d.width, 8, 0, 1};
  return widths[stream];
}

/// The chunk's streams one by one.
struct Streams {
  ChunkDescriptor descriptor;
  std::vector<uint8_t> bytes[kStreams];

  explicit Streams(const EncodedChunk& chunk) : descriptor(chunk.descriptor) {
    for (int s = 0; s < kStreams; ++s) {
      const auto begin = chunk.streams.begin() + static_cast<std::ptrdiff_t>(descriptor.streams[s].offset);
      bytes[s].assign(begin, begin + static_cast<std::ptrdiff_t>(descriptor.streams[s].bytes));
    }
  }

  EncodedChunk Chunk() const {
    EncodedChunk chunk;
    chunk.descriptor = descriptor;
    for (int s = 0; s < kStreams; ++s) {
      chunk.descriptor.streams[s] = {chunk.streams.size(), bytes[s].size()};
      chunk.streams.insert(chunk.streams.end(), bytes[s].begin(), bytes[s].end());
      chunk.streams.resize(AlignToStream(chunk.streams.size()));
    }
    chunk.descriptor.bytes = chunk.streams.size();
    return chunk;
  }
};

/// Packs a stream by a random tree, if one can be found that does.
void Pack(Campaign* campaign, int s, Streams* streams) {
  ChunkDescriptor& d = streams->descriptor;
  std::vector<uint8_t>& bytes = streams->bytes[s];
  const int width = WidthOf(d, s);
  if (bytes.empty() || width > 8) return;
  std::optional<std::vector<uint8_t>> packed;
  if (width == 0) {
    d.text_bytes = bytes.size();
    packed = PackBytes(bytes, 1);
  } else {
    std::vector<uint64_t> values(bytes.size() / static_cast<size_t>(width));
    for (size_t i = 0; i < values.size(); ++i)
      memcpy(&values[i], &bytes[i * static_cast<size_t>(width)], static_cast<size_t>(width));
    const bool is_float = s == kCodes && (d.type == static_cast<uint8_t>(TypeId::kDouble) ||
                                          d.type == static_cast<uint8_t>(TypeId::kReal));
    const ScaledCodes scaled = ScaledCodesOf(d);
    for (int tries = 0; tries < 20 && !packed; ++tries) {
      const SchemeTree tree = RandomTree(campaign, 1, is_float);
      if (SchemesOf(tree) <= kMostSchemes) packed = PackIntegers(values, tree, is_float ? &scaled : nullptr);
    }
  }
  if (!packed) return;
  d.packed = static_cast<uint16_t>(d.packed | 1u << s);
  bytes = std::move(*packed);
}

// ---- Changes of a packed stream

/// Numbers that are often one too many.
uint64_t Edge(Campaign* campaign, uint64_t around) {
  const uint64_t edges[] = {0,          1,          2,
                            63,         64,         65,
                            127,        128,        255,
                            256,        65535,      65536,
                            UINT32_MAX, UINT64_MAX, uint64_t{1} << 63,
                            INT64_MAX,  around + 1, around - 1,
                            around * 2, around / 2, ~around,
                            around + 8, around - 8, around ^ uint64_t{1} << campaign->Random(64)};
  return campaign->Random(8) == 0 ? campaign->random()() : edges[campaign->Random(std::size(edges))];
}

struct Tree {
  std::vector<PackedNode> nodes;
  std::vector<std::vector<uint8_t>> payloads;
};

Tree TreeOf(const std::vector<uint8_t>& stream) {
  PackedHeader header;
  memcpy(&header, stream.data(), sizeof header);
  Tree tree;
  tree.nodes.resize(header.nodes);
  memcpy(tree.nodes.data(), stream.data() + kNodes, header.nodes * sizeof(PackedNode));
  for (const PackedNode& node : tree.nodes) {
    const auto begin = stream.begin() + static_cast<std::ptrdiff_t>(node.offset);
    tree.payloads.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(node.bytes));
  }
  return tree;
}

/// What a leaf's payload has to be long, where that follows from the node.
void FitPayload(Campaign* campaign, PackedNode* node, std::vector<uint8_t>* payload) {
  const auto words = [](uint64_t values, uint64_t bits) { return (values * bits + 63) / 64; };
  constexpr uint64_t kGreatest = uint64_t{1} << 20;
  if (node->values > kGreatest) return;
  uint64_t bytes = payload->size();
  switch (static_cast<Scheme>(node->scheme)) {
    case Scheme::kNs:
      bytes = words(node->values, node->bits % 65) * 8;
      break;
    case Scheme::kNsv:
      bytes = (words(node->values, 2) + (std::min(node->parameter, kGreatest) + 7) / 8) * 8;
      break;
    case Scheme::kBitmap:
      bytes = words(node->values, 1) * std::min<uint64_t>(node->parameter, 64) * 8;
      break;
    case Scheme::kZstd:
      break;
    default:
      bytes = 0;
      break;
  }
  const size_t before = payload->size();
  payload->resize(bytes);
  for (size_t i = before; i < payload->size(); ++i) (*payload)[i] = static_cast<uint8_t>(campaign->random()());
}

/// Gives each node as many values as those above it say, as far as there are nodes.
size_t FitValues(Tree* tree, size_t at, uint64_t values, int depth) {
  if (at >= tree->nodes.size() || depth > 64) return at;
  PackedNode& node = tree->nodes[at];
  node.values = static_cast<uint32_t>(values);
  uint64_t first = values, second = values;
  const auto scheme = static_cast<Scheme>(node.scheme);
  if (scheme == Scheme::kDelta) first = values - std::min<uint64_t>(values, 1);
  if (scheme == Scheme::kRle) first = second = node.parameter;
  if (scheme == Scheme::kDict || scheme == Scheme::kBitmap) first = node.parameter;
  size_t next = at + 1;
  const int children = node.scheme < kSchemes ? ChildrenOf(scheme) : 0;
  if (children >= 1) next = FitValues(tree, next, first, depth + 1);
  if (children == 2) next = FitValues(tree, next, second, depth + 1);
  return next;
}

std::vector<uint8_t> StreamOf(const Tree& tree, bool offsets) {
  uint64_t at = kNodes + tree.nodes.size() * sizeof(PackedNode);
  std::vector<PackedNode> nodes = tree.nodes;
  std::vector<uint8_t> out(at);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (offsets) nodes[i].offset = at;
    if (offsets) nodes[i].bytes = tree.payloads[i].size();
    at += tree.payloads[i].size();
    out.insert(out.end(), tree.payloads[i].begin(), tree.payloads[i].end());
  }
  const PackedHeader header{static_cast<uint32_t>(nodes.size()), 0, out.size()};
  memcpy(out.data(), &header, sizeof header);
  if (!nodes.empty()) memcpy(out.data() + kNodes, nodes.data(), nodes.size() * sizeof(PackedNode));
  return out;
}

void ChangeTree(Campaign* campaign, Tree* tree) {
  const size_t at = campaign->Random(tree->nodes.size());
  PackedNode& node = tree->nodes[at];
  std::vector<uint8_t>& payload = tree->payloads[at];
  const auto place = [](auto& list, size_t i) { return list.begin() + static_cast<std::ptrdiff_t>(i); };
  switch (campaign->Random(12)) {
    case 0:
      node.scheme = static_cast<uint8_t>(campaign->Random(kSchemes + 2));
      break;
    case 1:
      node.bits = static_cast<uint8_t>(campaign->Random(70));
      break;
    case 2:
      node.values = static_cast<uint32_t>(Edge(campaign, node.values));
      break;
    case 3:
    case 4:
      node.parameter = Edge(campaign, node.parameter);
      break;
    case 5:
      node.null = Edge(campaign, node.null);
      break;
    case 6:
      (campaign->Random(2) == 0 ? node.offset : node.bytes) = Edge(campaign, node.offset);
      break;
    case 7: {  // another order
      const size_t other = campaign->Random(tree->nodes.size());
      std::swap(tree->nodes[at], tree->nodes[other]);
      if (campaign->Random(2) == 0) std::swap(tree->payloads[at], tree->payloads[other]);
      break;
    }
    case 8:  // a child too few
      if (tree->nodes.size() == 1) break;
      tree->nodes.erase(place(tree->nodes, at));
      tree->payloads.erase(place(tree->payloads, at));
      break;
    case 9: {  // deeper, often too deep
      const PackedNode above{static_cast<uint8_t>(campaign->Random(2) == 0 ? Scheme::kFor : Scheme::kDelta),
                             0,
                             0,
                             node.values,
                             campaign->Random(100),
                             0,
                             0,
                             0};
      for (uint64_t i = 0, n = 1 + campaign->Random(campaign->Random(4) == 0 ? 200 : 8); i < n; ++i) {
        tree->nodes.insert(place(tree->nodes, at), above);
        tree->payloads.insert(place(tree->payloads, at), std::vector<uint8_t>());
      }
      break;
    }
    default:
      for (uint64_t i = 0, n = 1 + campaign->Random(4); i < n && !payload.empty(); ++i)
        payload[campaign->Random(payload.size())] = static_cast<uint8_t>(campaign->random()());
      break;
  }
}

void ChangeStream(Campaign* campaign, const ChunkDescriptor& d, uint32_t rows, int s, std::vector<uint8_t>* stream) {
  if (campaign->Random(10) == 0) {  // without any care
    const size_t width = size_t{1} << campaign->Random(4);
    const size_t size = std::min<size_t>(stream->size(), campaign->Random(2) == 0 ? stream->size() : kNodes + 200);
    uint64_t value = 0;
    uint8_t* const at = stream->data() + campaign->Random(size / width) * width;
    memcpy(&value, at, width);
    value = Edge(campaign, value);
    memcpy(at, &value, width);
    return;
  }
  if (campaign->Random(20) == 0) return stream->resize(campaign->Random(stream->size()));
  Tree tree = TreeOf(*stream);
  for (uint64_t i = 0, n = 1 + campaign->Random(3); i < n; ++i) ChangeTree(campaign, &tree);
  const bool values = campaign->Random(3) != 0, payloads = campaign->Random(3) != 0, offsets = campaign->Random(8) != 0;
  const int width = WidthOf(d, s);
  if (values && width != 0) {
    const size_t end =
        FitValues(&tree, 0, UnpackedBytes(d, rows, static_cast<Stream>(s)) / static_cast<uint64_t>(width), 1);
    // Children that are missing, and nodes without a parent.
    if (campaign->Random(2) == 0 && end < tree.nodes.size()) {
      tree.nodes.resize(end);
      tree.payloads.resize(end);
    }
  }
  if (payloads) {
    for (size_t i = 0; i < tree.nodes.size(); ++i) FitPayload(campaign, &tree.nodes[i], &tree.payloads[i]);
  }
  *stream = StreamOf(tree, offsets);
}

void ChangeDescriptor(Campaign* campaign, EncodedChunk* chunk, TabletIdentity* identity) {
  ChunkDescriptor& d = chunk->descriptor;
  switch (campaign->Random(12)) {
    case 0:
      d.packed = static_cast<uint16_t>(d.packed ^ 1u << campaign->Random(5));
      break;
    case 1:
      d.text_bytes = Edge(campaign, d.text_bytes);
      break;
    case 2:
      d.entries = static_cast<uint32_t>(Edge(campaign, d.entries));
      break;
    case 3: {
      const uint8_t widths[] = {0, 1, 2, 3, 4, 8, 16, 255};
      d.width = widths[campaign->Random(std::size(widths))];
      break;
    }
    case 4:
      d.encoding = static_cast<uint8_t>(campaign->Random(5));
      break;
    case 5:
      (campaign->Random(2) == 0 ? d.min : d.max) += static_cast<int64_t>(Edge(campaign, 0));
      break;
    case 6:
      d.base += static_cast<int64_t>(Edge(campaign, 0));
      break;
    case 7:
      d.null_code = Edge(campaign, d.null_code);
      d.has_nulls = static_cast<uint8_t>(campaign->Random(3));
      break;
    case 8:
      d.null_count = static_cast<uint32_t>(Edge(campaign, d.null_count));
      break;
    case 9:
      identity->rows = static_cast<uint32_t>(Edge(campaign, identity->rows));
      break;
    case 10:
      d.bytes = Edge(campaign, d.bytes);
      break;
    default: {
      StreamExtent& extent = d.streams[campaign->Random(kStreams)];
      (campaign->Random(2) == 0 ? extent.offset : extent.bytes) = Edge(campaign, extent.bytes);
      break;
    }
  }
}

/// Some of the rows by trees of schemes, as the chunks of a tablet.
struct Sample {
  uint32_t rows;
  std::vector<Streams> chunks;
};

Sample MakeSample(Campaign* campaign) {
  Sample sample;
  sample.rows = kRows[campaign->Random(std::size(kRows))];
  const RowBatch batch = MakeRows(campaign, sample.rows);
  for (const ColumnVector& column : batch.columns) {
    const ColumnPiece piece{&column, 0, sample.rows};
    Streams& streams = sample.chunks.emplace_back(EncodeChunk(column.type, {&piece, 1}));
    for (int s = 0; s < kStreams; ++s) {
      if (campaign->Random(8) != 0) Pack(campaign, s, &streams);
    }
  }
  return sample;
}

struct Answer {
  Status status;
  std::vector<std::string> rows;  ///< sorted
};

/// What a query says of a tablet, t, that was not read before. `gpu`: nullptr: by the host.
Answer ReadAll(const std::string& path, const TabletIdentity& identity, const std::string& sql, Gpu* gpu) {
  Answer answer;
  const auto types = std::make_shared<TabletFile::Types>(Types());
  auto table = std::make_shared<TableInfo>();
  table->id = 1;
  table->schema.name = "t";
  for (size_t c = 0; c < types->size(); ++c) table->schema.columns.push_back({fmt::format("c{}", c), (*types)[c]});
  table->rows = identity.rows;
  table->statistics.resize(types->size());
  table->tablets.push_back(std::make_shared<const TabletFile>(path, identity, types));
  Snapshot snapshot;
  snapshot.tables.push_back(table);
  const Result<Compiled> compiled = Compile(sql, snapshot, {});
  if (!compiled.ok()) throw std::runtime_error(compiled.status().message());
  vm::Executor executor(2);
  vm::RunOptions options;
  options.gpu = gpu;
  options.gpu_required = gpu != nullptr;
  vm::RunStatistics statistics;
  const auto consume = [&](RowBatch&& batch) {
    for (size_t r = 0; r < batch.rows; ++r) {
      std::string line;
      for (const ColumnVector& c : batch.columns) {
        if (c.IsNull(r)) {
          line += "NULL";
        } else {
          AppendText(c, r, &line);
        }
        line += '|';
      }
      answer.rows.push_back(std::move(line));
    }
    return Status::Ok();
  };
  answer.status = executor.Run(*compiled->program, snapshot, options, consume, &statistics);
  std::sort(answer.rows.begin(), answer.rows.end());
  return answer;
}

/// Without a GPU nothing is compared.
void CompareDevices(Campaign* campaign, const std::string& path, const TabletIdentity& identity) {
  // (Never closed: at the end of the process the device may be gone before.)
  static Gpu* const gpu = []() -> Gpu* {
    if (GpuCount() == 0) return nullptr;
    Result<std::unique_ptr<Gpu>> opened = Gpu::Open(0, {});
    if (!opened.ok()) throw std::runtime_error(opened.status().message());
    return opened->release();
  }();
  // (Hosts do not open a tablet without rows, of which there is none in a database.)
  if (gpu == nullptr || identity.rows == 0) return;
  // All columns, or how often one has its values, for which it may be read as runs.
  const uint64_t column = campaign->Random(2 * Types().size());
  const std::string sql = column >= Types().size()
                              ? "SELECT * FROM t"
                              : fmt::format("SELECT c{0}, count(*), count(c{0}) FROM t GROUP BY c{0}", column);
  const Answer host = ReadAll(path, identity, sql, nullptr), device = ReadAll(path, identity, sql, gpu);
  const auto said = [](const Status& status) { return status.ok() ? std::string("ok") : status.message(); };
  // (Of several columns that are wrong, each names the one that it finds first.)
  const auto file = [&](const Status& status) { return said(status).substr(0, said(status).find(": column")); };
  if (file(host.status) != file(device.status)) {
    campaign->Break(fmt::format("the host says \"{}\", the GPU \"{}\"", said(host.status), said(device.status)));
  } else if (host.status.ok() && host.rows != device.rows) {
    campaign->Break("the GPU reads other rows than the host");
  }
}

/// Codes of runs that are a part of a stream unpack to the values of `chunk`.
void ComparePart(Campaign* campaign, const Chunk& packed, const Chunk& chunk) {
  if (packed.packed_codes == nullptr || packed.codes != nullptr) return;
  PackedTree tree;
  std::vector<uint8_t> codes(AlignToStream(uint64_t{packed.rows} * packed.width));
  const char* reason = ParsePackedCodes(packed, &tree);
  if (reason == nullptr) reason = UnpackStream(packed.packed_codes, tree, packed.width, nullptr, codes.data());
  if (reason != nullptr) return campaign->Break(fmt::format("runs are refused only as a part: {}", reason));
  Chunk whole = packed;
  whole.codes = codes.data();
  for (uint32_t run = 0; run < chunk.rows; ++run) {
    if (whole.base + CodeAt(whole, run) != chunk.base + CodeAt(chunk, run))
      return campaign->Break("runs are others as a part of their stream");
  }
}

/// Codes that are read by tiles, or one by one, are refused where the chunk is, and otherwise are its codes.
void CompareTiles(Campaign* campaign, const Chunk& packed, const Result<ChunkPointer>& chunk) {
  const std::unique_ptr<const PackedReader> reader = OpenPackedCodes(packed, false);
  if (reader == nullptr) return;
  uint64_t tile[PackedReader::kRoom];
  uint8_t* const codes = reinterpret_cast<uint8_t*>(tile);
  bool is_right = true;
  for (uint32_t first = 0; first < packed.rows; first += PackedReader::kMostRows) {
    const uint32_t rows = std::min(packed.rows - first, PackedReader::kMostRows);
    const bool by_places = campaign->Random(2) == 0;
    std::vector<uint16_t> places;
    for (uint32_t i = 0; i < rows; ++i) places.push_back(static_cast<uint16_t>(i));
    is_right &= (by_places ? reader->ReadPlaces(first, places, codes) : reader->Read(first, rows, codes)) == nullptr;
    if (!is_right || !chunk.ok()) continue;
    if (memcmp(codes, (*chunk)->codes + uint64_t{first} * packed.width, uint64_t{rows} * packed.width) != 0)
      return campaign->Break("codes are others by tiles");
  }
  if (is_right != chunk.ok()) campaign->Break("codes are refused only whole, or only by tiles");
}

/// The runs of a column are refused where the column is, and otherwise have its rows.
void CompareRuns(Campaign* campaign, const Tablet& tablet, int column, int columns, const Result<ChunkPointer>& chunk) {
  const Result<std::shared_ptr<const Tablet>> runs = tablet.Runs(column, 0);
  if (!runs.ok()) {
    if (chunk.ok()) campaign->Break("the runs of a good column are refused: " + runs.status().message());
    return;
  }
  const auto packed = (*runs)->PackedChunk(column), packed_counts = (*runs)->PackedChunk(columns);
  const auto counts = (*runs)->Chunk(columns), values = (*runs)->Chunk(column);
  // (How often rows stand that are no runs need not be read.)
  if (values.ok() != chunk.ok() || (chunk.ok() && !counts.ok()))
    return campaign->Break("only one of a column and its runs is refused");
  if (!chunk.ok()) return;
  UseChunk(**values);
  UseChunk(**counts);
  if ((*runs)->rows() == tablet.rows()) return;
  if (!packed.ok() || !packed_counts.ok()) return campaign->Break("runs are refused only in one of two forms");
  ComparePart(campaign, **packed, **values);
  ComparePart(campaign, **packed_counts, **counts);
  uint32_t row = 0;
  for (uint32_t run = 0; run < (*runs)->rows(); ++run) {
    for (auto left = static_cast<uint64_t>((*counts)->base) + CodeAt(**counts, run); left > 0; --left, ++row) {
      const bool same = row < tablet.rows() && IsNullAt(**chunk, row) == IsNullAt(**values, run) &&
                        CodeAt(**chunk, row) == CodeAt(**values, run);
      if (!same) return campaign->Break("the rows of the runs are others than those of the column");
    }
  }
  if (row != tablet.rows()) campaign->Break("the runs have fewer rows than the column");
}

/// Uses all of a tablet. Returns whether it was refused.
bool IsRefused(Campaign* campaign, const std::string& path, const TabletIdentity& identity) {
  const auto types = std::make_shared<TabletFile::Types>(Types());
  const auto opened = std::make_shared<const TabletFile>(path, identity, types);
  const TabletFile& tablet = *opened;
  bool refused = false;
  for (size_t c = 0; c < types->size(); ++c) {
    const int column = static_cast<int>(c);
    // In the order in which a GPU asks, or the host.
    const uint64_t first = campaign->Random(3);
    if (first == 2) (void)tablet.Runs(column, 0);
    const auto packed = first == 0 ? tablet.PackedChunk(column) : tablet.Chunk(column);
    const auto chunk = tablet.Chunk(column);
    const auto storage = tablet.StorageOf(column);
    for (const Status& status : {packed.status(), chunk.status(), storage.status()}) {
      if (status.ok()) continue;
      refused = true;
      if (status.code() != ErrorCode::kCorrupt) campaign->Break(status.message());
      if (status.message().find(path) == std::string::npos) campaign->Break("no name in: " + status.message());
    }
    if (chunk.ok()) UseChunk(**chunk);
    if (packed.ok() && (*packed)->codes == nullptr) CompareTiles(campaign, **packed, chunk);
    CompareRuns(campaign, tablet, column, static_cast<int>(types->size()), chunk);
    // (Codes that stay packed are looked at where they are unpacked.)
    if (!packed.ok() && chunk.ok()) campaign->Break("a chunk is refused only where its codes stay packed");
    if (packed.ok() && !chunk.ok() && (*packed)->packed_codes == nullptr) {
      campaign->Break("a chunk is refused only in one of two forms");
    }
  }
  return refused;
}

void Write(const std::string& path, std::vector<EncodedChunk>* chunks, TabletIdentity* identity) {
  const std::vector<uint8_t> header = BuildTabletHeader(chunks, identity);
  const Result<int> fd = WriteTabletFile(path, header, *chunks);
  if (!fd.ok()) throw std::runtime_error(fd.status().message());
  // The file is as long as it says, so that its other numbers matter.
  constexpr uint64_t kGreatestFile = uint64_t{16} << 20;
  const bool sized =
      identity->file_bytes > kGreatestFile || ftruncate(*fd, static_cast<off_t>(identity->file_bytes)) == 0;
  close(*fd);
  if (!sized) throw std::runtime_error("the file cannot be made as long as it says");
}

std::vector<EncodedChunk> ChunksOf(const Sample& sample) {
  std::vector<EncodedChunk> chunks;
  for (const Streams& streams : sample.chunks) chunks.push_back(streams.Chunk());
  return chunks;
}

/// A change behind the checksums' back: bits, and the end of the file.
void DamageFile(Campaign* campaign, const std::string& path) {
  std::string bytes = ReadWholeFile(path);
  if (campaign->Random(3) == 0) {
    bytes.resize(campaign->Random(bytes.size()));
  } else {
    for (uint64_t i = 0, n = 1 + campaign->Random(3); i < n; ++i) {
      char& byte = bytes[campaign->Random(bytes.size())];
      byte = static_cast<char>(byte ^ 1 << campaign->Random(8));
    }
  }
  WriteNewFile(path, bytes);
}

void Trial(Campaign* campaign, Sample sample, const std::string& path) {
  TabletIdentity identity;
  identity.table_id = 1;
  identity.tablet_id = 1;
  identity.rows = sample.rows;
  const uint64_t kind = campaign->Random(8);
  if (kind <= 1) {
    std::vector<EncodedChunk> chunks = ChunksOf(sample);
    Write(path, &chunks, &identity);
    if (kind == 0) {
      if (IsRefused(campaign, path, identity)) campaign->Break("a good tablet is refused");
      CompareDevices(campaign, path, identity);
      return;
    }
    const std::string before = ReadWholeFile(path);
    DamageFile(campaign, path);
    if (ReadWholeFile(path) != before && !IsRefused(campaign, path, identity)) campaign->Break("damage is not found");
    return;
  }
  if (kind <= 6) {
    Streams& victim = sample.chunks[campaign->Random(sample.chunks.size())];
    for (int s = 0; s < kStreams; ++s) {
      if (IsPacked(victim.descriptor, static_cast<Stream>(s)) && campaign->Random(2) == 0)
        ChangeStream(campaign, victim.descriptor, sample.rows, s, &victim.bytes[s]);
    }
  }
  std::vector<EncodedChunk> chunks = ChunksOf(sample);
  if (kind >= 6) ChangeDescriptor(campaign, &chunks[campaign->Random(chunks.size())], &identity);
  Write(path, &chunks, &identity);
  IsRefused(campaign, path, identity);
  CompareDevices(campaign, path, identity);
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  Campaign campaign("packed_trees", argc, argv);
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
  const ScratchFolder scratch;
  while (campaign.Next()) Trial(&campaign, MakeSample(&campaign), scratch / "tablet");
  return campaign.Finish();
}
