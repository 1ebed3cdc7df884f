// How ranks share rows that all of them have: every row once, in about equal parts, also of what sorted rows match.

#include "vm/shares/source_shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tessera::vm {
namespace {

TEST(SourceShares, EveryRowHasOneRank) {
  for (const int ranks : {1, 2, 3, 7, 64}) {
    for (const uint64_t rows : {0, 1, 63, 64, 65, 127, 128, 129, 191, 1000, 2047, 2048, 4096, 65535, 100000, 500001}) {
      std::vector<int> taken(rows);
      for (int rank = 0; rank < ranks; ++rank) {
        const SourceShare share = KeepShare(rows, rank, ranks);
        uint64_t before = 0;
        for (uint64_t i = 0; i < share.rows; ++i) {
          const uint64_t row = share.At(i);
          ASSERT_LT(row, rows) << rows << " rows, rank " << rank << " of " << ranks;
          ASSERT_TRUE(i == 0 || row > before) << "not in the order of the source";
          before = row;
          ++taken[row];
        }
      }
      EXPECT_EQ(std::count(taken.begin(), taken.end(), 1), static_cast<ptrdiff_t>(rows)) << rows << " rows, " << ranks;
    }
  }
}

TEST(SourceShares, OneRankHasAllInOrder) {
  const SourceShare share = KeepShare(5000, 0, 1);
  EXPECT_EQ(share.rows, 5000u);
  for (uint64_t i = 0; i < share.rows; ++i) ASSERT_EQ(share.At(i), i);
}

TEST(SourceShares, PiecesAreNeitherSmallNorLarge) {
  EXPECT_EQ(KeepShare(100, 0, 2).piece_rows, 64u);
  EXPECT_EQ(KeepShare(64 * 16 * 2, 0, 2).piece_rows, 64u);
  EXPECT_EQ(KeepShare(256 * 16 * 3, 1, 3).piece_rows, 256u);
  EXPECT_EQ(KeepShare(uint64_t{1} << 30, 0, 8).piece_rows, 2048u);
}

/// Row i has i matches, as in sorted rows that are joined by `<`.
TEST(SourceShares, SkewIsEvenedOut) {
  for (const int ranks : {2, 3, 8}) {
    constexpr uint64_t kRows = 100000;
    std::vector<double> matches;
    for (int rank = 0; rank < ranks; ++rank) {
      const SourceShare share = KeepShare(kRows, rank, ranks);
      double of_rank = 0;
      for (uint64_t i = 0; i < share.rows; ++i) of_rank += static_cast<double>(share.At(i));
      matches.push_back(of_rank);
    }
    const double all = 0.5 * kRows * (kRows - 1);
    const double most = *std::max_element(matches.begin(), matches.end());
    EXPECT_LT(most, 1.08 * all / ranks) << ranks;
  }
}

}  // namespace
}  // namespace tessera::vm
