// A client's socket: bytes that come are cut into messages, for which a worker is called; what the connection sends goes out
// while it works on. TLS is here, and what ends a connection from outside: a client that is gone, a login that takes too long,
// the end of the server.
//
// Start at: Client::Begin. The thread of the io_context, but Link is for the worker.
#pragma once

#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/ssl.hpp>
#include <asio/steady_timer.hpp>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "server/connection.h"
#include "server/link.h"
#include "server/workers.h"

namespace tessera::server {

/// What clients ask of the server.
class ClientOwner {
 public:
  virtual ~ClientOwner() = default;
  virtual asio::io_context& io() = 0;
  virtual Workers& workers() = 0;
  virtual const Service& service() = 0;
  /// nullptr if there is no TLS.
  virtual asio::ssl::context* tls() = 0;
  /// Whether one more may log in.
  virtual bool HasRoom() = 0;
  /// Ends the statement of the client that was told these numbers.
  virtual void Cancel(int32_t process, int32_t key) = 0;
  /// It has ended.
  virtual void Forget(int32_t process) = 0;
};

class Client final : public Link, public std::enable_shared_from_this<Client> {
 public:
  using Socket = asio::generic::stream_protocol::socket;

  Client(ClientOwner* owner, Socket socket, Origin origin, int32_t process, int32_t key);
  ~Client() override;

  void Begin();
  int32_t key() const { return key_; }
  void Cancel() { connection_->Cancel(); }
  /// The server ends: so does the client, once its statement has. `at_once`: the statement is cancelled.
  void End(bool at_once);

  Result<Message> Wait() override;
  Status Send(std::string&& bytes) override;
  void Flush() override;
  void Terminate() override { End(true); }

 private:
  void Read();
  void ReadTls();
  /// Takes what has come. False: no more is to be read.
  bool TakeBytes(std::string_view bytes);
  /// The first message, unless it is for the connection. False: nothing more is to be read for now.
  bool TakeFirst();
  void BeginTls();
  void Gone();
  /// Cancels what runs, and what its message begins after that, until it has ended.
  void CancelAll();
  /// Calls a worker. REQUIRES: `lock` holds mutex_, and none is called. Unlocks it.
  void CallWorker(std::unique_lock<std::mutex>* lock);
  void Work();
  /// Ends it after that time, unless a worker is called before. `calls`: that were.
  void WaitIdle(int64_t milliseconds, uint64_t calls);
  /// The next message: 1, it is there; 0, it is not; else an error. REQUIRES: mutex_ is held.
  Result<bool> TakeMessage(Message* message);
  bool HasWork();
  /// Sends what can go at once. REQUIRES: mutex_ is held.
  void SendNow();
  void WriteRest();
  void Finish();
  void CloseSocket();
  size_t most_bytes() const { return connection_->has_logged_in() ? kMostBytes : kMostBeforeLogin; }

  ClientOwner& owner_;
  Socket socket_;
  std::unique_ptr<asio::ssl::stream<Socket&>> tls_;
  std::string tls_bytes_;     ///< that are being read
  asio::steady_timer timer_;  ///< of the login, and of the end
  asio::steady_timer idle_timer_;
  const int32_t process_, key_;
  std::unique_ptr<Connection> connection_;

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::string inbox_;
  size_t taken_ = 0;       ///< of inbox_
  bool is_first_ = true;   ///< no message has been taken
  bool reading_ = true;    ///< false: much is there that is not taken yet, or what comes is not wanted
  bool busy_ = false;      ///< a worker has it
  bool gone_ = false;      ///< the client is, or is to be
  bool ending_ = false;    ///< the server is
  bool too_idle_ = false;  ///< it is to end, as it was idle for long
  uint64_t calls_ = 0;     ///< of workers
  bool finished_ = false;  ///< the connection has ended: once all is sent, the socket is closed
  bool closed_ = false;
  std::string outbox_, sending_;
  bool writing_ = false;  ///< sending_ is on its way
};

}  // namespace tessera::server
