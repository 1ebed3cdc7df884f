#include "tablet/columnar/columnar_reader.h"

#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lower_case.h"
#include "tablet/chunk/stored_range.h"
#include "tablet/values/null_column.h"
#include "tablet/values/utf8.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

constexpr int64_t kDayMicros = int64_t{86400} * 1'000'000;
/// 0001-01-01 and 9999-12-31.
constexpr int64_t kFirstDay = -719162, kLastDay = 2932896;

/// The values that a type has: of integers that stand for something else.
std::optional<std::pair<int64_t, int64_t>> RangeOf(TypeId type) {
  if (type == TypeId::kDate) return std::pair(kFirstDay, kLastDay);
  if (type == TypeId::kTimestamp) return std::pair(kFirstDay * kDayMicros, (kLastDay + 1) * kDayMicros - 1);
  if (type == TypeId::kTimestampTz) return std::pair(kFirstMoment, kLastMoment);
  if (type == TypeId::kTime) return std::pair(int64_t{0}, kDayMicros - 1);
  return std::nullopt;
}

using BadRow = BadColumnRow;

std::optional<BadRow> CheckTexts(const ColumnVector& column, size_t rows) {
  // All of them at once; then only where one ends and the next begins is left.
  bool good = FindInvalidUtf8(column.bytes) == std::string_view::npos &&
              memchr(column.bytes.data(), 0, column.bytes.size()) == nullptr;
  for (size_t row = 0; row < rows && good; ++row) {
    const uint64_t begin = column.offsets[row];
    good = begin >= column.bytes.size() || (static_cast<unsigned char>(column.bytes[begin]) & 0xC0) != 0x80;
  }
  for (size_t row = 0; row < rows && !good; ++row) {
    const ParseError error = CheckText(column.Text(row), column.type);
    if (error != ParseError::kNone) return BadRow{row, ParseFailure(error, column.Text(row), column.type)};
  }
  return std::nullopt;
}

std::optional<BadRow> CheckColumn(const ColumnVector& column, size_t rows) {
  if (column.type.id == TypeId::kText) return CheckTexts(column, rows);
  const auto range = RangeOf(column.type.id);
  for (size_t row = 0; range && row < rows; ++row) {
    const int64_t v = column.fixed[row];
    if ((v >= range->first && v <= range->second) || column.IsNull(row)) continue;
    return BadRow{row,
                  {ErrorKind::kDatetimeOverflow,
                   "value " + std::to_string(v) + " is out of range for type " + column.type.ToString()}};
  }
  return std::nullopt;
}

/// Whether values of the one type are, as they are stored, values of the other.
bool IsSameStored(const SqlType& from, const SqlType& to) {
  if (from == to) return true;
  if (from.IsInteger() && to.IsInteger()) return from.id <= to.id;
  return from.IsFloat() && to.id == TypeId::kDouble;
}

/// Of files that differ in a column's type: by way of its text.
std::optional<BadRow> Convert(const SqlType& type, size_t rows, ColumnVector* column) {
  if (IsSameStored(column->type, type)) {
    column->type = type;
    return std::nullopt;
  }
  ColumnVector out;
  out.type = type;
  std::string text;
  for (size_t row = 0; row < rows; ++row) {
    if (column->IsNull(row)) {
      out.Append(Value::Null(type));
      continue;
    }
    text.clear();
    AppendText(*column, row, &text);
    const Result<Value> value = ParseValue(text, type);
    if (!value.ok()) return BadRow{row, value.status()};
    out.Append(*value);
  }
  *column = std::move(out);
  return std::nullopt;
}

class ColumnarShare final : public FileShare {
 public:
  ColumnarShare(std::unique_ptr<FileShare> share, const TableSchema* schema, const std::vector<int>* columns)
      : share_(std::move(share)), schema_(*schema), columns_(*columns) {}

  FileRows Read() const override {
    FileRows found = share_->Read();
    FileRows rows;
    rows.error = std::move(found.error);
    rows.batch.rows = rows.error ? 0 : found.batch.rows;
    rows.batch.columns.resize(schema_.columns.size());
    std::vector<bool> is_read(schema_.columns.size());
    for (size_t i = 0; i < columns_.size() && !rows.error; ++i) {
      const auto c = static_cast<size_t>(columns_[i]);
      ColumnVector& column = found.batch.columns[i];
      if (const std::optional<BadRow> bad = FitColumn(schema_.columns[c].type, rows.batch.rows, &column)) {
        FileError& error = rows.error.emplace();
        error.kind = bad->status.kind();
        error.column = schema_.columns[c].name;
        error.message = "row " + std::to_string(bad->row + 1) + ": " + bad->status.message();
        rows.batch.rows = 0;
        break;
      }
      rows.batch.columns[c] = std::move(column);
      is_read[c] = true;
    }
    for (size_t c = 0; c < is_read.size(); ++c) {
      ColumnVector& column = rows.batch.columns[c];
      if (is_read[c] && !rows.error) continue;
      column = {};
      column.type = schema_.columns[c].type;
      SetNull(rows.batch.rows, &column);
    }
    return rows;
  }
  uint64_t bytes() const override { return share_->bytes(); }
  const std::string& path() const override { return share_->path(); }
  uint64_t first_line() const override { return 0; }
  std::string place() const override { return share_->place(); }

 private:
  const std::unique_ptr<FileShare> share_;
  const TableSchema& schema_;
  const std::vector<int>& columns_;
};

class ColumnarReader final : public FileReader {
 public:
  /// `columns`: of the table, by column of `reader`.
  ColumnarReader(std::unique_ptr<FileReader> reader, const TableSchema& schema, std::vector<int> columns)
      : reader_(std::move(reader)), schema_(schema), columns_(std::move(columns)) {}

  const TableSchema& schema() const override { return schema_; }
  uint64_t bytes() const override { return reader_->bytes(); }
  Status Next(std::unique_ptr<FileShare>* share) override {
    std::unique_ptr<FileShare> taken;
    TESSERA_TRY(reader_->Next(&taken));
    share->reset();
    if (taken != nullptr) *share = std::make_unique<ColumnarShare>(std::move(taken), &schema_, &columns_);
    return {};
  }

 private:
  const std::unique_ptr<FileReader> reader_;
  const TableSchema schema_;
  const std::vector<int> columns_;
};

}  // namespace

bool AreValuesOf(const SqlType& type, int128_t least, int128_t greatest) {
  const StoredRange stored = StoredRangeOf(type);
  const auto range = RangeOf(type.id);
  return least >= stored.least && greatest <= stored.greatest &&
         (!range || (least >= range->first && greatest <= range->second));
}

std::optional<BadColumnRow> FitColumn(const SqlType& type, size_t rows, ColumnVector* column) {
  std::optional<BadRow> bad = CheckColumn(*column, rows);
  return bad ? std::move(bad) : Convert(type, rows, column);
}

Result<DescribedColumnar> DescribeColumnar(const ColumnarSource& source,
                                           std::shared_ptr<const ColumnarGroups>* groups) {
  TESSERA_ASSIGN(ColumnarPlugin* const plugin, LoadColumnarPlugin(source.name));
  ColumnarShape shape;
  if (groups != nullptr) {
    TESSERA_ASSIGN(*groups, plugin->OpenGroups(source));
    shape.fields = (*groups)->fields();
    for (const uint64_t rows : (*groups)->rows()) shape.rows += rows;
  } else {
    TESSERA_TRY(plugin->Describe(source, &shape));
  }
  if (shape.fields.empty()) return SqlError(QuoteForMessage(source.name) + " has no columns");
  DescribedColumnar out;
  out.rows = shape.rows;
  std::set<std::string> taken;
  for (const ColumnarField& field : shape.fields) {
    std::string name = LowerCase(field.name);
    if (name.empty()) name = "column" + std::to_string(out.schema.columns.size());
    if (CheckText(name, SqlType::Text()) != ParseError::kNone)
      return SqlError(QuoteForMessage(source.name) + ": the name of a column is no text: " + QuoteForMessage(name));
    std::string unique = name;
    for (int n = 1; !taken.insert(unique).second; ++n) unique = name + "_" + std::to_string(n);
    out.schema.columns.push_back({unique, field.type});
  }
  return out;
}

Result<std::unique_ptr<FileReader>> OpenColumnarReader(const ColumnarSource& source, const TableSchema& schema,
                                                       const CopyFromOptions& options) {
  TESSERA_ASSIGN(ColumnarPlugin* const plugin, LoadColumnarPlugin(source.name));
  std::vector<int> fields, columns;
  for (size_t field = 0; field < options.columns.size(); ++field) {
    const int column = options.columns[field];
    if (!options.read.empty() && options.read[static_cast<size_t>(column)] == 0) continue;
    fields.push_back(static_cast<int>(field));
    columns.push_back(column);
  }
  TESSERA_ASSIGN(std::unique_ptr<FileReader> reader, plugin->Open(source, fields));
  return std::unique_ptr<FileReader>(std::make_unique<ColumnarReader>(std::move(reader), schema, std::move(columns)));
}

}  // namespace tessera
