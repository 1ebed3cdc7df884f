// The cases of the opcode walk and how each is run: private to opcode_walk.cc and the files of cases.
//
//   opcode_cases.cc          tables, heads of programs, and every opcode with every kind of operand
//   opcode_filter_cases.cc   masks, predicates, dictionary sections
//   opcode_join_cases.cc     joins
//   opcode_sink_cases.cc     groups and rows
//   opcode_program_cases.cc  random programs, large tables
//   opcode_check.cc          runs a case on an executor and on the reference, compares, keeps the coverage
//
// Start at: Walk::Run (opcode_walk.cc), Walk::Check.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tests/vm/opcode_forms.h"
#include "tests/vm/opcode_meanings.h"
#include "tests/vm/opcode_programs.h"
#include "tests/vm/opcode_reference.h"
#include "tests/vm/opcode_values.h"
#include "tests/vm/opcode_walk.h"
#include "vm/program/program.h"
#include "vm/run/device.h"
#include "vm/vm.h"

namespace tessera::test::walk {

using vm::AccumulatorSpec;
using vm::Opcode;
using vm::Program;

/// What a masked table starts with: row number, mask.
constexpr int kRowColumn = 0, kMaskColumn = 1;

/// How a check differs from the plain one.
struct CheckOptions {
  /// Column kMaskColumn of the last section's table switches rows off: those that raise errors get 0.
  bool masked = false;
  bool ordered = false;  ///< the order of rows counts
  bool subset = false;   ///< LIMIT without ORDER BY: any of `all` rows
  bool must_fail = false;
};

class Walk {
 public:
  Walk(const WalkOptions& options, vm::SectionBackend* gpu)
      : options_(options), gpu_(gpu), random_(options.seed), executor_(options.threads) {}

  WalkReport Run();

 private:
  bool Full() const { return report_.failures.size() >= options_.max_failures; }
  bool Wanted(const std::string& name) const {
    return !Full() && (options_.only.empty() || name.find(options_.only) != std::string::npos);
  }
  size_t Turn(size_t n) { return turn_++ % n; }

  // ---- Running and comparing
  void Fail(const std::string& name, const Program& p, const std::string& what);
  /// Runs `program` over `tables` on the executor and on the reference, and compares.
  void Check(const std::string& name, Program program, std::vector<TestTable> tables, CheckOptions check = {});
  Result<std::vector<Cells>> Execute(const Program& program, const Snapshot& snapshot, size_t* rows);
  std::shared_ptr<const Snapshot> Store(const std::string& name, const Program& program,
                                        const std::vector<TestTable>& tables);
  std::string Compare(const Program& program, const Reference& want, std::vector<Cells> got, size_t got_rows,
                      const CheckOptions& check);
  void Cover(const Program& program, const std::vector<TestTable>& tables);
  void CheckCoverage();

  // ---- Making cases
  size_t NextSize();
  uint32_t TabletRows(size_t rows);
  std::vector<int64_t> MaskValues(size_t rows);
  TestTable MaskedTable(size_t rows);
  /// Appends a column; with several tablets, every other one is stored plainly.
  int AddColumn(TestTable* table, const ColumnSpec& spec, size_t rows);
  void Head(Maker* m, Program* p);
  Value RandomConstant(const SqlType& type, const std::vector<std::string>* strings);
  SqlType TypeFor(AccumulatorSpec c, Opcode op);
  enum class Kind { kSlot, kRegister, kConstant, kPayload, kResult };
  void OperandCase(Opcode op, AccumulatorSpec c, Kind kind, const SqlType& type, const Form& form, int32_t variant);
  void WalkOperands(Opcode op, AccumulatorSpec c);
  void WalkOpcode(Opcode op);

  void Masks();
  void Predicates();
  void TextMaps();
  void Joins();
  void JoinCase(const std::string& name, const std::vector<SqlType>& keys, int key_style, size_t build_rows,
                bool unique, int style, int outer = 0);
  void Groups();
  void GroupCase(const std::string& name, const std::vector<SqlType>& keys, size_t rows, size_t distinct,
                 bool small_aggregates);
  void Rows();
  void RandomPrograms();
  void Large();

  WalkOptions options_;
  vm::SectionBackend* gpu_;
  Random random_;
  vm::Executor executor_;
  WalkReport report_;
  Texts texts_;
  size_t turn_ = 0, size_turn_ = 0;
  size_t text_parts_ = 0;          ///< cases of shape TextPart made: each kind of number meets each width
  std::set<Opcode> declined_;      // that the backend would not run in some section
  int key_width_ = 0;              // of the key columns of joins and groups; 0: any that holds them
  std::set<std::string> covered_;  // "AddI slot 4"
};

// ---- Classes of accumulators, keys of joins and groups --------------------------------------------------------------

AccumulatorSpec ClassOf(const SqlType& t);
const char* ClassName(AccumulatorSpec c);
SqlType AnyType(AccumulatorSpec c);

/// Keys of a join side: `style` says how numbers lie. Values repeat `repeat` times on average.
ColumnVector KeyValues(const SqlType& type, int style, size_t rows, size_t distinct, bool each_once, bool nulls,
                       Random& random);

/// A form that holds these values: numbers in one of the widths that do, or in `width` if that is not 0 and they fit
/// it.
ChunkForm AnyForm(const ColumnVector& values, Random& random, int width = 0);

}  // namespace tessera::test::walk
