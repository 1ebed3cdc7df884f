#include "vm/rows/late_texts.h"

#include <algorithm>
#include <optional>

#include "vm/program/section_traits.h"

namespace tessera::vm {
namespace {

/// What becomes of texts: they are used in some way, handed on, or handed on to rows that are sorted by them.
enum class Fate : uint8_t { kUsed, kHandedOn, kSorted };

Fate Worse(Fate a, Fate b) {
  if (a == Fate::kUsed || b == Fate::kUsed) return Fate::kUsed;
  return a == Fate::kSorted || b == Fate::kSorted ? Fate::kSorted : Fate::kHandedOn;
}

struct IsSlot {
  uint16_t slot;
  bool operator()(const Operand& o) const { return o.kind == OperandKind::kSlot && o.index == slot; }
};

class Finder {
 public:
  Finder(const Program& program, const ProgramTraits& traits)
      : program_(program), traits_(traits), fates_(program.sections.size()) {
    for (size_t s = 0; s < fates_.size(); ++s) fates_[s].resize(program.sections[s].columns.size());
  }

  Fate OfSlot(size_t section, uint16_t slot) { return OfOperand(section, IsSlot{slot}); }

  /// The columns of the join table's rows to which the section copies the slot, if it does nothing else with it, and drops
  /// rows.
  std::vector<uint32_t> CopiesToPayload(size_t section, uint16_t slot) const {
    const Section& s = program_.sections[section];
    const bool drops = !s.predicates.empty() || !traits_.sections[section].probes.empty();
    if (s.sink != Section::Sink::kJoin || s.after.fold.kind != Section::Fold::kNone || !drops) return {};
    const std::vector<uint32_t> registers = Copies(section, IsSlot{slot}).value_or(std::vector<uint32_t>());
    const auto is_payload = [&](uint32_t r) {
      return r < s.columns.size() && !IsKey(s, static_cast<int32_t>(r)) && !IsRead(s, r);
    };
    return std::all_of(registers.begin(), registers.end(), is_payload) ? registers : std::vector<uint32_t>();
  }

  /// The registers that operands of a section are copied to, if nothing else reads them; nothing if that is not so.
  template <class Is>
  std::optional<std::vector<uint32_t>> Copies(size_t section, Is is) const {
    const std::vector<Instruction>& code = program_.sections[section].code;
    std::vector<uint32_t> registers;
    bool handed_on = true;
    for (size_t i = 0; i < code.size(); ++i) {
      ForEachOperand(code[i], [&](const Operand& o) {
        if (!is(o)) return;
        const bool copied = code[i].op == Opcode::Load && i + 1 < code.size() && code[i + 1].op == Opcode::Store;
        if (copied) registers.push_back(static_cast<uint32_t>(code[i + 1].p2));
        handed_on = handed_on && copied;
      });
    }
    return handed_on ? std::optional(registers) : std::nullopt;
  }

 private:
  static bool IsRead(const Section& s, uint32_t number) {
    bool read = false;
    for (const Instruction& in : s.code)
      ForEachOperand(in, [&](const Operand& o) { read |= o.kind == OperandKind::kRegister && o.index == number; });
    return read;
  }
  /// Whether the join table is looked up, or ordered, by the column.
  bool IsKey(const Section& s, int32_t column) const {
    return column < s.keys || program_.joins[static_cast<size_t>(s.join)].order == column;
  }

  template <class Is>
  Fate OfOperand(size_t section, Is is) {
    const std::optional<std::vector<uint32_t>> registers = Copies(section, is);
    if (!registers) return Fate::kUsed;
    Fate fate = Fate::kHandedOn;
    for (const uint32_t r : *registers) fate = Worse(fate, OfRegister(section, r));
    return fate;
  }

  Fate OfRegister(size_t section, uint32_t number) {
    const Section& s = program_.sections[section];
    if (number >= s.columns.size() || IsRead(s, number)) return Fate::kUsed;
    return OfColumn(section, static_cast<int32_t>(number));
  }

  Fate OfColumn(size_t section, int32_t column) {
    std::optional<Fate>& known = fates_[section][static_cast<size_t>(column)];
    if (!known) known = FindOfColumn(section, column);
    return *known;
  }

  Fate FindOfColumn(size_t section, int32_t column) {
    const Section& s = program_.sections[section];
    const auto read_by = [&](const Section& reader) {
      return s.sink == Section::Sink::kJoin
                 ? reader.source_kind == Section::Source::kJoin && reader.source == s.join
                 : reader.source_kind == Section::Source::kSection && reader.source == static_cast<int32_t>(section);
    };
    Fate fate = Fate::kHandedOn;
    if (s.sink == Section::Sink::kJoin) {
      if (IsKey(s, column)) return Fate::kUsed;
    } else if (s.sink != Section::Sink::kRows) {
      return Fate::kUsed;
    }
    if (s.after.fold.kind != Section::Fold::kNone && column <= s.keys) return Fate::kUsed;
    for (const SortKey& key : s.after.order) {
      if (key.column == column) fate = Fate::kSorted;
    }
    for (size_t r = section + 1; r < program_.sections.size() && fate != Fate::kUsed; ++r) {
      const Section& reader = program_.sections[r];
      if (reader.after.append_to == static_cast<int32_t>(section)) fate = Worse(fate, OfColumn(r, column));
      for (uint16_t i = 0; i < reader.slots.size() && read_by(reader); ++i) {
        if (reader.slots[i].column == column) fate = Worse(fate, OfSlot(r, i));
      }
      if (s.sink != Section::Sink::kJoin) continue;
      const auto payload = static_cast<uint16_t>(column - s.keys);
      fate = Worse(fate, OfOperand(r, [&](const Operand& o) {
                     return o.kind == OperandKind::kPayload && o.table == s.join && o.index == payload;
                   }));
    }
    return fate;
  }

  const Program& program_;
  const ProgramTraits& traits_;
  std::vector<std::vector<std::optional<Fate>>> fates_;  ///< by section and column
};

}  // namespace

Variety VarietyOf(const TableInfo& table, int column) {
  if (static_cast<size_t>(column) >= table.statistics.size()) return Variety::kFew;  // (of a column that was made)
  const uint64_t distinct = table.statistics[static_cast<size_t>(column)].distinct;
  if (distinct < LateTexts::kLeastEntries) return Variety::kFew;
  return 2 * distinct >= table.rows ? Variety::kNearlyUnique : Variety::kMany;
}

HandedOn FindHandedOn(const Program& program, const ProgramTraits& traits,
                      const std::function<Variety(int, int)>& variety) {
  HandedOn out;
  Finder finder(program, traits);
  for (size_t number = 0; number < program.sections.size(); ++number) {
    const Section& s = program.sections[number];
    std::vector<bool>& slots = out.slots.emplace_back(s.slots.size());
    std::vector<bool>& columns = out.columns.emplace_back(s.columns.size());
    std::vector<bool>& settled = out.settled.emplace_back(s.columns.size());
    std::vector<bool> stay(s.slots.size());  // late beyond the section
    if (s.sink != Section::Sink::kRows && s.sink != Section::Sink::kJoin) continue;
    for (uint16_t i = 0; i < s.slots.size(); ++i) {
      const Slot& slot = s.slots[i];
      if (s.source_kind != Section::Source::kTable || slot.type.storage() != StorageClass::kText || slot.map >= 0)
        continue;
      const Variety texts = variety(s.source, slot.column);
      if (texts == Variety::kFew) continue;
      const Fate fate = finder.OfSlot(number, i);
      const bool unique = texts == Variety::kNearlyUnique;
      slots[i] = stay[i] = fate == Fate::kHandedOn || (fate == Fate::kSorted && unique);
      if (stay[i] || !unique) continue;
      for (const uint32_t r : finder.CopiesToPayload(number, i)) slots[i] = settled[r] = true;
    }
    // A column has what is copied to its register from such slots and columns. (What windows add is no such column.)
    const auto is_late = [&](int section, size_t column) {
      const std::vector<bool>& late = out.columns[static_cast<size_t>(section)];
      return column < late.size() && late[column];
    };
    const auto builder_of = [&](int join) { return program.joins[static_cast<size_t>(join)].section; };
    const auto may_be_late = [&](const Operand& o) {
      if (o.kind == OperandKind::kPayload) {
        const int builder = builder_of(o.table);
        return is_late(builder, static_cast<size_t>(program.sections[static_cast<size_t>(builder)].keys) + o.index);
      }
      if (o.kind != OperandKind::kSlot) return false;
      const auto column = static_cast<size_t>(s.slots[o.index].column);
      if (s.source_kind == Section::Source::kTable) return static_cast<bool>(stay[o.index]);
      if (s.source_kind == Section::Source::kSection) return is_late(s.source, column);
      return s.source_kind == Section::Source::kJoin && is_late(builder_of(s.source), column);
    };
    for (const uint32_t r : finder.Copies(number, may_be_late).value_or(std::vector<uint32_t>()))
      if (r < columns.size()) columns[r] = true;
    for (size_t i = 0; s.after.append_to >= 0 && i < columns.size(); ++i) {
      if (is_late(s.after.append_to, i)) columns[i] = true;
    }
  }
  return out;
}

int64_t LateTexts::Add(const ChunkPointer& chunk) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto [at, is_new] = numbers_.try_emplace(chunk.get(), next_);
  if (is_new) {
    chunks_.emplace(next_, chunk);
    next_ += chunk->entries;
  }
  return at->second;
}

std::pair<const Chunk*, uint32_t> LateTexts::Find(int64_t number) const {
  const auto& [first, chunk] = *std::prev(chunks_.upper_bound(number));
  const auto entry = static_cast<uint64_t>(number - first);
  return {entry < chunk->entries ? chunk.get() : nullptr, static_cast<uint32_t>(entry)};
}

void LateTexts::Read(const StringPool& strings, std::span<const int64_t> values, std::string_view* out) const {
  // (Mostly all are of one chunk.)
  int64_t first = 0, end = 0;
  const Chunk* chunk = nullptr;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t value = values[i];
    if (value < kFirst || chunks_.empty()) {
      out[i] = strings.Get(value);
      continue;
    }
    if (value < first || value >= end) {
      const auto at = std::prev(chunks_.upper_bound(value));
      first = at->first;
      chunk = at->second.get();
      end = first + chunk->entries;
    }
    out[i] = value < end ? chunk->Entry(static_cast<uint32_t>(value - first)) : std::string_view();
  }
}

Status LateTexts::Resolve(StringPool* strings, ThreadPool* pool, std::span<int64_t> values) const {
  if (next_ == kFirst) return Status::Ok();
  constexpr size_t kPart = 512;  // a text takes a microsecond, if no cache has it
  const size_t parts = (values.size() + kPart - 1) / kPart;
  return ForEach(parts < 2 ? nullptr : pool, parts, [&](size_t part) {
    std::vector<size_t> places;
    std::vector<std::pair<const Chunk*, uint32_t>> entries;
    for (size_t i = part * kPart; i < std::min(values.size(), (part + 1) * kPart); ++i) {
      if (values[i] < kFirst) continue;
      places.push_back(i);
      entries.push_back(Find(values[i]));
      if (const auto [chunk, entry] = entries.back(); chunk != nullptr)
        __builtin_prefetch(chunk->entry_offsets + entry);
    }
    std::vector<std::string_view> texts;
    for (const auto& [chunk, entry] : entries) {
      texts.push_back(chunk == nullptr ? std::string_view() : chunk->Entry(entry));
      __builtin_prefetch(texts.back().data());
    }
    std::vector<int64_t> ids(texts.size());
    strings->Intern(texts, ids.data());
    for (size_t k = 0; k < places.size(); ++k) values[places[k]] = ids[k];
    return Status::Ok();
  });
}

Status LateTexts::Resolve(StringPool* strings, ThreadPool* pool, RowSet* rows) const {
  for (RowColumn& c : rows->columns) {
    if (c.type.storage() == StorageClass::kText) TESSERA_TRY(Resolve(strings, pool, c.low));
  }
  return Status::Ok();
}

}  // namespace tessera::vm
