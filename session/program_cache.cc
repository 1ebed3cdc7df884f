#include "session/program_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/memory_budget.h"
#include "session/same_snapshot.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

template <class T>
uint64_t BytesOf(const std::vector<T>& v) {
  return v.size() * sizeof(T);
}

/// An estimate: what grows with the statement is counted.
uint64_t BytesOf(const vm::Program& program) {
  uint64_t bytes = sizeof(program) + BytesOf(program.constants) + BytesOf(program.tables) + BytesOf(program.joins) +
                   BytesOf(program.sections) + BytesOf(program.columns);
  for (const Value& v : program.constants) bytes += v.text.size();
  for (const vm::TableRef& t : program.tables) bytes += BytesOf(t.runs);
  for (const vm::Section& s : program.sections) {
    bytes += BytesOf(s.slots) + BytesOf(s.predicates) + BytesOf(s.registers) + BytesOf(s.code) + BytesOf(s.columns) +
             BytesOf(s.aggregates) + BytesOf(s.after.order) + BytesOf(s.after.windows) + BytesOf(s.placement.spans) +
             s.label.size();
    for (const vm::Predicate& p : s.predicates) bytes += BytesOf(p.list);
  }
  return bytes;
}

/// Whether the compiler makes the same of a text for both. What they give it of the session is noted where it is read,
/// see Dependencies. A field more is a name more here, so that none can be forgotten.
bool ChooseAlike(const PlanOptions& x, const PlanOptions& y) {
  const auto& [join, grid_pruning, zone, ranks, join_exchange, broadcast_bytes, exchange_bytes, exchange_above,
               key_spans, grid_from_matches, invisible_join, read_runs, on_device, caches, files, variables, sequences,
               activity, parameters, hold_parameters, run_query] = x;
  (void)caches;
  (void)files;  // a program that reads one is not kept
  (void)variables;
  (void)sequences;   // their values are of a moment
  (void)activity;    // so is what goes on
  (void)parameters;  // they are part of the key, or their types are
  (void)hold_parameters;
  (void)run_query;
  return join == y.join && grid_pruning == y.grid_pruning && zone == y.zone && ranks == y.ranks &&
         join_exchange == y.join_exchange && broadcast_bytes == y.broadcast_bytes &&
         exchange_bytes == y.exchange_bytes && exchange_above == y.exchange_above && key_spans == y.key_spans &&
         grid_from_matches == y.grid_from_matches && invisible_join == y.invisible_join && read_runs == y.read_runs &&
         on_device == y.on_device;
}

/// Their names: a table of the session hides another of its name.
std::vector<std::string> TemporaryTables(const Snapshot& snapshot) {
  std::vector<std::string> names;
  const std::string first = QualifiedName(kTemporarySchema, "");
  const auto before = [](const auto& table, const std::string& name) { return table->schema.name < name; };
  for (auto at = std::lower_bound(snapshot.tables.begin(), snapshot.tables.end(), first, before);
       at != snapshot.tables.end() && IsTemporaryName((*at)->schema.name); ++at)
    names.push_back((*at)->schema.name);
  return names;
}

}  // namespace

void ProgramCache::SetLimit(uint64_t bytes) {
  limit_ = bytes;
  DropDownTo(limit_, kMostPrograms);
}

std::shared_ptr<const vm::Program> ProgramCache::Find(std::string_view key, const Snapshot& snapshot,
                                                      const PlanOptions& options) {
  if (entries_.empty()) return nullptr;
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return nullptr;
  const auto entry = found->second;
  if (!ChooseAlike(entry->options, options) || !IsSameBesideTables(snapshot, entry->names) ||
      entry->temporary != TemporaryTables(snapshot) || !entry->dependencies.HoldIn(snapshot)) {
    Drop(entry);
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, entry);
  return entry->program;
}

std::shared_ptr<vm::StringPool> ProgramCache::Strings() {
  constexpr uint64_t kMostBytes = uint64_t{1} << 20, kLimitShare = 256;
  std::shared_ptr<vm::StringPool>& strings = entries_.front().strings;
  const bool fits = strings != nullptr && strings->bytes() <= std::min(kMostBytes, MemoryLimit() / kLimitShare);
  if (!fits) strings = std::make_shared<vm::StringPool>();
  if (entries_.size() > kMostWithStrings) {
    for (auto e = std::next(entries_.begin(), kMostWithStrings); e != entries_.end(); ++e) e->strings = nullptr;
  }
  return strings;
}

void ProgramCache::Keep(std::string_view key, std::shared_ptr<const vm::Program> program, Dependencies dependencies,
                        const Snapshot& snapshot, const PlanOptions& options, std::vector<HeldParameter> held) {
  if (limit_ == 0 || dependencies.moment || key.size() > limit_ / 4) return;
  const uint64_t bytes = sizeof(Entry) + key.size() + BytesOf(*program) + BytesOf(dependencies.tables) + BytesOf(held);
  if (bytes > limit_ / 4) return;
  if (const auto found = by_key_.find(key); found != by_key_.end()) Drop(found->second);
  DropDownTo(limit_ - bytes, kMostPrograms - 1);
  Snapshot names = snapshot;
  names.tables.clear();  // Dependencies::HoldIn
  names.files.clear();
  names.attached.clear();
  entries_.push_front({std::string(key), std::move(program), std::move(dependencies), std::move(names),
                       TemporaryTables(snapshot), options, std::move(held), bytes, nullptr});
  PlanOptions& kept = entries_.front().options;
  kept.caches = {};
  kept.files = nullptr;
  kept.variables = nullptr;
  kept.sequences = nullptr;
  kept.activity = nullptr;
  kept.parameters = nullptr;
  kept.run_query = {};
  bytes_ += bytes;
  by_key_.emplace(entries_.front().key, entries_.begin());
}

void ProgramCache::Drop(std::list<Entry>::iterator entry) {
  bytes_ -= entry->bytes;
  by_key_.erase(entry->key);
  entries_.erase(entry);
}

void ProgramCache::DropDownTo(uint64_t bytes, size_t programs) {
  while (!entries_.empty() && (bytes_ > bytes || entries_.size() > programs)) Drop(std::prev(entries_.end()));
}

}  // namespace tessera
