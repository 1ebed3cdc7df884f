#include "session/older_tables.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "session/same_snapshot.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {

Status CannotSerialize(const std::string& changed) {
  return {ErrorKind::kSerializationFailure,
          "could not serialize access: another session has changed " + changed +
              " since this transaction's first statement",
          kTryAgain};
}

Result<Tables> OlderTables(const Snapshot& before, const Snapshot& now) {
  // (A table that was made, dropped or renamed is a change of names that statements are bound by. VACUUM makes another table of
  // the same name.)
  const auto name = [](const auto& table) { return std::string_view(table->schema.name); };
  if (!IsSameBesideTables(before, now) || !std::ranges::equal(before.tables, now.tables, {}, name, name))
    return CannotSerialize("the database");
  Tables older;
  for (size_t i = 0; i < before.tables.size(); ++i) {
    if (before.tables[i] != now.tables[i]) older.push_back(before.tables[i]);
  }
  return older;
}

std::shared_ptr<const Snapshot> WithOlder(std::shared_ptr<const Snapshot> now, const Tables& older) {
  if (older.empty()) return now;
  auto seen = std::make_shared<Snapshot>(*now);
  for (const auto& table : older) {
    const auto has_name = [&](const auto& t) { return t->schema.name == table->schema.name; };
    const auto at = std::ranges::find_if(seen->tables, has_name);
    if (at != seen->tables.end()) *at = table;
  }
  return seen;
}

Status CheckConflict(const std::string& table, const Snapshot& now, const Tables& older) {
  if (older.empty()) return {};
  std::set<std::string_view> joined = {table};
  for (size_t known = 0; known < joined.size();) {
    known = joined.size();
    for (const auto& t : now.tables) {
      for (const ForeignKey& key : t->schema.foreign_keys) {
        if (!joined.contains(t->schema.name) && !joined.contains(key.referenced)) continue;
        joined.insert(t->schema.name);
        joined.insert(key.referenced);
      }
    }
  }
  const auto found = std::ranges::find_if(older, [&](const auto& t) { return joined.contains(t->schema.name); });
  if (found == older.end()) return {};
  return CannotSerialize("table \"" + ShownName((*found)->schema.name) + "\"");
}

}  // namespace tessera
