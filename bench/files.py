#!/usr/bin/env python3
"""Files without DDL, beside DuckDB: guessing what a CSV file is, queries over CSV and Parquet files, and tables of them.

    bench/files.py BUILD_DIR           (make bench-files)

Environment variables choose what to do. Their defaults:

    PARTS="csv parquet"    parquet: TPC-H's lineitem and SSB's lineorder as Parquet files, which DuckDB writes; tpch, ssb: all
                           queries of the benchmark over such files, each in a process of its own
    SCALE=1                of these
    MEGABYTES=200          of the CSV file, which has integers, decimals, a date, a moment and texts
    ROUNDS=5               of each row; the two sides alternately, so that other load hits both
    THREADS=2              of both
    FOLDER=BUILD_DIR/bench/files           where the file and the databases are
    CSV=                   a file for all figures

Each figure is of a process of its own, from which the time of one that runs SELECT 1 is taken: so nothing of the file is kept
but its pages. Both answers are compared.
"""

import datetime
import os
import random
import re
import shutil
import subprocess
import sys
import time

from measure import CsvFile, Failed, Table, environment, median

DUCKDB = """
import sys, duckdb
c = duckdb.connect(sys.argv[1], config={"threads": int(sys.argv[2])})
c.execute("SET enable_progress_bar = false")
for row in c.execute(sys.argv[3]).fetchall():
    print(",".join(str(v) for v in row))
"""


def write_file(path, megabytes):
    """Records of some 90 bytes."""
    chance = random.Random(1)
    words = ["slow", "quick", "brown", "green", "fox", "dog", "jumps", "sleeps", "deposits", "requests"]
    day = datetime.date(2020, 1, 1)
    with open(path, "w", encoding="ascii") as out:
        out.write("id,k,x,price,day,at,flag,note\n")
        i = 0
        while out.tell() < megabytes * 1_000_000:
            lines = []
            for _ in range(10_000):
                i += 1
                d = day + datetime.timedelta(days=chance.randrange(1500))
                note = " ".join(chance.choices(words, k=4))
                lines.append(f"{i},{chance.randrange(100000)},{chance.randrange(10**9)},{chance.randrange(10**6) / 100:.2f},{d},"
                             f"{d} {chance.randrange(24):02}:{chance.randrange(60):02}:00,{'true' if i % 3 else 'false'},{note}\n")
            out.writelines(lines)


TABLES = {"tpch": ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"],
          "ssb": ["customer", "date", "lineorder", "part", "supplier"]}


class Bench:
    def __init__(self, build):
        self.build = build
        self.program = os.path.join(build, "tessera")
        self.rounds = int(environment("ROUNDS", "5"))
        self.threads = environment("THREADS", "2")
        self.folder = environment("FOLDER", os.path.join(build, "bench", "files"))
        self.file = os.path.join(self.folder, f"rows_{environment('MEGABYTES', '200')}.csv")
        self.csv = CsvFile(environment("CSV", ""), ["what", "round", "tessera_ms", "duckdb_ms"])

    def path(self, name):
        return os.path.join(self.folder, name)

    def timed(self, command):
        start = time.perf_counter()
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        took = (time.perf_counter() - start) * 1e3
        if done.returncode != 0:
            raise Failed(f"{command[0]}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return took, done.stdout.strip().split("\n")

    def tessera(self, sql, database=()):
        return self.timed([self.program, "-csv", "-noheader", "--threads", self.threads, *database, "-c", sql])

    def duckdb(self, sql, database=":memory:"):
        return self.timed([sys.executable, "-c", DUCKDB, database, self.threads, sql])

    def row(self, what, sql, check, stored=False):
        """`check`: whether the answers are compared. `stored`: into a database on disk, which is new."""
        ours, theirs = [], []
        for number in range(self.rounds):
            for side in (self.path("ours"), self.path("theirs")):
                shutil.rmtree(side, ignore_errors=True)
                if os.path.exists(side):
                    os.remove(side)
            base_ours, base_theirs = self.tessera("SELECT 1")[0], self.duckdb("SELECT 1")[0]
            took, answer = self.tessera(sql, [self.path("ours")] if stored else [])
            other, expected = self.duckdb(sql, self.path("theirs") if stored else ":memory:")
            if check and answer != expected:
                raise Failed(f"{what}: {answer} and {expected}")
            ours.append(max(took - base_ours, 0))
            theirs.append(max(other - base_theirs, 0))
            self.csv.row(what=what, round=number, tessera_ms=ours[-1], duckdb_ms=theirs[-1])
        self.table.row(what, median(ours), median(theirs), median(ours) / max(median(theirs), 1e-3))
        return median(ours), median(theirs)

    def run_queries(self, benchmark):
        import duckdb
        scale = environment("SCALE", "1")
        folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data_gen", benchmark)
        views = "".join(f"CREATE TEMP VIEW \"{table}\" AS SELECT * FROM '{self.parquet_file(benchmark, table, scale)}';" for table in TABLES[benchmark])
        queries = sorted((name for name in os.listdir(folder) if re.fullmatch(r"q[0-9.]+\.sql", name)),
                         key=lambda name: [int(number) for number in re.findall(r"\d+", name)])
        self.table = Table(f"{benchmark} over Parquet files, scale {scale}, {self.threads} threads, DuckDB {duckdb.__version__}, medians of "
                           f"{self.rounds}", ("query", -32), ("ms", 9), ("DuckDB ms", 9), ("ratio", 6))
        sums = [0, 0]
        for name in queries:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                took = self.row(f"{benchmark} {name[1:-4]}", views + file.read(), False)
            sums = [a + b for a, b in zip(sums, took)]
        self.table.row("sum", *sums, sums[0] / max(sums[1], 1e-3))

    def parquet_file(self, benchmark, table, scale):
        """The table as a Parquet file, of which the database of the benchmark is the source."""
        path = self.path(f"{benchmark}_{table}_{scale}.parquet")
        if not os.path.exists(path):
            made = subprocess.run(["bench/queries.sh", benchmark, "prepare", self.build, scale], capture_output=True, text=True)
            if made.returncode != 0:
                raise Failed(made.stderr)
            self.timed([self.program, "-csv", "-noheader", made.stdout.strip(), "-c", f"COPY \"{table}\" TO '{path}.own' (FORMAT parquet)"])
            self.duckdb(f"COPY (SELECT * FROM read_parquet('{path}.own')) TO '{path}.part' (FORMAT parquet)")
            os.remove(path + ".own")
            os.rename(path + ".part", path)
        return path

    def run_parquet(self):
        import duckdb
        scale = environment("SCALE", "1")
        lineitem, lineorder = self.parquet_file("tpch", "lineitem", scale), self.parquet_file("ssb", "lineorder", scale)
        megabytes = [os.path.getsize(path) / 1e6 for path in (lineitem, lineorder)]
        self.table = Table(f"lineitem ({megabytes[0]:.0f} MB) and lineorder ({megabytes[1]:.0f} MB) as Parquet, scale {scale}, {self.threads} threads, "
                           f"DuckDB {duckdb.__version__}, medians of {self.rounds}", ("what", -32), ("ms", 9), ("DuckDB ms", 9), ("ratio", 6))
        self.row("lineitem: count(*)", f"SELECT count(*) FROM '{lineitem}'", True)
        self.row("lineitem: sum of a column", f"SELECT sum(l_orderkey) FROM '{lineitem}'", True)
        self.row("lineitem: TPC-H 6", f"SELECT sum(l_extendedprice * l_discount) FROM '{lineitem}' WHERE l_shipdate >= DATE '1994-01-01' AND "
                 "l_shipdate < DATE '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24", True)
        self.row("lineitem: TPC-H 1", "SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice * (1 - l_discount)), count(*) FROM "
                 f"'{lineitem}' WHERE l_shipdate <= DATE '1998-09-02' GROUP BY 1, 2 ORDER BY 1, 2", True)
        self.row("lineorder: SSB 1.1's sum", f"SELECT sum(lo_extendedprice * lo_discount) FROM '{lineorder}' WHERE lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25", True)
        self.row("lineitem: LIMIT 5", f"SELECT * FROM '{lineitem}' LIMIT 5", False)
        self.row("lineitem: CREATE TABLE AS", f"CREATE TABLE t AS SELECT * FROM '{lineitem}'", False, stored=True)
        self.row("lineorder: CREATE TABLE AS", f"CREATE TABLE t AS SELECT * FROM '{lineorder}'", False, stored=True)
        self.row("lineitem: COPY TO Parquet", f"COPY (SELECT * FROM '{lineitem}') TO '{self.path('copy.parquet')}' (FORMAT parquet)", False)

    def run(self):
        os.makedirs(self.folder, exist_ok=True)
        parts = environment("PARTS", "csv parquet").split()
        if "csv" in parts:
            self.run_csv()
        if "parquet" in parts:
            self.run_parquet()
        for benchmark in TABLES:
            if benchmark in parts:
                self.run_queries(benchmark)

    def run_csv(self):
        if not os.path.exists(self.file):
            write_file(self.file + ".part", int(environment("MEGABYTES", "200")))
            os.rename(self.file + ".part", self.file)
        import duckdb
        size = os.path.getsize(self.file) / 1e6
        self.table = Table(f"A CSV file of {size:.0f} MB, {self.threads} threads, DuckDB {duckdb.__version__}, medians of {self.rounds}",
                           ("what", -32), ("ms", 9), ("DuckDB ms", 9), ("ratio", 6))
        self.row("guess: DESCRIBE", f"DESCRIBE SELECT * FROM '{self.file}'", False)
        self.row("SELECT count(*), sum(x)", f"SELECT count(*), sum(x) FROM '{self.file}'", True)
        self.row("CREATE TABLE AS SELECT *", f"CREATE TABLE t AS SELECT * FROM '{self.file}'", False, stored=True)


def main():
    try:
        Bench(sys.argv[1]).run()
    except Failed as error:
        sys.exit(f"bench/files.py: {error}")
    except ImportError:
        sys.exit("bench/files.py: there is no DuckDB: pip install duckdb")


if __name__ == "__main__":
    main()
