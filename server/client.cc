#include "server/client.h"

#include <sys/socket.h>

#include <array>
#include <asio/post.hpp>
#include <asio/write.hpp>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/exception_status.h"
#include "base/interrupt.h"

namespace tessera::server {
namespace {

/// So much may wait for a worker before no more is read, and so much to be sent before the worker waits.
constexpr size_t kMostUnread = size_t{4} << 20, kMostUnsent = size_t{4} << 20;
constexpr size_t kTlsPiece = size_t{16} << 10;
/// So much is read at once, as a Unix socket may hold: each time the worker is woken.
constexpr size_t kReadPiece = size_t{256} << 10;
/// Of what a large message took, so much is kept until the next one.
constexpr size_t kMostKept = size_t{64} << 10;
/// How often what waits for the client looks whether its statement was cancelled.
constexpr std::chrono::milliseconds kLook{20};

/// A cancel that comes just before a statement begins has no effect, so it is repeated.
constexpr std::chrono::milliseconds kCancelAgain{50};
/// So long may the last that was sent take.
constexpr std::chrono::seconds kLastBytes{5};

Status ClientIsGone() { return {ErrorCode::kIo, "the client is gone"}; }

}  // namespace

Client::Client(ClientOwner* owner, Socket socket, Origin origin, int32_t process, int32_t key)
    : owner_(*owner),
      socket_(std::move(socket)),
      timer_(owner->io()),
      idle_timer_(owner->io()),
      process_(process),
      key_(key),
      connection_(std::make_unique<Connection>(owner->service(), this, std::move(origin), process, key)) {}

Client::~Client() = default;

void Client::Begin() {
  asio::error_code ignored;
  socket_.non_blocking(true, ignored);
  timer_.expires_after(std::chrono::milliseconds(owner_.service().options.authentication_timeout));
  timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (error || self->connection_->has_logged_in()) return;
    self->Gone();
  });
  Read();
}

// ---- Bytes in -------------------------------------------------------------------------------------------------------

void Client::Read() {
  if (tls_ != nullptr) return ReadTls();
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const asio::error_code& error) {
    // One buffer for all clients: they are read by one thread.
    static thread_local std::array<char, kReadPiece> buffer;
    if (error) return self->Gone();
    const ssize_t n = recv(self->socket_.native_handle(), buffer.data(), buffer.size(), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return self->Read();
    if (n <= 0) return self->Gone();
    if (self->TakeBytes({buffer.data(), static_cast<size_t>(n)})) self->Read();
  });
}

void Client::ReadTls() {
  tls_bytes_.resize(kTlsPiece);
  tls_->async_read_some(asio::buffer(tls_bytes_), [self = shared_from_this()](const asio::error_code& error, size_t n) {
    if (error) return self->Gone();
    if (self->TakeBytes(std::string_view(self->tls_bytes_).substr(0, n))) self->ReadTls();
  });
}

bool Client::TakeBytes(std::string_view bytes) {
  owner_.service().metrics->Received(bytes.size());
  std::unique_lock lock(mutex_);
  if (finished_ || gone_) return false;
  inbox_ += bytes;
  if (is_first_ && !TakeFirst()) return false;
  if (inbox_.size() - taken_ >= kMostUnread && HasWork()) reading_ = false;
  const bool reads_on = reading_;
  if (busy_) {
    changed_.notify_all();
  } else if (HasWork()) {
    CallWorker(&lock);
  }
  return reads_on;
}

bool Client::TakeFirst() {
  const Result<size_t> end = FrameEnd(inbox_, true, kMostBeforeLogin);
  if (!end.ok() || *end == 0) return true;
  const Result<StartupMessage> read = ReadStartup(TakeFrame(std::string_view(inbox_).substr(0, *end), true).body);
  if (!read.ok()) return true;
  switch (read->kind) {
    case StartupMessage::Kind::kSession:
      return true;
    case StartupMessage::Kind::kCancel:
      owner_.Cancel(read->process, read->key);
      asio::post(owner_.io(), [self = shared_from_this()] { self->Gone(); });
      return false;
    case StartupMessage::Kind::kTls:
    case StartupMessage::Kind::kGssEncryption:
      break;
  }
  inbox_.erase(0, *end);
  const bool tls = read->kind == StartupMessage::Kind::kTls && owner_.tls() != nullptr && tls_ == nullptr;
  // What came with the request was not encrypted, and may be from another.
  if (tls && !inbox_.empty()) {
    asio::post(owner_.io(), [self = shared_from_this()] { self->Gone(); });
    return false;
  }
  outbox_ += tls ? 'S' : 'N';
  SendNow();
  if (!tls) return TakeFirst();
  asio::post(owner_.io(), [self = shared_from_this()] { self->BeginTls(); });
  return false;
}

void Client::BeginTls() {
  tls_ = std::make_unique<asio::ssl::stream<Socket&>>(socket_, *owner_.tls());
  tls_->async_handshake(asio::ssl::stream_base::server, [self = shared_from_this()](const asio::error_code& error) {
    if (error) return self->Gone();
    self->ReadTls();
  });
}

void Client::Gone() {
  std::unique_lock lock(mutex_);
  if (finished_) return;
  gone_ = true;
  changed_.notify_all();
  if (!busy_) return CallWorker(&lock);
  lock.unlock();
  CancelAll();
}

void Client::CancelAll() {
  connection_->Cancel();
  idle_timer_.expires_after(kCancelAgain);
  idle_timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (error) return;
    std::unique_lock lock(self->mutex_);
    if (self->finished_) return;
    lock.unlock();
    self->CancelAll();
  });
}

void Client::End(bool at_once) {
  std::unique_lock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
  if (!busy_ && !finished_) return CallWorker(&lock);
  lock.unlock();
  if (at_once) asio::post(owner_.io(), [self = shared_from_this()] { self->CancelAll(); });
}

// ---- The worker -----------------------------------------------------------------------------------------------------

bool Client::HasWork() {
  const Result<size_t> end = FrameEnd(std::string_view(inbox_).substr(taken_), is_first_, most_bytes());
  return !end.ok() || *end > 0;
}

void Client::CallWorker(std::unique_lock<std::mutex>* lock) {
  busy_ = true;
  ++calls_;
  lock->unlock();  // the worker wants it at once
  const Status status = owner_.workers().Run([self = shared_from_this()] { self->Work(); });
  // Without a thread there is no one to say so.
  if (!status.ok()) asio::post(owner_.io(), [self = shared_from_this()] { self->Finish(); });
}

Result<bool> Client::TakeMessage(Message* message) {
  const std::string_view rest = std::string_view(inbox_).substr(taken_);
  TESSERA_ASSIGN(const size_t end, FrameEnd(rest, is_first_, most_bytes()));
  if (end == 0) return false;
  *message = TakeFrame(rest.substr(0, end), is_first_);
  is_first_ = false;
  taken_ += end;
  if (taken_ == inbox_.size()) {
    inbox_.clear();
    taken_ = 0;
  } else if (taken_ > kMostUnread / 4) {
    inbox_.erase(0, taken_);
    taken_ = 0;
  }
  if (!reading_ && inbox_.size() - taken_ < kMostUnread / 2) {
    reading_ = true;
    asio::post(owner_.io(), [self = shared_from_this()] { self->Read(); });
  }
  return true;
}

void Client::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (gone_) break;
    Message message;
    const bool was_first = is_first_;
    const Result<bool> taken = Caught([&] { return TakeMessage(&message); });
    if (taken.ok() && !*taken && !ending_ && !too_idle_) {
      busy_ = false;
      if (inbox_.empty() && inbox_.capacity() > kMostKept) inbox_.shrink_to_fit();
      const int64_t idle = connection_->idle_timeout();
      const uint64_t calls = calls_;
      lock.unlock();
      if (idle > 0) asio::post(owner_.io(), [self = shared_from_this(), idle, calls] { self->WaitIdle(idle, calls); });
      return;
    }
    lock.unlock();
    bool goes_on = false;
    if (!taken.ok()) {
      connection_->Refuse(taken.status().sqlstate(), taken.status().message());
    } else if (!*taken && !ending_) {
      connection_->Refuse("57P05", "terminating connection due to idle-session timeout");
    } else if (!*taken) {
      connection_->Refuse("57P01", "terminating connection due to administrator command");
    } else if (was_first && !owner_.HasRoom()) {
      owner_.service().metrics->Refused();
      connection_->Refuse("53300", "sorry, too many clients already",
                          "The server takes more with --max-connections N.");
    } else {
      goes_on = connection_->Take(std::move(message));
    }
    lock.lock();
    if (!goes_on) break;
  }
  lock.unlock();
  Finish();
}

void Client::WaitIdle(int64_t milliseconds, uint64_t calls) {
  idle_timer_.expires_after(std::chrono::milliseconds(milliseconds));
  idle_timer_.async_wait([self = shared_from_this(), calls](const asio::error_code& error) {
    if (error) return;
    std::unique_lock lock(self->mutex_);
    if (self->busy_ || self->finished_ || self->calls_ != calls) return;
    self->too_idle_ = true;
    self->CallWorker(&lock);
  });
}

void Client::Finish() {
  // The session's end may wait for the disk.
  std::unique_lock lock(mutex_);
  finished_ = true;
  reading_ = false;
  lock.unlock();
  connection_->EndSession();
  asio::post(owner_.io(), [self = shared_from_this()] {
    const std::lock_guard guard(self->mutex_);
    if (!self->writing_ || self->gone_) return self->CloseSocket();
    // A client that takes nothing does not keep the server from its end.
    self->timer_.expires_after(kLastBytes);
    self->timer_.async_wait([self](const asio::error_code& error) {
      const std::lock_guard closing(self->mutex_);
      if (!error) self->CloseSocket();
    });
  });
}

void Client::CloseSocket() {
  if (closed_) return;
  closed_ = true;
  timer_.cancel();
  idle_timer_.cancel();
  asio::error_code ignored;
  socket_.close(ignored);
  owner_.Forget(process_);
}

Result<Message> Client::Wait() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (gone_) return ClientIsGone();
    Message message;
    TESSERA_ASSIGN(const bool taken, TakeMessage(&message));
    if (taken) return message;
    if (Interrupted()) return Cancelled();
    changed_.wait_for(lock, kLook);
  }
}

// ---- Bytes out ------------------------------------------------------------------------------------------------------

Status Client::Send(std::string&& bytes) {
  std::unique_lock lock(mutex_);
  if (gone_ || closed_) return ClientIsGone();
  if (outbox_.empty()) {
    outbox_ = std::move(bytes);
  } else {
    outbox_ += bytes;
  }
  if (outbox_.size() < kMostUnsent / 64) return Status::Ok();
  SendNow();
  while (outbox_.size() + sending_.size() > kMostUnsent) {
    if (gone_ || closed_) return ClientIsGone();
    if (Interrupted()) return Cancelled();
    changed_.wait_for(lock, kLook);
  }
  return Status::Ok();
}

void Client::Flush() {
  const std::lock_guard lock(mutex_);
  SendNow();
}

void Client::SendNow() {
  if (writing_ || closed_ || outbox_.empty()) return;
  if (tls_ == nullptr) {
    const ssize_t n = send(socket_.native_handle(), outbox_.data(), outbox_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) owner_.service().metrics->Sent(static_cast<size_t>(n));
    if (n > 0) outbox_.erase(0, static_cast<size_t>(n));
    if (outbox_.empty()) return;
  }
  writing_ = true;
  asio::post(owner_.io(), [self = shared_from_this()] { self->WriteRest(); });
}

void Client::WriteRest() {
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    sending_ = std::exchange(outbox_, {});
  }
  const auto done = [self = shared_from_this()](const asio::error_code& error, size_t n) {
    self->owner_.service().metrics->Sent(n);
    if (error) self->Gone();
    std::unique_lock lock(self->mutex_);
    self->sending_.clear();
    self->changed_.notify_all();
    if (!error && !self->outbox_.empty()) {
      lock.unlock();
      return self->WriteRest();
    }
    self->writing_ = false;
    if (self->finished_) self->CloseSocket();
  };
  if (tls_ != nullptr) {
    asio::async_write(*tls_, asio::buffer(sending_), done);
  } else {
    asio::async_write(socket_, asio::buffer(sending_), done);
  }
}

}  // namespace tessera::server
