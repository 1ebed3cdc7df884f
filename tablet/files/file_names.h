// The files of a database, by their names.
#pragma once

#include <string>

namespace tessera {

inline constexpr char kCatalogFile[] = "catalog.sqlite";

/// Whether a file of that name is a database's own.
bool IsDatabaseFile(const std::string& name);

}  // namespace tessera
