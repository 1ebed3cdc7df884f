// What the catalog says of a view: a query under a name.
//
// Start at: ViewSchema. Plain data.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct ViewColumn {
  std::string name;
  std::string output;  ///< the column of the query that it is: the first one of this name that none before it is
  std::string type;    ///< when the view was made
};

struct ViewSchema {
  std::string name;
  std::vector<ViewColumn> columns;
  std::string query;       ///< SQL
  bool temporary = false;  ///< of one session, and in no catalog
};

/// Sorted by name, a temporary one before the other of its name.
using Views = std::vector<std::shared_ptr<const ViewSchema>>;

inline bool ViewLess(const std::shared_ptr<const ViewSchema>& a, const std::shared_ptr<const ViewSchema>& b) {
  return a->name != b->name ? a->name < b->name : a->temporary > b->temporary;
}

/// The first view of that name, or nullptr. `temporary`: whether it may be a temporary one.
inline const ViewSchema* FindView(const Views& views, std::string_view name, bool temporary = true) {
  const auto less = [](const auto& view, std::string_view n) { return view->name < n; };
  for (auto at = std::lower_bound(views.begin(), views.end(), name, less); at != views.end() && (*at)->name == name;
       ++at) {
    if (temporary || !(*at)->temporary) return at->get();
  }
  return nullptr;
}

}  // namespace tessera
