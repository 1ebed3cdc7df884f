// Dates and moments in a format that a user gives.
//
// Start at: ParseMomentAs. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tablet/values/value_parser.h"

namespace tessera {

/// Microseconds since 1970-01-01 of a text in a format of C's strptime, with %f for digits of a second. A field that it
/// lacks is the first of its kind: year 1970, month 1, day 1, hour 0.
ParseError ParseMomentAs(const std::string& format, std::string_view text, int64_t* micros);

}  // namespace tessera
