// Which columns of files are found to be a key: sorted ones, within row groups and across their borders.
#include "tablet/file_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tablet/files/made_tablet.h"

namespace tessera {
namespace {

using Numbers = std::vector<int64_t>;

/// Columns of type BIGINT, whose bounds are right.
class NumbersTablet final : public MadeTablet {
 public:
  explicit NumbersTablet(std::vector<Numbers> columns)
      : MadeTablet("test", static_cast<uint32_t>(columns[0].size()),
                   std::vector<SqlType>(columns.size(), SqlType::Of(TypeId::kBigint)), BoundsOf(columns)),
        columns_(std::move(columns)) {}

  mutable int made = 0;

 private:
  static std::vector<ColumnBounds> BoundsOf(const std::vector<Numbers>& columns) {
    std::vector<ColumnBounds> bounds;
    for (const Numbers& c : columns)
      bounds.push_back({true, *std::ranges::min_element(c), *std::ranges::max_element(c), 0, 0});
    return bounds;
  }
  Result<MadeColumn> Values(int column) const override {
    ++made;
    MadeColumn out;
    out.values.type = type(column);
    out.values.fixed = columns_[static_cast<size_t>(column)];
    return out;
  }
  Status OutOfBounds(int) const override { return {ErrorCode::kCorrupt, "it lies"}; }

  const std::vector<Numbers> columns_;
};

/// Row groups of two columns, a and b.
std::shared_ptr<TableInfo> TableOf(const std::vector<std::pair<Numbers, Numbers>>& groups) {
  auto table = std::make_shared<TableInfo>();
  table->schema.columns = {{"a", SqlType::Of(TypeId::kBigint)}, {"b", SqlType::Of(TypeId::kBigint)}};
  for (const auto& [a, b] : groups)
    table->tablets.push_back(std::make_shared<const NumbersTablet>(std::vector<Numbers>{a, b}));
  return table;
}

using Keys = std::vector<std::vector<int>>;

Keys KeysOf(const std::vector<std::pair<Numbers, Numbers>>& groups) {
  CopyFromOptions options;
  options.threads = 2;
  FileKeys keys;
  const Result<Keys> found = keys.Find(*TableOf(groups), {true, true}, options);
  EXPECT_TRUE(found.ok());
  return found.ok() ? *found : Keys{{-1}};
}

TEST(FileKeys, AColumnThatAscends) {
  EXPECT_EQ(KeysOf({{{1, 2, 5}, {7, 7, 7}}, {{6, 8}, {7, 7}}}), (Keys{{0}}));
  EXPECT_EQ(KeysOf({{{7, 7, 7}, {-1, 2, 5}}, {{7, 7}, {6, 8}}}), (Keys{{1}}));
  EXPECT_EQ(KeysOf({{{3}, {3}}}), (Keys{{0}, {1}}));
}

TEST(FileKeys, EqualRowsAreNoKey) {
  const Numbers same{7, 7, 7};
  EXPECT_EQ(KeysOf({{{1, 2, 2}, same}}), Keys());
  EXPECT_EQ(KeysOf({{{1, 2, 3}, same}, {{3, 4, 5}, same}}), Keys());
  EXPECT_EQ(KeysOf({{{1, 3, 2}, {2, 1, 1}}}), Keys());
  EXPECT_EQ(KeysOf({{{4, 5, 6}, {2, 1, 1}}, {{1, 2, 3}, {2, 1, 1}}}), Keys());
}

TEST(FileKeys, TwoColumns) {
  const Keys both{{0, 1}};
  EXPECT_EQ(KeysOf({{{1, 1, 2}, {9, 3, 3}}, {{2, 2, 3}, {1, 2, 3}}}), both);
  EXPECT_EQ(KeysOf({{{1, 1, 2}, {9, 9, 3}}}), Keys());
  // Equal rows on both sides of a border, and across a row group that has one value of a.
  EXPECT_EQ(KeysOf({{{1, 1, 2}, {9, 3, 3}}, {{2, 2, 3}, {1, 3, 3}}}), Keys());
  EXPECT_EQ(KeysOf({{{1, 2}, {9, 3}}, {{2, 2}, {1, 2}}, {{2, 3}, {4, 4}}}), both);
  EXPECT_EQ(KeysOf({{{1, 2}, {9, 3}}, {{2, 2}, {1, 2}}, {{2, 3}, {3, 4}}}), Keys());
  // Too many to be compared.
  EXPECT_EQ(KeysOf({{Numbers(2000, 1), Numbers(2000, 2)}}), Keys());
}

TEST(FileKeys, OnlyWhatIsReadIsLookedAtAndOnce) {
  const std::shared_ptr<TableInfo> table = TableOf({{{1, 2, 3}, {3, 1, 2}}, {{4, 5, 5}, {2, 2, 2}}});
  const auto& first = static_cast<const NumbersTablet&>(*table->tablets[0]);
  CopyFromOptions options;
  FileKeys keys;
  EXPECT_TRUE(keys.Find(*table, {false, true}, options)->empty());  // its ranges do not ascend
  EXPECT_EQ(first.made, 0);
  EXPECT_TRUE(keys.Find(*table, {true, false}, options)->empty());
  EXPECT_EQ(first.made, 1);
  EXPECT_TRUE(keys.Find(*table, {true}, options)->empty());
  EXPECT_EQ(first.made, 1);
  // Another session may have found it.
  const std::shared_ptr<TableInfo> known = TableOf({{{1, 2, 3}, {7, 7, 7}}});
  known->schema.primary_key = {0};
  EXPECT_TRUE(FileKeys().Find(*known, {true, false}, options)->empty());
  EXPECT_EQ(static_cast<const NumbersTablet&>(*known->tablets[0]).made, 0);
  std::atomic<bool> cancel{true};
  options.cancel = &cancel;
  EXPECT_EQ(keys.Find(*table, {true, true}, options).status().code(), ErrorCode::kCancelled);
}

}  // namespace
}  // namespace tessera
