#include "compiler/parse/statement_option.h"

#include "base/lower_case.h"

namespace tessera {

std::string OptionText(const ParseNode& option) {
  const ParseNode* arg = option.Get(Field::k_arg);
  if (arg == nullptr) return {};
  if (arg->Is(Tag::kString)) return std::string(arg->Text(Field::k_sval));
  if (arg->Is(Tag::kFloat)) return std::string(arg->Text(Field::k_fval));
  if (arg->Is(Tag::kInteger)) return std::to_string(arg->Number(Field::k_ival));
  if (arg->Is(Tag::kBoolean)) return arg->Number(Field::k_boolval) != 0 ? "true" : "false";
  if (arg->Is(Tag::kTypeName)) {
    const ParseNode* names = arg->Get(Field::k_names);
    const ParseNode* last = names != nullptr ? names->first() : nullptr;
    while (last != nullptr && last->next() != nullptr) last = last->next();
    return last != nullptr ? std::string(last->Text(Field::k_sval)) : std::string();
  }
  return {};
}

Result<bool> BooleanOption(const ParseNode& option) {
  if (option.Get(Field::k_arg) == nullptr) return true;
  const std::string text = LowerCase(OptionText(option));
  if (text == "true" || text == "on" || text == "1") return true;
  if (text == "false" || text == "off" || text == "0") return false;
  return SqlError(ErrorKind::kSyntax, std::string(option.Text(Field::k_defname)) + " requires a Boolean value",
                  option.location());
}

}  // namespace tessera
