// Which texts of a section are only read. A text that is kept needs an identifier of the string pool; to ask for one takes
// longer than most functions, and longer than to read a text where it lies. A text that rows are made of gets its identifier
// when they are emitted: rows that are dropped before need none, and many together take less than one after the other.
// Private to vm/.
//
// Start at: FindTextUses.
#pragma once

#include <vector>

#include "vm/program/program.h"

namespace tessera::vm {

struct SectionTraits;

/// True: the text is only read, or emitted with a row, before the tile ends.
struct TextUses {
  std::vector<bool> slots;    ///< by slot: it is only read
  std::vector<bool> emitted;  ///< by slot: the same, or emitted; as `slots` in a section with loops
  std::vector<bool> results;  ///< by instruction: what it leaves in A; none in a section with loops
  bool loops = false;         ///< over the matches of a join: a tile may run instructions several times
};

TextUses FindTextUses(const Section& section, const SectionTraits& traits);

}  // namespace tessera::vm
