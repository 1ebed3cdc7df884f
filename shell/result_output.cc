#include "shell/result_output.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/display_width.h"
#include "base/interruptible_io.h"
#include "tablet/csv/file_signature.h"
#include "tablet/files/io_error.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// The format of results that is meant by the ending of a name; "": there is none.
std::string_view FormatOf(const FilePromise& promise) {
  const std::string_view ending = promise.ending;
  return ending == "json" || ending == "html" ? ending : ending == "htm" ? "html" : ending == "md" ? "markdown" : "";
}

}  // namespace

Status ResultOutput::Write(std::string_view text) {
  if (pager_command_.empty() || file_ >= 0 || command_.is_open())
    return WriteTo(file_ >= 0 ? file_ : command_.is_open() ? command_.fd() : STDOUT_FILENO, text);
  if (!pager_.is_open()) {
    held_ += text;
    if (LinesOf(held_) < TerminalHeight()) return Status::Ok();
    TESSERA_TRY(pager_.Open(pager_command_));
    return WriteTo(pager_.fd(), std::exchange(held_, {}));
  }
  return WriteTo(pager_.fd(), text);
}

Status ResultOutput::WriteTo(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = WriteInterruptible(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<size_t>(n));
      continue;
    }
    if (errno == ECANCELED) return Cancelled();
    if (file_ >= 0) return IoError("could not write", name_, errno);
    if (fd != STDOUT_FILENO && errno == EPIPE) {
      command_gone_ = true;
      return Cancelled();
    }
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

Status ResultOutput::OpenPipe(const std::string& command, bool once) {
  CloseFile();
  TESSERA_TRY(command_.Open(command));
  name_ = "|" + command;
  once_ = once;
  return Status::Ok();
}

void ResultOutput::StartPaging(const std::string& pager) {
  if (IsTerminal()) pager_command_ = pager;
}

Status ResultOutput::StatementDone() {
  const bool paged = pager_.is_open();
  pager_.Close();
  pager_command_.clear();
  const std::string held = std::exchange(held_, {});
  const Status written = paged ? Status::Ok() : Write(held);
  if (once_) CloseFile();
  return written;
}

std::string ResultOutput::Description() const { return file_ >= 0 || command_.is_open() ? name_ : "standard output"; }

void ResultOutput::CloseFile() {
  if (file_ >= 0) close(file_);
  file_ = -1;
  command_.Close();
  once_ = false;
}

Status ResultOutput::CheckFormat(std::string_view format) const {
  const FilePromise* const promise = file_ >= 0 ? FindPromise(name_) : nullptr;
  if (promise == nullptr || FormatOf(*promise) == format) return {};
  return Unsupported(QuoteForMessage(name_) + " has the name of " + promise->what + ", but results are written as " +
                         std::string(format),
                     -1, "Say .mode " + std::string(FormatOf(*promise)) + ", or give the file another name.");
}

bool ResultOutput::IsTerminal() const { return file_ < 0 && !command_.is_open() && isatty(STDOUT_FILENO) == 1; }

size_t ResultOutput::TerminalWidth() const {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

size_t ResultOutput::TerminalHeight() const {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
}

size_t ResultOutput::LinesOf(std::string_view text) const {
  const size_t width = TerminalWidth();
  size_t lines = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines += std::max<size_t>((DisplayWidth(text.substr(0, end)) + width - 1) / width, 1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace tessera
