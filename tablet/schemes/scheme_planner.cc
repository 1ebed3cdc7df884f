#include "tablet/schemes/scheme_planner.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tablet/schemes/bit_packing.h"

namespace tessera {
namespace {

using Values = std::vector<uint64_t>;

constexpr double kNodeBytes = sizeof(PackedNode);

/// What a goal asks for.
struct Weights {
  int depth;                  ///< schemes from the root to a leaf, at most
  double bytes_a_nanosecond;  ///< that a slower tree must save
  size_t sample;              ///< values looked at
  double least_saving;
  int text_level;
};

const Weights& WeightsOf(CompressionGoal goal) {
  static constexpr Weights kWeights[] = {
      {0, 0, 0, 1, 0}, {2, 0.5, 8192, 0.3, 0}, {4, 0.05, 16384, 0.4, 1}, {kDeepestTree, 0.0005, 65536, 0.02, 9}};
  return kWeights[static_cast<int>(goal)];
}

/// Nanoseconds a value, of one scheme without those below it, on one core of 2020 or so (bench/compression.cc measures
/// them).
double NanosecondsOf(Scheme scheme) {
  static constexpr double kNanoseconds[kSchemes] = {0.4, 3.0, 0.3, 0.8, 0.6, 1.2, 2.0, 1.5, 4.0, 1.0};
  return kNanoseconds[static_cast<int>(scheme)];
}

/// What the rules ask of a stream.
struct Properties {
  uint64_t greatest = 0;
  int64_t least = INT64_MAX, greatest_signed = INT64_MIN;
  size_t runs = 0;
  size_t distinct = 0;
  uint64_t divisor = 0;  ///< of all differences from the least value

  uint64_t span() const { return static_cast<uint64_t>(greatest_signed) - static_cast<uint64_t>(least); }
};

Properties PropertiesOf(std::span<const uint64_t> values) {
  Properties p;
  for (size_t i = 0; i < values.size(); ++i) {
    p.greatest = std::max(p.greatest, values[i]);
    p.least = std::min(p.least, static_cast<int64_t>(values[i]));
    p.greatest_signed = std::max(p.greatest_signed, static_cast<int64_t>(values[i]));
    p.runs += i == 0 || values[i] != values[i - 1];
  }
  for (size_t i = 0; i < values.size() && p.divisor != 1; ++i) {
    p.divisor = std::gcd(p.divisor, values[i] - static_cast<uint64_t>(p.least));
  }
  Values sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  p.distinct = static_cast<size_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
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
      // A sample in which values repeat has most of them.
      distinct =
          p.distinct * 4 <= values.size() ? p.distinct : static_cast<uint64_t>(static_cast<double>(p.distinct) * scale);
    }
    const auto has = [&](Scheme scheme) { return std::find(above.begin(), above.end(), scheme) != above.end(); };
    const Scheme last = above.empty() ? Scheme::kNs : above.back();
    const int bits = BitsOf(p.greatest);
    plans.push_back({SchemeTree::Leaf(Scheme::kNs), rows * bits / 8 + kNodeBytes, NanosecondsOf(Scheme::kNs)});
    if (p.greatest <= UINT32_MAX && bits > 8) {
      double bytes = 0;
      for (const uint64_t value : values) bytes += 0.25 + std::max(1, (BitsOf(value) + 7) / 8);
      plans.push_back({SchemeTree::Leaf(Scheme::kNsv), bytes * scale + kNodeBytes, NanosecondsOf(Scheme::kNsv)});
    }
    const int depth = static_cast<int>(above.size()) + 1;
    if (depth < weights_.depth) {
      if (last != Scheme::kFor && BitsOf(p.span()) < bits) {
        const Values codes = LessBase(values, static_cast<uint64_t>(p.least));
        Add(Scheme::kFor, 0, {Best(codes, scale, distinct, above, Scheme::kFor)}, {1}, &plans);
      }
      if (p.divisor > 1 && !has(Scheme::kSep) && p.least >= 0 && static_cast<uint64_t>(p.least) % p.divisor == 0) {
        AddSep(values, scale, p.divisor, above, &plans);
      }
      if (!has(Scheme::kRle) && p.runs * 2 <= values.size()) AddRle(values, scale, above, &plans);
      // Differences of differences are for straight lines: the differences are one run then.
      if (!has(Scheme::kDelta) && last != Scheme::kDict && values.size() > 1 && p.distinct > 2) {
        AddDelta(values, scale, p, above, &plans);
      }
      if (!has(Scheme::kDict) && distinct * 4 <= static_cast<uint64_t>(rows) && BitsOf(distinct) < BitsOf(p.span()) &&
          last != Scheme::kDelta) {
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

  /// `shares`: values of the child for each one of this stream.
  static void Add(Scheme scheme, uint64_t parameter, std::vector<SchemePlan> children,
                  const std::vector<double>& shares, std::vector<SchemePlan>* plans) {
    SchemePlan plan{{scheme, parameter, {}}, kNodeBytes, NanosecondsOf(scheme)};
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
        plans);
  }

  void AddRle(std::span<const uint64_t> values, double scale, const std::vector<Scheme>& above,
              std::vector<SchemePlan>* plans) {
    Values runs, lengths;
    SplitRuns(values, &runs, &lengths);
    const double share = static_cast<double>(runs.size()) / static_cast<double>(values.size());
    Add(Scheme::kRle, 0, {Best(runs, scale, 0, above, Scheme::kRle), Best(lengths, scale, 0, above, Scheme::kRle)},
        {share, share}, plans);
  }

  void AddDelta(std::span<const uint64_t> values, double scale, const Properties& p, const std::vector<Scheme>& above,
                std::vector<SchemePlan>* plans) {
    const Values deltas = DeltasOf(values);
    int64_t least = INT64_MAX, greatest = INT64_MIN;
    for (const uint64_t delta : deltas) {
      least = std::min(least, static_cast<int64_t>(delta));
      greatest = std::max(greatest, static_cast<int64_t>(delta));
    }
    if (BitsOf(static_cast<uint64_t>(greatest) - static_cast<uint64_t>(least)) >= BitsOf(p.span())) return;
    Add(Scheme::kDelta, 0, {Best(deltas, scale, 0, above, Scheme::kDelta)}, {1}, plans);
  }

  void AddDict(std::span<const uint64_t> values, double scale, uint64_t distinct, const std::vector<Scheme>& above,
               std::vector<SchemePlan>* plans) {
    Values different(values.begin(), values.end());
    std::sort(different.begin(), different.end());
    different.erase(std::unique(different.begin(), different.end()), different.end());
    Values rows(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      rows[i] =
          static_cast<uint64_t>(std::lower_bound(different.begin(), different.end(), values[i]) - different.begin());
    }
    const double entries_scale = static_cast<double>(distinct) / static_cast<double>(different.size());
    SchemePlan dictionary = Best(different, entries_scale, distinct, above, Scheme::kDict);
    SchemePlan numbers = Best(rows, scale, distinct, above, Scheme::kDict);
    if (numbers.tree.scheme == Scheme::kNs) {
      numbers.bytes = static_cast<double>(rows.size()) * scale * BitsOf(distinct - 1) / 8 + kNodeBytes;
    }
    Add(Scheme::kDict, 0, {std::move(dictionary), std::move(numbers)}, {0, 1}, plans);
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
                      child.nanoseconds + NanosecondsOf(Scheme::kScale)};
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

}  // namespace tessera
