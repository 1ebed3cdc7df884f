#!/usr/bin/env python3
"""What compression makes of the columns of TPC-H's lineitem and part: each scheme, the planner, all trees, zstd and gzip.

    bench/compression.py BUILD_DIR           (make bench-compression)

Environment variables choose what to do. Their defaults:

    SCALE=0.1              of TPC-H
    COLUMNS=               "l_partkey p_type": only these
    PARTS="columns costs"  and scan, queries
    ROWS=200000000         of the column that scan reads
    DEVICE=host            or gpu: scan and queries on both
    THREADS=  RUNS=5       of scan and queries
    CSV=                   a file for all figures
    OUT=BUILD_DIR/bench/compression       ratio.svg, encode.svg, decode.svg

columns: build/compression_bench says at its head what a line is. Ratio: bytes as stored to those of plain values. GB/s: of
what unpacking makes, on one core. Estimated and measured: milliseconds to unpack the column.
costs: what the planner's table of costs says of each scheme, for this machine's speed, beside what it takes here, and on a GPU
beside a copy of the bytes that are read and written.
scan: sorted integers, each 10 times, stored by SET compression as none, speed (RLE) and balanced (RLE with DELTA), and summed
where they are below a bound: on the host and on the GPU, without a column in a cache (packed ones are unpacked anew) and with
all of them; RLE as the runs that it is, and row by row (SET read_runs).
queries: TPC-H's Q6 and Q14 over the columns that they read, stored as none, balanced and ratio, in the generator's order and
clustered by l_shipdate: without a column in a cache, where packed columns are unpacked wholly first, or as far as the query needs
(SET decompression), and with what is kept of them.
"""

import csv
import os
import re
import subprocess
import sys
import tempfile
import time
import zlib

import plot
from measure import (ROOT, CsvFile, Session, Table, environment, make_database, measure, measure_cold, median, run_parts,
                     same)

PLANS = ["speed", "balanced", "ratio", "search", "zstd", "gzip"]
SCHEMES = ["NS", "NSV", "FOR", "DELTA", "RLE", "DICT", "BITMAP", "SEP", "SCALE"]
COLUMNS = ["column", "plan", "tree", "values", "raw_bytes", "unpacked_bytes", "bytes", "encode_ms", "decode_ms", "estimated_ms",
           "gpu_ms", "gpu_percent"]
GOALS = ["none", "speed", "balanced"]
QUERY_GOALS = ["none", "balanced", "ratio"]
DECOMPRESSIONS = ["full", "partial"]
QUERIES = {"q6": "l_shipdate, l_discount, l_quantity, l_extendedprice", "q14": "l_shipdate, l_partkey, l_discount, l_extendedprice"}
ORDERS = {"as generated": "", "by l_shipdate": " WITH (cluster_by = 'l_shipdate')"}
GZIP_LEVEL = 6  # the program's own
BATCH = 10_000_000  # rows of an INSERT


def rate(unpacked_bytes, ms):
    """GB/s; None where nothing was done."""
    return unpacked_bytes / ms * 1e-6 if ms > 0 < unpacked_bytes else None


class Compression:
    def __init__(self, build):
        self.build = build
        self.scale = environment("SCALE", "0.1")
        self.program = os.path.join(build, "compression_bench")
        self.out = environment("OUT", os.path.join(build, "bench", "compression"))
        os.makedirs(self.out, exist_ok=True)
        self.csv = CsvFile(environment("CSV", ""), [*COLUMNS, "selectivity", "way", "ms"])
        self.rows = []

    def lines(self, *arguments):
        """The lines of CSV that the program prints, as they come."""
        process = subprocess.Popen([self.program, *arguments], stdout=subprocess.PIPE, text=True)
        yield from csv.DictReader(process.stdout)
        if process.wait() != 0:
            sys.exit(f"bench/compression.py: compression_bench: status {process.returncode}")

    def tpch(self):
        """The directory of TPC-H's database."""
        prepared = subprocess.run(["bench/queries.sh", "tpch", "prepare", self.build, self.scale], cwd=ROOT, check=True,
                                  stdout=subprocess.PIPE, text=True)
        return os.path.join(ROOT, prepared.stdout.strip())

    def columns(self):
        database = self.tpch()
        self.table = Table(f"TPC-H scale {self.scale}, one core", ("column", -18), ("plan", -8), ("ratio %", 7), ("encode GB/s", 11),
                           ("decode GB/s", 11), ("estimated ms", 12), ("measured ms", 11), ("GPU GB/s", 8), ("% of copy", 9), ("tree", -20))
        with tempfile.TemporaryDirectory() as scratch:
            for line in self.lines("--database", database, "--raw", scratch, "--columns", environment("COLUMNS", "")):
                row = {name: line[name] if name in COLUMNS[:3] else float(line[name]) for name in COLUMNS}
                self.show(row)
                if row["plan"] == "zstd":  # the last one of a column
                    raw = os.path.join(scratch, row["column"])
                    self.show(self.gzip(row, raw))
                    os.remove(raw)
        self.beside_search()
        self.estimates()
        self.plots()

    def gzip(self, row, raw):
        with open(raw, "rb") as file:
            plain = file.read()
        start = time.perf_counter()
        packed = zlib.compress(plain, GZIP_LEVEL)
        between = time.perf_counter()
        if zlib.decompress(packed) != plain:
            sys.exit("bench/compression.py: zlib gives other bytes back")
        end = time.perf_counter()
        return row | {"plan": "gzip", "tree": f"level {GZIP_LEVEL}", "bytes": len(packed), "encode_ms": (between - start) * 1e3,
                      "decode_ms": (end - between) * 1e3}

    def show(self, row):
        self.rows.append(row)
        self.csv.row(**row)
        estimated = row["estimated_ms"] > 0
        self.table.row(row["column"], row["plan"], 100 * row["bytes"] / row["raw_bytes"], rate(row["unpacked_bytes"], row["encode_ms"]),
                       rate(row["unpacked_bytes"], row["decode_ms"]), row["estimated_ms"] if estimated else None,
                       row["decode_ms"] if row["decode_ms"] > 0 else None, rate(row["unpacked_bytes"], row["gpu_ms"]),
                       row["gpu_percent"] or None, row["tree"])

    def beside_search(self):
        """The planner's bytes beside those of the best of all trees."""
        found = {row["column"]: row["bytes"] for row in self.rows if row["plan"] == "search"}
        more = {row["column"]: row["bytes"] / found[row["column"]] - 1 for row in self.rows
                if row["plan"] == "ratio" and row["column"] in found}
        if more:
            worst = max(more, key=more.get)
            print(f"\nThe planner, by ratio, beside all trees to depth 3, {len(more)} columns: at most {100 * more[worst]:+.1f} % "
                  f"({worst}), at least {100 * min(more.values()):+.1f} %, median {100 * median(more.values()):+.1f} %")

    def estimates(self):
        """How far the estimated costs are from the measured ones."""
        factors = sorted(row["estimated_ms"] / row["decode_ms"] for row in self.rows if row["estimated_ms"] > 0 < row["decode_ms"])
        if factors:
            tenth = len(factors) // 10
            print(f"estimated to measured, {len(factors)} trees: median {median(factors):.2f}, eight of ten between "
                  f"{factors[tenth]:.2f} and {factors[-1 - tenth]:.2f}")

    def plots(self):
        def by_column(plans, value):
            groups = {}
            for row in self.rows:
                if row["plan"] in plans and value(row) is not None:
                    groups.setdefault(row["column"], {})[row["plan"]] = value(row)
            return groups
        for name, plans, title, value in (
                ("ratio", PLANS, "Stored, in % of plain values", lambda r: 100 * r["bytes"] / r["raw_bytes"]),
                ("schemes", SCHEMES, "Single schemes: stored, in % of plain values", lambda r: 100 * r["bytes"] / r["raw_bytes"]),
                ("encode", PLANS[1:], "Encoded, GB/s of one core", lambda r: rate(r["unpacked_bytes"], r["encode_ms"])),
                ("decode", PLANS, "Decoded, GB/s of one core", lambda r: rate(r["unpacked_bytes"], r["decode_ms"]))):
            groups = by_column(plans, value)
            if groups:
                plot.bars(os.path.join(self.out, name + ".svg"), title, groups)
        print(f"plots: {self.out}")

    def costs(self):
        table = Table("ns a value on one core, without the streams below; whole trees of a million values on the GPU", ("scheme", -16),
                      ("measured", 8), ("table", 8), ("ratio", 6), ("GPU GB/s", 8), ("% of copy", 9))
        for line in self.lines("--costs"):
            measured, expected = float(line["measured_ns"]), float(line["table_ns"])
            table.row(line["scheme"], measured, expected, measured / expected, rate(int(line["bytes"]), float(line["gpu_ms"])),
                      float(line["gpu_percent"]) or None)


    @staticmethod
    def ways():
        """How a query is run: (name, device, measure of that)."""
        ways = [("host, cold", "host", measure_cold), ("host", "host", measure)]
        if environment("DEVICE", "host") == "gpu":
            ways += [("GPU, cold", "gpu", measure_cold), ("GPU", "gpu", measure)]
        return ways

    @staticmethod
    def timed(how, session, sql, runs, expected):
        """The rows, which are the expected ones if there are such, and milliseconds."""
        answer, ms, _ = how(session, sql, runs)
        if expected and not same(expected, answer):
            sys.exit(f"bench/compression.py: {sql}: {answer}, not {expected}")
        return expected or answer, ms

    def sorted_integers(self, rows):
        """A database with a table for each way to store them, made once."""
        database = os.path.join(self.build, "bench", f"sorted-{rows}.tessera")
        if os.path.isdir(database):
            return database
        script = []
        for goal in GOALS:
            script += [f"SET compression = {goal};", f"CREATE TABLE {goal}_sorted (v INTEGER NOT NULL);"]
            script += [f"INSERT INTO {goal}_sorted SELECT i / 10 * 3 FROM range({first}, {min(rows, first + BATCH)}) AS r(i);"
                       for first in range(0, rows, BATCH)]
        make_database(self.build, database, script)
        return database

    def scan(self):
        rows, runs = int(environment("ROWS", "200000000")), int(environment("RUNS", "5"))
        threads = environment("THREADS", str(os.cpu_count()))
        database = self.sorted_integers(rows)
        ways = self.ways()
        sessions = {device: Session(self.build, database, device, threads, 600) for _, device, _ in ways}
        sizes = {goal: sessions["host"].run(f"SELECT sum(stored_bytes), max(schemes) FROM tessera_chunks('{goal}_sorted')").rows[0]
                 for goal in GOALS}
        for goal, stored in sizes.items():
            stored_bytes, schemes = next(csv.reader([stored]))
            print(f"{goal}: {100 * int(stored_bytes) / (4 * rows):.2f} % of 4 bytes a value, {schemes}")
        # As runs, where they are stored so and the host adds them up, and all row by row.
        columns = [(goal, "on", *way) for goal in GOALS[1:] for way in ways if way[1] == "host"]
        columns += [(goal, "off", *way) for goal in GOALS for way in ways]
        names = [f"{goal}{', runs' if as_runs == 'on' else ''}, {way}" for goal, as_runs, way, _, _ in columns]
        table = Table(f"{rows:,} sorted integers, each 10 times, {threads} threads, ms", ("selected %", -10),
                      *((name, 10) for name in names))
        series = {name: {} for name in names}
        for percent in (10, 30, 50, 70, 90):
            expected, times = None, []
            for name, (goal, as_runs, way, device, how) in zip(names, columns):
                sql = f"SELECT count(*), sum(v) FROM {goal}_sorted WHERE v < {rows // 10 * 3 * percent // 100}"
                sessions[device].run(f"SET read_runs = {as_runs}")
                expected, ms = self.timed(how, sessions[device], sql, runs, expected)
                times.append(ms)
                series[name][percent] = ms
                self.csv.row(column="sorted", plan=goal, values=rows, selectivity=percent, way=name, ms=ms)
            table.row(str(percent), *times)
        for session in sessions.values():
            session.close()
        plot.lines(os.path.join(self.out, "scan.svg"), "Sum below a bound, ms", "rows selected, %", series)


    @staticmethod
    def stored_table(goal, order):
        return f"{goal}_{list(ORDERS).index(order)}_lineitem"

    def stored_queries(self):
        """The tables of Q6 and Q14 by goal and order, made once."""
        database = os.path.join(self.build, "bench", f"stored-{self.scale}.tessera")
        if os.path.isdir(database):
            return database
        columns = ", ".join(sorted({c for of in QUERIES.values() for c in of.split(", ")}))
        script = []
        for goal in QUERY_GOALS:
            script += [f"SET compression = {goal};", f"CREATE TABLE {goal}_part AS SELECT p_partkey, p_type FROM part;"]
            script += [f"CREATE TABLE {self.stored_table(goal, order)}{options} AS SELECT {columns} FROM lineitem;"
                       for order, options in ORDERS.items()]
        make_database(self.build, database, script, like=self.tpch())
        return database

    def queries(self):
        runs, threads = int(environment("RUNS", "5")), environment("THREADS", str(os.cpu_count()))
        database = self.stored_queries()
        ways = [(f"{name}, {decompression}", device, how, decompression) for name, device, how in self.ways()
                for decompression in DECOMPRESSIONS]
        sessions = {device: Session(self.build, database, device, threads, 600) for _, device, _, _ in ways}
        table = Table(f"TPC-H scale {self.scale}, {threads} threads, ms", ("query", -6), ("lineitem", -14), ("stored", -9),
                      ("MB", 8), *((name, 10) for name, _, _, _ in ways))
        for query, columns in QUERIES.items():
            with open(os.path.join(ROOT, "data_gen", "tpch", f"{query}.sql")) as file:
                text = file.read()
            expected = None
            for order in ORDERS:
                for goal in QUERY_GOALS:
                    name = self.stored_table(goal, order)
                    sql = re.sub(r"\bpart\b", f"{goal}_part", re.sub(r"\blineitem\b", name, text))
                    names = ", ".join(f"'{c}'" for c in columns.split(", "))
                    stored = sessions["host"].run(
                        f"SELECT sum(stored_bytes) FROM tessera_chunks('{name}') WHERE column_name IN ({names})").rows[0]
                    times = []
                    for way, device, how, decompression in ways:
                        sessions[device].run(f"SET decompression = {decompression}")
                        expected, ms = self.timed(how, sessions[device], sql, runs, expected)
                        times.append(ms)
                        self.csv.row(column=query, plan=goal, tree=order, bytes=stored, way=way, ms=ms)
                    table.row(query, order, goal, int(stored) * 1e-6, *times)
        for session in sessions.values():
            session.close()


if __name__ == "__main__":
    run_parts(__doc__, Compression, "columns costs", "scan queries")
