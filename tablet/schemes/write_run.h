// One run of equal values. Private to tablet/schemes/.
#pragma once

#include <cstddef>

namespace tessera {

/// Values that WriteRun writes at a time. Most runs are shorter, and to write too many of them takes less time than to ask.
template <class Value>
inline constexpr size_t kRunStep = 32 / sizeof(Value);

/// Writes a run of `length` values, at least 1, and up to kRunStep - 1 after it.
template <class Value>
void WriteRun(Value value, size_t length, Value* out) {
  for (size_t at = 0; at < length; at += kRunStep<Value>) {
    for (size_t i = 0; i < kRunStep<Value>; ++i) out[at + i] = value;
  }
}

}  // namespace tessera
