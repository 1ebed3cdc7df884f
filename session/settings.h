// What SET changes and SHOW shows. The list is session/settings.def.
//
// Start at: Settings, FindSetting. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/parse/transaction_command.h"
#include "compiler/plan/plan_options.h"
#include "kernels/kernels.h"
#include "session/session_options.h"
#include "tablet/values/time_zone.h"

namespace tessera {

inline constexpr int kMaxThreads = 1024;

/// The value of each setting, at first its default.
struct Settings {
#define TESSERA_INTEGER_SETTING(name, default_value, least, greatest, ranks, description) int64_t name = default_value;
#define TESSERA_SIZE_SETTING(name, default_value, least, ranks, description) int64_t name = default_value;
#define TESSERA_CHOICE_SETTING(name, type, default_value, values, ranks, description) type name = type::default_value;
#define TESSERA_SWITCH_SETTING(name, default_value, ranks, description) bool name = default_value;
#define TESSERA_ZONE_SETTING(name, ranks, description) const TimeZone* name = nullptr;  // UTC
#include "session/settings.def"
};

/// "4096", "64kB", "512MB", "4GB", with and without the B, in any case: powers of two. nullopt: it is none.
std::optional<uint64_t> ParseSize(std::string_view text);

/// How other ranks learn of a setting; settings.def says what each means.
enum class RanksLearn { kNotTold, kInProgram, kWithQuery };

/// One SET option.
struct Setting {
  const char* name;
  const char* meaning;
  bool is_choice;  ///< of few values, which SHOW ALL lists
  RanksLearn ranks;
  std::string (*values)();               ///< what it takes, for a reader: "auto, host, gpu", "0 to 1048576"
  std::string (*text)(const Settings&);  ///< the value as SHOW shows it and `set` takes it
  /// Errors: kSql, it is not a value of this setting; the hint says which are.
  Status (*set)(Settings*, const std::string& value);
  void (*reset)(Settings*);
};

/// In the order of their names. Their defaults are the fields of Settings().
std::span<const Setting> AllSettings();

/// Errors: kSql, there is none of that name; the hint names the nearest.
Result<const Setting*> FindSetting(const std::string& name);

}  // namespace tessera
