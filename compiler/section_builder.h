// Writes the instructions of one section: expressions into accumulators, conditions into the mask. Private to
// compiler/.
//
// Where columns live (slots of a table, payload of a join, results of an earlier section) is the business of a Scope.
// Start at: SectionBuilder::Value, SectionBuilder::Keep.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/int128.h"
#include "base/status.h"
#include "compiler/bound_query.h"
#include "vm/program.h"

namespace tessera {

/// Bounds of an expression's values in integer form; what is known without running. Empty knowledge is the whole of 128
/// bits.
struct ValueRange {
  int128_t low = kInt128Min, high = kInt128Max;
  bool Within(int128_t a, int128_t b) const { return a <= low && high <= b; }
  bool Fits64() const { return Within(INT64_MIN, INT64_MAX); }
};
/// All values of a type: what holds for any column of it.
ValueRange RangeOfType(const SqlType& type);
/// What statistics say of a column of one of the query's relations.
ValueRange RangeByStatistics(const Query& q, const Expr& column);

/// The constants of a program, each kept once.
class ConstantPool {
 public:
  explicit ConstantPool(vm::Program* program) : program_(program) {}
  int Add(const Value& v);
  int Int(int64_t v) { return Add(Value::Int(SqlType::Of(TypeId::kBigint), v)); }
  int Wide(int128_t v) { return Add(Value::Wide(SqlType::Decimal(38, 0), v)); }
  int Float(double v) { return Add(Value::Float(SqlType::Of(TypeId::kDouble), v)); }

 private:
  vm::Program* program_;
  std::map<std::string, int> known_;  // by class and bytes
};

class SectionBuilder;

/// Where the leaves of expressions are found.
class Scope {
 public:
  virtual ~Scope() = default;
  /// The operand that holds a leaf (kColumn, kGroup, kAggregate), or false if the leaf must be computed by Compute.
  virtual bool Find(const Expr& leaf, SectionBuilder* b, vm::Operand* operand) = 0;
  /// Leaves the value of a leaf that Find refused in its accumulator.
  virtual Status Compute(const Expr& leaf, SectionBuilder* b);
  /// The operand that holds the value of a kFunction which was computed before, or false if there is none.
  virtual bool FindComputed(const Expr&, SectionBuilder*, vm::Operand*) { return false; }
  virtual ValueRange Range(const Expr& leaf) const { return RangeOfType(leaf.type); }
  /// The slot of a stored table's column that predicates and dictionary sections may use, or -1.
  virtual int TableSlot(const Expr&, SectionBuilder*) { return -1; }
};

class SectionBuilder {
 public:
  SectionBuilder(vm::Program* program, ConstantPool* constants, Scope* scope)
      : program_(program), constants_(constants), scope_(scope) {}

  vm::Section section;
  vm::Program* program() { return program_; }
  ConstantPool* constants() { return constants_; }

  /// Leaves the value of `e` in accumulator A, or W if its type is wide.
  Status Value(const Expr& e);
  /// Narrows the mask to the rows where `e` is true; where it is false, if !truth. NULL is neither.
  Status Keep(const Expr& e, bool truth = true);
  /// Leaves the value of a group or join key: as Value, floats made canonical.
  Status Key(const Expr& e);

  ValueRange Range(const Expr& e) const;
  /// Whether the instructions of `e`, those of its arguments aside, may raise an error. True where nobody has looked
  /// closer.
  bool CanFail(const Expr& e) const;
  /// Whether `e` is a cast to what the machine holds in the same way: it has no instructions of its own.
  bool IsNoOp(const Expr& e) const;

  int Emit(vm::Opcode op, int p1 = 0, int32_t p2 = 0, int32_t p3 = 0, int32_t p4 = 0);
  int NewRegister(const SqlType& type);
  /// Gives a scratch register back.
  void FreeRegister(int r);
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
  int next() const { return static_cast<int>(section.code.size()); }
  /// Scratch registers, masks or code beyond the machine's limits.
  Status CheckLimits() const;

 private:
  bool Simple(const Expr& e, vm::Operand* o);
  ValueRange ExactRange(const Expr& e) const;
  Status Wide(const Expr& e);
  Status Arithmetic(const Expr& e);
  Status Operands(const Expr& left, const Expr& right, bool wide, vm::Opcode op, vm::Opcode reversed,
                  bool has_reversed);
  Status Case(const Expr& e);
  Status Truth(const Expr& e);
  Status Cast(const Expr& e);
  Status ScaleBy(int digits, bool wide, ValueRange* range);
  Status CheckType(const SqlType& type, bool wide, ValueRange range);
  Status DateFunction(const Expr& e);
  Status TextFunction(const Expr& e);
  Status Round(const Expr& e);
  Status Compare(Function f, const Expr& a, const Expr& b);
  Status Any(const std::vector<const Expr*>& args, bool truth);
  bool PredicateOn(const Expr& e, bool truth);
  bool DictionaryColumn(const Expr& e, const Expr** column) const;
  Status MapThroughDictionary(const Expr& e, const Expr& column, bool condition, bool truth, int* section_number);
  void KeepNone();
  int AddPredicate(const vm::Predicate& p);

  vm::Program* program_;
  ConstantPool* constants_;
  Scope* scope_;
  std::vector<int> free_registers_, free_masks_;
  std::vector<int> filter_uses_;  ///< how many Filter instructions there are for each predicate
};

}  // namespace tessera
