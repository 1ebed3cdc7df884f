#!/usr/bin/env python3
"""Parquet and Arrow files: read as pyarrow and DuckDB write them, and written for both.

    tests/columnar/parquet_test.py BUILD_DIR

Needs tessera_arrow.so, and pyarrow and duckdb in build/venv; without them the test is skipped. Ends with "N passed, N failed".
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESSERA = os.path.join(BUILD, "tessera")
PYTHON = os.path.join(ROOT, "build", "venv", "bin", "python")


def skip(why):
    print(f"[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] parquet_test: {why}")
    sys.exit(0)


try:
    import duckdb
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.ipc as ipc
    import pyarrow.parquet as pq
except ImportError:
    if os.path.exists(PYTHON) and os.path.realpath(sys.prefix) != os.path.realpath(os.path.join(ROOT, "build", "venv")):
        os.execv(PYTHON, [PYTHON, *sys.argv])
    skip("there is no pyarrow or no duckdb in build/venv: make arrow, tests/setup bench")
if not os.path.exists(os.path.join(BUILD, "tessera_arrow.so")):
    skip("there is no tessera_arrow.so: make arrow")

import datetime
import decimal
import random
import uuid

WORK = tempfile.mkdtemp(prefix="tessera_parquet_test.")
NOW = datetime.datetime(2024, 2, 29, 12, 34, 56, 789012)


class Answer:
    def __init__(self, done):
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr


def run(sql, database=(), status=0, ranks=0):
    """Statements in one process."""
    command = [TESSERA, *(["--ranks", str(ranks)] if ranks else []), "-csv", "-noheader", "-bail", "--threads", "2", *database]
    done = subprocess.run(command if sql is None else [*command, "-c", sql], cwd=WORK, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
                          env=dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))
    if done.returncode != status:
        raise AssertionError(f"{sql}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return Answer(done)


def script(lines, status=0, ranks=0):
    """The same of a file, which may have commands of the shell."""
    with open(path("script.sql"), "w") as file:
        file.write("\n".join(lines) + "\n")
    return run(None, ["-f", "script.sql"], status, ranks)


def equal(found, expected, what=""):
    if found != expected:
        raise AssertionError(f"{what}\nfound    {found!r}\nexpected {expected!r}")


def fails(sql, *parts, status=None):
    done = subprocess.run([TESSERA, "-csv", "-bail", "-c", sql], cwd=WORK, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=300)
    if done.returncode not in ((1, 2) if status is None else (status,)):
        raise AssertionError(f"{sql}: status {done.returncode}\n{done.stdout}{done.stderr}")
    for part in parts:
        if part not in done.stderr:
            raise AssertionError(f"{sql}: no {part!r} in\n{done.stderr}")


def path(name):
    return os.path.join(WORK, name)


def all_types():
    """Each type twice with values and once NULL."""
    text = ["", "Grüße", None]
    columns = {
        "i8": pa.array([-128, 127, None], pa.int8()), "u8": pa.array([0, 255, None], pa.uint8()),
        "i16": pa.array([-32768, 32767, None], pa.int16()), "u16": pa.array([0, 65535, None], pa.uint16()),
        "i32": pa.array([-2**31, 2**31 - 1, None], pa.int32()), "u32": pa.array([0, 2**32 - 1, None], pa.uint32()),
        "i64": pa.array([-2**63, 2**63 - 1, None], pa.int64()), "u64": pa.array([0, 2**63 - 1, None], pa.uint64()),
        "f32": pa.array([1.5, -0.25, None], pa.float32()), "f64": pa.array([0.1, float("inf"), None], pa.float64()),
        "d9": pa.array([decimal.Decimal("-1.25"), decimal.Decimal("9999999.99"), None], pa.decimal128(9, 2)),
        "d38": pa.array([decimal.Decimal("-1"), decimal.Decimal("9" * 38), None], pa.decimal128(38, 0)),
        "b": pa.array([True, False, None]), "day": pa.array([datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
        "ms": pa.array([NOW.replace(microsecond=789000), datetime.datetime(1, 1, 1), None], pa.timestamp("ms")),
        "us": pa.array([NOW, datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), None], pa.timestamp("us")),
        "ns": pa.array([NOW, datetime.datetime(1970, 1, 1), None], pa.timestamp("ns")),
        "tz": pa.array([NOW, datetime.datetime(1970, 1, 1), None], pa.timestamp("us", "UTC")),
        "at": pa.array([datetime.time(0, 0), datetime.time(23, 59, 59, 999999), None], pa.time64("us")),
        "at32": pa.array([datetime.time(0, 0), datetime.time(23, 59, 59, 999000), None], pa.time32("ms")),
        "s": pa.array(text), "ls": pa.array(text, pa.large_string()), "vs": pa.array(text, pa.string_view()),
        "ds": pa.array(text).dictionary_encode(), "bin": pa.array([b"\x00\xff", b"", None]),
        "nothing": pa.nulls(3),
    }
    return pa.table(columns)


TYPES = ["SMALLINT"] * 3 + ["INTEGER"] * 2 + ["BIGINT"] * 3 + [
    "REAL", "DOUBLE PRECISION", "DECIMAL(9,2)", "DECIMAL(38,0)", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP", "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE", "TIME", "TIME", "TEXT", "TEXT", "TEXT", "TEXT", "BYTEA", "TEXT"]
VALUES = [
    "-128,0,-32768,0,-2147483648,0,-9223372036854775808,0,1.5,0.1,-1.25,-1,true,0001-01-01,2024-02-29 12:34:56.789,"
    "2024-02-29 12:34:56.789012,2024-02-29 12:34:56.789012,2024-02-29 12:34:56.789012+00,00:00:00,00:00:00,\"\",\"\",\"\",\"\",\\x00ff,",
    "127,255,32767,65535,2147483647,4294967295,9223372036854775807,9223372036854775807,-0.25,Infinity,9999999.99," + "9" * 38 +
    ",false,9999-12-31,0001-01-01 00:00:00,1969-12-31 23:59:59.999999,1970-01-01 00:00:00,1970-01-01 00:00:00+00,23:59:59.999999,"
    "23:59:59.999,Grüße,Grüße,Grüße,Grüße,\\x,", "," * 25]


def test_types():
    """Every type, from a Parquet file, an Arrow file and a stream."""
    table = all_types()
    pq.write_table(table, path("all.parquet"))
    with ipc.new_file(path("all.arrow"), table.schema) as out:
        out.write_table(table)
    with ipc.new_stream(path("all.arrows"), table.schema) as out:
        out.write_table(table)
    feather.write_feather(table, path("all.feather"), compression="zstd")
    for name in ("all.parquet", "all.arrow", "all.arrows", "all.feather"):
        described = [line.split(",", 1)[1].split(",YES")[0].strip('"') for line in run(f"DESCRIBE '{name}'").out.split("\n") if line]
        equal(described, TYPES, name)
        equal(run(f"SET timezone = 'UTC'; SELECT * FROM '{name}'").out.rstrip("\n").split("\n"), VALUES, name)


def test_bad_values():
    """What a column cannot hold is an error that says where."""
    def one(array, name="bad.parquet", **options):
        pq.write_table(pa.table({"x": array}), path(name), **options)
    one(pa.array([1, 2**63], pa.uint64()))
    fails("SELECT x FROM 'bad.parquet'", '"bad.parquet", row group 0, column "x": row 2', "9223372036854775808", "out of range")
    one(pa.array([1000, 1001], pa.timestamp("ns")))
    fails("SELECT x FROM 'bad.parquet'", 'row group 0, column "x": row 2', "1001", "microseconds")
    one(pa.array([0, 2**62], pa.timestamp("us")))
    fails("SELECT x FROM 'bad.parquet'", "row 2", "out of range")
    one(pa.array([[1], [2]]))
    equal(run("SELECT count(*) FROM 'bad.parquet'").out, "2\n")
    fails("SELECT x FROM 'bad.parquet'", '"bad.parquet", row group 0, column "x": nested values', "Name the other columns")
    one(pa.array([decimal.Decimal(1)], pa.decimal256(50, 2)))
    fails("SELECT x FROM 'bad.parquet'", 'row group 0, column "x": numbers of type decimal256(50, 2)')
    one(pa.array([NOW], pa.timestamp("ns")), use_deprecated_int96_timestamps=True)
    fails("SELECT x FROM 'bad.parquet'", 'row group 0, column "x"', "INT96")
    bytes_of = pa.array([b"ab", b"\xff\xfe"]).cast(pa.binary())
    text = pa.Array.from_buffers(pa.utf8(), 2, bytes_of.buffers())
    one(text)
    fails("SELECT x FROM 'bad.parquet'", 'column "x": row 2')
    one(pa.array(["a\0b"]))
    fails("SELECT x FROM 'bad.parquet'", 'column "x": row 1')
    shutil.copy(path("bad.parquet"), path("nameless"))
    fails("CREATE TABLE t (x TEXT); COPY t FROM 'nameless'", '"nameless" is a Parquet file, not CSV', "FORMAT parquet")
    fails("SELECT * FROM read_csv('nameless')", '"nameless" is a Parquet file, not CSV', "read_parquet reads it")
    fails("SELECT * FROM 'absent.parquet'", "absent.parquet", "No such file")
    fails("SELECT * FROM read_parquet('bad.parquet', delim = ';')", 'option "delim" of read_parquet is not supported')


def test_selections():
    """Many row groups and large ones, columns, several files, LIMIT, CREATE TABLE, COPY and .import."""
    chance = random.Random(3)
    rows = 200_000
    table = pa.table({"Id": pa.array(range(rows), pa.int64()), "k": pa.array([chance.randrange(100) for _ in range(rows)], pa.int32()),
                      "t": pa.array([None if i % 7 == 0 else f"text {i % 1000}" for i in range(rows)])})
    for size in (1000, 64 * 1024, rows):
        pq.write_table(table, path("many.parquet"), row_group_size=size, compression="zstd")
        for sql in ("SELECT count(*), sum(id), sum(k), count(t), min(t), max(t) FROM 'many.parquet'", "SELECT count(*) FROM 'many.parquet'",
                    "SELECT k, count(*), sum(id) FROM 'many.parquet' WHERE t IS NOT NULL GROUP BY k ORDER BY k",
                    "SELECT t, count(*) FROM 'many.parquet' WHERE k = 3 GROUP BY t ORDER BY t NULLS FIRST LIMIT 7"):
            found = [tuple(line.split(",")) for line in run(sql).out.rstrip("\n").split("\n")]
            os.chdir(WORK)
            theirs = [tuple("" if v is None else str(v) for v in row) for row in duckdb.sql(sql).fetchall()]
            equal(found, theirs, sql)
        equal(run("SELECT id FROM 'many.parquet' LIMIT 3").out, "0\n1\n2\n")
        equal(run("SELECT id FROM 'many.parquet' LIMIT 2 OFFSET 1500; SELECT count(id) FROM 'many.parquet'").out, f"1500\n1501\n{rows}\n")
    # A row group of more than a million of rows is read in pieces.
    large = pa.table({"n": pa.array(range(2_500_000), pa.int32()), "s": pa.array([str(i % 10) for i in range(2_500_000)])})
    pq.write_table(large, path("large.parquet"), row_group_size=2_500_000)
    equal(pq.ParquetFile(path("large.parquet")).num_row_groups, 1)
    equal(run("SELECT count(*), sum(n), sum(s::INTEGER) FROM 'large.parquet'").out,
          f"2500000,{sum(range(2_500_000))},{sum(i % 10 for i in range(10)) * 250_000}\n")
    os.remove(path("large.parquet"))
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}), path("part1.parquet"))
    pq.write_table(pa.table({"b": ["y"], "c": [2.5], "a": pa.array([2**40], pa.int64())}), path("part2.parquet"))
    equal(run("SELECT * FROM read_parquet('part*.parquet', filename = true, union_by_name = true) ORDER BY a").out,
          "1,x,,part1.parquet\n1099511627776,y,2.5,part2.parquet\n")
    fails("SELECT * FROM 'part*.parquet'", "differ in their columns", "union_by_name")
    database = [path("db")]
    equal(run("CREATE TABLE t AS SELECT * FROM 'many.parquet'; SELECT count(*), sum(id) FROM t; CREATE TABLE u (k SMALLINT, id BIGINT, "
              "t VARCHAR(20)); COPY u FROM 'many.parquet' (FORMAT parquet); SELECT count(*), sum(id), sum(k), count(t) FROM u", database).out,
          f"200000,{rows * (rows - 1) // 2}\n200000,{rows * (rows - 1) // 2},{sum(table['k'].to_pylist())},{rows - (rows + 6) // 7}\n")
    fails(f"CREATE TABLE v (a INTEGER); COPY v FROM 'many.parquet'", "has 3 columns")
    fails(f"CREATE TABLE v (id INTEGER NOT NULL, t TEXT NOT NULL); COPY v (id, t) FROM 'many.parquet'", "null value in column")
    equal(run("CREATE TABLE w (a BIGINT, b TEXT); COPY w FROM 'part1.parquet'; SELECT * FROM w").out, "1,x\n")
    done = subprocess.run([TESSERA, "-csv"], input="CREATE TABLE w (a BIGINT, b TEXT);\n.import part1.parquet w\nSELECT a, b FROM w;\n",
                          cwd=WORK, capture_output=True, text=True)
    equal(done.stdout.split("\n")[-3:], ["a,b", "1,x", ""], done.stderr)


def test_exported():
    run("CREATE TYPE mood AS ENUM ('sad', 'happy'); CREATE TABLE t (id INTEGER PRIMARY KEY, d DECIMAL(9,2), s VARCHAR(9), m mood); "
        "INSERT INTO t VALUES (1, 1.25, 'x', 'happy'), (2, NULL, NULL, NULL); EXPORT DATABASE 'exported' (FORMAT parquet)")
    equal(pq.read_table(path("exported/t.parquet")).column("s").to_pylist(), ["x", None])
    equal(run("IMPORT DATABASE 'exported'; SELECT * FROM t ORDER BY id").out, "1,1.25,x,happy\n2,,,\n")


def test_written():
    """What COPY TO writes, pyarrow, DuckDB and we read."""
    sql = ("SELECT * FROM (VALUES (1::SMALLINT, 2, 3::BIGINT, 1.5::REAL, 0.1::DOUBLE PRECISION, 1.25::DECIMAL(9,2), -7::DECIMAL(38,3), "
           "true, DATE '2024-02-29', TIMESTAMP '2024-02-29 12:34:56.789012', TIME '23:59:59.5', 'Grüße', '\\x00ff'::BYTEA, "
           "UUID '01234567-89ab-cdef-fedc-ba9876543210', TIMESTAMPTZ '2024-02-29 12:34:56+00'), "
           "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)) "
           "AS t (a, b, c, d, e, f, g, h, i, j, k, l, m, n, o)")
    ours = run(f"SET timezone = 'UTC'; {sql}").out
    expected = [1, 2, 3, 1.5, 0.1, decimal.Decimal("1.25"), decimal.Decimal("-7.000"), True, datetime.date(2024, 2, 29), NOW,
                datetime.time(23, 59, 59, 500000), "Grüße", b"\x00\xff"]
    for options in ("", ", COMPRESSION zstd", ", COMPRESSION snappy", ", COMPRESSION none", ", ROW_GROUP_SIZE 1"):
        equal(run(f"COPY ({sql}) TO 'out.parquet' (FORMAT parquet{options})").out, "")
        equal(run("SET timezone = 'UTC'; SELECT * FROM 'out.parquet'").out, ours, options)
        table = pq.read_table(path("out.parquet"))
        equal([table.column(c)[0].as_py() for c in range(13)], expected, options)
        equal(str(table.schema.field("o").type), "timestamp[us, tz=UTC]")
        row = duckdb.sql(f"SELECT * FROM '{path('out.parquet')}'").fetchall()
        equal(list(row[0][:13]), expected, options)
        equal(row[0][13], uuid.UUID("01234567-89ab-cdef-fedc-ba9876543210"))
        equal(row[1], (None,) * 15)
        codec = pq.ParquetFile(path("out.parquet")).metadata.row_group(0).column(0).compression
        equal(codec, {"zstd": "ZSTD", "none": "UNCOMPRESSED"}.get(options.split(" ")[-1], "SNAPPY"), options)
    equal(pq.ParquetFile(path("out.parquet")).num_row_groups, 2)
    for name, options in (("out.arrow", ""), ("out.feather", " (COMPRESSION zstd)"), ("out.arrows", "")):
        run(f"COPY ({sql}) TO '{name}'{options}")
        equal(run(f"SET timezone = 'UTC'; SELECT * FROM '{name}'").out, ours, name)
    table = feather.read_table(path("out.feather"))
    equal([table.column(c)[0].as_py() for c in range(13)], expected)
    equal(ipc.open_stream(path("out.arrows")).read_all().num_rows, 2)
    run("COPY (SELECT i, i % 10 AS k FROM range(100000) AS r (i)) TO 'groups.parquet' (ROW_GROUP_SIZE 30000)")
    groups = pq.ParquetFile(path("groups.parquet"))
    equal([groups.metadata.row_group(g).num_rows for g in range(groups.num_row_groups)], [30000, 30000, 30000, 10000])
    equal(groups.read()["i"].to_pylist(), list(range(100000)))
    run("COPY (SELECT 1 AS a WHERE false) TO 'none.parquet'")
    equal(pq.read_table(path("none.parquet")).num_rows, 0)
    equal(run("SELECT count(*) FROM 'none.parquet'").out, "0\n")
    run("CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE m (a mood); INSERT INTO m VALUES ('ok'), (NULL); COPY m TO 'mood.parquet'; "
        "COPY m FROM 'mood.parquet'", [path("moods")])
    equal(run("SELECT a FROM m ORDER BY a", [path("moods")]).out, "ok\nok\n\n\n")
    run("COPY (SELECT 1 AS a, 2 AS a) TO 'twice.parquet'")
    equal(pq.read_table(path("twice.parquet")).column_names, ["a", "a_1"])
    # Whole or not at all.
    run("COPY (SELECT 1 AS a) TO 'kept.parquet'")
    fails("COPY (SELECT 9223372036854700000 + i AS a FROM range(100000) AS r (i)) TO 'kept.parquet'", "out of range")
    equal(run("SELECT a FROM 'kept.parquet'").out, "1\n")
    equal([name for name in os.listdir(WORK) if "writing" in name], [])
    fails("COPY (SELECT 1) TO 'x.parquet' (COMPRESSION lzo)", 'compression "lzo" is not supported', "zstd")
    fails("COPY (SELECT 1) TO 'x.parquet' (ROW_GROUP_SIZE 0)", "row_group_size takes a number")
    fails("COPY (SELECT 1) TO 'x.parquet' (HEADER true)", 'option "header" is not supported for Parquet')
    fails("COPY (SELECT INTERVAL '1 day' AS a) TO 'x.parquet'", 'column "a": Parquet has no INTERVAL')
    run("COPY (SELECT INTERVAL '1 month 2 days 03:04:05.5' AS a, -INTERVAL '1 day 1 second' AS b) TO 'x.arrow'")
    equal(run("SELECT a, b FROM 'x.arrow'").out, "1 mon 2 days 03:04:05.5,-1 days -00:00:01\n")
    fails("COPY (SELECT 1) TO 'none/x.parquet'", "none/x.parquet", "No such file")


def test_partitioned():
    """Folders by value, which pyarrow and DuckDB read."""
    run("COPY (SELECT i % 3 AS k, DATE '2024-01-01' + i % 2 AS d, i AS n FROM generate_series(1, 600) t (i)) TO 'hive' "
        "(FORMAT parquet, COMPRESSION zstd, PARTITION_BY (k, d))")
    equal(sorted(os.path.relpath(name, path("hive")) for name in glob.glob(path("hive/*/*/*"))),
          [f"k={k}/d=2024-01-0{d}/data_0.parquet" for k in range(3) for d in (1, 2)])
    found = duckdb.sql(f"SELECT k, d::text, count(*), sum(n) FROM read_parquet('{path('hive/*/*/*.parquet')}', hive_partitioning = true) "
                       "GROUP BY ALL ORDER BY ALL").fetchall()
    equal(found, [(k, f"2024-01-0{d + 1}", 100, sum(i for i in range(1, 601) if i % 3 == k and i % 2 == d)) for k in range(3)
                  for d in (0, 1)])
    equal(run("SELECT count(*), sum(n) FROM 'hive/*/*/*.parquet'").out, "600,180300\n")
    # A folder that is ruled out is not read: here its pages are broken.
    metadata = pq.ParquetFile(path("hive/k=1/d=2024-01-01/data_0.parquet")).metadata.row_group(0).column(0)
    with open(path("hive/k=1/d=2024-01-01/data_0.parquet"), "r+b") as file:
        file.seek(metadata.dictionary_page_offset or metadata.data_page_offset)
        file.write(b"\xff" * metadata.total_compressed_size)
    folders = "read_parquet('hive/*/*/*.parquet', hive_partitioning = true)"
    equal(run(f"SELECT k, count(*), sum(n) FROM {folders} WHERE d = DATE '2024-01-02' GROUP BY k ORDER BY k LIMIT 1").out,
          f"0,100,{sum(range(3, 601, 6))}\n")
    equal(run(f"SELECT count(*), sum(n) FROM {folders} WHERE k = 2").out, f"200,{sum(range(2, 601, 3))}\n")
    fails(f"SELECT sum(n) FROM {folders} WHERE k = 1", '"hive/k=1/d=2024-01-01/data_0.parquet", row group 0, column "n": Could')


def test_changed():
    """A file that changed between statements is read again."""
    pq.write_table(pa.table({"a": [1, 2, 3]}), path("new.parquet"))
    pq.write_table(pa.table({"a": [10, 20]}), path("next.parquet"))
    process = subprocess.Popen([TESSERA, "-csv", "-noheader"], cwd=WORK, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write("SELECT sum(a) FROM 'new.parquet';\n")
    process.stdin.flush()
    equal(process.stdout.readline(), "6\n")
    os.replace(path("next.parquet"), path("new.parquet"))
    out, _ = process.communicate("SELECT sum(a) FROM 'new.parquet';\n", timeout=60)
    equal(out, "30\n")


def long_ago(name):
    """Files that were written just now are read again each time."""
    os.utime(path(name), (1_600_000_000, 1_600_000_000))


def test_kept_files():
    """What is kept of a file is of that file alone: not when it was replaced, written anew in its place, or removed."""
    numbers = [0] if not os.path.exists(os.path.join(BUILD, "tessera_mpi.so")) or not shutil.which("mpirun") else [0, 2]
    for ranks in numbers:
        for name, values in (("kept", [1, 2, 3]), ("kept1", [10, 20]), ("kept2", [5])):
            pq.write_table(pa.table({"a": values}), path(name + ".parquet"))
            long_ago(name + ".parquet")
        ask = "SELECT sum(a) FROM 'kept.parquet';"
        equal(script([ask, ask, ".shell mv kept1.parquet kept.parquet", ask, ask, ".shell cp kept2.parquet kept.parquet", ask], ranks=ranks).out,
              "6\n6\n30\n30\n5\n", ranks)
        gone = script([ask, ".shell rm kept.parquet", ask], status=1, ranks=ranks)
        equal(gone.out, "5\n")
        equal("kept.parquet" in gone.err, True, gone.err)


def test_keys_of_files():
    """A sorted column that is found to be a key makes joins those of a key, until the file is another one."""
    def write(name, **columns):
        pq.write_table(pa.table({c: pa.array(v, pa.int64()) for c, v in columns.items()}), path(name), row_group_size=100)
        long_ago(name)

    write("facts.parquet", f=[i * 7 % 300 for i in range(3000)], g=[i % 3 for i in range(3000)])
    write("one.parquet", k=range(300), x=range(300))
    write("pairs.parquet", k=[i // 3 for i in range(900)], l=[(i * 2) % 3 for i in range(900)], x=range(900))
    write("equal.parquet", k=[*range(100), 99, *range(100, 200)], x=range(201))
    join = "SELECT count(*), sum(x) FROM 'facts.parquet' JOIN '{}' ON {};"
    one, two = join.format("one.parquet", "f = k") + ";", join.format("pairs.parquet", "f = k AND g = l") + ";"
    found = run(f"{one} EXPLAIN {one} {two} EXPLAIN {two}").out
    equal(found.count("(unique key)"), 2, found)
    equal([line for line in found.split("\n") if line[:1].isdigit()][:2], ["3000,448500", "3000,1348500"], found)
    # A row group's last value is the next one's first.
    equal(run(join.format("equal.parquet", "f = k")).out, "2010,201000\n")
    changed = script([one, one, ".shell cp -p equal.parquet one.parquet", one, "EXPLAIN " + one]).out
    equal((changed.split("\n")[:3], changed.count("(unique key)")), (["3000,448500", "3000,448500", "2010,201000"], 0), changed)
    equal(run("DESCRIBE 'pairs.parquet'").out, run(f"{two} DESCRIBE 'pairs.parquet'").out.split("\n", 1)[1])


def skips_row_groups(decimals_are_integers):
    """Decimals that are not integers are bytes, and those of more than 18 digits always."""
    rows = 20_000
    table = pa.table({
        "k": pa.array(range(rows), pa.int64()), "s": [f"text {i % 7}" for i in range(rows)],
        "d": pa.array([datetime.date(2020, 1, 1) + datetime.timedelta(days=i // 100) for i in range(rows)]),
        "t": pa.array([NOW + datetime.timedelta(seconds=i) for i in range(rows)], pa.timestamp("ns")),
        "m": pa.array([decimal.Decimal(i - 10_000) / 100 for i in range(rows)], pa.decimal128(12, 2)),
        "w": pa.array([decimal.Decimal(i - 10_000) / 100 for i in range(rows)], pa.decimal128(25, 2)),
        "n": pa.array([None if i < 1000 else i % 5 for i in range(rows)], pa.int32()),
        "x": pa.array([float("nan") if i == 4321 else i / 4 for i in range(rows)]),
    })
    pq.write_table(table, path("groups.parquet"), row_group_size=1000, compression="none", store_decimal_as_integer=decimals_are_integers)
    sql = """SELECT count(*), sum(k), min(s) FROM 'groups.parquet' WHERE k BETWEEN 2500 AND 3499;
        SELECT count(*), sum(k) FROM 'groups.parquet' WHERE d = DATE '2020-01-26';
        SELECT count(*), sum(k) FROM 'groups.parquet' WHERE t < TIMESTAMP '2024-02-29 12:35:00';
        SELECT count(*), sum(k) FROM 'groups.parquet' WHERE m = -74.01;
        SELECT count(*), sum(k) FROM 'groups.parquet' WHERE w BETWEEN -74.01 AND -74.00;
        SELECT count(*), sum(k) FROM 'groups.parquet' WHERE w > 74.00 AND m < 74.02;
        SELECT count(*) FROM 'groups.parquet' WHERE n IS NULL;
        SELECT count(*) FROM 'groups.parquet' WHERE k > 1000000"""
    answers = ("1000,2999500,text 0\n100,254950\n4,6\n1,2599\n2,5199\n1,17401\n1000\n0\n")
    equal(run(sql).out, answers)
    # (NaN is the greatest value, and in no statistics.)
    equal(run("SELECT count(*) FROM 'groups.parquet' WHERE x > 1000000").out, "1\n")
    metadata = pq.ParquetFile(path("groups.parquet")).metadata
    with open(path("groups.parquet"), "r+b") as file:
        for group in (5, 19):
            for column in range(metadata.num_columns):
                chunk = metadata.row_group(group).column(column)
                file.seek(chunk.dictionary_page_offset or chunk.data_page_offset)
                file.write(b"\xff" * chunk.total_compressed_size)
    equal(run(sql).out, answers)
    equal(run("SELECT count(*) FROM 'groups.parquet'").out, "20000\n")
    fails("SELECT sum(k) FROM 'groups.parquet'", '"groups.parquet", row group ', 'column "k"')


def test_row_groups_are_skipped():
    """What the footer rules out is not read: there the pages may be broken."""
    skips_row_groups(True)
    skips_row_groups(False)
    # Several files: columns of other types, and of one file alone.
    pq.write_table(pa.table({"k": pa.array([1, 2], pa.int32()), "s": ["a", None]}), path("u1.parquet"))
    pq.write_table(pa.table({"k": pa.array([3.5]), "more": [7]}), path("u2.parquet"))
    equal(run("SELECT k, s, more, filename FROM read_parquet('u?.parquet', union_by_name = true, filename = true) ORDER BY k").out,
          "1,a,,u1.parquet\n2,,,u1.parquet\n3.5,,7,u2.parquet\n")
    pq.write_table(pa.table({"k": pa.array([], pa.int64())}), path("none.parquet"))
    equal(run("SELECT count(*), sum(k) FROM 'none.parquet'; SELECT k FROM 'none.parquet' WHERE k = 1").out, "0,\n")


def test_statistics_that_lie():
    """Values that are not within what the footer says are an error where they are read."""
    pq.write_table(pa.table({"k": pa.array(range(1000), pa.int64()), "v": [1] * 1000}), path("lie.parquet"), compression="none",
                   use_dictionary=False)
    whole = open(path("lie.parquet"), "rb").read()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    lie = whole[:footer] + whole[footer:].replace((999).to_bytes(8, "little"), (500).to_bytes(8, "little"))
    with open(path("lie.parquet"), "wb") as file:
        file.write(lie)
    fails("SELECT sum(k) FROM 'lie.parquet'", '"lie.parquet", row group 0, column "k"', "statistics of the footer")
    equal(run("SELECT count(*), sum(v) FROM 'lie.parquet'").out, "1000,1000\n")


def test_broken():
    """Files that were cut or changed are errors, or other values, and never a crash."""
    table = pa.table({"a": pa.array(range(300), pa.int32()), "s": pa.array([f"t{i % 20}" for i in range(300)]),
                      "d": pa.array([decimal.Decimal(i) for i in range(300)], pa.decimal128(20, 2)),
                      "n": pa.array([None if i % 3 else i / 2 for i in range(300)])})
    pq.write_table(table, path("good.parquet"), row_group_size=100, compression="zstd")
    pq.write_table(table, path("plain.parquet"), row_group_size=100, compression="none", use_dictionary=False)
    with ipc.new_file(path("good.arrow"), table.schema) as out:
        out.write_table(table, max_chunksize=100)
    with ipc.new_stream(path("good.arrows"), table.schema) as out:
        out.write_table(table, max_chunksize=100)
    fails("SELECT * FROM read_parquet('good.arrow')", "good.arrow")
    fails("SELECT * FROM read_arrow('good.parquet')", "good.parquet")
    chance = random.Random(7)
    os.makedirs(path("broken"))
    names = []
    for source in ("good.parquet", "plain.parquet", "good.arrow", "good.arrows"):
        with open(path(source), "rb") as file:
            good = file.read()
        for number in range(100):
            data = bytearray(good)
            kind = number % 4
            if kind == 0:
                del data[chance.randrange(len(data)):]
            elif kind == 1:  # in the footer, or the first message
                at = chance.randrange(max(len(data) - 2000, 0), len(data)) if "parquet" in source else chance.randrange(1000)
                data[at] ^= 1 << chance.randrange(8)
            else:
                for _ in range(1 if kind == 2 else 20):
                    data[chance.randrange(len(data))] = chance.randrange(256)
            name = f"broken/{number}_{source}"
            with open(path(name), "wb") as file:
                file.write(data)
            names.append(name)
    named = 0
    for first in range(0, len(names), 25):
        script = "SET memory_limit = '1GiB';\n" + "".join(
            f"SELECT '{name}' AS name, count(*), sum(a), max(s), sum(d), sum(n) FROM '{name}';\n" for name in names[first:first + 25])
        done = subprocess.run([TESSERA, "-csv", "-noheader", "-cmd", ".bail off"], input=script, cwd=WORK, capture_output=True, text=True,
                              timeout=300)
        if done.returncode not in (0, 1, 2):
            raise AssertionError(f"status {done.returncode} in {names[first:first + 25]}\n{done.stderr[-2000:]}")
        for name in names[first:first + 25]:
            if name in done.stdout or name in done.stderr:
                named += 1
            else:
                raise AssertionError(f"nothing is said of {name}\n{done.stdout}{done.stderr}")
    equal(named, 400)


def test_ranks():
    """A file on two ranks."""
    if not os.path.exists(os.path.join(BUILD, "tessera_mpi.so")) or not shutil.which("mpirun"):
        return
    pq.write_table(pa.table({"a": pa.array(range(5000), pa.int32()), "k": pa.array([i % 7 for i in range(5000)])}), path("ranks.parquet"),
                   row_group_size=500)
    equal(run("SELECT k, count(*), sum(a) FROM 'ranks.parquet' GROUP BY k ORDER BY k LIMIT 2", ranks=2).out, run(
        "SELECT k, count(*), sum(a) FROM 'ranks.parquet' GROUP BY k ORDER BY k LIMIT 2").out)


def test_without_plugin():
    """Without the plugin a file is an error that says how to get it."""
    lone = path("lone")
    os.makedirs(lone)
    shutil.copy(TESSERA, lone)
    pq.write_table(pa.table({"a": [1]}), path("one.parquet"))
    done = subprocess.run([os.path.join(lone, "tessera"), "-c", "SELECT * FROM 'one.parquet'"], cwd=WORK, capture_output=True, text=True)
    equal(done.returncode != 0, True)
    for part in ("one.parquet", "needs Apache Arrow", "there is no", "tessera_arrow.so", "make arrow"):
        if part not in done.stderr:
            raise AssertionError(f"no {part!r} in {done.stderr}")
    with open(os.path.join(lone, "tessera_arrow.so"), "w") as file:
        file.write("no library")
    done = subprocess.run([os.path.join(lone, "tessera"), "-c", "COPY (SELECT 1) TO 'two.parquet'"], cwd=WORK, capture_output=True, text=True)
    equal((done.returncode != 0, os.path.exists(path("two.parquet"))), (True, False))
    for part in ("two.parquet", "needs Apache Arrow", "make arrow"):
        if part not in done.stderr:
            raise AssertionError(f"no {part!r} in {done.stderr}")


def main():
    passed = failed = 0
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        try:
            test()
            passed += 1
        except (AssertionError, OSError, subprocess.SubprocessError) as error:
            print(f"FAILED: {name}: {error}")
            failed += 1
    shutil.rmtree(WORK, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
