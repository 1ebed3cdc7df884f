// Sections that build join tables, and the part of a pipeline that probes them.
#include <algorithm>

#include "compiler/generate/block_generator.h"
#include "compiler/plan/join_cost.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/selectivity.h"

namespace tessera {

using vm::Opcode;
using vm::Operand;
using vm::Section;

void BlockGenerator::FindNeededColumns() {
  ColumnSet needed;
  ForEachJoinedRoot(plan_, [&](const Expr& e, bool) { NoteColumns(e, &needed); });
  NumberPayloads(plan_.joins, needed);
  NumberStored(plan_.driver, plan_.joins, plan_.stored, needed);
  driver_.relation = plan_.driver;
  if (plan_.build_driver) payload_[&driver_] = NumberPayload(driver_, needed);
}

void BlockGenerator::NumberPayloads(const std::vector<JoinStep>& joins, const ColumnSet& needed) {
  for (const JoinStep& j : joins) {
    const PayloadColumns& payload = payload_[&j] = NumberPayload(j, needed);
    if (j.joins.empty()) continue;
    ColumnSet inside;
    for (const auto& [column, number] : payload) inside.insert(column);
    for (const Expr* e : j.build_keys) NoteColumns(*e, &inside);
    ForEachJoinRoot(j.joins, [&](const Expr& e, bool) { NoteColumns(e, &inside); });
    NumberPayloads(j.joins, inside);
    NumberStored(j.relation, j.joins, j.stored, inside);
  }
}

void BlockGenerator::NumberStored(int driver, Steps joins, size_t stored, ColumnSet needed) {
  if (stored == 0) return;
  for (const JoinStep& j : joins.subspan(stored)) {
    for (const JoinStep& semi : j.joins) {
      if (!semi.of_stored || semi.relation != driver) continue;
      for (const Expr* key : semi.build_keys) NoteColumns(*key, &needed);
    }
  }
  std::set<int> relations = {driver};
  for (const JoinStep& j : joins.first(stored)) {
    if (!OnlyFilters(j.kind)) ForEachRelation(j, [&](int r) { relations.insert(r); });
  }
  PayloadColumns& columns = stored_[driver].columns;
  for (const auto& column : needed) {
    if (relations.contains(column.first)) columns.emplace(column, static_cast<int>(columns.size()));
  }
}

void BlockGenerator::NoteColumns(const Expr& e, ColumnSet* needed) const {
  if (e.kind == Expr::Kind::kColumn) needed->emplace(e.relation, e.column);
  for (size_t r = 0; r < plan_.computed.size() && e.kind == Expr::Kind::kFunction; ++r) {
    const int number = FindSame(plan_.computed[r], e);
    if (number < 0) continue;
    needed->emplace(static_cast<int>(r), kFirstComputed + number);
    return;
  }
  for (const ExprPtr& a : e.args) NoteColumns(*a, needed);
}

PayloadColumns BlockGenerator::NumberPayload(const JoinStep& j, const ColumnSet& needed) const {
  PayloadColumns payload;
  ForEachRelation(j, [&](int relation) {
    for (const auto& column : needed) {
      if (column.first == relation) payload[column] = 0;
    }
  });
  payload.erase({j.relation, kMarkColumn});  // it is made where the table is probed
  int n = 0;
  for (size_t c = 0; c < ComputedOf(j.relation).size(); ++c)
    payload[{j.relation, kFirstComputed + static_cast<int>(c)}] = n++;
  for (auto& [column, number] : payload) {  // in the order of columns, not of use
    if (column.first != j.relation || column.second < kFirstComputed) number = n++;
  }
  return payload;
}

bool BlockGenerator::MakesSameTable(const JoinStep& a, const JoinStep& b) const {
  const auto same_list = [](const std::vector<const Expr*>& x, const std::vector<const Expr*>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(),
                      [](const Expr* e, const Expr* f) { return e->SameAs(*f); });
  };
  const auto same_join = [&](const JoinStep& x, const JoinStep& y) {
    return x.kind == y.kind && same_list(x.probe_keys, y.probe_keys) && same_list(x.match, y.match) &&
           same_list(x.residuals, y.residuals) && MakesSameTable(x, y);
  };
  return a.relation == b.relation && a.unique == b.unique && a.strategy == b.strategy && a.stored == b.stored &&
         a.of_stored == b.of_stored && a.build_order == b.build_order && same_list(a.build_keys, b.build_keys) &&
         payload_.at(&a) == payload_.at(&b) &&
         std::equal(a.joins.begin(), a.joins.end(), b.joins.begin(), b.joins.end(), same_join);
}

Status BlockGenerator::BuildSide(const JoinStep& j) {
  for (const auto& [built, join] : join_of_) {  // a side may be there once for its rows and once for its keys
    if (!MakesSameTable(*built, j)) continue;
    join_of_[&j] = join;
    assembly_.of_plan.of_side[&j] = program_->joins[static_cast<size_t>(join)].section;
    return Status::Ok();
  }
  if (!j.of_stored) TESSERA_TRY(Sides(j.relation, j.joins, j.stored));
  return FillTable(j);
}

Status BlockGenerator::Sides(int driver, Steps joins, size_t stored) {
  for (size_t i = 0; i < joins.size(); ++i) {
    if (i == stored && stored > 0) TESSERA_TRY(StoreRows(driver, joins.first(stored)));
    TESSERA_TRY(BuildSide(joins[i]));
  }
  return Status::Ok();
}

Status BlockGenerator::StoreRows(int driver, Steps joins) {
  PipelineScope scope(q_, driver, &plan_.computed);
  SectionBuilder b(program_, &constants_, &scope);
  SetSource(driver, &b.section);
  StoredRows& stored = stored_.at(driver);
  b.section.registers.resize(stored.columns.size());
  for (const auto& [column, number] : stored.columns) b.section.registers[static_cast<size_t>(number)] = TypeOf(column);
  b.section.columns = b.section.registers;
  const DriverFilters filters = FiltersOf(driver, joins);
  AnnouncePipeline(filters, joins, &b);
  KeepLive(driver, &b);
  for (const Expr* f : filters.first) TESSERA_TRY(b.Keep(*f));
  TESSERA_TRY(Joins(joins, filters.late, &b, &scope));
  for (const auto& [column, number] : stored.columns) TESSERA_TRY(b.ValueIn(*ValueOf(column), number));
  b.Emit(Opcode::Emit);
  CloseLoops(&b);
  TESSERA_TRY(Finish(&b, joins.back().rows));
  stored.section = static_cast<int>(program_->sections.size()) - 1;
  assembly_.of_plan.of_stored[{&plan_, driver}] = stored.section;
  return Status::Ok();
}

void BlockGenerator::ScanStored(int driver, SectionBuilder* b, PipelineScope* scope) {
  const StoredRows& stored = stored_.at(driver);
  b->section.source_kind = Section::Source::kSection;
  b->section.source = stored.section;
  b->section.label = "stored rows of " + ScanLabel(driver).substr(ScanLabel(driver).find(' ') + 1);
  scope->ScanStored(&stored.columns);
}

Status BlockGenerator::FillTable(const JoinStep& j) {
  PipelineScope scope(q_, j.relation, &plan_.computed);
  SectionBuilder b(program_, &constants_, &scope);
  const bool goes_on = j.of_stored || j.stored > 0;  // with stored rows
  if (goes_on) {
    ScanStored(j.relation, &b, &scope);
  } else {
    SetSource(j.relation, &b.section);
  }
  const Steps joins = j.of_stored ? Steps() : Steps(j.joins).subspan(j.stored);
  b.section.sink = Section::Sink::kJoin;
  b.section.keys = static_cast<int32_t>(j.build_keys.size());
  // Registers r0 ..: keys, then payload.
  const PayloadColumns& payload = payload_[&j];
  for (const Expr* k : j.build_keys) b.section.registers.push_back(k->type);
  b.section.registers.resize(j.build_keys.size() + payload.size());
  for (const auto& [column, number] : payload)
    b.section.registers[j.build_keys.size() + static_cast<size_t>(number)] = TypeOf(column);
  b.section.columns = b.section.registers;
  const DriverFilters filters = goes_on ? DriverFilters() : FiltersOf(j.relation, joins);
  AnnouncePipeline(filters, joins, &b);
  for (const Expr* k : j.build_keys) b.WillEvaluate(*k);
  if (!goes_on) KeepLive(j.relation, &b);
  for (const Expr* f : filters.first) TESSERA_TRY(b.Keep(*f));
  TESSERA_TRY(Joins(joins, filters.late, &b, &scope));
  for (size_t k = 0; k < j.build_keys.size(); ++k) {
    TESSERA_TRY(b.Key(*j.build_keys[k]));
    b.Store(static_cast<int>(k));
  }
  for (const auto& [column, number] : payload) {
    TESSERA_TRY(b.Value(*ValueOf(column)));
    b.Store(b.section.keys + number);
  }
  b.Emit(Opcode::Build);
  CloseLoops(&b);
  const int join = static_cast<int>(program_->joins.size());
  const int32_t keys = b.section.keys;
  b.section.join = join;
  TESSERA_TRY(Finish(&b, j.side_rows));
  int32_t order = -1;
  if (j.build_order != nullptr) {
    const Expr& e = *j.build_order;
    const int column = e.kind == Expr::Kind::kColumn ? e.column : kFirstComputed + FindSame(ComputedOf(j.relation), e);
    order = keys + payload.at({j.relation, column});
  }
  program_->joins.push_back(
      {j.unique, static_cast<int32_t>(program_->sections.size()) - 1, j.strategy, order, j.selective});
  join_of_[&j] = join;
  const int section = static_cast<int>(program_->sections.size()) - 1;
  assembly_.of_plan.of_side[&j] = section;
  if (&j == &driver_) assembly_.of_plan.of_stored[{&plan_, j.relation}] = section;
  return Status::Ok();
}

SqlType BlockGenerator::TypeOf(const std::pair<int, int>& column) const {
  if (column.second == kMarkColumn) return SqlType::Of(TypeId::kBoolean);
  if (column.second >= kFirstComputed)
    return ComputedOf(column.first)[static_cast<size_t>(column.second - kFirstComputed)]->type;
  return q_.relations[static_cast<size_t>(column.first)].column_types[static_cast<size_t>(column.second)];
}

ExprPtr BlockGenerator::ValueOf(const std::pair<int, int>& column) const {
  if (column.second >= kFirstComputed)
    return ComputedOf(column.first)[static_cast<size_t>(column.second - kFirstComputed)]->Clone();
  auto leaf = std::make_unique<Expr>();
  leaf->kind = Expr::Kind::kColumn;
  leaf->relation = column.first;
  leaf->column = column.second;
  leaf->type = TypeOf(column);
  return leaf;
}

/// (What `match` reads is left out: it is mostly gone when the loop that looks for a match has ended.)
void BlockGenerator::AnnounceJoined(SectionBuilder* b) const {
  for (const Expr* c : plan_.constants) b->WillKeep(*c);
  const bool scanned = plan_.driver >= 0 && !plan_.build_driver && plan_.stored == 0;
  AnnouncePipeline(scanned ? FiltersOf(plan_.driver, plan_.joins) : DriverFilters(),
                   Steps(plan_.joins).subspan(plan_.stored), b);
  for (const ExprPtr& e : q_.group_by) b->WillEvaluate(*e);
  std::vector<const Expr*> arguments;  // each once, as they are fed
  for (const Aggregate& a : q_.aggregates) {
    if (a.argument != nullptr && FindSame(arguments, *a.argument) < 0) arguments.push_back(a.argument.get());
  }
  for (const size_t i : FeedingOrder(arguments)) b->WillEvaluate(*arguments[i]);
  if (q_.grouped) return;
  for (size_t i = 0; i < EmittedOutputs(q_); ++i) b->WillEvaluate(*q_.outputs[i].expr);
}

void BlockGenerator::AnnouncePipeline(const DriverFilters& filters, Steps joins, SectionBuilder* b) {
  for (const Expr* f : filters.first) b->WillKeep(*f);
  for (size_t i = 0; i < joins.size(); ++i) {
    for (const Expr* e : joins[i].probe_keys) b->WillEvaluate(*e);
    for (const Expr* e : joins[i].residuals) b->WillKeep(*e);
    if (i > 0) continue;
    for (const Expr* f : filters.late) b->WillKeep(*f);
  }
}

/// (A condition on one column is tested on its codes, or on its dictionary's entries. One on several decodes each of them,
/// which costs about as much as to look a key up in a small table.)
BlockGenerator::DriverFilters BlockGenerator::FiltersOf(int driver, Steps joins) const {
  DriverFilters filters;
  filters.first = plan_.filters[static_cast<size_t>(driver)];
  if (joins.empty()) return filters;
  const JoinStep& j = joins[0];
  const bool semi = j.kind == JoinKind::kSemi && j.match.empty();
  const bool by_column = j.probe_keys.size() == 1 && j.probe_keys[0]->kind == Expr::Kind::kColumn;
  if (!by_column || !(semi || (j.kind == JoinKind::kInner && j.unique))) return filters;
  const double look = CostOfTable(j.side_rows).probe * (semi ? kBitsCost : 1);
  const double found = j.rows / std::max(plan_.rows[static_cast<size_t>(driver)], 1.0);
  const auto is_first = [&](const Expr* f) {
    ColumnSet columns;
    ForEachColumn(*f, [&](const Expr& c) { columns.emplace(c.relation, c.column); });
    const auto test = static_cast<double>(columns.size());
    return columns.size() < 2 || test + Selectivity(q_, *f) * look <= look + found * test;
  };
  const auto begin = std::stable_partition(filters.first.begin(), filters.first.end(), is_first);
  filters.late.assign(begin, filters.first.end());
  filters.first.erase(begin, filters.first.end());
  return filters;
}

Status BlockGenerator::Front(SectionBuilder* b, PipelineScope* scope) {
  ScanDriver(b, scope);
  for (const Expr* c : plan_.constants) TESSERA_TRY(b->Keep(*c));
  // false: another section scans and stores it
  const bool scanned = plan_.driver >= 0 && !plan_.build_driver && plan_.stored == 0;
  const DriverFilters filters = scanned ? FiltersOf(plan_.driver, plan_.joins) : DriverFilters();
  for (const Expr* f : filters.first) TESSERA_TRY(b->Keep(*f));
  if (scanned && !ComputedOf(plan_.driver).empty()) {
    if (!b->section.code.empty()) skips_.push_back(b->Emit(Opcode::SkipIfNone));
    TESSERA_TRY(ComputeOfDriver(b, scope));
  }
  return Joins(Steps(plan_.joins).subspan(plan_.stored), filters.late, b, scope);
}

Status BlockGenerator::Joins(Steps joins, const std::vector<const Expr*>& late, SectionBuilder* b,
                             PipelineScope* scope) {
  FilterByKeyRanges(joins, b, scope);
  bool narrowed = !b->section.code.empty();
  for (const JoinStep& j : joins) {
    TESSERA_TRY(Join(j, narrowed, b, scope));
    narrowed = true;
    if (&j != &joins[0]) continue;
    for (const Expr* f : late) TESSERA_TRY(b->Keep(*f));
  }
  if (narrowed) skips_.push_back(b->Emit(Opcode::SkipIfNone));
  return Status::Ok();
}

void BlockGenerator::ScanDriver(SectionBuilder* b, PipelineScope* scope) {
  Section& s = b->section;
  if (plan_.driver < 0) {
    s.source_kind = Section::Source::kOneRow;
    s.label = "one row";
  } else if (plan_.build_driver) {
    const Relation& r = q_.relations[static_cast<size_t>(plan_.driver)];
    s.source_kind = Section::Source::kJoin;
    s.source = join_of_.at(&driver_);
    s.label = "rows of " + (r.alias.empty() ? "a derived table" : r.alias);
    scope->ScanPayload(&payload_[&driver_]);
  } else if (plan_.stored > 0) {
    ScanStored(plan_.driver, b, scope);
  } else {
    SetSource(plan_.driver, &s);
    KeepLive(plan_.driver, b);
  }
}

/// The invisible join: the keys of a filtered build side bound the foreign key. So whole tablets, and most rows of the
/// others, fail a range test on the encoded column and are never probed.
void BlockGenerator::FilterByKeyRanges(Steps joins, SectionBuilder* b, PipelineScope* scope) {
  if (!assembly_.key_ranges) return;
  Section& s = b->section;
  for (const JoinStep& j : joins) {
    if (!j.filtered || j.probe_keys.empty()) continue;  // (of several keys the range of the first is known)
    if (j.kind != JoinKind::kInner && j.kind != JoinKind::kSemi) continue;
    const Expr& key = *j.probe_keys[0];
    if (key.kind != Expr::Kind::kColumn || key.type.storage() != StorageClass::kInt) continue;
    const int slot = scope->TableSlot(key, b);
    if (slot < 0) continue;
    vm::Predicate p;
    p.kind = vm::Predicate::Kind::kKeyRange;
    p.slot = slot;
    p.join = join_of_[&j];
    s.predicates.push_back(p);
    b->Emit(Opcode::Filter, static_cast<int>(s.predicates.size()) - 1);
  }
}

/// Computed before the loop, in registers of their own, because every turn reads them.
Status BlockGenerator::ComputeOfDriver(SectionBuilder* b, PipelineScope* scope) {
  Section& s = b->section;
  const std::vector<const Expr*>& computed = ComputedOf(plan_.driver);
  const int first = static_cast<int>(s.registers.size());
  for (const Expr* e : computed) s.registers.push_back(e->type);
  for (const Expr* e : computed) {
    TESSERA_TRY(b->Value(*e));
    b->Store(first + FindSame(computed, *e));
  }
  scope->HoldComputed(first);
  return Status::Ok();
}

Status BlockGenerator::Join(const JoinStep& j, bool narrowed, SectionBuilder* b, PipelineScope* scope) {
  const int join = join_of_[&j];
  int32_t operand = 0;
  int scratch = -1;
  if (j.probe_keys.size() == 1) {
    const Expr& key = *j.probe_keys[0];
    Operand o;
    // (A GPU finds keys of 128 bits in registers.)
    if (key.type.IsFloat() || IsWide(key.type) || key.kind != Expr::Kind::kColumn || !scope->Find(key, b, &o)) {
      TESSERA_TRY(b->Key(key));
      scratch = b->NewRegister(key.type);
      b->Store(scratch);
      o = Operand::Register(scratch);
    }
    operand = o.Pack();
  } else if (j.probe_keys.size() > 1) {
    TESSERA_TRY(KeysInRegisters(j.probe_keys, b, &operand));
  }
  if (narrowed) skips_.push_back(b->Emit(Opcode::SkipIfNone));
  switch (j.kind) {
    case JoinKind::kInner:
      b->Emit(Opcode::Probe, join, operand, static_cast<int32_t>(j.probe_keys.size()));
      AddJoin(j, scope);
      if (!j.unique) OpenLoop(b, join, Opcode::Next);
      break;
    case JoinKind::kLeft:
      TESSERA_TRY(LeftJoin(j, operand, b, scope));
      break;
    case JoinKind::kSemi:
    case JoinKind::kAnti:
    case JoinKind::kMark:
      TESSERA_TRY(MatchJoin(j, operand, b, scope));
      break;
  }
  if (scratch >= 0) b->FreeRegister(scratch);
  for (const Expr* e : j.residuals) TESSERA_TRY(b->Keep(*e));
  return Status::Ok();
}

void BlockGenerator::AddJoin(const JoinStep& j, PipelineScope* scope) {
  ForEachRelation(j, [&](int relation) { scope->AddJoin(relation, join_of_[&j], &payload_[&j]); });
}

void BlockGenerator::OpenLoop(SectionBuilder* b, int join, Opcode next) {
  const int mask = b->NewMask();
  b->Emit(Opcode::MaskSave, mask);
  loops_.push_back({next, join, b->next(), mask, skips_.size()});
}

/// Rows without a match go on once, with NULLs. If there are conditions besides the keys, it is known only after a
/// row's last candidate that none matches. So the loop has one more turn for such a row, in which it points at no row.
Status BlockGenerator::LeftJoin(const JoinStep& j, int32_t operand, SectionBuilder* b, PipelineScope* scope) {
  const int join = join_of_[&j];
  const bool single = q_.relations[static_cast<size_t>(j.relation)].single && !j.unique;
  const auto keys = static_cast<int32_t>(j.probe_keys.size());
  AddJoin(j, scope);
  if (j.match.empty() && !single) {
    b->Emit(Opcode::ProbeOuter, join, operand, keys);
    if (!j.unique) OpenLoop(b, join, Opcode::Next);
    return Status::Ok();
  }
  const int found = b->NewMask();  // rows that have had a match
  b->Emit(Opcode::MaskClear, found);
  b->Emit(Opcode::ProbeOuter, join, operand, keys);
  OpenLoop(b, join, Opcode::NextOuter);
  const int turn = b->NewMask(), candidates = b->NewMask(), passed = b->NewMask();
  b->Emit(Opcode::MaskSave, turn);
  b->Emit(Opcode::FilterMatched, join);
  b->Emit(Opcode::MaskSave, candidates);
  for (const Expr* e : j.match) TESSERA_TRY(b->Keep(*e));
  b->Emit(Opcode::MaskSave, passed);
  if (single) {
    const int first = b->NewMask();
    b->Emit(Opcode::MaskAndNot, found);
    b->Emit(Opcode::MaskSave, first);
    b->Emit(Opcode::MaskLoad, passed);
    b->Emit(Opcode::MaskAndNot, first);
    b->Emit(Opcode::RefuseMatch);
    b->Emit(Opcode::MaskLoad, passed);
    b->FreeMask(first);
  }
  b->Emit(Opcode::MaskOr, found);
  b->Emit(Opcode::MaskLoad, turn);
  b->Emit(Opcode::MaskAndNot, candidates);
  b->Emit(Opcode::MaskAndNot, found);
  b->Emit(Opcode::MaskOr, passed);
  b->Emit(Opcode::MaskLoad, passed);
  for (int m : {turn, candidates, passed}) b->FreeMask(m);
  return Status::Ok();
}

/// Semi, anti and mark join: only whether there is a match counts. If there are conditions besides the keys, a loop
/// looks for the first match of each row.
Status BlockGenerator::MatchJoin(const JoinStep& j, int32_t operand, SectionBuilder* b, PipelineScope* scope) {
  const int join = join_of_[&j];
  const int entry = b->NewMask(), found = b->NewMask();
  AddJoin(j, scope);
  if (j.kind != JoinKind::kSemi) b->Emit(Opcode::MaskSave, entry);
  if (!j.match.empty()) b->Emit(Opcode::MaskClear, found);
  b->Emit(Opcode::Probe, join, operand, static_cast<int32_t>(j.probe_keys.size()));
  if (j.match.empty()) {
    if (j.kind != JoinKind::kSemi) b->Emit(Opcode::MaskSave, found);
  } else {
    const int looking = b->NewMask();
    b->Emit(Opcode::MaskSave, looking);
    const int body = b->next();
    for (const Expr* e : j.match) TESSERA_TRY(b->Keep(*e));
    b->Emit(Opcode::MaskOr, found);
    b->Emit(Opcode::MaskLoad, looking);
    b->Emit(Opcode::MaskAndNot, found);
    b->Emit(Opcode::MaskSave, looking);
    b->Emit(Opcode::Next, join, body, looking);
    b->FreeMask(looking);
    if (j.kind == JoinKind::kSemi) b->Emit(Opcode::MaskLoad, found);
  }
  if (j.kind == JoinKind::kAnti) {
    b->Emit(Opcode::MaskLoad, entry);
    b->Emit(Opcode::MaskAndNot, found);
  } else if (j.kind == JoinKind::kMark) {
    // A register of its own, because it is read until the row reaches the sink.
    const SqlType boolean = SqlType::Of(TypeId::kBoolean);
    const int mark = static_cast<int>(b->section.registers.size());
    b->section.registers.push_back(boolean);
    for (int value = 0; value < 2; ++value) {
      b->Emit(Opcode::MaskLoad, value == 0 ? entry : found);
      b->LoadConstant(Value::Int(boolean, value));
      b->Store(mark);
    }
    b->Emit(Opcode::MaskLoad, entry);
    scope->AddMark(j.relation, mark);
  }
  b->FreeMask(entry);
  b->FreeMask(found);
  return Status::Ok();
}

Status BlockGenerator::KeysInRegisters(const std::vector<const Expr*>& keys, SectionBuilder* b, int32_t* operand) {
  const int first = static_cast<int>(b->section.registers.size());
  for (const Expr* k : keys) b->section.registers.push_back(k->type);
  for (size_t i = 0; i < keys.size(); ++i) {
    const int r = first + static_cast<int>(i);
    if (!keys[i]->type.IsFloat()) {
      TESSERA_TRY(b->ValueIn(*keys[i], r));
      continue;
    }
    TESSERA_TRY(b->Key(*keys[i]));
    b->Store(r);
  }
  *operand = Operand::Register(first).Pack();
  return Status::Ok();
}

void BlockGenerator::CloseLoops(SectionBuilder* b) {
  // It is the next section that is added; the block's own pipeline is the last one that is closed.
  assembly_.of_plan.of_block[{&plan_, PlanSections::Part::kPipeline}] = static_cast<int>(program_->sections.size());
  while (!loops_.empty()) {
    const Loop loop = loops_.back();
    loops_.pop_back();
    PatchSkips(b, loop.skips);
    b->Emit(loop.next, loop.join, loop.body, loop.mask);
  }
  PatchSkips(b, 0);
}

void BlockGenerator::PatchSkips(SectionBuilder* b, size_t from) {
  while (skips_.size() > from) {
    b->section.code[static_cast<size_t>(skips_.back())].p2 = b->next();
    skips_.pop_back();
  }
}

}  // namespace tessera
