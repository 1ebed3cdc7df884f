// What a session may do with which tables, if it may not do all: roles of a server have such rights.
//
// A query needs SELECT on each table that it reads, those of views, too; INSERT and COPY FROM need INSERT on theirs, UPDATE, DELETE
// and TRUNCATE the right of their name; what alters or drops a table needs all rights on it, and what makes or drops anything else
// all rights on everything. Temporary tables are the session's own.
//
// Start at: TableRights, CheckRights. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/compiler.h"

namespace tessera {

struct TableRights {
  /// By names of tables as SQL shows them (t, schema.t, schema.* for all of a schema, * for all): sums of rights
  /// (tablet/catalog/role.h).
  std::map<std::string, int64_t, std::less<>> by_table;

  void Add(std::string_view name, int64_t rights) { by_table[std::string(name)] |= rights; }
  /// Whether all of these rights are there.
  bool May(int64_t rights, std::string_view qualified) const;
  bool MayEverything() const;
};

/// What GRANT lets a role do.
TableRights RightsOfRole(const Snapshot& snapshot, std::string_view role);

/// Errors: kInsufficientPrivilege, the statement needs a right that is not there.
Status CheckRights(const TableRights& rights, const Compiled& compiled);
/// The error of what needs all rights on everything.
Status EverythingRefused();

}  // namespace tessera
