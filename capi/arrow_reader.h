// A stream of Arrow's C stream interface as a reader of rows: they are loaded as those of a file are.
//
// Start at: ArrowSource, OpenArrowReader.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "capi/arrow.h"
#include "capi/arrow_types.h"
#include "tablet/load/file_reader.h"
#include "tablet/values/row_batch.h"

namespace tessera {

/// Batches of a stream, one thread at a time.
class ArrowSource {
 public:
  /// Takes the stream from *stream. Errors: those of the stream; kUnsupported, a column has a type that no column of a table
  /// can have.
  static Result<std::unique_ptr<ArrowSource>> Open(ArrowArrayStream* stream);

  const TableSchema& schema() const { return schema_; }
  /// The next array, without a release at the end. Errors: those of the stream.
  Result<OwnedArrow<ArrowArray>> Next();
  /// Some rows of an array. Any thread. Errors: those of AppendArrow.
  Result<RowBatch> Read(const ArrowArray& array, int64_t first, int64_t count) const;
  /// The same of one column.
  Result<ColumnVector> ReadColumn(const ArrowArray& array, size_t column, int64_t first, int64_t count) const;

 private:
  explicit ArrowSource(ArrowArrayStream* stream) : stream_(stream) {}
  Status ErrorOf(int code);

  OwnedArrow<ArrowArrayStream> stream_;
  OwnedArrow<ArrowSchema> type_;
  TableSchema schema_;
};

/// `name`: for messages.
std::unique_ptr<FileReader> OpenArrowReader(std::shared_ptr<ArrowSource> source, std::string name);

}  // namespace tessera
