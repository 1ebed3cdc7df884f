// Messages between ranks as bytes: what is written is read back, and every damaged message is refused.

#include <gtest/gtest.h>

#include "compiler/compiler.h"
#include "mpi/messages.h"
#include "mpi/rank_statistics.h"
#include "mpi/rank_tablets.h"
#include "tablet/database.h"
#include "tablet/load/table_writer.h"

namespace tessera {
namespace {

vm::Shipment Sample(vm::StringPool* strings) {
  vm::Shipment s;
  s.rows.rows = 4;
  s.rows.columns.push_back({SqlType::Of(TypeId::kBigint), {1, -2, INT64_MIN, INT64_MAX}, {}, {}});
  s.rows.columns.push_back({SqlType::Decimal(38, 2), {1, 2, 3, 4}, {0, -1, 0, -1}, {0, 0, 0, 1}});
  vm::RowColumn text{SqlType::Text(), {}, {}, {0, 1, 0, 0}};
  for (const char* t : {"b", "", "", "b"}) text.low.push_back(strings->Intern(t));
  s.rows.columns.push_back(text);
  s.units = {{3, 1}, {5, 3}};
  s.through = 6;
  s.last = false;
  return s;
}

std::string Written(const vm::Shipment& s, const vm::StringPool& strings) {
  WireWriter out;
  WriteShipment(s, strings, &out);
  return out.Take();
}

std::vector<SqlType> TypesOf(const vm::Shipment& s) {
  std::vector<SqlType> types;
  for (const vm::RowColumn& c : s.rows.columns) types.push_back(c.type);
  return types;
}

TEST(Wire, ShipmentsComeBack) {
  vm::StringPool here, there;
  there.Intern("something else first, so that identifiers differ");
  const vm::Shipment s = Sample(&here);
  Result<vm::Shipment> r = ReadShipment(Written(s, here), TypesOf(s), &there);
  ASSERT_TRUE(r.ok()) << r.status().message();
  EXPECT_EQ(r->rows.rows, 4u);
  ASSERT_EQ(r->rows.columns.size(), 3u);
  EXPECT_EQ(r->rows.columns[0].low, s.rows.columns[0].low);
  EXPECT_EQ(r->rows.columns[1].high, s.rows.columns[1].high);
  EXPECT_EQ(r->rows.columns[1].null, s.rows.columns[1].null);
  const vm::RowColumn& text = r->rows.columns[2];
  EXPECT_EQ(there.Get(text.low[0]), "b");
  EXPECT_EQ(text.null[1], 1);
  EXPECT_EQ(there.Get(text.low[2]), "");
  EXPECT_EQ(text.low[3], text.low[0]);
  ASSERT_EQ(r->units.size(), 2u);
  EXPECT_EQ(r->units[1].unit, 5u);
  EXPECT_EQ(r->units[1].rows, 3u);
  EXPECT_EQ(r->through, 6u);
  EXPECT_FALSE(r->last);
}

TEST(Wire, NoRowsAndNoColumns) {
  vm::StringPool strings;
  Result<vm::Shipment> r = ReadShipment(Written({}, strings), {}, &strings);
  ASSERT_TRUE(r.ok());
  EXPECT_EQ(r->rows.rows, 0u);
  EXPECT_TRUE(r->last);
}

TEST(Wire, EqualTextsTravelOnce) {
  vm::StringPool strings;
  vm::Shipment s;
  s.rows.rows = 1000;
  s.rows.columns.push_back(
      {SqlType::Text(), std::vector<int64_t>(1000, strings.Intern(std::string(500, 'x'))), {}, {}});
  EXPECT_LT(Written(s, strings).size(), 1000u * sizeof(uint32_t) + 1000);
}

TEST(Wire, AFewOfManyTexts) {
  vm::StringPool here, there;
  for (int k = 0; k < 100000; ++k) here.Intern("text " + std::to_string(k));
  vm::Shipment s;
  s.rows.rows = 4;
  s.rows.columns.push_back(
      {SqlType::Text(), {99999, 5, INT64_MAX, 99999}, {}, {0, 0, 1, 0}});  // a NULL may hold any number
  Result<vm::Shipment> r = ReadShipment(Written(s, here), TypesOf(s), &there);
  ASSERT_TRUE(r.ok()) << r.status().message();
  const vm::RowColumn& text = r->rows.columns[0];
  EXPECT_EQ(there.Get(text.low[0]), "text 99999");
  EXPECT_EQ(there.Get(text.low[1]), "text 5");
  EXPECT_EQ(text.null, s.rows.columns[0].null);
  EXPECT_EQ(text.low[3], text.low[0]);
}

TEST(Wire, ShortenedAndChangedShipmentsAreRefusedOrWellFormed) {
  vm::StringPool strings;
  const vm::Shipment sample = Sample(&strings);
  const std::string bytes = Written(sample, strings);
  const std::vector<SqlType> types = TypesOf(sample);
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(ReadShipment(bytes.substr(0, n), types, &strings).ok()) << n;
  EXPECT_FALSE(ReadShipment(bytes + "x", types, &strings).ok());
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x80);
    Result<vm::Shipment> r = ReadShipment(changed, types, &strings);
    if (!r.ok()) continue;
    for (const vm::RowColumn& c : r->rows.columns) EXPECT_EQ(c.low.size(), r->rows.rows) << i;
  }
}

TEST(Wire, ShipmentsThatContradictThemselvesAreRefused) {
  const auto refused = [](auto change) {
    vm::StringPool strings;
    vm::Shipment s = Sample(&strings);
    const std::vector<SqlType> types = TypesOf(s);
    change(&s);
    const Result<vm::Shipment> r = ReadShipment(Written(s, strings), types, &strings);
    return !r.ok() && r.status().code() == ErrorCode::kCorrupt;
  };
  EXPECT_FALSE(refused([](vm::Shipment*) {}));
  // Types: of another class, unknown, too many digits.
  EXPECT_TRUE(refused([](vm::Shipment* s) { s->rows.columns[0].type = SqlType::Of(TypeId::kDouble); }));
  EXPECT_TRUE(refused([](vm::Shipment* s) { s->rows.columns[0].type.id = static_cast<TypeId>(200); }));
  EXPECT_TRUE(refused([](vm::Shipment* s) { s->rows.columns[0].type = SqlType::Of(TypeId::kNull); }));
  EXPECT_TRUE(refused([](vm::Shipment* s) { s->rows.columns[1].type.precision = 39; }));
  // Columns: one too many, one too few, one with a row less.
  EXPECT_TRUE(refused([](vm::Shipment* s) { s->rows.columns.push_back(s->rows.columns[0]); }));
  EXPECT_TRUE(refused([](vm::Shipment* s) { s->rows.columns.pop_back(); }));
  EXPECT_TRUE(refused([](vm::Shipment* s) { s->rows.columns[0].low.pop_back(); }));
  // Without the high halves of 128 bits; with those of 64.
  EXPECT_TRUE(refused([](vm::Shipment* s) { s->rows.columns[1].high.clear(); }));
  EXPECT_TRUE(refused([](vm::Shipment* s) { s->rows.columns[0].high.resize(4); }));
  // NULL flags: of too few rows, of another value.
  EXPECT_TRUE(refused([](vm::Shipment* s) { s->rows.columns[1].null.pop_back(); }));
  EXPECT_TRUE(refused([](vm::Shipment* s) { s->rows.columns[1].null[0] = 2; }));
  // Units: more rows than there are, though their sum is right modulo 2^64; out of order.
  EXPECT_TRUE(refused([](vm::Shipment* s) { s->units = {{3, 2}, {5, 3}}; }));
  EXPECT_TRUE(refused([](vm::Shipment* s) { s->units = {{1, uint64_t{1} << 63}, {2, uint64_t{1} << 63}, {3, 4}}; }));
  EXPECT_TRUE(refused([](vm::Shipment* s) { s->units = {{5, 1}, {3, 3}}; }));
}

TEST(Wire, ANumberThatNoTextHasIsRefused) {
  vm::StringPool strings;
  vm::Shipment s;
  s.rows.rows = 3;
  s.rows.columns.push_back({SqlType::Text(), {strings.Intern("x"), 77, strings.Intern("y")}, {}, {0, 1, 0}});
  std::string bytes = Written(s, strings);
  ASSERT_TRUE(ReadShipment(bytes, TypesOf(s), &strings).ok());
  bytes.back() = 2;  // of the last row
  EXPECT_FALSE(ReadShipment(bytes, TypesOf(s), &strings).ok());
}

TEST(Wire, NumbersArePacked) {
  vm::StringPool strings;
  ThreadPool pool(3);
  for (const auto& [step, width] : {std::pair<int64_t, size_t>{0, 1}, {1, 4}, {1000, 4}, {int64_t{1} << 40, 8}}) {
    constexpr size_t kRows = 200000;
    vm::Shipment s;
    s.rows.rows = kRows;
    vm::RowColumn& c = s.rows.columns.emplace_back(vm::RowColumn{SqlType::Of(TypeId::kBigint), {}, {}, {}});
    for (size_t i = 0; i < kRows; ++i) {
      c.low.push_back(INT64_MIN + static_cast<int64_t>(i) * step);
      c.null.push_back(i % 5 == 2);
    }
    const std::vector<int64_t> values = c.low;
    for (size_t i = 2; i < kRows; i += 5) c.low[i] = INT64_MAX;  // what is under a NULL needs no room
    WireWriter out(false, &pool);
    WriteShipment(s, strings, &out);
    const std::string bytes = out.Take();
    EXPECT_EQ(bytes, Written(s, strings));
    EXPECT_LT(bytes.size(), kRows * (width + 1) + 200);
    EXPECT_GE(bytes.size(), kRows * (width + 1));
    const Result<vm::Shipment> r = ReadShipment(bytes, TypesOf(s), &strings, &pool);
    ASSERT_TRUE(r.ok()) << r.status().message();
    EXPECT_EQ(r->rows.columns[0].null, c.null);
    for (size_t i = 0; i < kRows; ++i) {
      if (c.null[i] != 0) continue;
      ASSERT_EQ(r->rows.columns[0].low[i], values[i]) << i;
    }
  }
}

TEST(Wire, EnumeratorsAndNumbersOutOfRangeAreRefused) {
  const auto refused = [](auto change) {
    RunCommand command;
    change(&command);
    RunCommand r;
    return !ReadMessage(WriteMessage(command), &r).ok();
  };
  EXPECT_FALSE(refused([](RunCommand*) {}));
  EXPECT_TRUE(refused([](RunCommand* c) { c->run_settings.join_partitioning = static_cast<vm::JoinPartitioning>(3); }));
  EXPECT_TRUE(refused([](RunCommand* c) { c->settings.transfer = static_cast<Transfer>(4); }));
  EXPECT_TRUE(refused([](RunCommand* c) { c->settings.threads = UINT64_MAX; }));
  EXPECT_TRUE(refused([](RunCommand* c) { c->settings.threads = 1025; }));
  EXPECT_TRUE(refused([](RunCommand* c) { c->settings.rank_timeout = UINT64_MAX; }));
  Status s;
  EXPECT_FALSE(ReadMessage(WriteMessage(Status(static_cast<ErrorCode>(99), "what")), &s).ok());
  EXPECT_FALSE(ReadMessage(WriteMessage(Status(ErrorCode::kSql, "what", "", -2)), &s).ok());
}

TEST(Wire, ACountThatTheMessageCannotHoldAllocatesNothing) {
  vm::RunStatistics s;
  s.sections.resize(1);
  std::string bytes = WriteMessage(s);
  const uint64_t many = bytes.size();  // of sections, which take more than a byte each
  memcpy(bytes.data() + WriteMessage(s.mine).size(), &many, sizeof many);
  vm::RunStatistics r;
  EXPECT_FALSE(ReadMessage(bytes, &r).ok());
  EXPECT_TRUE(r.sections.empty());
}

/// Where a section runs is decided by every rank for itself, so all must know the same of a table.
TEST(Wire, RanksKnowOfATableWhatTheMasterKnows) {
  Result<std::unique_ptr<Database>> database = Database::Open("", OpenMode::kReadWrite);
  ASSERT_TRUE(database.ok());
  TableSchema schema;
  schema.name = "t";
  schema.columns = {{"a", SqlType::Of(TypeId::kInteger), false}, {"s", SqlType::Text(), false}};
  schema.distribute_by = {0};
  ASSERT_TRUE((*database)->CreateTable(schema, false).ok());
  Result<std::unique_ptr<TableWriter>> writer = (*database)->Write("t");
  ASSERT_TRUE(writer.ok());
  RowBatch batch;
  batch.rows = 1000;
  for (const ColumnSchema& c : schema.columns) batch.columns.emplace_back().type = c.type;
  for (int i = 0; i < 1000; ++i) {
    batch.columns[0].Append(Value::Int(schema.columns[0].type, i % 7));
    batch.columns[1].Append(Value::Text("text " + std::to_string(i % 300)));
  }
  ASSERT_TRUE((*writer)->Append(batch, 1).ok());
  ASSERT_TRUE((*writer)->Commit().ok());
  const Result<std::shared_ptr<const Snapshot>> masters = (*database)->Read();
  ASSERT_TRUE(masters.ok());
  Result<Compiled> compiled = Compile("SELECT s, count(a) FROM t GROUP BY s", **masters, {});
  ASSERT_TRUE(compiled.ok());
  TableTeller teller;
  Result<TablesMessage> sent = teller.Describe(*compiled->program, **masters);
  ASSERT_TRUE(sent.ok());
  TablesMessage received;
  ASSERT_TRUE(ReadMessage(WriteMessage(*sent), &received).ok());
  RankTablets tablets;
  tablets.Open((*database)->directory(), false);
  std::vector<WantedTablet> wanted;
  const auto theirs = tablets.Update(received, *compiled->program, {1, 2, 0, false}, &wanted);
  ASSERT_TRUE(theirs.ok());
  const std::vector<ColumnStatistics>& expected = (*masters)->Find("t")->statistics;
  const std::vector<ColumnStatistics>& known = (*theirs)->Find("t")->statistics;
  ASSERT_EQ(known.size(), expected.size());
  for (size_t c = 0; c < known.size(); ++c) {
    EXPECT_EQ(known[c].encoded_bytes, expected[c].encoded_bytes);
    EXPECT_EQ(known[c].distinct, expected[c].distinct);
  }
  EXPECT_GE(known[1].distinct, 250u);
  EXPECT_EQ((*theirs)->Find("t")->buckets, (*masters)->Find("t")->buckets);
  EXPECT_EQ((*theirs)->Find("t")->buckets.size(), (*theirs)->Find("t")->tablets.size());

  // What all know is not told again, until it has changed or they may have forgotten it.
  teller.NoteTold(*compiled->program, **masters);
  Result<TablesMessage> again = teller.Describe(*compiled->program, **masters);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->tables[0].is_told);
  EXPECT_TRUE(again->tables[0].tablets.empty());
  const auto same = tablets.Update(*again, *compiled->program, {1, 2, 0, false}, &wanted);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ((*same)->Find("t"), (*theirs)->Find("t"));
  Result<std::unique_ptr<TableWriter>> more = (*database)->Write("t");
  ASSERT_TRUE(more.ok());
  ASSERT_TRUE((*more)->Append(batch, 1001).ok());
  ASSERT_TRUE((*more)->Commit().ok());
  const Result<std::shared_ptr<const Snapshot>> later = (*database)->Read();
  ASSERT_TRUE(later.ok());
  Result<TablesMessage> changed = teller.Describe(*compiled->program, **later);
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(changed->tables[0].is_told);
  const auto grown = tablets.Update(*changed, *compiled->program, {1, 2, 0, false}, &wanted);
  ASSERT_TRUE(grown.ok());
  EXPECT_EQ((*grown)->Find("t")->rows, 2000u);
  teller.Clear();
  EXPECT_FALSE(teller.Describe(*compiled->program, **masters)->tables[0].is_told);
  tablets.Open((*database)->directory(), false);
  EXPECT_FALSE(tablets.Update(*again, *compiled->program, {1, 2, 0, false}, &wanted).ok());

  sent->tables[0].buckets.pop_back();
  EXPECT_FALSE(tablets.Update(*sent, *compiled->program, {1, 2, 0, false}, &wanted).ok());
}

TEST(Wire, StatusesComeBack) {
  for (const Status& s : {Status::Ok(), Status(ErrorCode::kDevice, "what", "hint", 7), Status(ErrorCode::kSql, "")}) {
    Status r(ErrorCode::kInternal, "not read");
    EXPECT_TRUE(ReadMessage(WriteMessage(s), &r).ok());
    ASSERT_EQ(r.ok(), s.ok());
    if (s.ok()) continue;
    EXPECT_EQ(r.code(), s.code());
    EXPECT_EQ(r.message(), s.message());
    EXPECT_EQ(r.hint(), s.hint());
    EXPECT_EQ(r.position(), s.position());
  }
}

TEST(Wire, StatisticsComeBack) {
  vm::RunStatistics s;
  s.mine.rank = 3;
  s.mine.host = "node7";
  s.mine.bytes_sent = 12;
  s.mine.kernel_work = 1.5;
  s.mine.account.nanoseconds.back() = 5;
  s.mine.account.traffic = {{1, 2}, {3, 4}};
  s.mine.account.collectives = 6;
  s.mine.sections = {{1, 10, 9, 8, 7, s.mine.account}, {2, 0, 0, 0, 0, {}}};
  s.mine.spans = {{100, 200, 1, Phase::kRead, 0, 1}};
  s.mine.agreed = 150;
  s.sections.push_back({1,    "scan t",
                        true, 10,
                        9,    true,
                        18,   2,
                        8,    7,
                        6,    20,
                        5,    21,
                        22,   4,
                        13,   "lean kernel",
                        12,   11,
                        3,    {{"scan u", 80}, {"scan v", 70}},
                        17,   16,
                        15,   4.5,
                        3.5,  2.5});
  vm::RunStatistics r;
  EXPECT_TRUE(ReadMessage(WriteMessage(s), &r).ok());
  EXPECT_EQ(r.mine.rank, 3);
  EXPECT_EQ(r.mine.host, "node7");
  EXPECT_EQ(r.mine.bytes_sent, 12u);
  EXPECT_EQ(r.mine.kernel_work, 1.5);
  EXPECT_EQ(r.mine.account.nanoseconds, s.mine.account.nanoseconds);
  EXPECT_EQ(r.mine.account.traffic[1].received, 4u);
  EXPECT_EQ(r.mine.account.collectives, 6u);
  ASSERT_EQ(r.mine.sections.size(), 2u);
  EXPECT_EQ(r.mine.sections[0].bytes_read, 7u);
  EXPECT_EQ(r.mine.sections[0].account.traffic[1].sent, 3u);
  EXPECT_EQ(r.mine.sections[1].section, 2);
  ASSERT_EQ(r.mine.spans.size(), 1u);
  EXPECT_EQ(r.mine.spans[0].end, 200);
  EXPECT_EQ(r.mine.spans[0].phase, Phase::kRead);
  EXPECT_EQ(r.mine.agreed, 150);
  ASSERT_EQ(r.sections.size(), 1u);
  EXPECT_EQ(r.sections[0].label, "scan t");
  EXPECT_TRUE(r.sections[0].distributed);
  EXPECT_EQ(r.sections[0].rows_exchanged, 18u);
  EXPECT_EQ(r.sections[0].heavy_keys, 2u);
  EXPECT_EQ(r.sections[0].bytes_decoded, 20u);
  EXPECT_EQ(r.sections[0].bytes_transferred, 5u);
  EXPECT_EQ(r.sections[0].bytes_in_place, 21u);
  EXPECT_EQ(r.sections[0].bytes_read_in_place, 22u);
  EXPECT_EQ(r.sections[0].bytes_staged, 4u);
  EXPECT_EQ(r.sections[0].bytes_on_demand, 13u);
  EXPECT_EQ(r.sections[0].device_plan, "lean kernel");
  EXPECT_EQ(r.sections[0].pairs, 12u);
  EXPECT_EQ(r.sections[0].pruned_pairs, 11u);
  EXPECT_EQ(r.sections[0].child_grids, 3u);
  ASSERT_EQ(r.sections[0].joined.size(), 2u);
  EXPECT_EQ(r.sections[0].joined[1].table, "scan v");
  EXPECT_EQ(r.sections[0].joined[1].rows, 70u);
  EXPECT_EQ(r.sections[0].join_passes, 17u);
  EXPECT_EQ(r.sections[0].group_spills, 16u);
  EXPECT_EQ(r.sections[0].spilled_groups, 15u);
  EXPECT_EQ(r.sections[0].kernel_milliseconds, 3.5);
  EXPECT_EQ(r.sections[0].transfer_milliseconds, 2.5);
}

vm::SectionStatistics Measured(uint64_t unit, double milliseconds) {
  vm::SectionStatistics s;
  s.label = "scan " + std::to_string(unit);
  s.on_gpu = unit > 1;
  s.device_plan = "plan " + std::to_string(unit);
  s.rows_out = unit;
  s.join_passes = unit;
  uint64_t n = unit;
  for (uint64_t* sum :
       {&s.rows_in, &s.tablets, &s.tablets_skipped, &s.bytes_read, &s.bytes_decoded, &s.bytes_transferred,
        &s.bytes_in_place, &s.bytes_read_in_place, &s.bytes_staged, &s.bytes_on_demand, &s.pairs, &s.pruned_pairs,
        &s.child_grids, &s.group_spills, &s.spilled_groups})
    *sum = n *= 2;
  s.joined = {{"u", unit, milliseconds}, {"v", 10 * unit, milliseconds}};
  s.milliseconds = s.kernel_milliseconds = s.transfer_milliseconds = milliseconds;
  return s;
}

TEST(Wire, StatisticsOfRanksAreMerged) {
  vm::SectionStatistics s = Measured(1, 2.5);
  MergeSection(Measured(100, 1.5), false, &s);
  MergeSection(Measured(10000, 3.5), false, &s);
  // The master's.
  EXPECT_EQ(s.label, "scan 1");
  EXPECT_EQ(s.device_plan, "plan 1");
  EXPECT_EQ(s.rows_out, 1u);
  // On any rank.
  EXPECT_TRUE(s.on_gpu);
  // Sums.
  uint64_t n = 10101;
  for (const uint64_t sum :
       {s.rows_in, s.tablets, s.tablets_skipped, s.bytes_read, s.bytes_decoded, s.bytes_transferred, s.bytes_in_place,
        s.bytes_read_in_place, s.bytes_staged, s.bytes_on_demand, s.pairs, s.pruned_pairs, s.child_grids,
        s.group_spills, s.spilled_groups})
    EXPECT_EQ(sum, n *= 2);
  // The greatest.
  EXPECT_EQ(s.join_passes, 10000u);
  EXPECT_EQ(s.milliseconds, 3.5);
  EXPECT_EQ(s.kernel_milliseconds, 3.5);
  EXPECT_EQ(s.transfer_milliseconds, 3.5);
  ASSERT_EQ(s.joined.size(), 2u);
  EXPECT_EQ(s.joined[0].rows, 10101u);
  EXPECT_EQ(s.joined[1].rows, 101010u);
  EXPECT_EQ(s.joined[1].milliseconds, 3.5);

  // Every rank sends its rows of a join table to all.
  s = Measured(1, 2.5);
  MergeSection(Measured(100, 1.5), true, &s);
  EXPECT_EQ(s.rows_out, 101u);
  // A rank that did not count its joins.
  vm::SectionStatistics none = Measured(100, 1.5);
  none.joined.clear();
  MergeSection(none, true, &s);
  EXPECT_TRUE(s.joined.empty());
}

TEST(Wire, LoadsComeBackOrAreRefused) {
  LoadCommand command;
  command.number = 7;
  command.zone = "Europe/Berlin";
  command.settings.threads = 2;
  command.settings.memory_limit = 6;
  SharedLoad& load = command.load;
  load.target.load = "name";
  load.target.durable = false;
  load.target.compression = CompressionGoal::kRatio;
  load.target.table_id = 5;
  load.target.first_tablet_id = 6;
  load.schema.name = "t";
  load.schema.columns = {{"a", SqlType::Of(TypeId::kBigint), true},
                         {"b", SqlType::Text(), false, "x"},
                         {"c", EnumSqlType({"mood", {"good", "bad"}})}};
  load.short_rows = 3;
  load.tablet_rows = 100;
  load.file = "file";
  load.file_bytes = 1000;
  load.text_bytes = 998;
  load.file_written = -1;
  load.options.format.header = true;
  load.options.format.delimiter = '|';
  load.options.format.quote = load.options.format.escape = '\'';
  load.options.format.null_string = "none";
  load.options.columns = {2, 0};
  const std::string bytes = WriteMessage(command);
  LoadCommand r;
  ASSERT_TRUE(ReadMessage(bytes, &r).ok());
  EXPECT_EQ(WriteMessage(r), bytes);
  EXPECT_EQ(r.load.schema.columns[2].type, load.schema.columns[2].type);
  EXPECT_EQ(r.load.schema.columns[1].default_text, "x");
  EXPECT_EQ(r.load.options.columns, load.options.columns);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ReadMessage(std::string_view(bytes).substr(0, size), &r).ok()) << size;
  }
  const auto refused = [&](auto change) {
    LoadCommand changed = command;
    change(&changed.load);
    LoadCommand read;
    return !ReadMessage(WriteMessage(changed), &read).ok();
  };
  EXPECT_FALSE(refused([](SharedLoad*) {}));
  EXPECT_TRUE(refused([](SharedLoad* l) { l->target.load = "../name"; }));
  EXPECT_TRUE(refused([](SharedLoad* l) { l->target.load = ""; }));
  EXPECT_TRUE(refused([](SharedLoad* l) { l->schema.columns.clear(); }));
  EXPECT_TRUE(refused([](SharedLoad* l) { l->schema.columns[0].type.id = static_cast<TypeId>(200); }));
  EXPECT_TRUE(refused([](SharedLoad* l) { l->short_rows = 100; }));
  EXPECT_TRUE(refused([](SharedLoad* l) { l->text_bytes = l->file_bytes + 1; }));
  EXPECT_TRUE(refused([](SharedLoad* l) { l->tablet_rows = 2 << 20; }));
  EXPECT_TRUE(refused([](SharedLoad* l) { l->options.format.escape = '#'; }));

  LoadedMessage loaded, back;
  loaded.tablets.rows_added = 4;
  loaded.tablets.records = {{7, 4, 4096, 1}};
  loaded.tablets.nulls = loaded.tablets.bytes = {1};
  loaded.tablets.min = loaded.tablets.max = {3};
  loaded.tablets.distinct.resize(1);
  for (uint64_t hash = 1; hash < 3000; ++hash) loaded.tablets.distinct[0].Add(hash * 0x9E3779B97F4A7C15);
  ASSERT_TRUE(ReadMessage(WriteMessage(loaded), &back).ok());
  EXPECT_EQ(WriteMessage(back), WriteMessage(loaded));
  EXPECT_EQ(back.tablets.distinct[0].Estimate(), loaded.tablets.distinct[0].Estimate());
  loaded.tablets.max.clear();
  EXPECT_FALSE(ReadMessage(WriteMessage(loaded), &back).ok());
}

TEST(Wire, CommandsComeBackOrAreRefused) {
  RunCommand command;
  command.number = 7;
  command.program = "program";
  command.settings.threads = 3;
  command.choices.gpu_required = command.choices.profile = true;
  command.run_settings.join_partitioning = vm::JoinPartitioning::kOff;
  command.run_settings.decompression = vm::Decompression::kFull;
  command.choices.gpu_memory = 1 << 30;
  command.settings.transfer = Transfer::kZeroCopy;
  command.settings.transfer_piece = 1 << 20;
  command.settings.memory_limit = 6;
  command.settings.scatter_memory = 5;
  command.settings.session_memory = 3;
  command.settings.temp_file_limit = 4;
  command.tables.alive = {1, 2};
  TableMessage table;
  table.id = 2;
  table.name = "t";
  table.rows = 100;
  table.types = {SqlType::Of(TypeId::kBigint), SqlType::Text()};
  table.encoded_bytes = {800, 900};
  table.tablets.resize(3);
  table.tablets[2].tablet_id = 9;
  table.deleted = {{1, "rows"}, {2, ""}};
  table.layouts = {{0, {{{7, 6, 4096, 500, 8, {1, -1}}}, {{0, "text"}}}}, {2, {{}, {{0, std::nullopt}, {1, ""}}}}};
  command.tables.tables = {table, table};
  command.tables.tables[1].is_told = true;
  const std::string bytes = WriteMessage(command);
  RunCommand r;
  ASSERT_TRUE(ReadMessage(bytes, &r).ok());
  EXPECT_EQ(r.number, 7u);
  EXPECT_EQ(r.program, "program");
  EXPECT_EQ(r.settings.threads, 3u);
  EXPECT_FALSE(r.choices.use_gpu);
  EXPECT_TRUE(r.choices.gpu_required);
  EXPECT_TRUE(r.choices.profile);
  EXPECT_FALSE(r.choices.trace);
  EXPECT_EQ(r.run_settings.join_partitioning, vm::JoinPartitioning::kOff);
  EXPECT_EQ(r.run_settings.decompression, vm::Decompression::kFull);
  EXPECT_EQ(r.choices.gpu_memory, uint64_t{1} << 30);
  EXPECT_EQ(r.settings.transfer, Transfer::kZeroCopy);
  EXPECT_EQ(r.settings.transfer_piece, uint64_t{1} << 20);
  EXPECT_EQ(r.settings.memory_limit, 6u);
  EXPECT_EQ(r.settings.scatter_memory, 5u);
  EXPECT_EQ(r.settings.session_memory, 3u);
  EXPECT_EQ(r.settings.temp_file_limit, 4u);
  EXPECT_EQ(r.tables.alive, command.tables.alive);
  ASSERT_EQ(r.tables.tables.size(), 2u);
  EXPECT_TRUE(r.tables.tables[1].is_told);
  EXPECT_EQ(r.tables.tables[1].name, "t");
  EXPECT_EQ(r.tables.tables[1].rows, 100u);
  EXPECT_EQ(r.tables.tables[1].types, table.types);
  EXPECT_EQ(r.tables.tables[1].encoded_bytes, table.encoded_bytes);
  ASSERT_EQ(r.tables.tables[1].tablets.size(), 3u);
  EXPECT_EQ(r.tables.tables[1].tablets[2].tablet_id, 9);
  EXPECT_EQ(r.tables.tables[1].deleted, table.deleted);
  EXPECT_EQ(r.tables.tables[1].layouts, table.layouts);
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(ReadMessage(bytes.substr(0, n), &r).ok()) << n;
  EXPECT_FALSE(ReadMessage(bytes + "x", &r).ok());
}

}  // namespace
}  // namespace tessera
