// Results as text: box, column, csv, json, line, list, markdown.
//
// | format   | NULL        | notes |
// |----------|-------------|-------|
// | box      | NULL        | leaves out the middle of a long result and counts it below; escapes control characters |
// | column   | NULL        | as box, but with blanks between columns and no frame |
// | csv      | empty field | RFC 4180 with \n; the empty string is ""; a text equal to the NULL text is quoted |
// | json     | null        | an array of objects; numbers with all digits, NaN and infinities as strings |
// | markdown | empty cell  | escapes | and line breaks |
// | line     | NULL        | one `column = value` a line, a blank line between rows |
// | list     | empty       | values as they stand, with the separator between them |
//
// All but box and column write rows as they come and hold none of them. A result that ends in an error stays without its end, so a
// JSON array that is closed is complete.
//
// Start at: MakeResultText. One thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "session/session.h"

namespace tessera {

enum class ResultFormat { kBox, kColumn, kCsv, kJson, kLine, kList, kMarkdown };

/// The format of that name; nullopt if there is none.
std::optional<ResultFormat> FindResultFormat(std::string_view name);
const char* ResultFormatName(ResultFormat format);
/// "box, column, csv, ..."
std::string ResultFormatNames();

struct ResultTextOptions {
  ResultFormat format = ResultFormat::kCsv;
  std::optional<std::string> null_text;  ///< instead of the format's own; json ignores it
  bool headers = true;                   ///< not of json and line
  std::string separator;                 ///< csv, list: between columns; "": a comma, a vertical bar
  /// box, column: columns of the terminal for each column. Negative: aligned to the right; 0: as wide as needed.
  std::vector<int> widths;
  size_t max_rows = 0;  ///< box, column: the middle of a longer result is left out; 0: no limit
  /// box, column: texts are cut until all is no wider, and if that does not do, all but numbers; 0: no limit
  size_t max_width = 0;
};

/// Whether columns can be told by it: not empty, and without double quotes and line breaks.
bool IsColumnSeparator(std::string_view text);

/// Takes finished text; an error ends the statement.
using TextSink = std::function<Status(std::string_view)>;

/// A writer for one statement. `done` gets the command tag of a statement without rows.
std::unique_ptr<ResultWriter> MakeResultText(const ResultTextOptions& options, TextSink sink,
                                             std::function<void(const std::string&)> done);

}  // namespace tessera
