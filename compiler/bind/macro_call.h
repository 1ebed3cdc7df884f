// Calls of macros: what the names of their parameters mean while their text is bound, and where errors of it stand.
// Private to compiler/.
//
// A parameter stands for the bound argument. A use of it is a copy, and copies of one expression are computed once;
// those of random() are of one call, so they are one number. Macros of the user and texts of functions.def are the same
// here.
//
// Start at: MacroFrame, MacroBody. One thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "compiler/bind/expression_binder.h"
#include "compiler/parse/macro_definition.h"
#include "compiler/parse/macro_text.h"
#include "tablet/catalog/macro.h"

namespace tessera {

/// One call, and the call in whose text it stands.
struct MacroFrame {
  struct Argument {
    std::string_view name;
    ExprPtr value;  ///< over the block of the call; its positions are marked as those of an argument
  };
  std::string_view name;  ///< of a macro of the user; "": a text of functions.def
  bool of_rows = false;
  std::vector<Argument> arguments;
  const MacroFrame* caller = nullptr;
  int depth = 0;
  uint64_t site = 0;  ///< tells calls of a statement from each other
};

/// The call whose text is bound in `context`, or nullptr. `levels`: how many blocks of it are around.
const MacroFrame* FrameOf(const BindContext& context, int* levels);

/// The macro of the user of that name, or nullptr.
const Macro* FindMacro(const BindContext& context, std::string_view name, bool of_rows);

/// Errors: it calls itself, directly or by way of others; too many calls inside of each other.
Result<MacroFrame> EnterMacro(const Macro& macro, const BindContext& context, int position);

/// The same of a text that is no macro of the user.
MacroFrame FrameOfText(const BindContext& context, int position);

/// Binds the arguments of a call to the parameters; `binder` sees what the call does.
Status BindMacroArguments(const MacroDefinition& definition, const ParseNode& call, ExpressionBinder* binder,
                          BindContext* context, MacroFrame* frame);

/// An argument is kept apart from the text by its positions.
void AddArgument(std::string_view name, ExprPtr value, MacroFrame* frame);

/// The argument as an operand `levels` blocks inside that of the call. Errors: it cannot be moved there.
Result<ExprPtr> MoveArgument(ExprPtr copy, int levels, std::string_view name, int position);
bool HasAggregate(const Expr& e);

/// Tells calls of random() from each other, in texts of macros, too.
uint64_t RandomSite(const BindContext& context, int position);

/// In which a text is bound: the block of the call without its names.
class MacroBody {
 public:
  /// `around` and `frame` outlive it.
  MacroBody(BindContext* around, const MacroText& text, const MacroFrame* frame);
  MacroBody(const MacroBody&) = delete;
  MacroBody& operator=(const MacroBody&) = delete;

  BindContext* context() { return &context_; }
  /// The error of the text as one of the call at `position`.
  Status ErrorOf(const Status& status, int position) const;
  /// To be called when all is bound: nodes of the text get the position of the call, and the block of the call what was
  /// counted.
  void Leave(int position, Expr* e, Query* query);

 private:
  void Settle(Expr* e);
  void Settle(Query* query);

  BindContext& around_;
  const MacroFrame& frame_;
  Dialect dialect_;
  BindContext context_;
  std::vector<std::pair<size_t, size_t>> before_;  ///< aggregates and windows of the block and those around it
  int position_ = -1;
  std::set<const Query*> settled_;
};

}  // namespace tessera
