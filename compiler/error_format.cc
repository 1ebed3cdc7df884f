// FormatError: an error as psql prints it, with the line and a caret under the position.
#include <algorithm>
#include <string>
#include <string_view>

#include "compiler/compiler.h"

namespace tessera {
namespace {

constexpr size_t kWidth = 100;  // characters shown of a long line
constexpr size_t kBefore = 60;  // of them before the caret

bool IsLead(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

size_t CountLeads(std::string_view s) { return static_cast<size_t>(std::count_if(s.begin(), s.end(), IsLead)); }

/// Byte offset of character `index`, or the size.
size_t OffsetOf(std::string_view s, size_t index) {
  size_t i = 0;
  for (; i < s.size(); ++i) {
    if (IsLead(s[i]) && index-- == 0) break;
  }
  return i;
}

}  // namespace

std::string FormatError(const Status& error, std::string_view sql, int first_line) {
  std::string out = "ERROR:  " + error.message();
  if (error.position() >= 0) {
    const size_t position = std::min(static_cast<size_t>(error.position()), sql.size());
    size_t begin = position;
    while (begin > 0 && sql[begin - 1] != '\n') --begin;
    size_t end = position;
    while (end < sql.size() && sql[end] != '\n' && sql[end] != '\r') ++end;
    std::string_view line = sql.substr(begin, std::max(end, position) - begin);
    size_t caret = CountLeads(line.substr(0, position - begin));
    const size_t length = CountLeads(line);

    std::string shown(line);
    if (length > kWidth) {
      const size_t first = caret > kBefore ? caret - kBefore : 0;
      const size_t a = OffsetOf(line, first);
      const size_t b = OffsetOf(line, first + kWidth);
      shown = std::string(line.substr(a, b - a));
      caret -= first;
      if (first > 0) {
        shown.insert(0, "...");
        caret += 3;
      }
      if (b < line.size()) shown += "...";
    }
    // A tab would move the caret.
    std::replace(shown.begin(), shown.end(), '\t', ' ');
    std::replace(shown.begin(), shown.end(), '\r', ' ');
    const auto newlines = std::count(sql.begin(), sql.begin() + static_cast<ptrdiff_t>(begin), '\n');
    const std::string head = "LINE " + std::to_string(first_line + newlines) + ": ";
    out += "\n" + head + shown + "\n" + std::string(head.size() + caret, ' ') + "^";
  }
  if (!error.hint().empty()) out += "\nHINT:  " + error.hint();
  return out;
}

}  // namespace tessera
