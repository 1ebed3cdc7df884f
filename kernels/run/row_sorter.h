// The order of rows in a section's output, found on the device: by codes of their keys, texts by their ranks. Where few rows
// are wanted, a sample says which of them need not be sorted. Private to kernels/.
//
// Start at: RowSorter::Sort. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/launch/sinks.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/memory/run_buffer.h"
#include "kernels/rows/sort_rows.h"
#include "vm/program/program.h"
#include "vm/rows/text_ranks.h"
#include "vm/run/device.h"

namespace tessera::kernels {

class RowSorter {
 public:
  /// `output`: where the rows are, whenever a function is called.
  RowSorter(GpuDevice* gpu, const vm::SectionContext& context, const vm::Section& section, const Output& output);
  RowSorter(const RowSorter&) = delete;
  RowSorter& operator=(const RowSorter&) = delete;

  /// Sorts the first `rows` rows of the output, at least the `wanted` best of them: *order becomes their numbers, valid
  /// until FreeScratch or the next call. false: it is left to the host from now on.
  tessera::Result<bool> Sort(uint64_t rows, uint64_t wanted, const uint32_t** order);
  /// Which rows may be among the `wanted` best, as far as keys before the first text, or a text that is the first key, say
  /// so: texts of rows that are not wanted get neither identifiers nor ranks. Returns how many numbers are in `selected`, which is empty before; 0: that says
  /// too little, or there is no memory for it.
  tessera::Result<uint32_t> SelectByFirstKeys(uint64_t wanted, uint64_t rows, RunBuffer* selected);
  void FreeScratch() { scratch_.Free(); }
  /// Why the host sorts; nullptr: it does not.
  const char* why_host() const { return why_host_; }
  /// Of the latest sort.
  uint32_t key_bits() const { return key_bits_; }

 private:
  bool IsText(const vm::SortKey& key) const;
  /// The keys of the order before the first text.
  size_t KeysBeforeTexts() const;
  /// The first `keys` keys that the output is sorted by.
  std::vector<SortPart> Parts(size_t keys) const;
  /// What rows are sorted by: the parts, with the ranges of their codes, in words. `found`: memory for that.
  tessera::Result<std::vector<SortWord>> Words(std::vector<SortPart> parts, uint32_t rows, RunBuffer* found);
  /// As StartSort, with the order in scratch_.
  Status SortBy(const std::vector<SortWord>& words, const uint32_t* among, uint32_t rows, const uint32_t** order);
  /// As StartSelect. Returns how many rows are selected.
  tessera::Result<uint32_t> Select(const SortWord& word, const uint32_t* bound, uint32_t rows, const RunBuffer& counter,
                                   const RunBuffer& selected);
  /// SelectByFirstKeys. Errors: kResource, there is no memory for it.
  tessera::Result<uint32_t> TrySelect(uint64_t wanted, uint64_t rows, RunBuffer* selected);
  tessera::Result<uint32_t> SelectByText(uint64_t wanted, uint32_t rows, RunBuffer* selected);
  /// Gives texts of a column that were handed on their identifiers.
  Status ResolveTexts(size_t column, uint64_t rows);
  /// Brings the ranks of all strings to the device. false: they are too many.
  tessera::Result<bool> RankTexts(uint64_t rows);
  /// REQUIRES: texts are ranked; wanted > 0.
  Status SortRanked(uint32_t rows, uint64_t wanted, const uint32_t** order);

  GpuDevice& gpu_;
  const vm::SectionContext& context_;
  const vm::Section& section_;
  const Output& output_;
  RunBuffer scratch_, ranks_;
  vm::TextRanks texts_;
  const char* why_host_ = nullptr;
  uint32_t key_bits_ = 0;
};

}  // namespace tessera::kernels
