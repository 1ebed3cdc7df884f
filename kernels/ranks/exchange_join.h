// Both sides of a join go to the ranks of their keys, device to device. Private to kernels/.
//
// Rows are cut into parts by bucket_plan.h, packed, and come to each rank one after the other, column by column: they
// are one packed result there, in the order of the ranks.
//
// Start at: JoinExchange::Agree, then Move. REQUIRES, of all functions: the device's mutex is held; all ranks call them
// together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/memory/gpu_device.h"
#include "kernels/ranks/rank_links.h"
#include "kernels/ranks/rank_texts.h"
#include "kernels/ranks/row_parts.h"
#include "kernels/rows/device_rows.h"
#include "kernels/rows/pack_rows.h"
#include "tablet/values/types.h"
#include "vm/rows/string_pool.h"
#include "vm/run/device.h"
#include "vm/shares/exchange.h"

namespace tessera::kernels {

/// The rows that this rank has made for one side, keys first.
struct JoinSide {
  const std::vector<SqlType>* columns = nullptr;
  DeviceRows* rows = nullptr;  ///< may be none
  /// Of the first kMaxSummaries columns, over this rank's rows; of a join table over those of all ranks.
  std::vector<ColumnSummary> summaries;
};

/// The rows that have come for one side, packed.
struct CameRows {
  RunBuffer memory;
  PackedRows packed;
  std::vector<uint64_t> of_rank;         ///< how many of each
  std::vector<ColumnSummary> summaries;  ///< over all ranks' rows
};

class JoinExchange {
 public:
  enum Which { kBuild, kProbe };
  /// `context`: of the section that probes the table. `keys`: how many.
  JoinExchange(GpuDevice* gpu, RankLinks* links, RankTexts* texts, const vm::SectionContext& context, size_t keys,
               std::array<JoinSide, 2> sides);

  /// Decides where rows go. `can`: this rank's rows are on its device. `spread_build`: see PlanBuckets. `mine`: an error of
  /// this rank, which then is that of all. false on all ranks: some cannot, or have too little room, and nothing has
  /// changed.
  tessera::Result<bool> Agree(Status mine, bool can, bool spread_build);
  /// Moves the rows, which are taken from the sides. REQUIRES: Agree returned true.
  Status Move();
  /// REQUIRES: Move.
  CameRows& came(Which side) { return came_[side]; }
  /// The same in columns of 64 bits, texts with this rank's identifiers.
  Status Unpack(Which side, DeviceRows* rows);
  bool has_texts(Which side) const;
  uint64_t spread() const { return plan_.spread; }
  /// Rows of this rank that went to others.
  uint64_t sent() const { return sent_; }

 private:
  /// What ranks tell each other first.
  struct Offer {
    uint64_t can = 0;
    uint64_t is_linked = 0;   ///< 1: it knows the way to the other devices
    uint64_t room = 0;        ///< in bytes
    uint64_t text_bytes = 0;  ///< that it has to tell, of texts in its rows
    uint64_t rows[2] = {};
    ColumnSummary columns[2][kMaxSummaries];
  };
  uint64_t RowsOf(const JoinSide& side) const { return side.rows == nullptr ? 0 : side.rows->rows(); }
  RowKeys KeysOf(const JoinSide& side) const { return kernels::KeysOf(*side.rows, *side.columns, keys_); }
  tessera::Result<Offer> OwnOffer(bool can);
  /// What is known of the columns of one side over all ranks.
  void MergeSummaries(const std::vector<Offer>& offers, Which side);
  KeyBuckets Buckets(uint64_t build_rows) const;
  tessera::Result<std::vector<uint32_t>> CountBuckets() const;
  /// Whether all ranks have room for what they would send and get.
  bool Fits(const std::vector<Offer>& offers, const std::array<std::vector<BucketRows>, 2>& rows) const;
  /// How many rows of each part this rank has; `lists`: them.
  tessera::Result<std::vector<uint32_t>> ListParts(Which side, RunBuffer* lists) const;
  /// Packs one side's rows, those that stay here into their place. `counts`: of all ranks, by part.
  Status Pack(Which side, const std::vector<std::vector<uint32_t>>& counts, const uint32_t* list);

  GpuDevice& gpu_;
  RankLinks& links_;
  RankTexts& texts_;
  vm::Exchange& exchange_;
  vm::StringPool& strings_;
  ThreadPool* const threads_;
  const size_t keys_, ranks_, own_;
  std::array<JoinSide, 2> sides_;
  KeyBuckets by_;
  BucketPlan plan_;
  std::vector<uint64_t> text_bytes_;  ///< by rank
  RunBuffer sent_memory_[2];
  std::vector<std::vector<DeviceBytes>> outgoing_, incoming_;
  std::array<CameRows, 2> came_;
  uint64_t sent_ = 0;
};

}  // namespace tessera::kernels
