#include "compiler/plan.h"

namespace tessera {

int FindSame(const std::vector<const Expr*>& list, const Expr& e) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i]->SameAs(e)) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace tessera
