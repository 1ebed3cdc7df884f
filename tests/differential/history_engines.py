"""The engines of tests/differential/differential_histories.py: Tessera, SQLite and PostgreSQL, each with one session or two.

    engine.run(session, sql)   an Answer
    engine.abort(session)      the open transaction of the session, if there is one, has failed in a statement
    engine.reopen()            open transactions are rolled back; Tessera's database is closed and opened
    engine.close()

Run as a program, it is the process in which Tessera's second session may live.
"""

import collections
import os
import pickle
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import warnings

from postgres_server import PostgresServer

try:
    import psycopg
except ImportError:
    psycopg = None

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOCK_MS = 30_000  # that a statement waits which is to wait for the other session
Answer = collections.namedtuple("Answer", "error rows count message", defaults=("", None, -1, ""))


def value(v):
    if v is None:
        return (0, 0, "")
    if isinstance(v, str):
        return (2, 0, v)
    return (1, int(v) if v == int(v) else float(v), "")


def rows_of(cursor_rows):
    return sorted([value(v) for v in row] for row in cursor_rows)


def temporary_folder():
    return tempfile.mkdtemp(prefix="tessera_histories_", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)


# ---- Tessera

sys.path.insert(0, os.path.join(ROOT, "python"))


class TesseraSession:
    def __init__(self, path, tablet_rows):
        import tessera  # (here, because the name of the library is told after this file was read)
        self.tessera = tessera
        self.connection, self.lock_ms = tessera.connect(path, device="host", threads=1), None
        if tablet_rows:
            self.run(f"SET tablet_rows = {tablet_rows}")

    def run(self, sql, wait=False):
        """`wait`: for the other session, up to LOCK_MS."""
        lock_ms = LOCK_MS if wait else 1  # (0, which dumps of PostgreSQL set, changes nothing)
        if lock_ms != self.lock_ms:
            try:
                self.connection.sql(f"SET lock_timeout = {lock_ms}")
                self.lock_ms = lock_ms
            except self.tessera.Error:
                pass  # the transaction has failed, so nothing waits
        try:
            result = self.connection.sql(sql)
            if result.columns:
                return Answer(rows=rows_of(result.fetchall()), count=result.rowcount)
            return Answer(count=result.rowcount)
        except self.tessera.Error as error:
            return Answer(error=error.sqlstate or "?", message=str(error))

    def close(self):
        self.connection.close()
        self.connection = None  # (the database is closed with the last of its connections)


class DistantSession:
    """A TesseraSession in a process of its own, which goes on to the next history."""

    process = None

    def __init__(self, path, tablet_rows):
        if DistantSession.process is None:
            DistantSession.process = subprocess.Popen([sys.executable, os.path.abspath(__file__)], stdin=subprocess.PIPE,
                                                      stdout=subprocess.PIPE)
        self.ask(("open", path, tablet_rows))

    def ask(self, question):
        """None if the process is not there any more."""
        if self.process is None:
            return None
        try:
            pickle.dump(question, self.process.stdin)
            self.process.stdin.flush()
            return pickle.load(self.process.stdout)
        except (EOFError, BrokenPipeError):
            DistantSession.process = None
            return None

    def run(self, sql, wait=False):
        return Answer(*self.ask(("run", sql, wait)) or ("XX000", None, -1, "the process of the session has ended"))

    def close(self):
        self.ask(("close",))

    @staticmethod
    def stop():
        if DistantSession.process is not None:
            DistantSession.process.stdin.close()
            DistantSession.process.wait()
            DistantSession.process = None


def serve():
    """Answers the questions of a DistantSession."""
    warnings.simplefilter("ignore")
    session = None
    while True:
        try:
            word, *arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer = None
        if word == "open":
            session = TesseraSession(*arguments)
        elif word == "run":
            answer = tuple(session.run(*arguments))
        else:
            session.close()
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()


class Tessera:
    """`sessions`: 1, or 2; `distant`: whether the second is in another process."""

    def __init__(self, tablet_rows, sessions=1, distant=False):
        self.folder, self.tablet_rows = temporary_folder(), tablet_rows
        self.kinds = [TesseraSession, DistantSession if distant else TesseraSession][:sessions]
        self.sessions = []
        self.reopen()

    def reopen(self):
        while self.sessions:
            self.sessions.pop().close()
        self.sessions = [kind(os.path.join(self.folder, "db"), self.tablet_rows) for kind in self.kinds]

    def run(self, session, sql, wait=False):
        return self.sessions[session].run(sql, wait)

    def close(self):
        while self.sessions:
            self.sessions.pop().close()
        shutil.rmtree(self.folder, ignore_errors=True)


# ---- SQLite


class SqliteSession:
    """With transactions as PostgreSQL has them."""

    def __init__(self, path):
        self.connection = sqlite3.connect(path, isolation_level=None, timeout=0)
        self.connection.execute("PRAGMA foreign_keys = on")
        self.connection.execute("PRAGMA synchronous = off")
        if path != ":memory:":
            self.connection.execute("PRAGMA journal_mode = wal")
        self.failed = False

    def reopen(self):
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")
        self.failed = False

    def run(self, sql):
        word, inside = sql.split()[0], self.connection.in_transaction
        if word == "COMMIT" and self.failed:
            sql = word = "ROLLBACK"
        if word == "BEGIN" and inside and not self.failed or word in ("COMMIT", "ROLLBACK") and not inside and " TO " not in sql:
            return Answer()  # a warning in PostgreSQL
        if self.failed and word != "ROLLBACK":
            return Answer(error="25P02")
        if word in ("SAVEPOINT", "RELEASE") and not inside:
            return Answer(error="25P01")
        if word == "VACUUM" and not inside:
            return Answer()  # (it would want the file for itself)
        try:
            if sql.startswith("CREATE VIEW"):  # (which may read what is not there)
                self.connection.execute(sql.split(" AS ", 1)[1]).fetchall()
            cursor = self.connection.execute(sql)
            answer = Answer(rows=rows_of(cursor.fetchall()) if cursor.description else None, count=cursor.rowcount)
        except sqlite3.Error as error:
            self.failed = inside
            if word == "COMMIT":
                self.reopen()
            return Answer(error="23505" if "UNIQUE" in str(error) else "?", message=str(error))
        if word == "ROLLBACK":
            self.failed = False
        return answer

    def abort(self):
        if self.connection.in_transaction:
            self.connection.execute("SELECT count(*) FROM sqlite_master").fetchall()  # sees the database from here on
            self.failed = True

    def close(self):
        self.connection.close()


class Sqlite:
    """Two sessions share a file, whose transactions see what was committed when they began to read."""

    knows_states = False

    def __init__(self, sessions=1):
        self.folder = temporary_folder() if sessions > 1 else None
        path = os.path.join(self.folder, "db") if self.folder else ":memory:"
        self.sessions = [SqliteSession(path) for _ in range(sessions)]

    def reopen(self):
        for session in self.sessions:
            session.reopen()

    def run(self, session, sql):
        return self.sessions[session].run(sql)

    def abort(self, session):
        self.sessions[session].abort()

    def close(self):
        for session in self.sessions:
            session.close()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


# ---- PostgreSQL


class Postgres(PostgresServer):
    """A server of its own with two sessions; each history begins with an empty schema."""

    knows_states = True

    def __init__(self):
        super().__init__("fsync=off", "synchronous_commit=off", "default_transaction_isolation='repeatable read'", "lock_timeout=100",
                         "statement_timeout=20000")
        self.connections = [psycopg.connect(host=self.folder, user="postgres", dbname="postgres", autocommit=True,
                                            prepare_threshold=None) for _ in range(2)]
        self.whole = False

    def begin(self, whole):
        """`whole`: keys hold after a statement as a whole, as in Tessera."""
        self.reopen()
        self.whole = whole
        self.connections[0].execute("SET client_min_messages = error; DROP SCHEMA public CASCADE; CREATE SCHEMA public")

    def reopen(self):
        for connection in self.connections:
            connection.execute("ROLLBACK")

    def run(self, session, sql):
        if self.whole:
            sql = re.sub(r"PRIMARY KEY( \([^)]*\))?|UNIQUE( \([^)]*\))?", r"\g<0> DEFERRABLE", sql)
        try:
            cursor = self.connections[session].execute(sql)
            return Answer(rows=rows_of(cursor.fetchall()) if cursor.description else None, count=cursor.rowcount)
        except psycopg.Error as error:
            return Answer(error=error.sqlstate or "?", message=str(error))

    def abort(self, session):
        self.run(session, "SELECT 1")  # sees the database from here on
        self.run(session, "this is an error")

    def close(self):
        pass

    def stop(self):
        for connection in self.connections:
            connection.close()
        super().stop()


def start_postgres():
    """A server, or None and a line that says why."""
    if psycopg is None:
        print("without PostgreSQL: no psycopg is here", flush=True)
        return None
    try:
        return Postgres()
    except (OSError, LookupError, subprocess.CalledProcessError, psycopg.Error) as error:
        print(f"without PostgreSQL: {error}", flush=True)
        return None


if __name__ == "__main__":
    serve()
