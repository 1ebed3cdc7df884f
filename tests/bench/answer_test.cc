// Tests of what the benchmarks call the same rows: bench/answer.h.
#include "bench/answer.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

Answer Make(const std::string& kinds, std::vector<std::vector<std::string>> rows) { return {kinds, std::move(rows)}; }

TEST(Answer, TextsAndIntegersAreTheSameInEveryCharacter) {
  const Answer a = Make("tt", {{"x", "1"}, {"y", "2"}});
  EXPECT_FALSE(Difference(a, a));
  EXPECT_TRUE(Difference(a, Make("tt", {{"x", "1"}, {"y", "3"}})));
  EXPECT_TRUE(Difference(Make("t", {{"1.50"}}), Make("t", {{"1.5"}})));
  EXPECT_TRUE(Difference(Make("t", {{"NULL"}}), Make("t", {{"0"}})));
}

TEST(Answer, DecimalsMayEndInZeros) {
  EXPECT_FALSE(Difference(Make("d", {{"1.50"}, {"2.00"}, {"-0.10"}}), Make("d", {{"1.5000"}, {"2"}, {"-0.1"}})));
  EXPECT_TRUE(Difference(Make("d", {{"1.50"}}), Make("d", {{"1.51"}})));
  EXPECT_TRUE(Difference(Make("d", {{"100"}}), Make("d", {{"1"}})));
  // Nor are they rounded.
  EXPECT_TRUE(Difference(Make("d", {{"1000000000000.01"}}), Make("d", {{"1000000000000.02"}})));
}

TEST(Answer, FloatingPointMayDifferByABillionth) {
  EXPECT_FALSE(Difference(Make("f", {{"1.0000000000"}}), Make("f", {{"1.0000000009"}})));
  EXPECT_TRUE(Difference(Make("f", {{"1.0000000000"}}), Make("f", {{"1.0000000011"}})));
  EXPECT_FALSE(Difference(Make("f", {{"-2e20"}}), Make("d", {{"-200000000000000000001.0"}})));
  EXPECT_TRUE(Difference(Make("f", {{"0.0"}}), Make("f", {{"1e-12"}})));
  EXPECT_TRUE(Difference(Make("f", {{"NULL"}}), Make("f", {{"1"}})));
  EXPECT_TRUE(Difference(Make("f", {{"nan"}}), Make("f", {{"1"}})));
}

TEST(Answer, RowsMayComeInAnotherOrder) {
  EXPECT_FALSE(Difference(Make("tdf", {{"x", "1.0", "0.5"}, {"y", "2.0", "0.25"}}),
                          Make("tdf", {{"y", "2", "0.25"}, {"x", "1", "0.5"}})));
  EXPECT_TRUE(Difference(Make("tdf", {{"x", "1.0", "0.5"}, {"y", "2.0", "0.25"}}),
                         Make("tdf", {{"y", "2", "0.5"}, {"x", "1", "0.25"}})));
  EXPECT_TRUE(Difference(Make("t", {{"x"}, {"x"}, {"y"}}), Make("t", {{"x"}, {"y"}, {"y"}})));
}

TEST(Answer, AsManyRowsAndColumns) {
  EXPECT_FALSE(Difference(Make("t", {}), Make("t", {})));
  EXPECT_EQ(*Difference(Make("t", {{"x"}}), Make("t", {})), "1 rows of 1 columns, not 0 of 1");
  EXPECT_TRUE(Difference(Make("t", {}), Make("tt", {})));
  EXPECT_EQ(*Difference(Make("tt", {{"a", "b"}}), Make("tt", {{"a", "c"}})), "row 1, column 2: b, not c");
}

}  // namespace
}  // namespace tessera
