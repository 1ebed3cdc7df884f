#include "tablet/catalog/log_record.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "tablet/catalog/buckets.h"
#include "tablet/catalog/catalog_bytes.h"
#include "tablet/catalog/catalog_checksum.h"
#include "tablet/catalog/statistics_check.h"
#include "tablet/chunk/tablet_format.h"

namespace tessera {
namespace {

/// Anything but what CatalogBytes gave makes ok() false, and zeros of all that follows.
class RecordReader {
 public:
  explicit RecordReader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t Unsigned(uint64_t least = 0, uint64_t greatest = UINT64_MAX) {
    uint64_t v = 0;
    if (bytes_.size() - at_ < sizeof v) ok_ = false;
    if (!ok_) return 0;
    memcpy(&v, bytes_.data() + at_, sizeof v);
    at_ += sizeof v;
    ok_ = least <= v && v <= greatest;
    return ok_ ? v : 0;
  }
  int64_t Id() { return static_cast<int64_t>(Unsigned(1, uint64_t{1} << 62)); }
  /// Takes it if the next number is that.
  bool TakeNumber(uint64_t number) {
    uint64_t v = 0;
    if (!ok_ || bytes_.size() - at_ < sizeof v) return false;
    memcpy(&v, bytes_.data() + at_, sizeof v);
    if (v == number) at_ += sizeof v;
    return v == number;
  }
  int128_t Wide() {
    const uint64_t low = Unsigned();
    return static_cast<int128_t>(static_cast<uint128_t>(Unsigned()) << 64 | low);
  }
  std::string_view Text() {
    const uint64_t size = Unsigned();
    if (size > bytes_.size() - at_) ok_ = false;
    if (!ok_) return {};
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  size_t position() const { return at_; }
  bool AtEnd() const { return at_ == bytes_.size(); }
  bool ok() const { return ok_; }

 private:
  const std::string_view bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

Status Wrong(const std::string& what) { return {ErrorCode::kCorrupt, "a record has a wrong " + what}; }

/// How many tablets of both are the same, deleted rows apart, from the first on.
size_t SameTablets(const TableRecord& before, const TableRecord& after) {
  size_t same = 0;
  while (same < before.tablets.size() && same < after.tablets.size() &&
         before.tablets[same].id == after.tablets[same].id)
    ++same;
  return same;
}

Status ReadTablets(RecordReader* reader, const TableRecord& before, int64_t next_tablet_id, TableRecord* table) {
  std::unordered_map<int64_t, const TabletRecord*> old;
  for (const TabletRecord& tablet : before.tablets) old[tablet.id] = &tablet;
  table->tablets.resize(reader->Unsigned(0, before.tablets.size()));
  const uint64_t added = reader->Unsigned();
  for (uint64_t i = 0; i < added && reader->ok(); ++i) {
    TabletRecord tablet;
    tablet.id = reader->Id();
    tablet.rows = static_cast<uint32_t>(reader->Unsigned(1, kGreatestTabletRows));
    tablet.file_bytes = reader->Unsigned(1, uint64_t{1} << 50);
    tablet.header_checksum = reader->Unsigned();
    tablet.bucket = static_cast<uint8_t>(reader->Unsigned(0, kBuckets - 1));
    if (!reader->ok() || tablet.id >= next_tablet_id || tablet.rows > table->tablet_rows) return Wrong("tablet");
    if (const auto known = old.find(tablet.id); known != old.end()) {
      tablet.live = known->second->live;
      tablet.layout = known->second->layout;
    }
    table->tablets.push_back(std::move(tablet));
  }
  const uint64_t marked = reader->Unsigned(0, table->tablets.size());
  for (uint64_t i = 0; i < marked && reader->ok(); ++i) {
    const uint64_t number = reader->Unsigned();
    const std::string_view packed = reader->Text();
    if (!reader->ok() || number >= table->tablets.size()) return Wrong("tablet");
    TabletRecord& tablet = table->tablets[number];
    tablet.live = LiveRows::Unpack(tablet.rows, packed);
    if (tablet.live == nullptr) return Wrong("set of deleted rows");
  }
  return reader->ok() ? Status() : Wrong("tablet");
}

/// In the place of a table's identifier: what follows is of several tables, or of sequences.
constexpr uint64_t kSeveral = 0;
constexpr uint64_t kMostOfRecord = uint64_t{1} << 16;  ///< tables, or sequences: more have no room

void EncodeTable(int64_t next_tablet_id, const std::vector<NewFile>& files, LoggedTable* table, CatalogBytes* out) {
  const TableRecord &before = *table->before, &after = *table->after;
  out->Add(after.id);
  out->Add(before.version);
  out->Add(after.version);
  out->Add(next_tablet_id);
  out->Add(uint64_t{after.tablet_rows});
  out->Add(uint64_t{after.statistics.size()});
  for (size_t c = 0; c < after.statistics.size(); ++c) {
    const ColumnStatistics& s = after.statistics[c];
    out->Add(uint64_t{s.has_range});
    out->Add(s.has_range ? s.min : int128_t{0});
    out->Add(s.has_range ? s.max : int128_t{0});
    out->Add(s.null_count);
    out->Add(s.distinct);
    out->Add(s.encoded_bytes);
    out->Add(std::string_view(table->sketches[c]));
  }
  const size_t same = SameTablets(before, after);
  out->Add(uint64_t{same});
  out->Add(uint64_t{after.tablets.size() - same});
  for (size_t t = same; t < after.tablets.size(); ++t) {
    const TabletRecord& tablet = after.tablets[t];
    out->Add(tablet.id);
    out->Add(uint64_t{tablet.rows});
    out->Add(tablet.file_bytes);
    out->Add(tablet.header_checksum);
    out->Add(uint64_t{tablet.bucket});
  }
  std::unordered_map<int64_t, const LiveRows*> old;
  for (const TabletRecord& tablet : before.tablets) old[tablet.id] = tablet.live.get();
  std::vector<size_t> marked;
  for (size_t t = 0; t < after.tablets.size(); ++t) {
    const LiveRows* const live = after.tablets[t].live.get();
    if (live != nullptr && live != old[after.tablets[t].id]) marked.push_back(t);
  }
  out->Add(uint64_t{marked.size()});
  for (const size_t t : marked) {
    out->Add(uint64_t{t});
    out->Add(std::string_view(after.tablets[t].live->packed()));
  }
  out->Add(uint64_t{files.size()});
  for (const NewFile& file : files) {
    out->Add(file.tablet);
    out->Add(std::string_view(file.bytes));
    table->files.push_back({file.tablet, out->bytes().size() - file.bytes.size(), file.bytes.size()});
  }
  out->Add(after.checksum);
}

Result<LoggedTable> ApplyTable(RecordReader* reader, CatalogContents* contents) {
  LoggedTable change;
  const int64_t id = reader->Id();
  const auto place = std::ranges::find_if(contents->tables, [&](const auto& table) { return table->id == id; });
  if (place == contents->tables.end()) return Wrong("table");
  change.before = *place;
  TableRecord after = *change.before;
  if (reader->Id() != after.version) return Wrong("version");
  after.version = reader->Id();
  const int64_t next_tablet_id = reader->Id();
  if (after.version <= change.before->version) return Wrong("version");
  after.tablet_rows = static_cast<uint32_t>(reader->Unsigned(0, kGreatestTabletRows));
  if (reader->Unsigned() != after.statistics.size()) return Wrong("number of columns");
  for (ColumnStatistics& s : after.statistics) {
    s.has_range = reader->Unsigned(0, 1) != 0;
    s.min = reader->Wide();
    s.max = reader->Wide();
    s.null_count = reader->Unsigned();
    s.distinct = reader->Unsigned();
    s.encoded_bytes = reader->Unsigned();
    change.sketches.emplace_back(reader->Text());
  }
  TESSERA_TRY(ReadTablets(reader, *change.before, next_tablet_id, &after));
  const uint64_t files = reader->Unsigned(0, after.tablets.size());
  for (uint64_t i = 0; i < files && reader->ok(); ++i) {
    LoggedFile file;
    file.tablet = reader->Id();
    file.bytes = reader->Text().size();
    file.offset = reader->position() - file.bytes;
    change.files.push_back(file);
  }
  after.checksum = reader->Unsigned();
  if (!reader->ok() || after.checksum != TableChecksum(after)) return Wrong("checksum");
  TESSERA_TRY(CheckStatistics(after));
  change.after = std::make_shared<const TableRecord>(std::move(after));
  *place = change.after;
  contents->next_tablet_id = next_tablet_id;
  return change;
}

Result<Sequence> ApplySequence(RecordReader* reader, Sequences* sequences) {
  const std::string_view name = reader->Text();
  const auto place = std::ranges::find(*sequences, name, &Sequence::name);
  if (place == sequences->end()) return Wrong("sequence");
  Sequence after = *place;
  after.value = static_cast<int64_t>(reader->Unsigned());
  after.was_given = reader->Unsigned(0, 1) != 0;
  if (!reader->ok() || !CheckSequence(after).ok()) return Wrong("value of a sequence");
  return *place = std::move(after);
}

}  // namespace

bool DifferInValuesAlone(const CatalogNames& a, const CatalogNames& b) {
  const auto is_same = [](const Sequence& x, const Sequence& y) { return x == y || IsSameButForValue(x, y); };
  return a.schemas == b.schemas && a.comments == b.comments && a.roles == b.roles && a.grants == b.grants &&
         std::ranges::equal(a.sequences, b.sequences, is_same);
}

LoggedChange DifferenceOf(const CatalogContents& before, const CatalogContents& after,
                          const std::unordered_map<int64_t, std::vector<std::string>>& sketches) {
  LoggedChange change;
  change.next_tablet_id = after.next_tablet_id;
  for (size_t t = 0; t < after.tables.size(); ++t) {
    if (after.tables[t] == before.tables[t]) continue;
    change.tables.push_back({before.tables[t], after.tables[t], sketches.at(after.tables[t]->id), {}});
  }
  const Sequences &old = before.names.sequences, &made = after.names.sequences;
  for (size_t s = 0; s < made.size(); ++s) {
    if (made[s] != old[s]) change.sequences.push_back(made[s]);
  }
  return change;
}

std::string EncodeChange(std::span<const std::vector<NewFile>> files, LoggedChange* change) {
  CatalogBytes out;
  if (change->IsOfOneTable()) {
    EncodeTable(change->next_tablet_id, files[0], &change->tables[0], &out);
    return out.Take();
  }
  out.Add(kSeveral);
  out.Add(change->next_tablet_id);
  out.Add(uint64_t{change->tables.size()});
  for (size_t t = 0; t < change->tables.size(); ++t)
    EncodeTable(change->next_tablet_id, files[t], &change->tables[t], &out);
  out.Add(uint64_t{change->sequences.size()});
  for (const Sequence& sequence : change->sequences) {
    out.Add(std::string_view(sequence.name));
    out.Add(sequence.value);
    out.Add(uint64_t{sequence.was_given});
  }
  return out.Take();
}

Result<LoggedChange> ApplyChange(std::string_view record, CatalogContents* contents) {
  RecordReader reader(record);
  LoggedChange change;
  const bool several = reader.TakeNumber(kSeveral);
  const int64_t next_tablet_id = several ? reader.Id() : 0;
  const uint64_t tables = several ? reader.Unsigned(0, kMostOfRecord) : 1;
  for (uint64_t t = 0; t < tables; ++t) {
    TESSERA_ASSIGN(LoggedTable table, ApplyTable(&reader, contents));
    change.tables.push_back(std::move(table));
  }
  const uint64_t sequences = several ? reader.Unsigned(0, kMostOfRecord) : 0;
  for (uint64_t s = 0; s < sequences; ++s) {
    TESSERA_ASSIGN(Sequence sequence, ApplySequence(&reader, &contents->names.sequences));
    change.sequences.push_back(std::move(sequence));
  }
  if (several) contents->next_tablet_id = next_tablet_id;
  if (!reader.ok() || !reader.AtEnd()) return Wrong("length");
  change.next_tablet_id = contents->next_tablet_id;
  return change;
}

}  // namespace tessera
