#include "tablet/file_chain.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tablet/columnar/columnar_reader.h"
#include "tablet/csv/csv_reader.h"
#include "tablet/json/json_lines.h"
#include "tablet/sqlite/sqlite_reader.h"
#include "tablet/sqlite/sqlite_tables.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// A share of one of the files, with the columns that are constant in it.
class ConstantShare final : public FileShare {
 public:
  ConstantShare(std::unique_ptr<FileShare> share, const std::vector<FileConstant>* constants)
      : share_(std::move(share)), constants_(*constants) {}

  FileRows Read() const override {
    FileRows rows = share_->Read();
    if (rows.batch.columns.empty()) return rows;
    for (const FileConstant& constant : constants_) {
      ColumnVector& column = rows.batch.columns[static_cast<size_t>(constant.column)];
      column.Clear();
      for (size_t row = 0; row < rows.batch.rows; ++row) column.Append(constant.value);
    }
    return rows;
  }
  uint64_t bytes() const override { return share_->bytes(); }
  const std::string& path() const override { return share_->path(); }
  uint64_t first_line() const override { return share_->first_line(); }
  std::string place() const override { return share_->place(); }

 private:
  const std::unique_ptr<FileShare> share_;
  const std::vector<FileConstant>& constants_;
};

class FileChain final : public FileReader {
 public:
  FileChain(std::vector<FileSource> sources, const TableSchema& schema, const std::vector<bool>& read,
            const CopyFromOptions& options)
      : sources_(std::move(sources)), schema_(schema), zone_(options.zone), cancel_(options.cancel) {
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
      // (Shares of different readers, and those with constants, are not used again.)
      const std::vector<FileConstant>& constants = sources_[next_].constants;
      std::unique_ptr<FileShare> taken = constants.empty() ? std::move(*share) : nullptr;
      TESSERA_TRY(readers_[next_]->Next(&taken));
      if (taken != nullptr) {
        *share = constants.empty() ? std::move(taken) : std::make_unique<ConstantShare>(std::move(taken), &constants);
        return {};
      }
      TESSERA_TRY(CheckSame(sources_[next_]));
      ++next_;
    }
  }

 private:
  Status Open(const FileSource& source) {
    TESSERA_TRY(CheckSame(source));
    CopyFromOptions options = source.options;
    options.columns = source.columns;
    options.read = read_;
    options.zone = zone_;
    options.cancel = cancel_;
    if (IsColumnar(source.format)) {
      const ColumnarSource columnar{source.path, source.identity.path, source.format};
      TESSERA_ASSIGN(readers_.emplace_back(), OpenColumnarReader(columnar, schema_, options));
      return {};
    }
    if (source.format == FileFormat::kJson) {
      TESSERA_ASSIGN(readers_.emplace_back(),
                     OpenJsonReader(source.path, source.identity.path, schema_, source.keys, options));
      return {};
    }
    if (source.format == FileFormat::kSqlite) {
      TESSERA_ASSIGN(readers_.emplace_back(),
                     OpenSqliteReader(source.path, source.identity.path, source.table, schema_, options));
      return {};
    }
    TESSERA_ASSIGN(CsvFile file, CsvFile::Open(source.path, source.identity.path));
    TESSERA_ASSIGN(readers_.emplace_back(), OpenCsvReader(std::move(file), schema_, options));
    return {};
  }

  const std::vector<FileSource> sources_;
  const TableSchema schema_;
  const TimeZone* const zone_;
  const std::atomic<bool>* const cancel_;
  std::vector<uint8_t> read_;
  uint64_t bytes_ = 0;
  /// Of the files up to the one that is read. Their shares may be read yet, so they stay.
  std::vector<std::unique_ptr<FileReader>> readers_;
  size_t next_ = 0;
};

/// A share that counts its rows.
class CountedShare final : public FileShare {
 public:
  CountedShare(std::unique_ptr<FileShare> share, uint64_t* left) : share_(std::move(share)), left_(*left) {}

  FileRows Read() const override {
    FileRows rows = share_->Read();
    left_ -= std::min<uint64_t>(left_, rows.batch.rows);
    return rows;
  }
  uint64_t bytes() const override { return share_->bytes(); }
  const std::string& path() const override { return share_->path(); }
  uint64_t first_line() const override { return share_->first_line(); }
  std::string place() const override { return share_->place(); }

 private:
  const std::unique_ptr<FileShare> share_;
  uint64_t& left_;
};

class FirstRowsReader final : public FileReader {
 public:
  FirstRowsReader(std::unique_ptr<FileReader> reader, uint64_t rows) : reader_(std::move(reader)), left_(rows) {}

  const TableSchema& schema() const override { return reader_->schema(); }
  uint64_t bytes() const override { return reader_->bytes(); }
  Status Next(std::unique_ptr<FileShare>* share) override {
    share->reset();
    if (left_ == 0) return {};
    std::unique_ptr<FileShare> taken;
    TESSERA_TRY(reader_->Next(&taken));
    if (taken != nullptr) *share = std::make_unique<CountedShare>(std::move(taken), &left_);
    return {};
  }

 private:
  const std::unique_ptr<FileReader> reader_;
  uint64_t left_;
};

}  // namespace

std::unique_ptr<FileReader> FirstRows(std::unique_ptr<FileReader> reader, uint64_t rows) {
  return std::make_unique<FirstRowsReader>(std::move(reader), rows);
}

Result<FileIdentity> IdentifySource(FileFormat format, const std::string& path) {
  return format == FileFormat::kSqlite ? IdentifySqlite(path) : IdentifyFile(path);
}

Status CheckSame(const FileSource& source) {
  TESSERA_ASSIGN(FileIdentity now, IdentifySource(source.format, source.path));
  now.path = source.identity.path;
  if (now == source.identity) return {};
  return {ErrorCode::kIo, QuoteForMessage(source.identity.path) + " has changed while it was read",
          "Run the statement again when the file is complete."};
}

std::unique_ptr<FileReader> OpenFileChain(std::vector<FileSource> sources, const TableSchema& schema,
                                          const std::vector<bool>& read, const CopyFromOptions& options) {
  return std::make_unique<FileChain>(std::move(sources), schema, read, options);
}

}  // namespace tessera
