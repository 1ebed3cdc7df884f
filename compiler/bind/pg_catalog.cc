// pg_catalog: what clients of PostgreSQL ask for first. Lists of columns, which are arrays there, are texts. And
// sqlite_master.
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/lower_case.h"
#include "compiler/bind/catalog_tables.h"
#include "compiler/query/schema_text.h"

namespace tessera {
namespace {

using Rows = std::vector<std::vector<Value>>;

constexpr TypeId kText = TypeId::kText, kNumber = TypeId::kBigint, kFlag = TypeId::kBoolean;
constexpr int64_t kSchemaOid = 2200, kCatalogOid = 11, kTemporaryOid = 13001, kHeapOid = 2, kBtreeOid = 403;

int64_t SchemaOid(const ViewSchema& view) { return OidOfSchema(SchemaOf(view)); }
int64_t SchemaOid(const TableInfo& table) { return OidOfSchema(SchemaOf(table)); }

bool IsIndexed(const TableSchema& schema) { return !schema.primary_key.empty() || !schema.unique_keys.empty(); }

/// The columns' numbers from 1.
std::string Numbers(const std::vector<int>& columns, const char* between) {
  std::string text;
  for (const int c : columns) text += (text.empty() ? "" : between) + std::to_string(c + 1);
  return text;
}

Rows PgTables(const Snapshot& snapshot) {
  Rows rows;
  for (const auto& table : snapshot.tables) {
    if (table->schema.materialized) continue;
    rows.push_back({CatalogText(SchemaOf(*table)), CatalogText(BaseName(table->schema.name)), NoText(), NoText(),
                    CatalogFlag(IsIndexed(table->schema)), CatalogFlag(false), CatalogFlag(false)});
  }
  return rows;
}

Rows PgViews(const Snapshot& snapshot) {
  Rows rows;
  for (const auto& view : snapshot.views)
    rows.push_back(
        {CatalogText(SchemaOf(*view)), CatalogText(BaseName(view->name)), NoText(), CatalogText(view->query)});
  return rows;
}

Rows PgMatviews(const Snapshot& snapshot) {
  Rows rows;
  for (const auto& table : snapshot.tables) {
    const auto& query = table->schema.materialized;
    if (!query) continue;
    rows.push_back({CatalogText(SchemaOf(*table)), CatalogText(BaseName(table->schema.name)), NoText(), NoText(),
                    CatalogFlag(false), CatalogFlag(query->populated), CatalogText(query->text)});
  }
  return rows;
}

Rows PgNamespace(const Snapshot& snapshot) {
  Rows rows;
  const auto add = [&](std::string_view name) {
    rows.push_back({CatalogNumber(OidOfSchema(name)), CatalogText(std::string(name)), CatalogNumber(10), NoText()});
  };
  for (const char* const name : {"pg_catalog", kTheSchema, "information_schema"}) add(name);
  add(kTemporarySchema);
  for (const std::string& name : snapshot.names.schemas) add(name);
  return rows;
}

Rows PgSequences(const Snapshot& snapshot) {
  Rows rows;
  for (const Sequence& s : snapshot.names.sequences) {
    rows.push_back({CatalogText(ShownSchema(s.name)), CatalogText(BaseName(s.name)), NoText(),
                    CatalogText(LowerCase(s.type)), CatalogNumber(s.start), CatalogNumber(s.least),
                    CatalogNumber(s.greatest), CatalogNumber(s.increment), CatalogFlag(s.cycles), CatalogNumber(1),
                    s.was_given ? CatalogNumber(s.value) : NoNumber()});
  }
  return rows;
}

Rows PgSequence(const Snapshot& snapshot) {
  Rows rows;
  for (size_t i = 0; i < snapshot.names.sequences.size(); ++i) {
    const Sequence& s = snapshot.names.sequences[i];
    const int64_t type = s.type == "SMALLINT" ? 21 : s.type == "INTEGER" ? 23 : 20;
    rows.push_back({CatalogNumber(OidOfSequence(i)), CatalogNumber(type), CatalogNumber(s.start),
                    CatalogNumber(s.increment), CatalogNumber(s.greatest), CatalogNumber(s.least), CatalogNumber(1),
                    CatalogFlag(s.cycles)});
  }
  return rows;
}

/// What was granted on a table, as PostgreSQL writes it; "": nothing.
std::string AclOf(const TableInfo& table, const Snapshot& snapshot) {
  constexpr std::pair<int64_t, const char*> kLetters[] = {{kRightInsert, "a"},   {kRightSelect, "r"},
                                                          {kRightUpdate, "w"},   {kRightDelete, "d"},
                                                          {kRightTruncate, "D"}, {kRightChange, "xt"}};
  const std::string owner = std::string("/") + kTheDatabase;
  std::string out;
  for (const TableGrant& grant : snapshot.names.grants) {
    if (grant.table_id != table.id) continue;
    out += grant.role == kPublicRole ? ",=" : "," + grant.role + "=";
    for (const auto& [right, letters] : kLetters) {
      if ((grant.rights & right) != 0) out += letters;
    }
    out += owner;
  }
  return out.empty() ? out : "{" + std::string(kTheDatabase) + "=arwdDxt" + owner + out + "}";
}

Rows PgClass(const Snapshot& snapshot) {
  Rows rows;
  std::set<int64_t> triggered;  // by foreign keys, in both directions: psql asks for these where there are triggers
  for (const CatalogConstraint& c : CatalogConstraintsOf(snapshot)) {
    if (c.foreign != nullptr) triggered.insert({OidOf(*c.table), OidOf(*c.referenced)});
  }
  const auto add = [&](int64_t oid, const std::string& name, int64_t schema, double tuples, bool indexed,
                       const char* kind, size_t columns, size_t checks, bool populated = true, int64_t pages = 0,
                       const std::string& rights = {}) {
    rows.push_back({CatalogNumber(oid),
                    CatalogText(name),
                    CatalogNumber(schema),
                    CatalogNumber(10),
                    Value::Float(SqlType::Of(TypeId::kDouble), tuples),
                    CatalogFlag(indexed),
                    CatalogText(schema == kTemporaryOid ? "t" : "p"),
                    CatalogText(kind),
                    CatalogNumber(static_cast<int64_t>(columns)),
                    CatalogNumber(static_cast<int64_t>(checks)),
                    CatalogFlag(false),
                    CatalogFlag(triggered.contains(oid)),
                    CatalogFlag(false),
                    CatalogFlag(false),
                    CatalogNumber(*kind == 'r' || *kind == 'm' ? kHeapOid
                                  : *kind == 'i'               ? kBtreeOid
                                                               : 0),
                    CatalogNumber(0),
                    CatalogNumber(0),
                    CatalogNumber(0),
                    CatalogNumber(0),
                    CatalogText("d"),
                    CatalogFlag(false),
                    NoText(),
                    NoText(),
                    rights.empty() ? NoText() : CatalogText(rights),
                    CatalogFlag(populated),
                    CatalogFlag(false),
                    CatalogNumber(pages)});
  };
  constexpr uint64_t kPage = 8192;  // of PostgreSQL; pg_table_size() is a number of them
  for (const auto& table : snapshot.tables) {
    const TableSchema& schema = table->schema;
    uint64_t bytes = 0;
    for (size_t c = 0; c < schema.columns.size(); ++c) bytes += table->statistics[c].encoded_bytes;
    add(OidOf(*table), BaseName(schema.name), SchemaOid(*table), static_cast<double>(table->rows), IsIndexed(schema),
        schema.materialized ? "m" : "r", schema.columns.size(), schema.checks.size(),
        !schema.materialized || schema.materialized->populated, static_cast<int64_t>((bytes + kPage - 1) / kPage),
        AclOf(*table, snapshot));
  }
  for (size_t v = 0; v < snapshot.views.size(); ++v) {
    const ViewSchema& view = *snapshot.views[v];
    add(OidOfView(v), BaseName(view.name), SchemaOid(view), 0, false, "v", view.columns.size(), 0);
  }
  for (size_t s = 0; s < snapshot.names.sequences.size(); ++s) {
    const std::string& name = snapshot.names.sequences[s].name;
    add(OidOfSequence(s), BaseName(name), OidOfSchema(ShownSchema(name)), 1, false, "S", 3, 0);
  }
  for (const CatalogConstraint& c : CatalogConstraintsOf(snapshot)) {
    if (c.IsIndex()) add(c.oid, c.name, SchemaOid(*c.table), 0, false, "i", c.columns.size(), 0);
  }
  return rows;
}

Rows PgAttribute(const Snapshot& snapshot) {
  Rows rows;
  // `of_index`: the column as one of an index, which has no constraints of its own.
  const auto add = [&](const CatalogColumnOf& c, bool of_index) {
    const ColumnSchema* const schema = of_index ? nullptr : c.schema;
    const bool generated = schema != nullptr && schema->generated_text;
    rows.push_back({CatalogNumber(c.relation_oid),
                    CatalogText(c.name),
                    CatalogNumber(c.type_oid()),
                    CatalogNumber(c.type != nullptr ? c.type->bytes : 4),
                    CatalogNumber(c.number),
                    CatalogNumber(c.modifier()),
                    CatalogFlag(schema != nullptr && schema->not_null),
                    CatalogFlag(schema != nullptr && (generated || schema->HasDefault())),
                    CatalogText(of_index || c.identity == ' ' ? "" : std::string(1, c.identity)),
                    CatalogText(generated ? "s" : ""),
                    CatalogFlag(false),
                    CatalogNumber(0),
                    CatalogNumber(0),
                    CatalogFlag(false),
                    CatalogFlag(true),
                    CatalogNumber(0),
                    CatalogNumber(-1),
                    NoText(),
                    NoText(),
                    CatalogText("p"),
                    CatalogText("")});
  };
  const std::vector<CatalogColumnOf> columns = CatalogColumnsOf(snapshot);
  std::map<std::pair<int64_t, int64_t>, const CatalogColumnOf*> by_number;
  for (const CatalogColumnOf& c : columns) {
    add(c, false);
    by_number[{c.relation_oid, c.number}] = &c;
  }
  for (const CatalogConstraint& index : CatalogConstraintsOf(snapshot)) {
    for (size_t i = 0; index.IsIndex() && i < index.columns.size(); ++i) {
      const auto of_table = by_number.find({OidOf(*index.table), index.columns[i] + 1});
      if (of_table == by_number.end()) continue;
      CatalogColumnOf c = *of_table->second;
      c.relation_oid = index.oid;
      c.number = static_cast<int64_t>(i) + 1;
      add(c, true);
    }
  }
  return rows;
}

Rows PgType(const Snapshot& snapshot) {
  Rows rows;
  // `element`, `array`: 0, it is no array, or has none.
  const auto add = [&](int64_t oid, const std::string& name, int64_t schema, int64_t bytes, const char* kind,
                       char category, int64_t element, int64_t array) {
    rows.push_back({CatalogNumber(oid),     CatalogText(name),
                    CatalogNumber(schema),  CatalogNumber(bytes),
                    CatalogText(kind),      CatalogText(std::string(1, category)),
                    CatalogFlag(false),     CatalogNumber(0),
                    CatalogNumber(element), CatalogNumber(0),
                    CatalogNumber(-1),      CatalogNumber(0),
                    CatalogNumber(array),   CatalogText(","),
                    CatalogNumber(10),      CatalogFlag(true),
                    CatalogFlag(false),     NoText(),
                    CatalogNumber(0),       NoText()});
  };
  for (const CatalogType& type : CatalogTypes()) {
    add(type.oid, type.internal, kCatalogOid, type.bytes, "b", type.category, 0, type.array_oid);
    add(type.array_oid, "_" + std::string(type.internal), kCatalogOid, -1, "b", 'A', type.oid, 0);
  }
  for (const EnumType& type : snapshot.types) add(OidOfEnum(type.name), type.name, kSchemaOid, 4, "e", 'E', 0, 0);
  return rows;
}

Rows PgConstraint(const Snapshot& snapshot) {
  Rows rows;
  for (const CatalogConstraint& c : CatalogConstraintsOf(snapshot)) {
    const bool is_key = c.kind != 'c', is_foreign = c.foreign != nullptr;
    const auto letter = [&](ForeignKey::Action ForeignKey::*action) {
      return CatalogText(is_foreign ? std::string(1, "arcnd"[static_cast<size_t>(c.foreign->*action)]) : " ");
    };
    rows.push_back({CatalogNumber(c.oid),
                    CatalogText(c.name),
                    CatalogNumber(SchemaOid(*c.table)),
                    CatalogText(std::string(1, c.kind)),
                    CatalogFlag(is_foreign && c.foreign->deferrable),
                    CatalogFlag(is_foreign && c.foreign->deferred),
                    CatalogFlag(true),
                    CatalogNumber(OidOf(*c.table)),
                    CatalogNumber(c.IsIndex() ? c.oid : 0),
                    CatalogNumber(is_foreign ? OidOf(*c.referenced) : 0),
                    is_key ? CatalogText("{" + Numbers(c.columns, ",") + "}") : NoText(),
                    is_key ? NoText() : CatalogText(c.check),
                    CatalogNumber(0),
                    CatalogNumber(0),
                    is_foreign ? CatalogText("{" + Numbers(c.referenced_columns, ",") + "}") : NoText(),
                    letter(&ForeignKey::on_update),
                    letter(&ForeignKey::on_delete),
                    CatalogText(is_foreign ? "s" : " "),
                    CatalogFlag(true),
                    CatalogFlag(false)});
  }
  return rows;
}

Rows PgIndex(const Snapshot& snapshot) {
  Rows rows;
  for (const CatalogConstraint& c : CatalogConstraintsOf(snapshot)) {
    if (!c.IsIndex()) continue;
    std::string zeros = "0";
    for (size_t i = 1; i < c.columns.size(); ++i) zeros += " 0";
    rows.push_back({CatalogNumber(c.oid), CatalogNumber(OidOf(*c.table)),
                    CatalogNumber(static_cast<int64_t>(c.columns.size())), CatalogFlag(true),
                    CatalogFlag(c.kind == 'p'), CatalogFlag(true), CatalogText(Numbers(c.columns, " ")),
                    CatalogFlag(false), CatalogFlag(false), CatalogNumber(static_cast<int64_t>(c.columns.size())),
                    CatalogFlag(false), CatalogFlag(true), CatalogFlag(true), CatalogFlag(true), NoText(), NoText(),
                    CatalogFlag(false), CatalogText(zeros), CatalogText(zeros)});
  }
  return rows;
}

Rows SqliteMaster(const Snapshot& snapshot) {
  Rows rows;
  const auto add = [&](const char* type, const std::string& name, std::string sql) {
    sql.resize(sql.rfind(';'));  // as in SQLite
    rows.push_back({CatalogText(type), CatalogText(name), CatalogText(name), CatalogNumber(0), CatalogText(sql)});
  };
  for (const auto& table : snapshot.tables) {  // (SQLite has temporary ones in sqlite_temp_master)
    const TableSchema& schema = table->schema;
    if (!IsTemporaryName(schema.name))
      add(schema.materialized ? "view" : "table", ShownName(schema.name), CreateTableText(schema));
  }
  for (const auto& view : snapshot.views) {
    if (!view->temporary) add("view", ShownName(view->name), CreateViewText(*view));
  }
  return rows;
}

constexpr const char* kSchema = "pg_catalog";

/// Of tables and views.
std::vector<CatalogTable> RelationTables() {
  const std::vector<CatalogColumn> sqlite_columns = {
      {"type", kText}, {"name", kText}, {"tbl_name", kText}, {"rootpage", kNumber}, {"sql", kText}};
  return {
      {"main", "sqlite_master", sqlite_columns, SqliteMaster},
      {"main", "sqlite_schema", sqlite_columns, SqliteMaster},
      {kSchema,
       "pg_tables",
       {{"schemaname", kText},
        {"tablename", kText},
        {"tableowner", kText},
        {"tablespace", kText},
        {"hasindexes", kFlag},
        {"hasrules", kFlag},
        {"hastriggers", kFlag}},
       PgTables},
      {kSchema,
       "pg_views",
       {{"schemaname", kText}, {"viewname", kText}, {"viewowner", kText}, {"definition", kText}},
       PgViews},
      {kSchema,
       "pg_matviews",
       {{"schemaname", kText},
        {"matviewname", kText},
        {"matviewowner", kText},
        {"tablespace", kText},
        {"hasindexes", kFlag},
        {"ispopulated", kFlag},
        {"definition", kText}},
       PgMatviews},
      {kSchema,
       "pg_namespace",
       {{"oid", kNumber}, {"nspname", kText}, {"nspowner", kNumber}, {"nspacl", kText}},
       PgNamespace},
      {kSchema,
       "pg_class",
       {{"oid", kNumber},
        {"relname", kText},
        {"relnamespace", kNumber},
        {"relowner", kNumber},
        {"reltuples", TypeId::kDouble},
        {"relhasindex", kFlag},
        {"relpersistence", kText},
        {"relkind", kText},
        {"relnatts", kNumber},
        {"relchecks", kNumber},
        {"relhasrules", kFlag},
        {"relhastriggers", kFlag},
        {"relrowsecurity", kFlag},
        {"relispartition", kFlag},
        {"relam", kNumber},
        {"reltablespace", kNumber},
        {"reloftype", kNumber},
        {"reltoastrelid", kNumber},
        {"reltype", kNumber},
        {"relreplident", kText},
        {"relforcerowsecurity", kFlag},
        {"relpartbound", kText},
        {"reloptions", kText},
        {"relacl", kText},
        {"relispopulated", kFlag},
        {"relhassubclass", kFlag},
        {"relpages", kNumber}},
       PgClass},
  };
}

std::vector<CatalogTable> SequenceTables() {
  return {
      {kSchema,
       "pg_sequences",
       {{"schemaname", kText},
        {"sequencename", kText},
        {"sequenceowner", kText},
        {"data_type", kText},
        {"start_value", kNumber},
        {"min_value", kNumber},
        {"max_value", kNumber},
        {"increment_by", kNumber},
        {"cycle", kFlag},
        {"cache_size", kNumber},
        {"last_value", kNumber}},
       PgSequences},
      {kSchema,
       "pg_sequence",
       {{"seqrelid", kNumber},
        {"seqtypid", kNumber},
        {"seqstart", kNumber},
        {"seqincrement", kNumber},
        {"seqmax", kNumber},
        {"seqmin", kNumber},
        {"seqcache", kNumber},
        {"seqcycle", kFlag}},
       PgSequence},
  };
}

/// Of their columns and constraints.
std::vector<CatalogTable> PartTables() {
  return {
      {kSchema,
       "pg_attribute",
       {{"attrelid", kNumber},      {"attname", kText},       {"atttypid", kNumber},   {"attlen", kNumber},
        {"attnum", kNumber},        {"atttypmod", kNumber},   {"attnotnull", kFlag},   {"atthasdef", kFlag},
        {"attidentity", kText},     {"attgenerated", kText},  {"attisdropped", kFlag}, {"attcollation", kNumber},
        {"attndims", kNumber},      {"atthasmissing", kFlag}, {"attislocal", kFlag},   {"attinhcount", kNumber},
        {"attstattarget", kNumber}, {"attacl", kText},        {"attoptions", kText},   {"attstorage", kText},
        {"attcompression", kText}},
       PgAttribute},
      {kSchema,
       "pg_type",
       {{"oid", kNumber},          {"typname", kText},       {"typnamespace", kNumber}, {"typlen", kNumber},
        {"typtype", kText},        {"typcategory", kText},   {"typnotnull", kFlag},     {"typrelid", kNumber},
        {"typelem", kNumber},      {"typbasetype", kNumber}, {"typtypmod", kNumber},    {"typcollation", kNumber},
        {"typarray", kNumber},     {"typdelim", kText},      {"typowner", kNumber},     {"typisdefined", kFlag},
        {"typispreferred", kFlag}, {"typdefault", kText},    {"typndims", kNumber},     {"typacl", kText}},
       PgType},
      {kSchema,
       "pg_constraint",
       {{"oid", kNumber},
        {"conname", kText},
        {"connamespace", kNumber},
        {"contype", kText},
        {"condeferrable", kFlag},
        {"condeferred", kFlag},
        {"convalidated", kFlag},
        {"conrelid", kNumber},
        {"conindid", kNumber},
        {"confrelid", kNumber},
        {"conkey", kText, TypeId::kSmallint},
        {"conbin", kText},
        {"conparentid", kNumber},
        {"contypid", kNumber},
        {"confkey", kText, TypeId::kSmallint},
        {"confupdtype", kText},
        {"confdeltype", kText},
        {"confmatchtype", kText},
        {"conislocal", kFlag},
        {"connoinherit", kFlag}},
       PgConstraint},
      {kSchema,
       "pg_index",
       {{"indexrelid", kNumber},
        {"indrelid", kNumber},
        {"indnatts", kNumber},
        {"indisunique", kFlag},
        {"indisprimary", kFlag},
        {"indisvalid", kFlag},
        {"indkey", kText, TypeId::kSmallint, true},
        {"indisclustered", kFlag},
        {"indisreplident", kFlag},
        {"indnkeyatts", kNumber},
        {"indisexclusion", kFlag},
        {"indimmediate", kFlag},
        {"indisready", kFlag},
        {"indislive", kFlag},
        {"indpred", kText},
        {"indexprs", kText},
        {"indnullsnotdistinct", kFlag},
        {"indclass", kText, TypeId::kBigint, true},
        {"indoption", kText, TypeId::kSmallint, true}},
       PgIndex},
  };
}

}  // namespace

const std::vector<CatalogTable>& PgCatalog() {
  static const std::vector<CatalogTable> tables = [] {
    std::vector<CatalogTable> all = RelationTables(), sequences = SequenceTables(), parts = PartTables();
    for (CatalogTable& table : sequences) all.push_back(std::move(table));
    for (CatalogTable& table : parts) all.push_back(std::move(table));
    return all;
  }();
  return tables;
}

}  // namespace tessera
