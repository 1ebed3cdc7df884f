#include "compiler/bind/select_list.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/from_binder.h"
#include "compiler/bind/relation_name.h"
#include "compiler/parse/called_name.h"
#include "compiler/parse/parser.h"
#include "compiler/parse/sql_scanner.h"
#include "compiler/query/nearest_name.h"
#include "vm/meaning/regex.h"

namespace tessera {
namespace {

/// Whether an output of the select list is one of a star's REPLACE.
bool IsReplacement(const ParseNode& target, const Dialect::Mark& star) {
  return target.location() >= star.replaced_begin && target.location() < star.replaced_end;
}

/// The columns that a star stands for.
Result<const std::vector<ScopeColumn>*> ColumnsOfStar(const ParseNode& fields, int position, const QueryBlock& block) {
  const NameScope& scope = block.scope;
  if (fields.size() == 1) {
    if (scope.variables.empty()) return SqlError("SELECT * with no tables specified is not valid", position);
    return &scope.columns;
  }
  // schema.table.* is table.*: FROM has said that it is that schema's.
  const bool has_schema =
      fields.size() == 3 && FindSchema(fields.first()->Text(Field::k_sval), *block.context.snapshot).has_value();
  if (fields.size() > 2 && !has_schema)
    return Unsupported("a name with more than two parts is not supported", position);
  const ParseNode* const table = has_schema ? fields.first()->next() : fields.first();
  const std::string_view alias = table->Text(Field::k_sval);
  std::vector<std::string_view> aliases;
  for (const RangeVariable& v : scope.variables) {
    aliases.push_back(v.alias);
    if (v.alias == alias) return &v.columns;
  }
  const std::string nearest = NearestName(alias, aliases);
  return SqlError(ErrorKind::kUndefinedTable, "missing FROM-clause entry for table \"" + std::string(alias) + "\"",
                  position, nearest.empty() ? "" : "Perhaps you meant table \"" + nearest + "\".");
}

/// `name` in `clause` of a star is none of its columns.
Status NotInStar(std::string_view name, const char* clause, int position, const std::vector<ScopeColumn>& columns) {
  std::vector<std::string_view> names;
  for (const ScopeColumn& c : columns) names.push_back(c.name);
  const std::string nearest = NearestName(name, names);
  return SqlError("column \"" + std::string(name) + "\" in " + clause + " is not a column of *", position,
                  nearest.empty() || nearest == name ? "" : "Perhaps you meant column \"" + nearest + "\".");
}

/// `mark`: its EXCLUDE, RENAME and REPLACE, or nullptr. The outputs that REPLACE names follow `target`.
Status AddStar(const ParseNode& target, const Dialect::Mark* mark, QueryBlock* block) {
  const ParseNode& star = *target.Get(Field::k_val);
  const int position = star.location();
  TESSERA_ASSIGN(const std::vector<ScopeColumn>* columns, ColumnsOfStar(*star.Get(Field::k_fields), position, *block));
  std::vector<Output>& outputs = block->query->outputs;
  ExpressionBinder binder(&block->context, &block->scope, Clause::kSelect);
  const auto first = static_cast<std::ptrdiff_t>(outputs.size());
  for (const ScopeColumn& c : *columns) outputs.push_back({binder.Column(c.relation, c.column, position), c.name});
  if (mark == nullptr) return {};
  for (const Dialect::Name& name : mark->excluded) {
    const auto removed =
        std::remove_if(outputs.begin() + first, outputs.end(), [&](const Output& o) { return o.name == name.text; });
    if (removed == outputs.end() && mark->lenient) continue;
    if (removed == outputs.end()) return NotInStar(name.text, "EXCLUDE", name.position, *columns);
    outputs.erase(removed, outputs.end());
  }
  for (const auto& [from, to] : mark->renamed) {
    bool found = false;
    for (size_t i = static_cast<size_t>(first); i < outputs.size(); ++i) {
      if (outputs[i].name != from.text) continue;
      outputs[i].name = to;
      found = true;
    }
    if (!found) return NotInStar(from.text, "RENAME", from.position, *columns);
  }
  for (const ParseNode* t = target.next(); t != nullptr && IsReplacement(*t, *mark); t = t->next()) {
    if (t->Get(Field::k_name) == nullptr) {
      return SqlError("an expression of REPLACE has no name of a column", t->location(),
                      "Write * REPLACE (a + 1 AS a).");
    }
    const std::string name(t->Text(Field::k_name));
    TESSERA_ASSIGN(const ExprPtr e, binder.BindTyped(*t->Get(Field::k_val)));
    bool found = false;
    for (size_t i = static_cast<size_t>(first); i < outputs.size(); ++i) {
      if (outputs[i].name != name) continue;
      outputs[i].expr = e->Clone();
      found = true;
    }
    if (!found) return NotInStar(name, "REPLACE", t->location(), *columns);
  }
  return {};
}

/// The first COLUMNS(...) of an expression, but for its subqueries; nullptr if there is none.
const ParseNode* FindColumns(const ParseNode& node, int levels = 3 * kMaxNesting) {
  if (node.Is(Tag::kSubLink) || levels == 0) return nullptr;  // (the binder refuses what is deeper)
  if (node.Is(Tag::kFuncCall)) {
    const ParseNode* const names = node.Get(Field::k_funcname);
    if (names->size() == 1 && names->first()->Text(Field::k_sval) == "columns") return &node;
  }
  for (const ParseNode& n : node) {
    if (const ParseNode* found = FindColumns(n, levels - 1)) return found;
  }
  return nullptr;
}

/// The columns that COLUMNS(...) stands for.
Result<std::vector<ScopeColumn>> ColumnsOf(const ParseNode& call, const QueryBlock& block) {
  const int position = call.location();
  const NameScope& scope = block.scope;
  const ParseNode* const list = call.Get(Field::k_args);
  const ParseNode* const arg = list != nullptr && list->size() == 1 ? list->first() : nullptr;
  std::vector<ScopeColumn> columns = scope.columns;
  if (scope.variables.empty()) return SqlError("COLUMNS(...) with no tables specified is not valid", position);
  const ParseNode* const text = arg != nullptr && arg->Is(Tag::kA_Const) ? arg->Get(Field::k_sval) : nullptr;
  const ParseNode* const fields = arg != nullptr && arg->Is(Tag::kColumnRef) ? arg->Get(Field::k_fields) : nullptr;
  const bool qualified = fields != nullptr && fields->size() == 2 && fields->first()->next()->Is(Tag::kA_Star);
  const bool star = call.Get(Field::k_agg_star) != nullptr || qualified;
  if (qualified) {
    TESSERA_ASSIGN(const std::vector<ScopeColumn>* of, ColumnsOfStar(*fields, position, block));
    columns = *of;
  }
  if (!star && text == nullptr) {
    return Unsupported("COLUMNS of anything but *, t.* and a regular expression is not supported", position,
                       "Write COLUMNS(*), COLUMNS(* EXCLUDE (a, b)) or COLUMNS('^price').");
  }
  if (const Dialect::Mark* mark = FindMark(block.context, Dialect::Mark::Kind::kStar, position)) {
    for (const Dialect::Name& name : mark->excluded) {
      const size_t before = columns.size();
      std::erase_if(columns, [&](const ScopeColumn& c) { return c.name == name.text; });
      if (columns.size() == before) return NotInStar(name.text, "EXCLUDE", name.position, scope.columns);
    }
  }
  if (text != nullptr) {
    const std::string pattern(text->Text(Field::k_sval));
    const vm::Regex regex(pattern);
    if (!regex.error().empty())
      return SqlError(ErrorKind::kInvalidRegex, "invalid regular expression: " + regex.error(), arg->location(),
                      "The syntax is that of RE2.");
    std::erase_if(columns, [&](const ScopeColumn& c) { return !regex.Matches(c.name); });
    if (columns.empty()) return SqlError("no column's name matches \"" + pattern + "\"", arg->location());
  }
  return columns;
}

/// An output for each column that COLUMNS(...) in it stands for.
Status AddOutputs(const ParseNode& target, const ParseNode& columns, QueryBlock* block) {
  const ParseNode& value = *target.Get(Field::k_val);
  TESSERA_ASSIGN(const std::vector<ScopeColumn> each, ColumnsOf(columns, *block));
  const std::string alias(target.Text(Field::k_name));
  for (const ScopeColumn& c : each) {
    block->context.each = &c;
    ExpressionBinder binder(&block->context, &block->scope, Clause::kSelect);
    Result<ExprPtr> e = binder.BindTyped(value);
    block->context.each = nullptr;
    if (!e.ok()) return e.status();
    block->query->outputs.push_back({std::move(e).value(), alias.empty() ? c.name : alias});
  }
  return {};
}

Status AddOutput(const ParseNode& target, QueryBlock* block) {
  const ParseNode& value = *target.Get(Field::k_val);
  if (const ParseNode* columns = FindColumns(value)) return AddOutputs(target, *columns, block);
  if (value.Is(Tag::kColumnRef)) {
    const ParseNode* fields = value.Get(Field::k_fields);
    const ParseNode* last = fields->first();
    while (last->next() != nullptr) last = last->next();
    if (last->Is(Tag::kA_Star)) {
      return AddStar(target, FindMark(block->context, Dialect::Mark::Kind::kStar, value.location()), block);
    }
  }
  ExpressionBinder binder(&block->context, &block->scope, Clause::kSelect);
  binder.SetOutputs(&block->query->outputs);
  const size_t number = block->query->outputs.size();
  TESSERA_ASSIGN(ExprPtr e, binder.Bind(value));
  if (!block->keeps_literals) {
    TESSERA_ASSIGN(e, binder.Resolve(std::move(e), LiteralType(*block, number)));
  }
  std::string name(target.Text(Field::k_name));
  if (target.Get(Field::k_name) == nullptr) {
    if (value.Is(Tag::kColumnRef)) {
      const ParseNode* last = value.Get(Field::k_fields)->first();
      while (last->next() != nullptr) last = last->next();
      name = last->Text(Field::k_sval);
    } else if (target.location() >= 0) {
      name = ExpressionText(block->context.sql, static_cast<size_t>(target.location()));
    }
  }
  block->query->outputs.push_back({std::move(e), std::move(name)});
  return {};
}

}  // namespace

bool IsBareName(const ParseNode& node, std::string_view* name) {
  if (!node.Is(Tag::kColumnRef)) return false;
  const ParseNode* fields = node.Get(Field::k_fields);
  if (fields->size() != 1 || !fields->first()->Is(Tag::kString)) return false;
  *name = fields->first()->Text(Field::k_sval);
  return true;
}

Status BindTargets(const ParseNode& select, QueryBlock* block) {
  const ParseNode* targets = select.Get(Field::k_targetList);
  if (targets == nullptr)
    return SqlError("SELECT without columns is not valid", FindKeyword(block->context.sql, 0, "select"));
  return BindTargetList(*targets, block);
}

namespace {

/// Adds the calls in the node, but for its subqueries, that make rows of arrays, and counts others that make rows.
void FindRowCalls(const ParseNode& node, std::vector<const ParseNode*>* numbered, size_t* others) {
  if (node.Is(Tag::kSubLink)) return;
  if (node.Is(Tag::kFuncCall)) {
    const std::string_view name = CalledName(node);
    if (IsNumbered(node)) {
      numbered->push_back(&node);
    } else if (name == "generate_series" || IsUnnested(name)) {
      ++*others;
    }
  }
  for (const ParseNode& n : node) FindRowCalls(n, numbered, others);
}

}  // namespace

Status BindTargetList(const ParseNode& targets, QueryBlock* block) {
  Query& query = *block->query;
  const ParseNode* rows = nullptr;  // a function that makes them
  ExprPtr number;                   // of the row, where several make them
  block->context.rows_of = [&](const ParseNode& call) -> Result<ExprPtr> {
    if (number != nullptr && IsNumbered(call)) return FromBinder(block).NumberedValue(call, number->Clone());
    std::vector<const ParseNode*> calls;
    size_t others = 0;
    FindRowCalls(targets, &calls, &others);
    if (rows != nullptr || (others > 0 && !calls.empty())) {
      return Unsupported("several functions that make rows in one select list are not supported", call.location(),
                         "unnest and generate_subscripts of arrays are; put others into FROM.");
    }
    rows = &call;
    if (calls.size() < 2 && CalledName(call) != "generate_subscripts") return FromBinder(block).AddRows(call);
    if (!IsNumbered(call))
      return SqlError("generate_subscripts takes an array and the number of its dimension", call.location());
    TESSERA_ASSIGN(number, FromBinder(block).AddNumbers(calls));
    return FromBinder(block).NumberedValue(call, number->Clone());
  };
  const Dialect::Mark* star = nullptr;  // the last one
  for (const ParseNode& target : targets) {
    if (star != nullptr && IsReplacement(target, *star)) continue;  // bound with its star
    const ParseNode& value = *target.Get(Field::k_val);
    if (const auto* mark = FindMark(block->context, Dialect::Mark::Kind::kStar, value.location())) star = mark;
    TESSERA_TRY(AddOutput(target, block));
    if (query.outputs.size() > kMaxItems) {
      return Unsupported("a result of more than 4096 columns is not supported", target.location());
    }
  }
  query.visible = static_cast<int>(query.outputs.size());
  block->context.rows_of = nullptr;
  block->rows_of = rows;
  return {};
}

Result<bool> BindForEachColumn(const ParseNode& condition, QueryBlock* block) {
  const ParseNode* const columns = FindColumns(condition);
  if (columns == nullptr) return false;
  TESSERA_ASSIGN(const std::vector<ScopeColumn> each, ColumnsOf(*columns, *block));
  for (const ScopeColumn& c : each) {
    block->context.each = &c;
    ExpressionBinder binder(&block->context, &block->scope, Clause::kWhere);
    Result<ExprPtr> e = binder.BindBoolean(condition, "argument of WHERE");
    block->context.each = nullptr;
    if (!e.ok()) return e.status();
    SplitConjuncts(std::move(e).value(), &block->query->conjuncts);
  }
  return true;
}

Status BindRow(const ParseNode& items, QueryBlock* block) {
  Query& query = *block->query;
  ExpressionBinder binder(&block->context, nullptr, Clause::kValues);
  for (const ParseNode& item : items) {
    if (query.outputs.size() >= kMaxItems)
      return Unsupported("a result of more than 4096 columns is not supported", item.location());
    TESSERA_ASSIGN(ExprPtr e, binder.Bind(item));
    query.outputs.push_back({std::move(e), "column" + std::to_string(query.outputs.size() + 1)});
  }
  query.visible = static_cast<int>(query.outputs.size());
  return {};
}

Result<int> OutputByPosition(const ParseNode& node, const QueryBlock& block, const char* clause) {
  const Query& query = *block.query;
  if (!node.Is(Tag::kA_Const)) return -1;
  if (node.Get(Field::k_ival) == nullptr) {
    return SqlError(ErrorKind::kSyntax, "non-integer constant in " + std::string(clause), node.location());
  }
  const int64_t n = ExpressionBinder::IntegerOfConstant(block.context.sql, node);
  if (n < 1 || n > query.visible) {
    return SqlError(ErrorKind::kColumnReference,
                    std::string(clause) + " position " + std::to_string(n) + " is not in select list", node.location());
  }
  return static_cast<int>(n - 1);
}

Result<int> OutputByName(const ParseNode& node, const QueryBlock& block, const char* clause) {
  const Query& query = *block.query;
  std::string_view name;
  if (!IsBareName(node, &name)) return -1;
  int found = -1;
  for (int i = 0; i < query.visible; ++i) {
    const Output& o = query.outputs[static_cast<size_t>(i)];
    if (o.name != name) continue;
    if (found >= 0 && !query.outputs[static_cast<size_t>(found)].expr->SameAs(*o.expr)) {
      return SqlError(ErrorKind::kAmbiguousColumn, std::string(clause) + " \"" + std::string(name) + "\" is ambiguous",
                      node.location());
    }
    if (found < 0) found = i;
  }
  return found;
}

}  // namespace tessera
