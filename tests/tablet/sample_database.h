// A small database with every encoding, all that a user can see of one as text, and catalogs whose checksums are made
// right again after somebody changed their rows: for tests and campaigns of damaged and hostile files.
//
// Start at: FillSampleDatabase, ContentsOf, CorrectChecksums, UseChunk. Any thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "tablet/chunk/chunk.h"
#include "tablet/chunk/chunk_encoder.h"
#include "tablet/database.h"
#include "tablet/values/types.h"

struct sqlite3;

namespace tessera {

/// Makes the database: table "t" with 1,000 rows in three tablets (numbers 1 to 3), and "small" with the keys 1 to 5 in
/// tablet 4. `seed` makes the values of another database differ.
Status FillSampleDatabase(const std::string& directory, int seed);

/// The types of t's columns.
std::vector<SqlType> SampleTypes();

/// Names, types, keys, statistics and values of all tables.
Result<std::string> ContentsOf(const std::string& directory, OpenMode mode);
Result<std::string> ContentsOf(Database* database);

/// Computes every checksum of a catalog from its rows, as tablet/FORMAT.md says, and stores it. REQUIRES: its tables
/// are there; values of a wrong type count as what SQLite makes of them.
void CorrectChecksums(sqlite3* catalog);

/// The chunks of a tablet file, for BuildTabletHeader(). REQUIRES: a good file.
std::vector<EncodedChunk> ChunksOfTablet(const std::string& bytes);

/// Uses every value and every entry of a chunk as its readers do.
void UseChunk(const Chunk& chunk);

std::string ReadWholeFile(const std::string& path);
/// A new file each time: ext4 waits for the disk when one that was truncated is closed.
void WriteNewFile(const std::string& path, std::string_view bytes);

}  // namespace tessera
