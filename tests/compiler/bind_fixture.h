// What the tests of the binder share: tables made by CREATE TABLE statements, and bound statements as text to compare.
//
// Start at: BindTest::Show, BindTest::Error.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/compiler.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

class BindTest : public ::testing::Test {
 protected:
  /// Tables t and u:
  ///   t (s SMALLINT, i INTEGER, b BIGINT, d DECIMAL(12,2), w DECIMAL(30,4), r REAL, f DOUBLE PRECISION, day DATE,
  ///      moment TIMESTAMP, v VARCHAR(10), txt TEXT, flag BOOLEAN, n INTEGER NOT NULL)
  ///   u (i INTEGER NOT NULL, x INTEGER, name TEXT)
  BindTest();

  /// Adds the table of a CREATE TABLE statement; every column that may be NULL has one.
  void AddTable(std::string_view create_table);

  /// The statement as the planner gets it: parsed, bound, subqueries unnested, simplified.
  Result<Statement> BindText(std::string_view sql) const;
  /// The error as FormatError prints it; "no error" if there is none.
  std::string Error(std::string_view sql) const;
  /// The message alone.
  std::string Message(std::string_view sql) const;
  /// The one output of SELECT `expression` FROM t: "t.i + 1 : INTEGER", with a question mark if it may be NULL; or the
  /// message.
  std::string Expression(std::string_view expression) const;
  /// The same without FROM: the folded constant.
  std::string Constant(std::string_view expression) const;
  /// The conjuncts of SELECT 1 FROM t WHERE `condition`, joined by " & "; "nothing" if none is left.
  std::string Where(std::string_view condition) const;
  /// All of a query, a line for each part.
  std::string Show(std::string_view sql) const;
  /// The type of Expression().
  std::string TypeOf(std::string_view expression) const;

  Snapshot snapshot_;
};

}  // namespace tessera
