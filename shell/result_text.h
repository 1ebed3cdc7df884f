// Results as text: box, csv, json and the others of the table.
//
// | format   | NULL        | notes |
// |----------|-------------|-------|
// | bar      | NULL        | a bar for each row (result_chart.h) |
// | box      | NULL        | leaves out the middle of a long result and counts it below; escapes control characters |
// | column   | NULL        | as box, but with blanks between columns and no frame |
// | csv      | empty field | RFC 4180 with \n; the empty string is ""; a text equal to the NULL text is quoted |
// | json     | null        | an array of objects; numbers with all digits, NaN and infinities as strings |
// | markdown | empty cell  | escapes | and line breaks |
// | line     | NULL        | one `column = value` a line, a blank line between rows |
// | list     | empty       | values as they stand, with the separator between them |
// | html     | NULL        | a <table> |
// | insert   | NULL        | INSERT INTO table VALUES (...); values as SQL writes them |
// | jsonlines| null        | an object a line |
// | plot     |             | points (result_chart.h) |
// | quote    | NULL        | values as SQL writes them, with commas between them |
// | table    | NULL        | as box, in ASCII |
// | trash    |             | nothing |
// | tsv      | empty       | tabs between values; in these, tabs, line breaks and backslashes are \t, \n, \r and \\ |
//
// All but bar, box, column, plot and table write rows as they come and hold none of them. A result that ends in an error stays without its end, so a
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
#include "shell/result_options.h"

namespace tessera {

/// The format of that name, or of one that sqlite3 or duckdb gives it; nullopt if there is none.
std::optional<ResultFormat> FindResultFormat(std::string_view name);
const char* ResultFormatName(ResultFormat format);
/// All names, also those of other shells.
std::vector<std::string> ResultFormatWords();
/// "box, column, csv, ..."
std::string ResultFormatNames();

/// Whether columns can be told by it: not empty, and without double quotes and line breaks.
bool IsColumnSeparator(std::string_view text);

/// A writer for one statement. `done` gets the command tag of a statement without rows.
std::unique_ptr<ResultWriter> MakeResultText(const ResultTextOptions& options, TextSink sink,
                                             std::function<void(const std::string&)> done);

}  // namespace tessera
