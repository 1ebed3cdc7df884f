// COPY table TO file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/load/copy_options.h"
#include "tablet/values/row_batch.h"

namespace tessera {

/// Writes rows as CSV, quoted after RFC 4180: NULL as null_string, a text equal to null_string quoted. The file appears
/// under its name only when Close() succeeds.
class CsvWriter {
 public:
  static Result<std::unique_ptr<CsvWriter>> Create(const std::string& file, const CopyToOptions& options,
                                                   const std::vector<std::string>& column_names);
  virtual ~CsvWriter() = default;
  virtual Status Append(const RowBatch& batch) = 0;
  virtual Status Close() = 0;
};

}  // namespace tessera
