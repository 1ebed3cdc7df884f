// What a session may do with which tables, if it may not do all: roles of a server have such rights.
//
// A query needs SELECT on each table that it reads, those of views, too; INSERT and COPY FROM need INSERT on theirs; what changes,
// drops or empties a table needs all rights on it, and what makes or drops anything else all rights on everything. Temporary
// tables are the session's own.
//
// Start at: TableRights, CheckRights. Any thread.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/compiler.h"

namespace tessera {

struct TableRights {
  /// Names of tables as SQL shows them: t, schema.t, schema.* for all of a schema, * for all.
  std::set<std::string, std::less<>> select, insert, all;

  bool MaySelect(std::string_view qualified) const;
  bool MayInsert(std::string_view qualified) const;
  bool MayAll(std::string_view qualified) const;
  bool MayEverything() const { return all.contains("*"); }
};

/// Errors: kInsufficientPrivilege, the statement needs a right that is not there.
Status CheckRights(const TableRights& rights, const Compiled& compiled);
/// The error of what needs all rights on everything.
Status EverythingRefused();

}  // namespace tessera
