// What the ranks do with a section of a program: which rows each runs over, and which may stay where they were made.
#pragma once

#include <cstdint>
#include <vector>

#include "vm/program/program.h"
#include "vm/program/section_traits.h"

namespace tessera::vm {

/// Whether every rank runs its portion of the section: of a stored table, or of the rows of a join table, which every
/// rank has. Sections over results that are distributed are shared, too; others run on the master alone.
bool SharedByRanks(const Section& section);
/// Bytes of memory that a row of the join table takes which the section builds, its place in the index included.
uint64_t BuildRowBytes(const Section& section);
/// Whether the section makes rows, all that there are, in any order, and nothing more is done with them.
bool MakesPlainRows(const Section& section);
/// Whether the section's rows, which are co-located, stay on their ranks however few they are: plain rows, and those that
/// meet others there.
bool MustStayDistributed(const Program& program, const ProgramTraits& traits, int32_t section);
/// By section: whether its rows may stay distributed over the ranks that made them, because those that read them need
/// not see them all together.
std::vector<bool> MayStayDistributed(const Program& program, const ProgramTraits& traits);
/// The columns of a section's rows by which they are exchanged, so that one rank can finish the rows with equal values
/// without the others': keys of groups and of folds, PARTITION BY of windows. Empty: only one rank can.
std::vector<int32_t> ExchangeKeys(const Section& section);
/// Whether ranks may keep the rows of the join table that they have made, if these have no room on every rank: the table
/// has no keys, and one section reads it, as its source or by an inner join. There the rows come to all in pieces.
bool MayBeInShares(const Program& program, const ProgramTraits& traits, int join);

}  // namespace tessera::vm
