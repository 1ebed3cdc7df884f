// What a catalog names beside its tables: types, macros and views (catalog_views.cc); also CatalogNames
// (catalog_sequences.cc).
#include <algorithm>
#include <string>
#include <utility>

#include "tablet/catalog/catalog.h"
#include "tablet/catalog/catalog_statement.h"
#include "tablet/catalog/catalog_transaction.h"
#include "tablet/catalog/schema_check.h"
#include "tablet/values/enum_type.h"

namespace tessera {
namespace {

constexpr int kVersionWithTypes = 4, kVersionWithMacros = 8;

}  // namespace

const char Catalog::kTypesSchema[] = R"(
CREATE TABLE types (
  name    TEXT PRIMARY KEY,
  labels  TEXT NOT NULL
);
)";

const char Catalog::kMacrosSchema[] = R"(
CREATE TABLE macros (
  name        TEXT NOT NULL,
  of_rows     INTEGER NOT NULL,
  definition  TEXT NOT NULL,
  PRIMARY KEY (name, of_rows)
);
)";

Status Catalog::LoadNames(CatalogContents* contents) {
  TESSERA_TRY(LoadTypes(&contents->types));
  TESSERA_TRY(LoadMacros(&contents->macros));
  TESSERA_TRY(LoadViews(&contents->views));
  return LoadNames(&contents->names);
}

Status Catalog::LoadTypes(std::vector<EnumType>* types) {
  TESSERA_ASSIGN(const bool has_types, HasTable("types"));
  if (!has_types) return Status::Ok();
  CatalogStatement query(&file_, "SELECT name, labels FROM types NOT INDEXED");
  for (;;) {
    TESSERA_ASSIGN(bool row, query.Step());
    if (!row) break;
    EnumType type;
    if (!ReadEnum(query.Text(1), &type) || type.name != query.Text(0)) return file_.Corrupt("a damaged type");
    types->push_back(std::move(type));
  }
  if (!query.wrong().empty()) return file_.Corrupt("a type has " + query.wrong());
  std::sort(types->begin(), types->end(), [](const EnumType& a, const EnumType& b) { return a.name < b.name; });
  return Status::Ok();
}

Status Catalog::WriteTypes(const std::vector<EnumType>& types) {
  TESSERA_ASSIGN(const bool has_types, HasTable("types"));
  if (!has_types) {
    TESSERA_TRY(file_.Execute(kTypesSchema));
    TESSERA_TRY(RaiseVersion(kVersionWithTypes));
  }
  TESSERA_TRY(file_.Execute("DELETE FROM types"));
  CatalogStatement insert(&file_, "INSERT INTO types VALUES (?, ?)");
  for (const EnumType& type : types)
    TESSERA_TRY(insert.Bind(std::string_view(type.name)).Bind(std::string_view(EnumText(type))).Run());
  return {};
}

Status Catalog::LoadMacros(std::vector<Macro>* macros) {
  TESSERA_ASSIGN(const bool has_macros, HasTable("macros"));
  if (!has_macros) return Status::Ok();
  CatalogStatement query(&file_, "SELECT name, of_rows, definition FROM macros NOT INDEXED");
  for (;;) {
    TESSERA_ASSIGN(bool row, query.Step());
    if (!row) break;
    macros->push_back({query.Text(0), query.Integer(1, 0, 1) == 1, query.Text(2)});
    if (!CheckMacro(macros->back()).ok()) return file_.Corrupt("a damaged macro");
  }
  if (!query.wrong().empty()) return file_.Corrupt("a macro has " + query.wrong());
  std::sort(macros->begin(), macros->end(), ComesBefore);
  return Status::Ok();
}

Status Catalog::WriteMacros(const std::vector<Macro>& macros) {
  TESSERA_ASSIGN(const bool has_macros, HasTable("macros"));
  if (!has_macros) {
    TESSERA_TRY(file_.Execute(kMacrosSchema));
    TESSERA_TRY(RaiseVersion(kVersionWithMacros));
  }
  TESSERA_TRY(file_.Execute("DELETE FROM macros"));
  CatalogStatement insert(&file_, "INSERT INTO macros VALUES (?, ?, ?)");
  for (const Macro& macro : macros) {
    TESSERA_TRY(insert.Bind(std::string_view(macro.name))
                    .Bind(int64_t{macro.of_rows})
                    .Bind(std::string_view(macro.definition))
                    .Run());
  }
  return {};
}

Result<Durability> Catalog::SetTypes(const CatalogContents& state, std::vector<EnumType> types) {
  CatalogContents after = state;
  after.types = std::move(types);
  CatalogTransaction transaction(&file_);
  TESSERA_TRY(BeginChange(&transaction, "BEGIN IMMEDIATE"));
  TESSERA_TRY(WriteTypes(after.types));
  TESSERA_TRY(DropLeftComments(&after));
  return Commit(&transaction, after);
}

Result<Durability> Catalog::SetMacros(const CatalogContents& state, std::vector<Macro> macros) {
  CatalogContents after = state;
  after.macros = std::move(macros);
  CatalogTransaction transaction(&file_);
  TESSERA_TRY(BeginChange(&transaction, "BEGIN IMMEDIATE"));
  TESSERA_TRY(WriteMacros(after.macros));
  TESSERA_TRY(DropLeftComments(&after));
  return Commit(&transaction, after);
}

Result<Durability> Catalog::SetViews(const CatalogContents& state, Views views) {
  CatalogContents after = state;
  after.views = std::move(views);
  CatalogTransaction transaction(&file_);
  TESSERA_TRY(BeginChange(&transaction, "BEGIN IMMEDIATE"));
  TESSERA_TRY(WriteViews(after.views));
  TESSERA_TRY(DropLeftComments(&after));
  return Commit(&transaction, after);
}

}  // namespace tessera
