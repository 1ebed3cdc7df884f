// Group tables: open addressing over the words of the keys.

#include "vm/group_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "vm/lane_error.h"
#include "vm/text_meaning.h"

namespace tessera::vm {
namespace {

/// Entries up to which a table is at most a quarter full: it stays in the L1 cache and a look-up rarely has a second
/// step, whose branch nobody can predict.
constexpr size_t kRoomyTable = 4096;

/// Of GroupTable::table_.
uint64_t Entry(uint64_t hash, uint64_t group) { return hash >> 32 << 32 | (group + 1); }

bool IsCount(Opcode op) { return Info(op).shape == Shape::CountRows || Info(op).shape == Shape::CountValues; }

/// What a new group's state is: the identity of its opcode's meaning.
template <class M>
void AppendIdentity(AggregateStates* s) {
  if constexpr (sizeof(typename M::State) == 16) {
    s->wide.push_back(M::Identity());
  } else {
    s->narrow.push_back(std::bit_cast<int64_t>(M::Identity()));
  }
  s->seen.push_back(0);
}

template <class M>
void MergeState(AggregateStates* to, uint32_t g, const AggregateStates& from, uint32_t h, Lane* lane) {
  if (from.seen[h] == 0) return;
  to->seen[g] = 1;
  if constexpr (sizeof(typename M::State) == 16) {
    M::Merge(to->wide[g], from.wide[h], *lane);
  } else {
    auto state = std::bit_cast<typename M::State>(to->narrow[g]);
    M::Merge(state, std::bit_cast<typename M::State>(from.narrow[h]), *lane);
    to->narrow[g] = std::bit_cast<int64_t>(state);
  }
}

/// Calls f.template operator()<meaning::Op>() for the Fold opcode `op`.
template <class F>
void WithFold(Opcode op, F f) {
  switch (op) {
    case Opcode::SumI:
      return f.template operator()<meaning::SumI>();
    case Opcode::SumF:
      return f.template operator()<meaning::SumF>();
    case Opcode::SumW:
      return f.template operator()<meaning::SumW>();
    case Opcode::MinI:
      return f.template operator()<meaning::MinI>();
    case Opcode::MaxI:
      return f.template operator()<meaning::MaxI>();
    case Opcode::MinF:
      return f.template operator()<meaning::MinF>();
    case Opcode::MaxF:
      return f.template operator()<meaning::MaxF>();
    case Opcode::MinW:
      return f.template operator()<meaning::MinW>();
    case Opcode::MaxW:
      return f.template operator()<meaning::MaxW>();
    default:
      break;
  }
}

}  // namespace

GroupTable::GroupTable(const Section& section, const StringPool* strings) : section_(section), strings_(strings) {
  for (int k = 0; k < section.keys; ++k) words_ += IsWide(section.columns[static_cast<size_t>(k)]) ? 2 : 1;
  if (section.keys > 0) ++words_;
  for (const AggregateSpec& a : section.aggregates) {
    aggregates_.emplace_back();
    aggregates_.back().op = a.op;
  }
  if (section.keys == 0) MakeGroup(nullptr);  // an aggregate without GROUP BY has its one row even of no input
}

uint32_t GroupTable::MakeGroup(const int64_t* words) {
  const uint32_t g = static_cast<uint32_t>(groups_++);
  if (words_ > 0) keys_.insert(keys_.end(), words, words + words_);
  for (AggregateStates& s : aggregates_) {
    if (IsCount(s.op)) {
      s.narrow.push_back(0);
    } else if (Info(s.op).shape == Shape::FoldText) {
      s.narrow.push_back(0);
      s.seen.push_back(0);
    } else {
      WithFold(s.op, [&]<class M>() { AppendIdentity<M>(&s); });
    }
  }
  return g;
}

void GroupTable::Reserve(size_t groups) {
  keys_.reserve(groups * static_cast<size_t>(words_));
  hashes_.reserve(groups);
  for (AggregateStates& s : aggregates_) {
    if (!s.narrow.empty()) s.narrow.reserve(groups);
    if (!s.wide.empty()) s.wide.reserve(groups);
    if (!s.seen.empty()) s.seen.reserve(groups);
  }
}

void GroupTable::Grow() {
  table_.assign(std::max<size_t>(256, table_.size() * 2), 0);
  for (size_t g = 0; g < groups_; ++g) {
    if (g + kAhead < groups_) PrefetchEntry(hashes_[g + kAhead]);
    size_t at = hashes_[g] & (table_.size() - 1);
    while (table_[at] != 0) at = (at + 1) & (table_.size() - 1);
    table_[at] = Entry(hashes_[g], g);
  }
}

uint32_t GroupTable::FindOrMake(const int64_t* words, uint64_t hash) {
  if ((table_.size() <= kRoomyTable ? 4 : 2) * (groups_ + 1) > table_.size()) Grow();
  size_t at = hash & (table_.size() - 1);
  while (table_[at] != 0) {
    const uint32_t g = static_cast<uint32_t>(table_[at]) - 1;
    if ((table_[at] ^ hash) >> 32 == 0 &&
        SameWords(words, keys_.data() + static_cast<size_t>(g) * static_cast<size_t>(words_), words_))
      return g;
    at = (at + 1) & (table_.size() - 1);
  }
  hashes_.push_back(hash);
  const uint32_t g = MakeGroup(words);
  table_[at] = Entry(hash, g);
  return g;
}

Status GroupTable::Merge(const GroupTable& other) {
  if (section_.keys == 0) return MergeStates(0, other.aggregates_, 0);
  Reserve(groups_ + other.groups_);
  Status status;
  FindOrMakeMany(other.keys_.data(), other.hashes_.data(), other.groups_, [&](size_t h, uint32_t g) {
    if (status.ok()) status = MergeStates(g, other.aggregates_, static_cast<uint32_t>(h));
  });
  return status;
}

Status GroupTable::MergePart(const GroupTable& other, uint32_t part, uint32_t parts) {
  std::vector<uint32_t> of_part;
  of_part.reserve(other.groups_ / parts * 5 / 4);
  for (size_t h = 0; h < other.groups_; ++h) {
    if ((other.hashes_[h] >> 58) % parts == part) of_part.push_back(static_cast<uint32_t>(h));
  }
  Reserve(groups_ + of_part.size());
  Status status;
  const auto merge = [&](size_t h, uint32_t g) {
    if (status.ok()) status = MergeStates(g, other.aggregates_, static_cast<uint32_t>(h));
  };
  FindOrMakeSome(
      other.keys_.data(), other.hashes_.data(), of_part.size(), [&](size_t i) { return of_part[i]; }, merge);
  return status;
}

Status GroupTable::MergeStates(uint32_t g, const std::vector<AggregateStates>& others, uint32_t from) {
  for (size_t a = 0; a < aggregates_.size(); ++a) {
    AggregateStates& to = aggregates_[a];
    const AggregateStates& s = others[a];
    if (IsCount(to.op)) {
      to.narrow[g] += s.narrow[from];
    } else if (Info(to.op).shape == Shape::FoldText) {
      if (s.seen[from] == 0) continue;
      const auto x = strings_->Get(s.narrow[from]), y = strings_->Get(to.narrow[g]);
      if (to.seen[g] == 0 || (to.op == Opcode::MinT ? meaning::MinT::Better(x, y) : meaning::MaxT::Better(x, y)))
        to.narrow[g] = s.narrow[from];
      to.seen[g] = 1;
    } else {
      Lane lane;
      WithFold(to.op, [&]<class M>() { MergeState<M>(&to, g, s, from, &lane); });
      if (lane.error != LaneError::kNone) return LaneErrorStatus(lane.error, {});
    }
  }
  return Status::Ok();
}

Status GroupTable::Merge(const RowSet& rows) {
  // States and final values are the same but for NULL, which is a state that has seen nothing.
  std::vector<AggregateStates> states;
  for (size_t a = 0; a < aggregates_.size(); ++a) {
    const RowColumn& c = rows.columns[static_cast<size_t>(section_.keys) + a];
    AggregateStates& s = states.emplace_back();
    s.op = aggregates_[a].op;
    if (IsWide(c.type)) {
      for (size_t r = 0; r < rows.rows; ++r) s.wide.push_back(Make128(c.high[r], c.low[r]));
    } else {
      s.narrow = c.low;
    }
    if (IsCount(s.op)) continue;
    s.seen.assign(rows.rows, 1);
    for (size_t r = 0; r < c.null.size(); ++r) s.seen[r] = c.null[r] == 0 ? 1 : 0;
  }
  std::vector<int64_t> words(static_cast<size_t>(words_));
  for (size_t r = 0; r < rows.rows; ++r) {
    uint32_t g = 0;
    if (section_.keys > 0) {
      size_t word = 0;
      uint64_t nulls = 0, hash = kHashSeed;
      for (int k = 0; k < section_.keys; ++k) {
        const RowColumn& c = rows.columns[static_cast<size_t>(k)];
        const bool null = !c.null.empty() && c.null[r] != 0;
        nulls |= uint64_t{null} << k;
        words[word++] = null ? 0 : c.low[r];
        if (IsWide(c.type)) words[word++] = null ? 0 : c.high[r];
      }
      words[word] = static_cast<int64_t>(nulls);
      for (int64_t w : words) hash = HashWord(hash, w);
      g = FindOrMake(words.data(), hash);
    }
    TESSERA_TRY(MergeStates(g, states, static_cast<uint32_t>(r)));
  }
  return Status::Ok();
}

RowSet GroupTable::Rows() const {
  RowSet out = MakeRowSet(section_.columns);
  out.rows = groups_;
  int word = 0;
  for (int k = 0; k < section_.keys; ++k) {
    RowColumn& c = out.columns[static_cast<size_t>(k)];
    const bool wide = IsWide(c.type);
    c.low.reserve(groups_);
    if (wide) c.high.reserve(groups_);
    for (size_t g = 0; g < groups_; ++g) {
      const int64_t* words = keys_.data() + g * static_cast<size_t>(words_);
      c.low.push_back(words[word]);
      if (wide) c.high.push_back(words[word + 1]);
      if ((words[words_ - 1] >> k & 1) != 0) {
        c.null.resize(groups_);
        c.null[g] = 1;
      }
    }
    word += wide ? 2 : 1;
  }
  for (size_t a = 0; a < aggregates_.size(); ++a) {
    RowColumn& c = out.columns[static_cast<size_t>(section_.keys) + a];
    const AggregateStates& s = aggregates_[a];
    if (s.wide.empty()) {
      c.low = s.narrow;
    } else {
      c.low.reserve(groups_);
      c.high.reserve(groups_);
      for (int128_t v : s.wide) {
        c.low.push_back(Low64(v));
        c.high.push_back(High64(v));
      }
    }
    if (!IsCount(s.op) && std::find(s.seen.begin(), s.seen.end(), uint8_t{0}) != s.seen.end()) {
      c.null.resize(groups_);
      for (size_t g = 0; g < groups_; ++g) c.null[g] = s.seen[g] == 0 ? 1 : 0;
    }
  }
  return out;
}

}  // namespace tessera::vm
