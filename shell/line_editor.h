// Lines typed at a terminal: editing and history (libedit), Ctrl-C and Ctrl-D.
//
// Start at: LineEditor::Read. One thread, one editor in a process.
#pragma once

#include <memory>
#include <string>

namespace tessera {

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

  /// Reads one line, without its newline.
  Outcome Read(const std::string& prompt, std::string* line);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera
