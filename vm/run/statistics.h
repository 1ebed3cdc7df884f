// What a run measures: of each section, of each rank, of the whole statement.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/phase_clock.h"
#include "vm/program/program.h"

namespace tessera::vm {

/// A join of a section, and how many rows are left after it and its conditions.
struct JoinedRows {
  std::string table;  ///< the label of the section that built the join table
  uint64_t rows = 0;
  double milliseconds = 0;  ///< the section's time since the join before it; 0 if not measured
};

/// Statistics of one section. vm/program/section_statistics.def lists the fields and their meaning. Times are milliseconds.
struct SectionStatistics {
#define STATISTIC(Merging, Type, Name) Type Name{};
#include "vm/program/section_statistics.def"
#undef STATISTIC
};

/// What one rank spent on one section.
struct SectionAccount {
  int section = 0;
  uint64_t rows_in = 0, rows_out = 0, tablets = 0, bytes_read = 0;
  Account account;
};

/// Where one rank spent its time in one statement, and how much it moved. Without ranks there is only rank 0. Times are
/// milliseconds.
struct RankStatistics {
  int rank = 0;
  int threads = 0;
  std::string host;                ///< the machine's name
  std::string device;              ///< the GPU's name if a section ran there, else "host"
  uint64_t rows_scanned = 0;       ///< of stored tables
  uint64_t rows_out = 0;           ///< master: rows of the result; others: rows and groups sent to another rank
  uint64_t tablets = 0;            ///< tablets that the rank scanned, at least in part
  uint64_t bytes_read = 0;         ///< encoded bytes of the columns read
  uint64_t bytes_transferred = 0;  ///< to the GPU
  uint64_t bytes_sent = 0, bytes_received = 0;  ///< between ranks; without tablets and statistics
  uint64_t bytes_scattered = 0;                 ///< tablets: received from the master; master: sent
  uint64_t memory_peak = 0;                     ///< the most bytes that the process had allocated at a time
  uint64_t temporary_peak = 0;                  ///< the most bytes of temporary files at a time
  /// The master: from the statement's text to its end; others: from the command to run to the report. It is the sum of
  /// the account's phases.
  double total = 0;
  Account account;                       ///< of the thread that drives the statement
  std::vector<SectionAccount> sections;  ///< by number; the rest of `account` belongs to none
  // Work beside that thread, which overlaps its phases:
  double read_work = 0;      ///< opening, checking and encoding tablets, summed over the threads
  double transfer_work = 0;  ///< until copies to the GPU were on their way
  double kernel_work = 0;    ///< kernels, on the GPU's clock
  // For a timeline, if ClusterQuery::trace or SessionOptions::trace ask for one:
  std::vector<PhaseSpan> spans;
  int64_t agreed = 0;  ///< when the rank knew that all had the program; the same moment on all ranks, but for a message
};
/// Sets the times and the traffic to what the clock has measured up to now.
void TakeAccounts(PhaseClock* clock, RankStatistics* rank);

struct RunStatistics {
  std::vector<SectionStatistics> sections;  ///< across ranks: merged as section_statistics.def says
  RankStatistics mine;
  std::vector<RankStatistics> ranks;  ///< by rank; filled by the caller that knows the other ranks
  /// Ranks that scanned nothing, although a stored table had a tablet for each of them; 0 without ranks.
  uint64_t idle_portions = 0;
};

}  // namespace tessera::vm
