// Rows that stand in a script after COPY ... FROM STDIN, up to a line \., as pg_dump writes them.
//
// Start at: TakesRows, ScriptRows. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "session/copy_client.h"
#include "session/standard_streams.h"

namespace tessera {

/// Whether the last statement of a script so far is COPY ... FROM STDIN, whose rows follow.
bool TakesRows(std::string_view script);

/// The rows, as COPY's options say that they are written: without any, in PostgreSQL's text format.
class ScriptRows final : public CopyClient {
 public:
  /// `line`: of the script, after which the rows begin.
  explicit ScriptRows(int line) : line_(line) {}

  /// Adds a line. Errors: kIo.
  Status Add(std::string_view line);
  /// The lines again. Errors: kIo.
  Status ForEachLine(const std::function<void(std::string_view)>& take);
  int line() const { return line_; }

  const char* rows_name() const override { return "the rows of the script"; }
  Status BeginRead(size_t columns) override;
  Result<bool> Read(std::string* bytes) override;
  Status BeginWrite(size_t columns) override;
  Status Write(std::string&& rows) override;

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  const int line_;
  TemporaryFile lines_;
  std::unique_ptr<std::FILE, Close> out_, in_;  ///< of lines_
};

}  // namespace tessera
