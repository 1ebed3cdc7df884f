// How the reference runs a section: where rows come from, operands and predicates, and the sinks. The instructions are
// in opcode_reference_code.cc.
#include "tests/vm/opcode_reference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/vm/opcode_meanings.h"
#include "vm/rows/sorted_rows.h"

namespace tessera::test::walk {

using vm::Instruction;
using vm::Opcode;
using vm::Operand;
using vm::OperandKind;
using vm::Predicate;
using vm::Section;
using vm::SortKey;

void Reference::Run() {
  results_.resize(p_.sections.size());
  row_counts_.assign(p_.sections.size(), 0);
  joins_.resize(p_.joins.size());
  origins_.resize(p_.sections.size());
  for (size_t i = 0; i < p_.sections.size() && problem.empty(); ++i) {
    if (p_.sections[i].source_kind != Section::Source::kDictionary) RunSection(i);
  }
  result = results_.back();
  result_rows = row_counts_.back();
}

void Reference::Problem(const std::string& what) {
  if (problem.empty()) problem = what;
}

Reference::Mapped Reference::MapText(int section, int64_t number) {
  auto& cache = maps_[section];
  auto found = cache.find(number);
  if (found != cache.end()) return found->second;
  const Section& s = p_.sections[static_cast<size_t>(section)];
  Machine m;
  m.slots.emplace_back(kText, 1);
  m.slots[0].v[0] = number;
  RunCode(s, &m, 1, nullptr, nullptr);
  Mapped r;
  if (!m.out_from.empty()) {
    r.kept = true;
    if (!s.columns.empty()) {
      r.null = m.out[0].null.back() != 0;
      r.v = m.out[0].v.back();
    }
  }
  return cache[number] = r;
}

void Reference::RunSection(size_t number) {
  const Section& s = p_.sections[number];
  Machine m;
  size_t rows = 1;
  const bool stored = s.source_kind == Section::Source::kTable;
  if (stored) {
    const TestTable& t = tables_[static_cast<size_t>(s.source)];
    rows = t.rows();
    for (const vm::Slot& slot : s.slots) {
      Cells c = ToCells(t.columns[static_cast<size_t>(slot.column)].values, texts_);
      if (slot.map >= 0) {
        c.type = slot.type;
        for (size_t i = 0; i < rows; ++i) {
          if (c.null[i] != 0) continue;
          const Mapped r = MapText(slot.map, c.v[i]);
          c.v[i] = r.v;
          c.null[i] = r.null ? 1 : 0;
        }
      }
      m.slots.push_back(std::move(c));
    }
    bad.assign(rows, 0);
  } else if (s.source_kind == Section::Source::kSection) {
    rows = row_counts_[static_cast<size_t>(s.source)];
    for (const vm::Slot& slot : s.slots)
      m.slots.push_back(results_[static_cast<size_t>(s.source)][static_cast<size_t>(slot.column)]);
  }
  RunCode(s, &m, rows, &bad,
          stored                                       ? nullptr
          : s.source_kind == Section::Source::kSection ? &origins_[static_cast<size_t>(s.source)]
                                                       : &no_origin_);
  if (s.sink == Section::Sink::kJoin) return FinishJoin(s, &m);
  if (s.sink == Section::Sink::kGroups) return FinishGroups(s, &m, number);
  row_counts_[number] = m.out_from.size();
  if (stored) origins_[number] = m.out_from;
  // The walk's readers of groups copy slot c to column c: how far sums may be off goes with them.
  for (size_t c = 0; c < m.out.size() && c < m.slots.size(); ++c) {
    for (size_t i = 0; i < m.out_from.size() && !m.slots[c].slack.empty(); ++i)
      m.out[c].slack.push_back(m.slots[c].slack[m.out_from[i]]);
  }
  OrderAndLimit(s, &m.out, &row_counts_[number]);
  results_[number] = std::move(m.out);
}

Reference::View Reference::Fetch(Machine* m, int32_t packed, int scratch) {
  const Operand o = Operand::Unpack(packed);
  auto view = [](const Cells& c) { return View{c.v.data(), c.w.data(), c.null.data(), false}; };
  switch (o.kind) {
    case OperandKind::kSlot:
      return view(m->slots[o.index]);
    case OperandKind::kRegister:
      return view(m->registers[o.index]);
    case OperandKind::kConstant: {
      const Value& c = p_.constants[o.index];
      Cells& cell = m->scratch[scratch];
      cell = Cells(c.type, 1);
      cell.null[0] = c.null ? 1 : 0;
      switch (c.type.storage()) {
        case StorageClass::kInt:
          cell.v[0] = c.i64;
          break;
        case StorageClass::kFloat:
          cell.v[0] = AsBits(c.f64);
          break;
        case StorageClass::kText:
          cell.v[0] = texts_->Number(c.text);
          break;
        case StorageClass::kWide:
          cell.w[0] = c.wide;
          break;
      }
      View v = view(cell);
      v.one = true;
      return v;
    }
    case OperandKind::kPayload: {
      const Join& join = joins_[o.table];
      const Section& builder = p_.sections[static_cast<size_t>(p_.joins[o.table].section)];
      const Cells& c = join.columns[static_cast<size_t>(builder.keys) + o.index];
      Cells& cell = m->scratch[scratch];
      cell = Cells(c.type, m->n);
      for (size_t i = 0; i < m->n; ++i) {
        const Cursor& cursor = m->cursors[o.table][i];
        if (m->live[i] == 0) continue;
        if (!cursor.valid() && m->outer[o.table] != 0) {
          cell.null[i] = 1;
          continue;
        }
        if (!cursor.valid()) {
          Problem("a live row reads a payload without a match");
          return view(cell);
        }
        const size_t row = (*cursor.rows)[cursor.at];
        cell.null[i] = c.null[row];
        if (c.IsWide()) {
          cell.w[i] = c.w[row];
        } else {
          cell.v[i] = c.v[row];
        }
      }
      return view(cell);
    }
  }
  return {};
}

bool Reference::Passes(const Predicate& f, const Cells& c, size_t i) {
  const bool null = c.null[i] != 0;
  auto constant = [&](int32_t k) -> const Value& { return p_.constants[static_cast<size_t>(k)]; };
  auto order = [&](int32_t k) {
    const Value& v = constant(k);
    switch (c.type.storage()) {
      case StorageClass::kFloat:
        return CompareFloats(AsDouble(c.v[i]), v.f64);
      case StorageClass::kText:
        return CompareBytes(texts_->Get(c.v[i]), v.text);
      case StorageClass::kWide:
        return c.w[i] < v.wide ? -1 : c.w[i] > v.wide ? 1 : 0;
      default:
        return c.v[i] < v.i64 ? -1 : c.v[i] > v.i64 ? 1 : 0;
    }
  };
  switch (f.kind) {
    case Predicate::Kind::kIsNull:
      return null;
    case Predicate::Kind::kIsNotNull:
      return !null;
    case Predicate::Kind::kRange: {
      if (null) return false;
      bool in = true;
      if (f.low >= 0) in = in && order(f.low) >= (f.low_inclusive ? 0 : 1);
      if (f.high >= 0) in = in && order(f.high) <= (f.high_inclusive ? 0 : -1);
      return in != f.negated;
    }
    case Predicate::Kind::kIn: {
      if (null) return false;
      bool in = false;
      for (int32_t k : f.list) in = in || order(k) == 0;
      return in != f.negated;
    }
    case Predicate::Kind::kMapped:
      return !null && MapText(f.map, c.v[i]).kept != f.negated;
    case Predicate::Kind::kKeyRange:
      return true;  // a hint: the walk uses it before the probe that decides
  }
  Problem("a predicate that the walk does not know");
  return false;
}

std::string Reference::KeyOf(const std::vector<View>& keys, const std::vector<bool>& wide, size_t i, bool* null) const {
  std::string out;
  *null = false;
  for (size_t k = 0; k < keys.size(); ++k) {
    const bool is_null = keys[k].Null(i);
    *null = *null || is_null;
    int128_t v = is_null ? 0 : wide[k] ? keys[k].W(i) : keys[k].V(i);
    out.push_back(is_null ? 'n' : 'v');
    out.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  return out;
}

std::vector<Reference::View> Reference::Keys(Machine* m, const Instruction& in, const std::vector<SqlType>& types,
                                             std::vector<bool>* wide) {
  std::vector<View> out;
  for (int k = 0; k < in.p3; ++k) {
    out.push_back(k == 0 ? Fetch(m, in.p2, 0)
                         : Fetch(m, Operand::Register(Operand::Unpack(in.p2).index + k).Pack(), 0));
    wide->push_back(types[static_cast<size_t>(k)].storage() == StorageClass::kWide);
  }
  return out;
}

void Reference::FinishJoin(const Section& s, Machine* m) {
  Join& join = joins_[static_cast<size_t>(s.join)];
  join.columns = std::move(m->out);
  std::vector<View> keys;
  std::vector<bool> wide;
  for (int k = 0; k < s.keys; ++k) {
    const Cells& c = join.columns[static_cast<size_t>(k)];
    keys.push_back({c.v.data(), c.w.data(), c.null.data(), false});
    wide.push_back(c.IsWide());
  }
  for (size_t i = 0; i < m->out_from.size(); ++i) {
    bool null;
    join.rows[KeyOf(keys, wide, i, &null)].push_back(static_cast<uint32_t>(i));
  }
}

void Reference::FinishGroups(const Section& s, Machine* m, size_t number) {
  std::vector<Cells> out = std::move(m->keys);
  for (size_t a = 0; a < s.aggregates.size(); ++a) {
    const Opcode op = s.aggregates[a].op;
    const bool counts = op == Opcode::CountRows || op == Opcode::Count || op == Opcode::CountW;
    if (std::vector<Cells> words = StateWords(op, m->states[a]); !words.empty()) {
      for (Cells& word : words) out.push_back(std::move(word));
      continue;
    }
    Cells c(s.aggregates[a].type, m->states[a].size());
    for (size_t g = 0; g < m->states[a].size(); ++g) {
      const State& state = m->states[a][g];
      c.null[g] = counts || state.seen ? 0 : 1;
      if (c.IsWide()) {
        c.w[g] = state.w;
      } else {
        c.v[g] = counts ? state.count : state.v;
      }
      if (op == Opcode::ProductF) {
        long double product = 1;
        for (const double v : state.values) product *= static_cast<long double>(v);
        c.v[g] = AsBits(static_cast<double>(product));
        c.slack.push_back(static_cast<double>(1e-9L * std::fabs(product)) + 1e-300);
      }
      if (op == Opcode::MinF || op == Opcode::MaxF) c.slack.push_back(0);  // which of the two zeros is not fixed
    }
    out.push_back(std::move(c));
  }
  row_counts_[number] = m->groups.size();
  results_[number] = std::move(out);
}

namespace {

/// The words of a sum of doubles, bin by bin from the definition (vm/meaning/float_sum.h): first the number of the highest
/// bin, then what all numbers have in the four highest ones.
std::vector<int64_t> WordsOfSum(const std::vector<double>& values) {
  constexpr int kBits = 27, kLowest = -1029, kLeastExponent = -1022;
  int highest = 0;
  for (const double v : values)
    highest = std::max(highest, (std::max(v == 0 ? kLeastExponent : std::ilogb(v), kLeastExponent) - kLowest) / kBits);
  std::vector<int64_t> words = {highest};
  for (int bin = highest; bin > highest - 4; --bin) {
    const int unit = kLowest + kBits * bin;
    int64_t sum = 0;
    for (const double v : values) {
      const double above = std::ldexp(1.0, unit + kBits);  // (infinite, or 0 where doubles have nothing)
      if (above == 0) continue;
      const double below_above = std::isinf(above) ? std::fabs(v) : std::fmod(std::fabs(v), above);
      const auto slice = static_cast<int64_t>(std::floor(std::ldexp(below_above, -unit)));
      sum += v < 0 ? -slice : slice;
    }
    words.push_back(sum);
  }
  return words;
}

__extension__ typedef __float128 Quad;  // 113 bits

/// What such words stand for.
Quad SumOfWords(const int64_t* words) {
  Quad sum = 0;
  for (int k = 0; k < 4; ++k) sum = sum * (1 << 27) + words[1 + k];
  int unit = -1029 + 27 * (static_cast<int>(words[0]) - 3);
  for (; unit > 0; --unit) sum *= 2;
  for (; unit < 0; ++unit) sum /= 2;
  return sum;
}

}  // namespace

bool OfState(Opcode op, const std::vector<int64_t>& words, int64_t* value) {
  if (op == Opcode::TotalF) {
    *value = AsBits(static_cast<double>(SumOfWords(words.data())));
    return true;
  }
  if (op != Opcode::DeviationsF) return false;
  const Quad count = static_cast<Quad>(words[0]), sum = SumOfWords(words.data() + 1);
  const Quad squares = SumOfWords(words.data() + 6) + SumOfWords(words.data() + 11);
  const double all = static_cast<double>(count * squares - sum * sum);
  *value = AsBits(all <= 0 ? 0 : all / static_cast<double>(words[0]));
  return true;
}

std::vector<Cells> Reference::StateWords(Opcode op, const std::vector<State>& groups) const {
  if (op != Opcode::SumF && op != Opcode::MomentsF) return {};
  std::vector<Cells> words(op == Opcode::SumF ? 5 : 16, Cells(SqlType::Of(TypeId::kBigint), groups.size()));
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<double>& values = groups[g].values;
    std::vector<int64_t> all;
    const auto add = [&](const std::vector<double>& of) {
      const std::vector<int64_t> sum = WordsOfSum(of);
      all.insert(all.end(), sum.begin(), sum.end());
    };
    if (op == Opcode::SumF) {
      add(values);
    } else {
      std::vector<double> squares, missing;
      for (const double v : values) {
        squares.push_back(v * v);
        missing.push_back(std::fma(v, v, -squares.back()));
      }
      all.push_back(static_cast<int64_t>(values.size()));
      add(values);
      add(squares);
      add(missing);
    }
    for (size_t k = 0; k < words.size(); ++k) {
      words[k].v[g] = all[k];
      words[k].null[g] = groups[g].seen ? 0 : 1;
    }
  }
  return words;
}

void Reference::OrderAndLimit(const Section& s, std::vector<Cells>* columns, size_t* rows) {
  if (s.after.order.empty() && s.after.limit < 0 && s.after.offset == 0) return;
  std::vector<size_t> order(*rows);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    for (const SortKey& k : s.after.order) {
      const Cells& c = (*columns)[static_cast<size_t>(k.column)];
      if (c.null[a] != c.null[b]) return (c.null[a] != 0) == k.nulls_first;
      if (c.null[a] != 0) continue;
      int o;
      switch (c.type.storage()) {
        case StorageClass::kFloat:
          o = CompareFloats(AsDouble(c.v[a]), AsDouble(c.v[b]));
          break;
        case StorageClass::kText:
          o = CompareBytes(texts_->Get(c.v[a]), texts_->Get(c.v[b]));
          break;
        case StorageClass::kWide:
          o = c.w[a] < c.w[b] ? -1 : c.w[a] > c.w[b] ? 1 : 0;
          break;
        default:
          o = c.v[a] < c.v[b] ? -1 : c.v[a] > c.v[b] ? 1 : 0;
      }
      if (o != 0) return (o < 0) != k.descending;
    }
    return false;
  });
  const size_t first = static_cast<size_t>(std::min<int128_t>(s.after.offset, static_cast<int128_t>(*rows)));
  size_t count = *rows - first;
  if (s.after.limit >= 0) count = static_cast<size_t>(std::min<int128_t>(s.after.limit, static_cast<int128_t>(count)));
  for (Cells& c : *columns) {
    Cells moved(c.type, 0);
    for (size_t i = first; i < first + count; ++i) moved.Push(c, order[i]);
    c = std::move(moved);
  }
  *rows = count;
}

}  // namespace tessera::test::walk
