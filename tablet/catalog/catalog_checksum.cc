#include "tablet/catalog/catalog_checksum.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tablet/catalog/catalog_bytes.h"
#include "tablet/catalog/constraint_row.h"
#include "tablet/values/enum_type.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {
namespace {

uint64_t ChecksumOf(const CatalogBytes& bytes) { return XXH3_64bits(bytes.bytes().data(), bytes.bytes().size()); }

}  // namespace

uint64_t TableChecksum(const TableRecord& table) {
  CatalogBytes bytes;
  bytes.Add(table.id);
  bytes.Add(std::string_view(table.schema.name));
  bytes.Add(table.version);
  bytes.Add(int64_t{table.schema.tablet_rows});
  bytes.Add(int64_t{table.tablet_rows});
  bytes.Add(static_cast<int64_t>(table.schema.columns.size()));
  for (size_t c = 0; c < table.schema.columns.size(); ++c) {
    const ColumnSchema& column = table.schema.columns[c];
    const ColumnStatistics& statistics = table.statistics[c];
    bytes.Add(std::string_view(column.name));
    bytes.Add(static_cast<int64_t>(column.type.id));
    bytes.Add(int64_t{column.type.precision});
    bytes.Add(int64_t{column.type.scale});
    bytes.Add(int64_t{StoredLength(column.type)});
    bytes.Add(int64_t{column.not_null});
    bytes.Add(int64_t{statistics.has_range});
    bytes.Add(statistics.has_range ? statistics.min : int128_t{0});
    bytes.Add(statistics.has_range ? statistics.max : int128_t{0});
    bytes.Add(statistics.null_count);
    bytes.Add(statistics.distinct);
    bytes.Add(statistics.encoded_bytes);
  }
  for (size_t c = 0; c < table.schema.columns.size(); ++c) {
    const ColumnSchema& column = table.schema.columns[c];
    if (!column.default_text) continue;
    bytes.Add(static_cast<int64_t>(c));
    bytes.Add(std::string_view(*column.default_text));
  }
  for (const ConstraintRow& row : ConstraintsOf(table)) {
    for (const std::string* text : {&row.kind, &row.name, &row.value}) bytes.Add(std::string_view(*text));
  }
  bytes.Add(static_cast<int64_t>(table.schema.primary_key.size()));
  for (int column : table.schema.primary_key) bytes.Add(int64_t{column});
  bytes.Add(static_cast<int64_t>(table.tablets.size()));
  for (const TabletRecord& tablet : table.tablets) {
    bytes.Add(tablet.id);
    bytes.Add(int64_t{tablet.rows});
    bytes.Add(tablet.file_bytes);
    bytes.Add(tablet.header_checksum);
  }
  for (const TabletRecord& tablet : table.tablets) {
    if (tablet.live == nullptr) continue;
    bytes.Add(tablet.id);
    bytes.Add(tablet.live->checksum());
  }
  for (const TabletRecord& tablet : table.tablets) {
    if (tablet.layout == nullptr) continue;
    bytes.Add(tablet.id);
    bytes.Add(static_cast<int64_t>(tablet.layout->files.size()));
    for (const ColumnFile& file : tablet.layout->files) {
      bytes.Add(file.id);
      bytes.Add(file.file_id);
      bytes.Add(file.offset);
      bytes.Add(file.bytes);
      bytes.Add(file.header_checksum);
      bytes.Add(static_cast<int64_t>(file.columns.size()));
      for (const int32_t column : file.columns) bytes.Add(int64_t{column});
    }
    bytes.Add(static_cast<int64_t>(tablet.layout->constants.size()));
    for (const ConstantColumn& constant : tablet.layout->constants) {
      bytes.Add(int64_t{constant.column});
      bytes.Add(int64_t{constant.value.has_value()});
      bytes.Add(std::string_view(constant.value.value_or("")));
    }
  }
  return ChecksumOf(bytes);
}

TableRecord Emptied(const TableRecord& table) {
  TableRecord empty = table;
  ++empty.version;
  empty.tablet_rows = 0;
  empty.statistics.assign(table.statistics.size(), {});
  empty.tablets.clear();
  empty.checksum = TableChecksum(empty);
  return empty;
}

uint64_t DatabaseChecksum(const CatalogContents& contents) {
  CatalogBytes bytes;
  bytes.Add(std::string_view(reinterpret_cast<const char*>(contents.database.data()), contents.database.size()));
  bytes.Add(contents.next_table_id);
  bytes.Add(contents.next_tablet_id);
  if (contents.log_generation != 0) bytes.Add(contents.log_generation);
  std::vector<const TableRecord*> tables;
  for (const auto& table : contents.tables) tables.push_back(table.get());
  std::sort(tables.begin(), tables.end(), [](auto* a, auto* b) { return a->id < b->id; });
  for (const TableRecord* table : tables) {
    bytes.Add(table->id);
    bytes.Add(table->checksum);
  }
  for (const EnumType& type : contents.types) bytes.Add(std::string_view(EnumText(type)));
  for (const Macro& macro : contents.macros) {
    bytes.Add(std::string_view(macro.name));
    bytes.Add(int64_t{macro.of_rows});
    bytes.Add(std::string_view(macro.definition));
  }
  for (const auto& view : contents.views) {
    for (const std::string* text : {&view->name, &view->query}) bytes.Add(std::string_view(*text));
    bytes.Add(static_cast<int64_t>(view->columns.size()));
    for (const ViewColumn& column : view->columns) {
      for (const std::string* text : {&column.name, &column.output, &column.type}) bytes.Add(std::string_view(*text));
    }
  }
  for (const Sequence& s : contents.names.sequences) {
    for (const std::string* text : {&s.name, &s.type, &s.column}) bytes.Add(std::string_view(*text));
    for (const int64_t n : {s.start, s.increment, s.least, s.greatest, int64_t{s.cycles}, s.value, int64_t{s.was_given},
                            s.table_id, static_cast<int64_t>(s.identity)})
      bytes.Add(n);
  }
  for (const std::string& schema : contents.names.schemas) bytes.Add(std::string_view(schema));
  for (const Comment& c : contents.names.comments) {
    for (const std::string* text : {&c.kind, &c.name, &c.column, &c.text}) bytes.Add(std::string_view(*text));
  }
  for (const CatalogRole& r : contents.names.roles) {
    for (const std::string* text : {&r.name, &r.verifier}) bytes.Add(std::string_view(*text));
    for (const bool is : {r.logs_in, r.superuser}) bytes.Add(int64_t{is});
  }
  for (const TableGrant& g : contents.names.grants) {
    bytes.Add(std::string_view(g.role));
    for (const int64_t n : {g.table_id, g.rights}) bytes.Add(n);
  }
  return ChecksumOf(bytes);
}

}  // namespace tessera
