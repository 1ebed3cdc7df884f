#include "server/connection.h"

#include <utility>

#include "base/clock.h"
#include "base/exception_status.h"
#include "base/interrupt.h"
#include "compiler/parse/database_command.h"
#include "compiler/parse/script.h"
#include "session/activity.h"

namespace tessera::server {

Connection::Connection(const Service& service, Link* link, Origin origin, int32_t process, int32_t key)
    : service_(service), link_(*link), origin_(std::move(origin)), process_(process), key_(key) {}

Connection::~Connection() { EndSession(); }

bool Connection::Take(Message&& message) {
  try {
    switch (state_.load()) {
      case State::kStart:
        return Start(message.body);
      case State::kScramFirst:
      case State::kScramFinal:
        if (message.type == 'p') return TakePassword(message.body);
        Refuse("08P01", "expected a password message");
        return false;
      case State::kReady:
        return TakeReady(message);
    }
  } catch (...) {
    // (Statements catch their own. Here the messages themselves had no memory.)
    SendReport(StatusOfException());
  }
  return false;
}

bool Connection::TakeReady(const Message& message) {
  cancelled_ = false;
  works_ = true;
  const bool goes_on = Answer(message);
  works_ = false;
  return goes_on;
}

bool Connection::Answer(const Message& message) {
  if (message.type == 'X') return false;
  if (failed_ && message.type != 'S') return true;
  switch (message.type) {
    case 'Q':
      SimpleQuery(message.body);
      return true;
    case 'S':  // Sync
      failed_ = false;
      // Portals live as long as their transaction.
      if (session_ == nullptr || session_->transaction() == Session::TransactionState::kNone) portals_.clear();
      SendReady();
      return true;
    case 'H':
      Flush();
      return true;
    case 'P':
    case 'B':
    case 'D':
    case 'E':
    case 'C': {
      const Status status = Caught([&] { return TakeExtended(message.type, message.body); });
      if (!status.ok()) {
        failed_ = true;
        Flush();  // who waits for the answers so far has them, as after Flush
      }
      return true;
    }
    case 'd':  // of a COPY that has failed
    case 'c':
    case 'f':
      return true;
    case 'F':
      SendReport(Unsupported("function calls of the protocol are not supported", -1, "Write SELECT f(x)."));
      SendReady();
      return true;
    default:
      Refuse("08P01",
             std::string("invalid frontend message type ") + std::to_string(static_cast<unsigned char>(message.type)));
      return false;
  }
}

void Connection::Refuse(const char* sqlstate, const std::string& message, const std::string& hint) {
  service_.metrics->Failed(sqlstate);
  WriteReport({"FATAL", sqlstate, message, hint, 0}, &out_);
  Flush();
}

void Connection::EndSession() {
  if (activity_ != nullptr) activity_->Disconnect();
  std::unique_ptr<Session> session;
  {
    const std::lock_guard lock(session_mutex_);
    session = std::move(session_);
  }
  portals_.clear();
  session.reset();
  activity_.reset();
}

void Connection::Cancel() {
  // (A session takes no notice before its statement runs.)
  if (works_) cancelled_ = true;
  const std::lock_guard lock(session_mutex_);
  if (session_ != nullptr) session_->Cancel();
}

int64_t Connection::idle_timeout() const {
  const bool idle = session_ != nullptr && session_->transaction() == Session::TransactionState::kNone;
  return idle ? session_->idle_session_timeout() : 0;
}

std::string Connection::Shown(std::string text) const {
  if (files_) return text;
  for (const std::string& folder : service_.hidden) {
    for (size_t at = text.find(folder); at != text.npos; at = text.find(folder, at)) {
      size_t end = at + folder.size();
      while (end < text.size() && std::string_view("\"': \n,;").find(text[end]) == std::string_view::npos) ++end;
      const std::string_view name = "a file of the server";
      text.replace(at, end - at, name);
      at += name.size();
    }
  }
  return text;
}

void Connection::SendReport(const Status& error, std::string_view text, size_t offset) {
  service_.metrics->Failed(error.sqlstate());
  Report report = ReportOf(error, text, offset);
  report.message = Shown(std::move(report.message));
  report.hint = Shown(std::move(report.hint));
  WriteReport(report, &out_);
}

void Connection::SendReady() {
  using enum Session::TransactionState;
  const Session::TransactionState state = session_ != nullptr ? session_->transaction() : kNone;
  out_.Begin('Z');
  out_.Byte(state == kNone ? 'I' : state == kOpen ? 'T' : 'E');
  out_.End();
  Flush();
}

Status Connection::Send() { return link_.Send(out_.Take()); }

void Connection::Flush() {
  if (Send().ok()) link_.Flush();
}

void Connection::SendWarning(const std::string& warning) {
  if (!warning.empty()) WriteReport({"WARNING", "01000", Shown(warning), {}, 0}, &out_);
}

Status Connection::RunStatement(std::string_view sql, const std::vector<Value>* values, Part part, RowSender* sender) {
  const auto start = Clock::now();
  service_.metrics->Began();
  const Status status = Caught([&] { return RunUncounted(sql, values, part, sender); });
  const double milliseconds = MillisecondsSince(start);
  const bool has_run = session_ != nullptr;
  service_.metrics->Ended(FirstWordOf(sql), status.ok(), milliseconds / 1000,
                          has_run && status.ok() ? session_->last_timing().rows : 0);
  if (service_.slow_log != nullptr && has_run) {
    service_.slow_log->Write(
        {process_, user_, application_, origin_.address, sql, milliseconds, session_->last_timing(), status});
  }
  return status;
}

Status Connection::RunUncounted(std::string_view sql, const std::vector<Value>* values, Part part, RowSender* sender) {
  TESSERA_TRY(OpenSession());
  if (cancelled_.exchange(false)) return Cancelled();
  if (part != Part::kAll) session_->BeginImplicit();
  Status status = values != nullptr ? session_->Execute(sql, *values, sender) : session_->Execute(sql, sender);
  SendWarning(session_->TakeWarning());
  // The client hears that the last one is done when all of them are kept.
  if (status.ok() && part == Part::kLast) status = session_->EndImplicit(true);
  TESSERA_TRY(status);
  TESSERA_TRY(sender->Finish());
  ReportSettings(sql);
  return Status::Ok();
}

void Connection::SimpleQuery(std::string_view body) {
  MessageReader reader(body);
  const std::string_view text = reader.String();
  if (const Status read = reader.End(); !read.ok()) {
    SendReport(read);
    return SendReady();
  }
  portals_.erase("");
  const std::vector<StatementText> statements = SplitStatements(text);
  if (statements.empty()) {
    out_.Begin('I');
    out_.End();
  }
  for (const StatementText& statement : statements) {
    const Part part = statements.size() == 1             ? Part::kAll
                      : &statement == &statements.back() ? Part::kLast
                                                         : Part::kSome;
    RowSender sender(statement.sql, {true, {}, &out_, [this] { return Send(); }, nullptr, &service_.options});
    const Status status = Caught([&] { return RunStatement(statement.sql, nullptr, part, &sender); });
    if (status.ok()) continue;
    if (session_ != nullptr) (void)session_->EndImplicit(false);
    SendReport(status, text, statement.offset);
    break;
  }
  SendReady();
}

namespace {

/// The one text that SHOW returns.
class ShownText final : public ResultWriter {
 public:
  Status Begin(const std::vector<vm::ResultColumn>&) override { return Status::Ok(); }
  Status Rows(RowBatch&& batch) override {
    if (batch.rows > 0) text = batch.columns[0].Text(0);
    return Status::Ok();
  }
  Status End() override { return Status::Ok(); }
  Status Done(const std::string&) override { return Status::Ok(); }
  Status Text(const std::string&) override { return Status::Ok(); }

  std::string text;
};

}  // namespace

void Connection::ReportSettings(std::string_view sql) {
  const std::string word = FirstWordOf(sql);
  if (word != "set" && word != "reset" && word != "discard") return;
  ShownText shown;
  if (!session_->Execute("SHOW timezone", &shown).ok() || shown.text == zone_) return;
  zone_ = shown.text;
  SendParameter("TimeZone", zone_);
}

// ---- COPY -----------------------------------------------------------------------------------------------------------

Status Connection::SendCopyResponse(char type, size_t columns, bool binary) {
  out_.Begin(type);
  out_.Byte(binary ? 1 : 0);
  out_.Int16(static_cast<int16_t>(columns));
  for (size_t c = 0; c < columns; ++c) out_.Int16(binary ? 1 : 0);
  out_.End();
  return Send();
}

Status Connection::BeginRead(size_t columns) {
  copy_reader_.reset();
  TESSERA_TRY(SendCopyResponse('G', columns));
  link_.Flush();
  return Status::Ok();
}

Status Connection::BeginReadBinary(const std::vector<SqlType>& types) {
  copy_reader_ = std::make_unique<BinaryCopyReader>(types);
  TESSERA_TRY(SendCopyResponse('G', types.size(), true));
  link_.Flush();
  return Status::Ok();
}

Result<bool> Connection::Read(std::string* bytes) {
  for (;;) {
    TESSERA_ASSIGN(Message message, link_.Wait());
    switch (message.type) {
      case 'd':
        if (copy_reader_ == nullptr) {
          *bytes = std::move(message.body);
        } else {
          bytes->clear();
          TESSERA_TRY(copy_reader_->Read(message.body, bytes));
        }
        return true;
      case 'c':
        if (copy_reader_ != nullptr) TESSERA_TRY(copy_reader_->End());
        return false;
      case 'f': {
        MessageReader reader(message.body);
        return Status(ErrorKind::kCancelled, "COPY from stdin failed: " + std::string(reader.String()));
      }
      case 'H':
      case 'S':
        break;
      default:
        return ProtocolError("unexpected message type " + std::to_string(static_cast<unsigned char>(message.type)) +
                             " during COPY from stdin");
    }
  }
}

Status Connection::BeginWrite(size_t columns) { return SendCopyResponse('H', columns); }

Status Connection::BeginWriteBinary(size_t columns) {
  copy_begun_ = false;
  return SendCopyResponse('H', columns, true);
}

/// (A message a row, as PostgreSQL sends them; the first has the header, too.)
Status Connection::WriteBinary(const RowBatch& batch) {
  constexpr size_t kPiece = size_t{32} << 10;
  for (size_t row = 0; row < batch.rows; ++row) {
    out_.Begin('d');
    if (!std::exchange(copy_begun_, true)) out_.Bytes(kBinaryCopyHeader);
    WriteBinaryRow(batch, row, &out_);
    out_.End();
    if (out_.size() >= kPiece) TESSERA_TRY(Send());
  }
  return Send();
}

Status Connection::EndWriteBinary() {
  out_.Begin('d');
  if (!copy_begun_) out_.Bytes(kBinaryCopyHeader);
  out_.Bytes(kBinaryCopyEnd);
  out_.End();
  return EndWrite();
}

/// (libpq takes the end of the statement for it; asyncpg waits.)
Status Connection::EndWrite() {
  out_.Begin('c');
  out_.End();
  return Send();
}

/// (Clients take a message for a line or for several; PostgreSQL sends a line each, on which some rely.)
Status Connection::Write(std::string&& rows) {
  constexpr size_t kPiece = size_t{32} << 10;
  for (size_t begin = 0; begin < rows.size();) {
    const size_t end = std::min(rows.find('\n', begin), rows.size() - 1) + 1;
    out_.Begin('d');
    out_.Bytes(std::string_view(rows).substr(begin, end - begin));
    out_.End();
    begin = end;
    if (out_.size() >= kPiece) TESSERA_TRY(Send());
  }
  return Send();
}

}  // namespace tessera::server
