#include "kernels/text/text_tests.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "vm/like.h"

namespace tessera::kernels {
namespace {

using vm::Opcode;

std::optional<TextPattern> PatternOf(const Value& text, bool negated) {
  const vm::LikePattern like(text.text);
  if (text.null || !like.literal()) return std::nullopt;
  TextPattern out = {};
  out.negated = negated ? 1 : 0;
  size_t at = 0;
  const auto add = [&](std::string_view part) {
    if (out.parts == kMostPatternParts || at + part.size() > kMostPatternBytes) return false;
    std::copy(part.begin(), part.end(), out.bytes + at);
    at += part.size();
    out.sizes[out.parts++] = static_cast<uint8_t>(part.size());
    return true;
  };
  bool fits = add(like.first()) && add(like.last());
  for (const std::string_view part : like.middle()) fits = fits && add(part);
  return fits ? std::optional(out) : std::nullopt;
}

/// The patterns of a dictionary section that loads its entry and emits it if it passes them all; none if it does
/// something else.
std::vector<TextPattern> PatternsOf(const vm::Program& program, const vm::Section& s) {
  std::vector<TextPattern> out;
  bool loaded = false, emitted = false;
  for (const vm::Instruction& in : s.code) {
    switch (in.op) {
      case Opcode::Load:
        loaded = vm::Operand::Unpack(in.p2).kind == vm::OperandKind::kSlot;
        if (!loaded) return {};
        break;
      case Opcode::FilterLike:
      case Opcode::FilterNotLike: {
        const auto pattern = PatternOf(program.constants[static_cast<size_t>(in.p2)], in.op == Opcode::FilterNotLike);
        if (!loaded || emitted || !pattern) return {};
        out.push_back(*pattern);
        break;
      }
      case Opcode::SkipIfNone:
        break;
      case Opcode::Emit:
        emitted = true;
        break;
      case Opcode::End:
        return emitted && s.columns.empty() ? out : std::vector<TextPattern>();
      default:
        return {};
    }
  }
  return {};
}

}  // namespace

TextTests::TextTests(const vm::Program& program, const vm::Section& section) {
  for (size_t i = 0; i < section.predicates.size(); ++i) {
    const vm::Predicate& p = section.predicates[i];
    if (p.kind != vm::Predicate::Kind::kMapped) continue;
    const std::vector<TextPattern> patterns = PatternsOf(program, program.sections[static_cast<size_t>(p.map)]);
    if (patterns.empty()) continue;
    predicates_.push_back(i);
    tests_.push_back({static_cast<uint32_t>(patterns_.size()), static_cast<uint32_t>(patterns.size()),
                      p.negated ? uint32_t{1} : uint32_t{0}});
    patterns_.insert(patterns_.end(), patterns.begin(), patterns.end());
  }
}

void TextTests::SetPatterns(size_t predicate, TextJob* job) const {
  const auto found = std::lower_bound(predicates_.begin(), predicates_.end(), predicate);
  const Test& test = tests_[static_cast<size_t>(found - predicates_.begin())];
  job->first_pattern = test.first_pattern;
  job->patterns = test.patterns;
  job->negated = test.negated;
}

}  // namespace tessera::kernels
