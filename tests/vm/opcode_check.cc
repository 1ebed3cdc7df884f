// Runs a case on an executor and on the reference, compares the results, and records what was covered.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tablet/values/ordered_float.h"
#include "tests/vm/memory_tablet.h"
#include "tests/vm/opcode_cases.h"

namespace tessera::test::walk {

using vm::AccumulatorSpec;
using vm::Info;
using vm::Instruction;
using vm::Opcode;
using vm::OpcodeInfo;
using vm::Operand;
using vm::OperandKind;
using vm::OperandSpec;
using vm::Program;
using vm::Section;
using vm::Shape;
using vm::Tier;

void Walk::Fail(const std::string& name, const Program& p, const std::string& what) {
  if (Full()) return;
  std::string listing = vm::Listing(p);
  if (listing.size() > 6000) listing = listing.substr(0, 6000) + "...\n";
  report_.failures.push_back("[" + name + "] " + what + "\n" + listing);
}

std::shared_ptr<const Snapshot> Walk::Store(const std::string& name, const Program& program,
                                            const std::vector<TestTable>& tables) {
  std::vector<std::shared_ptr<const TableInfo>> infos;
  for (size_t i = 0; i < tables.size(); ++i) {
    auto info = MakeMemoryTable(static_cast<int64_t>(i) + 1, tables[i].name, tables[i].columns, tables[i].tablet_rows);
    if (!info.ok()) {
      Fail(name, program, "the walk made a table that cannot be stored: " + info.status().message());
      return nullptr;
    }
    infos.push_back(*info);
    report_.rows += tables[i].rows();
  }
  return MakeSnapshot(std::move(infos));
}

Result<std::vector<Cells>> Walk::Execute(const Program& program, const Snapshot& snapshot, size_t* rows) {
  std::vector<Cells> got;
  for (const vm::ResultColumn& c : program.columns) got.emplace_back(c.type, 0);
  *rows = 0;
  vm::RunOptions run;
  run.gpu = gpu_;
  run.gpu_keep_from = 1;  // what reads a few groups runs there, too
  bool all = gpu_ != nullptr;
  for (size_t i = 0; i < program.sections.size() && gpu_ != nullptr; ++i) {
    const Section& s = program.sections[i];
    if (s.source_kind != Section::Source::kTable) continue;
    if (s.sink != Section::Sink::kRows && s.sink != Section::Sink::kGroups) {
      all = false;  // the host builds join tables
      continue;
    }
    const Status can = gpu_->CanRun(program, static_cast<int>(i));
    if (can.ok()) continue;
    ++report_.declined[can.message()];
    for (const Instruction& in : s.code) declined_.insert(in.op);
    all = false;
  }
  run.gpu_required = all;
  vm::RunStatistics statistics;
  std::string misfit;
  auto consume = [&](RowBatch&& batch) -> Status {
    *rows += batch.rows;
    if (batch.columns.size() != got.size()) return {ErrorCode::kInternal, "a batch has another number of columns"};
    for (size_t c = 0; c < got.size(); ++c) {
      if (RowsOf(batch.columns[c]) != batch.rows ||
          (!batch.columns[c].null.empty() && batch.columns[c].null.size() != batch.rows)) {
        return {ErrorCode::kInternal, "a column of a batch has another number of rows"};
      }
      const Cells piece = ToCells(batch.columns[c], &texts_);
      got[c].v.insert(got[c].v.end(), piece.v.begin(), piece.v.end());
      got[c].w.insert(got[c].w.end(), piece.w.begin(), piece.w.end());
      got[c].null.insert(got[c].null.end(), piece.null.begin(), piece.null.end());
    }
    return Status::Ok();
  };
  ++report_.programs;
  const Status status = executor_.Run(program, snapshot, run, consume, &statistics);
  if (!status.ok()) return status;
  for (const vm::SectionStatistics& s : statistics.sections) report_.gpu_sections += s.on_gpu ? 1 : 0;
  for (const Section& s : program.sections) {
    if (s.source_kind != Section::Source::kDictionary || gpu_ != nullptr) continue;
    for (const Instruction& in : s.code) ++report_.ran[Info(in.op).name];
  }
  for (const vm::SectionStatistics& stats : statistics.sections) {
    const Section& s = program.sections[static_cast<size_t>(stats.section)];
    if (s.source_kind == Section::Source::kTable && !stats.on_gpu) ++report_.host_sections;
    if (gpu_ != nullptr && !stats.on_gpu) continue;
    std::set<Opcode> ops;
    for (const Instruction& in : s.code) ops.insert(in.op);
    for (Opcode op : ops) ++report_.ran[Info(op).name];
  }
  return got;
}

/// Empty if the rows agree, else the first that does not.
std::string Walk::Compare(const Program& program, const Reference& want, std::vector<Cells> got, size_t got_rows,
                          const CheckOptions& check) {
  const size_t columns = program.columns.size();
  size_t expected = want.result_rows;
  if (check.subset) {
    const Section& last = program.sections.back();
    expected -= std::min(expected, static_cast<size_t>(last.after.offset));
    if (last.after.limit >= 0) expected = std::min(expected, static_cast<size_t>(last.after.limit));
  }
  if (got_rows != expected) return fmt::format("{} rows instead of {}", got_rows, expected);
  auto canonical = [&](const Cells& c, size_t row) -> int128_t {
    if (c.null[row] != 0) return 0;
    if (c.IsWide()) return c.w[row];
    if (c.type.IsFloat()) {
      const double v = AsDouble(c.v[row]);
      if (std::isnan(v)) return static_cast<int128_t>(kOrderedNaN);
      return static_cast<uint64_t>(c.v[row]);
    }
    return c.v[row];
  };
  // < 0, 0, > 0; columns with slack do not order rows, they only have to agree.
  auto order = [&](const std::vector<Cells>& x, size_t i, const std::vector<Cells>& y, size_t k, bool slack) {
    for (size_t c = 0; c < columns; ++c) {
      if (x[c].null[i] != y[c].null[k]) return x[c].null[i] < y[c].null[k] ? -1 : 1;
      if (!want.result[c].slack.empty()) {
        if (!slack || x[c].null[i] != 0) continue;
        const double a = AsDouble(x[c].v[i]), b = AsDouble(y[c].v[k]);
        if (CompareFloats(a, b) == 0 || std::fabs(a - b) <= want.result[c].slack[k]) continue;
        return CompareFloats(a, b);
      }
      const int128_t a = canonical(x[c], i), b = canonical(y[c], k);
      if (a != b) return a < b ? -1 : 1;
    }
    return 0;
  };
  std::vector<size_t> mine(want.result_rows), theirs(got_rows);
  std::iota(mine.begin(), mine.end(), size_t{0});
  std::iota(theirs.begin(), theirs.end(), size_t{0});
  auto same = [&](size_t i) { return order(got, theirs[i], want.result, mine[i], true) == 0; };
  auto agree = [&] {
    for (size_t i = 0; i < got_rows; ++i) {
      if (!same(i)) return false;
    }
    return true;
  };
  if (!check.subset && agree()) return "";
  if (!check.ordered) {
    std::sort(mine.begin(), mine.end(),
              [&](size_t a, size_t b) { return order(want.result, a, want.result, b, false) < 0; });
    std::sort(theirs.begin(), theirs.end(), [&](size_t a, size_t b) { return order(got, a, got, b, false) < 0; });
  }
  if (check.subset) {
    size_t m = 0;
    for (size_t i = 0; i < got_rows; ++i) {
      while (m < mine.size() && order(got, theirs[i], want.result, mine[m], true) != 0) ++m;
      if (m++ == mine.size()) return "a row that the section did not emit";
    }
    return "";
  }
  for (size_t i = 0; i < got_rows; ++i) {
    if (same(i)) continue;
    std::string text = fmt::format("row {} of {} differs (in the order of the columns' values):", i, got_rows);
    for (size_t c = 0; c < columns; ++c) {
      text += fmt::format(" c{}: {} instead of {};", c, Show(got[c], theirs[i], texts_),
                          Show(want.result[c], mine[i], texts_));
    }
    return text;
  }
  return "";
}

void Walk::Check(const std::string& name, Program program, std::vector<TestTable> tables, CheckOptions check) {
  if (Full()) return;
  for (const TestTable& t : tables) {
    if (t.rows() > options_.greatest_rows) return;
  }
  if (options_.collect) {
    if (auto snapshot = Store(name, program, tables)) options_.collect(program, snapshot);
    return;
  }
  const Status verified = vm::Verify(program);
  if (!verified.ok()) return Fail(name, program, "refused: " + verified.message());
  const std::string bytes = program.Serialize();
  Result<Program> parsed = Program::Parse(bytes);
  if (!parsed.ok()) return Fail(name, program, "its bytes were refused: " + parsed.status().message());
  if (parsed->Serialize() != bytes || parsed->sections != program.sections ||
      vm::Listing(*parsed) != vm::Listing(program)) {
    return Fail(name, program, "it is not the same after Serialize and Parse");
  }

  // With LIMIT but no ORDER BY the rows are some of all.
  Program whole = program;
  if (check.subset) {
    whole.sections.back().after.limit = -1;
    whole.sections.back().after.offset = 0;
  }
  auto want = std::make_unique<Reference>(whole, tables, &texts_);
  want->Run();
  if (!want->problem.empty()) return Fail(name, program, want->problem);
  std::vector<uint8_t> bad;
  TestTable* masked = nullptr;
  if (check.masked) {
    for (const Section& s : program.sections) {
      if (s.source_kind == Section::Source::kTable) masked = &tables[static_cast<size_t>(s.source)];
    }
    bad = want->bad;
    if (want->failed || want->unspecified) {
      std::vector<int64_t>& mask = masked->columns[kMaskColumn].values.fixed;
      for (size_t i = 0; i < bad.size(); ++i) mask[i] = bad[i] != 0 ? 0 : mask[i];
      want = std::make_unique<Reference>(whole, tables, &texts_);
      want->Run();
    }
  }
  if (want->unspecified || (want->failed && !check.must_fail))
    return Fail(name, program, "the walk made a case without an answer");
  std::shared_ptr<const Snapshot> snapshot = Store(name, program, tables);
  if (snapshot == nullptr) return;
  size_t rows = 0;
  Result<std::vector<Cells>> got = Execute(program, *snapshot, &rows);
  if (check.must_fail) {
    if (!want->failed) return Fail(name, program, "the walk made a case without an error");
    if (got.ok()) return Fail(name, program, "no error");
    if (got.status().code() != ErrorCode::kSql)
      return Fail(name, program, "not an SQL error: " + got.status().message());
    ++report_.errors;
    return;
  }
  if (!got.ok()) return Fail(name, program, "it failed: " + got.status().message());
  const std::string difference = Compare(program, *want, std::move(*got), rows, check);
  if (!difference.empty()) return Fail(name, program, difference);
  Cover(program, tables);

  // The same with one row switched on that must end the run.
  std::vector<size_t> erring;
  for (size_t i = 0; i < bad.size(); ++i) {
    if (bad[i] == 1) erring.push_back(i);
  }
  if (erring.empty()) return;
  const size_t row = Pick(random_, erring);
  std::vector<int64_t>& mask = masked->columns[kMaskColumn].values.fixed;
  const bool alone = Turn(2) == 0;
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = i == row ? 1 : alone ? 0 : mask[i];
  snapshot = Store(name, program, tables);
  if (snapshot == nullptr) return;
  got = Execute(program, *snapshot, &rows);
  if (got.ok()) return Fail(name, program, fmt::format("no error although row {} is live", row));
  if (got.status().code() != ErrorCode::kSql) return Fail(name, program, "not an SQL error: " + got.status().message());
  ++report_.errors;
}

/// Notes which opcodes ran with which kinds of operands and widths of codes.
void Walk::Cover(const Program& program, const std::vector<TestTable>& tables) {
  for (const Section& s : program.sections) {
    for (const Instruction& in : s.code) {
      const OpcodeInfo& info = Info(in.op);
      const int32_t p[4] = {in.p1, in.p2, in.p3, in.p4};
      for (int k = 0; k < 4; ++k) {
        if (!vm::IsReference(info.p[k])) continue;
        if (p[k] == -1 ||
            ((info.shape == Shape::Probe || info.shape == Shape::ProbeOuter || info.shape == Shape::Group) &&
             in.p3 == 0))
          continue;
        const Operand o = Operand::Unpack(p[k]);
        switch (o.kind) {
          case OperandKind::kRegister:
            covered_.insert(std::string(info.name) + " register");
            break;
          case OperandKind::kConstant:
            covered_.insert(std::string(info.name) + " constant");
            break;
          case OperandKind::kPayload:
            covered_.insert(std::string(info.name) + " payload");
            break;
          case OperandKind::kSlot: {
            if (s.source_kind != Section::Source::kTable) {
              covered_.insert(std::string(info.name) + " result");
              break;
            }
            const MemoryColumn& c =
                tables[static_cast<size_t>(s.source)].columns[static_cast<size_t>(s.slots[o.index].column)];
            for (const ChunkForm& f : c.forms) {
              const bool coded = f.encoding == Encoding::kFrame || f.encoding == Encoding::kDictionary;
              covered_.insert(fmt::format("{} slot {}", info.name, coded ? f.width : 0));
            }
          }
        }
      }
    }
  }
}

void Walk::CheckCoverage() {
  std::string missing;
  for (int i = 0; i < static_cast<int>(Opcode::kCount); ++i) {
    const Opcode op = static_cast<Opcode>(i);
    const OpcodeInfo& info = Info(op);
    if (gpu_ != nullptr && (info.tier == Tier::Host || op == Opcode::Build)) continue;
    if (report_.ran[info.name] == 0) {
      if (declined_.count(op) == 0) {
        missing += fmt::format(" {} never ran;", info.name);
      } else {
        report_.only_on_host.push_back(info.name);
      }
    }
    for (int k = 0; k < 4; ++k) {
      const bool wide = info.p[k] == OperandSpec::SrcW;
      if (info.p[k] != OperandSpec::Src && info.p[k] != OperandSpec::SrcInt && !wide) continue;
      const bool text = info.in == AccumulatorSpec::T && info.p[k] == OperandSpec::Src;
      std::vector<std::string> needed = {"register", "constant", "payload", "slot 0", "slot 1", "slot 2", "slot 4"};
      if (!text) needed.push_back("slot 8");
      if (wide) needed.push_back("slot 16");
      if (vm::TakesSeveral(info) && !vm::TakesKeys(info)) needed = {"register"};  // several
      for (const std::string& n : needed) {
        if (covered_.count(std::string(info.name) + " " + n) == 0) missing += fmt::format(" {} {};", info.name, n);
      }
    }
  }
  if (!missing.empty()) report_.failures.push_back("[coverage] the walk did not run:" + missing);
}

}  // namespace tessera::test::walk
