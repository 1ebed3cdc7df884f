#include "tablet/csv/csv_reader.h"

#include <string>
#include <utility>

#include "tablet/csv/csv_parser.h"

namespace tessera {
namespace {

class CsvShare final : public FileShare {
 public:
  CsvShare(const FileReader* owner, const CsvParser* parser, const std::string* path)
      : of(owner), parser_(*parser), path_(*path) {}

  FileRows Read() const override { return parser_.Parse(block); }
  uint64_t bytes() const override { return block.size; }
  const std::string& path() const override { return path_; }
  uint64_t first_line() const override { return line; }

  const FileReader* const of;
  CsvBlock block;
  uint64_t line = 0;

 private:
  const CsvParser& parser_;
  const std::string& path_;
};

class CsvReader final : public FileReader {
 public:
  CsvReader(CsvFile file, CsvParser parser, const TableSchema& schema)
      : file_(std::move(file)), parser_(std::move(parser)), schema_(schema) {}

  const TableSchema& schema() const override { return schema_; }
  uint64_t bytes() const override { return file_.text_size(); }
  Status Next(std::unique_ptr<FileShare>* share) override {
    // (A share of another reader has another file.)
    auto* mine = dynamic_cast<CsvShare*>(share->get());
    if (mine == nullptr || mine->of != this) {
      *share = std::make_unique<CsvShare>(this, &parser_, &file_.path());
      mine = static_cast<CsvShare*>(share->get());
    }
    TESSERA_TRY(file_.Read(&mine->block));
    mine->line = mine->block.number == 0 ? file_.first_line() : 0;
    if (mine->block.size == 0) share->reset();
    return {};
  }

 private:
  CsvFile file_;
  const CsvParser parser_;
  const TableSchema schema_;
};

}  // namespace

Result<std::unique_ptr<FileReader>> OpenCsvReader(CsvFile file, const TableSchema& schema,
                                                  const CopyFromOptions& options, size_t block_bytes) {
  TESSERA_ASSIGN(CsvParser parser, CsvParser::Create(schema, options));
  file.Configure(options, block_bytes);
  if (parser.fields() > 1) file.DropBlankEnd();
  return std::unique_ptr<FileReader>(std::make_unique<CsvReader>(std::move(file), std::move(parser), schema));
}

}  // namespace tessera
