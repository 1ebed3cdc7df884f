// Sections over the entries of a dictionary.
#include "compiler/generate/dictionary_sections.h"

#include <cstdint>
#include <utility>

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

/// The functions that work on entries with some arguments only.
bool ServesOwn(const Expr& e) {
  if (e.function == Function::kCast) return e.type.id == TypeId::kText && e.args[0]->type.id == TypeId::kText;
  const auto is_within = [&](size_t i, int64_t least, int64_t greatest) {
    const Expr& a = *e.args[i];
    return IsConstant(a) && !a.constant.null && a.constant.i64 >= least && a.constant.i64 <= greatest;
  };
  // What makes an entry longer could fail for one that no row needs: so only a little.
  constexpr int64_t kLonger = 64, kPadded = 1024;
  switch (e.function) {
    case Function::kReplace:
    case Function::kTranslate:
      return IsConstant(*e.args[1]) && IsConstant(*e.args[2]) && e.args[2]->constant.text.size() <= kLonger;
    case Function::kRegexReplace:
      return e.args[2]->constant.text.size() <= kLonger;
    case Function::kRepeat:
      return is_within(1, INT64_MIN, kLonger);
    case Function::kLpad:
    case Function::kRpad:
      return is_within(1, INT64_MIN, kPadded);
    case Function::kSplitPart:
      return is_within(2, INT64_MIN, INT64_MAX) && e.args[2]->constant.i64 != 0;
    default:  // SUBSTRING: a negative length is an error
      return e.args.size() < 3 || is_within(2, 0, INT64_MAX);
  }
}

}  // namespace

bool DictionarySections::Serve(const Expr& e, const Expr** column) const {
  switch (e.kind) {
    case Expr::Kind::kConstant:
      return !e.constant.null;
    case Expr::Kind::kColumn:
      if (e.type.storage() != StorageClass::kText || b_->scope()->TableSlot(e, b_) < 0) return false;
      if (*column == nullptr) *column = &e;
      return (*column)->relation == e.relation && (*column)->column == e.column;
    case Expr::Kind::kFunction:
      break;
    default:
      return false;
  }
  switch (Info(e.function).entries) {
    case EntryRule::kNo:
      return false;
    case EntryRule::kYes:
      break;
    case EntryRule::kOwn:
      if (!ServesOwn(e)) return false;
      break;
  }
  for (const ExprPtr& a : e.args) {
    if (!Serve(*a, column)) return false;
  }
  return *column != nullptr;
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
