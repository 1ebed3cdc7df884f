#include "kernels/plan/cut_tiles.h"

#include <algorithm>
#include <bit>

namespace tessera::kernels {
namespace {

/// Parts with a share of the matches take their share of the time, so that several for a block even out what tiles differ
/// in. More of them cost more than they give: each takes some microseconds.
constexpr uint64_t kPartsOfBlock = 4;
/// A thread walks past the matches that are not its part's, one after the other.
constexpr uint32_t kMostMatchBits = 6;

/// Matches that a row has on average, at least: rows of the table, by the numbers that its keys can have.
uint64_t MatchesOf(const JoinRecord& join) {
  if (join.probe == ProbeKind::kNestedLoop || join.probe == ProbeKind::kBits || join.hashed != 0) return 1;
  return join.last >= join.rows ? 1 : join.rows / (join.last + 1);
}

}  // namespace

void CutTiles(const vm::SectionTraits& traits, uint64_t blocks, LaunchInput* input, std::vector<JoinRecord>* joins) {
  const uint32_t tiles = input->tiles;
  if (tiles == 0 || tiles > blocks) return;
  uint32_t match_bits = 0;
  for (const vm::ProbeTrait& probe : traits.probes) {
    if (probe.form != vm::ProbeForm::kInnerLoop) continue;
    JoinRecord& join = (*joins)[static_cast<size_t>(probe.join)];
    const auto room = static_cast<uint32_t>(std::bit_width((blocks * kPartsOfBlock / tiles) >> match_bits)) - 1;
    const auto wanted = static_cast<uint32_t>(std::bit_width(MatchesOf(join))) - 1;
    join.match_bits = static_cast<uint8_t>(std::min({room, wanted, kMostMatchBits}));
    join.match_shift = static_cast<uint8_t>(match_bits);
    match_bits += join.match_bits;
  }
  // A part with a share of the rows goes through as many turns as the tile, with fewer rows in each.
  while (input->part_bits < 4 && uint64_t{tiles} << (match_bits + input->part_bits + 2) <= blocks)
    input->part_bits += 2;
  if (match_bits + input->part_bits == 0) return;
  for (JoinRecord& join : *joins) join.match_shift = static_cast<uint8_t>(join.match_shift + input->part_bits);
  input->whole_tiles = tiles;
  input->tiles = tiles << (match_bits + input->part_bits);
}

}  // namespace tessera::kernels
