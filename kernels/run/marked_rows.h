// Rows whose numbers are all that is asked of them: they stay on the device, as bits. Private to kernels/.
//
// Start at: MarkedRows::Mark. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/memory/run_buffer.h"
#include "kernels/rows/mark_rows.h"
#include "vm/run/row_marks.h"

namespace tessera::kernels {

class MarkedRows {
 public:
  explicit MarkedRows(GpuDevice* gpu) : gpu_(*gpu) {}

  /// Marks rows, unless it is the first time and their numbers take less to fetch than the bits. `numbers`: on the device.
  /// False: they are left to the caller.
  tessera::Result<bool> Mark(const vm::RowMarks& marks, const uint64_t* numbers, uint64_t rows);
  /// How many rows have been marked, one as often as it came.
  uint64_t rows() const { return rows_; }
  /// No more rows come: hands on the bits of the tablets that have some.
  Status HandOn(vm::RowMarks* marks);

 private:
  /// HandOn() for tablets [first, last).
  Status HandOnRun(uint64_t first, uint64_t last, vm::RowMarks* marks);

  GpuDevice& gpu_;
  RunBuffer memory_;
  RowBits bits_;
  uint64_t rows_ = 0;
};

}  // namespace tessera::kernels
