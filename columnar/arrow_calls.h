// Calls of Arrow: its errors and exceptions as ours, and its memory from the program's allocator.
//
// Start at: Guarded, BudgetPool. Any thread.
#pragma once

#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <string>

#include "base/status.h"

namespace tessera::columnar {

/// Memory of the program's operator new, which counts it against memory_limit.
arrow::MemoryPool* BudgetPool();

/// An error of the file `name`; `place`: where in it, "": as a whole.
Status Error(const arrow::Status& status, const std::string& name, const std::string& place);
/// Of the exception that is being handled.
Status ErrorOfException(const std::string& name, const std::string& place);

/// f(), whose exceptions become errors. Arrow throws some of its own, and of a broken file's sizes comes std::bad_alloc.
template <class F>
auto Guarded(const std::string& name, const std::string& place, const F& f) -> decltype(f()) {
  try {
    return f();
  } catch (...) {
    return ErrorOfException(name, place);
  }
}

}  // namespace tessera::columnar

/// Returns from a function with `name` and `place` if `expr` (an arrow::Status) is an error.
#define TESSERA_ARROW_TRY(expr)                                     \
  do {                                                              \
    if (::arrow::Status arrow_status = (expr); !arrow_status.ok())  \
      return ::tessera::columnar::Error(arrow_status, name, place); \
  } while (0)

/// The same of an arrow::Result, whose value goes into lhs.
#define TESSERA_ARROW_ASSIGN(lhs, expr) TESSERA_ARROW_ASSIGN_(TESSERA_CONCAT(arrow_result_, __LINE__), lhs, expr)
#define TESSERA_ARROW_ASSIGN_(result, lhs, expr)                                     \
  auto result = (expr);                                                              \
  if (!result.ok()) return ::tessera::columnar::Error(result.status(), name, place); \
  lhs = std::move(result).ValueUnsafe()
