// What ranks tell each other before they go on, in one step: values, and whether one of them has failed. Private to the
// interpreters (vm/ and kernels/).
//
// Start at: TellRanks.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/status.h"
#include "vm/shares/exchange.h"

namespace tessera::vm {

/// All ranks: everybody's bytes, as many of each, by rank. `mine`: an error of this rank, which then is that of all, and
/// its bytes do not count.
Result<std::vector<std::string>> TellRanksBytes(Exchange* exchange, const Status& mine, std::string_view bytes);

/// The same for values, as many of each rank.
template <class T>
Result<std::vector<std::vector<T>>> TellRanks(Exchange* exchange, const Status& mine, const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  const size_t bytes = values.size() * sizeof(T);
  TESSERA_ASSIGN(const std::vector<std::string> all,
                 TellRanksBytes(exchange, mine, {reinterpret_cast<const char*>(values.data()), bytes}));
  std::vector<std::vector<T>> out(all.size(), std::vector<T>(values.size()));
  for (size_t r = 0; r < all.size() && bytes > 0; ++r) memcpy(out[r].data(), all[r].data(), bytes);
  return out;
}

/// The same for one value of each rank.
template <class T>
Result<std::vector<T>> TellRanks(Exchange* exchange, const Status& mine, const T& value) {
  TESSERA_ASSIGN(const std::vector<std::vector<T>> all, TellRanks(exchange, mine, std::vector<T>{value}));
  std::vector<T> out;
  for (const std::vector<T>& of_rank : all) out.push_back(of_rank[0]);
  return out;
}

}  // namespace tessera::vm
