#include "vm/run/key_exchange.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/memory_budget.h"
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

/// The rank of each row [begin, end). The group tables of that rank use other bits of their hash.
void FindRanks(const RowSet& rows, const std::vector<int32_t>& keys, uint64_t ranks, const StringPool& strings,
               size_t begin, size_t end, std::vector<uint32_t>* out) {
  for (size_t r = begin; r < end; ++r) {
    ThrowIfInterrupted(r);
    uint64_t hash = ~kHashSeed;
    for (const int32_t k : keys) {
      const RowColumn& c = rows.columns[static_cast<size_t>(k)];
      const bool null = !c.null.empty() && c.null[r] != 0;
      hash = null ? HashWord(hash, -1) : HashValue(c, r, hash, strings);
    }
    (*out)[r] = static_cast<uint32_t>((hash * kHashSeed >> 32) * ranks >> 32);
  }
}

/// Appends the values of the rows to those of their ranks.
template <class T>
void Deal(const std::vector<T>& values, const std::vector<uint32_t>& ranks, const std::vector<size_t>& counts,
          std::span<std::vector<T>*> to) {
  if (values.empty()) return;
  for (size_t r = 0; r < to.size(); ++r) to[r]->reserve(counts[r]);
  for (size_t i = 0; i < values.size(); ++i) {
    ThrowIfInterrupted(i);
    to[ranks[i]]->push_back(values[i]);
  }
}

/// The rows, cut by the ranks that they go to.
Result<std::vector<Shipment>> CutByKey(const RunState& state, RowSet rows, const std::vector<SqlType>& types,
                                       const std::vector<int32_t>& keys) {
  const MemoryPurpose purpose("rows for other ranks");
  const auto n = static_cast<size_t>(state.options.exchange->ranks());
  std::vector<uint32_t> ranks(rows.rows);
  ThreadPool* const shared = rows.rows < kTurnRows ? nullptr : state.pool;
  TESSERA_TRY(ForEach(shared, (rows.rows + kTurnRows - 1) / kTurnRows, [&](size_t turn) {
    const size_t begin = turn * kTurnRows;
    FindRanks(rows, keys, n, state.strings, begin, std::min(rows.rows, begin + kTurnRows), &ranks);
    return Status::Ok();
  }));
  std::vector<size_t> counts(n);
  for (const uint32_t rank : ranks) ++counts[rank];
  std::vector<Shipment> out(n);
  for (size_t r = 0; r < n; ++r) {
    out[r].rows = MakeRowSet(types);
    out[r].rows.rows = counts[r];
  }
  TESSERA_TRY(ForEach(shared, rows.columns.size(), [&](size_t column) {
    const RowColumn from = std::move(rows.columns[column]);  // its memory goes as soon as it has been dealt
    std::vector<std::vector<int64_t>*> low(n), high(n);
    std::vector<std::vector<uint8_t>*> null(n);
    for (size_t r = 0; r < n; ++r) {
      RowColumn& to = out[r].rows.columns[column];
      low[r] = &to.low;
      high[r] = &to.high;
      null[r] = &to.null;
    }
    Deal<int64_t>(from.low, ranks, counts, low);
    Deal<int64_t>(from.high, ranks, counts, high);
    Deal<uint8_t>(from.null, ranks, counts, null);
    return Status::Ok();
  }));
  return out;
}

}  // namespace

Result<RowSet> ExchangeByKey(RunState* state, Result<RowSet> mine, const std::vector<SqlType>& types,
                             const std::vector<int32_t>& keys, SectionStatistics* stats) {
  Exchange& exchange = *state->options.exchange;
  const auto begin = Clock::now();
  const size_t made = mine.ok() ? mine->rows : 0;
  Result<std::vector<Shipment>> cut = Caught([&]() -> Result<std::vector<Shipment>> {
    TESSERA_TRY(mine.status());
    return CutByKey(*state, std::move(*mine), types, keys);
  });
  state->mine.execute += MillisecondsSince(begin);
  TESSERA_TRY(exchange.Agree(cut.status()));
  stats->rows_exchanged += made - (*cut)[static_cast<size_t>(exchange.rank())].rows.rows;
  TESSERA_ASSIGN(std::vector<Shipment> all, exchange.AllToAll(std::move(*cut), types, &state->strings));
  const auto start = Clock::now();
  RowSet out = MakeRowSet(types);
  TESSERA_TRY(Caught([&] {
    std::vector<RowSet> rows;
    for (Shipment& shipment : all) rows.push_back(std::move(shipment.rows));
    return AppendAll(&out, std::move(rows), state->pool);
  }));
  state->mine.merge += MillisecondsSince(start);
  return out;
}

}  // namespace tessera::vm
