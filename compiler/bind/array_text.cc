#include "compiler/bind/array_text.h"

#include "base/lower_case.h"

namespace tessera {

Result<std::vector<std::optional<std::string>>> ElementsOfArray(std::string_view text, int position) {
  const auto malformed = [&] {
    return SqlError("malformed array literal: \"" + std::string(text) + "\"", position,
                    "Write '{a,b}', or ARRAY['a', 'b'].");
  };
  std::vector<std::optional<std::string>> elements;
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') return malformed();
  const std::string_view inside = text.substr(1, text.size() - 2);
  if (inside.find_first_not_of(' ') == std::string_view::npos) return elements;
  for (size_t at = 0; at <= inside.size(); ++at) {
    while (at < inside.size() && inside[at] == ' ') ++at;
    std::string element;
    const bool quoted = at < inside.size() && inside[at] == '"';
    if (quoted) {
      for (++at; at < inside.size() && inside[at] != '"'; ++at) {
        if (inside[at] == '\\' && at + 1 < inside.size()) ++at;
        element += inside[at];
      }
      if (at++ == inside.size()) return malformed();
      while (at < inside.size() && inside[at] == ' ') ++at;
    } else {
      for (; at < inside.size() && inside[at] != ','; ++at) {
        if (inside[at] == '{' || inside[at] == '}' || inside[at] == '"') return malformed();
        element += inside[at];
      }
      element.erase(element.find_last_not_of(' ') + 1);
      if (element.empty()) return malformed();
    }
    if (at < inside.size() && inside[at] != ',') return malformed();
    const bool null = !quoted && LowerCase(element) == "null";
    elements.push_back(null ? std::nullopt : std::optional<std::string>(std::move(element)));
  }
  return elements;
}

std::string ArrayText(const std::vector<std::optional<std::string>>& elements) {
  std::string text = "{";
  for (const std::optional<std::string>& element : elements) {
    if (text.size() > 1) text += ',';
    if (!element) {
      text += "NULL";
      continue;
    }
    const bool quoted = element->empty() || LowerCase(*element) == "null" ||
                        element->find_first_of("{}\",\\ \t\n") != std::string::npos;
    if (!quoted) {
      text += *element;
      continue;
    }
    text += '"';
    for (const char c : *element) {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
    text += '"';
  }
  return text + "}";
}

}  // namespace tessera
