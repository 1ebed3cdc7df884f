#include "shell/result_output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "base/interruptible_io.h"
#include "tablet/io_error.h"

namespace tessera {

Status ResultOutput::Write(std::string_view text) {
  const int fd = file_ >= 0 ? file_ : STDOUT_FILENO;
  while (!text.empty()) {
    const ssize_t n = WriteInterruptible(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<size_t>(n));
      continue;
    }
    if (errno == ECANCELED) return Cancelled();
    if (file_ >= 0) return IoError("could not write", name_, errno);
    if (errno == EPIPE) reader_gone_ = true;
    failed_ = true;
    return {ErrorCode::kIo, "could not write to standard output: " + std::generic_category().message(errno)};
  }
  return Status::Ok();
}

Status ResultOutput::OpenFile(const std::string& file, bool once) {
  CloseFile();
  const int fd = OpenInterruptible(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return IoError("could not open", file, errno);
  file_ = fd;
  name_ = file;
  once_ = once;
  return Status::Ok();
}

void ResultOutput::CloseFile() {
  if (file_ >= 0) close(file_);
  file_ = -1;
  once_ = false;
}

bool ResultOutput::IsTerminal() const { return file_ < 0 && isatty(STDOUT_FILENO) == 1; }

size_t ResultOutput::TerminalWidth() const {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace tessera
