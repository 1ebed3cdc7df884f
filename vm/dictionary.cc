// A host interpreter over the entries of a chunk, part by part.

#include "vm/dictionary.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include "vm/tile_machine.h"

namespace tessera::vm {
namespace {

/// Whether a section over entries works if an entry's value is its place in the chunk. Equality of text is that of
/// identifiers: nothing may compare an entry itself, only what an opcode has made of it.
bool ReadsEntriesByPlace(const Section& s) {
  const bool compares = std::any_of(s.code.begin(), s.code.end(), [](const Instruction& in) {
    return in.op == Opcode::FilterEqT || in.op == Opcode::FilterNeT;
  });
  if (!compares) return true;
  for (size_t i = 0; i < s.code.size(); ++i) {
    bool reads_entry = false;
    ForEachOperand(s.code[i], [&](const Operand& o) { reads_entry |= o.kind == OperandKind::kSlot; });
    if (!reads_entry) continue;
    const Opcode next = s.code[i].op == Opcode::Load && i + 1 < s.code.size() ? s.code[i + 1].op : Opcode::End;
    const Shape shape = Info(next).shape;
    if (shape != Shape::TextUnary && shape != Shape::TextCut && shape != Shape::TextSubstring &&
        shape != Shape::TextNumber && shape != Shape::TextReplace && shape != Shape::TextPad &&
        shape != Shape::TextPart && shape != Shape::RegexPart && shape != Shape::RegexReplace) {
      return false;
    }
  }
  return true;
}

// A tablet of 65,536 rows is work for sixteen threads, and a part takes longer than to hand it out.
constexpr uint32_t kEntriesPerPart = 2 * kTileRows;

/// Runs a dictionary section over parts of a chunk. One thread at a time.
class EntryMachine {
 public:
  EntryMachine(const Program& program, int section, const Chunk& chunk, StringPool* strings)
      : chunk_(chunk),
        strings_(strings),
        // An identifier takes longer than most functions of an entry.
        by_place_(ReadsEntriesByPlace(program.sections[static_cast<size_t>(section)])),
        no_joins_(program.joins.size()),
        machine_(program, section, no_joins_, strings) {
    machine_.ReadEntriesOf(&chunk);
    encoded_.slots.resize(1);
    encoded_.slots[0].decode = Decode::kRaw;
    encoded_.slots[0].width = 8;
    encoded_.slots[0].codes = reinterpret_cast<const uint8_t*>(values_.data());
  }

  /// REQUIRES: at most kEntriesPerPart entries.
  Status Run(uint32_t first, uint32_t end, DictionaryMap* map) {
    if (by_place_) {
      for (uint32_t i = first; i < end; ++i) values_[i - first] = TileMachine::kFirstEntry + i;
    } else {
      InternEntries(chunk_, first, end, strings_, values_.data());
    }
    encoded_.rows = end - first;
    TileSinks sinks;
    sinks.map = map;
    sinks.map_first = first;
    for (uint32_t row = 0; row < encoded_.rows; row += kTileRows) {
      const uint32_t rows = std::min<uint32_t>(kTileRows, encoded_.rows - row);
      TESSERA_TRY(machine_.RunTile(encoded_, row, static_cast<int>(rows), sinks));
    }
    return Status::Ok();
  }

 private:
  const Chunk& chunk_;
  StringPool* const strings_;
  const bool by_place_;
  const std::vector<std::unique_ptr<JoinIndex>> no_joins_;
  std::array<int64_t, kEntriesPerPart> values_;
  TabletEncoding encoded_;
  TileMachine machine_;
};

}  // namespace

void InternEntries(const Chunk& chunk, uint32_t first, uint32_t end, StringPool* strings, int64_t* ids) {
  std::vector<std::string_view> texts;
  texts.reserve(end - first);
  for (uint32_t i = first; i < end; ++i) texts.push_back(chunk.Entry(i));
  strings->Intern(texts, ids);
}

Status ForEntries(uint32_t entries, const LoopRunner& loop, const std::function<Status(uint32_t, uint32_t)>& f) {
  const size_t parts = (size_t{entries} + kEntriesPerPart - 1) / kEntriesPerPart;
  std::vector<Status> errors(parts);
  const auto part = [&](size_t i) {
    const uint32_t first = static_cast<uint32_t>(i) * kEntriesPerPart;
    errors[i] = f(first, first + std::min(entries - first, kEntriesPerPart));
    return errors[i];
  };
  Status stopped;
  if (parts > 1 && loop) {
    stopped = loop(parts, part);
  } else {
    for (size_t i = 0; i < parts && stopped.ok(); ++i) stopped = part(i);
  }
  for (const Status& error : errors) {
    if (!error.ok()) return error;
  }
  return stopped;
}

Result<DictionaryMap> MapDictionary(const Program& program, int section, const Chunk& chunk, StringPool* strings,
                                    const LoopRunner& loop) {
  const Section& s = program.sections[static_cast<size_t>(section)];
  DictionaryMap map;
  map.kept.resize(chunk.entries);
  if (!s.columns.empty()) {
    map.values.resize(chunk.entries);
    map.null.assign(chunk.entries, 1);
  }
  const bool gives_text = !s.columns.empty() && s.columns[0].id == TypeId::kText;
  std::mutex mutex;
  std::vector<std::unique_ptr<EntryMachine>> idle;
  const auto take_machine = [&] {
    std::unique_ptr<EntryMachine> machine;
    const std::lock_guard<std::mutex> lock(mutex);
    if (!idle.empty()) {
      machine = std::move(idle.back());
      idle.pop_back();
    }
    return machine;
  };
  const Status status = ForEntries(chunk.entries, loop, [&](uint32_t first, uint32_t end) {
    std::unique_ptr<EntryMachine> machine = take_machine();
    if (machine == nullptr) machine = std::make_unique<EntryMachine>(program, section, chunk, strings);
    TESSERA_TRY(machine->Run(first, end, &map));
    for (uint32_t i = first; gives_text && i < end; ++i) {  // an entry may be the value of the section
      if (map.null[i] == 0 && map.values[i] >= TileMachine::kFirstEntry)
        map.values[i] = strings->Intern(chunk.Entry(static_cast<uint32_t>(map.values[i] - TileMachine::kFirstEntry)));
    }
    const std::lock_guard<std::mutex> lock(mutex);
    idle.push_back(std::move(machine));
    return Status::Ok();
  });
  if (!status.ok()) return status;
  return map;
}

}  // namespace tessera::vm
