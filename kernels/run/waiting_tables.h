// Tables of joins whose two sides are exchanged by key: a rank's rows wait here until those that probe the table have been
// made, too, because it takes both to decide where rows go. Private to kernels/.
//
// Start at: WaitingTables::Exchange. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "kernels/join/device_joins.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/ranks/exchange_join.h"
#include "kernels/ranks/rank_links.h"
#include "kernels/ranks/rank_texts.h"
#include "kernels/rows/device_rows.h"
#include "kernels/run/kept_results.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/run/device.h"
#include "vm/shares/exchange.h"

namespace tessera::kernels {

/// What this rank has of a table, and what is known of the whole.
struct WaitingTable {
  DeviceRows rows;
  std::vector<vm::RowSet> on_host;       ///< in place of `rows`, if they outgrew the device
  std::vector<ColumnSummary> summaries;  ///< of the first kMaxSummaries columns, over all ranks
  uint64_t all_rows = 0;                 ///< of all ranks
  uint64_t source_rows = 0;              ///< of the whole table that they come from
  vm::KeyRange keys = {};                ///< of the first key, over all ranks
};

class WaitingTables {
 public:
  explicit WaitingTables(GpuDevice* gpu) : gpu_(*gpu) {}

  /// Takes what a rank has made of a table.
  void Add(int join, WaitingTable* table) { tables_[join] = std::move(*table); }
  /// All ranks: sends the rows of the table, and those of section context.section, which `results` has unpacked, if there
  /// are any, to the ranks of their keys. The table is in `joins` then, and the rows that have come are in `results`. `can`,
  /// `is_inner`, `mine`, result: as for DeviceRun::ExchangeJoin.
  tessera::Result<bool> Exchange(const vm::SectionContext& context, int join, bool can, bool is_inner, Status mine,
                                 DeviceJoins* joins, KeptResults* results, RankLinks* links, RankTexts* texts);
  /// The rows of a table, which is not here any more.
  tessera::Result<vm::RowSet> Take(const vm::Program& program, int join, ThreadPool* pool);

 private:
  /// Keeps what has come of both sides.
  Status TakeOver(const vm::SectionContext& context, int join, JoinExchange* exchange, DeviceJoins* joins,
                  KeptResults* results);
  /// Makes the table of the rows that have come.
  Status LayOut(const vm::SectionContext& context, int join, DeviceRows* rows, DeviceJoins* joins);

  GpuDevice& gpu_;
  std::map<int, WaitingTable> tables_;  ///< by join
};

}  // namespace tessera::kernels
