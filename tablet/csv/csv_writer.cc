// COPY table TO file.
#include "tablet/csv/csv_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>

#include "base/interruptible_io.h"
#include "base/status.h"
#include "tablet/files/directory_lock.h"
#include "tablet/files/io_error.h"
#include "tablet/load/copy_options.h"
#include "tablet/values/row_batch.h"

namespace tessera {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

class FileCsvWriter final : public CsvWriter {
 public:
  FileCsvWriter(const CopyToOptions& options) : options_(options) {
    // Control characters too: a file that begins with some of them is taken for one of another kind.
    for (char c = 0; c < ' '; ++c) special_[static_cast<uint8_t>(c)] = c != '\t';
    special_[static_cast<uint8_t>(options.delimiter)] = special_[static_cast<uint8_t>(options.quote)] = true;
  }

  ~FileCsvWriter() override {
    if (file_.valid() && !temporary_path_.empty()) unlink(temporary_path_.c_str());
  }

  Status Open(const std::string& file, const std::vector<std::string>& column_names) {
    path_ = file;
    // The name of a link stays a link: what it points to is replaced.
    if (char resolved[PATH_MAX]; realpath(file.c_str(), resolved) != nullptr) path_ = resolved;
    struct stat info;
    const bool exists = stat(path_.c_str(), &info) == 0;
    if (exists && S_ISDIR(info.st_mode)) return IoError("cannot write", file, EISDIR);
    if (exists && !S_ISREG(info.st_mode)) {
      // A pipe or a terminal cannot be replaced.
      file_ = FileDescriptor(OpenInterruptible(path_.c_str(), O_WRONLY | O_CLOEXEC));
      if (!file_.valid()) return IoError("cannot write", file, errno);
    } else {
      temporary_path_ = path_ + ".writing-" + std::to_string(getpid());
      const mode_t mode = exists ? info.st_mode & 0777 : 0666;
      file_ = FileDescriptor(open(temporary_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
      if (!file_.valid()) return IoError("cannot create", file, errno);
    }
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
    if (!file_.valid()) return {ErrorCode::kInternal, "Close() was called twice"};
    TESSERA_TRY(Flush());
    if (!temporary_path_.empty()) {
      if (fsync(file_.get()) != 0) return IoError("cannot sync", temporary_path_, errno);
      if (rename(temporary_path_.c_str(), path_.c_str()) != 0) return IoError("cannot create", path_, errno);
      temporary_path_.clear();
    }
    if (close(file_.Release()) != 0) return IoError("cannot write", path_, errno);
    return {};
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
      const ssize_t written = WriteInterruptible(file_.get(), buffer_.data() + done, buffer_.size() - done);
      if (written < 0) return IoError("cannot write", path_, errno);
      done += static_cast<size_t>(written);
    }
    buffer_.clear();
    return {};
  }

  const CopyToOptions options_;
  bool special_[256] = {};  ///< characters that make a field quoted
  std::string path_;
  std::string temporary_path_;  ///< empty where the file is written in place
  FileDescriptor file_;
  std::string buffer_;
};

}  // namespace

Result<std::unique_ptr<CsvWriter>> CsvWriter::Create(const std::string& file, const CopyToOptions& options,
                                                     const std::vector<std::string>& column_names) {
  auto writer = std::make_unique<FileCsvWriter>(options);
  TESSERA_TRY(writer->Open(file, column_names));
  return std::unique_ptr<CsvWriter>(std::move(writer));
}

}  // namespace tessera
