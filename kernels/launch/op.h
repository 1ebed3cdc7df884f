// The instantiations of the VM kernel, and the opcodes that each has (see the tiers of vm/program/opcodes.def). Private to
// kernels/.
//
// Start at: Op, Variant, IsIn.
#pragma once

#include <cstdint>

#include "vm/program/opcode.h"

namespace tessera::kernels {

using Op = vm::Opcode;

/// Instantiations of the VM kernel.
enum class Variant : uint8_t {
  kLean,   ///< 96 registers a thread instead of 128, so that a multiprocessor holds four blocks instead of three
  kStar,   ///< ... and probes of direct tables and hash tables of 4-byte keys, payload operands, queues
  kPairs,  ///< ... and nested-loop joins, comparisons of doubles, MIN and MAX of doubles
  kFull,
  kDpPairs,  ///< kPairs, launched from the device
  kDp,       ///< kFull, launched from the device
  kQueue,    ///< kStar up to where rows wait in a queue, nearly all opcodes for the rows that come from it
  kSelect,   ///< filters and probes of narrow codes up to where rows wait, kStar for the rows that come from the queue
  kSelectFull,  ///< the same, but what kQueue has for the rows that come from the queue
  kStates,      ///< kFull, and aggregates whose states have several words: these take registers that all others need
};
/// Whether an instantiation has nothing but filters and probes of narrow codes before rows wait.
constexpr bool Selects(Variant variant) { return variant == Variant::kSelect || variant == Variant::kSelectFull; }
/// Whether it has nearly all opcodes for rows from a queue.
constexpr bool HasAllQueued(Variant variant) { return variant == Variant::kQueue || variant == Variant::kSelectFull; }
/// Whether it has everything but queues; whether it is one for nested-loop joins; whether it has queues.
constexpr bool HasAll(Variant variant) {
  return variant == Variant::kFull || variant == Variant::kDp || variant == Variant::kStates;
}
/// Whether it has aggregates whose states have several words.
constexpr bool HasStates(Variant variant) { return variant == Variant::kDp || variant == Variant::kStates; }
constexpr bool IsPairs(Variant variant) { return variant == Variant::kPairs || variant == Variant::kDpPairs; }
constexpr bool HasQueues(Variant variant) {
  return variant == Variant::kStar || HasAllQueued(variant) || Selects(variant);
}
/// Whether rows of its queues read codes that are packed in bits. (kQueue takes 3 to 8 % longer if it can.)
constexpr bool HasBits(Variant variant) { return variant == Variant::kStar || variant == Variant::kSelect; }
/// Whether it is launched from the device.
constexpr bool IsDp(Variant variant) { return variant == Variant::kDp || variant == Variant::kDpPairs; }
constexpr bool HasNestedLoops(Variant variant) { return HasAll(variant) || IsPairs(variant); }
/// Blocks a multiprocessor that an instantiation is compiled for. With three blocks of 5 warps, each quarter of a
/// multiprocessor has 4 warps and 128 registers a thread, just enough for all opcodes. With four blocks it has 5 warps
/// and 96 registers, with five 7 warps and 72. (A kernel that can be launched from the device is linked separately, and
/// the same source needs more registers there: with 128 it would spill.)
constexpr uint32_t BlocksOf(Variant variant) {
  return variant == Variant::kSelect                                    ? 5
         : variant == Variant::kSelectFull || variant == Variant::kLean ? 4
         : variant == Variant::kDp                                      ? 2
                                                                        : 3;
}
/// The tier whose opcodes an instantiation has.
constexpr vm::Tier TierOf(Variant variant) {
  return HasStates(variant)                          ? vm::Tier::States
         : HasAll(variant)                           ? vm::Tier::Full
         : IsPairs(variant)                          ? vm::Tier::Pairs
         : HasAllQueued(variant) || Selects(variant) ? vm::Tier::Star
                                                     : static_cast<vm::Tier>(variant);
}
/// Whether an instantiation has an opcode.
constexpr bool IsIn(Variant variant, Op op) { return vm::Info(op).tier <= TierOf(variant); }
/// Whether one that selects has an opcode before rows wait.
constexpr bool IsOfSelection(Op op) {
  return op == Op::Filter || op == Op::Probe || op == Op::SkipIfNone || op == Op::End;
}
/// Whether kQueue and kSelectFull have an opcode for rows that come from a queue: they do not go on to a row's next match.
constexpr bool IsBehindQueue(Op op) {
  const vm::Shape shape = vm::Info(op).shape;
  return shape != vm::Shape::Next && shape != vm::Shape::NextOuter && vm::Info(op).tier <= vm::Tier::Full;
}

}  // namespace tessera::kernels
