// What EXPLAIN (ANALYZE, PROGRAM) adds under the program: one line per section.
//
// Start at: StatisticsText. Any thread.
#pragma once

#include <string>

#include "session/session.h"

namespace tessera {

/// A table (where each section ran, rows in, out and expected, tablets, bytes, times), how kernels ran their sections,
/// and a line of totals; ends with a newline.
std::string StatisticsText(const Analysis& analysis);

/// The line of totals alone.
std::string TotalsText(const Analysis& analysis);

/// "823 B", "1.5 KB", "2.31 GB": powers of ten, three digits.
std::string BytesText(double bytes);

}  // namespace tessera
