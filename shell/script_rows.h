// Rows that stand in a script behind COPY ... FROM STDIN, up to a line \., as pg_dump writes them.
//
// Start at: FormOfRows, ScriptRows. One thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "session/standard_streams.h"

namespace tessera {

enum class RowForm : uint8_t {
  kNone,  ///< no rows follow
  kText,  ///< PostgreSQL's text format: COPY has no options
  kCsv,
};
/// What rows the last statement of a script so far takes, if it is COPY ... FROM STDIN.
RowForm FormOfRows(std::string_view script);

class ScriptRows {
 public:
  /// `line`: of the script, after which the rows begin.
  ScriptRows(RowForm form, int line) : form_(form), line_(line) {}

  /// Adds a line. Errors: kIo.
  Status Add(std::string_view line);
  /// The lines again. Errors: kIo.
  Status ForEachLine(const std::function<void(std::string_view)>& take);
  /// The COPY, with a file of these rows as CSV in place of STDIN; it lives as long as this object. Errors: kIo.
  Result<std::string> Statement(std::string_view sql);
  int line() const { return line_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  using File = std::unique_ptr<std::FILE, Close>;
  static Status Open(TemporaryFile* file, File* out);
  static Status Put(std::string_view text, const File& file);

  const RowForm form_;
  const int line_;
  TemporaryFile lines_, csv_;
  File out_;  ///< of lines_
};

}  // namespace tessera
