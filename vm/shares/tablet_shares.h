// Which rank scans which rows of a stored table: the only place that knows, and equal on all ranks, so that each row is
// scanned once.
//
// Start at: ShareTablets. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "vm/program/program.h"

namespace tessera::vm {

/// As it is stored, whichever way the program reads it; nullptr: it is not in the snapshot.
const TableInfo* TableOf(const Snapshot& snapshot, const TableRef& ref);
/// The stored table that a section scans; nullptr: it reads something else, or the table is not in the snapshot.
const TableInfo* ScannedTable(const Snapshot& snapshot, const Program& program, const Section& section);

/// Whether `ranks` ranks share the table by tablets. If it is not distributed and has too few of them, or fewer encoded
/// bytes than `replicate_below`, every rank has all of it and scans some of its units.
bool SharedByTablets(const TableInfo& table, int ranks, uint64_t replicate_below);

/// Whether ranks with GPUs each make a join table of all rows of a stored table, in place of exchanging those that each
/// made of its share: the columns that `section` reads are small enough for that to take less time. They need all of its
/// tablets then.
bool IsReadWhole(const TableInfo& table, const Section& section, uint64_t replicate_below);

/// Rows [first, first + rows) of a tablet, and the rank that scans them.
struct TabletPart {
  size_t tablet = 0;
  uint32_t first = 0, rows = 0;
  int rank = 0;
  friend bool operator==(const TabletPart&, const TabletPart&) = default;
};

/// All rows of the table, in their order. The tablets of bucket b of a distributed table go to rank b modulo `ranks`, as
/// those of any other such table. Otherwise ranks get about equally many bytes, and tablets that stand beside each other
/// go to different ranks, because a condition on a column that rows are sorted by leaves such out together. Where
/// ranks would get too different shares, some tablets are cut at tiles.
std::vector<TabletPart> ShareTablets(const TableInfo& table, int ranks);

/// The rows of the table that each rank scans for a section: those of RankPlacement::spans, or as ShareTablets has them. REQUIRES:
/// ranks share the table by tablets, or the section has spans; CheckSpans.
std::vector<TabletPart> PartsOf(const TableInfo& table, const Section& section, int ranks);
/// Whether a section's spans are those of as many ranks, and of the table. Errors: kCorrupt.
Status CheckSpans(const TableInfo& table, const Section& section, int ranks);

}  // namespace tessera::vm
