#include "compiler/bind/calls/composed_function.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "compiler/bind/macro_call.h"

namespace tessera {
namespace {

/// What a parameter takes, and the type that an untyped constant gets; kNull: it stays untyped.
struct ParameterKind {
  std::string_view name;
  int types;  ///< a TypeClass
  TypeId preferred;
};
constexpr ParameterKind kParameterKinds[] = {
    {"Any", kClassAny, TypeId::kNull},
    {"Number", kClassNumber, TypeId::kDouble},
    {"Float", kClassFloat, TypeId::kDouble},
    {"Integer", kClassInteger, TypeId::kInteger},
    {"Text", kClassText, TypeId::kText},
    {"Bytes", kClassText | kClassBytea, TypeId::kText},
    {"Moment", kClassMoment, TypeId::kTimestamp},
    {"Day", kClassMoment, TypeId::kDate},
    {"Clock", kClassMoment | kClassTime, TypeId::kTimestamp},
    {"Span", kClassInterval, TypeId::kNull},
    {"Enum", kClassEnum, TypeId::kNull},
};

/// Takes the first parameter off the list: its name, and its kind; nullptr: it is the "..." at the end.
std::pair<std::string_view, const ParameterKind*> TakeParameter(std::string_view* list) {
  const std::string_view one = list->substr(0, list->find(", "));
  list->remove_prefix(std::min(list->size(), one.size() + 2));
  const size_t blank = one.find(' ');
  if (blank == std::string_view::npos) return {one, nullptr};
  const auto* const kind = std::find_if(std::begin(kParameterKinds), std::end(kParameterKinds),
                                        [&](const ParameterKind& k) { return k.name == one.substr(blank + 1); });
  return {one.substr(0, blank), kind};
}

/// The text of an entry, which is parsed once in a process.
Result<std::shared_ptr<const MacroText>> TextOf(const ComposedEntry& entry) {
  static std::mutex mutex;
  static std::map<const ComposedEntry*, std::shared_ptr<const MacroText>> texts;
  std::lock_guard lock(mutex);
  std::shared_ptr<const MacroText>& text = texts[&entry];
  if (text == nullptr) {
    TESSERA_ASSIGN(text, ParseMacroText(entry.text, false));
  }
  return text;
}

}  // namespace

const ComposedFunction* ExpressionBinder::FindComposed(std::string_view name) {
  using Self = ExpressionBinder;
  static constexpr ComposedFunction kRows[] = {
#define TEXT(parameters, text) ComposedEntry{parameters, text},
#define BOUND(parameters, Member) ComposedEntry{parameters, nullptr, &Self::Member},
#define CALLED(least, most, Member) ComposedEntry{nullptr, nullptr, {}, &Self::Member, least, most},
#define SYNTAX(name, Group, Usage, Result, Description, ...) {name, {__VA_ARGS__}},
#include "compiler/query/functions.def"
  };
  const auto* const row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const ComposedFunction& r) { return r.name == name; });
  return row == std::end(kRows) ? nullptr : row;
}

Result<bool> ExpressionBinder::TakesArguments(const ComposedEntry& entry, std::vector<ExprPtr>* args) const {
  std::string_view list = entry.parameters;
  size_t n = 0;
  bool more = false;
  for (; !list.empty() && !more; ++n) more = TakeParameter(&list).second == nullptr;
  if (more ? args->size() + 1 < n : args->size() != n) return false;
  list = entry.parameters;
  bool takes = true;
  for (ExprPtr& a : *args) {
    const ParameterKind* const kind = TakeParameter(&list).second;
    if (kind == nullptr) break;
    const bool text = kind->preferred == TypeId::kText;
    // After one that does not fit only what cannot fail: the error shows the types.
    if (text || (takes && kind->preferred != TypeId::kNull)) {
      TESSERA_ASSIGN(a, Resolve(std::move(a), text ? SqlType::Text() : SqlType::Of(kind->preferred)));
    }
    takes = takes && (kind->types == kClassAny || (ClassOf(a->type) & kind->types) != 0);
  }
  return takes;
}

Result<ExprPtr> ExpressionBinder::CallComposed(const ComposedEntry& entry, std::string_view name,
                                               std::vector<ExprPtr>* args, int position) {
  struct Caller {
    ExpressionBinder* self;
    std::string_view name;
    std::vector<ExprPtr>& a;
    int at;
    Result<ExprPtr> operator()(std::monostate) { return ExprPtr(); }
    Result<ExprPtr> operator()(ComposedMember<int> f) { return (self->*f)(at); }
    Result<ExprPtr> operator()(ComposedMember<ExprPtr, int> f) { return (self->*f)(std::move(a[0]), at); }
    Result<ExprPtr> operator()(ComposedMember<ExprPtr, ExprPtr, int> f) {
      return (self->*f)(std::move(a[0]), std::move(a[1]), at);
    }
    Result<ExprPtr> operator()(ComposedMember<std::string_view, ExprPtr, ExprPtr, int> f) {
      return (self->*f)(name, std::move(a[0]), std::move(a[1]), at);
    }
    Result<ExprPtr> operator()(ComposedMember<std::vector<ExprPtr>, int> f) { return (self->*f)(std::move(a), at); }
    Result<ExprPtr> operator()(ComposedMember<std::string_view, std::vector<ExprPtr>*, int> f) {
      return (self->*f)(name, &a, at);
    }
  };
  return std::visit(Caller{this, name, *args, position}, entry.bound);
}

Result<ExprPtr> ExpressionBinder::BindCalled(const ComposedFunction& row, const ParseNode& call) {
  const ParseNode* const list = call.Get(Field::k_args);
  const size_t count = list != nullptr ? list->size() : 0;
  for (const ComposedEntry& entry : row.entries) {
    if (entry.called != nullptr && count >= entry.least && count <= entry.most) return (this->*entry.called)(call);
  }
  return ExprPtr();
}

Result<ExprPtr> ExpressionBinder::BindComposed(const ComposedFunction& row, std::vector<ExprPtr>* args, int position) {
  for (const ComposedEntry& entry : row.entries) {
    if (entry.parameters == nullptr) continue;
    TESSERA_ASSIGN(const bool takes, TakesArguments(entry, args));
    if (!takes) continue;
    if (entry.text == nullptr) {
      TESSERA_ASSIGN(ExprPtr made, CallComposed(entry, row.name, args, position));
      if (made != nullptr) return made;
      continue;
    }
    TESSERA_ASSIGN(const auto text, TextOf(entry));
    MacroFrame frame = FrameOfText(*context_, position);
    std::string_view list = entry.parameters;
    for (ExprPtr& a : *args) AddArgument(TakeParameter(&list).first, std::move(a), &frame);
    return BindText(*text, frame, position);
  }
  return ExprPtr();
}

Result<ExprPtr> ExpressionBinder::BindText(std::string_view text, std::vector<ExprPtr> args, int position) {
  constexpr std::string_view kNames[] = {"x", "y", "z"};
  TESSERA_ASSIGN(const auto parsed, ParseMacroText(text, false));
  MacroFrame frame = FrameOfText(*context_, position);
  size_t next = 0;
  for (ExprPtr& a : args) AddArgument(kNames[next++], std::move(a), &frame);
  return BindText(*parsed, frame, position);
}

}  // namespace tessera
