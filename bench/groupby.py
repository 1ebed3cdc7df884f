#!/usr/bin/env python3
"""Group-bys and joins of db-benchmark's shape, beside DuckDB and Polars: all in memory, with the same tables.

    bench/groupby.py BUILD_DIR           (make bench-groupby)

Environment variables choose what to do. Their defaults:

    PARTS="groupby join"
    ROWS=10000000          of the large tables, at least 1000
    QUERIES=               "g3 j5": only these
    RUNS=3                 runs of a query, the engines alternately; the fastest counts
    LIMIT=300              seconds; a query that takes longer is left
    THREADS=               of each engine; all cores without it
    CSV=                   a file for all figures

The tables are made here, as Parquet files of BUILD_DIR/bench/groupby/ROWS, which the three engines load: g has three texts and three
integers of 100, 100 and ROWS / 100 values and three measures; x is joined with small, medium and big, of ROWS / 1,000,000 (at least
10), ROWS / 1,000 and ROWS rows, by integers and by a text. Nine keys of ten find a row.
A query is asked for the number of its rows and the sums of its numbers; Polars makes a data frame of the rows first. Joins are also
stored: CREATE TABLE AS, and Polars' data frame. All three must give the same; doubles may differ by 1e-9 of their size.
"""

import os
import time

from measure import CsvFile, Failed, MemorySession, Table, environment, run_parts, same

VALUES = 100  # of a key of few values; fewer below a million rows, so that a group has enough for corr
TABLES = {"groupby": ["g"], "join": ["x", "small", "medium", "big"]}


# ---- The tables -----------------------------------------------------------------------------------------------------

def texts(prefix, numbers, digits):
    import pyarrow
    import pyarrow.compute
    cells = pyarrow.compute.utf8_lpad(pyarrow.compute.cast(pyarrow.array(numbers), pyarrow.string()), digits, "0")
    return pyarrow.compute.binary_join_element_wise(prefix, cells, "")


def group_table(rows, random):
    few, many = min(VALUES, max(rows // 10_000, 2)), max(rows // VALUES, 1)
    draw = {name: random.integers(1, high + 1, rows, dtype="int32")
            for name, high in (("id1", few), ("id2", few), ("id3", many), ("id4", few), ("id5", few), ("id6", many),
                               ("v1", 5), ("v2", 15))}
    return {**draw, "id1": texts("id", draw["id1"], 3), "id2": texts("id", draw["id2"], 3), "id3": texts("id", draw["id3"], 10),
            "v3": (random.random(rows) * 100).round(6)}


def keys_in(size, rows, random):
    """Keys of the side that is joined: each of `size` once, those beyond nine tenths of the other side's keys find nothing."""
    return (random.permutation(size) + size // 10 + 1).astype("int32")


def join_tables(rows, random):
    sizes = {"small": max(rows // 1_000_000, 10), "medium": max(rows // 1_000, 10), "big": rows}
    names = list(sizes)
    x = {f"id{i}": random.integers(1, sizes[name] + 1, rows, dtype="int32") for i, name in enumerate(names, 1)}
    for i in (1, 2, 3):
        x[f"id{i + 3}"] = texts("id", x[f"id{i}"], 1)
    x["v1"] = (random.random(rows) * 100).round(6)
    tables = {"x": x}
    for last, name in enumerate(names, 1):
        keys = keys_in(sizes[name], rows, random)
        table = {f"id{i}": random.integers(1, sizes[names[i - 1]] + 1, sizes[name], dtype="int32") for i in range(1, last)}
        table[f"id{last}"] = keys
        for i in range(1, last + 1):
            table[f"id{i + 3}"] = texts("id", table[f"id{i}"], 1)
        table["v2"] = (random.random(sizes[name]) * 100).round(6)
        tables[name] = table
    return tables


def make_files(folder, rows, part):
    """The Parquet files of a part by table, made if they are not there."""
    files = {name: os.path.join(folder, name + ".parquet") for name in TABLES[part]}
    if all(map(os.path.exists, files.values())):
        return files
    import numpy
    import pyarrow
    import pyarrow.parquet
    random = numpy.random.default_rng(1)
    tables = {"g": group_table(rows, random)} if part == "groupby" else join_tables(rows, random)
    os.makedirs(folder, exist_ok=True)
    for name, columns in tables.items():
        columns = dict(sorted(columns.items()))
        pyarrow.parquet.write_table(pyarrow.table(columns), files[name] + ".part")
        os.rename(files[name] + ".part", files[name])
    return files


# ---- The queries ----------------------------------------------------------------------------------------------------

class Query:
    """SQL, the same in Polars, and the columns whose sums are asked for."""

    def __init__(self, sql, frame, sums, extremes=()):
        self.sql, self.frame, self.sums, self.extremes = sql, frame, sums, extremes

    def folded(self):
        return f"SELECT count(*), {', '.join(f'sum({name})' for name in self.sums)} FROM ({self.sql}) q"

    def stored(self):
        """What is asked of the stored rows: also of their texts."""
        extremes = [f"min({name}), max({name})" for name in self.extremes]
        return "SELECT " + ", ".join(["count(*)", *(f"sum({name})" for name in self.sums), *extremes]) + " FROM stored"


def group_queries(pl):
    c = pl.col

    def by(*keys):
        return lambda t, *folds: t["g"].group_by(*keys).agg(*folds)
    return {
        "g1": Query("SELECT id1, sum(v1) AS a FROM g GROUP BY id1", lambda t: by("id1")(t, c("v1").sum().alias("a")), ["a"]),
        "g2": Query("SELECT id1, id2, sum(v1) AS a FROM g GROUP BY id1, id2",
                    lambda t: by("id1", "id2")(t, c("v1").sum().alias("a")), ["a"]),
        "g3": Query("SELECT id3, sum(v1) AS a, avg(v3) AS b FROM g GROUP BY id3",
                    lambda t: by("id3")(t, c("v1").sum().alias("a"), c("v3").mean().alias("b")), ["a", "b"]),
        "g4": Query("SELECT id4, avg(v1) AS a, avg(v2) AS b, avg(v3) AS c FROM g GROUP BY id4",
                    lambda t: by("id4")(t, c("v1").mean().alias("a"), c("v2").mean().alias("b"), c("v3").mean().alias("c")),
                    ["a", "b", "c"]),
        "g5": Query("SELECT id6, sum(v1) AS a, sum(v2) AS b, sum(v3) AS c FROM g GROUP BY id6",
                    lambda t: by("id6")(t, c("v1").sum().alias("a"), c("v2").sum().alias("b"), c("v3").sum().alias("c")),
                    ["a", "b", "c"]),
        "g6": Query("SELECT id4, id5, median(v3) AS a, stddev_samp(v3) AS b FROM g GROUP BY id4, id5",
                    lambda t: by("id4", "id5")(t, c("v3").median().alias("a"), c("v3").std().alias("b")), ["a", "b"]),
        "g7": Query("SELECT id3, max(v1) - min(v2) AS a FROM g GROUP BY id3",
                    lambda t: by("id3")(t, (c("v1").max() - c("v2").min()).alias("a")), ["a"]),
        "g8": Query("SELECT id6, v3 AS a FROM (SELECT id6, v3, row_number() OVER (PARTITION BY id6 ORDER BY v3 DESC) AS n FROM g) s "
                    "WHERE n <= 2",
                    lambda t: by("id6")(t, c("v3").top_k(2).alias("a")).explode("a"), ["a"]),
        "g9": Query("SELECT id2, id4, pow(corr(v1, v2), 2) AS a FROM g GROUP BY id2, id4",
                    lambda t: by("id2", "id4")(t, (pl.corr("v1", "v2") ** 2).alias("a")), ["a"]),
        "g10": Query("SELECT id1, id2, id3, id4, id5, id6, sum(v3) AS a, count(*) AS b FROM g GROUP BY id1, id2, id3, id4, id5, id6",
                     lambda t: by("id1", "id2", "id3", "id4", "id5", "id6")(t, c("v3").sum().alias("a"), pl.len().alias("b")),
                     ["a", "b"]),
    }


def join_query(table, key, how):
    """All columns of x, and the other side's number and its text of the same key."""
    text = key if int(key[2:]) > 3 else f"id{int(key[2:]) + 3}"
    sql = (f"SELECT x.id1, x.id2, x.id3, x.id4, x.id5, x.id6, x.v1, r.{text} AS theirs, r.v2 FROM x "
           f"{'LEFT JOIN' if how == 'left' else 'JOIN'} {table} r ON x.{key} = r.{key}")

    def frame(t):
        import polars
        right = t[table].select(polars.col(key).alias("their_key"), polars.col(text).alias("theirs"), "v2")
        return t["x"].join(right, left_on=key, right_on="their_key", how=how)
    return Query(sql, frame, ["v1", "v2"], ["id4", "id5", "id6", "theirs"])


def join_queries():
    return {"j1": join_query("small", "id1", "inner"), "j2": join_query("medium", "id2", "inner"),
            "j3": join_query("medium", "id2", "left"), "j4": join_query("medium", "id5", "inner"),
            "j5": join_query("big", "id3", "inner")}


# ---- The engines ----------------------------------------------------------------------------------------------------

def timed(work):
    start = time.perf_counter()
    result = work()
    return result, (time.perf_counter() - start) * 1e3


def cells(row):
    return ",".join("" if value is None else str(value) for value in row)


class Tessera:
    name = "Tessera"

    def __init__(self, build, files, threads, limit):
        load = [f"CREATE TABLE {name} AS SELECT * FROM '{os.path.abspath(file)}'" for name, file in files.items()]
        self.session = MemorySession(build, load, threads, limit)

    def folded(self, query):
        answer = self.session.run(query.folded())
        return answer.rows[0], answer.ms

    def stored(self, query):
        made = self.session.run(f"CREATE TABLE stored AS {query.sql}")
        rows = self.session.run(query.stored()).rows
        self.session.run("DROP TABLE stored")
        return rows[0], made.ms

    def close(self):
        self.session.close()


class DuckDb:
    name = "DuckDB"

    def __init__(self, files, threads):
        import duckdb
        self.connection = duckdb.connect(config={"threads": threads})
        for name, file in files.items():
            self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM '{file}'")

    def folded(self, query):
        row, ms = timed(lambda: self.connection.execute(query.folded()).fetchone())
        return cells(row), ms

    def stored(self, query):
        _, ms = timed(lambda: self.connection.execute(f"CREATE TABLE stored AS {query.sql}"))
        row = self.connection.execute(query.stored()).fetchone()
        self.connection.execute("DROP TABLE stored")
        return cells(row), ms

    def close(self):
        self.connection.close()


class Polars:
    name = "Polars"

    def __init__(self, files):
        import polars
        self.polars = polars
        self.frames = {name: polars.read_parquet(file) for name, file in files.items()}

    def _fold(self, frame, query, extremes):
        c = self.polars.col
        folds = [self.polars.len(), *(c(name).sum().alias(f"sum_{name}") for name in query.sums)]
        for name in extremes:
            folds += [c(name).min().alias(f"min_{name}"), c(name).max().alias(f"max_{name}")]
        return cells(frame.select(folds).row(0))

    def folded(self, query):
        return timed(lambda: self._fold(query.frame(self.frames), query, ()))

    def stored(self, query):
        frame, ms = timed(lambda: query.frame(self.frames))
        return self._fold(frame, query, query.extremes), ms

    def close(self):
        self.frames = {}


class Bench:
    def __init__(self, build):
        self.build = build
        self.rows = int(environment("ROWS", "10000000"))
        if self.rows < 1000:
            raise SystemExit("bench/groupby.py: ROWS is at least 1000")
        self.runs, self.limit = int(environment("RUNS", "3")), float(environment("LIMIT", "300"))
        self.threads = int(environment("THREADS", str(os.cpu_count())))
        os.environ["POLARS_MAX_THREADS"] = str(self.threads)  # read when it is imported
        self.folder = os.path.join(build, "bench", "groupby", str(self.rows))
        self.csv = CsvFile(environment("CSV", ""), ["query", "tessera_ms", "duckdb_ms", "polars_ms"])

    def _measure(self, name, ask, engines):
        """The least time of each engine. `ask`: folded or stored. Raises Failed if the answers differ."""
        best = {}
        for _ in range(self.runs):
            for engine in engines:
                answer, ms = ask(engine)
                if engine is engines[0]:
                    first = answer
                elif not same([answer], [first]):
                    raise Failed(f"{name}: {engine.name} has {answer}, {engines[0].name} {first}")
                best[engine.name] = min(ms, best.get(engine.name, ms))
        return best

    def _part(self, part, title, queries, ways):
        chosen = environment("QUERIES", "").split()
        files = make_files(self.folder, self.rows, part)
        engines = [Tessera(self.build, files, self.threads, self.limit), DuckDb(files, self.threads), Polars(files)]
        table = Table(f"{title}, {self.rows:,} rows, {self.threads} threads, ms", ("query", -12), ("Tessera", 10), ("DuckDB", 10),
                      ("Polars", 10), ("of DuckDB", 10), ("of Polars", 10))
        sums = {}
        for way in ways:
            for name, query in queries.items():
                if chosen and name not in chosen:
                    continue
                label = name if way == "folded" else name + " stored"
                best = self._measure(label, lambda engine: getattr(engine, way)(query), engines)
                times = [best[engine.name] for engine in engines]
                sums[way] = [a + b for a, b in zip(sums.get(way, [0, 0, 0]), times)]
                table.row(label, *times, times[0] / times[1], times[0] / times[2])
                self.csv.row(query=label, tessera_ms=times[0], duckdb_ms=times[1], polars_ms=times[2])
        for way, total in sums.items():
            table.row("sum" if way == "folded" else "sum stored", *total, total[0] / total[1], total[0] / total[2])
        for engine in engines:
            engine.close()

    def groupby(self):
        import polars
        self._part("groupby", "Group-bys", group_queries(polars), ["folded"])

    def join(self):
        self._part("join", "Joins", join_queries(), ["folded", "stored"])


if __name__ == "__main__":
    run_parts(__doc__, Bench, "groupby join")
