#include "vm/ranks/key_exchange.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <span>
#include <string_view>

#include "base/exception_status.h"
#include "base/interrupt.h"
#include "base/memory_budget.h"
#include "base/phase_clock.h"
#include "base/thread_pool.h"
#include "tablet/values/ordered_float.h"
#include "vm/rows/row_set.h"

namespace tessera::vm {
namespace {

/// Rows that a thread cuts at a time: for each rank as many as are worth a message, and at most these; of a rank's own parts
/// all together.
constexpr size_t kLeastForRank = 1 << 13, kMostForRank = 1 << 16, kLeastOwn = 1 << 14, kMostOwn = 1 << 18;

/// So that all threads have some to do.
size_t TurnRows(const RunState& state, size_t rows, size_t least, size_t most) {
  const size_t workers = Workers(state.pool);
  return std::clamp((rows + workers - 1) / workers, least, most);
}

/// A value that is not NULL, in words that are the same on every rank.
uint64_t HashValue(const RowColumn& c, size_t row, uint64_t hash, const StringPool& strings) {
  const int64_t low = c.low[row];
  switch (c.type.storage()) {
    case StorageClass::kInt:
      return HashWord(HashWord(hash, low), low >> 63);  // as a wide one of the same value
    case StorageClass::kWide:
      return HashWord(HashWord(hash, low), c.high[row]);
    case StorageClass::kFloat: {
      const double value = std::bit_cast<double>(low);
      return HashWord(hash, static_cast<int64_t>(OrderedFloat(value == 0 ? 0.0 : value)));
    }
    case StorageClass::kText: {
      const std::string_view text = strings.Get(low);
      return HashWord(hash, static_cast<int64_t>(XXH3_64bits(text.data(), text.size())));
    }
  }
  return hash;
}

/// By what rows are cut.
struct Cut {
  const std::vector<int32_t>& keys;
  const StringPool& strings;
  uint64_t seed;
  size_t parts;
  size_t turn_rows;         ///< that are cut at a time
  const KeyRoutes* routes;  ///< nullptr: none
  size_t own;               ///< this rank's part, if there are routes
};

/// The part of a row whose key has this hash; `parts`: all of them.
size_t PartOf(const Cut& by, uint64_t hash, size_t row) {
  if (by.routes != nullptr) {
    switch (by.routes->Of(hash)) {
      case KeyRoute::kOwner:
        break;
      case KeyRoute::kStay:
        return by.own;
      case KeyRoute::kDeal:
        return (row + by.own) % by.parts;
      case KeyRoute::kAll:
        return by.parts;
    }
  }
  return static_cast<size_t>((hash * kHashSeed >> 32) * by.parts >> 32);
}

/// The part of each row [begin, end).
void FindParts(const Cut& by, const RowSet& rows, size_t begin, size_t end, std::vector<uint32_t>* out) {
  for (size_t r = begin; r < end; ++r) {
    ThrowIfInterrupted(r);
    (*out)[r] = static_cast<uint32_t>(PartOf(by, HashOfKeys(rows, r, by.keys, by.strings, by.seed), r));
  }
}

/// Appends the values of rows, the first of which is `begin`, to those of their parts: counts[p] to to[p].
template <class T>
void Deal(const std::vector<T>& values, const std::vector<uint32_t>& parts, size_t begin, size_t end,
          const std::vector<size_t>& counts, std::span<std::vector<T>*> to) {
  if (values.empty()) return;
  for (size_t p = 0; p < to.size(); ++p) to[p]->reserve(counts[p]);
  for (size_t i = begin; i < end; ++i) {
    ThrowIfInterrupted(i);
    to[parts[i]]->push_back(values[i]);
  }
}

/// The pieces of each part, of the same rows in their order. With routes there is a part more: of the rows that belong to
/// all parts.
Result<std::vector<RowPieces>> CutRows(const RunState& state, RowSet rows, const std::vector<SqlType>& types,
                                       const Cut& by) {
  const MemoryPurpose purpose("rows of keys");
  const size_t parts = by.parts + (by.routes == nullptr ? 0 : 1), turn_rows = by.turn_rows,
               turns = std::max<size_t>(1, (rows.rows + turn_rows - 1) / turn_rows);
  const auto end_of = [&](size_t turn) { return std::min(rows.rows, (turn + 1) * turn_rows); };
  std::vector<RowPieces> out(parts, RowPieces(turns));
  std::vector<uint32_t> part(rows.rows);
  std::vector<std::vector<size_t>> counts(turns, std::vector<size_t>(parts));
  const size_t chunks = (rows.rows + kLeastOwn - 1) / kLeastOwn;
  TESSERA_TRY(ForEach(chunks <= 1 ? nullptr : state.pool, chunks, [&](size_t chunk) {
    FindParts(by, rows, chunk * kLeastOwn, std::min(rows.rows, (chunk + 1) * kLeastOwn), &part);
    return Status::Ok();
  }));
  TESSERA_TRY(ForEach(turns == 1 ? nullptr : state.pool, turns, [&](size_t turn) {
    for (size_t r = turn * turn_rows; r < end_of(turn); ++r) ++counts[turn][part[r]];
    for (size_t p = 0; p < parts; ++p) {
      out[p][turn] = MakeRowSet(types);
      out[p][turn].rows = counts[turn][p];
    }
    return Status::Ok();
  }));
  for (size_t column = 0; column < rows.columns.size(); ++column) {
    const RowColumn from = std::move(rows.columns[column]);  // its memory goes as soon as it has been dealt
    TESSERA_TRY(ForEach(turns == 1 ? nullptr : state.pool, turns, [&](size_t turn) {
      std::vector<std::vector<int64_t>*> low(parts), high(parts);
      std::vector<std::vector<uint8_t>*> null(parts);
      for (size_t p = 0; p < parts; ++p) {
        RowColumn& to = out[p][turn].columns[column];
        low[p] = &to.low;
        high[p] = &to.high;
        null[p] = &to.null;
      }
      const size_t begin = turn * turn_rows, end = end_of(turn);
      Deal<int64_t>(from.low, part, begin, end, counts[turn], low);
      Deal<int64_t>(from.high, part, begin, end, counts[turn], high);
      Deal<uint8_t>(from.null, part, begin, end, counts[turn], null);
      return Status::Ok();
    }));
  }
  return out;
}

}  // namespace

uint64_t HashOfKeys(const RowSet& rows, size_t row, std::span<const int32_t> keys, const StringPool& strings,
                    uint64_t seed) {
  uint64_t hash = seed;
  for (const int32_t k : keys) {
    const RowColumn& c = rows.columns[static_cast<size_t>(k)];
    const bool null = !c.null.empty() && c.null[row] != 0;
    hash = null ? HashWord(hash, -1) : HashValue(c, row, hash, strings);
  }
  return hash;
}

Result<std::vector<RowPieces>> CutByKey(const RunState& state, RowSet rows, const std::vector<SqlType>& types,
                                        const std::vector<int32_t>& keys, size_t parts, uint64_t seed) {
  const size_t turn_rows = TurnRows(state, rows.rows, kLeastOwn, kMostOwn);
  if (parts > 1)
    return CutRows(state, std::move(rows), types, {keys, state.strings, seed, parts, turn_rows, nullptr, 0});
  std::vector<RowPieces> out(1);
  out[0].push_back(std::move(rows));
  return out;
}

Result<RowSet> ExchangeByKey(RunState* state, Result<RowSet> mine, const std::vector<SqlType>& types,
                             const std::vector<int32_t>& keys, SectionStatistics* stats, const KeyRoutes* routes) {
  Exchange& exchange = *state->options.exchange;
  Result<std::vector<RowPieces>> cut = Caught([&]() -> Result<std::vector<RowPieces>> {
    TESSERA_TRY(mine.status());
    const auto ranks = static_cast<size_t>(exchange.ranks()), own = static_cast<size_t>(exchange.rank());
    if (routes != nullptr && routes->empty()) routes = nullptr;
    const size_t turn_rows =
        RowsTogether(types, mine->rows, TurnRows(*state, mine->rows, kLeastForRank * ranks, kMostForRank * ranks));
    TESSERA_ASSIGN(
        std::vector<RowPieces> pieces,
        CutRows(*state, std::move(*mine), types, {keys, state->strings, kRankSeed, ranks, turn_rows, routes, own}));
    if (routes != nullptr) {
      for (size_t r = 0; r < ranks; ++r) {
        for (size_t i = 0; i < pieces[r].size(); ++i)
          AppendRange(&pieces[r][i], pieces.back()[i], 0, pieces.back()[i].rows);
      }
      pieces.pop_back();
    }
    return pieces;
  });
  TESSERA_TRY(exchange.Agree(cut.status()));
  for (size_t r = 0; r < cut->size(); ++r) {
    if (r == static_cast<size_t>(exchange.rank())) continue;
    for (const RowSet& piece : (*cut)[r]) stats->rows_exchanged += piece.rows;
  }
  Result<std::vector<RowPieces>> all = exchange.AllToAll(std::move(*cut), types, &state->strings);
  RowSet out = MakeRowSet(types);
  // (A rank may have no room for what has come, and the others would wait for it in the next round.)
  const Status came = Caught([&]() -> Status {
    TESSERA_TRY(all.status());
    const PhaseScope phase(Phase::kMerge);
    std::vector<RowSet> rows;
    for (RowPieces& pieces : *all) std::move(pieces.begin(), pieces.end(), std::back_inserter(rows));
    return AppendAll(&out, std::move(rows), state->pool);
  });
  TESSERA_TRY(exchange.Agree(came));
  return out;
}

}  // namespace tessera::vm
