// Blocks that were freed and wait for the next one who asks for as much. To get a page from the system means that it is
// cleared, and under a hypervisor that it is found first: queries over ten million rows spent half their time there, each
// again for the memory that the one before had given back.
//
// Spare blocks are not in use, so they do not count against the memory limit, but together with what is in use they stay
// within it. memory_budget.cc decides. Nothing here allocates. Any thread.
//
// Start at: KeepSpare, TakeSpare.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera {

/// Smaller ones are not kept.
inline constexpr size_t kLeastSpare = size_t{64} << 10;

/// Keeps a block of malloc's that is not in use any more. False: there would be more than `most` bytes.
bool KeepSpare(void* block, size_t bytes, uint64_t most) noexcept;
/// A block of at least that many bytes, and not many more, at a multiple of `alignment`; nullptr if there is none.
void* TakeSpare(size_t bytes, size_t alignment) noexcept;
/// Bytes of the blocks that are kept.
uint64_t SpareBytes() noexcept;
/// Frees blocks, large ones first, until the others have at most that many bytes.
void TrimSpares(uint64_t bytes) noexcept;

}  // namespace tessera
