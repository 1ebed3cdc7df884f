// What a catalog names beside tables, types, macros and views.
//
// Start at: CatalogNames. Plain data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/comment.h"
#include "tablet/catalog/role.h"
#include "tablet/catalog/sequence.h"

namespace tessera {

struct CatalogNames {
  Sequences sequences;
  std::vector<std::string> schemas;  ///< of CREATE SCHEMA, sorted: the default one is not among them
  Comments comments;                 ///< of what is no table
  CatalogRoles roles;
  TableGrants grants;

  bool operator==(const CatalogNames&) const = default;
};

/// Errors: the schema of a qualified name is not there.
Status CheckSchemaExists(const CatalogNames& names, std::string_view qualified);

}  // namespace tessera
