#include "shell/command_line.h"

#include <getopt.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstring>

#include "compiler/query/nearest_name.h"
#include "session/settings.h"

namespace tessera {
namespace {

Status Usage(const std::string& message) { return SqlError(message); }

/// A size that is more than 0.
Result<uint64_t> Size(const std::string& name, const char* text) {
  const std::optional<uint64_t> bytes = ParseSize(text);
  if (bytes && *bytes > 0) return *bytes;
  return Usage(name + " takes bytes, or a number with kb, mb, gb or tb: not \"" + text + "\"");
}

Result<int> Count(const std::string& name, std::string_view text, int least, int most) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error == std::errc{} && end == text.data() + text.size() && n >= least && n <= most) return n;
  return Usage(name + " takes a number from " + std::to_string(least) + " to " + std::to_string(most) + ": not \"" +
               std::string(text) + "\"");
}

constexpr int kMostRuns = 1'000'000, kMostRanks = 65'536;

/// What an option does. `name`: with its dashes; `value`: nullptr for a switch.
using Take = Status (*)(const std::string& name, const char* value, CommandLine* line);

// Where in the command line a part of it is.
OutputOptions& PartOf(CommandLine* line, const OutputOptions*) { return line->output; }
MeasureOptions& PartOf(CommandLine* line, const MeasureOptions*) { return line->measure; }
ScriptOptions& PartOf(CommandLine* line, const ScriptOptions*) { return line->script; }
LaunchOptions& PartOf(CommandLine* line, const LaunchOptions*) { return line->launch; }
SessionOptions& PartOf(CommandLine* line, const SessionOptions*) { return line->session; }
ServerAddress& PartOf(CommandLine* line, const ServerAddress*) { return line->address; }
server::ServerOptions& PartOf(CommandLine* line, const server::ServerOptions*) { return line->server; }
CommandLine& PartOf(CommandLine* line, const CommandLine*) { return *line; }

template <class Part, class T>
T& ValueOf(CommandLine* line, T Part::*field) {
  return PartOf(line, static_cast<const Part*>(nullptr)).*field;
}

template <auto field, auto value>
Status Assign(const std::string&, const char*, CommandLine* line) {
  ValueOf(line, field) = value;
  return Status::Ok();
}

template <auto field>
Status TakeText(const std::string&, const char* value, CommandLine* line) {
  ValueOf(line, field) = value;
  return Status::Ok();
}

template <auto field, int least, int most>
Status TakeCount(const std::string& name, const char* value, CommandLine* line) {
  TESSERA_ASSIGN(ValueOf(line, field), Count(name, value, least, most));
  return Status::Ok();
}

template <auto field>
Status TakeSize(const std::string& name, const char* value, CommandLine* line) {
  TESSERA_ASSIGN(ValueOf(line, field), Size(name, value));
  return Status::Ok();
}

template <CommandLineInput::Kind kind>
Status TakeInput(const std::string&, const char* value, CommandLine* line) {
  line->script.inputs.push_back({kind, value});
  return Status::Ok();
}

Status TakeCommand(const std::string&, const char* value, CommandLine* line) {
  line->script.commands.emplace_back(value);
  return Status::Ok();
}

Status TakeDevice(const std::string& name, const char* value, CommandLine* line) {
  const std::string device = value;
  if (device != "auto" && device != "host" && device != "gpu")
    return Usage(name + " is auto, host or gpu: not \"" + device + "\"");
  line->session.device = device == "host"  ? DeviceChoice::kHost
                         : device == "gpu" ? DeviceChoice::kGpu
                                           : DeviceChoice::kAuto;
  return Status::Ok();
}

Status TakeFormat(const std::string& name, const char* value, CommandLine* line) {
  line->output.format = FindResultFormat(value);
  if (line->output.format) return Status::Ok();
  return Usage(name + " is one of " + ResultFormatNames() + ": not \"" + value + "\"");
}

Status TakeSafe(const std::string&, const char*, CommandLine* line) {
  line->script.safe = true;
  line->session.files = false;
  return Status::Ok();
}

Status TakeSeparator(const std::string& name, const char* value, CommandLine* line) {
  line->output.separator = value;
  if (IsColumnSeparator(line->output.separator)) return Status::Ok();
  return Usage(name + " takes a text without double quotes and line breaks: not \"" + line->output.separator + "\"");
}

Status TakeStatistics(const std::string& name, const char* value, CommandLine* line) {
  const std::string format = value;
  if (format != "csv" && format != "json") return Usage(name + " is csv or json: not \"" + format + "\"");
  line->measure.statistics = format == "csv" ? StatisticsFormat::kCsv : StatisticsFormat::kJson;
  return Status::Ok();
}

Status TakeStatisticsFile(const std::string&, const char* value, CommandLine* line) {
  line->measure.statistics_file = value;
  if (!line->measure.statistics) line->measure.statistics = StatisticsFormat::kCsv;
  return Status::Ok();
}

/// [HOST:]PORT, with an IPv6 address in brackets. Without HOST that stays as it is.
Status ReadPlace(const std::string& name, std::string_view text, std::string* host_out, int* port) {
  const size_t colon = text.rfind(':');
  std::string_view host = colon == text.npos ? std::string_view() : text.substr(0, colon);
  const bool in_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (in_brackets) host = host.substr(1, host.size() - 2);
  if ((colon != text.npos && host.empty()) || (!in_brackets && host.find(':') != host.npos))
    return Usage(name + " takes PORT, HOST:PORT or [IPV6]:PORT: not \"" + std::string(text) + "\"");
  if (!host.empty()) *host_out = host;
  TESSERA_ASSIGN(*port, Count(name, colon == text.npos ? text : text.substr(colon + 1), 0, 65'535));
  return Status::Ok();
}

Status TakeServe(const std::string& name, const char* value, CommandLine* line) {
  line->serves = true;
  return ReadPlace(name, value, &line->server.host, &line->server.port);
}

Status TakeHost(const std::string&, const char* value, CommandLine* line) {
  TESSERA_ASSIGN(ServerAddress address, ReadServerAddress(value));
  line->address.host = std::move(address.host);
  if (!address.port.empty()) line->address.port = std::move(address.port);
  return Status::Ok();
}

Status TakePort(const std::string& name, const char* value, CommandLine* line) {
  TESSERA_ASSIGN(const int port, Count(name, value, 1, 65'535));
  line->address.port = std::to_string(port);
  return Status::Ok();
}

Status TakeMetrics(const std::string& name, const char* value, CommandLine* line) {
  return ReadPlace(name, value, &line->server.metrics_host, &line->server.metrics_port);
}

Status TakeAuthenticationTimeout(const std::string& name, const char* value, CommandLine* line) {
  TESSERA_ASSIGN(const int seconds, Count(name, value, 1, 600));
  line->server.authentication_timeout = seconds * 1000;
  return Status::Ok();
}

Status TakeTrace(const std::string&, const char* value, CommandLine* line) {
  line->measure.trace_file = value;
  line->session.trace = true;
  return Status::Ok();
}

struct Option {
  const char* name;
  int has_value;  ///< no_argument, required_argument
  Take take;
  char letter = 0;  ///< 0: none
};

constexpr Option kOptions[] = {
    {"authenticate-all", no_argument, Assign<&server::ServerOptions::authenticate_all, true>},
    {"authentication-timeout", required_argument, TakeAuthenticationTimeout},
    {"bail", no_argument, Assign<&ScriptOptions::bail, true>},
    {"batch", no_argument, Assign<&ScriptOptions::batch, true>},
    {"box", no_argument, Assign<&OutputOptions::format, ResultFormat::kBox>},
    {"cmd", required_argument, TakeCommand},
    {"column", no_argument, Assign<&OutputOptions::format, ResultFormat::kColumn>},
    {"command", required_argument, TakeInput<CommandLineInput::Kind::kText>, 'c'},
    {"csv", no_argument, Assign<&OutputOptions::format, ResultFormat::kCsv>},
    {"device", required_argument, TakeDevice},
    {"echo", no_argument, Assign<&OutputOptions::echo, true>},
    {"file", required_argument, TakeInput<CommandLineInput::Kind::kFile>, 'f'},
    {"files-dir", required_argument, TakeText<&server::ServerOptions::files_folder>},
    {"files", no_argument, Assign<&server::ServerOptions::files, true>},
    {"format", required_argument, TakeFormat},
    {"gpu-memory", required_argument, TakeSize<&SessionOptions::gpu_memory>},
    {"header", no_argument, Assign<&OutputOptions::headers, true>},
    {"help", no_argument, Assign<&CommandLine::help, true>},
    {"host", required_argument, TakeHost, 'h'},
    {"hostfile", required_argument, TakeText<&LaunchOptions::hostfile>},
    {"init", required_argument, TakeText<&ScriptOptions::init_file>},
    {"html", no_argument, Assign<&OutputOptions::format, ResultFormat::kHtml>},
    {"json", no_argument, Assign<&OutputOptions::format, ResultFormat::kJson>},
    {"jsonlines", no_argument, Assign<&OutputOptions::format, ResultFormat::kJsonLines>},
    {"line", no_argument, Assign<&OutputOptions::format, ResultFormat::kLine>},
    {"list", no_argument, Assign<&OutputOptions::format, ResultFormat::kList>},
    {"log-slow", required_argument, TakeCount<&server::ServerOptions::log_slow, 0, 86'400'000>},
    {"log-slow-file", required_argument, TakeText<&server::ServerOptions::log_slow_file>},
    {"markdown", no_argument, Assign<&OutputOptions::format, ResultFormat::kMarkdown>},
    {"max-connections", required_argument, TakeCount<&server::ServerOptions::max_connections, 1, 100'000>},
    {"max-queries", required_argument, TakeCount<&server::ServerOptions::max_queries, 1, 100'000>},
    {"memory", required_argument, TakeSize<&SessionOptions::memory_limit>},
    {"metrics", required_argument, TakeMetrics},
    {"no-bail", no_argument, Assign<&ScriptOptions::bail, false>},
    {"no-init", no_argument, Assign<&ScriptOptions::reads_home, false>},
    {"noheader", no_argument, Assign<&OutputOptions::headers, false>},
    {"nullvalue", required_argument, TakeText<&OutputOptions::null_text>},
    {"port", required_argument, TakePort, 'p'},
    {"quote", no_argument, Assign<&OutputOptions::format, ResultFormat::kQuote>},
    {"ranks", required_argument, TakeCount<&LaunchOptions::ranks, 1, kMostRanks>},
    {"readonly", no_argument, Assign<&SessionOptions::mode, OpenMode::kReadOnly>},
    {"repeat", required_argument, TakeCount<&MeasureOptions::repeat, 1, kMostRuns>},
    {"role", required_argument, TakeText<&CommandLine::role>},
    {"roles", required_argument, TakeText<&server::ServerOptions::roles_file>},
    {"s", required_argument, TakeInput<CommandLineInput::Kind::kText>},
    {"safe", no_argument, TakeSafe},
    {"scatter", no_argument, Assign<&SessionOptions::scatter, true>},
    {"separator", required_argument, TakeSeparator},
    {"serve", required_argument, TakeServe},
    {"session-memory", required_argument, TakeSize<&SessionOptions::session_memory>},
    {"socket-folder", required_argument, TakeText<&server::ServerOptions::socket_folder>},
    {"stats", required_argument, TakeStatistics},
    {"stats-file", required_argument, TakeStatisticsFile},
    {"table", no_argument, Assign<&OutputOptions::format, ResultFormat::kTable>},
    {"tabs", no_argument, Assign<&OutputOptions::format, ResultFormat::kTsv>},
    {"threads", required_argument, TakeCount<&SessionOptions::threads, 1, kMaxThreads>},
    {"timer", no_argument, Assign<&OutputOptions::timer, true>},
    {"tls-certificate", required_argument, TakeText<&server::ServerOptions::tls_certificate>},
    {"tls-key", required_argument, TakeText<&server::ServerOptions::tls_key>},
    {"trace", required_argument, TakeTrace},
    {"user", required_argument, TakeText<&ServerAddress::user>, 'U'},
    {"version", no_argument, Assign<&CommandLine::version, true>},
    {"warmup", required_argument, TakeCount<&MeasureOptions::warmup, 0, kMostRuns>},
};

/// What getopt gives for the option of that number. Letters are less.
constexpr int kFirstOption = 256;
/// What it gives for a word that is no option.
constexpr int kWord = 1;

std::array<option, std::size(kOptions) + 1> OptionsForGetopt() {
  std::array<option, std::size(kOptions) + 1> out{};
  for (size_t i = 0; i < std::size(kOptions); ++i)
    out[i] = {kOptions[i].name, kOptions[i].has_value, nullptr, kFirstOption + static_cast<int>(i)};
  return out;
}

/// The option for what getopt gave; nullptr if that is none.
const Option* FindOption(int got) {
  for (size_t i = 0; i < std::size(kOptions); ++i) {
    if (got == kFirstOption + static_cast<int>(i) || (kOptions[i].letter != 0 && got == kOptions[i].letter))
      return &kOptions[i];
  }
  return nullptr;
}

/// getopt takes -cmx for -c with the value mx, if no option begins so. But that is an option with a typing mistake: as
/// statements or as the name of a file, letters alone make little sense.
bool LooksLikeLongOption(const char* argument) {
  if (argument[0] != '-' || argument[1] == '-' || argument[1] == 0 || argument[2] == 0) return false;
  const char* const end = argument + std::strcspn(argument, "=");
  return std::all_of(argument + 1, end, [](char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '-'; });
}

/// Options of sqlite3 and duckdb that are not there. shell/README.md has a table of them.
struct RefusedOption {
  const char* name;
  const char* hint;
};
constexpr RefusedOption kRefusedOptions[] = {
    {"A", "Use tar; a database is a directory, which .backup copies."},
    {"agent", "Take --csv or --json: results go to standard output, all else to standard error."},
    {"append", "A database is a directory, and no part of another file."},
    {"ascii", "Take --separator, --csv or --json."},
    {"connect", "Take --host, which speaks to a server."},
    {"dark-mode", "Colours are the terminal's; $NO_COLOR turns them off."},
    {"deserialize", "A database is a directory; without one it lives until the program ends."},
    {"format-file", "SQL is not formatted."},
    {"interactive", "A prompt comes where standard input is a terminal."},
    {"light-mode", "Colours are the terminal's; $NO_COLOR turns them off."},
    {"lookaside", "It is about SQLite's memory; take --memory."},
    {"maxsize", "Take --memory."},
    {"memtrace", "Take --stats, or enter .memory."},
    {"mmap", "Files are mapped where that pays; take --memory."},
    {"newline", "Rows end with a line feed; unix2dos makes others."},
    {"no-stdin", "With -c, -f or SQL after the directory standard input is not read."},
    {"nofollow", "Symbolic links are followed; test them before."},
    {"nonce", "Nothing ends --safe."},
    {"pagecache", "It is about SQLite's memory; take --memory."},
    {"storage-version", "A database has the oldest version that can hold what is in it."},
    {"ui", "There is no page of a browser; tessera --serve is for clients of PostgreSQL."},
    {"unredacted", "There are no secrets to be shown."},
    {"unsigned", "There are no extensions."},
    {"vfs", "It is about SQLite's files."},
    {"zip", "A database is a directory, and no archive."},
};

Status UnknownOption(const char* argument) {
  std::string name = argument;
  name.erase(0, name.find_first_not_of('-'));
  name = name.substr(0, name.find('='));
  for (const RefusedOption& refused : kRefusedOptions) {
    if (name == refused.name) return Usage("there is no option \"" + std::string(argument) + "\". " + refused.hint);
  }
  std::vector<std::string_view> names;
  for (const Option& o : kOptions) names.emplace_back(o.name);
  const std::string nearest = NearestName(name, names);
  return Usage("unknown or ambiguous option \"" + std::string(argument) + "\"" +
               (nearest.empty() ? "" : "; perhaps you meant --" + nearest));
}

/// The first one is the directory.
void TakeWord(const char* word, bool* is_named, CommandLine* line) {
  if (std::exchange(*is_named, true)) {
    line->script.inputs.push_back({CommandLineInput::Kind::kText, word});
  } else if (std::strcmp(word, ":memory:") != 0) {  // as in sqlite3 and duckdb
    line->session.directory = word;
  }
}

/// Options about the database of this process.
constexpr std::string_view kOfProcess[] = {"device",     "gpu-memory", "hostfile", "memory",         "ranks",
                                           "readonly",   "scatter",    "serve",    "session-memory", "stats",
                                           "stats-file", "threads",    "trace"};

/// With --host all words are statements.
Result<CommandLine> AtServer(CommandLine line, const char* of_process, size_t first_word) {
  if (of_process != nullptr) {
    return Usage("--" + std::string(of_process) +
                 " is about a database of this process; --host speaks to a server, which has its own");
  }
  if (!line.session.directory.empty()) {
    line.script.inputs.insert(line.script.inputs.begin() + static_cast<std::ptrdiff_t>(first_word),
                              {CommandLineInput::Kind::kText, std::exchange(line.session.directory, {})});
  }
  return line;
}

constexpr const char* kServerUsage = R"(  --serve [HOST:]PORT
                    serve DATABASE_DIR to clients of PostgreSQL until SIGTERM (HOST: 127.0.0.1,
                    which with the Unix socket is for processes of this machine)
  --socket-folder DIR
                    of the Unix socket (default: /tmp; "": none)
  --max-connections N
                    clients at once (default: 100)
  --max-queries N   queries over a million rows at once (default: any number); others never wait
  --session-memory N
                    bytes that a statement of a session may take (default: as --memory), which SET
                    session_memory makes less
  --authentication-timeout N
                    seconds in which a client has to log in (default: 60)
  --roles FILE      who may connect from other machines: lines as --role makes them
  --authenticate-all
                    ask processes of this machine, too, for a password
  --role NAME       print the line of NAME for a roles file; the password is read from standard
                    input
  --files           let statements of clients name files of this machine
  --files-dir DIR   ... that are in DIR, where relative names begin
  --metrics [HOST:]PORT
                    show what the server counts at http://HOST:PORT/metrics, for Prometheus
  --log-slow MS     write statements that take MS milliseconds to standard error, as JSON lines
  --log-slow-file FILE
                    write them to FILE, which SIGHUP opens anew
  --tls-certificate FILE, --tls-key FILE
                    encrypt connections whose client asks for it

)";

}  // namespace

Result<CommandLine> ParseCommandLine(int argc, char** argv) {
  static const auto kGetoptOptions = OptionsForGetopt();
  CommandLine line;
  bool is_named = false;
  size_t first_word = 0;             // of the inputs, before which it stands
  const char* of_process = nullptr;  // an option that a server has no use for
  opterr = 0;
  optind = 0;  // from the start, whatever was read before
  for (;;) {
    const int at = std::max(1, optind);
    // With "-" words come in their place; after "--" there are words only.
    const int got = getopt_long_only(argc, argv, "-:c:f:h:p:U:", kGetoptOptions.data(), nullptr);
    if (got < 0) break;
    if (got == kWord) {
      if (!is_named) first_word = line.script.inputs.size();
      TakeWord(optarg, &is_named, &line);
      continue;
    }
    if (got == ':' && std::strcmp(argv[optind - 1], "-h") == 0) {  // as programs without servers have it
      line.help = true;
      continue;
    }
    if (got == ':') return Usage("option \"" + std::string(argv[optind - 1]) + "\" needs a value");
    const Option* const option = FindOption(got);
    if (option == nullptr || (got < kFirstOption && LooksLikeLongOption(argv[at]))) return UnknownOption(argv[at]);
    TESSERA_TRY(option->take("--" + std::string(option->name), optarg, &line));
    if (std::ranges::find(kOfProcess, std::string_view(option->name)) != std::end(kOfProcess))
      of_process = option->name;
  }
  for (int i = optind; i < argc; ++i) TakeWord(argv[i], &is_named, &line);
  if (!line.address.host.empty()) return AtServer(std::move(line), of_process, first_word);
  if (!line.address.port.empty() || !line.address.user.empty())
    return Usage("--port and --user are for a server; --host says where that is");
  if (line.serves && line.session.directory.empty()) return Usage("--serve needs the directory of a database");
  if (line.serves && !line.script.inputs.empty())
    return Usage("--serve takes its statements from clients, not from -c or -f");
  if (!line.launch.hostfile.empty() && line.launch.ranks == 0)
    return Usage("--hostfile says where ranks run; --ranks N how many");
  return line;
}

std::string UsageText() {
  return std::string(R"(Usage: tessera [options] [DATABASE_DIR [SQL ...]]
       tessera [options] -h HOST[:PORT] [SQL ...]

Without a directory the database lives until the program ends. Words after the directory are
run like -c. Without any of -c, -f and such words, statements are read from standard input, with
editing and history if that is a terminal.

  -c SQL            run these statements (repeatable, in order with -f); also -s SQL
  -f FILE           run the statements in FILE (repeatable)
  --cmd SQL         run these statements or this dot command before all that (repeatable)
  --init FILE       run the statements in FILE first, instead of ~/.tesserarc, which is for the
                    prompt only
  --no-init         do not run ~/.tesserarc
  --bail            stop at the first error (default, but not at the prompt)
  --no-bail         go on after errors
  --batch           no prompt, even if standard input is a terminal
  --echo            print statements before they run
  --readonly        open the database for reading only
  --safe            neither statements nor dot commands may name files or start programs

  --format F        bar, box, column, csv, html, insert, json, jsonlines, line, list, markdown,
                    plot, quote, table, trash or tsv; also as -box -column -csv ... (default: box on a
                    terminal, else csv)
  --header          print column names (default)
  --noheader        do not
  --separator X     between columns, in csv and list (default: , and |)
  --nullvalue X     text for NULL, except in json
  --timer           print the time of each statement

  -h HOST[:PORT], --host HOST[:PORT]
                    speak to the server there, which --serve is; a folder is that of its Unix socket
  -p PORT, --port PORT
                    of the server (default: $PGPORT or 5432)
  -U NAME, --user NAME
                    come as NAME (default: $PGUSER or the name of the user); passwords are those
                    of $PGPASSWORD and ~/.pgpass, or asked for

  --device D        auto (default), host or gpu
  --threads N       threads on the host (default: all)
  --memory N        budget on the host in bytes, or with k, m, g (default: 80 % of what the
                    process may use)
  --gpu-memory N    budget on the GPU in bytes, or with k, m, g

  --stats F         csv or json: for each statement and rank, rows, bytes and where the time went
  --stats-file FILE write them to FILE instead of standard error
  --trace FILE      write a timeline of all ranks, which https://ui.perfetto.dev opens
  --repeat N        run each query N times; the first run prints its result
  --warmup N        run each query N times before, which --stats, --timer and --trace leave out

  --ranks N         run on N ranks, started by mpirun (with a terminal for rank 0)
  --hostfile FILE   the machines of the ranks, as mpirun takes it (default: this one)
  --scatter         on ranks: send the other ranks their tablets, even if they see the directory

)") + kServerUsage +
         R"(  --version, --help

One dash does, too. Results go to standard output, everything else to standard error. A script ends
at its first error, be it -c, -f, .read or a pipe; the prompt goes on with the next line. Exit
status: 0; 1 an SQL error; 2 usage, file or device; 3 the database cannot be opened.
)";
}

}  // namespace tessera
