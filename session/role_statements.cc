// CREATE, ALTER and DROP ROLE, GRANT and REVOKE; what a session's role may do.
#include <algorithm>
#include <string>
#include <utility>

#include "session/session_state.h"
#include "session/statements.h"
#include "session/table_rights.h"
#include "tablet/catalog/role.h"

namespace tessera {
namespace {

/// What the catalog keeps of a password.
Result<std::string> VerifierOf(const SessionState& state, const std::string& password) {
  if (password.empty() || password.starts_with("SCRAM-SHA-256$")) return password;
  if (state.options.make_verifier != nullptr) return state.options.make_verifier(password);
  return Unsupported("passwords are not hashed here", -1,
                     "Write PASSWORD 'SCRAM-SHA-256$...', as tessera --role NAME makes it of a password.");
}

Status Alter(const RoleChange& change, const std::string& verifier, CatalogNames* names) {
  const std::string& name = change.roles[0];
  const auto role = std::ranges::find(names->roles, name, &CatalogRole::name);
  if (role == names->roles.end()) return SqlError(ErrorKind::kUndefinedObject, "role \"" + name + "\" does not exist");
  if (change.password) role->verifier = verifier;
  role->logs_in = change.logs_in.value_or(role->logs_in);
  role->superuser = change.superuser.value_or(role->superuser);
  if (change.new_name.empty()) return Status::Ok();
  if (FindRole(names->roles, change.new_name) != nullptr)
    return SqlError(ErrorKind::kDuplicateObject, "role \"" + change.new_name + "\" already exists");
  role->name = change.new_name;
  for (TableGrant& grant : names->grants) {
    if (grant.role == name) grant.role = change.new_name;
  }
  return Status::Ok();
}

/// The one who changes only the own password may do so.
bool IsOwnPassword(const SessionState& state, const Statement& s) {
  const RoleChange& change = s.definition.role;
  return s.kind == Statement::Kind::kChangeRole && !change.creates && !change.drops && change.password &&
         !change.logs_in && !change.superuser && change.new_name.empty() && change.roles.size() == 1 &&
         change.roles[0] == state.options.role;
}

}  // namespace

Status ChangeRole(SessionState* state, const RoleChange& change, ResultWriter* out) {
  TESSERA_ASSIGN(const std::string verifier, VerifierOf(*state, change.password.value_or("")));
  TESSERA_TRY(state->database->ChangeNames([&](CatalogNames* names) -> Status {
    if (change.drops) {
      const auto is_dropped = [&](const auto& name) { return std::ranges::count(change.roles, name) > 0; };
      std::erase_if(names->roles, [&](const CatalogRole& role) { return is_dropped(role.name); });
      std::erase_if(names->grants, [&](const TableGrant& grant) { return is_dropped(grant.role); });
      return Status::Ok();
    }
    if (!change.creates) return Alter(change, verifier, names);
    const std::string& name = change.roles[0];
    if (FindRole(names->roles, name) != nullptr)
      return SqlError(ErrorKind::kDuplicateObject, "role \"" + name + "\" already exists");
    names->roles.push_back({name, verifier, change.logs_in.value_or(false), change.superuser.value_or(false)});
    return Status::Ok();
  }));
  return out->Done(change.creates ? "CREATE ROLE" : change.drops ? "DROP ROLE" : "ALTER ROLE");
}

Status ChangeGrants(SessionState* state, const RoleChange& change, ResultWriter* out) {
  TESSERA_TRY(state->database->ChangeNames([&](CatalogNames* names) {
    for (const std::string& role : change.roles) {
      for (const int64_t table : change.tables) {
        auto grant = std::ranges::find_if(names->grants,
                                          [&](const TableGrant& g) { return g.role == role && g.table_id == table; });
        if (grant == names->grants.end()) {
          if (!change.grants) continue;
          grant = names->grants.insert(names->grants.end(), {role, table, 0});
        }
        grant->rights = change.grants ? grant->rights | change.rights : grant->rights & ~change.rights;
      }
    }
    std::erase_if(names->grants, [](const TableGrant& grant) { return grant.rights == 0; });
    return Status::Ok();
  }));
  return out->Done(change.grants ? "GRANT" : "REVOKE");
}

Status CheckStatementRights(SessionState* state, const Snapshot& snapshot, const Compiled& compiled) {
  if (state->options.rights != nullptr) return CheckRights(*state->options.rights, compiled);
  if (state->options.role.empty() || IsOwnPassword(*state, compiled.statement)) return Status::Ok();
  return CheckRights(RightsOfRole(snapshot, state->options.role), compiled);
}

Status CheckMayEverything(SessionState* state) {
  if (state->options.rights != nullptr && !state->options.rights->MayEverything()) return EverythingRefused();
  if (state->options.role.empty()) return Status::Ok();
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, state->Read());
  return RightsOfRole(*snapshot, state->options.role).MayEverything() ? Status::Ok() : EverythingRefused();
}

}  // namespace tessera
