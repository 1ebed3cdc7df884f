#include "tablet/catalog/buckets.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {
namespace {

/// Of a value that is not NULL; `seed`: the hash of the columns before.
uint64_t HashValue(const ColumnVector& column, size_t row, uint64_t seed) {
  switch (column.type.storage()) {
    case StorageClass::kInt:
    case StorageClass::kFloat: {                 // (which no table is distributed by)
      const int128_t value = column.fixed[row];  // a decimal of few digits may meet one of many
      return XXH3_64bits_withSeed(&value, sizeof value, seed);
    }
    case StorageClass::kWide:
      return XXH3_64bits_withSeed(&column.wide[row], sizeof(int128_t), seed);
    case StorageClass::kText:
      break;
  }
  const std::string_view text = column.Text(row);
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

}  // namespace

std::vector<uint8_t> BucketsOf(const RowBatch& batch, const std::vector<int>& columns) {
  std::vector<uint64_t> hashes(batch.rows);
  for (const int c : columns) {
    const ColumnVector& column = batch.columns[static_cast<size_t>(c)];
    for (size_t row = 0; row < batch.rows; ++row) {
      hashes[row] =
          column.IsNull(row) ? XXH3_64bits_withSeed("", 0, ~hashes[row]) : HashValue(column, row, hashes[row]);
    }
  }
  std::vector<uint8_t> buckets(batch.rows);
  for (size_t row = 0; row < batch.rows; ++row) buckets[row] = static_cast<uint8_t>(hashes[row] % kBuckets);
  return buckets;
}

}  // namespace tessera
