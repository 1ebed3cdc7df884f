// The rows of a file into tablets: reads, parses and encodes on several threads at once.
//
// Start at: LoadFile.
#pragma once

#include "base/status.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/file_reader.h"
#include "tablet/load/tablet_cutter.h"

namespace tessera {

/// Adds all rows of `reader` to `load`, on `options.threads` threads, and encodes them; does not finish the load. Of several
/// errors the first in the file is returned, whatever thread met it when. Of the options these matter here: `threads`,
/// `cancel`, `progress`, `rules`, `ignored`.
Status LoadFile(FileReader* reader, const CopyFromOptions& options, TabletCutter* load);

}  // namespace tessera
