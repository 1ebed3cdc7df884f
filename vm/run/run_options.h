// How a program is to be run.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tablet/values/row_batch.h"
#include "vm/run/device.h"
#include "vm/run/run_settings.h"
#include "vm/shares/exchange.h"

namespace tessera::vm {

class RowMarks;
class StringPool;

struct RunOptions {
  Exchange* exchange = nullptr;   ///< nullptr: this process runs alone; each rank has its own
  SectionBackend* gpu = nullptr;  ///< nullptr: everything on the host
  std::string gpu_name = {};      ///< for statistics
  bool gpu_required = false;      ///< a section over a stored table that the GPU cannot run is an error
  uint64_t gpu_keep_from = 1001;  ///< results of fewer rows, and the sections that read them, go to the host
  bool profile = false;           ///< measure joins one by one, for EXPLAIN ANALYZE
  RunSettings settings = {};
  /// Set by another thread; the run ends with kCancelled within some milliseconds. May be nullptr.
  const std::atomic<bool>* cancel = nullptr;
  std::shared_ptr<StringPool> strings;   ///< of a program that has run before; nullptr: it gets a new one
  RowMarks* marks = nullptr;             ///< it takes the result, not the RowConsumer
  std::function<void(double)> progress;  ///< fraction done, 0..1, from any thread; may be empty
};

/// Takes result rows, batch by batch, in order. An error ends the run and is returned by it.
using RowConsumer = std::function<Status(RowBatch&&)>;

}  // namespace tessera::vm
