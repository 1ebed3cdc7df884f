// Tells the disk what a scan of stored tablets will read, some time before it does: the chunks of its columns, in the
// order in which it comes to them, up to a distance. Tablets that the ranges of their chunks skip are left out. What is
// asked for is a hint: errors show when the tablet is read. Private to the interpreters (vm/ and kernels/).
//
// Start at: ReadAhead::Begin.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "tablet/catalog/table_info.h"
#include "vm/encode/section_encoder.h"

namespace tessera::vm {

class ReadAhead {
 public:
  /// `order`: numbers of tablets of `table`, each at most once, as the scan comes to them. `again`: see
  /// Tablet::Expect. `encoder` and `table` must outlive it.
  ReadAhead(const SectionEncoder* encoder, const TableInfo* table, std::vector<size_t> order, bool again);

  /// Somebody begins to read a tablet: it and those after it are asked for, as far as they have not been. Any thread;
  /// one asks at a time, and the others do not wait.
  void Begin(size_t tablet);

  /// The least and the greatest distance, in bytes: it grows with what has been read, so that a query which needs few
  /// rows does not ask for much more.
  static constexpr uint64_t kLeastBytes = uint64_t{8} << 20, kMostBytes = uint64_t{64} << 20;
  /// The greatest distance in tablets. One tablet ahead is asked for in any case, however large.
  static constexpr size_t kMostTablets = 64;
  /// How far ahead of that headers are asked for, in tablets.
  static constexpr size_t kHeaders = 16;

 private:
  const SectionEncoder& encoder_;
  const TableInfo& table_;
  const std::vector<size_t> order_;
  std::vector<size_t> place_;  ///< by tablet: its place in order_
  const bool again_;
  std::atomic<size_t> begun_{0};  ///< the greatest place that was begun
  std::mutex mutex_;              // of what follows
  size_t opened_ = 0;             ///< tablets whose headers were asked for
  std::vector<uint64_t> asked_;   ///< by place, up to the first that was not asked for: bytes of all before it
};

}  // namespace tessera::vm
