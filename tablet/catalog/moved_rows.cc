#include "tablet/catalog/moved_rows.h"

#include <utility>

#include "tablet/files/tablet_of_files.h"

namespace tessera {
namespace {

/// Moves of some thousands of commits; marks of large tablets take an eighth of a byte a row.
constexpr uint64_t kMostBytes = uint64_t{32} << 20;
constexpr uint64_t kBytesOfOne = 256;

StoredTablet Make(int64_t id, uint32_t rows, uint64_t checksum, const TabletLayout* layout) {
  if (layout != nullptr) {
    for (const ColumnFile& file : layout->files) checksum = checksum * 31 + file.header_checksum;
  }
  return {id, checksum, rows};
}

}  // namespace

StoredTablet StoredOf(const TabletRecord& tablet) {
  return Make(tablet.id, tablet.rows, tablet.header_checksum, tablet.layout.get());
}

StoredTablet StoredOf(const Tablet& tablet) {
  const TabletIdentity* const identity = IdentityOf(tablet);
  if (identity == nullptr) return {};
  const TabletOfFiles* const files = FilesOf(tablet);
  return Make(identity->tablet_id, identity->rows, identity->header_checksum,
              files != nullptr ? &files->layout() : nullptr);
}

MovedRows& MovedRows::OfProcess() {
  static MovedRows moves;
  return moves;
}

uint64_t MovedRows::BytesOf(const Move& move) {
  return kBytesOfOne + (move.live != nullptr ? move.live->rows() / 8 : 0);
}

void MovedRows::Note(const std::string& directory, const StoredTablet& from, Move move) {
  const std::lock_guard lock(mutex_);
  const Key key(directory, from);
  bytes_ += BytesOf(move);
  const auto [at, is_new] = moves_.try_emplace(key, move);
  if (is_new) {
    order_.push_back(key);
  } else {
    bytes_ -= BytesOf(at->second);
    at->second = std::move(move);
  }
  while (bytes_ > kMostBytes && !order_.empty()) {
    const auto oldest = moves_.find(order_.front());
    bytes_ -= BytesOf(oldest->second);
    moves_.erase(oldest);
    order_.pop_front();
  }
}

std::optional<MovedRows::Move> MovedRows::Find(const std::string& directory, const StoredTablet& from) const {
  const std::lock_guard lock(mutex_);
  const auto at = moves_.find(Key(directory, from));
  return at != moves_.end() ? std::optional(at->second) : std::nullopt;
}

}  // namespace tessera
