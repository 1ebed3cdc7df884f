// Group commit: sessions of one process that insert a few rows each at the same time share a commit, and with it a sync.
//
// The first one is the leader. While it waits for the writer lock, which others may have, and while it commits, more rows are left
// here; the next leader takes all that are for one table into one change. Of INSERTs of values alone: none depends on another, as
// they read nothing but keys. A change is there as a whole or not at all, so each INSERT is; it is acknowledged after the
// commit, and no reader, of any process, sees what is not on the disk. There are no locks and no records but those of one INSERT.
//
// Where a row of the group is refused, or the leader is cancelled, each of them runs alone, and has the message that it would have
// had. Where the disk fails, all have failed. (The other way, to write upon a record that the disk does not have yet, would save a
// sync for UPDATE and DELETE, too. Then such a record has to be kept from every reader, from the errors of those that
// wrote upon it, from the removal of files and from the other processes, and to be undone in all sessions if the sync fails.)
//
// Start at: InsertQueue::Store. Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"

namespace tessera {

class Database;
class TableWriter;
struct RowBatch;
struct TableInfo;
struct TableSchema;

class InsertQueue {
 public:
  /// More rows are no small change.
  static constexpr size_t kMostRows = 4096;

  struct Insert {
    Database* database;  ///< of the session: a leader uses its own
    std::string table;
    int64_t table_id;
    const TableSchema* schema;  ///< for which the rows were made
    const RowBatch* rows;       ///< as they are stored: of that schema, and no constraint but a key refuses them
    const std::atomic<bool>* cancel;
    std::chrono::milliseconds patience;  ///< how long its database waits for a lock
  };
  /// Stores the rows, by this thread or by another. False: nothing was done, and the INSERT is to run alone. Errors: those of the commit;
  /// kBusy; kCancelled. `*warning`: what is in doubt about the commit, or nothing.
  Result<bool> Store(const Insert& insert, std::string* warning);

 private:
  enum class State { kWaiting, kTaken, kAlone, kDone };
  struct Entry {
    const Insert* insert = nullptr;
    const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    State state = State::kWaiting;
    bool fits = true;     ///< the table is still the one for which its rows were made
    Status status;        ///< kDone
    std::string warning;  ///< likewise
  };
  /// The INSERTs into a database.
  struct Line {
    std::vector<Entry*> waiting;  ///< in the order in which they came
    bool has_leader = false;
  };
  /// Commits the entry with those for the same table. REQUIRES: the lock is held, and `own` waits in the line.
  void Lead(Line* line, Entry* own, std::unique_lock<std::mutex>* lock);
  /// Takes those for the table of `own`, which is the first.
  static std::vector<Entry*> TakeGroup(Line* line, Entry* own);
  static Status Commit(const std::vector<Entry*>& group, const TableInfo* table, TableWriter* writer);
  /// Ends those that have waited as long as they may.
  static void EndWaiting(Line* line, const Status& status);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Line> lines_;  ///< by the database's directory
};

}  // namespace tessera
