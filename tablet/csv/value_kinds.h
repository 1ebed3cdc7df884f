// Which types a text may be a value of: what types of columns are guessed from.
//
// Start at: KindsOf, TypeOfKinds. Any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "tablet/values/types.h"

namespace tessera {

/// A set of the types that are guessed. All of them: no value was seen.
using ValueKinds = uint32_t;
inline constexpr ValueKinds kAllKinds = ~ValueKinds{0};

/// REQUIRES: `text` is no NULL. `decimal`, `thousands`: see CopyFromOptions.
ValueKinds KindsOf(std::string_view text, char decimal, char thousands);
/// The first type that all values have: BOOLEAN, BIGINT, DECIMAL(38,0) of integers that are longer, DOUBLE PRECISION, DATE,
/// TIME, TIMESTAMP, TIMESTAMP WITH TIME ZONE, else TEXT.
SqlType TypeOfKinds(ValueKinds kinds);

}  // namespace tessera
