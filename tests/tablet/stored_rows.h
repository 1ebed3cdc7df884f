// A table with given rows, for tests of what is stored.
//
// Start at: StoreRows. One thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"
#include "tablet/database.h"
#include "tablet/schemes/compression_goal.h"
#include "tablet/values/row_batch.h"

namespace tessera {

/// No rows of the schema's columns.
inline RowBatch NoRows(const TableSchema& schema) {
  RowBatch batch;
  for (const ColumnSchema& c : schema.columns) batch.columns.emplace_back().type = c.type;
  return batch;
}

/// Makes the table with these rows, packed for `goal`.
inline std::shared_ptr<const TableInfo> StoreRows(Database* database, const TableSchema& schema, CompressionGoal goal,
                                                  const RowBatch& rows) {
  EXPECT_TRUE(database->CreateTable(schema, false).ok());
  database->SetCompression(goal);
  const auto writer = std::move(*database->Write(schema.name));
  EXPECT_TRUE(writer->Append(rows, 1).ok());
  EXPECT_TRUE(writer->Commit().ok());
  return (*database->Read())->Find(schema.name);
}

}  // namespace tessera
