#include "shell/script_rows.h"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "compiler/parse/script.h"
#include "compiler/parse/sql_scanner.h"
#include "tablet/files/io_error.h"

namespace tessera {
namespace {

constexpr size_t kPiece = size_t{1} << 16;

bool IsCopyFromStdin(std::string_view sql) {
  bool is_first = true, after_from = false;
  for (Token t = NextToken(sql, 0); t.kind != Token::Kind::kEnd; t = NextToken(sql, t.end)) {
    if (t.kind == Token::Kind::kSpace) continue;
    const std::string_view text = sql.substr(t.begin, t.end - t.begin);
    const auto is = [&](std::string_view word) {
      return t.kind == Token::Kind::kWord &&
             std::ranges::equal(text, word, [](char a, char b) { return (a | 0x20) == b; });
    };
    if (std::exchange(is_first, false) && !is("copy")) return false;
    if (after_from && is("stdin")) return true;
    after_from = is("from");
  }
  return false;
}

}  // namespace

bool TakesRows(std::string_view script) {
  const std::vector<StatementText> statements = SplitStatements(script);
  return !statements.empty() && IsCopyFromStdin(statements.back().sql);
}

Status ScriptRows::Add(std::string_view line) {
  if (out_ == nullptr) {
    TESSERA_ASSIGN(lines_, TemporaryFile::Create());
    out_.reset(std::fopen(lines_.path().c_str(), "we"));
    if (out_ == nullptr) return IoError("could not open", lines_.path(), errno);
  }
  const bool written =
      std::fwrite(line.data(), 1, line.size(), out_.get()) == line.size() && std::fputc('\n', out_.get()) != EOF;
  return written ? Status::Ok() : IoError("could not write", "the rows of COPY", errno);
}

Status ScriptRows::ForEachLine(const std::function<void(std::string_view)>& take) {
  if (out_ == nullptr) return {};
  if (std::fflush(out_.get()) != 0) return IoError("could not write", lines_.path(), errno);
  std::string text;
  return lines_.ForEachPiece([&](const std::string& piece) {
    text += piece;
    size_t begin = 0;
    for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
      take(std::string_view(text).substr(begin, end - begin));
    text.erase(0, begin);
    return Status::Ok();
  });
}

Status ScriptRows::BeginRead(size_t) {
  if (out_ == nullptr) return {};
  if (std::fflush(out_.get()) != 0) return IoError("could not write", lines_.path(), errno);
  in_.reset(std::fopen(lines_.path().c_str(), "re"));
  return in_ != nullptr ? Status::Ok() : IoError("could not open", lines_.path(), errno);
}

Result<bool> ScriptRows::Read(std::string* bytes) {
  if (in_ == nullptr) return false;
  bytes->resize(kPiece);
  bytes->resize(std::fread(bytes->data(), 1, kPiece, in_.get()));
  if (std::ferror(in_.get()) != 0) return IoError("could not read", lines_.path(), errno);
  return !bytes->empty();
}

Status ScriptRows::BeginWrite(size_t) { return {ErrorCode::kInternal, "rows of a script are written to"}; }

Status ScriptRows::Write(std::string&&) { return {ErrorCode::kInternal, "rows of a script are written to"}; }

}  // namespace tessera
