// Writes the instructions of one section: registers, masks, predicates and constants, and the expressions and
// conditions that are made of them. Private to compiler/.
//
// A Scope knows where columns are. ValueGenerator and ConditionGenerator know which instructions an expression becomes;
// they write through this class.
//
// Start at: SectionBuilder::Value, SectionBuilder::Keep. Owned by one thread.
#pragma once

#include <unordered_map>
#include <vector>

#include "base/int128.h"
#include "base/status.h"
#include "compiler/generate/common_subexpressions.h"
#include "compiler/generate/constant_pool.h"
#include "compiler/generate/scope.h"
#include "compiler/query/bound_query.h"
#include "compiler/query/value_range.h"
#include "vm/program/program.h"

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

  // ---- Expressions (generate_expression.cc)
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
  /// A condition as a BOOLEAN value: 1 where it is true, 0 where it is false, NULL elsewhere.
  Status Truth(const Expr& e);
  /// Puts the value of `e` into register `r`, which no one else writes.
  Status ValueIn(const Expr& e, int r);

  // ---- Common subexpressions, operands
  /// The operand that holds `e`; false if `e` must be computed.
  bool FindOperand(const Expr& e, vm::Operand* o) { return FindOperand(e, IsWide(e.type), o); }
  /// The same for the value of `e` in 128 bits if `wide`, else in 64 bits.
  bool FindOperand(const Expr& e, bool wide, vm::Operand* o);
  /// Says that the section is going to evaluate an expression. Callers do so in the order of evaluation, before they
  /// emit code.
  void WillEvaluate(const Expr& e) { common_.AddValue(e, ranges()); }
  void WillKeep(const Expr& e) { common_.AddCondition(e, true, ranges()); }
  /// Keeps the value of `e`, which the code from `from` on has left in its accumulator, if it is needed again and not
  /// cheaper to compute than to keep.
  void KeepValue(const Expr& e, int from);

  ValueRange Range(const Expr& e) const { return ranges().Range(e); }
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

  /// The register that has the values of a class of common subexpressions, for the rows of a mask.
  struct Kept {
    int reg = -1, mask = 0;
  };
  /// That register, if the live rows are among those; -1.
  int KeptIn(const Expr& e) const;

  CommonSubexpressions common_;
  MaskTree masks_;
  std::unordered_map<int, Kept> kept_;  ///< by class
};

}  // namespace tessera
