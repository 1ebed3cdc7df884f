// Packing rows and unpacking them: a column is a row of blocks.

#include <algorithm>

#include "kernels/rows/pack_rows.h"

namespace tessera::kernels {
namespace {

constexpr uint32_t kBlock = 256;
constexpr uint32_t kMostBlocks = 2048;
constexpr size_t kAtOnce = 32;

/// Columns of one launch.
struct Columns {
  PackedColumn columns[kAtOnce];
};
static_assert(sizeof(Columns) <= 3072, "kernel parameters");

/// What a kernel packs: `end`, of some.rows and the zeros after the last one.
struct PackSome {
  RowsToPack some;
  uint64_t end = 0;
};

/// to[i] = code(row) for the rows to pack, row by row.
template <class T, class Code>
__device__ __forceinline__ void PackCodes(const PackSome& what, Code code, T* to) {
  const RowsToPack& some = what.some;
  for (uint64_t i = blockIdx.x * kBlock + threadIdx.x; i < what.end; i += uint64_t{gridDim.x} * kBlock) {
    uint64_t packed = 0;
    if (i < some.rows) packed = code(some.list != nullptr ? some.list[i] : i);
    to[some.first + i] = static_cast<T>(packed);
  }
}

template <class T>
__device__ void PackColumn(const PackedColumn& c, const uint64_t* values, const uint8_t* null, const PackSome& what,
                           void* to) {
  PackCodes(
      what, [&](uint64_t row) { return c.has_null_code && null[row] != 0 ? c.null_code : values[row] - c.base; },
      static_cast<T*>(to));
}

template <class T>
__device__ void UnpackColumn(const PackedColumn& c, const void* from, uint64_t rows, uint64_t* values, uint8_t* null) {
  for (uint64_t i = blockIdx.x * kBlock + threadIdx.x; i < rows; i += uint64_t{gridDim.x} * kBlock) {
    const uint64_t code = static_cast<const T*>(from)[i];
    const bool is_null = c.has_null_code && code == c.null_code;
    values[i] = is_null ? 0 : c.base + code;
    if (null != nullptr && !c.has_null_bytes) null[i] = is_null ? 1 : 0;
  }
}

/// Grid: (parts of the rows, columns).
__global__ void Pack(const __grid_constant__ Columns all, const __grid_constant__ RowColumns from,
                     const __grid_constant__ PackSome what, uint8_t* to) {
  const PackedColumn& c = all.columns[blockIdx.y];
  const uint64_t* values = from.low + c.column * from.capacity;
  const uint8_t* null = c.is_high ? nullptr : from.null + c.column * from.capacity;
  if (c.width == 1) PackColumn<uint8_t>(c, values, null, what, to + c.at);
  if (c.width == 2) PackColumn<uint16_t>(c, values, null, what, to + c.at);
  if (c.width == 4) PackColumn<uint32_t>(c, values, null, what, to + c.at);
  if (c.width == 8) PackColumn<uint64_t>(c, values, null, what, to + c.at);
  if (c.has_null_bytes)
    PackCodes(
        what, [&](uint64_t row) { return uint64_t{null[row]}; }, to + c.null_at);
}

__global__ void Unpack(const __grid_constant__ Columns all, const uint8_t* from, const __grid_constant__ RowColumns to,
                       uint64_t first, uint64_t rows) {
  const PackedColumn& c = all.columns[blockIdx.y];
  uint64_t* values = to.low + c.column * to.capacity + first;
  uint8_t* null = c.is_high ? nullptr : to.null + c.column * to.capacity + first;
  if (c.width == 1) UnpackColumn<uint8_t>(c, from + c.at, rows, values, null);
  if (c.width == 2) UnpackColumn<uint16_t>(c, from + c.at, rows, values, null);
  if (c.width == 4) UnpackColumn<uint32_t>(c, from + c.at, rows, values, null);
  if (c.width == 8) UnpackColumn<uint64_t>(c, from + c.at, rows, values, null);
  for (uint64_t i = blockIdx.x * kBlock + threadIdx.x; i < rows; i += uint64_t{gridDim.x} * kBlock) {
    if (c.width == 0) {
      values[i] = c.has_null_code ? 0 : c.base;
      null[i] = c.has_null_code ? 1 : 0;
    }
    if (c.has_null_bytes) null[i] = from[c.null_at + i];
  }
}

/// start(columns, grid) for that many rows of as many columns at a time as a launch takes.
template <class Start>
cudaError_t ForColumns(const PackedRows& packed, uint64_t rows, Start start) {
  const std::vector<PackedColumn>& columns = packed.columns();
  if (rows == 0) return cudaSuccess;
  const auto blocks = static_cast<uint32_t>(std::clamp<uint64_t>((rows / 4 + kBlock) / kBlock, 1, kMostBlocks));
  for (size_t first = 0; first < columns.size(); first += kAtOnce) {
    const size_t n = std::min(kAtOnce, columns.size() - first);
    Columns some;
    std::copy_n(columns.begin() + static_cast<ptrdiff_t>(first), n, some.columns);
    start(some, dim3(blocks, static_cast<uint32_t>(n)));
  }
  return cudaGetLastError();
}

uint64_t Padded(uint64_t rows) { return (rows + kPaddedRows - 1) / kPaddedRows * kPaddedRows; }

}  // namespace

PackedRows::PackedRows(const std::vector<SqlType>& columns, std::span<const ColumnSummary> summaries, uint64_t rows)
    : rows_(rows) {
  auto high = static_cast<uint32_t>(columns.size());
  for (uint32_t c = 0; c < columns.size(); ++c) {
    PackedColumn p;
    p.column = c;
    if (c < summaries.size() && !IsWide(columns[c])) {
      const ColumnSummary& s = summaries[c];
      const bool any = s.low <= s.high;
      const uint64_t span = any ? static_cast<uint64_t>(s.high) - static_cast<uint64_t>(s.low) : 0;
      const uint64_t last = span + (s.nulls > 0 && any ? 1 : 0);
      p.base = any ? static_cast<uint64_t>(s.low) : 0;
      p.has_null_bytes = last < span;  // no code is left
      p.has_null_code = s.nulls > 0 && !p.has_null_bytes;
      p.null_code = last;
      if (p.has_null_bytes || last > UINT32_MAX) {
        p.width = 8;
      } else {
        p.width = last > UINT16_MAX ? 4 : last > UINT8_MAX ? 2 : last > 0 ? 1 : 0;
      }
    } else {
      p.width = 8;
      p.has_null_bytes = true;
    }
    p.at = Take(p.width);
    if (p.has_null_bytes) p.null_at = Take(1);
    places_.push_back(columns_.size());
    columns_.push_back(p);
    if (!IsWide(columns[c])) continue;
    PackedColumn upper;
    upper.column = high++;
    upper.width = 8;
    upper.is_high = true;
    upper.at = Take(8);
    columns_.push_back(upper);
  }
}

uint64_t PackedRows::Take(uint64_t width) {
  const uint64_t at = bytes_;
  bytes_ += Padded(rows_) * width;
  return at;
}

cudaError_t StartPack(const PackedRows& packed, const RowColumns& rows, void* to, cudaStream_t stream) {
  return StartPackSome(packed, rows, {nullptr, packed.rows(), 0}, to, stream);
}

cudaError_t StartPackSome(const PackedRows& packed, const RowColumns& rows, const RowsToPack& some, void* to,
                          cudaStream_t stream) {
  const bool last = some.first + some.rows == packed.rows();
  const PackSome what{some, last ? Padded(packed.rows()) - some.first : some.rows};
  return ForColumns(packed, some.rows, [&](const Columns& columns, dim3 grid) {
    Pack<<<grid, kBlock, 0, stream>>>(columns, rows, what, static_cast<uint8_t*>(to));
  });
}

cudaError_t StartUnpack(const PackedRows& packed, const void* from, const RowColumns& rows, uint64_t first,
                        cudaStream_t stream) {
  return ForColumns(packed, packed.rows(), [&](const Columns& columns, dim3 grid) {
    Unpack<<<grid, kBlock, 0, stream>>>(columns, static_cast<const uint8_t*>(from), rows, first, packed.rows());
  });
}

}  // namespace tessera::kernels
