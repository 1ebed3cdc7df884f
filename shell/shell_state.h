// What the inputs and the dot commands of a shell share: the open session, the settings, the output and how the shell is to go
// on. It runs SQL and prints what comes of it. Internal to shell/: others see shell.h alone.
//
// Start at: ShellState::Execute. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "shell/command_line.h"
#include "shell/result_output.h"
#include "shell/result_text.h"
#include "shell/run_reports.h"
#include "shell/shell_session.h"
#include "shell/statement_progress.h"

namespace tessera {

/// What dot commands change.
struct ShellSettings {
  /// Rows of a box on a terminal before its middle is left out.
  static constexpr size_t kTerminalRows = 40;
  static constexpr const char* kPrompt = "tessera> ";

  std::optional<ResultFormat> format;    ///< nullopt: box on a terminal, else csv
  std::optional<std::string> null_text;  ///< nullopt: the format's own
  bool headers = true;
  std::string separator;  ///< "": the format's own
  std::string table;      ///< of .mode insert; "": table
  std::vector<int> widths;
  std::optional<size_t> max_rows;   ///< nullopt: kTerminalRows on a terminal, else no limit
  std::optional<size_t> max_width;  ///< nullopt: the terminal's, else no limit
  std::string prompt = kPrompt;
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

struct ShellState {
  ShellState(std::unique_ptr<ShellSession> open, const CommandLine& command_line);
  ~ShellState();
  ShellState(const ShellState&) = delete;
  ShellState& operator=(const ShellState&) = delete;

  /// Closes the database for another; "" is one in memory. Errors: those of Session::Open, and this one stays; kUnsupported:
  /// of ranks, or of a server.
  Status OpenDatabase(const std::string& directory);
  /// Runs SQL, a query as often as --repeat and --warmup say. (Errors of what a dot command made are told without a place.)
  Status Execute(std::string_view sql, const std::string& name = {});
  /// COPY with a file of this machine, whose rows go to a server as if they stood after it. REQUIRES: the session is a server's.
  /// Errors: kSql, it is none that can be made so; kIo; those of the statement.
  Status CopyThroughServer(std::string_view sql);
  /// Whether to go on: not after .quit, an interrupt, an error that ends the script, or when no one reads the results.
  bool Continues() const;
  ResultTextOptions TextOptions() const;
  /// Prints a message to standard error, ending the line.
  static void Message(const std::string& text);

  std::unique_ptr<ShellSession> session;
  CommandLine line;
  ShellSettings settings;
  ResultOutput output;
  StatementProgress progress;
  RunReports reports;
  bool interactive = false;
  bool file_failed = false;  ///< a script could not be read, or a report not be written
  bool stopped = false;      ///< by an error, with bail: all scripts that are being run, or the line at the prompt
  bool quit = false;
  bool lines_once = false;  ///< the statement ended in \gx
  int quit_status = -1;     ///< of .quit N; -1 if not given
  std::string last_query;   ///< that ran, for .plot and .profile; "": none has
  uint64_t statements = 0;  ///< run, for --stats
  int read_depth = 0;       ///< of .read

 private:
  /// Runs SQL once.
  Status ExecuteOnce(std::string_view sql, bool prints);
  /// What a statement without rows says of itself.
  void TellDone(const std::string& command_tag);
  void ReportTiming() const;
  void Report(const StatementRun& run);
};

/// Whether a terminal may be sent colours.
bool HasColors();

}  // namespace tessera
