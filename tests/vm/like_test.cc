// LIKE against a second meaning of it, and its time for patterns that were made to take long.
#include <gtest/gtest.h>

#include <ctime>
#include <random>
#include <string>
#include <vector>

#include "vm/meaning/text_meaning.h"

namespace tessera::vm {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::clock_t kMostSeconds = 10;
#else
constexpr std::clock_t kMostSeconds = 1;
#endif

/// Character by character, with a table of which ends of both match.
bool Reference(const std::string& s, const std::string& p) {
  std::vector<std::string> text, pattern;
  for (char c : s) {
    if (IsLeadByte(c)) text.emplace_back();
    text.back() += c;
  }
  for (size_t k = 0; k < p.size(); ++k) {
    if (IsLeadByte(p[k])) pattern.emplace_back();
    if (p[k] == '\\' && k + 1 < p.size()) pattern.back() += p[k++];
    pattern.back() += p[k];
  }
  std::vector<std::vector<bool>> like(text.size() + 1, std::vector<bool>(pattern.size() + 1));
  for (size_t i = text.size() + 1; i-- > 0;) {
    for (size_t k = pattern.size() + 1; k-- > 0;) {
      bool is = false;
      if (k == pattern.size()) {
        is = i == text.size();
      } else if (pattern[k] == "%") {
        is = like[i][k + 1] || (i < text.size() && like[i + 1][k]);
      } else if (i < text.size()) {
        const std::string& c = pattern[k];
        is = (c == "_" || (c.size() > 1 && c[0] == '\\' ? c.substr(1) : c) == text[i]) && like[i + 1][k + 1];
      }
      like[i][k] = is;
    }
  }
  return like[0][0];
}

std::string Repeat(const std::string& s, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += s;
  return out;
}

TEST(Like, AgreesWithASecondMeaning) {
  std::mt19937_64 random(7);
  const auto pick = [&](std::vector<std::string> from, size_t most) {
    std::string out;
    for (size_t n = random() % most; n > 0; --n) out += from[random() % from.size()];
    return out;
  };
  int matches = 0;
  for (int i = 0; i < 30000; ++i) {
    const bool wide = i % 2 == 0;
    const std::string s =
        pick(wide ? std::vector<std::string>{"a", "\xC3\xA4", "\xE6\x97\xA5", "%"} : std::vector<std::string>{"a", "b"},
             i % 10 == 0 ? 200 : 12);
    const std::string p = pick(wide ? std::vector<std::string>{"a", "\xC3\xA4", "_", "_", "%", "%", "\\%", "\\_"}
                                    : std::vector<std::string>{"a", "b", "_", "%"},
                               i % 10 == 0 ? 90 : 9);
    const bool expected = Reference(s, p);
    ASSERT_EQ(LikeMatches(s, p), expected) << s << " LIKE " << p;
    ASSERT_EQ(LikePattern(p).Matches(s), expected) << s << " LIKE " << p;
    ASSERT_EQ(LikeBehindPercent(s, p), Reference(s, "%" + p)) << s << " LIKE %" << p;
    matches += expected;
  }
  EXPECT_GT(matches, 1000);
}

TEST(Like, LongPatternsTakeLittleTime) {
  const std::string text = Repeat("a", 100000), half = Repeat("a", 50000);
  struct Case {
    std::string text, pattern;
    bool matches;
  };
  const Case cases[] = {
      {text, "%" + half + "b", false},
      {text, "%" + half + "b%", false},
      {text, "%" + half + "%" + half + "%", true},
      {text, "%" + Repeat("a%", 25000) + "b", false},
      {text, "%" + Repeat("_", 50000) + "b%", false},
      {text, "%" + Repeat("a_", 25000) + "b%", false},
      {text, "%" + Repeat("a_", 25000) + "%" + Repeat("_a", 25000), true},
      {Repeat("\xC3\xA4", 50000), "%" + Repeat("_\xC3\xA4", 12000) + "a%", false},
  };
  for (const Case& c : cases) {
    const std::clock_t start = std::clock();
    EXPECT_EQ(LikeMatches(c.text, c.pattern), c.matches) << c.pattern.substr(0, 5);
    // It takes a tenth of this; the product of the lengths takes several times as much.
    EXPECT_LT(std::clock() - start, kMostSeconds * CLOCKS_PER_SEC) << c.pattern.substr(0, 5);
  }
}

// The parts of a pattern are searched in blocks: at every place of strings of every length around those of blocks.
TEST(Like, PartsAreFoundAtEveryPlace) {
  for (size_t part = 2; part < 70; part += part < 34 ? 3 : 17) {
    for (size_t size = part; size < 140; size += 7) {
      for (size_t at = 0; at + part <= size; ++at) {
        const std::string needle = "n" + std::string(part - 1, 'e');
        std::string text(size, 'n');
        text.replace(at, part, needle);
        const std::string anywhere = "%" + needle + "%", nowhere = "%" + needle + "x%", last = "n%" + needle;
        ASSERT_TRUE(LikePattern(anywhere).Matches(text)) << text << " " << needle;
        ASSERT_FALSE(LikePattern(nowhere).Matches(text)) << text << " " << needle;
        ASSERT_EQ(LikePattern(last).Matches(text), at >= 1 && at + part == size) << text << " " << needle;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::vm
