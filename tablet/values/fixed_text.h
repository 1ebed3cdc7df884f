// Numbers, dates and times as SQL text, into memory that is there: most of what a result or a COPY of many rows costs is this.
//
// Start at: PutInteger. Each writes at `at`, no more than kLongestFixedText bytes, and returns where the text ends. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/int128.h"

namespace tessera {

inline constexpr size_t kLongestFixedText = 64;

char* PutInteger(int64_t v, char* at);
/// v / 10^scale, with as many decimal places. REQUIRES: scale <= 38.
char* PutDecimal(int128_t v, int scale, char* at);
/// Of days since 1970; one whose year has more than five digits is its number of days.
char* PutDate(int64_t days, char* at);
/// Of microseconds since midnight.
char* PutTime(int64_t microseconds, char* at);
/// Of microseconds since 1970.
char* PutTimestamp(int64_t microseconds, char* at);

}  // namespace tessera
