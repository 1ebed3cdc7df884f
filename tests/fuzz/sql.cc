// SQL text -> a verified program or an error, on small tables: no crash, no broken invariant, and the error can be shown.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "compiler/compiler.h"
#include "tests/vm/memory_tablet.h"

namespace tessera {
namespace {

ColumnVector Column(const SqlType& type, size_t rows) {
  ColumnVector c;
  c.type = type;
  if (type.storage() == StorageClass::kText) c.offsets.push_back(0);
  for (size_t i = 0; i < rows; ++i) {
    if (type.storage() == StorageClass::kText) {
      c.bytes += std::to_string(i);
      c.offsets.push_back(c.bytes.size());
    } else if (type.storage() == StorageClass::kWide) {
      c.wide.push_back(static_cast<int128_t>(i));
    } else {
      c.fixed.push_back(type.id == TypeId::kBoolean ? static_cast<int64_t>(i % 2) : static_cast<int64_t>(i));
    }
  }
  if (rows > 0) c.null.assign(rows, 0), c.null[0] = 1;
  return c;
}

/// t and u with a column of each kind, e without rows.
const Snapshot& Tables() {
  static const std::shared_ptr<const Snapshot> snapshot = [] {
    const auto table = [](int64_t id, const char* name, size_t rows) {
      test::ChunkForm frame, broad, dictionary;
      broad.width = 16;
      dictionary.encoding = Encoding::kDictionary;
      dictionary.width = 1;
      std::vector<test::MemoryColumn> columns;
      const std::pair<const char*, SqlType> all[] = {
          {"i", SqlType::Of(TypeId::kInteger)},   {"b", SqlType::Of(TypeId::kBigint)},
          {"d", SqlType::Decimal(12, 2)},         {"w", SqlType::Decimal(30, 4)},
          {"f", SqlType::Of(TypeId::kDouble)},    {"day", SqlType::Of(TypeId::kDate)},
          {"m", SqlType::Of(TypeId::kTimestamp)}, {"s", SqlType::Text()},
          {"flag", SqlType::Of(TypeId::kBoolean)}};
      for (const auto& [column, type] : all) {
        const StorageClass storage = type.storage();
        columns.push_back({column,
                           Column(type, rows),
                           {storage == StorageClass::kText   ? dictionary
                            : storage == StorageClass::kWide ? broad
                                                             : frame}});
      }
      return test::MakeMemoryTable(id, name, columns).value();
    };
    return test::MakeSnapshot({table(1, "t", 5), table(2, "u", 3), table(3, "e", 0)});
  }();
  return *snapshot;
}

}  // namespace
}  // namespace tessera

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const std::string_view script(reinterpret_cast<const char*>(data), size);
  ScriptEnd().IsBetweenStatements(script);
  for (const StatementText& statement : SplitStatements(script)) {
    const Result<Compiled> compiled = Compile(statement.sql, Tables());
    if (compiled.ok()) {
      if (compiled->program != nullptr) (void)vm::Listing(*compiled->program);
      continue;
    }
    const std::string shown = FormatError(compiled.status(), statement.sql, statement.line);
    if (compiled.status().code() == ErrorCode::kInternal || compiled.status().code() == ErrorCode::kCorrupt) {
      std::fprintf(stderr, "%s\n", shown.c_str());
      std::abort();
    }
  }
  return 0;
}
