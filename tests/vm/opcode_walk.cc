// The walk over the opcode table: which cases there are, in which order, and the report. opcode_cases.h says in which
// files they are.
#include "tests/vm/opcode_walk.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <utility>

#include "tests/vm/opcode_cases.h"

namespace tessera::test {

WalkReport walk::Walk::Run() {
  auto part = [&](const char* name, auto f) {
    const auto start = std::chrono::steady_clock::now();
    f();
    report_.seconds[name] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (int i = 0; i < options_.repeats && !Full(); ++i) {
    part("opcodes", [&] {
      for (int op = 0; op < static_cast<int>(vm::Opcode::kCount); ++op) WalkOpcode(static_cast<vm::Opcode>(op));
    });
    part("masks", [&] { Masks(); });
    part("predicates", [&] { Predicates(); });
    part("text maps", [&] { TextMaps(); });
    part("joins", [&] { Joins(); });
    part("groups", [&] { Groups(); });
    part("rows", [&] { Rows(); });
    part("random programs", [&] { RandomPrograms(); });
    if (options_.large) part("large tables", [&] { Large(); });
  }
  if (options_.only.empty() && !options_.collect && !Full()) CheckCoverage();
  return std::move(report_);
}

std::string WalkReport::Summary() const {
  std::string out = fmt::format(
      "{} programs over {} rows, {} of them had to fail; {} sections on the GPU, {} over stored tables on the host\n",
      programs, rows, errors, gpu_sections, host_sections);
  for (const auto& [part, s] : seconds) out += fmt::format("  {:<16} {:6.2f} s\n", part, s);
  for (const auto& [reason, n] : declined) out += fmt::format("  declined {} times: {}\n", n, reason);
  for (const std::string& op : only_on_host) out += fmt::format("  only on the host: {}\n", op);
  for (const std::string& f : failures) out += "FAILED " + f + "\n";
  return out;
}

WalkReport RunOpcodeWalk(const WalkOptions& options, vm::SectionBackend* gpu) { return walk::Walk(options, gpu).Run(); }

}  // namespace tessera::test
