// Windows over the rows of a block, and the section that computes the values of aggregates from their states.
#include <algorithm>
#include <utility>

#include "compiler/generate/block_generator.h"
#include "compiler/query/subquery_expr.h"
#include "compiler/rewrite/fold_aggregates.h"
#include "vm/after/window.h"

namespace tessera {

using vm::Opcode;
using vm::Section;
using vm::WindowFunction;
using vm::WindowSpec;

namespace {

/// Windows of a section, and where their columns are.
class WindowColumns {
 public:
  explicit WindowColumns(Section* s) : section_(*s), next_(static_cast<int>(s->columns.size())) {}

  /// The first column of the window, which is added unless it is there.
  int Add(const WindowSpec& w) {
    const auto known = std::find(section_.after.windows.begin(), section_.after.windows.end(), w);
    const auto number = static_cast<size_t>(known - section_.after.windows.begin());
    if (known != section_.after.windows.end()) return first_[number];
    section_.after.windows.push_back(w);
    first_.push_back(next_);
    next_ += static_cast<int>(vm::TypesOf(w).size());
    return first_.back();
  }

 private:
  Section& section_;
  std::vector<int> first_;  ///< of each window
  int next_;
};

}  // namespace

Status BlockGenerator::Windows() {
  Section& s = program_->sections.back();
  WindowColumns columns(&s);
  // The outputs over the columns of the section: a value as it is, or an aggregate.
  Query finals;
  std::vector<AggregateColumns> states;
  bool in_place = true;  // every output is the section's column of its number
  const auto add_column = [&](int column, const Output& o) {
    in_place &= column == static_cast<int>(finals.outputs.size());
    finals.outputs.push_back({MakeLeaf(Expr::Kind::kGroup, column, o.expr->type, o.expr->nullable), o.name});
  };
  const size_t emitted = EmittedOutputs(q_);
  for (size_t i = 0; i < emitted; ++i) add_column(static_cast<int>(i), q_.outputs[i]);
  const SqlType bigint = SqlType::Of(TypeId::kBigint);
  for (size_t i = emitted; i < q_.outputs.size(); ++i) {
    const Window& w = q_.windows[static_cast<size_t>(q_.outputs[i].expr->index)];
    WindowSpec spec;
    spec.function = w.function;
    spec.type = w.type;
    spec.partition_keys = w.partition_keys;
    spec.order_keys = w.order_keys;
    spec.value = w.value;
    spec.count = w.count;
    spec.number = w.number;
    spec.fallback = w.fallback;
    spec.ignore_nulls = w.ignore_nulls;
    spec.frame = w.frame;
    spec.distinct = w.distinct;
    if (w.function == WindowFunction::kFold) {
      spec.fold = FoldOf(w.aggregate);
      for (const OrderKey& k : w.value_order) spec.order.push_back({k.output, k.descending, k.nulls_first});
      if (!w.parameter.null) spec.fold_constant = constants_.Add(w.parameter);
    }
    if (w.function != WindowFunction::kAggregate) {
      add_column(columns.Add(spec), q_.outputs[i]);
      continue;
    }
    const AggregateInfo& info = Info(w.aggregate);
    const Expr* const x = w.value < 0 ? nullptr : q_.outputs[static_cast<size_t>(w.value)].expr.get();
    WindowSpec count = spec;
    count.type = bigint;
    count.aggregate = x == nullptr ? Opcode::CountRows : IsWide(x->type) ? Opcode::CountW : Opcode::Count;
    AggregateColumns state;
    if (info.state == StateRule::kCount) {
      state.value = columns.Add(count);
    } else {
      spec.aggregate = info.opcodes.For(x->type.storage());
      spec.type = StateType(w.aggregate, x->type);
      state.value = columns.Add(spec);
      if (info.counted) state.count = columns.Add(count);
    }
    if (info.final_value == FinalRule::kCount || info.final_value == FinalRule::kState) {
      add_column(state.value, q_.outputs[i]);
      continue;
    }
    Aggregate a;
    a.function = w.aggregate;
    if (x != nullptr) a.argument = MakeColumn(0, w.value, x->type, x->nullable, -1);
    a.type = w.type;
    finals.outputs.push_back(
        {MakeLeaf(Expr::Kind::kAggregate, static_cast<int>(finals.aggregates.size()), w.type, true),
         q_.outputs[i].name});
    finals.aggregates.push_back(std::move(a));
    states.push_back(state);
  }
  if (finals.aggregates.empty() && in_place) return Status::Ok();
  const std::vector<SqlType> types = vm::TypesOfRows(s);
  GroupScope scope(finals, types, states);
  SectionBuilder b(program_, &constants_, &scope);
  b.section.source_kind = Section::Source::kSection;
  b.section.source = static_cast<int>(program_->sections.size()) - 1;
  b.section.label = "windows";
  for (const Output& o : finals.outputs) b.section.registers.push_back(o.expr->type);
  b.section.columns = b.section.registers;
  TESSERA_TRY(Outputs(finals, &b));
  TESSERA_TRY(Finish(&b, plan_.made_rows));
  Note(PlanSections::Part::kWindows);
  return Status::Ok();
}

}  // namespace tessera
