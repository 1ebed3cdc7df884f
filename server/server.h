// tessera --serve: one database for any client of PostgreSQL. README.md beside this file says what it speaks.
//
// Start at: RunServer. The main thread; it returns when the server ends.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"
#include "server/server_options.h"
#include "session/session.h"

namespace tessera::server {

/// Serves the database of `session` until SIGTERM or SIGINT. `say`: gets lines for the one who started it. Errors: the options, the
/// address, the database; that this program was built without what a server needs.
Status RunServer(const SessionOptions& session, const ServerOptions& options,
                 const std::function<void(const std::string&)>& say);

/// What CREATE ROLE keeps of a password. Errors: that this program was built without what a server needs.
Result<std::string> PasswordVerifier(const std::string& password);
/// The line of a roles file for a role with this password. Errors: the same.
Result<std::string> RoleLine(const std::string& role, const std::string& password);

}  // namespace tessera::server
