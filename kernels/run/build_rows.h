// The rows of a join table while a section makes them: in device memory that grows, and on the host once they outgrow
// it. Private to kernels/.
//
// Start at: BuildRows::Grow. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/join/device_joins.h"
#include "kernels/launch/sinks.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/rows/device_rows.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/run/device.h"

namespace tessera::kernels {

/// What a join table's build and the host tell each other: its launches' counters, and what is known of its columns.
struct BuildState {
  Control control;
  ColumnSummary columns[kMaxSummaries];
};

class BuildRows {
 public:
  BuildRows(GpuDevice* gpu, const vm::SectionContext& context, const DeviceJoins& joins);

  /// Bytes of a row, and bytes that all of them may have on the device.
  uint64_t row_bytes() const { return RowBytes(section_.columns); }
  uint64_t most_bytes() const { return joins_.MostRowBytes(); }
  /// Gives back most of what was taken for more rows than the `used` that came, if that is much. REQUIRES: no launch writes
  /// rows any more.
  Status GiveBackUnused(uint64_t used);
  /// Where launches write them; changes with Allocate, Grow and GiveBackUnused. `places` and `highs` are the launch's.
  Output output() const;
  /// Room for `rows` rows; the first `used` stay. Errors: kResource, too many rows or no memory.
  Status Allocate(uint64_t rows, uint64_t used);
  /// Room for `rows` rows, as many as there can be, before there are any: if that is little of what is free, and no column has
  /// to go. (To grow with those that come takes a millisecond for each gigabyte, and a launch has to stop and go on: at scale
  /// 100 that was 38 % of the time of TPC-H's q4.)
  bool TryAllocate(uint64_t rows);
  /// Room for `wanted` more rows after *used: a larger buffer, or this one, whose rows go to the host. *used becomes
  /// how many rows there still are.
  Status Grow(uint64_t wanted, uint64_t* used);
  /// No more rows come; `used` are on the device.
  Status Finish(uint64_t used);

  /// All rows, piece by piece, as on_host() has them.
  Status MoveToHost();

  DeviceRows& on_device() { return rows_; }
  /// REQUIRES: Finish, as for what follows. All rows, piece by piece, if they did not fit the device; else empty.
  std::vector<vm::RowSet>& on_host() { return host_rows_; }
  uint64_t count() const { return rows_on_host_ + rows_.rows(); }
  /// How often Grow made more room.
  int growths() const { return growths_; }

 private:
  Status Drain(uint64_t used);

  GpuDevice& gpu_;
  const vm::SectionContext& context_;
  const vm::Section& section_;
  const DeviceJoins& joins_;
  DeviceRows rows_;
  std::vector<vm::RowSet> host_rows_;
  uint64_t rows_on_host_ = 0;
  int growths_ = 0;
};

}  // namespace tessera::kernels
