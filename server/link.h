// The network's end of a connection, as its protocol sees it.
//
// Start at: Link. The thread that works for the connection.
#pragma once

#include <string>

#include "base/status.h"
#include "server/messages.h"

namespace tessera::server {

/// Where a client is.
struct Origin {
  bool is_local = false;  ///< a process of this machine
  std::string address;    ///< "": it came by the Unix socket
  int port = -1;          ///< -1: the same
};

class Link {
 public:
  virtual ~Link() = default;
  /// The client's next message, once it is there. Errors: the client is gone; bytes that are no message; kCancelled, as
  /// base/interrupt.h says.
  virtual Result<Message> Wait() = 0;
  /// What is sent at the latest with Flush(). Waits while the client has not taken much of what was sent before. Errors: the
  /// client is gone; kCancelled.
  virtual Status Send(std::string&& bytes) = 0;
  virtual void Flush() = 0;
  /// Ends the connection, and the statement that it runs. Any thread.
  virtual void Terminate() = 0;
};

}  // namespace tessera::server
