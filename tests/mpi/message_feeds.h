// Messages between ranks as bytes, and everything that reads such bytes without a job around it: for campaigns and fuzz
// targets, which change the bytes.
//
// Start at: ValidFeeds, Feed. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tessera::test {

/// Some of each kind, as ranks write them. The first byte says which kind it is.
std::vector<std::string> ValidFeeds();

/// Reads `feed` as a rank would, and uses what came as it would. Returns whether all of it was as it should be. No bytes
/// may do any harm.
bool Feed(std::string_view feed);

}  // namespace tessera::test
