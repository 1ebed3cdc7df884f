#!/usr/bin/env python3
"""A server and its clients: round trips, many sessions at once beside DuckDB's cursors, TPC-H's throughput test, COPY through psql.

    bench/server.py BUILD_DIR        (make bench-server)

Environment variables choose what to do. Their defaults:

    PARTS="trips tpcds tpch copy rows"
    DEVICE=host            or auto, gpu
    SCALE=3                of TPC-DS
    SESSIONS=16            of TPC-DS at once
    TPCH_SCALE=1           of the throughput test, and of the lineitem that is copied
    ROWS=10000000          to psycopg, beside PostgreSQL where it is installed
    IDLE=1000              connections that do nothing
    RUNS=3                 of one stream alone
    SECONDS=3              of round trips
    SEED=1                 of the orders of queries
    LIMIT=540              seconds after which a part is left, not counting the making of its data
    THREADS=               of the server, and of DuckDB; all processors without it
    OPTIONS=               more options of the server, as "--max-queries 4"
    DUCKDB=no              without DuckDB
    CSV=                   a file for all figures

trips: `SELECT 1` over the Unix socket by pgbench, or by this script where it is missing; memory of idle connections.
tpcds: the 99 queries by one session, then by SESSIONS sessions at once, each in an order of its own; each result is compared with that
of one session alone. The same by as many cursors of one DuckDB connection, in threads of one process, whose time ends before Python
takes rows. `make bench-tpcds` compares the rows with DuckDB's.
tpch: 22 queries by each of five sessions at once, and these beside a sixth one that runs five pairs of RF1 and RF2, each a transaction.
Before, the states of the database after each of these ten are walked through on a copy: a query's rows must be those of a state
that the database had while it ran, in every digit.
copy: lineitem by psql's \\copy, to a file and from it: by the clock, and by the processor time of the server.
rows: a result of ROWS rows to psycopg, as tuples.

Plain Python is enough for the first three (tests/server/wire_client.py). On a machine without a network: DuckDB needs its package on
PYTHONPATH, `rows` psycopg and psycopg_binary, `copy` psql, TPC-DS what bench/tpcds.py says or BUILD_DIR/tpcds/SCALE.tessera with
the texts in BUILD_DIR/tpcds/SCALE. What is missing is said, and left out.
"""

import contextlib
import json
import multiprocessing
import os
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from measure import ROOT, CsvFile, Failed, Table, environment, median, run_parts, same

for folder in ("tests/server", "tests/differential"):
    sys.path.append(os.path.join(ROOT, folder))
from postgres_server import PostgresServer
from server_process import end_process, wait_until_it_says
from wire_client import Client, ServerError, fields

SHORT = 5.0  # ms: a query that takes less alone must not wait for long ones
PAIRS = 5  # of refresh functions, as many as there are streams of queries
ROWS_TABLE = """CREATE TABLE t AS SELECT n::bigint * 1000003 AS a, (n % 1000000)::integer AS i, (n / 7.0)::double precision AS d,
DATE '2000-01-01' + (n % 9000)::integer AS day FROM generate_series(1, {}) s (n)"""
COUNTS = """SELECT count(*), sum(o_totalprice), (SELECT count(*) FROM lineitem), (SELECT sum(l_extendedprice) FROM lineitem),
(SELECT sum(l_orderkey) FROM lineitem) FROM orders"""


def say(text):
    print(text, flush=True)


# ---- The server


class Server:
    """tessera --serve, for as long as the block of `with` lasts."""

    def __init__(self, build, database, device, threads, options):
        self.folder = tempfile.mkdtemp(prefix="tessera-bench-")
        self.log = os.path.join(self.folder, "log")
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [os.path.join(build, "tessera"), "--serve", "127.0.0.1:0", "--socket-folder", self.folder, "--device", device,
                 "--threads", str(threads), "--max-connections", "2000", *options, database], stdin=subprocess.DEVNULL, stderr=log)
        said = wait_until_it_says(r"listening on .*?:(\d+)", self.log, self.process, 600)
        if said is None:
            with open(self.log, encoding="utf-8") as log:
                raise Failed("the server did not start: " + log.read())
        self.port = said.group(1)
        self.socket = os.path.join(self.folder, ".s.PGSQL." + self.port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end_process(self.process)
        shutil.rmtree(self.folder)

    def connect(self):
        return Client(self.socket, timeout=None)

    def megabytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1)) / 1000

    def processor_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            ticks = file.read().rsplit(")", 1)[1].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def at_once(server, works):
    """Calls each of `works` with a connection of its own, each in a process of its own, so that no client waits for another one's
    Python. Returns what they returned."""
    context = multiprocessing.get_context("fork")
    start = context.Barrier(len(works))

    def run(work, pipe):
        signal.setitimer(signal.ITIMER_REAL, 0)
        try:
            client = server.connect()
            client.run("SELECT 1")  # a session begins with its first statement
            start.wait(60)
            pipe.send((work(client), None))
        except (ServerError, OSError, EOFError, threading.BrokenBarrierError) as error:
            start.abort()
            pipe.send((None, f"{error!r}"))

    pipes, processes = [], []
    for work in works:
        ours, theirs = context.Pipe(False)
        processes.append(context.Process(target=run, args=(work, theirs), daemon=True))
        processes[-1].start()
        theirs.close()
        pipes.append(ours)
    try:
        found = [pipe.recv() for pipe in pipes]
    except EOFError:
        raise Failed("a client ended") from None
    finally:
        for process in processes:
            process.kill()
            process.join()
    lost = [error for _, error in found if error is not None]
    if lost:
        raise Failed(lost[0])
    return [result for result, _ in found]


# ---- Streams of queries


class Ran:
    """A query of a stream: when it ran, by the clock that all processes have, and its rows, or the error instead."""

    def __init__(self, name, begin, end, rows):
        self.name, self.begin, self.end, self.rows = name, begin, end, rows
        self.ms = (end - begin) * 1e3


def ask(client, name, sql):
    begin = time.perf_counter()
    try:
        got = client.run(sql)
    except ServerError as error:
        return Ran(name, begin, time.perf_counter(), str(error))
    return Ran(name, begin, time.perf_counter(), [body for kind, body in got if kind == b"D"])


def same_rows(a, b):
    """Whether these messages are the same rows, floating-point values to within 1e-9; those of equal rank may come in another order."""
    if a == b:
        return True
    if isinstance(a, str) or isinstance(b, str):
        return False
    return same(*(sorted(",".join(row) for row in fields((b"D", body) for body in rows)) for rows in (a, b)))


def stream(texts, order, expected=None):
    """For at_once: asks in this order. Rows that are not `expected` are in the result."""
    def work(client):
        found = []
        for name in order:
            ran = ask(client, name, texts[name])
            if expected is not None:
                ran.rows = None if same_rows(ran.rows, expected[name]) else ran.rows
            found.append(ran)
        return found
    return work


def span(streams):
    """Seconds from the first query to the end of the last one."""
    return max(s[-1].end for s in streams) - min(s[0].begin for s in streams)


def orders(names, streams, seed):
    shuffled = []
    for i in range(streams):
        order = list(names)
        random.Random(seed * 1000 + i).shuffle(order)
        shuffled.append(order)
    return shuffled


def check(streams, what):
    wrong = [f"{ran.name}: {ran.rows if isinstance(ran.rows, str) else 'other rows'}" for s in streams for ran in s if ran.rows is not None]
    if wrong:
        raise Failed(f"{what}: {len(wrong)} of {sum(map(len, streams))} answers are wrong: " + "; ".join(wrong[:5]))


def percentile(values, percent):
    return sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))]


def short_ratios(alone, streams):
    """Of each query that is short alone: its time among the others, divided by that alone."""
    return [ran_ms / alone[name] for s in streams for name, ran_ms in s if alone[name] < SHORT]


# ---- DuckDB, in a process of its own


def duckdb_main(data, schema, file, threads):
    """Reads {"texts", "orders", "runs"} from standard input; prints the seconds of one cursor and of one for each order, and the
    times of queries."""
    import duckdb
    import queries_duckdb
    work = json.load(sys.stdin)
    connection = queries_duckdb.open_database(data, schema, file, threads)

    def run(cursor, order, times):
        for name in order:
            begin = time.perf_counter()
            cursor.execute(work["texts"][name])
            times.append((name, (time.perf_counter() - begin) * 1e3))

    def seconds(cursors_orders):
        times = [[] for _ in cursors_orders]
        threads = [threading.Thread(target=run, args=(cursor, order, t)) for (cursor, order), t in zip(cursors_orders, times)]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if any(len(t) != len(order) for (_, order), t in zip(cursors_orders, times)):
            sys.exit("a query failed")
        return time.perf_counter() - begin, times

    def cursor():
        made = connection.cursor()
        made.execute("SET default_null_order = 'postgres'")
        return made

    first = [(cursor(), work["orders"][0])]
    seconds(first)
    alone = [seconds(first) for _ in range(work["runs"])]
    crowd = seconds([(cursor(), order) for order in work["orders"]])
    print(json.dumps({"version": duckdb.__version__, "alone": [s for s, _ in alone], "alone_times": [t[0] for _, t in alone],
                      "crowd": crowd[0], "crowd_times": crowd[1]}))


# ---- psycopg, in a process of its own


def psycopg_main(host, port, user, rows):
    """Prints the seconds until all rows were Python's."""
    import psycopg
    with psycopg.connect(host=host, port=port, user=user, dbname="postgres", autocommit=True) as connection:
        for _ in range(2):
            begin = time.perf_counter()
            cursor = connection.execute("SELECT a, i, d, day FROM t")
            count = 0
            while taken := len(cursor.fetchmany(100_000)):
                count += taken
            seconds = time.perf_counter() - begin
            cursor.close()
            if count != int(rows):
                sys.exit(f"{count} rows")
            print(seconds, flush=True)


# ---- The parts


def limited(part):
    """A part that takes longer than LIMIT is left, and the others go on."""
    def run(self):
        def late(*_):
            raise Failed(f"more than {self.limit} s")
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, self.limit)
        say(f"\n{part.__name__}")
        try:
            part(self)
        except (Failed, ServerError, OSError, EOFError, subprocess.CalledProcessError) as error:
            self.failed = True
            self.note(part.__name__, None, "", str(error))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    return run


class Bench:
    def __init__(self, build):
        self.build = build
        self.device = environment("DEVICE", "host")
        self.scale, self.tpch_scale = environment("SCALE", "3"), environment("TPCH_SCALE", "1")
        self.sessions, self.runs = int(environment("SESSIONS", "16")), int(environment("RUNS", "3"))
        self.rows_, self.idle = int(environment("ROWS", "10000000")), int(environment("IDLE", "1000"))
        self.seconds, self.seed = float(environment("SECONDS", "3")), int(environment("SEED", "1"))
        self.limit, self.threads = int(environment("LIMIT", "540")), int(environment("THREADS", str(os.cpu_count())))
        self.folder = os.path.join(build, "bench", "server")
        os.makedirs(self.folder, exist_ok=True)
        self.csv = CsvFile(environment("CSV", ""), ["what", "value", "unit"])
        self.lines, self.failed = [], False

    def note(self, what, value, unit, text=None):
        """A figure of the table at the end."""
        self.lines.append((what, value, unit if text is None else text))
        self.csv.row(what=what, value=value, unit=unit)
        say(f"  {what}: {'' if value is None else f'{value:.4g} '}{unit if text is None else text}")

    def server(self, database):
        return Server(self.build, database, self.device, self.threads, shlex.split(environment("OPTIONS", "")))

    def path(self, name):
        return os.path.join(self.folder, name)

    def fresh(self, name):
        path = self.path(name)
        subprocess.run(["rm", "-rf", path], check=True)
        return path

    def prepared(self, benchmark, scale):
        """The database that bench/queries.sh makes, which takes as long as it takes."""
        database = os.path.join(self.build, benchmark, scale + ".tessera")
        if benchmark == "tpcds" and os.path.isdir(database) and not os.path.isdir(os.path.join(ROOT, "build/tpcds_packages")):
            return database  # brought here
        signal.setitimer(signal.ITIMER_REAL, 0)
        done = subprocess.run([os.path.join(ROOT, "bench/queries.sh"), benchmark, "prepare", self.build, scale], stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise Failed(f"bench/queries.sh could not make {benchmark}: status {done.returncode}")
        signal.setitimer(signal.ITIMER_REAL, self.limit)
        return done.stdout.strip()

    # ---- trips

    @limited
    def trips(self):
        with self.server(self.fresh("trips.tessera")) as server:
            for connections in (1, 16):
                milliseconds, rate = self.round_trips(server, connections)
                self.note(f"SELECT 1, {connections} connection{'s' if connections > 1 else ''}", milliseconds, "ms a round trip")
                self.note("the same", rate, "a second")
        with self.server(self.fresh("trips.tessera")) as server:
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, self.idle + 100)), hard))
            before = server.megabytes()
            clients = [server.connect() for _ in range(self.idle)]
            self.note(f"{self.idle} idle connections, process", server.megabytes(), "MB", f"MB, {before:.0f} before")
            for client in clients:
                client.run("SELECT 1")
            self.note("the same once each has run SELECT 1", server.megabytes(), "MB")
            for client in clients:
                client.close()

    def round_trips(self, server, connections):
        """Milliseconds of one, and how many a second."""
        if shutil.which("pgbench") is None:
            found = at_once(server, [self.one_by_one] * connections)
            return median([ms for ms, _ in found]), sum(rate for _, rate in found)
        script = self.path("select.sql")
        with open(script, "w", encoding="utf-8") as out:
            out.write("SELECT 1;\n")
        done = subprocess.run(["pgbench", "-h", server.folder, "-p", server.port, "-U", "me", "-n", "-f", script, "-c", str(connections),
                               "-T", str(max(1, round(self.seconds))), "db"], capture_output=True, text=True)
        said = re.search(r"latency average = ([\d.]+) ms[\s\S]*tps = ([\d.]+)", done.stdout)
        if done.returncode != 0 or said is None:
            raise Failed("pgbench: " + done.stderr)
        return float(said.group(1)), float(said.group(2))

    def one_by_one(self, client):
        begin, n = time.perf_counter(), 0
        while time.perf_counter() - begin < self.seconds:
            client.run("SELECT 1")
            n += 1
        took = time.perf_counter() - begin
        return took * 1e3 / n, n / took

    # ---- tpcds

    @limited
    def tpcds(self):
        database = self.prepared("tpcds", self.scale)
        data = os.path.join(self.build, "tpcds", self.scale)
        names = [f"q{i}" for i in range(1, 100)]
        texts = {name: self.text(data, name) for name in names}
        self.crowd("TPC-DS", database, texts, self.sessions, data, os.path.join(data, "schema.sql"))

    @staticmethod
    def text(folder, name):
        with open(os.path.join(folder, name + ".sql"), encoding="utf-8") as file:
            return file.read().strip().rstrip(";")

    def crowd(self, benchmark, database, texts, sessions, data, schema):
        """One session, then that many at once, beside DuckDB. Returns the rows of each query."""
        wanted = orders(texts, sessions, self.seed)
        with self.server(database) as server:
            say(f"  {benchmark}: one session")
            [first] = at_once(server, [stream(texts, wanted[0])])
            expected = {ran.name: ran.rows for ran in first}
            errors = [f"{name}: {rows}" for name, rows in expected.items() if isinstance(rows, str)]
            if errors:
                raise Failed("; ".join(errors[:5]))
            runs = [at_once(server, [stream(texts, wanted[0], expected)]) for _ in range(self.runs)]
            for run in runs:
                check(run, "one session")
            say(f"  {benchmark}: {sessions} sessions")
            found = at_once(server, [stream(texts, order, expected) for order in wanted])
            check(found, f"{sessions} sessions")
        one, all_ = median([span(run) for run in runs]), span(found)
        alone = {name: median([ran.ms for [s] in runs for ran in s if ran.name == name]) for name in texts}
        self.note(f"{benchmark}, one session", one, "s")
        self.tell_crowd(f"{benchmark}, {sessions} sessions", one, all_, alone, [[(ran.name, ran.ms) for ran in s] for s in found], len(texts))
        if environment("DUCKDB", "") != "no":
            self.duckdb(benchmark, texts, wanted, data, schema, all_)
        return expected

    def tell_crowd(self, what, one, all_, alone, streams, queries):
        self.note(what, all_, "s", f"s, {len(streams) * queries} queries, rows right")
        self.note(f"{what}: their rate divided by one's", len(streams) * one / all_, "times")
        ratios = short_ratios(alone, streams)
        if ratios:
            short = sum(ms < SHORT for ms in alone.values())
            self.note(f"{what}: short queries wait", percentile(ratios, 95), "times",
                      f"times their time alone, 95 % of {short} x {len(streams)}; median {median(ratios):.3g}, at most {max(ratios):.3g}")

    def duckdb(self, benchmark, texts, wanted, data, schema, ours):
        say("  DuckDB")
        done = subprocess.run([sys.executable, __file__, "duckdb", data, schema, os.path.join(data, "duckdb"), str(self.threads)],
                              input=json.dumps({"texts": texts, "orders": wanted, "runs": self.runs}), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            return self.note(f"{benchmark}, DuckDB", None, "", "left out: " + (done.stderr.strip().splitlines() or ["?"])[-1])
        told = json.loads(done.stdout)
        alone = {name: median([ms for s in told["alone_times"] for n, ms in s if n == name]) for name in texts}
        what = f"{benchmark}, DuckDB {told['version']}"
        self.note(f"{what}, one cursor", median(told["alone"]), "s")
        self.note(f"{what}, {len(wanted)} cursors", told["crowd"], "s", f"s: Tessera takes {ours / told['crowd']:.2f} of it")
        ratios = short_ratios(alone, told["crowd_times"])
        if ratios:
            self.note(f"{what}: short queries wait", percentile(ratios, 95), "times", "times their time alone, 95 % of them")

    # ---- tpch

    @limited
    def tpch(self):
        database = self.prepared("tpch", self.tpch_scale)
        data, folder = os.path.join(self.build, "tpch", self.tpch_scale), os.path.join(ROOT, "data_gen/tpch")
        fraction = f"{0.0001 / float(self.tpch_scale):.10f}"
        texts = {f"q{i}": self.text(folder, f"q{i}").replace("0.0001000000", fraction) for i in range(1, 23)}
        self.crowd("TPC-H", database, texts, PAIRS, data, os.path.join(folder, "schema.sql"))
        updates = self.path("updates-" + self.tpch_scale)
        subprocess.run([os.path.join(self.build, "tpch_gen"), "--scale", self.tpch_scale, "--out", updates, "--updates", str(PAIRS)],
                       check=True, stdout=subprocess.DEVNULL)
        say("  TPC-H: the states that the refresh functions make")
        with self.copy_of(database) as path, self.server(path) as server:
            [states] = at_once(server, [self.walk(texts, updates)])
        say(f"  TPC-H: {PAIRS} sessions and the refresh functions")
        with self.copy_of(database) as path, self.server(path) as server:
            begun, done = (multiprocessing.get_context("fork").Value("i", 0) for _ in range(2))
            works = [self.watched(texts, order, states, begun, done) for order in orders(texts, PAIRS, self.seed)]
            *found, refreshes = at_once(server, [*works, self.refreshes(updates, begun, done)])
            check(found, "the throughput test")
            last = ask(server.connect(), "counts", COUNTS)
        if last.rows != states[-1]["counts"]:
            raise Failed("the throughput test: orders and lineitem have other counts or sums at the end than without queries beside")
        self.note(f"TPC-H, {PAIRS} sessions beside {PAIRS} pairs of RF1 and RF2", span(found), "s", f"s, {PAIRS * len(texts)} queries, rows right")
        for name in ("RF1", "RF2"):
            self.note(f"  {name} among them", median([ms for what, ms in refreshes if what == name]), "ms")

    @contextlib.contextmanager
    def copy_of(self, database):
        path = self.fresh("changed.tessera")
        subprocess.run(["cp", "-r", database, path], check=True)
        try:
            yield path
        finally:
            subprocess.run(["rm", "-rf", path], check=True)

    @staticmethod
    def refresh(client, updates, step):
        """The functions in their order: RF1 and RF2 of the first pair, of the second, and so on. Each is one transaction."""
        pair = step // 2 + 1

        def load(table, file):
            with open(os.path.join(updates, file), "rb") as rows:
                client.copy_in(f"COPY {table} FROM STDIN (FORMAT csv, DELIMITER '|')", iter(lambda: rows.read(1 << 16), b""))

        if step % 2 == 0:
            client.run("BEGIN")
            load("orders", f"orders.tbl.u{pair}")
            load("lineitem", f"lineitem.tbl.u{pair}")
        else:
            client.run("CREATE TEMP TABLE IF NOT EXISTS gone (key BIGINT)")
            client.run("TRUNCATE gone")
            load("gone", f"delete.{pair}")
            client.run("BEGIN")
            client.run("DELETE FROM lineitem WHERE l_orderkey IN (SELECT key FROM gone)")
            client.run("DELETE FROM orders USING gone WHERE o_orderkey = key")
        client.run("COMMIT")

    def walk(self, texts, updates):
        """For at_once: the rows of each query, and COUNTS, in each state of the database."""
        def work(client):
            states = []
            for step in range(2 * PAIRS + 1):
                if step > 0:
                    self.refresh(client, updates, step - 1)
                states.append({name: ask(client, name, sql).rows for name, sql in {**texts, "counts": COUNTS}.items()})
            return states
        return work

    def refreshes(self, updates, begun, done):
        """For at_once: the functions, and for others how many of them have begun, and how many are done."""
        def work(client):
            times = []
            for step in range(2 * PAIRS):
                begun.value = step + 1
                begin = time.perf_counter()
                self.refresh(client, updates, step)
                times.append((f"RF{step % 2 + 1}", (time.perf_counter() - begin) * 1e3))
                done.value = step + 1
            return times
        return work

    @staticmethod
    def watched(texts, order, states, begun, done):
        """For at_once: a stream whose rows must be those of a state that the database had meanwhile."""
        def work(client):
            found = []
            for name in order:
                oldest = done.value
                ran = ask(client, name, texts[name])
                if any(ran.rows == states[state][name] for state in range(oldest, begun.value + 1)):
                    ran.rows = None
                found.append(ran)
            return found
        return work

    # ---- copy

    @limited
    def copy(self):
        if shutil.which("psql") is None:
            return self.note("COPY", None, "", "left out: psql is missing (Debian's postgresql-client)")
        file = self.path("lineitem.copy")
        with self.copy_of(self.prepared("tpch", self.tpch_scale)) as path, self.server(path) as server:
            self.psql(server, "CREATE TABLE copied AS SELECT * FROM lineitem LIMIT 0")
            self.timed_copy(server, "out", f"\\copy lineitem to '{file}'", file)
            self.timed_copy(server, "in", f"\\copy copied from '{file}'", file)
            columns = "count(*), sum(l_orderkey), sum(l_extendedprice), sum(l_tax), min(l_comment), max(l_shipdate), sum(length(l_comment))"
            client = server.connect()
            if client.run(f"SELECT {columns} FROM lineitem") != client.run(f"SELECT {columns} FROM copied"):
                raise Failed("other rows came back")
            client.close()
        os.remove(file)

    def timed_copy(self, server, way, command, file):
        begin, used = time.perf_counter(), server.processor_seconds()
        self.psql(server, command)
        seconds, used = time.perf_counter() - begin, server.processor_seconds() - used
        megabytes = os.path.getsize(file) / 1e6
        self.note(f"\\copy {way}, {megabytes:.0f} MB", megabytes / seconds, "MB/s")
        self.note("  of a processor second of the server", megabytes / max(used, 0.01), "MB")

    @staticmethod
    def psql(server, command):
        done = subprocess.run(["psql", "-X", "-q", "-h", server.folder, "-p", server.port, "-U", "me", "-d", "db", "-c", command],
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"psql: {done.stderr}")

    # ---- rows

    @limited
    def rows(self):
        with self.server(self.fresh("rows.tessera")) as server:
            client = server.connect()
            client.run(ROWS_TABLE.format(self.rows_))
            used = server.processor_seconds()
            if self.psycopg("Tessera", server.folder, server.port, "me"):
                self.note("  of it the server's processor", (server.processor_seconds() - used) / 2, "s")
            client.close()
        subprocess.run(["rm", "-rf", self.path("rows.tessera")], check=True)
        try:
            postgres = PostgresServer("fsync=off", "shared_buffers=1GB")
        except (OSError, LookupError, subprocess.CalledProcessError) as error:
            return self.note(f"{self.rows_:,} rows to psycopg, PostgreSQL", None, "", f"left out: {error}")
        try:
            postgres.call("psql", "-h", postgres.folder, "-c", ROWS_TABLE.format(self.rows_), "-c", "VACUUM ANALYZE t")
            self.psycopg("PostgreSQL", postgres.folder, "5432", "postgres")
        finally:
            postgres.stop()

    def psycopg(self, whose, host, port, user):
        """The better of two. Whether there is one."""
        what = f"{self.rows_:,} rows to psycopg, {whose}"
        done = subprocess.run([sys.executable, __file__, "psycopg", host, port, user, str(self.rows_)], capture_output=True, text=True)
        if done.returncode != 0:
            self.note(what, None, "", "left out: " + (done.stderr.strip().splitlines() or ["?"])[-1])
            return False
        self.note(what, min(map(float, done.stdout.split())), "s")
        return True


def main():
    others = {"duckdb": duckdb_main, "psycopg": psycopg_main}
    if len(sys.argv) > 2 and sys.argv[1] in others:
        return others[sys.argv[1]](*sys.argv[2:])
    made = []

    def make(build):
        made.append(Bench(build))
        return made[0]

    run_parts(__doc__, make, "trips tpcds tpch copy rows")
    bench = made[0]
    table = Table(f"A server on {bench.device}, {bench.threads} threads; TPC-DS at scale {bench.scale}, TPC-H at {bench.tpch_scale}",
                  ("what", -58), ("figure", 9), ("", -30))
    for line in bench.lines:
        table.row(*line)
    sys.exit(1 if bench.failed else 0)


if __name__ == "__main__":
    main()
