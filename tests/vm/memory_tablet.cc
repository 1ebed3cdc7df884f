// Encodes chunks in the encoding that was asked for; nothing is chosen here.
#include "tests/vm/memory_tablet.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <new>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "tablet/values/ordered_float.h"

namespace tessera::test {
namespace {

constexpr size_t kAlignment = 128;

struct Free {
  void operator()(uint8_t* p) const { ::operator delete[](p, std::align_val_t{kAlignment}); }
};

/// Zeroed bytes on a 128-byte boundary, a multiple of 128 of them.
struct Stream {
  std::unique_ptr<uint8_t[], Free> data;
  size_t bytes = 0;
  void Allocate(size_t used) {
    bytes = (used + kAlignment - 1) / kAlignment * kAlignment;
    data.reset(static_cast<uint8_t*>(::operator new[](bytes, std::align_val_t{kAlignment})));
    memset(data.get(), 0, bytes);
  }
};

Status Misfit(const ChunkForm& form, const std::string& why) {
  return {ErrorCode::kInternal, "memory tablet: " + form.ToString() + ": " + why};
}

uint128_t AllOnes(int width) { return width == 16 ? ~uint128_t{0} : (uint128_t{1} << (8 * width)) - 1; }

void PutCode(uint8_t* codes, int width, size_t row, uint128_t code) {
  memcpy(codes + row * static_cast<size_t>(width), &code, static_cast<size_t>(width));
}

}  // namespace

std::string ChunkForm::ToString() const {
  std::string out;
  switch (encoding) {
    case Encoding::kConstant:
      return "constant";
    case Encoding::kPlain:
      return "plain";
    case Encoding::kDictionary:
      out = "dictionary" + std::to_string(width);
      break;
    case Encoding::kFrame:
      out = "frame" + std::to_string(width);
      if (base) {
        Value v = Value::Wide(SqlType::Decimal(38, 0), *base);
        out += " base " + tessera::ToText(v);
      }
      break;
  }
  if (null_code == NullCode::kLast) out += " last";
  if (null_code == NullCode::kGap) out += " gap";
  return out;
}

size_t RowsOf(const ColumnVector& values) {
  switch (values.type.storage()) {
    case StorageClass::kText:
      return values.offsets.empty() ? 0 : values.offsets.size() - 1;
    case StorageClass::kWide:
      return values.wide.size();
    default:
      return values.fixed.size();
  }
}

int128_t OrderedValue(const ColumnVector& values, size_t row) {
  if (values.type.storage() == StorageClass::kWide) return values.wide[row];
  if (values.type.id == TypeId::kReal)
    return OrderedFloat32(static_cast<float>(std::bit_cast<double>(values.fixed[row])));
  if (values.type.id == TypeId::kDouble) return OrderedFloat(std::bit_cast<double>(values.fixed[row]));
  return values.fixed[row];
}

int128_t FrameEnd(const SqlType& type, int width, int128_t base, bool nulls) {
  const int128_t codes = width == 16 ? kInt128Max : static_cast<int128_t>(AllOnes(width)) - (nulls ? 1 : 0);
  if (width == 16 && base < 0) return base == kInt128Min && nulls ? kInt128Max - 1 : kInt128Max;
  if (base > kInt128Max - codes) return kInt128Max;
  int128_t end = base + codes;
  if (type.storage() == StorageClass::kInt) end = std::min<int128_t>(end, INT64_MAX);
  if (type.id == TypeId::kReal) end = std::min<int128_t>(end, UINT32_MAX);
  if (type.id == TypeId::kDouble) end = std::min<int128_t>(end, UINT64_MAX);
  return end;
}

struct MemoryTablet::Stored {
  tessera::Chunk chunk;
  Stream codes, offsets, bytes, nulls;

  Status EncodeNumbers(const ColumnVector& values, const ChunkForm& form, size_t begin, uint32_t rows);
  Status EncodeText(const ColumnVector& values, const ChunkForm& form, size_t begin, uint32_t rows);
  Status SetNullCode(const ChunkForm& form, uint128_t greatest, const std::vector<uint128_t>& used);
  void SetEntries(const std::vector<std::string_view>& entries);
};

/// Chooses the NULL code; `used` is read for kGap only.
Status MemoryTablet::Stored::SetNullCode(const ChunkForm& form, uint128_t greatest,
                                         const std::vector<uint128_t>& used) {
  const uint128_t last = AllOnes(form.width);
  uint128_t code = last;
  switch (form.null_code) {
    case ChunkForm::NullCode::kNext:
      if (chunk.null_count < chunk.rows && greatest == last) return Misfit(form, "no code left for NULL");
      code = chunk.null_count < chunk.rows ? greatest + 1 : 0;
      break;
    case ChunkForm::NullCode::kLast:
      if (chunk.null_count < chunk.rows && greatest == last) return Misfit(form, "the last code is in use");
      break;
    case ChunkForm::NullCode::kGap: {
      std::vector<uint128_t> sorted = used;
      std::sort(sorted.begin(), sorted.end());
      code = 0;
      for (uint128_t u : sorted) {
        if (u < code) continue;
        if (u > code) break;
        if (code == last) return Misfit(form, "no gap");
        ++code;
      }
      break;
    }
  }
  chunk.has_nulls = true;
  if (form.width == 16) {
    chunk.null_code_wide = static_cast<int128_t>(code);
  } else {
    chunk.null_code = static_cast<uint64_t>(code);
  }
  return Status::Ok();
}

Status MemoryTablet::Stored::EncodeNumbers(const ColumnVector& values, const ChunkForm& form, size_t begin,
                                           uint32_t rows) {
  bool any = false;
  for (size_t i = begin; i < begin + rows; ++i) {
    if (values.IsNull(i)) {
      ++chunk.null_count;
      continue;
    }
    int128_t v = OrderedValue(values, i);
    chunk.min = any ? std::min(chunk.min, v) : v;
    chunk.max = any ? std::max(chunk.max, v) : v;
    any = true;
  }
  if (form.encoding == Encoding::kConstant) {
    if (chunk.null_count != 0 && chunk.null_count != rows) return Misfit(form, "a constant with some NULLs");
    if (any && chunk.min != chunk.max) return Misfit(form, "values differ");
    chunk.has_nulls = chunk.null_count != 0;
    chunk.base = any ? chunk.min : 0;
    return Status::Ok();
  }
  if (form.encoding != Encoding::kFrame) return Misfit(form, "not for numbers");
  if (form.width != 1 && form.width != 2 && form.width != 4 && form.width != 8 &&
      !(form.width == 16 && values.type.storage() == StorageClass::kWide)) {
    return Misfit(form, "width");
  }
  chunk.width = static_cast<uint8_t>(form.width);
  chunk.base = form.base ? *form.base : any ? chunk.min : 0;
  if (any && chunk.min < chunk.base) return Misfit(form, "a value below the base");
  const uint128_t base = static_cast<uint128_t>(chunk.base), last = AllOnes(form.width);
  const uint128_t greatest = any ? static_cast<uint128_t>(chunk.max) - base : 0;
  if (greatest > last) return Misfit(form, "a value beyond the width");
  if (chunk.null_count != 0) {
    std::vector<uint128_t> used;
    if (form.null_code == ChunkForm::NullCode::kGap) {
      for (size_t i = begin; i < begin + rows; ++i) {
        if (!values.IsNull(i)) used.push_back(static_cast<uint128_t>(OrderedValue(values, i)) - base);
      }
    }
    TESSERA_TRY(SetNullCode(form, greatest, used));
  }
  codes.Allocate(static_cast<size_t>(rows) * static_cast<size_t>(form.width));
  const uint128_t null = form.width == 16 ? static_cast<uint128_t>(chunk.null_code_wide) : chunk.null_code;
  for (uint32_t r = 0; r < rows; ++r) {
    const size_t i = begin + r;
    PutCode(codes.data.get(), form.width, r,
            values.IsNull(i) ? null : static_cast<uint128_t>(OrderedValue(values, i)) - base);
  }
  return Status::Ok();
}

void MemoryTablet::Stored::SetEntries(const std::vector<std::string_view>& entries) {
  chunk.entries = static_cast<uint32_t>(entries.size());
  offsets.Allocate((entries.size() + 1) * sizeof(uint64_t));
  uint64_t total = 0;
  for (const std::string_view& e : entries) total += e.size();
  bytes.Allocate(total);
  uint64_t at = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    memcpy(offsets.data.get() + i * sizeof at, &at, sizeof at);
    if (!entries[i].empty()) memcpy(bytes.data.get() + at, entries[i].data(), entries[i].size());
    at += entries[i].size();
  }
  memcpy(offsets.data.get() + entries.size() * sizeof at, &at, sizeof at);
}

Status MemoryTablet::Stored::EncodeText(const ColumnVector& values, const ChunkForm& form, size_t begin,
                                        uint32_t rows) {
  std::vector<std::string_view> sorted, plain;
  {
    std::unordered_set<std::string_view> set;
    for (size_t i = begin; i < begin + rows; ++i) {
      if (values.IsNull(i)) {
        ++chunk.null_count;
        plain.push_back({});
      } else {
        set.insert(values.Text(i));
        plain.push_back(values.Text(i));
      }
    }
    sorted.assign(set.begin(), set.end());
    std::sort(sorted.begin(), sorted.end());  // by bytes: char_traits<char> compares as unsigned
  }
  switch (form.encoding) {
    case Encoding::kConstant:
      if ((chunk.null_count != 0 && chunk.null_count != rows) || sorted.size() > 1)
        return Misfit(form, "values differ");
      chunk.has_nulls = chunk.null_count != 0;
      if (!sorted.empty()) chunk.min = chunk.max = 0;
      SetEntries(sorted);
      return Status::Ok();
    case Encoding::kPlain:
      SetEntries(plain);
      chunk.has_nulls = chunk.null_count != 0;
      if (chunk.has_nulls) {
        nulls.Allocate(rows);
        for (uint32_t r = 0; r < rows; ++r) nulls.data[r] = values.IsNull(begin + r) ? 1 : 0;
      }
      if (chunk.null_count < rows) chunk.min = 0, chunk.max = rows - 1;
      return Status::Ok();
    case Encoding::kDictionary: {
      if (form.width != 1 && form.width != 2 && form.width != 4) return Misfit(form, "width");
      chunk.width = static_cast<uint8_t>(form.width);
      if (!sorted.empty() && sorted.size() - 1 > AllOnes(form.width)) return Misfit(form, "too many entries");
      SetEntries(sorted);
      chunk.min = 0;
      chunk.max = static_cast<int128_t>(sorted.size()) - 1;
      if (chunk.null_count != 0) {
        // A file's NULL code is the number of entries, so that maps with one entry more may be indexed by it.
        ChunkForm next = form;
        next.null_code = ChunkForm::NullCode::kNext;
        TESSERA_TRY(SetNullCode(next, sorted.empty() ? 0 : sorted.size() - 1, {}));
      }
      std::unordered_map<std::string_view, uint32_t> code;
      for (size_t i = 0; i < sorted.size(); ++i) code[sorted[i]] = static_cast<uint32_t>(i);
      codes.Allocate(static_cast<size_t>(rows) * static_cast<size_t>(form.width));
      for (uint32_t r = 0; r < rows; ++r) {
        const size_t i = begin + r;
        PutCode(codes.data.get(), form.width, r, values.IsNull(i) ? chunk.null_code : code[values.Text(i)]);
      }
      return Status::Ok();
    }
    case Encoding::kFrame:
      break;
  }
  return Misfit(form, "not for text");
}

MemoryTablet::MemoryTablet() = default;
MemoryTablet::~MemoryTablet() = default;

Result<std::shared_ptr<const MemoryTablet>> MemoryTablet::Make(const std::vector<const ColumnVector*>& columns,
                                                               const std::vector<ChunkForm>& forms, size_t begin,
                                                               uint32_t rows) {
  static std::atomic<uint64_t> number{0};
  if (rows == 0) return Status(ErrorCode::kInternal, "memory tablet: a tablet has at least one row");
  std::shared_ptr<MemoryTablet> tablet(new MemoryTablet);
  tablet->rows_ = rows;
  tablet->path_ = "memory:" + std::to_string(++number);
  for (size_t c = 0; c < columns.size(); ++c) {
    auto stored = std::make_unique<Stored>();
    tessera::Chunk& chunk = stored->chunk;
    chunk.type = columns[c]->type;
    chunk.encoding = forms[c].encoding;
    chunk.rows = rows;
    Status status = chunk.type.storage() == StorageClass::kText
                        ? stored->EncodeText(*columns[c], forms[c], begin, rows)
                        : stored->EncodeNumbers(*columns[c], forms[c], begin, rows);
    if (!status.ok()) return status;
    if (stored->codes.data) chunk.codes = stored->codes.data.get();
    chunk.codes_bytes = stored->codes.bytes;
    if (stored->offsets.data) {
      chunk.entry_offsets = reinterpret_cast<const uint64_t*>(stored->offsets.data.get());
      chunk.entry_bytes = reinterpret_cast<const char*>(stored->bytes.data.get());
      chunk.text_bytes = chunk.entry_offsets[chunk.entries];
      chunk.longest_entry = 0;
      for (uint32_t i = 0; i < chunk.entries; ++i)
        chunk.longest_entry = std::max<uint64_t>(chunk.longest_entry, chunk.Entry(i).size());
    }
    if (stored->nulls.data) chunk.null_bytes = stored->nulls.data.get();
    chunk.encoded_bytes = stored->codes.bytes + stored->offsets.bytes + stored->bytes.bytes + stored->nulls.bytes;
    tablet->chunks_.push_back(std::move(stored));
  }
  return std::shared_ptr<const MemoryTablet>(std::move(tablet));
}

Result<ChunkPointer> MemoryTablet::Chunk(int column) const {
  if (column < 0 || static_cast<size_t>(column) >= chunks_.size()) {
    return Status(ErrorCode::kCorrupt, path_ + ": no column " + std::to_string(column));
  }
  return ChunkPointer(ChunkPointer(), &chunks_[static_cast<size_t>(column)]->chunk);
}

Result<std::shared_ptr<const TableInfo>> MakeMemoryTable(int64_t id, std::string name,
                                                         const std::vector<MemoryColumn>& columns,
                                                         uint32_t tablet_rows) {
  auto table = std::make_shared<TableInfo>();
  table->id = id;
  table->schema.name = std::move(name);
  table->schema.tablet_rows = tablet_rows;
  const size_t rows = columns.empty() ? 0 : RowsOf(columns[0].values);
  table->rows = rows;
  std::vector<const ColumnVector*> vectors;
  for (const MemoryColumn& c : columns) {
    if (RowsOf(c.values) != rows) return Status(ErrorCode::kInternal, "memory table: columns of different lengths");
    table->schema.columns.push_back({c.name, c.values.type, false});
    table->statistics.emplace_back();
    vectors.push_back(&c.values);
  }
  for (size_t begin = 0, tablet = 0; begin < rows; begin += tablet_rows, ++tablet) {
    std::vector<ChunkForm> forms;
    for (const MemoryColumn& c : columns) forms.push_back(c.forms[tablet % c.forms.size()]);
    TESSERA_ASSIGN(auto made, MemoryTablet::Make(vectors, forms, begin,
                                                 static_cast<uint32_t>(std::min<size_t>(tablet_rows, rows - begin))));
    for (size_t c = 0; c < columns.size(); ++c) {
      TESSERA_ASSIGN(const ChunkPointer chunk, made->Chunk(static_cast<int>(c)));
      ColumnStatistics& s = table->statistics[c];
      s.null_count += chunk->null_count;
      s.encoded_bytes += chunk->encoded_bytes;
      if (chunk->type.storage() == StorageClass::kText || chunk->null_count == chunk->rows) continue;
      s.min = s.has_range ? std::min(s.min, chunk->min) : chunk->min;
      s.max = s.has_range ? std::max(s.max, chunk->max) : chunk->max;
      s.has_range = true;
    }
    table->tablets.push_back(std::move(made));
  }
  for (ColumnStatistics& s : table->statistics) s.distinct = rows > s.null_count ? rows - s.null_count : 0;
  return std::shared_ptr<const TableInfo>(std::move(table));
}

std::shared_ptr<const Snapshot> MakeSnapshot(std::vector<std::shared_ptr<const TableInfo>> tables) {
  auto snapshot = std::make_shared<Snapshot>();
  std::sort(tables.begin(), tables.end(), [](const auto& a, const auto& b) { return a->schema.name < b->schema.name; });
  snapshot->tables = std::move(tables);
  return snapshot;
}

}  // namespace tessera::test
