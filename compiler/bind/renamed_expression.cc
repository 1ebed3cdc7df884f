#include "compiler/bind/renamed_expression.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/bind/row_rules.h"
#include "compiler/parse/parser.h"
#include "compiler/parse/sql_scanner.h"

namespace tessera {
namespace {

constexpr std::string_view kSelect = "SELECT ";

/// A name as it may stand without quotes, if it is no keyword.
bool IsPlain(std::string_view name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::ranges::all_of(name, plain);
}

std::string QuotedName(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

/// A name in the text, and what it becomes.
struct Place {
  size_t begin, end;
  std::string name;
};

class Renaming {
 public:
  Renaming(const TableSchema& before, const TableSchema& after) : before_(before), after_(after) {}

  /// The names in `sql` that are others afterwards, in their order.
  Result<std::vector<Place>> Find(const std::string& sql) {
    TESSERA_ASSIGN(const ParsedStatement parsed, Parse(sql));
    std::vector<const ParseNode*> open = {parsed.statement};
    while (!open.empty()) {
      const ParseNode& node = *open.back();
      open.pop_back();
      if (node.Is(Tag::kColumnRef)) AddReference(sql, node);
      for (const ParseNode& child : node) open.push_back(&child);
    }
    std::ranges::sort(places_, {}, &Place::begin);
    return std::move(places_);
  }

 private:
  /// column, table.column or schema.table.column
  void AddReference(const std::string& sql, const ParseNode& reference) {
    const ParseNode* fields = reference.Get(Field::k_fields);
    if (fields == nullptr || reference.location() < 0) return;
    size_t left = fields->size();
    Token token = NextToken(sql, static_cast<size_t>(reference.location()));
    for (const ParseNode& field : *fields) {
      while (token.kind != Token::Kind::kWord && token.kind != Token::Kind::kQuoted &&
             token.kind != Token::Kind::kEnd) {
        token = NextToken(sql, token.end);
      }
      AddName(token, field.Text(Field::k_sval), left--);
      token = NextToken(sql, token.end);
    }
  }

  void AddName(const Token& token, std::string_view name, size_t left) {
    if (left == 2 && name == before_.name && name != after_.name)
      places_.push_back({token.begin, token.end, after_.name});
    if (left != 1) return;
    const int column = before_.Find(name);
    if (column < 0) return;
    const std::string& now = after_.columns[static_cast<size_t>(column)].name;
    if (now != name) places_.push_back({token.begin, token.end, now});
  }

  const TableSchema& before_;
  const TableSchema& after_;
  std::vector<Place> places_;
};

}  // namespace

Result<std::string> RenamedExpression(const std::string& text, const TableSchema& before, const TableSchema& after,
                                      const SqlType& type) {
  const std::string sql = std::string(kSelect) + text;
  TESSERA_ASSIGN(const std::vector<Place> places, Renaming(before, after).Find(sql));
  TESSERA_ASSIGN(const ExprPtr old, ReadRowExpression(text, before, type));
  // (A keyword needs quotes, and is found by what the text means without.)
  for (const bool quoted : {false, true}) {
    std::string renamed;
    size_t at = kSelect.size();
    for (const Place& place : places) {
      renamed.append(sql, at, place.begin - at);
      renamed += quoted || !IsPlain(place.name) ? QuotedName(place.name) : place.name;
      at = place.end;
    }
    renamed.append(sql, at);
    const Result<ExprPtr> made = ReadRowExpression(renamed, after, type);
    if (made.ok() && (*made)->SameAs(*old)) return renamed;
  }
  return Unsupported("the expression (" + text + ") cannot follow new names");
}

}  // namespace tessera
