// How many processors this process may use. Any thread.
#pragma once

namespace tessera {

/// The processors of the affinity mask, or fewer if the control group has a smaller quota (containers); at least 1.
int UsableProcessors();

/// Those of one of several ranks on this node: the ones that it is bound to, or its share of all.
int ProcessorsOfRank(int local_ranks);

}  // namespace tessera
