// The mask of a tile: what it calls live is what its bytes say, dense and sparse, and at the edges of words and tiles.

#include "vm/machine/tile_mask.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <vector>

namespace tessera::vm {
namespace {

constexpr int kSizes[] = {1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 2047, 2048};

void ExpectLive(TileMask* mask, const std::vector<int>& expected) {
  std::vector<int> by_byte, only, loop;
  for (int i = 0; i < kTileRows; ++i)
    if ((*mask)[i] != 0) by_byte.push_back(i);
  mask->ForOnlyLive([&](int i) { only.push_back(i); });
  mask->ForLive([&](int i) { loop.push_back(i); });
  EXPECT_EQ(by_byte, expected);
  EXPECT_EQ(only, expected);
  EXPECT_EQ(mask->live(), static_cast<int>(expected.size()));
  EXPECT_TRUE(std::ranges::includes(loop, expected));
  if (!mask->sparse()) return;
  const std::vector<int> listed(mask->LiveRows().begin(), mask->LiveRows().end());
  EXPECT_EQ(listed, expected);
}

std::vector<int> Chosen(int rows, const std::vector<bool>& wanted) {
  std::vector<int> chosen;
  for (int i = 0; i < rows; ++i)
    if (wanted[static_cast<size_t>(i)]) chosen.push_back(i);
  return chosen;
}

TEST(TileMask, HasTheRowsOfTheTile) {
  const auto mask = std::make_unique<TileMask>();
  for (const int rows : {2048, 33, 1, 2047}) {
    mask->SetToAll(rows);
    EXPECT_EQ(mask->rows(), rows);
    EXPECT_FALSE(mask->sparse());
    ExpectLive(mask.get(), Chosen(rows, std::vector<bool>(kTileRows, true)));
    mask->SetToNone();
    EXPECT_TRUE(mask->sparse());
    ExpectLive(mask.get(), {});
  }
}

TEST(TileMask, KeepsWhatIsWanted) {
  const auto mask = std::make_unique<TileMask>();
  std::minstd_rand random(7);
  for (const int rows : kSizes) {
    for (const unsigned one_in : {1u, 2u, 5u, 50u, 5000u}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, one in " << one_in);
      mask->SetToAll(rows);
      std::vector<bool> wanted(kTileRows, true);
      for (int step = 0; step < 3; ++step) {
        std::vector<bool> now(kTileRows);
        for (size_t i = 0; i < now.size(); ++i) now[i] = random() % one_in == 0;
        mask->Keep([&](int i) { return bool{now[static_cast<size_t>(i)]}; });
        for (size_t i = 0; i < now.size(); ++i) wanted[i] = wanted[i] && now[i];
        ExpectLive(mask.get(), Chosen(rows, wanted));
      }
    }
  }
}

TEST(TileMask, ComesBackAsItWasSaved) {
  const auto mask = std::make_unique<TileMask>();
  std::vector<uint8_t> saved(kTileRows);
  for (const int rows : kSizes) {
    SCOPED_TRACE(rows);
    mask->SetToAll(rows);
    std::vector<bool> odd(kTileRows);
    for (size_t i = 0; i < odd.size(); ++i) odd[i] = i % 2 == 1;
    mask->Keep([&](int i) { return bool{odd[static_cast<size_t>(i)]}; });
    mask->SaveTo(saved.data());
    mask->Keep([](int i) { return i == 5; });
    mask->Restore(saved.data());
    ExpectLive(mask.get(), Chosen(rows, odd));
    if (rows > 1) mask->Write()[1] = 0;
    mask->Changed();
    odd[1] = false;
    ExpectLive(mask.get(), Chosen(rows, odd));
  }
}

}  // namespace
}  // namespace tessera::vm
