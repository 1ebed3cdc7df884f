// Tables and macros as the SQL that makes them: .schema. Any thread.
#pragma once

#include <string>
#include <string_view>

#include "tablet/catalog/macro.h"
#include "tablet/catalog/schema.h"

namespace tessera {

/// `CREATE TABLE ...;` over several lines, ending with a newline.
std::string CreateTableText(const TableSchema& schema);

/// `CREATE MACRO ...;`, a line.
std::string CreateMacroText(const Macro& macro);

/// `name` as SQL needs it: in double quotes unless it is a plain lower-case word that is not reserved.
std::string QuotedName(std::string_view name);

/// 'text', with quotes doubled.
std::string QuotedText(std::string_view text);

}  // namespace tessera
