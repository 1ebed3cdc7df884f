// The result of a change that is shown only when the change holds: foreign keys are checked after it was made. Internal to
// session/.
//
// Start at: HeldResult. The thread of the session.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "session/result_writer.h"
#include "tablet/values/row_batch.h"
#include "vm/program/program.h"

namespace tessera {

class HeldResult final : public ResultWriter {
 public:
  Status Begin(const std::vector<vm::ResultColumn>& columns) override {
    columns_ = columns;
    has_rows_ = true;
    return {};
  }
  Status Rows(RowBatch&& batch) override {
    batches_.push_back(std::move(batch));
    return {};
  }
  Status End() override { return {}; }
  Status Done(const std::string& command_tag) override {
    tag_ = command_tag;
    return {};
  }
  Status Text(const std::string& text) override {
    text_ += text;
    return {};
  }

  Status Show(ResultWriter* out) {
    if (has_rows_) {
      TESSERA_TRY(out->Begin(columns_));
      for (RowBatch& batch : batches_) TESSERA_TRY(out->Rows(std::move(batch)));
      TESSERA_TRY(out->End());
    }
    if (!text_.empty()) TESSERA_TRY(out->Text(text_));
    return tag_.empty() ? Status::Ok() : out->Done(tag_);
  }

 private:
  bool has_rows_ = false;
  std::vector<vm::ResultColumn> columns_;
  std::vector<RowBatch> batches_;
  std::string text_, tag_;
};

}  // namespace tessera
