// Where results go: standard output, a file or a command (.output, .once), or a pager.
//
// Start at: ResultOutput. One thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "shell/child_process.h"

namespace tessera {

class ResultOutput {
 public:
  ResultOutput() = default;
  ~ResultOutput() { CloseFile(); }
  ResultOutput(const ResultOutput&) = delete;
  ResultOutput& operator=(const ResultOutput&) = delete;

  /// Writes at once, nothing is buffered here. Errors: kIo, kResource.
  Status Write(std::string_view text);

  /// Results go to `file` from now on, or, with `once`, until StatementDone(). Errors: kIo; kUnsupported, the name is that
  /// of a format that no result is written in.
  Status OpenFile(const std::string& file, bool once);
  /// The same with a command, which reads them. Errors: kResource.
  Status OpenPipe(const std::string& command, bool once);
  /// Results go to standard output again.
  void UseStandardOutput() { CloseFile(); }
  /// If results are seen by a person, those of this statement that fill more than the window go to a command, which shows
  /// them page by page.
  void StartPaging(const std::string& pager);
  /// Ends paging, and what `once` was said of. Errors: those of Write.
  Status StatementDone();
  /// Whether a command has stopped reading since the last call. Its statement ends with kCancelled, which is no error.
  bool TakeReaderGone() { return std::exchange(command_gone_, false); }

  /// "standard output", or what it is instead.
  std::string Description() const;

  /// Errors: kUnsupported, the name of the file is that of another format than `format`, "json" for example.
  Status CheckFormat(std::string_view format) const;

  /// Whether results are seen by a person, and how wide their window is (columns; 80 if it does not tell).
  bool IsTerminal() const;
  size_t TerminalHeight() const;
  size_t TerminalWidth() const;

  /// The reader of standard output has gone (`| head`): nothing more is to be printed.
  bool reader_gone() const { return reader_gone_; }
  /// Standard output could not be written to for another reason.
  bool failed() const { return failed_; }

 private:
  void CloseFile();

  Status WriteTo(int fd, std::string_view text);
  /// Lines of the window that a text fills.
  size_t LinesOf(std::string_view text) const;

  int file_ = -1;  ///< -1: standard output, or the command
  CommandPipe command_;
  bool command_gone_ = false;
  CommandPipe pager_;
  std::string pager_command_;  ///< "": results are not paged
  std::string held_;           ///< of the statement, while it fits into the window
  std::string name_;
  bool once_ = false;
  bool reader_gone_ = false;
  bool failed_ = false;
};

}  // namespace tessera
