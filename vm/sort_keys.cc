#include "vm/sort_keys.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "base/int128.h"
#include "base/interrupt.h"
#include "base/thread_pool.h"
#include "tablet/ordered_float.h"

namespace tessera::vm {
namespace {

constexpr uint64_t kSign = uint64_t{1} << 63;
/// From this number of rows on, several threads sort.
constexpr size_t kSharedRows = 1 << 17;
/// From this number of rows on, keys of few bits are sorted digit by digit.
constexpr size_t kDigitRows = 1 << 14;
/// Bits of a digit at most: the places of all its values fit the cache.
constexpr uint32_t kDigitBits = 11;
/// Rows that are sorted, merged or looked at between two questions whether to stop: some 50 ms of sorting.
constexpr size_t kUninterrupted = 1 << 19;

/// Calls f(i) for each i < rows, until the statement is cancelled.
template <class F>
void EachRow(size_t first, size_t last, const F& f) {
  for (size_t begin = first; begin < last; begin += kUninterrupted) {
    ThrowIfInterrupted();
    const size_t end = std::min(last, begin + kUninterrupted);
    for (size_t i = begin; i < end; ++i) f(i);
  }
}
template <class F>
void EachRow(size_t rows, const F& f) {
  EachRow(0, rows, f);
}

/// One number per row, in the order of the column's values. The numbers of NULLs have no meaning. REQUIRES: not wide.
std::vector<uint64_t> OrderedNumbers(const RowColumn& c, const StringPool& strings, size_t rows) {
  std::vector<uint64_t> out(rows);
  switch (c.type.storage()) {
    case StorageClass::kInt:
      EachRow(rows, [&](size_t i) { out[i] = static_cast<uint64_t>(c.low[i]) ^ kSign; });
      break;
    case StorageClass::kFloat:
      EachRow(rows, [&](size_t i) {
        const double v = std::bit_cast<double>(c.low[i]);
        out[i] = v != v ? kOrderedNaN : OrderedFloat(v + 0.0);  // adding 0.0 turns -0.0 into 0.0
      });
      break;
    case StorageClass::kText: {
      // Strings by identifier. If identifiers lie close together, which is usual, an array has the rank of each.
      const auto is_null = [&](size_t i) { return !c.null.empty() && c.null[i] != 0; };
      int64_t least = INT64_MAX, greatest = -1;
      EachRow(rows, [&](size_t i) {
        if (is_null(i)) return;
        least = std::min(least, c.low[i]);
        greatest = std::max(greatest, c.low[i]);
      });
      const uint64_t span = least > greatest ? 0 : static_cast<uint64_t>(greatest) - static_cast<uint64_t>(least) + 1;
      const bool close = span <= 16 * rows + 1024;
      std::vector<int64_t> ids;
      std::vector<uint32_t> ranks(close ? span : 0);
      if (close) {
        EachRow(rows, [&](size_t i) {
          if (!is_null(i)) ranks[static_cast<size_t>(c.low[i] - least)] = 1;
        });
        for (uint64_t at = 0; at < span; ++at) {
          if (ranks[at] != 0) ids.push_back(least + static_cast<int64_t>(at));
        }
      } else {
        EachRow(rows, [&](size_t i) {
          if (!is_null(i)) ids.push_back(c.low[i]);
        });
        std::sort(ids.begin(), ids.end(), InterruptibleLess(std::less<>()));
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
        ranks.resize(ids.size());
      }
      std::vector<std::pair<std::string_view, uint32_t>> sorted;  // with the index in `ranks`
      sorted.reserve(ids.size());
      for (const int64_t id : ids) {
        ThrowIfInterrupted(sorted.size());
        sorted.emplace_back(strings.Get(id),
                            static_cast<uint32_t>(close ? static_cast<size_t>(id - least) : sorted.size()));
      }
      std::sort(sorted.begin(), sorted.end(), InterruptibleLess(std::less<>()));
      for (size_t r = 0; r < sorted.size(); ++r) ranks[sorted[r].second] = static_cast<uint32_t>(r);
      EachRow(rows, [&](size_t i) {
        if (is_null(i)) return;
        const auto place = close ? c.low[i] - least : std::lower_bound(ids.begin(), ids.end(), c.low[i]) - ids.begin();
        out[i] = ranks[static_cast<size_t>(place)];
      });
      break;
    }
    case StorageClass::kWide:
      break;
  }
  return out;
}

/// How many of the first `count` items of two sorted ranges together come from the first range.
template <class T, class Less>
size_t FromFirst(std::span<const T> a, std::span<const T> b, size_t count, const Less& less) {
  size_t low = count - std::min(count, b.size()), high = std::min(count, a.size());
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (less(a[middle], b[count - middle - 1])) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// Sorts all items: runs, which are then merged two by two. Threads share the pieces of both, and each piece is short.
template <class T, class Less>
Status Sort(ThreadPool* pool, const Less& less, std::vector<T>* items) {
  const size_t n = items->size();
  size_t runs = n < kSharedRows ? 1 : std::bit_floor(Workers(pool));
  while (n / runs > kUninterrupted) runs *= 2;
  const auto begin = [&](size_t run) { return n * run / runs; };
  TESSERA_TRY(ForEach(pool, runs, [&](size_t r) {
    std::sort(items->data() + begin(r), items->data() + begin(r + 1), less);
    return Status::Ok();
  }));
  std::vector<T> merged(runs > 1 ? n : 0);
  for (size_t each = 1; each < runs; each *= 2) {
    const size_t pairs = runs / (2 * each), pieces = std::max<size_t>(1, n / pairs / kUninterrupted * 2);
    TESSERA_TRY(ForEach(pool, pairs * pieces, [&](size_t job) {
      const size_t pair = job / pieces, piece = job % pieces;
      const size_t first = begin(2 * pair * each), middle = begin((2 * pair + 1) * each),
                   end = begin((2 * pair + 2) * each);
      const std::span<const T> a(items->data() + first, middle - first), b(items->data() + middle, end - middle);
      const size_t from = (end - first) * piece / pieces, to = (end - first) * (piece + 1) / pieces;
      const size_t a_from = FromFirst(a, b, from, less), a_to = FromFirst(a, b, to, less);
      std::merge(a.data() + a_from, a.data() + a_to, b.data() + (from - a_from), b.data() + (to - a_to),
                 merged.data() + first + from, less);
      return Status::Ok();
    }));
    items->swap(merged);
  }
  return Status::Ok();
}

/// Sorts numbers by their bits [low, low + bits), which are in use up to the highest; equal ones keep their order. Each
/// digit, the lowest first, takes a pass over all numbers. (10 M numbers of 38 bits: a fifth of the time of Sort.)
Status SortByDigits(ThreadPool* pool, uint32_t low, uint32_t bits, std::vector<uint64_t>* items) {
  const size_t n = items->size(), parts = n < kSharedRows ? 1 : Workers(pool);
  const uint32_t passes = (bits + kDigitBits - 1) / kDigitBits, width = passes == 0 ? 0 : (bits + passes - 1) / passes;
  const uint64_t mask = (uint64_t{1} << width) - 1;
  const auto begin = [&](size_t part) { return n * part / parts; };
  std::vector<uint64_t> other(n);
  std::vector<std::vector<size_t>> places(parts, std::vector<size_t>(size_t{1} << width));
  for (uint32_t pass = 0; pass < passes; ++pass) {
    const uint32_t shift = low + pass * width;
    const auto each_part = [&](const std::function<Status(size_t)>& f) {
      return ForEach(parts == 1 ? nullptr : pool, parts, f);
    };
    TESSERA_TRY(each_part([&](size_t p) {
      std::vector<size_t>& count = places[p];
      std::fill(count.begin(), count.end(), 0);
      EachRow(begin(p), begin(p + 1), [&](size_t i) { ++count[(*items)[i] >> shift & mask]; });
      return Status::Ok();
    }));
    size_t place = 0;
    for (uint64_t digit = 0; digit <= mask; ++digit) {
      for (std::vector<size_t>& count : places) place += std::exchange(count[digit], place);
    }
    TESSERA_TRY(each_part([&](size_t p) {
      std::vector<size_t>& next = places[p];
      EachRow(begin(p), begin(p + 1), [&](size_t i) {
        const uint64_t v = (*items)[i];
        other[next[v >> shift & mask]++] = v;
      });
      return Status::Ok();
    }));
    items->swap(other);
  }
  return Status::Ok();
}

/// Sorts the first `count` items to the front and drops the others.
template <class T, class Less>
Status SortFirst(size_t count, ThreadPool* pool, const Less& less, std::vector<T>* items) {
  const size_t n = items->size();
  if (count < n / 4) {
    // A heap of the first so far, the last of them on top.
    const auto begin = items->begin(), end = begin + static_cast<ptrdiff_t>(count);
    std::make_heap(begin, end, InterruptibleLess(less));
    for (size_t i = count; count > 0 && i < n; ++i) {
      ThrowIfInterrupted(i);
      if (!less((*items)[i], *begin)) continue;
      std::pop_heap(begin, end, less);
      end[-1] = (*items)[i];
      std::push_heap(begin, end, less);
    }
    items->resize(count);
  }
  TESSERA_TRY(Sort(pool, less, items));
  items->resize(count);
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
    EachRow(rows_, [&](size_t i) { std::copy_n(words_.data() + i * width_, width_, wider.data() + i * (width_ + 1)); });
    words_ = std::move(wider);
    ++width_;
    free_bits_ = 64;
  }
  if (bits == 0) return;
  free_bits_ -= bits;
  EachRow(rows_, [&](size_t i) { words_[i * width_ + width_ - 1] |= values[i] << free_bits_; });
}

void SortKeys::AppendColumn(const SortKey& key, const StringPool& strings, const RowColumn& c) {
  const auto is_null = [&](size_t i) { return !c.null.empty() && c.null[i] != 0; };
  const bool has_nulls = std::find(c.null.begin(), c.null.end(), uint8_t{1}) != c.null.end();
  // Moves numbers to 0 .. last, in the direction of the order.
  const auto append = [&](std::vector<uint64_t> numbers, bool with_nulls) {
    uint64_t least = UINT64_MAX, greatest = 0;
    EachRow(rows_, [&](size_t i) {
      if (is_null(i)) return;
      least = std::min(least, numbers[i]);
      greatest = std::max(greatest, numbers[i]);
    });
    if (least > greatest) least = greatest = 0;  // all are NULL
    uint64_t last = greatest - least;
    // NULL is one number more, or a column of its own if no number is left.
    const bool apart = with_nulls && last == UINT64_MAX;
    if (apart) {
      std::vector<uint64_t> nulls(rows_);
      EachRow(rows_, [&](size_t i) { nulls[i] = is_null(i) != key.nulls_first ? 1 : 0; });
      Append(nulls, 1);
    }
    const uint64_t first = with_nulls && !apart && key.nulls_first ? 1 : 0;
    if (with_nulls && !apart) ++last;
    const uint64_t null_number = first != 0 || apart ? 0 : last;
    EachRow(rows_, [&](size_t i) {
      if (is_null(i)) {
        numbers[i] = null_number;
      } else {
        numbers[i] = (key.descending ? greatest - numbers[i] : numbers[i] - least) + first;
      }
    });
    Append(numbers, last);
  };
  if (IsWide(c.type)) {
    std::vector<uint64_t> upper(rows_);
    EachRow(rows_, [&](size_t i) { upper[i] = static_cast<uint64_t>(c.high[i]) ^ kSign; });
    append(std::move(upper), has_nulls);
    std::vector<uint64_t> lower(rows_);
    EachRow(rows_, [&](size_t i) { lower[i] = static_cast<uint64_t>(c.low[i]); });
    append(std::move(lower), false);
    return;
  }
  append(OrderedNumbers(c, strings, rows_), has_nulls);
}

Result<std::vector<uint32_t>> SortKeys::First(size_t count, ThreadPool* pool) const {
  std::vector<uint32_t> order(rows_);
  std::iota(order.begin(), order.end(), 0u);
  const auto row_bits = static_cast<uint32_t>(std::bit_width(rows_));
  if (width_ == 1 && rows_ >= kDigitRows && count >= rows_ / 4 && row_bits <= free_bits_) {
    // The row fits beside its key.
    std::vector<uint64_t> packed(rows_);
    EachRow(rows_, [&](size_t i) { packed[i] = words_[i] >> (free_bits_ - row_bits) | i; });
    TESSERA_TRY(SortByDigits(pool, row_bits, 64 - free_bits_, &packed));
    const uint64_t mask = (uint64_t{1} << row_bits) - 1;
    EachRow(count, [&](size_t i) { order[i] = static_cast<uint32_t>(packed[i] & mask); });
  } else if (width_ == 1) {
    // Sorting numbers beside their rows is several times as fast as sorting rows whose numbers are fetched from
    // elsewhere.
    std::vector<std::pair<uint64_t, uint32_t>> keyed(rows_);
    EachRow(rows_, [&](size_t i) { keyed[i] = {words_[i], static_cast<uint32_t>(i)}; });
    TESSERA_TRY(SortFirst(count, pool, std::less<>(), &keyed));
    EachRow(count, [&](size_t i) { order[i] = keyed[i].second; });
  } else if (width_ > 1) {
    TESSERA_TRY(SortFirst(
        count, pool, [this](uint32_t a, uint32_t b) { return Less(a, b); }, &order));
  }
  order.resize(count);
  return order;
}

}  // namespace tessera::vm
