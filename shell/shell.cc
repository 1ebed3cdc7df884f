#include "shell/shell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "base/version.h"
#include "compiler/compiler.h"
#include "session/no_result.h"
#include "shell/completion.h"
#include "shell/dot_commands.h"
#include "shell/exit_status.h"
#include "shell/interrupts.h"
#include "shell/line_editor.h"
#include "shell/other_shells.h"
#include "shell/sqlite_sequence.h"
#include "shell/statement_name.h"
#include "shell/statistics_text.h"
#include "tablet/files/io_error.h"

namespace tessera {
namespace {

/// Says what is open, if a quote or a comment is.
std::string ContinuationPrompt(std::string_view open) { return fmt::format("{:>4}...> ", open); }

/// Whether a terminal may be sent colours.
bool HasColors() {
  const char* const off = std::getenv("NO_COLOR");
  const char* const terminal = std::getenv("TERM");
  return (off == nullptr || *off == 0) && terminal != nullptr && std::string_view(terminal) != "dumb";
}

bool IsBlank(std::string_view text) { return text.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos; }

std::string HomeFile(const char* name) {
  const char* home = std::getenv("HOME");
  return home == nullptr || *home == 0 ? std::string() : std::string(home) + "/" + name;
}

}  // namespace

Shell::Shell(std::unique_ptr<Session> session, const CommandLine& line)
    : session_(std::move(session)), line_(line), reports_(line) {
  settings_.format = line.format;
  settings_.headers = line.headers;
  settings_.separator = line.separator;
  settings_.null_text = line.null_text;
  settings_.echo = line.echo;
  settings_.timer = line.timer;
  settings_.bail = line.bail;
  if (const char* const pager = std::getenv("PAGER"); pager != nullptr && *pager != 0) {
    settings_.pager = true;
    settings_.pager_command = pager;
  }
  session_->SetProgress([this](const Progress& progress) { progress_.Update(progress); });
}

Shell::~Shell() { session_->SetProgress({}); }

int Shell::Run() {
  interactive_ = line_.inputs.empty() && !line_.batch && isatty(STDIN_FILENO) == 1;
  WatchInterrupts(session_.get(), interactive_);
  Greet();
  RunStart();
  if (interactive_) {
    RunInteractive();
  } else if (line_.inputs.empty()) {
    RunStandardInput();
  } else {
    RunInputs();
  }
  StopWatchingInterrupts();
  if (const Status written = reports_.End(); !written.ok()) {
    Message(written.message());
    file_failed_ = true;
  }
  if (output_.reader_gone()) return kExitOk;  // `| head` has seen what it wanted
  if (output_.failed()) return kExitUsage;
  if (quit_status_ >= 0) return quit_status_;
  if (file_failed_) return kExitUsage;
  return failed_ && !interactive_ ? kExitSqlError : kExitOk;
}

bool Shell::Continues() const {
  if (quit_ || stopped_ || output_.failed() || output_.reader_gone()) return false;
  return PendingInterrupt() == 0 || (interactive_ && PendingInterrupt() == SIGINT);
}

// ---- Where statements come from -------------------------------------------------------------------------------------

void Shell::Greet() {
  const std::string& directory = line_.session.directory;
  if (interactive_) {
    Message(fmt::format("Tessera {} ({}). Enter .help for help.", kVersion, session_->DeviceDescription()));
    if (directory.empty()) Message("No database directory was given: this one lives until you leave.");
  }
  // The name may be a mistake.
  if (!directory.empty() && session_->is_new()) Message(directory + ": a new database, written at its first change");
}

void Shell::RunStart() {
  const std::string file = !line_.init_file.empty()           ? line_.init_file
                           : interactive_ && line_.reads_home ? HomeFile(".tesserarc")
                                                              : "";
  if (!line_.init_file.empty() || (!file.empty() && access(file.c_str(), R_OK) == 0)) {
    Status status = RunFile(file);
    if (!status.ok()) Message(status.message());
    file_failed_ |= !status.ok() && !interactive_;
  }
  for (const std::string& command : line_.commands) {
    if (!Continues()) break;
    RunText(command, "");
  }
}

void Shell::RunInputs() {
  for (const CommandLineInput& input : line_.inputs) {
    if (!Continues()) break;
    if (input.kind == CommandLineInput::Kind::kText) {
      RunText(input.text, "");
      continue;
    }
    Status status = RunFile(input.text);
    if (status.ok()) continue;
    Message("tessera: " + status.message());
    file_failed_ = true;
    if (settings_.bail) break;
  }
}

void Shell::RunInteractive() {
  LineEditor editor(HomeFile(".tessera_history"));
  Script script;
  script.interactive = true;
  editor.SetCompleter([this, &script](std::string_view text) {
    CompletionNames names;
    names.dot_commands = DotCommands::Names();
    if (const Result<std::shared_ptr<const Snapshot>> tables = session_->Tables(); tables.ok())
      names.snapshot = *tables;
    return Complete(names, script.buffer, text);
  });
  std::string typed;  // since the first prompt of the statement
  for (;;) {
    stopped_ = false;  // an error ends the line only
    if (!Continues()) return;
    TakeInterrupt();  // a Ctrl-C that came too late for the statement before
    std::string line;
    const std::string prompt = script.buffer.empty()                ? settings_.prompt
                               : settings_.continued_prompt.empty() ? ContinuationPrompt(script.end.Open(script.buffer))
                                                                    : settings_.continued_prompt;
    switch (editor.Read(prompt, &line)) {
      case LineEditor::Outcome::kLine:
        if (script.rows == nullptr) typed += (typed.empty() ? "" : "\n") + line;
        if (line.find('\n') == std::string::npos) {
          TakeLine(&script, line);
        } else {
          TakeLines(&script, line);  // a statement that was brought back
        }
        if (!script.buffer.empty()) break;
        editor.Remember(std::exchange(typed, {}));
        break;
      case LineEditor::Outcome::kInterrupted:
        typed.clear();
        script.buffer.clear();
        script.rows = nullptr;
        script.end = {};
        break;
      case LineEditor::Outcome::kEnd:
        return;
    }
  }
}

void Shell::RunStandardInput() {
  if (!RunDescriptor(STDIN_FILENO, "")) {
    Message("tessera: could not read standard input: " + std::generic_category().message(errno));
    file_failed_ = true;
  }
}

Status Shell::RunFile(const std::string& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return IoError("could not open", file, errno);
  const bool read = RunDescriptor(fd, file);
  const int error = errno;
  close(fd);
  return read ? Status::Ok() : IoError("could not read", file, error);
}

bool Shell::RunDescriptor(int fd, const std::string& name) {
  Script script;
  script.name = name;
  std::string text;  // what has been read and not yet taken
  std::string piece(1 << 16, 0);
  while (Continues()) {
    const ssize_t n = read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) {
      if (!text.empty()) TakeLine(&script, text);
      break;
    }
    // A line may be much longer than a piece: only what is new can hold its end.
    size_t begin = 0, searched = text.size();
    text.append(piece, 0, static_cast<size_t>(n));
    for (size_t end; Continues() && (end = text.find('\n', searched)) != std::string::npos;) {
      TakeLine(&script, std::string_view(text).substr(begin, end - begin));
      begin = searched = end + 1;
    }
    text.erase(0, begin);
  }
  TakeEnd(&script);
  return true;
}

void Shell::RunText(std::string_view text, const std::string& name) {
  Script script;
  script.name = name;
  TakeLines(&script, text);
  TakeEnd(&script);
}

void Shell::TakeLines(Script* script, std::string_view text) {
  while (!text.empty() && Continues()) {
    const size_t end = text.find('\n');
    TakeLine(script, text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

bool Shell::TakeHabit(Script* script, std::string_view line) {
  const bool at_start = script->buffer.empty();
  if (!at_start && script->interactive && IsWayOut(line)) {
    Message("The statement is not finished: it ends with a semicolon, or with Ctrl-C, which forgets it.");
    return false;
  }
  const Result<Habit> habit = ReadHabit(line, at_start && script->interactive);
  if (!habit.ok()) {
    ReportError(habit.status(), line, script->line, *script);
    return true;
  }
  switch (habit->kind) {
    case Habit::Kind::kNone:
      return false;
    case Habit::Kind::kDot:
      RunDotCommand(habit->text, *script);
      return true;
    case Habit::Kind::kSql:
      if (!at_start) return false;
      TakeLine(script, habit->text);
      --script->line;  // it is the same one
      return true;
    case Habit::Kind::kForget:
      script->buffer.clear();
      script->end = {};
      return true;
    case Habit::Kind::kNothing:
      break;
  }
  return true;
}

void Shell::TakeLine(Script* script, std::string_view line) {
  ++script->line;
  if (script->rows != nullptr) {
    TakeRow(script, line);
    return;
  }
  if (script->line == 1 && line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);  // a byte order mark
  if (script->buffer.empty()) {
    if (!line.empty() && line[0] == '.') {
      RunDotCommand(line, *script);
      return;
    }
    if (IsBlank(line) || TakeHabit(script, line)) return;
    script->buffer_line = script->line;
  } else if (script->end.Open(script->buffer).empty() && FindRunMark(line).bytes == 0 && TakeHabit(script, line)) {
    return;
  }
  script->buffer += line;
  script->buffer += '\n';
  if (!script->end.IsBetweenStatements(script->buffer) && !EndWithRunMark(script)) return;
  if (TakesRows(script->buffer)) {
    script->rows = std::make_unique<ScriptRows>(script->line);
    return;
  }
  RunBuffer(script);
  lines_once_ = false;
}

bool Shell::EndWithRunMark(Script* script) {
  const RunMark mark = FindRunMark(script->buffer);
  if (mark.bytes == 0 || !script->end.Open(script->buffer).empty()) return false;
  script->buffer.replace(script->buffer.size() - mark.bytes, mark.bytes, ";\n");
  lines_once_ = mark.as_lines;
  script->end = {};
  return script->end.IsBetweenStatements(script->buffer);
}

void Shell::TakeRow(Script* script, std::string_view line) {
  if (line == "\\." || line == "\\.\r") {
    const std::unique_ptr<ScriptRows> rows = std::move(script->rows);
    RunBuffer(script, rows.get());
    return;
  }
  if (const Status status = script->rows->Add(line); !status.ok())
    ReportError(status, script->buffer, script->line, *script);
}

void Shell::TakeEnd(Script* script) {
  if (script->rows != nullptr) {
    // No line ends them: COPY reads the standard input, if it can, and the lines are statements.
    const std::unique_ptr<ScriptRows> lines = std::move(script->rows);
    RunBuffer(script);
    script->line = lines->line();
    const Status status = lines->ForEachLine([&](std::string_view line) {
      if (Continues()) TakeLine(script, line);
    });
    if (!status.ok()) ReportError(status, "", script->line, *script);
    TakeEnd(script);
    return;
  }
  if (!script->buffer.empty() && Continues()) RunBuffer(script);
}

void Shell::RunBuffer(Script* script, ScriptRows* rows) {
  const std::string text = std::move(script->buffer);
  script->buffer.clear();
  script->end = {};
  size_t end = 0;  // of the statement before
  const std::vector<StatementText> statements = SplitStatements(text);
  for (const StatementText& statement : statements) {
    if (!Continues()) return;
    NameInComment(std::string_view(text).substr(end, statement.offset - end), &script->next);
    end = statement.offset + statement.sql.size();
    std::string name = std::exchange(script->next, {});
    if (name.empty()) name = NameOfScript(script->name);
    const int line = script->buffer_line + statement.line - 1;
    const bool reads = rows != nullptr && &statement == &statements.back();
    if (NamesSqliteSequence(statement.sql) && RunSqliteSequence(statement.sql, line, *script)) continue;
    if (reads) session_->SetCopyClient(rows);
    RunStatement(statement.sql, line, *script, name);
    if (reads) session_->SetCopyClient(nullptr);
    if (interactive_ && PendingInterrupt() != 0) return;  // Ctrl-C means the rest of the line too
  }
  NameInComment(std::string_view(text).substr(end), &script->next);
}

// ---- Running --------------------------------------------------------------------------------------------------------

void Shell::RunStatement(std::string_view sql, int line, const Script& script, const std::string& name) {
  if (settings_.echo) {
    Status echoed = output_.Write(std::string(sql) + ";\n");
    if (!echoed.ok()) {
      ReportError(echoed, sql, line, script);
      return;
    }
  }
  Status status = Execute(sql, name);
  if (!status.ok()) ReportError(status, sql, line, script);
}

bool Shell::RunSqliteSequence(std::string_view sql, int line, const Script& script) {
  const Result<std::shared_ptr<const Snapshot>> tables = session_->Tables();
  if (!tables.ok()) return false;
  const std::optional<std::string> set = SequenceStatement(sql, **tables);
  if (!set) return false;
  NoResult none;
  const Status status = set->empty() ? Status::Ok() : session_->Execute(*set, &none);
  if (!status.ok()) ReportError(status, *set, line, script);
  return true;
}

Status Shell::Execute(std::string_view sql, const std::string& name) {
  ++statements_;
  for (int run = 1 - line_.warmup; run <= line_.repeat; ++run) {
    Status status = ExecuteOnce(sql, run == 1 - line_.warmup);
    const bool repeats = status.ok() && session_->last_was_query();
    if (run > 0 || !repeats) {
      if (settings_.timer) ReportTiming();
      Report({statements_, name, static_cast<uint64_t>(std::max(run, 1))});
    }
    if (!repeats || !Continues()) return status;
  }
  return Status::Ok();
}

Status Shell::ExecuteOnce(std::string_view sql, bool prints) {
  progress_.Start();
  const ResultTextOptions options = TextOptions();
  const auto sink = [&](std::string_view text) -> Status {
    progress_.Finish();
    if (!prints) return {};
    TESSERA_TRY(output_.CheckFormat(ResultFormatName(options.format)));
    return output_.Write(text);
  };
  const auto done = [this](const std::string& command_tag) {
    progress_.Finish();
    TellDone(command_tag);
  };
  const std::unique_ptr<ResultWriter> writer = MakeResultText(options, sink, done);
  if (interactive_ && settings_.pager && !line_.safe) output_.StartPaging(settings_.pager_command);
  Status status = session_->Execute(sql, writer.get());
  progress_.Finish();
  const Status written = output_.StatementDone();
  if (status.ok()) status = written;
  if (output_.TakeReaderGone() && !status.ok() && status.code() == ErrorCode::kCancelled) status = Status::Ok();
  if (const std::string warning = session_->TakeWarning(); !warning.empty()) Message("WARNING:  " + warning);
  return status;
}

void Shell::TellDone(const std::string& command_tag) {
  if (interactive_) Message(command_tag);
  if (!settings_.changes) return;
  const size_t last = command_tag.find_last_not_of("0123456789");
  if (last + 1 < command_tag.size() && command_tag.find(' ') != std::string::npos)
    Message("changes: " + command_tag.substr(last + 1));
}

Status Shell::OpenDatabase(const std::string& directory) {
  if (line_.session.cluster != nullptr) {
    return Unsupported("ranks stay with their database", -1,
                       "Leave, and start tessera --ranks with the other directory.");
  }
  SessionOptions options = line_.session;
  options.directory = directory;
  TESSERA_ASSIGN(std::unique_ptr<Session> session, Session::Open(options));
  StopWatchingInterrupts();
  session_->SetProgress({});
  session_ = std::move(session);
  line_.session.directory = directory;
  session_->SetProgress([this](const Progress& progress) { progress_.Update(progress); });
  WatchInterrupts(session_.get(), interactive_);
  if (!directory.empty() && session_->is_new()) Message(directory + ": a new database, written at its first change");
  return Status::Ok();
}

void Shell::RunDotCommand(std::string_view text, const Script& script) {
  if (settings_.echo && !output_.Write(std::string(text) + "\n").ok()) return;
  Status status = DotCommands(this).Run(text);
  if (!status.ok()) ReportError(status, text, script.line, script);
}

void Shell::ReportError(const Status& error, std::string_view sql, int line, const Script& script) {
  failed_ = true;
  stopped_ = settings_.bail;
  if (output_.reader_gone()) return;
  Status shown = error;
  std::string where;
  if (script.interactive) {
    line = 1;  // what is on the screen starts at the prompt
  } else if (!script.name.empty()) {
    where = fmt::format("{}:{}: ", script.name, line);
  } else if (error.position() < 0 && script.line > 1 && !output_.failed()) {
    // An error without a place in a longer script: at least the statement is named.
    shown = error.At(0);
  }
  std::string text = FormatError(shown, sql, line, settings_.sqlstates);
  constexpr std::string_view kError = "ERROR:";
  if (text.starts_with(kError) && isatty(STDERR_FILENO) == 1 && HasColors())
    text.replace(0, kError.size(), "\x1b[31mERROR:\x1b[0m");
  Message(where + text);
}

void Shell::ReportTiming() const {
  const Timing& t = session_->last_timing();
  std::string text = fmt::format("Time: {:.3f} ms (compile {:.3f}{}, execute {:.3f}", t.total, t.compile,
                                 t.kept ? " from cache" : "", t.execute);
  uint64_t transferred = 0;
  bool gpu = false;
  for (const vm::SectionStatistics& section : session_->last_statistics().sections) {
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

void Shell::Report(const StatementRun& run) {
  const Status written = reports_.Add(run, session_->last_statistics());
  if (written.ok()) return;
  Message(written.message());
  file_failed_ = true;
}

ResultTextOptions Shell::TextOptions() const {
  ResultTextOptions options;
  const bool terminal = output_.IsTerminal();
  options.format = settings_.format.value_or(terminal ? ResultFormat::kBox : ResultFormat::kCsv);
  if (settings_.expanded || lines_once_) options.format = ResultFormat::kLine;
  options.null_text = settings_.null_text;
  options.headers = settings_.headers;
  options.separator = settings_.separator;
  options.table = settings_.table;
  options.colors = terminal && HasColors();
  options.widths = settings_.widths;
  options.max_rows = settings_.max_rows.value_or(terminal ? kTerminalRows : 0);
  options.max_width = settings_.max_width.value_or(terminal ? output_.TerminalWidth() : 0);
  return options;
}

void Shell::Message(const std::string& text) {
  std::string line = text + "\n";
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t n = write(STDERR_FILENO, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    rest.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace tessera
