#include "tablet/json/json_lines.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/lower_case.h"
#include "tablet/csv/csv_file.h"
#include "tablet/csv/value_kinds.h"
#include "tablet/json/json_line.h"
#include "tablet/values/null_column.h"
#include "tablet/values/utf8.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

constexpr size_t kSampleBytes = size_t{1} << 20;
constexpr size_t kMostColumns = 16384;

/// Calls f(line, number of the line) for each that is not blank, until it returns an error.
template <class F>
Status ForEachLine(std::string_view text, const F& f) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  for (uint64_t number = 0; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = TrimBlanks(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty()) TESSERA_TRY(f(line, number));
  }
  return {};
}

/// What the values of a member are.
struct Member {
  std::string key;
  uint32_t kinds = 0;  ///< bits of JsonValue::Kind
  ValueKinds moments = kAllKinds;

  void Add(const JsonValue& v) {
    if (v.kind == JsonValue::Kind::kNull) return;
    kinds |= uint32_t{1} << static_cast<int>(v.kind);
    if (v.kind != JsonValue::Kind::kText || moments == 0) return;
    const ValueKinds found = KindsOf(v.text, '.', 0);
    const TypeId type = TypeOfKinds(found).id;
    const bool is_moment =
        type == TypeId::kDate || type == TypeId::kTime || type == TypeId::kTimestamp || type == TypeId::kTimestampTz;
    moments &= is_moment ? found : 0;
  }
  SqlType Type() const {
    const auto only = [&](std::initializer_list<JsonValue::Kind> list) {
      uint32_t bits = 0;
      for (const JsonValue::Kind kind : list) bits |= uint32_t{1} << static_cast<int>(kind);
      return kinds != 0 && (kinds & ~bits) == 0;
    };
    if (only({JsonValue::Kind::kBoolean})) return SqlType::Of(TypeId::kBoolean);
    if (only({JsonValue::Kind::kInteger})) return SqlType::Of(TypeId::kBigint);
    if (only({JsonValue::Kind::kInteger, JsonValue::Kind::kNumber})) return SqlType::Of(TypeId::kDouble);
    if (only({JsonValue::Kind::kText}) && moments != 0) return TypeOfKinds(moments);
    return SqlType::Text();
  }
};

/// A member as a value of the type. Errors: it is none.
Result<Value> ValueOf(JsonValue&& v, const SqlType& type, const TimeZone* zone) {
  if (v.kind == JsonValue::Kind::kNull) return Value::Null(type);
  if (type.id == TypeId::kBigint && v.kind == JsonValue::Kind::kInteger) return Value::Int(type, v.integer);
  if (type.id == TypeId::kBoolean && v.kind == JsonValue::Kind::kBoolean) return Value::Int(type, v.integer);
  const bool is_number = v.kind == JsonValue::Kind::kInteger || v.kind == JsonValue::Kind::kNumber;
  if (type.id == TypeId::kDouble && is_number) return Value::Float(type, v.number);
  if (type.id != TypeId::kText) return ParseValue(v.text, type, zone);
  const ParseError error = CheckText(v.text, type);
  if (error != ParseError::kNone) return ParseFailure(error, v.text, type);
  Value out = Value::Text(std::move(v.text));
  out.type = type;
  return out;
}

/// What the shares of a file have in common.
struct JsonFile {
  TableSchema schema;
  CopyFromOptions options;
  std::string path;
  std::unordered_map<std::string, size_t> columns;  ///< that are read, by member
};

class JsonShare final : public FileShare {
 public:
  explicit JsonShare(const JsonFile* file) : file_(*file) {}

  FileRows Read() const override {
    FileRows rows;
    rows.batch.columns.resize(file_.schema.columns.size());
    for (size_t c = 0; c < rows.batch.columns.size(); ++c) rows.batch.columns[c].type = file_.schema.columns[c].type;
    const std::string_view text(block.bytes.data(), block.size);
    rows.lines = static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
    std::vector<Value> row(rows.batch.columns.size());
    (void)ForEachLine(text, [&](std::string_view object, uint64_t number) {
      std::string column;
      const Status status = ReadLine(object, &row, &column);
      if (status.ok()) {
        for (const auto& [key, c] : file_.columns) rows.batch.columns[c].Append(row[c]);
        ++rows.batch.rows;
        return Status();
      }
      if (file_.options.ignore_errors) {
        ++rows.ignored;
        return Status();
      }
      FileError& error = rows.error.emplace();
      error.kind = status.kind();
      error.line = number;
      error.column = column;
      error.message = status.message();
      error.hint =
          column.empty()
              ? "ignore_errors = true leaves such lines out."
              : "The type was guessed from the first lines: read_json('FILE', sample_size = -1) looks at all of "
                "them, columns = {'" +
                    column + "': 'TEXT'} names another type, and ignore_errors = true leaves such lines out.";
      return status;
    });
    std::vector<bool> is_read(rows.batch.columns.size());
    for (const auto& [key, c] : file_.columns) is_read[c] = true;
    for (size_t c = 0; c < is_read.size(); ++c) {
      if (!is_read[c]) SetNull(rows.batch.rows, &rows.batch.columns[c]);
    }
    return rows;
  }
  uint64_t bytes() const override { return block.size; }
  const std::string& path() const override { return file_.path; }
  uint64_t first_line() const override { return line; }

  CsvBlock block;
  uint64_t line = 0;

 private:
  Status ReadLine(std::string_view text, std::vector<Value>* row, std::string* bad_column) const {
    for (const auto& [key, c] : file_.columns) (*row)[c] = Value::Null(file_.schema.columns[c].type);
    Status bad;
    const Status status = JsonLine::Read(text, [&](const std::string& name, JsonValue&& value) {
      const auto at = file_.columns.find(name);
      if (at == file_.columns.end() || !bad.ok()) return;
      const ColumnSchema& column = file_.schema.columns[at->second];
      Result<Value> v = ValueOf(std::move(value), column.type, file_.options.zone);
      if (v.ok()) {
        (*row)[at->second] = *std::move(v);
      } else {
        bad = v.status();
        *bad_column = column.name;
      }
    });
    return status.ok() ? bad : status;
  }

  const JsonFile& file_;
};

class JsonReader final : public FileReader {
 public:
  JsonReader(CsvFile text, JsonFile file) : text_(std::move(text)), file_(std::move(file)) {}

  const TableSchema& schema() const override { return file_.schema; }
  uint64_t bytes() const override { return text_.text_size(); }
  Status Next(std::unique_ptr<FileShare>* share) override {
    auto next = std::make_unique<JsonShare>(&file_);
    TESSERA_TRY(text_.Read(&next->block));
    next->line = next->block.number == 0 ? text_.first_line() : 0;
    share->reset();
    if (next->block.size > 0) *share = std::move(next);
    return {};
  }

 private:
  CsvFile text_;
  const JsonFile file_;
};

/// The options with which lines are read: nothing in them quotes a line feed.
CopyFromOptions LineOptions(const FileSpec& spec) {
  CopyFromOptions options;
  options.format.quote = options.format.escape = 0;
  options.encoding = spec.encoding.value_or(TextEncoding::kUtf8);
  options.ignore_errors = spec.ignore_errors;
  options.guessed = true;
  return options;
}

/// Types, and columns, that the user names.
Status SetTypes(const FileSpec& spec, const std::string& name, SniffedJson* out) {
  if (spec.names) {
    out->keys = *spec.names;
    out->schema.columns.clear();
    for (const std::string& key : out->keys) out->schema.columns.push_back({key, SqlType::Text()});
  }
  for (const auto& [column, type] : spec.types) {
    const int c = out->schema.Find(column);
    if (c < 0)
      return SqlError("column \"" + column + "\" is not in " + QuoteForMessage(name), -1,
                      "DESCRIBE 'FILE' shows the columns.");
    out->schema.columns[static_cast<size_t>(c)].type = type;
  }
  return {};
}

}  // namespace

Result<SniffedJson> SniffJsonLines(const std::string& path, const std::string& name, const FileSpec& spec) {
  SniffedJson out;
  out.options = LineOptions(spec);
  TESSERA_ASSIGN(CsvFile file, CsvFile::Open(path, name));
  const size_t bytes = spec.sampled_rows < 0 ? SIZE_MAX : kSampleBytes;
  file.Configure(out.options, std::min(bytes, kSampleBytes));
  TESSERA_ASSIGN(std::string text, file.ReadStart(bytes));
  if (text.size() >= bytes) text.resize(text.rfind('\n') == std::string::npos ? text.size() : text.rfind('\n') + 1);
  const size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first != std::string::npos && text[first] == '[') {
    return SqlError(QuoteForMessage(name) + " is an array of JSON, and not JSON lines", -1,
                    "jq -c '.[]' FILE writes its elements as lines.");
  }
  std::vector<Member> members;
  std::unordered_map<std::string, size_t> places;
  int64_t rows = 0;
  uint64_t bad_line = 0;
  const Status status = ForEachLine(text, [&](std::string_view line, uint64_t number) -> Status {
    if (spec.sampled_rows >= 0 && rows >= spec.sampled_rows) return {};
    ++rows;
    bad_line = number + 1;
    const Status read = JsonLine::Read(line, [&](const std::string& key, const JsonValue& value) {
      const auto [at, is_new] = places.try_emplace(key, members.size());
      if (is_new) members.push_back({key});
      members[at->second].Add(value);
    });
    return spec.ignore_errors ? Status() : read;
  });
  if (!status.ok()) {
    return Status(status.kind(), QuoteForMessage(name) + ", line " + std::to_string(bad_line) + ": " + status.message(),
                  "ignore_errors = true leaves such lines out.");
  }
  if (members.size() > kMostColumns)
    return SqlError(QuoteForMessage(name) + " has more than " + std::to_string(kMostColumns) + " members of objects");
  if (members.empty()) members.push_back({"json"});
  std::set<std::string> taken;
  for (const Member& member : members) {
    std::string lower = LowerCase(member.key);
    if (lower.empty()) lower = "column";
    std::string unique = lower;
    for (int n = 1; !taken.insert(unique).second; ++n) unique = lower + "_" + std::to_string(n);
    out.keys.push_back(member.key);
    out.schema.columns.push_back({unique, member.Type()});
  }
  TESSERA_TRY(SetTypes(spec, name, &out));
  out.bytes_of_row =
      static_cast<double>(std::max<size_t>(text.size(), 1)) / static_cast<double>(std::max<int64_t>(rows, 1));
  return out;
}

Result<std::unique_ptr<FileReader>> OpenJsonReader(const std::string& path, const std::string& name,
                                                   const TableSchema& schema, const std::vector<std::string>& keys,
                                                   const CopyFromOptions& options, size_t block_bytes) {
  TESSERA_ASSIGN(CsvFile text, CsvFile::Open(path, name));
  text.Configure(options, block_bytes);
  JsonFile file;
  file.schema = schema;
  file.options = options;
  file.path = name;
  for (size_t i = 0; i < keys.size() && i < options.columns.size(); ++i) {
    const auto c = static_cast<size_t>(options.columns[i]);
    if (options.read.empty() || options.read[c] != 0) file.columns.emplace(keys[i], c);
  }
  return std::unique_ptr<FileReader>(std::make_unique<JsonReader>(std::move(text), std::move(file)));
}

}  // namespace tessera
