// What people type who come from psql, sqlite3 or duckdb: help, exit and quit without a dot, and psql's backslash commands.
// shell/README.md has the table of them.
//
// Start at: ReadHabit. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera {

/// What a line means that begins no statement of SQL.
struct Habit {
  enum class Kind : uint8_t {
    kNone,     ///< it is SQL, or a dot command
    kDot,      ///< `text` is the dot command
    kSql,      ///< `text` is the statement, with its semicolon
    kForget,   ///< \r: what was typed of the statement is void
    kNothing,  ///< it has no meaning here, and does no harm
  };
  Kind kind = Kind::kNone;
  std::string text;
};

/// `line`: where a statement may begin. `words`: help, exit and quit count, too, as they do at a prompt. Errors: kSql, a
/// backslash command that is not there, with a hint that says what is.
Result<Habit> ReadHabit(std::string_view line, bool words);

/// Whether the line, in the middle of a statement, is a word with which people try to get out.
bool IsWayOut(std::string_view line);

/// How a text ends: with ;, or with psql's \g, \gx, \gdesc, \watch or mysql's \G, which run what stands before.
struct RunMark {
  enum class Kind : uint8_t {
    kOnce,
    kAsLines,   ///< and its rows are shown in lines
    kDescribe,  ///< the columns of its result are shown instead
    kWatch,     ///< again and again
  };
  size_t bytes = 0;  ///< of the mark and what is after it; 0: there is none
  Kind kind = Kind::kOnce;
  double seconds = 2;  ///< kWatch: between the end of a run and the next; negative: what stands there is no time
  int64_t times = 0;   ///< kWatch: how often at most; 0: until it is interrupted, or fails
};
RunMark FindRunMark(std::string_view line);

/// A backslash command of psql.
struct BackslashCommand {
  const char* name;  ///< without the backslash
  Habit::Kind kind;  ///< kNone: it is refused
  /// kDot, kSql: what is run, with the arguments after it; else the hint, or what it does.
  const char* text;
};
std::span<const BackslashCommand> BackslashCommands();

}  // namespace tessera
