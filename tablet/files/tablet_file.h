// Tablet files: writing one from encoded chunks, reading one through a read-only mapping.
//
// Start at: BuildTabletHeader, WriteTabletFile, TabletFile. FORMAT.md gives the bytes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/chunk/chunk.h"
#include "tablet/chunk/chunk_encoder.h"
#include "tablet/chunk/tablet_format.h"
#include "tablet/files/file_mapping.h"
#include "tablet/files/part_tablet.h"
#include "tablet/files/run_tablet.h"
#include "tablet/files/tablet.h"
#include "tablet/files/unpacked_chunks.h"
#include "tablet/values/types.h"

namespace tessera {

using DatabaseId = std::array<uint8_t, 16>;

/// "tablet-00000000000000000042.bin"
std::string TabletFileName(int64_t tablet_id);
/// Prefix of files that are being written; what is left of them belongs to a process that died.
inline constexpr char kTemporaryPrefix[] = "writing-";
/// The number in such a name, or -1.
int64_t TabletIdOfFileName(const std::string& name);

/// Completes the chunks' descriptors (offsets, checksums) and returns the header's bytes; sets identity's file_bytes
/// and header_checksum.
std::vector<uint8_t> BuildTabletHeader(std::vector<EncodedChunk>* chunks, TabletIdentity* identity);

/// Creates `path` and writes header and chunks, without syncing them. Returns the open file descriptor.
Result<int> WriteTabletFile(const std::string& path, const std::vector<uint8_t>& header,
                            const std::vector<EncodedChunk>& chunks);

/// The two steps of it. Bytes are written from where the file's offset is.
Result<int> CreateTabletFile(const std::string& path);
Status WriteTablet(int fd, const std::string& path, const std::vector<uint8_t>& header,
                   const std::vector<EncodedChunk>& chunks);

/// A tablet as a table's snapshot knows it. The file is opened and its header checked when a chunk is first asked for.
///
/// If the file shrinks after it was opened (no process of ours does that), or the disk cannot read it, chunks may turn
/// into zeros. A reader of chunks asks Intact() before the values are used for good. An error stays until the
/// object is gone: somebody may hold what was read.
class TabletFile final : public Tablet, public std::enable_shared_from_this<TabletFile> {
 public:
  using Types = std::vector<SqlType>;
  /// `mapping`: the file's bytes if they are mapped already, else nullptr.
  TabletFile(std::string path, const TabletIdentity& identity, std::shared_ptr<const Types> types,
             const uint8_t* mapping = nullptr);
  ~TabletFile() override;
  TabletFile(const TabletFile&) = delete;
  TabletFile& operator=(const TabletFile&) = delete;

  uint32_t rows() const override { return identity_.rows; }
  uint64_t weight() const override { return identity_.file_bytes; }
  Result<ChunkPointer> Chunk(int column) const override;
  Result<ChunkPointer> PackedChunk(int column) const override;
  Result<ChunkPointer> ChunkForTiles(int column) const override;
  bool AreCodesChecked(int column) const override;
  void NoteCodesChecked(int column) const override;
  /// (For reading min, max and counts without paging the streams in.)
  Result<ChunkPointer> Describe(int column) const override;
  uint64_t Expect(const std::vector<int>& columns, bool again) const override;
  bool WasRead(const std::vector<int>& columns) const override;
  Result<ChunkStorage> StorageOf(int column) const override;
  Result<std::string> SchemesOf(int column) const override;
  Result<std::shared_ptr<const Tablet>> Runs(int column, uint32_t runs) const override;
  const Tablet* Part(uint32_t first, uint32_t rows) const override { return parts_.Find(*this, first, rows); }
  std::string path() const override { return path_; }
  Status Intact() const override;
  std::span<const uint8_t> Mapping() const override;
  void HoldWhileMapped(std::shared_ptr<void> held) const override;

  const TabletIdentity& identity() const { return identity_; }
  /// Whether all columns that have a type in `types` can be read: one that had been dropped cannot.
  bool Reads(const Types& types) const;

 private:
  Status Open() const;  // REQUIRES: mutex_ held
  Status Map() const;   // REQUIRES: mutex_ held
  Status Corrupt(const std::string& reason) const;
  /// `codes`: whether somebody wants them unpacked. REQUIRES: mutex_ held.
  Status Verify(int column, bool codes) const;
  /// What is packed is checked as what it unpacks to, which is kept. Codes that are not wanted unpacked are left as
  /// they are: a device unpacks and checks them faster, and a scan may skip the tablet. REQUIRES: as Verify.
  const char* VerifyPacked(int column, bool codes, const ChunkDescriptor& d, tessera::Chunk* chunk) const;
  ChunkDescriptor DescriptorOf(int column) const;
  /// The disk begins to read bytes [begin, end). REQUIRES: mapping_ is set.
  void ReadSoon(uint64_t begin, uint64_t end) const;
  /// Whether a verified chunk has packed streams that somebody wants unpacked, with or without the codes.
  static bool IsToUnpack(const tessera::Chunk& chunk, bool codes) {
    return (codes && chunk.packed_codes != nullptr) || chunk.packed_entries;
  }
  Result<ChunkPointer> Find(int column, bool codes) const;
  Result<ChunkPointer> Unpacked(int column, bool codes) const;  // REQUIRES: mutex_ held, the chunk is verified

  // First what a scan of many tablets looks at in each of them.
  /// Verified chunks; null until the first Chunk() of the column. Written under mutex_, read without.
  const std::unique_ptr<std::atomic<const tessera::Chunk*>[]> verified_;
  mutable std::vector<tessera::Chunk> chunks_;  ///< set once, by Open()
  mutable std::atomic<bool> open_{false}, is_held_{false};
  const TabletIdentity identity_;

  const std::string path_;
  const std::shared_ptr<const Types> types_;
  const std::unique_ptr<std::atomic<bool>[]> codes_checked_;   ///< packed ones; the others are when they are verified
  const std::unique_ptr<std::atomic<uint64_t>[]> codes_read_;  ///< packed ones, by tiles: in which UnpackedEpoch()
  mutable std::mutex mutex_;
  const bool given_;  ///< the mapping was not made here
  mutable FileMapping file_;
  mutable const uint8_t* mapping_;  ///< file_'s, or the given one
  mutable std::vector<std::shared_ptr<void>> held_;
  struct UnpackedColumn {
    std::weak_ptr<UnpackedChunk> whole, entries;  ///< entries: without the codes
  };
  mutable std::vector<UnpackedColumn> unpacked_;                  ///< by column; empty until one has packed streams
  mutable std::map<int, std::unique_ptr<const RunTablet>> runs_;  ///< by column
  const TabletParts parts_;
};

/// The tablet in a file of `directory`. It is opened, and checked against `identity`, when a chunk is first asked for.
std::shared_ptr<const TabletFile> OpenTablet(const std::string& directory, const TabletIdentity& identity,
                                             std::shared_ptr<const TabletFile::Types> types);
/// The tablet whose file's bytes are mapped (mmap) at `mapping`, which the tablet will unmap. `name` is for messages.
/// Checked as above.
std::shared_ptr<const TabletFile> TabletOfMapping(std::string name, const TabletIdentity& identity,
                                                  std::shared_ptr<const TabletFile::Types> types,
                                                  const uint8_t* mapping);

}  // namespace tessera
