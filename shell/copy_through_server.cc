// \copy and .import of a shell that speaks to a server: the file is one of this machine, so its rows go over the connection.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <utility>

#include "compiler/parse/sql_scanner.h"
#include "session/copy_client.h"
#include "session/no_result.h"
#include "shell/shell_state.h"
#include "tablet/files/io_error.h"
#include "tablet/load/file_spec.h"

namespace tessera {
namespace {

constexpr size_t kPiece = size_t{1} << 16;

bool IsWord(std::string_view text, std::string_view lower) {
  return std::ranges::equal(text, lower, [](unsigned char a, char b) { return std::tolower(a) == b; });
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n;";
  const size_t begin = text.find_first_not_of(kBlanks);
  return begin == text.npos ? std::string_view() : text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

/// A COPY in its parts.
struct FileCopy {
  bool reads = false;
  std::string_view before;  ///< with FROM or TO
  std::string file;         ///< "": the standard output
  std::string_view options;
};

Result<FileCopy> ReadFileCopy(std::string_view sql) {
  const Status none = SqlError("\\copy takes a table, or a query in parentheses, and a file", -1,
                               "Write \\copy t FROM 'file' (FORMAT csv), or \\copy t TO 'file'.");
  FileCopy copy;
  int depth = 0;
  for (Token t = NextToken(sql, 0); t.kind != Token::Kind::kEnd; t = NextToken(sql, t.end)) {
    const std::string_view text = sql.substr(t.begin, t.end - t.begin);
    depth += text == "(" ? 1 : text == ")" ? -1 : 0;
    if (depth > 0 || t.kind != Token::Kind::kWord || (!IsWord(text, "from") && !IsWord(text, "to"))) continue;
    copy.reads = IsWord(text, "from");
    copy.before = sql.substr(0, t.end);
    const size_t begin = std::min(sql.find_first_not_of(" \t", t.end), sql.size());
    size_t end = 0;
    if (const Token quoted = NextToken(sql, begin); quoted.kind == Token::Kind::kQuoted && sql[begin] == '\'') {
      end = quoted.end;
      for (size_t i = begin + 1; i + 1 < end; ++i) {
        copy.file += sql[i];
        i += sql[i] == '\'' ? 1 : 0;
      }
    } else {  // as psql takes it
      end = std::min(sql.find_first_of(" \t\r\n;", begin), sql.size());
      copy.file = sql.substr(begin, end - begin);
    }
    if (copy.file.empty()) return none;
    if (IsWord(copy.file, "stdout") && !copy.reads) copy.file.clear();
    copy.options = Trimmed(sql.substr(end));
    return copy;
  }
  return none;
}

/// The options with the format, which is CSV where none is given, as it is of a file.
std::string OptionsOf(const FileCopy& copy) {
  const std::string options(copy.options);
  const auto has = [&](std::string_view word) { return FindKeyword(options, 0, word) >= 0; };
  if (copy.file.empty()) return options;
  if (options.empty()) return "(FORMAT csv)";
  const size_t list = options.find_first_not_of(" \t", IsWord(options.substr(0, 4), "with") ? 4 : 0);
  if (list != options.npos && options[list] == '(')
    return has("format") ? options : options.substr(0, list + 1) + "FORMAT csv, " + options.substr(list + 1);
  return has("csv") || has("text") || has("binary") ? options : options + " CSV";
}

/// The rows of a file.
class RowsOfFile final : public CopyClient {
 public:
  RowsOfFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

  Status BeginRead(size_t) override { return Status::Ok(); }
  Result<bool> Read(std::string* bytes) override {
    bytes->resize(kPiece);
    ssize_t n = 0;
    do {
      n = read(fd_, bytes->data(), kPiece);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return IoError("could not read", name_, errno);
    bytes->resize(static_cast<size_t>(n));
    return n > 0;
  }
  Status BeginWrite(size_t) override { return {ErrorCode::kInternal, "a file that is read is written to"}; }
  Status Write(std::string&&) override { return BeginWrite(0); }

 private:
  const int fd_;
  const std::string name_;
};

/// Writes what COPY TO STDOUT sends into a file.
class TextToFile final : public ResultWriter {
 public:
  TextToFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

  Status Begin(const std::vector<vm::ResultColumn>&) override { return Status::Ok(); }
  Status Rows(RowBatch&&) override { return Status::Ok(); }
  Status End() override { return Status::Ok(); }
  Status Done(const std::string& command_tag) override {
    tag = command_tag;
    return Flush();
  }
  Status Text(const std::string& text) override {
    held_ += text;
    return held_.size() >= kPiece ? Flush() : Status::Ok();
  }

  std::string tag;

 private:
  Status Flush() {
    for (std::string_view rest = held_; !rest.empty();) {
      const ssize_t n = write(fd_, rest.data(), rest.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return IoError("could not write", name_, errno);
      rest.remove_prefix(static_cast<size_t>(n));
    }
    held_.clear();
    return Status::Ok();
  }

  const int fd_;
  const std::string name_;
  std::string held_;
};

}  // namespace

Status ShellState::CopyThroughServer(std::string_view sql) {
  TESSERA_ASSIGN(const FileCopy copy, ReadFileCopy(sql));
  std::string statement = std::string(copy.before) + (copy.reads ? " STDIN " : " STDOUT ") + OptionsOf(copy);
  if (copy.file.empty()) return Execute(statement);
  if (line.script.safe) {
    return Status(ErrorKind::kInsufficientPrivilege, "\\copy with a file is refused by --safe",
                  "It reads or writes files; start tessera without --safe.");
  }
  if (IsColumnar(FormatOfName(copy.file))) {
    return Unsupported("Parquet and Arrow files do not go through a server", -1,
                       "COPY in a shell that opened the database reads and writes them; here take CSV.");
  }
  const int fd = copy.reads ? open(copy.file.c_str(), O_RDONLY | O_CLOEXEC)
                            : open(copy.file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return IoError("could not open", copy.file, errno);
  ++statements;
  RowsOfFile rows(fd, copy.file);
  TextToFile text(fd, copy.file);
  session->SetCopyClient(&rows);
  Status status = session->Execute(statement, &text);
  session->SetCopyClient(nullptr);
  if (close(fd) != 0 && status.ok() && !copy.reads) status = IoError("could not write", copy.file, errno);
  if (status.ok()) TellDone(text.tag);
  if (settings.timer) ReportTiming();
  if (const std::string warning = session->TakeWarning(); !warning.empty()) Message("WARNING:  " + warning);
  // Places are those of the statement that was made of this one.
  return status.ok() || status.position() < 0 ? status : Status(status.kind(), status.message(), status.hint());
}

}  // namespace tessera
