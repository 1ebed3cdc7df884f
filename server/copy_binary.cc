#include "server/copy_binary.h"

#include <optional>

#include "server/wire_values.h"

namespace tessera::server {
namespace {

/// Its signature, without flags and what may come after them.
constexpr size_t kSignatureBytes = 11, kHeaderBytes = 19;

Status NotTheFormat(const std::string& why) {
  return {ErrorKind::kBadCopyFormat, "COPY (FORMAT binary): " + why,
          "The client sends the rows as COPY's binary format has them."};
}

uint32_t Number(std::string_view bytes, size_t at, size_t size) {
  uint32_t v = 0;
  for (size_t i = 0; i < size; ++i) v = v << 8 | static_cast<unsigned char>(bytes[at + i]);
  return v;
}

void AppendQuoted(std::string_view text, std::string* csv) {
  *csv += '"';
  for (const char c : text) {
    if (c == '"') *csv += '"';
    *csv += c;
  }
  *csv += '"';
}

}  // namespace

BinaryCopyReader::BinaryCopyReader(const std::vector<SqlType>& types) {
  for (const SqlType& type : types) oids_.push_back(WireTypeOf(type).oid);
}

Status BinaryCopyReader::Read(std::string_view bytes, std::string* csv) {
  rest_ += bytes;
  size_t at = 0;
  for (bool more = true; more && !ended_;) {
    TESSERA_ASSIGN(more, begun_ ? TakeRow(&at, csv) : TakeHeader(&at));
  }
  rest_.erase(0, ended_ ? rest_.size() : at);
  return Status::Ok();
}

Status BinaryCopyReader::End() const {
  // (As in PostgreSQL what ends the rows may be missing.)
  return ended_ || (begun_ && rest_.empty()) ? Status::Ok()
                                             : NotTheFormat("unexpected end after row " + std::to_string(rows_));
}

Result<bool> BinaryCopyReader::TakeHeader(size_t* at) {
  const std::string_view signature = kBinaryCopyHeader.substr(0, kSignatureBytes);
  const size_t there = std::min(rest_.size(), kSignatureBytes);
  if (std::string_view(rest_).substr(0, there) != signature.substr(0, there))
    return NotTheFormat("the signature is missing");
  if (rest_.size() < kHeaderBytes) return false;
  if (const uint32_t flags = Number(rest_, kSignatureBytes, 4); flags >> 16 != 0)
    return NotTheFormat("flags that are not known: " + std::to_string(flags));
  const size_t more = Number(rest_, kSignatureBytes + 4, 4);
  if (more > kMostBytes) return NotTheFormat("the header is too long");
  if (rest_.size() < kHeaderBytes + more) return false;
  *at = kHeaderBytes + more;
  begun_ = true;
  return true;
}

Result<bool> BinaryCopyReader::TakeRow(size_t* at, std::string* csv) {
  const std::string_view bytes = rest_;
  size_t end = *at;
  const auto has = [&](size_t size) { return bytes.size() - end >= size; };
  if (!has(2)) return false;
  const auto fields = static_cast<int16_t>(Number(bytes, end, 2));
  if (fields == -1) {
    ended_ = true;
    return true;
  }
  if (fields < 0 || static_cast<size_t>(fields) != oids_.size()) {
    return NotTheFormat("row " + std::to_string(rows_ + 1) + " has " + std::to_string(fields) + " fields, not " +
                        std::to_string(oids_.size()));
  }
  // First whether it is whole.
  end += 2;
  for (size_t field = 0; field < oids_.size(); ++field) {
    if (!has(4)) return false;
    const auto size = static_cast<int32_t>(Number(bytes, end, 4));
    end += 4;
    if (size < -1) return NotTheFormat("row " + std::to_string(rows_ + 1) + " has a field of less than no bytes");
    if (size > 0 && !has(static_cast<size_t>(size))) return false;
    end += static_cast<size_t>(std::max(size, 0));
  }
  ++rows_;
  size_t from = *at + 2;
  for (size_t field = 0; field < oids_.size(); ++field) {
    const auto size = static_cast<int32_t>(Number(bytes, from, 4));
    from += 4;
    if (field > 0) *csv += ',';
    if (size < 0) continue;
    std::string value(bytes.substr(from, static_cast<size_t>(size)));
    from += static_cast<size_t>(size);
    const Result<Value> read = ReadParameter(std::move(value), true, oids_[field]);
    if (!read.ok()) {
      return Status(read.status().kind(), "COPY (FORMAT binary), row " + std::to_string(rows_) + ", field " +
                                              std::to_string(field + 1) + ": " + read.status().message());
    }
    // (A value whose type is that of its place has characters.)
    AppendQuoted(read->type.id == TypeId::kNull || read->type.id == TypeId::kText ? read->text : ToText(*read), csv);
  }
  *csv += '\n';
  *at = end;
  return true;
}

void WriteBinaryRow(const RowBatch& batch, size_t row, MessageWriter* out) {
  out->Int16(static_cast<int16_t>(batch.columns.size()));
  for (const ColumnVector& column : batch.columns) {
    if (column.IsNull(row)) {
      out->Int32(-1);
      continue;
    }
    const size_t field = out->BeginField();
    AppendField(column, row, true, out);
    out->EndField(field);
  }
}

}  // namespace tessera::server
