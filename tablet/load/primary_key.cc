// The bitmap and the hash table of keys.
#include "tablet/load/primary_key.h"

#include <algorithm>
#include <bit>
#include <string>

#include "tablet/chunk/chunk_decoder.h"
#include "tablet/chunk/distinct_count.h"
#include "tablet/files/live_rows.h"
#include "tablet/values/interval.h"
#include "tablet/values/ordered_float.h"

namespace tessera {
namespace {

using KeyChunks = std::vector<ChunkPointer>;

Status Cancelled(const std::atomic<bool>* cancel) {
  if (cancel != nullptr && cancel->load(std::memory_order_relaxed)) return {ErrorCode::kCancelled, "cancelled"};
  return {};
}

class KeyCheck {
 public:
  /// `unique`: nullptr for the primary key.
  KeyCheck(const TableSchema& schema, const UniqueKey* unique, const std::atomic<bool>* cancel,
           const PrimaryKeyLimits& limits)
      : schema_(schema),
        unique_(unique),
        key_(unique != nullptr ? unique->columns : schema.primary_key),
        cancel_(cancel),
        limits_(limits) {}

  Status Run(const TabletPointers& old_tablets, const TabletPointers& new_tablets) {
    new_tablets_ = new_tablets;
    TESSERA_TRY(FindRanges());
    for (size_t part = 0; part < key_.size(); ++part) {
      if (HasRange(part) && ranges_[part].min > ranges_[part].max) return {};  // nothing but NULLs
    }
    for (const auto& tablet : old_tablets) {
      TESSERA_ASSIGN(const bool overlaps, Overlaps(*tablet));
      if (overlaps) old_tablets_.push_back(tablet);
    }
    uint64_t possible_keys = 0;
    if (CountPossibleKeys(&possible_keys) && possible_keys <= limits_.bitmap_bits &&
        possible_keys / 64 <= std::max<uint64_t>(new_rows_, 1u << 17)) {
      return RunBitmap(possible_keys);
    }
    // Each pass takes the keys whose hashes have the same remainder, so equal keys are always in the same pass.
    const uint64_t passes = (new_rows_ + limits_.hashed_rows - 1) / limits_.hashed_rows;
    for (uint64_t pass = 0; pass < passes; ++pass) TESSERA_TRY(RunHashed(pass, passes));
    return {};
  }

 private:
  struct KeyRange {
    int128_t min = kInt128Max, max = kInt128Min;
  };

  const SqlType& TypeOf(size_t part) const { return schema_.columns[static_cast<size_t>(key_[part])].type; }
  bool HasRange(size_t part) const { return TypeOf(part).storage() != StorageClass::kText; }

  Status FindRanges() {
    ranges_.resize(key_.size());
    for (const auto& tablet : new_tablets_) {
      new_rows_ += tablet->rows();
      for (size_t part = 0; part < key_.size(); ++part) {
        if (!HasRange(part)) continue;
        TESSERA_ASSIGN(const ChunkPointer chunk, tablet->Describe(key_[part]));
        if (chunk->min > chunk->max) continue;
        ranges_[part].min = std::min(ranges_[part].min, chunk->min);
        ranges_[part].max = std::max(ranges_[part].max, chunk->max);
      }
    }
    return {};
  }

  Result<bool> Overlaps(const Tablet& tablet) const {
    for (size_t part = 0; part < key_.size(); ++part) {
      // Ordered forms of -0.0 and 0.0 differ although the numbers do not: floats are always looked at.
      if (!HasRange(part) || TypeOf(part).storage() == StorageClass::kFloat) continue;
      TESSERA_ASSIGN(const ChunkPointer chunk, tablet.Describe(key_[part]));
      const auto place = [&](int128_t v) { return TypeOf(part).id == TypeId::kInterval ? LengthOfPacked(v) : v; };
      if (place(chunk->max) < place(ranges_[part].min) || place(chunk->min) > place(ranges_[part].max)) return false;
    }
    return true;
  }

  /// How many keys lie within the ranges of integer key columns; false if other columns are in the key or it overflows.
  bool CountPossibleKeys(uint64_t* out) const {
    uint64_t product = 1;
    for (size_t part = 0; part < key_.size(); ++part) {
      if (TypeOf(part).storage() != StorageClass::kInt) return false;
      const int128_t span = ranges_[part].max - ranges_[part].min + 1;
      if (span > INT64_MAX || __builtin_mul_overflow(product, static_cast<uint64_t>(span), &product)) return false;
    }
    *out = product;
    return true;
  }

  Result<KeyChunks> ChunksOf(const Tablet& tablet) const {
    KeyChunks chunks;
    for (int column : key_) {
      TESSERA_ASSIGN(ChunkPointer chunk, tablet.Chunk(column));
      chunks.push_back(std::move(chunk));
    }
    return chunks;
  }

  Status Duplicate(const KeyChunks& chunks, uint32_t row) const {
    std::string names, values;
    for (size_t part = 0; part < key_.size(); ++part) {
      if (part > 0) {
        names += ", ";
        values += ", ";
      }
      names += schema_.columns[static_cast<size_t>(key_[part])].name;
      values += ToText(DecodeValue(*chunks[part], row));
    }
    const std::string rule = unique_ == nullptr
                                 ? "primary key of \"" + schema_.name + "\""
                                 : "unique constraint \"" + unique_->name + "\" of \"" + schema_.name + "\"";
    return {ErrorKind::kUniqueViolation, "duplicate key value violates " + rule + ": (" + names + ")=(" + values + ")"};
  }

  /// Rows that equal no row: with a NULL in the key, and those that have been deleted; empty if there are none.
  std::vector<bool> RowsLeftOut(const Tablet& tablet, const KeyChunks& chunks) const {
    const uint32_t rows = tablet.rows();
    std::vector<bool> out;
    for (const auto& chunk : chunks) {
      if (unique_ == nullptr || chunk->null_count == 0) continue;
      out.resize(rows);
      for (uint32_t row = 0; row < rows; ++row) out[row] = out[row] || DecodeValue(*chunk, row).null;
    }
    if (const LiveRows* const live = tablet.live()) {
      out.resize(rows);
      for (uint32_t row = 0; row < rows; ++row) out[row] = out[row] || !live->IsLive(row);
    }
    return out;
  }

  Status RunBitmap(uint64_t possible_keys) {
    std::vector<uint64_t> bits(possible_keys / 64 + 1);
    std::vector<uint64_t> numbers;
    for (const bool is_new : {true, false}) {
      for (const auto& tablet : is_new ? new_tablets_ : old_tablets_) {
        TESSERA_TRY(Cancelled(cancel_));
        TESSERA_ASSIGN(const KeyChunks chunks, ChunksOf(*tablet));
        numbers.assign(tablet->rows(), 0);
        for (size_t part = 0; part < key_.size(); ++part) NumberKeys(*chunks[part], ranges_[part], &numbers);
        const std::vector<bool> left_out = RowsLeftOut(*tablet, chunks);
        for (uint32_t row = 0; row < numbers.size(); ++row) {
          const uint64_t number = numbers[row];
          if (number == kOutside || (!left_out.empty() && left_out[row])) continue;
          uint64_t& word = bits[number / 64];
          const uint64_t bit = uint64_t{1} << (number % 64);
          if ((word & bit) != 0) return Duplicate(chunks, row);
          if (is_new) word |= bit;
        }
      }
    }
    return {};
  }

  static constexpr uint64_t kOutside = UINT64_MAX;

  /// numbers[row] = numbers[row] * span + (value - min), or kOutside.
  static void NumberKeys(const Chunk& chunk, const KeyRange& range, std::vector<uint64_t>* numbers) {
    const uint64_t span = static_cast<uint64_t>(range.max - range.min + 1);
    const uint64_t shift = static_cast<uint64_t>(chunk.base) - static_cast<uint64_t>(range.min);
    for (uint32_t row = 0; row < numbers->size(); ++row) {
      uint64_t& number = (*numbers)[row];
      const uint64_t code = CodeAt(chunk, row) + shift;
      number = number == kOutside || code >= span ? kOutside : number * span + code;
    }
  }

  /// Hashes of the keys of a tablet; equal keys have equal hashes.
  void HashKeys(const KeyChunks& chunks, uint32_t rows, std::vector<uint64_t>* hashes) const {
    hashes->assign(rows, 0);
    std::vector<uint64_t> entry_hashes;
    for (const ChunkPointer& chunk : chunks) {
      const bool text = chunk->type.storage() == StorageClass::kText;
      if (text) {
        entry_hashes.resize(size_t{chunk->entries} + 1);  // the last one for NULL's code, which is left out later
        for (uint32_t e = 0; e < chunk->entries; ++e) entry_hashes[e] = HashBytes(chunk->Entry(e));
      }
      for (uint32_t row = 0; row < rows; ++row) {
        uint64_t hash;
        if (text) {
          hash = entry_hashes[CodeAt(*chunk, row)];
        } else if (IsWide(chunk->type)) {
          hash = HashWide(WideKey(*chunk, row));
        } else {
          hash = HashInteger(NormalisedKey(*chunk, row));
        }
        // Order matters: (1, 2) and (2, 1) are different keys.
        (*hashes)[row] = HashInteger((*hashes)[row] ^ hash);
      }
    }
  }

  /// The integer or ordered form, with -0.0 as 0.0.
  static uint64_t NormalisedKey(const Chunk& chunk, uint32_t row) {
    const uint64_t key = static_cast<uint64_t>(chunk.base) + CodeAt(chunk, row);
    if (chunk.type.id == TypeId::kDouble && key == OrderedFloat(-0.0)) return OrderedFloat(0.0);
    if (chunk.type.id == TypeId::kReal && key == OrderedFloat32(-0.0f)) return OrderedFloat32(0.0f);
    return key;
  }

  /// The number; of an interval its length.
  static int128_t WideKey(const Chunk& chunk, uint32_t row) {
    const int128_t v = DecodeValue(chunk, row).wide;
    return chunk.type.id == TypeId::kInterval ? LengthOfPacked(v) : v;
  }

  static bool Equal(const KeyChunks& a, uint32_t row_a, const KeyChunks& b, uint32_t row_b) {
    for (size_t part = 0; part < a.size(); ++part) {
      switch (a[part]->type.storage()) {
        case StorageClass::kText: {
          const auto code_a = static_cast<uint32_t>(CodeAt(*a[part], row_a));
          const auto code_b = static_cast<uint32_t>(CodeAt(*b[part], row_b));
          if (a[part]->Entry(code_a) != b[part]->Entry(code_b)) return false;
          break;
        }
        case StorageClass::kWide:
          if (WideKey(*a[part], row_a) != WideKey(*b[part], row_b)) return false;
          break;
        default:
          if (NormalisedKey(*a[part], row_a) != NormalisedKey(*b[part], row_b)) return false;
          break;
      }
    }
    return true;
  }

  struct Slot {
    uint64_t hash = 0;
    uint32_t tablet = UINT32_MAX;  ///< of new_tablets_; UINT32_MAX: free
    uint32_t row = 0;
  };

  Status RunHashed(uint64_t pass, uint64_t passes) {
    const uint64_t expected = new_rows_ / passes + new_rows_ / passes / 8 + 64;
    std::vector<Slot> slots(std::bit_ceil(2 * expected));
    uint64_t used = 0;
    std::vector<KeyChunks> new_chunks(new_tablets_.size());
    std::vector<uint64_t> hashes;
    for (const bool is_new : {true, false}) {
      const TabletPointers& tablets = is_new ? new_tablets_ : old_tablets_;
      for (size_t t = 0; t < tablets.size(); ++t) {
        TESSERA_TRY(Cancelled(cancel_));
        TESSERA_ASSIGN(const KeyChunks chunks, ChunksOf(*tablets[t]));
        if (is_new) new_chunks[t] = chunks;
        HashKeys(chunks, tablets[t]->rows(), &hashes);
        const std::vector<bool> left_out = RowsLeftOut(*tablets[t], chunks);
        for (uint32_t row = 0; row < hashes.size(); ++row) {
          const uint64_t hash = hashes[row];
          if (!left_out.empty() && left_out[row]) continue;
          if (passes > 1 && (hash >> 32) % passes != pass) continue;
          size_t slot = hash & (slots.size() - 1);
          for (; slots[slot].tablet != UINT32_MAX; slot = (slot + 1) & (slots.size() - 1)) {
            const Slot& s = slots[slot];
            if (s.hash != hash || !Equal(chunks, row, new_chunks[s.tablet], s.row)) continue;
            // The message shows the key of the new row: it may be -0.0 where the old one is 0.0.
            return is_new ? Duplicate(chunks, row) : Duplicate(new_chunks[s.tablet], s.row);
          }
          if (!is_new) continue;
          slots[slot] = {hash, static_cast<uint32_t>(t), row};
          if (++used * 4 > slots.size() * 3) Grow(&slots);
        }
      }
    }
    return {};
  }

  static void Grow(std::vector<Slot>* slots) {
    std::vector<Slot> larger(slots->size() * 2);
    for (const Slot& s : *slots) {
      if (s.tablet == UINT32_MAX) continue;
      size_t slot = s.hash & (larger.size() - 1);
      while (larger[slot].tablet != UINT32_MAX) slot = (slot + 1) & (larger.size() - 1);
      larger[slot] = s;
    }
    *slots = std::move(larger);
  }

  const TableSchema& schema_;
  const UniqueKey* const unique_;
  const std::vector<int>& key_;
  const std::atomic<bool>* const cancel_;
  const PrimaryKeyLimits limits_;
  TabletPointers new_tablets_;
  TabletPointers old_tablets_;  ///< those that may hold a new key
  uint64_t new_rows_ = 0;
  std::vector<KeyRange> ranges_;  ///< of the new rows
};

}  // namespace

Status CheckKeys(const TableSchema& schema, const TabletPointers& old_tablets, const TabletPointers& new_tablets,
                 const std::atomic<bool>* cancel, const PrimaryKeyLimits& limits) {
  Status checked;
  if (!schema.primary_key.empty()) checked = KeyCheck(schema, nullptr, cancel, limits).Run(old_tablets, new_tablets);
  for (const UniqueKey& unique : schema.unique_keys) {
    if (checked.ok()) checked = KeyCheck(schema, &unique, cancel, limits).Run(old_tablets, new_tablets);
  }
  for (const TabletPointers* tablets : {&old_tablets, &new_tablets}) {
    for (const auto& tablet : *tablets) TESSERA_TRY(tablet->Intact());
  }
  return checked;
}

}  // namespace tessera
