// EXPLAIN's listing of a program: a table per section, in the form of SQLite's.

#include <fmt/format.h>

#include <algorithm>

#include "vm/program/math_function.h"
#include "vm/program/program.h"

namespace tessera::vm {
namespace {

/// The text of a constant in a comment, cut to fit into a line.
std::string ConstantText(const Program& p, int32_t i) {
  if (i < 0 || static_cast<size_t>(i) >= p.constants.size()) return "?";
  const Value& v = p.constants[static_cast<size_t>(i)];
  if (v.null) return "NULL";
  std::string text = ToText(v);
  if (text.size() > 24) text = text.substr(0, 21) + "...";
  return v.type.IsQuoted() ? "'" + text + "'" : text;
}

class SectionListing {
 public:
  SectionListing(const Program& p, const Section& s) : p_(p), s_(s) {}

  std::string Run(int number) {
    std::string out = fmt::format("-- section {}: {}", number, s_.label);
    if (s_.source_kind == Section::Source::kJoin) out += fmt::format(" (t{})", s_.source);
    if (s_.source_kind == Section::Source::kSeries) out += fmt::format(" ({} rows)", s_.source_rows);
    switch (s_.sink) {
      case Section::Sink::kJoin:
        out += fmt::format(" -> build t{}", s_.join) + Table(s_.join);
        break;
      case Section::Sink::kGroups:
        out += fmt::format(" -> groups of {} keys", s_.keys);
        break;
      case Section::Sink::kMap:
        out += " -> map of entries";
        break;
      case Section::Sink::kRows:
        out += " -> rows";
        break;
    }
    if (s_.after.repeat >= 0) out += fmt::format(", each r{} times", s_.after.repeat);
    if (s_.after.fold.kind != Section::Fold::kNone) {
      out += fmt::format(", {}{} of r{} by {} keys", kFolds[static_cast<size_t>(s_.after.fold.kind)],
                         s_.after.fold.distinct ? " of distinct values" : "", s_.keys, s_.keys);
      if (s_.after.fold.constant >= 0) out += " with " + ConstantText(p_, s_.after.fold.constant);
    }
    if (s_.recursion.first >= 0) {
      out += fmt::format("{}, again from section {} on until there are {}",
                         s_.recursion.distinct ? " not seen before" : "", s_.recursion.first + 1,
                         s_.recursion.limit < 0 ? "none" : fmt::format("none or {} in all", s_.recursion.limit));
    }
    if (s_.after.append_to >= 0) out += fmt::format(" after those of section {}", s_.after.append_to);
    for (size_t i = 0; i < s_.after.order.size(); ++i) {
      const SortKey& k = s_.after.order[i];
      out += fmt::format("{}r{}{}{}", i == 0 ? ", order by " : ", ", k.column, k.descending ? " desc" : "",
                         k.nulls_first != k.descending ? (k.nulls_first ? " nulls first" : " nulls last") : "");
    }
    for (const WindowSpec& w : s_.after.windows) {
      out += "\n--   window " + Window(w);
      if (w.fold_constant >= 0) out += " with " + ConstantText(p_, w.fold_constant);
    }
    if (s_.after.limit >= 0) out += fmt::format(", limit {}", s_.after.limit);
    if (s_.after.offset > 0) out += fmt::format(", offset {}", s_.after.offset);
    out += "\naddr  opcode           p1    p2         p3         p4         comment\n";
    out += "----  ---------------  ----  ---------  ---------  ---------  -------\n";
    std::vector<int> indent(s_.code.size(), 0);  // the body of a loop over matches
    for (size_t i = 0; i < s_.code.size(); ++i) {
      if (Info(s_.code[i].op).role == Role::Next) {
        for (size_t k = static_cast<size_t>(s_.code[i].p2); k < i; ++k) ++indent[k];
      }
    }
    for (size_t i = 0; i < s_.code.size(); ++i) {
      const Instruction& in = s_.code[i];
      const OpcodeInfo& info = Info(in.op);
      const int32_t v[4] = {in.p1, in.p2, in.p3, in.p4};
      std::string cell[4];
      for (int k = 0; k < 4; ++k) cell[k] = Cell(info.p[k], v[k]);
      std::string line = fmt::format("{:<4}  {:<15}  {:<4}  {:<9}  {:<9}  {:<9}  {}", i,
                                     std::string(static_cast<size_t>(2 * indent[i]), ' ') + info.name, cell[0], cell[1],
                                     cell[2], cell[3], Comment(info, in));
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out;
  }

 private:
  static constexpr const char* kFolds[] = {"", "first", "mode", "quantile", "quantile between", "join", "counts"};

  /// "aggregate SumI(r2) of 1 + 1 keys, rows from 2 preceding to current row".
  static std::string Window(const WindowSpec& w) {
    std::string out = w.function == WindowFunction::kAggregate ? Info(w.aggregate).name
                      : w.function == WindowFunction::kFold    ? kFolds[static_cast<size_t>(w.fold)]
                                                               : NameOf(w.function);
    std::string arguments = w.distinct ? "distinct" : "";
    const auto add = [&](const std::string& text) {
      arguments += (arguments.empty() ? "" : w.distinct ? " " : ", ") + text;
    };
    if (w.value >= 0) add(fmt::format("r{}", w.value));
    const bool counts = w.function == WindowFunction::kNtile || w.function == WindowFunction::kLag ||
                        w.function == WindowFunction::kLead || w.function == WindowFunction::kNthValue;
    if (counts) add(w.count >= 0 ? fmt::format("r{}", w.count) : fmt::format("{}", w.number));
    if (w.fallback >= 0) add(fmt::format("r{}", w.fallback));
    for (size_t i = 0; i < w.order.size(); ++i) {
      arguments +=
          fmt::format("{}r{}{}", i == 0 ? " order by " : ", ", w.order[i].column, w.order[i].descending ? " desc" : "");
    }
    out += fmt::format("({}){} of {} + {} keys", arguments, w.ignore_nulls ? " ignoring NULLs" : "", w.partition_keys,
                       w.order_keys);
    if (!HasFrame(w.function)) return out;
    static constexpr const char* kModes[] = {"rows", "range", "groups"};
    static constexpr const char* kExclusions[] = {"", " without the row", " without peers and the row",
                                                  " without peers"};
    const WindowFrame& f = w.frame;
    return out + fmt::format(", {} from {} to {}{}", kModes[static_cast<int>(f.mode)],
                             Bound(f, f.start, f.start_offset, f.start_column),
                             Bound(f, f.end, f.end_offset, f.end_column), kExclusions[static_cast<int>(f.exclusion)]);
  }
  static std::string Bound(const WindowFrame& f, WindowFrame::Bound b, int64_t offset, int32_t column) {
    static constexpr const char* kBounds[] = {"the first", " preceding", "current", " following", "the last"};
    const char* const text = kBounds[static_cast<int>(b)];
    if (!HasOffset(b)) return text;
    if (f.mode == WindowFrame::Mode::kRange) return fmt::format("r{}", column);
    return (column >= 0 ? fmt::format("r{}", column) : fmt::format("{}", offset)) + text;
  }

  /// ", sorted by r1, grid": what a listing says about a join table where it is built.
  std::string Table(int32_t join) const {
    const JoinSpec& t = p_.joins[static_cast<size_t>(join)];
    const JoinStrategyInfo& strategy = Info(t.strategy);
    return (t.order < 0 ? "" : fmt::format(", sorted by r{}", t.order)) +
           (strategy.by_key ? "" : std::string(", ") + strategy.word);
  }

  std::string OperandText(int32_t packed) const {
    Operand o = Operand::Unpack(packed);
    switch (o.kind) {
      case OperandKind::kSlot:
        return fmt::format("c{}", o.index);
      case OperandKind::kRegister:
        return fmt::format("r{}", o.index);
      case OperandKind::kConstant:
        return fmt::format("#{}", o.index);
      case OperandKind::kPayload:
        return fmt::format("t{}.{}", o.table, o.index);
    }
    return "?";
  }

  /// The operand as its column shows it.
  std::string Cell(OperandSpec spec, int32_t v) const {
    switch (spec) {
      case OperandSpec::None:
        return "";
      case OperandSpec::Src:
      case OperandSpec::SrcW:
      case OperandSpec::SrcPlain:
        return OperandText(v);
      case OperandSpec::SrcInt:
        return v == -1 ? "" : OperandText(v);
      case OperandSpec::Reg:
      case OperandSpec::RegW:
        return fmt::format("r{}", v);
      case OperandSpec::Mask:
        return fmt::format("m{}", v);
      case OperandSpec::Pred:
        return fmt::format("f{}", v);
      case OperandSpec::Join:
        return fmt::format("t{}", v);
      case OperandSpec::Agg:
        return fmt::format("a{}", v);
      case OperandSpec::Const:
      case OperandSpec::ConstW:
      case OperandSpec::ConstT:
        return fmt::format("#{}", v);
      case OperandSpec::Addr:
      case OperandSpec::Int:
        return fmt::format("{}", v);
    }
    return "";
  }

  std::string Bound(int32_t c, bool inclusive, const char* strict, const char* loose) const {
    return c < 0 ? "" : fmt::format(" {} {}", inclusive ? loose : strict, ConstantText(p_, c));
  }

  std::string PredicateText(int32_t i) const {
    if (i < 0 || static_cast<size_t>(i) >= s_.predicates.size()) return "?";
    const Predicate& f = s_.predicates[static_cast<size_t>(i)];
    std::string c = fmt::format("c{}", f.slot), text;
    switch (f.kind) {
      case Predicate::Kind::kRange:
        if (f.low >= 0 && f.high >= 0) {
          if (f.low == f.high) {
            text = c + " = " + ConstantText(p_, f.low);
          } else {
            text = fmt::format("{} {} {} {} {}", ConstantText(p_, f.low), f.low_inclusive ? "<=" : "<", c,
                               f.high_inclusive ? "<=" : "<", ConstantText(p_, f.high));
          }
        } else {
          text = c + Bound(f.low, f.low_inclusive, ">", ">=") + Bound(f.high, f.high_inclusive, "<", "<=");
        }
        break;
      case Predicate::Kind::kIn:
        text = c + " in (";
        for (size_t k = 0; k < f.list.size() && k < 4; ++k) text += (k == 0 ? "" : ", ") + ConstantText(p_, f.list[k]);
        text += f.list.size() > 4 ? fmt::format(", ... {} in all)", f.list.size()) : ")";
        break;
      case Predicate::Kind::kIsNull:
        return c + " is null";
      case Predicate::Kind::kIsNotNull:
        return c + " is not null";
      case Predicate::Kind::kMapped:
        text = fmt::format("{} kept by section {}", c, f.map);
        break;
      case Predicate::Kind::kKeyRange:
        text = fmt::format("{} within the keys of t{}", c, f.join);
        break;
    }
    return f.negated ? "not (" + text + ")" : text;
  }

  /// The operand as a comment names it.
  std::string Named(OperandSpec spec, int32_t v) const {
    switch (spec) {
      case OperandSpec::Src:
      case OperandSpec::SrcW:
      case OperandSpec::SrcPlain:
      case OperandSpec::SrcInt: {
        if (v == -1) return "all";
        Operand o = Operand::Unpack(v);
        return o.kind == OperandKind::kConstant ? ConstantText(p_, o.index) : OperandText(v);
      }
      case OperandSpec::Const:
      case OperandSpec::ConstW:
      case OperandSpec::ConstT:
        return ConstantText(p_, v);
      case OperandSpec::Pred:
        return PredicateText(v);
      default:
        return Cell(spec, v);
    }
  }

  std::string Comment(const OpcodeInfo& info, const Instruction& in) const {
    const int32_t v[4] = {in.p1, in.p2, in.p3, in.p4};
    const bool outer = info.shape == Shape::ProbeOuter;
    if (TakesKeys(info) && in.p3 != 1) {
      // Several keys are consecutive registers; without keys there is only one group.
      if (in.p3 == 0)
        return info.shape == Shape::Group ? "the only group"
                                          : fmt::format("every row of t{}{}", in.p1, outer ? ", or none" : "");
      std::string keys = fmt::format("{}..r{}", OperandText(in.p2), Operand::Unpack(in.p2).index + in.p3 - 1);
      return info.shape == Shape::Group
                 ? "group of " + keys
                 : fmt::format("first match in t{} for {}{}", in.p1, keys, outer ? ", or none" : "");
    }
    std::string out;
    for (const char* c = info.synopsis; *c != 0; ++c) {
      if (*c == '{' && c[1] >= '1' && c[1] <= '4' && c[2] == '}') {
        int k = c[1] - '1';
        if (info.shape == Shape::Total) {
          out += fmt::format("{}..r{}", OperandText(in.p2), Operand::Unpack(in.p2).index + in.p3 - 1);
        } else if (k == 2 && info.shape == Shape::FromText) {
          out += UnpackType(v[k]).ToString();
        } else if (k == 2 && (in.op == Opcode::MathF || in.op == Opcode::MathPairF)) {
          out += NameOf(static_cast<MathFunction>(v[k]));
        } else {
          out += Named(info.p[k], v[k]);
        }
        c += 2;
      } else {
        out += *c;
      }
    }
    return out;
  }

  const Program& p_;
  const Section& s_;
};

}  // namespace

std::string Listing(const Program& program) {
  std::string out;
  for (size_t i = 0; i < program.sections.size(); ++i) {
    if (i > 0) out += "\n";
    out += SectionListing(program, program.sections[i]).Run(static_cast<int>(i));
  }
  return out;
}

}  // namespace tessera::vm
