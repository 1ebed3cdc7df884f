// A tablet whose columns are made when they are first asked for, by the thread that asks: of rows that lie elsewhere in another
// form. What was made is kept like unpacked chunks (unpacked_chunks.h), and may have to be made again.
//
// Start at: MadeTablet. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/int128.h"
#include "base/status.h"
#include "tablet/files/tablet.h"
#include "tablet/files/unpacked_chunks.h"
#include "tablet/values/row_batch.h"

namespace tessera {

/// What is known of a column before it is made.
struct ColumnBounds {
  bool has_range = false;     ///< of integers, decimals, dates and times, NULLs apart; false: nothing is known
  int128_t min = 0, max = 0;  ///< bounds, in the form of Chunk::min
  int64_t null_count = -1;    ///< -1: nothing is known
  uint64_t bytes = 0;         ///< as it lies there
};

/// All rows of a column, in its type.
struct MadeColumn {
  ColumnVector values;            ///< if `is_numbered`: entries, of which rows have the numbers
  bool is_numbered = false;       ///< texts
  std::vector<uint32_t> numbers;  ///< see EncodeNumberedTexts
};

class MadeTablet : public Tablet, public std::enable_shared_from_this<MadeTablet> {
 public:
  /// `path`: for messages; a number that no other has is added, by which a device tells tablets apart. `bounds`: by column, as
  /// `types`; what is made must lie in them.
  MadeTablet(const std::string& path, uint32_t rows, std::vector<SqlType> types, std::vector<ColumnBounds> bounds);
  ~MadeTablet() override;
  MadeTablet(const MadeTablet&) = delete;
  MadeTablet& operator=(const MadeTablet&) = delete;

  uint32_t rows() const final { return rows_; }
  std::string path() const final { return path_; }
  /// Errors: also those of Values().
  Result<ChunkPointer> Chunk(int column) const final;
  Result<ChunkPointer> Describe(int column) const final;

 protected:
  const SqlType& type(int column) const { return columns_[static_cast<size_t>(column)].described.type; }
  const ColumnBounds& bounds(int column) const { return columns_[static_cast<size_t>(column)].bounds; }

 private:
  struct Column {
    ColumnBounds bounds;
    tessera::Chunk described;
    mutable std::mutex mutex;
    mutable std::weak_ptr<UnpackedChunk> made;
  };

  /// Several threads may ask for several columns at a time.
  virtual Result<MadeColumn> Values(int column) const = 0;
  /// Writes codes of `width` bytes to `to`, one for each row: value = least of the bounds + code. false: that cannot be done, or
  /// some rows have none within the bounds, and Values() is to be asked.
  virtual Result<bool> Codes(int /*column*/, int /*width*/, uint8_t* /*to*/) const { return false; }
  /// The error if values that were made are not within the bounds.
  virtual Status OutOfBounds(int column) const = 0;
  Result<std::shared_ptr<UnpackedChunk>> Make(int column) const;
  /// From Codes(), if they can be had; else nullptr.
  Result<std::shared_ptr<UnpackedChunk>> MakeOfCodes(int column) const;

  const uint32_t rows_;
  const std::string path_;
  std::vector<Column> columns_;
};

}  // namespace tessera
