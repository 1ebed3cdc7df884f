// Instructions, registers, masks and predicates of a section.
#include "compiler/generate/section_builder.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera {

using vm::Opcode;
using vm::Operand;
using vm::Predicate;

namespace {

constexpr const char* kStore = "Store what a part of it makes in a table, and read that.";

}  // namespace

Status Scope::Compute(const Expr& leaf, SectionBuilder*) {
  return Status(ErrorCode::kInternal, "a column is not at hand where it is used").At(leaf.position);
}

// ---- Common subexpressions, operands --------------------------------------------------------------------------------

void SectionBuilder::KeepValue(const Expr& e, int from) {
  // More registers than these would lie beyond the caches of a core, and in device memory on a GPU.
  constexpr size_t kMostKept = 16;
  const int number = common_.ClassOf(e);
  if (number < 0 || kept_.size() >= kMostKept) return;
  int cost = 0;
  for (size_t i = static_cast<size_t>(from); i < section.code.size(); ++i) {
    const vm::OpcodeInfo& info = vm::Info(section.code[i].op);
    cost += info.loop == vm::Loop::Long || info.tier == vm::Tier::Host ? 4 : 1;
  }
  // To store it costs one instruction; so does to load it, if it is not an operand.
  if ((common_.Uses(number) - 1) * (cost - 1) < 2) return;
  const bool widened = section.code.back().op == Opcode::IToW;  // it was computed in A, where it takes half the room
  if (widened) section.code.pop_back();
  const int r = NewRegister(widened ? SqlType::Of(TypeId::kBigint) : e.type);
  Store(r);
  if (widened) Widen();
  kept_[number] = {r, masks_.current()};
}

int SectionBuilder::KeptIn(const Expr& e) const {
  if (kept_.empty()) return -1;
  const auto found = kept_.find(common_.ClassOf(e));
  return found == kept_.end() || !masks_.IsWithin(found->second.mask) ? -1 : found->second.reg;
}

bool SectionBuilder::FindOperand(const Expr& e, bool wide, Operand* o) {
  if (const int r = KeptIn(e); r >= 0 && wide == IsWide(section.registers[static_cast<size_t>(r)])) {
    *o = Operand::Register(r);
    return true;
  }
  if (wide != IsWide(e.type)) return false;
  switch (e.kind) {
    case Expr::Kind::kConstant:
      *o = Operand::Constant(
          constants_->Add(e.constant.type.id == TypeId::kNull ? tessera::Value::Null(e.type) : e.constant));
      return true;
    case Expr::Kind::kParameter:
      *o = Operand::Constant(constants_->AddHeld(e.constant, e.index));
      return true;
    case Expr::Kind::kColumn:
    case Expr::Kind::kGroup:
    case Expr::Kind::kAggregate:
      return scope_->Find(e, this, o);
    case Expr::Kind::kFunction:
      return scope_->FindComputed(e, this, o);
    case Expr::Kind::kWindow:
    case Expr::Kind::kOuter:
    case Expr::Kind::kSubquery:
      return false;
  }
  return false;
}

// ---- Instructions, registers, masks ---------------------------------------------------------------------------------

int SectionBuilder::Emit(Opcode op, int p1, int32_t p2, int32_t p3, int32_t p4) {
  if (op == Opcode::Filter) {
    filter_uses_.resize(std::max(filter_uses_.size(), static_cast<size_t>(p1) + 1));
    ++filter_uses_[static_cast<size_t>(p1)];
  }
  section.code.push_back({op, static_cast<uint16_t>(p1), p2, p3, p4});
  masks_.Follow(section.code.back());
  return static_cast<int>(section.code.size()) - 1;
}

int SectionBuilder::NewRegister(const SqlType& type) {
  for (size_t i = 0; i < free_registers_.size(); ++i) {
    const int r = free_registers_[i];
    if (section.registers[static_cast<size_t>(r)].storage() != type.storage()) continue;
    free_registers_.erase(free_registers_.begin() + static_cast<ptrdiff_t>(i));
    section.registers[static_cast<size_t>(r)] = type;
    return r;
  }
  section.registers.push_back(type);
  return static_cast<int>(section.registers.size()) - 1;
}

int SectionBuilder::NewMask() {
  if (!free_masks_.empty()) {
    const int m = free_masks_.back();
    free_masks_.pop_back();
    return m;
  }
  return section.masks++;
}

void SectionBuilder::Store(int r) {
  Emit(IsWide(section.registers[static_cast<size_t>(r)]) ? Opcode::StoreW : Opcode::Store, 0, r);
}
void SectionBuilder::Load(Operand o, const SqlType& type) {
  Emit(IsWide(type) ? Opcode::LoadW : Opcode::Load, 0, o.Pack());
}
void SectionBuilder::LoadConstant(const tessera::Value& v) { Load(Operand::Constant(constants_->Add(v)), v.type); }

void SectionBuilder::NullToZero() {
  const int r = NewRegister(SqlType::Of(TypeId::kBigint)), m = NewMask();
  Store(r);
  Emit(Opcode::MaskSave, m);
  Emit(Opcode::FilterNull);
  LoadConstant(tessera::Value::Int(SqlType::Of(TypeId::kBigint), 0));
  Store(r);
  Emit(Opcode::MaskLoad, m);
  Load(Operand::Register(r), SqlType::Of(TypeId::kBigint));
  FreeRegister(r);
  FreeMask(m);
}

Status SectionBuilder::CheckLimits() const {
  const auto refuse = [](const char* what, int most, const char* hint) {
    return Unsupported(fmt::format("a statement {} {} is not supported", what, most), -1, hint);
  };
  if (program_->constants.size() > vm::kMaxConstants)
    return refuse("with more different constants than", vm::kMaxConstants,
                  "Load a long list into a table, and join with it.");
  if (section.code.size() > vm::kMaxInstructions)
    return refuse("whose expressions take, in one pipeline, more instructions than", vm::kMaxInstructions, kStore);
  if (section.registers.size() > vm::kMaxRegisters)
    return refuse("whose columns and expressions take, in one pipeline, more registers than", vm::kMaxRegisters,
                  kStore);
  if (section.slots.size() > vm::kMaxSlots)
    return refuse("that reads, in one pipeline, more columns than", vm::kMaxSlots, kStore);
  if (section.masks > vm::kMaxMasks)
    return refuse("whose conditions and CASEs take, in each other, more masks than", vm::kMaxMasks,
                  "Compute the inner ones in a derived table with OFFSET 0.");
  return Status::Ok();
}

void SectionBuilder::CheckType(const SqlType& type, bool wide, ValueRange range) {
  const ValueRange all = RangeOfType(type);
  if (range.Within(all.low, all.high)) return;
  if (wide) {
    Emit(Opcode::CheckW, 0, constants_->Wide(all.low), constants_->Wide(all.high), vm::PackType(type));
  } else {
    // A has 64 bits: the operation has caught what exceeds them.
    if (all.low <= INT64_MIN && all.high >= INT64_MAX) return;
    Emit(Opcode::CheckI, 0, constants_->Int(Low64(all.low)), constants_->Int(Low64(all.high)), vm::PackType(type));
  }
}

void SectionBuilder::KeepNone() {
  LoadConstant(tessera::Value::Int(SqlType::Of(TypeId::kBoolean), 0));
  Emit(Opcode::FilterTrue);
}

int SectionBuilder::AddPredicate(const Predicate& p) {
  for (size_t i = 0; i < section.predicates.size(); ++i) {
    if (section.predicates[i] == p) return static_cast<int>(i);
  }
  section.predicates.push_back(p);
  return static_cast<int>(section.predicates.size()) - 1;
}

}  // namespace tessera
