// Which parts of some memory are free, where the memory came in slabs: the pieces that are cut from a slab grow together again
// when they come back, so that the next ones may have other sizes. The memory itself is not touched; it may be a device's.
//
// Start at: SlabRanges. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera {

class SlabRanges {
 public:
  struct Range {
    uint8_t* data = nullptr;
    uint64_t bytes = 0;

    uint8_t* end() const { return data + bytes; }
  };

  explicit SlabRanges(size_t most_slabs);

  /// A piece of that many bytes at the beginning of the smallest free range that has them; nullptr if there is none, or
  /// no memory to note it. A slab that is free as a whole is not cut for less than 1/kLeastPart of it: the rest would
  /// be held back. Bytes should be multiples of what pieces are aligned to.
  uint8_t* Take(uint64_t bytes);
  static constexpr uint64_t kLeastPart = 4;
  /// A piece that Take gave comes back, or a slab comes: whatever lies in no slab. Allocates nothing. REQUIRES: a slab is not
  /// one too many.
  void Put(Range range);
  /// Of the slabs that are free as a whole, the one from which something was taken or came back longest ago; it is none of
  /// these slabs any more. No bytes: there is no such slab.
  Range RemoveSlab();

  bool Holds(const uint8_t* at) const;
  bool is_full() const { return slabs_.size() == most_slabs_; }
  /// Of all free ranges.
  uint64_t free_bytes() const { return free_bytes_; }
  /// Those of slabs that can't be removed, because pieces of them are taken.
  uint64_t held_bytes() const { return free_bytes_ - removable_bytes_; }

 private:
  struct Slab {
    Range whole;
    uint64_t free_bytes;

    bool Holds(const uint8_t* at) const { return at >= whole.data && at < whole.end(); }
    bool is_free() const { return free_bytes == whole.bytes; }
  };

  struct FreeRange {
    Range range;
    bool is_slab;  ///< a whole one
  };

  std::vector<Slab>::iterator Find(const uint8_t* at);
  /// The first free range that begins there or after.
  std::vector<FreeRange>::iterator FindFree(const uint8_t* at);
  /// The slab was used last.
  void Touch(std::vector<Slab>::iterator slab);

  const size_t most_slabs_;
  std::vector<Slab> slabs_;      ///< what was used longest ago first
  std::vector<FreeRange> free_;  ///< by address; no two in one slab touch
  size_t taken_ = 0;             ///< pieces
  uint64_t free_bytes_ = 0, removable_bytes_ = 0;
};

}  // namespace tessera
