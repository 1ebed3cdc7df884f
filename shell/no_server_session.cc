// server_session.h where there was no libpq to build it with.
#include "shell/server_session.h"

namespace tessera {

Result<std::unique_ptr<ShellSession>> ConnectToServer(const ServerAddress&, bool, bool) {
  return Unsupported("this Tessera was built without clients of servers", -1,
                     "Install libpq-dev, libasio-dev and libssl-dev, and build again; or take psql.");
}

}  // namespace tessera
