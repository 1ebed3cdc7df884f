#include "tablet/schemes/unpack_cost.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tablet/schemes/packed_stream.h"

namespace tessera {
namespace {

struct Cost {
  double value;  ///< nanoseconds a value
  double inner;  ///< and a run, or, of kBitmap, a value and each different one
};

/// Of a core of an AMD EPYC of 2022 (family 25, model 17): `compression_bench --costs` measures them again.
constexpr Cost kCosts[kSchemes] = {
    {0.1, 0},      // NS
    {0.65, 0},     // NSV
    {0.01, 0},     // FOR: its base is added where bits are unpacked
    {0.37, 0},     // DELTA
    {0.07, 0.8},   // RLE
    {0.27, 0},     // DICT, if the dictionary is in the first cache
    {0.39, 0.14},  // BITMAP
    {0.09, 0},     // SEP
    {1.5, 0},      // SCALE: a division
    {1, 0},        // ZSTD, a byte
};
constexpr double kFirstCache = 32768;
/// Nanoseconds a look-up for each time that the dictionary is twice as large as the first cache.
constexpr double kCacheMisses = 0.12;

}  // namespace

double NodeNanoseconds(Scheme scheme, double values, double inner, int width) {
  const Cost& cost = kCosts[static_cast<int>(scheme)];
  double each = cost.value;
  if (scheme == Scheme::kBitmap) each += inner * cost.inner;
  if (scheme == Scheme::kDict) each += kCacheMisses * std::max(0.0, std::log2(inner * width / kFirstCache));
  return values * each + (scheme == Scheme::kRle ? inner * cost.inner : 0);
}

double UnpackNanoseconds(const PackedTree& tree, int width) {
  double sum = 0;
  for (const PackedNode& node : tree) {
    const Scheme scheme = static_cast<Scheme>(node.scheme);
    const uint64_t values = scheme == Scheme::kZstd ? node.parameter : node.values;
    sum += NodeNanoseconds(scheme, static_cast<double>(values), static_cast<double>(node.parameter), width);
  }
  return sum;
}

double UnpackSpeed() {
  static const double speed = [] {
    constexpr size_t kValues = 65536;
    using Clock = std::chrono::steady_clock;
    std::vector<uint64_t> values(kValues);
    std::vector<uint32_t> out(kValues);
    for (size_t i = 0; i < kValues; ++i) values[i] = i / 30;
    const SchemeTree ns = SchemeTree::Leaf(Scheme::kNs);
    double here = 0, there = 0;
    for (const SchemeTree& tree : {ns, SchemeTree{Scheme::kDelta, 0, {ns}}, SchemeTree{Scheme::kRle, 0, {ns, ns}}}) {
      const std::vector<uint8_t> packed = *PackIntegers(values, tree, nullptr);
      PackedTree nodes;
      if (ParsePackedStream(packed.data(), packed.size(), kValues, 4, false, &nodes) != nullptr) return 1.0;
      // The first runs are slow: the machine may be idle, and the output's pages are new.
      double least = INFINITY;
      for (int run = 0; run < 8; ++run) {
        const auto start = Clock::now();
        if (UnpackStream(packed.data(), nodes, 4, nullptr, reinterpret_cast<uint8_t*>(out.data())) != nullptr)
          return 1.0;
        least = std::min(least, std::chrono::duration<double, std::nano>(Clock::now() - start).count());
      }
      here += least;
      there += UnpackNanoseconds(nodes, 4);
    }
    return here / there;
  }();
  return speed;
}

}  // namespace tessera
