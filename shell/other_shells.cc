#include "shell/other_shells.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>
#include <vector>

#include "base/lower_case.h"

namespace tessera {
namespace {

using Kind = Habit::Kind;

constexpr BackslashCommand kCommands[] = {
    {"!", Kind::kDot, ".shell"},
    {"?", Kind::kDot, ".help"},
    {"C", Kind::kNone, "Results have no title here; .print TEXT prints one."},
    {"H", Kind::kDot, ".mode html"},
    {"a", Kind::kNone, "Enter .mode list, or .mode box."},
    {"c", Kind::kDot, ".open"},
    {"cd", Kind::kDot, ".cd"},
    {"connect", Kind::kDot, ".open"},
    {"conninfo", Kind::kDot, ".databases"},
    {"copy", Kind::kSql, "COPY"},
    {"copyright", Kind::kDot, ".version"},
    {"crosstabview", Kind::kNone, "Write PIVOT: SQL.md has it."},
    {"d", Kind::kDot, ".describe"},
    {"dT", Kind::kDot, ".list types"},
    {"db", Kind::kNone, "There are no tablespaces: a database is one directory, see .databases."},
    {"df", Kind::kDot, ".list functions"},
    {"dg", Kind::kDot, ".list roles"},
    {"di", Kind::kDot, ".indexes"},
    {"dm", Kind::kDot, ".list matviews"},
    {"dn", Kind::kDot, ".list schemas"},
    {"dp", Kind::kDot, ".list grants"},
    {"ds", Kind::kDot, ".list sequences"},
    {"dt", Kind::kDot, ".list tables"},
    {"du", Kind::kDot, ".list roles"},
    {"dv", Kind::kDot, ".list views"},
    {"dx", Kind::kNone, "There are no extensions."},
    {"e", Kind::kNone, "The arrow that points up brings a statement back; .read FILE runs what an editor wrote."},
    {"echo", Kind::kDot, ".print"},
    {"encoding", Kind::kNone, "Texts are UTF-8."},
    {"f", Kind::kDot, ".separator"},
    {"G", Kind::kNone, "It runs the statement that it ends."},
    {"g", Kind::kNone, "It runs the statement that it ends, as a semicolon does."},
    {"gdesc", Kind::kNone, "It ends a query, and shows the columns of its result."},
    {"gexec", Kind::kNone, "Write the statements to a file with .once FILE, and run it with .read FILE."},
    {"gset", Kind::kNone, "There are no variables: use a subquery, or CREATE TEMP TABLE."},
    {"gx", Kind::kNone, "It runs the statement that it ends, and shows its rows in lines."},
    {"h", Kind::kNone, "SQL.md is the reference of statements; .help lists the commands of the shell."},
    {"help", Kind::kDot, ".help"},
    {"i", Kind::kDot, ".read"},
    {"if", Kind::kNone, "Scripts have no conditions: use CREATE ... IF NOT EXISTS, or a shell around tessera."},
    {"include", Kind::kDot, ".read"},
    {"ir", Kind::kDot, ".read"},
    {"l", Kind::kDot, ".databases"},
    {"list", Kind::kDot, ".databases"},
    {"o", Kind::kDot, ".output"},
    {"out", Kind::kDot, ".output"},
    {"p", Kind::kNone, "What was typed is on the screen; the arrow that points up brings a statement back."},
    {"password", Kind::kNone, "ALTER ROLE name PASSWORD '...' changes the password of a server's role."},
    {"prompt", Kind::kNone, "There are no variables: use a shell around tessera."},
    {"pset", Kind::kNone, "Enter .mode, .nullvalue, .headers, .separator, .width or .pager; .show shows them."},
    {"q", Kind::kDot, ".quit"},
    {"qecho", Kind::kDot, ".print"},
    {"quit", Kind::kDot, ".quit"},
    {"r", Kind::kForget, "forgets what was typed of a statement"},
    {"reset", Kind::kForget, "forgets what was typed of a statement"},
    {"restrict", Kind::kNothing, "nothing: pg_dump writes it, against commands that stand in data"},
    {"s", Kind::kNone, "Statements that were typed are in ~/.tessera_history."},
    {"set", Kind::kNone,
     "There are no variables; SET name = value changes a setting, and .bail on ends scripts at errors."},
    {"t", Kind::kDot, ".headers toggle"},
    {"timing", Kind::kDot, ".timer toggle"},
    {"unrestrict", Kind::kNothing, "nothing, as restrict"},
    {"unset", Kind::kNone, "There are no variables; RESET name sets a setting back."},
    {"w", Kind::kNone, "Statements that were typed are in ~/.tessera_history."},
    {"watch", Kind::kNone,
     "It ends a statement, and runs it every two seconds, or as often as it says: \\watch 10 c=3."},
    {"x", Kind::kDot, ".expanded toggle"},
    {"z", Kind::kDot, ".list grants"},
};

std::string_view Trimmed(std::string_view text, std::string_view blanks) {
  const size_t begin = text.find_first_not_of(blanks);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::string LowerWord(std::string_view line) { return LowerCase(Trimmed(line, " \t\r\n;")); }

const BackslashCommand* Find(std::string_view name) {
  const auto* const at = std::ranges::find(kCommands, name, [](const BackslashCommand& c) { return c.name; });
  return at == std::end(kCommands) ? nullptr : at;
}

/// psql's + asks for more of what is listed, its S for the system's own.
const BackslashCommand* FindWithMarks(std::string_view name) {
  const BackslashCommand* command = Find(name);
  while (command == nullptr && name.size() > 1 && (name.back() == '+' || name.back() == 'S')) {
    name.remove_suffix(1);
    command = Find(name);
  }
  return command;
}

Result<Habit> ReadBackslash(std::string_view line) {
  const size_t end = std::min(line.find_first_of(" \t;", 1), line.size());
  // \!ls and \?options need no blank.
  const size_t name_end = line.size() > 1 && (line[1] == '!' || line[1] == '?') ? 2 : end;
  const std::string_view name = line.substr(1, name_end - 1);
  std::string_view rest = Trimmed(line.substr(name_end), " \t\r");
  if (name == ".") return SqlError("\\. ends the rows of COPY ... FROM STDIN, and there is none");
  const BackslashCommand* const command = FindWithMarks(name);
  if (command == nullptr || command->kind == Kind::kNone) {
    return SqlError((command == nullptr ? "unknown command \"\\" : "there is no \\") + std::string(name) +
                        (command == nullptr ? "\"" : ""),
                    -1, command == nullptr ? "Enter .help for the list of commands." : command->text);
  }
  if (command->kind == Kind::kSql) {
    return Habit{Kind::kSql, command->text + (" " + std::string(rest)) + (rest.ends_with(';') ? "" : ";")};
  }
  if (command->kind != Kind::kDot) return Habit{command->kind, {}};
  if (name_end == end) rest = Trimmed(rest, "; \t");
  std::string text = command->text;
  if (!rest.empty()) {
    if (text.ends_with(" toggle")) text.erase(text.rfind(' '));
    text += " " + std::string(rest);
  }
  // What .describe and .databases of psql's fingers take is none of ours.
  if (text.starts_with(".databases")) text = ".databases";
  return Habit{Kind::kDot, std::move(text)};
}

/// A number of seconds, i= and such a number, or c= and how often.
void TakeWatchWord(std::string_view word, RunMark* mark) {
  const bool counts = word.starts_with("c=");
  if (counts || word.starts_with("i=")) word.remove_prefix(2);
  double number = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  constexpr double kMost = 1e6;
  const bool is_number = error == std::errc() && end == word.data() + word.size() && number >= 0 && number <= kMost;
  if (!is_number || (counts && (number < 1 || number != std::floor(number)))) {
    mark->seconds = -1;
  } else if (counts) {
    mark->times = static_cast<int64_t>(number);
  } else if (mark->seconds >= 0) {
    mark->seconds = number;
  }
}

}  // namespace

std::span<const BackslashCommand> BackslashCommands() { return kCommands; }

Result<Habit> ReadHabit(std::string_view line, bool words) {
  const std::string_view text = Trimmed(line, " \t\r\n");
  if (text.starts_with('\\')) return ReadBackslash(text);
  if (!words) return Habit{};
  const std::string word = LowerWord(text);
  if (word == "help" || word == "?") return Habit{Kind::kDot, ".help"};
  if (word == "exit" || word == "quit") return Habit{Kind::kDot, ".quit"};
  return Habit{};
}

bool IsWayOut(std::string_view line) {
  const std::string word = LowerWord(line);
  return word == "help" || word == "exit" || word == "quit";
}

RunMark FindRunMark(std::string_view line) {
  const std::string_view text = Trimmed(line, " \t\r\n");
  RunMark mark;
  // (Of the last line: this is asked after each line of a long statement.)
  const size_t last_line = text.rfind('\n') + 1;
  const size_t in_line = text.substr(last_line).rfind('\\');
  if (in_line == text.npos) return mark;
  const size_t at = last_line + in_line;
  std::vector<std::string_view> words;
  for (std::string_view rest = text.substr(at); !rest.empty();) {
    const size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    words.push_back(rest.substr(0, end));
    rest = Trimmed(rest.substr(end), " \t");
  }
  if (words[0] == "\\gx" || words[0] == "\\G") {
    mark.kind = RunMark::Kind::kAsLines;
  } else if (words[0] == "\\gdesc") {
    mark.kind = RunMark::Kind::kDescribe;
  } else if (words[0] == "\\watch") {
    mark.kind = RunMark::Kind::kWatch;
    for (const std::string_view word : std::span(words).subspan(1)) TakeWatchWord(word, &mark);
  } else if (words[0] != "\\g") {
    return mark;
  }
  if (words.size() > 1 && mark.kind != RunMark::Kind::kWatch) return mark;
  mark.bytes = line.size() - static_cast<size_t>(text.data() + at - line.data());
  return mark;
}

}  // namespace tessera
