"""Tests of the limits that SQL.md lists under "Sizes": a statement at each limit gives its rows, one beyond it an error that
says the limit and what to do. Each function named test_* is one test, over a database of its own.

    limits_test.py BUILD_DIR [NAME...]

Closes with "N passed, N failed".
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

PROGRAM = os.path.abspath(os.path.join(sys.argv[1], "tessera"))
#: Seconds that compiling and running a statement at a limit may take on a busy machine.
PATIENCE = 60

COLUMNS = 4096  # of a SELECT
CONSTANTS = 32768  # of a statement
PIPELINES = 4096  # of a statement
#: What the program says of a database that is not there yet.
NEW = "db: a new database, written at its first change\n"
JOINS = 1024  # of a statement


class Failure(Exception):
    """What a check found."""


def run(sql):
    """The output and the errors of a script."""
    process = subprocess.run(
        [PROGRAM, "db", "--format", "csv"], input=sql.encode(), capture_output=True, timeout=PATIENCE, check=False
    )
    return process.stdout.decode(), process.stderr.decode().removeprefix(NEW)


def gives(sql, expected):
    """`expected`: the rows after the header, each as the texts of its values."""
    out, err = run(sql)
    if err:
        raise Failure(f"{sql[:200]}\n  {err[:500]}")
    rows = [line.split(",") for line in out.splitlines()[1:]]
    if rows != [[str(value) for value in row] for row in expected]:
        raise Failure(f"{sql[:200]}\n  expected {str(expected)[:300]}\n  got      {str(rows)[:300]}")


def fails(sql, *parts):
    """The error has all of these parts."""
    err = run(sql)[1]
    for part in parts:
        if part not in err:
            raise Failure(f"{sql[:200]}\n  expected {part!r}\n  got      {err[:500]!r}")


def load(name, rows):
    """A table of small integers, by COPY."""
    width = len(rows[0])
    with open(name + ".csv", "w", encoding="utf-8") as file:
        for row in rows:
            file.write(",".join("" if v is None else str(v) for v in row) + "\n")
    columns = ", ".join(f"c{i} INTEGER" for i in range(width))
    err = run(f"CREATE TABLE {name} ({columns}); COPY {name} FROM '{name}.csv' (FORMAT csv);")[1]
    if err:
        raise Failure(err)


def names(width, form="c{}"):
    return ", ".join(form.format(i) for i in range(width))


def test_columns_of_a_select():
    rows = [[r * 7 + i % 1000 for i in range(COLUMNS)] for r in range(3)]
    load("wide", rows)
    gives("SELECT * FROM wide ORDER BY c0;", rows)
    gives(f"SELECT {names(COLUMNS, 'c{} + 1')} FROM wide ORDER BY c0;", [[v + 1 for v in row] for row in rows])
    sums = [[sum(row[i] for row in rows) for i in range(COLUMNS)]]
    gives(f"SELECT {names(COLUMNS, 'sum(c{})')} FROM wide;", sums)
    gives(f"SELECT {names(COLUMNS)} FROM wide ORDER BY {names(COLUMNS, 'c{} DESC')};", rows[::-1])
    gives("SELECT * FROM wide WHERE c0 = 7 UNION ALL SELECT * FROM wide WHERE c0 = 14 ORDER BY c0;", rows[1:])
    many = f"more than {COLUMNS} columns is not supported"
    fails("SELECT *, 1 FROM wide;", many)
    fails("SELECT * FROM wide a, wide b WHERE a.c0 = b.c0;", many)
    # Of the rows of many tiles no more than some are held at a time.
    gives(
        "CREATE TABLE long AS SELECT wide.* FROM wide, generate_series(1, 3000) WHERE c0 = 0;"
        "SELECT count(*), sum(c5) FROM (SELECT * FROM long OFFSET 10) AS q;",
        [[2990, 5 * 2990]],
    )


def test_keys_of_groups():
    rows = [[i % 5 for i in range(COLUMNS)], [i % 5 for i in range(COLUMNS)], [i % 5 for i in range(COLUMNS)]]
    rows[1][COLUMNS - 1] = None
    rows[2][70] = None
    load("wide", rows + rows[:2])
    count = [[None if v is None else v for v in row] for row in rows]
    texts = [["" if v is None else v for v in row] for row in count]
    # NULLs come last.
    order = sorted(texts, key=lambda row: (row[70] == "", row[COLUMNS - 1] == ""))
    by = f"ORDER BY c70, c{COLUMNS - 1}"
    gives(f"SELECT DISTINCT * FROM wide {by};", order)
    gives(f"SELECT {names(COLUMNS)} FROM wide GROUP BY {names(COLUMNS)} {by};", order)
    gives(f"SELECT count(*) AS n FROM wide GROUP BY {names(COLUMNS)} ORDER BY n;", [[1], [2], [2]])
    gives(f"SELECT * FROM wide UNION SELECT * FROM wide {by};", order)
    gives("SELECT * FROM wide EXCEPT SELECT * FROM wide WHERE c70 IS NOT NULL;", order[2:])
    gives("SELECT * FROM wide INTERSECT SELECT * FROM wide WHERE c70 IS NULL;", order[2:])
    for width in (63, 64, 65, 128, 129):
        some = names(width)
        expected = sorted({tuple(row[:width]) for row in texts}, key=lambda row: "" in row)
        gives(f"SELECT DISTINCT {some} FROM wide ORDER BY c{min(width - 1, 70)};", expected)
        gives(
            f"SELECT count(*) FROM (SELECT {some}, avg(c1 + 0.5) FROM wide GROUP BY {some}) AS q;", [[len(expected)]]
        )
    gives(
        f"WITH RECURSIVE q AS (SELECT {names(100, '1 AS c{}')} UNION SELECT {names(99)}, (c99 + 1) % 5 FROM q)"
        "SELECT count(*), max(c99) FROM q;",
        [[5, 4]],
    )
    fails(
        f"SELECT count(DISTINCT c1) FROM wide GROUP BY {names(COLUMNS)};",
        f"more than {COLUMNS} keys and arguments of aggregates with DISTINCT",
    )
    fails(f"SELECT 1 FROM wide GROUP BY {names(COLUMNS)}, c0 + 1;", f"GROUP BY of more than {COLUMNS} expressions")


def test_grouping_sets():
    load("t", [[r % 2 for _ in range(8)] for r in range(4)])
    sets = 2**7
    gives(f"SELECT count(*), sum(n) FROM (SELECT count(*) AS n FROM t GROUP BY CUBE ({names(7)})) AS q;",
          [[2 * sets - 1, 4 * sets]])
    gives(f"SELECT count(*), sum(n) FROM (SELECT avg(c7), count(*) AS n FROM t GROUP BY CUBE ({names(7)})) AS q;",
          [[2 * sets - 1, 4 * sets]])
    fails(f"SELECT count(*) FROM t GROUP BY CUBE ({names(8)});", "more than 128 grouping sets are not supported")


def test_elements_of_a_list():
    load("t", [[i, i % 7, i % 100] for i in range(1000)])
    # Others than those that are met, but for 100 and 400; and room for the constants of the statement itself.
    elements = [100, 400] + [10 * CONSTANTS + i for i in range(CONSTANTS - 12)]
    some = ", ".join(map(str, elements))
    started = time.monotonic()
    gives(f"SELECT count(*) FROM t WHERE c0 IN ({some});", [[2]])
    gives(f"SELECT count(*) FROM t WHERE c0 + 1 IN ({some});", [[2]])
    gives(f"SELECT count(*) FROM t WHERE c0 + 1 NOT IN ({some});", [[998]])
    gives(f"SELECT count(*) FROM t WHERE c1 < 1 AND c0 + 1 IN ({some});", [[1]])
    gives(f"SELECT count(*) FROM t WHERE c1 < 0 OR c0 + 1 IN ({some});", [[2]])
    gives(f"SELECT count(*) FROM t WHERE c0 + 1 NOT IN ({some}, NULL);", [[0]])
    gives(f"SELECT count(*) FROM t WHERE (c0 + 1 IN ({some}, NULL)) IS NULL;", [[998]])
    gives(f"SELECT count(*) FROM t WHERE (c0 / 0 IN ({some})) IS NULL;", [[1000]])
    gives(f"SELECT s, count(*) FROM (SELECT sum(c0) AS s FROM t GROUP BY c0) AS q WHERE s IN ({some}) GROUP BY s ORDER BY s;",
          [[100, 1], [400, 1]])
    gives(f"SELECT c0, c0 + 1 IN ({some}) AS is_in FROM t WHERE c0 IN (99, 100) ORDER BY c0;",
          [[99, "true"], [100, "false"]])
    gives(f"SELECT count(CASE WHEN c0 + 1 IN ({some}) THEN 1 END) FROM t;", [[2]])
    texts = ", ".join(f"'{e}'" for e in elements)
    gives(f"SELECT count(*) FROM t WHERE c0::TEXT || '' IN ({texts});", [[2]])
    halves = elements[: CONSTANTS // 2]
    pairs = ", ".join(f"({e}, {10 ** 9 + e})" for e in halves[2:]) + ", (100, 2), (400, 1)"
    gives(f"SELECT count(*) FROM t WHERE (c0, c1) IN ({pairs});", [[2]])
    gives(f"SELECT count(*) FROM t WHERE (c0, c1) NOT IN ({pairs});", [[998]])
    gives(f"SELECT count(*) FROM t WHERE (c0, c1) IN ({pairs}) OR c0 < 2;", [[4]])
    if time.monotonic() - started > PATIENCE:
        raise Failure(f"lists took {time.monotonic() - started} s")
    beyond = ", ".join(str(10 * CONSTANTS + i) for i in range(CONSTANTS + 1))
    for tested in ("c0", "c0 + 1"):
        fails(f"SELECT count(*) FROM t WHERE {tested} IN ({beyond});", f"more different constants than {CONSTANTS}",
              "Load a long list into a table, and join with it.")


def test_arms_and_pipelines():
    load("t", [[1], [2], [3]])
    # Each arm is a pipeline; so is what reads them.
    arms = PIPELINES - 2
    union = " UNION ALL ".join(["SELECT c0 FROM t"] * arms)
    gives(f"SELECT count(*), sum(c0) FROM ({union}) AS q;", [[3 * arms, 6 * arms]])
    gives(union + " ORDER BY 1 OFFSET 5;", [[1 + i // arms] for i in range(5, 3 * arms)])
    fails(union + " UNION ALL SELECT c0 FROM t" * 4, f"more than {PIPELINES} pipelines is not supported",
          "Store the rows of a part of it in a table")
    values = ", ".join(f"({i})" for i in range(CONSTANTS - 100))
    gives(f"SELECT count(*), max(column1) FROM (VALUES {values}) AS q;", [[CONSTANTS - 100, CONSTANTS - 101]])


def test_joins():
    load("t", [[1], [2], [3]])
    arm = "SELECT a.c0 FROM t a JOIN t b ON a.c0 = b.c0 + {} JOIN t c ON a.c0 = c.c0 - {}"
    arms = JOINS // 2
    union = " UNION ALL ".join(arm.format(i % 2, i % 2) for i in range(arms))
    # Every other arm has 1, 2 and 3, and those between them 2.
    gives(f"SELECT count(*), sum(c0) FROM ({union}) AS q;", [[4 * arms // 2, 8 * arms // 2]])
    fails(union + " UNION ALL " + arm.format(2, 3), f"more than {JOINS} joins is not supported")
    most = "".join(f" JOIN t t{i} ON t0.c0 = t{i}.c0" for i in range(1, 64))
    gives(f"SELECT sum(t63.c0) FROM t t0{most};", [[6]])
    fails(f"SELECT sum(t63.c0) FROM t t0{most} JOIN t t64 ON t0.c0 = t64.c0;", "a query of more than 64 tables")


def nested(levels):
    return "SELECT " + "(SELECT " * levels + "max(c0) FROM t" + ")" * levels


def derived(levels):
    return "SELECT * FROM (" * levels + "SELECT c0 FROM t" + "".join(f") AS q{i}" for i in range(levels)) + " ORDER BY 1"


def chained(levels):
    queries = ["q0 AS (SELECT c0 FROM t)"] + [f"q{i} AS (SELECT * FROM q{i - 1})" for i in range(1, levels)]
    return "WITH " + ", ".join(queries) + f" SELECT * FROM q{levels - 1} ORDER BY 1"


def test_nesting():
    load("t", [[1], [2], [3]])
    deep = ("statement is nested too deeply (more than 1000 levels)", "store the rows of the inner ones in a table")
    gives(nested(58) + ";", [[3]])
    fails(nested(59) + ";", *deep)
    gives(derived(62) + ";", [[1], [2], [3]])
    fails(derived(63) + ";", *deep)
    gives(chained(246) + ";", [[1], [2], [3]])
    fails(chained(247) + ";", *deep)
    gives("SELECT " + "(" * 900 + "1" + ")" * 900 + ";", [[1]])


def main():
    wanted = sys.argv[2:]
    tests = [
        (name, function)
        for name, function in globals().items()
        if name.startswith("test_") and (not wanted or name in wanted)
    ]
    passed = failed = 0
    for name, function in tests:
        directory = tempfile.mkdtemp(prefix="tessera_limits_test_")
        os.chdir(directory)
        started = time.monotonic()
        try:
            function()
            passed += 1
            print(f"ok     {name} ({time.monotonic() - started:.1f} s)", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed += 1
            print(f"FAILED {name}", flush=True)
            print(error if isinstance(error, Failure) else traceback.format_exc(), flush=True)
        os.chdir("/")
        shutil.rmtree(directory, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
