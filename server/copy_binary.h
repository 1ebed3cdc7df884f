// COPY's binary format: https://www.postgresql.org/docs/15/sql-copy.html has the layout.
//
// Start at: BinaryCopyReader, WriteBinaryRow. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/messages.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"

namespace tessera::server {

/// What a client sends, as CSV: NULL is an empty field, and every other field has quotes.
class BinaryCopyReader {
 public:
  /// `types`: of the columns.
  explicit BinaryCopyReader(const std::vector<SqlType>& types);

  /// Appends the rows that are whole now. Errors: it is not the format; a value is none of its column's type, which is named by
  /// the number of its row.
  Status Read(std::string_view bytes, std::string* csv);
  /// Errors: the end is missing.
  Status End() const;

 private:
  /// Moves past a row at *at, and what ends all of them. False: there is more of it to come.
  Result<bool> TakeRow(size_t* at, std::string* csv);
  Result<bool> TakeHeader(size_t* at);

  std::vector<int32_t> oids_;
  std::string rest_;  ///< of a row
  uint64_t rows_ = 0;
  bool begun_ = false, ended_ = false;
};

/// What comes before the first row, and after the last.
inline constexpr std::string_view kBinaryCopyHeader{"PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", 19};
inline constexpr std::string_view kBinaryCopyEnd{"\377\377", 2};

void WriteBinaryRow(const RowBatch& batch, size_t row, MessageWriter* out);

}  // namespace tessera::server
