// Databases, tables, appends, constraints, statistics and snapshots, by one process.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/chunk/chunk_decoder.h"
#include "tablet/database.h"
#include "tablet/files/tablet.h"
#include "tablet/load/primary_key.h"
#include "tablet/load/table_load.h"
#include "tablet/load/table_writer.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/ordered_float.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// The next syncs of a journal that begins with zeros fail.
std::atomic<bool> last_sync_fails{false};

#define ASSERT_OK(expr)                                       \
  do {                                                        \
    const ::tessera::Status ok_ = (expr);                     \
    ASSERT_TRUE(ok_.ok()) << (ok_.ok() ? "" : ok_.message()); \
  } while (0)

class TabletDatabase : public ::testing::Test {
 protected:
  void SetUp() override {
    // In memory if possible: on a busy disk the many small commits would take most of the time.
    const fs::path parent = access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string path = (parent / "tablet-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  static std::unique_ptr<Database> Open(const std::string& path, OpenMode mode = OpenMode::kReadWrite) {
    Result<std::unique_ptr<Database>> database = Database::Open(path, mode);
    EXPECT_TRUE(database.ok()) << database.status().message();
    return database.ok() ? std::move(*database) : nullptr;
  }

  static std::shared_ptr<const TableInfo> Table(Database* database, const std::string& name) {
    auto snapshot = database->Read();
    EXPECT_TRUE(snapshot.ok()) << snapshot.status().message();
    return snapshot.ok() ? (*snapshot)->Find(name) : nullptr;
  }

  /// All rows of a table, decoded.
  static RowBatch Rows(const TableInfo& table) {
    RowBatch rows;
    rows.columns.resize(table.schema.columns.size());
    for (size_t c = 0; c < rows.columns.size(); ++c) {
      rows.columns[c].type = table.schema.columns[c].type;
      for (const auto& tablet : table.tablets) {
        const auto chunk = tablet->Chunk(static_cast<int>(c));
        EXPECT_TRUE(chunk.ok()) << chunk.status().message();
        if (!chunk.ok()) return rows;
        DecodeChunk(**chunk, 0, (*chunk)->rows, &rows.columns[c]);
      }
      rows.rows = rows.columns[c].size();
    }
    return rows;
  }

  /// k, v = k * 10 for k in [first, first + rows).
  static RowBatch Numbers(int64_t first, size_t rows) {
    RowBatch batch;
    batch.rows = rows;
    batch.columns.resize(2);
    for (ColumnVector& c : batch.columns) c.type = SqlType::Of(TypeId::kInteger);
    for (size_t i = 0; i < rows; ++i) {
      batch.columns[0].fixed.push_back(first + static_cast<int64_t>(i));
      batch.columns[1].fixed.push_back((first + static_cast<int64_t>(i)) * 10);
    }
    return batch;
  }

  static TableSchema NumbersSchema(const std::string& name, uint32_t tablet_rows = 0) {
    TableSchema schema;
    schema.name = name;
    schema.columns = {{"k", SqlType::Of(TypeId::kInteger), false}, {"v", SqlType::Of(TypeId::kInteger), false}};
    schema.tablet_rows = tablet_rows;
    return schema;
  }

  static Status Insert(Database* database, const std::string& table, const RowBatch& batch) {
    TESSERA_ASSIGN(std::unique_ptr<TableWriter> writer, database->Write(table));
    TESSERA_TRY(writer->Append(batch, 1));
    return writer->Commit();
  }

  std::vector<std::string> Files(const std::string& database) const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(database)) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  size_t TabletFiles(const std::string& database) const {
    const auto names = Files(database);
    return static_cast<size_t>(
        std::count_if(names.begin(), names.end(), [](const std::string& n) { return n.rfind("tablet-", 0) == 0; }));
  }

  std::string directory_;
};

TEST_F(TabletDatabase, CreateWriteReadDrop) {
  auto database = Open(Path("d"));
  ASSERT_NE(database, nullptr);
  EXPECT_EQ(database->directory(), Path("d"));
  EXPECT_EQ(Table(database.get(), "t"), nullptr);
  ASSERT_OK(database->CreateTable(NumbersSchema("t"), false));
  EXPECT_EQ(database->CreateTable(NumbersSchema("t"), false).message(), "table \"t\" already exists");
  ASSERT_OK(database->CreateTable(NumbersSchema("t"), true));
  auto empty = Table(database.get(), "t");
  ASSERT_NE(empty, nullptr);
  EXPECT_EQ(empty->rows, 0u);
  EXPECT_EQ(empty->statistics.size(), 2u);
  EXPECT_FALSE(empty->statistics[0].has_range);

  ASSERT_OK(Insert(database.get(), "t", Numbers(5, 1000)));
  auto table = Table(database.get(), "t");
  EXPECT_EQ(table->rows, 1000u);
  EXPECT_EQ(empty->rows, 0u) << "a snapshot never changes";
  const RowBatch rows = Rows(*table);
  ASSERT_EQ(rows.rows, 1000u);
  EXPECT_EQ(rows.columns[1].fixed[999], 10040);
  EXPECT_EQ(table->statistics[0].distinct, 1000u);
  EXPECT_TRUE(table->statistics[0].min == 5 && table->statistics[0].max == 1004);

  // Another process, or the next start.
  auto again = Open(Path("d"));
  EXPECT_EQ(Table(again.get(), "t")->rows, 1000u);
  ASSERT_OK(again->DropTable("t", false));
  EXPECT_EQ(again->DropTable("t", false).message(), "table \"t\" does not exist");
  ASSERT_OK(again->DropTable("t", true));
  EXPECT_EQ(Table(database.get(), "t"), nullptr) << "the other sees it at its next Read()";
  EXPECT_EQ(database->Write("t").status().message(), "table \"t\" does not exist");
}

TEST_F(TabletDatabase, DefaultsSurviveAReopen) {
  const auto catalog = [&](const char* sql) {  // the first value, or the changes
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(Path("d/catalog.sqlite").c_str(), &db), SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db, sql, -1, &statement, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    const int value = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int(statement, 0) : sqlite3_changes(db);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
  };
  auto database = Open(Path("d"));
  ASSERT_OK(database->CreateTable(NumbersSchema("plain"), false));
  EXPECT_EQ(catalog("PRAGMA user_version"), 1) << "older programs read it";
  TableSchema schema = NumbersSchema("t");
  schema.columns[1].default_text = "x";
  EXPECT_EQ(database->CreateTable(schema, false).message(), "column \"v\" has a DEFAULT that is no INTEGER");
  schema.columns[1].default_text = "-42";
  ASSERT_OK(database->CreateTable(schema, false));
  EXPECT_EQ(catalog("PRAGMA user_version"), 2);
  ASSERT_OK(Insert(database.get(), "t", Numbers(1, 10)));
  auto again = Open(Path("d"));
  const auto table = Table(again.get(), "t");
  EXPECT_EQ(table->schema.columns[1].default_text, "-42");
  EXPECT_EQ(table->schema.columns[0].default_text, std::nullopt);
  EXPECT_EQ(catalog("SELECT count(*) FROM defaults"), 1);
  EXPECT_EQ(catalog("UPDATE defaults SET value = '43'"), 1);
  const auto damaged = Database::Open(Path("d"), OpenMode::kReadOnly);
  const Status status = damaged.ok() ? (*damaged)->Read().status() : damaged.status();
  EXPECT_NE(status.message().find("wrong checksum"), std::string::npos) << status.message();
  EXPECT_EQ(catalog("UPDATE defaults SET value = '-42'"), 1);
  ASSERT_OK(again->DropTable("t", false));
  EXPECT_EQ(catalog("SELECT count(*) FROM defaults"), 0);
  EXPECT_NE(Table(again.get(), "plain"), nullptr);
}

TEST_F(TabletDatabase, TypesAreKept) {
  auto database = Open(Path("d"));
  const auto names = [&](const std::unique_ptr<Database>& d) {
    std::string all;
    const auto snapshot = d->Read().value();
    for (const EnumType& type : snapshot->types) all += EnumText(type) + ";";
    return all;
  };
  ASSERT_OK(database->CreateType({"size", {"S", "M", ""}}));
  ASSERT_OK(database->CreateType({"mood", {"sad", "it's"}}));
  ASSERT_OK(database->CreateType({"none", {}}));
  EXPECT_EQ(database->CreateType({"mood", {}}).message(), "type \"mood\" already exists");
  EXPECT_EQ(database->CreateType({"", {}}).message(), "a type needs a name");
  EXPECT_EQ(database->CreateType({"x", {"a", "a"}}).message(), "enum label \"a\" is used more than once");
  EXPECT_EQ(database->CreateType({"x", {"a\x1F"}}).code(), ErrorCode::kSql);
  EXPECT_EQ(database->CreateType({"x", {std::string(256, 'a')}}).code(), ErrorCode::kSql);
  auto again = Open(Path("d"));
  EXPECT_EQ(names(again), "mood\x1Fsad\x1Fit's;none;size\x1FS\x1FM\x1F;");
  TableSchema schema = NumbersSchema("t");
  schema.columns[1].type = EnumSqlType({"mood", {"sad", "it's"}});
  schema.columns[1].default_expression = "now()";
  ASSERT_OK(again->CreateTable(schema, false));
  EXPECT_EQ(database->DropType("mood", false).message(), "cannot drop type mood: column \"v\" of table \"t\" has it");
  const TableSchema& kept = Table(database.get(), "t")->schema;
  EXPECT_EQ(kept.columns[1].type, schema.columns[1].type);
  EXPECT_EQ(kept.columns[1].default_expression, "now()");
  EXPECT_EQ(EnumOf(kept.columns[1].type).labels, (std::vector<std::string>{"sad", "it's"}));
  ASSERT_OK(database->DropType("size", false));
  EXPECT_EQ(database->DropType("size", false).message(), "type \"size\" does not exist");
  ASSERT_OK(database->DropType("size", true));
  ASSERT_OK(database->DropTable("t", false));
  ASSERT_OK(database->DropType("mood", false));
  EXPECT_EQ(names(again), "none;");
}

TEST_F(TabletDatabase, MacrosAreKept) {
  auto database = Open(Path("d"));
  const auto names = [](const std::unique_ptr<Database>& d) {
    std::string all;
    const auto snapshot = d->Read().value();
    for (const Macro& m : snapshot->macros) all += m.name + (m.of_rows ? "*" : "") + m.definition + ";";
    return all;
  };
  EXPECT_EQ(names(database), "");
  ASSERT_OK(database->CreateMacro({"two", false, "() AS 2"}, false, false));
  ASSERT_OK(database->CreateMacro({"one", true, "() AS TABLE SELECT 1"}, false, false));
  ASSERT_OK(database->CreateMacro({"one", false, "() AS 1"}, false, false));
  EXPECT_EQ(database->CreateMacro({"one", false, "() AS 3"}, false, false).message(), "macro \"one\" already exists");
  ASSERT_OK(database->CreateMacro({"one", false, "() AS 3"}, false, true));
  EXPECT_EQ(database->CreateMacro({"", false, "() AS 3"}, false, false).message(), "a macro needs a name");
  EXPECT_EQ(database->CreateMacro({"x", false, "() AS '\xFF'"}, false, false).code(), ErrorCode::kSql);
  auto again = Open(Path("d"));
  EXPECT_EQ(names(again), "one() AS 1;one*() AS TABLE SELECT 1;two() AS 2;");
  EXPECT_EQ(FindMacro(again->Read().value()->macros, "one", true)->definition, "() AS TABLE SELECT 1");
  EXPECT_EQ(FindMacro(again->Read().value()->macros, "two", true), nullptr);
  ASSERT_OK(again->CreateMacro({"one", false, "() AS 3"}, true, false));
  ASSERT_OK(again->DropMacro("one", true, false));
  EXPECT_EQ(again->DropMacro("one", true, false).message(), "macro \"one\" does not exist");
  ASSERT_OK(again->DropMacro("one", true, true));
  EXPECT_EQ(names(database), "one() AS 3;two() AS 2;");
  ASSERT_OK(again->DropMacro("one", false, false));
  ASSERT_OK(again->DropMacro("two", false, false));
  EXPECT_EQ(names(Open(Path("d"))), "");
}

TEST_F(TabletDatabase, ViewsAreKept) {
  auto database = Open(Path("d"));
  const auto text = [&](const std::unique_ptr<Database>& d) {
    std::string all;
    const auto snapshot = d->Read().value();
    for (const auto& view : snapshot->views) {
      all += view->name + " = " + view->query;
      for (const ViewColumn& c : view->columns) all += ", " + c.name + " " + c.output + " " + c.type;
      all += ";";
    }
    return all;
  };
  const ViewSchema v = {"v", {{"a", "x", "INTEGER"}, {"b", "x", "TEXT"}}, "SELECT 1 AS x, 'b' AS x"};
  ASSERT_OK(database->CreateView(v, false, false));
  ASSERT_OK(database->CreateView({"one", {{"c", "c", "BIGINT"}}, "SELECT c FROM v"}, true, false));
  EXPECT_EQ(database->CreateView(v, false, false).message(), "view \"v\" already exists");
  ASSERT_OK(database->CreateView({"v", {{"z", "z", "DATE"}}, "SELECT z"}, false, true));
  EXPECT_FALSE(database->CreateView({"", v.columns, v.query}, false, false).ok());
  EXPECT_FALSE(database->CreateView({"w", {}, v.query}, false, false).ok());
  EXPECT_FALSE(database->CreateView({"w", {v.columns[0], v.columns[0]}, v.query}, false, false).ok());
  EXPECT_EQ(database->CreateTable(NumbersSchema("v"), true).message(), "\"v\" is a view");
  EXPECT_EQ(database->ReplaceTable(NumbersSchema("v")).message(), "\"v\" is a view");
  EXPECT_EQ(database->DropTable("v", true).message(), "\"v\" is a view, not a table");
  ASSERT_OK(database->CreateTable(NumbersSchema("t"), false));
  EXPECT_EQ(database->CreateView({"t", v.columns, v.query}, true, false).message(), "table \"t\" already exists");
  const std::string both = "one = SELECT c FROM v, c c BIGINT;v = SELECT 1 AS x, 'b' AS x, a x INTEGER, b x TEXT;";
  auto again = Open(Path("d"));
  EXPECT_EQ(text(again), both);
  EXPECT_EQ(again->DropViews({"v", "nothing"}, false).message(), "view \"nothing\" does not exist");
  EXPECT_EQ(text(again), both);
  ASSERT_OK(again->CreateView({"v", {{"z", "z", "DATE"}}, "SELECT z"}, true, false));
  EXPECT_EQ(text(database), "one = SELECT c FROM v, c c BIGINT;v = SELECT z, z z DATE;");
  ASSERT_OK(again->DropViews({"v", "nothing", "one"}, true));
  EXPECT_EQ(text(database), "");
  ASSERT_OK(database->CreateTable(NumbersSchema("v"), false));
}

TEST_F(TabletDatabase, ViewsAndMacrosAreKeptTogether) {
  const ViewSchema view = {"v", {{"a", "x", "INTEGER"}}, "SELECT f() AS x"};
  const Macro macro = {"f", false, "() AS 2"};
  for (const bool view_first : {true, false}) {
    const std::string path = Path(view_first ? "v" : "m");
    {
      auto database = Open(path);
      if (view_first) ASSERT_OK(database->CreateView(view, false, false));
      ASSERT_OK(database->CreateMacro(macro, false, false));
      if (!view_first) ASSERT_OK(database->CreateView(view, false, false));
    }
    auto again = Open(path);
    const auto both = again->Read().value();
    ASSERT_EQ(both->views.size(), 1u);
    EXPECT_EQ(both->views[0]->query, view.query);
    EXPECT_EQ(both->macros, std::vector<Macro>{macro});
    ASSERT_OK(again->DropMacro("f", false, false));
    const auto rest = Open(path)->Read().value();
    EXPECT_EQ(rest->views.size(), 1u);
    EXPECT_TRUE(rest->macros.empty());
  }
}

TEST_F(TabletDatabase, ConstraintsAreKept) {
  auto database = Open(Path("d"));
  TableSchema schema = NumbersSchema("t");
  schema.checks = {{"positive", "v > 0"}, {"odd \"name\"", "v <> ')'"}};
  schema.unique_keys = {{"both", {1, 0}}, {"one", {1}}};
  schema.columns[1].generated_text = "i * 2";
  ASSERT_OK(database->CreateTable(schema, false));
  const auto again = Open(Path("d"));
  const TableSchema& kept = Table(again.get(), "t")->schema;
  ASSERT_EQ(kept.checks.size(), 2u);
  EXPECT_EQ(kept.checks[0].name, "positive");
  EXPECT_EQ(kept.checks[1].text, "v <> ')'");
  ASSERT_EQ(kept.unique_keys.size(), 2u);
  EXPECT_EQ(kept.unique_keys[0].columns, (std::vector<int>{1, 0}));
  EXPECT_EQ(kept.unique_keys[1].name, "one");
  EXPECT_EQ(kept.columns[1].generated_text, "i * 2");
  EXPECT_EQ(kept.columns[0].generated_text, std::nullopt);
  schema.unique_keys[0].columns = {1, 1};
  schema.name = "u";
  EXPECT_FALSE(database->CreateTable(schema, false).ok());
  ASSERT_OK(again->DropTable("t", false));
  const auto empty = Open(Path("d"));
  EXPECT_EQ(Table(empty.get(), "t"), nullptr);
}

TEST_F(TabletDatabase, IdentifiersAreNeverReused) {
  auto database = Open(Path("d"));
  int64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(database->CreateTable(NumbersSchema("t"), false));
    ASSERT_OK(Insert(database.get(), "t", Numbers(i, 10)));
    const auto table = Table(database.get(), "t");
    EXPECT_GT(table->id, last);
    last = table->id;
    ASSERT_OK(database->DropTable("t", false));
  }
}

TEST_F(TabletDatabase, SchemasThatCannotBe) {
  auto database = Open("");
  auto message = [&](const TableSchema& schema) {
    const Status status = database->CreateTable(schema, false);
    return status.ok() ? std::string() : status.message();
  };
  TableSchema schema = NumbersSchema("t");
  schema.columns[1].name = "k";
  EXPECT_EQ(message(schema), "column \"k\" is specified twice");
  schema = NumbersSchema("t", (1u << 20) + 1);
  EXPECT_EQ(message(schema), "tablet_rows must be 1 to 1048576");
  schema = NumbersSchema("t");
  schema.primary_key = {0, 0};
  EXPECT_NE(message(schema), "");
  schema.primary_key = {7};
  EXPECT_NE(message(schema), "");
  schema = NumbersSchema("t");
  schema.columns.clear();
  EXPECT_NE(message(schema), "");
  schema = NumbersSchema("t");
  schema.columns[0].type = SqlType::Of(TypeId::kNull);
  EXPECT_EQ(message(schema), "column \"k\" cannot have type NULL");
  schema = NumbersSchema("t");
  schema.primary_key = {1};
  EXPECT_EQ(message(schema), "");
  EXPECT_TRUE(Table(database.get(), "t")->schema.columns[1].not_null) << "a primary key is NOT NULL";
  EXPECT_EQ(Table(database.get(), "t")->schema.primary_key, std::vector<int>{1});
}

TEST_F(TabletDatabase, SmallTabletsAreWrittenTogether) {
  auto database = Open(Path("d"));
  ASSERT_OK(database->CreateTable(NumbersSchema("t", 1000), false));
  int64_t next = 0;
  // How many rows come, and how many rows the tablets before the last have then, and the last.
  struct Step {
    size_t rows;
    std::vector<uint32_t> before;
    uint32_t last;
  };
  for (const auto& [rows, before, last] : std::vector<Step>{{1, {}, 1},
                                                            {998, {}, 999},
                                                            {1, {999}, 1},  // 999 rows are not written anew for one
                                                            {1, {999}, 2},
                                                            {2500, {1000, 1000, 1000}, 501},
                                                            {499, {1000, 1000, 1000}, 1000},
                                                            {7, {1000, 1000, 1000, 1000}, 7},
                                                            {10000, std::vector<uint32_t>(14, 1000), 7}}) {
    ASSERT_OK(Insert(database.get(), "t", Numbers(next, rows)));
    next += static_cast<int64_t>(rows);
    const auto table = Table(database.get(), "t");
    ASSERT_EQ(table->rows, static_cast<uint64_t>(next));
    ASSERT_EQ(table->tablets.size(), before.size() + 1);
    for (size_t t = 0; t < before.size(); ++t) EXPECT_EQ(table->tablets[t]->rows(), before[t]);
    EXPECT_EQ(table->tablets.back()->rows(), last);
    const RowBatch all = Rows(*table);
    for (size_t i = 0; i < all.rows; ++i) ASSERT_EQ(all.columns[0].fixed[i], static_cast<int64_t>(i));
    EXPECT_EQ(table->statistics[1].distinct == static_cast<uint64_t>(next) || next > 1024, true);
    uint64_t bytes = 0;
    for (const auto& tablet : table->tablets) bytes += (*tablet->Chunk(1))->encoded_bytes;
    EXPECT_EQ(table->statistics[1].encoded_bytes, bytes);
    EXPECT_EQ(TabletFiles(Path("d")), table->tablets.size()) << "replaced files are gone";
  }
}

TEST_F(TabletDatabase, OneRowAtATimeLeavesFewTablets) {
  auto database = Open(Path("d"));
  ASSERT_OK(database->CreateTable(NumbersSchema("t", 200), false));
  for (int64_t k = 0; k < 450; ++k) {
    ASSERT_OK(Insert(database.get(), "t", Numbers(k, 1)));
    const auto table = Table(database.get(), "t");
    ASSERT_LE(table->tablets.size(), static_cast<size_t>(k / 200 + 5));
    if (k % 50 != 49) continue;
    const RowBatch all = Rows(*table);
    ASSERT_EQ(all.rows, static_cast<size_t>(k + 1));
    for (size_t i = 0; i < all.rows; ++i) ASSERT_EQ(all.columns[0].fixed[i], static_cast<int64_t>(i));
  }
  EXPECT_EQ(Table(Open(Path("d")).get(), "t")->rows, 450u) << "the catalog with short tablets is read again";
}

TEST_F(TabletDatabase, BatchesOfAnySizeKeepTheirOrder) {
  auto database = Open("");
  for (const uint32_t tablet_rows : {0u, 1u, 5000u}) {
    ASSERT_OK(database->CreateTable(NumbersSchema("t", tablet_rows), false));
    auto writer = database->Write("t");
    ASSERT_TRUE(writer.ok());
    int64_t next = 0;
    const size_t most = tablet_rows == 1 ? 5 : 12000;
    for (const size_t rows : {1u, 0u, 3000u, 5u, 4096u, 1u, 12000u, 4095u, 1u, 2u}) {
      const size_t some = std::min<size_t>(rows, most);
      ASSERT_OK((*writer)->Append(Numbers(next, some), static_cast<uint64_t>(next) + 1));
      next += static_cast<int64_t>(some);
    }
    for (int i = 0; i < 100; ++i) ASSERT_OK((*writer)->Append(Numbers(next++, 1), 1));
    ASSERT_OK((*writer)->Commit());
    const RowBatch all = Rows(*Table(database.get(), "t"));
    ASSERT_EQ(all.rows, static_cast<size_t>(next));
    for (size_t i = 0; i < all.rows; ++i) ASSERT_EQ(all.columns[0].fixed[i], static_cast<int64_t>(i));
    ASSERT_OK(database->DropTable("t", false));
  }
}

TEST_F(TabletDatabase, TabletSizeIsChosenAtTheFirstLoad) {
  EXPECT_EQ(ChooseTabletRows(0), 1u << 16);
  EXPECT_EQ(ChooseTabletRows(2'000'000), 1u << 16);
  EXPECT_EQ(ChooseTabletRows(uint64_t{32} << 17), 1u << 17);
  EXPECT_EQ(ChooseTabletRows(6'000'000), 1u << 17);
  EXPECT_EQ(ChooseTabletRows(uint64_t{32} << 20), 1u << 20);
  EXPECT_EQ(ChooseTabletRows(uint64_t{1} << 40), 1u << 20);

  auto database = Open("");
  ASSERT_OK(database->CreateTable(NumbersSchema("t"), false));
  EXPECT_EQ(Table(database.get(), "t")->schema.tablet_rows, 0u);
  ASSERT_OK(Insert(database.get(), "t", Numbers(0, 10)));
  EXPECT_EQ(Table(database.get(), "t")->schema.tablet_rows, 1u << 16);
  // One short tablet is no decision yet.
  auto writer = database->Write("t");
  ASSERT_TRUE(writer.ok());
  for (int i = 0; i < 50; ++i) ASSERT_OK((*writer)->Append(Numbers(10 + i * 100000, 100000), 1));
  ASSERT_OK((*writer)->Commit());
  const auto table = Table(database.get(), "t");
  EXPECT_EQ(table->schema.tablet_rows, 1u << 17);
  EXPECT_EQ(table->rows, 5000010u);
  EXPECT_EQ(table->tablets.size(), 39u);
  EXPECT_NEAR(static_cast<double>(table->statistics[0].distinct), 5000010, 0.05 * 5000010);
  EXPECT_EQ((*table->tablets[3]->Chunk(0))->min == 3 * (1 << 17), true);
}

TEST_F(TabletDatabase, WithoutCommitNothingHappened) {
  auto database = Open(Path("d"));
  ASSERT_OK(database->CreateTable(NumbersSchema("t", 100), false));
  ASSERT_OK(Insert(database.get(), "t", Numbers(0, 150)));
  const auto before = Files(Path("d"));
  {
    auto writer = database->Write("t");
    ASSERT_TRUE(writer.ok());
    ASSERT_OK((*writer)->Append(Numbers(0, 10000), 1));
  }
  EXPECT_EQ(Files(Path("d")), before);
  EXPECT_EQ(Table(database.get(), "t")->rows, 150u);
  {
    auto writer = database->Write("t");
    ASSERT_OK((*writer)->Commit());
    EXPECT_FALSE((*writer)->Append(Numbers(0, 1), 1).ok());
    EXPECT_FALSE((*writer)->Commit().ok());
    // The lock is free although the writer is alive.
    ASSERT_OK(database->CreateTable(NumbersSchema("u"), false));
  }
  EXPECT_EQ(Table(database.get(), "t")->rows, 150u);
}

TEST_F(TabletDatabase, NotNullAndLengths) {
  auto database = Open("");
  TableSchema schema;
  schema.name = "t";
  schema.columns = {{"x", SqlType::Of(TypeId::kInteger), true}, {"s", SqlType::Text(3), false}};
  ASSERT_OK(database->CreateTable(schema, false));
  auto batch = [](const std::vector<Value>& x, const std::vector<std::string>& s) {
    RowBatch b;
    b.rows = x.size();
    b.columns.resize(2);
    b.columns[0].type = SqlType::Of(TypeId::kInteger);
    b.columns[1].type = SqlType::Text();
    for (const Value& v : x) b.columns[0].Append(v);
    for (const std::string& v : s) b.columns[1].Append(Value::Text(v));
    return b;
  };
  const SqlType integer = SqlType::Of(TypeId::kInteger);
  const Value one = Value::Int(integer, 1), null = Value::Null(integer);
  Status status = Insert(database.get(), "t", batch({one, one, null}, {"a", "b", "c"}));
  EXPECT_EQ(status.code(), ErrorCode::kConstraint);
  EXPECT_EQ(status.message(), "null value in column \"x\" of table \"t\" violates not-null constraint, row 3");
  status = Insert(database.get(), "t", batch({one, one}, {"abc", "abcd"}));
  EXPECT_EQ(status.code(), ErrorCode::kConstraint);
  EXPECT_EQ(status.message(), "value too long for type VARCHAR(3) in column \"s\", row 2: \"abcd\"");
  status = Insert(database.get(), "t", batch({one, null}, {"abcd", "a"}));
  EXPECT_EQ(status.message(), "value too long for type VARCHAR(3) in column \"s\", row 1: \"abcd\"")
      << "the first row wins";
  status = Insert(database.get(), "t", batch({null}, {"abcd"}));
  EXPECT_EQ(status.message(), "null value in column \"x\" of table \"t\" violates not-null constraint, row 1");
  ASSERT_OK(Insert(database.get(), "t", batch({one, one}, {"\xC3\xA4\xC3\xB6\xC3\xBC", ""})));
  // A failed Append spoils the load: a hole must not be committed.
  auto writer = database->Write("t");
  EXPECT_FALSE((*writer)->Append(batch({null}, {"a"}), 1).ok());
  EXPECT_FALSE((*writer)->Commit().ok());
  writer->reset();
  EXPECT_EQ(Table(database.get(), "t")->rows, 2u);
}

TEST_F(TabletDatabase, Statistics) {
  auto database = Open("");
  TableSchema schema;
  schema.name = "t";
  schema.tablet_rows = 1000;
  const SqlType integer = SqlType::Of(TypeId::kInteger), real = SqlType::Of(TypeId::kDouble);
  schema.columns = {{"i", integer, false}, {"f", real, false}, {"s", SqlType::Text(), false}, {"n", integer, false}};
  ASSERT_OK(database->CreateTable(schema, false));
  for (int load = 0; load < 3; ++load) {
    RowBatch b;
    b.rows = 1500;
    b.columns.resize(4);
    for (size_t c = 0; c < 4; ++c) b.columns[c].type = schema.columns[c].type;
    for (int i = 0; i < 1500; ++i) {
      b.columns[0].Append(i % 10 == 0 ? Value::Null(integer) : Value::Int(integer, load * 100 - i % 300));
      b.columns[1].Append(Value::Float(real, i % 2 == 0 ? -0.5 : load));
      b.columns[2].Append(Value::Text(std::to_string(i % 40 + load)));
      b.columns[3].Append(Value::Null(integer));
    }
    ASSERT_OK(Insert(database.get(), "t", b));
  }
  const auto table = Table(database.get(), "t");
  ASSERT_EQ(table->rows, 4500u);
  const auto& s = table->statistics;
  EXPECT_TRUE(s[0].has_range && s[0].min == -299 && s[0].max == 199);
  EXPECT_EQ(s[0].null_count, 450u);
  EXPECT_EQ(s[0].distinct, 450u);  // -299 .. 199 without the multiples of 10
  EXPECT_TRUE(s[1].has_range && s[1].min == static_cast<int128_t>(OrderedFloat(-0.5)) &&
              s[1].max == static_cast<int128_t>(OrderedFloat(2)));
  EXPECT_EQ(s[1].distinct, 4u);
  EXPECT_FALSE(s[2].has_range);
  EXPECT_EQ(s[2].distinct, 42u);
  EXPECT_FALSE(s[3].has_range);
  EXPECT_EQ(s[3].null_count, 4500u);
  EXPECT_EQ(s[3].distinct, 0u);
}

TEST_F(TabletDatabase, PrimaryKeyOfOneInteger) {
  auto database = Open("");
  TableSchema schema = NumbersSchema("t", 100);
  schema.primary_key = {0};
  ASSERT_OK(database->CreateTable(schema, false));
  ASSERT_OK(Insert(database.get(), "t", Numbers(0, 250)));
  ASSERT_OK(Insert(database.get(), "t", Numbers(1000, 250)));
  const Status status = Insert(database.get(), "t", Numbers(249, 1));
  EXPECT_EQ(status.code(), ErrorCode::kConstraint);
  EXPECT_EQ(status.message(), "duplicate key value violates primary key of \"t\": (k)=(249)");
  RowBatch twice = Numbers(5000, 300);
  twice.columns[0].fixed[299] = 5003;
  EXPECT_EQ(Insert(database.get(), "t", twice).message(),
            "duplicate key value violates primary key of \"t\": (k)=(5003)");
  // Far apart: no bitmap.
  RowBatch sparse = Numbers(7000, 300);
  sparse.columns[0].fixed[0] = -2000000000;
  sparse.columns[0].fixed[1] = 2000000000;
  ASSERT_OK(Insert(database.get(), "t", sparse));
  sparse.columns[0].fixed[0] = -2000000001;
  EXPECT_EQ(Insert(database.get(), "t", sparse).message(),
            "duplicate key value violates primary key of \"t\": (k)=(2000000000)");
  EXPECT_EQ(Table(database.get(), "t")->rows, 800u);
  EXPECT_EQ(Table(database.get(), "t")->statistics[0].distinct, 800u);
}

TEST_F(TabletDatabase, PrimaryKeysOfEveryType) {
  auto database = Open("");
  const std::vector<std::pair<SqlType, std::vector<const char*>>> types = {
      {SqlType::Of(TypeId::kBoolean), {"true", "false"}},
      {SqlType::Of(TypeId::kBigint), {"-9223372036854775808", "9223372036854775807", "0"}},
      {SqlType::Of(TypeId::kDouble), {"0.5", "NaN", "Infinity", "0"}},
      {SqlType::Of(TypeId::kReal), {"0.5", "NaN", "Infinity", "0"}},
      {SqlType::Decimal(38, 2), {"1.00", "99999999999999999999999.00", "-1.00"}},
      {SqlType::Decimal(10, 2), {"1.00", "2.00"}},
      {SqlType::Of(TypeId::kDate), {"1998-01-01", "2000-01-01"}},
      {SqlType::Of(TypeId::kTimestamp), {"1998-01-01 00:00:00", "2000-01-01 00:00:00.5"}},
      {SqlType::Of(TypeId::kUuid),
       {"00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "7fffffff-ffff-ffff-ffff-ffffffffffff"}},
      {SqlType::Text(), {"", "a", "aa"}},
  };
  int number = 0;
  for (const auto& [type, texts] : types) {
    TableSchema schema;
    schema.name = "t" + std::to_string(++number);
    schema.columns = {{"k", type, false}};
    schema.primary_key = {0};
    schema.tablet_rows = 2;
    ASSERT_OK(database->CreateTable(schema, false));
    auto batch = [&, t = type](const std::vector<const char*>& values) {
      RowBatch b;
      b.rows = values.size();
      b.columns.resize(1);
      b.columns[0].type = t;
      for (const char* text : values) b.columns[0].Append(ParseValue(text, t).value());
      return b;
    };
    ASSERT_OK(Insert(database.get(), schema.name, batch(texts)));
    for (const char* text : texts) {
      EXPECT_EQ(Insert(database.get(), schema.name, batch({text})).message(),
                "duplicate key value violates primary key of \"" + schema.name + "\": (k)=(" + text + ")");
    }
    if (type.IsFloat()) {
      EXPECT_EQ(Insert(database.get(), schema.name, batch({"-0"})).message(),
                "duplicate key value violates primary key of \"" + schema.name + "\": (k)=(-0)")
          << "-0.0 equals 0.0";
    }
  }
}

TEST_F(TabletDatabase, PrimaryKeyOfSeveralColumns) {
  auto database = Open("");
  for (const bool text : {false, true}) {
    TableSchema schema;
    schema.name = text ? "with_text" : "integers";
    schema.columns = {{"a", SqlType::Of(TypeId::kInteger), false},
                      {"x", SqlType::Of(TypeId::kInteger), false},
                      {"b", text ? SqlType::Text() : SqlType::Of(TypeId::kInteger), false}};
    schema.primary_key = {2, 0};
    schema.tablet_rows = 64;
    ASSERT_OK(database->CreateTable(schema, false));
    auto batch = [&](const std::vector<std::pair<int, int>>& keys) {
      RowBatch rows;
      rows.rows = keys.size();
      rows.columns.resize(3);
      for (size_t c = 0; c < 3; ++c) rows.columns[c].type = schema.columns[c].type;
      for (const auto& [a, b] : keys) {
        rows.columns[0].Append(Value::Int(schema.columns[0].type, a));
        rows.columns[1].Append(Value::Int(schema.columns[1].type, 1));
        rows.columns[2].Append(text ? Value::Text(std::to_string(b)) : Value::Int(schema.columns[2].type, b));
      }
      return rows;
    };
    std::vector<std::pair<int, int>> keys;
    for (int a = 0; a < 30; ++a) {
      for (int b = 100; b < 110; ++b) keys.emplace_back(a, b);
    }
    ASSERT_OK(Insert(database.get(), schema.name, batch(keys)));
    ASSERT_OK(Insert(database.get(), schema.name, batch({{100, 0}, {0, 50}, {109, 29}})));
    EXPECT_EQ(Insert(database.get(), schema.name, batch({{31, 100}, {29, 109}})).message(),
              "duplicate key value violates primary key of \"" + schema.name + "\": (b, a)=(109, 29)");
  }
}

TEST_F(TabletDatabase, PrimaryKeyInSeveralPasses) {
  auto directory = DatabaseDirectory::Open(Path("d"), OpenMode::kReadWrite);
  ASSERT_TRUE(directory.ok());
  TableSchema schema = NumbersSchema("t", 500);
  for (const int duplicate : {-1, 0, 1, 4999, 2500}) {
    auto database = Open(Path("d"));
    ASSERT_OK(database->DropTable("t", true));
    ASSERT_OK(database->CreateTable(schema, false));
    RowBatch rows = Numbers(0, 5000);
    for (int64_t& k : rows.columns[0].fixed) k *= 400009;  // sparse
    if (duplicate >= 0) rows.columns[0].fixed[777] = rows.columns[0].fixed[static_cast<size_t>(duplicate)];
    ASSERT_OK(Insert(database.get(), "t", rows));
    auto write = (*directory)->BeginWrite();
    ASSERT_TRUE(write.ok());
    const auto record = write->contents.Find("t");
    auto types = std::make_shared<TabletFile::Types>(2, SqlType::Of(TypeId::kInteger));
    tessera::TabletPointers files;
    for (const TabletRecord& tablet : record->tablets) {
      files.push_back(std::make_shared<const TabletFile>((*directory)->FilePath(TabletFileName(tablet.id)),
                                                         (*directory)->IdentityOf(write->contents, *record, tablet),
                                                         types));
    }
    TableSchema keyed = schema;
    keyed.primary_key = {0};
    for (const uint64_t hashed_rows : {100u, 1000u, 1000000u}) {
      PrimaryKeyLimits limits;
      limits.bitmap_bits = 0;
      limits.hashed_rows = hashed_rows;
      // All new; half of it old.
      const tessera::TabletPointers first(files.begin(), files.begin() + 5), second(files.begin() + 5, files.end());
      EXPECT_EQ(CheckKeys(keyed, {}, files, nullptr, limits).ok(), duplicate < 0);
      // Row 777 is old, so it meets only duplicates that are new.
      EXPECT_EQ(CheckKeys(keyed, first, second, nullptr, limits).ok(), duplicate < 2500);
    }
    const std::atomic<bool> cancel{true};
    EXPECT_EQ(CheckKeys(keyed, {}, files, &cancel).code(), ErrorCode::kCancelled);
  }
}

TEST_F(TabletDatabase, AValueOutsideItsTypeIsNotStored) {
  auto database = Open(Path("d"));
  ASSERT_OK(database->CreateTable(NumbersSchema("t"), false));
  RowBatch rows = Numbers(0, 10);
  rows.columns[0].fixed[3] = int64_t{1} << 31;
  EXPECT_EQ(Insert(database.get(), "t", rows).code(), ErrorCode::kInternal);
  rows.columns[0].fixed[3] = (int64_t{1} << 31) - 1;
  ASSERT_OK(Insert(database.get(), "t", rows));
  EXPECT_EQ(Table(database.get(), "t")->rows, 10u);
}

/// What SQLite opens to sync a directory; a pipe cannot be synced.
TEST_F(TabletDatabase, WhatIsCommittedIsNoErrorAnyMore) {
  auto database = Open(Path("d"));
  ASSERT_OK(database->CreateTable(NumbersSchema("t"), false));
  ASSERT_OK(Insert(database.get(), "t", Numbers(0, 10)));
  EXPECT_EQ(database->TakeWarning(), "");
  // SQLite's last sync of the journal fails when its header is gone already: the transaction is committed. (Fewer rows would
  // go to the commit log.)
  constexpr size_t kRows = 200000;
  RowBatch many = Numbers(10, kRows);
  for (int64_t& value : many.columns[1].fixed) value = value * 2654435761 % 2147483647;
  last_sync_fails = true;
  const std::string warning = "the change is made, but directory \"" + Path("d") +
                              "\" cannot be synced: if the machine loses power, it may be lost";
  const Status inserted = Insert(database.get(), "t", many);
  const std::string said = database->TakeWarning();
  // The old tablet's file stays until somebody has synced the journal: the old catalog may come back.
  const size_t files = TabletFiles(Path("d"));
  const Status created = database->CreateTable(NumbersSchema("u"), false);
  const Status dropped = database->DropTable("u", false);
  const std::string said_again = database->TakeWarning();
  last_sync_fails = false;
  EXPECT_TRUE(inserted.ok() && created.ok() && dropped.ok());
  EXPECT_EQ(said, warning);
  EXPECT_EQ(said_again, warning);
  EXPECT_EQ(files, 5u);
  EXPECT_EQ(Table(database.get(), "t")->rows, kRows + 10);
  ASSERT_OK(Insert(database.get(), "t", Numbers(15, 1)));
  EXPECT_EQ(database->TakeWarning(), "");
}

TEST_F(TabletDatabase, TemporaryDatabaseIsRemoved) {
  std::string path;
  {
    auto database = Open("");
    path = database->directory();
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    ASSERT_OK(database->CreateTable(NumbersSchema("t"), false));
    ASSERT_OK(Insert(database.get(), "t", Numbers(0, 10)));
    auto other = Open("");
    EXPECT_NE(other->directory(), path);
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(Database::Open("", OpenMode::kReadOnly).ok());
}

TEST_F(TabletDatabase, PlacesThatAreNoDatabase) {
  auto code = [](const std::string& path, OpenMode mode) {
    const auto database = Database::Open(path, mode);
    return database.ok() ? std::string("ok") : database.status().message();
  };
  EXPECT_EQ(code(Path("none"), OpenMode::kReadOnly),
            "cannot open database \"" + Path("none") + "\": No such file or directory");
  EXPECT_FALSE(fs::exists(Path("none")));
  EXPECT_EQ(code(Path("none/deeper"), OpenMode::kReadWrite),
            "cannot create database \"" + Path("none/deeper") + "\": No such file or directory");
  std::ofstream(Path("file")) << "text";
  EXPECT_EQ(code(Path("file"), OpenMode::kReadWrite), "cannot open database \"" + Path("file") + "\": Not a directory");
  EXPECT_EQ(code(directory_, OpenMode::kReadWrite),
            "directory \"" + directory_ + "\" holds no database, but other files");
  EXPECT_EQ(code(directory_, OpenMode::kReadOnly), "there is no database in \"" + directory_ + "\"");
  EXPECT_EQ(Files(directory_), std::vector<std::string>{"file"}) << "nothing was created";
  fs::create_directory(Path("empty"));
  EXPECT_EQ(code(Path("empty"), OpenMode::kReadWrite), "ok");
  // A creation that was interrupted.
  fs::create_directory(Path("half"));
  std::ofstream(Path("half/catalog.sqlite")).close();
  EXPECT_NE(code(Path("half"), OpenMode::kReadOnly), "ok");
  EXPECT_EQ(code(Path("half"), OpenMode::kReadWrite), "ok");
}

TEST_F(TabletDatabase, ReadOnlyNeverWrites) {
  const std::string path = Path("d");
  {
    auto database = Open(path);
    ASSERT_OK(database->CreateTable(NumbersSchema("t", 100), false));
    ASSERT_OK(Insert(database.get(), "t", Numbers(0, 250)));
  }
  // What a process that died has left: a reader must let it lie.
  std::ofstream(path + "/writing-99") << "half";
  std::ofstream(path + "/tablet-00000000000000000099.bin") << "half";
  auto times = [&] {
    std::map<std::string, std::pair<uint64_t, fs::file_time_type>> result;
    for (const auto& entry : fs::directory_iterator(path)) {
      result[entry.path().filename().string()] = {entry.file_size(), entry.last_write_time()};
    }
    result["."] = {0, fs::last_write_time(path)};
    return result;
  };
  const auto before = times();
  fs::permissions(path, fs::perms(0555));
  for (const auto& entry : fs::directory_iterator(path)) fs::permissions(entry.path(), fs::perms(0444));
  fs::permissions(directory_, fs::perms(0755));
  // Root may write anywhere, so a child becomes the user `nobody`. Its exit status says where it stopped.
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(10);
    if (access(path.c_str(), W_OK) == 0) _exit(11);
    if (Database::Open(path, OpenMode::kReadWrite).ok()) _exit(12);
    auto database = Database::Open(path, OpenMode::kReadOnly);
    if (!database.ok()) _exit(13);
    auto snapshot = (*database)->Read();
    if (!snapshot.ok() || (*snapshot)->Find("t") == nullptr || (*snapshot)->Find("t")->rows != 250) _exit(14);
    for (const auto& tablet : (*snapshot)->Find("t")->tablets) {
      if (!tablet->Chunk(0).ok()) _exit(15);
    }
    if ((*database)->DropTable("t", false).ok() || (*database)->CreateTable(NumbersSchema("u"), false).ok() ||
        (*database)->Write("t").ok()) {
      _exit(16);
    }
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(times(), before);
  fs::permissions(path, fs::perms(0755));
  for (const auto& entry : fs::directory_iterator(path)) fs::permissions(entry.path(), fs::perms(0644));
  // Writable, but opened for reading: the same.
  {
    auto database = Open(path, OpenMode::kReadOnly);
    EXPECT_EQ(Table(database.get(), "t")->rows, 250u);
    EXPECT_EQ(database->DropTable("t", false).message(), "database \"" + path + "\" is open for reading only");
  }
  EXPECT_EQ(times(), before);
  // Without lock files, as a copy on a medium may be.
  fs::remove(path + "/readers.lock");
  fs::remove(path + "/writer.lock");
  EXPECT_EQ(Table(Open(path, OpenMode::kReadOnly).get(), "t")->rows, 250u);
  EXPECT_FALSE(fs::exists(path + "/readers.lock"));
  // The next writer clears up.
  ASSERT_OK(Open(path)->CreateTable(NumbersSchema("u"), false));
  EXPECT_FALSE(fs::exists(path + "/writing-99"));
  EXPECT_EQ(TabletFiles(path), 3u);
}

TEST_F(TabletDatabase, ASnapshotKeepsItsFiles) {
  const std::string path = Path("d");
  auto writer = Open(path);
  ASSERT_OK(writer->CreateTable(NumbersSchema("t", 100), false));
  ASSERT_OK(writer->CreateTable(NumbersSchema("u", 100), false));
  ASSERT_OK(Insert(writer.get(), "t", Numbers(0, 250)));
  for (const bool own : {false, true}) {
    SCOPED_TRACE(own ? "a reader in the writing process" : "another process");
    auto other = Open(path, OpenMode::kReadOnly);
    Database* const reader = own ? writer.get() : other.get();
    auto snapshot = reader->Read();
    ASSERT_TRUE(snapshot.ok());
    const auto table = (*snapshot)->Find("t");
    snapshot->reset();  // a table alone holds the files too
    const uint64_t rows = table->rows;
    ASSERT_OK(Insert(writer.get(), "t", Numbers(static_cast<int64_t>(rows), 100)));  // replaces the last tablet
    EXPECT_EQ(Rows(*table).rows, rows) << "the tablets were not opened before";
    EXPECT_EQ(Table(writer.get(), "t")->rows, rows + 100);
  }
  // With no reader left the next writer removes what the readers held: two replaced tablets.
  ASSERT_OK(Insert(writer.get(), "u", Numbers(0, 1)));
  EXPECT_EQ(TabletFiles(path), 5u + 1u);

  auto other = Open(path);
  auto snapshot = other->Read();
  ASSERT_OK(writer->DropTable("t", false));
  EXPECT_EQ(TabletFiles(path), 6u) << "the reader's";
  EXPECT_EQ(Rows(*(*snapshot)->Find("t")).rows, 450u);
  snapshot->reset();
  // The writer knows that it left files behind, and looks again when it closes.
  writer.reset();
  EXPECT_EQ(TabletFiles(path), 1u);
  EXPECT_EQ(Table(other.get(), "t"), nullptr);
}

TEST_F(TabletDatabase, ManyInsertsLeaveFewFiles) {
  const std::string path = Path("d");
  for (const bool named : {true, false}) {
    SCOPED_TRACE(named);
    auto database = Open(named ? path : "");
    ASSERT_OK(database->CreateTable(NumbersSchema("t"), false));
    ASSERT_OK(Insert(database.get(), "t", Numbers(0, 1)));
    const auto first = Table(database.get(), "t");
    for (int64_t k = 1; k < 40; ++k) {
      // As a statement does it, which was compiled for what there is now.
      const auto snapshot = database->Read();
      ASSERT_TRUE(snapshot.ok());
      ASSERT_OK(Insert(database.get(), "t", Numbers(k, 1)));
      // Of `first`, of the statement, and the new ones.
      const size_t now = Table(database.get(), "t")->tablets.size();
      EXPECT_LE(now, 3u);
      EXPECT_LE(TabletFiles(database->directory()), 1 + (*snapshot)->Find("t")->tablets.size() + now);
    }
    EXPECT_EQ(Rows(*Table(database.get(), "t")).rows, 40u);
    EXPECT_EQ(Rows(*first).rows, 1u) << "its tablet was not opened before";
  }
  // With a reader elsewhere all stay.
  auto database = Open(path);
  auto other = Open(path, OpenMode::kReadOnly);
  const auto theirs = other->Read();
  const size_t read = (*theirs)->Find("t")->tablets.size();
  EXPECT_EQ(TabletFiles(path), read);
  for (int64_t k = 40; k < 44; ++k) ASSERT_OK(Insert(database.get(), "t", Numbers(k, 1)));
  EXPECT_EQ(TabletFiles(path), read + 4);
  EXPECT_EQ(Rows(*(*theirs)->Find("t")).rows, 40u);
}

TEST_F(TabletDatabase, UnchangedTabletsKeepTheirObjects) {
  auto database = Open("");
  ASSERT_OK(database->CreateTable(NumbersSchema("t", 100), false));
  ASSERT_OK(Insert(database.get(), "t", Numbers(0, 250)));
  const auto before = Table(database.get(), "t");
  EXPECT_EQ(Table(database.get(), "t"), before) << "nothing changed";
  ASSERT_OK(database->CreateTable(NumbersSchema("u"), false));
  EXPECT_EQ(Table(database.get(), "t").get(), before.get()) << "another table changed";
  ASSERT_OK(Insert(database.get(), "t", Numbers(250, 1)));
  const auto after = Table(database.get(), "t");
  EXPECT_NE(after.get(), before.get());
  EXPECT_EQ(after->tablets[0], before->tablets[0]);
  EXPECT_EQ(after->tablets[1], before->tablets[1]);
  EXPECT_EQ(after->tablets[2], before->tablets[2]) << "50 rows are not written anew for one";
  ASSERT_OK(Insert(database.get(), "t", Numbers(251, 10)));
  const auto more = Table(database.get(), "t");
  EXPECT_EQ(more->tablets[1], before->tablets[1]);
  EXPECT_NE(more->tablets[2], before->tablets[2]) << "... but for eleven";
}

TEST_F(TabletDatabase, AllTypesSurviveAReopen) {
  const EnumType kMood = {"mood", {"sad", "ok"}};
  const std::vector<std::pair<SqlType, const char*>> types = {
      {SqlType::Of(TypeId::kBoolean), "true"},
      {SqlType::Of(TypeId::kSmallint), "-5"},
      {SqlType::Of(TypeId::kInteger), "123456"},
      {SqlType::Of(TypeId::kBigint), "-9223372036854775808"},
      {SqlType::Of(TypeId::kReal), "1.25"},
      {SqlType::Of(TypeId::kDouble), "NaN"},
      {SqlType::Decimal(12, 2), "-99.50"},
      {SqlType::Decimal(38, 10), "1234567890123456789012345678.0123456789"},
      {SqlType::Of(TypeId::kDate), "1998-12-01"},
      {SqlType::Of(TypeId::kTimestamp), "1998-12-01 01:02:03.5"},
      {SqlType::Of(TypeId::kUuid), "ffffffff-ffff-ffff-ffff-ffffffffffff"},
      {SqlType::Of(TypeId::kTimestampTz), "1998-12-01 01:02:03.5+00"},
      {SqlType::Of(TypeId::kInterval), "-1 years -2 mons +3 days -04:05:06.5"},
      {SqlType::Of(TypeId::kUuid), "00000000-0000-0000-0000-000000000000"},
      {SqlType::Of(TypeId::kBytea), "\\x00ff5c"},
      {EnumSqlType(kMood), "ok"},
      {SqlType::Text(), "text"},
      {SqlType::Text(7), "varchar"}};
  TableSchema schema;
  schema.name = "weird \"name\" \xC3\xA4";
  RowBatch batch;
  batch.rows = 3;
  for (size_t c = 0; c < types.size(); ++c) {
    schema.columns.push_back({"column " + std::to_string(c), types[c].first, c % 2 == 0});
    ColumnVector column;
    column.type = types[c].first;
    for (int row = 0; row < 3; ++row) {
      column.Append(row == 1 && c % 2 == 1 ? Value::Null(types[c].first)
                                           : ParseValue(types[c].second, types[c].first).value());
    }
    batch.columns.push_back(std::move(column));
  }
  {
    auto database = Open(Path("d"));
    EXPECT_EQ(database->CreateTable(schema, false).message(), "type \"mood\" does not exist");
    ASSERT_OK(database->CreateType(kMood));
    ASSERT_OK(database->CreateTable(schema, false));
    ASSERT_OK(Insert(database.get(), schema.name, batch));
  }
  auto database = Open(Path("d"), OpenMode::kReadOnly);
  const auto table = Table(database.get(), schema.name);
  ASSERT_NE(table, nullptr);
  const RowBatch rows = Rows(*table);
  ASSERT_EQ(rows.rows, 3u);
  for (size_t c = 0; c < types.size(); ++c) {
    EXPECT_EQ(table->schema.columns[c].type, types[c].first);
    EXPECT_EQ(table->schema.columns[c].not_null, c % 2 == 0);
    EXPECT_EQ(table->schema.Find("column " + std::to_string(c)), static_cast<int>(c));
    for (size_t row = 0; row < 3; ++row) {
      std::string text;
      AppendText(rows.columns[c], row, &text);
      EXPECT_EQ(text, row == 1 && c % 2 == 1 ? "" : types[c].second);
      EXPECT_EQ(rows.columns[c].IsNull(row), row == 1 && c % 2 == 1);
    }
  }
}

}  // namespace
}  // namespace tessera

/// Also that of SQLite: a program's functions come before those of the C library.
extern "C" int fdatasync(int fd) {
  constexpr size_t kHeader = 28;  // that much of it are zeros after a commit
  std::string header(kHeader, 1);
  if (tessera::last_sync_fails && pread(fd, header.data(), kHeader, 0) == kHeader &&
      header == std::string(kHeader, '\0') &&
      tessera::fs::read_symlink("/proc/self/fd/" + std::to_string(fd)).string().ends_with("-journal")) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}
