// Tables and views as the SQL that makes them: .schema of the shell, sqlite_master.
//
// Start at: CreateTableText. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "tablet/catalog/schema.h"
#include "tablet/catalog/view.h"

namespace tessera {

/// `CREATE TABLE ...;` over several lines, ending with a newline.
std::string CreateTableText(const TableSchema& schema);

/// `CREATE VIEW ...;`, ending with a newline.
std::string CreateViewText(const ViewSchema& view);

/// The views, each after those that its query names, else by their names.
Views InOrderOfUse(const Views& views);

/// `name` as SQL needs it: in double quotes unless it is a plain lower-case word that is not reserved.
std::string QuotedName(std::string_view name);

/// 'text', with quotes doubled.
std::string QuotedText(std::string_view text);

}  // namespace tessera
