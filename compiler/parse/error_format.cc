// FormatError: an error as psql prints it, with the line and a caret under the position.
#include "compiler/parse/error_format.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/display_width.h"

namespace tessera {
namespace {

constexpr size_t kWidth = 100;  // columns shown of a long line
constexpr size_t kBefore = 60;  // of them before the caret

struct ShownLine {
  std::string text;
  size_t caret = 0;  ///< columns before it
};

/// `line`, or what there is room for around the byte `position`.
ShownLine CutAround(std::string_view line, size_t position) {
  const size_t caret = DisplayWidth(line.substr(0, position));
  const size_t first = caret > kBefore ? caret - kBefore : 0;
  const bool is_long = DisplayWidth(line) > kWidth;
  size_t begin = 0, begin_column = 0, end = line.size();
  for (size_t at = 0, column = 0; is_long && at < line.size();) {
    std::string_view rest = line.substr(at);
    const size_t width = TakeCluster(&rest);
    if (column < first) {
      begin = line.size() - rest.size();
      begin_column = column + width;
    } else if (column + width > begin_column + kWidth) {
      end = at;
      break;
    }
    at = line.size() - rest.size();
    column += width;
  }
  ShownLine shown{std::string(line.substr(begin, end - begin)), caret - begin_column};
  if (begin > 0) {
    shown.text.insert(0, "...");
    shown.caret += 3;
  }
  if (end < line.size()) shown.text += "...";
  return shown;
}

}  // namespace

std::string FormatError(const Status& error, std::string_view sql, int first_line, bool with_sqlstate) {
  std::string out = "ERROR:  " + (with_sqlstate ? error.sqlstate() + std::string(": ") : "") + error.message();
  if (error.position() >= 0) {
    const size_t position = std::min(static_cast<size_t>(error.position()), sql.size());
    size_t begin = position;
    while (begin > 0 && sql[begin - 1] != '\n') --begin;
    size_t end = position;
    while (end < sql.size() && sql[end] != '\n' && sql[end] != '\r') ++end;
    ShownLine shown = CutAround(sql.substr(begin, end - begin), position - begin);
    // A tab would move the caret.
    std::replace(shown.text.begin(), shown.text.end(), '\t', ' ');
    std::replace(shown.text.begin(), shown.text.end(), '\r', ' ');
    const auto newlines = std::count(sql.begin(), sql.begin() + static_cast<ptrdiff_t>(begin), '\n');
    const std::string head = "LINE " + std::to_string(first_line + newlines) + ": ";
    out += "\n" + head + shown.text + "\n" + std::string(head.size() + shown.caret, ' ') + "^";
  }
  if (!error.hint().empty()) out += "\nHINT:  " + error.hint();
  return out;
}

}  // namespace tessera
