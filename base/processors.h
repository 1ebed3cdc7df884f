// What this process may use of the machine. Any thread.
#pragma once

#include <cstdint>

namespace tessera {

/// The processors of the affinity mask, or fewer if a control group has a smaller quota (containers); at least 1.
int UsableProcessors();

/// Those of one of several ranks on this node: the ones that it is bound to, or its share of all.
int ProcessorsOfRank(int local_ranks);

/// Whether each of several ranks on this node can have that many threads busy, all at the same time.
bool HaveOwnProcessors(int local_ranks, int threads);

/// Bytes that one of several ranks on this node may allocate unless somebody says otherwise: 80 % of its share of what
/// the process may use.
uint64_t MemoryOfRank(int local_ranks);

}  // namespace tessera
