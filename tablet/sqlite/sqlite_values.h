// Values of SQLite as those of a column. Private to tablet/sqlite/.
//
// Start at: AppendStored. Any thread.
#pragma once

#include "base/status.h"
#include "tablet/sqlite/sqlite_connection.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/time_zone.h"

namespace tessera {

/// Appends the value in column `number` of the query's row. `zone`: of moments that do not say their own. Errors: kSql, the
/// value is none of the column's type.
Status AppendStored(const SqliteQuery& query, int number, const TimeZone* zone, ColumnVector* out);

}  // namespace tessera
