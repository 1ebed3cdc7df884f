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

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/launch/sinks.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/rows/device_rows.h"
#include "kernels/rows/sort_rows.h"
#include "tablet/values/types.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/rows/text_ranks.h"
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
  uint64_t drained() const { return drained_; }

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
  bool stays() const { return !section_.order.empty() || context_.keep_from != UINT64_MAX || context_.add_windows; }
  /// The columns that rows have from here on. REQUIRES: none has left the device.
  void SetColumns(const std::vector<SqlType>& types);
  /// Rows with those columns and those of the windows, in order. Errors: kResource, there is no room.
  Status GatherOrdered(uint32_t rows, const uint32_t* order, const std::vector<SqlType>& types, DeviceRows* ordered);
  Status Reserve(uint64_t rows);
  /// Makes *rows the output.
  void Use(DeviceRows* rows);
  /// Moves the output to a larger place. Errors: kResource, there is none.
  Status Grow(uint64_t rows, uint64_t capacity);

  bool IsText(const vm::SortKey& key) const;
  /// The keys of the order before the first text.
  size_t KeysBeforeTexts() const;
  /// The first `keys` keys that the output is sorted by.
  std::vector<SortPart> Parts(size_t keys) const;
  /// What rows are sorted by: the parts, with the ranges of their codes, in words. `found`: memory for that.
  tessera::Result<std::vector<SortWord>> Words(std::vector<SortPart> parts, uint32_t rows, RunBuffer* found);
  /// As StartSort, with the order in scratch_.
  Status SortBy(const std::vector<SortWord>& words, const uint32_t* among, uint32_t rows, const uint32_t** order);
  /// As StartSelect. Returns how many rows are selected.
  tessera::Result<uint32_t> Select(const SortWord& word, const uint32_t* bound, uint32_t rows, const RunBuffer& counter,
                                   const RunBuffer& selected);
  /// Leaves out rows that are not among the `wanted` best, as far as keys before the first text say so: texts of rows
  /// that are not wanted are neither read nor ranked.
  Status LeaveOutByFirstKeys(uint64_t wanted, uint64_t* rows);
  /// The same. Errors: kResource, there is no memory for it.
  Status TryLeaveOut(uint64_t wanted, uint64_t* rows);
  /// Gives texts of a column that were handed on their identifiers.
  Status ResolveTexts(size_t column, uint64_t rows);
  /// Brings the ranks of all strings to the device. false: they are too many.
  tessera::Result<bool> RankTexts(uint64_t rows);
  /// Sorts the first `rows` rows of the output, at least the `wanted` best of them: *order, in scratch_, becomes their
  /// numbers. false: it is left to the host from now on, for the reason in why_host_.
  tessera::Result<bool> Sort(uint64_t rows, uint64_t wanted, const uint32_t** order);
  /// REQUIRES: texts are ranked; wanted > 0.
  Status SortRanked(uint32_t rows, uint64_t wanted, const uint32_t** order);
  /// Leaves the best rows alone in the output, at its front.
  Status KeepBest(uint64_t* rows, const uint32_t* order);
  /// The same for `rows` rows, in this order.
  Status Keep(uint64_t rows, const uint32_t* order);

  /// Brings rows order[0 .. rows) of the output (without order: its first rows) to the host and gives them to `take`
  /// piece by piece: the next one travels meanwhile.
  Status Drain(const uint32_t* order, uint64_t rows, const std::function<Status(const RowColumns&, uint64_t)>& take);
  /// ... to the end of `to`.
  Status DrainTo(const uint32_t* order, uint64_t rows, vm::RowSet* to);
  /// ... to the caller of the section: to its take_rows, or to result_.
  Status Deliver(const uint32_t* order, uint64_t rows);
  void Append(const RowColumns& from, uint64_t rows, vm::RowSet* to) const;

  GpuDevice& gpu_;
  const vm::SectionContext context_;
  const vm::Section& section_;
  uint64_t columns_ = 0, wide_ = 0;
  uint64_t row_bytes_ = 0;
  const uint64_t keep_;  ///< rows that are wanted; UINT64_MAX: all
  Output output_;
  DeviceRows rows_;         ///< the output, once it has grown
  uint64_t most_rows_ = 0;  ///< that it may grow to
  RunBuffer scratch_, ranks_;
  RunBuffer packed_;  ///< a piece on its way to the host
  vm::TextRanks texts_;
  vm::RowSet result_, piece_;       ///< all rows; those that take_rows is given at a time
  std::vector<size_t> runs_;        ///< first rows of the sorted runs in result_
  bool has_windows_ = false;        ///< rows are in order and have the columns of windows
  const char* why_host_ = nullptr;  ///< why the host sorts; nullptr: it does not
  uint32_t cuts_ = 0;               ///< to the best rows, before the last one
  uint32_t key_bits_ = 0;           ///< of the latest sort
  uint64_t drained_ = 0;
};

}  // namespace tessera::kernels
