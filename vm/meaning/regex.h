// Regular expressions, by RE2: what the opcodes with one mean for a row. A match takes time linear in the text, whatever
// the expression, and memory within a bound. Texts are UTF-8; other bytes match nothing, and are never read beyond.
//
// Start at: Regex. Any thread may use one, and each interpreter has its own: threads that share one wait for each other,
// and memory that runs out in the middle of a match leaves it in an unknown state.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "vm/meaning/meaning.h"

namespace re2 {
class RE2;
class StringPiece;
}  // namespace re2

namespace tessera::vm {

/// A longer expression is an error.
inline constexpr size_t kMostRegexBytes = 1 << 16;

/// What a pattern of LIKE or SIMILAR TO with an escape character, "" for none, becomes.
enum PatternForm : int64_t {
  kLikePattern = 0,   ///< of LIKE, with a backslash as the escape
  kSimilarRegex = 1,  ///< of SIMILAR TO, as a regular expression
};
Status RewritePattern(std::string_view pattern, std::string_view escape, int64_t form, std::string* out);

class Regex {
 public:
  explicit Regex(std::string_view pattern);
  ~Regex();
  Regex(Regex&&) noexcept;

  /// Why the pattern is none; "" if it is one. REQUIRES for what follows: it is.
  const std::string& error() const { return error_; }
  /// Number of groups in parentheses.
  int groups() const;

  /// Whether the expression matches somewhere in `s`.
  bool Matches(std::string_view s) const;
  /// Group `group`, or the whole match for 0, of match number `number`, from 1; false if there is no such match or the
  /// group has no part in it.
  bool Find(std::string_view s, int group, int64_t number, std::string_view* part) const;
  /// Number of matches.
  int64_t Count(std::string_view s) const;
  /// The character at which the first match begins, from 1; 0 if there is none.
  int64_t Place(std::string_view s) const;
  /// `s` with the first match, or all, replaced. In `replacement` \1 to \9 stand for groups, \0 and \& for the match,
  /// \\ for \.
  void Replace(std::string_view s, std::string_view replacement, bool all, std::string* out, Lane& lane) const;

 private:
  /// Calls `f` for one match after the other until it gives false, with a function that gives a group's part, of the
  /// first `groups`. After an empty match the next begins a character later, as in PostgreSQL.
  template <class F>
  void ForMatches(std::string_view s, int groups, F f) const;

  std::unique_ptr<re2::RE2> regex_;
  std::string error_;
};

namespace meaning {

// ---- Like
struct FilterRegex {
  static constexpr bool kApart = true;
  static constexpr bool kNegated = false;
};
struct FilterNotRegex {
  static constexpr bool kApart = true;
  static constexpr bool kNegated = true;
};

// ---- RegexPart: false for NULL
/// `group` of match `number`; of number 0 the first, and "" if there is none.
struct RegexPartT {
  static bool Apply(const Regex& regex, std::string_view s, int group, int number, std::string* out);
};
struct RegexCountT {
  static int64_t Apply(const Regex& regex, std::string_view s);
};
struct RegexPlaceT {
  static int64_t Apply(const Regex& regex, std::string_view s);
};

// ---- RegexReplace
struct RegexReplaceT {
  static void Apply(const Regex& regex, std::string_view s, std::string_view replacement, bool all, std::string* out,
                    Lane& lane);
};

// ---- Of a pattern that rows have: an error that names it if it is no regular expression
/// 1 if s has a match, else 0.
struct RegexMatchT {
  static Result<int64_t> Apply(std::string_view s, std::string_view pattern);
};
/// Number of matches.
struct RegexTimesT {
  static Result<int64_t> Apply(std::string_view s, std::string_view pattern);
};
/// The character at which the first match begins; 0 if there is none.
struct RegexBeginT {
  static Result<int64_t> Apply(std::string_view s, std::string_view pattern);
};
/// A pattern with an escape character in another form.
struct PatternT {
  static Status Apply(std::string_view pattern, std::string_view escape, int64_t form, std::string* out);
};
/// A group of the first match; "" if there is none. An error if the pattern has no such group.
struct RegexGroupT {
  static Status Apply(std::string_view s, std::string_view pattern, int64_t group, std::string* out);
};
struct RegexFirstT {
  static Status Apply(std::string_view s, std::string_view pattern, std::string_view replacement, std::string* out);
};
struct RegexAllT {
  static Status Apply(std::string_view s, std::string_view pattern, std::string_view replacement, std::string* out);
};

}  // namespace meaning
}  // namespace tessera::vm
