// Rows to the consumer, batch by batch.

#include "vm/run/row_stream.h"

#include <algorithm>
#include <span>

#include "base/clock.h"
#include "base/phase_clock.h"
#include "vm/run/row_marks.h"
#include "vm/shares/portion.h"

namespace tessera::vm {

RowStream::RowStream(const RunState& state, const Section& s, const RowConsumer& consume)
    : state_(state),
      section_(s),
      consume_(consume),
      batch_rows_(RowsByWidth(kBatchRows, s)),
      skip_(static_cast<uint64_t>(s.after.offset)),
      left_(s.after.limit < 0 ? UINT64_MAX : static_cast<uint64_t>(s.after.limit)),
      batch_(MakeRowSet(s.columns)) {}

Status RowStream::Add(const RowSet& rows, size_t first, uint64_t count) {
  const uint64_t skipped = std::min(skip_, count), taken = std::min(count - skipped, left_);
  skip_ -= skipped;
  left_ -= taken;
  streamed_ += taken;
  if (taken == 0) return Status::Ok();
  if (taken >= batch_rows_) {  // without a copy
    TESSERA_TRY(Flush());
    return Forward(rows, first + skipped, taken);
  }
  AppendRange(&batch_, rows, first + skipped, taken);
  return batch_.rows >= batch_rows_ ? Flush() : Status::Ok();
}

Status RowStream::Flush() {
  TESSERA_TRY(Forward(batch_, 0, batch_.rows));
  batch_ = MakeRowSet(section_.columns);
  return Status::Ok();
}

Status RowStream::Forward(const RowSet& rows, size_t first, size_t count) {
  const PhaseScope phase(Phase::kPrint);
  const auto start = Clock::now();
  if (RowMarks* const marks = state_.options.marks; marks != nullptr) {
    if (state_.IsCancelled()) return Cancelled();
    TESSERA_TRY(marks->Take(std::span<const int64_t>(rows.columns[0].low).subspan(first, count)));
    milliseconds_ += MillisecondsSince(start);
    return Status::Ok();
  }
  for (size_t at = 0; at < count; at += batch_rows_) {
    if (state_.IsCancelled()) return Cancelled();
    TESSERA_ASSIGN(RowBatch batch,
                   DecodeRows(rows, state_.program.columns, first + at, std::min(batch_rows_, count - at),
                              state_.strings, state_.late_texts, state_.pool));
    TESSERA_TRY(consume_(std::move(batch)));
  }
  milliseconds_ += MillisecondsSince(start);
  return Status::Ok();
}

}  // namespace tessera::vm
