#include "compiler/ranks/co_location.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/ranks/stored_columns.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/types.h"
#include "vm/program/distribution.h"
#include "vm/program/program.h"
#include "vm/shares/tablet_shares.h"

namespace tessera {
namespace {

using vm::Program;
using vm::ProgramTraits;
using vm::Section;

/// The distributed table that a section scans, or nullptr.
const TableInfo* DistributedSource(const Snapshot& snapshot, const Program& program, const Section& s) {
  const TableInfo* const table = vm::ScannedTable(snapshot, program, s);
  return table == nullptr || table->schema.distribute_by.empty() ? nullptr : table;
}

/// Whether the rows that a section makes of its own stay where they are, if they do not all go to the master.
bool LeavesRows(const Program& program, int32_t number) {
  const Section& s = program.sections[static_cast<size_t>(number)];
  if (IsAppendedTo(program, number) || s.after.append_to >= 0 || s.placement.by_key || s.recursion.first >= 0)
    return false;
  const bool alone =
      s.sink == Section::Sink::kRows && s.after.order.empty() && s.after.fold.kind == Section::Fold::kNone;
  return alone || (s.placement.co_located && s.sink != Section::Sink::kJoin);
}

/// The distributed table whose rows a section reads, or what was made of them, on the ranks of their keys; or nullptr.
/// What was made may be on the master alone.
const TableInfo* TableBehind(const Snapshot& snapshot, const Program& program, const Section& s) {
  if (s.source_kind != Section::Source::kSection) return DistributedSource(snapshot, program, s);
  if (!LeavesRows(program, s.source)) return nullptr;
  return TableBehind(snapshot, program, program.sections[static_cast<size_t>(s.source)]);
}

/// Whether rows with equal values in `columns` are in one bucket.
bool Cover(const std::vector<int>& columns, const TableSchema& schema) {
  return std::ranges::all_of(schema.distribute_by,
                             [&](int c) { return std::ranges::find(columns, c) != columns.end(); });
}

/// Whether equal values have equal hashes.
bool HashAlike(const SqlType& a, const SqlType& b) {
  const auto is_whole = [](const SqlType& t) {
    return t.storage() == StorageClass::kInt || t.storage() == StorageClass::kWide;
  };
  return a.storage() == b.storage() || (is_whole(a) && is_whole(b));
}

/// Whether rows of two tables with equal keys are in buckets of the same number.
bool Meet(const std::vector<int>& a_keys, const TableSchema& a, const std::vector<int>& b_keys, const TableSchema& b) {
  if (a.distribute_by.size() != b.distribute_by.size() || a_keys.size() != b_keys.size()) return false;
  for (size_t d = 0; d < a.distribute_by.size(); ++d) {
    const int of_a = a.distribute_by[d], of_b = b.distribute_by[d];
    bool same = false;
    for (size_t k = 0; k < a_keys.size(); ++k) same = same || (a_keys[k] == of_a && b_keys[k] == of_b);
    if (!same || !HashAlike(a.columns[static_cast<size_t>(of_a)].type, b.columns[static_cast<size_t>(of_b)].type))
      return false;
  }
  return true;
}

/// Whether a section makes all rows or groups with equal keys on one rank.
bool KeepsTogether(const Snapshot& snapshot, const Program& program, const ProgramTraits& traits, const Section& s) {
  if (vm::ExchangeKeys(s).empty()) return false;
  const TableInfo* const table = TableBehind(snapshot, program, s);
  return table != nullptr && Cover(StoredColumns(program, traits, s).OfExchangeKeys(), table->schema);
}

/// The distributed table whose rows a section reads: it scans the table, or plain rows or groups that other sections make
/// of it. These have to stay on their ranks then: they are added to *staying.
const TableInfo* DistributedRows(const Snapshot& snapshot, const Program& program, const ProgramTraits& traits,
                                 const Section& s, std::vector<int32_t>* staying) {
  if (s.source_kind != Section::Source::kSection) return DistributedSource(snapshot, program, s);
  const Section& source = program.sections[static_cast<size_t>(s.source)];
  if (IsAppendedTo(program, s.source) || !vm::MayStayDistributed(program, traits)[static_cast<size_t>(s.source)])
    return nullptr;
  const bool groups = source.sink == Section::Sink::kGroups && KeepsTogether(snapshot, program, traits, source);
  if (!groups && !vm::MakesPlainRows(source)) return nullptr;
  staying->push_back(s.source);
  return DistributedRows(snapshot, program, traits, source, staying);
}

/// Whether all that probe the join table do so with rows that are on the rank of the matching rows. `staying`: the
/// sections whose rows have to stay on their ranks for that.
bool IsCoLocated(const Snapshot& snapshot, const Program& program, const ProgramTraits& traits, int join,
                 std::vector<int32_t>* staying) {
  const vm::JoinSpec& spec = program.joins[static_cast<size_t>(join)];
  const Section& builder = program.sections[static_cast<size_t>(spec.section)];
  const TableInfo* const built = DistributedRows(snapshot, program, traits, builder, staying);
  if (built == nullptr || builder.keys == 0 || !vm::Info(spec.strategy).exchanges) return false;
  const std::vector<int> built_keys = StoredColumns(program, traits, builder).OfRegisters(builder.keys);
  const std::optional<std::vector<JoinProbe>> probes = ProbesOf(program, traits, join);
  return probes && std::ranges::all_of(*probes, [&](const JoinProbe& p) {
           const Section& s = program.sections[p.section];
           const TableInfo* const probing = DistributedRows(snapshot, program, traits, s, staying);
           return probing != nullptr && Meet(p.columns, probing->schema, built_keys, built->schema);
         });
}

}  // namespace

void CoLocate(const Snapshot& snapshot, Code* code) {
  Program& program = *code->program;
  const ProgramTraits traits = vm::TraitsOf(program);
  for (size_t j = 0; j < program.joins.size(); ++j) {
    std::vector<int32_t> staying;
    if (!IsCoLocated(snapshot, program, traits, static_cast<int>(j), &staying)) continue;
    program.sections[static_cast<size_t>(program.joins[j].section)].placement.co_located = true;
    for (const int32_t s : staying) program.sections[static_cast<size_t>(s)].placement.co_located = true;
  }
  for (Section& s : program.sections) {  // (those before the ones that read their rows)
    if (s.sink != Section::Sink::kJoin && KeepsTogether(snapshot, program, traits, s)) s.placement.co_located = true;
  }
}

}  // namespace tessera
