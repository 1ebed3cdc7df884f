#include "compiler/bind/macro_binder.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/bind/from_binder.h"
#include "compiler/bind/inner_block.h"
#include "compiler/bind/macro_call.h"
#include "compiler/bind/query_block.h"
#include "compiler/parse/parser.h"
#include "compiler/query/nearest_name.h"
#include "compiler/query/type_rules.h"
#include "compiler/query/window_call.h"
#include "tablet/values/value_parser.h"

namespace tessera {
namespace {

bool IsBuiltIn(const Macro& macro) {
  if (macro.of_rows) return IsTableFunction(macro.name);
  const std::vector<std::string_view>& names = FunctionNames();
  return std::binary_search(names.begin(), names.end(), macro.name) || IsWindowFunctionName(macro.name) ||
         FindTypeName(macro.name);
}

/// Arguments with which a body is tried; the type that it needs is not known.
std::vector<Value> TriedValues() {
  std::vector<Value> values = {Value::Null(SqlType::Of(TypeId::kNull))};
  struct Row {
    TypeId type;
    const char* text;
  };
  for (const auto& [type, text] : {Row{TypeId::kInteger, "1"}, Row{TypeId::kText, "1"}, Row{TypeId::kDouble, "1"},
                                   Row{TypeId::kDate, "2000-01-01"}, Row{TypeId::kTimestamp, "2000-01-01"},
                                   Row{TypeId::kBoolean, "true"}, Row{TypeId::kInterval, "1 day"}}) {
    const SqlType of = type == TypeId::kText ? SqlType::Text() : SqlType::Of(type);
    if (Result<Value> value = ParseValue(text, of); value.ok()) values.push_back(*value);
  }
  return values;
}

/// Binds the body with `value` for each parameter. The error's position is one of the text.
Status TryBody(const Macro& macro, const MacroDefinition& definition, const MacroText& text, const Value& value,
               const Dialect& dialect, const Snapshot& snapshot) {
  QueryBlock block("", &dialect, snapshot);
  TESSERA_ASSIGN(MacroFrame frame, EnterMacro(macro, block.context, -1));
  for (const MacroParameter& p : definition.parameters) AddArgument(p.name, MakeConstant(value, -1), &frame);
  MacroBody body(&block.context, text, &frame);
  if (macro.of_rows) return BindQueryBlock(*text.body, body.context(), nullptr).status();
  return ExpressionBinder(body.context(), nullptr, Clause::kSelect).Bind(*text.body).status();
}

/// What is found without types: calls of functions that there are not, and the macro's own.
Status CheckCalls(const ParseNode& node, const Macro& macro, const Snapshot& snapshot, int levels) {
  if (levels > kMaxNesting) return {};
  const ParseNode* const names = node.Is(Tag::kFuncCall) ? node.Get(Field::k_funcname) : nullptr;
  if (names != nullptr && names->size() == 1) {
    const std::string name(names->first()->Text(Field::k_sval));
    const bool known = IsBuiltIn({name, false, ""}) || IsBuiltIn({name, true, ""}) ||
                       FindMacro(snapshot.macros, name, false) != nullptr ||
                       FindMacro(snapshot.macros, name, true) != nullptr;
    if (!known && name == macro.name)
      return SqlError("macro \"" + name + "\" calls itself: " + name + " -> " + name, node.location(),
                      "WITH RECURSIVE makes a query that reads its own rows.");
    const std::string nearest = known ? "" : NearestName(name, FunctionNames());
    if (!known)
      return SqlError(ErrorKind::kUndefinedFunction, "function " + name + " does not exist", node.location(),
                      nearest.empty() ? "" : "Perhaps you meant function \"" + nearest + "\".");
  }
  for (const ParseNode& child : node) TESSERA_TRY(CheckCalls(child, macro, snapshot, levels + 1));
  return {};
}

}  // namespace

Status BindCreateMacro(const Dialect& dialect, const Snapshot& snapshot, Statement* out) {
  const Dialect::MacroWords& words = dialect.macro;
  out->kind = Statement::Kind::kCreateMacro;
  out->definition.or_replace = words.or_replace;
  out->definition.if_exists = words.if_not_exists;
  out->definition.macro = {words.name, words.of_rows, words.definition};
  const Macro& macro = out->definition.macro;
  if (words.or_replace && words.if_not_exists)
    return SqlError("CREATE MACRO takes OR REPLACE or IF NOT EXISTS, not both", words.position);
  if (IsBuiltIn(macro))
    return SqlError("\"" + macro.name + "\" is a built-in function", words.position, "Give the macro another name.");
  const bool exists = FindMacro(snapshot.macros, macro.name, macro.of_rows) != nullptr;
  if (exists && words.if_not_exists) return {};
  if (exists && !words.or_replace)
    return SqlError(ErrorKind::kDuplicateFunction, "macro \"" + macro.name + "\" already exists", words.position,
                    "CREATE OR REPLACE MACRO puts another in its place.");
  const auto in_statement = [&](const Status& s, int begin) -> Status {
    return {s.kind(), s.message(), s.hint(), s.position() < 0 ? words.position : std::max(s.position() + begin, 0)};
  };
  TESSERA_ASSIGN(const MacroDefinition definition, ReadMacroDefinition(macro.definition));
  const int begin = words.begin + static_cast<int>(definition.body);
  Result<std::shared_ptr<const MacroText>> text =
      ParseMacroText(std::string_view(macro.definition).substr(definition.body), macro.of_rows);
  if (!text.ok()) return in_statement(text.status(), begin);
  for (const MacroParameter& p : definition.parameters) {
    if (p.default_text.empty()) continue;
    Result<std::shared_ptr<const MacroText>> value = ParseMacroText(p.default_text, false);
    const Status status =
        value.ok() ? TryBody({"", false, ""}, {}, **value, Value::Null(SqlType::Of(TypeId::kNull)), dialect, snapshot)
                   : value.status();
    if (!status.ok())
      return {status.kind(), "default of \"" + p.name + "\": " + status.message(), status.hint(), words.begin};
  }
  // An error that is the same for all types of arguments is one of the body.
  Status first;
  bool same = true;
  for (const Value& value : TriedValues()) {
    const Status status = TryBody(macro, definition, **text, value, dialect, snapshot);
    if (status.ok()) return {};
    if (first.ok()) first = status;
    same = same && first.message() == status.message();
    if (definition.parameters.empty()) break;
  }
  const Status of_calls = CheckCalls(*(*text)->body, macro, snapshot, 0);
  if (!of_calls.ok()) first = of_calls;
  if (of_calls.ok() && !same) return {};
  return in_statement(first, begin - static_cast<int>(macro.of_rows ? 0 : kBeforeExpression.size()));
}

Status BindDropMacro(const Dialect& dialect, const ParseNode& drop, int position, const Snapshot& snapshot,
                     Statement* out) {
  const Dialect::MacroWords& words = dialect.macro;
  out->kind = Statement::Kind::kDropMacro;
  out->definition.macro = {words.name, words.of_rows, ""};
  out->definition.if_exists = drop.Get(Field::k_missing_ok) != nullptr;
  if (drop.Get(Field::k_objects)->size() > 1)
    return Unsupported("DROP MACRO of several macros is not supported", position);
  if (out->definition.if_exists || FindMacro(snapshot.macros, words.name, words.of_rows) != nullptr) return {};
  std::string hint;
  if (FindMacro(snapshot.macros, words.name, !words.of_rows) != nullptr) {
    hint = words.of_rows ? "DROP MACRO drops that of an expression." : "DROP MACRO TABLE drops that of a table.";
  } else if (IsBuiltIn(out->definition.macro)) {
    hint = "It is a built-in function.";
  } else {
    std::vector<std::string_view> names;
    for (const Macro& m : snapshot.macros) {
      if (m.of_rows == words.of_rows) names.push_back(m.name);
    }
    const std::string nearest = NearestName(words.name, names);
    if (!nearest.empty()) hint = "Perhaps you meant macro \"" + nearest + "\".";
  }
  return SqlError(ErrorKind::kUndefinedFunction, "macro \"" + words.name + "\" does not exist", position, hint);
}

}  // namespace tessera
