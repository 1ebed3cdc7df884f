// What a statement returns, as messages of the protocol: its rows, its text, its command tag.
//
// Start at: RowSender, KeptResult. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/messages.h"
#include "server/server_options.h"
#include "session/session.h"

namespace tessera::server {

/// RowDescription.
void WriteRowDescription(const std::vector<vm::ResultColumn>& columns, const std::vector<int16_t>& formats,
                         MessageWriter* out);
/// DataRow.
void WriteRow(const RowBatch& batch, size_t row, const std::vector<int16_t>& formats, MessageWriter* out);
void WriteTag(std::string_view tag, MessageWriter* out);
/// A tag as sessions give it may say why the statement has no effect. That is a notice.
void WriteDone(const std::string& tag, MessageWriter* out);

/// Rows that a client takes a few at a time.
struct KeptResult {
  std::deque<RowBatch> batches;
  size_t row = 0;  ///< of the first batch, which is the next
  std::string tag;
  uint64_t rows = 0;
};

class RowSender final : public ResultWriter {
 public:
  /// `describes`: the client is told the columns. `send`: takes what was written. `kept`: gets the rows instead of the client;
  /// nullptr: they are sent.
  struct Way {
    bool describes = true;
    std::vector<int16_t> formats;
    MessageWriter* out = nullptr;
    std::function<Status()> send;
    KeptResult* kept = nullptr;
    const ServerOptions* options = nullptr;
  };
  RowSender(std::string_view sql, Way way);

  Status Begin(const std::vector<vm::ResultColumn>& columns) override;
  Status Rows(RowBatch&& batch) override;
  Status End() override { return Status::Ok(); }
  Status Done(const std::string& command_tag) override;
  Status Text(const std::string& text) override;
  Status Analyzed(const Analysis& analysis) override;
  Status Explained(const Explanation& explanation) override;

  /// After the statement has succeeded: what is left of it, and its tag.
  Status Finish();

 private:
  Status SendText();

  const Way way_;
  std::string word_;  ///< the statement's first, in lower case
  std::vector<int16_t> formats_;
  std::string text_;     ///< of EXPLAIN
  bool is_one_ = false;  ///< which is one value
  bool has_text_ = false;
  uint64_t rows_ = 0;
  std::string tag_;
};

}  // namespace tessera::server
