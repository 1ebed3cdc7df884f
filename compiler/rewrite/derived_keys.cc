#include "compiler/rewrite/derived_keys.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "compiler/parse/parser.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/value_range.h"

namespace tessera {
namespace {

class DerivedKeys {
 public:
  explicit DerivedKeys(Query* query)
      : q_(*query), statistics_(*query), ranges_(statistics_), numbers_(query->group_by.size(), -1) {}

  void LeaveOut() {
    int kept = 0;
    for (size_t k = 0; k < numbers_.size(); ++k) {
      if (!IsDerived(*q_.group_by[k])) numbers_[k] = kept++;
    }
    if (kept == 0 || kept == static_cast<int>(numbers_.size())) return;
    if (HeightOfKeys(q_) + HeightAboveGroups(q_) > kMaxNesting) return;
    for (Output& o : q_.outputs) Replace(&o.expr);
    for (ExprPtr& e : q_.having) Replace(&e);
    std::vector<ExprPtr> keys;
    for (size_t k = 0; k < numbers_.size(); ++k) {
      if (numbers_[k] >= 0) keys.push_back(std::move(q_.group_by[k]));
    }
    q_.group_by = std::move(keys);
  }

 private:
  /// The key that is this column; -1 if none is, or if its values may differ within a group: 0.0 and -0.0 do, and
  /// intervals of one length.
  int KeyOf(const Expr& column) const {
    if (column.type.IsFloat() || column.type.id == TypeId::kInterval) return -1;
    const auto same = [&](const ExprPtr& key) { return key->SameAs(column); };
    const auto key = std::find_if(q_.group_by.begin(), q_.group_by.end(), same);
    return key == q_.group_by.end() ? -1 : static_cast<int>(key - q_.group_by.begin());
  }

  /// A key that can fail stays, because what is computed of the groups may not be computed for all of them, or at all.
  /// (Grouping brings floating-point numbers into a form of their own.)
  bool IsDerived(const Expr& key) const {
    return key.kind == Expr::Kind::kFunction && !key.type.IsFloat() && !IsVolatile(key) && IsOfKeys(key) &&
           !ranges_.CanFailAnywhere(key);
  }
  bool IsOfKeys(const Expr& e) const {
    if (e.kind == Expr::Kind::kColumn) return KeyOf(e) >= 0;
    if (e.kind != Expr::Kind::kFunction) return e.kind == Expr::Kind::kConstant;
    return std::all_of(e.args.begin(), e.args.end(), [&](const ExprPtr& a) { return IsOfKeys(*a); });
  }

  void Replace(ExprPtr* e) const {
    Substitute(e, [&](const Expr& x) -> ExprPtr {
      if (x.kind != Expr::Kind::kGroup) return nullptr;
      const auto k = static_cast<size_t>(x.index);
      if (numbers_[k] >= 0) return Group(numbers_[k], x);
      ExprPtr value = q_.group_by[k]->Clone();
      Substitute(&value, [&](const Expr& column) {
        return column.kind != Expr::Kind::kColumn ? nullptr
                                                  : Group(numbers_[static_cast<size_t>(KeyOf(column))], column);
      });
      value->position = x.position;
      return value;
    });
  }
  static ExprPtr Group(int number, const Expr& of) {
    ExprPtr key = of.Clone();
    key->kind = Expr::Kind::kGroup;
    key->index = number;
    return key;
  }

  Query& q_;
  const StatisticsRanges statistics_;
  const ExprRanges ranges_;
  std::vector<int> numbers_;  ///< by key: its number among those that are kept, -1 if it is left out
};

}  // namespace

void LeaveOutDerivedKeys(Query* query) {
  if (query->grouped && query->group_by.size() > 1) DerivedKeys(query).LeaveOut();
}

}  // namespace tessera
