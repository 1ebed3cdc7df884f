// The instructions of conditions, which narrow the selection mask. A condition on one encoded column becomes a
// predicate; NOT never becomes an instruction: Keep(e, false) pushes it to the leaves. Private to compiler/.
//
// Start at: ConditionGenerator::Keep. A view of a SectionBuilder, made where it is used.
#pragma once

#include <vector>

#include "base/status.h"
#include "compiler/generate/section_builder.h"

namespace tessera {

class ConditionGenerator {
 public:
  explicit ConditionGenerator(SectionBuilder* builder) : b_(builder) {}

  /// Narrows the mask to the rows where `e` is true (false, if !truth). NULL is neither.
  Status Keep(const Expr& e, bool truth);

 private:
  /// Turns a condition on one encoded column into a predicate. Returns whether it could.
  bool KeepByPredicate(const Expr& e, bool truth);
  /// Keeps the rows for which at least one of `args` is true (false, if !truth).
  Status Any(const std::vector<const Expr*>& args, bool truth);
  Status Compare(Function f, const Expr& a, const Expr& b);
  Status InList(const Expr& e, bool truth);
  Status Like(const Expr& e, bool truth);

  SectionBuilder* b_;
};

}  // namespace tessera
