#include "tablet/columnar/columnar_writer.h"

#include <set>
#include <utility>

#include "tablet/files/replaced_file.h"

namespace tessera {
namespace {

class FileWriter final : public RowWriter {
 public:
  Status Open(const std::string& file, const ColumnarOptions& options, const std::vector<ColumnarColumn>& columns) {
    TESSERA_ASSIGN(ColumnarPlugin* const plugin, LoadColumnarPlugin(file));
    TESSERA_TRY(file_.Open(file));
    TESSERA_ASSIGN(writer_, plugin->Write(file_.descriptor(), file, columns, options));
    return {};
  }

  Status Append(const RowBatch& batch) override {
    for (const ColumnVector& column : batch.columns) {
      if (column.type.id == TypeId::kEnum) return writer_->Append(WithLabels(batch));
    }
    return writer_->Append(batch);
  }

  Status Close() override {
    TESSERA_TRY(writer_->Close());
    writer_.reset();
    return file_.Commit();
  }

 private:
  /// Labels instead of their places.
  static RowBatch WithLabels(const RowBatch& batch) {
    RowBatch out = batch;
    for (ColumnVector& column : out.columns) {
      if (column.type.id != TypeId::kEnum) continue;
      ColumnVector labels;
      labels.type = SqlType::Text();
      for (size_t row = 0; row < batch.rows; ++row) {
        Value label = Value::Text("");
        label.null = column.IsNull(row);
        if (!label.null) AppendText(column, row, &label.text);
        labels.Append(label);
      }
      column = std::move(labels);
    }
    return out;
  }

  ReplacedFile file_;
  std::unique_ptr<ColumnarWriter> writer_;
};

}  // namespace

Result<std::unique_ptr<RowWriter>> OpenColumnarWriter(const std::string& file, const ColumnarOptions& options,
                                                      std::vector<ColumnarColumn> columns) {
  std::set<std::string> taken;
  for (ColumnarColumn& column : columns) {
    std::string unique = column.name;
    for (int n = 1; !taken.insert(unique).second; ++n) unique = column.name + "_" + std::to_string(n);
    column.name = std::move(unique);
    if (column.type.id == TypeId::kEnum) column.type = SqlType::Text();
  }
  auto writer = std::make_unique<FileWriter>();
  TESSERA_TRY(writer->Open(file, options, columns));
  return std::unique_ptr<RowWriter>(std::move(writer));
}

}  // namespace tessera
