// The bytes of a program, without their checksum -> refused by the reader or the verifier, or run to an end on small
// tables. tests/vm/verify_fuzz_test.cc damages programs one field at a time.
#define XXH_INLINE_ALL
#include "vm/program/program.h"

#include <xxhash.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/status.h"
#include "tablet/catalog/table_info.h"
#include "tablet/chunk/chunk.h"
#include "tablet/values/row_batch.h"
#include "tablet/values/types.h"
#include "tests/vm/memory_tablet.h"
#include "vm/vm.h"

namespace tessera {
namespace {

/// t (k BIGINT, d DECIMAL(30,2), s TEXT) with 2100 rows, u (k BIGINT, s TEXT) with 10.
const Snapshot& Tables() {
  static const std::shared_ptr<const Snapshot> snapshot = [] {
    const SqlType bigint = SqlType::Of(TypeId::kBigint), wide = SqlType::Decimal(30, 2), text = SqlType::Text();
    const auto table = [&](int64_t id, const char* name, size_t rows) {
      ColumnVector k, d, s;
      k.type = bigint;
      d.type = wide;
      s.type = text;
      s.offsets.push_back(0);
      for (size_t i = 0; i < rows; ++i) {
        k.fixed.push_back(static_cast<int64_t>(i % 100));
        d.wide.push_back(static_cast<int128_t>(i) << 70);
        s.bytes += std::to_string(i % 50);
        s.offsets.push_back(s.bytes.size());
      }
      test::ChunkForm narrow, broad, dictionary;
      narrow.width = 2;
      broad.width = 16;
      dictionary.encoding = Encoding::kDictionary;
      dictionary.width = 1;
      std::vector<test::MemoryColumn> columns{{"k", k, {narrow}}, {"s", s, {dictionary}}};
      if (id == 1) columns.push_back({"d", d, {broad}});
      return test::MakeMemoryTable(id, name, columns).value();
    };
    return test::MakeSnapshot({table(1, "t", 2100), table(2, "u", 10)});
  }();
  return *snapshot;
}

}  // namespace
}  // namespace tessera

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  const uint64_t checksum = XXH3_64bits(bytes.data(), bytes.size());
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  const Result<vm::Program> program = vm::Program::Parse(bytes);
  if (!program.ok() || !vm::Verify(*program).ok()) return 0;
  (void)vm::Listing(*program);
  // Loops over pairs are bounded by the tables, but many of them in one another are long.
  size_t loops = 0;
  for (const vm::Section& section : program->sections) {
    for (const vm::Instruction& in : section.code) loops += vm::Probes(in);
  }
  if (loops > 2) return 0;
  static vm::Executor executor(1);
  const auto take = [](RowBatch&& batch) {
    for (const ColumnVector& column : batch.columns) {
      std::string text;
      if (batch.rows > 0) AppendText(column, batch.rows - 1, &text);
    }
    return Status::Ok();
  };
  const Status status = executor.Run(*program, Tables(), {}, take, nullptr);
  if (!status.ok() && status.code() == ErrorCode::kInternal) {
    std::fprintf(stderr, "%s\n%s\n", status.message().c_str(), vm::Listing(*program).c_str());
    std::abort();
  }
  return 0;
}
