// Sums of doubles of groups to which many threads add at the same time: those in device memory, and those that a block
// keeps apart in its shared memory.
//
// Start at: AddToWindow.
#pragma once

#include <cstdint>

#include "kernels/device/group_table.cuh"
#include "kernels/device/ptx.cuh"
#include "vm/meaning/float_sum.h"
#include "vm/meaning/meaning.h"

namespace tessera::kernels {

/// A group's vm::FloatWindow in device memory.
struct DeviceWindow {
  uint64_t* words;

  __device__ __forceinline__ uint64_t Head() const { return LoadRelaxed(words); }
  __device__ __forceinline__ uint64_t Open(uint64_t fresh) const {
    return atomicCAS(AtomicWord(words), 0ull, static_cast<unsigned long long>(fresh));
  }
  __device__ __forceinline__ void Raise(uint64_t head) const {
    atomicMax(AtomicWord(words), static_cast<unsigned long long>(head));
  }
  __device__ __forceinline__ void Add(int bin, int64_t v) const {
    atomicAdd(AtomicWord(words + 1 + bin), static_cast<unsigned long long>(v));
  }
};

/// A group's window in shared memory, which has no atomic addition of 64 bits: the head, the lower halves of the bins,
/// the upper ones. Each word is `stride` after the one before.
struct BlockWindow {
  static constexpr uint32_t kWords = vm::FloatWindow::kBlockBytes / sizeof(uint32_t);

  uint32_t* words;
  uint32_t stride;

  __device__ __forceinline__ uint64_t Head() const { return *reinterpret_cast<volatile uint32_t*>(words); }
  __device__ __forceinline__ uint64_t Open(uint64_t fresh) const {
    return atomicCAS(words, 0u, static_cast<uint32_t>(fresh));
  }
  __device__ __forceinline__ void Raise(uint64_t head) const { atomicMax(words, static_cast<uint32_t>(head)); }
  __device__ __forceinline__ void Add(int bin, int64_t v) const {
    const uint32_t low = static_cast<uint32_t>(v);
    const uint32_t carry = atomicAdd(LowerHalf(bin), low) + low < low ? 1 : 0;
    const uint32_t high = static_cast<uint32_t>(v >> 32) + carry;
    if (high != 0) atomicAdd(LowerHalf(bin) + vm::FloatWindow::kBins * stride, high);
  }
  /// When all threads have added theirs.
  __device__ __forceinline__ vm::FloatSum Sum() const {
    using vm::FloatWindow;
    vm::FloatSum sum = vm::FloatSum::Zero();
    const uint64_t head = Head();
    if (head == 0) return sum;
    sum.head = static_cast<uint64_t>(FloatWindow::Top(head));
    const int above = FloatWindow::First(head) - FloatWindow::Top(head);
    for (int k = 0; k < vm::FloatSum::kBins; ++k) {
      const uint32_t* low = LowerHalf(above + k);
      const uint64_t bin = *low | static_cast<uint64_t>(low[FloatWindow::kBins * stride]) << 32;
      sum.bins[k] = static_cast<int64_t>(bin);
    }
    return sum;
  }

 private:
  __device__ __forceinline__ uint32_t* LowerHalf(int bin) const {
    return words + static_cast<uint32_t>(1 + bin) * stride;
  }
};

/// Whether a group's state has windows, one for each sum of M::State; whether a count stands before them.
template <class M>
inline constexpr bool kHasWindows =
    M::kGroupState == vm::GroupState::kFloatWindow || M::kGroupState == vm::GroupState::kMomentWindows;
template <class M>
inline constexpr bool kHasCount = M::kGroupState == vm::GroupState::kMomentWindows;
/// The word of a group's k-th window after that of its state, and that of the FloatSum that belongs to it.
template <class M>
__device__ __forceinline__ uint32_t WindowAt(uint32_t k) {
  return (kHasCount<M> ? 1 : 0) + k * vm::FloatWindow::kAllWords;
}
__device__ __forceinline__ uint32_t SumAfter(uint32_t window) { return window + vm::FloatWindow::kWords; }
/// The head of a window, which was `head` some time ago, for numbers with that highest bin. The first of the group's
/// numbers opens it.
template <class Window>
__device__ __forceinline__ uint64_t HeadFor(const Window& window, uint64_t head, int top) {
  using vm::FloatWindow;
  if (head == 0) {
    const uint64_t fresh = FloatWindow::Head(top);
    head = window.Open(fresh);
    if (head == 0) return fresh;
  }
  if (FloatWindow::Top(head) < top && top <= FloatWindow::First(head)) window.Raise(FloatWindow::WithTop(head, top));
  return head;
}

/// Adds a number to a window. False: it does not go there. `known`: its head, as read some time ago.
template <class Window>
__device__ __forceinline__ bool AddToWindow(const Window& window, uint64_t known, double v) {
  using vm::FloatSum;
  const int exponent = FloatSum::ExponentBits(v);
  const uint64_t magnitude = FloatSum::Magnitude(v);
  if (exponent == 0x7FF) return false;
  if (magnitude == 0) return true;
  const int top = FloatSum::TopOf(exponent);
  const int above = vm::FloatWindow::First(HeadFor(window, known, top)) - top;
  if (above < 0) return false;
  // (From a shift by a bin on nothing is left of it.)
  int shift = FloatSum::ShiftTo(top, exponent);
  for (int bin = above; bin < vm::FloatWindow::kBins && shift < FloatSum::kBinBits; ++bin) {
    const int64_t slice = FloatSum::Slice(magnitude, shift);
    if (slice != 0) window.Add(bin, v < 0 ? -slice : slice);
    shift += FloatSum::kBinBits;
  }
  return true;
}

/// The same for the sum of several numbers.
__device__ __forceinline__ bool AddToWindow(const DeviceWindow& window, const vm::FloatSum& s) {
  using vm::FloatSum;
  if ((s.head & ~FloatSum::kTopMask) != 0) return false;
  bool any = s.Top() != 0;
  for (int k = 0; k < FloatSum::kBins; ++k) any |= s.bins[k] != 0;
  if (!any) return true;  // all of them are 0
  const int above = vm::FloatWindow::First(HeadFor(window, window.Head(), s.Top())) - s.Top();
  if (above < 0) return false;
  for (int k = 0; k < FloatSum::kBins; ++k) {
    if (above + k < vm::FloatWindow::kBins && s.bins[k] != 0) window.Add(above + k, s.bins[k]);
  }
  return true;
}

}  // namespace tessera::kernels
