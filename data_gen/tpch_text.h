// Text as in the comments of TPC-H: sentences of the grammar in clause 4.2.2.14 of the specification, one after another
// in a pool. A comment is a piece of the pool from a random character on, as the specification has it; so most begin and
// end within a word, and short ones occur more than once.
//
// The specification lists the words, but not how frequent they are. The weights here are what was counted in the comments
// that DuckDB's dbgen makes at scale 1: a rare word is 1, "furiously" is 50 times as frequent. Counted there, too: how
// long a comment is follows from its place in the pool, so a pool of ten million characters gives hardly more different
// comments than that.
//
// Start at: TextPool::Make, Piece. Any thread may take pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "data_gen/random.h"

namespace tessera::tpch {

class TextPool {
 public:
  /// A pool of `bytes`, made by `jobs` threads; the same text for any number of them. Errors: kResource, memory or
  /// threads.
  static Result<TextPool> Make(size_t bytes, uint64_t seed, unsigned jobs);

  /// [least, most] characters, uniform, from a uniform place. Valid as long as the pool. Draws one number.
  std::string_view Piece(RandomRow& random, size_t least, size_t most) const {
    const uint64_t place = random.Below(size_ - most);
    const size_t length = least + MixBits(place) % (most - least + 1);
    return {text_.get() + place, length};
  }

 private:
  std::unique_ptr<char[]> text_;
  size_t size_ = 0;
};

}  // namespace tessera::tpch
