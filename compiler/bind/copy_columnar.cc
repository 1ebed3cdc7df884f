#include "compiler/bind/copy_columnar.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "base/lower_case.h"
#include "compiler/bind/query_binder.h"
#include "compiler/bind/row_rules.h"
#include "compiler/bind/table_binder.h"
#include "compiler/parse/parser.h"
#include "compiler/parse/statement_option.h"
#include "compiler/query/schema_text.h"
#include "tablet/file_tables.h"
#include "tablet/load/file_spec.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

constexpr uint64_t kMostRowGroup = uint64_t{1} << 30;

Status CompressionOption(const ParseNode& option, ColumnarOptions* out) {
  const std::string word = LowerCase(OptionText(option));
  if (word == "none" || word == "uncompressed") {
    out->compression = ColumnarCompression::kNone;
  } else if (word == "zstd") {
    out->compression = ColumnarCompression::kZstd;
  } else if (word == "snappy" && out->format == FileFormat::kParquet) {
    out->compression = ColumnarCompression::kSnappy;
  } else {
    return Unsupported(
        "COPY compression \"" + word + "\" is not supported", option.location(),
        out->format == FileFormat::kParquet ? "Parquet takes zstd, snappy and none." : "Arrow takes zstd and none.");
  }
  return {};
}

Status RowGroupOption(const ParseNode& option, ColumnarOptions* out) {
  const std::string text = OptionText(option);
  const bool is_number = !text.empty() && text.size() < 11 && text.find_first_not_of("0123456789") == std::string::npos;
  out->row_group_rows = is_number ? std::stoull(text) : 0;
  if (out->row_group_rows > 0 && out->row_group_rows <= kMostRowGroup) return {};
  return SqlError(ErrorKind::kInvalidParameterValue, "COPY row_group_size takes a number of rows, from 1 on",
                  option.location());
}

bool IsSameName(std::string_view a, std::string_view b) { return LowerCase(a) == LowerCase(b); }

/// Which columns of the file are for those of the table.
Result<std::vector<int>> FileColumns(const TableInfo& file, const TableSchema& target, const std::vector<int>& columns,
                                     int position) {
  const std::vector<ColumnSchema>& found = file.schema.columns;
  std::vector<int> places;
  for (const int c : columns) {
    const std::string& name = target.columns[static_cast<size_t>(c)].name;
    const auto at = std::ranges::find_if(found, [&](const ColumnSchema& f) { return IsSameName(f.name, name); });
    if (at != found.end()) places.push_back(static_cast<int>(at - found.begin()));
  }
  if (places.size() == columns.size()) return places;
  places.clear();
  for (int c = 0; c < static_cast<int>(columns.size()); ++c) places.push_back(c);
  if (found.size() == columns.size()) return places;
  std::string names;
  for (const ColumnSchema& c : found) names += (names.empty() ? "" : ", ") + c.name;
  return SqlError(
      QuoteForMessage(file.schema.name) + " has " + std::to_string(found.size()) +
          " columns and not all names of the " + std::to_string(columns.size()) + " that COPY fills: " + names,
      position, "COPY t (a, b) FROM fills these columns; INSERT INTO t SELECT ... FROM 'FILE' chooses freely.");
}

}  // namespace

FileFormat FormatOfCopy(const ParseNode* options, const std::string& file) {
  if (options != nullptr) {
    for (const ParseNode& option : *options) {
      if (LowerCase(option.Text(Field::k_defname)) != "format") continue;
      const std::string word = LowerCase(OptionText(option));
      if (word == "parquet") return FileFormat::kParquet;
      if (word == "json") return FileFormat::kJson;
      return word == "arrow" || word == "arrows" || word == "feather" || word == "ipc" ? FileFormat::kArrow
                                                                                       : FileFormat::kCsv;
    }
  }
  const FileFormat named = FormatOfName(file);
  return named == FileFormat::kFromName ? FileFormat::kCsv : named;
}

Status BindColumnarOptions(const ParseNode* options, bool is_from, ColumnarOptions* out) {
  if (options == nullptr) return {};
  for (const ParseNode& option : *options) {
    const std::string name = LowerCase(option.Text(Field::k_defname));
    if (!is_from && name == "partition_by") continue;  // copy_partition.h
    if (name == "format") {
      out->stream = out->stream || LowerCase(OptionText(option)) == "arrows";
      continue;
    }
    if (!is_from && (name == "compression" || name == "codec")) {
      TESSERA_TRY(CompressionOption(option, out));
    } else if (!is_from && name == "row_group_size") {
      TESSERA_TRY(RowGroupOption(option, out));
    } else {
      const std::string what = out->format == FileFormat::kJson      ? "JSON"
                               : out->format == FileFormat::kParquet ? "Parquet"
                                                                     : "Arrow";
      return Unsupported("COPY option \"" + name + "\" is not supported for " + what + " files", option.location(),
                         is_from ? "" : "There are COMPRESSION, ROW_GROUP_SIZE and PARTITION_BY.");
    }
  }
  return {};
}

Status BindColumnarFrom(FileFormat format, const std::vector<int>& columns, const Dialect& dialect,
                        const Snapshot& snapshot, int position, Statement* out) {
  if (dialect.files == nullptr) return Unsupported("COPY of such a file here is not supported", position);
  out->kind = Statement::Kind::kInsert;
  FileSpec spec;
  spec.format = format;
  spec.patterns = {out->copy.file.empty() ? "-" : out->copy.file};
  out->copy.file = spec.patterns[0];
  const auto located = [&](const Status& e) { return Status(e.kind(), e.message(), e.hint(), position); };
  const Result<std::shared_ptr<const TableInfo>> file = dialect.files->Find(spec);
  if (!file.ok()) return located(file.status());
  const TableSchema& target = out->target->schema;
  TESSERA_ASSIGN(const std::vector<int> places, FileColumns(**file, target, columns, position));
  std::string sql = "SELECT ";
  for (size_t i = 0; i < columns.size(); ++i) {
    const ColumnSchema& from = (*file)->schema.columns[static_cast<size_t>(places[i])];
    const SqlType& type = target.columns[static_cast<size_t>(columns[i])].type;
    // (A text is read as one of a CSV file would be.)
    const bool is_parsed = from.type.id == TypeId::kText && type.id != TypeId::kText;
    if (i > 0) sql += ", ";
    sql += is_parsed ? "CAST(" + QuotedName(from.name) + " AS " + type.ToString() + ")" : QuotedName(from.name);
  }
  const std::string_view function = format == FileFormat::kJson      ? "read_json"
                                    : format == FileFormat::kParquet ? "read_parquet"
                                                                     : "read_arrow";
  sql += " FROM " + std::string(function) + "(" + QuotedText(spec.patterns[0]) + ")";
  TESSERA_ASSIGN(ParsedStatement parsed, Parse(sql));
  static_cast<SessionNames&>(parsed.dialect) = dialect;
  Result<std::unique_ptr<Query>> query = BindQuery(*parsed.statement, sql, parsed.dialect, snapshot);
  if (!query.ok()) return located(query.status());
  out->query = *std::move(query);
  TESSERA_ASSIGN(out->change.rules, MakeRowRules(target, columns, dialect));
  const Status fits = FitToTable(out->query.get(), *out->target, columns, dialect);
  return fits.ok() ? fits : located(fits);
}

}  // namespace tessera
