// What ADBC asks of a database: what it is, and which tables it has, with their columns.
//
// Start at: GetObjects. The thread of the connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "capi/arrow.h"
#include "session/session.h"

namespace tessera {

/// What is asked for: nullptr is all. Names are patterns of LIKE.
struct ObjectFilter {
  int depth = 0;  ///< 1: catalogs; 2: schemas, too; 3: tables, too; 0: columns, too
  const char* catalog = nullptr;
  const char* schema = nullptr;
  const char* table = nullptr;
  const char** types = nullptr;  ///< ends with nullptr
  const char* column = nullptr;
};

Status GetObjects(Session* session, const ObjectFilter& filter, ArrowArrayStream* out);
Status GetTableTypes(ArrowArrayStream* out);
/// `codes`: nullptr for all that are known; others are left out.
Status GetInfo(const uint32_t* codes, size_t count, ArrowArrayStream* out);

}  // namespace tessera
