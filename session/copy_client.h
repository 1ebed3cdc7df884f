// Where COPY FROM STDIN reads and COPY TO STDOUT writes, if that is not the process's own standard input and output: a
// client in another process. With one, COPY without FORMAT is PostgreSQL's text format, which clients expect.
//
// Start at: CopyClient. The thread of the session.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

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
  /// Asks for rows of such columns in PostgreSQL's binary format; Read gives them as CSV. Errors: kUnsupported, this client has
  /// none.
  virtual Status BeginReadBinary(const std::vector<SqlType>& types);
  /// Rows of that number of columns follow. REQUIRES: before Write.
  virtual Status BeginWrite(size_t columns) = 0;
  /// Whole rows. Errors: the client is gone; kCancelled.
  virtual Status Write(std::string&& rows) = 0;
  /// There are no more of them.
  virtual Status EndWrite() { return Status::Ok(); }
  /// The same in the binary format. Errors: as BeginReadBinary; the client is gone; kCancelled.
  virtual Status BeginWriteBinary(size_t columns);
  virtual Status WriteBinary(const RowBatch& batch);
  virtual Status EndWriteBinary();
};

/// Of FORMAT binary without a client that has it.
inline Status NoBinaryCopy() {
  return Unsupported("COPY in binary format is between a server and its clients", -1,
                     "Formats are csv, parquet and arrow.");
}
inline Status CopyClient::BeginReadBinary(const std::vector<SqlType>&) { return NoBinaryCopy(); }
inline Status CopyClient::BeginWriteBinary(size_t) { return NoBinaryCopy(); }
inline Status CopyClient::WriteBinary(const RowBatch&) { return NoBinaryCopy(); }
inline Status CopyClient::EndWriteBinary() { return NoBinaryCopy(); }

}  // namespace tessera
