// What a catalog names beside its tables: types and macros.
#include <algorithm>
#include <string>

#include "tablet/catalog/catalog.h"
#include "tablet/catalog/catalog_statement.h"
#include "tablet/catalog/schema_check.h"
#include "tablet/values/enum_type.h"

namespace tessera {

Status Catalog::LoadNames(CatalogContents* contents) {
  TESSERA_TRY(LoadTypes(&contents->types));
  return LoadMacros(&contents->macros);
}

Status Catalog::LoadTypes(std::vector<EnumType>* types) {
  TESSERA_ASSIGN(const bool has_types, HasTable("types"));
  if (!has_types) return Status::Ok();
  Statement query(this, "SELECT name, labels FROM types NOT INDEXED");
  for (;;) {
    TESSERA_ASSIGN(bool row, query.Step());
    if (!row) break;
    EnumType type;
    if (!ReadEnum(query.Text(1), &type) || type.name != query.Text(0)) return Corrupt("a damaged type");
    types->push_back(std::move(type));
  }
  if (!query.wrong().empty()) return Corrupt("a type has " + query.wrong());
  std::sort(types->begin(), types->end(), [](const EnumType& a, const EnumType& b) { return a.name < b.name; });
  return Status::Ok();
}

Status Catalog::LoadMacros(std::vector<Macro>* macros) {
  TESSERA_ASSIGN(const bool has_macros, HasTable("macros"));
  if (!has_macros) return Status::Ok();
  Statement query(this, "SELECT name, of_rows, definition FROM macros NOT INDEXED");
  for (;;) {
    TESSERA_ASSIGN(bool row, query.Step());
    if (!row) break;
    macros->push_back({query.Text(0), query.Integer(1, 0, 1) == 1, query.Text(2)});
    if (!CheckMacro(macros->back()).ok()) return Corrupt("a damaged macro");
  }
  if (!query.wrong().empty()) return Corrupt("a macro has " + query.wrong());
  std::sort(macros->begin(), macros->end(), ComesBefore);
  return Status::Ok();
}

}  // namespace tessera
