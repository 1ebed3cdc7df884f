// Expressions and conditions as instructions.
//
// The accumulator form: a value is computed into A (W for 128 bits); of two operands the right one is used in place if
// it is a column, constant, register or payload, else it is computed first and kept in a scratch register. NOT never
// becomes an instruction: Keep(e, false) pushes it to the leaves.

#include "compiler/section_builder.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "vm/meaning.h"

namespace tessera {

using vm::Opcode;
using vm::Operand;
using vm::Predicate;

namespace {

bool IsWide(const SqlType& t) { return t.storage() == StorageClass::kWide; }
bool IsFloat(const SqlType& t) { return t.storage() == StorageClass::kFloat; }

constexpr vm::Opcode After(vm::Opcode first, int n) { return static_cast<vm::Opcode>(static_cast<int>(first) + n); }
static_assert(After(Opcode::FilterEqI, 5) == Opcode::FilterGeI && After(Opcode::FilterEqF, 5) == Opcode::FilterGeF &&
              After(Opcode::FilterEqW, 5) == Opcode::FilterGeW && After(Opcode::FilterEqT, 5) == Opcode::FilterGeT);
static_assert(static_cast<int>(Function::kGe) - static_cast<int>(Function::kEq) == 5);

/// The comparison that is true where `f` is false, for values that are not NULL.
Function Negated(Function f) {
  switch (f) {
    case Function::kEq:
      return Function::kNe;
    case Function::kNe:
      return Function::kEq;
    case Function::kLt:
      return Function::kGe;
    case Function::kLe:
      return Function::kGt;
    case Function::kGt:
      return Function::kLe;
    default:
      return Function::kLt;
  }
}
/// The comparison with its sides swapped.
Function Swapped(Function f) {
  switch (f) {
    case Function::kLt:
      return Function::kGt;
    case Function::kLe:
      return Function::kGe;
    case Function::kGt:
      return Function::kLt;
    case Function::kGe:
      return Function::kLe;
    default:
      return f;
  }
}
bool IsComparison(const Expr& e) {
  return e.kind == Expr::Kind::kFunction && e.function >= Function::kEq && e.function <= Function::kGe;
}
bool IsConstant(const Expr& e) { return e.kind == Expr::Kind::kConstant; }
bool IsTrueConstant(const Expr& e) { return IsConstant(e) && !e.constant.null && e.constant.i64 != 0; }

int128_t SaturatingAdd(int128_t a, int128_t b) {
  int128_t r;
  if (__builtin_add_overflow(a, b, &r)) return a < 0 ? kInt128Min : kInt128Max;
  return r;
}
int128_t SaturatingMul(int128_t a, int128_t b) {
  int128_t r;
  if (__builtin_mul_overflow(a, b, &r)) return (a < 0) != (b < 0) ? kInt128Min : kInt128Max;
  return r;
}
ValueRange Sum(ValueRange a, ValueRange b) { return {SaturatingAdd(a.low, b.low), SaturatingAdd(a.high, b.high)}; }
ValueRange Minus(ValueRange a) {
  return {a.high == kInt128Min ? kInt128Max : -a.high, a.low == kInt128Min ? kInt128Max : -a.low};
}
ValueRange Product(ValueRange a, ValueRange b) {
  const int128_t p[4] = {SaturatingMul(a.low, b.low), SaturatingMul(a.low, b.high), SaturatingMul(a.high, b.low),
                         SaturatingMul(a.high, b.high)};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}
ValueRange Hull(ValueRange a, ValueRange b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }
ValueRange Cut(ValueRange a, const SqlType& type) {
  ValueRange t = RangeOfType(type);
  return {std::max(a.low, t.low), std::min(a.high, t.high)};
}

}  // namespace

ValueRange RangeOfType(const SqlType& type) {
  switch (type.id) {
    case TypeId::kBoolean:
      return {0, 1};
    case TypeId::kSmallint:
      return {INT16_MIN, INT16_MAX};
    case TypeId::kInteger:
      return {INT32_MIN, INT32_MAX};
    case TypeId::kDate:
      return {vm::kFirstDay, vm::kLastDay};
    case TypeId::kTimestamp:
      return {vm::kFirstDay * vm::kMicrosPerDay, (vm::kLastDay + 1) * vm::kMicrosPerDay - 1};
    case TypeId::kDecimal:
      return {-(PowerOf10(type.precision) - 1), PowerOf10(type.precision) - 1};
    case TypeId::kBigint:
      return {INT64_MIN, INT64_MAX};
    default:
      return {};
  }
}

ValueRange RangeByStatistics(const Query& q, const Expr& column) {
  if (column.kind != Expr::Kind::kColumn || column.column == kMarkColumn) return RangeOfType(column.type);
  const TableInfo* table = q.relations[static_cast<size_t>(column.relation)].table.get();
  if (table == nullptr || column.type.IsFloat()) return RangeOfType(column.type);
  const ColumnStatistics& s = table->statistics[static_cast<size_t>(column.column)];
  return s.has_range ? ValueRange{s.min, s.max} : RangeOfType(column.type);
}

int ConstantPool::Add(const Value& v) {
  std::string key(1, static_cast<char>(v.type.storage()));
  key += v.null ? 'n' : 'v';
  if (!v.null) {
    switch (v.type.storage()) {
      case StorageClass::kInt:
        key += static_cast<char>(v.type.id);  // the listing shows dates as dates
        key += static_cast<char>(v.type.scale);
        key.append(reinterpret_cast<const char*>(&v.i64), 8);
        break;
      case StorageClass::kFloat:
        key.append(reinterpret_cast<const char*>(&v.f64), 8);
        break;
      case StorageClass::kWide:
        key += static_cast<char>(v.type.scale);
        key.append(reinterpret_cast<const char*>(&v.wide), 16);
        break;
      case StorageClass::kText:
        key += v.text;
        break;
    }
  }
  auto [it, added] = known_.emplace(std::move(key), static_cast<int>(program_->constants.size()));
  if (added) program_->constants.push_back(v);
  return it->second;
}

Status Scope::Compute(const Expr& leaf, SectionBuilder*) {
  return Status(ErrorCode::kInternal, "a column is not at hand where it is used").At(leaf.position);
}

// ---- Instructions, registers, masks ---------------------------------------------------------------------------------

int SectionBuilder::Emit(Opcode op, int p1, int32_t p2, int32_t p3, int32_t p4) {
  if (op == Opcode::Filter) {
    filter_uses_.resize(std::max(filter_uses_.size(), static_cast<size_t>(p1) + 1));
    ++filter_uses_[static_cast<size_t>(p1)];
  }
  section.code.push_back({op, static_cast<uint16_t>(p1), p2, p3, p4});
  return static_cast<int>(section.code.size()) - 1;
}

int SectionBuilder::NewRegister(const SqlType& type) {
  for (size_t i = 0; i < free_registers_.size(); ++i) {
    const int r = free_registers_[i];
    if (section.registers[static_cast<size_t>(r)].storage() != type.storage()) continue;
    free_registers_.erase(free_registers_.begin() + static_cast<ptrdiff_t>(i));
    section.registers[static_cast<size_t>(r)] = type;
    return r;
  }
  section.registers.push_back(type);
  return static_cast<int>(section.registers.size()) - 1;
}
void SectionBuilder::FreeRegister(int r) { free_registers_.push_back(r); }

int SectionBuilder::NewMask() {
  if (!free_masks_.empty()) {
    const int m = free_masks_.back();
    free_masks_.pop_back();
    return m;
  }
  return section.masks++;
}

void SectionBuilder::Store(int r) {
  Emit(IsWide(section.registers[static_cast<size_t>(r)]) ? Opcode::StoreW : Opcode::Store, 0, r);
}
void SectionBuilder::Load(Operand o, const SqlType& type) {
  Emit(IsWide(type) ? Opcode::LoadW : Opcode::Load, 0, o.Pack());
}
void SectionBuilder::LoadConstant(const tessera::Value& v) { Load(Operand::Constant(constants_->Add(v)), v.type); }

void SectionBuilder::NullToZero() {
  const int r = NewRegister(SqlType::Of(TypeId::kBigint)), m = NewMask();
  Store(r);
  Emit(Opcode::MaskSave, m);
  Emit(Opcode::FilterNull);
  LoadConstant(tessera::Value::Int(SqlType::Of(TypeId::kBigint), 0));
  Store(r);
  Emit(Opcode::MaskLoad, m);
  Load(Operand::Register(r), SqlType::Of(TypeId::kBigint));
  FreeRegister(r);
  FreeMask(m);
}

Status SectionBuilder::CheckLimits() const {
  if (section.registers.size() > vm::kMaxRegisters || section.masks > vm::kMaxMasks ||
      section.code.size() > vm::kMaxInstructions || section.slots.size() > vm::kMaxSlots ||
      program_->constants.size() > vm::kMaxConstants) {
    return Unsupported("the statement needs a longer program than the machine runs", -1,
                       "Split it, or load a long list into a table and join with it.");
  }
  return Status::Ok();
}

// ---- Ranges ---------------------------------------------------------------------------------------------------------

ValueRange SectionBuilder::Range(const Expr& e) const {
  switch (e.kind) {
    case Expr::Kind::kConstant:
      if (e.constant.null) return {0, 0};
      if (e.type.storage() == StorageClass::kInt) return {e.constant.i64, e.constant.i64};
      if (IsWide(e.type)) return {e.constant.wide, e.constant.wide};
      return {};
    case Expr::Kind::kColumn:
    case Expr::Kind::kGroup:
    case Expr::Kind::kAggregate:
      return Cut(scope_->Range(e), e.type);
    case Expr::Kind::kOuter:
    case Expr::Kind::kSubquery:
      return {};
    case Expr::Kind::kFunction:
      break;
  }
  if (e.type.storage() != StorageClass::kInt && !IsWide(e.type)) return {};
  ValueRange r = RangeOfType(e.type);
  switch (e.function) {
    case Function::kAdd:
    case Function::kSub:
    case Function::kMul:
    case Function::kDiv:
    case Function::kMod:
    case Function::kNeg:
    case Function::kAbs:
      r = ExactRange(e);
      break;
    case Function::kCase: {
      r = Range(*e.args.back());
      for (size_t i = 1; i < e.args.size(); i += 2) r = Hull(r, Range(*e.args[i]));
      break;
    }
    case Function::kCast: {
      const Expr& a = *e.args[0];
      if (a.type.storage() != StorageClass::kInt && !IsWide(a.type)) break;
      if (e.type.id == TypeId::kTimestamp || a.type.id == TypeId::kTimestamp || e.type.id == TypeId::kBoolean) break;
      const int up = static_cast<int>(e.type.scale) - static_cast<int>(a.type.scale);
      r = Range(a);
      if (up > 0) r = Product(r, {PowerOf10(up), PowerOf10(up)});
      if (up < 0) r = {r.low / PowerOf10(-up) - 1, r.high / PowerOf10(-up) + 1};
      break;
    }
    default:
      break;
  }
  return Cut(r, e.type);  // beyond it the expression is an error, not a value
}

/// What exact arithmetic may give, before the result must fit its type. REQUIRES: kAdd..kAbs of integers or decimals.
ValueRange SectionBuilder::ExactRange(const Expr& e) const {
  const ValueRange a = Range(*e.args[0]);
  switch (e.function) {
    case Function::kAdd:
      return Sum(a, Range(*e.args[1]));
    case Function::kSub:
      return Sum(a, Minus(Range(*e.args[1])));
    case Function::kMul:
      return Product(a, Range(*e.args[1]));
    case Function::kDiv:
      return Hull(a, Minus(a));
    case Function::kMod:
      return Hull(Hull(a, Minus(a)), {0, 0});
    case Function::kNeg:
      return Minus(a);
    default:
      return Hull(a, Minus(a));
  }
}

bool SectionBuilder::CanFail(const Expr& e) const {
  if (e.kind != Expr::Kind::kFunction)
    return e.kind != Expr::Kind::kConstant && e.kind != Expr::Kind::kColumn && e.kind != Expr::Kind::kGroup;
  const ValueRange all = RangeOfType(e.type);
  const auto fits = [&](ValueRange r) { return r.Within(all.low, all.high); };
  switch (e.function) {
    case Function::kAdd:
    case Function::kSub:
    case Function::kMul:
    case Function::kDiv:
    case Function::kMod:
    case Function::kNeg:
    case Function::kAbs:
      return !IsFloat(e.type) && !fits(ExactRange(e));
    case Function::kRound:
    case Function::kFloor:
    case Function::kCeil:
      return !IsFloat(e.type);
    case Function::kAddDays:
    case Function::kAddMicros:
      return !fits(Sum(Range(*e.args[0]), Range(*e.args[1])));
    case Function::kCast: {
      const SqlType& from = e.args[0]->type;
      if (from.id == TypeId::kText || e.type.id == TypeId::kText) return true;
      if (from.id == TypeId::kNull || e.type.id == TypeId::kBoolean || IsFloat(e.type)) return false;
      if (IsFloat(from)) return true;
      if ((from.id == TypeId::kTimestamp) != (e.type.id == TypeId::kTimestamp)) return false;  // DATE to it or back
      const int up = static_cast<int>(e.type.scale) - static_cast<int>(from.scale);
      const ValueRange r = Range(*e.args[0]);
      if (up < 0) return !fits({r.low / PowerOf10(-up) - 1, r.high / PowerOf10(-up) + 1});
      return !fits(Product(r, {PowerOf10(up), PowerOf10(up)}));
    }
    case Function::kEq:
    case Function::kNe:
    case Function::kLt:
    case Function::kLe:
    case Function::kGt:
    case Function::kGe:
    case Function::kAnd:
    case Function::kOr:
    case Function::kNot:
    case Function::kIsNull:
    case Function::kIsNotNull:
    case Function::kIn:
    case Function::kCase:
    case Function::kExtract:
    case Function::kDateDiff:
      return false;
    default:
      return true;
  }
}

bool SectionBuilder::IsNoOp(const Expr& e) const {
  if (e.kind != Expr::Kind::kFunction || e.function != Function::kCast) return false;
  const SqlType &from = e.args[0]->type, &to = e.type;
  if (from.id == to.id && from.id != TypeId::kDecimal) return from.id != TypeId::kText;
  if (IsFloat(from) || IsFloat(to)) return IsFloat(from) && to.id == TypeId::kDouble;
  if (from.storage() != StorageClass::kInt || to.storage() != StorageClass::kInt || from.scale != to.scale)
    return false;
  if (to.id == TypeId::kBoolean || (from.id == TypeId::kTimestamp) != (to.id == TypeId::kTimestamp)) return false;
  return !CanFail(e);
}

// ---- Values ---------------------------------------------------------------------------------------------------------

/// Whether `e` is at hand as an operand.
bool SectionBuilder::Simple(const Expr& e, Operand* o) {
  switch (e.kind) {
    case Expr::Kind::kConstant:
      *o = Operand::Constant(
          constants_->Add(e.constant.type.id == TypeId::kNull ? tessera::Value::Null(e.type) : e.constant));
      return true;
    case Expr::Kind::kColumn:
    case Expr::Kind::kGroup:
    case Expr::Kind::kAggregate:
      return scope_->Find(e, this, o);
    case Expr::Kind::kFunction:
      return scope_->FindComputed(e, this, o);
    case Expr::Kind::kOuter:
    case Expr::Kind::kSubquery:
      return false;
  }
  return false;
}

Status SectionBuilder::Key(const Expr& e) {
  TESSERA_TRY(Value(e));
  if (IsFloat(e.type)) Emit(Opcode::CanonF);
  return Status::Ok();
}

/// The value of `e`, whose type may be narrow, in W.
Status SectionBuilder::Wide(const Expr& e) {
  TESSERA_TRY(Value(e));
  if (!IsWide(e.type)) Widen();
  return Status::Ok();
}

Status SectionBuilder::Value(const Expr& e) {
  Operand o;
  if (Simple(e, &o)) {
    Load(o, e.type);
    return Status::Ok();
  }
  if (e.kind != Expr::Kind::kFunction) return scope_->Compute(e, this);
  const Expr* column = nullptr;
  if (!IsWide(e.type) && DictionaryColumn(e, &column)) {
    int map = -1;
    TESSERA_TRY(MapThroughDictionary(e, *column, false, true, &map));
    const int plain = scope_->TableSlot(*column, this);
    vm::Slot slot{section.slots[static_cast<size_t>(plain)].column, e.type, map};
    section.slots.push_back(slot);
    Load(Operand::Slot(static_cast<int>(section.slots.size()) - 1), e.type);
    return Status::Ok();
  }
  switch (e.function) {
    case Function::kAdd:
    case Function::kSub:
    case Function::kMul:
    case Function::kDiv:
    case Function::kMod:
    case Function::kNeg:
    case Function::kAbs:
      return Arithmetic(e);
    case Function::kRound:
    case Function::kFloor:
    case Function::kCeil:
      return Round(e);
    case Function::kEq:
    case Function::kNe:
    case Function::kLt:
    case Function::kLe:
    case Function::kGt:
    case Function::kGe:
    case Function::kAnd:
    case Function::kOr:
    case Function::kNot:
    case Function::kIsNull:
    case Function::kIsNotNull:
    case Function::kIn:
    case Function::kLike:
      return Truth(e);
    case Function::kCase:
      return Case(e);
    case Function::kCast:
      return Cast(e);
    case Function::kConcat:
    case Function::kUpper:
    case Function::kLower:
    case Function::kLength:
    case Function::kSubstring:
    case Function::kTrim:
    case Function::kLtrim:
    case Function::kRtrim:
      return TextFunction(e);
    case Function::kExtract:
    case Function::kAddMonths:
    case Function::kAddDays:
    case Function::kAddMicros:
    case Function::kDateDiff:
      return DateFunction(e);
  }
  return Status(ErrorCode::kInternal, "an expression has no instructions").At(e.position);
}

/// accumulator = left op right, in A, or in W if `wide`.
Status SectionBuilder::Operands(const Expr& left, const Expr& right, bool wide, Opcode op, Opcode reversed,
                                bool has_reversed) {
  auto compute = [&](const Expr& e) { return wide ? Wide(e) : Value(e); };
  auto simple = [&](const Expr& e, Operand* o) { return wide == IsWide(e.type) && Simple(e, o); };
  Operand o;
  if (simple(right, &o)) {
    TESSERA_TRY(compute(left));
    Emit(op, 0, o.Pack());
    return Status::Ok();
  }
  if (has_reversed && simple(left, &o)) {
    TESSERA_TRY(compute(right));
    Emit(reversed, 0, o.Pack());
    return Status::Ok();
  }
  TESSERA_TRY(compute(right));
  const int r = NewRegister(wide && !IsWide(right.type) ? SqlType::Decimal(38, 0) : right.type);
  Store(r);
  TESSERA_TRY(compute(left));
  Emit(op, 0, Operand::Register(r).Pack());
  FreeRegister(r);
  return Status::Ok();
}

/// The accumulator, whose values lie in `range`, must hold values of `type`.
Status SectionBuilder::CheckType(const SqlType& type, bool wide, ValueRange range) {
  const ValueRange all = RangeOfType(type);
  if (range.Within(all.low, all.high)) return Status::Ok();
  if (wide) {
    Emit(Opcode::CheckW, 0, constants_->Wide(all.low), constants_->Wide(all.high), vm::PackType(type));
  } else {
    // A is 64 bits wide: what is out of those was caught by the operation.
    if (all.low <= INT64_MIN && all.high >= INT64_MAX) return Status::Ok();
    Emit(Opcode::CheckI, 0, constants_->Int(Low64(all.low)), constants_->Int(Low64(all.high)), vm::PackType(type));
  }
  return Status::Ok();
}

Status SectionBuilder::Arithmetic(const Expr& e) {
  const Expr& a = *e.args[0];
  const bool unary = e.function == Function::kNeg || e.function == Function::kAbs;
  if (IsFloat(e.type)) {
    if (unary) {
      TESSERA_TRY(Value(a));
      Emit(e.function == Function::kNeg ? Opcode::NegF : Opcode::AbsF);
    } else {
      Opcode op = Opcode::AddF, reversed = Opcode::AddF;
      bool has_reversed = true;
      switch (e.function) {
        case Function::kSub:
          op = Opcode::SubF;
          reversed = Opcode::RSubF;
          break;
        case Function::kMul:
          op = reversed = Opcode::MulF;
          break;
        case Function::kDiv:
          op = Opcode::DivF;
          has_reversed = false;
          break;
        case Function::kMod:
          op = Opcode::ModF;
          has_reversed = false;
          break;
        default:
          break;
      }
      TESSERA_TRY(Operands(a, *e.args[1], false, op, reversed, has_reversed));
    }
    if (e.type.id == TypeId::kReal) Emit(Opcode::SingleF);
    return Status::Ok();
  }
  // Exact: the range of the result decides between 64 bits unchecked, 64 bits checked and 128 bits.
  const ValueRange exact = ExactRange(e);
  Opcode narrow = Opcode::AddI, checked = Opcode::AddIX, reversed = Opcode::AddI, reversed_checked = Opcode::AddIX;
  Opcode wide = Opcode::AddW, wide_reversed = Opcode::AddW;
  bool has_reversed = true;
  switch (e.function) {
    case Function::kSub:
      narrow = Opcode::SubI, checked = Opcode::SubIX, reversed = Opcode::RSubI, reversed_checked = Opcode::RSubIX;
      wide = Opcode::SubW, wide_reversed = Opcode::RSubW;
      break;
    case Function::kMul:
      narrow = reversed = Opcode::MulI, checked = reversed_checked = Opcode::MulIX;
      wide = wide_reversed = Opcode::MulW;
      break;
    case Function::kDiv:
      narrow = checked = Opcode::DivI, wide = Opcode::DivW;
      has_reversed = false;
      break;
    case Function::kMod:
      narrow = checked = Opcode::ModI, wide = Opcode::ModW;
      has_reversed = false;
      break;
    default:
      break;
  }
  const bool args_wide = IsWide(a.type) || (!unary && IsWide(e.args[1]->type));
  const bool in_wide = args_wide || (IsWide(e.type) && !exact.Fits64());
  const bool safe = exact.Fits64();
  if (unary) {
    TESSERA_TRY(in_wide ? Wide(a) : Value(a));
    if (e.function == Function::kAbs) {
      Emit(in_wide ? Opcode::AbsW : Opcode::AbsI);
    } else if (in_wide) {
      Emit(Opcode::RSubW, 0, Operand::Constant(constants_->Wide(0)).Pack());
    } else {
      Emit(safe ? Opcode::RSubI : Opcode::RSubIX, 0, Operand::Constant(constants_->Int(0)).Pack());
    }
  } else if (in_wide) {
    TESSERA_TRY(Operands(a, *e.args[1], true, wide, wide_reversed, has_reversed));
  } else {
    TESSERA_TRY(
        Operands(a, *e.args[1], false, safe ? narrow : checked, safe ? reversed : reversed_checked, has_reversed));
  }
  TESSERA_TRY(CheckType(e.type, in_wide, exact));
  if (in_wide && !IsWide(e.type)) Narrow();
  if (!in_wide && IsWide(e.type)) Widen();
  return Status::Ok();
}

/// Multiplies the accumulator by 10^digits, or divides by 10^-digits rounding half away from zero; `range` follows.
Status SectionBuilder::ScaleBy(int digits, bool wide, ValueRange* range) {
  if (digits == 0) return Status::Ok();
  const int128_t factor = PowerOf10(digits < 0 ? -digits : digits);
  const Operand c =
      Operand::Constant(wide || factor > INT64_MAX ? constants_->Wide(factor) : constants_->Int(Low64(factor)));
  if (digits > 0) {
    *range = Product(*range, {factor, factor});
    Emit(wide ? Opcode::MulW : range->Fits64() ? Opcode::MulI : Opcode::MulIX, 0, c.Pack());
  } else {
    Emit(wide ? Opcode::DivRoundW : Opcode::DivRoundI, 0, c.Pack());
    *range = {range->low / factor - 1, range->high / factor + 1};
  }
  return Status::Ok();
}

Status SectionBuilder::Round(const Expr& e) {
  const Expr& a = *e.args[0];
  int digits = 0;
  if (e.args.size() > 1) {
    const Expr& n = *e.args[1];
    if (!IsConstant(n))
      return Unsupported("ROUND with a number of digits that is not a constant is not supported", n.position);
    if (n.constant.null) {
      LoadConstant(tessera::Value::Null(e.type));
      return Status::Ok();
    }
    digits = static_cast<int>(std::clamp<int64_t>(n.constant.i64, -400, 400));
  }
  if (IsFloat(e.type)) {
    TESSERA_TRY(Value(a));
    if (e.function == Function::kFloor) {
      Emit(Opcode::FloorF);
    } else if (e.function == Function::kCeil) {
      Emit(Opcode::CeilF);
    } else if (e.args.size() > 1) {
      Emit(Opcode::RoundDigitsF, 0, 0, digits);
    } else {
      Emit(Opcode::RoundF);
    }
    if (e.type.id == TypeId::kReal) Emit(Opcode::SingleF);
    return Status::Ok();
  }
  // Exact. `drop` digits of the argument's scale go; the result keeps e.type.scale of them.
  bool wide = IsWide(a.type) || IsWide(e.type);
  const int scale = a.type.scale;
  const int kept = e.function == Function::kRound ? digits : 0;
  const int drop = scale - kept;
  ValueRange range = Range(a);
  TESSERA_TRY(wide ? Wide(a) : Value(a));
  if (drop > 0) {
    if (drop > 38) {  // nothing is left of it
      LoadConstant(IsWide(e.type) ? tessera::Value::Wide(e.type, 0) : tessera::Value::Int(e.type, 0));
      return Status::Ok();
    }
    const int128_t factor = PowerOf10(drop);
    if (factor > INT64_MAX && !wide) {
      Widen();
      wide = true;
    }
    const int32_t c = Operand::Constant(wide ? constants_->Wide(factor) : constants_->Int(Low64(factor))).Pack();
    const int32_t zero = Operand::Constant(wide ? constants_->Wide(0) : constants_->Int(0)).Pack();
    if (e.function == Function::kRound) {
      Emit(wide ? Opcode::DivRoundW : Opcode::DivRoundI, 0, c);
    } else if (e.function == Function::kFloor) {
      Emit(wide ? Opcode::FloorDivW : Opcode::FloorDivI, 0, c);
    } else {  // ceil(x) = -floor(-x)
      Emit(wide ? Opcode::RSubW : Opcode::RSubIX, 0, zero);
      Emit(wide ? Opcode::FloorDivW : Opcode::FloorDivI, 0, c);
      Emit(wide ? Opcode::RSubW : Opcode::RSubIX, 0, zero);
    }
    range = {range.low / factor - 1, range.high / factor + 1};
    TESSERA_TRY(ScaleBy(static_cast<int>(e.type.scale) - kept, wide, &range));
  } else {
    TESSERA_TRY(ScaleBy(static_cast<int>(e.type.scale) - scale, wide, &range));
  }
  TESSERA_TRY(CheckType(e.type, wide, range));
  if (wide && !IsWide(e.type)) Narrow();
  return Status::Ok();
}

Status SectionBuilder::Cast(const Expr& e) {
  const Expr& a = *e.args[0];
  const SqlType from = a.type, to = e.type;
  if (from.id == TypeId::kNull) {
    LoadConstant(tessera::Value::Null(to));
    return Status::Ok();
  }
  if (to.id == TypeId::kText) {
    TESSERA_TRY(Value(a));
    if (from.id != TypeId::kText) {
      Emit(IsWide(from) ? Opcode::WToT : IsFloat(from) ? Opcode::FToT : Opcode::IToT, 0, 0, vm::PackType(from));
    }
    if (to.length > 0 && (from.id != TypeId::kText || from.length == 0 || from.length > to.length))
      Emit(Opcode::CutT, 0, 0, to.length);
    return Status::Ok();
  }
  if (from.id == TypeId::kText) {
    TESSERA_TRY(Value(a));
    Emit(IsWide(to) ? Opcode::TToW : IsFloat(to) ? Opcode::TToF : Opcode::TToI, 0, 0, vm::PackType(to));
    return Status::Ok();
  }
  if (to.id == TypeId::kBoolean && from.id != TypeId::kBoolean) {
    // x <> 0, with NULL for NULL.
    Expr zero;
    zero.kind = Expr::Kind::kConstant;
    zero.type = from;
    zero.constant = IsFloat(from)  ? tessera::Value::Float(from, 0)
                    : IsWide(from) ? tessera::Value::Wide(from, 0)
                                   : tessera::Value::Int(from, 0);
    Expr compare;
    compare.kind = Expr::Kind::kFunction;
    compare.function = Function::kNe;
    compare.type = to;
    compare.nullable = a.nullable;
    compare.args.push_back(a.Clone());
    compare.args.push_back(zero.Clone());
    return Truth(compare);
  }
  if (IsFloat(from) && IsFloat(to)) {
    TESSERA_TRY(Value(a));
    if (to.id == TypeId::kReal && from.id != TypeId::kReal) Emit(Opcode::SingleF);
    return Status::Ok();
  }
  if (IsFloat(to)) {
    TESSERA_TRY(Value(a));
    Emit(IsWide(from) ? Opcode::WToF : Opcode::IToF);
    if (from.scale > 0)
      Emit(Opcode::DivF, 0, Operand::Constant(constants_->Float(static_cast<double>(PowerOf10(from.scale)))).Pack());
    if (to.id == TypeId::kReal) Emit(Opcode::SingleF);
    return Status::Ok();
  }
  if (IsFloat(from)) {
    TESSERA_TRY(Value(a));
    if (to.id == TypeId::kDecimal) {
      if (to.scale > 0)
        Emit(Opcode::MulF, 0, Operand::Constant(constants_->Float(static_cast<double>(PowerOf10(to.scale)))).Pack());
      Emit(Opcode::FToW);
      TESSERA_TRY(CheckType(to, true, {}));
      if (!IsWide(to)) Narrow();
    } else {
      Emit(Opcode::FToI);
      TESSERA_TRY(CheckType(to, false, {INT64_MIN, INT64_MAX}));
    }
    return Status::Ok();
  }
  if (to.id == TypeId::kTimestamp && from.id == TypeId::kDate) {
    TESSERA_TRY(Value(a));
    Emit(Opcode::MulI, 0, Operand::Constant(constants_->Int(vm::kMicrosPerDay)).Pack());
    return Status::Ok();
  }
  if (to.id == TypeId::kDate && from.id == TypeId::kTimestamp) {
    TESSERA_TRY(Value(a));
    Emit(Opcode::FloorDivI, 0, Operand::Constant(constants_->Int(vm::kMicrosPerDay)).Pack());
    return Status::Ok();
  }
  // Integers and decimals of any scale.
  const int digits = static_cast<int>(to.scale) - static_cast<int>(from.scale);
  ValueRange range = Range(a);
  const ValueRange scaled = digits > 0 ? Product(range, {PowerOf10(digits), PowerOf10(digits)}) : range;
  const bool factor_wide = (digits < 0 ? -digits : digits) > 18;
  const bool wide = IsWide(from) || factor_wide || (IsWide(to) && !scaled.Fits64());
  TESSERA_TRY(wide ? Wide(a) : Value(a));
  TESSERA_TRY(ScaleBy(digits, wide, &range));
  TESSERA_TRY(CheckType(to, wide, range));
  if (wide && !IsWide(to)) Narrow();
  if (!wide && IsWide(to)) Widen();
  return Status::Ok();
}

Status SectionBuilder::DateFunction(const Expr& e) {
  const Expr& a = *e.args[0];
  const bool timestamp = a.type.id == TypeId::kTimestamp;
  switch (e.function) {
    case Function::kExtract: {
      TESSERA_TRY(Value(a));
      if (timestamp && (e.field == DateField::kSecond || e.field == DateField::kEpoch) && IsFloat(e.type)) {
        // Seconds with their fraction.
        if (e.field == DateField::kSecond) {
          const int r = NewRegister(a.type);
          Store(r);
          const int32_t minute = Operand::Constant(constants_->Int(60'000'000)).Pack();
          Emit(Opcode::FloorDivI, 0, minute);
          Emit(Opcode::MulI, 0, minute);
          Emit(Opcode::RSubI, 0, Operand::Register(r).Pack());
          FreeRegister(r);
        }
        Emit(Opcode::IToF);
        Emit(Opcode::DivF, 0, Operand::Constant(constants_->Float(1e6)).Pack());
        return Status::Ok();
      }
      Emit(timestamp ? Opcode::DatePartT : Opcode::DatePartD, 0, 0, static_cast<int32_t>(e.field));
      if (IsFloat(e.type)) Emit(Opcode::IToF);
      return Status::Ok();
    }
    case Function::kAddMonths:
      return Operands(a, *e.args[1], false, timestamp ? Opcode::AddMonthsT : Opcode::AddMonthsD, Opcode::AddI, false);
    case Function::kAddDays:
    case Function::kAddMicros: {
      const ValueRange range = Sum(Range(a), Range(*e.args[1]));
      TESSERA_TRY(Operands(a, *e.args[1], false, range.Fits64() ? Opcode::AddI : Opcode::AddIX,
                           range.Fits64() ? Opcode::AddI : Opcode::AddIX, true));
      return CheckType(e.type, false, range);
    }
    default:
      return Operands(a, *e.args[1], false, Opcode::SubI, Opcode::RSubI, true);
  }
}

Status SectionBuilder::TextFunction(const Expr& e) {
  const Expr& a = *e.args[0];
  switch (e.function) {
    case Function::kConcat:
      return Operands(a, *e.args[1], false, Opcode::ConcatT, Opcode::ConcatT, false);
    case Function::kSubstring: {
      // From and length are operands; what is not at hand goes through registers.
      int32_t operands[2] = {0, -1};
      std::vector<int> scratch;
      for (size_t k = 1; k < e.args.size(); ++k) {
        Operand o;
        if (!Simple(*e.args[k], &o)) {
          TESSERA_TRY(Value(*e.args[k]));
          const int r = NewRegister(e.args[k]->type);
          Store(r);
          scratch.push_back(r);
          o = Operand::Register(r);
        }
        operands[k - 1] = o.Pack();
      }
      TESSERA_TRY(Value(a));
      Emit(Opcode::SubstringT, 0, operands[0], operands[1]);
      for (int r : scratch) FreeRegister(r);
      return Status::Ok();
    }
    default:
      break;
  }
  TESSERA_TRY(Value(a));
  switch (e.function) {
    case Function::kUpper:
      Emit(Opcode::UpperT);
      break;
    case Function::kLower:
      Emit(Opcode::LowerT);
      break;
    case Function::kLength:
      Emit(Opcode::LengthT);
      break;
    case Function::kTrim:
      Emit(Opcode::TrimT);
      break;
    case Function::kLtrim:
      Emit(Opcode::TrimLeftT);
      break;
    default:
      Emit(Opcode::TrimRightT);
      break;
  }
  return Status::Ok();
}

Status SectionBuilder::Case(const Expr& e) {
  const Expr& otherwise = *e.args.back();
  // An ELSE that cannot fail is computed for all rows before the others: then nobody has to know which are left.
  const bool otherwise_first = !CanFail(otherwise);
  const bool one = otherwise_first && e.args.size() == 3;
  const int result = NewRegister(e.type), entry = NewMask(), taken = one ? -1 : NewMask();
  if (otherwise_first) {
    TESSERA_TRY(Value(otherwise));
    Store(result);
  }
  Emit(Opcode::MaskSave, entry);
  if (!one) Emit(Opcode::MaskClear, taken);
  for (size_t i = 0; i + 1 < e.args.size(); i += 2) {
    if (i > 0) {
      Emit(Opcode::MaskLoad, entry);
      Emit(Opcode::MaskAndNot, taken);
    }
    TESSERA_TRY(Keep(*e.args[i]));
    if (!one) Emit(Opcode::MaskOr, taken);
    TESSERA_TRY(Value(*e.args[i + 1]));
    Store(result);
  }
  Emit(Opcode::MaskLoad, entry);
  if (!otherwise_first) {
    Emit(Opcode::MaskAndNot, taken);
    TESSERA_TRY(Value(otherwise));
    Store(result);
    Emit(Opcode::MaskLoad, entry);
  }
  Load(Operand::Register(result), e.type);
  FreeRegister(result);
  FreeMask(entry);
  if (!one) FreeMask(taken);
  return Status::Ok();
}

/// A condition as a BOOLEAN value: 1 where it is true, 0 where it is false, NULL elsewhere.
Status SectionBuilder::Truth(const Expr& e) {
  const SqlType boolean = SqlType::Of(TypeId::kBoolean);
  const int result = NewRegister(boolean), entry = NewMask();
  Emit(Opcode::MaskSave, entry);
  LoadConstant(e.nullable ? tessera::Value::Null(boolean) : tessera::Value::Int(boolean, 0));
  Store(result);
  TESSERA_TRY(Keep(e));
  LoadConstant(tessera::Value::Int(boolean, 1));
  Store(result);
  Emit(Opcode::MaskLoad, entry);
  if (e.nullable) {
    TESSERA_TRY(Keep(e, false));
    LoadConstant(tessera::Value::Int(boolean, 0));
    Store(result);
    Emit(Opcode::MaskLoad, entry);
  }
  Load(Operand::Register(result), boolean);
  FreeRegister(result);
  FreeMask(entry);
  return Status::Ok();
}

// ---- Conditions -----------------------------------------------------------------------------------------------------

void SectionBuilder::KeepNone() {
  LoadConstant(tessera::Value::Int(SqlType::Of(TypeId::kBoolean), 0));
  Emit(Opcode::FilterTrue);
}

int SectionBuilder::AddPredicate(const Predicate& p) {
  for (size_t i = 0; i < section.predicates.size(); ++i) {
    if (section.predicates[i] == p) return static_cast<int>(i);
  }
  section.predicates.push_back(p);
  return static_cast<int>(section.predicates.size()) - 1;
}

/// A condition on one encoded column becomes a predicate: returns true if it was handled.
bool SectionBuilder::PredicateOn(const Expr& e, bool truth) {
  if (e.kind != Expr::Kind::kFunction || e.args.empty()) return false;
  Predicate p;
  const bool swapped = IsComparison(e) && IsConstant(*e.args[0]);
  const Expr& column = *e.args[swapped ? 1 : 0];
  if (column.kind != Expr::Kind::kColumn) return false;
  auto constant = [&](const Expr& c) { return constants_->Add(c.constant); };
  if (IsComparison(e)) {
    const Expr& c = *e.args[swapped ? 0 : 1];
    if (!IsConstant(c)) return false;
    if (c.constant.null) {
      KeepNone();
      return true;
    }
    if (c.constant.type.storage() != column.type.storage() || c.constant.type.scale != column.type.scale) return false;
    Function f = swapped ? Swapped(e.function) : e.function;
    if (!truth) f = Negated(f);
    const int k = constant(c);
    switch (f) {
      case Function::kNe:
        p.negated = true;
        [[fallthrough]];
      case Function::kEq:
        p.low = p.high = k;
        break;
      case Function::kLt:
        p.high = k;
        p.high_inclusive = false;
        break;
      case Function::kLe:
        p.high = k;
        break;
      case Function::kGt:
        p.low = k;
        p.low_inclusive = false;
        break;
      default:
        p.low = k;
        break;
    }
  } else if (e.function == Function::kIsNull || e.function == Function::kIsNotNull) {
    p.kind = (e.function == Function::kIsNull) == truth ? Predicate::Kind::kIsNull : Predicate::Kind::kIsNotNull;
  } else if (e.function == Function::kIn) {
    p.kind = Predicate::Kind::kIn;
    p.negated = !truth;
    for (size_t i = 1; i < e.args.size(); ++i) {
      const Expr& c = *e.args[i];
      if (!IsConstant(c)) return false;
      if (c.constant.null) {
        if (!truth) {  // x NOT IN (..., NULL) is never true
          KeepNone();
          return true;
        }
        continue;
      }
      if (c.constant.type.storage() != column.type.storage() || c.constant.type.scale != column.type.scale)
        return false;
      p.list.push_back(constant(c));
    }
  } else {
    return false;
  }
  p.slot = scope_->TableSlot(column, this);
  if (p.slot < 0) return false;
  // The second bound of a BETWEEN joins the first, which may stand anywhere in the run of filters before: one range
  // test instead of two (bench/README.md has the measurements).
  const bool one_bound = p.kind == Predicate::Kind::kRange && !p.negated && (p.low < 0) != (p.high < 0);
  for (size_t i = section.code.size(); one_bound && i-- > 0 && section.code[i].op == Opcode::Filter;) {
    Predicate& other = section.predicates[section.code[i].p1];
    const bool only_use = filter_uses_[section.code[i].p1] == 1;
    if (!only_use || other.kind != Predicate::Kind::kRange || other.negated || other.slot != p.slot ||
        (other.low < 0) == (other.high < 0) || (other.low < 0) == (p.low < 0)) {
      continue;
    }
    if (p.low >= 0) {
      other.low = p.low;
      other.low_inclusive = p.low_inclusive;
    } else {
      other.high = p.high;
      other.high_inclusive = p.high_inclusive;
    }
    return true;
  }
  Emit(Opcode::Filter, AddPredicate(p));
  return true;
}

/// Whether `e` is a function of one TEXT column of the scanned table that gives NULL for NULL and never fails: then it
/// is evaluated on the dictionary.
bool SectionBuilder::DictionaryColumn(const Expr& e, const Expr** column) const {
  switch (e.kind) {
    case Expr::Kind::kConstant:
      return !e.constant.null;
    case Expr::Kind::kColumn:
      if (e.type.id != TypeId::kText || scope_->TableSlot(e, const_cast<SectionBuilder*>(this)) < 0) return false;
      if (*column == nullptr) *column = &e;
      return (*column)->relation == e.relation && (*column)->column == e.column;
    case Expr::Kind::kFunction:
      break;
    default:
      return false;
  }
  switch (e.function) {
    case Function::kSubstring:
      if (e.args.size() > 2 && (!IsConstant(*e.args[2]) || e.args[2]->constant.null || e.args[2]->constant.i64 < 0))
        return false;
      break;
    case Function::kCast:
      if (e.type.id != TypeId::kText || e.args[0]->type.id != TypeId::kText) return false;
      break;
    case Function::kEq:
    case Function::kNe:
    case Function::kLt:
    case Function::kLe:
    case Function::kGt:
    case Function::kGe:
    case Function::kAnd:
    case Function::kOr:
    case Function::kNot:
    case Function::kIn:
    case Function::kLike:
    case Function::kConcat:
    case Function::kUpper:
    case Function::kLower:
    case Function::kLength:
    case Function::kTrim:
    case Function::kLtrim:
    case Function::kRtrim:
      break;
    default:
      return false;
  }
  for (const ExprPtr& a : e.args) {
    if (!DictionaryColumn(*a, column)) return false;
  }
  return *column != nullptr;
}

namespace {

/// The scope of a dictionary section: the column is slot 0.
class EntryScope : public Scope {
 public:
  bool Find(const Expr&, SectionBuilder*, Operand* operand) override {
    *operand = Operand::Slot(0);
    return true;
  }
};

}  // namespace

Status SectionBuilder::MapThroughDictionary(const Expr& e, const Expr& column, bool condition, bool truth,
                                            int* number) {
  EntryScope scope;
  SectionBuilder b(program_, constants_, &scope);
  b.section.source_kind = vm::Section::Source::kDictionary;
  b.section.sink = vm::Section::Sink::kMap;
  b.section.label = "entries of a text column";
  b.section.slots.push_back({0, column.type, -1});
  if (condition) {
    TESSERA_TRY(b.Keep(e, truth));
  } else {
    b.section.columns = {e.type};
    const int r = b.NewRegister(e.type);
    TESSERA_TRY(b.Value(e));
    b.Store(r);
  }
  b.Emit(Opcode::Emit);
  b.Emit(Opcode::End);
  TESSERA_TRY(b.CheckLimits());
  *number = static_cast<int>(program_->sections.size());
  program_->sections.push_back(std::move(b.section));
  return Status::Ok();
}

/// Keeps the rows for which at least one of `args` is true (false, if !truth).
Status SectionBuilder::Any(const std::vector<const Expr*>& args, bool truth) {
  const int entry = NewMask(), found = NewMask();
  Emit(Opcode::MaskSave, entry);
  Emit(Opcode::MaskClear, found);
  for (size_t i = 0; i < args.size(); ++i) {
    if (i > 0) {
      Emit(Opcode::MaskLoad, entry);
      Emit(Opcode::MaskAndNot, found);
    }
    TESSERA_TRY(Keep(*args[i], truth));
    Emit(Opcode::MaskOr, found);
  }
  Emit(Opcode::MaskLoad, found);
  FreeMask(entry);
  FreeMask(found);
  return Status::Ok();
}

Status SectionBuilder::Compare(Function f, const Expr& a, const Expr& b) {
  const bool wide = IsWide(a.type) || IsWide(b.type);
  const StorageClass storage = wide ? StorageClass::kWide : a.type.storage();
  const Opcode first = storage == StorageClass::kInt     ? Opcode::FilterEqI
                       : storage == StorageClass::kFloat ? Opcode::FilterEqF
                       : storage == StorageClass::kWide  ? Opcode::FilterEqW
                                                         : Opcode::FilterEqT;
  auto op = [&](Function g) { return After(first, static_cast<int>(g) - static_cast<int>(Function::kEq)); };
  return Operands(a, b, wide, op(f), op(Swapped(f)), true);
}

Status SectionBuilder::Keep(const Expr& e, bool truth) {
  TESSERA_TRY(CheckLimits());  // here already: PredicateOn looks through all the code there is
  if (IsConstant(e)) {
    if (e.constant.null || IsTrueConstant(e) != truth) KeepNone();
    return Status::Ok();
  }
  Operand computed;
  if (e.kind != Expr::Kind::kFunction || Simple(e, &computed)) {
    TESSERA_TRY(Value(e));
    Emit(truth ? Opcode::FilterTrue : Opcode::FilterFalse);
    return Status::Ok();
  }
  if (PredicateOn(e, truth)) return Status::Ok();
  const Expr* column = nullptr;
  if (e.function != Function::kAnd && DictionaryColumn(e, &column)) {
    Predicate p;
    p.kind = Predicate::Kind::kMapped;
    TESSERA_TRY(MapThroughDictionary(e, *column, true, truth, &p.map));
    p.slot = scope_->TableSlot(*column, this);
    Emit(Opcode::Filter, AddPredicate(p));
    return Status::Ok();
  }
  switch (e.function) {
    case Function::kNot:
      return Keep(*e.args[0], !truth);
    case Function::kAnd:
    case Function::kOr: {
      if ((e.function == Function::kAnd) == truth) {
        for (const ExprPtr& a : e.args) TESSERA_TRY(Keep(*a, truth));
        return Status::Ok();
      }
      std::vector<const Expr*> args;
      for (const ExprPtr& a : e.args) args.push_back(a.get());
      return Any(args, truth);
    }
    case Function::kIsNull:
    case Function::kIsNotNull: {
      const bool null = (e.function == Function::kIsNull) == truth;
      const Expr& a = *e.args[0];
      TESSERA_TRY(Value(a));
      if (IsWide(a.type)) {
        Emit(null ? Opcode::FilterNullW : Opcode::FilterNotNullW);
      } else {
        Emit(null ? Opcode::FilterNull : Opcode::FilterNotNull);
      }
      return Status::Ok();
    }
    case Function::kIn: {
      // In a register once, then compared with each constant.
      const Expr& a = *e.args[0];
      const bool has_null = std::any_of(e.args.begin() + 1, e.args.end(),
                                        [](const ExprPtr& c) { return IsConstant(*c) && c->constant.null; });
      if (has_null && !truth) {
        KeepNone();
        return Status::Ok();
      }
      const bool wide = IsWide(a.type);
      const Opcode equal = wide                         ? Opcode::FilterEqW
                           : IsFloat(a.type)            ? Opcode::FilterEqF
                           : a.type.id == TypeId::kText ? Opcode::FilterEqT
                                                        : Opcode::FilterEqI;
      const int r = NewRegister(a.type);
      TESSERA_TRY(Value(a));
      Store(r);
      const int entry = NewMask(), found = NewMask();
      Emit(Opcode::MaskSave, entry);
      Emit(Opcode::MaskClear, found);
      for (size_t i = 1; i < e.args.size(); ++i) {
        const Expr& c = *e.args[i];
        if (IsConstant(c) && c.constant.null) continue;
        Operand o;
        if (!Simple(c, &o)) return Status(ErrorCode::kInternal, "an IN list holds more than constants").At(c.position);
        if (!truth) {  // must differ from every one
          Load(Operand::Register(r), a.type);
          Emit(After(equal, 1), 0, o.Pack());
          continue;
        }
        if (i > 1) {
          Emit(Opcode::MaskLoad, entry);
          Emit(Opcode::MaskAndNot, found);
        }
        Load(Operand::Register(r), a.type);
        Emit(equal, 0, o.Pack());
        Emit(Opcode::MaskOr, found);
      }
      if (truth) Emit(Opcode::MaskLoad, found);
      FreeMask(entry);
      FreeMask(found);
      FreeRegister(r);
      return Status::Ok();
    }
    case Function::kLike: {
      const Expr& pattern = *e.args[1];
      if (!IsConstant(pattern))
        return Unsupported("LIKE with a pattern that is not a constant is not supported", pattern.position);
      if (pattern.constant.null) {
        KeepNone();
        return Status::Ok();
      }
      TESSERA_TRY(Value(*e.args[0]));
      Emit(truth ? Opcode::FilterLike : Opcode::FilterNotLike, 0, constants_->Add(pattern.constant));
      return Status::Ok();
    }
    default:
      break;
  }
  if (IsComparison(e)) return Compare(truth ? e.function : Negated(e.function), *e.args[0], *e.args[1]);
  TESSERA_TRY(Value(e));
  Emit(truth ? Opcode::FilterTrue : Opcode::FilterFalse);
  return Status::Ok();
}

}  // namespace tessera
