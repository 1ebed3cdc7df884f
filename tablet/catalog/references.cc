#include "tablet/catalog/references.h"

#include <memory>

namespace tessera {

Status CheckUnreferenced(const CatalogContents& contents, const TableSchema& table) {
  for (const auto& other : contents.tables) {
    if (other->schema.name == table.name) continue;
    for (const ForeignKey& key : other->schema.foreign_keys) {
      if (key.referenced != table.name) continue;
      return SqlError(ErrorKind::kDependentObjects,
                      "cannot drop table \"" + table.name + "\": foreign key \"" + key.name + "\" of table \"" +
                          other->schema.name + "\" refers to it",
                      -1, "DROP TABLE " + table.name + " CASCADE drops the foreign key, too.");
    }
  }
  return {};
}

Status CheckTruncates(const CatalogContents& contents, const std::set<int64_t>& tables) {
  for (const auto& other : contents.tables) {
    if (tables.contains(other->id)) continue;
    for (const ForeignKey& key : other->schema.foreign_keys) {
      const std::shared_ptr<const TableRecord> table = contents.Find(key.referenced);
      if (table == nullptr || !tables.contains(table->id)) continue;
      return SqlError(ErrorKind::kFeatureNotSupported,
                      "cannot truncate table \"" + key.referenced + "\": foreign key \"" + key.name + "\" of table \"" +
                          other->schema.name + "\" refers to it",
                      -1, "Truncate table " + other->schema.name + " at the same time, or write TRUNCATE ... CASCADE.");
    }
  }
  return {};
}

Status CheckReferences(const CatalogContents& contents, const TableSchema& table) {
  for (const ForeignKey& key : table.foreign_keys) {
    if (key.referenced == table.name || contents.Find(key.referenced) != nullptr) continue;
    return SqlError(ErrorKind::kUndefinedTable, "table \"" + key.referenced + "\" does not exist");
  }
  return {};
}

}  // namespace tessera
