#include "compiler/parse/macro_definition.h"

#include <algorithm>

#include "base/lower_case.h"
#include "compiler/parse/sql_scanner.h"

namespace tessera {
namespace {

class DefinitionReader {
 public:
  explicit DefinitionReader(std::string_view text) : text_(text) { Next(); }

  Result<MacroDefinition> Read() {
    MacroDefinition out;
    if (!IsSymbol('(')) return Unexpected();
    Next();
    while (!IsSymbol(')')) {
      TESSERA_TRY(ReadParameter(&out));
      if (IsSymbol(')')) break;
      if (!IsSymbol(',')) return Unexpected();
      Next();
    }
    Next();
    if (!IsWord("as")) return Unexpected();
    Next();
    out.of_rows = IsWord("table");
    if (out.of_rows) Next();
    if (token_.kind == Token::Kind::kEnd) return Unexpected();
    out.body = token_.begin;
    return out;
  }

 private:
  void Next() {
    do token_ = NextToken(text_, token_.end);
    while (token_.kind == Token::Kind::kSpace);
  }
  std::string_view Characters() const { return text_.substr(token_.begin, token_.end - token_.begin); }
  bool IsSymbol(char c) const { return token_.kind == Token::Kind::kSymbol && text_[token_.begin] == c; }
  bool IsWord(std::string_view word) const {
    return token_.kind == Token::Kind::kWord && LowerCase(Characters()) == word;
  }
  Status Unexpected() const {
    const auto position = static_cast<int>(token_.begin);
    if (token_.kind == Token::Kind::kEnd) return SqlError(ErrorKind::kSyntax, "syntax error at end of input", position);
    return SqlError(ErrorKind::kSyntax, "syntax error at or near \"" + std::string(Characters().substr(0, 40)) + "\"",
                    position, "CREATE MACRO f(a, b := 2) AS a + b");
  }

  Status ReadParameter(MacroDefinition* out) {
    const auto position = static_cast<int>(token_.begin);
    MacroParameter parameter;
    if (token_.kind == Token::Kind::kWord) {
      parameter.name = LowerCase(Characters());
    } else if (token_.kind == Token::Kind::kQuoted && text_[token_.begin] == '"' && token_.closed) {
      for (size_t i = token_.begin + 1; i + 1 < token_.end; ++i) {
        parameter.name.push_back(text_[i]);
        if (text_[i] == '"') ++i;  // doubled
      }
    }
    if (parameter.name.empty()) return Unexpected();
    const auto same = [&](const MacroParameter& p) { return p.name == parameter.name; };
    if (std::any_of(out->parameters.begin(), out->parameters.end(), same))
      return SqlError(ErrorKind::kDuplicateColumn, "parameter \"" + parameter.name + "\" specified more than once",
                      position);
    Next();
    if (token_.kind == Token::Kind::kWord)
      return SqlError(ErrorKind::kSyntax, "a parameter of a macro has no type", static_cast<int>(token_.begin),
                      "Calls decide it; " + parameter.name + "::INTEGER in the body casts it.");
    if (IsSymbol(':')) {
      Next();
      if (!IsSymbol('=')) return Unexpected();
      TESSERA_ASSIGN(parameter.default_text, ReadDefault());
    } else if (!out->parameters.empty() && !out->parameters.back().default_text.empty()) {
      return SqlError(ErrorKind::kSyntax, "parameters after one with a default must also have defaults", position);
    }
    out->parameters.push_back(std::move(parameter));
    return {};
  }

  /// From the = up to the comma or parenthesis after the expression.
  Result<std::string> ReadDefault() {
    Next();
    const size_t begin = token_.begin;
    size_t end = begin;
    for (int depth = 0; depth > 0 || (!IsSymbol(',') && !IsSymbol(')')); Next()) {
      if (token_.kind == Token::Kind::kEnd) return Unexpected();
      depth += IsSymbol('(') ? 1 : IsSymbol(')') ? -1 : 0;
      end = token_.end;
    }
    if (end == begin) return Unexpected();
    return std::string(text_.substr(begin, end - begin));
  }

  const std::string_view text_;
  Token token_;
};

}  // namespace

Result<MacroDefinition> ReadMacroDefinition(std::string_view text) { return DefinitionReader(text).Read(); }

}  // namespace tessera
