// The program `tessera_man`: prints the manual page tessera(1), in the language of man(7), from what --help prints. `make
// install` puts it where man looks.

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "shell/command_line.h"

namespace tessera {
namespace {

constexpr std::string_view kMargin = "  ", kIndent = "                    ";

/// A text as troff shows it: hyphens that can be copied, no line that is a request.
std::string Escaped(std::string_view text) {
  std::string out;
  if (!text.empty() && (text[0] == '.' || text[0] == '\'')) out += "\\&";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string_view Trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(' ');
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return lines;
}

/// An option's line: "  -c SQL            run these statements". What it does may begin on the next line.
void PrintOption(std::string_view line) {
  const size_t gap = line.find("  ", kMargin.size());
  fmt::print(".TP\n.B {}\n",
             Escaped(line.substr(kMargin.size(), gap == std::string_view::npos ? gap : gap - kMargin.size())));
  if (gap != std::string_view::npos) fmt::print("{}\n", Escaped(Trimmed(line.substr(gap))));
}

void PrintPage(std::string_view usage) {
  constexpr std::string_view kUsage = "Usage: ";
  const std::vector<std::string_view> lines = Lines(usage);
  fmt::print(".TH TESSERA 1 \"\" \"Tessera {}\"\n", kVersion);
  fmt::print(".SH NAME\ntessera \\- analytic SQL database for GPUs and clusters of GPUs\n");
  fmt::print(".SH SYNOPSIS\n.B {}\n.SH DESCRIPTION\n", Escaped(lines[0].substr(kUsage.size())));
  bool of_options = false;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    if (line.empty()) {
      if (i > 1 && !of_options) fmt::print(".PP\n");
    } else if (line.starts_with(kIndent)) {
      fmt::print("{}\n", Escaped(Trimmed(line)));
    } else if (line.starts_with(kMargin)) {
      if (!of_options) fmt::print(".SH OPTIONS\n");
      of_options = true;
      PrintOption(line);
    } else {
      if (of_options) fmt::print(".SH NOTES\n");
      of_options = false;
      fmt::print("{}\n", Escaped(line));
    }
  }
  fmt::print(
      ".SH FILES\n.TP\n.I ~/.tesserarc\nstatements and dot commands that the prompt runs first\n"
      ".TP\n.I ~/.tessera_history\nwhat was typed at the prompt\n"
      ".SH SEE ALSO\n.BR psql (1),\n.BR mpirun (1),\n.BR sqlite3 (1)\n");
}

}  // namespace
}  // namespace tessera

int main() {
  tessera::PrintPage(tessera::UsageText());
  return std::fflush(stdout) == 0 ? 0 : 1;
}
