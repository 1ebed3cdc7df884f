#include "session/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/interruptible_io.h"
#include "tablet/io_error.h"

namespace tessera {
namespace {

constexpr size_t kPiece = 1 << 20;

Status WriteAll(int fd, const std::string& path, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = write(fd, data, size);
    if (n < 0) {
      if (errno == EINTR) continue;
      return IoError("could not write", path, errno);
    }
    data += n;
    size -= static_cast<size_t>(n);
  }
  return Status::Ok();
}

}  // namespace

Result<TemporaryFile> TemporaryFile::Create() {
  const char* folder = std::getenv("TMPDIR");
  TemporaryFile file;
  std::string name = std::string(folder != nullptr && *folder != 0 ? folder : "/tmp") + "/tessera_XXXXXX";
  const int fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) return IoError("could not create", name, errno);
  close(fd);
  file.path_ = std::move(name);
  return file;
}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) unlink(path_.c_str());
}

Status TemporaryFile::ForEachPiece(const std::function<Status(const std::string&)>& take) const {
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return IoError("could not open", path_, errno);
  std::string piece;
  Status status;
  while (status.ok()) {
    piece.resize(kPiece);
    const ssize_t n = read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) status = IoError("could not read", path_, errno);
    if (n <= 0) break;
    piece.resize(static_cast<size_t>(n));
    status = take(piece);
  }
  close(fd);
  return status;
}

Result<TemporaryFile> SpoolStandardInput() {
  TESSERA_ASSIGN(TemporaryFile file, TemporaryFile::Create());
  const int fd = open(file.path().c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return IoError("could not open", file.path(), errno);
  std::vector<char> piece(kPiece);
  Status status;
  while (status.ok()) {
    const ssize_t n = ReadInterruptible(STDIN_FILENO, piece.data(), piece.size());
    if (n < 0) status = IoError("could not read", "standard input", errno);
    if (n <= 0) break;
    status = WriteAll(fd, file.path(), piece.data(), static_cast<size_t>(n));
  }
  if (close(fd) != 0 && status.ok()) status = IoError("could not write", file.path(), errno);
  if (!status.ok()) return status;
  return file;
}

Status NameStandardInput(const Status& error, const std::string& path) {
  std::string message = error.message();
  // With the quotes, where the message has them.
  for (const std::string& name : {"\"" + path + "\"", path}) {
    for (size_t at; (at = message.find(name)) != std::string::npos;) message.replace(at, name.size(), "standard input");
  }
  return {error.code(), message, error.hint(), error.position()};
}

}  // namespace tessera
