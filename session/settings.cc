// The rows of settings.def as functions.

#include "session/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "compiler/query/nearest_name.h"

namespace tessera {
namespace {

Status InvalidValue(const char* name, const std::string& value, const std::string& hint) {
  return SqlError(ErrorKind::kInvalidParameterValue,
                  fmt::format("invalid value for parameter \"{}\": \"{}\"", name, value), -1, hint);
}

Status SetInteger(const char* name, const std::string& value, int64_t least, int64_t greatest, int64_t* field) {
  int64_t number = 0;
  const char* const end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc{} || at != end || number < least || number > greatest) {
    return InvalidValue(name, value, fmt::format("An integer from {} to {}.", least, greatest));
  }
  *field = number;
  return Status::Ok();
}

Status SetSize(const char* name, const std::string& value, int64_t least, int64_t* field) {
  const std::optional<uint64_t> bytes = ParseSize(value);
  if (!bytes || *bytes > INT64_MAX || (*bytes != 0 && *bytes < static_cast<uint64_t>(least))) {
    return InvalidValue(
        name, value,
        fmt::format("Bytes, {} or more, or a number with kB, MB, GB or TB, or 0.", std::max<int64_t>(least, 1)));
  }
  *field = static_cast<int64_t>(*bytes);
  return Status::Ok();
}

/// "auto, host, gpu" as three names.
std::vector<std::string_view> Split(std::string_view values) {
  std::vector<std::string_view> out;
  for (;;) {
    const size_t comma = values.find(", ");
    out.push_back(values.substr(0, comma));
    if (comma == std::string_view::npos) return out;
    values.remove_prefix(comma + 2);
  }
}

template <class Enum>
Status SetChoice(const char* name, const std::string& value, const char* values, Enum* field) {
  const std::vector<std::string_view> names = Split(values);
  const auto at = std::find(names.begin(), names.end(), value);
  if (at == names.end()) return InvalidValue(name, value, fmt::format("Available values: {}.", values));
  *field = static_cast<Enum>(at - names.begin());
  return Status::Ok();
}

template <class Enum>
std::string ChoiceText(const char* values, Enum value) {
  return std::string(Split(values)[static_cast<size_t>(value)]);
}

Status SetSwitch(const char* name, const std::string& value, bool* field) {
  const bool on = value == "on" || value == "true";
  if (!on && value != "off" && value != "false") return InvalidValue(name, value, "Available values: on, off.");
  *field = on;
  return Status::Ok();
}

Status SetZone(const char* name, const std::string& value, const TimeZone** field) {
  const Result<const TimeZone*> zone = FindTimeZone(value);
  if (!zone.ok()) return InvalidValue(name, value, zone.status().hint());
  *field = (*zone)->IsUtc() ? nullptr : *zone;
  return Status::Ok();
}

std::string ZoneText(const TimeZone* zone) { return zone != nullptr ? zone->name() : "UTC"; }

std::string RangeText(int64_t least, int64_t greatest) {
  return greatest >= INT32_MAX ? fmt::format("{} or more", least) : fmt::format("{} to {}", least, greatest);
}

constexpr Setting kSettings[] = {
#define TESSERA_INTEGER_SETTING(name, default_value, least, greatest, ranks, description)                     \
  {#name,                                                                                                     \
   description,                                                                                               \
   false,                                                                                                     \
   RanksLearn::k##ranks,                                                                                      \
   [] { return RangeText(least, greatest); },                                                                 \
   [](const Settings& s) { return std::to_string(s.name); },                                                  \
   [](Settings* s, const std::string& value) { return SetInteger(#name, value, least, greatest, &s->name); }, \
   [](Settings* s) { s->name = Settings().name; }},
#define TESSERA_SIZE_SETTING(name, default_value, least, ranks, description)                     \
  {#name,                                                                                        \
   description,                                                                                  \
   false,                                                                                        \
   RanksLearn::k##ranks,                                                                         \
   [] { return least > 1 ? fmt::format("0, {} or more", least) : std::string("0 or more"); },    \
   [](const Settings& s) { return std::to_string(s.name); },                                     \
   [](Settings* s, const std::string& value) { return SetSize(#name, value, least, &s->name); }, \
   [](Settings* s) { s->name = Settings().name; }},
#define TESSERA_CHOICE_SETTING(name, type, default_value, values, ranks, description)               \
  {#name,                                                                                           \
   description,                                                                                     \
   true,                                                                                            \
   RanksLearn::k##ranks,                                                                            \
   [] { return std::string(values); },                                                              \
   [](const Settings& s) { return ChoiceText(values, s.name); },                                    \
   [](Settings* s, const std::string& value) { return SetChoice(#name, value, values, &s->name); }, \
   [](Settings* s) { s->name = Settings().name; }},
#define TESSERA_SWITCH_SETTING(name, default_value, ranks, description)                     \
  {#name,                                                                                   \
   description,                                                                             \
   true,                                                                                    \
   RanksLearn::k##ranks,                                                                    \
   [] { return std::string("on, off"); },                                                   \
   [](const Settings& s) { return std::string(s.name ? "on" : "off"); },                    \
   [](Settings* s, const std::string& value) { return SetSwitch(#name, value, &s->name); }, \
   [](Settings* s) { s->name = Settings().name; }},
#define TESSERA_ZONE_SETTING(name, ranks, description)                                    \
  {#name,                                                                                 \
   description,                                                                           \
   false,                                                                                 \
   RanksLearn::k##ranks,                                                                  \
   [] { return std::string("UTC or a name of the tz database"); },                        \
   [](const Settings& s) { return ZoneText(s.name); },                                    \
   [](Settings* s, const std::string& value) { return SetZone(#name, value, &s->name); }, \
   [](Settings* s) { s->name = Settings().name; }},
#include "session/settings.def"
};

}  // namespace

std::optional<uint64_t> ParseSize(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (unit.size() == 2 && (unit[1] == 'b' || unit[1] == 'B')) unit.remove_suffix(1);
  constexpr std::string_view kUnits = "kmgtKMGT";
  const size_t at = unit.size() == 1 ? kUnits.find(unit) : kUnits.npos;
  if (error != std::errc{} || (at == kUnits.npos && !unit.empty())) return std::nullopt;
  const size_t power = unit.empty() ? 0 : at % 4 + 1;
  if (number > UINT64_MAX >> (10 * power)) return std::nullopt;
  return number << (10 * power);
}

std::span<const Setting> AllSettings() { return kSettings; }

Result<const Setting*> FindSetting(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Setting& s : kSettings) {
    if (name == s.name) return &s;
    names.emplace_back(s.name);
  }
  const std::string nearest = NearestName(name, names);
  return SqlError(ErrorKind::kUndefinedObject, "unrecognized configuration parameter \"" + name + "\"", -1,
                  nearest.empty() ? "SHOW ALL lists the settings." : "Perhaps you meant \"" + nearest + "\".");
}

}  // namespace tessera
