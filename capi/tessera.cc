// The C interface over the classes of this folder: no exception and no C++ type leaves it.

#include "capi/tessera.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "base/exception_status.h"
#include "base/memory_budget.h"
#include "base/version.h"
#include "capi/arrow_result.h"
#include "capi/arrow_values.h"
#include "capi/bound_statement.h"
#include "capi/connection.h"
#include "capi/frame_table.h"
#include "compiler/parse/script.h"
#include "compiler/query/schema_text.h"
#include "session/no_result.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/values/interval.h"

struct tessera_database {
  std::shared_ptr<tessera::SharedDatabase> database;
};
struct tessera_connection {
  std::shared_ptr<tessera::Connection> connection;
  std::string warning;
};
struct tessera_statement {
  tessera::BoundStatement statement;
};

namespace tessera {
namespace {

char* Copy(const std::string& text) { return strdup(text.c_str()); }

void Tell(const Status& status, tessera_error* error) {
  if (error == nullptr) return;
  tessera_error_clear(error);
  std::memcpy(error->sqlstate, status.sqlstate(), 6);
  error->position = status.position();
  error->message = Copy(status.message());
  error->hint = Copy(status.hint());
}

/// f(), which returns a Status, as a call of the C interface.
template <class F>
int Call(tessera_error* error, const F& f) {
  const Status status = Caught(f);
  FlushMemoryCount();  // the thread is the program's, and may end
  if (status.ok()) return TESSERA_OK;
  Tell(status, error);
  return TESSERA_ERROR;
}

Status IsNull(const char* what) { return {ErrorKind::kInvalidParameterValue, fmt::format("the {} is NULL", what)}; }

Result<SessionOptions> OptionsOf(const char* path, const tessera_options* given) {
  SessionOptions options;
  const std::string_view directory = path != nullptr ? path : "";
  if (directory != ":memory:") options.directory = directory;
  tessera_options o = TESSERA_OPTIONS_INIT;
  if (given != nullptr) std::memcpy(&o, given, std::min(given->size, sizeof(o)));
  if (o.read_only != 0) options.mode = OpenMode::kReadOnly;
  options.threads = o.threads;
  options.memory_limit = o.memory_limit;
  options.gpu_memory = o.gpu_memory;
  const std::string_view device = o.device != nullptr ? o.device : "auto";
  if (device == "host") {
    options.device = DeviceChoice::kHost;
  } else if (device == "gpu") {
    options.device = DeviceChoice::kGpu;
  } else if (device != "auto") {
    return Status(ErrorKind::kInvalidParameterValue, fmt::format("there is no device \"{}\"", device),
                  "It is auto, host or gpu.");
  }
  return options;
}

int Bind(tessera_statement* statement, int number, tessera_error* error, Value value) {
  return Call(error, [&]() -> Status {
    if (statement == nullptr) return IsNull("statement");
    return statement->statement.Bind(number, std::move(value));
  });
}

Value ValueOf(TypeId id, int64_t value) { return Value::Int(SqlType::Of(id), value); }

int BindTime(tessera_statement* statement, int number, tessera_error* error, TypeId id, int64_t value) {
  return Call(error, [&]() -> Status {
    if (statement == nullptr) return IsNull("statement");
    if (!HoldsTime(id, value)) {
      return SqlError(ErrorKind::kDatetimeOverflow, id == TypeId::kTime ? "time out of range: it is one of a day"
                                                                        : "date out of range: years 1 to 9999");
    }
    return statement->statement.Bind(number, ValueOf(id, value));
  });
}

/// The digits as they stand.
Result<Value> DecimalOf(const char* digits) {
  const std::string_view text = digits;
  int precision = 0, scale = 0;
  bool behind_point = false;
  for (const char c : text) {
    behind_point |= c == '.';
    if (c < '0' || c > '9') continue;
    ++precision;
    scale += behind_point ? 1 : 0;
  }
  precision = std::min(std::max({precision, scale, 1}), 38);
  return ParseValue(text, SqlType::Decimal(precision, std::min(scale, precision)));
}

}  // namespace
}  // namespace tessera

using tessera::Call;
using tessera::IsNull;
using tessera::Status;
using tessera::TypeId;
using tessera::Value;

void tessera_error_clear(tessera_error* error) {
  if (error == nullptr) return;
  std::free(error->message);
  std::free(error->hint);
  *error = TESSERA_ERROR_INIT;
}

const char* tessera_version(void) { return tessera::kVersion; }

int tessera_open(const char* path, const tessera_options* options, tessera_database** database, tessera_error* error) {
  return Call(error, [&]() -> Status {
    if (database == nullptr) return IsNull("place for the database");
    *database = nullptr;
    TESSERA_ASSIGN(tessera::SessionOptions opened, tessera::OptionsOf(path, options));
    TESSERA_ASSIGN(auto made, tessera::SharedDatabase::Open(std::move(opened)));
    *database = new tessera_database{std::move(made)};
    return {};
  });
}

void tessera_close(tessera_database* database) { delete database; }

int tessera_connect(tessera_database* database, tessera_connection** connection, tessera_error* error) {
  return Call(error, [&]() -> Status {
    if (database == nullptr || connection == nullptr) return IsNull(database == nullptr ? "database" : "place for it");
    *connection = nullptr;
    TESSERA_ASSIGN(auto made, database->database->Connect());
    *connection = new tessera_connection{std::move(made), {}};
    return {};
  });
}

void tessera_disconnect(tessera_connection* connection) { delete connection; }

void tessera_cancel(tessera_connection* connection) {
  if (connection != nullptr) connection->connection->Cancel();
}

void tessera_set_interruptible(tessera_connection* connection, int interruptible) {
  if (connection != nullptr) connection->connection->SetInterruptible(interruptible != 0);
}

void tessera_set_progress(tessera_connection* connection, tessera_progress progress, void* data) {
  if (connection == nullptr) return;
  (void)Call(nullptr, [&]() -> Status {
    TESSERA_ASSIGN(const auto session, connection->connection->Begin());
    if (progress == nullptr) {
      session->SetProgress({});
    } else {
      session->SetProgress([progress, data](const tessera::Progress& p) { progress(data, p.what, p.done, p.total); });
    }
    return {};
  });
}

int tessera_in_transaction(tessera_connection* connection) {
  return connection != nullptr && connection->connection->in_transaction() ? 1 : 0;
}

const char* tessera_warning(tessera_connection* connection) {
  if (connection == nullptr) return "";
  connection->warning.clear();
  (void)Call(nullptr, [&]() -> Status {
    TESSERA_ASSIGN(const auto session, connection->connection->Begin());
    connection->warning = session->TakeWarning();
    return {};
  });
  return connection->warning.c_str();
}

int tessera_prepare(tessera_connection* connection, const char* sql, size_t length, tessera_statement** statement,
                    const char** tail, tessera_error* error) {
  return Call(error, [&]() -> Status {
    if (connection == nullptr || sql == nullptr || statement == nullptr)
      return IsNull(connection == nullptr ? "connection" : sql == nullptr ? "text" : "place for the statement");
    *statement = nullptr;
    const std::string_view text(sql, length == SIZE_MAX ? std::strlen(sql) : length);
    const std::vector<tessera::StatementText> parts = tessera::SplitStatements(text);
    if (tail != nullptr) *tail = sql + (parts.size() > 1 ? parts[1].offset : text.size());
    if (parts.empty()) return {};
    *statement = new tessera_statement{{connection->connection, std::string(parts[0].sql), parts[0].offset}};
    return {};
  });
}

void tessera_finalize(tessera_statement* statement) { delete statement; }

int tessera_describe(tessera_statement* statement, struct ArrowSchema* columns, struct ArrowSchema* parameters,
                     tessera_error* error) {
  return Call(error, [&]() -> Status {
    return statement == nullptr ? IsNull("statement") : statement->statement.Describe(columns, parameters);
  });
}

int tessera_bind_null(tessera_statement* statement, int number, tessera_error* error) {
  return tessera::Bind(statement, number, error, Value::Null(tessera::SqlType::Of(TypeId::kNull)));
}

int tessera_bind_boolean(tessera_statement* statement, int number, int value, tessera_error* error) {
  return tessera::Bind(statement, number, error, tessera::ValueOf(TypeId::kBoolean, value != 0 ? 1 : 0));
}

int tessera_bind_int64(tessera_statement* statement, int number, int64_t value, tessera_error* error) {
  const bool fits = value == static_cast<int32_t>(value);
  return tessera::Bind(statement, number, error, tessera::ValueOf(fits ? TypeId::kInteger : TypeId::kBigint, value));
}

int tessera_bind_double(tessera_statement* statement, int number, double value, tessera_error* error) {
  return tessera::Bind(statement, number, error, Value::Float(tessera::SqlType::Of(TypeId::kDouble), value));
}

int tessera_bind_text(tessera_statement* statement, int number, const char* value, size_t length,
                      tessera_error* error) {
  return Call(error, [&]() -> Status {
    if (statement == nullptr || value == nullptr) return IsNull(statement == nullptr ? "statement" : "text");
    Value text = Value::Text(std::string(value, length == SIZE_MAX ? std::strlen(value) : length));
    text.type = tessera::SqlType::Of(TypeId::kNull);
    return statement->statement.Bind(number, std::move(text));
  });
}

int tessera_bind_bytea(tessera_statement* statement, int number, const void* value, size_t length,
                       tessera_error* error) {
  return Call(error, [&]() -> Status {
    if (statement == nullptr || (value == nullptr && length > 0))
      return IsNull(statement == nullptr ? "statement" : "value");
    Value bytes = Value::Text(std::string(static_cast<const char*>(value), length));
    bytes.type = tessera::SqlType::Of(TypeId::kBytea);
    return statement->statement.Bind(number, std::move(bytes));
  });
}

int tessera_bind_decimal(tessera_statement* statement, int number, const char* value, tessera_error* error) {
  return Call(error, [&]() -> Status {
    if (statement == nullptr || value == nullptr) return IsNull(statement == nullptr ? "statement" : "text");
    TESSERA_ASSIGN(Value decimal, tessera::DecimalOf(value));
    return statement->statement.Bind(number, std::move(decimal));
  });
}

int tessera_bind_date(tessera_statement* statement, int number, int32_t days, tessera_error* error) {
  return tessera::BindTime(statement, number, error, TypeId::kDate, days);
}

int tessera_bind_time(tessera_statement* statement, int number, int64_t micros, tessera_error* error) {
  return tessera::BindTime(statement, number, error, TypeId::kTime, micros);
}

int tessera_bind_timestamp(tessera_statement* statement, int number, int64_t micros, tessera_error* error) {
  return tessera::BindTime(statement, number, error, TypeId::kTimestamp, micros);
}

int tessera_bind_timestamptz(tessera_statement* statement, int number, int64_t micros, tessera_error* error) {
  return tessera::BindTime(statement, number, error, TypeId::kTimestampTz, micros);
}

int tessera_bind_interval(tessera_statement* statement, int number, int32_t months, int32_t days, int64_t micros,
                          tessera_error* error) {
  return Call(error, [&]() -> Status {
    if (!tessera::HoldsInterval(months, days, micros))
      return tessera::SqlError(tessera::ErrorKind::kDatetimeOverflow, "interval out of range");
    if (statement == nullptr) return IsNull("statement");
    return statement->statement.Bind(
        number, Value::Wide(tessera::SqlType::Of(TypeId::kInterval), tessera::PackInterval({months, days, micros})));
  });
}

int tessera_bind_uuid(tessera_statement* statement, int number, const uint8_t* value, tessera_error* error) {
  return Call(error, [&]() -> Status {
    if (statement == nullptr || value == nullptr) return IsNull(statement == nullptr ? "statement" : "value");
    tessera::uint128_t bits = 0;
    for (int i = 0; i < 16; ++i) bits = bits << 8 | value[i];
    const auto wide = static_cast<tessera::int128_t>(bits ^ (tessera::uint128_t{1} << 127));
    return statement->statement.Bind(number, Value::Wide(tessera::SqlType::Of(TypeId::kUuid), wide));
  });
}

int tessera_bind_stream(tessera_statement* statement, struct ArrowArrayStream* rows, tessera_error* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(std::unique_ptr<tessera::ArrowSource> source, tessera::ArrowSource::Open(rows));
    if (statement == nullptr) return IsNull("statement");
    statement->statement.BindRows(std::move(source));
    return {};
  });
}

void tessera_clear_bindings(tessera_statement* statement) {
  if (statement != nullptr) statement->statement.ClearBindings();
}

int tessera_execute(tessera_statement* statement, struct ArrowArrayStream* rows, int64_t* count, tessera_error* error) {
  return Call(error, [&]() -> Status {
    if (rows != nullptr) *rows = {};
    return statement == nullptr ? IsNull("statement") : statement->statement.Execute(rows, count);
  });
}

const char* tessera_command_tag(tessera_statement* statement) {
  return statement != nullptr ? statement->statement.command_tag().c_str() : "";
}

int tessera_query(tessera_connection* connection, const char* sql, struct ArrowArrayStream* rows, int64_t* count,
                  tessera_error* error) {
  return Call(error, [&]() -> Status {
    if (rows != nullptr) *rows = {};
    if (connection == nullptr || sql == nullptr) return IsNull(connection == nullptr ? "connection" : "text");
    return tessera::ExecuteScript(connection->connection, sql, rows, count);
  });
}

int tessera_copy_stream(struct ArrowArrayStream* rows, struct ArrowArrayStream* copy, tessera_error* error) {
  return Call(error, [&]() -> Status {
    if (copy == nullptr) return IsNull("place for the stream");
    *copy = {};
    return tessera::CopyStream(rows, copy);
  });
}

int tessera_register(tessera_connection* connection, const char* name, struct ArrowArrayStream* rows, int64_t* count,
                     tessera_error* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(std::shared_ptr<tessera::ArrowSource> source, tessera::ArrowSource::Open(rows));
    if (connection == nullptr || name == nullptr) return IsNull(connection == nullptr ? "connection" : "name");
    TESSERA_ASSIGN(const auto session, connection->connection->Begin());
    const std::unique_ptr<tessera::FileReader> reader = tessera::OpenArrowReader(std::move(source), name);
    TESSERA_ASSIGN(const uint64_t loaded, session->Register(name, reader.get()));
    if (count != nullptr) *count = static_cast<int64_t>(loaded);
    return {};
  });
}

int tessera_register_frame(tessera_connection* connection, const char* name, struct ArrowArrayStream* rows,
                           int64_t* count, tessera_error* error) {
  return Call(error, [&]() -> Status {
    TESSERA_ASSIGN(const std::shared_ptr<tessera::ArrowSource> source, tessera::ArrowSource::Open(rows));
    if (connection == nullptr || name == nullptr) return IsNull(connection == nullptr ? "connection" : "name");
    TESSERA_ASSIGN(const auto session, connection->connection->Begin());
    TESSERA_ASSIGN(std::shared_ptr<tessera::TableInfo> frame, tessera::MakeFrameTable(source, name));
    uint64_t found = 0;
    if (frame != nullptr) {
      found = frame->rows;
      TESSERA_TRY(session->RegisterFrame(name, std::move(frame)));
    } else {  // which says what is wrong with the columns
      const std::unique_ptr<tessera::FileReader> reader = tessera::OpenArrowReader(source, name);
      TESSERA_ASSIGN(found, session->Register(name, reader.get()));
    }
    if (count != nullptr) *count = static_cast<int64_t>(found);
    return {};
  });
}

int tessera_unregister(tessera_connection* connection, const char* name, tessera_error* error) {
  return Call(error, [&]() -> Status {
    if (connection == nullptr || name == nullptr) return IsNull(connection == nullptr ? "connection" : "name");
    TESSERA_ASSIGN(const auto session, connection->connection->Begin());
    return session->Unregister(name);
  });
}

int tessera_has_table(tessera_connection* connection, const char* name, int* found, tessera_error* error) {
  return Call(error, [&]() -> Status {
    if (connection == nullptr || name == nullptr || found == nullptr)
      return IsNull(connection == nullptr ? "connection" : name == nullptr ? "name" : "place for the answer");
    TESSERA_ASSIGN(const auto session, connection->connection->Begin());
    TESSERA_ASSIGN(const auto snapshot, session->Tables());
    const std::string temporary = tessera::QualifiedName(tessera::kTemporarySchema, name);
    *found = snapshot->Find(name) != nullptr || snapshot->Find(temporary) != nullptr ||
                     tessera::FindView(snapshot->views, name) != nullptr
                 ? 1
                 : 0;
    return {};
  });
}
