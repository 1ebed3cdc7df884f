"""What a query's time becomes on more ranks, from what was measured on one rank and on the next number of ranks.

    time(N) = once + shared / min(N, slots) + all * (1 - 1/N) + ceil(log2 N) * message

once: what rank 0 alone does: compiling, merging, printing, and sections over small tables, which every rank runs whole.
shared: the rest of the time on the first number of ranks. message: what an empty query costs more on the second number of
ranks, for each step of a tree. all: what the second number of ranks takes longer than the rest of the formula says: every
rank gets what the others made of a build side, and builds all of it. With data that grow with the ranks, shared does not
shrink, and what all have grows by (N - 1).

Start at: fit, alone.
"""

import math
from statistics import median

SMALL = 1 / 16  # of the rows of a query's largest scan: ranks do not share such a table, or it does not matter


def steps(ranks):
    return math.ceil(math.log2(ranks)) if ranks > 1 else 0


def alone(statements, sections):
    """By statement and rank, of their lines of --stats csv: milliseconds of `once`."""
    apart = ("compile_ms", "merge_ms", "print_ms")
    out = {(s["statement"], s["rank"]): sum(float(s[part]) for part in apart) for s in statements}
    scans = [s for s in sections if float(s["tablets"]) > 0]
    largest = {}
    for s in scans:
        key = s["statement"], s["rank"]
        largest[key] = max(largest.get(key, 0), float(s["rows_scanned"]))
    for s in scans:
        key = s["statement"], s["rank"]
        if float(s["rows_scanned"]) < SMALL * largest[key]:
            out[key] += float(s["total_ms"]) - sum(float(s[part]) for part in apart)
    return out


def goal(once, shared, ranks):
    """Milliseconds: what is shared is divided, and ranks cost 0.15 ms if they are two, 0.2 if they are four."""
    return once + shared / ranks + 0.1 + 0.05 * math.log2(ranks)


class Query:
    def __init__(self, once, shared, message, slots, weak):
        self.once, self.shared, self.message = once, shared, message
        self.all, self.slots, self.weak = 0.0, slots, weak

    def at(self, ranks, slots=None):
        """Milliseconds."""
        side_by_side = min(ranks, slots or self.slots)
        work = self.shared * (ranks if self.weak else 1) / side_by_side
        return self.once + work + self.all * self.copies(ranks) + steps(ranks) * self.message

    def copies(self, ranks):
        return ranks - 1 if self.weak else 1 - 1 / ranks

    def bend(self):
        """The power of two of ranks from which on twice as many save less than a tenth; 1,024 if there is none below."""
        if self.weak:
            return 1024
        return next((2 ** k for k in range(10) if self.at(2 ** (k + 1), 2 ** (k + 1)) > 0.9 * self.at(2 ** k, 2 ** k)), 1024)

    def advice(self, name):
        n = self.bend()
        costs = {"what rank 0 does alone: fewer result rows, or larger data": self.once,
                 "messages: larger data for each rank": steps(2 * n) * self.message,
                 "build sides that all ranks have: filter them, or distribute_by their key": self.all * self.copies(2 * n)}
        worst = max(costs, key=costs.get)
        return f"{name}, the longest, bends at {n} ranks; what limits it there is {worst}"


def fit(runs, ranks, slots, weak):
    """Models by query. `runs`: by number of ranks and query, a list of {rank: statistics} of its runs."""
    first, second = ranks[0], ranks[min(1, len(ranks) - 1)]

    def of(n, query, column):
        return median([run[0][column] for run in runs[n][query]])

    more = of(second, "(empty)", "total_ms") - of(first, "(empty)", "total_ms")
    message = max(0.0, more) / max(1, steps(second) - steps(first))
    out = {}
    for query in runs[first]:
        total = of(first, query, "total_ms")
        # (Preparing a scan after builds counts as one of these: it is less with more ranks.)
        once = min(total, *(of(n, query, "alone_ms") for n in ([first] if weak else ranks)))
        out[query] = model = Query(once, (total - once) * (min(first, slots) if not weak else 1), message, slots, weak)
        if second > first:
            model.all = max(0.0, of(second, query, "total_ms") - model.at(second)) / model.copies(second)
    return out


def speedup(queries, ranks):
    """Of the sum, with a slot for every rank."""
    return sum(q.at(1, 1) for q in queries) / sum(q.at(ranks, ranks) for q in queries)
