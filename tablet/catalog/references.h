// Which foreign keys refer to a table: the rules that hold for the catalog as a whole.
//
// Start at: CheckUnreferenced. Private to tablet/. Pure functions; any thread.
#pragma once

#include <set>
#include <string>

#include "base/status.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_record.h"

namespace tessera {

/// Before a table is dropped, or another one takes its place. Errors: a foreign key of another table refers to it.
Status CheckUnreferenced(const CatalogContents& contents, const TableSchema& table);
/// Before the tables of these identifiers lose their rows. Errors: a table that is not among them refers to one.
Status CheckTruncates(const CatalogContents& contents, const std::set<int64_t>& tables);
/// Before a table is made. Errors: it refers to one that is not there.
Status CheckReferences(const CatalogContents& contents, const TableSchema& table);

}  // namespace tessera
