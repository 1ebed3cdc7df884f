#include "columnar/parquet_file.h"

#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include "columnar/array_share.h"
#include "columnar/array_values.h"
#include "columnar/arrow_calls.h"
#include "columnar/arrow_types.h"
#include "columnar/parquet_numbers.h"
#include "columnar/parquet_statistics.h"

namespace tessera::columnar {
namespace {

/// A row group with more rows is read in pieces of as many, one after the other: all of it might not fit memory. (It holds the
/// million of rows that other programs make at most unless they are told otherwise.)
constexpr int64_t kPieceRows = int64_t{1} << 20;

/// `numbered`: leaves whose texts come as numbers of a dictionary's entries.
parquet::ArrowReaderProperties ReaderProperties(const std::vector<int>& numbered) {
  parquet::ArrowReaderProperties properties(false);
  properties.set_arrow_extensions_enabled(true);
  properties.set_batch_size(kPieceRows);
  properties.set_pre_buffer(false);
  properties.set_smallest_decimal_enabled(true);
  for (const int leaf : numbered) properties.set_read_dictionary(leaf, true);
  return properties;
}

/// Whether all texts of a leaf are numbers of entries in a row group: else Arrow would have to number them.
bool AreAllNumbered(const parquet::FileMetaData& metadata, int group, int leaf) {
  const auto chunk = metadata.RowGroup(group)->ColumnChunk(leaf);
  if (chunk->type() != parquet::Type::BYTE_ARRAY) return false;
  const std::vector<parquet::PageEncodingStats>& pages = chunk->encoding_stats();
  bool any = false;
  for (const parquet::PageEncodingStats& page : pages) {
    const bool has_values =
        page.page_type == parquet::PageType::DATA_PAGE || page.page_type == parquet::PageType::DATA_PAGE_V2;
    any = any || has_values;
    if (has_values && page.encoding != parquet::Encoding::RLE_DICTIONARY &&
        page.encoding != parquet::Encoding::PLAIN_DICTIONARY)
      return false;
  }
  return any && chunk->has_dictionary_page();
}

/// An open file, of which several threads read.
struct ParquetFile : ArrayFile {
  std::shared_ptr<arrow::io::ReadableFile> file;
  std::shared_ptr<parquet::FileMetaData> metadata;  ///< the footer
  std::vector<int> leaves;                          ///< the wanted fields, as Parquet counts them

  /// A reader of its own for a thread, which doesn't read the footer again.
  Result<std::unique_ptr<parquet::arrow::FileReader>> Reader(const std::string& place,
                                                             const std::vector<int>& numbered = {}) const {
    const std::string& name = source.name;
    auto reader = parquet::ParquetFileReader::Open(file, parquet::ReaderProperties(BudgetPool()), metadata);
    TESSERA_ARROW_ASSIGN(auto made,
                         parquet::arrow::FileReader::Make(BudgetPool(), std::move(reader), ReaderProperties(numbered)));
    return made;
  }
};

std::string PlaceOf(int group) { return "row group " + std::to_string(group); }

Status Open(const ColumnarSource& source, ParquetFile* out) {
  const std::string &name = source.name, place;
  out->source = source;
  TESSERA_ARROW_ASSIGN(out->file, arrow::io::ReadableFile::Open(source.path, BudgetPool()));
  const auto reader = parquet::ParquetFileReader::Open(out->file, parquet::ReaderProperties(BudgetPool()));
  out->metadata = reader->metadata();
  return {};
}

/// All fields of the file, and which column each is.
Status FindFields(const ParquetFile& file, std::vector<ColumnarField>* fields, std::vector<int>* leaves) {
  TESSERA_ASSIGN(const auto reader, file.Reader(""));
  for (const parquet::arrow::SchemaField& field : reader->manifest().schema_fields) {
    ColumnarField& found = fields->emplace_back(FieldOf(*field.field));
    found.id = file.metadata->schema()->group_node()->field(static_cast<int>(leaves->size()))->field_id();
    leaves->push_back(field.column_index);
    if (found.problem.empty() && field.column_index < 0)
      found.problem = "nested values (" + field.field->type()->ToString() + ") are not supported";
    if (found.problem.empty() &&
        file.metadata->schema()->Column(field.column_index)->physical_type() == parquet::Type::INT96)
      found.problem = "moments of the old type INT96 are not supported";
  }
  return {};
}

/// The pieces of a large row group, which come one after the other.
class PieceStream {
 public:
  PieceStream(const ParquetFile* file, int group) : file_(*file), group_(group) {}

  /// The `rows` of piece `number`, when those before it have been read.
  Status Read(int64_t number, int64_t rows, Arrays* arrays) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return next_ == number; });
    const Status status = Guarded(file_.source.name, PlaceOf(group_), [&] { return ReadNext(rows, arrays); });
    ++next_;
    changed_.notify_all();
    return status;
  }

 private:
  Status ReadNext(int64_t rows, Arrays* arrays) {
    const std::string &name = file_.source.name, place = PlaceOf(group_);
    if (batches_ == nullptr) {
      TESSERA_ASSIGN(reader_, file_.Reader(place));
      TESSERA_ARROW_ASSIGN(batches_, reader_->GetRecordBatchReader({group_}, file_.leaves));
    }
    // (Long texts come in several batches.)
    std::vector<arrow::ArrayVector> chunks(file_.leaves.size());
    int64_t found = 0;
    while (found < rows) {
      std::shared_ptr<arrow::RecordBatch> batch;
      TESSERA_ARROW_TRY(batches_->ReadNext(&batch));
      if (batch == nullptr) break;
      found += batch->num_rows();
      for (size_t c = 0; c < chunks.size(); ++c) chunks[c].push_back(batch->column(static_cast<int>(c)));
    }
    if (found != rows) return Error(arrow::Status::Invalid("there are not as many rows as it says"), name, place);
    for (arrow::ArrayVector& c : chunks) arrays->push_back(std::make_shared<arrow::ChunkedArray>(std::move(c)));
    return {};
  }

  const ParquetFile& file_;
  const int group_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t next_ = 0;
  std::unique_ptr<parquet::arrow::FileReader> reader_;
  std::unique_ptr<arrow::RecordBatchReader> batches_;
};

class ParquetShare final : public ArrayShare {
 public:
  /// `stream`: nullptr: the row group as a whole.
  ParquetShare(const ParquetFile* file, int group, uint64_t bytes, std::shared_ptr<PieceStream> stream, int64_t piece)
      : ArrayShare(file, PlaceOf(group), bytes),
        parquet_(*file),
        group_(group),
        stream_(std::move(stream)),
        piece_(piece) {}

 private:
  Status ReadArrays(Arrays* arrays, int64_t* rows) const override {
    const std::string &name = file().source.name, place = this->place();
    const int64_t all = parquet_.metadata->RowGroup(group_)->num_rows();
    *rows = std::min(kPieceRows, all - piece_ * kPieceRows);
    if (file().fields.empty()) return {};
    if (stream_ != nullptr) return stream_->Read(piece_, *rows, arrays);
    std::vector<int> numbered;
    for (size_t i = 0; i < parquet_.leaves.size(); ++i) {
      const int leaf = parquet_.leaves[i];
      if (parquet_.fields[i].type == SqlType::Text() && AreAllNumbered(*parquet_.metadata, group_, leaf))
        numbered.push_back(leaf);
    }
    TESSERA_ASSIGN(const auto reader, parquet_.Reader(place, numbered));
    TESSERA_ARROW_ASSIGN(const std::shared_ptr<arrow::Table> table, reader->ReadRowGroup(group_, parquet_.leaves));
    *arrays = table->columns();
    if (table->num_rows() == *rows) return {};
    return Error(arrow::Status::Invalid("there are not as many rows as it says"), name, place);
  }

  const ParquetFile& parquet_;
  const int group_;
  const std::shared_ptr<PieceStream> stream_;
  const int64_t piece_;
};

/// Whether the columns have as many values as the row group rows, as far as that is said without reading them.
bool HasAsManyValues(const parquet::FileMetaData& metadata, int group, int64_t rows) {
  const auto chunks = metadata.RowGroup(group);
  for (int leaf = 0; leaf < metadata.num_columns(); ++leaf) {
    if (metadata.schema()->Column(leaf)->max_repetition_level() > 0) continue;
    if (chunks->ColumnChunk(leaf)->num_values() != rows) return false;
  }
  return true;
}

class ParquetReader final : public FileReader {
 public:
  const TableSchema& schema() const override { return schema_; }
  uint64_t bytes() const override { return bytes_; }

  Status Next(std::unique_ptr<FileShare>* share) override {
    return Guarded(file_.source.name, "", [&]() -> Status {
      share->reset();
      while (group_ < file_.metadata->num_row_groups()) {
        const int64_t rows = file_.metadata->RowGroup(group_)->num_rows();
        if (rows < 0 || !HasAsManyValues(*file_.metadata, group_, rows))
          return Error(arrow::Status::Invalid("the footer says two numbers of rows"), file_.source.name,
                       PlaceOf(group_));
        const int64_t pieces = rows / kPieceRows + (rows % kPieceRows > 0 ? 1 : 0);
        if (piece_ >= pieces) {
          ++group_;
          piece_ = 0;
          continue;
        }
        if (piece_ == 0)
          stream_ = pieces == 1 || file_.fields.empty() ? nullptr : std::make_shared<PieceStream>(&file_, group_);
        const uint64_t bytes = BytesOf(group_) / static_cast<uint64_t>(pieces);
        *share = std::make_unique<ParquetShare>(&file_, group_, bytes, stream_, piece_++);
        return {};
      }
      return {};
    });
  }

  Status Open(const ColumnarSource& source, const std::vector<int>& wanted) {
    TESSERA_TRY(columnar::Open(source, &file_));
    std::vector<ColumnarField> fields;
    std::vector<int> leaves;
    TESSERA_TRY(FindFields(file_, &fields, &leaves));
    for (const int number : wanted) {
      const auto at = static_cast<size_t>(number);
      if (at >= fields.size())
        return {ErrorKind::kIo, "\"" + source.name + "\" has changed while it was read", "Run the statement again."};
      file_.fields.push_back(fields[at]);
      file_.leaves.push_back(leaves[at]);
      schema_.columns.push_back({fields[at].name, fields[at].type});
    }
    for (int g = 0; g < file_.metadata->num_row_groups(); ++g) bytes_ += BytesOf(g);
    return {};
  }

 private:
  uint64_t BytesOf(int group) const {
    const int64_t bytes = file_.metadata->RowGroup(group)->total_byte_size();
    return static_cast<uint64_t>(std::clamp<int64_t>(bytes, 1, int64_t{1} << 50));
  }

  ParquetFile file_;
  TableSchema schema_;
  uint64_t bytes_ = 0;
  int group_ = 0;
  int64_t piece_ = 0;
  std::shared_ptr<PieceStream> stream_;
};

/// A column of a row group.
class ColumnShare final : public ArrayShare {
 public:
  ColumnShare(const ParquetFile* file, int group)
      : ArrayShare(file, PlaceOf(group), 0), parquet_(*file), group_(group) {}

 private:
  Status ReadArrays(Arrays* arrays, int64_t* rows) const override {
    const std::string &name = file().source.name, place = this->place();
    *rows = parquet_.metadata->RowGroup(group_)->num_rows();
    TESSERA_ASSIGN(const auto reader, parquet_.Reader(place));
    TESSERA_ARROW_ASSIGN(const std::shared_ptr<arrow::Table> table, reader->ReadRowGroup(group_, parquet_.leaves));
    *arrays = table->columns();
    return {};
  }

  const ParquetFile& parquet_;
  const int group_;
};

class ParquetGroups final : public ColumnarGroups {
 public:
  const std::vector<ColumnarField>& fields() const override { return file_.fields; }
  const std::vector<uint64_t>& rows() const override { return rows_; }

  std::string place(size_t group) const override { return PlaceOf(groups_[group]); }

  ColumnarStatistics StatisticsOf(size_t group, int field) const override {
    const int leaf = file_.leaves[static_cast<size_t>(field)];
    ColumnarStatistics out;
    const ColumnarField& found = file_.fields[static_cast<size_t>(field)];
    if (!found.problem.empty()) return out;
    // (What is wrong with the footer is said when the column is read.)
    (void)Guarded(file_.source.name, "", [&]() -> Status {
      out = columnar::StatisticsOf(*file_.metadata->RowGroup(groups_[group])->ColumnChunk(leaf), found.type);
      return {};
    });
    return out;
  }

  GroupColumn Read(size_t group, int field, bool numbered) const override {
    ParquetFile one;
    one.source = file_.source;
    one.metadata = file_.metadata;
    one.fields = {file_.fields[static_cast<size_t>(field)]};
    one.leaves = {file_.leaves[static_cast<size_t>(field)]};
    GroupColumn out;
    const std::string name = one.source.name, place = PlaceOf(groups_[group]);
    const Status status = Guarded(name, place, [&]() -> Status {
      TESSERA_ARROW_ASSIGN(one.file, arrow::io::ReadableFile::Open(one.source.path, BudgetPool()));
      if (one.fields[0].problem.empty()) {
        const auto opened =
            parquet::ParquetFileReader::Open(one.file, parquet::ReaderProperties(BudgetPool()), one.metadata);
        if (ReadNumbers(opened.get(), groups_[group], one.leaves[0], one.fields[0].type, &out)) return {};
        out = {};
      }
      if (numbered && one.fields[0].problem.empty() && AreAllNumbered(*file_.metadata, groups_[group], one.leaves[0])) {
        TESSERA_ASSIGN(const bool read, ReadNumbered(one, groups_[group], &out));
        if (read) return {};
        out = {};
      }
      FileRows rows = ColumnShare(&one, groups_[group]).Read();
      out.error = std::move(rows.error);
      out.rows = rows.batch.rows;
      if (!out.error) out.values = std::move(rows.batch.columns[0]);
      return {};
    });
    if (!status.ok()) out.error = ErrorOfShare(status, name, place);
    return out;
  }

  bool ReadCodes(size_t group, int field, const CodesWanted& codes) const override {
    const ColumnarField& found = file_.fields[static_cast<size_t>(field)];
    const std::string &name = file_.source.name, place = PlaceOf(groups_[group]);
    bool all = false;
    const Status status = Guarded(name, place, [&]() -> Status {
      TESSERA_ARROW_ASSIGN(const auto file, arrow::io::ReadableFile::Open(file_.source.path, BudgetPool()));
      const auto opened =
          parquet::ParquetFileReader::Open(file, parquet::ReaderProperties(BudgetPool()), file_.metadata);
      const int leaf = file_.leaves[static_cast<size_t>(field)];
      all = found.problem.empty() && ReadNumbersAsCodes(opened.get(), groups_[group], leaf, found.type, codes);
      return {};
    });
    return status.ok() && all;
  }

  Status Open(const ColumnarSource& source) {
    TESSERA_TRY(columnar::Open(source, &file_));
    TESSERA_TRY(FindFields(file_, &file_.fields, &file_.leaves));
    file_.file = nullptr;
    for (int g = 0; g < file_.metadata->num_row_groups(); ++g) {
      const int64_t rows = file_.metadata->RowGroup(g)->num_rows();
      if (rows < 0 || !HasAsManyValues(*file_.metadata, g, rows))
        return Error(arrow::Status::Invalid("the footer says two numbers of rows"), source.name, PlaceOf(g));
      if (rows == 0) continue;
      groups_.push_back(g);
      rows_.push_back(static_cast<uint64_t>(rows));
    }
    return {};
  }

 private:
  /// false: it did not come as such numbers, and is to be read as an array.
  static Result<bool> ReadNumbered(const ParquetFile& one, int group, GroupColumn* out) {
    const std::string name = one.source.name, place = PlaceOf(group);
    TESSERA_ASSIGN(const auto reader, one.Reader(place, {one.leaves[0]}));
    TESSERA_ARROW_ASSIGN(const std::shared_ptr<arrow::Table> table, reader->ReadRowGroup(group, one.leaves));
    out->values.type = one.fields[0].type;
    out->rows = static_cast<uint64_t>(table->num_rows());
    out->is_numbered = true;
    out->numbers.reserve(out->rows);
    for (const std::shared_ptr<arrow::Array>& chunk : table->column(0)->chunks()) {
      if (!AppendNumbered(*chunk, &out->values, &out->numbers)) return false;
    }
    return true;
  }

  ParquetFile file_;  ///< with all fields; it is not open
  std::vector<int> groups_;
  std::vector<uint64_t> rows_;
};

}  // namespace

Result<std::unique_ptr<ColumnarGroups>> OpenParquetGroups(const ColumnarSource& source) {
  auto groups = std::make_unique<ParquetGroups>();
  TESSERA_TRY(groups->Open(source));
  return std::unique_ptr<ColumnarGroups>(std::move(groups));
}

Status DescribeParquet(const ColumnarSource& source, ColumnarShape* shape) {
  ParquetFile file;
  TESSERA_TRY(Open(source, &file));
  std::vector<int> leaves;
  TESSERA_TRY(FindFields(file, &shape->fields, &leaves));
  shape->rows = static_cast<uint64_t>(std::max<int64_t>(file.metadata->num_rows(), 0));
  return {};
}

Result<std::unique_ptr<FileReader>> OpenParquet(const ColumnarSource& source, const std::vector<int>& fields) {
  auto reader = std::make_unique<ParquetReader>();
  TESSERA_TRY(reader->Open(source, fields));
  return std::unique_ptr<FileReader>(std::move(reader));
}

}  // namespace tessera::columnar
