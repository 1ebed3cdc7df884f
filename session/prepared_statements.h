// PREPARE, EXECUTE and DEALLOCATE: statements with parameters that a session knows by name until it ends. Internal to
// session/.
//
// A prepared statement is its text and the types of its parameters. EXECUTE binds the text anew with the values as
// constants, so that plans fit these and a change of tables needs no care; the program of a query is kept by text and
// values (session/program_cache.h).
//
// Start at: PreparedStatements. The thread of the session.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/compiler.h"
#include "compiler/plan/plan_options.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera {

struct PreparedStatement {
  std::string text;
  std::vector<SqlType> types;  ///< of $1, $2 and so on
};

class PreparedStatements {
 public:
  /// PREPARE name AS statement, where the statement is what begins at `at`. Errors: the name is taken; those of the
  /// statement; the type of a parameter cannot be told.
  Status Prepare(std::string_view sql, size_t at, const Snapshot& snapshot, const PlanOptions& options);
  /// The statement that EXECUTE names. Errors: there is none.
  Result<const PreparedStatement*> Find(const std::string& name) const;
  /// The arguments of EXECUTE as values of the parameters. Errors: their number, a type, a value, with the position of the
  /// argument.
  static Result<std::vector<Value>> ValuesOf(const PreparedStatement& prepared, const Statement& execute,
                                             const TimeZone* zone);
  /// "" for all. Errors: there is none.
  Status Deallocate(const std::string& name);

 private:
  std::map<std::string, PreparedStatement, std::less<>> by_name_;
};

/// What tells runs of a text apart: it and its parameters' values. Another key than the text alone.
std::string ProgramKey(std::string_view sql, const std::vector<Value>& parameters);
/// What runs of a text have in common whose parameters' values have the same types, and are NULL or are not. Another key
/// than those.
std::string ProgramKeyOfTypes(std::string_view sql, const std::vector<Value>& parameters);

}  // namespace tessera
