// The program `compression_bench`: what each scheme, and the planner, make of the columns of TPC-H's lineitem and part,
// after Tables 3 to 5 of Fang, He and Luo (VLDB 2010). bench/compression.py (`make bench-compression`) makes the
// database, runs this and prints what comes out.
//
//   compression_bench --database DIR [--columns "l_partkey p_type"] [--raw DIR]
//   compression_bench --costs
//
// Prints a line of CSV for each column and way to store it, all on one core and in memory, each time the least of some
// runs. What is unpacked is compared with what was packed before it is timed; the exit status is 1 if it differs.
//
//   plan          a scheme: by itself, the streams that it makes in bits (NS); for texts, of the dictionary's numbers
//                 speed, balanced, ratio: what SET compression chooses, with everything that the column stores
//                 search: for the codes of each tablet the best of all trees to depth 3, else as ratio
//                 zstd: the library on the column's bytes, level 3
//   raw_bytes     4 of an INTEGER or DATE, 8 of a BIGINT, DECIMAL or DOUBLE, 4 and its bytes of a text
//   unpacked_bytes, bytes    in memory; as stored
//   estimated_ms, decode_ms  what tablet/schemes/unpack_cost.h expects, for this machine's speed; measured
//   gpu_ms, gpu_percent      of the kernels that unpack the codes, and of a copy of as many bytes read and written; 0 if
//                 there is no GPU, or nothing to do
//
// --raw: before the lines of a column, its values as those bytes go to a file of its name in DIR. --costs: what
// bench/scheme_costs.h says.

#include <fmt/format.h>
#include <getopt.h>
#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bench/scheme_costs.h"
#include "bench/scheme_search.h"
#include "kernels/kernels.h"
#include "tablet/chunk/chunk_decoder.h"
#include "tablet/chunk/packed_chunk.h"
#include "tablet/database.h"
#include "tablet/schemes/unpack_cost.h"

namespace tessera::bench {
namespace {

constexpr int kZstdLevel = 3, kSearchDepth = 3;

/// A column's rows, tablet by tablet.
struct Column {
  std::string name;
  std::vector<ColumnVector> tablets;
};

/// Sums over the tablets of a column.
struct Figures {
  std::string tree;
  uint64_t unpacked_bytes = 0, bytes = 0;
  double encode_ms = 0, decode_ms = 0, estimated_ms = 0;
  GpuUnpacking on_gpu;
};

/// The least time of some runs: other processes make a run longer, never shorter.
double LeastMilliseconds(const std::function<void()>& run) {
  constexpr int kRuns = 7;
  constexpr double kLongEnough = 150;
  double least = INFINITY, sum = 0;
  for (int i = 0; i < kRuns && (i < 2 || sum < kLongEnough); ++i) {
    const auto start = Clock::now();
    run();
    const double ms = MillisecondsSince(start);
    least = std::min(least, ms);
    sum += ms;
  }
  return least;
}

Status Wrong(const std::string& column, const std::string& tree, const char* reason) {
  return {ErrorCode::kInternal, column + " by " + tree + ": " + reason};
}

// ---- Single schemes

/// The integers that a scheme packs.
struct Integers {
  std::vector<uint64_t> values;
  int width = 0;  ///< bytes of an unpacked value
  std::optional<ScaledCodes> scaled;
  uint64_t beside = 0;  ///< bytes that are stored unpacked: the dictionary of texts
};

std::vector<uint64_t> CodesOf(const EncodedChunk& chunk, uint32_t rows) {
  const Chunk view = ViewChunk(chunk.descriptor, rows, chunk.streams.data());
  std::vector<uint64_t> codes(rows);
  for (uint32_t i = 0; i < rows; ++i) codes[i] = CodeAt(view, i);
  return codes;
}

int RawWidth(const SqlType& type) {
  switch (type.id) {
    case TypeId::kInteger:
    case TypeId::kDate:
      return 4;
    default:
      return 8;
  }
}

std::string RawBytes(const ColumnVector& column) {
  std::string raw;
  const auto add = [&](uint64_t value, int width) {
    raw.append(reinterpret_cast<const char*>(&value), static_cast<size_t>(width));
  };
  for (size_t row = 0; row < column.size(); ++row) {
    if (column.type.storage() != StorageClass::kText) {
      add(static_cast<uint64_t>(column.fixed[row]), RawWidth(column.type));
      continue;
    }
    add(column.Text(row).size(), 4);
    raw += column.Text(row);
  }
  return raw;
}

/// Nothing for texts that have no dictionary.
std::optional<Integers> StreamOf(const ColumnVector& column, const EncodedChunk& chunk) {
  const ChunkDescriptor& d = chunk.descriptor;
  const uint32_t rows = static_cast<uint32_t>(column.size());
  switch (column.type.storage()) {
    case StorageClass::kText:
      if (d.encoding != static_cast<uint8_t>(Encoding::kDictionary)) return std::nullopt;
      return Integers{CodesOf(chunk, rows), d.width, {}, d.bytes - AlignToStream(d.streams[kCodes].bytes)};
    case StorageClass::kFloat:
      return Integers{CodesOf(chunk, rows), d.width, ScaledCodesOf(d), 0};
    default:
      return Integers{{column.fixed.begin(), column.fixed.end()}, RawWidth(column.type), {}, 0};
  }
}

/// Adds what `tree` makes of a stream; false if it cannot.
Result<bool> MeasureTree(const std::string& column, const Integers& stream, const SchemeTree& tree, Gpu* gpu,
                         const SqlType& type, Figures* figures) {
  const ScaledCodes* const scaled = stream.scaled ? &*stream.scaled : nullptr;
  std::optional<std::vector<uint8_t>> packed = PackIntegers(stream.values, tree, scaled);
  if (!packed) return false;
  PackedTree nodes;
  const char* reason =
      ParsePackedStream(packed->data(), packed->size(), stream.values.size(), stream.width, scaled != nullptr, &nodes);
  if (reason != nullptr) return Wrong(column, tree.ToString(), reason);
  const uint64_t bytes = stream.values.size() * static_cast<uint64_t>(stream.width);
  std::vector<uint8_t> out(AlignToStream(bytes));
  const auto unpack = [&] { reason = UnpackStream(packed->data(), nodes, stream.width, scaled, out.data()); };
  unpack();
  if (reason != nullptr) return Wrong(column, tree.ToString(), reason);
  for (size_t i = 0; i < stream.values.size(); ++i) {
    uint64_t value = 0;
    memcpy(&value, out.data() + i * static_cast<size_t>(stream.width), static_cast<size_t>(stream.width));
    if (value != stream.values[i]) return Wrong(column, tree.ToString(), "other values come out than went in");
  }
  if (figures->tree.empty()) figures->tree = DescribePackedTree(nodes);
  figures->unpacked_bytes += bytes;
  figures->bytes += AlignToStream(packed->size()) + stream.beside;
  figures->decode_ms += LeastMilliseconds(unpack);
  figures->estimated_ms += UnpackNanoseconds(nodes, stream.width) * UnpackSpeed() * 1e-6;
  figures->encode_ms += LeastMilliseconds([&] { packed = PackIntegers(stream.values, tree, scaled); });
  Chunk chunk;
  chunk.type = scaled != nullptr ? type : SqlType::Of(TypeId::kBigint);
  chunk.width = static_cast<uint8_t>(stream.width);
  chunk.rows = static_cast<uint32_t>(stream.values.size());
  if (scaled != nullptr) chunk.base = static_cast<int128_t>(scaled->base);
  chunk.codes_bytes = AlignToStream(bytes);
  chunk.packed_codes = packed->data();
  chunk.packed_bytes = packed->size();
  TESSERA_ASSIGN(const GpuUnpacking on_gpu, UnpackOnGpu(gpu, chunk, out.data()));
  figures->on_gpu.Add(on_gpu);
  return true;
}

struct NamedTree {
  const char* name;
  SchemeTree tree;
};

/// Each scheme with its streams in bits. SEP divides by 100, which takes the cents from a price, and days into hundreds.
std::vector<NamedTree> SingleSchemes() {
  const SchemeTree ns = SchemeTree::Leaf(Scheme::kNs);
  const auto of = [&](Scheme scheme, int streams, uint64_t parameter = 0) {
    return SchemeTree{scheme, parameter, std::vector<SchemeTree>(static_cast<size_t>(streams), ns)};
  };
  return {{"NS", ns},
          {"NSV", SchemeTree::Leaf(Scheme::kNsv)},
          {"FOR", of(Scheme::kFor, 1)},
          {"DELTA", {Scheme::kDelta, 0, {of(Scheme::kFor, 1)}}},
          {"RLE", of(Scheme::kRle, 2)},
          {"DICT", of(Scheme::kDict, 2)},
          {"BITMAP", of(Scheme::kBitmap, 1)},
          {"SEP", of(Scheme::kSep, 2, 100)},
          {"SCALE", of(Scheme::kScale, 1, 2)}};
}

// ---- Whole columns

/// Of a stream in a chunk; 0: bytes.
int WidthOf(const ChunkDescriptor& d, int stream) {
  return stream == kCodes ? d.width : stream == kEntryOffsets ? 8 : stream == kNullBytes ? 1 : 0;
}

Result<double> EstimatedMilliseconds(const ChunkDescriptor& d, uint32_t rows, const uint8_t* streams) {
  double ns = 0;
  const bool is_float =
      d.type == static_cast<uint8_t>(TypeId::kDouble) || d.type == static_cast<uint8_t>(TypeId::kReal);
  for (int s = 0; s < kStreams; ++s) {
    if (!IsPacked(d, static_cast<Stream>(s))) continue;
    const int width = WidthOf(d, s);
    const uint64_t bytes = UnpackedBytes(d, rows, static_cast<Stream>(s));
    PackedTree tree;
    const char* const reason = ParsePackedStream(streams + d.streams[s].offset, d.streams[s].bytes,
                                                 width == 0 ? bytes : bytes / static_cast<uint64_t>(width), width,
                                                 is_float && s == kCodes, &tree);
    if (reason != nullptr) return Status(ErrorCode::kInternal, reason);
    ns += UnpackNanoseconds(tree, width == 0 ? 1 : width);
  }
  return ns * UnpackSpeed() * 1e-6;
}

/// What a goal makes of a chunk. `packed`: its result.
Status MeasureGoal(const std::string& column, const EncodedChunk& plain, uint32_t rows, CompressionGoal goal, Gpu* gpu,
                   EncodedChunk* packed, Figures* figures) {
  const auto pack = [&] {
    *packed = plain;
    PackChunk(goal, packed);
  };
  const double copy_ms = LeastMilliseconds([&] { *packed = plain; });
  figures->encode_ms += LeastMilliseconds(pack) - copy_ms;
  const ChunkDescriptor& d = packed->descriptor;
  const uint8_t* const file = packed->streams.data();
  const std::string tree = DescribeChunk(d, rows, file);
  if (figures->tree.empty()) figures->tree = tree;
  const Chunk view = ViewChunk(plain.descriptor, rows, plain.streams.data());
  Chunk unpacked = ViewChunk(d, rows, file);
  const Chunk still_packed = unpacked;
  const uint64_t room = UnpackedRoom(d, rows, true);
  std::vector<uint8_t> out(room);
  const char* reason = nullptr;
  const auto unpack = [&] { reason = UnpackChunk(d, file, true, out.data(), &unpacked); };
  unpack();
  if (reason != nullptr) return Wrong(column, tree, reason);
  const auto same = [](const void* a, const void* b, uint64_t bytes) {
    return a == nullptr || b == nullptr ? a == b : memcmp(a, b, bytes) == 0;
  };
  if (!same(view.codes, unpacked.codes, view.codes_bytes) ||
      !same(view.entry_offsets, unpacked.entry_offsets, (uint64_t{view.entries} + 1) * 8) ||
      !same(view.entry_bytes, unpacked.entry_bytes, view.text_bytes)) {
    return Wrong(column, tree, "other values come out than went in");
  }
  figures->bytes += d.bytes;
  if (d.packed == 0) return Status::Ok();
  figures->unpacked_bytes += room;
  figures->decode_ms += LeastMilliseconds(unpack);
  TESSERA_ASSIGN(const double estimated, EstimatedMilliseconds(d, rows, file));
  figures->estimated_ms += estimated;
  TESSERA_ASSIGN(const GpuUnpacking on_gpu, UnpackOnGpu(gpu, still_packed, view.codes));
  figures->on_gpu.Add(on_gpu);
  return Status::Ok();
}

void Print(const Column& column, const std::string& plan, uint64_t raw_bytes, const Figures& f, Gpu* gpu) {
  size_t values = 0;
  for (const ColumnVector& tablet : column.tablets) values += tablet.size();
  printf("%s,%s,\"%s\",%zu,%lu,%lu,%lu,%.4f,%.4f,%.4f,%.4f,%.1f\n", column.name.c_str(), plan.c_str(), f.tree.c_str(),
         values, raw_bytes, f.unpacked_bytes, f.bytes, f.encode_ms, f.decode_ms, f.estimated_ms, f.on_gpu.milliseconds,
         f.on_gpu.PercentOfCopy(gpu));
}

Figures MeasureZstd(const std::string& raw) {
  Figures figures;
  figures.tree = fmt::format("level {}", kZstdLevel);
  std::string packed(ZSTD_compressBound(raw.size()), '\0'), out(raw.size(), '\0');
  size_t bytes = 0;
  figures.encode_ms = LeastMilliseconds(
      [&] { bytes = ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), kZstdLevel); });
  figures.decode_ms = LeastMilliseconds([&] { ZSTD_decompress(out.data(), out.size(), packed.data(), bytes); });
  figures.unpacked_bytes = raw.size();
  figures.bytes = bytes;
  return figures;
}

Status MeasureColumn(const Column& column, const std::string& raw_directory, Gpu* gpu) {
  std::string raw;
  for (const ColumnVector& tablet : column.tablets) raw += RawBytes(tablet);
  if (!raw_directory.empty()) {
    const std::string raw_file = raw_directory + "/" + column.name;
    FILE* const file = fopen(raw_file.c_str(), "wb");
    if (file == nullptr || fwrite(raw.data(), 1, raw.size(), file) != raw.size() || fclose(file) != 0) {
      return {ErrorCode::kIo, "could not write \"" + raw_file + "\""};
    }
  }
  std::vector<EncodedChunk> chunks;
  for (const ColumnVector& tablet : column.tablets) {
    const ColumnPiece piece{&tablet, 0, tablet.size()};
    chunks.push_back(EncodeChunk(tablet.type, {&piece, 1}));
  }
  for (const NamedTree& scheme : SingleSchemes()) {
    Figures figures;
    bool all = true;
    for (size_t t = 0; t < chunks.size() && all; ++t) {
      const std::optional<Integers> stream = StreamOf(column.tablets[t], chunks[t]);
      all = stream.has_value();
      if (!all) break;
      TESSERA_ASSIGN(all, MeasureTree(column.name, *stream, scheme.tree, gpu, column.tablets[t].type, &figures));
    }
    if (all) Print(column, scheme.name, raw.size(), figures, gpu);
  }
  std::vector<EncodedChunk> packed(chunks.size());
  static constexpr std::pair<const char*, CompressionGoal> kGoals[] = {
      {"speed", CompressionGoal::kSpeed}, {"balanced", CompressionGoal::kBalanced}, {"ratio", CompressionGoal::kRatio}};
  for (const auto& [name, goal] : kGoals) {
    Figures figures;
    for (size_t t = 0; t < chunks.size(); ++t) {
      TESSERA_TRY(MeasureGoal(column.name, chunks[t], static_cast<uint32_t>(column.tablets[t].size()), goal, gpu,
                              &packed[t], &figures));
    }
    Print(column, name, raw.size(), figures, gpu);
  }
  // `packed` is by ratio now. Where there are codes, those of the search take their place.
  if (chunks[0].descriptor.width != 0 && chunks[0].descriptor.width <= 8) {
    Figures figures;
    const auto stream_of = [&](size_t t) {
      const ChunkDescriptor& d = chunks[t].descriptor;
      const bool is_float = column.tablets[t].type.IsFloat();
      return Integers{CodesOf(chunks[t], static_cast<uint32_t>(column.tablets[t].size())), d.width,
                      is_float ? std::optional(ScaledCodesOf(d)) : std::nullopt,
                      packed[t].descriptor.bytes - AlignToStream(packed[t].descriptor.streams[kCodes].bytes)};
    };
    bool all = true;
    for (size_t t = 0; t < chunks.size() && all; ++t) {
      const Integers stream = stream_of(t);
      const SchemeTree tree = SearchTrees(stream.values, kSearchDepth).tree;
      TESSERA_ASSIGN(all, MeasureTree(column.name, stream, tree, gpu, column.tablets[t].type, &figures));
    }
    if (all) Print(column, "search", raw.size(), figures, gpu);
  }
  Print(column, "zstd", raw.size(), MeasureZstd(raw), gpu);
  return Status::Ok();
}

/// The rows of a column by its name, from the tables that have been loaded.
Result<Column> ReadColumn(const TableInfo& table, int number) {
  Column column{table.schema.columns[static_cast<size_t>(number)].name, {}};
  for (const std::shared_ptr<const Tablet>& tablet : table.tablets) {
    TESSERA_ASSIGN(const ChunkPointer chunk, tablet->Chunk(number));
    ColumnVector values;
    values.type = chunk->type;
    DecodeChunk(*chunk, 0, chunk->rows, &values);
    column.tablets.push_back(std::move(values));
  }
  return column;
}

/// All rows in order, cut as before.
Column Sorted(const Column& column) {
  std::vector<int64_t> all;
  for (const ColumnVector& tablet : column.tablets) all.insert(all.end(), tablet.fixed.begin(), tablet.fixed.end());
  std::sort(all.begin(), all.end());
  Column sorted{column.name + " sorted", column.tablets};
  auto from = all.begin();
  for (ColumnVector& tablet : sorted.tablets) {
    std::copy_n(from, tablet.fixed.size(), tablet.fixed.begin());
    from += static_cast<ptrdiff_t>(tablet.fixed.size());
  }
  return sorted;
}

/// A decimal of two places as a DOUBLE, which the paper's SCALE is for.
Column AsDouble(const Column& column) {
  Column floats{column.name + " double", column.tablets};
  for (ColumnVector& tablet : floats.tablets) {
    tablet.type = SqlType::Of(TypeId::kDouble);
    for (int64_t& value : tablet.fixed) value = std::bit_cast<int64_t>(static_cast<double>(value) / 100);
  }
  return floats;
}

Status MeasureDatabase(const std::string& directory, const std::string& wanted, const std::string& raw, Gpu* gpu) {
  TESSERA_ASSIGN(const auto database, Database::Open(directory, OpenMode::kReadOnly));
  TESSERA_ASSIGN(const auto snapshot, database->Read());
  std::vector<std::string> names;
  std::istringstream list(wanted);
  for (std::string name; list >> name;) names.push_back(name);
  printf(
      "column,plan,tree,values,raw_bytes,unpacked_bytes,bytes,encode_ms,decode_ms,estimated_ms,gpu_ms,gpu_percent\n");
  for (const char* table_name : {"lineitem", "part"}) {
    const std::shared_ptr<const TableInfo> table = snapshot->Find(table_name);
    if (table == nullptr || table->rows == 0) {
      return {ErrorCode::kIo, "\"" + directory + "\" has no rows of " + table_name};
    }
    for (size_t c = 0; c < table->schema.columns.size(); ++c) {
      const std::string& name = table->schema.columns[c].name;
      if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) continue;
      TESSERA_ASSIGN(const Column column, ReadColumn(*table, static_cast<int>(c)));
      TESSERA_TRY(MeasureColumn(column, raw, gpu));
      if (name == "l_partkey") TESSERA_TRY(MeasureColumn(Sorted(column), raw, gpu));
      if (name == "l_discount") TESSERA_TRY(MeasureColumn(AsDouble(column), raw, gpu));
    }
  }
  return Status::Ok();
}

int Main(int argc, char** argv) {
  const option options[] = {{"database", required_argument, nullptr, 'd'},
                            {"columns", required_argument, nullptr, 'c'},
                            {"raw", required_argument, nullptr, 'r'},
                            {"costs", no_argument, nullptr, 'k'},
                            {nullptr, 0, nullptr, 0}};
  std::string database, columns, raw;
  bool costs = false;
  for (int o; (o = getopt_long(argc, argv, "", options, nullptr)) != -1;) {
    if (o == '?') return 2;
    if (o == 'd') database = optarg;
    if (o == 'c') columns = optarg;
    if (o == 'r') raw = optarg;
    if (o == 'k') costs = true;
  }
  if (database.empty() && !costs) {
    fprintf(stderr, "usage: compression_bench --database DIR [--columns NAMES] [--raw DIR] | --costs\n");
    return 2;
  }
  std::unique_ptr<Gpu> gpu;
  if (GpuCount() > 0) {
    auto opened = Gpu::Open(0, GpuOptions());
    if (opened.ok()) gpu = std::move(*opened);
    if (gpu != nullptr) {
      auto rate = gpu->MeasureBandwidth();
      fprintf(stderr, "%s, a copy on the device moves %.0f GB/s\n", gpu->info().name.c_str(),
              rate.ok() ? *rate / 1e9 : 0);
    }
  }
  const Status status = costs ? PrintCosts(gpu.get()) : MeasureDatabase(database, columns, raw, gpu.get());
  if (status.ok()) return 0;
  fprintf(stderr, "ERROR: %s\n%s\n", status.message().c_str(), status.hint().c_str());
  return 1;
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  return tessera::bench::Main(argc, argv);
}
