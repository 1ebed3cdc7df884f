// A TCP port that is listened on.
//
// Start at: ListenOn. One thread.
#pragma once

#include <asio/ip/tcp.hpp>
#include <string>

#include "base/status.h"

namespace tessera::server {

/// Errors: kIo, the address is none, or is taken. `port`: 0, a free one.
Status ListenOn(const std::string& host, int port, asio::ip::tcp::acceptor* acceptor);
Status NotListening(const std::string& where, const asio::error_code& error);
/// "127.0.0.1:5432", "[::1]:5432"
std::string PlaceOf(const asio::ip::tcp::acceptor& acceptor);

}  // namespace tessera::server
