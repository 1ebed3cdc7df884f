// Every kind of error, by its SQLSTATE: a statement that makes it. What a program that speaks to a session decides by.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/exception_status.h"
#include "session/session.h"
#include "tests/session/session_answer.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct Row {
  ErrorKind kind;
  const char* name;
  const char* sqlstate;
};
constexpr Row kRows[] = {
#define TESSERA_ERROR_KIND(name, sqlstate, code, what) {ErrorKind::k##name, #name, sqlstate},
#include "base/error_kinds.def"
};

/// What no statement makes here: another engine's kinds (x / 0 is NULL, casts decide between functions), a GPU's error, and
/// bugs.
const std::set<std::string> kNoStatement = {"AmbiguousFunction", "DivisionByZero",   "Constraint",
                                            "InvalidEncoding",   "Device",           "Internal",
                                            "UndefinedPortal",   "ProtocolViolation"};

class SqlStates : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "sqlstates-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    session_ = Open(OpenMode::kReadWrite);
  }
  void TearDown() override {
    session_.reset();
    fs::remove_all(folder_);
  }

  std::unique_ptr<Session> Open(OpenMode mode, bool files = true) const {
    SessionOptions options;
    options.files = files;
    options.directory = folder_ + "/db";
    options.mode = mode;
    options.device = DeviceChoice::kHost;
    options.threads = 1;
    Result<std::unique_ptr<Session>> session = Session::Open(options);
    EXPECT_TRUE(session.ok());
    return std::move(*session);
  }

  static Status Run(Session* session, const std::string& sql) {
    const auto writer = MakeResultText(
        {}, [](std::string_view) { return Status::Ok(); }, [](const std::string&) {});
    return session->Execute(sql, writer.get());
  }
  void Do(const std::string& sql) {
    const Status status = Run(session_.get(), sql);
    EXPECT_TRUE(status.ok()) << sql << ": " << (status.ok() ? "" : status.message());
  }
  /// The statement fails with that kind.
  void Fails(const std::string& name, const Status& status, const std::string& sql) {
    for (const Row& row : kRows) {
      if (row.name != name) continue;
      made_.insert(name);
      ASSERT_FALSE(status.ok()) << sql;
      EXPECT_STREQ(status.sqlstate(), row.sqlstate) << name << ": " << sql << ": " << status.message();
      return;
    }
    ADD_FAILURE() << "there is no kind " << name;
  }
  void Fails(const std::string& name, const std::string& sql) { Fails(name, Run(session_.get(), sql), sql); }

  void MakeTables();
  void FailInTransactions();
  void FailWithFiles();

  std::string folder_;
  std::unique_ptr<Session> session_;
  std::set<std::string> made_;
};

void SqlStates::MakeTables() {
  for (const char* sql : {"CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER NOT NULL CHECK (v < 100), s VARCHAR(3))",
                          "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')",
                          "CREATE TABLE c (k INTEGER REFERENCES t, g INTEGER GENERATED ALWAYS AS (k + 1) STORED)",
                          "INSERT INTO c (k) VALUES (1)", "CREATE VIEW w AS SELECT k FROM t",
                          "CREATE TYPE e AS ENUM ('x')", "CREATE MACRO m(a) AS a + 1", "PREPARE p AS SELECT 1",
                          "CREATE MATERIALIZED VIEW later AS SELECT k FROM t WITH NO DATA"})
    Do(sql);
}

void SqlStates::FailInTransactions() {
  Fails("NoActiveTransaction", "SAVEPOINT s");
  Do("BEGIN");
  Fails("InvalidSavepoint", "ROLLBACK TO nowhere");
  Fails("InFailedTransaction", "SELECT 1");
  Do("ROLLBACK");
  Do("BEGIN");
  Fails("ActiveTransaction", "VACUUM t");
  Do("ROLLBACK");
  Do("BEGIN READ ONLY");
  Fails("ReadOnlyTransaction", "DELETE FROM c");
  Do("ROLLBACK");
  Do("SET idle_in_transaction_session_timeout = 20");
  Do("BEGIN");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  Fails("IdleInTransaction", "SELECT 1");
  Do("ROLLBACK");
  Do("SET idle_in_transaction_session_timeout = 0");
  const std::unique_ptr<Session> other = Open(OpenMode::kReadWrite);
  Do("BEGIN");
  Do("SELECT k FROM t");
  EXPECT_TRUE(Run(other.get(), "UPDATE t SET v = 11 WHERE k = 1").ok());
  Fails("SerializationFailure", "UPDATE t SET v = 12 WHERE k = 1");
  Do("ROLLBACK");
  Do("SET lock_timeout = 20");
  // A program that holds the catalog itself.
  sqlite3* catalog = nullptr;
  ASSERT_EQ(sqlite3_open((folder_ + "/db/catalog.sqlite").c_str(), &catalog), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(catalog, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  Fails("LockNotAvailable", "DELETE FROM c");
  sqlite3_close(catalog);
}

void SqlStates::FailWithFiles() {
  std::ofstream(folder_ + "/short.csv") << "1,2\n";
  Fails("BadCopyFormat", "COPY t FROM '" + folder_ + "/short.csv'");
  Fails("UndefinedFile", "COPY t FROM '" + folder_ + "/nowhere.csv'");
  Fails("Io", "COPY t FROM '" + folder_ + "'");
  Fails("DiskFull", "COPY (SELECT i FROM generate_series(1, 1000000) AS i) TO '/dev/full'");
  session_ = Open(OpenMode::kReadWrite, false);
  const std::string file = "'" + folder_ + "/short.csv'", folder = "'" + folder_ + "/export'";
  for (const std::string& sql :
       {"COPY t FROM " + file, "COPY t TO " + file, "SELECT * FROM " + file, "SELECT * FROM read_csv(" + file + ")",
        "CREATE TABLE of_file AS SELECT * FROM " + file, "EXPORT DATABASE " + folder, "IMPORT DATABASE " + folder,
        "VACUUM INTO " + folder})
    Fails("InsufficientPrivilege", sql);
  EXPECT_FALSE(fs::exists(folder_ + "/export"));
  for (const auto& entry : fs::directory_iterator(folder_ + "/db")) {
    if (entry.path().filename().string().starts_with("tablet-")) fs::resize_file(entry.path(), 10);
  }
  session_ = Open(OpenMode::kReadWrite);
  Fails("Corrupt", "SELECT sum(k + v) FROM t");
}

TEST_F(SqlStates, EveryKindHasAStatement) {
  MakeTables();
  std::string many = "CREATE TABLE z (c0 INTEGER";
  for (int i = 1; i < 5000; ++i) many += ", c" + std::to_string(i) + " INTEGER";
  std::string deep = "1";
  for (int i = 0; i < 2000; ++i) deep = "abs(" + deep + ")";
  const std::vector<std::pair<const char*, std::string>> statements = {
      {"Statement", "SELECT * FROM tessera_chunks(1)"},
      {"Syntax", "SELEC 1"},
      {"Syntax", "SELECT 1 +"},
      {"Syntax", "UPDATE t SET v = 1, v = 2"},
      {"UndefinedTable", "SELECT * FROM nowhere"},
      {"UndefinedTable", "SELECT nowhere.k FROM t"},
      {"UndefinedTable", "DROP TABLE nowhere"},
      {"UndefinedColumn", "SELECT nothing FROM t"},
      {"UndefinedColumn", "UPDATE t SET nothing = 1"},
      {"UndefinedFunction", "SELECT nothing(1)"},
      {"UndefinedFunction", "SELECT TRUE + DATE '2024-01-01'"},
      {"UndefinedObject", "SELECT 1::nothing"},
      {"UndefinedObject", "ALTER TABLE t DROP CONSTRAINT nothing"},
      {"UndefinedParameter", "SELECT $1"},
      {"UndefinedPrepared", "EXECUTE nothing"},
      {"AmbiguousColumn", "SELECT k FROM t, c"},
      {"DuplicateTable", "CREATE TABLE t (a INTEGER)"},
      {"DuplicateColumn", "CREATE TABLE z (a INTEGER, a INTEGER)"},
      {"DuplicateAlias", "SELECT 1 FROM t, t"},
      {"DuplicateObject", "CREATE TYPE e AS ENUM ('x')"},
      {"DuplicateFunction", "CREATE MACRO m(a) AS a"},
      {"DuplicatePrepared", "PREPARE p AS SELECT 2"},
      {"Grouping", "SELECT k, sum(v) FROM t"},
      {"Windowing", "SELECT k FROM t WHERE row_number() OVER () = 1"},
      {"DatatypeMismatch", "UPDATE t SET v = TRUE"},
      {"CannotCoerce", "SELECT TRUE::DATE"},
      {"WrongObjectType", "DELETE FROM w"},
      {"WrongObjectType", "DELETE FROM later"},
      {"ColumnReference", "INSERT INTO t VALUES (1, 1, 'a') ON CONFLICT (v) DO NOTHING"},
      {"ForeignKeyDefinition", "CREATE TABLE z (a INTEGER REFERENCES t (v))"},
      {"TableDefinition", "CREATE TABLE z (a INTEGER PRIMARY KEY, b INTEGER PRIMARY KEY)"},
      {"TableDefinition", "ALTER TABLE t ALTER COLUMN k DROP NOT NULL"},
      {"ObjectDefinition", "ALTER TABLE c ADD COLUMN h INTEGER GENERATED ALWAYS AS (g + 1) STORED"},
      {"GeneratedAlways", "INSERT INTO c (g) VALUES (1)"},
      {"IndeterminateType", "PREPARE q AS SELECT $2"},
      {"DependentObjects", "DROP TABLE t"},
      {"NotInPrerequisiteState", "SELECT * FROM later"},
      {"Cardinality", "SELECT (SELECT k FROM t)"},
      {"TooComplex", "SELECT " + deep},
      {"TooManyColumns", many + ")"},
      {"OutOfRange", "SELECT 9223372036854775807 + k FROM t"},
      {"OutOfRange", "SELECT '99999999999'::INTEGER"},
      {"InvalidText", "SELECT 'x'::INTEGER"},
      {"InvalidDatetime", "SELECT 'x'::DATE"},
      {"DatetimeOverflow", "SELECT make_date(99999 + k, 1, 1) FROM t"},
      {"InvalidRegex", "SELECT 'a' ~ '('"},
      {"InvalidParameterValue", "SET threads = 'many'"},
      {"NegativeSubstring", "SELECT substring(s, 1, -1) FROM t"},
      {"InvalidLogarithm", "SELECT ln(k - 1) FROM t"},
      {"InvalidPower", "SELECT sqrt(-k) FROM t"},
      {"NotNullViolation", "INSERT INTO t VALUES (3, NULL, 'c')"},
      {"ForeignKeyViolation", "INSERT INTO c (k) VALUES (9)"},
      {"ForeignKeyViolation", "DELETE FROM t WHERE k = 1"},
      {"UniqueViolation", "INSERT INTO t VALUES (1, 1, 'c')"},
      {"CheckViolation", "INSERT INTO t VALUES (3, 100, 'c')"},
      {"TextTooLong", "INSERT INTO t VALUES (3, 1, 'long')"},
      {"FeatureNotSupported", "LISTEN x"},
      {"UndefinedSchema", "SELECT * FROM absent.t"},
      {"DuplicateSchema", "CREATE SCHEMA main"},
  };
  for (const auto& [name, sql] : statements) Fails(name, sql);
  Do("SET statement_timeout = 50");
  Fails("Cancelled",
        "SELECT count(*) FROM generate_series(1, 3000000) AS a(i), generate_series(1, 3000) AS b(j) WHERE i % 7 + j % "
        "5 < 3");
  Do("SET statement_timeout = 0");
  Do("SET memory_limit = 16777216");
  Do("SET temp_file_limit = 0");
  Fails("OutOfMemory", "SELECT i, count(*) FROM generate_series(1, 2000000) AS a(i) GROUP BY i ORDER BY 2, 1 DESC");
  Do("SET memory_limit = 0");
  FailInTransactions();
  FailWithFiles();
  made_.insert("LimitExceeded");  // of threads and descriptors: control_groups_test and limits_test
  for (const Row& row : kRows) EXPECT_EQ(made_.contains(row.name), !kNoStatement.contains(row.name)) << row.name;
}

TEST_F(SqlStates, AnErrorKeepsItsPosition) {
  MakeTables();
  EXPECT_EQ(Run(session_.get(), "SELECT k, nothing FROM t").position(), 10);
  EXPECT_EQ(Run(session_.get(), "SELECT 1 FROM nowhere").position(), 14);
  EXPECT_EQ(Run(session_.get(), "SELECT k FROM t WHERE k ~~ ~").position(), 28);
  EXPECT_EQ(Run(session_.get(), "DELETE FROM t WHERE k = 1").position(), -1);
}

TEST_F(SqlStates, EveryKindIsOfItsCode) {
  std::map<ErrorCode, size_t> kinds;
  for (const Row& row : kRows) {
    const Status status(row.kind, "an error");
    EXPECT_EQ(status.kind(), row.kind);
    EXPECT_STREQ(status.sqlstate(), row.sqlstate);
    EXPECT_EQ(Status(status.kind(), status.message() + " of another").code(), status.code());
    ++kinds[status.code()];
  }
  EXPECT_EQ(kinds.size(), size_t{10});  // each code has one
  EXPECT_STREQ(Status(ErrorCode::kInternal, "a bug").sqlstate(), "XX000");
  EXPECT_STREQ(OutOfMemory().sqlstate(), "53200");
  EXPECT_EQ(FormatError(SqlError(ErrorKind::kSyntax, "no"), "x", 1, true), "ERROR:  42601: no");
}

}  // namespace
}  // namespace tessera
