// Tablet files of a stranger: bytes and numbers of a good one are changed, and the checksums made right again. A file is
// refused as corrupt, or every chunk of it can be decoded, looked up in and searched.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <iterator>
#include <stdexcept>

#include "tablet/chunk/tablet_format.h"
#include "tablet/files/tablet_file.h"
#include "tests/tablet/sample_database.h"
#include "tests/torture/campaign.h"

namespace tessera {
namespace {

/// Numbers that are often one too many.
template <class T>
T Edge(Campaign* campaign) {
  const T greatest = static_cast<T>(~T{0});
  const T edges[] = {0,
                     1,
                     2,
                     127,
                     128,
                     255,
                     greatest,
                     static_cast<T>(greatest - 1),
                     static_cast<T>(greatest / 2),
                     static_cast<T>(greatest / 2 + 1)};
  if (campaign->Random(4) == 0) return static_cast<T>(campaign->random()());
  return edges[campaign->Random(std::size(edges))];
}

template <class T>
void Mutate(Campaign* campaign, uint8_t* at) {
  T value;
  memcpy(&value, at, sizeof value);
  const T before = value;
  switch (campaign->Random(4)) {
    case 0:
      value = static_cast<T>(value + 1);
      break;
    case 1:
      value = static_cast<T>(value - 1);
      break;
    case 2:
      value = static_cast<T>(value ^ (T{1} << campaign->Random(8 * sizeof(T))));
      break;
    default:
      value = Edge<T>(campaign);
      break;
  }
  if (value == before) value = static_cast<T>(~value);
  memcpy(at, &value, sizeof value);
}

/// Changes a number of 1, 2, 4 or 8 bytes among the first `size` bytes.
void MutateBytes(Campaign* campaign, uint8_t* bytes, size_t size) {
  const size_t width = size_t{1} << campaign->Random(4);
  if (size < width) return;
  uint8_t* const at = bytes + campaign->Random(size / width) * width;
  if (width == 1) Mutate<uint8_t>(campaign, at);
  if (width == 2) Mutate<uint16_t>(campaign, at);
  if (width == 4) Mutate<uint32_t>(campaign, at);
  if (width == 8) Mutate<uint64_t>(campaign, at);
}

/// A good file as a tablet, in pieces.
struct Sample {
  explicit Sample(const std::string& path) : bytes(ReadWholeFile(path)) {
    TabletHeader header;
    memcpy(&header, bytes.data(), sizeof header);
    memcpy(identity.database.data(), header.database, sizeof header.database);
    identity.table_id = header.table_id;
    identity.tablet_id = header.tablet_id;
    identity.rows = header.rows;
  }
  const std::string bytes;
  TabletIdentity identity;
};

void Trial(Campaign* campaign, const Sample& sample, const std::string& path) {
  TabletIdentity identity = sample.identity;
  std::vector<EncodedChunk> chunks = ChunksOfTablet(sample.bytes);
  for (uint64_t i = 0, n = 1 + campaign->Random(3); i < n; ++i) {
    EncodedChunk& chunk = chunks[campaign->Random(chunks.size())];
    switch (campaign->Random(6)) {
      case 0:
        identity.rows = campaign->Random(2) == 0 ? Edge<uint32_t>(campaign) : identity.rows + 1;
        break;
      case 1:
      case 2:
        if (!chunk.streams.empty()) MutateBytes(campaign, chunk.streams.data(), chunk.streams.size());
        break;
      case 3: {
        StreamExtent& stream = chunk.descriptor.streams[campaign->Random(kStreams)];
        MutateBytes(campaign, reinterpret_cast<uint8_t*>(&stream), sizeof stream);
        break;
      }
      default:
        MutateBytes(campaign, reinterpret_cast<uint8_t*>(&chunk.descriptor), offsetof(ChunkDescriptor, checksum));
        break;
    }
  }
  std::vector<uint8_t> header = BuildTabletHeader(&chunks, &identity);
  Result<int> fd = WriteTabletFile(path, header, chunks);
  if (!fd.ok()) {
    campaign->Break(fd.status().message());
    return;
  }
  // The file is as long as it says, so that its other numbers matter.
  constexpr uint64_t kGreatestFile = uint64_t{64} << 20;
  const bool sized =
      identity.file_bytes > kGreatestFile || ftruncate(*fd, static_cast<off_t>(identity.file_bytes)) == 0;
  close(*fd);
  if (!sized) throw std::runtime_error("the file cannot be made as long as it says");
  const auto types = std::make_shared<TabletFile::Types>(SampleTypes());
  const TabletFile tablet(path, identity, types);
  for (size_t c = 0; c < types->size(); ++c) {
    const auto chunk = tablet.Chunk(static_cast<int>(c));
    if (chunk.ok()) {
      UseChunk(**chunk);
    } else if (chunk.status().code() != ErrorCode::kCorrupt) {
      campaign->Break(chunk.status().message());
    }
  }
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  using namespace tessera;
  Campaign campaign("tablets", argc, argv);
  if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 1);
  const ScratchFolder scratch;
  if (const Status filled = FillSampleDatabase(scratch / "d", 1); !filled.ok()) {
    fmt::print(stderr, "torture_tablets: {}\n", filled.message());
    return 2;
  }
  std::vector<Sample> samples;
  for (const int64_t id : {1, 2, 3}) samples.emplace_back((scratch / "d") + "/" + TabletFileName(id));
  while (campaign.Next()) Trial(&campaign, samples[campaign.Random(samples.size())], scratch / "tablet");
  return campaign.Finish();
}
