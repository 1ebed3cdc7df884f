// Opcodes of the host interpreter that call a function for each row: of texts and of doubles. Their loops need not
// be inlined into the interpreter's switch, and it is better off without them: see TileMachine::DoApart.

#include <bit>
#include <string_view>
#include <type_traits>

#include "vm/math_meaning.h"
#include "vm/text_meaning.h"
#include "vm/tile_machine.h"
#include "vm/tile_machine_text.h"

namespace tessera::vm {

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
  // Neighbouring rows often hold the same string.
  const bool constant = b.one && c.one;
  int64_t last = -1, last_result = 0;
  ForOnlyLive([&](int i) {
    if (is_null(b, i) || is_null(c, i)) NullsA()[i] = 1;
    if (a_may_be_null_ && a_null_[i] != 0) return;
    if (!constant || a_[i] != last) {
      Lane lane;
      if constexpr (kThird) {
        M::Apply(Text(a_[i]), argument(std::type_identity<B>(), b, i), argument(std::type_identity<C>(), c, i), &text_,
                 lane);
      } else {
        M::Apply(Text(a_[i]), argument(std::type_identity<B>(), b, i), &text_, lane);
      }
      if (lane.error != LaneError::kNone) return NoteError(lane.error);
      last = a_[i];
      last_result = Intern(text_);
    }
    a_[i] = last_result;
  });
}

const Regex& TileMachine::RegexOf(int32_t constant) {
  return regexes_.try_emplace(constant, program_.constants[static_cast<size_t>(constant)].text).first->second;
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
      a_[i] = M::Apply(Text(a_[i]), Text(value(b, i)));
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
          a_[i] = Intern(text_);
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
      return Intern(lane.error == LaneError::kNone ? std::string_view(text_) : std::string_view());
    });
  } else if constexpr (kShape == Shape::TextUnary) {
    MapText([&](std::string_view s) {
      M::Apply(s, &text_);
      return Intern(text_);
    });
  } else if constexpr (kShape == Shape::TextLength) {
    MapText([](std::string_view s) { return M::Apply(s); });
  } else if constexpr (kShape == Shape::ToText) {
    ForOnlyLive([&](int i) {
      if (a_may_be_null_ && a_null_[i] != 0) return;
      Lane lane;
      M::Apply(a_[i], &text_, lane);
      if (lane.error != LaneError::kNone) return NoteError(lane.error);
      a_[i] = Intern(text_);
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

void TileMachine::DoApart(const Instruction& in) {
  const auto run = [&]<class M, Shape kShape>() {
    constexpr bool kOnlyApart = kShape == Shape::TextNumber || kShape == Shape::TextFind ||
                                kShape == Shape::TextReplace || kShape == Shape::TextPad || kShape == Shape::TextPart ||
                                kShape == Shape::BinaryField || kShape == Shape::RegexPart ||
                                kShape == Shape::RegexReplace;
    if constexpr (kOnlyApart || kApart<M>) RunApart<M, kShape>(in);
  };
  switch (in.op) {
#define OPCODE(Name, ShapeName, ...)                            \
  case Opcode::Name:                                            \
    run.template operator()<meaning::Name, Shape::ShapeName>(); \
    break;
#include "vm/opcodes.def"
#undef OPCODE
    case Opcode::kCount:
      break;
  }
}

}  // namespace tessera::vm
