// What sections are said to do: sections made by hand, and those of compiled joins of every kind.

#include "vm/program/section_traits.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/compiler.h"
#include "compiler/plan/plan_options.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/types.h"
#include "tests/compiler/bind_fixture.h"
#include "vm/program/program.h"

namespace tessera {
namespace {

using vm::Instruction;
using vm::Opcode;
using vm::Operand;
using vm::ProbeForm;
using vm::ProbeTrait;
using vm::Program;
using vm::ProgramTraits;
using vm::Section;
using vm::SectionTraits;

const char* NameOf(ProbeForm form) {
  switch (form) {
    case ProbeForm::kLook:
      return "look";
    case ProbeForm::kInnerLoop:
      return "inner loop";
    case ProbeForm::kSearch:
      return "search";
    case ProbeForm::kOuterLook:
      return "outer look";
    case ProbeForm::kOuterLoop:
      return "outer loop";
    case ProbeForm::kOuterTurns:
      return "outer turns";
    case ProbeForm::kOther:
      return "other";
  }
  return "?";
}

// ---- By hand --------------------------------------------------------------------------------------------------------

/// A section over a stored table of three columns, which probes join tables of one key (t0, t1) and of none (t2). Each has
/// a payload of one column.
class Hand {
 public:
  Hand() {
    const SqlType bigint = SqlType::Of(TypeId::kBigint);
    program_.tables = {{1, "r"}, {2, "s"}};
    for (int join = 0; join < 3; ++join) {
      Section b;
      b.source_kind = Section::Source::kTable;
      b.source = 1;
      b.sink = Section::Sink::kJoin;
      b.join = join;
      b.keys = join < 2 ? 1 : 0;
      for (int c = 0; c < 2; ++c) {
        b.slots.push_back({c, bigint, -1});
        b.registers.push_back(bigint);
        b.columns.push_back(bigint);
        b.code.push_back({Opcode::Load, 0, Operand::Slot(c).Pack(), 0, 0});
        b.code.push_back({Opcode::Store, 0, c, 0, 0});
      }
      b.code.push_back({Opcode::Build, 0, 0, 0, 0});
      b.code.push_back({Opcode::End, 0, 0, 0, 0});
      program_.sections.push_back(b);
      program_.joins.push_back({false, join, vm::JoinStrategy::kHash, -1});
    }
    section_.source_kind = Section::Source::kTable;
    section_.slots = {{0, bigint, -1}, {1, bigint, -1}, {2, SqlType::Decimal(30, 2), -1}};
    section_.registers = {bigint, bigint, bigint, SqlType::Decimal(30, 2)};
    section_.columns = {bigint};
    section_.masks = 4;
  }
  Hand& Op(Opcode op, int p1 = 0, int32_t p2 = 0, int32_t p3 = 0) {
    section_.code.push_back({op, static_cast<uint16_t>(p1), p2, p3, 0});
    return *this;
  }
  Hand& Op(Opcode op, Operand o) { return Op(op, 0, o.Pack()); }
  /// Looks column c0 up in t0 or t1, or meets all rows of t2.
  Hand& Probe(Opcode op, int join) { return Op(op, join, join < 2 ? Operand::Slot(0).Pack() : 0, join < 2 ? 1 : 0); }
  /// Emits a payload.
  Hand& Emit(int join = 0) {
    return Op(Opcode::Load, Operand::Payload(join, 0)).Op(Opcode::Store, 0, 0).Op(Opcode::Emit);
  }
  /// A SkipIfNone to the instruction after the one that comes next.
  Hand& Skip() { return Op(Opcode::SkipIfNone, 0, static_cast<int32_t>(section_.code.size()) + 1); }
  Section& section() { return section_; }
  Program& program() { return program_; }

  /// An End is added. Verified.
  const Program& Made() {
    section_.code.push_back({Opcode::End, 0, 0, 0, 0});
    program_.sections.push_back(section_);
    program_.columns = {{"c", SqlType::Of(TypeId::kBigint)}};
    const Status status = Verify(program_);
    EXPECT_TRUE(status.ok()) << status.message();
    return program_;
  }
  SectionTraits Traits() {
    const Program& p = Made();
    return TraitsOf(p, p.sections.back());
  }
  /// The form of the only probe.
  std::string Form() {
    const SectionTraits traits = Traits();
    return traits.probes.size() == 1 ? NameOf(traits.probes[0].form) : "not one probe";
  }

 private:
  Program program_;
  Section section_;
};

TEST(SectionTraits, FormsOfProbes) {
  EXPECT_EQ(Hand().Probe(Opcode::Probe, 0).Emit().Form(), "look");
  EXPECT_EQ(Hand().Probe(Opcode::ProbeOuter, 0).Emit().Form(), "outer look");
  const auto loop = [](Opcode probe, Opcode next) {
    Hand h;
    h.Probe(probe, 0).Op(Opcode::MaskSave, 1).Emit().Op(next, 0, 2, 1);
    return h.Form();
  };
  EXPECT_EQ(loop(Opcode::Probe, Opcode::Next), "inner loop");
  EXPECT_EQ(loop(Opcode::ProbeOuter, Opcode::Next), "outer loop");
  EXPECT_EQ(loop(Opcode::ProbeOuter, Opcode::NextOuter), "outer turns");
}

TEST(SectionTraits, LoopsWhoseMaskIsUsed) {
  const auto body = [](Opcode op, int mask) {
    Hand h;
    h.Op(Opcode::MaskSave, 2).Probe(Opcode::Probe, 0).Op(Opcode::MaskSave, 1).Op(op, mask).Emit();
    h.Op(Opcode::Next, 0, 3, 1);
    return h.Form();
  };
  // Any use of the loop's own mask counts, and no use of another.
  for (const Opcode op : {Opcode::MaskSave, Opcode::MaskLoad, Opcode::MaskClear, Opcode::MaskOr, Opcode::MaskAndNot}) {
    EXPECT_EQ(body(op, 1), "search") << Info(op).name;
    EXPECT_EQ(body(op, 2), "inner loop") << Info(op).name;
  }
}

TEST(SectionTraits, LoopsOfAnotherForm) {
  Hand deeper;  // it goes to a point after another instruction
  deeper.Probe(Opcode::Probe, 0).Op(Opcode::MaskSave, 1).Op(Opcode::MaskSave, 2).Emit().Op(Opcode::Next, 0, 3, 1);
  EXPECT_EQ(deeper.Form(), "other");
  Hand of_another;  // it restores a mask that was not saved right after the probe
  of_another.Op(Opcode::MaskSave, 2).Probe(Opcode::Probe, 0).Op(Opcode::MaskSave, 1).Emit().Op(Opcode::Next, 0, 3, 2);
  EXPECT_EQ(of_another.Form(), "other");
  Hand unsaved;
  unsaved.Op(Opcode::MaskSave, 1).Probe(Opcode::Probe, 0).Emit().Op(Opcode::Next, 0, 2, 1);
  EXPECT_EQ(unsaved.Form(), "other");
}

TEST(SectionTraits, ProbesInTheirOrder) {
  Hand h;
  h.Probe(Opcode::Probe, 1).Skip().Probe(Opcode::Probe, 2).Op(Opcode::MaskSave, 0).Emit(2).Op(Opcode::Next, 2, 4, 0);
  h.program().joins[0].strategy = vm::JoinStrategy::kLoop;
  const SectionTraits traits = h.Traits();
  ASSERT_EQ(traits.probes.size(), 2u);
  const ProbeTrait &first = traits.probes[0], &second = traits.probes[1];
  EXPECT_EQ(first.join, 1);
  EXPECT_EQ(first.at, 0u);
  EXPECT_EQ(first.keys, 1);
  EXPECT_EQ(first.key.Pack(), Operand::Slot(0).Pack());
  EXPECT_FALSE(first.HasLoop());
  EXPECT_EQ(first.counted, 1u);
  EXPECT_EQ(second.join, 2);
  EXPECT_EQ(second.at, 2u);
  EXPECT_EQ(second.keys, 0);
  EXPECT_EQ(second.next, 7u);
  EXPECT_EQ(second.counted, vm::kNoInstruction);
  EXPECT_EQ(traits.Probe(1), &first);
  EXPECT_EQ(traits.Probe(2), &second);
  EXPECT_EQ(traits.Probe(0), nullptr);
  EXPECT_TRUE(traits.ComparesPairs());
  EXPECT_TRUE(traits.HasLoops());
  EXPECT_EQ(traits.grid, -1);
  EXPECT_TRUE(traits.repeats);
  EXPECT_EQ(traits.feeds, 1);
  EXPECT_EQ(traits.feed, 6u);
}

TEST(SectionTraits, WhereRowsAreCounted) {
  Hand h;
  h.Skip().Probe(Opcode::Probe, 0).Probe(Opcode::Probe, 1).Skip().Skip().Emit();
  const SectionTraits traits = h.Traits();
  EXPECT_EQ(traits.probes[0].counted, vm::kNoInstruction);  // the next probe comes before
  EXPECT_EQ(traits.probes[1].counted, 3u);
}

TEST(SectionTraits, Grids) {
  for (const vm::JoinStrategy s :
       {vm::JoinStrategy::kHash, vm::JoinStrategy::kLoop, vm::JoinStrategy::kGrid, vm::JoinStrategy::kDp}) {
    Hand h;
    h.Probe(Opcode::Probe, 2).Op(Opcode::MaskSave, 0).Emit(2).Op(Opcode::Next, 2, 2, 0);
    h.program().joins[2].strategy = s;
    EXPECT_EQ(h.Traits().grid, vm::Info(s).cuts ? 2 : -1) << vm::Info(s).word;
  }
}

TEST(SectionTraits, FeedsOfTheSink) {
  Hand behind;  // the loop ends before the sink
  behind.Probe(Opcode::Probe, 0).Op(Opcode::MaskSave, 1).Op(Opcode::Next, 0, 2, 1).Emit();
  EXPECT_FALSE(behind.Traits().repeats);
  Hand twice;
  const SectionTraits traits = twice.Probe(Opcode::Probe, 0).Emit().Emit().Traits();
  EXPECT_EQ(traits.feeds, 2);
  EXPECT_EQ(traits.feed, 3u);
  EXPECT_FALSE(traits.repeats);

  Hand groups;
  groups.section().sink = Section::Sink::kGroups;
  groups.section().aggregates = {{Opcode::CountRows, SqlType::Of(TypeId::kBigint)}};
  groups.section().keys = 1;
  groups.section().columns = {SqlType::Of(TypeId::kBigint), SqlType::Of(TypeId::kBigint)};
  groups.Op(Opcode::Group, 0, Operand::Slot(1).Pack(), 1).Op(Opcode::CountRows);
  Program& p = groups.program();
  groups.section().code.push_back({Opcode::End, 0, 0, 0, 0});
  p.sections.push_back(groups.section());
  const SectionTraits grouped = TraitsOf(p, p.sections.back());
  EXPECT_EQ(grouped.feed, 0u);
  EXPECT_EQ(grouped.feeds, 1);
  EXPECT_TRUE(grouped.takes_all);
  p.sections.back().keys = 0;  // all rows are one group
  EXPECT_EQ(TraitsOf(p, p.sections.back()).feeds, 0);
}

TEST(SectionTraits, WhatTheHeadDoes) {
  const auto with_predicates = [](Hand* h) {
    for (int i = 0; i < 3; ++i) {
      vm::Predicate p;
      p.kind = vm::Predicate::Kind::kIsNotNull;
      p.slot = i % 2;
      h->section().predicates.push_back(p);
    }
  };
  Hand h;
  with_predicates(&h);
  h.Op(Opcode::Filter, 2).Skip().Op(Opcode::Filter, 0).Op(Opcode::Load, Operand::Slot(1)).Op(Opcode::Store, 0, 0);
  const SectionTraits traits = h.Op(Opcode::Filter, 1).Op(Opcode::Emit).Traits();
  EXPECT_EQ(traits.head_filters, (std::vector<size_t>{2, 0}));
  EXPECT_FALSE(traits.takes_all);
  EXPECT_FALSE(traits.only_moves);
  EXPECT_TRUE(traits.only_filters);
  EXPECT_TRUE(traits.probes.empty());

  Hand plain;
  const SectionTraits moves =
      plain.Op(Opcode::Load, Operand::Slot(1)).Op(Opcode::Store, 0, 0).Op(Opcode::Emit).Traits();
  EXPECT_TRUE(moves.takes_all && moves.only_moves && moves.only_filters);
  EXPECT_FALSE(moves.numbers_rows);

  Hand computed;
  computed.Op(Opcode::Load, Operand::Slot(1)).Op(Opcode::AbsI).Op(Opcode::Store, 0, 0).Op(Opcode::Emit);
  const SectionTraits fails = computed.Traits();
  EXPECT_TRUE(fails.takes_all);
  EXPECT_FALSE(fails.only_moves || fails.only_filters);

  Hand probed;
  EXPECT_FALSE(probed.Probe(Opcode::ProbeOuter, 0).Emit().Traits().takes_all);
}

TEST(SectionTraits, SlotsAndRegisters) {
  Hand h;
  h.section().predicates.push_back({});  // reads the codes of c0, and no value
  h.section().predicates[0].kind = vm::Predicate::Kind::kIsNotNull;
  h.Op(Opcode::Filter, 0);
  h.Op(Opcode::Load, Operand::Slot(1)).Op(Opcode::Store, 0, 1);        // r1 copies c1
  h.Op(Opcode::LoadW, Operand::Slot(2)).Op(Opcode::StoreW, 0, 3);      // r3 copies c2, of 128 bits
  h.Op(Opcode::Probe, 0, Operand::Register(1).Pack(), 1);              // by what is in c1
  h.Op(Opcode::Load, Operand::Payload(0, 0)).Op(Opcode::Store, 0, 2);  // r2 copies t0.0
  h.Op(Opcode::Load, Operand::Register(2)).Op(Opcode::Store, 0, 0).Op(Opcode::Emit);
  const SectionTraits traits = h.Traits();
  EXPECT_EQ(traits.reads_slot, (std::vector<bool>{false, true, true}));
  EXPECT_EQ(traits.computes_slot, (std::vector<bool>{false, true, true}));
  EXPECT_EQ(traits.SlotOf(1), 1);
  EXPECT_EQ(traits.SlotOf(3), -1);
  ASSERT_TRUE(traits.copies[3]);
  EXPECT_TRUE(traits.copies[3]->wide);
  EXPECT_EQ(traits.copies[3]->of.Pack(), Operand::Slot(2).Pack());
  EXPECT_EQ(traits.SlotOf(2), -1);
  ASSERT_TRUE(traits.copies[2]);
  EXPECT_EQ(traits.copies[2]->of.Pack(), Operand::Payload(0, 0).Pack());
  EXPECT_FALSE(traits.copies[0]);  // a copy of a register
  const ProbeTrait& probe = traits.probes[0];
  EXPECT_EQ(traits.SlotOfKey(probe.key, probe.keys, 0), 1);

  Hand direct;  // only the probe reads c0
  const SectionTraits keys = direct.Probe(Opcode::Probe, 0).Emit().Traits();
  EXPECT_EQ(keys.reads_slot, (std::vector<bool>{true, false, false}));
  EXPECT_EQ(keys.computes_slot, (std::vector<bool>{false, false, false}));
  EXPECT_EQ(keys.SlotOfKey(keys.probes[0].key, 1, 0), 0);

  Hand twice;  // what a register holds may be of either
  twice.Op(Opcode::Load, Operand::Slot(0)).Op(Opcode::Store, 0, 0).Op(Opcode::Load, Operand::Slot(0));
  EXPECT_FALSE(twice.Op(Opcode::Store, 0, 0).Op(Opcode::Emit).Traits().copies[0]);
  Hand later;  // what stands between may have changed it
  later.Op(Opcode::Load, Operand::Slot(0)).Op(Opcode::AbsI).Op(Opcode::Store, 0, 0);
  EXPECT_FALSE(later.Op(Opcode::Emit).Traits().copies[0]);
}

TEST(SectionTraits, RowsThatAreGone) {
  const auto gone = [](Hand* h) {
    const Program& p = h->Made();
    const Section& s = p.sections.back();
    return DropsForGood(s, TraitsOf(p, s).probes[0]);
  };
  Hand plain;
  EXPECT_TRUE(gone(&plain.Probe(Opcode::Probe, 0).Emit()));
  Hand loop;
  EXPECT_TRUE(gone(&loop.Probe(Opcode::Probe, 0).Op(Opcode::MaskSave, 1).Emit().Op(Opcode::Next, 0, 2, 1)));
  Hand anti;
  anti.Op(Opcode::MaskSave, 0).Probe(Opcode::Probe, 0).Op(Opcode::MaskSave, 1).Op(Opcode::MaskLoad, 0);
  EXPECT_FALSE(gone(
      &anti.Op(Opcode::MaskAndNot, 1).Op(Opcode::Load, Operand::Slot(0)).Op(Opcode::Store, 0, 0).Op(Opcode::Emit)));
  Hand anew;  // the mask from before is set again before it is read
  anew.Op(Opcode::MaskSave, 0).Probe(Opcode::Probe, 0).Op(Opcode::MaskSave, 0).Op(Opcode::MaskLoad, 0).Emit();
  EXPECT_TRUE(gone(&anew));
}

// ---- Programs -------------------------------------------------------------------------------------------------------

/// Section 3 makes rows by key, section 4 probes t0 with them; t0 is made by key, too.
Program Exchanged() {
  Hand h;
  h.Op(Opcode::Load, Operand::Slot(0)).Op(Opcode::Store, 0, 0).Op(Opcode::Emit);
  Program p = h.Made();
  p.sections[0].placement.by_key = true;
  p.sections[3].placement.by_key = true;
  p.sections[3].keys = 1;
  Hand reader;
  reader.section().source_kind = Section::Source::kSection;
  reader.section().source = 3;
  reader.section().slots.resize(1);
  reader.Probe(Opcode::Probe, 0).Op(Opcode::MaskSave, 0).Emit().Op(Opcode::Next, 0, 2, 0).Op(Opcode::End);
  p.sections.push_back(reader.section());
  const Status status = Verify(p);
  EXPECT_TRUE(status.ok()) << status.message();
  return p;
}

TEST(ProgramTraits, WhoUsesAJoinTable) {
  const Program p = Exchanged();
  const ProgramTraits traits = TraitsOf(p);
  EXPECT_EQ(traits.join(0).probers, std::vector<int>{4});
  EXPECT_TRUE(traits.join(0).scanners.empty());
  EXPECT_TRUE(traits.join(0).has_loop);
  EXPECT_FALSE(traits.join(0).has_outer);
  EXPECT_TRUE(traits.join(1).probers.empty());
  EXPECT_EQ(&traits.Of(p, p.sections[4]), &traits.section(4));
  EXPECT_TRUE(UsesJoin(p.sections[4], traits.section(4), 0));
  EXPECT_FALSE(UsesJoin(p.sections[4], traits.section(4), 1));

  Program scanned = p;
  scanned.sections[3].source_kind = Section::Source::kJoin;
  scanned.sections[3].source = 0;
  const ProgramTraits of_scanned = TraitsOf(scanned);
  EXPECT_EQ(of_scanned.join(0).scanners, std::vector<int>{3});
  EXPECT_TRUE(UsesJoin(scanned.sections[3], of_scanned.section(3), 0));
}

TEST(ProgramTraits, RowsThatAreExchangedForAJoin) {
  const auto prober = [](auto change) {
    Program p = Exchanged();
    change(&p);
    const ProgramTraits traits = TraitsOf(p);
    EXPECT_EQ(traits.probed_with[3], traits.join(0).exchanged_prober < 0 ? -1 : 0);
    return traits.join(0).exchanged_prober;
  };
  const ProgramTraits traits = TraitsOf(Exchanged());
  EXPECT_EQ(traits.join(0).exchanged_prober, 4);
  EXPECT_EQ(traits.join(1).exchanged_prober, -1);
  EXPECT_TRUE(traits.join(0).inner);
  EXPECT_EQ(traits.probed_with, (std::vector<int>{-1, -1, -1, 0, -1}));
  EXPECT_EQ(prober([](Program*) {}), 4);
  EXPECT_EQ(prober([](Program* p) { p->sections[0].placement.by_key = false; }), -1);  // the table is not exchanged
  EXPECT_EQ(prober([](Program* p) { p->sections[3].placement.by_key = false; }), -1);  // nor are the rows
  EXPECT_EQ(prober([](Program* p) { p->sections.push_back(p->sections[4]); }), -1);    // two probe it
  EXPECT_EQ(prober([](Program* p) {                                                    // another section reads the rows
              Section reader = p->sections[4];
              reader.code = {{Opcode::Load, 0, Operand::Slot(0).Pack(), 0, 0},
                             {Opcode::Store, 0, 0, 0, 0},
                             {Opcode::Emit, 0, 0, 0, 0},
                             {Opcode::End, 0, 0, 0, 0}};
              p->sections.push_back(reader);
            }),
            -1);
  EXPECT_EQ(prober([](Program* p) {  // another table is probed first
              std::vector<Instruction>& code = p->sections[4].code;
              code.insert(code.begin(), {Opcode::Probe, 1, Operand::Slot(0).Pack(), 1, 0});
              for (Instruction& in : code) in.p2 += in.op == Opcode::Next ? 1 : 0;
            }),
            -1);
}

// ---- Compiled -------------------------------------------------------------------------------------------------------

class CompiledTraits : public BindTest {
 protected:
  CompiledTraits() {
    AddTable("CREATE TABLE a (k INTEGER, x INTEGER)");
    AddTable("CREATE TABLE b (k INTEGER, x INTEGER)");
    AddTable("CREATE TABLE p (id INTEGER PRIMARY KEY, x INTEGER)");
    for (auto& table : snapshot_.tables) {
      auto larger = std::make_shared<TableInfo>(*table);
      larger->rows = table->schema.name == "a" ? 100000 : 1000;
      for (ColumnStatistics& s : larger->statistics) s.distinct = 500;
      table = std::move(larger);
    }
  }

  /// The forms of all probes in the order of sections, those of grids and of comparisons without keys named so.
  std::string Forms(const std::string& sql, JoinChoice join = JoinChoice::kAuto) {
    PlanOptions options;
    options.join = join;
    const Result<Compiled> compiled = Compile(sql, snapshot_, options);
    if (!compiled.ok()) return compiled.status().message();
    const ProgramTraits traits = TraitsOf(*compiled->program);
    std::string out;
    for (const SectionTraits& s : traits.sections) {
      for (const ProbeTrait& p : s.probes) {
        out += (out.empty() ? "" : ", ") + std::string(NameOf(p.form));
        if (s.grid == p.join) {
          out += " of a grid";
        } else if (p.keys == 0) {
          out += " over all";
        }
      }
    }
    return out;
  }
};

TEST_F(CompiledTraits, InnerJoins) {
  EXPECT_EQ(Forms("SELECT count(*) FROM a JOIN p ON a.k = p.id"), "look");
  EXPECT_EQ(Forms("SELECT count(*) FROM a JOIN b ON a.k = b.k"), "inner loop");
  EXPECT_EQ(Forms("SELECT count(*) FROM a JOIN b ON a.k = b.k AND a.x < b.x"), "inner loop");
  EXPECT_EQ(Forms("SELECT count(*) FROM a JOIN b ON a.k = b.k JOIN p ON p.id = a.x AND p.x = 3"), "look, inner loop");
}

TEST_F(CompiledTraits, OuterJoins) {
  EXPECT_EQ(Forms("SELECT a.x, p.x FROM a LEFT JOIN p ON a.k = p.id"), "outer look");
  EXPECT_EQ(Forms("SELECT a.x, b.x FROM a LEFT JOIN b ON a.k = b.k"), "outer loop");
  EXPECT_EQ(Forms("SELECT a.x, b.x FROM a LEFT JOIN b ON a.k = b.k AND a.x < b.x"), "outer turns");
  // The rows of the second side that none of the first matches.
  EXPECT_EQ(Forms("SELECT a.x, b.x FROM a FULL JOIN b ON a.k = b.k"), "outer loop, look");
  EXPECT_EQ(Forms("SELECT a.x, (SELECT b.x FROM b WHERE b.k = a.k) FROM a"), "outer turns");
}

TEST_F(CompiledTraits, SemiAntiAndMarkJoins) {
  const std::string exists = "EXISTS (SELECT 1 FROM b WHERE b.k = a.k)";
  const std::string less = "EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.x < a.x)";
  EXPECT_EQ(Forms("SELECT x FROM a WHERE " + exists), "look");
  EXPECT_EQ(Forms("SELECT x FROM a WHERE NOT " + exists), "look");
  EXPECT_EQ(Forms("SELECT x FROM a WHERE x = 1 OR " + exists), "look");
  EXPECT_EQ(Forms("SELECT x FROM a WHERE " + less), "search");
  EXPECT_EQ(Forms("SELECT x FROM a WHERE NOT " + less), "search");
  EXPECT_EQ(Forms("SELECT x FROM a WHERE x = 1 OR " + less), "search");
}

TEST_F(CompiledTraits, JoinsOfPairs) {
  EXPECT_EQ(Forms("SELECT count(*) FROM a, b"), "inner loop of a grid");
  EXPECT_EQ(Forms("SELECT count(*) FROM a JOIN b ON a.x < b.x"), "inner loop of a grid");
  EXPECT_EQ(Forms("SELECT a.x, b.x FROM a LEFT JOIN b ON a.x < b.x"), "outer turns over all");
  EXPECT_EQ(Forms("SELECT x FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.x < a.x)"), "search over all");
  EXPECT_EQ(Forms("SELECT count(*) FROM a, b, p"), "inner loop of a grid, inner loop over all");
  const std::string join = "SELECT count(*) FROM a JOIN b ON a.k = b.k";
  EXPECT_EQ(Forms(join, JoinChoice::kHash), "inner loop");
  EXPECT_EQ(Forms(join, JoinChoice::kGrid), "inner loop of a grid");
  EXPECT_EQ(Forms(join, JoinChoice::kDp), "inner loop of a grid");
  EXPECT_EQ(Forms(join, JoinChoice::kLoop), "inner loop over all");
}

}  // namespace
}  // namespace tessera
