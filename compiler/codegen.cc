// Pipelines: one section per build side, one for the driver with its probes, and above it the stages of grouping,
// DISTINCT and ordering.
//
//   scan build side -> Build                 once per joined relation
//   scan driver, probe ... -> Group | Emit   the driver may be built, too, and its rows scanned: both sides of a grid
//   are sorted groups -> HAVING, outputs -> Emit        if grouped (twice Group if an aggregate is DISTINCT) rows ->
//   Group -> Emit                    if DISTINCT
//
// Blocks of derived tables come first, each once; then their rows are scanned like a table.

#include "compiler/codegen.h"

#include <algorithm>
#include <map>

#include "compiler/section_builder.h"

namespace tessera {

using vm::Opcode;
using vm::Operand;
using vm::Section;

namespace {

/// Columns of the relations that a pipeline has at hand: slots of the scanned table, payload of the tables it probed.
class PipelineScope : public Scope {
 public:
  PipelineScope(const Query& q, int scanned) : q_(q), scanned_(scanned) {}

  /// The rows scanned are those of a join table whose columns are numbered by `payload`.
  void ScanPayload(const std::map<int, int>* payload) { scanned_payload_ = payload; }
  /// From here on columns of `relation` are payload columns of join table `join`, numbered by `payload`.
  void AddJoin(int relation, int join, const std::map<int, int>* payload) { joined_[relation] = {join, payload}; }
  /// From here on what `list` computes of the scanned relation is in the first columns of its join table; is in
  /// registers from `first` on; or, of a relation joined, is in the first payload columns of its join table.
  void ScanComputed(const std::vector<const Expr*>* list) { computed_.push_back({list, Operand::Slot(0)}); }
  void AddComputed(const std::vector<const Expr*>* list, Operand first) { computed_.push_back({list, first}); }
  /// From here on register `r` tells whether a row of `relation` matches.
  void AddMark(int relation, int r) { marks_[relation] = r; }

  bool Find(const Expr& leaf, SectionBuilder* b, Operand* operand) override {
    if (leaf.kind != Expr::Kind::kColumn) return false;
    if (leaf.column == kMarkColumn) {
      *operand = Operand::Register(marks_.at(leaf.relation));
      return true;
    }
    if (leaf.relation == scanned_) {
      *operand = Operand::Slot(SlotOf(leaf, b));
      return true;
    }
    auto joined = joined_.find(leaf.relation);
    if (joined == joined_.end()) return false;
    auto column = joined->second.payload->find(leaf.column);
    if (column == joined->second.payload->end()) return false;
    *operand = Operand::Payload(joined->second.join, column->second);
    return true;
  }
  bool FindComputed(const Expr& e, SectionBuilder* b, Operand* operand) override {
    for (const Computed& c : computed_) {
      const int number = FindSame(*c.list, e);
      if (number < 0) continue;
      *operand = c.first;
      if (operand->kind == vm::OperandKind::kSlot) {
        *operand = Operand::Slot(SlotOf(number, e.type, b));
      } else {
        operand->index = static_cast<uint16_t>(operand->index + number);
      }
      return true;
    }
    return false;
  }
  ValueRange Range(const Expr& leaf) const override { return RangeByStatistics(q_, leaf); }
  int TableSlot(const Expr& column, SectionBuilder* b) override {
    const bool stored = column.kind == Expr::Kind::kColumn && column.relation == scanned_ &&
                        scanned_payload_ == nullptr && q_.relations[static_cast<size_t>(scanned_)].table != nullptr;
    return stored ? SlotOf(column, b) : -1;
  }

 private:
  struct Joined {
    int join;
    const std::map<int, int>* payload;  // column -> payload number
  };
  struct Computed {
    const std::vector<const Expr*>* list;
    Operand first;  // the others have the next numbers; kSlot: columns of the source
  };
  int SlotOf(const Expr& column, SectionBuilder* b) const {
    return SlotOf(scanned_payload_ == nullptr ? column.column : scanned_payload_->at(column.column), column.type, b);
  }
  static int SlotOf(int number, const SqlType& type, SectionBuilder* b) {
    for (size_t i = 0; i < b->section.slots.size(); ++i) {
      if (b->section.slots[i].column == number && b->section.slots[i].map < 0) return static_cast<int>(i);
    }
    b->section.slots.push_back({number, type, -1});
    return static_cast<int>(b->section.slots.size()) - 1;
  }
  const Query& q_;
  int scanned_;
  const std::map<int, int>* scanned_payload_ = nullptr;
  std::map<int, Joined> joined_;
  std::map<int, int> marks_;  // relation -> register
  std::vector<Computed> computed_;
};

/// Which aggregate of the machine serves an aggregate of SQL.
struct Lowered {
  int value = -1;  ///< column of the sum, extreme or count
  int count = -1;  ///< kAvg: column of the count
};

/// Columns of a group table under HAVING and the outputs.
class GroupScope : public Scope {
 public:
  GroupScope(const Query& q, const std::vector<SqlType>& columns, const std::vector<Lowered>& aggregates)
      : q_(q), columns_(columns), aggregates_(aggregates) {}

  bool Find(const Expr& leaf, SectionBuilder* b, Operand* operand) override {
    int column = -1;
    if (leaf.kind == Expr::Kind::kGroup) {
      column = leaf.index;
    } else if (leaf.kind == Expr::Kind::kAggregate) {
      const Aggregate& a = q_.aggregates[static_cast<size_t>(leaf.index)];
      const int value = aggregates_[static_cast<size_t>(leaf.index)].value;
      const FinalRule rule = Info(a.function).final_value;
      if (rule == FinalRule::kQuotient || columns_[static_cast<size_t>(value)].storage() != leaf.type.storage())
        return false;
      if (rule == FinalRule::kSum && IsWide(leaf.type)) return false;  // its digits are checked
      column = value;
    }
    if (column < 0) return false;
    *operand = Slot(column, b);
    return true;
  }

  Status Compute(const Expr& leaf, SectionBuilder* b) override {
    if (leaf.kind != Expr::Kind::kAggregate) return Scope::Compute(leaf, b);
    const Aggregate& a = q_.aggregates[static_cast<size_t>(leaf.index)];
    const Lowered& l = aggregates_[static_cast<size_t>(leaf.index)];
    const SqlType& type = columns_[static_cast<size_t>(l.value)];
    switch (Info(a.function).final_value) {
      case FinalRule::kCount:
        Count(l.value, b);
        return Status::Ok();
      case FinalRule::kQuotient: {
        // sum / count; no values give NULL / 0.
        const int r = b->NewRegister(SqlType::Of(TypeId::kDouble));
        Count(l.count, b);
        b->Emit(Opcode::IToF);
        b->Store(r);
        b->Load(Slot(l.value, b), type);
        if (IsWide(type)) {
          b->Emit(Opcode::WToF);
          const int scale = a.argument->type.scale;
          if (scale > 0) {
            b->Emit(Opcode::DivF, 0,
                    Operand::Constant(b->constants()->Float(static_cast<double>(PowerOf10(scale)))).Pack());
          }
        }
        b->Emit(Opcode::DivF, 0, Operand::Register(r).Pack());
        b->FreeRegister(r);
        return Status::Ok();
      }
      case FinalRule::kSum:
        b->Load(Slot(l.value, b), type);
        if (IsWide(type) && !IsWide(leaf.type)) {
          b->Narrow();
        } else if (IsWide(type)) {
          const int128_t most = PowerOf10(38) - 1;
          b->Emit(Opcode::CheckW, 0, b->constants()->Wide(-most), b->constants()->Wide(most), vm::PackType(leaf.type));
        }
        return Status::Ok();
      case FinalRule::kState:
        b->Load(Slot(l.value, b), type);
        if (IsWide(type) && !IsWide(leaf.type)) b->Narrow();
        return Status::Ok();
    }
    return Scope::Compute(leaf, b);
  }

 private:
  Operand Slot(int column, SectionBuilder* b) {
    for (size_t i = 0; i < b->section.slots.size(); ++i) {
      if (b->section.slots[i].column == column) return Operand::Slot(static_cast<int>(i));
    }
    b->section.slots.push_back({column, columns_[static_cast<size_t>(column)], -1});
    return Operand::Slot(static_cast<int>(b->section.slots.size()) - 1);
  }
  void Count(int column, SectionBuilder* b) {
    b->Load(Slot(column, b), columns_[static_cast<size_t>(column)]);
    if (!IsWide(columns_[static_cast<size_t>(column)])) return;
    b->Narrow();  // partial counts were added up in W, and none at all is 0
    b->NullToZero();
  }

  const Query& q_;
  const std::vector<SqlType>& columns_;
  const std::vector<Lowered>& aggregates_;
};

/// What the blocks of one statement share.
struct Assembly {
  std::unique_ptr<vm::Program> program = std::make_unique<vm::Program>();
  ConstantPool constants{program.get()};
  std::map<const Plan*, int> sections;  ///< the section with the rows of a block
  std::vector<double> estimates;        ///< per section, see Code
};

class Generator {
 public:
  Generator(const Plan& plan, Assembly* assembly)
      : q_(*plan.query),
        plan_(plan),
        assembly_(*assembly),
        program_(assembly->program.get()),
        constants_(assembly->constants) {}

  /// The number of the section that makes the rows of the block.
  Result<int> Run() {
    if (q_.group_by.size() > vm::kMaxKeys || (q_.distinct && q_.outputs.size() > vm::kMaxKeys)) {
      return Unsupported("grouping by more than " + std::to_string(vm::kMaxKeys) + " columns is not supported");
    }
    for (const auto& derived : plan_.derived) {
      if (derived != nullptr) TESSERA_TRY(RowsOf(*derived));
    }
    FindNeededColumns();
    for (const JoinStep& j : plan_.joins) TESSERA_TRY(BuildSide(j));
    if (plan_.build_driver) {  // a join table that nobody probes
      JoinStep driver;
      driver.relation = plan_.driver;
      driver.build_order = plan_.joins[0].probe_order;
      TESSERA_TRY(BuildSide(driver));
    }
    if (q_.grouped) {
      TESSERA_TRY(q_.aggregates.empty() || !HasDistinctAggregate() ? GroupedDirectly() : GroupedTwice());
    } else {
      TESSERA_TRY(Ungrouped());
    }
    if (q_.distinct) TESSERA_TRY(Distinct());
    // Order and limit belong to the last section.
    Section& last = program_->sections.back();
    for (const OrderKey& k : q_.order_by) last.order.push_back({k.output, k.descending, k.nulls_first});
    last.limit = q_.limit;
    last.offset = q_.offset;
    const bool many = program_->sections.size() > vm::kMaxSections || program_->joins.size() > vm::kMaxJoins;
    if (many) return Unsupported("the statement needs more pipelines than the machine runs");
    int rows = static_cast<int>(program_->sections.size()) - 1;
    for (const auto& more : plan_.union_all) {
      TESSERA_ASSIGN(const int next, Generator(*more, &assembly_).Run());
      program_->sections[static_cast<size_t>(next)].append_to = rows;
      rows = next;
    }
    return rows;
  }

 private:
  /// Generates the block of a derived table, unless that has been done.
  Status RowsOf(const Plan& plan) {
    if (assembly_.sections.contains(&plan)) return Status::Ok();
    TESSERA_ASSIGN(const int section, Generator(plan, &assembly_).Run());
    assembly_.sections[&plan] = section;
    return Status::Ok();
  }

  bool HasDistinctAggregate() const {
    return std::any_of(q_.aggregates.begin(), q_.aggregates.end(), [](const Aggregate& a) { return NeedsDistinct(a); });
  }
  /// DISTINCT changes nothing for MIN and MAX.
  static bool NeedsDistinct(const Aggregate& a) { return a.distinct && !Info(a.function).ignores_duplicates; }

  /// The section scans `relation`.
  void ScanOf(int relation, Section* s) {
    const Relation& r = q_.relations[static_cast<size_t>(relation)];
    s->label = ScanLabel(relation);
    s->source_kind = r.table != nullptr ? Section::Source::kTable : Section::Source::kSection;
    s->source = r.table != nullptr ? TableReference(relation)
                                   : assembly_.sections.at(plan_.derived[static_cast<size_t>(relation)].get());
  }

  int TableReference(int relation) {
    const TableInfo& t = *q_.relations[static_cast<size_t>(relation)].table;
    for (size_t i = 0; i < program_->tables.size(); ++i) {
      if (program_->tables[i].id == t.id) return static_cast<int>(i);
    }
    program_->tables.push_back({t.id, t.schema.name});
    return static_cast<int>(program_->tables.size()) - 1;
  }

  /// Payload of each joined relation: what is computed of it, then the columns that anything after its build reads.
  void FindNeededColumns() {
    ForEachJoinedRoot(plan_, [&](const Expr& e, bool) { NoteColumns(e); });
    for (auto& [relation, columns] : payload_) {  // in the order of columns, not of use
      auto n = static_cast<int>(ComputedOf(relation).size());
      for (auto& [column, number] : columns) number = n++;
    }
  }
  void NoteColumns(const Expr& e) {
    if (e.kind == Expr::Kind::kColumn && e.column != kMarkColumn) payload_[e.relation].emplace(e.column, 0);
    const auto same = [&](const auto& list) { return FindSame(list, e) >= 0; };
    if (e.kind == Expr::Kind::kFunction && std::any_of(plan_.computed.begin(), plan_.computed.end(), same)) return;
    for (const ExprPtr& a : e.args) NoteColumns(*a);
  }
  const std::vector<const Expr*>& ComputedOf(int relation) const {
    return plan_.computed[static_cast<size_t>(relation)];
  }
  /// The payload number of a column, stored or computed.
  int PayloadOf(int relation, const Expr& e) const {
    return e.kind == Expr::Kind::kColumn ? payload_.at(relation).at(e.column) : FindSame(ComputedOf(relation), e);
  }

  std::string ScanLabel(int relation) const {
    const Relation& r = q_.relations[static_cast<size_t>(relation)];
    if (r.table == nullptr) return "rows of " + (r.alias.empty() ? "a derived table" : r.alias);
    return "scan " + r.table->schema.name + (r.alias == r.table->schema.name ? "" : " " + r.alias);
  }

  /// `rows`: how many the optimiser expects it to make; -1: it does not say.
  Status Finish(SectionBuilder* b, double rows) {
    b->Emit(Opcode::End);
    TESSERA_TRY(b->CheckLimits());
    program_->sections.push_back(std::move(b->section));
    assembly_.estimates.resize(program_->sections.size(), -1);
    assembly_.estimates.back() = rows;
    return Status::Ok();
  }

  Status BuildSide(const JoinStep& j) {
    PipelineScope scope(q_, j.relation);
    SectionBuilder b(program_, &constants_, &scope);
    ScanOf(j.relation, &b.section);
    b.section.sink = Section::Sink::kJoin;
    b.section.keys = static_cast<int32_t>(j.build_keys.size());
    // Registers r0 ..: keys, then payload.
    for (const Expr* k : j.build_keys) b.section.registers.push_back(k->type);
    const Relation& r = q_.relations[static_cast<size_t>(j.relation)];
    for (const Expr* e : ComputedOf(j.relation)) b.section.registers.push_back(e->type);
    for (const auto& [column, number] : payload_[j.relation])
      b.section.registers.push_back(r.column_types[static_cast<size_t>(column)]);
    b.section.columns = b.section.registers;
    for (const Expr* f : plan_.filters[static_cast<size_t>(j.relation)]) TESSERA_TRY(b.Keep(*f));
    for (size_t k = 0; k < j.build_keys.size(); ++k) {
      TESSERA_TRY(b.Key(*j.build_keys[k]));
      b.Store(static_cast<int>(k));
    }
    for (const auto& [column, number] : payload_[j.relation]) {
      Expr leaf;
      leaf.kind = Expr::Kind::kColumn;
      leaf.relation = j.relation;
      leaf.column = column;
      leaf.type = r.column_types[static_cast<size_t>(column)];
      TESSERA_TRY(b.Value(leaf));
      b.Store(b.section.keys + number);
    }
    for (const Expr* e : ComputedOf(j.relation)) {
      TESSERA_TRY(b.Value(*e));
      b.Store(b.section.keys + PayloadOf(j.relation, *e));
    }
    b.Emit(Opcode::Build);
    const int join = static_cast<int>(program_->joins.size());
    const int32_t keys = b.section.keys;
    b.section.join = join;
    TESSERA_TRY(Finish(&b, plan_.rows[static_cast<size_t>(j.relation)]));
    const int32_t order = j.build_order == nullptr ? -1 : keys + PayloadOf(j.relation, *j.build_order);
    program_->joins.push_back({j.unique, static_cast<int32_t>(program_->sections.size()) - 1, j.strategy, order});
    join_of_[j.relation] = join;
    return Status::Ok();
  }

  /// The pipeline's front: scan, filters, probes. Loops over several matches are left open; CloseLoops ends them.
  Status Front(SectionBuilder* b, PipelineScope* scope) {
    Section& s = b->section;
    if (plan_.driver < 0) {
      s.source_kind = Section::Source::kOneRow;
      s.label = "one row";
    } else if (plan_.build_driver) {
      const Relation& r = q_.relations[static_cast<size_t>(plan_.driver)];
      s.source_kind = Section::Source::kJoin;
      s.source = join_of_.at(plan_.driver);
      s.label = "rows of " + (r.alias.empty() ? "a derived table" : r.alias);
      scope->ScanPayload(&payload_[plan_.driver]);
      scope->ScanComputed(&ComputedOf(plan_.driver));
    } else {
      ScanOf(plan_.driver, &s);
    }
    for (const Expr* c : plan_.constants) TESSERA_TRY(b->Keep(*c));
    if (plan_.driver >= 0 && !plan_.build_driver) {
      for (const Expr* f : plan_.filters[static_cast<size_t>(plan_.driver)]) TESSERA_TRY(b->Keep(*f));
    }
    // The invisible join: the keys of a filtered build side bound the foreign key, so that whole tablets, and most
    // rows of the rest, fail a range test on the encoded column before they are looked up.
    for (const JoinStep& j : plan_.joins) {
      if (!j.filtered || j.probe_keys.size() != 1) continue;
      if (j.kind != JoinKind::kInner && j.kind != JoinKind::kSemi) continue;
      const Expr& key = *j.probe_keys[0];
      if (key.kind != Expr::Kind::kColumn || key.type.storage() != StorageClass::kInt) continue;
      const int slot = scope->TableSlot(key, b);
      if (slot < 0) continue;
      vm::Predicate p;
      p.kind = vm::Predicate::Kind::kKeyRange;
      p.slot = slot;
      p.join = join_of_[j.relation];
      s.predicates.push_back(p);
      b->Emit(Opcode::Filter, static_cast<int>(s.predicates.size()) - 1);
    }
    bool narrowed = !s.code.empty();
    if (plan_.driver >= 0 && !plan_.build_driver && !ComputedOf(plan_.driver).empty()) {
      // In front of the loop, in registers of their own: all of its turns read them.
      if (narrowed) skips_.push_back(b->Emit(Opcode::SkipIfNone));
      narrowed = false;
      const int first = static_cast<int>(s.registers.size());
      for (const Expr* e : ComputedOf(plan_.driver)) s.registers.push_back(e->type);
      for (const Expr* e : ComputedOf(plan_.driver)) {
        TESSERA_TRY(b->Value(*e));
        b->Store(first + FindSame(ComputedOf(plan_.driver), *e));
      }
      scope->AddComputed(&ComputedOf(plan_.driver), Operand::Register(first));
    }
    for (const JoinStep& j : plan_.joins) {
      const int join = join_of_[j.relation];
      int32_t operand = 0;
      std::vector<int> scratch;
      if (j.probe_keys.size() == 1) {
        const Expr& key = *j.probe_keys[0];
        Operand o;
        if (key.type.IsFloat() || key.kind != Expr::Kind::kColumn || !scope->Find(key, b, &o)) {
          TESSERA_TRY(b->Key(key));
          const int r = b->NewRegister(key.type);
          b->Store(r);
          scratch.push_back(r);
          o = Operand::Register(r);
        }
        operand = o.Pack();
      } else if (j.probe_keys.size() > 1) {
        TESSERA_TRY(KeysInRegisters(j.probe_keys, b, &operand));
      }
      if (narrowed) skips_.push_back(b->Emit(Opcode::SkipIfNone));
      narrowed = true;
      const auto keys = static_cast<int32_t>(j.probe_keys.size());
      switch (j.kind) {
        case JoinKind::kInner:
          b->Emit(Opcode::Probe, join, operand, keys);
          scope->AddJoin(j.relation, join, &payload_[j.relation]);
          scope->AddComputed(&ComputedOf(j.relation), Operand::Payload(join, 0));
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
      for (int r : scratch) b->FreeRegister(r);
      for (const Expr* e : j.residuals) TESSERA_TRY(b->Keep(*e));
    }
    if (narrowed) skips_.push_back(b->Emit(Opcode::SkipIfNone));
    return Status::Ok();
  }

  /// What follows is done for every match of the live rows.
  void OpenLoop(SectionBuilder* b, int join, Opcode next) {
    const int mask = b->NewMask();
    b->Emit(Opcode::MaskSave, mask);
    loops_.push_back({next, join, b->next(), mask, skips_.size()});
  }

  /// Rows without a match go on once, with NULLs. Where more than the keys decides what matches, that is known for a
  /// row only behind its last candidate: the loop has one more turn for it, in which it points at no row.
  Status LeftJoin(const JoinStep& j, int32_t operand, SectionBuilder* b, PipelineScope* scope) {
    const int join = join_of_[j.relation];
    const bool single = q_.relations[static_cast<size_t>(j.relation)].single && !j.unique;
    const auto keys = static_cast<int32_t>(j.probe_keys.size());
    scope->AddJoin(j.relation, join, &payload_[j.relation]);
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

  /// Semi, anti and mark join: whether there is a match, not which. Where more than the keys decides, a loop looks for
  /// the first match of each row.
  Status MatchJoin(const JoinStep& j, int32_t operand, SectionBuilder* b, PipelineScope* scope) {
    const int join = join_of_[j.relation];
    const int entry = b->NewMask(), found = b->NewMask();
    scope->AddJoin(j.relation, join, &payload_[j.relation]);
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
      // A register of its own: it is read as long as the row lives.
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

  /// Values in consecutive registers of their own.
  template <class List>
  Status KeysInRegisters(const List& keys, SectionBuilder* b, int32_t* operand) {
    const int first = static_cast<int>(b->section.registers.size());
    for (const auto& k : keys) b->section.registers.push_back(k->type);
    for (size_t i = 0; i < keys.size(); ++i) {
      TESSERA_TRY(b->Key(*keys[i]));
      b->Store(first + static_cast<int>(i));
    }
    *operand = Operand::Register(first).Pack();
    return Status::Ok();
  }

  /// Ends the open loops, the innermost first; an empty mask skips to the end of the loop it is in.
  void CloseLoops(SectionBuilder* b) {
    while (!loops_.empty()) {
      const Loop loop = loops_.back();
      loops_.pop_back();
      PatchSkips(b, loop.skips);
      b->Emit(loop.next, loop.join, loop.body, loop.mask);
    }
    PatchSkips(b, 0);
  }
  void PatchSkips(SectionBuilder* b, size_t from) {
    while (skips_.size() > from) {
      b->section.code[static_cast<size_t>(skips_.back())].p2 = b->next();
      skips_.pop_back();
    }
  }

  Status Ungrouped() {
    PipelineScope scope(q_, plan_.driver);
    SectionBuilder b(program_, &constants_, &scope);
    for (const Output& o : q_.outputs) b.section.registers.push_back(o.expr->type);
    b.section.columns = b.section.registers;
    TESSERA_TRY(Front(&b, &scope));
    TESSERA_TRY(Outputs(&b));
    CloseLoops(&b);
    return Finish(&b, plan_.joined_rows);
  }

  Status Outputs(SectionBuilder* b) {
    for (size_t i = 0; i < q_.outputs.size(); ++i) {
      TESSERA_TRY(b->Value(*q_.outputs[i].expr));
      b->Store(static_cast<int>(i));
    }
    b->Emit(Opcode::Emit);
    return Status::Ok();
  }

  /// The Group instruction over the keys of GROUP BY and what else is given.
  Status GroupBy(const std::vector<const Expr*>& keys, SectionBuilder* b) {
    int32_t operand = 0;
    if (keys.size() == 1 && keys[0]->kind == Expr::Kind::kColumn && !keys[0]->type.IsFloat()) {
      TESSERA_TRY(b->Value(*keys[0]));  // the load is dropped again: the operand is what is wanted
      operand = b->section.code.back().p2;
      b->section.code.pop_back();
    } else if (!keys.empty()) {
      TESSERA_TRY(KeysInRegisters(keys, b, &operand));
    }
    b->Emit(Opcode::Group, 0, operand, static_cast<int32_t>(keys.size()));
    return Status::Ok();
  }

  /// The type of the column that holds the state of an aggregate.
  static SqlType StateType(AggregateFunction function, const SqlType& argument) {
    switch (Info(function).state) {
      case StateRule::kArgument:
        return argument;
      case StateRule::kSum:
        return argument.IsFloat() ? SqlType::Of(TypeId::kDouble) : SqlType::Decimal(38, argument.scale);
      case StateRule::kCount:
        break;
    }
    return SqlType::Of(TypeId::kBigint);
  }

  /// Adds an aggregate fed by `op` to the section, once.
  int AddAggregate(Section* s, Opcode op, const SqlType& type, const Expr* argument,
                   std::vector<const Expr*>* arguments) {
    for (size_t i = 0; i < s->aggregates.size(); ++i) {
      const Expr* other = (*arguments)[i];
      if (s->aggregates[i].op == op && ((other == nullptr && argument == nullptr) ||
                                        (other != nullptr && argument != nullptr && other->SameAs(*argument)))) {
        return static_cast<int>(i);
      }
    }
    s->aggregates.push_back({op, type});
    arguments->push_back(argument);
    return static_cast<int>(s->aggregates.size()) - 1;
  }

  /// The machine's aggregates for one of SQL, over values of `type`.
  Lowered Lower(const Aggregate& a, Section* s, std::vector<const Expr*>* arguments) {
    const Expr* x = a.argument.get();
    const SqlType bigint = SqlType::Of(TypeId::kBigint);
    auto count = [&] {
      if (x == nullptr || !x->nullable) return AddAggregate(s, Opcode::CountRows, bigint, nullptr, arguments);
      return AddAggregate(s, IsWide(x->type) ? Opcode::CountW : Opcode::Count, bigint, x, arguments);
    };
    const AggregateInfo& info = Info(a.function);
    Lowered l;
    if (info.state == StateRule::kCount) {
      l.value = count();
      return l;
    }
    l.value = AddAggregate(s, info.opcodes.For(x->type.storage()), StateType(a.function, x->type), x, arguments);
    if (info.counted) l.count = count();
    return l;
  }

  /// The instructions that feed the section's aggregates; one load serves all aggregates over the same argument.
  Status FeedAggregates(SectionBuilder* b, const std::vector<const Expr*>& arguments) {
    std::vector<bool> fed(arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (fed[i]) continue;
      if (arguments[i] != nullptr) TESSERA_TRY(b->Value(*arguments[i]));
      for (size_t k = i; k < arguments.size(); ++k) {
        const bool same = arguments[k] == nullptr ? arguments[i] == nullptr
                                                  : arguments[i] != nullptr && arguments[k]->SameAs(*arguments[i]);
        if (!same) continue;
        fed[k] = true;
        b->Emit(b->section.aggregates[k].op, static_cast<int>(k));
      }
    }
    return Status::Ok();
  }

  std::vector<const Expr*> GroupKeys() const {
    std::vector<const Expr*> keys;
    for (const ExprPtr& e : q_.group_by) keys.push_back(e.get());
    return keys;
  }

  /// Columns of a group section: keys, then aggregates; and the Lowered numbers become column numbers.
  static void SetColumns(Section* s, const std::vector<const Expr*>& keys, std::vector<Lowered>* lowered) {
    s->keys = static_cast<int32_t>(keys.size());
    for (const Expr* k : keys) s->columns.push_back(k->type);
    for (const vm::AggregateSpec& a : s->aggregates) s->columns.push_back(a.type);
    for (Lowered& l : *lowered) {
      l.value += s->keys;
      if (l.count >= 0) l.count += s->keys;
    }
  }

  Status GroupedDirectly() {
    PipelineScope scope(q_, plan_.driver);
    SectionBuilder b(program_, &constants_, &scope);
    b.section.sink = Section::Sink::kGroups;
    TESSERA_TRY(Front(&b, &scope));
    const std::vector<const Expr*> keys = GroupKeys();
    TESSERA_TRY(GroupBy(keys, &b));
    std::vector<const Expr*> arguments;
    std::vector<Lowered> lowered;
    for (const Aggregate& a : q_.aggregates) lowered.push_back(Lower(a, &b.section, &arguments));
    TESSERA_TRY(FeedAggregates(&b, arguments));
    CloseLoops(&b);
    SetColumns(&b.section, keys, &lowered);
    TESSERA_TRY(Finish(&b, plan_.made_rows));
    return AboveGroups(lowered);
  }

  /// With DISTINCT aggregates: first group by the keys and all distinct arguments, then by the keys. The first grouping
  /// is fed once per distinct argument, the others NULL, and once with all of them NULL for the plain aggregates;
  /// the second counts and sums what is left of each argument, which NULL does not touch.
  Status GroupedTwice() {
    std::vector<const Expr*> keys = GroupKeys();
    const size_t group_keys = keys.size();
    std::vector<const Expr*> distinct;  // arguments, each once
    for (const Aggregate& a : q_.aggregates) {
      if (!NeedsDistinct(a)) continue;
      auto same = [&](const Expr* e) { return e->SameAs(*a.argument); };
      if (std::none_of(distinct.begin(), distinct.end(), same)) distinct.push_back(a.argument.get());
    }
    // First grouping.
    PipelineScope scope(q_, plan_.driver);
    SectionBuilder b(program_, &constants_, &scope);
    b.section.sink = Section::Sink::kGroups;
    TESSERA_TRY(Front(&b, &scope));
    const int first_register = static_cast<int>(b.section.registers.size());
    for (const Expr* k : keys) b.section.registers.push_back(k->type);
    for (const Expr* d : distinct) b.section.registers.push_back(d->type);
    keys.insert(keys.end(), distinct.begin(), distinct.end());
    for (size_t k = 0; k < group_keys; ++k) {
      TESSERA_TRY(b.Key(*keys[k]));
      b.Store(first_register + static_cast<int>(k));
    }
    std::vector<const Expr*> arguments;
    std::vector<Lowered> partial(q_.aggregates.size());
    bool plain = false;
    for (size_t i = 0; i < q_.aggregates.size(); ++i) {
      if (NeedsDistinct(q_.aggregates[i])) continue;
      partial[i] = Lower(q_.aggregates[i], &b.section, &arguments);
      plain = true;
    }
    const int32_t operand = Operand::Register(first_register).Pack();
    const int32_t key_count = static_cast<int32_t>(keys.size());
    for (int turn = plain ? -1 : 0; turn < static_cast<int>(distinct.size()); ++turn) {
      for (size_t d = 0; d < distinct.size(); ++d) {
        if (static_cast<int>(d) == turn) {
          TESSERA_TRY(b.Key(*distinct[d]));
        } else {
          b.LoadConstant(Value::Null(distinct[d]->type));
        }
        b.Store(first_register + static_cast<int>(group_keys + d));
      }
      b.Emit(Opcode::Group, 0, operand, key_count);
      if (turn < 0) TESSERA_TRY(FeedAggregates(&b, arguments));
    }
    CloseLoops(&b);
    SetColumns(&b.section, keys, &partial);
    const std::vector<SqlType> first_columns = b.section.columns;
    const std::vector<vm::AggregateSpec> first_aggregates = b.section.aggregates;
    TESSERA_TRY(Finish(&b, -1));

    // Second grouping, over the rows of the first.
    const int source = static_cast<int>(program_->sections.size()) - 1;
    const std::vector<Lowered> none;
    GroupScope no_scope(q_, first_columns, none);
    SectionBuilder c(program_, &constants_, &no_scope);
    c.section.source_kind = Section::Source::kSection;
    c.section.source = source;
    c.section.sink = Section::Sink::kGroups;
    c.section.label = "groups of distinct values";
    for (const SqlType& t : first_columns)
      c.section.slots.push_back({static_cast<int32_t>(c.section.slots.size()), t, -1});
    for (size_t k = 0; k < group_keys; ++k) {
      c.section.registers.push_back(keys[k]->type);
      c.Load(Operand::Slot(static_cast<int>(k)), keys[k]->type);
      c.Store(static_cast<int>(k));
    }
    c.Emit(Opcode::Group, 0, group_keys == 0 ? 0 : Operand::Register(0).Pack(), static_cast<int32_t>(group_keys));
    // One aggregate per (column of the first grouping, opcode).
    std::vector<std::pair<int, Opcode>> fed;
    auto feed = [&](int column, Opcode op, const SqlType& type) {
      for (size_t i = 0; i < fed.size(); ++i) {
        if (fed[i] == std::pair(column, op)) return static_cast<int>(i);
      }
      fed.emplace_back(column, op);
      c.section.aggregates.push_back({op, type});
      c.Load(Operand::Slot(column), first_columns[static_cast<size_t>(column)]);
      c.Emit(op, static_cast<int>(fed.size()) - 1);
      return static_cast<int>(fed.size()) - 1;
    };
    const SqlType wide = SqlType::Decimal(38, 0), bigint = SqlType::Of(TypeId::kBigint);
    auto combine = [&](int column) {  // partial states of the first grouping
      const vm::AggregateSpec& a = first_aggregates[static_cast<size_t>(column) - keys.size()];
      const bool is_count = a.op == Opcode::CountRows || a.op == Opcode::Count || a.op == Opcode::CountW;
      if (is_count) return feed(column, Opcode::SumI, wide);
      return feed(column, a.op == Opcode::SumI ? Opcode::SumW : a.op, a.type);
    };
    std::vector<Lowered> lowered(q_.aggregates.size());
    for (size_t i = 0; i < q_.aggregates.size(); ++i) {
      const Aggregate& a = q_.aggregates[i];
      Lowered& l = lowered[i];
      if (!NeedsDistinct(a)) {
        l.value = combine(partial[i].value);
        if (partial[i].count >= 0) l.count = combine(partial[i].count);
        continue;
      }
      size_t d = 0;
      while (!distinct[d]->SameAs(*a.argument)) ++d;
      const int column = static_cast<int>(group_keys + d);
      const SqlType& type = distinct[d]->type;
      // A count is added up like the partial ones: per row of the first grouping 0 or 1.
      auto count = [&] { return feed(column, IsWide(type) ? Opcode::CountW : Opcode::Count, bigint); };
      const AggregateInfo& info = Info(a.function);
      if (info.state == StateRule::kCount) {
        l.value = count();
      } else {
        l.value = feed(column, info.opcodes.For(type.storage()), StateType(a.function, type));
        if (info.counted) l.count = count();
      }
    }
    keys.resize(group_keys);
    SetColumns(&c.section, keys, &lowered);
    TESSERA_TRY(Finish(&c, plan_.made_rows));
    return AboveGroups(lowered);
  }

  /// HAVING and the outputs over the groups of the section before.
  Status AboveGroups(const std::vector<Lowered>& lowered) {
    const int source = static_cast<int>(program_->sections.size()) - 1;
    const std::vector<SqlType> columns = program_->sections.back().columns;
    GroupScope scope(q_, columns, lowered);
    SectionBuilder b(program_, &constants_, &scope);
    b.section.source_kind = Section::Source::kSection;
    b.section.source = source;
    b.section.label = "groups";
    for (const Output& o : q_.outputs) b.section.registers.push_back(o.expr->type);
    b.section.columns = b.section.registers;
    for (const ExprPtr& h : q_.having) TESSERA_TRY(b.Keep(*h));
    TESSERA_TRY(Outputs(&b));
    return Finish(&b, q_.having.empty() ? plan_.made_rows : -1);
  }

  /// Groups the rows of the last section by all their columns.
  Status Distinct() {
    const std::vector<SqlType> columns = program_->sections.back().columns;
    class RowScope : public Scope {
      bool Find(const Expr&, SectionBuilder*, Operand*) override { return false; }
    } scope;
    for (int stage = 0; stage < 2; ++stage) {
      SectionBuilder b(program_, &constants_, &scope);
      b.section.source_kind = Section::Source::kSection;
      b.section.source = static_cast<int>(program_->sections.size()) - 1;
      b.section.registers = columns;
      b.section.columns = columns;
      for (size_t i = 0; i < columns.size(); ++i) {
        b.section.slots.push_back({static_cast<int32_t>(i), columns[i], -1});
        b.Load(Operand::Slot(static_cast<int>(i)), columns[i]);
        if (columns[i].IsFloat()) b.Emit(Opcode::CanonF);
        b.Store(static_cast<int>(i));
      }
      if (stage == 0) {
        b.section.label = "distinct rows";
        b.section.sink = Section::Sink::kGroups;
        b.section.keys = static_cast<int32_t>(columns.size());
        b.Emit(Opcode::Group, 0, Operand::Register(0).Pack(), b.section.keys);
      } else {
        b.section.label = "rows";
        b.Emit(Opcode::Emit);
      }
      TESSERA_TRY(Finish(&b, plan_.made_rows));
    }
    return Status::Ok();
  }

  struct Loop {
    Opcode next;
    int join, body, mask;
    size_t skips;  // skips emitted before it belong to what is around it
  };

  const Query& q_;
  const Plan& plan_;
  Assembly& assembly_;
  vm::Program* program_;
  ConstantPool& constants_;
  std::map<int, std::map<int, int>> payload_;  // relation -> column -> payload number
  std::map<int, int> join_of_;                 // relation -> join table
  std::vector<Loop> loops_;
  std::vector<int> skips_;
};

}  // namespace

Result<Code> Generate(const Plan& plan) {
  Assembly assembly;
  TESSERA_TRY(Generator(plan, &assembly).Run().status());
  const Query& query = *plan.query;
  for (int i = 0; i < query.visible; ++i) {
    const Output& o = query.outputs[static_cast<size_t>(i)];
    assembly.program->columns.push_back({o.name, o.expr->type});
  }
  assembly.estimates.resize(assembly.program->sections.size(), -1);
  return Code{std::move(assembly.program), std::move(assembly.estimates)};
}

}  // namespace tessera
