// Unit tests of the SQL test runner's parts: what it accepts, and what it must refuse.

#include <gtest/gtest.h>

#include "tests/sqllogictest/logic_result.h"
#include "tests/sqllogictest/logic_script.h"
#include "tests/sqllogictest/md5.h"

namespace tessera {
namespace {

std::vector<LogicRecord> Parse(const std::string& text) {
  Result<std::vector<LogicRecord>> records = ParseLogicScript(text, "tessera");
  EXPECT_TRUE(records.ok()) << (records.ok() ? "" : records.status().message());
  return records.ok() ? std::move(*records) : std::vector<LogicRecord>{};
}

std::string ParseError(const std::string& text) {
  Result<std::vector<LogicRecord>> records = ParseLogicScript(text, "tessera");
  return records.ok() ? "" : records.status().message();
}

/// What is wrong with `values` as the answer to a query with these types, sort mode and expected lines; "" if nothing.
std::string Compare(const std::string& head, const std::vector<std::string>& expected,
                    std::vector<std::string> values) {
  std::string text = "query " + head + "\nSELECT\n----\n";
  for (const std::string& line : expected) text += line + "\n";
  const LogicRecord record = Parse(text).at(0);
  return CompareLogicResult(record, record.types.size(), 0, &values);
}

TEST(Md5, VectorsOfTheRfc) {
  EXPECT_EQ(Md5Hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(Md5Hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(Md5Hex("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
  EXPECT_EQ(Md5Hex("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(LogicScript, Records) {
  const std::vector<LogicRecord> records = Parse(
      "# comment\n\nstatement ok\nCREATE TABLE t (\n  x INTEGER)\n\n"
      "statement error\nSELECT y\n----\ndoes not exist\n\n"
      "statement error divi.ion by\nSELECT 1\n\n"
      "hash-threshold 8\n\nquery IT rowsort label-1\nSELECT 1,\n'a'\n----\n1\na\n\nquery I\nSELECT 1\n----\n\nhalt\n");
  ASSERT_EQ(records.size(), 7u);
  EXPECT_EQ(records[0].sql, "CREATE TABLE t (\n  x INTEGER)");
  EXPECT_EQ(records[0].line, 3);
  EXPECT_FALSE(records[0].expect_error);
  EXPECT_TRUE(records[1].expect_error);
  EXPECT_EQ(records[1].error, "does not exist");
  EXPECT_EQ(records[2].error, "divi.ion by");
  EXPECT_EQ(records[3].hash_threshold, 8);
  EXPECT_EQ(records[4].types, "IT");
  EXPECT_EQ(records[4].sort, SortMode::kRows);
  EXPECT_EQ(records[4].label, "label-1");
  EXPECT_EQ(records[4].expected, (std::vector<std::string>{"1", "a"}));
  EXPECT_TRUE(records[5].expected.empty());
  EXPECT_EQ(records[6].kind, LogicRecord::Kind::kHalt);
}

TEST(LogicScript, Conditions) {
  const std::string text = " tessera\nstatement ok\nA\n\nstatement ok\nB\n";
  EXPECT_EQ(Parse("skipif" + text).size(), 1u);
  EXPECT_EQ(Parse("onlyif" + text).size(), 2u);
  EXPECT_EQ(Parse("skipif sqlite\nskipif mysql # a comment\nstatement ok\nA\n").size(), 1u);
  EXPECT_EQ(Parse("onlyif sqlite\nstatement ok\nA\n").size(), 0u);
  EXPECT_EQ(Parse("onlyif sqlite\nonlyif tessera\nstatement ok\nA\n").size(), 0u);
}

TEST(LogicScript, LineEnds) {
  EXPECT_EQ(Parse("query I\r\nSELECT 1\r\n----\r\n1\r\n\r\n").at(0).expected, std::vector<std::string>{"1"});
  EXPECT_EQ(Parse("query I\nSELECT 1\n----\n1").at(0).expected, std::vector<std::string>{"1"});
}

TEST(LogicScript, NothingIsSkippedSilently) {
  EXPECT_EQ(ParseError("require json\n"), "line 1: unknown record \"require\"");
  EXPECT_NE(ParseError("statement maybe\nSELECT 1\n"), "");
  EXPECT_NE(ParseError("query X\nSELECT 1\n----\n1\n"), "");
  EXPECT_NE(ParseError("query I\nSELECT 1\n"), "");
  EXPECT_NE(ParseError("query I\n----\n1\n"), "");
  EXPECT_NE(ParseError("statement ok\n\n"), "");
  EXPECT_NE(ParseError("statement ok\nSELECT 1\n----\n1\n"), "");
  EXPECT_NE(ParseError("hash-threshold many\n"), "");
}

TEST(LogicResult, Compare) {
  EXPECT_EQ(Compare("I", {"1", "2"}, {"1", "2"}), "");
  EXPECT_NE(Compare("I", {"1", "2"}, {"2", "1"}), "");
  EXPECT_EQ(Compare("I rowsort", {"1", "2"}, {"2", "1"}), "");
  EXPECT_EQ(Compare("II rowsort", {"1", "20", "2", "10"}, {"2", "10", "1", "20"}), "");
  EXPECT_NE(Compare("II rowsort", {"1", "10", "2", "20"}, {"2", "10", "1", "20"}), "");
  EXPECT_EQ(Compare("II valuesort", {"1", "10", "2", "20"}, {"2", "10", "1", "20"}), "");
  EXPECT_NE(Compare("I", {"1"}, {"1", "2"}), "");
  EXPECT_NE(Compare("I", {}, {"1"}), "");
  EXPECT_NE(Compare("I", {"1"}, {}), "");
}

TEST(LogicResult, CompareRows) {
  EXPECT_EQ(Compare("IT", {"1\ta b", "2\tc"}, {"1", "a b", "2", "c"}), "");
  EXPECT_EQ(Compare("IT", {"1 a", "2 c"}, {"1", "a", "2", "c"}), "");
  EXPECT_NE(Compare("IT", {"1 a", "2 d"}, {"1", "a", "2", "c"}), "");
  EXPECT_NE(Compare("IT", {"1 a b", "2 c"}, {"1", "a b", "2", "c"}), "");  // two ways to read it
}

TEST(LogicResult, CompareReals) {
  EXPECT_EQ(Compare("R", {"1.5"}, {"1.500"}), "");
  EXPECT_EQ(Compare("R", {"123456789012.346"}, {"123456789012.345"}), "");
  EXPECT_NE(Compare("R", {"1.501"}, {"1.500"}), "");
  EXPECT_NE(Compare("R", {"0.000"}, {"NULL"}), "");
  EXPECT_NE(Compare("I", {"1.0"}, {"1"}), "");
}

TEST(LogicResult, CompareHashes) {
  EXPECT_EQ(LogicHash({"1", "2"}), "2 values hashing to " + Md5Hex("1\n2\n"));
  EXPECT_EQ(Compare("I rowsort", {LogicHash({"1", "2"})}, {"2", "1"}), "");
  EXPECT_NE(Compare("I rowsort", {LogicHash({"1", "3"})}, {"2", "1"}), "");
}

TEST(LogicResult, Values) {
  LogicResult result("ITRTTI");
  const SqlType text = SqlType::Text();
  ASSERT_TRUE(result
                  .Begin({{"a", SqlType::Of(TypeId::kBigint)},
                          {"b", text},
                          {"c", SqlType::Of(TypeId::kDouble)},
                          {"d", text},
                          {"e", text},
                          {"f", SqlType::Decimal(10, 2)}})
                  .ok());
  RowBatch batch;
  batch.rows = 1;
  batch.columns.resize(6);
  const Value values[] = {Value::Int(SqlType::Of(TypeId::kBigint), -7),
                          Value::Text("a\tb\xC3\xA4"),
                          Value::Float(SqlType::Of(TypeId::kDouble), 2.0 / 3),
                          Value::Text(""),
                          Value::Null(text),
                          Value::Int(SqlType::Decimal(10, 2), 1299)};
  for (size_t i = 0; i < 6; ++i) {
    batch.columns[i].type = values[i].type;
    batch.columns[i].Append(values[i]);
  }
  ASSERT_TRUE(result.Rows(std::move(batch)).ok());
  EXPECT_EQ(result.values(), (std::vector<std::string>{"-7", "a@b@@", "0.667", "(empty)", "NULL", "12"}));
}

}  // namespace
}  // namespace tessera
