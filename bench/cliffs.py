#!/usr/bin/env python3
"""Queries whose time grows badly where a plan looks at too much, beside DuckDB: both in memory, with the same tables.

    bench/cliffs.py BUILD_DIR [WORD...]         (make bench-cliffs)

With words only the queries whose names have one of them run. Environment variables choose what to do. Their defaults:

    LIMIT=1.0              seconds; a query that takes longer is ended
    TIMES=3                how often a slower engine may take as long
    RUNS=3                 runs of a query; the fastest counts
    THREADS=2              of each engine
    CSV=                   a file for all figures

Both engines must give the same rows. The status is 1 if a query takes more than TIMES as long as in DuckDB and more than 20 ms.
"""

import os
import sys
import threading
import time

from measure import CsvFile, Failed, MemorySession, environment

TABLES = """
CREATE TABLE t AS SELECT i AS x, i % 1000 AS g, 'name ' || i % 100000 AS s FROM generate_series(1, 2000000) r(i);
CREATE TABLE h AS SELECT i AS x, i % 1000 AS g, 'h' || i::bigint * 7919 % 1000003 AS h FROM generate_series(1, 1000000) r(i);
CREATE TABLE a AS SELECT i AS x, i % 3 AS k FROM generate_series(1, 100000) r(i);
CREATE TABLE b AS SELECT i AS x, i % 3 AS k FROM generate_series(1, 100000) r(i);
CREATE TABLE k AS SELECT i % 3 AS k, i AS x FROM generate_series(1, 60000) r(i);
CREATE TABLE few AS SELECT i * 1000 AS x FROM generate_series(1, 3) r(i);
CREATE TABLE points AS SELECT i::bigint * 7919 % 1000003 AS p FROM generate_series(1, 200000) r(i);
CREATE TABLE ranges AS SELECT i * 10 AS low, i * 10 + 6 AS high, i AS n FROM generate_series(0, 99999) r(i);
CREATE TABLE h2 AS SELECT 'h' || i AS h, i AS y FROM generate_series(500000, 700000) r(i);
CREATE TABLE wide AS SELECT {} FROM generate_series(1, 300000) r(i);
""".format(", ".join(f"i % {n % 7 + 2} AS c{n}" for n in range(60)))


def texts(prefix, n, step):
    return ", ".join(f"'{prefix}{i * step}'" for i in range(n))


def numbers(n, step):
    return ", ".join(str(i * step) for i in range(n))


QUERIES = {
    "IN 1000 texts": f"SELECT count(*), sum(x) FROM t WHERE s IN ({texts('name ', 1000, 97)})",
    "IN 10000 texts": f"SELECT count(*), sum(x) FROM h WHERE h IN ({texts('h', 10000, 97)})",
    "NOT IN 1000 texts": f"SELECT count(*), sum(x) FROM t WHERE s NOT IN ({texts('name ', 1000, 97)})",
    "ANY ARRAY texts": f"SELECT count(*), sum(x) FROM t WHERE s = ANY(ARRAY[{texts('name ', 1000, 97)}])",
    "IN 3000 of sum": f"SELECT count(*), sum(g) FROM h WHERE x + 1 IN ({numbers(3000, 311)})",
    "IN VALUES texts": "SELECT count(*), sum(x) FROM h WHERE h IN (VALUES {})".format(
        ", ".join(f"('h{i * 311}')" for i in range(2000))),
    "IN texts OR": f"SELECT count(*), sum(x) FROM t WHERE g = 7 OR s IN ({texts('name ', 1000, 97)})",
    "IN output": f"SELECT sum(CASE WHEN s IN ({texts('name ', 1000, 97)}) THEN x END) FROM t",
    "LEFT JOIN left side": "SELECT count(*), count(b.x) FROM (SELECT * FROM a LIMIT 3000) a LEFT JOIN b ON a.k = b.k AND a.k = 99",
    "LEFT JOIN left side all": "SELECT count(*), count(b.x) FROM a LEFT JOIN b ON a.k = b.k AND a.k = 99",
    "LEFT JOIN both sides": "SELECT count(*), count(b.x) FROM a LEFT JOIN b ON a.k = b.k AND b.x > a.x + 100000",
    "correlated few": "SELECT x, (SELECT max(i.x) FROM h i WHERE i.g = o.g AND i.x < o.x) FROM h o WHERE o.x IN (SELECT x FROM few) ORDER BY x",
    "correlated count": "SELECT o.x, (SELECT count(*) FROM h i WHERE i.g = o.g AND i.x < o.x) FROM h o JOIN few ON few.x = o.x ORDER BY 1",
    "range join": "SELECT count(*), sum(n) FROM points JOIN ranges ON p BETWEEN low AND high",
    "range LEFT JOIN": "SELECT count(*), sum(n) FROM points LEFT JOIN ranges ON p BETWEEN low AND high",
    "range FULL JOIN": "SELECT count(*), count(p), sum(n) FROM points FULL JOIN ranges ON p >= low AND p <= high AND 1 = 1",
    "range EXISTS": "SELECT count(*) FROM points WHERE EXISTS (SELECT 1 FROM ranges WHERE p BETWEEN low AND high)",
    "range NOT EXISTS": "SELECT count(*) FROM points WHERE NOT EXISTS (SELECT 1 FROM ranges WHERE p BETWEEN low AND high)",
    "series count": "SELECT count(*) FROM generate_series(1, 1000000000)",
    "series LIMIT": "SELECT i FROM generate_series(1, 1000000000) r(i) LIMIT 3",
    "self-join by key": "SELECT a.k, count(*), sum(a.x), max(b.x) FROM k a JOIN k b ON a.k = b.k GROUP BY a.k ORDER BY a.k",
    "self-join count": "SELECT count(*), sum(a.x), max(b.x) FROM k a JOIN k b ON a.k = b.k",
    "DISTINCT LIMIT": "SELECT count(*) FROM (SELECT DISTINCT h FROM h LIMIT 5) d",
    "UNION ALL LIMIT": "SELECT count(*) FROM (SELECT h, x FROM h UNION ALL SELECT s, x FROM t LIMIT 3) u",
    "ORDER BY text LIMIT": "SELECT h FROM h ORDER BY h LIMIT 5",
    "arg_max by group": "SELECT sum(v) FROM (SELECT g, arg_max(x, h) AS v FROM h GROUP BY g) d",
    "row_number by text": "SELECT count(*), sum(x) FROM (SELECT x, row_number() OVER (PARTITION BY g ORDER BY h) AS n FROM h) d WHERE n <= 2",
    "lower": "SELECT count(*) FROM h WHERE lower(h) = 'h17'",
    "FULL JOIN texts": "SELECT count(*), count(y), sum(x) FROM h FULL JOIN h2 ON h.h = h2.h",
    "text key": "SELECT count(*) FROM (SELECT s || '-' || left(s, 6) AS k, count(*) FROM t GROUP BY 1) d",
    "60 keys": "SELECT count(*) FROM (SELECT count(*) FROM wide GROUP BY {}) d".format(", ".join(f"c{n}" for n in range(60))),
    "count DISTINCT texts": "SELECT count(DISTINCT h) FROM h",
    "40 count DISTINCT": "SELECT {} FROM wide".format(", ".join(f"count(DISTINCT c{n})" for n in range(40))),
}


class DuckDb:
    def __init__(self, threads, limit):
        import duckdb
        self.limit = limit
        self.connection = duckdb.connect(config={"threads": threads})

    def run(self, sql):
        """Its rows as texts, and the time in milliseconds."""
        timer = threading.Timer(self.limit, self.connection.interrupt)
        timer.start()
        start = time.perf_counter()
        try:
            rows = self.connection.execute(sql).fetchall()
        except Exception as error:
            text = str(error).splitlines()[0]
            raise Failed(f"more than {self.limit:g} s" if "nterrupt" in text else text)
        finally:
            timer.cancel()
        return [",".join("" if v is None else str(v) for v in row) for row in rows], (time.perf_counter() - start) * 1e3


def fastest(run, sql, runs):
    """Rows and the least time, or why there are none."""
    best = None
    for _ in range(runs):
        try:
            rows, ms = run(sql)
        except Failed as error:
            return None, str(error)
        best = ms if best is None else min(best, ms)
    return rows, best


def main():
    build, words = sys.argv[1], sys.argv[2:]
    limit, times = float(environment("LIMIT", "1.0")), float(environment("TIMES", "3"))
    runs, threads = int(environment("RUNS", "3")), int(environment("THREADS", "2"))
    figures = CsvFile(environment("CSV", ""), ["query", "tessera_ms", "duckdb_ms"])
    theirs, ours = DuckDb(threads, 15), MemorySession(build, TABLES.strip().rstrip(";").split(";\n"), threads, limit)
    theirs.connection.execute(TABLES)
    slow = 0
    print(f"{'query':26}{'Tessera ms':>12} {'DuckDB ms':>15}{'times':>8}", flush=True)
    for name, sql in QUERIES.items():
        if words and not any(word in name for word in words):
            continue

        def run_ours(text):
            answer = ours.run(text)
            return answer.rows, answer.ms

        wanted, their_ms = fastest(theirs.run, sql, runs)
        rows, our_ms = fastest(run_ours, sql, runs)
        bad = rows is None or (wanted is not None and our_ms > max(times * their_ms, 20))
        if rows is not None and wanted is not None and sorted(rows) != sorted(wanted) and "LIMIT" not in name:
            bad, our_ms = True, "other rows"
        slow += bad
        figures.row(query=name, tessera_ms=our_ms, duckdb_ms=their_ms)
        as_text = [f"{ms:.1f}" if isinstance(ms, float) else ms for ms in (our_ms, their_ms)]
        ratio = f"{our_ms / their_ms:.1f}" if isinstance(our_ms, float) and isinstance(their_ms, float) else ""
        print(f"{name:26}{as_text[0]:>12} {as_text[1]:>15}{ratio:>8}{'  slow' if bad else ''}", flush=True)
    ours.close()
    print(f"{slow} slow")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
