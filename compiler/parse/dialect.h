// What of a statement the parse tree does not say: marks of forms that other engines have and PostgreSQL's grammar lacks, and
// what names mean in the session. Private to compiler/.
//
// The text that the grammar takes for these forms, and the marks, are made in dialect_text.h.
//
// Start at: Dialect. Plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tablet/catalog/macro.h"
#include "tablet/files/cache_report.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/time_zone.h"

namespace tessera {

class ActivitySource;
class FileTables;
struct Parameters;
class SequenceSource;
struct SequenceCall;
class Snapshot;

/// What names and texts of a statement mean in its session.
struct SessionNames {
  const TimeZone* zone = nullptr;  ///< the session's: that of texts which do not say their own; nullptr: UTC
  const std::vector<EnumType>* types = nullptr;  ///< those of CREATE TYPE; nullptr: there are none
  const std::vector<Macro>* macros = nullptr;    ///< those of CREATE MACRO; nullptr: there are none
  /// See PlanOptions; nullptr: there is nothing to show.
  const std::function<std::vector<CacheReport>()>* caches = nullptr;
  /// Values of SET VARIABLE; nullptr: there are none.
  const std::map<std::string, Value, std::less<>>* variables = nullptr;
  FileTables* files = nullptr;          ///< see PlanOptions
  SequenceSource* sequences = nullptr;  ///< nullptr: there are none
  bool takes_values = true;             ///< false: the statement is not going to run, and takes no values of them
  /// Calls that have a value for each row, in the order of binding; nullptr: no call may.
  std::vector<SequenceCall>* sequence_calls = nullptr;
  ActivitySource* activity = nullptr;   ///< see PlanOptions
  const Snapshot* relations = nullptr;  ///< what names in texts mean; nullptr: those of the default schema
};

/// What the parse tree of the new text does not say.
struct Dialect : SessionNames {
  struct Name {
    std::string text;
    int position = -1;
  };
  struct Mark {
    enum class Kind : uint8_t {
      kAll,          ///< the name stands for ALL of GROUP BY ALL and ORDER BY ALL
      kEmptyList,    ///< the NULL stands for the list of IN ()
      kTryCast,      ///< the CAST is a TRY_CAST
      kStar,         ///< the * has EXCLUDE, RENAME or REPLACE
      kIgnoreNulls,  ///< the call has IGNORE NULLS
      kPercent,      ///< the number of LIMIT is a percentage
      kQualify,      ///< the last window of WINDOW is the condition of QUALIFY, in its PARTITION BY
      kGlob,         ///< the LIKE is a GLOB
    };
    Kind kind = Kind::kAll;
    int position = -1;  ///< of the parse tree's node
    std::vector<Name> excluded;
    /// Outputs of the select list that begin here and before `replaced_end` replace columns of the star.
    int replaced_begin = 0, replaced_end = 0;
    std::vector<std::pair<Name, std::string>> renamed = {};
    bool lenient = false;  ///< names in `excluded` need not be columns
  };

  const Mark* Find(Mark::Kind kind, int position) const {
    auto m =
        std::lower_bound(marks.begin(), marks.end(), position, [](const Mark& a, int at) { return a.position < at; });
    while (m != marks.end() && m->position == position && m->kind != kind) ++m;
    return m != marks.end() && m->position == position ? &*m : nullptr;
  }

  /// CREATE MACRO and DROP MACRO. Of the first the statement is the query, or that of the expression.
  struct MacroWords {
    std::string name;        ///< "": it is another statement
    int position = -1;       ///< of the name
    std::string definition;  ///< see Macro
    int begin = -1;          ///< where that begins
    bool drops = false, of_rows = false, or_replace = false, if_not_exists = false;
  };

  MacroWords macro;
  /// What $1 and so on stand for (compiler/query/parameters.h); nullptr: the statement may have none.
  Parameters* parameters = nullptr;
  std::string variable;        ///< SET VARIABLE: the statement is the query of its value; "": it is another statement
  bool reset = false;          ///< RESET VARIABLE
  bool describe = false;       ///< DESCRIBE: the statement is the query to describe
  std::string notice;          ///< all that the statement does is to say this; "": it is another statement
  bool or_replace = false;     ///< CREATE OR REPLACE
  bool if_not_exists = false;  ///< CREATE VIEW IF NOT EXISTS
  enum class InsertOr : uint8_t { kFail, kIgnore, kReplace };
  InsertOr insert_or = InsertOr::kFail;  ///< INSERT OR IGNORE, INSERT OR REPLACE, REPLACE
  std::vector<Mark> marks;               ///< sorted by position: a statement may have a million
};

/// The alias that a derived table without one gets for the grammar. No name can be empty, so this one is as good: a
/// control character.
inline constexpr std::string_view kNoAlias = "\x01";
/// The aliases of a query that DESCRIBE and SUMMARIZE in FROM are about.
inline constexpr std::string_view kDescribed = "\x02", kSummarized = "\x03";
/// The table of an arm that stands for BY NAME before the next arm.
inline constexpr std::string_view kByName = "\x04";
/// The function that a file's name in FROM becomes the argument of.
inline constexpr std::string_view kFileCall = "\x06";
/// ... and lake.t AT (VERSION => 3), with the names of the table and the moment.
inline constexpr std::string_view kMomentCall = "\x07";
/// What the condition of an ASOF JOIN begins with: "\x05" OR condition, USING ("\x05", a, b).
inline constexpr std::string_view kAsOf = "\x05";
/// What the condition of WHEN NOT MATCHED BY SOURCE begins with, which is a WHEN MATCHED to the grammar: "\x07" OR condition.
inline constexpr std::string_view kBySource = "\x07";

}  // namespace tessera
