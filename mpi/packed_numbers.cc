#include "mpi/packed_numbers.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

namespace tessera {
namespace {

/// Fewer numbers than these are one thread's.
constexpr size_t kManyNumbers = 1 << 16;

/// f(worker, first, end): each worker's part of n numbers.
template <class F>
void ForParts(ThreadPool* pool, size_t n, F f) {
  const size_t workers = n < kManyNumbers ? 1 : Workers(pool);
  const auto part = [&](size_t worker) { return n * worker / workers; };
  if (workers > 1 && ForWorkers(pool, [&](size_t worker) {
                       f(worker, part(worker), part(worker + 1));
                       return Status::Ok();
                     }).ok())
    return;
  for (size_t worker = 0; worker < workers; ++worker) f(worker, part(worker), part(worker + 1));
}

template <class Code, class T>
void Pack(const T* values, const uint8_t* null, int64_t least, size_t n, char* to) {
  for (size_t i = 0; i < n; ++i) {
    const uint64_t less = static_cast<uint64_t>(values[i]) - static_cast<uint64_t>(least);
    const auto code = static_cast<Code>(null != nullptr && null[i] != 0 ? 0 : less);
    memcpy(to + i * sizeof(Code), &code, sizeof code);
  }
}

template <class Code, class T>
void Unpack(const char* from, int64_t least, size_t n, T* values) {
  for (size_t i = 0; i < n; ++i) {
    Code code;
    memcpy(&code, from + i * sizeof(Code), sizeof code);
    values[i] = static_cast<T>(static_cast<uint64_t>(least) + code);
  }
}

/// f(Code()) for the unsigned type of that many bytes.
template <class F>
void WithCode(uint8_t width, F f) {
  if (width == 1) return f(uint8_t{});
  if (width == 2) return f(uint16_t{});
  if (width == 4) return f(uint32_t{});
  f(uint64_t{});
}

}  // namespace

template <class T>
NumberPacking PackingOf(std::span<const T> values, std::span<const uint8_t> null, ThreadPool* pool) {
  struct Range {
    T low = std::numeric_limits<T>::max(), high = std::numeric_limits<T>::min();
  };
  std::vector<Range> ranges(std::max<size_t>(1, Workers(pool)));
  ForParts(pool, values.size(), [&](size_t worker, size_t first, size_t end) {
    Range range;
    if (null.empty()) {
      for (size_t i = first; i < end; ++i) {
        range.low = std::min(range.low, values[i]);
        range.high = std::max(range.high, values[i]);
      }
    } else {
      for (size_t i = first; i < end; ++i) {
        range.low = std::min(range.low, null[i] != 0 ? range.low : values[i]);
        range.high = std::max(range.high, null[i] != 0 ? range.high : values[i]);
      }
    }
    ranges[worker] = range;
  });
  Range all;
  for (const Range& r : ranges) {
    all.low = std::min(all.low, r.low);
    all.high = std::max(all.high, r.high);
  }
  NumberPacking packing;
  if (all.low > all.high) return packing;
  packing.least = static_cast<int64_t>(all.low);
  const uint64_t span = static_cast<uint64_t>(all.high) - static_cast<uint64_t>(all.low);
  packing.width = span > UINT32_MAX ? 8 : span > UINT16_MAX ? 4 : span > UINT8_MAX ? 2 : 1;
  return packing;
}

template <class T>
void PackNumbers(std::span<const T> values, std::span<const uint8_t> null, const NumberPacking& packing, char* to,
                 ThreadPool* pool) {
  WithCode(packing.width, [&]<class Code>(Code) {
    ForParts(pool, values.size(), [&](size_t, size_t first, size_t end) {
      const uint8_t* const nulls = null.empty() ? nullptr : null.data() + first;
      Pack<Code>(values.data() + first, nulls, packing.least, end - first, to + first * sizeof(Code));
    });
  });
}

template <class T>
void UnpackNumbers(const char* from, const NumberPacking& packing, std::span<T> values, ThreadPool* pool) {
  WithCode(packing.width, [&]<class Code>(Code) {
    ForParts(pool, values.size(), [&](size_t, size_t first, size_t end) {
      Unpack<Code>(from + first * sizeof(Code), packing.least, end - first, values.data() + first);
    });
  });
}

template NumberPacking PackingOf<int64_t>(std::span<const int64_t>, std::span<const uint8_t>, ThreadPool*);
template NumberPacking PackingOf<uint32_t>(std::span<const uint32_t>, std::span<const uint8_t>, ThreadPool*);
template void PackNumbers<int64_t>(std::span<const int64_t>, std::span<const uint8_t>, const NumberPacking&, char*,
                                   ThreadPool*);
template void PackNumbers<uint32_t>(std::span<const uint32_t>, std::span<const uint8_t>, const NumberPacking&, char*,
                                    ThreadPool*);
template void UnpackNumbers<int64_t>(const char*, const NumberPacking&, std::span<int64_t>, ThreadPool*);
template void UnpackNumbers<uint32_t>(const char*, const NumberPacking&, std::span<uint32_t>, ThreadPool*);

}  // namespace tessera
