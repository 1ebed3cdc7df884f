// The tables of a benchmark as files of one directory, one after another, each by all threads.
//
// Start at: WriteTables().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "data_gen/ordered_writer.h"
#include "data_gen/row_buffer.h"

namespace tessera {

struct TableFile {
  std::string name;              ///< of the file
  std::string header;            ///< written before the first row; empty if none
  uint64_t units = 0;            ///< what is counted: rows, or things of several rows
  uint64_t units_per_block = 0;  ///< about a megabyte: large enough for the disk, small enough for the L2 cache
  uint64_t expected_rows = 0;    ///< for the progress bar
  std::function<uint64_t(uint64_t unit, RowBuffer& rows)> make;  ///< returns the rows made; called by several threads
};

/// A file without a header that is counted in rows. `make(row, rows)` writes one, of `longest_row` bytes at most.
template <class Make>
TableFile FileOfRows(std::string name, uint64_t rows, uint64_t rows_per_block, size_t longest_row, Make make) {
  return {std::move(name),
          "",
          rows,
          rows_per_block,
          rows,
          [longest_row, make = std::move(make)](uint64_t row, RowBuffer& buffer) -> uint64_t {
            buffer.Reserve(longest_row);
            make(row, buffer);
            return 1;
          }};
}

/// Creates the directory if it is missing, replaces files of these names. The bytes do not depend on `jobs`. Says on
/// standard output how much that was. Errors: those of WriteInOrder(), and kIo for the directory.
Status WriteTables(const std::vector<TableFile>& tables, const std::string& directory, unsigned jobs);

/// For schema.sql: a COPY of DIRECTORY/TABLE.csv (with a header) into the table, by the file's absolute path, so that the
/// shell may run it in any directory. Tessera and DuckDB read it.
std::string CopyStatement(const std::string& directory, const std::string& table);

/// Writes a text, such as a schema, as a whole or not at all.
Status WriteText(const std::string& path, const std::string& text);

}  // namespace tessera
