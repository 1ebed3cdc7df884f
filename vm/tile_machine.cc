// The host interpreter. One switch, expanded from opcodes.def, calls one loop per shape, instantiated with the meaning
// of the opcode.

#include "vm/tile_machine.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include "vm/dictionary.h"
#include "vm/lane_error.h"
#include "vm/row_set.h"
#include "vm/text_meaning.h"

namespace tessera::vm {
namespace {

/// Below one live row in this many, loops run over the list of live rows.
constexpr int kSparse = 6;

template <class T>
T FromBits(int64_t v) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(v);
  } else {
    return static_cast<T>(v);
  }
}
template <class T>
int64_t ToBits(T v) {
  if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<int64_t>(v);
  } else {
    return static_cast<int64_t>(v);
  }
}

}  // namespace

TileMachine::TileMachine(const Program& program, int section, const std::vector<std::unique_ptr<JoinIndex>>& joins,
                         StringPool* strings)
    : program_(program),
      section_(program.sections[static_cast<size_t>(section)]),
      joins_(joins),
      strings_(strings),
      join_before_(JoinsBefore(section_)) {
  bool wide = false;
  registers_.resize(section_.registers.size());
  for (size_t i = 0; i < registers_.size(); ++i) {
    Register& r = registers_[i];
    r.null.resize(kTileRows);
    if (IsWide(section_.registers[i])) {
      r.wide.resize(kTileRows);
    } else {
      r.narrow.resize(kTileRows);
    }
  }
  masks_.resize(static_cast<size_t>(section_.masks));
  for (MaskRegister& m : masks_) m.rows.resize(kTileRows);
  cursors_.resize(program.joins.size());
  crossed_.resize(program.joins.size());
  outer_.resize(program.joins.size());
  for (const Instruction& in : section_.code) {
    const OpcodeInfo& info = Info(in.op);
    wide |= info.in == AccumulatorSpec::W || info.out == AccumulatorSpec::W;
    const bool probe = info.role == Role::Probe;
    if (probe && in.p3 == 0) crossed_[in.p1].end = static_cast<uint32_t>(joins[in.p1]->rows().rows);
    if (probe && in.p3 > 0) cursors_[in.p1].resize(kTileRows, kNoRow);
    if (info.shape == Shape::ProbeOuter) outer_[in.p1] = 1;
    if (info.role == Role::Group) group_.resize(kTileRows);
    // A key may be a wide operand where no instruction has a wide accumulator.
    if (TakesKeys(info)) {
      const Section& keyed = probe ? program.sections[static_cast<size_t>(program.joins[in.p1].section)] : section_;
      for (int k = 0; k < in.p3; ++k) wide |= IsWide(keyed.columns[static_cast<size_t>(k)]);
    }
  }
  if (wide) {
    w_.resize(kTileRows);
    w_null_.resize(kTileRows);
    wide_scratch_ = std::make_unique_for_overwrite<WideScratch>();
  }
  constants_.resize(program.constants.size());
  constant_null_.resize(program.constants.size());
  for (size_t i = 0; i < program.constants.size(); ++i) {
    const Value& v = program.constants[i];
    constant_null_[i] = v.null ? 1 : 0;
    if (v.null) continue;
    switch (v.type.storage()) {
      case StorageClass::kInt:
        constants_[i] = v.i64;
        break;
      case StorageClass::kFloat:
        constants_[i] = std::bit_cast<int64_t>(v.f64);
        break;
      case StorageClass::kText:
        constants_[i] = strings->Intern(v.text);
        break;
      case StorageClass::kWide:
        break;
    }
  }
  scratch_ = std::make_unique_for_overwrite<Scratch[]>(3);
  memset(a_, 0, sizeof a_);
}

// ---- The mask -------------------------------------------------------------------------------------------------------

void TileMachine::SetMaskToAll() {
  memset(mask_, 1, static_cast<size_t>(n_));
  memset(mask_ + n_, 0, static_cast<size_t>(kTileRows - n_));
  live_ = n_;
  sparse_ = false;
}

void TileMachine::MaskChanged() {
  int live = 0;
  const int words = (n_ + 7) / 8;  // rows beyond n_ are never set
  for (int k = 0; k < words; ++k) {
    uint64_t word;
    memcpy(&word, mask_ + 8 * k, 8);
    live += std::popcount(word);
  }
  live_ = live;
  sparse_ = live * kSparse < n_;
  if (!sparse_) return;
  int out = 0;
  for (int k = 0; k < words; ++k) {
    uint64_t word;
    memcpy(&word, mask_ + 8 * k, 8);
    while (word != 0) {
      list_[out++] = static_cast<uint16_t>(8 * k + std::countr_zero(word) / 8);
      word &= word - 1;
    }
  }
}

template <class F>
void TileMachine::Keep(F f) {
  if (sparse_) {
    int out = 0;
    for (int k = 0; k < live_; ++k) {
      const int i = list_[k];
      const bool keep = f(i);
      mask_[i] = keep ? 1 : 0;
      list_[out] = static_cast<uint16_t>(i);
      out += keep ? 1 : 0;
    }
    live_ = out;
    return;
  }
  for (int i = 0; i < n_; ++i) mask_[i] = static_cast<uint8_t>(mask_[i] & static_cast<uint8_t>(f(i)));
  MaskChanged();
}

template <class M>
void TileMachine::DoMaskRegister(const Instruction& in) {
  uint8_t* saved = masks_[in.p1].rows.data();
  for (int i = 0; i < n_; ++i) M::Apply(mask_[i], saved[i]);
  if constexpr (std::is_same_v<M, meaning::MaskLoad> || std::is_same_v<M, meaning::MaskAndNot>) MaskChanged();
}

// ---- Operands -------------------------------------------------------------------------------------------------------

template <class Code, class Convert>
void TileMachine::DecodeSlot(const SlotEncoding& b, int64_t* out, Convert convert) {
  const Code* codes = reinterpret_cast<const Code*>(b.codes) + first_;
  ForLive([&](int i) { out[i] = convert(static_cast<uint64_t>(codes[i])); });
}

int64_t TileMachine::AskMap(int slot, uint64_t entry) {
  // Threads that ask at the same time get the same identifier.
  std::atomic_ref<int64_t> known(const_cast<int64_t*>(tablet_->slots[static_cast<size_t>(slot)].map)[entry]);
  int64_t id = known.load(std::memory_order_relaxed) - 1;
  if (id < 0) {
    id = strings_->Intern(tablet_->chunks[static_cast<size_t>(slot)]->Entry(static_cast<uint32_t>(entry)));
    known.store(id + 1, std::memory_order_relaxed);
  }
  return id;
}

TileMachine::Source<int64_t> TileMachine::FetchSlot(int slot, int scratch) {
  const SlotEncoding& b = tablet_->slots[static_cast<size_t>(slot)];
  Scratch& s = scratch_[scratch];
  if (b.decode == Decode::kConstant || b.all_null) {
    s.narrow[0] = static_cast<int64_t>(b.base);
    return {s.narrow, nullptr, true, b.all_null};
  }
  auto by_width = [&](auto convert) {
    switch (b.width) {
      case 1:
        return DecodeSlot<uint8_t>(b, s.narrow, convert);
      case 2:
        return DecodeSlot<uint16_t>(b, s.narrow, convert);
      case 4:
        return DecodeSlot<uint32_t>(b, s.narrow, convert);
      default:
        return DecodeSlot<uint64_t>(b, s.narrow, convert);
    }
  };
  auto by_width_of_live = [&](auto convert) {
    auto decode = [&](auto code) {
      const decltype(code)* codes = reinterpret_cast<const decltype(code)*>(b.codes) + first_;
      ForOnlyLive([&](int i) { s.narrow[i] = convert(static_cast<uint64_t>(codes[i])); });
    };
    switch (b.width) {
      case 1:
        return decode(uint8_t{});
      case 2:
        return decode(uint16_t{});
      case 4:
        return decode(uint32_t{});
      default:
        return decode(uint64_t{});
    }
  };
  const uint64_t base = b.base;
  switch (b.decode) {
    case Decode::kFrame:
      by_width([base](uint64_t c) { return static_cast<int64_t>(base + c); });
      break;
    case Decode::kFloat:
      by_width([base](uint64_t c) { return std::bit_cast<int64_t>(FromOrderedFloat(base + c)); });
      break;
    case Decode::kReal:
      by_width([base](uint64_t c) {
        return std::bit_cast<int64_t>(static_cast<double>(FromOrderedFloat32(static_cast<uint32_t>(base + c))));
      });
      break;
    case Decode::kMap: {
      if (b.lazy_map) {
        by_width_of_live([&](uint64_t c) { return b.has_null_code && c == b.null_code ? 0 : AskMap(slot, c); });
        break;
      }
      const int64_t* map = b.map;
      if (b.has_null_code) {
        const uint64_t null_code = b.null_code;
        by_width([=](uint64_t c) { return c == null_code ? 0 : map[c]; });
      } else {
        by_width([=](uint64_t c) { return map[c]; });
      }
      break;
    }
    case Decode::kMapRow:
      if (b.lazy_map) {
        ForOnlyLive([&](int i) {
          const uint64_t row = first_ + static_cast<uint32_t>(i);
          s.narrow[i] = b.null_bytes != nullptr && b.null_bytes[row] != 0 ? 0 : AskMap(slot, row);
        });
        break;
      }
      ForLive([&](int i) { s.narrow[i] = b.map[first_ + static_cast<uint32_t>(i)]; });
      break;
    case Decode::kRaw:
      memcpy(s.narrow, b.codes + size_t{8} * first_, size_t{8} * static_cast<size_t>(n_));
      break;
    case Decode::kConstant:
      break;
  }
  if (!b.MayBeNull()) return {s.narrow, nullptr, false, false};
  if (b.has_null_code) {
    auto nulls = [&](auto code) {
      using Code = decltype(code);
      const Code* codes = reinterpret_cast<const Code*>(b.codes) + first_;
      const Code null_code = static_cast<Code>(b.null_code);
      ForLive([&](int i) { s.null[i] = codes[i] == null_code ? 1 : 0; });
    };
    switch (b.width) {
      case 1:
        nulls(uint8_t{});
        break;
      case 2:
        nulls(uint16_t{});
        break;
      case 4:
        nulls(uint32_t{});
        break;
      default:
        nulls(uint64_t{});
        break;
    }
  } else if (b.null_bytes != nullptr) {
    memcpy(s.null, b.null_bytes + first_, static_cast<size_t>(n_));
  } else {
    memset(s.null, 0, static_cast<size_t>(n_));
  }
  if (b.map_null != nullptr) {
    auto nulls = [&](auto code_of) {
      ForLive([&](int i) {
        if (s.null[i] == 0) s.null[i] = b.map_null[code_of(i)];
      });
    };
    if (b.decode == Decode::kMapRow) {
      nulls([&](int i) { return uint64_t{first_} + static_cast<uint64_t>(i); });
    } else {
      switch (b.width) {
        case 1:
          nulls([&](int i) { return uint64_t{b.codes[first_ + static_cast<uint32_t>(i)]}; });
          break;
        case 2:
          nulls([&](int i) {
            return uint64_t{reinterpret_cast<const uint16_t*>(b.codes)[first_ + static_cast<uint32_t>(i)]};
          });
          break;
        default:
          nulls([&](int i) {
            return uint64_t{reinterpret_cast<const uint32_t*>(b.codes)[first_ + static_cast<uint32_t>(i)]};
          });
          break;
      }
    }
  }
  return {s.narrow, s.null, false, false};
}

TileMachine::Source<int128_t> TileMachine::FetchWideSlot(int slot) {
  const SlotEncoding& b = tablet_->slots[static_cast<size_t>(slot)];
  WideScratch& s = *wide_scratch_;
  const int128_t base = Make128(b.base_high, static_cast<int64_t>(b.base));
  if (b.decode == Decode::kConstant || b.all_null) {
    s.wide[0] = base;
    return {s.wide, nullptr, true, b.all_null};
  }
  if (b.decode == Decode::kRaw) {
    // An intermediate result: low halves in codes, high halves in map.
    const int64_t* low = reinterpret_cast<const int64_t*>(b.codes) + first_;
    const int64_t* high = b.map + first_;
    ForLive([&](int i) { s.wide[i] = Make128(high[i], low[i]); });
    return {s.wide, b.null_bytes == nullptr ? nullptr : b.null_bytes + first_, false, false};
  }
  auto decode = [&](auto code) {
    using Code = decltype(code);
    const Code* codes = reinterpret_cast<const Code*>(b.codes) + first_;
    ForLive([&](int i) {
      s.wide[i] = static_cast<int128_t>(static_cast<uint128_t>(base) + static_cast<uint128_t>(codes[i]));
    });
    if (!b.has_null_code) return;
    const Code null_code = sizeof(Code) == 16
                               ? static_cast<Code>(Make128(b.null_code_high, static_cast<int64_t>(b.null_code)))
                               : static_cast<Code>(b.null_code);
    ForLive([&](int i) { s.null[i] = codes[i] == null_code ? 1 : 0; });
  };
  switch (b.width) {
    case 1:
      decode(uint8_t{});
      break;
    case 2:
      decode(uint16_t{});
      break;
    case 4:
      decode(uint32_t{});
      break;
    case 8:
      decode(uint64_t{});
      break;
    default:
      decode(uint128_t{});
      break;
  }
  return {s.wide, b.has_null_code ? s.null : nullptr, false, false};
}

template <class T>
TileMachine::Source<T> TileMachine::Fetch(int32_t packed, int scratch) {
  const Operand o = Operand::Unpack(packed);
  constexpr bool kWide = std::is_same_v<T, int128_t>;
  switch (o.kind) {
    case OperandKind::kSlot:
      if constexpr (kWide) {
        return FetchWideSlot(o.index);
      } else {
        return FetchSlot(o.index, scratch);
      }
    case OperandKind::kRegister: {
      const Register& r = registers_[o.index];
      const uint8_t* nulls = r.may_be_null ? r.null.data() : nullptr;
      if constexpr (kWide) {
        return {r.wide.data(), nulls, false, false};
      } else {
        return {r.narrow.data(), nulls, false, false};
      }
    }
    case OperandKind::kConstant:
      if constexpr (kWide) {
        wide_scratch_->wide[0] = program_.constants[o.index].wide;
        return {wide_scratch_->wide, nullptr, true, constant_null_[o.index] != 0};
      } else {
        return {&constants_[o.index], nullptr, true, constant_null_[o.index] != 0};
      }
    case OperandKind::kPayload: {
      const JoinIndex& join = *joins_[o.table];
      const Section& builder = program_.sections[static_cast<size_t>(program_.joins[o.table].section)];
      const RowColumn& c = join.rows().columns[static_cast<size_t>(builder.keys) + o.index];
      if (builder.keys == 0) {
        const uint32_t row = crossed_[o.table].at;
        const bool null = row == kNoRow || (!c.null.empty() && c.null[row] != 0);
        if constexpr (kWide) {
          wide_scratch_->wide[0] = row == kNoRow ? 0 : Make128(c.high[row], c.low[row]);
          return {wide_scratch_->wide, nullptr, true, null};
        } else {
          scratch_[scratch].narrow[0] = row == kNoRow ? 0 : c.low[row];
          return {scratch_[scratch].narrow, nullptr, true, null};
        }
      }
      const uint32_t* cursor = cursors_[o.table].data();
      const uint32_t rows = static_cast<uint32_t>(join.rows().rows);
      // Dead rows may point nowhere; they read row 0.
      auto at = [&](int i) { return cursor[i] < rows ? cursor[i] : 0; };
      const bool outer = outer_[o.table] != 0;
      const bool nulls = outer || !c.null.empty();
      uint8_t* null_out = kWide ? (wide_scratch_ ? wide_scratch_->null : nullptr) : scratch_[scratch].null;
      if (outer) {
        ForLive([&](int i) { null_out[i] = cursor[i] >= rows || (!c.null.empty() && c.null[cursor[i]] != 0) ? 1 : 0; });
      } else if (nulls) {
        ForLive([&](int i) { null_out[i] = c.null[at(i)]; });
      }
      if constexpr (kWide) {
        if (rows > 0) {
          ForLive([&](int i) { wide_scratch_->wide[i] = Make128(c.high[at(i)], c.low[at(i)]); });
        } else if (outer) {
          std::fill_n(wide_scratch_->wide, n_, int128_t{0});
        }
        return {wide_scratch_->wide, nulls ? null_out : nullptr, false, false};
      } else {
        int64_t* out = scratch_[scratch].narrow;
        if (rows > 0) {
          ForLive([&](int i) { out[i] = c.low[at(i)]; });
        } else if (outer) {
          memset(out, 0, static_cast<size_t>(n_) * sizeof *out);  // NULLs, but of a value
        }
        return {out, nulls ? null_out : nullptr, false, false};
      }
    }
  }
  __builtin_unreachable();
}

template <class T>
T* TileMachine::Accumulator() {
  if constexpr (std::is_same_v<T, int128_t>) {
    return w_.data();
  } else {
    static_assert(std::is_same_v<T, int64_t>);
    return a_;
  }
}
template <class T>
uint8_t* TileMachine::AccumulatorNulls() {
  return std::is_same_v<T, int128_t> ? w_null_.data() : a_null_;
}
template <class T>
bool& TileMachine::AccumulatorMayBeNull() {
  return std::is_same_v<T, int128_t> ? w_may_be_null_ : a_may_be_null_;
}

/// The NULL bytes of A, made valid first if no row could be NULL so far.
uint8_t* TileMachine::NullsA() {
  if (!a_may_be_null_) memset(a_null_, 0, static_cast<size_t>(n_));
  a_may_be_null_ = true;
  return a_null_;
}

// ---- Loads and stores -----------------------------------------------------------------------------------------------

void TileMachine::CopyToA(const Source<int64_t>& s) {
  if (s.one) {
    const int64_t v = s.values[0];
    ForLive([&](int i) { a_[i] = v; });
    a_may_be_null_ = s.one_null;
    if (s.one_null) memset(a_null_, 1, static_cast<size_t>(n_));
    return;
  }
  ForLive([&](int i) { a_[i] = s.values[i]; });
  a_may_be_null_ = s.nulls != nullptr;
  if (s.nulls != nullptr) ForLive([&](int i) { a_null_[i] = s.nulls[i]; });
}

template <class M>
void TileMachine::DoLoad(const Instruction& in) {
  CopyToA(Fetch<int64_t>(in.p2, 0));
}

template <class M>
void TileMachine::DoLoadWide(const Instruction& in) {
  const Source<int128_t> s = Fetch<int128_t>(in.p2, 0);
  w_may_be_null_ = s.one ? s.one_null : s.nulls != nullptr;
  ForLive([&](int i) { w_[static_cast<size_t>(i)] = s.values[s.one ? 0 : i]; });
  if (w_may_be_null_) ForLive([&](int i) { w_null_[static_cast<size_t>(i)] = s.one ? 1 : s.nulls[i]; });
}

template <class M>
void TileMachine::DoStore(const Instruction& in) {
  Register& r = registers_[static_cast<size_t>(in.p2)];
  ForOnlyLive([&](int i) { r.narrow[static_cast<size_t>(i)] = a_[i]; });
  if (!a_may_be_null_ && !r.may_be_null) return;
  MayBecomeNull(&r);
  ForOnlyLive([&](int i) { r.null[static_cast<size_t>(i)] = a_may_be_null_ ? a_null_[i] : uint8_t{0}; });
}

template <class M>
void TileMachine::DoStoreWide(const Instruction& in) {
  Register& r = registers_[static_cast<size_t>(in.p2)];
  ForOnlyLive([&](int i) { r.wide[static_cast<size_t>(i)] = w_[static_cast<size_t>(i)]; });
  if (!w_may_be_null_ && !r.may_be_null) return;
  MayBecomeNull(&r);
  ForOnlyLive(
      [&](int i) { r.null[static_cast<size_t>(i)] = w_may_be_null_ ? w_null_[static_cast<size_t>(i)] : uint8_t{0}; });
}

// ---- Filters --------------------------------------------------------------------------------------------------------

template <class Code>
void TileMachine::FilterCodes(const PredicateEncoding& p, const SlotEncoding& s) {
  const Code* codes = reinterpret_cast<const Code*>(s.codes) + first_;
  if (p.kind == PredicateEncoding::Kind::kSet) {
    if constexpr (sizeof(Code) <= 8) Keep([&](int i) { return p.set[codes[i]] != 0; });
    return;
  }
  Code low, span, null_code;
  if constexpr (sizeof(Code) == 16) {
    low = static_cast<Code>(p.low_high) << 64 | p.low;
    span = static_cast<Code>(p.span_high) << 64 | p.span;
    null_code = static_cast<Code>(static_cast<uint64_t>(s.null_code_high)) << 64 | s.null_code;
  } else {
    low = static_cast<Code>(p.low);
    span = static_cast<Code>(p.span);
    null_code = static_cast<Code>(s.null_code);
  }
  if (p.negated) {
    if (p.exclude_null) {
      Keep([=](int i) { return (static_cast<Code>(codes[i] - low) > span) & (codes[i] != null_code); });
    } else {
      Keep([=](int i) { return static_cast<Code>(codes[i] - low) > span; });
    }
  } else if (p.exclude_null) {
    Keep([=](int i) { return (static_cast<Code>(codes[i] - low) <= span) & (codes[i] != null_code); });
  } else {
    Keep([=](int i) { return static_cast<Code>(codes[i] - low) <= span; });
  }
}

template <class M>
void TileMachine::DoFilter(const Instruction& in) {
  const PredicateEncoding& p = tablet_->predicates[in.p1];
  switch (p.kind) {
    case PredicateEncoding::Kind::kAll:
      return;
    case PredicateEncoding::Kind::kNone:
      memset(mask_, 0, static_cast<size_t>(n_));
      live_ = 0;
      sparse_ = true;
      return;
    case PredicateEncoding::Kind::kNulls: {
      const uint8_t* nulls = p.null_bytes + first_;
      const uint8_t flip = p.negated ? 1 : 0;
      return Keep([=](int i) { return (nulls[i] ^ flip) != 0; });
    }
    case PredicateEncoding::Kind::kSet:
      if (p.by_row) {
        const uint8_t* set = p.set + first_;
        return Keep([=](int i) { return set[i] != 0; });
      }
      break;
    case PredicateEncoding::Kind::kRange:
      break;
  }
  const SlotEncoding& s = tablet_->slots[static_cast<size_t>(p.slot)];
  switch (s.width) {
    case 1:
      return FilterCodes<uint8_t>(p, s);
    case 2:
      return FilterCodes<uint16_t>(p, s);
    case 4:
      return FilterCodes<uint32_t>(p, s);
    case 8:
      return FilterCodes<uint64_t>(p, s);
    default:
      return FilterCodes<uint128_t>(p, s);
  }
}

template <class M>
void TileMachine::DoTest(const Instruction&) {
  if (a_may_be_null_) {
    Keep([&](int i) { return M::Apply(a_[i], a_null_[i] != 0); });
  } else {
    Keep([&](int i) { return M::Apply(a_[i], false); });
  }
}

template <class M>
void TileMachine::DoTestNull(const Instruction&) {
  const bool may = M::kWide ? w_may_be_null_ : a_may_be_null_;
  const uint8_t* nulls = M::kWide ? w_null_.data() : a_null_;
  Keep([&](int i) { return M::Apply(may && nulls[i] != 0); });
}

template <class M>
void TileMachine::DoCompare(const Instruction& in) {
  using T = typename M::Type;
  using Stored = std::conditional_t<std::is_same_v<T, int128_t>, int128_t, int64_t>;
  const Source<Stored> s = Fetch<Stored>(in.p2, 0);
  const Stored* acc = Accumulator<Stored>();
  const uint8_t* acc_null = AccumulatorMayBeNull<Stored>() ? AccumulatorNulls<Stored>() : nullptr;
  auto as = [](Stored v) {
    if constexpr (std::is_same_v<Stored, int128_t>) {
      return v;
    } else {
      return FromBits<T>(v);
    }
  };
  if (s.one) {
    if (s.one_null) return Keep([](int) { return false; });
    const T b = as(s.values[0]);
    if (acc_null == nullptr) return Keep([&](int i) { return M::Apply(as(acc[i]), b); });
    return Keep([&](int i) { return M::Apply(as(acc[i]), b) & (acc_null[i] == 0); });
  }
  if (acc_null == nullptr && s.nulls == nullptr)
    return Keep([&](int i) { return M::Apply(as(acc[i]), as(s.values[i])); });
  Keep([&](int i) {
    return M::Apply(as(acc[i]), as(s.values[i])) & (acc_null == nullptr || acc_null[i] == 0) &
           (s.nulls == nullptr || s.nulls[i] == 0);
  });
}

template <class M>
void TileMachine::DoTextCompare(const Instruction& in) {
  const Source<int64_t> s = Fetch<int64_t>(in.p2, 0);
  Keep([&](int i) {
    if (mask_[i] == 0 || (a_may_be_null_ && a_null_[i] != 0)) return false;
    if (s.one ? s.one_null : s.nulls != nullptr && s.nulls[i] != 0) return false;
    return M::Apply(strings_->Get(a_[i]), strings_->Get(s.values[s.one ? 0 : i]));
  });
}

template <class M>
void TileMachine::DoLike(const Instruction& in) {
  const std::string& pattern = program_.constants[static_cast<size_t>(in.p2)].text;
  Keep([&](int i) {
    if (mask_[i] == 0 || (a_may_be_null_ && a_null_[i] != 0)) return false;
    return LikeMatches(strings_->Get(a_[i]), pattern) != M::kNegated;
  });
}

// ---- Arithmetic -----------------------------------------------------------------------------------------------------

template <class M>
void TileMachine::DoBinary(const Instruction& in) {
  using T = typename M::Type;
  constexpr bool kWide = std::is_same_v<T, int128_t>;
  using Stored = std::conditional_t<kWide, int128_t, int64_t>;
  const Source<Stored> s = Fetch<Stored>(in.p2, 0);
  Stored* acc = Accumulator<Stored>();
  uint8_t* acc_null = AccumulatorNulls<Stored>();
  bool& may_be_null = AccumulatorMayBeNull<Stored>();
  auto as = [](Stored v) {
    if constexpr (kWide) {
      return v;
    } else {
      return FromBits<T>(v);
    }
  };
  auto back = [](T v) {
    if constexpr (kWide) {
      return v;
    } else {
      return ToBits<T>(v);
    }
  };
  // NULL bytes are carried only if some operand can be NULL or the operation can make one.
  if (s.one && s.one_null) {
    memset(acc_null, 1, static_cast<size_t>(n_));
    may_be_null = true;
    return;
  }
  if (s.nulls != nullptr) {
    if (!may_be_null) {
      ForLive([&](int i) { acc_null[i] = s.nulls[i]; });
    } else {
      ForLive([&](int i) { acc_null[i] |= s.nulls[i]; });
    }
    may_be_null = true;
  }
  const bool was_null = may_be_null;
  uint8_t made_null = 0;
  auto apply = [&](int i, T b) {
    Lane lane;
    const T r = M::Apply(as(acc[i]), b, lane);
    acc[i] = back(r);
    if (lane.null) {
      if (!may_be_null) memset(acc_null, 0, static_cast<size_t>(n_));
      may_be_null = true;
      acc_null[i] = 1;
      made_null = 1;
    }
    if (lane.error != LaneError::kNone && mask_[i] != 0 && !(was_null && acc_null[i] != 0)) NoteError(lane.error);
  };
  if (s.one) {
    const T b = as(s.values[0]);
    ForLive([&](int i) { apply(i, b); });
  } else {
    ForLive([&](int i) { apply(i, as(s.values[i])); });
  }
}

template <class M>
void TileMachine::DoTernary(const Instruction& in) {
  using T = typename M::Type;
  const Source<int64_t> b = Fetch<int64_t>(in.p2, 0), c = Fetch<int64_t>(in.p3, 1);
  uint8_t* null = b.one_null || c.one_null || b.nulls != nullptr || c.nulls != nullptr ? NullsA() : nullptr;
  const auto is_null = [](const Source<int64_t>& s, int i) {
    return s.one ? s.one_null : s.nulls != nullptr && s.nulls[i] != 0;
  };
  ForOnlyLive([&](int i) {
    if (null != nullptr && (is_null(b, i) || is_null(c, i))) null[i] = 1;
    if (a_may_be_null_ && a_null_[i] != 0) return;
    Lane lane;
    a_[i] = ToBits<T>(
        M::Apply(FromBits<T>(a_[i]), FromBits<T>(b.values[b.one ? 0 : i]), FromBits<T>(c.values[c.one ? 0 : i]), lane));
    if (lane.null) NullsA()[i] = 1;
    if (lane.error != LaneError::kNone) NoteError(lane.error);
  });
}

template <class M>
void TileMachine::DoUnary(const Instruction&) {
  using In = typename M::In;
  using Out = typename M::Out;
  constexpr bool kWideIn = std::is_same_v<In, int128_t>, kWideOut = std::is_same_v<Out, int128_t>;
  if constexpr (kWideIn != kWideOut) {
    bool& to = kWideOut ? w_may_be_null_ : a_may_be_null_;
    to = kWideIn ? w_may_be_null_ : a_may_be_null_;
    if (to) memcpy(kWideOut ? w_null_.data() : a_null_, kWideIn ? w_null_.data() : a_null_, static_cast<size_t>(n_));
  }
  const uint8_t* nulls = (kWideIn ? w_may_be_null_ : a_may_be_null_) ? (kWideIn ? w_null_.data() : a_null_) : nullptr;
  int128_t* w = w_.data();
  ForLive([&](int i) {
    Lane lane;
    In v;
    if constexpr (kWideIn) {
      v = w[i];
    } else {
      v = FromBits<In>(a_[i]);
    }
    const Out r = M::Apply(v, lane);
    if constexpr (kWideOut) {
      w[i] = r;
    } else {
      a_[i] = ToBits<Out>(r);
    }
    if (lane.error != LaneError::kNone && mask_[i] != 0 && (nulls == nullptr || nulls[i] == 0)) NoteError(lane.error);
  });
}

template <class M>
void TileMachine::DoUnaryField(const Instruction& in) {
  using T = typename M::Type;
  ForLive([&](int i) {
    Lane lane;
    a_[i] = ToBits<T>(M::Apply(FromBits<T>(a_[i]), in.p3, lane));
  });
}

template <class M>
void TileMachine::DoCheck(const Instruction& in) {
  using T = typename M::Type;
  const Value& low_value = program_.constants[static_cast<size_t>(in.p2)];
  const Value& high_value = program_.constants[static_cast<size_t>(in.p3)];
  T low, high;
  if constexpr (std::is_same_v<T, int128_t>) {
    low = low_value.wide;
    high = high_value.wide;
  } else {
    low = low_value.i64;
    high = high_value.i64;
  }
  const T* acc = Accumulator<T>();
  const uint8_t* nulls = AccumulatorMayBeNull<T>() ? AccumulatorNulls<T>() : nullptr;
  ForLive([&](int i) {
    Lane lane;
    M::Apply(acc[i], low, high, lane);
    if (lane.error != LaneError::kNone && mask_[i] != 0 && (nulls == nullptr || nulls[i] == 0)) NoteError(lane.error);
  });
}

// ---- Text -----------------------------------------------------------------------------------------------------------

/// A = f(text of A) as an identifier, for live rows that are not NULL.
template <class F>
void TileMachine::MapText(F f) {
  // Neighbouring rows often hold the same string.
  int64_t last = -1, last_result = 0;
  ForOnlyLive([&](int i) {
    if (a_may_be_null_ && a_null_[i] != 0) return;
    if (a_[i] != last) {
      last = a_[i];
      last_result = f(strings_->Get(last));
    }
    a_[i] = last_result;
  });
}

template <class M>
void TileMachine::DoTextUnary(const Instruction&) {
  MapText([&](std::string_view s) {
    M::Apply(s, &text_);
    return strings_->Intern(text_);
  });
}
template <class M>
void TileMachine::DoTextCut(const Instruction& in) {
  MapText([&](std::string_view s) { return strings_->Intern(s.substr(0, CharacterOffset(s, in.p3))); });
}
template <class M>
void TileMachine::DoTextLength(const Instruction&) {
  MapText([](std::string_view s) { return CharacterCount(s); });
}

template <class M>
void TileMachine::DoTextConcat(const Instruction& in) {
  const Source<int64_t> s = Fetch<int64_t>(in.p2, 0);
  uint8_t* nulls = s.nulls != nullptr || (s.one && s.one_null) ? NullsA() : nullptr;
  ForOnlyLive([&](int i) {
    if (nulls != nullptr && (s.one || s.nulls[i] != 0)) nulls[i] = 1;
    if (a_may_be_null_ && a_null_[i] != 0) return;
    text_ = strings_->Get(a_[i]);
    text_ += strings_->Get(s.values[s.one ? 0 : i]);
    a_[i] = strings_->Intern(text_);
  });
}

template <class M>
void TileMachine::DoTextSubstring(const Instruction& in) {
  const Source<int64_t> from = Fetch<int64_t>(in.p2, 0);
  const bool bounded = in.p3 != -1;
  const Source<int64_t> length = bounded ? Fetch<int64_t>(in.p3, 1) : Source<int64_t>{nullptr, nullptr, true, false};
  auto null = [](const Source<int64_t>& s, int i) {
    return s.one ? s.one_null : s.nulls != nullptr && s.nulls[i] != 0;
  };
  ForOnlyLive([&](int i) {
    if (null(from, i) || null(length, i)) NullsA()[i] = 1;
    if (a_may_be_null_ && a_null_[i] != 0) return;
    const int64_t count = bounded ? length.values[length.one ? 0 : i] : 0;
    if (count < 0) return NoteError(LaneError::kNegativeLength);
    a_[i] = strings_->Intern(Substring(strings_->Get(a_[i]), from.values[from.one ? 0 : i], bounded, count));
  });
}

template <class M>
void TileMachine::DoToText(const Instruction& in) {
  constexpr bool kWide = std::is_same_v<M, meaning::WToT>;
  if constexpr (kWide) {
    a_may_be_null_ = w_may_be_null_;
    if (w_may_be_null_) memcpy(a_null_, w_null_.data(), static_cast<size_t>(n_));
  }
  Value v;
  v.type = UnpackType(in.p3);
  v.null = false;
  ForOnlyLive([&](int i) {
    if (a_may_be_null_ && a_null_[i] != 0) return;
    if constexpr (kWide) {
      v.wide = w_[static_cast<size_t>(i)];
    } else if constexpr (std::is_same_v<M, meaning::FToT>) {
      v.f64 = std::bit_cast<double>(a_[i]);
    } else {
      v.i64 = a_[i];
    }
    a_[i] = strings_->Intern(ToText(v));
  });
}

template <class M>
void TileMachine::DoFromText(const Instruction& in) {
  constexpr bool kWide = std::is_same_v<M, meaning::TToW>;
  if constexpr (kWide) {
    w_may_be_null_ = a_may_be_null_;
    if (a_may_be_null_) memcpy(w_null_.data(), a_null_, static_cast<size_t>(n_));
  }
  const SqlType type = UnpackType(in.p3);
  ForOnlyLive([&](int i) {
    if (a_may_be_null_ && a_null_[i] != 0) return;
    Result<Value> v = ParseValue(strings_->Get(a_[i]), type);
    if (!v.ok()) {
      if (error_ == LaneError::kNone) text_error_ = v.status();
      NoteError(LaneError::kBadText);
    } else if constexpr (kWide) {
      w_[static_cast<size_t>(i)] = v->wide;
    } else {
      a_[i] = std::is_same_v<M, meaning::TToF> ? std::bit_cast<int64_t>(v->f64) : v->i64;
    }
  });
}

// ---- Joins ----------------------------------------------------------------------------------------------------------

/// Calls f(row, words, nulls) for each live row with the words of its key: one word a key, two if wide; `nulls` has a
/// bit per NULL key, whose words are 0.
template <class F>
void TileMachine::WithKeyWords(const Instruction& in, const std::vector<SqlType>& types, F f) {
  int64_t words[2 * kMaxKeys + 1] = {};
  if (in.p3 == 1 && !IsWide(types[0])) {
    const Source<int64_t> s = Fetch<int64_t>(in.p2, 0);
    ForOnlyLive([&](int i) {
      const bool null = s.one ? s.one_null : s.nulls != nullptr && s.nulls[i] != 0;
      words[0] = null ? 0 : s.values[s.one ? 0 : i];
      f(i, words, uint64_t{null});
    });
    return;
  }
  if (in.p3 == 1) {
    const Source<int128_t> s = Fetch<int128_t>(in.p2, 0);
    ForOnlyLive([&](int i) {
      const bool null = s.one ? s.one_null : s.nulls != nullptr && s.nulls[i] != 0;
      const int128_t v = null ? 0 : s.values[s.one ? 0 : i];
      words[0] = Low64(v);
      words[1] = High64(v);
      f(i, words, uint64_t{null});
    });
    return;
  }
  const size_t base = in.p3 == 0 ? 0 : Operand::Unpack(in.p2).index;
  ForOnlyLive([&](int i) {
    uint64_t nulls = 0;
    int w = 0;
    for (size_t k = 0; k < static_cast<size_t>(in.p3); ++k) {
      const Register& r = registers_[base + k];
      const bool null = r.may_be_null && r.null[static_cast<size_t>(i)] != 0;
      nulls |= uint64_t{null} << k;
      if (!r.wide.empty()) {
        const int128_t v = null ? 0 : r.wide[static_cast<size_t>(i)];
        words[w++] = Low64(v);
        words[w++] = High64(v);
      } else {
        words[w++] = null ? 0 : r.narrow[static_cast<size_t>(i)];
      }
    }
    f(i, words, nulls);
  });
}

template <class M>
void TileMachine::DoProbe(const Instruction& in) {
  const JoinIndex& join = *joins_[in.p1];
  uint32_t* cursor = cursors_[in.p1].data();
  if (in.p3 == 0) {  // no key: every row matches every row
    CrossedRows& rows = crossed_[in.p1];
    rows.at = rows.first < rows.end ? rows.first : kNoRow;
    if (rows.at == kNoRow) Keep([](int) { return false; });
    return;
  }
  if (join.direct()) {
    const Source<int64_t> s = Fetch<int64_t>(in.p2, 0);
    const uint64_t size = join.direct_size();
    if (s.one || size == 0) {
      const uint32_t row = s.one && !s.one_null ? join.FirstDirect(s.values[0]) : kNoRow;
      ForLive([&](int i) { cursor[i] = row; });
      if (row == kNoRow) Keep([](int) { return false; });
      return;
    }
    const uint32_t* heads = join.direct_heads();
    const uint64_t base = static_cast<uint64_t>(join.direct_base());
    // Without a branch: a dead row or a key out of range looks up entry 0 and is masked off.
    auto inside = [&](int i, uint64_t at) {
      return (at < size) & (mask_[i] != 0) & (s.nulls == nullptr || s.nulls[i] == 0);
    };
    if (const uint64_t* present = join.present()) {
      Keep([&](int i) {
        const uint64_t at = static_cast<uint64_t>(s.values[i]) - base;
        const bool in_table = inside(i, at);
        const uint64_t where = in_table ? at : 0;
        return in_table & ((present[where / 64] >> (where % 64) & 1) != 0);
      });
      ForOnlyLive([&](int i) { cursor[i] = heads[static_cast<uint64_t>(s.values[i]) - base]; });
    } else {
      Keep([&](int i) {
        const uint64_t at = static_cast<uint64_t>(s.values[i]) - base;
        const bool in_table = inside(i, at);
        const uint32_t row = heads[in_table ? at : 0];
        cursor[i] = row;
        return in_table & (row != kNoRow);
      });
    }
    return;
  }
  const Section& builder = program_.sections[static_cast<size_t>(program_.joins[in.p1].section)];
  const int words = join.words();
  WithKeyWords(in, builder.columns, [&](int i, const int64_t* key, uint64_t nulls) {
    uint64_t hash = kHashSeed;
    for (int w = 0; w < words; ++w) hash = HashWord(hash, key[w]);
    cursor[i] = nulls != 0 ? kNoRow : join.FirstHashed(key, hash);
  });
  Keep([&](int i) { return (mask_[i] != 0) & (cursor[i] != kNoRow); });
}

/// The probe without the loss of rows: those that it drops point at no row.
template <class M>
void TileMachine::DoProbeOuter(const Instruction& in) {
  uint8_t before[kTileRows];
  memcpy(before, mask_, static_cast<size_t>(n_));
  const int live = live_;
  DoProbe<meaning::Probe>(in);
  if (live_ == live) return;
  uint32_t* cursor = cursors_[in.p1].data();
  for (int i = 0; in.p3 > 0 && i < n_; ++i) cursor[i] = mask_[i] != 0 ? cursor[i] : kNoRow;
  memcpy(mask_, before, static_cast<size_t>(n_));
  MaskChanged();
}

template <class M>
void TileMachine::DoTestMatch(const Instruction& in) {
  const uint32_t* cursor = cursors_[in.p1].data();
  if (cursors_[in.p1].empty()) {
    if (crossed_[in.p1].at == kNoRow) Keep([](int) { return false; });
    return;
  }
  Keep([&](int i) { return (mask_[i] != 0) & (cursor[i] != kNoRow); });
}

template <class M>
void TileMachine::DoRefuse(const Instruction&) {
  if (live_ > 0) NoteError(LaneError::kSeveralRows);
}

/// The end of Next and NextOuter: the rows of the next turn are in the mask.
void TileMachine::Jump(const Instruction& next, uint8_t* saved) {
  memcpy(saved, mask_, static_cast<size_t>(n_));
  if (live_ == 0) return;
  cancelled_ = cancel_ != nullptr && cancel_->load(std::memory_order_relaxed);
  suspended_ = sinks_.rows != nullptr && sinks_.rows->rows >= suspend_at_;
  next_ = next.p2;
}

void TileMachine::MeetRows(int join, uint32_t first, uint32_t end, int all_from) {
  crossed_[static_cast<size_t>(join)] = {first, end, kNoRow};
  go_on_at_ = all_from;
  leave_at_ = -1;
  if (all_from < 0) return;
  for (const Instruction& in : section_.code) {
    if (in.op == Opcode::Next && in.p1 == join) leave_at_ = in.p2;
  }
}

/// Next and NextOuter over a table without keys: all rows that are still in the loop go on together.
template <bool kOuter>
void TileMachine::NextCrossed(const Instruction& in) {
  CrossedRows& rows = crossed_[in.p1];
  uint8_t* saved = masks_[static_cast<size_t>(in.p3)].rows.data();
  const bool had_row = rows.at != kNoRow;
  rows.at = had_row && rows.at + 1 < rows.end ? rows.at + 1 : kNoRow;
  const bool another_turn = kOuter ? had_row : rows.at != kNoRow;
  if (another_turn) {
    memcpy(mask_, saved, static_cast<size_t>(n_));
  } else {
    memset(mask_, 0, static_cast<size_t>(n_));
  }
  MaskChanged();
  Jump(in, saved);
}

template <class M>
void TileMachine::DoNextOuter(const Instruction& in) {
  if (cursors_[in.p1].empty()) return NextCrossed<true>(in);
  const JoinIndex& join = *joins_[in.p1];
  uint32_t* cursor = cursors_[in.p1].data();
  uint8_t* saved = masks_[static_cast<size_t>(in.p3)].rows.data();
  memcpy(mask_, saved, static_cast<size_t>(n_));
  MaskChanged();
  Keep([&](int i) {
    if (mask_[i] == 0 || cursor[i] == kNoRow) return false;
    cursor[i] = join.After(cursor[i]);
    return true;
  });
  Jump(in, saved);
}

template <class M>
void TileMachine::DoNext(const Instruction& in) {
  if (cursors_[in.p1].empty()) return NextCrossed<false>(in);
  const JoinIndex& join = *joins_[in.p1];
  uint32_t* cursor = cursors_[in.p1].data();
  uint8_t* saved = masks_[static_cast<size_t>(in.p3)].rows.data();
  memcpy(mask_, saved, static_cast<size_t>(n_));
  MaskChanged();
  Keep([&](int i) {
    if (mask_[i] == 0) return false;
    cursor[i] = join.After(cursor[i]);
    return cursor[i] != kNoRow;
  });
  Jump(in, saved);
}

/// Appends the live rows of registers r0 .. to `rows`.
void TileMachine::AppendLiveRegisters(RowSet* rows, size_t columns) {
  const size_t before = rows->rows, after = before + static_cast<size_t>(live_);
  for (size_t c = 0; c < columns; ++c) {
    RowColumn& to = rows->columns[c];
    const Register& r = registers_[c];
    const bool wide = !r.wide.empty();
    to.low.resize(after);
    if (wide) to.high.resize(after);
    size_t at = before;
    if (wide) {
      ForOnlyLive([&](int i) {
        to.low[at] = Low64(r.wide[static_cast<size_t>(i)]);
        to.high[at++] = High64(r.wide[static_cast<size_t>(i)]);
      });
    } else {
      int64_t* out = to.low.data();
      ForOnlyLive([&](int i) { out[at++] = r.narrow[static_cast<size_t>(i)]; });
    }
    if (r.may_be_null || !to.null.empty()) {
      to.null.resize(after);
      at = before;
      if (r.may_be_null) ForOnlyLive([&](int i) { to.null[at++] = r.null[static_cast<size_t>(i)]; });
    }
  }
  rows->rows = after;
}

template <class M>
void TileMachine::DoBuild(const Instruction&) {
  for (size_t k = 0; k < static_cast<size_t>(section_.keys); ++k) {
    const Register& r = registers_[k];
    if (r.may_be_null) Keep([&](int i) { return r.null[static_cast<size_t>(i)] == 0; });
  }
  AppendLiveRegisters(sinks_.rows, section_.columns.size());
}

// ---- Groups ---------------------------------------------------------------------------------------------------------

/// Rows that were masked off at Group and restored behind it reach an aggregate without a group of their own; where
/// there is none at all, there is not even a stale one to add them to.
static bool NoGroups(const Section& section, const GroupTable& table) {
  return section.keys > 0 && table.groups() == 0;
}

template <class M>
void TileMachine::DoGroup(const Instruction& in) {
  if (in.p3 == 0) return;  // group 0, see DoFold
  GroupTable& table = *sinks_.groups;
  const int words = table.words();
  int64_t last[2 * kMaxKeys + 1];
  uint32_t last_group = 0;
  bool any = false;
  if (table.groups() >= kManyGroups) return FindManyGroups(in, &table);
  const bool remembers = words <= 3;  // one or two words of keys, and the NULL bits
  if (remembers && recent_of_ != &table) {
    recent_.assign(kRecentGroups, {});
    recent_of_ = &table;
  }
  WithKeyWords(in, section_.columns, [&](int i, int64_t* key, uint64_t nulls) {
    key[words - 1] = static_cast<int64_t>(nulls);
    if (remembers && nulls == 0) {
      const int64_t second = words == 3 ? key[1] : 0;
      const uint64_t mixed = (static_cast<uint64_t>(key[0]) + static_cast<uint64_t>(second) * 31) * 0x9E3779B97F4A7C15u;
      RecentGroup& recent = recent_[mixed >> (64 - kRecentBits)];
      if (recent.number == 0 || recent.first != key[0] || recent.second != second) {
        uint64_t hash = kHashSeed;
        for (int w = 0; w < words; ++w) hash = HashWord(hash, key[w]);
        recent = {key[0], second, table.FindOrMake(key, hash) + 1};
      }
      group_[static_cast<size_t>(i)] = recent.number - 1;
      return;
    }
    // Sorted data gives runs of one group.
    if (any && SameWords(key, last, words)) {
      group_[static_cast<size_t>(i)] = last_group;
      return;
    }
    uint64_t hash = kHashSeed;
    for (int w = 0; w < words; ++w) hash = HashWord(hash, key[w]);
    last_group = group_[static_cast<size_t>(i)] = table.FindOrMake(key, hash);
    for (int w = 0; w < words; ++w) last[w] = key[w];
    any = true;
  });
}

void TileMachine::FindManyGroups(const Instruction& in, GroupTable* table) {
  const size_t words = static_cast<size_t>(table->words());
  many_keys_.resize(kTileRows * words);
  size_t n = 0;
  WithKeyWords(in, section_.columns, [&](int i, int64_t* key, uint64_t nulls) {
    key[words - 1] = static_cast<int64_t>(nulls);
    uint64_t hash = kHashSeed;
    for (size_t w = 0; w < words; ++w) {
      hash = HashWord(hash, key[w]);
      many_keys_[n * words + w] = key[w];
    }
    many_hashes_[n] = hash;
    many_rows_[n++] = static_cast<uint16_t>(i);
  });
  table->FindOrMakeMany(many_keys_.data(), many_hashes_, n, [&](size_t k, uint32_t g) { group_[many_rows_[k]] = g; });
}

template <class M>
void TileMachine::DoCountRows(const Instruction& in) {
  if (NoGroups(section_, *sinks_.groups)) return;
  int64_t* counts = sinks_.groups->aggregates()[in.p1].narrow.data();
  if (section_.keys == 0) {
    counts[0] += live_;
  } else {
    ForOnlyLive([&](int i) { ++counts[group_[static_cast<size_t>(i)]]; });
  }
}

template <class M>
void TileMachine::DoCountValues(const Instruction& in) {
  if (NoGroups(section_, *sinks_.groups)) return;
  int64_t* counts = sinks_.groups->aggregates()[in.p1].narrow.data();
  const bool may = M::kWide ? w_may_be_null_ : a_may_be_null_;
  const uint8_t* nulls = M::kWide ? w_null_.data() : a_null_;
  ForOnlyLive(
      [&](int i) { counts[section_.keys == 0 ? 0 : group_[static_cast<size_t>(i)]] += may && nulls[i] != 0 ? 0 : 1; });
}

template <class M>
void TileMachine::DoFold(const Instruction& in) {
  if (NoGroups(section_, *sinks_.groups)) return;
  using T = typename M::Type;
  using State = typename M::State;
  constexpr bool kWide = std::is_same_v<T, int128_t>;
  AggregateStates& states = sinks_.groups->aggregates()[in.p1];
  const bool may = kWide ? w_may_be_null_ : a_may_be_null_;
  const uint8_t* nulls = kWide ? w_null_.data() : a_null_;
  Lane lane;
  auto value = [&](int i) {
    if constexpr (kWide) {
      return w_[static_cast<size_t>(i)];
    } else {
      return FromBits<T>(a_[i]);
    }
  };
  if (section_.keys == 0) {
    State s = states.Get<State>(0);
    bool seen = false;
    if constexpr (std::is_same_v<M, meaning::SumI>) {
      if (!may && live_ == n_) {
        // Halves of 32 bits cannot overflow 64 over a tile, and the loop vectorises.
        int64_t low = 0, high = 0;
        for (int i = 0; i < n_; ++i) {
          low += static_cast<int64_t>(static_cast<uint32_t>(a_[i]));
          high += a_[i] >> 32;
        }
        s += (static_cast<int128_t>(high) * (int64_t{1} << 32)) + low;
        states.Set(0, s);
        states.seen[0] = 1;
        return;
      }
    }
    ForOnlyLive([&](int i) {
      if (may && nulls[i] != 0) return;
      M::Apply(s, value(i), lane);
      seen = true;
    });
    states.Set(0, s);
    if (seen) states.seen[0] = 1;
  } else {
    uint8_t* seen = states.seen.data();
    ForOnlyLive([&](int i) {
      if (may && nulls[i] != 0) return;
      const size_t g = group_[static_cast<size_t>(i)];
      State s = states.Get<State>(g);
      M::Apply(s, value(i), lane);
      states.Set(g, s);
      seen[g] = 1;
    });
  }
  if (lane.error != LaneError::kNone) NoteError(lane.error);
}

template <class M>
void TileMachine::DoFoldText(const Instruction& in) {
  if (NoGroups(section_, *sinks_.groups)) return;
  AggregateStates& states = sinks_.groups->aggregates()[in.p1];
  ForOnlyLive([&](int i) {
    if (a_may_be_null_ && a_null_[i] != 0) return;
    const size_t g = section_.keys == 0 ? 0 : group_[static_cast<size_t>(i)];
    if (states.seen[g] != 0 &&
        (states.narrow[g] == a_[i] || !M::Better(strings_->Get(a_[i]), strings_->Get(states.narrow[g]))))
      return;
    states.narrow[g] = a_[i];
    states.seen[g] = 1;
  });
}

// ---- Rows -----------------------------------------------------------------------------------------------------------

void TileMachine::KeepTop() {
  const Register& r = registers_[top_->column()];
  const uint64_t most = top_->bound();
  const bool nulls = top_->keeps_nulls();
  Keep([&](int i) {
    const size_t row = static_cast<size_t>(i);
    const bool null = r.may_be_null && r.null[row] != 0;
    return (mask_[i] != 0) & (null ? nulls : top_->Code(r.narrow[row]) <= most);
  });
}

template <class M>
void TileMachine::DoEmit(const Instruction&) {
  if (sinks_.map == nullptr) {
    if (top_ != nullptr && top_->bound() != UINT64_MAX) KeepTop();
    return AppendLiveRegisters(sinks_.rows, section_.columns.size());
  }
  DictionaryMap& map = *sinks_.map;
  ForOnlyLive([&](int i) {
    const size_t entry = first_ + static_cast<size_t>(i);
    map.kept[entry] = 1;
    if (section_.columns.empty()) return;
    const Register& r = registers_[0];
    const bool null = r.may_be_null && r.null[static_cast<size_t>(i)] != 0;
    map.null[entry] = null ? 1 : 0;
    map.values[entry] = r.narrow[static_cast<size_t>(i)];
  });
}

// ---- The interpreter ------------------------------------------------------------------------------------------------

Status TileMachine::RunTile(const TabletEncoding& tablet, uint32_t first, int rows, const TileSinks& sinks) {
  tablet_ = &tablet;
  first_ = first;
  n_ = rows;
  sinks_ = sinks;
  SetMaskToAll();
  for (Register& r : registers_) r.may_be_null = false;
  next_ = 0;
  if (counts_cycles_) last_cycle_ = __builtin_ia32_rdtsc();
  return Interpret();
}

Status TileMachine::ResumeTile(const TileSinks& sinks) {
  sinks_ = sinks;
  suspended_ = false;
  return Interpret();
}

/// From instruction next_ on. Accumulators are dead where a loop starts, so the rest of the machine is all that a tile
/// which was suspended there needs.
Status TileMachine::Interpret() {
  for (;;) {
    if (next_ == leave_at_) next_ = go_on_at_;
    const Instruction& in = section_.code[static_cast<size_t>(next_++)];
    switch (in.op) {
#define OPCODE(Name, ShapeName, ...)  \
  case Opcode::Name:                  \
    Do##ShapeName<meaning::Name>(in); \
    break;
#include "vm/opcodes.def"
#undef OPCODE
      case Opcode::kCount:
        break;
    }
    if (error_ != LaneError::kNone) {
      Status error = text_error_.ok() ? LaneErrorStatus(error_, in) : text_error_;
      error_ = LaneError::kNone;
      text_error_ = Status::Ok();
      return error;
    }
    const bool went_back = section_.code.data() + next_ <= &in;
    if (cancelled_ || (went_back && stop_ && stop_())) {
      cancelled_ = false;
      return Cancelled();
    }
    if (in.op == Opcode::End || suspended_) return Status::Ok();
  }
}

Result<DictionaryMap> MapDictionary(const Program& program, int section, const Chunk& chunk, StringPool* strings) {
  const Section& s = program.sections[static_cast<size_t>(section)];
  DictionaryMap map;
  map.kept.resize(chunk.entries);
  if (!s.columns.empty()) {
    map.values.resize(chunk.entries);
    map.null.assign(chunk.entries, 1);
  }
  std::vector<int64_t> identifiers(chunk.entries);
  for (uint32_t i = 0; i < chunk.entries; ++i) identifiers[i] = strings->Intern(chunk.Entry(i));
  TabletEncoding encoded;
  encoded.rows = chunk.entries;
  encoded.slots.resize(1);
  encoded.slots[0].decode = Decode::kRaw;
  encoded.slots[0].width = 8;
  encoded.slots[0].codes = reinterpret_cast<const uint8_t*>(identifiers.data());
  const std::vector<std::unique_ptr<JoinIndex>> no_joins(program.joins.size());
  auto machine = std::make_unique<TileMachine>(program, section, no_joins, strings);
  TileSinks sinks;
  sinks.map = &map;
  for (uint32_t row = 0; row < chunk.entries; row += kTileRows) {
    TESSERA_TRY(
        machine->RunTile(encoded, row, static_cast<int>(std::min<uint32_t>(kTileRows, chunk.entries - row)), sinks));
  }
  return map;
}

}  // namespace tessera::vm
