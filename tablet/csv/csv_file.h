// A CSV file as a sequence of blocks of whole records, read by one thread at a time.
//
// Records end at a line feed outside quotes. Whether a place is inside quotes depends on everything before it, so the
// splitting is sequential; it is a search for the last such line feed of a block and costs a tenth of the parsing,
// which then runs on any number of threads. A quote toggles wherever it stands in a field, as in PostgreSQL's COPY.
//
// A file whose first block (64 KiB or more, or the whole file) holds no line feed outside quotes but a carriage return
// ends its lines with bare carriage returns, as old Macintosh programs do. They are replaced by line feeds as they are
// read, in quotes excepted, so that readers of the blocks know line feeds only.
//
// A file that gzip or zstd has compressed is read as what it is of, and UTF-16 and Latin-1 as UTF-8.
//
// Start at: CsvFile::Open, CsvFile::Read. Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/files/byte_source.h"
#include "tablet/files/file_descriptor.h"
#include "tablet/load/copy_options.h"

namespace tessera {

/// Bytes that may be read after the end of a block's text.
inline constexpr size_t kCsvSlack = 64;

struct CsvBlock {
  uint64_t number = 0;        ///< of the block, from 0
  bool starts_file = false;   ///< it is the first of the file, with its header
  std::vector<char> bytes;    ///< the text and kCsvSlack bytes
  size_t size = 0;            ///< of the text: whole records, each with its line feed; 0 at the end of the file
  bool unterminated = false;  ///< the last record ends inside quotes, at the end of the file
};

/// Replaces carriage returns outside quotes, and a line feed after one, by one line feed. Goes on from call to call.
class CarriageReturnReplacer {
 public:
  /// In place; returns the new size.
  size_t Replace(char* text, size_t size, char quote, char escape);
  bool found_any() const { return found_any_; }

 private:
  bool found_any_ = false;
  bool in_quotes_ = false, escaped_ = false, after_return_ = false;
};

class CsvFile {
 public:
  /// Errors: kIo if it is not there, a directory or unreadable. `name`: for messages; "": the path.
  static Result<CsvFile> Open(const std::string& path, const std::string& name = {});

  /// Sets the block size (tests make it small) and what a quote is. Before the first Read().
  void Configure(const CopyFromOptions& options, size_t block_bytes);
  /// Only bytes begin .. end - 1 are read, which are whole records; `line` is the number of the first line, from 1.
  /// Before the first Read(). Errors: kIo.
  Status Limit(uint64_t begin, uint64_t end, uint64_t line);
  /// Leaves out empty lines after the last record, which many programs write. Not of a table with one column: there each
  /// is a row. Before the first Read(); has no effect after Limit().
  void DropBlankEnd() { drops_blank_end_ = left_ == UINT64_MAX; }
  /// The bytes of the file without such lines. Errors: kIo.
  Result<uint64_t> BytesWithoutBlankEnd() const;
  /// The next block. Errors: kIo; kUnsupported if the file is none of text, but compressed or UTF-16, for example.
  Status Read(CsvBlock* block);

  /// That number of bytes of text, or all, in place of Read().
  Result<std::string> ReadStart(size_t bytes);
  /// Bytes at a place, wherever Read() is; any thread. Errors: kIo; also if the file has become shorter.
  Status ReadAt(uint64_t offset, char* to, size_t bytes) const;

  const std::string& path() const { return path_; }
  /// Of what will be read; 0 if it is not known (a pipe).
  uint64_t size() const { return size_; }
  /// Of the text: of a compressed file an estimate, which gets better while it is read.
  uint64_t text_size() const;
  bool is_compressed() const { return compression_ != FileCompression::kNone; }
  /// When the file was written last, in nanoseconds since 1970; 0 if it is a pipe.
  int64_t written() const { return written_; }
  uint64_t first_line() const { return first_line_; }
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  CsvFile() = default;
  size_t FindLastRecordEnd(const char* text, size_t begin, size_t end);
  size_t TryCarriageReturns(char* text, size_t* size);
  Status CheckText(const char* text, size_t size) const;
  /// Reads over the first lines. Errors: kIo.
  Status SkipLines(std::vector<char>* bytes, size_t* used);
  Result<size_t> ReadSome(char* to, size_t bytes);

  std::string path_;
  FileDescriptor file_;
  FileCompression compression_ = FileCompression::kNone;
  TextEncoding encoding_ = TextEncoding::kUtf8;
  std::unique_ptr<ByteSource> source_;  ///< from the first Read() on
  uint64_t skip_lines_ = 0;             ///< that are left to read over
  uint64_t size_ = 0;
  int64_t written_ = 0;
  uint64_t first_line_ = 1;
  bool at_start_ = true;        ///< the first block is that of the file
  uint64_t left_ = UINT64_MAX;  ///< bytes that may still be read
  uint64_t bytes_read_ = 0;
  uint64_t blocks_ = 0;
  size_t block_bytes_ = 0;
  char quote_ = '"';
  char escape_ = '"';
  std::vector<char> rest_;  ///< after the last record of the last block
  bool in_quotes_ = false;  ///< at the end of what was searched for record ends
  bool escaped_ = false;    ///< ... and the last byte was an escape character inside quotes
  CarriageReturnReplacer returns_;
  bool lines_end_in_returns_ = false;
  bool drops_blank_end_ = false;
  bool end_ = false;
};

}  // namespace tessera
