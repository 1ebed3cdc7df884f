// A database of a campaign, and its answers as text. Each call opens it anew: campaigns ask in a child process.
//
// Start at: OpenSession, Ask.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "session/session.h"

namespace tessera {

/// On the host. "" for a database of its own. Ends the process with status 2 and a message if it cannot be opened.
std::unique_ptr<Session> OpenSession(const std::string& directory, int threads = 2);

/// A statement's result as CSV, or its tag ("INSERT 0 3").
Result<std::string> Ask(Session* session, const std::string& sql);

}  // namespace tessera
