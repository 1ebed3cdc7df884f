#include "compiler/bind/explain_binder.h"

#include <optional>
#include <string>
#include <string_view>

#include "base/lower_case.h"
#include "compiler/parse/statement_option.h"

namespace tessera {
namespace {

/// PostgreSQL's, and PROGRAM. Without a field: it may be said, and changes nothing.
struct ExplainOption {
  std::string_view name;
  bool ExplainForm::*field;
};
constexpr ExplainOption kOptions[] = {
    {"program", &ExplainForm::program},
    {"verbose", &ExplainForm::verbose},
    {"costs", &ExplainForm::costs},
    {"buffers", &ExplainForm::buffers},
    {"timing", &ExplainForm::timing},
    {"summary", &ExplainForm::summary},
    {"settings", nullptr},
    {"wal", nullptr},
    {"generic_plan", nullptr},
    {"memory", nullptr},
    {"serialize", nullptr},
};

Status ReadFormat(const ParseNode& option, ExplainForm* form) {
  const std::string format = LowerCase(OptionText(option));
  form->json = format == "json";
  form->html = format == "html";
  if (form->json || form->html || format == "text") return Status::Ok();
  return Unsupported("EXPLAIN (FORMAT " + format + ") is not supported", option.location(),
                     "Write FORMAT text, json or html.");
}

}  // namespace

Status BindExplainOptions(const ParseNode& explain, ExplainRequest* out, bool* summarize) {
  *summarize = false;
  const ParseNode* const options = explain.Get(Field::k_options);
  if (options == nullptr) return Status::Ok();
  ExplainForm& form = out->form;
  for (const ParseNode& option : *options) {
    const std::string_view name = option.Text(Field::k_defname);
    if (name == "summarize") {  // what SUMMARIZE becomes, see dialect_reader.cc
      *summarize = true;
      return Status::Ok();
    }
    if (name == "format") {
      TESSERA_TRY(ReadFormat(option, &form));
      continue;
    }
    if (name == "serialize") continue;  // NONE, TEXT or BINARY
    TESSERA_ASSIGN(const bool value, BooleanOption(option));
    if (name == "analyze") {
      out->analyze = value;
      continue;
    }
    bool known = false;
    for (const ExplainOption& o : kOptions) {
      if (o.name != name) continue;
      known = true;
      if (o.field != nullptr) form.*o.field = value;
    }
    if (!known) {
      return Unsupported("EXPLAIN option \"" + std::string(name) + "\" is not supported", option.location(),
                         "There are ANALYZE, VERBOSE, PROGRAM, FORMAT, COSTS, BUFFERS, TIMING and SUMMARY.");
    }
  }
  return (form.json || form.html) && form.program
             ? Unsupported(
                   "EXPLAIN (PROGRAM, FORMAT " + std::string(form.json ? "json" : "html") + ") is not supported", -1,
                   "Write one of the two.")
             : Status::Ok();
}

}  // namespace tessera
