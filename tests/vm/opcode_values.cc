#include "tests/vm/opcode_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tessera::test::walk {

Cells ToCells(const ColumnVector& c, Texts* texts) {
  const size_t n = RowsOf(c);
  Cells out(c.type, n);
  for (size_t i = 0; i < n; ++i) out.null[i] = c.IsNull(i) ? 1 : 0;
  switch (c.type.storage()) {
    case StorageClass::kWide:
      out.w = c.wide;
      break;
    case StorageClass::kText:
      for (size_t i = 0; i < n; ++i) out.v[i] = out.null[i] != 0 ? 0 : texts->Number(c.Text(i));
      break;
    default:
      out.v = c.fixed;
      break;
  }
  return out;
}

std::string Show(int128_t v) {
  char buffer[44];
  char* p = buffer + sizeof buffer;
  *--p = 0;
  uint128_t m = v < 0 ? uint128_t{0} - static_cast<uint128_t>(v) : static_cast<uint128_t>(v);
  do {
    *--p = static_cast<char>('0' + static_cast<int>(m % 10));
    m /= 10;
  } while (m != 0);
  if (v < 0) *--p = '-';
  return p;
}

std::string Show(const Cells& c, size_t row, const Texts& texts) {
  if (c.null[row] != 0) return "NULL";
  switch (c.type.storage()) {
    case StorageClass::kWide:
      return Show(c.w[row]);
    case StorageClass::kText:
      return "'" + texts.Get(c.v[row]) + "'";
    case StorageClass::kFloat:
      return fmt::format("{:a} ({})", std::bit_cast<double>(c.v[row]), std::bit_cast<double>(c.v[row]));
    default:
      return std::to_string(c.v[row]);
  }
}

int CompareFloats(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return static_cast<int>(std::isnan(a)) - static_cast<int>(std::isnan(b));
  return a < b ? -1 : a > b ? 1 : 0;
}

int CompareBytes(std::string_view a, std::string_view b) {
  const int c = memcmp(a.data(), b.data(), std::min(a.size(), b.size()));
  return c != 0 ? c : a.size() < b.size() ? -1 : a.size() > b.size() ? 1 : 0;
}

}  // namespace tessera::test::walk
