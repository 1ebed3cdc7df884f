#include "vm/ranks/heavy_keys.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/exception_status.h"
#include "base/interrupt.h"
#include "base/memory_budget.h"
#include "base/thread_pool.h"
#include "vm/ranks/key_exchange.h"
#include "vm/rows/row_set.h"
#include "vm/shares/heavy_count.h"

namespace tessera::vm {
namespace {

/// Rows of a round whose keys a rank counts: enough that a key with 1/64 of the rows is found with certainty.
constexpr size_t kSampleRows = 4096;
/// Keys that a rank names, at most.
constexpr size_t kMostCandidates = 256;
/// Rows that are worth a turn of a thread.
constexpr size_t kTurnRows = 1 << 16;

using KeyCounts = std::map<uint64_t, HeavyCount>;  // by hash, in the same order on all ranks

/// What ranks tell each other of keys: hash and rows. In the first row the rows of all keys.
std::vector<SqlType> CountTypes() { return {SqlType::Of(TypeId::kBigint), SqlType::Of(TypeId::kBigint)}; }

/// One side of an exchanged join.
struct Side {
  int join = -1;  ///< -1: rows of this section are not spread
  bool probes = false;
  bool may_spread = false;
};

Side SideOf(const Program& program, const ProgramTraits& traits, int number) {
  const Section& s = program.sections[static_cast<size_t>(number)];
  Side side;
  if (s.sink == Section::Sink::kJoin) {
    const JoinTraits& join = traits.join(s.join);
    if (join.exchanged_prober >= 0) side = {s.join, false, join.inner};
    return side;
  }
  if (const int join = traits.probed_with[static_cast<size_t>(number)]; join >= 0) side = {join, true, true};
  return side;
}

class Skew {
 public:
  Skew(RunState* state, int number, uint64_t round, SectionStatistics* stats)
      : state_(*state),
        exchange_(*state->options.exchange),
        section_(state->section(number)),
        keys_(ExchangeKeys(section_)),
        round_(round),
        stats_(stats),
        side_(SideOf(state->program, state->traits, number)) {}

  /// Whether Look has anything to do in this round.
  bool LooksAt() const { return side_.may_spread && std::has_single_bit(round_); }
  /// Finds out which keys are heavy among the rows of this round; all ranks have made theirs.
  Status Look(const RowSet& rows) {
    TESSERA_ASSIGN(KeyCounts heavy, FindHeavy(rows));
    if (!heavy.empty()) TESSERA_TRY(side_.probes ? SpreadProbes(std::move(heavy)) : SpreadBuild(heavy));
    return side_.probes && round_ == 1 ? exchange_.Agree(Index()) : Status::Ok();
  }
  const KeyRoutes* routes() const {
    return side_.join < 0 ? nullptr : side_.probes ? &Routes().probe : &Routes().build;
  }

 private:
  JoinRoutes& Routes() const { return state_.routes[static_cast<size_t>(side_.join)]; }

  uint64_t HashAt(const RowSet& rows, size_t row, std::span<const int32_t> keys) const {
    return HashOfKeys(rows, row, keys, state_.strings, kRankSeed);
  }

  /// What this rank has of each key, in the form of CountTypes. `all`: rows of all keys.
  static Shipment Counted(const std::vector<std::pair<uint64_t, uint64_t>>& counts, uint64_t all) {
    Shipment out;
    out.rows = MakeRowSet(CountTypes());
    const auto add = [&](uint64_t hash, uint64_t rows) {
      out.rows.columns[0].low.push_back(static_cast<int64_t>(hash));
      out.rows.columns[1].low.push_back(static_cast<int64_t>(rows));
      ++out.rows.rows;
    };
    add(0, all);
    for (const auto& [hash, rows] : counts) add(hash, rows);
    return out;
  }

  // An error that one of these returns is one of all ranks: what may fail on one of them is followed by an Agree.

  /// All ranks' counts together. `all`: by rank, rows of all keys.
  Result<KeyCounts> Exchanged(Result<Shipment> mine, std::vector<uint64_t>* all) {
    TESSERA_TRY(exchange_.Agree(mine.status()));
    const Result<std::vector<Shipment>> theirs = exchange_.AllGather(std::move(*mine), CountTypes(), &state_.strings);
    KeyCounts counts;
    const Status counted = Caught([&] {
      TESSERA_TRY(theirs.status());
      for (const Shipment& s : *theirs) {
        const RowSet& rows = s.rows;
        all->push_back(rows.rows == 0 ? 0 : static_cast<uint64_t>(rows.columns[1].low[0]));
        for (size_t i = 1; i < rows.rows; ++i) {
          const auto hash = static_cast<uint64_t>(rows.columns[0].low[i]);
          counts[hash].Add(static_cast<uint64_t>(rows.columns[1].low[i]));
        }
      }
      return Status::Ok();
    });
    TESSERA_TRY(exchange_.Agree(counted));
    return counts;
  }

  /// The most frequent keys in a sample of this rank's rows, with how many rows they probably have.
  Result<Shipment> Candidates(const RowSet& rows) const {
    const size_t sampled = std::min(rows.rows, kSampleRows);
    std::map<uint64_t, uint64_t> found;
    for (size_t i = 0; i < sampled; ++i) {
      // (One of each range, but not at the same distance: rows may follow a pattern.)
      const size_t first = i * rows.rows / sampled, next = (i + 1) * rows.rows / sampled;
      const size_t place = HashWord(kHashSeed, static_cast<int64_t>(i)) % (next - first);
      ++found[HashAt(rows, first + place, keys_)];
    }
    std::vector<std::pair<uint64_t, uint64_t>> counts;
    const uint64_t ranks = static_cast<uint64_t>(exchange_.ranks());
    for (const auto& [hash, times] : found) {
      const bool known = Routes().build.Of(hash) != KeyRoute::kOwner || Routes().probe.Of(hash) != KeyRoute::kOwner;
      if (known || times < 2 || times * 2 * kHeavyFraction * ranks < sampled) continue;
      counts.emplace_back(hash, times * rows.rows / sampled);
    }
    std::ranges::sort(counts, [](const auto& a, const auto& b) { return a.second > b.second; });
    if (counts.size() > kMostCandidates) counts.resize(kMostCandidates);
    return Counted(counts, rows.rows);
  }

  Result<KeyCounts> FindHeavy(const RowSet& rows) {
    std::vector<uint64_t> made;
    TESSERA_ASSIGN(KeyCounts counts, Exchanged(Caught([&] { return Candidates(rows); }), &made));
    uint64_t all = 0;
    for (const uint64_t m : made) all += m;
    const uint64_t least = HeavyFrom(all, static_cast<uint64_t>(exchange_.ranks()));
    std::erase_if(counts, [&](const auto& c) { return c.second.rows < least; });
    return counts;
  }

  KeyRoute SpreadBy(const HeavyCount& count) const {
    return count.MayStay(static_cast<uint64_t>(exchange_.ranks())) ? KeyRoute::kStay : KeyRoute::kDeal;
  }

  Status SpreadBuild(const KeyCounts& heavy) {
    stats_->heavy_keys += heavy.size();
    return exchange_.Agree(Caught([&] {
      for (const auto& [hash, count] : heavy) {
        Routes().build.Set(hash, SpreadBy(count));
        Routes().probe.Set(hash, KeyRoute::kAll);
      }
      return Status::Ok();
    }));
  }

  /// Gives all ranks the build side's rows of those keys for which that is worth it.
  Status SpreadProbes(KeyCounts heavy) {
    const Section& builder = state_.section(state_.join(side_.join).section);
    RowSet built = state_.joins.Take(side_.join);
    std::vector<size_t> found;
    std::vector<uint64_t> all;
    TESSERA_ASSIGN(
        const KeyCounts build,
        Exchanged(Caught([&]() -> Result<Shipment> { return FindBuilt(built, builder, heavy, &found); }), &all));
    Choose(build, *std::ranges::max_element(all), builder, &heavy);
    stats_->heavy_keys += heavy.size();
    Status kept = Caught([&] {
      for (const auto& [hash, count] : heavy) Routes().probe.Set(hash, SpreadBy(count));
      return Status::Ok();
    });
    const bool any = std::ranges::any_of(heavy, [&](const auto& h) { return build.contains(h.first); });
    if (any) {
      Result<Shipment> mine = Caught([&]() -> Result<Shipment> {
        TESSERA_TRY(kept);
        return BuiltOf(heavy, built, builder, found);
      });
      TESSERA_TRY(exchange_.Agree(mine.status()));
      Result<std::vector<Shipment>> theirs = exchange_.AllGather(std::move(*mine), builder.columns, &state_.strings);
      kept = Caught([&] {
        TESSERA_TRY(theirs.status());
        std::vector<RowSet> more;
        for (size_t r = 0; r < theirs->size(); ++r) {
          if (r != static_cast<size_t>(exchange_.rank())) more.push_back(std::move((*theirs)[r].rows));
        }
        return AppendAll(&built, std::move(more), state_.pool);
      });
    }
    state_.joins.Keep(side_.join, std::move(built), builder.keys);
    if (kept.ok() && round_ > 1) kept = Index();
    return exchange_.Agree(kept);
  }

  /// How many of this rank's rows of the join table have each of the keys; `found`: their numbers.
  Result<Shipment> FindBuilt(const RowSet& built, const Section& builder, const KeyCounts& heavy,
                             std::vector<size_t>* found) const {
    KeyRoutes wanted;
    for (const auto& [hash, count] : heavy) wanted.Set(hash, KeyRoute::kAll);
    const std::vector<int32_t> keys = ExchangeKeys(builder);
    std::mutex mutex;
    std::map<uint64_t, uint64_t> counts;
    TESSERA_TRY(ForEach(state_.pool, (built.rows + kTurnRows - 1) / kTurnRows, [&](size_t turn) {
      const size_t begin = turn * kTurnRows, end = std::min(built.rows, begin + kTurnRows);
      std::map<uint64_t, uint64_t> here;
      std::vector<size_t> rows;
      for (size_t r = begin; r < end; ++r) {
        ThrowIfInterrupted(r);
        const uint64_t hash = HashAt(built, r, keys);
        if (wanted.Of(hash) == KeyRoute::kOwner) continue;
        ++here[hash];
        rows.push_back(r);
      }
      std::lock_guard<std::mutex> lock(mutex);
      for (const auto& [hash, times] : here) counts[hash] += times;
      found->insert(found->end(), rows.begin(), rows.end());
      return Status::Ok();
    }));
    return Counted({counts.begin(), counts.end()}, built.rows);
  }

  /// Leaves the keys that are worth it: what each rank receives is less than what probes, and so is the index that has to
  /// be made again after the first round. As many rows as have come are expected to follow. `built`: rows of the
  /// join table, on the rank with the most.
  void Choose(const KeyCounts& build, uint64_t built, const Section& builder, KeyCounts* heavy) const {
    uint64_t rows = 0, probing = 0;
    std::erase_if(*heavy, [&](const auto& h) {
      const auto b = build.find(h.first);
      if (b == build.end()) return false;
      if (b->second.rows > h.second.rows * round_) return true;
      rows += b->second.rows;
      return false;
    });
    for (const auto& [hash, count] : *heavy) probing += count.rows * round_;
    const bool too_large = rows * BuildRowBytes(builder) > exchange_.broadcast_limit();
    const bool too_late = round_ > 1 && rows > 0 && built > 4 * probing;
    if (too_large || too_late) heavy->clear();
  }

  /// The rows that go to all ranks.
  Result<Shipment> BuiltOf(const KeyCounts& heavy, const RowSet& built, const Section& builder,
                           const std::vector<size_t>& found) const {
    Shipment out;
    out.rows = MakeRowSet(builder.columns);
    const std::vector<int32_t> keys = ExchangeKeys(builder);
    for (const size_t r : found) {
      if (heavy.contains(HashAt(built, r, keys))) AppendRange(&out.rows, built, r, 1);
    }
    return out;
  }

  /// Scans go on to leave out only what no rank's keys can match.
  Status Index() {
    const KeyRange range = state_.joins.key_ranges()[static_cast<size_t>(side_.join)];
    const Status indexed = Caught([&] { return state_.joins.Index(side_.join); });
    state_.joins.SetKeyRange(side_.join, range);
    return indexed;
  }

  RunState& state_;
  Exchange& exchange_;
  const Section& section_;
  const std::vector<int32_t> keys_;
  const uint64_t round_;
  SectionStatistics* const stats_;
  const Side side_;
};

}  // namespace

Result<RowSet> ExchangeJoinRows(RunState* state, int number, uint64_t round, Result<RowSet> mine,
                                SectionStatistics* stats) {
  Skew skew(state, number, round, stats);
  if (skew.LooksAt()) {
    TESSERA_TRY(state->options.exchange->Agree(mine.status()));
    TESSERA_TRY(skew.Look(*mine));
  }
  const Section& s = state->section(number);
  return ExchangeByKey(state, std::move(mine), s.columns, ExchangeKeys(s), stats, skew.routes());
}

}  // namespace tessera::vm
