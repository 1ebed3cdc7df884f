// The values of a tile's rows: accumulators, registers, and where operands are decoded to. NULL bits are one byte a row, and
// only valid if a row may be NULL. Private to vm/machine/.
//
// Start at: Accumulators, Register.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/int128.h"
#include "tablet/values/types.h"
#include "vm/program/tile_rows.h"

namespace tessera::vm {

/// Values of an operand for the live rows: an array, or one value for all (stride 0).
template <class T>
struct Source {
  const T* values;
  const uint8_t* nulls;  ///< one byte a row; nullptr if none is NULL
  bool one;              ///< values[0] stands for every row
  bool one_null;         ///< ... and it is NULL
};

/// A and W: what nearly each instruction reads or writes.
struct Accumulators {
  Accumulators() { memset(a, 0, sizeof a); }
  /// Before a tile runs, if an instruction of the section has W.
  void MakeWide() {
    w.resize(kTileRows);
    w_null.resize(kTileRows);
  }

  /// Those of W for int128_t, of A for int64_t.
  template <class T>
  T* Values() {
    if constexpr (std::is_same_v<T, int128_t>) {
      return w.data();
    } else {
      static_assert(std::is_same_v<T, int64_t>);
      return a;
    }
  }
  template <class T>
  uint8_t* Nulls() {
    return std::is_same_v<T, int128_t> ? w_null.data() : a_null;
  }
  template <class T>
  bool& MayBeNull() {
    return std::is_same_v<T, int128_t> ? w_may_be_null : a_may_be_null;
  }
  /// The NULL bytes of A's `rows` rows. They are made valid first if no row could be NULL so far.
  uint8_t* NullsOfA(int rows) {
    if (!a_may_be_null) memset(a_null, 0, static_cast<size_t>(rows));
    a_may_be_null = true;
    return a_null;
  }
  /// One becomes NULL where the other is.
  void CopyNullsToW(int rows) {
    w_may_be_null = a_may_be_null;
    if (a_may_be_null) memcpy(w_null.data(), a_null, static_cast<size_t>(rows));
  }
  void CopyNullsToA(int rows) {
    a_may_be_null = w_may_be_null;
    if (w_may_be_null) memcpy(a_null, w_null.data(), static_cast<size_t>(rows));
  }

  alignas(64) int64_t a[kTileRows];
  alignas(64) uint8_t a_null[kTileRows];
  bool a_may_be_null = false;
  bool w_may_be_null = false;
  std::vector<int128_t> w;  ///< empty if no instruction has it
  std::vector<uint8_t> w_null;
};

/// One of the two vectors of values is empty, by the register's class.
struct Register {
  explicit Register(const SqlType& type) : null(kTileRows) {
    if (IsWide(type)) {
      wide.resize(kTileRows);
    } else {
      narrow.resize(kTileRows);
    }
  }
  bool is_wide() const { return !wide.empty(); }
  /// Makes the NULL bytes valid before the first NULL goes in.
  void MayBecomeNull() {
    if (!may_be_null) std::fill(null.begin(), null.end(), uint8_t{0});
    may_be_null = true;
  }

  std::vector<int64_t> narrow;
  std::vector<int128_t> wide;
  std::vector<uint8_t> null;
  bool may_be_null = false;
};

/// A mask that was saved.
struct MaskRegister {
  std::vector<uint8_t> rows = std::vector<uint8_t>(kTileRows);
};

/// Where an instruction's operands are decoded to, and a text that it makes. Nothing of it outlives an instruction.
struct Scratch {
  struct Narrow {
    alignas(64) int64_t values[kTileRows];
    alignas(64) uint8_t null[kTileRows];
  };
  struct Wide {
    int128_t values[kTileRows];
    uint8_t null[kTileRows];
  };
  static constexpr size_t kOperands = 3;  ///< of an instruction, at most

  std::unique_ptr<Narrow[]> narrow = std::make_unique_for_overwrite<Narrow[]>(kOperands);
  std::unique_ptr<Wide> wide;  ///< nullptr if no operand has 128 bits
  std::string text;
};

/// A word of 64 bits as a value of an opcode's type, and back.
template <class T>
T FromBits(int64_t v) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(v);
  } else {
    return static_cast<T>(v);
  }
}
template <class T>
int64_t ToBits(T v) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<int64_t>(v);
  } else {
    return static_cast<int64_t>(v);
  }
}

}  // namespace tessera::vm
