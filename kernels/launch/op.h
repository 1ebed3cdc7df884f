// The instantiations of the VM kernel, and which of them has which opcode (its tier, see vm/opcodes.def). Private to
// kernels/.
//
// Start at: Op, Variant, IsIn.
#pragma once

#include <cstdint>

#include "vm/opcode.h"

namespace tessera::kernels {

using Op = vm::Opcode;

/// Instantiations of the VM kernel, from few opcodes to all of them.
enum class Variant : uint8_t {
  kLean,   ///< 96 registers a thread instead of 128, so that a multiprocessor holds four blocks instead of three
  kStar,   ///< and Probe of direct tables with one key, payload operands and queues
  kPairs,  ///< ... and products with tables without keys, comparisons of doubles and their extremes
  kFull,
  kDpPairs,  ///< kPairs, launched from the device
  kDp,       ///< kFull, launched from the device
};
/// Whether an instantiation has everything but queues; whether it has products.
constexpr bool HasAll(Variant variant) { return variant == Variant::kFull || variant == Variant::kDp; }
constexpr bool IsPairs(Variant variant) { return variant == Variant::kPairs || variant == Variant::kDpPairs; }
/// Whether it is launched from the device.
constexpr bool IsDp(Variant variant) { return variant == Variant::kDp || variant == Variant::kDpPairs; }
constexpr bool HasNestedLoops(Variant variant) { return HasAll(variant) || IsPairs(variant); }
/// Blocks a multiprocessor that an instantiation is compiled for. Three blocks of 5 warps put 4 warps on each quarter
/// of a multiprocessor and leave 128 registers a thread, just enough for all opcodes. Four put 5 there and leave 96.
/// (A kernel that can be launched from the device is linked apart and gets fewer registers out of the same source: with
/// 128 it would spill.)
constexpr uint32_t BlocksOf(Variant variant) { return variant == Variant::kLean ? 4 : variant == Variant::kDp ? 2 : 3; }
/// The tier whose opcodes an instantiation has.
constexpr vm::Tier TierOf(Variant variant) {
  return HasAll(variant) ? vm::Tier::Full : IsPairs(variant) ? vm::Tier::Pairs : static_cast<vm::Tier>(variant);
}
/// Whether an instantiation has an opcode.
constexpr bool IsIn(Variant variant, Op op) { return vm::Info(op).tier <= TierOf(variant); }

}  // namespace tessera::kernels
