// What goes on in the process, as tables: tessera_queries(), tessera_sessions() and pg_stat_activity; and the calls that
// end it.
#include <algorithm>
#include <string>
#include <utility>

#include "base/clock.h"
#include "compiler/bind/catalog_query.h"
#include "compiler/bind/catalog_tables.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/query/activity_source.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/expr_builder.h"
#include "tablet/values/array_type.h"

namespace tessera {
namespace {

using Rows = std::vector<std::vector<Value>>;

constexpr TypeId kText = TypeId::kText, kNumber = TypeId::kBigint, kMoment = TypeId::kTimestampTz;

Rows NoRows(const Snapshot&) { return {}; }

/// NULL for 0.
Value MomentOf(int64_t microseconds) {
  const SqlType type = SqlType::Of(kMoment);
  return microseconds == 0 ? Value::Null(type) : Value::Int(type, microseconds);
}

Value TextOrNull(const std::string& text) { return text.empty() ? NoText() : CatalogText(text); }

Rows QueryRows(const std::vector<SessionReport>& sessions) {
  Rows rows;
  const int64_t now = MicrosecondsNow();
  for (const SessionReport& s : sessions) {
    if (!s.runs) continue;
    const SqlType number = SqlType::Of(TypeId::kDouble);
    // (A total is an estimate, and may be passed.)
    const double percent =
        s.total == 0 ? 0 : std::min(100.0, 100 * static_cast<double>(s.done) / static_cast<double>(s.total));
    rows.push_back({CatalogNumber(s.pid), CatalogText(s.user), MomentOf(s.query_since),
                    Value::Float(number, static_cast<double>(now - s.query_since) / 1000), TextOrNull(s.step),
                    CatalogNumber(static_cast<int64_t>(s.done)),
                    NumberOrNull(s.total == 0 ? -1 : static_cast<int64_t>(s.total)),
                    s.step.empty() ? NoText() : CatalogText(s.is_bytes ? "bytes" : "rows"),
                    s.total == 0 ? Value::Null(number) : Value::Float(number, percent), CatalogText(s.query)});
  }
  return rows;
}

Rows SessionRows(const std::vector<SessionReport>& sessions) {
  Rows rows;
  for (const SessionReport& s : sessions) {
    rows.push_back({CatalogNumber(s.pid), CatalogText(s.user), TextOrNull(s.application), TextOrNull(s.client),
                    MomentOf(s.since), CatalogText(s.state), MomentOf(s.changed), MomentOf(s.transaction),
                    CatalogNumber(static_cast<int64_t>(s.statements)), TextOrNull(s.query)});
  }
  return rows;
}

Rows ActivityRows(const std::vector<SessionReport>& sessions) {
  Rows rows;
  for (const SessionReport& s : sessions) {
    rows.push_back({CatalogNumber(1),
                    CatalogText(kTheDatabase),
                    CatalogNumber(s.pid),
                    NoNumber(),
                    CatalogNumber(10),
                    CatalogText(s.user),
                    CatalogText(s.application),
                    TextOrNull(s.client),
                    NoText(),
                    CatalogNumber(s.client_port),
                    MomentOf(s.since),
                    MomentOf(s.transaction),
                    MomentOf(s.query_since),
                    MomentOf(s.changed),
                    NoText(),
                    NoText(),
                    CatalogText(s.state),
                    NoNumber(),
                    NoNumber(),
                    NoNumber(),
                    CatalogText(s.query),
                    CatalogText("client backend")});
  }
  return rows;
}

}  // namespace

const std::vector<CatalogTable>& ActivityCatalog() {
  static const std::vector<CatalogTable> tables = {
      {"main",
       "tessera_queries",
       {{"pid", kNumber},
        {"user_name", kText},
        {"since", kMoment},
        {"milliseconds", TypeId::kDouble},
        {"step", kText},
        {"done", kNumber},
        {"total", kNumber},
        {"unit", kText},
        {"percent", TypeId::kDouble},
        {"query", kText}},
       NoRows,
       QueryRows},
      {"main",
       "tessera_sessions",
       {{"pid", kNumber},
        {"user_name", kText},
        {"application", kText},
        {"client", kText},
        {"since", kMoment},
        {"state", kText},
        {"state_since", kMoment},
        {"transaction_since", kMoment},
        {"statements", kNumber},
        {"last_query", kText}},
       NoRows,
       SessionRows},
      {"pg_catalog",
       "pg_stat_activity",
       {{"datid", kNumber},          {"datname", kText},         {"pid", kNumber},
        {"leader_pid", kNumber},     {"usesysid", kNumber},      {"usename", kText},
        {"application_name", kText}, {"client_addr", kText},     {"client_hostname", kText},
        {"client_port", kNumber},    {"backend_start", kMoment}, {"xact_start", kMoment},
        {"query_start", kMoment},    {"state_change", kMoment},  {"wait_event_type", kText},
        {"wait_event", kText},       {"state", kText},           {"backend_xid", kNumber},
        {"backend_xmin", kNumber},   {"query_id", kNumber},      {"query", kText},
        {"backend_type", kText}},
       NoRows,
       ActivityRows},
  };
  return tables;
}

std::unique_ptr<Query> CatalogTableQuery(const CatalogTable& table, const Snapshot& snapshot,
                                         ActivitySource* activity) {
  std::vector<std::string> names;
  std::vector<SqlType> types;
  for (const CatalogColumn& column : table.columns) {
    names.emplace_back(column.name);
    types.push_back(column.element == TypeId::kNull ? SqlType::Of(column.type)
                    : column.is_vector              ? VectorOf(column.element)
                                                    : ArrayOf(SqlType::Of(column.element)));
  }
  const bool is_asked = table.of_sessions != nullptr && activity != nullptr;
  auto rows = is_asked ? table.of_sessions(activity->Sessions()) : table.rows(snapshot);
  for (std::vector<Value>& row : rows) {
    for (size_t c = 0; c < types.size(); ++c) {
      if (IsArrayType(types[c])) row[c].type = types[c];
    }
  }
  return ConstantRows(names, types, rows);
}

Result<ExprPtr> ExpressionBinder::BindOwnPid(int position) {
  NoteMoment();
  const SqlType type = SqlType::Of(TypeId::kInteger);
  ActivitySource* const activity = dialect().activity;
  return activity == nullptr ? MakeNull(type, position) : MakeConstant(Value::Int(type, activity->pid()), position);
}

Result<ExprPtr> ExpressionBinder::BindSignal(std::string_view function, std::vector<ExprPtr>* args, int position) {
  const SqlType flag = SqlType::Of(TypeId::kBoolean);
  // (PostgreSQL's takes a time to wait, too.)
  if (args->size() != 1) return SqlError(std::string(function) + " takes one argument", position);
  TESSERA_ASSIGN(const ExprPtr pid,
                 Coerce(std::move((*args)[0]), SqlType::Of(TypeId::kBigint), CastContext::kImplicit));
  NoteMoment();
  // (A statement that is only described signals no session.)
  if (dialect().activity == nullptr) return MakeNull(flag, position);
  if (!IsConstant(*pid)) {
    return Unsupported(std::string(function) + " of what is not a constant is not supported", position,
                       "SELECT pid FROM tessera_sessions() has the numbers: write one of them.");
  }
  if (pid->constant.null) return MakeNull(flag, position);
  const Result<bool> done = dialect().activity->Signal(pid->constant.i64, function == "pg_terminate_backend");
  if (!done.ok()) return done.status().At(position);
  return MakeConstant(Value::Int(flag, *done ? 1 : 0), position);
}

}  // namespace tessera
