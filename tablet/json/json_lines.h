// Files of JSON lines: an object a line. Members are columns, in the order in which they come first; one that a line lacks is
// NULL. Compressed files and other encodings are read as CSV files are.
//
// Start at: SniffJsonLines, OpenJsonReader.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/load/copy_options.h"
#include "tablet/load/file_reader.h"
#include "tablet/load/file_spec.h"

namespace tessera {

struct SniffedJson {
  CopyFromOptions options;
  TableSchema schema;             ///< names in lower case
  std::vector<std::string> keys;  ///< the names of the members
  double bytes_of_row = 1;
};

/// Names and types by the first lines: BOOLEAN, BIGINT, DOUBLE PRECISION, DATE, TIMESTAMP and TEXT, which nested values and
/// those of several kinds are. Errors: kIo; kSql, a line is no object.
Result<SniffedJson> SniffJsonLines(const std::string& path, const std::string& name, const FileSpec& spec);

/// `keys`: the members, one for each of options.columns. Errors: kIo.
Result<std::unique_ptr<FileReader>> OpenJsonReader(const std::string& path, const std::string& name,
                                                   const TableSchema& schema, const std::vector<std::string>& keys,
                                                   const CopyFromOptions& options,
                                                   size_t block_bytes = size_t{1} << 20);

}  // namespace tessera
