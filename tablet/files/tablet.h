// A tablet, open for reading, and the tablets of files.
//
// Start at: Tablet::Chunk. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/chunk/chunk.h"
#include "tablet/values/types.h"

namespace tessera {

class LiveRows;
class Tablet;
struct ColumnFile;

/// A column of a tablet's file.
struct ColumnSource {
  std::shared_ptr<const Tablet> tablet;  ///< nullptr: see Tablet::SourceOf
  int column = 0;
};

/// One tablet, open for reading.
class Tablet {
 public:
  virtual ~Tablet() = default;
  /// Rows: at least 1. Those that have been deleted are among them.
  virtual uint32_t rows() const = 0;
  /// Which rows have not been deleted; nullptr: none has. Code that reads chunks of a table with such tablets reads
  /// TableInfo::live_column, too, and leaves the other rows out.
  virtual const LiveRows* live() const { return nullptr; }
  /// Where this adds columns to those of another tablet (live_tablet.h): that one, which lives on when rows are deleted;
  /// else nullptr.
  virtual std::shared_ptr<const Tablet> unmarked() const { return nullptr; }
  /// How much of its table's work it is: the bytes of its file, or its rows if it is none.
  virtual uint64_t weight() const { return rows(); }
  /// Chunk of column `column`; its checksum is verified the first time, and packed streams are unpacked. Errors: kCorrupt,
  /// kIo, with the file's name.
  virtual Result<ChunkPointer> Chunk(int column) const = 0;
  /// The same, but codes that are packed may not be unpacked: Chunk::codes is nullptr then, and AreCodesChecked(column)
  /// says whether they are known to unpack to what the chunk says. If they are not, who unpacks them looks, and either notes
  /// that they are right or asks Chunk() for the error.
  virtual Result<ChunkPointer> PackedChunk(int column) const { return Chunk(column); }
  /// To read codes by tiles (tablet/chunk/packed_chunk.h): PackedChunk() if they are plain bits, if it is the first time, or
  /// if there is no room to keep them unpacked; else Chunk(). (After DropUnpacked() the next time is the first again.)
  virtual Result<ChunkPointer> ChunkForTiles(int column) const { return Chunk(column); }
  virtual bool AreCodesChecked(int) const { return true; }
  virtual void NoteCodesChecked(int) const {}
  /// The chunk without what is in its streams, which are neither read nor to be read: type, encoding, counts, least and
  /// greatest value. Errors: as Chunk().
  virtual Result<ChunkPointer> Describe(int column) const { return Chunk(column); }
  /// Chunk() of these columns, none of them twice, will soon be called: the disk begins to read those that have never
  /// been read, and if `again`, also those that are no longer in memory. Without columns it begins to read what is
  /// needed to find them. A hint: errors are left to Chunk(). Returns the bytes of the chunks.
  virtual uint64_t Expect(const std::vector<int>& columns, bool again) const;
  /// true: where it is not `again`, Expect has nothing to do.
  virtual bool WasRead(const std::vector<int>& columns) const;
  /// Errors: as Chunk(), and kUnsupported of a tablet that is no file of this process.
  virtual Result<ChunkStorage> StorageOf(int column) const;
  /// kCorrupt if chunks that were handed out may have turned into zeros since. What was read of them counts only after
  /// this was asked.
  virtual Status Intact() const { return {}; }
  /// The bytes of the tablet's file as this process has mapped them, which a device may pin: the same as long as the tablet.
  /// Empty before the first chunk, and if the tablet is no file whose own pages are mapped.
  virtual std::span<const uint8_t> Mapping() const { return {}; }
  /// Keeps `held`, the pages that a device has pinned, until the mapping is about to go. The host may not read what the
  /// device does, so from then on Intact() looks whether the file has its end.
  virtual void HoldWhileMapped(std::shared_ptr<void> /*held*/) const {}
  /// The tablet as one of the runs of this column; after its columns there is the number of rows of each run. It lives as long as
  /// this one, and the pointer keeps both. `runs`: how many there are; 0: it is not known. Errors: as Describe(), and as
  /// StorageOf().
  virtual Result<std::shared_ptr<const Tablet>> Runs(int column, uint32_t runs) const;
  /// Rows [first, first + rows) as a tablet of their own, which lives as long as this one. nullptr if this is neither a file of
  /// this process nor the runs of one. REQUIRES: as PartTablet.
  virtual const Tablet* Part(uint32_t /*first*/, uint32_t /*rows*/) const { return nullptr; }
  /// What is stored, where this is a view of it: the tablet, and the column of one of its columns.
  virtual const Tablet& stored() const { return *this; }
  virtual int StoredColumn(int column) const { return column; }
  /// Where a column is stored, if that is not here: the file lives on when rows are deleted or other columns are written anew,
  /// so that what is cached of the column is kept by it. Without a tablet it is here, or made.
  virtual ColumnSource SourceOf(int column) const { return {nullptr, column}; }
  /// The schemes of a column, without reading its chunk: see ChunkStorage. Errors: as StorageOf().
  virtual Result<std::string> SchemesOf(int column) const;
  /// For messages.
  virtual std::string path() const = 0;
};

/// What the catalog knows of a tablet file; a file that differs in any of it is not the one the catalog means.
struct TabletIdentity {
  std::array<uint8_t, 16> database{};
  int64_t table_id = 0;
  int64_t tablet_id = 0;
  uint32_t rows = 0;
  uint64_t file_bytes = 0;
  uint64_t header_checksum = 0;
  int64_t file_id = 0;  ///< of columns that were written beside a tablet: in the name of the file; 0: the tablet's own
  uint64_t offset = 0;  ///< ... and where they are in it

  int64_t file() const { return file_id != 0 ? file_id : tablet_id; }
  friend bool operator==(const TabletIdentity&, const TabletIdentity&) = default;
};

// Tablets of a database that another process has opened, as it described them. `types` are those of all columns.

/// nullptr if the tablet is not a file of a database, or of several, with or without deleted rows.
const TabletIdentity* IdentityOf(const Tablet& tablet);
/// Of columns that were written beside the tablet.
TabletIdentity IdentityOf(const TabletIdentity& tablet, const ColumnFile& file);

}  // namespace tessera
