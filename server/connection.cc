#include "server/connection.h"

#include <utility>

#include "base/interrupt.h"
#include "compiler/parse/database_command.h"
#include "compiler/parse/script.h"

namespace tessera::server {

Connection::Connection(const Service& service, Link* link, bool is_local, int32_t process, int32_t key)
    : service_(service), link_(*link), is_local_(is_local), process_(process), key_(key) {}

Connection::~Connection() = default;

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
  WriteReport({"FATAL", sqlstate, message, hint, 0}, &out_);
  Flush();
}

void Connection::EndSession() {
  std::unique_ptr<Session> session;
  {
    const std::lock_guard lock(session_mutex_);
    session = std::move(session_);
  }
  portals_.clear();
}

void Connection::Cancel() {
  const std::lock_guard lock(session_mutex_);
  if (session_ != nullptr) session_->Cancel();
}

void Connection::SendReport(const Status& error, std::string_view text, size_t offset) {
  WriteReport(ReportOf(error, text, offset), &out_);
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
  if (!warning.empty()) WriteReport({"WARNING", "01000", warning, {}, 0}, &out_);
}

Status Connection::RunStatement(std::string_view sql, const std::vector<Value>* values, RowSender* sender) {
  TESSERA_TRY(OpenSession());
  const Status status = values != nullptr ? session_->Execute(sql, *values, sender) : session_->Execute(sql, sender);
  SendWarning(session_->TakeWarning());
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
    RowSender sender(statement.sql, {true, {}, &out_, [this] { return Send(); }, nullptr, &service_.options});
    const Status status = Caught([&] { return RunStatement(statement.sql, nullptr, &sender); });
    if (status.ok()) continue;
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

Status Connection::SendCopyResponse(char type, size_t columns) {
  out_.Begin(type);
  out_.Byte(0);  // text
  out_.Int16(static_cast<int16_t>(columns));
  for (size_t c = 0; c < columns; ++c) out_.Int16(0);
  out_.End();
  return Send();
}

Status Connection::BeginRead(size_t columns) {
  TESSERA_TRY(SendCopyResponse('G', columns));
  link_.Flush();
  return Status::Ok();
}

Result<bool> Connection::Read(std::string* bytes) {
  for (;;) {
    TESSERA_ASSIGN(Message message, link_.Wait());
    switch (message.type) {
      case 'd':
        *bytes = std::move(message.body);
        return true;
      case 'c':
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
