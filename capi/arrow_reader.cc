#include "capi/arrow_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "capi/arrow_values.h"

namespace tessera {
namespace {

/// Rows that a thread takes at a time.
constexpr int64_t kShareRows = 1 << 15;

using SharedArray = std::shared_ptr<const OwnedArrow<ArrowArray>>;

class ArrowShare final : public FileShare {
 public:
  ArrowShare(std::shared_ptr<const ArrowSource> source, SharedArray array, int64_t first, int64_t count,
             const std::string& name)
      : source_(std::move(source)), array_(std::move(array)), first_(first), count_(count), name_(name) {}

  FileRows Read() const override {
    FileRows out;
    out.lines = static_cast<uint64_t>(count_);
    Result<RowBatch> batch = source_->Read(**array_, first_, count_);
    if (batch.ok()) {
      out.batch = std::move(*batch);
    } else {
      const Status& error = batch.status();
      out.error = FileError{error.kind(), 0, "", error.message(), error.hint()};
    }
    return out;
  }
  uint64_t bytes() const override { return static_cast<uint64_t>(count_) * 8; }
  const std::string& path() const override { return name_; }
  uint64_t first_line() const override { return 0; }

 private:
  const std::shared_ptr<const ArrowSource> source_;
  const SharedArray array_;
  const int64_t first_, count_;
  const std::string& name_;
};

class ArrowReader final : public FileReader {
 public:
  ArrowReader(std::shared_ptr<ArrowSource> source, std::string name)
      : source_(std::move(source)), name_(std::move(name)) {}

  const TableSchema& schema() const override { return source_->schema(); }
  uint64_t bytes() const override { return bytes_; }

  Status Next(std::unique_ptr<FileShare>* share) override {
    while (array_ == nullptr || next_ >= (**array_).length) {
      TESSERA_ASSIGN(OwnedArrow<ArrowArray> array, source_->Next());
      if (!array.has_value()) {
        share->reset();
        return {};
      }
      bytes_ += static_cast<uint64_t>(array->length) * 8;
      array_ = std::make_shared<const OwnedArrow<ArrowArray>>(std::move(array));
      next_ = 0;
    }
    const int64_t count = std::min(kShareRows, (**array_).length - next_);
    *share = std::make_unique<ArrowShare>(source_, array_, next_, count, name_);
    next_ += count;
    return {};
  }

 private:
  const std::shared_ptr<ArrowSource> source_;
  const std::string name_;
  SharedArray array_;
  int64_t next_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<ArrowSource>> ArrowSource::Open(ArrowArrayStream* stream) {
  if (stream == nullptr || stream->release == nullptr)
    return Status(ErrorKind::kInvalidParameterValue, "the Arrow stream has been released", "Make a new one.");
  std::unique_ptr<ArrowSource> source(new ArrowSource(stream));
  ArrowArrayStream* const own = source->stream_.get();
  if (const int code = own->get_schema(own, source->type_.get()); code != 0) return source->ErrorOf(code);
  const ArrowSchema& type = *source->type_;
  if (std::strcmp(type.format, "+s") != 0) {
    return Unsupported(fmt::format("an Arrow stream of type \"{}\" is no table", type.format), -1,
                       "Its batches are structs, a field for each column.");
  }
  for (int64_t i = 0; i < type.n_children; ++i) {
    const ArrowSchema& field = *type.children[i];
    ColumnSchema& column = source->schema_.columns.emplace_back();
    column.name = field.name != nullptr ? field.name : "";
    TESSERA_ASSIGN(column.type, SqlTypeOf(field));
  }
  return source;
}

Status ArrowSource::ErrorOf(int code) {
  ArrowArrayStream* const stream = stream_.get();
  const char* const message = stream->get_last_error(stream);
  return {ErrorKind::kIo, fmt::format("the Arrow stream ended with an error: {}",
                                      message != nullptr && *message != '\0' ? message : std::strerror(code))};
}

Result<OwnedArrow<ArrowArray>> ArrowSource::Next() {
  OwnedArrow<ArrowArray> array;
  ArrowArrayStream* const stream = stream_.get();
  if (const int code = stream->get_next(stream, array.get()); code != 0) return ErrorOf(code);
  if (array.has_value() && array->n_children != static_cast<int64_t>(schema_.columns.size()))
    return Status(ErrorKind::kIo, "the Arrow stream has a batch with other columns than it says");
  return array;
}

Result<RowBatch> ArrowSource::Read(const ArrowArray& array, int64_t first, int64_t count) const {
  RowBatch batch;
  batch.rows = static_cast<size_t>(count);
  batch.columns.resize(schema_.columns.size());
  for (size_t i = 0; i < schema_.columns.size(); ++i) {
    TESSERA_ASSIGN(batch.columns[i], ReadColumn(array, i, first, count));
  }
  return batch;
}

Result<ColumnVector> ArrowSource::ReadColumn(const ArrowArray& array, size_t column, int64_t first,
                                             int64_t count) const {
  ColumnVector values;
  values.type = schema_.columns[column].type;
  TESSERA_TRY(AppendArrow(*type_->children[column], *array.children[column], array.offset + first, count, &values));
  return values;
}

std::unique_ptr<FileReader> OpenArrowReader(std::shared_ptr<ArrowSource> source, std::string name) {
  return std::make_unique<ArrowReader>(std::move(source), std::move(name));
}

}  // namespace tessera
