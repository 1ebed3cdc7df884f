// Where COPY FROM STDIN reads and COPY TO STDOUT writes, if that is not the process's own standard input and output: a
// client in another process. With one, COPY without FORMAT is PostgreSQL's text format, which clients expect.
//
// Start at: CopyClient. The thread of the session.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera {

class CopyClient {
 public:
  virtual ~CopyClient() = default;
  /// What messages call the rows that it gives.
  virtual const char* rows_name() const { return "the client's rows"; }
  /// Asks for rows of that number of columns. REQUIRES: before Read.
  virtual Status BeginRead(size_t columns) = 0;
  /// The next bytes; false: that was all. Errors: the client ends the COPY, or is gone; kCancelled.
  virtual Result<bool> Read(std::string* bytes) = 0;
  /// Rows of that number of columns follow. REQUIRES: before Write.
  virtual Status BeginWrite(size_t columns) = 0;
  /// Whole rows. Errors: the client is gone; kCancelled.
  virtual Status Write(std::string&& rows) = 0;
};

}  // namespace tessera
