#include "kernels/join/join_partitions.h"

#include <algorithm>
#include <utility>

#include "vm/rows/row_set.h"

namespace tessera::kernels {
namespace {

/// Rows whose keys say where to cut: this many, but no fewer than kSampledRowsPerPart for each partition.
constexpr uint64_t kSampledRows = 1 << 16, kSampledRowsPerPart = 256;
/// How full partitions are meant to be, in sixteenths: a sample gives their sizes to some percent.
constexpr uint64_t kFilled = 14;
constexpr size_t kMostParts = 1 << 14;

using vm::Instruction;
using vm::Opcode;
using vm::Operand;
using vm::OperandKind;
using vm::RowSet;
using vm::Section;

/// The values of a column in `count` rows that are spread evenly, sorted.
std::vector<int64_t> Sample(const std::vector<RowSet>& rows, uint64_t total, size_t column, uint64_t count) {
  std::vector<int64_t> sample;
  sample.reserve(count);
  uint64_t before = 0;  // rows of earlier pieces
  size_t piece = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t row =
        static_cast<uint64_t>(static_cast<double>(i) / static_cast<double>(count) * static_cast<double>(total));
    while (row - before >= rows[piece].rows) before += rows[piece++].rows;
    sample.push_back(rows[piece].columns[column].low[row - before]);
  }
  std::sort(sample.begin(), sample.end());
  return sample;
}

size_t Different(std::vector<int64_t> sorted) {
  return static_cast<size_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
}

/// Where all partitions but the first begin, so that each gets about the same number of the sample.
std::vector<int64_t> Bounds(const std::vector<int64_t>& sample, size_t parts) {
  std::vector<int64_t> bounds;
  for (size_t p = 1; p < parts; ++p) {
    const int64_t v = sample[p * sample.size() / parts];
    if (v != sample[0] && (bounds.empty() || v != bounds.back())) bounds.push_back(v);
  }
  return bounds;
}

/// The rows of one piece that a worker has.
std::pair<uint64_t, uint64_t> ShareOf(const RowSet& rows, size_t worker, size_t workers) {
  return {rows.rows * worker / workers, rows.rows * (worker + 1) / workers};
}

Status TooManyOfOneKey(uint64_t rows) {
  return {ErrorCode::kResource,
          "a join table of " + std::to_string(rows) +
              " rows does not fit the GPU, nor do parts of it: too many rows have the same key",
          "Give --gpu-memory more, or use --device host."};
}

/// Cuts the rows of a join table: finds where, counts, and moves them.
class RowCutter {
 public:
  RowCutter(std::vector<RowSet>* rows, const Section& builder, ThreadPool* pool)
      : rows_(*rows), builder_(builder), pool_(pool), workers_(Workers(pool)), part_of_(rows->size()) {
    for (const RowSet& r : rows_) total_ += r.rows;
  }

  tessera::Result<JoinPartitions> Run(uint64_t most_rows) {
    if (builder_.keys > 1) ChooseKey();
    TESSERA_TRY(FindBounds(most_rows));
    PlaceParts();
    out_.rows = vm::MakeRowSet(builder_.columns);
    out_.rows.rows = total_;
    for (size_t c = 0; c < builder_.columns.size(); ++c) TESSERA_TRY(MoveColumn(c));
    TESSERA_TRY(ForEach(pool_, out_.parts.size(), [&](size_t p) {
      out_.parts[p].columns = Summarize(out_.rows, out_.parts[p].first, out_.parts[p].rows);
      return Status::Ok();
    }));
    return std::move(out_);
  }

 private:
  std::vector<int64_t> SampleOf(size_t key, uint64_t count) const {
    return Sample(rows_, total_, key, std::min(total_, count));
  }

  /// The key with the most different values.
  void ChooseKey() {
    size_t most = 0;
    for (size_t k = 0; k < static_cast<size_t>(builder_.keys); ++k) {
      const size_t different = Different(SampleOf(k, kSampledRows));
      if (different > most) out_.key = k;
      most = std::max(most, different);
    }
  }

  /// Cuts, counts, and cuts into more partitions if one has become too large.
  Status FindBounds(uint64_t most_rows) {
    const uint64_t filled = most_rows * kFilled;
    for (size_t wanted = std::max<uint64_t>(2, (total_ * 16 + filled - 1) / filled);; wanted *= 2) {
      const size_t had = bounds_.size();
      if (wanted > kMostParts) return TooManyOfOneKey(total_);
      bounds_ = Bounds(SampleOf(out_.key, std::max<uint64_t>(kSampledRows, wanted * kSampledRowsPerPart)), wanted);
      if (bounds_.size() == had) return TooManyOfOneKey(total_);
      TESSERA_TRY(Count());
      if (LargestPart() <= most_rows) return Status::Ok();
    }
  }

  /// The part of each row, and how many rows each worker has for each part.
  Status Count() {
    const size_t parts = bounds_.size() + 1;
    counts_.assign(rows_.size(), std::vector<std::vector<uint64_t>>(workers_, std::vector<uint64_t>(parts)));
    for (size_t piece = 0; piece < rows_.size(); ++piece) part_of_[piece].resize(rows_[piece].rows);
    return ForWorkers(pool_, [&](size_t worker) {
      for (size_t piece = 0; piece < rows_.size(); ++piece) {
        const auto [first, end] = ShareOf(rows_[piece], worker, workers_);
        for (uint64_t i = first; i < end; ++i) {
          const auto part =
              std::upper_bound(bounds_.begin(), bounds_.end(), rows_[piece].columns[out_.key].low[i]) - bounds_.begin();
          part_of_[piece][i] = static_cast<uint16_t>(part);
          ++counts_[piece][worker][static_cast<size_t>(part)];
        }
      }
      return Status::Ok();
    });
  }

  /// Fills in how many rows each part has, and returns the most.
  uint64_t LargestPart() {
    out_.parts.assign(bounds_.size() + 1, {});
    uint64_t largest = 0;
    for (size_t p = 0; p < out_.parts.size(); ++p) {
      for (const auto& piece : counts_) {
        for (const auto& c : piece) out_.parts[p].rows += c[p];
      }
      largest = std::max(largest, out_.parts[p].rows);
    }
    return largest;
  }

  /// Where each part is. From here on counts say where the next row of each piece and worker goes.
  void PlaceParts() {
    uint64_t at = 0;
    for (size_t p = 0; p < out_.parts.size(); ++p) {
      JoinPartition& part = out_.parts[p];
      if (p > 0) part.low = bounds_[p - 1];
      if (p < bounds_.size()) part.high = bounds_[p] - 1;
      part.first = at;
      for (auto& piece : counts_) {
        for (auto& c : piece) at += std::exchange(c[p], at);
      }
    }
  }

  Status MoveColumn(size_t c) {
    vm::RowColumn& to = out_.rows.columns[c];
    to.low.resize(total_);
    const auto any = [&](auto has) { return std::any_of(rows_.begin(), rows_.end(), has); };
    const bool wide = any([&](const RowSet& r) { return !r.columns[c].high.empty(); });
    const bool nulls = any([&](const RowSet& r) { return !r.columns[c].null.empty(); });
    if (wide) to.high.resize(total_);
    if (nulls) to.null.resize(total_);
    TESSERA_TRY(ForWorkers(pool_, [&](size_t worker) {
      for (size_t piece = 0; piece < rows_.size(); ++piece) {
        const vm::RowColumn& from = rows_[piece].columns[c];
        std::vector<uint64_t> next = counts_[piece][worker];
        const auto [first, end] = ShareOf(rows_[piece], worker, workers_);
        for (uint64_t i = first; i < end; ++i) {
          const uint64_t row = next[part_of_[piece][i]]++;
          to.low[row] = from.low[i];
          if (wide) to.high[row] = from.high[i];
          if (nulls) to.null[row] = from.null.empty() ? 0 : from.null[i];
        }
      }
      return Status::Ok();
    }));
    for (RowSet& r : rows_) r.columns[c] = {};
    return Status::Ok();
  }

  std::vector<RowSet>& rows_;
  const Section& builder_;
  ThreadPool* const pool_;
  const size_t workers_;
  uint64_t total_ = 0;  ///< rows
  std::vector<int64_t> bounds_;
  std::vector<std::vector<uint16_t>> part_of_;              ///< by piece and row
  std::vector<std::vector<std::vector<uint64_t>>> counts_;  ///< by piece, worker and part
  JoinPartitions out_;
};

}  // namespace

tessera::Result<JoinPartitions> CutJoin(std::vector<RowSet> rows, const Section& builder, uint64_t most_rows,
                                        ThreadPool* pool) {
  return RowCutter(&rows, builder, pool).Run(most_rows);
}

std::vector<ColumnSummary> Summarize(const RowSet& rows, uint64_t first, uint64_t count) {
  std::vector<ColumnSummary> out(std::min<size_t>(rows.columns.size(), kMaxSummaries));
  for (size_t c = 0; c < out.size(); ++c) {
    const vm::RowColumn& column = rows.columns[c];
    for (uint64_t i = first; i < first + count; ++i) {
      if (!column.null.empty() && column.null[i] != 0) {
        ++out[c].nulls;
        continue;
      }
      out[c].low = std::min(out[c].low, column.low[i]);
      out[c].high = std::max(out[c].high, column.low[i]);
    }
  }
  return out;
}

tessera::Result<PassPlan> PlanPasses(const vm::Program& program, int section, const vm::SectionTraits& traits,
                                     const vm::ProbeTrait& probe, const JoinPartitions& parts) {
  const Section& s = program.sections[static_cast<size_t>(section)];
  PassPlan plan;
  plan.join = probe.join;
  if (!vm::IsOuter(probe.form) && vm::DropsForGood(s, probe)) return plan;
  plan.filtered = true;
  const int slot = traits.SlotOfKey(probe.key, probe.keys, parts.key);
  if (slot < 0 || IsWide(s.slots[static_cast<size_t>(slot)].type)) {
    return Status(ErrorCode::kResource,
                  "a join table of " + std::to_string(parts.rows.rows) +
                      " rows does not fit the GPU, and it cannot be joined in parts: rows without a match stay, and "
                      "the key is computed, has 128 bits or comes from another join",
                  "Give --gpu-memory more, or use --device host.");
  }
  plan.slot = static_cast<uint16_t>(slot);
  return plan;
}

uint32_t AddPartFilter(int section, const PassPlan& plan, const JoinPartition& part, vm::Program* program) {
  Section& s = program->sections[static_cast<size_t>(section)];
  const auto constant = [&](int64_t v) {
    program->constants.push_back(Value::Int(SqlType::Of(TypeId::kBigint), v));
    return Operand::Constant(static_cast<int>(program->constants.size()) - 1).Pack();
  };
  std::vector<Instruction> code;
  const auto emit = [&](Opcode op, int p1, int32_t p2) { code.push_back({op, static_cast<uint16_t>(p1), p2, 0, 0}); };
  const int all = s.masks, inside = s.masks + 1;
  const bool with_nulls = part.low == INT64_MIN;
  if (with_nulls) emit(Opcode::MaskSave, all, 0);
  emit(Opcode::Load, 0, Operand::Slot(plan.slot).Pack());
  if (!with_nulls) emit(Opcode::FilterGeI, 0, constant(part.low));
  if (part.high != INT64_MAX) emit(Opcode::FilterLeI, 0, constant(part.high));
  if (with_nulls) {
    emit(Opcode::MaskSave, inside, 0);
    emit(Opcode::MaskLoad, all, 0);
    emit(Opcode::FilterNull, 0, 0);
    emit(Opcode::MaskOr, inside, 0);
    emit(Opcode::MaskLoad, inside, 0);
    s.masks += 2;
  }
  for (Instruction& in : s.code) {
    const bool jumps = in.op == Opcode::SkipIfNone || in.op == Opcode::Next || in.op == Opcode::NextOuter;
    if (jumps) in.p2 += static_cast<int32_t>(code.size());
  }
  s.code.insert(s.code.begin(), code.begin(), code.end());
  return static_cast<uint32_t>(code.size());
}

}  // namespace tessera::kernels
