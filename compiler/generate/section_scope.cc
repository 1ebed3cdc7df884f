#include "compiler/generate/section_scope.h"

#include "compiler/plan/plan.h"
#include "vm/meaning/aggregate.h"

namespace tessera {

using vm::Opcode;
using vm::Operand;

bool PipelineScope::Find(const Expr& leaf, SectionBuilder* b, Operand* operand) {
  if (leaf.kind != Expr::Kind::kColumn) return false;
  if (const auto mark = marks_.find(leaf.relation); leaf.column == kMarkColumn && mark != marks_.end()) {
    *operand = Operand::Register(mark->second);
    return true;
  }
  if (stored_ != nullptr) {
    if (const auto column = stored_->find({leaf.relation, leaf.column}); column != stored_->end()) {
      *operand = Operand::Slot(SlotOf(column->second, leaf.type, b));
      return true;
    }
  } else if (leaf.relation == scanned_) {
    *operand = Operand::Slot(SlotOf(leaf, b));
    return true;
  }
  auto joined = joined_.find(leaf.relation);
  if (joined == joined_.end()) return false;
  auto column = joined->second.payload->find({leaf.relation, leaf.column});
  if (column == joined->second.payload->end()) return false;
  *operand = Operand::Payload(joined->second.join, column->second);
  return true;
}

bool PipelineScope::FindComputed(const Expr& e, SectionBuilder* b, Operand* operand) {
  for (int r = 0; computed_ != nullptr && r < static_cast<int>(computed_->size()); ++r) {
    const int number = FindSame((*computed_)[static_cast<size_t>(r)], e);
    if (number < 0) continue;
    if (r == scanned_ && first_held_ >= 0) {
      *operand = Operand::Register(first_held_ + number);
      return true;
    }
    const std::pair<int, int> column{r, kFirstComputed + number};
    const PayloadColumns* const scanned = stored_ != nullptr ? stored_ : scanned_payload_;
    if (scanned != nullptr && scanned->contains(column)) {
      *operand = Operand::Slot(SlotOf(scanned->at(column), e.type, b));
      return true;
    }
    const auto joined = joined_.find(r);
    if (joined == joined_.end() || !joined->second.payload->contains(column)) continue;
    *operand = Operand::Payload(joined->second.join, joined->second.payload->at(column));
    return true;
  }
  return false;
}

int PipelineScope::TableSlot(const Expr& column, SectionBuilder* b) {
  const bool stored = column.kind == Expr::Kind::kColumn && column.relation == scanned_ &&
                      scanned_payload_ == nullptr && stored_ == nullptr &&
                      q_.relations[static_cast<size_t>(scanned_)].table != nullptr;
  return stored ? SlotOf(column, b) : -1;
}

int PipelineScope::SlotOf(const Expr& column, SectionBuilder* b) const {
  return SlotOf(scanned_payload_ == nullptr ? column.column : scanned_payload_->at({column.relation, column.column}),
                column.type, b);
}

int PipelineScope::SlotOf(int number, const SqlType& type, SectionBuilder* b) {
  for (size_t i = 0; i < b->section.slots.size(); ++i) {
    if (b->section.slots[i].column == number && b->section.slots[i].map < 0) return static_cast<int>(i);
  }
  b->section.slots.push_back({number, type, -1});
  return static_cast<int>(b->section.slots.size()) - 1;
}

bool GroupScope::Find(const Expr& leaf, SectionBuilder* b, Operand* operand) {
  int column = -1;
  if (leaf.kind == Expr::Kind::kGroup) {
    column = leaf.index;
  } else if (leaf.kind == Expr::Kind::kAggregate) {
    const Aggregate& a = q_.aggregates[static_cast<size_t>(leaf.index)];
    const int value = aggregates_[static_cast<size_t>(leaf.index)].value;
    const FinalRule rule = Info(a.function).final_value;
    if (Info(a.function).state == StateRule::kWords || rule == FinalRule::kQuotient) return false;
    if (columns_[static_cast<size_t>(value)].storage() != leaf.type.storage()) return false;
    if (rule == FinalRule::kSum && IsWide(leaf.type)) return false;  // its digits are checked
    column = value;
  }
  if (column < 0) return false;
  *operand = Slot(column, b);
  return true;
}

Status GroupScope::Compute(const Expr& leaf, SectionBuilder* b) {
  if (leaf.kind != Expr::Kind::kAggregate) return Scope::Compute(leaf, b);
  const Aggregate& a = q_.aggregates[static_cast<size_t>(leaf.index)];
  const AggregateColumns& l = aggregates_[static_cast<size_t>(leaf.index)];
  const SqlType& type = columns_[static_cast<size_t>(l.value)];
  switch (Info(a.function).final_value) {
    case FinalRule::kCount:
      Count(l.value, b);
      return Status::Ok();
    case FinalRule::kQuotient: {
      // sum / count; no values give NULL / 0.
      const int r = b->NewRegister(SqlType::Of(TypeId::kDouble));
      Count(l.count, b);
      b->Emit(Opcode::IToF);
      b->Store(r);
      if (a.argument->type.IsFloat()) {
        Total(Opcode::SumF, l.value, b);
      } else {
        b->Load(Slot(l.value, b), type);
        b->Emit(Opcode::WToF);
        const int scale = a.argument->type.scale;
        if (scale > 0) {
          b->Emit(Opcode::DivF, 0,
                  Operand::Constant(b->constants()->Float(static_cast<double>(PowerOf10(scale)))).Pack());
        }
      }
      b->Emit(Opcode::DivF, 0, Operand::Register(r).Pack());
      b->FreeRegister(r);
      return Status::Ok();
    }
    case FinalRule::kSum:
      if (a.argument->type.IsFloat()) {
        Total(Opcode::SumF, l.value, b);
        return Status::Ok();
      }
      b->Load(Slot(l.value, b), type);
      if (IsWide(type) && !IsWide(leaf.type)) {
        b->Narrow();
      } else if (IsWide(type)) {
        const int128_t most = PowerOf10(38) - 1;
        b->Emit(Opcode::CheckW, 0, b->constants()->Wide(-most), b->constants()->Wide(most), vm::PackType(leaf.type));
      }
      return Status::Ok();
    case FinalRule::kState:
      b->Load(Slot(l.value, b), type);
      if (IsWide(type) && !IsWide(leaf.type)) b->Narrow();
      return Status::Ok();
    case FinalRule::kDeviations:
      Total(Opcode::MomentsF, l.value, b);
      return Status::Ok();
    case FinalRule::kSampleVariance:
    case FinalRule::kPopulationVariance:
    case FinalRule::kSampleDeviation:
    case FinalRule::kPopulationDeviation:
      Moments(Info(a.function).final_value, l.value, b);
      return Status::Ok();
  }
  return Scope::Compute(leaf, b);
}

Operand GroupScope::Slot(int column, SectionBuilder* b) {
  for (size_t i = 0; i < b->section.slots.size(); ++i) {
    if (b->section.slots[i].column == column) return Operand::Slot(static_cast<int>(i));
  }
  b->section.slots.push_back({column, columns_[static_cast<size_t>(column)], -1});
  return Operand::Slot(static_cast<int>(b->section.slots.size()) - 1);
}

void GroupScope::Count(int column, SectionBuilder* b) {
  b->Load(Slot(column, b), columns_[static_cast<size_t>(column)]);
  if (!IsWide(columns_[static_cast<size_t>(column)])) return;
  b->Narrow();  // partial counts were added up in W, and none at all is 0
  b->NullToZero();
}

void GroupScope::Total(Opcode aggregate, int column, SectionBuilder* b) {
  const int words = static_cast<int>(vm::ColumnClasses(aggregate).size()) - 1;
  int& first = words_.try_emplace(aggregate, -1).first->second;
  if (first < 0) {
    first = static_cast<int>(b->section.registers.size());
    b->section.registers.resize(b->section.registers.size() + static_cast<size_t>(words), SqlType::Of(TypeId::kBigint));
  }
  const auto load = [&](int word) { b->Load(Slot(column + word, b), columns_[static_cast<size_t>(column + word)]); };
  for (int k = 0; k < words; ++k) {
    load(1 + k);
    b->Store(first + k);
  }
  load(0);
  b->Emit(aggregate == Opcode::SumF ? Opcode::TotalF : Opcode::DeviationsF, 0, Operand::Register(first).Pack(), words);
}

void GroupScope::Moments(FinalRule rule, int column, SectionBuilder* b) {
  const SqlType real = SqlType::Of(TypeId::kDouble);
  const bool sample = rule == FinalRule::kSampleVariance || rule == FinalRule::kSampleDeviation;
  const int divisor = b->NewRegister(real);
  b->Load(Slot(column, b), columns_[static_cast<size_t>(column)]);
  b->Emit(Opcode::IToF);
  if (sample) b->Emit(Opcode::SubF, 0, Operand::Constant(b->constants()->Float(1)).Pack());
  b->Store(divisor);
  Total(Opcode::MomentsF, column, b);
  b->Emit(Opcode::DivF, 0, Operand::Register(divisor).Pack());  // NULL if it is 0: a sample of one value
  b->FreeRegister(divisor);
  if (rule == FinalRule::kSampleDeviation || rule == FinalRule::kPopulationDeviation) b->Emit(Opcode::SqrtF);
}

}  // namespace tessera
