// Operations on all 16 rows of a thread at once: loads of codes, range tests, rotation of register arrays.
//
// Arrays of rows are hardware registers: every index must be a constant after unrolling, or the array moves to local
// memory. Long loops, which are not unrolled, rotate the array past its first element instead.
//
// Start at: LoadCodes, TestRange.
#pragma once

#include <cstdint>

#include "kernels/device/ptx.cuh"
#include "kernels/launch/launch.h"

namespace tessera::kernels {

inline constexpr uint32_t kAllLanes = 0xFFFFFFFFu;
inline constexpr uint32_t kAllRows = 0xFFFFu;

/// The operand that a thread fetched for an instruction: its rows' values (doubles as bits) and NULL bits.
template <uint32_t R>
struct OperandRows {
  int64_t v[R];
  uint32_t null;
};

/// Loads a head of 16 bytes with one instruction.
template <class Head>
__device__ __forceinline__ Head LoadHead(const Head& head) {
  static_assert(sizeof(Head) == 16 && alignof(Head) == 16);
  const uint4 raw = *reinterpret_cast<const uint4*>(&head);
  return __builtin_bit_cast(Head, raw);
}

/// Moves the first kCount rows to the end.
template <uint32_t kCount, class V, uint32_t R>
__device__ __forceinline__ void RotateBy(V (&v)[R]) {
  if constexpr (kCount < R) {
    V first[kCount];
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) first[i] = v[i];
#pragma unroll
    for (uint32_t i = 0; i + kCount < R; ++i) v[i] = v[i + kCount];
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) v[R - kCount + i] = first[i];
  }
}

/// The thread's vectors of a stream: part i of the vectors of row group g is [g][i]. kOnDemand: the stream is in device
/// memory, and only groups of four rows with a live one are read (the others are zeros); otherwise it is in the ring.
/// All loads come before the first use.
template <bool kOnDemand, class V, uint32_t kEach = 1>
struct OwnVectors {
  V at[4][kEach];

  __device__ __forceinline__ OwnVectors(const uint8_t* stream, uint32_t thread, uint32_t live) {
    const V* p = reinterpret_cast<const V*>(stream) + thread * kEach;
    // Without this, index and thread are added first, which takes two more instructions per load. (A shared address
    // must stay known as one.)
    if constexpr (kOnDemand) KeepAddress(p);
#pragma unroll
    for (uint32_t g = 0; g < 4; ++g) {
#pragma unroll
      for (uint32_t i = 0; i < kEach; ++i) {
        const V* from = p + g * kThreads * kEach + i;
        if constexpr (kOnDemand) {
          at[g][i] = V{};
          if ((live >> (4 * g) & 15) != 0) at[g][i] = __ldg(from);
        } else {
          at[g][i] = *from;
        }
      }
    }
  }
};

/// base + code for the thread's rows; codes have `width` bytes (not 16).
template <bool kOnDemand>
__device__ __forceinline__ void LoadCodes(const uint8_t* p, uint32_t width, uint32_t thread, uint32_t live,
                                          uint64_t base, int64_t (&v)[kRows]) {
  auto set = [&](uint32_t i, uint64_t code) { v[i] = static_cast<int64_t>(base + code); };
  switch (width) {
    case 1: {
      const OwnVectors<kOnDemand, uint32_t> codes(p, thread, live);
#pragma unroll
      for (uint32_t g = 0; g < 4; ++g) {
        const uint32_t c = codes.at[g][0];
        set(4 * g, c & 255), set(4 * g + 1, c >> 8 & 255), set(4 * g + 2, c >> 16 & 255), set(4 * g + 3, c >> 24);
      }
      break;
    }
    case 2: {
      const OwnVectors<kOnDemand, uint2> codes(p, thread, live);
#pragma unroll
      for (uint32_t g = 0; g < 4; ++g) {
        const uint2 c = codes.at[g][0];
        set(4 * g, c.x & 65535), set(4 * g + 1, c.x >> 16), set(4 * g + 2, c.y & 65535), set(4 * g + 3, c.y >> 16);
      }
      break;
    }
    case 4: {
      const OwnVectors<kOnDemand, uint4> codes(p, thread, live);
#pragma unroll
      for (uint32_t g = 0; g < 4; ++g) {
        const uint4 c = codes.at[g][0];
        set(4 * g, c.x), set(4 * g + 1, c.y), set(4 * g + 2, c.z), set(4 * g + 3, c.w);
      }
      break;
    }
    default: {
      const OwnVectors<kOnDemand, ulonglong2, 2> codes(p, thread, live);
#pragma unroll
      for (uint32_t g = 0; g < 4; ++g) {
        set(4 * g, codes.at[g][0].x), set(4 * g + 1, codes.at[g][0].y);
        set(4 * g + 2, codes.at[g][1].x), set(4 * g + 3, codes.at[g][1].y);
      }
    }
  }
}

/// code + delta, modulo 2^32, of a column in the ring; codes of 1, 2 or 4 bytes.
__device__ __forceinline__ void LoadNarrow(const uint8_t* p, uint32_t width, uint32_t thread, uint32_t delta,
                                           uint32_t (&v)[kRows]) {
  if (width == 1) {
    const OwnVectors<false, uint32_t> codes(p, thread, kAllRows);
#pragma unroll
    for (uint32_t g = 0; g < 4; ++g) {
      const uint32_t c = codes.at[g][0];
      v[4 * g] = (c & 255) + delta, v[4 * g + 1] = (c >> 8 & 255) + delta;
      v[4 * g + 2] = (c >> 16 & 255) + delta, v[4 * g + 3] = (c >> 24) + delta;
    }
  } else if (width == 2) {
    const OwnVectors<false, uint2> codes(p, thread, kAllRows);
#pragma unroll
    for (uint32_t g = 0; g < 4; ++g) {
      const uint2 c = codes.at[g][0];
      v[4 * g] = (c.x & 65535) + delta, v[4 * g + 1] = (c.x >> 16) + delta;
      v[4 * g + 2] = (c.y & 65535) + delta, v[4 * g + 3] = (c.y >> 16) + delta;
    }
  } else {
    const OwnVectors<false, uint4> codes(p, thread, kAllRows);
#pragma unroll
    for (uint32_t g = 0; g < 4; ++g) {
      const uint4 c = codes.at[g][0];
      v[4 * g] = c.x + delta, v[4 * g + 1] = c.y + delta, v[4 * g + 2] = c.z + delta, v[4 * g + 3] = c.w + delta;
    }
  }
}

/// base + code for rows that lie anywhere in a tablet: rows[32 * i] is the thread's i-th, read if it is live.
template <class Code>
__device__ __forceinline__ void LoadScattered(const uint8_t* p, const uint32_t* rows, uint32_t live, uint64_t base,
                                              int64_t (&v)[kQueuedRows]) {
  const Code* codes = reinterpret_cast<const Code*>(p);
  Code code[kQueuedRows];
#pragma unroll
  for (uint32_t i = 0; i < kQueuedRows; ++i) {
    code[i] = 0;
    if ((live >> i & 1) != 0) code[i] = __ldg(codes + rows[32 * i]);
  }
#pragma unroll
  for (uint32_t i = 0; i < kQueuedRows; ++i) v[i] = static_cast<int64_t>(base + code[i]);
}
/// The same of codes of `bits` bits, 1 to 32.
__device__ __forceinline__ void LoadBitsScattered(const uint8_t* p, uint32_t bits, const uint32_t* rows, uint32_t live,
                                                  uint64_t base, int64_t (&v)[kQueuedRows]) {
  const uint32_t* const words = reinterpret_cast<const uint32_t*>(p);
  uint32_t low[kQueuedRows], high[kQueuedRows];
#pragma unroll
  for (uint32_t i = 0; i < kQueuedRows; ++i) {
    low[i] = high[i] = 0;
    if ((live >> i & 1) == 0) continue;
    const uint32_t bit = rows[32 * i] * bits;
    low[i] = __ldg(words + bit / 32);
    if (bit % 32 + bits > 32) high[i] = __ldg(words + bit / 32 + 1);
  }
  const uint32_t mask = ~uint32_t{0} >> (32 - bits);
#pragma unroll
  for (uint32_t i = 0; i < kQueuedRows; ++i)
    v[i] = static_cast<int64_t>(base + (__funnelshift_r(low[i], high[i], rows[32 * i] * bits) & mask));
}
template <bool kBits>
__device__ __forceinline__ void LoadCodesScattered(const uint8_t* p, uint32_t width, const uint32_t* rows,
                                                   uint32_t live, uint64_t base, int64_t (&v)[kQueuedRows]) {
  if constexpr (kBits) {
    if (width > kOfBits) return LoadBitsScattered(p, width - kOfBits, rows, live, base, v);
  }
  switch (width) {
    case 1:
      return LoadScattered<uint8_t>(p, rows, live, base, v);
    case 2:
      return LoadScattered<uint16_t>(p, rows, live, base, v);
    case 4:
      return LoadScattered<uint32_t>(p, rows, live, base, v);
    default:
      return LoadScattered<unsigned long long>(p, rows, live, base, v);
  }
}

/// One bit per row: low <= code <= low + span, for codes of 1, 2 or 4 bytes. A code of 1 or 2 bytes is compared at the
/// top of a word, with whatever lies below it: one multiplication moves it there and subtracts the bound. The bits of
/// rows that are not read have no meaning.
template <bool kOnDemand>
__device__ __forceinline__ uint32_t TestRange(const uint8_t* p, uint32_t width, uint32_t thread, uint32_t live,
                                              uint32_t low, uint32_t span) {
  uint32_t fail = 0;
  if (width == 1) {
    const uint32_t top_low = low << 24, not_span = ~(span << 24 | 0xFFFFFF);
    const OwnVectors<kOnDemand, uint32_t> codes(p, thread, live);
#pragma unroll
    for (uint32_t g = 0; g < 4; ++g) {
      const uint32_t c = codes.at[g][0];
      uint32_t bits = 0;
      ShiftIn(bits, c - top_low, not_span);
      ShiftIn(bits, c * 0x100u - top_low, not_span);
      ShiftIn(bits, c * 0x10000u - top_low, not_span);
      ShiftIn(bits, c * 0x1000000u - top_low, not_span);
      fail |= bits << (4 * g);
    }
  } else if (width == 2) {
    const uint32_t top_low = low << 16, not_span = ~(span << 16 | 0xFFFF);
    const OwnVectors<kOnDemand, uint2> codes(p, thread, live);
#pragma unroll
    for (uint32_t g = 0; g < 4; ++g) {
      const uint2 c = codes.at[g][0];
      uint32_t bits = 0;
      ShiftIn(bits, c.y - top_low, not_span);
      ShiftIn(bits, c.y * 0x10000u - top_low, not_span);
      ShiftIn(bits, c.x - top_low, not_span);
      ShiftIn(bits, c.x * 0x10000u - top_low, not_span);
      fail |= bits << (4 * g);
    }
  } else {
    const uint32_t not_span = ~span;
    const OwnVectors<kOnDemand, uint4> codes(p, thread, live);
#pragma unroll
    for (uint32_t g = 0; g < 4; ++g) {
      const uint4 c = codes.at[g][0];
      uint32_t bits = 0;
      ShiftIn(bits, c.w - low, not_span);
      ShiftIn(bits, c.z - low, not_span);
      ShiftIn(bits, c.y - low, not_span);
      ShiftIn(bits, c.x - low, not_span);
      fail |= bits << (4 * g);
    }
  }
  return ~fail;
}

}  // namespace tessera::kernels
