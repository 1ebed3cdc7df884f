#include "tests/vm/opcode_programs.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace tessera::test::walk {

using vm::Program;
using vm::Section;

int AddConstant(Program* p, Value v) {
  p->constants.push_back(std::move(v));
  return static_cast<int>(p->constants.size()) - 1;
}

int AddSection(Program* p, Section s) {
  p->sections.push_back(std::move(s));
  return static_cast<int>(p->sections.size()) - 1;
}

void AddTables(Program* p, const std::vector<TestTable>& tables) {
  for (size_t i = 0; i < tables.size(); ++i) p->tables.push_back({static_cast<int64_t>(i) + 1, tables[i].name});
}

void NameColumns(Program* p) {
  p->columns.clear();
  for (const SqlType& t : p->sections.back().columns) p->columns.push_back({fmt::format("c{}", p->columns.size()), t});
}

}  // namespace tessera::test::walk
