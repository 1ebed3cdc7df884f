#include "session/copy_text.h"

#include <algorithm>

namespace tessera {
namespace {

constexpr std::string_view kNamed = "bfnrtv", kMeant = "\b\f\n\r\t\v";

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/// The byte that stands for what follows a backslash at `at`, which moves past it.
char Escaped(std::string_view text, size_t* at) {
  const char c = text[(*at)++];
  if (const size_t named = kNamed.find(c); named != kNamed.npos) return kMeant[named];
  if (c >= '0' && c <= '7') {
    int v = c - '0';
    for (int i = 0; i < 2 && *at < text.size() && text[*at] >= '0' && text[*at] <= '7'; ++i)
      v = v * 8 + text[(*at)++] - '0';
    return static_cast<char>(v);
  }
  if (c != 'x' || *at >= text.size() || HexDigit(text[*at]) < 0) return c;
  int v = HexDigit(text[(*at)++]);
  if (*at < text.size() && HexDigit(text[*at]) >= 0) v = v * 16 + HexDigit(text[(*at)++]);
  return static_cast<char>(v);
}

}  // namespace

void CopyTextReader::SetOptions(CopyFromOptions* options) {
  options->delimiter = ',';
  options->quote = options->escape = '"';
  options->null_string.clear();
}

void CopyTextReader::Read(std::string_view text, std::string* csv) {
  rest_ += text;
  size_t begin = 0;
  // (A line feed after a backslash is one of the field. How many there are before it decides.)
  for (size_t end; !ended_ && (end = rest_.find('\n', std::max(begin, searched_))) != std::string::npos;) {
    searched_ = end + 1;
    size_t before = end;
    while (before > begin && rest_[before - 1] == '\\') --before;
    if ((end - before) % 2 == 1) continue;
    Line(std::string_view(rest_).substr(begin, end - begin), csv);
    begin = end + 1;
  }
  rest_.erase(0, ended_ ? rest_.size() : begin);
  searched_ = rest_.size();
}

void CopyTextReader::End(std::string* csv) {
  if (!ended_ && !rest_.empty()) Line(rest_, csv);
  rest_.clear();
}

void CopyTextReader::Line(std::string_view line, std::string* csv) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line == "\\.") {
    ended_ = true;
    return;
  }
  for (size_t begin = 0;;) {
    size_t end = begin;
    while (end < line.size() && line[end] != format_.delimiter) end += line[end] == '\\' ? 2 : 1;
    end = std::min(end, line.size());
    Field(line.substr(begin, end - begin), csv);
    if (end == line.size()) break;
    *csv += ',';
    begin = end + 1;
  }
  *csv += '\n';
}

void CopyTextReader::Field(std::string_view field, std::string* csv) const {
  if (field == format_.null_string) return;
  *csv += '"';
  for (size_t at = 0; at < field.size();) {
    const char c = field[at++];
    const char meant = c == '\\' && at < field.size() ? Escaped(field, &at) : c;
    if (meant == '"') *csv += '"';
    *csv += meant;
  }
  *csv += '"';
}

void AppendCopyField(std::string_view text, char delimiter, std::string* out) {
  const auto is_special = [&](char c) { return c == '\\' || c == delimiter || (c < ' ' && c >= '\b' && c <= '\r'); };
  if (std::ranges::none_of(text, is_special)) {
    *out += text;
    return;
  }
  for (const char c : text) {
    if (is_special(c)) *out += '\\';
    const size_t named = kMeant.find(c);
    *out += named != kMeant.npos ? kNamed[named] : c;
  }
}

void AppendCopyText(const RowBatch& batch, size_t row, const CopyTextFormat& format, std::string* out) {
  for (size_t c = 0; c < batch.columns.size(); ++c) {
    const ColumnVector& column = batch.columns[c];
    if (c > 0) *out += format.delimiter;
    if (column.IsNull(row)) {
      *out += format.null_string;
    } else if (column.type.id == TypeId::kBoolean) {
      *out += column.fixed[row] != 0 ? 't' : 'f';
    } else if (column.type.storage() != StorageClass::kText && column.type.id != TypeId::kEnum) {
      AppendText(column, row, out);  // nothing in it is special
    } else {
      std::string text;
      AppendText(column, row, &text);
      AppendCopyField(text, format.delimiter, out);
    }
  }
  *out += '\n';
}

}  // namespace tessera
