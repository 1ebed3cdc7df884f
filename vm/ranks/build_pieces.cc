#include "vm/ranks/build_pieces.h"

#include <algorithm>

#include "base/exception_status.h"
#include "vm/rows/row_set.h"
#include "vm/run/host_sections.h"

namespace tessera::vm {
namespace {

/// Bytes of a piece, of all ranks together: enough rows that a tile of the source is worth being read for them, few
/// beside what a rank has room for.
constexpr uint64_t kPieceBytes = uint64_t{8} << 20;

/// The join table of the section that comes in pieces; -1: none.
int InPieces(const RunState& state, int number) {
  const Section& s = state.section(number);
  for (const ProbeTrait& p : state.traits.section(number).probes) {
    const bool scans = s.source_kind == Section::Source::kJoin && s.source == p.join;
    if (state.in_shares[static_cast<size_t>(p.join)] && !scans) return p.join;
  }
  return -1;
}

}  // namespace

bool StaysInShares(RunState* state, int join) {
  const auto at = static_cast<size_t>(join);
  if (!state->may_be_in_shares[at]) return false;
  // A second table in pieces would have to come anew for each piece of the first.
  for (const int prober : state->traits.join(join).probers) {
    if (InPieces(*state, prober) >= 0) return false;
  }
  state->in_shares[at] = true;
  return true;
}

std::unique_ptr<BuildPieces> BuildPieces::Of(RunState* state, int number) {
  const int join = InPieces(*state, number);
  if (join < 0) return nullptr;
  return std::unique_ptr<BuildPieces>(new BuildPieces(state, join));
}

/// Makes the join table of these rows.
Status BuildPieces::PutPiece(std::vector<Shipment> shipments) {
  const Section& builder = state_.section(state_.join(join_).section);
  return Caught([&] {
    RowSet rows = MakeRowSet(builder.columns);
    for (Shipment& shipment : shipments) AppendRows(&rows, std::move(shipment.rows));
    TESSERA_TRY(OrderJoin(state_, builder, &rows));
    return state_.joins.Add(join_, std::move(rows), 0);
  });
}

Status BuildPieces::Next(bool* last) {
  Exchange& exchange = *state_.options.exchange;
  TESSERA_TRY(exchange.Agree(Status::Ok()));
  const Section& builder = state_.section(state_.join(join_).section);
  const uint64_t bytes = std::min(kPieceBytes, exchange.broadcast_limit());
  const uint64_t each = bytes / BuildRowBytes(builder) / static_cast<uint64_t>(exchange.ranks());
  Shipment mine;
  mine.rows = MakeRowSet(builder.columns);
  Status status = Caught([&] {
    const size_t count = std::min<size_t>(std::max<uint64_t>(each, 1), share_.rows - next_);
    AppendRange(&mine.rows, share_, next_, count);
    next_ += count;
    return Status::Ok();
  });
  if (!status.ok()) mine.rows = MakeRowSet(builder.columns);  // (some columns may have got their values)
  mine.last = next_ == share_.rows;
  Result<std::vector<Shipment>> all = exchange.AllGather(std::move(mine), builder.columns, &state_.strings);
  if (status.ok()) status = all.status();
  if (status.ok()) {
    *last = std::ranges::all_of(*all, [](const Shipment& s) { return s.last; });
    status = PutPiece(std::move(*all));
  }
  return exchange.Agree(status);
}

Status BuildPieces::Cut(Scan* scan) {
  RenewJoin(&state_, scan);
  return Status::Ok();
}

Status BuildPieces::Fail(const Status& status) {
  state_.options.exchange->Stop();
  return state_.options.exchange->Agree(status);
}

}  // namespace tessera::vm
