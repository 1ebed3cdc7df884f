// What packed chunks were unpacked to, kept for the next statement: up to a quarter of the memory limit, and the least
// recently used go first. A ChunkPointer keeps its chunk beyond that.
//
// Start at: KeepUnpacked. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "tablet/chunk/chunk.h"
#include "tablet/files/cache_report.h"
#include "tablet/files/tablet.h"

namespace tessera {

/// The streams of a chunk that had been packed, and the chunk that points to them, and to the tablet for the others.
struct UnpackedChunk {
  /// `of`: column `column` of this tablet, for the report.
  UnpackedChunk(uint64_t room, const Chunk& packed, std::weak_ptr<const Tablet> of, int of_column)
      : bytes(room),
        streams(static_cast<uint8_t*>(::operator new[](room, kAlignment))),
        chunk(packed),
        tablet(std::move(of)),
        column(of_column) {
    chunk.packed_entries = false;
  }
  UnpackedChunk(const UnpackedChunk&) = delete;
  UnpackedChunk& operator=(const UnpackedChunk&) = delete;

  static constexpr std::align_val_t kAlignment{128};
  struct Free {
    void operator()(uint8_t* p) const { ::operator delete[](p, kAlignment); }
  };
  const uint64_t bytes;
  const std::unique_ptr<uint8_t[], Free> streams;
  Chunk chunk;
  const std::weak_ptr<const Tablet> tablet;
  const int column;
};

/// Whether so much more can be kept without that others go.
bool HasRoomForUnpacked(uint64_t bytes);
/// It was used just now. Others may go.
void KeepUnpacked(const std::shared_ptr<UnpackedChunk>& chunk);
/// It will not be asked for again; may be nullptr.
void ForgetUnpacked(const std::shared_ptr<UnpackedChunk>& chunk);
CacheReport UnpackedReport();
/// Forgets all that is not held.
void DropUnpacked();
/// From 1 on; another one after each DropUnpacked().
uint64_t UnpackedEpoch();

}  // namespace tessera
