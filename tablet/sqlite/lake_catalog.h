// A DuckLake catalog in an SQLite database: which tables a snapshot of it has, and what rows and files they consist of. The
// files are not looked at. Its specification, of which this reads one version: https://ducklake.select/docs/stable/specification
//
// The catalog may be a stranger's. What it says is only read.
//
// Start at: ReadLakeTables, ReadLakeTable. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/values/row_batch.h"

namespace tessera {

/// The version of the format that is read.
inline constexpr char kLakeVersion[] = "1.0";

/// Which snapshot; neither: the newest one.
struct LakeMoment {
  std::optional<int64_t> version;
  std::optional<int64_t> time;  ///< the newest that was there at that moment, in microseconds since 1970
};

struct LakeColumn {
  int64_t id = 0;       ///< the number of the fields of files that have it
  std::string name;     ///< in lower case
  SqlType type;         ///< TEXT if there is a problem
  std::string problem;  ///< why its values cannot be read: "type list of DuckLake is not supported"; "": they can
  Value before;         ///< of rows that were stored before there was the column
};

struct LakeTable {
  int64_t id = 0;
  std::string name;    ///< a qualified name in lower case (tablet/catalog/qualified_name.h)
  std::string folder;  ///< with a slash at its end; relative paths of files are in it
  std::vector<LakeColumn> columns;
};

struct LakeTables {
  int64_t version = 0;               ///< of the snapshot
  std::vector<std::string> schemas;  ///< sorted, but for the default one
  std::vector<LakeTable> tables;
  std::vector<std::string> views;  ///< qualified names
};

/// A Parquet file of positions, one a row, in column "pos".
struct LakeDeletions {
  std::string path;
  bool of_several = false;  ///< column kLakeSnapshotColumn says since which snapshot each is deleted
};

/// The column of a file whose rows are of several snapshots.
inline constexpr char kLakeSnapshotColumn[] = "_ducklake_internal_snapshot_id";

struct LakeFile {
  std::string path;
  bool of_several = false;  ///< rows of later snapshots are in it, too, by kLakeSnapshotColumn
  /// The numbers of columns, by the file's names of its fields; nothing: the fields have numbers of their own.
  std::optional<std::vector<std::pair<std::string, int64_t>>> names;
  /// Columns that are in no field, but in the names of folders: their names there, and the numbers.
  std::vector<std::pair<std::string, int64_t>> folders;
  std::vector<LakeDeletions> deletions;
  std::vector<uint64_t> deleted;  ///< positions, beside those of `deletions`
};

/// All of a table in a snapshot.
struct LakeRows {
  LakeTable table;
  int64_t version = 0;
  std::vector<LakeFile> files;
  RowBatch rows;  ///< those that are in the catalog itself; columns with a problem are NULL
};

/// `path`: of the SQLite database. `data_path`: in place of the catalog's own; "": that. `name`: for messages. Errors: kIo; kSql, it is no catalog, of another version, or has no such snapshot; kCorrupt.
Result<LakeTables> ReadLakeTables(const std::string& path, const std::string& data_path, const LakeMoment& moment);

/// `table`: a qualified name in lower case. Errors: also kSql, the snapshot has no such table, a value in the catalog is none
/// of its column; kUnsupported, files are encrypted or of another format.
Result<LakeRows> ReadLakeTable(const std::string& path, const std::string& data_path, const LakeMoment& moment,
                               const std::string& table);

}  // namespace tessera
