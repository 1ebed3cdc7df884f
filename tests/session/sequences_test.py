#!/usr/bin/env python3
"""Sequences of a database that several processes use, and that outlive them.

    tests/session/sequences_test.py BUILD_DIR [NAME...]

Ends with "N passed, N failed".
"""

import os
import signal
import sqlite3
import subprocess

from command_tests import TESSERA, ask, equal, main, run


def start(script):
    process = subprocess.Popen([TESSERA, "-noheader", "d"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    process.stdin.write(script)
    process.stdin.flush()
    return process


def test_processes_never_get_one_value():
    run("d", "-c", "CREATE SEQUENCE s; CREATE TABLE t (id SERIAL PRIMARY KEY, who INTEGER)")
    script = "SET lock_timeout = 60000;\n" + "SELECT nextval('s');\nINSERT INTO t (who) VALUES (1), (2);\n" * 15
    processes = [start(script) for _ in range(3)]
    values = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        equal((process.returncode, err), (0, ""))
        values += [int(line) for line in out.split() if line.isdigit()]
    equal(sorted(values), list(range(1, 46)))
    equal(ask("SELECT count(*), count(DISTINCT id), max(id) FROM t"), "90,90,90\n")


def test_a_killed_process_takes_its_values_along():
    run("d", "-c", "CREATE SEQUENCE s; CREATE TABLE t (id BIGINT GENERATED ALWAYS AS IDENTITY, x INTEGER)")
    process = start("SELECT nextval('s'); SELECT nextval('s'); INSERT INTO t (x) VALUES (1);\n"
                    "BEGIN; INSERT INTO t (x) VALUES (2); SELECT 'open';\n")
    given = [process.stdout.readline().strip() for _ in range(3)]
    equal(given, ["1", "2", "open"])
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    equal(ask("SELECT nextval('s')"), "3\n")
    # What was not committed was not given.
    equal(ask("INSERT INTO t (x) VALUES (3) RETURNING id, x"), "2,3\n")
    equal(ask("SELECT id, x FROM t ORDER BY id"), "1,1\n2,3\n")


def test_a_transaction_keeps_the_numbers_to_itself():
    run("d", "-c", "CREATE SEQUENCE s; CREATE TABLE t (id SERIAL, x INTEGER)")
    process = start("BEGIN; INSERT INTO t (x) VALUES (1); SELECT nextval('s');\n")
    equal(process.stdout.readline(), "1\n")
    for wanted in ("SELECT nextval('s')", "INSERT INTO t (x) VALUES (2)"):
        error = run("d", "-c", "SET lock_timeout = 100", "-c", wanted, status=1).stderr
        if "written by process" not in error and "lock" not in error:
            raise AssertionError(error)
    out, err = process.communicate("COMMIT;\n", timeout=60)
    equal((process.returncode, out, err), (0, "", ""))
    equal(ask("SELECT nextval('s'); INSERT INTO t (x) VALUES (2) RETURNING id"), "2\n2\n")


def test_who_may_only_read_takes_none():
    run("d", "-c", "CREATE SEQUENCE s; SELECT nextval('s')")
    error = run("-readonly", "d", "-c", "SELECT nextval('s')", status=1).stderr
    if "for reading only" not in error:
        raise AssertionError(error)
    error = run("d", "-c", "BEGIN READ ONLY; SELECT nextval('s')", status=1).stderr
    if "read-only transaction" not in error:
        raise AssertionError(error)
    equal(run("-readonly", "-noheader", "d", "-c", "SELECT last_value FROM pg_sequences").stdout, "1\n")
    equal(ask("SELECT nextval('s')"), "2\n")


def test_copies_go_on_from_there():
    run("d", "-c", "CREATE SCHEMA a; CREATE SEQUENCE a.s INCREMENT 5; CREATE TABLE a.t (id SERIAL, x INTEGER); "
        "COMMENT ON SEQUENCE a.s IS 'by five'; COMMENT ON TABLE a.t IS 'a table'; "
        "SELECT nextval('a.s'), nextval('a.s'); INSERT INTO a.t (x) VALUES (1), (2); CREATE VIEW a.v AS SELECT x FROM a.t")
    run("d", "-c", "VACUUM INTO 'copy'")
    run("d", "-c", "EXPORT DATABASE 'out'")
    run("e", "-c", "IMPORT DATABASE 'out'")
    schema = run("d", "-c", ".schema").stdout
    for other in ("copy", "e"):
        equal(run(other, "-c", ".schema").stdout, schema)
        equal(run(other, "-noheader", "-c", "SELECT nextval('a.s'); INSERT INTO a.t (x) VALUES (3) RETURNING id; "
                  "SELECT count(*) FROM a.v; SELECT count(*) FROM pg_description").stdout, "11\n3\n3\n2\n")


def version_of(database):
    with sqlite3.connect(f"{database}/catalog.sqlite") as catalog:
        return catalog.execute("PRAGMA user_version").fetchone()[0]


def test_only_what_is_new_raises_the_version():
    for database, statement in (("a", "CREATE SCHEMA s"), ("b", "CREATE SEQUENCE s"), ("c", "CREATE TABLE u (id SERIAL)"),
                                ("d", "COMMENT ON TABLE t IS 'x'"), ("e", "COMMENT ON SCHEMA public IS 'x'")):
        run(database, "-c", "CREATE TABLE t (x INTEGER)")
        equal(version_of(database), 1)
        run(database, "-c", statement)
        equal(version_of(database), 10)
        equal(run(database, "-noheader", "-c", "SELECT count(*) FROM t").stdout, "0\n")


main(globals())
