// What the nodes of each scheme cost on made-up streams: on one core beside the table of tablet/schemes/unpack_cost.h, and on
// a GPU beside a copy of as many bytes. For bench/compression.cc.
//
// Start at: PrintCosts, UnpackOnGpu.
#pragma once

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "kernels/kernels.h"
#include "tablet/schemes/packed_stream.h"
#include "tablet/schemes/unpack_cost.h"
#include "tablet/values/ordered_float.h"

namespace tessera::bench {

/// What kernels took for packed codes, and how many bytes they read (the packed ones) and wrote.
struct GpuUnpacking {
  double milliseconds = 0;  ///< 0: nothing was unpacked
  double bytes = 0;

  void Add(const GpuUnpacking& other) {
    milliseconds += other.milliseconds;
    bytes += other.bytes;
  }
  /// Of the rate of a copy on the device, whose bytes are read and written, too; 0 if nothing was unpacked.
  double PercentOfCopy(Gpu* gpu) const {
    if (gpu == nullptr || milliseconds == 0) return 0;
    const Result<double> copy = gpu->MeasureBandwidth();  // measured once
    return copy.ok() ? 100 * bytes / (milliseconds / 1e3) / *copy : 0;
  }
};

/// Unpacks the packed codes of a chunk and makes sure that they are `expected`. Nothing without a GPU, or if they are not
/// packed.
inline Result<GpuUnpacking> UnpackOnGpu(Gpu* gpu, const Chunk& chunk, const uint8_t* expected) {
  if (gpu == nullptr || chunk.packed_codes == nullptr) return GpuUnpacking{};
  std::vector<uint8_t> codes;
  // More than the L2 cache holds, so that memory is read and written.
  constexpr uint64_t kBytes = uint64_t{512} << 20;
  TESSERA_ASSIGN(const double ms, gpu->MeasureUnpack(chunk, kBytes, &codes));
  if (codes.size() != uint64_t{chunk.rows} * chunk.width || memcmp(codes.data(), expected, codes.size()) != 0) {
    return Status(ErrorCode::kInternal, "a GPU unpacks other codes than the host");
  }
  return GpuUnpacking{ms, static_cast<double>(chunk.packed_bytes + codes.size())};
}

namespace costs {

/// A tablet, and what of it a core unpacks one after the other: in its cache, as in a scan.
inline constexpr size_t kRows = size_t{1} << 20, kHostRows = size_t{1} << 18;

struct Case {
  std::string name;
  SchemeTree tree;
  std::vector<uint64_t> values;  ///< kRows of 4 bytes, or for kScale the ordered forms of numbers

  bool scaled() const { return tree.scheme == Scheme::kScale; }
  int width() const { return scaled() ? 8 : 4; }
};

inline constexpr ScaledCodes kOrderedForms;

struct Packed {
  std::vector<uint8_t> bytes;
  PackedTree nodes;
  bool scaled;
  int width;
  std::vector<uint64_t> out;

  uint8_t* codes() { return reinterpret_cast<uint8_t*>(out.data()); }
};

/// The first `rows` values.
inline Result<Packed> Pack(const Case& c, size_t rows) {
  const ScaledCodes* const scaled = c.scaled() ? &kOrderedForms : nullptr;
  std::optional<std::vector<uint8_t>> bytes = PackIntegers(std::span(c.values).first(rows), c.tree, scaled);
  if (!bytes) return Status(ErrorCode::kInternal, "a scheme that does not take its values");
  Packed packed{std::move(*bytes), {}, c.scaled(), c.width(), std::vector<uint64_t>(rows)};
  const char* const reason =
      ParsePackedStream(packed.bytes.data(), packed.bytes.size(), rows, c.width(), c.scaled(), &packed.nodes);
  if (reason != nullptr) return Status(ErrorCode::kInternal, reason);
  return packed;
}

/// The least time of some runs.
inline Result<double> Nanoseconds(Packed* packed) {
  double least = INFINITY;
  for (int i = 0; i < 30; ++i) {
    const auto start = Clock::now();
    const char* const reason = UnpackStream(packed->bytes.data(), packed->nodes, packed->width,
                                            packed->scaled ? &kOrderedForms : nullptr, packed->codes());
    least = std::min(least, MillisecondsSince(start) * 1e6);
    if (reason != nullptr) return Status(ErrorCode::kInternal, reason);
  }
  return least;
}

inline std::vector<Case> Cases() {
  std::mt19937_64 random(1);
  const auto values_of = [&](const std::function<uint64_t(size_t)>& f) {
    std::vector<uint64_t> values(kRows);
    for (size_t i = 0; i < kRows; ++i) values[i] = f(i);
    return values;
  };
  const SchemeTree ns = SchemeTree::Leaf(Scheme::kNs);
  const SchemeTree rle{Scheme::kRle, 0, {ns, ns}}, dict{Scheme::kDict, 0, {ns, ns}}, bitmap{Scheme::kBitmap, 0, {ns}};
  std::vector<Case> cases = {
      {"NS, 13 bits", ns, values_of([&](size_t) { return random() % 8192; })},
      {"NS, 31 bits", ns, values_of([&](size_t) { return random() >> 33; })},
      {"NSV", SchemeTree::Leaf(Scheme::kNsv),
       values_of([&](size_t) { return random() % (1u << (8 * (1 + random() % 3))); })},
      {"FOR", {Scheme::kFor, 0, {ns}}, values_of([&](size_t) { return 1000000 + random() % 8192; })},
      {"DELTA", {Scheme::kDelta, 0, {ns}}, values_of([](size_t i) { return i * 3; })},
      {"DICT, 16", dict, values_of([&](size_t) { return random() % 16 * 1000; })},
      {"DICT, 4,096", dict, values_of([&](size_t) { return random() % 4096 * 1000; })},
      {"DICT, 65,536", dict, values_of([&](size_t) { return random() % 65536 * 1000; })},
      {"BITMAP, 4", bitmap, values_of([&](size_t) { return random() % 4; })},
      {"BITMAP, 32", bitmap, values_of([&](size_t) { return random() % 32; })},
      {"SCALE", {Scheme::kScale, 2, {ns}}, values_of([&](size_t) {
         return OrderedFloat(static_cast<double>(random() % 10000) / 100);
       })},
      {"SEP", {Scheme::kSep, 100, {ns, ns}}, values_of([&](size_t) { return random() % 1000000; })},
      {"RLE, runs of 4", rle, values_of([](size_t i) { return i / 4; })},
  };
  // One run is longer than the others, as in Figure 3 of the paper.
  constexpr size_t kRun = 64;
  for (const size_t times : {1, 10, 100, 1000}) {
    const size_t end = kRun * times;
    cases.push_back({"RLE, skew " + std::to_string(1.0 / static_cast<double>(times)).substr(0, 5), rle,
                     values_of([&](size_t i) { return i < end ? 0 : 1 + (i - end) / kRun; })});
  }
  return cases;
}

}  // namespace costs

/// A line of CSV for each case. What a scheme's node takes on a core is what its tree takes, less what the leaves would take
/// by themselves; on the GPU it is the whole tree.
inline Status PrintCosts(Gpu* gpu) {
  const std::vector<costs::Case> cases = costs::Cases();
  TESSERA_ASSIGN(costs::Packed bits, costs::Pack(cases[0], costs::kHostRows));
  TESSERA_ASSIGN(const double leaf, costs::Nanoseconds(&bits));
  printf("scheme,measured_ns,table_ns,bytes,gpu_ms,gpu_percent\n");
  for (const costs::Case& c : cases) {
    constexpr double kHostRows = costs::kHostRows;
    TESSERA_ASSIGN(costs::Packed part, costs::Pack(c, costs::kHostRows));
    TESSERA_ASSIGN(double measured, costs::Nanoseconds(&part));
    for (size_t i = 1; i < part.nodes.size(); ++i) measured -= leaf / kHostRows * part.nodes[i].values;
    const PackedNode& root = part.nodes[0];
    const double expected = NodeNanoseconds(c.tree.scheme, kHostRows, static_cast<double>(root.parameter), c.width());
    TESSERA_ASSIGN(costs::Packed whole, costs::Pack(c, costs::kRows));
    TESSERA_TRY(costs::Nanoseconds(&whole).status());  // unpacks it
    Chunk chunk;
    chunk.type = SqlType::Of(c.scaled() ? TypeId::kDouble : TypeId::kBigint);
    chunk.width = c.width();
    chunk.rows = costs::kRows;
    chunk.codes_bytes = costs::kRows * static_cast<uint64_t>(c.width());
    chunk.packed_codes = whole.bytes.data();
    chunk.packed_bytes = whole.bytes.size();
    TESSERA_ASSIGN(const GpuUnpacking on_gpu, UnpackOnGpu(gpu, chunk, whole.codes()));
    printf("\"%s\",%.3f,%.3f,%" PRIu64 ",%.4f,%.1f\n", c.name.c_str(), measured / kHostRows,
           expected * UnpackSpeed() / kHostRows, chunk.codes_bytes, on_gpu.milliseconds, on_gpu.PercentOfCopy(gpu));
  }
  return Status::Ok();
}

}  // namespace tessera::bench
