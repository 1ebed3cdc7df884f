// Exceptions as errors: of memory that ran out, of interruptions, of the standard library.
//
// Start at: Caught. Any thread.
#pragma once

#include "base/status.h"

namespace tessera {

/// The error for a caught bad_alloc. Allocates nothing.
Status OutOfMemory() noexcept;
/// The error for the exception that is being handled: kResource for memory and threads that ran out, kCancelled for
/// Interruption, else kInternal. Call it in catch (...).
Status StatusOfException() noexcept;

/// f(), which returns a Status or a Result; an exception of it becomes the error.
template <class F>
auto Caught(const F& f) -> decltype(f()) {
  try {
    return f();
  } catch (...) {
    return StatusOfException();
  }
}

}  // namespace tessera
