// A rank's share of a COPY: find out whether all ranks see the same directory and file, count a part of the file, make
// tablets of some of its rows. The master then commits those of all. Private to mpi/; PROTOCOL.md lists the messages.
//
// Start at: RankLoad::CanStart. One thread, the one that joined; all ranks make the same calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "mpi/messenger.h"
#include "mpi/mpi_exchange.h"
#include "tablet/load/shared_load.h"

namespace tessera {

class RankLoad {
 public:
  /// Between the exchange's Begin() and End(). `load` has this rank's directory and threads. `cancel` may be nullptr.
  RankLoad(Messenger* messenger, MpiExchange* exchange, const SharedLoad& load, const std::atomic<bool>* cancel);

  /// Whether all ranks find the same file, and can write into the one directory. `file`: what this rank found, or nullptr.
  bool CanStart(const SharedFile* file);
  /// Counts and finds this rank's share. Errors: the same on all ranks.
  Status Plan(SharedFile* file);
  // After Plan(): rows of the new tablets, and the tablets of rank `rank`.
  uint32_t tablet_rows() const { return tablet_rows_; }
  uint64_t rows() const { return rows_; }
  uint64_t FirstTablet(int rank) const;
  /// Rows of the file that are in the tablets before that one.
  uint64_t RowsBefore(uint64_t tablet) const;
  /// Reads this rank's share and makes its tablets. Errors: the same on all ranks.
  Status Make(SharedFile* file, TabletCutter* cutter);
  /// Whether these are the tablets that rank `rank` had to make.
  bool AreOf(int rank, const NewTablets& tablets) const;

 private:
  /// Calls `work` on another thread; meanwhile this one hears of errors of other ranks. Errors: that of `work`.
  Status WhileListening(const std::function<Status()>& work);
  uint64_t Tablets() const { return (load_.short_rows + rows_ + tablet_rows_ - 1) / tablet_rows_; }
  std::string ProbePath(int rank) const;

  Messenger& messenger_;
  MpiExchange& exchange_;
  const SharedLoad& load_;
  const std::atomic<bool>* const cancel_;
  std::atomic<bool> stop_{false};
  uint64_t rows_ = 0;  ///< of the file
  uint32_t tablet_rows_ = 0;
};

}  // namespace tessera
