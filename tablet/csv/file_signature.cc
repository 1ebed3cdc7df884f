// The lists of signatures and of endings.
#include "tablet/csv/file_signature.h"

#include <algorithm>

#include "base/lower_case.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

using std::string_view_literals::operator""sv;

struct Entry {
  std::string_view bytes;
  /// The signature is printable: a text may begin with it too, so a control byte has to follow.
  bool printable;
  FileSignature signature;
  size_t at = 0;  ///< where the bytes are
};

constexpr Entry kEntries[] = {
    {"\x1f\x8b"sv, false, {"a gzip file", "gzip -dc FILE"}},
    {"\x28\xb5\x2f\xfd"sv, false, {"a zstd file", "zstd -dc FILE"}},
    {"\xfd\x37zXZ\0"sv, false, {"an xz file", "xz -dc FILE"}},
    {"1AY&SY"sv, false, {"a bzip2 file", "bzip2 -dc FILE"}, 4},
    {"\x04\x22\x4d\x18"sv, false, {"an lz4 file", "lz4 -dc FILE"}},
    {"7z\xbc\xaf\x27\x1c"sv, false, {"a 7z archive", "7z x -so FILE"}},
    {"PK\x03\x04"sv, false, {"a zip archive", "unzip -p FILE"}},
    {"PAR1"sv, true, {"a Parquet file", nullptr, "parquet"}},
    {"ARROW1"sv, true, {"an Arrow file", nullptr, "arrow"}},
    {"ORC"sv, true, {"an ORC file", nullptr}},
    {"Obj\x01"sv, false, {"an Avro file", nullptr}},
    {"SQLite format 3\0"sv, false, {"a SQLite database", nullptr}},
    {"\xff\xfe"sv, false, {"UTF-16 text", "iconv -f UTF-16 -t UTF-8 FILE"}},
    {"\xfe\xff"sv, false, {"UTF-16 text", "iconv -f UTF-16 -t UTF-8 FILE"}},
};

bool IsControl(char c) { return static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\r' && c != '\n'; }

constexpr FilePromise kPromises[] = {
    {"gz", "a gzip file", "gzip", false},
    {"gzip", "a gzip file", "gzip", false},
    {"zst", "a zstd file", "zstd", false},
    {"zstd", "a zstd file", "zstd", false},
    {"xz", "an xz file", "xz", false},
    {"bz2", "a bzip2 file", "bzip2", false},
    {"lz4", "an lz4 file", "lz4", false},
    {"br", "a Brotli file", "brotli", false},
    {"zip", "a zip archive", nullptr, false},
    {"7z", "a 7z archive", nullptr, false},
    {"tar", "a tar archive", nullptr, false},
    {"tgz", "a tar archive", nullptr, false},
    {"parquet", "a Parquet file", nullptr, false},
    {"arrow", "an Arrow file", nullptr, false},
    {"feather", "an Arrow file", nullptr, false},
    {"orc", "an ORC file", nullptr, false},
    {"avro", "an Avro file", nullptr, false},
    {"xls", "an Excel workbook", nullptr, false},
    {"xlsx", "an Excel workbook", nullptr, false},
    {"ods", "a spreadsheet", nullptr, false},
    {"sqlite", "a SQLite database", nullptr, false},
    {"sqlite3", "a SQLite database", nullptr, false},
    {"duckdb", "a DuckDB database", nullptr, false},
    {"json", "a JSON file", nullptr, true},
    {"jsonl", "a file of JSON lines", nullptr, true},
    {"ndjson", "a file of JSON lines", nullptr, true},
    {"xml", "an XML file", nullptr, true},
    {"html", "an HTML file", nullptr, true},
    {"md", "a Markdown file", nullptr, true},
};

}  // namespace

const FilePromise* FindPromise(std::string_view name) {
  const size_t point = name.rfind('.');
  if (point == std::string_view::npos || name.find('/', point) != std::string_view::npos) return nullptr;
  const std::string_view ending = name.substr(point + 1);
  const auto found = std::find_if(std::begin(kPromises), std::end(kPromises), [&](const FilePromise& p) {
    const std::string_view promised = p.ending;
    return std::equal(ending.begin(), ending.end(), promised.begin(), promised.end(),
                      [](char a, char b) { return LowerCase(a) == b; });
  });
  return found != std::end(kPromises) ? found : nullptr;
}

const FileSignature* FindSignature(std::string_view start) {
  for (const Entry& entry : kEntries) {
    if (start.size() < entry.at || !start.substr(entry.at).starts_with(entry.bytes)) continue;
    const size_t next = entry.at + entry.bytes.size();
    if (!entry.printable || (start.size() > next && IsControl(start[next]))) return &entry.signature;
  }
  return nullptr;
}

}  // namespace tessera
