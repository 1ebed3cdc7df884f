#include "compiler/bind/bind_view.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/from_binder.h"
#include "compiler/bind/inner_block.h"
#include "compiler/bind/query_block.h"
#include "compiler/bind/relation_name.h"
#include "compiler/bind/table_binder.h"
#include "compiler/parse/parser.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/query/expr_builder.h"
#include "compiler/query/nearest_name.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "tablet/catalog/qualified_name.h"
#include "tablet/chunk/tablet_format.h"
#include "tablet/values/array_type.h"

namespace tessera {
namespace {

/// Views that a statement may name, those inside of views too: each doubling of a chain of them doubles the query.
constexpr int kMostViews = 1000;
/// Levels of nesting of the block that leaves out columns of a view's query.
constexpr int kLevels = 8;

std::string Quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

std::string MadeAnew(const ViewSchema& view) {
  return "CREATE OR REPLACE VIEW " + view.name + " AS ... makes it anew, DROP VIEW " + view.name + " removes it.";
}

/// The error of a view's query, at the place that names the view. Of views that read each other the innermost and the
/// outermost are named: a chain may have dozens. `outer`: the view that names it, or nullptr.
Status InView(const Status& error, const ViewSchema& view, const BoundView* outer, int position) {
  if (error.code() != ErrorCode::kSql && error.code() != ErrorCode::kUnsupported) return error;
  const bool is_named = error.message().ends_with("\")") && error.message().find(" (in view \"") != std::string::npos;
  const std::string in_view = is_named && outer != nullptr ? "" : " (in view " + Quoted(view.name) + ")";
  return {error.kind(), error.message() + in_view, error.hint().empty() ? MadeAnew(view) : error.hint(), position};
}

/// `session`: what it knows beside the statement's own marks.
Result<std::unique_ptr<Query>> BindText(std::string_view text, const Dialect* session, BindContext* outer,
                                        const BoundView& view) {
  TESSERA_ASSIGN(ParsedStatement parsed, Parse(text));
  if (session != nullptr) static_cast<SessionNames&>(parsed.dialect) = *session;
  if (!parsed.statement->Is(Tag::kSelectStmt))
    return Unsupported("a view of a statement other than SELECT is not supported", 0);
  return BindViewBlock(*parsed.statement, text, parsed.dialect, outer, &view);
}

/// Gives what was bound of a view's text the position of its name, and calls of random() places of their own: they are
/// told apart by their positions.
class Relocation {
 public:
  Relocation(int position, int number) : position_(position), first_site_(static_cast<int64_t>(number) << 32) {}

  void Move(Query* query) {
    if (!done_.insert(query).second) return;
    ForEachRoot(*query, [&](ExprPtr& e) { Move(e.get()); });
    for (Aggregate& a : query->aggregates) a.position = position_;
    for (const Relation& r : query->relations) {
      if (r.query != nullptr) Move(r.query.get());
    }
    for (const auto& more : query->union_all) Move(more.get());
    if (query->working != nullptr) Move(query->working.get());
  }

 private:
  void Move(Expr* e) {
    e->position = position_;
    if (IsFunction(*e, Function::kRandom)) {
      int64_t& site = e->args[0]->constant.i64;
      if (site >= 0 && site <= INT32_MAX) {
        site += first_site_;
      } else if (site >= 0) {  // of a macro
        site = static_cast<int64_t>((static_cast<uint64_t>(site + first_site_) * 0x9E3779B97F4A7C15) >> 1);
      }
    }
    if (e->kind == Expr::Kind::kSubquery) Move(e->subquery->query.get());
    for (const ExprPtr& a : e->args) Move(a.get());
  }

  const int position_;
  const int64_t first_site_;
  std::set<const Query*> done_;
};

/// The columns that the view had when it was made, by their names: its query may give others now.
Result<std::unique_ptr<Query>> TakeColumns(const ViewSchema& view, std::unique_ptr<Query> query) {
  const auto width = static_cast<size_t>(query->visible);
  std::vector<bool> taken(width);
  std::vector<size_t> places;
  for (const ViewColumn& column : view.columns) {
    const auto fits = [&](size_t i) { return i < width && !taken[i] && query->outputs[i].name == column.output; };
    size_t place = places.size();
    if (!fits(place)) {
      place = 0;
      while (place < width && !fits(place)) ++place;
    }
    if (place == width) {
      return SqlError(ErrorKind::kUndefinedColumn,
                      "column " + Quoted(column.name) + " of view " + Quoted(view.name) +
                          " is gone: its query gives no column " + Quoted(column.output) + " any more",
                      -1, MadeAnew(view));
    }
    taken[place] = true;
    places.push_back(place);
  }
  if (places.size() == width && std::is_sorted(places.begin(), places.end())) return query;
  auto reader = std::make_unique<Query>();
  for (const size_t place : places) {
    const Output& o = query->outputs[place];
    reader->outputs.push_back({MakeColumn(0, static_cast<int>(place), o.expr->type, o.expr->nullable, -1), o.name});
  }
  reader->visible = static_cast<int>(places.size());
  reader->height = query->height + kLevels;
  reader->relations.push_back(DerivedTable(std::move(query)));
  return reader;
}

// ---- CREATE VIEW

/// The query of a CREATE VIEW, without what comes after its last token.
std::string_view QueryText(std::string_view sql, size_t begin) {
  size_t first = sql.size(), end = sql.size();
  for (Token t = NextToken(sql, begin); t.kind != Token::Kind::kEnd; t = NextToken(sql, t.end)) {
    if (t.kind == Token::Kind::kSpace) continue;
    if (t.kind == Token::Kind::kSymbol && sql[t.begin] == ';') break;
    first = std::min(first, t.begin);
    end = t.end;
  }
  return sql.substr(first, end - first);
}

/// The name of the new view, and what is in its place.
Status BindNewView(const ParseNode& create, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                   ViewSchema* view, Statement* out) {
  const ParseNode& relation = *create.Get(Field::k_view);
  const int position = relation.location();
  out->kind = Statement::Kind::kCreateView;
  TESSERA_ASSIGN(const std::string name, NewRelationName(relation, snapshot));
  view->temporary = IsTemporaryName(name);
  view->name = view->temporary ? BaseName(name) : name;
  out->definition.or_replace = create.Get(Field::k_replace) != nullptr;
  out->definition.if_exists = dialect.if_not_exists;
  const int recursive = FindKeyword(sql, 0, "recursive");
  if (recursive >= 0 && recursive < position)
    return Unsupported("CREATE RECURSIVE VIEW is not supported", recursive,
                       "Write CREATE VIEW v AS WITH RECURSIVE ... SELECT ...");
  if (create.Get(Field::k_options) != nullptr)
    return Unsupported("WITH (...) of a view is not supported", position, "Leave it out.");
  const std::string_view check = create.Text(Field::k_withCheckOption);
  if (!check.empty() && check != "NO_CHECK_OPTION")
    return Unsupported("WITH CHECK OPTION is not supported", position, "Leave it out: views are read only.");
  if (out->definition.or_replace && out->definition.if_exists)
    return SqlError("CREATE OR REPLACE VIEW with IF NOT EXISTS is not valid", position, "Leave out one of them.");
  if (snapshot.Find(name) != nullptr) {
    return SqlError(ErrorKind::kDuplicateTable, "table " + Quoted(view->name) + " already exists", position,
                    "A view and a table cannot have the same name.");
  }
  const ViewSchema* const there = FindView(snapshot.views, view->name, view->temporary);
  const bool exists = there != nullptr && there->temporary == view->temporary;
  if (exists && !out->definition.or_replace && !out->definition.if_exists) {
    return SqlError(ErrorKind::kDuplicateTable, "view " + Quoted(view->name) + " already exists", position,
                    "Write CREATE OR REPLACE VIEW, or CREATE VIEW IF NOT EXISTS.");
  }
  return {};
}

/// `names`: the list after the view's name, or nullptr.
Status NameColumns(const Query& query, const ParseNode* names, int position, ViewSchema* view) {
  const auto width = static_cast<size_t>(query.visible);
  if (names != nullptr && names->size() > width) {
    return SqlError("CREATE VIEW specifies more column names than columns", position,
                    "The query has " + std::to_string(width) + ".");
  }
  if (width > kGreatestColumns)
    return SqlError(ErrorKind::kTooManyColumns,
                    "view " + Quoted(view->name) + " has more than " + std::to_string(kGreatestColumns) + " columns",
                    position);
  const ParseNode* name = names != nullptr ? names->first() : nullptr;
  for (size_t i = 0; i < width; ++i) {
    const Output& o = query.outputs[i];
    ViewColumn column{o.name, o.name, StoredType(o.expr->type).ToString()};
    if (name != nullptr) {
      column.name = name->Text(Field::k_sval);
      name = name->next();
    }
    const auto same = [&](const ViewColumn& c) { return c.name == column.name; };
    if (std::any_of(view->columns.begin(), view->columns.end(), same)) {
      return SqlError(ErrorKind::kDuplicateColumn, "column " + Quoted(column.name) + " specified more than once",
                      position, "Name it in the query, SELECT x AS name, or after the view's name.");
    }
    view->columns.push_back(std::move(column));
  }
  return {};
}

}  // namespace

Status BindCreateView(const ParseNode& create, std::string_view sql, const Dialect& dialect, const Snapshot& snapshot,
                      Statement* out) {
  auto view = std::make_shared<ViewSchema>();
  TESSERA_TRY(BindNewView(create, sql, dialect, snapshot, view.get(), out));
  const int position = create.Get(Field::k_view)->location();
  // (AS is no name without quotes, so the first one is that before the query.)
  const int as = FindKeyword(sql, position, "as");
  const std::string_view text = QueryText(sql, static_cast<size_t>(as) + 2);
  view->query = text;
  QueryBlock outside(sql, &dialect, snapshot);
  const BoundView bound{view.get(), nullptr, true};
  Result<std::unique_ptr<Query>> query = BindText(view->query, &dialect, &outside.context, bound);
  if (!query.ok()) {
    const Status& error = query.status();
    const auto offset = static_cast<int>(text.data() - sql.data());
    return {error.kind(), error.message(), error.hint(), error.position() < 0 ? -1 : error.position() + offset};
  }
  TESSERA_TRY(NameColumns(**query, create.Get(Field::k_aliases), position, view.get()));
  if (const auto* const names = NotedNames()) {
    TESSERA_ASSIGN(view->query, WithSchemas(text, 0, *names));
  }
  out->definition.view = std::move(view);
  return {};
}

Status BindDropView(const ParseNode& drop, const Snapshot& snapshot, Statement* out) {
  out->kind = Statement::Kind::kDropView;
  out->definition.if_exists = drop.Get(Field::k_missing_ok) != nullptr;
  for (const ParseNode& object : *drop.Get(Field::k_objects)) {
    TESSERA_ASSIGN(const std::string name, NameOfDropped(object, snapshot));
    if (std::ranges::count(out->tables, name) > 0) continue;
    out->tables.push_back(name);
    if (FindView(snapshot.views, name) != nullptr) continue;
    if (snapshot.Find(name) != nullptr)
      return SqlError(ErrorKind::kWrongObjectType, Quoted(name) + " is not a view", -1, "Write DROP TABLE.");
    if (out->definition.if_exists) continue;
    std::vector<std::string_view> names;
    for (const auto& view : snapshot.views) names.push_back(view->name);
    const std::string nearest = NearestName(name, names);
    return SqlError(ErrorKind::kUndefinedTable, "view " + Quoted(name) + " does not exist", -1,
                    nearest.empty() ? "" : "Perhaps you meant view " + Quoted(nearest) + ".");
  }
  return {};
}

// ---- Uses

Result<const ViewSchema*> FromBinder::FindViewNamed(std::string_view name, int position) const {
  // What is not of this session alone reads nothing that is.
  const bool temporary = context_.view == nullptr || context_.view->view->temporary;
  std::string chain = Quoted(name);
  for (const BoundView* b = context_.view; b != nullptr; b = b->outer) {
    chain = Quoted(b->view->name) + " -> " + chain;
    if (b->view->name == name && (temporary || !b->view->temporary)) {
      return SqlError(ErrorKind::kObjectDefinition, "view " + Quoted(name) + " reads itself: " + chain, position,
                      "A query that reads its own rows is WITH RECURSIVE.");
    }
  }
  return FindView(context_.snapshot->views, name, temporary);
}

Result<Relation> FromBinder::ViewRelation(const ViewSchema& view, int position) {
  if (context_.nesting > kMaxNesting) return NestedTooDeeply(position);
  const int number = context_.views != nullptr ? ++*context_.views : 0;
  if (number > kMostViews) {
    return Unsupported("a statement that names views more than " + std::to_string(kMostViews) +
                           " times, also inside of " + "views, is not supported",
                       position, "Store the rows of one of them in a table.");
  }
  const BoundView bound{&view, context_.view};
  Result<std::unique_ptr<Query>> query = BindText(view.query, context_.dialect, &context_, bound);
  if (!query.ok()) return InView(query.status(), view, context_.view, position);
  query = TakeColumns(view, std::move(query).value());
  if (!query.ok()) return query.status().At(position);
  Relocation(position, number).Move(query->get());
  TESSERA_TRY(Enclose(**query, &context_, position));
  Relation relation = DerivedTable(std::move(query).value());
  relation.alias = BaseName(view.name);
  relation.column_names.clear();
  for (const ViewColumn& column : view.columns) relation.column_names.push_back(column.name);
  return relation;
}

Result<std::unique_ptr<Query>> ViewQuery(const ViewSchema& view, const ParseNode* columns, int position,
                                         std::string_view sql, const Dialect& dialect, const Snapshot& snapshot) {
  QueryBlock block(sql, &dialect, snapshot);
  TESSERA_ASSIGN(Relation relation, FromBinder(&block).ViewRelation(view, position));
  const std::vector<std::string> names = relation.column_names;
  block.query->relations.push_back(std::move(relation));
  const ExpressionBinder binder(&block.context, nullptr, Clause::kSelect);
  const auto add = [&](size_t c) {
    block.query->outputs.push_back({binder.Column(0, static_cast<int>(c), -1), names[c]});
  };
  for (size_t c = 0; columns == nullptr && c < names.size(); ++c) add(c);
  for (const ParseNode* n = columns != nullptr ? columns->first() : nullptr; n != nullptr; n = n->next()) {
    const std::string_view name = n->Text(Field::k_sval);
    const auto at = std::ranges::find(names, name);
    if (at == names.end())
      return SqlError(ErrorKind::kUndefinedColumn,
                      "column " + Quoted(name) + " of view " + Quoted(view.name) + " does not exist", position);
    add(static_cast<size_t>(at - names.begin()));
  }
  block.query->visible = static_cast<int>(block.query->outputs.size());
  return block.Take();
}

}  // namespace tessera
