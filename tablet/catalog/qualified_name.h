// The name of a table with its schema, as one text: how catalogs, snapshots and programs keep it.
//
// A table of the schema that stands without a name is called by its name alone. Any other is called schema, U+001F, name:
// no new table may have that character in its name, while a dot may well be part of one. A table of an attached database
// is called database, two of these characters, and its name there.
//
// Start at: QualifiedName, AttachedName, ShownName. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

inline constexpr char kSchemaSeparator = '\x1f';
/// The schema of what belongs to one session.
inline constexpr std::string_view kTemporarySchema = "pg_temp";

/// An empty `schema` is the default one.
inline std::string QualifiedName(std::string_view schema, std::string_view name) {
  std::string out(schema);
  if (!schema.empty()) out += kSchemaSeparator;
  return out.append(name);
}

/// `qualified` is the name in the database that is attached under `database`.
inline std::string AttachedName(std::string_view database, std::string_view qualified) {
  return std::string(database).append(2, kSchemaSeparator).append(qualified);
}

/// The attached database of which it is a name; "": none.
inline std::string_view AttachedOfName(std::string_view qualified) {
  const size_t at = qualified.find(kSchemaSeparator);
  const bool attached = at != std::string_view::npos && qualified.substr(at + 1).starts_with(kSchemaSeparator);
  return attached ? qualified.substr(0, at) : std::string_view();
}

/// "" for the default one.
inline std::string_view SchemaOfName(std::string_view qualified) {
  const size_t at = qualified.find(kSchemaSeparator);
  return at == std::string_view::npos ? std::string_view() : qualified.substr(0, at);
}

/// The name without its schema.
inline std::string BaseName(std::string_view qualified) {
  const size_t at = qualified.rfind(kSchemaSeparator);
  return std::string(at == std::string_view::npos ? qualified : qualified.substr(at + 1));
}

inline bool IsTemporaryName(std::string_view qualified) { return SchemaOfName(qualified) == kTemporarySchema; }
/// Of a table that no other rank sees: a temporary one, or one of an attached database.
inline bool IsOfOneRank(std::string_view qualified) {
  return IsTemporaryName(qualified) || !AttachedOfName(qualified).empty();
}

/// A text for the user, in which qualified names may stand: those of temporary tables alone, others with a dot.
inline std::string ShownName(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != kSchemaSeparator) {
      out += text[i];
    } else if (out.ends_with(kTemporarySchema)) {
      out.resize(out.size() - kTemporarySchema.size());
    } else if (i == 0 || text[i - 1] != kSchemaSeparator) {
      out += '.';
    }
  }
  return out;
}

}  // namespace tessera
