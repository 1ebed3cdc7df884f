// clickbench_gen: one wide table of page views, of the shape that ClickBench asks about: 105 columns, most of them dull, a few
// texts of many values, and skew nearly everywhere.
//
//     clickbench_gen --rows N --out DIR [--jobs N]
//
// DIR gets hits.tbl, N rows, fields that each end with |, as in the files of ssb_gen; data_gen/clickbench/ has the table and the
// queries. Names and values are made up. What depends on what:
//
//     page      Zipf over N / 4 pages: a page has a site (Zipf over 6,500), a URL, a title and their hash
//     user      Zipf over N / 6 users: a user has a region, an address, a system, a browser, a screen, an age
//     visit     time grows with the row's number, over the 31 days of July 2025
//     arrival   one in eight comes from a search engine and has a phrase, one in 150 from an advertisement
//
// Texts are never NULL; most are empty in most rows. A third of the sites has letters of two bytes.
// A row depends on its number and the number of rows only, so the file is the same for any number of threads.
//
// Start at: MakeRow().
#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "data_gen/command_line.h"
#include "data_gen/random.h"
#include "data_gen/row_buffer.h"
#include "data_gen/table_files.h"
#include "data_gen/zipf.h"

namespace tessera {
namespace {

constexpr char kProgram[] = "clickbench_gen";
constexpr uint64_t kDefaultRows = 1'000'000, kMostRows = 1'000'000'000;
constexpr uint64_t kSeed = 1;
constexpr uint64_t kBlock = 1024;  ///< rows; about 0.8 MB
constexpr size_t kLongestRow = 4096;
/// The streams of random numbers.
enum Stream : uint64_t { kHits = 120, kDull, kUsers, kPages, kSites, kPhrases };

constexpr std::chrono::sys_days kFirstDay = std::chrono::year(2025) / 7 / 1;
constexpr int64_t kSeconds = 31 * 86'400;
constexpr uint64_t kSiteCount = 6'500, kRegions = 9'000, kWords = 6'000;

struct Sizes {
  explicit Sizes(uint64_t rows_)
      : rows(rows_),
        page(std::max<uint64_t>(rows / 4, 1), 0.85),
        user(std::max<uint64_t>(rows / 6, 1), 0.6),
        phrase(std::max<uint64_t>(rows / 12, 1), 0.75),
        site(kSiteCount, 1.05),
        region(kRegions, 1.1),
        word(kWords, 0.8) {}
  uint64_t rows;
  Zipf page, user, phrase, site, region, word;
};

/// A dull column: in `per_mille` of the rows a number from `least` to `most`, else 0.
struct DullColumn {
  uint64_t per_mille;
  int64_t least, most;
};
/// From send_ms on; their names are in data_gen/clickbench/schema.sql.
constexpr std::array<DullColumn, 46> kDullColumns = {{
    {600, 1, 900},      {300, 1, 200},      {350, 1, 400},   {700, 20, 3'000},    {700, 40, 9'000}, {500, 1, 20'000},
    {900, 1, 1},        {950, 1, 1},        {970, 1, 1},     {40, 1, 1},          {30, 1, 1},       {10, 1, 1},
    {3, 400, 504},      {800, 7, 15},       {700, 0, 9},     {100, 2, 4},         {90, 0, 5},       {5, 1, 99},
    {60, 1, 5},         {60, 0, 50},        {60, 1, 60'000}, {60, 0, 9},          {500, 1, 1'700},  {1'000, 1, 15},
    {200, 1, 200},      {150, 1, 20},       {100, 1, 20},    {120, 1, 9'000},     {120, 1, 9'000},  {0, 0, 0},
    {0, 0, 0},          {0, 0, 0},          {20, 1, 1},      {15, 1, 1},          {2, 1, 1},        {1, 1, 3},
    {1'000, 1, 50'000}, {1'000, 1, 50'000}, {800, -9, 9},    {400, 1, 100'000},   {50, 1, 4},       {30, 1, 127},
    {10, 1, 1'000},     {7, 1, 12},         {1, 1, 2},       {900, 1, 1'000'000},
}};

/// Text in pieces, of one row.
class Text {
 public:
  void Clear() { size_ = 0; }
  Text& operator<<(std::string_view piece) {
    const size_t n = std::min(piece.size(), bytes_.size() - size_);
    std::copy_n(piece.data(), n, bytes_.data() + size_);
    size_ += n;
    return *this;
  }
  Text& operator<<(uint64_t number) {
    size_ = static_cast<size_t>(std::to_chars(bytes_.data() + size_, bytes_.data() + bytes_.size(), number).ptr -
                                bytes_.data());
    return *this;
  }
  std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  std::array<char, 512> bytes_;  // more than any text here
  size_t size_ = 0;
};

constexpr std::array<std::string_view, 24> kSyllables = {"ba", "ko",  "ri",  "te",  "mu",  "sa",  "lo",  "ni",
                                                         "da", "pe",  "vo",  "gra", "sto", "fe",  "hu",  "ja",
                                                         "zi", "tor", "lan", "mer", "kin", "sel", "pol", "dra"};
constexpr std::array<std::string_view, 24> kWideSyllables = {"ба", "ко",  "ри",  "те",  "му",  "са",  "ло",  "ни",
                                                             "да", "пе",  "во",  "гра", "сто", "фе",  "ху",  "я",
                                                             "зи", "тор", "лан", "мер", "кин", "сел", "пол", "дра"};
constexpr std::array<std::string_view, 12> kFirstWords = {"buy",   "cheap", "news",  "weather", "map",    "photo",
                                                          "video", "forum", "price", "repair",  "garden", "music"};
constexpr std::array<std::string_view, 12> kWideFirstWords = {
    "купить", "дешево", "новости", "погода", "карта", "фото", "видео", "форум", "цена", "ремонт", "сад", "музыка"};

/// Word `number`: the first ones are common words, the others two to four syllables.
void PutWord(uint64_t number, bool wide, Text& text) {
  const auto& common = wide ? kWideFirstWords : kFirstWords;
  if (number < common.size()) {
    text << common[number];
    return;
  }
  const auto& syllables = wide ? kWideSyllables : kSyllables;
  uint64_t bits = MixBits(number + 17);
  for (uint64_t left = 2 + bits % 3; left > 0; --left) {
    bits = MixBits(bits);
    text << syllables[bits % syllables.size()];
  }
}

void PutWords(const Sizes& sizes, RandomRow& random, uint64_t words, bool wide, std::string_view between, Text& text) {
  for (uint64_t i = 0; i < words; ++i) {
    if (i > 0) text << between;
    PutWord(sizes.word(random), wide, text);
  }
}

struct Page {
  uint64_t site;
  bool wide;  ///< letters of two bytes
  Text url, title;
};

Page MakePage(const Sizes& sizes, uint64_t number) {
  RandomRow random(kSeed, kPages, number);
  Page page;
  page.site = sizes.site(random);
  RandomRow of_site(kSeed, kSites, page.site);
  page.wide = of_site.Below(3) == 0;
  page.url << (of_site.Below(4) == 0 ? "https://" : "http://");
  if (of_site.Below(2) == 0) page.url << "www.";
  PutWord(12 + of_site.Below(kWords), false, page.url);
  page.url << page.site << (of_site.Below(3) == 0 ? ".com/" : of_site.Below(2) == 0 ? ".net/" : ".org/");
  // One page in thirty is a front page, which has no path.
  if (random.Below(30) != 0) {
    PutWords(sizes, random, 1 + random.Below(3), false, "/", page.url);
    page.url << "/" << number;
    if (random.Below(3) == 0) page.url << "?id=" << random.Below(10'000'000) << "&from=" << random.Below(50);
  }
  if (random.Below(12) != 0) {
    PutWords(sizes, random, 3 + random.Below(7), page.wide, " ", page.title);
    page.title << " - ";
    PutWord(12 + page.site, page.wide, page.title);
  }
  return page;
}

void PutTwoDigits(int64_t n, char end, RowBuffer& rows) {
  rows.Put(static_cast<char>('0' + n / 10));
  rows.Put(static_cast<char>('0' + n % 10));
  rows.Put(end);
}

void PutDate(int64_t second, char end, RowBuffer& rows) {
  const std::chrono::year_month_day day(kFirstDay + std::chrono::days(second / 86'400));
  rows.Put(static_cast<int>(day.year()), '-');
  PutTwoDigits(static_cast<unsigned>(day.month()), '-', rows);
  PutTwoDigits(static_cast<unsigned>(day.day()), end, rows);
}

void PutTime(int64_t second, RowBuffer& rows) {
  PutDate(second, ' ', rows);
  PutTwoDigits(second / 3'600 % 24, ':', rows);
  PutTwoDigits(second / 60 % 60, ':', rows);
  PutTwoDigits(second % 60, '|', rows);
}

/// What a user has: region to country.
void PutUser(const Sizes& sizes, uint64_t user, RowBuffer& rows) {
  constexpr std::array<std::string_view, 10> kModels = {"Nova 5",     "Nova 6",  "Pix",      "Pix Pro", "Orbit",
                                                        "Orbit Mini", "Slate 7", "Slate 10", "Z1",      "Z2"};
  constexpr std::array<std::string_view, 8> kLanguages = {"ru", "en", "de", "tr", "uk", "fr", "es", "pl"};
  constexpr std::array<std::string_view, 3> kCharsets = {"utf-8", "windows-1251", "koi8-r"};
  constexpr std::array<std::pair<int, int>, 8> kScreens = {
      {{1366, 768}, {1920, 1080}, {1280, 1024}, {1280, 800}, {1024, 768}, {1600, 900}, {800, 600}, {360, 640}}};
  RandomRow random(kSeed, kUsers, user);
  rows.Put(sizes.region(random) + 1, '|');
  rows.Put(static_cast<int64_t>(random.Below(uint64_t{1} << 32)) - (int64_t{1} << 31), '|');  // client_ip
  const bool mobile = random.Below(100) < 9;
  rows.Put(mobile ? 80 + random.Below(9) : 1 + random.Below(1 + random.Below(60)), '|');  // os
  rows.Put(1 + random.Below(1 + random.Below(90)), '|');                                  // browser
  rows.Put(random.Below(1 + random.Below(60)), '|');                                      // browser_major
  rows.Put(random.Below(40), '|');                                                        // browser_minor, a text
  rows.Put(mobile ? 1 : 0, '|');
  const uint64_t model = random.Below(1 + random.Below(160));
  rows.Put(mobile ? 1 + model / 8 : 0, '|');  // phone_maker
  Text phone;
  if (mobile && model > 0) phone << kModels[model % kModels.size()] << " " << model;
  rows.Put(phone.view(), '|');
  const auto& screen = kScreens[mobile ? 7 : random.Below(1 + random.Below(7))];
  rows.Put(screen.first, '|');
  rows.Put(screen.second, '|');
  rows.Put(random.Below(20) == 0 ? 16 : 24, '|');
  rows.Put(screen.first - static_cast<int>(random.Below(200)), '|');
  rows.Put(screen.second - static_cast<int>(random.Below(200)), '|');
  rows.Put(random.Below(3) == 0 ? 0 : 16 + random.Below(50), '|');  // age
  rows.Put(random.Below(3), '|');
  rows.Put(random.Below(5), '|');
  rows.Put(random.Below(4) == 0 ? random.Below(30'000) : 0, '|');  // interests, as bits
  rows.Put(kCharsets[random.Below(1 + random.Below(3))], '|');
  rows.Put(kLanguages[random.Below(1 + random.Below(8))], '|');
  rows.Put(kLanguages[random.Below(1 + random.Below(8))], '|');  // country
}

/// Texts that are empty in most rows: utm_source to social_page.
void PutRareTexts(const Page& page, RandomRow& random, RowBuffer& rows) {
  constexpr std::array<std::string_view, 6> kSources = {"mail", "banner", "partner", "social", "feed", "search"};
  const auto some = [&](uint64_t per_mille, std::string_view name, uint64_t values) {
    Text text;
    const uint64_t bits = random.Bits();
    if (bits % 1'000 < per_mille) text << name << (bits >> 32) % values;
    rows.Put(text.view(), '|');
  };
  const uint64_t source = random.Below(30 * kSources.size());
  rows.Put(source < kSources.size() ? kSources[source] : "", '|');
  some(30, "medium", 5);
  some(30, "campaign-", 2'000);
  some(20, "content-", 5'000);
  some(10, "term ", 9'000);
  some(4, "network", 6);
  some(2, "action", 3);
  rows.Put(random.Below(500) == 0 ? random.Below(1'000'000) : 0, '|');  // param_price
  some(2, "order-", 1'000'000);
  some(2, "CUR", 4);
  rows.Put(random.Below(8) == 0 ? page.url.view() : "", '|');  // original_url
  some(50, "p=", 300'000);
  some(5, "tag", 90);
  rows.Put(std::string_view("5FDKSW").substr(random.Below(6), 1), '|');  // hit_color
  some(1, "/wall", 50'000);
}

void MakeRow(const Sizes& sizes, uint64_t row, RowBuffer& rows) {
  RandomRow random(kSeed, kHits, row), dull(kSeed, kDull, row);
  const uint64_t number = sizes.page(random), user = sizes.user(random);
  const Page page = MakePage(sizes, number);
  const double share = (static_cast<double>(row) + random.Unit()) / static_cast<double>(sizes.rows);
  const int64_t second = std::min(static_cast<int64_t>(share * kSeconds), kSeconds - 1);
  rows.Put(MixBits(row + 1) >> 1, '|');  // hit_id
  rows.Put(page.site + 1, '|');
  PutTime(second, rows);
  PutDate(second, '|', rows);
  rows.Put(MixBits(user + 7) >> 1, '|');
  rows.Put(MixBits(user * 31 + static_cast<uint64_t>(second) / 1'800) >> 1, '|');  // session_id
  rows.Put(page.url.view(), '|');

  const uint64_t arrival = random.Below(1'000);
  const bool search = arrival < 125, advertised = arrival >= 125 && arrival < 132;
  const uint64_t engine = 1 + random.Below(1 + random.Below(40));
  Text phrase, referer;
  if (search) {
    const uint64_t rank = sizes.phrase(random);
    RandomRow of_phrase(kSeed, kPhrases, rank);
    const bool wide = of_phrase.Below(3) != 0;
    PutWords(sizes, of_phrase, 1 + of_phrase.Below(5), wide, " ", phrase);
    referer << "http://search" << engine << ".com/find?q=" << rank;
  } else if (arrival < 800) {
    const uint64_t from = random.Below(3) == 0 ? sizes.page(random) : number / 2;
    referer << MakePage(sizes, from).url.view();
  }
  rows.Put(referer.view(), '|');
  rows.Put(page.title.view(), '|');
  rows.Put(phrase.view(), '|');
  rows.Put(search ? engine : 0, '|');
  rows.Put(search ? 2 : advertised ? 3 : arrival < 800 ? 1 : arrival < 980 ? 0 : -1, '|');  // traffic_source
  rows.Put(advertised ? 2 + random.Below(1 + random.Below(20)) : 0, '|');
  PutUser(sizes, user, rows);
  const auto flag = [&](uint64_t per_mille) { rows.Put(random.Below(1'000) < per_mille ? 1 : 0, '|'); };
  for (const uint64_t per_mille : {60, 20, 25, 2, 180}) flag(per_mille);
  rows.Put(static_cast<int64_t>(MixBits(number + 0x5117)), '|');  // url_hash
  rows.Put(referer.view().empty() ? int64_t{0} : static_cast<int64_t>(MixBits(number + 0x8E5 + arrival / 100)), '|');
  const int64_t zone = static_cast<int64_t>(user % 12);
  PutTime(std::min(second + zone * 3'600, kSeconds - 1), rows);
  PutTime(std::max<int64_t>(second - random.Between(0, 300), 0), rows);
  rows.Put(zone, '|');
  PutRareTexts(page, random, rows);
  for (const DullColumn& column : kDullColumns) {
    const uint64_t bits = dull.Bits();
    const auto range = static_cast<uint64_t>(column.most - column.least + 1);
    rows.Put(bits % 1'000 < column.per_mille ? column.least + static_cast<int64_t>((bits >> 20) % range) : 0, '|');
  }
  rows.Put('\n');
}

TableFile Hits(uint64_t count) {
  return FileOfRows("hits.tbl", count, kBlock, kLongestRow,
                    [sizes = Sizes(count)](uint64_t row, RowBuffer& buffer) { MakeRow(sizes, row, buffer); });
}

constexpr char kHelp[] =
    "Usage: clickbench_gen [--rows N] --out DIR [--jobs N]\n"
    "\n"
    "Writes DIR/hits.tbl, the table of data_gen/clickbench/schema.sql.\n"
    "\n"
    "  --rows N    1 to 1000000000 (default: 1000000, about 0.7 GB)\n"
    "  --out DIR   created if missing; a file of this name is replaced\n"
    "  --jobs N    threads, 1 to 1024; the file does not depend on it (default: one per core)\n"
    "  --help      this text\n"
    "\n"
    "Exit status: 0 done, 1 a file could not be written, 2 wrong command line.\n";

int Main(int argc, char** argv) {
  uint64_t rows = kDefaultRows, jobs = DefaultJobs();
  std::string directory;
  CommandLine line(kProgram, kHelp);
  line.Count("rows", 1, kMostRows, &rows);
  line.Text("out", &directory);
  line.Jobs(&jobs);
  if (const std::optional<int> status = line.Parse(argc, argv)) return *status;
  if (directory.empty()) return UsageError(kProgram, "--out is missing: give the directory for the file");

  CatchInterrupts();
  const Status status = WriteTables({Hits(rows)}, directory, static_cast<unsigned>(jobs));
  return status.ok() ? 0 : Failure(kProgram, status);
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) { return tessera::Main(argc, argv); }
