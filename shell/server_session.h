// A session of a server, to which statements go over PostgreSQL's protocol: by libpq, which is loaded when it is needed.
//
// Start at: ConnectToServer. One thread, see shell_session.h.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "shell/shell_session.h"

namespace tessera {

/// Where a server is and as whom the shell comes. What is "" is as libpq has it: by $PGHOST, $PGPORT, $PGUSER and so on.
struct ServerAddress {
  std::string host;  ///< a name, an address, or the folder of a Unix socket, which begins with a slash
  std::string port;
  std::string user;
};

/// HOST, HOST:PORT, [IPV6]:PORT, FOLDER, FOLDER:PORT or FOLDER/.s.PGSQL.PORT. Errors: kSql, it is none of them.
Result<ServerAddress> ReadServerAddress(std::string_view text);

/// `asks`: a password that the server wants may be asked for at the terminal. `reads_input`: COPY FROM STDIN may read the
/// standard input. Errors: kUnsupported, libpq is not there, or the server is not one of Tessera; kIo, it cannot be reached
/// or refuses.
Result<std::unique_ptr<ShellSession>> ConnectToServer(const ServerAddress& address, bool asks, bool reads_input);

}  // namespace tessera
