#include "tablet/chunk/stored_range.h"

#include <cstdint>

#include "tablet/values/enum_type.h"
#include "tablet/values/interval.h"

namespace tessera {

StoredRange StoredRangeOf(const SqlType& type) {
  switch (type.id) {
    case TypeId::kBoolean:
      return {0, 1};
    case TypeId::kSmallint:
      return {INT16_MIN, INT16_MAX};
    case TypeId::kInteger:
      return {INT32_MIN, INT32_MAX};
    case TypeId::kReal:
      return {0, UINT32_MAX};
    case TypeId::kDouble:
      return {0, UINT64_MAX};
    case TypeId::kDecimal: {
      const int128_t end = PowerOf10(type.precision);
      return {1 - end, end - 1};
    }
    case TypeId::kEnum:
      return {0, static_cast<int64_t>(kMostLabels) - 1};
    case TypeId::kTime:
      return {0, int64_t{86400} * 1000000 - 1};
    case TypeId::kInterval:
      return {-kIntervalBound, kIntervalBound};
    case TypeId::kUuid:
      return {kInt128Min, kInt128Max};
    default:  // what a date or a timestamp may be is the business of its functions
      return {INT64_MIN, INT64_MAX};
  }
}

}  // namespace tessera
