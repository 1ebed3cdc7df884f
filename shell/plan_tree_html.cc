// The plan as a page: a bar beside each step for the time that it took, and what processes and sections did. It has all that it
// needs in itself, runs no script, and is XML, too.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "base/display_width.h"
#include "base/version.h"
#include "compiler/query/bound_query.h"
#include "shell/plan_tree_text.h"
#include "shell/statistics_text.h"
#include "shell/step_measures.h"

namespace tessera {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8"/>
<meta name="viewport" content="width=device-width, initial-scale=1"/>
<title>Query profile</title>
<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em; color: #1d2530; background: #ffffff; }
h1 { font-size: 20px; } h2 { font-size: 16px; margin-top: 2em; }
table { border-collapse: collapse; } th, td { padding: 3px 10px; text-align: right; border-bottom: 1px solid #e3e7ec; }
th { font-weight: 600; color: #55606e; } td.step, th.step { text-align: left; font-family: ui-monospace, monospace; }
td.time { min-width: 16em; text-align: left; white-space: nowrap; }
.bar { display: inline-block; height: 11px; margin-right: 6px; background: #4a7bd0; vertical-align: middle; }
.bar.gpu { background: #4f9d54; } .bar.both { background: #b0862b; }
.bad { color: #b03a2e; font-weight: 600; } .none { color: #8c97a5; }
@media (prefers-color-scheme: dark) {
  body { color: #dde3ea; background: #171b21; } th { color: #9aa6b5; } th, td { border-color: #2c333d; } .bad { color: #ef8a7f; }
}
</style>
</head>
<body>
)";
constexpr std::string_view kEnd = "</body>\n</html>\n";

/// Text as a page shows it. A control character would be none of XML.
std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : Printable(text)) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Cell(const std::string& text, const char* kind = nullptr) {
  return kind != nullptr ? fmt::format("<td class=\"{}\">{}</td>", kind, text) : "<td>" + text + "</td>";
}

std::string Bytes(uint64_t bytes) { return bytes == 0 ? "" : BytesText(static_cast<double>(bytes)); }

std::string Head(std::initializer_list<const char*> names) {
  std::string out = "<tr>";
  for (const char* name : names)
    out += fmt::format("<th{}>{}</th>", name == *names.begin() ? " class=\"step\"" : "", name);
  return out + "</tr>\n";
}

class TreeHtml {
 public:
  explicit TreeHtml(const Explanation& explanation) : explanation_(explanation) {
    if (explanation.analyzed) measures_.emplace(explanation.analysis);
  }

  std::string Text() {
    std::string out(kHead);
    out += "<h1>" + Escaped(explanation_.plan->text) + "</h1>\n";
    if (explanation_.analyzed) out += "<p>" + Escaped(TotalsText(explanation_.analysis)) + "</p>\n";
    Measure(*explanation_.plan, 0);
    for (const Line& line : lines_) longest_ = std::max(longest_, line.measure.milliseconds);
    out += "<table class=\"plan\">\n";
    out += measures_ ? Head({"Step", "Rows expected", "Rows", "Rows read", "Tablets", "Skipped", "Bytes", "Time in ms"})
                     : Head({"Step", "Rows expected"});
    for (const Line& line : lines_) out += Row(line);
    out += "</table>\n";
    if (explanation_.analyzed) {
      AppendSections(&out);
      AppendProcesses(&out);
    }
    return out += fmt::format("<p class=\"none\">Tessera {}</p>\n{}", kVersion, kEnd);
  }

 private:
  struct Line {
    const PlanNode* step = nullptr;
    size_t depth = 0;
    StepMeasure measure;
  };

  void Measure(const PlanNode& step, size_t depth) {
    lines_.push_back({&step, depth, measures_ ? measures_->Next(step) : StepMeasure()});
    for (const PlanNode& child : step.children) Measure(child, depth + 1);
  }

  std::string Row(const Line& line) const {
    const PlanNode& step = *line.step;
    const StepMeasure& m = line.measure;
    std::string out = fmt::format("<tr><td class=\"step\" style=\"padding-left: {}em\">{}</td>", 1 + 2 * line.depth,
                                  Escaped(step.text));
    out += Cell(step.rows >= 0 ? fmt::format("{:.0f}", step.rows) : "");
    if (!measures_) return out + "</tr>\n";
    // An estimate that is wrong by a factor of ten is what plans go wrong by.
    const double made = static_cast<double>(m.rows.value_or(0)) + 1, expected = step.rows + 1;
    const bool is_wrong = m.rows && step.rows >= 0 && std::max(made, expected) > 10 * std::min(made, expected);
    out += Cell(m.rows ? std::to_string(*m.rows) : "", is_wrong ? "bad" : nullptr);
    out += Cell(m.reads ? std::to_string(*m.reads) : "");
    out += Cell(m.tablets + m.tablets_skipped > 0 ? std::to_string(m.tablets) : "");
    out += Cell(m.tablets + m.tablets_skipped > 0 ? std::to_string(m.tablets_skipped) : "");
    out += Cell(Bytes(m.bytes_read));
    if (m.sections.empty()) return out + Cell("with the step above it", "time none") + "</tr>\n";
    const double width = longest_ > 0 ? m.milliseconds / longest_ * 12 : 0;
    std::string where = m.on_gpu ? (m.on_host ? "GPU and host" : "GPU") : "host";
    if (m.ranks > 1) where += fmt::format(", {} ranks", m.ranks);
    out += Cell(fmt::format("<span class=\"bar{}\" style=\"width: {:.2f}em\"></span>{:.3f} on {}",
                            m.on_gpu ? (m.on_host ? " both" : " gpu") : "", width, m.milliseconds, where),
                "time");
    return out + "</tr>\n";
  }

  void AppendSections(std::string* out) const {
    *out += "<h2>Sections of the program</h2>\n<table class=\"sections\">\n";
    *out += Head({"Section", "Where", "Rows in", "Rows out", "Exchanged", "Bytes read", "To the GPU", "Kernels in ms",
                  "Link in ms", "Time in ms"});
    for (const vm::SectionStatistics& s : explanation_.analysis.statistics->sections) {
      *out += fmt::format("<tr><td class=\"step\">{} {}</td>", s.section, Escaped(s.label));
      *out += Cell(s.on_gpu ? "GPU" : "host") + Cell(std::to_string(s.rows_in)) + Cell(std::to_string(s.rows_out));
      *out += Cell(s.rows_exchanged > 0 ? std::to_string(s.rows_exchanged) : "");
      *out += Cell(Bytes(s.bytes_read)) + Cell(Bytes(s.bytes_transferred));
      *out += Cell(s.on_gpu ? fmt::format("{:.3f}", s.kernel_milliseconds) : "");
      *out += Cell(s.on_gpu ? fmt::format("{:.3f}", s.transfer_milliseconds) : "");
      *out += Cell(fmt::format("{:.3f}", s.milliseconds)) + "</tr>\n";
    }
    *out += "</table>\n";
  }

  void AppendProcesses(std::string* out) const {
    *out += "<h2>Processes</h2>\n<table class=\"processes\">\n";
    *out += Head({"Rank", "Machine", "Device", "Threads", "Rows scanned", "Tablets", "Bytes read", "To the GPU", "Sent",
                  "Received", "Memory", "Temporary files", "Waiting in ms", "Time in ms"});
    for (const vm::RankStatistics& r : explanation_.analysis.statistics->ranks) {
      *out += fmt::format("<tr><td class=\"step\">{}</td>", r.rank);
      *out += Cell(Escaped(r.host)) + Cell(Escaped(r.device)) + Cell(std::to_string(r.threads));
      *out += Cell(std::to_string(r.rows_scanned)) + Cell(std::to_string(r.tablets));
      for (const uint64_t bytes :
           {r.bytes_read, r.bytes_transferred, r.bytes_sent, r.bytes_received, r.memory_peak, r.temporary_peak})
        *out += Cell(Bytes(bytes));
      *out += Cell(fmt::format("{:.3f}", r.account.Milliseconds(Phase::kWait)));
      const double total =
          r.total > 0 ? r.total : explanation_.analysis.timing->compile + explanation_.analysis.timing->execute;
      *out += Cell(fmt::format("{:.3f}", total)) + "</tr>\n";
    }
    *out += "</table>\n";
  }

  const Explanation& explanation_;
  std::optional<StepMeasures> measures_;
  std::vector<Line> lines_;
  double longest_ = 0;
};

}  // namespace

std::string PlanTreeHtml(const Explanation& explanation) { return TreeHtml(explanation).Text(); }

std::string ExplanationText(const Explanation& explanation, size_t width) {
  return explanation.form->json   ? PlanTreeJson(explanation)
         : explanation.form->html ? PlanTreeHtml(explanation)
                                  : PlanTreeText(explanation, width);
}

}  // namespace tessera
