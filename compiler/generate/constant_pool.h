// The constants of a program, each kept once. Private to compiler/.
//
// Start at: ConstantPool::Add. Owned by one thread.
#pragma once

#include <map>
#include <string>

#include "base/int128.h"
#include "tablet/values/types.h"
#include "vm/program/program.h"

namespace tessera {

class ConstantPool {
 public:
  explicit ConstantPool(vm::Program* program) : program_(program) {}
  /// The number of the constant in the program.
  int Add(const Value& v);
  /// The same of the value of Parameters::held[number], which is no other constant's: another run has another one.
  int AddHeld(const Value& v, int number);
  int Int(int64_t v) { return Add(Value::Int(SqlType::Of(TypeId::kBigint), v)); }
  int Wide(int128_t v) { return Add(Value::Wide(SqlType::Decimal(38, 0), v)); }
  int Float(double v) { return Add(Value::Float(SqlType::Of(TypeId::kDouble), v)); }

  /// The numbers of those in the program, by their numbers in Parameters::held.
  const std::map<int, int>& held() const { return held_; }

 private:
  vm::Program* program_;
  std::map<std::string, int> known_;  // by class and bytes
  std::map<int, int> held_;
};

}  // namespace tessera
