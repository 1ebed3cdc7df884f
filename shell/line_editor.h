// Lines typed at a terminal: editing, completion and history (libedit), Ctrl-C and Ctrl-D.
//
// Start at: LineEditor::Read. One thread, one editor in a process.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// What can stand in place of the end of a text.
struct Completion {
  size_t begin = 0;                     ///< of what is replaced, in bytes
  std::vector<std::string> candidates;  ///< sorted
};
/// `text`: what is typed of the line, up to the cursor.
using Completer = std::function<Completion(std::string_view text)>;

class LineEditor {
 public:
  enum class Outcome {
    kLine,
    kInterrupted,  ///< Ctrl-C: what was typed is void
    kEnd,          ///< Ctrl-D on an empty line, a signal that ends the process, or the terminal has gone
  };

  /// History is read from and written to `history_file`; none if that is empty.
  explicit LineEditor(const std::string& history_file);
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  /// Reads one line, without its newline. Several, with newlines between them, if a statement was brought back.
  Outcome Read(const std::string& prompt, std::string* line);

  /// Puts a statement, of one line or several, into the history.
  void Remember(const std::string& statement);

  /// What Tab offers; none without a call.
  void SetCompleter(Completer completer);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
