#!/usr/bin/env python3
"""INSERTs of one row each, every one a transaction, beside SQLite (of Python's module sqlite3) with its default journal and
synchronous = FULL.

    bench/insert.py BUILD_DIR           (make bench-insert)

Environment variables choose what to do. Their defaults:

    PARTS="memory disk"
    ROWS=3000              INSERTs in memory
    DISK_ROWS=200          INSERTs on disk
    ROUNDS=5               of each part; the two sides alternately, so that other load on machine and disk hits both
    FOLDER=BUILD_DIR/bench/insert          where the databases on disk are
    CSV=                   a file for all figures

memory: a database without a name. Tessera's is in files of a temporary directory ($TMPDIR), and nothing is synced.
disk: each INSERT is on the disk when it returns.
Of Tessera a process with the statements in a script, its start included. Afterwards both databases are asked for all rows.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
import time

from measure import CsvFile, Failed, Table, environment, median, run_parts

CREATE = "CREATE TABLE t (id INTEGER PRIMARY KEY, price DECIMAL(8,2), name TEXT)"
ALL = "SELECT count(*), sum(id), count(DISTINCT name) FROM t"


def statements(rows):
    return [CREATE, *(f"INSERT INTO t VALUES ({i}, {i / 4:.2f}, 'name {i}')" for i in range(rows))]


class Bench:
    def __init__(self, build):
        self.tessera_program = os.path.join(build, "tessera")
        self.rounds = int(environment("ROUNDS", "5"))
        self.folder = environment("FOLDER", os.path.join(build, "bench", "insert"))
        self.csv = CsvFile(environment("CSV", ""), ["part", "engine", "rows", "round", "ms_each"])

    def tessera(self, rows, database):
        """Milliseconds for each INSERT."""
        script = os.path.join(self.folder, "insert.sql")
        with open(script, "w") as out:
            out.writelines(s + ";\n" for s in [*statements(rows), ALL])
        command = [self.tessera_program, "-csv", "-bail", *database, "-f", script]
        start = time.perf_counter()
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        took = time.perf_counter() - start
        if done.returncode != 0 or done.stdout.split("\n")[1:2] != [f"{rows},{sum(range(rows))},{rows}"]:
            raise Failed(f"tessera: status {done.returncode}\n{done.stdout}{done.stderr}")
        return took / rows * 1e3

    @staticmethod
    def sqlite(rows, database):
        connection = sqlite3.connect(database, isolation_level=None)
        start = time.perf_counter()
        for statement in statements(rows):
            connection.execute(statement)
        took = time.perf_counter() - start
        if connection.execute(ALL).fetchone() != (rows, sum(range(rows)), rows):
            raise Failed("sqlite3: rows are missing")
        connection.close()
        return took / rows * 1e3

    def turns(self, part, rows, tessera, sqlite):
        """Both alternately; the files of the round before are removed first."""
        table = Table(f"{rows} INSERTs, {part}: ms each", ("round", -8), ("Tessera", 9), ("SQLite", 9), ("times", 7))
        found = {"Tessera": [], "SQLite": []}
        for round_ in range(self.rounds):
            shutil.rmtree(self.folder, ignore_errors=True)
            os.makedirs(self.folder)
            for engine, run in (("Tessera", tessera), ("SQLite", sqlite)):
                found[engine].append(run(rows))
                self.csv.row(part=part, engine=engine, rows=rows, round=round_, ms_each=found[engine][-1])
            ours, theirs = (found[engine][-1] for engine in found)
            table.row(str(round_), ours, theirs, ours / theirs)
        ours, theirs = (median(times) for times in found.values())
        table.row("median", ours, theirs, ours / theirs)

    def memory(self):
        self.turns("memory", int(environment("ROWS", "3000")), lambda rows: self.tessera(rows, []),
                   lambda rows: self.sqlite(rows, ":memory:"))

    def disk(self):
        self.turns("disk", int(environment("DISK_ROWS", "200")),
                   lambda rows: self.tessera(rows, [os.path.join(self.folder, "t.tessera")]),
                   lambda rows: self.sqlite(rows, os.path.join(self.folder, "t.sqlite")))


if __name__ == "__main__":
    sys.exit(run_parts(__doc__, Bench, "memory disk"))
