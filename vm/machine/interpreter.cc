// The host interpreter. One switch, expanded from opcodes.def, calls one loop per shape, instantiated with the meaning
// of the opcode. The loops are in tile_machine_operands.h, _filters.h, _arithmetic.h, _text.h, _joins.h and _groups.h;
// those of functions with code of their own are apart, in tile_machine_functions.cc.

#include <cstring>
#include <type_traits>

#include "vm/machine/tile_machine.h"
#include "vm/machine/tile_machine_arithmetic.h"
#include "vm/machine/tile_machine_filters.h"
#include "vm/machine/tile_machine_groups.h"
#include "vm/machine/tile_machine_joins.h"
#include "vm/machine/tile_machine_operands.h"
#include "vm/machine/tile_machine_text.h"
#include "vm/meaning/math_meaning.h"
#include "vm/meaning/text_meaning.h"
#include "vm/rows/row_set.h"

namespace tessera::vm {

// ---- Control --------------------------------------------------------------------------------------------------------

template <class M>
void TileMachine::DoEnd(const Instruction&) {}

template <class M>
void TileMachine::DoSkipIfNone(const Instruction& in) {
  requests_.counts.Count(Current(), mask_.live());
  if (mask_.live() == 0) next_ = in.p2;
}

template <class M>
void TileMachine::DoMaskRegister(const Instruction& in) {
  // (As for TileMask::ForLive: with members it would go byte by byte, 1.5 us for each of an OR's many masks.)
  uint8_t* const __restrict saved = masks_[in.p1].rows.data();
  uint8_t* const __restrict mask = mask_.Write();
  const int n = mask_.rows();
  for (int i = 0; i < n; ++i) M::Apply(mask[i], saved[i]);
  if constexpr (std::is_same_v<M, meaning::MaskLoad> || std::is_same_v<M, meaning::MaskAndNot>) mask_.Changed();
}

// ---- Rows -----------------------------------------------------------------------------------------------------------

void TileMachine::KeepTop() {
  if (requests_.top.rows->bound() == UINT64_MAX) return;
  const Register& r = registers_[requests_.top.rows->column()];
  const auto keep = [&](auto wanted) {
    const int64_t* const values = r.narrow.data();
    if (!r.may_be_null) return mask_.Keep([&, values](int i) { return (mask_[i] != 0) & wanted(values[i]); });
    const bool nulls = requests_.top.rows->keeps_nulls();
    mask_.Keep([&, values](int i) {
      const bool null = r.null[static_cast<size_t>(i)] != 0;
      return (mask_[i] != 0) & ((null & nulls) | (!null & wanted(values[i])));
    });
  };
  if (requests_.top.rows->is_text()) {
    // (Where a row is dead or NULL, the value may be that of no text.)
    mask_.Keep([&, most = requests_.top.rows->bound()](int i) {
      if (mask_[i] == 0) return false;
      if (r.may_be_null && r.null[static_cast<size_t>(i)] != 0) return requests_.top.rows->keeps_nulls();
      return requests_.top.rows->Code(Text(r.narrow[static_cast<size_t>(i)])) <= most;
    });
  } else if (requests_.top.rows->is_float()) {
    keep([top = requests_.top.rows, most = requests_.top.rows->bound()](int64_t v) { return top->Code(v) <= most; });
  } else if (const int64_t last = requests_.top.rows->LastInteger(); requests_.top.rows->descends()) {
    keep([last](int64_t v) { return v >= last; });
  } else {
    keep([last](int64_t v) { return v <= last; });
  }
}

template <class M>
void TileMachine::DoEmit(const Instruction&) {
  if (tile_.sinks.map == nullptr) {
    if (requests_.top.rows != nullptr && requests_.top.known_at < 0) KeepTop();
    return AppendLiveRegisters(tile_.sinks.rows, section_.columns.size());
  }
  DictionaryMap& map = *tile_.sinks.map;
  mask_.ForOnlyLive([&](int i) {
    const size_t entry = size_t{tile_.sinks.map_first} + tile_.first + static_cast<size_t>(i);
    map.kept[entry] = 1;
    if (section_.columns.empty()) return;
    const Register& r = registers_[0];
    const bool null = r.may_be_null && r.null[static_cast<size_t>(i)] != 0;
    map.null[entry] = null ? 1 : 0;
    map.values[entry] = r.narrow[static_cast<size_t>(i)];
  });
}

// ---- The interpreter ------------------------------------------------------------------------------------------------

#define APART(Name)                                   \
  template <class M>                                  \
  void TileMachine::Do##Name(const Instruction& in) { \
    DoApart(in);                                      \
  }
APART(AddInterval)
APART(Between)
APART(BinaryField)
APART(Format)
APART(IntervalTimes)
APART(MakeWide)
APART(Place)
APART(RegexPart)
APART(RegexReplace)
APART(TextFind)
APART(TextNumber)
APART(TextPad)
APART(TextPart)
APART(TextReplace)
APART(Zone)
#undef APART

// For tile_machine_functions.cc.
template Source<int64_t> TileMachine::Fetch<int64_t>(int32_t packed, int scratch);
template Source<int128_t> TileMachine::Fetch<int128_t>(int32_t packed, int scratch);

Status TileMachine::Interpret() {
  for (;;) {
    if (next_ == requests_.detour.from) next_ = requests_.detour.to;
    if (next_ == requests_.top.known_at) {
      KeepTop();
      if (mask_.live() == 0) next_ = requests_.top.emit_at;
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
    if (error_.any()) return error_.Take(in);
    if (requests_.stops.EndsTile(section_.code.data() + next_ <= &in)) return Cancelled();
    if (in.op == Opcode::End || requests_.stops.suspended) return Status::Ok();
  }
}

}  // namespace tessera::vm
