#include "compiler/parse/unsupported_statement.h"

#include <string>

namespace tessera {
namespace {

// Each is one statement, so that an error leaves the table as it was.
constexpr const char* kUpsert = "Write INSERT OR REPLACE INTO t ..., or INSERT ... ON CONFLICT DO UPDATE SET ...";
constexpr const char* kRename = "Write ALTER TABLE t RENAME TO u.";
constexpr const char* kOneDatabase = "A session has one database, the directory that tessera is started with.";
constexpr const char* kLock = "BEGIN IMMEDIATE lets no other session change anything before COMMIT.";
constexpr const char* kNoUsers = "There are no users: who may read the directory may read the tables.";
constexpr const char* kNoServer = "There are no other sessions to talk to.";
constexpr const char* kNoExtensions = "There are no extensions.";

struct Known {
  std::string_view tag;  ///< libpg_query's
  const char* name;
  const char* hint;
};
constexpr Known kKnown[] = {
    {"MergeReturning", "RETURNING of MERGE",
     "SELECT the rows after it. INSERT ... ON CONFLICT ... RETURNING is supported."},
    {"TransactionStmt", "BEGIN, COMMIT or ROLLBACK here", "Enter it as a statement of its own."},
    {"CreateFunctionStmt", "CREATE FUNCTION with a language", "CREATE MACRO f(a, b) AS a + b is."},
    {"CreatedbStmt", "CREATE DATABASE", kOneDatabase},
    {"DropdbStmt", "DROP DATABASE", kOneDatabase},
    {"CreateTrigStmt", "CREATE TRIGGER", ""},
    {"CreateExtensionStmt", "CREATE EXTENSION", kNoExtensions},
    {"CreateDomainStmt", "CREATE DOMAIN", ""},
    {"CompositeTypeStmt", "CREATE TYPE of rows", "CREATE TYPE t AS ENUM ('a', 'b') is."},
    {"CreateRangeStmt", "CREATE TYPE of ranges", "CREATE TYPE t AS ENUM ('a', 'b') is."},
    {"AlterEnumStmt", "ALTER TYPE", "Make a new type and a new table with it."},
    {"DefineStmt", "this CREATE statement", ""},
    {"DeclareCursorStmt", "DECLARE CURSOR", ""},
    {"FetchStmt", "FETCH", ""},
    {"ClosePortalStmt", "CLOSE", ""},
    {"LockStmt", "LOCK", kLock},
    {"ListenStmt", "LISTEN", kNoServer},
    {"NotifyStmt", "NOTIFY", kNoServer},
    {"UnlistenStmt", "UNLISTEN", kNoServer},
    {"DiscardStmt", "DISCARD", ""},
    {"CheckPointStmt", "CHECKPOINT", "Each statement is on disk when it ends."},
    {"ClusterStmt", "CLUSTER", "Load the rows in the wanted order: INSERT INTO ... SELECT ... ORDER BY."},
    {"CallStmt", "CALL", ""},
    {"DoStmt", "DO", ""},
    {"LoadStmt", "LOAD", kNoExtensions},
    {"RefreshMatViewStmt", "REFRESH MATERIALIZED VIEW", ""},
};

struct Foreign {
  std::string_view first, second;  ///< second: "" is any word
  const char* name;
  const char* hint;
};
constexpr Foreign kForeign[] = {
    {"use", "", "USE", kOneDatabase},
    {"install", "", "INSTALL", kNoExtensions},
    {"load", "", "LOAD", kNoExtensions},
    {"explain", "query", "EXPLAIN QUERY PLAN", "Write EXPLAIN."},
    {"upsert", "", "UPSERT", kUpsert},
    {"insert", "or", "INSERT OR FAIL or OR ROLLBACK", kUpsert},
    {"insert", "overwrite", "INSERT OVERWRITE", "Write CREATE OR REPLACE TABLE t AS SELECT ..."},
    {"rename", "", "RENAME", kRename},
    {"optimize", "", "OPTIMIZE", "Nothing is to be done: each load keeps the tablets in order."},
    {"create", "secret", "CREATE SECRET", ""},
    {"show", "columns", "SHOW COLUMNS", "Write DESCRIBE t."},
    {"show", "schemas", "SHOW SCHEMAS", "SELECT schema_name FROM information_schema.schemata."},
    {"show", "create", "SHOW CREATE TABLE", "Write DESCRIBE t, or .schema t in the shell."},
    {"show", "index", "SHOW INDEX", "There are no indexes."},
    {"show", "indexes", "SHOW INDEXES", "There are no indexes."},
};

constexpr const char* kByRegex = "Write x ~ 'expression'.";

struct ForeignWords {
  std::string_view word, next;  ///< as ForeignForm takes them
  bool behind_operand;
  const char* name;
  const char* hint;
};
constexpr ForeignWords kForeignForms[] = {
    {"semi", "join", true, "SEMI JOIN", "Write WHERE EXISTS (SELECT ...) or x IN (SELECT ...)."},
    {"anti", "join", true, "ANTI JOIN", "Write WHERE NOT EXISTS (SELECT ...)."},
    {"positional", "join", true, "POSITIONAL JOIN", "Join by row_number() OVER (ORDER BY ...)."},
    {"ignore", "nulls", true, "IGNORE NULLS here", "lag(x IGNORE NULLS) OVER (...)"},
    {"regexp", "'", true, "REGEXP", kByRegex},
    {"rlike", "'", true, "RLIKE", kByRegex},
    {"top", "1", false, "SELECT TOP", "Write LIMIT n at the end of the query."},
};

Status Refused(std::string_view name, const char* hint, int position) {
  return Unsupported(std::string(name) + " is not supported", position, hint);
}

}  // namespace

Status UnsupportedStatement(std::string_view tag, int position) {
  for (const Known& k : kKnown) {
    if (k.tag == tag) return Refused(k.name, k.hint, position);
  }
  return Refused("this statement (" + std::string(tag) + ")", "", position);
}

std::optional<Status> ForeignForm(std::string_view word, std::string_view next, bool behind_operand, int position) {
  for (const ForeignWords& f : kForeignForms) {
    if (f.word == word && f.next == next && f.behind_operand == behind_operand)
      return Refused(f.name, f.hint, position);
  }
  return std::nullopt;
}

std::optional<Status> ForeignStatement(std::string_view first, std::string_view second, int position) {
  for (const Foreign& f : kForeign) {
    if (f.first == first && (f.second.empty() || f.second == second)) return Refused(f.name, f.hint, position);
  }
  return std::nullopt;
}

}  // namespace tessera
