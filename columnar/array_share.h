// A share whose rows come as arrays: a row group of Parquet, a record batch of Arrow.
//
// Start at: ArrayShare. A share belongs to one thread at a time.
#pragma once

#include <arrow/array.h>
#include <arrow/chunked_array.h>

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/columnar/columnar_plugin.h"
#include "tablet/load/file_reader.h"

namespace tessera::columnar {

using Arrays = std::vector<std::shared_ptr<arrow::ChunkedArray>>;

/// What the shares of a file have in common.
struct ArrayFile {
  ColumnarSource source;
  std::vector<ColumnarField> fields;  ///< that are wanted, in their order
};

/// An error of Guarded() as one of a share, without the name and the place that come before it in any case.
FileError ErrorOfShare(const Status& status, const std::string& name, const std::string& place);

class ArrayShare : public FileShare {
 public:
  ArrayShare(const ArrayFile* file, std::string place, uint64_t bytes)
      : file_(*file), place_(std::move(place)), bytes_(bytes) {}

  FileRows Read() const final;
  uint64_t bytes() const final { return bytes_; }
  const std::string& path() const final { return file_.source.name; }
  uint64_t first_line() const final { return 0; }
  std::string place() const final { return place_; }

 protected:
  const ArrayFile& file() const { return file_; }

 private:
  /// The wanted columns, each with `*rows` values. May throw.
  virtual Status ReadArrays(Arrays* arrays, int64_t* rows) const = 0;
  void Append(const Arrays& arrays, FileRows* rows) const;

  const ArrayFile& file_;
  const std::string place_;  ///< "row group 2"
  const uint64_t bytes_;
};

}  // namespace tessera::columnar
