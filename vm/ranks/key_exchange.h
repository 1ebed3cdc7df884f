// Rows on their way to the rank of their key. Private to vm/.
//
// Start at: ExchangeByKey. The thread of the run; all ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "vm/run/run_state.h"
#include "vm/shares/key_routes.h"

namespace tessera::vm {

/// Seeds of CutByKey: the parts of one are spread over those of the other.
inline constexpr uint64_t kRankSeed = 0x51ED270B9F1D3A2Du, kThreadSeed = 0xA24BAED4963EE407u;

/// Of the values in `keys`: equal for equal ones, as below.
uint64_t HashOfKeys(const RowSet& rows, size_t row, std::span<const int32_t> keys, const StringPool& strings,
                    uint64_t seed);

/// The rows in `parts` parts, such that rows with equal values in `keys` are in one; each in pieces, in their order. Equal
/// are values that GROUP BY takes for equal, on any rank and in columns of 64 or 128 bits. Errors: kResource, out of memory.
Result<std::vector<RowPieces>> CutByKey(const RunState& state, RowSet rows, const std::vector<SqlType>& types,
                                        const std::vector<int32_t>& keys, size_t parts, uint64_t seed);

/// Sends each row to the rank that has the rows with equal values in `keys`, and returns those of this rank: the rows of
/// rank 0 first, each rank's in their order, but for those of `routes` that go to all. `mine`: an error ends the exchange on all ranks before a row is sent. Errors:
/// of one of the ranks, the same on all.
/// `routes`: of keys whose rows go elsewhere; nullptr: none.
Result<RowSet> ExchangeByKey(RunState* state, Result<RowSet> mine, const std::vector<SqlType>& types,
                             const std::vector<int32_t>& keys, SectionStatistics* stats,
                             const KeyRoutes* routes = nullptr);

}  // namespace tessera::vm
