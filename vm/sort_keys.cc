#include "vm/sort_keys.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/int128.h"
#include "tablet/ordered_float.h"
#include "vm/thread_pool.h"

namespace tessera::vm {
namespace {

constexpr uint64_t kSign = uint64_t{1} << 63;
/// From this number of rows on, several threads sort.
constexpr size_t kSharedRows = 1 << 17;

/// One number per row, in the order of the column's values. The numbers of NULLs have no meaning. REQUIRES: not wide.
std::vector<uint64_t> OrderedNumbers(const RowColumn& c, const StringPool& strings, size_t rows) {
  std::vector<uint64_t> out(rows);
  switch (c.type.storage()) {
    case StorageClass::kInt:
      for (size_t i = 0; i < rows; ++i) out[i] = static_cast<uint64_t>(c.low[i]) ^ kSign;
      break;
    case StorageClass::kFloat:
      for (size_t i = 0; i < rows; ++i) {
        const double v = std::bit_cast<double>(c.low[i]);
        out[i] = v != v ? kOrderedNaN : OrderedFloat(v + 0.0);  // adding 0.0 turns -0.0 into 0.0
      }
      break;
    case StorageClass::kText: {
      // Strings by identifier. If identifiers lie close together, which is usual, an array has the rank of each.
      const auto is_null = [&](size_t i) { return !c.null.empty() && c.null[i] != 0; };
      int64_t least = INT64_MAX, greatest = -1;
      for (size_t i = 0; i < rows; ++i) {
        if (is_null(i)) continue;
        least = std::min(least, c.low[i]);
        greatest = std::max(greatest, c.low[i]);
      }
      const uint64_t span = least > greatest ? 0 : static_cast<uint64_t>(greatest) - static_cast<uint64_t>(least) + 1;
      const bool close = span <= 16 * rows + 1024;
      std::vector<int64_t> ids;
      std::vector<uint32_t> ranks(close ? span : 0);
      if (close) {
        for (size_t i = 0; i < rows; ++i) {
          if (!is_null(i)) ranks[static_cast<size_t>(c.low[i] - least)] = 1;
        }
        for (uint64_t at = 0; at < span; ++at) {
          if (ranks[at] != 0) ids.push_back(least + static_cast<int64_t>(at));
        }
      } else {
        for (size_t i = 0; i < rows; ++i) {
          if (!is_null(i)) ids.push_back(c.low[i]);
        }
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
        ranks.resize(ids.size());
      }
      std::vector<std::pair<std::string_view, uint32_t>> sorted;  // with the index in `ranks`
      sorted.reserve(ids.size());
      for (const int64_t id : ids) {
        sorted.emplace_back(strings.Get(id),
                            static_cast<uint32_t>(close ? static_cast<size_t>(id - least) : sorted.size()));
      }
      std::sort(sorted.begin(), sorted.end());
      for (size_t r = 0; r < sorted.size(); ++r) ranks[sorted[r].second] = static_cast<uint32_t>(r);
      for (size_t i = 0; i < rows; ++i) {
        if (is_null(i)) continue;
        const auto place = close ? c.low[i] - least : std::lower_bound(ids.begin(), ids.end(), c.low[i]) - ids.begin();
        out[i] = ranks[static_cast<size_t>(place)];
      }
      break;
    }
    case StorageClass::kWide:
      break;
  }
  return out;
}

/// Sorts the first `count` items to the front.
template <class T, class Less>
Status SortFirst(size_t count, ThreadPool* pool, const Less& less, std::vector<T>* items) {
  const size_t n = items->size();
  const auto at = [&](size_t i) { return items->begin() + static_cast<ptrdiff_t>(i); };
  if (count < n / 4) {
    std::partial_sort(at(0), at(count), at(n), less);
    return Status::Ok();
  }
  // One run per thread, their number a power of two. They are then merged two by two.
  const size_t runs = n < kSharedRows ? 1 : std::bit_floor(Workers(pool));
  const auto begin = [&](size_t run) { return n * run / runs; };
  TESSERA_TRY(ForEach(pool, runs, [&](size_t r) {
    std::sort(at(begin(r)), at(begin(r + 1)), less);
    return Status::Ok();
  }));
  std::vector<T> merged(runs > 1 ? n : 0);
  for (size_t each = 1; each < runs; each *= 2) {
    TESSERA_TRY(ForEach(pool, runs / (2 * each), [&](size_t pair) {
      const size_t first = begin(2 * pair * each), middle = begin((2 * pair + 1) * each),
                   end = begin((2 * pair + 2) * each);
      std::merge(at(first), at(middle), at(middle), at(end), merged.begin() + static_cast<ptrdiff_t>(first), less);
      return Status::Ok();
    }));
    items->swap(merged);
  }
  return Status::Ok();
}

}  // namespace

SortKeys::SortKeys(const std::vector<SortKey>& order, const StringPool& strings, const RowSet& rows)
    : rows_(rows.rows) {
  for (const SortKey& key : order) AppendColumn(key, strings, rows.columns[static_cast<size_t>(key.column)]);
}

void SortKeys::Append(const std::vector<uint64_t>& values, uint64_t last) {
  const uint32_t bits = static_cast<uint32_t>(std::bit_width(last));
  if (bits > free_bits_) {
    std::vector<uint64_t> wider(rows_ * (width_ + 1));
    for (size_t i = 0; i < rows_; ++i) {
      std::copy_n(words_.data() + i * width_, width_, wider.data() + i * (width_ + 1));
    }
    words_ = std::move(wider);
    ++width_;
    free_bits_ = 64;
  }
  if (bits == 0) return;
  free_bits_ -= bits;
  for (size_t i = 0; i < rows_; ++i) words_[i * width_ + width_ - 1] |= values[i] << free_bits_;
}

void SortKeys::AppendColumn(const SortKey& key, const StringPool& strings, const RowColumn& c) {
  const auto is_null = [&](size_t i) { return !c.null.empty() && c.null[i] != 0; };
  const bool has_nulls = std::find(c.null.begin(), c.null.end(), uint8_t{1}) != c.null.end();
  // Moves numbers to 0 .. last, in the direction of the order.
  const auto append = [&](std::vector<uint64_t> numbers, bool with_nulls) {
    uint64_t least = UINT64_MAX, greatest = 0;
    for (size_t i = 0; i < rows_; ++i) {
      if (is_null(i)) continue;
      least = std::min(least, numbers[i]);
      greatest = std::max(greatest, numbers[i]);
    }
    if (least > greatest) least = greatest = 0;  // all are NULL
    uint64_t last = greatest - least;
    // NULL is one number more, or a column of its own if no number is left.
    const bool apart = with_nulls && last == UINT64_MAX;
    if (apart) {
      std::vector<uint64_t> nulls(rows_);
      for (size_t i = 0; i < rows_; ++i) nulls[i] = is_null(i) != key.nulls_first ? 1 : 0;
      Append(nulls, 1);
    }
    const uint64_t first = with_nulls && !apart && key.nulls_first ? 1 : 0;
    if (with_nulls && !apart) ++last;
    const uint64_t null_number = first != 0 || apart ? 0 : last;
    for (size_t i = 0; i < rows_; ++i) {
      if (is_null(i)) {
        numbers[i] = null_number;
      } else {
        numbers[i] = (key.descending ? greatest - numbers[i] : numbers[i] - least) + first;
      }
    }
    Append(numbers, last);
  };
  if (IsWide(c.type)) {
    std::vector<uint64_t> upper(rows_);
    for (size_t i = 0; i < rows_; ++i) upper[i] = static_cast<uint64_t>(c.high[i]) ^ kSign;
    append(std::move(upper), has_nulls);
    std::vector<uint64_t> lower(rows_);
    for (size_t i = 0; i < rows_; ++i) lower[i] = static_cast<uint64_t>(c.low[i]);
    append(std::move(lower), false);
    return;
  }
  append(OrderedNumbers(c, strings, rows_), has_nulls);
}

Result<std::vector<uint32_t>> SortKeys::First(size_t count, ThreadPool* pool) const {
  std::vector<uint32_t> order(rows_);
  std::iota(order.begin(), order.end(), 0u);
  if (width_ == 1) {
    // Sorting numbers beside their rows is several times as fast as sorting rows whose numbers are fetched from
    // elsewhere.
    std::vector<std::pair<uint64_t, uint32_t>> keyed(rows_);
    for (uint32_t i = 0; i < rows_; ++i) keyed[i] = {words_[i], i};
    TESSERA_TRY(SortFirst(count, pool, std::less<>(), &keyed));
    for (size_t i = 0; i < count; ++i) order[i] = keyed[i].second;
  } else if (width_ > 1) {
    TESSERA_TRY(SortFirst(
        count, pool, [this](uint32_t a, uint32_t b) { return Less(a, b); }, &order));
  }
  order.resize(count);
  return order;
}

}  // namespace tessera::vm
