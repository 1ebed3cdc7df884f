// The options of `tessera`. Single and double dash are the same, as in sqlite3 and DuckDB. The first other word is the
// database's directory, those after it are statements.
//
// Start at: ParseCommandLine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "server/server.h"
#include "session/session.h"
#include "shell/rank_statistics_text.h"
#include "shell/result_text.h"
#include "shell/server_session.h"

namespace tessera {

/// A piece of work given on the command line.
struct CommandLineInput {
  enum class Kind { kText, kFile };
  Kind kind = Kind::kText;
  std::string text;  ///< the statements, or the name of the file that has them
};

/// How results are shown.
struct OutputOptions {
  std::optional<ResultFormat> format;  ///< nullopt: box on a terminal, else csv
  bool headers = true;
  std::string separator;                 ///< of columns in csv and list; "": the format's own
  std::optional<std::string> null_text;  ///< nullopt: the format's own
  bool echo = false;
  bool timer = false;
};

/// What is measured, and where that goes.
struct MeasureOptions {
  std::optional<StatisticsFormat> statistics;  ///< nullopt: none
  std::string statistics_file;                 ///< "": standard error
  std::string trace_file;                      ///< "": none
  int repeat = 1, warmup = 0;                  ///< runs of each query that count; runs before them
};

/// What is run, in this order.
struct ScriptOptions {
  std::string init_file;                 ///< "": ~/.tesserarc, if there is a prompt
  bool reads_home = true;                ///< ~/.tesserarc, if there is a prompt
  std::vector<std::string> commands;     ///< -cmd
  std::vector<CommandLineInput> inputs;  ///< -c, -f and words in their order; none: standard input
  bool bail = true;                      ///< a script ends at its first error
  bool batch = false;                    ///< no prompt on a terminal either
  bool safe = false;                     ///< no files, no programs
};

/// Processes to start.
struct LaunchOptions {
  int ranks = 0;         ///< 0: one process, or those that there are
  std::string hostfile;  ///< of mpirun; "": all ranks on this machine
};

struct CommandLine {
  SessionOptions session;
  OutputOptions output;
  MeasureOptions measure;
  ScriptOptions script;
  LaunchOptions launch;
  ServerAddress address;  ///< --host: of the server to which statements go; "": they run here
  bool serves = false;    ///< --serve
  server::ServerOptions server;
  std::string role;  ///< --role: whose line is wanted; "": none
  bool help = false;
  bool version = false;
};

/// Errors: kSql, one line that says what is wrong.
Result<CommandLine> ParseCommandLine(int argc, char** argv);

/// What --help prints.
std::string UsageText();

}  // namespace tessera
