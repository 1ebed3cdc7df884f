// Damaged files: every changed byte of a tablet file is found, a changed byte of the catalog is found or has no effect,
// and nothing crashes (run it under AddressSanitizer).
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/chunk/chunk.h"
#include "tablet/chunk/chunk_decoder.h"
#include "tablet/chunk/tablet_format.h"
#include "tablet/database.h"
#include "tablet/files/tablet.h"
#include "tablet/files/tablet_file.h"
#include "tablet/values/types.h"
#include "tests/tablet/sample_database.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

class TabletCorruption : public ::testing::Test {
 protected:
  void SetUp() override {
    // In memory if possible: on a busy disk the many small commits would take most of the time.
    const fs::path parent = access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string path = (parent / "tablet-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    directory_ = path;
    database_ = directory_ + "/d";
    const Status filled = FillSampleDatabase(database_, 1);
    ASSERT_TRUE(filled.ok()) << filled.message();
  }
  void TearDown() override { fs::remove_all(directory_); }

  static Result<std::string> Contents(const std::string& path, OpenMode mode = OpenMode::kReadOnly) {
    return ContentsOf(path, mode);
  }

  std::string TabletPath(int64_t id) const { return database_ + "/" + TabletFileName(id); }

  std::string directory_, database_;
};

/// One random change to a file's bytes; never none.
std::string Damage(const std::string& bytes, std::mt19937_64* random) {
  std::string damaged = bytes;
  const size_t at = (*random)() % bytes.size();
  switch ((*random)() % 6) {
    case 0:
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << ((*random)() % 8)));
      break;
    case 1:
      damaged[at] = static_cast<char>((*random)());
      break;
    case 2:
      for (size_t i = at; i < std::min(bytes.size(), at + 64); ++i) damaged[i] = static_cast<char>((*random)());
      break;
    case 3:
      for (size_t i = at; i < std::min(bytes.size(), at + 512); ++i) damaged[i] = 0;
      break;
    case 4:
      damaged.resize(at);
      break;
    default:
      damaged.resize(bytes.size() + 1 + (*random)() % 300, static_cast<char>((*random)()));
      break;
  }
  if (damaged == bytes) damaged[at] = static_cast<char>(damaged[at] ^ 1);
  return damaged;
}

TEST_F(TabletCorruption, EveryDamageToATabletIsFound) {
  const Result<std::string> good = Contents(database_);
  ASSERT_TRUE(good.ok()) << good.status().message();
  ASSERT_GT(good->size(), 10000u);
  std::mt19937_64 random(42);
  for (int64_t id = 1; id <= 4; ++id) {
    const std::string bytes = ReadWholeFile(TabletPath(id));
    ASSERT_FALSE(bytes.empty());
    for (int i = 0; i < 150; ++i) {
      std::string damaged;
      if (i < 60) {
        // The header and descriptors, where a wrong number does most.
        damaged = bytes;
        damaged[random() % std::min<size_t>(bytes.size(), 1500)] ^= static_cast<char>(1 << (random() % 8));
      } else {
        damaged = Damage(bytes, &random);
      }
      WriteNewFile(TabletPath(id), damaged);
      const Result<std::string> bad = Contents(database_);
      ASSERT_FALSE(bad.ok()) << "tablet " << id << ", damage " << i;
      ASSERT_EQ(bad.status().code(), ErrorCode::kCorrupt) << bad.status().message();
      ASSERT_NE(bad.status().message().find(TabletPath(id)), std::string::npos) << bad.status().message();
    }
    WriteNewFile(TabletPath(id), bytes);
  }
  EXPECT_EQ(*Contents(database_), *good);
}

TEST_F(TabletCorruption, DescriptorsWithARightChecksumCannotCrashEither) {
  // What only a program that writes wrong files could produce: arbitrary descriptors under right checksums.
  const std::string bytes = ReadWholeFile(TabletPath(1));
  TabletHeader header;
  memcpy(&header, bytes.data(), sizeof header);
  const auto types = std::make_shared<TabletFile::Types>(SampleTypes());
  std::mt19937_64 random(7);
  int opened = 0;
  for (int i = 0; i < 600; ++i) {
    std::vector<EncodedChunk> chunks = ChunksOfTablet(bytes);
    EncodedChunk& victim = chunks[random() % chunks.size()];
    if (i % 2 == 0 && !victim.streams.empty()) {
      victim.streams[random() % victim.streams.size()] = static_cast<uint8_t>(random());
    } else {
      reinterpret_cast<uint8_t*>(&victim.descriptor)[random() % offsetof(ChunkDescriptor, streams)] =
          static_cast<uint8_t>(random());
    }
    TabletIdentity identity;
    memcpy(identity.database.data(), header.database, sizeof header.database);
    identity.table_id = header.table_id;
    identity.tablet_id = header.tablet_id;
    identity.rows = header.rows;
    const std::vector<uint8_t> head = BuildTabletHeader(&chunks, &identity);
    const std::string path = directory_ + "/crafted";
    Result<int> fd = WriteTabletFile(path, head, chunks);
    ASSERT_TRUE(fd.ok());
    close(*fd);
    const TabletFile tablet(path, identity, types);
    for (size_t c = 0; c < types->size(); ++c) {
      const auto chunk = tablet.Chunk(static_cast<int>(c));
      if (!chunk.ok()) {
        EXPECT_EQ(chunk.status().code(), ErrorCode::kCorrupt);
        continue;
      }
      ++opened;
      ColumnVector values;
      values.type = (*types)[c];
      DecodeChunk(**chunk, 0, (*chunk)->rows, &values);
      EXPECT_EQ(values.size(), identity.rows);
    }
  }
  EXPECT_GT(opened, 600) << "most chunks of each file are untouched";
}

TEST_F(TabletCorruption, RangesOfTextsAndNumbersOfRowsThatLieAreRefused) {
  const std::string bytes = ReadWholeFile(TabletPath(1));
  TabletHeader header;
  memcpy(&header, bytes.data(), sizeof header);
  const auto types = std::make_shared<TabletFile::Types>(SampleTypes());
  const auto open = [&](std::vector<EncodedChunk> chunks, uint32_t rows, int column) {
    TabletIdentity identity;
    memcpy(identity.database.data(), header.database, sizeof header.database);
    identity.table_id = header.table_id;
    identity.tablet_id = header.tablet_id;
    identity.rows = rows;
    const std::vector<uint8_t> head = BuildTabletHeader(&chunks, &identity);
    const std::string path = directory_ + "/crafted";
    Result<int> fd = WriteTabletFile(path, head, chunks);
    EXPECT_TRUE(fd.ok());
    close(*fd);
    return TabletFile(path, identity, types).StorageOf(column).status();
  };
  int texts = 0;
  for (size_t c = 0; c < types->size(); ++c) {
    if ((*types)[c].storage() != StorageClass::kText) continue;
    ++texts;
    for (const int128_t off : {-1, 1, 1 << 20}) {
      std::vector<EncodedChunk> chunks = ChunksOfTablet(bytes);
      ChunkDescriptor& d = chunks[c].descriptor;
      EXPECT_TRUE(open(chunks, header.rows, static_cast<int>(c)).ok());
      d.max += off;
      EXPECT_NE(open(chunks, header.rows, static_cast<int>(c)).message().find("a wrong range"), std::string::npos);
      d.max -= off;
      d.min += off;
      EXPECT_NE(open(chunks, header.rows, static_cast<int>(c)).message().find("a wrong range"), std::string::npos);
    }
  }
  EXPECT_GT(texts, 1);
  const Status status = open(ChunksOfTablet(bytes), kGreatestTabletRows + 1, 0);
  EXPECT_NE(status.message().find("it has 1048577 rows"), std::string::npos) << status.message();
}

TEST_F(TabletCorruption, TabletsOfOthersAreRefused) {
  ASSERT_TRUE(FillSampleDatabase(directory_ + "/other", 1).ok());
  const std::string mine = ReadWholeFile(TabletPath(1));
  auto reason = [&] {
    const Result<std::string> contents = Contents(database_);
    return contents.ok() ? std::string("none") : contents.status().message();
  };
  // The same values, the same numbers, but another database's.
  WriteNewFile(TabletPath(1), ReadWholeFile(directory_ + "/other/" + TabletFileName(1)));
  EXPECT_NE(reason().find("it is another tablet than the catalog means"), std::string::npos) << reason();
  WriteNewFile(TabletPath(1), ReadWholeFile(TabletPath(2)));
  EXPECT_NE(reason().find("is corrupt"), std::string::npos) << reason();
  std::string newer = mine;
  newer[8] = 3;
  WriteNewFile(TabletPath(1), newer);
  EXPECT_NE(reason().find("it has format version 3, this program reads version 2 and older ones"), std::string::npos)
      << reason();
  WriteNewFile(TabletPath(1), "not a tablet");
  EXPECT_NE(reason().find("it has 12 bytes instead of"), std::string::npos) << reason();
  fs::remove(TabletPath(1));
  EXPECT_NE(reason().find("it is not there"), std::string::npos) << reason();
  fs::create_directory(TabletPath(1));
  EXPECT_NE(reason().find("is corrupt"), std::string::npos) << reason();
  fs::remove(TabletPath(1));
  WriteNewFile(TabletPath(1), mine);
  EXPECT_EQ(reason(), "none");
}

TEST_F(TabletCorruption, DamageToTheCatalogIsFoundOrWithoutEffect) {
  const Result<std::string> good = Contents(database_);
  ASSERT_TRUE(good.ok());
  const std::string path = database_ + "/catalog.sqlite";
  const std::string bytes = ReadWholeFile(path);
  const std::string small = ReadWholeFile(TabletPath(4));
  std::mt19937_64 random(1234);
  int found = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string damaged = Damage(bytes, &random);
    WriteNewFile(path, damaged);
    // Reading only, and with the writer's sweep of files, which must not believe a damaged catalog.
    const OpenMode mode = i % 32 == 0 ? OpenMode::kReadWrite : OpenMode::kReadOnly;
    const Result<std::string> bad = Contents(database_, mode);
    if (bad.ok()) {
      ASSERT_EQ(*bad, *good) << "damage " << i;
    } else {
      ++found;
      ASSERT_EQ(bad.status().code(), ErrorCode::kCorrupt) << "damage " << i << ": " << bad.status().message();
    }
    if (i % 32 == 0) {
      if (auto database = Database::Open(database_, OpenMode::kReadWrite); database.ok()) {
        TableSchema schema;
        schema.name = "new";
        schema.columns = {{"k", SqlType::Of(TypeId::kInteger), false}};
        (void)(*database)->CreateTable(schema, false);
        (void)(*database)->DropTable("small", false);
      }
      for (int64_t id = 1; id <= 3; ++id) ASSERT_TRUE(fs::exists(TabletPath(id))) << "damage " << i;
      // The drop may have worked, and small's tablet be gone.
      WriteNewFile(TabletPath(4), small);
    }
    WriteNewFile(path, bytes);
    for (const char* rest : {"/catalog.sqlite-wal", "/catalog.sqlite-shm"}) {
      EXPECT_FALSE(fs::exists(database_ + rest)) << "damage " << i;
      fs::remove(database_ + rest);
    }
    // The journal of a change stays, but with nothing in it that counts.
    const std::string journal = database_ + "/catalog.sqlite-journal";
    if (fs::exists(journal)) {
      const std::string head = ReadWholeFile(journal).substr(0, 8);
      EXPECT_EQ(head, std::string(head.size(), '\0')) << "damage " << i;
    }
    fs::remove(journal);
  }
  EXPECT_GT(found, 150) << "much of the file is free space, but not that much";
  EXPECT_EQ(*Contents(database_), *good);
}

TEST_F(TabletCorruption, ALostCatalogDoesNotCostTheTablets) {
  const std::string path = database_ + "/catalog.sqlite";
  // An empty catalog looks like an interrupted creation, but for the tablets: a new one would have them swept.
  for (const bool empty : {true, false}) {
    fs::remove(path);
    if (empty) WriteNewFile(path, "");
    for (const OpenMode mode : {OpenMode::kReadOnly, OpenMode::kReadWrite}) {
      const auto database = Database::Open(database_, mode);
      ASSERT_FALSE(database.ok());
      EXPECT_EQ(database.status().code(), ErrorCode::kCorrupt) << database.status().message();
      EXPECT_TRUE(fs::exists(TabletPath(1)));
    }
  }
}

TEST_F(TabletCorruption, CatalogsOfOtherPrograms) {
  const std::string path = directory_ + "/foreign";
  fs::create_directory(path);
  auto message = [&](OpenMode mode) {
    const auto database = Database::Open(path, mode);
    return database.ok() ? std::string("ok") : database.status().message();
  };
  WriteNewFile(path + "/catalog.sqlite",
               "plain text that is long enough to be taken for the header of some database file, but is not; "
               "it only goes on and on");
  EXPECT_EQ(message(OpenMode::kReadOnly),
            "catalog \"" + path + "/catalog.sqlite\" is corrupt: it is not a database of this program");
  EXPECT_EQ(message(OpenMode::kReadWrite), message(OpenMode::kReadOnly));
  fs::remove(path + "/catalog.sqlite");
  auto execute = [&](const std::string& file, const char* sql) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(file.c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
  };
  execute(path + "/catalog.sqlite", "CREATE TABLE t (a)");
  EXPECT_EQ(message(OpenMode::kReadWrite),
            "catalog \"" + path + "/catalog.sqlite\" is corrupt: it is not a database of this program");
  execute(database_ + "/catalog.sqlite", "PRAGMA user_version = 99");
  const auto newer = Database::Open(database_, OpenMode::kReadOnly);
  ASSERT_FALSE(newer.ok());
  EXPECT_EQ(newer.status().code(), ErrorCode::kCorrupt);
  EXPECT_EQ(newer.status().message(),
            "database \"" + database_ + "\" has format version 99, this program reads version 12");
  EXPECT_EQ(newer.status().hint(), "Use the newer program that wrote it.");
}

}  // namespace
}  // namespace tessera
