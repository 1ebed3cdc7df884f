// Functions of and conditions on a dictionary's texts. A section of the program evaluates them once for each entry
// instead of once for each row. Private to compiler/.
//
// Start at: DictionarySections::Serve. A view of a SectionBuilder, made where it is used.
#pragma once

#include "base/status.h"
#include "compiler/generate/section_builder.h"

namespace tessera {

class DictionarySections {
 public:
  explicit DictionarySections(SectionBuilder* builder) : b_(builder) {}

  /// The column, if `e` is a function of one TEXT column of the scanned table that gives NULL for NULL and never fails;
  /// or nullptr.
  const Expr* Serve(const Expr& e) const;
  /// Adds the section that maps each entry to the value of `e`; `number` is the section's.
  Status AddValue(const Expr& e, const Expr& column, int* number);
  /// Adds the section that finds the entries for which `e` is true (false, if !truth).
  Status AddCondition(const Expr& e, const Expr& column, bool truth, int* number);

 private:
  SectionBuilder* b_;
};

}  // namespace tessera
