#!/usr/bin/env python3
"""Tables of SQLite databases: large ones, numbers of rows with gaps, databases that change or are damaged.

    tests/session/sqlite_files_test.py BUILD_DIR [NAME...]

Ends with "N passed, N failed".
"""

import os
import random
import sqlite3
import subprocess

from command_tests import TESSERA, ask, equal, holds, main, run


def make(name, *statements, rows=()):
    """Runs the statements, and the last of them for each of the rows."""
    connection = sqlite3.connect(name)
    for statement in statements[:-1] if rows else statements:
        connection.execute(statement)
    if rows:
        connection.executemany(statements[-1], rows)
    connection.commit()
    return connection


def refused(sql, *parts):
    holds(run("d", "-c", sql, status=1).stderr, *parts)


def test_large_tables():
    rows = [(i * i - 5, i % 97, f"text {i % 1000}" if i % 11 else None, i / 8) for i in range(100_000)]
    make("a.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, n INT, s TEXT, x REAL)", "INSERT INTO t VALUES (?, ?, ?, ?)",
         rows=rows)
    want = (f"100000,{sum(r[1] for r in rows)},{sum(r[2] is not None for r in rows)},{min(r[0] for r in rows)},"
            f"{max(r[0] for r in rows)},{int(sum(r[3] for r in rows))}\n")
    sql = "SELECT count(*), sum(n), count(s), min(id), max(id), CAST(sum(x) AS BIGINT) FROM 'a.db'.t"
    equal(ask(sql), want)
    # Rows that have no numbers come in the order of SQLite.
    make("a.db", "CREATE TABLE w (id INTEGER PRIMARY KEY, n INT, s TEXT, x REAL) WITHOUT ROWID",
         "INSERT INTO w VALUES (?, ?, ?, ?)", rows=rows)
    equal(ask(sql.replace(".t", ".w")), want)
    make("a.db", "CREATE VIEW v AS SELECT id, n, CAST(s AS TEXT) AS s, x + 0 AS x FROM t")
    equal(ask("SELECT count(*), count(s) FROM 'a.db'.v"), ",".join(want.split(",")[0:3:2]) + "\n")
    # Rows are counted without their values, which a later statement of the session reads.
    counted = "SELECT count(*) FROM 'a.db'.{0}; SELECT sum(n), count(*) FROM 'a.db'.{0}; SELECT count(*) FROM 'a.db'.{0}"
    for table in ("t", "w", "v"):
        equal(run("d", "-csv", "-noheader", "-c", counted.format(table)).stdout, f"100000\n{sum(r[1] for r in rows)},100000\n100000\n")
    # Numbers at the ends of what there is.
    make("e.db", "CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (?)",
         rows=[(-2**63,), (-1,), (0,), (2**63 - 1,)])
    equal(ask("SELECT count(*), min(id), max(id) FROM 'e.db'.t"), f"4,{-2**63},{2**63 - 1}\n")


def test_errors_of_values():
    connection = make("m.db", "CREATE TABLE t (n INT)", "INSERT INTO t VALUES (?)", rows=[(i,) for i in range(70_000)])
    connection.execute("UPDATE t SET n = 1.5 WHERE rowid = 60001")
    connection.commit()
    refused("SELECT sum(n) FROM 'm.db'.t", '"m.db", table "t", column "n": rowid 60001: real 1.5 is no BIGINT',
            "all_varchar = true")
    equal(ask("SELECT count(n) FROM sqlite_scan('m.db', 't', all_varchar = true) WHERE n = '1.5'"), "1\n")
    connection.execute("CREATE TABLE w (k INT PRIMARY KEY, n INT) WITHOUT ROWID")
    connection.execute("INSERT INTO w VALUES (1, 1), (2, 'x')")
    connection.execute("CREATE TABLE u (t TEXT)")
    connection.execute("INSERT INTO u VALUES (CAST(x'61ff' AS TEXT))")
    connection.commit()
    refused("SELECT sum(n) FROM 'm.db'.w", '"m.db", table "w", column "n": row 2: text "x" is no BIGINT')
    refused("SELECT * FROM 'm.db'.u", '"m.db", table "u", column "t": rowid 1: ', "UTF")


def test_a_database_that_changes():
    for mode in ("delete", "wal"):
        name = f"{mode}.db"
        connection = make(name, f"PRAGMA journal_mode = {mode}", "CREATE TABLE t (n INT)", "INSERT INTO t VALUES (1)")
        shell = subprocess.Popen([TESSERA, "-csv", "-noheader", "d"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def answer(sql):
            shell.stdin.write(sql + ";\nSELECT 'end';\n")
            shell.stdin.flush()
            lines = []
            while (line := shell.stdout.readline()) and not line.startswith("end"):
                lines.append(line.strip())
            return lines[-1] if lines else ""

        answer(f"ATTACH '{name}' AS s")
        equal(answer("SELECT sum(n) FROM s.t"), "1")
        for n in range(2, 6):
            connection.execute(f"INSERT INTO t VALUES ({n})")
            connection.commit()
            equal(answer("SELECT sum(n) FROM s.t"), str(n * (n + 1) // 2))
        connection.execute("CREATE TABLE more (x TEXT)")
        connection.execute("INSERT INTO more VALUES ('new')")
        connection.commit()
        equal(answer("SELECT x FROM s.more"), "new")
        # What is not committed is not seen, nor does it stop who reads.
        connection.execute("INSERT INTO t VALUES (1000)")
        equal(answer("SELECT sum(n) FROM s.t"), "15")
        connection.rollback()
        connection.close()
        equal(answer("SELECT sum(n) FROM s.t"), "15")
        shell.stdin.close()
        shell.wait()


def test_attached():
    make("s.db", "CREATE TABLE \"Orders\" (Id INTEGER PRIMARY KEY, Name TEXT)",
         "INSERT INTO \"Orders\" VALUES (1, 'one'), (2, 'two')")
    equal(ask("ATTACH 's.db'; SELECT * FROM s.orders ORDER BY id; CREATE TABLE o AS SELECT * FROM s.Orders; "
              "SELECT sum(id) FROM o"), "1,one\n2,two\n3\n")
    run("d", "-c", "ATTACH 's.db'", "-c", "COPY s.orders TO 'out.csv'")
    equal(sorted(open("out.csv").read().split()), ["1,one", "2,two"])
    holds(run("d", "-c", "ATTACH 's.db'", "-c", "SELECT * FROM s.order", status=1).stderr, 'Perhaps you meant table "s.orders"')
    holds(run("d", "-c", "ATTACH '.' AS x (TYPE sqlite)", status=1).stderr, "Is a directory")
    equal(ask("ATTACH 's.db' AS x (TYPE sqlite); SHOW DATABASES"), "main\nx\n")


def test_broken_views():
    connection = make("v.db", "CREATE TABLE t (n INT)", "CREATE VIEW v AS SELECT * FROM t", "CREATE TABLE u (n INT)")
    connection.execute("DROP TABLE t")
    connection.commit()
    refused("SELECT * FROM 'v.db'.v", '"v.db"', "no such table")
    equal(ask("ATTACH 'v.db'; SELECT count(*) FROM v.u"), "0\n")


def test_damaged_files():
    """An error or an answer, never a crash and never a hang."""
    rows = [(i, f"name {i}" * 3, i / 3) for i in range(2000)]
    make("h.db", "PRAGMA page_size = 1024", "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT, x REAL)",
         "INSERT INTO t VALUES (?, ?, ?)", rows=rows).close()
    whole = open("h.db", "rb").read()
    dice = random.Random(53)
    for trial in range(120):
        broken = bytearray(whole)
        if trial % 4 == 0:
            broken = broken[:dice.randrange(1, len(broken))]
        for _ in range(dice.choice([1, 4, 40])):
            if trial % 4 != 0:
                broken[dice.randrange(16 if trial % 3 else 100, len(broken))] = dice.randrange(256)
        with open("b.db", "wb") as file:
            file.write(broken)
        done = subprocess.run([TESSERA, "d", "-c", "SELECT count(*), sum(id), max(s), sum(x) FROM 'b.db'.t"],
                              capture_output=True, text=True, errors="replace", timeout=60)
        holds(str(done.returncode in (0, 1)), "True")
        if done.returncode == 1:
            holds(done.stderr, "b.db")


main(globals())
