// A CSV file cut into shares of whole records, for several processes that read it at the same time.
//
// Whether a place is inside quotes depends on everything before it. So the file is counted first, in stretches, by all
// processes: of each stretch the line feeds, those outside quotes if it begins outside, and whether its number of quotes
// is odd. From the counts of all stretches follow the state at the begin of each and the number of its first record; and
// a record is found in the file by searching one stretch. Counting costs a tenth of parsing, or less.
//
// A quote toggles wherever it stands (csv_file.h). That takes an escape character that is the quote: what another one
// does depends on the byte before it.
//
// Start at: CsvShares. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "tablet/csv/csv_file.h"

namespace tessera {

struct CsvCount {
  uint64_t lines = 0;    ///< line feeds
  uint64_t records = 0;  ///< those outside quotes, if the first byte is outside; if it is inside, lines - records are
  uint64_t odd_quotes = 0;  ///< 1: the end is inside quotes if the begin is outside, and the other way round

  /// Goes on with text that follows. `text` has kCsvSlack bytes after it.
  void Add(const char* text, size_t size, char quote);
};

/// A place between two records.
struct CsvPlace {
  uint64_t offset = 0;  ///< bytes before it
  uint64_t lines = 0;   ///< line feeds before it
};

class CsvShares {
 public:
  static constexpr uint64_t kLeastStretch = uint64_t{64} << 10;

  /// Of a file with that many bytes. `least_stretch` is for tests.
  CsvShares(uint64_t file_bytes, char quote, uint64_t least_stretch = kLeastStretch);

  size_t stretches() const { return counts_.size(); }
  /// Counts stretches begin .. end - 1. `pool`: nullptr: this thread alone. Errors: kIo.
  Result<std::vector<CsvCount>> Count(const CsvFile& file, size_t begin, size_t end, ThreadPool* pool) const;

  // From here on with the counts of all stretches.

  /// Errors: kIo.
  Status SetCounts(const CsvFile& file, std::vector<CsvCount> counts);
  /// With a last one that ends without a line feed, or inside quotes.
  uint64_t records() const { return records_; }
  /// Where record `record` begins, or the end of the file. Errors: kIo, it is not there any more.
  Result<CsvPlace> Find(const CsvFile& file, uint64_t record) const;

 private:
  uint64_t Begin(size_t stretch) const { return stretch * stretch_bytes_; }
  uint64_t End(size_t stretch) const;

  const uint64_t file_bytes_;
  const char quote_;
  uint64_t stretch_bytes_;
  std::vector<CsvCount> counts_;  ///< of the stretches
  uint64_t records_ = 0;
};

/// Whether records of the file can be found in this way: it is a file, and lines of text that end in line feeds. Errors:
/// kIo.
Result<bool> CanBeShared(const CsvFile& file, const CopyFormat& format);

}  // namespace tessera
