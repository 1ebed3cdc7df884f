// One line of a file of JSON lines: an object, whose members are the values of a row.
//
// Start at: JsonLine. A JsonLine belongs to one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera {

/// The value of a member.
struct JsonValue {
  enum class Kind : uint8_t {
    kNull,
    kBoolean,
    kInteger,  ///< of 64 bits
    kNumber,   ///< any other
    kText,
    kNested,  ///< an array or an object
  };
  Kind kind = Kind::kNull;
  int64_t integer = 0;  ///< kInteger; kBoolean: 0 or 1
  double number = 0;    ///< kInteger and kNumber
  std::string text;  ///< of all but kNull: kText without quotes, the others as JSON writes them, kNested without blanks
};

class JsonLine {
 public:
  using Consumer = std::function<void(const std::string& name, JsonValue&& value)>;

  /// Calls `take` for each member, in their order. Errors: kSql, the line is no JSON, or no object.
  static Status Read(std::string_view line, const Consumer& take);
};

}  // namespace tessera
