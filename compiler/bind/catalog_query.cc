#include "compiler/bind/catalog_query.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/interrupt.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/subquery_expr.h"
#include "tablet/catalog/qualified_name.h"

namespace tessera {
namespace {

using TextRow = std::vector<std::string>;
using ValueRow = std::vector<Value>;

const SqlType kNumber = SqlType::Of(TypeId::kInteger), kBigint = SqlType::Of(TypeId::kBigint),
              kDouble = SqlType::Of(TypeId::kDouble);

/// The rows of `all`, whose last output numbers them, in that order and without it.
std::unique_ptr<Query> InOrder(std::shared_ptr<Query> all) {
  std::unique_ptr<Query> query = SelectAll(std::move(all));
  --query->visible;
  query->order_by.push_back({query->visible, false, false});
  return query;
}

}  // namespace

std::unique_ptr<Query> ConstantRows(const TextRow& names, const std::vector<SqlType>& types,
                                    const std::vector<ValueRow>& rows) {
  NoteMoment();
  std::shared_ptr<Query> all;
  // Without rows there is one that no row passes.
  for (size_t r = 0; r < std::max<size_t>(rows.size(), 1); ++r) {
    auto row = std::make_unique<Query>();
    for (size_t c = 0; c < names.size(); ++c)
      row->outputs.push_back({MakeConstant(rows.empty() ? Value::Null(types[c]) : rows[r][c], -1), names[c]});
    row->outputs.push_back({MakeConstant(Value::Int(kNumber, static_cast<int64_t>(r)), -1), "row"});
    row->visible = static_cast<int>(row->outputs.size());
    if (all == nullptr) {
      all = std::move(row);
    } else {
      all->union_all.push_back(std::move(row));
    }
  }
  auto query = InOrder(std::move(all));
  if (rows.empty()) query->conjuncts.push_back(MakeBoolean(false, -1));
  return query;
}

namespace {

std::unique_ptr<Query> TextRows(const TextRow& names, const std::vector<TextRow>& rows) {
  std::vector<ValueRow> values;
  for (const TextRow& row : rows) {
    values.emplace_back();
    for (const std::string& text : row) values.back().push_back(Value::Text(text));
  }
  return ConstantRows(names, std::vector<SqlType>(names.size(), SqlType::Text()), values);
}

}  // namespace

std::unique_ptr<Query> DescribeQuery(const Query& query) {
  std::vector<TextRow> rows;
  for (int i = 0; i < query.visible; ++i) {
    const Output& o = query.outputs[static_cast<size_t>(i)];
    bool null = true;
    std::string key, value;
    const Relation* relation = nullptr;
    if (o.expr->kind == Expr::Kind::kColumn) relation = &query.relations[static_cast<size_t>(o.expr->relation)];
    if (relation != nullptr && relation->table != nullptr && relation->join == JoinKind::kInner) {
      const TableSchema& schema = relation->table->schema;
      // (A key of a file is what was seen of it, not what it says.)
      const bool is_file = !relation->table->files.empty();
      null = is_file || !schema.columns[static_cast<size_t>(o.expr->column)].not_null;
      if (!is_file && std::count(schema.primary_key.begin(), schema.primary_key.end(), o.expr->column) > 0)
        key = "PRIMARY KEY";
      const ColumnSchema& column = schema.columns[static_cast<size_t>(o.expr->column)];
      value = column.default_text.value_or(column.default_expression.value_or(""));
    }
    rows.push_back({o.name, o.expr->type.ToString(), null ? "YES" : "NO", key, value});
  }
  return TextRows({"column_name", "column_type", "null", "key", "default"}, rows);
}

std::unique_ptr<Query> SummarizeQuery(std::unique_ptr<Query> query) {
  // One row of all aggregates, which is read once for each column.
  auto groups = std::make_shared<Query>();
  groups->relations.push_back(DerivedTable(std::move(query)));
  groups->relations[0].alias = "rows";
  groups->grouped = true;
  const Relation& rows = groups->relations[0];
  const auto add = [&](AggregateFunction function, ExprPtr argument, const SqlType& type, bool distinct) {
    Aggregate a;
    a.function = function;
    a.argument = std::move(argument);
    a.distinct = distinct;
    a.type = type;
    const auto number = static_cast<int>(groups->aggregates.size());
    groups->aggregates.push_back(std::move(a));
    groups->outputs.push_back({MakeLeaf(Expr::Kind::kAggregate, number, type, true), "aggregate"});
    return MakeColumn(0, number, type, true, -1);
  };
  const ExprPtr all = add(AggregateFunction::kCountStar, nullptr, kBigint, false);
  std::vector<std::unique_ptr<Query>> arms;
  for (size_t c = 0; c < rows.column_types.size(); ++c) {
    const SqlType type = rows.column_types[c];
    const ExprPtr x =
        MakeColumn(0, static_cast<int>(c), type, ExpressionBinder::IsNullable(rows, static_cast<int>(c)), -1);
    const auto moment = [&](AggregateFunction f) {
      return type.IsNumeric() ? add(f, MakeCast(x->Clone(), kDouble), kDouble, false) : MakeNull(kDouble, -1);
    };
    auto arm = std::make_unique<Query>();
    const auto put = [&](const char* name, ExprPtr e) { arm->outputs.push_back({std::move(e), name}); };
    put("column_name", MakeConstant(Value::Text(rows.column_names[c]), -1));
    put("column_type", MakeConstant(Value::Text(type.ToString()), -1));
    put("min", MakeCast(add(AggregateFunction::kMin, x->Clone(), type, false), SqlType::Text()));
    put("max", MakeCast(add(AggregateFunction::kMax, x->Clone(), type, false), SqlType::Text()));
    put("unique", add(AggregateFunction::kCount, OrderedForm(x->Clone()), kBigint, true));
    put("avg", moment(AggregateFunction::kAvg));
    put("std", moment(AggregateFunction::kStddevSamp));
    const ExprPtr present = add(AggregateFunction::kCount, x->Clone(), kBigint, false);
    put("count", present->Clone());
    put("nulls", MakeFunction(Function::kSub, kBigint, -1, ExprList(all->Clone(), present->Clone())));
    put("column", MakeConstant(Value::Int(kNumber, static_cast<int64_t>(c)), -1));
    arm->visible = static_cast<int>(arm->outputs.size());
    arms.push_back(std::move(arm));
  }
  groups->visible = static_cast<int>(groups->outputs.size());
  for (auto& arm : arms) {
    arm->relations.push_back(DerivedTable(groups));
    arm->relations[0].alias = "groups";
  }
  std::shared_ptr<Query> first = std::move(arms[0]);
  for (size_t c = 1; c < arms.size(); ++c) first->union_all.push_back(std::move(arms[c]));
  return InOrder(std::move(first));
}

Result<std::unique_ptr<Query>> ChunksQuery(const TableInfo& table) {
  const TextRow names = {"column_name", "tablet",       "row_count", "null_count", "schemes",
                         "plain_bytes", "stored_bytes", "min",       "max"};
  const SqlType text = SqlType::Text();
  const auto text_of = [&](const Value& v) { return v.null ? Value::Null(text) : Value::Text(ToText(v)); };
  const auto number = [](uint64_t n) { return Value::Int(kBigint, static_cast<int64_t>(n)); };
  std::vector<ValueRow> rows;
  for (size_t c = 0; c < table.schema.columns.size(); ++c) {
    for (size_t t = 0; t < table.tablets.size(); ++t) {
      ThrowIfInterrupted();
      TESSERA_ASSIGN(const ChunkStorage chunk, table.tablets[t]->StorageOf(static_cast<int>(c)));
      rows.push_back({Value::Text(table.schema.columns[c].name), number(t), number(table.tablets[t]->rows()),
                      number(chunk.nulls), Value::Text(chunk.schemes), number(chunk.plain_bytes),
                      number(chunk.stored_bytes), text_of(chunk.min), text_of(chunk.max)});
    }
  }
  return ConstantRows(names, {text, kBigint, kBigint, kBigint, text, kBigint, kBigint, text, text}, rows);
}

std::unique_ptr<Query> CacheQuery(const Snapshot& snapshot, const std::vector<CacheReport>& caches) {
  const TextRow names = {"cache",  "table_name", "column_name", "bytes",  "hits",
                         "misses", "evictions",  "bytes_in",    "budget", "pinned"};
  const SqlType text = SqlType::Text();
  const auto number = [](uint64_t n) { return Value::Int(kBigint, static_cast<int64_t>(n)); };
  const Value no_name = Value::Null(text), no_number = Value::Null(kBigint);
  struct Held {
    uint64_t bytes = 0, hits = 0;
  };
  // Caches have columns by the files in which they lie.
  std::map<std::pair<const Tablet*, int>, std::pair<const TableInfo*, int>> places;
  for (const auto& table : snapshot.tables) {
    for (const auto& tablet : table->tablets) {
      for (int c = 0; c < static_cast<int>(table->schema.columns.size()); ++c) {
        const ColumnSource source = tablet->SourceOf(c);
        places[{source.tablet != nullptr ? source.tablet.get() : tablet.get(), source.column}] = {table.get(), c};
      }
    }
  }
  std::vector<ValueRow> rows;
  for (const CacheReport& cache : caches) {
    const Value name = Value::Text(cache.name);
    rows.push_back({name, no_name, no_name, number(cache.bytes), number(cache.hits), number(cache.misses),
                    number(cache.evictions), number(cache.bytes_in),
                    cache.budget == 0 ? no_number : number(cache.budget), number(cache.pinned)});
    std::map<std::pair<std::string, int>, Held> columns;
    for (const CachedColumn& column : cache.columns) {
      // (Tablets of a table that was dropped or replaced may still be there.)
      const int stored = column.tablet->StoredColumn(column.column);
      const ColumnSource source = column.tablet->stored().SourceOf(stored);
      const Tablet* const file = source.tablet != nullptr ? source.tablet.get() : &column.tablet->stored();
      const auto place = places.find({file, source.column});
      if (place == places.end()) continue;
      Held& held = columns[{place->second.first->schema.name, place->second.second}];
      held.bytes += column.bytes;
      held.hits += column.hits;
    }
    for (const auto& [column, held] : columns) {
      const TableSchema& schema = snapshot.Find(column.first)->schema;
      rows.push_back({name, Value::Text(ShownName(column.first)),
                      Value::Text(schema.columns[static_cast<size_t>(column.second)].name), number(held.bytes),
                      number(held.hits), no_number, no_number, no_number, no_number, no_number});
    }
  }
  std::vector<SqlType> types(names.size(), kBigint);
  std::fill_n(types.begin(), 3, text);
  return ConstantRows(names, types, rows);
}

std::unique_ptr<Query> TablesQuery(const Snapshot& snapshot) {
  std::vector<TextRow> rows;
  for (const auto& table : snapshot.tables) rows.push_back({BaseName(table->schema.name)});
  for (const auto& view : snapshot.views) rows.push_back({view->name});
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());  // a temporary view hides what has its name
  return TextRows({"name"}, rows);
}

}  // namespace tessera
