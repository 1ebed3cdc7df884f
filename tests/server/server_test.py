#!/usr/bin/env python3
"""tessera --serve, as clients of PostgreSQL see it: psql, pgbench, psycopg, asyncpg, SQLAlchemy, and bytes on a socket.

    tests/server/server_test.py BUILD_DIR [NAME...]

What Python packages it needs are in build/venv (tests/setup test). Ends with "N passed, N failed".
"""

import asyncio
import base64
import datetime
import decimal
import glob
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import uuid

from server_process import end_process, wait_until_it_says

BUILD = os.path.abspath(sys.argv[1])
TESSERA = os.path.join(BUILD, "tessera")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
for path in glob.glob(os.path.join(ROOT, "build/venv/lib/python3*/site-packages")):
    sys.path.append(path)

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def equals(got, wanted, what=""):
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}\ninstead of {wanted!r}")


def holds(condition, what):
    if not condition:
        raise AssertionError(what)


class Server:
    """A server of a new database, or of one that is there."""

    def __init__(self, *options, folder=None, statements=""):
        self.owned = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix="tessera-server-")
        self.database = os.path.join(self.folder, "db")
        if statements:
            subprocess.run([TESSERA, self.database, "-c", statements], check=True, stdout=subprocess.DEVNULL)
        self.log = open(os.path.join(self.folder, "log"), "w+")
        self.process = subprocess.Popen(
            [TESSERA, "--serve", "127.0.0.1:0", "--socket-folder", self.folder, "--device", "host", *options, self.database],
            stderr=self.log, stdin=subprocess.DEVNULL)
        said = wait_until_it_says(r"listening on .*?:(\d+)", self.log.name, self.process, 10)
        if said is None:
            raise AssertionError("the server did not start: " + open(self.log.name).read())
        self.port = int(said.group(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None and not end_process(self.process):
            raise AssertionError("the server did not end")
        if self.owned:
            shutil.rmtree(self.folder)

    def psql(self, *arguments, tcp=False, input=None, environment=None, check=True):
        host = "127.0.0.1" if tcp else self.folder
        run = subprocess.run(["psql", "-X", "-h", host, "-p", str(self.port), "-U", "me", "-d", "db", *arguments],
                             capture_output=True, text=True, input=input, timeout=120,
                             env={**os.environ, **(environment or {})})
        if check and run.returncode != 0:
            raise AssertionError(f"psql {arguments}: {run.stderr}")
        return run

    def connect(self, **options):
        import psycopg
        return psycopg.connect(**{"host": self.folder, "port": self.port, "user": "me", "dbname": "db", "autocommit": True, **options})

    def raw(self):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        return s


def startup(**parameters):
    body = struct.pack("!I", 196608)
    for name, value in {"user": "me", **parameters}.items():
        body += name.encode() + b"\0" + value.encode() + b"\0"
    body += b"\0"
    return struct.pack("!I", len(body) + 4) + body


def message(kind, body=b""):
    return kind + struct.pack("!I", len(body) + 4) + body


def read_exactly(s, n):
    data = b""
    while len(data) < n:
        piece = s.recv(n - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def read_message(s):
    kind = read_exactly(s, 1)
    return kind, read_exactly(s, struct.unpack("!I", read_exactly(s, 4))[0] - 4)


def until(s, wanted):
    """The messages up to one of this kind."""
    all = []
    while True:
        all.append(read_message(s))
        if all[-1][0] == wanted:
            return all


# ---- psql -----------------------------------------------------------------------------------------------------------


@test
def psql_over_both_sockets():
    with Server() as server:
        for tcp in (False, True):
            equals(server.psql("-Atc", "SELECT 1", tcp=tcp).stdout, "1\n", f"tcp {tcp}")
        equals(server.psql("-c", "SELECT 1 AS a, 'x' AS b, NULL AS c").stdout,
               " a | b | c \n---+---+---\n 1 | x | \n(1 row)\n\n")
        equals(server.psql("-At", "-c", "SHOW server_version").stdout, "15.0\n")


@test
def several_statements_in_one_text():
    with Server() as server:
        out = server.psql("-c", "CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2); SELECT sum(a) AS sum FROM t; DELETE FROM t")
        equals(out.stdout, "CREATE TABLE\nINSERT 0 2\n sum \n-----\n   3\n(1 row)\n\nDELETE 2\n")
        equals(server.psql("-c", "").stdout, "")
        equals(server.psql("-c", "-- nothing").stdout, "")
        # The first error ends the text.
        out = server.psql("-Atc", "SELECT 1; SELECT x; SELECT 2", check=False)
        equals(out.stdout, "1\n")
        holds('column "x" does not exist' in out.stderr, out.stderr)


@test
def errors_have_state_hint_and_position():
    with Server(statements="CREATE TABLE t (revenue INTEGER)") as server:
        run = server.psql("-v", "VERBOSITY=verbose", "-c", "SELECT 'ü',\n revenu FROM t", check=False)
        equals(run.returncode, 1)
        equals(run.stderr, 'ERROR:  42703: column "revenu" does not exist\nLINE 2:  revenu FROM t\n         ^\n'
               'HINT:  Perhaps you meant column "revenue".\n')


@test
def every_type_as_text():
    with Server() as server:
        out = server.psql("-At", "-c", """
            SELECT true, false, 1::smallint, 2, 3::bigint, 1.5::real, 0.1::double precision, 'NaN'::double precision,
              12.50::decimal(8,2), 12345678901234567890.5::decimal(30,3), DATE '2024-02-29', TIME '01:02:03.5',
              TIMESTAMP '2024-01-01 12:13:14.123456', TIMESTAMPTZ '2024-01-01 00:00:00+00', INTERVAL '1 month 2 days 03:04:05',
              'text', ''::text, '12345678-1234-5678-1234-567812345678'::uuid, '\\x00ff'::bytea, NULL""")
        equals(out.stdout, "t|f|1|2|3|1.5|0.1|NaN|12.50|12345678901234567890.500|2024-02-29|01:02:03.5|"
               "2024-01-01 12:13:14.123456|2024-01-01 00:00:00+00|1 mon 2 days 03:04:05|text||"
               "12345678-1234-5678-1234-567812345678|\\x00ff|\n")


@test
def psql_describes():
    with Server(statements="CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(10) NOT NULL, price DECIMAL(8,2) DEFAULT 1); "
                           "CREATE VIEW v AS SELECT id FROM t") as server:
        out = server.psql("-c", "\\d").stdout
        holds("public | t    | table" in out and "public | v    | view" in out, out)
        for command in ("\\dt", "\\dv", "\\dn", "\\df", "\\l", "\\dT", "\\di", "\\d v"):
            run = server.psql("-c", command, check=False)
            equals((command, run.stderr), (command, ""))


@test
def psql_describes_keys():
    with Server(statements="CREATE TABLE u (id INTEGER PRIMARY KEY, n VARCHAR(20) UNIQUE); "
                           "CREATE TABLE t (a INTEGER PRIMARY KEY, b BIGINT NOT NULL DEFAULT 5, c DECIMAL(8,2) CHECK (c > 0), "
                           "uid INTEGER REFERENCES u (id), CONSTRAINT bc UNIQUE (b, c)); COMMENT ON COLUMN t.b IS 'the b'; "
                           "CREATE VIEW v AS SELECT a, b FROM t; CREATE TYPE mood AS ENUM ('sad', 'so so'); CREATE SEQUENCE s") as server:
        def lines(command):
            run = server.psql("-c", command, check=False)
            equals((command, run.stderr), (command, ""))
            return [line.rstrip() for line in run.stdout.splitlines()]

        equals(lines("\\d t")[1:], [
            " Column |     Type     | Collation | Nullable | Default",
            "--------+--------------+-----------+----------+---------",
            " a      | integer      |           | not null |",
            " b      | bigint       |           | not null | 5",
            " c      | numeric(8,2) |           |          |",
            " uid    | integer      |           |          |",
            "Indexes:",
            '    "t_pkey" PRIMARY KEY, btree (a)',
            '    "bc" UNIQUE CONSTRAINT, btree (b, c)',
            "Check constraints:",
            '    "t_c_check" CHECK (c > 0)',
            "Foreign-key constraints:",
            '    "t_uid_fkey" FOREIGN KEY (uid) REFERENCES u(id)',
            ""])
        equals(lines("\\d u")[-6:], [
            "Indexes:",
            '    "u_pkey" PRIMARY KEY, btree (id)',
            '    "u_n_key" UNIQUE CONSTRAINT, btree (n)',
            "Referenced by:",
            '    TABLE "t" CONSTRAINT "t_uid_fkey" FOREIGN KEY (uid) REFERENCES u(id)',
            ""])
        holds(any("the b" in line for line in lines("\\d+ t")), "\\d+ shows comments")
        equals(lines("\\d+ v")[-3:], ["View definition:", "SELECT a, b FROM t;", ""])
        holds(any("Superuser" in line and line.endswith("{}") for line in lines("\\du")), "\\du shows attributes and groups")
        equals([line for line in lines("\\dT+") if "so so" in line], ["        |      |               |      | so so    |         |                   |"])
        equals(lines("\\sv v"), ["CREATE OR REPLACE VIEW public.v AS", "SELECT a, b FROM t"])
        for command in ("\\d", "\\dp", "\\dn+", "\\df+", "\\ds", "\\l+", "\\db", "\\db+", "\\di+", "\\dt+", "\\dv+", "\\d t_pkey"):
            lines(command)


@test
def psql_watches_and_tells_types():
    with Server(statements="CREATE TABLE t (a INTEGER, b NUMERIC(8, 2), c TEXT)") as server:
        equals(server.psql("-At", input="SELECT a, b, c, a + 1.5 AS sum, now() AS at FROM t WHERE a = 1 \\gdesc\n").stdout,
               "a|integer\nb|numeric(8,2)\nc|text\nsum|numeric(12,1)\nat|timestamp with time zone\n")
        equals(server.psql("-At", input="DELETE FROM t \\gdesc\n").stdout, "The command has no result, or the result has no columns.\n")
        equals(server.psql("-At", input="SELECT 'SELECT ' || x FROM range(2) AS r(x) \\gexec\n").stdout, "0\n1\n")
        equals(server.psql("-At", input="SELECT 7 AS seven \\gset\nSELECT :seven + 1;\n").stdout, "8\n")
        # It goes on until it is interrupted.
        watch = subprocess.Popen(["psql", "-X", "-At", "-h", server.folder, "-p", str(server.port), "-U", "me", "-d", "db"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        watch.stdin.write("INSERT INTO t VALUES (1, 2, 'x') RETURNING 'row' \\watch 0.1\n")
        watch.stdin.flush()
        with server.connect() as other:
            # (The fourth comes after the third has been shown.)
            waits_for(lambda: other.execute("SELECT count(*) FROM t").fetchone() >= (4,), "the fourth time")
        watch.send_signal(signal.SIGINT)
        said = watch.communicate(timeout=30)[0]
        holds(said.count("row\n") >= 3, said)


@test
def transactions_and_their_state():
    with Server(statements="CREATE TABLE t (a INTEGER)") as server:
        s = server.raw()
        s.sendall(startup())
        equals(until(s, b"Z")[-1][1], b"I")
        for sql, state in (("BEGIN", b"T"), ("INSERT INTO t VALUES (1)", b"T"), ("SELECT x", b"E"), ("SELECT 1", b"E"),
                           ("ROLLBACK", b"I"), ("", b"I")):
            s.sendall(message(b"Q", sql.encode() + b"\0"))
            equals(until(s, b"Z")[-1][1], state, sql)
        s.sendall(message(b"X"))
        equals(s.recv(1), b"")
        equals(server.psql("-Atc", "SELECT count(*) FROM t").stdout, "0\n")


@test
def notices_and_settings():
    with Server() as server:
        with server.connect() as connection:
            said = []
            connection.add_notice_handler(lambda diagnostic: said.append((diagnostic.severity, diagnostic.message_primary)))
            connection.execute("CREATE TABLE t (a INTEGER)")
            connection.execute("CREATE INDEX i ON t (a)")
            equals(said, [("NOTICE", "no effect, scans need no index")])
            connection.execute("SET TIME ZONE 'Europe/Berlin'")
            equals(connection.info.parameter_status("TimeZone"), "Europe/Berlin")
            equals(connection.execute("SELECT TIMESTAMPTZ '2024-07-01 00:00:00+00'::text").fetchone()[0], "2024-07-01 02:00:00+02")
        with server.connect(options="-c statement_timeout=50 -c timezone=Asia/Tokyo") as connection:
            equals(connection.execute("SHOW statement_timeout").fetchone()[0], "50")
            equals(connection.execute("SHOW timezone").fetchone()[0], "Asia/Tokyo")


# ---- The extended protocol ------------------------------------------------------------------------------------------

VALUES = [
    ("BOOLEAN", [True, False]), ("SMALLINT", [1, -32768]), ("INTEGER", [2147483647, -5]), ("BIGINT", [2**63 - 1, -2**63]),
    ("REAL", [1.5, -0.25]), ("DOUBLE PRECISION", [0.1, 1e300]),
    ("DECIMAL(12,3)", [decimal.Decimal("12.500"), decimal.Decimal("-123456789.001"), decimal.Decimal("0.000")]),
    ("DECIMAL(38,4)", [decimal.Decimal("1234567890123456789012345678901234.5678"), decimal.Decimal("10000.0000")]),
    ("DATE", [datetime.date(2024, 2, 29), datetime.date(1, 1, 2), datetime.date(1999, 12, 31)]),
    ("TIME", [datetime.time(23, 59, 59, 999999)]),
    ("TIMESTAMP", [datetime.datetime(2024, 1, 1, 12, 13, 14, 123456), datetime.datetime(1969, 7, 20)]),
    ("TIMESTAMPTZ", [datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc)]),
    ("INTERVAL", [datetime.timedelta(days=3, seconds=5, microseconds=7)]),
    ("UUID", [uuid.UUID("12345678-1234-5678-1234-567812345678"), uuid.UUID("ffffffff-ffff-ffff-ffff-ffffffffffff")]),
    ("TEXT", ["", "ü'\"\\", "x" * 5000]), ("VARCHAR(3)", ["abc"]), ("BYTEA", [b"", b"\0\xff\n"]),
]


def table_of_values(server):
    columns = ", ".join(f"c{i} {type}" for i, (type, _) in enumerate(VALUES))
    server.psql("-c", f"CREATE TABLE every (id INTEGER, {columns})")


@test
def psycopg_sends_and_gets_every_type():
    import psycopg
    with Server() as server:
        table_of_values(server)
        with server.connect() as connection:
            for i, (type, values) in enumerate(VALUES):
                for value in values + [None]:
                    for binary in (False, True):
                        sign = "%b" if binary else "%s"
                        with connection.cursor(binary=binary) as cursor:
                            cursor.execute(f"INSERT INTO every (id, c{i}) VALUES (1, {sign})", [value])
                            equals(cursor.rowcount, 1)
                            cursor.execute(f"SELECT c{i} FROM every WHERE id = 1")
                            equals(cursor.fetchall(), [(value,)], f"{type}, binary {binary}")
                            cursor.execute(f"DELETE FROM every WHERE id = %s", [1])
            cursor = connection.execute("SELECT 1::smallint AS s, 1.5::decimal(8,2) AS n, 'x'::varchar(5) AS v, CURRENT_DATE AS d")
            equals([(c.name, c.type_code, c.precision, c.scale) for c in cursor.description],
                   [("s", 21, None, None), ("n", 1700, 8, 2), ("v", 1043, None, None), ("d", 1082, None, None)])


@test
def psycopg_transactions_pipelines_and_errors():
    import psycopg
    with Server(statements="CREATE TABLE t (a INTEGER PRIMARY KEY)") as server:
        with server.connect(autocommit=False) as connection:
            with connection.transaction():
                connection.execute("INSERT INTO t VALUES (1)")
            try:
                with connection.transaction():
                    connection.execute("INSERT INTO t VALUES (2)")
                    connection.execute("INSERT INTO t VALUES (1)")
                raise AssertionError("no error")
            except psycopg.errors.UniqueViolation as error:
                equals(error.sqlstate, "23505")
            equals(connection.execute("SELECT a FROM t ORDER BY a").fetchall(), [(1,)])
        with server.connect() as connection:
            with connection.pipeline():
                cursors = [connection.execute("INSERT INTO t VALUES (%s) RETURNING a * 2", [i]) for i in range(10, 20)]
                equals([c.fetchone()[0] for c in cursors], list(range(20, 40, 2)))
            connection.cursor().executemany("INSERT INTO t VALUES (%s)", [(i,) for i in range(100, 200)])
            equals(connection.execute("SELECT count(*) FROM t").fetchone()[0], 111)
            try:
                connection.execute("SELECT %s::integer + nothing", [1])
                raise AssertionError("no error")
            except psycopg.errors.UndefinedColumn as error:
                holds("nothing" in str(error), str(error))
            equals(connection.execute("SELECT %s || 'x'", ["a"]).fetchone(), ("ax",))
            # Prepared after five times; the columns of another table of that name are other ones.
            for _ in range(8):
                equals(connection.execute("SELECT * FROM t WHERE a = %s", [1]).fetchall(), [(1,)])


@test
def an_empty_statement_is_described():
    with Server() as server, server.raw() as s:
        s.sendall(startup())
        until(s, b"Z")
        for text in (b"", b"-- nothing", b" ; "):
            s.sendall(message(b"P", b"\0" + text + b"\0\0\0") + message(b"D", b"S\0") + message(b"B", b"\0\0\0\0\0\0\0\0") +
                      message(b"D", b"P\0") + message(b"E", b"\0\0\0\0\0") + message(b"S"))
            equals([kind for kind, _ in until(s, b"Z")], [b"1", b"t", b"n", b"2", b"n", b"I", b"Z"], text)


@test
def prepared_statements_answer_for_other_values():
    import psycopg
    with Server(statements="CREATE TABLE t AS SELECT x::integer AS k, x * 10 AS b, 'text ' || x AS s, DATE '2026-01-01' + x::integer AS d "
                           "FROM range(100000) AS r(x)") as server, server.connect() as connection:
        start = datetime.date(2026, 1, 1)
        for k in [1, 2, 99, 30000, 70000, 5, 99999, -1, 100000, 2**31, 2**40]:  # (drivers send the smallest type that holds it)
            for binary in (False, True):
                found = connection.execute("SELECT s, d FROM t WHERE k = %s", [k], prepare=True, binary=binary).fetchall()
                equals(found, [(f"text {k}", start + datetime.timedelta(k))] if 0 <= k < 100000 else [], k)
        for low, high in ((10, 19), (19, 10), (0, 99999), (None, 5), (500, 500)):
            found = connection.execute("SELECT count(*) FROM t WHERE b BETWEEN %s AND %s", [low, high], prepare=True).fetchone()
            equals(found, (0 if low is None else max(0, min(high // 10, 99999) - -(-low // 10) + 1),), (low, high))
        for text in ("text 7", "text 99999", "", "t'ext", None, "text 7"):
            found = connection.execute("SELECT k FROM t WHERE s = %s", [text], prepare=True).fetchall()
            equals(found, [(int(text[5:]),)] if text and text.startswith("text") else [], text)
        for day in (start, start + datetime.timedelta(500), datetime.date(1999, 1, 1)):
            equals(connection.execute("SELECT k FROM t WHERE d = %s", [day], prepare=True).fetchall(), [((day - start).days,)] if day >= start else [])
        # Another value may be none of the type: then the error is that of the value, and the statement lives on.
        for value in ("8", "eight", "9"):
            try:
                equals(connection.execute("SELECT s FROM t WHERE k = %s", [value], prepare=True).fetchall(), [(f"text {value}",)])
            except psycopg.errors.InvalidTextRepresentation as error:
                holds("eight" in str(error), str(error))
        connection.execute("UPDATE t SET s = 'other' WHERE k = 5")
        equals(connection.execute("SELECT s, d FROM t WHERE k = %s", [5], prepare=True).fetchone()[0], "other")


@test
def portals_give_some_rows_at_a_time():
    with Server() as server:
        s = server.raw()
        s.sendall(startup())
        until(s, b"Z")
        s.sendall(message(b"P", b"s\0SELECT x FROM generate_series(1, 7) g(x) ORDER BY x\0" + struct.pack("!h", 0)))
        s.sendall(message(b"B", b"p\0s\0" + struct.pack("!hhh", 0, 0, 0)))
        s.sendall(message(b"D", b"Pp\0"))
        for _ in range(3):
            s.sendall(message(b"E", b"p\0" + struct.pack("!i", 3)))
        s.sendall(message(b"S"))
        kinds = b"".join(kind for kind, _ in until(s, b"Z"))
        equals(kinds, b"12T" + b"DDDs" + b"DDDs" + b"DC" + b"Z")
        # Its transaction has ended, and the portal with it.
        s.sendall(message(b"E", b"p\0" + struct.pack("!i", 3)) + message(b"D", b"Ss\0") + message(b"S"))
        answer = until(s, b"Z")
        equals([kind for kind, _ in answer], [b"E", b"Z"])
        holds(b"C34000\0" in answer[0][1], answer)
        s.sendall(message(b"C", b"Ss\0") + message(b"D", b"Ss\0") + message(b"S"))
        equals([kind for kind, _ in until(s, b"Z")], [b"3", b"E", b"Z"])
        s.close()


@test
def asyncpg_describes_and_uses_binary():
    import asyncpg

    async def run(server):
        connection = await asyncpg.connect(host="127.0.0.1", port=server.port, user="me", database="db")
        equals(await connection.fetchval("SELECT $1::integer + 1", 41), 42)
        for i, (type, values) in enumerate(VALUES):
            for value in values + [None]:
                await connection.execute(f"INSERT INTO every (id, c{i}) VALUES ($1, $2)", 1, value)
                equals(await connection.fetchval(f"SELECT c{i} FROM every WHERE id = $1", 1), value, type)
                await connection.execute("DELETE FROM every")
        async with connection.transaction():
            await connection.executemany("INSERT INTO every (id) VALUES ($1)", [(i,) for i in range(500)])
            rows = [row["id"] async for row in connection.cursor("SELECT id FROM every ORDER BY id", prefetch=50)]
            equals(rows, list(range(500)))
        try:
            await connection.fetch("SELECT * FROM nothing")
            raise AssertionError("no error")
        except asyncpg.UndefinedTableError:
            pass
        equals(connection.get_server_version()[:2], (15, 0))
        try:
            await connection.fetch("SELECT count(*) FROM generate_series(1, 3000000000) a(x) WHERE x % 7 = 8", timeout=0.3)
            raise AssertionError("no error")
        except asyncio.TimeoutError:
            pass
        equals(await connection.fetchval("SELECT 7"), 7)
        await connection.close()

    with Server() as server:
        table_of_values(server)
        asyncio.run(run(server))


@test
def asyncpg_asks_for_types():
    """Of a type that it does not know it asks pg_type, with WITH RECURSIVE over all that a type may be made of."""
    import asyncpg

    async def run(server):
        connection = await asyncpg.connect(host="127.0.0.1", port=server.port, user="me", database="db")
        equals([tuple(row) for row in await connection.fetch("SELECT * FROM e ORDER BY a")], [(1, "ok"), (2, None)])
        await connection.execute("INSERT INTO e VALUES ($1, $2)", 3, "happy")
        equals(await connection.fetchval("SELECT a FROM e WHERE m = $1", "happy"), 3)
        try:
            await connection.execute("INSERT INTO e VALUES (4, $1)", "angry")
            raise AssertionError("no error")
        except asyncpg.InvalidTextRepresentationError:
            pass
        # The answer to its question, about all types that there are.
        from asyncpg import introspection
        oids = [row["oid"] for row in await connection.fetch("SELECT oid FROM pg_type")]
        for question in (introspection.INTRO_LOOKUP_TYPES, introspection.INTRO_LOOKUP_TYPES_13):
            types = {row["name"]: row for row in await connection.fetch(question, oids)}
            equals((types["mood"]["kind"], types["mood"]["ns"], types["int4"]["kind"]), ("e", "public", "b"))
            equals((types["_int4"]["elemtype"], types["_int4"]["elemtype_name"]), (types["int4"]["oid"], "integer"))
        await connection.close()

    with Server(statements="CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy'); CREATE TABLE e (a INTEGER, m mood); "
                           "INSERT INTO e VALUES (1, 'ok'), (2, NULL)") as server:
        asyncio.run(run(server))


@test
def sqlalchemy_makes_and_reflects_tables():
    import sqlalchemy as sa
    with Server() as server:
        engine = sa.create_engine(f"postgresql+psycopg://me@127.0.0.1:{server.port}/db")
        metadata = sa.MetaData()
        table = sa.Table("things", metadata, sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
                         sa.Column("name", sa.String(20), nullable=False), sa.Column("price", sa.Numeric(8, 2)))
        metadata.create_all(engine)
        with engine.begin() as connection:
            connection.execute(table.insert(), [{"id": i, "name": f"n{i}", "price": i * 1.5} for i in range(5)])
        with engine.connect() as connection:
            rows = connection.execute(sa.select(table.c.name, table.c.price).where(table.c.id > 2).order_by(table.c.id)).all()
            equals(rows, [("n3", decimal.Decimal("4.50")), ("n4", decimal.Decimal("6.00"))])
        equals(sa.inspect(engine).get_table_names(), ["things"])
        engine.dispose()


@test
def sqlalchemy_reflects_keys_and_constraints():
    import sqlalchemy as sa
    with Server(statements="CREATE TABLE parents (b INTEGER, a INTEGER, code TEXT CONSTRAINT parents_code UNIQUE, PRIMARY KEY (a, b)); "
                           "CREATE TABLE children (id INTEGER GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, pa INTEGER, pb INTEGER, n INTEGER "
                           "CONSTRAINT n_is_positive CHECK (n > 0), CONSTRAINT two UNIQUE (n, pa), "
                           "CONSTRAINT to_parent FOREIGN KEY (pa, pb) REFERENCES parents (a, b) ON DELETE CASCADE); "
                           "CREATE TABLE bare (x INTEGER)") as server:
        engine = sa.create_engine(f"postgresql+psycopg://me@127.0.0.1:{server.port}/db")
        inspector = sa.inspect(engine)
        key = inspector.get_pk_constraint("parents")
        equals((key["name"], key["constrained_columns"]), ("parents_pkey", ["a", "b"]))
        equals(inspector.get_pk_constraint("children")["constrained_columns"], ["id"])
        equals(inspector.get_pk_constraint("bare")["constrained_columns"], [])
        equals([(u["name"], u["column_names"]) for u in inspector.get_unique_constraints("parents")], [("parents_code", ["code"])])
        equals([(u["name"], u["column_names"]) for u in inspector.get_unique_constraints("children")], [("two", ["n", "pa"])])
        (foreign,) = inspector.get_foreign_keys("children")
        equals((foreign["name"], foreign["constrained_columns"], foreign["referred_table"], foreign["referred_columns"], foreign["options"]),
               ("to_parent", ["pa", "pb"], "parents", ["a", "b"], {"ondelete": "CASCADE"}))
        (check,) = inspector.get_check_constraints("children")
        equals((check["name"], check["sqltext"]), ("n_is_positive", "n > 0"))
        (index,) = inspector.get_indexes("children")
        equals((index["name"], index["column_names"], index["unique"], index["duplicates_constraint"]), ("two", ["n", "pa"], True, "two"))
        equals(inspector.get_indexes("bare"), [])
        equals({table: len(keys) for (_, table), keys in inspector.get_multi_foreign_keys().items()}, {"bare": 0, "children": 1, "parents": 0})
        engine.dispose()


@test
def copy_in_binary_format():
    import asyncpg
    import psycopg

    async def run(server):
        connection = await asyncpg.connect(host="127.0.0.1", port=server.port, user="me", database="db")
        records = [(i, *[(values + [None])[i % (len(values) + 1)] for _, values in VALUES]) for i in range(3000)]
        columns = ["id", *[f"c{i}" for i in range(len(VALUES))]]
        equals(await connection.copy_records_to_table("every", records=records, columns=columns), "COPY 3000")
        rows = await connection.fetch("SELECT * FROM every ORDER BY id")
        for row, record in zip(rows, records):
            equals(tuple(row), record)
        out = []

        async def take(piece):
            out.append(piece)

        equals(await connection.copy_from_query("SELECT * FROM every ORDER BY id", output=take, format="binary"), "COPY 3000")
        await connection.execute("CREATE TABLE again AS SELECT * FROM every WHERE false")
        equals(await connection.copy_to_table("again", source=pieces(b"".join(out)), format="binary"), "COPY 3000")
        equals([tuple(row) for row in await connection.fetch("SELECT * FROM again ORDER BY id")], records)
        await connection.close()

    async def pieces(data):
        for at in range(0, len(data), 997):  # rows lie in several messages
            yield data[at:at + 997]

    with Server() as server:
        table_of_values(server)
        asyncio.run(run(server))
        with server.connect() as connection:
            connection.execute("CREATE TABLE t (a INTEGER, b TEXT, m DECIMAL(12,2)); CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE moods (m mood)")
            with connection.cursor().copy("COPY t FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(["int4", "text", "numeric"])
                copy.write_row((1, 'x"y,z', decimal.Decimal("12.50")))
                copy.write_row((2, "", None))
                copy.write_row((None, None, decimal.Decimal("-3")))
            with connection.cursor().copy("COPY (SELECT * FROM t ORDER BY a) TO STDOUT (FORMAT binary)") as copy:
                copy.set_types(["int4", "text", "numeric"])
                equals(list(copy.rows()), [(1, 'x"y,z', decimal.Decimal("12.50")), (2, "", None), (None, None, decimal.Decimal("-3.00"))])
            with connection.cursor().copy("COPY (SELECT 1 WHERE false) TO STDOUT (FORMAT binary)") as copy:
                equals(b"".join(bytes(piece) for piece in copy), b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\xff\xff")
            header = b"PGCOPY\n\xff\r\n\0" + bytes(8)
            with connection.cursor().copy("COPY moods FROM STDIN (FORMAT binary)") as copy:
                copy.write(header + b"\0\1\0\0\0\2ok\xff\xff")
            equals(connection.execute("SELECT m::text FROM moods").fetchall(), [("ok",)])
            for data, says in ((b"1\tx\n", "signature"), (header + b"\0\1\0\0\0\1x", "1 fields, not 3"), (header + b"\0\3\0\0", "unexpected end after row 0"),
                               (header + b"\0\3\0\0\0\2ab" + b"\xff\xff\xff\xff" * 2, "row 1, field 1"), (header + b"\0\3\xff\xff\xff\xfe", "less than no bytes"),
                               (header[:11] + b"\0\1\0\0" + bytes(4), "flags")):
                try:
                    with connection.cursor().copy("COPY t FROM STDIN (FORMAT binary)") as copy:
                        copy.write(data)
                    raise AssertionError("no error")
                except psycopg.Error as error:
                    holds(says in str(error), (data, str(error)))
            equals(connection.execute("SELECT count(*) FROM t").fetchone(), (3,))
            for statement, says in (("COPY t TO STDOUT (FORMAT binary, HEADER)", "takes no"), ("COPY t TO '/tmp/x' (FORMAT binary)", "binary")):
                try:
                    connection.execute(statement)
                    raise AssertionError("no error")
                except psycopg.Error as error:
                    holds(says in str(error), str(error))


@test
def arrays_are_lists():
    import asyncpg
    import psycopg
    with Server(statements="CREATE TABLE t (g INTEGER, i INTEGER)") as server:
        queries = [("SELECT ARRAY[1,2,NULL]", [1, 2, None]), ("SELECT ARRAY['a', 'b, c']", ["a", "b, c"]), ("SELECT '{}'::bigint[]", []),
                   ("SELECT array_agg(x ORDER BY x DESC) FROM generate_series(1, 3) AS x", [3, 2, 1]),
                   ("SELECT ARRAY[TRUE, FALSE]", [True, False]), ("SELECT ARRAY[DATE '2024-01-02']", [datetime.date(2024, 1, 2)]),
                   ("SELECT ARRAY[1.5, 2.25]", [decimal.Decimal("1.5"), decimal.Decimal("2.25")])]
        for binary in (False, True):
            with psycopg.connect(host="127.0.0.1", port=server.port, user="me", dbname="db") as connection:
                for query, wanted in queries:
                    equals(connection.cursor(binary=binary).execute(query).fetchone()[0], wanted, query)
                equals(connection.execute("SELECT x FROM generate_series(1, 9) AS x WHERE x = ANY (%s) ORDER BY x", ([2, 5],)).fetchall(), [(2,), (5,)])
                equals(connection.execute("SELECT x FROM generate_series(1, 9) AS x WHERE x = ANY (%b) ORDER BY x", ([2, 5],)).fetchall(), [(2,), (5,)])
        with psycopg.connect(host="127.0.0.1", port=server.port, user="me", dbname="db") as connection:
            connection.execute("CREATE SEQUENCE s")
            for wanted in range(1, 8):  # (what is described takes no value)
                equals(connection.execute("SELECT nextval('s')", prepare=True).fetchone()[0], wanted)
            rows = connection.execute("SELECT nextval('s'), x FROM generate_series(%s::integer, 9) AS x", (8,), prepare=True)
            equals([c.name for c in rows.description], ["nextval('s')", "x"])
            equals(rows.fetchall(), [(8, 8), (9, 9)])

    async def run(server):
        connection = await asyncpg.connect(host="127.0.0.1", port=server.port, user="me", database="db")
        equals(await connection.fetchval("SELECT ARRAY['a', 'b']"), ["a", "b"])
        equals(await connection.fetchval("SELECT ARRAY[1, 2]::TEXT"), "{1,2}")
        for type, values in (("int4", [1, None, -3]), ("int8", [1 << 40]), ("float8", [0.5, None]), ("bool", [True]), ("int2", []), ("numeric", [decimal.Decimal("1.5")]),
                             ("date", [datetime.date(2024, 1, 2)]), ("uuid", [uuid.UUID(int=7)])):
            equals(await connection.fetchval(f"SELECT $1::{type}[]", values), values, type)
        equals(await connection.fetchval("SELECT count(*) FROM generate_series(1, 9) AS x WHERE x = ANY ($1::int4[])", [2, 5]), 2)
        equals(await connection.fetchval("SELECT ARRAY[1, NULL]"), [1, None])
        equals(await connection.fetchval("SELECT array_agg(x / 2.0 ORDER BY x)::float8[] FROM generate_series(1, 2) AS x"), [0.5, 1.0])
        await connection.close()

    with Server() as server:
        asyncio.run(run(server))


@test
def pgbench_runs_a_script():
    if shutil.which("pgbench") is None:  # it is in Debian's package of PostgreSQL's server
        return
    with Server(statements="CREATE TABLE accounts (aid INTEGER PRIMARY KEY, balance INTEGER); "
                           "INSERT INTO accounts SELECT x, 0 FROM generate_series(1, 1000) s(x)") as server:
        script = os.path.join(server.folder, "script")
        with open(script, "w") as file:
            file.write("\\set a random(1, 1000)\nSELECT balance FROM accounts WHERE aid = :a;\n")
        for protocol in ("simple", "extended", "prepared"):
            run = subprocess.run(["pgbench", "-h", server.folder, "-p", str(server.port), "-U", "me", "-n", "-f", script, "-M", protocol,
                                  "-c", "4", "-j", "2", "-t", "50", "db"], capture_output=True, text=True, timeout=120)
            holds("number of transactions actually processed: 200/200" in run.stdout, protocol + run.stdout + run.stderr)
            holds("number of failed transactions: 0" in run.stdout, run.stdout)


JDBC = "/usr/share/java/postgresql.jar"  # tests/setup drivers


@test
def pgjdbc_does_what_programs_do():
    if not os.path.exists(JDBC) or shutil.which("javac") is None:
        return
    with Server(statements="CREATE TABLE every (id INTEGER PRIMARY KEY, b BIGINT, n NUMERIC(10, 2), f DOUBLE PRECISION, l BOOLEAN, s TEXT, "
                           "d DATE, m TIMESTAMP, x BYTEA); CREATE TABLE numbers (a INTEGER)") as server:
        run = subprocess.run(["java", "-XX:TieredStopAtLevel=1", "-cp", JDBC, os.path.join(ROOT, "tests/server/jdbc_client.java"),
                              f"jdbc:postgresql://127.0.0.1:{server.port}/db?user=me"], capture_output=True, text=True, timeout=120)
        equals(run.stderr, "", run.stdout)
        said = run.stdout.splitlines()
        rows = [f"{i} {10 ** 10 * i} {decimal.Decimal('1.25') * i} {i / 2} {str(i % 2 == 0).lower()} {f'text {i}' if i % 3 else 'null'} "
                f"2026-01-{i:02} 2026-02-03 04:05:06.789 {i}" for i in (1, 2, 3, 4, 5, 6, 7, 18)]
        equals(said[:len(rows)], rows)
        for line in ("id int4 10 0", "n numeric 10 2", "batch 1000", "fetched 1000 499500", "error 42703", "error 25P02", "PostgreSQL 15",
                     "table public every TABLE", "table public numbers TABLE", "column id int4 4 10 NO 1", "column n numeric 2 10 YES 3",
                     "in 2", "out 2 1000,1001,", "cancelled 57014", "valid true"):
            holds(line in said, line + " is not in\n" + run.stdout)


@test
def odbc_asks_and_lists():
    driver = "/usr/lib/x86_64-linux-gnu/odbc/psqlodbcw.so"
    if not os.path.exists(driver) or shutil.which("isql") is None:
        return
    with Server(statements="CREATE TABLE t (a INTEGER PRIMARY KEY, b NUMERIC(8, 2), c TEXT, d DATE)") as server:
        def isql(text):
            run = subprocess.run(["isql", "-b", "-d|", "-k", f"Driver={driver};Server=127.0.0.1;Port={server.port};Database=db;UID=me"],
                                 input=text, capture_output=True, text=True, timeout=60)
            equals(run.stderr, "", text)
            return run.stdout.splitlines()

        equals(isql("INSERT INTO t VALUES (1, 1.25, 'one', '2026-01-02'), (2, NULL, 'zwei', NULL)\n"), [])
        equals(isql("SELECT * FROM t ORDER BY a\n"), ["1|1.25|one|2026-01-02", "2||zwei|"])
        tables = isql("help\n")
        holds(any("|t|TABLE|" in line for line in tables), tables)
        columns = isql("help t\n")
        equals([line.split("|")[3:6] for line in columns], [["a", "4", "int4"], ["b", "2", "numeric"], ["c", "-1", "text"], ["d", "9", "date"]])


# ---- COPY -----------------------------------------------------------------------------------------------------------


@test
def copy_in_and_out():
    with Server(statements="CREATE TABLE t (a INTEGER, b TEXT, c BOOLEAN)") as server:
        text = "1\ta\\tb\tt\n2\t\\N\tf\n3\tback\\\\slash \\x41\\101\t\\N\n4\t\\\\N\tt\n5\tquote \"\tf\n6\t\tt\n"
        equals(server.psql("-c", "COPY t FROM STDIN", input=text).stdout, "COPY 6\n")
        rows = "1|a\tb|t\n2|<null>|f\n3|back\\slash AA|<null>\n4|\\N|t\n5|quote \"|f\n6||t\n"
        equals(server.psql("-At", "-P", "null=<null>", "-c", "SELECT * FROM t ORDER BY a").stdout, rows)
        out = server.psql("-c", "COPY (SELECT * FROM t ORDER BY a) TO STDOUT").stdout
        equals(out, text.replace("\\x41\\101", "AA"))
        equals(server.psql("-c", "COPY (SELECT * FROM t WHERE a < 3 ORDER BY a) TO STDOUT (FORMAT csv, HEADER)").stdout,
               "a,b,c\n1,a\tb,true\n2,,false\n")
        equals(server.psql("-c", "COPY t (b, a) FROM STDIN (FORMAT csv)", input='"x,y",7\n').stdout, "COPY 1\n")
        equals(server.psql("-c", "COPY t FROM STDIN WITH (DELIMITER '|', NULL 'nil')", input="8|nil|t\n\\.\n").stdout, "COPY 1\n")
        equals(server.psql("-Atc", "SELECT count(*), count(b) FROM t").stdout, "8|6\n")
        run = server.psql("-c", "COPY t FROM STDIN", input="9\tx\tt\nten\tx\tt\n", check=False)
        holds('invalid input syntax for type integer: "ten"' in run.stderr, run.stderr)
        equals(server.psql("-Atc", "SELECT max(a) FROM t").stdout, "8\n")
        file = os.path.join(server.folder, "rows")
        server.psql("-c", f"\\copy t to '{file}'")
        server.psql("-c", "TRUNCATE t", "-c", f"\\copy t from '{file}'")
        equals(server.psql("-Atc", "SELECT count(*), count(b) FROM t").stdout, "8|6\n")


@test
def copy_out_is_what_a_query_shows():
    rows = """SELECT x::smallint AS s, x * -10007 AS i, x::bigint * 10000000019 AS big, (x * 12345.67)::decimal(15, 2) AS d, (x / 10000.0)::decimal(9, 9) AS f,
        (x * -10000000000)::decimal(38, 10) AS wide, x / 7.0::double precision AS r, x % 2 = 0 AS b, DATE '1900-01-01' + x * 11 AS day,
        TIMESTAMP '2024-02-29 23:59:59.5' + x * INTERVAL '1 hour 1 microsecond' AS at, TIME '00:00:01' AS t, x * INTERVAL '1 day' AS pause,
        CASE WHEN x % 3 > 0 THEN 'text ' || x END AS text, repeat('long ', x % 20) || x AS longer, CASE WHEN x % 5 > 0 THEN x END AS n FROM range(3000) r(x)"""
    with Server(statements="CREATE TABLE t AS " + rows) as server:
        shown = server.psql("-At", "-F", "\t", "-P", "null=\\N", "-c", "SELECT * FROM t ORDER BY s").stdout
        equals(len(shown.splitlines()), 3000)
        equals(server.psql("-c", "COPY (SELECT * FROM t ORDER BY s) TO STDOUT").stdout, shown)
        # One special byte in a column makes its fields those that are looked at.
        server.psql("-c", "UPDATE t SET text = E'a\\tb\\\\' WHERE s = 7")
        copied = server.psql("-c", "COPY (SELECT * FROM t ORDER BY s) TO STDOUT").stdout.splitlines()
        equals([line for line in copied if line not in shown.splitlines()], [copied[7]])
        holds("\ta\\tb\\\\\t" in copied[7], copied[7])


@test
def copy_by_drivers():
    import psycopg
    with Server(statements="CREATE TABLE t (a INTEGER, b TEXT)") as server:
        with server.connect() as connection, connection.cursor() as cursor:
            with cursor.copy("COPY t FROM STDIN") as copy:
                for i in range(10000):
                    copy.write_row((i, f"text\n{i}" if i % 3 else None))
            equals(connection.execute("SELECT count(*), count(b), max(b) FROM t").fetchone(), (10000, 6666, "text\n9998"))
            with cursor.copy("COPY (SELECT a, b FROM t ORDER BY a) TO STDOUT") as copy:
                rows = list(copy.rows())
            equals(len(rows), 10000)
            equals(rows[:2], [("0", None), ("1", "text\n1")])
            try:
                with cursor.copy("COPY t FROM STDIN") as copy:
                    copy.write("1\tx\n")
                    raise ZeroDivisionError
            except ZeroDivisionError:
                pass
            equals(connection.execute("SELECT count(*) FROM t").fetchone()[0], 10000)
            equals(connection.info.transaction_status, psycopg.pq.TransactionStatus.IDLE)


# ---- Ends -----------------------------------------------------------------------------------------------------------

LONG = "SELECT count(*) FROM generate_series(1, 100000000000) a(x) WHERE x % 7 = 8"


@test
def cancel_request():
    import psycopg
    with Server() as server:
        with server.connect() as connection:
            timer = threading.Timer(0.3, connection.cancel)
            timer.start()
            start = time.time()
            try:
                connection.execute(LONG)
                raise AssertionError("no error")
            except psycopg.errors.QueryCanceled as error:
                equals(error.sqlstate, "57014")
            holds(time.time() - start < 2, "it took long")
            timer.join()
            equals(connection.execute("SELECT 1").fetchone()[0], 1)


def cpu_seconds(process):
    fields = open(f"/proc/{process}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@test
def a_client_that_vanishes_ends_its_query():
    with Server() as server:
        s = server.raw()
        s.sendall(startup())
        until(s, b"Z")
        s.sendall(message(b"Q", LONG.encode() + b"\0"))
        time.sleep(0.5)
        s.close()
        time.sleep(0.3)
        before = cpu_seconds(server.process.pid)
        time.sleep(0.5)
        holds(cpu_seconds(server.process.pid) - before < 0.1, "the query goes on")


@test
def a_client_that_vanishes_at_once_ends_its_query():
    with Server() as server:
        # Its session does not even exist when it goes.
        for _ in range(20):
            s = server.raw()
            s.sendall(startup() + message(b"Q", LONG.encode() + b"\0"))
            until(s, b"Z")
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        with server.connect() as watcher:
            waits_for(lambda: watcher.execute("SELECT count(*) FROM tessera_queries()").fetchone() == (1,), "the end of their queries", 5)


@test
def sigterm_lets_statements_end():
    with Server() as server:
        idle = server.raw()
        idle.sendall(startup())
        until(idle, b"Z")
        busy = server.raw()
        busy.sendall(startup())
        until(busy, b"Z")
        busy.sendall(message(b"Q", b"SELECT count(*) FROM generate_series(1, 300000000) a(x) WHERE x % 7 = 3\0"))
        time.sleep(0.1)
        server.process.send_signal(signal.SIGTERM)
        kind, body = read_message(idle)
        holds(kind == b"E" and b"C57P01\0" in body, body)
        answer = until(busy, b"Z")
        holds(any(kind == b"D" and b"42857143" in body for kind, body in answer), answer)
        equals(server.process.wait(20), 0)
        holds(not os.path.exists(os.path.join(server.folder, f".s.PGSQL.{server.port}")), "the socket is left")


@test
def logins_have_limits():
    with Server("--max-connections", "3", "--authentication-timeout", "1") as server:
        s = server.raw()  # says nothing
        start = time.time()
        equals(s.recv(1), b"")
        holds(0.5 < time.time() - start < 5, "the timeout")
        s = server.raw()
        s.sendall(struct.pack("!I", 20000) + b"x" * 100)
        kind, body = read_message(s)
        holds(kind == b"E" and b"C08P01\0" in body, body)
        equals(s.recv(1), b"")
        time.sleep(0.2)
        kept = [server.raw() for _ in range(3)]
        for s in kept:
            s.sendall(startup())
            until(s, b"Z")
        s = server.raw()
        s.sendall(startup())
        kind, body = read_message(s)
        holds(kind == b"E" and b"C53300\0" in body, body)
        for other in kept:
            other.close()


@test
def bytes_that_are_no_messages():
    with Server() as server:
        for bytes in (b"GET / HTTP/1.0\r\n\r\n", b"\0\0\0\x03", b"\xff" * 100, struct.pack("!II", 8, 12345),
                      startup(client_encoding="LATIN1"), struct.pack("!II", 9, 196608) + b"\0"):
            s = server.raw()
            s.sendall(bytes)
            s.settimeout(5)
            answer = b""
            try:
                while piece := s.recv(1000):
                    answer += piece
            except ConnectionResetError:
                pass
            holds(answer == b"" or answer[:1] == b"E", answer)
        for bad in (message(b"?"), b"Q\0\0\0\x01", message(b"B", b"\0"), message(b"P", b"\0SELECT 1\0\0\x05"),
                    message(b"Q", b"SELECT 1"), message(b"E"), message(b"D", b"X\0"), message(b"F", b"\0\0\0\x01")):
            s = server.raw()
            s.sendall(startup())
            until(s, b"Z")
            s.sendall(bad + message(b"S"))
            kind, body = read_message(s)
            equals(kind, b"E", bad)
            s.close()
        equals(server.psql("-Atc", "SELECT 1").stdout, "1\n")


# ---- Who may do what ------------------------------------------------------------------------------------------------


def make_role(name, password, words=""):
    line = subprocess.run([TESSERA, "--role", name], input=password + "\n", text=True, capture_output=True, check=True).stdout
    return line.rstrip("\n") + " " + words + "\n"


@test
def scram_and_roles():
    with tempfile.TemporaryDirectory() as folder:
        roles = os.path.join(folder, "roles")
        with open(roles, "w") as file:
            file.write("# who\n" + make_role("me", "secret ü") + make_role("reader", "r", "readonly") + make_role("loader", "l", "files"))
        with Server("--roles", roles, "--authenticate-all", statements="CREATE TABLE t (a INTEGER)") as server:
            def psql(user, password, sql):
                return server.psql("-U", user, "-Atc", sql, environment={"PGPASSWORD": password}, check=False)
            equals(psql("me", "secret ü", "SELECT 1").stdout, "1\n")
            for user, password in (("me", "wrong"), ("nobody", "secret ü"), ("me", "")):
                run = psql(user, password or " ", "SELECT 1")
                holds(f'password authentication failed for user "{user}"' in run.stderr, run.stderr)
            equals(psql("reader", "r", "SELECT count(*) FROM t").stdout, "0\n")
            holds("read" in psql("reader", "r", "INSERT INTO t VALUES (1)").stderr, "readonly")
            file = os.path.join(folder, "f.csv")
            for sql in (f"COPY t TO '{file}'", f"COPY t FROM '{roles}'", f"SELECT * FROM '{roles}'", f"SELECT * FROM read_csv('{roles}')",
                        f"EXPORT DATABASE '{file}'", f"IMPORT DATABASE '{file}'", f"VACUUM INTO '{file}'",
                        f"ATTACH '{file}' AS o", f"CREATE TABLE u AS SELECT * FROM '{roles}'", "SELECT * FROM '/dev/stdin'"):
                run = server.psql("-v", "VERBOSITY=verbose", "-c", sql, environment={"PGPASSWORD": "secret ü"}, check=False)
                holds("42501" in run.stderr, sql + run.stderr)
            holds(not os.path.exists(file), "a file was written")
            equals(psql("loader", "l", f"COPY t TO '{file}'").stdout, "COPY 0\n")
        run = subprocess.run([TESSERA, "--serve", "0", "--roles", "/dev/null/x", folder + "/db"], capture_output=True, text=True)
        equals(run.returncode, 2)
        holds("cannot read the roles file" in run.stderr, run.stderr)


@test
def tls():
    with tempfile.TemporaryDirectory() as folder:
        key, certificate = os.path.join(folder, "key"), os.path.join(folder, "certificate")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
                        "-subj", "/CN=localhost"], check=True, capture_output=True)
        with Server("--tls-certificate", certificate, "--tls-key", key) as server:
            run = server.psql("-Atc", "SELECT repeat('x', 1000000)", tcp=True, environment={"PGSSLMODE": "require"})
            equals(len(run.stdout), 1000001)
            out = server.psql("-c", "\\conninfo", tcp=True, environment={"PGSSLMODE": "require"}).stdout
            holds("SSL connection" in out, out)
            equals(server.psql("-Atc", "SELECT 1", tcp=True, environment={"PGSSLMODE": "disable"}).stdout, "1\n")
        with Server() as server:
            run = server.psql("-Atc", "SELECT 1", tcp=True, environment={"PGSSLMODE": "require"}, check=False)
            holds("does not support SSL" in run.stderr, run.stderr)


# ---- Seen from outside ----------------------------------------------------------------------------------------------

# Some seconds on two cores, with progress.
LONG = "SELECT count(*) FROM range(60000) AS a(x), range(60000) AS b(y) WHERE (x * y) % 7 = 3"


def waits_for(condition, what, seconds=20):
    end = time.time() + seconds
    while time.time() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited in vain: {what}")


@test
def sessions_and_their_statements_are_seen():
    import psycopg
    with Server() as server:
        with server.connect() as watcher, server.connect(application_name="reports", user="ann") as busy:
            pid = busy.info.backend_pid
            equals(watcher.execute("SELECT pg_backend_pid()").fetchone()[0], watcher.info.backend_pid)
            equals(busy.execute("SELECT current_user").fetchone()[0], "ann")
            equals(watcher.execute("SELECT user_name, application, client, state, statements > 0, last_query FROM tessera_sessions() "
                                   f"WHERE pid = {pid}").fetchall(), [("ann", "reports", None, "idle", True, "SELECT current_user")])
            busy.execute("BEGIN")
            equals(watcher.execute(f"SELECT state, xact_start <= now(), query FROM pg_stat_activity WHERE pid = {pid}").fetchall(),
                   [("idle in transaction", True, "BEGIN")])
            busy.execute("ROLLBACK")
            failed = []

            def run():
                try:
                    busy.execute(LONG)
                except psycopg.Error as error:
                    failed.append(error.sqlstate)

            thread = threading.Thread(target=run)
            thread.start()
            seen = waits_for(lambda: watcher.execute(
                "SELECT user_name, step, unit, milliseconds > 0, percent BETWEEN 0 AND 100, query FROM tessera_queries() "
                f"WHERE pid = {pid} AND done > 0").fetchall(), "the statement's progress")
            equals(seen, [("ann", "query", "rows", True, True, LONG)])
            equals(watcher.execute(f"SELECT state, usename, datname, backend_type FROM pg_stat_activity WHERE pid = {pid}").fetchall(),
                   [("active", "ann", "tessera", "client backend")])
            # What is prepared is only described, and signals no session then.
            equals(watcher.execute("SELECT pg_cancel_backend(%s)", [pid]).fetchone(), (True,))
            thread.join(20)
            equals(failed, ["57014"])
            equals(watcher.execute("SELECT pg_cancel_backend(123456)").fetchone(), (False,))
            equals(busy.execute("SELECT 1").fetchone(), (1,))
            equals(watcher.execute(f"SELECT pg_terminate_backend({pid})").fetchone(), (True,))
            # (It ends soon, as in PostgreSQL: a statement may come first.)
            waits_for(lambda: watcher.execute(f"SELECT count(*) FROM tessera_sessions() WHERE pid = {pid}").fetchone() == (0,),
                      "the session's end")
            try:
                busy.execute("SELECT 1")
                raise AssertionError("it goes on")
            except psycopg.Error as error:
                holds(error.sqlstate in ("57P01", None), error.sqlstate)
        equals(server.psql("-Atc", "SELECT client FROM tessera_sessions() WHERE client IS NOT NULL", tcp=True).stdout, "127.0.0.1\n")
    run = subprocess.run([TESSERA, "-csv", "-noheader", "-c", "SELECT count(*), min(query) FROM tessera_queries(); SELECT pg_terminate_backend(pg_backend_pid())"],
                         capture_output=True, text=True)
    equals(run.stdout, '1,"SELECT count(*), min(query) FROM tessera_queries()"\n')
    holds("cannot be terminated" in run.stderr, run.stderr)


@test
def readonly_roles_end_their_own_statements_only():
    import psycopg
    folder = tempfile.mkdtemp(prefix="tessera-server-")
    roles = os.path.join(folder, "roles")
    with open(roles, "w") as file:
        file.write(make_role("ann", "a", "readonly") + make_role("bob", "b", "readonly"))
    with Server("--roles", roles, statements="CREATE TABLE t (a INTEGER)") as server:
        with server.connect(user="ann") as ann, server.connect(user="bob") as bob:
            try:
                ann.execute(f"SELECT pg_terminate_backend({bob.info.backend_pid})")
                raise AssertionError("no error")
            except psycopg.errors.InsufficientPrivilege as error:
                holds('must be "bob" to terminate its session' in str(error), str(error))
            equals(bob.execute(f"SELECT pg_cancel_backend({bob.info.backend_pid + 1000})").fetchone(), (False,))
    shutil.rmtree(folder)


@test
def statements_of_a_text_are_one_transaction():
    def run(server, text):
        s = server.raw()
        s.sendall(startup())
        until(s, b"Z")
        s.sendall(message(b"Q", text.encode() + b"\0"))
        messages = until(s, b"Z")
        s.close()
        return [(kind.decode(), body.split(b"\0")[0].decode()) for kind, body in messages if kind in b"CZ"] + \
            [("N", re.search(rb"\0M([^\0]*)", body).group(1).decode()) for kind, body in messages if kind in b"EN"]

    with Server(statements="CREATE TABLE t (a INTEGER); CREATE TABLE k (a INTEGER PRIMARY KEY); "
                "CREATE TABLE d (a INTEGER REFERENCES k DEFERRABLE INITIALLY DEFERRED)") as server:
        def rows():
            return server.psql("-Atc", "SELECT a FROM t ORDER BY a").stdout.split()

        # An error in the middle undoes what was before it.
        equals(run(server, "INSERT INTO t VALUES (1); SELECT nothing; INSERT INTO t VALUES (2)"),
               [("C", "INSERT 0 1"), ("Z", "I"), ("N", 'column "nothing" does not exist')])
        equals(rows(), [])
        # COMMIT in the middle keeps it; what comes after is a transaction again.
        equals(run(server, "INSERT INTO t VALUES (1); COMMIT; INSERT INTO t VALUES (2); SELECT nothing"),
               [("C", "INSERT 0 1"), ("C", "COMMIT"), ("C", "INSERT 0 1"), ("Z", "I"),
                ("N", "there is no transaction in progress"), ("N", 'column "nothing" does not exist')])
        equals(rows(), ["1"])
        equals(run(server, "INSERT INTO t VALUES (3); ROLLBACK; INSERT INTO t VALUES (4)"),
               [("C", "INSERT 0 1"), ("C", "ROLLBACK"), ("C", "INSERT 0 1"), ("Z", "I"), ("N", "there is no transaction in progress")])
        equals(rows(), ["1", "4"])
        # BEGIN makes it one of its own, which the text's end does not commit.
        equals(run(server, "INSERT INTO t VALUES (5); BEGIN; INSERT INTO t VALUES (6)"),
               [("C", "INSERT 0 1"), ("C", "BEGIN"), ("C", "INSERT 0 1"), ("Z", "T")])
        equals(rows(), ["1", "4"])
        equals(run(server, "BEGIN; INSERT INTO t VALUES (7); COMMIT; INSERT INTO t VALUES (8); SELECT 1 + 'x'")[:4],
               [("C", "BEGIN"), ("C", "INSERT 0 1"), ("C", "COMMIT"), ("C", "INSERT 0 1")])
        equals(rows(), ["1", "4", "7"])
        equals(run(server, "BEGIN; INSERT INTO t VALUES (9); SELECT nothing; COMMIT")[-2:],
               [("Z", "E"), ("N", 'column "nothing" does not exist')])
        equals(run(server, "SELECT 1; SAVEPOINT s")[-1], ("N", "SAVEPOINT can only be used in transaction blocks"))
        equals(run(server, "DELETE FROM t; VACUUM")[-1], ("N", "VACUUM cannot run inside a transaction block"))
        # What fails when it is committed is not said to be done.
        equals(run(server, "INSERT INTO t VALUES (10); INSERT INTO d VALUES (1)")[:2], [("C", "INSERT 0 1"), ("Z", "I")])
        equals(rows(), ["1", "4", "7"])
        equals(run(server, "CREATE TABLE u (a INTEGER); INSERT INTO u VALUES (1); SELECT a / 0, x FROM u")[-2][0], "Z")
        equals(server.psql("-Atc", "SELECT count(*) FROM information_schema.tables WHERE table_name = 'u'").stdout, "0\n")


@test
def slow_statements_are_logged():
    import json
    folder = tempfile.mkdtemp(prefix="tessera-server-")
    log = os.path.join(folder, "slow.jsonl")
    with Server("--log-slow", "0", "--log-slow-file", log, statements="CREATE TABLE t (a INTEGER)") as server:
        with server.connect(application_name="loader", user="ann") as connection:
            connection.execute("INSERT INTO t VALUES (1), (2)")
            try:
                connection.execute("ALTER ROLE ann PASSWORD 'secret''s'; SELECT nothing")
            except Exception:
                pass
            os.rename(log, log + ".1")
            server.process.send_signal(signal.SIGHUP)
            waits_for(lambda: os.path.exists(log), "the new log")
            connection.execute("SELECT a, 'ü' FROM t")
        text = open(log + ".1").read()
        holds("secret" not in text, text)
        first, *others = [json.loads(line) for line in text.splitlines()]
        equals({name: first[name] for name in ("user", "application", "rows", "query")},
               {"user": "ann", "application": "loader", "rows": 2, "query": "INSERT INTO t VALUES (1), (2)"})
        holds(0 <= first["compile_milliseconds"] <= first["milliseconds"] < 20000, first)
        equals(first["time"][10], "T")
        holds(others and others[0]["query"].endswith("PASSWORD ***") and "sqlstate" in others[0], others)
        equals([(line["query"], line["rows"]) for line in map(json.loads, open(log))], [("SELECT a, 'ü' FROM t", 2)])
    with Server("--log-slow", "60000", "--log-slow-file", log + ".2") as server:
        server.psql("-c", "SELECT 1")
        equals(open(log + ".2").read(), "")
    shutil.rmtree(folder)


@test
def metrics_for_prometheus():
    import urllib.error
    import urllib.request
    with Server("--metrics", "0", statements="CREATE TABLE t (a INTEGER)") as server:
        port = int(re.search(r"/metrics on 127.0.0.1:(\d+)", open(server.log.name).read()).group(1))

        def numbers():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
                holds(answer.headers["Content-Type"].startswith("text/plain; version=0.0.4"), answer.headers)
                text = answer.read().decode()
            found = {}
            for line in text.splitlines():
                if not line.startswith("#"):
                    holds(re.fullmatch(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.e+-]+', line), line)
                    name, value = line.rsplit(" ", 1)
                    found[name] = float(value)
            return found

        before = numbers()
        equals(before["tessera_connections"], 0)
        with server.connect() as connection:
            connection.execute("INSERT INTO t VALUES (1), (2), (3)")
            connection.execute("SELECT * FROM t")
            try:
                connection.execute("SELECT nothing")
            except Exception:
                pass
            now = numbers()
            equals(now["tessera_connections"], 1)
            equals(now["tessera_statements_running"], 0)
        equals(now['tessera_statements_total{kind="insert",result="ok"}'], 1)
        equals(now['tessera_statements_total{kind="select",result="ok"}'], 1)
        equals(now['tessera_statements_total{kind="select",result="error"}'], 1)
        equals(now['tessera_errors_total{class="42"}'], 1)
        equals(now["tessera_rows_total"], 6)
        equals(now["tessera_statement_seconds_count"], 3)
        equals(now['tessera_statement_seconds_bucket{le="+Inf"}'], 3)
        for name in ("tessera_bytes_received_total", "tessera_bytes_sent_total", "tessera_statement_seconds_sum"):
            holds(now[name] > before[name], name)
        holds(now["tessera_memory_bytes"] > 0 and now['tessera_cache_hits_total{cache="host"}'] >= 0, now)
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other", timeout=20)
            raise AssertionError("no error")
        except urllib.error.HTTPError as error:
            equals(error.code, 404)
        s = socket.create_connection(("127.0.0.1", port), timeout=20)
        s.sendall(b"x" * 20000)
        try:
            equals(s.recv(1), b"")
        except ConnectionResetError:
            pass
        equals(numbers()["tessera_connections_total"], 1)


def refused(connection, sql, state="42501"):
    import psycopg
    try:
        connection.execute(sql)
    except psycopg.Error as error:
        equals(error.sqlstate, state, f"{sql}: {error}")
        return str(error)
    raise AssertionError(f"no error: {sql}")


@test
def roles_have_rights_on_tables():
    folder = tempfile.mkdtemp(prefix="tessera-server-")
    roles = os.path.join(folder, "roles")
    with open(roles, "w") as file:
        file.write(make_role("ann", "a", "select=t,s.* insert=log all=scratch") + make_role("bob", "b", "insert=t"))
    with Server("--roles", roles, statements="CREATE TABLE t (a INTEGER PRIMARY KEY); CREATE TABLE log (a INTEGER); CREATE TABLE scratch (a INTEGER); "
                "CREATE TABLE secret (a INTEGER); CREATE SCHEMA s; CREATE TABLE s.u (a INTEGER); CREATE VIEW v AS SELECT a FROM secret; "
                "INSERT INTO t VALUES (1); INSERT INTO secret VALUES (2)") as server:
        with server.connect(user="ann") as ann:
            equals(ann.execute("SELECT a FROM t").fetchall(), [(1,)])
            equals(ann.execute("SELECT count(*) FROM s.u, t").fetchall(), [(0,)])
            ann.execute("INSERT INTO log SELECT a FROM t")
            with ann.cursor().copy("COPY log FROM STDIN") as copy:
                copy.write("5\n")
            for sql in ("INSERT INTO scratch VALUES (1), (2)", "UPDATE scratch SET a = 3 WHERE a = 1", "DELETE FROM scratch WHERE a = 2",
                        "TRUNCATE scratch", "ALTER TABLE scratch ADD COLUMN b INTEGER", "CREATE TEMP TABLE mine AS SELECT a FROM t",
                        "DELETE FROM mine", "SELECT 1", "SHOW timezone", "EXPLAIN SELECT a FROM t", "BEGIN", "COMMIT"):
                ann.execute(sql)
            for sql in ("SELECT a FROM secret", "SELECT a FROM v", "SELECT 1 WHERE 2 IN (SELECT a FROM secret)", "EXPLAIN SELECT a FROM secret",
                        "COPY secret TO STDOUT", "SELECT a FROM log", "INSERT INTO log SELECT a FROM log", "INSERT INTO log VALUES (1) RETURNING a",
                        "INSERT INTO t VALUES (2)", "UPDATE log SET a = 1", "DELETE FROM t", "TRUNCATE log", "DROP TABLE t", "ALTER TABLE t ADD COLUMN b INTEGER",
                        "CREATE TABLE n (a INTEGER)", "CREATE VIEW w AS SELECT 1 AS a", "DROP VIEW v", "CREATE SCHEMA n", "COMMENT ON TABLE t IS 'x'",
                        "WITH x AS (SELECT a FROM secret) SELECT a FROM x", "SELECT * FROM tessera_chunks('secret')", "MERGE INTO t USING scratch s ON t.a = s.a WHEN MATCHED THEN DELETE",
                        "PREPARE p AS SELECT a FROM secret; EXECUTE p", "VACUUM INTO '/tmp/nothing'", "EXPORT DATABASE '/tmp/nothing'"):
                refused(ann, sql)
            holds("permission denied for table secret" in refused(ann, "SELECT a FROM secret"), "message")
            # The same text again, which a session that may has compiled, is not another thing.
            refused(ann, "SELECT a FROM secret")
        with server.connect(user="bob") as bob:
            bob.execute("INSERT INTO t VALUES (7)")
            refused(bob, "SELECT a FROM t")
            refused(bob, "INSERT INTO t VALUES (7) ON CONFLICT (a) DO UPDATE SET a = 8")
        with server.connect() as me:
            equals(me.execute("SELECT count(*) FROM t").fetchone(), (2,))
            # SIGHUP reads the roles again, for those who come then. A line that is wrong changes nothing.
            with open(roles, "w") as file:
                file.write(make_role("bob", "b", "select=*"))
            server.process.send_signal(signal.SIGHUP)
            waits_for(lambda: "SIGHUP: read again" in open(server.log.name).read(), "SIGHUP")
            with server.connect(user="bob") as bob:
                equals(bob.execute("SELECT count(*) FROM secret").fetchone(), (1,))
                refused(bob, "INSERT INTO t VALUES (9)")
            with open(roles, "w") as file:
                file.write(make_role("bob", "b", "flies"))
            server.process.send_signal(signal.SIGHUP)
            waits_for(lambda: "nothing that a role may do" in open(server.log.name).read(), "SIGHUP")
            with server.connect(user="bob") as bob:
                refused(bob, "INSERT INTO t VALUES (9)")
    shutil.rmtree(folder)


@test
def files_lie_in_their_folder():
    folder = tempfile.mkdtemp(prefix="tessera-server-")
    files = os.path.join(folder, "files")
    os.mkdir(files)
    for name in ("files/a.csv", "outside.csv"):
        with open(os.path.join(folder, name), "w") as file:
            file.write("x\n1\n2\n")
    os.symlink(folder, os.path.join(files, "link"))
    with Server("--files", "--files-dir", files, statements="CREATE TABLE t (x INTEGER)") as server:
        with server.connect() as connection:
            equals(connection.execute("SELECT sum(x) FROM 'a.csv'").fetchone(), (3,))
            equals(connection.execute(f"SELECT sum(x) FROM '{files}/*.csv'").fetchone(), (3,))
            connection.execute("COPY t FROM 'a.csv' (HEADER)")
            connection.execute("COPY t TO 'b.csv'")
            equals(open(os.path.join(files, "b.csv")).read(), "1\n2\n")
            connection.execute("EXPORT DATABASE 'all'")
            holds(os.path.exists(os.path.join(files, "all", "schema.sql")), os.listdir(files))
            connection.execute("DROP TABLE t")
            connection.execute("IMPORT DATABASE 'all'")
            equals(connection.execute("SELECT sum(x) FROM t").fetchone(), (3,))
            for name in ("../outside.csv", f"{folder}/outside.csv", "link/outside.csv", "*/../../outside.csv", "/etc/passwd", "/dev/stdin", "link/*.csv"):
                refused(connection, f"SELECT * FROM read_csv('{name}')")
                refused(connection, f"COPY t FROM '{name}'")
                refused(connection, f"COPY t TO '{name}'")
            refused(connection, f"VACUUM INTO '{folder}/copy'")
            refused(connection, "EXPORT DATABASE '../all'")
    shutil.rmtree(folder)


@test
def errors_show_no_path():
    import psycopg
    with Server(statements="CREATE TABLE t AS SELECT x FROM range(1000) AS s(x)") as server:
        for root, _, names in os.walk(server.database):
            for name in names:
                if not name.endswith((".db", ".sqlite", "catalog")) and "catalog" not in name and "lock" not in name:
                    os.truncate(os.path.join(root, name), 0)
        with server.connect() as connection:
            try:
                connection.execute("SELECT sum(x * 2) FROM t WHERE x % 3 = 1")
                raise AssertionError("no error")
            except psycopg.Error as error:
                holds(server.folder not in str(error) and "a file of the server" in str(error), str(error))


@test
def sessions_that_are_idle_are_ended():
    import psycopg
    with Server() as server:
        with server.connect() as connection:
            connection.execute("SET idle_session_timeout = 300")
            for _ in range(5):
                time.sleep(0.1)
                equals(connection.execute("SELECT 1").fetchone(), (1,))
            connection.execute("BEGIN")
            time.sleep(0.6)
            connection.execute("COMMIT")
            time.sleep(0.8)
            try:
                connection.execute("SELECT 1")
                raise AssertionError("it goes on")
            except psycopg.Error as error:
                holds(error.sqlstate == "57P05" or "idle-session" in str(error) or error.sqlstate is None, str(error))


@test
def a_session_has_its_limit_of_memory():
    import psycopg
    hungry = "SELECT count(*) FROM (SELECT x, md5(x::text) AS h FROM range(3000000) AS s(x) ORDER BY h, x LIMIT 2999999) AS q"
    with Server(statements="CREATE TABLE t AS SELECT x FROM range(1000) AS s(x)") as server, server.connect() as one, server.connect() as other:
        one.execute("SET session_memory = '32MB'; SET temp_file_limit = 0")
        equals(one.execute("SHOW session_memory").fetchone(), ("33554432",))
        equals(other.execute("SHOW session_memory").fetchone(), ("0",))
        for _ in range(2):
            try:
                one.execute(hungry)
                raise AssertionError("it has more")
            except psycopg.errors.OutOfMemory as error:
                holds("memory limit of the session exceeded" in str(error) and "SET session_memory" in str(error), str(error))
            equals(one.execute("SELECT sum(x) FROM t").fetchone(), (499500,))  # the next one begins from nothing
        equals(other.execute(hungry).fetchone(), (2999999,))
        # With temporary files it takes longer, and no more memory.
        one.execute("RESET temp_file_limit")
        equals(one.execute(hungry).fetchone(), (2999999,))
        one.execute("RESET session_memory; SET temp_file_limit = 0")
        equals(one.execute(hungry).fetchone(), (2999999,))
    with Server("--session-memory", "32MB") as server, server.connect() as one:
        equals(one.execute("SHOW session_memory").fetchone(), ("33554432",))
        for size, sqlstate in (("64MB", "42501"), ("16MB", None), ("0", None), ("32MB", None)):
            try:
                one.execute(f"SET session_memory = '{size}'")
                equals(sqlstate, None, size)
            except psycopg.Error as error:
                equals(error.sqlstate, sqlstate, size)
        one.execute("SET temp_file_limit = 0")
        try:
            one.execute(hungry)
            raise AssertionError("it has more")
        except psycopg.Error as error:
            holds("memory limit of the session" in str(error), str(error))


@test
def large_queries_take_turns():
    with Server("--max-queries", "1", statements="CREATE TABLE t AS SELECT x FROM range(1000) AS s(x)") as server:
        with server.connect() as first, server.connect() as second, server.connect() as third:
            ends = {}

            def run(name, connection, sql):
                try:
                    connection.execute(sql)
                except Exception as error:
                    ends[name] = error.sqlstate
                    return
                ends[name] = "ok"

            large = "SELECT sum(x % 7) FROM range(3000000000) AS s(x)"
            one = threading.Thread(target=run, args=("first", first, large))
            one.start()
            waits_for(lambda: third.execute("SELECT count(*) FROM tessera_queries() WHERE step = 'query'").fetchone() >= (1,), "the first")
            two = threading.Thread(target=run, args=("second", second, large))
            two.start()
            waits_for(lambda: third.execute("SELECT step FROM tessera_queries() WHERE pid = %s", [second.info.backend_pid]).fetchall() ==
                      [("waiting for other queries",)], "the second's wait")
            # A small one does not wait.
            equals(third.execute("SELECT sum(x) FROM t").fetchone(), (499500,))
            third.execute(f"SELECT pg_cancel_backend({first.info.backend_pid})")
            one.join(20)
            waits_for(lambda: third.execute("SELECT step FROM tessera_queries() WHERE pid = %s", [second.info.backend_pid]).fetchall() ==
                      [("query",)], "the second's turn")
            third.execute(f"SELECT pg_cancel_backend({second.info.backend_pid})")
            two.join(20)
            equals(ends, {"first": "57014", "second": "57014"})


@test
def many_sessions_at_once():
    with Server(statements="CREATE TABLE t (a INTEGER)") as server:
        errors = []

        def work(number):
            try:
                with server.connect() as connection:
                    for i in range(20):
                        connection.execute("INSERT INTO t VALUES (%s)", [number])
                        equals(connection.execute("SELECT count(*) FROM t WHERE a = %s", [number]).fetchone()[0], i + 1)
            except Exception as error:  # shown below
                errors.append(error)

        threads = [threading.Thread(target=work, args=[n]) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equals(errors, [])
        equals(server.psql("-Atc", "SELECT count(*) FROM t").stdout, "160\n")


@test
def results_that_are_not_read_do_not_fill_the_memory():
    with Server() as server:
        s = server.raw()
        s.sendall(startup())
        until(s, b"Z")
        s.sendall(message(b"Q", b"SELECT repeat('x', 1000) FROM generate_series(1, 1000000)\0"))
        time.sleep(1.5)
        status = open(f"/proc/{server.process.pid}/status").read()
        holds(int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) < 300_000, status)
        equals(server.psql("-Atc", "SELECT 1").stdout, "1\n")
        rows = sum(1 for kind, _ in until(s, b"C") if kind == b"D")
        equals(rows, 1000000)


def hangs(*_):
    raise AssertionError("it hangs")


def run_tests(tests):
    """Those that the command line names, or all. Returns the exit status."""
    signal.signal(signal.SIGALRM, hangs)
    if subprocess.run([TESSERA, "--serve", "0", "--roles", "/", "/"], capture_output=True, text=True).stderr.count("built without"):
        print(f"[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] {os.path.basename(sys.argv[0])[:-3]}: built without asio or OpenSSL")
        return 0
    names = sys.argv[2:]
    passed, failed = 0, []
    for function in tests:
        if names and function.__name__ not in names:
            continue
        signal.alarm(120)  # one that hangs fails
        try:
            function()
            passed += 1
        except Exception:
            failed.append(function.__name__)
            print(f"FAILED: {function.__name__}\n{traceback.format_exc()}")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
