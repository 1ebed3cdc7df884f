#include "vm/rows/sort_keys.h"

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
#include "tablet/values/ordered_float.h"
#include "vm/rows/text_ranks.h"

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

bool IsNull(const RowColumn& c, size_t i) { return !c.null.empty() && c.null[i] != 0; }

/// The ranks of a column's strings, by identifier.
class ColumnRanks {
 public:
  /// Of the first `rows` rows of `c`.
  Status Make(const RowColumn& c, const StringPool& strings, size_t rows, ThreadPool* pool) {
    // If identifiers lie close together, which is usual, an array has the rank of each.
    int64_t greatest = -1;
    least_ = INT64_MAX;
    EachRow(rows, [&](size_t i) {
      if (IsNull(c, i)) return;
      least_ = std::min(least_, c.low[i]);
      greatest = std::max(greatest, c.low[i]);
    });
    const uint64_t span = least_ > greatest ? 0 : static_cast<uint64_t>(greatest) - static_cast<uint64_t>(least_) + 1;
    close_ = span <= 16 * rows + 1024;
    ranks_.resize(close_ ? span : 0);
    if (close_) {
      EachRow(rows, [&](size_t i) {
        if (!IsNull(c, i)) ranks_[static_cast<size_t>(c.low[i] - least_)] = 1;
      });
      for (uint64_t at = 0; at < span; ++at) {
        if (ranks_[at] != 0) ids_.push_back(least_ + static_cast<int64_t>(at));
      }
    } else {
      EachRow(rows, [&](size_t i) {
        if (!IsNull(c, i)) ids_.push_back(c.low[i]);
      });
      std::sort(ids_.begin(), ids_.end(), InterruptibleLess(std::less<>()));
      ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
      ranks_.resize(ids_.size());
    }
    std::vector<std::string_view> texts;
    texts.reserve(ids_.size());
    for (const int64_t id : ids_) {
      ThrowIfInterrupted(texts.size());
      texts.push_back(strings.Get(id));
    }
    TESSERA_ASSIGN(const std::vector<uint32_t> order, OrderOf(texts, pool));
    for (size_t r = 0; r < order.size(); ++r) ranks_[Place(ids_[order[r]], order[r])] = static_cast<uint32_t>(r);
    return Status::Ok();
  }

  /// REQUIRES: the column has the identifier.
  uint64_t operator()(int64_t id) const {
    const auto search = [&] { return std::lower_bound(ids_.begin(), ids_.end(), id) - ids_.begin(); };
    return ranks_[Place(id, close_ ? 0 : static_cast<size_t>(search()))];
  }

 private:
  size_t Place(int64_t id, size_t in_ids) const { return close_ ? static_cast<size_t>(id - least_) : in_ids; }

  bool close_ = true;
  int64_t least_ = 0;
  std::vector<int64_t> ids_;  // in order
  std::vector<uint32_t> ranks_;
};

uint64_t NumberOfFloat(int64_t bits) {
  const double v = std::bit_cast<double>(bits);
  return v != v ? kOrderedNaN : OrderedFloat(v + 0.0);  // adding 0.0 turns -0.0 into 0.0
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
template <class Items, class Less>
Status Sort(ThreadPool* pool, const Less& less, Items* items) {
  using T = typename Items::value_type;
  const size_t n = items->size();
  size_t runs = n < kSharedRows ? 1 : std::bit_floor(Workers(pool));
  while (n / runs > kUninterrupted) runs *= 2;
  const auto begin = [&](size_t run) { return n * run / runs; };
  TESSERA_TRY(ForEach(pool, runs, [&](size_t r) {
    std::sort(items->data() + begin(r), items->data() + begin(r + 1), less);
    return Status::Ok();
  }));
  Items merged(runs > 1 ? n : 0);
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

struct Keyed {
  uint64_t key;
  uint32_t row;
  friend bool operator<(const Keyed& a, const Keyed& b) { return a.key != b.key ? a.key < b.key : a.row < b.row; }
};
uint64_t KeyOf(uint64_t item) { return item; }
uint64_t KeyOf(const Keyed& item) { return item.key; }

/// Sorts items by bits [low, high) of their keys; equal ones keep their order. Each digit, the lowest first, takes a pass
/// over all items, unless they all have the same. (10 M numbers of 38 bits: a fifth of the time of Sort.)
template <class T>
Status SortByDigits(ThreadPool* pool, uint32_t low, uint32_t high, UninitializedVector<T>* items) {
  const size_t n = items->size(), parts = n < kSharedRows ? 1 : Workers(pool);
  const uint32_t bits = high - low, passes = (bits + kDigitBits - 1) / kDigitBits;
  const uint32_t width = passes == 0 ? 0 : (bits + passes - 1) / passes;
  const uint64_t mask = (uint64_t{1} << width) - 1;
  const auto begin = [&](size_t part) { return n * part / parts; };
  UninitializedVector<T> other;
  std::vector<std::vector<size_t>> places(parts, std::vector<size_t>(size_t{1} << width));
  for (uint32_t pass = 0; pass < passes; ++pass) {
    const uint32_t shift = low + pass * width;
    const auto each_part = [&](const std::function<Status(size_t)>& f) {
      return ForEach(parts == 1 ? nullptr : pool, parts, f);
    };
    TESSERA_TRY(each_part([&](size_t p) {
      std::vector<size_t>& count = places[p];
      std::fill(count.begin(), count.end(), 0);
      EachRow(begin(p), begin(p + 1), [&](size_t i) { ++count[KeyOf((*items)[i]) >> shift & mask]; });
      return Status::Ok();
    }));
    size_t place = 0, most = 0;
    for (uint64_t digit = 0; digit <= mask; ++digit) {
      const size_t before = place;
      for (std::vector<size_t>& count : places) place += std::exchange(count[digit], place);
      most = std::max(most, place - before);
    }
    if (most == n) continue;
    other.resize(n);
    TESSERA_TRY(each_part([&](size_t p) {
      std::vector<size_t>& next = places[p];
      EachRow(begin(p), begin(p + 1), [&](size_t i) {
        const T item = (*items)[i];
        other[next[KeyOf(item) >> shift & mask]++] = item;
      });
      return Status::Ok();
    }));
    items->swap(other);
  }
  return Status::Ok();
}

/// Sorts the first `count` items to the front and drops the others.
template <class Items, class Less>
Status SortFirst(size_t count, ThreadPool* pool, const Less& less, Items* items) {
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

Result<SortKeys> SortKeys::Make(const std::vector<SortKey>& order, const StringPool& strings, const RowSet& rows,
                                ThreadPool* pool) {
  SortKeys keys(rows.rows, pool);
  for (const SortKey& key : order)
    TESSERA_TRY(keys.AppendColumn(key, strings, rows.columns[static_cast<size_t>(key.column)]));
  return keys;
}

template <class F>
Status SortKeys::ForParts(const F& f) const {
  const size_t parts = Parts();
  return ForEach(parts == 1 ? nullptr : pool_, parts, [&](size_t part) {
    f(part, rows_ * part / parts, rows_ * (part + 1) / parts);
    return Status::Ok();
  });
}

size_t SortKeys::Parts() const { return rows_ < kSharedRows ? 1 : Workers(pool_); }

Status SortKeys::MakeRoom(uint32_t bits) {
  if (bits <= free_bits_) return Status::Ok();
  UninitializedVector<uint64_t> wider(rows_ * (width_ + 1));
  TESSERA_TRY(ForParts([&](size_t, size_t begin, size_t end) {
    EachRow(begin, end, [&](size_t i) {
      uint64_t* const to = wider.data() + i * (width_ + 1);
      for (uint32_t w = 0; w < width_; ++w) to[w] = words_[i * width_ + w];
      to[width_] = 0;
    });
  }));
  words_ = std::move(wider);
  ++width_;
  free_bits_ = 64;
  return Status::Ok();
}

template <class F>
Status SortKeys::Append(uint64_t last, const F& value) {
  const uint32_t bits = static_cast<uint32_t>(std::bit_width(last));
  TESSERA_TRY(MakeRoom(bits));
  if (bits == 0) return Status::Ok();
  free_bits_ -= bits;
  return ForParts([&](size_t, size_t begin, size_t end) {
    uint64_t* const words = words_.data() + width_ - 1;
    EachRow(begin, end, [&](size_t i) { words[i * width_] |= value(i) << free_bits_; });
  });
}

template <class F>
Status SortKeys::AppendNumbers(const SortKey& key, const RowColumn& c, bool with_nulls, const F& number) {
  struct Range {
    uint64_t least = UINT64_MAX, greatest = 0;
  };
  std::vector<Range> ranges(Parts());
  TESSERA_TRY(ForParts([&](size_t part, size_t begin, size_t end) {
    Range range;
    EachRow(begin, end, [&](size_t i) {
      if (IsNull(c, i)) return;
      const uint64_t v = number(i);
      range.least = std::min(range.least, v);
      range.greatest = std::max(range.greatest, v);
    });
    ranges[part] = range;
  }));
  uint64_t least = UINT64_MAX, greatest = 0;
  for (const Range& r : ranges) {
    least = std::min(least, r.least);
    greatest = std::max(greatest, r.greatest);
  }
  if (least > greatest) least = greatest = 0;  // all are NULL
  // Moves numbers to 0 .. last, in the direction of the order.
  uint64_t last = greatest - least;
  // NULL is one number more, or a column of its own if no number is left.
  const bool apart = with_nulls && last == UINT64_MAX;
  if (apart) TESSERA_TRY(Append(1, [&](size_t i) { return uint64_t{IsNull(c, i) != key.nulls_first}; }));
  const uint64_t first = with_nulls && !apart && key.nulls_first ? 1 : 0;
  if (with_nulls && !apart) ++last;
  const uint64_t null_number = first != 0 || apart ? 0 : last;
  return Append(last, [&](size_t i) {
    if (IsNull(c, i)) return null_number;
    return (key.descending ? greatest - number(i) : number(i) - least) + first;
  });
}

Status SortKeys::AppendColumn(const SortKey& key, const StringPool& strings, const RowColumn& c) {
  const bool has_nulls = std::find(c.null.begin(), c.null.end(), uint8_t{1}) != c.null.end();
  switch (c.type.storage()) {
    case StorageClass::kInt:
      return AppendNumbers(key, c, has_nulls, [&](size_t i) { return static_cast<uint64_t>(c.low[i]) ^ kSign; });
    case StorageClass::kFloat:
      return AppendNumbers(key, c, has_nulls, [&](size_t i) { return NumberOfFloat(c.low[i]); });
    case StorageClass::kText: {
      ColumnRanks ranks;
      TESSERA_TRY(ranks.Make(c, strings, rows_, pool_));
      return AppendNumbers(key, c, has_nulls, [&](size_t i) { return ranks(c.low[i]); });
    }
    case StorageClass::kWide:
      TESSERA_TRY(AppendNumbers(key, c, has_nulls, [&](size_t i) { return static_cast<uint64_t>(c.high[i]) ^ kSign; }));
      return AppendNumbers(key, c, false, [&](size_t i) { return static_cast<uint64_t>(c.low[i]); });
  }
  return Status::Ok();
}

Result<UninitializedVector<uint32_t>> SortKeys::First(size_t count) const {
  UninitializedVector<uint32_t> order(rows_);
  const bool by_digits = width_ > 0 && rows_ >= kDigitRows && count >= rows_ / 4;
  const auto row_bits = static_cast<uint32_t>(std::bit_width(rows_));
  if (by_digits && width_ == 1 && row_bits <= free_bits_) {
    // The row fits beside its key.
    UninitializedVector<uint64_t> packed(rows_);
    TESSERA_TRY(ForParts([&](size_t, size_t begin, size_t end) {
      EachRow(begin, end, [&](size_t i) { packed[i] = words_[i] >> (free_bits_ - row_bits) | i; });
    }));
    TESSERA_TRY(SortByDigits(pool_, row_bits, row_bits + 64 - free_bits_, &packed));
    const uint64_t mask = (uint64_t{1} << row_bits) - 1;
    TESSERA_TRY(ForParts([&](size_t, size_t begin, size_t end) {
      EachRow(begin, std::min(end, count), [&](size_t i) { order[i] = static_cast<uint32_t>(packed[i] & mask); });
    }));
  } else if (width_ == 1 || by_digits) {
    // Sorting numbers beside their rows is several times as fast as sorting rows whose numbers are fetched from
    // elsewhere.
    UninitializedVector<Keyed> keyed(rows_);
    TESSERA_TRY(ForParts([&](size_t, size_t begin, size_t end) {
      EachRow(begin, end, [&](size_t i) { keyed[i].row = static_cast<uint32_t>(i); });
    }));
    for (uint32_t w = width_; w-- > 0;) {  // the last word first: those before it keep its order where they are equal
      TESSERA_TRY(ForParts([&](size_t, size_t begin, size_t end) {
        EachRow(begin, end, [&](size_t i) { keyed[i].key = words_[keyed[i].row * size_t{width_} + w]; });
      }));
      TESSERA_TRY(by_digits ? SortByDigits(pool_, w + 1 == width_ ? free_bits_ : 0, 64, &keyed)
                            : SortFirst(count, pool_, std::less<>(), &keyed));
    }
    TESSERA_TRY(ForParts([&](size_t, size_t begin, size_t end) {
      EachRow(begin, std::min(end, count), [&](size_t i) { order[i] = keyed[i].row; });
    }));
  } else {
    std::iota(order.begin(), order.end(), 0u);
    if (width_ > 1)
      TESSERA_TRY(SortFirst(
          count, pool_, [this](uint32_t a, uint32_t b) { return Less(a, b); }, &order));
  }
  order.resize(count);
  return order;
}

}  // namespace tessera::vm
