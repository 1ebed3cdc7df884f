// What kScale does to one number. Private to tablet/schemes/.
#pragma once

#include <cstdint>

#include "tablet/schemes/packed_node.h"
#include "tablet/values/ordered_float.h"

namespace tessera {

inline constexpr int kGreatestPower = 18;
inline constexpr double kPowersOfTen[kGreatestPower + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8, 1e9,
                                                            1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18};

/// The code of a number in the form that `scaled` says.
inline uint64_t CodeOfNumber(double number, const ScaledCodes& scaled) {
  const uint64_t ordered = scaled.single ? OrderedFloat32(static_cast<float>(number)) : OrderedFloat(number);
  return ordered - scaled.base;
}

/// The code that a value of the child of `node` stands for. REQUIRES: the node is a kScale that was checked.
inline uint64_t CodeOfScaled(uint64_t value, const PackedNode& node, const ScaledCodes& scaled) {
  if (value == node.null) return scaled.null_code;
  return CodeOfNumber(static_cast<double>(static_cast<int64_t>(value + node.parameter)) / kPowersOfTen[node.bits],
                      scaled);
}

}  // namespace tessera
