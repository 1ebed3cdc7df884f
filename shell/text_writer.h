// What the writers of results as text share. Private to shell/result_*.cc.
//
// Start at: RowText. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "compiler/query/bound_query.h"
#include "shell/plan_tree_text.h"
#include "shell/result_options.h"
#include "shell/statistics_text.h"

namespace tessera {

/// Text is handed on in pieces of about this many bytes.
inline constexpr size_t kPiece = 1 << 16;
/// Threads write a batch in parts of at most kMostRowsEach rows, if the first row says that these have not much more than kPiece
/// bytes, and kPartsEach parts each before their text is handed on. A batch with more bytes of TEXT is not shared.
inline constexpr size_t kMostRowsEach = 1024, kPartsEach = 4, kMostBytesShared = size_t{16} << 20;

/// A value of a batch, or what stands for NULL.
inline void AppendValue(const ColumnVector& column, size_t row, std::string_view null_text, std::string* out) {
  if (column.IsNull(row)) {
    *out += null_text;
  } else {
    AppendText(column, row, out);
  }
}

/// What the formats share: names, buffer, text and command tags.
class TextWriter : public ResultWriter {
 public:
  TextWriter(const ResultTextOptions& options, TextSink sink, std::function<void(const std::string&)> done)
      : options_(options), sink_(std::move(sink)), done_(std::move(done)) {}

  Status Done(const std::string& command_tag) override {
    if (done_) done_(command_tag);
    return Status::Ok();
  }
  Status Text(const std::string& text) override { return sink_(text); }
  Status Explained(const Explanation& explanation) override {
    return sink_(ExplanationText(explanation, options_.max_width));
  }
  Status Analyzed(const Analysis& analysis) override { return sink_("\n" + StatisticsText(analysis)); }
  Status End() override { return Flush(0); }
  void SetHelpers(ThreadPool* helpers) override { helpers_ = helpers; }

 protected:
  /// Hands the buffer on if it holds more than `limit` bytes.
  Status Flush(size_t limit = kPiece) {
    if (buffer_.size() <= limit) return Status::Ok();
    Status status = sink_(buffer_);
    buffer_.clear();
    return status;
  }
  std::string NullText(const char* otherwise) const { return options_.null_text.value_or(otherwise); }

  ThreadPool* helpers() const { return helpers_; }

  const ResultTextOptions options_;
  std::string buffer_;

 private:
  TextSink sink_;
  std::function<void(const std::string&)> done_;
  ThreadPool* helpers_ = nullptr;
};

/// Formats that write one row after the other.
class RowText : public TextWriter {
 public:
  using TextWriter::TextWriter;

  Status Rows(RowBatch&& batch) final {
    LookAt(batch);
    size_t bytes = 0;
    for (const ColumnVector& column : batch.columns) bytes += column.bytes.size();
    if (Workers(helpers()) > 1 && batch.rows > kMostRowsEach && bytes <= kMostBytesShared) {
      TESSERA_TRY(Share(batch));
    } else {
      for (size_t row = 0; row < batch.rows; ++row) {
        AppendRow(batch, row, &buffer_);
        TESSERA_TRY(Flush());
      }
    }
    rows_ += batch.rows;
    return Status::Ok();
  }

 protected:
  /// Before the rows of a batch.
  virtual void LookAt(const RowBatch&) {}
  /// Any thread.
  virtual void AppendRow(const RowBatch& batch, size_t row, std::string* out) const = 0;
  /// Of a row of the batch, among all rows.
  uint64_t RowNumber(size_t row) const { return rows_ + row; }
  /// Whether it is the first of all rows.
  bool IsFirst(size_t row) const { return RowNumber(row) == 0; }

 private:
  /// Threads write the rows part by part. What they have written is handed on in order.
  Status Share(const RowBatch& batch) {
    std::string one;
    AppendRow(batch, 0, &one);
    const size_t rows_each = std::clamp<size_t>(kPiece / std::max<size_t>(one.size(), 1), 1, kMostRowsEach);
    std::vector<std::string> parts(Workers(helpers()) * kPartsEach);
    for (size_t at = 0; at < batch.rows; at += parts.size() * rows_each) {
      TESSERA_TRY(ForEach(helpers(), parts.size(), [&](size_t part) {
        const size_t first = std::min(batch.rows, at + part * rows_each), end = std::min(batch.rows, first + rows_each);
        std::string text;  // (Those of two threads in one cache line would be slow.)
        for (size_t row = first; row < end; ++row) AppendRow(batch, row, &text);
        parts[part] = std::move(text);
        return Status::Ok();
      }));
      for (const std::string& part : parts) {
        buffer_ += part;
        TESSERA_TRY(Flush());
      }
    }
    return Status::Ok();
  }

  uint64_t rows_ = 0;  ///< of earlier batches
};

}  // namespace tessera
