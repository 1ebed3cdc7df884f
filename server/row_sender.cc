#include "server/row_sender.h"

#include <utility>

#include "compiler/parse/database_command.h"
#include "compiler/query/bound_query.h"
#include "server/wire_values.h"

namespace tessera::server {
namespace {

/// Messages go on their way in pieces of about this many bytes.
constexpr size_t kPiece = size_t{32} << 10;

}  // namespace

void WriteRowDescription(const std::vector<vm::ResultColumn>& columns, const std::vector<int16_t>& formats,
                         MessageWriter* out) {
  out->Begin('T');
  out->Int16(static_cast<int16_t>(columns.size()));
  for (size_t c = 0; c < columns.size(); ++c) {
    const WireType type = WireTypeOf(columns[c].type);
    out->String(columns[c].name);
    out->Int32(0);  // of no table
    out->Int16(0);
    out->Int32(type.oid);
    out->Int16(type.bytes);
    out->Int32(type.modifier);
    out->Int16(IsBinary(formats, c) ? 1 : 0);
  }
  out->End();
}

void WriteRow(const RowBatch& batch, size_t row, const std::vector<int16_t>& formats, MessageWriter* out) {
  out->Begin('D');
  out->Int16(static_cast<int16_t>(batch.columns.size()));
  for (size_t c = 0; c < batch.columns.size(); ++c) {
    if (batch.columns[c].IsNull(row)) {
      out->Int32(-1);
      continue;
    }
    const size_t field = out->BeginField();
    AppendField(batch.columns[c], row, IsBinary(formats, c), out);
    out->EndField(field);
  }
  out->End();
}

void WriteTag(std::string_view tag, MessageWriter* out) {
  out->Begin('C');
  out->String(tag);
  out->End();
}

void WriteDone(const std::string& tag, MessageWriter* out) {
  const size_t colon = tag.find(": ");
  if (colon != tag.npos) WriteReport({"NOTICE", "00000", tag.substr(colon + 2), {}, 0}, out);
  WriteTag(std::string_view(tag).substr(0, colon), out);
}

RowSender::RowSender(std::string_view sql, Way way) : way_(std::move(way)), word_(FirstWordOf(sql)) {}

Status RowSender::Begin(const std::vector<vm::ResultColumn>& columns) {
  TESSERA_TRY(CheckFormats(way_.formats, columns.size()));
  if (way_.describes) WriteRowDescription(columns, way_.formats, way_.out);
  return Status::Ok();
}

Status RowSender::Rows(RowBatch&& batch) {
  rows_ += batch.rows;
  if (way_.kept != nullptr) {
    if (batch.rows > 0) way_.kept->batches.push_back(std::move(batch));
    return Status::Ok();
  }
  for (size_t row = 0; row < batch.rows; ++row) {
    WriteRow(batch, row, way_.formats, way_.out);
    if (way_.out->size() >= kPiece) TESSERA_TRY(way_.send());
  }
  return Status::Ok();
}

Status RowSender::Done(const std::string& command_tag) {
  tag_ = command_tag;
  return Status::Ok();
}

Status RowSender::Text(const std::string& text) {
  has_text_ = true;
  text_ += text;
  return Status::Ok();
}

Status RowSender::Analyzed(const Analysis& analysis) { return Text(way_.options->analysis_text(analysis)); }

Status RowSender::Explained(const Explanation& explanation) {
  is_one_ = explanation.form->json || explanation.form->html;
  return Text(way_.options->explain_text(explanation));
}

Status RowSender::SendText() {
  const std::vector<vm::ResultColumn> columns = {{"QUERY PLAN", SqlType::Text()}};
  TESSERA_TRY(Begin(columns));
  RowBatch batch;
  batch.columns.resize(1);
  batch.columns[0].type = SqlType::Text();
  std::string_view rest = text_;
  while (rest.ends_with('\n')) rest.remove_suffix(1);
  for (bool more = true; more; ++batch.rows) {
    const size_t end = is_one_ ? rest.npos : rest.find('\n');
    batch.columns[0].Append(Value::Text(std::string(rest.substr(0, end))));
    more = end != rest.npos;
    rest.remove_prefix(more ? end + 1 : rest.size());
  }
  return Rows(std::move(batch));
}

Status RowSender::Finish() {
  if (has_text_) TESSERA_TRY(SendText());
  if (tag_.empty()) {
    tag_ = has_text_ ? "EXPLAIN" : word_ == "show" ? "SHOW" : "SELECT " + std::to_string(rows_);
  }
  if (way_.kept != nullptr) {
    way_.kept->rows = rows_;
    way_.kept->tag = tag_;
  } else {
    WriteDone(tag_, way_.out);
  }
  return Status::Ok();
}

}  // namespace tessera::server
