#include "capi/bound_statement.h"

#include <fmt/format.h>

#include <utility>

#include "capi/arrow_result.h"
#include "compiler/compiler.h"
#include "compiler/parse/database_command.h"
#include "session/no_result.h"
#include "tablet/values/value_at.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

constexpr int kMostParameters = 65535;

/// COPY TO STDOUT and EXPLAIN return text.
std::string TextColumnOf(std::string_view sql) { return FirstWordOf(sql) == "copy" ? "COPY" : "QUERY PLAN"; }

/// NULL and a text take the type of their place.
Value ParameterAt(const ColumnVector& column, size_t row) {
  const bool is_untyped = column.IsNull(row) || column.type.id == TypeId::kText;
  Value value = ValueAt(column, row, column.type);
  if (is_untyped || column.type.storage() == StorageClass::kText)
    value.type = SqlType::Of(is_untyped ? TypeId::kNull : column.type.id);
  return value;
}

/// Texts of SQL are checked by its parser, and these are none.
Status CheckParameter(const Value& value, size_t number) {
  if (value.null || CheckText(value.text, value.type) == ParseError::kNone) return {};
  return {ErrorKind::kInvalidEncoding,
          fmt::format("the value of parameter ${} is not UTF-8, or has a NUL byte", number), "Bind it as BYTEA."};
}

/// One transaction of several runs, if none is open: rolled back unless it is committed.
class OwnTransaction {
 public:
  explicit OwnTransaction(Session* session) : session_(*session), is_own_(!session->in_transaction()) {}
  ~OwnTransaction() {
    if (is_own_ && session_.in_transaction()) (void)Run("ROLLBACK");
  }
  OwnTransaction(const OwnTransaction&) = delete;
  OwnTransaction& operator=(const OwnTransaction&) = delete;
  Status Begin() { return is_own_ ? Run("BEGIN") : Status::Ok(); }
  Status Commit() { return is_own_ ? Run("COMMIT") : Status::Ok(); }

 private:
  Status Run(const char* command) {
    NoResult none;
    return session_.Execute(command, &none);
  }

  Session& session_;
  const bool is_own_;
};

}  // namespace

Status BoundStatement::Bind(int number, Value value) {
  if (number < 1 || number > kMostParameters) {
    return SqlError(ErrorKind::kUndefinedParameter, fmt::format("there is no parameter ${}", number), -1,
                    fmt::format("Parameters are $1 to ${}.", kMostParameters));
  }
  const auto count = static_cast<size_t>(number);
  TESSERA_TRY(CheckParameter(value, count));
  while (values_.size() < count) values_.push_back(Value::Null(SqlType::Of(TypeId::kNull)));
  values_[count - 1] = std::move(value);
  rows_.reset();
  return {};
}

void BoundStatement::ClearBindings() {
  values_.clear();
  rows_.reset();
}

Status BoundStatement::Moved(const Status& error) const {
  if (error.ok() || error.position() < 0) return error;
  return {error.kind(), error.message(), error.hint(), error.position() + static_cast<int>(offset_)};
}

Status BoundStatement::Describe(ArrowSchema* columns, ArrowSchema* parameters) {
  TESSERA_ASSIGN(const Connection::Use session, connection_->Begin());
  std::vector<SqlType> declared;
  for (const Value& value : values_) declared.push_back(value.type);
  const Result<StatementDescription> d = session->Describe(text_, std::move(declared));
  if (!d.ok()) return Moved(d.status());
  if (parameters != nullptr) {
    std::vector<vm::ResultColumn> fields;
    for (const SqlType& type : d->parameters) fields.push_back({fmt::format("${}", fields.size() + 1), type});
    ExportColumns(fields, parameters);
  }
  if (columns != nullptr) ExportColumns(d->columns, columns);
  return {};
}

Status BoundStatement::ExecuteForRows(Session* session, ArrowResult* result, int64_t* count) {
  const std::unique_ptr<ArrowSource> rows = std::move(rows_);
  OwnTransaction transaction(session);
  TESSERA_TRY(transaction.Begin());
  for (;;) {
    TESSERA_ASSIGN(const OwnedArrow<ArrowArray> array, rows->Next());
    if (!array.has_value()) break;
    TESSERA_ASSIGN(const RowBatch batch, rows->Read(*array, 0, array->length));
    std::vector<Value> values(batch.columns.size());
    for (size_t row = 0; row < batch.rows; ++row) {
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = ParameterAt(batch.columns[i], row);
        TESSERA_TRY(CheckParameter(values[i], i + 1));
      }
      TESSERA_TRY(session->Execute(text_, values, result));
      const int64_t changed = ChangedRows(result->command_tag());
      if (changed >= 0) *count = std::max<int64_t>(0, *count) + changed;
    }
  }
  return transaction.Commit();
}

Status BoundStatement::Execute(ArrowArrayStream* rows, int64_t* count) {
  TESSERA_ASSIGN(const Connection::Use session, connection_->Begin());
  command_tag_.clear();
  ArrowResult result(TextColumnOf(text_), rows != nullptr);
  int64_t changed = -1;
  if (rows_ != nullptr) {
    TESSERA_TRY(Moved(ExecuteForRows(&*session, &result, &changed)));
  } else {
    TESSERA_TRY(Moved(session->Execute(text_, values_, &result)));
    changed = ChangedRows(result.command_tag());
  }
  command_tag_ = result.command_tag();
  if (count != nullptr) *count = changed;
  return rows != nullptr ? result.MoveTo(rows) : Status::Ok();
}

Status ExecuteScript(const std::shared_ptr<Connection>& connection, std::string_view sql, ArrowArrayStream* rows,
                     int64_t* count) {
  const std::vector<StatementText> statements = SplitStatements(sql);
  if (statements.empty()) return BoundStatement(connection, "", 0).Execute(rows, count);
  for (const StatementText& statement : statements) {
    BoundStatement bound(connection, std::string(statement.sql), statement.offset);
    const bool is_last = &statement == &statements.back();
    TESSERA_TRY(bound.Execute(is_last ? rows : nullptr, is_last ? count : nullptr));
  }
  return {};
}

}  // namespace tessera
