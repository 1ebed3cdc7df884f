// The order-preserving map of floating point numbers to unsigned integers, by which float columns are stored, compared
// with constants and grouped: a < b as numbers iff OrderedFloat(a) < OrderedFloat(b) as unsigned. -0.0 comes right
// before 0.0, every NaN becomes one code above +infinity. Compiled by g++ and nvcc.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/host_device.h"

namespace tessera {

inline constexpr uint64_t kOrderedNaN = 0xFFF8000000000000u;
inline constexpr uint32_t kOrderedNaN32 = 0xFFC00000u;

TESSERA_HD uint64_t OrderedFloat(double v) {
  if (v != v) return kOrderedNaN;
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return (bits >> 63) != 0 ? ~bits : bits | 0x8000000000000000u;
}

TESSERA_HD double FromOrderedFloat(uint64_t code) {
  uint64_t bits = (code >> 63) != 0 ? code & 0x7FFFFFFFFFFFFFFFu : ~code;
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

/// The same for singles, in 32 bits: what a REAL column stores, so that a frame of 4 bytes always suffices for it.
TESSERA_HD uint32_t OrderedFloat32(float v) {
  if (v != v) return kOrderedNaN32;
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

TESSERA_HD float FromOrderedFloat32(uint32_t code) {
  uint32_t bits = (code >> 31) != 0 ? code & 0x7FFFFFFFu : ~code;
  float v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

}  // namespace tessera
