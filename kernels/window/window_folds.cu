// Aggregates of frames that no difference of running sums gives: trees of states.
#include "kernels/window/frame.cuh"
#include "kernels/window/window_kernels.h"

namespace tessera::kernels {
namespace {

using vm::Lane;
using vm::LaneError;

template <class M>
struct Fold {
  using State = typename M::State;

  /// Adds node `i` of a level to a state; of level 0, the value of row i.
  static __device__ void Add(const FoldTree& tree, uint32_t level, uint32_t i, State& s, Lane& lane) {
    if (level > 0) {
      M::Merge(s, static_cast<const State*>(tree.level[level - 1])[i], lane);
    } else if (!IsNull(tree.value, i)) {
      M::Apply(s, ValueOf<typename M::Type>(tree.value, i), lane);
    }
  }

  static __device__ void AddRange(const FoldTree& tree, RowSpan rows, State& s, Lane& lane) {
    uint32_t begin = rows.begin, end = rows.end;
    for (uint32_t level = 0; begin < end; ++level) {
      const bool is_top = level == tree.levels;
      while (begin < end && (is_top || begin % kTreeFanOut != 0)) Add(tree, level, begin++, s, lane);
      while (begin < end && end % kTreeFanOut != 0) Add(tree, level, --end, s, lane);
      begin /= kTreeFanOut;
      end /= kTreeFanOut;
    }
  }
};

template <class M>
__global__ void MakeNodes(const __grid_constant__ FoldTree tree, uint32_t level, uint32_t* error) {
  using State = typename M::State;
  const uint32_t node = WindowRow();
  if (node >= tree.nodes[level]) return;
  State s = M::Identity();
  Lane lane = {};
  for (uint32_t i = 0; i < kTreeFanOut; ++i) Fold<M>::Add(tree, level, node * kTreeFanOut + i, s, lane);
  static_cast<State*>(tree.level[level])[node] = s;
  if (lane.error != LaneError::kNone) *error = 1;
}

struct StateColumns {
  WindowColumn column[kMostStateColumns];
};

template <class M>
__global__ void FoldFrames(const __grid_constant__ FoldTree tree, const __grid_constant__ FrameColumns frames,
                           const uint32_t* counts, const __grid_constant__ StateColumns out, uint32_t* error) {
  using State = typename M::State;
  const uint32_t row = WindowRow();
  if (row >= frames.rows) return;
  const FrameRows f = FrameOf(frames, row);
  State s = M::Identity();
  Lane lane = {};
  Fold<M>::AddRange(tree, f.before, s, lane);
  if (f.own) Fold<M>::Add(tree, 0, row, s, lane);
  Fold<M>::AddRange(tree, f.after, s, lane);
  if (lane.error != LaneError::kNone) *error = 1;
  const uint8_t null = CountOf(f, row, counts) == 0 ? 1 : 0;
  if constexpr (std::is_same_v<State, int128_t>) {
    out.column[0].low[row] = static_cast<uint64_t>(Low64(s));
    out.column[0].high[row] = static_cast<uint64_t>(High64(s));
    out.column[0].null[row] = null;
  } else {
    uint64_t words[vm::kStateWords<State>];
    vm::ToWords(s, words);
    for (int k = 0; k < vm::kStateWords<State>; ++k) {
      out.column[k].low[row] = words[k];
      out.column[k].null[row] = null;
    }
  }
}

}  // namespace

bool HasFoldTree(vm::Opcode aggregate) {
  bool has = false;
  vm::WithFold(aggregate, [&]<class M>() { has = true; });
  return has;
}

size_t LayOutTree(vm::Opcode aggregate, uint32_t rows, void* memory, FoldTree* tree) {
  size_t state_bytes = 0;
  vm::WithFold(aggregate, [&]<class M>() { state_bytes = sizeof(typename M::State); });
  size_t bytes = 0;
  tree->levels = 0;
  for (uint32_t nodes = rows / kTreeFanOut; nodes > 0 && tree->levels < kMostTreeLevels; nodes /= kTreeFanOut) {
    if (memory != nullptr) tree->level[tree->levels] = static_cast<uint8_t*>(memory) + bytes;
    tree->nodes[tree->levels++] = nodes;
    bytes += (nodes * state_bytes + 255) / 256 * 256;
  }
  return bytes;
}

cudaError_t StartFoldFrames(vm::Opcode aggregate, const FoldTree& tree, const FrameColumns& frames,
                            const uint32_t* counts, const WindowColumn (&out)[kMostStateColumns], uint32_t* error,
                            cudaStream_t stream) {
  StateColumns columns;
  for (int k = 0; k < kMostStateColumns; ++k) columns.column[k] = out[k];
  vm::WithFold(aggregate, [&]<class M>() {
    for (uint32_t level = 0; level < tree.levels; ++level) {
      MakeNodes<M><<<WindowBlocks(tree.nodes[level]), kWindowBlock, 0, stream>>>(tree, level, error);
    }
    FoldFrames<M><<<WindowBlocks(frames.rows), kWindowBlock, 0, stream>>>(tree, frames, counts, columns, error);
  });
  return cudaGetLastError();
}

}  // namespace tessera::kernels
