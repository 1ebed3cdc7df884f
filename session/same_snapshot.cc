#include "session/same_snapshot.h"

namespace tessera {

bool IsSameBesideTables(const Snapshot& a, const Snapshot& b) {
  // (A member more is a name more here, so that none can be forgotten.)
  const auto& [tables, files, types, macros, views] = a;
  (void)tables;
  (void)files;  // of a statement, which asks for their identity when it is compiled
  return types == b.types && macros == b.macros && views == b.views;
}

bool IsSame(const Snapshot& a, const Snapshot& b) { return a.tables == b.tables && IsSameBesideTables(a, b); }

}  // namespace tessera
