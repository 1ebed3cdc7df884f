// A program's constants as the machine reads them. Private to vm/machine/.
//
// Start at: MachineConstants. One machine's, and so one thread's.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "vm/meaning/format.h"
#include "vm/meaning/regex.h"
#include "vm/program/program.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

class MachineConstants {
 public:
  MachineConstants(const Program& program, StringPool* strings);

  /// Of 64 bits; texts are identifiers of the pool. REQUIRES: not of 128 bits.
  const int64_t& operator[](size_t constant) const { return narrow_[constant]; }
  bool IsNull(size_t constant) const { return null_[constant] != 0; }
  /// The regular expression of a constant, compiled when it is first asked for.
  const Regex& RegexOf(int32_t constant);
  /// The format of instruction `address`, likewise.
  const Format& FormatOf(int32_t address, const Instruction& in);

 private:
  const Program& program_;
  std::vector<int64_t> narrow_;
  std::vector<uint8_t> null_;
  std::map<int32_t, Regex> regexes_;   ///< by constant
  std::map<int32_t, Format> formats_;  ///< by address
};

}  // namespace tessera::vm
