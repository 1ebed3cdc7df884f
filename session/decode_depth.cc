#include "session/decode_depth.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/table_text.h"
#include "vm/program/section_traits.h"
#include "vm/shares/tablet_shares.h"

namespace tessera {
namespace {

/// Whether a section's probes look a slot up.
bool IsKey(const vm::SectionTraits& traits, int slot) {
  for (const vm::ProbeTrait& p : traits.probes) {
    for (int32_t k = 0; k < p.keys; ++k) {
      if (traits.SlotOfKey(p.key, p.keys, static_cast<size_t>(k)) == slot) return true;
    }
  }
  return false;
}

/// Schemes between a chunk and its codes are undone for any use, but for runs if the table is read as such; what codes mean
/// is not, unless they are asked for. `has_codes`: texts that are nearly all different have none.
std::string ReadAs(const vm::Section& section, const vm::SectionTraits& traits, int slot, bool has_codes,
                   bool as_runs) {
  const bool text = section.slots[static_cast<size_t>(slot)].type.storage() == StorageClass::kText;
  const bool condition =
      std::ranges::any_of(section.predicates, [&](const vm::Predicate& p) { return p.slot == slot; });
  std::string read = !condition ? "" : has_codes ? "codes, by conditions" : "texts, by conditions";
  const auto add = [&](const char* more) { read += (read.empty() ? "" : "; ") + std::string(more); };
  if (IsKey(traits, slot)) add("keys of a join");
  if (traits.computes_slot[static_cast<size_t>(slot)])
    add(section.slots[static_cast<size_t>(slot)].map >= 0 ? "values of its entries" : text ? "texts" : "values");
  if (read.empty()) return "nothing";
  return as_runs ? "runs: " + read : read;
}

std::string StoredAs(const TableInfo& table, int column) {
  if (table.tablets.empty()) return "no rows";
  const Result<std::string> schemes = table.tablets[0]->SchemesOf(column);
  return schemes.ok() ? *schemes : "?";  // what reads it says why
}

bool HasCodes(const TableInfo& table, int column) {
  if (table.tablets.empty()) return true;
  const Result<ChunkPointer> chunk = table.tablets[0]->Describe(column);
  return !chunk.ok() || (*chunk)->encoding != Encoding::kPlain;
}

}  // namespace

std::string DecodeDepths(const vm::Program& program, const Snapshot& snapshot) {
  std::string out;
  for (size_t s = 0; s < program.sections.size(); ++s) {
    const vm::Section& section = program.sections[s];
    if (section.source_kind != vm::Section::Source::kTable || section.slots.empty()) continue;
    const vm::SectionTraits traits = vm::TraitsOf(program, section);
    const vm::TableRef& ref = program.tables[static_cast<size_t>(section.source)];
    const TableInfo* const table = vm::TableOf(snapshot, ref);
    if (table == nullptr) continue;
    std::vector<std::vector<std::string>> rows = {{"slot", "column", "stored as", "read as"}};
    for (size_t i = 0; i < section.slots.size(); ++i) {
      const int column = section.slots[i].column;
      if (static_cast<size_t>(column) >= table->schema.columns.size()) {  // a column without a schema
        const bool of_runs = ref.runs_of >= 0;
        rows.push_back({fmt::format("c{}", i), "", of_runs ? "with the runs" : StoredAs(*table, column),
                        of_runs ? "rows of a run" : ReadAs(section, traits, static_cast<int>(i), true, false)});
        continue;
      }
      rows.push_back({fmt::format("c{}", i), table->schema.columns[static_cast<size_t>(column)].name,
                      StoredAs(*table, column),
                      ReadAs(section, traits, static_cast<int>(i), HasCodes(*table, column), ref.runs_of >= 0)});
    }
    out += fmt::format("-- columns of section {}\n{}\n", s, TableText(rows, rows[0].size()));
  }
  if (!out.empty()) out.pop_back();
  return out;
}

}  // namespace tessera
