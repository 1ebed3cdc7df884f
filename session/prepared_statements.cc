#include "session/prepared_statements.h"

#include <fmt/format.h>

#include <utility>

#include "compiler/query/nearest_name.h"

namespace tessera {
namespace {

Status Absent(const std::string& name, const std::map<std::string, PreparedStatement, std::less<>>& known) {
  std::vector<std::string_view> names;
  for (const auto& [other, prepared] : known) names.push_back(other);
  const std::string nearest = NearestName(name, names);
  std::string hint = nearest.empty() ? "" : "Perhaps you meant prepared statement \"" + nearest + "\".";
  if (names.empty()) hint = "There are none in this session: PREPARE name AS ... makes one.";
  return SqlError(ErrorKind::kUndefinedPrepared, fmt::format("prepared statement \"{}\" does not exist", name), -1,
                  std::move(hint));
}

/// An error in the text that begins at `offset`, as one of the text around it.
Status Moved(const Status& error, size_t offset) {
  if (error.position() < 0) return error;
  return {error.kind(), error.message(), error.hint(), error.position() + static_cast<int>(offset)};
}

}  // namespace

Status PreparedStatements::Prepare(std::string_view sql, size_t at, const Snapshot& snapshot,
                                   const PlanOptions& options) {
  // What comes before the statement is PostgreSQL's, so a statement that is empty stands in for it.
  const std::string head = std::string(sql.substr(0, at)) + " SELECT";
  TESSERA_ASSIGN(Compiled compiled, Compile(head, snapshot, options));
  std::string& name = compiled.statement.prepared.name;
  if (by_name_.contains(name)) {
    return SqlError(ErrorKind::kDuplicatePrepared, fmt::format("prepared statement \"{}\" already exists", name), -1,
                    fmt::format("DEALLOCATE {} removes it.", name));
  }
  PreparedStatement prepared{std::string(sql.substr(at)), {}};
  Result<std::vector<SqlType>> types =
      ParameterTypes(prepared.text, snapshot, options, std::move(compiled.statement.prepared.types));
  if (!types.ok()) return Moved(types.status(), at);
  prepared.types = std::move(*types);
  by_name_.emplace(std::move(name), std::move(prepared));
  return Status::Ok();
}

Result<const PreparedStatement*> PreparedStatements::Find(const std::string& name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return Absent(name, by_name_);
  return &found->second;
}

Result<std::vector<Value>> PreparedStatements::ValuesOf(const PreparedStatement& prepared, const Statement& execute,
                                                        const TimeZone* zone) {
  const auto& [name, types, arguments, positions] = execute.prepared;
  const size_t expected = prepared.types.size();
  if (arguments.size() != expected) {
    std::string spelled;
    for (const SqlType& type : prepared.types) spelled += (spelled.empty() ? "" : ", ") + type.ToString();
    return SqlError(ErrorKind::kUndefinedParameter,
                    fmt::format("wrong number of parameters for prepared statement \"{}\": expected {}, got {}", name,
                                expected, arguments.size()),
                    -1, expected == 0 ? "It has none." : "They are " + spelled + ".");
  }
  std::vector<Value> values;
  values.reserve(expected);
  for (size_t i = 0; i < expected; ++i) {
    Result<Value> value = ParameterValue(arguments[i], i + 1, prepared.types[i], zone);
    if (!value.ok()) return value.status().At(positions[i]);
    values.push_back(std::move(value).value());
  }
  return values;
}

Status PreparedStatements::Deallocate(const std::string& name) {
  if (name.empty()) {
    by_name_.clear();
  } else if (by_name_.erase(name) == 0) {
    return Absent(name, by_name_);
  }
  return Status::Ok();
}

std::string ProgramKeyOfTypes(std::string_view sql, const std::vector<Value>& parameters) {
  // A statement does not begin with a NUL byte.
  std::string key(1, '\0');
  key += sql;
  key += '\0';
  for (const Value& v : parameters) {
    for (const int part : {static_cast<int>(v.type.id), static_cast<int>(v.type.precision),
                           static_cast<int>(v.type.scale), static_cast<int>(v.type.length), v.null ? 1 : 0})
      key.append(reinterpret_cast<const char*>(&part), sizeof(part));
  }
  return key;
}

std::string ProgramKey(std::string_view sql, const std::vector<Value>& parameters) {
  std::string key(sql);
  // A statement has no NUL byte, and each value says its length.
  key += '\0';
  const auto add = [&](const auto& number) { key.append(reinterpret_cast<const char*>(&number), sizeof(number)); };
  for (const Value& v : parameters) {
    add(v.type.id);
    add(v.type.precision);
    add(v.type.scale);
    add(v.type.length);
    add(v.null);
    add(v.i64);
    add(v.f64);
    add(v.wide);
    add(v.text.size());
    key += v.text;
  }
  return key;
}

}  // namespace tessera
