#include "session/copy_text.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tablet/values/fixed_text.h"

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

namespace {

/// Without a branch for each byte, so that many are looked at at once.
bool HasSpecial(std::string_view text, char delimiter) {
  bool has_special = false;
  for (const char c : text) has_special |= (c == '\\') | (c == delimiter) | ((c >= '\b') & (c <= '\r'));
  return has_special;
}

/// Bytes that grow. A call of std::string for each field costs more than the fields, which are short.
class LineBuffer {
 public:
  explicit LineBuffer(size_t size) : bytes_(std::make_unique_for_overwrite<char[]>(size)), size_(size) {}

  /// Where the next `n` bytes may be written. Up to where they are is told by End.
  char* Room(size_t n) {
    if (size_ - used_ < n) Grow(n);
    return bytes_.get() + used_;
  }
  void End(const char* end) { used_ = static_cast<size_t>(end - bytes_.get()); }
  void Add(std::string_view text) {
    memcpy(Room(text.size()), text.data(), text.size());
    used_ += text.size();
  }
  /// The same of a text in `all`: a short one is copied with what follows it there, which is no call.
  void Add(std::string_view text, std::string_view all) {
    constexpr size_t kShort = 32;
    if (text.size() > kShort || all.data() + all.size() < text.data() + kShort) return Add(text);
    memcpy(Room(kShort), text.data(), kShort);
    used_ += text.size();
  }
  void Add(char c) {
    *Room(1) = c;
    ++used_;
  }
  std::string_view view() const { return {bytes_.get(), used_}; }

 private:
  void Grow(size_t n) {
    const size_t size = std::max(2 * size_, used_ + n);
    auto bytes = std::make_unique_for_overwrite<char[]>(size);
    memcpy(bytes.get(), bytes_.get(), used_);
    bytes_ = std::move(bytes);
    size_ = size;
  }

  std::unique_ptr<char[]> bytes_;
  size_t size_, used_ = 0;
};

/// How a column's fields are written.
enum class FieldKind : uint8_t {
  kInteger,
  kDecimal,
  kDate,
  kTimestamp,
  kBoolean,
  kPlainText,  ///< with nothing special in it
  kText,
  kOther,
};

FieldKind KindOf(const ColumnVector& column, size_t first, size_t last, char delimiter) {
  switch (column.type.id) {
    case TypeId::kBoolean:
      return FieldKind::kBoolean;
    case TypeId::kDecimal:
      return column.type.storage() == StorageClass::kInt ? FieldKind::kDecimal : FieldKind::kOther;
    case TypeId::kDate:
      return FieldKind::kDate;
    case TypeId::kTimestamp:
      return FieldKind::kTimestamp;
    case TypeId::kSmallint:
    case TypeId::kInteger:
    case TypeId::kBigint:
      return FieldKind::kInteger;
    case TypeId::kText: {
      if (first == last) return FieldKind::kText;
      const size_t begin = column.offsets[first], end = column.offsets[last];
      const bool is_plain = !HasSpecial(std::string_view(column.bytes).substr(begin, end - begin), delimiter);
      return is_plain ? FieldKind::kPlainText : FieldKind::kText;
    }
    case TypeId::kNull:
    case TypeId::kReal:
    case TypeId::kDouble:
    case TypeId::kInterval:
    case TypeId::kTime:
    case TypeId::kUuid:
    case TypeId::kTimestampTz:
    case TypeId::kBytea:
    case TypeId::kEnum:
      break;
  }
  return FieldKind::kOther;
}

void AddField(const ColumnVector& column, size_t row, FieldKind kind, char delimiter, LineBuffer* out) {
  switch (kind) {
    case FieldKind::kInteger:
      return out->End(PutInteger(column.fixed[row], out->Room(kLongestFixedText)));
    case FieldKind::kDecimal:
      return out->End(PutDecimal(column.fixed[row], column.type.scale, out->Room(kLongestFixedText)));
    case FieldKind::kDate:
      return out->End(PutDate(column.fixed[row], out->Room(kLongestFixedText)));
    case FieldKind::kTimestamp:
      return out->End(PutTimestamp(column.fixed[row], out->Room(kLongestFixedText)));
    case FieldKind::kBoolean:
      return out->Add(column.fixed[row] != 0 ? 't' : 'f');
    case FieldKind::kPlainText:
      return out->Add(column.Text(row), column.bytes);
    case FieldKind::kText: {
      std::string field;
      AppendCopyField(column.Text(row), delimiter, &field);
      return out->Add(field);
    }
    case FieldKind::kOther: {
      std::string text, field;
      AppendText(column, row, &text);
      AppendCopyField(text, delimiter, &field);
      return out->Add(field);
    }
  }
}

}  // namespace

void AppendCopyField(std::string_view text, char delimiter, std::string* out) {
  if (!HasSpecial(text, delimiter)) {
    *out += text;
    return;
  }
  for (const char c : text) {
    if (HasSpecial({&c, 1}, delimiter)) *out += '\\';
    const size_t named = kMeant.find(c);
    *out += named != kMeant.npos ? kNamed[named] : c;
  }
}

void AppendCopyText(const RowBatch& batch, size_t first, size_t last, const CopyTextFormat& format, std::string* out) {
  std::vector<FieldKind> kinds;
  size_t bytes = last - first;  // as many as most rows have
  for (const ColumnVector& column : batch.columns) {
    kinds.push_back(KindOf(column, first, last, format.delimiter));
    const bool is_text = column.type.storage() == StorageClass::kText && first < last;
    bytes += is_text ? column.offsets[last] - column.offsets[first] + (last - first) : 12 * (last - first);
  }
  LineBuffer lines(bytes + kLongestFixedText);
  for (size_t row = first; row < last; ++row) {
    for (size_t c = 0; c < batch.columns.size(); ++c) {
      const ColumnVector& column = batch.columns[c];
      if (c > 0) lines.Add(format.delimiter);
      if (column.IsNull(row)) {
        lines.Add(format.null_string);
      } else {
        AddField(column, row, kinds[c], format.delimiter, &lines);
      }
    }
    lines.Add('\n');
  }
  *out += lines.view();
}

}  // namespace tessera
