// Arrays as texts, in PostgreSQL's form: {1,2,NULL,"a, b"}. There is no type of arrays: lists of constants, and columns of
// the catalog that are arrays in PostgreSQL, are such texts. Private to compiler/.
//
// Start at: ElementsOfArray. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera {

/// nullopt is NULL. Errors: kSql, it is no array of one dimension.
Result<std::vector<std::optional<std::string>>> ElementsOfArray(std::string_view text, int position);
std::string ArrayText(const std::vector<std::optional<std::string>>& elements);

}  // namespace tessera
