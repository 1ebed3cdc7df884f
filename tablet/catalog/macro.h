// A macro of CREATE MACRO, as the catalog keeps it. The compiler reads its definition, see macro_definition.h.
//
// Start at: Macro, FindMacro.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace tessera {

struct Macro {
  std::string name;
  bool of_rows = false;    ///< its calls stand in FROM; one of an expression may have the same name
  std::string definition;  ///< SQL from the parameters on: (a, b := 2) AS a + b

  bool operator==(const Macro&) const = default;
};

/// The order of a catalog's macros.
inline bool ComesBefore(const Macro& a, const Macro& b) {
  return std::tie(a.name, a.of_rows) < std::tie(b.name, b.of_rows);
}
/// The macro of that name, or nullptr. REQUIRES: sorted by ComesBefore.
inline const Macro* FindMacro(const std::vector<Macro>& macros, std::string_view name, bool of_rows) {
  const auto at = std::lower_bound(
      macros.begin(), macros.end(), std::tie(name, of_rows),
      [](const Macro& m, const auto& key) { return std::tuple<std::string_view, bool>(m.name, m.of_rows) < key; });
  return at != macros.end() && at->name == name && at->of_rows == of_rows ? &*at : nullptr;
}

}  // namespace tessera
