// Which table or view a name means: one of the session, or one of the database. Private to compiler/.
//
// Start at: RelationName. Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "compiler/parse/parse_tree.h"
#include "tablet/catalog/table_info.h"

namespace tessera {

/// Errors: a RangeVar node names a schema that there is not, or that can only be read.
Status CheckSchemaName(const ParseNode& range_var);
/// The qualified name of the table or view that a RangeVar node means: of a temporary table, which hides others, if there is
/// one and `temporary`. Errors: as CheckSchemaName.
Result<std::string> RelationName(const ParseNode& range_var, const Snapshot& snapshot, bool temporary = true);
/// The qualified name of a new table or view: of the session, if the node says so. Errors: as CheckSchemaName.
Result<std::string> NewRelationName(const ParseNode& range_var);
/// The same as RelationName of a name alone.
std::string RelationName(std::string_view name, const Snapshot& snapshot);
/// ... and of an object of DROP.
Result<std::string> NameOfDropped(const ParseNode& object, const Snapshot& snapshot);

}  // namespace tessera
