// A block of CUDA threads on one thread of the host: each CUDA thread is a fiber that runs until it has to wait for
// others. cuda_cpp.h has the names that kernels use for what is here.
//
// Which warp goes on, and in which order its lanes do, is drawn anew each time, so that a kernel which lacks a barrier
// soon gives something wrong. What is undefined on a GPU ends the program with a message: lanes that meet at different
// places, a lane that is not in the mask it names, threads that wait for others that have returned.
#pragma once

#include <vector_types.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>

namespace cuda_emulator {

using Where = std::source_location;

/// The built-in variables of the CUDA thread that runs.
struct Index {
  uint3 thread = {}, block = {};
  dim3 block_dim, grid_dim;
};
extern thread_local const Index* here;  ///< nullptr: no kernel runs on this thread of the host

/// Runs all threads of a block to their ends.
void RunBlock(const std::function<void()>& kernel, uint3 block, dim3 block_dim, dim3 grid_dim);

/// Prints what a kernel did wrong, and where, and aborts.
[[noreturn]] void Fail(const char* what, const Where& where);

/// Lets others run: the thread polls for something that they do.
void Poll();

/// Waits until `count` threads (0: all that have not returned) are at the barrier.
void Sync(uint32_t barrier, uint32_t count, const Where& where);

/// What the lanes of `mask` brought to their meeting, by lane; 64 bits each. The lane's own is `value`.
const uint64_t* Meet(uint32_t mask, uint64_t value, const Where& where);
/// The same, for the bits that any of the lanes brought.
uint64_t MeetOr(uint32_t mask, uint64_t value, const Where& where);

/// A copy into shared memory that is under way: it lands at any time before the block polls in vain.
struct Copy {
  void* to;
  const void* from;
  uint32_t bytes;
  uint64_t* barrier;
};
void StartCopy(const Copy& copy);
/// Some of the copies that are under way land. `land` is told of each.
void LandCopies(void (*land)(const Copy&));

}  // namespace cuda_emulator
