// Tables, views and macros as the SQL that makes them: .schema of the shell, sqlite_master.
//
// Start at: CreateTableText. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tablet/catalog/macro.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/view.h"

namespace tessera {

/// `CREATE TABLE ...;` over several lines, ending with a newline.
std::string CreateTableText(const TableSchema& schema);

/// `CREATE MACRO ...;`, a line.
std::string CreateMacroText(const Macro& macro);

/// `CREATE VIEW ...;`, ending with a newline.
std::string CreateViewText(const ViewSchema& view);

/// A view or a macro.
struct SchemaEntry {
  std::string name;
  std::string text;  ///< that makes it
};

/// Views and macros, each after those that its text names, else views first, by their names.
std::vector<SchemaEntry> InOrderOfUse(const Views& views, const std::vector<Macro>& macros);

/// `name` as SQL needs it: in double quotes unless it is a plain lower-case word that is not reserved.
std::string QuotedName(std::string_view name);

/// 'text', with quotes doubled.
std::string QuotedText(std::string_view text);

}  // namespace tessera
