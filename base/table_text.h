// A table for people: a heading, a rule and rows, in columns as wide as what is in them.
//
// Start at: TableText. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tessera {

/// rows[0] is the heading; all rows have as many cells. The first `left` columns and the last one are aligned to the left,
/// the others to the right; the last one is open.
std::string TableText(const std::vector<std::vector<std::string>>& rows, size_t left);

}  // namespace tessera
