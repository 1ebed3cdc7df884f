#include "compiler/bind/server_functions.h"

#include <algorithm>
#include <iterator>

namespace tessera {
namespace {

/// All tables, in pages of 8,192 bytes.
constexpr const char* kBytes =
    "CASE WHEN x IS NOT NULL THEN (SELECT coalesce(sum(c.relpages), 0)::bigint * 8192 FROM pg_catalog.pg_class AS c) "
    "END";
constexpr const char* kNoText = "NULL::text";
constexpr const char* kVisible = "CASE WHEN x IS NOT NULL THEN TRUE END";

struct ServerFunction {
  std::string_view name;
  size_t arguments;
  const char* text;
};
constexpr ServerFunction kFunctions[] = {
    {"pg_database_size", 1, kBytes},
    {"pg_tablespace_size", 1, kBytes},
    {"pg_tablespace_location", 1, "CASE WHEN x IS NOT NULL THEN '' END"},  // all is in the directory of the database
    // Of what there is not here.
    {"pg_get_function_sqlbody", 1, kNoText},
    {"pg_get_statisticsobjdef_columns", 1, kNoText},
    {"pg_get_triggerdef", 1, kNoText},
    {"pg_get_triggerdef", 2, kNoText},
    {"pg_relation_is_publishable", 1, "CASE WHEN x IS NOT NULL THEN FALSE END"},
    {"pg_statistics_obj_is_visible", 1, kVisible},
};

}  // namespace

const char* ServerFunctionText(std::string_view name, size_t arguments) {
  const auto* const f = std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const ServerFunction& row) {
    return row.name == name && row.arguments == arguments;
  });
  return f == std::end(kFunctions) ? nullptr : f->text;
}

}  // namespace tessera
