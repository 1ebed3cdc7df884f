#!/usr/bin/env python3
"""A scaling experiment: suites of queries on one rank and on more, to CSV files, plots and a prediction.

    bench/scaling/scaling.py BUILD_DIR           (make bench-scaling)

Environment variables choose what to do. Their defaults:

    STEPS="load run plot"  load: makes the data; run: writes runs.csv; plot: reads it and writes the rest
    SUITES="select join ssb tpch"
    RANKS="1 2"            the first is what the others are compared with
    MODE=strong            or weak: data grow with the ranks
    SCALE=1                of SSB and TPC-H
    ROWS=8000000           of the table of the SELECT suite; above 400 M rounded up to a multiple of 2, 4, 8 ...
    PAIRS="1x2 2x2 2x3 2x4 3x4 2x7 4x4"   tablets of the two sides of the JOIN suite
    TABLET=5000            rows of such a tablet
    DEVICE=host            or gpu, auto
    THREADS=1              of each rank
    RUNS=5                 runs of a query in a job, after one that warms up and does not count
    ROUNDS=3               jobs with each number of ranks, alternately, so that other load on the machine hits all of them
    SLOTS=                 ranks that can work side by side; default: processors over threads
    MPIRUN="mpirun --oversubscribe --bind-to none"    on a cluster "mpirun --hostfile FILE --map-by ppr:1:node" or "srun --mpi=pmix"
    SETTINGS="replicate_below=0"
    OUT=BUILD_DIR/bench/scaling           runs.csv, medians.csv, prediction.csv and SVG files

Every job begins with all of its queries once: a first run opens files, starts threads and wakes a GPU, and a cold one rank
beside two warm ones looks like magic. README.md in this folder says how to read what comes out.
"""

import csv
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE), HERE]

import prediction  # noqa: E402
import plot  # noqa: E402
from join import THETA  # noqa: E402
from measure import ROOT, CsvFile, Failed, OtherLoad, Ranks, Table, environment, generate, median  # noqa: E402

PARTS = [part + "_ms" for part in ("compile", "scatter", "read", "transfer", "kernel", "execute", "exchange", "wait", "gather",
                                   "merge", "print")]

NUMBERS = ["statement", "rank", "total_ms", *PARTS, "bytes_sent", "bytes_received", "rows_scanned", "memory_peak"]

# Of a run on a rank, in runs.csv.
VALUES = ["total_ms", "alone_ms", *PARTS, "bytes_sent", "bytes_received", "rows_scanned", "memory_peak"]

MOST_GENERATED = 400_000_000  # rows of the table of the SELECT suite; a larger one has them several times

# Five shapes, each on integers and on floats: after the queries of the papers on VMs for GPUs, counted.
SHAPES = [("two filters", "count(*), sum(id)", "uniform{0} > 60 AND normal{0}5 < 0"),
          ("sum of two", "count(*), sum(uniform{0} + normal{0}5)", "uniform{0} + normal{0}20 > 10"),
          ("one of two", "count(*), max(normal{0}20)", "normal{0}20 + 40 > uniform{0} - 10 OR normal{0}5 > 5"),
          ("aggregates", "sum(uniform{0}), avg(normal{0}5), min(normal{0}20)", "normal{0}5 BETWEEN -5 AND 5"),
          ("few rows", "count(*), avg(uniform{0})", "uniform{0} > 95 AND normal{0}5 > 3")]


def fail(text):
    sys.exit("bench/scaling: " + text)


class Suite:
    """Queries over one database: [(name, text)]. `empty` reads a table and no row of it."""

    def __init__(self, name, database, queries, empty):
        self.name, self.database, self.queries = name, database, queries
        self.empty = f"SELECT count(*) FROM {empty} < 0"


class Scaling:
    def __init__(self, build):
        self.build = build
        self.device, self.threads = environment("DEVICE", "host"), environment("THREADS", "1")
        self.runs, self.rounds = int(environment("RUNS", "5")), int(environment("ROUNDS", "3"))
        self.ranks = [int(n) for n in environment("RANKS", "1 2").split()]
        self.weak = environment("MODE", "strong") == "weak"
        self.slots = int(environment("SLOTS", "0")) or max(1, os.cpu_count() // int(self.threads))
        self.steps = environment("STEPS", "load run plot").split()
        if not set(self.steps) <= {"load", "run", "plot"}:
            fail(f"STEPS has load, run and plot, not '{' '.join(self.steps)}'")
        self.jobs = Ranks(build, self.device, self.threads) if "run" in self.steps else None
        self.settings = [f"SET {s.replace('=', ' = ')};" for s in environment("SETTINGS", "replicate_below=0").split()]
        self.out = environment("OUT", os.path.join(build, "bench", "scaling"))
        os.makedirs(self.out, exist_ok=True)
        version = subprocess.run([os.path.join(build, "tessera"), "--version"], capture_output=True, text=True).stdout.strip()
        self.about = {"host": os.uname().nodename, "device": self.device, "threads": self.threads, "version": version,
                      "mode": "weak" if self.weak else "strong"}
        columns = ["suite", "query", "ranks", *self.about]
        self.file = os.path.join(self.out, "runs.csv")
        self.all = CsvFile(self.file if "run" in self.steps else "", [*columns, "round", "run", "rank", *VALUES])
        self.medians = CsvFile(os.path.join(self.out, "medians.csv") if "plot" in self.steps else "",
                               [*columns, "ms", "low_ms", "high_ms", "speedup", "efficiency", "s_ms", "p_ms", "goal_ms",
                                "predicted_ms"])

    # ---- Data and queries

    def suite(self, name, times):
        """The suite with data for `times` ranks, if data grow."""
        return getattr(self, "suite_" + name)(times if self.weak else 1)

    def suite_select(self, times):
        rows = generated = int(environment("ROWS", "8000000")) * times
        doubled = 0
        while generated > MOST_GENERATED:  # while they are loaded, text of 50 bytes a row is there
            generated, doubled = (generated + 1) // 2, doubled + 1
        _, database = generate(self.build, f"scaling-select-{rows}", "join_gen", ["--build", "1000", "--probe", str(generated)],
                               ["INSERT INTO s SELECT * FROM s"] * doubled)
        queries = [(f"{shape}, {kind}", f"SELECT {what.format(letter)} FROM s WHERE {where.format(letter)}")
                   for letter, kind in (("i", "integers"), ("f", "floats")) for shape, what, where in SHAPES]
        return Suite("select", database, queries, "s WHERE id")

    def suite_join(self, times):
        tablet = int(environment("TABLET", "5000"))
        pairs = [[int(n) for n in pair.split("x")] for pair in environment("PAIRS", "1x2 2x2 2x3 2x4 3x4 2x7 4x4").split()]
        rows = tablet * times * max(n for pair in pairs for n in pair)
        # (One side grows: with both, work would grow by the square.)
        copies = [f"CREATE TABLE {table}{n} AS SELECT * FROM {table} WHERE id < {n * tablet * (1, times)[side]}"
                  for table, side in (("r", 0), ("s", 1)) for n in sorted({pair[side] for pair in pairs})]
        _, database = generate(self.build, f"scaling-join-{rows}-{tablet}", "join_gen",
                               ["--build", str(rows), "--probe", str(rows)],
                               [f"SET tablet_rows = {tablet}", *copies])
        queries = [(f"{a}x{b} {name}", f"SELECT {what} FROM r{a} r, s{b} s WHERE {where}")
                   for a, b in pairs for name, what, where in THETA]
        return Suite("join", database, queries, "s WHERE id")

    def prepared(self, kind, times):
        scale = environment("SCALE", "1")
        scale = str(float(scale) * times) if times > 1 else scale
        done = subprocess.run(["bench/queries.sh", kind, "prepare", self.build, scale.removesuffix(".0")], cwd=ROOT,
                              check=True, stdout=subprocess.PIPE, text=True)
        return os.path.join(ROOT, done.stdout.strip())

    def files(self, kind):
        folder = os.path.join(ROOT, "data_gen", kind)
        names = [f[:-4] for f in os.listdir(folder) if f.startswith("q") and f.endswith(".sql")]
        names.sort(key=lambda name: [int(n) for n in name[1:].split(".")])
        return [(name, open(os.path.join(folder, name + ".sql")).read().strip().rstrip(";")) for name in names]

    def suite_ssb(self, times):
        return Suite("ssb", self.prepared("ssb", times), self.files("ssb"), "lineorder WHERE lo_orderkey")

    def suite_tpch(self, times):
        return Suite("tpch", self.prepared("tpch", times), self.files("tpch"), "lineitem WHERE l_orderkey")

    # ---- Runs

    def job(self, ranks, suite):
        """Runs every query once and then `runs` times. Returns for each run {rank: {column: value}}, by query."""
        texts = [("(empty)", suite.empty), *suite.queries]
        script = [*self.settings, *(text + ";" for _, text in texts),
                  *(text + ";" for _, text in texts for _ in range(self.runs))]
        try:
            lines, sections = self.jobs.run(ranks, suite.database, script)
        except Failed as error:
            fail(f"{suite.name}: {error}")
        alone = prediction.alone(lines, sections)
        statements = {}
        for line in lines:
            values = {name: float(line[name]) for name in NUMBERS}
            values["alone_ms"] = alone[line["statement"], line["rank"]]
            statements.setdefault(int(values["statement"]), {})[int(values["rank"])] = values
        found = [statements[n] for n in sorted(statements)][len(texts):]
        if len(found) != len(texts) * self.runs:
            fail(f"statistics of {len(found)} statements, not {len(texts) * self.runs}")
        return {name: found[i * self.runs:(i + 1) * self.runs] for i, (name, _) in enumerate(texts)}

    def run(self, name):
        load = OtherLoad()
        suites = {n: self.suite(name, n) for n in self.ranks}
        if "run" not in self.steps:
            return
        runs = {n: {} for n in self.ranks}  # by ranks and query: [{rank: statistics}]
        for round_ in range(self.rounds):
            for n in self.ranks:
                for query, found in self.job(n, suites[n]).items():
                    runs[n].setdefault(query, []).extend(found)
                    for number, run in enumerate(found):
                        for rank, values in run.items():
                            self.all.row(suite=name, query=query, ranks=n, round=round_, run=number, **self.about, **{
                                **{k: v for k, v in values.items() if k in self.all.columns}, "rank": rank})
        if "plot" in self.steps:
            self.report(name, runs)
        print("\n" + load.text())

    def read(self):
        """The runs of an earlier step: {suite: {ranks: {query: [{rank: {column: value}}]}}}. What they were made with is in
        the file, not in the environment."""
        if not os.path.exists(self.file):
            fail(f"there is no {self.file}: STEPS=run makes it")
        suites = {}
        with open(self.file, newline="") as file:
            for row in csv.DictReader(file):
                self.about = {name: row[name] for name in self.about}
                found = suites.setdefault(row["suite"], {}).setdefault(int(row["ranks"]), {}).setdefault(row["query"], {})
                found.setdefault((row["round"], row["run"]), {})[int(row["rank"])] = {v: float(row[v]) for v in VALUES}
        self.weak, self.device, self.threads = self.about["mode"] == "weak", self.about["device"], self.about["threads"]
        return {name: {n: {query: list(found.values()) for query, found in queries.items()} for n, queries in ranks.items()}
                for name, ranks in suites.items()}

    def report(self, name, runs):
        base = self.ranks[0]
        columns = [(f"{n} ranks ms" if n > 1 else "1 rank ms", 10) for n in self.ranks]
        columns += [(f"{'efficiency' if self.weak else 'speed-up'} {n}", 12) for n in self.ranks[1:]]
        if not self.weak:
            columns += [("s ms", 7), ("p ms", 7)] + [(f"of goal {n}", 9) for n in self.ranks[1:]]
        columns += [(f"predicted {n} ms", 15) for n in self.ranks[2:]]
        table = Table(f"{name}, {self.about['mode']} scaling, {self.device}, {self.threads} thread(s) a rank", ("query", -24),
                      *columns)
        totals = {n: {q: [run[0]["total_ms"] for run in found] for q, found in runs[n].items()} for n in self.ranks}
        ms = {n: {q: median(t) for q, t in totals[n].items()} for n in self.ranks}
        fitted = prediction.fit(runs, self.ranks, self.slots, self.weak)
        queries = [q for q in runs[base] if q != "(empty)"]
        for n in self.ranks:
            ms[n]["sum"] = sum(ms[n][q] for q in queries)
        for query in ["(empty)", *queries, "sum"]:
            models = [fitted[q] for q in (queries if query == "sum" else [query])]
            once, shared = sum(m.once for m in models), sum(m.shared for m in models)
            goals = {n: sum(prediction.goal(m.once, m.shared, n) for m in models) for n in self.ranks[1:]}
            predicted = {n: sum(m.at(n) for m in models) for n in self.ranks[2:]}
            cells = [ms[n][query] for n in self.ranks] + [ms[base][query] / ms[n][query] for n in self.ranks[1:]]
            if not self.weak:
                cells += [once, shared] + [goals[n] / ms[n][query] for n in self.ranks[1:]]
            table.row(query, *cells, *predicted.values())
            for n in self.ranks:
                speedup = ms[base][query] / ms[n][query]
                low, high = (min(totals[n][query]), max(totals[n][query])) if query != "sum" else ("", "")
                self.medians.row(suite=name, query=query, ranks=n, ms=ms[n][query], low_ms=low, high_ms=high, **self.about,
                                 speedup=speedup, efficiency=speedup if self.weak else speedup * base / n, s_ms=once,
                                 p_ms=shared, goal_ms="" if self.weak else goals.get(n, ""), predicted_ms=predicted.get(n, ""))
        file = os.path.join(self.out, f"{name}-")
        spread = {n: plot.spread([totals[base][q] for q in queries], [totals[n][q] for q in queries]) for n in self.ranks}
        plot.curve(file + "speedup.svg", f"{name}: " + ("efficiency" if self.weak else "speed-up"), spread,
                   (lambda n: 1) if self.weak else (lambda n: n / base))
        shares = {n: {part: sum(median([run[0][part] for run in runs[n][q]]) for q in queries) for part in PARTS}
                  for n in self.ranks}
        for n in self.ranks:
            shares[n]["other"] = max(0.0, ms[n]["sum"] - sum(shares[n].values()))
        plot.stacks(file + "breakdown.svg", f"{name}: milliseconds of rank 0", shares)
        self.predict(name, fitted, queries)

    def predict(self, name, fitted, queries):
        """The curve up to 1,024 ranks, if there were as many slots."""
        with open(os.path.join(self.out, f"{name}-prediction.csv"), "w", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(["query", "once_ms", "shared_ms", "message_ms", "all_ms", "bends_at",
                             *[f"ranks_{2 ** k}_ms" for k in range(11)]])
            for query in queries:
                m = fitted[query]
                writer.writerow([query, *(f"{v:.4f}" for v in (m.once, m.shared, m.message, m.all)), m.bend(),
                                 *(f"{m.at(2 ** k, 2 ** k):.4f}" for k in range(11))])
        plot.curve(os.path.join(self.out, f"{name}-prediction.svg"), f"{name}: predicted speed-up of the sum",
                   {2 ** k: (prediction.speedup([fitted[q] for q in queries], 2 ** k),) * 3 for k in range(11)}, lambda n: n)
        slowest = max(queries, key=lambda q: fitted[q].at(1, 1))
        print(f"\n{name}: {fitted[slowest].advice(slowest)}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    scaling = Scaling(sys.argv[1])
    suites = environment("SUITES", "select join ssb tpch").split()
    for name in suites:
        if not hasattr(scaling, "suite_" + name):
            fail(f"SUITES has select, join, ssb and tpch, not '{name}'")
    if scaling.steps == ["plot"]:
        for name, runs in scaling.read().items():
            scaling.ranks = sorted(runs)
            scaling.report(name, runs)
        suites = []
    for name in suites:
        scaling.run(name)
    print(f"\nFiles are in {scaling.out}")


if __name__ == "__main__":
    main()
