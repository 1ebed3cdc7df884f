// Runs, functions by place, counts and sums of frames.
#include <cub/device/device_scan.cuh>

#include "kernels/window/frame.cuh"
#include "kernels/window/window_kernels.h"

namespace tessera::kernels {
namespace {

using vm::WindowFunction;

/// Whether rows a and b have the same value, where NULLs are the same.
__device__ bool IsSame(const WindowColumn& c, uint32_t a, uint32_t b) {
  if (c.null[a] != c.null[b]) return false;
  if (c.null[a] != 0) return true;
  if (c.is_float) return vm::FloatEqual(ValueOf<double>(c, a), ValueOf<double>(c, b));
  return c.low[a] == c.low[b] && (c.high == nullptr || c.high[a] == c.high[b]);
}

__global__ void FindDifferences(const WindowColumn* keys, uint32_t count, uint32_t rows, uint8_t* differs) {
  const uint32_t row = WindowRow();
  if (row >= rows) return;
  uint32_t k = 0;
  while (row > 0 && k < count && IsSame(keys[k], row - 1, row)) ++k;
  differs[row] = row > 0 && k == count ? 255 : static_cast<uint8_t>(k);
}

/// 1 where a run begins, but for the first one: the sum is the number of the row's run.
__global__ void MarkRuns(const uint8_t* differs, uint32_t keys, uint32_t rows, uint32_t* number) {
  const uint32_t row = WindowRow();
  if (row < rows) number[row] = row > 0 && differs[row] < keys ? 1 : 0;
}
__global__ void NoteBegins(RowRuns runs, uint32_t rows) {
  const uint32_t row = WindowRow();
  if (row >= rows) return;
  const uint32_t run = runs.number[row];
  if (row == 0 || runs.number[row - 1] != run) runs.begin[run] = row;
  if (row == rows - 1) runs.begin[run + 1] = rows;
}

/// Which of `parts` parts has the row at that place: the remainder goes to the first ones.
__device__ uint64_t PartOf(uint64_t at, uint64_t rows, uint64_t parts) {
  const uint64_t size = rows / parts, larger = rows % parts, in_larger = larger * (size + 1);
  return at < in_larger ? at / (size + 1) : larger + (at - in_larger) / size;
}

__global__ void MakeNumbers(WindowFunction function, int64_t number, RowRuns partitions, RowRuns peers, uint32_t rows,
                            WindowColumn out) {
  const uint32_t row = WindowRow();
  if (row >= rows) return;
  const RowSpan p = RunOf(partitions, row);
  const auto real = [](double v) { return static_cast<uint64_t>(__double_as_longlong(v)); };
  uint64_t v = 0;
  switch (function) {
    case WindowFunction::kRowNumber:
      v = row - p.begin + 1;
      break;
    case WindowFunction::kRank:
      v = RunOf(peers, row).begin - p.begin + 1;
      break;
    case WindowFunction::kDenseRank:
      v = peers.number[row] - peers.number[p.begin] + 1;
      break;
    case WindowFunction::kPercentRank: {
      const double others = p.size() - 1;
      v = real(others == 0 ? 0.0 : static_cast<double>(RunOf(peers, row).begin - p.begin) / others);
      break;
    }
    case WindowFunction::kCumeDist:
      v = real(static_cast<double>(RunOf(peers, row).end - p.begin) / static_cast<double>(p.size()));
      break;
    default:  // NTILE
      v = PartOf(row - p.begin, p.size(), static_cast<uint64_t>(number)) + 1;
      break;
  }
  out.low[row] = v;
  out.null[row] = 0;
}

/// The value of `from` in a row becomes that of `to` in another.
__device__ void Put(const WindowColumn& from, uint32_t from_row, const WindowColumn& to, uint32_t row) {
  to.low[row] = from.low[from_row];
  if (to.high != nullptr) to.high[row] = from.high[from_row];
  to.null[row] = from.null[from_row];
}

__global__ void Place(const __grid_constant__ PlacedValue placed, const __grid_constant__ FrameColumns frames,
                      WindowColumn out, uint32_t* error) {
  const uint32_t row = WindowRow();
  if (row >= frames.rows) return;
  out.low[row] = 0;
  if (out.high != nullptr) out.high[row] = 0;
  out.null[row] = 1;
  const bool counts = placed.count.low != nullptr;
  if (counts && IsNull(placed.count, row)) return;
  const int64_t n = counts ? ValueOf<int64_t>(placed.count, row) : placed.number;
  if (placed.function == WindowFunction::kLag || placed.function == WindowFunction::kLead) {
    const RowSpan p = RunOf(frames.partitions, row);
    const bool before = (placed.function == WindowFunction::kLag) == (n >= 0);
    const uint64_t distance = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
    if (distance <= (before ? row - p.begin : p.end - row - 1)) {
      const auto far = static_cast<uint32_t>(distance);
      Put(placed.value, before ? row - far : row + far, out, row);
    } else if (placed.fallback.low != nullptr) {
      Put(placed.fallback, row, out, row);
    }
    return;
  }
  const FrameRows f = FrameOf(frames, row);
  uint64_t at = 0;
  if (placed.function == WindowFunction::kLastValue) at = uint64_t{f.size()} - 1;
  if (placed.function == WindowFunction::kNthValue) {
    if (n <= 0) *error = 1;
    at = static_cast<uint64_t>(n) - 1;
  }
  if (at >= f.size()) return;
  uint32_t from = f.before.begin + static_cast<uint32_t>(at);
  if (at >= f.before.size()) {
    at -= f.before.size();
    from = f.own && at == 0 ? row : f.after.begin + static_cast<uint32_t>(at) - (f.own ? 1 : 0);
  }
  Put(placed.value, from, out, row);
}

__global__ void MarkValues(WindowColumn value, uint32_t rows, uint32_t* counts) {
  const uint32_t row = WindowRow();
  if (row < rows) counts[row] = IsNull(value, row) ? 0 : 1;
}
__global__ void WidenValues(WindowColumn value, uint32_t rows, int128_t* sums) {
  const uint32_t row = WindowRow();
  if (row < rows) sums[row] = IsNull(value, row) ? 0 : static_cast<int128_t>(ValueOf<int64_t>(value, row));
}

__global__ void CountFrames(const __grid_constant__ FrameColumns frames, const uint32_t* counts, WindowColumn out) {
  const uint32_t row = WindowRow();
  if (row >= frames.rows) return;
  const FrameRows f = FrameOf(frames, row);
  out.low[row] = counts == nullptr ? f.size() : CountOf(f, row, counts);
  out.null[row] = 0;
}

/// The running sum of the rows before `row`.
__device__ int128_t SumBefore(const int128_t* sums, uint32_t row) { return row == 0 ? 0 : sums[row - 1]; }

__global__ void SumFrames(const __grid_constant__ FrameColumns frames, const uint32_t* counts, const int128_t* sums,
                          WindowColumn value, WindowColumn out) {
  const uint32_t row = WindowRow();
  if (row >= frames.rows) return;
  const FrameRows f = FrameOf(frames, row);
  int128_t sum = vm::WrapSub(SumBefore(sums, f.before.end), SumBefore(sums, f.before.begin));
  sum = vm::WrapAdd(sum, vm::WrapSub(SumBefore(sums, f.after.end), SumBefore(sums, f.after.begin)));
  if (f.own && !IsNull(value, row)) sum = vm::WrapAdd(sum, static_cast<int128_t>(ValueOf<int64_t>(value, row)));
  out.low[row] = static_cast<uint64_t>(Low64(sum));
  out.high[row] = static_cast<uint64_t>(High64(sum));
  out.null[row] = CountOf(f, row, counts) == 0 ? 1 : 0;
}

}  // namespace

cudaError_t WindowScratchBytes(uint32_t rows, size_t* bytes) {
  size_t narrow = 0, wide = 0;
  uint32_t* const numbers = nullptr;
  int128_t* const sums = nullptr;
  cudaError_t error = cub::DeviceScan::InclusiveSum(nullptr, narrow, numbers, numbers, rows);
  if (error == cudaSuccess) error = cub::DeviceScan::InclusiveSum(nullptr, wide, sums, sums, rows);
  *bytes = narrow > wide ? narrow : wide;
  return error;
}

cudaError_t StartFindDifferences(const WindowColumn* keys, uint32_t count, uint32_t rows, uint8_t* differs,
                                 cudaStream_t stream) {
  FindDifferences<<<WindowBlocks(rows), kWindowBlock, 0, stream>>>(keys, count, rows, differs);
  return cudaGetLastError();
}

cudaError_t StartCutRuns(const uint8_t* differs, uint32_t keys, uint32_t rows, const RowRuns& runs, void* scratch,
                         size_t scratch_bytes, cudaStream_t stream) {
  MarkRuns<<<WindowBlocks(rows), kWindowBlock, 0, stream>>>(differs, keys, rows, runs.number);
  const cudaError_t error =
      cub::DeviceScan::InclusiveSum(scratch, scratch_bytes, runs.number, runs.number, rows, stream);
  if (error != cudaSuccess) return error;
  NoteBegins<<<WindowBlocks(rows), kWindowBlock, 0, stream>>>(runs, rows);
  return cudaGetLastError();
}

cudaError_t StartNumbers(WindowFunction function, int64_t number, const RowRuns& partitions, const RowRuns& peers,
                         uint32_t rows, const WindowColumn& out, cudaStream_t stream) {
  MakeNumbers<<<WindowBlocks(rows), kWindowBlock, 0, stream>>>(function, number, partitions, peers, rows, out);
  return cudaGetLastError();
}

cudaError_t StartPlaced(const PlacedValue& placed, const FrameColumns& frames, const WindowColumn& out, uint32_t* error,
                        cudaStream_t stream) {
  Place<<<WindowBlocks(frames.rows), kWindowBlock, 0, stream>>>(placed, frames, out, error);
  return cudaGetLastError();
}

cudaError_t StartCountValues(const WindowColumn& value, uint32_t rows, uint32_t* counts, void* scratch,
                             size_t scratch_bytes, cudaStream_t stream) {
  MarkValues<<<WindowBlocks(rows), kWindowBlock, 0, stream>>>(value, rows, counts);
  const cudaError_t error = cub::DeviceScan::InclusiveSum(scratch, scratch_bytes, counts, counts, rows, stream);
  return error != cudaSuccess ? error : cudaGetLastError();
}

cudaError_t StartSumValues(const WindowColumn& value, uint32_t rows, void* sums, void* scratch, size_t scratch_bytes,
                           cudaStream_t stream) {
  int128_t* const wide = static_cast<int128_t*>(sums);
  WidenValues<<<WindowBlocks(rows), kWindowBlock, 0, stream>>>(value, rows, wide);
  const cudaError_t error = cub::DeviceScan::InclusiveSum(scratch, scratch_bytes, wide, wide, rows, stream);
  return error != cudaSuccess ? error : cudaGetLastError();
}

cudaError_t StartCountFrames(const FrameColumns& frames, const uint32_t* counts, const WindowColumn& out,
                             cudaStream_t stream) {
  CountFrames<<<WindowBlocks(frames.rows), kWindowBlock, 0, stream>>>(frames, counts, out);
  return cudaGetLastError();
}

cudaError_t StartSumFrames(const FrameColumns& frames, const uint32_t* counts, const void* sums,
                           const WindowColumn& value, const WindowColumn& out, cudaStream_t stream) {
  const int128_t* const wide = static_cast<const int128_t*>(sums);
  SumFrames<<<WindowBlocks(frames.rows), kWindowBlock, 0, stream>>>(frames, counts, wide, value, out);
  return cudaGetLastError();
}

}  // namespace tessera::kernels
