// What the planner may choose, and what else a session's SET says of compiling.
//
// Start at: PlanOptions. Plain data.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/files/cache_report.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/time_zone.h"
#include "vm/program/join_strategy.h"

namespace tessera {

class ActivitySource;
class FileTables;
class SequenceSource;

/// SET join_strategy: how joins find their pairs. Each strategy can be asked for.
enum class JoinChoice : uint8_t {
  kAuto,  ///< what costs least; inner joins without an equality are grids if possible
#define JOIN_STRATEGY(Name, ...) k##Name,
#include "vm/program/join_strategies.def"
};
/// "auto, hash, ...", in their order.
inline constexpr char kJoinChoices[] = "auto"
#define JOIN_STRATEGY(Name, Word, ...) ", " Word
#include "vm/program/join_strategies.def"
    ;
constexpr JoinChoice ChoiceOf(vm::JoinStrategy s) { return static_cast<JoinChoice>(static_cast<int>(s) + 1); }
/// Nothing: none in particular.
constexpr std::optional<vm::JoinStrategy> StrategyOf(JoinChoice c) {
  if (c == JoinChoice::kAuto) return std::nullopt;
  return static_cast<vm::JoinStrategy>(static_cast<int>(c) - 1);
}
/// The row of the strategy that was asked for; nullptr: none.
constexpr const vm::JoinStrategyInfo* AskedFor(JoinChoice c) {
  return c == JoinChoice::kAuto ? nullptr : &Info(*StrategyOf(c));
}

/// SET join_exchange: whether both sides of a join go to the ranks of their keys, or the build side to all.
enum class ExchangeChoice : uint8_t { kAuto, kOff, kOn };

struct PlanOptions {
  JoinChoice join = JoinChoice::kAuto;
  /// Sort the sides of a grid, so that column ranges show which of its units have no match.
  bool grid_pruning = true;
  const TimeZone* zone = nullptr;  ///< the session's time zone; nullptr: UTC
  int ranks = 1;                   ///< that run the program
  ExchangeChoice join_exchange = ExchangeChoice::kAuto;
  /// Bytes of a build side that a rank has room for, and from which on an exchange is considered where it has.
  uint64_t broadcast_bytes = UINT64_MAX, exchange_bytes = UINT64_MAX;
  /// Intermediate results of more rows stay on their ranks.
  uint64_t exchange_above = UINT64_MAX;
  /// Whether ranks may scan adjacent tablets, for joins and groups by keys in whose order rows are stored.
  bool key_spans = true;
  /// With this number of matches for each row of two tables joined by numbers, pairs are compared side by side, as without an
  /// equality: a hash table finds one after the other.
  double grid_from_matches = 1024;
  /// Whether the keys of a filtered build side bound the foreign key that is scanned.
  bool invisible_join = true;
  /// Whether tables may be read as the runs of a column, see ReadRuns.
  bool read_runs = true;
  bool on_device = false;  ///< a GPU may run the program
  /// What tessera_cache() shows; empty: there is nothing to show.
  std::function<std::vector<CacheReport>()> caches = {};
  /// Where files in FROM are found; nullptr: there can be none.
  FileTables* files = nullptr;
  /// Values of SET VARIABLE; nullptr: there are none.
  const std::map<std::string, Value, std::less<>>* variables = nullptr;
  SequenceSource* sequences = nullptr;  ///< what nextval() asks; nullptr: there are no sequences
  /// The sessions of the process, which the statement may see and signal; nullptr: it sees none.
  ActivitySource* activity = nullptr;
  /// What $1, $2 and so on stand for: a value of type kNull is NULL or, in `text`, the characters of a literal, and takes the
  /// type of its place. nullptr: the statement may have no parameters.
  const std::vector<Value>* parameters = nullptr;
  /// The program of a query is to answer for other values of them, too, where it can: Compiled::held.
  bool hold_parameters = false;
  /// Runs a query that compiling needs and gives the texts of its first column that are not NULL; empty: no query can be
  /// run.
  std::function<Result<std::vector<std::string>>(const std::string& sql)> run_query = {};
};

}  // namespace tessera
