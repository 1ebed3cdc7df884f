// A fold of kind kFirst, which needs the first row of each key alone: a unit's other rows are dropped while it runs, so
// that few are sorted. Private to vm/.
//
// Start at: FirstOfKeys::Cut. Shared by the workers of a section.
#pragma once

#include <atomic>
#include <cstddef>

#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

class FirstOfKeys {
 public:
  /// Cuts nothing if the section has no such fold, or if its keys are not equal where their bits are. (Without keys
  /// TopRows cuts.)
  explicit FirstOfKeys(const Section& section);

  /// Leaves the first row of each key if a unit's rows have become many, or at the unit's end. The others keep their
  /// order. Once that left out few of them, nothing is cut any more.
  void Cut(bool end, const StringPool& strings, RowSet* rows);

 private:
  const Section& section_;
  std::atomic<bool> cuts_{false};
};

}  // namespace tessera::vm
