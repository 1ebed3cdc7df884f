// Columns of integers, decimals, dates and moments as a Parquet file stores them, without arrays on the way: that takes half of
// the time.
//
// Start at: ReadNumbers. Any thread; a reader belongs to one.
#pragma once

#include <parquet/file_reader.h>

#include "tablet/columnar/columnar_plugin.h"
#include "tablet/values/types.h"

namespace tessera::columnar {

/// Reads a column of a row group, which in SQL has `type`. false: its values are not stored as such numbers, or one is none of
/// the type, so that it is to be read as an array; what is in *out then means nothing. May throw.
bool ReadNumbers(parquet::ParquetFileReader* reader, int group, int leaf, const SqlType& type, GroupColumn* out);

/// The same as codes. false: also if a row is NULL or has no code.
bool ReadNumbersAsCodes(parquet::ParquetFileReader* reader, int group, int leaf, const SqlType& type,
                        const CodesWanted& codes);

}  // namespace tessera::columnar
