// Which rows of a source that all ranks have, in the same order, are whose: the only place that knows, and equal on all
// ranks, so that each row has one.
//
// Start at: KeepShare. Pure functions; any thread.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace tessera::vm {

/// The rows of one rank, numbered from 0 in the order of the source.
struct SourceShare {
  uint64_t rows = 0;
  uint32_t piece_rows = 1;
  uint32_t rank = 0, ranks = 1;

  /// The row of the source that is the i-th of the share. REQUIRES: i < rows.
  TESSERA_HD uint64_t At(uint64_t i) const {
    const uint64_t turn = i / piece_rows;
    // Every other turn goes backwards, so that no rank always has the greater ones of sorted rows.
    const uint64_t place = turn % 2 == 0 ? rank : ranks - 1 - rank;
    return (turn * ranks + place) * piece_rows + i % piece_rows;
  }
};

/// The rows are cut into pieces, which are dealt out to the ranks one by one: large enough that the rows of a piece lie
/// close together, small enough that each rank gets many, and so its part of the rows that have very many matches.
SourceShare KeepShare(uint64_t rows, int rank, int ranks);

}  // namespace tessera::vm
