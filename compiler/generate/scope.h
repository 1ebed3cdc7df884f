// Where the leaves of expressions are found: slots of a table, payload of a join, results of an earlier section.
// Private to compiler/.
//
// Start at: Scope::Find. One thread at a time.
#pragma once

#include "base/status.h"
#include "compiler/query/bound_query.h"
#include "compiler/query/value_range.h"
#include "vm/program/program.h"

namespace tessera {

class SectionBuilder;

class Scope : public LeafRanges {
 public:
  /// The operand that holds a leaf (kColumn, kGroup, kAggregate), or false if the leaf must be computed by Compute.
  virtual bool Find(const Expr& leaf, SectionBuilder* b, vm::Operand* operand) = 0;
  /// Leaves the value of a leaf that Find refused in its accumulator.
  virtual Status Compute(const Expr& leaf, SectionBuilder* b);
  /// The operand that holds the value of a kFunction that was computed before; false if there is none.
  virtual bool FindComputed(const Expr&, SectionBuilder*, vm::Operand*) { return false; }
  /// The slot of a stored table's column that predicates and dictionary sections may use, or -1.
  virtual int TableSlot(const Expr&, SectionBuilder*) { return -1; }
};

}  // namespace tessera
