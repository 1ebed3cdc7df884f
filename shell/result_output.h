// Where results go: standard output, or a file (.output, .once).
//
// Start at: ResultOutput. One thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

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
  /// Results go to standard output again.
  void UseStandardOutput() { CloseFile(); }
  void StatementDone() {
    if (once_) CloseFile();
  }

  /// Errors: kUnsupported, the name of the file is that of another format than `format`, "json" for example.
  Status CheckFormat(std::string_view format) const;

  /// Whether results are seen by a person, and how wide their window is (columns; 80 if it does not tell).
  bool IsTerminal() const;
  size_t TerminalWidth() const;

  /// The reader of standard output has gone (`| head`): nobody is left to print for.
  bool reader_gone() const { return reader_gone_; }
  /// Standard output could not be written to for another reason.
  bool failed() const { return failed_; }

 private:
  void CloseFile();

  int file_ = -1;  ///< -1: standard output
  std::string name_;
  bool once_ = false;
  bool reader_gone_ = false;
  bool failed_ = false;
};

}  // namespace tessera
