#include "vm/program/text_uses.h"

#include <algorithm>

#include "vm/program/section_traits.h"

namespace tessera::vm {
namespace {

/// A text that is compared for equality more often than this is compared faster as an identifier.
constexpr int kMostCompared = 2;

/// Whether an opcode needs the bytes of its texts alone, those in A and those of its operands. `comparisons`: how many more
/// such a text may have.
bool OnlyReads(Opcode op, int* comparisons) {
  if (op == Opcode::FilterEqT || op == Opcode::FilterNeT) return (*comparisons)-- > 0;
  switch (Info(op).shape) {
    case Shape::TextUnary:
    case Shape::TextCut:
    case Shape::TextLength:
    case Shape::TextConcat:
    case Shape::TextSubstring:
    case Shape::TextCompare:
    case Shape::TextNumber:
    case Shape::TextFind:
    case Shape::TextReplace:
    case Shape::TextPad:
    case Shape::TextPart:
    case Shape::RegexPart:
    case Shape::RegexReplace:
    case Shape::FromText:
    case Shape::Zone:
    case Shape::Like:
    case Shape::FoldText:  // it keeps the best text, and asks for the identifier of that one
    case Shape::CountValues:
    case Shape::TestNull:
      return true;
    default:
      return false;
  }
}

/// Whether the opcode leaves a text in A that it has made.
bool MakesText(const OpcodeInfo& info) { return info.out == AccumulatorSpec::T && info.shape != Shape::FoldText; }

class Finder {
 public:
  /// `emits`: what is emitted with rows counts as read.
  Finder(const Section& section, bool emits) : section_(section), registers_(section.registers.size(), true) {
    // (The registers that a kMap section emits are read by its caller before the next tile.)
    if (!emits && (section.sink == Section::Sink::kRows || section.sink == Section::Sink::kJoin))
      std::fill_n(registers_.begin(), std::min(section.columns.size(), registers_.size()), false);
    // A text may go from register to register: whatever fails takes others with it.
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t r = 0; r < registers_.size(); ++r) {
        if (!registers_[r] || IsOnlyRead(OperandKind::kRegister, r)) continue;
        registers_[r] = false;
        changed = true;
      }
    }
  }

  /// Of the texts of a slot or register, wherever they are operands.
  bool IsOnlyRead(OperandKind kind, size_t number) const {
    // (The entries of a column have their identifiers in a map.)
    int comparisons = kind == OperandKind::kSlot ? 0 : kMostCompared;
    for (size_t i = 0; i < section_.code.size(); ++i) {
      const Instruction& in = section_.code[i];
      bool reads = false;
      ForEachOperand(in, [&](const Operand& o) { reads |= o.kind == kind && o.index == number; });
      if (reads && !(in.op == Opcode::Load ? IsResultOnlyRead(i, &comparisons) : OnlyReads(in.op, &comparisons)))
        return false;
    }
    return true;
  }

  /// Of the text that instruction i leaves in A. (Where a loop starts, A has no value.)
  bool IsResultOnlyRead(size_t i) const {
    int comparisons = kMostCompared;
    return IsResultOnlyRead(i, &comparisons);
  }

 private:
  /// `comparisons`: how many more the text may have.
  bool IsResultOnlyRead(size_t i, int* comparisons) const {
    for (++i; i < section_.code.size(); ++i) {
      const Instruction& in = section_.code[i];
      const OpcodeInfo& info = Info(in.op);
      if (in.op == Opcode::Store) {
        if (!registers_[static_cast<size_t>(in.p2)]) return false;
        continue;
      }
      const bool takes = info.in == AccumulatorSpec::T || info.in == AccumulatorSpec::X;
      if (takes && !OnlyReads(in.op, comparisons)) return false;
      if (in.op == Opcode::Load || MakesText(info) || info.out == AccumulatorSpec::I || info.out == AccumulatorSpec::F)
        return true;
    }
    return true;
  }

  const Section& section_;
  std::vector<bool> registers_;
};

}  // namespace

TextUses FindTextUses(const Section& section, const SectionTraits& traits) {
  TextUses uses;
  uses.loops = traits.HasLoops();
  // (A loop emits a row of the tile for each of its matches.)
  const Finder read(section, false), finder(section, !uses.loops);
  for (size_t i = 0; i < section.slots.size(); ++i) {
    uses.slots.push_back(read.IsOnlyRead(OperandKind::kSlot, i));
    uses.emitted.push_back(finder.IsOnlyRead(OperandKind::kSlot, i));
  }
  // (A loop could make texts without an end before the tile does.)
  for (size_t i = 0; i < section.code.size(); ++i)
    uses.results.push_back(!uses.loops && MakesText(Info(section.code[i].op)) && finder.IsResultOnlyRead(i));
  return uses;
}

}  // namespace tessera::vm
