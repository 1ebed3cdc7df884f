// Types and values as PostgreSQL's protocol has them: by the numbers of pg_type, as text or in its binary forms.
//
// Start at: OidOf, AppendField, ReadParameter. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "server/messages.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera::server {

/// As pg_type and pg_attribute say it: the number, the bytes of a value (-1: they vary), and what stands after its name in
/// parentheses (-1: nothing).
struct WireType {
  int32_t oid = 0;
  int16_t bytes = -1;
  int32_t modifier = -1;
};
WireType WireTypeOf(const SqlType& type);
/// nullopt: 0 and the like, which leave it to the statement; a type that is not known.
std::optional<SqlType> TypeOfOid(int32_t oid);

/// Appends the value in row `row`, which is not NULL, without its length.
void AppendField(const ColumnVector& column, size_t row, bool binary, MessageWriter* out);

/// The value of a parameter that a client sent. `oid`: its type, as the client or the statement says; 0: not known. A text
/// whose type is that of its place comes back as kNull with characters. Errors: it is no value of that type.
Result<Value> ReadParameter(const std::optional<std::string>& bytes, bool binary, int32_t oid);

}  // namespace tessera::server
