// The second meaning of opcodes that work on texts, and of conversions to and from them.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "tests/sqllogictest/md5.h"
#include "tests/vm/opcode_meanings.h"
#include "tests/vm/opcode_values.h"
#include "tests/vm/sha256.h"

namespace tessera::test::walk {

using vm::Opcode;

std::vector<std::string> Characters(std::string_view s) {
  std::vector<std::string> out;
  for (char c : s) {
    if (out.empty() || (static_cast<uint8_t>(c) & 0xC0) != 0x80) out.emplace_back();
    out.back() += c;
  }
  return out;
}

bool Like(const std::vector<std::string>& s, size_t i, std::string_view p) {
  if (p.empty()) return i == s.size();
  if (p[0] == '%') {
    for (size_t k = i; k <= s.size(); ++k) {
      if (Like(s, k, p.substr(1))) return true;
    }
    return false;
  }
  if (i == s.size()) return false;
  if (p[0] == '_') return Like(s, i + 1, p.substr(1));
  if (p[0] == '\\' && p.size() > 1) p.remove_prefix(1);
  const std::string first = Characters(p)[0];
  return s[i] == first && Like(s, i + 1, p.substr(first.size()));
}

const std::vector<std::string>& RegexPatterns() {
  static const std::vector<std::string> patterns = {
      "",  "a",    "^a",       "a$",       "^$",      "[a-c]+", "a|A",  "(b)",      "a(b)?",        "x*",
      ".", "...",  "^.(b)|.$", "[0-9]{2}", "\\d+\\D", "a+b",    "[^a]", "\xC3\xA9", "[z-\xC3\xA9]", "MFGR#1(2|3)",
      "k", "^..$", "(a|b)*"};
  return patterns;
}

Fate OfRegex(Opcode op, const std::string& s, const std::string& pattern, const std::string& replacement,
             const int32_t (&fields)[2], std::string* out, int64_t* number) {
  const auto wide = [](const std::string& text) {
    std::wstring w;
    for (const std::string& c : Characters(text)) {
      int64_t code = 0;
      TextLength(Opcode::AsciiT, c, &code);
      w.push_back(static_cast<wchar_t>(code));
    }
    return w;
  };
  const std::vector<std::string> characters = Characters(s);
  const auto piece = [&](size_t at, size_t count) {
    std::string text;
    for (size_t i = at; i < at + count; ++i) text += characters[i];
    return text;
  };
  const std::wstring text = wide(s);
  const std::wregex regex(wide(pattern));
  std::vector<std::wsmatch> matches;
  for (size_t at = 0; at <= text.size();) {
    std::wsmatch m;
    const auto flags = at > 0 ? std::regex_constants::match_prev_avail : std::regex_constants::match_default;
    if (!std::regex_search(text.begin() + static_cast<int64_t>(at), text.end(), m, regex, flags)) break;
    at = static_cast<size_t>(m[0].second - text.begin()) + (m[0].length() == 0 ? 1 : 0);
    matches.push_back(m);
  }
  const auto part = [&](const std::wsmatch& m, size_t group) {
    return group < m.size() && m[group].matched
               ? piece(static_cast<size_t>(m[group].first - text.begin()), static_cast<size_t>(m[group].length()))
               : std::string();
  };
  switch (op) {
    case Opcode::FilterRegex:
    case Opcode::FilterNotRegex:
      *number = matches.empty() == (op == Opcode::FilterNotRegex) ? 1 : 0;
      return Fate::kValue;
    case Opcode::RegexCountT:
      *number = static_cast<int64_t>(matches.size());
      return Fate::kValue;
    case Opcode::RegexPlaceT:
      *number = matches.empty() ? 0 : matches[0][0].first - text.begin() + 1;
      return Fate::kValue;
    case Opcode::RegexPartT: {
      const auto group = static_cast<size_t>(fields[0]), match = static_cast<size_t>(std::max(fields[1], 1));
      const bool found = match <= matches.size() && matches[match - 1][group].matched;
      if (found) *out = part(matches[match - 1], group);
      return found || fields[1] == 0 ? Fate::kValue : Fate::kNull;
    }
    case Opcode::RegexReplaceT: {
      size_t copied = 0;
      if (fields[1] == 0 && matches.size() > 1) matches.resize(1);
      for (const std::wsmatch& m : matches) {
        const auto begin = static_cast<size_t>(m[0].first - text.begin());
        *out += piece(copied, begin - copied);
        copied = begin + static_cast<size_t>(m[0].length());
        for (size_t i = 0; i < replacement.size(); ++i) {
          const char next = replacement[i] == '\\' && i + 1 < replacement.size() ? replacement[++i] : 0;
          if (next == 0 || next == '\\') *out += replacement[i];
          const bool group = next >= '0' && next <= '9';
          if (next == '&') *out += part(m, 0);
          if (group) *out += part(m, static_cast<size_t>(next - '0'));
          if (next != 0 && next != '\\' && next != '&' && !group) *out += std::string("\\") + next;
        }
      }
      *out += piece(copied, characters.size() - copied);
      return Fate::kValue;
    }
    default:
      return Fate::kUnknownOpcode;
  }
}

namespace {

constexpr std::string_view kSymbols = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bit by bit.
std::string Base64Of(const std::string& s) {
  std::string out;
  for (size_t bit = 0; bit < s.size() * 8; bit += 6) {
    size_t value = 0;
    for (size_t k = bit; k < bit + 6; ++k)
      value = value * 2 + (k / 8 < s.size() ? static_cast<uint8_t>(s[k / 8]) >> (7 - k % 8) & 1U : 0U);
    out += kSymbols[value];
  }
  while (out.size() % 4 != 0) out += '=';
  for (size_t line = 1; line * 57 <= s.size(); ++line) out.insert(line * 77 - 1, 1, '\n');
  return out;
}

/// What EncodeT makes the text of, by trying: of bytes it is known how many there are.
bool BytesOf(const std::string& text, int64_t form, std::string* out) {
  std::string s;
  for (char c : text) {
    if (form != 0 && form != 3 && std::isspace(static_cast<unsigned char>(c)) != 0) continue;
    s += c;
  }
  if (form == 2) {
    if (s.size() % 4 != 0) return false;
    std::string bits;
    for (char c : s) {
      const size_t value = kSymbols.find(c);
      for (size_t k = 32; value < 64 && k > 0; k /= 2) bits += (value & k) != 0 ? '1' : '0';
    }
    for (size_t i = 0; i + 8 <= bits.size(); i += 8)
      *out += static_cast<char>(std::stoi(bits.substr(i, 8), nullptr, 2));
    const size_t end = s.find('=');
    const bool ended = end == std::string::npos || (s.size() - end <= 2 && s.substr(end).find_first_not_of('=') > 2);
    return ended && s.find_first_not_of(std::string(kSymbols) + "=") == std::string::npos;
  }
  if (form == 3 || (form == 0 && !s.starts_with("\\x"))) {
    *out = s;
    return s.find('\\') == std::string::npos;  // (the walk's texts have no octal numbers)
  }
  if (form == 0) s = s.substr(2);
  if (s.size() % 2 != 0 || s.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return false;
  for (size_t i = 0; i < s.size(); i += 2) *out += static_cast<char>(std::stoi(s.substr(i, 2), nullptr, 16));
  return true;
}

}  // namespace

Fate TextLength(Opcode op, const std::string& s, int64_t* out) {
  const std::vector<std::string> characters = Characters(s);
  if (op == Opcode::LengthT) {
    *out = static_cast<int64_t>(characters.size());
    return Fate::kValue;
  }
  if (op == Opcode::OctetLengthT) {
    *out = static_cast<int64_t>(s.size());
    return Fate::kValue;
  }
  if (op == Opcode::HashT) {
    *out = static_cast<int64_t>(std::stoull(Md5Hex(s).substr(0, 16), nullptr, 16));
    return Fate::kValue;
  }
  if (op != Opcode::AsciiT) return Fate::kUnknownOpcode;
  *out = 0;
  if (characters.empty()) return Fate::kValue;
  const std::string& c = characters[0];
  constexpr int64_t kLead[] = {0, 0, 0xC0, 0xE0, 0xF0};  // what the lead byte says by the way, by the number of bytes
  for (size_t i = 0; i < c.size(); ++i)
    *out = *out * 64 + static_cast<uint8_t>(c[i]) - (i > 0 ? 0x80 : c.size() == 1 ? 0 : kLead[c.size()]);
  return Fate::kValue;
}

Fate CharacterOf(int64_t code, std::string* out) {
  if (code < 1 || code > 1114111 || (code > 55295 && code < 57344)) return Fate::kError;
  const auto byte = [](int64_t v) { return static_cast<char>(static_cast<uint8_t>(v)); };
  if (code < 128) {
    *out = {byte(code)};
  } else if (code < 2048) {
    *out = {byte(192 + code / 64), byte(128 + code % 64)};
  } else if (code < 65536) {
    *out = {byte(224 + code / 4096), byte(128 + code / 64 % 64), byte(128 + code % 64)};
  } else {
    *out = {byte(240 + code / 262144), byte(128 + code / 4096 % 64), byte(128 + code / 64 % 64), byte(128 + code % 64)};
  }
  return Fate::kValue;
}

/// By trying all lengths for each %. The walk's texts are short.
bool IsLike(const std::string& s, size_t i, const std::string& pattern, size_t k) {
  if (k == pattern.size()) return i == s.size();
  if (pattern[k] == '%') {
    for (size_t j = i; j <= s.size(); ++j) {
      if (IsLike(s, j, pattern, k + 1)) return true;
    }
    return false;
  }
  if (i == s.size()) return false;
  if (pattern[k] == '_') {
    size_t end = i + 1;
    while (end < s.size() && (s[end] & 0xC0) == 0x80) ++end;
    return IsLike(s, end, pattern, k + 1);
  }
  if (pattern[k] == '\\' && k + 1 < pattern.size()) ++k;
  return s[i] == pattern[k] && IsLike(s, i + 1, pattern, k + 1);
}

namespace {

/// Opcodes of regular expressions that rows have, by those with constants.
Fate OfRowsRegex(Opcode op, const std::string& s, const std::string& pattern, const TextOperand& c, std::string* out,
                 int64_t* number) {
  try {
    std::wstring groups;
    for (char byte : pattern) groups += static_cast<wchar_t>(static_cast<uint8_t>(byte));
    const auto count = static_cast<int64_t>(std::wregex(groups).mark_count());
    switch (op) {
      case Opcode::RegexMatchT:
        return OfRegex(Opcode::FilterRegex, s, pattern, "", {0, 0}, out, number);
      case Opcode::RegexTimesT:
        return OfRegex(Opcode::RegexCountT, s, pattern, "", {0, 0}, out, number);
      case Opcode::RegexBeginT:
        return OfRegex(Opcode::RegexPlaceT, s, pattern, "", {0, 0}, out, number);
      case Opcode::RegexGroupT:
        if (c.v < 0 || c.v > count) return Fate::kError;
        return OfRegex(Opcode::RegexPartT, s, pattern, "", {static_cast<int32_t>(c.v), 0}, out, number);
      default:
        return OfRegex(Opcode::RegexReplaceT, s, pattern, c.text, {0, op == Opcode::RegexAllT ? 1 : 0}, out, number);
    }
  } catch (const std::regex_error&) {
    return Fate::kError;
  }
}

/// A pattern of LIKE or SIMILAR TO: what each character becomes, by whether it is escaped or in a class.
Fate PatternInForm(const std::vector<std::string>& pattern, const std::string& escape, int64_t form, std::string* out) {
  if (Characters(escape).size() > 1) return Fate::kError;
  static const std::map<std::string, std::string> special = {{"%", ".*"},  {"_", "."},   {"(", "(?:"},  {"^", "\\^"},
                                                             {"$", "\\$"}, {".", "\\."}, {"\\", "\\\\"}};
  const std::string quoted = "\\^$.|?*+()[]{}";
  std::string made;
  int in_class = 0;  // characters of the class up to here, with its bracket
  for (size_t i = 0; i < pattern.size(); ++i) {
    std::string c = pattern[i];
    const bool escaped = !escape.empty() && c == escape;
    if (escaped) {
      if (++i == pattern.size()) return Fate::kError;
      c = pattern[i];
      if (form != 0 && c == "\"") return Fate::kError;
    }
    if (form == 0) {
      made += (escaped || c == "\\" ? "\\" : "") + c;
    } else if (escaped) {
      made += (quoted.find(c) != std::string::npos ? "\\" : "") + c;
      if (in_class > 0) in_class = 3;
    } else if (in_class > 0) {
      const bool first = in_class == 1 || (in_class == 2 && pattern[i - 1] == "^");
      ++in_class;
      if (c == "]" && !first) in_class = 0;
      made += (c == "\\" || c == "[" || (c == "]" && first) ? "\\" : "") + c;
    } else if (c == "[") {
      made += c;
      in_class = 1;
    } else {
      made += special.contains(c) ? special.at(c) : c;
    }
  }
  *out = form == 0 ? made : "\\A(?:" + made + ")\\z";
  return Fate::kValue;
}

}  // namespace

Fate TextOfOperands(Opcode op, const std::string& s, const TextOperand& b, const TextOperand& c, std::string* out,
                    int64_t* number) {
  const std::vector<std::string> characters = Characters(s);
  const auto size = static_cast<int128_t>(characters.size());
  const auto some = [&](int128_t from, int128_t end) {
    for (int128_t i = std::max<int128_t>(from, 0); i < end && i < size; ++i) *out += characters[static_cast<size_t>(i)];
    return Fate::kValue;
  };
  constexpr int128_t kLongest = (1 << 30) - 1;
  switch (op) {
    case Opcode::LeftT:
      return some(0, b.v >= 0 ? b.v : size + b.v);
    case Opcode::RightT:
      return some(b.v >= 0 ? size - b.v : -static_cast<int128_t>(b.v), size);
    case Opcode::RepeatT:
      if (static_cast<int128_t>(s.size()) * b.v > kLongest) return Fate::kError;
      for (int64_t i = 0; i < b.v && !s.empty(); ++i) *out += s;
      return Fate::kValue;
    case Opcode::EncodeT:
      if (b.v == 2) {
        *out = Base64Of(s);
        return Fate::kValue;
      }
      if (b.v == 3) {
        for (char byte : s) {
          const auto code = static_cast<uint8_t>(byte);
          *out += code == 0 || code > 127 ? fmt::format("\\{:03o}", code) : std::string(byte == '\\' ? 2 : 1, byte);
        }
        return Fate::kValue;
      }
      if (b.v == 0) *out = "\\x";
      for (char byte : s) *out += fmt::format("{:02x}", static_cast<uint8_t>(byte));
      return Fate::kValue;
    case Opcode::DecodeT:
      return BytesOf(s, b.v, out) ? Fate::kValue : Fate::kError;
    case Opcode::PositionT: {
      const std::vector<std::string> part = Characters(b.text);
      *number = 0;
      for (size_t i = 0; i + part.size() <= characters.size() && *number == 0; ++i) {
        if (std::equal(part.begin(), part.end(), characters.begin() + static_cast<int64_t>(i)))
          *number = static_cast<int64_t>(i) + 1;
      }
      return Fate::kValue;
    }
    case Opcode::PatternT:
      return PatternInForm(characters, b.text, c.v, out);
    case Opcode::RegexMatchT:
    case Opcode::RegexTimesT:
    case Opcode::RegexBeginT:
    case Opcode::RegexGroupT:
    case Opcode::RegexFirstT:
    case Opcode::RegexAllT:
      return OfRowsRegex(op, s, b.text, c, out, number);
    case Opcode::LabelT: {
      const std::string list = b.text + '\x1F', label = '\x1F' + s + '\x1F';
      const size_t at = s.find('\x1F') == std::string::npos ? list.find(label) : std::string::npos;
      if (at == std::string::npos) return Fate::kError;
      *number = std::count(list.begin(), list.begin() + static_cast<int64_t>(at), '\x1F');
      return Fate::kValue;
    }
    case Opcode::LikeT:
      *number = IsLike(s, 0, b.text, 0) ? 1 : 0;
      return Fate::kValue;
    case Opcode::ReplaceT:
      for (size_t i = 0; i < s.size();) {
        const bool found = !b.text.empty() && s.compare(i, b.text.size(), b.text) == 0;
        *out += found ? c.text : s.substr(i, 1);
        i += found ? b.text.size() : 1;
      }
      return Fate::kValue;
    case Opcode::TranslateT: {
      const std::vector<std::string> from = Characters(b.text), to = Characters(c.text);
      for (const std::string& one : characters) {
        const auto at = static_cast<size_t>(std::find(from.begin(), from.end(), one) - from.begin());
        *out += at == from.size() ? one : at < to.size() ? to[at] : "";
      }
      return Fate::kValue;
    }
    case Opcode::LpadT:
    case Opcode::RpadT: {
      const std::vector<std::string> fill = Characters(c.text);
      if (b.v <= size || fill.empty()) return some(0, b.v);
      if (b.v > 1000) return Fate::kError;  // the walk has no lengths between that and 2^62
      std::string more;
      for (int64_t i = 0; i < b.v - size; ++i) more += fill[static_cast<size_t>(i) % fill.size()];
      *out = op == Opcode::LpadT ? more + s : s + more;
      return Fate::kValue;
    }
    case Opcode::SplitPartT: {
      if (c.v == 0) return Fate::kError;
      std::vector<std::string> fields(1);
      for (size_t i = 0; i < s.size();) {
        const bool found = !b.text.empty() && s.compare(i, b.text.size(), b.text) == 0;
        if (found) {
          fields.emplace_back();
        } else {
          fields.back() += s[i];
        }
        i += found ? b.text.size() : 1;
      }
      const auto count = static_cast<int64_t>(fields.size());
      const int64_t field = c.v > 0 ? c.v - 1 : count + c.v;
      if (field >= 0 && field < count) *out = fields[static_cast<size_t>(field)];
      return Fate::kValue;
    }
    default:
      return Fate::kUnknownOpcode;
  }
}

Fate TextUnary(Opcode op, const std::string& s, std::string* out) {
  *out = s;
  if (op == Opcode::ReverseT) {
    std::vector<std::string> characters = Characters(s);
    std::reverse(characters.begin(), characters.end());
    out->clear();
    for (const std::string& c : characters) *out += c;
    return Fate::kValue;
  }
  if (op == Opcode::UpperT || op == Opcode::LowerT || op == Opcode::InitcapT) {
    // Of the characters that the walk has, ASCII and Latin-1 have two cases. Its others are of three bytes and no words.
    const auto second = [](const std::string& c) { return static_cast<uint8_t>(c[1]); };
    const auto latin = [&](const std::string& c) {  // a letter but for the signs of multiplication and division
      return c.size() == 2 && c[0] == '\xC3' && second(c) != 0x97 && second(c) != 0xB7;
    };
    bool inside = false;
    out->clear();
    for (std::string c : Characters(s)) {
      const bool upper = op == Opcode::UpperT || (op == Opcode::InitcapT && !inside);
      if (c.size() == 1) {
        const auto byte = static_cast<uint8_t>(c[0]);
        inside = std::isalnum(byte) != 0;
        c[0] = static_cast<char>(upper ? std::toupper(byte) : std::tolower(byte));
      } else {
        inside = latin(c) || c.size() == 3;
        if (latin(c) && upper && second(c) >= 0xA0 && second(c) != 0xBF) c[1] = static_cast<char>(second(c) - 0x20);
        if (latin(c) && !upper && second(c) < 0x9F) c[1] = static_cast<char>(second(c) + 0x20);
      }
      *out += c;
    }
    return Fate::kValue;
  }
  if (op == Opcode::Md5T) {
    *out = Md5Hex(s);
    return Fate::kValue;
  }
  if (op == Opcode::Sha256T) {
    *out = Sha256Hex(s);
    return Fate::kValue;
  }
  const bool left = op == Opcode::TrimT || op == Opcode::TrimLeftT,
             right = op == Opcode::TrimT || op == Opcode::TrimRightT;
  if (!left && !right) return Fate::kUnknownOpcode;
  while (left && !out->empty() && out->front() == ' ') out->erase(0, 1);
  while (right && !out->empty() && out->back() == ' ') out->pop_back();
  return Fate::kValue;
}

namespace {

std::string DecimalText(int128_t v, int scale) {
  std::string digits = Show(v < 0 ? -v : v);
  while (static_cast<int>(digits.size()) <= scale) digits.insert(0, "0");
  if (scale > 0) digits.insert(digits.size() - static_cast<size_t>(scale), ".");
  return v < 0 ? "-" + digits : digits;
}

std::string DateText(int64_t day) {
  const std::chrono::year_month_day d{std::chrono::sys_days(std::chrono::days(static_cast<int>(day)))};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(d.year()), static_cast<unsigned>(d.month()),
                     static_cast<unsigned>(d.day()));
}

/// Fewest digits that read back as `v`, written as PostgreSQL does.
std::string FloatText(double v, bool single) {
  if (std::isnan(v)) return "NaN";
  if (std::isinf(v)) return v < 0 ? "-Infinity" : "Infinity";
  char buffer[64];
  for (int digits = 0; digits < 18; ++digits) {
    snprintf(buffer, sizeof buffer, "%.*e", digits, v);
    if (single ? std::strtof(buffer, nullptr) == static_cast<float>(v) : std::strtod(buffer, nullptr) == v) break;
  }
  std::string text = buffer;
  const size_t e = text.find('e');
  const int exponent = std::atoi(text.c_str() + e + 1);
  if (exponent < -4 || exponent >= (single ? 6 : 15)) return text;
  std::string sign = text[0] == '-' ? "-" : "", digits;
  for (size_t i = 0; i < e; ++i) {
    if (text[i] >= '0' && text[i] <= '9') digits += text[i];
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  while (static_cast<int>(digits.size()) < exponent + 1) digits += '0';
  std::string whole = digits.substr(0, static_cast<size_t>(exponent) + 1),
              part = digits.substr(static_cast<size_t>(exponent) + 1);
  return sign + whole + (part.empty() ? "" : "." + part);
}

}  // namespace

Fate ToTextOf(const SqlType& type, const Scalar& in, std::string* out) {
  switch (type.id) {
    case TypeId::kBoolean:
      *out = in.v != 0 ? "true" : "false";
      break;
    case TypeId::kReal:
      *out = FloatText(AsDouble(in.v), true);
      break;
    case TypeId::kDouble:
      *out = FloatText(AsDouble(in.v), false);
      break;
    case TypeId::kDecimal: {
      if (type.storage() == StorageClass::kWide && in.w == kInt128Min) return Fate::kUnspecified;
      *out = DecimalText(type.storage() == StorageClass::kWide ? in.w : in.v, type.scale);
      break;
    }
    case TypeId::kDate:
      if (in.v < kYear1 || in.v > kYear9999) return Fate::kUnspecified;
      *out = DateText(in.v);
      break;
    case TypeId::kTimestamp: {
      const int64_t day = FloorOf(in.v, kDayMicros), rest = in.v - day * kDayMicros;
      if (day < kYear1 || day > kYear9999) return Fate::kUnspecified;
      *out = DateText(day) +
             fmt::format(" {:02}:{:02}:{:02}", rest / 3600000000, rest / 60000000 % 60, rest / 1000000 % 60);
      if (rest % 1000000 != 0) {
        *out += fmt::format(".{:06}", rest % 1000000);
        while (out->back() == '0') out->pop_back();
      }
      break;
    }
    default:
      *out = std::to_string(in.v);
      break;
  }
  return Fate::kValue;
}

std::string FormatFor(const SqlType& type, int language) {
  if (type.IsFloat()) return "9.999EEEE";
  if (type.IsNumeric()) return "S9,999" + std::string(34, '9') + "0.000";
  return language == 0 ? "YYYY-MM-DD" : "%Y-%m-%d";
}

Fate FormatOf(const SqlType& type, const Scalar& in, std::string* out) {
  if (type.IsFloat()) {
    char text[40];
    std::snprintf(text, sizeof text, "%s%.3e", std::signbit(AsDouble(in.v)) ? "" : " ", AsDouble(in.v));
    *out = std::isfinite(AsDouble(in.v)) ? text : " #.#######";
    return Fate::kValue;
  }
  std::string text;
  if (const Fate fate = ToTextOf(type, in, &text); fate != Fate::kValue) return fate;
  if (!type.IsNumeric()) {
    *out = text.substr(0, 10);
    return Fate::kValue;
  }
  // 39 digits before the point, three after it.
  bool negative = text[0] == '-';
  if (negative) text.erase(0, 1);
  size_t point = text.find('.');
  if (point == std::string::npos) {
    point = text.size();
    text += '.';
  }
  text.append(4, '0');
  const bool up = text[point + 4] >= '5';
  text.resize(point + 4);
  for (size_t i = text.size(); up && i-- > 0;) {
    if (text[i] == '.') continue;
    text[i] = text[i] == '9' ? '0' : static_cast<char>(text[i] + 1);
    if (text[i] != '0') break;
    if (i == 0) text.insert(0, "1");
  }
  if (text.find_first_not_of("0.") == std::string::npos) negative = false;
  const size_t digits = text.find('.');
  const std::string sign = negative ? "-" : "+";
  if (digits < 39) {
    *out = std::string(39 - digits, ' ') + " " + sign + text;
  } else {
    *out = sign + text.substr(0, 1) + "," + text.substr(1);
  }
  return Fate::kValue;
}

Fate FromTextOf(const SqlType& type, const std::string& text, Scalar* out) {
  std::string s = text;
  while (!s.empty() && s.front() == ' ') s.erase(0, 1);
  while (!s.empty() && s.back() == ' ') s.pop_back();
  auto digits = [](const std::string& d) {
    return !d.empty() && d.find_first_not_of("0123456789") == std::string::npos;
  };
  const bool negative = !s.empty() && s[0] == '-';
  const std::string rest = !s.empty() && (s[0] == '-' || s[0] == '+') ? s.substr(1) : s;
  switch (type.id) {
    case TypeId::kBoolean:
      if (s != "true" && s != "false" && s != "1" && s != "0") return Fate::kError;
      out->v = s == "true" || s == "1" ? 1 : 0;
      return Fate::kValue;
    case TypeId::kSmallint:
    case TypeId::kInteger:
    case TypeId::kBigint: {
      if (!digits(rest) || rest.size() > 25) return Fate::kError;
      int128_t v = 0;
      for (char c : rest) v = v * 10 + (c - '0');
      v = negative ? -v : v;
      const int bits = type.id == TypeId::kSmallint ? 15 : type.id == TypeId::kInteger ? 31 : 63;
      if (v < -(static_cast<int128_t>(1) << bits) || v >= static_cast<int128_t>(1) << bits) return Fate::kError;
      out->v = static_cast<int64_t>(v);
      return Fate::kValue;
    }
    case TypeId::kDecimal: {
      const size_t e = rest.find('e'), point = rest.substr(0, e).find('.');
      std::string whole = rest.substr(0, std::min(e, point));
      std::string part =
          point == std::string::npos ? "" : rest.substr(point + 1, e == std::string::npos ? e : e - point - 1);
      // An exponent moves the point.
      for (int k = e == std::string::npos ? 0 : std::atoi(rest.c_str() + e + 1); k != 0; k += k > 0 ? -1 : 1) {
        if (k > 0) {
          whole += part.empty() ? '0' : part[0];
          part.erase(0, 1);
        } else {
          part.insert(part.begin(), whole.empty() ? '0' : whole.back());
          if (!whole.empty()) whole.pop_back();
        }
      }
      const size_t zeros = std::min(whole.find_first_not_of('0'), whole.size());
      if (!digits(whole + part) || whole.size() - zeros + type.scale > 38) return Fate::kError;
      int128_t v = 0;
      for (char c : whole + part.substr(0, type.scale)) v = v * 10 + (c - '0');
      for (size_t i = part.size(); i < type.scale; ++i) v *= 10;
      if (part.size() > type.scale && part[type.scale] >= '5') ++v;
      if (v >= PowerOf10(type.precision)) return Fate::kError;
      out->w = negative ? -v : v;
      out->v = static_cast<int64_t>(out->w);
      return Fate::kValue;
    }
    case TypeId::kReal:
    case TypeId::kDouble: {
      if (rest.empty() || ((rest[0] < '0' || rest[0] > '9') && rest[0] != '.' && rest != "Infinity" && s != "NaN"))
        return Fate::kError;
      char* end = nullptr;
      const double v = type.id == TypeId::kReal ? std::strtof(s.c_str(), &end) : std::strtod(s.c_str(), &end);
      // Out of range: too large, or not 0 but rounded to it.
      const bool vanished = v == 0 && s.substr(0, s.find('e')).find_first_of("123456789") != std::string::npos;
      if (*end != 0 || (std::isinf(v) && rest != "Infinity") || vanished) return Fate::kError;
      out->v = AsBits(v);
      return Fate::kValue;
    }
    case TypeId::kDate:
    case TypeId::kTimestamp: {
      if (type.id == TypeId::kDate && s.find(':') != std::string::npos) {  // the time does not matter
        const Fate fate = FromTextOf(SqlType::Of(TypeId::kTimestamp), text, out);
        out->v = FloorOf(out->v, kDayMicros);
        return fate;
      }
      int y = 0, m = 0, d = 0, hour = 0, minute = 0, used = 0;
      double second = 0;
      const bool date = type.id == TypeId::kDate;
      const int fields = sscanf(s.c_str(), date ? "%4d-%2d-%2d%n" : "%4d-%2d-%2d %2d:%2d:%lf%n", &y, &m, &d,
                                date ? &used : &hour, &minute, &second, &used);
      const std::chrono::year_month_day day{std::chrono::year(y), std::chrono::month(static_cast<unsigned>(m)),
                                            std::chrono::day(static_cast<unsigned>(d))};
      if (fields != (date ? 3 : 6) || used != static_cast<int>(s.size()) || y < 1 || !day.ok() || hour > 23 ||
          minute > 59 || second >= 60)
        return Fate::kError;
      out->v = std::chrono::sys_days(day).time_since_epoch().count();
      if (!date)
        out->v = out->v * kDayMicros + (hour * int64_t{3600} + minute * 60) * 1000000 + std::llround(second * 1e6);
      return Fate::kValue;
    }
    default:
      return Fate::kUnknownOpcode;
  }
}

namespace {

/// Seconds that the zone is ahead of UTC.
int64_t AheadAt(const std::string& zone, int64_t seconds) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  static std::string last;
  if (zone != last) {
    setenv("TZ", zone.c_str(), 1);
    tzset();
    last = zone;
  }
  const time_t t = seconds;
  tm clock = {};
  localtime_r(&t, &clock);
  return clock.tm_gmtoff;
}

}  // namespace

Fate InZone(Opcode op, const std::string& zone, int64_t* v, std::string* text) {
  // A local time has a date of the calendar; a moment may lie a day beyond.
  const auto exists = [](int64_t at, int64_t beyond) {
    const int64_t day = FloorOf(at, kDayMicros);
    return day >= kYear1 - beyond && day <= kYear9999 + beyond;
  };
  const auto moment_of = [&](int64_t local) {
    const int64_t seconds = FloorOf(local, 1000000);
    const int64_t earlier = AheadAt(zone, seconds - 86400), later = AheadAt(zone, seconds + 86400);
    const bool is_later = AheadAt(zone, seconds - later) == later;
    return local - (is_later ? later : earlier) * 1000000;
  };
  if (op == Opcode::ZoneParseT) {
    Scalar local;
    Fate fate = FromTextOf(SqlType::Of(TypeId::kTimestamp), *text, &local);
    if (fate != Fate::kValue) {
      fate = FromTextOf(SqlType::Of(TypeId::kDate), *text, &local);
      local.v *= kDayMicros;
    }
    *v = fate == Fate::kValue ? moment_of(local.v) : 0;
    return fate;
  }
  if (!exists(*v, op == Opcode::ZoneMomentI ? 0 : 1))
    return op == Opcode::ZoneTextT ? Fate::kUnspecified : Fate::kError;
  const int64_t ahead = AheadAt(zone, FloorOf(*v, 1000000));
  switch (op) {
    case Opcode::ZoneLocalI:
      *v += ahead * 1000000;
      return exists(*v, 0) ? Fate::kValue : Fate::kError;
    case Opcode::ZoneMomentI:
      *v = moment_of(*v);
      return exists(*v, 1) ? Fate::kValue : Fate::kError;
    case Opcode::ZoneTextT: {
      if (!exists(*v + ahead * 1000000, 0)) return Fate::kUnspecified;  // calendar_ends.test has some
      const Fate fate = ToTextOf(SqlType::Of(TypeId::kTimestamp), {*v + ahead * 1000000, 0}, text);
      const int64_t size = ahead < 0 ? -ahead : ahead;
      *text += fmt::format("{}{:02}", ahead < 0 ? '-' : '+', size / 3600);
      if (size % 3600 != 0) *text += fmt::format(":{:02}", size / 60 % 60);
      if (size % 60 != 0) *text += fmt::format(":{:02}", size % 60);
      return fate;
    }
    default:
      return Fate::kUnknownOpcode;
  }
}

}  // namespace tessera::test::walk
