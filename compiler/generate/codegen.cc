// Pipelines: one section for each build side, one for the driver with its probes, and above it the stages of grouping,
// DISTINCT and ordering.
//
//   scan build side -> Build                   once per joined relation
//   scan driver, probe ... -> Group | Emit     a grid of sorted sides builds the driver, too, and scans its rows
//   groups -> HAVING, outputs -> Emit          if grouped; twice Group if an aggregate is DISTINCT
//   rows -> Group -> Emit                      if DISTINCT
//   rows in order, windows -> rows             if it has window functions, and again if some of them are aggregates
//   one row: values, Emit, values, Emit ...    VALUES, and arms of UNION ALL without FROM
//
// Blocks of derived tables come first, each once; then their rows are scanned like a table.

#include "compiler/generate/codegen.h"

#include <utility>

#include "compiler/generate/block_generator.h"
#include "compiler/generate/copy_sections.h"
#include "compiler/rewrite/fold_aggregates.h"
#include "compiler/rewrite/run_rows.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {

using vm::Opcode;
using vm::Operand;
using vm::Section;

Result<int> BlockGenerator::Run() {
  std::vector<const Plan*> blocks = {&plan_};
  for (const auto& more : plan_.union_all) blocks.push_back(more.get());
  int rows = -1;
  for (size_t i = 0; i < blocks.size();) {
    if (blocks.size() > 1 && plan_.query->working == nullptr && IsRowOfValues(*blocks[i])) {
      TESSERA_TRY(RowsOfValues(blocks, &i));
    } else {
      TESSERA_TRY(BlockGenerator(*blocks[i++], &assembly_).Block());
    }
    const char* const store = "Store the rows of a part of it in a table, and read that.";
    if (program_->sections.size() > vm::kMaxSections) {
      return Unsupported("a statement of more than " + std::to_string(vm::kMaxSections) + " pipelines is not supported",
                         -1, store);
    }
    if (program_->joins.size() > vm::kMaxJoins) {
      return Unsupported("a statement of more than " + std::to_string(vm::kMaxJoins) + " joins is not supported", -1,
                         store);
    }
    vm::Section& made = program_->sections.back();
    if (i > 1 && plan_.query->working != nullptr) {
      made.recursion.first = rows;
      made.recursion.distinct = plan_.query->distinct;
      made.recursion.limit = plan_.query->turn_limit;
    } else {
      made.after.append_to = rows;
    }
    rows = static_cast<int>(program_->sections.size()) - 1;
    if (plan_.query->working != nullptr) assembly_.working[plan_.query->working.get()] = rows;
  }
  return rows;
}

Status BlockGenerator::Block() {
  for (const auto& derived : plan_.derived) {
    if (derived != nullptr) TESSERA_TRY(GenerateRowsOf(*derived));
  }
  FindNeededColumns();
  TESSERA_TRY(Sides(plan_.driver, plan_.joins, plan_.stored));
  if (plan_.build_driver) {  // a join table that no section probes
    driver_.side_rows = plan_.rows[static_cast<size_t>(plan_.driver)];
    driver_.build_order = plan_.joins[0].probe_order;
    TESSERA_TRY(BuildSide(driver_));
  }
  if (q_.grouped) {
    TESSERA_TRY(q_.aggregates.empty() || !HasDistinctAggregate() ? GroupedDirectly() : GroupedTwice());
  } else {
    TESSERA_TRY(Ungrouped());
  }
  if (q_.distinct) TESSERA_TRY(Distinct());
  // Order and limit belong to the last section.
  Note(PlanSections::Part::kRows);
  Section& last = program_->sections.back();
  for (const OrderKey& k : q_.order_by) last.after.order.push_back({k.output, k.descending, k.nulls_first});
  last.after.limit = q_.limit;
  last.after.offset = q_.offset;
  last.after.repeat = q_.repeat;
  if (q_.folds()) {
    last.keys = q_.fold_keys;
    last.after.fold.kind = FoldOf(q_.fold);
    last.after.fold.distinct = q_.fold_distinct;
    if (!q_.fold_parameter.null) last.after.fold.constant = constants_.Add(q_.fold_parameter);
  }
  return q_.windows.empty() ? Status::Ok() : Windows();
}

Status BlockGenerator::GenerateRowsOf(const Plan& plan) {
  if (plan.query->is_working) assembly_.sections[&plan] = assembly_.working.at(plan.query);
  if (assembly_.sections.contains(&plan) || plan.query->series >= 0) return Status::Ok();
  TESSERA_ASSIGN(const int section, BlockGenerator(plan, &assembly_).Run());
  assembly_.sections[&plan] = section;
  return Status::Ok();
}

void BlockGenerator::SetSource(int relation, Section* s) {
  const Relation& r = q_.relations[static_cast<size_t>(relation)];
  s->label = ScanLabel(relation);
  if (r.query != nullptr && r.query->series >= 0) {
    s->source_kind = Section::Source::kSeries;
    s->source_rows = r.query->series;
    return;
  }
  s->source_kind = r.table != nullptr ? Section::Source::kTable : Section::Source::kSection;
  s->source = r.table != nullptr ? TableReference(relation)
                                 : assembly_.sections.at(plan_.derived[static_cast<size_t>(relation)].get());
}

void BlockGenerator::KeepLive(int relation, SectionBuilder* b) {
  const TableInfo* const table = q_.relations[static_cast<size_t>(relation)].table.get();
  if (table == nullptr || table->live_column < 0) return;
  const SqlType boolean = SqlType::Of(TypeId::kBoolean);
  b->section.slots.push_back({table->live_column, boolean, -1});
  vm::Predicate live;
  live.slot = static_cast<int32_t>(b->section.slots.size()) - 1;
  live.low = live.high = constants_.Add(Value::Int(boolean, 1));
  b->Emit(Opcode::Filter, b->AddPredicate(live));
}

int BlockGenerator::TableReference(int relation) {
  const TableInfo& t = *q_.relations[static_cast<size_t>(relation)].table;
  for (size_t i = 0; i < program_->tables.size(); ++i) {
    if (program_->tables[i].id == t.id && program_->tables[i].runs_of == t.runs_of) return static_cast<int>(i);
  }
  vm::TableRef& ref = program_->tables.emplace_back(vm::TableRef{t.id, t.schema.name, t.runs_of});
  if (t.runs_of >= 0) {
    for (const auto& tablet : t.tablets) ref.runs.push_back(static_cast<int32_t>(tablet->rows()));
  }
  return static_cast<int>(program_->tables.size()) - 1;
}

std::string BlockGenerator::ScanLabel(int relation) const {
  const Relation& r = q_.relations[static_cast<size_t>(relation)];
  if (r.table == nullptr) return "rows of " + (r.alias.empty() ? "a derived table" : r.alias);
  return "scan " + NameOfStored(r) + (r.alias == BaseName(r.table->schema.name) ? "" : " " + r.alias);
}

Status BlockGenerator::Finish(SectionBuilder* b, double rows) {
  b->Emit(Opcode::End);
  TESSERA_TRY(b->CheckLimits());
  program_->sections.push_back(std::move(b->section));
  assembly_.estimates.resize(program_->sections.size(), -1);
  assembly_.estimates.back() = rows;
  return Status::Ok();
}

Status BlockGenerator::Ungrouped() {
  PipelineScope scope(q_, plan_.driver, &plan_.computed);
  SectionBuilder b(program_, &constants_, &scope);
  for (size_t i = 0; i < EmittedOutputs(q_); ++i) b.section.registers.push_back(q_.outputs[i].expr->type);
  b.section.columns = b.section.registers;
  AnnounceJoined(&b);
  TESSERA_TRY(Front(&b, &scope));
  TESSERA_TRY(Outputs(q_, &b));
  CloseLoops(&b);
  return Finish(&b, plan_.joined_rows);
}

Status BlockGenerator::RowsOfValues(const std::vector<const Plan*>& blocks, size_t* next) {
  const Query& first = *blocks[*next]->query;
  PipelineScope scope(first, -1);
  SectionBuilder b(program_, &constants_, &scope);
  b.section.label = "values";
  for (const Output& o : first.outputs) b.section.registers.push_back(o.expr->type);
  b.section.columns = b.section.registers;
  const int all = b.NewMask();
  b.Emit(Opcode::MaskSave, all);
  int rows = 0;
  // (Half of the instructions are left for the last row.)
  for (; *next < blocks.size() && IsRowOfValues(*blocks[*next]) && b.next() < vm::kMaxInstructions / 2; ++*next) {
    const Plan& row = *blocks[*next];
    for (const Expr* c : row.constants) TESSERA_TRY(b.Keep(*c));
    TESSERA_TRY(Outputs(*row.query, &b));
    if (!row.constants.empty()) b.Emit(Opcode::MaskLoad, all);
    ++rows;
    assembly_.of_plan.of_block[{&row, PlanSections::Part::kPipeline}] = static_cast<int>(program_->sections.size());
  }
  return Finish(&b, rows);
}

Status BlockGenerator::Outputs(const Query& q, SectionBuilder* b) {
  // With a LIMIT, the first key of the order shows of most rows that they are not wanted. Then nothing else of them is
  // read.
  const size_t first = q.limit >= 0 && !q.order_by.empty() ? static_cast<size_t>(q.order_by[0].output) : 0;
  const auto value = [&](size_t i) { return b->ValueIn(*q.outputs[i].expr, static_cast<int>(i)); };
  if (first < EmittedOutputs(q)) TESSERA_TRY(value(first));
  for (size_t i = 0; i < EmittedOutputs(q); ++i) {
    if (i != first) TESSERA_TRY(value(i));
  }
  b->Emit(Opcode::Emit);
  return Status::Ok();
}

Status BlockGenerator::Distinct() {
  const std::vector<SqlType> columns = program_->sections.back().columns;
  class RowScope : public Scope {
    bool Find(const Expr&, SectionBuilder*, Operand*) override { return false; }
  } scope;
  for (int stage = 0; stage < 2; ++stage) {
    SectionBuilder b(program_, &constants_, &scope);
    b.section.source_kind = Section::Source::kSection;
    b.section.source = static_cast<int>(program_->sections.size()) - 1;
    b.section.registers = columns;
    b.section.columns = columns;
    for (size_t i = 0; i < columns.size(); ++i) {
      b.section.slots.push_back({static_cast<int32_t>(i), columns[i], -1});
      b.Load(Operand::Slot(static_cast<int>(i)), columns[i]);
      if (columns[i].IsFloat()) b.Emit(Opcode::CanonF);
      b.Store(static_cast<int>(i));
    }
    if (stage == 0) {
      b.section.label = "distinct rows";
      b.section.sink = Section::Sink::kGroups;
      b.section.keys = static_cast<int32_t>(columns.size());
      b.Emit(Opcode::Group, 0, Operand::Register(0).Pack(), b.section.keys);
    } else {
      b.section.label = "rows";
      b.Emit(Opcode::Emit);
    }
    TESSERA_TRY(Finish(&b, plan_.made_rows));
    if (stage == 0) Note(PlanSections::Part::kDistinct);
  }
  return Status::Ok();
}

Result<Code> Generate(const Plan& plan, const PlanOptions& options) {
  Assembly assembly;
  assembly.key_ranges = options.invisible_join;
  TESSERA_TRY(BlockGenerator(plan, &assembly).Run().status());
  const Query& query = *plan.query;
  for (int i = 0; i < query.visible; ++i) {
    const Output& o = query.outputs[static_cast<size_t>(i)];
    assembly.program->columns.push_back({o.name, o.expr->type});
  }
  assembly.estimates.resize(assembly.program->sections.size(), -1);
  RemoveCopies(assembly.program.get(), &assembly.estimates, &assembly.of_plan);
  return Code{std::move(assembly.program), std::move(assembly.estimates), std::move(assembly.of_plan),
              assembly.constants.held()};
}

}  // namespace tessera
