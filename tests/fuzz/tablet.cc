// Bytes as a tablet file, with the checksums made right, so that what they guard is reached: the tablet is refused, or
// every chunk of it can be used.
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tablet/catalog/schema_check.h"
#include "tablet/chunk/tablet_format.h"
#include "tablet/files/tablet_file.h"
#include "tests/tablet/sample_database.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  constexpr uint32_t kGreatestColumns = 16;
  TabletHeader header;
  if (size < sizeof header) return -1;
  memcpy(&header, data, sizeof header);
  const uint64_t header_bytes = AlignToStream(sizeof header + header.columns * sizeof(ChunkDescriptor));
  if (header.columns == 0 || header.columns > kGreatestColumns || size < header_bytes) return -1;
  // Tables have few types that are not in the file itself.
  TableSchema schema;
  schema.name = "t";
  std::vector<ChunkDescriptor> descriptors(header.columns);
  memcpy(descriptors.data(), data + sizeof header, header.columns * sizeof(ChunkDescriptor));
  const auto types = std::make_shared<std::vector<SqlType>>();
  for (ChunkDescriptor& d : descriptors) {
    types->push_back({static_cast<TypeId>(d.type), d.precision, d.scale, d.length});
    schema.columns.push_back({std::to_string(types->size()), types->back(), false});
    const uint64_t offset = d.streams[0].offset;
    if (offset <= size && d.bytes <= size - offset) d.checksum = XXH3_64bits(data + offset, d.bytes);
  }
  if (header.rows == 0 || header.rows > kGreatestTabletRows || !CheckSchema(schema).ok()) return -1;
  header.magic = kTabletMagic;
  header.version = kPackedTabletVersion;
  header.header_bytes = header_bytes;
  header.file_bytes = size;
  header.checksum = 0;

  void* const mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) std::abort();
  uint8_t* const file = static_cast<uint8_t*>(mapped);
  memcpy(file, data, size);
  memcpy(file, &header, sizeof header);
  memcpy(file + sizeof header, descriptors.data(), descriptors.size() * sizeof(ChunkDescriptor));
  TabletIdentity identity;
  memcpy(identity.database.data(), header.database, sizeof header.database);
  identity.table_id = header.table_id;
  identity.tablet_id = header.tablet_id;
  identity.rows = header.rows;
  identity.file_bytes = size;
  identity.header_checksum = XXH3_64bits(file, header_bytes);
  memcpy(file + offsetof(TabletHeader, checksum), &identity.header_checksum, sizeof identity.header_checksum);
  const std::shared_ptr<const Tablet> tablet = TabletOfMapping("fuzz", identity, types, file);
  for (size_t c = 0; c < types->size(); ++c) {
    const auto chunk = tablet->Chunk(static_cast<int>(c));
    if (chunk.ok()) {
      UseChunk(**chunk);
    } else if (chunk.status().code() != ErrorCode::kCorrupt) {
      std::abort();
    }
  }
  return 0;
}
