// The compiled queries of a session, so that one whose text comes again is not compiled again.
//
// What is kept is found by the statement's text. It is used only if all that the compiler read for it is the same: the
// tables with their rows and statistics, the types, the macros, the views, the PlanOptions. A program that is good for
// one moment is not kept, see Dependencies. Programs hold no snapshot, so that the files of a table that was dropped
// are not held either.
//
// Start at: ProgramCache. The thread of the session.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/plan/plan_options.h"
#include "compiler/query/dependencies.h"
#include "compiler/query/held_parameter.h"
#include "tablet/catalog/table_info.h"
#include "tablet/values/enum_type.h"
#include "vm/program/program.h"
#include "vm/rows/string_pool.h"

namespace tessera {

class ProgramCache {
 public:
  static constexpr size_t kMostPrograms = 64, kMostWithStrings = 8;

  /// No more bytes than these are kept; the programs that were used last stay.
  void SetLimit(uint64_t bytes);
  /// The program that was kept for `key`; nullptr: there is none that still holds.
  std::shared_ptr<const vm::Program> Find(std::string_view key, const Snapshot& snapshot, const PlanOptions& options);
  /// What the program that Find has just returned holds of its parameters (Compiled::held). REQUIRES: it returned one.
  const std::vector<HeldParameter>& Held() const { return entries_.front().held; }
  /// Keeps what `key` was compiled to for this snapshot and these options. No effect if it holds for a moment only or
  /// takes more than a quarter of the limit.
  void Keep(std::string_view key, std::shared_ptr<const vm::Program> program, Dependencies dependencies,
            const Snapshot& snapshot, const PlanOptions& options, std::vector<HeldParameter> held = {});

  /// The strings of the program that Find has just returned, from its runs before. REQUIRES: it returned one.
  std::shared_ptr<vm::StringPool> Strings();

  size_t programs() const { return entries_.size(); }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const vm::Program> program;
    Dependencies dependencies;
    Snapshot names;                      ///< types, macros and views: without its tables
    std::vector<std::string> temporary;  ///< the session's tables
    PlanOptions options;                 ///< without what refers to the session
    std::vector<HeldParameter> held;
    uint64_t bytes = 0;
    std::shared_ptr<vm::StringPool> strings;  ///< of the programs that were used last
  };
  void Drop(std::list<Entry>::iterator entry);
  void DropDownTo(uint64_t bytes, size_t programs);

  std::list<Entry> entries_;  ///< the one that was used last comes first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> by_key_;
  uint64_t bytes_ = 0, limit_ = 0;
};

}  // namespace tessera
