// An instruction in the form that the VM kernel reads. Private to kernels/. Plain data, compiled by g++ and nvcc.
//
// Start at: DeviceInstruction.
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "kernels/launch/op.h"
#include "kernels/launch/tile.h"

namespace tessera::kernels {

enum class OperandSource : uint8_t { kNone, kSlot, kRegister, kConstant, kPayload };

/// Where a register is: a byte offset in shared memory, or, with kInScratch, in the block's range of `scratch`. Each
/// thread has its own values in a register: one NULL word per thread, then [rows][threads] values of 8 (kWideRegister:
/// 16) bytes.
inline constexpr uint32_t kInScratch = 1u << 31;
inline constexpr uint32_t kWideRegister = 1u << 30;
inline constexpr uint32_t kRegisterOffset = kWideRegister - 1;
/// `rows`: of a block.
constexpr uint32_t RegisterBytes(uint32_t rows, bool wide) { return kThreads * 4 + rows * (wide ? 16 : 8); }

/// The second operand of an instruction that has two: 64 bits wide, not a payload.
struct DeviceOperand {
  OperandSource source = OperandSource::kNone;
  bool null_constant = false;
  uint16_t slot = 0;
  uint32_t register_at = 0;
  int64_t constant = 0;
};

/// A lowered instruction: operands are resolved as far as the program alone allows. Addresses are those of the program.
struct alignas(16) InstructionHead {
  Op op = Op::End;
  OperandSource source = OperandSource::kNone;       ///< of a 64-bit operand, which is fetched before the switch
  bool null_constant = false;                        ///< kConstant: the operand is NULL
  uint16_t slot = 0;                                 ///< kSlot; kPayload: the join table
  uint16_t p1 = 0;                                   ///< mask register, predicate, aggregate, join table
  uint32_t register_at = 0;                          ///< kRegister and stores: the register
  OperandSource wide_source = OperandSource::kNone;  ///< of a class W operand, which the shape fetches row by row
  bool payload_packed = false;                       ///< kPayload: a field of the cursor, see PayloadShape
  bool payload_of_nested_loop = false;               ///< kPayload: of a table without keys, the same row for all
  uint8_t unused = 0;
};
struct alignas(16) DeviceInstruction {
  InstructionHead head;
  uint32_t address = 0;  ///< the instruction's own
  /// As in the program. SkipIfNone: number of instructions that it jumps forward (p1: 1 if the rows that are left are
  /// queued). Next: number that it jumps back (`low`: the same in a unit where all pairs pass the filters). Direct
  /// Group: the key.
  int32_t p3 = 0;
  /// Aggregates with keys: the first word in the group's state, without: the first of its Partials; Group: register of the
  /// key; Probe: offset of its ProbeRecord. Instructions with two operands: the register of the second, see SecondOf.
  uint32_t state = 0;
  /// Aggregates with keys: byte offset of its arrays in shared memory; kNowhere: not private. Two operands: the second.
  uint32_t private_state = kNowhere;
  /// End: 0, or, if it is a mark, which measures and does not end, the mark's number plus 1. kConstant: the value;
  /// CheckI, CheckW: the lower bound. Packed payload: the base that is added to the field; the field's mask above its
  /// shift. Other payload: addresses of the column's lower half and of its NULL bytes (0 if none is NULL).
  int64_t low = 0, high = 0;
  /// CheckI, CheckW: the upper bound. Packed payload: the field's value that is NULL, or -1. Other payload: address of
  /// the upper half. Two operands: upper_high is the second one, if it is a constant. Probe with several keys,
  /// Total: the offsets of p3 registers, from `low` on.
  int64_t upper_low = 0, upper_high = 0;
};
static_assert(sizeof(DeviceInstruction) == 64);

/// The second operand has no field of its own in an instruction: it is kept in words that only aggregates and CheckW
/// use.
TESSERA_HD void SetSecond(DeviceInstruction* in, const DeviceOperand& o) {
  in->state = o.register_at;
  in->private_state = static_cast<uint32_t>(o.source) | (o.null_constant ? 1u << 8 : 0u) | uint32_t{o.slot} << 16;
  in->upper_high = o.constant;
}
/// REQUIRES: the shape of the instruction is Ternary.
TESSERA_HD DeviceOperand SecondOf(const DeviceInstruction& in) {
  return {static_cast<OperandSource>(in.private_state & 0xFF), (in.private_state >> 8 & 1) != 0,
          static_cast<uint16_t>(in.private_state >> 16), in.state, in.upper_high};
}
constexpr bool HasSecond(Op op) { return vm::Info(op).shape == vm::Shape::Ternary; }

}  // namespace tessera::kernels
