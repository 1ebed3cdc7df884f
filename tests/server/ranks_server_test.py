#!/usr/bin/env python3
"""A server on ranks: its sessions' statements run on all of them, one after the other, and its end is theirs.

    tests/server/ranks_server_test.py BUILD_DIR [NAME...]

Ends with "N passed, N failed". Without MPI in the build there is nothing to test.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../mpi"))
from rank_jobs import ENVIRONMENT, LIMIT, LONG, TESSERA, WORK, check, database, has_mpi, mpirun, processes, run, run_tests  # noqa: E402
from server_process import wait_until_it_says  # noqa: E402
from wire_client import Client, ServerError, fields  # noqa: E402

ON_RANKS = "SET replicate_below = 0; SET share_copy_above = 0"
QUERIES = ["SELECT count(*), sum(a), min(b), max(c) FROM t", "SELECT b, count(*), sum(c) FROM t GROUP BY b ORDER BY b",
           "SELECT a, b FROM t WHERE a % 10 = 3", "SELECT count(*) FROM t x, t y WHERE x.b = y.b AND x.a < y.a",
           "SELECT a FROM t ORDER BY b, c DESC LIMIT 5"]


class RankServer:
    def __init__(self, directory, *options, ranks=2, launch=mpirun):
        self.directory = directory
        self.folder = tempfile.mkdtemp(dir=WORK)
        self.messages = open(os.path.join(self.folder, "log"), "w+")
        self.job = subprocess.Popen(
            launch(ranks, "--serve", "127.0.0.1:0", "--socket-folder", self.folder, "--device", "host", "--files", *options, directory),
            env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.messages)
        said = wait_until_it_says(r"listening on .*?:(\d+)", self.messages.name, self.job, 60)
        check(said is not None, "the server does not start:", self.said())
        self.socket = os.path.join(self.folder, ".s.PGSQL." + said.group(1))
        self.ranks = processes(directory)
        check(len(self.ranks) == ranks, "ranks:", self.ranks)

    def said(self):
        with open(self.messages.name) as file:
            return file.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in processes(self.directory).values():
            os.kill(process, signal.SIGKILL)
        self.job.wait(30)
        self.messages.close()

    def connect(self):
        client = Client(self.socket, timeout=LIMIT)
        client.run(ON_RANKS)
        return client

    def check_ends(self, seconds):
        try:
            status = self.job.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the job is still there after {seconds} s: {self.said()}") from None
        deadline = time.time() + 2
        while processes(self.directory) and time.time() < deadline:
            time.sleep(0.05)
        check(not processes(self.directory), "processes are left:", processes(self.directory))
        return status


def refused(client, sql):
    try:
        got = client.run(sql)
    except ServerError as error:
        return str(error)
    raise AssertionError(f"{sql}: {fields(got)}")


def at_once(*works):
    """Calls them in threads of their own."""
    wrong = []

    def call(work):
        try:
            work()
        except (AssertionError, ServerError, OSError, EOFError) as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=call, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(not wrong, *wrong)


def rows_alone(directory):
    return [[line.split(",") for line in run([TESSERA, "-csv", "--noheader", directory, "-c", sql]).stdout.splitlines()] for sql in QUERIES]


def test_clients_at_once_have_the_rows_of_one_process():
    directory = database("at_once")
    wanted = rows_alone(directory)
    for ranks in (2, 3):
        with RankServer(directory, ranks=ranks) as server:
            plan = "\n".join(row[0] for row in fields(server.connect().run("EXPLAIN (PROGRAM) " + QUERIES[0])))
            check(f"{ranks} ranks" in plan and "shared by tablets" in plan, plan)

            def asks(client, shift):
                for i in range(4 * len(QUERIES)):
                    number = (i + shift) % len(QUERIES)
                    got = fields(client.run(QUERIES[number]))
                    check(got == wanted[number], QUERIES[number], got, "instead of", wanted[number])

            clients = [server.connect() for _ in range(4)]
            at_once(*(lambda c=c, i=i: asks(c, i) for i, c in enumerate(clients)))


def test_changes_and_queries_at_once():
    with RankServer(database("changes")) as server:
        writer, reader = server.connect(), server.connect()
        done = threading.Event()

        def changes():
            try:
                for _ in range(15):
                    writer.run("BEGIN; INSERT INTO t SELECT a + 1000, b, c FROM t WHERE a < 100; INSERT INTO t VALUES (5000, 'x', 1)")
                    check(fields(writer.run("SELECT count(*) FROM t")) == [["201"]], "the writer's own rows")
                    writer.run("COMMIT")
                    writer.run("DELETE FROM t WHERE a >= 1000")
                writer.run("VACUUM t")
            finally:
                done.set()

        def reads():
            seen = set()
            while not done.is_set():
                [[count, total]] = fields(reader.run("SELECT count(*), sum(a) FROM t"))
                check((count, total) in (("100", "4950"), ("201", "114900")), count, total)
                seen.add(count)
            check("100" in seen, seen)

        at_once(changes, reads)
        check(fields(reader.run("SELECT count(*), sum(a) FROM t")) == [["100", "4950"]], "at the end")


def test_transactions_that_change_other_rows_of_one_table():
    sums = "SELECT count(*), sum(a) FROM t"
    for ranks in (2, 3):
        with RankServer(database(f"rows_of_{ranks}"), ranks=ranks) as server:
            one, two = server.connect(), server.connect()
            one.run("BEGIN")
            check(fields(one.run(sums)) == [["100", "4950"]], "before")
            two.run("UPDATE t SET a = a + 1000 WHERE a < 10")
            two.run("INSERT INTO t VALUES (7000, 'x', 1)")
            one.run("UPDATE t SET a = a + 100000 WHERE a >= 90")
            one.run("DELETE FROM t WHERE a = 50")
            # Each sees its own rows, of the same version of the table at times.
            for _ in range(2):
                check(fields(one.run(sums)) == [["99", "1004900"]], "of the transaction", fields(one.run(sums)))
                check(fields(two.run(sums)) == [["101", "21950"]], "of the other", fields(two.run(sums)))
            one.run("COMMIT")
            for client in (one, two):
                check(fields(client.run(sums)) == [["100", "1021900"]], "of both", fields(client.run(sums)))


def test_copies_files_and_temporary_tables_of_several_sessions():
    with RankServer(database("copies")) as server:
        clients = [server.connect() for _ in range(3)]

        def work(number, client):
            file = os.path.join(server.folder, f"{number}.csv")
            with open(file, "w") as out:
                out.writelines(f"{i},{i * number}\n" for i in range(3000))
            for _ in range(3):
                # Tables of files and temporary ones have numbers of their own in each session.
                got = fields(client.run(f"SELECT count(*), sum(b) FROM read_csv('{file}', names = ['a', 'b']) x"))
                check(got == [["3000", str(number * 4498500)]], "a file:", got)
                # (A text of several statements is a transaction, which the others' changes would end.)
                client.run(f"CREATE TABLE c{number} (a INTEGER, b INTEGER)")
                client.run(f"COPY c{number} FROM '{file}'")
                client.copy_in(f"COPY c{number} FROM STDIN (FORMAT csv)", [f"{i},1\n".encode() for i in range(500)])
                client.run(f"CREATE TEMP TABLE own AS SELECT a, b FROM c{number} WHERE a < 10")
                got = fields(client.run(f"SELECT count(*), sum(b), (SELECT count(*) FROM own) FROM c{number}"))
                check(got == [["3500", str(number * 4498500 + 500), "20"]], "COPY:", got)
                client.run("DROP TABLE own")
                client.run(f"DROP TABLE c{number}")

        at_once(*(lambda n=n, c=c: work(n, c) for n, c in enumerate(clients, 1)))


def test_an_error_is_that_of_its_session():
    with RankServer(database("error")) as server:
        one, two = server.connect(), server.connect()
        for _ in range(3):
            said = refused(one, "SELECT sum(b::integer) FROM t")
            check("22P02" in said and "invalid input syntax for type integer" in said, said)
            check(fields(two.run("SELECT count(*) FROM t")) == [["100"]], "the other session")
        check(fields(one.run("SELECT count(*) FROM t")) == [["100"]], "the same session")


def test_cancels_and_clients_that_vanish():
    with RankServer(database("cancel", rows=2000)) as server:
        # The one that runs is cancelled, and the one that waits for it goes on.
        runs, waits = server.connect(), server.connect()
        runs.query(LONG)
        time.sleep(1)
        waits.query("SELECT count(*) FROM t")
        time.sleep(0.5)
        start = time.time()
        runs.cancel()
        check(any(kind == b"E" and b"57014" in body for kind, body in runs.until_ready()), "the one that runs")
        check(fields(waits.until_ready()) == [["2000"]], "the one that waited")
        check(time.time() - start < 10, "took", time.time() - start)
        # The one that waits is cancelled.
        runs.query(LONG)
        time.sleep(1)
        waits.query("SELECT count(*) FROM t")
        time.sleep(0.5)
        waits.cancel()
        check(any(kind == b"E" and b"57014" in body for kind, body in waits.until_ready()), "the one that waits")
        runs.reset()
        check(fields(waits.run("SELECT count(*) FROM t")) == [["2000"]], "after a client that vanished")


def test_sigterm_to_rank_0_lets_statements_end():
    with RankServer(database("sigterm")) as server:
        client = server.connect()
        client.query("SELECT count(*) FROM t a, t b, t c, t d WHERE a.a + b.a < c.a * d.a AND a.a < 20")
        time.sleep(0.3)
        os.kill(server.ranks[0], signal.SIGTERM)
        got = client.until_ready()
        check(len(fields(got)) == 1, got)
        check(server.check_ends(30) == 0, "status", server.job.returncode, server.said())


def test_sigterm_to_mpirun_ends_all():
    # (The option starts mpirun, in its place.)
    with RankServer(database("mpirun"), launch=lambda ranks, *arguments: [TESSERA, "--ranks", str(ranks), *arguments]) as server:
        client = server.connect()
        client.run("SELECT count(*) FROM t")
        server.job.send_signal(signal.SIGTERM)
        server.check_ends(30)


def test_a_rank_that_dies_ends_the_server():
    with RankServer(database("dies")) as server:
        server.connect().run("SELECT count(*) FROM t")
        os.kill(server.ranks[1], signal.SIGKILL)
        check(server.check_ends(30) != 0, "status 0")


def main():
    if not has_mpi():
        print("no MPI in this build: 0 passed, 0 failed")
        return 0
    return run_tests([f for name, f in globals().items() if name.startswith("test_")])


if __name__ == "__main__":
    sys.exit(main())
