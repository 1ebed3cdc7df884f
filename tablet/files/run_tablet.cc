#include "tablet/files/run_tablet.h"

#include <algorithm>
#include <cstring>

#include "tablet/chunk/chunk_decoder.h"
#include "tablet/chunk/tablet_format.h"
#include "tablet/files/io_error.h"
#include "tablet/schemes/packed_stream.h"

namespace tessera {
namespace {

const SqlType kBigint = SqlType::Of(TypeId::kBigint);

/// The tree of a chunk's codes, and how many runs there are; 0: they are not stored in runs.
uint64_t RunsOf(const Chunk& chunk, PackedTree* tree) {
  if (chunk.packed_codes == nullptr) return 0;
  const char* const reason =
      ParsePackedStream(chunk.packed_codes, chunk.packed_bytes, chunk.rows, chunk.width, chunk.type.IsFloat(), tree);
  return reason == nullptr ? RunsIn(*tree) : 0;  // unpacking it says why
}

/// Numbers of rows as a column: `least` to `greatest`.
Chunk CountsChunk(uint32_t runs, uint32_t least, uint32_t greatest) {
  Chunk chunk;
  chunk.type = kBigint;
  chunk.rows = runs;
  chunk.base = chunk.min = least;
  chunk.max = greatest;
  if (least == greatest) return chunk;
  chunk.encoding = Encoding::kFrame;
  chunk.width = greatest - least < 1u << 8 ? 1 : greatest - least < 1u << 16 ? 2 : 4;
  chunk.codes_bytes = AlignToStream(uint64_t{runs} * chunk.width);
  return chunk;
}

/// The chunk as it is packed in the stream of `stored`.
Chunk PartOf(Chunk chunk, PackedPart part, const Chunk& stored) {
  if (chunk.width == 0) return chunk;
  chunk.codes = nullptr;
  chunk.packed_codes = stored.packed_codes;
  chunk.packed_bytes = stored.packed_bytes;
  chunk.packed_part = part;
  chunk.packed_rows = stored.rows;
  return chunk;
}

template <class Code>
void StoreLess(const std::vector<uint32_t>& values, uint32_t base, uint8_t* out) {
  Code* const codes = reinterpret_cast<Code*>(out);
  for (size_t i = 0; i < values.size(); ++i) codes[i] = static_cast<Code>(values[i] - base);
}

/// Values less `base`, in `width` bytes.
void StoreCodes(const std::vector<uint32_t>& values, uint32_t base, int width, uint8_t* out) {
  switch (width) {
    case 0:
      return;
    case 1:
      return StoreLess<uint8_t>(values, base, out);
    case 2:
      return StoreLess<uint16_t>(values, base, out);
    default:
      return StoreLess<uint32_t>(values, base, out);
  }
}

}  // namespace

struct RunTablet::Runs : UnpackedChunk {
  using UnpackedChunk::UnpackedChunk;
  tessera::Chunk counts;  ///< the number of rows of each
  ChunkPointer stored;    ///< has the texts that `chunk` points to
};

Result<std::unique_ptr<const RunTablet>> RunTablet::Open(const std::shared_ptr<const Tablet>& of, int column,
                                                         int columns, uint32_t runs) {
  if (runs == 0) {
    TESSERA_ASSIGN(runs, Count(*of, column));
  }
  return std::unique_ptr<const RunTablet>(new RunTablet(of, column, columns, runs));
}

Result<uint32_t> RunTablet::Count(const Tablet& of, int column) {
  TESSERA_ASSIGN(const ChunkPointer chunk, of.Describe(column));
  if (chunk->encoding == Encoding::kConstant) return 1u;
  PackedTree tree;
  const uint64_t runs = RunsOf(*chunk, &tree);
  TESSERA_TRY(of.Intact());
  return runs == 0 ? of.rows() : static_cast<uint32_t>(runs);
}

RunTablet::RunTablet(const std::shared_ptr<const Tablet>& of, int column, int columns, uint32_t runs)
    : of_(*of), owner_(of), column_(column), columns_(columns), runs_(runs), single_(CountsChunk(runs, 1, 1)) {}

RunTablet::~RunTablet() { ForgetUnpacked(unpacked_.lock()); }

Status RunTablet::Corrupt(const char* reason) const {
  return CorruptTablet(path(), "column " + std::to_string(column_ + 1) + ": " + reason);
}

Result<ChunkPointer> RunTablet::Chunk(int column) const {
  if (runs_ == of_.rows()) return column == columns_ ? ChunkPointer(ChunkPointer(), &single_) : of_.Chunk(column);
  TESSERA_ASSIGN(const std::shared_ptr<Runs> runs, Unpacked());
  return ChunkPointer(runs, column == columns_ ? &runs->counts : &runs->chunk);
}

Result<ChunkPointer> RunTablet::PackedChunk(int column) const {
  if (IsAsStored(column)) return of_.PackedChunk(column);
  if (runs_ == of_.rows()) return Chunk(column);
  const auto part = [&] { return ChunkPointer(ChunkPointer(), column == columns_ ? &counts_ : &values_); };
  if (has_parts_.load(std::memory_order_acquire)) {
    TESSERA_TRY(Intact());
    return part();
  }
  TESSERA_ASSIGN(const std::shared_ptr<Runs> runs, Unpacked());
  // (Texts that were unpacked beside the codes do not stay.)
  if (runs->stored.use_count() > 0) return ChunkPointer(runs, column == columns_ ? &runs->counts : &runs->chunk);
  std::lock_guard lock(mutex_);
  if (!has_parts_.load(std::memory_order_relaxed)) {
    values_ = PartOf(runs->chunk, PackedPart::kRunValues, *runs->stored);
    const auto greatest = static_cast<uint32_t>(runs->counts.max);
    // (Where all are the same, that is all to know.)
    counts_ = runs->counts.width == 0 ? runs->counts
                                      : PartOf(CountsChunk(runs_, 1, greatest), PackedPart::kRunLengths, *runs->stored);
    has_parts_.store(true, std::memory_order_release);
  }
  return part();
}

Result<ChunkPointer> RunTablet::Describe(int column) const {
  // (The stored chunk has as many values in the same range.)
  return column == columns_ ? Chunk(column) : of_.Describe(column);
}

uint64_t RunTablet::Expect(const std::vector<int>& columns, bool again) const {
  return of_.Expect(columns.empty() ? columns : std::vector<int>{column_}, again);
}

bool RunTablet::WasRead(const std::vector<int>& columns) const {
  return of_.WasRead(columns.empty() ? columns : std::vector<int>{column_});
}

Result<std::shared_ptr<RunTablet::Runs>> RunTablet::Unpacked() const {
  TESSERA_TRY(Intact());
  std::lock_guard lock(mutex_);
  std::shared_ptr<Runs> runs = unpacked_.lock();
  if (runs == nullptr) {
    TESSERA_ASSIGN(runs, Unpack());
    unpacked_ = runs;
  }
  KeepUnpacked(runs);
  return runs;
}

Result<std::shared_ptr<RunTablet::Runs>> RunTablet::Unpack() const {
  TESSERA_ASSIGN(ChunkPointer stored, of_.PackedChunk(column_));
  if (stored->encoding == Encoding::kConstant) {
    if (runs_ != 1) return Corrupt("another number of runs than before");
    const auto runs = std::make_shared<Runs>(0, *stored, owner_, column_);
    runs->chunk.rows = 1;
    runs->chunk.null_count = stored->null_count > 0 ? 1 : 0;
    runs->counts = CountsChunk(1, of_.rows(), of_.rows());
    runs->stored = std::move(stored);
    return runs;
  }
  PackedTree tree;
  // (What was read of the file before its checksum may have been another.)
  if (RunsOf(*stored, &tree) != runs_) return Corrupt("another number of runs than before");
  std::vector<uint32_t> lengths(runs_);
  const uint64_t values_bytes = AlignToStream(uint64_t{runs_} * stored->width);
  // (How wide the numbers of rows are is known once these are.)
  const auto values = std::make_unique_for_overwrite<uint64_t[]>(values_bytes / sizeof(uint64_t));
  uint8_t* const codes = reinterpret_cast<uint8_t*>(values.get());
  const char* reason = UnpackRuns(stored->packed_codes, tree, stored->width, codes, lengths.data());
  // (Zeros in the place of the file's bytes may be runs of anything.)
  TESSERA_TRY(Intact());
  if (reason != nullptr) return Corrupt(reason);
  uint32_t least = UINT32_MAX, greatest = 0;
  for (const uint32_t length : lengths) {
    least = std::min(least, length);
    greatest = std::max(greatest, length);
  }
  const tessera::Chunk counts = CountsChunk(runs_, least + 1, greatest + 1);
  const auto runs = std::make_shared<Runs>(values_bytes + counts.codes_bytes, *stored, owner_, column_);
  uint8_t* const streams = runs->streams.get();
  const uint64_t codes_bytes = uint64_t{runs_} * stored->width, counts_bytes = uint64_t{runs_} * counts.width;
  memcpy(streams, codes, codes_bytes);
  memset(streams + codes_bytes, 0, values_bytes - codes_bytes);
  StoreCodes(lengths, least, counts.width, streams + values_bytes);
  memset(streams + values_bytes + counts_bytes, 0, counts.codes_bytes - counts_bytes);
  runs->chunk.rows = runs_;
  runs->chunk.codes = streams;
  runs->chunk.codes_bytes = values_bytes;
  runs->chunk.packed_codes = nullptr;
  runs->chunk.packed_bytes = 0;
  runs->counts = counts;
  if (counts.width != 0) runs->counts.codes = streams + values_bytes;
  uint32_t null_runs = 0;
  uint64_t null_rows = 0;
  for (uint32_t run = 0; stored->has_nulls && run < runs_; ++run) {
    if (!IsNullAt(runs->chunk, run)) continue;
    ++null_runs;
    null_rows += uint64_t{lengths[run]} + 1;
  }
  if (null_rows != stored->null_count) return Corrupt("a wrong NULL count");
  runs->chunk.null_count = null_runs;
  reason = CheckCodes(runs->chunk);
  if (reason != nullptr) return Corrupt(reason);
  runs->stored = std::move(stored);
  return runs;
}

}  // namespace tessera
