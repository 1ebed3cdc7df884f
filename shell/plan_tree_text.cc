#include "shell/plan_tree_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/display_width.h"
#include "compiler/query/bound_query.h"
#include "shell/statistics_text.h"
#include "shell/step_measures.h"

namespace tessera {
namespace {

constexpr size_t kTerminalWidth = 100;  ///< where it is not known
constexpr size_t kLeastText = 24;       ///< columns of a step that stay whatever is after it

class TreeText {
 public:
  TreeText(const Explanation& explanation, size_t width) : form_(*explanation.form), width_(width) {
    if (explanation.analyzed) measures_.emplace(explanation.analysis);
  }

  void Append(const PlanNode& step, size_t depth, std::string* out) {
    const std::string behind = Numbers(step);
    std::string text = Printable(step.text);
    if (!form_.verbose) {
      const size_t taken = 2 * depth + DisplayWidth(behind);
      text = CutToWidth(text, std::max(kLeastText, width_ > taken ? width_ - taken : 0));
    }
    *out += std::string(2 * depth, ' ') + text + behind + "\n";
    for (const PlanNode& child : step.children) Append(child, depth + 1, out);
  }

 private:
  /// "  (~590 rows, 612 actual, 1.213 ms on host)"
  std::string Numbers(const PlanNode& step) {
    std::vector<std::string> parts;
    const bool expects = form_.costs && step.rows >= 0;
    if (expects) parts.push_back(fmt::format("~{:.0f} rows", step.rows));
    if (measures_) AddMeasures(measures_->Next(step), expects, &parts);
    if (form_.verbose && !step.sections.empty()) {
      std::vector<int> sections = step.sections;
      std::ranges::sort(sections);
      sections.erase(std::unique(sections.begin(), sections.end()), sections.end());
      parts.push_back(fmt::format("section {}", fmt::join(sections, ", ")));
    }
    return parts.empty() ? "" : fmt::format("  ({})", fmt::join(parts, ", "));
  }

  void AddMeasures(const StepMeasure& m, bool expects, std::vector<std::string>* parts) const {
    if (m.rows) parts->push_back(fmt::format("{} {}", *m.rows, expects ? "actual" : "rows"));
    if (m.reads && m.reads != m.rows) parts->push_back(fmt::format("{} read", *m.reads));
    if (form_.buffers && m.tablets > 0) {
      parts->push_back(fmt::format("{} tablets, {} skipped, {}", m.tablets, m.tablets_skipped,
                                   BytesText(static_cast<double>(m.bytes_read))));
    }
    if (m.sections.empty()) return;
    std::string where = form_.timing ? fmt::format("{:.3f} ms ", m.milliseconds) : "";
    where += m.on_gpu ? (m.on_host ? "on gpu and host" : "on gpu") : "on host";
    if (m.ranks > 1) where += fmt::format(" of {} ranks", m.ranks);
    parts->push_back(std::move(where));
  }

  const ExplainForm& form_;
  const size_t width_;
  std::optional<StepMeasures> measures_;
};

}  // namespace

std::string PlanTreeText(const Explanation& explanation, size_t width) {
  std::string out;
  TreeText(explanation, width == 0 ? kTerminalWidth : width).Append(*explanation.plan, 0, &out);
  if (explanation.analyzed && explanation.form->summary) out += TotalsText(explanation.analysis);
  return out;
}

}  // namespace tessera
