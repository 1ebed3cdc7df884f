// The program: what the compiler makes, EXPLAIN lists, the verifier checks, and host, GPU and ranks interpret.
//
// A program is a list of sections, one per pipeline. A section scans a source tile by tile, runs its instructions on
// each tile and feeds one sink. Sections run in order; a section may read the result of an earlier one. In memory it is
// this struct. Between ranks it travels as the flat byte string of Serialize, whose layout is in OPCODES.md; Parse and
// Verify check it.
//
// Start at: Program, Section, Instruction, Verify. Plain data without pointers, encodings or anything that depends on
// one machine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "vm/program/join_strategy.h"
#include "vm/program/opcode.h"
#include "vm/program/window_spec.h"

namespace tessera::vm {

/// 16 bytes. The shape gives the meaning of p1..p4: see shapes.def.
struct Instruction {
  Opcode op = Opcode::End;
  uint16_t p1 = 0;
  int32_t p2 = 0;
  int32_t p3 = 0;
  int32_t p4 = 0;
  friend bool operator==(const Instruction&, const Instruction&) = default;
};
static_assert(sizeof(Instruction) == 16);

/// Where an operand of kind Src is. Packed into p2 (or p3): kind in bits 28..30, table in 16..27 (kPayload), index in
/// 0..15.
enum class OperandKind : uint8_t { kSlot, kRegister, kConstant, kPayload };
struct Operand {
  OperandKind kind = OperandKind::kConstant;
  uint16_t table = 0;  ///< kPayload: join table; else 0
  uint16_t index = 0;

  constexpr int32_t Pack() const {
    return static_cast<int32_t>(kind) << 28 | static_cast<int32_t>(table) << 16 | static_cast<int32_t>(index);
  }
  static constexpr Operand Unpack(int32_t p) {
    return {static_cast<OperandKind>((p >> 28) & 3), static_cast<uint16_t>((p >> 16) & 0xFFF),
            static_cast<uint16_t>(p & 0xFFFF)};
  }
  static constexpr Operand Slot(int i) { return {OperandKind::kSlot, 0, static_cast<uint16_t>(i)}; }
  static constexpr Operand Register(int i) { return {OperandKind::kRegister, 0, static_cast<uint16_t>(i)}; }
  static constexpr Operand Constant(int i) { return {OperandKind::kConstant, 0, static_cast<uint16_t>(i)}; }
  static constexpr Operand Payload(int t, int i) {
    return {OperandKind::kPayload, static_cast<uint16_t>(t), static_cast<uint16_t>(i)};
  }
};

/// A SQL type in one operand: id, precision, scale.
constexpr int32_t PackType(const SqlType& t) {
  return static_cast<int32_t>(t.id) | static_cast<int32_t>(t.precision) << 8 | static_cast<int32_t>(t.scale) << 16;
}
constexpr SqlType UnpackType(int32_t p) {
  return {static_cast<TypeId>(p & 0xFF), static_cast<uint8_t>((p >> 8) & 0xFF), static_cast<uint8_t>((p >> 16) & 0xFF),
          0};
}

// ---- Limits: what one program may ask of a machine. Verify enforces them, the compiler says so before.
inline constexpr int kMaxSections = 4096;
inline constexpr int kMaxInstructions = 1 << 18;  ///< per section
inline constexpr int kMaxSlots = 8192;            ///< per section
inline constexpr int kMaxRegisters = 16384;       ///< per section
inline constexpr int kMaxMasks = 64;              ///< mask registers per section
inline constexpr int kMaxConstants = 32768;
inline constexpr int kMaxJoins = 1024;
inline constexpr int kMaxKeys = 64;  ///< of a join table
/// Keys of groups and folds, and columns of rows that are to differ from each other.
inline constexpr int kMaxGroupingKeys = 4096;
inline constexpr int kMaxWindowKeys = 250;  ///< entries of the order of a section with windows

/// A column that a section reads.
struct Slot {
  int32_t column = 0;  ///< column of the source
  SqlType type;
  /// The kDictionary section that maps this TEXT column's entries to the slot's values; `type` is then the type that it
  /// emits. -1: the slot has the column's own values.
  int32_t map = -1;
  friend bool operator==(const Slot&, const Slot&) = default;
};

/// A condition on one column of a stored table, in logical values; the section encoder turns these into codes of a
/// tablet. NULL never passes, except in kIsNull. Constants have the slot's storage class and scale.
struct Predicate {
  enum class Kind : uint8_t {
    kRange,  ///< low (<|<=) value (<|<=) high; either bound may be missing
    kIn,     ///< value = one of `list`
    kIsNull,
    kIsNotNull,
    kMapped,    ///< TEXT: the dictionary section `map` keeps the entry
    kKeyRange,  ///< value lies between the least and the greatest first key of join table `join`: leaves out tablets
                ///< and tiles that cannot match
  };
  Kind kind = Kind::kRange;
  bool negated = false;  ///< kRange, kIn, kMapped: passes where the plain form does not, and the value is not NULL
  bool low_inclusive = true, high_inclusive = true;
  int32_t slot = 0;
  int32_t low = -1, high = -1;  ///< constants, or -1
  int32_t map = -1;
  int32_t join = -1;
  std::vector<int32_t> list;  ///< constants, none NULL
  friend bool operator==(const Predicate&, const Predicate&) = default;
};

struct AggregateSpec {
  Opcode op = Opcode::CountRows;  ///< the opcode that feeds it: CountRows, Count, SumI, ..., MaxT
  SqlType type;  ///< of its (first) column; sums of integers and decimals are DECIMAL(38,s), counts BIGINT
  friend bool operator==(const AggregateSpec&, const AggregateSpec&) = default;
};

/// Tablets [first, end) of a stored table.
struct TabletSpan {
  uint32_t first = 0, end = 0;
  friend bool operator==(const TabletSpan&, const TabletSpan&) = default;
};

/// What becomes, once a section's rows are in order, of those that are equal in the first `keys` columns: one of them, with
/// the fold of their values in column `keys`. Then the sink is kRows, the order begins with the keys, there is no limit,
/// nothing is appended, and this is not the last section. NULLs do not count, except in kFirst.
struct FoldSpec {
  Fold kind = Fold::kNone;
  bool distinct = false;  ///< of equal neighbours one counts
  int32_t constant = -1;  ///< kQuantile, kBetween: DOUBLE, 0 to 1; kJoin: TEXT; else -1
  friend bool operator==(const FoldSpec&, const FoldSpec&) = default;
};

/// What becomes of all rows of a section with sink kRows once it has run: they are repeated, put in order, folded, get the
/// columns of windows, and are cut.
struct RowsAfter {
  std::vector<SortKey> order;
  int64_t limit = -1;  ///< -1: none
  int64_t offset = 0;
  /// An earlier section whose rows come before this one's, and which no other section reads; -1: none. Both have sink
  /// kRows, no order and no limit, and are not the last section. Used for UNION ALL and for the second half of a FULL
  /// JOIN.
  int32_t append_to = -1;
  /// A column of 64-bit integers that says how often each row stands once the section has run. Then the sink is kRows,
  /// the source is another section's rows or one row, there is no order and no limit, nothing is appended, and this is
  /// not the last section. -1: each row once. Used for INTERSECT ALL, EXCEPT ALL and for series whose ends are
  /// known only when the query runs.
  int32_t repeat = -1;
  FoldSpec fold;
  /// What is computed of the rows once they are in order; each adds columns after `columns`. Then the sink is kRows,
  /// there is no limit, nothing is appended or repeated, and this is not the last section.
  std::vector<WindowSpec> windows;
  /// How many rows OFFSET and LIMIT need, of those in order; UINT64_MAX: all.
  uint64_t Needed() const {
    return limit < 0 ? UINT64_MAX : static_cast<uint64_t>(limit) + static_cast<uint64_t>(offset);
  }
  friend bool operator==(const RowsAfter&, const RowsAfter&) = default;
};

/// WITH RECURSIVE: section `first`, an earlier one, has its rows replaced by those of the section that has this; then the
/// sections after it, up to that one, run again, until that one makes no row. In the end its rows are those of `first` and
/// of all turns. Both have sink kRows and the same types; that one has no order, limit, fold or windows, is not appended or
/// repeated, and is not the last. `first` is read by sections between them only.
struct Recursion {
  int32_t first = -1;     ///< -1: the section runs once
  bool distinct = false;  ///< each row of all turns stands once
  int64_t limit =
      -1;  ///< with this number of rows in all there is no other turn, and rows beyond are left out; -1: none
  friend bool operator==(const Recursion&, const Recursion&) = default;
};

/// On which ranks a section's rows are. One process does nothing else for any of it.
struct RankPlacement {
  /// Ranks exchange the rows by their first `keys` columns, however few: a join table's, or, with sink kRows, those that
  /// probe it. Then there are keys; with sink kRows there is no order, limit, fold or windows, nothing is appended or
  /// repeated, and this is not the last section.
  bool by_key = false;
  /// Ranks need not exchange the rows by key, and do not: those with equal keys are on one rank, because so are those of
  /// the stored table. With sink kJoin every rank builds a table of its own rows, for sections whose rows that probe it
  /// are on the rank of their keys, too. Other sections have vm::ExchangeKeys, or make rows in any order
  /// (vm::MakesPlainRows). vm::MustStayDistributed: these stay where they are.
  bool co_located = false;
  /// By rank: the tablets of the stored table that it scans. Those of a join table may be on several ranks, and the table is
  /// co-located then; else each tablet is on one. Empty: as vm::ShareTablets has it. One process scans all.
  std::vector<TabletSpan> spans;
  friend bool operator==(const RankPlacement&, const RankPlacement&) = default;
};

struct Section {
  enum class Source : uint8_t {
    kTable,       ///< stored table tables[source]
    kSection,     ///< rows or groups that section `source` produced; columns of groups: keys, then aggregates
    kDictionary,  ///< the entries of a TEXT chunk, when a tablet is encoded: slot 0 is the entry; not run on its own
    kOneRow,      ///< one row without columns
    kJoin,        ///< the rows of join table `source`: columns keys then payload
    kSeries,      ///< `source_rows` rows; column 0 is the number of each, a BIGINT from 1 on
  };
  enum class Sink : uint8_t {
    kRows,    ///< Emit: a list of rows; the last section's is the result
    kJoin,    ///< Build: join table joins[join]
    kGroups,  ///< Group and aggregates
    kMap,     ///< kDictionary only: Emit gives entry -> r0, and the set of entries that reached Emit
  };
  using Fold = tessera::vm::Fold;
  Source source_kind = Source::kOneRow;
  int32_t source = 0;
  int64_t source_rows = 0;  ///< kSeries; else 0
  Sink sink = Sink::kRows;
  int32_t join = -1;  ///< kJoin
  std::vector<Slot> slots;
  std::vector<Predicate> predicates;
  std::vector<SqlType> registers;         ///< type of each register; kWide ones have 128 bits, the others 64
  int32_t masks = 0;                      ///< mask registers
  std::vector<Instruction> code;          ///< the last one is End
  std::vector<SqlType> columns;           ///< of the sink: emitted registers; or keys, then payload or aggregates
  std::vector<AggregateSpec> aggregates;  ///< kGroups
  int32_t keys = 0;                       ///< kJoin, kGroups: how many of `columns` are keys
  RowsAfter after;
  Recursion recursion;
  RankPlacement placement;
  std::string label;  ///< for EXPLAIN: "scan lineorder"
  friend bool operator==(const Section&, const Section&) = default;
};

struct JoinSpec {
  bool unique = false;   ///< the compiler proved that keys are unique: no Next is needed
  int32_t section = -1;  ///< the section that builds it
  /// With one that cuts both sides the table has no keys, and is the first that a section probes, by a Probe with a Next.
  JoinStrategy strategy = JoinStrategy::kHash;
  /// The column of the building section, of class I or F, by which the rows are sorted: ascending, NULL last. Then
  /// such a strategy leaves out the units for which column ranges show that no pair can reach the sink. -1: rows stay as
  /// they come.
  int32_t order = -1;
  /// Most rows that probe it are expected to find nothing, so that it is worth a Bloom filter.
  bool selective = false;
  friend bool operator==(const JoinSpec&, const JoinSpec&) = default;
};

struct TableRef {
  int64_t id = 0;  ///< TableInfo::id
  std::string name;
  /// The table is read as the runs of this column (tessera::RunsOf), whose columns those of slots are. -1: as it is stored.
  int32_t runs_of = -1;
  std::vector<int32_t> runs = {};  ///< how many each tablet has then
  friend bool operator==(const TableRef&, const TableRef&) = default;
};

struct ResultColumn {
  std::string name;
  SqlType type;
  friend bool operator==(const ResultColumn&, const ResultColumn&) = default;
};

struct Program {
  std::vector<Value> constants;
  std::vector<TableRef> tables;
  std::vector<JoinSpec> joins;
  std::vector<Section> sections;
  std::vector<ResultColumn> columns;  ///< of the result: a prefix of the last section's columns

  /// The flat byte string, which ends in the XXH3 checksum of the bytes before. The same program gives the same bytes
  /// everywhere.
  std::string Serialize() const;
  /// Errors: kCorrupt with the reason. The returned program is well-formed; Verify tells whether it is safe to run.
  static Result<Program> Parse(std::string_view bytes);
};

/// Whether values can have the type: a known one, decimals of 1 to 38 digits.
bool IsValueType(const SqlType& type);

/// Refuses a program that an interpreter must not run: unknown opcodes, operands out of range or of the wrong class, an
/// accumulator used before it has a value of that class, jumps that leave the section, backward jumps that are not a
/// Next, sinks that do not fit, sections that read something that no earlier section made. Errors: kCorrupt: `section
/// 1, instruction 7 (AddI): reason`.
Status Verify(const Program& program);

/// Calls f(Operand) for each operand that the instruction reads; keys are consecutive registers.
template <class F>
void ForEachOperand(const Instruction& in, F f) {
  const OpcodeInfo& info = Info(in.op);
  const int32_t p[4] = {in.p1, in.p2, in.p3, in.p4};
  for (int k = 0; k < 4; ++k) {
    if (!IsReference(info.p[k]) || p[k] == -1) continue;
    Operand o = Operand::Unpack(p[k]);
    const int32_t keys = !TakesSeveral(info) ? 1 : o.kind == OperandKind::kRegister ? in.p3 : std::min(in.p3, 1);
    for (int32_t i = 0; i < keys; ++i, ++o.index) f(o);
  }
}

/// Whether the instruction probes join table P1.
inline bool Probes(const Instruction& in) { return Info(in.op).role == Role::Probe; }

/// The program as SQLite lists one: addr, opcode, p1..p4, comment; one block per section.
std::string Listing(const Program& program);

}  // namespace tessera::vm
