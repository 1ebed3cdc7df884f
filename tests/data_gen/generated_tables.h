// The tables that a generator of TABLE.tbl files makes at scale 0.01, for the tests of what is in them.
//
// Start at: GeneratedTables. One thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/data_gen/run_program.h"

namespace tessera {

using Row = std::vector<std::string>;

/// A fixture whose files are made once. `Generator` has kProgram, the name of the program, and Columns(), the tables with
/// their numbers of columns.
template <class Generator>
class GeneratedTables : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new TemporaryDirectory;
    outcome_ =
        RunProgram({Program(Generator::kProgram), "--scale", "0.01", "--jobs", "1", "--out", directory_->path()});
    for (const auto& [table, columns] : Generator::Columns()) {
      std::istringstream file(ReadAll(*directory_ / (table + ".tbl")));
      for (std::string line; std::getline(file, line);) {
        Row row;
        std::istringstream values(line);
        for (std::string value; std::getline(values, value, '|');) row.push_back(value);
        tables_[table].push_back(std::move(row));
      }
    }
  }
  static void TearDownTestSuite() {
    delete directory_;
    tables_.clear();
  }
  void SetUp() override {
    ASSERT_EQ(outcome_.status, 0) << "is " << Program(Generator::kProgram) << " built? " << outcome_.err;
    for (const auto& [table, columns] : Generator::Columns()) {
      for (const Row& row : tables_[table]) ASSERT_EQ(row.size(), columns) << table;
    }
  }

  static std::vector<Row>& Table(const std::string& name) { return tables_[name]; }
  static std::set<std::string> Distinct(const std::string& table, size_t column) {
    std::set<std::string> values;
    for (const Row& row : Table(table)) values.insert(row[column]);
    return values;
  }

  static void CheckLineEnds() {
    for (const auto& [table, columns] : Generator::Columns()) {
      const std::string text = ReadAll(*directory_ / (table + ".tbl"));
      ASSERT_TRUE(text.ends_with("|\n")) << table;
      size_t lines = 0;
      for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\n') continue;
        ++lines;
        ASSERT_TRUE(i > 0 && text[i - 1] == '|') << table << " line " << lines;
      }
      EXPECT_EQ(static_cast<size_t>(std::ranges::count(text, '|')), lines * columns) << table;
    }
  }
  static void CheckSameBytes(std::initializer_list<const char*> jobs_to_try) {
    for (const char* jobs : jobs_to_try) {
      const TemporaryDirectory other;
      const Outcome made =
          RunProgram({Program(Generator::kProgram), "--scale=0.01", "--jobs", jobs, "--out", other.path()});
      ASSERT_EQ(made.status, 0);
      for (const auto& [table, columns] : Generator::Columns()) {
        const std::string name = table + ".tbl";
        EXPECT_TRUE(ReadAll(*directory_ / name) == ReadAll(other / name)) << name << " with --jobs " << jobs;
      }
    }
  }

  inline static TemporaryDirectory* directory_ = nullptr;
  inline static Outcome outcome_;
  inline static std::map<std::string, std::vector<Row>> tables_;
};

}  // namespace tessera
