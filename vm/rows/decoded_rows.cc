// Rows to the values of a result.

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "vm/rows/late_texts.h"
#include "vm/rows/row_set.h"

namespace tessera::vm {
namespace {

/// The TEXT columns of DecodeRows. A text of few rows is seldom in a cache, so threads share many.
Status DecodeTexts(const RowSet& rows, const std::vector<size_t>& columns, size_t first, const StringPool& strings,
                   const LateTexts& late, ThreadPool* pool, RowBatch* out) {
  constexpr size_t kPart = 1024;
  const size_t parts = (out->rows + kPart - 1) / kPart;
  std::vector<std::vector<std::string_view>> texts(columns.size());
  const auto for_parts = [&](const auto& f) {
    return ForEach(parts < 2 ? nullptr : pool, columns.size() * parts, [&](size_t i) {
      const size_t begin = i % parts * kPart;
      f(i / parts, begin, std::min(out->rows, begin + kPart));
      return Status::Ok();
    });
  };
  for (std::vector<std::string_view>& of_column : texts) of_column.resize(out->rows);
  TESSERA_TRY(for_parts([&](size_t c, size_t begin, size_t end) {
    const RowColumn& from = rows.columns[columns[c]];
    late.Read(strings, std::span(from.low).subspan(first + begin, end - begin), texts[c].data() + begin);
    for (size_t k = begin; k < end; ++k)
      if (out->columns[columns[c]].IsNull(k)) texts[c][k] = {};
  }));
  for (size_t c = 0; c < columns.size(); ++c) {
    ColumnVector& v = out->columns[columns[c]];
    v.offsets.reserve(out->rows + 1);
    v.offsets.push_back(0);
    for (const std::string_view text : texts[c]) v.offsets.push_back(v.offsets.back() + text.size());
    v.bytes.resize(v.offsets.back());
  }
  return for_parts([&](size_t c, size_t begin, size_t end) {
    ColumnVector& v = out->columns[columns[c]];
    for (size_t k = begin; k < end; ++k) texts[c][k].copy(v.bytes.data() + v.offsets[k], texts[c][k].size());
  });
}

}  // namespace

Result<RowBatch> DecodeRows(const RowSet& rows, const std::vector<ResultColumn>& columns, size_t first, size_t count,
                            const StringPool& strings, const LateTexts& late, ThreadPool* pool) {
  RowBatch out;
  out.rows = count;
  std::vector<size_t> texts;  // columns
  for (size_t i = 0; i < columns.size(); ++i) {
    const RowColumn& c = rows.columns[i];
    ColumnVector v;
    v.type = columns[i].type;
    if (!c.null.empty()) {
      v.null.assign(c.null.begin() + static_cast<ptrdiff_t>(first),
                    c.null.begin() + static_cast<ptrdiff_t>(first + count));
    }
    switch (v.type.storage()) {
      case StorageClass::kInt:
      case StorageClass::kFloat:
        v.fixed.assign(c.low.begin() + static_cast<ptrdiff_t>(first),
                       c.low.begin() + static_cast<ptrdiff_t>(first + count));
        break;
      case StorageClass::kWide:
        v.wide.resize(count);
        for (size_t k = 0; k < count; ++k) v.wide[k] = Make128(c.high[first + k], c.low[first + k]);
        break;
      case StorageClass::kText:
        texts.push_back(i);
        break;
    }
    out.columns.push_back(std::move(v));
  }
  TESSERA_TRY(DecodeTexts(rows, texts, first, strings, late, pool, &out));
  return out;
}

}  // namespace tessera::vm
