#include "shell/command_line.h"

#include <getopt.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "compiler/nearest_name.h"
#include "session/settings.h"

namespace tessera {
namespace {

enum Option : int {
  kOptionBail = 256,
  kOptionBox,
  kOptionCsv,
  kOptionDevice,
  kOptionFormat,
  kOptionGpuMemory,
  kOptionHelp,
  kOptionHostfile,
  kOptionJson,
  kOptionLine,
  kOptionMarkdown,
  kOptionMemory,
  kOptionRanks,
  kOptionReadOnly,
  kOptionRepeat,
  kOptionScatter,
  kOptionStats,
  kOptionStatsFile,
  kOptionThreads,
  kOptionTimer,
  kOptionTrace,
  kOptionVersion,
  kOptionWarmup,
};

constexpr std::array<option, 27> kOptions = {{{"bail", no_argument, nullptr, kOptionBail},
                                              {"box", no_argument, nullptr, kOptionBox},
                                              {"command", required_argument, nullptr, 'c'},
                                              {"csv", no_argument, nullptr, kOptionCsv},
                                              {"device", required_argument, nullptr, kOptionDevice},
                                              {"file", required_argument, nullptr, 'f'},
                                              {"format", required_argument, nullptr, kOptionFormat},
                                              {"gpu-memory", required_argument, nullptr, kOptionGpuMemory},
                                              {"help", no_argument, nullptr, kOptionHelp},
                                              {"hostfile", required_argument, nullptr, kOptionHostfile},
                                              {"json", no_argument, nullptr, kOptionJson},
                                              {"line", no_argument, nullptr, kOptionLine},
                                              {"markdown", no_argument, nullptr, kOptionMarkdown},
                                              {"memory", required_argument, nullptr, kOptionMemory},
                                              {"ranks", required_argument, nullptr, kOptionRanks},
                                              {"readonly", no_argument, nullptr, kOptionReadOnly},
                                              {"repeat", required_argument, nullptr, kOptionRepeat},
                                              {"scatter", no_argument, nullptr, kOptionScatter},
                                              {"stats", required_argument, nullptr, kOptionStats},
                                              {"stats-file", required_argument, nullptr, kOptionStatsFile},
                                              {"threads", required_argument, nullptr, kOptionThreads},
                                              {"timer", no_argument, nullptr, kOptionTimer},
                                              {"trace", required_argument, nullptr, kOptionTrace},
                                              {"version", no_argument, nullptr, kOptionVersion},
                                              {"warmup", required_argument, nullptr, kOptionWarmup},
                                              {nullptr, 0, nullptr, 0},
                                              {nullptr, 0, nullptr, 0}}};

Status Usage(const std::string& message) { return SqlError(message); }

/// A size that is more than 0.
Result<uint64_t> Size(const char* name, const char* text) {
  const std::optional<uint64_t> bytes = ParseSize(text);
  if (bytes && *bytes > 0) return *bytes;
  return Usage(std::string(name) + " takes bytes, or a number with kb, mb, gb or tb: not \"" + text + "\"");
}

constexpr int kMostRuns = 1'000'000;

Result<int> Count(const char* name, std::string_view text, int least, int most) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error == std::errc{} && end == text.data() + text.size() && n >= least && n <= most) return n;
  return Usage(std::string(name) + " takes a number from " + std::to_string(least) + " to " + std::to_string(most) +
               ": not \"" + std::string(text) + "\"");
}

Status UnknownOption(const char* argument) {
  std::string name = argument;
  name.erase(0, name.find_first_not_of('-'));
  name = name.substr(0, name.find('='));
  std::vector<std::string_view> names;
  for (const option& o : kOptions) {
    if (o.name != nullptr) names.emplace_back(o.name);
  }
  const std::string nearest = NearestName(name, names);
  return Usage("unknown or ambiguous option \"" + std::string(argument) + "\"" +
               (nearest.empty() ? "" : "; perhaps you meant --" + nearest));
}

}  // namespace

Result<CommandLine> ParseCommandLine(int argc, char** argv) {
  CommandLine line;
  opterr = 0;
  optind = 0;  // from the start, whatever was read before
  for (;;) {
    const int at = std::max(1, optind);
    const int c = getopt_long_only(argc, argv, ":c:f:h", kOptions.data(), nullptr);
    if (c < 0) break;
    switch (c) {
      case 'c':
        line.inputs.push_back({CommandLineInput::Kind::kText, optarg});
        break;
      case 'f':
        line.inputs.push_back({CommandLineInput::Kind::kFile, optarg});
        break;
      case kOptionBail:
        line.bail = true;
        break;
      case kOptionBox:
        line.format = ResultFormat::kBox;
        break;
      case kOptionCsv:
        line.format = ResultFormat::kCsv;
        break;
      case kOptionJson:
        line.format = ResultFormat::kJson;
        break;
      case kOptionLine:
        line.format = ResultFormat::kLine;
        break;
      case kOptionMarkdown:
        line.format = ResultFormat::kMarkdown;
        break;
      case kOptionFormat:
        line.format = FindResultFormat(optarg);
        if (!line.format) return Usage("--format is one of " + ResultFormatNames() + ": not \"" + optarg + "\"");
        break;
      case kOptionDevice: {
        const std::string name = optarg;
        if (name != "auto" && name != "host" && name != "gpu")
          return Usage("--device is auto, host or gpu: not \"" + name + "\"");
        line.session.device = name == "host"  ? DeviceChoice::kHost
                              : name == "gpu" ? DeviceChoice::kGpu
                                              : DeviceChoice::kAuto;
        break;
      }
      case kOptionThreads: {
        TESSERA_ASSIGN(line.session.threads, Count("--threads", optarg, 1, 1024));
        break;
      }
      case kOptionRanks: {
        TESSERA_ASSIGN(line.ranks, Count("--ranks", optarg, 1, 65'536));
        break;
      }
      case kOptionHostfile:
        line.hostfile = optarg;
        break;
      case kOptionGpuMemory: {
        TESSERA_ASSIGN(line.session.gpu_memory, Size("--gpu-memory", optarg));
        break;
      }
      case kOptionMemory: {
        TESSERA_ASSIGN(line.session.memory_limit, Size("--memory", optarg));
        break;
      }
      case kOptionReadOnly:
        line.session.mode = OpenMode::kReadOnly;
        break;
      case kOptionRepeat: {
        TESSERA_ASSIGN(line.repeat, Count("--repeat", optarg, 1, kMostRuns));
        break;
      }
      case kOptionWarmup: {
        TESSERA_ASSIGN(line.warmup, Count("--warmup", optarg, 0, kMostRuns));
        break;
      }
      case kOptionTrace:
        line.trace_file = optarg;
        line.session.trace = true;
        break;
      case kOptionScatter:
        line.session.scatter = true;
        break;
      case kOptionStats: {
        const std::string name = optarg;
        if (name != "csv" && name != "json") return Usage("--stats is csv or json: not \"" + name + "\"");
        line.statistics = name == "csv" ? StatisticsFormat::kCsv : StatisticsFormat::kJson;
        break;
      }
      case kOptionStatsFile:
        line.statistics_file = optarg;
        if (!line.statistics) line.statistics = StatisticsFormat::kCsv;
        break;
      case kOptionTimer:
        line.timer = true;
        break;
      case 'h':
      case kOptionHelp:
        line.help = true;
        break;
      case kOptionVersion:
        line.version = true;
        break;
      case ':':
        return Usage("option \"" + std::string(argv[optind - 1]) + "\" needs a value");
      default:
        return UnknownOption(argv[at]);
    }
  }
  if (optind < argc) line.session.directory = argv[optind++];
  if (line.session.directory == ":memory:") line.session.directory.clear();  // as in sqlite3 and duckdb
  if (optind < argc) {
    return Usage("only one database directory can be opened; \"" + std::string(argv[optind]) +
                 "\" is one too many (statements are given with -c)");
  }
  if (!line.hostfile.empty() && line.ranks == 0) return Usage("--hostfile says where ranks run; --ranks N how many");
  return line;
}

std::string UsageText() {
  return R"(Usage: tessera [options] [DATABASE_DIR]

Without a directory the database lives until the program ends. Without -c and -f, statements
are read from standard input, with editing and history if that is a terminal.

  -c SQL            run these statements (repeatable, in order with -f)
  -f FILE           run the statements in FILE (repeatable)
  --device D        auto (default), host or gpu
  --threads N       threads on the host (default: all)
  --memory N        budget on the host in bytes, or with k, m, g (default: 80 % of what the
                    process may use)
  --gpu-memory N    budget on the GPU in bytes, or with k, m, g
  --format F        box, csv, json, markdown or line; also as -box -csv -json -markdown -line
                    (default: box on a terminal, else csv)
  --timer           print the time of each statement
  --stats F         csv or json: for each statement and rank, rows, bytes and where the time went
  --stats-file FILE write them to FILE instead of standard error
  --trace FILE      write a timeline of all ranks, which https://ui.perfetto.dev opens
  --repeat N        run each query N times; the first run prints its result
  --warmup N        run each query N times before, which --stats, --timer and --trace leave out
  --ranks N         run on N ranks, started by mpirun (with a terminal for rank 0)
  --hostfile FILE   the machines of the ranks, as mpirun takes it (default: this one)
  --scatter         on ranks: send the other ranks their tablets, even if they see the directory
  --bail            stop at the first error
  --readonly        open the database for reading only
  --version, --help

Results go to standard output, everything else to standard error. Exit status: 0; 1 an SQL error;
2 usage, file or device; 3 the database cannot be opened.
)";
}

}  // namespace tessera
