#include "capi/connection.h"

#include <unistd.h>

#include <utility>

#include "capi/interrupt_signal.h"
#include "session/engine.h"

namespace tessera {
namespace {

Status OfOtherProcess() {
  return {ErrorKind::kNotInPrerequisiteState,
          "the database was opened before this process was made by fork(), and its threads are not here",
          "Open the database anew in this process."};
}

}  // namespace

Connection::Use::Use(Connection* connection) : connection_(connection) {
  if (connection->interruptible_) signal_ = std::make_unique<InterruptSignal>(connection->session_.get());
}

Connection::Use::~Use() {
  signal_.reset();
  if (connection_ != nullptr) connection_->used_ = false;
}

Connection::Connection(std::shared_ptr<void> database, std::unique_ptr<Session> session)
    : database_(std::move(database)), session_(std::move(session)), process_(getpid()) {}

Connection::~Connection() {
  // (In a child its threads cannot be ended, and its files are the parent's.)
  if (process_ != getpid()) (void)session_.release();
}

Result<Connection::Use> Connection::Begin() {
  if (process_ != getpid()) return OfOtherProcess();
  if (used_.exchange(true)) {
    return Status(ErrorKind::kNotInPrerequisiteState, "another thread uses the connection",
                  "Give each thread a connection of its own.");
  }
  return Use(this);
}

SharedDatabase::SharedDatabase(SessionOptions options) : options_(std::move(options)), process_(getpid()) {}

SharedDatabase::~SharedDatabase() {
  if (process_ != getpid()) (void)first_.release();
}

Result<std::shared_ptr<SharedDatabase>> SharedDatabase::Open(SessionOptions options) {
  options.engine = std::make_shared<Engine>();
  std::shared_ptr<SharedDatabase> database(new SharedDatabase(std::move(options)));
  TESSERA_ASSIGN(database->first_, Session::Open(database->options_));
  return database;
}

Result<std::shared_ptr<Connection>> SharedDatabase::Connect() {
  if (process_ != getpid()) return OfOtherProcess();
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Session> session;
  if (options_.directory.empty()) {
    SessionOptions options = options_;
    options.directory = first_->database().directory();
    TESSERA_ASSIGN(session, Session::Open(options));
  } else if (first_ != nullptr) {
    session = std::move(first_);
  } else {
    TESSERA_ASSIGN(session, Session::Open(options_));
  }
  return std::make_shared<Connection>(shared_from_this(), std::move(session));
}

}  // namespace tessera
