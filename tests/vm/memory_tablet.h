// Tablets in memory, for tests: typed values, stored under an encoding, code width, base and NULL code that the test
// chooses. Streams are laid out as tablet.h promises (aligned and zero-padded to 128 bytes, nothing readable beyond),
// so that every interpreter, a GPU's too, may treat them like those of a file, and AddressSanitizer sees a read after
// the padding.
//
// Start at: ChunkForm, MakeMemoryTable. A MemoryTablet never changes; any thread may read it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/int128.h"
#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/files/tablet.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera::test {

/// How a chunk is to be stored.
struct ChunkForm {
  /// kFrame: which code means NULL. It is reserved only where the rows have a NULL, as a loader does it. A dictionary's
  /// NULL code is always the number of its entries.
  enum class NullCode : uint8_t {
    kNext,  ///< the code after the greatest one in use
    kLast,  ///< all ones
    kGap,   ///< the least code that no row uses: between other values where they leave a gap
  };
  Encoding encoding = Encoding::kFrame;
  int width = 8;  ///< bytes a code: kFrame 1, 2, 4, 8, 16; kDictionary 1, 2, 4; else ignored
  NullCode null_code = NullCode::kNext;
  std::optional<int128_t> base;  ///< kFrame: in the integer or ordered form; missing: the least value
  std::string ToString() const;
};

/// A column of a table: its rows, and the form of tablet i, forms[i % forms.size()].
struct MemoryColumn {
  std::string name;
  ColumnVector values;
  std::vector<ChunkForm> forms;
};

/// The value of a row as chunks hold it: the integer of kInt and kWide, the ordered form of kFloat. REQUIRES: not TEXT,
/// not NULL.
int128_t OrderedValue(const ColumnVector& values, size_t row);

/// The greatest OrderedValue of a column of `type` that a frame of `width` bytes above `base` holds beside a NULL code,
/// if `nulls`.
int128_t FrameEnd(const SqlType& type, int width, int128_t base, bool nulls);

class MemoryTablet final : public Tablet {
 public:
  /// Rows [begin, begin + rows) of the columns. Errors: kInternal if a form cannot hold its values.
  static Result<std::shared_ptr<const MemoryTablet>> Make(const std::vector<const ColumnVector*>& columns,
                                                          const std::vector<ChunkForm>& forms, size_t begin,
                                                          uint32_t rows);
  ~MemoryTablet() override;
  uint32_t rows() const override { return rows_; }
  Result<ChunkPointer> Chunk(int column) const override;
  std::string path() const override { return path_; }  ///< unique in the process

 private:
  struct Stored;
  MemoryTablet();
  uint32_t rows_ = 0;
  std::string path_;
  std::vector<std::unique_ptr<Stored>> chunks_;
};

/// Cuts the columns into tablets of `tablet_rows`; no tablet if there are no rows. Statistics are exact.
/// REQUIRES: columns of equally many rows. Errors: kInternal if a form cannot hold its values.
Result<std::shared_ptr<const TableInfo>> MakeMemoryTable(int64_t id, std::string name,
                                                         const std::vector<MemoryColumn>& columns,
                                                         uint32_t tablet_rows = 1u << 20);

/// A snapshot of these tables, sorted by name as Snapshot promises.
std::shared_ptr<const Snapshot> MakeSnapshot(std::vector<std::shared_ptr<const TableInfo>> tables);

/// Number of rows of a column vector.
size_t RowsOf(const ColumnVector& values);

}  // namespace tessera::test
