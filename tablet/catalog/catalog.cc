// The catalog's SQL.
#include "tablet/catalog/catalog.h"

#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <random>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "tablet/catalog/catalog_checksum.h"
#include "tablet/catalog/catalog_statement.h"
#include "tablet/catalog/catalog_transaction.h"
#include "tablet/catalog/constraint_row.h"
#include "tablet/catalog/schema_check.h"
#include "tablet/catalog/statistics_check.h"
#include "tablet/chunk/tablet_format.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

constexpr int kApplicationId = 0x54534352;  // "TSCR"
/// Without and with the table of defaults, with that of constraints, with types or what is computed for each row, with
/// clustered tables, with distributed ones, with deleted rows, with views or macros, and with a commit log, short tablets
/// before the last, foreign keys, materialised views or tablets of several files, with sequences, schemas or comments, with
/// a commit log of several tables and sequences, and with roles or grants. Each is made with the first entry.
constexpr int kUserVersion = 1, kVersionWithDefaults = 2, kVersionWithConstraints = 3, kVersionWithTypes = 4,
              kVersionWithClusters = 5, kVersionWithBuckets = 6, kVersionWithDeletedRows = 7,
              kVersionWithShortTablets = 9, kVersionWithForeignKeys = 9, kVersionWithComments = 10,
              kNewestVersion = kVersionWithRoles;  // (8: with views or macros; 10: with sequences or schemas)
/// Of tables, tablets and versions: who counts on from here does not come to the end of an int64_t.
constexpr int64_t kGreatestId = int64_t{1} << 62;
constexpr int64_t kGreatestFileBytes = int64_t{1} << 50;

// FORMAT.md repeats this text.
constexpr char kSchema[] = R"(
CREATE TABLE database (
  one             INTEGER PRIMARY KEY CHECK (one = 1),
  id              BLOB NOT NULL,
  next_table_id   INTEGER NOT NULL,
  next_tablet_id  INTEGER NOT NULL,
  checksum        INTEGER NOT NULL
);
CREATE TABLE tables (
  id                    INTEGER PRIMARY KEY,
  name                  TEXT NOT NULL UNIQUE,
  version               INTEGER NOT NULL,
  declared_tablet_rows  INTEGER NOT NULL,
  tablet_rows           INTEGER NOT NULL,
  checksum              INTEGER NOT NULL
);
CREATE TABLE columns (
  table_id        INTEGER NOT NULL REFERENCES tables (id),
  position        INTEGER NOT NULL,
  name            TEXT NOT NULL,
  type            INTEGER NOT NULL,
  precision       INTEGER NOT NULL,
  scale           INTEGER NOT NULL,
  length          INTEGER NOT NULL,
  not_null        INTEGER NOT NULL,
  key_position    INTEGER,
  min             TEXT,
  max             TEXT,
  null_count      INTEGER NOT NULL,
  distinct_count  INTEGER NOT NULL,
  encoded_bytes   INTEGER NOT NULL,
  sketch          BLOB,
  PRIMARY KEY (table_id, position)
);
CREATE TABLE tablets (
  id               INTEGER PRIMARY KEY,
  table_id         INTEGER NOT NULL REFERENCES tables (id),
  position         INTEGER NOT NULL,
  rows             INTEGER NOT NULL,
  file_bytes       INTEGER NOT NULL,
  header_checksum  INTEGER NOT NULL,
  UNIQUE (table_id, position)
);
)";
constexpr char kDefaultsSchema[] = R"(
CREATE TABLE defaults (
  table_id  INTEGER NOT NULL REFERENCES tables (id),
  position  INTEGER NOT NULL,
  value     TEXT NOT NULL,
  PRIMARY KEY (table_id, position)
);
)";

constexpr char kConstraintsSchema[] = R"(
CREATE TABLE constraints (
  table_id  INTEGER NOT NULL REFERENCES tables (id),
  position  INTEGER NOT NULL,
  kind      TEXT NOT NULL,
  name      TEXT NOT NULL,
  value     TEXT NOT NULL,
  PRIMARY KEY (table_id, position)
);
)";

constexpr char kDeletedRowsSchema[] = R"(
CREATE TABLE deleted_rows (
  tablet_id  INTEGER PRIMARY KEY REFERENCES tablets (id),
  rows       BLOB NOT NULL
);
)";

std::string ToDecimal(int128_t v) { return ToText(Value::Wide(SqlType::Decimal(38, 0), v)); }

bool FromDecimal(std::string_view text, int128_t* out) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  int128_t value = 0;
  bool overflow = text.empty();
  for (char c : text) {
    if (c < '0' || c > '9') return false;
    overflow |= __builtin_mul_overflow(value, int128_t{10}, &value);
    // Toward the sign, as the least number has no positive one.
    overflow |= __builtin_add_overflow(value, int128_t{negative ? '0' - c : c - '0'}, &value);
  }
  *out = value;
  return !overflow;
}

bool NameLess(const std::shared_ptr<const TableRecord>& a, std::string_view b) { return a->schema.name < b; }

}  // namespace

std::shared_ptr<const TableRecord> CatalogContents::Find(std::string_view name) const {
  const auto at = std::lower_bound(tables.begin(), tables.end(), name, NameLess);
  return at != tables.end() && (*at)->schema.name == name ? *at : nullptr;
}

Catalog::~Catalog() { sqlite3_finalize(data_version_); }

Result<std::unique_ptr<Catalog>> Catalog::OpenTemporary(const std::string& name) {
  std::unique_ptr<Catalog> catalog(new Catalog(":memory:", name));
  TESSERA_TRY(catalog->file_.OpenTemporary());
  return catalog;
}

Result<std::unique_ptr<Catalog>> Catalog::Open(const std::string& path, const std::string& name, Access access) {
  std::unique_ptr<Catalog> catalog(new Catalog(path, name));
  TESSERA_TRY(catalog->file_.Open(access));
  return catalog;
}

Status Catalog::BeginChange(CatalogTransaction* transaction, const char* sql) {
  TESSERA_TRY(GiveToSqlite(false));
  return BeginWhole(transaction, sql);
}

Status Catalog::BeginWhole(CatalogTransaction* transaction, const char* sql) {
  TESSERA_TRY(file_.ChooseJournal());
  TESSERA_TRY(transaction->Begin(sql, is_open_));
  return transaction->is_part() ? Status() : TakeOverLog();
}

Result<Catalog::State> Catalog::Check() {
  TESSERA_ASSIGN(const int64_t application, QueryInteger(&file_, "PRAGMA application_id"));
  TESSERA_ASSIGN(const int64_t version, QueryInteger(&file_, "PRAGMA user_version"));
  if (application != kApplicationId) {
    TESSERA_ASSIGN(const int64_t pages, QueryInteger(&file_, "PRAGMA page_count"));
    if (application == 0 && version == 0 && pages == 0) return State::kEmpty;
    return file_.Corrupt("it is not a database of this program");
  }
  if (version < kUserVersion || version > kNewestVersion) {
    return Status(ErrorCode::kCorrupt,
                  "database \"" + file_.name() + "\" has format version " + std::to_string(version) +
                      ", this program reads version " + std::to_string(kNewestVersion),
                  version > kNewestVersion ? "Use the newer program that wrote it." : "");
  }
  // Another schema could make a SELECT or an INSERT run expressions of its own.
  const std::string_view kSchemas[] = {
      kSchema,    kDefaultsSchema, kConstraintsSchema, kTypesSchema,   kDeletedRowsSchema, kViewsSchema, kMacrosSchema,
      kLogSchema, kLayoutsSchema,  kSequencesSchema,   kSchemasSchema, kCommentsSchema,    kRolesSchema};
  CatalogStatement query(&file_, "SELECT type, sql FROM sqlite_schema");
  for (;;) {
    TESSERA_ASSIGN(bool row, query.Step());
    if (!row) break;
    const bool index = query.Text(0) == "index" && query.IsNull(1);
    const std::string sql = query.Text(1) + ";\n";
    const auto has = [&](std::string_view schema) { return schema.find(sql) != std::string_view::npos; };
    if (!index && std::ranges::none_of(kSchemas, has))
      return file_.Corrupt("it has tables that are not this program's");
  }
  return State::kInitialised;
}

Status Catalog::Initialise() {
  CatalogContents contents;
  std::random_device random;
  for (uint8_t& byte : contents.database) byte = static_cast<uint8_t>(random());
  return Initialise(contents, {});
}

Status Catalog::Initialise(const CatalogContents& contents, const std::vector<std::vector<std::string>>& sketches) {
  CatalogTransaction transaction(&file_);
  TESSERA_TRY(BeginChange(&transaction, "BEGIN EXCLUSIVE"));
  TESSERA_TRY(file_.Execute(kSchema));
  TESSERA_TRY(file_.Execute(("PRAGMA application_id = " + std::to_string(kApplicationId)).c_str()));
  TESSERA_TRY(file_.Execute(("PRAGMA user_version = " + std::to_string(kUserVersion)).c_str()));
  CatalogStatement insert(&file_, "INSERT INTO database VALUES (1, ?, ?, ?, ?)");
  insert.BindBlob({reinterpret_cast<const char*>(contents.database.data()), contents.database.size()});
  insert.Bind(contents.next_table_id).Bind(contents.next_tablet_id);
  TESSERA_TRY(insert.Bind(DatabaseChecksum(contents)).Run());
  for (size_t t = 0; t < contents.tables.size(); ++t) {
    const TableRecord& table = *contents.tables[t];
    TESSERA_TRY(WriteTable(table, sketches[t]));
    TESSERA_TRY(InsertTablets(table, 0));
    TESSERA_TRY(WriteDeletedRows({}, table));
    TESSERA_TRY(WriteLayouts({}, table));
  }
  if (!contents.types.empty()) TESSERA_TRY(WriteTypes(contents.types));
  if (!contents.macros.empty()) TESSERA_TRY(WriteMacros(contents.macros));
  if (!contents.views.empty()) TESSERA_TRY(WriteViews(contents.views));
  TESSERA_TRY(WriteNames(contents.names));
  return transaction.Commit();
}

Result<bool> Catalog::Changed() {
  if (held_ != nullptr) return std::exchange(held_->has_changed, false);
  if (data_version_ == nullptr) {
    const int code =
        sqlite3_prepare_v3(file_.db(), "PRAGMA data_version", -1, SQLITE_PREPARE_PERSISTENT, &data_version_, nullptr);
    if (code != SQLITE_OK) return file_.Error(code);
  }
  const int code = sqlite3_step(data_version_);
  const int64_t version = code == SQLITE_ROW ? sqlite3_column_int64(data_version_, 0) : 0;
  sqlite3_reset(data_version_);
  if (code != SQLITE_ROW) return file_.Error(code);
  const bool changed = version != last_data_version_;
  last_data_version_ = sqlite_version_ = version;
  if (!changed && log_ != nullptr && generation_ != 0 && !is_open_ && !has_record_) {
    TESSERA_ASSIGN(has_record_, log_->NextOfOthers());
    if (has_record_) ++records_of_others_;
  }
  only_log_grew_ = !changed && has_record_;
  others_version_ = sqlite_version_ + records_of_others_;
  return changed || has_record_;
}

Result<CatalogContents> Catalog::Load(const CatalogContents* before) {
  if (held_ != nullptr) return held_->now.contents;
  if (before != nullptr && only_log_grew_) {
    CatalogContents contents = *before;
    TESSERA_TRY(ApplyRecords(&contents, true));
    return contents;
  }
  CatalogTransaction transaction(&file_);
  TESSERA_TRY(transaction.Begin("BEGIN", is_open_));
  TESSERA_ASSIGN(CatalogContents contents, LoadInTransaction(before));
  if (is_open_) {
    ForgetLogged(contents.log_generation);
  } else {
    TESSERA_TRY(LoadLog(before, &contents));
  }
  TESSERA_TRY(transaction.Commit());
  return contents;
}

Result<int64_t> Catalog::LoadGeneration() {
  TESSERA_ASSIGN(const bool has_log, HasTable("log"));
  if (!has_log) return int64_t{0};
  CatalogStatement query(&file_, "SELECT generation FROM log");
  TESSERA_ASSIGN(const bool row, query.Step());
  const int64_t generation = row ? query.Integer(0, 1, kGreatestId) : 0;
  if (!row || !query.wrong().empty()) return file_.Corrupt("the generation of its commit log is damaged");
  return generation;
}

Result<CatalogContents> Catalog::LoadInTransaction(const CatalogContents* before) {
  CatalogContents contents;
  uint64_t checksum = 0;
  {
    CatalogStatement query(&file_, "SELECT id, next_table_id, next_tablet_id, checksum FROM database");
    TESSERA_ASSIGN(bool row, query.Step());
    if (!row) return file_.Corrupt("the database's own row is missing");
    const std::string id = query.Blob(0);
    if (id.size() != contents.database.size()) return file_.Corrupt("the database's identifier is damaged");
    memcpy(contents.database.data(), id.data(), id.size());
    contents.next_table_id = query.Integer(1, 1, kGreatestId);
    contents.next_tablet_id = query.Integer(2, 1, kGreatestId);
    checksum = static_cast<uint64_t>(query.Integer(3));
    if (!query.wrong().empty()) return file_.Corrupt("the database's own row has " + query.wrong());
  }
  TESSERA_ASSIGN(contents.log_generation, LoadGeneration());
  // NOT INDEXED: a damaged index could hide rows that the table has.
  CatalogStatement query(
      &file_, "SELECT id, name, version, declared_tablet_rows, tablet_rows, checksum FROM tables NOT INDEXED");
  for (;;) {
    TESSERA_ASSIGN(bool row, query.Step());
    if (!row) break;
    TableRecord table;
    table.id = query.Integer(0, 1, contents.next_table_id - 1);
    table.schema.name = query.Text(1);
    table.version = query.Integer(2, 1, kGreatestId);
    table.schema.tablet_rows = static_cast<uint32_t>(query.Integer(3, 0, kGreatestTabletRows));
    table.tablet_rows = static_cast<uint32_t>(query.Integer(4, 0, kGreatestTabletRows));
    table.checksum = static_cast<uint64_t>(query.Integer(5));
    if (!query.wrong().empty()) return file_.Corrupt("a table has " + query.wrong());
    if (before != nullptr) {
      const auto known = before->Find(table.schema.name);
      if (known != nullptr && known->id == table.id && known->checksum == table.checksum) {
        contents.tables.push_back(known);
        continue;
      }
    }
    TESSERA_ASSIGN(auto loaded, LoadTable(std::move(table), contents.next_tablet_id));
    contents.tables.push_back(std::move(loaded));
  }
  std::sort(contents.tables.begin(), contents.tables.end(),
            [](const auto& a, const auto& b) { return a->schema.name < b->schema.name; });
  TESSERA_TRY(LoadNames(&contents));
  if (DatabaseChecksum(contents) != checksum) return file_.Corrupt("the checksum of the tables is wrong");
  // SQLite's indexes say so already, but they are the file's too.
  std::unordered_set<int64_t> tables, tablets;
  int64_t columns = 0, defaults = 0, constraints = 0, with_deleted = 0;
  for (size_t t = 0; t < contents.tables.size(); ++t) {
    const TableRecord& table = *contents.tables[t];
    const bool same_name = t > 0 && contents.tables[t - 1]->schema.name == table.schema.name;
    if (same_name || !tables.insert(table.id).second) return file_.Corrupt("two tables are one");
    for (const TabletRecord& tablet : table.tablets) {
      if (!tablets.insert(tablet.id).second) return file_.Corrupt("two tablets are one");
      with_deleted += tablet.live != nullptr ? 1 : 0;
    }
    columns += static_cast<int64_t>(table.schema.columns.size());
    for (const ColumnSchema& column : table.schema.columns) defaults += column.default_text ? 1 : 0;
    constraints += static_cast<int64_t>(ConstraintsOf(table).size());
  }
  // Rows of a table that is not there would become those of the next one that gets its number.
  TESSERA_ASSIGN(const int64_t all_columns, QueryInteger(&file_, "SELECT count(*) FROM columns NOT INDEXED"));
  TESSERA_ASSIGN(const int64_t all_tablets, QueryInteger(&file_, "SELECT count(*) FROM tablets NOT INDEXED"));
  // The other tables are made with their first entry.
  const auto count = [&](const char* table, const char* sql) -> Result<int64_t> {
    TESSERA_ASSIGN(const bool has_table, HasTable(table));
    return has_table ? QueryInteger(&file_, sql) : 0;
  };
  TESSERA_ASSIGN(const int64_t all_defaults, count("defaults", "SELECT count(*) FROM defaults NOT INDEXED"));
  TESSERA_ASSIGN(const int64_t all_constraints, count("constraints", "SELECT count(*) FROM constraints NOT INDEXED"));
  TESSERA_ASSIGN(const int64_t all_with_deleted,
                 count("deleted_rows", "SELECT count(*) FROM deleted_rows NOT INDEXED"));
  if (all_with_deleted != with_deleted || all_constraints != constraints || all_defaults != defaults ||
      all_columns != columns || all_tablets != static_cast<int64_t>(tablets.size())) {
    return file_.Corrupt("it has columns, defaults, constraints, tablets or deleted rows of a table that is missing");
  }
  TESSERA_TRY(CheckLayouts(contents));
  return contents;
}

Status Catalog::LoadColumns(TableRecord* table, const std::string& of_table) {
  std::vector<std::pair<int64_t, int>> key;  // (key position, column)
  CatalogStatement query(&file_,
                         "SELECT name, type, precision, scale, length, not_null, key_position, min, max, null_count, "
                         "distinct_count, encoded_bytes, position FROM columns WHERE table_id = ? ORDER BY position");
  query.Bind(table->id);
  for (;;) {
    TESSERA_ASSIGN(bool row, query.Step());
    if (!row) break;
    const int64_t number = static_cast<int64_t>(table->schema.columns.size());
    ColumnSchema column;
    column.name = query.Text(0);
    column.type = {static_cast<TypeId>(query.Integer(1, 0, UINT8_MAX)), static_cast<uint8_t>(query.Integer(2, 0, 38)),
                   static_cast<uint8_t>(query.Integer(3, 0, 38)), static_cast<int32_t>(query.Integer(4, 0, INT32_MAX))};
    column.not_null = query.Integer(5, 0, 1) != 0;
    if (!query.IsNull(6)) key.emplace_back(query.Integer(6), static_cast<int>(number));
    ColumnStatistics statistics;
    statistics.has_range = !query.IsNull(7) && !query.IsNull(8);
    if (statistics.has_range &&
        (!FromDecimal(query.Text(7), &statistics.min) || !FromDecimal(query.Text(8), &statistics.max))) {
      return file_.Corrupt("damaged statistics" + of_table);
    }
    statistics.null_count = static_cast<uint64_t>(query.Integer(9, 0));
    statistics.distinct = static_cast<uint64_t>(query.Integer(10, 0));
    statistics.encoded_bytes = static_cast<uint64_t>(query.Integer(11, 0));
    (void)query.Integer(12, number, number);
    if (!query.wrong().empty())
      return file_.Corrupt(query.wrong() + " of column " + std::to_string(number + 1) + of_table);
    table->schema.columns.push_back(std::move(column));
    table->statistics.push_back(statistics);
  }
  std::sort(key.begin(), key.end());
  for (size_t i = 0; i < key.size(); ++i) {
    const auto& [position, column] = key[i];
    if (position != static_cast<int64_t>(i) || !table->schema.columns[static_cast<size_t>(column)].not_null)
      return file_.Corrupt("a wrong primary key" + of_table);
    table->schema.primary_key.push_back(column);
  }
  return LoadDefaults(table, of_table);
}

Status Catalog::LoadDefaults(TableRecord* table, const std::string& of_table) {
  TESSERA_ASSIGN(const bool has_defaults, HasTable("defaults"));
  if (!has_defaults) return {};
  CatalogStatement query(&file_, "SELECT position, value FROM defaults WHERE table_id = ? ORDER BY position");
  query.Bind(table->id);
  for (;;) {
    TESSERA_ASSIGN(bool row, query.Step());
    if (!row) return {};
    const int64_t column = query.Integer(0, 0, static_cast<int64_t>(table->schema.columns.size()) - 1);
    if (!query.wrong().empty()) return file_.Corrupt(query.wrong() + " of a default" + of_table);
    table->schema.columns[static_cast<size_t>(column)].default_text = query.Text(1);
  }
}

Result<std::string> Catalog::LoadConstraints(TableRecord* table, const std::string& of_table) {
  std::string buckets;
  TESSERA_ASSIGN(const bool has_constraints, HasTable("constraints"));
  if (!has_constraints) return buckets;
  CatalogStatement query(&file_, "SELECT kind, name, value FROM constraints WHERE table_id = ? ORDER BY position");
  query.Bind(table->id);
  for (;;) {
    TESSERA_ASSIGN(bool row, query.Step());
    if (!row) return buckets;
    if (query.Text(0) == kBucketsRow) {
      buckets = query.Text(2);
      continue;
    }
    if (!AddConstraint({query.Text(0), query.Text(1), query.Text(2)}, &table->schema))
      return file_.Corrupt("a wrong constraint" + of_table);
  }
}

Result<std::shared_ptr<const TableRecord>> Catalog::LoadTable(TableRecord table, int64_t next_tablet_id) {
  const std::string of_table = " in table " + QuoteForMessage(table.schema.name);
  TESSERA_TRY(LoadColumns(&table, of_table));
  TESSERA_ASSIGN(const std::string buckets, LoadConstraints(&table, of_table));
  CatalogStatement query(
      &file_,
      "SELECT id, rows, file_bytes, header_checksum, position FROM tablets WHERE table_id = ? ORDER BY position");
  query.Bind(table.id);
  for (;;) {
    TESSERA_ASSIGN(bool row, query.Step());
    if (!row) break;
    const int64_t number = static_cast<int64_t>(table.tablets.size());
    TabletRecord tablet;
    tablet.id = query.Integer(0, 1, next_tablet_id - 1);
    tablet.rows = static_cast<uint32_t>(query.Integer(1, 1, table.tablet_rows));
    tablet.file_bytes = static_cast<uint64_t>(query.Integer(2, 1, kGreatestFileBytes));
    tablet.header_checksum = static_cast<uint64_t>(query.Integer(3));
    (void)query.Integer(4, number, number);
    if (!query.wrong().empty())
      return file_.Corrupt(query.wrong() + " of tablet " + std::to_string(number + 1) + of_table);
    table.tablets.push_back(tablet);
  }
  TESSERA_TRY(LoadDeletedRows(&table));
  TESSERA_TRY(LoadLayouts(&table, next_tablet_id));
  if (!SetBuckets(buckets, &table)) return file_.Corrupt("wrong buckets of tablets" + of_table);
  if (TableChecksum(table) != table.checksum) return file_.Corrupt("a wrong checksum" + of_table);
  if (Status status = CheckSchema(table.schema); !status.ok()) return file_.Corrupt(status.message());
  if (Status status = CheckStatistics(table); !status.ok()) return file_.Corrupt(status.message() + of_table);
  return std::make_shared<const TableRecord>(std::move(table));
}

Status Catalog::LoadDeletedRows(TableRecord* table) {
  TESSERA_ASSIGN(const bool has_deleted, HasTable("deleted_rows"));
  if (!has_deleted) return {};
  CatalogStatement query(&file_, "SELECT rows FROM deleted_rows WHERE tablet_id = ?");
  for (TabletRecord& tablet : table->tablets) {
    query.Bind(tablet.id);
    TESSERA_ASSIGN(const bool row, query.Step());
    if (row) {
      tablet.live = LiveRows::Unpack(tablet.rows, query.Blob(0));
      if (tablet.live == nullptr || !query.wrong().empty())
        return file_.Corrupt("damaged deleted rows in table " + QuoteForMessage(table->schema.name));
    }
    query.Reset();
  }
  return {};
}

Status Catalog::WriteDeletedRows(const TableRecord& before, const TableRecord& after) {
  TESSERA_ASSIGN(bool has_deleted, HasTable("deleted_rows"));
  std::unordered_map<int64_t, const LiveRows*> old;
  for (const TabletRecord& tablet : before.tablets) {
    if (tablet.live != nullptr) old[tablet.id] = tablet.live.get();
  }
  for (const TabletRecord& tablet : after.tablets) {
    const auto known = old.find(tablet.id);
    const bool same = known == old.end() ? tablet.live == nullptr : known->second == tablet.live.get();
    if (known != old.end() && tablet.live != nullptr) old.erase(known);
    if (same) continue;
    if (!std::exchange(has_deleted, true)) {
      TESSERA_TRY(file_.Execute(kDeletedRowsSchema));
      TESSERA_TRY(RaiseVersion(kVersionWithDeletedRows));
    }
    CatalogStatement insert(&file_, "INSERT OR REPLACE INTO deleted_rows VALUES (?, ?)");
    const std::string& packed = tablet.live->packed();
    TESSERA_TRY(insert.Bind(tablet.id).BindBlob(packed).Run());
  }
  for (const auto& [tablet, live] : old) {  // these tablets are gone
    CatalogStatement remove(&file_, "DELETE FROM deleted_rows WHERE tablet_id = ?");
    TESSERA_TRY(remove.Bind(tablet).Run());
  }
  return {};
}

Status Catalog::WriteTable(const TableRecord& table, const std::vector<std::string>& sketches) {
  CatalogStatement insert(&file_, "INSERT INTO tables VALUES (?, ?, ?, ?, ?, ?)");
  TESSERA_TRY(insert.Bind(table.id)
                  .Bind(std::string_view(table.schema.name))
                  .Bind(table.version)
                  .Bind(int64_t{table.schema.tablet_rows})
                  .Bind(int64_t{table.tablet_rows})
                  .Bind(table.checksum)
                  .Run());
  const auto is_short = [&](const TabletRecord& t) {
    return &t != &table.tablets.back() && t.rows < table.tablet_rows;
  };
  if (table.schema.distribute_by.empty() && std::ranges::any_of(table.tablets, is_short))
    TESSERA_TRY(RaiseVersion(kVersionWithShortTablets));
  CatalogStatement insert_column(&file_, "INSERT INTO columns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (size_t c = 0; c < table.schema.columns.size(); ++c) {
    const ColumnSchema& column = table.schema.columns[c];
    const ColumnStatistics& statistics = table.statistics[c];
    insert_column.Bind(table.id)
        .Bind(static_cast<int64_t>(c))
        .Bind(std::string_view(column.name))
        .Bind(static_cast<int64_t>(column.type.id))
        .Bind(int64_t{column.type.precision})
        .Bind(int64_t{column.type.scale})
        .Bind(int64_t{StoredLength(column.type)})
        .Bind(int64_t{column.not_null});
    const auto& key = table.schema.primary_key;
    const auto position = std::find(key.begin(), key.end(), static_cast<int>(c));
    if (position != key.end()) {
      insert_column.Bind(int64_t{position - key.begin()});
    } else {
      insert_column.BindNull();
    }
    if (statistics.has_range) {
      insert_column.Bind(std::string_view(ToDecimal(statistics.min))).Bind(std::string_view(ToDecimal(statistics.max)));
    } else {
      insert_column.BindNull().BindNull();
    }
    insert_column.Bind(statistics.null_count).Bind(statistics.distinct).Bind(statistics.encoded_bytes);
    if (c < sketches.size()) {
      insert_column.BindBlob(sketches[c]);
    } else {
      insert_column.BindNull();
    }
    TESSERA_TRY(insert_column.Run());
  }
  for (size_t c = 0; c < table.schema.columns.size(); ++c) {
    const ColumnSchema& column = table.schema.columns[c];
    if (!column.default_text) continue;
    TESSERA_ASSIGN(const bool has_defaults, HasTable("defaults"));
    if (!has_defaults) {
      TESSERA_TRY(file_.Execute(kDefaultsSchema));
      TESSERA_TRY(RaiseVersion(kVersionWithDefaults));
    }
    CatalogStatement insert_default(&file_, "INSERT INTO defaults VALUES (?, ?, ?)");
    TESSERA_TRY(
        insert_default.Bind(table.id).Bind(static_cast<int64_t>(c)).Bind(std::string_view(*column.default_text)).Run());
  }
  const std::vector<ConstraintRow> constraints = ConstraintsOf(table);
  if (constraints.empty()) return {};
  TESSERA_ASSIGN(const bool has_constraints, HasTable("constraints"));
  if (!has_constraints) {
    TESSERA_TRY(file_.Execute(kConstraintsSchema));
    TESSERA_TRY(RaiseVersion(kVersionWithConstraints));
  }
  TESSERA_TRY(RaiseVersionFor(table.schema, constraints));
  CatalogStatement insert_constraint(&file_, "INSERT INTO constraints VALUES (?, ?, ?, ?, ?)");
  for (size_t i = 0; i < constraints.size(); ++i) {
    insert_constraint.Bind(table.id).Bind(static_cast<int64_t>(i));
    for (const std::string* text : {&constraints[i].kind, &constraints[i].name, &constraints[i].value})
      insert_constraint.Bind(std::string_view(*text));
    TESSERA_TRY(insert_constraint.Run());
  }
  return {};
}

Status Catalog::RaiseVersionFor(const TableSchema& schema, const std::vector<ConstraintRow>& constraints) {
  const auto is_newer = [](const ConstraintRow& row) { return row.kind == "default" || row.kind == "enum"; };
  if (std::any_of(constraints.begin(), constraints.end(), is_newer)) TESSERA_TRY(RaiseVersion(kVersionWithTypes));
  if (!schema.cluster_by.empty()) TESSERA_TRY(RaiseVersion(kVersionWithClusters));
  if (!schema.distribute_by.empty()) TESSERA_TRY(RaiseVersion(kVersionWithBuckets));
  if (!schema.foreign_keys.empty() || schema.materialized) TESSERA_TRY(RaiseVersion(kVersionWithForeignKeys));
  if (std::ranges::count(constraints, "comment", &ConstraintRow::kind) > 0)
    TESSERA_TRY(RaiseVersion(kVersionWithComments));
  return {};
}

Status Catalog::RaiseVersion(int version) {
  TESSERA_ASSIGN(const int64_t before, QueryInteger(&file_, "PRAGMA user_version"));
  return before >= version ? Status::Ok() : file_.Execute(("PRAGMA user_version = " + std::to_string(version)).c_str());
}

Result<bool> Catalog::HasTable(const char* name) {
  CatalogStatement query(&file_, "SELECT 1 FROM sqlite_schema WHERE name = ?");
  return query.Bind(std::string_view(name)).Step();
}

Status Catalog::DeleteTablets(int64_t table_id) {
  TESSERA_TRY(DeleteLayouts(table_id));
  TESSERA_ASSIGN(const bool has_deleted, HasTable("deleted_rows"));
  if (has_deleted) {
    CatalogStatement deleted(&file_,
                             "DELETE FROM deleted_rows WHERE tablet_id IN (SELECT id FROM tablets WHERE table_id = ?)");
    TESSERA_TRY(deleted.Bind(table_id).Run());
  }
  CatalogStatement tablets(&file_, "DELETE FROM tablets WHERE table_id = ?");
  return tablets.Bind(table_id).Run();
}

Status Catalog::DeleteTable(int64_t table_id) {
  CatalogStatement columns(&file_, "DELETE FROM columns WHERE table_id = ?");
  TESSERA_TRY(columns.Bind(table_id).Run());
  TESSERA_ASSIGN(const bool has_defaults, HasTable("defaults"));
  if (has_defaults) {
    CatalogStatement defaults(&file_, "DELETE FROM defaults WHERE table_id = ?");
    TESSERA_TRY(defaults.Bind(table_id).Run());
  }
  TESSERA_ASSIGN(const bool has_constraints, HasTable("constraints"));
  if (has_constraints) {
    CatalogStatement constraints(&file_, "DELETE FROM constraints WHERE table_id = ?");
    TESSERA_TRY(constraints.Bind(table_id).Run());
  }
  CatalogStatement table(&file_, "DELETE FROM tables WHERE id = ?");
  return table.Bind(table_id).Run();
}

Result<uint64_t> Catalog::WriteDatabase(CatalogContents after) {
  after.log_generation = changing_generation_;
  const uint64_t checksum = DatabaseChecksum(after);
  CatalogStatement update(&file_, "UPDATE database SET next_table_id = ?, next_tablet_id = ?, checksum = ?");
  TESSERA_TRY(update.Bind(after.next_table_id).Bind(after.next_tablet_id).Bind(checksum).Run());
  return checksum;
}

Result<Durability> Catalog::Commit(CatalogTransaction* transaction, const CatalogContents& after) {
  TESSERA_ASSIGN(const uint64_t checksum, WriteDatabase(after));
  last_data_version_ = -1;  // SQLite reports only the transactions of other connections
  return transaction->CommitChange(checksum);
}

Result<Durability> Catalog::InsertTable(const CatalogContents& state, TableRecord table, const TableRecord* replaced,
                                        const std::vector<std::string>& sketches, int64_t next_tablet_id) {
  for (const ColumnSchema& column : table.schema.columns) {
    // Another process may have dropped it since the statement was compiled.
    if (column.type.id != TypeId::kEnum) continue;
    if (std::find(state.types.begin(), state.types.end(), EnumOf(column.type)) == state.types.end())
      return SqlError(ErrorKind::kUndefinedObject, "type \"" + column.type.ToString() + "\" does not exist");
  }
  TESSERA_TRY(CheckNewName(state, table.schema.name));
  table.version = 1;
  table.checksum = TableChecksum(table);
  CatalogContents after = state;
  after.next_table_id = table.id + 1;
  after.next_tablet_id = next_tablet_id;
  if (replaced != nullptr) std::erase_if(after.tables, [&](const auto& t) { return t->id == replaced->id; });
  after.tables.push_back(std::make_shared<const TableRecord>(table));
  CatalogTransaction transaction(&file_);
  TESSERA_TRY(BeginChange(&transaction, "BEGIN IMMEDIATE"));
  if (replaced != nullptr) {
    TESSERA_TRY(DeleteTablets(replaced->id));
    TESSERA_TRY(DeleteTable(replaced->id));
    TESSERA_TRY(TakeOverSequences(replaced->id, table, &after));
  }
  TESSERA_TRY(WriteTable(table, sketches));
  TESSERA_TRY(InsertTablets(table, 0));
  return Commit(&transaction, after);
}

Result<Durability> Catalog::DropTable(const CatalogContents& state, const TableRecord& table) {
  CatalogContents after = state;
  std::erase_if(after.tables, [&](const auto& t) { return t->id == table.id; });
  CatalogTransaction transaction(&file_);
  TESSERA_TRY(BeginChange(&transaction, "BEGIN IMMEDIATE"));
  TESSERA_TRY(DeleteTablets(table.id));
  TESSERA_TRY(DeleteTable(table.id));
  TESSERA_TRY(DropSequencesOf(table.id, &after));
  return Commit(&transaction, after);
}

Result<Durability> Catalog::Truncate(const CatalogContents& state, const std::set<int64_t>& tables) {
  CatalogContents after = state;
  CatalogTransaction transaction(&file_);
  TESSERA_TRY(BeginChange(&transaction, "BEGIN IMMEDIATE"));
  for (auto& table : after.tables) {
    if (!tables.contains(table->id)) continue;
    TableRecord before = *table;
    before.version = std::max(before.version, least_version_);
    table = std::make_shared<const TableRecord>(Emptied(before));
    TESSERA_TRY(DeleteTablets(table->id));
    TESSERA_TRY(DeleteTable(table->id));
    TESSERA_TRY(WriteTable(*table, {}));
  }
  return Commit(&transaction, after);
}

/// The tablets of the table from number `first` on.
Status Catalog::InsertTablets(const TableRecord& table, size_t first) {
  CatalogStatement insert(&file_, "INSERT INTO tablets VALUES (?, ?, ?, ?, ?, ?)");
  for (size_t t = first; t < table.tablets.size(); ++t) {
    const TabletRecord& tablet = table.tablets[t];
    TESSERA_TRY(insert.Bind(tablet.id)
                    .Bind(table.id)
                    .Bind(static_cast<int64_t>(t))
                    .Bind(int64_t{tablet.rows})
                    .Bind(tablet.file_bytes)
                    .Bind(tablet.header_checksum)
                    .Run());
  }
  return {};
}

void Catalog::SetVersion(const TableRecord& before, TableRecord* after) const {
  after->version = std::max(before.version, least_version_) + 1;
  after->checksum = TableChecksum(*after);
}

Status Catalog::WriteChange(const TableRecord& before, const TableRecord& after,
                            const std::vector<std::string>& sketches) {
  TESSERA_TRY(DeleteTable(after.id));
  TESSERA_TRY(WriteTable(after, sketches));
  // Tablets before the first that differs stay: an append to a large table writes few rows.
  size_t same = 0;
  while (same < before.tablets.size() && same < after.tablets.size() &&
         before.tablets[same].id == after.tablets[same].id) {
    ++same;
  }
  CatalogStatement remove(&file_, "DELETE FROM tablets WHERE table_id = ? AND position >= ?");
  TESSERA_TRY(remove.Bind(after.id).Bind(static_cast<int64_t>(same)).Run());
  TESSERA_TRY(InsertTablets(after, same));
  TESSERA_TRY(WriteDeletedRows(before, after));
  return WriteLayouts(before, after);
}

Result<Durability> Catalog::UpdateTable(const CatalogContents& state, const TableRecord& before, TableRecord after,
                                        const std::vector<std::string>& sketches, int64_t next_tablet_id,
                                        bool is_of_rows, CatalogContents* made) {
  SetVersion(before, &after);
  CatalogContents contents = state;
  contents.next_tablet_id = next_tablet_id;
  for (auto& table : contents.tables) {
    if (table->id == after.id) table = std::make_shared<const TableRecord>(after);
  }
  if (held_ != nullptr && is_of_rows) {
    held_->now.sketches[after.id] = sketches;
    held_->now.contents = contents;
    *made = std::move(contents);
    return Durability::kDurable;
  }
  const bool starts_log = is_of_rows && PrepareLog(state.database);
  CatalogTransaction transaction(&file_);
  TESSERA_TRY(BeginChange(&transaction, "BEGIN IMMEDIATE"));
  TESSERA_TRY(WriteChange(before, after, sketches));
  TESSERA_TRY(DropSequencesWithoutColumn(after, &contents));
  if (starts_log) TESSERA_TRY(WriteFirstGeneration());
  const Result<Durability> committed = Commit(&transaction, contents);
  if (committed.ok() && *committed == Durability::kDurable) {
    contents.log_generation = changing_generation_;
    if (!is_open_) ForgetLogged(changing_generation_);
    *made = std::move(contents);
    last_data_version_ = sqlite_version_;
  }
  return committed;
}

Result<std::vector<std::string>> Catalog::Sketches(const TableRecord& table) {
  if (held_ != nullptr) {
    if (const auto held = held_->now.sketches.find(table.id); held != held_->now.sketches.end()) return held->second;
  }
  if (const auto logged = logged_.find(table.id); logged != logged_.end()) return logged->second.sketches;
  std::vector<std::string> sketches;
  CatalogStatement query(&file_, "SELECT sketch FROM columns WHERE table_id = ? ORDER BY position");
  query.Bind(table.id);
  for (;;) {
    TESSERA_ASSIGN(bool row, query.Step());
    if (!row) break;
    sketches.push_back(query.IsNull(0) ? std::string() : query.Blob(0));
  }
  if (!query.wrong().empty()) return file_.Corrupt(query.wrong());
  if (sketches.size() != table.schema.columns.size()) return file_.Corrupt("a column is missing");
  return sketches;
}

}  // namespace tessera
