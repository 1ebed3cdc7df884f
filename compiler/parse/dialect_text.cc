// A statement with its edits applied, and the way back to the user's text.
#include "compiler/parse/dialect_text.h"

#include <algorithm>

#include "compiler/parse/sql_scanner.h"

namespace tessera {

void DialectText::Append(std::string_view text, size_t original, bool copied) {
  if (text.empty()) return;
  pieces_.push_back({text_.size(), original, copied});
  text_.append(text);
}

void DialectText::Apply() {
  text_.clear();
  pieces_.clear();
  if (edits_.empty()) {
    text_ = sql_;
    return;
  }
  std::stable_sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) { return a.begin < b.begin; });
  Emit(0, sql_.size(), nullptr);
}

/// `cut`: the edit of this part that does not apply here, because the part is put where it moves.
void DialectText::Emit(size_t begin, size_t end, const Edit* cut) {
  auto e = std::lower_bound(edits_.begin(), edits_.end(), begin, [](const Edit& a, size_t at) { return a.begin < at; });
  for (; e != edits_.end() && e->begin < end + (end == sql_.size()); ++e) {
    const bool moved = cut != nullptr && e->begin == cut->from && e->end == cut->to;
    if (e->begin < begin || moved) continue;  // inside what moved
    Append(sql_.substr(begin, e->begin - begin), begin, true);
    Append(e->text, e->begin, false);
    if (e->to > e->from) {
      Emit(e->from, e->to, &*e);
      Append(" ", e->begin, false);
    }
    begin = e->end;
  }
  Append(sql_.substr(begin, end - begin), begin, true);
}

int DialectText::ToOriginal(int offset) const {
  if (offset < 0 || pieces_.empty()) return offset;
  const auto at = static_cast<size_t>(offset);
  auto p = std::upper_bound(pieces_.begin(), pieces_.end(), at, [](size_t x, const Piece& q) { return x < q.begin; });
  if (p == pieces_.begin()) return 0;
  --p;
  return static_cast<int>(p->original + (p->copied ? at - p->begin : 0));
}

bool DialectText::NameDerivedTable(int position) {
  if (position < 0) return false;
  int depth = 0;
  for (Token t = NextToken(sql_, static_cast<size_t>(position)); t.kind != Token::Kind::kEnd;
       t = NextToken(sql_, t.end)) {
    if (t.kind != Token::Kind::kSymbol) continue;
    if (sql_[t.begin] == '(') ++depth;
    if (sql_[t.begin] != ')' || --depth > 0) continue;
    if (depth < 0) return false;
    edits_.push_back({t.end, t.end, " AS \"" + std::string(kNoAlias) + "\"", 0, 0});
    Apply();
    return true;
  }
  return false;
}

}  // namespace tessera
