#include "tablet/columnar/columnar_tablets.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tablet/chunk/tablet_format.h"
#include "tablet/columnar/columnar_reader.h"
#include "tablet/files/made_tablet.h"
#include "tablet/values/null_column.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// What the tablets of a file have in common.
struct OpenFile {
  ColumnarSource source;
  FileIdentity identity;
  std::shared_ptr<const ColumnarGroups> groups;
  std::vector<SqlType> types;  ///< of the table's columns
  std::vector<int> fields;     ///< by column of the table; -1: the file has none
  std::vector<FileConstant> constants;
  std::vector<std::string> problems;  ///< see ColumnarFile

  const Value* ConstantOf(int column) const {
    const auto at = std::ranges::find(constants, column, &FileConstant::column);
    return at == constants.end() ? nullptr : &at->value;
  }
};

/// Whether statistics of values of the one type are those of the other.
bool KeepsRange(const SqlType& from, const SqlType& to) { return from == to || (from.IsInteger() && to.IsInteger()); }

/// What the footer says of a column of a row group.
ColumnarStatistics KnownOf(const OpenFile& file, size_t group, size_t column) {
  ColumnarStatistics known;
  const int field = file.fields[column];
  const auto rows = static_cast<int64_t>(file.groups->rows()[group]);
  if (field < 0) {
    const Value* const value = file.ConstantOf(static_cast<int>(column));
    known.null_count = value != nullptr && !value->null ? 0 : rows;
    known.has_range = known.null_count == 0 && value->type.storage() == StorageClass::kInt;
    if (known.has_range) known.min = known.max = value->i64;
    known.is_dictionary = true;
    return known;
  }
  if (column < file.problems.size() && !file.problems[column].empty()) return known;
  known = file.groups->StatisticsOf(group, field);
  if (known.null_count > rows) known.null_count = -1;
  const SqlType& type = file.types[column];
  known.has_range = known.has_range && known.null_count != rows &&
                    KeepsRange(file.groups->fields()[static_cast<size_t>(field)].type, type);
  known.has_range = known.has_range && AreValuesOf(type, known.min, known.max);
  return known;
}

class ColumnarTablet final : public MadeTablet {
 public:
  ColumnarTablet(std::shared_ptr<const OpenFile> file, size_t group, uint32_t rows, std::vector<ColumnBounds> bounds)
      : MadeTablet(file->identity.path + ", " + file->groups->place(group), rows, file->types, std::move(bounds)),
        file_(std::move(file)),
        group_(group) {}

 private:
  Status Located(int column, const FileError& error) const {
    const int field = file_->fields[static_cast<size_t>(column)];
    return {error.kind,
            QuoteForMessage(file_->identity.path) + ", " + file_->groups->place(group_) + ", column \"" +
                file_->groups->fields()[static_cast<size_t>(field)].name + "\": " + error.message,
            error.hint};
  }

  Status OutOfBounds(int column) const override {
    return Located(column, {ErrorKind::kBadCopyFormat, 0, "", "the values are not as the statistics of the footer say",
                            "Write the file anew with a program that keeps them right."});
  }

  Result<MadeColumn> Values(int column) const override {
    MadeColumn made;
    ColumnVector& values = made.values;
    values.type = type(column);
    const int field = file_->fields[static_cast<size_t>(column)];
    const auto at = static_cast<size_t>(column);
    if (field >= 0 && at < file_->problems.size() && !file_->problems[at].empty())
      return Located(column, {ErrorKind::kFeatureNotSupported, 0, "", file_->problems[at], ""});
    if (const Value* const constant = file_->ConstantOf(column)) {
      for (uint32_t row = 0; row < rows(); ++row) values.Append(*constant);
      return made;
    }
    if (field < 0) {
      SetNull(rows(), &values);
      return made;
    }
    GroupColumn found = file_->groups->Read(group_, field, type(column) == SqlType::Text());
    // (A bad entry may be that of no row, or of a row whose number an error names.)
    if (found.is_numbered && FitColumn(type(column), found.values.size(), &found.values))
      found = file_->groups->Read(group_, field, false);
    if (found.error) return Located(column, *found.error);
    if (found.rows != rows())
      return Located(column, {ErrorKind::kBadCopyFormat, 0, "", "there are not as many rows as it says", ""});
    values = std::move(found.values);
    made.is_numbered = found.is_numbered;
    made.numbers = std::move(found.numbers);
    const std::optional<BadColumnRow> bad = made.is_numbered ? std::nullopt : FitColumn(type(column), rows(), &values);
    if (bad) {
      const std::string message = "row " + std::to_string(bad->row + 1) + ": " + bad->status.message();
      return Located(column, {bad->status.kind(), 0, "", message, bad->status.hint()});
    }
    TESSERA_TRY(CheckSame());
    return made;
  }

  Result<bool> Codes(int column, int width, uint8_t* to) const override {
    const int field = file_->fields[static_cast<size_t>(column)];
    const ColumnBounds& known = bounds(column);
    CodesWanted codes{static_cast<int64_t>(known.min), static_cast<uint64_t>(known.max - known.min), width, to};
    if (field < 0 || !file_->groups->ReadCodes(group_, field, codes)) return false;
    TESSERA_TRY(CheckSame());
    return true;
  }

  Status CheckSame() const {
    TESSERA_ASSIGN(FileIdentity now, IdentifyFile(file_->source.path));
    now.path = file_->identity.path;
    if (now == file_->identity) return {};
    return {ErrorCode::kIo, QuoteForMessage(now.path) + " has changed while it was read",
            "Run the statement again when the file is complete."};
  }

  const std::shared_ptr<const OpenFile> file_;
  const size_t group_;
};

/// Statistics of a column over row groups.
class Gathered {
 public:
  void Add(const ColumnarStatistics& s, uint32_t rows) {
    all_.encoded_bytes += s.bytes;
    all_.null_count += s.null_count >= 0 ? static_cast<uint64_t>(s.null_count) : 1;
    // Numbers of entries take as many bits as there are entries; other values may all differ.
    const double bits = 8 * static_cast<double>(s.bytes) / rows;
    const double entries = s.is_dictionary ? std::min<double>(std::exp2(std::min(bits, 32.0)), rows) : rows;
    distinct_ = s.is_dictionary ? std::max(distinct_, entries) : distinct_ + entries;
    if (s.null_count == int64_t{rows}) return;
    has_all_ = has_all_ && s.has_range;
    if (!s.has_range) return;
    all_.min = all_.has_range ? std::min(all_.min, s.min) : s.min;
    all_.max = all_.has_range ? std::max(all_.max, s.max) : s.max;
    all_.has_range = true;
  }

  ColumnStatistics Get(uint64_t rows) const {
    ColumnStatistics out = all_;
    out.has_range = out.has_range && has_all_;
    if (!out.has_range) {
      out.min = 0;
      out.max = 0;
    }
    double most = static_cast<double>(rows);
    if (out.has_range) most = std::min(most, static_cast<double>(out.max - out.min) + 1);
    out.distinct = static_cast<uint64_t>(std::clamp(distinct_, 1.0, std::max(most, 1.0)));
    return out;
  }

 private:
  ColumnStatistics all_;
  double distinct_ = 0;
  bool has_all_ = true;
};

}  // namespace

Result<bool> AddColumnarTablets(const std::vector<ColumnarFile>& files, TableInfo* table) {
  const size_t columns = table->schema.columns.size();
  std::vector<Gathered> gathered(columns);
  std::vector<std::shared_ptr<const Tablet>> tablets;
  uint64_t all = 0;
  for (const ColumnarFile& file : files) {
    auto open = std::make_shared<OpenFile>();
    open->source = file.source;
    open->identity = file.identity;
    open->constants = file.constants;
    open->problems = file.problems;
    open->groups = file.groups;
    if (open->groups == nullptr) {
      TESSERA_ASSIGN(ColumnarPlugin* const plugin, LoadColumnarPlugin(file.source.name));
      TESSERA_ASSIGN(open->groups, plugin->OpenGroups(file.source));
    }
    for (const ColumnSchema& column : table->schema.columns) open->types.push_back(column.type);
    open->fields.assign(columns, -1);
    if (open->groups->fields().size() != file.columns.size()) {
      return Status(ErrorCode::kIo, QuoteForMessage(file.identity.path) + " has changed while it was read",
                    "Run the statement again when the file is complete.");
    }
    for (size_t field = 0; field < file.columns.size(); ++field) {
      if (file.columns[field] >= 0) open->fields[static_cast<size_t>(file.columns[field])] = static_cast<int>(field);
    }
    const std::vector<uint64_t>& groups = open->groups->rows();
    for (size_t g = 0; g < groups.size(); ++g) {
      if (groups[g] > kGreatestTabletRows) return false;
      const auto rows = static_cast<uint32_t>(groups[g]);
      std::vector<ColumnBounds> bounds(columns);
      for (size_t c = 0; c < columns; ++c) {
        const ColumnarStatistics known = KnownOf(*open, g, c);
        gathered[c].Add(known, rows);
        bounds[c] = {known.has_range, known.min, known.max, known.null_count, known.bytes};
      }
      tablets.push_back(std::make_shared<const ColumnarTablet>(open, g, rows, std::move(bounds)));
      all += rows;
    }
  }
  table->tablets = std::move(tablets);
  table->rows = table->stored_rows = all;
  table->statistics.clear();
  for (const Gathered& g : gathered) table->statistics.push_back(all == 0 ? ColumnStatistics() : g.Get(all));
  return true;
}

}  // namespace tessera
