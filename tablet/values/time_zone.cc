// The tz database's files and their rules.
#include "tablet/values/time_zone.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "base/lower_case.h"

namespace tessera {
namespace {

constexpr const char* kDatabase = "/usr/share/zoneinfo";
constexpr int64_t kDay = 86400;
constexpr int64_t kMicros = 1'000'000;

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

int64_t DaysOf(int64_t year, unsigned month, unsigned day) {
  using namespace std::chrono;
  return sys_days(std::chrono::year(static_cast<int>(year)) / static_cast<int>(month) / static_cast<int>(day))
      .time_since_epoch()
      .count();
}

/// Big-endian numbers out of a file.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  int64_t Number(size_t size) {
    if (!Skip(size)) return 0;
    uint64_t v = 0;
    for (size_t i = at_ - size; i < at_; ++i) v = v << 8 | static_cast<uint8_t>(bytes_[i]);
    return size == 4 ? static_cast<int32_t>(v) : static_cast<int64_t>(v);
  }
  bool Skip(size_t size) {
    if (size > bytes_.size() - at_) good_ = false;
    if (good_) at_ += size;
    return good_;
  }
  std::string_view Rest() const { return bytes_.substr(at_); }
  bool good() const { return good_; }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
  bool good_ = true;
};

struct Counts {
  size_t utc = 0, standard = 0, leaps = 0, times = 0, types = 0, letters = 0;
};
std::optional<Counts> ReadHeader(Reader* r, bool* long_form) {
  const std::string_view head = r->Rest();
  if (!head.starts_with("TZif") || !r->Skip(20)) return std::nullopt;
  *long_form = head[4] >= '2';
  Counts c;
  for (size_t* n : {&c.utc, &c.standard, &c.leaps, &c.times, &c.types, &c.letters})
    *n = static_cast<size_t>(static_cast<uint32_t>(r->Number(4)));
  if (!r->good()) return std::nullopt;
  return c;
}

// ---- The rule after the last transition, as the TZ variable of POSIX has it: "CET-1CEST,M3.5.0,M10.5.0/3"

bool TakeName(std::string_view* text) {
  const bool quoted = text->starts_with('<');
  size_t i = quoted ? 1 : 0;
  while (i < text->size() && (quoted ? (*text)[i] != '>' : ((*text)[i] | 32) >= 'a' && ((*text)[i] | 32) <= 'z')) ++i;
  if (i < 3 || (quoted && i == text->size())) return false;
  text->remove_prefix(quoted ? i + 1 : i);
  return true;
}

bool TakeNumber(std::string_view* text, int* out) {
  size_t i = 0;
  *out = 0;
  for (; i < text->size() && (*text)[i] >= '0' && (*text)[i] <= '9' && i < 3; ++i)
    *out = *out * 10 + ((*text)[i] - '0');
  text->remove_prefix(i);
  return i > 0;
}

bool TakeCharacter(std::string_view* text, char c) {
  if (!text->starts_with(c)) return false;
  text->remove_prefix(1);
  return true;
}

/// [+-]h[:mm[:ss]] in seconds.
bool TakeTime(std::string_view* text, int64_t* out) {
  const bool negative = TakeCharacter(text, '-');
  if (!negative) TakeCharacter(text, '+');
  int part = 0;
  if (!TakeNumber(text, &part)) return false;
  int64_t seconds = int64_t{part} * 3600;
  for (int unit = 60; unit > 0 && TakeCharacter(text, ':'); unit /= 60) {
    if (!TakeNumber(text, &part)) return false;
    seconds += int64_t{part} * unit;
  }
  *out = negative ? -seconds : seconds;
  return true;
}

}  // namespace

int64_t TimeZone::Change::In(int64_t year) const {
  using namespace std::chrono;
  const int64_t first = DaysOf(year, 1, 1);
  int64_t date = first + day;  // kDay: from 0, leap days count
  if (kind == Kind::kJulian) {
    const bool leap = std::chrono::year(static_cast<int>(year)).is_leap();
    date = first + day - 1 + (leap && day >= 60 ? 1 : 0);
  } else if (kind == Kind::kWeekday) {
    const int64_t begin = DaysOf(year, static_cast<unsigned>(month), 1);
    const int64_t length =
        (month == 12 ? DaysOf(year + 1, 1, 1) : DaysOf(year, static_cast<unsigned>(month) + 1, 1)) - begin;
    const int64_t weekday = ((begin + 4) % 7 + 7) % 7;  // 1970-01-01 was a Thursday
    int64_t at = (day - weekday + 7) % 7 + (week - 1) * 7;
    if (at >= length) at -= 7;  // week 5 is the last one
    date = begin + at;
  }
  return date * kDay + time;
}

bool TimeZone::ParseRule(std::string_view text) {
  if (!TakeName(&text) || !TakeTime(&text, &standard_)) return false;
  standard_ = -standard_;  // POSIX counts west of Greenwich
  has_rule_ = true;
  if (text.empty()) return true;
  if (!TakeName(&text)) return false;
  has_daylight_ = true;
  daylight_ = standard_ + 3600;
  if (!text.empty() && text[0] != ',') {
    if (!TakeTime(&text, &daylight_)) return false;
    daylight_ = -daylight_;
  }
  for (Change* c : {&begin_, &end_}) {
    if (!TakeCharacter(&text, ',')) return false;
    if (TakeCharacter(&text, 'M')) {
      if (!TakeNumber(&text, &c->month) || !TakeCharacter(&text, '.') || !TakeNumber(&text, &c->week) ||
          !TakeCharacter(&text, '.') || !TakeNumber(&text, &c->day))
        return false;
      if (c->month < 1 || c->month > 12 || c->week < 1 || c->week > 5 || c->day > 6) return false;
    } else {
      c->kind = TakeCharacter(&text, 'J') ? Change::Kind::kJulian : Change::Kind::kDay;
      if (!TakeNumber(&text, &c->day) || c->day > 365) return false;
    }
    if (TakeCharacter(&text, '/') && !TakeTime(&text, &c->time)) return false;
  }
  return text.empty();
}

Result<TimeZone> TimeZone::Parse(std::string name, std::string_view bytes) {
  const Status bad =
      SqlError(ErrorKind::kInvalidParameterValue, "the rules of time zone \"" + name + "\" cannot be read");
  Reader r(bytes);
  bool long_form = false;
  std::optional<Counts> c = ReadHeader(&r, &long_form);
  // The first part has times of 32 bits; the second one, of 64, is there in all files since 2006.
  if (!c || !long_form) return bad;
  if (!r.Skip(c->times * 5 + c->types * 6 + c->letters + c->leaps * 8 + c->standard + c->utc)) return bad;
  c = ReadHeader(&r, &long_form);
  if (!c || c->types == 0 || c->types > 256 || c->times > bytes.size()) return bad;
  TimeZone zone(std::move(name));
  zone.transitions_.resize(c->times);
  for (Transition& t : zone.transitions_) t.at = r.Number(8);
  for (Transition& t : zone.transitions_) t.offset = r.Number(1);
  std::vector<int64_t> offsets;
  for (size_t i = 0; i < c->types; ++i) {
    offsets.push_back(r.Number(4));
    r.Skip(2);
  }
  if (!r.Skip(c->letters + c->leaps * 12 + c->standard + c->utc)) return bad;
  for (size_t i = 0; i < c->times; ++i) {
    Transition& t = zone.transitions_[i];
    if (static_cast<size_t>(t.offset) >= c->types || (i > 0 && t.at <= zone.transitions_[i - 1].at)) return bad;
    t.offset = offsets[static_cast<size_t>(t.offset)];
  }
  zone.first_offset_ = offsets[0];
  std::string_view rule = r.Rest();
  if (!TakeCharacter(&rule, '\n')) return bad;
  rule = rule.substr(0, rule.find('\n'));
  if (!rule.empty() && !zone.ParseRule(rule)) return bad;
  for (const int64_t o : offsets) {
    if (o <= -2 * kDay || o >= 2 * kDay) return bad;
  }
  return zone;
}

int64_t TimeZone::OffsetAt(int64_t seconds) const {
  const auto after = std::upper_bound(transitions_.begin(), transitions_.end(), seconds,
                                      [](int64_t at, const Transition& t) { return at < t.at; });
  if (after != transitions_.end() || !has_rule_)
    return after == transitions_.begin() ? first_offset_ : (after - 1)->offset;
  if (!has_daylight_) return standard_;
  const std::chrono::sys_days day{std::chrono::days(FloorDivide(seconds + standard_, kDay))};
  const int64_t year = int{std::chrono::year_month_day(day).year()};
  const int64_t begin = begin_.In(year) - standard_, end = end_.In(year) - daylight_;
  const bool daylight = begin < end ? seconds >= begin && seconds < end : seconds >= begin || seconds < end;
  return daylight ? daylight_ : standard_;
}

int64_t TimeZone::LocalOf(int64_t moment) const { return moment + OffsetAt(FloorDivide(moment, kMicros)) * kMicros; }

int64_t TimeZone::MomentOf(int64_t local) const {
  const int64_t seconds = FloorDivide(local, kMicros);
  const int64_t before = OffsetAt(seconds - kDay), after = OffsetAt(seconds + kDay);
  int64_t offset = before;
  if (before != after && OffsetAt(seconds - after) == after) offset = after;
  return local - offset * kMicros;
}

namespace {

/// The entry of a folder that is `name` in any case, or "".
std::string EntryOf(const std::string& folder, std::string_view name) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(opendir(folder.c_str()), closedir);
  if (entries == nullptr) return {};
  while (const dirent* entry = readdir(entries.get())) {
    const std::string_view found = entry->d_name;
    if (std::equal(found.begin(), found.end(), name.begin(), name.end(),
                   [](char a, char b) { return LowerCase(a) == LowerCase(b); }))
      return std::string(found);
  }
  return {};
}

Result<TimeZone> ReadZone(std::string_view name) {
  const Status none = SqlError(ErrorKind::kInvalidParameterValue,
                               "time zone \"" + std::string(name.substr(0, 60)) + "\" not recognized", -1,
                               "Write a name of the tz database, as 'Europe/Berlin', or 'UTC'.");
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    const char lower = LowerCase(c);
    return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '/' || c == '_' || c == '-' || c == '+';
  });
  if (!plain || name.empty() || name.size() > 100) return none;
  std::string path = kDatabase, spelled;
  for (std::string_view rest = name;;) {
    const size_t slash = rest.find('/');
    const std::string entry = EntryOf(path, rest.substr(0, slash));
    if (entry.empty()) {
      if (EntryOf(kDatabase, "Etc").empty())
        return SqlError(ErrorKind::kInvalidParameterValue,
                        "time zone \"" + std::string(name) + "\" is not known: there is no tz database in " + kDatabase,
                        -1, "Install the package tzdata.");
      return none;
    }
    path += "/" + entry;
    spelled += (spelled.empty() ? "" : "/") + entry;
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  if (struct stat info; stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return none;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!bytes.starts_with("TZif")) return none;
  return TimeZone::Parse(spelled, bytes);
}

}  // namespace

Result<const TimeZone*> FindTimeZone(std::string_view name) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<const TimeZone>> zones;
  const std::string key = LowerCase(name);
  const std::lock_guard lock(mutex);
  if (const auto found = zones.find(key); found != zones.end()) return found->second.get();
  TimeZone zone("UTC");
  if (key != "utc") {
    TESSERA_ASSIGN(zone, ReadZone(name));
  }
  return zones.emplace(key, std::make_unique<const TimeZone>(std::move(zone))).first->second.get();
}

}  // namespace tessera
