// Sums of doubles of groups in device memory, to which threads of many blocks add at the same time.
//
// Start at: AddToWindow.
#pragma once

#include <cstdint>

#include "kernels/device/ptx.cuh"
#include "vm/meaning/float_sum.h"

namespace tessera::kernels {

/// The head of a group's window, which was `head` some time ago. The first of the group's numbers opens it. REQUIRES: top is
/// that of a number.
__device__ __forceinline__ uint64_t OpenWindow(uint64_t* words, uint64_t head, int top) {
  if (head != 0) return head;
  const uint64_t fresh = vm::FloatWindow::Head(top);
  const uint64_t before = atomicCAS(AtomicWord(words), 0ull, static_cast<unsigned long long>(fresh));
  return before == 0 ? fresh : before;
}

__device__ __forceinline__ void RaiseTop(uint64_t* words, uint64_t head, int top) {
  using vm::FloatWindow;
  if (top > FloatWindow::Top(head))
    atomicMax(AtomicWord(words), static_cast<unsigned long long>(FloatWindow::WithTop(head, top)));
}

__device__ __forceinline__ void AddToBin(uint64_t* words, int bin, int64_t v) {
  if (v != 0) atomicAdd(AtomicWord(words + 1 + bin), static_cast<unsigned long long>(v));
}

/// Adds a number to a group's window. False: it does not go there. `known`: its head, as read some time ago.
__device__ __forceinline__ bool AddToWindow(uint64_t* words, uint64_t known, double v) {
  using vm::FloatSum;
  const int exponent = FloatSum::ExponentBits(v);
  const uint64_t magnitude = FloatSum::Magnitude(v);
  if (exponent == 0x7FF) return false;
  if (magnitude == 0) return true;
  const int top = FloatSum::TopOf(exponent);
  const uint64_t head = OpenWindow(words, known, top);
  const int first = vm::FloatWindow::First(head);
  if (top > first) return false;
  RaiseTop(words, head, top);
  // (From a shift by a bin on nothing is left of it.)
  int shift = FloatSum::ShiftTo(top, exponent);
  for (int bin = first - top; bin < vm::FloatWindow::kBins && shift < FloatSum::kBinBits; ++bin) {
    const int64_t slice = FloatSum::Slice(magnitude, shift);
    AddToBin(words, bin, v < 0 ? -slice : slice);
    shift += FloatSum::kBinBits;
  }
  return true;
}

/// The same for the sum of several numbers.
__device__ __forceinline__ bool AddToWindow(uint64_t* words, const vm::FloatSum& s) {
  using vm::FloatSum;
  if ((s.head & ~FloatSum::kTopMask) != 0) return false;
  bool any = s.Top() != 0;
  for (int k = 0; k < FloatSum::kBins; ++k) any |= s.bins[k] != 0;
  if (!any) return true;  // all of them are 0
  const uint64_t head = OpenWindow(words, LoadRelaxed(words), s.Top());
  const int above = vm::FloatWindow::First(head) - s.Top();
  if (above < 0) return false;
  RaiseTop(words, head, s.Top());
  for (int k = 0; k < FloatSum::kBins; ++k) {
    if (above + k < vm::FloatWindow::kBins) AddToBin(words, above + k, s.bins[k]);
  }
  return true;
}

}  // namespace tessera::kernels
