// Groups and aggregates of the host interpreter. Included by interpreter.cc only, which keeps all loops in one
// translation unit, so that they are inlined into its switch.
#pragma once

#include "vm/machine/tile_machine.h"

namespace tessera::vm {

/// Rows that were masked off at Group and restored after it reach an aggregate with a stale group. If the table has no
/// group at all, there is not even a stale one for them.
static bool NoGroups(const Section& section, const GroupTable& table) {
  return section.keys > 0 && table.groups() == 0;
}

template <class M>
void TileMachine::DoGroup(const Instruction& in) {
  if (in.p3 == 0) return;  // group 0, see DoFold
  GroupTable& table = *tile_.sinks.groups;
  const int words = table.words();
  int64_t last[2 * kMaxKeys + 1];
  uint32_t last_group = 0;
  bool any = false;
  const bool remembers = words <= 3;  // one or two words of keys, and the NULL bits
  groups_.Begin(table, in.p3, remembers);
  if (in.p3 > kMaxKeys) return FindGroupsOfManyKeys(in, &table);
  if (FindGroupsDirectly(in, &table)) return table.MakeStates();
  if (table.groups() >= GroupSearch::kManyGroups) return FindManyGroups(in, &table);
  // (Always inlined: as a call for each row, TPC-H q1 took 6 % longer.)
  const auto find = [&](int i, int64_t* key, uint64_t nulls) __attribute__((always_inline)) {
    key[words - 1] = static_cast<int64_t>(nulls);
    if (remembers && nulls == 0) {
      const int64_t second = words == 3 ? key[1] : 0;
      GroupSearch::Recent& recent = groups_.RecentOf(key[0], second);
      if (recent.number == 0 || recent.first != key[0] || recent.second != second) {
        uint64_t hash = kHashSeed;
        for (int w = 0; w < words; ++w) hash = HashWord(hash, key[w]);
        recent = {key[0], second, table.FindOrMake(key, hash) + 1};
      }
      groups_.of_row[static_cast<size_t>(i)] = recent.number - 1;
      return;
    }
    // Sorted data gives runs of one group.
    if (any && SameWords(key, last, words)) {
      groups_.of_row[static_cast<size_t>(i)] = last_group;
      return;
    }
    uint64_t hash = kHashSeed;
    for (int w = 0; w < words; ++w) hash = HashWord(hash, key[w]);
    last_group = groups_.of_row[static_cast<size_t>(i)] = table.FindOrMake(key, hash);
    for (int w = 0; w < words; ++w) last[w] = key[w];
    any = true;
  };
  WithKeyWords(in, section_.columns, find);
  table.MakeStates();
}

bool TileMachine::FindGroupsDirectly(const Instruction& in, GroupTable* table) {
  if (!groups_.direct.is_open()) return false;
  const int keys = in.p3;
  const int64_t* values[DirectGroups::kMostKeys];
  const uint8_t* nulls[DirectGroups::kMostKeys];
  if (keys == 1) {
    if (IsWide(section_.columns[0])) return false;
    const Source<int64_t> s = Fetch<int64_t>(in.p2, 0);
    if (s.one) return false;
    values[0] = s.values;
    nulls[0] = s.nulls;
  } else {
    for (int k = 0; k < keys; ++k) {
      const Register& r = registers_[Operand::Unpack(in.p2).index + static_cast<size_t>(k)];
      if (!r.wide.empty()) return false;
      values[k] = r.narrow.data();
      nulls[k] = r.may_be_null ? r.null.data() : nullptr;
    }
  }
  // A place for each row, and whether it is none: column by column, dead rows included, in loops that vectorise.
  uint64_t places[kTileRows], outside[kTileRows];
  for (int k = 0; k < keys; ++k) {
    const DirectGroups::Range range = groups_.direct.range(k);
    const int bits = std::max(range.bits, 0);
    const uint64_t least = static_cast<uint64_t>(range.least);
    const int64_t* const from = values[k];
    const uint8_t* const null = nulls[k];
    mask_.ForLive([&, first = k == 0](int i) {
      const uint64_t place = static_cast<uint64_t>(from[i]) - least;
      places[i] = first ? place : places[i] << bits | place;
      outside[i] = first ? place >> bits : outside[i] | place >> bits;
    });
    if (null != nullptr) mask_.ForLive([&](int i) { outside[i] |= null[i]; });
  }
  const uint32_t* const numbers = groups_.direct.numbers();
  uint32_t* const group = groups_.of_row.data();
  uint16_t missed[kTileRows];
  int misses = 0;
  if (groups_.direct.any()) {
    mask_.ForOnlyLive([&](int i) {
      const uint32_t number = outside[i] == 0 ? numbers[places[i]] : 0;
      missed[misses] = static_cast<uint16_t>(i);
      misses += number == 0 ? 1 : 0;
      group[i] = number == 0 ? 0 : number - 1;
    });
  } else {
    mask_.ForOnlyLive([&](int i) { missed[misses++] = static_cast<uint16_t>(i); });
  }
  table->NoteFound(static_cast<uint64_t>(mask_.live() - misses));
  FindGroupsOf(missed, misses, keys, values, nulls, table);
  return true;
}

/// The groups of rows that groups_.direct does not know, which learns of them. (Rows with NULLs among them: those with
/// the same key are often neighbours.)
void TileMachine::FindGroupsOf(const uint16_t* missed, int misses, int keys, const int64_t* const* values,
                               const uint8_t* const* nulls, GroupTable* table) {
  const size_t words = static_cast<size_t>(table->words());
  keys_.MakeRoom(words);
  BatchedRows rows;
  for (int m = 0; m < misses; ++m) {
    const size_t i = missed[m];
    int64_t key[DirectGroups::kMostKeys + 1];
    key[keys] = 0;
    for (int k = 0; k < keys; ++k) {
      const bool null = nulls[k] != nullptr && nulls[k][i] != 0;
      key[keys] |= int64_t{null} << k;
      key[k] = null ? 0 : values[k][i];
    }
    AddTo(&rows, missed[m], key, words);
  }
  FindGroupsOf(rows, table);
  table->NoteFound(rows.repeats);
  for (size_t k = 0; k < rows.keys; ++k) {
    const int64_t* const key = keys_.words.data() + k * words;
    if (key[keys] == 0) groups_.direct.Note(key, groups_.of_row[keys_.rows[k]]);
  }
}

void TileMachine::FindManyGroups(const Instruction& in, GroupTable* table) {
  const size_t words = static_cast<size_t>(table->words());
  keys_.MakeRoom(words);
  BatchedRows rows;
  WithKeyWords(in, section_.columns, [&](int i, int64_t* key, uint64_t nulls) {
    key[words - 1] = static_cast<int64_t>(nulls);
    AddTo(&rows, i, key, words);
  });
  FindGroupsOf(rows, table);
  table->MakeStates();
}

/// More keys than WithKeyWords has bits for.
void TileMachine::FindGroupsOfManyKeys(const Instruction& in, GroupTable* table) {
  const auto keys = static_cast<size_t>(in.p3), words = static_cast<size_t>(table->words());
  const auto nulls = static_cast<size_t>(table->value_words());
  const size_t base = Operand::Unpack(in.p2).index;
  std::vector<int64_t> key(words);
  mask_.ForOnlyLive([&](int i) {
    const auto row = static_cast<size_t>(i);
    std::fill(key.begin(), key.end(), 0);
    size_t w = 0;
    for (size_t k = 0; k < keys; ++k) {
      const Register& r = registers_[base + k];
      const bool is_wide = !r.wide.empty();
      if (r.may_be_null && r.null[row] != 0) {
        key[nulls + k / 64] |= int64_t{1} << k % 64;
      } else if (is_wide) {
        key[w] = Low64(r.wide[row]);
        key[w + 1] = High64(r.wide[row]);
      } else {
        key[w] = r.narrow[row];
      }
      w += is_wide ? 2 : 1;
    }
    uint64_t hash = kHashSeed;
    for (const int64_t word : key) hash = HashWord(hash, word);
    groups_.of_row[row] = table->FindOrMake(key.data(), hash);
  });
  table->MakeStates();
}

inline void TileMachine::AddTo(BatchedRows* rows, int i, const int64_t* key, size_t words) {
  int64_t* const to = keys_.words.data() + rows->keys * words;
  // Sorted data gives runs of one group.
  if (rows->keys > 0 && SameWords(key, to - words, static_cast<int>(words))) {
    groups_.of_row[static_cast<size_t>(i)] = keys_.rows[rows->keys - 1];
    rows->repeated[rows->repeats++] = static_cast<uint16_t>(i);
    return;
  }
  uint64_t hash = kHashSeed;
  for (size_t w = 0; w < words; ++w) hash = HashWord(hash, to[w] = key[w]);
  keys_.hashes[rows->keys] = hash;
  keys_.rows[rows->keys++] = static_cast<uint16_t>(i);
}

void TileMachine::FindGroupsOf(const BatchedRows& rows, GroupTable* table) {
  table->FindOrMakeMany(keys_.words.data(), keys_.hashes, rows.keys,
                        [&](size_t k, uint32_t g) { groups_.of_row[keys_.rows[k]] = g; });
  for (size_t k = 0; k < rows.repeats; ++k)
    groups_.of_row[rows.repeated[k]] = groups_.of_row[groups_.of_row[rows.repeated[k]]];
}

template <class M>
void TileMachine::DoCountRows(const Instruction& in) {
  if (NoGroups(section_, *tile_.sinks.groups)) return;
  int64_t* counts = tile_.sinks.groups->aggregates()[in.p1].narrow.data();
  if (section_.keys == 0) {
    counts[0] += mask_.live();
  } else {
    mask_.ForOnlyLive([&](int i) { ++counts[groups_.of_row[static_cast<size_t>(i)]]; });
  }
}

template <class M>
void TileMachine::DoCountValues(const Instruction& in) {
  if (NoGroups(section_, *tile_.sinks.groups)) return;
  int64_t* counts = tile_.sinks.groups->aggregates()[in.p1].narrow.data();
  const bool may = M::kWide ? acc_.w_may_be_null : acc_.a_may_be_null;
  const uint8_t* nulls = M::kWide ? acc_.w_null.data() : acc_.a_null;
  mask_.ForOnlyLive([&](int i) {
    counts[section_.keys == 0 ? 0 : groups_.of_row[static_cast<size_t>(i)]] += may && nulls[i] != 0 ? 0 : 1;
  });
}

/// SumF and MomentsF, for the tile's rows together, which takes a third of the time.
template <class M>
void TileMachine::AddFloats(const uint8_t* nulls, AggregateStates* states) {
  using State = typename M::State;
  const bool grouped = section_.keys > 0;
  const int64_t* values = acc_.a;
  const uint32_t* groups = groups_.of_row.data();
  int count = mask_.rows();
  int64_t some_values[kTileRows];
  uint32_t some_groups[kTileRows];
  if (nulls != nullptr || mask_.live() < count) {
    count = 0;
    mask_.ForOnlyLive([&](int i) {
      some_values[count] = acc_.a[i];
      if (grouped) some_groups[count] = groups[i];
      count += nulls == nullptr || nulls[i] == 0 ? 1 : 0;
    });
    values = some_values;
    groups = some_groups;
  }
  if (count == 0) return;
  auto* const all = reinterpret_cast<State*>(states->words.data());
  const auto add = [&](const int64_t* from, FloatSum* first) {
    if (grouped) return AddToGroups(from, groups, count, {first, sizeof(State), states->seen.size()});
    AddAll(from, count, first);
  };
  if constexpr (std::is_same_v<State, FloatSum>) {
    add(values, all);
  } else {
    int64_t squares[kTileRows], missing[kTileRows];
    for (int i = 0; i < count; ++i) {
      const double x = std::bit_cast<double>(values[i]), square = x * x;
      squares[i] = std::bit_cast<int64_t>(square);
      missing[i] = std::bit_cast<int64_t>(State::MissingOf(x, square));
    }
    add(values, &all->sum);
    add(squares, &all->squares);
    add(missing, &all->missing);
    if (!grouped) all->count += count;
    for (int i = 0; grouped && i < count; ++i) ++all[groups[i]].count;
  }
  if (!grouped) states->seen[0] = 1;
  for (int i = 0; grouped && i < count; ++i) states->seen[groups[i]] = 1;
}

template <class M>
void TileMachine::DoFold(const Instruction& in) {
  if (NoGroups(section_, *tile_.sinks.groups)) return;
  using T = typename M::Type;
  using State = typename M::State;
  constexpr bool kWide = std::is_same_v<T, int128_t>;
  AggregateStates& states = tile_.sinks.groups->aggregates()[in.p1];
  const bool may = kWide ? acc_.w_may_be_null : acc_.a_may_be_null;
  const uint8_t* nulls = kWide ? acc_.w_null.data() : acc_.a_null;
  Lane lane;
  auto value = [&](int i) {
    if constexpr (kWide) {
      return acc_.w[static_cast<size_t>(i)];
    } else {
      return FromBits<T>(acc_.a[i]);
    }
  };
  if constexpr (std::is_same_v<M, meaning::SumF> || std::is_same_v<M, meaning::MomentsF>) {
    return AddFloats<M>(may ? nulls : nullptr, &states);
  }
  if (section_.keys == 0) {
    State s = states.Get<State>(0);
    bool seen = false;
    if constexpr (std::is_same_v<M, meaning::SumI>) {
      if (!may && mask_.live() == mask_.rows()) {
        // Halves of 32 bits cannot overflow 64 over a tile, and the loop vectorises.
        int64_t low = 0, high = 0;
        for (int i = 0; i < mask_.rows(); ++i) {
          low += static_cast<int64_t>(static_cast<uint32_t>(acc_.a[i]));
          high += acc_.a[i] >> 32;
        }
        s += (static_cast<int128_t>(high) * (int64_t{1} << 32)) + low;
        states.Set(0, s);
        states.seen[0] = 1;
        return;
      }
    }
    mask_.ForOnlyLive([&](int i) {
      if (may && nulls[i] != 0) return;
      M::Apply(s, value(i), lane);
      seen = true;
    });
    states.Set(0, s);
    if (seen) states.seen[0] = 1;
  } else {
    uint8_t* seen = states.seen.data();
    mask_.ForOnlyLive([&](int i) {
      if (may && nulls[i] != 0) return;
      const size_t g = groups_.of_row[static_cast<size_t>(i)];
      State s = states.Get<State>(g);
      M::Apply(s, value(i), lane);
      states.Set(g, s);
      seen[g] = 1;
    });
  }
  if (lane.error != LaneError::kNone) error_.Note(lane.error);
}

/// What a state of several words stands for: the accumulator has the first, registers have the others.
template <class M>
void TileMachine::DoTotal(const Instruction& in) {
  using State = typename M::State;
  const Register* const others = &registers_[Operand::Unpack(in.p2).index];
  mask_.ForOnlyLive([&](int i) {
    if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
    uint64_t words[kStateWords<State>] = {static_cast<uint64_t>(acc_.a[i])};
    for (int k = 1; k < kStateWords<State>; ++k)
      words[k] = static_cast<uint64_t>(others[k - 1].narrow[static_cast<size_t>(i)]);
    acc_.a[i] = std::bit_cast<int64_t>(M::Apply(FromWords<State>(words)));
  });
}

template <class M>
void TileMachine::DoFoldText(const Instruction& in) {
  if (NoGroups(section_, *tile_.sinks.groups)) return;
  AggregateStates& states = tile_.sinks.groups->aggregates()[in.p1];
  mask_.ForOnlyLive([&](int i) {
    if (acc_.a_may_be_null && acc_.a_null[i] != 0) return;
    const size_t g = section_.keys == 0 ? 0 : groups_.of_row[static_cast<size_t>(i)];
    if (states.seen[g] != 0 &&
        (states.narrow[g] == acc_.a[i] || !M::Better(Text(acc_.a[i]), strings_->Get(states.narrow[g]))))
      return;
    states.narrow[g] = acc_.a[i] < kFirstMade ? acc_.a[i] : strings_->Intern(Text(acc_.a[i]));
    states.seen[g] = 1;
  });
}

}  // namespace tessera::vm
