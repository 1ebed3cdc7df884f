#include "capi/adbc_objects.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/version.h"
#include "capi/arrow_tree.h"
#include "compiler/query/schema_text.h"
#include "session/no_result.h"

namespace tessera {
namespace {

constexpr int kCatalogs = 1, kSchemas = 2, kTables = 3;
constexpr const char* kTypes[] = {"BASE TABLE", "LOCAL TEMPORARY", "VIEW", "MATERIALIZED VIEW"};

using TextRow = std::vector<std::optional<std::string>>;

/// The rows of a query as texts.
class TextRows final : public ResultWriter {
 public:
  Status Begin(const std::vector<vm::ResultColumn>&) override { return {}; }
  Status Rows(RowBatch&& batch) override {
    for (size_t row = 0; row < batch.rows; ++row) {
      TextRow& out = rows.emplace_back();
      for (const ColumnVector& column : batch.columns) {
        out.emplace_back();
        if (column.IsNull(row)) continue;
        out.back().emplace();
        AppendText(column, row, &*out.back());
      }
    }
    return {};
  }
  Status End() override { return {}; }
  Status Done(const std::string&) override { return {}; }
  Status Text(const std::string&) override { return {}; }

  std::vector<TextRow> rows;
};

Result<std::vector<TextRow>> Query(Session* session, const std::string& sql) {
  TextRows out;
  TESSERA_TRY(session->Execute(sql, &out));
  return std::move(out.rows);
}

std::string Like(const char* column, const char* pattern) {
  return pattern == nullptr ? "" : std::string(" AND ") + column + " LIKE " + QuotedText(pattern);
}

ArrowTree Text(const char* name, bool nullable = true) { return {"u", name, nullable}; }
ArrowTree List(const char* name, ArrowTree item, bool nullable = true) {
  std::vector<ArrowTree> items;
  items.push_back(std::move(item));
  return {"+l", name, nullable, std::move(items)};
}

/// The columns as ADBC's xdbc_... have them.
ArrowTree ColumnTree() {
  std::vector<ArrowTree> fields;
  fields.push_back(Text("column_name", false));
  fields.emplace_back("i", "ordinal_position");
  fields.push_back(Text("remarks"));
  fields.emplace_back("s", "xdbc_data_type");
  fields.push_back(Text("xdbc_type_name"));
  fields.emplace_back("i", "xdbc_column_size");
  for (const char* name : {"xdbc_decimal_digits", "xdbc_num_prec_radix", "xdbc_nullable"})
    fields.emplace_back("s", name);
  fields.push_back(Text("xdbc_column_def"));
  for (const char* name : {"xdbc_sql_data_type", "xdbc_datetime_sub"}) fields.emplace_back("s", name);
  fields.emplace_back("i", "xdbc_char_octet_length");
  for (const char* name : {"xdbc_is_nullable", "xdbc_scope_catalog", "xdbc_scope_schema", "xdbc_scope_table"})
    fields.push_back(Text(name));
  for (const char* name : {"xdbc_is_autoincrement", "xdbc_is_generatedcolumn"}) fields.emplace_back("b", name);
  return {"+s", "item", true, std::move(fields)};
}

ArrowTree ConstraintTree() {
  std::vector<ArrowTree> usage;
  for (const char* name : {"fk_catalog", "fk_db_schema"}) usage.push_back(Text(name));
  for (const char* name : {"fk_table", "fk_column_name"}) usage.push_back(Text(name, false));
  std::vector<ArrowTree> fields;
  fields.push_back(Text("constraint_name"));
  fields.push_back(Text("constraint_type", false));
  fields.push_back(List("constraint_column_names", Text("item"), false));
  fields.push_back(List("constraint_column_usage", {"+s", "item", true, std::move(usage)}));
  return {"+s", "item", true, std::move(fields)};
}

ArrowTree ObjectTree() {
  std::vector<ArrowTree> table, schema, catalog;
  table.push_back(Text("table_name", false));
  table.push_back(Text("table_type", false));
  table.push_back(List("table_columns", ColumnTree()));
  table.push_back(List("table_constraints", ConstraintTree()));
  schema.push_back(Text("db_schema_name"));
  schema.push_back(List("db_schema_tables", {"+s", "item", true, std::move(table)}));
  catalog.push_back(Text("catalog_name"));
  catalog.push_back(List("catalog_db_schemas", {"+s", "item", true, std::move(schema)}));
  return {"+s", "", false, std::move(catalog)};
}

/// A row of information_schema.columns: schema, table, name, place, default, whether it may be NULL, type.
void AppendColumn(const TextRow& row, ArrowTree* columns) {
  ArrowTree& item = columns->child(0);
  const bool nullable = row[5] == "YES";
  item.child(0).AppendText(row[2]);
  item.child(1).AppendNumber(std::stoll(*row[3]));
  for (const size_t i : {2, 3}) item.child(i).AppendNull();
  item.child(4).AppendText(row[6]);
  for (const size_t i : {5, 6, 7}) item.child(i).AppendNull();
  item.child(8).AppendNumber(nullable ? 1 : 0);
  item.child(9).AppendText(row[4]);
  for (const size_t i : {10, 11, 12}) item.child(i).AppendNull();
  item.child(13).AppendText(row[5]);
  for (const size_t i : {14, 15, 16, 17, 18}) item.child(i).AppendNull();
  item.Close();
}

bool IsWanted(const ObjectFilter& filter, const std::optional<std::string>& type) {
  if (filter.types == nullptr) return true;
  for (const char** wanted = filter.types; *wanted != nullptr; ++wanted) {
    // ("table" is what callers say who know other engines.)
    if (type == *wanted || (std::string_view(*wanted) == "table" && type == "BASE TABLE")) return true;
  }
  return false;
}

/// The tables of a schema, of those that `tables` has by schema, name and type.
void AppendTables(const ObjectFilter& filter, const std::string& schema, const std::vector<TextRow>& tables,
                  const std::vector<TextRow>& columns, ArrowTree* list) {
  for (const TextRow& table : tables) {
    if (table[0] != schema || !IsWanted(filter, table[2])) continue;
    ArrowTree& item = list->child(0);
    item.child(0).AppendText(table[1]);
    item.child(1).AppendText(table[2]);
    if (filter.depth == kTables) {
      item.child(2).AppendNull();
      item.child(3).AppendNull();
    } else {
      for (const TextRow& column : columns)
        if (column[0] == schema && column[1] == table[1]) AppendColumn(column, &item.child(2));
      item.child(2).Close();
      item.child(3).Close();
    }
    item.Close();
  }
  list->Close();
}

}  // namespace

Status GetObjects(Session* session, const ObjectFilter& filter, ArrowArrayStream* out) {
  std::vector<TextRow> tables, columns;
  TESSERA_ASSIGN(
      const std::vector<TextRow> catalogs,
      Query(session, "SELECT catalog_name, schema_name FROM information_schema.schemata WHERE true" +
                         Like("catalog_name", filter.catalog) + Like("schema_name", filter.schema) + " ORDER BY 1, 2"));
  const std::string names =
      Like("table_catalog", filter.catalog) + Like("table_schema", filter.schema) + Like("table_name", filter.table);
  if (filter.depth != kCatalogs && filter.depth != kSchemas) {
    TESSERA_ASSIGN(tables, Query(session,
                                 "SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE "
                                 "table_schema NOT IN ('information_schema', 'pg_catalog')" +
                                     names + " ORDER BY 1, 2"));
    if (filter.depth != kTables) {
      TESSERA_ASSIGN(columns, Query(session,
                                    "SELECT table_schema, table_name, column_name, ordinal_position, column_default, "
                                    "is_nullable, data_type FROM information_schema.columns WHERE true" +
                                        names + Like("column_name", filter.column) + " ORDER BY 1, 2, 4"));
    }
  }
  ArrowTree tree = ObjectTree();
  for (size_t at = 0; at < catalogs.size();) {
    const std::optional<std::string>& catalog = catalogs[at][0];
    tree.child(0).AppendText(catalog);
    if (filter.depth == kCatalogs) {
      tree.child(1).AppendNull();
    }
    for (; at < catalogs.size() && catalogs[at][0] == catalog; ++at) {
      if (filter.depth == kCatalogs) continue;
      ArrowTree& schema = tree.child(1).child(0);
      schema.child(0).AppendText(catalogs[at][1]);
      if (filter.depth == kSchemas) {
        schema.child(1).AppendNull();
      } else {
        AppendTables(filter, catalogs[at][1].value_or(""), tables, columns, &schema.child(1));
      }
      schema.Close();
    }
    if (filter.depth != kCatalogs) tree.child(1).Close();
    tree.Close();
  }
  ExportTree(std::move(tree), out);
  return {};
}

Status GetTableTypes(ArrowArrayStream* out) {
  std::vector<ArrowTree> fields;
  fields.push_back(Text("table_type", false));
  ArrowTree tree("+s", "", false, std::move(fields));
  for (const char* type : kTypes) {
    tree.child(0).AppendText(std::string_view(type));
    tree.Close();
  }
  ExportTree(std::move(tree), out);
  return {};
}

Status GetInfo(const uint32_t* codes, size_t count, ArrowArrayStream* out) {
  struct Info {
    uint32_t code;
    const char* text;
    int64_t number;
  };
  const Info infos[] = {{0, "Tessera", 0},
                        {1, kVersion, 0},
                        {3, nullptr, 1},  // SQL
                        {4, nullptr, 0},  // no Substrait
                        {100, "Tessera's ADBC driver", 0},
                        {101, kVersion, 0},
                        {103, nullptr, 1001000}};
  constexpr size_t kText = 0, kBoolean = 1, kNumber = 2;
  std::vector<ArrowTree> values, entry, fields;
  values.push_back(Text("string_value"));
  values.emplace_back("b", "bool_value");
  values.emplace_back("l", "int64_value");
  values.emplace_back("i", "int32_bitmask");
  values.push_back(List("string_list", Text("item")));
  entry.emplace_back("i", "key", false);
  entry.push_back(List("value", {"i", "item"}));
  std::vector<ArrowTree> entries;
  entries.emplace_back("+s", "entries", false, std::move(entry));
  values.emplace_back("+m", "int32_to_int32_list_map", true, std::move(entries));
  fields.emplace_back("I", "info_name", false);
  fields.emplace_back("+ud:0,1,2,3,4,5", "info_value", true, std::move(values));
  ArrowTree tree("+s", "", false, std::move(fields));
  for (const Info& info : infos) {
    if (codes != nullptr && std::find(codes, codes + count, info.code) == codes + count) continue;
    tree.child(0).AppendNumber(info.code);
    ArrowTree& value = tree.child(1);
    if (info.text != nullptr) {
      value.child(kText).AppendText(std::string_view(info.text));
      value.CloseUnion(kText);
    } else if (info.code == 103) {
      value.child(kNumber).AppendNumber(info.number);
      value.CloseUnion(kNumber);
    } else {
      value.child(kBoolean).AppendBoolean(info.number != 0);
      value.CloseUnion(kBoolean);
    }
    tree.Close();
  }
  ExportTree(std::move(tree), out);
  return {};
}

}  // namespace tessera
