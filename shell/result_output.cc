#include "shell/result_output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "base/interruptible_io.h"
#include "tablet/csv/file_signature.h"
#include "tablet/files/io_error.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// The format of results that is meant by the ending of a name; "": there is none.
std::string_view FormatOf(const FilePromise& promise) {
  const std::string_view ending = promise.ending;
  return ending == "json" ? "json" : ending == "md" ? "markdown" : "";
}

}  // namespace

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
  if (const FilePromise* const promise = FindPromise(file); promise != nullptr && FormatOf(*promise).empty()) {
    std::string hint = "Give the file another name.";
    if (promise->compress != nullptr)
      hint +=
          std::string(" To compress results: tessera DATABASE -c \"SELECT ...\" | ") + promise->compress + " > FILE";
    return Unsupported("results are not written as " + std::string(promise->what) + ", of which " +
                           QuoteForMessage(file) + " has the name",
                       -1, hint);
  }
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

Status ResultOutput::CheckFormat(std::string_view format) const {
  const FilePromise* const promise = file_ >= 0 ? FindPromise(name_) : nullptr;
  if (promise == nullptr || FormatOf(*promise) == format) return {};
  return Unsupported(QuoteForMessage(name_) + " has the name of " + promise->what + ", but results are written as " +
                         std::string(format),
                     -1, "Say .mode " + std::string(FormatOf(*promise)) + ", or give the file another name.");
}

bool ResultOutput::IsTerminal() const { return file_ < 0 && isatty(STDOUT_FILENO) == 1; }

size_t ResultOutput::TerminalWidth() const {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace tessera
