#!/usr/bin/env python3
"""The generated queries of tests/differential/differential_test.cc beside PostgreSQL and DuckDB, where they are installed.

    tests/differential/differential_engines.py BUILD_DIR [QUERIES [SEED]]

Every query is written as Tessera has it. What an engine refuses, or what is an error there, is counted and left out. What
it answers must be the same rows: numbers to 1e-9 of their size, in order where ORDER BY fixes it. MEANT below has the known
differences in meaning: there other rows do not count. PostgreSQL is reached by psql, as the user of this process or as
postgres; DuckDB is the Python package. Exit status 1 if rows differ, 0 without an engine.
"""

import collections
import csv
import io
import os
import re
import subprocess
import sys
import tempfile

REFUSED = "@!\n"  # printed in place of rows

# By engine: texts of queries whose rows may differ, and why.
DATES = (r"INTERVAL '\d+ (day|week|month|year)", "DATE and INTERVAL make a DATE here")
MEANT = {
    "PostgreSQL": [DATES, (r"e0\)", "a literal with an exponent is DOUBLE PRECISION here"),
                   (r"\bavg\(", "avg is DOUBLE PRECISION here"),
                   (r"EXTRACT\(", "a field of a date is an integer here"),
                   (r"(round|coalesce)\(.* AS TEXT\)", "round and coalesce give a decimal another scale here")],
    "DuckDB": [DATES, (r"\bround\(", "round() of doubles is half to even here"),
               (r"\br\b\)? [-+*/]|[-+*/] \(?(\w\.)?r\b|\bsmall\b|\br AS c\d", "REAL is computed in DOUBLE PRECISION here"),
               (r"\bupper\(", "the sharp s has no upper case here, as in PostgreSQL"),
               (r"LIKE '[^']*\\", "the backslash escapes in LIKE here, as in PostgreSQL")],
}


def cell(text):
    """A value that compares: (kind, number or text)."""
    if text is None:
        return (0, "")
    if text in ("t", "true", "True"):
        return (1, 1.0)
    if text in ("f", "false", "False"):
        return (1, 0.0)
    if re.fullmatch(r"-?\d+(\.\d*)?([eE][-+]?\d+)?", text):
        return (1, float(text))
    if re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?", text):
        text = text.removesuffix(" 00:00:00")
    return (2, text)


def same_cell(a, b):
    if a == b:
        return True
    return a[0] == b[0] == 1 and abs(a[1] - b[1]) <= 1e-9 * max(abs(a[1]), abs(b[1]))


def same_row(a, b):
    return len(a) == len(b) and all(map(same_cell, a, b))


def order(digits):
    """What rows are sorted by: numbers that may differ a little look the same with few enough digits."""
    return lambda row: [(kind, f"{value + 0.0:.{digits}g}" if kind == 1 else value) for kind, value in row]  # no -0


def difference(how, ours, theirs):
    """"" or what differs."""
    if how == "some":
        left = list(theirs)
        for row in ours:
            found = next((i for i, other in enumerate(left) if same_row(row, other)), None)
            if found is None:
                return ""  # LIMIT without an order: any rows are right, and theirs has the LIMIT, too
            del left[found]
        return ""
    if len(ours) != len(theirs):
        return f"{len(ours)} rows, not {len(theirs)}"
    for digits in (6, 11, 17):
        if how != "ordered":
            ours, theirs = sorted(ours, key=order(digits)), sorted(theirs, key=order(digits))
        found = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if not same_row(a, b)), None)
        if found is None:
            return ""
    return f"row {found}: {ours[found]} here, {theirs[found]} there"


class Program:
    """An engine that reads SQL on standard input and prints CSV. `marker` makes it print a line between the answers,
    `behind` follows every query."""

    NULL = "<null>"

    def __init__(self, command, settings, marker, behind=""):
        self.command, self.settings, self.marker, self.behind = command, settings, marker, behind

    def run(self, tables, queries):
        """Rows by query; one that was refused is missing."""
        script = self.settings + "".join(tables)
        for number, _, sql in queries:
            script += f"{self.marker.format(number)}\n{sql};\n{self.behind}"
        script += self.marker.format("end") + "\n"
        done = subprocess.run(self.command, input=script, capture_output=True, text=True)
        answers, number, lines = {}, None, []
        for line in done.stdout.splitlines(keepends=True):
            if not line.startswith("@@"):
                lines.append(line)
                continue
            if number is not None and REFUSED not in lines:
                answers[number] = self.rows("".join(lines))
            number, lines = line[2:].strip(), []
        return answers

    def rows(self, text):
        # (A row of one empty text is an empty line.)
        return [[cell(None if value == self.NULL else value) for value in row or [""]]
                for row in csv.reader(io.StringIO(text))]


def tessera(build):
    return Program([os.path.join(build, "tessera"), "-csv", "--no-bail", "--device", "host"],
                   f".headers off\n.nullvalue {Program.NULL}\n", "SELECT '@@{}';")


class Postgres:
    """Each world in a database that is made and dropped."""

    @staticmethod
    def prefix():
        """How to become a user whom PostgreSQL knows; None if it does not answer."""
        for prefix in ([], ["runuser", "-u", "postgres", "--"]):
            try:
                done = subprocess.run([*prefix, "psql", "-d", "postgres", "-Atc", "SELECT 1"], capture_output=True, text=True)
            except OSError:
                continue
            if done.stdout.strip() == "1":
                return prefix
        return None

    def __init__(self, prefix):
        self.prefix, self.name = prefix, f"tessera_differential_{os.getpid()}"
        self.program = Program(
            [*prefix, "psql", "-d", self.name, "--csv", "-t", "-q", "-P", f"null={Program.NULL}", "-f", "-"],
            "SET statement_timeout = 20000;\n", "\\echo @@{}", f"\\if :ERROR\n\\echo {REFUSED}\\endif\n")

    def admin(self, sql):
        subprocess.run([*self.prefix, "psql", "-q", "-d", "postgres", "-c", sql], check=True, capture_output=True)

    def run(self, tables, queries):
        self.admin(f"CREATE DATABASE {self.name} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C.UTF-8' ENCODING 'UTF8'")
        try:
            return self.program.run(tables, queries)
        finally:
            self.admin(f"DROP DATABASE {self.name}")


class Duck:
    """The Python package, in memory."""

    def __init__(self, module):
        self.module = module

    def run(self, tables, queries):
        connection = self.module.connect()
        for setting in ("integer_division = true", "default_null_order = 'nulls_last_on_asc_first_on_desc'"):
            connection.execute("SET " + setting)
        for statement in tables:
            connection.execute(statement)
        answers = {}
        for number, _, sql in queries:
            try:
                rows = connection.execute(sql).fetchall()
            except self.module.Error:
                continue
            answers[number] = [[cell(None if v is None else str(v)) for v in row] for row in rows]
        return answers


def installed():
    """The other engines by name."""
    engines = {}
    prefix = Postgres.prefix()
    if prefix is not None:
        engines["PostgreSQL"] = Postgres(prefix)
    try:
        import duckdb
        engines["DuckDB"] = Duck(duckdb)
    except ImportError:
        pass
    return engines


def worlds(build, queries, seed):
    """The tables (statements) and queries (number, how rows compare, SQL) of each world of the generator."""
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, TESSERA_SCRIPTS=folder, TESSERA_QUERIES=queries, TESSERA_SEED=seed)
        done = subprocess.run([os.path.join(build, "differential_test"), "--gtest_filter=*SameRows*"], env=env,
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
        for name in sorted(f for f in os.listdir(folder) if f.endswith(".queries")):
            with open(os.path.join(folder, name)) as lines:
                asked = [line.rstrip("\n").split("\t", 2) for line in lines]
            with open(os.path.join(folder, name.replace(".queries", ".sql"))) as lines:
                yield list(lines), asked


def verdict(engine, how, sql, ours, theirs):
    """What a query's answers are to each other, and what differs."""
    if theirs is None:
        return "refused", ""
    text = difference(how, ours, theirs)
    meant = next((m for pattern, m in MEANT[engine] if re.search(pattern, sql)), None)
    return "the same" if not text else f"meant ({meant})" if meant else "different", text


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    build, queries, seed = (sys.argv[1:] + ["2000", "1"][len(sys.argv) - 2:])[:3]
    engines = installed()
    if not engines:
        print("neither PostgreSQL nor DuckDB is here\n[  SKIPPED ] 1 test, listed below:")
        return
    counts = {name: collections.Counter() for name in engines}
    for tables, asked in worlds(build, queries, seed):
        ours = tessera(build).run(tables, asked)
        for name, engine in engines.items():
            theirs = engine.run(tables, asked)
            for number, how, sql in asked:
                what, text = verdict(name, how, sql, ours[number], theirs.get(number))
                counts[name][what] += 1
                if what == "different" and counts[name][what] <= 20:
                    print(f"query {number}, {name}: {text}\n  {sql}")
    for name, kinds in counts.items():
        print(f"{name}: " + ", ".join(f"{n} {what}" for what, n in sorted(kinds.items())))
    failed = sum(kinds["different"] for kinds in counts.values())
    print(f"{sum(kinds['the same'] for kinds in counts.values())} passed, {failed} failed")
    sys.exit(1 if failed > 0 else 0)


if __name__ == "__main__":
    main()
