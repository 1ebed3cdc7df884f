#include "server/server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "base/exception_status.h"
#include "server/authentication.h"
#include "server/client.h"
#include "server/listening.h"
#include "server/metrics.h"
#include "server/metrics_port.h"
#include "server/slow_log.h"
#include "session/engine.h"

namespace tessera::server {
namespace {

using Tcp = asio::ip::tcp;
using Local = asio::local::stream_protocol;

using Say = std::function<void(const std::string&)>;

class Server final : public ClientOwner {
 public:
  Server(const SessionOptions& session, const ServerOptions& options, const Say& say) : say_(say) {
    service_.session = session;
    service_.options = options;
    service_.session.engine = std::make_shared<Engine>();
    service_.roles = &roles_;
    metrics_ = std::make_unique<Metrics>(service_.session.engine);
    service_.metrics = metrics_.get();
    service_.session.engine->SetMostQueries(options.max_queries);
  }

  Status Open() {
    const ServerOptions& options = service_.options;
    if (options.log_slow >= 0) {
      slow_log_ = std::make_unique<SlowLog>(options.log_slow_file, options.log_slow);
      service_.slow_log = slow_log_.get();
    }
    TESSERA_TRY(ReadAgain());
    // What is wrong with the database is known now, and the sessions that come share its files.
    TESSERA_ASSIGN(first_, Session::Open(service_.session));
    roles_.SetDatabase(&first_->database());
    HidePaths();
    TESSERA_TRY(ListenOn(options.host, options.port, &tcp_));
    port_ = tcp_.local_endpoint().port();
    if (options.metrics_port >= 0) TESSERA_TRY(page_.Open(options.metrics_host, options.metrics_port));
    return ListenLocal();
  }

  /// Where it listens.
  std::string Places() const {
    const ServerOptions& options = service_.options;
    std::string text = (options.host.find(':') != std::string::npos ? "[" + options.host + "]" : options.host) + ":" +
                       std::to_string(port_);
    if (local_.is_open()) text += " and " + local_path_;
    if (options.metrics_port >= 0) text += ", /metrics on " + page_.Place();
    return text;
  }

  void Run() {
    AcceptTcp();
    if (local_.is_open()) AcceptLocal();
    WaitForSignal();
    WaitForHangup();
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
    if (clients_.erase(process) > 0) metrics_->Disconnected();
    if (stopping_ && clients_.empty()) EndSignals();
  }

 private:
  void HidePaths() {
    std::error_code error;
    const std::string& directory = service_.session.directory;
    for (const std::filesystem::path& path :
         {std::filesystem::canonical(directory, error), std::filesystem::absolute(directory, error),
          std::filesystem::path(directory), std::filesystem::temp_directory_path(error)}) {
      // (A short name may stand in a message for another reason.)
      if (path.string().size() > 3) service_.hidden.push_back(path.string());
    }
  }

  /// What SIGHUP asks for: the roles, the certificate, and the log under its name. Errors: of each of them; what was stays.
  Status ReadAgain() {
    const ServerOptions& options = service_.options;
    if (!options.roles_file.empty()) {
      TESSERA_ASSIGN(Roles roles, ReadRoles(options.roles_file));
      roles_.Set(std::move(roles));
    }
    if (!options.tls_certificate.empty()) TESSERA_TRY(OpenTls());
    return slow_log_ != nullptr ? slow_log_->Open() : Status::Ok();
  }

  Status OpenTls() {
    auto tls = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
    asio::error_code error;
    const ServerOptions& options = service_.options;
    tls->set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
    tls->use_certificate_chain_file(options.tls_certificate, error);
    if (error)
      return {ErrorCode::kIo, "cannot use the certificate \"" + options.tls_certificate + "\": " + error.message()};
    const std::string& key = options.tls_key.empty() ? options.tls_certificate : options.tls_key;
    tls->use_private_key_file(key, asio::ssl::context::pem, error);
    if (error) return {ErrorCode::kIo, "cannot use the key \"" + key + "\": " + error.message()};
    tls_ = std::move(tls);  // (Connections hold what they need of the one before.)
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
        const int port = socket.remote_endpoint(ignored).port();
        Add(Client::Socket(std::move(socket)), {is_local, from.to_string(), port});
      }
      AcceptAfter(error, [this] { AcceptTcp(); });
    });
  }

  void AcceptLocal() {
    local_.async_accept([this](const asio::error_code& error, Local::socket socket) {
      if (!local_.is_open()) return;
      if (!error) Add(Client::Socket(std::move(socket)), {true, {}, -1});
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

  void Add(Client::Socket socket, Origin origin) {
    const Result<std::string> random = RandomBytes(4);
    if (!random.ok()) return;
    MessageReader reader(*random);
    std::shared_ptr<Client> client;
    {
      const std::lock_guard lock(mutex_);
      // (Those that are refused must not fill the memory either.)
      if (clients_.size() > 2 * static_cast<size_t>(service_.options.max_connections) + 100) return;
      while (clients_.contains(next_process_)) next_process_ = next_process_ == INT32_MAX ? 1 : next_process_ + 1;
      client = std::make_shared<Client>(this, std::move(socket), std::move(origin), next_process_, reader.Int32());
      clients_.emplace(next_process_++, client);
      metrics_->Connected();
      if (next_process_ <= 0) next_process_ = 1;
    }
    client->Begin();
  }

  void WaitForHangup() {
    hangups_.async_wait([this](const asio::error_code& error, int) {
      if (error) return;
      const Status status = Caught([this] { return ReadAgain(); });
      say_(status.ok() ? "SIGHUP: read again" : "SIGHUP: " + status.message() + "; what was there stays");
      WaitForHangup();
    });
  }

  /// (Nothing else keeps io_.run() from its end.)
  void EndSignals() {
    signals_.cancel();
    hangups_.cancel();
    page_.Close();
  }

  void WaitForSignal() {
    signals_.async_wait([this](const asio::error_code& error, int signal) {
      if (error) return;
      Stop(signal == SIGINT || stopping_);
      const std::lock_guard lock(mutex_);
      if (clients_.empty()) return EndSignals();
      WaitForSignal();
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

  const Say say_;
  Service service_;
  CurrentRoles roles_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<SlowLog> slow_log_;
  asio::io_context io_{1};
  std::unique_ptr<asio::ssl::context> tls_;
  std::unique_ptr<Session> first_;
  int port_ = 0;
  Tcp::acceptor tcp_{io_};
  Local::acceptor local_{io_};
  std::string local_path_;
  MetricsPort page_{&io_, [this] { return metrics_->Text(); }};
  asio::signal_set signals_{io_, SIGINT, SIGTERM}, hangups_{io_, SIGHUP};
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
    Server server(session, options, say);
    TESSERA_TRY(server.Open());
    say("listening on " + server.Places());
    server.Run();
    return Status::Ok();
  });
}

Result<std::string> PasswordVerifier(const std::string& password) {
  TESSERA_ASSIGN(const ScramVerifier verifier, MakeVerifier(password));
  return VerifierText(verifier);
}

Result<std::string> RoleLine(const std::string& role, const std::string& password) {
  TESSERA_ASSIGN(const ScramVerifier verifier, MakeVerifier(password));
  return role + " " + VerifierText(verifier);
}

}  // namespace tessera::server
