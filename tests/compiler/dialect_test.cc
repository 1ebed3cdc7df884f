// Text in forms that the grammar lacks: what the parser gets, and where errors point.
#include <gtest/gtest.h>

#include <string>

#include "compiler/parse/dialect_text.h"
#include "tests/compiler/bind_fixture.h"

namespace tessera {
namespace {

std::string Rewritten(std::string_view sql) {
  Result<DialectText> text = DialectText::Read(sql);
  return text.ok() ? text->text() : text.status().message();
}

TEST(DialectText, LeavesAloneWhatTheGrammarHas) {
  for (const char* sql : {"SELECT a, b FROM t WHERE a IN (1, 2) ORDER BY b DESC",
                          "SELECT ALL a FROM t GROUP BY ALL a, b",
                          "SELECT trim(FROM ' x '), extract(year FROM d) FROM t",
                          "SELECT a.from, b AS select FROM t",
                          "SELECT a IS DISTINCT FROM b FROM t",
                          "DELETE FROM t",
                          "SELECT a * exclude (b), replace FROM t",
                          "SELECT 'FROM t SELECT', \"exclude\", $$ IN () $$ /* IN () */ -- IN ()\n",
                          "COPY t FROM 'x'",
                          "SELECT top, anti AS semi, glob FROM positional semi, asof",
                          "SELECT a[1], ARRAY[2], b <== c, interval",
                          "COPY t FROM 'x'",
                          "SELECT substring('a' FROM 'b'), 10 % 3 LIMIT 10 % 3",
                          "SELECT qualify, a qualify FROM t qualify WHERE qualify.a = (qualify)",
                          "SELECT 1 FROM qualify",
                          "",
                          ";",
                          "(",
                          ")",
                          "AS",
                          "CREATE TABLE t WITH (tablet_rows = 3) AS SELECT (a + 1) FROM u",
                          "CREATE TABLE t AS SELECT 1 AS from"}) {
    EXPECT_EQ(Rewritten(sql), sql);
  }
}

TEST(DialectText, PutsWhatTheGrammarTakes) {
  EXPECT_EQ(Rewritten("SELECT * EXCLUDE (a) FROM t"), "SELECT *  FROM t");
  EXPECT_EQ(Rewritten("SELECT * REPLACE (a + (1) AS a) FROM t"), "SELECT * ,a + (1) AS a FROM t");
  EXPECT_EQ(Rewritten("FROM t"), "SELECT * FROM t");
  EXPECT_EQ(Rewritten("FROM t WHERE a IN ()"), "SELECT * FROM t WHERE a IN (NULL)");
  EXPECT_EQ(Rewritten("FROM t SELECT a, WHERE b;"), "SELECT a FROM t   WHERE b;");
  EXPECT_EQ(Rewritten("SELECT (FROM t SELECT a) UNION FROM u"), "SELECT (SELECT a FROM t  ) UNION SELECT * FROM u");
  EXPECT_EQ(Rewritten("SELECT a, FROM t ORDER BY ALL"), "SELECT a FROM t ORDER BY \"all\"");
  EXPECT_EQ(Rewritten("SELECT a FROM t QUALIFY b IN () ORDER BY a"),
            "SELECT a FROM t WINDOW \"\x01\" AS (PARTITION BY b IN (NULL)) ORDER BY a");
  EXPECT_EQ(Rewritten("FROM t WINDOW w AS () QUALIFY (b)"),
            "SELECT * FROM t WINDOW w AS () , \"\x01\" AS (PARTITION BY (b))");
  EXPECT_EQ(Rewritten("SELECT a==b, c >= d, e = -1"), "SELECT a=b, c >= d, e = -1");
  EXPECT_EQ(Rewritten("SELECT INTERVAL 7 DAY + interval '1' day"), "SELECT INTERVAL '7 day' + interval '1' day");
  EXPECT_EQ(Rewritten("CREATE OR REPLACE TABLE t (a INT)"), "CREATE  TABLE t (a INT)");
  EXPECT_EQ(Rewritten("CREATE TABLE t WITH (tablet_rows = 3) AS FROM u; AS FROM v"),
            "CREATE TABLE t WITH (tablet_rows = 3) AS SELECT * FROM u; AS FROM v");
  EXPECT_EQ(Rewritten("CREATE TABLE v AS WITH w AS (FROM u SELECT b AS select) FROM w"),
            "CREATE TABLE v AS WITH w AS (SELECT b AS select FROM u  ) SELECT * FROM w");
  EXPECT_EQ(Rewritten("describe t"), "TABLE t");
  EXPECT_EQ(Rewritten("EXPLAIN FROM t"), "EXPLAIN SELECT * FROM t");
}

TEST(DialectText, MapsEachOffsetToOneOfTheSameCharacter) {
  for (const char* sql :
       {"FROM t, (FROM u SELECT * EXCLUDE (z) REPLACE (x + 1 AS x), name,) SELECT i, x IN () WHERE i = 1 ORDER BY ALL",
        "SELECT * REPLACE (a AS b), c, FROM (FROM q SELECT z GROUP BY ALL) UNION ALL FROM p SELECT (FROM o SELECT "
        "n)"}) {
    const Result<DialectText> text = DialectText::Read(sql);
    ASSERT_TRUE(text.ok());
    const std::string& out = text->text();
    size_t same = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      const int at = text->ToOriginal(static_cast<int>(i)), next = text->ToOriginal(static_cast<int>(i) + 1);
      ASSERT_GE(at, 0);
      ASSERT_LE(static_cast<size_t>(at), std::string_view(sql).size());
      if (next != at + 1) continue;  // put in, or the last before that
      EXPECT_EQ(out[i], sql[at]) << out << " at " << i;
      ++same;
    }
    EXPECT_GT(same, out.size() / 2);
  }
}

class DialectTest : public BindTest {};

/// The caret of the error stands at the only "zz" of the text.
TEST_F(DialectTest, CaretsStandInTheUsersText) {
  for (const char* sql : {
           "SELECT * EXCLUDE (s), zz FROM t",
           "SELECT * EXCLUDE (zz) FROM t",
           "SELECT t.* EXCLUDE (i, zz) FROM t",
           "SELECT * EXCLUDE (s) REPLACE (i + zz AS i) FROM t",
           "SELECT * REPLACE (i + 1 AS i, b AS b), zz FROM t",
           "SELECT i, zz, FROM t",
           "SELECT i FROM t WHERE i == 1 AND zz == 2",
           "SELECT INTERVAL 1 DAY + zz FROM t",
           "SELECT i FROM t QUALIFY zz = row_number() OVER ()",
           "FROM t QUALIFY i = row_number() OVER () LIMIT zz",
           "FROM t SELECT * EXCLUDE (s) QUALIFY rank() OVER () IN () ORDER BY zz",
           "SELECT i, FROM t WHERE zz",
           "FROM t WHERE zz = 1",
           "FROM t SELECT zz",
           "FROM t SELECT i, zz WHERE i = 1",
           "FROM t SELECT i WHERE zz = 1",
           "SELECT (FROM u SELECT zz WHERE x = 1) FROM t",
           "SELECT (FROM u SELECT x WHERE x = zz) FROM t",
           "FROM t SELECT i UNION ALL FROM t SELECT zz",
           "SELECT i FROM t WHERE i IN () AND zz",
           "SELECT i FROM t GROUP BY ALL HAVING zz = 1",
           "SELECT i FROM t ORDER BY ALL LIMIT zz",
           "SELECT * FROM (SELECT 1), (SELECT 2), (SELECT zz)",
           "SELECT zz FROM (SELECT 1) JOIN (SELECT 2) ON true",
           "DESCRIBE zz",
           "DESCRIBE SELECT zz FROM t",
           "SUMMARIZE zz",
           "SUMMARIZE FROM t SELECT i, zz",
           "CREATE OR REPLACE TABLE x (a zz)",
           "/* \xc3\xa4 */ FROM t SELECT zz",
       }) {
    const Result<Statement> bound = BindText(sql);
    ASSERT_FALSE(bound.ok()) << sql;
    const int at = bound.status().position();
    ASSERT_GE(at, 0) << sql;
    EXPECT_TRUE(std::string_view(sql).substr(static_cast<size_t>(at)).starts_with("zz"))
        << sql << "\n"
        << FormatError(bound.status(), sql);
  }
}

/// The grammar's own errors count characters of the text that it got.
TEST_F(DialectTest, SyntaxErrorsStandInTheUsersText) {
  for (const char* sql : {"FROM t SELECT i WHERE )", "FROM (SELECT 1) SELECT * EXCLUDE (s) WHERE 1 = )",
                          "SELECT '\xc3\xa4', * REPLACE (1 AS i) FROM t GROUP BY ALL LIMIT )"}) {
    const Result<Statement> bound = BindText(sql);
    ASSERT_FALSE(bound.ok()) << sql;
    EXPECT_EQ(bound.status().position(), static_cast<int>(std::string_view(sql).rfind(')')))
        << FormatError(bound.status(), sql);
  }
  EXPECT_EQ(Message("FROM t SELECT i; FROM t"), "only one statement is expected here");
  EXPECT_EQ(BindText("FROM t SELECT i; FROM t").status().position(), 17);
}

TEST_F(DialectTest, MisusedFormsAreErrorsAtTheirPlace) {
  EXPECT_EQ(Error("SELECT * EXCLUDE (i + 1) FROM t"),
            "ERROR:  EXCLUDE takes names of columns\n"
            "LINE 1: SELECT * EXCLUDE (i + 1) FROM t\n"
            "                            ^\n"
            "HINT:  Write * EXCLUDE (a, b).");
  EXPECT_EQ(Message("SELECT * EXCLUDE () FROM t"), "EXCLUDE takes names of columns");
  EXPECT_EQ(Message("SELECT * EXCLUDE"), "EXCLUDE takes names of columns");
  EXPECT_EQ(Message("SELECT * EXCLUDE (i"), "EXCLUDE takes names of columns");
  EXPECT_EQ(Message("SELECT * REPLACE () FROM t"), "REPLACE takes expressions and names of columns");
  EXPECT_EQ(Message("SELECT * REPLACE (i + 1) FROM t"), "an expression of REPLACE has no name of a column");
  EXPECT_EQ(Message("SELECT * REPLACE (1 AS ii) FROM t"), "column \"ii\" in REPLACE is not a column of *");
  EXPECT_EQ(Error("SELECT * EXCLUDE (momen) FROM t"),
            "ERROR:  column \"momen\" in EXCLUDE is not a column of *\n"
            "LINE 1: SELECT * EXCLUDE (momen) FROM t\n"
            "                          ^\n"
            "HINT:  Perhaps you meant column \"moment\".");
  EXPECT_EQ(Message("SELECT * EXCLUDE (s"), "EXCLUDE takes names of columns");
  EXPECT_EQ(Message("SELECT sum(i ORDER BY ALL) FROM t GROUP BY 1"), "column \"all\" does not exist");
  EXPECT_EQ(Message("SELECT i FROM t LIMIT 1, i"), "LIMIT offset, count is not supported");
  EXPECT_EQ(Message("PIVOT t ON s USING sum(i)"), "PIVOT without a list of values is not supported here");
  EXPECT_EQ(Message("UNPIVOT t ON *"), "UNPIVOT of a star is not supported here");
  EXPECT_EQ(Error("SELECT 0x1F, 1_000, 0b2"),
            "ERROR:  invalid number \"0b2\"\n"
            "LINE 1: SELECT 0x1F, 1_000, 0b2\n"
            "                            ^\n"
            "HINT:  Numbers are 1_000, 0x1F, 0b101 and 0o17; an underscore stands between two digits.");
  EXPECT_EQ(Error("SELECT 0x1F FROM t a ASOF JOIN t b ON a.i >= b.i WHERE nothing GLOB 'x'"),
            "ERROR:  column \"nothing\" does not exist\n"
            "LINE 1: SELECT 0x1F FROM t a ASOF JOIN t b ON a.i >= b.i WHERE nothing GLOB 'x'\n"
            "                                                               ^");
  EXPECT_EQ(Error("PIVOT t ON s IN (123) USING sum(nothing) GROUP BY i"),
            "ERROR:  column \"nothing\" does not exist\n"
            "LINE 1: PIVOT t ON s IN (123) USING sum(nothing) GROUP BY i\n"
            "                                        ^");
}

}  // namespace
}  // namespace tessera
