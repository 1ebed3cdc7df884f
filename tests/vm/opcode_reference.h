// The reference of the opcode walk: a second implementation of the machine. It runs a section over all rows of its
// source at once, one instruction after another, with the plainest code that says what an opcode means
// (opcode_meanings.h). It calls nothing of vm/ but Info().
//
// Start at: Reference::Run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/vm/opcode_values.h"
#include "vm/program/program.h"
#include "vm/rows/sorted_rows.h"

namespace tessera::test::walk {

using vm::Instruction;
using vm::Opcode;
using vm::Predicate;
using vm::Program;
using vm::Section;

/// What TotalF and DeviationsF make of a state's words. False: the opcode is not known here.
bool OfState(Opcode op, const std::vector<int64_t>& words, int64_t* value);

class Reference {
 public:
  Reference(const Program& program, const std::vector<TestTable>& tables, Texts* texts)
      : p_(program), tables_(tables), texts_(texts) {}

  /// Why the reference could not run it; empty if it could.
  std::string problem;
  bool failed = false;        ///< a live row raised an error
  bool unspecified = false;   ///< a live row did what no document defines
  std::vector<uint8_t> bad;   ///< rows of the last stored table: 1 raised an error (there or in a section over its
                              ///< rows), 2 was unspecified
  std::vector<Cells> result;  ///< columns of the last section
  size_t result_rows = 0;

  void Run();

 private:
  struct Join {
    std::vector<Cells> columns;
    std::unordered_map<std::string, std::vector<uint32_t>> rows;
  };
  struct Cursor {
    const std::vector<uint32_t>* rows = nullptr;
    size_t at = 0;
    bool valid() const { return rows != nullptr && at < rows->size(); }
  };
  struct State {  // of one aggregate of one group
    bool seen = false;
    int64_t count = 0, v = 0;
    int128_t w = 0;
    std::vector<double> values;  // all that came in, for an aggregate whose state has several words
  };
  /// What an entry of a dictionary became.
  struct Mapped {
    bool kept = false, null = true;
    int64_t v = 0;
  };
  /// An operand: values, or one for all rows.
  struct View {
    const int64_t* v = nullptr;
    const int128_t* w = nullptr;
    const uint8_t* null = nullptr;
    bool one = false;
    int64_t V(size_t i) const { return v[one ? 0 : i]; }
    int128_t W(size_t i) const { return w[one ? 0 : i]; }
    bool Null(size_t i) const { return null[one ? 0 : i] != 0; }
  };
  /// The machine while one section runs.
  struct Machine {
    size_t n = 0;
    std::vector<uint8_t> live, a_null, w_null;
    std::vector<int64_t> a;
    std::vector<int128_t> w;
    std::vector<Cells> slots, registers;
    std::vector<std::vector<uint8_t>> masks;
    std::vector<std::vector<Cursor>> cursors;
    std::vector<uint8_t> outer;  // per join table: probed by ProbeOuter
    std::vector<uint32_t> group;
    std::unordered_map<std::string, uint32_t> groups;
    std::vector<Cells> keys;
    std::vector<std::vector<State>> states;  // per aggregate
    std::vector<Cells> out;
    std::vector<uint32_t> out_from;  // row that each emitted row came from
    Cells scratch[2];
  };

  void Problem(const std::string& what);
  /// Every entry of a dictionary section's input, run once.
  Mapped MapText(int section, int64_t number);
  void RunSection(size_t number);
  View Fetch(Machine* m, int32_t packed, int scratch);
  bool Passes(const Predicate& f, const Cells& c, size_t i);
  /// The bytes of a row's keys, and whether one of them is NULL.
  std::string KeyOf(const std::vector<View>& keys, const std::vector<bool>& wide, size_t i, bool* null) const;
  std::vector<View> Keys(Machine* m, const Instruction& in, const std::vector<SqlType>& types, std::vector<bool>* wide);
  /// `origin`: rows of the stored table that the rows came from, for bad_rows; nullptr: they are those rows.
  void RunCode(const Section& s, Machine* m, size_t n, std::vector<uint8_t>* bad_rows,
               const std::vector<uint32_t>* origin);
  /// Adds a row to a state; false: the opcode is not known here.
  bool Aggregate(Opcode op, State* s, const Machine& m, size_t i);
  void FinishJoin(const Section& s, Machine* m);
  /// The columns of an aggregate whose state has several words; none for the others.
  std::vector<Cells> StateWords(Opcode op, const std::vector<State>& groups) const;
  void FinishGroups(const Section& s, Machine* m, size_t number);
  void OrderAndLimit(const Section& s, std::vector<Cells>* columns, size_t* rows);

  const Program& p_;
  const std::vector<TestTable>& tables_;
  Texts* texts_;
  std::vector<std::vector<Cells>> results_;
  std::vector<size_t> row_counts_;
  std::vector<std::vector<uint32_t>> origins_;  // of the rows of sections over a stored table
  std::vector<uint32_t> no_origin_;
  std::vector<Join> joins_;
  std::map<int, std::unordered_map<int64_t, Mapped>> maps_;
};

}  // namespace tessera::test::walk
