// What an aggregate leaves in rows of groups: one column, or one for each word of a State of several. Such rows are what
// section results, spilled groups and ranks have of a group; GroupTable::Merge makes states of them again. Any thread.
//
// Start at: AggregateColumns.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "vm/program/program.h"

namespace tessera::vm {

/// The classes of the columns of an aggregate; none if the opcode feeds no aggregate.
std::span<const AccumulatorSpec> ColumnClasses(Opcode aggregate);

/// The type of a column that holds one word of a state of several, or a partial one of that class.
SqlType WordType(AccumulatorSpec word);

/// The first column of each aggregate among the section's columns, after the keys, and one number more: how many
/// columns there are. REQUIRES: the section's sink is kGroups.
std::vector<size_t> AggregateColumns(const Section& section);

}  // namespace tessera::vm
