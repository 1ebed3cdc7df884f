// The sections of one query block. Private to compiler/.
//
// Start at: BlockGenerator::Run. Joins are in generate_join.cc, grouping in generate_group.cc. One thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/generate/section_builder.h"
#include "compiler/generate/section_scope.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/plan_sections.h"
#include "vm/program/program.h"

namespace tessera {

/// What all blocks of one statement share.
struct Assembly {
  std::unique_ptr<vm::Program> program = std::make_unique<vm::Program>();
  ConstantPool constants{program.get()};
  std::map<const Plan*, int> sections;  ///< the section that makes the rows of a block
  std::map<const Query*, int> working;  ///< of recursions: the section whose rows a working table stands for
  std::vector<double> estimates;        ///< per section, see Code
  PlanSections of_plan;
  bool key_ranges = true;  ///< see PlanOptions::invisible_join
};

/// Columns of relations: (relation, column).
using ColumnSet = std::set<std::pair<int, int>>;

/// The type of the column that holds the state of an aggregate; of a state of several words the first column's.
SqlType StateType(AggregateFunction function, const SqlType& argument);

/// How many of the outputs a section emits: all but the windows.
inline size_t EmittedOutputs(const Query& q) { return q.outputs.size() - q.windows.size(); }

/// In which order the arguments of aggregates are computed, by number: each after those that are a part of it. So the
/// value is at hand where a CASE would compute it for some rows only. May hold nullptr, which comes in its place.
std::vector<size_t> FeedingOrder(const std::vector<const Expr*>& arguments);

/// The first of the groupings that a block with DISTINCT aggregates has, as the second one reads its section.
struct FirstGroups {
  std::vector<const Expr*> keys;  ///< those of GROUP BY, and then `distinct`
  size_t group_keys = 0;
  std::vector<const Expr*> distinct;      ///< arguments of aggregates with DISTINCT, each once
  std::vector<AggregateColumns> partial;  ///< of the other aggregates of the block
  std::vector<SqlType> columns;
  std::vector<vm::AggregateSpec> aggregates;
  std::vector<size_t> states;  ///< the first column of each
};

class BlockGenerator {
  using Steps = std::span<const JoinStep>;

 public:
  BlockGenerator(const Plan& plan, Assembly* assembly)
      : q_(*plan.query),
        plan_(plan),
        assembly_(*assembly),
        program_(assembly->program.get()),
        constants_(assembly->constants) {}

  /// Adds the sections of the block, of those inside it and of those that follow it (Plan::union_all). Returns the
  /// number of the section that makes the last of their rows, after all others.
  Result<int> Run();

 private:
  // ---- codegen.cc
  /// Adds the sections of the block and of those inside it. The last one makes its rows.
  Status Block();
  /// Adds a section that makes the rows of blocks[*next] and of those after it, as many as are rows of values and fit.
  /// `next` becomes the first that is left.
  Status RowsOfValues(const std::vector<const Plan*>& blocks, size_t* next);
  /// Generates the block of a derived table, unless that has been done.
  Status GenerateRowsOf(const Plan& plan);
  /// Makes the section scan `relation`; KeepLive has to come before anything else is emitted.
  void SetSource(int relation, vm::Section* s);
  /// Leaves out the rows of the scanned relation that have been deleted.
  void KeepLive(int relation, SectionBuilder* b);
  /// The number of the relation's stored table in the program.
  int TableReference(int relation);
  std::string ScanLabel(int relation) const;
  /// Ends the section. `rows`: how many rows the planner expects from it; -1 if there is no estimate.
  Status Finish(SectionBuilder* b, double rows);
  /// The section that was added last does this part of the block.
  void Note(PlanSections::Part part) {
    assembly_.of_plan.of_block[{&plan_, part}] = static_cast<int>(program_->sections.size()) - 1;
  }
  Status Ungrouped();
  /// Emits a row of the outputs of `q`.
  static Status Outputs(const Query& q, SectionBuilder* b);
  /// Groups the rows of the last section by all their columns.
  Status Distinct();

  // ---- generate_join.cc
  /// Numbers the payload of each join table: first its computed columns, then the columns that are read after its build.
  void FindNeededColumns();
  /// `needed`: the columns that the pipeline of `joins` reads from them.
  void NumberPayloads(const std::vector<JoinStep>& joins, const ColumnSet& needed);
  void NoteColumns(const Expr& e, ColumnSet* needed) const;
  PayloadColumns NumberPayload(const JoinStep& j, const ColumnSet& needed) const;
  SqlType TypeOf(const std::pair<int, int>& column) const;
  ExprPtr ValueOf(const std::pair<int, int>& column) const;
  const std::vector<const Expr*>& ComputedOf(int relation) const {
    return plan_.computed[static_cast<size_t>(relation)];
  }
  /// Whether the join tables of two steps have the same rows and columns.
  bool MakesSameTable(const JoinStep& a, const JoinStep& b) const;
  /// The section that fills the join table of a step, and before it those of its own joins.
  Status BuildSide(const JoinStep& j);
  Status FillTable(const JoinStep& j);
  /// The sections that build the sides of a pipeline; and, after the first `stored` of them, one that stores its rows.
  Status Sides(int driver, Steps joins, size_t stored);
  Status StoreRows(int driver, Steps joins);
  /// Numbers the columns that are stored of what the pipeline needs.
  void NumberStored(int driver, Steps joins, size_t stored, ColumnSet needed);
  /// The section scans stored rows.
  void ScanStored(int driver, SectionBuilder* b, PipelineScope* scope);
  /// Tells the section which expressions it is going to evaluate: those of joins, then keys, then other values.
  void AnnounceJoined(SectionBuilder* b) const;
  /// The filters of a pipeline's driver by when they are tested: before its joins, and after the first of them.
  struct DriverFilters {
    std::vector<const Expr*> first, late;
  };
  /// A filter that reads several columns of each row is late where it costs less to look into the first join table first.
  DriverFilters FiltersOf(int driver, Steps joins) const;
  static void AnnouncePipeline(const DriverFilters& filters, Steps joins, SectionBuilder* b);
  /// The front of the pipeline: scan, filters, probes. Loops over several matches are left open; CloseLoops ends them.
  Status Front(SectionBuilder* b, PipelineScope* scope);
  void ScanDriver(SectionBuilder* b, PipelineScope* scope);
  /// Probes the join tables of a pipeline, one after another. `late`: filters after the first of them.
  Status Joins(Steps joins, const std::vector<const Expr*>& late, SectionBuilder* b, PipelineScope* scope);
  void FilterByKeyRanges(Steps joins, SectionBuilder* b, PipelineScope* scope);
  /// Puts what the grid needs of the driver's rows into registers.
  Status ComputeOfDriver(SectionBuilder* b, PipelineScope* scope);
  /// Probes the join table of a step and tests the predicates that can be tested then. `narrowed`: earlier steps may
  /// have dropped all rows.
  Status Join(const JoinStep& j, bool narrowed, SectionBuilder* b, PipelineScope* scope);
  Status LeftJoin(const JoinStep& j, int32_t operand, SectionBuilder* b, PipelineScope* scope);
  Status MatchJoin(const JoinStep& j, int32_t operand, SectionBuilder* b, PipelineScope* scope);
  /// The columns of the side are at hand from here on.
  void AddJoin(const JoinStep& j, PipelineScope* scope);
  /// Opens a loop: what follows is done for every match of the live rows.
  void OpenLoop(SectionBuilder* b, int join, vm::Opcode next);
  /// Ends the open loops, the innermost first. An empty mask skips to the end of its loop.
  void CloseLoops(SectionBuilder* b);
  void PatchSkips(SectionBuilder* b, size_t from);
  /// Puts values into new, consecutive registers.
  Status KeysInRegisters(const std::vector<const Expr*>& keys, SectionBuilder* b, int32_t* operand);

  // ---- generate_group.cc
  std::vector<const Expr*> GroupKeys() const;
  bool HasDistinctAggregate() const;
  Status GroupedDirectly();
  /// With DISTINCT aggregates: first group by the keys and all distinct arguments, then by the keys. The first grouping
  /// is fed once per distinct argument, with the other arguments NULL, and once more with all of them NULL for the
  /// plain aggregates. The second one aggregates the distinct values of each argument and ignores NULLs.
  Status GroupedTwice();
  Result<FirstGroups> GroupFirst();
  /// The Group instruction over the keys of GROUP BY.
  Status GroupBy(const std::vector<const Expr*>& keys, SectionBuilder* b);
  /// HAVING and the outputs over the groups of the section before.
  Status AboveGroups(const std::vector<AggregateColumns>& columns);

  // ---- generate_window.cc
  /// Adds the windows to the section that has made the rows; the values of aggregates are computed in one more section.
  Status Windows();

  struct Loop {
    vm::Opcode next;
    int join, body, mask;
    size_t skips;  ///< skips emitted before it belong to outer loops
  };

  const Query& q_;
  const Plan& plan_;
  Assembly& assembly_;
  vm::Program* program_;
  ConstantPool& constants_;
  JoinStep driver_;  ///< Plan::build_driver: the join table of the driver's rows, which no section probes
  std::map<const JoinStep*, PayloadColumns> payload_;
  std::map<const JoinStep*, int> join_of_;  ///< the join table of a step
  struct StoredRows {
    int section = -1;
    PayloadColumns columns;
  };
  std::map<int, StoredRows> stored_;  ///< by the relation that drives their pipeline
  std::vector<Loop> loops_;
  std::vector<int> skips_;  ///< SkipIfNone instructions whose target is not known yet
};

}  // namespace tessera
