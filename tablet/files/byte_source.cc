#include "tablet/files/byte_source.h"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/interruptible_io.h"
#include "tablet/files/io_error.h"

namespace tessera {
namespace {

constexpr size_t kPieceBytes = size_t{256} << 10;

class FileBytes final : public ByteSource {
 public:
  FileBytes(int file, std::string path) : file_(file), path_(std::move(path)) {}
  Result<size_t> Read(char* to, size_t bytes) override {
    const ssize_t got = ReadInterruptible(file_, to, bytes);
    if (got < 0) return IoError("cannot read", path_, errno);
    read_ += static_cast<uint64_t>(got);
    return static_cast<size_t>(got);
  }
  uint64_t file_bytes_read() const override { return read_; }

 private:
  const int file_;
  const std::string path_;
  uint64_t read_ = 0;
};

/// Bytes of another source in pieces: what decoders share.
class Decoded : public ByteSource {
 public:
  explicit Decoded(std::unique_ptr<ByteSource> source) : source_(std::move(source)), piece_(kPieceBytes) {}
  uint64_t file_bytes_read() const override { return source_->file_bytes_read(); }

 protected:
  /// Appends what comes next to what is left of the piece. False at the end.
  Result<bool> Fill() {
    if (at_ > 0) memmove(piece_.data(), piece_.data() + at_, end_ - at_);
    end_ -= std::exchange(at_, 0);
    TESSERA_ASSIGN(const size_t got, source_->Read(piece_.data() + end_, piece_.size() - end_));
    end_ += got;
    return got > 0;
  }
  size_t left() const { return end_ - at_; }
  const uint8_t* next() const { return reinterpret_cast<const uint8_t*>(piece_.data()) + at_; }

  std::unique_ptr<ByteSource> source_;
  std::vector<char> piece_;
  size_t at_ = 0, end_ = 0;
};

Status Damaged(const std::string& path, const char* what) {
  return {ErrorCode::kIo, "\"" + path + "\" is damaged: " + what, "Compress or copy the file again."};
}

class GzipBytes final : public Decoded {
 public:
  GzipBytes(std::unique_ptr<ByteSource> source, std::string path) : Decoded(std::move(source)), path_(std::move(path)) {
    ok_ = inflateInit2(&stream_, 15 + 16) == Z_OK;
  }
  ~GzipBytes() override { inflateEnd(&stream_); }
  GzipBytes(const GzipBytes&) = delete;
  GzipBytes& operator=(const GzipBytes&) = delete;

  Result<size_t> Read(char* to, size_t bytes) override {
    if (!ok_) return Status(ErrorCode::kResource, "no memory to read \"" + path_ + "\"");
    for (;;) {
      if (left() == 0) {
        TESSERA_ASSIGN(const bool more, Fill());
        if (!more && is_complete_) return size_t{0};
        if (!more) return Damaged(path_, "the gzip file ends too early");
      }
      if (std::exchange(is_complete_, false) && inflateReset(&stream_) != Z_OK) return Damaged(path_, "no gzip data");
      stream_.next_in = const_cast<Bytef*>(next());
      stream_.avail_in = static_cast<uInt>(left());
      stream_.next_out = reinterpret_cast<Bytef*>(to);
      stream_.avail_out = static_cast<uInt>(std::min(bytes, kPieceBytes));
      const uInt room = stream_.avail_out;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      at_ = end_ - stream_.avail_in;
      is_complete_ = result == Z_STREAM_END;  // another one may follow it
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return Damaged(path_, stream_.msg != nullptr ? stream_.msg : "no gzip data");
      if (stream_.avail_out < room) return size_t{room - stream_.avail_out};
    }
  }

 private:
  const std::string path_;
  z_stream stream_{};
  bool ok_ = false;
  bool is_complete_ = false;
};

class ZstdBytes final : public Decoded {
 public:
  ZstdBytes(std::unique_ptr<ByteSource> source, std::string path)
      : Decoded(std::move(source)), path_(std::move(path)), stream_(ZSTD_createDStream()) {}
  ~ZstdBytes() override { ZSTD_freeDStream(stream_); }
  ZstdBytes(const ZstdBytes&) = delete;
  ZstdBytes& operator=(const ZstdBytes&) = delete;

  Result<size_t> Read(char* to, size_t bytes) override {
    if (stream_ == nullptr) return Status(ErrorCode::kResource, "no memory to read \"" + path_ + "\"");
    for (;;) {
      if (left() == 0) {
        TESSERA_ASSIGN(const bool more, Fill());
        if (!more && is_complete_) return size_t{0};
        if (!more) return Damaged(path_, "the zstd file ends too early");
      }
      ZSTD_inBuffer in{next(), left(), 0};
      ZSTD_outBuffer out{to, bytes, 0};
      const size_t result = ZSTD_decompressStream(stream_, &out, &in);
      if (ZSTD_isError(result)) return Damaged(path_, ZSTD_getErrorName(result));
      at_ += in.pos;
      is_complete_ = result == 0;
      if (out.pos > 0) return out.pos;
    }
  }

 private:
  const std::string path_;
  ZSTD_DStream* const stream_;
  bool is_complete_ = false;
};

void AppendUtf8(uint32_t c, std::string* out) {
  const auto tail = [&](int shift) { out->push_back(static_cast<char>(0x80 | (c >> shift & 0x3F))); };
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xC0 | c >> 6));
    tail(0);
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | c >> 12));
    tail(6);
    tail(0);
  } else {
    out->push_back(static_cast<char>(0xF0 | c >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

/// Hands out what a subclass makes of each piece.
class Transcoded : public Decoded {
 public:
  using Decoded::Decoded;
  Result<size_t> Read(char* to, size_t bytes) override {
    while (given_ == made_.size()) {
      made_.clear();
      given_ = 0;
      TESSERA_ASSIGN(const bool more, Fill());
      if (!more && left() == 0) return size_t{0};
      TESSERA_TRY(Make(!more));
    }
    const size_t size = std::min(bytes, made_.size() - given_);
    memcpy(to, made_.data() + given_, size);
    given_ += size;
    return size;
  }

 protected:
  /// Appends what the piece is to made_, and takes it. `last`: no more comes.
  virtual Status Make(bool last) = 0;
  std::string made_;

 private:
  size_t given_ = 0;
};

class Utf16Bytes final : public Transcoded {
 public:
  Utf16Bytes(std::unique_ptr<ByteSource> source, std::string path)
      : Transcoded(std::move(source)), path_(std::move(path)) {}

 private:
  uint32_t Unit(size_t at) const {
    const uint8_t a = next()[at], b = next()[at + 1];
    return big_ ? static_cast<uint32_t>(a << 8 | b) : static_cast<uint32_t>(b << 8 | a);
  }
  Status Make(bool last) override {
    if (left() < 2 && last) return Damaged(path_, "UTF-16 text of an odd number of bytes");
    if (!begun_ && left() >= 2) {
      begun_ = true;
      if (next()[0] == 0xFE && next()[1] == 0xFF) big_ = true;
      if (Unit(0) == 0xFEFF) at_ += 2;
    }
    while (left() >= 2) {
      const uint32_t unit = Unit(0);
      const bool high = unit >= 0xD800 && unit < 0xDC00;
      if (high && left() < 4 && !last) break;
      const uint32_t low = high && left() >= 4 ? Unit(2) : 0;
      if (high ? low < 0xDC00 || low > 0xDFFF : unit >= 0xDC00 && unit <= 0xDFFF)
        return Damaged(path_, "half a surrogate pair in UTF-16 text");
      AppendUtf8(high ? 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00) : unit, &made_);
      at_ += high ? 4 : 2;
    }
    return {};
  }

  const std::string path_;
  bool begun_ = false, big_ = false;
};

class Latin1Bytes final : public Transcoded {
 public:
  using Transcoded::Transcoded;

 private:
  Status Make(bool) override {
    for (; left() > 0; ++at_) AppendUtf8(*next(), &made_);
    return {};
  }
};

}  // namespace

FileCompression CompressionOf(std::string_view start) {
  if (start.starts_with("\x1f\x8b")) return FileCompression::kGzip;
  if (start.starts_with("\x28\xb5\x2f\xfd")) return FileCompression::kZstd;
  return FileCompression::kNone;
}

std::unique_ptr<ByteSource> PlainBytes(int file, std::string path) {
  return std::make_unique<FileBytes>(file, std::move(path));
}

std::unique_ptr<ByteSource> UnpackedBytes(FileCompression compression, std::unique_ptr<ByteSource> packed,
                                          std::string path) {
  if (compression == FileCompression::kGzip) return std::make_unique<GzipBytes>(std::move(packed), std::move(path));
  if (compression == FileCompression::kZstd) return std::make_unique<ZstdBytes>(std::move(packed), std::move(path));
  return packed;
}

std::unique_ptr<ByteSource> BytesOfUtf16(std::unique_ptr<ByteSource> source, std::string path) {
  return std::make_unique<Utf16Bytes>(std::move(source), std::move(path));
}

std::unique_ptr<ByteSource> BytesOfLatin1(std::unique_ptr<ByteSource> source) {
  return std::make_unique<Latin1Bytes>(std::move(source));
}

}  // namespace tessera
