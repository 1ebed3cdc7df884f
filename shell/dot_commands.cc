#include "shell/dot_commands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "base/version.h"
#include "compiler/query/nearest_name.h"
#include "compiler/query/schema_text.h"
#include "shell/child_process.h"
#include "tablet/files/io_error.h"
#include "tablet/load/file_spec.h"

namespace tessera {
namespace {

constexpr int kMaxReadDepth = 16;

/// The words of a dot command: separated by blanks, 'as they stand' or "with \n, \t, \" and \\".
Result<std::vector<std::string>> Words(std::string_view line) {
  std::vector<std::string> words;
  for (size_t i = 0; i < line.size();) {
    const char c = line[i];
    if (c == ' ' || c == '\t' || c == '\r') {
      ++i;
      continue;
    }
    std::string word;
    if (c != '\'' && c != '"') {
      for (; i < line.size() && line[i] != ' ' && line[i] != '\t' && line[i] != '\r'; ++i) word += line[i];
      words.push_back(std::move(word));
      continue;
    }
    for (++i;; ++i) {
      if (i >= line.size()) return SqlError("a quote is not closed");
      if (line[i] == c) break;
      if (c == '"' && line[i] == '\\' && i + 1 < line.size()) {
        ++i;
        word += line[i] == 'n' ? '\n' : line[i] == 't' ? '\t' : line[i];
      } else {
        word += line[i];
      }
    }
    ++i;
    words.push_back(std::move(word));
  }
  return words;
}

Result<int64_t> Number(const std::string& text) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || at != end) return SqlError("\"" + text + "\" is not a number");
  return number;
}

const char* OnOff(bool value) { return value ? "on" : "off"; }

struct RefusedCommand {
  const char* name;
  const char* hint;
};
constexpr RefusedCommand kRefused[] = {
#define REFUSED_COMMAND(name, hint) {name, hint},
#include "shell/dot_commands.def"
};

}  // namespace

enum class Reach : uint8_t { kShell, kFiles, kLocal };

struct DotCommands::Command {
  const char* name;
  const char* arguments;
  size_t least, most;  ///< number of arguments
  Reach reach;
  Status (DotCommands::*run)(const Arguments&);
  const char* help;
};

std::span<const DotCommands::Command> DotCommands::Commands() {
  constexpr size_t kAny = SIZE_MAX;
  static constexpr Command kCommands[] = {
#define DOT_COMMAND(name, arguments, least, most, reach, Member, help) \
  {name, arguments, least, most, Reach::k##reach, &DotCommands::Member, help},
#include "shell/dot_commands.def"
  };
  return kCommands;
}

std::vector<std::string> DotCommands::Names() {
  std::vector<std::string> names;
  for (const Command& command : Commands()) names.emplace_back(command.name);
  return names;
}

Status DotCommands::Unknown(const std::string& name) {
  for (const RefusedCommand& refused : kRefused) {
    if (name == refused.name) return SqlError("there is no ." + name, -1, refused.hint);
  }
  std::vector<std::string_view> names;
  for (const Command& command : Commands()) names.emplace_back(command.name);
  const std::string nearest = NearestName(name, names);
  return SqlError("unknown command \"." + name + "\"", -1,
                  nearest.empty() ? "Enter .help for the list." : "Perhaps you meant ." + nearest + ".");
}

const DotCommands::Command* DotCommands::Find(const std::string& name) {
  for (const Command& command : Commands()) {
    if (name == command.name) return &command;
  }
  // Other spellings of sqlite3 and duckdb.
  return name == "header" ? Find("headers") : name == "index" || name == "indices" ? Find("indexes") : nullptr;
}

Status DotCommands::Run(std::string_view line) {
  TESSERA_ASSIGN(Arguments words, Words(line.substr(1)));
  const std::string name = words.empty() ? "" : words[0];
  if (!words.empty()) words.erase(words.begin());
  const Command* const command = Find(name);
  if (command == nullptr) return Unknown(name);
  const std::string usage = fmt::format("Usage: .{} {}", command->name, command->arguments);
  if (words.size() < command->least || words.size() > command->most) {
    return SqlError(
        fmt::format(".{}: {}", name, words.size() < command->least ? "an argument is missing" : "too many arguments"),
        -1, usage);
  }
  if (command->reach == Reach::kFiles && shell_.line.script.safe) {
    return Status(ErrorKind::kInsufficientPrivilege, "." + name + " is refused by --safe",
                  "It reads or writes files or starts programs; start tessera without --safe.");
  }
  if (command->reach == Reach::kLocal && shell_.session->local() == nullptr) return RefuseAtServer("." + name);
  rest_ = line.substr(std::min(line.find_first_of(" \t"), line.size()));
  rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
  while (rest_.ends_with('\r') || rest_.ends_with(' ')) rest_.remove_suffix(1);
  Status status = (this->*command->run)(words);
  if (status.ok() || !status.hint().empty() || status.code() != ErrorCode::kSql) return status;
  return SqlError(status.message(), status.position(), usage);
}

Status DotCommands::RefuseAtServer(const std::string& what) {
  return Unsupported(what + " is about a database of this process, and this shell speaks to a server", -1,
                     "Start tessera with the directory, where the server runs.");
}

Status DotCommands::Print(const std::string& text) { return shell_.output.Write(text); }

// Without a word it shows the state.
Status DotCommands::Switch(const Arguments& arguments, const char* what, bool* value) {
  if (arguments.empty()) return Print(fmt::format("{} {}\n", what, OnOff(*value)));
  const std::string& word = arguments[0];
  if (word == "on" || word == "yes" || word == "1" || word == "true") {
    *value = true;
  } else if (word == "off" || word == "no" || word == "0" || word == "false") {
    *value = false;
  } else if (word == "toggle") {  // what psql's commands do without a word
    *value = !*value;
    ShellState::Message(fmt::format("{} {}.", what, OnOff(*value)));
  } else {
    return SqlError("\"" + word + "\" is neither on nor off");
  }
  return Status::Ok();
}

Status DotCommands::Backup(const Arguments& arguments) {
  return shell_.Execute("VACUUM INTO " + QuotedText(arguments[0]));
}

Status DotCommands::Bail(const Arguments& arguments) { return Switch(arguments, "bail is", &shell_.settings.bail); }

Status DotCommands::Changes(const Arguments& arguments) {
  return Switch(arguments, "changes are", &shell_.settings.changes);
}

Status DotCommands::Echo(const Arguments& arguments) { return Switch(arguments, "echo is", &shell_.settings.echo); }

Status DotCommands::Expanded(const Arguments& arguments) {
  return Switch(arguments, "expanded is", &shell_.settings.expanded);
}

Status DotCommands::Headers(const Arguments& arguments) {
  return Switch(arguments, "headers are", &shell_.settings.headers);
}

Status DotCommands::Timer(const Arguments& arguments) { return Switch(arguments, "timer is", &shell_.settings.timer); }

Status DotCommands::Verbosity(const Arguments& arguments) {
  bool& verbose = shell_.settings.sqlstates;
  if (arguments.empty()) return Print(fmt::format("verbosity is {}\n", verbose ? "verbose" : "default"));
  if (arguments[0] != "default" && arguments[0] != "verbose")
    return SqlError("unknown verbosity \"" + arguments[0] + "\"");
  verbose = arguments[0] == "verbose";
  return Status::Ok();
}

Status DotCommands::Cache(const Arguments& arguments) {
  if (arguments.empty()) return shell_.Execute("SELECT * FROM tessera_cache()");
  if (arguments[0] != "clear") return SqlError("\"" + arguments[0] + "\" is not clear", -1, "Usage: .cache [clear]");
  Session* const session = shell_.session->local();
  return session != nullptr ? session->DropCaches() : RefuseAtServer(".cache clear");
}

Status DotCommands::Device(const Arguments& arguments) {
  Session* const session = shell_.session->local();
  if (session == nullptr)
    return arguments.empty() ? shell_.Execute("SHOW device") : RunQuietly("SET device = " + QuotedText(arguments[0]));
  if (arguments.empty()) {
    const DeviceChoice device = session->device();
    const char* name = device == DeviceChoice::kHost ? "host" : device == DeviceChoice::kGpu ? "gpu" : "auto";
    return Print(fmt::format("{}: {}\n", name, session->DeviceDescription()));
  }
  if (arguments[0] == "auto") return session->SetDevice(DeviceChoice::kAuto);
  if (arguments[0] == "host") return session->SetDevice(DeviceChoice::kHost);
  if (arguments[0] == "gpu") return session->SetDevice(DeviceChoice::kGpu);
  return SqlError("unknown device \"" + arguments[0] + "\"");
}

Status DotCommands::Devices(const Arguments&) {
  std::string out;
  for (const std::string& device : shell_.session->local()->Devices()) out += device + "\n";
  return Print(out);
}

Status DotCommands::Explain(const Arguments&) { return shell_.Execute("EXPLAIN " + std::string(rest_)); }

Status DotCommands::Help(const Arguments& arguments) {
  std::string out;
  for (const Command& command : Commands()) {
    if (!arguments.empty() && arguments[0] != command.name && arguments[0] != "." + std::string(command.name)) continue;
    const std::string usage = fmt::format(".{} {}", command.name, command.arguments);
    out += fmt::format("{:<46} {}\n", usage, command.help);
  }
  if (out.empty()) return SqlError("unknown command \"" + arguments[0] + "\"");
  if (arguments.empty()) out += "\nStatements end with a semicolon. Ctrl-C cancels, Ctrl-D leaves.\n";
  return Print(out);
}

Status DotCommands::Import(const Arguments& arguments) {
  std::string options;
  std::vector<std::string> names;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--header") {
      options += ", HEADER true";
    } else if (arguments[i] == "--delimiter" && i + 1 < arguments.size()) {
      options += ", DELIMITER " + QuotedText(arguments[++i]);
    } else if (arguments[i].rfind("--", 0) == 0) {
      return SqlError("unknown option \"" + arguments[i] + "\"");
    } else {
      names.push_back(arguments[i]);
    }
  }
  if (names.size() != 2) return SqlError(".import takes a file and a table");
  // (COPY reads what else it may be from its name.)
  const std::string format = IsColumnar(FormatOfName(names[0])) ? "" : "FORMAT csv";
  options = format + (format.empty() && !options.empty() ? options.substr(2) : options);
  if (!options.empty()) options = " (" + options + ")";
  const std::string copy = "COPY " + QuotedName(names[1]) + " FROM " + QuotedText(names[0]) + options;
  return shell_.session->local() != nullptr ? shell_.Execute(copy) : shell_.CopyThroughServer(copy);
}

Status DotCommands::MaxRows(const Arguments& arguments) {
  if (arguments.empty()) {
    return Print(fmt::format("{}\n", shell_.TextOptions().max_rows));
  }
  TESSERA_ASSIGN(const int64_t rows, Number(arguments[0]));
  if (rows < 0) return SqlError("a number of rows is not negative");
  shell_.settings.max_rows = static_cast<size_t>(rows);
  return Status::Ok();
}

Status DotCommands::Mode(const Arguments& arguments) {
  if (arguments.empty()) return Print(std::string(ResultFormatName(shell_.TextOptions().format)) + "\n");
  const std::optional<ResultFormat> format = FindResultFormat(arguments[0]);
  if (!format) return SqlError("unknown format \"" + arguments[0] + "\"", -1, "One of " + ResultFormatNames() + ".");
  if (arguments.size() > 1 && *format != ResultFormat::kInsert)
    return SqlError("only .mode insert takes the name of a table");
  shell_.settings.format = format;
  shell_.settings.expanded = false;
  shell_.settings.table = arguments.size() > 1 ? arguments[1] : "";
  return Status::Ok();
}

Status DotCommands::Columns(const Arguments&) { return Mode({"column"}); }

Status DotCommands::Rows(const Arguments&) { return Mode({"box"}); }

Status DotCommands::NullValue(const Arguments& arguments) {
  shell_.settings.null_text = arguments.empty() ? std::nullopt : std::optional(arguments[0]);
  return Status::Ok();
}

Status DotCommands::Open(const Arguments& arguments) {
  return shell_.OpenDatabase(arguments.empty() || arguments[0] == ":memory:" ? "" : arguments[0]);
}

Status DotCommands::SendTo(const Arguments& arguments, bool once) {
  // A command may have blanks in it, with which the rest of the line is meant.
  if (rest_.starts_with('|')) return shell_.output.OpenPipe(std::string(rest_.substr(1)), once);
  if (arguments.size() > 1) return SqlError("too many arguments", -1, "Put quotes around a name with blanks.");
  return shell_.output.OpenFile(arguments[0], once);
}

Status DotCommands::Once(const Arguments& arguments) { return SendTo(arguments, true); }

Status DotCommands::Output(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] != "stdout") return SendTo(arguments, false);
  shell_.output.UseStandardOutput();
  return Status::Ok();
}

Status DotCommands::Pager(const Arguments& arguments) {
  ShellSettings& settings = shell_.settings;
  const auto command = [&] { return settings.pager_command.empty() ? "less" : settings.pager_command; };
  if (arguments.empty()) return Print(settings.pager ? "pager is " + command() + "\n" : std::string("pager is off\n"));
  settings.pager = arguments[0] != "off";
  if (settings.pager && arguments[0] != "on") settings.pager_command = rest_;
  settings.pager_command = command();
  return Status::Ok();
}

Result<std::string> DotCommands::QueryOr(std::string_view text) {
  while (text.ends_with(';') || text.ends_with(' ')) text.remove_suffix(1);
  if (!text.empty()) return std::string(text);
  if (!shell_.last_query.empty()) return shell_.last_query;
  return SqlError("there has been no query yet", -1, "Write it after the command.");
}

Status DotCommands::Plot(const Arguments&) {
  TESSERA_ASSIGN(const std::string query, QueryOr(rest_));
  const std::optional<ResultFormat> before = std::exchange(shell_.settings.format, ResultFormat::kPlot);
  Status status = shell_.Execute(query);
  shell_.settings.format = before;
  return status;
}

Status DotCommands::Profile(const Arguments& arguments) {
  // The query begins after the name of the file, which may have quotes.
  const bool quoted = rest_.starts_with('\'') || rest_.starts_with('"');
  const size_t end = quoted ? rest_.find(rest_[0], 1) : rest_.find_first_of(" \t");
  std::string_view text = end == rest_.npos ? std::string_view() : rest_.substr(end + 1);
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  TESSERA_ASSIGN(const std::string query, QueryOr(text));
  TESSERA_TRY(shell_.output.OpenFile(arguments[0], true));
  const std::optional<ResultFormat> before = std::exchange(shell_.settings.format, ResultFormat::kHtml);
  Status status = shell_.Execute("EXPLAIN (ANALYZE, FORMAT html) " + query);
  shell_.settings.format = before;
  return status;
}

Status DotCommands::PrintWords(const Arguments& arguments) {
  return Print(fmt::format("{}\n", fmt::join(arguments, " ")));
}

Status DotCommands::Prompt(const Arguments& arguments) {
  shell_.settings.prompt = arguments.empty() ? ShellSettings::kPrompt : arguments[0];
  shell_.settings.continued_prompt = arguments.size() > 1 ? arguments[1] : "";
  return Status::Ok();
}

Status DotCommands::ChangeDirectory(const Arguments& arguments) {
  if (!shell_.line.session.directory.empty() && shell_.line.session.directory[0] != '/')
    return SqlError("the database was opened by a name that begins in this directory", -1,
                    "Enter .open with its whole name first, or start tessera with it.");
  if (chdir(arguments[0].c_str()) == 0) return Status::Ok();
  return IoError("could not change to", arguments[0], errno);
}

Status DotCommands::System(const Arguments&) {
  TESSERA_ASSIGN(const int status, RunCommand(std::string(rest_)));
  if (status != 0) ShellState::Message(fmt::format("The command ended with status {}.", status));
  return Status::Ok();
}

Status DotCommands::MaxWidth(const Arguments& arguments) {
  if (arguments.empty()) return Print(fmt::format("{}\n", shell_.TextOptions().max_width));
  TESSERA_ASSIGN(const int64_t width, Number(arguments[0]));
  if (width < 0) return SqlError("a width is not negative");
  shell_.settings.max_width = static_cast<size_t>(width);
  return Status::Ok();
}

Status DotCommands::Quit(const Arguments& arguments) {
  if (!arguments.empty()) {
    TESSERA_ASSIGN(const int64_t status, Number(arguments[0]));
    if (status < 0 || status > 255) return SqlError("an exit status is 0 to 255");
    shell_.quit_status = static_cast<int>(status);
  }
  shell_.quit = true;
  return Status::Ok();
}

Status DotCommands::Show(const Arguments&) {
  const ShellSettings& settings = shell_.settings;
  const ResultTextOptions options = shell_.TextOptions();
  const auto given = [](const std::string& text) {
    return text.empty() ? std::string("the format's own") : "\"" + text + "\"";
  };
  std::string out;
  const auto line = [&](const char* name, const std::string& value) {
    out += fmt::format("{:>10}: {}\n", name, value);
  };
  line("bail", OnOff(settings.bail));
  line("changes", OnOff(settings.changes));
  line("echo", OnOff(settings.echo));
  line("expanded", OnOff(settings.expanded));
  line("headers", OnOff(settings.headers));
  line("maxrows", std::to_string(options.max_rows));
  line("maxwidth", std::to_string(options.max_width));
  line("mode", ResultFormatName(options.format) + (settings.table.empty() ? "" : " " + settings.table));
  line("nullvalue", settings.null_text ? "\"" + *settings.null_text + "\"" : "the format's own");
  line("output", shell_.output.Description());
  line("pager", settings.pager ? settings.pager_command : "off");
  line("separator", given(settings.separator));
  line("timer", OnOff(settings.timer));
  line("verbosity", settings.sqlstates ? "verbose" : "default");
  line("width", fmt::format("{}", fmt::join(settings.widths, " ")));
  return Print(out);
}

Status DotCommands::Read(const Arguments& arguments) {
  if (shell_.read_depth >= kMaxReadDepth) return SqlError("files that read files are nested too deep");
  ++shell_.read_depth;
  Status status = run_file_(arguments[0]);
  --shell_.read_depth;
  return status;
}

Status DotCommands::Separator(const Arguments& arguments) {
  if (!arguments.empty() && !IsColumnSeparator(arguments[0]))
    return SqlError("a separator is a text without double quotes and line breaks");
  shell_.settings.separator = arguments.empty() ? "" : arguments[0];
  return Status::Ok();
}

Status DotCommands::Version(const Arguments&) { return Print(fmt::format("tessera {}\n", kVersion)); }

Status DotCommands::Width(const Arguments& arguments) {
  std::vector<int> widths;
  for (const std::string& argument : arguments) {
    TESSERA_ASSIGN(const int64_t width, Number(argument));
    widths.push_back(static_cast<int>(std::clamp<int64_t>(width, -10'000, 10'000)));
  }
  shell_.settings.widths = std::move(widths);
  return Status::Ok();
}

}  // namespace tessera
