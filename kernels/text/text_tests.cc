// A dictionary section is followed instruction by instruction, with a set of outcomes in place of each mask: those for
// which an entry is live. So any nesting of AND, OR and NOT is understood.

#include "kernels/text/text_tests.h"

#include <algorithm>
#include <bitset>
#include <map>
#include <optional>
#include <string_view>

#include "tablet/values/utf8.h"
#include "vm/meaning/like.h"

namespace tessera::kernels {
namespace {

using vm::Instruction;
using vm::Opcode;
using vm::Operand;
using vm::OperandKind;

using Outcomes = std::bitset<1 << kMostTextPatterns>;

/// The outcomes with which pattern `number` matches.
Outcomes Matching(size_t number) {
  Outcomes out;
  for (size_t outcome = 0; outcome < out.size(); ++outcome) out[outcome] = (outcome >> number & 1) != 0;
  return out;
}

/// The pattern with these parts, if it is short enough.
std::optional<TextPattern> PatternOf(std::string_view first, std::string_view last,
                                     const std::vector<std::string_view>& middle) {
  TextPattern out = {};
  size_t at = 0;
  const auto add = [&](std::string_view part) {
    if (out.parts == kMostPatternParts || at + part.size() > kMostPatternBytes) return false;
    std::copy(part.begin(), part.end(), out.bytes + at);
    at += part.size();
    out.sizes[out.parts++] = static_cast<uint8_t>(part.size());
    return true;
  };
  bool fits = add(first) && add(last);
  for (const std::string_view part : middle) fits = fits && (part.empty() || add(part));
  return fits ? std::optional(out) : std::nullopt;
}

class Follower {
 public:
  explicit Follower(const vm::Program& program) : program_(program) { live_.set(); }

  /// Whether the section does nothing that patterns could not do.
  bool Follow(const vm::Section& s) {
    return s.columns.empty() &&
           std::all_of(s.code.begin(), s.code.end(), [&](const Instruction& in) { return Step(in); });
  }
  const std::vector<TextPattern>& patterns() const { return patterns_; }
  const Outcomes& emitted() const { return emitted_; }

 private:
  /// The entry, or its first characters.
  struct Text {
    std::optional<int64_t> characters;
  };

  const Value* ConstantOf(int32_t packed) const {
    const Operand o = Operand::Unpack(packed);
    if (o.kind != OperandKind::kConstant) return nullptr;
    const Value& v = program_.constants[o.index];
    return v.null ? nullptr : &v;
  }

  bool Step(const Instruction& in) {
    switch (in.op) {
      case Opcode::Load: {
        const Operand from = Operand::Unpack(in.p2);
        if (from.kind == OperandKind::kSlot) text_ = Text();
        if (from.kind == OperandKind::kRegister) text_ = registers_[from.index];
        return from.kind == OperandKind::kSlot || (from.kind == OperandKind::kRegister && text_);
      }
      case Opcode::Store:
        registers_[static_cast<uint32_t>(in.p2)] = text_;
        return true;
      case Opcode::SubstringT: {
        const Value *first = ConstantOf(in.p2), *length = in.p3 == -1 ? nullptr : ConstantOf(in.p3);
        if (!text_ || text_->characters || first == nullptr || length == nullptr || first->i64 != 1 || length->i64 < 0)
          return false;
        text_->characters = length->i64;
        return true;
      }
      case Opcode::FilterEqT:
      case Opcode::FilterNeT: {
        const Value* const with = ConstantOf(in.p2);
        return text_ && with != nullptr && Compare(with->text, in.op == Opcode::FilterEqT);
      }
      case Opcode::FilterLike:
      case Opcode::FilterNotLike: {
        const Value& pattern = program_.constants[static_cast<size_t>(in.p2)];
        if (!text_ || text_->characters || pattern.null) return false;
        const vm::LikePattern like(pattern.text);
        return like.literal() && Keep(PatternOf(like.first(), like.last(), like.middle()), in.op == Opcode::FilterLike);
      }
      case Opcode::MaskSave:
        masks_[in.p1] = live_;
        return true;
      case Opcode::MaskLoad:
        live_ = masks_[in.p1];
        return true;
      case Opcode::MaskClear:
        masks_[in.p1].reset();
        return true;
      case Opcode::MaskOr:
        masks_[in.p1] |= live_;
        return true;
      case Opcode::MaskAndNot:
        live_ &= ~masks_[in.p1];
        return true;
      case Opcode::Emit:
        emitted_ |= live_;
        return true;
      case Opcode::SkipIfNone:  // nothing is live where it skips
      case Opcode::End:
        return true;
      default:
        return false;
    }
  }

  /// Keeps the entries whose text is `with`, or those whose text is not.
  bool Compare(std::string_view with, bool equal) {
    const auto characters = static_cast<int64_t>(CountCharacters(with));
    if (text_->characters && characters > *text_->characters) {  // there are never that many
      if (equal) live_.reset();
      return true;
    }
    std::optional<TextPattern> pattern = PatternOf(with, {}, {});
    // The first n characters are n others if the text begins with these.
    if (pattern && (!text_->characters || characters < *text_->characters)) pattern->exact = 1;
    return Keep(pattern, equal);
  }

  /// Keeps the entries that match, or those that do not.
  bool Keep(const std::optional<TextPattern>& pattern, bool matching) {
    if (!pattern) return false;
    const auto found = std::find(patterns_.begin(), patterns_.end(), *pattern);
    const auto number = static_cast<size_t>(found - patterns_.begin());
    if (number == kMostTextPatterns) return false;
    if (found == patterns_.end()) patterns_.push_back(*pattern);
    live_ &= matching ? Matching(number) : ~Matching(number);
    return true;
  }

  const vm::Program& program_;
  std::optional<Text> text_;  ///< the accumulator's
  std::map<uint32_t, std::optional<Text>> registers_;
  std::map<uint32_t, Outcomes> masks_;
  Outcomes live_, emitted_;
  std::vector<TextPattern> patterns_;
};

}  // namespace

TextTests::TextTests(const vm::Program& program, const vm::Section& section) {
  for (size_t i = 0; i < section.predicates.size(); ++i) {
    const vm::Predicate& p = section.predicates[i];
    if (p.kind != vm::Predicate::Kind::kMapped) continue;
    Follower follower(program);
    if (!follower.Follow(program.sections[static_cast<size_t>(p.map)]) || follower.patterns().empty()) continue;
    const std::vector<TextPattern>& patterns = follower.patterns();
    Test& test = tests_.emplace_back();
    test.first_pattern = static_cast<uint32_t>(patterns_.size());
    test.patterns = static_cast<uint32_t>(patterns.size());
    for (size_t outcome = 0; outcome < follower.emitted().size(); ++outcome) {
      if (follower.emitted()[outcome] != p.negated) test.passes.bits[outcome / 64] |= uint64_t{1} << (outcome % 64);
    }
    predicates_.push_back(i);
    patterns_.insert(patterns_.end(), patterns.begin(), patterns.end());
  }
}

void TextTests::SetPatterns(size_t predicate, TextJob* job) const {
  const auto found = std::lower_bound(predicates_.begin(), predicates_.end(), predicate);
  const Test& test = tests_[static_cast<size_t>(found - predicates_.begin())];
  job->first_pattern = test.first_pattern;
  job->patterns = test.patterns;
  job->passes = test.passes;
}

}  // namespace tessera::kernels
