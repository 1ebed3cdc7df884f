#include <algorithm>
#include <cub/device/device_scan.cuh>
#include <string>

#include "kernels/memory/cuda_memory.h"
#include "kernels/unpack/unpack.h"
#include "tablet/ordered_float.h"
#include "tablet/schemes/bit_packing.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint64_t kAlignment = 256;
/// Rows that a block of ExpandRuns writes.
constexpr uint32_t kRunRows = 2048;

uint64_t Aligned(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
uint32_t BlocksOf(uint64_t items, uint32_t per_block) {
  return static_cast<uint32_t>((items + per_block - 1) / per_block);
}

/// A thread makes 16 bytes, so that it writes one vector.
template <class Value>
__global__ void UnpackWords(const uint64_t* words, uint32_t values, uint32_t bits, uint64_t base, Value* out) {
  constexpr uint32_t kEach = 16 / sizeof(Value);
  const uint32_t first = (blockIdx.x * blockDim.x + threadIdx.x) * kEach;
  if (first >= values) return;
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  union {
    Value values[kEach];
    uint4 vector;
  } made;
#pragma unroll
  for (uint32_t i = 0; i < kEach; ++i) {
    const uint64_t bit = uint64_t{first + i} * bits;
    const uint32_t shift = bit % 64;
    uint64_t value = 0;
    if (first + i < values && bits != 0) {
      value = words[bit / 64] >> shift;
      if (shift + bits > 64) value |= words[bit / 64 + 1] << (64 - shift);
    }
    made.values[i] = static_cast<Value>((value & mask) + base);
  }
  // (Streams have room for whole vectors.)
  *reinterpret_cast<uint4*>(out + first) = made.vector;
}

template <class Value>
__global__ void AddToAll(uint64_t base, uint32_t values, Value* out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < values) out[i] = static_cast<Value>(out[i] + base);
}

__device__ void NoteWrong(FoundCodes* found) {
  if (found != nullptr) atomicOr(&found->wrong, 1u);
}

/// Lengths of 2 bits each, behind them the values, which have `size` bytes.
template <class Value>
__global__ void GatherBytes(const uint8_t* bytes, uint64_t size, const uint32_t* lengths, const uint32_t* starts,
                            uint32_t values, uint64_t base, Value* out, FoundCodes* found) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= values) return;
  const uint32_t end = starts[i] + lengths[i];
  if (end > size || (i == values - 1 && end != size)) NoteWrong(found);
  if (end > size) return;
  uint32_t value = 0;
  for (uint32_t b = 0; b < lengths[i]; ++b) value |= static_cast<uint32_t>(bytes[starts[i] + b]) << (8 * b);
  out[i] = static_cast<Value>(value + base);
}

/// Each run ends behind the one before it, and the last one with the last row. (A sum that went round 2^32 is less than
/// the one before.)
__global__ void CheckRuns(const uint32_t* ends, uint32_t count, uint32_t rows, FoundCodes* found) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  if (ends[i] <= (i == 0 ? 0 : ends[i - 1]) || (i == count - 1 && ends[i] != rows)) NoteWrong(found);
}

/// The first run that ends behind `row`, among [low, high].
__device__ uint32_t FindRun(const uint32_t* ends, uint32_t low, uint32_t high, uint32_t row) {
  while (low < high) {
    const uint32_t middle = (low + high) / 2;
    if (ends[middle] > row) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/// Each block looks for the runs of its rows first, and each thread among these alone: so it takes as long for runs of
/// one row as for runs of a million.
template <class Value>
__global__ void ExpandRuns(const Value* runs, const uint32_t* ends, uint32_t count, uint32_t rows, Value* out) {
  __shared__ uint32_t shared[2];
  const uint32_t first = blockIdx.x * kRunRows, end = min(first + kRunRows, rows);
  if (threadIdx.x < 2) shared[threadIdx.x] = FindRun(ends, 0, count - 1, threadIdx.x == 0 ? first : end - 1);
  __syncthreads();
  const uint32_t low = shared[0], high = shared[1];
  for (uint32_t row = first + threadIdx.x; row < end; row += blockDim.x) out[row] = runs[FindRun(ends, low, high, row)];
}

template <class Value>
__global__ void LookUp(const Value* dictionary, uint32_t entries, const uint32_t* numbers, uint32_t values, Value* out,
                       FoundCodes* found) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= values) return;
  if (numbers[i] < entries) {
    out[i] = dictionary[numbers[i]];
  } else {
    NoteWrong(found);
  }
}

template <class Value>
__global__ void FindBits(const uint64_t* bitmaps, const Value* dictionary, uint32_t entries, uint32_t values,
                         Value* out, FoundCodes* found) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= values) return;
  const uint64_t words = (uint64_t{values} + 63) / 64;
  uint32_t bits = 0;
  for (uint32_t d = 0; d < entries; ++d) {
    if ((bitmaps[d * words + i / 64] >> (i % 64) & 1) == 0) continue;
    out[i] = dictionary[d];
    ++bits;
  }
  const bool behind = i < entries && values % 64 != 0 && bitmaps[i * words + words - 1] >> (values % 64) != 0;
  if (bits != 1 || behind) NoteWrong(found);
}

/// A thread looks at 16 bytes.
template <class Value>
__global__ void CheckCodes(const Value* codes, uint32_t values, uint64_t greatest, bool has_nulls, uint64_t null_code,
                           FoundCodes* found) {
  constexpr uint32_t kEach = 16 / sizeof(Value);
  const uint32_t first = (blockIdx.x * blockDim.x + threadIdx.x) * kEach;
  uint32_t nulls = 0;
  bool wrong = false;
  if (first < values) {
    union {
      uint4 vector;
      Value values[kEach];
    } read;
    // (Streams have room for whole vectors.)
    read.vector = *reinterpret_cast<const uint4*>(codes + first);
#pragma unroll
    for (uint32_t i = 0; i < kEach; ++i) {
      if (first + i >= values) continue;
      const bool is_null = has_nulls && read.values[i] == static_cast<Value>(null_code);
      nulls += is_null;
      wrong |= !is_null && read.values[i] > greatest;
    }
  }
  const bool any = __any_sync(~0u, wrong) != 0;
  nulls = __reduce_add_sync(~0u, nulls);
  if (threadIdx.x % 32 != 0) return;
  if (any) NoteWrong(found);
  if (nulls != 0) atomicAdd(&found->nulls, nulls);
}

template <class Value>
__global__ void MultiplyAdd(const Value* remainders, uint64_t divisor, uint64_t base, uint32_t values, Value* out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < values) out[i] = static_cast<Value>(uint64_t{out[i]} * divisor + remainders[i] + base);
}

struct Scale {
  double power;
  uint64_t least, null;
  ScaledCodes codes;
};

template <class Value>
__global__ void ToFloatingPoint(const uint64_t* numbers, const Scale scale, uint32_t values, Value* out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= values) return;
  uint64_t code = scale.codes.null_code;
  if (numbers[i] != scale.null) {
    const double number = static_cast<double>(static_cast<int64_t>(numbers[i] + scale.least)) / scale.power;
    code = (scale.codes.single ? uint64_t{OrderedFloat32(static_cast<float>(number))} : OrderedFloat(number)) -
           scale.codes.base;
  }
  out[i] = static_cast<Value>(code);
}

/// Starts the kernels of a tree, or only counts the scratch memory that they take.
class Starter {
 public:
  Starter(const UnpackPlan& plan, const uint8_t* packed, uint8_t* scratch, FoundCodes* found, cudaStream_t stream)
      : plan_(plan), packed_(packed), scratch_(scratch), found_(found), stream_(stream) {}

  /// The next node and those below it; `base` is added to each value.
  template <class Value>
  cudaError_t Next(uint64_t base, Value* out) {
    const PackedNode& node = plan_.tree[next_++];
    const uint8_t* const payload = packed_ + node.offset;
    const uint32_t values = node.values, blocks = BlocksOf(values, kThreads);
    cudaError_t error = cudaSuccess;
    switch (static_cast<Scheme>(node.scheme)) {
      case Scheme::kNs:
        if (Starts(values)) {
          const uint32_t vectors = BlocksOf(values, kThreads * (16 / sizeof(Value)));
          const uint64_t* const words = reinterpret_cast<const uint64_t*>(payload);
          UnpackWords<Value><<<vectors, kThreads, 0, stream_>>>(words, values, node.bits, base, out);
        }
        break;
      case Scheme::kNsv: {
        uint32_t* const lengths = Scratch<uint32_t>(values);
        uint32_t* const starts = Scratch<uint32_t>(values);
        if (Starts(values)) {
          const uint64_t* const words = reinterpret_cast<const uint64_t*>(payload);
          UnpackWords<uint32_t><<<BlocksOf(values, kThreads * 4), kThreads, 0, stream_>>>(words, values, 2, 1, lengths);
        }
        error = Sum(false, lengths, starts, values);
        if (error == cudaSuccess && Starts(values)) {
          const uint8_t* const bytes = payload + PackedWords(values, 2) * 8;
          const uint64_t size = node.parameter;
          GatherBytes<Value><<<blocks, kThreads, 0, stream_>>>(bytes, size, lengths, starts, values, base, out, found_);
        }
        break;
      }
      case Scheme::kFor:
        return Next(base + node.parameter, out);
      case Scheme::kDelta:
        return UnpackDelta(node, base, out);
      case Scheme::kRle:
        return UnpackRle(node, base, out);
      case Scheme::kDict:
      case Scheme::kBitmap:
        return UnpackDict(node, base, out);
      case Scheme::kSep: {
        Value* const remainders = Scratch<Value>(values);
        error = Next(0, out);
        if (error == cudaSuccess) error = Next(0, remainders);
        if (error == cudaSuccess && Starts(values)) {
          MultiplyAdd<Value><<<blocks, kThreads, 0, stream_>>>(remainders, node.parameter, base, values, out);
        }
        break;
      }
      case Scheme::kScale: {
        uint64_t* const numbers = Scratch<uint64_t>(values);
        error = Next(0, numbers);
        if (error == cudaSuccess && Starts(values)) {
          Scale scale{1, node.parameter, node.null, plan_.scaled};
          for (int i = 0; i < node.bits; ++i) scale.power *= 10;  // exact up to 10^22
          ToFloatingPoint<Value><<<blocks, kThreads, 0, stream_>>>(numbers, scale, values, out);
        }
        break;
      }
      case Scheme::kZstd:
        return cudaErrorInvalidValue;
    }
    return error != cudaSuccess || scratch_ == nullptr ? error : cudaGetLastError();
  }

  uint64_t scratch_bytes() const { return used_; }

 private:
  bool Starts(uint32_t values) const { return scratch_ != nullptr && values > 0; }

  /// Room for so many values and whole vectors.
  template <class Value>
  Value* Scratch(uint64_t values) {
    const uint64_t at = used_;
    used_ += Aligned(values * sizeof(Value) + 16);
    return scratch_ == nullptr ? nullptr : reinterpret_cast<Value*>(scratch_ + at);
  }

  template <class Value>
  cudaError_t Sum(bool inclusive, const Value* in, Value* out, uint32_t values) {
    size_t bytes = 0;
    const auto run = [&](void* room) {
      return inclusive ? cub::DeviceScan::InclusiveSum(room, bytes, in, out, values, stream_)
                       : cub::DeviceScan::ExclusiveSum(room, bytes, in, out, values, stream_);
    };
    const cudaError_t error = run(nullptr);
    uint8_t* const room = Scratch<uint8_t>(bytes);
    return error != cudaSuccess || !Starts(values) ? error : run(room);
  }

  template <class Value>
  cudaError_t UnpackDelta(const PackedNode& node, uint64_t base, Value* out) {
    // The sums of the differences before each value; the last difference is followed by one that nobody adds.
    Value* const deltas = Scratch<Value>(node.values);
    cudaError_t error = Next(0, deltas);
    if (error == cudaSuccess && Starts(node.values)) {
      error = cudaMemsetAsync(deltas + node.values - 1, 0, sizeof(Value), stream_);
    }
    if (error == cudaSuccess) error = Sum(false, deltas, out, node.values);
    if (error == cudaSuccess && Starts(node.values)) {
      const uint32_t blocks = BlocksOf(node.values, kThreads);
      AddToAll<Value><<<blocks, kThreads, 0, stream_>>>(node.parameter + base, node.values, out);
      error = cudaGetLastError();
    }
    return error;
  }

  template <class Value>
  cudaError_t UnpackRle(const PackedNode& node, uint64_t base, Value* out) {
    const uint32_t count = static_cast<uint32_t>(node.parameter);
    Value* const runs = Scratch<Value>(count);
    uint32_t* const ends = Scratch<uint32_t>(count);
    cudaError_t error = Next(base, runs);
    if (error == cudaSuccess) error = Next(1, ends);
    if (error == cudaSuccess) error = Sum(true, ends, ends, count);
    if (error == cudaSuccess && Starts(count) && found_ != nullptr) {
      CheckRuns<<<BlocksOf(count, kThreads), kThreads, 0, stream_>>>(ends, count, node.values, found_);
      error = cudaGetLastError();
    }
    if (error == cudaSuccess && Starts(node.values)) {
      const uint32_t blocks = BlocksOf(node.values, kRunRows);
      ExpandRuns<Value><<<blocks, kThreads, 0, stream_>>>(runs, ends, count, node.values, out);
      error = cudaGetLastError();
    }
    return error;
  }

  template <class Value>
  cudaError_t UnpackDict(const PackedNode& node, uint64_t base, Value* out) {
    const uint32_t entries = static_cast<uint32_t>(node.parameter), blocks = BlocksOf(node.values, kThreads);
    Value* const dictionary = Scratch<Value>(entries);
    cudaError_t error = Next(base, dictionary);
    if (static_cast<Scheme>(node.scheme) == Scheme::kBitmap) {
      if (error == cudaSuccess && Starts(node.values)) {
        const uint64_t* const bitmaps = reinterpret_cast<const uint64_t*>(packed_ + node.offset);
        FindBits<Value><<<blocks, kThreads, 0, stream_>>>(bitmaps, dictionary, entries, node.values, out, found_);
        error = cudaGetLastError();
      }
      return error;
    }
    uint32_t* const numbers = Scratch<uint32_t>(node.values);
    if (error == cudaSuccess) error = Next(0, numbers);
    if (error == cudaSuccess && Starts(node.values)) {
      LookUp<Value><<<blocks, kThreads, 0, stream_>>>(dictionary, entries, numbers, node.values, out, found_);
      error = cudaGetLastError();
    }
    return error;
  }

  const UnpackPlan& plan_;
  const uint8_t* const packed_;
  uint8_t* const scratch_;  ///< nullptr: count
  FoundCodes* const found_;
  const cudaStream_t stream_;
  size_t next_ = 0;
  uint64_t used_ = 0;
};

cudaError_t Run(const UnpackPlan& plan, Starter* starter, uint8_t* out) {
  switch (plan.width) {
    case 1:
      return starter->Next(0, out);
    case 2:
      return starter->Next(0, reinterpret_cast<uint16_t*>(out));
    case 4:
      return starter->Next(0, reinterpret_cast<uint32_t*>(out));
    default:
      return starter->Next(0, reinterpret_cast<uint64_t*>(out));
  }
}

template <class Value>
void Check(const UnpackPlan& plan, const uint8_t* codes, FoundCodes* found, cudaStream_t stream) {
  const uint32_t blocks = BlocksOf(plan.rows, kThreads * (16 / sizeof(Value)));
  CheckCodes<Value><<<blocks, kThreads, 0, stream>>>(reinterpret_cast<const Value*>(codes), plan.rows, plan.greatest,
                                                     plan.scaled.has_nulls, plan.scaled.null_code, found);
}

}  // namespace

tessera::Result<UnpackPlan> PlanUnpack(const Chunk& chunk) {
  UnpackPlan plan;
  plan.width = chunk.width;
  plan.rows = chunk.rows;
  plan.scaled = {static_cast<uint64_t>(chunk.base), chunk.null_code, chunk.has_nulls, chunk.type.id == TypeId::kReal};
  plan.packed_bytes = chunk.packed_bytes;
  plan.greatest = chunk.GreatestCode();
  plan.nulls = chunk.null_count;
  const char* const reason = ParsePackedStream(chunk.packed_codes, chunk.packed_bytes, chunk.rows, chunk.width,
                                               chunk.type.IsFloat(), &plan.tree);
  if (reason != nullptr) return Status(ErrorCode::kCorrupt, std::string("a chunk that was right has ") + reason);
  Starter count(plan, nullptr, nullptr, nullptr, nullptr);
  CUDA_TRY(Run(plan, &count, nullptr));
  plan.scratch_bytes = std::max<uint64_t>(count.scratch_bytes(), kAlignment);  // 0 would be no memory at all
  return plan;
}

cudaError_t StartUnpack(const UnpackPlan& plan, const uint8_t* packed, uint8_t* out, uint8_t* scratch,
                        FoundCodes* found, cudaStream_t stream) {
  Starter starter(plan, packed, scratch, found, stream);
  return Run(plan, &starter, out);
}

cudaError_t StartCheck(const UnpackPlan& plan, const uint8_t* codes, FoundCodes* found, cudaStream_t stream) {
  switch (plan.width) {
    case 1:
      Check<uint8_t>(plan, codes, found, stream);
      break;
    case 2:
      Check<uint16_t>(plan, codes, found, stream);
      break;
    case 4:
      Check<uint32_t>(plan, codes, found, stream);
      break;
    default:
      Check<uint64_t>(plan, codes, found, stream);
      break;
  }
  return cudaGetLastError();
}

}  // namespace tessera::kernels
