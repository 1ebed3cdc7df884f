// Roles and grants: how the catalog keeps them.
#include <algorithm>

#include "tablet/catalog/catalog.h"
#include "tablet/catalog/catalog_statement.h"
#include "tablet/catalog/role.h"

namespace tessera {

const char Catalog::kRolesSchema[] = R"(
CREATE TABLE roles (
  name       TEXT PRIMARY KEY,
  verifier   TEXT NOT NULL,
  logs_in    INTEGER NOT NULL,
  superuser  INTEGER NOT NULL
);
CREATE TABLE grants (
  role      TEXT NOT NULL,
  table_id  INTEGER NOT NULL,
  rights    INTEGER NOT NULL,
  PRIMARY KEY (role, table_id)
);
)";

Status Catalog::LoadRoles(CatalogNames* names) {
  TESSERA_ASSIGN(const bool has_roles, HasTable("roles"));
  if (!has_roles) return {};
  CatalogStatement roles(&file_, "SELECT name, verifier, logs_in, superuser FROM roles NOT INDEXED");
  for (;;) {
    TESSERA_ASSIGN(const bool row, roles.Step());
    if (!row) break;
    names->roles.push_back({roles.Text(0), roles.Text(1), roles.Integer(2, 0, 1) == 1, roles.Integer(3, 0, 1) == 1});
  }
  if (!roles.wrong().empty()) return file_.Corrupt("a role has " + roles.wrong());
  CatalogStatement grants(&file_, "SELECT role, table_id, rights FROM grants NOT INDEXED");
  for (;;) {
    TESSERA_ASSIGN(const bool row, grants.Step());
    if (!row) break;
    names->grants.push_back({grants.Text(0), grants.Integer(1, 1, INT64_MAX), grants.Integer(2, 1, kAllRights)});
  }
  if (!grants.wrong().empty()) return file_.Corrupt("a grant has " + grants.wrong());
  std::ranges::sort(names->roles);
  std::ranges::sort(names->grants);
  return {};
}

Status Catalog::WriteRoles(const CatalogNames& names) {
  TESSERA_ASSIGN(const bool has_roles, HasTable("roles"));
  if (!has_roles) {
    if (names.roles.empty() && names.grants.empty()) return {};
    TESSERA_TRY(file_.Execute(kRolesSchema));
    TESSERA_TRY(RaiseVersion(kVersionWithRoles));
  }
  TESSERA_TRY(file_.Execute("DELETE FROM roles"));
  TESSERA_TRY(file_.Execute("DELETE FROM grants"));
  CatalogStatement roles(&file_, "INSERT INTO roles VALUES (?, ?, ?, ?)");
  for (const CatalogRole& r : names.roles) {
    roles.Bind(std::string_view(r.name)).Bind(std::string_view(r.verifier));
    TESSERA_TRY(roles.Bind(int64_t{r.logs_in}).Bind(int64_t{r.superuser}).Run());
  }
  CatalogStatement grants(&file_, "INSERT INTO grants VALUES (?, ?, ?)");
  for (const TableGrant& g : names.grants)
    TESSERA_TRY(grants.Bind(std::string_view(g.role)).Bind(g.table_id).Bind(g.rights).Run());
  return {};
}

}  // namespace tessera
