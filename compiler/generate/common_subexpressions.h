// Common subexpression elimination: a value that a section needs more than once is computed once and kept in a register.
// Private to compiler/.
//
// A value is kept for the rows that were live where it was computed. What follows may read it while all live rows are
// among those. A filter only narrows the mask; but the end of an arm of OR, of a branch of CASE or of a loop restores an
// earlier one, and then a value from inside cannot be read any more. MaskTree knows. No value is computed earlier than
// it would be without this: so errors stay those of live rows, and CASE evaluates what it did before.
//
// Start at: CommonSubexpressions, which SectionBuilder asks. Owned by one thread.
#pragma once

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "compiler/query/bound_query.h"
#include "compiler/query/value_range.h"
#include "vm/program/program.h"

namespace tessera {

/// The masks of a section, each below one whose rows it has all of its own from. A node stands for the rows that are
/// live at a place of the code.
class MaskTree {
 public:
  /// The node of the rows that are live now.
  int current() const { return current_; }
  /// The live rows become some of those of `node`.
  void NarrowFrom(int node);
  void Narrow() { NarrowFrom(current_); }
  void Restore(int node) { current_ = node; }
  /// Does to the mask and the mask registers what an instruction does.
  void Follow(const vm::Instruction& in);
  /// Whether all live rows are rows of `node`.
  bool IsWithin(int node) const;

 private:
  int& Saved(int mask_register);

  std::vector<int> parents_ = {-1};
  std::vector<int> saved_;  ///< per mask register
  int current_ = 0;
};

/// Which expressions of a section have the same value where it can be read again. They form a class.
class CommonSubexpressions {
 public:
  // ---- The expressions that the section evaluates, in this order, each once
  void AddValue(const Expr& e, const ExprRanges& ranges) { Visit(e, ranges); }
  void AddCondition(const Expr& e, bool truth, const ExprRanges& ranges);

  bool empty() const { return class_of_.empty(); }
  /// The class of `e`; -1 if its value is needed once. REQUIRES: `e` has been added, else the answer is -1.
  int ClassOf(const Expr& e) const;
  /// How often the class's value is needed.
  int Uses(int number) const { return classes_[static_cast<size_t>(number)].uses; }

 private:
  struct Class {
    const Expr* first;
    int node;  ///< the rows of its first expression
    int uses;
  };

  size_t Hash(const Expr& e);
  /// Returns whether `e` is volatile: it must not be taken for another one that looks the same.
  bool Visit(const Expr& e, const ExprRanges& ranges);
  bool VisitArguments(const Expr& e, const ExprRanges& ranges);
  bool VisitCondition(const Expr& e, bool truth, const ExprRanges& ranges);

  MaskTree masks_;
  std::vector<Class> classes_;
  std::unordered_multimap<size_t, int> by_hash_;
  std::unordered_map<const Expr*, size_t> hashes_;
  std::unordered_map<const Expr*, int> class_of_;
};

}  // namespace tessera
