#include "server/server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <csignal>
#include <map>
#include <memory>
#include <mutex>

#include "server/authentication.h"
#include "server/client.h"
#include "session/engine.h"

namespace tessera::server {
namespace {

using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;

Status NotListening(const std::string& where, const asio::error_code& error) {
  return {ErrorCode::kIo, "cannot listen on " + where + ": " + error.message()};
}

class Server final : public ClientOwner {
 public:
  Server(const SessionOptions& session, const ServerOptions& options) : service_{session, options, {}} {
    service_.session.engine = std::make_shared<Engine>();
  }

  Status Open() {
    if (!service_.options.roles_file.empty()) {
      TESSERA_ASSIGN(service_.roles, ReadRoles(service_.options.roles_file));
    }
    if (!service_.options.tls_certificate.empty()) TESSERA_TRY(OpenTls());
    // What is wrong with the database is known now, and the sessions that come share its files.
    TESSERA_ASSIGN(first_, Session::Open(service_.session));
    TESSERA_TRY(ListenTcp());
    return ListenLocal();
  }

  /// Where it listens.
  std::string Places() const {
    const ServerOptions& options = service_.options;
    std::string text = (options.host.find(':') != std::string::npos ? "[" + options.host + "]" : options.host) + ":" +
                       std::to_string(port_);
    if (local_.is_open()) text += " and " + local_path_;
    return text;
  }

  void Run() {
    AcceptTcp();
    if (local_.is_open()) AcceptLocal();
    WaitForSignal();
    io_.run();
  }

  asio::io_context& io() override { return io_; }
  Workers& workers() override { return workers_; }
  const Service& service() override { return service_; }
  asio::ssl::context* tls() override { return tls_.get(); }

  bool HasRoom() override {
    const std::lock_guard lock(mutex_);
    return clients_.size() <= static_cast<size_t>(service_.options.max_connections);
  }

  void Cancel(int32_t process, int32_t key) override {
    std::shared_ptr<Client> client;
    {
      const std::lock_guard lock(mutex_);
      const auto at = clients_.find(process);
      if (at != clients_.end() && at->second->key() == key) client = at->second;
    }
    if (client != nullptr) client->Cancel();
  }

  void Forget(int32_t process) override {
    const std::lock_guard lock(mutex_);
    clients_.erase(process);
    // (Nothing else ends io_.run().)
    if (stopping_ && clients_.empty()) signals_.cancel();
  }

 private:
  Status OpenTls() {
    tls_ = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
    asio::error_code error;
    const ServerOptions& options = service_.options;
    tls_->set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
    tls_->use_certificate_chain_file(options.tls_certificate, error);
    if (error)
      return {ErrorCode::kIo, "cannot use the certificate \"" + options.tls_certificate + "\": " + error.message()};
    const std::string& key = options.tls_key.empty() ? options.tls_certificate : options.tls_key;
    tls_->use_private_key_file(key, asio::ssl::context::pem, error);
    if (error) return {ErrorCode::kIo, "cannot use the key \"" + key + "\": " + error.message()};
    return Status::Ok();
  }

  Status ListenTcp() {
    const ServerOptions& options = service_.options;
    const std::string where = options.host + ":" + std::to_string(options.port);
    asio::error_code error;
    Tcp::resolver resolver(io_);
    const auto found = resolver.resolve(options.host, std::to_string(options.port), Tcp::resolver::passive, error);
    if (error || found.empty()) return NotListening(where, error);
    const Tcp::endpoint endpoint = *found.begin();
    tcp_.open(endpoint.protocol(), error);
    if (!error) tcp_.set_option(Tcp::acceptor::reuse_address(true), error);
    if (!error) tcp_.bind(endpoint, error);
    if (!error) tcp_.listen(Tcp::acceptor::max_listen_connections, error);
    if (error) return NotListening(where, error);
    port_ = tcp_.local_endpoint().port();
    return Status::Ok();
  }

  Status ListenLocal() {
    const std::string& folder = service_.options.socket_folder;
    if (folder.empty()) return Status::Ok();
    local_path_ = folder + "/.s.PGSQL." + std::to_string(port_);
    asio::error_code error;
    // What a server has left that was killed: the port is ours, so none listens there.
    struct stat info;
    if (lstat(local_path_.c_str(), &info) == 0 && S_ISSOCK(info.st_mode)) unlink(local_path_.c_str());
    local_.open(Local(), error);
    // For processes of the same user; others come by TCP.
    const mode_t before = umask(0177);
    if (!error) local_.bind(Local::endpoint(local_path_), error);
    umask(before);
    if (!error) local_.listen(Local::acceptor::max_listen_connections, error);
    return error ? NotListening(local_path_, error) : Status::Ok();
  }

  void AcceptTcp() {
    tcp_.async_accept([this](const asio::error_code& error, Tcp::socket socket) {
      if (!tcp_.is_open()) return;
      if (!error) {
        asio::error_code ignored;
        socket.set_option(Tcp::no_delay(true), ignored);
        socket.set_option(asio::socket_base::keep_alive(true), ignored);
        const asio::ip::address from = socket.remote_endpoint(ignored).address();
        const bool is_local =
            from.is_loopback() || (from.is_v6() && from.to_v6().is_v4_mapped() &&
                                   asio::ip::make_address_v4(asio::ip::v4_mapped, from.to_v6()).is_loopback());
        Add(Client::Socket(std::move(socket)), is_local);
      }
      AcceptAfter(error, [this] { AcceptTcp(); });
    });
  }

  void AcceptLocal() {
    local_.async_accept([this](const asio::error_code& error, Local::socket socket) {
      if (!local_.is_open()) return;
      if (!error) Add(Client::Socket(std::move(socket)), true);
      AcceptAfter(error, [this] { AcceptLocal(); });
    });
  }

  /// Without descriptors the next one fails at once, too.
  template <class F>
  void AcceptAfter(const asio::error_code& error, F accept) {
    if (!error) return accept();
    auto timer = std::make_shared<asio::steady_timer>(io_, std::chrono::milliseconds(100));
    timer->async_wait([timer, accept](const asio::error_code&) { accept(); });
  }

  void Add(Client::Socket socket, bool is_local) {
    const Result<std::string> random = RandomBytes(4);
    if (!random.ok()) return;
    MessageReader reader(*random);
    std::shared_ptr<Client> client;
    {
      const std::lock_guard lock(mutex_);
      // (Those that are refused must not fill the memory either.)
      if (clients_.size() > 2 * static_cast<size_t>(service_.options.max_connections) + 100) return;
      while (clients_.contains(next_process_)) next_process_ = next_process_ == INT32_MAX ? 1 : next_process_ + 1;
      client = std::make_shared<Client>(this, std::move(socket), is_local, next_process_, reader.Int32());
      clients_.emplace(next_process_++, client);
      if (next_process_ <= 0) next_process_ = 1;
    }
    client->Begin();
  }

  void WaitForSignal() {
    signals_.async_wait([this](const asio::error_code& error, int signal) {
      if (error) return;
      Stop(signal == SIGINT || stopping_);
      const std::lock_guard lock(mutex_);
      if (!clients_.empty()) WaitForSignal();
    });
  }

  /// No one else is taken. Those that are here end once their statements have, or `at_once`.
  void Stop(bool at_once) {
    asio::error_code ignored;
    tcp_.close(ignored);
    if (local_.is_open()) {
      local_.close(ignored);
      unlink(local_path_.c_str());
    }
    std::vector<std::shared_ptr<Client>> clients;
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      for (const auto& [process, client] : clients_) clients.push_back(client);
    }
    for (const auto& client : clients) client->End(at_once);
  }

  Service service_;
  asio::io_context io_{1};
  std::unique_ptr<asio::ssl::context> tls_;
  std::unique_ptr<Session> first_;
  int port_ = 0;
  Tcp::acceptor tcp_{io_};
  Local::acceptor local_{io_};
  std::string local_path_;
  asio::signal_set signals_{io_, SIGINT, SIGTERM};
  std::mutex mutex_;  ///< guards what follows
  std::map<int32_t, std::shared_ptr<Client>> clients_;
  int32_t next_process_ = 1;
  bool stopping_ = false;
  Workers workers_;  ///< ends first: its work is that of the clients
};

}  // namespace

Status RunServer(const SessionOptions& session, const ServerOptions& options,
                 const std::function<void(const std::string&)>& say) {
  return Caught([&]() -> Status {
    Server server(session, options);
    TESSERA_TRY(server.Open());
    say("listening on " + server.Places());
    server.Run();
    return Status::Ok();
  });
}

Result<std::string> RoleLine(const std::string& role, const std::string& password) {
  TESSERA_ASSIGN(const ScramVerifier verifier, MakeVerifier(password));
  return role + " " + VerifierText(verifier);
}

}  // namespace tessera::server
