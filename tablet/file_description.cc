#include "tablet/file_description.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "tablet/columnar/columnar_reader.h"
#include "tablet/csv/csv_sniffer.h"
#include "tablet/files/byte_source.h"
#include "tablet/files/file_descriptor.h"
#include "tablet/json/json_lines.h"
#include "tablet/sqlite/sqlite_tables.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// The first bytes; of a file that cannot be read none.
std::string StartOf(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char start[64];
  const ssize_t bytes = file.valid() ? pread(file.get(), start, sizeof start, 0) : 0;
  return {start, static_cast<size_t>(std::max<ssize_t>(bytes, 0))};
}

/// By its name, and by its first bytes where that says nothing.
FileFormat FormatOf(const FileSource& source) {
  const FileFormat named = FormatOfName(source.identity.path);
  if (named != FileFormat::kFromName && named != FileFormat::kJson) return named;
  const std::string start = StartOf(source.path);
  if (named == FileFormat::kJson) {
    // (Programs write CSV under such a name, too.)
    const size_t first = start.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
    const bool is_text = CompressionOf(start) == FileCompression::kNone && first != std::string::npos;
    return is_text && start[first] != '{' && start[first] != '[' ? FileFormat::kCsv : FileFormat::kJson;
  }
  if (start.starts_with("ARROW1\0")) return FileFormat::kArrow;
  if (IsSqlite(start)) return FileFormat::kSqlite;
  // (A text may begin with these letters; what follows them in Parquet is no letter.)
  const bool control = start.size() > 4 && static_cast<unsigned char>(start[4]) < ' ' && start[4] != '\n' &&
                       start[4] != '\r' && start[4] != '\t';
  return start.starts_with("PAR1") && control ? FileFormat::kParquet : FileFormat::kCsv;
}

}  // namespace

SqlType TypeOfBoth(const SqlType& a, const SqlType& b) {
  if (a == b) return a;
  if (a.IsNumeric() && b.IsNumeric()) {
    if (a.IsFloat() || b.IsFloat()) return SqlType::Of(TypeId::kDouble);
    if (a.IsInteger() && b.IsInteger()) return SqlType::Of(std::max(a.id, b.id));
    // Digits before and after the point.
    const auto whole = [](const SqlType& t) { return t.IsInteger() ? 19 : t.precision - t.scale; };
    const int scale = std::max(a.scale, b.scale);
    return SqlType::Decimal(std::min(std::max(whole(a), whole(b)) + scale, 38), scale);
  }
  const auto is_moment = [](const SqlType& t) { return t.id == TypeId::kDate || t.id == TypeId::kTimestamp; };
  return is_moment(a) && is_moment(b) ? SqlType::Of(TypeId::kTimestamp) : SqlType::Text();
}

Status DescribeFile(const FileSpec& spec, bool in_place, FileSource* source, double* rows) {
  source->format = spec.format != FileFormat::kFromName ? spec.format : FormatOf(*source);
  const std::string& name = source->identity.path;
  if (IsColumnar(source->format)) {
    const bool by_groups = in_place && source->format == FileFormat::kParquet;
    TESSERA_ASSIGN(DescribedColumnar described,
                   DescribeColumnar({source->path, name, source->format}, by_groups ? &source->groups : nullptr));
    source->schema = std::move(described.schema);
    *rows = static_cast<double>(described.rows);
    return {};
  }
  if (source->format == FileFormat::kJson) {
    TESSERA_ASSIGN(SniffedJson sniffed, SniffJsonLines(source->path, name, spec));
    source->options = std::move(sniffed.options);
    source->schema = std::move(sniffed.schema);
    source->keys = std::move(sniffed.keys);
    *rows = static_cast<double>(source->identity.bytes) / sniffed.bytes_of_row;
    return {};
  }
  if (source->format == FileFormat::kSqlite) {
    TESSERA_ASSIGN(SqliteTable described, DescribeSqliteTable(source->path, name, spec.table, spec.all_text));
    source->schema = std::move(described.schema);
    source->table = std::move(described.name);
    *rows = described.rows;
    return {};
  }
  TESSERA_ASSIGN(SniffedCsv sniffed, SniffCsv(source->path, name, spec));
  source->options = std::move(sniffed.options);
  source->schema = std::move(sniffed.schema);
  *rows = static_cast<double>(source->identity.bytes) / std::max(sniffed.bytes_of_row, 1.0);
  return {};
}

}  // namespace tessera
