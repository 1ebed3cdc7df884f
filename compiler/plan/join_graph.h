// The relations of a block as a graph: what filters each of them, how many rows pass, and what joins two sets of them.
// Private to compiler/.
//
// Two columns of inner joins that an equality relates are members of one class, and so are columns that both equal a
// third: any two of them can be the key of a join, and one key for each class is enough.
//
// Start at: JoinGraph::Step, JoinGraph::RowsWith. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "compiler/plan/join_cost.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/plan_options.h"

namespace tessera {

/// For each relation the plan of its derived table, or nullptr for a stored table.
using DerivedPlans = std::vector<std::shared_ptr<Plan>>;

/// Whether equalities of inner joins are conditions on pairs, and not keys: join_strategy is one that has no keys.
bool KeysAreConditions(const PlanOptions& options);

/// A set of relations, as bits.
using RelationSet = uint64_t;
inline RelationSet SetOf(size_t relation) { return RelationSet{1} << relation; }
inline bool IsSubset(RelationSet a, RelationSet b) { return (a & ~b) == 0; }

class JoinGraph {
 public:
  /// Only result_rows of the plans in `derived` is read.
  JoinGraph(const Query& q, const PlanOptions& options, const DerivedPlans& derived);

  size_t relations() const { return n_; }
  bool IsInner(size_t r) const { return q_.relations[r].join == JoinKind::kInner; }
  /// Rows of the relation before its filters, and after them.
  double size(size_t r) const { return size_[r]; }
  double filtered_rows(size_t r) const { return size_[r] * selectivity_[r]; }
  /// What it costs to make the texts of a row of the relation that are read after its filters.
  double texts(size_t r) const { return texts_[r]; }
  /// Not kInner: the other relations in its condition, which must be joined before it.
  RelationSet needed(size_t r) const { return needed_[r]; }
  /// The relations that an equality or a condition of its join relates to relation `r`, and `r`.
  RelationSet Neighbours(size_t r) const;
  /// Whether an equality relates the two sets.
  bool HasKey(RelationSet a, RelationSet b) const;

  /// The join of the rows of `side`, which `driver` drives, to those of `joined`: kind, keys, conditions and
  /// uniqueness; and the fraction of the pairs that match, in `fraction`. `probing`: the relation whose columns are the
  /// best to probe with, because they are scanned.
  JoinStep Step(RelationSet joined, int probing, RelationSet side, int driver, double* fraction) const;
  /// Rows of `joined`, which has `rows`, after relation `r` is joined. `unique`: a row finds at most one of `r`.
  double RowsWith(RelationSet joined, double rows, size_t r, bool* unique) const;
  /// The same where the step and the fraction of matching pairs are known.
  double RowsAfter(const JoinStep& step, double rows, double fraction) const;

  /// How the rows of relations `probing` and `side` match, if these are all that there are, stored tables joined by
  /// numbers alone, and a row may find several. Sets matches and meeting of *sides.
  void FindMatches(size_t probing, size_t side, JoinSides* sides) const;

  /// The filters of each relation, the most selective first, and predicates over no relation; they are moved out.
  void TakeFilters(Plan* plan);

 private:
  /// A predicate over several relations, or over a relation that is not joined by an inner join.
  struct Predicate {
    const Expr* expr;
    RelationSet relations;
  };

  void AddConjunct(const Expr& e);
  /// Puts the two columns into one class if `e` equates bare columns of two inner relations.
  bool AddToClasses(const Expr& e);
  void EstimateScan(size_t r);
  void FindTexts();
  /// Whether `e` equates something of `joined`, `*probe`, and something of `side`, `*build`.
  bool IsKey(const Expr& e, RelationSet joined, RelationSet side, const Expr** probe, const Expr** build) const;
  /// Whether at most one row of relation `r` has given values of `keys`.
  bool IsUnique(int r, const std::vector<const Expr*>& keys) const;
  double DistinctKeys(const std::vector<const Expr*>& keys) const;
  /// What the values of equal columns say of a join of two sets of relations.
  struct Meeting {
    double joined_values = 1, side_values = 1;  ///< different ones of each set that the other may have, too
    double joined_part = 1, side_part = 1;      ///< of the different values of each set: those
    double joined_kept = 1, side_kept = 1;      ///< least selectivity of the columns' relations
  };
  /// What is known of the values of a key before it is joined.
  struct KeyValues {
    RelationSet relations = 0;
    double different = 1;
    double kept = 1;  ///< least selectivity of its relations
    double low = 0, width = 0;
    bool has_range = false;
  };
  KeyValues ValuesOf(const Expr& key) const;
  /// Adds keys that are equal to what is known of others of the join, as far as they are of the two sets.
  static void Meet(std::span<const KeyValues> equal, RelationSet joined, RelationSet side, Meeting* m);

  const Query& q_;
  const bool keys_are_conditions_;
  const bool cuts_;  ///< join_strategy cuts both sides, so that it is for inner joins alone
  const size_t n_;
  std::vector<std::vector<const Expr*>> filters_;  ///< per relation
  std::vector<bool> filtered_;                     ///< per relation: it has filters
  std::vector<const Expr*> constants_;
  std::vector<Predicate> predicates_;
  std::vector<std::vector<const Expr*>> classes_;  ///< kColumn
  std::vector<std::vector<KeyValues>> class_values_;
  /// The relations of the two sides of each equality that can be a key; of a class both times those of its members.
  std::vector<std::pair<RelationSet, RelationSet>> key_sides_;
  std::vector<double> size_, selectivity_, texts_;
  std::vector<RelationSet> needed_;
};

}  // namespace tessera
