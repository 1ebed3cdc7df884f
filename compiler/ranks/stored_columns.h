// Which columns of stored tables the values are that a section computes with, and by which join tables are probed. Private to compiler/.
//
// Start at: StoredColumns::Of, ProbesOf. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "vm/program/section_traits.h"

namespace tessera {

/// Columns of the stored table that a section reads: the one that it scans, or that the sections scan whose rows it reads.
class StoredColumns {
 public:
  /// `traits`: of the program.
  StoredColumns(const vm::Program& program, const vm::ProgramTraits& traits, const vm::Section& section)
      : program_(program), traits_(traits), section_(section), own_(traits.Of(program, section)) {}

  /// The one whose value an operand is in every live row; -1: none.
  int Of(const vm::Operand& o) const;
  /// Those of the first `count` registers.
  std::vector<int> OfRegisters(int32_t count) const;
  /// Those of the keys of a probe or of groups: the first one, and the registers from there on if there are several.
  std::vector<int> OfKeys(const vm::Operand& first, int32_t keys) const;
  /// Those of vm::ExchangeKeys.
  std::vector<int> OfExchangeKeys() const;

 private:
  int OfSlot(const vm::Slot& slot) const;
  /// A key of the join table has the value that it was probed for.
  int OfPayload(const vm::Operand& o) const;

  const vm::Program& program_;
  const vm::ProgramTraits& traits_;
  const vm::Section& section_;
  const vm::SectionTraits& own_;
};

/// A place where a join table is probed, and the stored column of each key there, as StoredColumns::OfKeys.
struct JoinProbe {
  size_t section = 0;
  std::vector<int> columns;
};
/// All of them; nothing if a section uses the table in another way than to probe it, or asks for its least and greatest key
/// without: ranks that each have some of its rows know those of their own.
std::optional<std::vector<JoinProbe>> ProbesOf(const vm::Program& program, const vm::ProgramTraits& traits, int join);

/// Whether another section's rows are put after those of this one.
bool IsAppendedTo(const vm::Program& program, int32_t number);

}  // namespace tessera
