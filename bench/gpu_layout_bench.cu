// Layouts of a join table side by side: what a probe costs in each, compared with what the memory alone would need, and
// whether it pays to partition both sides first. Plain kernels without the VM over keys and payloads of 4 bytes, made
// on the GPU.
//
//   gpu_layout_bench [--csv file] [millions of build rows, "1 16 64"] [millions of probe rows, 256] [times, 5]
//   gpu_layout_bench --sectors "megabytes ..."     random sectors that the GPU reads a second in regions of these sizes
//
// The build side has unique keys, the probe side a random one of them in each row; the answer is the sum of the
// payload. If half of the rows match, the build side has every other key of a domain twice as large. Keys are dense for
// direct addressing; for all other layouts they are spread over 31 bits. Layouts:
//
//   direct                a payload in each key's slot
//   linear                open addressing at half load, slots of key and payload, as in kernels/join/join_kernels.cu
//   linear, sector first  the same, but all four slots of a 32-byte sector are tried before the next sector
//   buckets               a slot's sector is a bucket, read by two loads of 16 bytes; full ones spill into the next
//   cuckoo, 2 functions   a slot of either half of the table (Pagh and Rodler); keys without a slot go to a stash
//   cuckoo, buckets       one of two buckets, at a load of 0.95
//   cuckoo, thesis        Hristov (Performance evaluation of query processing algorithms on GPGPUs, 4.5), after
//                         Alcantara and others: buckets of 3 tables of 192 slots, each with a seed, built in shared
//                         memory
//   radix 2^P             both sides ordered by P bits of the key (CUB's radix sort), then linear probing within the
//                         partition's slots; "with rows": the probe side's row numbers move with the keys
//   radix 2^P, shared     ... and a partition's table is in shared memory; building is part of the probe's time
//
// A line has: megabytes of the table; milliseconds to build it, to partition both sides, to probe, and of these
// together; billions of probes a second, by the probe's time and by the total; sectors a probe reads, in bytes;
// billions of random sectors that the GPU reads a second in a region of that size (of one partition, if there are
// partitions), and the fraction of it that the probes reach. Times are medians. Every sum is checked before it is
// timed; the exit status is 1 if one is wrong.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cub/device/device_radix_sort.cuh>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench/gpu_layouts.cuh"
#include "kernels/cuda/cuda_memory.h"
#include "kernels/launch/launch.h"

namespace tessera {
namespace {

using kernels::DeviceBuffer;

constexpr uint32_t kBlock = 256;
constexpr uint32_t kTileKeys = 2048;  ///< the number of probes is a multiple of it

__host__ __device__ uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// A permutation of the numbers of kKeyBits bits. Not a multiplication alone: JoinSlot32 is one, and would undo it.
__device__ uint32_t SparseKey(uint32_t dense) {
  constexpr uint32_t mask = (1u << kKeyBits) - 1;
  uint32_t x = dense;
  x ^= x >> 16;
  x = x * 0x7FEB352Du & mask;
  x ^= x >> 15;
  x = x * 0x846CA68Bu & mask;
  return x ^ x >> 16;
}

/// From 1 on: 0 is a free slot.
__device__ uint32_t PayloadOf(uint32_t dense) { return 1 + (static_cast<uint32_t>(Mix(~uint64_t{dense})) >> 8); }

/// The dense key of a row of the probe side, one of `domain` keys.
__device__ uint32_t ForeignKey(uint64_t row, uint64_t domain) {
  return static_cast<uint32_t>((Mix(row) >> 32) * domain >> 32);
}

// ---- Data

/// `step`: 1 if every key of the domain is in the build side, 2 for every other one. The rows are in no order: row i
/// has the i-th key of a walk through the domain by a large prime.
__global__ void MakeBuildSide(uint32_t rows, uint32_t step, uint32_t* dense, uint32_t* sparse, uint32_t* payload) {
  for (uint64_t i = blockIdx.x * kBlock + threadIdx.x; i < rows; i += uint64_t{gridDim.x} * kBlock) {
    const uint32_t key = static_cast<uint32_t>(i * 2147483647u % rows) * step;
    dense[i] = key;
    sparse[i] = SparseKey(key);
    payload[i] = PayloadOf(key);
  }
}

/// `sum`: of the payloads of all rows that match, without any table.
__global__ void MakeProbeSide(uint64_t rows, uint64_t domain, uint32_t step, uint32_t* dense, uint32_t* sparse,
                              unsigned long long* sum) {
  unsigned long long mine = 0;
  for (uint64_t i = blockIdx.x * kBlock + threadIdx.x; i < rows; i += uint64_t{gridDim.x} * kBlock) {
    const uint32_t key = ForeignKey(i, domain);
    dense[i] = key;
    sparse[i] = SparseKey(key);
    if (key % step == 0) mine += PayloadOf(key);
  }
  atomicAdd(sum, mine);
}

__global__ void MakeRowNumbers(uint32_t rows, uint32_t* out) {
  for (uint32_t i = blockIdx.x * kBlock + threadIdx.x; i < rows; i += gridDim.x * kBlock) out[i] = i;
}

// ---- Kernels

template <class Layout>
__global__ void __launch_bounds__(kBlock)
    Build(Layout layout, const uint32_t* keys, const uint32_t* payload, uint64_t rows) {
  for (uint64_t i = blockIdx.x * kBlock + threadIdx.x; i < rows; i += uint64_t{gridDim.x} * kBlock)
    layout.Insert(keys[i], payload[i]);
}

struct Totals {
  unsigned long long sum;
  unsigned long long sectors;
};

/// Once a warp.
__device__ __forceinline__ void AddUp(unsigned long long sum, unsigned long long* total) {
  for (uint32_t d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(~0u, sum, d);
  if ((threadIdx.x & 31) == 0) atomicAdd(total, sum);
}

/// Each thread probes kTogether keys at a time, so that their loads overlap; each step is taken for all keys that are
/// not settled yet. A block takes `run` adjacent tiles at a time, in the order of the blocks' numbers: if the probe
/// side is ordered by partitions, all running blocks are in the same one or two partitions.
template <class Layout, bool kCount>
__global__ void __launch_bounds__(kBlock)
    Probe(Layout layout, const uint4* keys, uint64_t rows, uint32_t run, Totals* totals) {
  constexpr uint32_t kTogether = Layout::kTogether, kVectors = kTogether / 4;
  static_assert(kTileKeys % (kBlock * kTogether) == 0);
  unsigned long long sum = 0, sectors = 0;
  const uint64_t tiles = rows / (kBlock * kTogether), step = uint64_t{gridDim.x} * run;
  for (uint64_t tile = uint64_t{blockIdx.x} * run; tile < tiles; tile += (tile + 1) % run == 0 ? step - run + 1 : 1) {
    uint32_t key[kTogether];
#pragma unroll
    for (uint32_t v = 0; v < kVectors; ++v) {
      const uint4 four = __ldcs(keys + (tile * kVectors + v) * kBlock + threadIdx.x);
      key[v * 4] = four.x;
      key[v * 4 + 1] = four.y;
      key[v * 4 + 2] = four.z;
      key[v * 4 + 3] = four.w;
    }
    uint32_t wanted = (1u << kTogether) - 1;
#pragma unroll 1
    for (uint32_t step = 0; wanted != 0; ++step) {
      typename Layout::Piece piece[kTogether];
#pragma unroll
      for (uint32_t e = 0; e < kTogether; ++e) {
        if ((wanted >> e & 1) != 0) piece[e] = layout.Load(key[e], step);
      }
#pragma unroll
      for (uint32_t e = 0; e < kTogether; ++e) {
        if ((wanted >> e & 1) == 0) continue;
        if constexpr (kCount) sectors += layout.Sectors(key[e], step);
        uint32_t payload;
        if (!layout.Settles(key[e], step, piece[e], &payload)) continue;
        sum += payload;
        wanted &= ~(1u << e);
      }
    }
  }
  AddUp(sum, &totals->sum);
  if constexpr (kCount) AddUp(sectors, &totals->sectors);
}

/// Writes keys and payloads into their buckets, which hold kMostKeys each. `counts` also counts the keys that a full
/// bucket has no room for.
__global__ void __launch_bounds__(kBlock)
    ScatterToBuckets(ThesisCuckoo table, const uint32_t* keys, const uint32_t* payload, uint64_t rows, uint32_t* counts,
                     unsigned long long* places) {
  for (uint64_t i = blockIdx.x * kBlock + threadIdx.x; i < rows; i += uint64_t{gridDim.x} * kBlock) {
    const uint32_t bucket = table.BucketOf(keys[i]);
    const uint32_t at = atomicAdd(counts + bucket, 1u);
    if (at < ThesisCuckoo::kMostKeys)
      places[uint64_t{bucket} * ThesisCuckoo::kMostKeys + at] = SlotOf(keys[i], payload[i]);
  }
}

/// One block for each bucket, one thread for each key. All write at once, and a thread that does not find its key in
/// the slot any more goes on to the next table. A bucket that is not settled in kTries rounds starts again with another
/// seed. `failed`: buckets with too many keys.
__global__ void __launch_bounds__(ThesisCuckoo::kMostKeys)
    BuildBuckets(ThesisCuckoo table, const uint32_t* counts, const unsigned long long* places, uint32_t* failed) {
  __shared__ uint32_t keys[ThesisCuckoo::kSlots];
  const uint32_t bucket = blockIdx.x;
  const bool has_key = threadIdx.x < counts[bucket];
  if (counts[bucket] > ThesisCuckoo::kMostKeys) {
    if (threadIdx.x == 0) atomicAdd(failed, 1u);
    return;
  }
  const unsigned long long item = has_key ? places[uint64_t{bucket} * ThesisCuckoo::kMostKeys + threadIdx.x] : 0;
  const uint32_t key = static_cast<uint32_t>(item);
  uint32_t at = 0;
  for (uint32_t seed = 0;; ++seed) {
    for (uint32_t i = threadIdx.x; i < ThesisCuckoo::kSlots; i += blockDim.x) keys[i] = ~0u;
    __syncthreads();
    uint32_t next_table = 0;
    bool settled = !has_key;
    for (uint32_t i = 0; i < ThesisCuckoo::kTries; ++i) {
      if (!settled) {
        at = ThesisCuckoo::At(key, seed, next_table);
        next_table = (next_table + 1) % ThesisCuckoo::kTables;
        atomicExch(keys + at, key);
      }
      __syncthreads();
      settled = !has_key || keys[at] == key;
      if (__syncthreads_and(settled)) {
        if (has_key) table.slots[uint64_t{bucket} * ThesisCuckoo::kSlots + at] = item;
        if (threadIdx.x == 0) table.seeds[bucket] = seed;
        return;
      }
    }
  }
}

/// The first row, of rows ordered by the upper bits, whose partition is not less than `part`.
__device__ uint64_t FirstOfPart(const uint32_t* keys, uint64_t rows, uint32_t part, uint32_t part_bits) {
  uint64_t low = 0, high = rows;
  while (low < high) {
    const uint64_t middle = (low + high) / 2;
    if (keys[middle] >> (kKeyBits - part_bits) < part) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

constexpr uint32_t kSharedSlotBits = 13;  ///< 64 KB, three blocks a multiprocessor
constexpr uint32_t kSharedBlock = 512;

/// Builds and probes a partition's table in shared memory. `failed`: partitions with too many keys.
__global__ void __launch_bounds__(kSharedBlock)
    JoinPartitions(uint32_t part_bits, const uint32_t* build_keys, const uint32_t* payload, uint64_t build_rows,
                   const uint32_t* probe_keys, uint64_t probe_rows, Totals* totals, uint32_t* failed) {
  extern __shared__ unsigned long long slots[];
  __shared__ uint64_t edge[4];
  constexpr uint32_t kSlots = 1u << kSharedSlotBits;
  const LinearOrder order{kSharedSlotBits};
  unsigned long long sum = 0;
  for (uint32_t part = blockIdx.x; part < 1u << part_bits; part += gridDim.x) {
    if (threadIdx.x < 4) {
      const bool of_build = threadIdx.x < 2;
      edge[threadIdx.x] = FirstOfPart(of_build ? build_keys : probe_keys, of_build ? build_rows : probe_rows,
                                      part + (threadIdx.x & 1), part_bits);
    }
    for (uint32_t i = threadIdx.x; i < kSlots; i += kSharedBlock) slots[i] = 0;
    __syncthreads();
    if (edge[1] - edge[0] >= kSlots) {
      if (threadIdx.x == 0) atomicAdd(failed, 1u);
      return;
    }
    const Linear table{slots, order};
    for (uint64_t i = edge[0] + threadIdx.x; i < edge[1]; i += kSharedBlock) table.Insert(build_keys[i], payload[i]);
    __syncthreads();
    constexpr uint32_t kTogether = 4;
    for (uint64_t i = edge[2] + threadIdx.x; i < edge[3]; i += kTogether * kSharedBlock) {
      uint32_t key[kTogether];
#pragma unroll
      for (uint32_t e = 0; e < kTogether; ++e) {
        const uint64_t row = i + e * kSharedBlock;
        key[e] = row < edge[3] ? __ldcs(probe_keys + row) : ~0u;
      }
#pragma unroll
      for (uint32_t e = 0; e < kTogether; ++e) {
        if (key[e] == ~0u) continue;
        uint32_t found;
        for (uint32_t step = 0;; ++step) {
          const unsigned long long slot = slots[order.At(key[e], step)];
          if (SlotSettles({static_cast<uint32_t>(slot), static_cast<uint32_t>(slot >> 32)}, key[e], &found)) break;
        }
        sum += found;
      }
    }
    __syncthreads();
  }
  AddUp(sum, &totals->sum);
}

/// Reads 4 bytes from random sectors; each thread has eight loads under way at once.
__global__ void __launch_bounds__(kBlock)
    ReadSectors(const uint32_t* region, uint64_t sectors, uint64_t reads, Totals* totals) {
  constexpr uint32_t kTogether = 8;
  unsigned long long sum = 0;
  for (uint64_t i = blockIdx.x * kBlock + threadIdx.x; i < reads / kTogether; i += uint64_t{gridDim.x} * kBlock) {
    uint32_t word[kTogether];
#pragma unroll
    for (uint32_t e = 0; e < kTogether; ++e) {
      const uint64_t sector = (Mix(i * kTogether + e) >> 32) * sectors >> 32;
      word[e] = __ldg(region + sector * (kSectorBytes / 4));
    }
#pragma unroll
    for (uint32_t e = 0; e < kTogether; ++e) sum += word[e];
  }
  AddUp(sum, &totals->sum);
}

// ---- Host

struct Measured {
  std::string layout;
  double table_bytes = 0;
  double build = 0, partition = 0, probe = 0;  ///< milliseconds; build is 0 where it is part of the probe
  double sectors = 0;                          ///< of a probe; 0 if they are in shared memory
  double region_bytes = 0;                     ///< the region from which sectors are read at a time
  bool right = true;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// log2 of the number of slots for a load of at most 1/2.
uint32_t HalfLoadBits(uint64_t rows) { return static_cast<uint32_t>(std::bit_width(2 * rows - 1)); }

// What is measured with is of 32 bits a row.
struct BuildSide {
  DeviceBuffer dense, sparse, payload;  ///< keys in two forms
  DeviceBuffer parts, payload_parts;    ///< sparse keys and payloads in the order of their parts
};
struct ProbeSide {
  DeviceBuffer dense, sparse;
  DeviceBuffer parts, row_numbers, row_parts;
};

class Bench {
 public:
  Bench(uint64_t probe_rows, int times) : probe_rows_(probe_rows), times_(times) {}

  Status Open() {
    cudaDeviceProp properties;
    CUDA_TRY(cudaGetDeviceProperties(&properties, 0));
    multiprocessors_ = static_cast<uint32_t>(properties.multiProcessorCount);
    CUDA_TRY(cudaEventCreate(&begin_));
    CUDA_TRY(cudaEventCreate(&end_));
    for (DeviceBuffer* keys : {&probe_.dense, &probe_.sparse, &probe_.parts})
      TESSERA_TRY(keys->Reserve(probe_rows_ * 4));
    TESSERA_TRY(totals_.Reserve(sizeof(Totals)));
    TESSERA_TRY(count_.Reserve(sizeof(uint32_t)));
    device_ = properties.name;
    return Status::Ok();
  }

  Result<std::vector<Measured>> Run(uint64_t build_rows, bool half) {
    rows_ = build_rows;
    TESSERA_TRY(MakeData(half));
    results_.clear();
    TESSERA_TRY(MeasureDirect(half));
    const uint32_t bits = HalfLoadBits(rows_);
    TESSERA_TRY(MeasureLinear("linear", {bits}));
    TESSERA_TRY(MeasureLinear("linear, sector first", {bits, 0, true}));
    TESSERA_TRY(MeasureBuckets(bits));
    TESSERA_TRY(MeasureCuckoo(bits));
    TESSERA_TRY(MeasureCuckooBuckets(bits));
    TESSERA_TRY(MeasureThesis());
    for (uint32_t part_bits : {4, 6, 8}) TESSERA_TRY(MeasureParts(bits, part_bits, false));
    TESSERA_TRY(MeasureParts(bits, 6, true));
    if (bits > kSharedSlotBits) TESSERA_TRY(MeasureSharedParts(bits - kSharedSlotBits));
    return std::move(results_);
  }

  const std::string& device() const { return device_; }

  /// Random sectors of a region that the GPU reads in a second.
  Result<double> SectorsPerSecond(double region_bytes) {
    const uint64_t sectors = std::max<uint64_t>(1, static_cast<uint64_t>(region_bytes) / kSectorBytes);
    const auto [known, is_new] = bounds_.try_emplace(sectors);
    if (!is_new) return known->second;
    TESSERA_TRY(table_.Reserve(sectors * kSectorBytes));
    TESSERA_ASSIGN(const double ms, Time([&] {
                     return Launch(ReadSectors, probe_rows_, table_.As<uint32_t>(), sectors, probe_rows_,
                                   totals_.As<Totals>());
                   }));
    return known->second = static_cast<double>(probe_rows_) / ms * 1e3;
  }

 private:
  /// As many blocks as are on the device at once.
  template <class... P, class... A>
  cudaError_t Launch(void (*kernel)(P...), uint64_t items, A... arguments) {
    int blocks = 0;
    if (cudaError_t e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, kBlock, 0); e != cudaSuccess)
      return e;
    const uint64_t grid = std::clamp<uint64_t>((items + kBlock - 1) / kBlock, 1,
                                               uint64_t{multiprocessors_} * static_cast<uint32_t>(blocks));
    kernel<<<static_cast<uint32_t>(grid), kBlock>>>(arguments...);
    return cudaGetLastError();
  }

  /// The median of `times_` runs, after one that is not counted.
  template <class F>
  Result<double> Time(F run) {
    std::vector<double> times;
    for (int i = 0; i <= times_; ++i) {
      CUDA_TRY(cudaEventRecord(begin_));
      CUDA_TRY(run());
      CUDA_TRY(cudaEventRecord(end_));
      CUDA_TRY(cudaEventSynchronize(end_));
      float ms = 0;
      CUDA_TRY(cudaEventElapsedTime(&ms, begin_, end_));
      if (i > 0) times.push_back(ms);
    }
    return Median(times);
  }

  Status MakeData(bool half) {
    for (DeviceBuffer* b : {&build_.dense, &build_.sparse, &build_.payload, &build_.parts, &build_.payload_parts})
      TESSERA_TRY(b->Reserve(rows_ * 4));
    const uint32_t step = half ? 2 : 1;
    CUDA_TRY(cudaMemset(totals_.As<void>(), 0, sizeof(Totals)));
    CUDA_TRY(Launch(MakeBuildSide, rows_, static_cast<uint32_t>(rows_), step, build_.dense.As<uint32_t>(),
                    build_.sparse.As<uint32_t>(), build_.payload.As<uint32_t>()));
    CUDA_TRY(Launch(MakeProbeSide, probe_rows_, probe_rows_, rows_ * step, step, probe_.dense.As<uint32_t>(),
                    probe_.sparse.As<uint32_t>(), &totals_.As<Totals>()->sum));
    TESSERA_ASSIGN(const Totals totals, ReadTotals());
    want_ = totals.sum;
    return Status::Ok();
  }

  Result<Totals> ReadTotals() {
    Totals totals;
    CUDA_TRY(cudaMemcpy(&totals, totals_.As<void>(), sizeof totals, cudaMemcpyDeviceToHost));
    return totals;
  }

  /// Checks the sum, then takes times. `clear`: clearing the table, of `bytes`, is part of building it.
  template <class Layout>
  Status Measure(Measured m, const Layout& layout, size_t bytes, const uint32_t* build, const uint32_t* payload,
                 const uint32_t* probe) {
    TESSERA_ASSIGN(m.build, Time([&] {
                     cudaMemsetAsync(table_.As<void>(), 0, bytes);
                     return Launch(Build<Layout>, rows_, layout, build, payload, rows_);
                   }));
    return MeasureProbe(std::move(m), layout, bytes, probe);
  }

  template <class Layout>
  Status MeasureProbe(Measured m, const Layout& layout, size_t bytes, const uint32_t* probe) {
    const uint4* keys = reinterpret_cast<const uint4*>(probe);
    CUDA_TRY(cudaMemset(totals_.As<void>(), 0, sizeof(Totals)));
    CUDA_TRY(Launch(Probe<Layout, true>, probe_rows_ / Layout::kTogether, layout, keys, probe_rows_, 1u,
                    totals_.As<Totals>()));
    TESSERA_ASSIGN(const Totals totals, ReadTotals());
    m.right = totals.sum == want_;
    m.sectors = static_cast<double>(totals.sectors) / static_cast<double>(probe_rows_);
    m.table_bytes = static_cast<double>(bytes);
    if (m.region_bytes == 0) m.region_bytes = m.table_bytes;
    // Blocks that run together drift apart; to take partitions one after the other, a block has few tiles, and the next
    // block starts when it ends.
    constexpr uint32_t kRun = 8;
    const uint32_t runs = static_cast<uint32_t>(probe_rows_ / (kBlock * Layout::kTogether * kRun)) + 1;
    TESSERA_ASSIGN(m.probe, Time([&] {
                     if (m.partition > 0) {
                       Probe<Layout, false><<<runs, kBlock>>>(layout, keys, probe_rows_, kRun, totals_.As<Totals>());
                       return cudaGetLastError();
                     }
                     return Launch(Probe<Layout, false>, probe_rows_ / Layout::kTogether, layout, keys, probe_rows_, 1u,
                                   totals_.As<Totals>());
                   }));
    results_.push_back(std::move(m));
    return Status::Ok();
  }

  Status MeasureDirect(bool half) {
    const size_t bytes = rows_ * (half ? 2 : 1) * 4;
    TESSERA_TRY(table_.Reserve(bytes));
    return Measure({.layout = "direct"}, Direct{table_.As<uint32_t>()}, bytes, build_.dense.As<uint32_t>(),
                   build_.payload.As<uint32_t>(), probe_.dense.As<uint32_t>());
  }

  Status MeasureLinear(const char* name, LinearOrder order) {
    const size_t bytes = size_t{8} << order.slot_bits;
    TESSERA_TRY(table_.Reserve(bytes));
    return Measure({.layout = name}, Linear{table_.As<unsigned long long>(), order}, bytes,
                   build_.sparse.As<uint32_t>(), build_.payload.As<uint32_t>(), probe_.sparse.As<uint32_t>());
  }

  Status MeasureBuckets(uint32_t bits) {
    const size_t bytes = size_t{8} << bits;
    TESSERA_TRY(table_.Reserve(bytes));
    return Measure({.layout = "buckets"}, Buckets{table_.As<unsigned long long>(), bits - 2}, bytes,
                   build_.sparse.As<uint32_t>(), build_.payload.As<uint32_t>(), probe_.sparse.As<uint32_t>());
  }

  /// Looks for hash functions that leave few keys without a slot, then measures with them.
  template <class Layout>
  Status MeasureEvicting(std::string name, Layout layout, size_t bytes) {
    TESSERA_TRY(stash_.Reserve(sizeof(Stash)));
    TESSERA_TRY(table_.Reserve(bytes));
    layout.slots = table_.As<unsigned long long>();
    layout.stash = stash_.As<Stash>();
    uint32_t left_over = 0;
    for (layout.seed = 1; layout.seed < 10; ++layout.seed) {
      CUDA_TRY(cudaMemset(table_.As<void>(), 0, bytes));
      CUDA_TRY(cudaMemset(layout.stash, 0, sizeof(Stash)));
      CUDA_TRY(
          Launch(Build<Layout>, rows_, layout, build_.sparse.As<uint32_t>(), build_.payload.As<uint32_t>(), rows_));
      CUDA_TRY(cudaMemcpy(&left_over, &layout.stash->count, sizeof left_over, cudaMemcpyDeviceToHost));
      if (left_over <= Stash::kItems) break;
    }
    if (left_over > Stash::kItems)
      return Status(ErrorCode::kInternal, name + ": " + std::to_string(left_over) + " keys found no place");
    if (layout.seed > 1) name += ", built " + std::to_string(layout.seed) + " times";
    if (left_over > 0) name += ", " + std::to_string(left_over) + " in stash";
    Measured m{.layout = std::move(name)};
    TESSERA_ASSIGN(m.build, Time([&] {
                     cudaMemsetAsync(table_.As<void>(), 0, bytes);
                     cudaMemsetAsync(layout.stash, 0, sizeof(Stash));
                     return Launch(Build<Layout>, rows_, layout, build_.sparse.As<uint32_t>(),
                                   build_.payload.As<uint32_t>(), rows_);
                   }));
    return MeasureProbe(std::move(m), layout, bytes, probe_.sparse.As<uint32_t>());
  }

  Status MeasureCuckoo(uint32_t bits) {
    return MeasureEvicting("cuckoo, 2 functions",
                           Cuckoo{.slots = nullptr, .stash = nullptr, .slot_bits = bits, .seed = 0}, size_t{8} << bits);
  }

  /// Half as many slots as the others: with rows just below a power of two nearly all are taken.
  Status MeasureCuckooBuckets(uint32_t bits) {
    return MeasureEvicting("cuckoo, buckets",
                           CuckooBuckets{.slots = nullptr, .stash = nullptr, .bucket_bits = bits - 3, .seed = 0},
                           size_t{8} << (bits - 1));
  }

  Status MeasureThesis() {
    ThesisCuckoo table{};
    table.buckets = static_cast<uint32_t>(rows_ / ThesisCuckoo::kUsualKeys + 1);
    const size_t bytes = size_t{table.buckets} * ThesisCuckoo::kSlots * 8;
    TESSERA_TRY(table_.Reserve(bytes));
    TESSERA_TRY(places_.Reserve(size_t{table.buckets} * ThesisCuckoo::kMostKeys * 8));
    TESSERA_TRY(seeds_.Reserve(size_t{table.buckets} * 8));
    table.slots = table_.As<unsigned long long>();
    table.seeds = seeds_.As<uint32_t>();
    uint32_t* counts = table.seeds + table.buckets;
    auto build = [&] {
      cudaMemsetAsync(table.slots, 0, bytes);
      cudaMemsetAsync(counts, 0, size_t{table.buckets} * 4);
      cudaMemsetAsync(count_.As<void>(), 0, sizeof(uint32_t));
      if (cudaError_t e = Launch(ScatterToBuckets, rows_, table, build_.sparse.As<uint32_t>(),
                                 build_.payload.As<uint32_t>(), rows_, counts, places_.As<unsigned long long>());
          e != cudaSuccess)
        return e;
      BuildBuckets<<<table.buckets, ThesisCuckoo::kMostKeys>>>(table, counts, places_.As<unsigned long long>(),
                                                               count_.As<uint32_t>());
      return cudaGetLastError();
    };
    uint32_t failed = 0;
    for (table.seed = 1; table.seed < 10; ++table.seed) {
      CUDA_TRY(build());
      CUDA_TRY(cudaMemcpy(&failed, count_.As<void>(), sizeof failed, cudaMemcpyDeviceToHost));
      if (failed == 0) break;
    }
    if (failed > 0)
      return Status(ErrorCode::kInternal, "cuckoo, thesis: buckets with more than 512 keys in every build");
    Measured m{.layout = "cuckoo, thesis" + (table.seed > 1 ? ", built " + std::to_string(table.seed) + " times" : "")};
    TESSERA_ASSIGN(m.build, Time(build));
    return MeasureProbe(std::move(m), table, bytes, probe_.sparse.As<uint32_t>());
  }

  /// Orders both sides by the upper `part_bits` bits of the keys. (The keys here are as good as random. Others would be
  /// hashed first, which is one more multiplication.) Returns the milliseconds of both.
  Result<double> Partition(uint32_t part_bits, bool with_rows) {
    const int begin_bit = kKeyBits - static_cast<int>(part_bits);
    const int build_rows = static_cast<int>(rows_), probe_rows = static_cast<int>(probe_rows_);
    auto build_side = [&](void* scratch, size_t* bytes) {
      return cub::DeviceRadixSort::SortPairs(scratch, *bytes, build_.sparse.As<uint32_t>(), build_.parts.As<uint32_t>(),
                                             build_.payload.As<uint32_t>(), build_.payload_parts.As<uint32_t>(),
                                             build_rows, begin_bit, kKeyBits);
    };
    auto probe_side = [&](void* scratch, size_t* bytes) {
      if (with_rows) {
        return cub::DeviceRadixSort::SortPairs(scratch, *bytes, probe_.sparse.As<uint32_t>(),
                                               probe_.parts.As<uint32_t>(), probe_.row_numbers.As<uint32_t>(),
                                               probe_.row_parts.As<uint32_t>(), probe_rows, begin_bit, kKeyBits);
      }
      return cub::DeviceRadixSort::SortKeys(scratch, *bytes, probe_.sparse.As<uint32_t>(), probe_.parts.As<uint32_t>(),
                                            probe_rows, begin_bit, kKeyBits);
    };
    if (with_rows) {
      for (DeviceBuffer* b : {&probe_.row_numbers, &probe_.row_parts}) TESSERA_TRY(b->Reserve(probe_rows_ * 4));
      CUDA_TRY(
          Launch(MakeRowNumbers, probe_rows_, static_cast<uint32_t>(probe_rows_), probe_.row_numbers.As<uint32_t>()));
    }
    size_t build_bytes = 0, probe_bytes = 0;
    CUDA_TRY(build_side(nullptr, &build_bytes));
    CUDA_TRY(probe_side(nullptr, &probe_bytes));
    TESSERA_TRY(scratch_.Reserve(std::max(build_bytes, probe_bytes)));
    return Time([&] {
      const cudaError_t e = build_side(scratch_.As<void>(), &build_bytes);
      return e != cudaSuccess ? e : probe_side(scratch_.As<void>(), &probe_bytes);
    });
  }

  Status MeasureParts(uint32_t bits, uint32_t part_bits, bool with_rows) {
    if (part_bits + 2 > bits) return Status::Ok();
    const size_t bytes = size_t{8} << bits;
    TESSERA_TRY(table_.Reserve(bytes));
    Measured m{.layout = "radix 2^" + std::to_string(part_bits) + (with_rows ? ", with rows" : "")};
    m.region_bytes = static_cast<double>(bytes >> part_bits);
    TESSERA_ASSIGN(m.partition, Partition(part_bits, with_rows));
    return Measure(std::move(m), Linear{table_.As<unsigned long long>(), {bits, part_bits}}, bytes,
                   build_.parts.As<uint32_t>(), build_.payload_parts.As<uint32_t>(), probe_.parts.As<uint32_t>());
  }

  Status MeasureSharedParts(uint32_t part_bits) {
    Measured m{.layout = "radix 2^" + std::to_string(part_bits) + ", shared"};
    constexpr size_t kShared = size_t{8} << kSharedSlotBits;
    m.table_bytes = static_cast<double>(kShared << part_bits);
    TESSERA_ASSIGN(m.partition, Partition(part_bits, false));
    CUDA_TRY(
        cudaFuncSetAttribute(JoinPartitions, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kShared)));
    int blocks = 0;
    CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, JoinPartitions, kSharedBlock, kShared));
    const uint32_t grid = std::min(1u << part_bits, multiprocessors_ * static_cast<uint32_t>(blocks));
    auto join = [&] {
      JoinPartitions<<<grid, kSharedBlock, kShared>>>(
          part_bits, build_.parts.As<uint32_t>(), build_.payload_parts.As<uint32_t>(), rows_,
          probe_.parts.As<uint32_t>(), probe_rows_, totals_.As<Totals>(), count_.As<uint32_t>());
      return cudaGetLastError();
    };
    CUDA_TRY(cudaMemset(totals_.As<void>(), 0, sizeof(Totals)));
    CUDA_TRY(cudaMemset(count_.As<void>(), 0, sizeof(uint32_t)));
    CUDA_TRY(join());
    TESSERA_ASSIGN(const Totals totals, ReadTotals());
    uint32_t failed = 0;
    CUDA_TRY(cudaMemcpy(&failed, count_.As<void>(), sizeof failed, cudaMemcpyDeviceToHost));
    m.right = totals.sum == want_ && failed == 0;
    TESSERA_ASSIGN(m.probe, Time(join));
    results_.push_back(std::move(m));
    return Status::Ok();
  }

  const uint64_t probe_rows_;
  const int times_;
  uint64_t rows_ = 0;  ///< of the build side
  unsigned long long want_ = 0;
  std::string device_;
  uint32_t multiprocessors_ = 0;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  BuildSide build_;
  ProbeSide probe_;
  DeviceBuffer table_, stash_, places_, seeds_, scratch_, totals_, count_;
  std::map<uint64_t, double> bounds_;
  std::vector<Measured> results_;
};

int Fail(const Status& status) {
  fprintf(stderr, "%s\n%s\n", status.message().c_str(), status.hint().c_str());
  return 2;
}

/// Prints one number for each region, for scripts.
int MeasureSectors(const std::string& megabytes) {
  Bench bench(uint64_t{256} << 20, 5);
  if (Status s = bench.Open(); !s.ok()) return Fail(s);
  std::istringstream regions(megabytes);
  for (double region; regions >> region;) {
    auto sectors = bench.SectorsPerSecond(region * 1e6);
    if (!sectors.ok()) return Fail(sectors.status());
    printf("%.4g\n", *sectors);
  }
  return 0;
}

int Usage() {
  fprintf(stderr,
          "usage: gpu_layout_bench [--csv file] [millions of build rows, \"1 16 64\"] [millions of probe rows, 256] "
          "[times, 5]\n       gpu_layout_bench --sectors \"megabytes ...\"\n");
  return 2;
}

int Main(std::vector<std::string> arguments) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    printf("no GPU on this machine\n");
    return 0;
  }
  if (arguments.size() == 2 && arguments[0] == "--sectors") return MeasureSectors(arguments[1]);
  FILE* csv = nullptr;
  if (arguments.size() >= 2 && arguments[0] == "--csv") {
    csv = fopen(arguments[1].c_str(), "w");
    if (csv == nullptr) return Fail(Status(ErrorCode::kIo, "cannot write '" + arguments[1] + "'"));
    arguments.erase(arguments.begin(), arguments.begin() + 2);
  }
  arguments.resize(std::max<size_t>(arguments.size(), 3));
  std::istringstream sizes(arguments[0].empty() ? "1 16 64" : arguments[0]);
  std::vector<uint64_t> build_rows;
  for (double millions; sizes >> millions;) build_rows.push_back(static_cast<uint64_t>(std::llround(millions * 1e6)));
  const double probe_millions = arguments[1].empty() ? 256 : std::atof(arguments[1].c_str());
  const int times = arguments[2].empty() ? 5 : std::atoi(arguments[2].c_str());
  const bool sizes_fit =
      std::all_of(build_rows.begin(), build_rows.end(), [](uint64_t n) { return n >= 1000 && n <= 500'000'000; });
  if (build_rows.empty() || !sizes_fit || !(probe_millions >= 0.01 && probe_millions <= 2000) || times < 1)
    return Usage();
  const uint64_t probe_rows = static_cast<uint64_t>(std::llround(probe_millions * 1e6)) / kTileKeys * kTileKeys;
  Bench bench(probe_rows, times);
  if (Status s = bench.Open(); !s.ok()) return Fail(s);
  printf("%s, %g M rows probe\n", bench.device().c_str(), static_cast<double>(probe_rows) / 1e6);
  if (csv != nullptr) {
    fprintf(csv,
            "build_rows,probe_rows,match,layout,table_bytes,build_ms,partition_ms,probe_ms,total_ms,probes_per_s,"
            "total_probes_per_s,sector_bytes_per_probe,sectors_per_s,share,result\n");
  }
  bool all_right = true;
  for (uint64_t rows : build_rows) {
    for (bool half : {false, true}) {
      auto results = bench.Run(rows, half);
      if (!results.ok()) return Fail(results.status());
      printf("\n%g M rows build, %s match\n", static_cast<double>(rows) / 1e6, half ? "half" : "all");
      printf("%-32s %8s %8s %8s %8s %8s %8s %8s %6s %8s %6s  %s\n", "layout", "table MB", "build", "part. ms",
             "probe ms", "total", "G probe/s", "G total", "bytes", "G sect/s", "share", "sum");
      for (const Measured& m : *results) {
        double bound = 0, share = 0;
        const double per_second = static_cast<double>(probe_rows) / m.probe * 1e3;
        const double total = m.build + m.partition + m.probe;
        if (m.sectors > 0) {
          auto measured = bench.SectorsPerSecond(m.region_bytes);
          if (!measured.ok()) return Fail(measured.status());
          bound = *measured;
          share = per_second * m.sectors / bound;
        }
        printf("%-32s %8.1f %8.3f %8.3f %8.3f %8.3f %8.1f %8.1f %6.1f %8.1f %5.0f%%  %s\n", m.layout.c_str(),
               m.table_bytes / 1e6, m.build, m.partition, m.probe, total, per_second / 1e9,
               static_cast<double>(probe_rows) / total / 1e6, m.sectors * kSectorBytes, bound / 1e9, share * 100,
               m.right ? "right" : "WRONG");
        if (csv != nullptr) {
          fprintf(csv, "%llu,%llu,%s,\"%s\",%.0f,%g,%g,%g,%g,%g,%g,%g,%g,%g,%s\n",
                  static_cast<unsigned long long>(rows), static_cast<unsigned long long>(probe_rows),
                  half ? "half" : "all", m.layout.c_str(), m.table_bytes, m.build, m.partition, m.probe, total,
                  per_second, static_cast<double>(probe_rows) / total * 1e3, m.sectors * kSectorBytes, bound, share,
                  m.right ? "right" : "wrong");
        }
        all_right &= m.right;
      }
    }
  }
  if (csv != nullptr) fclose(csv);
  return all_right ? 0 : 1;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) { return tessera::Main({argv + 1, argv + argc}); }
