#include "tests/mpi/message_feeds.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "compiler/compiler.h"
#include "mpi/messages.h"
#include "mpi/messenger.h"
#include "mpi/rank_statistics.h"
#include "mpi/rank_tablets.h"
#include "tablet/files/live_rows.h"
#include "tests/vm/memory_tablet.h"
#include "vm/program/program.h"
#include "vm/rows/late_texts.h"
#include "vm/rows/row_set.h"
#include "vm/rows/sorted_rows.h"
#include "vm/vm.h"

namespace tessera::test {
namespace {

enum Kind : uint8_t {
  kShipment,
  kTables,
  kRun,
  kOpen,
  kLeave,
  kWanted,
  kStatus,
  kStatistics,
  kPieces,
  kLoad,
  kCounts,
  kLoaded,
  kKinds
};

std::string OfKind(Kind kind, const std::string& bytes) { return static_cast<char>(kind) + bytes; }

/// What a rank reads: tables, and a program over them.
struct Query {
  vm::Program program;
  TablesMessage tables;
};

const Query& TheQuery() {
  static const Query query = [] {
    ColumnVector numbers, texts;
    numbers.type = SqlType::Of(TypeId::kBigint);
    texts.type = SqlType::Text();
    for (int i = 0; i < 10; ++i) {
      numbers.Append(Value::Int(numbers.type, i));
      texts.Append(Value::Text("t" + std::to_string(i % 3)));
    }
    const auto table =
        MakeMemoryTable(7, "t", {{"a", numbers, {ChunkForm()}}, {"b", texts, {{Encoding::kDictionary, 1, {}, {}}}}}, 4);
    if (!table.ok()) throw std::runtime_error(table.status().message());
    const auto snapshot = MakeSnapshot({*table});
    Result<Compiled> compiled = Compile("SELECT b, sum(x.a) FROM t x JOIN t y USING (b) GROUP BY b", *snapshot, {});
    if (!compiled.ok()) throw std::runtime_error(compiled.status().message());
    Query out;
    out.program = *compiled->program;
    out.tables.alive = {1, 7};
    for (const vm::TableRef& ref : out.program.tables) {
      TableMessage& m = out.tables.tables.emplace_back();
      m.id = ref.id;
      m.name = ref.name;
      m.rows = 10;
      m.types = {numbers.type, texts.type};
      m.encoded_bytes = {80, 40};
      m.distinct = {10, 7};
      m.deleted = {{1, LiveRows(4, {5}).packed()}};
      m.rows -= 2;
      for (const uint32_t rows : {4u, 4u, 2u}) {
        TabletIdentity& tablet = m.tablets.emplace_back();
        tablet.table_id = ref.id;
        tablet.tablet_id = static_cast<int64_t>(m.tablets.size());
        tablet.rows = rows;
        tablet.file_bytes = 4096;
      }
      m.layouts = {{0, {{{1, 1, 0, 4000, 5, {-1, 1}}, {4, 3, 4096, 96, 6, {0}}}, {}}},
                   {2, {{}, {{0, "5"}, {1, std::nullopt}}}}};
      m.tablets[2].file_bytes = 1;
    }
    return out;
  }();
  return query;
}

/// The columns of shipments: every class of storage.
vm::Section ShipmentSection() {
  vm::Section s;
  s.columns = {SqlType::Of(TypeId::kBigint), SqlType::Decimal(38, 2), SqlType::Of(TypeId::kDouble), SqlType::Text(),
               SqlType::Of(TypeId::kTimestamp)};
  for (int32_t c = 0; c < 5; ++c) s.after.order.push_back({c, c % 2 == 0, c % 3 == 0});
  return s;
}

std::string ShipmentFeed(size_t rows) {
  vm::StringPool strings;
  vm::Shipment s;
  s.rows = vm::MakeRowSet(ShipmentSection().columns);
  s.rows.rows = rows;
  for (size_t r = 0; r < rows; ++r) {
    for (vm::RowColumn& c : s.rows.columns) {
      const bool text = c.type.storage() == StorageClass::kText;
      c.low.push_back(text ? strings.Intern("text " + std::to_string(r % 5)) : static_cast<int64_t>(r * 1000));
      if (IsWide(c.type)) c.high.push_back(r % 2 == 0 ? 0 : -1);
      if (rows % 2 == 1) c.null.push_back(r % 7 == 3);
    }
    if (r % 4 == 0) s.units.push_back({r, std::min<size_t>(4, rows - r)});
  }
  s.through = rows;
  WireWriter out;
  WriteShipment(s, strings, &out);
  return OfKind(kShipment, out.Take());
}

/// Two shipments that came are used like the rows of two ranks.
bool UseShipment(std::string_view bytes) {
  const vm::Section section = ShipmentSection();
  vm::StringPool strings;
  std::vector<vm::Shipment> both;
  for (int i = 0; i < 2; ++i) {
    Result<vm::Shipment> s = ReadShipment(bytes, section.columns, &strings);
    if (!s.ok()) return false;
    both.push_back(std::move(*s));
  }
  std::vector<vm::ResultColumn> columns;
  for (const SqlType& type : section.columns) columns.push_back({"", type});
  vm::RowSet rows = vm::InUnitOrder(section, std::move(both));
  if (!vm::OrderAndLimit(section.after, strings, nullptr, &rows).ok()) return false;
  const Result<RowBatch> batch =
      vm::DecodeRows(rows, columns, 0, std::min<size_t>(rows.rows, 100), strings, vm::LateTexts(), nullptr);
  if (!batch.ok()) return false;
  std::string text;
  for (size_t r = 0; r < batch->rows; ++r) {
    for (const ColumnVector& c : batch->columns) AppendText(c, r, &text);
  }
  return true;
}

bool UseTables(const TablesMessage& message, const vm::Program& program) {
  bool all = true;
  for (const bool scattered : {false, true}) {
    RankTablets tablets;
    tablets.Open("/nonexistent", scattered);
    std::vector<WantedTablet> wanted;
    const auto snapshot = tablets.Update(message, program, {1, 3, 0, scattered}, &wanted);
    all = all && snapshot.ok();
    if (!snapshot.ok()) continue;
    vm::Executor executor(1);
    vm::RunStatistics statistics;
    // No file is there, so this ends with an error; it may do nothing else.
    (void)executor.Run(
        program, **snapshot, {}, [](RowBatch&&) { return Status::Ok(); }, &statistics);
  }
  return all;
}

bool UseStatistics(std::string_view bytes) {
  std::vector<vm::RunStatistics> all(2);
  if (!ReadMessage(bytes, &all[1]).ok()) return false;
  all[0].sections.resize(TheQuery().program.sections.size());
  for (size_t i = 0; i < all[0].sections.size(); ++i) all[0].sections[i].section = static_cast<int>(i);
  return MergeStatistics(TheQuery().program, Snapshot(), all).ranks.size() == 2;
}

// ---- Pieces of messages ---------------------------------------------------------------------------------------------

struct JobEnded {};

/// Delivers what is in a feed, piece by piece, and ends the job when nothing is left: rank 1 of 3.
class FeedTransport final : public Transport {
 public:
  explicit FeedTransport(std::string_view feed) : rest_(feed) {}
  int rank() const override { return 1; }
  int ranks() const override { return 3; }
  int local_rank() const override { return 1; }
  int local_ranks() const override { return 3; }
  bool any_thread() const override { return false; }

  Request Send(int, int, const void*, size_t, bool) override { return -1; }
  Request Receive(int, int, void* data, size_t bytes) override {
    Probed();
    const size_t size = std::exchange(probed_, SIZE_MAX);
    if (size > bytes) throw JobEnded();  // MPI says that the message is too long
    Take(data, size);
    received_ = size;
    return 0;
  }
  bool Probe(int from, int, size_t* bytes, int* source) override {
    *bytes = Probed();
    *source = from < 0 ? 2 : from;
    return true;
  }
  Request Broadcast(int root, void* data, size_t bytes) override {
    if (root != rank()) Take(data, bytes);
    return -1;
  }
  Request Minimum(int64_t* value) override { return Broadcast(0, value, sizeof *value); }
  Request Sum(int64_t* value) override { return Broadcast(0, value, sizeof *value); }
  Request AllGather(const void*, size_t bytes, void* all) override { return Broadcast(0, all, 3 * bytes); }
  Request AllGather(const void*, const int* sizes, const int* starts, void* all) override {
    return Broadcast(0, all, static_cast<size_t>(starts[2]) + static_cast<size_t>(sizes[2]));
  }
  bool Done(Request* request, size_t* received) override {
    if (received != nullptr) *received = received_;
    *request = -1;
    return true;
  }
  void Abort(int) override { throw JobEnded(); }

 private:
  /// The size of the next piece: a number of two bytes before it; the last piece may be shorter.
  size_t Probed() {
    if (probed_ == SIZE_MAX) {
      uint16_t size = 0;
      if (rest_.empty()) throw JobEnded();
      Take(&size, std::min(rest_.size(), sizeof size));
      probed_ = std::min<size_t>(size, rest_.size());
    }
    return probed_;
  }
  void Take(void* to, size_t bytes) {
    if (bytes > rest_.size()) throw JobEnded();
    if (bytes > 0) memcpy(to, rest_.data(), bytes);
    rest_.remove_prefix(bytes);
  }

  std::string_view rest_;
  size_t probed_ = SIZE_MAX, received_ = 0;
};

std::string Piece(const std::string& bytes) {
  const auto size = static_cast<uint16_t>(bytes.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + bytes;
}

/// First its way: received, broadcast, or gathered from all.
bool UsePieces(std::string_view feed) {
  if (feed.empty()) return false;
  FeedTransport transport(feed.substr(1));
  Messenger messenger(&transport);
  try {
    switch (feed[0] % 3) {
      case 0:
        for (int i = 0; i < 2; ++i) (void)messenger.Receive(i == 0 ? 2 : -1, kTagRows);
        return true;
      case 1: {
        std::string message;
        messenger.AwaitBytes(0, &message);
        messenger.BroadcastBytes(0, &message);
        return true;
      }
      default:
        return messenger.AllGatherBytes("mine").size() == 3;
    }
  } catch (const JobEnded&) {
    return false;
  } catch (const std::bad_alloc&) {  // a rank says so and ends the job
    return false;
  }
}

}  // namespace

std::vector<std::string> ValidFeeds() {
  std::vector<std::string> out;
  for (const size_t rows : {0, 1, 9, 40}) out.push_back(ShipmentFeed(rows));
  const Query& query = TheQuery();
  out.push_back(OfKind(kTables, WriteMessage(query.tables)));
  RunCommand run;
  run.number = 3;
  run.program = query.program.Serialize();
  run.settings.threads = 2;
  run.tables = query.tables;
  out.push_back(OfKind(kRun, WriteMessage(run)));
  OpenCommand open;
  open.directory = "/data/db";
  out.push_back(OfKind(kOpen, WriteMessage(open)));
  out.push_back(OfKind(kLeave, WriteMessage(LeaveCommand{2})));
  LoadCommand load;
  load.load.target.load = "0123456789abcdef";
  load.load.schema.name = "t";
  load.load.schema.columns = {{"a", SqlType::Of(TypeId::kBigint), true}, {"b", SqlType::Text(), false, "x"}};
  load.load.schema.columns.push_back({"c", EnumSqlType({"mood", {"good", "bad"}})});
  load.load.file = "/data/t.csv";
  load.load.options.columns = {1, 0};
  out.push_back(OfKind(kLoad, WriteMessage(load)));
  out.push_back(OfKind(kCounts, WriteMessage(CountsMessage{{{3, 2, 1}, {1, 1, 0}}})));
  LoadedMessage loaded;
  loaded.tablets.records = {{7, 100, 4096, 1}, {8, 50, 4096, 2}};
  loaded.tablets.nulls = loaded.tablets.bytes = {1, 2};
  loaded.tablets.min = loaded.tablets.max = {3, 4};
  loaded.tablets.distinct.resize(2);
  loaded.tablets.distinct[0].Add(5);
  out.push_back(OfKind(kLoaded, WriteMessage(loaded)));
  WantedMessage wanted;
  wanted.tablets.resize(3);
  out.push_back(OfKind(kWanted, WriteMessage(wanted)));
  out.push_back(OfKind(kStatus, WriteMessage(Status(ErrorCode::kSql, "rank 2: integer out of range", "hint", 7))));
  vm::RunStatistics statistics;
  statistics.mine.rank = 1;
  statistics.sections.resize(query.program.sections.size());
  for (size_t i = 0; i < statistics.sections.size(); ++i) statistics.sections[i].section = static_cast<int>(i);
  statistics.sections[0].label = "scan t";
  statistics.sections.back().joined = {{"scan t", 10, 1.5}};
  statistics.mine.account.traffic.resize(3);
  statistics.mine.sections = {{0, 5, 4, 1, 9, statistics.mine.account}};
  out.push_back(OfKind(kStatistics, WriteMessage(statistics)));

  WireWriter framed(true);
  framed.Text("some text");
  const std::string message = framed.Take();
  out.push_back(OfKind(kPieces, std::string(1, 0) + Piece(message) + Piece(message)));
  WireWriter sizes;
  sizes.Text("command");
  sizes.Text("broadcast");
  out.push_back(OfKind(kPieces, std::string(1, 1) + sizes.Take()));
  WireWriter gathered;
  for (const uint64_t size : {3, 4, 5}) gathered.Number(size);
  out.push_back(OfKind(kPieces, std::string(1, 2) + gathered.Take() + "abcmine12345"));
  return out;
}

bool Feed(std::string_view feed) {
  if (feed.empty()) return false;
  const std::string_view bytes = feed.substr(1);
  switch (static_cast<uint8_t>(feed[0]) % kKinds) {
    case kShipment:
      return UseShipment(bytes);
    case kTables: {
      TablesMessage message;
      return ReadMessage(bytes, &message).ok() && UseTables(message, TheQuery().program);
    }
    case kRun: {
      RunCommand message;
      if (!ReadMessage(bytes, &message).ok()) return false;
      const Result<vm::Program> program = vm::Program::Parse(message.program);
      return program.ok() && vm::Verify(program.value()).ok() && UseTables(message.tables, program.value());
    }
    case kOpen: {
      OpenCommand message;
      return ReadMessage(bytes, &message).ok();
    }
    case kLeave: {
      LeaveCommand message;
      return ReadMessage(bytes, &message).ok();
    }
    case kWanted: {
      WantedMessage message;
      return ReadMessage(bytes, &message).ok();
    }
    case kStatus: {
      Status message;
      return ReadMessage(bytes, &message).ok();
    }
    case kLoad: {
      LoadCommand message;
      return ReadMessage(bytes, &message).ok();
    }
    case kCounts: {
      CountsMessage message;
      return ReadMessage(bytes, &message).ok();
    }
    case kLoaded: {
      LoadedMessage message;
      return ReadMessage(bytes, &message).ok();
    }
    case kStatistics:
      return UseStatistics(bytes);
    default:
      return UsePieces(bytes);
  }
}

}  // namespace tessera::test
