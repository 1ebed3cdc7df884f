// LIKE in time that does not multiply the lengths of text and pattern. Internal to vm/: LikeMatches (text_meaning.h)
// comes here with what it could not decide soon.
//
// Start at: LikeBehindPercent. A pure function; any thread.
#pragma once

#include <string_view>

namespace tessera::vm {

/// Whether some end of `s` is LIKE `pattern`, i.e. whether `s` is LIKE '%' || pattern. Each part of the pattern between
/// two % is searched once, from where the one before it ended first: by memmem, which is linear, or, if it holds _, by
/// 64 elements of the part at a time (Shift-And: Baeza-Yates and Gonnet, "A new approach to text searching", 1992).
bool LikeBehindPercent(std::string_view s, std::string_view pattern);

}  // namespace tessera::vm
