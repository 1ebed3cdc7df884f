#include "tablet/sqlite/sqlite_reader.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "tablet/sqlite/sqlite_connection.h"
#include "tablet/sqlite/sqlite_tables.h"
#include "tablet/sqlite/sqlite_values.h"
#include "tablet/values/null_column.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// Rows of a share: a few milliseconds of work.
constexpr int64_t kShareRows = 32768;

/// What the shares of a table have in common.
struct SqliteSource {
  std::string path, name;
  std::string quoted;  ///< the table, for messages
  std::string from;    ///< " FROM ..."
  std::string rowid;   ///< "": there is none
  std::string list;    ///< the columns that are read, with a comma before each
  TableSchema schema;
  std::vector<int> columns;  ///< of the schema: those that are read
  const TimeZone* zone = nullptr;
  const std::atomic<bool>* cancel = nullptr;
  std::mutex mutex;
  std::vector<std::unique_ptr<SqliteConnection>> idle;

  Result<std::unique_ptr<SqliteConnection>> Take() {
    {
      std::lock_guard lock(mutex);
      if (!idle.empty()) {
        std::unique_ptr<SqliteConnection> taken = std::move(idle.back());
        idle.pop_back();
        return taken;
      }
    }
    return SqliteConnection::Open(path, name, cancel);
  }
  void GiveBack(std::unique_ptr<SqliteConnection> connection) {
    std::lock_guard lock(mutex);
    idle.push_back(std::move(connection));
  }
};

void Fail(const Status& status, std::string column, FileRows* rows) {
  FileError& error = rows->error.emplace();
  error.kind = status.kind();
  error.column = std::move(column);
  error.message = status.message();
  error.hint = status.hint();
}

/// The rows that `query` gives, `most` of them at most. The value before those of the columns is the row's number, or that
/// of the row in what is read, from `first` on.
void ReadRows(const SqliteSource& source, SqliteQuery* query, int64_t most, int64_t first, FileRows* rows) {
  std::vector<ColumnVector>& columns = rows->batch.columns;
  columns.resize(source.schema.columns.size());
  for (size_t c = 0; c < columns.size(); ++c) columns[c].type = source.schema.columns[c].type;
  for (; rows->batch.rows < static_cast<size_t>(most); ++rows->batch.rows) {
    const Result<bool> any = query->Step();
    if (!any.ok()) return Fail(any.status(), "", rows);
    if (!*any) break;
    for (size_t i = 0; i < source.columns.size(); ++i) {
      ColumnVector& column = columns[static_cast<size_t>(source.columns[i])];
      const Status status = AppendStored(*query, static_cast<int>(i) + 1, source.zone, &column);
      if (status.ok()) continue;
      const int64_t number = source.rowid.empty() ? first + static_cast<int64_t>(rows->batch.rows) : query->Integer(0);
      Fail(
          {status.kind(), (source.rowid.empty() ? "row " : "rowid ") + std::to_string(number) + ": " + status.message(),
           "sqlite_scan('FILE', 'TABLE', all_varchar = true) reads all columns as texts."},
          source.schema.columns[static_cast<size_t>(source.columns[i])].name, rows);
      return;
    }
  }
  std::vector<bool> is_read(columns.size());
  for (const int c : source.columns) is_read[static_cast<size_t>(c)] = true;
  for (size_t c = 0; c < columns.size(); ++c) {
    if (!is_read[c]) SetNull(rows->batch.rows, &columns[c]);
  }
}

/// The rows with numbers above `low` up to `high`.
class RangeShare final : public FileShare {
 public:
  RangeShare(SqliteSource* source, int64_t low, int64_t high, uint64_t bytes)
      : source_(*source), low_(low), high_(high), bytes_(bytes) {}

  FileRows Read() const override {
    FileRows rows;
    const Status status = ReadInto(&rows);
    if (!status.ok()) Fail(status, "", &rows);
    if (rows.error) rows.batch = {};
    return rows;
  }
  uint64_t bytes() const override { return bytes_; }
  const std::string& path() const override { return source_.name; }
  uint64_t first_line() const override { return 0; }
  std::string place() const override { return "table " + source_.quoted; }

 private:
  Status ReadInto(FileRows* rows) const {
    TESSERA_ASSIGN(std::unique_ptr<SqliteConnection> connection, source_.Take());
    {
      SqliteQuery query;
      TESSERA_TRY(query.Prepare(connection.get(), "SELECT " + source_.rowid + source_.list + source_.from + " WHERE " +
                                                      source_.rowid + " >= ?1 AND " + source_.rowid +
                                                      " <= ?2 ORDER BY " + source_.rowid));
      query.Bind(1, low_);
      query.Bind(2, high_);
      ReadRows(source_, &query, INT64_MAX, 0, rows);
    }
    source_.GiveBack(std::move(connection));
    return {};
  }

  SqliteSource& source_;
  const int64_t low_, high_;
  const uint64_t bytes_;
};

/// Rows that have been read already.
class ReadShare final : public FileShare {
 public:
  ReadShare(const SqliteSource* source, FileRows rows) : source_(*source), rows_(std::move(rows)) {}

  FileRows Read() const override { return std::move(rows_); }
  uint64_t bytes() const override { return 0; }
  const std::string& path() const override { return source_.name; }
  uint64_t first_line() const override { return 0; }
  std::string place() const override { return "table " + source_.quoted; }

 private:
  const SqliteSource& source_;
  mutable FileRows rows_;
};

class SqliteReader final : public FileReader {
 public:
  const TableSchema& schema() const override { return source_.schema; }
  /// (How much of the file the table is, is not known.)
  uint64_t bytes() const override { return source_.rowid.empty() ? 0 : bytes_; }

  Status Next(std::unique_ptr<FileShare>* share) override {
    share->reset();
    if (at_end_) return {};
    return source_.rowid.empty() ? NextRows(share) : NextRange(share);
  }

  Status Open(const std::string& path, const std::string& name, const std::string& table, const TableSchema& schema,
              const CopyFromOptions& options) {
    TESSERA_ASSIGN(const SqliteTable found, DescribeSqliteTable(path, name, table, false));
    source_.path = path;
    source_.name = name;
    source_.quoted = "\"" + found.name + "\"";
    source_.from = " FROM " + SqliteName(found.name);
    source_.rowid = found.rowid;
    source_.schema = schema;
    source_.zone = options.zone;
    source_.cancel = options.cancel;
    if (found.columns.size() != options.columns.size())
      return {ErrorCode::kIo, QuoteForMessage(name) + " has changed while it was read", "Run the statement again."};
    for (size_t i = 0; i < found.columns.size(); ++i) {
      const int column = options.columns[i];
      if (!options.read.empty() && options.read[static_cast<size_t>(column)] == 0) continue;
      source_.columns.push_back(column);
      source_.list += ", " + SqliteName(found.columns[i]);
    }
    TESSERA_ASSIGN(connection_, SqliteConnection::Open(path, name, options.cancel));
    // One state of the file, from here on.
    TESSERA_TRY(connection_->Execute("BEGIN; SELECT count(*) FROM sqlite_master"));
    TESSERA_ASSIGN(const FileIdentity file, IdentifySqlite(path));
    bytes_ = file.bytes;
    return source_.rowid.empty() ? PrepareRows() : PrepareRanges();
  }

 private:
  Status PrepareRows() { return rows_.Prepare(connection_.get(), "SELECT 0" + source_.list + source_.from); }

  Status NextRows(std::unique_ptr<FileShare>* share) {
    FileRows rows;
    ReadRows(source_, &rows_, kShareRows, given_ + 1, &rows);
    at_end_ = rows.error || rows.batch.rows < static_cast<size_t>(kShareRows);
    given_ += static_cast<int64_t>(rows.batch.rows);
    if (rows.error) rows.batch = {};
    if (rows.error || rows.batch.rows > 0) *share = std::make_unique<ReadShare>(&source_, std::move(rows));
    return {};
  }

  Status PrepareRanges() {
    SqliteQuery ends;
    TESSERA_TRY(ends.Prepare(connection_.get(), "SELECT (SELECT min(" + source_.rowid + ")" + source_.from +
                                                    "), (SELECT max(" + source_.rowid + ")" + source_.from + ")"));
    TESSERA_ASSIGN(const bool any, ends.Step());
    at_end_ = !any || ends.TypeOf(0) == SQLITE_NULL;
    next_ = first_ = ends.Integer(0);
    last_ = ends.Integer(1);
    return range_end_.Prepare(connection_.get(), "SELECT " + source_.rowid + source_.from + " WHERE " + source_.rowid +
                                                     " >= ?1 ORDER BY " + source_.rowid + " LIMIT 1 OFFSET ?2");
  }

  /// Where a share ends is looked for, for numbers may have gaps of any size. It takes a twentieth of the time of reading.
  Status NextRange(std::unique_ptr<FileShare>* share) {
    range_end_.Reset();
    range_end_.Bind(1, next_);
    range_end_.Bind(2, kShareRows - 1);
    TESSERA_ASSIGN(const bool any, range_end_.Step());
    const int64_t high = any ? range_end_.Integer(0) : last_;
    const auto all = static_cast<double>(last_) - static_cast<double>(first_) + 1;
    const auto part = static_cast<double>(high) - static_cast<double>(next_) + 1;
    const auto bytes = static_cast<uint64_t>(static_cast<double>(bytes_) * std::clamp(part / all, 0.0, 1.0));
    *share = std::make_unique<RangeShare>(&source_, next_, high, std::max<uint64_t>(bytes, 1));
    at_end_ = high >= last_;
    if (!at_end_) next_ = high + 1;
    return {};
  }

  SqliteSource source_;
  std::unique_ptr<SqliteConnection> connection_;  ///< keeps the file as it is; before its queries
  SqliteQuery rows_;                              ///< of a table without numbers
  SqliteQuery range_end_;
  uint64_t bytes_ = 0;
  int64_t first_ = 0, last_ = 0, next_ = 0, given_ = 0;
  bool at_end_ = false;
};

}  // namespace

Result<std::unique_ptr<FileReader>> OpenSqliteReader(const std::string& path, const std::string& name,
                                                     const std::string& table, const TableSchema& schema,
                                                     const CopyFromOptions& options) {
  auto reader = std::make_unique<SqliteReader>();
  TESSERA_TRY(reader->Open(path, name, table, schema, options));
  return std::unique_ptr<FileReader>(std::move(reader));
}

}  // namespace tessera
