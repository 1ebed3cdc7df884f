// How the reference runs the instructions of a section, one case per shape, and how each aggregate takes a row.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/vm/opcode_meanings.h"
#include "tests/vm/opcode_reference.h"

namespace tessera::test::walk {

using vm::AccumulatorSpec;
using vm::Info;
using vm::Instruction;
using vm::Opcode;
using vm::OpcodeInfo;
using vm::Predicate;
using vm::Section;
using vm::Shape;
using vm::UnpackType;

void Reference::RunCode(const Section& s, Machine* m, size_t n, std::vector<uint8_t>* bad_rows,
                        const std::vector<uint32_t>* origin) {
  m->n = n;
  m->live.assign(n, 1);
  m->a.assign(n, 0);
  m->a_null.assign(n, 0);
  m->w.assign(n, 0);
  m->w_null.assign(n, 0);
  for (const SqlType& t : s.registers) m->registers.emplace_back(t, n);
  m->masks.assign(static_cast<size_t>(s.masks), std::vector<uint8_t>(n, 0));
  m->cursors.assign(p_.joins.size(), {});
  m->outer.assign(p_.joins.size(), 0);
  m->group.assign(n, 0);
  m->states.resize(s.aggregates.size());
  if (s.sink == Section::Sink::kGroups) {
    for (int k = 0; k < s.keys; ++k) m->keys.emplace_back(s.columns[static_cast<size_t>(k)], 0);
    if (s.keys == 0) {
      m->groups[""] = 0;
      for (auto& states : m->states) states.emplace_back();
    }
  } else {
    for (const SqlType& t : s.columns) m->out.emplace_back(t, 0);
  }
  auto misfit = [&](size_t i, Fate fate) {
    (fate == Fate::kError ? failed : unspecified) = true;
    const size_t row = origin == nullptr ? i : i < origin->size() ? (*origin)[i] : SIZE_MAX;
    if (bad_rows != nullptr && row < bad_rows->size()) (*bad_rows)[row] = fate == Fate::kError ? 1 : 2;
    m->live[i] = 0;
  };
  for (size_t at = 0; problem.empty();) {
    const Instruction& in = s.code[at++];
    const OpcodeInfo& info = Info(in.op);
    auto unknown = [&] {
      Problem(std::string("opcode ") + info.name + " has no meaning in tests/vm/opcode_meanings.h: give it one");
    };
    auto keep = [&](auto f) {
      for (size_t i = 0; i < n; ++i) {
        if (m->live[i] != 0 && !f(i)) m->live[i] = 0;
      }
    };
    auto each = [&](auto f) {
      for (size_t i = 0; i < n; ++i) {
        if (m->live[i] != 0) f(i);
      }
    };
    switch (info.shape) {
      case Shape::End:
        return;
      case Shape::SkipIfNone:
        break;  // may be ignored
      case Shape::Next: {
        m->live = m->masks[static_cast<size_t>(in.p3)];
        keep([&](size_t i) {
          Cursor& c = m->cursors[in.p1][i];
          if (c.valid()) ++c.at;
          return c.valid();
        });
        m->masks[static_cast<size_t>(in.p3)] = m->live;
        if (std::count(m->live.begin(), m->live.end(), 1) > 0) at = static_cast<size_t>(in.p2);
        break;
      }
      case Shape::NextOuter: {
        m->live = m->masks[static_cast<size_t>(in.p3)];
        keep([&](size_t i) {
          Cursor& c = m->cursors[in.p1][i];
          const bool matched = c.valid();
          if (matched) ++c.at;
          return matched;
        });
        m->masks[static_cast<size_t>(in.p3)] = m->live;
        if (std::count(m->live.begin(), m->live.end(), 1) > 0) at = static_cast<size_t>(in.p2);
        break;
      }
      case Shape::TestMatch:
        if (in.op != Opcode::FilterMatched) return unknown();
        keep([&](size_t i) { return m->cursors[in.p1][i].valid(); });
        break;
      case Shape::Refuse:
        if (in.op != Opcode::RefuseMatch) return unknown();
        each([&](size_t i) { misfit(i, Fate::kError); });
        break;
      case Shape::MaskRegister: {
        std::vector<uint8_t>& r = m->masks[in.p1];
        switch (in.op) {
          case Opcode::MaskSave:
            r = m->live;
            break;
          case Opcode::MaskLoad:
            m->live = r;
            break;
          case Opcode::MaskClear:
            r.assign(n, 0);
            break;
          case Opcode::MaskOr:
            for (size_t i = 0; i < n; ++i) r[i] = r[i] != 0 || m->live[i] != 0 ? 1 : 0;
            break;
          case Opcode::MaskAndNot:
            for (size_t i = 0; i < n; ++i) m->live[i] = m->live[i] != 0 && r[i] == 0 ? 1 : 0;
            break;
          default:
            unknown();
        }
        break;
      }
      case Shape::Filter: {
        const Predicate& f = s.predicates[in.p1];
        const Cells& c = m->slots[static_cast<size_t>(f.slot)];
        keep([&](size_t i) { return Passes(f, c, i); });
        break;
      }
      case Shape::Test:
        if (in.op == Opcode::FilterTrue) {
          keep([&](size_t i) { return m->a_null[i] == 0 && m->a[i] != 0; });
        } else if (in.op == Opcode::FilterFalse) {
          keep([&](size_t i) { return m->a_null[i] == 0 && m->a[i] == 0; });
        } else {
          unknown();
        }
        break;
      case Shape::TestNull: {
        const std::vector<uint8_t>& null = info.in == AccumulatorSpec::W ? m->w_null : m->a_null;
        if (in.op == Opcode::FilterNull || in.op == Opcode::FilterNullW) {
          keep([&](size_t i) { return null[i] != 0; });
        } else if (in.op == Opcode::FilterNotNull || in.op == Opcode::FilterNotNullW) {
          keep([&](size_t i) { return null[i] == 0; });
        } else {
          unknown();
        }
        break;
      }
      case Shape::Compare:
      case Shape::TextCompare: {
        const View b = Fetch(m, in.p2, 0);
        if (!Compares(in.op, 0)) return unknown();
        keep([&](size_t i) {
          if (b.Null(i)) return false;
          int order = 0;
          switch (info.in) {
            case AccumulatorSpec::W:
              if (m->w_null[i] != 0) return false;
              order = m->w[i] < b.W(i) ? -1 : m->w[i] > b.W(i) ? 1 : 0;
              break;
            case AccumulatorSpec::F:
              if (m->a_null[i] != 0) return false;
              order = CompareFloats(AsDouble(m->a[i]), AsDouble(b.V(i)));
              break;
            case AccumulatorSpec::T:
              if (m->a_null[i] != 0) return false;
              order = CompareBytes(texts_->Get(m->a[i]), texts_->Get(b.V(i)));
              break;
            default:
              if (m->a_null[i] != 0) return false;
              order = m->a[i] < b.V(i) ? -1 : m->a[i] > b.V(i) ? 1 : 0;
          }
          return *Compares(in.op, order);
        });
        break;
      }
      case Shape::Like: {
        const std::string& pattern = p_.constants[static_cast<size_t>(in.p2)].text;
        if (in.op == Opcode::FilterRegex || in.op == Opcode::FilterNotRegex) {
          keep([&](size_t i) {
            int64_t kept = 0;
            std::string none;
            return m->a_null[i] == 0 &&
                   OfRegex(in.op, texts_->Get(m->a[i]), pattern, "", {0, 0}, &none, &kept) == Fate::kValue && kept != 0;
          });
          break;
        }
        if (in.op != Opcode::FilterLike && in.op != Opcode::FilterNotLike) return unknown();
        keep([&](size_t i) {
          return m->a_null[i] == 0 &&
                 Like(Characters(texts_->Get(m->a[i])), 0, pattern) == (in.op == Opcode::FilterLike);
        });
        break;
      }
      case Shape::Load: {
        const View b = Fetch(m, in.p2, 0);
        each([&](size_t i) {
          m->a[i] = b.V(i);
          m->a_null[i] = b.Null(i) ? 1 : 0;
        });
        break;
      }
      case Shape::LoadWide: {
        const View b = Fetch(m, in.p2, 0);
        each([&](size_t i) {
          m->w[i] = b.W(i);
          m->w_null[i] = b.Null(i) ? 1 : 0;
        });
        break;
      }
      case Shape::Store: {
        Cells& r = m->registers[static_cast<size_t>(in.p2)];
        each([&](size_t i) {
          r.v[i] = m->a[i];
          r.null[i] = m->a_null[i];
        });
        break;
      }
      case Shape::StoreWide: {
        Cells& r = m->registers[static_cast<size_t>(in.p2)];
        each([&](size_t i) {
          r.w[i] = m->w[i];
          r.null[i] = m->w_null[i];
        });
        break;
      }
      case Shape::Binary: {
        const View b = Fetch(m, in.p2, 0);
        each([&](size_t i) {
          uint8_t& null = info.in == AccumulatorSpec::W ? m->w_null[i] : m->a_null[i];
          if (b.Null(i)) null = 1;
          if (null != 0) return;
          Fate fate;
          if (info.in == AccumulatorSpec::W) {
            fate = BinaryW(in.op, m->w[i], b.W(i), &m->w[i]);
          } else if (info.in == AccumulatorSpec::F) {
            double r = 0;
            fate = BinaryF(in.op, AsDouble(m->a[i]), AsDouble(b.V(i)), &r);
            m->a[i] = AsBits(r);
          } else {
            fate = BinaryI(in.op, m->a[i], b.V(i), &m->a[i]);
          }
          if (fate == Fate::kUnknownOpcode) return unknown();
          if (fate == Fate::kNull) null = 1;
          if (fate == Fate::kError || fate == Fate::kUnspecified) misfit(i, fate);
        });
        break;
      }
      case Shape::Ternary: {
        const View b = Fetch(m, in.p2, 0), c = Fetch(m, in.p3, 1);
        each([&](size_t i) {
          if (b.Null(i) || c.Null(i)) m->a_null[i] = 1;
          if (m->a_null[i] != 0) return;
          const Fate fate = TernaryAny(in.op, m->a[i], b.V(i), c.V(i), &m->a[i]);
          if (fate == Fate::kUnknownOpcode) return unknown();
          if (fate == Fate::kError) misfit(i, fate);
        });
        break;
      }
      case Shape::Unary:
        each([&](size_t i) {
          const uint8_t null = info.in == AccumulatorSpec::W ? m->w_null[i] : m->a_null[i];
          (info.out == AccumulatorSpec::W ? m->w_null[i] : m->a_null[i]) = null;
          if (null != 0) return;
          Scalar r;
          const Fate fate = UnaryAny(in.op, {m->a[i], m->w[i]}, &r);
          if (fate == Fate::kUnknownOpcode) return unknown();
          if (fate == Fate::kError) return misfit(i, fate);
          if (info.out == AccumulatorSpec::W) {
            m->w[i] = r.w;
          } else {
            m->a[i] = r.v;
          }
        });
        break;
      case Shape::UnaryField:
        each([&](size_t i) {
          if (m->a_null[i] != 0) return;
          const Fate fate = UnaryField(in.op, m->a[i], in.p3, &m->a[i]);
          if (fate == Fate::kUnknownOpcode) return unknown();
          if (fate == Fate::kUnspecified || fate == Fate::kError) misfit(i, fate);
        });
        break;
      case Shape::BinaryField: {
        const View b = Fetch(m, in.p2, 0);
        each([&](size_t i) {
          if (b.Null(i)) m->a_null[i] = 1;
          if (m->a_null[i] != 0) return;
          const Fate fate = BinaryField(in.op, m->a[i], b.V(i), in.p3, &m->a[i]);
          if (fate == Fate::kUnknownOpcode) return unknown();
          if (fate == Fate::kError) misfit(i, fate);
        });
        break;
      }
      case Shape::Check: {
        const Value &low = p_.constants[static_cast<size_t>(in.p2)], &high = p_.constants[static_cast<size_t>(in.p3)];
        if (in.op != Opcode::CheckI && in.op != Opcode::CheckW) return unknown();
        each([&](size_t i) {
          const bool wide = in.op == Opcode::CheckW;
          if ((wide ? m->w_null[i] : m->a_null[i]) != 0) return;
          const int128_t v = wide ? m->w[i] : m->a[i];
          if (v < (wide ? low.wide : low.i64) || v > (wide ? high.wide : high.i64)) misfit(i, Fate::kError);
        });
        break;
      }
      case Shape::TextUnary:
      case Shape::TextCut:
      case Shape::TextLength:
        each([&](size_t i) {
          if (m->a_null[i] != 0) return;
          const std::string text = texts_->Get(m->a[i]);
          std::string r;
          if (info.shape == Shape::TextLength) {
            if (TextLength(in.op, text, &m->a[i]) != Fate::kValue) unknown();
            return;
          }
          if (in.op == Opcode::CutT) {
            const std::vector<std::string> c = Characters(text);
            for (size_t k = 0; k < c.size() && k < static_cast<size_t>(in.p3); ++k) r += c[k];
          } else if (TextUnary(in.op, text, &r) != Fate::kValue) {
            return unknown();
          }
          m->a[i] = texts_->Number(r);
        });
        break;
      case Shape::TextNumber:
      case Shape::TextFind:
      case Shape::TextReplace:
      case Shape::TextPad:
      case Shape::TextPart: {
        const View b = Fetch(m, in.p2, 0);
        const bool third = info.shape != Shape::TextNumber && info.shape != Shape::TextFind;
        const View c = third ? Fetch(m, in.p3, 1) : View{};
        const bool b_is_text = info.shape != Shape::TextNumber && info.shape != Shape::TextPad;
        const bool c_is_text = third && info.shape != Shape::TextPart;
        each([&](size_t i) {
          if (b.Null(i) || (third && c.Null(i))) m->a_null[i] = 1;
          if (m->a_null[i] != 0) return;
          const auto operand = [&](const View& v, bool is_text) {
            return is_text ? TextOperand{0, texts_->Get(v.V(i))} : TextOperand{v.V(i), ""};
          };
          std::string r;
          int64_t number = 0;
          const Fate fate = TextOfOperands(in.op, texts_->Get(m->a[i]), operand(b, b_is_text),
                                           third ? operand(c, c_is_text) : TextOperand{}, &r, &number);
          if (fate == Fate::kUnknownOpcode) return unknown();
          if (fate != Fate::kValue) return misfit(i, fate);
          m->a[i] = info.out == AccumulatorSpec::T ? texts_->Number(r) : number;
        });
        break;
      }
      case Shape::RegexPart:
      case Shape::RegexReplace: {
        const bool replaces = info.shape == Shape::RegexReplace;
        const std::string& pattern = p_.constants[static_cast<size_t>(in.p2)].text;
        const std::string replacement = replaces ? p_.constants[static_cast<size_t>(in.p3)].text : "";
        each([&](size_t i) {
          if (m->a_null[i] != 0) return;
          std::string r;
          int64_t number = 0;
          const Fate fate = OfRegex(in.op, texts_->Get(m->a[i]), pattern, replacement, {in.p3, in.p4}, &r, &number);
          if (fate == Fate::kUnknownOpcode) return unknown();
          if (fate == Fate::kNull) m->a_null[i] = 1;
          m->a[i] = info.out == AccumulatorSpec::T ? texts_->Number(r) : number;
        });
        break;
      }
      case Shape::AddInterval:
      case Shape::Between:
      case Shape::IntervalTimes:
      case Shape::MakeWide: {
        const bool third = info.shape == Shape::MakeWide;
        const View b = Fetch(m, in.p2, 0), c = third ? Fetch(m, in.p3, 1) : View{};
        const bool wide = info.shape == Shape::AddInterval || info.shape == Shape::IntervalTimes;
        each([&](size_t i) {
          if (b.Null(i) || (third && c.Null(i))) m->a_null[i] = 1;
          if (m->a_null[i] == 0) {
            Scalar r;
            const Fate fate =
                OfInterval(in.op, m->a[i], wide ? Scalar{0, b.W(i)} : Scalar{b.V(i), 0}, third ? c.V(i) : 0, &r);
            if (fate == Fate::kUnknownOpcode) return unknown();
            if (fate == Fate::kError) return misfit(i, fate);
            if (fate == Fate::kNull) m->a_null[i] = 1;
            if (info.out == AccumulatorSpec::W) {
              m->w[i] = r.w;
            } else {
              m->a[i] = r.v;
            }
          }
          if (info.out == AccumulatorSpec::W) m->w_null[i] = m->a_null[i];
        });
        break;
      }
      case Shape::Zone: {
        const std::string& zone = p_.constants[static_cast<size_t>(in.p2)].text;
        each([&](size_t i) {
          if (m->a_null[i] != 0) return;
          std::string text = info.in == AccumulatorSpec::T ? texts_->Get(m->a[i]) : std::string();
          const Fate fate = InZone(in.op, zone, &m->a[i], &text);
          if (fate == Fate::kUnknownOpcode) return unknown();
          if (fate == Fate::kError && in.p3 != 0) {
            m->a_null[i] = 1;
          } else if (fate != Fate::kValue) {
            misfit(i, fate);
          } else if (info.out == AccumulatorSpec::T) {
            m->a[i] = texts_->Number(text);
          }
        });
        break;
      }
      case Shape::TextConcat: {
        if (in.op != Opcode::ConcatT) return unknown();
        const View b = Fetch(m, in.p2, 0);
        each([&](size_t i) {
          if (b.Null(i)) m->a_null[i] = 1;
          if (m->a_null[i] == 0) m->a[i] = texts_->Number(texts_->Get(m->a[i]) + texts_->Get(b.V(i)));
        });
        break;
      }
      case Shape::TextSubstring: {
        if (in.op != Opcode::SubstringT && in.op != Opcode::SubbytesT) return unknown();
        const View from = Fetch(m, in.p2, 0);
        const View length = in.p3 == -1 ? View{} : Fetch(m, in.p3, 1);
        each([&](size_t i) {
          if (from.Null(i) || (in.p3 != -1 && length.Null(i))) m->a_null[i] = 1;
          if (m->a_null[i] != 0) return;
          if (in.p3 != -1 && length.V(i) < 0) return misfit(i, Fate::kError);
          std::vector<std::string> c;
          if (in.op == Opcode::SubstringT) c = Characters(texts_->Get(m->a[i]));
          if (in.op == Opcode::SubbytesT) {
            for (char byte : texts_->Get(m->a[i])) c.emplace_back(1, byte);
          }
          const int128_t first = from.V(i);
          const int128_t end = in.p3 == -1 ? kInt128Max : first + length.V(i);
          std::string r;
          for (size_t k = 0; k < c.size(); ++k) {
            const int128_t position = static_cast<int128_t>(k) + 1;
            if (position >= first && position < end) r += c[k];
          }
          m->a[i] = texts_->Number(r);
        });
        break;
      }
      case Shape::ToText: {
        if (in.op != Opcode::IToT && in.op != Opcode::FToT && in.op != Opcode::WToT && in.op != Opcode::ChrT)
          return unknown();
        const SqlType type = UnpackType(in.p3);
        each([&](size_t i) {
          m->a_null[i] = in.op == Opcode::WToT ? m->w_null[i] : m->a_null[i];
          if (m->a_null[i] != 0) return;
          std::string r;
          const Fate fate = in.op == Opcode::ChrT ? CharacterOf(m->a[i], &r) : ToTextOf(type, {m->a[i], m->w[i]}, &r);
          if (fate != Fate::kValue) return misfit(i, fate);
          m->a[i] = texts_->Number(r);
        });
        break;
      }
      case Shape::Place:
        each([&](size_t i) {
          m->a[i] = static_cast<int64_t>(i);
          m->a_null[i] = 0;
        });
        break;
      case Shape::Total: {
        std::vector<View> words;
        for (int k = 0; k < in.p3; ++k)
          words.push_back(Fetch(m, vm::Operand::Register(vm::Operand::Unpack(in.p2).index + k).Pack(), 0));
        each([&](size_t i) {
          if (m->a_null[i] != 0) return;
          std::vector<int64_t> state = {m->a[i]};
          for (const View& word : words) state.push_back(word.V(i));
          if (!OfState(in.op, state, &m->a[i])) unknown();
        });
        break;
      }
      case Shape::Format: {
        const SqlType type = UnpackType(in.p3);
        if (in.op != Opcode::FormatI && in.op != Opcode::FormatF && in.op != Opcode::FormatW) return unknown();
        each([&](size_t i) {
          m->a_null[i] = in.op == Opcode::FormatW ? m->w_null[i] : m->a_null[i];
          if (m->a_null[i] != 0) return;
          std::string r;
          if (const Fate fate = FormatOf(type, {m->a[i], m->w[i]}, &r); fate != Fate::kValue) return misfit(i, fate);
          m->a[i] = texts_->Number(r);
        });
        break;
      }
      case Shape::FromText: {
        if (in.op != Opcode::TToI && in.op != Opcode::TToF && in.op != Opcode::TToW) return unknown();
        const SqlType type = UnpackType(in.p3);
        each([&](size_t i) {
          if (in.op == Opcode::TToW) m->w_null[i] = m->a_null[i];
          if (m->a_null[i] != 0) return;
          Scalar r;
          const Fate fate = FromTextOf(type, texts_->Get(m->a[i]), &r);
          if (fate == Fate::kUnknownOpcode) return unknown();
          if (fate != Fate::kValue && in.p4 != 0) {
            (in.op == Opcode::TToW ? m->w_null : m->a_null)[i] = 1;
            return;
          }
          if (fate != Fate::kValue) return misfit(i, fate);
          if (in.op == Opcode::TToW) {
            m->w[i] = r.w;
          } else {
            m->a[i] = r.v;
          }
        });
        break;
      }
      case Shape::Probe:
      case Shape::ProbeOuter: {
        if (in.op != Opcode::Probe && in.op != Opcode::ProbeOuter) return unknown();
        m->outer[in.p1] = in.op == Opcode::ProbeOuter ? 1 : 0;
        const Section& builder = p_.sections[static_cast<size_t>(p_.joins[in.p1].section)];
        std::vector<bool> wide;
        const std::vector<View> keys = Keys(m, in, builder.columns, &wide);
        m->cursors[in.p1].resize(n);
        keep([&](size_t i) {
          bool null;
          const std::string key = KeyOf(keys, wide, i, &null);
          auto found = joins_[in.p1].rows.find(key);
          Cursor& c = m->cursors[in.p1][i];
          c = null || found == joins_[in.p1].rows.end() ? Cursor{} : Cursor{&found->second, 0};
          return c.valid() || m->outer[in.p1] != 0;
        });
        break;
      }
      case Shape::Build:
      case Shape::Emit: {
        const size_t keys = info.shape == Shape::Build ? static_cast<size_t>(s.keys) : 0;
        each([&](size_t i) {
          for (size_t k = 0; k < keys; ++k) {
            if (m->registers[k].null[i] != 0) return;
          }
          for (size_t c = 0; c < m->out.size(); ++c) m->out[c].Push(m->registers[c], i);
          m->out_from.push_back(static_cast<uint32_t>(i));
        });
        break;
      }
      case Shape::Group: {
        if (s.keys == 0) break;
        std::vector<bool> wide;
        const std::vector<View> keys = Keys(m, in, s.columns, &wide);
        each([&](size_t i) {
          bool null;
          const auto [found, made] =
              m->groups.emplace(KeyOf(keys, wide, i, &null), static_cast<uint32_t>(m->groups.size()));
          m->group[i] = found->second;
          if (!made) return;
          for (size_t k = 0; k < keys.size(); ++k) {
            Cells& c = m->keys[k];
            c.null.push_back(keys[k].Null(i) ? 1 : 0);
            if (wide[k]) {
              c.w.push_back(keys[k].Null(i) ? 0 : keys[k].W(i));
            } else {
              c.v.push_back(keys[k].Null(i) ? 0 : keys[k].V(i));
            }
          }
          for (auto& states : m->states) states.emplace_back();
        });
        break;
      }
      case Shape::CountRows:
      case Shape::CountValues:
      case Shape::Fold:
      case Shape::FoldText:
        each([&](size_t i) {
          State& state = m->states[in.p1][m->group[i]];
          if (!Aggregate(in.op, &state, *m, i)) unknown();
        });
        break;
    }
  }
}

bool Reference::Aggregate(Opcode op, State* s, const Machine& m, size_t i) {
  const int64_t a = m.a[i];
  const int128_t w = m.w[i];
  const bool first = !s->seen;
  const bool null = op != Opcode::CountRows && (Info(op).in == AccumulatorSpec::W ? m.w_null[i] : m.a_null[i]) != 0;
  if (!null) {
    s->seen = true;
    ++s->count;
  }
  auto take = [&](bool better) {
    if (null || !(first || better)) return;
    s->v = a;
    s->w = w;
  };
  switch (op) {
    case Opcode::CountRows:
    case Opcode::Count:
    case Opcode::CountW:
      return true;
    case Opcode::SumI:
      if (!null) s->w += a;
      return true;
    case Opcode::SumW:
      if (!null && __builtin_add_overflow(s->w, w, &s->w)) failed = true;
      return true;
    case Opcode::SumF:
    case Opcode::ProductF:
    case Opcode::MomentsF:
      if (!null) s->values.push_back(AsDouble(a));
      return true;
    case Opcode::MinI:
      take(a < s->v);
      return true;
    case Opcode::MaxI:
      take(a > s->v);
      return true;
    case Opcode::BitAndI:
      if (!null) s->v = first ? a : ~(~a | ~s->v);
      return true;
    case Opcode::BitOrI:
      if (!null) s->v = first ? a : ~(~a & ~s->v);
      return true;
    case Opcode::BitXorI:
      if (!null) s->v = first ? a : (a | s->v) & ~(a & s->v);
      return true;
    case Opcode::MinW:
      take(w < s->w);
      return true;
    case Opcode::MaxW:
      take(w > s->w);
      return true;
    case Opcode::MinF:
      take(CompareFloats(AsDouble(a), AsDouble(s->v)) < 0);
      return true;
    case Opcode::MaxF:
      take(CompareFloats(AsDouble(a), AsDouble(s->v)) > 0);
      return true;
    case Opcode::MinT:
      take(!null && !first && CompareBytes(texts_->Get(a), texts_->Get(s->v)) < 0);
      return true;
    case Opcode::MaxT:
      take(!null && !first && CompareBytes(texts_->Get(a), texts_->Get(s->v)) > 0);
      return true;
    default:
      return false;
  }
}

}  // namespace tessera::test::walk
