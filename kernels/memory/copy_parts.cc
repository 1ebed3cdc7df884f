#include "kernels/memory/copy_parts.h"

#include <algorithm>

#include "tablet/chunk/tablet_format.h"

namespace tessera::kernels {

void AddParts(CopyWay way, CopyRoute route, const std::shared_ptr<Copies>& copies, std::vector<CopyPart>* parts) {
  const uint64_t most = route == CopyRoute::kDirect ? copies->direct_part_bytes : copies->part_bytes;
  while (way.padded > 0) {
    if (parts->empty() || parts->back().route != route || parts->back().bytes >= most)
      parts->push_back({{}, 0, route, copies});
    CopyPart& part = parts->back();
    const uint64_t padded = std::min(way.padded, most - part.bytes), bytes = std::min(padded, way.bytes);
    part.ways.push_back({way.from, way.to, bytes, padded, way.joins});
    part.bytes += padded;
    way = {way.from + bytes, way.to + padded, way.bytes - bytes, way.padded - padded};
  }
}

void AddPinnedParts(const PinnedPages& pages, const CopyWay& way, CopyRoute route,
                    const std::shared_ptr<Copies>& copies, std::vector<CopyPart>* parts) {
  // (After a stream of a file there are zeros in the file.)
  const bool direct = route == CopyRoute::kDirect;
  const uint64_t bytes = direct ? AlignToStream(way.bytes) : way.bytes, zeros = direct ? 0 : way.padded - bytes;
  uint8_t* to = way.to;
  uint64_t left = bytes;
  pages.ForEachPart(way.from, bytes, [&](const uint8_t* from, uint64_t part) {
    left -= part;
    AddParts({from, to, part, part + (left == 0 ? zeros : 0)}, route, copies, parts);
    to += part;
  });
}

}  // namespace tessera::kernels
