#include "columnar/array_share.h"

#include <optional>
#include <utility>

#include "columnar/array_values.h"
#include "columnar/arrow_calls.h"

namespace tessera::columnar {

FileError ErrorOfShare(const Status& status, const std::string& name, const std::string& place) {
  const std::string where = "\"" + name + "\", " + place + ": ", &message = status.message();
  FileError error;
  error.kind = status.kind();
  error.message = message.starts_with(where) ? message.substr(where.size()) : message;
  error.hint = status.hint();
  return error;
}

FileRows ArrayShare::Read() const {
  FileRows rows;
  for (const ColumnarField& field : file_.fields) {
    if (field.problem.empty()) continue;
    FileError& error = rows.error.emplace();
    error.kind = ErrorKind::kFeatureNotSupported;
    error.column = field.name;
    error.message = field.problem;
    error.hint = "Name the other columns in the statement instead of *: only those that it names are read.";
    return rows;
  }
  const std::string name = file_.source.name;
  const Status status = Guarded(name, place_, [&]() -> Status {
    Arrays arrays;
    int64_t count = 0;
    TESSERA_TRY(ReadArrays(&arrays, &count));
    rows.batch.rows = static_cast<size_t>(count);
    Append(arrays, &rows);
    return {};
  });
  if (status.ok()) return rows;
  rows.batch = {};
  rows.error = ErrorOfShare(status, name, place_);
  return rows;
}

void ArrayShare::Append(const Arrays& arrays, FileRows* rows) const {
  const auto fail = [&](size_t column, std::string message, ErrorKind kind) {
    FileError& error = rows->error.emplace();
    error.kind = kind;
    error.column = file_.fields[column].name;
    error.message = std::move(message);
    rows->batch = {};
  };
  rows->batch.columns.resize(arrays.size());
  for (size_t c = 0; c < arrays.size(); ++c) {
    ColumnVector& column = rows->batch.columns[c];
    column.type = file_.fields[c].type;
    if (arrays[c]->length() != static_cast<int64_t>(rows->batch.rows))
      return fail(c, "the column has another number of values than its rows", ErrorKind::kBadCopyFormat);
    int64_t before = 0;
    for (const std::shared_ptr<arrow::Array>& chunk : arrays[c]->chunks()) {
      if (std::optional<BadValue> bad = AppendArray(*chunk, &column))
        return fail(c, "row " + std::to_string(before + bad->row + 1) + ": " + bad->message, bad->kind);
      before += chunk->length();
    }
  }
}

}  // namespace tessera::columnar
