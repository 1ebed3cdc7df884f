#include "compiler/parse/macro_text.h"

#include <algorithm>
#include <utility>

namespace tessera {
namespace {

/// The clauses that a SELECT of one expression lacks.
constexpr Field kClauses[] = {Field::k_fromClause,    Field::k_whereClause, Field::k_groupClause, Field::k_havingClause,
                              Field::k_windowClause,  Field::k_sortClause,  Field::k_limitCount,  Field::k_limitOffset,
                              Field::k_withClause,    Field::k_intoClause,  Field::k_valuesLists, Field::k_larg,
                              Field::k_distinctClause};

/// The one expression of the select list, or nullptr.
const ParseNode* OnlyExpression(const ParseNode& select) {
  const auto has = [&](Field clause) { return select.Get(clause) != nullptr; };
  const ParseNode* const targets = select.Get(Field::k_targetList);
  if (targets == nullptr || targets->size() != 1 || std::any_of(std::begin(kClauses), std::end(kClauses), has))
    return nullptr;
  return targets->first()->Get(Field::k_name) == nullptr ? targets->first()->Get(Field::k_val) : nullptr;
}

}  // namespace

Result<std::shared_ptr<const MacroText>> ParseMacroText(std::string_view text, bool is_query) {
  auto out = std::make_shared<MacroText>();
  out->sql = std::string(is_query ? std::string_view() : kBeforeExpression) + std::string(text);
  const auto before = static_cast<int>(out->sql.size() - text.size());
  Result<ParsedStatement> parsed = Parse(out->sql);
  if (!parsed.ok()) {
    const Status& s = parsed.status();
    return Status(s.kind(), s.message(), s.hint(), std::max(s.position() - before, -1));
  }
  out->parsed = std::move(parsed).value();
  const ParseNode& statement = *out->parsed.statement;
  const bool selects = statement.Is(Tag::kSelectStmt);
  out->body = !selects ? nullptr : is_query ? &statement : OnlyExpression(statement);
  if (out->body != nullptr) return std::shared_ptr<const MacroText>(std::move(out));
  return is_query ? SqlError(ErrorKind::kSyntax, "AS TABLE takes a query", 0)
                  : SqlError(ErrorKind::kSyntax, "a macro is one expression", 0,
                             "CREATE MACRO f(a) AS TABLE SELECT ... makes a table.");
}

}  // namespace tessera
