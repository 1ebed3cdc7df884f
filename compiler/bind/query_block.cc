#include "compiler/bind/query_block.h"

#include <algorithm>

#include "compiler/parse/parser.h"
#include "compiler/query/correlation.h"

namespace tessera {
namespace {

/// A query block counts as this many levels of an expression, because its stack frames are larger.
constexpr int kBlockNesting = 16;
/// As many where it is only named: frames of what comes after the binder.
constexpr int kNamedNesting = 4;

}  // namespace

Status Enclose(const Query& query, BindContext* context, int position) {
  context->deepest = std::max(context->deepest, context->nesting + query.height);
  return context->deepest > kMaxNesting ? NestedTooDeeply(position) : Status::Ok();
}

QueryBlock::QueryBlock(std::string_view sql, const Dialect* dialect, const Snapshot& snapshot) {
  context.sql = sql;
  context.dialect = dialect;
  context.snapshot = &snapshot;
  context.relations = &query->relations;
  context.aggregates = &query->aggregates;
  context.windows = &windows;
  context.ctes = &ctes;
  context.grouping = &grouping;
  context.views = &views_;
}

QueryBlock::QueryBlock(const BindContext& outer, const NameScope* outer_scope)
    : QueryBlock(outer.sql, outer.dialect, *outer.snapshot) {
  context.outer = &outer;
  context.outer_scope = outer_scope;
  context.view = outer.view;
  Enter(outer);
  ctes.outer = outer.ctes;
}

QueryBlock::QueryBlock(const BindContext& outer, std::string_view sql, const Dialect* dialect, const BoundView* view)
    : QueryBlock(sql, dialect, *outer.snapshot) {
  context.view = view;
  Enter(outer);
}

void QueryBlock::Enter(const BindContext& outer) {
  context.now = outer.now;
  context.views = outer.views;
  base_ = context.deepest = context.nesting = outer.nesting + kBlockNesting;
}

std::unique_ptr<Query> QueryBlock::Take() {
  query->height = context.deepest - base_ + kNamedNesting;
  return std::move(query);
}

SqlType LiteralType(const QueryBlock& block, size_t number) {
  const std::vector<SqlType>* const types = block.literal_types;
  return types != nullptr && number < types->size() ? (*types)[number] : SqlType::Text();
}

Status RefuseOuterColumns(const Query& query, const char* what, int position) {
  if (!RefersOutward(query)) return {};
  return Unsupported(std::string(what) + " that refers to a column of an enclosing query is not supported", position,
                     "It cannot be decorrelated: join with the table in the subquery itself.");
}

}  // namespace tessera
