// The bound query: what the binder makes of SQL text, and what Unnest and Simplify rewrite before it is planned. Names
// are resolved, every expression has its type, casts are explicit, operators are chosen by type.
//
// One SELECT is one Query ("query block"): relations, a conjunction of predicates over them, optional grouping,
// outputs, ordering. Predicates of WHERE and of inner JOIN ... ON are the same conjunction, so that the planner is free
// to order the joins. A relation is a stored table or another Query (a derived table). A relation that is not joined by
// an inner join says how it is joined, and has a conjunction of its own. Unnest turns subqueries in expressions into
// relations, too. A set operation is a block over a derived table whose block has the rows of all arms: see
// set_operation.h.
//
// Start at: Statement, Query, Expr. Plain data, owned by one thread. Private to compiler/, except Statement: see
// compiler.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/query/functions.h"
#include "compiler/query/role_change.h"
#include "tablet/catalog/comment.h"
#include "tablet/catalog/schema.h"
#include "tablet/catalog/sequence.h"
#include "tablet/catalog/table_info.h"
#include "tablet/load/copy_options.h"
#include "tablet/values/enum_type.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "vm/program/window_spec.h"

namespace tessera {

struct Expr;
struct Query;
using ExprPtr = std::unique_ptr<Expr>;

/// A subquery in an expression, as the binder leaves it for Unnest.
struct Subquery {
  enum class Kind : uint8_t {
    kScalar,  ///< its value; NULL if it has no row; an error if it has several
    kExists,
    kAny,  ///< x op ANY (...), IN: args[0] is the comparison with kSubqueryColumn, args[1] is x. ALL is NOT ... ANY
  };
  Kind kind = Kind::kScalar;
  std::shared_ptr<Query> query;
};
/// Expr::relation of the output of a Subquery of kind kAny, until Unnest gives it a relation.
inline constexpr int kSubqueryColumn = -1;
/// Expr::relation of a kOuter that is the value of aggregates[column] of that block, until SplitGrouping.
inline constexpr int kOuterAggregate = -2;
/// Expr::column of the BOOLEAN that a relation joined by JoinKind::kMark adds.
inline constexpr int kMarkColumn = -1;

struct Expr {
  enum class Kind : uint8_t {
    kColumn,    ///< column `column` of relation `relation` of this query block
    kConstant,  ///< `constant`
    kParameter,  ///< `constant` in this run, not NULL; other runs of the program have another one: Parameters::held[index]
    kFunction,   ///< `function` of `args`
    kGroup,      ///< above the grouping: value of group_by[index]
    kAggregate,  ///< above the grouping: value of aggregates[index]
    kWindow,     ///< an output alone: value of windows[index]; until SplitWindows, that window call of the block
    kOuter,      ///< column `column` of relation `relation` of the block `index` levels out; not after Unnest
    kSubquery,   ///< value of `subquery`; not after Unnest
  };
  Kind kind = Kind::kConstant;
  SqlType type;
  bool nullable = true;  ///< false only if the value is proved never to be NULL
  int position = -1;     ///< byte offset in the SQL text, for errors at run time and in later phases; -1 if it has none
  int relation = 0, column = 0;
  int index = 0;
  Function function = Function::kAdd;
  DateField field = DateField::kYear;
  Value constant;
  std::vector<ExprPtr> args;
  std::shared_ptr<Subquery> subquery;  ///< kSubquery; clones share it

  ExprPtr Clone() const;
  /// Structural equality, positions ignored.
  bool SameAs(const Expr& other) const;
  /// Readable SQL-like text for EXPLAIN and default column names; `names[relation][column]` are the column names.
  std::string ToString(const std::vector<std::vector<std::string>>& names) const;
};

/// How a relation is joined to those before it.
enum class JoinKind : uint8_t {
  kInner,  ///< by the block's conjuncts
  kLeft,   ///< by `on`; a row without a match goes on with NULLs
  kSemi,   ///< rows with a match by `on` go on, once
  kAnti,   ///< rows without a match by `on` go on
  kMark,   ///< all rows go on, with kMarkColumn: whether there is a match by `on`
};

struct Relation {
  std::string alias;                       ///< as errors and EXPLAIN name it; "" if it has none
  std::shared_ptr<const TableInfo> table;  ///< a stored table, or nullptr for a derived table
  std::shared_ptr<Query> query;            ///< a derived table, or nullptr; relations may share one: it runs once
  std::vector<std::string> column_names;
  std::vector<SqlType> column_types;
  JoinKind join = JoinKind::kInner;
  std::vector<ExprPtr> on;  ///< not kInner: a conjunction over this relation and others
  bool unique = false;      ///< not kInner: proved that at most one row matches
  bool single = false;      ///< kLeft: a second match of a row is an error (a scalar subquery)
  /// The derived table has kOuter columns: of its own block (LATERAL) or of blocks around that. Not after Unnest.
  bool correlated = false;
};

/// A key of ORDER BY inside an aggregate.
struct AggregateOrder {
  ExprPtr expr;
  bool descending = false, nulls_first = false;
};

struct Aggregate {
  AggregateFunction function = AggregateFunction::kCountStar;
  ExprPtr argument;  ///< nullptr for kCountStar
  bool distinct = false;
  // StateRule::kValues only; FoldAggregates makes blocks of them.
  std::vector<AggregateOrder> order;  ///< of the values
  Value parameter;                    ///< the fraction of a quantile, what stands between texts; else NULL
  SqlType type;
  int position = -1;
};

struct OrderKey {
  int output = 0;  ///< index into Query::outputs
  bool descending = false;
  bool nulls_first = false;  ///< NULL is the largest value unless told otherwise: first in DESC, last in ASC
};

/// A window function over the rows of a block. Numbers of columns, here and in `frame`, are those of outputs.
struct Window {
  vm::WindowFunction function = vm::WindowFunction::kRowNumber;
  AggregateFunction aggregate = AggregateFunction::kCountStar;  ///< kAggregate, kFold
  int value = -1, count = -1, fallback = -1;                    ///< arguments as in vm::WindowSpec
  int64_t number = 1;
  bool ignore_nulls = false;
  bool distinct = false;
  std::vector<OrderKey> value_order;       ///< kFold: of the values in a frame
  Value parameter;                         ///< kFold: as in Aggregate
  int partition_keys = 0, order_keys = 0;  ///< leading entries of Query::order_by: its PARTITION BY, its ORDER BY
  vm::WindowFrame frame;
  SqlType type;
};

struct Output {
  ExprPtr expr;
  std::string name;
};

struct Query {
  std::vector<Relation> relations;    ///< if none is kInner: one row, as for SELECT without FROM
  std::vector<ExprPtr> conjuncts;     ///< all must be true; BOOLEAN over kColumn
  bool grouped = false;               ///< has GROUP BY, HAVING or an aggregate; then no kColumn in outputs and having
  std::vector<ExprPtr> group_by;      ///< over kColumn; no duplicates
  std::vector<Aggregate> aggregates;  ///< arguments over kColumn; no duplicates
  std::vector<ExprPtr> having;        ///< conjunction over kGroup and kAggregate
  std::vector<Output> outputs;  ///< the first `visible` are the result's columns, the others are for ORDER BY only
  int visible = 0;
  bool distinct = false;  ///< over the visible outputs; then there are no others
  std::vector<OrderKey> order_by;
  int64_t limit = -1;  ///< -1: none
  int64_t offset = 0;
  /// Blocks whose rows follow this block's, with outputs of the same types. Then neither this block nor those have an
  /// order or a limit, and this block is a derived table.
  std::vector<std::unique_ptr<Query>> union_all;
  /// WITH RECURSIVE: union_all is the step, which is made again of the rows that it made last, until it makes none; they
  /// are those of this block in `working`, with DISTINCT each row once. Then this block is a derived table.
  std::shared_ptr<Query> working;
  int64_t turn_limit =
      -1;  ///< with this number of rows in all there is no other turn, and rows beyond are left out; -1: none
  bool is_working = false;  ///< it is that of another block: one row of NULLs, which stands for those
  /// The output, not one of the visible ones, that says how often each row stands in the result; -1: once. Then the
  /// block is grouped by all its visible outputs, or is one row, has no order or limit, and is a derived table.
  int repeat = -1;
  /// What becomes of rows that are equal in the first `fold_keys` outputs, which order_by begins with, see
  /// vm::FoldSpec; kCountStar: all stay. Then the block is a derived table without grouping or limit.
  AggregateFunction fold = AggregateFunction::kCountStar;
  int fold_keys = 0;
  bool fold_distinct = false;
  Value fold_parameter;
  bool folds() const { return fold != AggregateFunction::kCountStar; }
  /// Computed of the rows in the order of `order_by`. The last outputs are these, each once and in this order. Then there
  /// is no DISTINCT and no limit, and the block is a derived table: see split_windows.h.
  std::vector<Window> windows;
  /// Its rows are numbered from 1 to this, and that is all: `repeat` of one row inside, and the window row_number. A section
  /// that reads them makes them on the way. -1: it is no series.
  int64_t series = -1;
  /// Levels of nesting inside, each at most a level of a bound tree's recursions. Of the binder alone.
  int height = 0;
};

/// ON CONFLICT of an INSERT, which finds the rows that are in the way by joins.
struct OnConflict {
  enum class Action : uint8_t {
    kNothing,  ///< the new row is left out
    kUpdate,   ///< the old row gets values
    kReplace,  ///< the old row goes
  };
  struct Key {
    std::unique_ptr<Query> matches;  ///< new rows with the key of an old one: number of the new row, of the old one
    /// New rows with the same key: number of a row, of another one that decides, the first (kReplace: the last).
    std::unique_ptr<Query> repeats;
  };
  Action action = Action::kNothing;
  /// A table that the queries read: it gets the new rows when the statement runs, and after their columns their number.
  std::shared_ptr<TableInfo> incoming;
  std::vector<Key> keys;           ///< those that count
  std::unique_ptr<Query> updates;  ///< kUpdate: the values that old rows get, number of the new row, of the old one
  RowRules rules;                  ///< of these values; empty if there are none
};

/// A WHEN of MERGE.
struct MergeAction {
  enum class Kind : uint8_t { kNothing, kInsert, kUpdate, kDelete };
  Kind kind = Kind::kNothing;
  RowRules rules;  ///< of its rows; empty if there are none
};

/// What EXPLAIN shows, and how.
struct ExplainForm {
  bool program = false;  ///< the sections with their instructions instead of the tree
  bool json = false;
  bool html = false;     ///< a page with a picture of the tree
  bool verbose = false;  ///< conditions and keys whole, and the numbers of sections
  bool costs = true;     ///< rows that are expected
  bool buffers = false;  ///< tablets and bytes
  bool timing = true;
  bool summary = true;  ///< the line of totals
};

/// EXPLAIN before a statement.
struct ExplainRequest {
  bool wanted = false;
  bool analyze = false;
  ExplainForm form;
};

/// What a statement does with the rows of a table.
struct RowChange {
  RowBatch values;  ///< kInsert VALUES: all columns in schema order, cast to their types; missing ones NULL
  /// kUpdate: the columns that get values, ascending, if they may be written by themselves: none is in a key, or orders rows;
  /// else empty.
  std::vector<int> set_columns;
  bool sets_alone = false;  ///< the query has these columns alone before the number, and not all of the table
  RowRules rules;           ///< kInsert, kUpdate, kAlterTable; empty if the target has none
  std::unique_ptr<OnConflict> on_conflict;  ///< kInsert; nullptr: there is none
  std::vector<MergeAction> merge_actions;   ///< kMerge
  /// RETURNING, or nullptr: a query over `changed`, a table that gets the rows when the statement runs: with the target's
  /// columns, others that `query` has after those, and the number of the row.
  std::unique_ptr<Query> returning;
  std::shared_ptr<TableInfo> changed;
};

/// What a statement makes of the catalog: what it creates, drops, or changes, as that is afterwards.
struct Definition {
  TableSchema schema;  ///< kCreateTable, kRefreshView; kAlterTable: what it is afterwards
  /// kAlterTable, kDropTable CASCADE: other tables that change with it, under their names, and what they are afterwards.
  std::vector<TableSchema> dependents;
  bool rewrites = false;  ///< kAlterTable: `query` gives all rows anew
  /// kAlterTable: columns were added or dropped, and nothing else: by column of `schema`, that of the table, or -1 for one
  /// that is its constant default in all rows. Else empty.
  std::vector<int> sources;
  EnumType type;                           ///< kCreateType; kDropType: its name
  Macro macro;                             ///< kCreateMacro; kDropMacro: its name and kind
  std::shared_ptr<const ViewSchema> view;  ///< kCreateView
  /// kCreateSequence, kAlterSequence, kTruncate: as it is afterwards; kCreateTable: new ones of the table; kAlterTable: new ones
  /// and those that change with it.
  Sequences sequences;
  std::vector<std::string> dropped_sequences;  ///< kDropSequence, kAlterSequence, kAlterTable
  std::vector<std::string> dropped_schemas;    ///< kDropSchema: with all that is in them
  Comment comment;                             ///< kComment: an empty text drops it
  RoleChange role;                             ///< kChangeRole, kGrant
  bool if_exists = false;   ///< DROP TABLE, TYPE, MACRO and VIEW IF EXISTS, CREATE TABLE, MACRO and VIEW IF NOT EXISTS
  bool or_replace = false;  ///< CREATE OR REPLACE TABLE, MACRO and VIEW
};

/// COPY from or to a file.
struct FileCopy {
  std::string file;  ///< kCopyFrom, kCopyTo; "" is standard input or output
  CopyFromOptions from;
  CopyFormat to;
  /// kCopyTo: outputs, by whose values rows are in folders of the directory `file`; rows come in their order. Empty: a file.
  std::vector<int> partition_by;
};

struct Statement {
  enum class Kind : uint8_t {
    kSelect,
    kInsert,
    kDelete,
    kUpdate,
    kMerge,
    kCreateTable,
    kDropTable,
    kCopyFrom,
    kCopyTo,
    kSet,
    kShow,
    kNotice,
    kCreateType,
    kDropType,
    kCreateMacro,
    kDropMacro,
    kVacuum,
    kSetVariable,
    kPrepare,
    kExecute,
    kDeallocate,
    kTruncate,
    kAlterTable,
    kCreateView,
    kDropView,
    kRefreshView,
    kCreateSequence,
    kAlterSequence,
    kDropSequence,
    kCreateSchema,
    kDropSchema,
    kComment,
    kChangeRole,
    kGrant
  };
  Kind kind = Kind::kSelect;
  ExplainRequest explain;  ///< kSelect, kInsert, kDelete, kUpdate, kMerge, kCreateTable with a query, and kExecute only

  /// kSelect; kInsert from SELECT; kCreateTable AS SELECT, which stores the visible outputs; kCopyTo (table or query): its
  /// outputs have the target's types; kDelete, kUpdate: change_binder.h; kMerge: merge_binder.h; kAlterTable: alter_binder.h.
  std::unique_ptr<Query> query;

  /// Computes outputs of `query` on the host, of each batch that the program gives; empty: there are none. The last
  /// `carried` visible outputs are for this alone, and are gone afterwards.
  RowRules finish;
  int carried = 0;

  std::string table;  ///< kInsert, kDelete, kUpdate, kMerge, kCreateTable, kDropTable, kCopyFrom, kAlterTable
  /// kInsert, kCopyFrom; where ChangesRows(), and kAlterTable: with numbers of its rows, and so it has to be in the snapshot
  /// that the program reads.
  std::shared_ptr<const TableInfo> target;
  RowChange change;
  Definition definition;
  FileCopy copy;

  /// kPrepare, kExecute, kDeallocate.
  struct Prepared {
    std::string name;              ///< "" for DEALLOCATE ALL
    std::vector<SqlType> types;    ///< kPrepare: that were declared
    std::vector<Value> arguments;  ///< kExecute: as PlanOptions::parameters
    std::vector<int> positions;    ///< of these
  };
  Prepared prepared;

  std::string notice;  ///< kNotice: there is nothing to do but to say so; kAlterTable: the command's name

  /// kSetVariable: its name; `query` gives the value, or is nullptr for RESET.
  std::string variable;
  /// SET setting = value (value as written, unquoted); SHOW setting. kVacuum: the value of compression, "": the session's.
  std::string setting, value;       ///< value of kCopyFrom: "match": the header must name the columns in their order
  std::vector<std::string> tables;  ///< kVacuum: what is written anew; kTruncate; kDropView: the views
};

/// Whether the statement changes rows that the table has, so that it reads the table as it is when it writes.
inline bool ChangesRows(const Statement& s) {
  return s.kind == Statement::Kind::kDelete || s.kind == Statement::Kind::kUpdate ||
         s.kind == Statement::Kind::kMerge || s.change.on_conflict != nullptr;
}

}  // namespace tessera
