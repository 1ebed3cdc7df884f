// Results as pictures of characters: bars, or points of a plane.
//
// Start at: MakeBarText, MakePlotText. One thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "session/session.h"
#include "shell/result_options.h"

namespace tessera {

/// A bar for each row: as long as the last column of numbers says, after the other columns. Errors: there is no such column; more
/// rows than anyone looks at.
std::unique_ptr<ResultWriter> MakeBarText(const ResultTextOptions& options, TextSink sink,
                                          std::function<void(const std::string&)> done);

/// Points: the first column that is a number or a time is x (the number of the row, if it is the only one), and the other columns
/// of numbers are y. Points whose x rises from row to row are joined by lines. Errors: there is no column of numbers.
std::unique_ptr<ResultWriter> MakePlotText(const ResultTextOptions& options, TextSink sink,
                                           std::function<void(const std::string&)> done);

}  // namespace tessera
