#include "tablet/sqlite/lake_catalog.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>
#include <string_view>

#include "base/lower_case.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/sqlite/sqlite_connection.h"
#include "tablet/values/utf8.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

/// Of a row with begin_snapshot and end_snapshot: whether snapshot ?1 has it.
constexpr char kIsThere[] = "begin_snapshot <= ?1 AND (end_snapshot IS NULL OR end_snapshot > ?1)";

struct TypeRow {
  std::string_view name;
  TypeId type;
};
/// What DuckLake calls the types that are read, but for decimals.
constexpr TypeRow kTypes[] = {
    {"blob", TypeId::kBytea},
    {"boolean", TypeId::kBoolean},
    {"date", TypeId::kDate},
    {"float32", TypeId::kReal},
    {"float64", TypeId::kDouble},
    {"int16", TypeId::kSmallint},
    {"int32", TypeId::kInteger},
    {"int64", TypeId::kBigint},
    {"int8", TypeId::kSmallint},
    {"json", TypeId::kText},
    {"time", TypeId::kTime},
    {"timestamp", TypeId::kTimestamp},
    {"timestamp_ms", TypeId::kTimestamp},
    {"timestamp_ns", TypeId::kTimestamp},
    {"timestamp_s", TypeId::kTimestamp},
    {"timestamp_us", TypeId::kTimestamp},
    {"timestamptz", TypeId::kTimestampTz},
    {"uint16", TypeId::kInteger},
    {"uint32", TypeId::kBigint},
    {"uint64", TypeId::kBigint},
    {"uint8", TypeId::kSmallint},
    {"uuid", TypeId::kUuid},
    {"varchar", TypeId::kText},
};

/// decimal(10,2); nothing: it is none.
std::optional<SqlType> DecimalOf(std::string_view type) {
  if (!type.starts_with("decimal(") || !type.ends_with(')')) return std::nullopt;
  int precision = 0, scale = 0;
  const char* const end = type.data() + type.size() - 1;
  const auto first = std::from_chars(type.data() + 8, end, precision);
  const bool has_two = first.ec == std::errc() && first.ptr != end && *first.ptr == ',';
  const char* second = has_two ? first.ptr + 1 : end;
  while (second != end && *second == ' ') ++second;
  const auto last = std::from_chars(second, end, scale);
  const bool good = last.ec == std::errc() && last.ptr == end && precision >= 1 && precision <= 38 && scale >= 0 &&
                    scale <= precision;
  return good ? std::optional(SqlType::Decimal(precision, scale)) : std::nullopt;
}

std::optional<SqlType> TypeOf(std::string_view type) {
  const auto* const row = std::ranges::find(kTypes, type, &TypeRow::name);
  return row != std::end(kTypes) ? std::optional(SqlType::Of(row->type)) : DecimalOf(type);
}

/// Bytes as DuckDB writes them in a text: those that are no letters as \xNN.
std::string BytesOf(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    unsigned byte = 0;
    const bool escaped = text.size() >= 4 && text.starts_with("\\x") &&
                         std::from_chars(text.data() + 2, text.data() + 4, byte, 16).ptr == text.data() + 4;
    bytes += escaped ? static_cast<char>(byte) : text.front();
    text.remove_prefix(escaped ? 4 : 1);
  }
  return bytes;
}

Result<Value> ValueOf(std::string_view text, const SqlType& type) {
  if (type.id != TypeId::kBytea) return ParseValue(text, type);
  Value value = Value::Text(BytesOf(text));
  value.type = type;
  return value;
}

/// A value of a row that is in the catalog: SQLite has numbers and blobs for some types, texts for the others.
Result<Value> StoredValue(const SqliteQuery& query, int number, const SqlType& type) {
  const int stored = query.TypeOf(number);
  if (stored == SQLITE_NULL) return Value::Null(type);
  if (stored == SQLITE_INTEGER) return ParseValue(std::to_string(query.Integer(number)), type);
  if (stored == SQLITE_FLOAT)
    return ParseValue(ToText(Value::Float(SqlType::Of(TypeId::kDouble), query.Real(number))), type);
  if (stored != SQLITE_BLOB) return ValueOf(query.Bytes(number), type);
  if (type.storage() != StorageClass::kText) return SqlError("a blob is no " + type.ToString());
  if (type.id == TypeId::kText) return ParseValue(query.Bytes(number), type);
  Value value = Value::Text(std::string(query.Bytes(number)));
  value.type = type;
  return value;
}

/// A name that can be part of a qualified one, in lower case; "": it cannot.
std::string NameAt(const SqliteQuery& query, int number) {
  std::string name = LowerCase(query.Bytes(number));
  const bool good = CheckText(name, SqlType::Text()) == ParseError::kNone && name.find(kSchemaSeparator) == name.npos;
  return good ? name : std::string();
}

/// One state of a catalog.
class LakeReader {
 public:
  Status Open(const std::string& path, const std::string& data_path, const LakeMoment& moment) {
    name_ = QuoteForMessage(path);
    TESSERA_ASSIGN(connection_, SqliteConnection::Open(path, path, nullptr));
    const Status begun = connection_->Execute("BEGIN; SELECT count(*) FROM sqlite_master");
    if (!begun.ok() && begun.code() == ErrorCode::kSql)
      return {begun.kind(), begun.message(), "DuckLake catalogs are read from SQLite, not from files of DuckDB."};
    TESSERA_TRY(begun);
    TESSERA_TRY(ReadMetadata(data_path));
    return FindSnapshot(moment);
  }

  /// `only`: the others are left out; "": none is.
  Result<LakeTables> Tables(std::string_view only) {
    LakeTables out;
    out.version = version_;
    SqliteQuery schemas;
    TESSERA_TRY(Begin("SELECT schema_id, schema_name, path, path_is_relative FROM ducklake_schema WHERE ", &schemas));
    for (;;) {
      TESSERA_ASSIGN(const bool any, schemas.Step());
      if (!any) break;
      const std::string name = NameAt(schemas, 1);
      if (name.empty()) continue;
      Schema& schema = schemas_[schemas.Integer(0)];
      schema.folder = FolderAt(schemas, 2, data_path_);
      schema.name = name == "main" ? std::string() : name;
      if (!schema.name.empty()) out.schemas.push_back(schema.name);
    }
    std::ranges::sort(out.schemas);
    SqliteQuery tables;
    TESSERA_TRY(
        Begin("SELECT schema_id, table_name, path, path_is_relative, table_id FROM ducklake_table WHERE ", &tables));
    for (;;) {
      TESSERA_ASSIGN(const bool any, tables.Step());
      if (!any) break;
      const auto schema = schemas_.find(tables.Integer(0));
      const std::string name = NameAt(tables, 1);
      if (schema == schemas_.end() || name.empty()) continue;
      const std::string qualified = QualifiedName(schema->second.name, name);
      if (!only.empty() && qualified != only) continue;
      LakeTable& table = out.tables.emplace_back();
      table.id = tables.Integer(4);
      table.name = qualified;
      table.folder = FolderAt(tables, 2, schema->second.folder);
      TESSERA_ASSIGN(table.columns, Columns(table, version_));
    }
    SqliteQuery views;
    TESSERA_TRY(Begin("SELECT schema_id, view_name FROM ducklake_view WHERE ", &views));
    for (;;) {
      TESSERA_ASSIGN(const bool any, views.Step());
      if (!any) return out;
      const auto schema = schemas_.find(views.Integer(0));
      const std::string name = NameAt(views, 1);
      if (schema != schemas_.end() && !name.empty()) out.views.push_back(QualifiedName(schema->second.name, name));
    }
  }

  Result<LakeRows> Rows(LakeTable table) {
    LakeRows out;
    out.version = version_;
    out.table = std::move(table);
    TESSERA_ASSIGN(out.files, Files(out.table));
    TESSERA_TRY(AddDeletions(out.table, &out.files));
    TESSERA_TRY(AddRows(&out));
    return out;
  }

 private:
  struct Schema {
    std::string name, folder;
  };

  /// A query with ?1, the snapshot. Errors: the catalog has no such table.
  Status Begin(const std::string& select, SqliteQuery* query, const char* order = "") {
    TESSERA_TRY(query->Prepare(connection_.get(), select + kIsThere + order));
    query->Bind(1, version_);
    return {};
  }

  Status ReadMetadata(const std::string& data_path) {
    SqliteQuery query;
    const Status status = query.Prepare(connection_.get(), "SELECT key, value FROM ducklake_metadata");
    if (!status.ok() && status.code() == ErrorCode::kSql) {
      return SqlError(name_ + " is no DuckLake catalog: it has no table ducklake_metadata", -1,
                      "ATTACH 'file' AS name (TYPE sqlite) reads the tables of any SQLite database.");
    }
    TESSERA_TRY(status);
    std::string version;
    for (;;) {
      TESSERA_ASSIGN(const bool any, query.Step());
      if (!any) break;
      if (query.Bytes(0) == "version") version = query.Bytes(1);
      if (query.Bytes(0) == "data_path") data_path_ = query.Bytes(1);
    }
    if (version != kLakeVersion) {
      return Unsupported("DuckLake catalog " + name_ + " is of version " + QuoteForMessage(version) +
                             " of the format, which is not supported",
                         -1, std::string("Version ") + kLakeVersion + " is read.");
    }
    if (!data_path.empty()) data_path_ = data_path;
    if (!data_path_.empty() && !data_path_.ends_with('/')) data_path_ += '/';
    return {};
  }

  Status FindSnapshot(const LakeMoment& moment) {
    SqliteQuery query;
    TESSERA_TRY(query.Prepare(connection_.get(), "SELECT snapshot_id, snapshot_time FROM ducklake_snapshot " +
                                                     std::string(moment.version ? "WHERE snapshot_id = ?1" : "") +
                                                     " ORDER BY snapshot_id DESC"));
    if (moment.version) query.Bind(1, *moment.version);
    for (;;) {
      TESSERA_ASSIGN(const bool any, query.Step());
      if (!any) break;
      version_ = query.Integer(0);
      if (!moment.time) return {};
      TESSERA_ASSIGN(const Value time, ParseValue(query.Bytes(1), SqlType::Of(TypeId::kTimestampTz)));
      if (time.i64 <= *moment.time) return {};
    }
    const std::string which =
        moment.version ? "no snapshot " + std::to_string(*moment.version)
        : moment.time  ? "no snapshot at " + ToText(Value::Int(SqlType::Of(TypeId::kTimestampTz), *moment.time))
                       : "no snapshot";
    return SqlError(
        "DuckLake catalog " + name_ + " has " + which, -1,
        "Its table ducklake_snapshot, which ATTACH 'file' AS name (TYPE sqlite) shows, has those there are.");
  }

  /// The folder in columns `number` and `number + 1`: its name, and whether it is within `within`.
  static std::string FolderAt(const SqliteQuery& query, int number, const std::string& within) {
    std::string folder = PathAt(query, number, within);
    if (!folder.empty() && !folder.ends_with('/')) folder += '/';
    return folder;
  }
  static std::string PathAt(const SqliteQuery& query, int number, const std::string& within) {
    const std::string path(query.Bytes(number));
    return query.Integer(number + 1) != 0 || query.TypeOf(number + 1) == SQLITE_NULL ? within + path : path;
  }

  Status Damaged(const LakeTable& table, const std::string& what) const {
    return {ErrorCode::kCorrupt, "DuckLake catalog " + name_ + ", table \"" + ShownName(table.name) + "\": " + what};
  }

  /// As they are in a snapshot.
  Result<std::vector<LakeColumn>> Columns(const LakeTable& table, int64_t version) {
    SqliteQuery query;
    TESSERA_TRY(query.Prepare(
        connection_.get(), "SELECT column_id, column_name, column_type, initial_default FROM ducklake_column WHERE " +
                               std::string(kIsThere) +
                               " AND table_id = ?2 AND parent_column IS NULL ORDER BY column_order, column_id"));
    query.Bind(1, version);
    query.Bind(2, table.id);
    std::vector<LakeColumn> columns;
    std::set<std::string> taken;
    for (;;) {
      TESSERA_ASSIGN(const bool any, query.Step());
      if (!any) break;
      LakeColumn& column = columns.emplace_back();
      column.id = query.Integer(0);
      column.name = NameAt(query, 1);
      if (column.name.empty() || !taken.insert(column.name).second)
        return Damaged(table, "the name of a column is none, or that of another one");
      const std::string type = LowerCase(query.Bytes(2));
      const std::optional<SqlType> found = TypeOf(type);
      column.type = found.value_or(SqlType::Text());
      column.before = Value::Null(column.type);
      if (!found) column.problem = "type " + type + " of DuckLake is not supported";
      if (!found || query.TypeOf(3) == SQLITE_NULL) continue;
      const Result<Value> value = ValueOf(query.Bytes(3), column.type);
      if (!value.ok()) return Damaged(table, "column \"" + column.name + "\": " + value.status().message());
      column.before = *value;
    }
    if (columns.empty()) return Damaged(table, "it has no columns");
    return columns;
  }

  /// What a file of `format` is good for, if it is here.
  Status CheckFile(const std::string& path, std::string_view format, bool encrypted) const {
    const char* hint = "Read the lake with DuckDB, and write what is wanted of it to Parquet files.";
    if (encrypted)
      return Unsupported("file " + QuoteForMessage(path) + " is encrypted, which is not supported", -1, hint);
    if (format != "parquet")
      return Unsupported(
          "file " + QuoteForMessage(path) + " is of format " + QuoteForMessage(format) + ", which is not supported", -1,
          hint);
    if (path.find("://") != std::string::npos)
      return Unsupported("file " + QuoteForMessage(path) + " is on another machine, which is not supported", -1,
                         "Copy the data here, and write ATTACH ... (DATA_PATH 'folder').");
    return {};
  }
  static bool IsEncrypted(const SqliteQuery& query, int number) { return !query.Bytes(number).empty(); }

  Result<std::vector<LakeFile>> Files(const LakeTable& table) {
    SqliteQuery query;
    TESSERA_TRY(
        Begin("SELECT path, path_is_relative, file_format, encryption_key, mapping_id, partial_max, data_file_id "
              "FROM ducklake_data_file WHERE table_id = ?2 AND ",
              &query, " ORDER BY data_file_id"));
    query.Bind(2, table.id);
    std::vector<LakeFile> files;
    for (;;) {
      TESSERA_ASSIGN(const bool any, query.Step());
      if (!any) return files;
      LakeFile file;
      file.path = PathAt(query, 0, table.folder);
      TESSERA_TRY(CheckFile(file.path, query.Bytes(2), IsEncrypted(query, 3)));
      if (query.TypeOf(4) != SQLITE_NULL) TESSERA_TRY(ReadNames(table, query.Integer(4), &file));
      file.of_several = query.TypeOf(5) != SQLITE_NULL && query.Integer(5) > version_;
      numbers_[query.Integer(6)] = files.size();
      files.push_back(std::move(file));
    }
  }

  Status ReadNames(const LakeTable& table, int64_t mapping, LakeFile* file) {
    SqliteQuery query;
    TESSERA_TRY(query.Prepare(connection_.get(),
                              "SELECT type, source_name, target_field_id, is_partition FROM ducklake_column_mapping "
                              "JOIN ducklake_name_mapping USING (mapping_id) WHERE mapping_id = ?1 AND "
                              "parent_column IS NULL"));
    query.Bind(1, mapping);
    file->names.emplace();
    for (;;) {
      TESSERA_ASSIGN(const bool any, query.Step());
      if (!any) return {};
      if (query.Bytes(0) != "map_by_name")
        return Damaged(table, "a mapping of type " + QuoteForMessage(query.Bytes(0)) + " is unknown");
      auto& names = query.Integer(3) != 0 ? file->folders : *file->names;
      names.emplace_back(LowerCase(query.Bytes(1)), query.Integer(2));
    }
  }

  Status AddDeletions(const LakeTable& table, std::vector<LakeFile>* files) {
    SqliteQuery query;
    TESSERA_TRY(
        Begin("SELECT path, path_is_relative, format, encryption_key, partial_max, data_file_id "
              "FROM ducklake_delete_file WHERE table_id = ?2 AND ",
              &query));
    query.Bind(2, table.id);
    for (;;) {
      TESSERA_ASSIGN(const bool any, query.Step());
      if (!any) break;
      const auto number = numbers_.find(query.Integer(5));
      if (number == numbers_.end()) continue;
      LakeDeletions deletions;
      deletions.path = PathAt(query, 0, table.folder);
      TESSERA_TRY(CheckFile(deletions.path, query.Bytes(2), IsEncrypted(query, 3)));
      deletions.of_several = query.TypeOf(4) != SQLITE_NULL && query.Integer(4) > version_;
      (*files)[number->second].deletions.push_back(std::move(deletions));
    }
    // Of a few rows the catalog itself says that they are deleted, in a table that is made for the first of them.
    const std::string inlined = "ducklake_inlined_delete_" + std::to_string(table.id);
    SqliteQuery exists;
    TESSERA_TRY(exists.Prepare(connection_.get(), "SELECT 1 FROM sqlite_master WHERE name = ?1"));
    exists.Bind(1, inlined);
    TESSERA_ASSIGN(const bool there, exists.Step());
    if (!there) return {};
    SqliteQuery rows;
    TESSERA_TRY(rows.Prepare(connection_.get(),
                             "SELECT file_id, row_id FROM " + SqliteName(inlined) + " WHERE begin_snapshot <= ?1"));
    rows.Bind(1, version_);
    for (;;) {
      TESSERA_ASSIGN(const bool any, rows.Step());
      if (!any) return {};
      const auto number = numbers_.find(rows.Integer(0));
      if (number != numbers_.end()) (*files)[number->second].deleted.push_back(static_cast<uint64_t>(rows.Integer(1)));
    }
  }

  Status AddRows(LakeRows* out) {
    const LakeTable& table = out->table;
    for (const LakeColumn& column : table.columns) out->rows.columns.emplace_back().type = column.type;
    SqliteQuery query;
    TESSERA_TRY(query.Prepare(connection_.get(),
                              "SELECT table_name, (SELECT max(begin_snapshot) FROM ducklake_schema_versions v WHERE "
                              "v.table_id = d.table_id AND v.schema_version = d.schema_version) FROM "
                              "ducklake_inlined_data_tables d WHERE table_id = ?1 ORDER BY d.schema_version"));
    query.Bind(1, table.id);
    for (;;) {
      TESSERA_ASSIGN(const bool any, query.Step());
      if (!any) return {};
      const std::string name(query.Bytes(0));
      if (query.TypeOf(1) == SQLITE_NULL)
        return Damaged(table, "the columns of " + QuoteForMessage(name) + " are unknown");
      TESSERA_ASSIGN(const std::vector<LakeColumn> stored, Columns(table, query.Integer(1)));
      TESSERA_TRY(AddRowsOf(name, stored, out));
    }
  }

  /// The rows of a table of SQLite, which has columns `stored`, by their names.
  Status AddRowsOf(const std::string& name, const std::vector<LakeColumn>& stored, LakeRows* out) {
    const std::vector<LakeColumn>& columns = out->table.columns;
    std::string list = "SELECT row_id";
    std::vector<int> places(columns.size(), -1);
    int place = 0;
    for (size_t c = 0; c < columns.size(); ++c) {
      const auto found = std::ranges::find(stored, columns[c].id, &LakeColumn::id);
      if (found == stored.end() || !columns[c].problem.empty()) continue;
      list += ", " + SqliteName(found->name);
      places[c] = ++place;
    }
    SqliteQuery query;
    TESSERA_TRY(Begin(list + " FROM " + SqliteName(name) + " WHERE ", &query));
    for (;; ++out->rows.rows) {
      TESSERA_ASSIGN(const bool any, query.Step());
      if (!any) return {};
      for (size_t c = 0; c < columns.size(); ++c) {
        const SqlType& type = columns[c].type;
        const Result<Value> value = places[c] < 0 ? columns[c].before : StoredValue(query, places[c], type);
        if (!value.ok()) {
          return Status(value.status().kind(), "DuckLake catalog " + name_ + ", table " + QuoteForMessage(name) +
                                                   ", column \"" + columns[c].name + "\", row_id " +
                                                   std::to_string(query.Integer(0)) + ": " + value.status().message());
        }
        out->rows.columns[c].Append(*value);
      }
    }
  }

  std::string name_;  ///< for messages
  std::unique_ptr<SqliteConnection> connection_;
  std::string data_path_;
  int64_t version_ = 0;
  std::map<int64_t, Schema> schemas_;
  std::map<int64_t, size_t> numbers_;  ///< of files, by their identifiers
};

}  // namespace

Result<LakeTables> ReadLakeTables(const std::string& path, const std::string& data_path, const LakeMoment& moment) {
  LakeReader reader;
  TESSERA_TRY(reader.Open(path, data_path, moment));
  return reader.Tables("");
}

Result<LakeRows> ReadLakeTable(const std::string& path, const std::string& data_path, const LakeMoment& moment,
                               const std::string& table) {
  LakeReader reader;
  TESSERA_TRY(reader.Open(path, data_path, moment));
  TESSERA_ASSIGN(LakeTables all, reader.Tables(table));
  const auto found = std::ranges::find(all.tables, table, &LakeTable::name);
  if (found != all.tables.end()) return reader.Rows(std::move(*found));
  return SqlError(ErrorKind::kUndefinedTable, "snapshot " + std::to_string(all.version) + " of DuckLake catalog " +
                                                  QuoteForMessage(path) + " has no table \"" + ShownName(table) + "\"");
}

}  // namespace tessera
