// Binding PRINTF and FORMAT: a constant format is parts of text and conversions, each an expression of its own, which are
// joined. FORMAT has PostgreSQL's directives, %s %I %L, or DuckDB's, {}.
#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "compiler/bind/expression_binder.h"
#include "vm/meaning/format.h"
#include "vm/meaning/regex.h"

namespace tessera {
namespace {

const SqlType kText = SqlType::Text();
const SqlType kInteger = SqlType::Of(TypeId::kInteger);
const SqlType kDouble = SqlType::Of(TypeId::kDouble);

constexpr int kMostWidth = 1 << 16;

enum class Language { kC, kPostgres, kBraces };

}  // namespace

/// How a value is shown, in either language.
struct PrintDirective {
  std::string flags;  ///< of C
  int width = 0, precision = -1;
  char conversion = 0;  ///< of C; 's' for texts; 0 for what the type says
  char align = 0;       ///< '<', '>' or '^' of {}
  std::string fill = " ";
  size_t argument = 0;  ///< its number, from 0
};

namespace {

/// A reader of digits at a place of the format.
int Digits(std::string_view text, size_t* at) {
  int n = 0;
  for (; *at < text.size() && std::isdigit(static_cast<unsigned char>(text[*at])) != 0; ++*at)
    n = std::min(kMostWidth + 1, n * 10 + (text[*at] - '0'));
  return n;
}

Language LanguageOf(std::string_view name, const std::string& format) {
  if (name == "printf") return Language::kC;
  const bool braces = format.find_first_of("{}") != std::string::npos;
  return braces && !vm::Regex("%([0-9]+\\$)?-?[0-9]*[sIL]").Matches(format) ? Language::kBraces : Language::kPostgres;
}

Status BadFormat(std::string_view name, const std::string& what, int position) {
  return SqlError("invalid format of " + std::string(name) + ": " + what, position);
}

/// %[n$][flags][width][.precision]conversion
Status ReadPercent(std::string_view text, size_t* at, size_t* next, PrintDirective* d, int position) {
  const size_t begin = *at;
  size_t k = begin;
  const int number = Digits(text, &k);
  bool numbered = false;
  if (k > begin && k < text.size() && text[k] == '$') {
    numbered = true;
    *at = k + 1;
  }
  for (; *at < text.size() && std::string_view("-0+ #,").find(text[*at]) != std::string_view::npos; ++*at)
    d->flags += text[*at];
  d->width = Digits(text, at);
  if (*at < text.size() && text[*at] == '.') {
    ++*at;
    d->precision = Digits(text, at);
  }
  while (*at < text.size() && (text[*at] == 'l' || text[*at] == 'h')) ++*at;  // lengths of C's types
  if (*at == text.size()) return BadFormat("a format", "it ends in the middle of a directive", position);
  if (text[*at] == '*') return Unsupported("a width that is an argument is not supported", position);
  if (d->width > kMostWidth || d->precision > kMostWidth)
    return BadFormat("a format", "a width is too large", position);
  d->conversion = text[(*at)++];
  if (numbered && number == 0) return BadFormat("a format", "arguments are numbered from 1", position);
  d->argument = numbered ? static_cast<size_t>(number) - 1 : (*next)++;
  if (numbered) *next = d->argument + 1;
  return {};
}

/// {[n][:[[fill]align][sign][#][0][width][,][.precision][conversion]]}, from after the brace to after its other one.
Status ReadBraces(std::string_view text, size_t* at, size_t* next, PrintDirective* d, int position) {
  const size_t begin = *at;
  const int number = Digits(text, at);
  d->argument = *at > begin ? static_cast<size_t>(number) : (*next)++;
  if (*at < text.size() && text[*at] == ':') {
    ++*at;
    const auto is_align = [&](size_t k) {
      return k < text.size() && (text[k] == '<' || text[k] == '>' || text[k] == '^');
    };
    size_t one = *at;
    if (one < text.size()) {  // a character
      ++one;
      while (one < text.size() && (static_cast<unsigned char>(text[one]) & 0xC0) == 0x80) ++one;
    }
    if (is_align(one)) {
      d->fill = std::string(text.substr(*at, one - *at));
      *at = one;
    }
    if (is_align(*at)) d->align = text[(*at)++];
    for (; *at < text.size() && std::string_view("+- #0,").find(text[*at]) != std::string_view::npos; ++*at) {
      if (text[*at] != '-') d->flags += text[*at];
    }
    d->width = Digits(text, at);
    if (*at < text.size() && text[*at] == ',') {
      d->flags += ',';
      ++*at;
    }
    if (*at < text.size() && text[*at] == '.') {
      ++*at;
      d->precision = Digits(text, at);
    }
    if (*at < text.size() && text[*at] != '}') d->conversion = text[(*at)++];
  }
  if (*at == text.size() || text[*at] != '}') return BadFormat("format", "a { without its }", position);
  if (d->width > kMostWidth || d->precision > kMostWidth) return BadFormat("format", "a width is too large", position);
  ++*at;
  return {};
}

}  // namespace

/// `width` characters at least; `align`: where the text stands among them.
Result<ExprPtr> ExpressionBinder::Pad(ExprPtr x, int width, char align, const std::string& fill, int position) {
  if (width == 0) return x;
  std::vector<ExprPtr> of = ExprList(std::move(x), MakeConstant(Value::Int(kInteger, width), position),
                                     MakeConstant(Value::Text(fill), position));
  const char* const text = align == '<'   ? "CASE WHEN length(x) < y THEN rpad(x, y, z) ELSE x END"
                           : align == '>' ? "CASE WHEN length(x) < y THEN lpad(x, y, z) ELSE x END"
                                          : "CASE WHEN length(x) < y THEN rpad(lpad(x, length(x) + (y - length(x)) "
                                            "/ 2, z), y, z) ELSE x END";
  return BindText(text, std::move(of), position);
}

/// A value by a conversion of C.
Result<ExprPtr> ExpressionBinder::Printed(ExprPtr x, std::string flags, int width, int precision, char conversion,
                                          std::string_view name, int position) {
  const bool integers = std::string_view("dxXob").find(conversion) != std::string_view::npos;
  if (x->type.id == TypeId::kNull) {
    TESSERA_ASSIGN(x, Resolve(std::move(x), x->constant.null ? kInteger : kText));
  }
  if (x->type.id == TypeId::kBoolean) {
    TESSERA_ASSIGN(x, Folded(MakeCast(std::move(x), kInteger)));
  }
  if (!x->type.IsNumeric() || (integers && (x->type.IsFloat() || x->type.scale > 0))) {
    return SqlError(std::string(name) + " with %" + conversion + " takes " + (integers ? "an integer" : "a number") +
                        ", not " + x->type.ToString(),
                    position, "Cast it, or write %s for its text.");
  }
  if (!integers) {
    TESSERA_ASSIGN(x, Folded(MakeCast(std::move(x), kDouble)));
  }
  if (width > 0) flags += std::to_string(width);
  if (precision >= 0) flags += "." + std::to_string(precision);
  flags += conversion;
  const vm::Format read(flags, x->type, vm::Format::Language::kPrintf);
  if (!read.error().empty()) return BadFormat(name, read.error(), position);
  ExprPtr format = MakeConstant(Value::Text(std::move(flags)), position);
  ExprPtr language = MakeConstant(Value::Int(kInteger, static_cast<int>(vm::Format::Language::kPrintf)), position);
  return Folded(
      MakeFunction(Function::kFormat, kText, position, ExprList(std::move(x), std::move(format), std::move(language))));
}

/// A value by a directive of PostgreSQL's FORMAT.
Result<ExprPtr> ExpressionBinder::ShownByFormat(ExprPtr x, const PrintDirective& d, int at_format, int position) {
  if (std::string_view("sIL").find(d.conversion) == std::string_view::npos || d.precision >= 0 ||
      d.flags.find_first_not_of('-') != std::string::npos) {
    return SqlError(std::string("unrecognized format() type specifier \"") + d.conversion + "\"", at_format,
                    "They are %s, %I and %L; printf has those of C.");
  }
  if (d.conversion == 'I' && IsNullConstant(*x))
    return SqlError("null values cannot be formatted as an SQL identifier", at_format);
  TESSERA_ASSIGN(x, BindText(d.conversion == 's'   ? "coalesce(x::text, '')"
                             : d.conversion == 'L' ? "quote_nullable(x)"
                                                   : "quote_ident(x)",
                             ExprList(std::move(x)), position));
  return Pad(std::move(x), d.width, d.flags.empty() ? '>' : '<', " ", position);
}

/// A value by a directive of C or, if `braces`, of DuckDB's FORMAT.
Result<ExprPtr> ExpressionBinder::ShownByDirective(ExprPtr x, PrintDirective d, bool braces, std::string_view name,
                                                   int at_format, int position) {
  if (d.conversion == 'c') {
    TESSERA_ASSIGN(x, BindText("chr(x)", ExprList(std::move(x)), position));
    return Pad(std::move(x), d.width, d.flags.empty() ? '>' : '<', " ", position);
  }
  if (d.conversion == 's' || (d.conversion == 0 && !x->type.IsNumeric())) {
    const std::string cut = d.precision < 0 ? "x::text" : "left(x::text, " + std::to_string(d.precision) + ")";
    TESSERA_ASSIGN(x, BindText(cut, ExprList(std::move(x)), position));
    const bool left = braces || d.flags.find('-') != std::string::npos;
    return Pad(std::move(x), d.width, d.align != 0 ? d.align : left ? '<' : '>', d.fill, position);
  }
  const bool exact = !x->type.IsFloat() && x->type.scale == 0;
  char conversion = d.conversion == 'i' || d.conversion == 'u' ? 'd' : d.conversion;
  const bool aligned = d.align != 0;
  if (aligned) std::erase(d.flags, '0');
  if (braces) d.flags += '!';
  if (conversion == 0 && !exact && d.precision < 0 && d.flags.find(',') == std::string::npos) {
    // As CAST shows it.
    TESSERA_ASSIGN(x, BindText("x::text", ExprList(std::move(x)), position));
    return Pad(std::move(x), d.width, aligned ? d.align : '>', d.flags.find('0') != std::string::npos ? "0" : d.fill,
               position);
  }
  if (conversion == 0) conversion = exact ? 'd' : d.precision < 0 ? 'f' : 'g';
  TESSERA_ASSIGN(x, Printed(std::move(x), d.flags, aligned ? 0 : d.width, d.precision, conversion, name, at_format));
  return aligned ? Pad(std::move(x), d.width, d.align, d.fill, position) : Result<ExprPtr>(std::move(x));
}

Result<ExprPtr> ExpressionBinder::BindPrintf(std::string_view name, std::vector<ExprPtr>* args, int position) {
  std::vector<ExprPtr>& a = *args;
  TESSERA_ASSIGN(a[0], Resolve(std::move(a[0]), kText));
  if (a[0]->type.id != TypeId::kText) return ExprPtr();
  if (!IsConstant(*a[0]))
    return Unsupported(std::string(name) + " with a format that is not a constant is not supported", a[0]->position);
  if (a[0]->constant.null) return MakeNull(kText, position);
  const std::string text = a[0]->constant.text;
  const int at_format = a[0]->position;
  const Language language = LanguageOf(name, text);
  std::vector<ExprPtr> parts;
  std::string plain;
  const auto flush = [&] {
    if (!plain.empty()) parts.push_back(MakeConstant(Value::Text(std::exchange(plain, "")), position));
  };
  size_t next = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at++];
    const char directive = language == Language::kBraces ? '{' : '%';
    const bool doubled = at < text.size() && text[at] == c;
    if (c != directive && !(language == Language::kBraces && c == '}')) {
      plain += c;
      continue;
    }
    if (doubled) {
      plain += c;
      ++at;
      continue;
    }
    if (c == '}') return BadFormat(name, "a } without its {", at_format);
    flush();
    PrintDirective d;
    TESSERA_TRY(language == Language::kBraces ? ReadBraces(text, &at, &next, &d, at_format)
                                              : ReadPercent(text, &at, &next, &d, at_format));
    if (d.argument + 1 >= a.size()) {
      return SqlError("too few arguments for " + std::string(name), at_format,
                      "The format has a directive for argument " + std::to_string(d.argument + 1) + ".");
    }
    TESSERA_ASSIGN(ExprPtr x, Copy(*a[d.argument + 1]));
    if (language == Language::kPostgres) {
      TESSERA_ASSIGN(x, ShownByFormat(std::move(x), d, at_format, position));
    } else {
      TESSERA_ASSIGN(
          x, ShownByDirective(std::move(x), std::move(d), language == Language::kBraces, name, at_format, position));
    }
    parts.push_back(std::move(x));
  }
  flush();
  if (parts.empty()) return MakeConstant(Value::Text(""), position);
  ExprPtr all = std::move(parts[0]);
  for (size_t i = 1; i < parts.size(); ++i) {
    TESSERA_ASSIGN(all, Infix("||", std::move(all), std::move(parts[i]), position));
  }
  return all;
}

}  // namespace tessera
