// How rows find their matches in a join table: join_strategies.def as an enum and a row for each. What holds of some
// strategies only is asked of their row, not of the enumerator. No strings or vectors. Any thread.
//
// Start at: JoinStrategy, Info.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessera::vm {

enum class JoinStrategy : uint8_t {
#define JOIN_STRATEGY(Name, ...) k##Name,
#include "vm/program/join_strategies.def"
};

/// Where sections run that probe with a strategy.
enum class JoinPlace : uint8_t { kAnywhere, kHost, kDevice };

/// A row of join_strategies.def.
struct JoinStrategyInfo {
  const char* word;
  bool by_key, cuts;
  JoinPlace place;
  bool exchanges;
  const char* meaning;
};
inline constexpr JoinStrategyInfo kJoinStrategies[] = {
#define JOIN_STRATEGY(Name, Word, ByKey, Cuts, Place, Exchanges, Meaning) \
  {Word, ByKey, Cuts, JoinPlace::k##Place, Exchanges, Meaning},
#include "vm/program/join_strategies.def"
};

constexpr bool IsKnown(JoinStrategy s) {
  return static_cast<size_t>(s) < sizeof kJoinStrategies / sizeof *kJoinStrategies;
}
/// REQUIRES: IsKnown.
constexpr const JoinStrategyInfo& Info(JoinStrategy s) { return kJoinStrategies[static_cast<size_t>(s)]; }

}  // namespace tessera::vm
