#include "tablet/file_chain.h"

#include <string>
#include <utility>

#include "tablet/csv/csv_reader.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// A share of one of the files, with the file's name as a column.
class NamedShare final : public FileShare {
 public:
  NamedShare(std::unique_ptr<FileShare> share, int name_column) : share_(std::move(share)), name_column_(name_column) {}

  FileRows Read() const override {
    FileRows rows = share_->Read();
    ColumnVector& names = rows.batch.columns[static_cast<size_t>(name_column_)];
    names.Clear();
    for (size_t row = 0; row < rows.batch.rows; ++row) names.Append(Value::Text(path()));
    return rows;
  }
  uint64_t bytes() const override { return share_->bytes(); }
  const std::string& path() const override { return share_->path(); }
  uint64_t first_line() const override { return share_->first_line(); }

 private:
  const std::unique_ptr<FileShare> share_;
  const int name_column_;
};

class FileChain final : public FileReader {
 public:
  FileChain(std::vector<FileSource> sources, const TableSchema& schema, const std::vector<bool>& read, int name_column,
            const CopyFromOptions& options)
      : sources_(std::move(sources)), schema_(schema), name_column_(name_column), zone_(options.zone) {
    for (const bool is_read : read) read_.push_back(is_read ? 1 : 0);
    for (const FileSource& s : sources_) bytes_ += s.identity.bytes;
  }

  const TableSchema& schema() const override { return schema_; }
  uint64_t bytes() const override {
    // (One that is compressed says how large its text is.)
    return sources_.size() == 1 && !readers_.empty() ? readers_[0]->bytes() : bytes_;
  }

  Status Next(std::unique_ptr<FileShare>* share) override {
    for (;;) {
      if (readers_.size() == next_) {
        if (next_ == sources_.size()) {
          share->reset();
          return {};
        }
        TESSERA_TRY(Open(sources_[next_]));
      }
      // (Shares of different readers, and named ones, are not used again.)
      std::unique_ptr<FileShare> taken = name_column_ < 0 ? std::move(*share) : nullptr;
      TESSERA_TRY(readers_[next_]->Next(&taken));
      if (taken != nullptr) {
        *share = name_column_ < 0 ? std::move(taken) : std::make_unique<NamedShare>(std::move(taken), name_column_);
        return {};
      }
      TESSERA_TRY(CheckSame(sources_[next_]));
      ++next_;
    }
  }

 private:
  static Status CheckSame(const FileSource& source) {
    TESSERA_ASSIGN(FileIdentity now, IdentifyFile(source.path));
    now.path = source.identity.path;
    if (now == source.identity) return {};
    return {ErrorCode::kIo, QuoteForMessage(source.identity.path) + " has changed while it was read",
            "Run the statement again when the file is complete."};
  }

  Status Open(const FileSource& source) {
    TESSERA_TRY(CheckSame(source));
    CopyFromOptions options = source.options;
    options.columns = source.columns;
    options.read = read_;
    options.zone = zone_;
    TESSERA_ASSIGN(CsvFile file, CsvFile::Open(source.path, source.identity.path));
    TESSERA_ASSIGN(readers_.emplace_back(), OpenCsvReader(std::move(file), schema_, options));
    return {};
  }

  const std::vector<FileSource> sources_;
  const TableSchema schema_;
  const int name_column_;
  const TimeZone* const zone_;
  std::vector<uint8_t> read_;
  uint64_t bytes_ = 0;
  /// Of the files up to the one that is read. Their shares may be read yet, so they stay.
  std::vector<std::unique_ptr<FileReader>> readers_;
  size_t next_ = 0;
};

}  // namespace

std::unique_ptr<FileReader> OpenFileChain(std::vector<FileSource> sources, const TableSchema& schema,
                                          const std::vector<bool>& read, int name_column,
                                          const CopyFromOptions& options) {
  return std::make_unique<FileChain>(std::move(sources), schema, read, name_column, options);
}

}  // namespace tessera
