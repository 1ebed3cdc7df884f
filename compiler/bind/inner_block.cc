#include "compiler/bind/inner_block.h"

#include <algorithm>

#include "compiler/bind/limit.h"
#include "compiler/bind/query_block.h"

namespace tessera {
namespace {

bool HasSubquery(const ParseNode* node) {
  if (node == nullptr || node->Is(Tag::kSubLink)) return node != nullptr;
  for (const ParseNode& n : *node) {
    if (HasSubquery(&n)) return true;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<Query>> BindQueryBlock(const ParseNode& select, BindContext* outer, const NameScope* scope) {
  QueryBlock block(*outer, scope);
  TESSERA_TRY(block.BindClauses(select));
  outer->deepest = std::max(outer->deepest, block.context.deepest);
  return block.Take();
}

Result<std::unique_ptr<Query>> BindViewBlock(const ParseNode& select, std::string_view sql, const Dialect& dialect,
                                             BindContext* outer, const BoundView* view) {
  QueryBlock block(*outer, sql, &dialect, view);
  TESSERA_TRY(block.BindClauses(select));
  outer->deepest = std::max(outer->deepest, block.context.deepest);
  return block.Take();
}

Result<std::unique_ptr<Query>> BindArmBlock(const ParseNode& select, BindContext* outer) {
  QueryBlock block(*outer, nullptr);
  const ParseNode* const limit = select.Get(Field::k_limitCount);
  block.keeps_literals = select.Get(Field::k_distinctClause) == nullptr &&
                         select.Text(Field::k_limitOption) != "LIMIT_OPTION_WITH_TIES" &&
                         (limit == nullptr || !IsPercentage(*limit, block.context)) && !HasSubquery(limit) &&
                         !HasSubquery(select.Get(Field::k_limitOffset));
  TESSERA_TRY(block.BindClauses(select));
  outer->deepest = std::max(outer->deepest, block.context.deepest);
  return block.Take();
}

}  // namespace tessera
