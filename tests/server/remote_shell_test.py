#!/usr/bin/env python3
"""tessera --host, the shell of a server: the same as that of a directory, but for what needs the database in this process.

    tests/server/remote_shell_test.py BUILD_DIR [NAME...]

Ends with "N passed, N failed".
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from server_test import TESSERA, Server, equals, holds, run_tests

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../shell"))
from terminal import Terminal as AnyTerminal  # noqa: E402

TESTS = []
TABLES = """CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE SCHEMA other;
CREATE TABLE other.u (x INTEGER);
CREATE TABLE t (i INTEGER PRIMARY KEY, s TEXT, d DECIMAL(12,2), f DOUBLE PRECISION, b BOOLEAN, day DATE, at TIMESTAMP,
  moment TIMESTAMPTZ, pause INTERVAL, id UUID, bytes BYTEA, m mood);
INSERT INTO t VALUES (1, 'a"b', 1.50, 0.1, true, '2024-02-29', '2024-02-29 12:00:00', '2024-02-29 12:00:00+00', '1 day 2 hours',
  '00000000-0000-0000-0000-00000000000f', '\\x00ff', 'ok'), (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL), (3, '', -7, 'NaN', false, '0001-01-01', '9999-12-31 23:59:59', '1970-01-01 00:00:00+00', '-1 month', NULL, '', 'sad');
CREATE VIEW v AS SELECT i, s FROM t;"""


def test(function):
    TESTS.append(function)
    return function


def run(server, *arguments, script=None, status=0, environment=None, host=None):
    """tessera -h with the server's Unix socket; status None: any."""
    answer = subprocess.run([TESSERA, "-h", host or f"{server.folder}:{server.port}", *arguments], input=script, text=True, capture_output=True,
                            timeout=60, env={**os.environ, "HOME": server.folder, **(environment or {})})
    if status is not None and answer.returncode != status:
        raise AssertionError(f"{arguments}: status {answer.returncode}\n{answer.stdout}{answer.stderr}")
    return answer


@test
def results_are_those_of_a_directory():
    with Server(statements=TABLES) as server:
        for statement in ("SELECT * FROM t ORDER BY i", "SELECT sum(d), count(*), avg(f), min(moment) FROM t", "SELECT 1 WHERE false",
                          "EXPLAIN SELECT i FROM t WHERE i > 1", "SHOW timezone", "VALUES (1, 'x'), (2, NULL)", "SELECT m, ARRAY[i, NULL] AS list, ARRAY[s] FROM t ORDER BY i"):
            for mode in ("box", "csv", "json", "jsonlines", "line", "list", "html", "insert", "markdown", "quote", "table", "tsv"):
                there = run(server, "--format", mode, "-c", statement).stdout
                here = subprocess.run([TESSERA, server.database, "--device", "host", "--readonly", "--format", mode, "-c", statement], capture_output=True, text=True, check=True).stdout
                equals(there, here, (statement, mode))
        equals(run(server, "SET timezone = 'Europe/Berlin'; SELECT moment FROM t ORDER BY i LIMIT 1").stdout, "moment\n2024-02-29 13:00:00+01\n")


@test
def addresses():
    with Server() as server:
        for host in (f"127.0.0.1:{server.port}", f"localhost:{server.port}", f"{server.folder}/.s.PGSQL.{server.port}", f"{server.folder}:{server.port}"):
            equals(run(server, "SELECT 1 AS x", host=host).stdout, "x\n1\n", host)
        equals(run(server, "-p", str(server.port), "-U", "someone", "SELECT current_user AS u", host="127.0.0.1").stdout, "u\nsomeone\n")
        equals(run(server, "SELECT 1 AS x", host="127.0.0.1", environment={"PGPORT": str(server.port)}).stdout, "x\n1\n")
        for host in ("a:b", "[::1", "[::1]x", "::1", ""):
            holds("--host takes HOST" in run(server, "SELECT 1", host=host or ":", status=2).stderr, host)
        for option in ("--threads 2", "--memory 1g", "--readonly", "--stats csv", "--device host", "--ranks 2"):
            holds(f"{option.split()[0]} is about a database of this process" in run(server, *option.split(), "SELECT 1", status=2).stderr, option)
        lost = run(server, "SELECT 1", host="127.0.0.1:1", status=3).stderr
        holds(lost.startswith("tessera: connection to server at \"127.0.0.1\", port 1 failed"), lost)
        holds("--host says where" in subprocess.run([TESSERA, "-U", "me", "-c", "SELECT 1"], capture_output=True, text=True).stderr, "a user of no server")
        holds("Usage:" in subprocess.run([TESSERA, "-h"], capture_output=True, text=True, check=True).stdout, "-h alone is help")


@test
def passwords():
    roles = tempfile.NamedTemporaryFile("w")
    roles.write(subprocess.run([TESSERA, "--role", "reader"], input="secret\n", capture_output=True, text=True, check=True).stdout.strip() + " readonly\n")
    roles.flush()
    with Server("--roles", roles.name, "--authenticate-all", statements="CREATE TABLE t (x INTEGER)") as server:
        failed = run(server, "-U", "reader", "SELECT 1", status=3, environment={"PGPASSFILE": "/dev/null"}).stderr
        holds("HINT" in failed or "PGPASSWORD" in failed, failed)
        equals(run(server, "-U", "reader", "SELECT 1 AS x", environment={"PGPASSWORD": "secret"}).stdout, "x\n1\n")
        wrong = run(server, "-U", "reader", "SELECT 1", status=3, environment={"PGPASSWORD": "no"}).stderr
        holds("password authentication failed" in wrong, wrong)
        refused = run(server, "-U", "reader", "INSERT INTO t VALUES (1)", status=1, environment={"PGPASSWORD": "secret"}).stderr
        holds("ERROR:" in refused, refused)
        with contextlib.closing(terminal(server, "-U", "reader")) as screen:
            screen.expect("Password of reader: $")
            time.sleep(0.1)
            screen.type("secret\r")
            holds("secret" not in screen.expect("tessera> $"), "it is not shown")
            screen.type("\\q\r")
            equals(screen.leave(), 0)


@test
def errors_have_their_place():
    with Server(statements=TABLES) as server:
        answer = run(server, script="SELECT 'ä', no_such\nFROM t;\n", status=1)
        holds("ERROR:  column \"no_such\" does not exist" in answer.stderr, answer.stderr)
        caret = answer.stderr.splitlines()
        line = next(i for i, text in enumerate(caret) if text.startswith("LINE 1:"))
        equals(caret[line + 1].index("^"), caret[line].index("no_such"), answer.stderr)
        holds("42703" in run(server, "-c", ".verbosity verbose", "-c", "SELECT no_such FROM t", status=1).stderr, "its SQLSTATE")
        equals(run(server, "--no-bail", script="SELECT no;\nSELECT 2 AS x;\n", status=1).stdout, "x\n2\n")
        answer = run(server, script="BEGIN;\nINSERT INTO t (i) VALUES (9);\nSELECT no;\nSELECT 3;\n", status=1)
        equals(answer.stdout, "")
        equals(run(server, "SELECT count(*) AS n FROM t").stdout, "n\n3\n")


@test
def copy_goes_through_the_connection():
    with Server(statements="CREATE TABLE c (x INTEGER, s TEXT)") as server:
        name = os.path.join(server.folder, "it's.csv")
        with open(name, "w") as file:
            file.write("".join(f'{i},"text, {i}"\n' for i in range(50000)))
        quoted = "'" + name.replace("'", "''") + "'"
        equals(run(server, "-c", f"\\copy c FROM {quoted}", "SELECT count(*), sum(x), max(s) FROM c", "--noheader").stdout, "50000,1249975000,\"text, 9999\"\n")
        out = os.path.join(server.folder, "out.csv")
        run(server, script=f"\\copy (SELECT * FROM c WHERE x < 3 ORDER BY x) to {out} (header)\n")
        equals(open(out).read(), 'x,s\n0,"text, 0"\n1,"text, 1"\n2,"text, 2"\n')
        run(server, script=f"\\copy (SELECT * FROM c WHERE x < 2 ORDER BY x) to '{out}' (format text)\n")
        equals(open(out).read(), "0\ttext, 0\n1\ttext, 1\n")
        equals(run(server, script="COPY c FROM STDIN;\n70000\tx\\ty\n\\.\nSELECT s FROM c WHERE x = 70000;\n").stdout, "s\nx\ty\n")
        equals(run(server, script="\\copy c FROM stdin (FORMAT csv)\n70001,z\n\\.\nSELECT s FROM c WHERE x = 70001;\n").stdout, "s\nz\n")
        equals(run(server, "-c", "COPY c FROM STDIN (FORMAT csv)", script="70002,q\n").stdout, "")
        equals(run(server, "-c", "COPY (SELECT x FROM c WHERE x = 70002) TO STDOUT").stdout, "70002\n")
        run(server, "-c", f'.import "{name}" c')
        equals(run(server, "SELECT count(*) AS n FROM c").stdout, "n\n100003\n")
        failed = run(server, "-c", "\\copy c FROM '/no/such'", status=1).stderr
        holds("/no/such" in failed, failed)
        failed = run(server, script="COPY c FROM STDIN;\nno\tx\n\\.\n", status=1).stderr
        holds("integer" in failed, failed)
        holds("do not go through a server" in run(server, "-c", "\\copy c TO 'x.parquet'", status=1).stderr, "Parquet")
        holds("refused by --safe" in run(server, "--safe", "-c", f"\\copy c FROM {quoted}", status=1).stderr, "--safe")
        # Rows that do not come to an end: the file is a full disk.
        failed = run(server, "-c", "\\copy c TO '/dev/full'", "-c", "SELECT 1", status=1).stderr
        holds("/dev/full" in failed, failed)


@test
def dot_commands():
    with Server(statements=TABLES) as server:
        equals(run(server, "-c", ".tables").stdout, "other.u\nt\nv\n")
        equals(run(server, "-c", ".tables o*").stdout, "other.u\n")
        holds("CREATE TABLE t (" in run(server, "-c", ".schema t").stdout, "its statement")
        holds("does not exist" in run(server, "-c", ".schema absent", status=1).stderr, "no such table")
        described = run(server, "-c", "\\d t").stdout
        holds("i,INTEGER" in described and "t_pkey" in described, described)
        holds("other,u,base table" in run(server, "-c", "\\d").stdout, "all tables")
        equals(run(server, "-c", ".list types").stdout, "name\nmood\n")
        run(server, "CREATE ROLE reader LOGIN; GRANT SELECT ON t TO reader")
        equals(run(server, "-c", "\\du").stdout, "name,superuser,login\nreader,false,true\ntessera,true,true\n")
        equals(run(server, "-c", "\\dp t").stdout, 'schema,name,grants\npublic,t,"{tessera=arwdDxt/tessera,reader=r/tessera}"\n')
        status = run(server, "-c", ".status").stdout
        holds(f"queries run on: server at {server.folder}:{server.port}, as " in status and "transaction: none" in status, status)
        equals(run(server, "-c", ".mode json", "-c", "SELECT i, m FROM t WHERE i = 1").stdout, '[{"i":1,"m":"ok"}]\n')
        holds("rows" in run(server, "--timer", "SELECT i FROM t").stderr, "time and rows")
        equals(run(server, "-c", ".device host", "-c", ".device").stdout, "device\nhost\n")
        for command in (".dump", ".memory", ".devices", ".cache clear"):
            holds(f"{command} is about a database of this process" in run(server, "-c", command, status=1).stderr, command)
        holds("stays with it" in run(server, "-c", ".open x", status=1).stderr, ".open")
        equals(run(server, "--repeat", "3", "SELECT 5 AS x").stdout, "x\n5\n")
        equals(run(server, "-c", ".changes on", "-c", "INSERT INTO t (i) VALUES (10), (11)").stderr, "changes: 2\n")
        equals(run(server, "INSERT INTO t (i) VALUES (12) RETURNING i").stdout, "i\n12\n")


@test
def a_result_streams_and_its_reader_may_go():
    with Server() as server:
        process = subprocess.Popen([TESSERA, "-h", f"{server.folder}:{server.port}", "SELECT x FROM generate_series(1, 100000000) AS g(x)"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        equals([process.stdout.readline() for _ in range(3)], ["x\n", "1\n", "2\n"])
        process.stdout.close()
        equals((process.wait(20), process.stderr.read()), (0, ""))


def terminal(server, *arguments, **environment):
    environment = {**os.environ, "HOME": server.folder, "TERM": "vt100", "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "PAGER": "", "PGPASSFILE": "/dev/null", **environment}
    return AnyTerminal([TESSERA, "-h", f"{server.folder}:{server.port}", *arguments], environment)


@test
def tab_completes_names_of_the_server():
    with Server(statements="CREATE TABLE measurements (weight INTEGER, height INTEGER); CREATE SCHEMA other; CREATE TABLE other.things (x INTEGER)") as server, \
            contextlib.closing(terminal(server)) as screen:
        screen.expect_prompt()
        for keys, seen in (("SELECT 4 + count(*) AS answer FROM meas", "meas"), ("\t", "rements"), ("WHERE wei", "wei"), ("\t", "ght"), ("> 1;\r", ";")):
            screen.type(keys)  # (Tab in what is pasted indents.)
            screen.expect(seen)
        holds("│      4 │" in screen.expect("└────────┘"), "a table and its column")
        screen.expect_prompt()
        for keys, seen in (("SELECT 5 + count(*) AS answer FROM other.th", "th"), ("\t", "ings"), (";\r", ";")):
            screen.type(keys)
            screen.expect(seen)
        holds("│      5 │" in screen.expect("└────────┘"), "a table of another schema")
        screen.expect_prompt()
        screen.type("\\q\r")
        equals(screen.leave(), 0)


@test
def ctrl_c_cancels_the_statement_and_keeps_the_session():
    with Server() as server, contextlib.closing(terminal(server)) as screen:
        holds(f"server at {server.folder}:{server.port}" in screen.expect_prompt(), "the greeting")
        screen.type("CREATE TEMP TABLE mine (x INTEGER);\r")
        screen.expect("CREATE TABLE")
        screen.expect_prompt()
        screen.type("SELECT count(*) FROM range(10000000) AS a(x), range(10000000) AS b(y) WHERE (x * y) % 7 = 3;\r")
        time.sleep(0.5)
        screen.type(b"\x03")
        screen.expect("ERROR:  canceling statement due to user request", 10)
        screen.expect_prompt()
        screen.type("SELECT count(*) AS still_there FROM mine;\r")
        screen.expect("still_there")
        screen.expect_prompt()
        screen.type(b"\x1b[A")  # the arrow that points up
        screen.expect("still_there FROM mine;")
        screen.type("\r")
        screen.expect_prompt()
        screen.type("\\q\r")
        equals(screen.leave(), 0)


@test
def a_signal_ends_a_batch_and_its_statement():
    with Server() as server:
        process = subprocess.Popen([TESSERA, "-h", f"{server.folder}:{server.port}", "SELECT count(*) FROM range(10000000) AS a(x), range(10000000) AS b(y) WHERE (x * y) % 7 = 3"], stderr=subprocess.PIPE, text=True)
        for _ in range(200):
            if "range" in server.psql("-Atc", "SELECT query FROM pg_stat_activity WHERE state = 'active' AND application_name = 'tessera'").stdout:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        equals(process.wait(20), -signal.SIGINT)
        for _ in range(200):
            left = server.psql("-Atc", "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tessera'").stdout
            if left == "0\n":
                return
            time.sleep(0.05)
        raise AssertionError(left)


@test
def a_lost_connection_is_made_again():
    with Server() as server:
        # (Its answer may still arrive, so it is no error then.)
        answer = run(server, "--no-bail", script="SELECT 1 AS x;\nSELECT pg_terminate_backend(pg_backend_pid());\n.shell sleep 0.3\nSELECT 2 AS x;\n", status=None)
        holds(answer.stdout.endswith("x\n2\n"), answer)
        holds("made again" in answer.stderr, answer.stderr)


@test
def other_servers_are_refused():
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()

    def serve():
        s = listening.accept()[0]
        first = s.recv(1000)
        if first[4:8] == b"\x04\xd2\x16\x2f":  # it asks for TLS
            s.sendall(b"N")
            s.recv(1000)
        s.sendall(b"R\0\0\0\x08\0\0\0\0" + b"S" + (4 + 20).to_bytes(4, "big") + b"server_version\x0015.3\0" + b"Z\0\0\0\x05I")
        s.recv(1000)

    thread = threading.Thread(target=serve)
    thread.start()
    answer = subprocess.run([TESSERA, "-h", f"127.0.0.1:{listening.getsockname()[1]}", "SELECT 1"], capture_output=True, text=True, timeout=20, env={**os.environ, "PGGSSENCMODE": "disable"})
    thread.join()
    equals(answer.returncode, 2)
    holds("not one of Tessera but PostgreSQL 15.3" in answer.stderr and "psql" in answer.stderr, answer.stderr)


if __name__ == "__main__":
    if "built without" in subprocess.run([TESSERA, "-h", "/", "SELECT 1"], capture_output=True, text=True).stderr:
        print("[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] remote_shell_test: built without libpq, asio or OpenSSL")
        sys.exit(0)
    sys.exit(run_tests(TESTS))
