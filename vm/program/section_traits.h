// What the sections of a program do, as far as others than their interpreters ask: how they probe join tables, what their
// slots and registers are used for, how often a row gets to the sink. It is found out once a run from the instructions, and
// said here; no other code looks for it there. Private to the library.
//
// A program does not carry it. Several sections may probe one join table, each in another way (a side may be there once
// for its rows and once for its keys), so that it would belong to each probe, beside the instructions that perform it,
// and could contradict them.
//
// Start at: TraitsOf, SectionTraits, ProbeTrait. Plain data; any thread. A stage that changes code asks again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "vm/program/program.h"

namespace tessera::vm {

inline constexpr size_t kNoInstruction = SIZE_MAX;

/// What a probe performs, with the loop that belongs to it.
enum class ProbeForm : uint8_t {
  kLook,       ///< Probe alone: a row goes on with its first match. An inner join by a unique key; a semi, anti or mark
               ///< join without conditions besides the keys
  kInnerLoop,  ///< Probe, and a loop whose mask nothing else uses: an inner join. Each row goes on once for each of its
               ///< matches, and that is all that depends on them
  kSearch,  ///< Probe, and a loop whose body takes rows from its mask, so that it ends for each with the match that is
            ///< enough: a semi, anti or mark join
  kOuterLook,   ///< ProbeOuter alone: a left join by a unique key
  kOuterLoop,   ///< ProbeOuter, and a loop over the matches, or no match: a left join
  kOuterTurns,  ///< ProbeOuter and NextOuter: the same where only conditions in the body tell what is a match
  kOther,  ///< a loop that does not go from right after the probe, where its mask is saved. The compiler makes none
};
constexpr bool IsOuter(ProbeForm f) {
  return f == ProbeForm::kOuterLook || f == ProbeForm::kOuterLoop || f == ProbeForm::kOuterTurns;
}

/// One probe of a section.
struct ProbeTrait {
  int join = 0;
  size_t at = 0;     ///< its instruction
  int32_t keys = 0;  ///< 0: each row is compared with all rows of the table
  Operand key;       ///< the first; several are in registers from there on
  ProbeForm form = ProbeForm::kLook;
  size_t next = kNoInstruction;  ///< the end of its loop; kNoInstruction: it has none
  /// The SkipIfNone where the rows are live that the join and its conditions have left; kNoInstruction: there is none
  /// before the next probe.
  size_t counted = kNoInstruction;
  bool HasLoop() const { return next != kNoInstruction; }
};

/// What a register holds wherever it is read, if that is a slot or a payload: it is stored once, right after a load.
struct RegisterCopy {
  Operand of;
  bool wide = false;  ///< 128 bits
};

struct SectionTraits {
  std::vector<ProbeTrait> probes;  ///< in the order of the code; a join table is probed once in a section
  // By slot.
  std::vector<bool> reads_slot;      ///< by an operand, not only through predicates
  std::vector<bool> computes_slot;   ///< the same, by another instruction than a probe
  std::vector<size_t> head_filters;  ///< the predicates that are tested before anything else
  int grid = -1;                     ///< the join table that is probed as a grid: its rows are cut into ranges, as the
                                     ///< source's rows are cut into tiles. -1: none
  size_t feed = kNoInstruction;      ///< the first instruction that feeds the sink
  int feeds = 0;                     ///< instructions that append rows to the sink, or find groups by keys
  bool repeats = false;       ///< a row may get to the sink several times, because that is in a loop over matches
  bool takes_all = false;     ///< all rows of the source get to `feed`
  bool only_moves = false;    ///< it does nothing but move values and emit all rows
  bool only_filters = false;  ///< the same with predicates: no instruction can fail
  bool numbers_rows = false;  ///< the rows get numbers, which must differ on all ranks and be those of one process
  std::vector<std::optional<RegisterCopy>> copies;  ///< by register

  /// The probe of a join table; nullptr: there is none.
  const ProbeTrait* Probe(int join) const;
  /// Whether each row is compared with all rows of a join table.
  bool ComparesPairs() const;
  bool HasLoops() const;
  /// The slot that a register of 64 bits copies; -1: none.
  int SlotOf(size_t reg) const;
  /// The slot that key `number` of some is, or copies; -1: none. `first`: the first of `keys`.
  int SlotOfKey(const Operand& first, int32_t keys, size_t number) const;
};

/// Who uses a join table.
struct JoinTraits {
  std::vector<int> probers, scanners;  ///< the sections that probe it, and whose source it is
  bool has_loop = false;               ///< some section goes over all rows of a key
  bool has_outer = false;              ///< some section keeps rows without a match
  /// The section that probes it with rows that are exchanged by key, right after their exchange; -1 if there is none, or
  /// other sections use the table, too. Then all rows of a key are on its rank.
  int exchanged_prober = -1;
  bool inner = false;  ///< that section does so by an inner join that goes over all rows of a key
};

struct ProgramTraits {
  std::vector<SectionTraits> sections;
  std::vector<JoinTraits> joins;
  /// By section: the join table that is probed with its rows, right after their exchange; -1: none, or as for
  /// JoinTraits::exchanged_prober.
  std::vector<int> probed_with;

  const SectionTraits& section(int number) const { return sections[static_cast<size_t>(number)]; }
  const JoinTraits& join(int number) const { return joins[static_cast<size_t>(number)]; }
  /// REQUIRES: a section of the program.
  const SectionTraits& Of(const Program& program, const Section& section) const {
    return sections[static_cast<size_t>(&section - program.sections.data())];
  }
};

/// REQUIRES, of both: a verified program, but for classes of accumulators.
SectionTraits TraitsOf(const Program& program, const Section& section);
ProgramTraits TraitsOf(const Program& program);

/// OFFSET + LIMIT of a section that sorts its rows, where others are dropped as they are made; 1 if it
/// folds all rows to the first. 0: none are dropped.
uint64_t TopRowsOf(const Section& section);
/// Whether the section probes the join table, or scans it.
bool UsesJoin(const Section& section, const SectionTraits& traits, int join);
/// Whether rows that the probe drops are gone: no mask that is read after it may come from before it. (Next goes on with
/// the mask of its own loop; each turn is a row of its own.)
bool DropsForGood(const Section& section, const ProbeTrait& probe);

/// Whether the instruction moves values and does nothing else, so that it cannot fail.
inline bool OnlyMoves(const Instruction& in) {
  const Shape shape = Info(in.op).shape;
  return shape == Shape::Load || shape == Shape::LoadWide || shape == Shape::Store || shape == Shape::StoreWide;
}

}  // namespace tessera::vm
