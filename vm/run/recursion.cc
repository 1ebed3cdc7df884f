#include "vm/run/recursion.h"

#include <algorithm>
#include <utility>

#include "base/exception_status.h"
#include "base/interrupt.h"
#include "base/memory_budget.h"
#include "vm/rows/row_set.h"

namespace tessera::vm {
namespace {

void KeepRows(const std::vector<uint8_t>& kept, RowSet* rows) {
  const auto keep = [&](auto* values) {
    size_t to = 0;
    for (size_t i = 0; i < values->size(); ++i) {
      if (kept[i] != 0) (*values)[to++] = (*values)[i];
    }
    values->resize(to);
  };
  for (RowColumn& c : rows->columns) {
    keep(&c.low);
    keep(&c.high);
    keep(&c.null);
  }
  rows->rows = static_cast<size_t>(std::count(kept.begin(), kept.end(), uint8_t{1}));
}

void KeepFirst(size_t count, RowSet* rows) {
  for (RowColumn& c : rows->columns) {
    c.low.resize(count);
    if (!c.high.empty()) c.high.resize(count);
    if (!c.null.empty()) c.null.resize(count);
  }
  rows->rows = count;
}

}  // namespace

Recursions::Recursions(RunState* state)
    : state_(*state), inside_(state->program.sections.size()), left_out_(state->program.sections.size()) {
  for (int i = 0; i < static_cast<int>(inside_.size()); ++i) {
    const Section& s = state_.section(i);
    if (s.recursion.first < 0) continue;
    std::fill(inside_.begin() + s.recursion.first, inside_.begin() + i + 1, true);
    if (!s.recursion.distinct) continue;
    Section& keys = keys_[i];
    keys.sink = Section::Sink::kGroups;
    keys.columns = s.columns;
    keys.keys = static_cast<int32_t>(s.columns.size());
  }
}

std::vector<bool> Recursions::Dependent(int number) const {
  const int first = state_.section(number).recursion.first;
  std::vector<bool> dependent(inside_.size());
  const auto is = [&](int section) { return section >= 0 && dependent[static_cast<size_t>(section)]; };
  const auto reads = [&](int section) {
    const Section& s = state_.section(section);
    const auto built = [&](int join) { return join >= 0 && is(state_.join(join).section); };
    return (s.source_kind == Section::Source::kSection && is(s.source)) ||
           (s.source_kind == Section::Source::kJoin && built(s.source)) || is(s.after.append_to) ||
           std::ranges::any_of(state_.traits.section(section).probes, built, &ProbeTrait::join) ||
           std::ranges::any_of(s.predicates, [&](const Predicate& p) { return built(p.join); });
  };
  dependent[static_cast<size_t>(first)] = dependent[static_cast<size_t>(number)] = true;
  bool changed = true;
  const auto mark = [&](int section) {
    changed = changed || !is(section);
    dependent[static_cast<size_t>(section)] = true;
  };
  while (changed) {
    changed = false;
    for (int i = first + 1; i <= number; ++i) {
      const Section& s = state_.section(i);
      if (reads(i)) mark(i);
      // Rows that were moved or replaced have to be made again.
      if (is(i) && s.after.append_to > first) mark(s.after.append_to);
      if (s.recursion.first <= first) continue;
      bool any = false;
      for (int k = s.recursion.first; k <= i; ++k) any = any || is(k);
      for (int k = s.recursion.first; any && k <= i; ++k) mark(k);
    }
  }
  return dependent;
}

Status Recursions::TakeRows(int number, uint64_t* rows) {
  const MemoryPurpose purpose("recursion");
  ThrowIfInterrupted();
  const Section& s = state_.section(number);
  RowSet &made = state_.result(number), &before = state_.result(s.recursion.first);
  const auto [at, is_first] = turns_.try_emplace(number);
  Turns& turns = at->second;
  if (is_first) {
    turns.all = MakeRowSet(s.columns);
    if (s.recursion.distinct) {
      turns.seen.emplace(keys_.at(number), &state_.strings);
      (void)turns.seen->AddKeys(before);
    }
    AppendRange(&turns.all, before, 0, before.rows);
  }
  if (turns.seen) KeepRows(turns.seen->AddKeys(made), &made);
  AppendRange(&turns.all, made, 0, made.rows);
  *rows = made.rows;
  const auto most = static_cast<uint64_t>(s.recursion.limit);
  if (s.recursion.limit >= 0 && turns.all.rows >= most) {
    KeepFirst(most, &turns.all);
    *rows = 0;
  }
  before = std::move(made);
  made = RowSet{};
  if (*rows == 0) made = std::move(turns.all);
  return Status::Ok();
}

Result<bool> Recursions::EndTurn(int number) {
  uint64_t rows = 0;
  ++state_.turns;
  Exchange* const exchange = state_.options.exchange;
  Status status = state_.IsMaster() ? Caught([&] { return TakeRows(number, &rows); }) : Status::Ok();
  if (exchange != nullptr) {
    status = exchange->Agree(status);
    TESSERA_TRY(status);
    TESSERA_ASSIGN(rows, exchange->Sum(rows));
  }
  TESSERA_TRY(status);
  const int first = state_.section(number).recursion.first;
  const std::vector<bool> dependent = Dependent(number);
  for (int i = first + 1; i <= number; ++i)
    left_out_[static_cast<size_t>(i)] = rows > 0 && !dependent[static_cast<size_t>(i)];
  if (rows == 0) turns_.erase(number);
  return rows > 0;
}

}  // namespace tessera::vm
