// Building the index over a join table's keys.

#include "vm/sinks/join_index.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <utility>

#include "base/interrupt.h"
#include "base/memory_budget.h"
#include "vm/program/section_traits.h"

namespace tessera::vm {
namespace {

/// Fewer rows are indexed in one go, and so are those of few slots where there is one thread only.
constexpr size_t kSharedRows = 1 << 16, kCachedSlots = 1 << 18;
/// Slots of a part: their heads, 256 KB, stay in a core's cache while they are filled. There are at most this number of parts,
/// because a core writes to all of them at a time.
constexpr int kPartBits = 16;
constexpr size_t kMostParts = 256;
/// Key values for each row, up to which an array of 4 bytes for each is not much larger than a hash table of the same
/// rows, and bits are no larger. Or this number in all: small arrays.
constexpr uint64_t kHeadsPerRow = 8, kBitsPerRow = 128, kSmallHeads = 1 << 22, kSmallBits = 1 << 26;
/// A hash table of this number of slots, 1 MB, has a Bloom filter, with a word of 64 bits for three to six rows.
constexpr size_t kBloomSlots = 1 << 18, kBloomRows = 6;

}  // namespace

/// Fills heads, chains and bits. Where there are many rows, they are first sorted by the part of the slots that they
/// belong to, unless they come in that order, and then each part is filled by one thread.
class JoinIndex::Filling {
 public:
  Filling(JoinIndex* index, bool only_keys, ThreadPool* pool)
      : index_(*index), n_(index->rows_.rows), only_keys_(only_keys), pool_(pool) {}

  /// A bit for each key value, from `low` to low + span.
  Status SetBits(const int64_t* keys, uint64_t low, uint64_t span) {
    index_.present_.resize(span / 64 + 1);
    const size_t chunks = n_ < kSharedRows || Workers(pool_) == 1 ? 1 : 4 * Workers(pool_);
    return ForEach(pool_, chunks, [&](size_t c) {
      // Keys often come in order: a word of bits is kept while they stay in it.
      size_t word = 0;
      uint64_t bits = 0;
      const auto flush = [&] {
        uint64_t& there = index_.present_[word];
        if (chunks == 1) {
          there |= bits;
        } else if (std::atomic_ref shared(there); (shared.load(std::memory_order_relaxed) & bits) != bits) {
          shared.fetch_or(bits, std::memory_order_relaxed);
        }
      };
      for (size_t row = n_ * c / chunks; row < n_ * (c + 1) / chunks; ++row) {
        ThrowIfInterrupted(row);
        const uint64_t at = static_cast<uint64_t>(keys[row]) - low;
        if (at / 64 != word) {
          flush();
          word = at / 64;
          bits = 0;
        }
        bits |= uint64_t{1} << (at % 64);
      }
      flush();
      return Status::Ok();
    });
  }

  /// The bits of each row's hash. Each thread goes over all rows and sets the bits in its part of the words: threads that
  /// set them in all words, by atomic operations, take five times as long.
  template <class Hash>
  Status FillBloom(Hash hash) {
    index_.bloom_.resize(std::bit_ceil(n_ / kBloomRows + 1));
    const size_t words = index_.bloom_.size(), parts = n_ < kSharedRows ? 1 : Workers(pool_);
    return ForEach(pool_, parts, [&](size_t p) {
      const size_t first = words * p / parts, count = words * (p + 1) / parts - first;
      for (size_t row = 0; row < n_; ++row) {
        ThrowIfInterrupted(row);
        const uint64_t h = hash(row);
        const size_t at = index_.BloomWord(h) - first;
        if (at < count) index_.bloom_[first + at] |= BloomBits(h);
      }
      return Status::Ok();
    });
  }

  /// `home(row)`: the slot at which the search for the row's key begins.
  template <class Home>
  Status Run(size_t slots, Home home) {
    index_.heads_.resize(slots);
    const int bits = std::max<int>(kPartBits, std::bit_width((slots - 1) / kMostParts));
    const size_t part = size_t{1} << bits, parts = (slots - 1) / part + 1;
    const auto clear = [&](size_t p) {
      const auto begin = index_.heads_.begin();
      std::fill(begin + static_cast<ptrdiff_t>(p * part), begin + static_cast<ptrdiff_t>(End(p, part)), kNoRow);
    };
    if (n_ < kSharedRows || (Workers(pool_) == 1 && slots <= kCachedSlots)) {
      TESSERA_TRY(ForEach(pool_, parts, [&](size_t p) {
        clear(p);
        return Status::Ok();
      }));
      for (size_t row = n_; row-- > 0;) {
        ThrowIfInterrupted(row);
        InsertAnywhere(static_cast<uint32_t>(row), home(row));
      }
      return Status::Ok();
    }
    TESSERA_TRY(SortByPart(bits, parts, home));
    std::vector<std::vector<uint32_t>> left(parts);
    TESSERA_TRY(ForEach(pool_, parts, [&](size_t p) {
      clear(p);
      const size_t end = End(p, part);
      for (size_t i = starts_[p + 1]; i-- > starts_[p];) {
        ThrowIfInterrupted(i);
        const auto row = sorted_.empty() ? static_cast<uint32_t>(i) : sorted_[i].row;
        const size_t at = sorted_.empty() ? home(i) : p * part + sorted_[i].offset;
        if (!Insert(row, at, end)) left[p].push_back(row);
      }
      return Status::Ok();
    }));
    // The keys for which the end of a part had no room. A key's rows all belong to one part, and are in their order.
    for (size_t p = 0; p < parts; ++p) {
      for (const uint32_t row : left[p]) InsertAnywhere(row, End(p, part) % slots);
    }
    return Status::Ok();
  }

 private:
  struct Sorted {
    uint32_t row, offset;  ///< from the beginning of the part
  };

  size_t End(size_t p, size_t part) const { return std::min(index_.heads_.size(), (p + 1) * part); }

  template <class Home>
  Status SortByPart(int bits, size_t parts, Home home) {
    const size_t chunks = std::clamp<size_t>(n_ / kSharedRows, 1, 4 * Workers(pool_));
    const auto begin_of = [&](size_t c) { return n_ * c / chunks; };
    std::vector<size_t> places(chunks * parts);  // how many rows of the chunk, then where its next one goes
    std::atomic<bool> in_order = true;
    TESSERA_TRY(ForEach(pool_, chunks, [&](size_t c) {
      std::vector<size_t> counts(parts);
      size_t before = c == 0 ? 0 : home(begin_of(c) - 1);
      bool ascending = true;
      for (size_t row = begin_of(c); row < begin_of(c + 1); ++row) {
        ThrowIfInterrupted(row);
        const size_t at = home(row);
        ++counts[at >> bits];
        ascending &= before <= at;
        before = at;
      }
      if (!ascending) in_order = false;
      std::copy(counts.begin(), counts.end(), places.begin() + static_cast<ptrdiff_t>(c * parts));
      return Status::Ok();
    }));
    starts_.assign(parts + 1, n_);
    size_t place = 0;
    for (size_t p = 0; p < parts; ++p) {
      starts_[p] = place;
      for (size_t c = 0; c < chunks; ++c) place += std::exchange(places[c * parts + p], place);
    }
    if (in_order) return Status::Ok();
    sorted_.resize(n_);
    return ForEach(pool_, chunks, [&](size_t c) {
      const auto first = places.begin() + static_cast<ptrdiff_t>(c * parts);
      std::vector<size_t> next(first, first + static_cast<ptrdiff_t>(parts));
      for (size_t row = begin_of(c); row < begin_of(c + 1); ++row) {
        ThrowIfInterrupted(row);
        const size_t at = home(row);
        const auto offset = static_cast<uint32_t>(at & ((size_t{1} << bits) - 1));
        sorted_[next[at >> bits]++] = {static_cast<uint32_t>(row), offset};
      }
      return Status::Ok();
    });
  }

  /// Puts the row before the others with its key, in the slots from `at` to `end`. False if all of these are taken.
  /// Rows come backwards, so that chains run in their order.
  bool Insert(uint32_t row, size_t at, size_t end) {
    for (; at < end; ++at) {
      uint32_t& head = index_.heads_[at];
      if (head == kNoRow) {
        head = row;
        return true;
      }
      if (!index_.direct_ && !SameKey(row, head)) continue;
      if (only_keys_) return true;
      std::call_once(not_unique_, [&] { index_.next_.assign(n_, kNoRow); });
      index_.next_[row] = head;
      head = row;
      return true;
    }
    return false;
  }
  void InsertAnywhere(uint32_t row, size_t at) {
    if (!Insert(row, at, index_.heads_.size())) (void)Insert(row, 0, at);
  }

  bool SameKey(uint32_t a, uint32_t b) const {
    return std::ranges::all_of(index_.word_columns_, [&](const int64_t* words) { return words[a] == words[b]; });
  }

  JoinIndex& index_;
  const size_t n_;
  const bool only_keys_;
  ThreadPool* const pool_;
  UninitializedVector<Sorted> sorted_;  ///< empty: the rows as they are
  std::vector<size_t> starts_;          ///< of the parts, among the sorted rows
  std::once_flag not_unique_;
};

Status JoinIndex::CheckRows(const RowSet& rows) {
  if (rows.rows < kNoRow) return Status::Ok();
  return {ErrorCode::kResource, "the build side of a join has more than 2^32 - 2 rows",
          "Filter it, or swap the tables of the join."};
}

KeyRange JoinIndex::RangeOf(const RowSet& rows, int keys) {
  const StorageClass storage = keys > 0 ? rows.columns[0].type.storage() : StorageClass::kWide;
  KeyRange range{storage == StorageClass::kInt, 0, -1};
  if (rows.rows == 0 || (storage != StorageClass::kInt && storage != StorageClass::kText)) return range;
  const auto [least, greatest] = std::minmax_element(rows.columns[0].low.begin(), rows.columns[0].low.end());
  range.low = *least;
  range.high = *greatest;
  return range;
}

bool JoinIndex::OnlyKeysMatter(const Program& program, const ProgramTraits& traits, int join) {
  const Section& builder = program.sections[static_cast<size_t>(program.joins[static_cast<size_t>(join)].section)];
  if (builder.keys == 0 || builder.columns.size() > static_cast<size_t>(builder.keys)) return false;
  return traits.join(join).scanners.empty() && !traits.join(join).has_loop;
}

Status JoinIndex::Finish(RowSet rows, int keys, bool only_keys, bool selective, ThreadPool* pool) {
  const MemoryPurpose purpose("a join table");
  TESSERA_TRY(CheckRows(rows));
  rows_ = std::move(rows);
  const size_t n = rows_.rows;
  if (keys == 0) return Status::Ok();  // no probes by key: all rows are compared, or scanned
  for (int k = 0; k < keys; ++k) {
    RowColumn& c = rows_.columns[static_cast<size_t>(k)];
    word_columns_.push_back(c.low.data());
    if (IsWide(c.type)) word_columns_.push_back(c.high.data());
  }
  const StorageClass storage = keys == 1 ? rows_.columns[0].type.storage() : StorageClass::kWide;
  Filling filling(this, only_keys, pool);
  range_ = RangeOf(rows_, keys);
  if (storage == StorageClass::kInt || storage == StorageClass::kText) {
    if (n == 0) {
      direct_ = true;
      return Status::Ok();
    }
    const auto low = static_cast<uint64_t>(range_.low);
    const uint64_t span = static_cast<uint64_t>(range_.high) - low;
    const bool has_heads = span < std::max(kHeadsPerRow * n, kSmallHeads);
    const bool has_bits = span < std::max(kBitsPerRow * n, kSmallBits) && (only_keys || !has_heads || span / 4 > n);
    direct_ = has_heads || (only_keys && has_bits);
    if (direct_) direct_size_ = span + 1;
    const int64_t* const key = word_columns_[0];
    if (has_bits) TESSERA_TRY(filling.SetBits(key, low, span));
    if (only_keys && has_bits) return Status::Ok();
    if (has_heads) return filling.Run(span + 1, [=](size_t row) { return static_cast<uint64_t>(key[row]) - low; });
  }
  const size_t slots = std::bit_ceil(std::max<size_t>(16, 2 * n));
  const auto hash_of = [&](size_t row) {
    uint64_t hash = kHashSeed;
    for (const int64_t* words : word_columns_) hash = HashWord(hash, words[row]);
    return hash;
  };
  if (selective && slots >= kBloomSlots) TESSERA_TRY(filling.FillBloom(hash_of));
  return filling.Run(slots, [&](size_t row) { return hash_of(row) & (slots - 1); });
}

}  // namespace tessera::vm
