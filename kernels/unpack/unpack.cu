#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <type_traits>

#include "kernels/cuda/cuda_memory.h"
#include "kernels/device/ptx.cuh"
#include "kernels/unpack/unpack.h"
#include "tablet/chunk/packed_chunk.h"
#include "tablet/schemes/bit_packing.h"
#include "tablet/values/ordered_float.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kThreads = 256;

/// A dictionary of that many entries is read once a block, and its entries fetched from shared memory.
template <class Value>
constexpr uint32_t kSharedEntries = (16 << 10) / sizeof(Value);

uint32_t BlocksOf(uint64_t items, uint32_t per_block) {
  return static_cast<uint32_t>((items + per_block - 1) / per_block);
}

/// Consecutive ranges of blocks belong to consecutive steps. Op::Run does the items from Op::kPerBlock * block on. (Each lane
/// looks at some steps: loads that wait for each other, as in a binary search, take a small block longer than its work.)
template <class Op>
__global__ void __launch_bounds__(kThreads) RunSteps(const UnpackStep* steps, uint32_t count) {
  uint32_t begun = 0;
#pragma unroll 4
  for (uint32_t at = threadIdx.x % 32; at < count; at += 32) begun += steps[at].first_block <= blockIdx.x;
  begun = __reduce_add_sync(~0u, begun);
  Op::Run(steps[begun - 1], blockIdx.x - steps[begun - 1].first_block);
}

template <class Op>
cudaError_t LaunchSteps(const UnpackStep* steps, uint32_t count, uint32_t blocks, cudaStream_t stream) {
  RunSteps<Op><<<blocks, kThreads, 0, stream>>>(steps, count);
  return cudaGetLastError();
}

__device__ void NoteWrong(FoundCodes* found) {
  if (found != nullptr) atomicOr(&found->wrong, 1u);
}

/// Value `i` of a stream of bits.
template <class Value>
__device__ Value ReadBits(const UnpackSource& source, uint32_t i) {
  const uint64_t* const words = static_cast<const uint64_t*>(source.at);
  const uint32_t bits = source.bits;
  if (bits == 0) return static_cast<Value>(source.base);
  const uint64_t bit = uint64_t{i} * bits;
  const uint32_t shift = bit % 64;
  uint64_t value = words[bit / 64] >> shift;
  if (shift + bits > 64) value |= words[bit / 64 + 1] << (64 - shift);
  return static_cast<Value>((value & ~uint64_t{0} >> (64 - bits)) + source.base);
}

template <class Value>
__device__ Value Read(const UnpackSource& source, uint32_t i) {
  return source.bits == UnpackSource::kWhole ? static_cast<const Value*>(source.at)[i] : ReadBits<Value>(source, i);
}

/// Values that a thread writes together.
template <class Value>
constexpr uint32_t kEach = 16 / sizeof(Value);

template <class Value>
union Vector {
  Value values[kEach<Value>];
  uint4 whole;
};

/// The 128 bits from bit `at` on of a stream in words of 64, of which only those that have the first `bits` are read.
struct BitWindow {
  uint32_t words[5];

  __device__ __forceinline__ BitWindow(const void* stream, uint64_t at, uint32_t bits) {
    const uint2* const from = static_cast<const uint2*>(stream) + at / 64;
    const uint32_t shift = at % 64, end = shift + bits;
    const uint2 none = {0, 0}, first = from[0], second = end > 64 ? from[1] : none, third = end > 128 ? from[2] : none;
    const bool odd = shift >= 32;
    words[0] = odd ? first.y : first.x;
    words[1] = odd ? second.x : first.y;
    words[2] = odd ? second.y : second.x;
    words[3] = odd ? third.x : second.y;
    words[4] = odd ? third.y : third.x;
    Skip(shift % 32);
  }
  /// Leaves out the first `bits` bits, at most 32.
  __device__ __forceinline__ void Skip(uint32_t bits) {
#pragma unroll
    for (uint32_t w = 0; w < 4; ++w) words[w] = __funnelshift_rc(words[w], words[w + 1], bits);
  }
};

/// `kCount` values from `first` on, of which there are `read`, zeros after them. All have at most 128 bits, and
/// kEachWord of them at most 32. REQUIRES: they have bits; read > 0.
template <class Value, uint32_t kCount, uint32_t kEachWord>
__device__ __forceinline__ void ReadWindow(const UnpackSource& source, uint32_t first, uint32_t read, Value* values) {
  const uint32_t bits = source.bits, mask = ~uint32_t{0} >> (32 - bits);
  const Value base = static_cast<Value>(source.base);
  BitWindow window(source.at, uint64_t{first} * bits, read * bits);
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) {
    if (i != 0 && i % kEachWord == 0) window.Skip(kEachWord * bits);
    values[i] = static_cast<Value>((window.words[0] >> (i % kEachWord * bits) & mask) + base);
  }
  if (read == kCount) return;
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) values[i] = i < read ? values[i] : Value{0};
}

/// `kCount` values from `first` on, of a stream of `count`; zeros after its end. The words of values of at most 32
/// bits, no wider than Value, are read once.
template <class Value, uint32_t kCount>
__device__ void ReadTogether(const UnpackSource& source, uint32_t first, uint32_t count, Value* values) {
  static_assert(kCount <= kEach<Value>);
  const uint32_t read = first < count ? min(kCount, count - first) : 0, bits = source.bits;
  if (bits == UnpackSource::kWhole) {
    const Value* const at = static_cast<const Value*>(source.at) + first;
    Vector<Value> whole;
    if constexpr (kCount == kEach<Value>) {
      if (read != 0) whole.whole = *reinterpret_cast<const uint4*>(at);  // (streams have room for whole vectors)
    } else {
#pragma unroll
      for (uint32_t i = 0; i < kCount; ++i) whole.values[i] = i < read ? at[i] : Value{0};
    }
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) values[i] = i < read ? whole.values[i] : Value{0};
    return;
  }
  constexpr uint32_t kMostBits = sizeof(Value) < 4 ? 8 * sizeof(Value) : 32;
  if (bits == 0 || bits > kMostBits || read == 0) {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) values[i] = i < read ? ReadBits<Value>(source, first + i) : Value{0};
    return;
  }
  ReadWindow<Value, kCount, sizeof(Value) < 4 ? 4 / sizeof(Value) : 1>(source, first, read, values);
}

/// The same for any number of values.
template <class Value, uint32_t kCount>
__device__ void ReadValues(const UnpackSource& source, uint32_t first, uint32_t count, Value* values) {
  constexpr uint32_t kTogether = kCount < kEach<Value> ? kCount : kEach<Value>;
  if constexpr (kCount > kTogether && sizeof(Value) >= 4) {
    constexpr uint32_t kFewBits = 128 / kCount;
    if (source.bits != 0 && source.bits <= kFewBits && first < count)
      return ReadWindow<Value, kCount, 32 / kFewBits>(source, first, min(kCount, count - first), values);
  }
#pragma unroll
  for (uint32_t i = 0; i < kCount; i += kTogether) ReadTogether<Value, kTogether>(source, first + i, count, values + i);
}

/// The first value of vector `k` of a thread, where a block makes kVectors vectors of each thread.
template <class Value, uint32_t kVectors>
__device__ uint32_t FirstOf(uint32_t block, uint32_t k) {
  return ((block * kVectors + k) * kThreads + threadIdx.x) * kEach<Value>;
}

/// Lets `make` write each vector of the step's values that is the block's, given the number of its first one. (Streams
/// have room for whole vectors.)
template <class Value, uint32_t kVectors, class F>
__device__ void MakeVectors(const UnpackStep& step, uint32_t block, F make) {
#pragma unroll
  for (uint32_t k = 0; k < kVectors; ++k) {
    const uint32_t first = FirstOf<Value, kVectors>(block, k);
    if (first >= step.values) return;
    Vector<Value> made;
    make(first, made.values);
    *reinterpret_cast<uint4*>(static_cast<Value*>(step.out) + first) = made.whole;
  }
}

/// Makes `value_of` of each of the values of `in`, as many as the step makes.
template <class Value, uint32_t kVectors, class From, class F>
__device__ void MakeValues(const UnpackStep& step, uint32_t block, F value_of) {
  MakeVectors<Value, kVectors>(step, block, [&](uint32_t first, Value* made) {
    From from[kEach<Value>];
    ReadValues<From, kEach<Value>>(step.in, first, step.values, from);
#pragma unroll
    for (uint32_t i = 0; i < kEach<Value>; ++i) made[i] = value_of(from[i], first + i);
  });
}
template <class Value, uint32_t kVectors>
constexpr uint32_t kValuesMade = kThreads* kEach<Value>* kVectors;

/// Values of bits.
template <class Value>
struct UnpackWords {
  static constexpr uint32_t kVectors = 2, kPerBlock = kValuesMade<Value, kVectors>;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    MakeValues<Value, kVectors, Value>(step, block, [](Value value, uint32_t) { return value; });
  }
};

/// Numbers of entries at `in`, the dictionary's `count` entries at `other`.
template <class Value>
struct LookUp {
  /// Enough values that a block reads less of the dictionary than it writes.
  static constexpr uint32_t kVectors = 8, kPerBlock = kValuesMade<Value, kVectors>;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    __shared__ Value entries[kSharedEntries<Value>];
    const uint32_t count = step.count;
    const bool shared = count <= kSharedEntries<Value>;
    if (shared) {
      constexpr uint32_t kTogether = kEach<Value>;
      static_assert(kSharedEntries<Value> % kTogether == 0);
#pragma unroll 4
      for (uint32_t i = threadIdx.x * kTogether; i < count; i += kThreads * kTogether)
        ReadTogether<Value, kTogether>(step.other, i, count, entries + i);
      __syncthreads();
    }
    const Value* const dictionary = shared ? entries : static_cast<const Value*>(step.other.at);
    bool wrong = false;
    MakeValues<Value, kVectors, uint32_t>(step, block, [&](uint32_t number, uint32_t i) {
      wrong |= number >= count && i < step.values;
      return number < count ? dictionary[number] : Value{0};
    });
    if (wrong) NoteWrong(step.found);
  }
};

/// A bitmap for each of the dictionary's `count` entries at `in`, the entries at `other`.
template <class Value>
struct FindBits {
  static constexpr uint32_t kVectors = 1, kPerBlock = kValuesMade<Value, kVectors>;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    const uint64_t* const bitmaps = static_cast<const uint64_t*>(step.in.at);
    const uint64_t words = (uint64_t{step.values} + 63) / 64;
    MakeVectors<Value, kVectors>(step, block, [&](uint32_t first, Value* made) {
#pragma unroll
      for (uint32_t k = 0; k < kEach<Value>; ++k) {
        const uint32_t i = first + k;
        made[k] = 0;
        if (i >= step.values) continue;
        uint32_t bits = 0, entry = 0;
        for (uint32_t d = 0; d < step.count; ++d) {
          if ((bitmaps[d * words + i / 64] >> (i % 64) & 1) == 0) continue;
          entry = d;
          ++bits;
        }
        const bool behind =
            i < step.count && step.values % 64 != 0 && bitmaps[i * words + words - 1] >> (step.values % 64) != 0;
        if (bits != 1 || behind) NoteWrong(step.found);
        if (bits != 0) made[k] = Read<Value>(step.other, entry);
      }
    });
  }
};

/// Quotients at `in`, remainders at `other`; the divisor is `parameter`.
template <class Value>
struct MultiplyAdd {
  static constexpr uint32_t kVectors = 2, kPerBlock = kValuesMade<Value, kVectors>;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    MakeVectors<Value, kVectors>(step, block, [&](uint32_t first, Value* made) {
      Value quotients[kEach<Value>], remainders[kEach<Value>];
      ReadValues<Value, kEach<Value>>(step.in, first, step.values, quotients);
      ReadValues<Value, kEach<Value>>(step.other, first, step.values, remainders);
#pragma unroll
      for (uint32_t i = 0; i < kEach<Value>; ++i)
        made[i] = static_cast<Value>(uint64_t{quotients[i]} * step.parameter + remainders[i] + step.base);
    });
  }
};

/// Divides by a power of ten, exactly as / does: the remainder of a quotient by the rounded reciprocal is exact, and what it
/// says is missing is added twice, after which nothing is left to round (Markstein 1990). A division would find the
/// reciprocal anew for each value.
class DivideBy {
 public:
  explicit __device__ DivideBy(double divisor) : divisor_(divisor), reciprocal_(1 / divisor) {}

  __device__ double operator()(double number) const { return Closer(number, Closer(number, number * reciprocal_)); }

 private:
  __device__ double Closer(double number, double quotient) const {
    return std::fma(std::fma(-divisor_, quotient, number), reciprocal_, quotient);
  }

  const double divisor_, reciprocal_;
};

/// Numbers at `in`, less `parameter`, times 10 to the `count`.
template <class Value>
struct ToFloatingPoint {
  static constexpr uint32_t kVectors = 4, kPerBlock = kValuesMade<Value, kVectors>;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    double power = 1;
    for (uint32_t i = 0; i < step.count; ++i) power *= 10;  // exact up to 10^22
    const DivideBy divide(power);
    MakeValues<Value, kVectors, uint64_t>(step, block, [&](uint64_t scaled, uint32_t) {
      if (scaled == step.null) return static_cast<Value>(step.scaled.null_code);
      const double number = divide(static_cast<double>(static_cast<int64_t>(scaled + step.parameter)));
      const uint64_t ordered =
          step.scaled.single ? uint64_t{OrderedFloat32(static_cast<float>(number))} : OrderedFloat(number);
      return static_cast<Value>(ordered - step.scaled.base);
    });
  }
};

// Sums from the first value to each, in one pass: a block tells what its tile adds up to, and waits until those before it
// have told theirs. Blocks start in the order of their numbers, so none waits for one that cannot run.

/// Sums of narrow values are made in 32 bits: what goes round does so in fewer bits, too.
template <class Value>
using SumOf = std::conditional_t<sizeof(Value) == 8, uint64_t, uint32_t>;

/// Of a tile, a thread has this many vectors, side by side: the more, the fewer blocks wait for one another, as long as
/// the registers hold what is made of them.
constexpr uint32_t kSumVectors = 4;
template <class Value>
constexpr uint32_t kDeltaVectors = sizeof(Value) < 4 ? kSumVectors : 2 * kSumVectors;

__device__ uint32_t SumOfWarp(uint32_t mine) { return __reduce_add_sync(~0u, mine); }
__device__ uint64_t SumOfWarp(uint64_t mine) {
  for (uint32_t n = 16; n > 0; n /= 2) mine += __shfl_xor_sync(~0u, mine, n);
  return mine;
}

/// The sum of the values of this lane and those before it.
template <class Sum>
__device__ Sum SumUpToLane(Sum mine) {
  for (uint32_t n = 1; n < 32; n *= 2) {
    const Sum other = __shfl_up_sync(~0u, mine, n);
    if (threadIdx.x % 32 >= n) mine += other;
  }
  return mine;
}

/// What the values of a tile add up to, once its block has told; zeros until then. A word has a mark and 32 bits of the sum,
/// which are seen together.
template <class Sum>
struct TileSum {
  static constexpr uint32_t kWords = sizeof(Sum) / 4;
  static constexpr uint64_t kTold = uint64_t{1} << 32;
  uint64_t words[kWords];

  __device__ void Tell(Sum sum) {
    StoreRelaxed(words, kTold | static_cast<uint32_t>(sum));
    if constexpr (kWords == 2) StoreRelaxed(words + 1, kTold | sum >> 32);
  }
  __device__ Sum Wait() const {
    Sum sum = 0;
    for (uint32_t w = kWords; w-- > 0;) {
      uint64_t word;
      do {
        word = LoadRelaxed(words + w);
      } while (word < kTold);
      if constexpr (kWords == 2) sum <<= 32;
      sum |= static_cast<uint32_t>(word);
    }
    return sum;
  }
};

/// `values` words of tiles' sums become zeros.
struct ClearTiles {
  static constexpr uint32_t kPerBlock = kThreads;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    const uint32_t i = block * kThreads + threadIdx.x;
    if (i < step.values) static_cast<uint64_t*>(step.out)[i] = 0;
  }
};

/// The values of a tile that are a thread's, and the sum of those of the stream before them.
template <class Value, uint32_t kVectors>
struct SummedTile {
  static constexpr uint32_t kEachThread = kEach<Value> * kVectors;
  Value values[kEachThread];
  SumOf<Value> before;
  uint32_t first;  ///< number of the first value

  /// `source` has `count` values; `tiles`: of the stream, nullptr if there is but one.
  __device__ void Make(const UnpackSource& source, uint32_t count, void* tiles, uint32_t block) {
    using Sum = SumOf<Value>;
    constexpr uint32_t kWarps = kThreads / 32;
    __shared__ Sum warps[kWarps], earlier[kWarps];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    first = (block * kThreads + threadIdx.x) * kEachThread;
    ReadValues<Value, kEachThread>(source, first, count, values);
    Sum mine = 0;
#pragma unroll
    for (uint32_t i = 0; i < kEachThread; ++i) mine += values[i];
    const Sum through = SumUpToLane(mine);
    if (lane == 31) warps[warp] = through;
    __syncthreads();
    before = through - mine;
    Sum all = 0;
#pragma unroll
    for (uint32_t w = 0; w < kWarps; ++w) {
      if (w == warp) before += all;
      all += warps[w];
    }
    if (tiles == nullptr) return;
    TileSum<Sum>* const sums = static_cast<TileSum<Sum>*>(tiles);
    if (threadIdx.x == 0) sums[block].Tell(all);
    Sum sum = 0;
    for (uint32_t t = threadIdx.x; t < block; t += kThreads) sum += sums[t].Wait();
    sum = SumOfWarp(sum);
    if (lane == 0) earlier[warp] = sum;
    __syncthreads();
#pragma unroll
    for (uint32_t w = 0; w < kWarps; ++w) before += earlier[w];
  }
};

/// Writes what the threads of a block made of the values of their tile, `count` of the stream in all. Each thread has vectors
/// one after the other; those of a warp change places in shared memory, so that those that lanes write together do.
template <uint32_t kVectors, class Value>
__device__ void WriteTile(const Value* made, void* out, uint32_t count, uint32_t block) {
  __shared__ uint4 vectors[kThreads * kVectors];
  // Where vector `v` of thread `t` is: those of eight lanes in different banks, both times.
  const auto place = [](uint32_t t, uint32_t v) { return t * kVectors + (v ^ (t / (8 / kVectors) % kVectors)); };
  static_assert(8 % kVectors == 0);
#pragma unroll
  for (uint32_t v = 0; v < kVectors; ++v) {
    Vector<Value> whole;
#pragma unroll
    for (uint32_t i = 0; i < kEach<Value>; ++i) whole.values[i] = made[v * kEach<Value> + i];
    vectors[place(threadIdx.x, v)] = whole.whole;
  }
  __syncwarp();
#pragma unroll
  for (uint32_t k = 0; k < kVectors; ++k) {
    const uint32_t number = threadIdx.x / 32 * 32 * kVectors + k * 32 + threadIdx.x % 32,
                   first = (block * kThreads * kVectors + number) * kEach<Value>;
    if (first >= count) return;
    *reinterpret_cast<uint4*>(static_cast<Value*>(out) + first) = vectors[place(number / kVectors, number % kVectors)];
  }
}

/// `base` and the sum of the `count` values at `in` before each.
template <class Value>
struct SumUp {
  static constexpr uint32_t kVectors = kDeltaVectors<Value>, kPerBlock = kValuesMade<Value, kVectors>;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    SummedTile<Value, kVectors> tile;
    tile.Make(step.in, step.count, step.tiles, block);
    SumOf<Value> sum = tile.before + static_cast<SumOf<Value>>(step.base);
#pragma unroll
    for (Value& value : tile.values) {
      const Value summed = value;
      value = static_cast<Value>(sum);
      sum += summed;
    }
    WriteTile<kVectors>(tile.values, step.out, step.values, block);
  }
};

/// The row after each of `count` runs, whose lengths are at `in`; and at `starts` for each block of rows_per_block
/// rows, of `parameter` in all, the run that its first row is in.
struct EndRuns {
  static constexpr uint32_t kVectors = kSumVectors, kPerBlock = kValuesMade<uint32_t, kVectors>;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    SummedTile<uint32_t, kVectors> tile;
    tile.Make(step.in, step.count, step.tiles, block);
    uint32_t end = tile.before;
#pragma unroll
    for (uint32_t i = 0; i < tile.kEachThread; ++i) {
      const uint32_t begin = end;
      tile.values[i] = end += tile.values[i];
      if (tile.first + i >= step.values) continue;
      // (Some ends may be wrong, which is found elsewhere: then the run seems to begin after the last row, or to be
      // long.)
      const uint32_t until = min(end, static_cast<uint32_t>(step.parameter));
      if (begin >= until) continue;
      for (uint32_t b = begin / step.rows_per_block + (begin % step.rows_per_block != 0);
           b * step.rows_per_block < until; ++b)
        step.starts[b] = tile.first + i;
    }
    WriteTile<kVectors>(tile.values, step.out, step.values, block);
  }
};

/// Bytes at `in`, `parameter` of them in words of 64 bits; the length of each value at `other`.
template <class Value>
struct GatherBytes {
  static constexpr uint32_t kVectors = kSumVectors, kPerBlock = kValuesMade<Value, kVectors>;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    SummedTile<Value, kVectors> tile;
    tile.Make(step.other, step.values, step.tiles, block);
    bool wrong = false;
    uint64_t start = tile.before;
#pragma unroll
    for (uint32_t i = 0; i < tile.kEachThread; ++i) {
      const uint32_t length = static_cast<uint32_t>(tile.values[i]);
      tile.values[i] = 0;
      if (tile.first + i >= step.values) continue;
      const uint64_t end = start + length;
      wrong |= end > step.parameter || (tile.first + i == step.values - 1 && end != step.parameter);
      if (end <= step.parameter) {
        tile.values[i] =
            static_cast<Value>(BytesAt(static_cast<const uint32_t*>(step.in.at), start, length) + step.base);
      }
      start = end;
    }
    if (wrong) NoteWrong(step.found);
    WriteTile<kVectors>(tile.values, step.out, step.values, block);
  }

  /// The integer in `length` bytes, 1 to 4, from byte `start` on.
  static __device__ uint32_t BytesAt(const uint32_t* words, uint64_t start, uint32_t length) {
    const uint32_t shift = start % 4;
    uint64_t value = words[start / 4];
    if (shift + length > 4) value |= uint64_t{words[start / 4 + 1]} << 32;
    return static_cast<uint32_t>(value >> (8 * shift)) & ~uint32_t{0} >> (32 - 8 * length);
  }
};

/// Each run ends after the one before it, and the last one with the last row. (A sum that went round 2^32 is less than
/// the one before.)
struct CheckRuns {
  static constexpr uint32_t kEachThread = 4, kPerBlock = kThreads * kEachThread;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    const uint32_t* const ends = static_cast<const uint32_t*>(step.in.at);
    bool wrong = false;
#pragma unroll
    for (uint32_t k = 0; k < kEachThread; ++k) {
      const uint32_t i = (block * kEachThread + k) * kThreads + threadIdx.x;
      if (i >= step.values) break;
      wrong |= ends[i] <= (i == 0 ? 0 : ends[i - 1]) || (i == step.values - 1 && ends[i] != step.parameter);
    }
    if (wrong) NoteWrong(step.found);
  }
};

/// Runs at `in`, the ends of `count` runs at `other`, the run of each block's first row at `starts`. Each block fetches
/// the runs of its rows, and each thread looks for those of its vectors among these alone: so it takes about as long for
/// runs of one row as for runs of a million.
template <class Value>
struct ExpandRuns {
  static constexpr uint32_t kVectors = sizeof(Value) < 2 ? 1 : sizeof(Value) / 2;
  static constexpr uint32_t kPerBlock = kValuesMade<Value, kVectors>;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    __shared__ uint32_t ends[kPerBlock];
    __shared__ Value runs[kPerBlock];
    const uint32_t* const all_ends = static_cast<const uint32_t*>(step.other.at);
    // (Where ends do not rise, which is found elsewhere, a start may be anything.)
    const uint32_t low = min(step.starts[block], step.count - 1),
                   next = (block + 1) * kPerBlock < step.values ? min(step.starts[block + 1], step.count - 1)
                                                                : step.count - 1,
                   count = low < next ? min(next - low + 1, kPerBlock) : 1;
    for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
      ends[i] = all_ends[low + i];
      runs[i] = Read<Value>(step.in, low + i);
    }
    __syncthreads();
#pragma unroll
    for (uint32_t k = 0; k < kVectors; ++k) {
      const uint32_t row = FirstOf<Value, kVectors>(block, k);
      if (row >= step.values) return;
      uint32_t run = 0, high = count - 1;
      while (run < high) {
        const uint32_t middle = (run + high) / 2;
        if (ends[middle] > row) {
          high = middle;
        } else {
          run = middle + 1;
        }
      }
      Vector<Value> made;
#pragma unroll
      for (uint32_t i = 0; i < kEach<Value>; ++i) {
        if (ends[run] <= row + i && run < count - 1) ++run;
        made.values[i] = runs[run];
      }
      *reinterpret_cast<uint4*>(static_cast<Value*>(step.out) + row) = made.whole;
    }
  }
};

/// Codes at `in`: those that are not NULL are at most `base`. A thread looks at 16 bytes.
template <class Value>
struct CheckCodes {
  static constexpr uint32_t kPerBlock = kValuesMade<Value, 1>;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    const uint32_t first = FirstOf<Value, 1>(block, 0);
    uint32_t nulls = 0;
    bool wrong = false;
    if (first < step.values) {
      Vector<Value> read;
      // (Streams have room for whole vectors.)
      read.whole = *reinterpret_cast<const uint4*>(static_cast<const Value*>(step.in.at) + first);
#pragma unroll
      for (uint32_t i = 0; i < kEach<Value>; ++i) {
        if (first + i >= step.values) continue;
        const bool is_null = step.scaled.has_nulls && read.values[i] == static_cast<Value>(step.scaled.null_code);
        nulls += is_null;
        wrong |= !is_null && read.values[i] > step.base;
      }
    }
    const bool any = __any_sync(~0u, wrong) != 0;
    nulls = __reduce_add_sync(~0u, nulls);
    if (threadIdx.x % 32 != 0) return;
    if (any) NoteWrong(step.found);
    if (nulls != 0) atomicAdd(&step.found->nulls, nulls);
  }
};

}  // namespace

/// The steps of a tree, or only the scratch memory that they take.
class TreeSteps {
 public:
  /// `batch`: nullptr: count.
  TreeSteps(const UnpackPlan& plan, const uint8_t* packed, uint8_t* scratch, FoundCodes* found, UnpackBatch* batch)
      : plan_(plan), packed_(packed), scratch_(scratch), found_(found), batch_(batch) {}

  template <class Value>
  void All(uint8_t* out) {
    const Level level = Make(0, reinterpret_cast<Value*>(out));
    if (found_ == nullptr) return;
    UnpackStep step = Step(out, plan_.rows);
    step.in.at = out;
    step.base = plan_.greatest;
    step.scaled = plan_.scaled;
    Add<CheckCodes<Value>>(level, step);
  }

  uint64_t scratch_bytes() const { return used_; }
  /// Whether there is a scheme that the device does not know.
  bool is_strange() const { return is_strange_; }

 private:
  using Level = uint32_t;

  /// A stream that can be read from a level on.
  struct Input {
    UnpackSource source;
    Level level = 0;
  };

  UnpackStep Step(void* out, uint32_t values) const {
    UnpackStep step = {};
    step.out = out;
    step.found = found_;
    step.values = values;
    return step;
  }

  /// After all steps below `level`. What it makes can be read from the level that is returned on.
  template <class Op>
  Level Add(Level level, const UnpackStep& step) {
    const uint32_t blocks = BlocksOf(step.values, Op::kPerBlock);
    if (batch_ != nullptr && blocks > 0) batch_->entries_.push_back({level, &LaunchSteps<Op>, blocks, step});
    return level + 1;
  }

  /// Room for that many values and whole vectors.
  template <class Value>
  Value* Scratch(uint64_t values) {
    const uint64_t at = used_;
    used_ += AlignedForUnpack(values * sizeof(Value) + 16);
    return scratch_ == nullptr ? nullptr : reinterpret_cast<Value*>(scratch_ + at);
  }

  /// The next node and those below it, to be read by a step; `base` is added to each value.
  template <class Value>
  Input Next(uint64_t base) {
    size_t below = next_;
    uint64_t sum = base;
    for (; Is(plan_.tree[below], Scheme::kFor); ++below) sum += plan_.tree[below].parameter;
    if (const PackedNode& node = plan_.tree[below]; Is(node, Scheme::kNs)) {
      next_ = below + 1;
      return {{packed_ + node.offset, sum, node.bits}};
    }
    return MadeNext<Value>(base);
  }

  /// The same in scratch memory.
  template <class Value>
  Input MadeNext(uint64_t base) {
    Value* const made = Scratch<Value>(plan_.tree[next_].values);
    const Level level = Make(base, made);
    return {{made}, level};
  }

  static bool Is(const PackedNode& node, Scheme scheme) { return node.scheme == static_cast<uint8_t>(scheme); }

  /// The next node and those below it become values at `out`; `base` is added to each.
  template <class Value>
  Level Make(uint64_t base, Value* out) {
    const PackedNode& node = plan_.tree[next_++];
    UnpackStep step = Step(out, node.values);
    step.base = base;
    step.parameter = node.parameter;
    switch (static_cast<Scheme>(node.scheme)) {
      case Scheme::kNs:
        step.in = {packed_ + node.offset, base, node.bits};
        return Add<UnpackWords<Value>>(0, step);
      case Scheme::kNsv:
        return Lengths<Value>(node, step);
      case Scheme::kFor:
        return Make(base + node.parameter, out);
      case Scheme::kDelta: {
        const Input deltas = Next<Value>(0);
        step.in = deltas.source;
        step.count = node.values - std::min(node.values, 1u);
        step.base = base + node.parameter;
        return Sum<SumUp<Value>, Value>(deltas, step);
      }
      case Scheme::kRle:
        return Runs<Value>(node, step);
      case Scheme::kDict:
      case Scheme::kBitmap:
        return Dictionary<Value>(node, step);
      case Scheme::kSep: {
        const Input quotients = Next<Value>(0), remainders = Next<Value>(0);
        step.in = quotients.source;
        step.other = remainders.source;
        return Add<MultiplyAdd<Value>>(std::max(quotients.level, remainders.level), step);
      }
      case Scheme::kScale: {
        const Input numbers = Next<uint64_t>(0);
        step.in = numbers.source;
        step.count = node.bits;
        step.null = node.null;
        step.scaled = plan_.scaled;
        return Add<ToFloatingPoint<Value>>(numbers.level, step);
      }
      case Scheme::kZstd:
        is_strange_ = true;
    }
    return 0;
  }

  /// Op, which sums up the values of `in`.
  template <class Op, class Value>
  Level Sum(const Input& in, UnpackStep step) {
    const uint32_t tiles = BlocksOf(step.values, Op::kPerBlock);
    Level level = in.level;
    if (tiles > 1) {
      const uint32_t words = tiles * TileSum<SumOf<Value>>::kWords;
      step.tiles = Scratch<uint64_t>(words);
      level = std::max(level, Add<ClearTiles>(0, Step(step.tiles, words)));
    }
    return Add<Op>(level, step);
  }

  /// Lengths of 2 bits each, after them the values.
  template <class Value>
  Level Lengths(const PackedNode& node, UnpackStep step) {
    const uint8_t* const payload = packed_ + node.offset;
    step.in.at = payload + PackedWords(node.values, 2) * 8;
    step.other = {payload, 1, 2};
    return Sum<GatherBytes<Value>, Value>({step.other}, step);
  }

  template <class Value>
  Level Runs(const PackedNode& node, UnpackStep step) {
    const uint32_t count = static_cast<uint32_t>(node.parameter);
    const Input runs = Next<Value>(step.base), lengths = Next<uint32_t>(1);
    UnpackStep sum = Step(Scratch<uint32_t>(count), count);
    sum.in = lengths.source;
    sum.count = count;
    sum.parameter = node.values;
    sum.rows_per_block = ExpandRuns<Value>::kPerBlock;
    sum.starts = step.starts = Scratch<uint32_t>(BlocksOf(node.values, sum.rows_per_block));
    const Level summed = Sum<EndRuns, uint32_t>(lengths, sum);
    if (found_ != nullptr) {
      UnpackStep check = Step(nullptr, count);
      check.in.at = sum.out;
      check.parameter = node.values;
      Add<CheckRuns>(summed, check);
    }
    step.in = runs.source;
    step.other.at = sum.out;
    step.count = count;
    if (count == 0) step.values = 0;
    return Add<ExpandRuns<Value>>(std::max(runs.level, summed), step);
  }

  template <class Value>
  Level Dictionary(const PackedNode& node, UnpackStep step) {
    const uint32_t count = static_cast<uint32_t>(node.parameter);
    // A block reads a small dictionary in order, another one here and there.
    const Input entries = count <= kSharedEntries<Value> ? Next<Value>(step.base) : MadeNext<Value>(step.base);
    step.other = entries.source;
    step.count = count;
    step.in.at = packed_ + node.offset;
    if (Is(node, Scheme::kBitmap)) return Add<FindBits<Value>>(entries.level, step);
    const Input numbers = Next<uint32_t>(0);
    step.in = numbers.source;
    return Add<LookUp<Value>>(std::max(entries.level, numbers.level), step);
  }

  const UnpackPlan& plan_;
  const uint8_t* const packed_;
  uint8_t* const scratch_;
  FoundCodes* const found_;
  UnpackBatch* const batch_;
  size_t next_ = 0;
  uint64_t used_ = 0;
  bool is_strange_ = false;
};

namespace {

void AddTree(int width, uint8_t* out, TreeSteps* steps) {
  switch (width) {
    case 1:
      return steps->All<uint8_t>(out);
    case 2:
      return steps->All<uint16_t>(out);
    case 4:
      return steps->All<uint32_t>(out);
    default:
      return steps->All<uint64_t>(out);
  }
}

}  // namespace

tessera::Result<UnpackPlan> PlanUnpack(const Chunk& chunk) {
  UnpackPlan plan;
  plan.width = chunk.width;
  plan.rows = chunk.rows;
  plan.scaled = ScaledCodesOf(chunk);
  plan.packed_bytes = chunk.packed_bytes;
  plan.greatest = chunk.GreatestCode();
  plan.nulls = chunk.null_count;
  const char* const reason = ParsePackedCodes(chunk, &plan.tree);
  if (reason != nullptr) return Status(ErrorCode::kCorrupt, std::string("a chunk that was right has ") + reason);
  TreeSteps count(plan, nullptr, nullptr, nullptr, nullptr);
  AddTree(plan.width, nullptr, &count);
  if (count.is_strange()) return Status(ErrorCode::kInternal, "a chunk of codes is packed as texts are");
  plan.scratch_bytes = std::max(count.scratch_bytes(), AlignedForUnpack(1));  // 0 would be no memory at all
  return plan;
}

void UnpackBatch::Add(const UnpackPlan& plan, const uint8_t* packed, uint8_t* out, uint8_t* scratch,
                      FoundCodes* found) {
  TreeSteps steps(plan, packed, scratch, found, this);
  AddTree(plan.width, out, &steps);
}

const std::vector<UnpackStep>& UnpackBatch::Finish() {
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return a.level != b.level ? a.level < b.level : std::less<>()(a.launch, b.launch);
  });
  const Entry* last = nullptr;
  for (Entry& e : entries_) {
    if (last == nullptr || last->level != e.level || last->launch != e.launch) {
      groups_.push_back({e.launch, static_cast<uint32_t>(steps_.size()), 0, 0});
    }
    Group& group = groups_.back();
    e.step.first_block = group.blocks;
    group.blocks += e.blocks;
    ++group.count;
    steps_.push_back(e.step);
    last = &e;
  }
  entries_.clear();
  return steps_;
}

cudaError_t UnpackBatch::Start(const UnpackStep* steps, cudaStream_t stream) const {
  for (const Group& g : groups_) {
    if (const cudaError_t error = g.launch(steps + g.first, g.count, g.blocks, stream); error != cudaSuccess)
      return error;
  }
  return cudaSuccess;
}

}  // namespace tessera::kernels
