#include "kernels/window/device_windows.h"

#include <algorithm>
#include <vector>

#include "kernels/window/window_kernels.h"
#include "vm/after/window.h"

namespace tessera::kernels {
namespace {

using vm::Section;
using vm::WindowFunction;
using vm::WindowSpec;

class WindowRun {
 public:
  WindowRun(GpuDevice* gpu, const Section& section, const DeviceRows& rows)
      : gpu_(*gpu), section_(section), rows_(static_cast<uint32_t>(rows.rows())) {
    size_t wide = 0;
    const std::vector<SqlType> types = vm::TypesOfRows(section);
    for (size_t c = 0; c < types.size(); ++c) {
      WindowColumn column{rows.low(c), nullptr, rows.null(c), types[c].storage() == StorageClass::kFloat};
      if (IsWide(types[c])) column.high = rows.high(wide++);
      columns_.push_back(column);
    }
  }

  tessera::Result<bool> Run() {
    size_t scratch_bytes = 0;
    CUDA_TRY(WindowScratchBytes(rows_, &scratch_bytes));
    TESSERA_TRY(scratch_.Allocate(&gpu_, std::max<size_t>(scratch_bytes, 1)));
    TESSERA_TRY(failed_.Allocate(&gpu_, sizeof(uint32_t)));
    CUDA_TRY(cudaMemsetAsync(failed_.As<void>(), 0, sizeof(uint32_t), gpu_.stream));
    TESSERA_TRY(FindDifferences());
    size_t added = section_.columns.size();
    for (const WindowSpec& w : section_.after.windows) {
      TESSERA_TRY(Evaluate(w, &columns_[added]));
      added += vm::TypesOf(w).size();
    }
    uint32_t error = 0;
    CUDA_TRY(cudaMemcpyAsync(&error, failed_.As<void>(), sizeof error, cudaMemcpyDeviceToHost, gpu_.stream));
    CUDA_TRY(cudaStreamSynchronize(gpu_.stream));
    return error == 0;
  }

 private:
  /// Runs, by how many entries of the order their rows are equal in.
  struct Runs {
    int32_t keys = -1;
    RunBuffer buffer;
    RowRuns rows;
  };

  WindowColumn ColumnOf(int32_t number) const {
    return number < 0 ? WindowColumn() : columns_[static_cast<size_t>(number)];
  }

  Status FindDifferences() {
    std::vector<WindowColumn> keys;
    for (const vm::SortKey& key : section_.after.order) keys.push_back(ColumnOf(key.column));
    const uint64_t bytes = keys.size() * sizeof(WindowColumn);
    RunBuffer there;
    TESSERA_TRY(there.Allocate(&gpu_, std::max<uint64_t>(bytes, 1)));
    TESSERA_TRY(differs_.Allocate(&gpu_, rows_));
    // (Pageable memory: the copy is done when the call returns.)
    if (bytes > 0) CUDA_TRY(cudaMemcpyAsync(there.As<void>(), keys.data(), bytes, cudaMemcpyHostToDevice, gpu_.stream));
    CUDA_TRY(StartFindDifferences(there.As<WindowColumn>(), static_cast<uint32_t>(keys.size()), rows_,
                                  differs_.As<uint8_t>(), gpu_.stream));
    return Status::Ok();
  }

  /// Makes *runs those of rows that are equal in `keys` entries, unless they are already.
  Status Cut(int32_t keys, Runs* runs) {
    if (runs->keys == keys) return Status::Ok();
    if (runs->keys < 0) {
      TESSERA_TRY(runs->buffer.Allocate(&gpu_, (2 * uint64_t{rows_} + 1) * sizeof(uint32_t)));
      runs->rows.number = runs->buffer.As<uint32_t>();
      runs->rows.begin = runs->rows.number + rows_;
    }
    runs->keys = keys;
    CUDA_TRY(StartCutRuns(differs_.As<uint8_t>(), static_cast<uint32_t>(keys), rows_, runs->rows, scratch_.As<void>(),
                          scratch_.bytes(), gpu_.stream));
    return Status::Ok();
  }

  Status Evaluate(const WindowSpec& w, const WindowColumn* out) {
    TESSERA_TRY(Cut(w.partition_keys, &partitions_));
    const bool has_peers = w.order_keys > 0;
    if (has_peers) TESSERA_TRY(Cut(w.partition_keys + w.order_keys, &peers_));
    FrameColumns frames;
    frames.rows = rows_;
    frames.frame = w.frame;
    frames.partitions = partitions_.rows;
    frames.peers = has_peers ? peers_.rows : partitions_.rows;
    frames.key = ColumnOf(w.frame.key);
    frames.start = ColumnOf(w.frame.start_column);
    frames.end = ColumnOf(w.frame.end_column);
    if (w.frame.key >= 0) frames.descending = section_.after.order[static_cast<size_t>(w.partition_keys)].descending;
    switch (w.function) {
      case WindowFunction::kLag:
      case WindowFunction::kLead:
      case WindowFunction::kFirstValue:
      case WindowFunction::kLastValue:
      case WindowFunction::kNthValue:
        CUDA_TRY(StartPlaced({w.function, ColumnOf(w.value), ColumnOf(w.count), ColumnOf(w.fallback), w.number}, frames,
                             *out, failed_.As<uint32_t>(), gpu_.stream));
        return Status::Ok();
      case WindowFunction::kAggregate:
        return Aggregate(w, frames, out);
      default:
        CUDA_TRY(StartNumbers(w.function, w.number, frames.partitions, frames.peers, rows_, *out, gpu_.stream));
        return Status::Ok();
    }
  }

  Status Aggregate(const WindowSpec& w, const FrameColumns& frames, const WindowColumn* out) {
    if (w.value < 0) {
      CUDA_TRY(StartCountFrames(frames, nullptr, *out, gpu_.stream));
      return Status::Ok();
    }
    const WindowColumn value = ColumnOf(w.value);
    RunBuffer counts, states;
    TESSERA_TRY(counts.Allocate(&gpu_, uint64_t{rows_} * sizeof(uint32_t)));
    CUDA_TRY(StartCountValues(value, rows_, counts.As<uint32_t>(), scratch_.As<void>(), scratch_.bytes(), gpu_.stream));
    if (vm::Info(w.aggregate).role == vm::Role::Count) {
      CUDA_TRY(StartCountFrames(frames, counts.As<uint32_t>(), *out, gpu_.stream));
      return Status::Ok();
    }
    if (w.aggregate == vm::Opcode::SumI) {
      TESSERA_TRY(states.Allocate(&gpu_, uint64_t{rows_} * sizeof(int128_t)));
      CUDA_TRY(StartSumValues(value, rows_, states.As<void>(), scratch_.As<void>(), scratch_.bytes(), gpu_.stream));
      CUDA_TRY(StartSumFrames(frames, counts.As<uint32_t>(), states.As<void>(), value, *out, gpu_.stream));
      return Status::Ok();
    }
    FoldTree tree;
    tree.value = value;
    const size_t bytes = LayOutTree(w.aggregate, rows_, nullptr, &tree);
    TESSERA_TRY(states.Allocate(&gpu_, std::max<size_t>(bytes, 1)));
    LayOutTree(w.aggregate, rows_, states.As<void>(), &tree);
    WindowColumn columns[kMostStateColumns];
    std::copy_n(out, vm::TypesOf(w).size(), columns);
    CUDA_TRY(StartFoldFrames(w.aggregate, tree, frames, counts.As<uint32_t>(), columns, failed_.As<uint32_t>(),
                             gpu_.stream));
    return Status::Ok();
  }

  GpuDevice& gpu_;
  const Section& section_;
  const uint32_t rows_;
  std::vector<WindowColumn> columns_;  ///< the section's, then those that are added
  RunBuffer scratch_, differs_;
  RunBuffer failed_;  ///< not 0: a row is an error
  Runs partitions_, peers_;
};

}  // namespace

bool HasWindows(const Section& section) {
  const auto is_text = [&](int32_t column) {
    return column >= 0 && section.columns[static_cast<size_t>(column)].storage() == StorageClass::kText;
  };
  return std::all_of(section.after.windows.begin(), section.after.windows.end(), [&](const WindowSpec& w) {
    if (w.function == WindowFunction::kFold || w.distinct || vm::MayMoveBack(w.frame)) return false;
    if (w.function == WindowFunction::kNtile) return w.count < 0 && w.number > 0;
    if (w.function != WindowFunction::kAggregate) return !is_text(w.value) && !w.ignore_nulls;
    return vm::Info(w.aggregate).role == vm::Role::Count || HasFoldTree(w.aggregate);
  });
}

tessera::Result<bool> AddWindows(GpuDevice* gpu, const Section& section, const DeviceRows& rows) {
  return WindowRun(gpu, section, rows).Run();
}

}  // namespace tessera::kernels
