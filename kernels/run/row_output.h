// The rows that a section with sink kRows makes: where the VM kernel writes them, how they are ordered and cut there,
// and how they come to the host. kernels/README.md, Sinks. Private to kernels/.
//
// Without an order rows leave the device whenever the output is full. With an order they stay, in an output that grows.
// If few of them are wanted (LIMIT), a full output is cut to the best rows so far. Otherwise, when the output has all
// the memory that it may take, its rows go to the host as a sorted run, and the host merges the runs. Rows that other
// sections read on the device stay, too, as long as the output can grow.
//
// Start at: RowOutput::MakeRoom, RowOutput::Finish.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/launch/sinks.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/rows/device_rows.h"
#include "kernels/run/marked_rows.h"
#include "kernels/run/row_drain.h"
#include "kernels/run/row_sorter.h"
#include "tablet/values/types.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/run/device.h"

namespace tessera::kernels {

/// REQUIRES, of all functions: the device's mutex is held, and no launch that writes to the output is under way.
class RowOutput {
 public:
  RowOutput(GpuDevice* gpu, const vm::SectionContext& context);
  RowOutput(const RowOutput&) = delete;
  RowOutput& operator=(const RowOutput&) = delete;

  /// Takes memory. REQUIRES: called first.
  Status Open();
  /// Where launches write rows; changes with Open and MakeRoom. `places` and `highs` are the launch's.
  const Output& output() const { return output_; }
  /// How many rows have left the device.
  uint64_t drained() const { return drain_.rows(); }

  /// Bytes of the budget that it may take, so that columns must leave them.
  uint64_t reserved_bytes() const;

  /// The first *rows rows of the output are there, and `wanted` more did not fit: makes room for them. *rows becomes
  /// the number of rows that are still there.
  Status MakeRoom(uint64_t* rows, uint64_t wanted);
  /// No more rows come. Puts them in order and adds the columns of the section's windows, unless the host has to: some rows
  /// are there, there is no room, or a row is an error.
  Status AddWindows(uint64_t rows);
  /// No more rows come. Moves those within the section's OFFSET and LIMIT to *kept. false: some have left the device,
  /// they are few, or there is no room; they are to be finished then. REQUIRES: the section has no order, or its windows
  /// were added if that was possible.
  tessera::Result<bool> MoveTo(uint64_t rows, DeviceRows* kept);
  /// No more rows come. What the section's DeviceRun::RunSection returns.
  tessera::Result<vm::RowSet> Finish(uint64_t rows);
  /// How the rows were ordered, for EXPLAIN ANALYZE; "" without an order. REQUIRES: Finish.
  std::string Describe() const;

 private:
  /// Whether rows stay in the output, which grows: they are ordered, or other sections read them on the device.
  bool stays() const {
    return !section_.after.order.empty() || context_.keep_from != UINT64_MAX || context_.add_windows;
  }
  /// The columns that rows have from here on. REQUIRES: none has left the device.
  void SetColumns(const std::vector<SqlType>& types);
  /// Rows with those columns and those of the windows, in order. Errors: kResource, there is no room.
  Status GatherOrdered(uint32_t rows, const uint32_t* order, const std::vector<SqlType>& types, DeviceRows* ordered);
  Status Reserve(uint64_t rows);
  /// Makes *rows the output.
  void Use(DeviceRows* rows);
  /// Moves the output to a larger place. Errors: kResource, there is none.
  Status Grow(uint64_t rows, uint64_t capacity);

  /// Leaves out rows that are not among the `wanted` best, as far as RowSorter::SelectByFirstKeys says so.
  Status LeaveOutByFirstKeys(uint64_t wanted, uint64_t* rows);
  /// As RowSorter::Sort. If it is left to the host, runs are no longer sorted.
  tessera::Result<bool> Sort(uint64_t rows, uint64_t wanted, const uint32_t** order);
  /// Leaves the best rows alone in the output, at its front.
  Status KeepBest(uint64_t* rows, const uint32_t* order);
  /// The same for `rows` rows, in this order.
  Status Keep(uint64_t rows, const uint32_t* order);

  /// Brings rows order[0 .. rows) of the output (without order: its first rows) to the end of `to`.
  Status DrainTo(const uint32_t* order, uint64_t rows, vm::RowSet* to);
  /// ... to the caller of the section: to its marks or take_rows, or to result_.
  Status Deliver(const uint32_t* order, uint64_t rows);

  GpuDevice& gpu_;
  const vm::SectionContext context_;
  const vm::Section& section_;
  RowShape shape_;
  const uint64_t keep_;  ///< rows that are wanted; UINT64_MAX: all
  Output output_;
  DeviceRows rows_;         ///< the output, once it has grown
  uint64_t most_rows_ = 0;  ///< that it may grow to
  RowSorter sorter_;
  RowDrain drain_;
  MarkedRows marked_;
  vm::RowSet result_, piece_;  ///< all rows; those that take_rows is given at a time
  std::vector<size_t> runs_;   ///< first rows of the sorted runs in result_
  bool has_windows_ = false;   ///< rows are in order and have the columns of windows
  uint32_t cuts_ = 0;          ///< to the best rows, before the last one
};

}  // namespace tessera::kernels
