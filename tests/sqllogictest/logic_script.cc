#include "tests/sqllogictest/logic_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace tessera {
namespace {

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

class LogicScriptParser {
 public:
  LogicScriptParser(std::string_view text, std::string_view engine) : engine_(engine) {
    while (!text.empty()) {
      const size_t end = std::min(text.find('\n'), text.size());
      std::string_view line = text.substr(0, end);
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      lines_.push_back(line);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  Result<std::vector<LogicRecord>> Run() {
    bool skip = false;
    while (at_ < lines_.size()) {
      const std::vector<std::string_view> words = Words(lines_[at_]);
      if (words.empty() || words[0][0] == '#') {
        ++at_;
        continue;
      }
      if (words[0] == "skipif" || words[0] == "onlyif") {
        if (words.size() < 2) return Error("an engine's name is missing");
        // A comment may follow the name.
        skip |= (words[1] == engine_) == (words[0] == "skipif");
        ++at_;
        continue;
      }
      LogicRecord record;
      record.line = static_cast<int>(at_) + 1;
      TESSERA_TRY(Parse(words, &record));
      if (!skip) records_.push_back(std::move(record));
      skip = false;
    }
    return std::move(records_);
  }

 private:
  Status Error(const std::string& message) const { return SqlError(fmt::format("line {}: {}", at_ + 1, message)); }

  Status Parse(const std::vector<std::string_view>& words, LogicRecord* record) {
    if (words[0] == "statement") return Statement(words, record);
    if (words[0] == "query") return Query(words, record);
    if (words[0] == "halt") {
      record->kind = LogicRecord::Kind::kHalt;
      ++at_;
      return Status::Ok();
    }
    if (words[0] == "hash-threshold") {
      record->kind = LogicRecord::Kind::kHashThreshold;
      if (words.size() < 2) return Error("hash-threshold needs a number");
      const auto [end, error] =
          std::from_chars(words[1].data(), words[1].data() + words[1].size(), record->hash_threshold);
      if (error != std::errc{} || end != words[1].data() + words[1].size())
        return Error("hash-threshold needs a number");
      ++at_;
      return Status::Ok();
    }
    return Error("unknown record \"" + std::string(words[0]) + "\"");
  }

  Status Statement(const std::vector<std::string_view>& words, LogicRecord* record) {
    record->kind = LogicRecord::Kind::kStatement;
    if (words.size() < 2 || (words[1] != "ok" && words[1] != "error")) return Error("a statement is ok or error");
    record->expect_error = words[1] == "error";
    if (words.size() > 2 && words[2][0] != '#') {
      if (!record->expect_error) return Error("words after \"statement ok\"");
      record->error = std::string(words[2].data(),
                                  static_cast<size_t>(words.back().data() + words.back().size() - words[2].data()));
    }
    ++at_;
    const bool more = Sql(record);
    if (record->sql.empty()) return Error("no statement");
    if (!more) return Status::Ok();
    if (!record->expect_error) return Error("\"statement ok\" has no results");
    for (; at_ < lines_.size() && !lines_[at_].empty(); ++at_) {
      if (!record->error.empty()) record->error += '\n';
      record->error += lines_[at_];
    }
    return Status::Ok();
  }

  Status Query(const std::vector<std::string_view>& words, LogicRecord* record) {
    record->kind = LogicRecord::Kind::kQuery;
    if (words.size() < 2 || words[1].find_first_not_of("TIR") != std::string_view::npos) {
      return Error("the types of a query's columns are letters T, I and R");
    }
    record->types = words[1];
    size_t next = 2;
    if (next < words.size() && (words[next] == "nosort" || words[next] == "rowsort" || words[next] == "valuesort")) {
      record->sort = words[next] == "rowsort"     ? SortMode::kRows
                     : words[next] == "valuesort" ? SortMode::kValues
                                                  : SortMode::kNone;
      ++next;
    }
    if (next < words.size() && words[next][0] != '#') record->label = words[next];
    ++at_;
    if (!Sql(record)) return Error("a query needs ---- and its results");
    if (record->sql.empty()) return Error("no query");
    for (; at_ < lines_.size() && !lines_[at_].empty(); ++at_) record->expected.emplace_back(lines_[at_]);
    return Status::Ok();
  }

  /// Takes the lines of the SQL; true if a line ---- ended them.
  bool Sql(LogicRecord* record) {
    record->sql_line = static_cast<int>(at_) + 1;
    for (; at_ < lines_.size() && !lines_[at_].empty(); ++at_) {
      if (lines_[at_] == "----") {
        ++at_;
        return true;
      }
      if (!record->sql.empty()) record->sql += '\n';
      record->sql += lines_[at_];
    }
    return false;
  }

  std::string_view engine_;
  std::vector<std::string_view> lines_;
  size_t at_ = 0;
  std::vector<LogicRecord> records_;
};

}  // namespace

Result<std::vector<LogicRecord>> ParseLogicScript(std::string_view text, std::string_view engine) {
  return LogicScriptParser(text, engine).Run();
}

}  // namespace tessera
