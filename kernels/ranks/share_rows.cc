#include "kernels/ranks/share_rows.h"

#include <utility>

#include "kernels/memory/run_buffer.h"
#include "kernels/rows/sort_rows.h"

namespace tessera::kernels {

tessera::Result<RowSource> TakeShare(GpuDevice* gpu, const vm::SourceShare& share, const std::vector<SqlType>& columns,
                                     const DeviceRows& from, std::vector<PayloadShape> shapes, DeviceRows* rows) {
  if (share.rows == 0) return RowSource{0, std::move(shapes), {}};
  RunBuffer order;
  TESSERA_TRY(order.Allocate(gpu, share.rows * sizeof(uint32_t)));
  TESSERA_TRY(rows->Allocate(gpu, columns, share.rows));
  rows->set_rows(share.rows);
  CUDA_TRY(StartListShare(share, order.As<uint32_t>(), gpu->stream));
  const auto nulls = static_cast<uint32_t>(columns.size()), wide = static_cast<uint32_t>(CountWide(columns));
  CUDA_TRY(StartGather(from.columns(), rows->columns(), nulls + wide, nulls, order.As<uint32_t>(),
                       static_cast<uint32_t>(share.rows), gpu->stream));
  TESSERA_TRY(rows->ClearPadding(gpu->stream));
  // What is known of all rows holds for some.
  size_t wide_before = 0;
  for (size_t c = 0; c < shapes.size(); ++c) {
    PayloadShape& shape = shapes[c];
    shape.column = reinterpret_cast<uint64_t>(rows->low(c));
    if (shape.nulls != 0) shape.nulls = reinterpret_cast<uint64_t>(rows->null(c));
    if (shape.wide) shape.column_high = reinterpret_cast<uint64_t>(rows->high(wide_before++));
  }
  return RowSource{share.rows, std::move(shapes), rows->columns()};
}

}  // namespace tessera::kernels
