#!/usr/bin/env python3
"""Ranks on this machine: the Star Schema Benchmark on one rank and on more, the master's own work, the gather rate.

    bench/ranks.py BUILD_DIR           (make bench-ranks)

Environment variables choose what to do. Their defaults:

    PARTS="ssb master gather"
    SCALE=1                of the Star Schema Benchmark
    DEVICE=host            or gpu
    RANKS="1 2"            the others are compared with the first
    THREADS=1              of each rank
    RUNS=7                 hot runs of a query in a job
    ROUNDS=3               jobs with each number of ranks, alternately, so that other load on the machine hits all of them
    MASTER_RANKS=7
    GATHER_RANKS=2  GATHER_ROWS=10000000
    MPIRUN="mpirun --oversubscribe --bind-to none"
    CSV=                   a file for all figures

ssb: the time of a statement at the master, from text to the last row, median over all runs and rounds.
master: the work of the master alone: compiling, merging the results of the ranks, taking the rows.
gather: rows of two 64-bit values, all to the master, by EXPLAIN (ANALYZE, PROGRAM), which makes the rows and prints none.
"""

import os
import subprocess
import sys

from measure import ROOT, CsvFile, Ranks, Table, environment, generate, median, run_parts

QUERIES = ["q1.1", "q1.2", "q1.3", "q2.1", "q2.2", "q2.3", "q3.1", "q3.2", "q3.3", "q3.4", "q4.1", "q4.2", "q4.3"]
NUMBERS = ["total_ms", "compile_ms", "merge_ms", "print_ms", "gather_ms", "bytes_received"]


def text_of(query):
    with open(os.path.join(ROOT, "data_gen", "ssb", query + ".sql")) as file:
        return file.read()


def statement_of(query):
    """On one line, without comments."""
    lines = [line.split("--")[0] for line in text_of(query).splitlines()]
    return " ".join(" ".join(lines).split()).rstrip(";")


class Bench:
    def __init__(self, build):
        self.build = build
        self.device = environment("DEVICE", "host")
        self.threads = environment("THREADS", "1")
        self.runs = int(environment("RUNS", "7"))
        self.rounds = int(environment("ROUNDS", "3"))
        self.jobs = Ranks(build, self.device, self.threads)
        self.csv = CsvFile(environment("CSV", ""), ["part", "query", "ranks", "threads", "device", "ms", "speedup", "compile_ms",
                                                    "merge_ms", "print_ms", "gather_ms", "bytes_received", "rows"])

    def job(self, ranks, database, statements):
        """Runs the statements. Returns rank 0's {column: value}, one for each statement."""
        lines, _ = self.jobs.run(ranks, database, statements)
        return [{name: float(row[name]) for name in NUMBERS} for row in lines if row["rank"] == "0"]

    def ssb_runs(self, ranks, database):
        """The statistics of each query's hot runs."""
        statements = [text_of(query) for query in QUERIES for _ in range(self.runs + 1)]
        rows = self.job(ranks, database, statements)
        if len(rows) != len(statements):
            sys.exit(f"bench/ranks.py: statistics of {len(rows)} statements, not {len(statements)}")
        n = self.runs + 1
        return {query: rows[i * n + 1:(i + 1) * n] for i, query in enumerate(QUERIES)}

    def database(self):
        done = subprocess.run(["bench/queries.sh", "ssb", "prepare", self.build, environment("SCALE", "1")], cwd=ROOT, check=True,
                              stdout=subprocess.PIPE, text=True)
        return os.path.join(ROOT, done.stdout.strip())

    def record(self, **values):
        self.csv.row(threads=self.threads, device=self.device, **values)

    def ssb(self):
        database = self.database()
        numbers = [int(n) for n in environment("RANKS", "1 2").split()]
        times = {n: {query: [] for query in QUERIES} for n in numbers}
        for _ in range(self.rounds):
            for n in numbers:
                for query, rows in self.ssb_runs(n, database).items():
                    times[n][query] += [row["total_ms"] for row in rows]
        columns = [(f"{n} ranks ms" if n != 1 else "1 rank ms", 10) for n in numbers]
        columns += [(f"speed-up {n}", 11) for n in numbers[1:]]
        table = Table(f"SSB scale {environment('SCALE', '1')}, {self.device}, {self.threads} thread(s) a rank", ("query", -5),
                      *columns)
        medians = {n: {query: median(times[n][query]) for query in QUERIES} for n in numbers}
        for n in numbers:
            medians[n]["sum"] = sum(medians[n].values())
        for query in [*QUERIES, "sum"]:
            base = medians[numbers[0]][query]
            table.row(query, *[medians[n][query] for n in numbers], *[base / medians[n][query] for n in numbers[1:]])
            for n in numbers:
                self.record(part="ssb", query=query, ranks=n, ms=medians[n][query], speedup=base / medians[n][query])

    def master(self):
        database = self.database()
        ranks = int(environment("MASTER_RANKS", "7"))
        table = Table(f"the master's own work on {ranks} ranks, ms", ("query", -5), ("compile", 8), ("merge", 8), ("print", 8),
                      ("sum", 8), ("received", 10))
        greatest = 0.0
        for query, rows in self.ssb_runs(ranks, database).items():
            parts = [median([row[name] for row in rows]) for name in ("compile_ms", "merge_ms", "print_ms")]
            received = int(median([row["bytes_received"] for row in rows]))
            table.row(query, *parts, sum(parts), received)
            greatest = max(greatest, sum(parts))
            self.record(part="master", query=query, ranks=ranks, compile_ms=parts[0], merge_ms=parts[1], print_ms=parts[2],
                        bytes_received=received)
        print(f"greatest: {greatest:.3f} ms")

    def gather(self):
        ranks, rows = int(environment("GATHER_RANKS", "2")), int(environment("GATHER_ROWS", "10000000"))
        _, database = generate(self.build, f"gather-{rows}", "join_gen",
                               ["--narrow", "--build", "1000000", "--probe", str(rows)])
        sql = "EXPLAIN (ANALYZE, PROGRAM) SELECT k, uniformi FROM s;"
        found = self.job(ranks, database, ["SET replicate_below = 0;"] + [sql] * (self.runs + 1))[1:]
        ms = median([row["total_ms"] for row in found])
        received = median([row["bytes_received"] for row in found])
        gather = median([row["gather_ms"] for row in found])
        table = Table(f"{rows:,} rows of 16 bytes to the master", ("ranks", 5), ("ms", 8), ("M rows/s", 9), ("GB/s", 7),
                      ("received MB", 11), ("received GB/s", 13))
        table.row(ranks, ms, rows / ms * 1e-3, rows * 16 / ms * 1e-6, received * 1e-6, received / ms * 1e-6)
        self.record(part="gather", query="gather", ranks=ranks, ms=ms, gather_ms=gather, bytes_received=int(received), rows=rows)


if __name__ == "__main__":
    run_parts(__doc__, Bench, "ssb master gather")
