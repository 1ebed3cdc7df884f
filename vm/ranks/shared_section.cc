// Puts together what the ranks made of a section.

#include "vm/ranks/shared_section.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "base/exception_status.h"
#include "base/memory_budget.h"
#include "base/phase_clock.h"
#include "base/thread_pool.h"
#include "vm/ranks/build_pieces.h"
#include "vm/ranks/device_exchange.h"
#include "vm/ranks/exchanged_rows.h"
#include "vm/ranks/key_exchange.h"
#include "vm/rows/row_set.h"
#include "vm/rows/sorted_rows.h"
#include "vm/run/host_sections.h"
#include "vm/shares/tell_ranks.h"

namespace tessera::vm {
namespace {

/// Groups that are worth the threads' waking; that are merged at a time, which takes 2 or 3 MB; and most parts.
constexpr size_t kManyGroups = 1 << 16, kGroupsTogether = 1 << 15, kMostParts = 512;

/// Rows on devices stay there from so much fewer on: they are exchanged, and read again, many times as fast.
constexpr uint64_t kDeviceShare = 16;

/// Units of a thread whose rows are held beside those that a join table has got: half a million source rows.
constexpr size_t kPieceUnits = 8;

/// The stream of one rank's shipments at the master, and how much of it has been consumed.
struct IncomingRows {
  Shipment shipment;
  size_t unit = 0, row = 0;  ///< the next ones of the shipment

  /// The unit whose rows come next; between shipments, the least that it can be.
  uint64_t Next() const { return unit < shipment.units.size() ? shipment.units[unit].unit : shipment.through; }
  bool IsConsumed() const { return unit == shipment.units.size(); }
  bool IsDone() const { return IsConsumed() && shipment.last; }
};

/// The rank whose rows come next.
size_t NextRank(const std::vector<IncomingRows>& from) {
  size_t least = 0;
  for (size_t r = 1; r < from.size(); ++r) {
    if (from[least].IsDone() || (!from[r].IsDone() && from[r].Next() < from[least].Next())) least = r;
  }
  return least;
}

}  // namespace

SharedSection::SharedSection(RunState* state, DeviceSections* device, const Status& ready, bool on_devices,
                             DeviceSections* exchanger, int number, SectionStatistics* stats)
    : state_(*state),
      section_(state->section(number)),
      number_(number),
      stats_(stats),
      exchange_(*state->options.exchange),
      portion_device_(device),
      on_devices_(on_devices),
      exchanger_(exchanger) {
  if (!section_.placement.by_key || exchanger_ != nullptr)
    portion_.emplace(state, device, ready, number, stats, RoundsOf(state, device, number));
}

Result<RowSet> SharedSection::Run(const RowConsumer& consume) {
  if (section_.placement.by_key) return exchanger_ != nullptr ? KeepRowsOfDevices() : KeepExchangedRows();
  if (section_.sink == Section::Sink::kGroups) return MergeGroups();
  if (section_.sink == Section::Sink::kJoin) return section_.placement.co_located ? KeepOwnRows() : GatherJoin();
  if (!section_.after.order.empty()) return GatherOrderedRows();
  // (A stream waits for single ranks, and rounds for all.)
  if (!state_.IsLast(number_) || portion_->in_rounds()) return GatherRows();
  return state_.IsMaster() ? StreamIn(consume) : StreamOut();
}

Status SharedSection::OwnError(const Status& status) const {
  if (!status.ok() && status.code() == ErrorCode::kCancelled && !state_.IsCancelled() && exchange_.Stopped())
    return Status::Ok();
  return status;
}

/// What a rank keeps if the master has the rows, or if another rank failed. In the second case the master's sections go
/// on with it until the ranks agree on the error.
RowSet SharedSection::NoRows() const { return state_.IsMaster() ? MakeRowSet(section_.columns) : RowSet{}; }

Result<bool> SharedSection::StaysDistributed(const Status& mine, uint64_t rows) {
  if (!MayStayDistributed()) return false;
  TESSERA_ASSIGN(const std::vector<uint64_t> all, TellRanks(&exchange_, mine, rows));
  const bool must = MustStayDistributed(state_.program, state_.traits, number_);
  return NoteStays(must ? UINT64_MAX : std::accumulate(all.begin(), all.end(), uint64_t{0}));
}

bool SharedSection::NoteStays(uint64_t rows_of_all) {
  const bool stays = rows_of_all > exchange_.exchange_above() / (on_devices_ ? kDeviceShare : 1);
  state_.distributed[static_cast<size_t>(number_)] = stays;
  stats_->distributed = stays;
  return stays;
}

Result<RowSet> SharedSection::MergeGroups() {
  Status status = Caught([&] { return portion_->FindGroups(); });
  if (!status.ok()) exchange_.Stop();
  if (on_devices_ && MayStayDistributed() && !section_.placement.co_located)
    return MergeDeviceGroups(std::move(status));
  TESSERA_ASSIGN(const bool stays, StaysDistributed(status, status.ok() ? portion_->groups() : 0));
  if (!stays) return MergeUpTree(std::move(status));
  return section_.placement.co_located ? KeepOwnGroups() : ExchangeGroups();
}

/// No other rank has groups with their keys. (An error is known when the ranks agree before the next section.)
Result<RowSet> SharedSection::KeepOwnGroups() {
  return Caught([&] { return portion_->OwnGroups(); });
}

Result<RowSet> SharedSection::MergeDeviceGroups(Status status) {
  GroupOffer mine;
  if (status.ok()) {
    status = Caught([&]() -> Status {
      TESSERA_ASSIGN(mine, portion_->OfferGroups());
      return Status::Ok();
    });
  }
  TESSERA_ASSIGN(const std::vector<GroupOffer> offers, TellRanks(&exchange_, status, mine));
  uint64_t groups = 0;
  for (const GroupOffer& offer : offers) groups += offer.groups;
  if (!NoteStays(groups)) return MergeUpTree(std::move(status));
  const bool can = std::ranges::all_of(offers, [](const GroupOffer& offer) { return offer.can != 0; });
  return can ? portion_->ExchangeGroups(offers) : ExchangeGroups();
}

Result<RowSet> SharedSection::ExchangeGroups() {
  Result<RowSet> groups = Caught([&] { return portion_->GroupRows(); });
  TESSERA_ASSIGN(RowSet partial,
                 ExchangeByKey(&state_, std::move(groups), section_.columns, ExchangeKeys(section_), stats_));
  const PhaseScope phase(Phase::kMerge);
  Result<RowSet> rows = Caught([&] { return MergePartialGroups(std::move(partial)); });
  if (rows.ok()) stats_->rows_out = rows->rows;
  return rows;
}

/// Each thread merges the groups of some keys, so few at a time that a cache has room for them.
Result<RowSet> SharedSection::MergePartialGroups(RowSet partial) {
  const size_t parts = partial.rows < kManyGroups ? 1
                                                  : std::clamp(partial.rows / kGroupsTogether, Workers(state_.pool),
                                                               std::max(kMostParts, Workers(state_.pool)));
  TESSERA_ASSIGN(std::vector<RowPieces> cut,
                 CutByKey(state_, std::move(partial), section_.columns, ExchangeKeys(section_), parts, kThreadSeed));
  std::vector<RowSet> merged(parts);
  const auto merge = [&](size_t part) {
    GroupTable groups(section_, &state_.strings);
    for (RowSet& piece : cut[part]) TESSERA_TRY(groups.Merge(std::exchange(piece, {})));
    merged[part] = groups.Rows();
    return Status::Ok();
  };
  TESSERA_TRY(ForEach(parts == 1 ? nullptr : state_.pool, parts, merge));
  RowSet out = MakeRowSet(section_.columns);
  TESSERA_TRY(AppendAll(&out, std::move(merged), state_.pool));
  return out;
}

/// In round k, ranks whose lowest set bit is bit k send to the rank without that bit.
Result<RowSet> SharedSection::MergeUpTree(Status status) {
  std::unique_ptr<GroupTable> groups;
  if (status.ok()) {
    status = Caught([&] {
      TESSERA_ASSIGN(groups, portion_->Groups());
      stats_->rows_out = groups->groups();
      return Status::Ok();
    });
    if (!status.ok()) exchange_.Stop();
  }
  const int rank = exchange_.rank();
  for (int bit = 1; bit < exchange_.ranks(); bit <<= 1) {
    if ((rank & bit) != 0) {
      const auto rows = [&]() -> Result<Shipment> {
        TESSERA_TRY(status);
        Shipment mine;
        mine.rows = groups->Rows();
        return mine;
      };
      TESSERA_TRY(exchange_.Send(rank - bit, Caught(rows), state_.strings, true));
      groups.reset();
      break;
    }
    if (rank + bit < exchange_.ranks()) {
      Result<Shipment> theirs = exchange_.Receive(rank + bit, section_.columns, &state_.strings);
      const PhaseScope phase(Phase::kMerge);
      if (status.ok() && !theirs.ok()) status = theirs.status();
      if (status.ok()) status = Caught([&] { return groups->Merge(theirs->rows); });
    }
  }
  TESSERA_TRY(OwnError(status));
  if (!state_.IsMaster() || !status.ok()) return NoRows();
  stats_->rows_out = groups->groups();
  return Caught([&]() -> Result<RowSet> { return groups->Rows(); });
}

/// In rounds, so that a rank holds little beside what it keeps.
Result<RowSet> SharedSection::KeepExchangedRows() {
  ExchangedRows rows(&state_, portion_device_, number_, stats_);
  const MemoryPurpose purpose("rows of a join");
  RowSet all = MakeRowSet(section_.columns);
  for (bool last = false; !last;) {
    TESSERA_ASSIGN(RowSet came, rows.Next(&last));
    const Status kept = Caught([&] {
      std::vector<RowSet> more;
      more.push_back(std::move(came));
      return AppendAll(&all, std::move(more), state_.pool);
    });
    if (!kept.ok()) return last ? kept : rows.Fail(kept);
  }
  stats_->rows_out = all.rows;
  state_.distributed[static_cast<size_t>(number_)] = true;
  return all;
}

Result<RowSet> SharedSection::KeepRowsOfDevices() {
  Result<Shipment> made = portion_->All();
  Result<RowSet> mine = MakeRowSet(section_.columns);
  if (const Status own = OwnError(made.status()); !own.ok()) {
    mine = own;
  } else if (made.ok() && !portion_->is_kept()) {
    mine = std::move(made->rows);
  }
  return ExchangeByDevices(&state_, exchanger_, number_, std::move(mine), stats_);
}

/// They are where the rows are that probe the table. In pieces, so that memory grows by no more than they take.
Result<RowSet> SharedSection::KeepOwnRows() {
  stats_->distributed = true;
  RowSet rows = MakeRowSet(section_.columns);
  const Status status = Caught([&] {
    std::vector<RowSet> made;
    for (bool last = false; !last;) {
      TESSERA_ASSIGN(Shipment next, portion_->Next(kPieceUnits * Workers(state_.pool)));
      last = next.last;
      made.push_back(std::move(next.rows));
    }
    return AppendAll(&rows, std::move(made), state_.pool);
  });
  portion_->AddStatistics();
  if (status.ok()) return rows;
  exchange_.Stop();
  TESSERA_TRY(OwnError(status));
  return MakeRowSet(section_.columns);
}

/// Gives every rank all rows of the build side.
Result<RowSet> SharedSection::GatherJoin() {
  Result<Shipment> mine = portion_->All();
  TESSERA_ASSIGN(const std::vector<uint64_t> of_ranks,
                 TellRanks(&exchange_, OwnError(mine.status()), mine.ok() ? uint64_t{mine->rows.rows} : 0));
  const uint64_t rows = std::accumulate(of_ranks.begin(), of_ranks.end(), uint64_t{0});
  const uint64_t bytes = rows * BuildRowBytes(section_);
  if (bytes > exchange_.broadcast_limit()) {
    if (StaysInShares(&state_, section_.join)) return std::move(mine->rows);
    // What was not exchanged by key goes to all ranks that have the memory, which is not the limit's to say.
    Status fits;
    if (bytes > MemoryLimit()) {
      fits = Unsupported(
          "the build side of a join has " + std::to_string(rows) + " rows, more than a rank has memory for", -1,
          "SET join_exchange = on sends both sides to the ranks of their keys, so that each holds a share; or "
          "SET memory_limit to more than " +
              std::to_string(bytes) + " bytes.");
    }
    TESSERA_TRY(exchange_.Agree(fits));
  }
  TESSERA_ASSIGN(std::vector<Shipment> all, exchange_.AllGather(std::move(*mine), section_.columns, &state_.strings));
  const PhaseScope phase(Phase::kMerge);
  Result<RowSet> together = Caught([&]() -> Result<RowSet> { return InUnitOrder(section_, std::move(all)); });
  return together;
}

Status SharedSection::GatherAtMaster(Result<Shipment> mine, const std::vector<SqlType>& types,
                                     std::vector<Shipment>* all) {
  Status status = mine.status();
  if (!state_.IsMaster()) {
    TESSERA_TRY(exchange_.Send(0, std::move(mine), state_.strings, true));
    return OwnError(status);
  }
  all->resize(1);
  if (status.ok()) all->front() = std::move(*mine);
  for (int r = 1; r < exchange_.ranks(); ++r) {
    Result<Shipment> theirs = exchange_.Receive(r, types, &state_.strings);
    if (!theirs.ok()) {
      if (status.ok()) status = theirs.status();
    } else if (status.ok()) {
      all->push_back(std::move(*theirs));
    }
  }
  if (!status.ok()) all->clear();
  return OwnError(status);
}

/// Brings all rows to the master, in the order in which one process would make them.
Result<RowSet> SharedSection::GatherRows() {
  Result<Shipment> mine = portion_->All();
  TESSERA_ASSIGN(const bool stays, StaysDistributed(mine.status(), mine.ok() ? mine->rows.rows : 0));
  if (stays) return portion_->is_kept() ? RowSet{} : std::move(mine->rows);
  if (mine.ok() && portion_->is_kept()) {
    if (const Status fetched = Caught([&] { return portion_->Fetch(&*mine); }); !fetched.ok()) mine = fetched;
  }
  std::vector<Shipment> all;
  TESSERA_TRY(GatherAtMaster(std::move(mine), section_.columns, &all));
  if (all.empty()) return NoRows();
  const PhaseScope phase(Phase::kMerge);
  RowSet rows;
  TESSERA_TRY(Caught([&] {
    rows = InUnitOrder(section_, std::move(all));
    return OrderAndLimit(section_.after, state_.strings, state_.pool, &rows);
  }));
  stats_->rows_out = rows.rows;
  return rows;
}

/// Brings all rows to the master, in the section's order. Ranks sort and cut their own rows first. A hidden last
/// column, the number of the unit, puts equal rows in the order that one process would give them.
Result<RowSet> SharedSection::GatherOrderedRows() {
  Section s = section_;
  s.after.order.push_back({static_cast<int32_t>(s.columns.size()), false, false});
  s.columns.push_back(SqlType::Of(TypeId::kBigint));
  Result<Shipment> mine = portion_->All();
  TESSERA_ASSIGN(const bool stays, StaysDistributed(mine.status(), mine.ok() ? mine->rows.rows : 0));
  if (stays) return ExchangeOrderedRows(std::move(mine), s);
  if (mine.ok()) {
    const Status sorted = Caught([&] {
      AppendUnitColumn(&*mine);
      // (Rows of a GPU are in order already, and belong to one unit.)
      return portion_->on_device() ? Status::Ok()
                                   : OrderAndLimit(WithoutOffset(s.after), state_.strings, state_.pool, &mine->rows);
    });
    if (!sorted.ok()) mine = sorted;
  }
  std::vector<Shipment> all;
  TESSERA_TRY(GatherAtMaster(std::move(mine), s.columns, &all));
  if (all.empty()) return NoRows();
  const PhaseScope phase(Phase::kMerge);
  RowSet rows = MakeRowSet(s.columns);
  TESSERA_TRY(Caught([&] {
    std::vector<size_t> starts;
    for (Shipment& shipment : all) {
      starts.push_back(rows.rows);
      if (shipment.rows.rows > 0) AppendRows(&rows, std::move(shipment.rows));
      shipment = Shipment{};
    }
    return MergeRuns(s.after, starts, state_.strings, state_.pool, &rows);
  }));
  rows.columns.pop_back();
  stats_->rows_out = rows.rows;
  return rows;
}

Result<RowSet> SharedSection::ExchangeOrderedRows(Result<Shipment> mine, const Section& with_unit) {
  Result<RowSet> rows = Caught([&]() -> Result<RowSet> {
    TESSERA_TRY(mine.status());
    AppendUnitColumn(&*mine);
    return std::move(mine->rows);
  });
  RowSet came;
  if (section_.placement.co_located) {
    TESSERA_TRY(exchange_.Agree(rows.status()));
    came = std::move(*rows);
  } else {
    TESSERA_ASSIGN(came, ExchangeByKey(&state_, std::move(rows), with_unit.columns, ExchangeKeys(section_), stats_));
  }
  const PhaseScope phase(Phase::kMerge);
  TESSERA_TRY(Caught([&] { return OrderAndLimit(with_unit.after, state_.strings, state_.pool, &came); }));
  came.columns.pop_back();
  stats_->rows_out = came.rows;
  return came;
}

Result<RowSet> SharedSection::StreamOut() {
  Status status;
  for (bool last = false; !last;) {
    Result<Shipment> next = portion_->Next(StreamWindow(state_));
    status = next.status();
    last = !next.ok() || next->last;
    TESSERA_TRY(exchange_.Send(0, std::move(next), state_.strings, last));
  }
  portion_->AddStatistics();
  TESSERA_TRY(OwnError(status));
  return RowSet{};
}

/// Passes on the rows of all ranks in the order of their units, as they come. At most one shipment of each rank is
/// held.
Result<RowSet> SharedSection::StreamIn(const RowConsumer& consume) {
  std::vector<IncomingRows> from(static_cast<size_t>(exchange_.ranks()));
  for (IncomingRows& i : from) i.shipment.last = false;
  RowStream stream(state_, section_, consume);
  Status status;
  while (status.ok() && !stream.full()) {
    const size_t rank = NextRank(from);
    IncomingRows& i = from[rank];
    if (i.IsDone()) break;
    if (i.IsConsumed()) {
      Result<Shipment> next = rank == 0 ? portion_->Next(StreamWindow(state_))
                                        : exchange_.Receive(static_cast<int>(rank), section_.columns, &state_.strings);
      if (next.ok()) {
        i = IncomingRows{std::move(*next)};
      } else {
        i.shipment.last = true;  // it sends no more
        status = next.status();
      }
      continue;
    }
    const uint64_t rows = i.shipment.units[i.unit].rows;
    status = Caught([&] { return stream.Add(i.shipment.rows, i.row, rows); });
    i.row += rows;
    ++i.unit;
  }
  if (status.ok()) status = Caught([&] { return stream.Flush(); });
  // The last shipment of every rank has to be received, even after an error.
  const auto is_open = [](const IncomingRows& i) { return !i.shipment.last; };
  if (std::any_of(from.begin() + 1, from.end(), is_open)) exchange_.Stop();
  for (size_t r = 1; r < from.size(); ++r) {
    while (is_open(from[r])) {
      Result<Shipment> rest = exchange_.Receive(static_cast<int>(r), section_.columns, &state_.strings);
      from[r].shipment.last = !rest.ok() || rest->last;
    }
  }
  portion_->AddStatistics();
  stats_->rows_out = stream.streamed();
  TESSERA_TRY(OwnError(status));
  return MakeRowSet(section_.columns);
}

}  // namespace tessera::vm
