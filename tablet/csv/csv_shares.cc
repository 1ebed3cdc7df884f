// Counting, and finding records by the counts.
#include "tablet/csv/csv_shares.h"

#include <algorithm>
#include <bit>

#include "base/interrupt.h"
#include "tablet/csv/csv_bytes.h"
#include "tablet/csv/file_signature.h"

namespace tessera {
namespace {

/// More of them make longer messages, fewer a longer search.
constexpr uint64_t kMostStretches = 4096;
constexpr size_t kPieceBytes = size_t{1} << 20;
/// A file of text has a record end here, or its lines do not end in line feeds.
constexpr size_t kFirstBytes = size_t{64} << 10;

/// Calls f(lines, lines outside quotes) for each 64 bytes of the text; f returns whether to go on. `inside`: all ones
/// while inside quotes.
template <class F>
void ForEachMask(const char* text, size_t size, char quote, uint64_t* inside, F f) {
  for (size_t at = 0; at < size; at += 64) {
    const ByteMasks masks = FindBytes(text + at, '\n', quote);
    const uint64_t valid = size - at >= 64 ? ~uint64_t{0} : (uint64_t{1} << (size - at)) - 1;
    const uint64_t lines = masks.lines & valid, quotes = masks.quotes & valid;
    uint64_t quoted = *inside;
    if (quotes != 0) {
      quoted ^= PrefixParity(quotes);
      *inside ^= 0 - static_cast<uint64_t>(std::popcount(quotes) & 1);
    }
    if (!f(at, lines, lines & ~quoted)) return;
  }
}

}  // namespace

void CsvCount::Add(const char* text, size_t size, char quote) {
  uint64_t inside = 0 - odd_quotes;
  ForEachMask(text, size, quote, &inside, [&](size_t, uint64_t all, uint64_t outside) {
    lines += static_cast<uint64_t>(std::popcount(all));
    records += static_cast<uint64_t>(std::popcount(outside));
    return true;
  });
  odd_quotes = inside & 1;
}

CsvShares::CsvShares(uint64_t file_bytes, char quote, uint64_t least_stretch) : file_bytes_(file_bytes), quote_(quote) {
  stretch_bytes_ = std::max(least_stretch, (file_bytes + kMostStretches - 1) / kMostStretches);
  counts_.resize(static_cast<size_t>((file_bytes + stretch_bytes_ - 1) / stretch_bytes_));
}

uint64_t CsvShares::End(size_t stretch) const { return std::min(file_bytes_, Begin(stretch) + stretch_bytes_); }

Result<std::vector<CsvCount>> CsvShares::Count(const CsvFile& file, size_t begin, size_t end, ThreadPool* pool) const {
  std::vector<CsvCount> counts(end - begin);
  const auto count = [&](size_t i) -> Status {
    std::vector<char> piece(kPieceBytes + kCsvSlack);
    const uint64_t stop = End(begin + i);
    for (uint64_t at = Begin(begin + i); at < stop; at += kPieceBytes) {
      ThrowIfInterrupted();
      const size_t bytes = static_cast<size_t>(std::min<uint64_t>(kPieceBytes, stop - at));
      TESSERA_TRY(file.ReadAt(at, piece.data(), bytes));
      counts[i].Add(piece.data(), bytes, quote_);
    }
    return {};
  };
  TESSERA_TRY(ForEach(pool, counts.size(), count));
  return counts;
}

Status CsvShares::SetCounts(const CsvFile& file, std::vector<CsvCount> counts) {
  counts_ = std::move(counts);
  records_ = 0;
  bool inside = false;
  for (const CsvCount& count : counts_) {
    records_ += inside ? count.lines - count.records : count.records;
    inside ^= count.odd_quotes != 0;
  }
  if (file_bytes_ == 0) return {};
  char last = 0;
  TESSERA_TRY(file.ReadAt(file_bytes_ - 1, &last, 1));
  if (inside || last != '\n') ++records_;
  return {};
}

Result<CsvPlace> CsvShares::Find(const CsvFile& file, uint64_t record) const {
  CsvPlace place;
  if (record == 0) return place;
  uint64_t ends = record;  // the record begins after this number of record ends
  uint64_t inside = 0;
  size_t stretch = 0;
  for (; stretch < counts_.size(); ++stretch) {
    const CsvCount& count = counts_[stretch];
    const uint64_t here = inside != 0 ? count.lines - count.records : count.records;
    if (here >= ends) break;
    ends -= here;
    place.lines += count.lines;
    inside ^= 0 - count.odd_quotes;
  }
  place.offset = file_bytes_;
  if (stretch == counts_.size()) return place;
  std::vector<char> piece(kPieceBytes + kCsvSlack);
  for (uint64_t at = Begin(stretch); at < End(stretch); at += kPieceBytes) {
    const size_t bytes = static_cast<size_t>(std::min<uint64_t>(kPieceBytes, End(stretch) - at));
    TESSERA_TRY(file.ReadAt(at, piece.data(), bytes));
    bool found = false;
    ForEachMask(piece.data(), bytes, quote_, &inside, [&](size_t i, uint64_t all, uint64_t outside) {
      const auto here = static_cast<uint64_t>(std::popcount(outside));
      if (here < ends) {
        ends -= here;
        place.lines += static_cast<uint64_t>(std::popcount(all));
        return true;
      }
      while (--ends > 0) outside &= outside - 1;
      const int bit = std::countr_zero(outside);
      place.lines += static_cast<uint64_t>(std::popcount(all << (63 - bit)));
      place.offset = at + i + static_cast<uint64_t>(bit) + 1;
      found = true;
      return false;
    });
    if (found) return place;
  }
  return Status(ErrorCode::kIo, "\"" + file.path() + "\" has changed while it was read");
}

Result<bool> CanBeShared(const CsvFile& file, const CopyFormat& format) {
  if (file.size() == 0 || format.escape != format.quote) return false;
  std::vector<char> text(kFirstBytes + kCsvSlack);
  const size_t bytes = static_cast<size_t>(std::min<uint64_t>(kFirstBytes, file.size()));
  TESSERA_TRY(file.ReadAt(0, text.data(), bytes));
  CsvCount count;
  count.Add(text.data(), bytes, format.quote);
  return count.records > 0 && FindSignature({text.data(), bytes}) == nullptr;
}

}  // namespace tessera
