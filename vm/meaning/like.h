// LIKE in time that does not multiply the lengths of text and pattern. Internal to vm/: LikeMatches (text_meaning.h)
// comes here with what it could not decide soon.
//
// Start at: LikePattern, LikeBehindPercent. Any thread.
#pragma once

#include <string_view>
#include <vector>

namespace tessera::vm {

/// Whether some end of `s` is LIKE `pattern`, i.e. whether `s` is LIKE '%' || pattern. Each part of the pattern between
/// two % is searched once, from where the one before it ended first: by memmem, which is linear, or, if it holds _, by
/// 64 elements of the part at a time (Shift-And: Baeza-Yates and Gonnet, "A new approach to text searching", 1992).
bool LikeBehindPercent(std::string_view s, std::string_view pattern);

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
