"""What a query's time becomes on more ranks, from what was measured on a few.

    time(N) = once + shared / min(N, slots) + ceil(log2 N) * (message + bytes / rate)

once: what rank 0 alone does: compiling, merging, taking the rows. shared: the rest of the time on the first number of
ranks. message: what an empty query costs more on the greatest number of ranks, for each step of a tree. bytes: what rank 0
received from a rank. rate: the greatest at which rank 0 received in these runs, in bytes a millisecond.

Start at: fit.
"""

import math
from statistics import median

NOTHING_RECEIVED = 1e6  # bytes a millisecond, where no run moved anything that could be timed


def steps(ranks):
    return math.ceil(math.log2(ranks)) if ranks > 1 else 0


def moving(run):
    """Milliseconds in which bytes moved between ranks, waiting not counted."""
    return run["gather_ms"] + run["exchange_ms"]


class Query:
    def __init__(self, once, shared, message, received, rate, slots, weak):
        self.once, self.shared, self.message, self.bytes = once, shared, message, received
        self.rate, self.slots, self.weak = rate, slots, weak

    def at(self, ranks, slots=None):
        """Milliseconds."""
        side_by_side = min(ranks, slots or self.slots)
        work = self.shared * (ranks if self.weak else 1)
        return self.once + work / side_by_side + steps(ranks) * (self.message + self.bytes / self.rate)

    def bend(self):
        """The power of two of ranks from which on twice as many save less than a tenth; 1,024 if there is none below."""
        if self.weak:
            return 1024
        return next((2 ** k for k in range(10) if self.at(2 ** (k + 1), 2 ** (k + 1)) > 0.9 * self.at(2 ** k, 2 ** k)), 1024)

    def advice(self, name):
        n = self.bend()
        costs = {"what rank 0 does alone: fewer result rows, or larger data": self.once,
                 "messages: larger data for each rank": steps(2 * n) * self.message,
                 "bytes to rank 0: filter or group before they leave a rank": steps(2 * n) * self.bytes / self.rate}
        worst = max(costs, key=costs.get)
        return f"{name}, the longest, bends at {n} ranks; what limits it there is {worst}"


def fit(runs, ranks, slots, weak):
    """Models by query. `runs`: by number of ranks and query, a list of {rank: statistics} of its runs."""
    first, last = ranks[0], ranks[-1]

    def of(n, query, column):
        return median([run[0][column] for run in runs[n][query]])

    more = of(last, "(empty)", "total_ms") - of(first, "(empty)", "total_ms")
    message = max(0.0, more) / max(1, steps(last) - steps(first))
    rates = [run[0]["bytes_received"] / moving(run[0]) for found in runs[last].values() for run in found
             if run[0]["bytes_received"] > 1e6 and moving(run[0]) > 0]
    rate = max(rates, default=NOTHING_RECEIVED)
    out = {}
    for query in runs[first]:
        once = sum(of(first, query, part) for part in ("compile_ms", "merge_ms", "print_ms"))
        total = of(first, query, "total_ms")
        others = max(1, last - 1)
        out[query] = Query(once, max(0.0, total - once) * (min(first, slots) if not weak else 1), message,
                           of(last, query, "bytes_received") / others, rate, slots, weak)
    return out


def speedup(queries, ranks):
    """Of the sum, with a slot for every rank."""
    return sum(q.at(1, 1) for q in queries) / sum(q.at(ranks, ranks) for q in queries)
