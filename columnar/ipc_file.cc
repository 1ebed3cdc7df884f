#include "columnar/ipc_file.h"

#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "columnar/array_share.h"
#include "columnar/arrow_calls.h"
#include "columnar/arrow_types.h"

namespace tessera::columnar {
namespace {

arrow::ipc::IpcReadOptions ReadOptions(const std::vector<int>& fields) {
  arrow::ipc::IpcReadOptions options;
  options.memory_pool = BudgetPool();
  options.use_threads = false;
  options.ensure_alignment = arrow::ipc::Alignment::kDataTypeSpecificAlignment;
  options.included_fields = fields;
  return options;
}

/// An open file, which one thread at a time reads: what it reads is unpacked by all.
struct IpcFile : ArrayFile {
  std::shared_ptr<arrow::io::ReadableFile> file;
  std::shared_ptr<arrow::ipc::RecordBatchFileReader> batches;  ///< nullptr: it is a stream
  std::shared_ptr<arrow::ipc::RecordBatchStreamReader> stream;
  std::shared_ptr<arrow::Schema> schema;
  std::mutex mutex;
};

Status Open(const ColumnarSource& source, const std::vector<int>& fields, IpcFile* out) {
  const std::string &name = source.name, place;
  out->source = source;
  TESSERA_ARROW_ASSIGN(out->file, arrow::io::ReadableFile::Open(source.path, BudgetPool()));
  TESSERA_ARROW_ASSIGN(const std::shared_ptr<arrow::Buffer> start, out->file->ReadAt(0, 8));
  const std::string_view bytes(reinterpret_cast<const char*>(start->data()), static_cast<size_t>(start->size()));
  if (bytes.starts_with("FEA1"))
    return Error(arrow::Status::NotImplemented("version 1 of Feather is not supported; version 2 is Arrow's own"), name,
                 place);
  if (bytes.starts_with("ARROW1")) {
    TESSERA_ARROW_ASSIGN(out->batches, arrow::ipc::RecordBatchFileReader::Open(out->file, ReadOptions(fields)));
    out->schema = out->batches->schema();
  } else {
    TESSERA_ARROW_TRY(out->file->Seek(0));
    TESSERA_ARROW_ASSIGN(out->stream, arrow::ipc::RecordBatchStreamReader::Open(out->file, ReadOptions(fields)));
    out->schema = out->stream->schema();
  }
  return {};
}

class IpcShare final : public ArrayShare {
 public:
  /// `batch`: nullptr: it is number `number` of the file.
  IpcShare(IpcFile* file, int number, uint64_t bytes, std::shared_ptr<arrow::RecordBatch> batch, bool counts)
      : ArrayShare(file, "record batch " + std::to_string(number), bytes),
        ipc_(file),
        number_(number),
        batch_(std::move(batch)),
        counts_(counts) {}

 private:
  Status ReadArrays(Arrays* arrays, int64_t* rows) const override {
    const std::string &name = file().source.name, place = this->place();
    std::shared_ptr<arrow::RecordBatch> batch = batch_;
    if (batch == nullptr) {
      const std::lock_guard lock(ipc_->mutex);
      TESSERA_ARROW_ASSIGN(batch, ipc_->batches->ReadRecordBatch(number_));
    }
    // Offsets and indices are as the file has them.
    TESSERA_ARROW_TRY(batch->ValidateFull());
    *rows = batch->num_rows();
    if (counts_) return {};
    for (const auto& column : batch->columns()) arrays->push_back(std::make_shared<arrow::ChunkedArray>(column));
    return {};
  }

  IpcFile* const ipc_;
  const int number_;
  const std::shared_ptr<arrow::RecordBatch> batch_;
  const bool counts_;  ///< only rows are wanted
};

class IpcReader final : public FileReader {
 public:
  const TableSchema& schema() const override { return schema_; }
  uint64_t bytes() const override { return bytes_; }

  Status Next(std::unique_ptr<FileShare>* share) override {
    const std::string &name = file_.source.name, place = "record batch " + std::to_string(next_);
    return Guarded(name, place, [&]() -> Status {
      share->reset();
      if (file_.batches != nullptr) {
        const int count = file_.batches->num_record_batches();
        if (next_ == count) return {};
        const uint64_t bytes = std::max<uint64_t>(bytes_ / static_cast<uint64_t>(count), 1);
        *share = std::make_unique<IpcShare>(&file_, next_++, bytes, nullptr, counts_);
        return {};
      }
      std::shared_ptr<arrow::RecordBatch> batch;
      TESSERA_ARROW_ASSIGN(const int64_t before, file_.file->Tell());
      TESSERA_ARROW_TRY(file_.stream->ReadNext(&batch));
      TESSERA_ARROW_ASSIGN(const int64_t after, file_.file->Tell());
      if (batch == nullptr) return {};
      const auto bytes = static_cast<uint64_t>(std::max<int64_t>(after - before, 1));
      *share = std::make_unique<IpcShare>(&file_, next_++, bytes, std::move(batch), counts_);
      return {};
    });
  }

  Status Open(const ColumnarSource& source, const std::vector<int>& wanted) {
    counts_ = wanted.empty();
    // (No field would mean all of them.)
    TESSERA_TRY(columnar::Open(source, counts_ ? std::vector<int>{0} : wanted, &file_));
    if (!counts_ && file_.schema->num_fields() != static_cast<int>(wanted.size()))
      return {ErrorKind::kIo, "\"" + source.name + "\" has changed while it was read", "Run the statement again."};
    for (const auto& field : file_.schema->fields()) {
      if (counts_) break;
      file_.fields.push_back(FieldOf(*field));
      schema_.columns.push_back({file_.fields.back().name, file_.fields.back().type});
    }
    const std::string &name = source.name, place;
    TESSERA_ARROW_ASSIGN(const int64_t bytes, file_.file->GetSize());
    bytes_ = static_cast<uint64_t>(bytes);
    return {};
  }

 private:
  IpcFile file_;
  TableSchema schema_;
  uint64_t bytes_ = 0;
  int next_ = 0;
  bool counts_ = false;
};

}  // namespace

Status DescribeIpc(const ColumnarSource& source, ColumnarShape* shape) {
  IpcFile file;
  TESSERA_TRY(Open(source, {}, &file));
  for (const auto& field : file.schema->fields()) shape->fields.push_back(FieldOf(*field));
  const std::string &name = source.name, place;
  if (file.batches != nullptr) {
    TESSERA_ARROW_ASSIGN(const int64_t rows, file.batches->CountRows());
    shape->rows = static_cast<uint64_t>(std::max<int64_t>(rows, 0));
    return {};
  }
  TESSERA_ARROW_ASSIGN(const int64_t bytes, file.file->GetSize());
  shape->rows_known = false;
  shape->rows = static_cast<uint64_t>(bytes) / std::max<uint64_t>(shape->fields.size() * 8, 8);
  return {};
}

Result<std::unique_ptr<FileReader>> OpenIpc(const ColumnarSource& source, const std::vector<int>& fields) {
  auto reader = std::make_unique<IpcReader>();
  TESSERA_TRY(reader->Open(source, fields));
  return std::unique_ptr<FileReader>(std::move(reader));
}

}  // namespace tessera::columnar
