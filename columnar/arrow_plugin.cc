// The ColumnarPlugin over Apache Arrow: what tessera_arrow.so exports.
#include "base/version.h"
#include "columnar/array_writer.h"
#include "columnar/arrow_calls.h"
#include "columnar/ipc_file.h"
#include "columnar/parquet_file.h"
#include "tablet/columnar/columnar_plugin.h"

namespace tessera::columnar {
namespace {

class ArrowPlugin final : public ColumnarPlugin {
 public:
  Status Describe(const ColumnarSource& source, ColumnarShape* shape) override {
    return Guarded(source.name, "", [&] {
      return source.format == FileFormat::kParquet ? DescribeParquet(source, shape) : DescribeIpc(source, shape);
    });
  }
  Result<std::unique_ptr<FileReader>> Open(const ColumnarSource& source, const std::vector<int>& fields) override {
    return Guarded(source.name, "", [&]() -> Result<std::unique_ptr<FileReader>> {
      return source.format == FileFormat::kParquet ? OpenParquet(source, fields) : OpenIpc(source, fields);
    });
  }
  Result<std::unique_ptr<ColumnarGroups>> OpenGroups(const ColumnarSource& source) override {
    return Guarded(source.name, "", [&] { return OpenParquetGroups(source); });
  }
  Result<std::unique_ptr<ColumnarWriter>> Write(int file, const std::string& name,
                                                const std::vector<ColumnarColumn>& columns,
                                                const ColumnarOptions& options) override {
    return Guarded(name, "", [&]() -> Result<std::unique_ptr<ColumnarWriter>> {
      return MakeWriter(file, name, columns, options);
    });
  }
};

ArrowPlugin plugin;

}  // namespace
}  // namespace tessera::columnar

// (kColumnarEntry is its name.)
extern "C" [[gnu::visibility("default")]] const tessera::ColumnarEntry TesseraColumnarEntry;
const tessera::ColumnarEntry TesseraColumnarEntry{tessera::kVersion, tessera::kColumnarLayout,
                                                  &tessera::columnar::plugin};
