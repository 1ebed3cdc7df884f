// The tablets of a rank that has no catalog: opened in the database's directory if the rank sees it, otherwise received
// from the master and kept for the session. Private to mpi/.
//
// Start at: TableTeller (master), RankTablets::Update (others). One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "mpi/messages.h"
#include "tablet/catalog/table_info.h"
#include "tablet/files/tablet.h"
#include "tablet/files/tablet_file.h"
#include "tablet/values/types.h"

namespace tessera {

/// No file of a tablet is larger.
inline constexpr uint64_t kGreatestTablet = uint64_t{1} << 46;

/// What other ranks need to know of the tables that the program reads.
class TableTeller {
 public:
  /// A table of which they have been told all is there with its id alone. Errors: kSql, a table is not in the snapshot.
  Result<TablesMessage> Describe(const vm::Program& program, const Snapshot& snapshot) const;
  /// All ranks have got that message, and have used it.
  void NoteTold(const vm::Program& program, const Snapshot& snapshot);
  /// Some may not know what they were told.
  void Clear() { told_.clear(); }

 private:
  std::map<int64_t, int64_t> told_;  ///< versions, by id
};

/// What decides which tablets a rank needs.
struct RankShare {
  int rank = 0, ranks = 1;
  uint64_t replicate_below = 0;
  bool use_gpu = false;  ///< sections may run on GPUs, which read small tables whole
};

class RankTablets {
 public:
  /// Begins anew with this directory: forgets all tables and tablets.
  void Open(std::string directory, bool scattered);
  /// Makes the snapshot for the executor from the master's message. `wanted` gets the tablets of this rank's portion
  /// that are not here yet, in the order of their tables in the program and of their places in these. Keep must add them
  /// before a program runs. Errors: kCorrupt, the message does not say what the (verified) program needs to know.
  Result<std::shared_ptr<const Snapshot>> Update(const TablesMessage& message, const vm::Program& program,
                                                 const RankShare& share, std::vector<WantedTablet>* wanted);
  /// Room for a tablet's bytes: in memory up to `memory` bytes in all, otherwise in a file without a name. Errors:
  /// kResource.
  Result<uint8_t*> MakeRoom(const TabletIdentity& identity, uint64_t memory);
  /// Takes over the bytes that MakeRoom returned, now filled. Returns the tablet, or nullptr if others of its files lack.
  std::shared_ptr<const Tablet> Keep(const WantedTablet& wanted, const uint8_t* bytes);

 private:
  struct Table {
    TableMessage message;                   ///< that `info` was made of
    std::shared_ptr<const TableInfo> info;  ///< nullptr: nothing is known yet
    std::shared_ptr<const std::vector<SqlType>> types;
    std::map<int64_t, std::shared_ptr<const Tablet>> tablets;    ///< that are here, by tablet id
    std::map<int64_t, std::shared_ptr<const TabletFile>> files;  ///< of these and of others, by the id in their headers
    bool has_all = false;                                        ///< all tablets are
  };

  /// The table as it is told, or has been; nullptr: it has not.
  const TableMessage* Told(const TableMessage& table) const;
  /// Tablet `number` of the table, if all of its files are here, or can be opened; else nullptr.
  std::shared_ptr<const Tablet> Find(Table* known, size_t number) const;
  /// Makes the table anew, with those tablets that are here.
  void Learn(const TableMessage& table, Table* known);

  std::string directory_;
  bool scattered_ = false;
  std::map<int64_t, uint64_t> in_memory_;  ///< bytes of the tablets that are in memory, by tablet id
  std::map<int64_t, Table> tables_;
};

}  // namespace tessera
