#include "base/exception_status.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "base/interrupt.h"
#include "base/memory_budget.h"

namespace tessera {
namespace {

/// Made when the program starts, while there is memory.
const Status out_of_memory(
    ErrorKind::kOutOfMemory, "out of memory",
    "Ask for fewer rows or groups, or give the process more memory (ulimit -v, the job's limit).");

Status StatusOf(std::exception_ptr exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const MemoryLimitExceeded& e) {
    const WithoutMemoryLimit message;
    return e.status();
  } catch (const std::bad_alloc&) {
    return out_of_memory;
  } catch (const Interruption&) {
    return Cancelled();
  } catch (const std::length_error&) {  // of a container that would not fit into any memory
    return out_of_memory;
  } catch (const std::system_error& e) {
    return {ErrorCode::kResource, std::string("the system refused: ") + e.what()};
  } catch (const std::exception& e) {
    return {ErrorCode::kInternal, std::string("an unexpected exception: ") + e.what()};
  } catch (...) {
    return {ErrorCode::kInternal, "an unexpected exception"};
  }
}

}  // namespace

Status OutOfMemory() noexcept { return out_of_memory; }

Status StatusOfException() noexcept {
  try {
    return StatusOf(std::current_exception());
  } catch (...) {  // there is no memory for the message either
    return out_of_memory;
  }
}

}  // namespace tessera
