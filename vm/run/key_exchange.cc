#include "vm/run/key_exchange.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <span>
#include <string_view>

#include "base/interrupt.h"
#include "base/memory_budget.h"
#include "base/phase_clock.h"
#include "base/thread_pool.h"
#include "tablet/ordered_float.h"
#include "vm/row_set.h"

namespace tessera::vm {
namespace {

/// Rows that are worth a turn of a thread.
constexpr size_t kTurnRows = 1 << 16;

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

struct KeyHash {
  const std::vector<int32_t>& keys;
  const StringPool& strings;
  uint64_t seed;
};

/// The part of each row [begin, end).
void FindParts(const KeyHash& by, const RowSet& rows, uint64_t parts, size_t begin, size_t end,
               std::vector<uint32_t>* out) {
  for (size_t r = begin; r < end; ++r) {
    ThrowIfInterrupted(r);
    uint64_t hash = by.seed;
    for (const int32_t k : by.keys) {
      const RowColumn& c = rows.columns[static_cast<size_t>(k)];
      const bool null = !c.null.empty() && c.null[r] != 0;
      hash = null ? HashWord(hash, -1) : HashValue(c, r, hash, by.strings);
    }
    (*out)[r] = static_cast<uint32_t>((hash * kHashSeed >> 32) * parts >> 32);
  }
}

/// Appends the values of the rows to those of their parts.
template <class T>
void Deal(const std::vector<T>& values, const std::vector<uint32_t>& parts, const std::vector<size_t>& counts,
          std::span<std::vector<T>*> to) {
  if (values.empty()) return;
  for (size_t p = 0; p < to.size(); ++p) to[p]->reserve(counts[p]);
  for (size_t i = 0; i < values.size(); ++i) {
    ThrowIfInterrupted(i);
    to[parts[i]]->push_back(values[i]);
  }
}

}  // namespace

Result<std::vector<RowSet>> CutByKey(const RunState& state, RowSet rows, const std::vector<SqlType>& types,
                                     const std::vector<int32_t>& keys, size_t parts, uint64_t seed) {
  const MemoryPurpose purpose("rows of keys");
  std::vector<RowSet> out(parts);
  if (parts == 1) {
    out[0] = std::move(rows);
    return out;
  }
  std::vector<uint32_t> part(rows.rows);
  ThreadPool* const shared = rows.rows < kTurnRows ? nullptr : state.pool;
  TESSERA_TRY(ForEach(shared, (rows.rows + kTurnRows - 1) / kTurnRows, [&](size_t turn) {
    const size_t begin = turn * kTurnRows;
    FindParts({keys, state.strings, seed}, rows, parts, begin, std::min(rows.rows, begin + kTurnRows), &part);
    return Status::Ok();
  }));
  std::vector<size_t> counts(parts);
  for (const uint32_t p : part) ++counts[p];
  for (size_t p = 0; p < parts; ++p) {
    out[p] = MakeRowSet(types);
    out[p].rows = counts[p];
  }
  TESSERA_TRY(ForEach(shared, rows.columns.size(), [&](size_t column) {
    const RowColumn from = std::move(rows.columns[column]);  // its memory goes as soon as it has been dealt
    std::vector<std::vector<int64_t>*> low(parts), high(parts);
    std::vector<std::vector<uint8_t>*> null(parts);
    for (size_t p = 0; p < parts; ++p) {
      RowColumn& to = out[p].columns[column];
      low[p] = &to.low;
      high[p] = &to.high;
      null[p] = &to.null;
    }
    Deal<int64_t>(from.low, part, counts, low);
    Deal<int64_t>(from.high, part, counts, high);
    Deal<uint8_t>(from.null, part, counts, null);
    return Status::Ok();
  }));
  return out;
}

Result<RowSet> ExchangeByKey(RunState* state, Result<RowSet> mine, const std::vector<SqlType>& types,
                             const std::vector<int32_t>& keys, SectionStatistics* stats) {
  Exchange& exchange = *state->options.exchange;
  const size_t made = mine.ok() ? mine->rows : 0;
  Result<std::vector<Shipment>> cut = Caught([&]() -> Result<std::vector<Shipment>> {
    TESSERA_TRY(mine.status());
    const auto ranks = static_cast<size_t>(exchange.ranks());
    TESSERA_ASSIGN(std::vector<RowSet> rows, CutByKey(*state, std::move(*mine), types, keys, ranks, kRankSeed));
    std::vector<Shipment> shipments(ranks);
    for (size_t r = 0; r < ranks; ++r) shipments[r].rows = std::move(rows[r]);
    return shipments;
  });
  TESSERA_TRY(exchange.Agree(cut.status()));
  stats->rows_exchanged += made - (*cut)[static_cast<size_t>(exchange.rank())].rows.rows;
  TESSERA_ASSIGN(std::vector<Shipment> all, exchange.AllToAll(std::move(*cut), types, &state->strings));
  const PhaseScope phase(Phase::kMerge);
  RowSet out = MakeRowSet(types);
  TESSERA_TRY(Caught([&] {
    std::vector<RowSet> rows;
    for (Shipment& shipment : all) rows.push_back(std::move(shipment.rows));
    return AppendAll(&out, std::move(rows), state->pool);
  }));
  return out;
}

}  // namespace tessera::vm
