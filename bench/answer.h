// The rows of a query as text, and whether two systems gave the same: exactly, but for floating-point values, which may
// differ by 1e-9 of their size, and zeros at the end of decimals.
//
// Start at: Answer, Difference. One thread.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "session/session.h"

namespace tessera {

struct Answer {
  /// One character a column: f for floating point, d for decimals, t for anything else.
  std::string kinds;
  std::vector<std::vector<std::string>> rows;  ///< NULL is "NULL"
};

/// Takes a result as an answer; the rows as they are printed.
class AnswerWriter final : public ResultWriter {
 public:
  Status Begin(const std::vector<vm::ResultColumn>& columns) override {
    for (const vm::ResultColumn& column : columns)
      answer.kinds += column.type.IsFloat() ? 'f' : column.type.id == TypeId::kDecimal ? 'd' : 't';
    return Status::Ok();
  }
  Status Rows(RowBatch&& batch) override {
    for (size_t row = 0; row < batch.rows; ++row) {
      std::vector<std::string>& cells = answer.rows.emplace_back(batch.columns.size());
      for (size_t i = 0; i < cells.size(); ++i) {
        if (batch.columns[i].IsNull(row)) {
          cells[i] = "NULL";
        } else {
          AppendText(batch.columns[i], row, &cells[i]);
        }
      }
    }
    return Status::Ok();
  }
  Status End() override { return Status::Ok(); }
  Status Done(const std::string&) override { return Status::Ok(); }
  Status Text(const std::string&) override { return Status::Ok(); }

  Answer answer;
};

/// Takes the rows of a timed run and drops them.
class RowCounter final : public ResultWriter {
 public:
  Status Begin(const std::vector<vm::ResultColumn>&) override { return Status::Ok(); }
  Status Rows(RowBatch&& batch) override {
    rows += batch.rows;
    return Status::Ok();
  }
  Status End() override { return Status::Ok(); }
  Status Done(const std::string&) override { return Status::Ok(); }
  Status Text(const std::string&) override { return Status::Ok(); }

  uint64_t rows = 0;
};

/// "1.5" of "1.50", "1" of "1.00".
inline std::string_view WithoutZeros(std::string_view decimal) {
  if (decimal.find('.') == std::string_view::npos) return decimal;
  decimal = decimal.substr(0, decimal.find_last_not_of('0') + 1);
  return decimal.back() == '.' ? decimal.substr(0, decimal.size() - 1) : decimal;
}

inline bool SameValue(const std::string& a, const std::string& b, char kind_a, char kind_b) {
  constexpr double kTolerance = 1e-9;
  if (a == b) return true;
  if (kind_a == 'f' || kind_b == 'f') {
    double x = 0, y = 0;
    const bool numbers = std::from_chars(a.data(), a.data() + a.size(), x).ec == std::errc() &&
                         std::from_chars(b.data(), b.data() + b.size(), y).ec == std::errc();
    return numbers && std::abs(x - y) <= kTolerance * std::max(std::abs(x), std::abs(y));
  }
  return (kind_a == 'd' || kind_b == 'd') && WithoutZeros(a) == WithoutZeros(b);
}

/// What differs first; nothing if the rows are the same. Rows that ORDER BY leaves open may come in another order.
inline std::optional<std::string> Difference(const Answer& ours, const Answer& theirs) {
  if (ours.kinds.size() != theirs.kinds.size() || ours.rows.size() != theirs.rows.size()) {
    return fmt::format("{} rows of {} columns, not {} of {}", ours.rows.size(), ours.kinds.size(), theirs.rows.size(),
                       theirs.kinds.size());
  }
  const auto first = [&](const Answer& a, const Answer& b) -> std::optional<std::string> {
    for (size_t row = 0; row < a.rows.size(); ++row) {
      for (size_t i = 0; i < a.kinds.size(); ++i) {
        const std::string &x = a.rows[row][i], &y = b.rows[row][i];
        if (!SameValue(x, y, a.kinds[i], b.kinds[i])) {
          return fmt::format("row {}, column {}: {}, not {}", row + 1, i + 1, x, y);
        }
      }
    }
    return std::nullopt;
  };
  std::optional<std::string> difference = first(ours, theirs);
  if (!difference) return difference;
  const auto sorted = [&](Answer answer) {
    const auto key = [&](const std::vector<std::string>& row) {
      std::string text;
      for (size_t i = 0; i < row.size(); ++i) {
        if (ours.kinds[i] == 'f' || theirs.kinds[i] == 'f') continue;
        text += ours.kinds[i] == 'd' || theirs.kinds[i] == 'd' ? WithoutZeros(row[i]) : std::string_view(row[i]);
        text += '\0';
      }
      return text;
    };
    std::stable_sort(answer.rows.begin(), answer.rows.end(),
                     [&](const auto& a, const auto& b) { return key(a) < key(b); });
    return answer;
  };
  return first(sorted(ours), sorted(theirs)) ? difference : std::nullopt;
}

}  // namespace tessera
