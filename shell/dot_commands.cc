#include "shell/dot_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <set>

#include "base/version.h"
#include "compiler/query/nearest_name.h"
#include "compiler/query/schema_text.h"
#include "shell/statistics_text.h"
#include "tablet/catalog/qualified_name.h"
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

/// LIKE's % and _, or the shell's * and ?: whichever people are used to.
bool Matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '%' || pattern[0] == '*') {
    for (size_t i = 0; i <= name.size(); ++i) {
      if (Matches(pattern.substr(1), name.substr(i))) return true;
    }
    return false;
  }
  return !name.empty() && (pattern[0] == '_' || pattern[0] == '?' || pattern[0] == name[0]) &&
         Matches(pattern.substr(1), name.substr(1));
}

/// "VmRSS" or "VmHWM" of this process in bytes; 0 if the system does not tell.
uint64_t ProcessMemory(const std::string& what) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(what + ":", 0) == 0) return std::strtoull(line.c_str() + what.size() + 1, nullptr, 10) * 1024;
  }
  return 0;
}

const char* OnOff(bool value) { return value ? "on" : "off"; }

}  // namespace

struct DotCommands::Command {
  const char* name;
  const char* arguments;
  size_t least, most;  ///< number of arguments
  Status (DotCommands::*run)(const Arguments&);
  const char* help;
};

const std::vector<DotCommands::Command>& DotCommands::Commands() {
  constexpr size_t kAny = SIZE_MAX;
  static const std::vector<Command> commands = {
      {"backup", "DIRECTORY", 1, 1, &DotCommands::Backup,
       "Copy the database, as it is now, into a new directory; others go on using it"},
      {"bail", "on|off", 0, 1, &DotCommands::Bail, "End a script, or a line at the prompt, at its first error (on)"},
      {"cache", "[clear]", 0, 1, &DotCommands::Cache,
       "Show what the caches of columns hold and have done, or forget what they hold"},
      {"device", "[auto|host|gpu]", 0, 1, &DotCommands::Device, "Show or choose where queries run"},
      {"devices", "", 0, 0, &DotCommands::Devices, "Show the processors and GPUs that queries can run on"},
      {"echo", "on|off", 0, 1, &DotCommands::Echo, "Print statements before they run"},
      {"exit", "[STATUS]", 0, 1, &DotCommands::Quit, "Leave"},
      {"explain", "[analyze] QUERY", 1, kAny, &DotCommands::Explain,
       "Show the plan and the program of a query, or also run it"},
      {"headers", "on|off", 0, 1, &DotCommands::Headers, "Print column names (not json and line, which always do)"},
      {"help", "[COMMAND]", 0, 1, &DotCommands::Help, "This list"},
      {"import", "[--header] [--delimiter C] FILE TABLE", 2, 5, &DotCommands::Import,
       "Load a CSV, Parquet or Arrow file into a table"},
      {"maxrows", "[N]", 0, 1, &DotCommands::MaxRows,
       "Rows of box and column before the middle is left out; 0: no limit"},
      {"memory", "", 0, 0, &DotCommands::Memory, "Show the memory of this process and the size of the tables"},
      {"mode", "[FORMAT]", 0, 1, &DotCommands::Mode,
       "Show or choose the format: box, column, csv, json, line, list, markdown"},
      {"nullvalue", "[TEXT]", 0, 1, &DotCommands::NullValue, "Text for NULL; without TEXT the format's own"},
      {"once", "FILE", 1, 1, &DotCommands::Once, "Write the next result to FILE"},
      {"output", "[FILE]", 0, 1, &DotCommands::Output, "Write results to FILE, or to standard output again"},
      {"quit", "[STATUS]", 0, 1, &DotCommands::Quit, "Leave"},
      {"read", "FILE", 1, 1, &DotCommands::Read, "Run the statements in FILE"},
      {"schema", "[TABLE]", 0, 1, &DotCommands::Schema, "Show the CREATE of the tables, views and macros that match"},
      {"separator", "[TEXT]", 0, 1, &DotCommands::Separator,
       "Text between columns, in csv and list; without TEXT the format's own"},
      {"tables", "[PATTERN]", 0, 1, &DotCommands::Tables, "List the tables and views"},
      {"timer", "on|off", 0, 1, &DotCommands::Timer, "Print wall, compile and kernel time after each statement"},
      {"verbosity", "[default|verbose]", 0, 1, &DotCommands::Verbosity,
       "Show errors as they are, or each with its SQLSTATE"},
      {"version", "", 0, 0, &DotCommands::Version, "Show the version"},
      {"width", "[N ...]", 0, kAny, &DotCommands::Width,
       "Widths of the columns of box and column; negative: right-aligned, 0: automatic"},
  };
  return commands;
}

Status DotCommands::Run(std::string_view line) {
  TESSERA_ASSIGN(Arguments words, Words(line.substr(1)));
  const std::string name = words.empty() ? "" : words[0];
  if (!words.empty()) words.erase(words.begin());
  std::vector<std::string_view> names;
  for (const Command& command : Commands()) {
    names.emplace_back(command.name);
    if (name != command.name) continue;
    const std::string usage = fmt::format("Usage: .{} {}", command.name, command.arguments);
    if (words.size() < command.least || words.size() > command.most) {
      return SqlError(
          fmt::format(".{}: {}", name, words.size() < command.least ? "an argument is missing" : "too many arguments"),
          -1, usage);
    }
    if (command.run == &DotCommands::Explain) {  // takes the rest of the line as it stands
      const size_t at = line.find_first_of(" \t");
      words = {std::string(line.substr(line.find_first_not_of(" \t", at)))};
    }
    Status status = (this->*command.run)(words);
    if (status.ok() || !status.hint().empty() || status.code() != ErrorCode::kSql) return status;
    return SqlError(status.message(), status.position(), usage);
  }
  const std::string nearest = NearestName(name, names);
  return SqlError("unknown command \"." + name + "\"", -1,
                  nearest.empty() ? "Enter .help for the list." : "Perhaps you meant ." + nearest + ".");
}

Status DotCommands::Print(const std::string& text) { return shell_->output_.Write(text); }

Status DotCommands::Switch(const std::string& word, bool* value) {
  if (word == "on" || word == "yes" || word == "1" || word == "true") {
    *value = true;
  } else if (word == "off" || word == "no" || word == "0" || word == "false") {
    *value = false;
  } else {
    return SqlError("\"" + word + "\" is neither on nor off");
  }
  return Status::Ok();
}

Status DotCommands::Backup(const Arguments& arguments) {
  return shell_->Execute("VACUUM INTO " + QuotedText(arguments[0]));
}

// A switch without an argument shows its state.
Status DotCommands::Bail(const Arguments& arguments) {
  if (arguments.empty()) return Print(fmt::format("bail is {}\n", OnOff(shell_->settings_.bail)));
  return Switch(arguments[0], &shell_->settings_.bail);
}

Status DotCommands::Echo(const Arguments& arguments) {
  if (arguments.empty()) return Print(fmt::format("echo is {}\n", OnOff(shell_->settings_.echo)));
  return Switch(arguments[0], &shell_->settings_.echo);
}

Status DotCommands::Verbosity(const Arguments& arguments) {
  bool& verbose = shell_->settings_.sqlstates;
  if (arguments.empty()) return Print(fmt::format("verbosity is {}\n", verbose ? "verbose" : "default"));
  if (arguments[0] != "default" && arguments[0] != "verbose")
    return SqlError("unknown verbosity \"" + arguments[0] + "\"");
  verbose = arguments[0] == "verbose";
  return Status::Ok();
}

Status DotCommands::Headers(const Arguments& arguments) {
  if (arguments.empty()) return Print(fmt::format("headers are {}\n", OnOff(shell_->settings_.headers)));
  return Switch(arguments[0], &shell_->settings_.headers);
}

Status DotCommands::Timer(const Arguments& arguments) {
  if (arguments.empty()) return Print(fmt::format("timer is {}\n", OnOff(shell_->settings_.timer)));
  return Switch(arguments[0], &shell_->settings_.timer);
}

Status DotCommands::Cache(const Arguments& arguments) {
  if (arguments.empty()) return shell_->Execute("SELECT * FROM tessera_cache()");
  if (arguments[0] != "clear") return SqlError("\"" + arguments[0] + "\" is not clear", -1, "Usage: .cache [clear]");
  return shell_->session_->DropCaches();
}

Status DotCommands::Device(const Arguments& arguments) {
  if (arguments.empty()) {
    const DeviceChoice device = shell_->session_->device();
    const char* name = device == DeviceChoice::kHost ? "host" : device == DeviceChoice::kGpu ? "gpu" : "auto";
    return Print(fmt::format("{}: {}\n", name, shell_->session_->DeviceDescription()));
  }
  if (arguments[0] == "auto") return shell_->session_->SetDevice(DeviceChoice::kAuto);
  if (arguments[0] == "host") return shell_->session_->SetDevice(DeviceChoice::kHost);
  if (arguments[0] == "gpu") return shell_->session_->SetDevice(DeviceChoice::kGpu);
  return SqlError("unknown device \"" + arguments[0] + "\"");
}

Status DotCommands::Devices(const Arguments&) {
  std::string out;
  for (const std::string& device : shell_->session_->Devices()) out += device + "\n";
  return Print(out);
}

Status DotCommands::Explain(const Arguments& arguments) { return shell_->Execute("EXPLAIN " + arguments[0]); }

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
  return shell_->Execute("COPY " + QuotedName(names[1]) + " FROM " + QuotedText(names[0]) + options);
}

Status DotCommands::MaxRows(const Arguments& arguments) {
  if (arguments.empty()) {
    return Print(fmt::format("{}\n", shell_->TextOptions().max_rows));
  }
  TESSERA_ASSIGN(const int64_t rows, Number(arguments[0]));
  if (rows < 0) return SqlError("a number of rows is not negative");
  shell_->settings_.max_rows = static_cast<size_t>(rows);
  return Status::Ok();
}

Status DotCommands::Memory(const Arguments&) {
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, shell_->session_->Tables());
  std::string out = fmt::format("process: {} now, {} at most\n", BytesText(static_cast<double>(ProcessMemory("VmRSS"))),
                                BytesText(static_cast<double>(ProcessMemory("VmHWM"))));
  for (const std::shared_ptr<const TableInfo>& table : snapshot->tables) {
    uint64_t bytes = 0;
    for (const ColumnStatistics& column : table->statistics) bytes += column.encoded_bytes;
    out += fmt::format("table {}: {} rows, {} in {} tablets\n", ShownName(table->schema.name), table->rows,
                       BytesText(static_cast<double>(bytes)), table->tablets.size());
  }
  const std::string gpu = shell_->session_->GpuMemoryDescription();
  if (!gpu.empty()) out += "gpu: " + gpu + "\n";
  return Print(out);
}

Status DotCommands::Mode(const Arguments& arguments) {
  if (arguments.empty()) return Print(std::string(ResultFormatName(shell_->TextOptions().format)) + "\n");
  const std::optional<ResultFormat> format = FindResultFormat(arguments[0]);
  if (!format) return SqlError("unknown format \"" + arguments[0] + "\"", -1, "One of " + ResultFormatNames() + ".");
  shell_->settings_.format = format;
  return Status::Ok();
}

Status DotCommands::NullValue(const Arguments& arguments) {
  shell_->settings_.null_text = arguments.empty() ? std::nullopt : std::optional(arguments[0]);
  return Status::Ok();
}

Status DotCommands::Once(const Arguments& arguments) { return shell_->output_.OpenFile(arguments[0], true); }

Status DotCommands::Output(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] != "stdout") return shell_->output_.OpenFile(arguments[0], false);
  shell_->output_.UseStandardOutput();
  return Status::Ok();
}

Status DotCommands::Quit(const Arguments& arguments) {
  if (!arguments.empty()) {
    TESSERA_ASSIGN(const int64_t status, Number(arguments[0]));
    if (status < 0 || status > 255) return SqlError("an exit status is 0 to 255");
    shell_->quit_status_ = static_cast<int>(status);
  }
  shell_->quit_ = true;
  return Status::Ok();
}

Status DotCommands::Read(const Arguments& arguments) {
  if (shell_->read_depth_ >= kMaxReadDepth) return SqlError("files that read files are nested too deep");
  ++shell_->read_depth_;
  Status status = shell_->RunFile(arguments[0]);
  --shell_->read_depth_;
  return status;
}

Status DotCommands::Schema(const Arguments& arguments) {
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, shell_->session_->Tables());
  // A name with its schema or alone.
  const auto is_asked = [&](const std::string& name) {
    return arguments.empty() || Matches(arguments[0], BaseName(name)) || Matches(arguments[0], ShownName(name));
  };
  std::string out;
  std::vector<std::string_view> names;
  std::vector<const TableInfo*> tables, materialized;
  for (const std::shared_ptr<const TableInfo>& table : snapshot->tables) {
    const TableSchema& schema = table->schema;
    const size_t of_schema = SchemaOfName(schema.name).size();
    names.push_back(std::string_view(schema.name).substr(of_schema > 0 ? of_schema + 1 : 0));
    if (schema.materialized) {
      materialized.push_back(table.get());
    } else if (is_asked(schema.name)) {
      tables.push_back(table.get());
    }
  }
  for (const std::string& schema : snapshot->names.schemas) {
    if (arguments.empty()) out += "CREATE SCHEMA " + QuotedName(schema) + ";\n";
  }
  for (const Sequence& sequence : snapshot->names.sequences) {
    if (sequence.table_id == 0 && is_asked(sequence.name)) out += CreateSequenceText(sequence);
  }
  out += CreateTablesText(std::move(tables), snapshot->names);
  const std::vector<SchemaEntry> entries =
      InOrderOfUse(snapshot->views, materialized, snapshot->macros, snapshot->names);
  for (const SchemaEntry& entry : entries) {
    names.emplace_back(entry.name);
    if (is_asked(entry.name)) out += entry.text;
  }
  if (out.empty() && !arguments.empty()) {
    const std::string nearest = NearestName(arguments[0], names);
    return SqlError("table \"" + arguments[0] + "\" does not exist", -1,
                    nearest.empty() ? ".tables lists the tables." : "Perhaps you meant table \"" + nearest + "\".");
  }
  return Print(out);
}

Status DotCommands::Separator(const Arguments& arguments) {
  if (!arguments.empty() && !IsColumnSeparator(arguments[0]))
    return SqlError("a separator is a text without double quotes and line breaks");
  shell_->settings_.separator = arguments.empty() ? "" : arguments[0];
  return Status::Ok();
}

Status DotCommands::Tables(const Arguments& arguments) {
  TESSERA_ASSIGN(const std::shared_ptr<const Snapshot> snapshot, shell_->session_->Tables());
  std::set<std::string> names;
  for (const std::shared_ptr<const TableInfo>& table : snapshot->tables) names.insert(ShownName(table->schema.name));
  for (const std::shared_ptr<const ViewSchema>& view : snapshot->views) names.insert(ShownName(view->name));
  std::string out;
  for (const std::string& name : names) {
    if (arguments.empty() || Matches(arguments[0], name)) out += name + "\n";
  }
  return Print(out);
}

Status DotCommands::Version(const Arguments&) { return Print(fmt::format("tessera {}\n", kVersion)); }

Status DotCommands::Width(const Arguments& arguments) {
  std::vector<int> widths;
  for (const std::string& argument : arguments) {
    TESSERA_ASSIGN(const int64_t width, Number(argument));
    widths.push_back(static_cast<int>(std::clamp<int64_t>(width, -10'000, 10'000)));
  }
  shell_->settings_.widths = std::move(widths);
  return Status::Ok();
}

}  // namespace tessera
