// A writer that takes a result and shows nothing: for statements that are a part of another one, or that are only measured.
//
// Start at: NoResult. Any thread.
#pragma once

#include <string>
#include <vector>

#include "session/result_writer.h"

namespace tessera {

class NoResult final : public ResultWriter {
 public:
  Status Begin(const std::vector<vm::ResultColumn>&) override { return Status::Ok(); }
  Status Rows(RowBatch&&) override { return Status::Ok(); }
  Status End() override { return Status::Ok(); }
  Status Done(const std::string&) override { return Status::Ok(); }
  Status Text(const std::string&) override { return Status::Ok(); }
};

}  // namespace tessera
