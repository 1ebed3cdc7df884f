#include "compiler/parse/statement_notice.h"

#include <algorithm>

namespace tessera {
namespace {

constexpr const char* kNoUsers = "there are no owners, and roles have no members";

struct Known {
  std::string_view tag;  ///< libpg_query's
  const char* why;
};
constexpr Known kKnown[] = {
    {"GrantRoleStmt", kNoUsers},
    {"AlterRoleSetStmt", "settings are those of sessions"},
    {"AlterOwnerStmt", kNoUsers},
    {"AlterDefaultPrivilegesStmt", kNoUsers},
    {"ReindexStmt", "scans need no index"},
};

struct KnownSetting {
  std::string_view name;
  std::string_view value;  ///< the one that holds here, in lower case; "": any
  const char* why;
};
constexpr const char* kForServers = "it is a setting of PostgreSQL's server";
constexpr KnownSetting kSettings[] = {
    {"application_name", "", "no one is told of it"},
    {"bytea_output", "hex", "it is always so"},
    {"check_function_bodies", "", "there are no functions with a body"},
    {"client_encoding", "utf8", "texts are always UTF-8"},
    {"client_encoding", "utf-8", "texts are always UTF-8"},
    {"client_encoding", "unicode", "texts are always UTF-8"},
    {"client_min_messages", "", kForServers},
    {"datestyle", "iso", "it is always so"},
    {"datestyle", "iso, mdy", "it is always so"},
    {"default_table_access_method", "", kForServers},
    {"default_tablespace", "", kForServers},
    {"default_toast_compression", "", kForServers},
    {"default_with_oids", "false", kForServers},
    {"default_with_oids", "off", kForServers},
    {"escape_string_warning", "", kForServers},
    {"extra_float_digits", "", "numbers have all their digits"},
    {"intervalstyle", "postgres", "it is always so"},
    {"lock_timeout", "0", kForServers},
    {"maintenance_work_mem", "", kForServers},
    {"row_security", "off", "rows are not hidden"},
    {"standard_conforming_strings", "on", "strings always are"},
    {"synchronize_seqscans", "", kForServers},
    {"transaction_timeout", "0", kForServers},
    {"xmloption", "", "there is no XML"},
};

std::string Lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

}  // namespace

std::optional<std::string> StatementNotice(std::string_view tag, std::string_view first_word) {
  for (const Known& k : kKnown) {
    if (k.tag != tag) continue;
    std::string word(first_word);
    std::ranges::transform(word, word.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    return word + ": no effect, " + k.why;
  }
  return std::nullopt;
}

std::optional<std::string> SettingNotice(std::string_view name, std::string_view value) {
  for (const KnownSetting& s : kSettings) {
    if (s.name == name && (s.value.empty() || s.value == Lower(value)))
      return "SET: no effect, " + std::string(name) + ": " + s.why;
  }
  return std::nullopt;
}

}  // namespace tessera
