// Catalogs of a stranger: values, rows and bytes of a good one are changed, and the checksums made right again. Opening,
// reading and changing such a database works or is an error, soon; nothing is removed that the catalog may still name
// when it is refused.
#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"
#include "tablet/database.h"
#include "tablet/files/tablet_file.h"
#include "tablet/load/table_writer.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tests/tablet/sample_database.h"
#include "tests/torture/campaign.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

struct CatalogColumn {
  const char* table;
  const char* column;
};
constexpr CatalogColumn kColumns[] = {
    {"database", "id"},
    {"database", "next_table_id"},
    {"database", "next_tablet_id"},
    {"tables", "id"},
    {"tables", "name"},
    {"tables", "version"},
    {"tables", "declared_tablet_rows"},
    {"tables", "tablet_rows"},
    {"columns", "table_id"},
    {"columns", "position"},
    {"columns", "name"},
    {"columns", "type"},
    {"columns", "precision"},
    {"columns", "scale"},
    {"columns", "length"},
    {"columns", "not_null"},
    {"columns", "key_position"},
    {"columns", "min"},
    {"columns", "max"},
    {"columns", "null_count"},
    {"columns", "distinct_count"},
    {"columns", "encoded_bytes"},
    {"columns", "sketch"},
    {"tablets", "id"},
    {"tablets", "table_id"},
    {"tablets", "position"},
    {"tablets", "rows"},
    {"tablets", "file_bytes"},
    {"tablets", "header_checksum"},
};

std::string RandomValue(Campaign* campaign, const std::string& column) {
  constexpr const char* kValues[] = {"0",
                                     "1",
                                     "-1",
                                     "2",
                                     "5",
                                     "18",
                                     "19",
                                     "38",
                                     "39",
                                     "255",
                                     "256",
                                     "400",
                                     "2147483647",
                                     "2147483648",
                                     "4294967295",
                                     "4294967296",
                                     "4611686018427387904",
                                     "9223372036854775807",
                                     "-9223372036854775808",
                                     "1.5",
                                     "1e300",
                                     "NULL",
                                     "''",
                                     "'x'",
                                     "'99999999999999999999999999999999999999'",
                                     "'-99999999999999999999999999999999999999'",
                                     "x''",
                                     "x'00'",
                                     "zeroblob(16)",
                                     "zeroblob(4106)",
                                     "CAST(x'61FF' AS TEXT)",
                                     "CAST(x'610062' AS TEXT)",
                                     "'../../x'",
                                     "printf('%.*c', 100000, 'x')"};
  switch (campaign->Random(4)) {
    case 0:
      return fmt::format("{} + {}", column, static_cast<int64_t>(campaign->Random(5)) - 2);
    case 1:
      return fmt::format("{} * 2", column);
    default:
      return kValues[campaign->Random(std::size(kValues))];
  }
}

std::string RandomChange(Campaign* campaign) {
  const CatalogColumn& c = kColumns[campaign->Random(std::size(kColumns))];
  const std::string some = fmt::format(" WHERE rowid IN (SELECT rowid FROM {} ORDER BY rowid LIMIT {} OFFSET {})",
                                       c.table, 1 + campaign->Random(3), campaign->Random(4));
  switch (campaign->Random(8)) {
    case 0:
      return fmt::format("DELETE FROM {}{}", c.table, some);
    case 1:
      return fmt::format("UPDATE OR IGNORE {} SET {} = (SELECT {} FROM {} ORDER BY rowid DESC LIMIT 1){}", c.table,
                         c.column, c.column, c.table, some);
    default:
      return fmt::format("UPDATE OR IGNORE {} SET {} = {}{}", c.table, c.column, RandomValue(campaign, c.column), some);
  }
}

/// Everything that a user does with a database. 0: it worked; 1: it is corrupt; 2: another error that users may see.
int Use(const std::string& directory) {
  auto use = [&]() -> Status {
    TESSERA_ASSIGN(const std::unique_ptr<Database> database, Database::Open(directory, OpenMode::kReadWrite));
    TESSERA_TRY(ContentsOf(database.get()).status());
    TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, database->Read());
    for (const auto& table : snapshot->tables) {
      TESSERA_ASSIGN(const std::unique_ptr<TableWriter> writer, database->Write(table->schema.name));
      RowBatch batch;
      batch.rows = 1;
      for (const ColumnSchema& column : table->schema.columns) {
        batch.columns.emplace_back();
        batch.columns.back().type = column.type;
        batch.columns.back().Append(column.type.storage() == StorageClass::kInt ? Value::Int(column.type, 1)
                                                                                : Value::Null(column.type));
      }
      TESSERA_TRY(writer->Append(batch, 1));
      TESSERA_TRY(writer->Commit());
    }
    TableSchema schema;
    schema.name = "new";
    schema.columns = {{"k", SqlType::Of(TypeId::kInteger), false}};
    TESSERA_TRY(database->CreateTable(schema, false));
    TESSERA_TRY(ContentsOf(database.get()).status());
    return database->DropTable("new", false);
  };
  const Status status = use();
  if (status.ok()) return 0;
  fmt::print("{}", status.message());
  if (status.code() == ErrorCode::kCorrupt) return 1;
  return status.code() == ErrorCode::kConstraint || status.code() == ErrorCode::kSql ? 2 : 3;
}

void Trial(Campaign* campaign, const std::string& base, const std::string& directory) {
  fs::remove_all(directory);
  fs::copy(base, directory, fs::copy_options::recursive);
  const std::string catalog = directory + "/catalog.sqlite";
  std::string what;
  sqlite3* db = nullptr;
  sqlite3_open(catalog.c_str(), &db);
  for (uint64_t i = 0, n = 1 + campaign->Random(2); i < n; ++i) {
    const std::string change = RandomChange(campaign);
    what += change + "; ";
    sqlite3_exec(db, change.c_str(), nullptr, nullptr, nullptr);
  }
  CorrectChecksums(db);
  sqlite3_close(db);
  if (campaign->Random(8) == 0) {
    std::string bytes = ReadWholeFile(catalog);
    const size_t at = campaign->Random(bytes.size());
    bytes[at] = static_cast<char>(campaign->random()());
    WriteNewFile(catalog, bytes);
    what += fmt::format("byte {} is another; ", at);
  }
  const ChildEnd end = RunInChild(20, [&] { return Use(directory); });
  if (!end.Returned() || end.status > 2) {
    campaign->Break(what + end.Text());
    return;
  }
  if (end.status != 1) return;
  for (const int64_t id : {1, 2, 3}) {
    if (!fs::exists(directory + "/" + TabletFileName(id))) campaign->Break(what + "removed a tablet: " + end.Text());
  }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  Campaign campaign("catalogs", argc, argv);
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
  const ScratchFolder scratch;
  if (const Status filled = FillSampleDatabase(scratch / "base", 1); !filled.ok()) {
    fmt::print(stderr, "torture_catalogs: {}\n", filled.message());
    return 2;
  }
  while (campaign.Next()) Trial(&campaign, scratch / "base", scratch / "d");
  return campaign.Finish();
}
