#include "kernels/run/row_drain.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/thread_pool.h"
#include "kernels/rows/device_rows.h"

namespace tessera::kernels {
namespace {

/// Bytes of a piece in which rows come to the host (no more than this part of the budget): a pinned copy of 4 MiB
/// reaches 96 % of the link's rate.
constexpr uint64_t kPieceBytes = uint64_t{8} << 20, kPieceShare = 64;
/// Several threads move a piece from pinned memory to the rows' own if it has at least this many bytes.
constexpr uint64_t kSharedBytes = uint64_t{1} << 20;
constexpr int kMovers = 8;

}  // namespace

RowShape ShapeOf(const std::vector<SqlType>& types) {
  return {types.size(), CountWide(types), std::max<uint64_t>(1, RowBytes(types))};
}

Status RowDrain::Run(const Output& from, const RowShape& shape, const uint32_t* order, uint64_t rows,
                     const TakeRows& take) {
  if (rows == 0) return Status::Ok();
  const auto columns = static_cast<uint32_t>(shape.columns), all = static_cast<uint32_t>(shape.columns + shape.wide);
  // (A multiple of eight, so that what lies after a piece is aligned.)
  const uint64_t piece_bytes = std::min(kPieceBytes, gpu_.cache.budget() / kPieceShare);
  const uint64_t most = (std::clamp<uint64_t>(piece_bytes / shape.bytes, 1, rows) + 7) / 8 * 8;
  const uint64_t pieces = (rows + most - 1) / most, bytes_each = most * shape.bytes;
  // (Kept: once rows have left, the host cannot take over where memory has run short.)
  if (packed_.bytes() < bytes_each) TESSERA_TRY(packed_.Renew(&gpu_, bytes_each));
  TESSERA_TRY(gpu_.buffers.host_rows.Reserve(std::min<uint64_t>(pieces, 2) * bytes_each));
  const auto rows_of = [&](uint64_t piece) { return std::min(most, rows - piece * most); };
  const auto columns_at = [&](uint8_t* memory, uint64_t n) {
    return RowColumns{reinterpret_cast<uint64_t*>(memory), memory + uint64_t{all} * n * 8, n};
  };
  const auto host = [&](uint64_t piece) { return gpu_.buffers.host_rows.As<uint8_t>() + piece % 2 * bytes_each; };
  const auto start = [&](uint64_t piece) -> Status {
    const uint64_t n = rows_of(piece), first = piece * most, skipped = order == nullptr ? first : 0;
    CUDA_TRY(StartGather({from.low + skipped, from.null + skipped, from.capacity}, columns_at(packed_.As<uint8_t>(), n),
                         all, columns, order == nullptr ? nullptr : order + first, static_cast<uint32_t>(n),
                         gpu_.stream));
    CUDA_TRY(cudaMemcpyAsync(host(piece), packed_.As<void>(), n * (shape.columns * 9 + shape.wide * 8),
                             cudaMemcpyDeviceToHost, gpu_.stream));
    return Status::Ok();
  };
  TESSERA_TRY(start(0));
  for (uint64_t piece = 0; piece < pieces; ++piece) {
    if (context_.cancel != nullptr && context_.cancel->load(std::memory_order_relaxed)) return Cancelled();
    CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
    if (piece + 1 < pieces) TESSERA_TRY(start(piece + 1));
    TESSERA_TRY(take(columns_at(host(piece), rows_of(piece)), rows_of(piece)));
  }
  rows_ += rows;
  return Status::Ok();
}

void RowDrain::Append(const RowColumns& from, const RowShape& shape, uint64_t rows, vm::RowSet* to) const {
  // What is appended by several threads has its memory before: none of them can run out of it.
  std::vector<std::function<void()>> jobs;
  const auto append = [&](const auto* values, auto* column) {
    ReserveMore(rows, column);
    jobs.push_back([=] { column->insert(column->end(), values, values + rows); });
  };
  const int64_t* low = reinterpret_cast<const int64_t*>(from.low);
  const int64_t* high = low + shape.columns * rows;
  const uint8_t* null = from.null;
  for (vm::RowColumn& c : to->columns) {
    append(low, &c.low);
    low += rows;
    if (IsWide(c.type)) {
      append(high, &c.high);
      high += rows;
    }
    if (!c.null.empty() || memchr(null, 1, rows) != nullptr) {
      c.null.resize(to->rows);
      append(null, &c.null);
    }
    null += rows;
  }
  const int threads = context_.pool == nullptr || rows * shape.bytes < kSharedBytes ? 1 : context_.pool->threads();
  const int workers = std::min({threads, kMovers, static_cast<int>(jobs.size())});
  std::atomic<size_t> next{0};
  const auto work = [&](int) {
    for (size_t job; (job = next.fetch_add(1)) < jobs.size();) jobs[job]();
    return Status::Ok();
  };
  // What no other thread could take, if they cannot be started, this one does.
  if (workers > 1) (void)context_.pool->Run(workers, work);
  (void)work(0);
  to->rows += rows;
}

}  // namespace tessera::kernels
