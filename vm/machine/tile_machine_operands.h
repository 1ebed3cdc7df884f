// Operands of the host interpreter: columns in any encoding, registers, constants, payloads; loads and stores.
// Included by interpreter.cc only, which keeps all loops in one translation unit, so that they are inlined into its
// switch.
#pragma once

#include "vm/machine/tile_machine.h"

namespace tessera::vm {

// ---- Operands -------------------------------------------------------------------------------------------------------

const uint8_t* TileMachine::CodesOf(int slot) {
  const SlotEncoding& b = tile_.tablet->slots[static_cast<size_t>(slot)];
  return b.codes == nullptr ? ReadCodes(slot) : b.codes + size_t{b.width} * tile_.first;
}

template <class Code, class Convert>
void TileMachine::DecodeSlot(const uint8_t* stream, int64_t* out, Convert convert) {
  const Code* codes = reinterpret_cast<const Code*>(stream);
  mask_.ForLive([&](int i) { out[i] = convert(static_cast<uint64_t>(codes[i])); });
}

template <class EntryOf>
void TileMachine::AskMap(int slot, int64_t* out, EntryOf entry_of) {
  const SlotEncoding& b = tile_.tablet->slots[static_cast<size_t>(slot)];
  const Chunk& chunk = *tile_.tablet->chunks[static_cast<size_t>(slot)];
  // Threads that do this at the same time get the same identifiers.
  const auto known = [&](uint64_t entry) { return std::atomic_ref<int64_t>(const_cast<int64_t*>(b.map)[entry]); };
  texts_.asked.Clear();
  mask_.ForOnlyLive([&](int i) {
    const std::optional<uint64_t> entry = entry_of(i);
    out[i] = entry ? known(*entry).load(std::memory_order_relaxed) - 1 : 0;
    if (out[i] >= 0) return;
    texts_.asked.Add({static_cast<size_t>(i), *entry}, chunk.Entry(static_cast<uint32_t>(*entry)));
  });
  texts_.asked.Intern(strings_, [&](const AskedTexts::Asked& asked, int64_t id) {
    out[asked.row] = id;
    known(asked.entry).store(id + 1, std::memory_order_relaxed);
  });
}

/// What stands for the text of a row, of which the next ones follow: kMapRow, kEntries or kLate.
inline int64_t ValueOfRow(const SlotEncoding& b, size_t slot, uint32_t row) {
  return b.texts == TextForm::kLate ? static_cast<int64_t>(b.base + row) : EntryValue(slot, row);
}

Source<int64_t> TileMachine::FetchSlot(int slot, int scratch) {
  const SlotEncoding& b = tile_.tablet->slots[static_cast<size_t>(slot)];
  Scratch::Narrow& s = scratch_.narrow[scratch];
  if (b.decode == Decode::kConstant || b.all_null) {
    s.values[0] = static_cast<int64_t>(b.base);
    return {s.values, nullptr, true, b.all_null};
  }
  if (b.texts == TextForm::kComputed) return ComputeSlot(slot, scratch);
  const uint8_t* const stream = b.width == 0 ? nullptr : CodesOf(slot);
  auto by_width = [&](auto convert) {
    switch (b.width) {
      case 1:
        return DecodeSlot<uint8_t>(stream, s.values, convert);
      case 2:
        return DecodeSlot<uint16_t>(stream, s.values, convert);
      case 4:
        return DecodeSlot<uint32_t>(stream, s.values, convert);
      default:
        return DecodeSlot<uint64_t>(stream, s.values, convert);
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
      if (b.texts == TextForm::kEntries) {
        const auto first = static_cast<uint64_t>(EntryValue(static_cast<size_t>(slot), 0));
        by_width([first](uint64_t c) { return static_cast<int64_t>(first + c); });
        break;
      }
      if (b.texts == TextForm::kLazyMap) {
        const auto ask = [&](auto code) {
          const auto* const codes = reinterpret_cast<const decltype(code)*>(stream);
          AskMap(slot, s.values, [&](int i) {
            const uint64_t c = codes[i];
            return b.has_null_code && c == b.null_code ? std::nullopt : std::optional(c);
          });
        };
        b.width == 1   ? ask(uint8_t{})
        : b.width == 2 ? ask(uint16_t{})
        : b.width == 4 ? ask(uint32_t{})
                       : ask(uint64_t{});
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
      if (b.texts == TextForm::kEntries || b.texts == TextForm::kLate) {
        const int64_t first = ValueOfRow(b, static_cast<size_t>(slot), tile_.first);
        mask_.ForLive([&](int i) { s.values[i] = first + i; });
        break;
      }
      if (b.texts == TextForm::kLazyMap) {
        AskMap(slot, s.values, [&](int i) {
          const uint64_t row = tile_.first + static_cast<uint32_t>(i);
          return b.null_bytes != nullptr && b.null_bytes[row] != 0 ? std::nullopt : std::optional(row);
        });
        break;
      }
      mask_.ForLive([&](int i) { s.values[i] = b.map[tile_.first + static_cast<uint32_t>(i)]; });
      break;
    case Decode::kRaw:
      memcpy(s.values, stream, size_t{8} * static_cast<size_t>(mask_.rows()));
      break;
    case Decode::kConstant:
      break;
  }
  if (!b.MayBeNull()) return {s.values, nullptr, false, false};
  if (b.has_null_code) {
    auto nulls = [&](auto code) {
      using Code = decltype(code);
      const Code* codes = reinterpret_cast<const Code*>(stream);
      const Code null_code = static_cast<Code>(b.null_code);
      mask_.ForLive([&](int i) { s.null[i] = codes[i] == null_code ? 1 : 0; });
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
    memcpy(s.null, b.null_bytes + tile_.first, static_cast<size_t>(mask_.rows()));
  } else {
    memset(s.null, 0, static_cast<size_t>(mask_.rows()));
  }
  if (b.map_null != nullptr) {
    auto nulls = [&](auto code_of) {
      mask_.ForLive([&](int i) {
        if (s.null[i] == 0) s.null[i] = b.map_null[code_of(i)];
      });
    };
    if (b.decode == Decode::kMapRow) {
      nulls([&](int i) { return uint64_t{tile_.first} + static_cast<uint64_t>(i); });
    } else {
      switch (b.width) {
        case 1:
          nulls([&](int i) { return uint64_t{stream[i]}; });
          break;
        case 2:
          nulls([&](int i) { return uint64_t{reinterpret_cast<const uint16_t*>(stream)[i]}; });
          break;
        default:
          nulls([&](int i) { return uint64_t{reinterpret_cast<const uint32_t*>(stream)[i]}; });
          break;
      }
    }
  }
  return {s.values, s.null, false, false};
}

Source<int128_t> TileMachine::FetchWideSlot(int slot) {
  const SlotEncoding& b = tile_.tablet->slots[static_cast<size_t>(slot)];
  Scratch::Wide& s = *scratch_.wide;
  const int128_t base = Make128(b.base_high, static_cast<int64_t>(b.base));
  if (b.decode == Decode::kConstant || b.all_null) {
    s.values[0] = base;
    return {s.values, nullptr, true, b.all_null};
  }
  if (b.decode == Decode::kRaw) {
    // An intermediate result: low halves in codes, high halves in map.
    const int64_t* low = reinterpret_cast<const int64_t*>(b.codes) + tile_.first;
    const int64_t* high = b.map + tile_.first;
    mask_.ForLive([&](int i) { s.values[i] = Make128(high[i], low[i]); });
    return {s.values, b.null_bytes == nullptr ? nullptr : b.null_bytes + tile_.first, false, false};
  }
  const uint8_t* const stream = CodesOf(slot);
  auto decode = [&](auto code) {
    using Code = decltype(code);
    const Code* codes = reinterpret_cast<const Code*>(stream);
    mask_.ForLive([&](int i) {
      s.values[i] = static_cast<int128_t>(static_cast<uint128_t>(base) + static_cast<uint128_t>(codes[i]));
    });
    if (!b.has_null_code) return;
    const Code null_code = sizeof(Code) == 16
                               ? static_cast<Code>(Make128(b.null_code_high, static_cast<int64_t>(b.null_code)))
                               : static_cast<Code>(b.null_code);
    mask_.ForLive([&](int i) { s.null[i] = codes[i] == null_code ? 1 : 0; });
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
  return {s.values, b.has_null_code ? s.null : nullptr, false, false};
}

template <class T>
Source<T> TileMachine::Fetch(int32_t packed, int scratch) {
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
        scratch_.wide->values[0] = program_.constants[o.index].wide;
        return {scratch_.wide->values, nullptr, true, constants_.IsNull(o.index)};
      } else {
        return {&constants_[o.index], nullptr, true, constants_.IsNull(o.index)};
      }
    case OperandKind::kPayload: {
      const JoinIndex& join = *joins_[o.table];
      const Section& builder = program_.sections[static_cast<size_t>(program_.joins[o.table].section)];
      const RowColumn& c = join.rows().columns[static_cast<size_t>(builder.keys) + o.index];
      if (builder.keys == 0) {
        const uint32_t row = probes_[o.table].crossed.at;
        const bool null = row == kNoRow || (!c.null.empty() && c.null[row] != 0);
        if constexpr (kWide) {
          scratch_.wide->values[0] = row == kNoRow ? 0 : Make128(c.high[row], c.low[row]);
          return {scratch_.wide->values, nullptr, true, null};
        } else {
          scratch_.narrow[scratch].values[0] = row == kNoRow ? 0 : c.low[row];
          return {scratch_.narrow[scratch].values, nullptr, true, null};
        }
      }
      const uint32_t* cursor = probes_[o.table].cursor.data();
      const uint32_t rows = static_cast<uint32_t>(join.rows().rows);
      // Dead rows may point at no row; they read row 0.
      auto at = [&](int i) { return cursor[i] < rows ? cursor[i] : 0; };
      const bool outer = probes_[o.table].outer;
      const bool nulls = outer || !c.null.empty();
      uint8_t* null_out = kWide ? (scratch_.wide ? scratch_.wide->null : nullptr) : scratch_.narrow[scratch].null;
      if (outer) {
        mask_.ForLive(
            [&](int i) { null_out[i] = cursor[i] >= rows || (!c.null.empty() && c.null[cursor[i]] != 0) ? 1 : 0; });
      } else if (nulls) {
        mask_.ForLive([&](int i) { null_out[i] = c.null[at(i)]; });
      }
      if constexpr (kWide) {
        if (rows > 0) {
          mask_.ForLive([&](int i) { scratch_.wide->values[i] = Make128(c.high[at(i)], c.low[at(i)]); });
        } else if (outer) {
          std::fill_n(scratch_.wide->values, mask_.rows(), int128_t{0});
        }
        return {scratch_.wide->values, nulls ? null_out : nullptr, false, false};
      } else {
        int64_t* out = scratch_.narrow[scratch].values;
        if (rows > 0) {
          mask_.ForLive([&](int i) { out[i] = c.low[at(i)]; });
        } else if (outer) {
          memset(out, 0, static_cast<size_t>(mask_.rows()) * sizeof *out);  // NULLs need a value, too
        }
        return {out, nulls ? null_out : nullptr, false, false};
      }
    }
  }
  __builtin_unreachable();
}

// ---- Loads and stores -----------------------------------------------------------------------------------------------

void TileMachine::CopyToA(const Source<int64_t>& s) {
  if (s.one) {
    const int64_t v = s.values[0];
    mask_.ForLive([&](int i) { acc_.a[i] = v; });
    acc_.a_may_be_null = s.one_null;
    if (s.one_null) memset(acc_.a_null, 1, static_cast<size_t>(mask_.rows()));
    return;
  }
  mask_.ForLive([&](int i) { acc_.a[i] = s.values[i]; });
  acc_.a_may_be_null = s.nulls != nullptr;
  if (s.nulls != nullptr) mask_.ForLive([&](int i) { acc_.a_null[i] = s.nulls[i]; });
}

template <class M>
void TileMachine::DoLoad(const Instruction& in) {
  CopyToA(Fetch<int64_t>(in.p2, 0));
}

template <class M>
void TileMachine::DoLoadWide(const Instruction& in) {
  const Source<int128_t> s = Fetch<int128_t>(in.p2, 0);
  acc_.w_may_be_null = s.one ? s.one_null : s.nulls != nullptr;
  mask_.ForLive([&](int i) { acc_.w[static_cast<size_t>(i)] = s.values[s.one ? 0 : i]; });
  if (acc_.w_may_be_null) mask_.ForLive([&](int i) { acc_.w_null[static_cast<size_t>(i)] = s.one ? 1 : s.nulls[i]; });
}

template <class M>
void TileMachine::DoStore(const Instruction& in) {
  Register& r = registers_[static_cast<size_t>(in.p2)];
  mask_.ForOnlyLive([&](int i) { r.narrow[static_cast<size_t>(i)] = acc_.a[i]; });
  if (!acc_.a_may_be_null && !r.may_be_null) return;
  r.MayBecomeNull();
  mask_.ForOnlyLive([&](int i) { r.null[static_cast<size_t>(i)] = acc_.a_may_be_null ? acc_.a_null[i] : uint8_t{0}; });
}

template <class M>
void TileMachine::DoStoreWide(const Instruction& in) {
  Register& r = registers_[static_cast<size_t>(in.p2)];
  mask_.ForOnlyLive([&](int i) { r.wide[static_cast<size_t>(i)] = acc_.w[static_cast<size_t>(i)]; });
  if (!acc_.w_may_be_null && !r.may_be_null) return;
  r.MayBecomeNull();
  mask_.ForOnlyLive([&](int i) {
    r.null[static_cast<size_t>(i)] = acc_.w_may_be_null ? acc_.w_null[static_cast<size_t>(i)] : uint8_t{0};
  });
}

}  // namespace tessera::vm
