#include "session/table_rights.h"

#include <algorithm>
#include <vector>

#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

bool Has(const std::set<std::string, std::less<>>& names, std::string_view qualified) {
  if (IsTemporaryName(qualified)) return true;
  const std::string_view schema = SchemaOfName(qualified);
  const std::string of_schema = (schema.empty() ? "public" : std::string(schema)) + ".";
  return names.contains("*") || names.contains(of_schema + "*") || names.contains(of_schema + BaseName(qualified)) ||
         (schema.empty() && names.contains(qualified));
}

Status Refused(std::string_view right, std::string_view qualified) {
  return {ErrorKind::kInsufficientPrivilege, "permission denied for table " + ShownName(qualified),
          "This role has no " + std::string(right) + " on it."};
}

/// The tables of which the statement needs all rights; "*": of everything.
std::vector<std::string> Changed(const Statement& s) {
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
    case Statement::Kind::kUpdate:
    case Statement::Kind::kMerge:
    case Statement::Kind::kAlterTable:
    case Statement::Kind::kDropTable:
    case Statement::Kind::kRefreshView:
      return {s.table};
    case Statement::Kind::kTruncate:
      return s.tables;
    case Statement::Kind::kCreateTable:
      if (IsTemporaryName(s.definition.schema.name)) return {};
      break;
    case Statement::Kind::kCreateView:
      if (s.definition.view->temporary) return {};
      break;
    case Statement::Kind::kVacuum:
      if (!s.tables.empty()) return s.tables;
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
      break;
  }
  return {"*"};
}

bool Reads(const vm::Program* program, std::string_view table) {
  return program != nullptr &&
         std::ranges::any_of(program->tables, [&](const vm::TableRef& t) { return t.name == table; });
}

}  // namespace

bool TableRights::MaySelect(std::string_view qualified) const { return Has(select, qualified) || MayAll(qualified); }
bool TableRights::MayInsert(std::string_view qualified) const { return Has(insert, qualified) || MayAll(qualified); }
bool TableRights::MayAll(std::string_view qualified) const { return Has(all, qualified); }

Status EverythingRefused() {
  return {ErrorKind::kInsufficientPrivilege, "permission denied", "It needs a role with all=*."};
}

Status CheckRights(const TableRights& rights, const Compiled& compiled) {
  if (rights.MayEverything()) return Status::Ok();
  const Statement& s = compiled.statement;
  for (const std::string& table : Changed(s)) {
    if (table == "*") return EverythingRefused();
    if (!rights.MayAll(table)) return Refused("ALL", table);
  }
  const bool inserts = s.kind == Statement::Kind::kInsert || s.kind == Statement::Kind::kCopyFrom;
  if (inserts && !rights.MayInsert(s.table)) return Refused("INSERT", s.table);
  // (ON CONFLICT DO UPDATE changes rows that are there.)
  if (inserts && s.change.on_conflict != nullptr && !rights.MayAll(s.table)) return Refused("ALL", s.table);
  const bool returns = s.change.returning != nullptr;
  for (const Dependencies::Table& read : compiled.dependencies.tables) {
    // (The target is noted, too.)
    if (inserts && read.name == s.table && !Reads(compiled.program.get(), s.table)) continue;
    if (!rights.MaySelect(read.name)) return Refused("SELECT", read.name);
  }
  return returns && !rights.MaySelect(s.table) ? Refused("SELECT", s.table) : Status::Ok();
}

}  // namespace tessera
