// The bytes of a file one after the other: as they are, unpacked by gzip or zstd, or with other characters made UTF-8.
//
// Start at: PlainBytes, UnpackedBytes. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tessera {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// At least one byte, or 0 at the end. Errors: kIo, also of a compressed file that is damaged or cut off.
  virtual Result<size_t> Read(char* to, size_t bytes) = 0;
  /// Of the file itself, so far.
  virtual uint64_t file_bytes_read() const = 0;
};

enum class FileCompression : uint8_t { kNone, kGzip, kZstd };
/// By the first four bytes of a file or more.
FileCompression CompressionOf(std::string_view start);

/// `file`: a descriptor, which stays the caller's and open. `path` is for messages.
std::unique_ptr<ByteSource> PlainBytes(int file, std::string path);
std::unique_ptr<ByteSource> UnpackedBytes(FileCompression compression, std::unique_ptr<ByteSource> packed,
                                          std::string path);
/// UTF-8 of UTF-16 (with or without a byte order mark; little-endian without), or of Latin-1.
std::unique_ptr<ByteSource> BytesOfUtf16(std::unique_ptr<ByteSource> source, std::string path);
std::unique_ptr<ByteSource> BytesOfLatin1(std::unique_ptr<ByteSource> source);

}  // namespace tessera
