#include "shell/script_rows.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/parse/script.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/query/schema_text.h"
#include "session/copy_text.h"
#include "tablet/files/io_error.h"

namespace tessera {
namespace {

struct CopyWords {
  Token stdin_word;
  bool has_options = false;
};

std::optional<CopyWords> FindCopy(std::string_view sql) {
  CopyWords found;
  bool is_first = true, after_from = false, after_stdin = false;
  for (Token t = NextToken(sql, 0); t.kind != Token::Kind::kEnd; t = NextToken(sql, t.end)) {
    if (t.kind == Token::Kind::kSpace) continue;
    const std::string_view text = sql.substr(t.begin, t.end - t.begin);
    const auto is = [&](std::string_view word) {
      return t.kind == Token::Kind::kWord &&
             std::ranges::equal(text, word, [](char a, char b) { return (a | 0x20) == b; });
    };
    if (std::exchange(is_first, false) && !is("copy")) return std::nullopt;
    if (after_stdin) found.has_options = true;
    if (after_from && is("stdin")) {
      found.stdin_word = t;
      after_stdin = true;
    }
    after_from = is("from");
  }
  return after_stdin ? std::optional(found) : std::nullopt;
}

}  // namespace

RowForm FormOfRows(std::string_view script) {
  const std::vector<StatementText> statements = SplitStatements(script);
  const std::optional<CopyWords> copy = statements.empty() ? std::nullopt : FindCopy(statements.back().sql);
  return !copy ? RowForm::kNone : copy->has_options ? RowForm::kCsv : RowForm::kText;
}

Status ScriptRows::Open(TemporaryFile* file, File* out) {
  TESSERA_ASSIGN(*file, TemporaryFile::Create());
  out->reset(std::fopen(file->path().c_str(), "we"));
  return *out != nullptr ? Status::Ok() : IoError("could not open", file->path(), errno);
}

Status ScriptRows::Put(std::string_view text, const File& file) {
  const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size();
  return written ? Status::Ok() : IoError("could not write", "the rows of COPY", errno);
}

Status ScriptRows::Add(std::string_view line) {
  if (out_ == nullptr) TESSERA_TRY(Open(&lines_, &out_));
  TESSERA_TRY(Put(line, out_));
  return Put("\n", out_);
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

Result<std::string> ScriptRows::Statement(std::string_view sql) {
  File csv;
  TESSERA_TRY(Open(&csv_, &csv));
  Status status;
  CopyTextReader reader({});
  TESSERA_TRY(ForEachLine([&](std::string_view line) {
    std::string text = std::string(line) + '\n';
    if (form_ == RowForm::kText) reader.Read(std::exchange(text, {}), &text);
    if (status.ok()) status = Put(text, csv);
  }));
  TESSERA_TRY(status);
  if (std::fclose(csv.release()) != 0) return IoError("could not write", csv_.path(), errno);
  const std::optional<CopyWords> copy = FindCopy(sql);
  if (!copy) return Status(ErrorCode::kInternal, "rows of a script without COPY");
  std::string out(sql);
  return out.replace(copy->stdin_word.begin, copy->stdin_word.end - copy->stdin_word.begin, QuotedText(csv_.path()));
}

}  // namespace tessera
