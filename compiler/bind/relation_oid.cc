// What 'public.t'::regclass is.
#include <string>
#include <string_view>
#include <utility>

#include "compiler/bind/catalog_tables.h"
#include "compiler/bind/relation_name.h"

namespace tessera {
namespace {

/// Tables of which others say that a row is about one of theirs.
constexpr std::pair<std::string_view, int64_t> kSystemTables[] = {
    {"pg_class", 1259},      {"pg_attribute", 1249}, {"pg_type", 1247},        {"pg_proc", 1255},
    {"pg_namespace", 2615},  {"pg_attrdef", 2604},   {"pg_constraint", 2606},  {"pg_index", 2610},
    {"pg_database", 1262},   {"pg_am", 2601},        {"pg_description", 2609}, {"pg_trigger", 2620},
    {"pg_tablespace", 1213}, {"pg_rewrite", 2618},   {"pg_authid", 1260},
};

}  // namespace

int64_t OidOfName(std::string_view text, const Snapshot& snapshot) {
  const std::string name = NameOfText(text, &snapshot);
  for (size_t v = 0; v < snapshot.views.size(); ++v) {
    if (snapshot.views[v]->name == name) return OidOfView(v);
  }
  if (const auto table = snapshot.Find(name); table != nullptr) return OidOf(*table);
  for (size_t s = 0; s < snapshot.names.sequences.size(); ++s) {
    if (snapshot.names.sequences[s].name == name) return OidOfSequence(s);
  }
  for (const auto& [system, oid] : kSystemTables) {
    if (name == system) return oid;
  }
  for (const CatalogConstraint& c : CatalogConstraintsOf(snapshot)) {
    if (c.IsIndex() && c.name == name) return c.oid;
  }
  return -1;
}

}  // namespace tessera
