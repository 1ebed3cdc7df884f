#include "compiler/bind/macro_call.h"

#include <algorithm>

#include "compiler/parse/parser.h"
#include "compiler/query/correlation.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/query_walk.h"
#include "compiler/query/window_call.h"

namespace tessera {
namespace {

/// More than a statement has bytes; positions of arguments are that much lower, once for each call that they are in.
constexpr int kArgumentShift = 1 << 24;
static_assert(kMaxStatementBytes < kArgumentShift / 2);
constexpr int kMostFrames = 64;

bool IsOfArgument(int position) { return position <= -kArgumentShift / 2; }
int Outside(int position, int call) { return IsOfArgument(position) ? position + kArgumentShift : call; }

void Shift(Expr* e) {
  e->position -= kArgumentShift;
  for (const ExprPtr& a : e->args) Shift(a.get());
}

bool Has(const Expr& e, Expr::Kind kind) {
  if (e.kind == kind) return true;
  return std::any_of(e.args.begin(), e.args.end(), [&](const ExprPtr& a) { return Has(*a, kind); });
}

void MoveNodes(Expr* e, int levels) {
  if (e->kind == Expr::Kind::kOuter) {
    e->index += levels;
  } else if (e->kind == Expr::Kind::kColumn && e->relation != kSubqueryColumn) {
    e->kind = Expr::Kind::kOuter;
    e->index = levels;
  } else if (e->kind == Expr::Kind::kAggregate) {
    e->kind = Expr::Kind::kOuter;
    e->relation = kOuterAggregate;
    e->column = std::exchange(e->index, levels);
  }
  if (e->kind == Expr::Kind::kSubquery) MoveInward(e->subquery->query.get(), levels);
  for (const ExprPtr& a : e->args) MoveNodes(a.get(), levels);
}

/// "f -> g -> f"
std::string Chain(const MacroFrame* frame, std::string_view name) {
  std::string chain(name);
  for (; frame != nullptr; frame = frame->caller) {
    if (frame->name.empty()) continue;
    chain = std::string(frame->name) + " -> " + chain;
    if (frame->name == name) break;
  }
  return chain;
}

std::string CountOf(size_t n) { return std::to_string(n) + (n == 1 ? " argument" : " arguments"); }

}  // namespace

const MacroFrame* FrameOf(const BindContext& context, int* levels) {
  *levels = 0;
  for (const BindContext* block = &context; block != nullptr; block = block->outer, ++*levels) {
    if (block->macro != nullptr) return block->macro;
  }
  return nullptr;
}

const Macro* FindMacro(const BindContext& context, std::string_view name, bool of_rows) {
  const std::vector<Macro>* const macros = context.dialect != nullptr ? context.dialect->macros : nullptr;
  return macros == nullptr || macros->empty() ? nullptr : FindMacro(*macros, name, of_rows);
}

uint64_t RandomSite(const BindContext& context, int position) {
  int levels = 0;
  const MacroFrame* const frame = FrameOf(context, &levels);
  const auto at = static_cast<uint64_t>(std::max(position, 0));
  // (An odd number of 64 bits that has no pattern.)
  return frame == nullptr ? at : ((frame->site + 1) * 0x9E3779B97F4A7C15 + at) >> 1;
}

MacroFrame FrameOfText(const BindContext& context, int position) {
  MacroFrame frame;
  int levels = 0;
  frame.caller = FrameOf(context, &levels);
  frame.site = RandomSite(context, position);
  frame.depth = frame.caller == nullptr ? 1 : frame.caller->depth + 1;
  return frame;
}

Result<MacroFrame> EnterMacro(const Macro& macro, const BindContext& context, int position) {
  MacroFrame frame = FrameOfText(context, position);
  frame.name = macro.name;
  frame.of_rows = macro.of_rows;
  for (const MacroFrame* f = frame.caller; f != nullptr; f = f->caller) {
    if (f->name == macro.name && f->of_rows == macro.of_rows)
      return SqlError("macro \"" + macro.name + "\" calls itself: " + Chain(frame.caller, macro.name), position,
                      "WITH RECURSIVE makes a query that reads its own rows.");
  }
  if (frame.depth > kMostFrames)
    return SqlError("more than " + std::to_string(kMostFrames) + " macros call each other", position);
  return frame;
}

void AddArgument(std::string_view name, ExprPtr value, MacroFrame* frame) {
  Shift(value.get());
  frame->arguments.push_back({name, std::move(value)});
}

Status BindMacroArguments(const MacroDefinition& definition, const ParseNode& call, ExpressionBinder* binder,
                          BindContext* context, MacroFrame* frame) {
  const std::string macro = "macro \"" + std::string(frame->name) + "\"";
  const std::vector<MacroParameter>& parameters = definition.parameters;
  std::vector<ExprPtr> values(parameters.size());
  const ParseNode* const list = call.Get(Field::k_args);
  const size_t given = list == nullptr ? 0 : list->size();
  if (given > parameters.size())
    return SqlError(macro + " takes " + CountOf(parameters.size()) + ", not " + std::to_string(given), call.location());
  size_t next = 0;
  bool named = false;
  for (const ParseNode* node = list == nullptr ? nullptr : list->first(); node != nullptr; node = node->next()) {
    size_t to = next++;
    const ParseNode* value = node;
    if (node->Is(Tag::kNamedArgExpr)) {
      named = true;
      const std::string_view name = node->Text(Field::k_name);
      for (to = 0; to < parameters.size() && parameters[to].name != name;) ++to;
      if (to == parameters.size())
        return SqlError(ErrorKind::kUndefinedParameter, macro + " has no parameter \"" + std::string(name) + "\"",
                        node->location());
      value = node->Get(Field::k_arg);
    } else if (named) {
      return SqlError(ErrorKind::kSyntax, "positional argument cannot follow named argument", node->FirstLocation());
    }
    if (values[to] != nullptr)
      return SqlError("argument \"" + parameters[to].name + "\" is given twice", node->location());
    TESSERA_ASSIGN(values[to], binder->Bind(*value));
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (values[i] == nullptr) {
      if (parameters[i].default_text.empty())
        return SqlError(macro + " takes an argument \"" + parameters[i].name + "\"", call.location());
      TESSERA_ASSIGN(const auto text, ParseMacroText(parameters[i].default_text, false));
      MacroFrame alone;
      alone.name = frame->name;
      alone.caller = frame->caller;
      alone.depth = frame->depth;
      alone.site = frame->site + i + 1;
      MacroBody body(context, *text, &alone);
      Result<ExprPtr> value = ExpressionBinder(body.context(), nullptr, Clause::kValues).Bind(*text->body);
      if (!value.ok()) return body.ErrorOf(value.status(), call.location());
      body.Leave(call.location(), value->get(), nullptr);
      values[i] = std::move(value).value();
    }
    AddArgument(parameters[i].name, std::move(values[i]), frame);
  }
  return {};
}

bool HasAggregate(const Expr& e) { return Has(e, Expr::Kind::kAggregate); }

Result<ExprPtr> MoveArgument(ExprPtr copy, int levels, std::string_view name, int position) {
  if (levels == 0) return copy;
  const bool fixed = IsVolatile(*copy) || HasWindow(*copy) || Has(*copy, Expr::Kind::kGroup);
  if (fixed) {
    return Unsupported("random(), GROUPING or a window function as the argument \"" + std::string(name) +
                           "\", which a subquery of the macro reads, is not supported",
                       position, "Compute it in a derived table, and give its column.");
  }
  if (Has(*copy, Expr::Kind::kSubquery)) copy = CopyWithSubqueries(*copy);
  MoveNodes(copy.get(), levels);
  return copy;
}

// ---- MacroBody

MacroBody::MacroBody(BindContext* around, const MacroText& text, const MacroFrame* frame)
    : around_(*around), frame_(*frame), context_(*around) {
  if (around->dialect != nullptr) {
    static_cast<SessionNames&>(dialect_) = *around->dialect;
    dialect_.parameters = around->dialect->parameters;  // an argument may be one of which the type is not known yet
  }
  dialect_.marks = text.parsed.dialect.marks;
  context_.sql = text.sql;
  context_.dialect = &dialect_;
  context_.macro = frame;
  // Names of the call's block mean nothing in the text.
  context_.ctes = nullptr;
  context_.clauses = {};
  context_.each = nullptr;
  context_.rows_of = {};
  for (const BindContext* block = around; block != nullptr; block = block->outer) {
    before_.emplace_back(block->aggregates == nullptr ? 0 : block->aggregates->size(),
                         block->windows == nullptr ? 0 : block->windows->size());
  }
}

Status MacroBody::ErrorOf(const Status& status, int position) const {
  std::string message = status.message();
  if (!frame_.name.empty() && !message.starts_with("macro \""))
    message = "macro \"" + std::string(frame_.name) + "\": " + message;
  return {status.kind(), std::move(message), status.hint(), Outside(status.position(), position)};
}

void MacroBody::Leave(int position, Expr* e, Query* query) {
  position_ = position;
  around_.deepest = std::max(around_.deepest, context_.deepest);
  around_.copied = context_.copied;
  around_.joined_lists = context_.joined_lists;
  if (e != nullptr) Settle(e);
  if (query != nullptr) Settle(query);
  size_t i = 0;
  for (const BindContext* block = &around_; block != nullptr; block = block->outer, ++i) {
    for (size_t k = before_[i].first; block->aggregates != nullptr && k < block->aggregates->size(); ++k) {
      Aggregate& a = (*block->aggregates)[k];
      a.position = Outside(a.position, position);
      if (a.argument != nullptr) Settle(a.argument.get());
      for (AggregateOrder& o : a.order) Settle(o.expr.get());
    }
    for (size_t k = before_[i].second; block->windows != nullptr && k < block->windows->size(); ++k) {
      WindowCall& call = (*block->windows)[k];
      call.position = Outside(call.position, position);
      ForEachExpr(call, [&](ExprPtr& of) { Settle(of.get()); });
    }
  }
}

void MacroBody::Settle(Expr* e) {
  e->position = Outside(e->position, position_);
  if (e->kind == Expr::Kind::kSubquery) Settle(e->subquery->query.get());
  for (const ExprPtr& a : e->args) Settle(a.get());
}

void MacroBody::Settle(Query* query) {
  if (!settled_.insert(query).second) return;
  ForEachRoot(*query, [&](ExprPtr& e) { Settle(e.get()); });
  for (Aggregate& a : query->aggregates) a.position = Outside(a.position, position_);
  for (const Relation& r : query->relations) {
    if (r.query != nullptr) Settle(r.query.get());
  }
  for (const auto& more : query->union_all) Settle(more.get());
}

}  // namespace tessera
