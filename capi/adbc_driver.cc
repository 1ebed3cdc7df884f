// libtessera.so as a driver of ADBC 1.1.0. What is not set in AdbcDriver its manager refuses by name.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/exception_status.h"
#include "base/memory_budget.h"
#include "capi/adbc.h"
#include "capi/adbc_objects.h"
#include "capi/arrow_result.h"
#include "capi/bound_statement.h"
#include "capi/connection.h"
#include "compiler/query/schema_text.h"
#include "session/no_result.h"

namespace tessera {
namespace {

struct DatabaseState {
  SessionOptions options;
  std::shared_ptr<SharedDatabase> database;
};

struct ConnectionState {
  Status Run(const std::string& sql) {
    TESSERA_ASSIGN(const Connection::Use session, connection->Begin());
    NoResult none;
    return session->Execute(sql, &none);
  }
  /// Without autocommit the first statement begins a transaction.
  Status BeginIfNeeded() { return autocommit || connection->in_transaction() ? Status::Ok() : Run("BEGIN"); }

  std::shared_ptr<Connection> connection;
  bool autocommit = true;
};

struct StatementState {
  ConnectionState* connection;
  std::string sql;
  std::unique_ptr<ArrowSource> rows;
  // Of an ingestion:
  std::string target, mode = "adbc.ingest.mode.create";
  bool temporary = false;
};

void ReleaseError(AdbcError* error) {
  std::free(error->message);
  error->message = nullptr;
  error->release = nullptr;
}

AdbcStatusCode CodeOf(const Status& status) {
  const std::string_view state = status.sqlstate();
  if (status.kind() == ErrorKind::kUndefinedTable) return ADBC_STATUS_NOT_FOUND;
  if (status.kind() == ErrorKind::kDuplicateTable) return ADBC_STATUS_ALREADY_EXISTS;
  switch (status.code()) {
    case ErrorCode::kSql:
      return state.starts_with("22")   ? ADBC_STATUS_INVALID_DATA
             : state.starts_with("25") ? ADBC_STATUS_INVALID_STATE
                                       : ADBC_STATUS_INVALID_ARGUMENT;
    case ErrorCode::kUnsupported:
      return ADBC_STATUS_NOT_IMPLEMENTED;
    case ErrorCode::kConstraint:
      return ADBC_STATUS_INTEGRITY;
    case ErrorCode::kIo:
    case ErrorCode::kResource:
    case ErrorCode::kDevice:
      return ADBC_STATUS_IO;
    case ErrorCode::kBusy:
      return ADBC_STATUS_INVALID_STATE;
    case ErrorCode::kCancelled:
      return ADBC_STATUS_CANCELLED;
    case ErrorCode::kCorrupt:
    case ErrorCode::kInternal:
      break;
  }
  return ADBC_STATUS_INTERNAL;
}

/// f(), which returns a Status, as a call of ADBC.
template <class F>
AdbcStatusCode Call(AdbcError* error, const F& f) {
  const Status status = Caught(f);
  FlushMemoryCount();  // the thread is the program's, and may end
  if (status.ok()) return ADBC_STATUS_OK;
  if (error != nullptr) {
    if (error->release != nullptr) error->release(error);
    const std::string text = status.hint().empty() ? status.message() : status.message() + "\nHINT:  " + status.hint();
    error->message = strdup(text.c_str());
    error->vendor_code = 0;
    std::memcpy(error->sqlstate, status.sqlstate(), sizeof(error->sqlstate));
    error->release = ReleaseError;
  }
  return CodeOf(status);
}

template <class State, class Handle>
Result<State*> StateOf(const Handle* handle) {
  if (handle != nullptr && handle->private_data != nullptr) return static_cast<State*>(handle->private_data);
  return Status(ErrorKind::kNotInPrerequisiteState, "the handle has not been made, or was released");
}

template <class State, class Handle>
AdbcStatusCode Release(Handle* handle, AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(State* const state, StateOf<State>(handle));
    handle->private_data = nullptr;
    delete state;
    return {};
  });
}

Status UnknownOption(std::string_view key, std::string_view value) {
  return Unsupported(fmt::format("the option \"{}\" = \"{}\" is not supported", key, value));
}

// ---- Databases

Status SetDatabaseOption(SessionOptions* options, std::string_view key, std::string_view value) {
  const auto number = [&](auto* to) {
    return std::from_chars(value.data(), value.data() + value.size(), *to).ec == std::errc();
  };
  if (key == "uri" || key == "path") {
    if (value.starts_with("file:")) value.remove_prefix(5);
    options->directory = value == ":memory:" ? "" : value;
    return {};
  }
  if (key == "tessera.read_only") {
    options->mode = value == "true" ? OpenMode::kReadOnly : OpenMode::kReadWrite;
    return {};
  }
  if (key == "tessera.device" && (value == "auto" || value == "host" || value == "gpu")) {
    options->device = value == "host" ? DeviceChoice::kHost : value == "gpu" ? DeviceChoice::kGpu : DeviceChoice::kAuto;
    return {};
  }
  if (key == "tessera.threads" && number(&options->threads)) return {};
  if (key == "tessera.memory_limit" && number(&options->memory_limit)) return {};
  return UnknownOption(key, value);
}

AdbcStatusCode DatabaseNew(AdbcDatabase* database, AdbcError* error) {
  return Call(error, [&]() -> Status {
    database->private_data = new DatabaseState();
    return {};
  });
}

AdbcStatusCode DatabaseSetOption(AdbcDatabase* database, const char* key, const char* value, AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(DatabaseState* const state, StateOf<DatabaseState>(database));
    return SetDatabaseOption(&state->options, key, value != nullptr ? value : "");
  });
}

AdbcStatusCode DatabaseInit(AdbcDatabase* database, AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(DatabaseState* const state, StateOf<DatabaseState>(database));
    TESSERA_ASSIGN(state->database, SharedDatabase::Open(state->options));
    return {};
  });
}

// ---- Connections

AdbcStatusCode ConnectionNew(AdbcConnection* connection, AdbcError* error) {
  return Call(error, [&]() -> Status {
    connection->private_data = new ConnectionState();
    return {};
  });
}

AdbcStatusCode ConnectionSetOption(AdbcConnection* connection, const char* key, const char* value, AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(ConnectionState* const state, StateOf<ConnectionState>(connection));
    const std::string_view given = value != nullptr ? value : "";
    if (std::string_view(key) != "adbc.connection.autocommit" || (given != "true" && given != "false"))
      return UnknownOption(key, given);
    state->autocommit = given == "true";
    // What is open is committed, as the specification has it.
    if (state->autocommit && state->connection != nullptr && state->connection->in_transaction())
      return state->Run("COMMIT");
    return {};
  });
}

AdbcStatusCode ConnectionGetOption(AdbcConnection* connection, const char* key, char* value, size_t* length,
                                   AdbcError* error) {
  bool found = true;
  const AdbcStatusCode code = Call(error, [&]() -> Status {
    TESSERA_ASSIGN(ConnectionState* const state, StateOf<ConnectionState>(connection));
    const std::string_view name = key;
    const std::string_view shown = name == "adbc.connection.autocommit"  ? state->autocommit ? "true" : "false"
                                   : name == "adbc.connection.db_schema" ? "public"
                                                                         : "";
    found = !shown.empty();
    if (!found) return Unsupported(fmt::format("the option \"{}\" is not known", name));
    if (*length > shown.size()) std::memcpy(value, std::string(shown).c_str(), shown.size() + 1);
    *length = shown.size() + 1;
    return {};
  });
  return found ? code : AdbcStatusCode{ADBC_STATUS_NOT_FOUND};
}

AdbcStatusCode ConnectionInit(AdbcConnection* connection, AdbcDatabase* database, AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(ConnectionState* const state, StateOf<ConnectionState>(connection));
    TESSERA_ASSIGN(DatabaseState* const of, StateOf<DatabaseState>(database));
    if (of->database == nullptr) return {ErrorKind::kNotInPrerequisiteState, "the database has not been initialised"};
    TESSERA_ASSIGN(state->connection, of->database->Connect());
    return {};
  });
}

AdbcStatusCode EndTransaction(AdbcConnection* connection, const char* command, AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(ConnectionState* const state, StateOf<ConnectionState>(connection));
    if (state->autocommit)
      return {ErrorKind::kNoActiveTransaction, fmt::format("{} with autocommit", command), "Set autocommit to false."};
    return state->connection->in_transaction() ? state->Run(command) : Status::Ok();
  });
}
AdbcStatusCode ConnectionCommit(AdbcConnection* connection, AdbcError* error) {
  return EndTransaction(connection, "COMMIT", error);
}
AdbcStatusCode ConnectionRollback(AdbcConnection* connection, AdbcError* error) {
  return EndTransaction(connection, "ROLLBACK", error);
}

AdbcStatusCode ConnectionCancel(AdbcConnection* connection, AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(ConnectionState* const state, StateOf<ConnectionState>(connection));
    state->connection->Cancel();
    return {};
  });
}

AdbcStatusCode ConnectionGetInfo(AdbcConnection*, const uint32_t* codes, size_t count, ArrowArrayStream* out,
                                 AdbcError* error) {
  return Call(error, [&] { return GetInfo(codes, count, out); });
}

AdbcStatusCode ConnectionGetObjects(AdbcConnection* connection, int depth, const char* catalog, const char* schema,
                                    const char* table, const char** types, const char* column, ArrowArrayStream* out,
                                    AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(ConnectionState* const state, StateOf<ConnectionState>(connection));
    TESSERA_ASSIGN(const Connection::Use session, state->connection->Begin());
    return GetObjects(&*session, {depth, catalog, schema, table, types, column}, out);
  });
}

AdbcStatusCode ConnectionGetTableSchema(AdbcConnection* connection, const char*, const char* schema, const char* table,
                                        ArrowSchema* out, AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(ConnectionState* const state, StateOf<ConnectionState>(connection));
    const std::string qualifier = schema != nullptr && *schema != '\0' ? QuotedName(schema) + "." : "";
    return BoundStatement(state->connection, "SELECT * FROM " + qualifier + QuotedName(table), 0)
        .Describe(out, nullptr);
  });
}

AdbcStatusCode ConnectionGetTableTypes(AdbcConnection*, ArrowArrayStream* out, AdbcError* error) {
  return Call(error, [&] { return GetTableTypes(out); });
}

// ---- Statements

AdbcStatusCode StatementNew(AdbcConnection* connection, AdbcStatement* statement, AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(ConnectionState* const state, StateOf<ConnectionState>(connection));
    auto made = std::make_unique<StatementState>();
    made->connection = state;
    statement->private_data = made.release();
    return {};
  });
}

AdbcStatusCode StatementSetSqlQuery(AdbcStatement* statement, const char* sql, AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(StatementState* const state, StateOf<StatementState>(statement));
    state->sql = sql;
    state->target.clear();
    return {};
  });
}

AdbcStatusCode StatementPrepare(AdbcStatement* statement, AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(StatementState* const state, StateOf<StatementState>(statement));
    if (state->sql.empty()) return {ErrorKind::kNotInPrerequisiteState, "there is no statement to prepare"};
    return {};
  });
}

AdbcStatusCode StatementBindStream(AdbcStatement* statement, ArrowArrayStream* rows, AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(StatementState* const state, StateOf<StatementState>(statement));
    TESSERA_ASSIGN(state->rows, ArrowSource::Open(rows));
    return {};
  });
}

/// A stream of one array.
struct BoundArray {
  OwnedArrow<ArrowSchema> schema;
  OwnedArrow<ArrowArray> array;
};

AdbcStatusCode StatementBind(AdbcStatement* statement, ArrowArray* values, ArrowSchema* schema, AdbcError* error) {
  ArrowArrayStream stream = {};
  const AdbcStatusCode code = Call(error, [&]() -> Status {
    stream.private_data = new BoundArray{OwnedArrow<ArrowSchema>(schema), OwnedArrow<ArrowArray>(values)};
    stream.get_schema = [](ArrowArrayStream* s, ArrowSchema* out) {
      static_cast<BoundArray*>(s->private_data)->schema.MoveTo(out);
      return 0;
    };
    stream.get_next = [](ArrowArrayStream* s, ArrowArray* out) {
      static_cast<BoundArray*>(s->private_data)->array.MoveTo(out);
      return 0;
    };
    stream.get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; };
    stream.release = [](ArrowArrayStream* s) {
      delete static_cast<BoundArray*>(s->private_data);
      s->release = nullptr;
    };
    return {};
  });
  return code == ADBC_STATUS_OK ? StatementBindStream(statement, &stream, error) : code;
}

AdbcStatusCode StatementSetOption(AdbcStatement* statement, const char* key, const char* value, AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(StatementState* const state, StateOf<StatementState>(statement));
    const std::string_view name = key, given = value != nullptr ? value : "";
    if (name == "adbc.ingest.target_table") {
      state->target = given;
      state->sql.clear();
      return {};
    }
    if (name == "adbc.ingest.mode" && given.starts_with("adbc.ingest.mode.")) {
      state->mode = given;
      return {};
    }
    if (name == "adbc.ingest.temporary" && (given == "true" || given == "false")) {
      state->temporary = given == "true";
      return {};
    }
    return UnknownOption(name, given);
  });
}

/// The columns of the rows, by which they are appended.
std::string ColumnList(const ArrowSource& rows) {
  std::string list;
  for (const ColumnSchema& column : rows.schema().columns) list += (list.empty() ? "" : ", ") + QuotedName(column.name);
  return list;
}

/// The rows of the statement into its target, in one transaction.
Status Ingest(StatementState* state, int64_t* count) {
  static constexpr char kRows[] = "tessera_ingested_rows";
  if (state->rows == nullptr) return {ErrorKind::kNotInPrerequisiteState, "there are no rows to ingest", "Bind some."};
  TESSERA_ASSIGN(const Connection::Use session, state->connection->connection->Begin());
  NoResult none;
  const auto run = [&](const std::string& sql) { return session->Execute(sql, &none); };
  const std::string mode = state->mode.substr(std::strlen("adbc.ingest.mode."));
  const std::string schema = state->temporary ? "pg_temp." : "", target = schema + QuotedName(state->target);
  const std::string columns = ColumnList(*state->rows);
  const std::string rows = std::string("pg_temp.") + kRows;
  std::string made = "CREATE TABLE ";
  if (mode == "replace") made = state->temporary ? "DROP TABLE IF EXISTS " + target : "CREATE OR REPLACE TABLE ";
  if (mode == "create_append") made = "CREATE TABLE IF NOT EXISTS ";
  const bool own = !session->in_transaction();
  if (own) TESSERA_TRY(run("BEGIN"));
  const Status status = Caught([&]() -> Status {
    const std::unique_ptr<FileReader> reader =
        OpenArrowReader(std::shared_ptr<ArrowSource>(std::move(state->rows)), state->target);
    TESSERA_ASSIGN(const uint64_t loaded, session->Register(kRows, reader.get()));
    if (mode == "replace" && state->temporary) {
      TESSERA_TRY(run(made));
      made = "CREATE TABLE ";
    }
    if (mode != "append") TESSERA_TRY(run(made + target + " AS SELECT * FROM " + rows + " LIMIT 0"));
    TESSERA_TRY(run("INSERT INTO " + target + " (" + columns + ") SELECT " + columns + " FROM " + rows));
    TESSERA_TRY(run("DROP TABLE " + rows));
    *count = static_cast<int64_t>(loaded);
    return {};
  });
  if (!own) return status;
  if (!status.ok()) (void)run("ROLLBACK");
  return status.ok() ? run("COMMIT") : status;
}

AdbcStatusCode StatementExecuteQuery(AdbcStatement* statement, ArrowArrayStream* out, int64_t* rows_affected,
                                     AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(StatementState* const state, StateOf<StatementState>(statement));
    if (out != nullptr) *out = {};
    TESSERA_TRY(state->connection->BeginIfNeeded());
    int64_t count = -1;
    if (!state->target.empty()) {
      TESSERA_TRY(Ingest(state, &count));
      if (out != nullptr) ExportStream({}, {}, out);
    } else if (state->rows != nullptr) {
      BoundStatement bound(state->connection->connection, state->sql, 0);
      bound.BindRows(std::move(state->rows));
      TESSERA_TRY(bound.Execute(out, &count));
    } else {
      TESSERA_TRY(ExecuteScript(state->connection->connection, state->sql, out, &count));
    }
    if (rows_affected != nullptr) *rows_affected = count;
    return {};
  });
}

AdbcStatusCode Describe(AdbcStatement* statement, ArrowSchema* columns, ArrowSchema* parameters, AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(StatementState* const state, StateOf<StatementState>(statement));
    return BoundStatement(state->connection->connection, state->sql, 0).Describe(columns, parameters);
  });
}
AdbcStatusCode StatementExecuteSchema(AdbcStatement* statement, ArrowSchema* schema, AdbcError* error) {
  return Describe(statement, schema, nullptr, error);
}
AdbcStatusCode StatementGetParameterSchema(AdbcStatement* statement, ArrowSchema* schema, AdbcError* error) {
  return Describe(statement, nullptr, schema, error);
}

AdbcStatusCode StatementCancel(AdbcStatement* statement, AdbcError* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(StatementState* const state, StateOf<StatementState>(statement));
    state->connection->connection->Cancel();
    return {};
  });
}

// ---- What is refused

AdbcStatusCode StatementSetSubstraitPlan(AdbcStatement*, const uint8_t*, size_t, AdbcError* error) {
  return Call(error, [] { return Unsupported("plans of Substrait are not supported", -1, "Set an SQL query."); });
}
AdbcStatusCode StatementExecutePartitions(AdbcStatement*, ArrowSchema*, AdbcPartitions*, int64_t*, AdbcError* error) {
  return Call(error, [] { return Unsupported("results in partitions are not supported", -1, "Execute the query."); });
}
AdbcStatusCode ConnectionReadPartition(AdbcConnection*, const uint8_t*, size_t, ArrowArrayStream*, AdbcError* error) {
  return Call(error, [] { return Unsupported("results in partitions are not supported"); });
}
AdbcStatusCode ConnectionGetStatistics(AdbcConnection*, const char*, const char*, const char*, char, ArrowArrayStream*,
                                       AdbcError* error) {
  return Call(error, [] { return Unsupported("statistics by ADBC are not supported"); });
}
AdbcStatusCode ConnectionGetStatisticNames(AdbcConnection*, ArrowArrayStream*, AdbcError* error) {
  return Call(error, [] { return Unsupported("statistics by ADBC are not supported"); });
}

AdbcStatusCode DriverRelease(AdbcDriver* driver, AdbcError*) {
  driver->release = nullptr;
  return ADBC_STATUS_OK;
}

void FillFirst(AdbcDriver* d) {
  d->release = DriverRelease;
  d->DatabaseInit = DatabaseInit;
  d->DatabaseNew = DatabaseNew;
  d->DatabaseSetOption = DatabaseSetOption;
  d->DatabaseRelease = Release<DatabaseState, AdbcDatabase>;
  d->ConnectionCommit = ConnectionCommit;
  d->ConnectionGetInfo = ConnectionGetInfo;
  d->ConnectionGetObjects = ConnectionGetObjects;
  d->ConnectionGetTableSchema = ConnectionGetTableSchema;
  d->ConnectionGetTableTypes = ConnectionGetTableTypes;
  d->ConnectionInit = ConnectionInit;
  d->ConnectionNew = ConnectionNew;
  d->ConnectionSetOption = ConnectionSetOption;
  d->ConnectionReadPartition = ConnectionReadPartition;
  d->ConnectionRelease = Release<ConnectionState, AdbcConnection>;
  d->ConnectionRollback = ConnectionRollback;
  d->StatementBind = StatementBind;
  d->StatementBindStream = StatementBindStream;
  d->StatementExecuteQuery = StatementExecuteQuery;
  d->StatementExecutePartitions = StatementExecutePartitions;
  d->StatementGetParameterSchema = StatementGetParameterSchema;
  d->StatementNew = StatementNew;
  d->StatementPrepare = StatementPrepare;
  d->StatementRelease = Release<StatementState, AdbcStatement>;
  d->StatementSetOption = StatementSetOption;
  d->StatementSetSqlQuery = StatementSetSqlQuery;
  d->StatementSetSubstraitPlan = StatementSetSubstraitPlan;
}

}  // namespace
}  // namespace tessera

extern "C" __attribute__((visibility("default"))) AdbcStatusCode AdbcDriverInit(int version, void* raw,
                                                                                AdbcError* error) {
  return tessera::Call(error, [&]() -> tessera::Status {
    if (version != kAdbcVersion100 && version != kAdbcVersion110)
      return tessera::Unsupported(fmt::format("version {} of ADBC is not supported: 1.0.0 and 1.1.0 are", version));
    auto* const driver = static_cast<AdbcDriver*>(raw);
    const bool is_first = version == kAdbcVersion100;
    std::memset(raw, 0, is_first ? offsetof(AdbcDriver, ErrorGetDetailCount) : sizeof(AdbcDriver));
    tessera::FillFirst(driver);
    if (is_first) return {};
    driver->ConnectionCancel = tessera::ConnectionCancel;
    driver->ConnectionGetOption = tessera::ConnectionGetOption;
    driver->ConnectionGetStatistics = tessera::ConnectionGetStatistics;
    driver->ConnectionGetStatisticNames = tessera::ConnectionGetStatisticNames;
    driver->StatementCancel = tessera::StatementCancel;
    driver->StatementExecuteSchema = tessera::StatementExecuteSchema;
    return {};
  });
}
