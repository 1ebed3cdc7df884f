// Joins of the host interpreter: probes, further matches, rows of a join table. Included by interpreter.cc only, which
// keeps all loops in one translation unit, so that they are inlined into its switch.
#pragma once

#include "vm/machine/tile_machine.h"

namespace tessera::vm {

/// Calls f(row, words, nulls) for each live row with the words of its key: one word per key column, two if it is wide.
/// `nulls` has a bit per key column, set if it is NULL; its words are then 0.
template <class F>
void TileMachine::WithKeyWords(const Instruction& in, const std::vector<SqlType>& types, F f) {
  int64_t words[2 * kMaxKeys + 1] = {};
  if (in.p3 == 1 && !IsWide(types[0])) {
    const Source<int64_t> s = Fetch<int64_t>(in.p2, 0);
    mask_.ForOnlyLive([&](int i) {
      const bool null = s.one ? s.one_null : s.nulls != nullptr && s.nulls[i] != 0;
      words[0] = null ? 0 : s.values[s.one ? 0 : i];
      f(i, words, uint64_t{null});
    });
    return;
  }
  if (in.p3 == 1) {
    const Source<int128_t> s = Fetch<int128_t>(in.p2, 0);
    mask_.ForOnlyLive([&](int i) {
      const bool null = s.one ? s.one_null : s.nulls != nullptr && s.nulls[i] != 0;
      const int128_t v = null ? 0 : s.values[s.one ? 0 : i];
      words[0] = Low64(v);
      words[1] = High64(v);
      f(i, words, uint64_t{null});
    });
    return;
  }
  const size_t base = in.p3 == 0 ? 0 : Operand::Unpack(in.p2).index;
  mask_.ForOnlyLive([&](int i) {
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

/// Drops rows whose key has no bit. Without a branch: a dead row or a key out of range reads bit 0 and is masked off.
void TileMachine::KeepPresent(const Source<int64_t>& s, const JoinIndex& join) {
  if (s.one) return;
  // (Copies, because a store to the mask might change what a reference refers to.)
  const int64_t* const values = s.values;
  const uint8_t* const nulls = s.nulls;
  const uint64_t* const present = join.present();
  const auto low = static_cast<uint64_t>(join.key_range().low);
  const uint64_t size = static_cast<uint64_t>(join.key_range().high) - low + 1;
  mask_.Keep([=, this](int i) {
    const uint64_t at = static_cast<uint64_t>(values[i]) - low;
    const bool in_range = (at < size) & (mask_[i] != 0) & (nulls == nullptr || nulls[i] == 0);
    const uint64_t where = in_range ? at : 0;
    return in_range & ((present[where / 64] >> (where % 64) & 1) != 0);
  });
}

/// Lets the cursors of live rows point at the first row with their key.
void TileMachine::FindDirect(const Source<int64_t>& s, const JoinIndex& join, uint32_t* cursor) {
  const uint64_t size = join.direct_size();
  if (s.one || size == 0) {
    const uint32_t row = s.one && !s.one_null ? join.FirstDirect(s.values[0]) : kNoRow;
    mask_.ForLive([&](int i) { cursor[i] = row; });
    if (row == kNoRow) mask_.Keep([](int) { return false; });
    return;
  }
  const int64_t* const values = s.values;
  const uint8_t* const nulls = s.nulls;
  const uint32_t* const heads = join.direct_heads();
  const auto base = static_cast<uint64_t>(join.direct_base());
  if (!join.has_rows()) {
    std::fill_n(cursor, mask_.rows(), 0);
  } else if (join.present() != nullptr) {
    mask_.ForOnlyLive([=](int i) { cursor[i] = heads[static_cast<uint64_t>(values[i]) - base]; });
  } else {
    // Without a branch: a dead row or a key out of range reads entry 0 and is masked off.
    mask_.Keep([=, this](int i) {
      const uint64_t at = static_cast<uint64_t>(values[i]) - base;
      const bool in_table = (at < size) & (mask_[i] != 0) & (nulls == nullptr || nulls[i] == 0);
      const uint32_t row = heads[in_table ? at : 0];
      cursor[i] = row;
      return in_table & (row != kNoRow);
    });
  }
}

template <class M>
void TileMachine::DoProbe(const Instruction& in) {
  const JoinIndex& join = *joins_[in.p1];
  uint32_t* cursor = probes_[in.p1].cursor.data();
  if (in.p3 == 0) {  // no key: every row matches every row
    CrossedRows& rows = probes_[in.p1].crossed;
    rows.at = rows.first < rows.end ? rows.first : kNoRow;
    if (rows.at == kNoRow) mask_.Keep([](int) { return false; });
    return;
  }
  if (join.direct() || join.present() != nullptr) {
    const Source<int64_t> s = Fetch<int64_t>(in.p2, 0);
    if (join.present() != nullptr) KeepPresent(s, join);
    if (join.direct()) return FindDirect(s, join, cursor);
  }
  const Section& builder = program_.sections[static_cast<size_t>(program_.joins[in.p1].section)];
  const auto words = static_cast<size_t>(join.words());
  size_t n = 0, tested = 0;
  keys_.MakeRoom(words);
  const auto collect = [&]<bool kFiltered>() {
    WithKeyWords(in, builder.columns, [&](int i, const int64_t* key, uint64_t nulls) {
      cursor[i] = kNoRow;
      uint64_t hash = kHashSeed;
      for (size_t w = 0; w < words; ++w) hash = HashWord(hash, keys_.words[n * words + w] = key[w]);
      keys_.hashes[n] = hash;
      keys_.rows[n] = static_cast<uint16_t>(i);
      const size_t valued = nulls == 0 ? 1 : 0;
      if constexpr (kFiltered) {
        tested += valued;
        n += valued & (join.MayHave(hash) ? 1 : 0);
      } else {
        n += valued;
      }
    });
  };
  BloomUse& use = probes_[in.p1].bloom;
  if (join.has_bloom() && use.Helps()) {
    collect.template operator()<true>();
    use.tested += tested;
    use.passed += n;
  } else {
    collect.template operator()<false>();
  }
  join.FindHashed(keys_.words.data(), keys_.hashes, n, [&](size_t k, uint32_t row) { cursor[keys_.rows[k]] = row; });
  mask_.Keep([&](int i) { return (mask_[i] != 0) & (cursor[i] != kNoRow); });
}

/// A probe that keeps all live rows: those without a match point at no row.
template <class M>
void TileMachine::DoProbeOuter(const Instruction& in) {
  uint8_t before[kTileRows];
  mask_.SaveTo(before);
  const int live = mask_.live();
  DoProbe<meaning::Probe>(in);
  if (mask_.live() == live) return;
  uint32_t* cursor = probes_[in.p1].cursor.data();
  for (int i = 0; in.p3 > 0 && i < mask_.rows(); ++i) cursor[i] = mask_[i] != 0 ? cursor[i] : kNoRow;
  mask_.Restore(before);
}

template <class M>
void TileMachine::DoTestMatch(const Instruction& in) {
  const uint32_t* cursor = probes_[in.p1].cursor.data();
  if (probes_[in.p1].cursor.empty()) {
    if (probes_[in.p1].crossed.at == kNoRow) mask_.Keep([](int) { return false; });
    return;
  }
  mask_.Keep([&](int i) { return (mask_[i] != 0) & (cursor[i] != kNoRow); });
}

template <class M>
void TileMachine::DoRefuse(const Instruction&) {
  if (mask_.live() > 0) error_.Note(LaneError::kSeveralRows);
}

/// Ends Next and NextOuter: the mask has the rows of the next turn.
void TileMachine::Jump(const Instruction& next, uint8_t* saved) {
  mask_.SaveTo(saved);
  if (mask_.live() == 0) return;
  requests_.stops.Ask(tile_.sinks.rows);
  next_ = next.p2;
}

/// Next and NextOuter over a table without keys: all rows that are still in the loop advance together.
template <bool kOuter>
void TileMachine::NextCrossed(const Instruction& in) {
  CrossedRows& rows = probes_[in.p1].crossed;
  uint8_t* saved = masks_[static_cast<size_t>(in.p3)].rows.data();
  const bool had_row = rows.at != kNoRow;
  rows.at = had_row && rows.at + 1 < rows.end ? rows.at + 1 : kNoRow;
  const bool another_turn = kOuter ? had_row : rows.at != kNoRow;
  if (another_turn) {
    mask_.Restore(saved);
  } else {
    mask_.SetToNone();
  }
  Jump(in, saved);
}

template <class M>
void TileMachine::DoNextOuter(const Instruction& in) {
  if (probes_[in.p1].cursor.empty()) return NextCrossed<true>(in);
  const JoinIndex& join = *joins_[in.p1];
  uint32_t* cursor = probes_[in.p1].cursor.data();
  uint8_t* saved = masks_[static_cast<size_t>(in.p3)].rows.data();
  mask_.Restore(saved);
  mask_.Keep([&](int i) {
    if (mask_[i] == 0 || cursor[i] == kNoRow) return false;
    cursor[i] = join.After(cursor[i]);
    return true;
  });
  Jump(in, saved);
}

template <class M>
void TileMachine::DoNext(const Instruction& in) {
  if (probes_[in.p1].cursor.empty()) return NextCrossed<false>(in);
  const JoinIndex& join = *joins_[in.p1];
  uint32_t* cursor = probes_[in.p1].cursor.data();
  uint8_t* saved = masks_[static_cast<size_t>(in.p3)].rows.data();
  mask_.Restore(saved);
  mask_.Keep([&](int i) {
    if (mask_[i] == 0) return false;
    cursor[i] = join.After(cursor[i]);
    return cursor[i] != kNoRow;
  });
  Jump(in, saved);
}

/// Appends the live rows of registers r0 .. to `rows`.
void TileMachine::AppendLiveRegisters(RowSet* rows, size_t columns) {
  const size_t before = rows->rows, after = before + static_cast<size_t>(mask_.live());
  for (size_t c = 0; c < columns; ++c) {
    RowColumn& to = rows->columns[c];
    const Register& r = registers_[c];
    const bool wide = !r.wide.empty();
    to.low.resize(after);
    if (wide) to.high.resize(after);
    size_t at = before;
    if (wide) {
      mask_.ForOnlyLive([&](int i) {
        to.low[at] = Low64(r.wide[static_cast<size_t>(i)]);
        to.high[at++] = High64(r.wide[static_cast<size_t>(i)]);
      });
    } else {
      int64_t* out = to.low.data();
      mask_.ForOnlyLive([&](int i) { out[at++] = r.narrow[static_cast<size_t>(i)]; });
    }
    if (r.may_be_null || !to.null.empty()) {
      to.null.resize(after);
      at = before;
      if (r.may_be_null) mask_.ForOnlyLive([&](int i) { to.null[at++] = r.null[static_cast<size_t>(i)]; });
    }
    if (texts_.may_be_made && to.type.storage() == StorageClass::kText) SettleTexts(before, &to);
  }
  rows->rows = after;
}

/// Gives identifiers to the texts of a column that have none yet, from row `first` on.
void TileMachine::SettleTexts(size_t first, RowColumn* column) {
  texts_.asked.Clear();
  for (size_t i = first; i < column->low.size(); ++i) {
    if (column->low[i] < kFirstMade) continue;
    // (What a NULL has in the place of a value may stand for nothing.)
    if (!column->null.empty() && column->null[i] != 0) {
      column->low[i] = 0;
      continue;
    }
    texts_.asked.Add({.row = i}, texts_.of_tile.Here(column->low[i]));
  }
  texts_.asked.Intern(strings_, [&](const AskedTexts::Asked& asked, int64_t id) { column->low[asked.row] = id; });
}

template <class M>
void TileMachine::DoBuild(const Instruction&) {
  for (size_t k = 0; k < static_cast<size_t>(section_.keys); ++k) {
    const Register& r = registers_[k];
    if (r.may_be_null) mask_.Keep([&](int i) { return r.null[static_cast<size_t>(i)] == 0; });
  }
  AppendLiveRegisters(tile_.sinks.rows, section_.columns.size());
}

}  // namespace tessera::vm
