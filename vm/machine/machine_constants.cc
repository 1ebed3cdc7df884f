#include "vm/machine/machine_constants.h"

#include <bit>
#include <string>

namespace tessera::vm {

MachineConstants::MachineConstants(const Program& program, StringPool* strings)
    : program_(program), narrow_(program.constants.size()), null_(program.constants.size()) {
  for (size_t i = 0; i < program.constants.size(); ++i) {
    const Value& v = program.constants[i];
    null_[i] = v.null ? 1 : 0;
    if (v.null) continue;
    switch (v.type.storage()) {
      case StorageClass::kInt:
        narrow_[i] = v.i64;
        break;
      case StorageClass::kFloat:
        narrow_[i] = std::bit_cast<int64_t>(v.f64);
        break;
      case StorageClass::kText:
        narrow_[i] = strings->Intern(v.text);
        break;
      case StorageClass::kWide:
        break;
    }
  }
}

const Regex& MachineConstants::RegexOf(int32_t constant) {
  return regexes_.try_emplace(constant, program_.constants[static_cast<size_t>(constant)].text).first->second;
}

const Format& MachineConstants::FormatOf(int32_t address, const Instruction& in) {
  const std::string& text = program_.constants[static_cast<size_t>(in.p2)].text;
  const auto language = static_cast<Format::Language>(in.p4);
  return formats_.try_emplace(address, text, UnpackType(in.p3), language).first->second;
}

}  // namespace tessera::vm
