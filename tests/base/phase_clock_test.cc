// Phases of a statement: they never overlap, and together they are the time since the clock began.

#include "base/phase_clock.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/version.h"
#include "shell/rank_statistics_text.h"
#include "shell/statement_name.h"

namespace tessera {
namespace {

void Pass(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

TEST(PhaseClock, ScopesPauseEachOtherAndAddUp) {
  const auto start = Clock::now();
  PhaseClock clock(Phase::kCompile);
  clock.Reserve(2, 0);
  Pass(2);
  {
    const SectionScope section(1);
    const PhaseScope execute(Phase::kExecute);
    Pass(3);
    {
      const PhaseScope wait(Phase::kWait);
      const SectionScope fed(0);
      Pass(5);
    }
    Pass(3);
  }
  const Account all = clock.All();
  const double total = MillisecondsSince(start);
  EXPECT_GE(all.Milliseconds(Phase::kCompile), 2);
  EXPECT_GE(all.Milliseconds(Phase::kExecute), 6);
  EXPECT_GE(all.Milliseconds(Phase::kWait), 5);
  EXPECT_LE(all.Milliseconds(), total);
  EXPECT_GT(all.Milliseconds(), total - 0.05 * total - 0.05);
  EXPECT_EQ(all.BusyMilliseconds(), all.Milliseconds() - all.Milliseconds(Phase::kWait));
  // Each nanosecond belongs to one section, or to none.
  EXPECT_GE(clock.Of(0).Milliseconds(Phase::kWait), 5);
  EXPECT_EQ(clock.Of(0).Milliseconds(), clock.Of(0).Milliseconds(Phase::kWait));
  EXPECT_GE(clock.Of(1).Milliseconds(Phase::kExecute), 6);
  clock.Reserve(2, 0);  // keeps what was measured
  Account sum = clock.Of(0);
  sum.Add(clock.Of(1));
  const Account none = clock.Of(-1), now = clock.All();
  sum.Add(none);
  EXPECT_GE(now.Milliseconds(), sum.Milliseconds());
  EXPECT_LT(now.Milliseconds(), sum.Milliseconds() + 1);
}

TEST(PhaseClock, AnExceptionEndsAPhase) {
  PhaseClock clock(Phase::kExecute);
  try {
    const PhaseScope phase(Phase::kRead);
    throw 1;
  } catch (int) {
  }
  const double read = clock.All().Milliseconds(Phase::kRead);
  Pass(1);
  EXPECT_EQ(clock.All().Milliseconds(Phase::kRead), read);
}

TEST(PhaseClock, IsOfItsThreadAndOfTheInnermostStatement) {
  EXPECT_EQ(PhaseClock::current(), nullptr);
  CountSent(1, 100);  // it is not asked for
  PhaseClock outer(Phase::kExecute);
  {
    PhaseClock inner(Phase::kExecute);
    EXPECT_EQ(PhaseClock::current(), &inner);
    const PhaseScope phase(Phase::kPrint);
    std::thread([] {
      EXPECT_EQ(PhaseClock::current(), nullptr);
      const PhaseScope of_nobody(Phase::kRead);
    }).join();
    EXPECT_EQ(inner.All().nanoseconds[static_cast<size_t>(Phase::kRead)], 0);
  }
  EXPECT_EQ(PhaseClock::current(), &outer);
  EXPECT_EQ(outer.All().nanoseconds[static_cast<size_t>(Phase::kPrint)], 0);
}

TEST(PhaseClock, TrafficBelongsToTheSection) {
  PhaseClock clock(Phase::kExecute);
  clock.Reserve(1, 3);
  CountSent(1, 5);
  {
    const SectionScope section(0);
    CountSent(1, 7);
    CountReceived(2, 11);
    CountReceived(9, 13);  // there is no such rank
  }
  EXPECT_EQ(clock.Of(0).traffic[1].sent, 7u);
  EXPECT_EQ(clock.All().traffic[1].sent, 12u);
  EXPECT_EQ(clock.All().AllTraffic().received, 11u);
}

TEST(PhaseClock, SpansAreTheSameTime) {
  PhaseClock clock(Phase::kCompile);
  EXPECT_TRUE(clock.spans().empty());
  clock.KeepSpans();
  for (int i = 0; i < 3; ++i) {
    const PhaseScope phase(Phase::kExecute);
    Pass(1);
  }
  const Account all = clock.All();
  int64_t sum = 0, end = 0;
  for (const PhaseSpan& s : clock.spans()) {
    EXPECT_LT(s.begin, s.end);
    EXPECT_TRUE(end == 0 || s.begin == end);
    end = s.end;
    sum += s.end - s.begin;
  }
  EXPECT_NEAR(static_cast<double>(sum) * 1e-6, all.Milliseconds(), 1e-9);
  EXPECT_GE(clock.spans().size(), 6u);
}

vm::RunStatistics OneRank() {
  vm::RunStatistics s;
  s.sections.resize(2);
  s.sections[1].section = 1;
  s.sections[1].label = "scan \"a, b\"";
  vm::RankStatistics& rank = s.ranks.emplace_back();
  rank.host = "a\\b";
  rank.device = "GPU, large";
  rank.threads = 3;
  rank.account.nanoseconds[static_cast<size_t>(Phase::kWait)] = 1'500'000;
  rank.account.traffic = {{0, 0}, {20, 0}, {30, 40}};
  rank.sections = {{0, 0, 0, 0, 0, {}}, {1, 4, 2, 0, 0, rank.account}};
  return s;
}

TEST(RankStatisticsText, IsCsvWithOneLineForEachRankAndSection) {
  const std::string text = RankStatisticsText(StatisticsFormat::kCsv, {7, "q1", 2}, OneRank());
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;  // section 0 has done nothing
  EXPECT_EQ(text.substr(0, text.find(kVersion)), "7,q1,2,a\\b,\"GPU, large\",3,");
  EXPECT_NE(text.find(",,,0,0,0,0,0,0,50,40,1:20 2:30,2:40,"), std::string::npos) << text;
  EXPECT_NE(text.find(",1,\"scan \"\"a, b\"\"\",0,4,2,"), std::string::npos) << text;
  const std::string header = RankStatisticsHeader(StatisticsFormat::kCsv);
  const std::string line = text.substr(0, text.find('\n'));
  // (One value of the line has a comma in it.)
  EXPECT_EQ(std::count(header.begin(), header.end(), ',') + 1, std::count(line.begin(), line.end(), ','));
}

TEST(RankStatisticsText, IsJson) {
  const std::string text = RankStatisticsText(StatisticsFormat::kJson, {7, "q\t1", 2}, OneRank());
  EXPECT_TRUE(text.starts_with(R"({"statement":7,"name":"q\t1","run":2,"host":"a\\b","device":)")) << text;
  EXPECT_NE(text.find(R"("section":null,"label":"",)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("label":"scan \"a, b\"",)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("sent_to":{"1":20,"2":30},"received_from":{"2":40},)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("wait_ms":1.500,)"), std::string::npos) << text;
}

TEST(StatementName, IsThatOfTheLastComment) {
  std::string name;
  NameInComment("", &name);
  NameInComment(";\n-- a query: name: x\n  name: y\n", &name);
  EXPECT_EQ(name, "");
  NameInComment("; --name: q1 \r\n\t--   name:  two words\n-- more\n", &name);
  EXPECT_EQ(name, "two words");
  EXPECT_EQ(NameOfScript(""), "");
  EXPECT_EQ(NameOfScript("a/b.c/q1.1.sql"), "q1.1");
  EXPECT_EQ(NameOfScript(".sql"), ".sql");
}

}  // namespace
}  // namespace tessera
