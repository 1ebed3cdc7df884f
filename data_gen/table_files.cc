#include "data_gen/table_files.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/progress.h"

namespace tessera {
namespace {

Result<WrittenFile> WriteTable(const TableFile& table, const std::string& directory, unsigned jobs) {
  OrderedFile file;
  file.path = directory + "/" + table.name;
  file.header = table.header;
  file.blocks = (table.units + table.units_per_block - 1) / table.units_per_block;
  file.make_block = [&table](uint64_t block, RowBuffer& rows) {
    uint64_t made = 0;
    const uint64_t end = std::min((block + 1) * table.units_per_block, table.units);
    for (uint64_t unit = block * table.units_per_block; unit < end; ++unit) made += table.make(unit, rows);
    return made;
  };
  ProgressBar progress(table.name, table.expected_rows, ProgressUnit::kRows);
  return WriteInOrder(file, jobs, progress);
}

}  // namespace

Status WriteTables(const std::vector<TableFile>& tables, const std::string& directory, unsigned jobs) {
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return {ErrorCode::kIo, "cannot create the directory " + directory + ": " + error.message(),
            "give --out a directory that exists or can be created"};
  }
  WrittenFile all;
  for (const TableFile& table : tables) {
    TESSERA_ASSIGN(const WrittenFile written, WriteTable(table, directory, jobs));
    all.rows += written.rows;
    all.bytes += written.bytes;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double megabytes = static_cast<double>(all.bytes) / 1e6;
  std::printf("%s: %zu tables, %llu rows, %.1f MB in %.2f s (%.0f MB/s)\n", directory.c_str(), tables.size(),
              static_cast<unsigned long long>(all.rows), megabytes, seconds, megabytes / seconds);
  return Status::Ok();
}

std::string CopyStatement(const std::string& directory, const std::string& table) {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::absolute(directory, error);
  if (error) folder = directory;
  const std::string path = (folder / (table + ".csv")).lexically_normal().string();
  std::string quoted;
  for (const char c : path) quoted.append(c == '\'' ? 2 : 1, c);
  return "COPY " + table + " FROM '" + quoted + "' (FORMAT csv, HEADER true);\n";
}

Status WriteText(const std::string& path, const std::string& text) {
  OrderedFile file;
  file.path = path;
  file.header = text;
  ProgressBar progress(path, 0, ProgressUnit::kRows);
  const Result<WrittenFile> written = WriteInOrder(file, 1, progress);
  return written.ok() ? Status::Ok() : written.status();
}

}  // namespace tessera
