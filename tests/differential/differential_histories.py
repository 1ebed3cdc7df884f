#!/usr/bin/env python3
"""Random histories of changes and transactions, beside SQLite and, where its programs are installed, PostgreSQL.

    tests/differential/differential_histories.py BUILD_DIR [HISTORIES [SEED]]

A history is statements over a few small tables with keys, checks and foreign keys: changes of rows, of tables and of views,
transactions with savepoints, errors in the middle, VACUUM, and the database opened anew. Each statement is an error in every
engine or in none, changes as many rows, and gives the same rows; the tables are read again and again. SQLite goes on after an
error in a transaction, so that `Sqlite` below refuses what PostgreSQL refuses. It takes part in the histories of the kind
"plain", whose statements mean the same there. A server of PostgreSQL is started in a temporary folder and ended.

What differs is shrunk to a short script and printed. Exit status 1 if anything does. Runs with the Python of build/venv if it is
there, because it has psycopg.
"""

import collections
import copy
import glob
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VENV = os.path.join(ROOT, "build", "venv", "bin", "python")
REOPEN = "-- the database is opened anew"
TEXTS = ["", "a", "b", "ab", "abc", "it''s", "\u00e4", "null", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"]
ACTIONS = ["", "", "CASCADE", "CASCADE", "SET NULL", "RESTRICT", "SET DEFAULT"]

# What an engine means otherwise, by the statement and its answers. Such a statement ends the history, because the tables differ
# from then on.
Answer = collections.namedtuple("Answer", "error rows count message", defaults=("", None, -1, ""))


def meant(sql, ours, theirs):
    if re.match(r"UPDATE|DELETE|INSERT.*DO UPDATE", sql) and not ours.error and theirs.error == "23505":
        return "keys hold after the statement as a whole here, after each row there"
    if not ours.error and theirs.error == "22012":
        return "division by zero is NULL here, an error there"
    if not ours.error and theirs.error == "55006":
        return "a table whose deferred keys wait can be altered here, not there"
    if not ours.error and theirs.error == "42702" and "ORDER BY" in theirs.message:
        return "ORDER BY takes the first of two columns of the same name here, neither there"
    return ""


# ---- The engines


def value(v):
    if v is None:
        return (0, 0, "")
    if isinstance(v, str):
        return (2, 0, v)
    return (1, int(v) if v == int(v) else float(v), "")


def rows_of(cursor_rows):
    return sorted([value(v) for v in row] for row in cursor_rows)


class Tessera:
    def __init__(self, tablet_rows):
        self.folder = tempfile.mkdtemp(prefix="tessera_histories_", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self.tablet_rows, self.connection = tablet_rows, None
        self.reopen()

    def reopen(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None  # (the database is closed with the last of its connections)
        self.connection = tessera.connect(os.path.join(self.folder, "db"), device="host", threads=1)
        if self.tablet_rows:
            self.connection.sql(f"SET tablet_rows = {self.tablet_rows}")

    def run(self, sql):
        try:
            result = self.connection.sql(sql)
            if result.columns:
                return Answer(rows=rows_of(result.fetchall()), count=result.rowcount)
            return Answer(count=result.rowcount)
        except tessera.Error as error:
            return Answer(error=error.sqlstate or "?", message=str(error))

    def close(self):
        self.connection.close()
        self.connection = None
        shutil.rmtree(self.folder, ignore_errors=True)


class Sqlite:
    """With transactions as PostgreSQL has them."""

    def __init__(self):
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.execute("PRAGMA foreign_keys = on")
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
        try:
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

    def close(self):
        self.connection.close()


class Postgres:
    """A server of its own; each history begins with an empty schema."""

    def __init__(self, programs):
        self.folder = tempfile.mkdtemp(prefix="tessera_histories_")
        self.programs = programs
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
        os.chmod(self.folder, 0o755)
        data = os.path.join(self.folder, "data")
        self.call("initdb", "-D", data, "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C")
        self.call("pg_ctl", "-D", data, "-w", "-l", os.path.join(self.folder, "log"), "-o",
                  f"-k {self.folder} -c listen_addresses='' -c fsync=off -c synchronous_commit=off", "start")
        self.connection = psycopg.connect(host=self.folder, user="postgres", dbname="postgres", autocommit=True,
                                          prepare_threshold=None)
        self.connection.execute("SET statement_timeout = 20000")
        self.whole = False

    def call(self, program, *arguments):
        prefix = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        subprocess.run([*prefix, os.path.join(self.programs, program), *arguments], check=True, cwd="/",
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def begin(self, whole):
        """`whole`: keys hold after a statement as a whole, as in Tessera."""
        self.reopen()
        self.whole = whole
        self.connection.execute("SET client_min_messages = error; DROP SCHEMA public CASCADE; CREATE SCHEMA public")

    def reopen(self):
        self.connection.execute("ROLLBACK")

    def run(self, sql):
        if self.whole:
            sql = re.sub(r"PRIMARY KEY( \([^)]*\))?|UNIQUE( \([^)]*\))?", r"\g<0> DEFERRABLE", sql)
        try:
            cursor = self.connection.execute(sql)
            return Answer(rows=rows_of(cursor.fetchall()) if cursor.description else None, count=cursor.rowcount)
        except psycopg.Error as error:
            return Answer(error=error.sqlstate or "?", message=str(error))

    def close(self):
        pass

    def stop(self):
        self.connection.close()
        self.call("pg_ctl", "-D", os.path.join(self.folder, "data"), "-m", "immediate", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)


# ---- The generator


class Column:
    def __init__(self, name, kind, plain=True):
        self.name, self.kind, self.plain = name, kind, plain  # plain: in no key and no check


class Table:
    def __init__(self, name, columns, keys=(), refers=False):
        self.name, self.columns, self.refers = name, columns, refers
        self.keys = list(keys)  # lists of columns, the primary key first
        self.referred = False

    def of(self, kind):
        return [c for c in self.columns if c.kind == kind]


class World:
    """What is there as far as the generator knows: if it is wrong, there are errors in all engines."""

    def __init__(self):
        self.tables = {}
        self.views = {}  # name: (table, columns)


class Generator:
    """One history. `kind`: "plain" means the same in SQLite, "full" is PostgreSQL's, "whole" has keys that move and no
    foreign keys and ON CONFLICT."""

    def __init__(self, rng, kind):
        self.rng, self.kind = rng, kind
        self.world, self.stack, self.effect = World(), [], None  # stack: (savepoint, the world before)
        self.failed = False
        self.number = 0
        self.waiting = self.first_tables()

    # Parts of statements

    def pick(self, things):
        return self.rng.choice(list(things))

    def chance(self, percent):
        return self.rng.random() * 100 < percent

    def fresh(self, prefix):
        self.number += 1
        return f"{prefix}{self.number}"

    def literal(self, kind, null=15):
        if self.chance(null):
            return "NULL"
        if kind == "text":
            return f"'{self.pick(TEXTS)}'"
        n = self.rng.randint(-3, 12)
        return str(n) if n >= 0 else f"({n})"

    def expression(self, kind, columns, prefix="", depth=0):
        own = [prefix + c.name for c in columns if c.kind == kind]
        other = [prefix + c.name for c in columns if c.kind != kind]
        if not own or self.chance(25):
            return self.literal(kind)
        c, n = self.pick(own), self.rng.randint(1, 9)
        forms = [c, c, f"coalesce({c}, {self.literal(kind, 0)})"]
        if depth < 2:
            forms.append(f"CASE WHEN {self.condition(columns, prefix, depth + 1)} THEN {c} ELSE "
                         f"{self.expression(kind, columns, prefix, depth + 1)} END")
        if kind == "int":
            forms += [f"{c} + {n}", f"{n} - {c}", f"{c} * 2"]
            forms += [f"length({self.pick(other)})"] if other else []
            if self.kind != "plain" and self.chance(10):
                forms = [f"{n} / {c}", f"{c} * 500000000"]
        else:
            forms += [f"substr({c} || 'x', 1, 6)", f"substr('y' || {c}, 1, 3)"]
            forms += [f"CAST({self.pick(other)} AS TEXT)"] if other else []
        return self.pick(forms)

    def condition(self, columns, prefix="", depth=0):
        c = self.pick(columns)
        name = prefix + c.name
        forms = [f"{name} {self.pick(['=', '=', '<', '>', '<>', '<=', '>='])} {self.literal(c.kind, 5)}", f"{name} IS NULL",
                 f"{name} IS NOT NULL", f"{name} IN ({self.literal(c.kind)}, {self.literal(c.kind)})",
                 f"{name} BETWEEN {self.literal(c.kind, 0)} AND {self.literal(c.kind, 0)}"]
        if c.kind == "text":
            forms.append(f"{name} LIKE '{self.pick(['a%', '%b', '%', '_'])}'")
        if depth < 2:
            one, two = (self.condition(columns, prefix, depth + 1) for _ in range(2))
            forms += [f"({one} {self.pick(['AND', 'OR'])} {two})", f"NOT ({one})"]
            forms += self.subqueries(c, name, depth)
        return self.pick(forms)

    def subqueries(self, column, name, depth):
        if not self.world.tables or not self.chance(50):
            return []
        table = self.source()
        same = [c for c in table.columns if c.kind == column.kind]
        if not same:
            return []
        other = self.pick(same).name
        q = f"q{depth}"  # (SQLite finds columns of an outer q where the inner one has none)
        where = self.condition(table.columns, q + ".", depth + 1)
        return [f"{name} {self.pick(['IN', 'NOT IN'])} (SELECT {q}.{other} FROM {table.name} AS {q} WHERE {where})",
                f"EXISTS (SELECT 1 FROM {table.name} AS {q} WHERE {q}.{other} = {name} AND {where})",
                f"{name} = (SELECT {self.pick(['max', 'min'])}({q}.{other}) FROM {table.name} AS {q} WHERE {where})"]

    def source(self):
        """A table or a view, as a table."""
        tables = list(self.world.tables.values())
        return self.pick(tables + [Table(name, columns) for name, (_, columns) in self.world.views.items()])

    def returning(self, table):
        if not self.chance(35):
            return ""
        if self.chance(40):
            return " RETURNING *"
        if self.kind == "plain":  # (SQLite has the rows as they are while it goes on)
            return f" RETURNING {table.columns[0].name}, {self.pick(table.columns).name} AS r"
        return f" RETURNING {table.columns[0].name}, {self.expression(self.pick(['int', 'text']), table.columns)} AS r"

    # Statements. Each gives the text and, if it changes the world, what it does to it.

    def first_tables(self):
        tables = []
        for name in ("t0", "t1", "t2")[:self.rng.randint(2, 3)]:
            sql, effect = self.create(name)
            tables.append((sql, effect))
            effect(self.world)  # (so that the next one can refer to it; once more when it has run)
        self.world = World()
        return tables

    def create(self, name):
        first = "text" if self.chance(15) else "int"
        columns = [Column(f"{name}a", first), Column(f"{name}b", "int"), Column(f"{name}c", "text"), Column(f"{name}d", "int")]
        parts = [f"{c.name} {'INT' if c.kind == 'int' else 'TEXT'}" for c in columns]
        keys, last = [], []
        for i in (1, 3):
            if self.chance(30):
                parts[i] += f" DEFAULT {self.literal('int')}"
        shape = self.rng.randint(0, 4)
        if shape <= 2:
            parts[0] += " NOT NULL PRIMARY KEY"
            keys.append([columns[0]])
        elif shape == 3:
            parts[0] += " NOT NULL"
            parts[3] += " NOT NULL"
            last.append(f"PRIMARY KEY ({name}a, {name}d)")
            keys.append([columns[0], columns[3]])
        if self.chance(35):
            parts[1] += " UNIQUE"
            keys.append([columns[1]])
        elif self.chance(20):
            last.append(f"UNIQUE ({name}b, {name}c)")
            keys.append([columns[1], columns[2]])
        if self.chance(40):
            last.append(f"CHECK ({name}d {self.pick(['<', '<>', '>'])} {self.rng.randint(-3, 12)})")
            columns[3].plain = False
        elif self.chance(20):
            parts[2] += " NOT NULL"
        refers = self.foreign_key(name, columns, last)
        for key in keys:
            for c in key:
                c.plain = False
        table = Table(name, columns, keys, refers is not None)

        def effect(world):
            world.tables[name] = copy.deepcopy(table)
            if refers in world.tables:
                world.tables[refers].referred = True
        return f"CREATE TABLE {name} ({', '.join(parts + last)})", effect

    def foreign_key(self, name, columns, last):
        """Adds one to `last`, or not; the table it refers to."""
        parents = [t for t in self.world.tables.values() if any(len(key) == 1 for key in t.keys)]
        if self.kind == "whole" or not parents or not self.chance(75):
            return None
        parent = self.pick(parents)
        key = self.pick([key for key in parent.keys if len(key) == 1])[0]
        own = self.pick([c for c in columns if c.kind == key.kind] or [None])
        if own is None:
            return None
        own.plain = key.plain = False
        sql = f"FOREIGN KEY ({own.name}) REFERENCES {parent.name} ({key.name})"
        for event in ("DELETE", "UPDATE"):
            action = self.pick(ACTIONS)
            sql += f" ON {event} {action}" if action else ""
        if self.chance(15):
            sql += " DEFERRABLE INITIALLY DEFERRED"
        last.append(sql)
        return parent.name

    def table(self):
        return self.pick(self.world.tables.values())

    def insert(self):
        t = self.table()
        columns = t.columns if self.chance(70) else [c for c in t.columns if self.chance(70)] or t.columns
        names = ", ".join(c.name for c in columns)
        if self.chance(25):
            source = self.source()
            outputs = ", ".join(self.expression(c.kind, source.columns) for c in columns)
            rows = f"SELECT {outputs} FROM {source.name} WHERE {self.condition(source.columns)}"
            if self.kind != "plain" and self.chance(30):
                rows += f" ORDER BY {', '.join(c.name for c in source.columns)}"
        else:
            count = 1 if self.chance(50) else self.rng.randint(2, 9)
            rows = "VALUES " + ", ".join("(" + ", ".join(self.literal(c.kind) for c in columns) + ")" for _ in range(count))
            if count == 1 and self.kind != "plain" and self.chance(10):
                rows = rows.replace("NULL", "DEFAULT")
        return f"INSERT INTO {t.name} ({names}) {rows}{self.conflict(t, rows)}{self.returning(t)}", None

    def conflict(self, t, rows):
        if self.kind == "whole" or not self.chance(45):
            return ""
        # (Which of the new rows with one key stays is a matter of their order.)
        if self.chance(50) and rows.startswith("VALUES"):
            return " ON CONFLICT DO NOTHING"
        if not t.keys or (self.kind == "plain" and rows.startswith("SELECT")) or (self.kind == "plain" and "), (" in rows):
            return ""
        target = f" ON CONFLICT ({', '.join(c.name for c in self.pick(t.keys))}) DO "
        if self.chance(20) and rows.startswith("VALUES"):
            return target + "NOTHING"
        sets = []
        for c in self.rng.sample(t.columns, self.rng.randint(1, 2)):
            new = f"excluded.{c.name}" if self.chance(50) else self.expression(c.kind, t.columns, f"{t.name}.")
            sets.append(f"{c.name} = {new}")
        where = f" WHERE {self.condition(t.columns, t.name + '.')}" if self.chance(30) else ""
        return f"{target}UPDATE SET {', '.join(sets)}{where}"

    def update(self):
        t = self.table()
        changed = self.rng.sample(t.columns, min(len(t.columns), self.rng.randint(1, 3)))
        if not self.chance(40):
            changed = [c for c in changed if c.plain] or changed
        sets = ", ".join(f"{c.name} = {self.expression(c.kind, t.columns)}" for c in changed)
        others = [o for o in self.world.tables.values() if o is not t and any(len(key) == 1 for key in o.keys)]
        if others and self.chance(25):
            other = self.pick(others)
            key = self.pick([key for key in other.keys if len(key) == 1])[0]
            own = [c for c in t.columns if c.kind == key.kind]
            if own:
                sets = ", ".join(f"{c.name} = {self.expression(c.kind, other.columns, 's.')}" for c in changed)
                return (f"UPDATE {t.name} SET {sets} FROM {other.name} AS s WHERE s.{key.name} = {t.name}.{self.pick(own).name} AND "
                        f"{self.condition(other.columns, 's.')}" + ("" if self.kind == "plain" else self.returning(t)
                                                                    .replace("*", f"{t.name}.*")), None)
        where = f" WHERE {self.condition(t.columns, t.name + '.')}" if self.chance(85) else ""
        return f"UPDATE {t.name} SET {sets}{where}{self.returning(t)}", None

    def delete(self):
        t = self.table()
        where = f" WHERE {self.condition(t.columns, t.name + '.')}"
        if self.chance(5):
            where = ""
        elif self.chance(50):
            where += f" AND {self.condition(t.columns, t.name + '.')}"
        return f"DELETE FROM {t.name}{where}{self.returning(t)}", None

    def select(self):
        t = self.source()
        form = self.rng.randint(0, 3)
        if form == 0 and len(self.world.tables) > 1:
            a, b = self.source(), self.source()
            pairs = [(x, y) for x in a.columns for y in b.columns if x.kind == y.kind]
            if pairs:
                x, y = self.pick(pairs)
                return (f"SELECT count(*), count(x.{x.name}), count(y.{y.name}) FROM {a.name} AS x {self.pick(['JOIN', 'LEFT JOIN'])} "
                        f"{b.name} AS y ON x.{x.name} = y.{y.name} WHERE {self.condition(a.columns, 'x.')}"), None
        if form == 1:
            c = self.pick(t.columns)
            return f"SELECT {c.name}, count(*) FROM {t.name} GROUP BY {c.name}", None
        if form == 2:
            return f"SELECT count(*), {', '.join(f'max({c.name})' for c in t.columns)} FROM {t.name} WHERE {self.condition(t.columns)}", None
        return f"SELECT * FROM {t.name} WHERE {self.condition(t.columns)}", None

    def free(self, t):
        """Whether no view reads the table."""
        return all(table != t.name for table, _ in self.world.views.values())

    def alter(self):
        t = self.table()
        if not self.free(t) or self.failed:
            return self.select()
        form = self.rng.randint(0, 5)
        if form <= 1 and len(t.columns) < 8:
            return self.add_column(t)
        if form == 2:
            c = self.pick(t.columns)
            if (self.kind == "plain" and not c.plain) or len(t.columns) < 3:
                return self.select()

            def drop(world):
                table = world.tables[t.name]
                table.columns = [x for x in table.columns if x.name != c.name]
                table.keys = [key for key in table.keys if all(x.name != c.name for x in key)]
            return f"ALTER TABLE {t.name} DROP COLUMN {c.name}", drop
        if form == 3:
            c, name = self.pick(t.columns), self.fresh("n")

            def rename(world):
                table = world.tables[t.name]
                for x in table.columns + [x for key in table.keys for x in key]:
                    x.name = name if x.name == c.name else x.name
            return f"ALTER TABLE {t.name} RENAME COLUMN {c.name} TO {name}", rename
        if form == 4:
            name = self.fresh("r")

            def rename_table(world):
                world.tables[name] = world.tables.pop(t.name)
                world.tables[name].name = name
            return f"ALTER TABLE {t.name} RENAME TO {name}", rename_table
        return self.other_alter(t) if self.kind != "plain" else self.select()

    def add_column(self, t):
        name, kind = self.fresh("x"), self.pick(["int", "text"])
        sql = f"ALTER TABLE {t.name} ADD COLUMN {name} {'INT' if kind == 'int' else 'TEXT'}"
        if self.chance(50):
            sql += f" DEFAULT {self.literal(kind, 0).strip('()')}"
        plain = True
        if self.kind != "plain" and self.chance(30):
            plain = False
            sql += self.pick([" NOT NULL", " UNIQUE", f" CHECK ({name} IS NOT NULL)", f" CHECK (length({name}) > 0)"
                              if kind == "text" else f" CHECK ({name} < 10)"])
        column = Column(name, kind, plain)
        return sql, lambda world: world.tables[t.name].columns.append(copy.copy(column))

    def other_alter(self, t):
        c = self.pick(t.columns)
        name = self.fresh("k")
        key = self.rng.sample(t.columns, min(len(t.columns), self.rng.randint(1, 2)))
        forms = [f"ALTER COLUMN {c.name} SET NOT NULL", f"ALTER COLUMN {c.name} DROP NOT NULL",
                 f"ALTER COLUMN {c.name} SET DEFAULT {self.literal(c.kind)}", f"ALTER COLUMN {c.name} DROP DEFAULT",
                 f"ADD CONSTRAINT {name} CHECK ({c.name} IS NULL OR {c.name} <> {self.literal(c.kind, 0)})",
                 f"ADD CONSTRAINT {name} UNIQUE ({', '.join(x.name for x in key)})", f"DROP CONSTRAINT {self.pick(['k1', 'k2', 'k3'])}"]
        if c.kind == "int":
            forms.append(f"ALTER COLUMN {c.name} TYPE BIGINT")
        return f"ALTER TABLE {t.name} {self.pick(forms)}", None

    def create_as(self):
        source, name = self.source(), self.fresh("w")
        columns = self.rng.sample(source.columns, min(len(source.columns), self.rng.randint(1, 4)))
        made = [Column(f"{name}{'abcd'[i]}", c.kind) for i, c in enumerate(columns)]
        outputs = ", ".join(f"{c.name} AS {m.name}" for c, m in zip(columns, made))

        def effect(world):
            world.tables[name] = Table(name, copy.deepcopy(made))
        return f"CREATE TABLE {name} AS SELECT {outputs} FROM {source.name} WHERE {self.condition(source.columns)}", effect

    def view(self):
        if self.world.views and self.chance(50):
            name = self.pick(self.world.views)
            return f"DROP VIEW {name}", lambda world: world.views.pop(name)
        t, name = self.table(), self.fresh("v")
        columns = self.rng.sample(t.columns, min(len(t.columns), self.rng.randint(1, 3)))
        c = self.pick(t.columns)  # (no other tables, which could not be changed then)
        where = self.pick([f"{c.name} = {self.literal(c.kind, 0)}", f"{c.name} IS NOT NULL", f"{c.name} <> {self.literal(c.kind, 0)}"])

        def effect(world):
            world.views[name] = (t.name, copy.deepcopy(columns))
        return f"CREATE VIEW {name} AS SELECT {', '.join(c.name for c in columns)} FROM {t.name} WHERE {where}", effect

    def drop(self):
        t = self.table()
        if not self.free(t) or (self.kind == "plain" and t.referred) or len(self.world.tables) < 3:
            return self.view()
        if self.kind != "plain" and self.chance(40):
            return f"TRUNCATE {t.name}", None
        return f"DROP TABLE {t.name}", lambda world: world.tables.pop(t.name)

    def wrong(self):
        t = self.table()
        return self.pick([f"SELECT * FROM {self.fresh('none')}", f"UPDATE {t.name} SET none = 1", f"INSERT INTO {t.name} SELECT 1 WHERE none",
                          "ROLLBACK TO none", "RELEASE none", "DELETE FROM", f"CREATE TABLE {t.name} (a INT)"]), None

    def transaction(self):
        if not self.stack:
            return "BEGIN", None
        saved = [name for name, _ in self.stack if name]
        form = self.rng.randint(0, 9)
        if form <= 2:
            return f"SAVEPOINT {self.pick(['s', 's', 'p', 'q'])}", None
        if form <= 4 and saved:
            return f"ROLLBACK TO {self.pick(saved)}", None
        if form == 5 and saved:
            return f"RELEASE {self.pick(saved)}", None
        return ("COMMIT" if form <= 7 else "ROLLBACK"), None

    def next(self):
        """The text of the next statement."""
        if self.waiting:
            sql, self.effect = self.waiting.pop(0)
            return sql
        makers = [(self.insert, 28), (self.update, 18), (self.delete, 9), (self.select, 8), (self.alter, 6), (self.create_as, 2),
                  (self.view, 3), (self.drop, 1), (self.transaction, 14 if not self.failed else 60), (self.wrong, 2)]
        if not self.world.tables:
            sql, self.effect = self.create(self.fresh("t"))
            return sql
        if self.chance(2):
            self.effect = None
            return self.pick([REOPEN, "VACUUM"])
        makers, weights = zip(*makers)
        sql, self.effect = self.rng.choices(makers, weights)[0]()
        return sql

    def done(self, sql, ok):
        """What has become of it in Tessera."""
        effect, self.effect = self.effect, None
        word = sql.split()[0]
        if sql == REOPEN or (word in ("COMMIT", "ROLLBACK") and " TO " not in sql):
            if self.stack and (sql == REOPEN or word == "ROLLBACK" or self.failed or not ok):
                self.world = self.stack[0][1]
            self.stack, self.failed = [], False
        elif not ok:
            self.failed = bool(self.stack)
        elif word == "BEGIN" and not self.stack:
            self.stack = [("", copy.deepcopy(self.world))]
        elif word == "SAVEPOINT":
            self.stack.append((sql.split()[1], copy.deepcopy(self.world)))
        elif word in ("ROLLBACK", "RELEASE"):
            at = max(i for i, (name, _) in enumerate(self.stack) if name == sql.split()[-1])
            if word == "ROLLBACK":
                self.world, self.failed = copy.deepcopy(self.stack[at][1]), False
                del self.stack[at + 1:]
            else:
                del self.stack[at:]
        elif effect is not None:
            effect(self.world)

    def contents(self):
        return [f"SELECT * FROM {name}" for name in [*self.world.tables, *self.world.views]] if not self.failed else []


# ---- Running


class Engines:
    """Tessera and the others, for one history."""

    def __init__(self, kind, tablet_rows, postgres):
        self.tessera, self.others = Tessera(tablet_rows), {}
        if postgres is not None:
            postgres.begin(kind == "whole")
            self.others["PostgreSQL"] = postgres
        if kind == "plain":
            self.others["SQLite"] = Sqlite()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tessera.close()
        for engine in self.others.values():
            engine.close()

    def run(self, sql):
        """Tessera's answer, what differs or "", and why that is meant or ""."""
        if sql == REOPEN:
            for engine in (self.tessera, *self.others.values()):
                engine.reopen()
            return Answer(), "", ""
        ours = self.tessera.run(sql)
        for name, engine in list(self.others.items()):
            theirs = engine.run(sql)
            what = self.difference(sql, ours, theirs)
            if what:
                return ours, f"{name}: {what}", meant(sql, ours, theirs)
        return ours, "", ""

    @staticmethod
    def difference(sql, ours, theirs):
        if ours.error or theirs.error:
            if bool(ours.error) == bool(theirs.error):
                return ""
            return f"{ours.error or 'no error'} {ours.message} here, {theirs.error or 'no error'} {theirs.message} there"
        if (ours.rows is None) != (theirs.rows is None) or ours.rows != theirs.rows:
            return f"{shown(ours.rows)} here, {shown(theirs.rows)} there"
        counted = re.match("INSERT|UPDATE|DELETE", sql) and ours.rows is None
        if counted and ours.count != theirs.count:
            return f"{ours.count} rows changed here, {theirs.count} there"
        return ""


def shown(rows):
    if rows is None:
        return "no result"
    return "[" + ", ".join("(" + ", ".join("NULL" if kind == 0 else str(n) if kind == 1 else repr(text) for kind, n, text in row) + ")"
                           for row in rows) + "]"


def replay(settings, statements):
    """What differs first, as the number of the statement and a text, or None. What is meant ends it."""
    with Engines(*settings) as engines:
        for i, sql in enumerate(statements):
            _, what, why = engines.run(sql)
            if why:
                return None
            if what:
                return i, what
    return None


def kind_of(what):
    """Of a difference: without names and values."""
    return re.sub(r"\d+|'[^']*'", "", what.split("\n")[0])[:30]


def shrink(settings, statements, what, seconds=20):
    """The statements that are needed for a difference of the same kind."""
    until = time.monotonic() + seconds
    size = max(1, len(statements) // 2)
    while True:
        at, left_out = 0, False
        while at < len(statements) and time.monotonic() < until:
            fewer = statements[:at] + statements[at + size:]
            found = replay(settings, fewer)
            if found is None or kind_of(found[1]) != kind_of(what):
                at += size
            else:
                statements, left_out = fewer[:found[0] + 1], True
        if time.monotonic() >= until or (size == 1 and not left_out):
            return statements
        size = max(1, size // 2)


def history(seed, kinds, postgres, counts):
    """Whether it was the same everywhere."""
    rng = random.Random(seed)
    kind, tablet_rows = rng.choice(kinds), rng.choice([0, 1, 3, 7])
    settings = (kind, tablet_rows, postgres)
    generator, statements, queue = Generator(rng, kind), [], []
    length = rng.randint(15, 60)
    with Engines(*settings) as engines:
        while len(statements) < length or queue:
            if queue:
                sql, generator.effect = queue.pop(0), None
            else:
                sql = generator.next()
            read = sql.startswith("SELECT * FROM") and "WHERE" not in sql
            statements.append(sql)
            ours, what, why = engines.run(sql)
            counts["statements"] += 1
            counts["errors"] += bool(ours.error)
            if why:
                counts[f"meant: {why}"] += 1
                return True
            if what:
                break
            generator.done(sql, not ours.error)
            if not read and (rng.random() < 0.25 or len(statements) == length):
                queue += generator.contents()
        else:
            return True
    shrunk = shrink(settings, statements, what)
    found = replay(settings, shrunk)
    print(f"\nFAILED history {seed} ({kind}): {found[1] if found else what + ' (not again)'}")
    print((f"SET tablet_rows = {tablet_rows};\n" if tablet_rows else "") + "".join(sql + ";\n" for sql in shrunk), flush=True)
    return False


def start_postgres():
    """A server, or None and a line that says why."""
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda path: int(path.split("/")[4]))
    found = programs[-1] if programs else shutil.which("initdb")
    if found is None or psycopg is None:
        print(f"without PostgreSQL: {'no initdb' if found is None else 'no psycopg'} is here", flush=True)
        return None
    try:
        return Postgres(os.path.dirname(os.path.realpath(found)))
    except (OSError, LookupError, subprocess.CalledProcessError, psycopg.Error) as error:
        print(f"without PostgreSQL: {error}", flush=True)
        return None


def main():
    build, histories, seed = (sys.argv[1:] + ["2000", "1"][len(sys.argv) - 2:])[:3]
    postgres = start_postgres()
    kinds = ["plain", "full", "full", "whole"] if postgres is not None else ["plain"]
    counts, passed = collections.Counter(), 0
    try:
        for i in range(int(histories)):
            passed += history(int(seed) * 1_000_000 + i, kinds, postgres, counts)
    finally:
        if postgres is not None:
            postgres.stop()
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    print(f"{passed} passed, {int(histories) - passed} failed")
    sys.exit(passed < int(histories))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if os.path.exists(VENV) and sys.prefix == sys.base_prefix:
        os.execv(VENV, [VENV, *sys.argv])
    sys.path.insert(0, os.path.join(ROOT, "python"))
    os.environ["TESSERA_LIBRARY"] = os.path.join(os.path.abspath(sys.argv[1]), "libtessera.so")
    if not os.path.exists(os.environ["TESSERA_LIBRARY"]):  # with a sanitizer
        print("there is no libtessera.so in this build\n1 passed, 0 failed")
        sys.exit(0)
    warnings.simplefilter("ignore")  # of COMMIT outside of a transaction and the like
    import tessera
    try:
        import psycopg
    except ImportError:
        psycopg = None
    main()
