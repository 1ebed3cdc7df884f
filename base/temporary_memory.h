// Memory in temporary files: for what does not fit within the memory limit. A block is a part of a mapped file without a
// name, or has such a file of its own. The system writes its pages out when it needs the room, and reads them back when
// they are used. The file goes with its last block, or with the process, however that ends; what is freed early is
// hardly ever written.
//
// Files are in $TMPDIR, or else in /var/tmp, because /tmp is often memory, too. Their room is taken before they are
// mapped, so a full disk is noticed here and not by a signal later. If the disk cannot read a page back, the process
// ends (SIGBUS), as it does for a page of swap.
//
// memory_budget.cc decides which blocks of operator new lie here. Nothing here allocates. Any thread.
//
// Start at: MapTemporary.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

/// Bytes that the process's blocks may have together; 0: there are none. At first 0.
void SetTemporaryLimit(uint64_t bytes);
uint64_t TemporaryLimit();
/// Bytes of the blocks that there are now, and the most at a time since the last call of ResetTemporaryPeak.
uint64_t TemporaryUsed();
uint64_t TemporaryPeak();
void ResetTemporaryPeak();

/// Why the last block that there could not be was refused, since the limit was set.
enum class TemporaryRefusal : uint8_t { kNone, kLimit, kRoom };
TemporaryRefusal LastTemporaryRefusal();

/// A block, at the beginning of a page, of a multiple of 64 KiB; what is in it is not known. nullptr if there cannot be
/// one: the limit, a full disk (a twentieth of it stays free), no directory, or a file system that cannot reserve room.
void* MapTemporary(size_t bytes);
/// Gives a block back. False: `block` is none of these.
bool UnmapTemporary(void* block) noexcept;

}  // namespace tessera
