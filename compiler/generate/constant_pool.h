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
  int Int(int64_t v) { return Add(Value::Int(SqlType::Of(TypeId::kBigint), v)); }
  int Wide(int128_t v) { return Add(Value::Wide(SqlType::Decimal(38, 0), v)); }
  int Float(double v) { return Add(Value::Float(SqlType::Of(TypeId::kDouble), v)); }

 private:
  vm::Program* program_;
  std::map<std::string, int> known_;  // by class and bytes
};

}  // namespace tessera
