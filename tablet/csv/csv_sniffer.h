// What a CSV file is, by its first rows: encoding, delimiter, quotes, header, names and types of its columns.
//
// Start at: SniffCsv. Any thread.
#pragma once

#include <string>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/file_spec.h"

namespace tessera {

struct SniffedCsv {
  CopyFromOptions options;
  TableSchema schema;  ///< columns only, all of which may be NULL
  double bytes_of_row = 1;
};

/// What `spec` says is so; the rest is guessed. Delimiters are comma, semicolon, tab and bar; quotes " and ' or none. Of
/// several that make the same number of fields of each record, the one that makes most is taken. A file without rows has
/// the columns of its header, or one. `name`: of the file for messages. Errors: kIo; kSql, it does not have what was said;
/// kUnsupported, it is no text.
Result<SniffedCsv> SniffCsv(const std::string& path, const std::string& name, const FileSpec& spec);

}  // namespace tessera
