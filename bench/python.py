#!/usr/bin/env python3
"""Results in Python: Tessera's package beside DuckDB's, each in a process of its own, two threads.

    bench/python.py BUILD_DIR [tessera|duckdb]

ROWS=10000000 rows of BIGINT, INTEGER, DOUBLE PRECISION and DATE. The best of RUNS=5; milliseconds. `query`: the rows are made and
thrown away, which DuckDB's package cannot do. Needs pyarrow and pandas, as build/venv has them.
"""

import os
import subprocess
import sys
import time

BUILD = os.path.abspath(sys.argv[1])
ROWS = int(os.environ.get("ROWS") or 10_000_000)
RUNS = int(os.environ.get("RUNS") or 5)
QUERY = "SELECT a, i, d, day FROM t"
TABLE = """CREATE TABLE t AS SELECT n::bigint * 1000003 AS a, (n % 1000000)::integer AS i, (n / 7.0)::double precision AS d,
DATE '2000-01-01' + (n % 9000)::integer AS day FROM generate_series(1, {}) s (n)"""


def best(function, runs=RUNS):
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        kept = function()
        times.append((time.perf_counter() - begin) * 1e3)
        del kept
    return min(times)


def report(what, milliseconds):
    print(f"{what:<28} {milliseconds:10.3f}" if milliseconds < 10 else f"{what:<28} {milliseconds:10.0f}", flush=True)


def common(connection, one, arrow, frame):
    """What both packages do. `one`: runs SQL; `arrow` and `frame`: a result in that form."""
    one("SELECT 1")
    report("SELECT 1, hot", best(lambda: one("SELECT 1").fetchall(), 300))
    one(TABLE.format(ROWS))
    report("Arrow", best(lambda: arrow(QUERY)))
    report("pandas", best(lambda: frame(QUERY)))
    report("a million rows as tuples", best(lambda: one(QUERY + " LIMIT 1000000").fetchall(), 2))
    rows = arrow(QUERY)
    report("Arrow in FROM, count(*)", best(lambda rows=rows: connection.sql("SELECT count(*) FROM rows").fetchall(), 2))
    name = rows.schema.names[0]
    report("Arrow in FROM, a sum", best(lambda rows=rows: connection.sql(f'SELECT sum("{name}") FROM rows').fetchall(), 5))


def tessera(imported):
    import tessera as package
    from tessera import _library

    report("import", imported())
    connection = package.connect(threads=2, device=os.environ.get("DEVICE") or "host")

    def thrown_away():
        statement, _ = connection._prepare(QUERY.encode(), 0, QUERY)
        with statement:
            _library.call("execute", statement._handle, None, None)

    common(connection, connection.sql, lambda sql: connection.sql(sql).arrow(), lambda sql: connection.sql(sql).df())
    report("query", best(thrown_away))


def duckdb(imported):
    import duckdb as package

    report("import", imported())
    connection = package.connect()
    connection.sql("SET threads = 2")
    common(connection, connection.execute, lambda sql: connection.sql(sql).to_arrow_table(), lambda sql: connection.sql(sql).df())


def main():
    if len(sys.argv) > 2:
        begin = time.perf_counter()
        {"tessera": tessera, "duckdb": duckdb}[sys.argv[2]](lambda: (time.perf_counter() - begin) * 1e3)
        return
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = dict(os.environ, PYTHONPATH=os.path.join(root, "python"), TESSERA_LIBRARY=os.path.join(BUILD, "libtessera.so"))
    for package in ("tessera", "duckdb"):
        print(package)
        subprocess.run([sys.executable, __file__, BUILD, package], env=environment, check=True)


if __name__ == "__main__":
    main()
