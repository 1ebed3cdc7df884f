// Parts of tiles, for sections with few tiles whose rows meet several matches each. Private to kernels/.
//
// A thread goes through the matches of its rows one after the other, and its warp waits for the row with the most. Where
// there are fewer tiles than blocks, that is what the launch waits for. So rows and their matches are dealt out to parts,
// and blocks take parts instead of tiles. Each part begins with the head of the program, which finds the rows again.
//
// Start at: CutTiles. No CUDA calls; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/launch/launch.h"
#include "vm/program/section_traits.h"

namespace tessera::kernels {

/// Decides into how many parts each of input->tiles tiles is cut, and says so in `input` and in the join tables whose matches
/// are dealt out, joins[join]. `blocks`: as many as run at once.
void CutTiles(const vm::SectionTraits& traits, uint64_t blocks, LaunchInput* input, std::vector<JoinRecord>* joins);

}  // namespace tessera::kernels
