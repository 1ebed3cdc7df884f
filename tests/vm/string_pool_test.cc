// The strings of a query: identifiers from 0 on, and reading without a lock while other threads add.
#include "vm/rows/string_pool.h"

#include "base/exception_status.h"

#define XXH_INLINE_ALL
#include <gtest/gtest.h>
#include <xxhash.h>

#include <atomic>
#include <climits>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/interrupt.h"
#include "base/thread_pool.h"
#include "vm/rows/text_ranks.h"

namespace tessera::vm {
namespace {

std::string Text(int k) {
  return k == 0 ? std::string() : "string number " + std::to_string(k) + std::string(static_cast<size_t>(k) % 97, 'x');
}

TEST(StringPool, CountsFromZero) {
  StringPool pool;
  EXPECT_EQ(pool.Get(0), "");
  // Over the edges of blocks (64, 128, 256 ...) and arenas.
  for (int k = 0; k < 5000; ++k) EXPECT_EQ(pool.Intern(Text(k)), k);
  for (int k = 4999; k >= 0; --k) EXPECT_EQ(pool.Intern(Text(k)), k);
  for (int k = 0; k < 5000; ++k) EXPECT_EQ(pool.Get(k), Text(k));
}

TEST(StringPool, ManyAtATimeAreTheSameStrings) {
  StringPool pool;
  const int64_t known = pool.Intern(Text(7));
  std::vector<std::string> strings;
  for (int k = 0; k < 5000; ++k) strings.push_back(Text(k % 3000));  // some come twice
  const std::vector<std::string_view> texts(strings.begin(), strings.end());
  std::vector<std::vector<int64_t>> ids(4, std::vector<int64_t>(texts.size(), -1));
  std::vector<std::thread> threads;
  for (auto& mine : ids) threads.emplace_back([&pool, &texts, &mine] { pool.Intern(texts, mine.data()); });
  for (std::thread& t : threads) t.join();
  for (const auto& other : ids) EXPECT_EQ(other, ids[0]);
  EXPECT_EQ(ids[0][7], known);
  for (size_t k = 0; k < texts.size(); ++k) {
    ASSERT_EQ(pool.Get(ids[0][k]), texts[k]);
    ASSERT_EQ(ids[0][k], ids[0][k % 3000]);
    ASSERT_EQ(pool.Intern(texts[k]), ids[0][k]);
    ASSERT_LT(ids[0][k], static_cast<int64_t>(pool.count()));
  }
  EXPECT_LT(pool.count(), 2 * texts.size());
  EXPECT_EQ(pool.Get(pool.Intern("one more")), "one more");
}

TEST(StringPool, OtherNumbersAreNoString) {
  StringPool pool;
  pool.Intern("a");
  for (const int64_t id : {int64_t{-1}, int64_t{1}, int64_t{63}, int64_t{64}, int64_t{1} << 40, INT64_MAX, INT64_MIN})
    EXPECT_EQ(pool.Get(id), "") << id;
}

TEST(StringPool, BytesOfAnyKind) {
  StringPool pool;
  const std::string zero("a\0b", 3), large(1 << 20, 'y');
  const int64_t first = pool.Intern(zero), second = pool.Intern(large), third = pool.Intern(std::string_view("a"));
  EXPECT_EQ(pool.Get(first), zero);
  EXPECT_EQ(pool.Get(second), large);
  EXPECT_EQ(pool.Get(third), "a");
}

TEST(StringPool, ThreadsAgreeOnIdentifiers) {
  constexpr int kStrings = 3000, kThreads = 4;
  StringPool pool;
  std::vector<std::vector<int64_t>> ids(kThreads, std::vector<int64_t>(kStrings));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int n = 0; n < kStrings; ++n) {
        const int k = (n * 7 + t * 750) % kStrings;  // all strings; each thread starts at another one
        ids[static_cast<size_t>(t)][static_cast<size_t>(k)] = pool.Intern(Text(k));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  std::vector<bool> given(kStrings);
  for (int k = 0; k < kStrings; ++k) {
    const int64_t id = ids[0][static_cast<size_t>(k)];
    ASSERT_TRUE(id >= 0 && id < kStrings) << id;
    EXPECT_FALSE(given[static_cast<size_t>(id)]) << id;
    given[static_cast<size_t>(id)] = true;
    EXPECT_EQ(pool.Get(id), Text(k));
    for (int t = 1; t < kThreads; ++t) EXPECT_EQ(ids[static_cast<size_t>(t)][static_cast<size_t>(k)], id);
  }
}

TEST(TextRanks, AreTheOrderOfTheStrings) {
  StringPool pool;
  TextRanks texts;
  const auto check = [&] {
    ASSERT_TRUE(texts.Update(pool, nullptr).ok());
    const std::vector<uint32_t>& ranks = texts.ranks();
    ASSERT_EQ(ranks.size(), pool.count());
    for (size_t a = 0; a < ranks.size(); ++a) {
      for (size_t b = 0; b < ranks.size(); ++b) {
        const bool less = pool.Get(static_cast<int64_t>(a)) < pool.Get(static_cast<int64_t>(b));
        ASSERT_EQ(ranks[a] < ranks[b], less) << a << " " << b;
      }
    }
  };
  check();
  // Equal heads, zeros beside the end, bytes above 127.
  using std::string_view_literals::operator""sv;
  for (const std::string_view s : {"b"sv, ""sv, "a"sv, "a\0"sv, "a\0\0"sv, "12345678"sv, "12345678\0"sv, "123456789"sv})
    pool.Intern(s);
  check();
  for (const std::string_view s : {"12345677zzz"sv, "\xff"sv, "\x7f"sv, "\0"sv, "ab"sv, "123456788"sv}) pool.Intern(s);
  check();
  for (int k = 0; k < 200; ++k) pool.Intern(Text(k));
  check();
  // Many that begin alike, for long, and end within, with zeros after.
  for (int k = 0; k < 300; ++k) {
    const std::string number = std::to_string(1'000'000 + k * 7919 % 1000);
    pool.Intern("Supplier#00" + number);
    pool.Intern(std::string(40, 'x') + number.substr(0, static_cast<size_t>(k % 8)) + std::string(k % 5, '\0'));
  }
  check();
}

/// Many texts, which threads share: in order, in none, nearly all after the last one of a sample; alike for 8 and 24
/// bytes but for one, and one of these ends there.
TEST(TextRanks, ThreadsShareTexts) {
  ThreadPool threads(3), many(16);
  constexpr size_t kTexts = 300'000, kSampled = 384;  // 12 buckets of three threads
  for (const std::string_view shape :
       {"in order", "in no order", "after a sample", "all but one alike", "alike for long", "one ends"}) {
    SCOPED_TRACE(shape);
    const bool alike = shape == "all but one alike" || shape == "alike for long" || shape == "one ends";
    std::vector<std::string> texts;
    for (size_t i = 0; i < (alike ? kTexts / 10 : kTexts); ++i) {
      const size_t number = shape == "in order" ? i : i * 7919 % 1'000'003;
      const bool is_sampled = (i * kSampled + kTexts - 1) / kTexts * kTexts / kSampled == i;
      const bool first = shape != "after a sample" || is_sampled;
      texts.push_back((alike ? "Supplier" : first ? "name " : "z ") + std::to_string(1'000'000 + number));
      if (shape == "alike for long") texts.back().insert(8, i == 7 ? "12345678" : "1234567812345678");
    }
    if (alike) texts[100] = "CANADA";
    if (shape == "one ends") texts[200] = "Supplier";
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    const Result<std::vector<uint32_t>> order = OrderOf(views, alike ? &many : &threads);
    ASSERT_TRUE(order.ok()) << order.status().message();
    ASSERT_EQ(order->size(), texts.size());
    for (size_t i = 1; i < texts.size(); ++i) ASSERT_LT(texts[(*order)[i - 1]], texts[(*order)[i]]) << i;
  }
  std::atomic<bool> cancelled{true};
  const InterruptScope scope(&cancelled);
  std::vector<std::string> texts;
  for (size_t i = 0; i < 300000; ++i) texts.push_back(std::to_string(i));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  EXPECT_FALSE(Caught([&] { return OrderOf(views, &threads).status(); }).ok());
}

// The same bytes may be cut into other entries.
TEST(KnownDictionaries, AreFoundByAllTheirEntries) {
  const std::string text(200, 'x');
  std::vector<uint64_t> offsets(101), others(101), few(10);
  for (size_t i = 0; i < offsets.size(); ++i) {
    offsets[i] = 2 * i;
    others[i] = 2 * i - (i == 50 ? 1 : 0);
  }
  for (size_t i = 0; i < few.size(); ++i) few[i] = 20 * i;
  KnownDictionaries known;
  const auto ids = std::make_shared<const std::vector<int64_t>>(offsets.size(), 7);
  EXPECT_EQ(known.Find({offsets, text}), nullptr);
  known.Keep({offsets, text}, ids);
  known.Keep({few, text}, ids);
  EXPECT_EQ(known.Find({offsets, text}), ids);
  EXPECT_EQ(known.Find({std::vector<uint64_t>(offsets), std::string(text)}), ids);
  EXPECT_EQ(known.Find({others, text}), nullptr);
  EXPECT_EQ(known.Find({offsets, std::string(200, 'y')}), nullptr);
  EXPECT_EQ(known.Find({few, text}), nullptr);  // interning them takes no longer
  // What it keeps does not grow without end.
  for (int i = 0; i < 1000; ++i) {
    const std::string other = std::to_string(i) + std::string(20000, ' ');
    std::vector<uint64_t> ends = offsets;
    ends.back() = other.size();
    known.Keep({ends, other}, ids);
  }
  EXPECT_LE(known.bytes(), uint64_t{1} << 20);
  EXPECT_EQ(known.Find({offsets, text}), ids);
}

// Rows that are NULL hold any number, and a number may be that of a string on its way in.
TEST(StringPool, ReadersOfNumbersThatNobodyGaveThem) {
  constexpr int kStrings = 20000;
  StringPool pool;
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!done) {
      for (int id = 0; id < kStrings; ++id) {
        const std::string_view text = pool.Get(id);
        if (!text.empty() && text != Text(id)) ++wrong;
      }
    }
  });
  for (int k = 0; k < kStrings; ++k) pool.Intern(Text(k));
  done = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
}

// A table of the pool has the last bits of a hash beside an identifier, and 0 where it has none.
TEST(StringPool, AHashThatEndsInZeros) {
  std::string zeros;
  for (int k = 0; zeros.empty(); ++k) {
    const std::string text = std::to_string(k);
    if ((XXH3_64bits(text.data(), text.size()) & 0xFFFFFF) == 0) zeros = text;
  }
  StringPool pool;
  std::vector<std::string> strings;
  for (int k = 0; k < 5000; ++k) strings.push_back(Text(k));
  std::vector<std::string_view> texts(strings.begin(), strings.end());
  std::vector<int64_t> ids(texts.size() + 1);
  pool.Intern(texts, ids.data());
  texts.push_back(zeros);
  for (const int64_t expected : {int64_t{5000}, int64_t{5000}}) {
    pool.Intern(texts, ids.data());
    EXPECT_EQ(ids.back(), expected);
    EXPECT_EQ(pool.Get(ids.back()), zeros);
  }
}

}  // namespace
}  // namespace tessera::vm
