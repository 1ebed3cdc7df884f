// The shell: reads statements and dot commands from a terminal, scripts or the command line, runs them in one session,
// and prints results to standard output and everything else to standard error.
//
// Start at: Shell::Run. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/compiler.h"
#include "session/session.h"
#include "shell/command_line.h"
#include "shell/result_output.h"
#include "shell/result_text.h"
#include "shell/run_reports.h"
#include "shell/script_rows.h"
#include "shell/statement_progress.h"

namespace tessera {

/// What dot commands change.
struct ShellSettings {
  std::optional<ResultFormat> format;    ///< nullopt: box on a terminal, else csv
  std::optional<std::string> null_text;  ///< nullopt: the format's own
  bool headers = true;
  std::string separator;  ///< "": the format's own
  std::string table;      ///< of .mode insert; "": table
  std::vector<int> widths;
  std::optional<size_t> max_rows;   ///< nullopt: kTerminalRows on a terminal, else no limit
  std::optional<size_t> max_width;  ///< nullopt: the terminal's, else no limit
  std::string prompt = "tessera> ";
  std::string continued_prompt;  ///< "": it says what is open
  bool pager = false;
  std::string pager_command;  ///< "": none has been given
  bool changes = false;       ///< rows that were changed are told
  bool expanded = false;      ///< the format is line
  bool timer = false;
  bool echo = false;
  bool sqlstates = false;  ///< errors are shown with them
  bool bail = true;        ///< a script, or a line at the prompt, ends at its first error
};

class Shell {
 public:
  /// Rows of a box on a terminal before its middle is left out.
  static constexpr size_t kTerminalRows = 40;

  static constexpr const char* kPrompt = "tessera> ";

  Shell(std::unique_ptr<Session> session, const CommandLine& line);
  ~Shell();
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  /// Does all the command line asks for and returns the exit status.
  int Run();

 private:
  friend class DotCommands;

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
  /// Puts a semicolon in place of \g and the like at the end of the buffer. False: there is none.
  bool EndWithRunMark(Script* script);
  /// What a line means that stands where no text in quotes goes on, if that is no SQL. False: it is SQL.
  bool TakeHabit(Script* script, std::string_view line);
  /// Runs what is left at the end of a script.
  void TakeEnd(Script* script);
  /// A line behind COPY ... FROM STDIN.
  void TakeRow(Script* script, std::string_view line);
  /// Runs what is complete. `rows`: for the last statement, or nullptr.
  void RunBuffer(Script* script, ScriptRows* rows = nullptr);
  void RunStatement(std::string_view sql, int line, const Script& script, const std::string& name);
  void RunDotCommand(std::string_view text, const Script& script);
  /// What a dump of SQLite says of its sequences. False: the statement is another one.
  bool RunSqliteSequence(std::string_view sql, int line, const Script& script);
  /// Closes the database for another; "" is one in memory. Errors: those of Session::Open, and this one stays.
  Status OpenDatabase(const std::string& directory);
  /// What a statement without rows says of itself.
  void TellDone(const std::string& command_tag);
  /// Runs SQL, a query as often as --repeat and --warmup say. (Errors of what a dot command made are told without a place.)
  Status Execute(std::string_view sql, const std::string& name = {});
  /// Runs SQL once.
  Status ExecuteOnce(std::string_view sql, bool prints);

  /// Whether to go on: not after .quit, an interrupt, an error that ends the script, or when no one reads the results.
  bool Continues() const;
  void ReportError(const Status& error, std::string_view sql, int line, const Script& script);
  void ReportTiming() const;
  void Report(const StatementRun& run);
  ResultTextOptions TextOptions() const;
  /// Prints a message to standard error, ending the line.
  static void Message(const std::string& text);

  std::unique_ptr<Session> session_;
  CommandLine line_;
  ShellSettings settings_;
  ResultOutput output_;
  StatementProgress progress_;
  bool interactive_ = false;
  bool failed_ = false;       ///< a statement or dot command failed
  bool file_failed_ = false;  ///< a script could not be read
  bool stopped_ = false;      ///< by an error, with bail: all scripts that are being run, or the line at the prompt
  bool quit_ = false;
  bool lines_once_ = false;  ///< the statement ended in \gx
  int quit_status_ = -1;     ///< of .quit N; -1 if not given
  uint64_t statements_ = 0;  ///< run, for --stats
  RunReports reports_;
  int read_depth_ = 0;  ///< of .read
};

}  // namespace tessera
