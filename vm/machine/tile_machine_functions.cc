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

std::string_view TileMachine::TextHere(int64_t value) const {
  // A row that holds no value may hold one of an earlier tile.
  if (value < kFirstEntry) {
    const auto number = static_cast<size_t>(value - kFirstMade);
    return number < made_.size() ? made_[number] : std::string_view();
  }
  const auto place = static_cast<uint64_t>(value - kFirstEntry);
  const size_t slot = place >> 32;
  const auto entry = static_cast<uint32_t>(place);
  if (slot >= tablet_->chunks.size() || entry >= tablet_->chunks[slot]->entries) return {};
  return tablet_->chunks[slot]->Entry(entry);
}

int64_t TileMachine::KeepMade(std::string_view text) {
  if (text.empty()) return NoteMade({});
  char* const bytes = static_cast<char*>(made_bytes_.allocate(text.size(), 1));
  memcpy(bytes, text.data(), text.size());
  return NoteMade({bytes, text.size()});
}

const uint8_t* TileMachine::ReadCodes(int slot) {
  static_assert(kTileRows <= PackedReader::kMostRows);
  /// To read one row by itself takes as long as this many side by side.
  constexpr int kRowsForOne = 12;
  const auto number = static_cast<size_t>(slot);
  const int width = tablet_->slots[number].width;
  CodesOfTile& codes = codes_of_tile_[number];
  if (codes.bytes == nullptr) codes.bytes = std::make_unique_for_overwrite<uint64_t[]>(PackedReader::kRoom);
  uint8_t* const out = reinterpret_cast<uint8_t*>(codes.bytes.get());
  if (codes.tile != tile_) {
    codes.tile = tile_;
    codes.by_places = 0;
  }
  if (codes.by_places == n_) return out;
  const TileCodes& from = *tablet_->tile_codes[number];
  const char* reason;
  // (The mask may get rows back that are not read now, and a loop comes here again and again.)
  if (sparse_ && (codes.by_places + live_) * kRowsForOne < n_) {
    reason = from.reader->ReadPlaces(first_, {list_, static_cast<size_t>(live_)}, out);
    decoded_bytes_ += static_cast<uint64_t>(live_ * width);
    codes.by_places += live_;
  } else {
    reason = from.reader->Read(first_, static_cast<uint32_t>(n_), out);
    decoded_bytes_ += static_cast<uint64_t>(n_ * width);
    codes.by_places = n_;
  }
  if (reason != nullptr) {
    // What follows in this instruction must not meet codes without meaning.
    memset(out, 0, sizeof(uint64_t) * kTileRows);
    Succeeds(from.Damaged(reason));
  }
  return out;
}

TileMachine::Source<int64_t> TileMachine::ComputeSlot(int slot, int scratch) {
  const auto number = static_cast<size_t>(slot);
  const SlotEncoding& b = tablet_->slots[number];
  const Chunk& chunk = *tablet_->chunks[number];
  std::unique_ptr<EntryInterpreter>& machine = computed_[slot];
  const int map = section_.slots[number].map;
  if (machine == nullptr) machine = MakeEntryMachine(program_, map, strings_);
  Scratch& s = scratch_[scratch];
  std::array<uint32_t, kTileRows> entries;
  std::array<uint16_t, kTileRows> rows;
  uint32_t count = 0;
  const auto note = [&](int i, uint64_t entry) {
    entries[count] = static_cast<uint32_t>(entry);
    rows[count++] = static_cast<uint16_t>(i);
  };
  memset(s.null, 1, static_cast<size_t>(n_));
  if (b.decode == Decode::kMapRow) {
    ForOnlyLive([&](int i) {
      const uint64_t row = first_ + static_cast<uint32_t>(i);
      if (b.null_bytes == nullptr || b.null_bytes[row] == 0) note(i, row);
    });
  } else {
    const auto by_code = [&]<class Code>(Code) {
      const Code* codes = reinterpret_cast<const Code*>(CodesOf(slot));
      ForOnlyLive([&](int i) {
        if (!b.has_null_code || codes[i] != static_cast<Code>(b.null_code)) note(i, codes[i]);
      });
    };
    b.width == 1 ? by_code(uint8_t{}) : b.width == 2 ? by_code(uint16_t{}) : by_code(uint32_t{});
  }
  Succeeds(machine->Run(chunk, {entries.data(), count}));
  const DictionaryMap& values = machine->values();
  const bool is_text = section_.slots[number].type.storage() == StorageClass::kText;
  const bool only_read = uses_.slots[number] || (uses_.emitted[number] && top_ != nullptr);
  std::array<int64_t, kTileRows> identifiers;
  if (is_text && !only_read) {
    std::array<std::string_view, kTileRows> texts;
    for (uint32_t k = 0; k < count; ++k) texts[k] = values.null[k] != 0 ? std::string_view() : machine->Text(k);
    strings_->Intern({texts.data(), count}, identifiers.data());
  }
  for (uint32_t k = 0; k < count; ++k) {
    if ((s.null[rows[k]] = values.null[k]) != 0) continue;
    int64_t& to = s.narrow[rows[k]];
    to = !is_text ? values.values[k] : only_read ? KeepMade(machine->Text(k)) : identifiers[k];
  }
  return {s.narrow, s.null, false, false};
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
    if constexpr (requires { M::Apply(arguments..., &text_); }) {
      return Succeeds(M::Apply(arguments..., &text_));
    } else {
      Lane lane;
      M::Apply(arguments..., &text_, lane);
      if (lane.error != LaneError::kNone) NoteError(lane.error);
      return lane.error == LaneError::kNone;
    }
  };
  // Neighbouring rows often hold the same string.
  const bool constant = b.one && c.one;
  int64_t last = -1, last_result = 0;
  ForOnlyLive([&](int i) {
    if (is_null(b, i) || is_null(c, i)) NullsA()[i] = 1;
    if (a_may_be_null_ && a_null_[i] != 0) return;
    if (!constant || a_[i] != last) {
      bool made;
      if constexpr (kThird) {
        made = make(Text(a_[i]), argument(std::type_identity<B>(), b, i), argument(std::type_identity<C>(), c, i));
      } else {
        made = make(Text(a_[i]), argument(std::type_identity<B>(), b, i));
      }
      if (!made) return;
      last = a_[i];
      last_result = MadeText(text_);
    }
    a_[i] = last_result;
  });
}

bool TileMachine::Succeeds(const Status& status) {
  if (status.ok()) return true;
  if (error_ == LaneError::kNone) text_error_ = status;
  NoteError(LaneError::kBadText);
  return false;
}

const Regex& TileMachine::RegexOf(int32_t constant) {
  return regexes_.try_emplace(constant, program_.constants[static_cast<size_t>(constant)].text).first->second;
}

const Format& TileMachine::FormatOf(const Instruction& in) {
  const std::string& text = program_.constants[static_cast<size_t>(in.p2)].text;
  const auto language = static_cast<Format::Language>(in.p4);
  return formats_.try_emplace(static_cast<int32_t>(Current()), text, UnpackType(in.p3), language).first->second;
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
    ForOnlyLive([&](int i) {
      if (is_null(b, i)) NullsA()[i] = 1;
      if (a_may_be_null_ && a_null_[i] != 0) return;
      const auto found = M::Apply(Text(a_[i]), Text(value(b, i)));
      if constexpr (std::is_same_v<decltype(found), const int64_t>) {
        a_[i] = found;
      } else if (Succeeds(found.status())) {
        a_[i] = *found;
      }
    });
  } else if constexpr (kShape == Shape::Like) {
    const Regex& regex = RegexOf(in.p2);
    // Neighbouring rows often hold the same string.
    int64_t last = -1;
    bool matches = false;
    ForOnlyLive([&](int i) {
      const bool null = a_may_be_null_ && a_null_[i] != 0;
      if (!null && a_[i] != last) {
        last = a_[i];
        matches = regex.Matches(Text(last));
      }
      if (null || matches == M::kNegated) mask_[i] = 0;
    });
    MaskChanged();
  } else if constexpr (kShape == Shape::RegexPart) {
    const Regex& regex = RegexOf(in.p2);
    if constexpr (requires { M::Apply(regex, std::string_view(), 0, 0, &text_); }) {
      ForOnlyLive([&](int i) {
        if (a_may_be_null_ && a_null_[i] != 0) return;
        if (M::Apply(regex, Text(a_[i]), in.p3, in.p4, &text_)) {
          a_[i] = MadeText(text_);
        } else {
          NullsA()[i] = 1;
        }
      });
    } else {
      MapText([&](std::string_view s) { return M::Apply(regex, s); });
    }
  } else if constexpr (kShape == Shape::RegexReplace) {
    const Regex& regex = RegexOf(in.p2);
    const std::string& replacement = program_.constants[static_cast<size_t>(in.p3)].text;
    MapText([&](std::string_view s) {
      Lane lane;
      M::Apply(regex, s, replacement, in.p4 != 0, &text_, lane);
      if (lane.error != LaneError::kNone) NoteError(lane.error);
      return MadeText(lane.error == LaneError::kNone ? std::string_view(text_) : std::string_view());
    });
  } else if constexpr (kShape == Shape::AddInterval || kShape == Shape::IntervalTimes) {
    const Source<int128_t> b = Fetch<int128_t>(in.p2, 0);
    constexpr bool kMakesInterval = kShape == Shape::IntervalTimes;
    ForOnlyLive([&](int i) {
      if (b.one ? b.one_null : b.nulls != nullptr && b.nulls[i] != 0) NullsA()[i] = 1;
      if (a_may_be_null_ && a_null_[i] != 0) return;
      const int128_t interval = b.values[b.one ? 0 : i];
      Lane lane;
      if constexpr (kMakesInterval) {
        w_[static_cast<size_t>(i)] = M::Apply(std::bit_cast<double>(a_[i]), interval, lane);
      } else {
        a_[i] = M::Apply(a_[i], interval, lane);
      }
      if (lane.null) NullsA()[i] = 1;
      if (lane.error != LaneError::kNone) NoteError(lane.error);
    });
    if constexpr (kMakesInterval) NullsOfW();
  } else if constexpr (kShape == Shape::Between || kShape == Shape::MakeWide) {
    const Source<int64_t> b = Fetch<int64_t>(in.p2, 0);
    Source<int64_t> c{nullptr, nullptr, true, false};
    if constexpr (kShape == Shape::MakeWide) c = Fetch<int64_t>(in.p3, 1);
    ForOnlyLive([&](int i) {
      if (is_null(b, i) || is_null(c, i)) NullsA()[i] = 1;
      if (a_may_be_null_ && a_null_[i] != 0) return;
      Lane lane;
      if constexpr (kShape == Shape::MakeWide) {
        w_[static_cast<size_t>(i)] = M::Apply(a_[i], value(b, i), value(c, i), lane);
      } else {
        w_[static_cast<size_t>(i)] = M::Apply(a_[i], value(b, i), lane);
      }
      if (lane.error != LaneError::kNone) NoteError(lane.error);
    });
    NullsOfW();
  } else if constexpr (kShape == Shape::Zone) {
    const TimeZone& zone = **FindTimeZone(program_.constants[static_cast<size_t>(in.p2)].text);
    ForOnlyLive([&](int i) {
      if (a_may_be_null_ && a_null_[i] != 0) return;
      if constexpr (std::is_same_v<M, meaning::ZoneTextT>) {
        M::Apply(zone, a_[i], &text_);
        a_[i] = MadeText(text_);
      } else if constexpr (std::is_same_v<M, meaning::ZoneParseT>) {
        const Result<int64_t> moment = M::Apply(zone, Text(a_[i]));
        if (!moment.ok() && in.p3 != 0) {
          NullsA()[i] = 1;
        } else if (Succeeds(moment.status())) {
          a_[i] = *moment;
        }
      } else {
        Lane lane;
        a_[i] = M::Apply(zone, a_[i], lane);
        if (lane.error != LaneError::kNone) NoteError(lane.error);
      }
    });
  } else if constexpr (kShape == Shape::TextUnary) {
    MapText([&](std::string_view s) {
      M::Apply(s, &text_);
      return MadeText(text_);
    });
  } else if constexpr (kShape == Shape::TextLength) {
    MapText([](std::string_view s) { return M::Apply(s); });
  } else if constexpr (kShape == Shape::ToText) {
    ForOnlyLive([&](int i) {
      if (a_may_be_null_ && a_null_[i] != 0) return;
      Lane lane;
      M::Apply(a_[i], &text_, lane);
      if (lane.error != LaneError::kNone) return NoteError(lane.error);
      a_[i] = MadeText(text_);
    });
  } else if constexpr (kShape == Shape::Place) {
    a_may_be_null_ = false;
    const uint64_t first = row_before_ + first_;
    ForLive([&](int i) { a_[i] = static_cast<int64_t>(first + static_cast<uint64_t>(i)); });
    for (const int32_t join : probed_) {
      const std::vector<uint32_t>& cursor = cursors_[static_cast<size_t>(join)];
      const uint32_t at = crossed_[static_cast<size_t>(join)].at;
      ForLive([&](int i) {
        const uint64_t row = cursor.empty() ? at : cursor[static_cast<size_t>(i)];
        a_[i] = static_cast<int64_t>(static_cast<uint64_t>(a_[i]) * 0x2545F4914F6CDD1D + row + 1);
      });
    }
  } else if constexpr (kShape == Shape::Format) {
    constexpr bool kWide = std::is_same_v<M, meaning::FormatW>;
    constexpr bool kFloat = std::is_same_v<M, meaning::FormatF>;
    const Format& format = FormatOf(in);
    if constexpr (kWide) {
      a_may_be_null_ = w_may_be_null_;
      if (w_may_be_null_) memcpy(a_null_, w_null_.data(), static_cast<size_t>(n_));
    }
    Value v = Value::Null(UnpackType(in.p3));
    v.null = false;
    ForOnlyLive([&](int i) {
      if (a_may_be_null_ && a_null_[i] != 0) return;
      if constexpr (kWide) {
        v.wide = w_[static_cast<size_t>(i)];
      } else if constexpr (kFloat) {
        v.f64 = std::bit_cast<double>(a_[i]);
      } else {
        v.i64 = a_[i];
      }
      text_.clear();
      format.Append(v, &text_);
      a_[i] = MadeText(text_);
    });
  } else if constexpr (kShape == Shape::UnaryField) {
    ForOnlyLive([&](int i) {
      if (a_may_be_null_ && a_null_[i] != 0) return;
      Lane lane;
      a_[i] = std::bit_cast<int64_t>(M::Apply(std::bit_cast<double>(a_[i]), in.p3, lane));
      if (lane.error != LaneError::kNone) NoteError(lane.error);
    });
  } else {
    static_assert(kShape == Shape::BinaryField);
    const Source<int64_t> b = Fetch<int64_t>(in.p2, 0);
    ForOnlyLive([&](int i) {
      if (is_null(b, i)) NullsA()[i] = 1;
      if (a_may_be_null_ && a_null_[i] != 0) return;
      Lane lane;
      a_[i] = std::bit_cast<int64_t>(
          M::Apply(std::bit_cast<double>(a_[i]), std::bit_cast<double>(value(b, i)), in.p3, lane));
      if (lane.error != LaneError::kNone) NoteError(lane.error);
    });
  }
}

/// W is NULL where A is.
void TileMachine::NullsOfW() {
  w_may_be_null_ = a_may_be_null_;
  if (a_may_be_null_) memcpy(w_null_.data(), a_null_, static_cast<size_t>(n_));
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
