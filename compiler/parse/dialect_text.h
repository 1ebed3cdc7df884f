// What other engines write and PostgreSQL's grammar lacks -> text that the grammar takes, and marks for the binder.
// Private to compiler/.
//
// Works on tokens. Offsets of the new text are mapped back, so that all after the parser sees offsets in the user's
// text only: those of the parse tree and of the marks. A text that has none of these forms is not copied; reading its
// tokens takes some 6 us per KB.
//
// Start at: DialectText::Read. One thread.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/parse/dialect.h"

namespace tessera {

/// Runs a query and gives the texts of its first column that are not NULL. What columns PIVOT makes depends on the rows.
using QueryRunner = std::function<Result<std::vector<std::string>>(const std::string& sql)>;

/// A statement's text as the grammar takes it.
class DialectText {
 public:
  /// `run` may be empty. Errors: a statement of another engine, with what to write instead; EXCLUDE without names; those of
  /// the queries that PIVOT and UNPIVOT need.
  /// (In dialect_reader.cc, which notes the edits; those are applied here.)
  static Result<DialectText> Read(std::string_view sql, const QueryRunner& run = {});

  const std::string& text() const { return text_; }
  /// The offset in the user's text; of what was put in, where it was put.
  int ToOriginal(int offset) const;
  /// Names the derived table that begins at `position` of the user's text. False if that cannot be.
  bool NameDerivedTable(int position);

  Dialect dialect;

 private:
  friend class DialectReader;
  struct Edit {
    size_t begin = 0, end = 0;  ///< what is left out of the user's text
    std::string text;           ///< what is put there
    size_t from = 0, to = 0;    ///< and then this part of the user's text, if it is not empty
  };
  /// Characters of the new text that are those of the user's, or came from an edit.
  struct Piece {
    size_t begin = 0, original = 0;
    bool copied = false;
  };
  void Apply();
  void Emit(size_t begin, size_t end, const Edit* cut);
  void Append(std::string_view text, size_t original, bool copied);

  std::string_view sql_;
  std::vector<Edit> edits_;  ///< sorted by begin
  std::string text_;
  std::vector<Piece> pieces_;  ///< empty: the text is the user's
};

}  // namespace tessera
