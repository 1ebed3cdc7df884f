// The program `opcodes_md`: prints vm/OPCODES.md, the manual of the machine, from the opcode table. `make opcodes`
// writes the file, and `make test` checks that it is up to date.

#include <fmt/format.h>

#include <cstdio>
#include <iterator>
#include <string>
#include <vector>

#include "vm/program/program.h"

namespace tessera::vm {
namespace {

constexpr const char* kIntroduction =
    R"(<!-- Written by build/opcodes_md from vm/program/opcodes.def and vm/program/shapes.def: change those and run `make opcodes`. -->
# The machine and its opcodes

A query is a **program**: sections that run one after another, each a list of instructions for one pipeline. A section scans
a source (a stored table, the result of an earlier section, the rows of a join table, the entries of a dictionary, one row
without columns, or the numbers of a series) tile by tile and feeds one sink (rows, a join table, groups, or a map of dictionary entries).

Per tile of rows the machine has

- the **selection mask**, one bit a row: which rows are *live*;
- accumulator **A**, 64 bits and a NULL bit a row: an integer, a double, or the identifier of a text;
- accumulator **W**, 128 bits and a NULL bit a row;
- **mask registers** m0, m1, ... for OR and CASE, and **registers** r0, r1, ... of 64 or 128 bits;
- one cursor a row for each **join table** t0, t1, ... that was probed, and one group ordinal a row.

An instruction is decoded once for a tile, never for a row. A tile is applied wholly or not at all. In effect, an instruction
changes accumulators of live rows only: what a masked-off row holds is unspecified, and such a row never raises an error.
Arithmetic on NULL gives NULL; a comparison with NULL is not true. What an opcode does to one row is one function in
`vm/meaning/meaning.h` (text: `vm/meaning/text_meaning.h`), compiled for host and GPU; the interpreters are loops around it.

Encodings are not in the program. Before a tablet runs, its columns and the section's predicates are turned into its
*encoding* (`vm/encode/tablet_encoding.h`): streams, widths, bases and NULL codes, and the predicates' bounds in the tablet's codes.

## Operands

An instruction has 16 bytes: the opcode and p1 (16 bits each), p2, p3, p4 (32 bits each). Operands that an opcode does not
use are 0.

)";

constexpr const char* kReferences = R"(
A reference holds its kind in bits 28 to 30 (0 slot, 1 register, 2 constant, 3 payload), the join table in bits 16 to 27 and
the index in bits 0 to 15.

"In" and "out" are the class of the accumulator before and after: I integer of 64 bits, F double, T text, W 128 bits, X any of
I, F and T, with an operand of the same class, - unchanged. A section that has an opcode marked *host* does not run on a GPU.

)";

constexpr const char* kLayout = R"(
## The program as bytes

A program travels as a flat string of bytes, which is the same on every machine. Numbers are little endian and have 1, 2, 4, 8
or 16 bytes; a truth value is a byte 0 or 1; a text is its length (4 bytes) and its bytes; a list is its count (4 bytes) and
its items. There is no padding.

| what | fields |
|---|---|
| the string | magic word `TESP` (4), version 11 (4), program, XXH3-64 checksum of all before it (8) |
| program | list of constants, list of tables, list of join tables, list of sections, list of result columns |
| type | id (1), precision (1), scale (1), length (4) |
| constant | type, NULL (1), integer (8), double (8), wide (16), text |
| table | id (8), name, column whose runs are read (4), list of the runs of each tablet (4 each) |
| join table | unique (1), section that builds it (4), strategy (1), column by which it is sorted (4), selective (1) |
| result column | name, type |
| section | source kind (1), source (4), rows of a series (8), sink (1), join table (4), list of slots, list of predicates, list of register types, mask registers (4), list of instructions, list of column types, list of aggregates, keys (4), list of sort keys, limit (8), offset (8), section whose rows come first (4), column that repeats rows (4), fold (1), of distinct values (1), constant of the fold (4), section whose rows it replaces (4), each once (1), most rows (8), list of windows, by key (1), co-located (1), list of ranks' tablets (first and after the last, 4 each), label |
| slot | column (4), type, map (4) |
| predicate | kind (1), negated (1), low inclusive (1), high inclusive (1), slot (4), low (4), high (4), map (4), join table (4), list of constants (4 each) |
| instruction | opcode (2), p1 (2), p2 (4), p3 (4), p4 (4) |
| aggregate | opcode (2), type |
| sort key | column (4), descending (1), NULLs first (1) |
| window | function (1), aggregate opcode (2), type, partition keys (4), order keys (4), value (4), count (4), number (8), fallback (4), NULLs ignored (1), distinct (1), fold (1), constant of the fold (4), list of sort keys of its values, frame mode (1), start (1), end (1), exclusion (1), start offset (8), end offset (8), key (4), start column (4), end column (4) |

Opcodes are numbered from 0 in the order below. `Program::Parse` refuses bytes that are not such a string, `Verify` refuses a
program that an interpreter must not run.

## Numbers

)";

const char* SpecName(OperandSpec spec) {
  return spec == OperandSpec::None ? "" : kOperands[static_cast<size_t>(spec)].name;
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
  out += "| kind | meaning | in EXPLAIN |\n|---|---|---|\n";
  for (const OperandWords& o : kOperands) {
    if (*o.name != 0 && *o.meaning != 0) out += fmt::format("| {} | {} | {} |\n", o.name, o.meaning, o.text);
  }
  out += kReferences;
  out += "## Opcodes\n\nThey are grouped by shape: one shape is one loop in each interpreter.\n";
  std::string numbers = "| number | opcode |\n|---|---|\n";
  std::vector<std::string> tables(std::size(kShapes));
  std::vector<Shape> order;
  for (uint16_t i = 0; i < static_cast<uint16_t>(Opcode::kCount); ++i) {
    const OpcodeInfo& info = Info(static_cast<Opcode>(i));
    std::string& table = tables[static_cast<size_t>(info.shape)];
    if (table.empty()) {
      order.push_back(info.shape);
      table = fmt::format(
          "\n### {}\n\n{}\n\n| opcode | p1 | p2 | p3 | p4 | in | out | does | "
          "|\n|---|---|---|---|---|---|---|---|---|\n",
          kShapes[static_cast<size_t>(info.shape)].name, kShapes[static_cast<size_t>(info.shape)].words);
    }
    table += fmt::format("| {}{} |", info.name, info.tier == Tier::Host ? " *host*" : "");
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
