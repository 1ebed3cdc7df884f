// Passes over the source of a section: one for each partition of a join table that does not fit the device, and for
// several such tables one for each combination of their partitions. join/join_partitions.h says how a section joins
// with one partition after the other. Private to kernels/.
//
// Start at: JoinPasses::Plan, LoadPass. REQUIRES, of all functions: the device's mutex is held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "kernels/join/device_joins.h"
#include "kernels/plan/lower.h"
#include "vm/run/device.h"

namespace tessera::kernels {

class JoinPasses {
 public:
  JoinPasses(DeviceJoins* joins, const vm::SectionContext& context) : joins_(*joins), context_(context) {}
  /// Frees the partitions on the device.
  ~JoinPasses();
  JoinPasses(const JoinPasses&) = delete;
  JoinPasses& operator=(const JoinPasses&) = delete;

  /// Finds out how the tables in partitions that the section probes can be joined, and how many passes that takes.
  /// Errors: kResource, they cannot.
  Status Plan();
  /// How many passes there are; 1 if all tables fit.
  uint64_t count() const { return count_; }
  /// Whether a table is in partitions, so that key ranges change from pass to pass.
  bool any() const { return !plans_.empty(); }
  /// Brings the partitions for a pass to the device. *lowered becomes the section's program for it, if that differs.
  Status LoadPass(uint64_t pass, LoweredProgram* lowered);
  /// Instructions before the section's own in this pass.
  uint32_t added_code() const { return added_code_; }

 private:
  DeviceJoins& joins_;
  const vm::SectionContext& context_;
  std::vector<PassPlan> plans_;  ///< in the order in which the tables' partitions change, the last one fastest
  std::vector<size_t> loaded_;   ///< their partitions that are on the device; SIZE_MAX: none
  uint64_t count_ = 1;
  uint32_t added_code_ = 0;
};

}  // namespace tessera::kernels
