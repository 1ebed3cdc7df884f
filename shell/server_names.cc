#include "shell/server_names.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

/// Takes rows of a schema, a table and one of its columns, in the order of tables.
class NameRows final : public ResultWriter {
 public:
  Status Begin(const std::vector<vm::ResultColumn>&) override { return Status::Ok(); }
  Status Rows(RowBatch&& batch) override {
    for (size_t row = 0; row < batch.rows; ++row) {
      const std::string_view schema = batch.columns[0].Text(row), table = batch.columns[1].Text(row);
      std::string name(table);
      if (schema != "public" && schema != "main") name = std::string(schema) + kSchemaSeparator + name;
      if (tables.empty() || tables.back()->schema.name != name) {
        tables.push_back(std::make_shared<TableInfo>());
        tables.back()->schema.name = std::move(name);
      }
      tables.back()->schema.columns.emplace_back().name = batch.columns[2].Text(row);
    }
    return Status::Ok();
  }
  Status End() override { return Status::Ok(); }
  Status Done(const std::string&) override { return Status::Ok(); }
  Status Text(const std::string&) override { return Status::Ok(); }

  std::vector<std::shared_ptr<TableInfo>> tables;
};

}  // namespace

std::shared_ptr<const Snapshot> NamesOfServer(ShellSession* session) {
  // (A statement that fails would end an open transaction.)
  if (session->transaction() == Session::TransactionState::kFailed) return nullptr;
  NameRows rows;
  const Status status = session->Execute(
      "SELECT table_schema, table_name, column_name FROM information_schema.columns WHERE table_schema NOT IN "
      "('pg_catalog', 'information_schema') ORDER BY table_schema, table_name, ordinal_position",
      &rows);
  if (!status.ok()) return nullptr;
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->tables.assign(rows.tables.begin(), rows.tables.end());
  std::ranges::sort(snapshot->tables, {}, [](const auto& table) { return std::string_view(table->schema.name); });
  return snapshot;
}

}  // namespace tessera
