#!/usr/bin/env python3
"""COPY TO with PARTITION_BY: folders that are named after values.

    tests/session/partition_test.py BUILD_DIR [NAME...]

Ends with "N passed, N failed".
"""

import os

from command_tests import ask, check, equal, holds, main, run

ROWS = "SELECT i AS n, i % 3 AS k, CASE WHEN i % 4 = 0 THEN NULL ELSE 'a/b ' || i % 2 END AS s FROM generate_series(1, 12) t (i)"


def files(directory):
    """Names and lines of all files."""
    found = {}
    for folder, _, names in os.walk(directory):
        for name in names:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found[os.path.relpath(os.path.join(folder, name), directory)] = sorted(file.read().split())
    return found


def copy(query, options, status=0):
    return run("d", "-c", f"COPY {query} TO 'out' ({options})", status=status)


def test_folders():
    copy(f"({ROWS})", "FORMAT csv, HEADER, PARTITION_BY (k, s)")
    found = files("out")
    equal(found["k=0/s=__HIVE_DEFAULT_PARTITION__/data_0.csv"], ["12", "n"])
    equal(found["k=1/s=a%2Fb 1/data_0.csv"], ["1", "7", "n"])
    equal(sorted(name.split("/")[0] for name in found), ["k=0"] * 3 + ["k=1"] * 3 + ["k=2"] * 3)
    equal(sum(len(lines) - 1 for lines in found.values()), 12)


def test_tables_views_and_limits():
    run("d", "-c", f"CREATE TABLE t AS {ROWS}", "-c", "CREATE VIEW v AS SELECT k, n FROM t")
    copy("t (k, n)", "PARTITION_BY k")
    equal(files("out"), {f"k={k}/data_0.csv": sorted(str(n) for n in range(1, 13) if n % 3 == k) for k in range(3)})
    run("d", "-c", "COPY v TO 'of_view' (PARTITION_BY (k))")
    equal(files("of_view"), files("out"))
    # What the query does itself, it does before.
    run("d", "-c", "COPY (SELECT k, n FROM t ORDER BY n DESC LIMIT 2) TO 'few' (PARTITION_BY (k))")
    equal(files("few"), {"k=0/data_0.csv": ["12"], "k=2/data_0.csv": ["11"]})
    run("d", "-c", "COPY (SELECT k, n FROM t WHERE n > 99) TO 'none' (PARTITION_BY (k))")
    equal(files("none"), {})
    check(os.path.isdir("none"), "there is no directory")


def test_many_folders_and_rows():
    run("d", "-c", "COPY (SELECT i % 2000 AS k, i AS n FROM generate_series(0, 99999) t (i)) TO 'out' (PARTITION_BY (k))")
    found = files("out")
    equal(len(found), 2000)
    equal(found["k=1999/data_0.csv"], sorted(str(n) for n in range(1999, 100000, 2000)))
    equal(ask("SELECT count(*), sum(column0) FROM 'out/*/*.csv'"), "100000,4999950000\n")


def test_folders_are_read():
    copy(f"({ROWS})", "FORMAT csv, HEADER, PARTITION_BY (k, s)")
    read = "read_csv('out/*/*/*.csv', hive_partitioning = true)"
    equal(ask(f"SELECT count(*), sum(n), sum(k), count(s), max(s) FROM {read}"), "12,78,12,9,a/b 1\n")
    equal(ask(f"SELECT n, k, s FROM {read} WHERE k = 1 AND s IS NULL ORDER BY n"), "4,1,\n")
    equal(ask(f"SELECT n, k, s FROM {read} WHERE n IN (1, 2) ORDER BY n"), "1,1,a/b 1\n2,2,a/b 0\n")
    equal(ask(f"SELECT column_type FROM (DESCRIBE SELECT k, s FROM {read})"), "BIGINT\nTEXT\n")
    run("d", "-c", "COPY (SELECT DATE '2024-01-01' + i % 2 AS day, i AS n FROM generate_series(1, 4) t (i)) TO 'days' (PARTITION_BY (day))")
    equal(ask("SELECT day, sum(n) FROM (SELECT day, column0 AS n FROM read_csv('days/*/*.csv', hive_partitioning = true)) t "
              "GROUP BY day ORDER BY day"), "2024-01-01,6\n2024-01-02,4\n")
    holds(run("d", "-c", "SELECT * FROM read_csv(['days/day=2024-01-01/data_0.csv', 'out/k=1/s=a%2Fb 1/data_0.csv'], "
              "hive_partitioning = true, union_by_name = true)", status=1).stderr, "is in other folders than")
    os.makedirs("n=1")
    with open("n=1/a.csv", "w", encoding="ascii") as file:
        file.write("n,x\n1,2\n")
    holds(run("d", "-c", "SELECT * FROM read_csv('n=1/a.csv', hive_partitioning = true)", status=1).stderr, 'have a column "n" of their own')


def test_errors():
    holds(copy(f"({ROWS})", "PARTITION_BY (kk)", 1).stderr, 'COPY has no column "kk" to partition by')
    holds(copy(f"({ROWS})", "PARTITION_BY (k, k)", 1).stderr, "is twice in PARTITION_BY")
    holds(copy("(SELECT 1 AS k)", "PARTITION_BY (k)", 1).stderr, "leaves no column for the files")
    holds(run("d", "-c", "COPY (SELECT 1 AS k, 2 AS n) TO STDOUT (PARTITION_BY (k))", status=1).stderr, "writes files")
    # An error on the way leaves nothing, and a directory that is there stays as it is.
    copy("(SELECT i AS k, CAST(CASE WHEN i = 50 THEN 'x' ELSE '1' END AS INTEGER) AS n FROM generate_series(1, 99) t (i))", "PARTITION_BY (k)", 1)
    equal(os.listdir("."), [])
    os.makedirs("out/mine")
    holds(copy(f"({ROWS})", "PARTITION_BY (k)", 1).stderr, "already exists")
    equal(os.listdir("out"), ["mine"])


main(globals())
