// Tablets in the catalog whose columns lie in several files.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "tablet/catalog/catalog.h"
#include "tablet/catalog/catalog_statement.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

constexpr int kVersionWithLayouts = 9;
constexpr int64_t kGreatestBytes = int64_t{1} << 50;

std::string NumbersText(const std::vector<int32_t>& numbers) {
  std::string text;
  for (const int32_t n : numbers) text += (text.empty() ? "" : " ") + std::to_string(n);
  return text;
}

/// False: the text is no list of numbers with blanks between.
bool ReadNumbers(const std::string& text, std::vector<int32_t>* numbers) {
  const char *at = text.data(), *const end = at + text.size();
  while (at != end) {
    const auto [next, error] = std::from_chars(at, end, numbers->emplace_back());
    if (error != std::errc() || (next != end && *next != ' ')) return false;
    at = next == end ? next : next + 1;
  }
  return !numbers->empty();
}

/// Whether what the layout says can be. (Files are checked when they are opened.)
bool IsPossible(const TabletLayout& layout, const TableSchema& schema) {
  if (!layout.IsOf(schema.columns.size())) return false;
  return std::ranges::all_of(layout.constants, [&](const ConstantColumn& constant) {
    const ColumnSchema& column = schema.columns[static_cast<size_t>(constant.column)];
    return constant.value ? ParseValue(*constant.value, column.type).ok() : !column.not_null;
  });
}

}  // namespace

// FORMAT.md repeats this text.
const char Catalog::kLayoutsSchema[] = R"(
CREATE TABLE column_files (
  tablet_id        INTEGER NOT NULL REFERENCES tablets (id),
  id               INTEGER NOT NULL,
  file_id          INTEGER NOT NULL,
  offset           INTEGER NOT NULL,
  bytes            INTEGER NOT NULL,
  header_checksum  INTEGER NOT NULL,
  columns          TEXT NOT NULL,
  PRIMARY KEY (tablet_id, id)
);
CREATE TABLE constant_columns (
  tablet_id  INTEGER NOT NULL REFERENCES tablets (id),
  position   INTEGER NOT NULL,
  value      TEXT,
  PRIMARY KEY (tablet_id, position)
);
)";

TabletLayout LayoutOf(const TabletRecord& tablet, size_t columns) {
  if (tablet.layout != nullptr) return *tablet.layout;
  ColumnFile own{tablet.id, tablet.id, 0, tablet.file_bytes, tablet.header_checksum, {}};
  for (size_t c = 0; c < columns; ++c) own.columns.push_back(static_cast<int32_t>(c));
  return {{std::move(own)}, {}};
}

Status Catalog::LoadLayouts(TableRecord* table, int64_t next_tablet_id) {
  TESSERA_ASSIGN(const bool has_layouts, HasTable("column_files"));
  if (!has_layouts) return {};
  std::map<int64_t, TabletLayout> layouts;
  {
    CatalogStatement query(
        &file_,
        "SELECT tablet_id, f.id, file_id, offset, bytes, f.header_checksum, columns FROM column_files f JOIN "
        "tablets t ON t.id = tablet_id WHERE table_id = ? ORDER BY tablet_id, f.id");
    query.Bind(table->id);
    for (;;) {
      TESSERA_ASSIGN(const bool row, query.Step());
      if (!row) break;
      ColumnFile file;
      file.id = query.Integer(1, 1, next_tablet_id - 1);
      file.file_id = query.Integer(2, 1, next_tablet_id - 1);
      file.offset = static_cast<uint64_t>(query.Integer(3, 0, kGreatestBytes));
      file.bytes = static_cast<uint64_t>(query.Integer(4, 1, kGreatestBytes));
      file.header_checksum = static_cast<uint64_t>(query.Integer(5));
      if (!ReadNumbers(query.Text(6), &file.columns) || !query.wrong().empty() ||
          file.offset % kColumnFileAlignment != 0)
        return file_.Corrupt("a wrong file of columns in table " + QuoteForMessage(table->schema.name));
      layouts[query.Integer(0)].files.push_back(std::move(file));
    }
  }
  {
    CatalogStatement query(
        &file_,
        "SELECT tablet_id, c.position, value FROM constant_columns c JOIN tablets t ON t.id = tablet_id WHERE "
        "table_id = ? ORDER BY tablet_id, c.position");
    query.Bind(table->id);
    for (;;) {
      TESSERA_ASSIGN(const bool row, query.Step());
      if (!row) break;
      ConstantColumn constant;
      constant.column = static_cast<int32_t>(query.Integer(1, 0, INT32_MAX));
      if (!query.IsNull(2)) constant.value = query.Text(2);
      if (!query.wrong().empty())
        return file_.Corrupt("a wrong constant in table " + QuoteForMessage(table->schema.name));
      layouts[query.Integer(0)].constants.push_back(std::move(constant));
    }
  }
  for (TabletRecord& tablet : table->tablets) {
    const auto at = layouts.find(tablet.id);
    if (at == layouts.end()) continue;
    if (!IsPossible(at->second, table->schema) || tablet.file_bytes != at->second.bytes())
      return file_.Corrupt("impossible files of a tablet in table " + QuoteForMessage(table->schema.name));
    tablet.layout = std::make_shared<const TabletLayout>(std::move(at->second));
  }
  return {};
}

Status Catalog::WriteLayouts(const TableRecord& before, const TableRecord& after) {
  // Another layout is that of another tablet.
  std::set<int64_t> old;
  for (const TabletRecord& tablet : before.tablets) {
    if (tablet.layout != nullptr) old.insert(tablet.id);
  }
  TESSERA_ASSIGN(bool has_layouts, HasTable("column_files"));
  for (const TabletRecord& tablet : after.tablets) {
    if (tablet.layout == nullptr || old.erase(tablet.id) > 0) continue;
    if (!std::exchange(has_layouts, true)) {
      TESSERA_TRY(file_.Execute(kLayoutsSchema));
      TESSERA_TRY(RaiseVersion(kVersionWithLayouts));
    }
    CatalogStatement file(&file_, "INSERT INTO column_files VALUES (?, ?, ?, ?, ?, ?, ?)");
    for (const ColumnFile& f : tablet.layout->files) {
      TESSERA_TRY(file.Bind(tablet.id)
                      .Bind(f.id)
                      .Bind(f.file_id)
                      .Bind(f.offset)
                      .Bind(f.bytes)
                      .Bind(f.header_checksum)
                      .Bind(std::string_view(NumbersText(f.columns)))
                      .Run());
    }
    CatalogStatement constant(&file_, "INSERT INTO constant_columns VALUES (?, ?, ?)");
    for (const ConstantColumn& c : tablet.layout->constants) {
      constant.Bind(tablet.id).Bind(int64_t{c.column});
      if (c.value) {
        constant.Bind(std::string_view(*c.value));
      } else {
        constant.BindNull();
      }
      TESSERA_TRY(constant.Run());
    }
  }
  for (const int64_t tablet : old) {
    for (const char* sql :
         {"DELETE FROM column_files WHERE tablet_id = ?", "DELETE FROM constant_columns WHERE tablet_id = ?"}) {
      CatalogStatement remove(&file_, sql);
      TESSERA_TRY(remove.Bind(tablet).Run());
    }
  }
  return {};
}

Status Catalog::DeleteLayouts(int64_t table_id) {
  TESSERA_ASSIGN(const bool has_layouts, HasTable("column_files"));
  if (!has_layouts) return {};
  for (const char* sql :
       {"DELETE FROM column_files WHERE tablet_id IN (SELECT id FROM tablets WHERE table_id = ?)",
        "DELETE FROM constant_columns WHERE tablet_id IN (SELECT id FROM tablets WHERE table_id = ?)"}) {
    CatalogStatement remove(&file_, sql);
    TESSERA_TRY(remove.Bind(table_id).Run());
  }
  return {};
}

Status Catalog::CheckLayouts(const CatalogContents& contents) {
  TESSERA_ASSIGN(const bool has_layouts, HasTable("column_files"));
  if (!has_layouts) return {};
  int64_t files = 0, constants = 0;
  std::set<std::pair<int64_t, uint64_t>> places;
  for (const auto& table : contents.tables) {
    for (const TabletRecord& tablet : table->tablets) {
      if (tablet.layout == nullptr) continue;
      files += static_cast<int64_t>(tablet.layout->files.size());
      constants += static_cast<int64_t>(tablet.layout->constants.size());
      for (const ColumnFile& file : tablet.layout->files) {
        if (!places.insert({file.file_id, file.offset}).second)
          return file_.Corrupt("two tablets have the same columns");
      }
    }
  }
  TESSERA_ASSIGN(const int64_t all_files, QueryInteger(&file_, "SELECT count(*) FROM column_files NOT INDEXED"));
  TESSERA_ASSIGN(const int64_t all_constants,
                 QueryInteger(&file_, "SELECT count(*) FROM constant_columns NOT INDEXED"));
  if (all_files != files || all_constants != constants)
    return file_.Corrupt("it has columns of a tablet that is missing");
  return {};
}

}  // namespace tessera
