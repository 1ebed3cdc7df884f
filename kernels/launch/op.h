// The opcodes as kernels see them, the instantiations of the VM kernel, and which of them has which opcode. Private to
// kernels/.
//
// Start at: Op, Variant, IsIn.
#pragma once

#include <cstdint>

namespace tessera::kernels {

/// The opcodes, from the one list. (vm/program.h has the same enum, among strings and vectors that kernels do without.)
enum class Op : uint16_t {
#define OPCODE(Name, ...) Name,
#include "vm/opcodes.def"
#undef OPCODE
  kCount
};

/// Opcodes whose meaning has more than some 30 machine instructions.
// clang-format off
#define TESSERA_LONG_OPCODES(X)                                                                                       \
  X(MulIX) X(DivI) X(ModI) X(DivRoundI) X(FloorDivI) X(DivF) X(ModF) X(RoundDigitsF) X(AddMonthsD) X(AddMonthsT)      \
  X(DatePartD) X(DatePartT)
// clang-format on
constexpr bool IsLong(Op op) {
  switch (op) {
#define TESSERA_LONG(Name) case Op::Name:
    TESSERA_LONG_OPCODES(TESSERA_LONG)
#undef TESSERA_LONG
    return true;
    default:
      return false;
  }
}

/// Opcodes of the lean instantiation of the VM kernel, which programs get that use no others: with fewer it keeps 96
/// registers a thread instead of 128, and a multiprocessor holds four blocks instead of three. No 128 bits, nothing
/// long (see IsLong), no rows.
constexpr bool IsLean(Op op) {
  switch (op) {
    case Op::End:
    case Op::SkipIfNone:
    case Op::MaskSave:
    case Op::MaskLoad:
    case Op::MaskClear:
    case Op::MaskOr:
    case Op::MaskAndNot:
    case Op::Filter:
    case Op::FilterTrue:
    case Op::FilterFalse:
    case Op::FilterNull:
    case Op::FilterNotNull:
    case Op::FilterEqI:
    case Op::FilterNeI:
    case Op::FilterLtI:
    case Op::FilterLeI:
    case Op::FilterGtI:
    case Op::FilterGeI:
    case Op::FilterEqT:
    case Op::FilterNeT:
    case Op::Load:
    case Op::Store:
    case Op::AddI:
    case Op::SubI:
    case Op::RSubI:
    case Op::MulI:
    case Op::AddF:
    case Op::SubF:
    case Op::RSubF:
    case Op::MulF:
    case Op::IToF:
    case Op::Group:
    case Op::CountRows:
    case Op::Count:
    case Op::SumI:
    case Op::SumF:
    case Op::MinI:
    case Op::MaxI:
      return true;
    default:
      return false;
  }
}

/// ... that the instantiation for products has besides.
constexpr bool IsOfPairs(Op op) {
  switch (op) {
    case Op::Probe:
    case Op::Next:
    case Op::FilterEqF:
    case Op::FilterNeF:
    case Op::FilterLtF:
    case Op::FilterLeF:
    case Op::FilterGtF:
    case Op::FilterGeF:
    case Op::NegF:
    case Op::CanonF:
    case Op::MinF:
    case Op::MaxF:
      return true;
    default:
      return false;
  }
}

/// Instantiations of the VM kernel, from few opcodes to all of them.
enum class Variant : uint8_t {
  kLean,   ///< the opcodes of IsLean
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
constexpr bool HasProducts(Variant variant) { return HasAll(variant) || IsPairs(variant); }
/// Blocks a multiprocessor that an instantiation is compiled for. Three blocks of 5 warps put 4 warps on each quarter
/// of a multiprocessor and leave 128 registers a thread, just enough for all opcodes. Four put 5 there and leave 96.
/// (A kernel that can be launched from the device is linked apart and gets fewer registers out of the same source: with
/// 128 it would spill.)
constexpr uint32_t BlocksOf(Variant variant) { return variant == Variant::kLean ? 4 : variant == Variant::kDp ? 2 : 3; }
/// The opcodes of an instantiation.
constexpr bool IsIn(Variant variant, Op op) {
  return HasAll(variant) || IsLean(op) || (variant == Variant::kStar && op == Op::Probe) ||
         (IsPairs(variant) && IsOfPairs(op));
}

}  // namespace tessera::kernels
