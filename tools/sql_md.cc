// The program `sql_md`: prints SQL.md, the SQL reference, with its tables made anew. A table stands between the lines
// "<!-- begin NAME ... -->" and "<!-- end NAME -->"; everything else is printed as it is. `make sql-reference` writes
// the file, and tests/run fails if the file is not what this program prints.
//
//   sql_md FILE
//
// The tables come from vm/program/types.def, compiler/query/functions.def, vm/program/window_functions.def and session/settings.def. A result or a class of types that
// is new there does not compile until it has its words here.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "session/settings.h"

namespace tessera {
namespace {

// ---- Words for what the tables say -------------------------------------------------------------------------------

constexpr const char* kClassAny = "any type";
constexpr const char* kClassBoolean = "BOOLEAN";
constexpr const char* kClassInteger = "integer";
constexpr const char* kClassDecimal = "DECIMAL";
constexpr const char* kClassReal = "REAL";
constexpr const char* kClassFloat = "float";
constexpr const char* kClassExact = "integer or DECIMAL";
constexpr const char* kClassNumber = "number";
constexpr const char* kClassDate = "DATE";
constexpr const char* kClassTimestamp = "TIMESTAMP";
constexpr const char* kClassDateTime = "DATE or TIMESTAMP";
constexpr const char* kClassTime = "TIME";
constexpr const char* kClassUuid = "UUID";
constexpr const char* kClassBytea = "BYTEA";
constexpr const char* kClassTimestampTz = "TIMESTAMPTZ";
constexpr const char* kClassMoment = "DATE, TIMESTAMP or TIMESTAMPTZ";
constexpr const char* kClassText = "text";
constexpr const char* kClassInterval = "INTERVAL";
constexpr const char* kClassEnum = "ENUM";

constexpr const char* kResultWider = "the wider integer type";
constexpr const char* kResultDecimalSum = "DECIMAL(max(p1-s1, p2-s2) + s + 1, s), s = max(s1, s2)";
constexpr const char* kResultDecimalProduct = "DECIMAL(p1 + p2, s1 + s2)";
constexpr const char* kResultDecimalRemainder = "DECIMAL(min(p1-s1, p2-s2) + s, s), s = max(s1, s2)";
constexpr const char* kResultFirst = "the argument's type";
constexpr const char* kResultRounded = "DECIMAL(p-s+1+n, n), n = min(s, digits) or 0";
constexpr const char* kResultWhole = "DECIMAL(p-s+1, 0)";
constexpr const char* kResultLongDecimal = "DECIMAL(38, s)";
constexpr const char* kResultBigint = "BIGINT";
constexpr const char* kResultInteger = "INTEGER";
constexpr const char* kResultReal = "REAL";
constexpr const char* kResultDouble = "DOUBLE PRECISION";
constexpr const char* kResultDate = "DATE";
constexpr const char* kResultTimestamp = "TIMESTAMP";
constexpr const char* kResultText = "TEXT";
constexpr const char* kResultInterval = "INTERVAL";
constexpr const char* kResultBytea = "BYTEA";

constexpr const char* kOperandsAsIs = "";
constexpr const char* kOperandsSameScale = "get one scale";
constexpr const char* kOperandsDecimals = "become DECIMAL";
constexpr const char* kOperandsDoubles = "become DOUBLE PRECISION";
constexpr const char* kOperandsTimestamps = "become TIMESTAMP";
constexpr const char* kOperandsMoments = "become TIMESTAMPTZ";
constexpr const char* kOperandsLengths = "by length, with 30 days a month";
constexpr const char* kOperandsParts = "part by part";
constexpr const char* kOperandsMoment = "become TIMESTAMP and microseconds";
constexpr const char* kOperandsTexts = "become TEXT";
constexpr const char* kOperandsSwapped = "";
constexpr const char* kOperandsSpan = "months, then days, then microseconds are added";

constexpr const char* kContextImplicit = "wherever an operand or a branch needs it";
constexpr const char* kContextAssignment = "also by INSERT; else by CAST";
constexpr const char* kContextExplicit = "by CAST and :: only";

constexpr const char* kTypeBoolean = "BOOLEAN";
constexpr const char* kTypeSmallint = "SMALLINT";
constexpr const char* kTypeInteger = "INTEGER";
constexpr const char* kTypeBigint = "BIGINT";
constexpr const char* kTypeReal = "REAL";
constexpr const char* kTypeDouble = "DOUBLE PRECISION";
constexpr const char* kTypeDecimal = "DECIMAL(p,s)";
constexpr const char* kTypeDate = "DATE";
constexpr const char* kTypeTimestamp = "TIMESTAMP";
constexpr const char* kTypeTime = "TIME";
constexpr const char* kTypeUuid = "UUID";
constexpr const char* kTypeBytea = "BYTEA";
constexpr const char* kTypeTimestampTz = "TIMESTAMP WITH TIME ZONE";
constexpr const char* kTypeText = "TEXT, VARCHAR(n)";
constexpr const char* kTypeInterval = "INTERVAL";

/// `|` would end a cell of the table.
std::string Cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

// ---- Tables ---------------------------------------------------------------------------------------------------------

std::string TypeNames() {
  struct Row {
    const char* name;
    std::string_view type;
  };
  constexpr Row kRows[] = {
#define TESSERA_TYPE_NAME(name, type) {#name, kType##type},
#include "vm/program/types.def"
  };
  // One line a type, in the order of the table.
  std::vector<std::pair<std::string_view, std::string>> lines;
  for (const Row& row : kRows) {
    auto at = std::find_if(lines.begin(), lines.end(), [&](const auto& line) { return line.first == row.type; });
    if (at == lines.end()) at = lines.insert(lines.end(), {row.type, {}});
    at->second += fmt::format("{}`{}`", at->second.empty() ? "" : ", ", row.name);
  }
  std::string out = "| type | names |\n|---|---|\n";
  for (const auto& [type, names] : lines) out += fmt::format("| {} | {} |\n", type, names);
  return out;
}

std::string Operators() {
  struct Row {
    const char *symbol, *left, *right, *operands, *result;
  };
  constexpr Row kRows[] = {
#define TESSERA_OPERATOR(symbol, left, right, function, operands, result) \
  {symbol, kClass##left, kClass##right, kOperands##operands, kResult##result},
#include "vm/program/types.def"
  };
  struct PrefixRow {
    const char *symbol, *operand, *result;
  };
  constexpr PrefixRow kPrefixes[] = {
#define TESSERA_PREFIX(symbol, operand, function, result) {symbol, kClass##operand, kResult##result},
#include "vm/program/types.def"
  };
  std::string out = "| operator | left | right | operands | result |\n|---|---|---|---|---|\n";
  for (const Row& row : kRows) {
    const bool of_first = std::string_view(row.result) == kResultFirst;
    out += fmt::format("| `{}` | {} | {} | {} | {} |\n", Cell(row.symbol), row.left, row.right, row.operands,
                       of_first ? "the moment's type" : row.result);
  }
  for (const PrefixRow& row : kPrefixes) {
    const bool of_operand = std::string_view(row.result) == kResultFirst;
    out += fmt::format("| `{}` | | {} | | {} |\n", Cell(row.symbol), row.operand,
                       of_operand ? "the operand's type" : row.result);
  }
  return out;
}

std::string Comparisons() {
  struct Row {
    const char *left, *right, *operands;
  };
  constexpr Row kRows[] = {
#define TESSERA_COMPARISON(left, right, operands) {kClass##left, kClass##right, kOperands##operands},
#include "vm/program/types.def"
  };
  std::string out = "| left | right | operands |\n|---|---|---|\n";
  for (const Row& row : kRows) out += fmt::format("| {} | {} | {} |\n", row.left, row.right, row.operands);
  return out;
}

/// Lines of one group, in the order of the groups' first rows.
class Groups {
 public:
  std::string& operator[](std::string_view group) {
    const auto at = std::find_if(lines_.begin(), lines_.end(), [&](const auto& g) { return g.first == group; });
    return at != lines_.end() ? at->second : lines_.emplace_back(group, "").second;
  }
  std::string Text() const {
    std::string out;
    for (const auto& [group, lines] : lines_) out += fmt::format("| **{}** | | |\n{}", group, lines);
    return out;
  }

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

std::string Functions() {
  struct Call {
    const char* name;
    int least, most;
    const char *first, *second, *others, *result;
  };
  struct Row {
    std::string_view group, form, text;
    const char* description;
    std::vector<Call> calls;
  };
  const std::vector<Row> rows = {
#define CALL(name, least, most, first, others, result) \
  {name, least, most, kClass##first, kClass##others, kClass##others, kResult##result},
#define CALL3(name, least, most, first, second, third, result) \
  {name, least, most, kClass##first, kClass##second, kClass##third, kResult##result},
#define FUNCTION(Name, Group, Form, Text, Binding, Translated, I, IX, F, W, T, Operands, Range, Errors, Nulls, \
                 Entries, Description, ...)                                                                    \
  {#Group, #Form, Text, Description, {__VA_ARGS__}},
#include "compiler/query/functions.def"
  };
  Groups groups;
  for (const Row& row : rows) {
    const char* description = row.description;
    std::string usage;
    if (row.form == "Infix") usage = fmt::format("x {} y", row.text);
    if (row.form == "Prefix") usage = fmt::format("{}{}x", row.text, row.text == "-" ? "" : " ");
    if (row.form == "Postfix") usage = fmt::format("x {}", row.text);
    if (row.form == "Own") usage = row.text;
    if (!usage.empty()) groups[row.group] += fmt::format("| `{}` | | {} |\n", Cell(usage), Cell(description));
    for (const Call& call : row.calls) {
      std::string arguments = call.first;
      for (int i = 1; i < call.most; ++i) {
        const bool optional = i >= call.least;
        arguments +=
            fmt::format("{}, {}{}", optional ? "[" : "", i == 1 ? call.second : call.others, optional ? "]" : "");
      }
      groups[row.group] +=
          fmt::format("| `{}`({}) | {} | {} |\n", call.name, arguments, call.result, Cell(description));
      description = "";  // said once
    }
  }
#define SYNTAX(name, Group, Usage, Result, Description, ...) \
  if (*Usage != 0) groups[#Group] += fmt::format("| `{}` | {} | {} |\n", Usage, Result, Cell(Description));
#include "compiler/query/functions.def"
  return "| function | result | |\n|---|---|---|\n" + groups.Text();
}

std::string Fields() {
  std::string out = "| field | |\n|---|---|\n";
#define DATE_FIELD(Name, name, Description) out += fmt::format("| `{}` | {} |\n", name, Description);
#define MADE_FIELD(name, Description) out += fmt::format("| `{}` | {} |\n", name, Description);
#include "compiler/query/functions.def"
  return out;
}

std::string Aggregates() {
  struct Call {
    const char *name, *argument, *result;
  };
  struct Row {
    const char *text, *description;
    std::vector<Call> calls;
  };
  const std::vector<Row> rows = {
#define OF(name, argument, result) {name, kClass##argument, kResult##result},
#define AGGREGATE(Name, Text, I, F, W, T, State, Count, Final, Duplicates, Empty, Description, ...) \
  {Text, Description, {__VA_ARGS__}},
#include "compiler/query/functions.def"
  };
  std::string out = "| aggregate | result | |\n|---|---|---|\n";
  for (const Row& row : rows) {
    const char* description = row.description;
    if (row.calls.empty() && *description != 0)
      out += fmt::format("| `{}(*)` | {} | {} |\n", row.text, kResultBigint, description);
    for (const Call& call : row.calls) {
      out += fmt::format("| `{}`({}) | {} | {} |\n", call.name, call.argument, call.result, description);
      description = "";
    }
  }
#define STATISTIC(name, Arguments, Result, Description) \
  out += fmt::format("| `{}`({}) | {} | {} |\n", name, Arguments, Result, Description);
#include "compiler/query/functions.def"
  return out;
}

std::string WindowFunctions() {
  struct Row {
    const char *usage, *result, *description;
    bool of_value;
  };
  constexpr Row kRows[] = {
#define WINDOW_FUNCTION(Name, name, Least, Most, Argument, Result, Usage, Description) \
  {Usage, kResult##Result, Description, std::string_view(#Argument) == "Value"},
#include "vm/program/window_functions.def"
  };
  std::string out = "| function | result | |\n|---|---|---|\n";
  for (const Row& row : kRows)
    out += fmt::format("| `{}` | {} | {} |\n", row.usage, row.of_value ? "type of x" : row.result, row.description);
  return out;
}

std::string Casts() {
  struct Row {
    const char *from, *to, *context;
  };
  constexpr Row kRows[] = {
#define TESSERA_CAST(from, to, context) {kClass##from, kClass##to, kContext##context},
#include "vm/program/types.def"
  };
  std::string out = "| from | to | applied |\n|---|---|---|\n";
  for (const Row& row : kRows) out += fmt::format("| {} | {} | {} |\n", row.from, row.to, row.context);
  return out;
}

std::string TableFunctions() {
  std::string out = "| function | rows |\n|---|---|\n";
#define TABLE_FUNCTION(Name, Bind, Arguments, Description) \
  out += fmt::format("| `{}{}` | {} |\n", Name, Arguments, Description);
#include "compiler/bind/table_functions.def"
  return out;
}

std::string SettingTable() {
  std::string out = "| setting | values | default | meaning |\n|---|---|---|---|\n";
  for (const Setting& setting : AllSettings()) {
    Settings settings;
    const std::string initial = setting.text(settings);
    const bool can_be_set = setting.set(&settings, initial).ok();  // `threads` has a default that is not a number
    out += fmt::format("| `{}` | {} | {} | {} |\n", setting.name, setting.values(), can_be_set ? initial : "",
                       setting.meaning);
  }
  return out;
}

// ---- The document ---------------------------------------------------------------------------------------------------

/// The document with its tables made anew; "" after a message if a table has no end or is not known.
std::string Document(std::istream& in) {
  const std::map<std::string, std::string (*)()> tables = {
      {"types", TypeNames},         {"operators", Operators},
      {"comparisons", Comparisons}, {"functions", Functions},
      {"fields", Fields},           {"aggregates", Aggregates},
      {"windows", WindowFunctions}, {"casts", Casts},
      {"settings", SettingTable},   {"table_functions", TableFunctions}};
  std::string out, table;
  size_t made = 0;
  for (std::string line; std::getline(in, line);) {
    if (!table.empty()) {
      if (line != "<!-- end " + table + " -->") continue;
      table.clear();
    } else if (line.starts_with("<!-- begin ")) {
      table = line.substr(11, line.find(' ', 11) - 11);
      const auto at = tables.find(table);
      if (at == tables.end()) {
        fmt::print(stderr, "sql_md: there is no table \"{}\"\n", table);
        return {};
      }
      out += line + "\n\n" + at->second() + "\n";
      ++made;
      continue;
    }
    out += line + "\n";
  }
  if (!table.empty() || made != tables.size()) {
    fmt::print(stderr, "sql_md: {} of {} tables{}\n", made, tables.size(),
               table.empty() ? "" : "; \"" + table + "\" has no end");
    return {};
  }
  return out;
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  std::ifstream in(argc == 2 ? argv[1] : "");
  if (!in) {
    std::fputs("Usage: sql_md FILE\n", stderr);
    return 2;
  }
  const std::string text = tessera::Document(in);
  if (text.empty()) return 1;
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0 ? 0 : 1;
}
