// Results of sections that stay on the device, because the sections that read them run there. Private to kernels/.
//
// Start at: KeptResults::Keep. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/status.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/rows/column_summary.h"
#include "kernels/rows/device_rows.h"
#include "kernels/rows/pack_rows.h"
#include "kernels/rows/row_source.h"
#include "tablet/values/types.h"
#include "vm/rows/row_set.h"

namespace tessera::kernels {

/// Keeps them as stored tablets are, with the least and the greatest value of each column, and encoded if that saves a
/// quarter and there is memory to do it.
class KeptResults {
 public:
  explicit KeptResults(GpuDevice* gpu) : gpu_(*gpu) {}

  /// Keeps the rows that a section made, which are taken from *rows.
  Status Keep(int section, const std::vector<SqlType>& columns, DeviceRows* rows);
  /// The same for rows that other ranks get: in columns of 64 bits.
  Status KeepUnpacked(int section, const std::vector<SqlType>& columns, DeviceRows* rows);
  /// The same for rows that are packed. `summaries`: of the columns, as for PackedRows.
  void KeepPacked(int section, const std::vector<SqlType>& columns, std::vector<ColumnSummary> summaries,
                  const PackedRows& packed, RunBuffer* memory);
  /// Keeps *rows as those of `section` after the rows of another section, which has columns of the same classes, and forgets
  /// that one. More may follow: Finish has to be called before they are read. false: there is no room. REQUIRES:
  /// Has(before).
  tessera::Result<bool> KeepAfter(int before, int section, const std::vector<SqlType>& columns, const DeviceRows& rows);
  /// No rows follow any more.
  Status Finish(int section);
  bool Has(int section) const { return results_.contains(section); }
  /// REQUIRES: Has(section), and Finish where rows came after others.
  const RowSource& source(int section) const { return results_.at(section).source; }
  /// REQUIRES: KeepUnpacked, as for summaries.
  DeviceRows* rows(int section) { return &results_.at(section).rows; }
  /// Of the first kMaxSummaries columns.
  const std::vector<ColumnSummary>& summaries(int section) const { return results_.at(section).summaries; }
  /// Copies the rows to the host. REQUIRES: Has(section).
  tessera::Result<vm::RowSet> Fetch(int section, const std::vector<SqlType>& columns);
  void Drop(int section) { results_.erase(section); }

 private:
  struct Kept {
    DeviceRows rows;
    RunBuffer packed;  ///< instead of `rows`
    RowSource source;
    std::vector<ColumnSummary> summaries;
    std::vector<SqlType> columns;  ///< of rows that others may follow; they have no summaries yet
  };
  /// Packs the rows if that is worth it.
  Status Pack(const std::vector<SqlType>& columns, Kept* kept);
  static void SetPacked(const PackedRows& packed, Kept* kept);
  /// Rows that are packed, where the device has no memory to unpack them.
  tessera::Result<vm::RowSet> UnpackOnHost(const Kept& kept, const std::vector<SqlType>& columns) const;
  /// The rows of `kept` become the first of *rows.
  Status CopyTo(const Kept& kept, DeviceRows* rows);

  GpuDevice& gpu_;
  std::map<int, Kept> results_;  ///< by section
};

}  // namespace tessera::kernels
