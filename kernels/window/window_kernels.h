// Windows over the ordered rows of a section: what the host starts for each of them. All of it takes a fixed number of
// passes over the rows, whatever the partitions: rows are cut into runs of equal ones by a scan, a frame is found in its
// row's runs, and an aggregate of a frame is the difference of two running sums or is merged from the nodes of a tree
// (V. Leis, K. Kundhikanjana, A. Kemper, T. Neumann, "Efficient Processing of Window Functions in Analytical SQL
// Queries", VLDB 2015). Private to kernels/.
//
// Start at: StartFindDifferences, then StartCutRuns, then one of the functions.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/window/window_columns.h"
#include "vm/meaning/meaning.h"
#include "vm/program/opcode.h"
#include "vm/program/window_spec.h"

namespace tessera::kernels {

/// Bytes of scratch memory that StartCutRuns, StartCountValues and StartSumValues need.
cudaError_t WindowScratchBytes(uint32_t rows, size_t* bytes);

/// differs[i] becomes the first of keys[0 .. count) in which row i differs from the row before, or 255. `keys` is in
/// device memory.
cudaError_t StartFindDifferences(const WindowColumn* keys, uint32_t count, uint32_t rows, uint8_t* differs,
                                 cudaStream_t stream);
/// Cuts the rows where they differ in the first `keys` entries of the order.
cudaError_t StartCutRuns(const uint8_t* differs, uint32_t keys, uint32_t rows, const RowRuns& runs, void* scratch,
                         size_t scratch_bytes, cudaStream_t stream);

/// ROW_NUMBER, RANK, DENSE_RANK, PERCENT_RANK, CUME_DIST, and NTILE of `number` parts, at least 1.
cudaError_t StartNumbers(vm::WindowFunction function, int64_t number, const RowRuns& partitions, const RowRuns& peers,
                         uint32_t rows, const WindowColumn& out, cudaStream_t stream);

/// LAG, LEAD, FIRST_VALUE, LAST_VALUE and NTH_VALUE.
struct PlacedValue {
  vm::WindowFunction function;
  WindowColumn value, count, fallback;
  int64_t number = 1;  ///< without `count`
};
/// *error becomes 1 if the number of an NTH_VALUE is less than 1.
cudaError_t StartPlaced(const PlacedValue& placed, const FrameColumns& frames, const WindowColumn& out, uint32_t* error,
                        cudaStream_t stream);

/// counts[i] becomes the number of values that are not NULL among the first i + 1.
cudaError_t StartCountValues(const WindowColumn& value, uint32_t rows, uint32_t* counts, void* scratch,
                             size_t scratch_bytes, cudaStream_t stream);
/// The running sums of a narrow column, in 128 bits.
cudaError_t StartSumValues(const WindowColumn& value, uint32_t rows, void* sums, void* scratch, size_t scratch_bytes,
                           cudaStream_t stream);
/// The rows of each frame, or its values if `counts` are given.
cudaError_t StartCountFrames(const FrameColumns& frames, const uint32_t* counts, const WindowColumn& out,
                             cudaStream_t stream);
/// SUM of integers from their running sums.
cudaError_t StartSumFrames(const FrameColumns& frames, const uint32_t* counts, const void* sums,
                           const WindowColumn& value, const WindowColumn& out, cudaStream_t stream);

/// Values or nodes below a node.
inline constexpr uint32_t kTreeFanOut = 8;
inline constexpr uint32_t kMostTreeLevels = 10;
inline constexpr int kMostStateColumns = vm::kMostStateWords;
/// The nodes of an aggregate over all rows: node i of the first level has rows [8 i, 8 i + 8), and so on. Only nodes whose
/// rows are all there exist.
struct FoldTree {
  WindowColumn value;
  void* level[kMostTreeLevels] = {};
  uint32_t nodes[kMostTreeLevels] = {};
  uint32_t levels = 0;
};
/// Whether StartFoldFrames has the aggregate.
bool HasFoldTree(vm::Opcode aggregate);
/// Bytes of the tree's nodes; with memory for them, they are laid out in it. REQUIRES: HasFoldTree.
size_t LayOutTree(vm::Opcode aggregate, uint32_t rows, void* memory, FoldTree* tree);
/// *error becomes 1 if a sum overflows.
cudaError_t StartFoldFrames(vm::Opcode aggregate, const FoldTree& tree, const FrameColumns& frames,
                            const uint32_t* counts, const WindowColumn (&out)[kMostStateColumns], uint32_t* error,
                            cudaStream_t stream);

}  // namespace tessera::kernels
