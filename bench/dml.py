#!/usr/bin/env python3
"""Changes of TPC-H's lineitem, and commits of one row, beside DuckDB and SQLite: all on disk, and synced.

    bench/dml.py BUILD_DIR           (make bench-dml)

Environment variables choose what to do. Their defaults:

    PARTS="lineitem commits writers"
    SCALE=1                of lineitem: 6 million rows
    ROUNDS=3               of each change, the engines alternately, each on a copy of the loaded database
    COMMITS=200            transactions of one row
    WRITERS=4              sessions that change one table at a time
    SECONDS=10             of their changes
    THREADS=               of each engine; all cores without it
    FOLDER=BUILD_DIR/bench/dml
    CSV=                   a file for all figures

lineitem: DELETE of 1, 10 and 50 % of the rows, UPDATE of one column of 1 and 10 %, each followed by a scan of that column, and
CREATE TABLE AS of all rows. DuckDB's changes include CHECKPOINT: before it they are in its log alone, which the next one reads.
Its times without are printed, too.
commits: of one row each; 1,000 and 10,000 INSERTs in one transaction. SQLite has synchronous = EXTRA.
writers: sessions of one process, each of which reads and updates rows of its own in one table of 10,000, a transaction each; those
that conflict are tried again. In the end each row has as many changes as were committed.
Both engines must give the same sums after each change.
"""

import os
import sqlite3
import subprocess
import sys
import threading
import time

from measure import ROOT, CsvFile, Failed, Session, Table, environment, make_database, median, run_parts

COLUMNS = ("l_orderkey INTEGER NOT NULL, l_partkey INTEGER NOT NULL, l_suppkey INTEGER NOT NULL, l_linenumber INTEGER NOT NULL, "
           "l_quantity DECIMAL(12,2) NOT NULL, l_extendedprice DECIMAL(12,2) NOT NULL, l_discount DECIMAL(12,2) NOT NULL, "
           "l_tax DECIMAL(12,2) NOT NULL, l_returnflag CHAR(1) NOT NULL, l_linestatus CHAR(1) NOT NULL, l_shipdate DATE NOT NULL, "
           "l_commitdate DATE NOT NULL, l_receiptdate DATE NOT NULL, l_shipinstruct CHAR(25) NOT NULL, "
           "l_shipmode CHAR(10) NOT NULL, l_comment VARCHAR(44) NOT NULL")
SCAN = "SELECT count(*), sum(l_quantity), sum(l_extendedprice) FROM lineitem"
CHANGES = {
    **{f"DELETE of {percent} %": f"DELETE FROM lineitem WHERE l_partkey % 100 < {percent}" for percent in (1, 10, 50)},
    **{f"UPDATE of {percent} %": f"UPDATE lineitem SET l_quantity = l_quantity + 1 WHERE l_partkey % 100 < {percent}"
       for percent in (1, 10)},
    "CREATE TABLE AS": "CREATE TABLE made AS SELECT * FROM lineitem",
}


class Writer(Session):
    """A session that may write."""

    def __init__(self, build, database, threads):
        super().__init__(build, database, threads=threads, limit=600)
        self.command.remove("-readonly")

    def run_script(self, file):
        self._lines(f".read {file}\n")


class DuckDb:
    def __init__(self, path, threads):
        import duckdb
        self.connection = duckdb.connect(path, config={"threads": threads})

    def timed(self, sql):
        start = time.perf_counter()
        rows = self.connection.execute(sql).fetchall()
        return rows, (time.perf_counter() - start) * 1e3

    def close(self):
        self.connection.close()


class Bench:
    def __init__(self, build):
        self.build = build
        self.rounds = int(environment("ROUNDS", "3"))
        self.scale = environment("SCALE", "1")
        self.commits_ = int(environment("COMMITS", "200"))
        self.writers_ = int(environment("WRITERS", "4"))
        self.seconds = float(environment("SECONDS", "10"))
        self.threads = int(environment("THREADS", str(os.cpu_count())))
        self.folder = environment("FOLDER", os.path.join(build, "bench", "dml"))
        self.csv = CsvFile(environment("CSV", ""), ["what", "engine", "round", "ms"])
        os.makedirs(self.folder, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def load(self):
        """Both engines' lineitem, if they are not there yet."""
        tables, ours, theirs = self.path(f"tpch_{self.scale}"), self.path(f"sf{self.scale}.tessera"), self.path(f"sf{self.scale}.duckdb")
        if not os.path.exists(os.path.join(tables, "lineitem.tbl")):
            subprocess.run([os.path.join(self.build, "tpch_gen"), "--scale", self.scale, "--out", tables], check=True,
                           stdout=subprocess.DEVNULL)
        file = os.path.join(tables, "lineitem.tbl")
        if not os.path.exists(ours):
            make_database(self.build, ours, [f"CREATE TABLE lineitem ({COLUMNS});", f"COPY lineitem FROM '{file}' (DELIMITER '|');"])
        if not os.path.exists(theirs):
            engine = DuckDb(theirs + ".part", self.threads)
            engine.timed(f"CREATE TABLE lineitem ({COLUMNS})")
            engine.timed(f"COPY lineitem FROM '{file}' (DELIMITER '|', HEADER false)")
            engine.close()
            os.rename(theirs + ".part", theirs)
        return ours, theirs

    def copy(self, path):
        to = self.path("changed") + os.path.splitext(path)[1]
        subprocess.run(["rm", "-rf", to, to + ".wal"], check=True)
        subprocess.run(["cp", "-r", path, to], check=True)
        os.sync()
        return to

    @staticmethod
    def numbers(text):
        return [float(field) for field in text.split(",")]

    def ours(self, database, sql):
        session = Writer(self.build, self.copy(database), self.threads)
        session.run(SCAN)
        before = min(session.run(SCAN).ms for _ in range(3))
        change = session.run(sql).ms
        answers = [session.run(SCAN) for _ in range(4)]
        session.close()
        return {"scan before": before, "change": change, "scan after": min(a.ms for a in answers[1:])}, self.numbers(answers[0].rows[0])

    def theirs(self, database, sql):
        engine = DuckDb(self.copy(database), self.threads)
        engine.timed(SCAN)
        before = min(engine.timed(SCAN)[1] for _ in range(3))
        logged = engine.timed(sql)[1]
        change = logged + engine.timed("CHECKPOINT")[1]
        rows = engine.timed(SCAN)[0]
        after = min(engine.timed(SCAN)[1] for _ in range(3))
        engine.close()
        return {"scan before": before, "log": logged, "change": change, "scan after": after}, [float(v) for v in rows[0]]

    def lineitem(self):
        ours, theirs = self.load()
        table = Table(f"lineitem at scale {self.scale}, {self.threads} threads: ms, medians of {self.rounds}", ("change", -18),
                      ("Tessera", 9), ("DuckDB", 9), ("its log", 9), ("times", 7), ("scan before", 12), ("after", 8), ("DuckDB's", 9),
                      ("after", 8))
        for what, sql in CHANGES.items():
            found = {"Tessera": [], "DuckDB": []}
            for round_ in range(self.rounds):
                mine, my_rows = self.ours(ours, sql)
                other, other_rows = self.theirs(theirs, sql)
                if my_rows != other_rows:
                    raise Failed(f"{what}: {my_rows} rows and sums, DuckDB {other_rows}")
                found["Tessera"].append(mine)
                found["DuckDB"].append(other)
                for engine in found:
                    for name, ms in found[engine][-1].items():
                        self.csv.row(what=f"{what}: {name}", engine=engine, round=round_, ms=ms)
            mine, other = ({name: median([r[name] for r in rounds]) for name in rounds[0]} for rounds in found.values())
            table.row(what, mine["change"], other["change"], other["log"], mine["change"] / other["change"], mine["scan before"],
                      mine["scan after"], other["scan before"], other["scan after"])
        for path in (self.path("changed.tessera"), self.path("changed.duckdb")):
            subprocess.run(["rm", "-rf", path], check=True)

    def commits(self):
        """Scripts, whose time less that of a script without the INSERTs is theirs."""
        table = Table("INSERTs of one row, on disk: ms in all", ("what", -34), ("Tessera", 9), ("SQLite", 9), ("DuckDB", 9))
        for what, rows, in_one in ((f"{self.commits_} transactions", self.commits_, False), ("1,000 in a transaction", 1000, True),
                                   ("10,000 in a transaction", 10000, True)):
            inserts = [f"INSERT INTO t VALUES ({i}, {i / 4:.2f}, 'name {i}')" for i in range(rows)]
            script = ["BEGIN", *inserts, "COMMIT"] if in_one else inserts
            found = {"Tessera": [], "SQLite": [], "DuckDB": []}
            for round_ in range(self.rounds):
                for engine in found:
                    ms = getattr(self, "commit_" + engine.lower())(script, rows)
                    found[engine].append(ms)
                    self.csv.row(what=what, engine=engine, round=round_, ms=ms)
            table.row(what, *(median(ms) for ms in found.values()))

    CREATE = "CREATE TABLE t (id INTEGER, price DECIMAL(8,2), name TEXT)"

    def writers(self):
        os.environ["TESSERA_LIBRARY"] = os.path.join(os.path.abspath(self.build), "libtessera.so")
        sys.path.insert(0, os.path.join(ROOT, "python"))
        import tessera
        path, rows = self.fresh("writers.tessera"), 10000
        connection = tessera.connect(path, device="host", threads=1)
        connection.sql(f"CREATE TABLE t AS SELECT range AS k, 0 AS v, 'name ' || range AS name FROM range({rows})")
        committed, conflicts, until = [0] * self.writers_, [0] * self.writers_, time.monotonic() + self.seconds

        def write(number):
            session, done = tessera.connect(path, device="host", threads=1), 0
            while time.monotonic() < until:
                row = f"k = {(done * self.writers_ + number) % rows}"
                try:
                    for sql in ("BEGIN", f"SELECT v FROM t WHERE {row}", f"UPDATE t SET v = v + 1 WHERE {row}", "COMMIT"):
                        session.sql(sql)
                    done += 1
                except tessera.Error as error:
                    if error.sqlstate != "40001":
                        raise
                    session.sql("ROLLBACK")
                    conflicts[number] += 1
            committed[number] = done
            session.close()

        threads = [threading.Thread(target=write, args=(number,)) for number in range(self.writers_)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        changes = connection.sql("SELECT sum(v) FROM t").fetchall()[0][0]
        connection.close()
        if int(changes) != sum(committed) or 0 in committed:
            raise Failed(f"{changes} changes are there, {committed} were committed")
        table = Table(f"{self.writers_} sessions, each with rows of its own in one table, {self.seconds:.0f} s", ("", -24), ("a second", 9))
        for what, count in (("commits", sum(committed)), ("conflicts", sum(conflicts))):
            table.row(what, count / self.seconds)
            self.csv.row(what=f"writers: {what}", engine="Tessera", round=0, ms=1e3 * self.seconds / max(count, 1))

    def fresh(self, name):
        path = self.path(name)
        subprocess.run(["rm", "-rf", path, path + ".wal"], check=True)
        return path

    def commit_tessera(self, script, rows):
        database = self.fresh("commits.tessera")
        session = Writer(self.build, database, self.threads)
        session.run(self.CREATE)
        file = self.path("commits.sql")
        with open(file, "w") as out:
            out.writelines(statement + ";\n" for statement in script)
        start = time.perf_counter()
        session.run_script(file)
        took = (time.perf_counter() - start) * 1e3
        if session.run("SELECT count(*) FROM t").rows != [str(rows)]:
            raise Failed("tessera: rows are missing")
        session.close()
        return took

    def timed_script(self, connection, script, rows):
        connection.execute(self.CREATE)
        start = time.perf_counter()
        for statement in script:
            connection.execute(statement)
        took = (time.perf_counter() - start) * 1e3
        if connection.execute("SELECT count(*) FROM t").fetchone() != (rows,):
            raise Failed("rows are missing")
        connection.close()
        return took

    def commit_sqlite(self, script, rows):
        connection = sqlite3.connect(self.fresh("commits.sqlite"), isolation_level=None)
        connection.execute("PRAGMA synchronous = EXTRA")
        return self.timed_script(connection, script, rows)

    def commit_duckdb(self, script, rows):
        import duckdb
        return self.timed_script(duckdb.connect(self.fresh("commits.duckdb")), script, rows)


if __name__ == "__main__":
    sys.exit(run_parts(__doc__, Bench, "lineitem commits writers"))
