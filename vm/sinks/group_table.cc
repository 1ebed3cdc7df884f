// Group tables: open addressing over the words of the keys.

#include "vm/sinks/group_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/interrupt.h"
#include "vm/meaning/aggregate.h"
#include "vm/meaning/lane_error.h"
#include "vm/meaning/text_meaning.h"

namespace tessera::vm {
namespace {

/// Entries up to which a table is at most a quarter full: it stays in the L1 cache and a probe rarely has a second
/// step, whose branch cannot be predicted.
constexpr size_t kRoomyTable = 4096;

/// Groups whose states are merged aggregate by aggregate: their numbers stay in the L1 cache.
constexpr size_t kMergedTogether = 1024;

/// NULL bits in a word.
constexpr int kBitsOfWord = 64;

/// Of GroupTable::table_.
uint64_t Entry(uint64_t hash, uint64_t group) { return hash >> 32 << 32 | (group + 1); }

bool IsCount(Opcode op) { return Info(op).role == Role::Count; }

}  // namespace

GroupTable::GroupTable(const Section& section, const StringPool* strings) : section_(section), strings_(strings) {
  for (int k = 0; k < section.keys; ++k) value_words_ += IsWide(section.columns[static_cast<size_t>(k)]) ? 2 : 1;
  words_ = value_words_ + (section.keys + kBitsOfWord - 1) / kBitsOfWord;
  for (const AggregateSpec& a : section.aggregates) {
    arrays_.aggregates.emplace_back();
    arrays_.aggregates.back().op = a.op;
  }
  if (section.keys > 0) return;
  groups_ = 1;  // an aggregate without GROUP BY has its one row even of no input
  MakeStates();
}

void GroupTable::MakeStates() {
  for (AggregateStates& s : arrays_.aggregates) {
    if (IsCount(s.op)) {
      s.narrow.resize(groups_);
      continue;
    }
    if (Info(s.op).shape == Shape::FoldText) s.narrow.resize(groups_);
    WithFold(s.op, [&]<class M>() { s.Resize<typename M::State>(groups_, M::Identity()); });
    s.seen.resize(groups_);
  }
}

void GroupTable::Reserve(size_t groups) {
  arrays_.keys.reserve(groups * static_cast<size_t>(words_));
  arrays_.hashes.reserve(groups);
  for (AggregateStates& s : arrays_.aggregates) {
    if (!s.narrow.empty()) s.narrow.reserve(groups);
    if (!s.wide.empty()) s.wide.reserve(groups);
    if (!s.words.empty()) s.words.reserve(groups * (s.words.size() / std::max<size_t>(groups_, 1)));
    if (!s.seen.empty()) s.seen.reserve(groups);
  }
}

void GroupTable::Clear(size_t room) {
  GroupTable empty(section_, strings_);
  std::swap(arrays_, empty.arrays_);
  groups_ = 0;
  sought_ = 0;
  ++generation_;
  MakeRoom(room);
}

void GroupTable::MakeRoom(size_t groups) {
  arrays_.keys.reserve(groups * static_cast<size_t>(words_));
  arrays_.hashes.reserve(groups);
  const size_t entries = std::bit_ceil(2 * (groups + 1));
  if (table_.size() == entries) {
    std::fill(table_.begin(), table_.end(), 0);
  } else {
    table_ = std::vector<uint64_t>(entries);
  }
}

void GroupTable::Grow() {
  table_.assign(std::max<size_t>(256, table_.size() * 2), 0);
  for (size_t g = 0; g < groups_; ++g) {
    ThrowIfInterrupted(g);
    if (g + kAhead < groups_) PrefetchEntry(arrays_.hashes[g + kAhead]);
    size_t at = arrays_.hashes[g] & (table_.size() - 1);
    while (table_[at] != 0) at = (at + 1) & (table_.size() - 1);
    table_[at] = Entry(arrays_.hashes[g], g);
  }
}

uint32_t GroupTable::FindOrMake(const int64_t* words, uint64_t hash) {
  if ((table_.size() <= kRoomyTable ? 4 : 2) * (groups_ + 1) > table_.size()) Grow();
  size_t at = hash & (table_.size() - 1);
  while (table_[at] != 0) {
    const uint32_t g = static_cast<uint32_t>(table_[at]) - 1;
    if ((table_[at] ^ hash) >> 32 == 0 &&
        SameWords(words, arrays_.keys.data() + static_cast<size_t>(g) * static_cast<size_t>(words_), words_))
      return g;
    at = (at + 1) & (table_.size() - 1);
  }
  arrays_.hashes.push_back(hash);
  arrays_.keys.insert(arrays_.keys.end(), words, words + words_);
  table_[at] = Entry(hash, groups_);
  return static_cast<uint32_t>(groups_++);
}

Status GroupTable::Merge(const GroupTable& other) {
  const uint32_t only = 0;
  if (section_.keys == 0) return MergeStates(other.arrays_.aggregates, 0, 1, &only);
  Reserve(groups_ + other.groups_);
  return Merge(other.arrays_, 0, other.groups_);
}

Status GroupTable::Merge(const GroupArrays& from, size_t begin, size_t end) {
  uint32_t groups[kMergedTogether];
  while (begin < end) {
    ThrowIfInterrupted();
    const size_t n = std::min(end - begin, kMergedTogether);
    FindOrMakeMany(from.keys.data() + begin * static_cast<size_t>(words_), from.hashes.data() + begin, n,
                   [&](size_t i, uint32_t g) { groups[i] = g; });
    MakeStates();
    TESSERA_TRY(MergeStates(from.aggregates, begin, n, groups));
    begin += n;
  }
  return Status::Ok();
}

Status GroupTable::MergeStates(const std::vector<AggregateStates>& others, size_t begin, size_t n,
                               const uint32_t* groups) {
  for (size_t a = 0; a < arrays_.aggregates.size(); ++a) {
    AggregateStates& to = arrays_.aggregates[a];
    const AggregateStates& s = others[a];
    if (IsCount(to.op)) {
      for (size_t i = 0; i < n; ++i) to.narrow[groups[i]] += s.narrow[begin + i];
      continue;
    }
    Lane lane;
    WithFold(to.op, [&]<class M>() {
      using State = typename M::State;
      for (size_t i = 0; i < n; ++i) {
        if (s.seen[begin + i] == 0) continue;
        State state = to.Get<State>(groups[i]);
        M::Merge(state, s.Get<State>(begin + i), lane);
        to.Set(groups[i], state);
      }
    });
    WithFoldText(to.op, [&]<class M>() {
      for (size_t i = 0; i < n; ++i) {
        const int64_t theirs = s.narrow[begin + i], mine = to.narrow[groups[i]];
        if (s.seen[begin + i] == 0) continue;
        if (to.seen[groups[i]] == 0 || M::Better(strings_->Get(theirs), strings_->Get(mine)))
          to.narrow[groups[i]] = theirs;
        to.seen[groups[i]] = 1;  // (a group may come twice)
      }
    });
    for (size_t i = 0; i < n; ++i) to.seen[groups[i]] |= s.seen[begin + i];
    if (lane.error != LaneError::kNone) return LaneErrorStatus(lane.error, {});
  }
  return Status::Ok();
}

Status GroupTable::Merge(const RowSet& rows) {
  // States and final values are the same but for NULL, which is a state that has seen nothing.
  std::vector<AggregateStates> states;
  const std::vector<size_t> columns = AggregateColumns(section_);
  for (size_t a = 0; a < arrays_.aggregates.size(); ++a) {
    const RowColumn* c = rows.columns.data() + columns[a];
    AggregateStates& s = states.emplace_back();
    s.op = arrays_.aggregates[a].op;
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
  const auto width = static_cast<size_t>(words_);
  std::vector<int64_t> words(kMergedTogether * width);
  uint64_t hashes[kMergedTogether];
  uint32_t groups[kMergedTogether] = {};
  for (size_t begin = 0; begin < rows.rows; begin += kMergedTogether) {
    ThrowIfInterrupted();
    const size_t n = std::min(rows.rows - begin, kMergedTogether);
    if (section_.keys > 0) {
      KeysOf(rows, begin, n, words.data(), hashes);
      FindOrMakeMany(words.data(), hashes, n, [&](size_t i, uint32_t g) { groups[i] = g; });
    }
    MakeStates();
    TESSERA_TRY(MergeStates(states, begin, n, groups));
  }
  return Status::Ok();
}

void GroupTable::KeysOf(const RowSet& rows, size_t begin, size_t n, int64_t* words, uint64_t* hashes) const {
  const auto width = static_cast<size_t>(words_);
  std::fill_n(words, n * width, 0);
  size_t word = 0;
  for (int k = 0; k < section_.keys; ++k) {
    const RowColumn& c = rows.columns[static_cast<size_t>(k)];
    const bool wide = IsWide(c.type);
    for (size_t i = 0; i < n; ++i) {
      const size_t r = begin + i;
      if (!c.null.empty() && c.null[r] != 0) {
        words[i * width + static_cast<size_t>(value_words_ + k / kBitsOfWord)] |= int64_t{1} << k % kBitsOfWord;
        continue;
      }
      words[i * width + word] = c.low[r];
      if (wide) words[i * width + word + 1] = c.high[r];
    }
    word += wide ? 2 : 1;
  }
  for (size_t i = 0; i < n; ++i) {
    hashes[i] = kHashSeed;
    for (size_t w = 0; w < width; ++w) hashes[i] = HashWord(hashes[i], words[i * width + w]);
  }
}

std::vector<uint8_t> GroupTable::AddKeys(const RowSet& rows) {
  std::vector<uint8_t> is_new(rows.rows);
  std::vector<int64_t> words(static_cast<size_t>(words_));
  for (size_t r = 0; r < rows.rows; ++r) {
    ThrowIfInterrupted(r);
    const size_t before = groups_;
    uint64_t hash = 0;
    KeysOf(rows, r, 1, words.data(), &hash);
    (void)FindOrMake(words.data(), hash);
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
      const int64_t* words = arrays_.keys.data() + g * static_cast<size_t>(words_);
      c.low.push_back(words[word]);
      if (wide) c.high.push_back(words[word + 1]);
      if ((words[value_words_ + k / kBitsOfWord] >> k % kBitsOfWord & 1) != 0) {
        c.null.resize(groups_);
        c.null[g] = 1;
      }
    }
    word += wide ? 2 : 1;
  }
  const std::vector<size_t> columns = AggregateColumns(section_);
  for (size_t a = 0; a < arrays_.aggregates.size(); ++a) {
    const AggregateStates& s = arrays_.aggregates[a];
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
