#!/usr/bin/env python3
"""Roles of CREATE ROLE and what GRANT lets their sessions do.

    tests/server/roles_test.py BUILD_DIR [NAME...]

Ends with "N passed, N failed".
"""

import os
import subprocess
import sys

from server_test import TESSERA, Server, equals, holds, run_tests

TESTS = []
TABLES = """CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2); CREATE SCHEMA s; CREATE TABLE s.u (a INTEGER); CREATE TABLE hidden (a INTEGER);
CREATE VIEW v AS SELECT a FROM t; CREATE VIEW w AS SELECT a FROM hidden;
CREATE ROLE reader LOGIN; CREATE USER writer PASSWORD 'secret'; CREATE ROLE chief SUPERUSER LOGIN PASSWORD 'chief'; CREATE ROLE locked PASSWORD 'x'"""


def test(function):
    TESTS.append(function)
    return function


def refused(connection, statement, says):
    import psycopg
    try:
        connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege as error:
        holds(says in str(error), (statement, str(error)))
        return
    raise AssertionError(f"{statement}: it may do that")


@test
def grants_hold_in_sessions_that_are_open():
    with Server(statements=TABLES) as server, server.connect() as owner, server.connect(user="reader") as reader:
        for statement in ("SELECT * FROM t", "SELECT * FROM v"):
            refused(reader, statement, "permission denied for table t")
        owner.execute("GRANT SELECT ON t TO reader")
        for statement in ("SELECT count(*) FROM t", "SELECT count(*) FROM v"):
            equals(reader.execute(statement).fetchall(), [(2,)])
        refused(reader, "SELECT * FROM w", "permission denied for table hidden")
        refused(reader, "SELECT * FROM t, s.u", "permission denied for table s.u")
        refused(reader, "INSERT INTO t VALUES (3)", "permission denied for table t")
        refused(reader, "UPDATE t SET a = 3", "permission denied for table t")
        refused(reader, "DELETE FROM t", "permission denied for table t")
        refused(reader, "TRUNCATE t", "permission denied for table t")
        refused(reader, "DROP TABLE t", "permission denied for table t")
        refused(reader, "ALTER TABLE t ADD COLUMN b INTEGER", "permission denied for table t")
        for statement in ("CREATE TABLE x (a INTEGER)", "CREATE ROLE x", "GRANT ALL ON hidden TO reader", "ALTER ROLE reader SUPERUSER",
                          "DROP ROLE writer", "ALTER ROLE writer PASSWORD 'other'", "CREATE VIEW x AS SELECT 1", "EXPORT DATABASE '/tmp/x'"):
            refused(reader, statement, "permission denied")
        reader.execute("CREATE TEMP TABLE mine AS SELECT a FROM t")
        equals(reader.execute("SELECT count(*) FROM mine").fetchall(), [(2,)])
        # The same text, whose program is kept, is looked at again.
        for _ in range(3):
            reader.execute("SELECT a FROM t WHERE a > 1").fetchall()
        owner.execute("REVOKE SELECT ON t FROM reader")
        refused(reader, "SELECT a FROM t WHERE a > 1", "permission denied for table t")
        refused(reader, "SELECT count(*) FROM v", "permission denied for table t")
        for right, statement in (("INSERT", "INSERT INTO t VALUES (3)"), ("UPDATE, SELECT", "UPDATE t SET a = 4 WHERE a = 3"),
                                 ("DELETE", "DELETE FROM t WHERE a = 4"), ("TRUNCATE", "TRUNCATE t")):
            owner.execute(f"GRANT {right} ON t TO reader")
            reader.execute(statement)
        refused(reader, "DROP TABLE t", "permission denied for table t")
        owner.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO reader")
        reader.execute("ALTER TABLE t ADD COLUMN b INTEGER")
        reader.execute("SELECT * FROM w")
        owner.execute("REVOKE ALL ON t, hidden FROM reader")
        owner.execute("GRANT SELECT ON hidden TO PUBLIC")
        equals(reader.execute("SELECT count(*) FROM hidden").fetchall(), [(0,)])
        # One that is dropped may do nothing any more.
        owner.execute("DROP ROLE reader")
        refused(reader, "SELECT * FROM t", "permission denied")


@test
def rights_are_kept_in_the_catalog():
    with Server(statements=TABLES + "; GRANT SELECT ON t TO reader") as server:
        server.process.terminate()
        server.process.wait(20)
        with Server(folder=server.folder) as again, again.connect(user="reader") as reader:
            equals(reader.execute("SELECT count(*) FROM t").fetchall(), [(2,)])
            refused(reader, "SELECT * FROM hidden", "permission denied for table hidden")
            copy = os.path.join(server.folder, "copy")
            with again.connect(user="chief") as chief:
                equals(chief.execute("SELECT relacl FROM pg_class WHERE relname = 't'").fetchall(), [("{tessera=arwdDxt/tessera,reader=r/tessera}",)])
        subprocess.run([TESSERA, os.path.join(server.folder, "db"), "-c", f"VACUUM INTO '{copy}'"], check=True, stdout=subprocess.DEVNULL)
        equals(subprocess.run([TESSERA, copy, "--noheader", "-c", "SELECT relacl FROM pg_class WHERE relname = 't'"], capture_output=True, text=True, check=True).stdout,
               '"{tessera=arwdDxt/tessera,reader=r/tessera}"\n')


@test
def passwords_are_asked_for():
    import psycopg
    with Server("--authenticate-all", statements=TABLES) as server:
        def comes(user, password):
            try:
                server.connect(user=user, password=password).close()
                return ""
            except psycopg.OperationalError as error:
                return str(error)

        equals(comes("writer", "secret"), "")
        equals(comes("chief", "chief"), "")
        holds("password authentication failed" in comes("writer", "wrong"), "another password")
        holds("password authentication failed" in comes("reader", "x"), "none")
        holds("password authentication failed" in comes("nobody", "x"), "no such role")
        holds("is not permitted to log in" in comes("locked", "x"), "NOLOGIN")
        with server.connect(user="writer", password="secret") as writer:
            writer.execute("ALTER ROLE writer PASSWORD 'new'")  # its own
        holds("password authentication failed" in comes("writer", "secret"), "the old one")
        equals(comes("writer", "new"), "")
        verifier = subprocess.run([TESSERA, "--role", "x"], input="third\n", capture_output=True, text=True, check=True).stdout.split()[1]
        with server.connect(user="chief", password="chief") as chief:
            chief.execute(f"ALTER USER writer PASSWORD '{verifier}'")  # as psql's \password sends it
            chief.execute("ALTER ROLE locked LOGIN")
            equals(chief.execute("SELECT rolname FROM pg_roles WHERE rolcanlogin ORDER BY 1").fetchall(), [("chief",), ("locked",), ("reader",), ("tessera",), ("writer",)])
        equals(comes("writer", "third"), "")
        equals(comes("locked", "x"), "")
        with open(os.path.join(server.folder, "log")) as log:
            holds("secret" not in log.read(), "passwords are not logged")


@test
def psql_shows_roles_and_grants():
    with Server(statements=TABLES + "; GRANT SELECT, INSERT ON t TO reader") as server:
        roles = server.psql("-c", "\\du").stdout
        holds("chief" in roles and "Superuser" in roles and "locked" in roles and "Cannot login" in roles, roles)
        rights = server.psql("-c", "\\dp t").stdout
        holds("reader=ar/tessera" in rights, rights)
        equals(server.psql("-Atc", "GRANT SELECT ON t TO nobody").stdout, "GRANT\n")


@test
def roles_of_the_file_come_first():
    import psycopg
    folder_roles = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"tessera-roles-{os.getpid()}")
    line = subprocess.run([TESSERA, "--role", "reader"], input="of the file\n", capture_output=True, text=True, check=True).stdout.strip()
    with open(folder_roles, "w") as file:
        file.write(line + " all=*\n")
    try:
        with Server("--roles", folder_roles, "--authenticate-all", statements=TABLES) as server:
            with server.connect(user="reader", password="of the file") as reader:
                reader.execute("SELECT * FROM hidden")
            with server.connect(user="writer", password="secret") as writer:
                refused(writer, "SELECT * FROM hidden", "permission denied")
            try:
                server.connect(user="writer", password="of the file")
                raise AssertionError("another one's password")
            except psycopg.OperationalError:
                pass
    finally:
        os.unlink(folder_roles)


@test
def transactions_of_rights():
    with Server(statements=TABLES) as server, server.connect(autocommit=False) as owner, server.connect(user="reader") as reader:
        owner.execute("GRANT SELECT ON t TO reader")
        refused(reader, "SELECT * FROM t", "permission denied")
        owner.rollback()
        refused(reader, "SELECT * FROM t", "permission denied")
        owner.execute("GRANT SELECT ON t TO reader")
        owner.commit()
        equals(reader.execute("SELECT count(*) FROM t").fetchall(), [(2,)])


if __name__ == "__main__":
    sys.exit(run_tests(TESTS))
