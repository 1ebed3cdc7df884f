// The host interpreter. One switch, expanded from opcodes.def, calls one loop per shape, instantiated with the meaning
// of the opcode. The loops are in tile_machine_operands.h, _filters.h, _arithmetic.h, _text.h, _joins.h and _groups.h;
// those of functions with code of their own are apart, in tile_machine_functions.cc.

#include "vm/machine/tile_machine.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include "vm/meaning/lane_error.h"
#include "vm/meaning/math_meaning.h"
#include "vm/meaning/text_meaning.h"
#include "vm/rows/row_set.h"

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

TileMachine::TileMachine(const Program& program, int section, const SectionTraits& traits,
                         const std::vector<std::unique_ptr<JoinIndex>>& joins, StringPool* strings)
    : program_(program),
      section_(program.sections[static_cast<size_t>(section)]),
      traits_(traits),
      joins_(joins),
      strings_(strings),
      uses_(FindTextUses(section_, traits)),
      join_before_(section_.code.size(), -1) {
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
  codes_of_tile_.resize(section_.slots.size());
  masks_.resize(static_cast<size_t>(section_.masks));
  for (MaskRegister& m : masks_) m.rows.resize(kTileRows);
  cursors_.resize(program.joins.size());
  bloom_uses_.resize(program.joins.size());
  crossed_.resize(program.joins.size());
  outer_.resize(program.joins.size());
  for (const ProbeTrait& p : traits.probes) {
    const auto join = static_cast<size_t>(p.join);
    probed_.push_back(p.join);
    if (p.keys == 0) crossed_[join].end = static_cast<uint32_t>(joins[join]->rows().rows);
    if (p.keys > 0) cursors_[join].resize(kTileRows, kNoRow);
    if (IsOuter(p.form)) outer_[join] = 1;
    if (p.counted != kNoInstruction) join_before_[p.counted] = p.join;
  }
  for (const Instruction& in : section_.code) {
    const OpcodeInfo& info = Info(in.op);
    wide |= info.in == AccumulatorSpec::W || info.out == AccumulatorSpec::W || info.p[1] == OperandSpec::SrcW;
    const bool probe = info.role == Role::Probe;
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
  reads_texts_ = std::find(uses_.results.begin(), uses_.results.end(), true) != uses_.results.end();
  for (size_t i = 0; i < section_.slots.size(); ++i)
    reads_texts_ |= uses_.emitted[i] && section_.slots[i].type.storage() == StorageClass::kText;
  scratch_ = std::make_unique_for_overwrite<Scratch[]>(3);
  memset(a_, 0, sizeof a_);
}

TileMachine::~TileMachine() = default;

// ---- The mask -------------------------------------------------------------------------------------------------------

namespace {

uint64_t WordAt(const uint8_t* bytes, int k) {
  uint64_t word;
  memcpy(&word, bytes + 8 * k, 8);
  return word;
}

/// How many of 8 * `words` bytes, which are 0 or 1, are 1. REQUIRES: words <= 256.
int CountOnes(const uint8_t* bytes, int words) {
  int ones = 0;
  for (int first = 0; first < words; first += 128) {
    uint64_t sums = 0;  // of each of eight bytes, at most 128
    const int end = std::min(words, first + 128);
    for (int k = first; k < end; ++k) sums += WordAt(bytes, k);
    constexpr uint64_t kEven = 0x00FF00FF00FF00FFu;
    ones += static_cast<int>(((sums & kEven) + (sums >> 8 & kEven)) * 0x0001000100010001u >> 48);
  }
  return ones;
}

/// (The compiler's vectors: eight stores of their own took as long as all else.)
using Eight = uint16_t __attribute__((vector_size(16)));

/// By a byte: the places of its ones, in front.
constexpr auto kPlacesOfOnes = [] {
  std::array<std::array<uint16_t, 8>, 256> places{};
  for (size_t bits = 0; bits < places.size(); ++bits) {
    size_t ones = 0;
    for (uint16_t j = 0; j < 8; ++j) {
      if ((bits >> j & 1) != 0) places[bits][ones++] = j;
    }
  }
  return places;
}();

}  // namespace

void TileMachine::SetMaskToAll() {
  memset(mask_, 1, static_cast<size_t>(n_));
  memset(mask_ + n_, 0, static_cast<size_t>(kTileRows - n_));
  live_ = n_;
  sparse_ = listed_ = false;
}

void TileMachine::MaskChanged() {
  const int words = (n_ + 7) / 8;  // rows beyond n_ are never set
  live_ = CountOnes(mask_, words);
  sparse_ = live_ * kSparse < n_;
  listed_ = false;
  if (sparse_) ListLive();
}

void TileMachine::ListLive() {
  listed_ = true;
  const int words = (n_ + 7) / 8;
  int out = 0;
  for (int first = 0; first < words; first += 8) {
    uint64_t any = 0;
    for (int k = first; k < first + 8; ++k) any |= WordAt(mask_, k);
    if (any == 0) continue;
    for (int k = first; k < first + 8; ++k) {
      // The eight bytes, each 0 or 1, become the bits of one; eight places are written, of which the first ones count.
      const uint8_t bits = static_cast<uint8_t>(WordAt(mask_, k) * 0x0102040810204080u >> 56);
      Eight places;
      memcpy(&places, kPlacesOfOnes[bits].data(), sizeof places);
      places += static_cast<uint16_t>(8 * k);
      memcpy(list_ + out, &places, sizeof places);
      out += std::popcount(bits);
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
  // (As for ForLive: with members it would go byte by byte, 1.5 us for each of an OR's many masks.)
  uint8_t* const __restrict saved = masks_[in.p1].rows.data();
  uint8_t* const __restrict mask = mask_;
  const int n = n_;
  for (int i = 0; i < n; ++i) M::Apply(mask[i], saved[i]);
  if constexpr (std::is_same_v<M, meaning::MaskLoad> || std::is_same_v<M, meaning::MaskAndNot>) MaskChanged();
}

}  // namespace tessera::vm

// clang-format off: in the order in which they use each other, behind what they use of this file.
#include "vm/machine/tile_machine_arithmetic.h"
#include "vm/machine/tile_machine_filters.h"
#include "vm/machine/tile_machine_groups.h"
#include "vm/machine/tile_machine_joins.h"
#include "vm/machine/tile_machine_operands.h"
#include "vm/machine/tile_machine_text.h"
// clang-format on

namespace tessera::vm {

// ---- Rows -----------------------------------------------------------------------------------------------------------

void TileMachine::EmitOnly(const TopRows* top) {
  top_ = top;
  top_known_at_ = -1;
  if (top == nullptr) return;
  const auto stores = [&](const Instruction& in) {
    return Info(in.op).shape == Shape::Store && static_cast<size_t>(in.p2) == top->column();
  };
  const auto store = std::find_if(section_.code.begin(), section_.code.end(), stores);
  const auto emit = std::find_if_not(store, section_.code.end(), OnlyMoves);
  if (emit == section_.code.end() || emit->op != Opcode::Emit || std::any_of(store + 1, emit, stores)) return;
  top_known_at_ = static_cast<int>(store - section_.code.begin()) + 1;
  emit_at_ = static_cast<int>(emit - section_.code.begin());
}

void TileMachine::KeepTop() {
  if (top_->bound() == UINT64_MAX) return;
  const Register& r = registers_[top_->column()];
  const auto keep = [&](auto wanted) {
    const int64_t* const values = r.narrow.data();
    if (!r.may_be_null) return Keep([&, values](int i) { return (mask_[i] != 0) & wanted(values[i]); });
    const bool nulls = top_->keeps_nulls();
    Keep([&, values](int i) {
      const bool null = r.null[static_cast<size_t>(i)] != 0;
      return (mask_[i] != 0) & ((null & nulls) | (!null & wanted(values[i])));
    });
  };
  if (top_->is_text()) {
    // (Where a row is dead or NULL, the value may be that of no text.)
    Keep([&, most = top_->bound()](int i) {
      if (mask_[i] == 0) return false;
      if (r.may_be_null && r.null[static_cast<size_t>(i)] != 0) return top_->keeps_nulls();
      return top_->Code(Text(r.narrow[static_cast<size_t>(i)])) <= most;
    });
  } else if (top_->is_float()) {
    keep([top = top_, most = top_->bound()](int64_t v) { return top->Code(v) <= most; });
  } else if (const int64_t last = top_->LastInteger(); top_->descends()) {
    keep([last](int64_t v) { return v >= last; });
  } else {
    keep([last](int64_t v) { return v <= last; });
  }
}

template <class M>
void TileMachine::DoEmit(const Instruction&) {
  if (sinks_.map == nullptr) {
    if (top_ != nullptr && top_known_at_ < 0) KeepTop();
    return AppendLiveRegisters(sinks_.rows, section_.columns.size());
  }
  DictionaryMap& map = *sinks_.map;
  ForOnlyLive([&](int i) {
    const size_t entry = size_t{sinks_.map_first} + first_ + static_cast<size_t>(i);
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
  ++tile_;
  sinks_ = sinks;
  SetMaskToAll();
  for (Register& r : registers_) r.may_be_null = false;
  if (!made_.empty()) {
    made_.clear();
    made_bytes_.release();
  }
  next_ = 0;
  if (counts_cycles_) last_cycle_ = __builtin_ia32_rdtsc();
  return Interpret();
}

Status TileMachine::ResumeTile(const TileSinks& sinks) {
  sinks_ = sinks;
  suspended_ = false;
  return Interpret();
}

// For tile_machine_functions.cc.
template TileMachine::Source<int64_t> TileMachine::Fetch<int64_t>(int32_t packed, int scratch);
template TileMachine::Source<int128_t> TileMachine::Fetch<int128_t>(int32_t packed, int scratch);

/// From instruction next_ on. Accumulators are dead where a loop starts, so the rest of the machine is all that a tile
/// which was suspended there needs.
Status TileMachine::Interpret() {
  for (;;) {
    if (next_ == leave_at_) next_ = go_on_at_;
    if (next_ == top_known_at_) {
      KeepTop();
      if (live_ == 0) next_ = emit_at_;
    }
    const Instruction& in = section_.code[static_cast<size_t>(next_++)];
    switch (in.op) {
#define OPCODE(Name, ShapeName, ...)  \
  case Opcode::Name:                  \
    Do##ShapeName<meaning::Name>(in); \
    break;
#include "vm/program/opcodes.def"
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

}  // namespace tessera::vm
