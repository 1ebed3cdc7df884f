// Reading and writing of tablet files, and every check that a foreign or damaged file must fail.
#include "tablet/files/tablet_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tablet/chunk/packed_chunk.h"
#include "tablet/chunk/stored_range.h"
#include "tablet/files/io_error.h"
#include "tablet/files/regular_file.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/ordered_float.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {
namespace {

constexpr char kLost[] = "it became shorter while it was read, or the disk cannot read it";
constexpr char kPrefix[] = "tablet-";
constexpr char kSuffix[] = ".bin";
constexpr size_t kNameDigits = 20;

uint64_t HeaderBytes(size_t columns) { return AlignToStream(sizeof(TabletHeader) + columns * sizeof(ChunkDescriptor)); }

uint64_t HeaderChecksum(const uint8_t* header, uint64_t bytes) {
  // The checksum field counts as zeros.
  constexpr uint8_t kZeros[sizeof(uint64_t)] = {};
  constexpr size_t kAt = offsetof(TabletHeader, checksum), kBehind = kAt + sizeof kZeros;
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, header, kAt);
  XXH3_64bits_update(&state, kZeros, sizeof kZeros);
  XXH3_64bits_update(&state, header + kBehind, bytes - kBehind);
  return XXH3_64bits_digest(&state);
}

template <class Code>
bool CodesInRange(const Chunk& chunk, uint64_t greatest, uint32_t* nulls) {
  const Code* codes = reinterpret_cast<const Code*>(chunk.codes);
  const Code null_code = static_cast<Code>(chunk.null_code);
  uint32_t null_count = 0;
  if (!chunk.has_nulls) {
    Code largest = 0;
    for (uint32_t i = 0; i < chunk.rows; ++i) largest = std::max(largest, codes[i]);
    *nulls = 0;
    return largest <= greatest;
  }
  bool bad = false;
  for (uint32_t i = 0; i < chunk.rows; ++i) {
    const bool is_null = codes[i] == null_code;
    null_count += is_null;
    bad |= !is_null && codes[i] > greatest;
  }
  *nulls = null_count;
  return !bad;
}

bool WideCodesInRange(const Chunk& chunk, uint32_t* nulls) {
  *nulls = 0;
  for (uint32_t i = 0; i < chunk.rows; ++i) {
    int128_t code;
    memcpy(&code, chunk.codes + size_t{i} * sizeof code, sizeof code);
    if (chunk.has_nulls && code == chunk.null_code_wide) {
      ++*nulls;
    } else if (code < chunk.min || code > chunk.max) {
      return false;
    }
  }
  return true;
}

const char* CheckEntries(const Chunk& chunk, uint64_t entry_bytes, uint64_t* longest) {
  const uint64_t* offsets = chunk.entry_offsets;
  bool ordered = offsets[0] == 0;
  *longest = 0;
  for (uint32_t i = 0; i < chunk.entries; ++i) {
    ordered &= offsets[i] <= offsets[i + 1];
    *longest = std::max(*longest, offsets[i + 1] - offsets[i]);
  }
  if (!ordered || offsets[chunk.entries] != entry_bytes) return "the entries' offsets are out of order";
  if (chunk.encoding == Encoding::kDictionary) {
    for (uint32_t i = 1; i < chunk.entries; ++i) {
      if (chunk.Entry(i - 1) >= chunk.Entry(i)) return "the dictionary is not sorted";
    }
  }
  return nullptr;
}

}  // namespace

const char* CheckDescriptor(const ChunkDescriptor& d, const SqlType& type, uint32_t version, uint32_t rows,
                            uint64_t offset, uint64_t file_bytes) {
  if (d.packed >> kStreams != 0 || (d.packed != 0 && version < kPackedTabletVersion)) return "unknown packed streams";
  // (No frame of zstd unpacks to more than that; room for that number of bytes will be made.)
  constexpr uint64_t kGreatestRatio = 65536;
  if ((d.text_bytes != 0) != IsPacked(d, kEntryBytes) || d.text_bytes / kGreatestRatio > d.streams[kEntryBytes].bytes) {
    return "a wrong size of texts";
  }
  if (d.type != static_cast<uint8_t>(type.id) || d.precision != type.precision || d.scale != type.scale ||
      d.length != StoredLength(type)) {
    return "the column's type is not the catalog's";
  }
  if (d.encoding > static_cast<uint8_t>(Encoding::kPlain)) return "unknown encoding";
  if (d.has_nulls > 1 || d.has_nulls != (d.null_count > 0) || d.null_count > rows) return "a wrong NULL count";
  const Encoding encoding = static_cast<Encoding>(d.encoding);
  const bool text = type.storage() == StorageClass::kText;
  const bool wide = IsWide(type);
  const bool all_null = d.null_count == rows;
  uint64_t bytes[kStreams] = {uint64_t{rows} * d.width, 0, 0, 0};
  if (text) {
    bytes[kEntryOffsets] = (uint64_t{d.entries} + 1) * sizeof(uint64_t);
    bytes[kEntryBytes] = d.streams[kEntryBytes].bytes;
  } else if (d.entries != 0) {
    return "entries without text";
  }
  switch (encoding) {
    case Encoding::kConstant:
      if (d.width != 0 || (d.null_count != 0 && !all_null) || (text && d.entries != (all_null ? 0 : 1))) {
        return "a wrong constant";
      }
      if (!text && !all_null && (d.min != d.base || d.max != d.base)) return "a wrong range";
      break;
    case Encoding::kFrame:
      if (text || all_null) return "a wrong encoding";
      if (d.width != 1 && d.width != 2 && d.width != 4 && d.width != 8 && !(d.width == 16 && wide)) {
        return "a wrong code width";
      }
      if (d.min > d.max || (d.width < 16 && d.base != d.min)) return "a wrong range";
      if (d.width < 16) {
        const uint64_t greatest = d.width == 8 ? UINT64_MAX : (uint64_t{1} << (8 * d.width)) - 1;
        const uint128_t span = static_cast<uint128_t>(d.max) - static_cast<uint128_t>(d.min);
        if (span > greatest || (d.has_nulls != 0 && d.null_code > greatest)) return "a range wider than the codes";
      }
      break;
    case Encoding::kDictionary:
      if (!text || all_null || d.entries == 0 || d.entries > rows) return "a wrong dictionary";
      if (d.width != 1 && d.width != 2 && d.width != 4) return "a wrong code width";
      if (d.has_nulls != 0 && d.null_code != d.entries) return "a wrong NULL code";
      if (d.entries - 1 + d.has_nulls > (uint64_t{1} << (8 * d.width)) - 1) return "a dictionary wider than the codes";
      break;
    case Encoding::kPlain:
      if (!text || d.width != 0 || d.entries != rows) return "wrong plain text";
      bytes[kNullBytes] = d.has_nulls != 0 ? rows : 0;
      break;
  }
  if (text && (d.min != 0 || d.max != static_cast<int128_t>(d.entries) - 1)) return "a wrong range";
  if (!text && all_null != (d.min > d.max)) return "a wrong range";
  if (!text && !all_null) {
    const StoredRange range = StoredRangeOf(type);
    if (d.min < range.least || d.max > range.greatest) return "a wrong range";
  }
  // Offsets are checked one by one against the only layout there is; nothing can overflow, each is at most file_bytes.
  const uint64_t start = offset;
  for (int s = 0; s < kStreams; ++s) {
    if (IsPacked(d, static_cast<Stream>(s))) {
      // What is in them is checked when they are unpacked.
      if (bytes[s] == 0 || d.width == 16) return "a packed stream that the encoding does not have";
      if (d.streams[s].bytes == 0) return "a packed stream without bytes";  // (its tree has some)
      bytes[s] = d.streams[s].bytes;
    }
    if (d.streams[s].offset != offset || d.streams[s].bytes != bytes[s] || bytes[s] > file_bytes - offset) {
      return "a stream lies outside the file or its chunk";
    }
    if (AlignToStream(bytes[s]) > file_bytes - offset) return "a stream lies outside the file or its chunk";
    offset += AlignToStream(bytes[s]);
  }
  if (d.bytes != offset - start) return "a stream lies outside the file or its chunk";
  return nullptr;
}

Chunk ViewChunk(const ChunkDescriptor& d, uint32_t rows, const uint8_t* file) {
  Chunk chunk;
  chunk.type = {static_cast<TypeId>(d.type), d.precision, d.scale, d.length};
  chunk.encoding = static_cast<Encoding>(d.encoding);
  chunk.width = d.width;
  chunk.has_nulls = d.has_nulls != 0;
  chunk.null_code = d.null_code;
  chunk.null_code_wide = d.null_code_wide;
  chunk.rows = rows;
  chunk.null_count = d.null_count;
  chunk.base = d.base;
  chunk.min = d.min;
  chunk.max = d.max;
  chunk.entries = d.entries;
  chunk.encoded_bytes = d.bytes;
  chunk.packed_entries = d.packed >> kEntryOffsets != 0;
  if (d.width != 0) {
    const uint8_t* const codes = file + d.streams[kCodes].offset;
    (IsPacked(d, kCodes) ? chunk.packed_codes : chunk.codes) = codes;
    chunk.packed_bytes = IsPacked(d, kCodes) ? d.streams[kCodes].bytes : 0;
    chunk.codes_bytes = AlignToStream(uint64_t{rows} * d.width);
  }
  if (d.streams[kEntryOffsets].bytes != 0) {
    chunk.entry_offsets = reinterpret_cast<const uint64_t*>(file + d.streams[kEntryOffsets].offset);
    chunk.entry_bytes = reinterpret_cast<const char*>(file + d.streams[kEntryBytes].offset);
    chunk.text_bytes = UnpackedBytes(d, rows, kEntryBytes);
  }
  if (d.streams[kNullBytes].bytes != 0) chunk.null_bytes = file + d.streams[kNullBytes].offset;
  return chunk;
}

const char* CheckChecksum(const ChunkDescriptor& descriptor, const uint8_t* file) {
  if (XXH3_64bits(file + descriptor.streams[0].offset, descriptor.bytes) != descriptor.checksum) {
    return "the chunk's checksum is wrong";
  }
  return nullptr;
}

const char* CheckContents(Chunk* chunk) {
  const char* const reason = CheckTexts(chunk);
  return reason != nullptr ? reason : CheckCodes(*chunk);
}

const char* CheckTexts(Chunk* chunk) {
  return chunk->entry_offsets == nullptr ? nullptr : CheckEntries(*chunk, chunk->text_bytes, &chunk->longest_entry);
}

const char* CheckCodes(const Chunk& chunk) {
  uint32_t nulls = chunk.null_count;
  bool in_range = true;
  const uint64_t greatest = chunk.GreatestCode();
  switch (chunk.width) {
    case 0:
      if (chunk.null_bytes != nullptr) {
        nulls = 0;
        for (uint32_t i = 0; i < chunk.rows; ++i) {
          nulls += chunk.null_bytes[i] != 0;
          in_range &= chunk.null_bytes[i] <= 1;
        }
      }
      break;
    case 1:
      in_range = CodesInRange<uint8_t>(chunk, greatest, &nulls);
      break;
    case 2:
      in_range = CodesInRange<uint16_t>(chunk, greatest, &nulls);
      break;
    case 4:
      in_range = CodesInRange<uint32_t>(chunk, greatest, &nulls);
      break;
    case 8:
      in_range = CodesInRange<uint64_t>(chunk, greatest, &nulls);
      break;
    default:
      in_range = WideCodesInRange(chunk, &nulls);
      break;
  }
  if (!in_range) return "a code without meaning";
  if (nulls != chunk.null_count) return "a wrong NULL count";
  return nullptr;
}

std::string TabletFileName(int64_t tablet_id) {
  std::string digits = std::to_string(tablet_id);
  return kPrefix + std::string(kNameDigits - std::min(digits.size(), kNameDigits), '0') + digits + kSuffix;
}

int64_t TabletIdOfFileName(const std::string& name) {
  constexpr size_t kPrefixSize = sizeof kPrefix - 1, kSuffixSize = sizeof kSuffix - 1;
  if (name.size() != kPrefixSize + kNameDigits + kSuffixSize || name.compare(0, kPrefixSize, kPrefix) != 0 ||
      name.compare(kPrefixSize + kNameDigits, kSuffixSize, kSuffix) != 0) {
    return -1;
  }
  int64_t id = 0;
  for (char c : name.substr(kPrefixSize, kNameDigits)) {
    if (c < '0' || c > '9' || __builtin_mul_overflow(id, 10, &id) || __builtin_add_overflow(id, c - '0', &id))
      return -1;
  }
  return id;
}

std::vector<uint8_t> BuildTabletHeader(std::vector<EncodedChunk>* chunks, TabletIdentity* identity) {
  const uint64_t header_bytes = HeaderBytes(chunks->size());
  uint64_t offset = header_bytes;
  std::vector<uint8_t> header(header_bytes);
  for (size_t c = 0; c < chunks->size(); ++c) {
    EncodedChunk& chunk = (*chunks)[c];
    for (StreamExtent& stream : chunk.descriptor.streams) stream.offset += offset;
    chunk.descriptor.checksum = XXH3_64bits(chunk.streams.data(), chunk.streams.size());
    offset += chunk.descriptor.bytes;
    memcpy(header.data() + sizeof(TabletHeader) + c * sizeof(ChunkDescriptor), &chunk.descriptor,
           sizeof(ChunkDescriptor));
  }
  TabletHeader h{};
  h.magic = kTabletMagic;
  const bool packed = std::any_of(chunks->begin(), chunks->end(),
                                  [](const EncodedChunk& chunk) { return chunk.descriptor.packed != 0; });
  h.version = packed ? kPackedTabletVersion : kTabletVersion;
  h.columns = static_cast<uint32_t>(chunks->size());
  memcpy(h.database, identity->database.data(), sizeof h.database);
  h.table_id = identity->table_id;
  h.tablet_id = identity->tablet_id;
  h.header_bytes = header_bytes;
  h.file_bytes = offset;
  h.rows = identity->rows;
  memcpy(header.data(), &h, sizeof h);
  identity->file_bytes = offset;
  identity->header_checksum = HeaderChecksum(header.data(), header.size());
  memcpy(header.data() + offsetof(TabletHeader, checksum), &identity->header_checksum, sizeof(uint64_t));
  return header;
}

Result<int> CreateTabletFile(const std::string& path) {
  // A file of this name is a leftover. It is removed, not opened: it might be a link to a file elsewhere, or a FIFO.
  const auto create = [&] { return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); };
  int fd = create();
  if (fd < 0 && errno == EEXIST && unlink(path.c_str()) == 0) fd = create();
  if (fd < 0) return IoError("cannot create", path, errno);
  return fd;
}

Status WriteTablet(int fd, const std::string& path, const std::vector<uint8_t>& header,
                   const std::vector<EncodedChunk>& chunks) {
  std::vector<iovec> parts;
  parts.push_back({const_cast<uint8_t*>(header.data()), header.size()});
  for (const EncodedChunk& chunk : chunks) {
    if (!chunk.streams.empty()) parts.push_back({const_cast<uint8_t*>(chunk.streams.data()), chunk.streams.size()});
  }
  size_t next = 0;
  while (next < parts.size()) {
    constexpr size_t kGreatestParts = 256;  // IOV_MAX is 1024
    const ssize_t written =
        writev(fd, parts.data() + next, static_cast<int>(std::min(parts.size() - next, kGreatestParts)));
    if (written < 0) {
      if (errno == EINTR) continue;
      return IoError("cannot write", path, errno);
    }
    size_t rest = static_cast<size_t>(written);
    while (next < parts.size() && rest >= parts[next].iov_len) rest -= parts[next++].iov_len;
    if (rest > 0) {
      parts[next].iov_base = static_cast<uint8_t*>(parts[next].iov_base) + rest;
      parts[next].iov_len -= rest;
    }
  }
  return {};
}

Result<int> WriteTabletFile(const std::string& path, const std::vector<uint8_t>& header,
                            const std::vector<EncodedChunk>& chunks) {
  TESSERA_ASSIGN(const int fd, CreateTabletFile(path));
  if (Status written = WriteTablet(fd, path, header, chunks); !written.ok()) {
    close(fd);
    unlink(path.c_str());
    return written;
  }
  return fd;
}

TabletFile::TabletFile(std::string path, const TabletIdentity& identity, std::shared_ptr<const Types> types,
                       const uint8_t* mapping)
    : verified_(std::make_unique<std::atomic<const tessera::Chunk*>[]>(types->size())),
      identity_(identity),
      path_(std::move(path)),
      types_(std::move(types)),
      codes_checked_(std::make_unique<std::atomic<bool>[]>(types_->size())),
      codes_read_(std::make_unique<std::atomic<uint64_t>[]>(types_->size())),
      given_(mapping != nullptr),
      mapping_(mapping) {}

TabletFile::~TabletFile() {
  runs_.clear();
  for (const UnpackedColumn& of : unpacked_) {
    ForgetUnpacked(of.whole.lock());
    ForgetUnpacked(of.entries.lock());
  }
  held_.clear();
  if (given_) munmap(const_cast<uint8_t*>(mapping_), identity_.file_bytes);
}

bool TabletFile::Reads(const Types& types) const {
  return std::ranges::equal(types, *types_, [](const SqlType& asked, const SqlType& known) {
    return asked.id == TypeId::kNull || known.id != TypeId::kNull;
  });
}

Status TabletFile::Corrupt(const std::string& reason) const { return CorruptTablet(path_, reason); }

Status TabletFile::Intact() const {
  if (is_held_.load(std::memory_order_acquire)) TouchLast({mapping_, identity_.file_bytes});
  if (!FileMapping::any_lost()) return {};
  std::lock_guard lock(mutex_);
  return file_.lost() ? Corrupt(kLost) : Status();
}

std::span<const uint8_t> TabletFile::Mapping() const {
  if (given_ || !open_.load(std::memory_order_acquire) || !file_.is_shared()) return {};
  return {mapping_, identity_.file_bytes};
}

void TabletFile::HoldWhileMapped(std::shared_ptr<void> held) const {
  std::lock_guard lock(mutex_);
  held_.push_back(std::move(held));
  is_held_.store(true, std::memory_order_release);
}

Status TabletFile::Map() const {
  Result<FileDescriptor> file = OpenRegularFile(path_, O_RDONLY);
  struct stat info;
  if (!file.ok()) {
    if (file.status().code() == ErrorCode::kCorrupt) return Corrupt("it is not a file");
    if (stat(path_.c_str(), &info) != 0 && errno == ENOENT) return Corrupt("it is not there");
    return file.status();
  }
  if (fstat(file->get(), &info) != 0) return IoError("cannot read", path_, errno);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (identity_.file_id != 0 && (identity_.offset > size || identity_.file_bytes > size - identity_.offset))
    return Corrupt("it is shorter than the columns that it should have");
  if (identity_.file_id == 0 && size != identity_.file_bytes) {
    return Corrupt("it has " + std::to_string(info.st_size) + " bytes instead of " +
                   std::to_string(identity_.file_bytes));
  }
  if (info.st_size == 0) return Corrupt("it is empty");
  if (const int error = file_.Map(file->get(), identity_.file_bytes, identity_.offset)) {
    if (error == ENOMEM) {
      return {ErrorCode::kResource, "cannot map \"" + path_ + "\": " + strerror(error),
              "Raise vm.max_map_count, or load the table with larger tablets."};
    }
    return IoError("cannot map", path_, error);
  }
  mapping_ = file_.data();
  return {};
}

Status TabletFile::Open() const {
  if (open_.load(std::memory_order_relaxed)) return {};
  if (mapping_ == nullptr) TESSERA_TRY(Map());
  const uint8_t* const file = mapping_;
  const size_t columns = types_->size();
  const uint64_t header_bytes = HeaderBytes(columns);
  if (identity_.file_bytes < header_bytes) return Corrupt("it is shorter than its header");

  auto check = [&]() -> Status {
    TabletHeader h;
    memcpy(&h, file, sizeof h);
    if (h.magic != kTabletMagic) return Corrupt("it does not begin as a tablet does");
    if (h.version < kTabletVersion || h.version > kPackedTabletVersion) {
      return Corrupt("it has format version " + std::to_string(h.version) + ", this program reads version " +
                     std::to_string(kPackedTabletVersion) + " and older ones");
    }
    const uint64_t checksum = HeaderChecksum(file, header_bytes);
    if (checksum != h.checksum) return Corrupt("the header's checksum is wrong");
    if (h.columns != columns || memcmp(h.database, identity_.database.data(), sizeof h.database) != 0 ||
        h.table_id != identity_.table_id || h.tablet_id != identity_.tablet_id || h.header_bytes != header_bytes ||
        h.file_bytes != identity_.file_bytes || h.rows != identity_.rows || checksum != identity_.header_checksum) {
      return Corrupt("it is another tablet than the catalog means");
    }
    // (Constant columns would have as many rows as they say.)
    if (h.rows == 0 || h.rows > kGreatestTabletRows) return Corrupt("it has " + std::to_string(h.rows) + " rows");
    uint64_t offset = header_bytes;
    std::vector<tessera::Chunk> chunks;
    chunks.reserve(columns);
    for (size_t c = 0; c < columns; ++c) {
      ChunkDescriptor d;
      memcpy(&d, file + sizeof(TabletHeader) + c * sizeof d, sizeof d);
      if ((*types_)[c].id == TypeId::kNull) {  // it was dropped, and is not read
        if (d.bytes > identity_.file_bytes - offset) return Corrupt("a column lies outside the file");
        offset += d.bytes;
        chunks.emplace_back();
        continue;
      }
      if (const char* reason =
              CheckDescriptor(d, (*types_)[c], h.version, identity_.rows, offset, identity_.file_bytes)) {
        return Corrupt("column " + std::to_string(c + 1) + ": " + reason);
      }
      offset += d.bytes;
      chunks.push_back(ViewChunk(d, identity_.rows, file));
    }
    if (offset != identity_.file_bytes) return Corrupt("bytes after the last chunk");
    chunks_ = std::move(chunks);
    return {};
  };
  if (Status status = check(); !status.ok()) {
    // Reading the file again may succeed; a mapping that was given does not change.
    if (!given_) {
      file_ = FileMapping();
      mapping_ = nullptr;
    }
    return status;
  }
  open_.store(true, std::memory_order_release);
  return {};
}

ChunkDescriptor TabletFile::DescriptorOf(int column) const {
  ChunkDescriptor d;
  memcpy(&d, mapping_ + sizeof(TabletHeader) + static_cast<size_t>(column) * sizeof d, sizeof d);
  return d;
}

Status TabletFile::Verify(int column, bool codes) const {
  const ChunkDescriptor d = DescriptorOf(column);
  if (d.bytes == 0) return {};
  const uint64_t start = d.streams[0].offset;
  // Before page faults ask for it, one by one.
  ReadSoon(start, start + d.bytes);
  tessera::Chunk* const chunk = &chunks_[static_cast<size_t>(column)];
  const char* reason = CheckChecksum(d, mapping_);
  if (reason == nullptr) {
    reason = d.packed == 0 ? CheckContents(chunk) : VerifyPacked(column, codes || !IsPacked(d, kCodes), d, chunk);
  }
  if (reason != nullptr) return Corrupt("column " + std::to_string(column + 1) + ": " + reason);
  return {};
}

const char* TabletFile::VerifyPacked(int column, bool codes, const ChunkDescriptor& d, tessera::Chunk* chunk) const {
  if (unpacked_.empty()) unpacked_.resize(types_->size());
  UnpackedColumn& of = unpacked_[static_cast<size_t>(column)];
  const uint64_t room = UnpackedRoom(d, identity_.rows, codes);
  if (room == 0) {  // nothing but codes is packed
    const char* const reason = CheckTexts(chunk);
    return reason != nullptr ? reason : CheckPackedCodes(d, identity_.rows, mapping_);
  }
  const auto kept = std::make_shared<UnpackedChunk>(room, *chunk, weak_from_this(), column);
  const char* reason = UnpackChunk(d, mapping_, codes, kept->streams.get(), &kept->chunk);
  if (reason == nullptr) reason = codes ? CheckContents(&kept->chunk) : CheckTexts(&kept->chunk);
  if (reason == nullptr && !codes) reason = CheckPackedCodes(d, identity_.rows, mapping_);
  if (reason != nullptr) return reason;
  chunk->longest_entry = kept->chunk.longest_entry;
  if (codes) NoteCodesChecked(column);
  (codes ? of.whole : of.entries) = kept;
  KeepUnpacked(kept);
  return nullptr;
}

bool TabletFile::AreCodesChecked(int column) const {
  return codes_checked_[static_cast<size_t>(column)].load(std::memory_order_relaxed);
}

void TabletFile::NoteCodesChecked(int column) const {
  codes_checked_[static_cast<size_t>(column)].store(true, std::memory_order_relaxed);
}

Result<ChunkPointer> TabletFile::Chunk(int column) const { return Find(column, true); }

Result<ChunkPointer> TabletFile::PackedChunk(int column) const { return Find(column, false); }

Result<ChunkPointer> TabletFile::ChunkForTiles(int column) const {
  TESSERA_ASSIGN(ChunkPointer chunk, PackedChunk(column));
  if (chunk->codes != nullptr || chunk->packed_codes == nullptr) return chunk;
  {
    std::lock_guard lock(mutex_);
    const bool is_unpacked = !unpacked_.empty() && !unpacked_[static_cast<size_t>(column)].whole.expired();
    if (is_unpacked) return Unpacked(column, true);
  }
  if (ArePlainBits(*chunk)) return chunk;
  const uint64_t now = UnpackedEpoch();
  const bool comes_again = codes_read_[static_cast<size_t>(column)].exchange(now) == now;
  return comes_again && HasRoomForUnpacked(chunk->codes_bytes) ? Chunk(column) : chunk;
}

Result<ChunkPointer> TabletFile::Find(int column, bool codes) const {
  assert(column >= 0 && static_cast<size_t>(column) < types_->size());
  TESSERA_TRY(Intact());
  std::atomic<const tessera::Chunk*>& verified = verified_[static_cast<size_t>(column)];
  const tessera::Chunk* chunk = verified.load(std::memory_order_acquire);
  if (chunk == nullptr || IsToUnpack(*chunk, codes)) {
    std::lock_guard lock(mutex_);
    chunk = verified.load(std::memory_order_relaxed);
    if (chunk == nullptr) {
      TESSERA_TRY(Open());
      TESSERA_TRY(Verify(column, codes));
      chunk = &chunks_[static_cast<size_t>(column)];
      verified.store(chunk, std::memory_order_release);
    }
    if (IsToUnpack(*chunk, codes)) return Unpacked(column, codes);
  }
  return ChunkPointer(ChunkPointer(), chunk);
}

Result<ChunkPointer> TabletFile::Unpacked(int column, bool codes) const {
  const ChunkDescriptor d = DescriptorOf(column);
  UnpackedColumn& of = unpacked_[static_cast<size_t>(column)];
  std::shared_ptr<UnpackedChunk> unpacked = of.whole.lock();
  if (unpacked == nullptr && !codes) unpacked = of.entries.lock();
  if (unpacked == nullptr) {
    unpacked = std::make_shared<UnpackedChunk>(UnpackedRoom(d, identity_.rows, codes),
                                               chunks_[static_cast<size_t>(column)], weak_from_this(), column);
    const char* reason = UnpackChunk(d, mapping_, codes, unpacked->streams.get(), &unpacked->chunk);
    if (reason == nullptr && codes && !AreCodesChecked(column)) reason = CheckCodes(unpacked->chunk);
    if (reason != nullptr) return Corrupt("column " + std::to_string(column + 1) + ": " + reason);
    if (codes) NoteCodesChecked(column);
    // Zeros in the place of the file's bytes may be codes without meaning.
    if (FileMapping::any_lost() && file_.lost()) return Corrupt(kLost);
    (codes ? of.whole : of.entries) = unpacked;
  }
  KeepUnpacked(unpacked);
  return ChunkPointer(unpacked, &unpacked->chunk);
}

Result<ChunkPointer> TabletFile::Describe(int column) const {
  if (!open_.load(std::memory_order_acquire)) {
    std::lock_guard lock(mutex_);
    TESSERA_TRY(Open());
  }
  return ChunkPointer(ChunkPointer(), &chunks_[static_cast<size_t>(column)]);
}

namespace {

constexpr uint64_t kPageBytes = 4096;

/// Whether the page with this byte is in memory. (Linux tells only those who may write to the file.)
bool IsInMemory(const uint8_t* at) {
  uint8_t* const page = reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(at) & ~uintptr_t{kPageBytes - 1});
  unsigned char state = 0;
  return mincore(page, kPageBytes, &state) != 0 || (state & 1) != 0;
}

}  // namespace

void TabletFile::ReadSoon(uint64_t begin, uint64_t end) const {
  // Of a longer request Linux drops what is after the read-ahead of the device, which is 128 KiB or more.
  constexpr uint64_t kRequest = uint64_t{128} << 10;
  for (uint64_t at = begin & ~(kPageBytes - 1); at < end; at += kRequest)
    (void)madvise(const_cast<uint8_t*>(mapping_) + at, std::min(kRequest, end - at), MADV_WILLNEED);
}

bool TabletFile::WasRead(const std::vector<int>& columns) const {
  return open_.load(std::memory_order_acquire) && std::ranges::all_of(columns, [&](int column) {
           return verified_[static_cast<size_t>(column)].load(std::memory_order_relaxed) != nullptr;
         });
}

uint64_t TabletFile::Expect(const std::vector<int>& columns, bool again) const {
  if (columns.empty() && WasRead(columns)) return 0;
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return 0;  // somebody reads it already
  if (mapping_ == nullptr && !Map().ok()) return 0;
  if (columns.empty()) {
    ReadSoon(0, std::min(HeaderBytes(types_->size()), identity_.file_bytes));
    return 0;
  }
  if (!Open().ok()) return 0;
  std::vector<int> sorted = columns;
  std::sort(sorted.begin(), sorted.end());
  uint64_t bytes = 0, begin = 0, end = 0;  // neighbours are asked for together
  for (const int column : sorted) {
    const ChunkDescriptor d = DescriptorOf(column);
    if (d.bytes == 0) continue;
    bytes += d.bytes;
    const uint64_t start = d.streams[0].offset;
    const bool was_read = verified_[static_cast<size_t>(column)].load(std::memory_order_relaxed) != nullptr;
    // (Memory is taken back page by page, but what was read together mostly goes together.)
    if (was_read && (!again || (IsInMemory(mapping_ + start) && IsInMemory(mapping_ + start + d.bytes - 1)))) continue;
    if (start != end) {
      ReadSoon(begin, end);
      begin = start;
    }
    end = start + d.bytes;
  }
  ReadSoon(begin, end);
  return bytes;
}

namespace {

/// What Chunk::min and Chunk::max mean.
Value ValueOf(const Chunk& chunk, int128_t v) {
  if (chunk.min > chunk.max || (chunk.type.storage() == StorageClass::kText && chunk.encoding == Encoding::kPlain))
    return Value::Null(chunk.type);
  switch (chunk.type.storage()) {
    case StorageClass::kInt:
      return Value::Int(chunk.type, static_cast<int64_t>(v));
    case StorageClass::kWide:
      return Value::Wide(chunk.type, v);
    case StorageClass::kFloat:
      return Value::Float(chunk.type, chunk.type.id == TypeId::kReal
                                          ? static_cast<double>(FromOrderedFloat32(static_cast<uint32_t>(v)))
                                          : FromOrderedFloat(static_cast<uint64_t>(v)));
    case StorageClass::kText:
      return Value::Text(std::string(chunk.Entry(static_cast<uint32_t>(v))));
  }
  return Value::Null(chunk.type);
}

}  // namespace

uint64_t Tablet::Expect(const std::vector<int>&, bool) const { return 0; }

bool Tablet::WasRead(const std::vector<int>&) const { return false; }

Result<ChunkStorage> Tablet::StorageOf(int) const {
  return Unsupported("tablet \"" + path() + "\" is not a file of this process");
}

Result<std::string> Tablet::SchemesOf(int column) const {
  TESSERA_ASSIGN(const ChunkStorage storage, StorageOf(column));
  return storage.schemes;
}

Result<std::shared_ptr<const Tablet>> Tablet::Runs(int, uint32_t) const {
  return Unsupported("tablet \"" + path() + "\" is not a file of this process");
}

Result<std::shared_ptr<const Tablet>> TabletFile::Runs(int column, uint32_t runs) const {
  const std::shared_ptr<const Tablet> self = shared_from_this();
  const Tablet* found = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (const auto known = runs_.find(column); known != runs_.end()) found = known->second.get();
  }
  if (found == nullptr) {
    TESSERA_ASSIGN(std::unique_ptr<const RunTablet> opened,
                   RunTablet::Open(self, column, static_cast<int>(types_->size()), runs));
    std::lock_guard lock(mutex_);
    found = runs_.try_emplace(column, std::move(opened)).first->second.get();
  }
  if (runs != 0 && found->rows() != runs) return Corrupt("another number of runs than on another rank");
  return std::shared_ptr<const Tablet>(self, found);
}

Result<std::string> TabletFile::SchemesOf(int column) const {
  {
    std::lock_guard lock(mutex_);
    TESSERA_TRY(Open());
  }
  std::string schemes = DescribeChunk(DescriptorOf(column), identity_.rows, mapping_);
  TESSERA_TRY(Intact());
  return schemes;
}

Result<ChunkStorage> TabletFile::StorageOf(int column) const {
  // (Entries are read for the least and the greatest one.)
  TESSERA_ASSIGN(const ChunkPointer chunk, PackedChunk(column));
  const ChunkDescriptor d = DescriptorOf(column);
  ChunkStorage out;
  out.schemes = DescribeChunk(d, identity_.rows, mapping_);
  for (int s = 0; s < kStreams; ++s) out.plain_bytes += UnpackedBytes(d, identity_.rows, static_cast<Stream>(s));
  out.stored_bytes = chunk->encoded_bytes;
  out.nulls = chunk->null_count;
  out.min = ValueOf(*chunk, chunk->min);
  out.max = ValueOf(*chunk, chunk->max);
  TESSERA_TRY(Intact());
  return out;
}

std::shared_ptr<const TabletFile> OpenTablet(const std::string& directory, const TabletIdentity& identity,
                                             std::shared_ptr<const std::vector<SqlType>> types) {
  return std::make_shared<const TabletFile>(directory + "/" + TabletFileName(identity.file()), identity,
                                            std::move(types));
}

std::shared_ptr<const TabletFile> TabletOfMapping(std::string name, const TabletIdentity& identity,
                                                  std::shared_ptr<const std::vector<SqlType>> types,
                                                  const uint8_t* mapping) {
  return std::make_shared<const TabletFile>(std::move(name), identity, std::move(types), mapping);
}

}  // namespace tessera
