// Sections over the entries of a dictionary.
#include "compiler/generate/dictionary_sections.h"

#include <utility>

#include "compiler/query/entry_functions.h"
#include "compiler/query/expr_builder.h"

namespace tessera {

using vm::Opcode;
using vm::Operand;

namespace {

/// The scope of a dictionary section: the column is slot 0.
class EntryScope : public Scope {
 public:
  bool Find(const Expr&, SectionBuilder*, Operand* operand) override {
    *operand = Operand::Slot(0);
    return true;
  }
};

SectionBuilder NewSection(SectionBuilder* around, const Expr& column, Scope* scope) {
  SectionBuilder b(around->program(), around->constants(), scope);
  b.section.source_kind = vm::Section::Source::kDictionary;
  b.section.sink = vm::Section::Sink::kMap;
  b.section.label = "entries of a text column";
  b.section.slots.push_back({0, column.type, -1});
  return b;
}

Status Finish(SectionBuilder* b, int* number) {
  b->Emit(Opcode::Emit);
  b->Emit(Opcode::End);
  TESSERA_TRY(b->CheckLimits());
  *number = static_cast<int>(b->program()->sections.size());
  b->program()->sections.push_back(std::move(b->section));
  return Status::Ok();
}

}  // namespace

const Expr* DictionarySections::Serve(const Expr& e) const {
  const Expr* const column = ColumnOfEntries(e);
  return column != nullptr && b_->scope()->TableSlot(*column, b_) >= 0 ? column : nullptr;
}

Status DictionarySections::AddValue(const Expr& e, const Expr& column, int* number) {
  EntryScope scope;
  SectionBuilder b = NewSection(b_, column, &scope);
  b.section.columns = {e.type};
  const int r = b.NewRegister(e.type);
  TESSERA_TRY(b.Value(e));
  b.Store(r);
  return Finish(&b, number);
}

Status DictionarySections::AddCondition(const Expr& e, const Expr& column, bool truth, int* number) {
  EntryScope scope;
  SectionBuilder b = NewSection(b_, column, &scope);
  TESSERA_TRY(b.Keep(e, truth));
  return Finish(&b, number);
}

}  // namespace tessera
