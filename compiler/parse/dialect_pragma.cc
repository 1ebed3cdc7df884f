// PRAGMA of SQLite and DuckDB: what is asked becomes a query, a setting SET or SHOW, and what would change nothing here a
// notice.
#include <algorithm>
#include <string>
#include <string_view>

#include "base/lower_case.h"
#include "compiler/parse/dialect_reader.h"

namespace tessera {
namespace {

enum class PragmaKind : uint8_t {
  kTable,    ///< FROM pragma_x('t')
  kRows,     ///< the query
  kSetting,  ///< SHOW and SET
  kNotice,   ///< the reason
};
struct Pragma {
  std::string_view name;
  PragmaKind kind;
  const char* text;
};
constexpr const char* kDurable = "each commit is on disk when it ends";
constexpr const char* kCached = "the caches are those of memory_limit";
constexpr Pragma kPragmas[] = {
    {"table_info", PragmaKind::kTable, ""},
    {"table_xinfo", PragmaKind::kTable, ""},
    {"index_list", PragmaKind::kTable, ""},
    {"index_info", PragmaKind::kTable, ""},
    {"foreign_key_list", PragmaKind::kTable, ""},
    {"table_list", PragmaKind::kRows, "SELECT * FROM pragma_table_list()"},
    {"database_list", PragmaKind::kRows, "SELECT * FROM pragma_database_list()"},
    {"show_tables", PragmaKind::kRows, "SHOW TABLES"},
    {"version", PragmaKind::kRows, "SELECT version() AS library_version"},
    {"threads", PragmaKind::kSetting, "threads"},
    {"memory_limit", PragmaKind::kSetting, "memory_limit"},
    {"max_memory", PragmaKind::kSetting, "memory_limit"},
    {"max_temp_directory_size", PragmaKind::kSetting, "temp_file_limit"},
    {"busy_timeout", PragmaKind::kSetting, "lock_timeout"},
    {"journal_mode", PragmaKind::kNotice, kDurable},
    {"synchronous", PragmaKind::kNotice, kDurable},
    {"fullfsync", PragmaKind::kNotice, kDurable},
    {"wal_autocheckpoint", PragmaKind::kNotice, kDurable},
    {"wal_checkpoint", PragmaKind::kNotice, kDurable},
    {"locking_mode", PragmaKind::kNotice, "a writer takes the lock for as long as it writes"},
    {"foreign_keys", PragmaKind::kNotice, "constraints are always checked"},
    {"cache_size", PragmaKind::kNotice, kCached},
    {"mmap_size", PragmaKind::kNotice, kCached},
    {"page_size", PragmaKind::kNotice, kCached},
    {"temp_store", PragmaKind::kNotice, "temporary rows are in memory as long as they fit"},
    {"auto_vacuum", PragmaKind::kNotice, "VACUUM writes tables anew"},
    {"optimize", PragmaKind::kNotice, "each load keeps the statistics"},
    {"analysis_limit", PragmaKind::kNotice, "each load keeps the statistics"},
    {"encoding", PragmaKind::kNotice, "texts are always UTF-8"},
    {"enable_progress_bar", PragmaKind::kNotice, "the shell shows progress at a terminal"},
    {"disable_progress_bar", PragmaKind::kNotice, "the shell shows progress at a terminal"},
    {"enable_object_cache", PragmaKind::kNotice, kCached},
};

std::string NamesOfPragmas() {
  std::string names;
  for (const Pragma& p : kPragmas) {
    if (p.kind != PragmaKind::kNotice) names += (names.empty() ? "" : ", ") + std::string(p.name);
  }
  return names;
}

}  // namespace

Status DialectReader::ReadPragma() {
  const auto position = static_cast<int>(tokens_[0].begin);
  const auto end_of = [&](size_t n) { return tokens_[n].kind == Token::Kind::kEnd || tokens_[n].symbol == ';'; };
  const std::string name = LowerCase(NameOf(tokens_[1]));
  const auto pragma = std::ranges::find(kPragmas, name, &Pragma::name);
  if (pragma == std::end(kPragmas)) {
    return Unsupported(name.empty() ? "PRAGMA without a name is not supported" : "PRAGMA " + name + " is not supported",
                       position, "There are " + NamesOfPragmas() + "; SHOW ALL lists the settings.");
  }
  // PRAGMA name, PRAGMA name = value or PRAGMA name(value)
  size_t value = 0, last = 1;
  if (!end_of(2) && (tokens_[2].symbol == '(' || tokens_[2].symbol == '=')) {
    const bool is_call = tokens_[2].symbol == '(';
    value = end_of(3) || tokens_[3].symbol == ')' ? 0 : 3;
    last = 2;
    while (!end_of(last + 1)) ++last;
    if (is_call && tokens_[last].symbol != ')') value = last = 0;
    if (value == 0 && !is_call) last = 0;
  } else if (!end_of(2)) {
    last = 0;
  }
  if (last == 0)
    return SqlError("PRAGMA " + name + " is not as it should be", position,
                    "Write PRAGMA name, name = value or name(value).");
  const size_t begin = tokens_[0].begin, end = tokens_[last].end;
  const size_t stop = tokens_[2].symbol == '(' ? tokens_[last - 1].end : end;
  const std::string given =
      value == 0 ? "" : std::string(sql_.substr(tokens_[value].begin, stop - tokens_[value].begin));
  switch (pragma->kind) {
    case PragmaKind::kTable: {
      if (value == 0)
        return SqlError("PRAGMA " + name + " takes a name", position, "Write PRAGMA " + name + "('name').");
      std::string argument = NameOf(tokens_[value]);
      if (given.front() == '\'') argument = given.substr(1, given.size() - 2);
      std::string quoted;
      for (const char c : argument) quoted += c == '\'' ? "''" : std::string(1, c);
      Replace(begin, end, "SELECT * FROM pragma_" + name + "('" + quoted + "')");
      break;
    }
    case PragmaKind::kRows:
      Replace(begin, end, pragma->text);
      break;
    case PragmaKind::kSetting:
      Replace(begin, end,
              value == 0 ? std::string("SHOW ") + pragma->text : std::string("SET ") + pragma->text + " = " + given);
      break;
    case PragmaKind::kNotice:
      out_.dialect.notice = "PRAGMA: no effect, " + name + ": " + pragma->text;
      Replace(begin, end, "SELECT 1");
      break;
  }
  for (size_t n = 0; n <= last; ++n) tokens_[n].keyword = Keyword::kNone;
  return {};
}

}  // namespace tessera
