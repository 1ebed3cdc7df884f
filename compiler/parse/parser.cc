// libpg_query, on a stack that is large enough for the statement.
//
// The grammar itself is bounded (it gives up at 10,000 pending symbols), but chains such as 1+1+1+... are
// left-recursive: they cost the grammar nothing and make trees as deep as the text is long, which libpg_query prints
// with recursion. Measured: 128 bytes of stack a level at most, and no level has fewer than two characters. So a
// statement of 8 KiB needs half a megabyte and is parsed on the caller's stack; a longer one, up to kMaxStatementBytes,
// may need 256 MiB and goes to a thread that has them. (Sending every statement there would cost 50 to 70 us for two
// thread switches, three times the parsing of an SSB query.) The thread is kept, because libpg_query sets up memory
// contexts for each thread that it sees.
#include "compiler/parse/parser.h"

#include <pg_query.h>
#include <pthread.h>
#include <sys/mman.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "base/interrupt.h"
#include "compiler/parse/sql_scanner.h"
#include "tablet/values/utf8.h"

namespace tessera {
namespace {

/// The longest statement that is parsed on the caller's stack.
constexpr size_t kShortStatement = size_t{8} << 10;
/// The thread's stack: reserved address space whose pages are taken when they are touched.
constexpr size_t kStackBytes = size_t{512} << 20;
/// After each statement all pages but this much of it are given back.
constexpr size_t kStackKept = size_t{1} << 20;
constexpr size_t kGuardBytes = size_t{64} << 10;

class ParserThread {
 public:
  /// The one thread of the process. It is never joined: it sleeps whenever no long statement is being parsed.
  static ParserThread& Get() {
    static ParserThread* thread = new ParserThread;
    return *thread;
  }

  Result<PgQueryParseResult> Parse(std::string sql) {
    auto job = std::make_shared<Job>();
    job->sql = std::move(sql);
    std::unique_lock<std::mutex> lock(mutex_);
    if (!running_) TESSERA_TRY(Start());
    // The parser itself cannot be stopped: a cancelled statement leaves its job behind, which the next one waits for.
    constexpr std::chrono::milliseconds kPatience(20);
    while (job_ != nullptr) {
      ThrowIfInterrupted();
      changed_.wait_for(lock, kPatience);
    }
    job_ = job;
    changed_.notify_all();
    while (!job->done) {
      changed_.wait_for(lock, kPatience);
      job->abandoned = !job->done && Interrupted();
      if (job->abandoned) throw Interruption();
    }
    return job->result;
  }

 private:
  Status Start() {
    const auto fail = [](const char* what) {
      return Status(ErrorCode::kResource, std::string("cannot start the parser thread: ") + what);
    };
    stack_ = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK,
                  -1, 0);
    if (stack_ == MAP_FAILED) return fail("no address space for its stack");
    // The lowest pages stay without access: an overflow would be a clean fault, never a write into other memory.
    mprotect(stack_, kGuardBytes, PROT_NONE);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack_, kStackBytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    const int error = pthread_create(&thread, &attributes, &Run, this);
    pthread_attr_destroy(&attributes);
    if (error != 0) {
      munmap(stack_, kStackBytes);
      return fail(std::strerror(error));
    }
    running_ = true;
    return {};
  }

  static void* Run(void* self) {
    static_cast<ParserThread*>(self)->Loop();
    return nullptr;
  }

  void Loop() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return job_ != nullptr; });
      const std::shared_ptr<Job> job = job_;
      lock.unlock();
      job->result = pg_query_parse(job->sql.c_str());
      madvise(static_cast<char*>(stack_) + kGuardBytes, kStackBytes - kGuardBytes - kStackKept, MADV_DONTNEED);
      lock.lock();
      job->done = true;
      if (job->abandoned) pg_query_free_parse_result(job->result);
      job_ = nullptr;
      changed_.notify_all();
    }
  }

  struct Job {
    std::string sql;
    PgQueryParseResult result{};
    bool done = false;
    bool abandoned = false;  ///< the result is not waited for
  };

  std::mutex mutex_;  // of all below, but not of the job's text and, until it is done, its result
  std::condition_variable changed_;
  bool running_ = false;
  void* stack_ = nullptr;
  std::shared_ptr<Job> job_;  // under way
};

/// Derived tables of a statement that may have no name. Each is a parse more.
constexpr int kMostUnnamed = 64;

/// libpg_query counts characters from 1; 0 is no position.
int ByteOffset(std::string_view sql, int cursorpos) {
  if (cursorpos <= 0) return -1;
  int characters = 0;
  for (size_t i = 0; i < sql.size(); ++i) {
    if ((static_cast<unsigned char>(sql[i]) & 0xC0) != 0x80 && ++characters == cursorpos) return static_cast<int>(i);
  }
  return static_cast<int>(sql.size());
}

/// PostgreSQL's scanner takes a run of operator characters as one operator, then gives back what is not part of it, and
/// begins again. So /*/*/*... and ++++... take time with the square of their length. Such text is refused before.
Status RefuseSlowText(std::string_view sql) {
  constexpr size_t kLongestRun = 4096;
  constexpr size_t kMostRestarts = 100;
  const auto is_operator = [](char c) { return std::strchr("~!@#^&|`?+-*/%<>=", c) != nullptr && c != 0; };
  size_t begin = 0, restarts = 0;  // of the run that ends where the token begins
  for (Token t = NextToken(sql, 0); t.kind != Token::Kind::kEnd; t = NextToken(sql, t.end)) {
    if (t.kind != Token::Kind::kSpace && t.kind != Token::Kind::kSymbol) {
      begin = t.end;
      restarts = 0;
      continue;
    }
    for (size_t i = t.begin; i < t.end; ++i) {
      if (!is_operator(sql[i])) {
        begin = i + 1;
        restarts = 0;
        continue;
      }
      if (t.kind == Token::Kind::kSymbol || sql.substr(i, 2) == "/*") ++restarts;
      if (i - begin > kLongestRun && restarts > kMostRestarts)
        return SqlError(ErrorKind::kSyntax, "operator too long", static_cast<int>(begin));
    }
  }
  return {};
}

/// An error at the end of the input is shown after the last character that is not blank.
int EndOfInput(std::string_view sql) {
  size_t end = sql.size();
  while (end > 0 && (sql[end - 1] == ' ' || sql[end - 1] == '\n' || sql[end - 1] == '\r' || sql[end - 1] == '\t'))
    --end;
  return static_cast<int>(end);
}

Result<PgQueryParseResult> RunParser(const std::string& text) {
  if (text.size() <= kShortStatement) return pg_query_parse(text.c_str());
  TESSERA_TRY(RefuseSlowText(text));
  return ParserThread::Get().Parse(text);
}

/// Our error of the grammar's, which is at `position` of `sql`.
Status ErrorOf(const PgQueryError& error, std::string_view sql, int position) {
  std::string message = error.message;
  if (message.starts_with("memory exhausted")) {
    // The grammar's own limit, YYMAXDEPTH, is 10,000 symbols; a level takes a few of them.
    return NestedTooDeeply(position);
  }
  // It quotes the word where it stopped. That may be a text of many lines, or of a megabyte.
  constexpr size_t kLongestMessage = 200;
  const size_t line = message.find('\n');
  if (line <= kLongestMessage) {
    message.resize(line);
    message += "...\"";
  } else if (message.size() > kLongestMessage) {
    size_t cut = kLongestMessage;
    while (cut > 0 && (static_cast<unsigned char>(message[cut]) & 0xC0) == 0x80) --cut;
    message.resize(cut);
    message += "...";
  }
  if (message.ends_with("at end of input")) return SqlError(ErrorKind::kSyntax, std::move(message), EndOfInput(sql));
  if (message.starts_with("LIMIT #,# syntax")) {
    return Unsupported("LIMIT offset, count is not supported", position, "Write LIMIT count OFFSET offset.");
  }
  const bool comment = message.starts_with("unterminated /* comment");
  return SqlError(ErrorKind::kSyntax, std::move(message), position,
                  comment ? "Comments nest: each /* needs a */ of its own." : "");
}

}  // namespace

Status NestedTooDeeply(int position) {
  return SqlError(
      ErrorKind::kTooComplex, "statement is nested too deeply (more than " + std::to_string(kMaxNesting) + " levels)",
      position,
      "A subquery takes 16 levels or more, a query of WITH that reads the one before 4: store the rows of the "
      "inner ones in a table.");
}

Result<ParsedStatement> Parse(std::string_view sql, const QueryRunner& run) {
  if (sql.size() > kMaxStatementBytes) {
    return SqlError(ErrorKind::kSyntax,
                    "statement is too long (" + std::to_string(sql.size()) + " bytes, at most " +
                        std::to_string(kMaxStatementBytes) + ")",
                    -1, "Load data with COPY.");
  }
  if (const size_t nul = sql.find('\0'); nul != std::string_view::npos) {
    return SqlError(ErrorKind::kInvalidText, "statement holds a NUL byte", static_cast<int>(nul));
  }
  if (const size_t bad = FindInvalidUtf8(sql); bad != std::string_view::npos) {
    return SqlError(ErrorKind::kSyntax, "statement is not valid UTF-8", static_cast<int>(bad));
  }
  TESSERA_ASSIGN(DialectText text, DialectText::Read(sql, run));
  std::shared_ptr<char> json;
  for (int named = 0;; ++named) {
    PgQueryParseResult parsed;
    TESSERA_ASSIGN(parsed, RunParser(text.text()));
    json = std::shared_ptr<char>(parsed.parse_tree, [parsed](char*) { pg_query_free_parse_result(parsed); });
    if (parsed.error == nullptr) break;
    // The grammar alone knows where a subquery is a derived table.
    const int position = text.ToOriginal(ByteOffset(text.text(), parsed.error->cursorpos));
    if (std::string_view(parsed.error->message).ends_with(" in FROM must have an alias") && named < kMostUnnamed &&
        text.NameDerivedTable(position))
      continue;
    return ErrorOf(*parsed.error, sql, position);
  }
  TESSERA_ASSIGN(ParseTree tree, ParseTree::Build(std::move(json), text));
  const ParseNode* statements = tree.root().Get(Field::k_stmts);
  if (statements == nullptr || statements->first() == nullptr) return SqlError(ErrorKind::kSyntax, "no statement");
  const ParseNode* first = statements->first();
  if (first->next() != nullptr) {
    // The location is where the text after the semicolon starts: skip blanks.
    auto second = static_cast<size_t>(text.ToOriginal(static_cast<int>(first->next()->Number(Field::k_stmt_location))));
    while (second + 1 < sql.size() && std::strchr(" \t\r\n", sql[second]) != nullptr) ++second;
    return SqlError(ErrorKind::kSyntax, "only one statement is expected here", static_cast<int>(second));
  }
  ParsedStatement result;
  result.statement = first->Get(Field::k_stmt);
  if (result.statement == nullptr) return SqlError(ErrorKind::kSyntax, "no statement");
  result.tree = std::move(tree);
  result.dialect = std::move(text.dialect);
  return result;
}

}  // namespace tessera
