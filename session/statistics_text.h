// What EXPLAIN ANALYZE adds under the program: one line per section. Any thread.
#pragma once

#include <string>
#include <vector>

#include "session/session.h"
#include "vm/vm.h"

namespace tessera {

/// A table (where each section ran, rows in, out and expected, tablets, bytes, times), how kernels ran their sections,
/// and a line of totals; ends with a newline. `estimates`: Compiled's. `bandwidth`: the GPU's, in bytes a second; 0 if
/// there is none.
std::string StatisticsText(const vm::RunStatistics& statistics, const std::vector<double>& estimates,
                           const Timing& timing, double bandwidth);

/// "823 B", "1.5 KB", "2.31 GB": powers of ten, three digits.
std::string BytesText(double bytes);

}  // namespace tessera
