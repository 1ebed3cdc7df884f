// Rows in files of folders that are named after their values, as Hive has them: year=2024/month=7/data_0.parquet.
//
// Start at: PartitionWriter.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tablet/files/new_directory.h"
#include "tablet/load/row_writer.h"

namespace tessera {

/// NULL is __HIVE_DEFAULT_PARTITION__; letters that a name of a folder may not have are %XX.
std::string PartitionFolder(const std::string& column, const ColumnVector& values, size_t row);

/// The directory appears under its name when Close() succeeds. One file is open at a time.
class PartitionWriter final : public RowWriter {
 public:
  /// Opens a file for the columns that are not in `keys`.
  using Open = std::function<Result<std::unique_ptr<RowWriter>>(const std::string& path)>;

  /// `keys`: column numbers, with their names; `ending`: of files, with its point. Errors: as NewDirectory::Make.
  static Result<std::unique_ptr<RowWriter>> Create(const std::string& directory,
                                                   std::vector<std::pair<int, std::string>> keys, std::string ending,
                                                   Open open);

  /// REQUIRES: rows with the same keys follow each other, also over batches.
  Status Append(const RowBatch& batch) override;
  Status Close() override;

 private:
  PartitionWriter(NewDirectory directory, std::vector<std::pair<int, std::string>> keys, std::string ending, Open open)
      : directory_(std::move(directory)), keys_(std::move(keys)), ending_(std::move(ending)), open_(std::move(open)) {}

  bool IsKey(size_t column) const;
  /// Whether two rows have the same keys.
  bool IsSame(const RowBatch& batch, size_t a, size_t b) const;
  Status Begin(const std::string& folder);
  Status Finish();

  NewDirectory directory_;
  const std::vector<std::pair<int, std::string>> keys_;
  const std::string ending_;
  const Open open_;
  std::string folder_;  ///< of writer_
  std::unique_ptr<RowWriter> writer_;
};

}  // namespace tessera
