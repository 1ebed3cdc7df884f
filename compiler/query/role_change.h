// What CREATE, ALTER and DROP ROLE, GRANT and REVOKE do.
//
// Start at: RoleChange. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct RoleChange {
  std::vector<std::string> roles;  ///< whom it is about: one of CREATE and ALTER; of GRANT and REVOKE also public
  // CREATE and ALTER ROLE: what it says.
  bool creates = false;
  std::optional<bool> logs_in, superuser;
  std::optional<std::string> password;  ///< "": PASSWORD NULL
  std::string new_name;                 ///< of ALTER ROLE ... RENAME TO; else ""
  // DROP ROLE.
  bool drops = false;
  bool if_exists = false;
  // GRANT and REVOKE.
  bool grants = false;          ///< else it revokes
  int64_t rights = 0;           ///< see tablet/catalog/role.h
  std::vector<int64_t> tables;  ///< their identifiers
};

}  // namespace tessera
