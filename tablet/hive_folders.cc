#include "tablet/hive_folders.h"

#include <charconv>

#include "base/lower_case.h"
#include "tablet/csv/value_kinds.h"
#include "tablet/values/utf8.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

constexpr std::string_view kNull = "__HIVE_DEFAULT_PARTITION__";

/// %2F is a slash.
std::string Unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    const bool is_escape =
        text[i] == '%' && i + 2 < text.size() && std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    out.push_back(is_escape ? static_cast<char>(byte) : text[i]);
    if (is_escape) i += 2;
  }
  return out;
}

}  // namespace

std::vector<std::pair<std::string, std::optional<std::string>>> FoldersOf(std::string_view path) {
  std::vector<std::pair<std::string, std::optional<std::string>>> folders;
  for (size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/')) {
    const std::string_view folder = path.substr(0, slash);
    path.remove_prefix(slash + 1);
    const size_t equals = folder.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const std::string_view value = folder.substr(equals + 1);
    auto& [name, found] = folders.emplace_back(LowerCase(Unescaped(folder.substr(0, equals))), std::nullopt);
    if (value != kNull) found = Unescaped(value);
  }
  return folders;
}

Status AddFolderColumns(std::vector<FileSource>* sources, TableSchema* schema) {
  const auto first = FoldersOf(sources->front().identity.path);
  for (size_t f = 0; f < first.size(); ++f) {
    const std::string& name = first[f].first;
    if (schema->Find(name) >= 0)
      return SqlError("the files have a column \"" + name + "\" of their own", -1, "Leave out hive_partitioning.");
    const auto column = static_cast<int>(schema->columns.size());
    ValueKinds kinds = kAllKinds;
    std::vector<std::optional<std::string>> values;
    for (const FileSource& source : *sources) {
      const std::string& path = source.identity.path;
      auto folders = FoldersOf(path);
      if (folders.size() != first.size() || folders[f].first != name) {
        return SqlError(
            QuoteForMessage(path) + " is in other folders than " + QuoteForMessage(sources->front().identity.path), -1,
            "With hive_partitioning all files have the same names in their folders.");
      }
      values.push_back(std::move(folders[f].second));
      if (values.back()) kinds &= KindsOf(*values.back(), '.', 0);
    }
    const SqlType type = kinds == kAllKinds ? SqlType::Text() : TypeOfKinds(kinds);
    schema->columns.push_back({name, type});
    for (size_t s = 0; s < sources->size(); ++s) {
      Value value = Value::Null(type);
      if (values[s]) {
        TESSERA_ASSIGN(value, ParseValue(*values[s], type));
      }
      (*sources)[s].constants.push_back({column, std::move(value)});
    }
  }
  return {};
}

}  // namespace tessera
