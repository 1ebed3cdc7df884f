// What COMMENT ON says of what is no table: of tables and their columns, TableSchema has it.
//
// Start at: FindComment. Plain data.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct Comment {
  std::string kind;  ///< view, sequence, type, schema, macro
  std::string name;
  std::string column;  ///< of a view; "": the view itself
  std::string text;

  auto operator<=>(const Comment&) const = default;
};

/// Sorted.
using Comments = std::vector<Comment>;

/// nullptr if there is none.
inline const Comment* FindComment(const Comments& comments, std::string_view kind, std::string_view name,
                                  std::string_view column = {}) {
  const auto is_it = [&](const Comment& c) { return c.kind == kind && c.name == name && c.column == column; };
  const auto at = std::ranges::find_if(comments, is_it);
  return at != comments.end() ? &*at : nullptr;
}

}  // namespace tessera
