// COPY table TO file.
#include "tablet/csv/csv_writer.h"

#include <cerrno>

#include "base/interruptible_io.h"
#include "base/status.h"
#include "tablet/files/io_error.h"
#include "tablet/files/replaced_file.h"
#include "tablet/load/copy_options.h"
#include "tablet/values/row_batch.h"

namespace tessera {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

class FileCsvWriter final : public CsvWriter {
 public:
  FileCsvWriter(const CopyFormat& options) : options_(options) {
    // Control characters too: a file that begins with some of them is taken for one of another kind.
    for (char c = 0; c < ' '; ++c) special_[static_cast<uint8_t>(c)] = c != '\t';
    special_[static_cast<uint8_t>(options.delimiter)] = special_[static_cast<uint8_t>(options.quote)] = true;
  }

  Status Open(const std::string& file, const std::vector<std::string>& column_names) {
    TESSERA_TRY(file_.Open(file));
    if (options_.header) {
      for (size_t c = 0; c < column_names.size(); ++c) {
        if (c > 0) buffer_ += options_.delimiter;
        AppendField(column_names[c]);
      }
      buffer_ += '\n';
    }
    return {};
  }

  Status Append(const RowBatch& batch) override {
    std::string text;
    for (size_t row = 0; row < batch.rows; ++row) {
      for (size_t c = 0; c < batch.columns.size(); ++c) {
        if (c > 0) buffer_ += options_.delimiter;
        if (batch.columns[c].IsNull(row)) {
          buffer_ += options_.null_string;
          continue;
        }
        text.clear();
        AppendText(batch.columns[c], row, &text);
        AppendField(text);
      }
      buffer_ += '\n';
      if (buffer_.size() >= kBufferBytes) TESSERA_TRY(Flush());
    }
    return {};
  }

  Status Close() override {
    if (!file_.is_open()) return {ErrorCode::kInternal, "Close() was called twice"};
    TESSERA_TRY(Flush());
    return file_.Commit();
  }

 private:
  void AppendField(std::string_view text) {
    // A byte order mark at the head of a file would be taken for the file's own.
    bool quoted = text == options_.null_string || text.starts_with("\xEF\xBB\xBF");
    for (char c : text) quoted |= special_[static_cast<uint8_t>(c)];
    if (!quoted) {
      buffer_ += text;
      return;
    }
    buffer_ += options_.quote;
    for (char c : text) {
      if (c == options_.quote || c == options_.escape) buffer_ += options_.escape;
      buffer_ += c;
    }
    buffer_ += options_.quote;
  }

  Status Flush() {
    size_t done = 0;
    while (done < buffer_.size()) {
      const ssize_t written = WriteInterruptible(file_.descriptor(), buffer_.data() + done, buffer_.size() - done);
      if (written < 0) return IoError("cannot write", file_.path(), errno);
      done += static_cast<size_t>(written);
    }
    buffer_.clear();
    return {};
  }

  const CopyFormat options_;
  bool special_[256] = {};  ///< characters that make a field quoted
  ReplacedFile file_;
  std::string buffer_;
};

}  // namespace

Result<std::unique_ptr<CsvWriter>> CsvWriter::Create(const std::string& file, const CopyFormat& options,
                                                     const std::vector<std::string>& column_names) {
  auto writer = std::make_unique<FileCsvWriter>(options);
  TESSERA_TRY(writer->Open(file, column_names));
  return std::unique_ptr<CsvWriter>(std::move(writer));
}

}  // namespace tessera
