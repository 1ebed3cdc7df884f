// Expressions of a section: each goes to the generator that knows its instructions, and these come back for its parts.
#include "compiler/generate/condition_generator.h"
#include "compiler/generate/section_builder.h"
#include "compiler/generate/value_generator.h"

namespace tessera {

using vm::Opcode;
using vm::Operand;

Status SectionBuilder::Value(const Expr& e) { return ValueGenerator(this).Value(e); }
Status SectionBuilder::Keep(const Expr& e, bool truth) { return ConditionGenerator(this).Keep(e, truth); }

Status SectionBuilder::WideValue(const Expr& e) {
  TESSERA_TRY(Value(e));
  if (!IsWide(e.type)) Widen();
  return Status::Ok();
}

Status SectionBuilder::NarrowValue(const Expr& e) {
  if (e.kind == Expr::Kind::kConstant && e.type.id == TypeId::kDecimal && IsWide(e.type)) {
    const SqlType bigint = SqlType::Of(TypeId::kBigint);
    LoadConstant(e.constant.null ? tessera::Value::Null(bigint) : tessera::Value::Int(bigint, Low64(e.constant.wide)));
    return Status::Ok();
  }
  TESSERA_TRY(Value(e));
  if (!IsWide(e.type)) return Status::Ok();
  if (section.code.back().op == Opcode::IToW) {  // it was computed in A
    section.code.pop_back();
  } else {
    Narrow();
  }
  return Status::Ok();
}

Status SectionBuilder::Key(const Expr& e) {
  TESSERA_TRY(Value(e));
  if (e.type.IsFloat()) Emit(Opcode::CanonF);
  return Status::Ok();
}

Status SectionBuilder::ValueIn(const Expr& e, int r) {
  const int number = common_.ClassOf(e);
  Operand o;
  if (number < 0 || FindOperand(e, &o)) {
    TESSERA_TRY(Value(e));
    Store(r);
    return Status::Ok();
  }
  TESSERA_TRY(ValueGenerator(this).Compute(e));
  Store(r);
  kept_[number] = {r, masks_.current()};
  return Status::Ok();
}

Status SectionBuilder::Truth(const Expr& e) {
  const SqlType boolean = SqlType::Of(TypeId::kBoolean);
  const int result = NewRegister(boolean), entry = NewMask();
  Emit(Opcode::MaskSave, entry);
  LoadConstant(e.nullable ? tessera::Value::Null(boolean) : tessera::Value::Int(boolean, 0));
  Store(result);
  TESSERA_TRY(Keep(e));
  LoadConstant(tessera::Value::Int(boolean, 1));
  Store(result);
  Emit(Opcode::MaskLoad, entry);
  if (e.nullable) {
    TESSERA_TRY(Keep(e, false));
    LoadConstant(tessera::Value::Int(boolean, 0));
    Store(result);
    Emit(Opcode::MaskLoad, entry);
  }
  Load(Operand::Register(result), boolean);
  FreeRegister(result);
  FreeMask(entry);
  return Status::Ok();
}

}  // namespace tessera
