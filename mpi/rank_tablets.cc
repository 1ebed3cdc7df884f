#include "mpi/rank_tablets.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tessera {
namespace {

/// The place of a tablet that this rank does not have: it belongs to another one's share, so nobody reads it.
class AbsentTablet final : public Tablet {
 public:
  explicit AbsentTablet(const TabletIdentity& identity) : identity_(identity) {}
  uint32_t rows() const override { return identity_.rows; }
  Result<const tessera::Chunk*> Chunk(int) const override {
    return Status(ErrorCode::kInternal, "tablet " + std::to_string(identity_.tablet_id) + " was not sent to this rank");
  }
  std::string path() const override { return "tablet " + std::to_string(identity_.tablet_id); }

 private:
  const TabletIdentity identity_;
};

}  // namespace

Status WriteTables(const vm::Program& program, const Snapshot& snapshot, WireWriter* out) {
  // All that there are, so that the others can forget the rest.
  std::vector<int64_t> alive;
  for (const auto& table : snapshot.tables) alive.push_back(table->id);
  out->Vector(alive);
  out->Number<uint64_t>(program.tables.size());
  for (const vm::TableRef& ref : program.tables) {
    const auto same = [&](const std::shared_ptr<const TableInfo>& t) { return t->id == ref.id; };
    const auto found = std::find_if(snapshot.tables.begin(), snapshot.tables.end(), same);
    if (found == snapshot.tables.end()) return SqlError("table \"" + ref.name + "\" does not exist");
    const TableInfo& table = **found;
    out->Number(table.id);
    out->Text(table.schema.name);
    out->Number(table.rows);
    std::vector<SqlType> types;
    std::vector<uint64_t> bytes;
    for (const ColumnSchema& c : table.schema.columns) types.push_back(c.type);
    for (const ColumnStatistics& c : table.statistics) bytes.push_back(c.encoded_bytes);
    out->Vector(types);
    out->Vector(bytes);
    std::vector<TabletIdentity> tablets;
    for (const auto& tablet : table.tablets) {
      const TabletIdentity* const identity = IdentityOf(*tablet);
      if (identity == nullptr) return {ErrorCode::kInternal, "a tablet of table \"" + ref.name + "\" is no file"};
      tablets.push_back(*identity);
    }
    out->Vector(tablets);
  }
  return Status::Ok();
}

void RankTablets::Open(std::string directory, bool scattered) {
  directory_ = std::move(directory);
  scattered_ = scattered;
  in_memory_.clear();
  tables_.clear();
}

Result<std::shared_ptr<const Snapshot>> RankTablets::Take(WireReader* in, int rank, int ranks, uint64_t replicate_below,
                                                          std::vector<Wanted>* wanted) {
  const std::vector<int64_t> alive = in->Vector<int64_t>();
  std::erase_if(tables_, [&](const auto& t) { return std::find(alive.begin(), alive.end(), t.first) == alive.end(); });
  auto snapshot = std::make_shared<Snapshot>();
  const size_t count = in->Count(sizeof(int64_t));
  for (size_t t = 0; t < count && !in->failed(); ++t) {
    auto info = std::make_shared<TableInfo>();
    info->id = in->Number<int64_t>();
    info->schema.name = std::string(in->Text());
    info->rows = in->Number<uint64_t>();
    auto types = std::make_shared<const std::vector<SqlType>>(in->Vector<SqlType>());
    for (const SqlType& type : *types) info->schema.columns.push_back({"", type, false});
    for (const uint64_t bytes : in->Vector<uint64_t>()) {
      info->statistics.emplace_back();
      info->statistics.back().encoded_bytes = bytes;
    }
    const std::vector<TabletIdentity> identities = in->Vector<TabletIdentity>();
    Table& known = tables_[info->id];
    known.types = types;
    std::map<int64_t, std::shared_ptr<const Tablet>> kept;
    for (const TabletIdentity& identity : identities) {
      const auto at = known.tablets.find(identity.tablet_id);
      std::shared_ptr<const Tablet> tablet;
      if (at != known.tablets.end()) {
        tablet = at->second;
      } else if (!scattered_) {
        tablet = OpenTablet(directory_, identity, types);
      }
      if (tablet != nullptr) kept[identity.tablet_id] = tablet;
      info->tablets.push_back(std::move(tablet));
    }
    known.tablets = std::move(kept);
    const bool by_tablets = vm::SharedByTablets(*info, ranks, replicate_below);
    for (size_t i = 0; i < identities.size(); ++i) {
      if (info->tablets[i] != nullptr) continue;
      if (!by_tablets || i % static_cast<size_t>(ranks) == static_cast<size_t>(rank))
        wanted->push_back({identities[i], t, i});
      info->tablets[i] = std::make_shared<AbsentTablet>(identities[i]);
    }
    snapshot->tables.push_back(std::move(info));
  }
  TESSERA_TRY(in->End());
  std::erase_if(in_memory_, [&](const auto& m) {
    return std::none_of(tables_.begin(), tables_.end(),
                        [&](const auto& t) { return t.second.tablets.contains(m.first); });
  });
  return std::shared_ptr<const Snapshot>(std::move(snapshot));
}

Result<uint8_t*> RankTablets::MakeRoom(const TabletIdentity& identity, uint64_t memory) {
  void* room = MAP_FAILED;
  uint64_t used = identity.file_bytes;
  for (const auto& [tablet, bytes] : in_memory_) used += bytes;
  if (used <= memory) {
    room = mmap(nullptr, identity.file_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room != MAP_FAILED) in_memory_[identity.tablet_id] = identity.file_bytes;
  }
  if (room == MAP_FAILED) {
    const char* const temporary = getenv("TMPDIR");
    const std::string directory = temporary != nullptr && *temporary != 0 ? temporary : "/tmp";
    // No name, so nothing is left behind however this process ends. Blocks are taken now: a full disk is an error here,
    // not a SIGBUS later.
    const int fd = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : posix_fallocate(fd, 0, static_cast<off_t>(identity.file_bytes));
    if (error == 0) {
      room = mmap(nullptr, identity.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      error = room == MAP_FAILED ? errno : 0;
    }
    if (fd >= 0) close(fd);
    if (error != 0) {
      return Status(ErrorCode::kResource,
                    "no room for a tablet of " + std::to_string(identity.file_bytes) + " bytes in \"" + directory +
                        "\": " + strerror(error),
                    "SET scatter_memory to more bytes, or TMPDIR to a larger disk.");
    }
  }
  return static_cast<uint8_t*>(room);
}

std::shared_ptr<const Tablet> RankTablets::Keep(const TabletIdentity& identity, const uint8_t* bytes) {
  Table& table = tables_[identity.table_id];
  return table.tablets[identity.tablet_id] = TabletOfMapping(
             "tablet " + std::to_string(identity.tablet_id) + " from rank 0", identity, table.types, bytes);
}

}  // namespace tessera
