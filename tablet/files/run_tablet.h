// A tablet whose rows are the runs of one column of another: neighbours that are equal in it are one row, with their
// number. A reader that needs no other column, and counts a row as often as that, need not unpack what is stored in
// runs.
//
// Start at: RunTablet::Open. Any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tablet/chunk/chunk.h"
#include "tablet/files/part_tablet.h"
#include "tablet/files/tablet.h"
#include "tablet/files/unpacked_chunks.h"

namespace tessera {

class RunTablet final : public Tablet {
 public:
  /// `columns`: of `of`, which has to outlive this; the number of rows comes after them. If `column` is not stored in
  /// runs, each row is one. `runs`: as of Tablet::Runs. Errors: as Tablet::Describe.
  static Result<std::unique_ptr<const RunTablet>> Open(const std::shared_ptr<const Tablet>& of, int column, int columns,
                                                       uint32_t runs);
  ~RunTablet() override;
  RunTablet(const RunTablet&) = delete;
  RunTablet& operator=(const RunTablet&) = delete;

  uint32_t rows() const override { return runs_; }
  uint64_t weight() const override { return of_.weight(); }
  /// REQUIRES, here and below: the column, or `columns`.
  Result<ChunkPointer> Chunk(int column) const override;
  /// The parts of the stored stream that are the values of the runs and their numbers of rows. (A reader that unpacks
  /// one of them does not see the other, so both are checked before, once.)
  Result<ChunkPointer> PackedChunk(int column) const override;
  Result<ChunkPointer> ChunkForTiles(int column) const override {
    return IsAsStored(column) ? of_.ChunkForTiles(column) : Chunk(column);
  }
  bool AreCodesChecked(int column) const override { return !IsAsStored(column) || of_.AreCodesChecked(column); }
  void NoteCodesChecked(int column) const override {
    if (IsAsStored(column)) of_.NoteCodesChecked(column);
  }
  Result<ChunkPointer> Describe(int column) const override;
  uint64_t Expect(const std::vector<int>& columns, bool again) const override;
  bool WasRead(const std::vector<int>& columns) const override;
  Status Intact() const override { return of_.Intact(); }
  const Tablet* Part(uint32_t first, uint32_t rows) const override { return parts_.Find(*this, first, rows); }
  const Tablet& stored() const override { return of_; }
  int StoredColumn(int) const override { return column_; }
  std::string path() const override { return of_.path(); }

 private:
  struct Runs;  ///< what a chunk was unpacked to
  /// Whether it is the column, and that has as many runs as rows.
  bool IsAsStored(int column) const { return column != columns_ && runs_ == of_.rows(); }
  static Result<uint32_t> Count(const Tablet& of, int column);
  RunTablet(const std::shared_ptr<const Tablet>& of, int column, int columns, uint32_t runs);
  Result<std::shared_ptr<Runs>> Unpacked() const;
  Result<std::shared_ptr<Runs>> Unpack() const;
  Status Corrupt(const char* reason) const;

  const Tablet& of_;
  const std::weak_ptr<const Tablet> owner_;
  const int column_, columns_;
  const uint32_t runs_;
  tessera::Chunk single_;  ///< how often rows stand that are no runs: once
  mutable std::mutex mutex_;
  mutable std::weak_ptr<Runs> unpacked_;
  mutable std::atomic<bool> has_parts_{false};
  mutable tessera::Chunk values_, counts_;  ///< written once, under mutex_, before has_parts_
  const TabletParts parts_;
};

}  // namespace tessera
