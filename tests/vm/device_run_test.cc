// What the executor asks of a device, and what it does when the device cannot: the host does the rest, with the same
// rows. The device here is a fake one, so no GPU is needed: it counts the join tables that it was given, and gives up
// when told to.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/status.h"
#include "compiler/compiler.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tests/vm/memory_tablet.h"
#include "vm/program/program.h"
#include "vm/rows/row_set.h"
#include "vm/run/device.h"
#include "vm/run/statistics.h"
#include "vm/run/unwanted_groups.h"
#include "vm/shares/exchange.h"
#include "vm/vm.h"

namespace tessera::test {
namespace {

using vm::Instruction;
using vm::Opcode;
using vm::Program;
using vm::Section;
using vm::SectionContext;
using vm::Shape;

std::vector<int> Probed(const Section& s) {
  std::vector<int> joins;
  for (const Instruction& in : s.code) {
    const Shape shape = vm::Info(in.op).shape;
    if (shape == Shape::Probe || shape == Shape::ProbeOuter) joins.push_back(in.p1);
  }
  return joins;
}

/// What the false device does, and what it saw.
struct Script {
  int good_calls = 0;  ///< builds and puts that succeed; then, and for any other section, `error` comes
  Status error;
  bool outer_joins = false;   ///< whether it claims to run opcodes that are the host's
  int64_t refused = -1;       ///< a section that it cannot run
  std::vector<int64_t> rows;  ///< what sections with rows of one number make; empty: they fail

  int builds = 0, built = 0, puts = 0, runs = 0;
  bool gave_up = false;
  std::string wrong;  ///< what it was asked against the contract of DeviceRun; "" if nothing
};

class FalseRun final : public vm::DeviceRun {
 public:
  explicit FalseRun(Script* script) : script_(*script) {}

  Result<vm::RowSet> RunSection(const SectionContext& c) override {
    ++script_.runs;
    const Section& s = c.program->sections[static_cast<size_t>(c.section)];
    if (s.sink == Section::Sink::kJoin) Wrong("RunSection of a join table", c.section);
    const bool of_table = s.source_kind == Section::Source::kTable;
    if ((c.table != nullptr) != of_table || c.strings == nullptr || c.statistics == nullptr)
      Wrong("a context without", c.section);
    NeedsTables(c);
    if (script_.rows.empty() || s.sink != Section::Sink::kRows) return GiveUp();
    vm::RowSet all{0, {{s.columns[0], {}, {}, {}}}};
    for (const int64_t v : script_.rows) {
      if (c.take_rows) {
        vm::RowSet one{1, {{s.columns[0], {v}, {}, {}}}};
        TESSERA_TRY(c.take_rows(&one));
      } else {
        all.columns[0].low.push_back(v);
        ++all.rows;
      }
    }
    return all;
  }
  // (For ranks alone, and here are none.)
  Result<uint64_t> FindGroups(const SectionContext& c) override {
    Wrong("FindGroups without ranks", c.section);
    return GiveUp();
  }
  Result<vm::GroupOffer> OfferGroups(int) override { return GiveUp(); }
  Result<uint64_t> ExchangeGroups(const std::vector<vm::GroupOffer>&, vm::Exchange*) override { return GiveUp(); }
  Result<vm::RowSet> TakeGroups(bool) override { return GiveUp(); }
  Status BuildJoins(const std::vector<SectionContext>& contexts, const Status&) override {
    ++script_.builds;
    std::vector<int> joins;
    for (const SectionContext& c : contexts) {
      const Section& s = c.program->sections[static_cast<size_t>(c.section)];
      if (s.sink != Section::Sink::kJoin) Wrong("BuildJoins of no join table", c.section);
      NeedsTables(c);
      joins.push_back(s.join);
    }
    if (!Good()) return GiveUp();
    script_.built += static_cast<int>(contexts.size());
    have_.insert(joins.begin(), joins.end());
    return Status::Ok();
  }
  Result<bool> ExchangeJoin(const SectionContext& c, int, bool, bool, const Status&) override {
    Wrong("ExchangeJoin without ranks", c.section);
    return GiveUp();
  }
  Result<vm::RowSet> TakeJoin(const Program&, int, ThreadPool*) override { return GiveUp(); }
  bool Keeps(int section) const override { return kept_.contains(section); }
  Status PutRows(const Program&, int section, const vm::RowSet& rows) override {
    if (!Good()) return GiveUp();
    kept_[section] = rows;
    return Status::Ok();
  }
  Result<vm::RowSet> FetchRows(const Program&, int section) override {
    if (!Keeps(section)) Wrong("FetchRows of rows that are not here", section);
    return kept_[section];
  }
  void DropRows(int section) override { kept_.erase(section); }
  Status PutJoin(const Program& program, const vm::ProgramTraits&, int join, const vm::RowSet& rows,
                 uint64_t source_rows, vm::JoinPartitioning) override {
    ++script_.puts;
    const Section& builder = program.sections[static_cast<size_t>(program.joins[static_cast<size_t>(join)].section)];
    if (rows.columns.size() != builder.columns.size() || rows.rows > source_rows) Wrong("PutJoin of other rows", join);
    if (!Good()) return GiveUp();
    have_.insert(join);
    return Status::Ok();
  }

 private:
  bool Good() { return !script_.gave_up && script_.good_calls-- > 0; }
  Status GiveUp() {
    if (script_.gave_up) Wrong("asked again after an error", 0);
    script_.gave_up = true;
    return script_.error;
  }
  void NeedsTables(const SectionContext& c) {
    const Section& s = c.program->sections[static_cast<size_t>(c.section)];
    std::vector<int> needed = Probed(s);
    if (s.source_kind == Section::Source::kJoin) needed.push_back(s.source);
    for (int join : needed) {
      if (have_.count(join) == 0) Wrong("a join table is missing for section", c.section);
    }
    if (s.source_kind == Section::Source::kSection && !Keeps(s.source)) Wrong("no rows for section", c.section);
  }
  void Wrong(const char* what, int number) { script_.wrong += fmt::format("{} {}; ", what, number); }

  Script& script_;
  std::set<int> have_;
  std::map<int, vm::RowSet> kept_;
};

class FalseDevice final : public vm::SectionBackend {
 public:
  explicit FalseDevice(Script* script) : script_(*script) {}
  Status CanRun(const Program& program, int section) const override {
    const Section& s = program.sections[static_cast<size_t>(section)];
    for (const Instruction& in : s.code) {
      const Shape shape = vm::Info(in.op).shape;
      if (shape == Shape::ProbeOuter && !script_.outer_joins) return Unsupported("an outer join");
    }
    if (section == script_.refused) return Unsupported("this section");
    return Status::Ok();
  }
  bool HasWindows(const Program&, int) const override { return false; }
  std::unique_ptr<vm::DeviceRun> Begin() override { return std::make_unique<FalseRun>(&script_); }

 private:
  Script& script_;
};

ColumnVector Integers(size_t rows, int64_t (*f)(int64_t), int64_t null_every = 0) {
  ColumnVector c;
  c.type = SqlType::Of(TypeId::kBigint);
  for (size_t i = 0; i < rows; ++i) {
    const bool null = null_every > 0 && static_cast<int64_t>(i) % null_every == null_every - 1;
    const int64_t v = f(static_cast<int64_t>(i));
    c.Append(null ? Value::Null(c.type) : Value::Int(c.type, v));
  }
  return c;
}

std::shared_ptr<const TableInfo> Table(int64_t id, const char* name, std::vector<ColumnVector> columns) {
  std::vector<MemoryColumn> all;
  for (ColumnVector& c : columns) {
    ChunkForm form;
    if (c.type.id == TypeId::kText) form = {Encoding::kDictionary, 2, {}, {}};
    all.push_back({std::string(1, static_cast<char>('a' + all.size())), std::move(c), {form}});
  }
  Result<std::shared_ptr<const TableInfo>> table = MakeMemoryTable(id, name, all, 1000);
  EXPECT_TRUE(table.ok());
  return table.ok() ? *table : nullptr;
}

/// f (a, b, c): 5,000 rows; a has NULLs. d (a, b): 100 rows, a unique. e (a, b): 60 rows, each a three times.
std::shared_ptr<const Snapshot> Tables() {
  std::vector<ColumnVector> f, d, e;
  f.push_back(Integers(
      5000, [](int64_t i) { return i * 7 % 131; }, 11));
  f.push_back(Integers(5000, [](int64_t i) { return i % 29; }));
  f.push_back(Integers(5000, [](int64_t i) { return i; }));
  d.push_back(Integers(100, [](int64_t i) { return i; }));
  d.push_back(Integers(
      100, [](int64_t i) { return i % 10; }, 9));
  e.push_back(Integers(60, [](int64_t i) { return i / 3; }));
  e.push_back(Integers(60, [](int64_t i) { return i % 7; }));
  return MakeSnapshot({Table(1, "d", std::move(d)), Table(2, "e", std::move(e)), Table(3, "f", std::move(f))});
}

const char* const kQueries[] = {
    "SELECT sum(c) FROM f WHERE b < 7",
    "SELECT c FROM f WHERE b = 3 ORDER BY c DESC LIMIT 10",
    "SELECT d.b, sum(f.c), count(*) FROM f JOIN d ON f.a = d.a GROUP BY d.b ORDER BY 1",
    "SELECT f.c, e.b FROM f JOIN e ON f.b = e.a WHERE f.c < 100 ORDER BY 1, 2",
    "SELECT d.b, e.b, count(*) FROM f JOIN d ON f.a = d.a JOIN e ON f.b = e.a GROUP BY d.b, e.b ORDER BY 1, 2",
    // A join table that is built over another one.
    "SELECT count(*), sum(f.c) FROM f JOIN d ON f.a = d.a JOIN e ON d.b = e.a WHERE e.b < 5",
    // Join tables of outer joins, alone and beside one of an inner join.
    "SELECT count(*), count(d.a), sum(f.c) FROM f LEFT JOIN d ON f.a = d.a",
    "SELECT count(*), sum(e.b), sum(d.b) FROM f LEFT JOIN d ON f.a = d.a JOIN e ON f.b = e.a",
    "SELECT count(*), sum(e.b), sum(d.b) FROM f JOIN d ON f.a = d.a LEFT JOIN e ON f.b = e.a AND e.b < f.c",
    "SELECT count(*), sum(d.b), sum(e.b) FROM d FULL JOIN e ON d.b = e.a",
    // Every row with every row.
    "SELECT count(*), sum(d.a * e.b) FROM d, e",
    "SELECT count(*), sum(e.b) FROM d LEFT JOIN e ON d.a < e.a",
    // Join tables made from results.
    "SELECT count(*), sum(x.n) FROM f JOIN (SELECT b, count(*) AS n FROM d GROUP BY b) x ON f.b = x.b",
    "SELECT count(*) FROM f WHERE a IN (SELECT b FROM d) AND b NOT IN (SELECT a FROM e WHERE a < 9)",
    "SELECT count(*) FROM f WHERE c > (SELECT avg(c) FROM f g WHERE g.b = f.b)",
    "SELECT d.b, (SELECT max(e.b) FROM e WHERE e.a = d.b) FROM d ORDER BY d.a",
};

struct Answer {
  Status status;
  std::vector<std::string> rows;
};

Answer Execute(const Program& program, const Snapshot& snapshot, vm::SectionBackend* device, bool required = false) {
  Answer answer;
  vm::Executor executor(2);
  vm::RunOptions options;
  options.gpu = device;
  options.gpu_required = required;
  vm::RunStatistics statistics;
  const auto consume = [&](RowBatch&& batch) {
    for (size_t r = 0; r < batch.rows; ++r) {
      std::string line;
      for (const ColumnVector& c : batch.columns) {
        if (c.IsNull(r)) line += "NULL";
        AppendText(c, r, &line);
        line += ' ';
      }
      answer.rows.push_back(std::move(line));
    }
    return Status::Ok();
  };
  answer.status = executor.Run(program, snapshot, options, consume, &statistics);
  // Each section over a stored table is told once, wherever it ran.
  std::set<int> told;
  for (const vm::SectionStatistics& s : statistics.sections) EXPECT_TRUE(told.insert(s.section).second) << s.section;
  return answer;
}

class DeviceRunTest : public ::testing::Test {
 protected:
  /// Calls f(sql, program, rows of the host) for each query, and again as a grid of sorted tables if possible.
  template <class F>
  void ForEachQuery(F f) {
    int grids = 0;
    for (const JoinChoice choice : {JoinChoice::kAuto, JoinChoice::kGrid}) ForEachQuery(choice, &grids, f);
    EXPECT_GT(grids, 5);
  }
  template <class F>
  void ForEachQuery(JoinChoice choice, int* grids, F f) {
    for (const char* sql : kQueries) {
      Result<Compiled> compiled = Compile(sql, *snapshot_, {choice, true});
      if (choice == JoinChoice::kGrid) {
        if (!compiled.ok() || compiled->program->joins.empty()) continue;
        ++*grids;
      }
      ASSERT_TRUE(compiled.ok()) << sql << "\n" << compiled.status().message();
      const Answer host = Execute(*compiled->program, *snapshot_, nullptr);
      ASSERT_TRUE(host.status.ok()) << sql << "\n" << host.status.message();
      ASSERT_FALSE(host.rows.empty()) << sql;
      f(sql, *compiled->program, host.rows);
    }
  }
  std::shared_ptr<const Snapshot> snapshot_ = Tables();
};

TEST_F(DeviceRunTest, TheHostDoesWhatTheDeviceGivesUp) {
  int built = 0, puts = 0, runs = 0;
  ForEachQuery([&](const char* sql, const Program& program, const std::vector<std::string>& expected) {
    const auto sections = static_cast<int64_t>(program.sections.size());
    for (const bool outer_joins : {false, true}) {
      for (int64_t refused = -1; refused < sections; ++refused) {
        for (int good = 0; good <= 4; ++good) {
          Script script;
          script.good_calls = good;
          script.error = good % 2 == 0 ? Status(ErrorCode::kResource, "no room") : Unsupported("too strange");
          script.outer_joins = outer_joins;
          script.refused = refused;
          FalseDevice device(&script);
          const Answer answer = Execute(program, *snapshot_, &device);
          const std::string where = fmt::format("{}\nrefused {}, {} good calls", sql, refused, good);
          EXPECT_TRUE(answer.status.ok()) << where << "\n" << answer.status.message();
          EXPECT_EQ(answer.rows, expected) << where;
          EXPECT_EQ(script.wrong, "") << where;
          built += script.built;
          puts += script.puts;
          runs += script.runs;
        }
      }
    }
  });
  // All ways were taken.
  EXPECT_GT(built, 0);
  EXPECT_GT(puts, 0);
  EXPECT_GT(runs, 0);
}

TEST_F(DeviceRunTest, RowsOfADeviceKeepItsOrder) {
  // The device orders and leaves out what is after OFFSET + LIMIT; the host leaves out the first OFFSET. The order of
  // these numbers is the device's secret.
  Script script;
  script.rows = {5, 1, 4, 1, 3};
  const auto ask = [&](const char* sql) {
    Result<Compiled> compiled = Compile(sql, *snapshot_, {});
    EXPECT_TRUE(compiled.ok()) << sql << "\n" << compiled.status().message();
    FalseDevice device(&script);
    const Answer answer = Execute(*compiled->program, *snapshot_, &device);
    EXPECT_TRUE(answer.status.ok()) << sql << "\n" << answer.status.message();
    return answer.rows;
  };
  using Rows = std::vector<std::string>;
  EXPECT_EQ(ask("SELECT c FROM f ORDER BY c"), (Rows{"5 ", "1 ", "4 ", "1 ", "3 "}));
  EXPECT_EQ(ask("SELECT c FROM f ORDER BY c LIMIT 3 OFFSET 2"), (Rows{"4 ", "1 ", "3 "}));
  EXPECT_EQ(ask("SELECT c FROM f ORDER BY c OFFSET 4"), (Rows{"3 "}));
  EXPECT_EQ(ask("SELECT c FROM f LIMIT 2 OFFSET 1"), (Rows{"1 ", "4 "}));  // more than were asked for
  // Not the last section: its rows are kept.
  EXPECT_EQ(ask("SELECT c + 10 FROM (SELECT c FROM f ORDER BY c LIMIT 3 OFFSET 2) x"), (Rows{"14 ", "11 ", "13 "}));
  EXPECT_EQ(script.wrong, "");
}

TEST_F(DeviceRunTest, OtherErrorsEndTheRun) {
  ForEachQuery([&](const char* sql, const Program& program, const std::vector<std::string>&) {
    for (int good = 0; good <= 2; ++good) {
      Script script;
      script.good_calls = good;
      script.outer_joins = true;
      script.error = {ErrorCode::kDevice, "it burns"};
      FalseDevice device(&script);
      const Answer answer = Execute(program, *snapshot_, &device);
      EXPECT_EQ(answer.status.message(), "it burns") << sql;
      EXPECT_TRUE(answer.rows.empty()) << sql;
      EXPECT_EQ(script.wrong, "") << sql;
    }
  });
}

TEST_F(DeviceRunTest, ARequiredDeviceThatCannotIsAnError) {
  ForEachQuery([&](const char* sql, const Program& program, const std::vector<std::string>& expected) {
    Script script;
    script.outer_joins = true;
    script.error = {ErrorCode::kResource, "no room"};
    FalseDevice device(&script);
    EXPECT_EQ(Execute(program, *snapshot_, &device, true).status.message(), "no room") << sql;
    EXPECT_EQ(script.wrong, "") << sql;
    // A section that it refuses from the start; a join table may be built on the host all the same.
    for (size_t i = 0; i < program.sections.size(); ++i) {
      const Section& s = program.sections[i];
      const bool scans = s.source_kind == Section::Source::kTable || s.source_kind == Section::Source::kJoin;
      if (!scans || s.sink == Section::Sink::kJoin) continue;
      Script other;
      other.outer_joins = true;
      other.refused = static_cast<int64_t>(i);
      FalseDevice refusing(&other);
      EXPECT_EQ(Execute(program, *snapshot_, &refusing, true).status.message(), "this section") << sql;
      EXPECT_EQ(other.runs + other.builds + other.puts, 0) << sql;
    }
    EXPECT_FALSE(expected.empty());
  });
}

TEST_F(DeviceRunTest, TextWithManyEntriesIsReadOnTheHost) {
  ColumnVector names, numbers = Integers(3000, [](int64_t i) { return i; });
  names.type = SqlType::Of(TypeId::kText);
  for (int i = 0; i < 3000; ++i) names.Append(Value::Text(fmt::format("name {}", i)));
  std::vector<ColumnVector> columns;
  columns.push_back(std::move(names));
  columns.push_back(std::move(numbers));
  TableInfo table = *Table(7, "t", std::move(columns));
  for (const uint64_t distinct : {uint64_t{3000}, uint64_t{10'000'000}}) {
    table.statistics[0].distinct = distinct;
    const std::shared_ptr<const Snapshot> snapshot = MakeSnapshot({std::make_shared<TableInfo>(table)});
    for (const std::string sql :
         {"SELECT DISTINCT a FROM t WHERE b < 5", "SELECT a FROM t WHERE b < 5",
          "SELECT a FROM t WHERE b < 5 ORDER BY a", "SELECT a FROM t x, (SELECT max(b) AS m FROM t) y WHERE b < m",
          "SELECT count(*) FROM t WHERE a LIKE 'name 1%'"}) {
      Result<Compiled> compiled = Compile(sql, *snapshot, {});
      ASSERT_TRUE(compiled.ok()) << compiled.status().message();
      for (const bool required : {false, true}) {
        Script script;
        script.error = {ErrorCode::kDevice, "asked"};
        FalseDevice device(&script);
        const Answer answer = Execute(*compiled->program, *snapshot, &device, required);
        // Texts that are only handed on are not read, and what a pattern asks of entries is not asked of rows.
        const bool on_device = required || distinct == 3000 || sql.find("DISTINCT") == std::string::npos;
        EXPECT_EQ(script.runs, on_device ? 1 : 0) << sql << distinct;
        EXPECT_EQ(answer.status.ok(), !on_device) << sql << distinct;
      }
    }
  }
}

/// What the device may leave out of the first section of groups: "column: low to high", with "" for no bound.
TEST_F(DeviceRunTest, HavingTellsWhichGroupsNobodyReads) {
  const auto unwanted = [&](const char* sql) {
    Result<Compiled> compiled = Compile(sql, *snapshot_, {});
    EXPECT_TRUE(compiled.ok()) << sql << "\n" << compiled.status().message();
    const Program& program = *compiled->program;
    size_t number = 0;
    while (program.sections[number].sink != Section::Sink::kGroups) ++number;
    std::vector<std::string> out;
    const auto bound = [](int128_t v) {
      return v == kInt128Min || v == kInt128Max ? std::string() : std::to_string(Low64(v));
    };
    for (const vm::UnwantedGroups& u : vm::FindUnwanted(program, static_cast<int>(number)))
      out.push_back(fmt::format("{}: {} to {}", u.column, bound(u.low), bound(u.high)));
    return out;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(unwanted("SELECT b FROM f GROUP BY b HAVING count(*) > 3"), Texts{"1:  to 3"});
  EXPECT_EQ(unwanted("SELECT b FROM f GROUP BY b HAVING max(c) >= 3 AND min(c) < 9"), (Texts{"1:  to 2", "2: 9 to "}));
  EXPECT_EQ(unwanted("SELECT b FROM f GROUP BY b HAVING max(c) <= 3"), Texts{"1: 4 to "});
  EXPECT_EQ(unwanted("SELECT b, n FROM (SELECT b, count(*) AS n FROM f GROUP BY b) x WHERE n > 7"), Texts{"1:  to 7"});
  // A sum that BIGINT does not hold is an error.
  EXPECT_EQ(unwanted("SELECT b FROM f GROUP BY b HAVING sum(a) > 3"), Texts{"1: -9223372036854775808 to 3"});
  EXPECT_EQ(unwanted("SELECT b FROM f GROUP BY b HAVING sum(a) < 3"), Texts{"1: 3 to 9223372036854775807"});
  EXPECT_EQ(unwanted("SELECT b FROM f GROUP BY b HAVING sum(a) > 3 AND sum(a) < 9"),
            (Texts{"1: -9223372036854775808 to 3", "1: 9 to 9223372036854775807"}));
  // Its group must be there to say so, whatever other columns say; what was said before counts.
  EXPECT_EQ(unwanted("SELECT b FROM f GROUP BY b HAVING sum(a) > 3 AND max(c) > 5"),
            Texts{"1: -9223372036854775808 to 3"});
  EXPECT_EQ(unwanted("SELECT b FROM f GROUP BY b HAVING max(c) > 5 AND sum(a) > 3"),
            (Texts{"1:  to 5", "2: -9223372036854775808 to 3"}));
  // What is no comparison of a value as it is ends the list: after it, a row may raise an error.
  EXPECT_EQ(unwanted("SELECT b FROM f GROUP BY b HAVING count(*) > 3 AND 10 / count(a) > 1 AND max(c) > 5"),
            Texts{"1:  to 3"});
  EXPECT_EQ(unwanted("SELECT b FROM f GROUP BY b HAVING max(c) > 5 OR count(*) > 3"), Texts{});
  EXPECT_EQ(unwanted("SELECT b FROM f GROUP BY b HAVING avg(c) > 5"), Texts{});
  EXPECT_EQ(unwanted("SELECT b, count(*) FROM f GROUP BY b"), Texts{});
}

TEST_F(DeviceRunTest, StrategiesOfOneSideOnly) {
  const auto compile = [&](const char* sql, JoinChoice choice) {
    Result<Compiled> compiled = Compile(sql, *snapshot_, {choice, true});
    EXPECT_TRUE(compiled.ok()) << sql << "\n" << compiled.status().message();
    return std::move(*compiled->program);
  };
  const std::string cannot = " cannot run this query: ";
  // The loop is the host's.
  const Program loop = compile("SELECT count(*) FROM f LEFT JOIN d ON f.a = d.a", JoinChoice::kLoop);
  Script script;
  script.outer_joins = true;
  script.error = {ErrorCode::kDevice, "asked"};
  FalseDevice device(&script);
  EXPECT_TRUE(Execute(loop, *snapshot_, &device).status.ok());
  EXPECT_EQ(script.runs + script.builds + script.puts, 0);
  Status refused = Execute(loop, *snapshot_, &device, true).status;
  EXPECT_EQ(refused.code(), ErrorCode::kUnsupported);
  EXPECT_EQ(refused.message(), "join strategy \"loop\"" + cannot + "it runs on the host only");
  EXPECT_EQ(refused.hint(), "Use SET join_strategy = auto.");
  // dp is the device's: refused before anything runs, or when the device gives up.
  const Program dp = compile("SELECT count(*) FROM d, e WHERE d.a < e.a", JoinChoice::kDp);
  refused = Execute(dp, *snapshot_, nullptr).status;
  EXPECT_EQ(refused.code(), ErrorCode::kUnsupported);
  EXPECT_EQ(refused.message(), "join strategy \"dp\"" + cannot + "it needs a GPU");
  for (size_t i = 0; i < dp.sections.size(); ++i) {
    if (dp.sections[i].source_kind != Section::Source::kJoin) continue;
    Script other;
    other.refused = static_cast<int64_t>(i);
    FalseDevice refusing(&other);
    EXPECT_EQ(Execute(dp, *snapshot_, &refusing).status.message(), "join strategy \"dp\"" + cannot + "this section");
    EXPECT_EQ(other.runs + other.builds + other.puts, 0);
  }
  Script weak;
  weak.good_calls = 9;
  weak.error = {ErrorCode::kResource, "no room"};
  FalseDevice giving_up(&weak);
  EXPECT_EQ(Execute(dp, *snapshot_, &giving_up).status.message(), "join strategy \"dp\"" + cannot + "no room");
  EXPECT_EQ(weak.runs, 1);
  EXPECT_EQ(weak.wrong, "");
}

}  // namespace
}  // namespace tessera::test
