// The sqllogictest format: what a file says, as a list of records.
//
//   statement ok                    query <types> [nosort|rowsort|valuesort] [label]      hash-threshold <n>
//   <SQL lines>                     <SQL lines>                                           halt
//                                   ----                                                  skipif <engine>
//   statement error [<pattern>]     <results>                                             onlyif <engine>
//   <SQL lines>
//   ----                            Records are separated by empty lines; a line that starts with # is a comment.
//   <message or pattern>
//
// Types are T (text), I (integer) and R (real), one letter a column. Results have one value a line, or say
// "<n> values hashing to <md5>". Anything else is an error: nothing of a file is skipped unless it says so.
//
// Start at: ParseLogicScript. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera {

enum class SortMode { kNone, kRows, kValues };

struct LogicRecord {
  enum class Kind { kStatement, kQuery, kHashThreshold, kHalt };
  Kind kind = Kind::kStatement;
  int line = 0;      ///< where the record starts, from 1
  int sql_line = 0;  ///< where its SQL starts
  std::string sql;
  bool expect_error = false;          ///< kStatement
  std::string error;                  ///< kStatement: what the message must contain or match; empty: any error will do
  std::string types;                  ///< kQuery
  SortMode sort = SortMode::kNone;    ///< kQuery
  std::string label;                  ///< kQuery: results with the same label are equal; empty: none
  std::vector<std::string> expected;  ///< kQuery: lines
  int64_t hash_threshold = 0;         ///< kHashThreshold
};

/// The records that `engine` runs: skipif and onlyif are already applied. Errors: kSql, with the line: not this format.
Result<std::vector<LogicRecord>> ParseLogicScript(std::string_view text, std::string_view engine);

}  // namespace tessera
