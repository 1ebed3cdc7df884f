// Building the index over a join table's keys.

#include "vm/join_index.h"

#include <algorithm>
#include <bit>

#include "base/interrupt.h"
#include "base/memory_budget.h"

namespace tessera::vm {

Status JoinIndex::CheckRows(const RowSet& rows) {
  if (rows.rows < kNoRow) return Status::Ok();
  return {ErrorCode::kResource, "the build side of a join has more than 2^32 - 2 rows",
          "Filter it, or swap the tables of the join."};
}

KeyRange JoinIndex::RangeOf(const RowSet& rows, int keys) {
  const StorageClass storage = keys == 1 ? rows.columns[0].type.storage() : StorageClass::kWide;
  KeyRange range{storage == StorageClass::kInt, 0, -1};
  if (rows.rows == 0 || (storage != StorageClass::kInt && storage != StorageClass::kText)) return range;
  const auto [least, greatest] = std::minmax_element(rows.columns[0].low.begin(), rows.columns[0].low.end());
  range.low = *least;
  range.high = *greatest;
  return range;
}

Status JoinIndex::Finish(RowSet rows, int keys) {
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
  bool unique = true;
  auto chain = [&](uint32_t* head, uint32_t row) {
    if (*head != kNoRow) {
      if (unique) next_.assign(n, kNoRow);
      unique = false;
      next_[row] = *head;
    }
    *head = row;
  };
  const StorageClass storage = keys == 1 ? rows_.columns[0].type.storage() : StorageClass::kWide;
  if (storage == StorageClass::kInt || storage == StorageClass::kText) {
    const std::vector<int64_t>& key = rows_.columns[0].low;
    range_ = RangeOf(rows_, keys);
    const uint64_t span = n == 0 ? 0 : static_cast<uint64_t>(range_.high) - static_cast<uint64_t>(range_.low);
    // Four bytes per key value: worth it if the array is small, or not much larger than a hash table of the same rows.
    if (n == 0 || span < std::max<uint64_t>(uint64_t{8} * n, 1 << 22)) {
      direct_ = true;
      heads_.assign(n == 0 ? 0 : span + 1, kNoRow);
      // Backwards, so that chains run in the order of rows.
      for (size_t row = n; row-- > 0;) {
        ThrowIfInterrupted(row);
        chain(&heads_[static_cast<uint64_t>(key[row]) - static_cast<uint64_t>(range_.low)], static_cast<uint32_t>(row));
      }
      if (n > 0 && span / 4 > n) {
        present_.resize(span / 64 + 1);
        for (size_t row = 0; row < n; ++row) {
          ThrowIfInterrupted(row);
          const uint64_t at = static_cast<uint64_t>(key[row]) - static_cast<uint64_t>(range_.low);
          present_[at / 64] |= uint64_t{1} << (at % 64);
        }
      }
      return Status::Ok();
    }
  }
  heads_.assign(std::bit_ceil(std::max<size_t>(16, 2 * n)), kNoRow);
  std::vector<int64_t> words(word_columns_.size());
  for (size_t row = n; row-- > 0;) {
    ThrowIfInterrupted(row);
    uint64_t hash = kHashSeed;
    for (size_t w = 0; w < words.size(); ++w) {
      words[w] = word_columns_[w][row];
      hash = HashWord(hash, words[w]);
    }
    size_t at = hash & (heads_.size() - 1);
    while (heads_[at] != kNoRow) {
      bool same = true;
      for (size_t w = 0; w < words.size(); ++w) same &= word_columns_[w][heads_[at]] == words[w];
      if (same) break;
      at = (at + 1) & (heads_.size() - 1);
    }
    chain(&heads_[at], static_cast<uint32_t>(row));
  }
  return Status::Ok();
}

uint32_t JoinIndex::FirstHashed(const int64_t* words, uint64_t hash) const {
  for (size_t at = hash & (heads_.size() - 1); heads_[at] != kNoRow; at = (at + 1) & (heads_.size() - 1)) {
    bool same = true;
    for (size_t w = 0; w < word_columns_.size(); ++w) same &= word_columns_[w][heads_[at]] == words[w];
    if (same) return heads_[at];
  }
  return kNoRow;
}

}  // namespace tessera::vm
