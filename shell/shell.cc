#include "shell/shell.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
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
#include "shell/server_names.h"
#include "shell/sqlite_sequence.h"
#include "shell/statement_name.h"
#include "tablet/files/io_error.h"

namespace tessera {
namespace {

/// Says what is open, if a quote or a comment is.
std::string ContinuationPrompt(std::string_view open) { return fmt::format("{:>4}...> ", open); }

bool IsBlank(std::string_view text) { return text.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos; }

std::string HomeFile(const char* name) {
  const char* home = std::getenv("HOME");
  return home == nullptr || *home == 0 ? std::string() : std::string(home) + "/" + name;
}

}  // namespace

Shell::Shell(std::unique_ptr<ShellSession> session, const CommandLine& line) : state_(std::move(session), line) {}

int Shell::Run() {
  state_.interactive = state_.line.script.inputs.empty() && !state_.line.script.batch && isatty(STDIN_FILENO) == 1;
  WatchInterrupts(state_.session.get(), state_.interactive);
  Greet();
  RunStart();
  if (state_.interactive) {
    RunInteractive();
  } else if (state_.line.script.inputs.empty()) {
    RunStandardInput();
  } else {
    RunInputs();
  }
  StopWatchingInterrupts();
  if (const Status written = state_.reports.End(); !written.ok()) {
    ShellState::Message(written.message());
    state_.file_failed = true;
  }
  if (state_.output.reader_gone()) return kExitOk;  // `| head` has seen what it wanted
  if (state_.output.failed()) return kExitUsage;
  if (state_.quit_status >= 0) return state_.quit_status;
  if (state_.file_failed) return kExitUsage;
  return failed_ && !state_.interactive ? kExitSqlError : kExitOk;
}

// ---- Where statements come from -------------------------------------------------------------------------------------

void Shell::Greet() {
  const std::string& directory = state_.line.session.directory;
  if (state_.interactive) {
    ShellState::Message(fmt::format("Tessera {} ({}). Enter .help for help.", kVersion, state_.session->Description()));
    if (directory.empty() && state_.session->local() != nullptr)
      ShellState::Message("No database directory was given: this one lives until you leave.");
  }
  // The name may be a mistake.
  if (!directory.empty() && state_.session->local()->is_new())
    ShellState::Message(directory + ": a new database, written at its first change");
}

void Shell::RunStart() {
  const std::string file = !state_.line.script.init_file.empty()                 ? state_.line.script.init_file
                           : state_.interactive && state_.line.script.reads_home ? HomeFile(".tesserarc")
                                                                                 : "";
  if (!state_.line.script.init_file.empty() || (!file.empty() && access(file.c_str(), R_OK) == 0)) {
    Status status = RunFile(file);
    if (!status.ok()) ShellState::Message(status.message());
    state_.file_failed |= !status.ok() && !state_.interactive;
  }
  for (const std::string& command : state_.line.script.commands) {
    if (!state_.Continues()) break;
    RunText(command, "");
  }
}

void Shell::RunInputs() {
  for (const CommandLineInput& input : state_.line.script.inputs) {
    if (!state_.Continues()) break;
    if (input.kind == CommandLineInput::Kind::kText) {
      RunText(input.text, "");
      continue;
    }
    Status status = RunFile(input.text);
    if (status.ok()) continue;
    ShellState::Message("tessera: " + status.message());
    state_.file_failed = true;
    if (state_.settings.bail) break;
  }
}

void Shell::RunInteractive() {
  LineEditor editor(HomeFile(".tessera_history"));
  Script script;
  script.interactive = true;
  editor.SetCompleter([this, &script](std::string_view text) {
    CompletionNames names;
    names.dot_commands = DotCommands::Names();
    if (Session* const session = state_.session->local(); session == nullptr) {
      names.snapshot = NamesOfServer(state_.session.get());
    } else if (const Result<std::shared_ptr<const Snapshot>> tables = session->Tables(); tables.ok()) {
      names.snapshot = *tables;
    }
    return Complete(names, script.buffer, text);
  });
  std::string typed;  // since the first prompt of the statement
  for (;;) {
    state_.stopped = false;  // an error ends the line only
    if (!state_.Continues()) return;
    TakeInterrupt();  // a Ctrl-C that came too late for the statement before
    std::string line;
    const std::string prompt = script.buffer.empty() ? state_.settings.prompt
                               : state_.settings.continued_prompt.empty()
                                   ? ContinuationPrompt(script.end.Open(script.buffer))
                                   : state_.settings.continued_prompt;
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
    ShellState::Message("tessera: could not read standard input: " + std::generic_category().message(errno));
    state_.file_failed = true;
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
  while (state_.Continues()) {
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
    for (size_t end; state_.Continues() && (end = text.find('\n', searched)) != std::string::npos;) {
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
  while (!text.empty() && state_.Continues()) {
    const size_t end = text.find('\n');
    TakeLine(script, text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

bool Shell::TakeHabit(Script* script, std::string_view line) {
  const bool at_start = script->buffer.empty();
  if (!at_start && script->interactive && IsWayOut(line)) {
    ShellState::Message("The statement is not finished: it ends with a semicolon, or with Ctrl-C, which forgets it.");
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
      if (state_.session->local() == nullptr && !TakesRows(habit->text)) {  // a file of this machine
        const Status status = state_.CopyThroughServer(habit->text);
        if (!status.ok()) ReportError(status, habit->text, script->line, *script);
        return true;
      }
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
  RunMark mark;
  if (!script->end.IsBetweenStatements(script->buffer) && !EndWithRunMark(script, &mark)) return;
  if (TakesRows(script->buffer)) {
    script->rows = std::make_unique<ScriptRows>(script->line);
    return;
  }
  if (mark.kind == RunMark::Kind::kWatch) {
    Watch(script, mark);
  } else {
    RunBuffer(script);
  }
  state_.lines_once = false;
}

bool Shell::EndWithRunMark(Script* script, RunMark* mark) {
  const RunMark found = FindRunMark(script->buffer);
  if (found.bytes == 0 || !script->end.Open(script->buffer).empty()) return false;
  script->buffer.replace(script->buffer.size() - found.bytes, found.bytes, ";\n");
  if (found.kind == RunMark::Kind::kDescribe) {
    const std::vector<StatementText> statements = SplitStatements(script->buffer);
    if (!statements.empty()) script->buffer.insert(statements.back().offset, "DESCRIBE ");
  }
  state_.lines_once = found.kind == RunMark::Kind::kAsLines;
  *mark = found;
  script->end = {};
  return script->end.IsBetweenStatements(script->buffer);
}

void Shell::Watch(Script* script, const RunMark& mark) {
  const std::string text = std::exchange(script->buffer, {});
  if (mark.seconds < 0) {
    script->end = {};
    const Status error =
        SqlError("\\watch takes a number of seconds, and c= with how often", -1, "As in SELECT now() \\watch 10 c=3");
    ReportError(error, text, script->line, *script);
    return;
  }
  const bool failed_before = std::exchange(failed_, false);
  for (int64_t runs = 1;; ++runs) {
    script->buffer = text;
    RunBuffer(script);
    if (failed_ || !state_.Continues() || PendingInterrupt() != 0 || runs == mark.times) break;
    pollfd interrupt = {InterruptDescriptor(), POLLIN, 0};
    (void)poll(&interrupt, 1, static_cast<int>(mark.seconds * 1000));
    if (PendingInterrupt() != 0) break;
  }
  failed_ = failed_ || failed_before;
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
      if (state_.Continues()) TakeLine(script, line);
    });
    if (!status.ok()) ReportError(status, "", script->line, *script);
    TakeEnd(script);
    return;
  }
  if (!script->buffer.empty() && state_.Continues()) RunBuffer(script);
}

void Shell::RunBuffer(Script* script, ScriptRows* rows) {
  const std::string text = std::move(script->buffer);
  script->buffer.clear();
  script->end = {};
  size_t end = 0;  // of the statement before
  const std::vector<StatementText> statements = SplitStatements(text);
  for (const StatementText& statement : statements) {
    if (!state_.Continues()) return;
    NameInComment(std::string_view(text).substr(end, statement.offset - end), &script->next);
    end = statement.offset + statement.sql.size();
    std::string name = std::exchange(script->next, {});
    if (name.empty()) name = NameOfScript(script->name);
    const int line = script->buffer_line + statement.line - 1;
    const bool reads = rows != nullptr && &statement == &statements.back();
    if (NamesSqliteSequence(statement.sql) && RunSqliteSequence(statement.sql, line, *script)) continue;
    if (reads) state_.session->SetCopyClient(rows);
    RunStatement(statement.sql, line, *script, name);
    if (reads) state_.session->SetCopyClient(nullptr);
    if (state_.interactive && PendingInterrupt() != 0) return;  // Ctrl-C means the rest of the line too
  }
  NameInComment(std::string_view(text).substr(end), &script->next);
}

// ---- Running --------------------------------------------------------------------------------------------------------

void Shell::RunStatement(std::string_view sql, int line, const Script& script, const std::string& name) {
  if (state_.settings.echo) {
    Status echoed = state_.output.Write(std::string(sql) + ";\n");
    if (!echoed.ok()) {
      ReportError(echoed, sql, line, script);
      return;
    }
  }
  Status status = state_.Execute(sql, name);
  if (!status.ok()) ReportError(status, sql, line, script);
  if (status.ok() && state_.session->last_was_query()) state_.last_query = sql;
}

bool Shell::RunSqliteSequence(std::string_view sql, int line, const Script& script) {
  Session* const session = state_.session->local();
  if (session == nullptr) return false;
  const Result<std::shared_ptr<const Snapshot>> tables = session->Tables();
  if (!tables.ok()) return false;
  const std::optional<std::string> set = SequenceStatement(sql, **tables);
  if (!set) return false;
  NoResult none;
  const Status status = set->empty() ? Status::Ok() : session->Execute(*set, &none);
  if (!status.ok()) ReportError(status, *set, line, script);
  return true;
}

void Shell::RunDotCommand(std::string_view text, const Script& script) {
  if (state_.settings.echo && !state_.output.Write(std::string(text) + "\n").ok()) return;
  Status status = DotCommands(&state_, [this](const std::string& file) { return RunFile(file); }).Run(text);
  if (!status.ok()) ReportError(status, text, script.line, script);
}

void Shell::ReportError(const Status& error, std::string_view sql, int line, const Script& script) {
  failed_ = true;
  state_.stopped = state_.settings.bail;
  if (state_.output.reader_gone()) return;
  Status shown = error;
  std::string where;
  if (script.interactive) {
    line = 1;  // what is on the screen starts at the prompt
  } else if (!script.name.empty()) {
    where = fmt::format("{}:{}: ", script.name, line);
  } else if (error.position() < 0 && script.line > 1 && !state_.output.failed()) {
    // An error without a place in a longer script: at least the statement is named.
    shown = error.At(0);
  }
  std::string text = FormatError(shown, sql, line, state_.settings.sqlstates);
  constexpr std::string_view kError = "ERROR:";
  if (text.starts_with(kError) && isatty(STDERR_FILENO) == 1 && HasColors())
    text.replace(0, kError.size(), "\x1b[31mERROR:\x1b[0m");
  ShellState::Message(where + text);
}

}  // namespace tessera
