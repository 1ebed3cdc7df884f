#include "compiler/bind/role_binder.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/bind/relation_name.h"
#include "compiler/parse/statement_option.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/catalog/role.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

Status Notice(std::string text, Statement* out) {
  out->kind = Statement::Kind::kNotice;
  out->notice = std::move(text);
  return {};
}

Status NoSuchRole(std::string_view name, int position) {
  return SqlError(ErrorKind::kUndefinedObject, "role " + QuoteForMessage(name) + " does not exist", position,
                  "CREATE ROLE makes it.");
}

/// Errors: no role can be called so.
Status CheckNewRole(const std::string& name, int position, const Snapshot& snapshot) {
  if (name == kPublicRole || name == "none" || name.starts_with("pg_"))
    return SqlError(ErrorKind::kObjectDefinition, "role name " + QuoteForMessage(name) + " is reserved", position);
  if (FindRole(snapshot.names.roles, name) != nullptr)
    return SqlError(ErrorKind::kDuplicateObject, "role " + QuoteForMessage(name) + " already exists", position);
  return {};
}

/// The name of a RoleSpec. Errors: it is CURRENT_USER or the like.
Result<std::string> NameOfRole(const ParseNode& role) {
  const std::string_view type = role.Text(Field::k_roletype);
  if (type == "ROLESPEC_PUBLIC") return std::string(kPublicRole);
  if (type == "ROLESPEC_CSTRING") return std::string(role.Text(Field::k_rolename));
  return Unsupported("the role of the session is not known here", role.location(), "Write its name.");
}

Status ReadOptions(const ParseNode* options, RoleChange* change) {
  if (options == nullptr) return {};
  for (const ParseNode& option : *options) {
    const std::string_view name = option.Text(Field::k_defname);
    if (name == "password") {
      change->password = OptionText(option);
    } else if (name == "superuser" || name == "canlogin") {
      TESSERA_ASSIGN((name == "superuser" ? change->superuser : change->logs_in), BooleanOption(option));
    } else if (name == "inherit") {
      continue;  // there is nothing to inherit
    } else {
      const bool is_switch =
          name == "createdb" || name == "createrole" || name == "isreplication" || name == "bypassrls";
      bool on = true;
      if (is_switch) {
        TESSERA_ASSIGN(on, BooleanOption(option));
      }
      if (!on) continue;
      return Unsupported("a role's " + std::string(name) + " is not supported", option.location(),
                         "There are PASSWORD, LOGIN and SUPERUSER.");
    }
  }
  return {};
}

Result<int64_t> RightsOf(const ParseNode* privileges, int position) {
  if (privileges == nullptr) return kAllRights;
  constexpr std::pair<std::string_view, int64_t> kRights[] = {{"select", kRightSelect},
                                                              {"insert", kRightInsert},
                                                              {"update", kRightUpdate},
                                                              {"delete", kRightDelete},
                                                              {"truncate", kRightTruncate}};
  int64_t rights = 0;
  for (const ParseNode& privilege : *privileges) {
    const std::string_view name = privilege.Text(Field::k_priv_name);
    if (privilege.Get(Field::k_cols) != nullptr)
      return Unsupported("rights on single columns are not supported", position,
                         "GRANT SELECT ON a view's tables, or on the table.");
    const auto* const at = std::ranges::find(kRights, name, &std::pair<std::string_view, int64_t>::first);
    if (at == std::end(kRights)) {
      return Unsupported("the right " + QuoteForMessage(name) + " on tables is not supported", position,
                         "There are SELECT, INSERT, UPDATE, DELETE, TRUNCATE and ALL.");
    }
    rights |= at->second;
  }
  return rights;
}

/// The tables of a GRANT. `*view`: a view among them.
Status ReadTables(const ParseNode& grant, int position, const Snapshot& snapshot, std::vector<int64_t>* tables,
                  std::string* view) {
  if (grant.Text(Field::k_targtype) == "ACL_TARGET_ALL_IN_SCHEMA") {
    for (const ParseNode& object : *grant.Get(Field::k_objects)) {
      const std::string_view name = object.Text(Field::k_sval);
      const std::optional<std::string> schema = FindSchema(name, snapshot);
      if (!schema) return SchemaNotFound(name, position, snapshot);
      for (const auto& table : snapshot.tables) {
        if (SchemaOfName(table->schema.name) == *schema) tables->push_back(table->id);
      }
    }
    return {};
  }
  for (const ParseNode& object : *grant.Get(Field::k_objects)) {
    TESSERA_ASSIGN(const std::string name, RelationName(object, snapshot));
    if (FindView(snapshot.views, name) != nullptr) {
      *view = name;
      continue;
    }
    const std::shared_ptr<const TableInfo> table = snapshot.Find(name);
    if (table == nullptr) {
      return SqlError(ErrorKind::kUndefinedTable, "relation " + QuoteForMessage(ShownName(name)) + " does not exist",
                      object.location());
    }
    if (IsTemporaryName(name))
      return Unsupported("rights on a temporary table are not supported", object.location(),
                         "It is the session's own.");
    tables->push_back(table->id);
  }
  return {};
}

}  // namespace

Status BindCreateRole(const ParseNode& create, int position, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kChangeRole;
  RoleChange& change = out->definition.role;
  change.creates = true;
  change.roles.emplace_back(create.Text(Field::k_role));
  TESSERA_TRY(CheckNewRole(change.roles[0], position, snapshot));
  change.logs_in = create.Text(Field::k_stmt_type) == "ROLESTMT_USER";
  return ReadOptions(create.Get(Field::k_options), &change);
}

Status BindAlterRole(const ParseNode& alter, int position, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kChangeRole;
  TESSERA_ASSIGN(std::string name, NameOfRole(*alter.Get(Field::k_role)));
  if (FindRole(snapshot.names.roles, name) == nullptr) return NoSuchRole(name, position);
  out->definition.role.roles.push_back(std::move(name));
  return ReadOptions(alter.Get(Field::k_options), &out->definition.role);
}

Status BindRenameRole(const ParseNode& rename, int position, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kChangeRole;
  RoleChange& change = out->definition.role;
  change.roles.emplace_back(rename.Text(Field::k_subname));
  change.new_name = rename.Text(Field::k_newname);
  if (FindRole(snapshot.names.roles, change.roles[0]) == nullptr) return NoSuchRole(change.roles[0], position);
  return CheckNewRole(change.new_name, position, snapshot);
}

Status BindDropRole(const ParseNode& drop, int position, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kChangeRole;
  RoleChange& change = out->definition.role;
  change.drops = true;
  change.if_exists = drop.Get(Field::k_missing_ok) != nullptr;
  for (const ParseNode& role : *drop.Get(Field::k_roles)) {
    TESSERA_ASSIGN(std::string name, NameOfRole(role));
    if (FindRole(snapshot.names.roles, name) == nullptr && !change.if_exists) return NoSuchRole(name, position);
    for (const TableGrant& grant : snapshot.names.grants) {
      const TableInfo* const table = grant.role == name ? snapshot.FindById(grant.table_id) : nullptr;
      if (table == nullptr) continue;
      const std::string shown = ShownName(table->schema.name);
      return SqlError(ErrorKind::kDependentObjects,
                      "role " + QuoteForMessage(name) + " cannot be dropped because it has rights on table " + shown,
                      position, "REVOKE ALL ON " + shown + " FROM " + name + " takes them.");
    }
    change.roles.push_back(std::move(name));
  }
  return {};
}

Status BindGrant(const ParseNode& grant, int position, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kGrant;
  RoleChange& change = out->definition.role;
  change.grants = grant.Get(Field::k_is_grant) != nullptr;
  const std::string word = change.grants ? "GRANT" : "REVOKE";
  std::string missing;
  for (const ParseNode& role : *grant.Get(Field::k_grantees)) {
    TESSERA_ASSIGN(std::string name, NameOfRole(role));
    if (name == kPublicRole || FindRole(snapshot.names.roles, name) != nullptr) {
      change.roles.push_back(std::move(name));
    } else {
      missing = std::move(name);
    }
  }
  if (change.roles.empty()) return Notice(word + ": no effect, there is no role " + QuoteForMessage(missing), out);
  if (!missing.empty()) return NoSuchRole(missing, position);
  if (grant.Text(Field::k_targtype) == "ACL_TARGET_DEFAULTS" || grant.Text(Field::k_objtype) != "OBJECT_TABLE")
    return Notice(word + ": no effect, only tables have rights, all else is open to all", out);
  if (grant.Get(Field::k_grant_option) != nullptr)
    return Unsupported(word + (change.grants ? " WITH GRANT OPTION" : " GRANT OPTION FOR") + " is not supported",
                       position, "Superusers and sessions without a role grant.");
  TESSERA_ASSIGN(change.rights, RightsOf(grant.Get(Field::k_privileges), position));
  std::string view;
  TESSERA_TRY(ReadTables(grant, position, snapshot, &change.tables, &view));
  if (!view.empty() && change.tables.empty()) {
    return Notice(
        word + ": no effect, view " + QuoteForMessage(ShownName(view)) + " is open to who may read its tables", out);
  }
  return {};
}

}  // namespace tessera
