// Which results stay distributed over ranks, and by which columns their rows are exchanged; what a build side takes.

#include "vm/program/distribution.h"

#include <algorithm>

#include "tablet/values/types.h"
#include "vm/program/program.h"
#include "vm/program/section_traits.h"

namespace tessera::vm {
namespace {

/// Whether ranks make rows of it that need not meet at the master: all of them, in any order, or by key.
bool MakesDistributedRows(const Section& s) {
  if (s.sink == Section::Sink::kGroups) return s.keys > 0;
  if (s.sink != Section::Sink::kRows || s.after.limit >= 0 || s.after.offset > 0) return false;
  const bool together = !s.after.order.empty() || !s.after.windows.empty() || s.after.fold.kind != Section::Fold::kNone;
  return !together || !ExchangeKeys(s).empty();
}

}  // namespace

bool MakesPlainRows(const Section& s) {
  return s.sink == Section::Sink::kRows && s.after.order.empty() && s.after.windows.empty() &&
         s.after.fold.kind == Section::Fold::kNone && s.after.limit < 0 && s.after.offset == 0 &&
         s.after.append_to < 0 && s.after.repeat < 0 && s.recursion.first < 0 && !s.placement.by_key;
}

std::vector<int32_t> ExchangeKeys(const Section& s) {
  std::vector<int32_t> keys;
  if (s.sink == Section::Sink::kGroups || s.placement.by_key) {
    for (int32_t k = 0; k < s.keys; ++k) keys.push_back(k);
    return keys;
  }
  size_t leading = s.after.fold.kind != Section::Fold::kNone ? static_cast<size_t>(s.keys) : 0;
  if (!s.after.windows.empty()) leading = s.after.order.size();
  for (const WindowSpec& w : s.after.windows) leading = std::min(leading, static_cast<size_t>(w.partition_keys));
  for (size_t k = 0; k < leading; ++k) keys.push_back(s.after.order[k].column);
  return keys;
}

uint64_t BuildRowBytes(const Section& section) {
  constexpr uint64_t kIndexBytes = 16;  // its slot in the index and its link in a chain
  uint64_t bytes = kIndexBytes;
  for (const SqlType& type : section.columns) bytes += IsWide(type) ? 16 : 8;
  return bytes;
}

bool MustStayDistributed(const Program& program, const ProgramTraits& traits, int32_t section) {
  const Section& made = program.sections[static_cast<size_t>(section)];
  if (!made.placement.co_located) return false;
  if (MakesPlainRows(made)) return true;
  const auto is_co_located = [&](int32_t builder) {
    const Section& b = program.sections[static_cast<size_t>(builder)];
    return b.sink == Section::Sink::kJoin && b.placement.co_located;
  };
  return std::ranges::any_of(program.sections, [&](const Section& s) {
    if (s.source_kind != Section::Source::kSection || s.source != section) return false;
    if (s.placement.co_located && (s.sink == Section::Sink::kJoin || MakesPlainRows(s))) return true;
    return std::ranges::any_of(traits.Of(program, s).probes, [&](const ProbeTrait& p) {
      return is_co_located(program.joins[static_cast<size_t>(p.join)].section);
    });
  });
}

std::vector<bool> MayStayDistributed(const Program& program, const ProgramTraits& traits) {
  const size_t n = program.sections.size();
  std::vector<bool> recursive(n);  // a recursion's turns are the master's, and so are the rows that they read
  for (size_t i = 0; i < n; ++i) {
    const int32_t again = program.sections[i].recursion.first;
    if (again >= 0) std::fill(recursive.begin() + again, recursive.begin() + static_cast<ptrdiff_t>(i) + 1, true);
  }
  std::vector<bool> may(n);             // leave its rows distributed
  std::vector<bool> readable(n, true);  // by all that read them
  for (size_t i = n; i-- > 0;) {
    const Section& s = program.sections[i];
    readable[i] = readable[i] && !recursive[i] && i + 1 < n;
    may[i] = readable[i] && MakesDistributedRows(s);
    if (s.source_kind == Section::Source::kSection && (recursive[i] || traits.sections[i].numbers_rows))
      readable[static_cast<size_t>(s.source)] = false;
    if (s.after.append_to >= 0 && !readable[i]) readable[static_cast<size_t>(s.after.append_to)] = false;
  }
  return may;
}

bool MayBeInShares(const Program& program, const ProgramTraits& traits, int join) {
  // (Turns of a recursion would bring all pieces again.)
  if (std::ranges::any_of(program.sections, [](const Section& s) { return s.recursion.first >= 0; })) return false;
  const JoinTraits& uses = traits.join(join);
  if (uses.probers.size() + uses.scanners.size() != 1) return false;
  if (uses.probers.empty()) return !program.sections[static_cast<size_t>(uses.scanners[0])].placement.by_key;
  // The rows that probe must be on all ranks, too, and wait for every piece.
  const Section& s = program.sections[static_cast<size_t>(uses.probers[0])];
  const ProbeTrait& probe = *traits.section(uses.probers[0]).Probe(join);
  return probe.keys == 0 && probe.form == ProbeForm::kInnerLoop && !s.placement.by_key && SharedByRanks(s);
}

}  // namespace tessera::vm
