// Running SQL and printing its results.
#include "shell/shell_state.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "shell/interrupts.h"
#include "shell/statistics_text.h"

namespace tessera {

bool HasColors() {
  const char* const off = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return (off == nullptr || *off == 0) && terminal != nullptr && std::string_view(terminal) != "dumb";
}

ShellState::ShellState(std::unique_ptr<ShellSession> open, const CommandLine& command_line)
    : session(std::move(open)), line(command_line), reports(command_line) {
  settings.format = line.output.format;
  settings.headers = line.output.headers;
  settings.separator = line.output.separator;
  settings.null_text = line.output.null_text;
  settings.echo = line.output.echo;
  settings.timer = line.output.timer;
  settings.bail = line.script.bail;
  if (const char* const pager = std::getenv("PAGER"); pager != nullptr && *pager != 0) {
    settings.pager = true;
    settings.pager_command = pager;
  }
  session->SetProgress([this](const Progress& now) { progress.Update(now); });
}

ShellState::~ShellState() { session->SetProgress({}); }

bool ShellState::Continues() const {
  if (quit || stopped || output.failed() || output.reader_gone()) return false;
  return PendingInterrupt() == 0 || (interactive && PendingInterrupt() == SIGINT);
}

Status ShellState::Execute(std::string_view sql, const std::string& name) {
  ++statements;
  for (int run = 1 - line.measure.warmup; run <= line.measure.repeat; ++run) {
    Status status = ExecuteOnce(sql, run == 1 - line.measure.warmup);
    const bool repeats = status.ok() && session->last_was_query();
    if (run > 0 || !repeats) {
      if (settings.timer) ReportTiming();
      Report({statements, name, static_cast<uint64_t>(std::max(run, 1))});
    }
    if (!repeats || !Continues()) return status;
  }
  return Status::Ok();
}

Status ShellState::ExecuteOnce(std::string_view sql, bool prints) {
  progress.Start();
  const ResultTextOptions options = TextOptions();
  const auto sink = [&](std::string_view text) -> Status {
    progress.Finish();
    if (!prints) return {};
    TESSERA_TRY(output.CheckFormat(ResultFormatName(options.format)));
    return output.Write(text);
  };
  const auto done = [this](const std::string& command_tag) {
    progress.Finish();
    TellDone(command_tag);
  };
  const std::unique_ptr<ResultWriter> writer = MakeResultText(options, sink, done);
  if (interactive && settings.pager && !line.script.safe) output.StartPaging(settings.pager_command);
  Status status = session->Execute(sql, writer.get());
  progress.Finish();
  const Status written = output.StatementDone();
  if (status.ok()) status = written;
  if (output.TakeReaderGone() && !status.ok() && status.code() == ErrorCode::kCancelled) status = Status::Ok();
  if (const std::string warning = session->TakeWarning(); !warning.empty()) Message("WARNING:  " + warning);
  return status;
}

void ShellState::TellDone(const std::string& command_tag) {
  if (interactive) Message(command_tag);
  if (!settings.changes) return;
  const size_t last = command_tag.find_last_not_of("0123456789");
  if (last + 1 < command_tag.size() && command_tag.find(' ') != std::string::npos)
    Message("changes: " + command_tag.substr(last + 1));
}

Status ShellState::OpenDatabase(const std::string& directory) {
  if (session->local() == nullptr) {
    return Unsupported("a shell of a server stays with it", -1,
                       "Leave, and start tessera with the directory, or with --host.");
  }
  if (line.session.cluster != nullptr) {
    return Unsupported("ranks stay with their database", -1,
                       "Leave, and start tessera --ranks with the other directory.");
  }
  SessionOptions options = line.session;
  options.directory = directory;
  TESSERA_ASSIGN(std::unique_ptr<Session> opened, Session::Open(options));
  StopWatchingInterrupts();
  session->SetProgress({});
  session = MakeLocalSession(std::move(opened));
  line.session.directory = directory;
  session->SetProgress([this](const Progress& now) { progress.Update(now); });
  WatchInterrupts(session.get(), interactive);
  if (!directory.empty() && session->local()->is_new())
    Message(directory + ": a new database, written at its first change");
  return Status::Ok();
}

void ShellState::ReportTiming() const {
  const Timing& t = session->last_timing();
  if (session->local() == nullptr)
    return Message(fmt::format("Time: {:.3f} ms; {} row{}", t.total, t.rows, t.rows == 1 ? "" : "s"));
  std::string text = fmt::format("Time: {:.3f} ms (compile {:.3f}{}, execute {:.3f}", t.total, t.compile,
                                 t.kept ? " from cache" : "", t.execute);
  uint64_t transferred = 0;
  bool gpu = false;
  for (const vm::SectionStatistics& section : session->local()->last_statistics().sections) {
    transferred += section.bytes_transferred;
    gpu |= section.on_gpu;
  }
  if (gpu) text += fmt::format(", kernels {:.3f}", t.kernel);
  text += fmt::format("); {} row{}", t.rows, t.rows == 1 ? "" : "s");
  if (t.bytes_read > 0) {
    text += fmt::format("; {} read, {:.2f} GB/s", BytesText(static_cast<double>(t.bytes_read)),
                        t.execute > 0 ? static_cast<double>(t.bytes_read) / t.execute * 1e-6 : 0.0);
  }
  if (gpu) text += fmt::format("; {} to the GPU", BytesText(static_cast<double>(transferred)));
  Message(text);
}

void ShellState::Report(const StatementRun& run) {
  if (session->local() == nullptr) return;  // a server's are its own
  const Status written = reports.Add(run, session->local()->last_statistics());
  if (written.ok()) return;
  Message(written.message());
  file_failed = true;
}

ResultTextOptions ShellState::TextOptions() const {
  ResultTextOptions options;
  const bool terminal = output.IsTerminal();
  options.format = settings.format.value_or(terminal ? ResultFormat::kBox : ResultFormat::kCsv);
  if (settings.expanded || lines_once) options.format = ResultFormat::kLine;
  options.null_text = settings.null_text;
  options.headers = settings.headers;
  options.separator = settings.separator;
  options.table = settings.table;
  options.colors = terminal && HasColors();
  options.widths = settings.widths;
  options.max_rows = settings.max_rows.value_or(terminal ? ShellSettings::kTerminalRows : 0);
  options.max_width = settings.max_width.value_or(terminal ? output.TerminalWidth() : 0);
  return options;
}

void ShellState::Message(const std::string& text) {
  const std::string ended = text + "\n";
  std::string_view rest = ended;
  while (!rest.empty()) {
    const ssize_t n = write(STDERR_FILENO, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    rest.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace tessera
