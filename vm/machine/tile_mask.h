// Which rows of a tile are live. Masks are one byte a row here, because the compiler vectorises loops over bytes. If few rows
// are live, their numbers are kept beside the mask and the loops run over these rows ("sparse"); otherwise they run over all
// rows of the tile, dead ones included ("dense"). Private to vm/machine/.
//
// Start at: TileMask::ForLive, Keep.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "vm/program/tile_rows.h"

namespace tessera::vm {

/// Invariants: bytes are 0 or 1, and 0 from rows() on; live() is how many are 1.
class TileMask {
 public:
  int rows() const { return rows_; }
  int live() const { return live_; }
  bool sparse() const { return sparse_; }
  /// Numbers of the live rows. REQUIRES: sparse().
  std::span<const uint16_t> LiveRows() const { return {list_, static_cast<size_t>(live_)}; }
  const uint8_t* bytes() const { return bytes_; }
  uint8_t operator[](int i) const { return bytes_[i]; }

  /// A tile of this many rows begins. REQUIRES: 1 <= rows <= kTileRows.
  void SetToAll(int rows);
  void SetToNone() {
    memset(bytes_, 0, static_cast<size_t>(rows_));
    live_ = 0;
    sparse_ = listed_ = true;
  }
  /// To be written, one byte for each row; Changed() is called then.
  uint8_t* Write() { return bytes_; }
  void Changed();
  void SaveTo(uint8_t* saved) const { memcpy(saved, bytes_, static_cast<size_t>(rows_)); }
  void Restore(const uint8_t* saved) {
    memcpy(bytes_, saved, static_cast<size_t>(rows_));
    Changed();
  }

  /// Calls f(row) for the live rows, and perhaps for others.
  /// (Counts are copied first: what f writes could be members, as far as the compiler knows.)
  template <class F>
  void ForLive(F f) const {
    const int rows = rows_, live = live_;
    if (sparse_) {
      for (int k = 0; k < live; ++k) f(static_cast<int>(list_[k]));
    } else {
      for (int i = 0; i < rows; ++i) f(i);
    }
  }
  /// As ForLive, but never calls f for a dead row.
  template <class F>
  void ForOnlyLive(F f) {
    const int rows = rows_, live = live_;
    if (live == rows) {
      for (int i = 0; i < rows; ++i) f(i);
    } else {
      // (A branch a row on a mask that is neither nearly empty nor nearly full costs more than the list.)
      if (!listed_) List();
      for (int k = 0; k < live; ++k) f(static_cast<int>(list_[k]));
    }
  }
  /// Narrows the mask to the live rows for which f(row) holds. It may be asked for dead ones, too.
  template <class F>
  void Keep(F f) {
    if (sparse_) {
      int out = 0;
      for (int k = 0; k < live_; ++k) {
        const int i = list_[k];
        const bool keep = f(i);
        bytes_[i] = keep ? 1 : 0;
        list_[out] = static_cast<uint16_t>(i);
        out += keep ? 1 : 0;
      }
      live_ = out;
      return;
    }
    for (int i = 0; i < rows_; ++i) bytes_[i] = static_cast<uint8_t>(bytes_[i] & static_cast<uint8_t>(f(i)));
    Changed();
  }

 private:
  void List();

  alignas(64) uint8_t bytes_[kTileRows];
  int rows_ = 0;
  int live_ = 0;
  bool sparse_ = false;
  bool listed_ = false;           ///< list_ has the live rows: if sparse_, and after ForOnlyLive
  uint16_t list_[kTileRows + 8];  ///< they are written eight at a time
};

}  // namespace tessera::vm
