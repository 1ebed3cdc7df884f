// random(), setseed() and TABLESAMPLE: the seeds of a statement's calls. A random number is a function of its call's seed
// and of the row's place alone (opcodes PlaceI and RandomF), so that the rows do not depend on threads or ranks.
//
// Start at: SeedCalls. Private to compiler/, but for RandomState. One thread.
#pragma once

#include <cstdint>

#include "compiler/query/bound_query.h"

namespace tessera {

/// Where the sequence of a session's random numbers is.
struct RandomState {
  uint64_t seed = 0;
  uint64_t statements = 0;  ///< that have asked for numbers since the seed was set
};

/// The same for every equal x: setseed(x), REPEATABLE (x).
uint64_t SeedOf(double x);

/// A call of random(). `site` tells it from others of the statement, see RandomSite. Rows whose places differ in the last
/// `shift` bits alone get the same number.
ExprPtr MakeRandom(uint64_t site, int position, int shift);
/// A call of gen_random_uuid(), with 128 bits of the system's as its seed.
ExprPtr MakeRandomUuid(int position);
/// The same numbers in every statement.
ExprPtr MakeRepeatable(uint64_t seed, int position, int shift);

/// Does what calls of setseed() say, and gives every call of random() its seed: the query has been bound and unnested.
void SeedCalls(Query* query, RandomState* state);

}  // namespace tessera
