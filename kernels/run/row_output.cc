#include "kernels/run/row_output.h"

#include <algorithm>
#include <utility>

#include "base/phase_clock.h"
#include "kernels/rows/row_source.h"
#include "kernels/window/device_windows.h"
#include "vm/after/window.h"
#include "vm/rows/late_texts.h"
#include "vm/rows/row_set.h"
#include "vm/rows/sorted_rows.h"

namespace tessera::kernels {
namespace {

using vm::Section;

/// What an output begins with (no more than this part of the budget), and how it grows. Numbers of rows that are to be marked
/// come by the million, and each stop of the launch to mark them costs 0.1 ms.
constexpr uint64_t kOutputBytes = uint64_t{32} << 20, kMarkedBytes = uint64_t{256} << 20, kOutputShare = 16;
constexpr uint64_t kGrowth = 8;
constexpr uint64_t kMostOutputRows = UINT32_MAX / 32 * 16;
/// An output grows to this if few of its rows are wanted: each stop of the launch to cut the rows costs 0.2 ms on an
/// H100.
constexpr uint64_t kCutBytes = uint64_t{256} << 20;
/// Few rows are no more than this part of the output.
constexpr uint64_t kKeptShare = 8;
/// An output that all rows have to go through takes this part of the budget, sorting included. The rest is for columns.
constexpr uint64_t kSortShare = 4;
/// Rows that go to the ranks of their keys are not sorted, and leave before anything else is made.
constexpr uint64_t kExchangedShare = 2;
/// Bytes of a row in the sort: two words, two numbers, another number if it is selected; and what the radix sort takes.
constexpr uint64_t kSortBytesPerRow = 32;

}  // namespace

RowOutput::RowOutput(GpuDevice* gpu, const vm::SectionContext& context)
    : gpu_(*gpu),
      context_(context),
      section_(context.program->sections[static_cast<size_t>(context.section)]),
      keep_(section_.after.Needed()),
      sorter_(gpu, context_, section_, output_),
      drain_(gpu, context_),
      marked_(gpu) {
  SetColumns(section_.columns);
}

void RowOutput::SetColumns(const std::vector<SqlType>& types) {
  shape_ = ShapeOf(types);
  result_ = vm::MakeRowSet(types);
  piece_ = vm::MakeRowSet(types);
  output_.columns = static_cast<uint32_t>(shape_.columns);
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

Status RowOutput::Open() {
  const uint64_t most = context_.marks != nullptr ? kMarkedBytes : kOutputBytes;
  const uint64_t bytes = std::min(most, gpu_.cache.budget() / kOutputShare);
  TESSERA_TRY(Reserve(std::max<uint64_t>(bytes / shape_.bytes, kSliceRows)));
  if (!stays()) return Status::Ok();
  most_rows_ =
      std::min(reserved_bytes() / (shape_.bytes + (section_.placement.by_key ? 0 : kSortBytesPerRow)), kMostOutputRows);
  const uint64_t cut = kCutBytes / shape_.bytes;
  if (!section_.after.order.empty() && keep_ <= cut / kKeptShare) most_rows_ = std::min(most_rows_, cut);
  return Status::Ok();
}

uint64_t RowOutput::reserved_bytes() const {
  return stays() ? gpu_.cache.budget() / (section_.placement.by_key ? kExchangedShare : kSortShare) : 0;
}

Status RowOutput::Reserve(uint64_t least) {
  const uint64_t rows = std::min((least + 15) / 16 * 16, kMostOutputRows);
  TESSERA_TRY(gpu_.ReserveEvicting(&gpu_.buffers.output, rows * shape_.bytes));
  output_.capacity = static_cast<uint32_t>(rows);
  output_.low = gpu_.buffers.output.As<uint64_t>();
  output_.high = output_.low + shape_.columns * rows;
  output_.null = reinterpret_cast<uint8_t*>(output_.high + shape_.wide * rows);
  return Status::Ok();
}

Status RowOutput::Grow(uint64_t rows, uint64_t capacity) {
  DeviceRows larger;
  TESSERA_TRY(larger.Allocate(&gpu_, section_.columns, capacity));
  CUDA_TRY(StartGather({output_.low, output_.null, output_.capacity}, larger.columns(),
                       static_cast<uint32_t>(shape_.columns + shape_.wide), static_cast<uint32_t>(shape_.columns),
                       nullptr, static_cast<uint32_t>(rows), gpu_.stream));
  Use(&larger);
  return Status::Ok();
}

void RowOutput::Use(DeviceRows* rows) {
  swap(*rows, rows_);
  output_.capacity = static_cast<uint32_t>(rows_.capacity());
  output_.low = rows_.low(0);
  output_.high = rows_.high(0);
  output_.null = rows_.null(0);
}

Status RowOutput::MakeRoom(uint64_t* rows, uint64_t wanted) {
  if (wanted > kMostOutputRows) {
    return {ErrorCode::kResource,
            "512 rows of a join have " + std::to_string(wanted) + " matches, more than a GPU's output holds",
            "Use --device host, or SET join_strategy = grid."};
  }
  const bool ordered = !section_.after.order.empty() && sorter_.why_host() == nullptr;
  const bool kept = section_.after.order.empty() && stays() && drained() == 0;
  if ((ordered || kept) && output_.capacity < most_rows_) {
    const uint64_t capacity =
        std::max(std::min(kGrowth * output_.capacity, most_rows_), std::min(*rows + wanted, kMostOutputRows));
    const Status grown = Grow(*rows, capacity);
    if (grown.ok()) return grown;
    if (grown.code() != ErrorCode::kResource) return grown;
    most_rows_ = 0;  // there is no more
  }
  if (ordered) {
    TESSERA_TRY(LeaveOutByFirstKeys(keep_, rows));
    if (*rows + wanted <= output_.capacity / 2) {
      ++cuts_;
      return Status::Ok();
    }
  }
  if (!ordered) {
    TESSERA_TRY(section_.after.order.empty() ? Deliver(nullptr, *rows) : DrainTo(nullptr, *rows, &result_));
    *rows = 0;
  } else if (*rows > 0) {
    const uint32_t* order = nullptr;
    TESSERA_ASSIGN(const bool sorted, Sort(*rows, keep_, &order));
    if (sorted && keep_ <= output_.capacity / kKeptShare) {
      TESSERA_TRY(KeepBest(rows, order));
    } else {
      if (sorted) runs_.push_back(result_.rows);
      TESSERA_TRY(DrainTo(order, sorted ? std::min(*rows, keep_) : *rows, &result_));
      *rows = 0;
    }
    sorter_.FreeScratch();
  }
  if (*rows + wanted <= output_.capacity) return Status::Ok();
  // (A few rows of a join have more matches than the output holds.)
  return rows_.capacity() > 0 ? Grow(*rows, *rows + wanted) : Reserve(wanted);
}

// ---- Order ----------------------------------------------------------------------------------------------------------

Status RowOutput::LeaveOutByFirstKeys(uint64_t wanted, uint64_t* rows) {
  RunBuffer selected;
  TESSERA_ASSIGN(const uint32_t count, sorter_.SelectByFirstKeys(wanted, *rows, &selected));
  if (count == 0) return Status::Ok();
  const Status kept = Keep(count, selected.As<uint32_t>());
  if (!kept.ok() && kept.code() == ErrorCode::kResource) return Status::Ok();  // (they stay all)
  TESSERA_TRY(kept);
  *rows = count;
  return Status::Ok();
}

tessera::Result<bool> RowOutput::Sort(uint64_t rows, uint64_t wanted, const uint32_t** order) {
  tessera::Result<bool> sorted = sorter_.Sort(rows, wanted, order);
  if (sorter_.why_host() != nullptr) runs_.clear();
  return sorted;
}

Status RowOutput::KeepBest(uint64_t* rows, const uint32_t* order) {
  *rows = std::min(*rows, keep_);
  ++cuts_;
  return Keep(*rows, order);
}

Status RowOutput::Keep(uint64_t rows, const uint32_t* order) {
  if (rows == 0) return Status::Ok();
  DeviceRows best;
  TESSERA_TRY(best.Allocate(&gpu_, section_.columns, rows));
  const RowColumns output{output_.low, output_.null, output_.capacity};
  const auto gather = [&](const RowColumns& from, const RowColumns& to, const uint32_t* by) {
    return StartGather(from, to, static_cast<uint32_t>(shape_.columns + shape_.wide),
                       static_cast<uint32_t>(shape_.columns), by, static_cast<uint32_t>(rows), gpu_.stream);
  };
  CUDA_TRY(gather(output, best.columns(), order));
  CUDA_TRY(gather(best.columns(), output, nullptr));
  return Status::Ok();
}

// ---- Windows --------------------------------------------------------------------------------------------------------

Status RowOutput::AddWindows(uint64_t rows) {
  if (rows == 0 || drained() > 0 || result_.rows > 0 || sorter_.why_host() != nullptr) return Status::Ok();
  const uint32_t* order = nullptr;
  TESSERA_ASSIGN(const bool sorted, Sort(rows, rows, &order));
  if (!sorted) return Status::Ok();
  const std::vector<SqlType> types = vm::TypesOfRows(section_);
  DeviceRows ordered;
  Status status = GatherOrdered(static_cast<uint32_t>(rows), order, types, &ordered);
  sorter_.FreeScratch();
  tessera::Result<bool> added = false;
  if (status.ok()) {
    TESSERA_TRY(gpu_.clock.Begin(gpu_.stream));
    added = kernels::AddWindows(&gpu_, section_, ordered);
    status = added.status();
  }
  if (!status.ok()) return status.code() == ErrorCode::kResource ? Status::Ok() : status;
  if (!*added) return Status::Ok();
  TESSERA_TRY(gpu_.clock.End(gpu_.stream));
  const PhaseScope phase(Phase::kKernel);
  CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
  TESSERA_ASSIGN(const double milliseconds, gpu_.clock.KernelMilliseconds());
  context_.statistics->kernel_milliseconds += milliseconds;
  SetColumns(types);
  Use(&ordered);
  has_windows_ = true;
  return Status::Ok();
}

Status RowOutput::GatherOrdered(uint32_t rows, const uint32_t* order, const std::vector<SqlType>& types,
                                DeviceRows* ordered) {
  TESSERA_TRY(ordered->Allocate(&gpu_, types, rows));
  ordered->set_rows(rows);
  CUDA_TRY(StartGather({output_.low, output_.null, output_.capacity}, ordered->columns(),
                       static_cast<uint32_t>(shape_.columns), static_cast<uint32_t>(shape_.columns), order, rows,
                       gpu_.stream));
  CUDA_TRY(StartGather({output_.high, nullptr, output_.capacity}, {ordered->high(0), nullptr, ordered->capacity()},
                       static_cast<uint32_t>(shape_.wide), 0, order, rows, gpu_.stream));
  return Status::Ok();
}

// ---- To the host ----------------------------------------------------------------------------------------------------

tessera::Result<bool> RowOutput::MoveTo(uint64_t rows, DeviceRows* kept) {
  if (has_windows_ && Stay(context_, rows)) {
    swap(rows_, *kept);
    return true;
  }
  if (!section_.after.windows.empty()) return false;
  if (section_.placement.by_key && drained() == 0 && rows_.capacity() > 0 && Stay(context_, rows)) {  // they leave soon
    rows_.set_rows(rows);
    swap(rows_, *kept);
    return true;
  }
  const uint64_t skipped = std::min(rows, static_cast<uint64_t>(section_.after.offset));
  const uint64_t count = std::min(rows, keep_) - skipped;
  DeviceRows there;
  if (drained() > 0 || !Stay(context_, count) || !there.TryAllocate(&gpu_, section_.columns, count)) return false;
  CUDA_TRY(StartGather({output_.low + skipped, output_.null + skipped, output_.capacity}, there.columns(),
                       static_cast<uint32_t>(shape_.columns + shape_.wide), static_cast<uint32_t>(shape_.columns),
                       nullptr, static_cast<uint32_t>(count), gpu_.stream));
  there.set_rows(count);
  swap(there, *kept);
  return true;
}

tessera::Result<vm::RowSet> RowOutput::Finish(uint64_t rows) {
  if (section_.after.order.empty() || has_windows_) {
    TESSERA_TRY(Deliver(nullptr, rows));
    if (marked_.rows() > 0) TESSERA_TRY(marked_.HandOn(context_.marks));
    result_.rows += marked_.rows();
    return std::move(result_);
  }
  const uint32_t* order = nullptr;
  if (sorter_.why_host() == nullptr && rows > 0) {
    TESSERA_TRY(LeaveOutByFirstKeys(keep_, &rows));
    TESSERA_ASSIGN(const bool sorted, Sort(rows, keep_, &order));
    if (sorted) rows = std::min(rows, keep_);
    if (sorted && runs_.empty()) {
      TESSERA_TRY(Deliver(order, rows));
      return std::move(result_);
    }
    if (sorted) runs_.push_back(result_.rows);
  }
  TESSERA_TRY(DrainTo(order, rows, &result_));
  if (result_.rows == 0) return std::move(result_);
  if (context_.late_texts != nullptr)
    TESSERA_TRY(context_.late_texts->Resolve(context_.strings, context_.pool, &result_));
  const vm::RowsAfter bounds = vm::WithoutOffset(section_.after);
  if (sorter_.why_host() != nullptr) {
    TESSERA_TRY(vm::OrderAndLimit(bounds, *context_.strings, context_.pool, &result_));
  } else {
    TESSERA_TRY(vm::MergeRuns(bounds, runs_, *context_.strings, context_.pool, &result_));
  }
  if (!context_.take_rows) return std::move(result_);
  TESSERA_TRY(context_.take_rows(&result_));
  return vm::MakeRowSet(section_.columns);
}

Status RowOutput::DrainTo(const uint32_t* order, uint64_t rows, vm::RowSet* to) {
  if (!section_.after.order.empty() && to->rows + rows > UINT32_MAX) {
    return {ErrorCode::kResource, "ORDER BY of more than 2^32 rows, which do not fit the GPU",
            "Filter them, or use LIMIT."};
  }
  for (vm::RowColumn& c : to->columns) {
    ReserveMore(rows, &c.low);
    if (IsWide(c.type)) ReserveMore(rows, &c.high);
  }
  return drain_.Run(output_, shape_, order, rows, [&](const RowColumns& piece, uint64_t n) {
    drain_.Append(piece, shape_, n, to);
    return Status::Ok();
  });
}

Status RowOutput::Deliver(const uint32_t* order, uint64_t rows) {
  if (context_.marks != nullptr && order == nullptr) {
    TESSERA_ASSIGN(const bool marked, marked_.Mark(*context_.marks, output_.low, rows));
    if (marked) return Status::Ok();
  }
  if (!context_.take_rows) return DrainTo(order, rows, &result_);
  return drain_.Run(output_, shape_, order, rows, [&](const RowColumns& piece, uint64_t n) {
    // Memory that was written before: new pages for 5 M rows of two columns took 20 of 30 ms.
    for (vm::RowColumn& c : piece_.columns) {
      c.low.clear();
      c.high.clear();
      c.null.clear();
    }
    piece_.rows = 0;
    drain_.Append(piece, shape_, n, &piece_);
    return context_.take_rows(&piece_);
  });
}

std::string RowOutput::Describe() const {
  if (section_.after.order.empty()) return has_windows_ ? "windows added" : "";
  if (sorter_.why_host() != nullptr) return std::string("ordered on the host: ") + sorter_.why_host();
  std::string out = "ordered by " + std::to_string(sorter_.key_bits()) + " bits";
  if (cuts_ > 0) out += ", cut to " + std::to_string(keep_) + " rows " + std::to_string(cuts_ + 1) + " times";
  if (has_windows_) out += ", windows added";
  if (!runs_.empty()) out += " in " + std::to_string(runs_.size()) + " runs that the host merged";
  return out;
}

}  // namespace tessera::kernels
