#include "tablet/load/partition_writer.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/interrupt.h"
#include "tablet/files/io_error.h"

namespace tessera {
namespace {

void AppendEscaped(std::string_view text, std::string* out) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
                       c == '-' || c == '.' || c == ' ' || byte >= 0x80;
    if (plain) {
      out->push_back(c);
    } else {
      out->append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
}

}  // namespace

std::string PartitionFolder(const std::string& column, const ColumnVector& values, size_t row) {
  std::string folder, value;
  AppendEscaped(column, &folder);
  folder += '=';
  if (values.IsNull(row)) return folder + "__HIVE_DEFAULT_PARTITION__";
  AppendText(values, row, &value);
  AppendEscaped(value, &folder);
  return folder;
}

Result<std::unique_ptr<RowWriter>> PartitionWriter::Create(const std::string& directory,
                                                           std::vector<std::pair<int, std::string>> keys,
                                                           std::string ending, Open open) {
  TESSERA_ASSIGN(NewDirectory made, NewDirectory::Make(directory));
  return std::unique_ptr<RowWriter>(
      new PartitionWriter(std::move(made), std::move(keys), std::move(ending), std::move(open)));
}

bool PartitionWriter::IsKey(size_t column) const {
  return std::ranges::any_of(keys_, [&](const auto& key) { return key.first == static_cast<int>(column); });
}

bool PartitionWriter::IsSame(const RowBatch& batch, size_t a, size_t b) const {
  return std::ranges::all_of(keys_, [&](const auto& key) {
    const ColumnVector& column = batch.columns[static_cast<size_t>(key.first)];
    if (column.IsNull(a) || column.IsNull(b)) return column.IsNull(a) == column.IsNull(b);
    switch (column.type.storage()) {
      case StorageClass::kText:
        return column.Text(a) == column.Text(b);
      case StorageClass::kWide:
        return column.wide[a] == column.wide[b];
      case StorageClass::kFloat:  // (-0.0 and 0.0 are one value.)
        return column.Float(a) == column.Float(b) || column.fixed[a] == column.fixed[b];
      case StorageClass::kInt:
        break;
    }
    return column.fixed[a] == column.fixed[b];
  });
}

Status PartitionWriter::Append(const RowBatch& batch) {
  for (size_t first = 0; first < batch.rows;) {
    ThrowIfInterrupted();
    size_t end = first + 1;
    while (end < batch.rows && IsSame(batch, first, end)) ++end;
    std::string folder;
    for (const auto& [column, name] : keys_)
      folder += "/" + PartitionFolder(name, batch.columns[static_cast<size_t>(column)], first);
    if (writer_ == nullptr || folder != folder_) TESSERA_TRY(Begin(folder));
    RowBatch rows;
    rows.rows = end - first;
    for (size_t c = 0; c < batch.columns.size(); ++c) {
      if (IsKey(c)) continue;
      ColumnVector& column = rows.columns.emplace_back();
      column.type = batch.columns[c].type;
      column.zone = batch.columns[c].zone;
      for (size_t row = first; row < end; ++row) column.AppendFrom(batch.columns[c], row);
    }
    TESSERA_TRY(writer_->Append(rows));
    first = end;
  }
  return {};
}

Status PartitionWriter::Begin(const std::string& folder) {
  TESSERA_TRY(Finish());
  const std::string path = directory_.path() + folder;
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return IoError("cannot create", path, error.value());
  folder_ = folder;
  TESSERA_ASSIGN(writer_, open_(path + "/data_0" + ending_));
  return {};
}

Status PartitionWriter::Finish() {
  if (writer_ == nullptr) return {};
  TESSERA_TRY(writer_->Close());
  writer_.reset();
  return {};
}

Status PartitionWriter::Close() {
  TESSERA_TRY(Finish());
  return directory_.Commit();
}

}  // namespace tessera
