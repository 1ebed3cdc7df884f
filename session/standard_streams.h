// COPY ... FROM STDIN and TO STDOUT: the loader reads files (in parallel, from any place) and the writer makes files,
// so what comes from or goes to a pipe passes through a temporary one.
//
// Start at: SpoolStandardInput, TemporaryFile. One thread at a time.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/status.h"

namespace tessera {

/// A file in $TMPDIR (or /tmp) that is removed when the object dies.
class TemporaryFile {
 public:
  TemporaryFile() = default;  ///< no file
  static Result<TemporaryFile> Create();
  TemporaryFile(TemporaryFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFile& operator=(TemporaryFile&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~TemporaryFile();

  const std::string& path() const { return path_; }
  /// Reads the file from its start, a megabyte at a time.
  Status ForEachPiece(const std::function<Status(const std::string&)>& take) const;

 private:
  std::string path_;
};

/// All that is left on standard input. Errors: kIo, kResource; kCancelled.
Result<TemporaryFile> SpoolStandardInput();
/// All pieces that `next` gives, until it gives false.
Result<TemporaryFile> SpoolPieces(const std::function<Result<bool>(std::string*)>& next);
/// All that comes from a pipe of that name. Errors: the same.
Result<TemporaryFile> SpoolPipe(const std::string& path);

/// The same text with `name` instead of the name of the spool file.
std::string NameSource(std::string text, const std::string& path, const std::string& name);
Status NameSource(const Status& error, const std::string& path, const std::string& name);

}  // namespace tessera
