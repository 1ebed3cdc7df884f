// The program `opcodes_md`: prints the manual of the machine, vm/OPCODES.md, from the opcode table. `make opcodes`
// writes the file, `make test` checks that it is up to date.

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "vm/program.h"

namespace tessera::vm {
namespace {

constexpr const char* kIntroduction =
    R"(<!-- Written by build/opcodes_md from vm/opcodes.def: change that and run `make opcodes`. -->
# The machine and its opcodes

A query is a **program**: sections that run one after another, each a list of instructions for one pipeline. A section scans
a source (a stored table, the result of an earlier section, the rows of a join table, the entries of a dictionary, or one row
without columns) tile by tile and feeds one sink (rows, a join table, groups, or a map of dictionary entries).

Per tile of rows the machine has

- the **selection mask**, one bit a row: which rows are *live*;
- accumulator **A**, 64 bits and a NULL bit a row: an integer, a double, or the identifier of a text;
- accumulator **W**, 128 bits and a NULL bit a row;
- **mask registers** m0, m1, ... for OR and CASE, and **registers** r0, r1, ... of 64 or 128 bits;
- one cursor a row for each **join table** t0, t1, ... that was probed, and one group ordinal a row.

An instruction is decoded once for a tile, never for a row. A tile is applied wholly or not at all. An instruction changes
accumulators of live rows only, in effect: what a masked-off row holds is unspecified, and it never raises an error.
Arithmetic on NULL gives NULL; a comparison with NULL is not true. What an opcode does to one row is one function in
`meaning.h` (text: `text_meaning.h`), compiled for host and GPU; the interpreters are loops around it.

Encodings are not in the program. Before a tablet runs, its columns and the section's predicates are *bound* to it
(`binding.h`): streams, widths, bases and NULL codes, and the predicates' bounds in the tablet's codes.

## Operands

An instruction has 16 bytes: the opcode and p1 (16 bits each), p2, p3, p4 (32 bits each). Operands that an opcode does not
use are 0.

| kind | meaning | in EXPLAIN |
|---|---|---|
| Src | operand reference, of the accumulator's class: a column slot, register, constant, or payload of a join table | c3, r1, #4, t0.2 |
| SrcW | the same, of 128 bits | |
| SrcInt | the same, an integer; -1 if absent | |
| Reg, RegW | register of 64, of 128 bits | r1 |
| Mask | mask register | m0 |
| Pred | predicate of the section | f2 |
| Join | join table | t0 |
| Agg | aggregate of the section's group table | a1 |
| Addr | address of an instruction | 17 |
| Const, ConstW | constant of the accumulator's class, of 128 bits | #4 |
| Int | a number as it stands | 3 |

A reference holds its kind in bits 28 to 30 (0 slot, 1 register, 2 constant, 3 payload), the join table in bits 16 to 27 and
the index in bits 0 to 15.

"In" and "out" are the class of the accumulator before and after: I integer of 64 bits, F double, T text, W 128 bits, X any of
I, F and T, the operand being of the same class; - untouched. Opcodes marked *host* do not run on a GPU; nor does a section
that has one.

)";

constexpr const char* kLayout = R"(
## The program as bytes

What travels is a flat string of bytes, the same on every machine for the same program. Numbers are little endian, 1, 2, 4, 8
or 16 bytes; a truth value is a byte 0 or 1; a text is its length (4 bytes) and its bytes; a list is its count (4 bytes) and
its items. Without any padding:

| what | fields |
|---|---|
| the string | magic word `TESP` (4), version 3 (4), program, XXH3-64 checksum of all before it (8) |
| program | list of constants, list of tables, list of join tables, list of sections, list of result columns |
| type | id (1), precision (1), scale (1), length (4) |
| constant | type, NULL (1), integer (8), double (8), wide (16), text |
| table | id (8), name |
| join table | unique (1), section that builds it (4), strategy (1), column by which it is sorted (4) |
| result column | name, type |
| section | source kind (1), source (4), sink (1), join table (4), list of slots, list of predicates, list of register types, mask registers (4), list of instructions, list of column types, list of aggregates, keys (4), list of sort keys, limit (8), offset (8), section whose rows come first (4), label |
| slot | column (4), type, map (4) |
| predicate | kind (1), negated (1), low inclusive (1), high inclusive (1), slot (4), low (4), high (4), map (4), join table (4), list of constants (4 each) |
| instruction | opcode (2), p1 (2), p2 (4), p3 (4), p4 (4) |
| aggregate | opcode (2), type |
| sort key | column (4), descending (1), NULLs first (1) |

Opcodes are numbered from 0 in the order below. `Program::Parse` refuses bytes that are not such a string, `Verify` refuses a
program that an interpreter must not run.

## Numbers

)";

struct ShapeWords {
  const char* name;
  const char* text;
};

/// What the interpreters' loop of a shape does. A new shape does not compile without its words.
ShapeWords WordsOf(Shape shape) {
  switch (shape) {
#define SHAPE(Name, Text) \
  case Shape::Name:       \
    return {#Name, Text}
    SHAPE(End, "Ends the section's code.");
    SHAPE(SkipIfNone, "Jumps forward.");
    SHAPE(Next, "The one jump backwards: a loop over the matches of a join.");
    SHAPE(MaskRegister, "The mask and a mask register.");
    SHAPE(Filter, "Tests the code of a column as it is stored; nothing is decoded.");
    SHAPE(Test, "Narrows the mask by the truth of A.");
    SHAPE(TestNull, "Narrows the mask by the accumulator's NULL bits.");
    SHAPE(Compare,
          "Narrows the mask by comparing the accumulator with an operand; a row where one of them is NULL leaves it.");
    SHAPE(TextCompare, "The same, with the bytes of two texts.");
    SHAPE(Like, "Narrows the mask by a pattern.");
    SHAPE(Load, "Fills A.");
    SHAPE(LoadWide, "Fills W.");
    SHAPE(Store, "Keeps A.");
    SHAPE(StoreWide, "Keeps W.");
    SHAPE(Binary, "The accumulator and an operand; NULL if one of them is.");
    SHAPE(Unary, "The accumulator alone.");
    SHAPE(UnaryField, "The accumulator and a small number.");
    SHAPE(Check, "An error for live rows out of range.");
    SHAPE(TextUnary, "Text to text.");
    SHAPE(TextCut, "Text to shorter text.");
    SHAPE(TextLength, "Text to integer.");
    SHAPE(TextConcat, "Two texts to one.");
    SHAPE(TextSubstring, "A piece of a text.");
    SHAPE(ToText, "Values to text.");
    SHAPE(FromText, "Text to values; P3 packs the SQL type.");
    SHAPE(Probe, "Looks keys up in a join table.");
    SHAPE(ProbeOuter, "The same for a LEFT JOIN.");
    SHAPE(NextOuter, "The jump backwards of a LEFT JOIN with more conditions than its keys.");
    SHAPE(TestMatch, "Narrows the mask by whether a row of a join table is pointed at.");
    SHAPE(Refuse, "An error for live rows.");
    SHAPE(Build, "Fills a join table.");
    SHAPE(Group, "Finds the group of each row.");
    SHAPE(CountRows, "Counts live rows.");
    SHAPE(CountValues, "Counts live rows where the accumulator is not NULL.");
    SHAPE(Fold, "Folds the accumulator into an aggregate; NULL leaves it as it is.");
    SHAPE(FoldText, "The same for texts.");
    SHAPE(Emit, "Makes rows.");
#undef SHAPE
  }
  return {"", ""};
}

const char* SpecName(OperandSpec spec) {
  switch (spec) {
    case OperandSpec::None:
      return "";
#define SPEC(Name)        \
  case OperandSpec::Name: \
    return #Name
      SPEC(Src);
      SPEC(SrcW);
      SPEC(SrcInt);
      SPEC(Reg);
      SPEC(RegW);
      SPEC(Mask);
      SPEC(Pred);
      SPEC(Join);
      SPEC(Agg);
      SPEC(Addr);
      SPEC(Const);
      SPEC(ConstW);
      SPEC(Int);
#undef SPEC
  }
  return "";
}

const char* ClassName(AccumulatorSpec spec) {
  switch (spec) {
    case AccumulatorSpec::None:
      return "-";
    case AccumulatorSpec::I:
      return "I";
    case AccumulatorSpec::F:
      return "F";
    case AccumulatorSpec::T:
      return "T";
    case AccumulatorSpec::W:
      return "W";
    case AccumulatorSpec::X:
      return "X";
  }
  return "";
}

/// `|` would end a cell of the table.
std::string Cell(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string Manual() {
  std::string out = kIntroduction;
  out += "## Opcodes\n\nThey are grouped by shape: one shape is one loop in each interpreter.\n";
  std::string numbers = "| number | opcode |\n|---|---|\n";
  std::vector<std::string> tables(static_cast<size_t>(Shape::Emit) + 1);
  std::vector<Shape> order;
  for (uint16_t i = 0; i < static_cast<uint16_t>(Opcode::kCount); ++i) {
    const OpcodeInfo& info = Info(static_cast<Opcode>(i));
    std::string& table = tables[static_cast<size_t>(info.shape)];
    if (table.empty()) {
      order.push_back(info.shape);
      table = fmt::format(
          "\n### {}\n\n{}\n\n| opcode | p1 | p2 | p3 | p4 | in | out | does | "
          "|\n|---|---|---|---|---|---|---|---|---|\n",
          WordsOf(info.shape).name, WordsOf(info.shape).text);
    }
    table += fmt::format("| {}{} |", info.name, info.where == WhereSpec::Host ? " *host*" : "");
    for (const OperandSpec spec : info.p) table += fmt::format(" {} |", SpecName(spec));
    table += fmt::format(" {} | {} | {} | {} |\n", ClassName(info.in), ClassName(info.out), Cell(info.synopsis),
                         Cell(info.comment));
    numbers += fmt::format("| {} | {} |\n", i, info.name);
  }
  for (const Shape shape : order) out += tables[static_cast<size_t>(shape)];
  return out + kLayout + numbers;
}

}  // namespace
}  // namespace tessera::vm

int main() {
  const std::string text = tessera::vm::Manual();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0 ? 0 : 1;
}
