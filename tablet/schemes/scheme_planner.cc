#include "tablet/schemes/scheme_planner.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tablet/schemes/bit_packing.h"
#include "tablet/schemes/different_values.h"
#include "tablet/schemes/unpack_cost.h"

namespace tessera {
namespace {

constexpr double kNodeBytes = sizeof(PackedNode);
/// The part of the bits at which SharedUpperBits() may leave a stream.
constexpr double kLeastShared = 0.97;

/// What a goal asks for.
struct Weights {
  int depth;                  ///< schemes from the root to a leaf, at most
  double bytes_a_nanosecond;  ///< that a slower tree must save
  size_t sample;              ///< values looked at
  double least_saving;
  int text_level;
  bool tries;  ///< packs what is close to the best as well
};

const Weights& WeightsOf(CompressionGoal goal) {
  static constexpr Weights kWeights[] = {{0, 0, 0, 1, 0, false},
                                         {2, 0.5, 8192, 0.3, 0, false},
                                         {4, 0.05, 16384, 0.4, 1, false},
                                         {kDeepestTree, 0.0005, 32768, 0.02, 9, true}};
  return kWeights[static_cast<int>(goal)];
}

/// For the cost of dictionaries. (Those of all candidates have the same width, and it matters little.)
constexpr int kWidth = 4;
/// Candidates that the sample takes for less than so much worse than the best are packed as well to see, if the goal is to
/// save bytes.
constexpr double kClose = 1.25;
constexpr size_t kMostTried = 3;

/// What the rules ask of a stream.
struct Properties {
  uint64_t greatest = 0;
  int64_t least = INT64_MAX, greatest_signed = INT64_MIN;
  size_t runs = 0;
  /// If more than a quarter of the values are different, and more than 2, no more than that is known.
  size_t distinct = 0;
  uint64_t divisor = 0;  ///< of all differences from the least value

  uint64_t span() const { return static_cast<uint64_t>(greatest_signed) - static_cast<uint64_t>(least); }
};

Properties PropertiesOf(std::span<const uint64_t> values) {
  Properties p;
  p.runs = values.empty() ? 0 : 1;
  for (const uint64_t value : values) {
    p.greatest = std::max(p.greatest, value);
    p.least = std::min(p.least, static_cast<int64_t>(value));
    p.greatest_signed = std::max(p.greatest_signed, static_cast<int64_t>(value));
  }
  for (size_t i = 1; i < values.size(); ++i) p.runs += values[i] != values[i - 1];
  for (size_t i = 0; i < values.size() && p.divisor != 1; ++i) {
    p.divisor = std::gcd(p.divisor, values[i] - static_cast<uint64_t>(p.least));
  }
  p.distinct = DifferentValues(values, std::max<size_t>(values.size() / 4, 2)).size();
  return p;
}

class Planner {
 public:
  Planner(const Weights& weights) : weights_(weights) {}

  /// `scale`: values of the stream for each one of the sample. `distinct`: of the stream if that is known, else 0.
  /// `above`: the schemes from the root to here.
  std::vector<SchemePlan> Plan(std::span<const uint64_t> values, double scale, uint64_t distinct,
                               const std::vector<Scheme>& above) {
    std::vector<SchemePlan> plans;
    const double rows = static_cast<double>(values.size()) * scale;
    if (values.empty()) return {{SchemeTree::Leaf(Scheme::kNs), 0, 0}};
    const Properties p = PropertiesOf(values);
    if (distinct == 0) {
      // A sample in which values repeat has most of them. Otherwise there are many, and it does not matter how many.
      distinct = p.distinct * 4 <= values.size() ? p.distinct : static_cast<uint64_t>(rows);
    }
    const auto has = [&](Scheme scheme) { return std::find(above.begin(), above.end(), scheme) != above.end(); };
    const Scheme last = above.empty() ? Scheme::kNs : above.back();
    const int bits = BitsOf(p.greatest);
    plans.push_back({SchemeTree::Leaf(Scheme::kNs), rows * bits / 8 + kNodeBytes, CostOf(Scheme::kNs, rows, 0)});
    if (p.greatest <= UINT32_MAX && bits > 8) {
      double bytes = 0;
      for (const uint64_t value : values) bytes += 0.25 + std::max(1, (BitsOf(value) + 7) / 8);
      plans.push_back({SchemeTree::Leaf(Scheme::kNsv), bytes * scale + kNodeBytes, CostOf(Scheme::kNsv, rows, 0)});
    }
    const int depth = static_cast<int>(above.size()) + 1;
    if (depth < weights_.depth) {
      if (last != Scheme::kFor && BitsOf(p.span()) < bits) {
        const Values codes = LessBase(values, static_cast<uint64_t>(p.least));
        Add(Scheme::kFor, 0, {Best(codes, scale, distinct, above, Scheme::kFor)}, {1}, CostOf(Scheme::kFor, rows, 0),
            &plans);
      }
      if (p.divisor > 1 && !has(Scheme::kSep) && p.least >= 0 && static_cast<uint64_t>(p.least) % p.divisor == 0) {
        AddSep(values, scale, p.divisor, above, &plans);
      }
      if (depth <= 2 && !has(Scheme::kSep) && weights_.depth > 4) {
        const int low = SharedUpperBits(values, bits);
        if (low > 0) AddUpperBits(values, scale, low, above, &plans);
      }
      if (!has(Scheme::kRle) && p.runs * 2 <= values.size()) AddRle(values, scale, above, &plans);
      // Differences of differences are for straight lines: the differences are one run then.
      if (!has(Scheme::kDelta) && last != Scheme::kDict && values.size() > 1 && p.distinct > 2) {
        AddDelta(values, scale, p, above, &plans);
      }
      if (!has(Scheme::kDict) && distinct * 4 <= static_cast<uint64_t>(rows) && BitsOf(distinct) < BitsOf(p.span())) {
        AddDict(values, scale, distinct, above, &plans);
      }
    }
    std::stable_sort(plans.begin(), plans.end(),
                     [&](const SchemePlan& a, const SchemePlan& b) { return Score(a, rows) < Score(b, rows); });
    return plans;
  }

  double Score(const SchemePlan& plan, double rows) const {
    return plan.bytes + plan.nanoseconds * rows * weights_.bytes_a_nanosecond;
  }

 private:
  SchemePlan Best(std::span<const uint64_t> values, double scale, uint64_t distinct, const std::vector<Scheme>& above,
                  Scheme scheme) {
    std::vector<Scheme> path = above;
    path.push_back(scheme);
    return Plan(values, scale, distinct, path).front();
  }

  /// Nanoseconds a value of `rows`.
  static double CostOf(Scheme scheme, double rows, double inner) {
    return NodeNanoseconds(scheme, rows, inner, kWidth) / rows;
  }

  /// How many lower bits SEP takes from values so that the upper ones have runs, 0 if that is no good: for values that
  /// come close to one another but in no order, as the dates of an order's lines.
  static int SharedUpperBits(std::span<const uint64_t> values, int bits) {
    // Where two neighbours differ in bit b - 1 but in none above, a run ends for fewer than b lower bits.
    size_t highest[65] = {};
    for (size_t i = 1; i < values.size(); ++i) ++highest[BitsOf(values[i] ^ values[i - 1])];
    const double all = static_cast<double>(values.size());
    double least = kLeastShared * all * bits;
    int best = 0;
    double runs = 1;
    for (int low = bits - 1; low > 0; --low) {
      runs += static_cast<double>(highest[low + 1]);
      const double length_bits = std::log2(all / runs) + 2;
      const double bits_of_all = all * low + runs * (bits - low + length_bits);
      if (bits_of_all < least) {
        least = bits_of_all;
        best = low;
      }
    }
    return best;
  }

  /// `shares`: values of the child for each one of this stream; `cost`: nanoseconds a value, without the children.
  static void Add(Scheme scheme, uint64_t parameter, std::vector<SchemePlan> children,
                  const std::vector<double>& shares, double cost, std::vector<SchemePlan>* plans) {
    SchemePlan plan{{scheme, parameter, {}}, kNodeBytes, cost};
    for (size_t i = 0; i < children.size(); ++i) {
      plan.bytes += children[i].bytes;
      plan.nanoseconds += children[i].nanoseconds * shares[i];
      plan.tree.children.push_back(std::move(children[i].tree));
    }
    plans->push_back(std::move(plan));
  }

  void AddSep(std::span<const uint64_t> values, double scale, uint64_t divisor, const std::vector<Scheme>& above,
              std::vector<SchemePlan>* plans) {
    Values quotients, remainders;
    Separate(values, divisor, &quotients, &remainders);
    Add(Scheme::kSep, divisor,
        {Best(quotients, scale, 0, above, Scheme::kSep), Best(remainders, scale, 0, above, Scheme::kSep)}, {1, 1},
        CostOf(Scheme::kSep, 1, 0), plans);
  }

  void AddUpperBits(std::span<const uint64_t> values, double scale, int low, const std::vector<Scheme>& above,
                    std::vector<SchemePlan>* plans) {
    Values upper(values.size());
    for (size_t i = 0; i < values.size(); ++i) upper[i] = values[i] >> low;
    // The lower bits are in no order.
    const double rows = static_cast<double>(values.size()) * scale;
    SchemePlan lower{SchemeTree::Leaf(Scheme::kNs), rows * low / 8 + kNodeBytes, CostOf(Scheme::kNs, rows, 0)};
    Add(Scheme::kSep, uint64_t{1} << low, {Best(upper, scale, 0, above, Scheme::kSep), std::move(lower)}, {1, 1},
        CostOf(Scheme::kSep, 1, 0), plans);
  }

  void AddRle(std::span<const uint64_t> values, double scale, const std::vector<Scheme>& above,
              std::vector<SchemePlan>* plans) {
    Values runs, lengths;
    SplitRuns(values, &runs, &lengths);
    const double share = static_cast<double>(runs.size()) / static_cast<double>(values.size());
    Add(Scheme::kRle, 0, {Best(runs, scale, 0, above, Scheme::kRle), Best(lengths, scale, 0, above, Scheme::kRle)},
        {share, share}, CostOf(Scheme::kRle, 1, share), plans);
  }

  void AddDelta(std::span<const uint64_t> values, double scale, const Properties& p, const std::vector<Scheme>& above,
                std::vector<SchemePlan>* plans) {
    const Values deltas = DeltasOf(values);
    int64_t least = INT64_MAX, greatest = INT64_MIN;
    for (const uint64_t delta : deltas) {
      least = std::min(least, static_cast<int64_t>(delta));
      greatest = std::max(greatest, static_cast<int64_t>(delta));
    }
    const bool narrow = BitsOf(static_cast<uint64_t>(greatest) - static_cast<uint64_t>(least)) < BitsOf(p.span());
    // Steps that are as far apart as the values, but always the same few, are for a dictionary.
    if (!narrow && (weights_.depth <= 4 || DifferentValues(deltas, deltas.size() / 4).size() * 4 > deltas.size()))
      return;
    Add(Scheme::kDelta, 0, {Best(deltas, scale, 0, above, Scheme::kDelta)}, {1}, CostOf(Scheme::kDelta, 1, 0), plans);
  }

  void AddDict(std::span<const uint64_t> values, double scale, uint64_t distinct, const std::vector<Scheme>& above,
               std::vector<SchemePlan>* plans) {
    DifferentValues numbering(values);
    const Values different = numbering.Sort();
    const Values rows = numbering.NumbersOf(values);
    const double entries_scale = static_cast<double>(distinct) / static_cast<double>(different.size());
    SchemePlan dictionary = Best(different, entries_scale, distinct, above, Scheme::kDict);
    SchemePlan numbers = Best(rows, scale, distinct, above, Scheme::kDict);
    if (numbers.tree.scheme == Scheme::kNs) {
      numbers.bytes = static_cast<double>(rows.size()) * scale * BitsOf(distinct - 1) / 8 + kNodeBytes;
    }
    Add(Scheme::kDict, 0, {std::move(dictionary), std::move(numbers)}, {0, 1},
        CostOf(Scheme::kDict, static_cast<double>(values.size()), static_cast<double>(distinct)), plans);
  }

  const Weights& weights_;
};

}  // namespace

double LeastSaving(CompressionGoal goal) { return WeightsOf(goal).least_saving; }
int TextLevel(CompressionGoal goal) { return WeightsOf(goal).text_level; }

std::vector<SchemePlan> PlanIntegers(std::span<const uint64_t> values, uint64_t distinct, const ScaledCodes* scaled,
                                     CompressionGoal goal) {
  const Weights& weights = WeightsOf(goal);
  if (weights.depth == 0 || values.empty()) return {};
  const size_t sampled = std::min(values.size(), weights.sample);
  const std::span<const uint64_t> sample = values.subspan((values.size() - sampled) / 2, sampled);
  const double scale = static_cast<double>(values.size()) / static_cast<double>(sampled);
  Planner planner(weights);
  std::vector<SchemePlan> plans = planner.Plan(sample, scale, distinct, {});
  if (scaled != nullptr && weights.depth > 2) {
    // The least power that has all numbers of the sample; most columns have 0, 1 or 2 digits.
    for (int power = 0; power <= 6; ++power) {
      int64_t least = 0;
      uint64_t null = 0;
      const auto numbers = ScaleCodes(sample, power, *scaled, &least, &null);
      if (!numbers) continue;
      SchemePlan child = planner.Plan(*numbers, scale, distinct, {Scheme::kScale}).front();
      SchemePlan plan{{Scheme::kScale, static_cast<uint64_t>(power), {}},
                      child.bytes,
                      child.nanoseconds + NodeNanoseconds(Scheme::kScale, 1, 0, kWidth)};
      plan.tree.children.push_back(std::move(child.tree));
      plans.push_back(std::move(plan));
      const double rows = static_cast<double>(values.size());
      std::stable_sort(plans.begin(), plans.end(), [&](const SchemePlan& a, const SchemePlan& b) {
        return planner.Score(a, rows) < planner.Score(b, rows);
      });
      break;
    }
  }
  return plans;
}

std::optional<PackedPlan> PackByPlan(std::span<const uint64_t> values, const std::vector<SchemePlan>& plans,
                                     const ScaledCodes* scaled, CompressionGoal goal) {
  // The sample may be unlike the rest, so that the best plan turns out to be worse than the next, or impossible.
  const bool tries = WeightsOf(goal).tries;
  std::optional<PackedPlan> best;
  for (size_t i = 0; i < std::min<size_t>(plans.size(), tries ? kMostTried : 2); ++i) {
    if (best && plans[i].bytes > kClose * static_cast<double>(best->bytes.size())) break;
    std::optional<std::vector<uint8_t>> packed = PackIntegers(values, plans[i].tree, scaled);
    if (!packed) continue;
    const double bytes = static_cast<double>(packed->size());
    if (!best || bytes < static_cast<double>(best->bytes.size())) best = {std::move(*packed), i};
    if (bytes <= (tries ? 1.01 : 1.05) * plans[i].bytes + (tries ? 512 : 4096)) break;
  }
  return best;
}

}  // namespace tessera
