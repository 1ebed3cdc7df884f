#include "shell/statement_name.h"

namespace tessera {
namespace {

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

void NameInComment(std::string_view text, std::string* name) {
  constexpr std::string_view kName = "name:";
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = Trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    while (!line.empty() && line[0] == ';') line = Trimmed(line.substr(1));
    if (line.substr(0, 2) != "--") continue;
    line = Trimmed(line.substr(2));
    if (line.substr(0, kName.size()) == kName) *name = Trimmed(line.substr(kName.size()));
  }
}

std::string NameOfScript(std::string_view file) {
  constexpr std::string_view kEnding = ".sql";
  if (const size_t slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  if (file.size() > kEnding.size() && file.substr(file.size() - kEnding.size()) == kEnding)
    file.remove_suffix(kEnding.size());
  return std::string(file);
}

}  // namespace tessera
