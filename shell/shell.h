// The shell: reads statements and dot commands from a terminal, scripts or the command line, runs them in one session,
// and prints results to standard output and everything else to standard error.
//
// Start at: Shell::Run. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/compiler.h"
#include "shell/command_line.h"
#include "shell/other_shells.h"
#include "shell/script_rows.h"
#include "shell/shell_session.h"
#include "shell/shell_state.h"

namespace tessera {

class Shell {
 public:
  Shell(std::unique_ptr<ShellSession> session, const CommandLine& line);
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  /// Does all the command line asks for and returns the exit status.
  int Run();

 private:
  /// Where statements come from, for messages.
  struct Script {
    std::string name;  ///< file name; "" for the command line, standard input and the terminal
    bool interactive = false;
    int line = 0;                      ///< lines read
    int buffer_line = 1;               ///< line on which `buffer` starts
    std::string buffer;                ///< lines that do not make a whole statement yet
    ScriptEnd end;                     ///< of the buffer
    std::string next;                  ///< the name of the next statement, if a comment says it
    std::unique_ptr<ScriptRows> rows;  ///< that the buffer's last statement takes; nullptr: it takes none
  };

  /// Says what a person should know before anything runs.
  void Greet();
  /// The file of --init, or ~/.tesserarc at the prompt, and what --cmd gave.
  void RunStart();
  void RunInputs();
  void RunText(std::string_view text, const std::string& name);
  /// Runs a file of statements ("-" is not special). Errors: kIo, if it cannot be read.
  Status RunFile(const std::string& file);
  void RunStandardInput();
  void RunInteractive();
  /// Reads the lines of a file descriptor; false if reading failed.
  bool RunDescriptor(int fd, const std::string& name);

  /// Takes one line of a script and runs what is complete.
  void TakeLine(Script* script, std::string_view line);
  /// The lines of a text.
  void TakeLines(Script* script, std::string_view text);
  /// Puts a semicolon in place of \g and the like at the end of the buffer, which it says. False: there is none.
  bool EndWithRunMark(Script* script, RunMark* mark);
  /// Runs the buffer until it is interrupted, or fails.
  void Watch(Script* script, const RunMark& mark);
  /// What a line means that stands where no text in quotes goes on, if that is no SQL. False: it is SQL.
  bool TakeHabit(Script* script, std::string_view line);
  /// Runs what is left at the end of a script.
  void TakeEnd(Script* script);
  /// A line after COPY ... FROM STDIN.
  void TakeRow(Script* script, std::string_view line);
  /// Runs what is complete. `rows`: for the last statement, or nullptr.
  void RunBuffer(Script* script, ScriptRows* rows = nullptr);
  void RunStatement(std::string_view sql, int line, const Script& script, const std::string& name);
  void RunDotCommand(std::string_view text, const Script& script);
  /// What a dump of SQLite says of its sequences. False: the statement is another one.
  bool RunSqliteSequence(std::string_view sql, int line, const Script& script);
  void ReportError(const Status& error, std::string_view sql, int line, const Script& script);

  ShellState state_;
  bool failed_ = false;  ///< a statement or dot command failed
};

}  // namespace tessera
