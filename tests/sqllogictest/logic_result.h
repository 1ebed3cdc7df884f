// Results of queries as the sqllogictest format writes and compares them.
//
// Start at: LogicResult, CompareLogicResult. One thread at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "session/session.h"
#include "tests/sqllogictest/logic_script.h"

namespace tessera {

/// Collects a statement's rows as values of the format: integers as %d, reals as %.3f, NULL, (empty), and @ for every
/// byte of a text that is not printable ASCII.
class LogicResult final : public ResultWriter {
 public:
  /// `types`: a letter a column; empty: the values are not kept.
  explicit LogicResult(std::string types) : types_(std::move(types)) {}

  Status Begin(const std::vector<vm::ResultColumn>& columns) override;
  Status Rows(RowBatch&& batch) override;
  Status End() override { return Status::Ok(); }
  Status Done(const std::string&) override { return Status::Ok(); }
  Status Text(const std::string& text) override;
  Status Analyzed(const Analysis& analysis) override;

  size_t columns() const { return columns_; }
  bool has_rows() const { return begun_; }  ///< the statement was one that returns rows, or text
  std::vector<std::string>& values() { return values_; }

 private:
  std::string types_;
  size_t columns_ = 0;
  bool begun_ = false;
  std::vector<std::string> values_;
};

/// Sorts the values of rows of `columns` values.
void SortLogicValues(SortMode mode, size_t columns, std::vector<std::string>* values);

/// "<n> values hashing to <md5>"
std::string LogicHash(const std::vector<std::string>& values);

/// Compares with what the record expects: a hash; one value a line; or one row a line, its values separated by tabs or,
/// if there are none, by blanks, where that fits. Reals may differ by 1e-9 of their size. Sorts `values` as the record
/// says. Returns "" or what differs, over several lines.
std::string CompareLogicResult(const LogicRecord& record, size_t columns, int64_t hash_threshold,
                               std::vector<std::string>* values);

}  // namespace tessera
