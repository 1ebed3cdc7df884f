#!/usr/bin/env python3
"""The Python package, the C interface and the driver of ADBC, as programs use them.

    tests/python/python_test.py BUILD_DIR

Runs with the Python of build/venv if it is there (tests/setup makes it): it has pyarrow, pandas, polars, DuckDB and ADBC's
manager. Without them what needs them is left out, and named. Ends with "N passed, N failed".
"""

import datetime
import decimal
import importlib.util
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.join(ROOT, "build")
LIBRARY = os.path.join(BUILD, "libtessera.so")
VENV = os.path.join(ROOT, "build", "venv", "bin", "python")

if os.path.exists(VENV) and sys.prefix == sys.base_prefix:
    os.execv(VENV, [VENV, *sys.argv])
if not os.path.exists(LIBRARY):  # with a sanitizer
    print("there is no libtessera.so in this build\n1 passed, 0 failed")
    sys.exit(0)

sys.path.insert(0, os.path.join(ROOT, "python"))
os.environ["TESSERA_LIBRARY"] = LIBRARY
warnings.simplefilter("error")
import tessera  # noqa: E402

OPTIONS = {"device": "host", "threads": 2}


def needs(*modules):
    def mark(function):
        function.needs = modules
        return function
    return mark


def check(got, expected):
    if got != expected:
        raise AssertionError(f"got      {got!r}\n         expected {expected!r}")


def fails(kind, function, *arguments, sqlstate=None, says=""):
    try:
        function(*arguments)
    except kind as error:
        if sqlstate is not None:
            check(error.sqlstate, sqlstate)
        if says not in str(error):
            raise AssertionError(f"{says!r} is not in {error}")
        return error
    raise AssertionError(f"no {kind.__name__}")


def open_memory():
    return tessera.connect(**OPTIONS)


# ---- Results

EVERY_TYPE = """SELECT * FROM (VALUES
  (true, 1::smallint, 2::integer, 3::bigint, 1.5::real, 2.25::double precision, 12.50::decimal(8,2),
   12345678901234567890123456.789::decimal(38,3), DATE '2024-02-29', TIMESTAMP '2024-02-29 12:34:56.789',
   TIMESTAMPTZ '2024-02-29 12:00:00+02', TIME '23:59:59.5', INTERVAL '1 month 2 days 03:00:00', 'grüße', 'xy'::bytea,
   '00112233-4455-6677-8899-aabbccddeeff'::uuid),
  (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL))
  v (t, s, i, b, r, d, d8, d38, day, ts, tz, tm, iv, txt, bin, u) ORDER BY i NULLS LAST"""
EVERY_VALUE = (True, 1, 2, 3, 1.5, 2.25, decimal.Decimal("12.50"), decimal.Decimal("12345678901234567890123456.789"),
               datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 12, 34, 56, 789000),
               datetime.datetime(2024, 2, 29, 10, tzinfo=datetime.timezone.utc), datetime.time(23, 59, 59, 500000),
               datetime.timedelta(days=32, hours=3), "grüße", b"xy", uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"))


def test_values_of_every_type():
    result = open_memory().sql(EVERY_TYPE)
    check(result.fetchall(), [EVERY_VALUE, (None,) * len(EVERY_VALUE)])
    check(result.types, ["BOOLEAN", "SMALLINT", "INTEGER", "BIGINT", "REAL", "DOUBLE PRECISION", "DECIMAL(8,2)",
                         "DECIMAL(38,3)", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIME", "INTERVAL", "TEXT", "BYTEA",
                         "UUID"])


def test_enums():
    connection = open_memory()
    connection.sql("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
    connection.sql("CREATE TABLE t (m mood); INSERT INTO t VALUES ('happy'), (NULL), ('sad')")
    result = connection.sql("SELECT m FROM t ORDER BY m NULLS LAST")
    check(result.fetchall(), [("sad",), ("happy",), (None,)])
    check(result.types, ["ENUM"])


def test_results_of_many_batches():
    connection = open_memory()
    connection.sql("CREATE TABLE t AS SELECT n AS a, n * 3::bigint AS b, 'text ' || n AS s FROM generate_series(1, 100000) g (n)")
    result = connection.sql("SELECT a, b, s FROM t ORDER BY a")
    check(len(result), 100000)
    check(result.rowcount, 100000)
    check(result.fetchone(), (1, 3, "text 1"))
    check(result.fetchmany(2), [(2, 6, "text 2"), (3, 9, "text 3")])
    rest = result.fetchall()
    check((len(rest), rest[-1]), (99997, (100000, 300000, "text 100000")))
    check(result.fetchone(), None)
    check(sum(row[0] for row in result), 5000050000)  # from the first row again


def test_results_outlive_their_connection():
    connection = open_memory()
    result = connection.sql("SELECT 'x' || n AS s FROM generate_series(1, 50000) g (n)")
    cursor = connection.execute("SELECT 1 AS n")
    connection.close()
    connection.close()
    check(len(result.fetchall()), 50000)
    check(cursor.fetchall(), [(1,)])
    fails(tessera.InterfaceError, connection.sql, "SELECT 1", says="closed")


def test_empty_results_and_text():
    connection = open_memory()
    check(connection.sql("SELECT 1 AS a WHERE false").fetchall(), [])
    check(connection.sql("SELECT 1 AS a WHERE false").columns, ["a"])
    made = connection.sql("CREATE TABLE t (a INTEGER)")
    check((made.columns, made.tag, made.rowcount, repr(made)), ([], "CREATE TABLE", -1, "CREATE TABLE"))
    check(connection.sql("INSERT INTO t VALUES (1), (2)").rowcount, 2)
    check(connection.sql("SELECT * FROM t WHERE a = 1").rowcount, 1)
    check(connection.sql("EXPLAIN SELECT a FROM t").columns, ["QUERY PLAN"])
    check(connection.sql("COPY t TO STDOUT").fetchall(), [("1",), ("2",)])
    check(connection.sql("INSERT INTO t VALUES (3) RETURNING a * 2 AS b").fetchall(), [(6,)])


def test_shown_results():
    result = open_memory().sql("SELECT 1 AS n, '<b>' AS s")
    check(repr(result), "+---+-----+\n| n | s   |\n+---+-----+\n| 1 | <b> |\n+---+-----+")
    check("<td>&lt;b&gt;</td>" in result._repr_html_(), True)


# ---- PEP 249

def test_module():
    check((tessera.apilevel, tessera.threadsafety, tessera.paramstyle), ("2.0", 1, "qmark"))
    check(tessera.Date(2024, 1, 2), datetime.date(2024, 1, 2))
    check(issubclass(tessera.IntegrityError, tessera.DatabaseError) and issubclass(tessera.DatabaseError, tessera.Error), True)


def test_cursor():
    with open_memory() as connection, connection.cursor() as cursor:
        check(cursor.description, None)
        cursor.execute("CREATE TABLE t (a INTEGER, b DECIMAL(8,2), s TEXT)")
        check(cursor.description, None)
        fails(tessera.ProgrammingError, cursor.fetchall, says="no rows")
        cursor.executemany("INSERT INTO t VALUES (?, ?, ?)", [(i, decimal.Decimal(i) / 4, str(i)) for i in range(100)])
        check(cursor.rowcount, 100)
        cursor.execute("SELECT a, b, s FROM t WHERE a >= ? ORDER BY a", [97])
        check([column[:2] for column in cursor.description], [("a", "INTEGER"), ("b", "DECIMAL(8,2)"), ("s", "TEXT")])
        check(cursor.description[1][4:6], (8, 2))
        check(cursor.description[1][1] == tessera.NUMBER and cursor.description[2][1] == tessera.STRING, True)
        check(cursor.description[0][1] == tessera.STRING, False)
        check(cursor.rowcount, 3)
        check(cursor.fetchone(), (97, decimal.Decimal("24.25"), "97"))
        check(cursor.fetchmany(1), [(98, decimal.Decimal("24.50"), "98")])
        check(list(cursor), [(99, decimal.Decimal("24.75"), "99")])


def test_parameters_of_every_type():
    connection = open_memory()
    for value in [*EVERY_VALUE, None, 1 << 40, -1 << 70, "", b"", decimal.Decimal("-0.001")]:
        if isinstance(value, datetime.timedelta) or value is None or value == "":
            continue
        check(connection.sql("SELECT ? AS v", [value]).fetchone(), (value,))
    check(connection.sql("SELECT ? + INTERVAL '1 day' AS v", [datetime.timedelta(hours=5)]).fetchone()[0],
          datetime.timedelta(days=1, hours=5))
    check(connection.sql("SELECT $1::integer IS NULL AS v, $2 || 'x' AS w", [None, ""]).fetchone(), (True, "x"))
    # A text takes the type of its place.
    check(connection.sql("SELECT DATE '2024-01-02' - ? AS v", ["2024-01-01"]).fetchone(), (1,))
    fails(tessera.ProgrammingError, connection.sql, "SELECT ?", [], sqlstate="42P02")
    fails(tessera.NotSupportedError, connection.sql, "SELECT ?", [object()], says="type object")
    fails(tessera.ProgrammingError, connection.sql, "SELECT ?", "x", says="sequence")
    fails(tessera.DataError, connection.sql, "SELECT ?", ["a\0b"], sqlstate="22021", says="NUL")


def test_transactions():
    connection = open_memory()
    connection.sql("CREATE TABLE t (a INTEGER PRIMARY KEY)")
    connection.begin()
    connection.sql("INSERT INTO t VALUES (1)")
    check(connection.in_transaction, True)
    connection.rollback()
    check(connection.sql("SELECT count(*) FROM t").fetchone(), (0,))
    connection.commit()  # nothing is open
    fails(tessera.IntegrityError, connection.cursor().executemany, "INSERT INTO t VALUES (?)", [(1,), (2,), (1,)],
          sqlstate="23505")
    check(connection.in_transaction, False)
    check(connection.sql("SELECT count(*) FROM t").fetchone(), (0,))


def test_without_autocommit():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "my.db")
        one = tessera.connect(path, autocommit=False, **OPTIONS)
        one.execute("CREATE TABLE t (a INTEGER)")
        one.commit()
        one.execute("INSERT INTO t VALUES (1)")
        two = one.duplicate()
        check(two.execute("SELECT count(*) FROM t").fetchone(), (0,))
        one.commit()
        two.rollback()
        check(two.execute("SELECT count(*) FROM t").fetchone(), (1,))
        one.execute("DELETE FROM t")
        one.close()  # rolls back
        two.rollback()
        check(two.execute("SELECT count(*) FROM t").fetchone(), (1,))


def test_errors():
    connection = open_memory()
    error = fails(tessera.ProgrammingError, connection.sql, "SELECT 1;\nSELECT grüße FROM nowhere", sqlstate="42P01")
    check(error.position, len("SELECT 1;\nSELECT grüße FROM ".encode()) - len("SELECT 1;\n"))
    fails(tessera.DataError, connection.sql, "SELECT 'x' || n::text = 'y', ('x' || n)::integer FROM generate_series(1, 3) g (n)", sqlstate="22P02")
    fails(tessera.NotSupportedError, connection.sql, "SELECT ROW(1, 2)", sqlstate="0A000")
    fails(tessera.ProgrammingError, connection.sql, "  -- nothing", says="no statement")
    fails(tessera.OperationalError, lambda: tessera.connect("/nowhere/x/y", read_only=True))
    try:
        connection.sql("COMMIT")
    except UserWarning as warning:
        check("no transaction" in str(warning), True)
    else:
        raise AssertionError("COMMIT without a transaction warns")


# ---- Threads, signals, processes

LONG = "SELECT count(*) FROM generate_series(1, 3000000) a (n), generate_series(1, 3000000) b (m) WHERE n % 7 = m % 11"


def test_interrupt_from_a_thread():
    connection = open_memory()
    begun = threading.Event()
    connection.set_progress(lambda *_: begun.set())
    thread = threading.Thread(target=lambda: begun.wait(60) and connection.interrupt())
    thread.start()
    begin = time.monotonic()
    fails(tessera.OperationalError, connection.sql, LONG, sqlstate="57014")
    thread.join()
    connection.set_progress(None)
    check(time.monotonic() - begin < 20, True)
    check(connection.sql("SELECT 1").fetchone(), (1,))


def test_control_c():
    connection = open_memory()
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGINT]).start()
    try:
        connection.sql(LONG)
    except KeyboardInterrupt:
        pass
    except tessera.OperationalError as error:
        check(error.sqlstate, "57014")
        try:
            time.sleep(1)
        except KeyboardInterrupt:
            pass
    check(connection.sql("SELECT 1").fetchone(), (1,))
    check(signal.getsignal(signal.SIGINT), signal.default_int_handler)


def test_other_threads_run_meanwhile():
    connection = open_memory()
    turns = []
    done = threading.Event()

    def count():
        while not done.is_set():
            turns.append(1)
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    connection.sql("SELECT count(*) FROM generate_series(1, 20000000) g (n) WHERE n % 7 = 3")
    done.set()
    thread.join()
    check(len(turns) >= 2, True)


def test_connections_of_threads():
    connection = open_memory()
    connection.sql("CREATE TABLE t AS SELECT n FROM generate_series(1, 100000) g (n)")
    sums = []

    def run(own):
        for _ in range(10):
            sums.append(own.sql("SELECT sum(n) FROM t").fetchone()[0])

    threads = [threading.Thread(target=run, args=[connection.duplicate()]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(sums, [5000050000] * 40)


@needs("pyarrow")
def test_connections_share_what_is_kept_of_files():
    if not os.path.exists(os.path.join(BUILD, "tessera_arrow.so")):
        return
    import pyarrow
    import pyarrow.parquet
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "shared.parquet")
        pyarrow.parquet.write_table(pyarrow.table({"a": list(range(10000))}), path, row_group_size=1000)
        os.utime(path, (1_600_000_000, 1_600_000_000))  # a young file is read again each time
        first = open_memory()
        made = "SELECT misses FROM tessera_cache() WHERE cache = 'host' AND column_name IS NULL"
        check(first.sql(f"SELECT sum(a) FROM '{path}'").fetchall(), [(49995000,)])
        before = first.sql(made).fetchall()
        second = first.duplicate()
        check(second.sql(f"SELECT sum(a) FROM '{path}'").fetchall(), [(49995000,)])
        first.close()
        check(second.duplicate().sql(f"SELECT sum(a) FROM '{path}'").fetchall(), [(49995000,)])
        check(second.sql(made).fetchall(), before)
        pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2]}), path)
        check(second.sql(f"SELECT sum(a) FROM '{path}'").fetchall(), [(3,)])


def test_a_connection_is_one_threads():
    connection = open_memory()
    errors = []

    def run():
        while not errors:
            error = fails(tessera.OperationalError, connection.sql, LONG)
            if error.sqlstate != "55000":  # the main thread was in its own
                errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for _ in range(2000):  # until the other thread is in its statement
            try:
                connection.sql("SELECT 1")
                time.sleep(0.01)
            except tessera.OperationalError as error:
                check(error.sqlstate, "55000")
                break
        else:
            raise AssertionError("two threads used a connection")
    finally:
        while not errors:
            connection.interrupt()
            time.sleep(0.01)
        thread.join()
    check(errors[0].sqlstate, "57014")


def test_memory_limit():
    # Beyond it large blocks lie in temporary files; what strings of the C++ library have there must not go to free().
    connection = tessera.connect(device="host", threads=2, memory_limit=64 << 20)
    rows = connection.sql("SELECT n, repeat('x', 100) || n AS s FROM generate_series(1, 400000) g (n) ORDER BY s DESC")
    check(len(rows), 400000)
    check(rows.fetchone()[0], 99999)
    del rows
    connection.sql("SET temp_file_limit = '1MB'")
    error = fails(tessera.OperationalError, connection.sql,
                  "SELECT n, repeat('x', 200) || n AS s FROM generate_series(1, 1000000) g (n) ORDER BY s DESC")
    check(error.sqlstate[:2], "53")
    connection.sql("RESET memory_limit; RESET temp_file_limit")


def test_progress():
    connection = open_memory()
    connection.sql("CREATE TABLE t AS SELECT n FROM generate_series(1, 200000) g (n)")
    told = []
    connection.set_progress(lambda what, done, total: told.append((what, done <= total)))
    connection.sql("SELECT sum(n) FROM t")
    connection.set_progress(None)
    count = len(told)
    connection.sql("SELECT sum(n) FROM t")
    check(len(told), count)
    check(count > 0 and all(fits for _, fits in told), True)


def use_in_child(connection, queue):
    try:
        connection.sql("SELECT 1")
        queue.put("it ran")
    except tessera.OperationalError as error:
        own = open_memory().sql("SELECT 1").fetchone()
        queue.put((error.sqlstate, own))


def test_after_fork():
    connection = open_memory()
    connection.sql("SELECT count(*) FROM generate_series(1, 1000000) g (n)")
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    child = fork.Process(target=use_in_child, args=(connection, queue))
    child.start()
    check(queue.get(timeout=60), ("55000", (1,)))
    child.join(60)
    check(child.exitcode, 0)
    check(connection.sql("SELECT 1").fetchone(), (1,))


# ---- Other packages

@needs("pyarrow")
def test_arrow():
    import pyarrow

    connection = open_memory()
    table = connection.sql(EVERY_TYPE).arrow()
    table.validate(full=True)
    check([str(t) for t in table.schema.types],
          ["bool", "int16", "int32", "int64", "float", "double", "decimal128(8, 2)", "decimal128(38, 3)", "date32[day]",
           "timestamp[us]", "timestamp[us, tz=UTC]", "time64[us]", "month_day_nano_interval", "string", "binary", "string"])
    check(table.column("txt").to_pylist(), ["grüße", None])
    check(table.column("d38").to_pylist()[0], EVERY_VALUE[7])
    # Back again.
    back = connection.sql("SELECT * FROM \"table\" ORDER BY i NULLS LAST")
    check(back.fetchall()[0][:15], EVERY_VALUE[:15])
    check(back.fetchall(), [])
    check(pyarrow.table(connection.sql("SELECT 1 AS a")).to_pydict(), {"a": [1]})


@needs("pyarrow")
def test_arrow_types_in():
    import pyarrow as pa

    columns = {
        "u8": pa.array([255, None], pa.uint8()), "u16": pa.array([65535, None], pa.uint16()),
        "u32": pa.array([4294967295, None], pa.uint32()), "u64": pa.array([2**64 - 1, None], pa.uint64()),
        "i8": pa.array([-128, None], pa.int8()), "f16": pa.array([1.5, None], pa.float32()).cast(pa.float16()),
        "ms": pa.array([datetime.datetime(2024, 1, 2, 3, 4, 5), None], pa.timestamp("ms")),
        "ns": pa.array([-1, None], pa.timestamp("ns")), "s": pa.array([0, None], pa.timestamp("s", "Europe/Berlin")),
        "d64": pa.array([datetime.date(1969, 12, 31), None], pa.date64()),
        "t32": pa.array([datetime.time(1, 2, 3), None], pa.time32("s")),
        "dur": pa.array([datetime.timedelta(hours=1), None], pa.duration("us")),
        "large": pa.array(["large", None], pa.large_string()), "view": pa.array(["a view of more than 12 bytes", None], pa.string_view()),
        "fixed": pa.array([b"abc", None], pa.binary(3)), "dict": pa.array(["p", None]).dictionary_encode(),
        "nothing": pa.nulls(2), "flag": pa.array([True, None]), "dec": pa.array([decimal.Decimal("-1.25"), None], pa.decimal64(9, 2)),
        "wide": pa.array([decimal.Decimal("-12345678901234567890.5"), None], pa.decimal128(30, 1)),
        "id": pa.array([EVERY_VALUE[15].bytes, None], pa.uuid()), "months": pa.array([(14, -3, 5_000_000_000), None],
                                                                                   pa.month_day_nano_interval())}
    rows = pa.table(columns)  # noqa: F841
    result = open_memory().sql("SELECT * FROM rows ORDER BY u8 NULLS LAST")
    first, second = result.fetchall()
    check(first, (255, 65535, 4294967295, decimal.Decimal(2**64 - 1), -128, 1.5, datetime.datetime(2024, 1, 2, 3, 4, 5),
                  datetime.datetime(1969, 12, 31, 23, 59, 59, 999999),
                  datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc), datetime.date(1969, 12, 31),
                  datetime.time(1, 2, 3), datetime.timedelta(hours=1), "large", "a view of more than 12 bytes", b"abc", "p", None,
                  True, decimal.Decimal("-1.25"), decimal.Decimal("-12345678901234567890.5"), EVERY_VALUE[15],
                  datetime.timedelta(days=14 * 30 - 3, seconds=5)))
    check(second, (None,) * len(columns))
    late = pa.table({"d": pa.array([3000000], pa.date32())})
    fails(tessera.DataError, open_memory().register, "late", late, says='column "d" has a date beyond the years 1 to 9999')
    digits = pa.Array.from_buffers(pa.decimal128(3, 1), 1, [None, pa.py_buffer((1000).to_bytes(16, "little"))])
    fails(tessera.DataError, open_memory().register, "digits", pa.table({"d": digits}), says="more digits than its type")
    latin = pa.Array.from_buffers(pa.utf8(), 1, [None, pa.py_buffer(bytes([0, 0, 0, 0, 1, 0, 0, 0])), pa.py_buffer(b"\xe4")])
    fails(tessera.DataError, open_memory().register, "latin", pa.table({"s": latin}), says="UTF-8")
    lists = pa.table({"l": pa.array([[1]])})
    fails(tessera.NotSupportedError, open_memory().register, "lists", lists, says='column "l" has Arrow\'s type list')


@needs("pyarrow")
def test_slices_and_many_batches_in():
    import pyarrow as pa

    whole = pa.table({"n": range(200000), "s": [None if i % 3 == 0 else str(i) for i in range(200000)]})
    part = whole.slice(70001, 100000)  # noqa: F841
    got = open_memory().sql("SELECT count(*), min(n), max(n), count(s), sum(s::bigint) FROM part").fetchone()
    expected = [i for i in range(70001, 170001) if i % 3 != 0]
    check(got, (100000, 70001, 170000, len(expected), sum(expected)))


@needs("pyarrow")
def test_frames_are_read_where_they_are():
    import pyarrow as pa

    connection = open_memory()
    rows = 300_000
    # Batches of all sizes, so that tablets begin within them; one column cannot be read.
    batches, first = [], 0
    for size in (1, 0, 5, 100_000, 65_535, 65_537, rows - 231_078):
        numbers = range(first, first + size)
        texts = [None if i % 5 == 0 else f"text {i % 9}" for i in numbers]
        batches.append(pa.record_batch({"n": pa.array(numbers, pa.int64()), "s": pa.array(texts, pa.utf8()), "x": pa.array(
            [i / 4 for i in numbers], pa.float64()), "late": pa.array([3000000] * size, pa.date32())}))
        first += size
    frame = pa.Table.from_batches(batches)

    def ask(sql):
        return connection.sql(sql) if frame is not None and reader is not None else None

    reader = 0
    check(connection.sql("SELECT count(*) FROM frame").fetchone(), (rows,))
    check(connection.sql("SELECT sum(n)::bigint, count(s), max(s), sum(x) FROM frame WHERE n >= 1000").fetchone(),
          (sum(range(1000, rows)), sum(i % 5 != 0 for i in range(1000, rows)), "text 8", sum(range(1000, rows)) / 4))
    check(connection.sql("SELECT s, count(*) FROM frame GROUP BY s ORDER BY s NULLS FIRST LIMIT 2").fetchall(),
          [(None, rows // 5), ("text 0", sum(i % 5 != 0 and i % 9 == 0 for i in range(rows)))])
    check(connection.sql("SELECT a.n FROM frame a JOIN frame b ON a.n = b.n + 1 WHERE b.n > 299990 ORDER BY 1 LIMIT 2").fetchall(),
          [(299992,), (299993,)])
    fails(tessera.DataError, ask, "SELECT max(late) FROM frame", says='column "late" has a date beyond the years 1 to 9999')
    # It can only be read, and what comes of it is a table.
    fails(tessera.ProgrammingError, ask, "INSERT INTO frame (n) VALUES (1)", says="can only be read")
    fails(tessera.ProgrammingError, ask, "UPDATE frame SET n = 1", says="can only be read")
    fails(tessera.ProgrammingError, ask, "DROP TABLE frame", says="can only be read")
    connection.sql("CREATE TABLE kept AS SELECT n, s FROM frame WHERE n < 10")
    check(connection.sql("SELECT count(*), count(s) FROM kept").fetchone(), (10, 8))
    # Another frame in its place, also in a transaction that has failed.
    connection.begin()
    check(connection.sql("SELECT count(*) FROM frame").fetchone(), (rows,))
    fails(tessera.ProgrammingError, ask, "SELECT nothing FROM frame")
    connection.rollback()
    frame = pa.table({"n": [1, 2]})
    check(connection.sql("SELECT sum(n)::bigint FROM frame").fetchone(), (3,))
    empty = pa.table({"n": pa.array([], pa.int64())})  # noqa: F841
    check(connection.sql("SELECT count(*), sum(n) FROM empty").fetchone(), (0, None))
    # A stream that is read once is copied.
    reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches[:1])
    fails(tessera.DataError, ask, "SELECT n FROM reader", says="beyond the years")


@needs("pandas", "pyarrow")
def test_pandas():
    import pandas

    connection = open_memory()
    frame = pandas.DataFrame({"k": [1, 2, 3], "s": ["a", None, "c"], "d": pandas.to_datetime(["2024-01-01"] * 3)}, index=[7, 8, 9])
    got = connection.sql("SELECT k, s, d::date AS day FROM frame WHERE k > 1 ORDER BY k").df()
    check(got["k"].tolist(), [2, 3])
    check(str(got["day"].dtype).startswith("datetime64"), True)
    # A table comes before a variable; a name in a text is none.
    connection.sql("CREATE TABLE frame (x INTEGER)")
    check(connection.sql("SELECT count(*) FROM frame").fetchone(), (0,))
    connection.sql("DROP TABLE frame")
    check(connection.sql("SELECT 'frame' AS f").fetchone(), ("frame",))
    connection.begin()
    check(connection.sql("SELECT sum(k) FROM frame").fetchone(), (6,))
    connection.commit()
    CamelCase = frame  # noqa: F841
    check(connection.sql("SELECT sum(k) FROM CamelCase").fetchone(), (6,))
    # Only the columns that a statement may mean are converted: this object is no value of any.
    odd = pandas.DataFrame({"K": [1, 2], "strange": [object(), object()], "s": ["x", None]})  # noqa: F841
    other = pandas.DataFrame({"s": ["x", "y"], "n": [1, 2]})  # noqa: F841
    check(connection.sql("SELECT count(*), sum(\"K\") FROM odd").fetchone(), (2, 3))
    check(connection.sql("SELECT count(*) FROM odd").fetchone(), (2,))
    check(connection.sql("WITH c AS (SELECT s FROM odd) SELECT n FROM c JOIN other USING (s)").fetchall(), [(1,)])
    for text in ("SELECT * FROM odd", "FROM odd", "SELECT n FROM other NATURAL JOIN odd", "SELECT count(*) FROM (TABLE odd) t"):
        try:
            connection.sql(text)
        except Exception as error:
            check(type(error).__name__.startswith("Arrow"), True)
        else:
            raise AssertionError(text)
    check(connection.register("kept", frame), 3)
    check(connection.sql("SELECT max(k) FROM kept").fetchone(), (3,))
    connection.unregister("kept")
    fails(tessera.ProgrammingError, connection.sql, "SELECT * FROM kept", sqlstate="42P01")


@needs("pandas", "numpy")
def test_parameters_of_numpy_and_pandas():
    import numpy
    import pandas

    connection = open_memory()
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5)
    for value, expected in [(numpy.int32(7), 7), (numpy.float64(1.5), 1.5), (numpy.bool_(True), True), (numpy.str_("x"), "x"),
                            (numpy.datetime64("2024-01-02T03:04:05", "ns"), moment), (pandas.Timestamp(moment), moment),
                            (numpy.timedelta64(90, "s"), datetime.timedelta(seconds=90))]:
        check(connection.sql("SELECT ? AS v", [value]).fetchone(), (expected,))
    for value in (pandas.NA, pandas.NaT, numpy.datetime64("NaT")):
        check(connection.sql("SELECT ? IS NULL AS v", [value]).fetchone(), (True,))


@needs("polars")
def test_polars():
    import polars

    connection = open_memory()
    frame = polars.DataFrame({"k": [1, 2, 3], "s": ["a text of more than twelve bytes", None, "c"]})
    got = connection.sql("SELECT k, s FROM frame ORDER BY k").pl()
    check(got.equals(frame), True)
    lazy = frame.lazy().filter(polars.col("k") > 1)  # noqa: F841
    check(connection.sql("SELECT sum(k) FROM lazy").fetchone(), (5,))


@needs("adbc_driver_manager", "pyarrow", "pandas", "polars")
def test_adbc():
    import pandas
    import polars
    import pyarrow as pa
    from adbc_driver_manager import dbapi

    warnings.simplefilter("ignore")
    with dbapi.connect(driver=LIBRARY, db_kwargs={"uri": ":memory:", "tessera.device": "host"}) as connection:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)")
            cursor.executemany("INSERT INTO t VALUES (?, ?)", [(1, "x"), (2, None)])
            check(cursor.rowcount, 2)
            connection.commit()
            cursor.execute("SELECT * FROM t WHERE a = ?", [2])
            check(cursor.fetchall(), [(2, None)])
            cursor.execute("DELETE FROM t")
            connection.rollback()
            check(polars.read_database("SELECT * FROM t ORDER BY a", connection).rows(), [(1, "x"), (2, None)])
            check(pandas.read_sql("SELECT a FROM t ORDER BY a", connection)["a"].tolist(), [1, 2])
            check(cursor.adbc_ingest("u", pa.table({"x": [1, 2], "y": ["a", None]})), 2)
            check(cursor.adbc_ingest("u", pa.table({"y": ["c"], "x": [3]}), mode="append"), 1)
            cursor.execute("SELECT x, y FROM u ORDER BY x")
            check(cursor.fetchall(), [(1, "a"), (2, None), (3, "c")])
            check(cursor.adbc_ingest("u", pa.table({"x": [9]}), mode="replace"), 1)
            fails(dbapi.ProgrammingError, cursor.adbc_ingest, "u", pa.table({"x": [9]}), sqlstate="42P07")
            connection.rollback()
            check(connection.adbc_get_info()["vendor_name"], "Tessera")
            objects = connection.adbc_get_objects(table_name_filter="t").read_all().to_pylist()
            tables = [table for schema in objects[0]["catalog_db_schemas"] for table in schema["db_schema_tables"]]
            check([(t["table_name"], [c["column_name"] for c in t["table_columns"]]) for t in tables], [("t", ["a", "b"])])
            check(connection.adbc_get_table_schema("t").names, ["a", "b"])
            check(str(cursor.adbc_prepare("SELECT a FROM t WHERE b = ?").types), "[DataType(string)]")
            fails(dbapi.ProgrammingError, cursor.execute, "SELECT * FROM nowhere", sqlstate="42P01")
            connection.rollback()
            fails(dbapi.NotSupportedError, cursor.execute, b"plan", says="Substrait")
    pandas_rows = pandas.DataFrame({"p": [1, 2]})
    with dbapi.connect(driver=LIBRARY, db_kwargs={"uri": ":memory:"}) as connection:
        pandas_rows.to_sql("w", connection, index=False)
        check(pandas.read_sql("SELECT sum(p) AS s FROM w", connection)["s"].tolist(), [3])


# ---- The library in a process with others

@needs("pyarrow", "pandas", "polars", "duckdb")
def test_beside_other_libraries():
    others = "import pyarrow, numpy, pandas, polars, duckdb; duckdb.sql('SELECT 42').fetchall()"
    own = ("import tessera; c = tessera.connect(device='host'); "
           "check = c.sql(\"SELECT count(*), max(regexp_replace('a' || n, '[0-9]+', 'b')) FROM generate_series(1, 100000) g (n)\")")
    uses = ("assert check.fetchall() == [(100000, 'ab')]; import pyarrow; "
            "assert check.arrow().num_rows == 1; assert duckdb.sql(\"SELECT regexp_replace('a1', '[0-9]', 'b')\").fetchall() == [('ab',)]")
    for order in ((others, own), (own, others)):
        done = subprocess.run([sys.executable, "-c", "; ".join((*order, uses))], capture_output=True, text=True,
                              env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")), timeout=300)
        if done.returncode != 0:
            raise AssertionError(done.stderr[-2000:])


def test_the_end_of_a_process():
    # What is open when the interpreter ends makes no noise.
    program = ("import tessera; c = tessera.connect(device='host'); r = c.sql('SELECT 1'); cycle = [r]; cycle.append(cycle); "
               "k = r.__arrow_c_stream__(); cursor = c.execute('SELECT 2'); cursor.fetchone(); c.begin(); tessera.sql('SELECT 3')")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    check((done.returncode, done.stdout, done.stderr), (0, "", ""))


def test_exports():
    listed = subprocess.run(["nm", "-D", "--defined-only", LIBRARY], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in listed.splitlines()}
    check({name for name in names if not name.startswith("tessera_")}, {"AdbcDriverInit"})


def test_example():
    done = subprocess.run([os.path.join(BUILD, "capi_example")], capture_output=True, text=True, timeout=60)
    check(done.stdout, "1 1\n3 9\n5 25\n7 49\n9 81\n")


def main():
    passed = failed = 0
    left_out = set()
    for name, test in list(globals().items()):
        if not name.startswith("test_"):
            continue
        lacking = [module for module in getattr(test, "needs", ()) if importlib.util.find_spec(module) is None]
        if lacking:
            left_out.update(lacking)
            continue
        try:
            test()
            passed += 1
        except BaseException:
            failed += 1
            print(f"FAILED: {name}\n{traceback.format_exc()}")
    if left_out:
        print("left out what needs", ", ".join(sorted(left_out)))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
