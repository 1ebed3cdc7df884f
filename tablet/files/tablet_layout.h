// Where the columns of a tablet lie, if not all of them in a file of its own, in the order of the table. An UPDATE writes the
// columns that it sets anew, beside the others; a column that was added is a constant, and one that was dropped is not read,
// until the tablet is written anew. What such a change makes is another tablet, with another identifier, which has the old
// one's files.
//
// Start at: TabletLayout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// Columns of one tablet, in the form of a tablet's file, with fewer columns. One file may have those of several tablets.
struct ColumnFile {
  int64_t id = 0;       ///< in its header: of the tablet that it was written for
  int64_t file_id = 0;  ///< in the name of the file
  uint64_t offset = 0;  ///< in the file; a multiple of kColumnFileAlignment
  uint64_t bytes = 0;
  uint64_t header_checksum = 0;
  std::vector<int32_t> columns;  ///< that of the table, by column of the file; -1: it is not read any more
  friend bool operator==(const ColumnFile&, const ColumnFile&) = default;
};

/// Where columns begin in a file that has those of several tablets: on a page.
inline constexpr uint64_t kColumnFileAlignment = 4096;

struct ConstantColumn {
  int32_t column = 0;
  std::optional<std::string> value = {};  ///< text of the column's type; none: NULL
  friend bool operator==(const ConstantColumn&, const ConstantColumn&) = default;
};

struct TabletLayout {
  std::vector<ColumnFile> files;  ///< in the order of their id
  std::vector<ConstantColumn> constants;
  friend bool operator==(const TabletLayout&, const TabletLayout&) = default;

  /// Whether each of `columns` columns has one place.
  bool IsOf(size_t columns) const;
  /// Of all files; at least 1, as a tablet's file has.
  uint64_t bytes() const;
};

/// Files of which no column is read any more do not stay.
void DropUnread(TabletLayout* layout);

}  // namespace tessera
