#include <algorithm>
#include <functional>
#include <string>
#include <type_traits>

#include "kernels/memory/cuda_memory.h"
#include "kernels/unpack/unpack.h"
#include "tablet/ordered_float.h"
#include "tablet/schemes/bit_packing.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kThreads = 256;

uint32_t BlocksOf(uint64_t items, uint32_t per_block) {
  return static_cast<uint32_t>((items + per_block - 1) / per_block);
}

/// Consecutive ranges of blocks belong to consecutive steps. Op::Run does the items from Op::kPerBlock * block on.
template <class Op>
__global__ void __launch_bounds__(kThreads) RunSteps(const UnpackStep* steps, uint32_t count) {
  uint32_t low = 0, high = count - 1;
  while (low < high) {
    const uint32_t middle = (low + high + 1) / 2;
    if (steps[middle].first_block <= blockIdx.x) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  Op::Run(steps[low], blockIdx.x - steps[low].first_block);
}

template <class Op>
cudaError_t LaunchSteps(const UnpackStep* steps, uint32_t count, uint32_t blocks, cudaStream_t stream) {
  RunSteps<Op><<<blocks, kThreads, 0, stream>>>(steps, count);
  return cudaGetLastError();
}

__device__ void NoteWrong(FoundCodes* found) {
  if (found != nullptr) atomicOr(&found->wrong, 1u);
}

template <class T>
__device__ const T* In(const UnpackStep& step) {
  return static_cast<const T*>(step.in);
}
template <class T>
__device__ const T* Other(const UnpackStep& step) {
  return static_cast<const T*>(step.other);
}
template <class T>
__device__ T* Out(const UnpackStep& step) {
  return static_cast<T*>(step.out);
}

/// Calls f for each of the items of a block, at most kPerBlock.
constexpr uint32_t kItems = 1024;
template <class F>
__device__ void ForItems(const UnpackStep& step, uint32_t block, F f) {
#pragma unroll
  for (uint32_t k = 0; k < kItems / kThreads; ++k) {
    const uint32_t i = block * kItems + k * kThreads + threadIdx.x;
    if (i < step.values) f(i);
  }
}

/// Values of `count` bits. A thread makes 16 bytes at a time, so that it writes one vector.
template <class Value>
struct UnpackWords {
  static constexpr uint32_t kEach = 16 / sizeof(Value), kVectors = 2, kPerBlock = kThreads * kEach * kVectors;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    const uint64_t* const words = In<uint64_t>(step);
    const uint32_t bits = step.count, values = step.values;
    const uint64_t base = step.base, mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
#pragma unroll
    for (uint32_t k = 0; k < kVectors; ++k) {
      const uint32_t first = ((block * kVectors + k) * kThreads + threadIdx.x) * kEach;
      if (first >= values) return;
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
      *reinterpret_cast<uint4*>(Out<Value>(step) + first) = made.vector;
    }
  }
};

/// Bytes at `in`, `parameter` of them; `count` lengths at `other`, and behind these the sums of those before each.
template <class Value>
struct GatherBytes {
  static constexpr uint32_t kPerBlock = kItems;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    const uint8_t* const bytes = In<uint8_t>(step);
    const uint32_t* const lengths = Other<uint32_t>(step);
    const uint32_t* const starts = lengths + step.count;
    ForItems(step, block, [&](uint32_t i) {
      const uint64_t end = uint64_t{starts[i]} + lengths[i];
      if (end > step.parameter || (i == step.values - 1 && end != step.parameter)) NoteWrong(step.found);
      if (end > step.parameter) return;
      uint32_t value = 0;
      for (uint32_t b = 0; b < lengths[i]; ++b) value |= static_cast<uint32_t>(bytes[starts[i] + b]) << (8 * b);
      Out<Value>(step)[i] = static_cast<Value>(value + step.base);
    });
  }
};

/// Each run ends behind the one before it, and the last one with the last row. (A sum that went round 2^32 is less than
/// the one before.)
struct CheckRuns {
  static constexpr uint32_t kPerBlock = kItems;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    const uint32_t* const ends = In<uint32_t>(step);
    ForItems(step, block, [&](uint32_t i) {
      if (ends[i] <= (i == 0 ? 0 : ends[i - 1]) || (i == step.values - 1 && ends[i] != step.parameter)) {
        NoteWrong(step.found);
      }
    });
  }
};

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

/// Runs at `in`, the ends of `count` runs at `other`. Each block looks for the runs of its rows first, and each thread
/// among these alone: so it takes as long for runs of one row as for runs of a million.
template <class Value>
struct ExpandRuns {
  static constexpr uint32_t kPerBlock = 2048;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    __shared__ uint32_t shared[2];
    const uint32_t* const ends = Other<uint32_t>(step);
    const uint32_t first = block * kPerBlock, end = min(first + kPerBlock, step.values);
    if (threadIdx.x < 2) shared[threadIdx.x] = FindRun(ends, 0, step.count - 1, threadIdx.x == 0 ? first : end - 1);
    __syncthreads();
    const uint32_t low = shared[0], high = shared[1];
    for (uint32_t row = first + threadIdx.x; row < end; row += kThreads)
      Out<Value>(step)[row] = In<Value>(step)[FindRun(ends, low, high, row)];
  }
};

/// Numbers of entries at `in`, the dictionary's `count` entries at `other`.
template <class Value>
struct LookUp {
  static constexpr uint32_t kPerBlock = kItems;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    ForItems(step, block, [&](uint32_t i) {
      const uint32_t number = In<uint32_t>(step)[i];
      if (number < step.count) {
        Out<Value>(step)[i] = Other<Value>(step)[number];
      } else {
        NoteWrong(step.found);
      }
    });
  }
};

/// A bitmap for each of the dictionary's `count` entries at `in`, the entries at `other`.
template <class Value>
struct FindBits {
  static constexpr uint32_t kPerBlock = kItems;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    const uint64_t* const bitmaps = In<uint64_t>(step);
    const uint64_t words = (uint64_t{step.values} + 63) / 64;
    ForItems(step, block, [&](uint32_t i) {
      uint32_t bits = 0;
      for (uint32_t d = 0; d < step.count; ++d) {
        if ((bitmaps[d * words + i / 64] >> (i % 64) & 1) == 0) continue;
        Out<Value>(step)[i] = Other<Value>(step)[d];
        ++bits;
      }
      const bool behind =
          i < step.count && step.values % 64 != 0 && bitmaps[i * words + words - 1] >> (step.values % 64) != 0;
      if (bits != 1 || behind) NoteWrong(step.found);
    });
  }
};

/// Quotients at `out`, which become the values; remainders at `in`, the divisor is `parameter`.
template <class Value>
struct MultiplyAdd {
  static constexpr uint32_t kPerBlock = kItems;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    ForItems(step, block, [&](uint32_t i) {
      Value& value = Out<Value>(step)[i];
      value = static_cast<Value>(uint64_t{value} * step.parameter + In<Value>(step)[i] + step.base);
    });
  }
};

/// Numbers at `in`, less `parameter`, times 10 to the `count`.
template <class Value>
struct ToFloatingPoint {
  static constexpr uint32_t kPerBlock = kItems;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    double power = 1;
    for (uint32_t i = 0; i < step.count; ++i) power *= 10;  // exact up to 10^22
    ForItems(step, block, [&](uint32_t i) {
      const uint64_t scaled = In<uint64_t>(step)[i];
      uint64_t code = step.scaled.null_code;
      if (scaled != step.null) {
        const double number = static_cast<double>(static_cast<int64_t>(scaled + step.parameter)) / power;
        code = (step.scaled.single ? uint64_t{OrderedFloat32(static_cast<float>(number))} : OrderedFloat(number)) -
               step.scaled.base;
      }
      Out<Value>(step)[i] = static_cast<Value>(code);
    });
  }
};

// Sums from the first value to each: of tiles, of the tiles before each, and within each.

constexpr uint32_t kEachSummed = 8, kSummed = kThreads * kEachSummed;

/// Sums of narrow values are made in 32 bits: what goes round does so in fewer bits, too.
template <class Value>
using SumOf = std::conditional_t<sizeof(Value) == 8, uint64_t, uint32_t>;

/// The sum of `mine` of the threads before this one; `*all`: of all threads.
template <class Sum>
__device__ Sum SumBefore(Sum mine, Sum* all) {
  __shared__ Sum warps[kThreads / 32];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Sum through = mine;
  for (uint32_t n = 1; n < 32; n *= 2) {
    const Sum other = __shfl_up_sync(~0u, through, n);
    if (lane >= n) through += other;
  }
  __syncthreads();  // nobody reads what an earlier call left
  if (lane == 31) warps[warp] = through;
  __syncthreads();
  Sum before = through - mine;
  *all = 0;
  for (uint32_t w = 0; w < kThreads / 32; ++w) {
    if (w < warp) before += warps[w];
    *all += warps[w];
  }
  return before;
}

/// The sum of each kSummed of `count` values at `in`.
template <class Value>
struct SumTiles {
  static constexpr uint32_t kPerBlock = 1;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    SumOf<Value> mine = 0, all = 0;
    for (uint32_t k = 0; k < kEachSummed; ++k) {
      const uint32_t i = block * kSummed + k * kThreads + threadIdx.x;
      if (i < step.count) mine += In<Value>(step)[i];
    }
    SumBefore(mine, &all);
    if (threadIdx.x == 0) Out<SumOf<Value>>(step)[block] = all;
  }
};

/// One block: each of `count` sums at `out` becomes that of those before it.
template <class Sum>
struct SumTilesBefore {
  static constexpr uint32_t kPerBlock = 1;

  static __device__ void Run(const UnpackStep& step, uint32_t) {
    Sum before = 0;
    for (uint32_t first = 0; first < step.count; first += kThreads) {
      const uint32_t i = first + threadIdx.x;
      Sum all = 0;
      const Sum mine = i < step.count ? Out<Sum>(step)[i] : 0, inside = SumBefore(mine, &all);
      if (i < step.count) Out<Sum>(step)[i] = before + inside;
      before += all;
    }
  }
};

/// The sum of the values at `in`, which has `count` of them, up to each; with that itself if `parameter` is 1. `other`:
/// the sums of the tiles before; nullptr: there is one tile.
template <class Value>
struct SumUp {
  static constexpr uint32_t kPerBlock = kSummed;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    const uint32_t first = block * kSummed + threadIdx.x * kEachSummed;
    SumOf<Value> values[kEachSummed], mine = 0, all = 0;
#pragma unroll
    for (uint32_t k = 0; k < kEachSummed; ++k) {
      values[k] = first + k < step.count ? In<Value>(step)[first + k] : 0;
      mine += values[k];
    }
    SumOf<Value> sum = SumBefore(mine, &all) + static_cast<SumOf<Value>>(step.base);
    if (step.other != nullptr) sum += Other<SumOf<Value>>(step)[block];
    const bool inclusive = step.parameter != 0;
#pragma unroll
    for (uint32_t k = 0; k < kEachSummed; ++k) {
      const SumOf<Value> before = sum;
      sum += values[k];
      if (first + k < step.values) Out<Value>(step)[first + k] = static_cast<Value>(inclusive ? sum : before);
    }
  }
};

/// Codes at `in`: those that are not NULL are at most `base`. A thread looks at 16 bytes.
template <class Value>
struct CheckCodes {
  static constexpr uint32_t kEach = 16 / sizeof(Value), kPerBlock = kThreads * kEach;

  static __device__ void Run(const UnpackStep& step, uint32_t block) {
    const uint32_t first = (block * kThreads + threadIdx.x) * kEach;
    uint32_t nulls = 0;
    bool wrong = false;
    if (first < step.values) {
      union {
        uint4 vector;
        Value values[kEach];
      } read;
      // (Streams have room for whole vectors.)
      read.vector = *reinterpret_cast<const uint4*>(In<Value>(step) + first);
#pragma unroll
      for (uint32_t i = 0; i < kEach; ++i) {
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
    const uint32_t level = Next(0, reinterpret_cast<Value*>(out));
    if (found_ == nullptr) return;
    UnpackStep step = Step(out, nullptr, nullptr, plan_.rows);
    step.base = plan_.greatest;
    step.scaled = plan_.scaled;
    Add<CheckCodes<Value>>(level, step);
  }

  uint64_t scratch_bytes() const { return used_; }
  /// Whether there is a scheme that the device does not know.
  bool is_strange() const { return is_strange_; }

 private:
  using Level = uint32_t;

  UnpackStep Step(const void* in, const void* other, void* out, uint32_t values) const {
    UnpackStep step = {};
    step.in = in;
    step.other = other;
    step.out = out;
    step.found = found_;
    step.values = values;
    return step;
  }

  /// Behind all steps below `level`. What it makes can be read from the level that is returned on.
  template <class Op>
  Level Add(Level level, const UnpackStep& step) {
    const uint32_t blocks = BlocksOf(step.values, Op::kPerBlock);
    if (batch_ != nullptr && blocks > 0) batch_->entries_.push_back({level, &LaunchSteps<Op>, blocks, step});
    return level + 1;
  }

  /// Room for so many values and whole vectors.
  template <class Value>
  Value* Scratch(uint64_t values) {
    const uint64_t at = used_;
    used_ += AlignedForUnpack(values * sizeof(Value) + 16);
    return scratch_ == nullptr ? nullptr : reinterpret_cast<Value*>(scratch_ + at);
  }

  template <class Value>
  Level Words(const void* words, uint32_t bits, uint64_t base, Value* out, uint32_t values) {
    UnpackStep step = Step(words, nullptr, out, values);
    step.count = bits;
    step.base = base;
    return Add<UnpackWords<Value>>(0, step);
  }

  /// The next node and those below it; `base` is added to each value.
  template <class Value>
  Level Next(uint64_t base, Value* out) {
    const PackedNode& node = plan_.tree[next_++];
    const uint8_t* const payload = packed_ + node.offset;
    switch (static_cast<Scheme>(node.scheme)) {
      case Scheme::kNs:
        return Words(payload, node.bits, base, out, node.values);
      case Scheme::kNsv:
        return Lengths(node, payload, base, out);
      case Scheme::kFor:
        return Next(base + node.parameter, out);
      case Scheme::kDelta: {
        Value* const deltas = Scratch<Value>(node.values);
        const Level level = Next(0, deltas);
        return Sum(level, false, deltas, node.values - std::min(node.values, 1u), base + node.parameter, out,
                   node.values);
      }
      case Scheme::kRle:
        return Runs(node, base, out);
      case Scheme::kDict:
      case Scheme::kBitmap:
        return Dictionary(node, base, out);
      case Scheme::kSep: {
        Value* const remainders = Scratch<Value>(node.values);
        const Level quotients = Next(0, out);
        UnpackStep step = Step(remainders, nullptr, out, node.values);
        step.parameter = node.parameter;
        step.base = base;
        return Add<MultiplyAdd<Value>>(std::max(quotients, Next(0, remainders)), step);
      }
      case Scheme::kScale: {
        uint64_t* const numbers = Scratch<uint64_t>(node.values);
        UnpackStep step = Step(numbers, nullptr, out, node.values);
        step.count = node.bits;
        step.parameter = node.parameter;
        step.null = node.null;
        step.scaled = plan_.scaled;
        return Add<ToFloatingPoint<Value>>(Next(0, numbers), step);
      }
      case Scheme::kZstd:
        is_strange_ = true;
    }
    return 0;
  }

  /// Lengths of 2 bits each, behind them the values.
  template <class Value>
  Level Lengths(const PackedNode& node, const uint8_t* payload, uint64_t base, Value* out) {
    const uint32_t place = (node.values + 4) / 4 * 4;  // room for whole vectors
    uint32_t* const lengths = Scratch<uint32_t>(2 * uint64_t{place});
    uint32_t* const starts = lengths == nullptr ? nullptr : lengths + place;
    const Level level =
        Sum(Words(payload, 2, 1, lengths, node.values), false, lengths, node.values, 0, starts, node.values);
    UnpackStep step = Step(payload + PackedWords(node.values, 2) * 8, lengths, out, node.values);
    step.count = place;
    step.parameter = node.parameter;
    step.base = base;
    return Add<GatherBytes<Value>>(level, step);
  }

  /// `base` and the sum of the values of `in` before each of `values`, or up to it.
  template <class Value>
  Level Sum(Level level, bool inclusive, const Value* in, uint32_t count, uint64_t base, Value* out, uint32_t values) {
    const uint32_t tiles = BlocksOf(values, kSummed);
    SumOf<Value>* const sums = Scratch<SumOf<Value>>(tiles);
    if (tiles > 1) {
      UnpackStep tile = Step(in, nullptr, sums, tiles);
      tile.count = count;
      level = Add<SumTiles<Value>>(level, tile);
      UnpackStep before = Step(nullptr, nullptr, sums, 1);
      before.count = tiles;
      level = Add<SumTilesBefore<SumOf<Value>>>(level, before);
    }
    UnpackStep step = Step(in, tiles > 1 ? sums : nullptr, out, values);
    step.count = count;
    step.base = base;
    step.parameter = inclusive ? 1 : 0;
    return Add<SumUp<Value>>(level, step);
  }

  template <class Value>
  Level Runs(const PackedNode& node, uint64_t base, Value* out) {
    const uint32_t count = static_cast<uint32_t>(node.parameter);
    Value* const runs = Scratch<Value>(count);
    uint32_t* const ends = Scratch<uint32_t>(count);
    const Level made = Next(base, runs);
    const Level summed = Sum(Next(1, ends), true, ends, count, 0, ends, count);
    if (found_ != nullptr) {
      UnpackStep check = Step(ends, nullptr, nullptr, count);
      check.parameter = node.values;
      Add<CheckRuns>(summed, check);
    }
    UnpackStep step = Step(runs, ends, out, count > 0 ? node.values : 0);
    step.count = count;
    return Add<ExpandRuns<Value>>(std::max(made, summed), step);
  }

  template <class Value>
  Level Dictionary(const PackedNode& node, uint64_t base, Value* out) {
    const uint32_t entries = static_cast<uint32_t>(node.parameter);
    Value* const dictionary = Scratch<Value>(entries);
    const Level level = Next(base, dictionary);
    UnpackStep step = Step(packed_ + node.offset, dictionary, out, node.values);
    step.count = entries;
    if (static_cast<Scheme>(node.scheme) == Scheme::kBitmap) return Add<FindBits<Value>>(level, step);
    uint32_t* const numbers = Scratch<uint32_t>(node.values);
    step.in = numbers;
    return Add<LookUp<Value>>(std::max(level, Next(0, numbers)), step);
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
  plan.scaled = {static_cast<uint64_t>(chunk.base), chunk.null_code, chunk.has_nulls, chunk.type.id == TypeId::kReal};
  plan.packed_bytes = chunk.packed_bytes;
  plan.greatest = chunk.GreatestCode();
  plan.nulls = chunk.null_count;
  const char* const reason = ParsePackedStream(chunk.packed_codes, chunk.packed_bytes, chunk.rows, chunk.width,
                                               chunk.type.IsFloat(), &plan.tree);
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
