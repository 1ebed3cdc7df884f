// A server's session, by libpq.
#include "shell/server_session.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <postgresql/libpq-fe.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "compiler/parse/database_command.h"
#include "server/wire_values.h"
#include "session/copy_client.h"
#include "tablet/files/io_error.h"
#include "tablet/values/array_type.h"

namespace tessera {
namespace {

#define TESSERA_PQ_FUNCTIONS(F)                                                                                     \
  F(PQconnectdbParams)                                                                                              \
  F(PQfinish)                                                                                                       \
  F(PQreset)                                                                                                        \
  F(PQstatus) F(PQerrorMessage) F(PQconnectionNeedsPassword) F(PQhost) F(PQport) F(PQuser) F(PQparameterStatus)     \
      F(PQtransactionStatus) F(PQsetNoticeReceiver) F(PQgetCancel) F(PQfreeCancel) F(PQcancel) F(PQconsumeInput)    \
          F(PQsendQuery) F(PQsetSingleRowMode) F(PQgetResult) F(PQclear) F(PQresultStatus) F(PQresultErrorField)    \
              F(PQresultErrorMessage) F(PQcmdStatus) F(PQcmdTuples) F(PQntuples) F(PQnfields) F(PQfname) F(PQftype) \
                  F(PQfmod) F(PQgetvalue) F(PQgetlength) F(PQgetisnull) F(PQputCopyData) F(PQputCopyEnd)            \
                      F(PQgetCopyData) F(PQfreemem)

/// The functions of libpq. Linked, its libraries would double the time in which a shell starts.
struct LibPq {
#define TESSERA_PQ_FIELD(name) decltype(&::name) name = nullptr;
  TESSERA_PQ_FUNCTIONS(TESSERA_PQ_FIELD)
#undef TESSERA_PQ_FIELD
};

Result<LibPq> LoadLibPq() {
  LibPq pq;
  void* const library = dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  bool is_whole = library != nullptr;
#define TESSERA_PQ_FIND(name) \
  is_whole = is_whole && (pq.name = reinterpret_cast<decltype(&::name)>(dlsym(library, #name))) != nullptr;
  TESSERA_PQ_FUNCTIONS(TESSERA_PQ_FIND)
#undef TESSERA_PQ_FIND
  if (is_whole) return pq;
  const char* const reason = dlerror();
  return Unsupported("a server needs libpq: " + std::string(reason != nullptr ? reason : "libpq.so.5 is too old"), -1,
                     "Install libpq5.");
}

/// An error of libpq, which ends in line feeds.
std::string Trimmed(const char* text) {
  std::string out = text != nullptr ? text : "";
  while (out.ends_with('\n') || out.ends_with(' ')) out.pop_back();
  return out;
}

/// The kind of that SQLSTATE, or of its class.
ErrorKind KindOfSqlState(std::string_view state) {
  constexpr std::pair<ErrorKind, std::string_view> kKinds[] = {
#define TESSERA_ERROR_KIND(name, sqlstate, code, what) {ErrorKind::k##name, sqlstate},
#include "base/error_kinds.def"
  };
  for (const auto& [kind, own] : kKinds) {
    if (own == state) return kind;
  }
  for (const auto& [kind, own] : kKinds) {
    if (own.substr(0, 2) == state.substr(0, 2)) return kind;
  }
  return ErrorKind::kStatement;
}

/// The byte at which the character of that number, from 1, begins; -1: there is none.
int ByteOfCharacter(std::string_view text, int64_t character) {
  for (size_t i = 0; character > 0 && i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (begins && --character == 0) return static_cast<int>(i);
  }
  return -1;
}

/// The type of a column that a server describes.
SqlType TypeOfColumn(Oid oid, int modifier) {
  constexpr Oid kNumeric = 1700;
  if (oid == kNumeric) {
    const int digits = modifier >= 4 ? (modifier - 4) >> 16 : 0, scale = modifier >= 4 ? (modifier - 4) & 0xFFFF : 0;
    return digits > 0 && digits <= 38 && scale <= digits ? SqlType::Decimal(digits, scale) : SqlType::Text();
  }
  // (An ENUM's labels are texts here.)
  return server::TypeOfOid(static_cast<int32_t>(oid)).value_or(SqlType::Text());
}

/// Asks at the terminal, which does not show what is typed.
std::string AskPassword(const std::string& user) {
  const int terminal = open("/dev/tty", O_RDWR | O_CLOEXEC);
  if (terminal < 0) return {};
  const std::string prompt = "Password of " + user + ": ";
  termios shown{};
  std::string password;
  if (tcgetattr(terminal, &shown) == 0) {
    termios hidden = shown;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    (void)tcsetattr(terminal, TCSAFLUSH, &hidden);
    if (write(terminal, prompt.data(), prompt.size()) >= 0) {
      for (char c = 0; read(terminal, &c, 1) == 1 && c != '\n';) password += c;
    }
    (void)tcsetattr(terminal, TCSAFLUSH, &shown);
    (void)!write(terminal, "\n", 1);
  }
  close(terminal);
  return password;
}

class ServerSession final : public ShellSession {
 public:
  ServerSession(const LibPq& pq, bool reads_input) : pq_(pq), reads_input_(reads_input) {}
  ~ServerSession() override {
    Forget();
    pq_.PQfinish(connection_);
  }

  Status Connect(const ServerAddress& address, bool asks);

  Status Execute(std::string_view sql, ResultWriter* out) override;
  void Cancel() override {
    char reason[256];
    if (PGcancel* const cancel = cancel_.load(); cancel != nullptr && runs_)
      pq_.PQcancel(cancel, reason, sizeof reason);
  }
  void SetCopyClient(CopyClient* client) override { copy_client_ = client; }
  void SetProgress(std::function<void(const Progress&)>) override {}
  Session::TransactionState transaction() const override;
  const Timing& last_timing() const override { return timing_; }
  bool last_was_query() const override { return was_query_; }
  std::string TakeWarning() override { return std::exchange(warnings_, {}); }
  std::string Description() const override {
    return fmt::format("server at {}:{}, as {}", pq_.PQhost(connection_), pq_.PQport(connection_),
                       pq_.PQuser(connection_));
  }
  Session* local() override { return nullptr; }

 private:
  /// The rows of one statement on their way to its writer.
  struct Rows {
    bool begun = false;
    bool is_plan = false;  ///< lines of EXPLAIN
    const TimeZone* zone = nullptr;
    RowBatch batch;
  };

  Status Watch();
  void Forget() {
    if (PGcancel* const cancel = cancel_.exchange(nullptr); cancel != nullptr) pq_.PQfreeCancel(cancel);
  }
  Status Lost() const { return {ErrorCode::kIo, Trimmed(pq_.PQerrorMessage(connection_))}; }
  Status ErrorOf(const PGresult* result, std::string_view sql) const;
  Status Take(PGresult* result, std::string_view sql, Rows* rows, ResultWriter* out);
  Status Begin(const PGresult* result, std::string_view sql, Rows* rows, ResultWriter* out) const;
  Status AppendRow(const PGresult* result, int row, Rows* rows) const;
  Status FlushRows(Rows* rows, ResultWriter* out);
  Status CopyIn(size_t columns);
  Status CopyOut(ResultWriter* out);

  const LibPq pq_;
  const bool reads_input_;
  PGconn* connection_ = nullptr;
  std::atomic<PGcancel*> cancel_{nullptr};
  std::atomic<bool> runs_{false};
  CopyClient* copy_client_ = nullptr;
  Timing timing_;
  bool was_query_ = false;
  std::string warnings_;
};

Status ServerSession::Connect(const ServerAddress& address, bool asks) {
  std::string password;
  for (bool again = false;; again = true) {
    // (What is nullptr is as the environment has it.)
    const auto given = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
    const char* const names[] = {"host", "port", "user", "dbname", "password", "client_encoding", "application_name",
                                 nullptr};
    const char* const values[] = {given(address.host), given(address.port),
                                  given(address.user), "tessera",
                                  given(password),     "UTF8",
                                  "tessera",           nullptr};
    connection_ = pq_.PQconnectdbParams(names, values, 0);
    if (pq_.PQstatus(connection_) == CONNECTION_OK) break;
    Status failed = Lost();
    const bool needs_password = pq_.PQconnectionNeedsPassword(connection_) != 0;
    if (needs_password && asks && !again) password = AskPassword(pq_.PQuser(connection_));
    if (password.empty() || again) {
      return {failed.kind(), failed.message(),
              needs_password ? "Set $PGPASSWORD, or write the password into ~/.pgpass." : ""};
    }
    pq_.PQfinish(std::exchange(connection_, nullptr));
  }
  const char* const version = pq_.PQparameterStatus(connection_, "server_version");
  if (version == nullptr || std::string_view(version).find("(Tessera ") == std::string_view::npos) {
    return Unsupported(
        fmt::format("the server at {}:{} is not one of Tessera but PostgreSQL {}", pq_.PQhost(connection_),
                    pq_.PQport(connection_), version != nullptr ? version : "of an unknown version"),
        -1, "psql speaks to it.");
  }
  return Watch();
}

Status ServerSession::Watch() {
  pq_.PQsetNoticeReceiver(
      connection_,
      [](void* self, const PGresult* notice) {
        auto& session = *static_cast<ServerSession*>(self);
        const char* const text = session.pq_.PQresultErrorField(notice, PG_DIAG_MESSAGE_PRIMARY);
        session.warnings_ += (session.warnings_.empty() ? "" : "\n") + Trimmed(text);
      },
      this);
  Forget();
  cancel_ = pq_.PQgetCancel(connection_);
  return Status::Ok();
}

Session::TransactionState ServerSession::transaction() const {
  const PGTransactionStatusType state = pq_.PQtransactionStatus(connection_);
  return state == PQTRANS_INTRANS   ? Session::TransactionState::kOpen
         : state == PQTRANS_INERROR ? Session::TransactionState::kFailed
                                    : Session::TransactionState::kNone;
}

Status ServerSession::Execute(std::string_view sql, ResultWriter* out) {
  const auto start = Clock::now();
  timing_ = {};
  was_query_ = false;
  // Whether the server has gone: the first reads its last words, the second that nothing comes any more.
  for (int i = 0; i < 2; ++i) (void)pq_.PQconsumeInput(connection_);
  if (pq_.PQstatus(connection_) != CONNECTION_OK) {
    pq_.PQreset(connection_);
    if (pq_.PQstatus(connection_) != CONNECTION_OK) return Lost();
    TESSERA_TRY(Watch());
    warnings_ = "the connection to the server was made again: settings and temporary tables of before are gone";
  }
  runs_ = true;
  Status status;
  if (pq_.PQsendQuery(connection_, std::string(sql).c_str()) == 1) {
    pq_.PQsetSingleRowMode(connection_);
    Rows rows;
    // All results are taken, also those after an error, which says that the statement has ended.
    while (PGresult* const result = pq_.PQgetResult(connection_)) {
      const bool failed = !status.ok();
      const Status taken = Take(result, sql, &rows, out);
      const ExecStatusType kind = pq_.PQresultStatus(result);
      pq_.PQclear(result);
      if (failed || taken.ok()) continue;
      status = taken;
      // A writer that takes no more: the server need not send the rest.
      if (kind == PGRES_SINGLE_TUPLE || kind == PGRES_COPY_OUT) Cancel();
    }
  } else {
    status = Lost();
  }
  runs_ = false;
  timing_.total = MillisecondsSince(start);
  if (status.ok()) return status;
  if (pq_.PQstatus(connection_) != CONNECTION_OK)
    return {ErrorCode::kIo, status.message(), "The next statement connects again."};
  return status;
}

Status ServerSession::ErrorOf(const PGresult* result, std::string_view sql) const {
  const auto field = [&](int code) {
    const char* const text = pq_.PQresultErrorField(result, code);
    return std::string(text != nullptr ? text : "");
  };
  const std::string message = field(PG_DIAG_MESSAGE_PRIMARY), place = field(PG_DIAG_STATEMENT_POSITION);
  // What libpq says of itself has no fields.
  if (message.empty()) return {ErrorCode::kIo, Trimmed(pq_.PQresultErrorMessage(result))};
  return {KindOfSqlState(field(PG_DIAG_SQLSTATE)), message, field(PG_DIAG_MESSAGE_HINT),
          place.empty() ? -1 : ByteOfCharacter(sql, std::strtoll(place.c_str(), nullptr, 10))};
}

Status ServerSession::Take(PGresult* result, std::string_view sql, Rows* rows, ResultWriter* out) {
  constexpr size_t kBatch = 2048;
  switch (pq_.PQresultStatus(result)) {
    case PGRES_EMPTY_QUERY:
      return Status::Ok();
    case PGRES_COMMAND_OK:
      timing_.rows = std::strtoull(pq_.PQcmdTuples(result), nullptr, 10);
      return out->Done(pq_.PQcmdStatus(result));
    case PGRES_SINGLE_TUPLE:
      if (!rows->begun) TESSERA_TRY(Begin(result, sql, rows, out));
      TESSERA_TRY(AppendRow(result, 0, rows));
      return rows->batch.rows >= kBatch ? FlushRows(rows, out) : Status::Ok();
    case PGRES_TUPLES_OK: {
      if (!rows->begun) TESSERA_TRY(Begin(result, sql, rows, out));
      TESSERA_TRY(FlushRows(rows, out));
      if (rows->is_plan) return Status::Ok();
      TESSERA_TRY(out->End());
      const std::string tag = pq_.PQcmdStatus(result);
      was_query_ = tag.starts_with("SELECT ") || tag == "SHOW";
      return was_query_ ? Status::Ok() : out->Done(tag);
    }
    case PGRES_COPY_IN:
      return CopyIn(static_cast<size_t>(pq_.PQnfields(result)));
    case PGRES_COPY_OUT:
      return CopyOut(out);
    default:
      return ErrorOf(result, sql);
  }
}

Status ServerSession::Begin(const PGresult* result, std::string_view sql, Rows* rows, ResultWriter* out) const {
  rows->begun = true;
  std::vector<vm::ResultColumn> columns;
  for (int c = 0; c < pq_.PQnfields(result); ++c)
    columns.push_back({pq_.PQfname(result, c), TypeOfColumn(pq_.PQftype(result, c), pq_.PQfmod(result, c))});
  rows->is_plan = columns.size() == 1 && columns[0].name == "QUERY PLAN" && FirstWordOf(sql) == "explain";
  if (const char* const zone = pq_.PQparameterStatus(connection_, "TimeZone"); zone != nullptr) {
    const Result<const TimeZone*> known = FindTimeZone(zone);
    if (known.ok() && !(*known)->IsUtc()) rows->zone = *known;
  }
  rows->batch.columns.resize(columns.size());
  for (size_t c = 0; c < columns.size(); ++c) {
    rows->batch.columns[c].type = columns[c].type;
    rows->batch.columns[c].zone = rows->zone;
  }
  return rows->is_plan ? Status::Ok() : out->Begin(columns);
}

Status ServerSession::AppendRow(const PGresult* result, int row, Rows* rows) const {
  ++rows->batch.rows;
  for (size_t c = 0; c < rows->batch.columns.size(); ++c) {
    ColumnVector& column = rows->batch.columns[c];
    const int at = static_cast<int>(c);
    if (pq_.PQgetisnull(result, row, at) != 0) {
      column.Append(Value::Null(column.type));
      continue;
    }
    const std::string_view text(pq_.PQgetvalue(result, row, at), static_cast<size_t>(pq_.PQgetlength(result, row, at)));
    if (column.type.id == TypeId::kText) {
      column.Append(Value::Text(std::string(text)));
      continue;
    }
    TESSERA_ASSIGN(const Value value, ParseValue(text, column.type, rows->zone));
    column.Append(value);
  }
  return Status::Ok();
}

Status ServerSession::FlushRows(Rows* rows, ResultWriter* out) {
  RowBatch full;
  for (const ColumnVector& column : rows->batch.columns) {
    full.columns.emplace_back();
    full.columns.back().type = column.type;
    full.columns.back().zone = column.zone;
  }
  std::swap(full, rows->batch);
  if (full.rows == 0) return Status::Ok();
  timing_.rows += full.rows;
  if (!rows->is_plan) return out->Rows(std::move(full));
  for (size_t row = 0; row < full.rows; ++row) TESSERA_TRY(out->Text(std::string(full.columns[0].Text(row)) + "\n"));
  return Status::Ok();
}

Status ServerSession::CopyIn(size_t columns) {
  Status status;
  const auto send = [&](std::string_view bytes) {
    return pq_.PQputCopyData(connection_, bytes.data(), static_cast<int>(bytes.size())) == 1 ? Status::Ok() : Lost();
  };
  std::string bytes;
  if (copy_client_ != nullptr) {
    status = copy_client_->BeginRead(columns);
    while (status.ok()) {
      const Result<bool> more = copy_client_->Read(&bytes);
      status = !more.ok() ? more.status() : *more ? send(bytes) : Status::Ok();
      if (!more.ok() || !*more) break;
    }
  } else if (reads_input_) {
    bytes.resize(size_t{1} << 16);
    for (ssize_t n = 1; status.ok() && n > 0;) {
      n = read(STDIN_FILENO, bytes.data(), bytes.size());
      if (n < 0) status = IoError("could not read", "standard input", errno);
      if (n > 0) status = send(std::string_view(bytes).substr(0, static_cast<size_t>(n)));
    }
  } else {
    status = SqlError("COPY FROM STDIN has no rows", -1, "Write them after it, up to a line with \\. alone.");
  }
  // (The answer to this is the next result.)
  if (pq_.PQputCopyEnd(connection_, status.ok() ? nullptr : status.message().c_str()) != 1 && status.ok())
    return Lost();
  return status;
}

Status ServerSession::CopyOut(ResultWriter* out) {
  Status status;
  for (;;) {
    char* bytes = nullptr;
    const int n = pq_.PQgetCopyData(connection_, &bytes, 0);
    if (n < 0) break;  // what it has ended with is the next result
    if (status.ok()) {
      status = out->Text(std::string(bytes, static_cast<size_t>(n)));
      if (!status.ok()) Cancel();
    }
    pq_.PQfreemem(bytes);
  }
  return status;
}

}  // namespace

Result<std::unique_ptr<ShellSession>> ConnectToServer(const ServerAddress& address, bool asks, bool reads_input) {
  TESSERA_ASSIGN(const LibPq pq, LoadLibPq());
  auto session = std::make_unique<ServerSession>(pq, reads_input);
  TESSERA_TRY(session->Connect(address, asks));
  return std::unique_ptr<ShellSession>(std::move(session));
}

}  // namespace tessera
