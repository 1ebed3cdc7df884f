#include "tests/tablet/sample_database.h"

#include <sqlite3.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>

#include "tablet/chunk/chunk_decoder.h"
#include "tablet/chunk/tablet_format.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {
namespace {

const char* const kColumnNames[] = {"constant", "frame", "bigint", "wide", "dictionary", "plain", "real"};

/// The bytes that a checksum of the catalog covers.
class Covered {
 public:
  void Integer(int64_t v) { bytes_.append(reinterpret_cast<const char*>(&v), sizeof v); }
  void Wide(int128_t v) { bytes_.append(reinterpret_cast<const char*>(&v), sizeof v); }
  void Text(std::string_view text) {
    Integer(static_cast<int64_t>(text.size()));
    bytes_.append(text);
  }
  int64_t Checksum() const { return static_cast<int64_t>(XXH3_64bits(bytes_.data(), bytes_.size())); }

 private:
  std::string bytes_;
};

/// The rows of a query, each value as the text that SQLite makes of it; NULL is the empty text.
std::vector<std::vector<std::string>> Rows(sqlite3* db, const std::string& sql) {
  std::vector<std::vector<std::string>> rows;
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) return rows;
  while (sqlite3_step(statement) == SQLITE_ROW) {
    std::vector<std::string> row;
    for (int c = 0; c < sqlite3_column_count(statement); ++c) {
      const char* text = static_cast<const char*>(sqlite3_column_blob(statement, c));
      row.emplace_back(text == nullptr ? "" : text, static_cast<size_t>(sqlite3_column_bytes(statement, c)));
    }
    rows.push_back(std::move(row));
  }
  sqlite3_finalize(statement);
  return rows;
}

int64_t Number(const std::string& text) { return std::strtoll(text.c_str(), nullptr, 10); }

int128_t WideNumber(const std::string& text) {
  Result<Value> value = ParseValue(text, SqlType::Decimal(38, 0));
  return value.ok() ? value->wide : 0;
}

/// Integers are asked for as such: of a real number or a text SQLite has a text of its own.
constexpr char kTables[] =
    "SELECT CAST(id AS INTEGER), name, CAST(version AS INTEGER), CAST(declared_tablet_rows AS INTEGER), "
    "CAST(tablet_rows AS INTEGER) FROM tables ORDER BY id";
constexpr char kColumns[] =
    "SELECT name, CAST(type AS INTEGER), CAST(precision AS INTEGER), CAST(scale AS INTEGER), CAST(length AS INTEGER), "
    "not_null <> 0, min IS NOT NULL AND max IS NOT NULL, min, max, CAST(null_count AS INTEGER), "
    "CAST(distinct_count AS INTEGER), CAST(encoded_bytes AS INTEGER), key_position, key_position IS NOT NULL FROM "
    "columns "
    "WHERE table_id = ";
constexpr char kTablets[] =
    "SELECT CAST(id AS INTEGER), CAST(rows AS INTEGER), CAST(file_bytes AS INTEGER), CAST(header_checksum AS INTEGER) "
    "FROM tablets WHERE table_id = ";

int64_t TableChecksum(sqlite3* db, const std::vector<std::string>& table) {
  Covered covered;
  covered.Integer(Number(table[0]));
  covered.Text(table[1]);
  for (size_t i = 2; i < 5; ++i) covered.Integer(i == 2 ? Number(table[i]) : static_cast<uint32_t>(Number(table[i])));
  const auto columns = Rows(db, kColumns + table[0] + " ORDER BY position");
  covered.Integer(static_cast<int64_t>(columns.size()));
  std::vector<std::pair<int64_t, int64_t>> key;
  for (size_t c = 0; c < columns.size(); ++c) {
    const auto& column = columns[c];
    covered.Text(column[0]);
    covered.Integer(static_cast<uint8_t>(Number(column[1])));
    covered.Integer(static_cast<uint8_t>(Number(column[2])));
    covered.Integer(static_cast<uint8_t>(Number(column[3])));
    covered.Integer(static_cast<int32_t>(Number(column[4])));
    covered.Integer(Number(column[5]));
    const bool range = Number(column[6]) != 0;
    covered.Integer(range);
    for (size_t i = 7; i < 9; ++i) covered.Wide(range ? WideNumber(column[i]) : 0);
    for (size_t i = 9; i < 12; ++i) covered.Integer(Number(column[i]));
    if (Number(column[13]) != 0) key.emplace_back(Number(column[12]), static_cast<int64_t>(c));
  }
  std::sort(key.begin(), key.end());
  covered.Integer(static_cast<int64_t>(key.size()));
  for (const auto& [position, column] : key) covered.Integer(column);
  const auto tablets = Rows(db, kTablets + table[0] + " ORDER BY position");
  covered.Integer(static_cast<int64_t>(tablets.size()));
  for (const auto& tablet : tablets) {
    covered.Integer(Number(tablet[0]));
    covered.Integer(static_cast<uint32_t>(Number(tablet[1])));
    covered.Integer(Number(tablet[2]));
    covered.Integer(Number(tablet[3]));
  }
  return covered.Checksum();
}

}  // namespace

std::vector<SqlType> SampleTypes() {
  const SqlType integer = SqlType::Of(TypeId::kInteger);
  return {integer,         integer,           SqlType::Of(TypeId::kBigint), SqlType::Decimal(38, 0),
          SqlType::Text(), SqlType::Text(20), SqlType::Of(TypeId::kReal)};
}

Status FillSampleDatabase(const std::string& directory, int seed) {
  TESSERA_ASSIGN(const std::unique_ptr<Database> database, Database::Open(directory, OpenMode::kReadWrite));
  const std::vector<SqlType> types = SampleTypes();
  TableSchema schema, small;
  schema.name = "t";
  schema.tablet_rows = 400;
  RowBatch batch, keys;
  batch.rows = 1000;
  for (size_t c = 0; c < types.size(); ++c) {
    schema.columns.push_back({kColumnNames[c], types[c], false});
    batch.columns.emplace_back();
    batch.columns.back().type = types[c];
  }
  small.name = "small";
  small.columns = {{"k", types[0], false}};
  small.primary_key = {0};
  TESSERA_TRY(database->CreateTable(schema, false));
  TESSERA_TRY(database->CreateTable(small, false));
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  for (int i = 0; i < 1000; ++i) {
    const int64_t v = static_cast<int64_t>(random());
    const bool null = i % 17 == 3;
    auto add = [&](size_t c, Value value) {
      batch.columns[c].Append(null && c > 0 ? Value::Null(types[c]) : std::move(value));
    };
    add(0, Value::Int(types[0], seed));
    add(1, Value::Int(types[1], v & 1023));
    add(2, Value::Int(types[2], v));
    add(3, Value::Wide(types[3], (PowerOf10(38) - 1) / (v | 1)));
    add(4, Value::Text(std::to_string(v & 31)));
    add(5, Value::Text(std::to_string(v & 0xFFFFFFFFFF)));
    add(6, Value::Float(types[6], static_cast<float>(v)));
  }
  keys.rows = 5;
  keys.columns.resize(1);
  keys.columns[0].type = types[0];
  keys.columns[0].fixed = {5, 4, 3, 2, 1};
  for (const auto& [name, rows] : {std::pair<const char*, const RowBatch*>{"t", &batch}, {"small", &keys}}) {
    TESSERA_ASSIGN(const std::unique_ptr<TableWriter> writer, database->Write(name));
    TESSERA_TRY(writer->Append(*rows, 1));
    TESSERA_TRY(writer->Commit());
  }
  return {};
}

Result<std::string> ContentsOf(Database* database) {
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, database->Read());
  std::string text;
  auto range = [](int128_t v) { return ToText(Value::Wide(SqlType::Decimal(38, 0), v)) + " "; };
  for (const auto& table : snapshot->tables) {
    text += table->schema.name + " " + std::to_string(table->rows) + " " + std::to_string(table->id) + " " +
            std::to_string(table->schema.tablet_rows) + "\n";
    for (int column : table->schema.primary_key) text += "key " + std::to_string(column) + "\n";
    for (size_t c = 0; c < table->schema.columns.size(); ++c) {
      const ColumnSchema& column = table->schema.columns[c];
      const ColumnStatistics& s = table->statistics[c];
      text += column.name + " " + column.type.ToString() + (column.not_null ? " not null " : " ") + range(s.min) +
              range(s.max) + std::to_string(s.has_range) + " " + std::to_string(s.null_count) + " " +
              std::to_string(s.distinct) + " " + std::to_string(s.encoded_bytes) + "\n";
      for (const auto& tablet : table->tablets) {
        TESSERA_ASSIGN(const ChunkPointer chunk, tablet->Chunk(static_cast<int>(c)));
        ColumnVector values;
        values.type = column.type;
        DecodeChunk(*chunk, 0, chunk->rows, &values);
        for (size_t row = 0; row < values.size(); ++row) {
          if (values.IsNull(row)) text += "NULL";
          AppendText(values, row, &text);
          text += ' ';
        }
      }
      text += '\n';
    }
  }
  return text;
}

Result<std::string> ContentsOf(const std::string& directory, OpenMode mode) {
  TESSERA_ASSIGN(const std::unique_ptr<Database> database, Database::Open(directory, mode));
  return ContentsOf(database.get());
}

void CorrectChecksums(sqlite3* catalog) {
  auto execute = [&](const std::string& sql) { sqlite3_exec(catalog, sql.c_str(), nullptr, nullptr, nullptr); };
  execute("BEGIN");
  Covered covered;
  const auto database =
      Rows(catalog, "SELECT id, CAST(next_table_id AS INTEGER), CAST(next_tablet_id AS INTEGER) FROM database");
  if (!database.empty()) {
    covered.Text(database[0][0]);
    covered.Integer(Number(database[0][1]));
    covered.Integer(Number(database[0][2]));
    for (const auto& log : Rows(catalog, "SELECT CAST(generation AS INTEGER) FROM log"))
      covered.Integer(Number(log[0]));
  }
  for (const auto& table : Rows(catalog, kTables)) {
    const int64_t checksum = TableChecksum(catalog, table);
    execute("UPDATE tables SET checksum = " + std::to_string(checksum) + " WHERE id = " + table[0]);
    covered.Integer(Number(table[0]));
    covered.Integer(checksum);
  }
  execute("UPDATE database SET checksum = " + std::to_string(covered.Checksum()));
  execute("COMMIT");
}

std::vector<EncodedChunk> ChunksOfTablet(const std::string& bytes) {
  TabletHeader header;
  memcpy(&header, bytes.data(), sizeof header);
  std::vector<EncodedChunk> chunks(header.columns);
  for (size_t c = 0; c < chunks.size(); ++c) {
    ChunkDescriptor& d = chunks[c].descriptor;
    memcpy(&d, bytes.data() + sizeof header + c * sizeof d, sizeof d);
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(d.streams[0].offset);
    chunks[c].streams.assign(begin, begin + static_cast<std::ptrdiff_t>(d.bytes));
    for (int s = kStreams - 1; s >= 0; --s) d.streams[s].offset -= d.streams[0].offset;
  }
  return chunks;
}

void UseChunk(const Chunk& chunk) {
  ColumnVector values;
  values.type = chunk.type;
  DecodeChunk(chunk, 0, chunk.rows, &values);
  if (values.size() != chunk.rows) throw std::runtime_error("too few values");
  std::string text;
  for (uint32_t row = 0; row < chunk.rows; ++row) {
    (void)DecodeValue(chunk, row);
    text.clear();
    if (!values.IsNull(row)) AppendText(values, row, &text);
  }
  for (uint32_t e = 0; e < chunk.entries; ++e) text.assign(chunk.Entry(e));
}

std::string ReadWholeFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void WriteNewFile(const std::string& path, std::string_view bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace tessera
