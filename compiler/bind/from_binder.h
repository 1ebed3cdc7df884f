// FROM -> relations of a query block, and what names mean in its other clauses. Private to compiler/.
//
// Start at: FromBinder::Bind. Tables and derived tables are in from_binder.cc, joins in bind_join.cc. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/bind/query_block.h"
#include "compiler/parse/parse_tree.h"

namespace tessera {

class FromBinder {
 public:
  /// A function in FROM: what binds its call. `item`: what may have an alias and WITH ORDINALITY.
  using TableFunction = Status (FromBinder::*)(const ParseNode& item, const ParseNode& call, const std::string& name,
                                               NameScope* scope);
  /// The row of table_functions.def of that name; nullptr: there is none.
  static TableFunction FindTableFunction(std::string_view name);

  /// `block` gets the relations and the conditions of inner joins.
  explicit FromBinder(QueryBlock* block) : block_(*block), context_(block->context), query_(*block->query) {}

  /// Binds the items of the clause; their names go to QueryBlock::scope.
  Status Bind(const ParseNode& list);
  /// The same of one item.
  Status BindOne(const ParseNode& item);
  /// Binds the table whose rows a statement changes, the first relation of the block. `numbered`: see NumberRows.
  Status BindTarget(const ParseNode& item, std::shared_ptr<const TableInfo> numbered);
  // bind_view.cc
  /// The view that the name means in the block, or nullptr. Errors: the block belongs to the query of that view.
  Result<const ViewSchema*> FindViewNamed(std::string_view name, int position) const;
  /// The rows of a view that the name at `position` means, under its name. Errors, which say that they are in the view: its
  /// query cannot be bound any more.
  Result<Relation> ViewRelation(const ViewSchema& view, int position);
  /// Adds the rows of a function in the select list, as if it stood last in FROM, and gives their value.
  Result<ExprPtr> AddRows(const ParseNode& call);
  /// Adds rows that several calls in a select list make together, of arrays: their number from 1, up to the elements of the
  /// longest. REQUIRES: IsNumbered() of each.
  Result<ExprPtr> AddNumbers(const std::vector<const ParseNode*>& calls);
  /// The value of one of these calls in the row of that number; NULL after its array's end.
  Result<ExprPtr> NumberedValue(const ParseNode& call, ExprPtr number);

 private:
  // from_binder.cc
  Status BindItem(const ParseNode& item, NameScope* scope);
  Status BindTable(const ParseNode& item, NameScope* scope);
  /// The table or the view that a RangeVar names, under its name.
  Result<Relation> NamedRelation(const ParseNode& item);
  Status BindDerived(const ParseNode& item, NameScope* scope);
  /// TABLESAMPLE.
  Status BindSample(const ParseNode& item, NameScope* scope);
  /// bind_series.cc: a function that makes rows.
  Status BindRows(const ParseNode& item, NameScope* scope);
  /// bind_macro.cc: a call of a macro of a table.
  Status BindMacro(const Macro& macro, const ParseNode& item, const ParseNode& call, NameScope* scope);
  /// A call of generate_series or range. `item`: what may have an alias and WITH ORDINALITY.
  Status BindSeries(const ParseNode& item, const ParseNode& call, const std::string& name, NameScope* scope);
  /// tessera_chunks('table')
  Status BindChunks(const ParseNode& item, const ParseNode& call, const std::string& name, NameScope* scope);
  /// tessera_cache()
  Status BindCache(const ParseNode& item, const ParseNode& call, const std::string& name, NameScope* scope);
  /// duckdb_tables(), tessera_queries() and their kin.
  Status BindCatalogCall(const ParseNode& item, const ParseNode& call, const std::string& name, NameScope* scope);
  Status BindPragma(const ParseNode& item, const ParseNode& call, const std::string& name, NameScope* scope);
  /// bind_file.cc: 'a.csv', read_csv('a.csv', ...) and their kin.
  Status BindFile(const ParseNode& item, const ParseNode& call, const std::string& name, NameScope* scope);
  /// lake.t AT (VERSION => 3)
  Status BindMoment(const ParseNode& item, const ParseNode& call, NameScope* scope);
  /// The value of a row of a series of integers that are not all constants; `values` gets the relation that it is over,
  /// whose column 2 is the row's number.
  Result<ExprPtr> VaryingSeries(std::vector<ExprPtr> args, bool inclusive, const std::string& name, int position,
                                Query* values);
  /// bind_unnest.cc: a call of a function that makes rows of a list.
  Status BindUnnest(const ParseNode& item, const ParseNode& call, const std::string& name, NameScope* scope);
  /// What a function in FROM sees: the tables before it.
  Status AddVisible(NameScope* visible) const;
  /// Adds the rows of a function. `number`: the value of WITH ORDINALITY.
  Status AddValues(const ParseNode& item, const std::string& name, int position, std::shared_ptr<Query> values,
                   ExprPtr value, ExprPtr number, NameScope* scope);
  /// Adds a relation under its alias and its columns' names; `alias` is an Alias node or nullptr.
  Status AddRelation(Relation relation, const std::string& table, const ParseNode* alias, int position,
                     NameScope* scope);
  /// Adds the relation to the block and returns its number.
  Result<int> PushRelation(Relation relation, int position);

  // bind_join.cc
  Status BindJoin(const ParseNode& join, NameScope* scope);
  /// (a JOIN b ...) AS j: its columns are those of j, and the names inside are hidden.
  static Status RenameJoin(const ParseNode& alias, int position, NameScope* scope);
  /// Makes one side of an outer join one relation of this block: a join becomes a derived table.
  Status BindSide(const ParseNode& item, NameScope* scope);
  /// Makes everything that `scope` of another block names one relation of this block.
  Result<int> AddSide(std::shared_ptr<Query> query, NameScope* scope, int position);
  /// Binds the condition of a join (ON, USING or NATURAL) and merges the names of both sides. Columns of USING are the
  /// right side's if `from_right`.
  Status JoinCondition(const ParseNode& join, const NameScope& left, const NameScope& right, bool from_right,
                       std::vector<ExprPtr>* condition, NameScope* scope);
  Status BindFullJoin(const ParseNode& join, NameScope* scope);
  /// bind_asof.cc: ASOF JOIN.
  Status BindAsOf(const ParseNode& join, NameScope* scope);
  /// Takes conditions with subqueries that need a row of relation `filled` of the block out of `condition`, that of its
  /// join, and makes them a filter of that relation, which becomes a derived table. It may refer to the other relations.
  static void FilterBySubqueries(int filled, Query* block, std::vector<ExprPtr>* condition);

  QueryBlock& block_;
  BindContext& context_;
  Query& query_;
  std::vector<const NameScope*> before_;  ///< what LATERAL sees: items and sides of joins before that being bound
  size_t joins_ = 0;                      ///< around the item that is being bound; each adds a relation to the block
};

/// Adds the names of a part of FROM to `scope`. Errors: a name that is there twice.
Status AddVariables(const NameScope& part, NameScope* scope);

/// The relation of a table, with its columns, under its name.
Relation StoredTable(std::shared_ptr<const TableInfo> table);
/// The rows of `one`, each as often as its last output says, with their columns, and after these their number.
std::shared_ptr<Query> NumberedRows(std::shared_ptr<Query> one, const std::string& name);
/// How many parts the text `x` has between `delimiter`s, BIGINT; NULL has none.
Result<ExprPtr> CountParts(const Expr& x, const Expr& delimiter, bool empty_is_none);
/// Makes every column that `scope` names an output of `query`, and lets `scope` name these outputs.
void OutputAll(Query* query, NameScope* scope, const ExpressionBinder& binder);
/// Makes the columns of `scope` those of relation `r`, with the same numbers.
void MoveTo(int r, NameScope* scope);
/// Whether the join is an ASOF JOIN, by the mark of its condition, see kAsOf.
bool IsAsOf(const ParseNode& join);
/// Whether it is a function of FROM.
bool IsTableFunction(std::string_view name);
/// Whether a function of that name in FROM makes rows of a list.
bool IsUnnested(std::string_view name);
/// Whether the call makes the rows of one array: unnest(x), generate_subscripts(x, 1).
bool IsNumbered(const ParseNode& call);

/// The byte offset of a FROM item, or of the first node in it that has one.
int PositionOf(const ParseNode& item);

}  // namespace tessera
