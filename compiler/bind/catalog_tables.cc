#include "compiler/bind/catalog_tables.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <utility>

#include "compiler/query/schema_text.h"

namespace tessera {
namespace {

constexpr int64_t kFirstConstraint = int64_t{1} << 30, kConstraintsOfTable = 4096;

/// "DECIMAL(8,2)": the type, and the numbers after it.
void ReadType(const std::string& text, CatalogColumnOf* column) {
  const size_t open = text.find('(');
  const std::string_view base = std::string_view(text).substr(0, open);
  for (const CatalogType& type : CatalogTypes()) {
    if (type.sql == base) column->type = &type;
  }
  column->type_name = text;
  if (open == std::string::npos || column->type == nullptr) return;
  const char* const end = text.data() + text.size();
  int64_t first = -1, second = -1;
  const auto [at, error] = std::from_chars(text.data() + open + 1, end, first);
  if (error == std::errc() && at < end && *at == ',') std::from_chars(at + 1, end, second);
  if (second < 0) {
    column->length = first;
  } else {
    column->precision = first;
    column->scale = second;
  }
}

std::array<const std::vector<CatalogTable>*, 5> AllCatalogs() {
  return {&InformationSchema(), &PgCatalog(), &PgServerCatalog(), &DuckdbCatalog(), &ActivityCatalog()};
}

}  // namespace

const std::vector<CatalogType>& CatalogTypes() {
  static const std::vector<CatalogType> types = {
      {"BOOLEAN", "boolean", "bool", 16, 1, -1, -1, 'B', 1000},
      {"SMALLINT", "smallint", "int2", 21, 2, 16, 2, 'N', 1005},
      {"INTEGER", "integer", "int4", 23, 4, 32, 2, 'N', 1007},
      {"BIGINT", "bigint", "int8", 20, 8, 64, 2, 'N', 1016},
      {"REAL", "real", "float4", 700, 4, 24, 2, 'N', 1021},
      {"DOUBLE PRECISION", "double precision", "float8", 701, 8, 53, 2, 'N', 1022},
      {"DECIMAL", "numeric", "numeric", 1700, -1, -1, 10, 'N', 1231},
      {"DATE", "date", "date", 1082, 4, -1, -1, 'D', 1182},
      {"TIME", "time without time zone", "time", 1083, 8, -1, -1, 'D', 1183},
      {"TIMESTAMP", "timestamp without time zone", "timestamp", 1114, 8, -1, -1, 'D', 1115},
      {"TIMESTAMP WITH TIME ZONE", "timestamp with time zone", "timestamptz", 1184, 8, -1, -1, 'D', 1185},
      {"INTERVAL", "interval", "interval", 1186, 16, -1, -1, 'T', 1187},
      {"UUID", "uuid", "uuid", 2950, 16, -1, -1, 'U', 2951},
      {"BYTEA", "bytea", "bytea", 17, -1, -1, -1, 'U', 1001},
      {"TEXT", "text", "text", 25, -1, -1, -1, 'S', 1009},
      {"VARCHAR", "character varying", "varchar", 1043, -1, -1, -1, 'S', 1015},
  };
  return types;
}

namespace {

/// A number from `least`, a power of 2, up to twice that.
int64_t OidByName(int64_t least, std::string_view name) {
  return least + static_cast<int64_t>(std::hash<std::string_view>{}(name) & static_cast<size_t>(least - 1));
}

}  // namespace

int64_t OidOfEnum(std::string_view name) { return OidByName(int64_t{1} << 28, name); }
int64_t OidOfRole(std::string_view name) { return OidByName(int64_t{1} << 26, name); }

int64_t OidOfSchema(std::string_view schema) {
  constexpr std::pair<std::string_view, int64_t> kFixed[] = {
      {"pg_catalog", 11}, {kTheSchema, 2200}, {"information_schema", 13000}, {kTemporarySchema, 13001}};
  for (const auto& [name, oid] : kFixed) {
    if (name == schema) return oid;
  }
  return OidByName(int64_t{1} << 27, schema);
}

std::string PathText(const Snapshot& snapshot) {
  std::string text;
  for (const std::string& schema : snapshot.path)
    text += (text.empty() ? "" : ", ") + QuotedName(schema.empty() ? kTheSchema : schema);
  return text.empty() ? kTheSchema : text;
}

std::string FormatTypeText(const std::vector<EnumType>* types) {
  std::string text = "CASE x";
  const auto add = [&](int64_t oid, const std::string& name, const char* behind) {
    text += " WHEN " + std::to_string(oid) + " THEN " + QuotedText(name) + behind;
  };
  for (const CatalogType& type : CatalogTypes()) {
    const std::string name = type.name;
    const char* behind = "";
    if (name == "character varying") behind = " || CASE WHEN y > 4 THEN '(' || (y - 4) || ')' ELSE '' END";
    if (name == "numeric") {
      behind = " || CASE WHEN y > 4 THEN '(' || ((y - 4) / 65536) || ',' || ((y - 4) % 65536) || ')' ELSE '' END";
    }
    add(type.oid, name, behind);
    add(type.array_oid, name + "[]", "");
  }
  if (types != nullptr) {
    for (const EnumType& type : *types) add(OidOfEnum(type.name), type.name, "");
  }
  return text + " ELSE CASE WHEN x IS NOT NULL THEN '?\?\?' END END";
}

int64_t CatalogColumnOf::type_oid() const { return type != nullptr ? type->oid : OidOfEnum(type_name); }

int64_t CatalogColumnOf::modifier() const {
  if (length >= 0) return length + 4;
  return precision >= 0 ? (precision << 16 | scale) + 4 : -1;
}

std::vector<CatalogColumnOf> CatalogColumnsOf(const Snapshot& snapshot) {
  std::vector<CatalogColumnOf> columns;
  for (const auto& table : snapshot.tables) {
    int64_t number = 0;
    for (const ColumnSchema& schema : table->schema.columns) {
      CatalogColumnOf& column = columns.emplace_back();
      column.relation = BaseName(table->schema.name);
      column.schema_name = SchemaOf(*table);
      column.relation_oid = OidOf(*table);
      column.number = ++number;
      column.name = schema.name;
      column.schema = &schema;
      column.table = &table->schema;
      for (const Sequence& s : snapshot.names.sequences) {
        if (s.table_id == table->id && s.column == schema.name) column.identity = static_cast<char>(s.identity);
      }
      ReadType(schema.type.ToString(), &column);
    }
  }
  for (size_t v = 0; v < snapshot.views.size(); ++v) {
    int64_t number = 0;
    for (const ViewColumn& of_view : snapshot.views[v]->columns) {
      CatalogColumnOf& column = columns.emplace_back();
      column.relation = BaseName(snapshot.views[v]->name);
      column.is_view = true;
      column.schema_name = SchemaOf(*snapshot.views[v]);
      column.relation_oid = OidOfView(v);
      column.number = ++number;
      column.name = of_view.name;
      ReadType(of_view.type, &column);
    }
  }
  return columns;
}

namespace {

/// The name of the key over these columns, in any order.
std::string KeyOf(const TableSchema& schema, std::vector<int> columns) {
  const auto same = [&](std::vector<int> key) {
    std::ranges::sort(key);
    return key == columns;
  };
  std::ranges::sort(columns);
  for (const UniqueKey& key : schema.unique_keys) {
    if (same(key.columns)) return key.name;
  }
  return BaseName(schema.name) + "_pkey";
}

}  // namespace

std::vector<CatalogConstraint> CatalogConstraintsOf(const Snapshot& snapshot) {
  std::vector<CatalogConstraint> constraints;
  for (const auto& table : snapshot.tables) {
    const TableSchema& schema = table->schema;
    int64_t number = 0;
    const auto add = [&](std::string name, char kind, std::vector<int> columns, std::string check) {
      const int64_t oid = kFirstConstraint + table->id * kConstraintsOfTable + number++;
      constraints.push_back({table.get(), std::move(name), kind, std::move(columns), std::move(check), oid});
    };
    if (!schema.primary_key.empty()) add(BaseName(schema.name) + "_pkey", 'p', schema.primary_key, "");
    for (const UniqueKey& key : schema.unique_keys) add(key.name, 'u', key.columns, "");
    for (const CheckConstraint& check : schema.checks) add(check.name, 'c', {}, check.text);
    for (const ForeignKey& key : schema.foreign_keys) {
      const std::shared_ptr<const TableInfo> referenced = snapshot.Find(key.referenced);
      if (referenced == nullptr) continue;
      add(key.name, 'f', key.columns, "");
      CatalogConstraint& c = constraints.back();
      c.foreign = &key;
      c.referenced = referenced.get();
      for (const std::string& name : key.to) c.referenced_columns.push_back(referenced->schema.Find(name));
      c.referenced_key = KeyOf(referenced->schema, c.referenced_columns);
    }
  }
  return constraints;
}

const CatalogTable* FindCatalogTable(std::string_view schema, std::string_view name) {
  for (const auto* tables : AllCatalogs()) {
    for (const CatalogTable& table : *tables) {
      const bool is_in =
          schema.empty() ? std::string_view(table.schema) != "information_schema" : schema == table.schema;
      if (is_in && name == table.name) return &table;
    }
  }
  return nullptr;
}

std::string NamesOfCatalogTables(std::string_view schema) {
  std::string names;
  for (const auto* tables : AllCatalogs()) {
    for (const CatalogTable& table : *tables) {
      if (schema == table.schema) names += (names.empty() ? "" : ", ") + std::string(table.name);
    }
  }
  return names;
}

}  // namespace tessera
