// Dot commands: what the shell itself does (.help, .tables, .mode ...). They stand on a line of their own, between
// statements.
//
// Start at: dot_commands.def, DotCommands::Run. One thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "shell/shell_state.h"

namespace tessera {

class DotCommands {
 public:
  /// Runs the statements of a file, for .read.
  using FileRunner = std::function<Status(const std::string& file)>;
  DotCommands(ShellState* shell, FileRunner run_file) : shell_(*shell), run_file_(std::move(run_file)) {}

  /// Runs one line that starts with a dot. Errors: kSql with what is wrong and how the command is used.
  Status Run(std::string_view line);
  /// Of all commands, sorted.
  static std::vector<std::string> Names();

 private:
  using Arguments = std::vector<std::string>;
  struct Command;
  static std::span<const Command> Commands();
  static const Command* Find(const std::string& name);
  /// The error.
  static Status Unknown(const std::string& name);

  Status Backup(const Arguments& arguments);
  Status Bail(const Arguments& arguments);
  Status Cache(const Arguments& arguments);
  Status ChangeDirectory(const Arguments& arguments);
  Status Changes(const Arguments& arguments);
  Status Columns(const Arguments& arguments);
  Status Databases(const Arguments& arguments);
  Status Describe(const Arguments& arguments);
  Status Device(const Arguments& arguments);
  Status Devices(const Arguments& arguments);
  Status Dump(const Arguments& arguments);
  Status Echo(const Arguments& arguments);
  Status Expanded(const Arguments& arguments);
  Status Explain(const Arguments& arguments);
  Status Headers(const Arguments& arguments);
  Status Help(const Arguments& arguments);
  Status Import(const Arguments& arguments);
  Status Indexes(const Arguments& arguments);
  Status List(const Arguments& arguments);
  Status MaxRows(const Arguments& arguments);
  Status MaxWidth(const Arguments& arguments);
  Status Memory(const Arguments& arguments);
  Status Mode(const Arguments& arguments);
  Status NullValue(const Arguments& arguments);
  Status Once(const Arguments& arguments);
  Status Open(const Arguments& arguments);
  Status Output(const Arguments& arguments);
  Status Pager(const Arguments& arguments);
  Status Plot(const Arguments& arguments);
  Status PrintWords(const Arguments& arguments);
  Status Profile(const Arguments& arguments);
  Status Prompt(const Arguments& arguments);
  Status Quit(const Arguments& arguments);
  Status Read(const Arguments& arguments);
  Status Rows(const Arguments& arguments);
  Status Schema(const Arguments& arguments);
  Status Separator(const Arguments& arguments);
  Status Show(const Arguments& arguments);
  Status ShowStatus(const Arguments& arguments);
  Status System(const Arguments& arguments);
  Status Tables(const Arguments& arguments);
  Status Timer(const Arguments& arguments);
  Status Verbosity(const Arguments& arguments);
  Status Version(const Arguments& arguments);
  Status Width(const Arguments& arguments);

  Status Print(const std::string& text);
  /// The error of what needs a database of this process.
  static Status RefuseAtServer(const std::string& what);
  /// The first column of a query's rows.
  Result<std::vector<std::string>> Texts(std::string_view query);
  /// What .schema and .tables are of a server.
  Status ServerSchema(const Arguments& arguments);
  Status ServerTables(const Arguments& arguments);
  /// Runs statements whose results are not shown.
  Status RunQuietly(std::string_view sql);
  Status DumpTables(const Arguments& patterns);
  Status SendTo(const Arguments& arguments, bool once);
  /// The query of the line's rest, without a semicolon, or the last one. Errors: there has been none.
  Result<std::string> QueryOr(std::string_view text);
  /// `what`: with its verb, "timer is".
  Status Switch(const Arguments& arguments, const char* what, bool* value);

  ShellState& shell_;
  const FileRunner run_file_;
  std::string_view rest_;  ///< of the line, after the command's name
};

}  // namespace tessera
