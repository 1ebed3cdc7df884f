// The join tables that one run has on the host. Private to vm/.
//
// Start at: Add. Filled between sections, by the thread of the run; read by its workers.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "vm/encode/section_encoder.h"
#include "vm/program/program.h"
#include "vm/program/section_traits.h"
#include "vm/sinks/join_index.h"

namespace tessera::vm {

class HostJoins {
 public:
  /// None of the program's join tables is there yet. `pool`: makes the indexes.
  HostJoins(const Program& program, const ProgramTraits& traits, ThreadPool* pool)
      : program_(program),
        traits_(traits),
        pool_(pool),
        indexes_(program.joins.size()),
        key_ranges_(program.joins.size()),
        kept_(program.joins.size()) {}

  /// Indexes the rows of a join table, whose first `keys` columns are the keys. Errors: kResource, too many rows.
  Status Add(int join, RowSet rows, int keys) {
    auto index = std::make_unique<JoinIndex>();
    TESSERA_TRY(index->Finish(std::move(rows), keys, JoinIndex::OnlyKeysMatter(program_, traits_, join),
                              program_.joins[static_cast<size_t>(join)].selective, pool_));
    key_ranges_[static_cast<size_t>(join)] = index->key_range();
    indexes_[static_cast<size_t>(join)] = std::move(index);
    return Status::Ok();
  }
  /// What predicates take for the least and greatest key, if other ranks have rows, too.
  void SetKeyRange(int join, const KeyRange& range) { key_ranges_[static_cast<size_t>(join)] = range; }
  /// Keeps the rows of a join table that is probed elsewhere, until Index. (An index of a hundred rows whose keys lie far
  /// apart takes 2 ms.)
  void Keep(int join, RowSet rows, int keys) { kept_[static_cast<size_t>(join)] = {std::move(rows), keys}; }
  /// Indexes rows that were kept, if that has not been done. REQUIRES: Has(join). Errors: as Add.
  Status Index(int join) {
    std::optional<Kept>& kept = kept_[static_cast<size_t>(join)];
    if (!kept) return Status::Ok();
    Kept rows = std::move(*kept);
    kept.reset();
    return Add(join, std::move(rows.rows), rows.keys);
  }
  /// The rows of a join table, which is not there any more. REQUIRES: Has(join).
  RowSet Take(int join) {
    std::optional<Kept>& kept = kept_[static_cast<size_t>(join)];
    RowSet rows = kept ? std::move(kept->rows) : indexes_[static_cast<size_t>(join)]->Release();
    kept.reset();
    indexes_[static_cast<size_t>(join)].reset();
    return rows;
  }
  bool Has(int join) const {
    return indexes_[static_cast<size_t>(join)] != nullptr || kept_[static_cast<size_t>(join)];
  }
  /// REQUIRES: Has(join), and Index(join) if the rows were kept.
  const RowSet& rows(int join) const { return indexes_[static_cast<size_t>(join)]->rows(); }

  // By number of the join table.
  const std::vector<std::unique_ptr<JoinIndex>>& indexes() const { return indexes_; }  ///< nullptr if not there
  const std::vector<KeyRange>& key_ranges() const { return key_ranges_; }

 private:
  struct Kept {
    RowSet rows;
    int keys = 0;
  };

  const Program& program_;
  const ProgramTraits& traits_;
  ThreadPool* const pool_;
  std::vector<std::unique_ptr<JoinIndex>> indexes_;
  std::vector<KeyRange> key_ranges_;
  std::vector<std::optional<Kept>> kept_;
};

}  // namespace tessera::vm
