// COPY table TO file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/row_writer.h"

namespace tessera {

/// Writes rows as CSV, quoted after RFC 4180: NULL as null_string, a text equal to null_string quoted. The file appears
/// under its name only when Close() succeeds.
class CsvWriter : public RowWriter {
 public:
  static Result<std::unique_ptr<CsvWriter>> Create(const std::string& file, const CopyFormat& options,
                                                   const std::vector<std::string>& column_names);
};

}  // namespace tessera
