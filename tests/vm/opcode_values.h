// Values as the opcode walk holds them: cells of columns, texts by number, tables. Shared by the reference (its second
// meaning of each opcode) and by the cases. Calls nothing of vm/.
//
// Start at: Cells.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/int128.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tests/vm/memory_tablet.h"

namespace tessera::test::walk {

inline const SqlType kBigint = SqlType::Of(TypeId::kBigint);
inline const SqlType kDouble = SqlType::Of(TypeId::kDouble);
inline const SqlType kText = SqlType::Text();
inline const SqlType kWide = SqlType::Decimal(38, 0);
inline constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kGreatest = std::numeric_limits<int64_t>::max();
inline constexpr int64_t kDayMicros = int64_t{86400} * 1000000;
inline constexpr int64_t kYear1 = -719162, kYear9999 = 2932896;  // days

/// Strings and their numbers within the walk.
class Texts {
 public:
  int64_t Number(std::string_view s) {
    auto found = numbers_.find(s);
    if (found != numbers_.end()) return found->second;
    strings_.emplace_back(s);
    numbers_.emplace(strings_.back(), static_cast<int64_t>(strings_.size()) - 1);
    return static_cast<int64_t>(strings_.size()) - 1;
  }
  const std::string& Get(int64_t number) const { return strings_[static_cast<size_t>(number)]; }

 private:
  std::deque<std::string> strings_;
  std::unordered_map<std::string_view, int64_t> numbers_;
};

/// Values of one column, as the reference holds them.
struct Cells {
  SqlType type;
  std::vector<int64_t> v;     // integers, bits of doubles, numbers of strings
  std::vector<int128_t> w;    // 128 bits
  std::vector<uint8_t> null;  // one byte a row, always
  std::vector<double> slack;  // sums of doubles: how far they may be off; else empty

  Cells() = default;
  Cells(const SqlType& t, size_t rows) : type(t), null(rows, 0) {
    if (IsWide()) {
      w.resize(rows);
    } else {
      v.resize(rows);
    }
  }
  bool IsWide() const { return type.storage() == StorageClass::kWide; }
  void Push(const Cells& from, size_t row) {
    if (IsWide()) {
      w.push_back(from.w[row]);
    } else {
      v.push_back(from.v[row]);
    }
    null.push_back(from.null[row]);
    if (!from.slack.empty()) slack.push_back(from.slack[row]);
  }
};

Cells ToCells(const ColumnVector& c, Texts* texts);

std::string Show(int128_t v);
std::string Show(const Cells& c, size_t row, const Texts& texts);

/// A table of a case: its columns and where its tablets end.
struct TestTable {
  std::string name;
  std::vector<MemoryColumn> columns;
  uint32_t tablet_rows = 1u << 20;
  size_t rows() const { return columns.empty() ? 0 : RowsOf(columns[0].values); }
};

inline double AsDouble(int64_t bits) { return std::bit_cast<double>(bits); }
inline int64_t AsBits(double v) { return std::bit_cast<int64_t>(v); }

/// Order of floats: NaN is the greatest and equals itself, zeros are equal.
int CompareFloats(double a, double b);
int CompareBytes(std::string_view a, std::string_view b);

}  // namespace tessera::test::walk
