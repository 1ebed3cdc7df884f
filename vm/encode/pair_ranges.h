// Which pairs of pieces of two tables can hold a match: a program's predicates, run over ranges of values instead of
// values. Compiled by g++ and nvcc. Private to vm/ and kernels/.
//
// A nested-loop join run as a grid (JoinStrategyInfo::cuts) is cut into pairs of pieces: some rows of one table and
// some of the other. For each piece the least and the greatest value of each column are known. Running the section's
// instructions over these ranges shows that no pair of rows of two pieces gets to the sink (kNone), that all do (kAll),
// or neither (kSome). The answers kNone and kAll are always true; if in doubt, the answer is kSome.
//
// The ranges are those of what the machine computes, not of what real numbers would give. Its floating-point operations
// round to nearest, and rounding is monotone, so the same operation on the ends of two ranges gives the ends of the
// result, exactly. Integers are held as doubles: below 2^53 exact, beyond that each end moves outward by one unit in
// the last place.
//
// Start at: MakeRangeProgram (host), TryRanges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/host_device.h"
#include "tablet/values/ordered_float.h"
#include "vm/program/program.h"

namespace tessera::vm {

struct RowColumn;
struct SectionTraits;

/// How many of the rows are live; here these are pairs of rows.
enum class Coverage : uint8_t { kNone, kSome, kAll };

/// What is known of the values of a column, or of an accumulator, over some rows. Integers are held as doubles,
/// rounded outward where they are not exact. A new one says nothing: any value is possible.
struct KnownRange {
  double low = 0, high = 0;  ///< of the values that are not NULL; never NaN; low > high: there are no values
  bool may_be_null = true;
  bool unknown = true;  ///< low and high say nothing (NaN among the values, text, more than 64 bits)
};

inline constexpr int kRangeRegisters = 8, kRangeMasks = 8;

/// Where the operand of a step is.
enum class RangeSource : uint8_t {
  kNothing,   ///< it has none
  kOuter,     ///< column `index` of the section's source
  kInner,     ///< column `index` of the join table
  kRegister,  ///< `index`: one of kRangeRegisters, not the section's number
  kConstant,  ///< RangeStep::constant
  kUnknown,
};

/// One instruction over ranges.
struct RangeStep {
  uint16_t op = 0;  ///< vm::Opcode
  RangeSource source = RangeSource::kNothing;
  uint8_t unused = 0;
  uint16_t index = 0;   ///< column of the source, register, or mask register
  uint16_t target = 0;  ///< SkipIfNone: the step that it goes to, or the number of steps
  /// The constant operand. CheckI, Filter: the values that pass, rounded inward; none if low > high.
  KnownRange constant;
};

/// A section's steps, up to the first instruction that feeds a sink or whose effect ranges cannot follow.
struct RangeProgram {
  std::vector<RangeStep> steps;  ///< empty: ranges say nothing, and TryRanges always returns kSome
  /// For kAll: the address after the last filter, where a turn of the loop may begin instead of at its body. The
  /// instructions that are left out change masks only: nothing after them reads a register, mask register or
  /// accumulator that they set, and none of them can fail, or TryRanges would not say kAll. -1: there is no such
  /// address.
  int32_t all_from = -1;
  /// Rows of the source are filtered before the loop; kAll then means all pairs of those that get to the loop.
  bool filtered_before = false;
};

/// The steps of a nested-loop join of the section's source with join table `join`: Probe without keys, MaskSave, body,
/// sinks, Next, and no probe before. For code of another form there are no steps. `traits`: of the section. REQUIRES: a
/// verified program. Host only.
RangeProgram MakeRangeProgram(const Program& program, int section, const SectionTraits& traits, int join);

/// The range of a column's values in rows [first, first + count). Classes other than I and F are unknown. Host only.
KnownRange RangeOfColumn(const RowColumn& column, size_t first, size_t count);

// ---- Arithmetic of ranges -------------------------------------------------------------------------------------------

namespace range {

inline constexpr double kTwo53 = 9007199254740992.0, kTwo63 = 9223372036854775808.0;

/// The next double above (`up`) or below. REQUIRES: finite.
TESSERA_HD double NextDouble(double v, bool up) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  if (v == 0) {
    bits = up ? 1 : 0x8000000000000001u;
  } else {
    bits += (v > 0) == up ? uint64_t{1} : ~uint64_t{0};
  }
  memcpy(&v, &bits, sizeof v);
  return v;
}

/// `v` is the rounded result of one operation on integers held as doubles. Returns a bound that is not above (`up`: not
/// below) the exact result.
TESSERA_HD double Outward(double v, bool up) { return v > -kTwo53 && v < kTwo53 ? v : NextDouble(v, up); }

/// The greatest double that is at most v, the least that is at least v.
TESSERA_HD double DoubleAtMost(int64_t v) {
  const double d = static_cast<double>(v);
  return d >= kTwo63 || static_cast<int64_t>(d) > v ? NextDouble(d, false) : d;
}
TESSERA_HD double DoubleAtLeast(int64_t v) {
  const double d = static_cast<double>(v);
  return d < kTwo63 && static_cast<int64_t>(d) < v ? NextDouble(d, true) : d;
}

TESSERA_HD KnownRange Unknown(bool may_be_null = true) { return {0, 0, may_be_null, true}; }
/// No value, except NULL if `may_be_null`.
TESSERA_HD KnownRange NoValue(bool may_be_null) { return {1, 0, may_be_null, false}; }
TESSERA_HD bool HasNoValue(const KnownRange& r) { return !r.unknown && r.low > r.high; }
TESSERA_HD bool IsOne(const KnownRange& r) { return r.low == r.high; }
TESSERA_HD bool IsFinite(const KnownRange& r) { return r.low - r.low == 0 && r.high - r.high == 0; }

/// Integers low..high as results of arithmetic. Beyond 64 bits they are unknown: they would wrap, or fail where that is
/// checked.
TESSERA_HD KnownRange Integers(double low, double high, bool may_be_null) {
  low = Outward(low, false);
  high = Outward(high, true);
  if (low < -kTwo63 || high >= kTwo63) return Unknown(may_be_null);
  return {low, high, may_be_null, false};
}
/// Infinite ends are allowed: the machine may compute infinity.
TESSERA_HD KnownRange Floats(double low, double high, bool may_be_null) {
  if (low != low || high != high) return Unknown(may_be_null);
  return {low, high, may_be_null, false};
}

TESSERA_HD KnownRange Union(const KnownRange& a, const KnownRange& b) {
  const bool null = a.may_be_null || b.may_be_null;
  if (a.unknown || b.unknown) return Unknown(null);
  if (HasNoValue(a)) return {b.low, b.high, null, false};
  if (HasNoValue(b)) return {a.low, a.high, null, false};
  return {a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high, null, false};
}

enum class Operation : uint8_t { kAdd, kSub, kMul, kDiv };

/// a op b, NULL where one of them is. Infinite operands, which may give NaN, and division by what may be 0, which gives
/// NULL, are unknown. kDiv: floats only.
TESSERA_HD KnownRange Combine(Operation op, const KnownRange& a, const KnownRange& b, bool floats) {
  const bool null = a.may_be_null || b.may_be_null;
  if (HasNoValue(a) || HasNoValue(b)) return NoValue(null);
  if (op == Operation::kDiv && (b.unknown || (b.low <= 0 && b.high >= 0))) return Unknown();
  if (a.unknown || b.unknown || !IsFinite(a) || !IsFinite(b)) return Unknown(null);
  double low, high;
  if (op == Operation::kAdd) {
    low = a.low + b.low;
    high = a.high + b.high;
  } else if (op == Operation::kSub) {
    low = a.low - b.high;
    high = a.high - b.low;
  } else {
    // The operation is monotone in each operand, so the ends of the result are among the corners.
    const bool mul = op == Operation::kMul;
    low = high = mul ? a.low * b.low : a.low / b.low;
    for (int corner = 1; corner < 4; ++corner) {
      const double x = (corner & 1) != 0 ? a.high : a.low, y = (corner & 2) != 0 ? b.high : b.low;
      const double v = mul ? x * y : x / y;
      low = v < low ? v : low;
      high = v > high ? v : high;
    }
  }
  return floats ? Floats(low, high, null) : Integers(low, high, null);
}

/// As SingleF. Going through the ordered form does not change the result. It is needed because g++ 12 with -O2 removes
/// the conversion to float and back when it is done for two doubles that lie side by side.
TESSERA_HD double Single(double v) {
  return static_cast<double>(FromOrderedFloat32(OrderedFloat32(static_cast<float>(v))));
}

TESSERA_HD bool IsFinite(double v) { return v - v == 0; }

/// The caller checks for the least BIGINT, which has no absolute value.
TESSERA_HD KnownRange Absolute(const KnownRange& a) {
  if (a.unknown || HasNoValue(a) || a.low >= 0) return a;
  if (a.high <= 0) return {-a.high, -a.low, a.may_be_null, false};
  return {0, -a.low > a.high ? -a.low : a.high, a.may_be_null, false};
}

// ---- Tests: for how many of the rows they hold

TESSERA_HD Coverage Told(bool all, bool none) {
  return none ? Coverage::kNone : all ? Coverage::kAll : Coverage::kSome;
}

/// `comparison`: 0..5 as FilterEqI..FilterGeI. NULL on either side is not true.
TESSERA_HD Coverage Compare(int comparison, const KnownRange& a, const KnownRange& b) {
  if (HasNoValue(a) || HasNoValue(b)) return Coverage::kNone;
  if (a.unknown || b.unknown) return Coverage::kSome;
  const bool same = IsOne(a) && IsOne(b) && a.low == b.low, apart = a.high < b.low || b.high < a.low;
  const bool no_null = !a.may_be_null && !b.may_be_null;
  switch (comparison) {
    case 0:
      return Told(same && no_null, apart);
    case 1:
      return Told(apart && no_null, same);
    case 2:
      return Told(a.high < b.low && no_null, a.low >= b.high);
    case 3:
      return Told(a.high <= b.low && no_null, a.low > b.high);
    case 4:
      return Told(a.low > b.high && no_null, a.high <= b.low);
    default:
      return Told(a.low >= b.high && no_null, a.high < b.low);
  }
}
/// For how many rows the value lies in `passing`. NULL does not.
TESSERA_HD Coverage Within(const KnownRange& a, const KnownRange& passing) {
  if (HasNoValue(a) || HasNoValue(passing)) return Coverage::kNone;
  if (a.unknown || passing.unknown) return Coverage::kSome;
  return Told(a.low >= passing.low && a.high <= passing.high && !a.may_be_null,
              a.high < passing.low || a.low > passing.high);
}
TESSERA_HD Coverage IsNull(const KnownRange& a) { return Told(HasNoValue(a), !a.may_be_null); }
TESSERA_HD Coverage IsNotNull(const KnownRange& a) { return Told(!a.may_be_null, HasNoValue(a)); }
/// Neither 0 nor NULL; 0 and not NULL.
TESSERA_HD Coverage IsTrue(const KnownRange& a) { return Compare(1, a, {0, 0, false, false}); }
TESSERA_HD Coverage IsFalse(const KnownRange& a) { return Compare(0, a, {0, 0, false, false}); }

/// What is left of `mask` by a test that holds for `held` of the rows.
TESSERA_HD Coverage Narrowed(Coverage mask, Coverage held) {
  return held == Coverage::kAll || mask == Coverage::kNone ? mask
         : held == Coverage::kNone                         ? Coverage::kNone
                                                           : Coverage::kSome;
}

/// What a register is known to hold. Rows that were not live when it was stored keep their old values.
struct Register {
  KnownRange live;  ///< in the rows that are live now
  KnownRange all;   ///< in every row
};

}  // namespace range

/// Runs the steps. `outer`, `inner`: ranges of the columns of the section's source and of the join table, by number of
/// the column.
///
/// kNone: no pair of rows gets to the sink. An error that a pair would have raised is not reported. kAll: every pair
/// gets there whose row of the source gets to the loop (RangeProgram::filtered_before). Callers then skip the loop's
/// filters and the other instructions among them, so the answer is not kAll if one of these can fail for these values.
TESSERA_HD Coverage TryRanges(const RangeStep* steps, int count, const KnownRange* outer, const KnownRange* inner) {
  if (count == 0) return Coverage::kSome;
  const KnownRange anything;
  KnownRange a;  // the accumulator, in the rows that are live
  range::Register registers[kRangeRegisters];
  int stored = 0;  // the registers from here on have not been stored
  Coverage mask = Coverage::kAll;
  Coverage saved[kRangeMasks];
  for (Coverage& s : saved) s = Coverage::kSome;
  bool may_fail = false;
  for (int i = 0; i < count; ++i) {
    const RangeStep& step = steps[i];
    const auto op = static_cast<Opcode>(step.op);
    const KnownRange& operand = step.source == RangeSource::kOuter      ? outer[step.index]
                                : step.source == RangeSource::kInner    ? inner[step.index]
                                : step.source == RangeSource::kRegister ? registers[step.index].live
                                : step.source == RangeSource::kConstant ? step.constant
                                                                        : anything;
    switch (op) {
      case Opcode::SkipIfNone:
        if (mask == Coverage::kNone) i = step.target - 1;
        break;
      case Opcode::Probe:
        // The probe of this join: from here on there are only pairs of the rows that got here. The instructions before
        // it are run in any case, errors included. With source kUnknown: the end of steps after which rows may be
        // dropped.
        if (step.source == RangeSource::kNothing) {
          if (mask != Coverage::kNone) mask = Coverage::kAll;
          for (int r = 0; r < stored; ++r) registers[r].all = registers[r].live;
          may_fail = false;
        } else {
          mask = range::Narrowed(mask, Coverage::kSome);
        }
        break;

      // Mask registers. For rows that become live again, the accumulator is unknown.
      case Opcode::MaskSave:
        saved[step.index] = mask;
        break;
      case Opcode::MaskLoad:
        mask = saved[step.index];
        a = range::Unknown();
        for (int r = 0; r < stored; ++r) registers[r].live = registers[r].all;
        break;
      case Opcode::MaskClear:
        saved[step.index] = Coverage::kNone;
        break;
      case Opcode::MaskOr:
        if (saved[step.index] == Coverage::kNone || mask == Coverage::kAll) saved[step.index] = mask;
        break;
      case Opcode::MaskAndNot: {
        const Coverage s = saved[step.index];
        mask = range::Narrowed(mask, s == Coverage::kNone  ? Coverage::kAll
                                     : s == Coverage::kAll ? Coverage::kNone
                                                           : Coverage::kSome);
        break;
      }

      // Filters. Those on an encoded column have it as their operand; the others test the accumulator.
      case Opcode::Filter:
        mask = range::Narrowed(mask, range::Within(operand, step.constant));
        break;
      case Opcode::FilterTrue:
        mask = range::Narrowed(mask, range::IsTrue(a));
        break;
      case Opcode::FilterFalse:
        mask = range::Narrowed(mask, range::IsFalse(a));
        break;
      case Opcode::FilterNull:
        mask = range::Narrowed(mask, range::IsNull(step.source == RangeSource::kNothing ? a : operand));
        break;
      case Opcode::FilterNotNull:
        mask = range::Narrowed(mask, range::IsNotNull(step.source == RangeSource::kNothing ? a : operand));
        break;
      case Opcode::FilterEqI:
      case Opcode::FilterNeI:
      case Opcode::FilterLtI:
      case Opcode::FilterLeI:
      case Opcode::FilterGtI:
      case Opcode::FilterGeI:
        mask = range::Narrowed(mask, range::Compare(step.op - static_cast<int>(Opcode::FilterEqI), a, operand));
        break;
      case Opcode::FilterEqF:
      case Opcode::FilterNeF:
      case Opcode::FilterLtF:
      case Opcode::FilterLeF:
      case Opcode::FilterGtF:
      case Opcode::FilterGeF:
        mask = range::Narrowed(mask, range::Compare(step.op - static_cast<int>(Opcode::FilterEqF), a, operand));
        break;

      case Opcode::Load:
        a = operand;
        break;
      case Opcode::Store: {
        range::Register& r = registers[step.index];
        if (mask == Coverage::kNone) break;
        stored = step.index < stored ? stored : step.index + 1;
        r.live = a;
        r.all = mask == Coverage::kAll ? a : range::Union(r.all, a);
        break;
      }

      case Opcode::AddI:
      case Opcode::AddIX:
        a = range::Combine(range::Operation::kAdd, a, operand, false);
        may_fail |= op == Opcode::AddIX && a.unknown && mask != Coverage::kNone;
        break;
      case Opcode::SubI:
      case Opcode::SubIX:
        a = range::Combine(range::Operation::kSub, a, operand, false);
        may_fail |= op == Opcode::SubIX && a.unknown && mask != Coverage::kNone;
        break;
      case Opcode::RSubI:
      case Opcode::RSubIX:
        a = range::Combine(range::Operation::kSub, operand, a, false);
        may_fail |= op == Opcode::RSubIX && a.unknown && mask != Coverage::kNone;
        break;
      case Opcode::MulI:
      case Opcode::MulIX:
        a = range::Combine(range::Operation::kMul, a, operand, false);
        may_fail |= op == Opcode::MulIX && a.unknown && mask != Coverage::kNone;
        break;
      case Opcode::AbsI:
        if (!range::HasNoValue(a) && (a.unknown || a.low <= -range::kTwo63)) {
          a = range::Unknown(a.may_be_null);
          may_fail |= mask != Coverage::kNone;
        }
        a = range::Absolute(a);
        break;
      case Opcode::CheckI:
        may_fail |= mask != Coverage::kNone && !range::HasNoValue(a) &&
                    (a.unknown || a.low < step.constant.low || a.high > step.constant.high);
        break;

      case Opcode::AddF:
        a = range::Combine(range::Operation::kAdd, a, operand, true);
        break;
      case Opcode::SubF:
        a = range::Combine(range::Operation::kSub, a, operand, true);
        break;
      case Opcode::RSubF:
        a = range::Combine(range::Operation::kSub, operand, a, true);
        break;
      case Opcode::MulF:
        a = range::Combine(range::Operation::kMul, a, operand, true);
        break;
      case Opcode::DivF:
        a = range::Combine(range::Operation::kDiv, a, operand, true);
        break;
      case Opcode::NegF:
        if (!a.unknown && !range::HasNoValue(a)) a = {-a.high, -a.low, a.may_be_null, false};
        break;
      case Opcode::AbsF:
        a = range::Absolute(a);
        break;
      case Opcode::SingleF:
        may_fail |= mask != Coverage::kNone && !range::HasNoValue(a) &&
                    (a.unknown || !range::IsFinite(range::Single(a.low)) || !range::IsFinite(range::Single(a.high)));
        if (!a.unknown) {
          a.low = range::Single(a.low);
          a.high = range::Single(a.high);
        }
        break;
      case Opcode::IToF:  // rounds to nearest, and the ends are doubles, so no value passes them
      case Opcode::CanonF:
        break;

      default:
        // Any other instruction: MakeRangeProgram makes sure that it makes no row live again and writes no register.
        a = range::Unknown();
        may_fail |= mask != Coverage::kNone;
        mask = range::Narrowed(mask, Coverage::kSome);
        break;
    }
  }
  return mask == Coverage::kAll && may_fail ? Coverage::kSome : mask;
}

}  // namespace tessera::vm
