#include "compiler/generate/common_subexpressions.h"

#include <algorithm>

#include "compiler/query/expr_builder.h"
#include "vm/program/opcode.h"

namespace tessera {

using vm::Opcode;
using vm::Role;

// ---- Masks ----------------------------------------------------------------------------------------------------------

void MaskTree::NarrowFrom(int node) {
  parents_.push_back(node);
  current_ = static_cast<int>(parents_.size()) - 1;
}

bool MaskTree::IsWithin(int node) const {
  int n = current_;
  while (n > node) n = parents_[static_cast<size_t>(n)];  // a parent has a smaller number
  return n == node;
}

int& MaskTree::Saved(int mask_register) {
  saved_.resize(std::max(saved_.size(), static_cast<size_t>(mask_register) + 1));
  return saved_[static_cast<size_t>(mask_register)];
}

void MaskTree::Follow(const vm::Instruction& in) {
  const int mask = current_;
  switch (in.op) {
    case Opcode::MaskSave:
      Saved(in.p1) = mask;
      return;
    case Opcode::MaskLoad:
      current_ = Saved(in.p1);
      return;
    case Opcode::MaskClear:
      NarrowFrom(mask);
      break;
    case Opcode::MaskOr: {
      int other = Saved(in.p1), common = mask;
      while (other != common) {  // to the nearest node that has both
        int& deeper = other > common ? other : common;
        deeper = parents_[static_cast<size_t>(deeper)];
      }
      NarrowFrom(common);
      break;
    }
    case Opcode::MaskAndNot:
      Narrow();
      return;
    default: {
      const Role role = vm::Info(in.op).role;
      if (role == Role::Filter || role == Role::Probe || role == Role::Next) Narrow();
      return;
    }
  }
  Saved(in.p1) = current_;
  current_ = mask;
}

// ---- Expressions ----------------------------------------------------------------------------------------------------

int CommonSubexpressions::ClassOf(const Expr& e) const {
  const auto found = class_of_.find(&e);
  return found == class_of_.end() || Uses(found->second) < 2 ? -1 : found->second;
}

size_t CommonSubexpressions::Hash(const Expr& e) {
  const auto [found, is_new] = hashes_.try_emplace(&e, 0);
  if (!is_new) return found->second;
  const auto mix = [](size_t hash, auto value) { return (hash ^ static_cast<size_t>(value)) * 0x9E3779B97F4A7C15; };
  size_t hash = mix(static_cast<size_t>(e.kind), e.type.id);
  if (e.kind == Expr::Kind::kFunction) {
    hash = mix(hash, e.function);
  } else if (e.kind == Expr::Kind::kConstant) {
    hash = mix(hash, e.constant.i64);
  } else {
    hash = mix(mix(mix(hash, e.relation), e.column), e.index);
  }
  for (const ExprPtr& a : e.args) hash = mix(hash ^ hash >> 29, Hash(*a));
  return hashes_[&e] = hash;
}

void CommonSubexpressions::AddCondition(const Expr& e, bool truth, const ExprRanges& ranges) {
  VisitCondition(e, truth, ranges);
}

bool CommonSubexpressions::Visit(const Expr& e, const ExprRanges& ranges) {
  if (e.kind != Expr::Kind::kFunction && e.kind != Expr::Kind::kAggregate) return false;
  const size_t hash = Hash(e);
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    Class& c = classes_[static_cast<size_t>(it->second)];
    if (!masks_.IsWithin(c.node) || !c.first->SameAs(e)) continue;
    ++c.uses;
    class_of_[&e] = it->second;
    return false;
  }
  if (e.kind == Expr::Kind::kFunction && VisitArguments(e, ranges)) return true;
  class_of_[&e] = static_cast<int>(classes_.size());
  by_hash_.emplace(hash, static_cast<int>(classes_.size()));
  classes_.push_back({&e, masks_.current(), 1});
  return false;
}

/// In the order of ValueGenerator: right operands before left ones.
bool CommonSubexpressions::VisitArguments(const Expr& e, const ExprRanges& ranges) {
  const int entry = masks_.current();
  bool is_volatile = false;
  switch (Info(e.function).translation) {
    case Translation::kRandom:
      return true;
    case Translation::kCase: {
      const Expr& otherwise = *e.args.back();
      const bool otherwise_first = !ranges.CanFailAnywhere(otherwise);
      if (otherwise_first) is_volatile |= Visit(otherwise, ranges);
      for (size_t i = 0; i + 1 < e.args.size(); i += 2) {
        masks_.Restore(entry);
        if (i > 0) masks_.Narrow();
        is_volatile |= VisitCondition(*e.args[i], true, ranges);
        is_volatile |= Visit(*e.args[i + 1], ranges);
      }
      if (!otherwise_first) {
        masks_.NarrowFrom(entry);
        is_volatile |= Visit(otherwise, ranges);
      }
      break;
    }
    case Translation::kComparison:
    case Translation::kJunction:
    case Translation::kNegation:
    case Translation::kNullTest:
    case Translation::kInList:
    case Translation::kLike:
      is_volatile |= VisitCondition(e, true, ranges);
      masks_.Restore(entry);
      if (e.nullable) is_volatile |= VisitCondition(e, false, ranges);
      break;
    default:
      for (size_t i = e.args.size(); i-- > 0;) is_volatile |= Visit(*e.args[i], ranges);
      return is_volatile;
  }
  masks_.Restore(entry);
  return is_volatile;
}

bool CommonSubexpressions::VisitCondition(const Expr& e, bool truth, const ExprRanges& ranges) {
  bool is_volatile = false;
  if (e.kind != Expr::Kind::kFunction) {
    is_volatile = Visit(e, ranges);
    masks_.Narrow();
    return is_volatile;
  }
  switch (Info(e.function).translation) {
    case Translation::kNegation:
      return VisitCondition(*e.args[0], !truth, ranges);
    case Translation::kJunction: {
      if ((e.function == Function::kAnd) == truth) {
        for (const ExprPtr& a : e.args) is_volatile |= VisitCondition(*a, truth, ranges);
        return is_volatile;
      }
      const int entry = masks_.current();
      for (size_t i = 0; i < e.args.size(); ++i) {
        masks_.Restore(entry);
        if (i > 0) masks_.Narrow();
        is_volatile |= VisitCondition(*e.args[i], truth, ranges);
      }
      masks_.NarrowFrom(entry);
      return is_volatile;
    }
    case Translation::kComparison:
    case Translation::kNullTest:
    case Translation::kInList:
    case Translation::kLike:
      for (size_t i = e.args.size(); i-- > 0;) is_volatile |= Visit(*e.args[i], ranges);
      break;
    default:
      is_volatile = Visit(e, ranges);
      break;
  }
  masks_.Narrow();
  return is_volatile;
}

}  // namespace tessera
