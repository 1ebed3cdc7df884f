#!/usr/bin/env python3
"""Databases that earlier programs wrote are read, changed and checked.

    tests/session/old_databases_test.py BUILD_DIR [NAME...]

tests/session/old_databases/ has an archive for each: version_N.tar.xz, with the directory `d` of catalog version N, and answers.txt,
what the program that wrote it said to the queries of ANSWERS. version_N.sql is what that program was given:

    version_1, version_6   Tessera 0.1.0, the last commit before version 0.3.0 (git log -1 75111ff9~1)
    version_10             965e061e, before sequences came to the commit log, whose records nothing has taken over

A new version of the catalog needs a new archive, and no other is ever changed. One is made by

    OLD_PROGRAM d -f version_N.sql; OLD_PROGRAM -readonly d -c "$(tests/session/old_databases_test.py BUILD_DIR --queries version_N)" \\
        >answers.txt; tar --sort=name --owner=0 --group=0 -cJf version_N.tar.xz answers.txt d

Ends with "N passed, N failed".
"""

import os
import shutil
import sqlite3
import sys
import tarfile

from command_tests import ask, check, equal, holds, main, run

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "old_databases")
ANSWERS = {
    "version_1": ['SELECT * FROM "Plain" ORDER BY k', "SELECT * FROM empty",
                  'SELECT word, count(*), sum(n), sum(w), min(at), max(day) FROM "Plain" WHERE b IS NOT NULL GROUP BY word ORDER BY word'],
    "version_6": ["SELECT * FROM types ORDER BY id", "SELECT * FROM rules ORDER BY a", "SELECT * FROM clustered ORDER BY k, v",
                  "SELECT * FROM spread ORDER BY k, v", "SELECT * FROM packed ORDER BY d",
                  "SELECT count(*), min(k) FROM clustered WHERE k BETWEEN 100 AND 200", "SELECT k, sum(v) FROM spread GROUP BY k ORDER BY k"],
    "version_10": ["SELECT * FROM p ORDER BY id", "SELECT * FROM s.c ORDER BY id", "SELECT * FROM per_p ORDER BY name", "SELECT * FROM kept",
                   "SELECT twice(21) AS twice", "SELECT * FROM serial ORDER BY id", "SELECT * FROM log ORDER BY k"],
}


def version(database="d"):
    with sqlite3.connect(f"{database}/catalog.sqlite") as catalog:
        return catalog.execute("PRAGMA user_version").fetchone()[0]


def unpack(name):
    """The database `d`, which answers what its own program has."""
    with tarfile.open(os.path.join(FOLDER, name + ".tar.xz")) as archive:
        archive.extractall()
    equal(version(), int(name.removeprefix("version_")))
    with open("answers.txt", encoding="utf-8") as file:
        answers = file.read()
    check(len(answers) > 1000)
    equal(run("-readonly", "d", "-c", "; ".join(ANSWERS[name])).stdout, answers)
    equal(version(), int(name.removeprefix("version_")))  # readers raise none
    return answers


def is_whole():
    equal(ask("PRAGMA integrity_check"), "ok\n")


def test_version_1():
    answers = unpack("version_1")
    is_whole()
    # Another database of what an older program reads stays one that it reads, as long as it can.
    ask("""VACUUM "Plain" """)
    equal(version(), 1)
    equal(run("d", "-c", "; ".join(ANSWERS["version_1"])).stdout, answers)
    equal(ask("""DELETE FROM "Plain" WHERE k % 100 = 7; UPDATE "Plain" SET word = NULL, line = 'new' WHERE k = 8;
INSERT INTO "Plain" SELECT * REPLACE (k + 1000 AS k) FROM "Plain" WHERE k <= 10;
ALTER TABLE "Plain" ADD COLUMN more TEXT DEFAULT 'more'; CREATE VIEW v AS SELECT k, line FROM "Plain";
SELECT count(*), sum(k), count(word), count(DISTINCT more) FROM "Plain"; SELECT line FROM v WHERE k IN (8, 1008, 7, 1007)"""),
          "405,88620,367,1\nnew\nnew\n")
    holds(run("d", "-c", """INSERT INTO "Plain" (k, line) VALUES (1003, 'x')""", status=1).stderr, "duplicate key value")
    is_whole()


def test_version_6():
    unpack("version_6")
    is_whole()
    equal(ask("""INSERT INTO types (id, m, i) VALUES (4, 'ok', INTERVAL '5 minutes'); UPDATE types SET y = '\\x01' WHERE id = 2;
SELECT id, m, i, y FROM types WHERE id % 2 = 0 ORDER BY id; INSERT INTO rules (a, b) VALUES (9, 'nine') RETURNING *"""),
          "2,,,\\x01\n4,ok,00:05:00,\n9,nine,18,x\n")
    for sql, message in (("INSERT INTO rules (a, b) VALUES (10, 'one')", "unique constraint"), ("UPDATE rules SET a = -a", "check constraint"),
                         ("UPDATE types SET m = 'other'", "invalid input value for enum")):
        holds(run("d", "-c", sql, status=1).stderr, message)
    equal(ask("""DELETE FROM clustered WHERE k < 250; INSERT INTO clustered VALUES (0, 'first'); VACUUM clustered;
SELECT * FROM clustered LIMIT 1; SELECT count(*) FROM clustered; DELETE FROM spread WHERE k = 3; INSERT INTO spread VALUES (11, 1);
SELECT count(*), sum(v) FROM spread; UPDATE packed SET d = -d WHERE k = 2; SELECT count(*), sum(k) FROM packed WHERE d < 0"""),
          "0,first\n252\n91,2286.00\n100,200\n")
    is_whole()


def test_version_10():
    answers = unpack("version_10")
    check(os.path.exists("d/commit.log"))
    is_whole()
    equal(ask("INSERT INTO log VALUES (5, 'five'); SELECT * FROM log ORDER BY k"), "1,one\n3,three\n4,four\n5,five\n")
    equal(ask("SELECT nextval('ids'); INSERT INTO serial (v) VALUES ('b') RETURNING id; SELECT obj_description('p'::regclass)"),
          "160\n4\nparents\n")
    holds(run("d", "-c", "INSERT INTO s.c VALUES (1000, 77, 0)", status=1).stderr, "violates foreign key")
    equal(ask("""DELETE FROM p WHERE id <= 10; SELECT count(*) FROM s.c WHERE p_id <= 10; REFRESH MATERIALIZED VIEW kept;
SELECT n = (SELECT count(*) FROM s.c) FROM kept; UPDATE s.c SET later = 'now' WHERE id = 11; SELECT later, v FROM s.c WHERE id IN (11, 12) ORDER BY id;
VACUUM s.c; SELECT count(*), count(DISTINCT later) FROM s.c"""),
          "0\ntrue\nnow,1.375\nconstant,1.5\n423,2\n")
    is_whole()
    shutil.rmtree("d")
    unpack("version_10")
    # A copy of a database in use has the records of its log.
    ask("VACUUM INTO 'copy'")
    equal(run("copy", "-c", "; ".join(ANSWERS["version_10"])).stdout, answers)
    equal(ask("PRAGMA integrity_check", "copy"), "ok\n")


def test_a_newer_version_is_refused():
    unpack("version_1")
    with sqlite3.connect("d/catalog.sqlite") as catalog:
        catalog.execute("PRAGMA user_version = 99")
    for sql in ("SELECT 1 FROM empty", "INSERT INTO empty VALUES (1)"):
        holds(run("d", "-c", sql, status=3).stderr, 'database "d" has format version 99, this program reads version',
              "Use the newer program that wrote it.")


def test_every_archive_is_tested():
    found = {name.removesuffix(".tar.xz") for name in os.listdir(FOLDER) if name.endswith(".tar.xz")}
    equal(found, set(ANSWERS))


if sys.argv[2:3] == ["--queries"]:
    print("; ".join(ANSWERS[sys.argv[3]]))
    sys.exit()
main(globals())
