// Some rows of a packed stream, without unpacking the others: of trees of schemes that tell where the values of a row are.
// A reader of a stream that comes once, tile by tile, or few of its rows, need not unpack it to memory first.
//
// Start at: PackedReader::Open. Immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tablet/schemes/packed_stream.h"
#include "tablet/schemes/write_run.h"

namespace tessera {

class PackedReader {
 public:
  /// The most rows that are read at a time, and the values that what they are read to has room for: runs are written a
  /// vector at a time, also after the rows.
  static constexpr uint32_t kMostRows = 2048, kRoom = kMostRows + kRunStep<uint8_t>;
  /// What values may be: up to `greatest`, and `null`.
  struct Bounds {
    uint64_t greatest = UINT64_MAX;
    std::optional<uint64_t> null;
  };

  /// Unpacks runs and the entries of dictionaries, but no rows. nullptr if the tree has DELTA, NSV or BITMAP where rows
  /// are, too many runs or entries, or damaged ones: it is unpacked whole then. `stream`: has to outlive this. `tree`: what
  /// ParsePackedStream() gave. `width`, `scaled`: as of UnpackStream. `bounds`: nullopt if any value is right.
  static std::unique_ptr<const PackedReader> Open(const uint8_t* stream, PackedTree tree, int width,
                                                  const ScaledCodes* scaled, const std::optional<Bounds>& bounds);

  /// Values of rows [first, first + count) to `out`, `width` bytes each. Returns why it cannot be done, or nullptr.
  /// REQUIRES: count <= kMostRows, and there are these rows; `out` has room for kRoom values.
  const char* Read(uint32_t first, uint32_t count, uint8_t* out) const;
  /// The value of row first + i to place i of `out`, for each i in `places`. REQUIRES: as Read, of these; they ascend.
  const char* ReadPlaces(uint32_t first, std::span<const uint16_t> places, uint8_t* out) const;

 private:
  PackedReader(const uint8_t* stream, PackedTree tree, int width, const ScaledCodes* scaled,
               const std::optional<Bounds>& bounds);
  /// What a node keeps unpacked.
  struct Unpacked {
    size_t count = 0;                       ///< kDict: different values; kRle: runs
    std::unique_ptr<uint8_t[]> values;      ///< these, or those of the runs, in as many bytes each as they are read to
    std::unique_ptr<uint32_t[]> ends = {};  ///< kRle: the row after each run
  };
  /// Sees to node `at` and those below it. Returns the node after them; 0: they cannot be read.
  size_t Prepare(size_t at, int width);
  size_t PrepareRuns(size_t at, int width);
  /// Unpacks the tree whose root is node `at`, to integers of `width` bytes. Returns the node after it; 0: it is
  /// damaged.
  size_t UnpackAll(size_t at, int width, uint8_t* out) const;
  template <class Rows>
  const char* Read(const Rows& rows, uint8_t* out) const;
  template <class Value, class Rows>
  const char* ReadChecked(const Rows& rows, uint8_t* out) const;
  template <class Value, class Rows>
  const char* ReadNode(size_t at, const Rows& rows, Value* out) const;
  template <class Value, class Rows>
  const char* ReadFor(size_t at, const Rows& rows, Value* out) const;
  template <class Value, class Rows>
  void ReadRuns(size_t at, const Rows& rows, Value* out) const;
  template <class Value, class Rows>
  const char* ReadDictionary(size_t at, const Rows& rows, Value* out) const;
  template <class Value, class Rows>
  const char* ReadSeparated(size_t at, const Rows& rows, Value* out) const;
  template <class Value, class Rows>
  const char* ReadScaled(size_t at, const Rows& rows, Value* out) const;

  const uint8_t* const stream_;
  const PackedTree tree_;
  const int width_;
  const ScaledCodes scaled_;
  const std::optional<Bounds> bounds_;
  std::vector<size_t> second_;      ///< by node: its second child, if rows are read of that
  std::vector<Unpacked> unpacked_;  ///< by node
};

}  // namespace tessera
