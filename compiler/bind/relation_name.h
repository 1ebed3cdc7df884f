// Which table, view or sequence a name means: one of the session, or one of a schema of the database. Private to compiler/.
//
// Start at: RelationName. Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/parse/parse_tree.h"
#include "compiler/query/dependencies.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// The schema as qualified names have it: "" for the default one. Nothing: there is none of that name.
std::optional<std::string> FindSchema(std::string_view schema, const Snapshot& snapshot);
Status SchemaNotFound(std::string_view schema, int position, const Snapshot& snapshot);
/// Whether the default schema is called so: "main", as in DuckDB and SQLite, and "public", as in PostgreSQL.
bool IsDefaultSchema(std::string_view schema);

/// The qualified name of the table, view or sequence that a RangeVar node means. `temporary`: it may be a temporary table, which
/// hides others. `by_path`: a name alone is looked for in the session's path, and not in the default schema. Errors: its schema
/// is not there, or can only be read.
Result<std::string> RelationName(const ParseNode& range_var, const Snapshot& snapshot, bool temporary = true,
                                 bool by_path = true);
/// The same of what is only read: also a table of an attached database.
Result<std::string> ReadRelationName(const ParseNode& range_var, const Snapshot& snapshot, bool temporary,
                                     bool by_path);
/// The qualified name of a new table or view: of the session, if the node says so. Errors: as RelationName.
Result<std::string> NewRelationName(const ParseNode& range_var, const Snapshot& snapshot);
/// The same as RelationName of a name alone.
std::string RelationName(std::string_view name, const Snapshot& snapshot);
/// ... of names that a dot parts. Errors: as above.
Result<std::string> NameOfParts(std::vector<std::string_view> parts, const Snapshot& snapshot);
/// ... of an object of DROP, a list of names.
Result<std::string> NameOfDropped(const ParseNode& object, const Snapshot& snapshot);
/// ... of a text like 'public.t' or '"My table"', as a regclass has it. nullptr: a name alone is of the default schema.
std::string NameOfText(std::string_view text, const Snapshot* snapshot);
/// The error of a statement that would change `name`, a table of an attached database.
Status AttachedIsRead(std::string_view database, int position);
/// The names of a path that commas part, as set_config has it.
std::vector<std::string> NamesOfPath(std::string_view text);
/// The text of a qualified name that NameOfText() reads.
std::string TextOfName(std::string_view qualified);

/// `text`, which begins at `offset` of what was bound, with the schemas of `names` written before them, so that it means the
/// same in sessions with another path. Errors: kUnsupported, a name is not where it was read.
Result<std::string> WithSchemas(std::string_view text, int offset, const std::vector<Dependencies::Name>& names);

}  // namespace tessera
