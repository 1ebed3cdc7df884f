// Tables, views and macros as the SQL that makes them: .schema of the shell, sqlite_master.
//
// Start at: CreateTableText. Pure functions; any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tablet/catalog/macro.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"
#include "tablet/catalog/view.h"
#include "tablet/values/enum_type.h"

namespace tessera {

/// `CREATE TABLE ...;` over several lines, ending with a newline.
std::string CreateTableText(const TableSchema& schema);

/// The same with its sequences, what its columns have of them, and comments: `without_keys`, without its foreign keys.
std::string WholeTableText(const TableInfo& table, const CatalogNames& names, bool without_keys);

/// The tables so, each after those that its foreign keys refer to; where these go in a circle, keys are added at the end.
std::string CreateTablesText(std::vector<const TableInfo*> tables, const CatalogNames& names);

/// `CREATE SEQUENCE ...;`, a line.
std::string CreateSequenceText(const Sequence& sequence);
/// `SELECT setval(...);`, a line: the values that it has given.
std::string SetSequenceText(const Sequence& sequence);

/// "NO ACTION" and the like.
std::string_view ActionText(ForeignKey::Action action);
/// `REFERENCES t (c) ON DELETE CASCADE`.
std::string ReferencesText(const ForeignKey& key);

/// `ALTER TABLE t ADD CONSTRAINT k FOREIGN KEY ...;`, a line.
std::string AddForeignKeyText(const TableSchema& schema, const ForeignKey& key);

/// `CREATE MACRO ...;`, a line.
std::string CreateMacroText(const Macro& macro);

/// `CREATE VIEW ...;`, ending with a newline.
std::string CreateViewText(const ViewSchema& view);

/// A view, a macro, or another thing in the catalog.
struct SchemaEntry {
  std::string name;
  std::string text;                                  ///< that makes it
  std::shared_ptr<const TableInfo> table = nullptr;  ///< WholeSchema: the table that it is
};

/// Views, materialised views and macros, each after those that its text names, else in this order, by their names.
std::vector<SchemaEntry> InOrderOfUse(const Views& views, const std::vector<const TableInfo*>& materialized,
                                      const std::vector<Macro>& macros, const CatalogNames& names);

/// `CREATE TYPE ...;`, a line.
std::string CreateTypeText(const EnumType& type);

/// All that a catalog has, but for what is temporary, each after what its text names; else schemas, types, sequences, tables,
/// views, macros. Tables are without their foreign keys, which may go in a circle.
std::vector<SchemaEntry> WholeSchema(const Snapshot& snapshot);

/// `name` as SQL needs it: in double quotes unless it is a plain lower-case word that is not reserved. A qualified name is
/// schema.name.
std::string QuotedName(std::string_view name);

/// 'text', with quotes doubled.
std::string QuotedText(std::string_view text);

}  // namespace tessera
