// Optimal string alignment distance, three rows at a time.
#include "compiler/query/nearest_name.h"

#include <algorithm>
#include <cstdlib>

namespace tessera {
namespace {

constexpr size_t kLongest = 64;           // PostgreSQL's names end at 63 bytes
constexpr size_t kMostCandidates = 5000;  // a hint is worth a millisecond, not more

/// The distance, or `limit` + 1 if it is more than `limit`.
size_t Distance(std::string_view a, std::string_view b, size_t limit) {
  const size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (difference > limit) return limit + 1;
  size_t rows[3][kLongest + 1];
  size_t* before = rows[0];
  size_t* last = rows[1];
  size_t* row = rows[2];
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    size_t least = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
      least = std::min(least, row[j]);
    }
    if (least > limit) return limit + 1;
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string NearestName(std::string_view name, const std::vector<std::string_view>& candidates) {
  std::string_view best;
  size_t best_distance = static_cast<size_t>(-1);
  if (name.size() > kLongest) return {};
  const size_t count = std::min(candidates.size(), kMostCandidates);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view c = candidates[i];
    if (c.size() > kLongest || c.empty()) continue;
    const size_t limit = std::max(name.size(), c.size()) / 3;
    if (limit == 0) continue;  // a name of one or two letters is similar to any other
    const size_t d = Distance(name, c, std::min(limit, best_distance - 1));
    if (d <= limit && d < best_distance) {
      best = c;
      best_distance = d;
      if (d == 0) break;
    }
  }
  return std::string(best);
}

}  // namespace tessera
