// LIKE in time that does not multiply the lengths of text and pattern. Private to vm/.
//
// Start at: LikePattern, LikeMatches. Any thread.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "vm/meaning/characters.h"

namespace tessera::vm {

/// Whether some end of `s` is LIKE `pattern`, i.e. whether `s` is LIKE '%' || pattern. Each part of the pattern between
/// two % is searched once, from where the one before it ended first: by memmem, which is linear, or, if it holds _, by
/// 64 elements of the part at a time (Shift-And: Baeza-Yates and Gonnet, "A new approach to text searching", 1992).
bool LikeBehindPercent(std::string_view s, std::string_view pattern);

/// LIKE: % any characters, _ one character, \ quotes the next byte.
inline bool LikeMatches(std::string_view s, std::string_view p) {
  size_t i = 0, k = 0;
  // Going back to the last % is quick for what people write, and takes the product of the lengths for some others.
  size_t patience = 1024 + 16 * (s.size() + p.size());
  size_t star = std::string_view::npos, resume = 0;  // after the last %; where in s to try it next
  while (true) {
    if (k < p.size() && p[k] == '%') {
      star = ++k;
      resume = i;
      continue;
    }
    bool matched = false;
    if (i < s.size() && k < p.size()) {
      if (p[k] == '_') {
        ++i;
        while (i < s.size() && !IsLeadByte(s[i])) ++i;
        ++k;
        matched = true;
      } else {
        size_t literal = p[k] == '\\' && k + 1 < p.size() ? k + 1 : k;
        if (s[i] == p[literal]) {
          ++i;
          k = literal + 1;
          matched = true;
        }
      }
    } else if (i == s.size() && k == p.size()) {
      return true;
    }
    if (matched) continue;
    if (star == std::string_view::npos || resume >= s.size()) return false;
    if (k - star > 8) [[unlikely]] {  // fewer cost little at each place
      if (k - star > patience) return LikeBehindPercent(s.substr(resume), p.substr(star));
      patience -= k - star;
    }
    i = ++resume;  // the last % takes one byte more
    k = star;
  }
}

/// A pattern that many strings are compared with. One of literal parts between % is taken apart once, and its parts are
/// searched as substrings, which is several times as fast as going through pattern and string together.
class LikePattern {
 public:
  /// `pattern` must outlive this.
  explicit LikePattern(std::string_view pattern);
  bool Matches(std::string_view s) const;
  /// Whether the pattern is first() % middle()[0] % middle()[1] % ... % last(), and these are what they look like.
  bool literal() const { return literal_; }
  std::string_view first() const { return first_; }
  std::string_view last() const { return last_; }
  const std::vector<std::string_view>& middle() const { return middle_; }

 private:
  std::string_view pattern_;
  bool literal_ = false;  ///< it has %, and no _ or escape
  std::string_view first_, last_;
  std::vector<std::string_view> middle_;  ///< in order
};

}  // namespace tessera::vm
