// The files of a database, by their names.
#pragma once

#include <string>

namespace tessera {

inline constexpr char kCatalogFile[] = "catalog.sqlite";
inline constexpr char kCommitLogFile[] = "commit.log";
/// Of a temporary database, whose catalog is no file: locked as long as its process lives.
inline constexpr char kOwnerFile[] = "owner.lock";

/// Whether a file of that name is a database's own.
bool IsDatabaseFile(const std::string& name);

}  // namespace tessera
