#include "tablet/values/enum_type.h"

#include <algorithm>
#include <array>
#include <deque>
#include <mutex>

#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// All types that the process has met. References stay: a deque moves nothing.
struct Known {
  std::mutex mutex;
  std::deque<EnumType> types;
};
Known& All() {
  static Known* const known = new Known;  // for threads that end after main()
  return *known;
}

Status NoLabel(std::string_view name, const std::vector<std::string_view>& labels, std::string_view text) {
  constexpr size_t kShown = 20;
  std::string list;
  for (size_t i = 0; i < std::min(labels.size(), kShown); ++i) {
    if (i > 0) list += ", ";
    list += "'" + std::string(labels[i]) + "'";
  }
  if (labels.size() > kShown) list += ", ... (" + std::to_string(labels.size()) + ")";
  return SqlError(ErrorKind::kInvalidText,
                  "invalid input value for enum " + std::string(name) + ": " + QuoteForMessage(text), -1,
                  "Its values are " + list + ".");
}

}  // namespace

int32_t EnumNumber(const EnumType& type) {
  Known& all = All();
  const std::lock_guard lock(all.mutex);
  const auto at = std::find(all.types.begin(), all.types.end(), type);
  const auto number = static_cast<int32_t>(at - all.types.begin()) + 1;
  if (at == all.types.end()) all.types.push_back(type);
  return number;
}

const EnumType& EnumOfNumber(int32_t number) {
  static const EnumType none;
  if (number < 1) return none;
  // It is asked for each value that is printed: threads that took the lock each time would wait for each other.
  struct Met {
    int32_t number = 0;
    const EnumType* type = nullptr;
  };
  thread_local std::array<Met, 16> met;
  Met& last = met[static_cast<size_t>(number) % met.size()];
  if (last.number == number) return *last.type;
  Known& all = All();
  const std::lock_guard lock(all.mutex);
  if (static_cast<size_t>(number) > all.types.size()) return none;
  last = {number, &all.types[static_cast<size_t>(number) - 1]};
  return *last.type;
}

std::string EnumText(const EnumType& type) {
  std::string out = type.name;
  for (const std::string& label : type.labels) {
    out += kLabelSeparator;
    out += label;
  }
  return out;
}

bool ReadEnum(std::string_view text, EnumType* out) {
  out->labels.clear();
  for (bool first = true;; first = false) {
    const size_t end = std::min(text.find(kLabelSeparator), text.size());
    if (first) {
      out->name = text.substr(0, end);
    } else {
      out->labels.emplace_back(text.substr(0, end));
    }
    if (end == text.size()) break;
    text.remove_prefix(end + 1);
  }
  return !out->name.empty() && out->labels.size() <= kMostLabels;
}

Result<int64_t> PlaceOfLabel(std::string_view text, std::string_view label) {
  const size_t name_end = std::min(text.find(kLabelSeparator), text.size());
  const std::string_view name = text.substr(0, name_end);
  std::vector<std::string_view> labels;
  for (size_t at = name_end; at < text.size();) {
    const size_t end = std::min(text.find(kLabelSeparator, at + 1), text.size());
    const std::string_view one = text.substr(at + 1, end - at - 1);
    if (one == label) return static_cast<int64_t>(labels.size());
    labels.push_back(one);
    at = end;
  }
  return NoLabel(name, labels, label);
}

Result<int64_t> PlaceOfLabel(const EnumType& type, std::string_view label) {
  const auto at = std::find(type.labels.begin(), type.labels.end(), label);
  if (at != type.labels.end()) return at - type.labels.begin();
  return NoLabel(type.name, {type.labels.begin(), type.labels.end()}, label);
}

}  // namespace tessera
