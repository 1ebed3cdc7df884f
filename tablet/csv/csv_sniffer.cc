#include "tablet/csv/csv_sniffer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lower_case.h"
#include "tablet/csv/csv_file.h"
#include "tablet/csv/file_signature.h"
#include "tablet/csv/value_kinds.h"
#include "tablet/values/utf8.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

/// What is read of the file, unless all of it is asked for; and of that, what the delimiter is guessed from.
constexpr size_t kSampleBytes = size_t{1} << 20, kDialectBytes = size_t{64} << 10;
constexpr size_t kMostColumns = 16384;
/// Lines at the start of a file that may be no records, as a title.
constexpr size_t kMostTitleLines = 16;

struct Dialect {
  char delimiter = ',', quote = '"', escape = '"';
};

/// A text cut into records and fields, as a CsvParser would.
class Splitter {
 public:
  Splitter(std::string_view text, const Dialect& dialect) : text_(text), d_(dialect) {}

  struct Field {
    std::string value;
    bool quoted = false;
  };

  /// The next record; false at the end, and at one that the text has not all of.
  bool Next(std::vector<Field>* record) {
    record->clear();
    if (at_ >= text_.size()) return false;
    bool in_quotes = false, closed = false;
    Field field;
    for (;; ++at_) {
      if (at_ >= text_.size()) return false;
      const char c = text_[at_];
      const bool is_quote = c == d_.quote && d_.quote != 0;
      if (in_quotes) {
        const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
        if (c == d_.escape && (next == d_.quote || next == d_.escape)) {
          field.value.push_back(next);
          ++at_;
        } else if (is_quote) {
          in_quotes = false;
          closed = true;
        } else {
          field.value.push_back(c);
        }
        continue;
      }
      if (is_quote) {
        stray_ += !field.value.empty() || closed ? 1 : 0;
        quoted_ += 1;
        field.quoted = in_quotes = true;
        continue;
      }
      if (c == d_.delimiter || c == '\n') {
        if (c == '\n' && !field.value.empty() && field.value.back() == '\r') field.value.pop_back();
        record->push_back(std::move(field));
        field = {};
        closed = false;
        if (c == '\n') {
          ++at_;
          return true;
        }
        continue;
      }
      stray_ += closed && c != '\r' ? 1 : 0;
      field.value.push_back(c);
    }
  }

  size_t at() const { return at_; }
  size_t quoted() const { return quoted_; }
  size_t stray() const { return stray_; }  ///< quotes within fields

 private:
  const std::string_view text_;
  const Dialect d_;
  size_t at_ = 0;
  size_t quoted_ = 0, stray_ = 0;
};

bool IsBlankRecord(const std::vector<Splitter::Field>& record) {
  return record.size() == 1 && record[0].value.empty() && !record[0].quoted;
}

/// How well a dialect fits.
struct Fit {
  Dialect dialect;
  size_t fields = 1;
  size_t records = 0, consistent = 0;  ///< after the title
  size_t title_lines = 0;
  size_t quoted = 0, stray = 0;

  /// `is_table`: what was said of the file shows that it has columns.
  bool IsGood(bool is_table) const {
    return fields > 1 && records > 0 && (is_table ? consistent * 5 >= records * 2 : consistent * 10 >= records * 9);
  }
  bool IsBetterThan(const Fit& b) const {
    const bool all = consistent == records, others = b.consistent == b.records;
    if (all != others) return all;
    if ((stray == 0) != (b.stray == 0)) return stray == 0;
    if ((title_lines == 0) != (b.title_lines == 0)) return title_lines == 0;
    if (fields != b.fields) return fields > b.fields;
    return quoted > b.quoted;
  }
};

Fit FitOf(std::string_view text, const Dialect& dialect) {
  Fit fit;
  fit.dialect = dialect;
  Splitter splitter(text, dialect);
  std::vector<Splitter::Field> record;
  std::vector<size_t> counts;
  while (splitter.Next(&record)) {
    // dbgen ends each line with a delimiter.
    const bool ends_empty = record.size() > 1 && record.back().value.empty() && !record.back().quoted;
    counts.push_back(IsBlankRecord(record) ? 0 : record.size() * 2 - (ends_empty ? 1 : 0));
  }
  fit.quoted = splitter.quoted();
  fit.stray = splitter.stray();
  while (!counts.empty() && counts.back() == 0) counts.pop_back();
  std::map<size_t, size_t> often;
  for (const size_t count : counts) ++often[(count + 1) / 2];
  size_t most = 0;
  for (const auto& [fields, times] : often) {
    if (times < most) continue;
    most = times;
    fit.fields = fields;
  }
  size_t first = 0;
  while (first < counts.size() && first < kMostTitleLines && (counts[first] + 1) / 2 != fit.fields) ++first;
  if (first == kMostTitleLines) first = 0;
  fit.title_lines = first;
  fit.records = counts.size() - first;
  bool all_end_empty = fit.fields > 2;
  for (size_t i = first; i < counts.size(); ++i) {
    fit.consistent += (counts[i] + 1) / 2 == fit.fields ? 1 : 0;
    all_end_empty = all_end_empty && counts[i] % 2 == 1;
  }
  if (all_end_empty) --fit.fields;
  return fit;
}

Fit ChooseDialect(std::string_view text, const FileSpec& spec) {
  const std::vector<char> delimiters =
      spec.delimiter ? std::vector<char>{*spec.delimiter} : std::vector<char>{',', ';', '\t', '|'};
  const std::vector<char> quotes = spec.quote ? std::vector<char>{*spec.quote} : std::vector<char>{'"', '\'', '\0'};
  const bool is_table = spec.ignore_errors || !spec.types.empty() || spec.names;
  std::optional<Fit> best;
  for (const char quote : quotes) {
    for (const char delimiter : delimiters) {
      if (delimiter == quote) continue;
      std::vector<char> escapes = {quote};
      if (spec.escape) escapes = {*spec.escape};
      if (!spec.escape && quote != 0 && text.find('\\') != std::string_view::npos) escapes.push_back('\\');
      for (const char escape : escapes) {
        const Fit fit = FitOf(text, {delimiter, quote, escape});
        if (!spec.delimiter && !fit.IsGood(is_table)) continue;
        if (!best || fit.IsBetterThan(*best)) best = fit;
      }
    }
  }
  if (best) return *best;
  // One column.
  Fit one = FitOf(text, {spec.delimiter.value_or(','), spec.quote.value_or('"'), spec.escape.value_or('"')});
  one.fields = 1;
  one.title_lines = 0;
  return one;
}

struct Sample {
  std::string text;
  bool is_whole = false;
  TextEncoding encoding = TextEncoding::kUtf8;
};

Status NotText(const std::string& name, const FileSignature& found) {
  std::string hint = "Write it as CSV or JSON lines.";
  if (found.convert != nullptr) hint = std::string("Convert it first: ") + found.convert;
  if (found.format != nullptr) hint = std::string("read_") + found.format + " reads it.";
  return {ErrorCode::kUnsupported, QuoteForMessage(name) + " is " + found.what + ", not CSV", hint};
}

Result<std::string> ReadStart(const std::string& path, const std::string& name, TextEncoding encoding, size_t bytes) {
  TESSERA_ASSIGN(CsvFile file, CsvFile::Open(path, name));
  CopyFromOptions options;
  options.encoding = encoding;
  file.Configure(options, bytes);
  return file.ReadStart(bytes);
}

Result<Sample> ReadSample(const std::string& path, const std::string& name, const FileSpec& spec) {
  const size_t bytes = spec.sampled_rows < 0 ? SIZE_MAX : kSampleBytes;
  Sample sample;
  TESSERA_ASSIGN(sample.text, ReadStart(path, name, TextEncoding::kUtf8, bytes));
  const std::string_view raw = sample.text;
  sample.encoding = spec.encoding.value_or(TextEncoding::kUtf8);
  const bool marked = raw.starts_with("\xff\xfe") || raw.starts_with("\xfe\xff");
  if (!spec.encoding && marked) sample.encoding = TextEncoding::kUtf16;
  const FileSignature* const found = FindSignature(raw.substr(0, std::min<size_t>(raw.size(), 64)));
  if (found != nullptr && !marked) return NotText(name, *found);
  sample.is_whole = raw.size() < bytes;
  if (!spec.encoding && sample.encoding == TextEncoding::kUtf8 && raw.find('\0') == std::string_view::npos) {
    const size_t bad = FindInvalidUtf8(raw);
    // (The sample may end within a character.)
    if (bad != std::string_view::npos && (sample.is_whole || bad + 4 < raw.size()))
      sample.encoding = TextEncoding::kLatin1;
  }
  if (sample.encoding != TextEncoding::kUtf8) {
    TESSERA_ASSIGN(sample.text, ReadStart(path, name, sample.encoding, bytes));
    sample.is_whole = sample.text.size() < bytes;
  }
  if (sample.text.starts_with("\xEF\xBB\xBF")) sample.text.erase(0, 3);
  // Lines that end in carriage returns alone.
  if (sample.text.find('\n') == std::string::npos) std::replace(sample.text.begin(), sample.text.end(), '\r', '\n');
  if (sample.is_whole && !sample.text.empty() && sample.text.back() != '\n') sample.text.push_back('\n');
  return sample;
}

/// What the columns of some records are.
struct Columns {
  std::vector<ValueKinds> kinds;
  size_t records = 0;

  void Add(const std::vector<Splitter::Field>& record, const FileSpec& spec) {
    ++records;
    for (size_t c = 0; c < std::min(kinds.size(), record.size()); ++c) {
      const Splitter::Field& field = record[c];
      if (!field.quoted && field.value == spec.null_string) continue;
      if (kinds[c] != 0) kinds[c] &= KindsOf(field.value, spec.decimal, spec.thousands);
    }
  }
};

/// Whether the first record has the names of the columns, by the others.
bool IsHeader(const std::vector<Splitter::Field>& first, const Columns& rest, const FileSpec& spec) {
  bool has_typed = false, all_texts = true;
  for (size_t c = 0; c < rest.kinds.size(); ++c) {
    const std::string& text = c < first.size() ? first[c].value : std::string();
    const ValueKinds own = KindsOf(text, spec.decimal, spec.thousands);
    if (own != 0 || text.empty()) all_texts = false;
    const bool typed = rest.kinds[c] != 0 && rest.kinds[c] != kAllKinds;
    if (typed && !text.empty() && (own & rest.kinds[c]) == 0) return true;
    has_typed = has_typed || typed;
  }
  return !has_typed && all_texts;
}

std::string NumberedName(size_t c, size_t count) {
  std::string number = std::to_string(c);
  const size_t digits = std::to_string(count - 1).size();
  return "column" + std::string(digits - number.size(), '0') + number;
}

/// Names that differ from each other: as an unquoted name is, in lower case.
std::vector<std::string> NamesOf(const std::vector<Splitter::Field>* header, size_t count, const FileSpec& spec) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (size_t c = 0; c < count; ++c) {
    std::string name;
    if (spec.names && c < spec.names->size()) {
      name = (*spec.names)[c];
    } else if (header != nullptr && c < header->size()) {
      name = LowerCase(TrimBlanks((*header)[c].value));
    }
    if (name.empty()) name = NumberedName(c, count);
    std::string unique = name;
    for (int n = 1; !taken.insert(unique).second; ++n) unique = name + "_" + std::to_string(n);
    names.push_back(std::move(unique));
  }
  return names;
}

Status SetTypes(const FileSpec& spec, const std::string& name, TableSchema* schema) {
  size_t next = 0;
  for (const auto& [column, type] : spec.types) {
    const int c = column.empty() ? static_cast<int>(next++) : schema->Find(column);
    if (c < 0 && spec.patterns.size() == 1 && !spec.union_by_name) {
      return SqlError("column \"" + column + "\" of option types is not in " + QuoteForMessage(name), -1,
                      "DESCRIBE 'FILE' shows the columns.");
    }
    if (c >= static_cast<int>(schema->columns.size()))
      return SqlError("option types has more types than " + QuoteForMessage(name) + " has columns");
    if (c >= 0) schema->columns[static_cast<size_t>(c)].type = type;
  }
  return {};
}

}  // namespace

Result<SniffedCsv> SniffCsv(const std::string& path, const std::string& name, const FileSpec& spec) {
  TESSERA_ASSIGN(const Sample sample, ReadSample(path, name, spec));
  std::string_view text = sample.text;
  SniffedCsv out;
  CopyFromOptions& options = out.options;
  options.encoding = sample.encoding;
  options.skip_lines = spec.skip_lines;
  for (uint64_t i = 0; i < spec.skip_lines; ++i) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const Fit fit = ChooseDialect(text.substr(0, kDialectBytes), spec);
  options.format.delimiter = fit.dialect.delimiter;
  options.format.quote = fit.dialect.quote;
  options.format.escape = fit.dialect.escape;
  options.format.null_string = spec.null_string;
  options.decimal = spec.decimal;
  options.thousands = spec.thousands;
  options.date_format = spec.date_format;
  options.timestamp_format = spec.timestamp_format;
  options.ignore_errors = spec.ignore_errors;
  options.guessed = true;
  if (fit.title_lines > 0 && spec.skip_lines == 0) {
    options.skip_lines = fit.title_lines;
    for (size_t i = 0; i < fit.title_lines; ++i) text.remove_prefix(text.find('\n') + 1);
  }
  if (fit.fields > kMostColumns)
    return SqlError(QuoteForMessage(name) + " has records of more than " + std::to_string(kMostColumns) + " fields");

  Splitter splitter(text, fit.dialect);
  std::vector<Splitter::Field> first, record;
  const bool any = splitter.Next(&first);
  Columns rest;
  rest.kinds.assign(fit.fields, kAllKinds);
  const uint64_t most = spec.sampled_rows < 0 ? UINT64_MAX : static_cast<uint64_t>(spec.sampled_rows);
  while (rest.records < most && splitter.Next(&record)) {
    if (!IsBlankRecord(record)) rest.Add(record, spec);
  }
  options.format.header = spec.header.value_or(any && IsHeader(first, rest, spec));
  Columns all = rest;
  if (any && !options.format.header) all.Add(first, spec);
  if (all.records > 0) out.bytes_of_row = static_cast<double>(splitter.at()) / static_cast<double>(all.records);
  const std::vector<std::string> names = NamesOf(options.format.header ? &first : nullptr, fit.fields, spec);
  for (size_t c = 0; c < fit.fields; ++c)
    out.schema.columns.push_back({names[c], spec.all_text ? SqlType::Text() : TypeOfKinds(all.kinds[c])});
  // A format of dates is for what looks like a text.
  TESSERA_TRY(SetTypes(spec, name, &out.schema));
  return out;
}

}  // namespace tessera
