// GET /metrics: the one page that a server shows on a port of its own, to Prometheus and its kin. A request is read up to
// its empty line, answered, and the connection closed.
//
// Start at: MetricsPort::Open. The thread of the io_context.
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/status.h"

namespace tessera::server {

class MetricsPort {
 public:
  /// `page`: makes the page.
  MetricsPort(asio::io_context* io, std::function<std::string()> page) : acceptor_(*io), page_(std::move(page)) {}

  /// Listens; port 0: a free one. Errors: the address.
  Status Open(const std::string& host, int port);
  /// "127.0.0.1:9187"
  std::string Place() const;
  void Close();

 private:
  class Visit;
  void Accept();

  asio::ip::tcp::acceptor acceptor_;
  std::function<std::string()> page_;
  /// That are open. (The last ones end with the io_context.)
  std::shared_ptr<size_t> visits_ = std::make_shared<size_t>(0);
};

}  // namespace tessera::server
