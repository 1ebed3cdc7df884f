// Writes the instructions of one section: registers, masks, predicates and constants, and the expressions and
// conditions that are made of them. Private to compiler/.
//
// A Scope knows where columns are. ValueGenerator and ConditionGenerator know which instructions an expression becomes;
// they write through this class.
//
// Start at: SectionBuilder::Value, SectionBuilder::Keep. Owned by one thread.
#pragma once

#include <vector>

#include "base/int128.h"
#include "base/status.h"
#include "compiler/bound_query.h"
#include "compiler/constant_pool.h"
#include "compiler/scope.h"
#include "compiler/value_range.h"
#include "vm/program.h"

namespace tessera {

class SectionBuilder {
 public:
  SectionBuilder(vm::Program* program, ConstantPool* constants, Scope* scope)
      : program_(program), constants_(constants), scope_(scope) {}

  vm::Section section;
  vm::Program* program() { return program_; }
  ConstantPool* constants() { return constants_; }
  Scope* scope() { return scope_; }
  ExprRanges ranges() const { return ExprRanges(*scope_); }

  // ---- Expressions
  /// Leaves the value of `e` in accumulator A, or W if its type is wide.
  Status Value(const Expr& e);
  /// Leaves the value of `e`, whose type may be narrow, in W.
  Status WideValue(const Expr& e);
  /// Leaves the value of `e` in A. REQUIRES: it is no number of a wide type, or its range fits 64 bits.
  Status NarrowValue(const Expr& e);
  /// Narrows the mask to the rows where `e` is true (false, if !truth). NULL is neither.
  Status Keep(const Expr& e, bool truth = true);
  /// Leaves the value of a group key or join key: like Value, but floats become canonical.
  Status Key(const Expr& e);
  /// The operand that holds `e`; false if `e` must be computed.
  bool FindOperand(const Expr& e, vm::Operand* o);

  ValueRange Range(const Expr& e) const { return ranges().Range(e); }
  bool CanFail(const Expr& e) const { return ranges().CanFail(e); }
  bool IsNoOp(const Expr& e) const { return ranges().IsNoOp(e); }

  // ---- Instructions
  int Emit(vm::Opcode op, int p1 = 0, int32_t p2 = 0, int32_t p3 = 0, int32_t p4 = 0);
  int NewRegister(const SqlType& type);
  /// Frees a scratch register.
  void FreeRegister(int r) { free_registers_.push_back(r); }
  int NewMask();
  void FreeMask(int m) { free_masks_.push_back(m); }
  /// Store or StoreW, by the register's type.
  void Store(int r);
  /// Load or LoadW of an operand of that type.
  void Load(vm::Operand o, const SqlType& type);
  void LoadConstant(const tessera::Value& v);
  /// A = A, with NULL replaced by 0.
  void NullToZero();
  /// Converts accumulators between classes: I to W, W to I (checked).
  void Widen() { Emit(vm::Opcode::IToW); }
  void Narrow() { Emit(vm::Opcode::WToI); }
  /// Makes sure that the accumulator, whose values lie in `range`, holds values of `type`: emits a check if the range
  /// does not prove it.
  void CheckType(const SqlType& type, bool wide, ValueRange range);
  /// Empties the mask.
  void KeepNone();
  /// The number of a predicate of the section. Equal predicates have one number.
  int AddPredicate(const vm::Predicate& p);
  /// How many Filter instructions there are for a predicate.
  int FilterUses(int predicate) const { return filter_uses_[static_cast<size_t>(predicate)]; }
  int next() const { return static_cast<int>(section.code.size()); }
  /// Errors: scratch registers, masks or code beyond the machine's limits.
  Status CheckLimits() const;

 private:
  vm::Program* program_;
  ConstantPool* constants_;
  Scope* scope_;
  std::vector<int> free_registers_, free_masks_;
  std::vector<int> filter_uses_;  ///< how many Filter instructions there are for each predicate
};

}  // namespace tessera
