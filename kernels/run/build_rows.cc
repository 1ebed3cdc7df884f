#include "kernels/run/build_rows.h"

#include <algorithm>
#include <utility>

namespace tessera::kernels {
namespace {

/// Rows that may not come get this part of what is free, at most.
constexpr uint64_t kFreeShare = 4;

}  // namespace

BuildRows::BuildRows(GpuDevice* gpu, const vm::SectionContext& context, const DeviceJoins& joins)
    : gpu_(*gpu),
      context_(context),
      section_(context.program->sections[static_cast<size_t>(context.section)]),
      joins_(joins) {}

Status BuildRows::GiveBackUnused(uint64_t used) {
  const uint64_t unused = (rows_.capacity() - used) * row_bytes();
  if (!host_rows_.empty() || unused < gpu_.options().given_back_bytes || used > rows_.capacity() / 2)
    return Status::Ok();
  DeviceRows smaller;
  if (!smaller.TryAllocate(&gpu_, section_.columns, std::max<uint64_t>(used, 1))) return Status::Ok();
  TESSERA_TRY(smaller.CopyFrom(rows_, used, gpu_.stream));
  swap(smaller, rows_);
  return Status::Ok();
}

Output BuildRows::output() const {
  Output out;
  out.low = rows_.low(0);
  out.high = rows_.high(0);
  out.null = rows_.null(0);
  out.capacity = static_cast<uint32_t>(rows_.capacity());
  out.columns = static_cast<uint32_t>(section_.columns.size());
  return out;
}

Status BuildRows::Allocate(uint64_t rows, uint64_t used) {
  if (rows >= UINT32_MAX)
    return {ErrorCode::kResource, "the build side of a join has more than 2^32 - 2 rows",
            "Filter it, or swap the tables of the join."};
  DeviceRows larger;
  TESSERA_TRY(larger.Allocate(&gpu_, section_.columns, rows));
  TESSERA_TRY(larger.CopyFrom(rows_, used, gpu_.stream));
  swap(larger, rows_);
  return Status::Ok();
}

bool BuildRows::TryAllocate(uint64_t rows) {
  const uint64_t bytes = rows * row_bytes();
  const ColumnCache& cache = gpu_.cache;
  // (Half of it again is for rows that are moved to a smaller place.)
  const bool is_little = bytes <= most_bytes() && bytes <= gpu_.Room() / kFreeShare &&
                         cache.bytes() + cache.claimed() + bytes / 2 * 3 <= cache.budget();
  return rows < UINT32_MAX && is_little && rows_.TryAllocate(&gpu_, section_.columns, rows);
}

Status BuildRows::Grow(uint64_t wanted, uint64_t* used) {
  ++growths_;
  const uint64_t rows = std::max<uint64_t>(2 * rows_.capacity(), *used + wanted);
  const bool stays = !CanPart(*context_.program, section_.join);
  if (stays || rows * row_bytes() <= most_bytes()) {
    const Status status = Allocate(rows, *used);
    if (stays || status.ok() || status.code() != ErrorCode::kResource) return status;
  }
  TESSERA_TRY(Drain(std::exchange(*used, 0)));
  return wanted <= rows_.capacity() ? Status::Ok() : Allocate(wanted, 0);
}

Status BuildRows::Drain(uint64_t used) {
  TESSERA_ASSIGN(vm::RowSet rows, DownloadRows(&gpu_, section_.columns, rows_, used));
  rows_on_host_ += used;
  if (rows.rows > 0) host_rows_.push_back(std::move(rows));
  return Status::Ok();
}

Status BuildRows::Finish(uint64_t used) {
  rows_.set_rows(used);
  return host_rows_.empty() ? Status::Ok() : MoveToHost();
}

Status BuildRows::MoveToHost() {
  TESSERA_TRY(Drain(rows_.rows()));
  DeviceRows none;
  swap(none, rows_);
  return Status::Ok();
}

}  // namespace tessera::kernels
