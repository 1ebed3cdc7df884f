// How results are written as text. Plain data.
//
// Start at: ResultTextOptions.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera {

enum class ResultFormat {
  kBar,
  kBox,
  kColumn,
  kCsv,
  kHtml,
  kInsert,
  kJson,
  kJsonLines,
  kLine,
  kList,
  kMarkdown,
  kPlot,
  kQuote,
  kTable,
  kTrash,
  kTsv
};

struct ResultTextOptions {
  ResultFormat format = ResultFormat::kCsv;
  std::optional<std::string> null_text;  ///< instead of the format's own; json ignores it
  bool headers = true;                   ///< not of json and line
  std::string separator;                 ///< csv, list: between columns; "": a comma, a vertical bar
  std::string table;                     ///< insert: what is after INTO; "": table
  size_t rows_of_insert = 1;             ///< insert: in one statement
  bool colors = false;                   ///< box, table, column: NULL is told from other texts
  /// box, table, column: columns of the terminal for each column. Negative: aligned to the right; 0: as wide as needed.
  std::vector<int> widths;
  size_t max_rows = 0;  ///< box, table, column: the middle of a longer result is left out; 0: no limit
  /// bar, plot: columns that they may take; 0: 80.
  /// box, table, column: texts are cut until all is no wider, if that does not do, all but numbers, and then columns in the
  /// middle are left out; 0: no limit
  size_t max_width = 0;
};

/// Takes finished text; an error ends the statement.
using TextSink = std::function<Status(std::string_view)>;

}  // namespace tessera
