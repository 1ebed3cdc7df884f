#!/usr/bin/env python3
"""Joins: theta joins, the Wisconsin queries, a foreign-key join beside DuckDB, skew.

    bench/join.py BUILD_DIR            (make bench-join)

Environment variables choose what to do. Their defaults:

    PARTS="theta wisconsin fk skew"
    DEVICE=host            or gpu: where Tessera runs
    CSV=                   a file for all figures
    RUNS=5                 hot runs of a query; fewer if one takes seconds
    LIMIT=60               seconds for a query; one that takes longer is reported as such
    THREADS=               of each of the two; default: all processors
    THETA_ROWS="3500 35000 100000"    350000 too, on a GPU
    WISCONSIN_ROWS="1000 10000 100000 1000000 10000000"
    FK_BUILD=1000000  FK_PROBE=20000000    16000000 and 256000000 on a GPU
    SKEW_SCALE=0.1         1: a million inner and a hundred million outer rows
    SKEWS="0 0.25 0.5 0.75 1 1.25 1.5"  SKEW_MATCHES="1 8"

theta: ten nested-loop joins of two tables of THETA_ROWS rows each, after Nguyen and Hemler (GPU acceleration for SQL
queries on large-scale distributed systems), who do not print their queries but describe them: one on integers alone, one
on floats alone, the others with arithmetic and conditions on both. Each counts and sums. Every join strategy that accepts
the query is forced, one after the other: hash; grid without pruning, the baseline of the speed-ups; grid with pruning, which runs the
same pairs of ranges as dp but launches no grids; dp; loop. Where the time goes is from EXPLAIN (ANALYZE, PROGRAM) of one run: the
milliseconds of the nested-loop join ("product") and of all other sections (which read and sort the sides); millions of
pairs tested, and pairs left out by column ranges in per cent of both; grids that the device launched; bytes of columns
read.

wisconsin: the queries of Hristov (Performance evaluation of query processing algorithms on GPGPUs): projection,
aggregation, selection, a join with a table of 0.6 N rows, all of them combined. Queries of many rows are run by EXPLAIN
ANALYZE, which makes the rows and prints none. Then his maximum over tables whose tuples are small, as above and large, and the
phases of his selection (--stats).

fk: keys, and rows that refer to them; by default 1 M and 20 M. On the host runs alternate with DuckDB's, and the rows must
be the same. On a GPU (16 M and 256 M) the same join is written in several ways, and with larger payloads. It probes with
the rows as they come (SET join_partitioning = off), and sorted by the table's slots if that is expected to be faster
(auto). Times of the probing kernels are compared with the time of random reads alone, one read in each structure that a
probe needs (gpu_layout_bench --sectors).

skew: foreign keys follow Zipf's law with exponents 0 to 1.5, with 1 and with 8 matches a key; by hash and, on a GPU, by dp.
"""

import csv
import glob
import os
import subprocess
import sys
import time

from measure import (COMPILE_EACH_RUN, ROOT, Analysis, CsvFile, Failed, OtherLoad, Session, Table, environment, generate, hot_runs,
                     make_database, measure, median, same)

THETA = [
    ("1 int =", "count(*), sum(r.uniformi + s.normali5)", "r.uniformi = s.uniformi"),
    ("2 float <", "count(*), sum(r.normalf5)", "r.uniformf < s.normalf5"),
    ("3 int > float", "count(*), sum(r.uniformi)", "r.uniformi > s.uniformf"),
    ("4 2 int < float", "count(*), sum(s.normalf20)", "r.normali5 * 2 < s.normalf20"),
    ("5 sum > constant", "count(*), sum(r.uniformi + s.uniformf)", "r.uniformi + s.uniformf > 150"),
    ("6 band", "count(*), sum(s.uniformi)", "r.normali20 BETWEEN s.normalf20 - 1 AND s.normalf20 + 1"),
    ("7 = and >", "count(*), sum(r.uniformf)", "r.uniformi = s.normali20 AND r.uniformf > s.normalf5"),
    ("8 filters and <", "count(*), sum(r.normali20 * s.normalf5)",
     "r.uniformi > 50 AND s.uniformf < -50 AND r.normali5 < s.normalf5"),
    ("9 product > constant", "count(*), sum(r.normali20)", "r.normalf5 * s.normali5 > 20"),
    ("10 < or >", "count(*), sum(r.uniformi - s.uniformi)", "r.uniformi < s.uniformi OR r.normalf20 > s.normalf20 + 10"),
]
STRATEGIES = [("grid", "grid", "off"), ("pruned grid", "grid", "on"), ("dp", "dp", "on"), ("hash", "hash", "on"),
              ("loop", "loop", "on")]

WISCONSIN = [
    ("projection", "EXPLAIN (ANALYZE, PROGRAM) SELECT unique1 + unique2 AS summation FROM t1"),
    ("aggregation", "SELECT avg(unique1) AS average FROM t1"),
    ("maximum", "SELECT max(unique1::BIGINT * tenpercent / 100) FROM t1"),
    ("selection", "EXPLAIN (ANALYZE, PROGRAM) SELECT * FROM t1 WHERE unique1 > 1000 AND unique1 < 6000 AND unique2 % 2 = 0 AND two = 0"),
    ("join", "EXPLAIN (ANALYZE, PROGRAM) SELECT * FROM t1, t2 WHERE t1.unique1 = t2.unique1"),
    ("join, counted", "SELECT count(*), sum(t1.unique2 + t2.unique2) FROM t1, t2 WHERE t1.unique1 = t2.unique1"),
    ("combined", "SELECT max(t1.unique1::BIGINT * t1.tenpercent / 100) FROM t1, t2"
                 " WHERE t1.unique1 = t2.unique2 AND t1.unique1 < 6000 AND t2.unique2 > 1000"),
]

TUPLES = {  # the columns of a tuple after unique1, unique2 and tenpercent
    "small": ["REAL", "VARCHAR(1)"],
    "standard": ["INTEGER"] * 10 + ["VARCHAR(8)"] * 3,
    "large": ["BIGINT"] * 13 + ["VARCHAR(8)"] * 3,
}
SELECTION = "SELECT * FROM {} WHERE unique1 > 1000 AND unique1 < 6000 AND unique2 % 2 = 0"

FK = [
    ("count", "SELECT count(*) FROM s, r WHERE s.k = r.k"),
    ("sum of both sides", "SELECT count(*), sum(r.uniformi + s.uniformi) FROM s, r WHERE s.k = r.k"),
    ("half of the keys", "SELECT count(*), sum(s.uniformi) FROM s, r WHERE s.k = r.k AND r.uniformi < 0"),
    ("201 groups", "SELECT r.uniformi, count(*), sum(s.uniformi) FROM s, r WHERE s.k = r.k GROUP BY r.uniformi"),
]

# The same join written in several ways, then two with larger payloads. The lists say how many bytes a key has in each
# structure that a probe reads: the payload itself, one byte or four; the row number in r and then its columns, for an outer
# join (a row may have no match) or a payload of more than 32 bits; a bitmap.
FK_KINDS = [
    ("inner", "SELECT count(*), sum(r.uniformi) FROM s JOIN r ON s.k = r.k", [1]),
    ("using", "SELECT count(*), sum(r.uniformi) FROM s JOIN r USING (k)", [1]),
    ("natural", "SELECT count(*), sum(x) FROM (SELECT k FROM s) AS f NATURAL JOIN (SELECT k, uniformi AS x FROM r) AS d", [1]),
    ("left", "SELECT count(*), sum(r.uniformi) FROM s LEFT JOIN r ON s.k = r.k", [4, 8]),
    ("in", "SELECT count(*) FROM s WHERE k IN (SELECT k FROM r)", [1 / 8]),
    ("exists", "SELECT count(*) FROM s WHERE EXISTS (SELECT 1 FROM r WHERE r.k = s.k)", [1 / 8]),
    ("4 bytes", "SELECT count(*), sum(d.p) FROM s, d WHERE s.k = d.k", [4]),
    ("2 columns", "SELECT count(*), sum(d.p), sum(d.q) FROM s, d WHERE s.k = d.k", [4, 8, 8]),
]
FK_PAYLOADS = ["CREATE TABLE d (k INTEGER PRIMARY KEY, p INTEGER, q INTEGER)",
               "INSERT INTO d SELECT k, k % 1000000, k % 999983 FROM r"]


def numbers(name, default):
    return [int(n) for n in environment(name, default).split()]


class Bench:
    def __init__(self, build):
        self.build = build
        self.device = environment("DEVICE", "host")
        self.runs = int(environment("RUNS", "5"))
        self.limit = float(environment("LIMIT", "60"))
        self.threads = int(environment("THREADS", str(len(os.sched_getaffinity(0)))))
        self.csv = CsvFile(environment("CSV", ""), ["part", "query", "build_rows", "probe_rows", "matches", "skew", "strategy",
                                                "device", "threads", "ms", "kernel_ms", "ns_per_row", "duckdb_ms", "of_grid", "product_ms",
                                                "other_ms", "pairs_tested", "pairs_left_out", "child_grids", "bytes", "note"])
        self.failed = False

    def session(self, database, device=None):
        session = Session(self.build, database, device or self.device, self.threads, self.limit)
        if (device or self.device) == "gpu":
            # The GPU runs what it can, the host the rest; the kernel time says what ran on the GPU.
            session.command[session.command.index("gpu")] = "auto"
            session.settings.append("SET gpu_min_rows = 0")
        return session

    def record(self, **values):
        self.csv.row(device=self.device, threads=self.threads, **values)

    # ---- theta --------------------------------------------------------------------------------------------------------

    def force(self, session, strategy, pruning="on"):
        session.run(f"SET join_strategy = {strategy}")
        session.run(f"SET grid_pruning = {pruning}")

    def theta(self):
        for rows in numbers("THETA_ROWS", "3500 35000 100000"):
            _, database = generate(self.build, f"theta-{rows}", "join_gen", ["--build", str(rows), "--probe", str(rows)])
            session = self.session(database)
            table = Table(f"theta joins, {rows:,} x {rows:,} rows = {rows * rows:,} pairs, {self.device}", ("query", -20),
                          ("strategy", -11), ("ms", 9), ("kernels", 9), ("of grid", 7), ("product", 9), ("others", 7),
                          ("M tested", 9), ("left out", 8), ("grids", 6), ("MB", 6), ("count", 14), ("note", -1))
            gains = {}
            for query, columns, where in THETA:
                expected, grid = None, None
                for name, strategy, pruning in STRATEGIES:
                    if strategy == "dp" and self.device != "gpu" or strategy == "loop" and self.device == "gpu":
                        continue
                    key = dict(part="theta", query=query, build_rows=rows, probe_rows=rows, strategy=name)
                    try:
                        self.force(session, strategy, pruning)
                        sql = f"SELECT {columns} FROM r, s WHERE {where}"
                        result, ms, kernel = measure(session, sql, self.runs)
                        analysis = Analysis(session, sql)
                    except Failed as error:
                        if "cannot run this query" not in str(error):
                            table.row(query, name, "n/a", *[""] * 9, str(error))
                        self.record(**key, note=str(error))
                        continue
                    note = ""
                    if expected is not None and not same(expected, result):
                        note = "OTHER ROWS than the first strategy's"
                        self.failed = True
                    expected = expected or result
                    grid = grid or ms
                    gains.setdefault(name, []).append(grid / ms)
                    # The section that makes the pairs is the last but one; the last one makes a row of the result.
                    product = analysis.sections[-2].ms
                    others = sum(section.ms for section in analysis.sections) - product
                    table.row(query, name, ms, kernel or None, grid / ms, product, others, analysis.tested / 1e6 or None,
                              f"{analysis.left_out / (analysis.tested + analysis.left_out):.1%}" if analysis.tested else None,
                              analysis.child_grids or None, analysis.bytes / 1e6, int(result[0].split(",")[0]), note)
                    self.record(**key, ms=ms, kernel_ms=kernel, ns_per_row=ms * 1e6 / (rows * rows), of_grid=grid / ms,
                                product_ms=product, other_ms=others, pairs_tested=analysis.tested,
                                pairs_left_out=analysis.left_out, child_grids=analysis.child_grids, bytes=analysis.bytes,
                                note=note)
            for name, values in gains.items():
                print(f"{name}: {sum(values) / len(values):.2f} times as fast as grid on average, {min(values):.2f} at least,"
                      f" {len(values)} queries")
            session.close()

    # ---- Wisconsin ----------------------------------------------------------------------------------------------------

    def wisconsin(self):
        sizes = numbers("WISCONSIN_ROWS", "1000 10000 100000 1000000 10000000")
        for device in ["host"] + (["gpu"] if self.device == "gpu" else []):
            table = Table(f"Wisconsin queries, ns per tuple of the larger table, {device}", ("query", -14),
                          *[(f"{n:,}", 12) for n in sizes], ("note", -1))
            cells = {name: [] for name, _ in WISCONSIN}
            notes = {}
            for rows in sizes:
                _, database = generate(self.build, f"wisconsin-{rows}", "wisconsin_gen",
                                       ["--rows", str(rows), "--string-length", "8"])
                session = self.session(database, device)
                for name, sql in WISCONSIN:
                    key = dict(part="wisconsin", query=name, build_rows=rows * 3 // 5, probe_rows=rows)
                    try:
                        _, ms, kernel = measure(session, sql, self.runs)
                    except Failed as error:
                        cells[name].append("n/a")
                        notes[name] = f"{rows:,}: {error}"
                        self.csv.row(**key, device=device, threads=self.threads, note=str(error))
                        continue
                    cells[name].append(ms * 1e6 / rows)
                    self.csv.row(**key, device=device, threads=self.threads, ms=ms, kernel_ms=kernel,
                                 ns_per_row=ms * 1e6 / rows)
                session.close()
            for name, _ in WISCONSIN:
                table.row(name, *cells[name], notes.get(name, ""))
        self.tuples()

    def tuples(self):
        rows = int(environment("TUPLES", "1000000"))
        database = os.path.join(self.build, "bench", f"tuples-{rows}.tessera")
        if not os.path.isdir(database):
            script = []
            for name, types in TUPLES.items():
                integers = "BIGINT" if name == "large" else "INTEGER"
                columns = [f"unique1 {integers}", f"unique2 {integers}", f"tenpercent {integers}"]
                columns += [f"x{i} {t}" for i, t in enumerate(types)]
                values = [f"i::BIGINT * 7919 % {rows}", "i", "i % 10"]
                values += [f"'{'abcdefgh' if '8' in t else 'a'}'" if "VARCHAR" in t else f"i * {i + 3} % {rows}" for i, t in enumerate(types)]
                script += [f"CREATE TABLE {name} ({', '.join(columns)});",
                           f"INSERT INTO {name} SELECT {', '.join(values)} FROM range({rows}) r(i);"]
            make_database(self.build, database, script)
        table = Table(f"Tuples of three sizes, {rows:,} of each", ("device", -6), ("query", -9), *((name, 9) for name in TUPLES))
        phases = []
        for device in ["host"] + (["gpu"] if self.device == "gpu" else []):
            session = self.session(database, device)
            for query, sql in (("maximum", "SELECT max(unique1::BIGINT * tenpercent / 100) FROM {}"),
                               ("selection", "EXPLAIN (ANALYZE, PROGRAM) " + SELECTION)):
                times = []
                for name in TUPLES:
                    _, ms, kernel = measure(session, sql.format(name), self.runs)
                    times.append(ms)
                    self.csv.row(part="wisconsin", query=f"{query}, {name} tuples", build_rows=0, probe_rows=rows, device=device,
                                 threads=self.threads, ms=ms, kernel_ms=kernel, ns_per_row=ms * 1e6 / rows)
                table.row(device, query, *times)
            session.close()
            done = subprocess.run([os.path.join(self.build, "tessera"), "--device", device, "--threads", str(self.threads), "--warmup", "3",
                                   "--stats", "csv", "-readonly", "-c", f"{COMPILE_EACH_RUN}; {SELECTION.format('standard')}", database],
                                  check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            lines = list(csv.DictReader(done.stderr.splitlines()))
            phases.append((device, next(line for line in lines if not line.get("section"))))
        for device, line in phases:
            spent = {name.removesuffix("_ms"): float(value) for name, value in line.items()
                     if name.endswith("_ms") and not name.endswith("_work_ms") and value and float(value) > 0}
            print(f"phases of the selection, {device}, ms: " + ", ".join(f"{name} {ms:.3f}" for name, ms in spent.items()))

    # ---- Foreign key --------------------------------------------------------------------------------------------------

    def fk(self):
        if self.device == "gpu":
            self.fk_kinds()
        else:
            self.fk_beside_duckdb()

    def fk_kinds(self):
        build_rows, probe_rows = int(environment("FK_BUILD", "16000000")), int(environment("FK_PROBE", "256000000"))
        _, database = generate(self.build, f"fk-kinds-{build_rows}-{probe_rows}", "join_gen",
                               ["--narrow", "--build", str(build_rows), "--probe", str(probe_rows)],
                               FK_PAYLOADS)
        regions = sorted({bytes_per_key * build_rows for _, _, structures in FK_KINDS for bytes_per_key in structures})
        reads = dict(zip(regions, map(float, subprocess.run(
            [os.path.join(self.build, "gpu_layout_bench"), "--sectors", " ".join(str(n / 1e6) for n in regions)], check=True,
            capture_output=True, text=True).stdout.split())))
        session = self.session(database)
        table = Table(f"foreign-key join, {build_rows:,} keys, {probe_rows:,} rows, GPU", ("join", -9), ("order", -5),
                      ("ms", 9), ("kernels", 9), ("probe ms", 9), ("G probes/s", 10), ("bound ms", 9), ("of bound", 8),
                      ("count", 12), ("note", -1))
        results = {}
        for name, sql, structures in FK_KINDS:
            for order in ("off", "auto"):
                key = dict(part="fk", query=name, build_rows=build_rows, probe_rows=probe_rows, matches=1, skew=0,
                           strategy=f"hash, join_partitioning {order}")
                try:
                    session.run(f"SET join_partitioning = {order}")
                    result, ms, kernel = measure(session, sql, self.runs)
                    probes = [sum(s.kernel_ms for s in Analysis(session, sql).sections if s.rows_in == probe_rows)
                              for _ in range(self.runs)]
                except Failed as error:
                    table.row(name, order, "n/a", *[""] * 6, str(error))
                    self.record(**key, note=str(error))
                    continue
                # All joins whose payload has one byte give the same sum.
                same_rows = results.setdefault("sum" if "uniformi)" in sql or "sum(x)" in sql else sql, result) == result
                note = ""
                if int(result[0].split(",")[0]) != probe_rows or not same_rows:
                    note = "OTHER ROWS than the first one's"
                    self.failed = True
                probe, bound = median(probes), sum(probe_rows / reads[n * build_rows] * 1e3 for n in structures)
                table.row(name, order, ms, kernel, probe, probe_rows / probe * 1e-6 if probe else None, bound,
                          f"{bound / probe:.0%}" if probe else None, probe_rows,
                          note or ("" if probe else "probed on the host"))
                self.record(**key, ms=ms, kernel_ms=probe, ns_per_row=probe * 1e6 / probe_rows, note=note)
        session.close()

    def fk_beside_duckdb(self):
        build_rows, probe_rows = int(environment("FK_BUILD", "1000000")), int(environment("FK_PROBE", "20000000"))
        data, database = generate(self.build, f"fk-{build_rows}-{probe_rows}", "join_gen",
                                  ["--narrow", "--build", str(build_rows), "--probe", str(probe_rows)])
        session = self.session(database, "host")
        duckdb = DuckDb(data, self.threads)
        table = Table(f"foreign-key join, {build_rows:,} keys, {probe_rows:,} rows, host, {self.threads} threads; "
                      f"{duckdb.version}", ("query", -18), ("ms", 9), ("M rows/s", 9), ("DuckDB ms", 9), ("ratio", 6),
                      ("note", -1))
        for name, sql in FK:
            key = dict(part="fk", query=name, build_rows=build_rows, probe_rows=probe_rows, matches=1, skew=0)
            try:
                first = session.run(sql)
            except Failed as error:
                table.row(name, "n/a", "", "", "", str(error))
                self.csv.row(**key, device="host", threads=self.threads, note=str(error))
                continue
            theirs_first, theirs_ms = duckdb.run(sql) if duckdb.connection else (None, 0)
            ours, theirs = [], []
            for _ in range(hot_runs(max(first.ms, theirs_ms), self.runs)):
                ours.append(session.run(sql).ms)
                if duckdb.connection:
                    theirs.append(duckdb.run(sql)[1])
            note = ""
            if duckdb.connection and not same(sorted(first.rows), sorted(theirs_first)):
                note = "OTHER ROWS than DuckDB's"
                self.failed = True
            ms, duckdb_ms = median(ours), median(theirs) if theirs else None
            table.row(name, ms, probe_rows / ms * 1e-3, duckdb_ms, ms / duckdb_ms if duckdb_ms else None, note)
            self.csv.row(**key, device="host", threads=self.threads, ms=ms, ns_per_row=ms * 1e6 / probe_rows,
                         duckdb_ms=duckdb_ms or "", note=note)
        session.close()

    # ---- Skew ---------------------------------------------------------------------------------------------------------

    def skew(self):
        scale = float(environment("SKEW_SCALE", "0.1"))
        inner, outer = max(1, round(1e6 * scale)), max(1, round(1e8 * scale))
        table = Table(f"skew: {inner:,} inner and {outer:,} outer rows, {self.device}", ("matches", 7), ("Zipf", 5),
                      ("strategy", -8), ("ms", 10), ("kernel ms", 9), ("M rows/s", 9), ("of Zipf 0", 9), ("rows", 13), ("note", -1))
        strategies = ["hash", "dp"] if self.device == "gpu" else ["hash"]
        for matches in numbers("SKEW_MATCHES", "1 8"):
            base = {}
            for skew in environment("SKEWS", "0 0.25 0.5 0.75 1 1.25 1.5").split():
                _, database = generate(self.build, f"skew-{inner}-{outer}-{matches}-{skew}", "join_gen",
                                       ["--narrow", "--build", str(inner), "--probe", str(outer), "--matches",
                                        str(min(matches, inner)), "--skew", skew])
                session = self.session(database)
                for strategy in strategies:
                    key = dict(part="skew", query="sum of both sides", build_rows=inner, probe_rows=outer,
                               matches=matches, skew=skew, strategy=strategy)
                    try:
                        self.force(session, strategy)
                        result, ms, kernel = measure(session, FK[1][1], self.runs)
                    except Failed as error:
                        table.row(matches, skew, strategy, "n/a", "", "", "", "", str(error))
                        self.record(**key, note=str(error))
                        continue
                    base.setdefault(strategy, ms)
                    table.row(matches, skew, strategy, ms, kernel or None, outer / ms * 1e-3, ms / base[strategy],
                              int(result[0].split(",")[0]), "")
                    self.record(**key, ms=ms, kernel_ms=kernel, ns_per_row=ms * 1e6 / outer)
                session.close()


class DuckDb:
    """DuckDB on the same files, in this process; `connection` is None if it is not installed."""

    def __init__(self, data, threads):
        self.connection, self.version = None, "no DuckDB (pip install duckdb)"
        # tests/setup puts it there if the system has none.
        sys.path += glob.glob(os.path.join(ROOT, "build", "venv", "lib", "python3*", "site-packages"))
        try:
            import duckdb
        except ImportError:
            return
        self.version = f"DuckDB {duckdb.__version__}"
        file = data.removesuffix(".data") + ".duckdb"
        if not os.path.exists(file):
            part = file + ".part"
            if os.path.exists(part):
                os.remove(part)
            connection = duckdb.connect(part)
            connection.execute(open(os.path.join(data, "schema.sql")).read().replace(" PRIMARY KEY", ""))
            connection.close()
            os.rename(part, file)
        self.connection = duckdb.connect(file, read_only=True)
        self.connection.execute(f"SET threads = {threads}")

    def run(self, sql):
        start = time.perf_counter()
        rows = self.connection.execute(sql).fetchall()
        ms = (time.perf_counter() - start) * 1000
        return [",".join(str(v) for v in row) for row in rows], ms


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    bench = Bench(sys.argv[1])
    parts = environment("PARTS", "theta wisconsin fk skew").split()
    for part in parts:
        if part not in ("theta", "wisconsin", "fk", "skew"):
            sys.exit(f"bench/join.py: PARTS has theta, wisconsin, fk and skew, not '{part}'")
    if bench.device not in ("host", "gpu"):
        sys.exit(f"bench/join.py: DEVICE is host or gpu, not '{bench.device}'")
    for part in parts:
        load = OtherLoad()
        getattr(bench, part)()
        print("\n" + load.text())
    if bench.failed:
        sys.exit("bench/join.py: some rows were wrong: see the notes")


if __name__ == "__main__":
    main()
