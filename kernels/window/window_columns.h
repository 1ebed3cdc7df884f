// The rows of windows as their kernels see them: columns, runs of equal rows, and what a row's frame depends on. Private
// to kernels/window/. Plain data, compiled by g++ and nvcc; pointers are device pointers.
//
// Start at: FrameColumns.
#pragma once

#include <cstdint>

#include "vm/program/window_spec.h"

namespace tessera::kernels {

/// A column of the rows, or one that a window adds.
struct WindowColumn {
  uint64_t* low = nullptr;   ///< nullptr: there is no such column
  uint64_t* high = nullptr;  ///< nullptr: it is not wide
  uint8_t* null = nullptr;
  bool is_float = false;
};

/// Rows cut into runs of rows that are equal in some entries of the order.
struct RowRuns {
  uint32_t* number = nullptr;  ///< [rows] the run of each row
  uint32_t* begin = nullptr;   ///< [runs + 1] the first row of each run; last, the number of rows
};

/// What a row's frame depends on.
struct FrameColumns {
  uint32_t rows = 0;
  vm::WindowFrame frame;
  RowRuns partitions, peers;
  WindowColumn key, start, end;  ///< RANGE with an offset: see vm::WindowFrame
  bool descending = false;       ///< the order of `key`
};

}  // namespace tessera::kernels
