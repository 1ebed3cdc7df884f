// Every opcode on the host: see opcode_walk.h.
//
// TESSERA_WALK_ONLY=text runs the cases whose name contains it, TESSERA_WALK_SEED=n takes other values,
// TESSERA_WALK_REPEATS=n takes more of them.
#include "tests/vm/opcode_walk.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tessera::test {
namespace {

WalkOptions FromEnvironment() {
  WalkOptions options;
  if (const char* only = std::getenv("TESSERA_WALK_ONLY")) options.only = only;
  if (const char* seed = std::getenv("TESSERA_WALK_SEED")) options.seed = std::strtoull(seed, nullptr, 10);
  if (const char* repeats = std::getenv("TESSERA_WALK_REPEATS")) options.repeats = std::atoi(repeats);
  return options;
}

TEST(OpcodeWalk, OnTheHost) {
  const WalkReport report = RunOpcodeWalk(FromEnvironment());
  printf("%s", report.Summary().c_str());
  EXPECT_TRUE(report.failures.empty()) << report.failures.size() << " cases failed; they are listed above";
  EXPECT_GT(report.programs, 0u);
}

}  // namespace
}  // namespace tessera::test
