// A host interpreter of a dictionary section. Private to vm/ and to what encodes tablets.
//
// Start at: MakeEntryMachine. One thread at a time.
#pragma once

#include <memory>

#include "vm/encode/dictionary_map.h"
#include "vm/program/program.h"
#include "vm/rows/string_pool.h"

namespace tessera::vm {

std::unique_ptr<EntryInterpreter> MakeEntryMachine(const Program& program, int section, StringPool* strings);

}  // namespace tessera::vm
