// What the control groups of Linux allow this process, version 1 and 2: memory and processors. A group is bound by its
// own limits and by those of all groups that it is in; the least counts. Where the groups are, /proc/self/cgroup and
// /proc/self/mountinfo say.
//
// Start at: LimitsOfControlGroups. Any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace tessera {

struct ControlGroupLimits {
  uint64_t memory = UINT64_MAX;  ///< bytes; UINT64_MAX: no limit
  /// Quota of time over its period: 1.5 is one and a half processors. Infinite: no limit.
  double processors = std::numeric_limits<double>::infinity();
};

/// `root` stands before /proc and before each mount point: "" is this machine.
ControlGroupLimits LimitsOfControlGroups(const std::string& root = "");

}  // namespace tessera
