// The value lists of the TPC-H specification (version 3, clauses 4.2.2.13 and 4.2.3), which the Star Schema Benchmark
// takes over, and columns that both benchmarks make in the same way.
//
// Start at: Pick(), kNations. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "data_gen/random.h"
#include "data_gen/row_buffer.h"

namespace tessera::tpch {

struct Nation {
  std::string_view name;
  unsigned region;
};

/// By r_regionkey.
inline constexpr std::array<std::string_view, 5> kRegions = {"AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"};

/// By n_nationkey. The country code of telephone numbers is 10 more.
inline constexpr std::array<Nation, 25> kNations = {{
    {"ALGERIA", 0},      {"ARGENTINA", 1},  {"BRAZIL", 1},  {"CANADA", 1},         {"EGYPT", 4},
    {"ETHIOPIA", 0},     {"FRANCE", 3},     {"GERMANY", 3}, {"INDIA", 2},          {"INDONESIA", 2},
    {"IRAN", 4},         {"IRAQ", 4},       {"JAPAN", 2},   {"JORDAN", 4},         {"KENYA", 0},
    {"MOROCCO", 0},      {"MOZAMBIQUE", 0}, {"PERU", 1},    {"CHINA", 2},          {"ROMANIA", 3},
    {"SAUDI ARABIA", 4}, {"VIETNAM", 2},    {"RUSSIA", 3},  {"UNITED KINGDOM", 3}, {"UNITED STATES", 1},
}};

inline constexpr std::array<std::string_view, 5> kSegments = {"AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD",
                                                              "MACHINERY"};
inline constexpr std::array<std::string_view, 5> kPriorities = {"1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED",
                                                                "5-LOW"};
inline constexpr std::array<std::string_view, 7> kShipModes = {"REG AIR", "AIR",  "RAIL", "SHIP",
                                                               "TRUCK",   "MAIL", "FOB"};

inline constexpr std::array<std::string_view, 6> kTypeClasses = {"STANDARD", "SMALL",   "MEDIUM",
                                                                 "LARGE",    "ECONOMY", "PROMO"};
inline constexpr std::array<std::string_view, 5> kTypeFinishes = {"ANODIZED", "BURNISHED", "PLATED", "POLISHED",
                                                                  "BRUSHED"};
inline constexpr std::array<std::string_view, 5> kTypeMetals = {"TIN", "NICKEL", "BRASS", "STEEL", "COPPER"};
inline constexpr std::array<std::string_view, 5> kContainerSizes = {"SM", "LG", "MED", "JUMBO", "WRAP"};
inline constexpr std::array<std::string_view, 8> kContainerKinds = {"CASE", "BOX",  "BAG", "JAR",
                                                                    "PKG",  "PACK", "CAN", "DRUM"};

inline constexpr std::array<std::string_view, 92> kColors = {
    "almond",   "antique", "aquamarine", "azure",     "beige",      "bisque",    "black",     "blanched", "blue",
    "blush",    "brown",   "burlywood",  "burnished", "chartreuse", "chiffon",   "chocolate", "coral",    "cornflower",
    "cornsilk", "cream",   "cyan",       "dark",      "deep",       "dim",       "dodger",    "drab",     "firebrick",
    "floral",   "forest",  "frosted",    "gainsboro", "ghost",      "goldenrod", "green",     "grey",     "honeydew",
    "hot",      "indian",  "ivory",      "khaki",     "lace",       "lavender",  "lawn",      "lemon",    "light",
    "lime",     "linen",   "magenta",    "maroon",    "medium",     "metallic",  "midnight",  "mint",     "misty",
    "moccasin", "navajo",  "navy",       "olive",     "orange",     "orchid",    "pale",      "papaya",   "peach",
    "peru",     "pink",    "plum",       "powder",    "puff",       "purple",    "red",       "rose",     "rosy",
    "royal",    "saddle",  "salmon",     "sandy",     "seashell",   "sienna",    "sky",       "slate",    "smoke",
    "snow",     "spring",  "steel",      "tan",       "thistle",    "tomato",    "turquoise", "violet",   "wheat",
    "white",    "yellow"};

template <size_t n>
std::string_view Pick(RandomRow& random, const std::array<std::string_view, n>& values) {
  return values[random.Below(n)];
}

/// "Customer#000000042" and a separator.
inline void PutName(std::string_view prefix, uint64_t key, RowBuffer& rows) {
  std::array<char, 9> digits{};
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, key /= 10)
    *digit = static_cast<char>('0' + key % 10);
  rows.Put(prefix, '#');
  rows.Put(std::string_view(digits.data(), digits.size()), '|');
}

/// A telephone number of the nation, "11-719-748-3364", and a separator.
inline void PutPhone(uint64_t nation, RandomRow& random, RowBuffer& rows) {
  rows.Put(nation + 10, '-');
  rows.Put(random.Between(100, 999), '-');
  rows.Put(random.Between(100, 999), '-');
  rows.Put(random.Between(1000, 9999), '|');
}

/// p_type and p_container, each with a separator.
inline void PutType(RandomRow& random, RowBuffer& rows) {
  rows.Put(Pick(random, kTypeClasses), ' ');
  rows.Put(Pick(random, kTypeFinishes), ' ');
  rows.Put(Pick(random, kTypeMetals), '|');
}
inline void PutContainer(RandomRow& random, RowBuffer& rows) {
  rows.Put(Pick(random, kContainerSizes), ' ');
  rows.Put(Pick(random, kContainerKinds), '|');
}

/// p_retailprice in cents: 900.01 to 2098.99.
inline uint64_t PartPrice(uint64_t part_key) { return 90000 + part_key / 10 % 20001 + part_key % 1000 * 100; }

}  // namespace tessera::tpch
