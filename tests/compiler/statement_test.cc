// Binding of statements other than SELECT: CREATE and DROP TABLE, INSERT, COPY, SET, SHOW, EXPLAIN.
#include "tests/compiler/bind_fixture.h"

namespace tessera {
namespace {

class StatementTest : public BindTest {
 protected:
  /// The statement; REQUIRES: it binds.
  Statement Bound(std::string_view sql) const {
    Result<Statement> bound = BindText(sql);
    EXPECT_TRUE(bound.ok()) << sql << ": " << (bound.ok() ? "" : bound.status().message());
    return bound.ok() ? std::move(bound).value() : Statement();
  }
  /// Columns of a CREATE TABLE: "a INTEGER not null, ...", then the key.
  std::string Columns(std::string_view sql) const {
    const Result<Statement> bound = BindText(sql);
    if (!bound.ok()) return bound.status().message();
    std::string out;
    for (const ColumnSchema& c : bound->definition.schema.columns) {
      if (!out.empty()) out += ", ";
      out += c.name + " " + c.type.ToString() + (c.not_null ? " not null" : "");
    }
    if (!bound->definition.schema.primary_key.empty()) out += "; key";
    for (int c : bound->definition.schema.primary_key) out += " " + std::to_string(c);
    return out;
  }
  /// Rows of INSERT VALUES: "1 2 x / 3 NULL NULL".
  std::string Rows(std::string_view sql) const {
    const Result<Statement> bound = BindText(sql);
    if (!bound.ok()) return bound.status().message();
    std::string out;
    const RowBatch& batch = bound->change.values;
    for (size_t row = 0; row < batch.rows; ++row) {
      if (row > 0) out += " /";
      for (const ColumnVector& c : batch.columns) {
        if (!out.empty()) out += " ";
        if (c.IsNull(row)) {
          out += "NULL";
        } else {
          AppendText(c, row, &out);
        }
      }
    }
    return out;
  }
};

TEST_F(StatementTest, CreateTableTypes) {
  EXPECT_EQ(Columns("CREATE TABLE z (a BOOLEAN, b SMALLINT, c INT2, d INTEGER, e INT, f INT4, g BIGINT, h INT8)"),
            "a BOOLEAN, b SMALLINT, c SMALLINT, d INTEGER, e INTEGER, f INTEGER, g BIGINT, h BIGINT");
  EXPECT_EQ(
      Columns("CREATE TABLE z (a REAL, b FLOAT4, c DOUBLE PRECISION, d FLOAT8, e FLOAT, f FLOAT(24), g FLOAT(25))"),
      "a REAL, b REAL, c DOUBLE PRECISION, d DOUBLE PRECISION, e DOUBLE PRECISION, f REAL, g DOUBLE PRECISION");
  EXPECT_EQ(Columns("CREATE TABLE z (a DECIMAL, b NUMERIC(9), c DECIMAL(38,38), d DEC(5,2))"),
            "a DECIMAL(18,3), b DECIMAL(9,0), c DECIMAL(38,38), d DECIMAL(5,2)");
  EXPECT_EQ(
      Columns("CREATE TABLE z (a CHAR, b CHAR(3), c CHARACTER VARYING(4), d VARCHAR, e TEXT, f VARCHAR(10485760))"),
      "a VARCHAR(1), b VARCHAR(3), c VARCHAR(4), d TEXT, e TEXT, f VARCHAR(10485760)");
  EXPECT_EQ(Columns("CREATE TABLE z (a DATE, b TIMESTAMP, c TIMESTAMP(6), d TIMESTAMP WITHOUT TIME ZONE)"),
            "a DATE, b TIMESTAMP, c TIMESTAMP, d TIMESTAMP");
  EXPECT_EQ(Columns("CREATE TABLE z (a DECIMAL(39,2))"), "DECIMAL precision 39 must be between 1 and 38");
  EXPECT_EQ(Columns("CREATE TABLE z (a DECIMAL(0))"), "DECIMAL precision 0 must be between 1 and 38");
  EXPECT_EQ(Columns("CREATE TABLE z (a DECIMAL(5,6))"), "DECIMAL scale 6 must be between 0 and precision 5");
  EXPECT_EQ(Columns("CREATE TABLE z (a DECIMAL(5,-1))"), "DECIMAL scale -1 must be between 0 and precision 5");
  EXPECT_EQ(Columns("CREATE TABLE z (a VARCHAR(0))"), "length for type VARCHAR must be at least 1");
  EXPECT_EQ(Columns("CREATE TABLE z (a VARCHAR(10485761))"), "length for type VARCHAR cannot exceed 10485760");
  EXPECT_EQ(Columns("CREATE TABLE z (a TEXT(5))"), "type modifier is not allowed for type TEXT");
  EXPECT_EQ(Columns("CREATE TABLE z (a TIMESTAMPTZ, b TIMESTAMP WITH TIME ZONE, c UUID)"),
            "a TIMESTAMP WITH TIME ZONE, b TIMESTAMP WITH TIME ZONE, c UUID");
  EXPECT_EQ(Columns("CREATE TABLE z (a TIMETZ)"), "type TIME WITH TIME ZONE is not supported");
  EXPECT_EQ(Columns("CREATE TABLE z (a INTERVAL)"), "a INTERVAL");
  EXPECT_EQ(Columns("CREATE TABLE z (a INTERVAL DAY)"), "a column of type INTERVAL with fields is not supported");
}

TEST_F(StatementTest, CreateTableConstraints) {
  EXPECT_EQ(Columns("CREATE TABLE z (a INT PRIMARY KEY, b INT NOT NULL, c INT NULL)"),
            "a INTEGER not null, b INTEGER not null, c INTEGER; key 0");
  EXPECT_EQ(Columns("CREATE TABLE z (a INT, b INT, c INT, PRIMARY KEY (c, a))"),
            "a INTEGER not null, b INTEGER, c INTEGER not null; key 2 0");
  EXPECT_EQ(Columns("CREATE TABLE z (\"Mixed Case\" INT, UPPER_CASE INT)"), "Mixed Case INTEGER, upper_case INTEGER");
  EXPECT_EQ(Bound("CREATE TABLE z (a INT) WITH (tablet_rows = 65536)").definition.schema.tablet_rows, 65536u);
  EXPECT_EQ(Bound("CREATE TABLE z (a INT)").definition.schema.tablet_rows, 0u);
  EXPECT_TRUE(Bound("CREATE TABLE IF NOT EXISTS t (a INT)").definition.if_exists);
  EXPECT_EQ(Error("CREATE TABLE t (a INT)"),
            "ERROR:  table \"t\" already exists\nLINE 1: CREATE TABLE t (a INT)\n                     ^");
  EXPECT_EQ(Columns("CREATE TABLE z (a INT, a TEXT)"), "column \"a\" specified more than once");
  EXPECT_EQ(Columns("CREATE TABLE z (a INT NULL NOT NULL)"), "conflicting NULL/NOT NULL declarations for column \"a\"");
  EXPECT_EQ(Columns("CREATE TABLE z (a INT PRIMARY KEY, PRIMARY KEY (a))"),
            "multiple primary keys for table \"z\" are not allowed");
  EXPECT_EQ(Columns("CREATE TABLE z (a INT, PRIMARY KEY (b))"), "column \"b\" named in key does not exist");
  EXPECT_EQ(Columns("CREATE TABLE z (a INT, PRIMARY KEY (a, a))"),
            "column \"a\" appears twice in primary key constraint");
  EXPECT_EQ(Columns("CREATE TABLE z ()"), "table \"z\" must have at least one column");
  EXPECT_EQ(Columns("CREATE TABLE z (a INT) WITH (tablet_rows = 0)"),
            "tablet_rows must be an integer between 1 and 1048576");
  EXPECT_EQ(Columns("CREATE TABLE z (a INT) WITH (tablet_rows = -5)"),
            "tablet_rows must be an integer between 1 and 1048576");
  EXPECT_EQ(Columns("CREATE TABLE z (a INT) WITH (tablet_rows = 1048577)"),
            "tablet_rows must be an integer between 1 and 1048576");
  EXPECT_EQ(Columns("CREATE TABLE z (a INT) WITH (fillfactor = 5)"), "unrecognized parameter \"fillfactor\"");
}

TEST_F(StatementTest, DropTable) {
  EXPECT_EQ(Bound("DROP TABLE t").table, "t");
  EXPECT_FALSE(Bound("DROP TABLE t").definition.if_exists);
  EXPECT_TRUE(Bound("DROP TABLE IF EXISTS zz").definition.if_exists);
  EXPECT_EQ(Message("DROP TABLE zz"), "table \"zz\" does not exist");
  EXPECT_EQ(Message("DROP TABLE t, u"), "DROP TABLE of several tables is not supported");
}

TEST_F(StatementTest, InsertValues) {
  EXPECT_EQ(Rows("INSERT INTO u VALUES (1, 2, 'x'), (-3, NULL, DEFAULT)"), "1 2 x / -3 NULL NULL");
  EXPECT_EQ(Rows("INSERT INTO u (name, i) VALUES ('q', 1.5), (5, '7')"), "2 NULL q / 7 NULL 5");
  EXPECT_EQ(Rows("INSERT INTO u VALUES (1)"), "1 NULL NULL");
  EXPECT_EQ(Rows("INSERT INTO u VALUES (1 + 1, abs(-3), upper('x') || 'y')"), "2 3 Xy");
  EXPECT_EQ(Rows("INSERT INTO t (s, b, d, r, day, moment, flag, n) VALUES (-1, 5, 1.255, 0.1, '2000-01-01', date "
                 "'2000-01-01', 'yes', 0)"),
            "-1 NULL 5 1.26 NULL 0.1 NULL 2000-01-01 2000-01-01 00:00:00 NULL NULL true 0");
  EXPECT_EQ(Error("INSERT INTO u VALUES (1, 2, 'x', 4)"),
            "ERROR:  INSERT has more expressions than target columns\nLINE 1: INSERT INTO u VALUES (1, 2, 'x', 4)\n"
            "                                         ^");
  EXPECT_EQ(Rows("INSERT INTO u (i, x) VALUES (1)"), "INSERT has more target columns than expressions");
  EXPECT_EQ(Rows("INSERT INTO u VALUES (1, 2), (3)"), "VALUES lists must all be the same length");
  EXPECT_EQ(Error("INSERT INTO u VALUES (1, 'abc')"),
            "ERROR:  invalid input syntax for type integer: \"abc\"\nLINE 1: INSERT INTO u VALUES (1, 'abc')\n"
            "                                 ^");
  EXPECT_EQ(Rows("INSERT INTO u VALUES (true)"), "column \"i\" is of type INTEGER but expression is of type BOOLEAN");
  EXPECT_EQ(Rows("INSERT INTO u VALUES (x)"), "column \"x\" does not exist");
  EXPECT_EQ(Rows("INSERT INTO u VALUES (sum(1))"), "aggregate functions are not allowed in VALUES");
  EXPECT_EQ(Rows("INSERT INTO u VALUES (3000000000)"), "integer out of range");
  EXPECT_EQ(Rows("INSERT INTO t (v) VALUES ('eleven char')"), "value too long for type VARCHAR(10): \"eleven char\"");
  EXPECT_EQ(Rows("INSERT INTO t (v) VALUES (12345678901::text)"),
            "value too long for type VARCHAR(10): \"12345678901\"");
  EXPECT_EQ(Rows("INSERT INTO t (zz) VALUES (1)"), "column \"zz\" of table \"t\" does not exist");
  EXPECT_EQ(Rows("INSERT INTO t (i, i) VALUES (1, 2)"), "column \"i\" specified more than once");
  EXPECT_EQ(Rows("INSERT INTO zz VALUES (1)"), "table \"zz\" does not exist");
}

TEST_F(StatementTest, InsertSelect) {
  EXPECT_EQ(Show("INSERT INTO u SELECT n, b, v FROM t"),
            "from t\noutput i = t.n : INTEGER\noutput x = CAST(t.b AS INTEGER) : INTEGER?\noutput name = t.v : "
            "VARCHAR(10)?\n");
  // Columns that are not named are NULL; what is ordered by is the value before its cast.
  EXPECT_EQ(
      Show("INSERT INTO u (name, i) SELECT txt, d FROM t ORDER BY d, b LIMIT 3"),
      "from t\noutput i = CAST(t.d AS INTEGER) : INTEGER?\noutput x = NULL : INTEGER?\noutput name = t.txt : TEXT?\n"
      "hidden  = t.d : DECIMAL(12,2)?\nhidden  = t.b : BIGINT?\norder 3 asc nulls last\norder 4 asc nulls last\nlimit "
      "3\n");
  EXPECT_EQ(Show("INSERT INTO t (d, s) SELECT sum(x), i FROM u GROUP BY i").substr(0, 120).find("column"),
            std::string::npos);
  EXPECT_EQ(Message("INSERT INTO u SELECT flag FROM t"),
            "column \"i\" is of type INTEGER but expression is of type BOOLEAN");
  EXPECT_EQ(Message("INSERT INTO u SELECT txt FROM t"),
            "column \"i\" is of type INTEGER but expression is of type TEXT");
  EXPECT_EQ(Message("INSERT INTO u SELECT 1, 2, 'x', 4"), "INSERT has more expressions than target columns");
  EXPECT_EQ(Message("INSERT INTO u (i, x) SELECT 1"), "INSERT has more target columns than expressions");
  EXPECT_EQ(Message("INSERT INTO u SELECT DISTINCT f FROM t"),
            "INSERT of SELECT DISTINCT with a narrowing cast is not supported");
  EXPECT_EQ(Message("INSERT INTO u SELECT DISTINCT s FROM t"), "no error");
}

TEST_F(StatementTest, Copy) {
  Statement s = Bound("COPY u FROM 'in.csv'");
  EXPECT_EQ(s.kind, Statement::Kind::kCopyFrom);
  EXPECT_EQ(s.copy.file, "in.csv");
  EXPECT_EQ(s.copy.from.format.delimiter, ',');
  EXPECT_FALSE(s.copy.from.format.header);
  EXPECT_TRUE(s.copy.from.columns.empty());
  s = Bound(
      "COPY u (name, i) FROM STDIN WITH (FORMAT csv, HEADER, DELIMITER '|', NULL 'NULL', QUOTE '''', ESCAPE E'\\\\')");
  EXPECT_EQ(s.copy.file, "");
  EXPECT_EQ(s.copy.from.columns, (std::vector<int>{2, 0}));
  EXPECT_TRUE(s.copy.from.format.header);
  EXPECT_EQ(s.copy.from.format.delimiter, '|');
  EXPECT_EQ(s.copy.from.format.null_string, "NULL");
  EXPECT_EQ(s.copy.from.format.quote, '\'');
  EXPECT_EQ(s.copy.from.format.escape, '\\');
  s = Bound("COPY u FROM 'x' DELIMITER '\\t' CSV HEADER");
  EXPECT_EQ(s.copy.from.format.delimiter, '\t');
  EXPECT_TRUE(s.copy.from.format.header);
  s = Bound("COPY u FROM 'x' (HEADER false)");
  EXPECT_FALSE(s.copy.from.format.header);
  s = Bound("COPY (SELECT i FROM u WHERE x = 1) TO 'out.csv' (HEADER)");
  EXPECT_EQ(s.kind, Statement::Kind::kCopyTo);
  EXPECT_TRUE(s.copy.to.header);
  EXPECT_EQ(Show("COPY (SELECT i FROM u WHERE x = 1) TO STDOUT"), "from u\nwhere u.x = 1\noutput i = u.i : INTEGER\n");
  EXPECT_EQ(Show("COPY u (x, i) TO STDOUT"), "from u\noutput x = u.x : INTEGER?\noutput i = u.i : INTEGER\n");
  EXPECT_EQ(Show("COPY u TO STDOUT"),
            "from u\noutput i = u.i : INTEGER\noutput x = u.x : INTEGER?\noutput name = u.name : TEXT?\n");
  EXPECT_EQ(
      Error("COPY u (i, nam) FROM 'x'"),
      "ERROR:  column \"nam\" of table \"u\" does not exist\nLINE 1: COPY u (i, nam) FROM 'x'\n                   ^\n"
      "HINT:  Perhaps you meant column \"name\".");
  EXPECT_EQ(Message("COPY u (i, i) FROM 'x'"), "column \"i\" specified more than once");
  EXPECT_EQ(Message("COPY zz FROM 'x'"), "table \"zz\" does not exist");
  EXPECT_EQ(Message("COPY u FROM 'x' (DELIMITER 'ab')"), "COPY delimiter must be a single one-byte character");
  EXPECT_EQ(Message("COPY u FROM 'x' (DELIMITER '\"')"), "COPY delimiter and quote must be different");
  EXPECT_EQ(Message("COPY u FROM 'x' (NULL 'a,b')"),
            "COPY delimiter character must not appear in the NULL specification");
  EXPECT_EQ(Message("COPY u FROM 'x' (HEADER perhaps)"), "header requires a Boolean value");
  EXPECT_EQ(Message("COPY u FROM 'x' (FORMAT avro)"), "COPY format \"avro\" not recognized");
  EXPECT_EQ(Message("COPY u FROM 'x' (FORMAT parquet)"), "COPY of such a file here is not supported");
  EXPECT_EQ(Message("COPY u FROM 'x.parquet' (HEADER true)"),
            "COPY option \"header\" is not supported for Parquet files");
  EXPECT_EQ(Message("COPY u TO 'x' (FORMAT parquet, COMPRESSION lzo)"), "COPY compression \"lzo\" is not supported");
  EXPECT_EQ(Message("COPY u TO 'x' (FORMAT parquet, ROW_GROUP_SIZE 0)"),
            "COPY row_group_size takes a number of rows, from 1 on");
  EXPECT_EQ(Message("COPY u FROM 'x' (FORCE_NULL (i))"), "COPY option \"force_null\" is not supported");
  EXPECT_EQ(Message("COPY u FROM 'x' WHERE i > 1"), "COPY FROM with WHERE is not supported");
}

TEST_F(StatementTest, SetAndShow) {
  const auto set = [&](std::string_view sql) {
    const Statement s = Bound(sql);
    EXPECT_EQ(s.kind, Statement::Kind::kSet);
    return s.setting + "=" + s.value;
  };
  EXPECT_EQ(set("SET join_strategy = hash"), "join_strategy=hash");
  EXPECT_EQ(set("SET threads TO 4"), "threads=4");
  EXPECT_EQ(set("SET x = -4"), "x=-4");
  EXPECT_EQ(set("SET x = 'a ''b'"), "x=a 'b");
  EXPECT_EQ(set("SET x = on"), "x=on");
  EXPECT_EQ(set("SET x = 1.5"), "x=1.5");
  EXPECT_EQ(set("SET x = DEFAULT"), "x=default");
  EXPECT_EQ(set("RESET x"), "x=default");
  EXPECT_EQ(Message("SET x = 1, 2"), "SET x takes only one argument");
  EXPECT_EQ(Message("RESET ALL"), "RESET ALL is not supported");
  const Statement show = Bound("SHOW threads");
  EXPECT_EQ(show.kind, Statement::Kind::kShow);
  EXPECT_EQ(show.setting, "threads");
  EXPECT_EQ(Bound("SHOW ALL").setting, "all");
}

TEST_F(StatementTest, Explain) {
  EXPECT_FALSE(Bound("SELECT 1").explain.wanted);
  EXPECT_TRUE(Bound("EXPLAIN SELECT 1").explain.wanted);
  EXPECT_FALSE(Bound("EXPLAIN SELECT 1").explain.analyze);
  EXPECT_TRUE(Bound("EXPLAIN ANALYZE SELECT 1").explain.analyze);
  EXPECT_TRUE(Bound("EXPLAIN (ANALYZE) SELECT 1").explain.analyze);
  EXPECT_FALSE(Bound("EXPLAIN (ANALYZE off) SELECT 1").explain.analyze);
  EXPECT_EQ(Bound("EXPLAIN INSERT INTO u SELECT 1").kind, Statement::Kind::kInsert);
  EXPECT_EQ(Message("EXPLAIN (NOTHING) SELECT 1"), "EXPLAIN option \"nothing\" is not supported");
  EXPECT_FALSE(Bound("EXPLAIN (COSTS off) SELECT 1").explain.form.costs);
  EXPECT_TRUE(Bound("EXPLAIN (ANALYZE, BUFFERS, VERBOSE, COSTS off, TIMING, SUMMARY) SELECT 1").explain.form.buffers);
  EXPECT_TRUE(Bound("EXPLAIN (PROGRAM) SELECT 1").explain.form.program);
  EXPECT_TRUE(Bound("EXPLAIN (FORMAT JSON) SELECT 1").explain.form.json);
  EXPECT_EQ(Message("EXPLAIN (FORMAT XML) SELECT 1"), "EXPLAIN (FORMAT xml) is not supported");
  EXPECT_EQ(Message("EXPLAIN (PROGRAM, FORMAT JSON) SELECT 1"), "EXPLAIN (PROGRAM, FORMAT json) is not supported");
  EXPECT_EQ(Bound("EXPLAIN INSERT INTO u VALUES (1)").kind, Statement::Kind::kInsert);
  EXPECT_EQ(Bound("EXPLAIN UPDATE u SET i = 1").kind, Statement::Kind::kUpdate);
  EXPECT_EQ(Bound("EXPLAIN DELETE FROM u").kind, Statement::Kind::kDelete);
  EXPECT_EQ(Bound("EXPLAIN ANALYZE DELETE FROM u").kind, Statement::Kind::kDelete);
  EXPECT_TRUE(Bound("EXPLAIN ANALYZE DELETE FROM u").explain.analyze);
  EXPECT_EQ(Bound("EXPLAIN CREATE TABLE v AS SELECT 1 AS one").kind, Statement::Kind::kCreateTable);
  EXPECT_EQ(Message("EXPLAIN DECLARE c CURSOR FOR SELECT 1"), "EXPLAIN of this statement is not supported");
}

}  // namespace
}  // namespace tessera
