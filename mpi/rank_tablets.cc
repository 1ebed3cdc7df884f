#include "mpi/rank_tablets.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/size_text.h"
#include "mpi/messenger.h"
#include "tablet/catalog/live_tablet.h"
#include "tablet/files/tablet_of_files.h"
#include "vm/program/program.h"
#include "vm/shares/tablet_shares.h"

namespace tessera {
namespace {

/// Stands for a tablet that this rank does not have: it belongs to another rank's portion, so it is never read.
class AbsentTablet final : public Tablet {
 public:
  explicit AbsentTablet(const TabletIdentity& identity) : identity_(identity) {}
  const Tablet* Part(uint32_t, uint32_t) const override { return this; }  // that is not read
  uint32_t rows() const override { return identity_.rows; }
  uint64_t weight() const override { return identity_.file_bytes; }
  Result<ChunkPointer> Chunk(int) const override {
    return Status(ErrorCode::kInternal, "tablet " + std::to_string(identity_.tablet_id) + " was not sent to this rank");
  }
  Result<std::shared_ptr<const Tablet>> Runs(int column, uint32_t runs) const override;
  std::string path() const override { return "tablet " + std::to_string(identity_.tablet_id); }

 private:
  const TabletIdentity identity_;
};

/// Stands for the runs of one.
class AbsentRuns final : public Tablet {
 public:
  AbsentRuns(const TabletIdentity& identity, uint32_t runs) : of_(identity), runs_(runs) {}
  const Tablet* Part(uint32_t, uint32_t) const override { return this; }  // that is not read
  uint32_t rows() const override { return runs_; }
  uint64_t weight() const override { return of_.weight(); }
  Result<ChunkPointer> Chunk(int column) const override { return of_.Chunk(column); }
  const Tablet& stored() const override { return of_; }
  std::string path() const override { return of_.path(); }

 private:
  const AbsentTablet of_;
  const uint32_t runs_;
};

Result<std::shared_ptr<const Tablet>> AbsentTablet::Runs(int, uint32_t runs) const {
  return std::shared_ptr<const Tablet>(std::make_shared<AbsentRuns>(identity_, runs));
}

bool IsWellFormed(const TableMessage& table) {
  const size_t columns = table.types.size();
  if (columns == 0 || table.encoded_bytes.size() != columns || table.distinct.size() != columns) return false;
  if (!std::all_of(table.types.begin(), table.types.end(), vm::IsValueType)) return false;
  if (!table.buckets.empty() && table.buckets.size() != table.tablets.size()) return false;
  uint64_t rows = 0;
  std::vector<int64_t> tablets;
  for (const TabletIdentity& t : table.tablets) {
    if (t.table_id != table.id || t.rows == 0 || t.file_bytes == 0 || t.file_bytes > kGreatestTablet) return false;
    tablets.push_back(t.tablet_id);
    rows += t.rows;
  }
  for (size_t i = 0; i < table.deleted.size(); ++i) {
    const DeletedRows& deleted = table.deleted[i];
    if (deleted.tablet >= table.tablets.size() || (i > 0 && table.deleted[i - 1].tablet >= deleted.tablet))
      return false;
    const std::shared_ptr<const LiveRows> live = LiveRows::Unpack(table.tablets[deleted.tablet].rows, deleted.rows);
    if (live == nullptr) return false;
    rows -= live->deleted();
  }
  for (size_t i = 0; i < table.layouts.size(); ++i) {
    const LayoutMessage& layout = table.layouts[i];
    if (layout.tablet >= table.tablets.size() || (i > 0 && table.layouts[i - 1].tablet >= layout.tablet)) return false;
    if (!layout.layout.IsOf(columns) || table.tablets[layout.tablet].file_bytes != layout.layout.bytes()) return false;
    for (const ColumnFile& file : layout.layout.files) {
      if (file.id <= 0 || file.file_id <= 0 || file.bytes == 0 || file.bytes > kGreatestTablet) return false;
      if (file.offset > kGreatestTablet || file.offset % kColumnFileAlignment != 0) return false;
    }
  }
  std::ranges::sort(tablets);
  return rows == table.rows && std::ranges::adjacent_find(tablets) == tablets.end();
}

/// nullptr: the tablet is one file.
const TabletLayout* LayoutOf(const TableMessage& table, size_t tablet) {
  const auto at = std::ranges::lower_bound(table.layouts, tablet, {}, &LayoutMessage::tablet);
  return at != table.layouts.end() && at->tablet == tablet ? &at->layout : nullptr;
}

/// The files of a tablet, in the order of their ids.
std::vector<TabletIdentity> FilesOf(const TableMessage& table, size_t tablet) {
  const TabletLayout* const layout = LayoutOf(table, tablet);
  if (layout == nullptr) return {table.tablets[tablet]};
  std::vector<TabletIdentity> files;
  for (const ColumnFile& file : layout->files) files.push_back(IdentityOf(table.tablets[tablet], file));
  return files;
}

/// Whether the messages have the tables that the program reads, and these the columns.
bool AreDescribed(const std::vector<const TableMessage*>& tables, const vm::Program& program) {
  if (tables.size() != program.tables.size()) return false;
  for (size_t i = 0; i < tables.size(); ++i) {
    if (tables[i] == nullptr || tables[i]->id != program.tables[i].id) return false;
    for (size_t before = 0; before < i; ++before) {
      if (tables[before]->id == tables[i]->id && *tables[before] != *tables[i]) return false;
    }
  }
  return std::all_of(program.sections.begin(), program.sections.end(), [&](const vm::Section& s) {
    if (s.source_kind != vm::Section::Source::kTable) return true;
    const auto number = static_cast<size_t>(s.source);
    const int32_t made = tables[number]->deleted.empty() ? 0 : 1;  // the column of live rows
    const auto columns = static_cast<int32_t>(tables[number]->types.size()) + made;
    const int32_t runs_of = program.tables[number].runs_of;
    return std::ranges::all_of(s.slots, [&](const vm::Slot& slot) {
      return runs_of < 0 ? slot.column < columns : made == 0 && (slot.column == runs_of || slot.column == columns);
    });
  });
}

/// Whether the section scans the program's table `number`.
bool Scans(const vm::Section& s, size_t number) {
  return s.source_kind == vm::Section::Source::kTable && static_cast<size_t>(s.source) == number;
}

/// Which tablets of a table the rank scans, at least in part.
std::vector<bool> TabletsOf(const TableInfo& table, const vm::Program& program, const RankShare& share) {
  std::vector<bool> out(table.tablets.size());
  for (const vm::Section& s : program.sections) {
    if (s.source_kind != vm::Section::Source::kTable) continue;
    if (program.tables[static_cast<size_t>(s.source)].id != table.id) continue;
    const bool shared = !s.placement.spans.empty() || vm::SharedByTablets(table, share.ranks, share.replicate_below);
    if (!shared || (share.use_gpu && vm::IsReadWhole(table, s, share.replicate_below)))
      return std::vector<bool>(table.tablets.size(), true);
    for (const vm::TabletPart& part : vm::PartsOf(table, s, share.ranks)) {
      if (part.rank == share.rank) out[part.tablet] = true;
    }
  }
  return out;
}

}  // namespace

Result<TablesMessage> TableTeller::Describe(const vm::Program& program, const Snapshot& snapshot) const {
  TablesMessage out;
  for (const auto* list : {&snapshot.tables, &snapshot.files}) {
    for (const auto& table : *list) out.alive.push_back(table->id);
  }
  for (const vm::TableRef& ref : program.tables) {
    const TableInfo* const found = vm::TableOf(snapshot, ref);
    if (found == nullptr) return SqlError(ErrorKind::kUndefinedTable, "table \"" + ref.name + "\" does not exist");
    const TableInfo& table = *found;
    TableMessage& message = out.tables.emplace_back();
    message.id = table.id;
    message.files = table.files;
    const auto told = told_.find(table.id);
    message.is_told = told != told_.end() && told->second == table.version;
    if (message.is_told) continue;
    message.name = table.schema.name;
    message.rows = table.rows;
    for (const ColumnSchema& c : table.schema.columns) message.types.push_back(c.type);
    for (size_t c = 0; c < message.types.size(); ++c) {
      message.encoded_bytes.push_back(table.statistics[c].encoded_bytes);
      message.distinct.push_back(table.statistics[c].distinct);
    }
    for (const auto& tablet : table.tablets) {
      const TabletIdentity* const identity = IdentityOf(*tablet);
      if (identity == nullptr) return Status(ErrorCode::kInternal, "a tablet of table \"" + ref.name + "\" is no file");
      if (tablet->live() != nullptr) message.deleted.push_back({message.tablets.size(), tablet->live()->packed()});
      if (const TabletOfFiles* const files = FilesOf(*tablet))
        message.layouts.push_back({message.tablets.size(), files->layout()});
      message.tablets.push_back(*identity);
    }
    message.buckets = table.buckets;
  }
  return out;
}

void TableTeller::NoteTold(const vm::Program& program, const Snapshot& snapshot) {
  // (Ranks forget those that are gone.)
  std::erase_if(told_, [&](const auto& told) { return snapshot.FindById(told.first) == nullptr; });
  for (const vm::TableRef& ref : program.tables) {
    if (const TableInfo* const table = vm::TableOf(snapshot, ref); table != nullptr) told_[table->id] = table->version;
  }
}

void RankTablets::Open(std::string directory, bool scattered) {
  directory_ = std::move(directory);
  scattered_ = scattered;
  in_memory_.clear();
  tables_.clear();
}

Result<std::shared_ptr<const Snapshot>> RankTablets::Update(const TablesMessage& message, const vm::Program& program,
                                                            const RankShare& share, std::vector<WantedTablet>* wanted) {
  const std::vector<int64_t>& alive = message.alive;
  std::erase_if(tables_, [&](const auto& t) { return std::find(alive.begin(), alive.end(), t.first) == alive.end(); });
  std::vector<const TableMessage*> tables;
  for (const TableMessage& table : message.tables) tables.push_back(Told(table));
  if (!AreDescribed(tables, program)) return Messenger::Damaged(0);
  auto snapshot = std::make_shared<Snapshot>();
  for (size_t number = 0; number < tables.size(); ++number) {
    const TableMessage& table = *tables[number];
    Table& known = tables_[table.id];
    // (It is there once more if it is also read as runs.)
    const auto same = [&](const TableMessage& m) { return m.id == table.id; };
    const bool is_first =
        std::ranges::find_if(message.tables, same) - message.tables.begin() == static_cast<std::ptrdiff_t>(number);
    const bool is_new = &table != &known.message && known.message != table;
    if (is_first && (known.info == nullptr || !known.has_all || is_new)) Learn(table, &known);
    for (const vm::Section& s : program.sections) {
      if (Scans(s, number)) TESSERA_TRY(vm::CheckSpans(*known.info, s, share.ranks));
    }
    if (is_first && !known.has_all) {
      const std::vector<bool> needed = TabletsOf(*known.info, program, share);
      for (size_t i = 0; i < needed.size(); ++i) {
        if (!needed[i] || known.tablets.contains(table.tablets[i].tablet_id)) continue;
        for (const TabletIdentity& file : FilesOf(table, i)) {
          if (!known.files.contains(file.tablet_id)) wanted->push_back({file, number, i});
        }
      }
    }
    snapshot->tables.push_back(known.info);
  }
  std::erase_if(in_memory_, [&](const auto& m) {
    return std::none_of(tables_.begin(), tables_.end(),
                        [&](const auto& t) { return t.second.files.contains(m.first); });
  });
  return std::shared_ptr<const Snapshot>(std::move(snapshot));
}

const TableMessage* RankTablets::Told(const TableMessage& table) const {
  if (!table.is_told) return IsWellFormed(table) ? &table : nullptr;
  const auto at = tables_.find(table.id);
  return at == tables_.end() || at->second.info == nullptr ? nullptr : &at->second.message;
}

void RankTablets::Learn(const TableMessage& table, Table* known) {
  auto info = std::make_shared<TableInfo>();
  info->id = table.id;
  info->schema.name = table.name;
  for (const TabletIdentity& identity : table.tablets) info->stored_rows += identity.rows;
  info->buckets = table.buckets;
  known->types = std::make_shared<const std::vector<SqlType>>(table.types);
  for (const SqlType& type : table.types) info->schema.columns.push_back({"", type, false});
  for (size_t c = 0; c < table.types.size(); ++c) {
    ColumnStatistics& statistics = info->statistics.emplace_back();
    statistics.encoded_bytes = table.encoded_bytes[c];
    statistics.distinct = table.distinct[c];
  }
  if (&known->message != &table) known->message = table;
  std::map<int64_t, std::shared_ptr<const Tablet>> kept;
  std::set<int64_t> files;
  for (size_t i = 0; i < table.tablets.size(); ++i) {
    const TabletIdentity& identity = table.tablets[i];
    const auto at = known->tablets.find(identity.tablet_id);
    std::shared_ptr<const Tablet> tablet = at != known->tablets.end() ? at->second : Find(known, i);
    if (tablet != nullptr) {
      kept[identity.tablet_id] = tablet;
    } else {
      tablet = std::make_shared<AbsentTablet>(identity);
    }
    info->tablets.push_back(std::move(tablet));
    for (const TabletIdentity& file : FilesOf(table, i)) files.insert(file.tablet_id);
  }
  std::erase_if(known->files, [&](const auto& file) { return !files.contains(file.first); });
  std::vector<std::shared_ptr<const LiveRows>> live(table.tablets.size());
  for (const DeletedRows& deleted : table.deleted)
    live[deleted.tablet] = LiveRows::Unpack(table.tablets[deleted.tablet].rows, deleted.rows);
  MarkLive(live, info.get());
  known->has_all = kept.size() == table.tablets.size();
  known->tablets = std::move(kept);
  known->info = std::move(info);
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
    // The file has no name, so nothing is left however this process ends. Blocks are allocated now, so that a full disk
    // is an error here and not a SIGBUS later.
    const int fd = open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : posix_fallocate(fd, 0, static_cast<off_t>(identity.file_bytes));
    if (error == 0) {
      room = mmap(nullptr, identity.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      error = room == MAP_FAILED ? errno : 0;
    }
    if (fd >= 0) close(fd);
    if (error != 0) {
      return Status(
          ErrorCode::kResource,
          "no room for a tablet of " + SizeText(identity.file_bytes) + " in \"" + directory + "\": " + strerror(error),
          "SET scatter_memory to more bytes, or TMPDIR to a larger disk.");
    }
  }
  return static_cast<uint8_t*>(room);
}

std::shared_ptr<const Tablet> RankTablets::Find(Table* known, size_t number) const {
  const auto open = [&](const TabletIdentity& identity, std::shared_ptr<const std::vector<SqlType>> types) {
    std::shared_ptr<const TabletFile>& file = known->files[identity.tablet_id];
    // (DROP COLUMN may have been rolled back.)
    if (file != nullptr && !file->Reads(*types)) file = nullptr;
    if (file == nullptr && !scattered_ && known->message.files.empty())
      file = OpenTablet(directory_, identity, std::move(types));
    std::shared_ptr<const TabletFile> found = file;
    if (found == nullptr) known->files.erase(identity.tablet_id);
    return found;
  };
  return MakeTablet(known->message.tablets[number], LayoutOf(known->message, number), known->types, open);
}

std::shared_ptr<const Tablet> RankTablets::Keep(const WantedTablet& wanted, const uint8_t* bytes) {
  Table& table = tables_[wanted.identity.table_id];
  const TabletIdentity& tablet = table.message.tablets[wanted.tablet];
  const auto put = [&](const TabletIdentity& identity, std::shared_ptr<const std::vector<SqlType>> types) {
    std::shared_ptr<const TabletFile> file;
    if (const auto at = table.files.find(identity.tablet_id); at != table.files.end()) file = at->second;
    if (identity == wanted.identity) {
      file = TabletOfMapping("tablet " + std::to_string(identity.tablet_id) + " from rank 0", identity,
                             std::move(types), bytes);
      table.files[identity.tablet_id] = file;
    }
    return file;
  };
  const std::shared_ptr<const Tablet> whole =
      MakeTablet(tablet, LayoutOf(table.message, wanted.tablet), table.types, put);
  if (whole != nullptr) table.tablets[tablet.tablet_id] = whole;
  return whole;
}

}  // namespace tessera
