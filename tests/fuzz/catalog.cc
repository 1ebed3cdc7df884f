// Bytes as changes of a good catalog's values, with the checksums made right afterwards: the database is refused as
// corrupt, or all of it can be read.
//
// A change is: a byte for the column, one for the row, one for the kind of the value, and the value (an integer of 8
// bytes, or a byte for the length and a text or blob).
#include <sqlite3.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "tests/tablet/sample_database.h"

namespace {

namespace fs = std::filesystem;

constexpr const char* kColumns[][2] = {
    {"database", "id"},
    {"database", "next_table_id"},
    {"database", "next_tablet_id"},
    {"tables", "id"},
    {"tables", "name"},
    {"tables", "version"},
    {"tables", "tablet_rows"},
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
    {"columns", "sketch"},
    {"columns", "distinct_count"},
    {"columns", "encoded_bytes"},
    {"tablets", "id"},
    {"tablets", "table_id"},
    {"tablets", "position"},
    {"tablets", "rows"},
    {"tablets", "file_bytes"},
    {"tables", "declared_tablet_rows"},
};
constexpr size_t kColumnCount = sizeof kColumns / sizeof kColumns[0];

/// A database of this process, made once.
struct Sample {
  Sample() {
    std::string path = "/tmp/tessera-fuzz-XXXXXX";
    if (access("/dev/shm", W_OK) == 0) path = "/dev/shm/tessera-fuzz-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) std::abort();
    folder = path;
    if (!tessera::FillSampleDatabase(folder + "/d", 1).ok()) std::abort();
    catalog = tessera::ReadWholeFile(folder + "/d/catalog.sqlite");
  }
  ~Sample() { fs::remove_all(folder); }
  std::string folder, catalog;
};

/// Without making text of the values, which would take most of the time.
tessera::Status ReadAll(const std::string& directory) {
  TESSERA_ASSIGN(const auto database, tessera::Database::Open(directory, tessera::OpenMode::kReadOnly));
  TESSERA_ASSIGN(const auto snapshot, database->Read());
  for (const auto& table : snapshot->tables) {
    for (const auto& tablet : table->tablets) {
      for (size_t c = 0; c < table->schema.columns.size(); ++c) {
        TESSERA_TRY(tablet->Chunk(static_cast<int>(c)).status());
      }
    }
  }
  return {};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Sample sample;
  const std::string directory = sample.folder + "/d", path = directory + "/catalog.sqlite";
  tessera::WriteNewFile(path, sample.catalog);
  sqlite3* db = nullptr;
  if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) std::abort();
  sqlite3_exec(db, "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF", nullptr, nullptr, nullptr);
  constexpr int kGreatestChanges = 8;
  for (int i = 0; i < kGreatestChanges && size >= 12; ++i) {
    const auto& column = kColumns[data[0] % kColumnCount];
    const std::string sql = std::string("UPDATE OR IGNORE ") + column[0] + " SET " + column[1] +
                            " = ? WHERE rowid = (SELECT rowid FROM " + column[0] + " LIMIT 1 OFFSET " +
                            std::to_string(data[1] % 9) + ")";
    const int kind = data[2] % 5;
    size_t used = 11;
    sqlite3_stmt* update = nullptr;
    if (sqlite3_prepare_v2(db, sql.c_str(), -1, &update, nullptr) != SQLITE_OK) std::abort();
    if (kind <= 1) {
      int64_t value;
      memcpy(&value, data + 3, sizeof value);
      sqlite3_bind_int64(update, 1, kind == 0 ? value : value % 1024);
    } else if (kind == 2) {
      sqlite3_bind_null(update, 1);
    } else {
      const size_t length = std::min<size_t>(data[3], size - 4);
      const char* const text = reinterpret_cast<const char*>(data + 4);
      if (kind == 3) sqlite3_bind_text(update, 1, text, static_cast<int>(length), SQLITE_STATIC);
      if (kind == 4) sqlite3_bind_blob(update, 1, text, static_cast<int>(length), SQLITE_STATIC);
      used = 4 + length;
    }
    sqlite3_step(update);
    sqlite3_finalize(update);
    data += used;
    size -= used;
  }
  tessera::CorrectChecksums(db);
  sqlite3_close(db);
  const tessera::Status read = ReadAll(directory);
  if (!read.ok() && read.code() != tessera::ErrorCode::kCorrupt) std::abort();
  return 0;
}
