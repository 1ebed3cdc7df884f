// DESCRIBE, SUMMARIZE, SHOW TABLES, tessera_chunks() and tessera_cache() -> Query. Private to compiler/.
//
// Start at: DescribeQuery. Pure functions; any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/query/bound_query.h"
#include "tablet/catalog/table_info.h"
#include "tablet/files/cache_report.h"
#include "tablet/values/row_batch.h"

namespace tessera {

/// A query of rows of values of such types, in their order.
std::unique_ptr<Query> ConstantRows(const std::vector<std::string>& names, const std::vector<SqlType>& types,
                                    const std::vector<std::vector<Value>>& rows);

/// A row for each column of the result of `query`: its name, its type, whether it may be NULL, and its part in the
/// primary key.
std::unique_ptr<Query> DescribeQuery(const Query& query);

/// A row for each column of the result of `query`: name, type, least and greatest value as texts, number of different
/// values, mean, standard deviation, number of values, number of NULLs.
std::unique_ptr<Query> SummarizeQuery(std::unique_ptr<Query> query);

/// A row for each column of each tablet of the table: how its values are stored, see ChunkStorage. Errors: of reading.
Result<std::unique_ptr<Query>> ChunksQuery(const TableInfo& table);

/// For each cache a row of what it has done, and one for each column of a table of which it holds something.
std::unique_ptr<Query> CacheQuery(const Snapshot& snapshot, const std::vector<CacheReport>& caches);

/// A row for each table and each view: its name.
std::unique_ptr<Query> TablesQuery(const Snapshot& snapshot);

}  // namespace tessera
