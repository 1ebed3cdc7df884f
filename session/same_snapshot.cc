#include "session/same_snapshot.h"

#include <algorithm>

namespace tessera {

bool IsSameBesideTables(const Snapshot& a, const Snapshot& b) {
  // (A member more is a name more here, so that none can be forgotten.)
  const auto& [tables, files, types, macros, views, names, attached, path] = a;
  (void)tables;
  (void)files;     // of a statement, which asks for their identity when it is compiled
  (void)attached;  // they are asked for by the names of their tables
  // (Comments mean nothing to other statements, and queries of catalogs are of a moment.)
  return types == b.types && macros == b.macros && views == b.views && names.schemas == b.names.schemas &&
         path == b.path && std::ranges::equal(names.sequences, b.names.sequences, IsSameButForValue);
}

bool IsSame(const Snapshot& a, const Snapshot& b) { return a.tables == b.tables && IsSameBesideTables(a, b); }

}  // namespace tessera
