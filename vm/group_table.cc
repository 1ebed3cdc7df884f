// Group tables: open addressing over the words of the keys.

#include "vm/group_table.h"

#include <algorithm>
#include <cstring>

#include "base/interrupt.h"
#include "vm/aggregate.h"
#include "vm/lane_error.h"
#include "vm/text_meaning.h"

namespace tessera::vm {
namespace {

/// Entries up to which a table is at most a quarter full: it stays in the L1 cache and a probe rarely has a second
/// step, whose branch nobody can predict.
constexpr size_t kRoomyTable = 4096;

/// Of GroupTable::table_.
uint64_t Entry(uint64_t hash, uint64_t group) { return hash >> 32 << 32 | (group + 1); }

bool IsCount(Opcode op) { return Info(op).role == Role::Count; }

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
      WithFold(s.op, [&]<class M>() {
        s.Resize<typename M::State>(groups_);
        s.Set(g, M::Identity());
      });
      s.seen.push_back(0);
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
    if (!s.words.empty()) s.words.reserve(groups * (s.words.size() / std::max<size_t>(groups_, 1)));
    if (!s.seen.empty()) s.seen.reserve(groups);
  }
}

void GroupTable::Grow() {
  table_.assign(std::max<size_t>(256, table_.size() * 2), 0);
  for (size_t g = 0; g < groups_; ++g) {
    ThrowIfInterrupted(g);
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
    ThrowIfInterrupted(h);
    if (status.ok()) status = MergeStates(g, other.aggregates_, static_cast<uint32_t>(h));
  });
  return status;
}

Status GroupTable::MergePartition(const GroupTable& other, uint32_t part, uint32_t parts) {
  std::vector<uint32_t> of_part;
  of_part.reserve(other.groups_ / parts * 5 / 4);
  for (size_t h = 0; h < other.groups_; ++h) {
    ThrowIfInterrupted(h);
    if ((other.hashes_[h] >> 58) % parts == part) of_part.push_back(static_cast<uint32_t>(h));
  }
  Reserve(groups_ + of_part.size());
  Status status;
  size_t merged = 0;
  const auto merge = [&](size_t h, uint32_t g) {
    ThrowIfInterrupted(merged++);
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
    } else if (s.seen[from] != 0) {
      Lane lane;
      WithFold(to.op, [&]<class M>() {
        using State = typename M::State;
        State state = to.Get<State>(g);
        M::Merge(state, s.Get<State>(from), lane);
        to.Set(g, state);
      });
      WithFoldText(to.op, [&]<class M>() {
        if (to.seen[g] == 0 || M::Better(strings_->Get(s.narrow[from]), strings_->Get(to.narrow[g])))
          to.narrow[g] = s.narrow[from];
      });
      to.seen[g] = 1;
      if (lane.error != LaneError::kNone) return LaneErrorStatus(lane.error, {});
    }
  }
  return Status::Ok();
}

Status GroupTable::Merge(const RowSet& rows) {
  // States and final values are the same but for NULL, which is a state that has seen nothing.
  std::vector<AggregateStates> states;
  const std::vector<size_t> columns = AggregateColumns(section_);
  for (size_t a = 0; a < aggregates_.size(); ++a) {
    const RowColumn* c = rows.columns.data() + columns[a];
    AggregateStates& s = states.emplace_back();
    s.op = aggregates_[a].op;
    if (columns[a + 1] == columns[a] + 1) {
      if (IsWide(c->type)) {
        for (size_t r = 0; r < rows.rows; ++r) s.wide.push_back(Make128(c->high[r], c->low[r]));
      } else {
        s.narrow = c->low;
      }
    } else {
      for (size_t r = 0; r < rows.rows; ++r) {
        for (size_t k = 0; k < columns[a + 1] - columns[a]; ++k) s.words.push_back(static_cast<uint64_t>(c[k].low[r]));
      }
    }
    if (IsCount(s.op)) continue;
    s.seen.assign(rows.rows, 1);
    for (size_t r = 0; r < c->null.size(); ++r) s.seen[r] = c->null[r] == 0 ? 1 : 0;
  }
  std::vector<int64_t> words(static_cast<size_t>(words_));
  for (size_t r = 0; r < rows.rows; ++r) {
    ThrowIfInterrupted(r);
    const uint32_t g = section_.keys > 0 ? GroupOf(rows, r, &words) : 0;
    TESSERA_TRY(MergeStates(g, states, static_cast<uint32_t>(r)));
  }
  return Status::Ok();
}

uint32_t GroupTable::GroupOf(const RowSet& rows, size_t r, std::vector<int64_t>* words) {
  size_t word = 0;
  uint64_t nulls = 0, hash = kHashSeed;
  for (int k = 0; k < section_.keys; ++k) {
    const RowColumn& c = rows.columns[static_cast<size_t>(k)];
    const bool null = !c.null.empty() && c.null[r] != 0;
    nulls |= uint64_t{null} << k;
    (*words)[word++] = null ? 0 : c.low[r];
    if (IsWide(c.type)) (*words)[word++] = null ? 0 : c.high[r];
  }
  (*words)[word] = static_cast<int64_t>(nulls);
  for (int64_t w : *words) hash = HashWord(hash, w);
  return FindOrMake(words->data(), hash);
}

std::vector<uint8_t> GroupTable::AddKeys(const RowSet& rows) {
  std::vector<uint8_t> is_new(rows.rows);
  std::vector<int64_t> words(static_cast<size_t>(words_));
  for (size_t r = 0; r < rows.rows; ++r) {
    ThrowIfInterrupted(r);
    const size_t before = groups_;
    (void)GroupOf(rows, r, &words);
    is_new[r] = groups_ > before ? 1 : 0;
  }
  return is_new;
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
      ThrowIfInterrupted(g);
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
  const std::vector<size_t> columns = AggregateColumns(section_);
  for (size_t a = 0; a < aggregates_.size(); ++a) {
    const AggregateStates& s = aggregates_[a];
    const bool nulls = !IsCount(s.op) && std::find(s.seen.begin(), s.seen.end(), uint8_t{0}) != s.seen.end();
    const size_t count = columns[a + 1] - columns[a];
    for (size_t k = 0; k < count; ++k) {
      RowColumn& c = out.columns[columns[a] + k];
      ThrowIfInterrupted();
      if (!s.words.empty()) {
        c.low.reserve(groups_);
        for (size_t g = 0; g < groups_; ++g) c.low.push_back(static_cast<int64_t>(s.words[g * count + k]));
      } else if (!s.wide.empty()) {
        c.low.reserve(groups_);
        c.high.reserve(groups_);
        for (int128_t v : s.wide) {
          c.low.push_back(Low64(v));
          c.high.push_back(High64(v));
        }
      } else {
        c.low = s.narrow;
      }
      if (!nulls) continue;
      c.null.resize(groups_);
      for (size_t g = 0; g < groups_; ++g) c.null[g] = s.seen[g] == 0 ? 1 : 0;
    }
  }
  return out;
}

}  // namespace tessera::vm
