// Types that CREATE TYPE makes: ENUM, a name and its labels. A value is stored as the place of its label, so that
// values compare as places do; in a process each different type has a number, which is the `length` of its SqlType.
//
// Start at: EnumNumber, EnumOfNumber; of an SqlType: EnumOf (tablet/values/types.h). Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tessera {

struct EnumType {
  std::string name;
  std::vector<std::string> labels;

  friend bool operator==(const EnumType&, const EnumType&) = default;
};

/// Stands between name and labels where they are one text. No label has it.
inline constexpr char kLabelSeparator = '\x1F';
inline constexpr size_t kMostLabels = 32768, kMostLabelBytes = 255;

/// The type's number; the same for equal types, for as long as the process lives.
int32_t EnumNumber(const EnumType& type);
/// The type of that number; one without a name if there is none.
const EnumType& EnumOfNumber(int32_t number);

/// The name and the labels as one text, and back; false if the text is none.
std::string EnumText(const EnumType& type);
bool ReadEnum(std::string_view text, EnumType* out);

/// The place of `label` in such a text. Errors: kSql that lists the labels.
Result<int64_t> PlaceOfLabel(std::string_view text, std::string_view label);
/// The same in a type.
Result<int64_t> PlaceOfLabel(const EnumType& type, std::string_view label);

}  // namespace tessera
