// Dot commands: what the shell itself does (.help, .tables, .mode ...). They stand on a line of their own, between
// statements.
//
// Start at: DotCommands::Run. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "shell/shell.h"

namespace tessera {

class DotCommands {
 public:
  explicit DotCommands(Shell* shell) : shell_(shell) {}

  /// Runs one line that starts with a dot. Errors: kSql with what is wrong and how the command is used.
  Status Run(std::string_view line);

 private:
  using Arguments = std::vector<std::string>;
  struct Command;
  static const std::vector<Command>& Commands();

  Status Backup(const Arguments& arguments);
  Status Bail(const Arguments& arguments);
  Status Cache(const Arguments& arguments);
  Status Device(const Arguments& arguments);
  Status Devices(const Arguments& arguments);
  Status Echo(const Arguments& arguments);
  Status Verbosity(const Arguments& arguments);
  Status Explain(const Arguments& arguments);
  Status Headers(const Arguments& arguments);
  Status Help(const Arguments& arguments);
  Status Import(const Arguments& arguments);
  Status MaxRows(const Arguments& arguments);
  Status Memory(const Arguments& arguments);
  Status Mode(const Arguments& arguments);
  Status NullValue(const Arguments& arguments);
  Status Once(const Arguments& arguments);
  Status Output(const Arguments& arguments);
  Status Quit(const Arguments& arguments);
  Status Read(const Arguments& arguments);
  Status Schema(const Arguments& arguments);
  Status Separator(const Arguments& arguments);
  Status Tables(const Arguments& arguments);
  Status Timer(const Arguments& arguments);
  Status Version(const Arguments& arguments);
  Status Width(const Arguments& arguments);

  Status Print(const std::string& text);
  static Status Switch(const std::string& word, bool* value);

  Shell* shell_;
};

}  // namespace tessera
