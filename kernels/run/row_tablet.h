// Rows that are on the device, of a join table or of an earlier section, as the one tablet that a launch reads. Private to
// kernels/.
//
// Start at: RowTablet::AddTo. One thread at a time.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/rows/row_source.h"
#include "kernels/run/batch.h"
#include "tablet/chunk/chunk.h"
#include "vm/encode/section_encoder.h"
#include "vm/program/program.h"

namespace tessera::kernels {

class RowTablet {
 public:
  /// `rows`: nullptr if the section reads a stored table.
  RowTablet(const vm::Section& section, const RowSource* rows) : section_(section), rows_(rows) {}

  bool reads_rows() const { return rows_ != nullptr; }
  /// Adds them to a batch without tablets; no rows: adds none. REQUIRES: reads_rows; the batch refers to this.
  void AddTo(TabletBatch* batch);

 private:
  /// Lets a slot read a column of packed rows. Returns where its upper halves are, if it is wide.
  const int64_t* ReadPacked(size_t column, Chunk* chunk, vm::SlotEncoding* b) const;

  const vm::Section& section_;
  const RowSource* const rows_;
  std::vector<Chunk> chunks_;  ///< what planning has to know of their columns
};

}  // namespace tessera::kernels
