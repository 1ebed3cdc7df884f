// SizeText: sizes in messages say something, however small.
#include "base/size_text.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(SizeText, TheGreatestUnitOfWhichThereIsOne) {
  constexpr uint64_t kKib = 1 << 10, kMib = 1 << 20, kGib = 1 << 30;
  EXPECT_EQ(SizeText(0), "0 bytes");
  EXPECT_EQ(SizeText(1), "1 byte");
  EXPECT_EQ(SizeText(1023), "1023 bytes");
  EXPECT_EQ(SizeText(kKib), "1.0 KiB");
  EXPECT_EQ(SizeText(24 * kKib + 600), "24.6 KiB");
  EXPECT_EQ(SizeText(kMib - 100), "1023.9 KiB");
  EXPECT_EQ(SizeText(kMib - 1), "1.0 MiB");  // not 1024.0 KiB
  EXPECT_EQ(SizeText(kMib), "1.0 MiB");
  EXPECT_EQ(SizeText(16 * kMib), "16.0 MiB");
  EXPECT_EQ(SizeText(kGib - 1), "1.00 GiB");
  EXPECT_EQ(SizeText(kGib + kGib / 2), "1.50 GiB");
  EXPECT_EQ(SizeText(UINT64_MAX), "17179869184.00 GiB");
}

}  // namespace
}  // namespace tessera
