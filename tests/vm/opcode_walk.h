// The opcode walk: runs every row of vm/program/opcodes.def, with every kind of operand, code width and encoding, through an
// executor and compares what comes out, row by row, with a second meaning of each opcode that is written here in plain
// C++ and shares nothing with vm/. The same walk runs on the host and, given a backend, on a GPU.
//
// A row of opcodes.def that the walk does not know is a failure, so is one that it never ran in every form: see
// WalkReport.
//
// Start at: RunOpcodeWalk. One walk at a time per backend.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tablet/catalog/table_info.h"
#include "vm/program/program.h"
#include "vm/run/device.h"

namespace tessera::test {

struct WalkOptions {
  int threads = 2;    ///< of the executor
  uint64_t seed = 1;  ///< of values, sizes, masks and random programs
  /// Runs only cases whose name contains this ("AddIX slot", "join", "predicate"); coverage is checked only if it is
  /// empty.
  std::string only;
  bool large = true;                ///< also tables of 2^20 - 1, 2^20 and 2^20 + 1 rows
  int repeats = 1;                  ///< times each case runs, with other values, sizes and masks
  size_t max_failures = 25;         ///< the walk ends after this many
  size_t greatest_rows = SIZE_MAX;  ///< no table has more
  /// If it is not empty, nothing is run: it gets each case's program, which is valid, with its tables.
  std::function<void(const vm::Program&, const std::shared_ptr<const Snapshot>&)> collect;
};

struct WalkReport {
  uint64_t programs = 0;                  ///< that were run
  uint64_t rows = 0;                      ///< of their tables
  uint64_t errors = 0;                    ///< programs that had to end in an SQL error, and did
  uint64_t gpu_sections = 0;              ///< sections that ran on the GPU
  uint64_t host_sections = 0;             ///< sections over stored tables that ran on the host
  std::map<std::string, double> seconds;  ///< by part of the walk
  /// Opcode -> programs in which it ran on the backend (0: never). Without a backend: on the host.
  std::map<std::string, uint64_t> ran;
  /// Why the backend declined a section -> how often.
  std::map<std::string, uint64_t> declined;
  /// Opcodes marked Any that never ran on the backend, because it declined every section that has them.
  std::vector<std::string> only_on_host;
  /// What went wrong, with the case, the rows and the listing. Empty: everything agreed and was covered.
  std::vector<std::string> failures;

  std::string Summary() const;
};

/// Walks on the host if `gpu` is nullptr. Otherwise every section over a stored table that `gpu` does not decline must
/// run there, and opcodes that only the host has are walked in dictionary sections only. Coverage on a GPU: an opcode
/// marked Any that it declined in some section must be in WalkReport::only_on_host or have run there all the same;
/// Build never does, the host makes its tables.
WalkReport RunOpcodeWalk(const WalkOptions& options, vm::SectionBackend* gpu = nullptr);

}  // namespace tessera::test
