// Parquet files that statements have scanned in place, kept for the other sessions of the process and for their next statements:
// footer, columns, statistics and tablets. So a column that one session has encoded, or has brought to a GPU, is there for all.
//
// No file stays open. One that has changed or is gone is forgotten when it is asked for again, or when others take its place.
//
// Start at: KeptFiles::Find. Any thread.
#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tablet/catalog/table_info.h"
#include "tablet/file_chain.h"

namespace tessera {

/// Files as a table. Nothing of it changes.
struct TableInPlace {
  std::string key;  ///< FileSpec::Key(): how they are read
  std::vector<FileSource> sources;
  /// Its tablets are parts of the files, whose identities it has. Its identifier is that of one session.
  std::shared_ptr<const TableInfo> table;
};

class KeptFiles {
 public:
  /// That are kept at most; those that were used last stay.
  static constexpr size_t kMost = 64;

  /// nullptr: there is none of that key whose files are still these.
  std::shared_ptr<const TableInPlace> Find(const std::string& key, const std::vector<FileIdentity>& files);
  void Keep(std::shared_ptr<const TableInPlace> table);
  size_t tables() const;

 private:
  using Tables = std::list<std::shared_ptr<const TableInPlace>>;
  /// Takes what has the key out, to be freed without the lock.
  void TakeOut(const std::string& key, Tables* gone);

  mutable std::mutex mutex_;
  Tables tables_;  ///< the one that was used last comes first
};

}  // namespace tessera
