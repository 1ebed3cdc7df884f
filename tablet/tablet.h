// Tables on disk: the catalog, tablets, their encoded chunks, loading and export.
//
// A database is a directory: `catalog.sqlite` (tables, columns, tablets, statistics, in SQLite transactions) and one
// file per tablet. FORMAT.md beside this file gives every byte. Tablet files are immutable; a load writes new ones,
// syncs them and commits one catalog transaction. A Snapshot is what a statement sees: it never changes, and the files
// in it stay readable until the last copy of it is gone, whatever other processes drop or load.
//
// Start at: Database::Open, Snapshot, Tablet::Chunk.
// Threads: Database and Tablet may be used from any thread at once; TableWriter by one thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/ordered_float.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera {

class LiveRows;

// ---- Encoded chunks -------------------------------------------------------------------------------------------------

/// How a chunk (one column of one tablet) is stored. A *code* is what the stream holds for a row.
enum class Encoding : uint8_t {
  kConstant,    ///< every row has the same value (or every row is NULL); no stream, width 0
  kFrame,       ///< frame of reference: value = base + code (modulo 2^64; floats through OrderedFloat, reals through
                ///< OrderedFloat32)
  kDictionary,  ///< TEXT: code = index into the chunk's own dictionary, sorted by bytes, without duplicates
  kPlain,       ///< TEXT, nearly unique: no code stream, the code of a row is its row number; entries in row order
};

/// What packing is for: SET compression.
enum class CompressionGoal : uint8_t {
  kNone,      ///< codes of whole bytes, read in place
  kSpeed,     ///< what unpacks as fast as memory is read
  kBalanced,  ///< what pays as soon as a disk or a link is read
  kRatio,     ///< the fewest bytes
};

/// Which part of a packed stream codes are.
enum class PackedPart : uint8_t {
  kAll,
  kRunValues,   ///< the stream is of runs: the value of each
  kRunLengths,  ///< ... and its rows less 1
};

/// A verified, decoded-on-the-fly view of one chunk. Streams start on 128 bytes and are zero-padded to 128, so that a
/// bulk copy of a last partial tile may be rounded up inside the padding. Pointers live as long as the Tablet.
struct alignas(64) Chunk {
  // First what all readers of tablets look at, in two cache lines: a scan of many tablets waits for memory here.
  SqlType type;
  Encoding encoding = Encoding::kConstant;
  uint8_t width =
      0;  ///< bytes a code: 1, 2, 4 or 8; 16 for DECIMAL of 19+ digits where 64-bit codes cannot; 0 without stream
  bool has_nulls = false;
  bool packed_entries = false;  ///< entries or NULL bytes are packed, and what points to them is not to be read
  PackedPart packed_part = PackedPart::kAll;
  uint32_t rows = 0;
  uint32_t null_count = 0;
  uint32_t entries = 0;  ///< TEXT: dictionary entries (kDictionary), rows (kPlain), 1 or 0 (kConstant)
  int128_t base = 0;     ///< kFrame: value = base + code; kConstant: the value (its integer or ordered form)
  /// Least and greatest value that is not NULL: kInt and kWide the integer, kFloat the ordered form, kText codes of the
  /// dictionary (0 and entries - 1; for kPlain not meaningful). min > max if every row is NULL.
  int128_t min = 0, max = -1;
  const uint8_t* codes = nullptr;         ///< rows codes of `width` bytes, little endian; nullptr if width is 0
  uint64_t codes_bytes = 0;               ///< with padding, unpacked
  const uint8_t* packed_codes = nullptr;  ///< if they are stored packed: the packed stream (schemes/packed_stream.h)
  /// kPlain with NULLs: one byte a row, 1 for NULL (its entry is empty); else nullptr.
  const uint8_t* null_bytes = nullptr;
  uint64_t null_code = 0;  ///< the code that means NULL if has_nulls and width is 1..8; kConstant: all rows are NULL
  uint64_t encoded_bytes = 0;  ///< of all streams, as stored

  int128_t null_code_wide = 0;              ///< as null_code, for width 16
  uint64_t packed_bytes = 0;                ///< of packed_codes
  uint32_t packed_rows = 0;                 ///< of runs: their rows
  const uint64_t* entry_offsets = nullptr;  ///< TEXT: entries + 1 offsets into entry_bytes
  const char* entry_bytes = nullptr;
  uint64_t text_bytes = 0;  ///< TEXT: bytes of all entries
  /// TEXT: bytes of the longest entry, or more; known once the chunk's streams were verified.
  uint64_t longest_entry = UINT64_MAX;

  /// Entry `code` of a TEXT chunk. REQUIRES: code < entries.
  /// (Offsets were in order when they were verified, but may turn into zeros: see file_mapping.h.)
  std::string_view Entry(uint32_t code) const {
    const uint64_t begin = entry_offsets[code], end = entry_offsets[code + 1];
    return begin <= end && end <= text_bytes ? std::string_view(entry_bytes + begin, end - begin) : std::string_view();
  }
  /// The greatest code that is not NULL. REQUIRES: width is 1 .. 8.
  uint64_t GreatestCode() const {
    return encoding == Encoding::kDictionary ? entries - 1 : static_cast<uint64_t>(max) - static_cast<uint64_t>(min);
  }
};

/// A chunk, and what it was unpacked to, if it was: that may go when the last pointer does. Otherwise the chunk lives as
/// long as the tablet.
using ChunkPointer = std::shared_ptr<const Chunk>;

/// How a chunk is stored, for people.
struct ChunkStorage {
  std::string schemes;        ///< "FOR, NS7", "DICT, [ZSTD | NS8]"
  uint64_t plain_bytes = 0;   ///< of its streams, as compression none stores them
  uint64_t stored_bytes = 0;  ///< of them as they are
  uint64_t nulls = 0;
  Value min, max;  ///< NULL if every row is, and for nearly unique texts
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
  /// says whether they are known to unpack to what the chunk says. If they are not, whoever unpacks them looks, and either
  /// notes that they are right or asks Chunk() for the error.
  virtual Result<ChunkPointer> PackedChunk(int column) const { return Chunk(column); }
  /// For whoever reads codes by tiles (tablet/chunk/packed_chunk.h). PackedChunk() if they are plain bits, if it is the first time, or
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
  /// The tablet as one of the runs of this column; behind its columns there is the number of rows of each run. It lives as
  /// long as this one, and the pointer keeps both. `runs`: how many there are, if somebody knows; 0: nobody does. Errors:
  /// as Describe(), and as StorageOf().
  virtual Result<std::shared_ptr<const Tablet>> Runs(int column, uint32_t runs) const;
  /// Rows [first, first + rows) as a tablet of their own, which lives as long as this one. nullptr if this is neither a file of
  /// this process nor the runs of one. REQUIRES: as PartTablet.
  virtual const Tablet* Part(uint32_t /*first*/, uint32_t /*rows*/) const { return nullptr; }
  /// What is stored, where this is a view of it: the tablet, and the column of one of its columns.
  virtual const Tablet& stored() const { return *this; }
  virtual int StoredColumn(int column) const { return column; }
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
  friend bool operator==(const TabletIdentity&, const TabletIdentity&) = default;
};

// Tablets of a database that another process has opened, as it described them. `types` are those of all columns.

/// nullptr if the tablet is not a file of a database, with or without deleted rows.
const TabletIdentity* IdentityOf(const Tablet& tablet);
/// The tablet in a file of `directory`. It is opened, and checked against `identity`, when a chunk is first asked for.
std::shared_ptr<const Tablet> OpenTablet(const std::string& directory, const TabletIdentity& identity,
                                         std::shared_ptr<const std::vector<SqlType>> types);
/// The tablet whose file's bytes are mapped (mmap) at `mapping`, which the tablet will unmap. `name` is for messages.
/// Checked as above.
std::shared_ptr<const Tablet> TabletOfMapping(std::string name, const TabletIdentity& identity,
                                              std::shared_ptr<const std::vector<SqlType>> types,
                                              const uint8_t* mapping);

// ---- Catalog --------------------------------------------------------------------------------------------------------

struct ColumnSchema {
  std::string name;
  SqlType type;
  bool not_null = false;
  /// What a row gets that is stored without a value for the column, as text of its type; without it NULL.
  std::optional<std::string> default_text = {};
  /// The same as an expression of SQL that each row computes anew: it depends on time or chance.
  std::optional<std::string> default_expression = {};
  /// GENERATED ALWAYS AS (text) STORED: an expression of SQL over the other columns, which gives its value.
  std::optional<std::string> generated_text = {};

  bool HasDefault() const { return default_text || default_expression; }
};

/// An expression of SQL that is not false for any row.
struct CheckConstraint {
  std::string name;
  std::string text;
};

/// No two rows are equal in these columns; rows with a NULL in one of them are equal to none.
struct UniqueKey {
  std::string name;
  std::vector<int> columns;
};

struct TableSchema {
  std::string name;
  std::vector<ColumnSchema> columns;
  std::vector<int> primary_key;  ///< column numbers; empty if none. Its columns are NOT NULL.
  uint32_t tablet_rows = 0;      ///< WITH (tablet_rows = N), 1 .. 2^20; 0: chosen at the first load
  std::vector<CheckConstraint> checks = {};
  std::vector<UniqueKey> unique_keys = {};
  /// WITH (cluster_by = ...): the columns by which each load sorts its rows; empty: none.
  std::vector<int> cluster_by = {};
  /// WITH (distribute_by = ...): the columns by whose values rows are cut into buckets (tablet/catalog/buckets.h); empty: none.
  std::vector<int> distribute_by = {};

  /// Column number, or -1.
  int Find(std::string_view column) const;
};

/// Over all tablets of a table.
struct ColumnStatistics {
  bool has_range = false;     ///< false if there is no row that is not NULL, and for TEXT
  int128_t min = 0, max = 0;  ///< in the integer or ordered form of Chunk::min
  uint64_t null_count = 0;
  uint64_t distinct = 0;  ///< estimate of distinct values, at least 1 if there is any
  uint64_t encoded_bytes = 0;
};

struct TableInfo;

/// What has been made of a table once, by column. A copy of the table, which may be changed, has nothing yet. Any thread.
template <class T>
class MadeByColumn {
 public:
  MadeByColumn() = default;
  MadeByColumn(const MadeByColumn&) {}
  MadeByColumn& operator=(const MadeByColumn&) {
    made_.clear();
    return *this;
  }

  /// nullptr: nothing has been made yet.
  std::shared_ptr<const T> Find(int column) const {
    std::lock_guard lock(mutex_);
    const auto at = made_.find(column);
    return at == made_.end() ? nullptr : at->second;
  }
  /// In place of what there is. Returns it.
  std::shared_ptr<const T> Keep(int column, std::shared_ptr<const T> made) const {
    std::lock_guard lock(mutex_);
    return made_.insert_or_assign(column, std::move(made)).first->second;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::map<int, std::shared_ptr<const T>> made_;
};

/// The values of an integer column in a tablet or in several, NULLs apart; low > high: there are none.
struct ColumnRange {
  int64_t low = INT64_MAX, high = INT64_MIN;

  bool any() const { return low <= high; }
  void Add(const ColumnRange& r) {
    low = std::min(low, r.low);
    high = std::max(high, r.high);
  }
  bool Meets(const ColumnRange& r) const { return any() && r.any() && low <= r.high && r.low <= high; }
};
using ColumnRanges = std::vector<ColumnRange>;

struct TableInfo {
  int64_t id = 0;       ///< never reused in a database
  int64_t version = 0;  ///< grows with each change of the table's rows
  TableSchema schema;
  uint64_t rows = 0;         ///< live ones: what a query sees
  uint64_t stored_rows = 0;  ///< of all tablets: those that have been deleted are among them
  /// BOOLEAN: whether a row is live; every scan filters by it first. -1: no row has been deleted. It has no schema.
  int live_column = -1;
  /// One per column, and of live_column if there is one. They are of all stored rows, so what they say of the live ones
  /// are bounds.
  std::vector<ColumnStatistics> statistics;
  std::vector<std::shared_ptr<const Tablet>> tablets;  ///< files are opened when first read
  std::vector<uint8_t> buckets;  ///< by tablet: that of all its rows; empty: the table is not distributed
  /// The rows are runs of this column, see RunsOf; -1: they are as stored.
  int runs_of = -1;
  MadeByColumn<TableInfo> runs = {};
  MadeByColumn<ColumnRanges> ranges = {};
};

/// The table with the runs of a column in place of its rows: neighbours that are equal in it are one, and how many they are
/// is the last column, a BIGINT. No other column than these two can be read. Errors: as Tablet::Runs.
/// `runs`: how many each tablet has, as another process that has read them says; nullptr: nobody says.
Result<std::shared_ptr<const TableInfo>> RunsOf(const TableInfo& table, int column, const std::vector<int32_t>* runs);

/// Of each tablet, from the descriptors of its chunks, which are looked at once. Errors: as Tablet::Describe; kUnsupported, a
/// chunk has other values than integers of 64 bits.
Result<std::shared_ptr<const ColumnRanges>> RangesOf(const TableInfo& table, int column);

/// All tables at one moment.
class Snapshot {
 public:
  std::vector<std::shared_ptr<const TableInfo>> tables;  ///< sorted by name
  std::vector<EnumType> types;                           ///< sorted by name
  /// nullptr if there is none. Names are as PostgreSQL folds them (the parser lower-cases unquoted names).
  std::shared_ptr<const TableInfo> Find(std::string_view name) const;
};

/// Rows being added to a table, and rows that go. Nothing is visible before Commit(); destruction without it discards
/// everything.
class TableWriter {
 public:
  virtual ~TableWriter() = default;
  /// Appends rows; columns in schema order, of the schema's storage classes. Checks NOT NULL and VARCHAR(n).
  /// Errors: kConstraint naming column and value; `first_row` (from 1) is the number that the message gives the batch's
  /// first row, as "row n".
  virtual Status Append(const RowBatch& batch, uint64_t first_row) = 0;
  /// Deletes rows by their numbers in the table as Database::Read() has it while this lives (NumberRows of live_tablet.h).
  /// `*fresh`: by number, whether the row was there until now: it may have been deleted by an earlier call, or stand twice.
  virtual Status Delete(std::span<const int64_t> rows, std::vector<bool>* fresh) = 0;
  /// Checks PRIMARY KEY and UNIQUE, writes and syncs what is left, commits one catalog transaction.
  virtual Status Commit() = 0;
};

/// Computes the generated columns of new rows and tests their CHECK constraints: what needs SQL's expressions. The second
/// argument is the number of the first row, from 1, for messages. Errors: kConstraint.
using RowRules = std::function<Status(RowBatch*, uint64_t)>;

class LoadRanks;

struct CopyFromOptions {
  char delimiter = ',';
  bool header = false;
  std::string null_string;  ///< an unquoted field equal to this is NULL
  char quote = '"';
  char escape = '"';
  std::vector<int> columns;        ///< column numbers in the order of the fields; empty: all. Others become NULL.
  const TimeZone* zone = nullptr;  ///< of moments that do not say their own; nullptr: UTC
  int threads = 1;
  /// Set by another thread to stop; the copy then ends with kCancelled and changes nothing. May be nullptr.
  const std::atomic<bool>* cancel = nullptr;
  /// Called with (bytes done, bytes in all), from any thread, often. May be empty.
  std::function<void(uint64_t, uint64_t)> progress;
  RowRules rules;              ///< for each batch, one after the other, before it is added; empty: there are none
  LoadRanks* ranks = nullptr;  ///< processes that may take part (shared_load.h); nullptr: there are no others
};

struct CopyToOptions {
  char delimiter = ',';
  bool header = false;
  std::string null_string;
  char quote = '"';
  char escape = '"';
};

enum class OpenMode { kReadWrite, kReadOnly };

class Database {
 public:
  /// Opens the database in `directory`, creating it if it is not there (not in kReadOnly). An empty name makes a
  /// database in a temporary directory that is removed when the object dies. Errors: kIo, kCorrupt (not a database,
  /// newer version).
  static Result<std::unique_ptr<Database>> Open(const std::string& directory, OpenMode mode);
  virtual ~Database() = default;

  virtual const std::string& directory() const = 0;
  /// The committed state now. Cheap when nothing has changed since the last call.
  virtual Result<std::shared_ptr<const Snapshot>> Read() = 0;

  // The writers below take the database's exclusive writer lock. If another process holds it, they wait up to
  // `SetLockTimeout` and then fail with kBusy, naming the process that holds it.
  virtual Status CreateTable(const TableSchema& schema, bool if_not_exists) = 0;
  /// In place of the table of that name, if there is one, in one commit.
  virtual Status ReplaceTable(const TableSchema& schema) = 0;
  virtual Status DropTable(const std::string& name, bool if_exists) = 0;
  virtual Status CreateType(const EnumType& type) = 0;
  /// Errors: a column has the type.
  virtual Status DropType(const std::string& name, bool if_exists) = 0;
  virtual Result<std::unique_ptr<TableWriter>> Write(const std::string& table) = 0;
  /// A new table with its rows, in one commit: as CreateTable() or, if `replace`, ReplaceTable() and Write().
  virtual Result<std::unique_ptr<TableWriter>> WriteNew(const TableSchema& schema, bool replace) = 0;
  /// COPY table FROM file: all rows or none. Returns the rows added. Errors name file, line, column and text.
  virtual Result<uint64_t> CopyFrom(const std::string& table, const std::string& file,
                                    const CopyFromOptions& options) = 0;
  virtual void SetLockTimeout(int milliseconds) = 0;
  /// How the tablets are packed that are written from now on.
  virtual void SetCompression(CompressionGoal goal) = 0;
  /// What is in doubt about the changes since the last call, for the user; empty if nothing is. After the commit of a
  /// change nothing makes it an error any more: whoever repeated it would make it twice.
  virtual std::string TakeWarning() = 0;
};

/// Writes rows as CSV, quoted after RFC 4180: NULL as null_string, a text equal to null_string quoted. The file appears
/// under its name only when Close() succeeds.
class CsvWriter {
 public:
  static Result<std::unique_ptr<CsvWriter>> Create(const std::string& file, const CopyToOptions& options,
                                                   const std::vector<std::string>& column_names);
  virtual ~CsvWriter() = default;
  virtual Status Append(const RowBatch& batch) = 0;
  virtual Status Close() = 0;
};

}  // namespace tessera
