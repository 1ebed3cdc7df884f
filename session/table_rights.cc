#include "session/table_rights.h"

#include <algorithm>
#include <vector>

#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

Status Refused(std::string_view right, std::string_view qualified) {
  return {ErrorKind::kInsufficientPrivilege, "permission denied for table " + ShownName(qualified),
          "This role has no " + std::string(right) + " on it."};
}

/// Rights that the statement needs on tables; "*": on everything.
struct Needed {
  std::vector<std::string> tables;
  int64_t rights = kAllRights;
};

Needed Changed(const Statement& s) {
  switch (s.kind) {
    case Statement::Kind::kSelect:
    case Statement::Kind::kCopyTo:
    case Statement::Kind::kInsert:
    case Statement::Kind::kCopyFrom:
    case Statement::Kind::kSet:
    case Statement::Kind::kShow:
    case Statement::Kind::kNotice:
    case Statement::Kind::kSetVariable:
    case Statement::Kind::kPrepare:
    case Statement::Kind::kExecute:
    case Statement::Kind::kDeallocate:
      return {};
    case Statement::Kind::kDelete:
      return {{s.table}, kRightDelete};
    case Statement::Kind::kUpdate:
      return {{s.table}, kRightUpdate};
    case Statement::Kind::kMerge:
      return {{s.table}, kRightInsert | kRightUpdate | kRightDelete};
    case Statement::Kind::kAlterTable:
    case Statement::Kind::kDropTable:
    case Statement::Kind::kRefreshView:
      return {{s.table}};
    case Statement::Kind::kTruncate:
      return {s.tables, kRightTruncate};
    case Statement::Kind::kCreateTable:
      if (IsTemporaryName(s.definition.schema.name)) return {};
      break;
    case Statement::Kind::kCreateView:
      if (s.definition.view->temporary) return {};
      break;
    case Statement::Kind::kVacuum:
      if (!s.tables.empty()) return {s.tables};
      break;
    case Statement::Kind::kCreateType:
    case Statement::Kind::kDropType:
    case Statement::Kind::kCreateMacro:
    case Statement::Kind::kDropMacro:
    case Statement::Kind::kDropView:
    case Statement::Kind::kCreateSequence:
    case Statement::Kind::kAlterSequence:
    case Statement::Kind::kDropSequence:
    case Statement::Kind::kCreateSchema:
    case Statement::Kind::kDropSchema:
    case Statement::Kind::kComment:
    case Statement::Kind::kChangeRole:
    case Statement::Kind::kGrant:
      break;
  }
  return {{"*"}};
}

const char* RightName(int64_t rights) {
  return rights == kRightDelete     ? "DELETE"
         : rights == kRightUpdate   ? "UPDATE"
         : rights == kRightTruncate ? "TRUNCATE"
         : rights == kAllRights     ? "ALL"
                                    : "INSERT, UPDATE and DELETE";
}

bool Reads(const vm::Program* program, std::string_view table) {
  return program != nullptr &&
         std::ranges::any_of(program->tables, [&](const vm::TableRef& t) { return t.name == table; });
}

}  // namespace

bool TableRights::May(int64_t rights, std::string_view qualified) const {
  if (IsTemporaryName(qualified)) return true;
  int64_t has = 0;
  const auto add = [&](std::string_view name) {
    const auto at = by_table.find(name);
    if (at != by_table.end()) has |= at->second;
  };
  const std::string_view schema = SchemaOfName(qualified);
  const std::string of_schema = (schema.empty() ? "public" : std::string(schema)) + ".";
  add("*");
  add(of_schema + "*");
  add(of_schema + std::string(BaseName(qualified)));
  if (schema.empty()) add(qualified);
  return (has & rights) == rights;
}

bool TableRights::MayEverything() const {
  const auto at = by_table.find("*");
  return at != by_table.end() && at->second == kAllRights;
}

TableRights RightsOfRole(const Snapshot& snapshot, std::string_view role) {
  TableRights rights;
  const CatalogRole* const is = FindRole(snapshot.names.roles, role);
  if (is == nullptr) return rights;  // it has been dropped
  if (is->superuser) rights.Add("*", kAllRights);
  for (const TableGrant& grant : snapshot.names.grants) {
    if (grant.role != role && grant.role != kPublicRole) continue;
    const auto table = std::ranges::find_if(snapshot.tables, [&](const auto& t) { return t->id == grant.table_id; });
    if (table == snapshot.tables.end()) continue;
    const std::string& name = (*table)->schema.name;
    const std::string_view schema = SchemaOfName(name);
    rights.Add((schema.empty() ? "public" : std::string(schema)) + "." + std::string(BaseName(name)), grant.rights);
  }
  return rights;
}

Status EverythingRefused() {
  return {ErrorKind::kInsufficientPrivilege, "permission denied",
          "It needs a role that may do all: a superuser, or all=* of a roles file."};
}

Status CheckRights(const TableRights& rights, const Compiled& compiled) {
  if (rights.MayEverything()) return Status::Ok();
  const Statement& s = compiled.statement;
  const Needed changed = Changed(s);
  for (const std::string& table : changed.tables) {
    if (table == "*") return EverythingRefused();
    if (!rights.May(changed.rights, table)) return Refused(RightName(changed.rights), table);
  }
  const bool inserts = s.kind == Statement::Kind::kInsert || s.kind == Statement::Kind::kCopyFrom;
  if (inserts && !rights.May(kRightInsert, s.table)) return Refused("INSERT", s.table);
  // (ON CONFLICT DO UPDATE changes rows that are there.)
  if (inserts && s.change.on_conflict != nullptr && !rights.May(kRightUpdate, s.table))
    return Refused("UPDATE", s.table);
  const bool returns = s.change.returning != nullptr;
  for (const Dependencies::Table& read : compiled.dependencies.tables) {
    // (The target is noted, too.)
    if (inserts && read.name == s.table && !Reads(compiled.program.get(), s.table)) continue;
    if (!rights.May(kRightSelect, read.name)) return Refused("SELECT", read.name);
  }
  return returns && !rights.May(kRightSelect, s.table) ? Refused("SELECT", s.table) : Status::Ok();
}

}  // namespace tessera
