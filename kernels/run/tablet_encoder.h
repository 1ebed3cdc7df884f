// Encodes the tablets of a section's source for the program, some of them ahead, by several threads where that takes long.
// Private to kernels/.
//
// Start at: TabletEncoder::Encode. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/text/text_tests.h"
#include "tablet/catalog/table_info.h"
#include "vm/encode/read_ahead.h"
#include "vm/encode/section_encoder.h"
#include "vm/program/program.h"
#include "vm/run/device.h"

namespace tessera::kernels {

/// A launch of this many rows lasts several times as long as what a launch costs, some 40 microseconds. To prepare a tablet takes
/// up to 3, and the device 3 to 13, so it should have something to do early.
inline constexpr uint64_t kRowsToStart = uint64_t{32} << 20;
/// Tablets between two looks at whether the device is still busy.
inline constexpr size_t kLooks = 16;

inline int ThreadsOf(const vm::SectionContext& context) {
  return context.pool == nullptr ? 1 : context.pool->threads();
}

/// Tablets of a section, from the first one on, encoded before its join tables were there.
struct TabletsAhead {
  int section = -1;  ///< -1: none
  const TableInfo* table = nullptr;
  std::vector<tessera::Result<vm::TabletEncoding>> tablets;
  bool slow = false;  ///< the last one took long
};
/// Encodes tablets until there are enough for a launch to start with and the device has nothing more to do, or one takes so long
/// that several threads should do it.
TabletsAhead EncodeAhead(GpuDevice* gpu, const vm::SectionContext& context,
                         const std::vector<vm::KeyRange>& key_ranges);

class TabletEncoder {
 public:
  /// `tests`: those of the section. `key_ranges`: of the join tables, as they are whenever a tablet is encoded.
  /// `of_table`: the source is a stored table; if not, nothing below but encoder() and Forget() is called.
  TabletEncoder(GpuDevice* gpu, const vm::SectionContext& context, const TextTests& tests,
                const std::vector<vm::KeyRange>& key_ranges, bool of_table);

  const vm::SectionEncoder& encoder() const { return encoder_; }
  /// Takes tablets of the same section and table over. REQUIRES: called first; none of the join tables is in
  /// partitions.
  Status Use(TabletsAhead ahead);
  /// Tablet `number`, encoded. If encoding takes long, several threads encode others after it at the same time; so they do
  /// if there are many tablets and no launch begins before all are encoded (`all_first`). The tablet is moved from once it
  /// has its place in a launch.
  tessera::Result<vm::TabletEncoding>& Encode(size_t number, const vm::TabletEncoding* like, bool all_first);
  /// Leaves none that are encoded.
  void Forget();
  /// Says what the section reads of the tablet that was taken last.
  void NoteBytes(uint64_t bytes) { tablet_bytes_ = bytes; }

 private:
  /// Up to `count` tablets from `number` on, by several threads: as many as were begun before one took long, if none had.
  void EncodeShared(size_t number, size_t count, size_t workers, const vm::TabletEncoding* like);
  /// Tablets from `number` on that several threads encode before the copies of the first of them start.
  size_t SharedTablets(size_t number, size_t workers) const;

  GpuDevice& gpu_;
  const vm::SectionContext& context_;
  const vm::Section& section_;
  vm::SectionEncoder encoder_;
  std::unique_ptr<vm::ReadAhead> ahead_;                      ///< nullptr: the source is no stored table
  std::vector<tessera::Result<vm::TabletEncoding>> encoded_;  ///< tablets from first_ on, encoded together
  size_t first_ = 0;
  bool is_slow_ = false;       ///< to encode one takes long
  uint64_t tablet_bytes_ = 0;  ///< see NoteBytes
};

}  // namespace tessera::kernels
