// How far each column that a program reads is decoded: for EXPLAIN.
//
// Start at: DecodeDepths. Any thread.
#pragma once

#include <string>

#include "tablet/catalog/table_info.h"
#include "vm/program/program.h"

namespace tessera {

/// A table of the columns of stored tables that each section reads: how the first tablet stores them, and what the section
/// reads. Empty if it reads none.
std::string DecodeDepths(const vm::Program& program, const Snapshot& snapshot);

}  // namespace tessera
