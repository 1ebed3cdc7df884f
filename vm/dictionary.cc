// A host interpreter over the entries of a chunk, part by part.

#include "vm/dictionary.h"

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "vm/text_meaning.h"
#include "vm/tile_machine.h"

namespace tessera::vm {
namespace {

// A tablet of 65,536 rows is work for sixteen threads, and a part takes longer than to hand it out.
constexpr uint32_t kEntriesPerPart = 2 * kTileRows;

/// A section that gives a part of each entry: substring(x, from, length), both constants.
struct ConstantPart {
  int64_t from = 1, length = 0;
  bool bounded = false;
  std::string_view Of(std::string_view text) const { return Substring(text, from, bounded, length); }
};

std::optional<ConstantPart> PartOf(const Program& program, const Section& s) {
  static constexpr Opcode kCode[] = {Opcode::Load, Opcode::SubstringT, Opcode::Store, Opcode::Emit, Opcode::End};
  if (!std::ranges::equal(s.code, kCode, {}, &Instruction::op)) return std::nullopt;
  const Operand loaded = Operand::Unpack(s.code[0].p2), stored = Operand::Register(s.code[2].p2);
  if (loaded.kind != OperandKind::kSlot || s.columns.size() != 1 || stored.index != 0) return std::nullopt;
  const auto number = [&](int32_t packed, int64_t* value) {
    const Operand o = Operand::Unpack(packed);
    if (o.kind != OperandKind::kConstant || program.constants[o.index].null) return false;
    *value = program.constants[o.index].i64;
    return true;
  };
  ConstantPart part;
  part.bounded = s.code[1].p3 != -1;
  if (!number(s.code[1].p2, &part.from)) return std::nullopt;
  if (part.bounded && (!number(s.code[1].p3, &part.length) || part.length < 0)) return std::nullopt;
  return part;
}

/// Identifiers of texts of which the same few come again and again.
class FewTexts {
 public:
  explicit FewTexts(StringPool* strings) : strings_(*strings) {}
  int64_t Of(std::string_view text) {
    if (text.size() > sizeof(uint64_t)) return strings_.Intern(text);
    uint64_t bytes = 0;
    for (const char c : text) bytes = bytes << 8 | static_cast<uint8_t>(c);
    Known& known = known_[(bytes * 0x9E3779B97F4A7C15u + text.size()) >> 54];
    if (known.id < 0 || known.bytes != bytes || known.size != text.size())
      known = {bytes, text.size(), strings_.Intern(text)};
    return known.id;
  }

 private:
  struct Known {
    uint64_t bytes = 0;
    size_t size = 0;
    int64_t id = -1;
  };
  StringPool& strings_;
  std::array<Known, 1024> known_;
};

}  // namespace

EntryMachine::EntryMachine(const Program& program, int section, StringPool* strings)
    : strings_(*strings),
      columns_(program.sections[static_cast<size_t>(section)].columns),
      by_place_(FindTextUses(program.sections[static_cast<size_t>(section)]).slots[0]),
      no_joins_(program.joins.size()),
      encoded_(std::make_unique<TabletEncoding>()),
      machine_(std::make_unique<TileMachine>(program, section, no_joins_, strings)) {
  encoded_->slots.resize(1);
  encoded_->chunks.resize(1);
  encoded_->slots[0].decode = Decode::kRaw;
  encoded_->slots[0].width = 8;
}
EntryMachine::~EntryMachine() = default;

Status EntryMachine::Run(const Chunk& chunk, std::span<const uint32_t> entries) {
  const size_t n = entries.size();
  values_.kept.assign(n, 0);
  if (!columns_.empty()) {
    values_.values.resize(n);
    values_.null.assign(n, 1);
  }
  if (n == 0) return Status::Ok();
  inputs_.resize(n);
  if (by_place_) {
    for (size_t i = 0; i < n; ++i) inputs_[i] = TileMachine::EntryValue(0, entries[i]);
  } else {
    std::vector<std::string_view> texts(n);
    for (size_t i = 0; i < n; ++i) texts[i] = chunk.Entry(entries[i]);
    strings_.Intern(texts, inputs_.data());
  }
  encoded_->rows = static_cast<uint32_t>(n);
  encoded_->chunks[0] = ChunkPointer(ChunkPointer(), &chunk);
  encoded_->slots[0].codes = reinterpret_cast<const uint8_t*>(inputs_.data());
  TileSinks sinks;
  sinks.map = &values_;
  return machine_->RunTile(*encoded_, 0, static_cast<int>(n), sinks);
}

std::string_view EntryMachine::Text(size_t i) const { return machine_->Text(values_.values[i]); }

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
  if (const std::optional<ConstantPart> part = PartOf(program, s)) {
    const Status status = ForEntries(chunk.entries, loop, [&](uint32_t first, uint32_t end) {
      FewTexts texts(strings);
      for (uint32_t i = first; i < end; ++i) map.values[i] = texts.Of(part->Of(chunk.Entry(i)));
      std::fill(map.kept.begin() + first, map.kept.begin() + end, uint8_t{1});
      std::fill(map.null.begin() + first, map.null.begin() + end, uint8_t{0});
      return Status::Ok();
    });
    if (!status.ok()) return status;
    return map;
  }
  const bool gives_text = !s.columns.empty() && s.columns[0].storage() == StorageClass::kText;
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
    if (machine == nullptr) machine = std::make_unique<EntryMachine>(program, section, strings);
    std::vector<uint32_t> entries;
    std::vector<std::string_view> texts;
    for (uint32_t at = first; at < end; at += kTileRows) {
      entries.resize(std::min<uint32_t>(kTileRows, end - at));
      std::iota(entries.begin(), entries.end(), at);
      TESSERA_TRY(machine->Run(chunk, entries));
      const DictionaryMap& made = machine->values();
      std::copy(made.kept.begin(), made.kept.end(), map.kept.begin() + at);
      if (s.columns.empty()) continue;
      std::copy(made.null.begin(), made.null.end(), map.null.begin() + at);
      if (!gives_text) {
        std::copy(made.values.begin(), made.values.end(), map.values.begin() + at);
        continue;
      }
      texts.resize(entries.size());
      for (size_t i = 0; i < texts.size(); ++i) texts[i] = made.null[i] != 0 ? std::string_view() : machine->Text(i);
      strings->Intern(texts, map.values.data() + at);
    }
    const std::lock_guard<std::mutex> lock(mutex);
    idle.push_back(std::move(machine));
    return Status::Ok();
  });
  if (!status.ok()) return status;
  return map;
}

}  // namespace tessera::vm
