// Calls of macros, in expressions and in FROM; the texts that other functions are bound by.
#include <string>

#include "compiler/bind/expression_binder.h"
#include "compiler/bind/from_binder.h"
#include "compiler/bind/inner_block.h"
#include "compiler/bind/macro_call.h"
#include "compiler/parse/parser.h"
#include "compiler/query/correlation.h"
#include "compiler/query/parameters.h"
#include "compiler/query/query_copy.h"
#include "compiler/query/window_call.h"

namespace tessera {

Result<ExprPtr> ExpressionBinder::BindText(const MacroText& text, const MacroFrame& frame, int position) {
  MacroBody body(context_, text, &frame);
  ExpressionBinder inside(body.context(), nullptr, clause_);
  inside.in_aggregate_ = in_aggregate_;
  inside.in_window_ = in_window_;
  inside.may_skip_ = may_skip_;
  inside.in_and_ = in_and_;
  Result<ExprPtr> e = inside.Bind(*text.body);
  if (!e.ok()) return body.ErrorOf(e.status(), position);
  body.Leave(position, e->get(), nullptr);
  return e;
}

Result<ExprPtr> ExpressionBinder::BindMacroArgument(std::string_view name, int position) {
  int levels = 0;
  const MacroFrame* const frame = FrameOf(*context_, &levels);
  if (frame == nullptr) return ExprPtr();
  for (const MacroFrame::Argument& argument : frame->arguments) {
    if (argument.name != name) continue;
    if (in_aggregate_ > 0 && HasAggregate(*argument.value))
      return SqlError(ErrorKind::kGrouping, "aggregate function calls cannot be nested", position);
    if ((in_aggregate_ > 0 || in_window_) && HasWindow(*argument.value))
      return SqlError(ErrorKind::kWindowing, "window function calls cannot be nested", position);
    TESSERA_ASSIGN(ExprPtr copy, Copy(*argument.value));
    // What another use has said of a parameter of the statement.
    if (IsParameter(*copy) && dialect().parameters != nullptr)
      copy->type = dialect().parameters->types[static_cast<size_t>(copy->index) - 1];
    return MoveArgument(std::move(copy), levels, name, position);
  }
  return ExprPtr();
}

Result<ExprPtr> ExpressionBinder::BindMacro(const Macro& macro, const ParseNode& call) {
  const int position = call.location();
  if (clause_ == Clause::kConstraint || clause_ == Clause::kDefault) {
    return Unsupported("a macro in CHECK, GENERATED and DEFAULT is not supported", position,
                       "Write its expression: a macro may be dropped.");
  }
  if (call.Get(Field::k_over) != nullptr)
    return SqlError("OVER specified, but " + macro.name + " is a macro", position, "OVER may stand in its body.");
  TESSERA_TRY(RefuseAggregateWords(call, macro.name));
  TESSERA_ASSIGN(MacroFrame frame, EnterMacro(macro, *context_, position));
  TESSERA_ASSIGN(const MacroDefinition definition, ReadMacroDefinition(macro.definition));
  ++may_skip_;
  TESSERA_TRY(BindMacroArguments(definition, call, this, context_, &frame));
  --may_skip_;
  TESSERA_ASSIGN(const auto text, ParseMacroText(std::string_view(macro.definition).substr(definition.body), false));
  return BindText(*text, frame, position);
}

Status FromBinder::BindMacro(const Macro& macro, const ParseNode& item, const ParseNode& call, NameScope* scope) {
  const int position = call.location();
  if (item.Get(Field::k_ordinality) != nullptr) {
    return Unsupported("WITH ORDINALITY of a macro is not supported", position,
                       "row_number() OVER () in its query numbers the rows.");
  }
  if (context_.nesting > kMaxNesting) return NestedTooDeeply(position);
  NameScope visible;
  TESSERA_TRY(AddVisible(&visible));
  TESSERA_ASSIGN(MacroFrame frame, EnterMacro(macro, context_, position));
  TESSERA_ASSIGN(const MacroDefinition definition, ReadMacroDefinition(macro.definition));
  ExpressionBinder binder(&context_, &visible, Clause::kValues);
  TESSERA_TRY(BindMacroArguments(definition, call, &binder, &context_, &frame));
  TESSERA_ASSIGN(const auto text, ParseMacroText(std::string_view(macro.definition).substr(definition.body), true));
  MacroBody body(&context_, *text, &frame);
  Result<std::unique_ptr<Query>> bound = BindQueryBlock(*text->body, body.context(), nullptr);
  if (!bound.ok()) return body.ErrorOf(bound.status(), position);
  std::shared_ptr<Query> query = std::move(bound).value();
  body.Leave(position, nullptr, query.get());
  const bool correlated = RefersOutward(*query);
  Relation relation = DerivedTable(std::move(query));
  relation.correlated = correlated;
  relation.alias = macro.name;
  return AddRelation(std::move(relation), "", item.Get(Field::k_alias), position, scope);
}

}  // namespace tessera
