// Schemes and trees of them: every tree gives back every stream that it takes, what was written by somebody else is
// refused or harmless, and the planner finds what a stream is like.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tablet/schemes/bit_packing.h"
#include "tablet/schemes/different_values.h"
#include "tablet/schemes/packed_reader.h"
#include "tablet/schemes/packed_stream.h"
#include "tablet/schemes/scheme_planner.h"
#include "tablet/schemes/unpack_cost.h"
#include "tablet/values/ordered_float.h"

namespace tessera {
namespace {

SchemeTree Tree(Scheme scheme, std::vector<SchemeTree> children = {}, uint64_t parameter = 0) {
  return {scheme, parameter, std::move(children)};
}
SchemeTree Ns() { return Tree(Scheme::kNs); }

template <class Value>
Values UnpackAs(const std::vector<uint8_t>& packed, size_t values, const ScaledCodes* scaled, std::string* reason) {
  PackedTree tree;
  const char* why = ParsePackedStream(packed.data(), packed.size(), values, sizeof(Value), scaled != nullptr, &tree);
  std::vector<Value> out(values, static_cast<Value>(0x5A));
  if (why == nullptr) {
    why = UnpackStream(packed.data(), tree, sizeof(Value), scaled, reinterpret_cast<uint8_t*>(out.data()));
  }
  *reason = why == nullptr ? "" : why;
  return {out.begin(), out.end()};
}

/// A reader gives the values that unpacking does, by tiles from anywhere on and one by one. Returns whether there is one.
template <class Value>
bool ReadsAs(const std::vector<uint8_t>& packed, const Values& values, const ScaledCodes* scaled = nullptr) {
  PackedTree tree;
  EXPECT_EQ(ParsePackedStream(packed.data(), packed.size(), values.size(), sizeof(Value), scaled != nullptr, &tree),
            nullptr);
  const auto reader = PackedReader::Open(packed.data(), tree, sizeof(Value), scaled, std::nullopt);
  if (reader == nullptr) return false;
  std::mt19937_64 random(values.size());
  std::vector<Value> out(PackedReader::kRoom);
  uint8_t* const bytes = reinterpret_cast<uint8_t*>(out.data());
  for (size_t first = 0; first < values.size(); first += 1 + random() % PackedReader::kMostRows) {
    const size_t count = std::min<size_t>(values.size() - first, PackedReader::kMostRows);
    EXPECT_EQ(reader->Read(static_cast<uint32_t>(first), static_cast<uint32_t>(count), bytes), nullptr);
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    EXPECT_TRUE(std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count), begin))
        << "from row " << first;
    std::fill(out.begin(), out.end(), Value{0x5A});
    std::vector<uint16_t> places;
    for (size_t i = random() % 40; i < count; i += 1 + random() % 40) places.push_back(static_cast<uint16_t>(i));
    EXPECT_EQ(reader->ReadPlaces(static_cast<uint32_t>(first), places, bytes), nullptr);
    for (const uint16_t i : places) EXPECT_EQ(out[i], values[first + i]) << "row " << first + i;
  }
  return true;
}

/// Packs and unpacks, to integers of every width that holds the values.
void ExpectRoundTrip(const Values& values, const SchemeTree& tree) {
  SCOPED_TRACE(tree.ToString() + " of " + std::to_string(values.size()) + " values");
  const auto packed = PackIntegers(values, tree, nullptr);
  ASSERT_TRUE(packed.has_value());
  EXPECT_EQ(packed->size() % 8, 0u);
  const uint64_t greatest = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  std::string reason;
  EXPECT_EQ(UnpackAs<uint64_t>(*packed, values.size(), nullptr, &reason), values) << reason;
  if (!values.empty() && ReadsAs<uint64_t>(*packed, values)) {
    if (greatest <= UINT32_MAX) ReadsAs<uint32_t>(*packed, values);
    if (greatest <= UINT16_MAX) ReadsAs<uint16_t>(*packed, values);
    if (greatest <= UINT8_MAX) ReadsAs<uint8_t>(*packed, values);
  }
  if (greatest <= UINT32_MAX) {
    EXPECT_EQ(UnpackAs<uint32_t>(*packed, values.size(), nullptr, &reason), values) << reason;
  }
  if (greatest <= UINT16_MAX) {
    EXPECT_EQ(UnpackAs<uint16_t>(*packed, values.size(), nullptr, &reason), values) << reason;
  }
  if (greatest <= UINT8_MAX) {
    EXPECT_EQ(UnpackAs<uint8_t>(*packed, values.size(), nullptr, &reason), values) << reason;
  }
  EXPECT_EQ(reason, "");
}

Values Make(size_t rows, const std::function<uint64_t(size_t)>& value) {
  Values out(rows);
  for (size_t i = 0; i < rows; ++i) out[i] = value(i);
  return out;
}

constexpr size_t kSizes[] = {1, 2, 63, 64, 65, 1000, 4096, 10'001};

std::vector<Values> Streams(size_t rows) {
  std::mt19937_64 random(rows);
  return {
      Make(rows, [](size_t) { return 0u; }),
      Make(rows, [](size_t) { return UINT64_MAX; }),
      Make(rows, [](size_t i) { return i; }),
      Make(rows, [](size_t i) { return 1'000'000'007 + i * 60; }),
      Make(rows, [](size_t i) { return i / 10 % 7; }),
      Make(rows, [&](size_t) { return random() % 200; }),
      Make(rows, [&](size_t) { return random() % 40'000; }),
      Make(rows, [&](size_t) { return random() % 5 == 0 ? random() >> 33 : random() % 100; }),
      Make(rows, [&](size_t) { return random(); }),
      Make(rows, [&](size_t i) { return i % 2 == 0 ? i : 100'000 - i; }),
  };
}

std::vector<SchemeTree> Trees() {
  const SchemeTree for_ns = Tree(Scheme::kFor, {Ns()});
  const SchemeTree delta = Tree(Scheme::kDelta, {for_ns});
  return {
      Ns(),
      for_ns,
      delta,
      Tree(Scheme::kDelta, {Ns()}),
      Tree(Scheme::kRle, {Ns(), Ns()}),
      Tree(Scheme::kRle, {delta, Tree(Scheme::kRle, {for_ns, Ns()})}),
      Tree(Scheme::kDict, {Ns(), Ns()}),
      Tree(Scheme::kDict, {delta, Tree(Scheme::kRle, {Ns(), Ns()})}),
      Tree(Scheme::kSep, {Ns(), Ns()}, 100),
      Tree(Scheme::kSep, {delta, Tree(Scheme::kDict, {Ns(), Ns()})}, 86'400),
      Tree(Scheme::kFor, {Tree(Scheme::kFor, {Tree(Scheme::kDelta, {Tree(Scheme::kDelta, {for_ns})})})}),
  };
}

template <class Value>
void ExpectBits(const uint8_t* words, const Values& values, int bits) {
  for (const uint64_t base : {uint64_t{0}, uint64_t{3}, uint64_t{0x1234567890ABCDEF}}) {
    std::vector<Value> out(values.size()), expected;
    for (const uint64_t value : values) expected.push_back(static_cast<Value>(value + base));
    UnpackBits(words, values.size(), bits, base, out.data());
    EXPECT_EQ(out, expected) << bits << " bits to " << sizeof(Value) << " bytes, from " << base;
  }
}

TEST(BitPacking, EveryNumberOfBits) {
  std::mt19937_64 random(1);
  for (int bits = 0; bits <= 64; ++bits) {
    for (const size_t rows : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{300}, size_t{2048}}) {
      const uint64_t mask = bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
      const Values values = Make(rows, [&](size_t) { return random() & mask; });
      Values words(PackedWords(rows, bits) + 1, 0xABABABABABABABAB);
      PackBits(values, bits, words.data());
      EXPECT_EQ(words.back(), 0xABABABABABABABAB) << "written after the end";
      words.pop_back();  // so that a read after the end is found
      words.shrink_to_fit();
      const uint8_t* const bytes = reinterpret_cast<const uint8_t*>(words.data());
      ExpectBits<uint64_t>(bytes, values, bits);
      if (bits <= 32) ExpectBits<uint32_t>(bytes, values, bits);
      if (bits <= 16) ExpectBits<uint16_t>(bytes, values, bits);
      if (bits <= 8) ExpectBits<uint8_t>(bytes, values, bits);
    }
  }
}

TEST(DifferentValues, AreNumberedInOrderWhereverTheyLie) {
  std::mt19937_64 random(2);
  // Close to each other, at both ends of what there is, far apart, and more of these than the first table has room for.
  for (const Values& values :
       {Values{}, Make(1, [](size_t) { return UINT64_MAX; }), Make(5000, [&](size_t) { return random() % 300; }),
        Make(5000, [&](size_t) { return UINT64_MAX - random() % 300'000; }), Values{UINT64_MAX, 0, UINT64_MAX, 7},
        Make(5000, [&](size_t i) { return i / 3 * 0x100000000u; }), Make(5000, [&](size_t) { return random(); })}) {
    DifferentValues different(values);
    const std::set<uint64_t> expected(values.begin(), values.end());
    EXPECT_EQ(different.size(), expected.size());
    for (const size_t most : {size_t{0}, size_t{2}, size_t{299}, size_t{4999}, size_t{5000}}) {
      const size_t found = DifferentValues(values, most).size();
      EXPECT_LE(found, expected.size());
      EXPECT_TRUE(expected.size() <= most ? found == expected.size() : found > most) << found << " of at most " << most;
    }
    const Values sorted = different.Sort();
    EXPECT_TRUE(std::equal(sorted.begin(), sorted.end(), expected.begin(), expected.end()));
    const Values numbers = different.NumbersOf(values);
    ASSERT_EQ(numbers.size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_LT(numbers[i], sorted.size());
      EXPECT_EQ(sorted[numbers[i]], values[i]);
    }
  }
}

TEST(SplitRuns, EndsWhereValuesChange) {
  Values runs, lengths;
  SplitRuns(Values{}, &runs, &lengths);
  EXPECT_TRUE(runs.empty() && lengths.empty());
  SplitRuns(Values{5, 5, 5, 0, 7, 7}, &runs, &lengths);
  EXPECT_EQ(runs, (Values{5, 0, 7}));
  EXPECT_EQ(lengths, (Values{2, 0, 1}));
}

TEST(Schemes, EveryTreeGivesBackEveryStream) {
  for (const size_t rows : kSizes) {
    for (const Values& values : Streams(rows)) {
      for (const SchemeTree& tree : Trees()) ExpectRoundTrip(values, tree);
    }
  }
}

TEST(PackedReader, ReadsWhereNoValueDependsOnOthers) {
  const Values values = Make(10'000, [](size_t i) { return i / 10 % 40; });
  const auto reads = [&](const SchemeTree& tree) {
    return ReadsAs<uint8_t>(*PackIntegers(values, tree, nullptr), values);
  };
  const SchemeTree delta = Tree(Scheme::kDelta, {Ns()}), runs = Tree(Scheme::kRle, {delta, Ns()});
  for (const SchemeTree& tree : {Ns(), Tree(Scheme::kFor, {Ns()}), runs, Tree(Scheme::kFor, {runs}),
                                 Tree(Scheme::kDict, {delta, Ns()}), Tree(Scheme::kSep, {runs, Ns()}, 7)}) {
    EXPECT_TRUE(reads(tree)) << tree.ToString();
  }
  for (const SchemeTree& tree : {delta, Tree(Scheme::kNsv), Tree(Scheme::kBitmap, {Ns()}),
                                 Tree(Scheme::kDict, {Ns(), delta}), Tree(Scheme::kSep, {Ns(), delta}, 7)}) {
    EXPECT_FALSE(reads(tree)) << tree.ToString();
  }
  const Values alone = Make(10'000, [](size_t i) { return i % 40; });
  EXPECT_FALSE(ReadsAs<uint8_t>(*PackIntegers(alone, Tree(Scheme::kRle, {Ns(), Ns()}), nullptr), alone))
      << "as many runs as rows";
}

TEST(PackedReader, FindsCodesWithoutMeaning) {
  const Values values = Make(3000, [](size_t i) { return i == 2500 ? 90 : i % 80; });
  const std::vector<uint8_t> packed = *PackIntegers(values, Ns(), nullptr);
  PackedTree tree;
  ASSERT_EQ(ParsePackedStream(packed.data(), packed.size(), values.size(), 1, false, &tree), nullptr);
  uint8_t out[PackedReader::kRoom];
  const std::vector<uint16_t> one = {100}, another = {99};
  const auto open = [&](std::optional<uint64_t> null) {
    return PackedReader::Open(packed.data(), tree, 1, nullptr, PackedReader::Bounds{79, null});
  };
  const auto reader = open(std::nullopt);
  EXPECT_EQ(reader->Read(0, 2048, out), nullptr);
  EXPECT_NE(reader->Read(2048, 952, out), nullptr);
  EXPECT_NE(reader->ReadPlaces(2400, one, out), nullptr);
  EXPECT_EQ(reader->ReadPlaces(2400, another, out), nullptr);
  EXPECT_EQ(open(90)->Read(2048, 952, out), nullptr) << "it is NULL";
}

TEST(Schemes, SomeTakeOnlySomeStreams) {
  const Values narrow = Make(1000, [](size_t i) { return i * i * i; });  // up to 30 bits
  ExpectRoundTrip(narrow, Tree(Scheme::kNsv));
  ExpectRoundTrip(Make(1000, [](size_t i) { return i % 64 * 3; }), Tree(Scheme::kBitmap, {Ns()}));
  EXPECT_FALSE(PackIntegers(Make(10, [](size_t) { return uint64_t{1} << 32; }), Tree(Scheme::kNsv), nullptr));
  EXPECT_FALSE(PackIntegers(Make(65, [](size_t i) { return i; }), Tree(Scheme::kBitmap, {Ns()}), nullptr));
  EXPECT_FALSE(PackIntegers(narrow, Tree(Scheme::kSep, {Ns(), Ns()}, 0), nullptr));
  EXPECT_FALSE(PackIntegers(narrow, Tree(Scheme::kScale, {Ns()}, 2), nullptr)) << "not codes of floating point";
}

TEST(Schemes, DecimalsThatAreStoredAsFloatingPoint) {
  for (const bool single : {false, true}) {
    for (const bool nulls : {false, true}) {
      const auto ordered = [&](double x) {
        return single ? uint64_t{OrderedFloat32(static_cast<float>(x))} : OrderedFloat(x);
      };
      ScaledCodes scaled{ordered(-3.50), 0, nulls, single};
      scaled.null_code = ordered(7.25) - scaled.base + 1;
      const Values codes = Make(5000, [&](size_t i) {
        if (nulls && i % 7 == 3) return scaled.null_code;
        return ordered(static_cast<double>(static_cast<int>(i % 44) - 14) / 4) - scaled.base;
      });
      const SchemeTree tree = Tree(Scheme::kScale, {Ns()}, 2);
      const auto packed = PackIntegers(codes, tree, &scaled);
      ASSERT_TRUE(packed.has_value());
      EXPECT_LT(packed->size(), 8000u) << "10 or 11 bits a value";
      std::string reason;
      if (single) {
        EXPECT_EQ(UnpackAs<uint32_t>(*packed, codes.size(), &scaled, &reason), codes) << reason;
        EXPECT_TRUE(ReadsAs<uint32_t>(*packed, codes, &scaled));
      } else {
        EXPECT_EQ(UnpackAs<uint64_t>(*packed, codes.size(), &scaled, &reason), codes) << reason;
        EXPECT_TRUE(ReadsAs<uint64_t>(*packed, codes, &scaled));
      }
      EXPECT_FALSE(PackIntegers(codes, Tree(Scheme::kScale, {Ns()}, 1), &scaled)) << "quarters need two digits";
    }
  }
  // What is no decimal of some digits must not come back as another number.
  for (const double x : {std::nan(""), HUGE_VAL, -HUGE_VAL, -0.0, 1e300, 1.0 / 3, 0.1 + 0.2}) {
    const ScaledCodes scaled;
    EXPECT_FALSE(PackIntegers(Values{OrderedFloat(x)}, Tree(Scheme::kScale, {Ns()}, 6), &scaled)) << x;
  }
}

TEST(Schemes, Texts) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "a text that comes again, number " + std::to_string(i % 100) + "; ";
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  for (const int level : {1, 9}) {
    const std::vector<uint8_t> packed = PackBytes(bytes, level);
    EXPECT_LT(packed.size(), text.size() / 5);
    PackedTree tree;
    ASSERT_EQ(ParsePackedStream(packed.data(), packed.size(), text.size(), 0, false, &tree), nullptr);
    std::string out(text.size(), 0);
    ASSERT_EQ(UnpackStream(packed.data(), tree, 0, nullptr, reinterpret_cast<uint8_t*>(out.data())), nullptr);
    EXPECT_EQ(out, text);
    EXPECT_NE(ParsePackedStream(packed.data(), packed.size(), text.size() + 1, 0, false, &tree), nullptr);
    EXPECT_NE(ParsePackedStream(packed.data(), packed.size(), text.size(), 1, false, &tree), nullptr);
  }
}

TEST(Schemes, AsThePaperWritesThem) {
  const SchemeTree tree = Tree(Scheme::kRle, {Tree(Scheme::kDelta, {Ns()}), Ns()});
  EXPECT_EQ(tree.ToString(), "RLE, [[DELTA, NS] | NS]");
  const auto packed = PackIntegers(Make(1000, [](size_t i) { return i / 10; }), tree, nullptr);
  PackedTree nodes;
  ASSERT_EQ(ParsePackedStream(packed->data(), packed->size(), 1000, 8, false, &nodes), nullptr);
  EXPECT_EQ(DescribePackedTree(nodes), "RLE, [[DELTA, NS1] | NS4]");
}

/// Whatever is changed in a packed stream, it is refused or unpacks to as many values, within its own memory (which the
/// address sanitizer watches).
TEST(Schemes, DamagedStreamsAreRefusedOrHarmless) {
  std::mt19937_64 random(99);
  std::vector<SchemeTree> trees = Trees();
  trees.push_back(Tree(Scheme::kNsv));
  trees.push_back(Tree(Scheme::kBitmap, {Ns()}));
  size_t refused = 0, taken = 0;
  for (const SchemeTree& tree : trees) {
    const Values values = Make(700, [](size_t i) { return i / 5 % 40; });
    const std::vector<uint8_t> good = *PackIntegers(values, tree, nullptr);
    for (int trial = 0; trial < 3000; ++trial) {
      std::vector<uint8_t> bad = good;
      for (uint64_t n = 1 + random() % 3; n > 0; --n) {
        // Numbers of the nodes matter most.
        const size_t end = random() % 3 == 0 ? bad.size() : std::min<size_t>(bad.size(), 16 + 40 * 6);
        const size_t at = random() % end;
        bad[at] =
            random() % 2 == 0 ? static_cast<uint8_t>(random()) : static_cast<uint8_t>(bad[at] ^ 1 << random() % 8);
      }
      if (random() % 8 == 0) bad.resize(random() % bad.size());
      std::string reason;
      const Values unpacked = UnpackAs<uint16_t>(bad, values.size(), nullptr, &reason);
      ++(reason.empty() ? taken : refused);
      PackedTree nodes;
      if (ParsePackedStream(bad.data(), bad.size(), values.size(), sizeof(uint16_t), false, &nodes) != nullptr)
        continue;
      const auto reader = PackedReader::Open(bad.data(), nodes, sizeof(uint16_t), nullptr, std::nullopt);
      if (reader == nullptr) continue;
      uint16_t out[PackedReader::kRoom];
      const char* why = reader->Read(0, static_cast<uint32_t>(values.size()), reinterpret_cast<uint8_t*>(out));
      EXPECT_EQ(why == nullptr, reason.empty());
      EXPECT_TRUE(why != nullptr || std::equal(unpacked.begin(), unpacked.end(), out));
    }
  }
  EXPECT_GT(refused, 10'000u);
  EXPECT_GT(taken, 1'000u) << "values may be changed to others";
}

std::string Best(const Values& values, CompressionGoal goal, const ScaledCodes* scaled = nullptr) {
  Values sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const auto distinct = std::unique(sorted.begin(), sorted.end()) - sorted.begin();
  const std::vector<SchemePlan> plans = PlanIntegers(values, static_cast<uint64_t>(distinct), scaled, goal);
  return plans.empty() ? "" : plans.front().tree.ToString();
}

TEST(SchemePlanner, FindsWhatAStreamIsLike) {
  constexpr size_t kRows = 100'000;
  std::mt19937_64 random(5);
  const auto ratio = CompressionGoal::kRatio;
  EXPECT_EQ(Best(Make(kRows, [&](size_t) { return random() % 1000; }), ratio), "NS");
  EXPECT_EQ(Best(Make(kRows, [&](size_t) { return 1'000'000 + random() % 1000; }), ratio), "FOR, NS");
  EXPECT_EQ(Best(Make(kRows, [](size_t i) { return i / 30; }), ratio).substr(0, 12), "RLE, [[DELTA");
  EXPECT_EQ(Best(Make(kRows, [&](size_t) { return random() % 90'000 * 7'919'777; }), ratio).substr(0, 4), "SEP,");
  const Values odd = Make(200, [&](size_t) { return random() >> 24; });
  EXPECT_EQ(Best(Make(kRows, [&](size_t) { return odd[random() % odd.size()]; }), ratio).substr(0, 4), "DICT");
  // A straight line takes no bits at all.
  const Values line = Make(kRows, [](size_t i) { return 77 + i * 60'000'000; });
  const auto packed = PackIntegers(line, PlanIntegers(line, kRows, nullptr, ratio).front().tree, nullptr);
  EXPECT_LT(packed->size(), 500u);
  EXPECT_EQ(Best(line, CompressionGoal::kNone), "");
  EXPECT_EQ(Best(Make(kRows, [&](size_t) { return random() % 1000; }), CompressionGoal::kSpeed), "NS");
}

TEST(SchemePlanner, DecimalsInFloatingPoint) {
  const ScaledCodes scaled{OrderedFloat(0), 0, false, false};
  const Values codes =
      Make(50'000, [&](size_t i) { return OrderedFloat(static_cast<double>(i * 7 % 30'011) / 100) - scaled.base; });
  EXPECT_EQ(Best(codes, CompressionGoal::kBalanced, &scaled).substr(0, 5), "SCALE");
}

TEST(SchemePlanner, FindsUpperPartsThatRepeat) {
  // Dates of the lines of an order: close to one another, in no order.
  std::mt19937_64 random(8);
  uint64_t day = 0;
  const Values dates = Make(100'000, [&](size_t i) {
    if (i % 5 == 0) day = random() % 2400;
    return day / 16 * 16 + random() % 16;
  });
  const std::vector<SchemePlan> plans = PlanIntegers(dates, 2400, nullptr, CompressionGoal::kRatio);
  EXPECT_NE(plans.front().tree.ToString().find("SEP, [[RLE"), std::string::npos) << plans.front().tree.ToString();
  EXPECT_LT(PackIntegers(dates, plans.front().tree, nullptr)->size(),
            PackIntegers(dates, Ns(), nullptr)->size() * 6 / 10);
}

TEST(SchemePlanner, FindsStepsThatAreFew) {
  const Values values = Make(100'000, [](size_t i) { return i % 10 * 100'000 + i / 10; });
  const std::vector<SchemePlan> plans = PlanIntegers(values, values.size(), nullptr, CompressionGoal::kRatio);
  EXPECT_EQ(plans.front().tree.ToString().substr(0, 5), "DELTA") << plans.front().tree.ToString();
  EXPECT_LT(PackIntegers(values, plans.front().tree, nullptr)->size(), 13'000u);
}

TEST(SchemePlanner, PacksAnotherPlanIfTheFirstIsWorseThanItSays) {
  const Values values = Make(50'000, [](size_t i) { return i * i % 1000; });
  const std::vector<SchemePlan> plans{
      {Tree(Scheme::kDelta, {Tree(Scheme::kNsv)}), 10, 1}, {Tree(Scheme::kRle, {Ns(), Ns()}), 12, 1}, {Ns(), 12, 1}};
  const auto ratio = PackByPlan(values, plans, nullptr, CompressionGoal::kRatio);
  ASSERT_TRUE(ratio.has_value()) << "differences below 0 are no NSV";
  EXPECT_EQ(ratio->plan, 2u);
  EXPECT_EQ(ratio->bytes, *PackIntegers(values, Ns(), nullptr));
  const auto balanced = PackByPlan(values, plans, nullptr, CompressionGoal::kBalanced);
  ASSERT_TRUE(balanced.has_value());
  EXPECT_EQ(balanced->plan, 1u) << "two are tried, of which one cannot be had";
  EXPECT_FALSE(PackByPlan(values, {plans[0]}, nullptr, CompressionGoal::kRatio).has_value());
}

TEST(UnpackCost, CountsEveryNode) {
  const Values values = Make(10'000, [](size_t i) { return i / 20; });
  const auto cost = [&](const SchemeTree& tree) {
    const auto packed = PackIntegers(values, tree, nullptr);
    PackedTree nodes;
    EXPECT_EQ(ParsePackedStream(packed->data(), packed->size(), values.size(), 4, false, &nodes), nullptr);
    return UnpackNanoseconds(nodes, 4);
  };
  const SchemeTree delta = Tree(Scheme::kDelta, {Ns()});
  EXPECT_GT(cost(Ns()), 0);
  EXPECT_GT(cost(delta), cost(Ns()));
  EXPECT_GT(cost(Tree(Scheme::kRle, {delta, Ns()})), cost(Tree(Scheme::kRle, {Ns(), Ns()})));
  EXPECT_LT(cost(Tree(Scheme::kRle, {delta, Ns()})), cost(Tree(Scheme::kDelta, {delta}))) << "few runs";
  for (int s = 0; s < kSchemes; ++s) {
    const Scheme scheme = static_cast<Scheme>(s);
    EXPECT_GT(NodeNanoseconds(scheme, 1000, 10, 4), 0) << NameOf(scheme);
    EXPECT_GE(NodeNanoseconds(scheme, 1000, 1e6, 4), NodeNanoseconds(scheme, 1000, 10, 4)) << NameOf(scheme);
  }
  EXPECT_GT(UnpackSpeed(), 0);
  EXPECT_EQ(UnpackSpeed(), UnpackSpeed()) << "measured once";
}

/// The best of all trees up to a depth, by the bytes that they take.
size_t ExhaustiveBytes(const Values& values, int depth) {
  std::vector<std::vector<SchemeTree>> by_depth{{Ns(), Tree(Scheme::kNsv)}};
  for (int d = 1; d < depth; ++d) {
    std::vector<SchemeTree> trees = by_depth[0];
    const std::vector<SchemeTree>& below = by_depth.back();
    for (const SchemeTree& child : below) {
      trees.push_back(Tree(Scheme::kFor, {child}));
      trees.push_back(Tree(Scheme::kDelta, {child}));
      trees.push_back(Tree(Scheme::kBitmap, {child}));
      for (const SchemeTree& other : below) {
        trees.push_back(Tree(Scheme::kRle, {child, other}));
        trees.push_back(Tree(Scheme::kDict, {child, other}));
      }
    }
    by_depth.push_back(trees);
  }
  size_t best = SIZE_MAX;
  for (const SchemeTree& tree : by_depth.back()) {
    if (const auto packed = PackIntegers(values, tree, nullptr)) best = std::min(best, packed->size());
  }
  return best;
}

TEST(SchemePlanner, IsAsGoodAsTryingAllTreesOfTwoLevels) {
  constexpr size_t kRows = 16'384;
  for (const Values& values : Streams(kRows)) {
    Values sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const auto distinct = std::unique(sorted.begin(), sorted.end()) - sorted.begin();
    const SchemePlan plan =
        PlanIntegers(values, static_cast<uint64_t>(distinct), nullptr, CompressionGoal::kRatio).front();
    const size_t planned = PackIntegers(values, plan.tree, nullptr)->size();
    // (Nodes have 40 bytes each, which a plan does not count.)
    EXPECT_LE(static_cast<double>(planned), 1.05 * static_cast<double>(ExhaustiveBytes(values, 2)) + 400)
        << plan.tree.ToString();
  }
}

}  // namespace
}  // namespace tessera
