#include "session/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <vector>

#include "base/exception_status.h"
#include "base/interruptible_io.h"
#include "tablet/files/file_descriptor.h"
#include "tablet/files/io_error.h"

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

namespace {

Result<TemporaryFile> Spool(int from, const std::string& name) {
  return SpoolPieces([&](std::string* piece) -> Result<bool> {
    piece->resize(kPiece);
    const ssize_t n = ReadInterruptible(from, piece->data(), piece->size());
    if (n < 0) return IoError("could not read", name, errno);
    piece->resize(static_cast<size_t>(n));
    return n > 0;
  });
}

}  // namespace

Result<TemporaryFile> SpoolPieces(const std::function<Result<bool>(std::string*)>& next) {
  TESSERA_ASSIGN(TemporaryFile file, TemporaryFile::Create());
  const int fd = open(file.path().c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return IoError("could not open", file.path(), errno);
  // A client may send a line at a time.
  constexpr size_t kLeast = 128 << 10;
  std::string piece, gathered;
  Status status;
  for (bool more = true; more && status.ok();) {
    const Result<bool> next_one = Caught([&] { return next(&piece); });
    status = next_one.status();
    if (!status.ok()) break;
    more = *next_one;
    if (more && gathered.empty()) {
      gathered.swap(piece);
    } else if (more) {
      gathered += piece;
    }
    if (more && gathered.size() < kLeast) continue;
    status = WriteAll(fd, file.path(), gathered.data(), gathered.size());
    gathered.clear();
  }
  if (close(fd) != 0 && status.ok()) status = IoError("could not write", file.path(), errno);
  if (!status.ok()) return status;
  return file;
}

Result<TemporaryFile> SpoolStandardInput() { return Spool(STDIN_FILENO, "standard input"); }

Result<TemporaryFile> SpoolPipe(const std::string& path) {
  const FileDescriptor pipe(OpenInterruptible(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!pipe.valid()) return IoError("cannot open", path, errno);
  return Spool(pipe.get(), path);
}

std::string NameSource(std::string text, const std::string& path, const std::string& name) {
  // With the quotes, where the text has them.
  for (const std::string& old : {"\"" + path + "\"", path}) {
    for (size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += name.size())
      text.replace(at, old.size(), name);
  }
  return text;
}

Status NameSource(const Status& error, const std::string& path, const std::string& name) {
  return {error.kind(), NameSource(error.message(), path, name), error.hint(), error.position()};
}

}  // namespace tessera
