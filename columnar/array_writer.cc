#include "columnar/array_writer.h"

#include <arrow/io/file.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/util/compression.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "columnar/array_values.h"
#include "columnar/arrow_calls.h"
#include "columnar/arrow_types.h"

namespace tessera::columnar {
namespace {

class ArrayWriter final : public ColumnarWriter {
 public:
  ArrayWriter(std::string name, const ColumnarOptions& options)
      : name_(std::move(name)), options_(options), group_rows_(static_cast<int64_t>(options.row_group_rows)) {}

  Status Open(int file, const std::vector<ColumnarColumn>& columns) {
    const std::string &name = name_, place;
    for (const ColumnarColumn& c : columns) {
      if (c.type.id == TypeId::kInterval && options_.format == FileFormat::kParquet) {
        return {ErrorKind::kFeatureNotSupported,
                "\"" + name_ + "\", column \"" + c.name + "\": Parquet has no INTERVAL",
                "CAST(x AS TEXT) writes it as text; Arrow files have intervals."};
      }
      fields_.push_back(arrow::field(c.name, ArrowTypeOf(c.type)));
    }
    schema_ = arrow::schema(fields_);
    // (The stream closes its descriptor.)
    TESSERA_ARROW_ASSIGN(sink_, arrow::io::FileOutputStream::Open(dup(file)));
    return options_.format == FileFormat::kParquet ? OpenParquet() : OpenIpc();
  }

  Status Append(const RowBatch& rows) override {
    return Guarded(name_, "", [&]() -> Status {
      const std::string &name = name_, place;
      if (rows.rows == 0) return {};
      arrow::ArrayVector arrays;
      for (const ColumnVector& column : rows.columns) {
        TESSERA_ARROW_ASSIGN(arrays.emplace_back(), ArrayOf(column, rows.rows, BudgetPool()));
      }
      waiting_.push_back(arrow::RecordBatch::Make(schema_, static_cast<int64_t>(rows.rows), std::move(arrays)));
      waiting_rows_ += static_cast<int64_t>(rows.rows);
      return waiting_rows_ >= group_rows_ ? WriteGroups(false) : Status();
    });
  }

  Status Close() override {
    return Guarded(name_, "", [&]() -> Status {
      const std::string &name = name_, place;
      TESSERA_TRY(WriteGroups(true));
      if (parquet_ != nullptr) TESSERA_ARROW_TRY(parquet_->Close());
      if (ipc_ != nullptr) TESSERA_ARROW_TRY(ipc_->Close());
      TESSERA_ARROW_TRY(sink_->Close());
      return {};
    });
  }

 private:
  arrow::Compression::type Codec() const {
    switch (options_.compression) {
      case ColumnarCompression::kNone:
        return arrow::Compression::UNCOMPRESSED;
      case ColumnarCompression::kZstd:
        return arrow::Compression::ZSTD;
      case ColumnarCompression::kSnappy:
      case ColumnarCompression::kDefault:
        break;
    }
    return arrow::Compression::SNAPPY;
  }

  Status OpenParquet() {
    const std::string &name = name_, place;
    parquet::WriterProperties::Builder properties;
    properties.memory_pool(BudgetPool());
    properties.compression(Codec());
    properties.max_row_group_length(group_rows_);
    properties.created_by("Tessera");
    // (Of up to 18 digits: they are smaller so, and read faster.)
    properties.enable_store_decimal_as_integer();
    parquet::ArrowWriterProperties::Builder arrow_properties;
    arrow_properties.set_use_threads(false);
    TESSERA_ARROW_ASSIGN(parquet_, parquet::arrow::FileWriter::Open(*schema_, BudgetPool(), sink_, properties.build(),
                                                                    arrow_properties.build()));
    return {};
  }

  Status OpenIpc() {
    const std::string &name = name_, place;
    arrow::ipc::IpcWriteOptions options;
    options.memory_pool = BudgetPool();
    options.use_threads = false;
    if (options_.compression == ColumnarCompression::kZstd) {
      TESSERA_ARROW_ASSIGN(options.codec, arrow::util::Codec::Create(arrow::Compression::ZSTD));
    }
    if (options_.stream) {
      TESSERA_ARROW_ASSIGN(ipc_, arrow::ipc::MakeStreamWriter(sink_, schema_, options));
    } else {
      TESSERA_ARROW_ASSIGN(ipc_, arrow::ipc::MakeFileWriter(sink_, schema_, options));
    }
    return {};
  }

  /// The row groups that are full; `all`: also the rows that are left.
  Status WriteGroups(bool all) {
    const std::string &name = name_, place;
    TESSERA_ARROW_ASSIGN(const std::shared_ptr<arrow::Table> table, arrow::Table::FromRecordBatches(schema_, waiting_));
    const int64_t rows = all ? waiting_rows_ : waiting_rows_ - waiting_rows_ % group_rows_;
    waiting_.clear();
    waiting_rows_ -= rows;
    if (rows > 0) {
      const std::shared_ptr<arrow::Table> full = table->Slice(0, rows);
      if (parquet_ != nullptr) {
        TESSERA_ARROW_TRY(parquet_->WriteTable(*full, group_rows_));
      } else {
        // (Of the batches that come together one is made.)
        for (int64_t at = 0; at < rows; at += group_rows_) {
          TESSERA_ARROW_ASSIGN(const auto batch, full->Slice(at, group_rows_)->CombineChunksToBatch(BudgetPool()));
          TESSERA_ARROW_TRY(ipc_->WriteRecordBatch(*batch));
        }
      }
    }
    if (waiting_rows_ == 0) return {};
    TESSERA_ARROW_ASSIGN(const auto rest, table->Slice(rows)->CombineChunksToBatch(BudgetPool()));
    waiting_.push_back(rest);
    return {};
  }

  const std::string name_;
  const ColumnarOptions options_;
  const int64_t group_rows_;
  arrow::FieldVector fields_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::io::FileOutputStream> sink_;
  std::unique_ptr<parquet::arrow::FileWriter> parquet_;
  std::shared_ptr<arrow::ipc::RecordBatchWriter> ipc_;
  arrow::RecordBatchVector waiting_;
  int64_t waiting_rows_ = 0;
};

}  // namespace

Result<std::unique_ptr<ColumnarWriter>> MakeWriter(int file, const std::string& name,
                                                   const std::vector<ColumnarColumn>& columns,
                                                   const ColumnarOptions& options) {
  auto writer = std::make_unique<ArrayWriter>(name, options);
  TESSERA_TRY(writer->Open(file, columns));
  return std::unique_ptr<ColumnarWriter>(std::move(writer));
}

}  // namespace tessera::columnar
