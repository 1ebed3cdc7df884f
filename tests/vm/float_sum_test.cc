// Sums of doubles that do not depend on the order, beside sums in 113 bits and sums whose value is known.
#include "vm/meaning/float_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "vm/meaning/float_moments.h"

namespace tessera::vm {
namespace {

__extension__ typedef __float128 Quad;

constexpr double kMost = std::numeric_limits<double>::max(), kLeast = std::numeric_limits<double>::denorm_min();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

FloatSum SumOf(const std::vector<double>& values) {
  FloatSum s = FloatSum::Zero();
  for (const double v : values) s.Add(v);
  return s;
}
double ValueOf(const std::vector<double>& values) { return SumOf(values).Value(); }

bool Same(const FloatSum& a, const FloatSum& b) { return memcmp(&a, &b, sizeof a) == 0; }

std::vector<int64_t> BitsOf(const std::vector<double>& values) {
  std::vector<int64_t> bits;
  for (const double v : values) bits.push_back(std::bit_cast<int64_t>(v));
  return bits;
}

/// Numbers whose exponents lie in [-spread, spread], or that are decimal fractions if it is 0.
std::vector<double> Numbers(std::mt19937_64& random, int spread, size_t count) {
  std::vector<double> values(count);
  for (double& v : values) {
    const auto whole = static_cast<int64_t>(random());
    v = spread == 0 ? static_cast<double>(whole % 1'000'000) / 100
                    : std::ldexp(static_cast<double>(whole),
                                 static_cast<int>(random() % (2 * static_cast<unsigned>(spread))) - spread - 63);
  }
  return values;
}

TEST(FloatSum, IsRoundedOnce) {
  EXPECT_EQ(ValueOf(std::vector<double>(10, 0.1)), 1.0);
  EXPECT_EQ(ValueOf({1e16, 1, 1}), 1e16 + 2);
  EXPECT_EQ(ValueOf({1e16, 1, -1e16}), 1.0);
  // Half of the last bit is rounded to even, and up with anything more.
  EXPECT_EQ(ValueOf({0x1p53, 1}), 0x1p53);
  EXPECT_EQ(ValueOf({0x1p53, 1, 0x1p-20}), 0x1p53 + 2);
  EXPECT_EQ(ValueOf({-0x1p53, -1, -0x1p-20}), -0x1p53 - 2);
  std::mt19937_64 random(1);
  for (const int spread : {0, 1, 5, 20}) {
    const std::vector<double> values = Numbers(random, spread, 1000);
    Quad sum = 0;
    for (const double v : values) sum += static_cast<Quad>(v);
    EXPECT_EQ(ValueOf(values), static_cast<double>(sum)) << spread;
  }
}

TEST(FloatSum, IsWrongByLessThanItSays) {
  std::mt19937_64 random(2);
  for (const int spread : {50, 90, 200, 900}) {
    const std::vector<double> values = Numbers(random, spread, 200);
    Quad sum = 0;
    double most = 0;
    for (const double v : values) {
      sum += static_cast<Quad>(v);
      most = std::max(most, std::fabs(v));
    }
    // (The last rounding is to half a bit of the result.)
    const double value = ValueOf(values), error = static_cast<double>(sum - static_cast<Quad>(value));
    EXPECT_LE(std::fabs(error), std::ldexp(200 * most, -81) + std::ldexp(std::fabs(value), -53)) << spread;
  }
}

TEST(FloatSum, TakesAnyDouble) {
  for (const double v : {0.0, 1.0, 0.1, -2.5, kMost, -kMost, kLeast, -kLeast, 0x1p-1022, 0x1p-1023, 1e-300, 0x1p1000})
    EXPECT_EQ(ValueOf({v}), v) << v;
  EXPECT_FALSE(std::signbit(ValueOf({-0.0})));
  EXPECT_EQ(ValueOf({kMost, kMost, -kMost}), kMost);  // (no sum on the way is infinite)
  EXPECT_EQ(ValueOf({kMost, kMost}), kInfinity);
  EXPECT_EQ(ValueOf({1, kInfinity}), kInfinity);
  EXPECT_EQ(ValueOf({-kInfinity, 5}), -kInfinity);
  EXPECT_TRUE(std::isnan(ValueOf({kInfinity, -kInfinity})));
  EXPECT_TRUE(std::isnan(ValueOf({1, NAN, kInfinity})));
  EXPECT_EQ(ValueOf({}), 0.0);
}

TEST(FloatSum, DoesNotDependOnTheOrder) {
  std::mt19937_64 random(3);
  for (const int spread : {0, 3, 40, 300, 1000}) {
    std::vector<double> values = Numbers(random, spread, 997);
    values[3] = 0;
    if (spread == 40) values[500] = kInfinity;
    const FloatSum one = SumOf(values);
    for (int turn = 0; turn < 5; ++turn) {
      std::shuffle(values.begin(), values.end(), random);
      EXPECT_TRUE(Same(SumOf(values), one));
      // In parts, as threads and ranks have them, and as the machine adds rows.
      std::vector<FloatSum> parts(1 + random() % 9, FloatSum::Zero());
      FloatSum all = FloatSum::Zero(), merged = FloatSum::Zero();
      std::vector<uint32_t> groups;
      for (const double v : values) {
        groups.push_back(static_cast<uint32_t>(random() % parts.size()));
        (void)v;
      }
      const std::vector<int64_t> bits = BitsOf(values);
      AddToGroups(bits.data(), groups.data(), static_cast<int>(bits.size()),
                  {parts.data(), sizeof(FloatSum), parts.size()});
      for (const FloatSum& part : parts) merged.Merge(part);
      AddAll(bits.data(), static_cast<int>(bits.size()), &all);
      EXPECT_TRUE(Same(merged, one));
      EXPECT_TRUE(Same(all, one));
    }
  }
}

TEST(FloatSum, OfAGroupInAWindow) {
  std::mt19937_64 random(4);
  for (const int spread : {0, 10, 25}) {
    const std::vector<double> values = Numbers(random, spread, 300);
    // What kernels do, by one thread: see kernels/device/float_window.cuh.
    uint64_t words[FloatWindow::kAllWords] = {};
    FloatSum above = FloatSum::Zero();
    for (const double v : values) {
      if (v == 0) continue;
      const int exponent = FloatSum::ExponentBits(v), top = FloatSum::TopOf(exponent);
      if (words[0] == 0) words[0] = FloatWindow::Head(top);
      if (top > FloatWindow::First(words[0])) {
        above.Add(v);
        continue;
      }
      words[0] = std::max(words[0], FloatWindow::WithTop(words[0], top));
      int shift = FloatSum::ShiftTo(FloatWindow::First(words[0]), exponent);
      for (int bin = 0; bin < FloatWindow::kBins; ++bin, shift += FloatSum::kBinBits) {
        const int64_t slice = FloatSum::Slice(FloatSum::Magnitude(v), shift);
        words[1 + bin] += static_cast<uint64_t>(v < 0 ? -slice : slice);
      }
    }
    memcpy(words + FloatWindow::kWords, &above, sizeof above);
    EXPECT_TRUE(Same(FloatWindow::SumOf(words), SumOf(values))) << spread;
  }
}

double DeviationsOf(const std::vector<double>& values) {
  FloatMoments m = FloatMoments::Zero(), other = FloatMoments::Zero();
  for (size_t i = 0; i < values.size(); ++i) (i % 3 == 0 ? m : other).Add(values[i]);
  m.Merge(other);
  return m.Deviations();
}

TEST(FloatMoments, DoNotCancel) {
  std::mt19937_64 random(5);
  EXPECT_EQ(DeviationsOf(std::vector<double>(1000, 0.1)), 0.0);
  EXPECT_EQ(DeviationsOf({7.25}), 0.0);
  EXPECT_EQ(DeviationsOf({1, 1 + 0x1p-52}), 0x1p-105);
  for (const double mean : {0.0, 1.0, 1e9, 1e15}) {
    std::vector<double> values;
    for (int i = 0; i < 5000; ++i) values.push_back(mean + static_cast<double>(random() % 8) / 8);
    Quad sum = 0, deviations = 0;
    for (const double v : values) sum += static_cast<Quad>(v);
    for (const double v : values) {
      const Quad difference = static_cast<Quad>(v) - sum / 5000;
      deviations += difference * difference;
    }
    EXPECT_DOUBLE_EQ(DeviationsOf(values), static_cast<double>(deviations)) << mean;
  }
  EXPECT_DOUBLE_EQ(DeviationsOf({1e153, 3e153}), 2e306);
  EXPECT_EQ(DeviationsOf({1e200, 2e200}), kInfinity);
  EXPECT_TRUE(std::isnan(DeviationsOf({1, kInfinity})));
  EXPECT_TRUE(std::isnan(DeviationsOf({1, NAN})));
  EXPECT_EQ(DeviationsOf({1e-200, 2e-200}), 0.0);
}

}  // namespace
}  // namespace tessera::vm
