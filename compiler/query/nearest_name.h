// The hint of an error about an unknown name: the most similar known name. Private to compiler/.
//
// Start at: NearestName. Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// The candidate with the least number of letters to insert, delete, replace or swap (optimal string alignment), if
/// that is at most a third of the longer name; else "". Of equal ones the first.
std::string NearestName(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace tessera
