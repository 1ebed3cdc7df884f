// FROM -> relations of a query block, and what names mean in its other clauses. Private to compiler/.
//
// Start at: FromBinder::Bind. Tables and derived tables are in from_binder.cc, joins in bind_join.cc. One thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/parse_tree.h"
#include "compiler/query_block.h"

namespace tessera {

class FromBinder {
 public:
  /// `block` gets the relations, and the conditions of inner joins.
  explicit FromBinder(QueryBlock* block) : block_(*block), context_(block->context), query_(*block->query) {}

  /// The items of the clause; their names go to QueryBlock::scope.
  Status Bind(const ParseNode& list);

 private:
  // from_binder.cc
  Status BindItem(const ParseNode& item, NameScope* scope);
  Status BindTable(const ParseNode& item, NameScope* scope);
  Status BindDerived(const ParseNode& item, NameScope* scope);
  /// Adds a relation under its alias and its columns' names; `alias` is an Alias node or nullptr.
  Status AddRelation(Relation relation, const std::string& table, const ParseNode* alias, int position,
                     NameScope* scope);
  /// The number of the relation, now that the block has it.
  Result<int> PushRelation(Relation relation, int position);

  // bind_join.cc
  Status BindJoin(const ParseNode& join, NameScope* scope);
  /// (a JOIN b ...) AS j: its columns are those of j, and the names inside are hidden.
  static Status RenameJoin(const ParseNode& alias, int position, NameScope* scope);
  /// One side of an outer join as one relation of this block: a join becomes a derived table.
  Status BindSide(const ParseNode& item, NameScope* scope);
  /// Everything that `scope` of another block names, as a relation of this one.
  Result<int> AddSide(std::shared_ptr<Query> query, NameScope* scope, int position);
  /// The condition of a join: ON, USING or NATURAL; and the names of both sides together. Columns of USING are the
  /// right side's if `from_right`.
  Status JoinCondition(const ParseNode& join, const NameScope& left, const NameScope& right, bool from_right,
                       std::vector<ExprPtr>* condition, NameScope* scope);
  Status BindFullJoin(const ParseNode& join, NameScope* scope);
  /// Conditions with subqueries that read only the filled side of an outer join are taken out of `condition` and become
  /// a filter of that side. Errors: one over both sides.
  Status FilterBySubqueries(int filled, const char* join, std::vector<ExprPtr>* condition);

  QueryBlock& block_;
  BindContext& context_;
  Query& query_;
};

/// Adds the names of a part of FROM to `scope`. Errors: one name twice.
Status AddVariables(const NameScope& part, NameScope* scope);

/// The byte offset of a FROM item, or of the first thing in it that has one.
int PositionOf(const ParseNode& item);

}  // namespace tessera
