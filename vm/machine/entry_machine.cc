// The entries are rows of a slot of their own, as an intermediate result's are.

#include "vm/machine/entry_machine.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "vm/machine/tile_machine.h"

namespace tessera::vm {
namespace {

class EntryMachine : public EntryInterpreter {
 public:
  EntryMachine(const Program& program, int section, StringPool* strings);

  Status Run(const Chunk& chunk, std::span<const uint32_t> entries) override;
  const DictionaryMap& values() const override { return values_; }
  std::string_view Text(size_t i) const override { return machine_.Text(values_.values[i]); }

 private:
  StringPool& strings_;
  const std::vector<SqlType>& columns_;
  const SectionTraits traits_;
  const bool by_place_;  ///< its entries need no identifiers, which take longer than most functions of an entry
  const std::vector<std::unique_ptr<JoinIndex>> no_joins_;
  std::vector<int64_t> inputs_;
  DictionaryMap values_;
  TabletEncoding encoded_;
  TileMachine machine_;
};

EntryMachine::EntryMachine(const Program& program, int section, StringPool* strings)
    : strings_(*strings),
      columns_(program.sections[static_cast<size_t>(section)].columns),
      traits_(TraitsOf(program, program.sections[static_cast<size_t>(section)])),
      by_place_(FindTextUses(program.sections[static_cast<size_t>(section)], traits_).slots[0]),
      no_joins_(program.joins.size()),
      machine_(program, section, traits_, no_joins_, strings) {
  encoded_.slots.resize(1);
  encoded_.chunks.resize(1);
  encoded_.slots[0].decode = Decode::kRaw;
  encoded_.slots[0].width = 8;
}

Status EntryMachine::Run(const Chunk& chunk, std::span<const uint32_t> entries) {
  const size_t n = entries.size();
  values_.kept.assign(n, 0);
  if (!columns_.empty()) {
    values_.values.assign(n, 0);
    values_.null.assign(n, 1);
  }
  if (n == 0) return Status::Ok();
  inputs_.resize(n);
  if (by_place_) {
    for (size_t i = 0; i < n; ++i) inputs_[i] = EntryValue(0, entries[i]);
  } else {
    std::vector<std::string_view> texts(n);
    for (size_t i = 0; i < n; ++i) texts[i] = chunk.Entry(entries[i]);
    strings_.Intern(texts, inputs_.data());
  }
  encoded_.rows = static_cast<uint32_t>(n);
  encoded_.chunks[0] = ChunkPointer(ChunkPointer(), &chunk);
  encoded_.slots[0].codes = reinterpret_cast<const uint8_t*>(inputs_.data());
  TileSinks sinks;
  sinks.map = &values_;
  return machine_.RunTile(encoded_, 0, static_cast<int>(n), sinks);
}

}  // namespace

std::unique_ptr<EntryInterpreter> MakeEntryMachine(const Program& program, int section, StringPool* strings) {
  return std::make_unique<EntryMachine>(program, section, strings);
}

}  // namespace tessera::vm
