// A script, cut at its semicolons into statements.
//
// Start at: SplitStatements, ScriptEnd. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/parse/sql_scanner.h"

namespace tessera {

/// A piece of a script.
struct StatementText {
  std::string_view sql;  ///< without the semicolon
  size_t offset = 0;     ///< where it starts in the script
  int line = 1;          ///< the line of the script on which it starts, from 1
};

/// Cuts a script at its semicolons, knowing quotes, dollar quotes and comments. Text after the last semicolon is a
/// statement of its own unless it is blank or comment. A comment that does not end is part of a statement, whose error it
/// is.
std::vector<StatementText> SplitStatements(std::string_view script);

/// Tells of a script that comes line by line when it ends between statements, i.e. whether an interactive shell should
/// run it or ask for more. Looks at each byte once.
class ScriptEnd {
 public:
  /// `script`: what the last call was given, and whole lines after it.
  bool IsBetweenStatements(std::string_view script);
  /// What the script of the last call ended in: "'", "\"", "$" or "/*"; "": none of these.
  std::string_view Open(std::string_view script) const;

 private:
  Token open_;            ///< the last token, if the script ended inside it
  size_t scanned_ = 0;    ///< up to the token that is open
  bool started_ = false;  ///< a statement has begun
};

}  // namespace tessera
