#include "base/processors.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/control_groups.h"
#include "base/memory_budget.h"

namespace tessera {

int UsableProcessors() {
  const int processors =
      std::max(1, static_cast<int>(std::thread::hardware_concurrency()));  // glibc: the affinity mask
  const double share = std::ceil(LimitsOfControlGroups().processors);
  return share < processors ? std::max(1, static_cast<int>(share)) : processors;
}

namespace {

/// Whether the process may run on some of the node's processors only. If not, the other ranks have the same ones in mind.
bool IsBound() { return static_cast<long>(std::thread::hardware_concurrency()) < sysconf(_SC_NPROCESSORS_ONLN); }

}  // namespace

int ProcessorsOfRank(int local_ranks) {
  const int usable = UsableProcessors();
  return IsBound() ? usable : std::max(1, usable / std::max(1, local_ranks));
}

bool HaveOwnProcessors(int local_ranks, int threads) {
  return (IsBound() ? 1 : local_ranks) * threads <= UsableProcessors();
}

uint64_t MemoryOfRank(int local_ranks) {
  return UsableMemory() / static_cast<uint64_t>(std::max(1, local_ranks)) / 5 * 4;
}

}  // namespace tessera
