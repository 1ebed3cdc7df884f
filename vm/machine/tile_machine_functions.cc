// Opcodes of the host interpreter that call a function for each row: of texts and of doubles. Their loops need not
// be inlined into the interpreter's switch, and it is better off without them: see TileMachine::DoApart.

#include <bit>
#include <string_view>
#include <type_traits>

#include "vm/machine/entry_machine.h"
#include "vm/machine/tile_machine.h"
#include "vm/machine/tile_machine_text.h"
#include "vm/meaning/math_meaning.h"
#include "vm/meaning/text_meaning.h"

namespace tessera::vm {

const uint8_t* TileMachine::ReadCodes(int slot) {
  const auto number = static_cast<size_t>(slot);
  const char* damaged = nullptr;
  const uint8_t* const codes = codes_.Read(tile_, mask_, number, &damaged);
  if (damaged != nullptr) error_.Note(tile_.tablet->tile_codes[number]->Damaged(damaged));
  return codes;
}

Source<int64_t> TileMachine::ComputeSlot(int slot, int scratch) {
  const auto number = static_cast<size_t>(slot);
  const SlotEncoding& b = tile_.tablet->slots[number];
  const Chunk& chunk = *tile_.tablet->chunks[number];
  std::unique_ptr<EntryInterpreter>& machine = computed_[slot];
  const int map = section_.slots[number].map;
  if (machine == nullptr) machine = MakeEntryMachine(program_, map, strings_);
  Scratch::Narrow& s = scratch_.narrow[scratch];
  std::array<uint32_t, kTileRows> entries;
  std::array<uint16_t, kTileRows> rows;
  uint32_t count = 0;
  const auto note = [&](int i, uint64_t entry) {
    entries[count] = static_cast<uint32_t>(entry);
    rows[count++] = static_cast<uint16_t>(i);
  };
  memset(s.null, 1, static_cast<size_t>(mask_.rows()));
  if (b.decode == Decode::kMapRow) {
    mask_.ForOnlyLive([&](int i) {
      const uint64_t row = tile_.first + static_cast<uint32_t>(i);
      if (b.null_bytes == nullptr || b.null_bytes[row] == 0) note(i, row);
    });
  } else {
    const auto by_code = [&]<class Code>(Code) {
      const Code* codes = reinterpret_cast<const Code*>(CodesOf(slot));
      mask_.ForOnlyLive([&](int i) {
        if (!b.has_null_code || codes[i] != static_cast<Code>(b.null_code)) note(i, codes[i]);
      });
    };
    b.width == 1 ? by_code(uint8_t{}) : b.width == 2 ? by_code(uint16_t{}) : by_code(uint32_t{});
  }
  Succeeds(machine->Run(chunk, {entries.data(), count}));
  const DictionaryMap& values = machine->values();
  const bool is_text = section_.slots[number].type.storage() == StorageClass::kText;
  const bool only_read = texts_.uses.slots[number] || (texts_.uses.emitted[number] && requests_.top.rows != nullptr);
  std::array<int64_t, kTileRows> identifiers;
  if (is_text && !only_read) {
    std::array<std::string_view, kTileRows> texts;
    for (uint32_t k = 0; k < count; ++k) texts[k] = values.null[k] != 0 ? std::string_view() : machine->Text(k);
    strings_->Intern({texts.data(), count}, identifiers.data());
  }
  for (uint32_t k = 0; k < count; ++k) {
    if ((s.null[rows[k]] = values.null[k]) != 0) continue;
    int64_t& to = s.values[rows[k]];
    to = !is_text ? values.values[k] : only_read ? texts_.of_tile.Keep(machine->Text(k)) : identifiers[k];
  }
  return {s.values, s.null, false, false};
}

template <class M, class B, class C>
void TileMachine::TextOfOperands(const Instruction& in) {
  constexpr bool kThird = !std::is_void_v<C>;
  const Source<int64_t> b = Fetch<int64_t>(in.p2, 0);
  Source<int64_t> c{nullptr, nullptr, true, false};
  if constexpr (kThird) c = Fetch<int64_t>(in.p3, 1);
  const auto is_null = [](const Source<int64_t>& s, int i) {
    return s.one ? s.one_null : s.nulls != nullptr && s.nulls[i] != 0;
  };
  const auto argument = [&]<class T>(std::type_identity<T>, const Source<int64_t>& s, int i) -> T {
    const int64_t v = s.values[s.one ? 0 : i];
    if constexpr (std::is_same_v<T, int64_t>) {
      return v;
    } else {
      return Text(v);
    }
  };
  const auto make = [&](auto... arguments) {
    if constexpr (requires { M::Apply(arguments..., &scratch_.text); }) {
      return Succeeds(M::Apply(arguments..., &scratch_.text));
    } else {
      Lane lane;
      M::Apply(arguments..., &scratch_.text, lane);
      if (lane.error != LaneError::kNone) error_.Note(lane.error);
      return lane.error == LaneError::kNone;
    }
  };
  // Neighbouring rows often hold the same string.
  const bool constant = b.one && c.one;
  int64_t last = -1, last_result = 0;
  mask_.ForOnlyLive([&](int i) {
    if (is_null(b, i) || is_null(c, i)) NullsOfA()[i] = 1;
    if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
    if (!constant || acc_.a[i] != last) {
      bool made;
      if constexpr (kThird) {
        made = make(Text(acc_.a[i]), argument(std::type_identity<B>(), b, i), argument(std::type_identity<C>(), c, i));
      } else {
        made = make(Text(acc_.a[i]), argument(std::type_identity<B>(), b, i));
      }
      if (!made) return;
      last = acc_.a[i];
      last_result = MadeText(scratch_.text);
    }
    acc_.a[i] = last_result;
  });
}

bool TileMachine::Succeeds(const Status& status) {
  if (!status.ok()) error_.Note(status);
  return status.ok();
}

template <class M, Shape kShape>
void TileMachine::RunApart(const Instruction& in) {
  const auto is_null = [](const Source<int64_t>& s, int i) {
    return s.one ? s.one_null : s.nulls != nullptr && s.nulls[i] != 0;
  };
  const auto value = [](const Source<int64_t>& s, int i) { return s.values[s.one ? 0 : i]; };
  if constexpr (kShape == Shape::TextNumber) {
    TextOfOperands<M, int64_t, void>(in);
  } else if constexpr (kShape == Shape::TextReplace) {
    TextOfOperands<M, std::string_view, std::string_view>(in);
  } else if constexpr (kShape == Shape::TextPad) {
    TextOfOperands<M, int64_t, std::string_view>(in);
  } else if constexpr (kShape == Shape::TextPart) {
    TextOfOperands<M, std::string_view, int64_t>(in);
  } else if constexpr (kShape == Shape::TextFind) {
    const Source<int64_t> b = Fetch<int64_t>(in.p2, 0);
    mask_.ForOnlyLive([&](int i) {
      if (is_null(b, i)) NullsOfA()[i] = 1;
      if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
      const auto found = M::Apply(Text(acc_.a[i]), Text(value(b, i)));
      if constexpr (std::is_same_v<decltype(found), const int64_t>) {
        acc_.a[i] = found;
      } else if (Succeeds(found.status())) {
        acc_.a[i] = *found;
      }
    });
  } else if constexpr (kShape == Shape::Like) {
    const Regex& regex = constants_.RegexOf(in.p2);
    // Neighbouring rows often hold the same string.
    int64_t last = -1;
    bool matches = false;
    uint8_t* const mask = mask_.Write();
    mask_.ForOnlyLive([&](int i) {
      const bool null = acc_.a_may_be_null && acc_.a_null[i] != 0;
      if (!null && acc_.a[i] != last) {
        last = acc_.a[i];
        matches = regex.Matches(Text(last));
      }
      if (null || matches == M::kNegated) mask[i] = 0;
    });
    mask_.Changed();
  } else if constexpr (kShape == Shape::RegexPart) {
    const Regex& regex = constants_.RegexOf(in.p2);
    if constexpr (requires { M::Apply(regex, std::string_view(), 0, 0, &scratch_.text); }) {
      mask_.ForOnlyLive([&](int i) {
        if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
        if (M::Apply(regex, Text(acc_.a[i]), in.p3, in.p4, &scratch_.text)) {
          acc_.a[i] = MadeText(scratch_.text);
        } else {
          NullsOfA()[i] = 1;
        }
      });
    } else {
      MapText([&](std::string_view s) { return M::Apply(regex, s); });
    }
  } else if constexpr (kShape == Shape::RegexReplace) {
    const Regex& regex = constants_.RegexOf(in.p2);
    const std::string& replacement = program_.constants[static_cast<size_t>(in.p3)].text;
    MapText([&](std::string_view s) {
      Lane lane;
      M::Apply(regex, s, replacement, in.p4 != 0, &scratch_.text, lane);
      if (lane.error != LaneError::kNone) error_.Note(lane.error);
      return MadeText(lane.error == LaneError::kNone ? std::string_view(scratch_.text) : std::string_view());
    });
  } else if constexpr (kShape == Shape::AddInterval || kShape == Shape::IntervalTimes) {
    const Source<int128_t> b = Fetch<int128_t>(in.p2, 0);
    constexpr bool kMakesInterval = kShape == Shape::IntervalTimes;
    mask_.ForOnlyLive([&](int i) {
      if (b.one ? b.one_null : b.nulls != nullptr && b.nulls[i] != 0) NullsOfA()[i] = 1;
      if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
      const int128_t interval = b.values[b.one ? 0 : i];
      Lane lane;
      if constexpr (kMakesInterval) {
        acc_.w[static_cast<size_t>(i)] = M::Apply(std::bit_cast<double>(acc_.a[i]), interval, lane);
      } else {
        acc_.a[i] = M::Apply(acc_.a[i], interval, lane);
      }
      if (lane.null) NullsOfA()[i] = 1;
      if (lane.error != LaneError::kNone) error_.Note(lane.error);
    });
    if constexpr (kMakesInterval) acc_.CopyNullsToW(mask_.rows());
  } else if constexpr (kShape == Shape::Between || kShape == Shape::MakeWide) {
    const Source<int64_t> b = Fetch<int64_t>(in.p2, 0);
    Source<int64_t> c{nullptr, nullptr, true, false};
    if constexpr (kShape == Shape::MakeWide) c = Fetch<int64_t>(in.p3, 1);
    mask_.ForOnlyLive([&](int i) {
      if (is_null(b, i) || is_null(c, i)) NullsOfA()[i] = 1;
      if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
      Lane lane;
      if constexpr (kShape == Shape::MakeWide) {
        acc_.w[static_cast<size_t>(i)] = M::Apply(acc_.a[i], value(b, i), value(c, i), lane);
      } else {
        acc_.w[static_cast<size_t>(i)] = M::Apply(acc_.a[i], value(b, i), lane);
      }
      if (lane.error != LaneError::kNone) error_.Note(lane.error);
    });
    acc_.CopyNullsToW(mask_.rows());
  } else if constexpr (kShape == Shape::Zone) {
    const TimeZone& zone = **FindTimeZone(program_.constants[static_cast<size_t>(in.p2)].text);
    mask_.ForOnlyLive([&](int i) {
      if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
      if constexpr (std::is_same_v<M, meaning::ZoneTextT>) {
        M::Apply(zone, acc_.a[i], &scratch_.text);
        acc_.a[i] = MadeText(scratch_.text);
      } else if constexpr (std::is_same_v<M, meaning::ZoneParseT>) {
        const Result<int64_t> moment = M::Apply(zone, Text(acc_.a[i]));
        if (!moment.ok() && in.p3 != 0) {
          NullsOfA()[i] = 1;
        } else if (Succeeds(moment.status())) {
          acc_.a[i] = *moment;
        }
      } else {
        Lane lane;
        acc_.a[i] = M::Apply(zone, acc_.a[i], lane);
        if (lane.error != LaneError::kNone) error_.Note(lane.error);
      }
    });
  } else if constexpr (kShape == Shape::TextUnary) {
    MapText([&](std::string_view s) {
      M::Apply(s, &scratch_.text);
      return MadeText(scratch_.text);
    });
  } else if constexpr (kShape == Shape::TextLength) {
    MapText([](std::string_view s) { return M::Apply(s); });
  } else if constexpr (kShape == Shape::ToText) {
    mask_.ForOnlyLive([&](int i) {
      if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
      Lane lane;
      M::Apply(acc_.a[i], &scratch_.text, lane);
      if (lane.error != LaneError::kNone) return error_.Note(lane.error);
      acc_.a[i] = MadeText(scratch_.text);
    });
  } else if constexpr (kShape == Shape::Place) {
    acc_.a_may_be_null = false;
    const uint64_t first = tile_.row_before + tile_.first;
    mask_.ForLive([&](int i) { acc_.a[i] = static_cast<int64_t>(first + static_cast<uint64_t>(i)); });
    for (const ProbeTrait& trait : traits_.probes) {
      const ProbeState& probe = probes_[static_cast<size_t>(trait.join)];
      const std::vector<uint32_t>& cursor = probe.cursor;
      const uint32_t at = probe.crossed.at;
      mask_.ForLive([&](int i) {
        const uint64_t row = cursor.empty() ? at : cursor[static_cast<size_t>(i)];
        acc_.a[i] = static_cast<int64_t>(static_cast<uint64_t>(acc_.a[i]) * 0x2545F4914F6CDD1D + row + 1);
      });
    }
  } else if constexpr (kShape == Shape::Format) {
    constexpr bool kWide = std::is_same_v<M, meaning::FormatW>;
    constexpr bool kFloat = std::is_same_v<M, meaning::FormatF>;
    const Format& format = constants_.FormatOf(static_cast<int32_t>(Current()), in);
    if constexpr (kWide) acc_.CopyNullsToA(mask_.rows());
    Value v = Value::Null(UnpackType(in.p3));
    v.null = false;
    mask_.ForOnlyLive([&](int i) {
      if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
      if constexpr (kWide) {
        v.wide = acc_.w[static_cast<size_t>(i)];
      } else if constexpr (kFloat) {
        v.f64 = std::bit_cast<double>(acc_.a[i]);
      } else {
        v.i64 = acc_.a[i];
      }
      scratch_.text.clear();
      format.Append(v, &scratch_.text);
      acc_.a[i] = MadeText(scratch_.text);
    });
  } else if constexpr (kShape == Shape::UnaryField) {
    mask_.ForOnlyLive([&](int i) {
      if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
      Lane lane;
      acc_.a[i] = std::bit_cast<int64_t>(M::Apply(std::bit_cast<double>(acc_.a[i]), in.p3, lane));
      if (lane.error != LaneError::kNone) error_.Note(lane.error);
    });
  } else {
    static_assert(kShape == Shape::BinaryField);
    const Source<int64_t> b = Fetch<int64_t>(in.p2, 0);
    mask_.ForOnlyLive([&](int i) {
      if (is_null(b, i)) NullsOfA()[i] = 1;
      if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
      Lane lane;
      acc_.a[i] = std::bit_cast<int64_t>(
          M::Apply(std::bit_cast<double>(acc_.a[i]), std::bit_cast<double>(value(b, i)), in.p3, lane));
      if (lane.error != LaneError::kNone) error_.Note(lane.error);
    });
  }
}

void TileMachine::DoApart(const Instruction& in) {
  const auto run = [&]<class M, Shape kShape>() {
    constexpr bool kOnlyApart = kShape == Shape::TextNumber || kShape == Shape::TextFind ||
                                kShape == Shape::TextReplace || kShape == Shape::TextPad || kShape == Shape::TextPart ||
                                kShape == Shape::BinaryField || kShape == Shape::RegexPart ||
                                kShape == Shape::RegexReplace || kShape == Shape::Zone || kShape == Shape::Place ||
                                kShape == Shape::Format || kShape == Shape::AddInterval || kShape == Shape::Between ||
                                kShape == Shape::IntervalTimes || kShape == Shape::MakeWide;
    if constexpr (kOnlyApart || kApart<M>) RunApart<M, kShape>(in);
  };
  switch (in.op) {
#define OPCODE(Name, ShapeName, ...)                            \
  case Opcode::Name:                                            \
    run.template operator()<meaning::Name, Shape::ShapeName>(); \
    break;
#include "vm/program/opcodes.def"
#undef OPCODE
    case Opcode::kCount:
      break;
  }
}

}  // namespace tessera::vm
