// The bytes of a CSV file -> rows or an error: the same whatever the blocks are that it is read in, and what was read
// comes back from what COPY TO writes.
//
// The first three bytes of the input choose the options.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "tablet/csv/csv_file.h"
#include "tablet/csv/csv_parser.h"
#include "tablet/csv/csv_writer.h"

namespace tessera {
namespace {

/// A file in memory.
class ScratchFile {
 public:
  ScratchFile() : path_("/dev/shm/tessera_fuzz_csv_XXXXXX") {
    const int fd = mkstemp(path_.data());
    if (fd < 0) std::abort();
    close(fd);
  }
  ~ScratchFile() { unlink(path_.c_str()); }
  void Write(std::string_view bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  std::string Read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A block that holds all of an input.
constexpr size_t kWholeFile = size_t{1} << 17;

TableSchema Schema(bool numbers) {
  TableSchema schema;
  schema.name = "t";
  schema.columns = {{"a", SqlType::Text(), false}, {"b", SqlType::Text(), false}};
  if (numbers) {
    schema.columns = {{"i", SqlType::Of(TypeId::kInteger), false},
                      {"d", SqlType::Decimal(9, 2), false},
                      {"w", SqlType::Decimal(30, 3), false},
                      {"f", SqlType::Of(TypeId::kDouble), false},
                      {"y", SqlType::Of(TypeId::kDate), false},
                      {"z", SqlType::Of(TypeId::kTimestamp), false},
                      {"v", SqlType::Text(), false}};
    schema.columns.back().type.length = 3;
  }
  return schema;
}

struct Loaded {
  std::vector<RowBatch> batches;
  std::string text;   ///< of all values; no two tables of rows have the same
  std::string error;  ///< with its line
};

Loaded Load(const ScratchFile& file, const CsvParser& parser, const CopyFromOptions& options, size_t block_bytes) {
  Loaded out;
  Result<CsvFile> csv = CsvFile::Open(file.path());
  if (!csv.ok()) std::abort();
  csv->Configure(options, block_bytes);
  uint64_t lines = 1;
  for (CsvBlock block;;) {
    const Status status = csv->Read(&block);
    if (!status.ok()) {
      out.error = status.message();
      return out;
    }
    if (block.size == 0) return out;
    FileRows parsed = parser.Parse(block);
    for (size_t row = 0; row < parsed.batch.rows; ++row) {
      for (const ColumnVector& column : parsed.batch.columns) {
        std::string value;
        if (!column.IsNull(row)) AppendText(column, row, &value);
        out.text += column.IsNull(row) ? "NULL;" : fmt::format("{}:{};", value.size(), value);
      }
      out.text += '\n';
    }
    out.batches.push_back(std::move(parsed.batch));
    if (parsed.error) {
      out.error =
          fmt::format("line {}, {}: {}", lines + parsed.error->line, parsed.error->column, parsed.error->message);
      return out;
    }
    lines += parsed.lines;
  }
}

[[noreturn]] void Fail(const char* what, const Loaded& a, const Loaded& b) {
  std::fprintf(stderr, "%s\n%s%s\n---\n%s%s\n", what, a.text.c_str(), a.error.c_str(), b.text.c_str(), b.error.c_str());
  std::abort();
}

}  // namespace
}  // namespace tessera

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  if (size < 3 || size > kWholeFile / 2) return 0;
  static const ScratchFile file, copy;
  const TableSchema schema = Schema((data[0] & 1) != 0);
  CopyFromOptions options;
  options.format.header = (data[0] & 2) != 0;
  options.format.delimiter = ",|\t;"[data[0] >> 2 & 3];
  options.format.quote = (data[0] & 16) != 0 ? '\'' : '"';
  options.format.escape = (data[0] & 32) != 0 ? '\\' : options.format.quote;
  options.format.null_string = (data[0] & 64) != 0 ? "\\N" : "";
  const Result<CsvParser> parser = CsvParser::Create(schema, options);
  if (!parser.ok()) std::abort();

  file.Write({reinterpret_cast<const char*>(data) + 3, size - 3});
  const Loaded whole = Load(file, *parser, options, kWholeFile);
  const Loaded pieces = Load(file, *parser, options, 1 + data[1] + (size_t{data[2]} << 4));
  // Only a block of the file's own size shows what ends its lines, and what kind of file it is.
  const bool same_lines =
      std::string_view(reinterpret_cast<const char*>(data) + 3, size - 3).find('\r') == std::string_view::npos;
  const bool is_text =
      whole.error.find("not CSV") == std::string::npos && pieces.error.find("not CSV") == std::string::npos;
  if (same_lines && is_text && (whole.text != pieces.text || whole.error != pieces.error))
    Fail("in other blocks", whole, pieces);

  const CopyFormat& to = options.format;
  std::vector<std::string> names;
  for (const ColumnSchema& column : schema.columns) names.push_back(column.name);
  Result<std::unique_ptr<CsvWriter>> writer = CsvWriter::Create(copy.path(), to, names);
  if (!writer.ok()) std::abort();
  for (const RowBatch& batch : whole.batches) {
    if (!(*writer)->Append(batch).ok()) std::abort();
  }
  if (!(*writer)->Close().ok()) std::abort();
  const Loaded again = Load(copy, *parser, options, kWholeFile);
  if (again.text != whole.text || !again.error.empty()) Fail(copy.Read().c_str(), whole, again);
  return 0;
}
