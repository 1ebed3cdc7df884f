#include "base/table_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera {

std::string TableText(const std::vector<std::vector<std::string>>& rows, size_t left) {
  const size_t columns = rows[0].size();
  std::vector<size_t> widths(columns);
  for (const auto& row : rows) {
    for (size_t c = 0; c + 1 < columns; ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  widths.back() = rows[0].back().size();
  std::string out;
  const auto add = [&](const std::vector<std::string>& row) {
    for (size_t c = 0; c + 1 < columns; ++c) {
      out += c < left ? fmt::format("{:<{}}  ", row[c], widths[c]) : fmt::format("{:>{}}  ", row[c], widths[c]);
    }
    out += row.back() + "\n";
  };
  add(rows[0]);
  std::vector<std::string> rule;
  for (const size_t w : widths) rule.emplace_back(w, '-');
  add(rule);
  for (size_t r = 1; r < rows.size(); ++r) add(rows[r]);
  return out;
}

}  // namespace tessera
