// Reading and splitting.
#include "tablet/csv/csv_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/interruptible_io.h"
#include "tablet/csv/file_signature.h"
#include "tablet/files/io_error.h"

namespace tessera {
namespace {

/// A record of this size has most likely lost a quote; reading on would only take all the memory there is.
constexpr size_t kGreatestRecordBytes = size_t{256} << 20;

/// After this many bytes without a line feed outside quotes, lines may end in carriage returns.
constexpr size_t kLineEndRegion = size_t{64} << 10;

constexpr size_t kNone = SIZE_MAX;

bool IsLineEnd(char c) { return c == '\n' || c == '\r'; }

/// Where the empty lines begin that the text, whole records, ends in.
size_t FindBlankEnd(const char* text, size_t size) {
  size_t at = size;
  while (at > 0 && IsLineEnd(text[at - 1])) --at;
  if (at == 0) return 0;
  // The last record keeps its line end. (A lone carriage return there is an error, which a load reports.)
  const size_t record_end = at + (text[at] == '\r' ? 2 : 1);
  return record_end <= size && text[record_end - 1] == '\n' ? record_end : size;
}

}  // namespace

size_t CarriageReturnReplacer::Replace(char* text, size_t size, char quote, char escape) {
  size_t out = 0;
  for (size_t i = 0; i < size; ++i) {
    char c = text[i];
    const bool after_return = after_return_;
    after_return_ = false;
    if (escaped_) {
      escaped_ = false;
    } else if (in_quotes_ && c == escape && escape != quote) {
      escaped_ = true;
    } else if (c == quote && quote != 0) {
      in_quotes_ = !in_quotes_;
    } else if (!in_quotes_ && c == '\r') {
      c = '\n';
      found_any_ = after_return_ = true;
    } else if (c == '\n' && after_return) {
      continue;
    }
    text[out++] = c;
  }
  return out;
}

Result<CsvFile> CsvFile::Open(const std::string& path, const std::string& name) {
  CsvFile csv;
  csv.path_ = name.empty() ? path : name;
  csv.file_ = FileDescriptor(OpenInterruptible(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!csv.file_.valid()) return IoError("cannot open", csv.path_, errno);
  struct stat info;
  if (fstat(csv.file_.get(), &info) != 0) return IoError("cannot read", csv.path_, errno);
  if (S_ISDIR(info.st_mode)) return IoError("cannot read", csv.path_, EISDIR);
  if (S_ISREG(info.st_mode)) {
    csv.size_ = static_cast<uint64_t>(info.st_size);
    csv.written_ = int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
  }
  (void)posix_fadvise(csv.file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  char start[4] = {};
  if (csv.size_ >= sizeof(start) && pread(csv.file_.get(), start, sizeof(start), 0) == sizeof(start))
    csv.compression_ = CompressionOf({start, sizeof(start)});
  return csv;
}

void CsvFile::Configure(const CopyFromOptions& options, size_t block_bytes) {
  quote_ = options.format.quote;
  escape_ = options.format.escape;
  encoding_ = options.encoding;
  skip_lines_ = options.skip_lines;
  block_bytes_ = block_bytes;
}

uint64_t CsvFile::text_size() const {
  const uint64_t packed = source_ != nullptr ? source_->file_bytes_read() : 0;
  if (!is_compressed() || packed == 0) return is_compressed() ? 0 : size_;
  return static_cast<uint64_t>(static_cast<double>(size_) * static_cast<double>(bytes_read_) /
                               static_cast<double>(packed));
}

Result<size_t> CsvFile::ReadSome(char* to, size_t bytes) {
  if (source_ == nullptr) {
    source_ = UnpackedBytes(compression_, PlainBytes(file_.get(), path_), path_);
    if (encoding_ == TextEncoding::kUtf16) source_ = BytesOfUtf16(std::move(source_), path_);
    if (encoding_ == TextEncoding::kLatin1) source_ = BytesOfLatin1(std::move(source_));
  }
  return source_->Read(to, bytes);
}

Result<std::string> CsvFile::ReadStart(size_t bytes) {
  constexpr size_t kPiece = size_t{64} << 10;
  std::string text;
  while (text.size() < bytes) {
    const size_t used = text.size();
    text.resize(used + std::min(bytes - used, std::max(kPiece, used)));
    TESSERA_ASSIGN(const size_t got, ReadSome(text.data() + used, text.size() - used));
    text.resize(used + got);
    if (got == 0) break;
  }
  return text;
}

/// The lines may hold anything, also quotes.
Status CsvFile::SkipLines(std::vector<char>* bytes, size_t* used) {
  size_t searched = 0;
  while (skip_lines_ > 0) {
    const void* const line = memchr(bytes->data() + searched, '\n', *used - searched);
    if (line != nullptr) {
      searched = static_cast<size_t>(static_cast<const char*>(line) - bytes->data()) + 1;
      --skip_lines_;
      ++first_line_;
      continue;
    }
    searched = 0;
    TESSERA_ASSIGN(*used, ReadSome(bytes->data(), block_bytes_));
    bytes_read_ += *used;
    if (*used == 0) break;
  }
  memmove(bytes->data(), bytes->data() + searched, *used - searched);
  *used -= searched;
  return {};
}

Status CsvFile::Limit(uint64_t begin, uint64_t end, uint64_t line) {
  if (lseek(file_.get(), static_cast<off_t>(begin), SEEK_SET) < 0) return IoError("cannot read", path_, errno);
  size_ = left_ = end - begin;
  at_start_ = begin == 0;
  first_line_ = line;
  return {};
}

Result<uint64_t> CsvFile::BytesWithoutBlankEnd() const {
  // The last bytes, in ever longer pieces, until one has more than line ends.
  for (size_t bytes = 64;; bytes *= 16) {
    const size_t size = static_cast<size_t>(std::min<uint64_t>(bytes, size_));
    std::vector<char> text(size + 1);
    TESSERA_TRY(ReadAt(size_ - size, text.data(), size));
    if (const size_t end = FindBlankEnd(text.data(), size); end > 0 || size == size_) return size_ - size + end;
  }
}

Status CsvFile::ReadAt(uint64_t offset, char* to, size_t bytes) const {
  while (bytes > 0) {
    const ssize_t got = pread(file_.get(), to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return IoError("cannot read", path_, errno);
    if (got == 0) return {ErrorCode::kIo, "\"" + path_ + "\" has changed while it was read"};
    offset += static_cast<uint64_t>(got);
    to += got;
    bytes -= static_cast<size_t>(got);
  }
  return {};
}

/// Continues from the state at `begin`. Returns the position after the last line feed outside quotes, or kNone.
size_t CsvFile::FindLastRecordEnd(const char* text, size_t begin, size_t end) {
  if (!in_quotes_ && (quote_ == 0 || memchr(text + begin, quote_, end - begin) == nullptr)) {
    const void* last = memrchr(text + begin, '\n', end - begin);
    return last == nullptr ? kNone : static_cast<size_t>(static_cast<const char*>(last) - text) + 1;
  }
  size_t last = kNone;
  for (size_t i = begin; i < end; ++i) {
    const char c = text[i];
    if (!in_quotes_) {
      // From quote to quote; in between only the last line feed counts.
      const void* found = memchr(text + i, quote_, end - i);
      const size_t stop = found == nullptr ? end : static_cast<size_t>(static_cast<const char*>(found) - text);
      const void* line = memrchr(text + i, '\n', stop - i);
      if (line != nullptr) last = static_cast<size_t>(static_cast<const char*>(line) - text) + 1;
      i = stop;
      in_quotes_ = found != nullptr;
    } else if (escape_ == quote_) {
      // A doubled quote leaves the quotes and enters them again: the state is the same.
      const void* found = memchr(text + i, quote_, end - i);
      if (found == nullptr) break;
      i = static_cast<size_t>(static_cast<const char*>(found) - text);
      in_quotes_ = false;
    } else if (escaped_) {
      escaped_ = false;  // whatever it was: an escape before any other character stands for itself
    } else if (c == escape_) {
      escaped_ = true;
    } else if (c == quote_) {
      in_quotes_ = false;
    }
  }
  return last;
}

/// For a first block of *size bytes without a line feed outside quotes. Returns the end of the last line that ends in a
/// carriage return, now a line feed, or kNone.
size_t CsvFile::TryCarriageReturns(char* text, size_t* size) {
  CarriageReturnReplacer returns;
  const size_t replaced = returns.Replace(text, *size, quote_, escape_);
  if (!returns.found_any()) return kNone;
  returns_ = returns;
  lines_end_in_returns_ = true;
  *size = replaced;
  in_quotes_ = escaped_ = false;
  return FindLastRecordEnd(text, 0, replaced);
}

/// `text`: the first bytes of the file.
Status CsvFile::CheckText(const char* text, size_t size) const {
  const FileSignature* const found = FindSignature({text, size});
  if (found == nullptr) return {};
  std::string hint = "COPY reads text in UTF-8. ";
  if (found->convert != nullptr) {
    hint +=
        std::string("Convert it on the way: ") + found->convert + " | tessera DATABASE -c \"COPY ... FROM STDIN ...\"";
  } else if (found->format != nullptr) {
    hint = std::string("COPY ... (FORMAT ") + found->format + ") reads it.";
  } else {
    hint += "Write the file as CSV with the program that made it.";
  }
  return {ErrorCode::kUnsupported, "\"" + path_ + "\" is " + found->what + ", not CSV", hint};
}

Status CsvFile::Read(CsvBlock* block) {
  const bool first = blocks_ == 0 && at_start_;
  block->number = blocks_++;
  block->starts_file = first;
  block->size = 0;
  block->unterminated = false;
  block->bytes.clear();
  std::vector<char>& bytes = block->bytes;
  size_t used = rest_.size();
  bytes.resize(used + block_bytes_ + kCsvSlack);
  if (used > 0) memcpy(bytes.data(), rest_.data(), used);
  rest_.clear();
  if (first && skip_lines_ > 0) TESSERA_TRY(SkipLines(&bytes, &used));
  // What was left over has been searched: no record ends in it.
  size_t searched = first ? 0 : used;
  while (!end_) {
    if (bytes.size() - kCsvSlack - used == 0) {
      if (used >= kGreatestRecordBytes) {
        block->unterminated = true;
        end_ = true;
        break;
      }
      bytes.resize(bytes.size() + used);
    }
    const size_t room = std::min<uint64_t>(bytes.size() - kCsvSlack - used, left_);
    size_t size = 0;
    if (room > 0) {
      TESSERA_ASSIGN(size, ReadSome(bytes.data() + used, room));
    }
    if (size == 0) {
      end_ = true;
      break;
    }
    bytes_read_ += size;
    left_ -= size;
    if (lines_end_in_returns_) size = returns_.Replace(bytes.data() + used, size, quote_, escape_);
    used += size;
    // A pipe delivers little at a time; small blocks would cost more than waiting for a whole one.
    if (used < block_bytes_) continue;
    if (first) TESSERA_TRY(CheckText(bytes.data(), used));
    size_t last = FindLastRecordEnd(bytes.data(), searched, used);
    if (last == kNone && first && !lines_end_in_returns_ && used >= kLineEndRegion) {
      last = TryCarriageReturns(bytes.data(), &used);
    }
    searched = used;
    if (last == kNone) continue;
    // Empty lines go with what follows them, if anything does.
    if (drops_blank_end_) last = FindBlankEnd(bytes.data(), last);
    if (last == 0) continue;
    rest_.assign(bytes.data() + last, bytes.data() + used);
    block->size = last;
    memset(bytes.data() + last, 0, kCsvSlack);
    return {};
  }
  if (used == 0) return {};
  if (first) TESSERA_TRY(CheckText(bytes.data(), used));
  const size_t last = FindLastRecordEnd(bytes.data(), searched, used);
  if (last == kNone && first && !lines_end_in_returns_) (void)TryCarriageReturns(bytes.data(), &used);
  block->unterminated = block->unterminated || in_quotes_;
  if (drops_blank_end_ && !block->unterminated) used = FindBlankEnd(bytes.data(), used);
  if (used == 0) return {};
  // The last line may lack its line feed; an unterminated one gets it too, so that the parser sees a record.
  if (block->unterminated || bytes[used - 1] != '\n') {
    if (bytes.size() - kCsvSlack == used) bytes.resize(bytes.size() + 1);
    bytes[used++] = '\n';
  }
  memset(bytes.data() + used, 0, kCsvSlack);
  block->size = used;
  return {};
}

}  // namespace tessera
