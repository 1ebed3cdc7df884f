#include "server/metrics_port.h"

#include <algorithm>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/streambuf.hpp>
#include <asio/write.hpp>
#include <chrono>
#include <memory>
#include <string_view>
#include <utility>

#include "server/listening.h"

namespace tessera::server {
namespace {

using Tcp = asio::ip::tcp;

constexpr size_t kMostRequest = 8192, kMostVisits = 32;
constexpr std::chrono::seconds kPatience{10};

std::string Answer(std::string_view status, std::string_view type, std::string_view body, bool with_body) {
  std::string out = "HTTP/1.1 ";
  out.append(status).append("\r\nContent-Type: ").append(type);
  out.append("\r\nContent-Length: ").append(std::to_string(body.size())).append("\r\nConnection: close\r\n\r\n");
  if (with_body) out += body;
  return out;
}

}  // namespace

/// One request and its answer.
class MetricsPort::Visit : public std::enable_shared_from_this<Visit> {
 public:
  Visit(MetricsPort* port, Tcp::socket socket)
      : page_(port->page_), visits_(port->visits_), socket_(std::move(socket)), timer_(socket_.get_executor()) {
    ++*visits_;
  }
  ~Visit() { --*visits_; }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  void Begin() {
    timer_.expires_after(kPatience);
    timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      asio::error_code ignored;
      if (!error) self->socket_.close(ignored);
    });
    asio::async_read_until(socket_, request_, "\r\n\r\n",
                           [self = shared_from_this()](const asio::error_code& error, size_t) {
                             if (error) return self->End();
                             self->Reply();
                           });
  }

 private:
  void Reply() {
    const auto* const bytes = static_cast<const char*>(request_.data().data());
    const std::string_view text(bytes, request_.size());
    const std::string_view line = text.substr(0, text.find("\r\n"));
    const bool is_head = line.starts_with("HEAD ");
    const std::string_view path = line.substr(std::min(line.find(' ') + 1, line.size()));
    const std::string_view name = path.substr(0, path.find_first_of(" ?"));
    if (!is_head && !line.starts_with("GET ")) {
      answer_ = Answer("405 Method Not Allowed", "text/plain", "GET /metrics\n", true);
    } else if (name != "/metrics") {
      answer_ = Answer("404 Not Found", "text/plain", "There is /metrics.\n", !is_head);
    } else {
      answer_ = Answer("200 OK", "text/plain; version=0.0.4; charset=utf-8", page_(), !is_head);
    }
    asio::async_write(socket_, asio::buffer(answer_),
                      [self = shared_from_this()](const asio::error_code&, size_t) { self->End(); });
  }

  void End() {
    asio::error_code ignored;
    timer_.cancel();
    socket_.shutdown(Tcp::socket::shutdown_both, ignored);
    socket_.close(ignored);
  }

  const std::function<std::string()> page_;
  const std::shared_ptr<size_t> visits_;
  Tcp::socket socket_;
  asio::steady_timer timer_;
  asio::streambuf request_{kMostRequest};
  std::string answer_;
};

Status MetricsPort::Open(const std::string& host, int port) {
  TESSERA_TRY(ListenOn(host, port, &acceptor_));
  Accept();
  return Status::Ok();
}

std::string MetricsPort::Place() const { return PlaceOf(acceptor_); }

void MetricsPort::Close() {
  asio::error_code ignored;
  acceptor_.close(ignored);
}

void MetricsPort::Accept() {
  acceptor_.async_accept([this](const asio::error_code& error, Tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (!error && *visits_ < kMostVisits) std::make_shared<Visit>(this, std::move(socket))->Begin();
    // (Without descriptors the next one fails at once, too.)
    if (!error) return Accept();
    auto timer = std::make_shared<asio::steady_timer>(acceptor_.get_executor(), std::chrono::milliseconds(100));
    timer->async_wait([this, timer](const asio::error_code&) {
      if (acceptor_.is_open()) Accept();
    });
  });
}

}  // namespace tessera::server
