// Sections that group, and what is above the groups.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/generate/block_generator.h"
#include "vm/meaning/aggregate.h"

namespace tessera {

using vm::Opcode;
using vm::Operand;
using vm::Section;

namespace {

/// DISTINCT changes nothing for MIN and MAX.
bool NeedsDistinct(const Aggregate& a) { return a.distinct && !Info(a.function).ignores_duplicates; }

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

/// Whether values of a wide type are added up in 64 bits: their range decides, not their type.
bool FeedsNarrow(const SectionBuilder& b, Opcode op, const Expr* argument) {
  return argument != nullptr && IsWide(argument->type) && (op == Opcode::SumI || op == Opcode::Count) &&
         b.Range(*argument).Fits64();
}

/// The machine's aggregates for one of SQL, over values of `type`.
AggregateColumns Lower(const Aggregate& a, SectionBuilder* b, std::vector<const Expr*>* arguments) {
  Section* const s = &b->section;
  const Expr* x = a.argument.get();
  const bool narrow = x != nullptr && FeedsNarrow(*b, Opcode::SumI, x) && Info(a.function).state == StateRule::kSum;
  const SqlType bigint = SqlType::Of(TypeId::kBigint);
  auto count = [&] {
    if (x == nullptr || !x->nullable) return AddAggregate(s, Opcode::CountRows, bigint, nullptr, arguments);
    return AddAggregate(s, IsWide(x->type) && !narrow ? Opcode::CountW : Opcode::Count, bigint, x, arguments);
  };
  const AggregateInfo& info = Info(a.function);
  AggregateColumns l;
  if (info.state == StateRule::kCount) {
    l.value = count();
    return l;
  }
  const StorageClass storage = narrow ? StorageClass::kInt : x->type.storage();
  l.value = AddAggregate(s, info.opcodes.For(storage), StateType(a.function, x->type), x, arguments);
  if (info.counted) l.count = count();
  return l;
}

/// Whether `part` is an argument somewhere in `e`.
bool HasPart(const Expr& e, const Expr& part) {
  return std::any_of(e.args.begin(), e.args.end(),
                     [&](const ExprPtr& a) { return a->SameAs(part) || HasPart(*a, part); });
}

/// The instructions that feed the section's aggregates; one load serves all aggregates over the same argument.
Status FeedAggregates(SectionBuilder* b, const std::vector<const Expr*>& arguments) {
  std::vector<bool> fed(arguments.size());
  for (const size_t i : FeedingOrder(arguments)) {
    if (fed[i]) continue;
    const bool narrow = FeedsNarrow(*b, b->section.aggregates[i].op, arguments[i]);
    if (arguments[i] != nullptr) TESSERA_TRY(narrow ? b->NarrowValue(*arguments[i]) : b->Value(*arguments[i]));
    for (size_t k = 0; k < arguments.size(); ++k) {
      if (fed[k]) continue;
      const bool same = arguments[k] == nullptr ? arguments[i] == nullptr
                                                : arguments[i] != nullptr && arguments[k]->SameAs(*arguments[i]);
      if (!same || FeedsNarrow(*b, b->section.aggregates[k].op, arguments[k]) != narrow) continue;
      fed[k] = true;
      b->Emit(b->section.aggregates[k].op, static_cast<int>(k));
    }
  }
  return Status::Ok();
}

/// Columns of a group section: keys, then aggregates; and the AggregateColumns numbers become column numbers.
void SetColumns(Section* s, const std::vector<const Expr*>& keys, std::vector<AggregateColumns>* lowered) {
  s->keys = static_cast<int32_t>(keys.size());
  for (const Expr* k : keys) s->columns.push_back(k->type);
  for (const vm::AggregateSpec& a : s->aggregates) {
    s->columns.push_back(a.type);
    for (const vm::AccumulatorSpec word : vm::ColumnClasses(a.op).subspan(1)) s->columns.push_back(vm::WordType(word));
  }
  const std::vector<size_t> columns = vm::AggregateColumns(*s);
  for (AggregateColumns& l : *lowered) {
    if (l.value >= 0) l.value = static_cast<int>(columns[static_cast<size_t>(l.value)]);
    if (l.count >= 0) l.count = static_cast<int>(columns[static_cast<size_t>(l.count)]);
  }
}

/// The aggregates of the second grouping, over the rows of the first: one for each column of that and opcode.
class SecondGroups {
 public:
  SecondGroups(const FirstGroups& first, SectionBuilder* b) : first_(first), b_(*b) {}

  /// One without DISTINCT, of whose groups the first grouping has the states.
  AggregateColumns Combined(const AggregateColumns& partial) {
    AggregateColumns l;
    l.value = Combine(partial.value);
    if (partial.count >= 0) l.count = Combine(partial.count);
    return l;
  }

  /// One with DISTINCT, over keys of the first grouping.
  AggregateColumns Distinct(const Aggregate& a) {
    size_t d = 0;
    while (!first_.distinct[d]->SameAs(*a.argument)) ++d;
    const int column = static_cast<int>(first_.group_keys + d);
    const SqlType& type = first_.distinct[d]->type;
    // A count is added up like the partial ones: per row of the first grouping 0 or 1.
    auto count = [&] {
      return Feed(column, IsWide(type) ? Opcode::CountW : Opcode::Count, SqlType::Of(TypeId::kBigint));
    };
    const AggregateInfo& info = Info(a.function);
    AggregateColumns l;
    if (info.state == StateRule::kCount) {
      l.value = count();
    } else {
      l.value = Feed(column, info.opcodes.For(type.storage()), StateType(a.function, type));
      if (info.counted) l.count = count();
    }
    return l;
  }

 private:
  int Feed(int column, Opcode op, const SqlType& type) {
    for (size_t i = 0; i < fed_.size(); ++i) {
      if (fed_[i] == std::pair(column, op)) return static_cast<int>(i);
    }
    fed_.emplace_back(column, op);
    b_.section.aggregates.push_back({op, type});
    b_.Load(Operand::Slot(column), first_.columns[static_cast<size_t>(column)]);
    b_.Emit(op, static_cast<int>(fed_.size()) - 1);
    return static_cast<int>(fed_.size()) - 1;
  }

  /// Of partial states of the first grouping, which begin at `column`.
  int Combine(int column) {
    const std::vector<size_t>& states = first_.states;
    const size_t number =
        static_cast<size_t>(std::find(states.begin(), states.end(), static_cast<size_t>(column)) - states.begin());
    const vm::AggregateSpec& a = first_.aggregates[number];
    const size_t words = states[number + 1] - states[number];
    if (words > 1) {
      // A group has all its values in the row without a distinct one; in its other rows the state is NULL. So there is
      // nothing to merge: the greatest of each word is the state.
      int first = -1;
      for (size_t k = 0; k < words; ++k) {
        const SqlType& type = first_.columns[states[number] + k];
        const Opcode greatest = IsWide(type) ? Opcode::MaxW : type.IsFloat() ? Opcode::MaxF : Opcode::MaxI;
        const int one = Feed(column + static_cast<int>(k), greatest, type);
        if (k == 0) first = one;
      }
      return first;
    }
    const bool is_count = a.op == Opcode::CountRows || a.op == Opcode::Count || a.op == Opcode::CountW;
    if (is_count) return Feed(column, Opcode::SumI, SqlType::Decimal(38, 0));
    return Feed(column, a.op == Opcode::SumI ? Opcode::SumW : a.op, a.type);
  }

  const FirstGroups& first_;
  SectionBuilder& b_;
  std::vector<std::pair<int, Opcode>> fed_;
};

}  // namespace

std::vector<size_t> FeedingOrder(const std::vector<const Expr*>& arguments) {
  std::vector<size_t> order;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto whole = std::find_if(order.begin(), order.end(), [&](size_t k) {
      return arguments[i] != nullptr && arguments[i]->kind == Expr::Kind::kFunction && arguments[k] != nullptr &&
             HasPart(*arguments[k], *arguments[i]);
    });
    order.insert(whole, i);
  }
  return order;
}

SqlType StateType(AggregateFunction function, const SqlType& argument) {
  switch (Info(function).state) {
    case StateRule::kArgument:
    case StateRule::kValues:  // not here any more
      return argument;
    case StateRule::kSum:
      if (!argument.IsFloat()) return SqlType::Decimal(38, argument.scale);
      [[fallthrough]];
    case StateRule::kWords:
      return vm::WordType(vm::ColumnClasses(Info(function).opcodes.For(argument.storage())).front());
    case StateRule::kCount:
      break;
  }
  return SqlType::Of(TypeId::kBigint);
}

bool BlockGenerator::HasDistinctAggregate() const {
  return std::any_of(q_.aggregates.begin(), q_.aggregates.end(), [](const Aggregate& a) { return NeedsDistinct(a); });
}

std::vector<const Expr*> BlockGenerator::GroupKeys() const {
  std::vector<const Expr*> keys;
  for (const ExprPtr& e : q_.group_by) keys.push_back(e.get());
  return keys;
}

Status BlockGenerator::GroupBy(const std::vector<const Expr*>& keys, SectionBuilder* b) {
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

Status BlockGenerator::GroupedDirectly() {
  PipelineScope scope(q_, plan_.driver, &plan_.computed);
  SectionBuilder b(program_, &constants_, &scope);
  b.section.sink = Section::Sink::kGroups;
  AnnounceJoined(&b);
  TESSERA_TRY(Front(&b, &scope));
  const std::vector<const Expr*> keys = GroupKeys();
  TESSERA_TRY(GroupBy(keys, &b));
  std::vector<const Expr*> arguments;
  std::vector<AggregateColumns> lowered;
  for (const Aggregate& a : q_.aggregates) lowered.push_back(Lower(a, &b, &arguments));
  TESSERA_TRY(FeedAggregates(&b, arguments));
  CloseLoops(&b);
  SetColumns(&b.section, keys, &lowered);
  TESSERA_TRY(Finish(&b, plan_.made_rows));
  return AboveGroups(lowered);
}

Result<FirstGroups> BlockGenerator::GroupFirst() {
  FirstGroups first;
  first.keys = GroupKeys();
  first.group_keys = first.keys.size();
  std::vector<const Expr*>& distinct = first.distinct;
  for (const Aggregate& a : q_.aggregates) {
    if (!NeedsDistinct(a)) continue;
    auto same = [&](const Expr* e) { return e->SameAs(*a.argument); };
    if (std::none_of(distinct.begin(), distinct.end(), same)) distinct.push_back(a.argument.get());
  }
  std::vector<const Expr*>& keys = first.keys;
  if (keys.size() + distinct.size() > vm::kMaxGroupingKeys) {
    return Unsupported(fmt::format("more than {} keys and arguments of aggregates with DISTINCT are not supported",
                                   vm::kMaxGroupingKeys),
                       distinct[0]->position, "Compute some of them in a query of their own.");
  }
  PipelineScope scope(q_, plan_.driver, &plan_.computed);
  SectionBuilder b(program_, &constants_, &scope);
  b.section.sink = Section::Sink::kGroups;
  AnnounceJoined(&b);
  TESSERA_TRY(Front(&b, &scope));
  const int first_register = static_cast<int>(b.section.registers.size());
  for (const Expr* k : keys) b.section.registers.push_back(k->type);
  for (const Expr* d : distinct) b.section.registers.push_back(d->type);
  keys.insert(keys.end(), distinct.begin(), distinct.end());
  for (size_t k = 0; k < first.group_keys; ++k) {
    TESSERA_TRY(b.Key(*keys[k]));
    b.Store(first_register + static_cast<int>(k));
  }
  std::vector<const Expr*> arguments;
  first.partial.resize(q_.aggregates.size());
  bool plain = false;
  for (size_t i = 0; i < q_.aggregates.size(); ++i) {
    if (NeedsDistinct(q_.aggregates[i])) continue;
    first.partial[i] = Lower(q_.aggregates[i], &b, &arguments);
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
      b.Store(first_register + static_cast<int>(first.group_keys + d));
    }
    b.Emit(Opcode::Group, 0, operand, key_count);
    if (turn < 0) TESSERA_TRY(FeedAggregates(&b, arguments));
  }
  CloseLoops(&b);
  SetColumns(&b.section, keys, &first.partial);
  first.columns = b.section.columns;
  first.aggregates = b.section.aggregates;
  first.states = vm::AggregateColumns(b.section);
  TESSERA_TRY(Finish(&b, -1));
  return first;
}

Status BlockGenerator::GroupedTwice() {
  TESSERA_ASSIGN(FirstGroups first, GroupFirst());
  const int source = static_cast<int>(program_->sections.size()) - 1;
  const std::vector<AggregateColumns> none;
  GroupScope no_scope(q_, first.columns, none);
  SectionBuilder c(program_, &constants_, &no_scope);
  c.section.source_kind = Section::Source::kSection;
  c.section.source = source;
  c.section.sink = Section::Sink::kGroups;
  c.section.label = "groups of distinct values";
  for (const SqlType& t : first.columns)
    c.section.slots.push_back({static_cast<int32_t>(c.section.slots.size()), t, -1});
  for (size_t k = 0; k < first.group_keys; ++k) {
    c.section.registers.push_back(first.keys[k]->type);
    c.Load(Operand::Slot(static_cast<int>(k)), first.keys[k]->type);
    c.Store(static_cast<int>(k));
  }
  c.Emit(Opcode::Group, 0, first.group_keys == 0 ? 0 : Operand::Register(0).Pack(),
         static_cast<int32_t>(first.group_keys));
  SecondGroups second(first, &c);
  std::vector<AggregateColumns> lowered;
  for (size_t i = 0; i < q_.aggregates.size(); ++i) {
    const Aggregate& a = q_.aggregates[i];
    lowered.push_back(NeedsDistinct(a) ? second.Distinct(a) : second.Combined(first.partial[i]));
  }
  first.keys.resize(first.group_keys);
  SetColumns(&c.section, first.keys, &lowered);
  TESSERA_TRY(Finish(&c, plan_.made_rows));
  return AboveGroups(lowered);
}

Status BlockGenerator::AboveGroups(const std::vector<AggregateColumns>& lowered) {
  Note(PlanSections::Part::kGroups);
  const int source = static_cast<int>(program_->sections.size()) - 1;
  const std::vector<SqlType> columns = program_->sections.back().columns;
  GroupScope scope(q_, columns, lowered);
  SectionBuilder b(program_, &constants_, &scope);
  b.section.source_kind = Section::Source::kSection;
  b.section.source = source;
  b.section.label = "groups";
  for (size_t i = 0; i < EmittedOutputs(q_); ++i) b.section.registers.push_back(q_.outputs[i].expr->type);
  b.section.columns = b.section.registers;
  for (const ExprPtr& h : q_.having) b.WillKeep(*h);
  for (size_t i = 0; i < EmittedOutputs(q_); ++i) b.WillEvaluate(*q_.outputs[i].expr);
  for (const ExprPtr& h : q_.having) TESSERA_TRY(b.Keep(*h));
  TESSERA_TRY(Outputs(q_, &b));
  TESSERA_TRY(Finish(&b, q_.having.empty() ? plan_.made_rows : -1));
  Note(PlanSections::Part::kAbove);
  return Status::Ok();
}

}  // namespace tessera
