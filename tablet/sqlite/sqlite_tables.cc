#include "tablet/sqlite/sqlite_tables.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "base/lower_case.h"
#include "tablet/sqlite/sqlite_connection.h"
#include "tablet/values/utf8.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

/// Of a row in a file: a guess where nothing is known.
constexpr double kBytesOfRow = 64;

/// DECIMAL(p, s) and NUMERIC(p, s); nothing: it says no digits, or such as there are none of.
std::optional<SqlType> DecimalOf(std::string_view arguments) {
  int digits[2] = {0, 0};
  size_t count = 0;
  const char* p = arguments.data();
  const char* const end = p + arguments.size();
  while (p != end && count < 2) {
    while (p != end && (*p == ' ' || *p == ',')) ++p;
    const auto [rest, error] = std::from_chars(p, end, digits[count]);
    if (error != std::errc()) return std::nullopt;
    ++count;
    p = rest;
  }
  const auto [precision, scale] = digits;
  const bool good = count > 0 && precision >= 1 && precision <= 38 && scale >= 0 && scale <= precision;
  return good ? std::optional(SqlType::Decimal(precision, scale)) : std::nullopt;
}

/// The names by which SQLite itself calls the number of a row, unless a column has that name.
std::string RowidName(const std::vector<std::string>& columns) {
  for (const char* const name : {"rowid", "_rowid_", "oid"}) {
    if (std::ranges::none_of(columns, [&](const std::string& c) { return LowerCase(c) == name; })) return name;
  }
  return "";
}

/// Whether its rows have numbers: a view's, and those of WITHOUT ROWID, have none.
bool HasRowid(SqliteConnection* connection, const std::string& type, const SqliteTable& table) {
  if (type != "table" || table.rowid.empty()) return false;
  SqliteQuery query;
  const std::string sql = "SELECT max(" + table.rowid + ") FROM " + SqliteName(table.name);
  return query.Prepare(connection, sql).ok();
}

/// Rows that a table has at most by its greatest number, and at most in a file of this size.
Result<double> GuessRows(SqliteConnection* connection, const SqliteTable& table, uint64_t bytes) {
  const double most = std::max(1.0, static_cast<double>(bytes) / kBytesOfRow);
  if (table.rowid.empty()) return most;
  SqliteQuery query;
  TESSERA_TRY(query.Prepare(connection, "SELECT max(" + table.rowid + ") FROM " + SqliteName(table.name)));
  TESSERA_ASSIGN(const bool any, query.Step());
  return any ? std::clamp(static_cast<double>(query.Integer(0)), 0.0, most) : 0.0;
}

/// The columns of a table or view. Errors: a view reads what is not there.
Status DescribeColumns(SqliteConnection* connection, bool all_text, SqliteTable* table) {
  SqliteQuery query;
  TESSERA_TRY(query.Prepare(connection, "SELECT name, type, hidden FROM pragma_table_xinfo(?1)"));
  query.Bind(1, table->name);
  std::set<std::string> taken;
  for (;;) {
    TESSERA_ASSIGN(const bool any, query.Step());
    if (!any) break;
    if (query.Integer(2) == 1) continue;  // of a virtual table: it is no part of *
    table->columns.emplace_back(query.Bytes(0));
    const std::string& name = table->columns.back();
    if (CheckText(name, SqlType::Text()) != ParseError::kNone)
      return SqlError("the name of a column is no text: " + QuoteForMessage(name));
    const std::string lower = name.empty() ? "column" : LowerCase(name);
    std::string unique = lower;
    for (int n = 1; !taken.insert(unique).second; ++n) unique = lower + "_" + std::to_string(n);
    table->schema.columns.push_back({unique, all_text ? SqlType::Text() : TypeOfDeclared(query.Bytes(1))});
  }
  if (table->columns.empty()) return SqlError("table " + QuoteForMessage(table->name) + " has no columns");
  table->rowid = RowidName(table->columns);
  return {};
}

Status DescribeOne(SqliteConnection* connection, const std::string& type, bool all_text, uint64_t bytes,
                   SqliteTable* table) {
  TESSERA_TRY(DescribeColumns(connection, all_text, table));
  if (!HasRowid(connection, type, *table)) table->rowid.clear();
  TESSERA_ASSIGN(table->rows, GuessRows(connection, *table, bytes));
  return {};
}

/// Name and kind of each, in the order of their names.
Result<std::vector<std::pair<std::string, std::string>>> ListTables(SqliteConnection* connection) {
  SqliteQuery query;
  TESSERA_TRY(query.Prepare(connection,
                            "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND "
                            "name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY lower(name)"));
  std::vector<std::pair<std::string, std::string>> tables;
  for (;;) {
    TESSERA_ASSIGN(const bool any, query.Step());
    if (!any) return tables;
    tables.emplace_back(query.Bytes(0), query.Bytes(1));
  }
}

Status NoSuchTable(const std::string& name, const std::string& table,
                   const std::vector<std::pair<std::string, std::string>>& tables) {
  constexpr size_t kMostNamed = 20;
  std::string hint = tables.empty() ? "It has no tables." : "It has ";
  for (size_t i = 0; i < std::min(tables.size(), kMostNamed); ++i) hint += (i > 0 ? ", " : "") + tables[i].first;
  if (tables.size() > kMostNamed) hint += " and " + std::to_string(tables.size() - kMostNamed) + " more";
  if (!tables.empty()) hint += ".";
  if (table.empty()) {
    return SqlError(QuoteForMessage(name) + " is an SQLite database: FROM takes one of its tables", -1,
                    "Write FROM 'FILE'.table, or ATTACH 'FILE' AS name. " + hint);
  }
  return SqlError(ErrorKind::kUndefinedTable,
                  "SQLite database " + QuoteForMessage(name) + " has no table " + QuoteForMessage(table), -1, hint);
}

Result<uint64_t> BytesOf(const std::string& path) {
  TESSERA_ASSIGN(const FileIdentity file, IdentifySqlite(path));
  return file.bytes;
}

}  // namespace

bool IsSqlite(std::string_view start) { return start.starts_with(std::string_view("SQLite format 3\0", 16)); }

Result<FileIdentity> IdentifySqlite(const std::string& path) {
  TESSERA_ASSIGN(FileIdentity file, IdentifyFile(path));
  struct stat log;
  // (To open a database may make an empty log.)
  if (stat((path + "-wal").c_str(), &log) != 0 || log.st_size == 0) return file;
  file.bytes += static_cast<uint64_t>(log.st_size);
  file.written = std::max(file.written, int64_t{log.st_mtim.tv_sec} * 1'000'000'000 + log.st_mtim.tv_nsec);
  return file;
}

SqlType TypeOfDeclared(std::string_view declared) {
  const size_t open = std::min(declared.find('('), declared.size());
  const size_t close = std::min(declared.find(')', open), declared.size());
  const std::string all = LowerCase(declared);
  const std::string base(TrimBlanks(std::string_view(all).substr(0, open)));
  const auto has = [&](const char* part) { return all.find(part) != std::string::npos; };
  if (base == "boolean" || base == "bool") return SqlType::Of(TypeId::kBoolean);
  if (base == "date") return SqlType::Of(TypeId::kDate);
  if (base == "time") return SqlType::Of(TypeId::kTime);
  if (base == "timestamptz" || has("with time zone")) return SqlType::Of(TypeId::kTimestampTz);
  if (base.starts_with("timestamp") || base == "datetime") return SqlType::Of(TypeId::kTimestamp);
  if (base == "decimal" || base == "numeric" || base == "dec") {
    const std::string_view digits = open < close ? declared.substr(open + 1, close - open - 1) : std::string_view();
    return DecimalOf(digits).value_or(SqlType::Of(TypeId::kDouble));
  }
  // The rules of affinity, in SQLite's order.
  if (has("int")) return SqlType::Of(TypeId::kBigint);
  if (has("char") || has("clob") || has("text")) return SqlType::Text();
  if (has("blob")) return SqlType::Of(TypeId::kBytea);
  if (has("real") || has("floa") || has("doub")) return SqlType::Of(TypeId::kDouble);
  return SqlType::Text();
}

Result<std::vector<SqliteTable>> DescribeSqliteTables(const std::string& path, const std::string& name) {
  TESSERA_ASSIGN(const uint64_t bytes, BytesOf(path));
  TESSERA_ASSIGN(const auto connection, SqliteConnection::Open(path, name, nullptr));
  TESSERA_ASSIGN(const auto list, ListTables(connection.get()));
  std::vector<SqliteTable> tables;
  for (const auto& [table_name, type] : list) {
    SqliteTable table;
    table.name = table_name;
    const Status status = DescribeOne(connection.get(), type, false, bytes, &table);
    // A view may read what is gone; the others can be read all the same.
    if (status.ok()) tables.push_back(std::move(table));
    if (!status.ok() && status.code() != ErrorCode::kSql) return status;
  }
  return tables;
}

Result<SqliteTable> DescribeSqliteTable(const std::string& path, const std::string& name, const std::string& table,
                                        bool all_text) {
  TESSERA_ASSIGN(const uint64_t bytes, BytesOf(path));
  TESSERA_ASSIGN(const auto connection, SqliteConnection::Open(path, name, nullptr));
  TESSERA_ASSIGN(const auto list, ListTables(connection.get()));
  const auto found = std::ranges::find_if(list, [&](const auto& t) { return LowerCase(t.first) == LowerCase(table); });
  if (found == list.end()) return NoSuchTable(name, table, list);
  SqliteTable out;
  out.name = found->first;
  const Status status = DescribeOne(connection.get(), found->second, all_text, bytes, &out);
  if (status.ok()) return out;
  const std::string said = status.message(), file = QuoteForMessage(name);
  return Status(status.kind(), said.starts_with(file) ? said : file + ": " + said, status.hint());
}

Result<uint64_t> CountSqliteRows(const std::string& path, const std::string& name, const std::string& table,
                                 const std::atomic<bool>* cancel) {
  TESSERA_ASSIGN(const auto connection, SqliteConnection::Open(path, name, cancel));
  SqliteQuery query;
  TESSERA_TRY(query.Prepare(connection.get(), "SELECT count(*) FROM " + SqliteName(table)));
  TESSERA_TRY(query.Step().status());
  return static_cast<uint64_t>(query.Integer(0));
}

}  // namespace tessera
