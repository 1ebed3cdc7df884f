#include "vm/meaning/regex.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/interrupt.h"
#include "tablet/values/utf8.h"
#include "vm/meaning/characters.h"
#include "vm/meaning/lane_error.h"

namespace tessera::vm {
namespace {

re2::RE2::Options OptionsOf() {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_dot_nl(true);  // as in PostgreSQL
  return options;
}

re2::StringPiece Piece(std::string_view s) { return {s.data(), s.size()}; }

/// A text that is not at nullptr, which is what a group without a part in the match is.
std::string_view Somewhere(std::string_view s) { return s.data() == nullptr ? std::string_view("") : s; }

}  // namespace

Regex::Regex(std::string_view pattern) {
  if (pattern.size() > kMostRegexBytes) {
    error_ = "it has more than 65536 bytes";
    return;
  }
  regex_ = std::make_unique<re2::RE2>(Piece(pattern), OptionsOf());
  if (!regex_->ok()) error_ = regex_->error();
}
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;

int Regex::groups() const { return regex_->NumberOfCapturingGroups(); }

bool Regex::Matches(std::string_view s) const {
  return regex_->Match(Piece(s), 0, s.size(), re2::RE2::UNANCHORED, nullptr, 0);
}

template <class F>
void Regex::ForMatches(std::string_view s, int groups, F f) const {
  s = Somewhere(s);
  // (An allocation for each text took a third of the time.)
  std::array<re2::StringPiece, 10> few;
  std::vector<re2::StringPiece> many;
  re2::StringPiece* found = few.data();
  if (static_cast<size_t>(groups) >= few.size()) {
    many.resize(static_cast<size_t>(groups) + 1);
    found = many.data();
  }
  const auto part = [&](int group) -> std::string_view {
    const re2::StringPiece& p = found[group];
    return p.data() == nullptr ? std::string_view() : std::string_view(p.data(), p.size());
  };
  size_t at = 0;
  for (uint32_t matches = 1; at <= s.size(); ++matches) {
    if (matches % 1024 == 0) ThrowIfInterrupted();
    if (!regex_->Match(Piece(s), at, s.size(), re2::RE2::UNANCHORED, found, groups + 1)) return;
    if (!f(part)) return;
    at = static_cast<size_t>(found[0].data() - s.data()) + found[0].size();
    if (!found[0].empty()) continue;
    ++at;
    while (at < s.size() && !IsLeadByte(s[at])) ++at;
  }
}

bool Regex::Find(std::string_view s, int group, int64_t number, std::string_view* part) const {
  bool found = false;
  ForMatches(s, group, [&](const auto& part_of) {
    if (--number > 0) return true;
    *part = part_of(group);
    found = part->data() != nullptr;
    return false;
  });
  return found;
}

int64_t Regex::Count(std::string_view s) const {
  int64_t count = 0;
  ForMatches(s, 0, [&](const auto&) { return ++count, true; });
  return count;
}

int64_t Regex::Place(std::string_view s) const {
  s = Somewhere(s);
  std::string_view match;
  if (!Find(s, 0, 1, &match)) return 0;
  return CharacterCount(s.substr(0, static_cast<size_t>(match.data() - s.data()))) + 1;
}

void Regex::Replace(std::string_view s, std::string_view replacement, bool all, std::string* out, Lane& lane) const {
  s = Somewhere(s);
  // Only the groups that the replacement names are looked for.
  int groups = 0;
  for (size_t i = 0; i + 1 < replacement.size(); ++i) {
    if (replacement[i] != '\\') continue;
    const char c = replacement[++i];
    if (c >= '1' && c <= '9') groups = std::max(groups, c - '0');
  }
  groups = std::min(groups, this->groups());
  out->clear();
  size_t copied = 0;
  ForMatches(s, groups, [&](const auto& part_of) {
    const std::string_view match = part_of(0);
    const auto begin = static_cast<size_t>(match.data() - s.data());
    out->append(s.substr(copied, begin - copied));
    copied = begin + match.size();
    for (size_t i = 0; i < replacement.size(); ++i) {
      const char c = replacement[i] == '\\' && i + 1 < replacement.size() ? replacement[i + 1] : 0;
      if (c == '&' || (c >= '0' && c <= '9')) {
        const int group = c == '&' ? 0 : c - '0';
        if (group <= groups) out->append(part_of(group));
        ++i;
      } else {
        if (c == '\\') ++i;
        out->push_back(replacement[i]);
      }
    }
    if (out->size() > static_cast<size_t>(kMostTextBytes)) lane.error = LaneError::kTextTooLong;
    return all && lane.error == LaneError::kNone;
  });
  out->append(s.substr(copied));
  if (out->size() > static_cast<size_t>(kMostTextBytes)) lane.error = LaneError::kTextTooLong;
}

namespace {

Status EndsWithEscape(const char* form) {
  return SqlError(ErrorKind::kInvalidParameterValue, std::string(form) + " pattern must not end with escape character");
}

/// With a backslash as the escape character.
Status RewriteLike(std::string_view pattern, std::string_view escape, std::string* out) {
  for (size_t i = 0; i < pattern.size();) {
    if (!escape.empty() && pattern.substr(i).starts_with(escape)) {
      i += escape.size();
      if (i >= pattern.size()) return EndsWithEscape("LIKE");
      out->push_back('\\');
    } else if (pattern[i] == '\\') {
      out->push_back('\\');
    }
    out->push_back(pattern[i++]);
  }
  return Status::Ok();
}

/// As a regular expression that matches all of a text.
Status RewriteSimilar(std::string_view pattern, std::string_view escape, std::string* out) {
  bool in_class = false;
  const auto quote = [&](char c) {
    if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) out->push_back('\\');
    out->push_back(c);
  };
  *out = "\\A(?:";
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (!escape.empty() && pattern.substr(i).starts_with(escape)) {
      i += escape.size();
      if (i >= pattern.size()) return EndsWithEscape("SIMILAR TO");
      if (pattern[i] == '"') return SqlError("parts between escaped quotes in SIMILAR TO are not supported");
      quote(pattern[i]);
    } else if (in_class) {
      if (c == ']') in_class = false;
      if (c == '\\' || c == '[') out->push_back('\\');
      out->push_back(c);
    } else if (c == '[') {
      // A bracket right at the head, or after a ^, is a character of the class.
      in_class = true;
      out->push_back(c);
      if (pattern.substr(i + 1).starts_with('^')) out->push_back(pattern[++i]);
      if (pattern.substr(i + 1).starts_with(']')) {
        *out += "\\]";
        ++i;
      }
    } else if (c == '%') {
      *out += ".*";
    } else if (c == '_') {
      *out += ".";
    } else if (c == '(') {
      *out += "(?:";
    } else if (c == '^' || c == '$' || c == '.' || c == '\\') {
      quote(c);
    } else {
      out->push_back(c);
    }
  }
  *out += ")\\z";
  return Status::Ok();
}

}  // namespace

Status RewritePattern(std::string_view pattern, std::string_view escape, int64_t form, std::string* out) {
  if (CharacterCount(escape) > 1)
    return SqlError(ErrorKind::kInvalidParameterValue, "invalid escape string", -1,
                    "Escape string must be empty or one character.");
  out->clear();
  return form == kLikePattern ? RewriteLike(pattern, escape, out) : RewriteSimilar(pattern, escape, out);
}

namespace {

/// The pattern's expression, which this thread keeps: rows have few different ones.
Result<const Regex*> RegexOf(std::string_view pattern) {
  constexpr size_t kMost = 256;
  thread_local std::map<std::string, Regex, std::less<>> known;
  thread_local const std::pair<const std::string, Regex>* last = nullptr;
  if (last != nullptr && last->first == pattern) return &last->second;
  auto at = known.find(pattern);
  if (at == known.end()) {
    Regex regex(pattern);
    if (!regex.error().empty()) {
      return SqlError(ErrorKind::kInvalidRegex, "invalid regular expression: " + regex.error(), -1,
                      "The pattern of a row is " + QuoteForMessage(pattern) + ". The syntax is that of RE2.");
    }
    last = nullptr;
    if (known.size() == kMost) known.clear();
    at = known.emplace(std::string(pattern), std::move(regex)).first;
  }
  last = &*at;
  return &at->second;
}

Status ReplaceMatches(std::string_view s, std::string_view pattern, std::string_view replacement, bool all,
                      std::string* out) {
  TESSERA_ASSIGN(const Regex* const regex, RegexOf(pattern));
  Lane lane;
  regex->Replace(s, replacement, all, out, lane);
  return lane.error == LaneError::kNone ? Status::Ok() : LaneErrorStatus(lane.error, {});
}

}  // namespace

namespace meaning {

Result<int64_t> RegexMatchT::Apply(std::string_view s, std::string_view pattern) {
  TESSERA_ASSIGN(const Regex* const regex, RegexOf(pattern));
  return regex->Matches(s) ? 1 : 0;
}
Result<int64_t> RegexTimesT::Apply(std::string_view s, std::string_view pattern) {
  TESSERA_ASSIGN(const Regex* const regex, RegexOf(pattern));
  return regex->Count(s);
}
Result<int64_t> RegexBeginT::Apply(std::string_view s, std::string_view pattern) {
  TESSERA_ASSIGN(const Regex* const regex, RegexOf(pattern));
  return regex->Place(s);
}
Status PatternT::Apply(std::string_view pattern, std::string_view escape, int64_t form, std::string* out) {
  return RewritePattern(pattern, escape, form, out);
}
Status RegexGroupT::Apply(std::string_view s, std::string_view pattern, int64_t group, std::string* out) {
  TESSERA_ASSIGN(const Regex* const regex, RegexOf(pattern));
  if (group < 0 || group > regex->groups()) {
    return SqlError("the regular expression " + QuoteForMessage(pattern) + " has no group " + std::to_string(group), -1,
                    "It has " + std::to_string(regex->groups()) + ".");
  }
  std::string_view part;
  out->assign(regex->Find(s, static_cast<int>(group), 1, &part) ? part : std::string_view(""));
  return Status::Ok();
}
Status RegexFirstT::Apply(std::string_view s, std::string_view pattern, std::string_view replacement,
                          std::string* out) {
  return ReplaceMatches(s, pattern, replacement, false, out);
}
Status RegexAllT::Apply(std::string_view s, std::string_view pattern, std::string_view replacement, std::string* out) {
  return ReplaceMatches(s, pattern, replacement, true, out);
}

bool RegexPartT::Apply(const Regex& regex, std::string_view s, int group, int number, std::string* out) {
  std::string_view part;
  const bool found = regex.Find(s, group, std::max(number, 1), &part);
  out->assign(found ? part : std::string_view(""));
  return found || number == 0;
}
int64_t RegexCountT::Apply(const Regex& regex, std::string_view s) { return regex.Count(s); }
int64_t RegexPlaceT::Apply(const Regex& regex, std::string_view s) { return regex.Place(s); }
void RegexReplaceT::Apply(const Regex& regex, std::string_view s, std::string_view replacement, bool all,
                          std::string* out, Lane& lane) {
  regex.Replace(s, replacement, all, out, lane);
}

}  // namespace meaning
}  // namespace tessera::vm
