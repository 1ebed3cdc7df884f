// Numbers of rows as bits. Private to kernels/.
//
// Start at: StartMarkRows.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace tessera::kernels {

/// Bits of the numbers below `end`, and for each tablet whether it has one.
struct RowBits {
  uint32_t* words = nullptr;
  uint8_t* tablets = nullptr;
  uint64_t end = 0;
  uint32_t tablet_shift = 0;  ///< a number's tablet is in the bits from here on
};

/// Sets the bits of rows. A number that is not below the end is left out.
cudaError_t StartMarkRows(const uint64_t* numbers, uint64_t rows, const RowBits& bits, cudaStream_t stream);

}  // namespace tessera::kernels
