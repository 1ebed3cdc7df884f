// Kinds of errors; exceptions as errors.

#include "base/status.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <system_error>

#include "base/interrupt.h"
#include "base/memory_budget.h"

namespace tessera {
namespace {

struct KindRow {
  ErrorCode code;
  const char* sqlstate;
};
constexpr KindRow kKinds[] = {
#define TESSERA_ERROR_KIND(name, sqlstate, code, what) {ErrorCode::code, sqlstate},
#include "base/error_kinds.def"
};
constexpr bool IsComplete() {
  for (const KindRow& row : kKinds) {
    int letters = 0;
    while (row.sqlstate[letters] != '\0') ++letters;
    if (letters != 5) return false;
  }
  return true;
}
static_assert(IsComplete(), "an SQLSTATE has five letters");

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

ErrorKind KindOf(ErrorCode code) {
  const auto row = std::ranges::find(kKinds, code, &KindRow::code);
  return static_cast<ErrorKind>(row - std::begin(kKinds));
}

ErrorCode CodeOf(ErrorKind kind) { return kKinds[static_cast<size_t>(kind)].code; }

const char* SqlStateOf(ErrorKind kind) { return kKinds[static_cast<size_t>(kind)].sqlstate; }

Status OutOfMemory() noexcept { return out_of_memory; }

Status StatusOfException() noexcept {
  try {
    return StatusOf(std::current_exception());
  } catch (...) {  // there is no memory for the message either
    return out_of_memory;
  }
}

}  // namespace tessera
