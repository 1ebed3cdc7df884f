// Constants by their class and bytes.
#include "compiler/generate/constant_pool.h"

#include <utility>

namespace tessera {

int ConstantPool::Add(const Value& v) {
  std::string key(1, static_cast<char>(v.type.storage()));
  key += v.null ? 'n' : 'v';
  if (!v.null) {
    switch (v.type.storage()) {
      case StorageClass::kInt:
        key += static_cast<char>(v.type.id);  // the listing shows dates as dates
        key += static_cast<char>(v.type.scale);
        key.append(reinterpret_cast<const char*>(&v.i64), 8);
        break;
      case StorageClass::kFloat:
        key.append(reinterpret_cast<const char*>(&v.f64), 8);
        break;
      case StorageClass::kWide:
        key += static_cast<char>(v.type.scale);
        key.append(reinterpret_cast<const char*>(&v.wide), 16);
        break;
      case StorageClass::kText:
        key += static_cast<char>(v.type.id);
        key += v.text;
        break;
    }
  }
  auto [it, added] = known_.emplace(std::move(key), static_cast<int>(program_->constants.size()));
  if (added) program_->constants.push_back(v);
  return it->second;
}

int ConstantPool::AddHeld(const Value& v, int number) {
  const auto [it, added] = held_.try_emplace(number, static_cast<int>(program_->constants.size()));
  if (added) program_->constants.push_back(v);
  return it->second;
}

}  // namespace tessera
