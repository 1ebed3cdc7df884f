#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "compiler/query/bound_query.h"
#include "shell/json_quotes.h"
#include "shell/plan_tree_text.h"
#include "shell/step_measures.h"

namespace tessera {
namespace {

class TreeJson {
 public:
  explicit TreeJson(const Explanation& explanation) : explanation_(explanation), form_(*explanation.form) {
    if (explanation.analyzed) measures_.emplace(explanation.analysis);
  }

  std::string Text() {
    out_ = "[\n  {\n    \"Plan\": ";
    Add(*explanation_.plan, 2, "");
    if (explanation_.analyzed && form_.summary) {
      const Timing& timing = *explanation_.analysis.timing;
      out_ += fmt::format(",\n    \"Planning Time\": {:.3f},\n    \"Execution Time\": {:.3f}", timing.compile,
                          timing.execute);
      out_ += fmt::format(",\n    \"Rows\": {}", timing.rows);
    }
    out_ += "\n  }\n]\n";
    return std::move(out_);
  }

 private:
  /// The object of a step. Returns the milliseconds of all sections in it.
  double Add(const PlanNode& step, size_t depth, const char* relationship) {
    const std::string indent(2 * depth + 2, ' ');
    bool first = true;
    const auto key = [&](std::string_view name) {
      out_ += first ? "\n" : ",\n";
      first = false;
      out_ += indent;
      AppendInJsonQuotes(name, &out_);
      out_ += ": ";
    };
    const auto number = [&](std::string_view name, uint64_t value) {
      key(name);
      out_ += fmt::format("{}", value);
    };
    out_ += '{';
    key("Node Type");
    AppendInJsonQuotes(step.type, &out_);
    if (*relationship != 0) {
      key("Parent Relationship");
      AppendInJsonQuotes(relationship, &out_);
    }
    for (const PlanAttribute& attribute : step.attributes) {
      key(attribute.name);
      AddValue(attribute);
    }
    key("Step");
    AppendInJsonQuotes(step.text, &out_);
    if (form_.costs && step.rows >= 0) {
      key("Plan Rows");
      out_ += fmt::format("{:.0f}", step.rows);
    }
    double milliseconds = 0;
    size_t time_at = std::string::npos;  // the time of its inputs is known after them
    if (measures_) {
      const StepMeasure m = measures_->Next(step);
      milliseconds = m.milliseconds;
      if (m.rows) number("Actual Rows", *m.rows);
      if (m.rows) number("Actual Loops", 1);
      time_at = out_.size();
      if (m.reads) {
        number("Rows Read", *m.reads);
        number("Tablets Read", m.tablets);
        number("Tablets Skipped", m.tablets_skipped);
        number("Bytes Read", m.bytes_read);
      }
      if (!m.sections.empty()) {
        key("Where");
        AppendInJsonQuotes(m.on_gpu ? (m.on_host ? "gpu and host" : "gpu") : "host", &out_);
      }
      if (m.ranks > 0) number("Ranks", m.ranks);
    }
    if (form_.verbose) {
      key("Sections");
      out_ += fmt::format("[{}]", fmt::join(step.sections, ", "));
    }
    if (!step.children.empty()) {
      key("Plans");
      out_ += '[';
      for (size_t i = 0; i < step.children.size(); ++i) {
        out_ += (i == 0 ? "\n" : ",\n") + indent + "  ";
        milliseconds += Add(step.children[i], depth + 2, step.children[i].is_side ? "Inner" : "Outer");
      }
      out_ += "\n" + indent + "]";
    }
    // (A step of the section of a step around it has no time of its own.)
    if (time_at != std::string::npos && form_.timing && milliseconds > 0)
      out_.insert(time_at, fmt::format(",\n{}\"Actual Total Time\": {:.3f}", indent, milliseconds));
    out_ += "\n" + std::string(2 * depth, ' ') + "}";
    return milliseconds;
  }

  void AddValue(const PlanAttribute& attribute) {
    const std::string& value = attribute.values[0];
    if (!attribute.is_list && (value == "true" || value == "false") && attribute.name == "Inner Unique") {
      out_ += value;
      return;
    }
    if (attribute.is_list) out_ += '[';
    for (size_t i = 0; i < attribute.values.size(); ++i) {
      if (i > 0) out_ += ", ";
      AppendInJsonQuotes(attribute.values[i], &out_);
    }
    if (attribute.is_list) out_ += ']';
  }

  const Explanation& explanation_;
  const ExplainForm& form_;
  std::optional<StepMeasures> measures_;
  std::string out_;
};

}  // namespace

std::string PlanTreeJson(const Explanation& explanation) { return TreeJson(explanation).Text(); }

}  // namespace tessera
