// Which columns of stored tables the values are that a section computes with. Private to compiler/.
//
// Start at: StoredColumns::Of. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "vm/program.h"

namespace tessera {

/// Columns of the stored table behind a section: the one that it scans, or that the sections scan whose rows it reads.
class StoredColumns {
 public:
  StoredColumns(const vm::Program& program, const vm::Section& section) : program_(program), section_(section) {}

  /// The one whose value an operand is in every live row; -1: none.
  int Of(const vm::Operand& o) const;
  /// Those of the first `count` registers.
  std::vector<int> OfRegisters(int32_t count) const;
  /// Those of the keys of a probe or of groups.
  std::vector<int> OfKeys(const vm::Instruction& in) const;
  /// Those of vm::ExchangeKeys.
  std::vector<int> OfExchangeKeys() const;

 private:
  int OfSlot(const vm::Slot& slot) const;
  /// What is stored there, if that is once and of an operand.
  int OfRegister(const vm::Operand& o) const;
  /// A key of the join table has the value that it was probed for.
  int OfPayload(const vm::Operand& o) const;

  const vm::Program& program_;
  const vm::Section& section_;
};

}  // namespace tessera
