#include "compiler/plan/plan.h"

namespace tessera {

bool IsRowOfValues(const Plan& plan) {
  const Query& q = *plan.query;
  return q.relations.empty() && !q.grouped && !q.distinct && q.order_by.empty() && q.limit < 0 && q.offset == 0;
}

int FindSame(const std::vector<const Expr*>& list, const Expr& e) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i]->SameAs(e)) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace tessera
