// Roles of CREATE ROLE, and what GRANT lets them do with tables.
//
// Start at: CatalogRole, TableGrant. Plain data.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct CatalogRole {
  std::string name;
  std::string verifier;    ///< of its password: SCRAM-SHA-256$...; "": it has none
  bool logs_in = false;    ///< LOGIN
  bool superuser = false;  ///< may do all

  auto operator<=>(const CatalogRole&) const = default;
};

/// What may be done with a table; a grant is a sum of these.
inline constexpr int64_t kRightSelect = 1, kRightInsert = 2, kRightUpdate = 4, kRightDelete = 8, kRightTruncate = 16,
                         kRightChange = 32,  ///< ALTER, DROP and the like
    kAllRights = 63;

/// The role that all are.
inline constexpr std::string_view kPublicRole = "public";

struct TableGrant {
  std::string role;  ///< kPublicRole, too
  int64_t table_id = 0;
  int64_t rights = 0;  ///< at least one

  auto operator<=>(const TableGrant&) const = default;
};

/// Sorted.
using CatalogRoles = std::vector<CatalogRole>;
using TableGrants = std::vector<TableGrant>;

/// nullptr if there is none.
inline const CatalogRole* FindRole(const CatalogRoles& roles, std::string_view name) {
  const auto at = std::ranges::find(roles, name, &CatalogRole::name);
  return at != roles.end() ? &*at : nullptr;
}

}  // namespace tessera
