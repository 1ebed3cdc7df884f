// server.h where there is no asio or no OpenSSL to build the server with.

#include "server/server.h"

namespace tessera::server {
namespace {

Status NotBuilt() {
  return Unsupported("this Tessera was built without a server", -1,
                     "Install libasio-dev and libssl-dev, and build again.");
}

}  // namespace

Status RunServer(const SessionOptions&, const ServerOptions&, const std::function<void(const std::string&)>&) {
  return NotBuilt();
}

Result<std::string> RoleLine(const std::string&, const std::string&) { return NotBuilt(); }

Result<std::string> PasswordVerifier(const std::string&) { return NotBuilt(); }

}  // namespace tessera::server
