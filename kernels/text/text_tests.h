// Which predicates on texts the device can decide, and their patterns. Private to kernels/; any thread.
//
// Start at: TextTests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/text/text_filter.h"
#include "vm/program/program.h"

namespace tessera::kernels {

/// The predicates of a section that are made of up to kMostTextPatterns patterns of one column: LIKE with literal parts,
/// and comparisons of substring(column, 1, n) with constants, which are patterns, too.
class TextTests {
 public:
  TextTests() = default;
  TextTests(const vm::Program& program, const vm::Section& section);

  /// Numbers of Section::predicates, ascending.
  const std::vector<size_t>& predicates() const { return predicates_; }
  const std::vector<TextPattern>& patterns() const { return patterns_; }
  /// Sets the job's patterns. REQUIRES: one of predicates().
  void SetPatterns(size_t predicate, TextJob* job) const;

 private:
  struct Test {
    uint32_t first_pattern, patterns;
    TextOutcomes passes;
  };
  std::vector<size_t> predicates_;
  std::vector<Test> tests_;  ///< by the order of predicates_
  std::vector<TextPattern> patterns_;
};

}  // namespace tessera::kernels
