#include "tablet/load/clustered_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <span>
#include <utility>

#include "tablet/values/ordered_float.h"

namespace tessera {
namespace {

/// A smaller vector would not lie in a temporary file.
constexpr uint64_t kLargeBlock = uint64_t{64} << 10;

/// The beginning of a value, so that most comparisons do not look at it: it never is greater than that of a greater
/// value.
uint64_t PrefixOf(const ColumnVector& column, size_t row) {
  if (column.IsNull(row)) return UINT64_MAX;
  constexpr uint64_t kSign = uint64_t{1} << 63;
  switch (column.type.storage()) {
    case StorageClass::kInt:
      return static_cast<uint64_t>(column.fixed[row]) ^ kSign;
    case StorageClass::kFloat:
      return OrderedFloat(column.Float(row));
    case StorageClass::kWide:
      return static_cast<uint64_t>(column.wide[row] >> 64) ^ kSign;
    case StorageClass::kText:
      break;
  }
  uint64_t prefix = 0;
  const std::string_view text = column.Text(row);
  for (size_t i = 0; i < sizeof prefix; ++i)
    prefix = prefix << 8 | (i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0});
  return prefix;
}

struct Place {
  uint64_t prefix;
  uint32_t row;
};

/// Places with equal prefixes keep their order. `spare` is at least as long as `places`.
void SortByPrefix(std::span<Place> places, std::span<Place> spare) {
  constexpr int kDigit = 11, kMostDigits = 4;
  constexpr size_t kFewPlaces = 1024;
  const auto [least, greatest] = std::ranges::minmax(places, {}, &Place::prefix);
  const uint64_t low = least.prefix;
  uint64_t differing = 0;
  for (const Place& p : places) differing |= p.prefix - low;
  // Short texts end in zeros.
  const int equal = differing == 0 ? 0 : std::countr_zero(differing);
  const int bits = std::bit_width(greatest.prefix - low) - equal;
  if (bits > kDigit * kMostDigits || places.size() < kFewPlaces) {
    std::ranges::sort(places, [](const Place& a, const Place& b) {
      return a.prefix != b.prefix ? a.prefix < b.prefix : a.row < b.row;
    });
    return;
  }
  // Radix sort takes a fifth of the time for keys of two digits.
  std::span<Place> from = places, to = spare.first(places.size());
  for (int shift = 0; shift < bits; shift += kDigit) {
    const auto digit = [&](const Place& p) { return (p.prefix - low) >> (equal + shift) & ((1u << kDigit) - 1); };
    std::array<size_t, size_t{1} << kDigit> next{};
    for (const Place& p : from) ++next[digit(p)];
    std::exclusive_scan(next.begin(), next.end(), next.begin(), size_t{0});
    for (const Place& p : from) to[next[digit(p)]++] = p;
    std::swap(from, to);
  }
  if (from.data() != places.data()) std::ranges::copy(from, places.begin());
}

template <class T>
int Compare(const T& a, const T& b) {
  return a < b ? -1 : a == b ? 0 : 1;
}

/// Negative, zero or positive, as the first row comes before the second.
int CompareRows(const ColumnVector& a, size_t a_row, const ColumnVector& b, size_t b_row) {
  const bool a_null = a.IsNull(a_row), b_null = b.IsNull(b_row);
  if (a_null || b_null) return Compare(a_null, b_null);
  switch (a.type.storage()) {
    case StorageClass::kInt:
      return Compare(a.fixed[a_row], b.fixed[b_row]);
    case StorageClass::kFloat:
      return Compare(OrderedFloat(a.Float(a_row)), OrderedFloat(b.Float(b_row)));
    case StorageClass::kWide:
      return Compare(a.wide[a_row], b.wide[b_row]);
    case StorageClass::kText:
      break;
  }
  return a.Text(a_row).compare(b.Text(b_row));
}

/// Rows of one batch that are equal are in the order in which they came.
bool RowLess(const RowBatch& batch, std::span<const size_t> columns, uint32_t a, uint32_t b) {
  for (const size_t c : columns) {
    if (const int order = CompareRows(batch.columns[c], a, batch.columns[c], b); order != 0) return order < 0;
  }
  return a < b;
}

/// Sorts places by the columns. REQUIRES: they are in the order of their rows, which are equal in the columns before.
void SortPlaces(const RowBatch& batch, std::span<const size_t> columns, std::span<Place> places,
                std::span<Place> spare) {
  const ColumnVector& first = batch.columns[columns[0]];
  for (Place& p : places) p.prefix = PrefixOf(first, p.row);
  SortByPrefix(places, spare);
  for (size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    bool equal = true;
    for (end = begin + 1; end < places.size() && places[end].prefix == places[begin].prefix; ++end)
      equal = equal && CompareRows(first, places[begin].row, first, places[end].row) == 0;
    if (end - begin == 1) continue;
    const std::span<Place> group = places.subspan(begin, end - begin);
    if (!equal) {
      std::ranges::sort(group, [&](const Place& a, const Place& b) { return RowLess(batch, columns, a.row, b.row); });
    } else if (columns.size() > 1) {
      SortPlaces(batch, columns.subspan(1), group, spare);
    }
  }
}

template <class T>
void Permute(const std::vector<uint32_t>& order, std::vector<T>* values) {
  if (values->empty()) return;
  std::vector<T> sorted;
  sorted.reserve(order.size());
  for (const uint32_t row : order) sorted.push_back((*values)[row]);
  *values = std::move(sorted);
}

}  // namespace

uint64_t BytesOf(const RowBatch& batch) {
  uint64_t bytes = 0;
  for (const ColumnVector& c : batch.columns) {
    bytes += c.null.size() + c.fixed.size() * sizeof(int64_t) + c.wide.size() * sizeof(int128_t) +
             c.offsets.size() * sizeof(uint64_t) + c.bytes.size();
  }
  return bytes;
}

ClusteredRows::ClusteredRows(std::vector<int> columns, uint64_t run_bytes)
    : columns_(columns.begin(), columns.end()), run_bytes_(run_bytes) {}

std::shared_ptr<RowBatch> ClusteredRows::Add(const RowBatch& batch) {
  if (open_ == nullptr) {
    open_ = std::make_shared<RowBatch>();
    open_->columns.resize(batch.columns.size());
    for (size_t c = 0; c < batch.columns.size(); ++c) {
      ColumnVector& column = open_->columns[c];
      column.type = batch.columns[c].type;
      // Vectors that grow are copied, and their pages made anew. A run will have about as many rows as the one before it.
      const StorageClass storage = column.type.storage();
      if (storage == StorageClass::kText) {
        column.offsets.reserve(rows_of_full_ + 1);
      } else if (storage == StorageClass::kWide) {
        column.wide.reserve(rows_of_full_);
      } else {
        column.fixed.reserve(rows_of_full_);
      }
    }
  }
  for (size_t c = 0; c < batch.columns.size(); ++c) open_->columns[c].AppendAll(batch.columns[c]);
  open_->rows += batch.rows;
  open_bytes_ += BytesOf(batch);
  rows_ += batch.rows;
  // A run of a table of many columns holds enough rows to be made of large blocks.
  if (open_bytes_ < run_bytes_ || (run_bytes_ >= kLargeBlock && open_->rows * sizeof(int64_t) < kLargeBlock)) return {};
  rows_of_full_ = open_->rows + batch.rows;
  return End();
}

std::shared_ptr<RowBatch> ClusteredRows::End() {
  if (open_ == nullptr) return {};
  runs_.push_back({open_, 0});
  open_bytes_ = 0;
  return std::exchange(open_, nullptr);
}

void ClusteredRows::Sort(RowBatch* run) const {
  std::vector<Place> places(run->rows);
  for (uint32_t row = 0; row < places.size(); ++row) places[row].row = row;
  const auto less = [&](const Place& a, const Place& b) { return RowLess(*run, columns_, a.row, b.row); };
  if (std::ranges::is_sorted(places, less)) return;
  std::vector<Place> spare(run->rows);
  SortPlaces(*run, columns_, places, spare);
  spare = {};
  std::vector<uint32_t> order(places.size());
  std::ranges::transform(places, order.begin(), [](const Place& p) { return p.row; });
  places = {};
  for (ColumnVector& column : run->columns) {
    Permute(order, &column.null);
    Permute(order, &column.fixed);
    Permute(order, &column.wide);
    if (column.type.storage() != StorageClass::kText) continue;
    std::vector<uint64_t> offsets{0};
    offsets.reserve(order.size() + 1);
    std::string bytes;
    bytes.reserve(column.bytes.size());
    for (const uint32_t row : order) {
      bytes += column.Text(row);
      offsets.push_back(bytes.size());
    }
    column.offsets = std::move(offsets);
    column.bytes = std::move(bytes);
  }
}

bool ClusteredRows::Less(const Run& a, const Run& b) const {
  for (const size_t c : columns_) {
    const int order = CompareRows(a.batch->columns[c], a.next, b.batch->columns[c], b.next);
    if (order != 0) return order < 0;
  }
  return &a < &b;  // the run that came first
}

std::vector<ClusteredRows::Piece> ClusteredRows::Take(size_t rows, bool of_one) {
  const auto later = [this](size_t a, size_t b) { return Less(runs_[b], runs_[a]); };
  if (!merging_) {
    merging_ = true;
    heap_.resize(runs_.size());
    std::iota(heap_.begin(), heap_.end(), size_t{0});
    std::ranges::make_heap(heap_, later);
  }
  std::vector<Piece> pieces;
  const auto first_of = [this](const Run& run, size_t row) { return run.batch->columns[columns_[0]].fixed[row]; };
  const int64_t one = of_one && !heap_.empty() ? first_of(runs_[heap_.front()], runs_[heap_.front()].next) : 0;
  while (rows > 0 && !heap_.empty()) {
    const Run& least = runs_[heap_.front()];
    if (of_one && first_of(least, least.next) != one) break;
    std::ranges::pop_heap(heap_, later);
    Run& run = runs_[heap_.back()];
    const size_t begin = run.next;
    size_t end = begin + std::min(rows, run.batch->rows - begin);
    if (of_one) {
      const auto values = run.batch->columns[columns_[0]].fixed.begin();
      end = static_cast<size_t>(
          std::upper_bound(values + static_cast<ptrdiff_t>(begin), values + static_cast<ptrdiff_t>(end), one) - values);
    }
    // The second least row is in front of the heap: the run goes on until that one's turn has come.
    const Run* const second = heap_.size() > 1 ? &runs_[heap_.front()] : nullptr;
    if (second == nullptr) run.next = end;
    while (run.next < end && (run.next == begin || Less(run, *second))) ++run.next;
    pieces.push_back({run.batch, begin, run.next - begin});
    rows -= run.next - begin;
    if (run.next < run.batch->rows) {
      std::ranges::push_heap(heap_, later);
    } else {
      run.batch = nullptr;  // the pieces keep it as long as they need it
      heap_.pop_back();
    }
  }
  return pieces;
}

}  // namespace tessera
