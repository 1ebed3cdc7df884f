#include "tablet/load/file_spec.h"

#include "base/lower_case.h"
#include "tablet/values/value_parser.h"

namespace tessera {

std::optional<TextEncoding> EncodingNamed(std::string_view name) {
  std::string letters;  // UTF_8 is utf-8
  for (const char c : name) {
    if (c != '-' && c != '_' && c != ' ') letters.push_back(LowerCase(c));
  }
  if (letters == "utf8" || letters == "unicode") return TextEncoding::kUtf8;
  if (letters == "utf16" || letters == "utf16le" || letters == "utf16be") return TextEncoding::kUtf16;
  if (letters == "latin1" || letters == "iso88591") return TextEncoding::kLatin1;
  return std::nullopt;
}

FileFormat FormatOfName(std::string_view name) {
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (!name.ends_with(packed)) continue;
    const FileFormat inner = FormatOfName(name.substr(0, name.size() - packed.size()));
    return inner == FileFormat::kJson ? inner : FileFormat::kFromName;
  }
  const size_t point = name.rfind('.');
  if (point == std::string_view::npos) return FileFormat::kFromName;
  const std::string ending = LowerCase(name.substr(point + 1));
  if (ending == "csv" || ending == "tsv" || ending == "tbl") return FileFormat::kCsv;
  if (ending == "jsonl" || ending == "ndjson" || ending == "json") return FileFormat::kJson;
  if (ending == "parquet") return FileFormat::kParquet;
  if (ending == "arrow" || ending == "arrows" || ending == "feather" || ending == "ipc") return FileFormat::kArrow;
  return FileFormat::kFromName;
}

std::string FileSpec::Key() const {
  std::string key;
  const auto add = [&](const std::string& part) {
    key += part;
    key.push_back('\0');
  };
  const auto number = [&](int64_t n) { add(std::to_string(n)); };
  const auto maybe = [&](const auto& value) { number(value ? static_cast<int64_t>(*value) : -1000); };
  number(static_cast<int64_t>(patterns.size()));
  for (const std::string& pattern : patterns) add(pattern);
  number(static_cast<int64_t>(format));
  add(table);
  maybe(delimiter);
  maybe(quote);
  maybe(escape);
  maybe(header);
  maybe(encoding);
  number(names ? static_cast<int64_t>(names->size()) : -1);
  if (names) {
    for (const std::string& name : *names) add(name);
  }
  for (const auto& [name, type] : types) {
    add(name);
    add(type.ToString());
  }
  add(null_string);
  number(static_cast<int64_t>(skip_lines));
  number(sampled_rows);
  number(decimal);
  number(thousands);
  add(date_format);
  add(timestamp_format);
  for (const bool flag : {all_text, ignore_errors, filename, hive_partitioning, union_by_name}) number(flag ? 1 : 0);
  return key;
}

}  // namespace tessera
