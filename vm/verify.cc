// The verifier: everything that interpreters rely on is checked here, once, before a program runs.
//
// Classes are tracked along the code, in order. One pass is enough, because the only backward jump (Next, NextOuter)
// goes to a point after its own Probe, where the accumulators have no value. At targets of forward jumps they have
// none either.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "vm/after/window.h"
#include "vm/meaning/aggregate.h"
#include "vm/meaning/format.h"
#include "vm/meaning/regex.h"
#include "vm/program/distribution.h"
#include "vm/program/math_function.h"
#include "vm/program/program.h"

namespace tessera::vm {

bool IsValueType(const SqlType& t) {
  if (t.id == TypeId::kNull || t.id > TypeId::kEnum) return false;
  if (t.id == TypeId::kDecimal) return t.precision >= 1 && t.precision <= 38 && t.scale <= t.precision;
  return true;
}

namespace {

AccumulatorSpec ClassOf(const SqlType& t) {
  switch (t.storage()) {
    case StorageClass::kInt:
      return AccumulatorSpec::I;
    case StorageClass::kFloat:
      return AccumulatorSpec::F;
    case StorageClass::kWide:
      return AccumulatorSpec::W;
    case StorageClass::kText:
      return AccumulatorSpec::T;
  }
  return AccumulatorSpec::None;
}

bool IsNarrow(AccumulatorSpec c) {
  return c == AccumulatorSpec::I || c == AccumulatorSpec::F || c == AccumulatorSpec::T;
}

template <class T>
bool InRange(int64_t i, const std::vector<T>& v) {
  return i >= 0 && static_cast<size_t>(i) < v.size();
}

class Verifier {
 public:
  explicit Verifier(const Program& p) : p_(p) {}

  Status Run() {
    if (p_.sections.empty() || p_.sections.size() > kMaxSections) return Fail("number of sections");
    if (p_.constants.size() > kMaxConstants) return Fail("number of constants");
    if (p_.joins.size() > kMaxJoins) return Fail("number of join tables");
    for (const Value& c : p_.constants) {
      if (!IsValueType(c.type)) return Fail("type of a constant");
    }
    for (size_t i = 0; i < p_.joins.size(); ++i) {
      const int32_t by = p_.joins[i].section;
      if (!InRange(by, p_.sections) || p_.sections[static_cast<size_t>(by)].sink != Section::Sink::kJoin ||
          p_.sections[static_cast<size_t>(by)].join != static_cast<int32_t>(i)) {
        return Fail("a join table has no section that builds it");
      }
      TESSERA_TRY(CheckStrategy(p_.joins[i]));
    }
    for (section_ = 0; section_ < static_cast<int>(p_.sections.size()); ++section_) {
      TESSERA_TRY(CheckSection(p_.sections[static_cast<size_t>(section_)]));
    }
    const Section& last = p_.sections.back();
    if (last.sink != Section::Sink::kRows) return Fail("the last section emits no rows");
    if (p_.columns.size() > last.columns.size()) return Fail("result columns");
    for (size_t i = 0; i < p_.columns.size(); ++i) {
      if (!IsValueType(p_.columns[i].type) || p_.columns[i].type.storage() != last.columns[i].storage())
        return Fail("type of a result column");
    }
    return Status::Ok();
  }

 private:
  Status Fail(const std::string& reason) const {
    std::string where = section_ < 0 ? "" : fmt::format("section {}", section_);
    if (address_ >= 0) {
      Opcode op = p_.sections[static_cast<size_t>(section_)].code[static_cast<size_t>(address_)].op;
      where += fmt::format(", instruction {} ({})", address_, op < Opcode::kCount ? Info(op).name : "unknown");
    }
    return {ErrorCode::kCorrupt, "program refused: " + where + (where.empty() ? "" : ": ") + reason};
  }

  Status CheckStrategy(const JoinSpec& j) {
    const Section& builder = p_.sections[static_cast<size_t>(j.section)];
    if (!IsKnown(j.strategy)) return Fail("strategy of a join table");
    if (Info(j.strategy).cuts && (j.unique || builder.keys != 0)) return Fail("a grid of a join table with keys");
    if (j.order == -1) return Status::Ok();
    if (!InRange(j.order, builder.columns)) return Fail("order of a join table");
    const AccumulatorSpec c = ClassOf(builder.columns[static_cast<size_t>(j.order)]);
    if (c != AccumulatorSpec::I && c != AccumulatorSpec::F) return Fail("class of the order of a join table");
    return Status::Ok();
  }

  Status CheckSection(const Section& s) {
    address_ = -1;
    if (s.source_kind > Section::Source::kSeries || s.sink > Section::Sink::kMap) return Fail("kind of source or sink");
    if (s.slots.size() > kMaxSlots || s.registers.size() > kMaxRegisters || s.masks < 0 || s.masks > kMaxMasks) {
      return Fail("more slots, registers or masks than the machine has");
    }
    if (s.code.empty() || s.code.size() > kMaxInstructions) return Fail("number of instructions");
    if (s.code.back().op != Opcode::End) return Fail("the last instruction is not End");
    const bool dictionary = s.source_kind == Section::Source::kDictionary;
    if (dictionary != (s.sink == Section::Sink::kMap)) return Fail("a dictionary section and its map belong together");
    if (s.source_kind == Section::Source::kTable && !InRange(s.source, p_.tables)) return Fail("source table");
    if (s.source_kind == Section::Source::kSection) {
      if (s.source < 0 || s.source >= section_) return Fail("source section is not an earlier one");
      Section::Sink sink = p_.sections[static_cast<size_t>(s.source)].sink;
      if (sink != Section::Sink::kRows && sink != Section::Sink::kGroups) return Fail("source section has no rows");
    }
    if (s.source_kind == Section::Source::kJoin) TESSERA_TRY(CheckJoin(s.source));
    if (s.source_kind == Section::Source::kOneRow && !s.slots.empty()) return Fail("one row has no columns");
    if (s.source_rows < 0 || (s.source_rows > 0 && s.source_kind != Section::Source::kSeries))
      return Fail("rows of a series");
    if (dictionary && (s.slots.size() != 1 || s.slots[0].column != 0 ||
                       s.slots[0].type.storage() != StorageClass::kText || s.slots[0].map != -1)) {
      return Fail("slots of a dictionary section");
    }
    for (const SqlType& t : s.registers) {
      if (!IsValueType(t)) return Fail("type of a register");
    }
    for (const SqlType& t : s.columns) {
      if (!IsValueType(t)) return Fail("type of a column");
    }
    for (const Slot& slot : s.slots) TESSERA_TRY(CheckSlot(s, slot));
    for (const Predicate& pred : s.predicates) TESSERA_TRY(CheckPredicate(s, pred));
    TESSERA_TRY(CheckSink(s));
    return CheckCode(s);
  }

  Status CheckMap(int32_t map) {
    if (!InRange(map, p_.sections) || map >= section_ ||
        p_.sections[static_cast<size_t>(map)].source_kind != Section::Source::kDictionary) {
      return Fail("a map is not an earlier dictionary section");
    }
    return Status::Ok();
  }

  Status CheckSlot(const Section& s, const Slot& slot) {
    if (!IsValueType(slot.type) || slot.column < 0) return Fail("a slot");
    if (slot.map >= 0) {
      if (s.source_kind != Section::Source::kTable) return Fail("a mapped slot of no stored table");
      TESSERA_TRY(CheckMap(slot.map));
      const Section& map = p_.sections[static_cast<size_t>(slot.map)];
      if (map.columns.size() != 1 || map.columns[0].storage() != slot.type.storage() || IsWide(slot.type)) {
        return Fail("type of a mapped slot");
      }
    }
    if (s.source_kind == Section::Source::kSection) {
      const std::vector<SqlType> from = TypesOfRows(p_.sections[static_cast<size_t>(s.source)]);
      if (!InRange(slot.column, from) || from[static_cast<size_t>(slot.column)].storage() != slot.type.storage()) {
        return Fail("a slot does not fit its source section");
      }
    }
    if (s.source_kind == Section::Source::kSeries &&
        (slot.column != 0 || slot.type.storage() != StorageClass::kInt || slot.map >= 0)) {
      return Fail("a slot of a series");
    }
    if (s.source_kind == Section::Source::kJoin) {
      const std::vector<SqlType>& from = Builder(s.source).columns;
      if (!InRange(slot.column, from) || from[static_cast<size_t>(slot.column)].storage() != slot.type.storage()) {
        return Fail("a slot does not fit its source join table");
      }
    }
    return Status::Ok();
  }

  Status CheckPredicate(const Section& s, const Predicate& pred) {
    if (s.source_kind != Section::Source::kTable) return Fail("a predicate on no stored table");
    if (pred.kind > Predicate::Kind::kKeyRange || !InRange(pred.slot, s.slots)) return Fail("a predicate");
    const Slot& slot = s.slots[static_cast<size_t>(pred.slot)];
    if (slot.map >= 0) return Fail("a predicate on a mapped slot");
    auto fits = [&](int32_t c) {
      return InRange(c, p_.constants) && !p_.constants[static_cast<size_t>(c)].null &&
             p_.constants[static_cast<size_t>(c)].type.storage() == slot.type.storage();
    };
    switch (pred.kind) {
      case Predicate::Kind::kRange:
        if ((pred.low != -1 && !fits(pred.low)) || (pred.high != -1 && !fits(pred.high)))
          return Fail("bound of a predicate");
        break;
      case Predicate::Kind::kIn:
        for (int32_t c : pred.list) {
          if (!fits(c)) return Fail("list of a predicate");
        }
        break;
      case Predicate::Kind::kMapped:
        if (slot.type.storage() != StorageClass::kText) return Fail("a mapped predicate on a column that is not TEXT");
        TESSERA_TRY(CheckMap(pred.map));
        break;
      case Predicate::Kind::kKeyRange:
        if (slot.type.storage() != StorageClass::kInt || !InRange(pred.join, p_.joins) || pred.negated)
          return Fail("a key range");
        TESSERA_TRY(CheckJoin(pred.join));
        if (p_.sections[static_cast<size_t>(p_.joins[static_cast<size_t>(pred.join)].section)].keys < 1)
          return Fail("a key range of no key");
        break;
      case Predicate::Kind::kIsNull:
      case Predicate::Kind::kIsNotNull:
        break;
    }
    return Status::Ok();
  }

  /// Checks that the join table was built by an earlier section.
  Status CheckJoin(int join) {
    if (!InRange(join, p_.joins) || p_.joins[static_cast<size_t>(join)].section >= section_)
      return Fail("join table is not built yet");
    return Status::Ok();
  }
  const Section& Builder(int join) const {
    return p_.sections[static_cast<size_t>(p_.joins[static_cast<size_t>(join)].section)];
  }

  Status CheckRepeat(const Section& s) {
    const bool plain =
        s.sink == Section::Sink::kRows && s.after.order.empty() && s.after.limit == -1 && s.after.offset == 0;
    const bool made = s.source_kind == Section::Source::kSection || s.source_kind == Section::Source::kOneRow;
    const bool inside = made && section_ + 1 < static_cast<int>(p_.sections.size());
    if (!plain || !inside || s.after.append_to != -1 || !InRange(s.after.repeat, s.columns) ||
        s.columns[static_cast<size_t>(s.after.repeat)].storage() != StorageClass::kInt) {
      return Fail("how often its rows stand");
    }
    return Status::Ok();
  }

  Status CheckByKey(const Section& s) {
    if (s.sink == Section::Sink::kJoin) return s.keys > 0 ? Status::Ok() : Fail("rows exchanged without a key");
    const bool plain = s.after.order.empty() && s.after.limit == -1 && s.after.offset == 0 && s.after.append_to == -1 &&
                       s.after.repeat == -1 && s.after.fold.kind == Section::Fold::kNone && s.after.windows.empty() &&
                       s.recursion.first == -1;
    if (s.sink != Section::Sink::kRows || s.keys == 0 || !plain ||
        section_ + 1 == static_cast<int>(p_.sections.size())) {
      return Fail("rows that are exchanged");
    }
    return Status::Ok();
  }

  Status CheckSpans(const Section& s) {
    const bool overlap = s.sink == Section::Sink::kJoin;
    uint32_t next = 0;
    for (const TabletSpan& span : s.placement.spans) {
      if (span.first > span.end || (!overlap && span.first != next)) return Fail("the ranks' tablets");
      next = span.end;
    }
    const bool right = s.source_kind == Section::Source::kTable && (s.placement.co_located || !overlap);
    return right ? Status::Ok() : Fail("the ranks' tablets");
  }

  Status CheckFold(const Section& s) {
    const auto keys = static_cast<size_t>(s.keys);
    const bool plain = s.sink == Section::Sink::kRows && s.after.limit == -1 && s.after.offset == 0 &&
                       s.after.append_to == -1 && s.after.repeat == -1 &&
                       section_ + 1 < static_cast<int>(p_.sections.size());
    if (!plain || s.after.fold.kind > Section::Fold::kCounts || keys >= s.columns.size() || s.after.order.size() < keys)
      return Fail("a fold of rows");
    for (size_t k = 0; k < keys; ++k) {
      if (s.after.order[k].column != static_cast<int32_t>(k)) return Fail("the order of a fold");
    }
    return CheckFoldOf(s.columns[keys], s.after.fold.kind, s.after.fold.constant);
  }

  /// The constant of a fold, and the class of the values.
  Status CheckFoldOf(const SqlType& type, Fold fold, int32_t constant) {
    const AccumulatorSpec value = ClassOf(type);
    if (fold == Fold::kCounts && value != AccumulatorSpec::T) return Fail("class of a fold");
    if (fold == Fold::kFirst || fold == Fold::kMode || fold == Fold::kCounts)
      return constant == -1 ? Status::Ok() : Fail("constant of a fold");
    if (!InRange(constant, p_.constants)) return Fail("constant of a fold");
    const Value& v = p_.constants[static_cast<size_t>(constant)];
    const bool joins = fold == Fold::kJoin;
    const bool fits =
        joins ? v.type.id == TypeId::kText : v.type.storage() == StorageClass::kFloat && v.f64 >= 0 && v.f64 <= 1;
    if (v.null || !fits) return Fail("constant of a fold");
    if (joins && value != AccumulatorSpec::T) return Fail("class of a fold");
    if (fold == Fold::kBetween && value != AccumulatorSpec::F && type.id != TypeId::kInterval)
      return Fail("class of a fold");
    return Status::Ok();
  }

  Status CheckAgain(const Section& s) {
    const bool plain = s.sink == Section::Sink::kRows && s.after.order.empty() && s.after.limit == -1 &&
                       s.after.offset == 0 && s.after.append_to == -1 && s.after.repeat == -1 &&
                       s.after.fold.kind == Section::Fold::kNone && s.after.windows.empty() &&
                       section_ + 1 < static_cast<int>(p_.sections.size());
    if (!plain || s.recursion.first < 0 || s.recursion.first >= section_ || s.recursion.limit < -1)
      return Fail("what it runs again");
    const Section& first = p_.sections[static_cast<size_t>(s.recursion.first)];
    const bool rows = first.sink == Section::Sink::kRows && first.after.windows.empty() && first.recursion.first == -1;
    if (!rows || first.columns.size() != s.columns.size() ||
        (s.recursion.distinct && s.columns.size() > kMaxGroupingKeys))
      return Fail("the rows that it replaces");
    for (size_t i = 0; i < s.columns.size(); ++i) {
      if (first.columns[i].storage() != s.columns[i].storage()) return Fail("types of the rows that it replaces");
    }
    for (int i = 0; i < static_cast<int>(p_.sections.size()); ++i) {
      const Section& other = p_.sections[static_cast<size_t>(i)];
      const bool inside = i > s.recursion.first && i <= section_;
      const bool reads = other.source_kind == Section::Source::kSection && other.source == s.recursion.first;
      if ((reads && !inside) || other.after.append_to == s.recursion.first || other.after.append_to == section_)
        return Fail("rows that are replaced are read");
      // Loops lie in each other, or one after the other.
      if (i != section_ && other.recursion.first != -1 && inside && other.recursion.first <= s.recursion.first)
        return Fail("loops that overlap");
    }
    return Status::Ok();
  }

  Status CheckWindows(const Section& s) {
    if (s.after.windows.empty()) return Status::Ok();
    const bool plain = s.sink == Section::Sink::kRows && s.after.limit == -1 && s.after.offset == 0 &&
                       s.after.append_to == -1 && s.after.repeat == -1 && s.after.fold.kind == Section::Fold::kNone &&
                       section_ + 1 < static_cast<int>(p_.sections.size());
    if (!plain || s.after.order.size() > kMaxWindowKeys || s.after.windows.size() > kMaxSlots)
      return Fail("windows of such rows");
    for (const Section& other : p_.sections) {
      if (other.after.append_to == section_) return Fail("windows of such rows");
    }
    for (const WindowSpec& w : s.after.windows) TESSERA_TRY(CheckWindow(s, w));
    return Status::Ok();
  }

  Status CheckWindow(const Section& s, const WindowSpec& w) {
    using F = WindowFunction;
    if (w.function > F::kFold || !IsValueType(w.type)) return Fail("function of a window");
    const auto keys = static_cast<int64_t>(s.after.order.size());
    if (w.partition_keys < 0 || w.order_keys < 0 || int64_t{w.partition_keys} + w.order_keys > keys)
      return Fail("keys of a window");
    // The class of a column of the emitted row; None if it is not there.
    const auto column = [&](int32_t c) {
      return InRange(c, s.columns) ? ClassOf(s.columns[static_cast<size_t>(c)]) : AccumulatorSpec::None;
    };
    const bool is_aggregate = w.function == F::kAggregate, folds = w.function == F::kFold;
    const bool shifts = w.function == F::kLag || w.function == F::kLead;
    const bool counts = shifts || w.function == F::kNtile || w.function == F::kNthValue;
    const bool of_value =
        folds || shifts || w.function == F::kFirstValue || w.function == F::kLastValue || w.function == F::kNthValue;
    AccumulatorSpec type = ClassOf(SqlType::Of(TypeId::kBigint));
    if (w.function == F::kPercentRank || w.function == F::kCumeDist) type = AccumulatorSpec::F;
    if (of_value) type = column(w.value);
    if (is_aggregate) {
      const std::span<const AccumulatorSpec> classes = ColumnClasses(w.aggregate);
      if (classes.empty()) return Fail("aggregate of a window");
      type = classes.front();
      const AccumulatorSpec takes = Info(w.aggregate).in;
      const bool fits = takes == AccumulatorSpec::None ? w.value == -1
                        : takes == AccumulatorSpec::X  ? IsNarrow(column(w.value))
                                                       : column(w.value) == takes;
      if (!fits) return Fail("argument of a window");
    } else if (!of_value && w.value != -1) {
      return Fail("argument of a window");
    }
    if (type == AccumulatorSpec::None || ClassOf(w.type) != type) return Fail("type of a window");
    if (w.count != -1 && (!counts || column(w.count) != AccumulatorSpec::I)) return Fail("number of a window");
    if (w.fallback != -1 && (!shifts || column(w.fallback) != type)) return Fail("fallback of a window");
    if (w.ignore_nulls && (!of_value || folds)) return Fail("NULLs of a window");
    if (w.distinct && !folds && (!is_aggregate || w.value == -1 || Info(w.aggregate).in == AccumulatorSpec::T))
      return Fail("different values of a window");
    if (folds != (w.fold != Fold::kNone) || (!folds && (w.fold_constant != -1 || !w.order.empty())) ||
        w.fold > Fold::kJoin || w.order.size() > kMaxWindowKeys) {
      return Fail("fold of a window");
    }
    for (const SortKey& k : w.order) {
      if (!InRange(k.column, s.columns)) return Fail("order of a window's values");
    }
    if (folds && (w.distinct || w.fold == Fold::kMode) && (w.order.empty() || w.order[0].column != w.value))
      return Fail("order of a window's values");
    if (folds) TESSERA_TRY(CheckFoldOf(w.type, w.fold, w.fold_constant));
    return CheckFrame(s, w);
  }

  Status CheckFrame(const Section& s, const WindowSpec& w) {
    using Bound = WindowFrame::Bound;
    const WindowFrame& f = w.frame;
    if (f.mode > WindowFrame::Mode::kGroups || f.exclusion > WindowFrame::Exclusion::kTies ||
        f.start > Bound::kFollowing || f.end > Bound::kUnboundedFollowing || f.end == Bound::kUnboundedPreceding ||
        f.start_offset < 0 || f.end_offset < 0 || (f.varies && f.mode != WindowFrame::Mode::kRange)) {
      return Fail("frame of a window");
    }
    const bool range = f.mode == WindowFrame::Mode::kRange;
    const bool from = range && HasOffset(f.start), to = range && HasOffset(f.end);
    const auto fits = [&](int32_t c, bool wanted) {
      if (!wanted) return c == -1;
      return InRange(c, s.columns) && InRange(f.key, s.columns) &&
             ClassOf(s.columns[static_cast<size_t>(c)]) == ClassOf(s.columns[static_cast<size_t>(f.key)]) &&
             ClassOf(s.columns[static_cast<size_t>(c)]) != AccumulatorSpec::T;
    };
    const auto counts = [&](WindowFrame::Bound b, int32_t c) {
      return c == -1 || (HasOffset(b) && InRange(c, s.columns) &&
                         ClassOf(s.columns[static_cast<size_t>(c)]) == AccumulatorSpec::I);
    };
    if (!range && f.key == -1 && counts(f.start, f.start_column) && counts(f.end, f.end_column)) return Status::Ok();
    if (!fits(f.key, from || to) || !fits(f.start_column, from) || !fits(f.end_column, to) ||
        ((from || to) && w.order_keys != 1)) {
      return Fail("range of a window");
    }
    return Status::Ok();
  }

  Status CheckSink(const Section& s) {
    const int most = s.sink == Section::Sink::kJoin ? kMaxKeys : kMaxGroupingKeys;
    if (s.keys < 0 || s.keys > most || static_cast<size_t>(s.keys) > s.columns.size()) return Fail("number of keys");
    if (s.sink != Section::Sink::kRows && (!s.after.order.empty() || s.after.limit != -1 || s.after.offset != 0))
      return Fail("order or limit without rows");
    if (s.after.limit < -1 || s.after.offset < 0) return Fail("limit or offset");
    for (const SortKey& k : s.after.order) {
      if (!InRange(k.column, s.columns)) return Fail("sort key");
    }
    if (s.sink != Section::Sink::kGroups) {
      if (!s.aggregates.empty()) return Fail("aggregates without groups");
      // The emitted row is registers r0 ..
      if (s.columns.size() > s.registers.size()) return Fail("columns without registers");
      for (size_t i = 0; i < s.columns.size(); ++i) {
        if (s.columns[i].storage() != s.registers[i].storage()) return Fail("type of an emitted register");
      }
    }
    if (s.sink == Section::Sink::kJoin &&
        (!InRange(s.join, p_.joins) || p_.joins[static_cast<size_t>(s.join)].section != section_)) {
      return Fail("the join table it builds");
    }
    if (s.after.append_to != -1) {
      if (!InRange(s.after.append_to, p_.sections) || s.after.append_to >= section_ || s.sink != Section::Sink::kRows)
        return Fail("what its rows are appended to");
      const Section& first = p_.sections[static_cast<size_t>(s.after.append_to)];
      const bool plain = s.after.order.empty() && s.after.limit == -1 && s.after.offset == 0;
      if (!plain || section_ + 1 == static_cast<int>(p_.sections.size()) || first.sink != Section::Sink::kRows ||
          first.after.fold.kind != Section::Fold::kNone || first.columns.size() != s.columns.size()) {
        return Fail("what its rows are appended to");
      }
      for (size_t i = 0; i < s.columns.size(); ++i) {
        if (first.columns[i].storage() != s.columns[i].storage()) return Fail("types of appended rows");
      }
      for (const Section& other : p_.sections) {
        const bool reads = other.source_kind == Section::Source::kSection && other.source == s.after.append_to;
        if (reads || (&other != &s && other.after.append_to == s.after.append_to))
          return Fail("rows that are moved away are read");
      }
    }
    if (s.after.repeat != -1) TESSERA_TRY(CheckRepeat(s));
    if (s.placement.by_key) TESSERA_TRY(CheckByKey(s));
    if (s.after.fold.kind != Section::Fold::kNone) TESSERA_TRY(CheckFold(s));
    TESSERA_TRY(CheckWindows(s));
    if (s.placement.co_located) {
      const bool has_keys = s.sink == Section::Sink::kJoin ? s.keys > 0 : !ExchangeKeys(s).empty();
      if (s.placement.by_key || !(has_keys || MakesPlainRows(s))) return Fail("rows that are not exchanged");
    }
    if (!s.placement.spans.empty()) TESSERA_TRY(CheckSpans(s));
    if (s.recursion.first != -1) TESSERA_TRY(CheckAgain(s));
    if (s.sink == Section::Sink::kMap && s.columns.size() > 1) return Fail("a map has one value");
    if (s.sink == Section::Sink::kMap && !s.columns.empty() && IsWide(s.columns[0]))
      return Fail("a map of wide values");
    if (s.sink == Section::Sink::kGroups) {
      for (const AggregateSpec& a : s.aggregates) {
        if (ColumnClasses(a.op).empty()) return Fail("an aggregate");
      }
      const std::vector<size_t> columns = AggregateColumns(s);
      if (s.columns.size() != columns.back()) return Fail("columns of a group table");
      for (size_t i = 0; i < s.aggregates.size(); ++i) {
        const std::span<const AccumulatorSpec> classes = ColumnClasses(s.aggregates[i].op);
        if (s.aggregates[i].type != s.columns[columns[i]]) return Fail("type of an aggregate");
        for (size_t k = 0; k < classes.size(); ++k) {
          if (ClassOf(s.columns[columns[i] + k]) != classes[k]) return Fail("type of an aggregate");
        }
      }
    }
    return Status::Ok();
  }

  /// The class of a Src operand, or None if the operand is out of range or not available here.
  AccumulatorSpec SourceClass(const Section& s, int32_t packed) const {
    Operand o = Operand::Unpack(packed);
    if (o.Pack() != packed) return AccumulatorSpec::None;
    switch (o.kind) {
      case OperandKind::kSlot:
        return o.table == 0 && InRange(o.index, s.slots) ? ClassOf(s.slots[o.index].type) : AccumulatorSpec::None;
      case OperandKind::kRegister:
        return o.table == 0 && InRange(o.index, s.registers) ? ClassOf(s.registers[o.index]) : AccumulatorSpec::None;
      case OperandKind::kConstant:
        return o.table == 0 && InRange(o.index, p_.constants) ? ClassOf(p_.constants[o.index].type)
                                                              : AccumulatorSpec::None;
      case OperandKind::kPayload: {
        if (!InRange(o.table, p_.joins) || !probed_[o.table]) return AccumulatorSpec::None;
        const Section& b = Builder(o.table);
        size_t column = static_cast<size_t>(b.keys) + o.index;
        return column < b.columns.size() ? ClassOf(b.columns[column]) : AccumulatorSpec::None;
      }
    }
    return AccumulatorSpec::None;
  }

  Status CheckCode(const Section& s) {
    AccumulatorSpec a = AccumulatorSpec::None;  // class of accumulator A now: I, F, T or none
    bool w = false;                             // accumulator W has a value
    bool grouped = false;
    probed_.assign(p_.joins.size(), false);
    std::vector<int32_t> probe_at(p_.joins.size(), -1);
    std::vector<bool> outer(p_.joins.size());  // probed by ProbeOuter
    std::vector<bool> target(s.code.size(), false);
    for (const Instruction& in : s.code) {
      // The head of a loop over matches is also reached from its end, with no value in the accumulators.
      if (in.op < Opcode::kCount && Info(in.op).role == Role::Next && InRange(in.p2, s.code))
        target[static_cast<size_t>(in.p2)] = true;
    }
    bool sank = false;
    for (size_t i = 0; i < s.code.size(); ++i) {
      address_ = static_cast<int>(i);
      const Instruction& in = s.code[i];
      if (in.op >= Opcode::kCount) return Fail("unknown opcode");
      const OpcodeInfo& info = Info(in.op);
      if (target[i]) {
        a = AccumulatorSpec::None;
        w = false;
      }
      // Accumulators before.
      AccumulatorSpec operand_class = info.in == AccumulatorSpec::X ? a : info.in;
      switch (info.in) {
        case AccumulatorSpec::None:
          break;
        case AccumulatorSpec::W:
          if (!w) return Fail("accumulator W has no value here");
          break;
        case AccumulatorSpec::X:
          if (!IsNarrow(a)) return Fail("accumulator A has no value here");
          break;
        default:
          if (a != info.in) return Fail("accumulator A has no value of this class here");
      }
      // Operands.
      const int32_t p[4] = {in.p1, in.p2, in.p3, in.p4};
      AccumulatorSpec loaded = AccumulatorSpec::None;
      for (int k = 0; k < 4; ++k) {
        const int32_t v = p[k];
        bool good = true;
        switch (info.p[k]) {
          case OperandSpec::None:
            good = v == 0;
            break;
          case OperandSpec::Src: {
            AccumulatorSpec c = SourceClass(s, v);
            good = TakesKeys(info) ? true : IsNarrow(c) && (IsNarrow(operand_class) ? c == operand_class : true);
            loaded = c;
            break;
          }
          case OperandSpec::SrcPlain:
            good = SourceClass(s, v) == operand_class && Operand::Unpack(v).kind != OperandKind::kPayload;
            break;
          case OperandSpec::SrcInt:
            // -1 stands for an absent third argument.
            good = (v == -1 && k == 2) || SourceClass(s, v) == AccumulatorSpec::I;
            break;
          case OperandSpec::SrcW:
            good = SourceClass(s, v) == AccumulatorSpec::W;
            break;
          case OperandSpec::Reg:
            good = InRange(v, s.registers) && ClassOf(s.registers[static_cast<size_t>(v)]) == a;
            break;
          case OperandSpec::RegW:
            good = InRange(v, s.registers) && ClassOf(s.registers[static_cast<size_t>(v)]) == AccumulatorSpec::W;
            break;
          case OperandSpec::Mask:
            good = v >= 0 && v < s.masks;
            break;
          case OperandSpec::Pred:
            good = InRange(v, s.predicates);
            break;
          case OperandSpec::Join:
            TESSERA_TRY(CheckJoin(v));
            break;
          case OperandSpec::Agg:
            good = s.sink == Section::Sink::kGroups && InRange(v, s.aggregates) &&
                   s.aggregates[static_cast<size_t>(v)].op == in.op && grouped;
            break;
          case OperandSpec::Addr:
            good = InRange(v, s.code);
            break;
          case OperandSpec::Const:
            good = InRange(v, p_.constants) && ClassOf(p_.constants[static_cast<size_t>(v)].type) == operand_class &&
                   !p_.constants[static_cast<size_t>(v)].null;
            break;
          case OperandSpec::ConstT:
            good = InRange(v, p_.constants) && p_.constants[static_cast<size_t>(v)].type.id == TypeId::kText &&
                   !p_.constants[static_cast<size_t>(v)].null;
            break;
          case OperandSpec::ConstW:
            good = InRange(v, p_.constants) &&
                   ClassOf(p_.constants[static_cast<size_t>(v)].type) == AccumulatorSpec::W &&
                   !p_.constants[static_cast<size_t>(v)].null;
            break;
          case OperandSpec::Int:
            break;
        }
        if (!good) return Fail(fmt::format("operand p{}", k + 1));
      }
      // Further conditions of the shape.
      switch (info.shape) {
        case Shape::SkipIfNone:
          if (in.p2 <= address_) return Fail("it jumps backwards");
          target[static_cast<size_t>(in.p2)] = true;
          break;
        case Shape::NextOuter:
          if (!outer[in.p1]) return Fail("its probe drops rows without a match");
          [[fallthrough]];
        case Shape::Next:
          if (!probed_[in.p1] || in.p2 <= probe_at[in.p1] || in.p2 > address_)
            return Fail("it does not jump to after its probe");
          a = AccumulatorSpec::None;
          w = false;
          break;
        case Shape::TestMatch:
          if (!probed_[in.p1]) return Fail("the join table is not probed yet");
          break;
        case Shape::Probe:
        case Shape::ProbeOuter: {
          const Section& b = Builder(in.p1);
          if (s.source_kind == Section::Source::kDictionary)
            return Fail("a dictionary section runs without join tables");
          if (probed_[in.p1]) return Fail("a join table is probed once in a section");
          if (Info(p_.joins[in.p1].strategy).cuts &&
              (info.shape != Shape::Probe || std::find(probed_.begin(), probed_.end(), true) != probed_.end())) {
            return Fail("a grid is not the first that is probed");
          }
          if (in.p3 != b.keys) return Fail("number of keys");
          TESSERA_TRY(CheckKeys(s, in, b.columns));
          probed_[in.p1] = true;
          outer[in.p1] = info.shape == Shape::ProbeOuter;
          probe_at[in.p1] = address_;
          break;
        }
        case Shape::Group:
          if (s.sink != Section::Sink::kGroups || in.p3 != s.keys) return Fail("number of keys");
          TESSERA_TRY(CheckKeys(s, in, s.columns));
          grouped = true;
          sank = true;
          break;
        case Shape::Build:
          if (s.sink != Section::Sink::kJoin) return Fail("the sink is no join table");
          sank = true;
          break;
        case Shape::Emit:
          if (s.sink != Section::Sink::kRows && s.sink != Section::Sink::kMap) return Fail("the sink takes no rows");
          sank = true;
          break;
        case Shape::UnaryField:
          if (in.op == Opcode::MathF) {
            if (in.p3 < 0 || in.p3 >= kMathFunctions) return Fail("function of one operand");
            break;
          }
          if (in.op != Opcode::RoundDigitsF && (in.p3 < 0 || in.p3 > 11)) return Fail("date field");
          if (in.op == Opcode::RoundDigitsF && (in.p3 < -400 || in.p3 > 400)) return Fail("number of digits");
          break;
        case Shape::BinaryField:
          if (in.p3 < kMathFunctions || in.p3 >= kAllMathFunctions) return Fail("function of two operands");
          break;
        case Shape::TextCut:
          if (in.p3 < 0) return Fail("length");
          break;
        case Shape::ToText:
        case Shape::FromText: {
          SqlType t = UnpackType(in.p3);
          AccumulatorSpec want = info.shape == Shape::ToText ? info.in : info.out;
          if (!IsValueType(t) || ClassOf(t) != want) return Fail("type in p3");
          if (info.shape == Shape::FromText && in.p4 != 0 && in.p4 != 1) return Fail("what becomes of bad text");
          break;
        }
        case Shape::Format: {
          const SqlType t = UnpackType(in.p3);
          if (!IsFormatted(t) || ClassOf(t) != info.in) return Fail("type in p3");
          if (in.p4 < 0 || in.p4 > static_cast<int32_t>(Format::Language::kPrintf))
            return Fail("language of the format");
          const auto language = static_cast<Format::Language>(in.p4);
          if (language == Format::Language::kPrintf && !t.IsNumeric()) return Fail("language of the format");
          if (language == Format::Language::kStrftime && (t.IsNumeric() || t.id == TypeId::kInterval))
            return Fail("language of the format");
          if (!Format(p_.constants[static_cast<size_t>(in.p2)].text, t, language).error().empty())
            return Fail("format");
          break;
        }
        case Shape::Like:
          if (p_.constants[static_cast<size_t>(in.p2)].type.id != TypeId::kText) return Fail("pattern");
          if (in.op == Opcode::FilterRegex || in.op == Opcode::FilterNotRegex) TESSERA_TRY(CheckRegex(in.p2, 0));
          break;
        case Shape::RegexPart:
          TESSERA_TRY(CheckRegexPart(in));
          break;
        case Shape::Zone:
          if (in.p3 != 0 && (in.p3 != 1 || in.op != Opcode::ZoneParseT)) return Fail("what becomes of bad text");
          if (!FindTimeZone(p_.constants[static_cast<size_t>(in.p2)].text).ok()) return Fail("time zone");
          break;
        case Shape::Total:
          TESSERA_TRY(CheckState(s, in));
          break;
        case Shape::RegexReplace:
          if (in.p4 != 0 && in.p4 != 1) return Fail("how many matches");
          TESSERA_TRY(CheckRegex(in.p2, 0));
          break;
        case Shape::End:
          if (i + 1 != s.code.size()) return Fail("End before the end");
          break;
        default:
          break;
      }
      // Accumulators after.
      if (info.out == AccumulatorSpec::X) {
        if (info.in == AccumulatorSpec::None) a = loaded;
      } else if (info.out == AccumulatorSpec::W) {
        w = true;
      } else if (info.out != AccumulatorSpec::None) {
        a = info.out;
      }
    }
    address_ = -1;
    if (!sank) return Fail("no instruction feeds the sink");
    return Status::Ok();
  }

  Status CheckRegexPart(const Instruction& in) {
    const bool part = in.op == Opcode::RegexPartT;
    if (in.p3 < 0 || in.p4 < 0 || (!part && (in.p3 != 0 || in.p4 != 0))) return Fail("group or match");
    return CheckRegex(in.p2, in.p3);
  }

  /// Checks that a constant is a regular expression with at least `groups` groups.
  Status CheckRegex(int32_t constant, int groups) {
    const auto [known, is_new] = regexes_.try_emplace(constant, -1);
    if (is_new) {
      const Regex regex(p_.constants[static_cast<size_t>(constant)].text);
      if (regex.error().empty()) known->second = regex.groups();
    }
    return known->second < groups ? Fail("regular expression") : Status::Ok();
  }

  /// Checks that the registers from p2 on are the further words of the state that the opcode reads.
  Status CheckState(const Section& s, const Instruction& in) const {
    const std::span<const AccumulatorSpec> words =
        ColumnClasses(in.op == Opcode::TotalF ? Opcode::SumF : Opcode::MomentsF);
    if (in.p3 != static_cast<int32_t>(words.size()) - 1) return Fail("words of a state");
    const Operand first = Operand::Unpack(in.p2);
    for (int k = 0; k < in.p3; ++k) {
      const AccumulatorSpec word = SourceClass(s, Operand::Register(first.index + k).Pack());
      if (first.kind != OperandKind::kRegister || word != words[static_cast<size_t>(k) + 1])
        return Fail("words of a state");
    }
    return Status::Ok();
  }

  /// Checks the keys of Probe and Group: one operand, or registers from p2 on, with the classes of `columns`.
  Status CheckKeys(const Section& s, const Instruction& in, const std::vector<SqlType>& columns) {
    if (in.p3 < 0 || in.p3 > kMaxGroupingKeys) return Fail("number of keys");
    if (in.p3 == 0) return in.p2 == 0 ? Status::Ok() : Fail("operand p2");
    Operand o = Operand::Unpack(in.p2);
    for (int k = 0; k < in.p3; ++k) {
      AccumulatorSpec c = k == 0 ? SourceClass(s, in.p2) : SourceClass(s, Operand::Register(o.index + k).Pack());
      if (c != ClassOf(columns[static_cast<size_t>(k)])) return Fail("class of a key");
      if (in.p3 > 1 && o.kind != OperandKind::kRegister) return Fail("several keys are registers");
    }
    return Status::Ok();
  }

  const Program& p_;
  int section_ = -1;
  int address_ = -1;
  std::vector<bool> probed_;
  std::map<int32_t, int> regexes_;  // groups by constant; -1: it is none
};

}  // namespace

Status Verify(const Program& program) { return Verifier(program).Run(); }

}  // namespace tessera::vm
