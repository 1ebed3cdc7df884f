#!/usr/bin/env python3
"""How fast rows go from rank to rank, beside the links of the same machine in the same run.

    bench/exchange.py BUILD_DIR           (make bench-exchange)

Environment variables choose what to do. Their defaults:

    PARTS="links all pairs"
    DEVICE=host            or gpu
    RANKS=2                as many as there are GPUs
    THREADS=1              of each rank
    ROWS=50000000          of the table whose rows move
    RUNS=5                 hot runs of a statement
    MEGABYTES=1024         of the links' copies
    MPIRUN="mpirun --oversubscribe --bind-to none"
    CSV=                   a file for all figures

links: on a GPU gpu_links_bench, copies between each two GPUs and between all of them; on the host alltoall_bench, a plain
exchange of the ranks over MPI.

all: statements that move most of a table's rows. "to all" brings the build side of a join to every rank. "groups" brings
groups to the ranks of their keys; on the host "rows" brings both sides of a join there. GB/s is what the slowest rank
received over the time of the phase `exchange` (packing, moving, unpacking; shell/STATISTICS.md), medians of the runs.

pairs: "to all" on each two GPUs alone (needs DEVICE=gpu), beside the link between them.
"""

import csv
import os
import subprocess

from measure import CsvFile, Failed, Ranks, Table, environment, generate, median, run_parts

JOIN = "SELECT count(*), sum(s.id + r.id) FROM s, r WHERE s.k = r.k;"
GROUPS = "SELECT count(*), sum(n), sum(total) FROM (SELECT k + 1, count(*) AS n, sum(id) AS total FROM r GROUP BY k + 1) AS g;"


class Bench:
    def __init__(self, build):
        self.build = build
        self.device, self.ranks = environment("DEVICE", "host"), int(environment("RANKS", "2"))
        self.runs, self.rows = int(environment("RUNS", "5")), int(environment("ROWS", "50000000"))
        self.megabytes = environment("MEGABYTES", "1024")
        self.jobs = Ranks(build, self.device, environment("THREADS", "1"))
        self.link = {}  # by "one way", "both ways" and two GPUs, or "all": GB/s
        self.csv = CsvFile(environment("CSV", ""), ["part", "what", "from", "to", "ranks", "gb_per_s", "of_link", "mb", "ms",
                                                    "wait_ms", "total_ms"])

    def links(self):
        table = Table("links", ("what", -12), ("from", 4), ("to", 4), ("GB/s", 8))
        if self.device == "gpu":
            command = [os.path.join(self.build, "gpu_links_bench"), self.megabytes]
        else:
            command = [*self.jobs.launcher, "-n", str(self.ranks), os.path.join(self.build, "alltoall_bench"), self.megabytes]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
        for line in csv.DictReader(done.stdout.splitlines()):
            what, rate = line.get("what", "all to all"), float(line["gb_per_s"])
            ends = line.get("from", ""), line.get("to", "")
            table.row(what, *ends, rate)
            self.csv.row(part="links", what=what, **{"from": ends[0], "to": ends[1]}, gb_per_s=rate)
            key = "all" if what == "all to all" else (what, *ends)
            self.link[key] = min(rate, self.link.get(key, rate))

    def rate(self, database, what, statement, settings, ranks, variables=None):
        """(GB/s, MB, milliseconds of the exchange, of waiting, and in all) of the rank that is slowest."""
        statements = [f"SET {s};" for s in settings] + [statement] * (self.runs + 1)
        lines, _ = self.jobs.run(ranks, database, statements, variables)
        first = max(int(line["statement"]) for line in lines) - self.runs
        found = []
        for rank in range(ranks):
            runs = [{k: float(v) for k, v in line.items() if k.endswith(("_ms", "received"))} for line in lines
                    if int(line["rank"]) == rank and int(line["statement"]) > first]
            of = {k: median([run[k] for run in runs]) for k in runs[0]}
            if of["exchange_ms"] <= 0:
                raise Failed(f"{what}: nothing was exchanged")
            found.append((of["bytes_received"] / of["exchange_ms"] * 1e-6, of["bytes_received"] * 1e-6, of["exchange_ms"],
                          of["wait_ms"], of["total_ms"]))
        return min(found)

    def database(self):
        return generate(self.build, f"exchange-{self.rows}", "join_gen",
                        ["--build", str(self.rows), "--probe", str(self.rows // 5)])[1]

    def show(self, table, part, what, ranks, link, found, ends=("", "")):
        rate, megabytes, ms, wait, total = found
        table.row(what, rate, rate / link * 100 if link else None, megabytes, ms, wait, total)
        self.csv.row(part=part, what=what, **{"from": ends[0], "to": ends[1]}, ranks=ranks, gb_per_s=rate,
                     of_link=rate / link if link else "", mb=megabytes, ms=ms, wait_ms=wait, total_ms=total)

    def table(self, title):
        return Table(title, ("what", -12), ("GB/s", 8), ("% of link", 9), ("MB", 8), ("exchange ms", 11), ("wait ms", 8),
                     ("total ms", 9))

    def all(self):
        database = self.database()
        table = self.table(f"{self.ranks} ranks, {self.device}")
        cases = [("to all", JOIN, ["join_exchange = off", "broadcast_limit = '100GB'"]), ("groups", GROUPS, [])]
        if self.device == "host":
            cases.append(("rows", JOIN, ["join_exchange = on"]))
        for what, statement, settings in cases:
            found = self.rate(database, what, statement, settings, self.ranks)
            self.show(table, "all", what, self.ranks, self.link.get("all"), found)

    def pairs(self):
        if self.device != "gpu":
            return
        database = self.database()
        table = self.table("two GPUs, 'to all'")
        for a in range(self.ranks):
            for b in range(a + 1, self.ranks):
                found = self.rate(database, f"{a} and {b}", JOIN, ["join_exchange = off", "broadcast_limit = '100GB'"], 2,
                                  {"CUDA_VISIBLE_DEVICES": f"{a},{b}"})
                self.show(table, "pairs", f"{a} and {b}", 2, self.link.get(("both ways", str(a), str(b))), found,
                          (str(a), str(b)))


if __name__ == "__main__":
    run_parts(__doc__, Bench, "links all pairs")
