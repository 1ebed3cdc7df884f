// What the footer of a Parquet file says of the values of a column in a row group, as far as it is good for skipping it.
//
// Start at: StatisticsOf. Any thread.
#pragma once

#include <parquet/metadata.h>

#include "tablet/columnar/columnar_plugin.h"
#include "tablet/values/types.h"

namespace tessera::columnar {

/// `type`: of the column in SQL. May throw.
ColumnarStatistics StatisticsOf(const parquet::ColumnChunkMetaData& chunk, const SqlType& type);

}  // namespace tessera::columnar
