// What a statement returns, as a stream of Arrow's C stream interface. All of it is kept until the stream is read: batches
// are converted as they come, and a statement that runs does not wait for its reader.
//
// Start at: ArrowResult. The thread of the connection; the stream is its reader's.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "capi/arrow.h"
#include "session/session.h"

namespace tessera {

class ArrowResult final : public ResultWriter {
 public:
  /// `text_column`: the name of the only column of what a statement returns as text, a row for each line. `keeps_rows`: false
  /// if they are not asked for.
  ArrowResult(std::string text_column, bool keeps_rows)
      : text_column_(std::move(text_column)), keeps_rows_(keeps_rows) {}
  ~ArrowResult() override;
  ArrowResult(const ArrowResult&) = delete;
  ArrowResult& operator=(const ArrowResult&) = delete;

  Status Begin(const std::vector<vm::ResultColumn>& columns) override;
  Status Rows(RowBatch&& batch) override;
  Status End() override { return {}; }
  Status Done(const std::string& command_tag) override;
  Status Text(const std::string& text) override;
  Status Analyzed(const Analysis& analysis) override;
  Status Explained(const Explanation& explanation) override;

  /// What has come up to now, as a stream; then nothing is left here. Errors: those of ExportRows.
  Status MoveTo(ArrowArrayStream* out);
  /// "" if there was none, as of a SELECT.
  const std::string& command_tag() const { return command_tag_; }
  uint64_t rows() const { return rows_; }

 private:
  Status AddLines();

  const std::string text_column_;
  const bool keeps_rows_;
  std::vector<vm::ResultColumn> columns_;
  std::vector<ArrowArray> batches_;
  std::string command_tag_, text_;
  uint64_t rows_ = 0;
};

/// The number at the end of the tag of a statement that changes rows; -1: it is none. "SELECT 5" is CREATE TABLE AS.
int64_t ChangedRows(std::string_view command_tag);

/// Another stream over all batches of one, wherever that stands. Errors: it is none of ExportStream.
Status CopyStream(ArrowArrayStream* from, ArrowArrayStream* out);

/// A stream of these batches, all of these columns.
void ExportStream(std::vector<vm::ResultColumn> columns, std::vector<ArrowArray> batches, ArrowArrayStream* out);

}  // namespace tessera
