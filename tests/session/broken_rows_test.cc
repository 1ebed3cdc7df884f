// PRAGMA integrity_check of rows that break what their table asks: constraints that a table gets without a look at its rows.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tablet/catalog/schema.h"
#include "tablet/database.h"
#include "tests/session/session_answer.h"

namespace tessera {
namespace {

std::unique_ptr<Session> OpenSession() {
  SessionOptions options;
  options.mode = OpenMode::kReadWrite;
  Result<std::unique_ptr<Session>> session = Session::Open(options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  return session.ok() ? std::move(*session) : nullptr;
}

TableSchema SchemaOf(Session* session, const std::string& table) {
  const Result<std::shared_ptr<const Snapshot>> tables = session->Tables();
  return (*tables)->Find(table)->schema;
}

/// The table gets the schema, whatever its rows are.
void GiveSchema(Session* session, const TableSchema& schema) {
  Result<std::unique_ptr<TableAlteration>> alteration = session->database().Alter(schema.name);
  ASSERT_TRUE(alteration.ok()) << alteration.status().message();
  std::vector<int> sources(schema.columns.size());
  std::iota(sources.begin(), sources.end(), 0);
  const Status status = (*alteration)->MoveColumns(schema, sources);
  ASSERT_TRUE(status.ok()) << status.message();
}

class BrokenRows : public ::testing::Test {
 protected:
  void SetUp() override {
    session_ = OpenSession();
    ASSERT_NE(session_, nullptr);
    Run("CREATE TABLE parent (a INTEGER PRIMARY KEY)");
    Run("INSERT INTO parent VALUES (1), (2)");
    Run("CREATE TABLE t (id INTEGER, v VARCHAR(20), n INTEGER, p INTEGER, g INTEGER)");
    Run("INSERT INTO t VALUES (1, 'a', 1, 1, 2), (1, 'long text', -1, 5, 2), (2, NULL, NULL, NULL, 4), (3, 'd', -7, 2, "
        "7), "
        "(3, NULL, 1, 9, 0)");
    Run("DELETE FROM t WHERE p = 9");
    Run("CREATE TABLE good (id INTEGER PRIMARY KEY, v VARCHAR(20) NOT NULL, n INTEGER CONSTRAINT positive CHECK (n > "
        "0), "
        "p INTEGER CONSTRAINT to_parent REFERENCES parent, g INTEGER GENERATED ALWAYS AS (id * 2) STORED, "
        "CONSTRAINT g_key UNIQUE (g))");
  }
  void Run(const std::string& sql) {
    const std::string answer = Answer(session_.get(), sql);
    EXPECT_EQ(answer.find("ERROR"), std::string::npos) << answer;
  }
  std::vector<std::string> Check(const std::string& pragma = "PRAGMA integrity_check") {
    ResultTextOptions options;
    options.format = ResultFormat::kList;
    options.headers = false;
    std::vector<std::string> rows;
    const std::string answer = Answer(session_.get(), pragma, options);
    for (size_t at = 0; at < answer.size();) {
      const size_t end = std::min(answer.find('\n', at), answer.size());
      rows.push_back(answer.substr(at, end - at));
      at = end + 1;
    }
    return rows;
  }

  std::unique_ptr<Session> session_;
};

using Rows = std::vector<std::string>;

TEST_F(BrokenRows, EachConstraintCountsItsRows) {
  EXPECT_EQ(Check(), Rows{"ok"});
  TableSchema schema = SchemaOf(session_.get(), "good");
  schema.name = "t";
  schema.columns[1].type.length = 5;
  GiveSchema(session_.get(), schema);
  const Rows rows = {
      "table t: 1 row with NULL in column v, which is NOT NULL",
      "table t: 1 row with a text in column v that is longer than VARCHAR(5)",
      "table t: 1 row with another value in column g than it is GENERATED as",
      "table t: 2 rows against CHECK constraint positive",
      "table t: 1 key of PRIMARY KEY (id) is there more than once",
      "table t: 1 key of UNIQUE constraint g_key (g) is there more than once",
      "table t: 1 row without the row of parent that foreign key to_parent asks for",
  };
  EXPECT_EQ(Check(), rows);
  EXPECT_EQ(Check("PRAGMA integrity_check(2)"), (Rows{rows[0], rows[1]}));
  EXPECT_EQ(Check("PRAGMA integrity_check('t')"), rows);
  EXPECT_EQ(Check("PRAGMA integrity_check('parent')"), Rows{"ok"});
  EXPECT_EQ(Check("PRAGMA quick_check"), Rows{"ok"});
}

TEST_F(BrokenRows, RowsThatAreGoneCountForNothing) {
  Run("DELETE FROM t WHERE v IS NULL OR n < 0");
  TableSchema schema = SchemaOf(session_.get(), "good");
  schema.name = "t";
  GiveSchema(session_.get(), schema);
  EXPECT_EQ(Check(), Rows{"ok"});
}

}  // namespace
}  // namespace tessera
