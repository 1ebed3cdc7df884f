// Where the leaves of expressions are found: columns of tables and join tables in a pipeline, keys and aggregates above
// a grouping. Private to compiler/.
//
// Start at: PipelineScope, GroupScope. One thread.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/generate/section_builder.h"
#include "compiler/query/bound_query.h"
#include "vm/program/program.h"

namespace tessera {

/// (relation, column) -> payload number in a join table. Columns from kFirstComputed on are Plan::computed of the relation.
using PayloadColumns = std::map<std::pair<int, int>, int>;
inline constexpr int kFirstComputed = 1 << 24;

/// Columns of the relations that a pipeline has at hand: slots of the scanned table, payload of the join tables that it
/// has probed.
class PipelineScope : public Scope {
 public:
  /// `computed`: Plan::computed; nullptr: nothing is.
  PipelineScope(const Query& q, int scanned, const std::vector<std::vector<const Expr*>>* computed = nullptr)
      : q_(q), scanned_(scanned), computed_(computed) {}

  /// The rows scanned are those of a join table whose columns are numbered by `payload`.
  void ScanPayload(const PayloadColumns* payload) { scanned_payload_ = payload; }
  /// The rows scanned are stored ones, of several relations; their columns are numbered by `columns`.
  void ScanStored(const PayloadColumns* columns) { stored_ = columns; }
  /// From here on columns of `relation` are payload columns of join table `join`, numbered by `payload`.
  void AddJoin(int relation, int join, const PayloadColumns* payload) { joined_[relation] = {join, payload}; }
  /// From here on what is computed of the scanned relation is in registers from `first` on.
  void HoldComputed(int first) { first_held_ = first; }
  /// From here on register `r` tells whether a row of `relation` matches.
  void AddMark(int relation, int r) { marks_[relation] = r; }

  bool Find(const Expr& leaf, SectionBuilder* b, vm::Operand* operand) override;
  bool FindComputed(const Expr& e, SectionBuilder* b, vm::Operand* operand) override;
  ValueRange Range(const Expr& leaf) const override { return RangeByStatistics(q_, leaf); }
  int TableSlot(const Expr& column, SectionBuilder* b) override;

 private:
  struct Joined {
    int join;
    const PayloadColumns* payload;
  };
  int SlotOf(const Expr& column, SectionBuilder* b) const;
  static int SlotOf(int number, const SqlType& type, SectionBuilder* b);

  const Query& q_;
  int scanned_;
  const std::vector<std::vector<const Expr*>>* computed_;
  const PayloadColumns* scanned_payload_ = nullptr;
  const PayloadColumns* stored_ = nullptr;
  std::map<int, Joined> joined_;
  std::map<int, int> marks_;  ///< relation -> register
  int first_held_ = -1;       ///< a register; -1: none holds what is computed
};

/// Where the value of an aggregate of SQL is: columns of the section that groups, or, before it has columns, numbers of
/// its aggregates.
struct AggregateColumns {
  int value = -1;  ///< the sum, extreme or count; of a state of several words the first, the others follow it
  int count = -1;  ///< kAvg: the count
};

/// Columns of a group table under HAVING and the outputs.
class GroupScope : public Scope {
 public:
  /// `columns`: types of the group table's columns; `aggregates`: where those of `q` are among them.
  GroupScope(const Query& q, const std::vector<SqlType>& columns, const std::vector<AggregateColumns>& aggregates)
      : q_(q), columns_(columns), aggregates_(aggregates) {}

  bool Find(const Expr& leaf, SectionBuilder* b, vm::Operand* operand) override;
  Status Compute(const Expr& leaf, SectionBuilder* b) override;

 private:
  vm::Operand Slot(int column, SectionBuilder* b);
  /// Leaves a count in A.
  void Count(int column, SectionBuilder* b);
  /// Leaves in A what the state of SumF or MomentsF stands for whose words are the columns from `column` on.
  void Total(vm::Opcode aggregate, int column, SectionBuilder* b);
  /// Leaves in A what one of the rules Sample.. and Population.. makes of the state of MomentsF from `column` on.
  void Moments(FinalRule rule, int column, SectionBuilder* b);

  const Query& q_;
  const std::vector<SqlType>& columns_;
  const std::vector<AggregateColumns>& aggregates_;
  std::map<vm::Opcode, int> words_;  ///< by aggregate: the first of the registers that Total reads
};

}  // namespace tessera
