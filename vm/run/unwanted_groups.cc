// Only the filters at the head of the reader's code count. What stands before them are loads and range checks (WToI is
// one, too), so no row that is left out can have raised an error, if the values outside the checked range are kept:
// after a check, what another column says does not count.

#include "vm/run/unwanted_groups.h"

#include <algorithm>
#include <optional>

namespace tessera::vm {
namespace {

/// The value of an integer constant, of either width.
std::optional<int128_t> IntegerOf(const Program& program, int32_t constant) {
  const Value& v = program.constants[static_cast<size_t>(constant)];
  if (v.null || v.type.IsFloat() || v.type.storage() == StorageClass::kText) return std::nullopt;
  return IsWide(v.type) ? v.wide : static_cast<int128_t>(v.i64);
}
std::optional<int128_t> IntegerOfOperand(const Program& program, int32_t packed) {
  const Operand operand = Operand::Unpack(packed);
  if (operand.kind != OperandKind::kConstant) return std::nullopt;
  return IntegerOf(program, operand.index);
}

/// Narrows [low, high] to the values that fail `op` with `than`. false: these are not one interval.
bool Failing(Opcode op, int128_t than, int128_t* low, int128_t* high) {
  switch (op) {
    case Opcode::FilterGtI:
    case Opcode::FilterGtW:
      *high = std::min(*high, than);
      return true;
    case Opcode::FilterLtI:
    case Opcode::FilterLtW:
      *low = std::max(*low, than);
      return true;
    case Opcode::FilterGeI:
    case Opcode::FilterGeW:
      if (than == kInt128Min) return false;
      *high = std::min(*high, than - 1);
      return true;
    case Opcode::FilterLeI:
    case Opcode::FilterLeW:
      if (than == kInt128Max) return false;
      *low = std::max(*low, than + 1);
      return true;
    default:
      return false;
  }
}

}  // namespace

std::vector<UnwantedGroups> FindUnwanted(const Program& program, int number) {
  const Section* reader = nullptr;
  for (const Section& s : program.sections) {
    if (s.source_kind != Section::Source::kSection || s.source != number) continue;
    if (reader != nullptr) return {};
    reader = &s;
  }
  if (reader == nullptr) return {};
  std::vector<UnwantedGroups> out;
  int column = -1;  // that the accumulator holds
  bool is_checked = false;
  int128_t low = kInt128Min, high = kInt128Max;
  for (const Instruction& in : reader->code) {
    if (in.op == Opcode::SkipIfNone) continue;
    if (in.op == Opcode::Load || in.op == Opcode::LoadW) {
      const Operand from = Operand::Unpack(in.p2);
      if (from.kind != OperandKind::kSlot) break;
      const int loaded = reader->slots[from.index].column;
      if (loaded == column) continue;
      if (is_checked) break;
      column = loaded;
      low = kInt128Min;
      high = kInt128Max;
      continue;
    }
    if (column < 0) break;
    if (in.op == Opcode::CheckI || in.op == Opcode::CheckW) {
      const std::optional<int128_t> least = IntegerOf(program, in.p2), most = IntegerOf(program, in.p3);
      if (!least || !most) break;
      is_checked = true;
      low = std::max(low, *least);
      high = std::min(high, *most);
      continue;
    }
    if (in.op == Opcode::WToI) {
      is_checked = true;
      low = std::max<int128_t>(low, INT64_MIN);
      high = std::min<int128_t>(high, INT64_MAX);
      continue;
    }
    const std::optional<int128_t> than =
        Info(in.op).shape == Shape::Compare ? IntegerOfOperand(program, in.p2) : std::nullopt;
    UnwantedGroups failing{column, low, high};
    if (!than || !Failing(in.op, *than, &failing.low, &failing.high)) break;
    if (failing.low <= failing.high) out.push_back(failing);
  }
  return out;
}

}  // namespace tessera::vm
