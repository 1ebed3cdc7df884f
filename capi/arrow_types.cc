#include "capi/arrow_types.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

namespace tessera {
namespace {

/// What a type of ours owns.
struct SchemaOwner {
  std::string format, name, metadata;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
  ArrowSchema dictionary = {};
};

void ReleaseSchema(ArrowSchema* schema) {
  auto* const owner = static_cast<SchemaOwner*>(schema->private_data);
  for (ArrowSchema& child : owner->children) ReleaseArrow(&child);
  ReleaseArrow(&owner->dictionary);
  schema->release = nullptr;
  delete owner;
}

std::string FormatOf(const SqlType& type) {
  switch (type.id) {
    case TypeId::kNull:
      return "n";
    case TypeId::kBoolean:
      return "b";
    case TypeId::kSmallint:
    case TypeId::kEnum:  // (places of labels)
      return "s";
    case TypeId::kInteger:
      return "i";
    case TypeId::kBigint:
      return "l";
    case TypeId::kReal:
      return "f";
    case TypeId::kDouble:
      return "g";
    case TypeId::kDecimal:
      return fmt::format("d:{},{}", type.precision, type.scale);
    case TypeId::kDate:
      return "tdD";
    case TypeId::kTimestamp:
      return "tsu:";
    case TypeId::kTimestampTz:
      return "tsu:UTC";
    case TypeId::kTime:
      return "ttu";
    case TypeId::kInterval:
      return "tin";
    case TypeId::kText:
    case TypeId::kUuid:
      return "u";
    case TypeId::kBytea:
      return "z";
  }
  return "n";
}

/// Pairs of a key and a value as the C data interface has them.
std::string Metadata(std::string_view key, std::string_view value) {
  std::string out;
  const auto number = [&](size_t n) {
    const auto bits = static_cast<int32_t>(n);
    out.append(reinterpret_cast<const char*>(&bits), sizeof(bits));
  };
  number(1);
  number(key.size());
  out += key;
  number(value.size());
  out += value;
  return out;
}

/// `out` owns nothing yet.
void Export(std::unique_ptr<SchemaOwner> owner, int64_t flags, ArrowSchema* out) {
  *out = {};
  for (ArrowSchema& child : owner->children) owner->pointers.push_back(&child);
  out->format = owner->format.c_str();
  out->name = owner->name.c_str();
  out->metadata = owner->metadata.empty() ? nullptr : owner->metadata.c_str();
  out->flags = flags;
  out->n_children = static_cast<int64_t>(owner->children.size());
  out->children = owner->pointers.empty() ? nullptr : owner->pointers.data();
  out->dictionary = owner->dictionary.release == nullptr ? nullptr : &owner->dictionary;
  out->release = ReleaseSchema;
  out->private_data = owner.release();
}

void ExportColumn(const vm::ResultColumn& column, ArrowSchema* out) {
  auto owner = std::make_unique<SchemaOwner>();
  owner->format = FormatOf(column.type);
  owner->name = column.name;
  if (column.type.id == TypeId::kUuid) owner->metadata = Metadata("tessera.type", "UUID");
  int64_t flags = ARROW_FLAG_NULLABLE;
  if (column.type.id == TypeId::kEnum) {
    flags |= ARROW_FLAG_DICTIONARY_ORDERED;
    auto labels = std::make_unique<SchemaOwner>();
    labels->format = "u";
    Export(std::move(labels), 0, &owner->dictionary);
  }
  Export(std::move(owner), flags, out);
}

/// Of fields that other types are made of, or that no column can have.
std::string NameOfFormat(std::string_view format) {
  if (format.starts_with("+l") || format.starts_with("+L") || format.starts_with("+v") || format.starts_with("+w"))
    return "list";
  if (format.starts_with("+s")) return "struct";
  if (format.starts_with("+m")) return "map";
  if (format.starts_with("+u")) return "union";
  if (format.starts_with("+r")) return "run-end encoded";
  if (format.starts_with("d:")) return "decimal of more than 38 digits";
  return fmt::format("\"{}\"", format);
}

/// "d:12,2" or "d:12,2,64".
bool ReadDecimal(std::string_view format, SqlType* type) {
  int parts[3] = {0, 0, 128}, count = 0;
  const char* at = format.data() + 2;
  const char* const end = format.data() + format.size();
  for (; count < 3 && at < end; ++count) {
    const auto [next, error] = std::from_chars(at, end, parts[count]);
    if (error != std::errc()) return false;
    at = next < end && *next == ',' ? next + 1 : next;
  }
  const bool fits = count >= 2 && parts[0] >= 1 && parts[0] <= 38 && parts[1] >= 0 && parts[1] <= parts[0] &&
                    (parts[2] == 32 || parts[2] == 64 || parts[2] == 128);
  if (fits) *type = SqlType::Decimal(parts[0], parts[1]);
  return fits;
}

}  // namespace

void ExportColumns(std::span<const vm::ResultColumn> columns, ArrowSchema* out) {
  auto owner = std::make_unique<SchemaOwner>();
  owner->format = "+s";
  owner->children.resize(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) ExportColumn(columns[i], &owner->children[i]);
  Export(std::move(owner), 0, out);
}

bool IsExtension(const ArrowSchema& field, std::string_view name) {
  if (field.metadata == nullptr) return false;
  const char* at = field.metadata;
  const auto number = [&] {
    int32_t n;
    std::memcpy(&n, at, sizeof(n));
    at += sizeof(n);
    return n;
  };
  const auto text = [&] {
    const auto size = static_cast<size_t>(number());
    const std::string_view out(at, size);
    at += size;
    return out;
  };
  for (int32_t left = number(); left > 0; --left) {
    const std::string_view key = text(), value = text();
    if (key == "ARROW:extension:name" && value == name) return true;
  }
  return false;
}

int64_t UnitsPerSecond(char letter) {
  return letter == 'm' ? 1000 : letter == 'u' ? 1'000'000 : letter == 'n' ? 1'000'000'000 : 1;
}

Result<SqlType> SqlTypeOf(const ArrowSchema& field) {
  if (field.dictionary != nullptr) {
    const ArrowSchema& values = *field.dictionary;
    if (values.dictionary == nullptr) return SqlTypeOf(values);
  }
  static constexpr std::pair<std::string_view, TypeId> kPlain[] = {
      {"n", TypeId::kText},       {"b", TypeId::kBoolean},    {"c", TypeId::kSmallint},   {"C", TypeId::kSmallint},
      {"s", TypeId::kSmallint},   {"S", TypeId::kInteger},    {"i", TypeId::kInteger},    {"I", TypeId::kBigint},
      {"l", TypeId::kBigint},     {"e", TypeId::kReal},       {"f", TypeId::kReal},       {"g", TypeId::kDouble},
      {"tdD", TypeId::kDate},     {"tdm", TypeId::kDate},     {"tts", TypeId::kTime},     {"ttm", TypeId::kTime},
      {"ttu", TypeId::kTime},     {"ttn", TypeId::kTime},     {"tDs", TypeId::kInterval}, {"tDm", TypeId::kInterval},
      {"tDu", TypeId::kInterval}, {"tDn", TypeId::kInterval}, {"tiM", TypeId::kInterval}, {"tiD", TypeId::kInterval},
      {"tin", TypeId::kInterval}, {"u", TypeId::kText},       {"U", TypeId::kText},       {"vu", TypeId::kText},
      {"z", TypeId::kBytea},      {"Z", TypeId::kBytea},      {"vz", TypeId::kBytea}};
  const std::string_view format = field.format;
  for (const auto& [name, id] : kPlain)
    if (format == name) return SqlType::Of(id);
  if (format == "L") return SqlType::Decimal(20, 0);
  if (format == "w:16" && IsExtension(field, "arrow.uuid")) return SqlType::Of(TypeId::kUuid);
  if (format.starts_with("w:")) return SqlType::Of(TypeId::kBytea);
  if (format.starts_with("ts") && format.size() >= 4)
    return SqlType::Of(format.size() == 4 ? TypeId::kTimestamp : TypeId::kTimestampTz);
  SqlType decimal;
  if (format.starts_with("d:") && ReadDecimal(format, &decimal)) return decimal;
  return Unsupported(fmt::format("column \"{}\" has Arrow's type {}, which is not supported",
                                 field.name != nullptr ? field.name : "", NameOfFormat(format)),
                     -1, "Cast it, or leave the column out.");
}

}  // namespace tessera
