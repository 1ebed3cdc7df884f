#include "compiler/rewrite/run_rows.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/parse/parser.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/partial_aggregate.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/subquery_expr.h"
#include "compiler/query/unique_key.h"
#include "compiler/query/value_range.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/chunk/tablet_format.h"

namespace tessera {
namespace {

const SqlType kBigint = SqlType::Of(TypeId::kBigint), kDouble = SqlType::Of(TypeId::kDouble);

/// Runs have to have this number of rows. With fewer, it takes as long to multiply by their number.
constexpr uint64_t kRowsOfRun = 4;
/// Tablets that are looked at before all are, and the most that are opened for it: that takes 10 us each, if no query has read
/// them yet.
constexpr size_t kSampled = 8, kMostTablets = 4096;
/// Levels that what is made of an aggregate, or of its argument, has more than that.
constexpr int kMoreLevels = 4;

/// Whether expressions may become so much higher.
bool MayGrow(const Query& q) {
  int height = HeightAboveGroups(q);
  for (const Aggregate& a : q.aggregates) {
    if (a.argument != nullptr) height = std::max(height, HeightOf(*a.argument));
  }
  return height + kMoreLevels <= kMaxNesting;
}

bool IgnoresDuplicates(const Aggregate& a) { return a.distinct || Info(a.function).ignores_duplicates; }

/// Whether the answer stays the same if rows of a relation come more often.
bool IgnoresDuplicates(const Query& q, const Relation& relation) {
  if (relation.join != JoinKind::kInner) return !GivesRows(relation.join);
  return q.grouped ? std::ranges::all_of(q.aggregates, [](const Aggregate& a) { return IgnoresDuplicates(a); })
                   : q.distinct;
}

class RunRows {
 public:
  RunRows(Query* q, size_t r) : q_(*q), r_(static_cast<int>(r)) {}

  /// Whether the relation can be read as runs of its only column that is read.
  bool Choose() {
    const Relation& relation = q_.relations[static_cast<size_t>(r_)];
    if (relation.table == nullptr || relation.table->runs_of >= 0) return false;
    return FindColumn() && IsStoredInRuns(*relation.table);
  }
  /// Whether all aggregates can be made of rows that stand several times.
  bool CanWeigh() const {
    return q_.grouped && q_.relations[static_cast<size_t>(r_)].join == JoinKind::kInner && MayGrow(q_) &&
           std::ranges::all_of(q_.aggregates, [&](const Aggregate& a) { return CanWeigh(a); });
  }
  /// How many rows need not be read. REQUIRES, here and below: Choose().
  uint64_t saved() const { return q_.relations[static_cast<size_t>(r_)].table->rows - runs_->rows; }

  /// Reads the runs, each once.
  void Read() {
    Relation& relation = q_.relations[static_cast<size_t>(r_)];
    relation.table = std::move(runs_);
    relation.column_names.push_back(relation.table->schema.columns.back().name);
    relation.column_types.push_back(kBigint);
  }
  /// Reads them, each as often as it has rows.
  void ReadWeighed() {
    Read();
    std::vector<Aggregate> before = std::exchange(q_.aggregates, {});
    std::vector<ExprPtr> values;
    for (Aggregate& a : before) values.push_back(Weighed(std::move(a)));
    const auto replace = [&](ExprPtr* e) {
      Substitute(e, [&](const Expr& x) -> ExprPtr {
        if (x.kind != Expr::Kind::kAggregate) return nullptr;
        ExprPtr value = values[static_cast<size_t>(x.index)]->Clone();
        if (value->position < 0) value->position = x.position;
        return value;
      });
    };
    for (ExprPtr& e : q_.having) replace(&e);
    for (Output& o : q_.outputs) replace(&o.expr);
  }

 private:
  bool FindColumn() {
    std::set<int> columns;
    ForEachRoot(q_, [&](const ExprPtr& e) {
      ForEachColumn(*e, [&](const Expr& c) {
        if (c.relation == r_ && c.column != kMarkColumn) columns.insert(c.column);
      });
    });
    if (columns.size() != 1) return false;
    column_ = *columns.begin();
    return true;
  }

  bool IsStoredInRuns(const TableInfo& table) {
    const size_t tablets = table.tablets.size();
    if (tablets == 0 || tablets > kMostTablets) return false;
    uint64_t rows = 0, runs = 0;
    for (size_t k = 0; k < std::min(kSampled, tablets); ++k) {
      const Tablet& tablet = *table.tablets[k * tablets / std::min(kSampled, tablets)];
      const Result<std::shared_ptr<const Tablet>> as_runs = tablet.Runs(column_, 0);
      if (!as_runs.ok()) return false;  // the scan of the table says why
      rows += tablet.rows();
      runs += (*as_runs)->rows();
      if (k == 0 && runs > rows / kRowsOfRun) return false;
    }
    if (runs > rows / kRowsOfRun) return false;
    Result<std::shared_ptr<const TableInfo>> all = RunsOf(table, column_, nullptr);
    if (!all.ok() || (*all)->rows > table.rows / kRowsOfRun) return false;
    runs_ = std::move(*all);
    return true;
  }

  bool CanWeigh(const Aggregate& a) const {
    if (IgnoresDuplicates(a) || IsCount(a)) return true;
    if (a.function != AggregateFunction::kSum && a.function != AggregateFunction::kAvg) return false;
    const SqlType& type = a.argument->type;
    if (!type.IsInteger() && type.id != TypeId::kDecimal) return false;
    // (Otherwise a product might be out of range where the sum is not, and the sum where a mean is not.)
    const StatisticsRanges statistics(q_);
    const ValueRange range = ExprRanges(statistics).Range(*a.argument),
                     product = Product(range, {0, kGreatestTabletRows});
    if (a.function == AggregateFunction::kAvg && !range.Fits64()) return false;
    const int128_t most = PowerOf10(38) - 1;
    return product.Within(-most, most);
  }

  ExprPtr Rows() const {
    return MakeColumn(r_, static_cast<int>(q_.relations[static_cast<size_t>(r_)].column_types.size()) - 1, kBigint,
                      false, -1);
  }
  /// Adds an aggregate, once. Returns its value above the grouping.
  ExprPtr Add(Aggregate a, bool nullable) {
    const auto same = std::ranges::find_if(q_.aggregates, [&](const Aggregate& b) {
      return a.function == b.function && a.distinct == b.distinct && a.type == b.type && a.argument != nullptr &&
             b.argument != nullptr && a.argument->SameAs(*b.argument);
    });
    const int index = static_cast<int>(same - q_.aggregates.begin());
    const SqlType type = a.type;
    if (same == q_.aggregates.end()) q_.aggregates.push_back(std::move(a));
    return MakeLeaf(Expr::Kind::kAggregate, index, type, nullable);
  }
  ExprPtr AddSum(ExprPtr of, const SqlType& type, int position) {
    Aggregate a;
    a.function = AggregateFunction::kSum;
    a.argument = std::move(of);
    a.type = type;
    a.position = position;
    return Add(std::move(a), true);
  }
  /// Adds what counts the rows of which `x` is not NULL; nullptr: all.
  ExprPtr AddCount(const Expr* x, int position) {
    ExprPtr rows = Rows();
    if (x != nullptr && x->nullable) {
      rows = MakeFunction(
          Function::kCase, kBigint, -1,
          ExprList(MakeTest(Function::kIsNull, x->Clone()), MakeConstant(Value::Int(kBigint, 0), -1), std::move(rows)));
    }
    ExprPtr count = AddSum(std::move(rows), kBigint, position);
    // Of no rows at all, which only the group without keys can have, the sum is NULL.
    if (q_.group_by.empty()) return CountOr(std::move(count), 0);
    count->nullable = false;
    return count;
  }
  ExprPtr AddWeighedSum(const Expr& x, const SqlType& type, int position) {
    const SqlType product = SqlType::Decimal(38, x.type.scale);
    return AddSum(MakeFunction(Function::kMul, product, position,
                               ExprList(MakeCast(x.Clone(), product), MakeCast(Rows(), SqlType::Decimal(38, 0)))),
                  type, position);
  }
  /// Adds what makes the aggregate of rows that stand several times. Returns its value above the grouping.
  ExprPtr Weighed(Aggregate a) {
    if (IsCount(a) && !a.distinct) return AddCount(a.argument.get(), a.position);
    if (IgnoresDuplicates(a)) {
      const bool nullable = !IsCount(a);
      return Add(std::move(a), nullable);
    }
    if (a.function == AggregateFunction::kSum) return AddWeighedSum(*a.argument, a.type, a.position);
    const SqlType sum = SqlType::Decimal(38, a.argument->type.scale);
    ExprPtr dividend = MakeCast(AddWeighedSum(*a.argument, sum, a.position), kDouble);
    ExprPtr divisor = MakeCast(AddCount(a.argument.get(), a.position), kDouble);
    return MakeFunction(Function::kDiv, kDouble, a.position, ExprList(std::move(dividend), std::move(divisor)));
  }

  Query& q_;
  const int r_;
  int column_ = -1;
  std::shared_ptr<const TableInfo> runs_;
};

/// Whether a device has nothing to do for a row but to add it up. That takes it no time, whereas runs are two columns that
/// have to come and be unpacked.
bool IsPlainSum(const Query& q) {
  return q.grouped && q.group_by.empty() && q.relations.size() == 1 &&
         std::ranges::none_of(q.aggregates, &Aggregate::distinct);
}

void ReadRunsOf(Query* query, bool on_device, std::set<const Query*>* done) {
  if (!done->insert(query).second) return;
  for (const Relation& r : query->relations) {
    if (r.query != nullptr) ReadRunsOf(r.query.get(), on_device, done);
  }
  for (const auto& more : query->union_all) ReadRunsOf(more.get(), on_device, done);
  // Of random() each row has its own.
  if (query->relations.size() > 64 || HasVolatile(*query) || (on_device && IsPlainSum(*query))) return;
  std::optional<RunRows> best;  // with weights, which on two sides would have to be multiplied
  for (size_t r = 0; r < query->relations.size(); ++r) {
    RunRows runs(query, r);
    const bool once = IgnoresDuplicates(*query, query->relations[r]);
    if ((!once && !runs.CanWeigh()) || !runs.Choose()) continue;
    if (once) {
      runs.Read();
    } else if (!best || best->saved() < runs.saved()) {
      best.emplace(std::move(runs));
    }
  }
  if (best) best->ReadWeighed();
}

}  // namespace

std::string NameOfStored(const Relation& relation) {
  const TableInfo& table = *relation.table;
  if (table.runs_of < 0) return ShownName(table.schema.name);
  return "runs of " + relation.column_names[static_cast<size_t>(table.runs_of)] + " in " + ShownName(table.schema.name);
}

void ReadRuns(Query* query, bool on_device) {
  std::set<const Query*> done;
  ReadRunsOf(query, on_device, &done);
}

}  // namespace tessera
