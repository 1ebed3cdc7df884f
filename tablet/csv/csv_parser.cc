// Indexing and column-wise parsing.
#include "tablet/csv/csv_parser.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tablet/catalog/schema_check.h"
#include "tablet/csv/csv_bytes.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/interval.h"
#include "tablet/values/moment_format.h"
#include "tablet/values/null_column.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// Set in a field's end if that is a line feed, which ends the record.
constexpr uint32_t kRecordEnd = 1u << 31;
constexpr int64_t kDayMicros = int64_t{86400} * 1'000'000;

uint64_t CountLines(const char* text, size_t size) {
  return static_cast<uint64_t>(std::count(text, text + size, '\n'));
}

}  // namespace

struct CsvParser::Index {
  size_t start = 0;                    ///< of the first record: after a byte order mark
  std::vector<uint32_t> field_ends;    ///< position of the delimiter or line feed; kRecordEnd set for the latter
  std::vector<uint32_t> first_fields;  ///< of each record, an index into field_ends
  /// Of the first carriage return outside quotes that no line feed follows.
  size_t lone_return = SIZE_MAX;
  bool has_quotes = false;
  bool plain = true;  ///< nothing but ASCII without NUL
};

/// The first bad field so far. Only earlier rows are still of interest.
struct CsvParser::Bad {
  size_t rows;  ///< before it
  int column = -1;
  bool is_null = false;
  ParseError error = ParseError::kNone;
  std::string text;
  bool ignores = false;          ///< the others stay
  std::vector<uint8_t> dropped;  ///< by row, where it ignores: it is bad; empty: none is

  /// Whether the caller goes on after the row, as if it were NULL.
  [[nodiscard]] bool Set(size_t row, int c, bool null, ParseError e, std::string_view t) {
    if (ignores) {
      if (dropped.empty()) dropped.resize(rows);
      dropped[row] = 1;
      return true;
    }
    rows = row;
    column = c;
    is_null = null;
    error = e;
    text.assign(t);
    return false;
  }

  /// Takes the dropped rows out of the batch. Returns how many.
  uint64_t Drop(RowBatch* batch) const {
    if (dropped.empty()) return 0;
    RowBatch kept;
    kept.columns.resize(batch->columns.size());
    kept.rows = static_cast<size_t>(std::count(dropped.begin(), dropped.end(), 0));
    for (size_t c = 0; c < kept.columns.size(); ++c) {
      kept.columns[c].type = batch->columns[c].type;
      for (size_t row = 0; row < rows; ++row) {
        if (dropped[row] == 0) kept.columns[c].AppendFrom(batch->columns[c], row);
      }
    }
    *batch = std::move(kept);
    return rows - batch->rows;
  }
};

/// The fields of a block.
class CsvParser::Fields {
 public:
  Fields(const CsvBlock& block, const Index& index, const CopyFormat& format)
      : text_(block.bytes.data()), index_(index), format_(format) {}

  const Index& index() const { return index_; }

  /// The field as it stands in the file, quotes and all.
  std::string_view Raw(size_t row, size_t field) const {
    const size_t at = index_.first_fields[row] + field;
    const size_t begin = at == 0 ? index_.start : (index_.field_ends[at - 1] & ~kRecordEnd) + 1;
    const uint32_t end_mark = index_.field_ends[at];
    size_t end = end_mark & ~kRecordEnd;
    // A record may end with CR LF.
    if ((end_mark & kRecordEnd) != 0 && end > begin && text_[end - 1] == '\r') --end;
    return {text_ + begin, end - begin};
  }

  /// The field's value, in `scratch` if it had quotes. Sets *is_null.
  std::string_view Get(size_t row, size_t field, std::string* scratch, bool* is_null) const {
    const std::string_view raw = Raw(row, field);
    if (index_.has_quotes && raw.find(format_.quote) != std::string_view::npos) {
      *is_null = false;
      Unquote(raw, scratch);
      return *scratch;
    }
    *is_null = raw == format_.null_string;
    return raw;
  }

 private:
  void Unquote(std::string_view raw, std::string* out) const {
    out->clear();
    bool in_quotes = false;
    for (size_t i = 0; i < raw.size(); ++i) {
      const char c = raw[i];
      const bool next = i + 1 < raw.size();
      if (in_quotes && c == format_.escape && next && (raw[i + 1] == format_.quote || raw[i + 1] == format_.escape)) {
        out->push_back(raw[++i]);
      } else if (c == format_.quote) {
        in_quotes = !in_quotes;
      } else {
        out->push_back(c);
      }
    }
  }

  const char* const text_;
  const Index& index_;
  const CopyFormat& format_;
};

Result<CsvParser> CsvParser::Create(const TableSchema& schema, const CopyFromOptions& options) {
  auto is_line = [](char c) { return c == '\n' || c == '\r'; };
  if (is_line(options.format.delimiter) || is_line(options.format.quote) || is_line(options.format.escape)) {
    return SqlError("delimiter, quote and escape cannot be a line end");
  }
  if (options.format.delimiter == options.format.quote)
    return SqlError(ErrorKind::kInvalidParameterValue, "delimiter and quote must be different");
  if (options.format.null_string.find_first_of(std::string("\r\n") + options.format.delimiter) != std::string::npos) {
    return SqlError("the null string cannot contain the delimiter or a line end");
  }
  CsvParser parser(schema, options);
  std::vector<bool> present(schema.columns.size());
  if (options.columns.empty()) {
    for (size_t c = 0; c < schema.columns.size(); ++c) parser.columns_.push_back(static_cast<int>(c));
    present.assign(schema.columns.size(), true);
  }
  for (int column : options.columns) {
    const size_t c = static_cast<size_t>(column);
    if (column < 0 || c >= schema.columns.size()) return SqlError("a column of COPY is not in the table");
    if (present[c])
      return SqlError(ErrorKind::kDuplicateColumn, "column \"" + schema.columns[c].name + "\" is specified twice");
    present[c] = true;
    parser.columns_.push_back(column);
  }
  for (size_t c = 0; c < present.size(); ++c) {
    if (!present[c]) parser.absent_columns_.push_back(static_cast<int>(c));
  }
  return parser;
}

void CsvParser::FindFieldEnds(const CsvBlock& block, Index* index) const {
  const char* const text = block.bytes.data();
  const size_t size = block.size;
  std::vector<uint32_t>& ends = index->field_ends;
  const char quote = options_.format.quote, escape = options_.format.escape;
  uint64_t odd = 0;  // not plain
  if (escape == quote) {
    ends.resize(size / 4 + 128);
    size_t used = 0;
    uint64_t inside = 0;  // all ones while the last 64 bytes end inside quotes
    for (size_t at = index->start; at < size; at += 64) {
      ByteMasks masks = FindBytes(text + at, options_.format.delimiter, quote);
      const uint64_t valid = size - at >= 64 ? ~uint64_t{0} : (uint64_t{1} << (size - at)) - 1;
      masks.quotes &= quote == 0 ? 0 : valid;
      odd |= (masks.zeros | masks.high) & valid;
      uint64_t found = (masks.delimiters | masks.lines) & valid;
      uint64_t quoted = 0;
      if ((masks.quotes | inside) != 0) {
        index->has_quotes = true;
        quoted = PrefixParity(masks.quotes) ^ inside;
        found &= ~quoted;
        inside = static_cast<uint64_t>(static_cast<int64_t>(quoted) >> 63);
      }
      if (masks.returns != 0 && index->lone_return == SIZE_MAX) {
        const uint64_t before_line = (masks.lines >> 1) | (uint64_t{text[at + 64] == '\n'} << 63);
        const uint64_t lone = masks.returns & valid & ~before_line & ~quoted;
        if (lone != 0) index->lone_return = at + static_cast<size_t>(std::countr_zero(lone));
      }
      if (ends.size() - used < 64) ends.resize(ends.size() * 2);
      while (found != 0) {
        const int bit = std::countr_zero(found);
        ends[used++] = static_cast<uint32_t>(at + static_cast<size_t>(bit)) |
                       (static_cast<uint32_t>((masks.lines >> bit) & 1) << 31);
        found &= found - 1;
      }
    }
    ends.resize(used);
  } else {
    // If the escape character is not the quote, the state is more than a parity, so this goes byte by byte.
    bool inside = false;
    for (size_t i = index->start; i < size; ++i) {
      const char c = text[i];
      odd |= (c == '\0') | (static_cast<signed char>(c) < 0);
      if (inside && c == escape && i + 1 < size && (text[i + 1] == quote || text[i + 1] == escape)) {
        ++i;
      } else if (c == quote && quote != 0) {
        inside = !inside;
        index->has_quotes = true;
      } else if (!inside && (c == '\n' || c == options_.format.delimiter)) {
        ends.push_back(static_cast<uint32_t>(i) | (c == '\n' ? kRecordEnd : 0));
      } else if (!inside && c == '\r' && text[i + 1] != '\n') {
        index->lone_return = std::min(index->lone_return, i);
      }
    }
  }
  // The line feed that ends an unterminated record is inside its quotes.
  if (block.unterminated && size > 0 && (ends.empty() || (ends.back() & ~kRecordEnd) != size - 1)) {
    ends.push_back(static_cast<uint32_t>(size - 1) | kRecordEnd);
  }
  index->plain = odd == 0;
}

void CsvParser::FindRecords(const CsvBlock& block, Index* index, FileRows* result) const {
  const char* const text = block.bytes.data();
  const std::vector<uint32_t>& ends = index->field_ends;
  const size_t fields = columns_.size();
  bool skip = options_.format.header && block.starts_file;
  size_t at = 0;
  index->first_fields.reserve(ends.size() / fields + 1);
  while (at < ends.size()) {
    size_t next = at;
    while ((ends[next] & kRecordEnd) == 0) ++next;
    const size_t last = next++;
    const bool unterminated = block.unterminated && next == ends.size();
    const size_t count = next - at;
    const auto name = [&](size_t field) { return schema_.columns[static_cast<size_t>(columns_[field])].name; };
    if (index->lone_return < (ends[last] & ~kRecordEnd) && !unterminated) {
      size_t field = at;
      while ((ends[field] & ~kRecordEnd) < index->lone_return) ++field;
      const size_t begin = field == 0 ? index->start : (ends[field - 1] & ~kRecordEnd) + 1;
      FileError& e = result->error.emplace();
      e.line = CountLines(text, begin);
      e.column = name(std::min(field - at, fields - 1));
      e.message = "carriage return outside quotes that is no line end, because other lines end in a line feed: " +
                  QuoteForMessage({text + begin, (ends[field] & ~kRecordEnd) - begin});
      return;
    }
    if (skip && !unterminated) {
      skip = false;
      at = next;
      continue;
    }
    // dbgen ends each line with a delimiter: one more field, which is empty.
    auto ends_with_delimiter = [&] {
      const size_t begin = ends[last - 1] + 1;
      const size_t end = ends[last] & ~kRecordEnd;
      return begin == end || (begin + 1 == end && text[begin] == '\r');
    };
    if (unterminated || (count != fields && !(count == fields + 1 && ends_with_delimiter()))) {
      if (options_.ignore_errors && !unterminated) {
        ++result->ignored;
        at = next;
        continue;
      }
      const size_t begin = at == 0 ? index->start : (ends[at - 1] & ~kRecordEnd) + 1;
      size_t end = ends[last] & ~kRecordEnd;
      if (end > begin && text[end - 1] == '\r') --end;
      const std::string shown = QuoteForMessage({text + begin, end - begin});
      FileError& e = result->error.emplace();
      e.line = CountLines(text, begin);
      if (unterminated) {
        e.column = name(std::min(count, fields) - 1);
        e.message = "unterminated quoted field: " + shown;
      } else if (count < fields) {
        e.column = name(count);
        e.message =
            "missing field, the record has " + std::to_string(count) + " of " + std::to_string(fields) + ": " + shown;
      } else {
        e.column = name(fields - 1);
        e.message = "extra field after the last column, the record has " + std::to_string(count) + " instead of " +
                    std::to_string(fields) + ": " + shown;
      }
      if (options_.guessed) {
        e.hint =
            "Where the first rows mislead, read_csv('FILE', delim = ..., quote = ..., skip = ...) says what the file "
            "is, and ignore_errors = true leaves such records out.";
      }
      return;
    }
    index->first_fields.push_back(static_cast<uint32_t>(at));
    at = next;
  }
}

template <class ParseFunction>
void CsvParser::ParseFixed(const Fields& fields, size_t field, ParseFunction parse, ColumnVector* out, Bad* bad) const {
  const int column = columns_[field];
  const bool not_null = schema_.columns[static_cast<size_t>(column)].not_null;
  std::string scratch;
  out->fixed.resize(bad->rows);
  for (size_t row = 0; row < bad->rows; ++row) {
    bool is_null;
    const std::string_view text = fields.Get(row, field, &scratch, &is_null);
    if (is_null) {
      if (not_null && !bad->Set(row, column, true, ParseError::kNone, {})) return;
      if (out->null.empty()) out->null.resize(bad->rows);
      out->null[row] = 1;
      continue;
    }
    ParseError error = parse(text, &out->fixed[row]);
    if (error == ParseError::kSyntax) error = parse(TrimBlanks(text), &out->fixed[row]);
    if (error != ParseError::kNone && !bad->Set(row, column, false, error, text)) return;
  }
}

void CsvParser::ParseWide(const Fields& fields, size_t field, ColumnVector* out, Bad* bad) const {
  const int column = columns_[field];
  const ColumnSchema& schema = schema_.columns[static_cast<size_t>(column)];
  std::string scratch;
  out->wide.resize(bad->rows);
  for (size_t row = 0; row < bad->rows; ++row) {
    bool is_null;
    const std::string_view text = fields.Get(row, field, &scratch, &is_null);
    if (is_null) {
      if (schema.not_null && !bad->Set(row, column, true, ParseError::kNone, {})) return;
      if (out->null.empty()) out->null.resize(bad->rows);
      out->null[row] = 1;
      continue;
    }
    std::string number;
    const std::string_view trimmed =
        schema.type.id == TypeId::kDecimal ? PlainNumber(TrimBlanks(text), &number) : TrimBlanks(text);
    ParseError error = ParseError::kNone;
    if (schema.type.id == TypeId::kInterval) {
      const Result<Interval> interval = ParseInterval(trimmed);
      if (interval.ok()) {
        out->wide[row] = PackInterval(*interval);
      } else {
        error = ParseError::kSyntax;
      }
    } else {
      error = schema.type.id == TypeId::kUuid
                  ? ParseUuid(trimmed, &out->wide[row])
                  : ParseDecimal(trimmed, schema.type.precision, schema.type.scale, &out->wide[row]);
    }
    if (error != ParseError::kNone && !bad->Set(row, column, false, error, text)) return;
  }
}

void CsvParser::ParseText(const Fields& fields, size_t field, ColumnVector* out, Bad* bad) const {
  const int column = columns_[field];
  const ColumnSchema& schema = schema_.columns[static_cast<size_t>(column)];
  const bool plain = fields.index().plain;
  const size_t greatest = schema.type.length > 0 ? static_cast<size_t>(schema.type.length) : SIZE_MAX;
  std::string scratch;
  out->offsets.resize(bad->rows + 1);
  for (size_t row = 0; row < bad->rows; ++row) {
    bool is_null;
    const std::string_view text = fields.Get(row, field, &scratch, &is_null);
    if (is_null) {
      if (schema.not_null && !bad->Set(row, column, true, ParseError::kNone, {})) return;
      if (out->null.empty()) out->null.resize(bad->rows);
      out->null[row] = 1;
    } else {
      ParseError error = ParseError::kNone;
      if (schema.type.id == TypeId::kBytea) {
        error = ParseBytea(text, &out->bytes);
      } else {
        if (!plain || text.size() > greatest) error = CheckText(text, schema.type);
        if (error == ParseError::kNone) out->bytes.append(text);
      }
      if (error != ParseError::kNone) {
        if (!bad->Set(row, column, false, error, text)) return;
        out->bytes.resize(out->offsets[row]);
      }
    }
    out->offsets[row + 1] = out->bytes.size();
  }
}

std::string_view CsvParser::PlainNumber(std::string_view text, std::string* scratch) const {
  scratch->clear();
  for (const char c : text) {
    if (c == options_.thousands && c != 0) continue;
    if (c == '.' && options_.decimal != '.') return "?";
    scratch->push_back(c == options_.decimal ? '.' : c);
  }
  return *scratch;
}

bool CsvParser::ParseByFormat(const Fields& fields, size_t field, ColumnVector* out, Bad* bad) const {
  const bool is_date = out->type.id == TypeId::kDate;
  const bool is_moment = out->type.id == TypeId::kTimestamp;
  const std::string& format = is_date ? options_.date_format : options_.timestamp_format;
  if ((!is_date && !is_moment) || format.empty()) return false;
  ParseFixed(
      fields, field,
      [&](std::string_view text, int64_t* v) {
        const ParseError error = ParseMomentAs(format, text, v);
        if (is_date && error == ParseError::kNone) *v = (*v - (*v < 0 ? kDayMicros - 1 : 0)) / kDayMicros;
        return error;
      },
      out, bad);
  return true;
}

void CsvParser::ParseColumn(const Fields& fields, size_t field, ColumnVector* out, Bad* bad) const {
  const SqlType& type = out->type;
  if (ParseByFormat(fields, field, out, bad)) return;
  const bool plain = options_.decimal == '.' && options_.thousands == 0;
  std::string number;
  auto integer = [&](int64_t least, int64_t greatest) {
    if (plain) {
      return ParseFixed(
          fields, field, [=](std::string_view text, int64_t* v) { return ParseInteger(text, least, greatest, v); }, out,
          bad);
    }
    ParseFixed(
        fields, field,
        [&](std::string_view text, int64_t* v) { return ParseInteger(PlainNumber(text, &number), least, greatest, v); },
        out, bad);
  };
  switch (type.id) {
    case TypeId::kBoolean:
      return ParseFixed(fields, field, ParseBoolean, out, bad);
    case TypeId::kSmallint:
      return integer(INT16_MIN, INT16_MAX);
    case TypeId::kInteger:
      return integer(INT32_MIN, INT32_MAX);
    case TypeId::kBigint:
      return integer(INT64_MIN, INT64_MAX);
    case TypeId::kReal:
    case TypeId::kDouble: {
      const auto parse_float = type.id == TypeId::kReal ? ParseReal : ParseDouble;
      return ParseFixed(
          fields, field,
          [&, plain](std::string_view text, int64_t* v) {
            double d = 0;
            const ParseError error = parse_float(plain ? text : PlainNumber(text, &number), &d);
            *v = std::bit_cast<int64_t>(d);
            return error;
          },
          out, bad);
    }
    case TypeId::kDecimal:
      if (IsWide(type)) return ParseWide(fields, field, out, bad);
      return ParseFixed(
          fields, field,
          [&, plain, precision = type.precision, scale = type.scale](std::string_view text, int64_t* v) {
            int128_t wide = 0;
            const ParseError error = ParseDecimal(plain ? text : PlainNumber(text, &number), precision, scale, &wide);
            *v = static_cast<int64_t>(wide);
            return error;
          },
          out, bad);
    case TypeId::kDate:
      return ParseFixed(fields, field, ParseDate, out, bad);
    case TypeId::kTimestamp:
      return ParseFixed(fields, field, ParseTimestamp, out, bad);
    case TypeId::kTime:
      return ParseFixed(fields, field, ParseTime, out, bad);
    case TypeId::kTimestampTz:
      return ParseFixed(
          fields, field,
          [zone = options_.zone](std::string_view text, int64_t* v) { return ParseMoment(text, zone, v); }, out, bad);
    case TypeId::kEnum:
      return ParseFixed(
          fields, field,
          [&labels = EnumOf(type).labels](std::string_view text, int64_t* v) {
            const auto at = std::find(labels.begin(), labels.end(), text);
            *v = at - labels.begin();
            return at != labels.end() ? ParseError::kNone : ParseError::kSyntax;
          },
          out, bad);
    case TypeId::kUuid:
    case TypeId::kInterval:
      return ParseWide(fields, field, out, bad);
    default:
      return ParseText(fields, field, out, bad);
  }
}

std::vector<std::string> FirstRecord(const CsvBlock& block, const CopyFromOptions& options) {
  const CsvParser parser({}, options);
  CsvParser::Index index;
  index.start = CsvParser::TextBegin(block);
  parser.FindFieldEnds(block, &index);
  index.first_fields.push_back(0);
  std::vector<std::string> names;
  const CsvParser::Fields fields(block, index, options.format);
  for (size_t field = 0; field < index.field_ends.size(); ++field) {
    std::string scratch;
    bool is_null = false;
    names.emplace_back(fields.Get(0, field, &scratch, &is_null));
    if ((index.field_ends[field] & kRecordEnd) != 0) break;
  }
  return names;
}

/// After a byte order mark.
size_t CsvParser::TextBegin(const CsvBlock& block) {
  const bool marked = block.starts_file && block.size >= 3 && memcmp(block.bytes.data(), "\xEF\xBB\xBF", 3) == 0;
  return marked ? 3 : 0;
}

FileRows CsvParser::Parse(const CsvBlock& block) const {
  FileRows result;
  Index index;
  index.start = TextBegin(block);
  FindFieldEnds(block, &index);
  FindRecords(block, &index, &result);
  result.lines = CountLines(block.bytes.data(), block.size);

  const Fields fields(block, index, options_.format);
  Bad bad;
  bad.rows = index.first_fields.size();
  bad.ignores = options_.ignore_errors;
  result.batch.columns.resize(schema_.columns.size());
  for (size_t c = 0; c < schema_.columns.size(); ++c) result.batch.columns[c].type = schema_.columns[c].type;
  for (size_t field = 0; field < columns_.size(); ++field) {
    ColumnVector& column = result.batch.columns[static_cast<size_t>(columns_[field])];
    if (IsRead(field)) {
      ParseColumn(fields, field, &column, &bad);
    } else {
      SetNull(bad.rows, &column);
    }
  }
  for (int c : absent_columns_) {
    const ColumnSchema& schema = schema_.columns[static_cast<size_t>(c)];
    const Value value = DefaultOf(schema);
    ColumnVector& column = result.batch.columns[static_cast<size_t>(c)];
    if (value.null && schema.not_null && !schema.generated_text && !schema.default_expression && bad.rows > 0) {
      bad.ignores = false;  // it is the same in all of them
      (void)bad.Set(0, c, true, ParseError::kNone, {});
    }
    for (size_t row = 0; row < bad.rows; ++row) column.Append(value);
  }
  result.batch.rows = bad.rows;
  result.ignored += bad.Drop(&result.batch);
  if (bad.column >= 0) {
    const ColumnSchema& column = schema_.columns[static_cast<size_t>(bad.column)];
    FileError& e = result.error.emplace();
    const size_t first = index.first_fields[bad.rows];
    const size_t begin = first == 0 ? index.start : (index.field_ends[first - 1] & ~kRecordEnd) + 1;
    e.line = CountLines(block.bytes.data(), begin);
    e.column = column.name;
    if (bad.is_null) {
      e.kind = ErrorKind::kNotNullViolation;
      e.message =
          "null value in column \"" + column.name + "\" of table \"" + schema_.name + "\" violates not-null constraint";
    } else {
      const Status failure = ParseFailure(bad.error, bad.text, column.type);
      e.kind = failure.kind();
      e.message = failure.message();
      if (options_.guessed) {
        e.hint =
            "The type " + column.type.ToString() +
            " was guessed from the first rows of the file: read_csv('FILE', sample_size = -1) looks at all of them, "
            "types = {'" +
            column.name +
            "': 'TEXT'} names another type, and ignore_errors = true leaves such records "
            "out.";
      }
    }
  }
  return result;
}

}  // namespace tessera
