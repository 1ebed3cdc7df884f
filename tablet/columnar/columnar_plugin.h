// What the program needs of Apache Arrow, and nothing else: Parquet and Arrow files described, read and written. No type of
// Arrow is in it.
//
// The one implementation is columnar/, in a shared object of its own (tessera_arrow.so beside the program), which is loaded
// when the first such file is met: so a program without Arrow builds and starts. Both are built from this header by one
// compiler, and share the allocator. The plugin gives values as the file has them; what SQL asks of them is checked here
// (columnar_reader.h). No call throws.
//
// Start at: LoadColumnarPlugin. Any thread; an object that is returned belongs to one thread at a time, as its interface says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/int128.h"
#include "base/status.h"
#include "tablet/load/columnar_options.h"
#include "tablet/load/file_reader.h"
#include "tablet/load/file_spec.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera {

struct ColumnarSource {
  std::string path;
  std::string name;                          ///< for messages
  FileFormat format = FileFormat::kParquet;  ///< kParquet or kArrow
};

struct ColumnarField {
  std::string name;
  SqlType type;
  std::string
      problem;  ///< why values cannot be read: "nested values (list<item: int32>) are not supported"; "": they can
  int id = -1;  ///< that Parquet gives it, by which catalogs of tables know it; -1: none
};

struct ColumnarShape {
  std::vector<ColumnarField> fields;
  uint64_t rows = 0;
  bool rows_known = true;  ///< the file says how many rows it has
};

/// What is said of the values of a column in a row group, without reading them.
struct ColumnarStatistics {
  bool has_range = false;      ///< of integers, decimals, dates and times, NULLs apart; false: nothing is said
  int128_t min = 0, max = 0;   ///< bounds, in the form of Chunk::min
  int64_t null_count = -1;     ///< -1: nothing is said
  uint64_t bytes = 0;          ///< as they are encoded, before compression
  bool is_dictionary = false;  ///< at least the first of them are numbers of a dictionary's entries
};

/// A column of a row group.
struct GroupColumn {
  ColumnVector values;            ///< of the rows; if `is_numbered`: the entries of a dictionary
  bool is_numbered = false;       ///< of texts: rows have the numbers of entries
  std::vector<uint32_t> numbers;  ///< UINT32_MAX: NULL
  uint64_t rows = 0;
  std::optional<FileError> error;
};

/// Where the codes of a column of integers go: value = base + code.
struct CodesWanted {
  int64_t base = 0;
  uint64_t span = 0;      ///< the greatest code
  int width = 0;          ///< bytes of a code: 1, 2, 4 or 8
  uint8_t* to = nullptr;  ///< room for one of each row
};

/// A file whose row groups are read one column at a time. Any thread, also several at once. The file is opened for each.
class ColumnarGroups {
 public:
  virtual ~ColumnarGroups() = default;
  virtual const std::vector<ColumnarField>& fields() const = 0;
  /// Rows of each row group; at least 1, of none is left out.
  virtual const std::vector<uint64_t>& rows() const = 0;
  /// As an error names it: "row group 2".
  virtual std::string place(size_t group) const = 0;
  virtual ColumnarStatistics StatisticsOf(size_t group, int field) const = 0;
  /// `numbered`: texts may come as numbers of entries, where they lie there so.
  virtual GroupColumn Read(size_t group, int field, bool numbered) const = 0;
  /// The column as codes at once. false: it cannot be read so, or some rows have no code: Read() says why.
  virtual bool ReadCodes(size_t group, int field, const CodesWanted& codes) const = 0;
};

struct ColumnarColumn {
  std::string name;
  SqlType type;  ///< not ENUM, whose labels are texts
};

class ColumnarWriter {
 public:
  virtual ~ColumnarWriter() = default;
  virtual Status Append(const RowBatch& rows) = 0;
  /// All is written to the file then, which stays open.
  virtual Status Close() = 0;
};

class ColumnarPlugin {
 public:
  virtual ~ColumnarPlugin() = default;
  /// Reads the footer. Errors: kIo; kSql, the file is broken or none of the format.
  virtual Status Describe(const ColumnarSource& source, ColumnarShape* shape) = 0;
  /// Rows with the fields of these numbers, in that order. Errors: as Describe(); those of values are in what a share gives.
  virtual Result<std::unique_ptr<FileReader>> Open(const ColumnarSource& source, const std::vector<int>& fields) = 0;
  /// A Parquet file by row groups. Errors: as Describe(). An error of a value is in what is read.
  virtual Result<std::unique_ptr<ColumnarGroups>> OpenGroups(const ColumnarSource& source) = 0;
  /// `file`: a descriptor, which stays the caller's. `name`: for messages. Errors: kUnsupported, the format has no such type.
  virtual Result<std::unique_ptr<ColumnarWriter>> Write(int file, const std::string& name,
                                                        const std::vector<ColumnarColumn>& columns,
                                                        const ColumnarOptions& options) = 0;
};

/// What tessera_arrow.so exports, under kColumnarEntry: the program takes it only if all but `plugin` is its own.
struct ColumnarEntry {
  const char* version = nullptr;  ///< of Tessera
  uint64_t layout = 0;
  ColumnarPlugin* plugin = nullptr;
};

inline constexpr char kColumnarEntry[] = "TesseraColumnarEntry";
/// Of the interface; it changes with the structs that pass through it.
inline constexpr uint64_t kColumnarLayout = 1'000'000 + sizeof(ColumnVector) * 1000 + sizeof(FileRows) +
                                            sizeof(ColumnarField) + sizeof(ColumnarOptions) +
                                            sizeof(ColumnarStatistics) + sizeof(GroupColumn) + sizeof(CodesWanted);

/// Loads tessera_arrow.so once; it stays loaded. `name`: of the file that needs it. Errors: kUnsupported, it is not there or
/// cannot be loaded.
Result<ColumnarPlugin*> LoadColumnarPlugin(const std::string& name);

}  // namespace tessera
