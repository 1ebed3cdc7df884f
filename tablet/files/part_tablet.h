// Rows of a tablet as a tablet of their own, for ranks that share one: a device takes tablets, not parts of them.
//
// Start at: TabletParts. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tablet/chunk/chunk.h"
#include "tablet/files/tablet.h"

namespace tessera {

/// Its chunks are those of the tablet without the rows before and after, where they lie; what is packed is unpacked
/// first. Least and greatest values are those of the tablet, so here they are bounds, also where all rows are NULL; the
/// first text of a plain chunk does not begin at byte 0.
class PartTablet final : public Tablet {
 public:
  /// `of` has to outlive this. REQUIRES: 0 < rows, first + rows <= of.rows(); first, and the end if it is not the tablet's, are
  /// multiples of kStreamAlignment.
  PartTablet(const Tablet& of, uint32_t first, uint32_t rows) : of_(of), first_(first), rows_(rows) {}

  uint32_t rows() const override { return rows_; }
  uint64_t weight() const override;
  Result<ChunkPointer> Chunk(int column) const override;
  /// That of the tablet, for all of its rows and NULLs: what a condition leaves out of these it leaves out of some, too.
  Result<ChunkPointer> Describe(int column) const override { return of_.Describe(column); }
  uint64_t Expect(const std::vector<int>& columns, bool again) const override { return of_.Expect(columns, again); }
  bool WasRead(const std::vector<int>& columns) const override { return of_.WasRead(columns); }
  Status Intact() const override { return of_.Intact(); }
  const Tablet& stored() const override { return of_.stored(); }
  int StoredColumn(int column) const override { return of_.StoredColumn(column); }
  std::string path() const override { return of_.path(); }

 private:
  struct Part;  ///< of a chunk
  struct Known {
    std::weak_ptr<Part> part;
    bool has_count = false;
    uint32_t nulls = 0;  ///< if has_count
  };
  uint32_t CountNulls(const tessera::Chunk& whole) const;

  const Tablet& of_;
  const uint32_t first_, rows_;
  mutable std::mutex mutex_;
  mutable std::map<int, Known> known_;  ///< by column
};

/// The parts of a tablet that somebody has asked for. They stay, so that a cache finds them again.
class TabletParts {
 public:
  /// REQUIRES: as PartTablet; `of` is the same each time.
  const Tablet* Find(const Tablet& of, uint32_t first, uint32_t rows) const;

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::pair<uint32_t, uint32_t>, std::unique_ptr<const PartTablet>> parts_;
};

}  // namespace tessera
