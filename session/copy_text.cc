#include "session/copy_text.h"

#include <algorithm>
#include <cstdint>

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

CopyTextReader::CopyTextReader(const CopyTextFormat& format) : format_(format) {
  const std::string never = std::string("\"\r\n") + format.delimiter;
  is_like_csv_ = format.delimiter != '"' && format.null_string.find_first_of(never) == std::string::npos;
  csv_ = is_like_csv_ ? format : CopyTextFormat{',', ""};
}

void CopyTextReader::SetFormat(CopyFormat* format) const {
  format->delimiter = csv_.delimiter;
  format->quote = format->escape = '"';
  format->null_string = csv_.null_string;
}

void CopyTextReader::Read(std::string_view text, std::string* csv) {
  csv->reserve(csv->size() + rest_.size() + text.size());
  // What ends lines is read where it lies.
  if (rest_.empty() && !ended_) {
    size_t whole = text.rfind('\n');
    whole = whole == text.npos ? 0 : whole + 1;
    const size_t read = Lines(text.substr(0, whole), 0, csv);
    text.remove_prefix(read);
  }
  rest_ += text;
  const size_t read = Lines(rest_, searched_, csv);
  rest_.erase(0, ended_ ? rest_.size() : read);
  searched_ = rest_.size();
}

bool CopyTextReader::IsCsv(std::string_view lines) const {
  if (!is_like_csv_ || lines.empty()) return false;
  // (An empty field is a text unless NULL is empty. At the end of a line, where the loader takes it for no field, and on a
  // line of its own it is written with quotes.)
  const bool marks_empty = !format_.null_string.empty();
  const char delimiter = format_.delimiter;
  if (marks_empty && lines[0] == '\n') return false;
  // Without a branch for each byte, so that many are looked at at once.
  const char* const at = lines.data();
  const size_t size = lines.size();
  const auto marked = static_cast<uint8_t>(marks_empty ? 0xff : 0);
  uint8_t other = 0;
  for (size_t i = 0; i < size; ++i) {
    const char c = at[i];
    other |= static_cast<uint8_t>((c == '\\') | (c == '"') | (c == '\r'));
  }
  for (size_t i = 1; i < size; ++i) {
    const char c = at[i], before = at[i - 1];
    other |= static_cast<uint8_t>((c == '\n') & ((before == delimiter) | (before == '\n'))) & marked;
  }
  return other == 0;
}

size_t CopyTextReader::Lines(std::string_view text, size_t searched, std::string* csv) {
  size_t begin = 0;
  if (const size_t last = ended_ ? text.npos : text.rfind('\n'); last != text.npos && IsCsv(text.substr(0, last + 1))) {
    *csv += text.substr(0, last + 1);
    return last + 1;
  }
  // (A line feed after a backslash is one of the field. How many there are before it decides.)
  for (size_t end; !ended_ && (end = text.find('\n', std::max(begin, searched))) != text.npos;) {
    searched = end + 1;
    size_t before = end;
    while (before > begin && text[before - 1] == '\\') --before;
    if ((end - before) % 2 == 1) continue;
    Line(text.substr(begin, end - begin), csv);
    begin = end + 1;
  }
  return begin;
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
  if (IsCsv(line) && (format_.null_string.empty() || !line.ends_with(format_.delimiter))) {
    *csv += line;
    *csv += '\n';
    return;
  }
  for (size_t begin = 0;;) {
    size_t end = begin;
    while (end < line.size() && line[end] != format_.delimiter) end += line[end] == '\\' ? 2 : 1;
    end = std::min(end, line.size());
    Field(line.substr(begin, end - begin), csv);
    if (end == line.size()) break;
    *csv += csv_.delimiter;
    begin = end + 1;
  }
  *csv += '\n';
}

void CopyTextReader::Field(std::string_view field, std::string* csv) const {
  if (field == format_.null_string) {
    *csv += csv_.null_string;
    return;
  }
  const auto is_special = [&](char c) { return c == '\\' || c == '"' || c == '\r' || c == csv_.delimiter; };
  if (!field.empty() && field != csv_.null_string && std::ranges::none_of(field, is_special)) {
    *csv += field;
    return;
  }
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
  const auto is_special = [&](char c) { return (c == '\\') | (c == delimiter) | ((c >= '\b') & (c <= '\r')); };
  bool has_special = false;  // without a branch for each byte, so that many are looked at at once
  for (const char c : text) has_special |= is_special(c);
  if (!has_special) {
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
    } else if (column.type.id == TypeId::kText) {
      AppendCopyField(column.Text(row), format.delimiter, out);
    } else {
      std::string text;
      AppendText(column, row, &text);
      AppendCopyField(text, format.delimiter, out);
    }
  }
  *out += '\n';
}

}  // namespace tessera
