// A statement of a connection with values for its parameters, and what it returned last.
//
// Start at: BoundStatement::Execute. The thread of the connection.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "capi/arrow.h"
#include "capi/arrow_reader.h"
#include "capi/connection.h"
#include "tablet/values/row_batch.h"

namespace tessera {

class BoundStatement {
 public:
  /// `offset`: of its text in that of the caller, to which positions of errors refer.
  BoundStatement(std::shared_ptr<Connection> connection, std::string text, size_t offset)
      : connection_(std::move(connection)), text_(std::move(text)), offset_(offset) {}

  /// Numbers are from 1. Errors: there is no such parameter, of any statement.
  Status Bind(int number, Value value);
  void BindRows(std::unique_ptr<ArrowSource> rows) { rows_ = std::move(rows); }
  void ClearBindings();

  /// Either may be nullptr. A parameter that has a value that is not NULL has that value's type.
  Status Describe(ArrowSchema* columns, ArrowSchema* parameters);
  /// Either may be nullptr. *count: rows that were changed, or -1.
  Status Execute(ArrowArrayStream* rows, int64_t* count);
  const std::string& command_tag() const { return command_tag_; }
  const std::string& text() const { return text_; }

 private:
  Status ExecuteForRows(Session* session, class ArrowResult* result, int64_t* count);
  /// As an error in the text of the caller.
  Status Moved(const Status& error) const;

  const std::shared_ptr<Connection> connection_;
  const std::string text_;
  const size_t offset_;
  std::vector<Value> values_;
  std::unique_ptr<ArrowSource> rows_;
  std::string command_tag_;
};

/// Runs the statements of a text up to the first error; the result is that of the last.
Status ExecuteScript(const std::shared_ptr<Connection>& connection, std::string_view sql, ArrowArrayStream* rows,
                     int64_t* count);

}  // namespace tessera
