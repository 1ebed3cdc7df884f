#include "session/same_snapshot.h"

#include <algorithm>

namespace tessera {
namespace {

/// They may be two objects: one is made when the catalog is read again after a change of another process.
bool IsSameView(const std::shared_ptr<const ViewSchema>& a, const std::shared_ptr<const ViewSchema>& b) {
  if (a == b) return true;
  const auto is_same = [](const ViewColumn& x, const ViewColumn& y) {
    return x.name == y.name && x.output == y.output && x.type == y.type;
  };
  const auto& [name, columns, query, temporary] = *a;
  return name == b->name && query == b->query && temporary == b->temporary &&
         std::ranges::equal(columns, b->columns, is_same);
}

}  // namespace

bool IsSameBesideTables(const Snapshot& a, const Snapshot& b) {
  // (A member more is a name more here, so that none can be forgotten.)
  const auto& [tables, files, types, macros, views, names, attached, path] = a;
  (void)tables;
  (void)files;     // of a statement, which asks for their identity when it is compiled
  (void)attached;  // they are asked for by the names of their tables
  // (Comments mean nothing to other statements, and queries of catalogs are of a moment.)
  return types == b.types && macros == b.macros && std::ranges::equal(views, b.views, IsSameView) &&
         names.schemas == b.names.schemas && path == b.path &&
         std::ranges::equal(names.sequences, b.names.sequences, IsSameButForValue);
}

bool IsSame(const Snapshot& a, const Snapshot& b) { return a.tables == b.tables && IsSameBesideTables(a, b); }

}  // namespace tessera
