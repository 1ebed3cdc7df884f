#!/usr/bin/env python3
"""Random histories of changes and transactions, beside SQLite and, where its programs are installed, PostgreSQL.

    tests/differential/differential_histories.py BUILD_DIR [HISTORIES [SEED]]

A history is statements over a few small tables with keys, checks and foreign keys: changes of rows, of tables and of views,
transactions with savepoints, errors in the middle, VACUUM, and the database opened anew. Each statement is an error in every
engine or in none, of the same SQLSTATE as in PostgreSQL but for what STATES names, changes as many rows, and gives the same rows;
the tables are read again and again. SQLite takes part in the histories of the kind "plain", whose statements mean the same there.
A server of PostgreSQL is started in a temporary folder and ended.

In a part of the histories two sessions take turns, in one process or in two, with transactions that overlap. Tessera has one writer,
so it refuses more than PostgreSQL does. What it refuses because of the other session, the others are not asked, but their
transaction fails, too. It may do so only where the other session has changed something: because of rows where PostgreSQL does, or
where the other process may have written the rows anew; because of a table where there are foreign keys, or something else than
rows was changed. All else is the same as with snapshot isolation, and a statement that waits for the other session gives what it
would give after it.

What differs is shrunk to a short script and printed. Exit status 1 if anything does. Runs with the Python of build/venv if it is
there, because it has psycopg.
"""

import collections
import os
import random
import re
import signal
import sys
import threading
import time
import warnings

import history_engines
from history_engines import Answer
from history_generator import REOPEN, Generator, Step

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VENV = os.path.join(ROOT, "build", "venv", "bin", "python")
SHRUNK = 5  # of the histories that differ; the others are only named
BUSY = ("40001", "55P03")  # what Tessera says because of the other session

# SQLSTATEs that differ from PostgreSQL's on purpose: ours, theirs, which statements, and why.
STATES = [
    ("25P02", "42601", "", "a transaction that has failed looks at no statement"),
    (r".*", "42702", "ORDER BY", "ORDER BY takes the first of two columns of the same name"),
    (r"2[123]\w+|40001", r"2[123]\w+", "", "of several wrong rows or values another one is told"),
]


KEYS_AT_END = "keys hold after the statement as a whole here, after each row there"
ROW_IS_SEEN = "DO NOTHING does nothing here for a row that is seen, though another session has deleted it since, and adds one there"
REFERENCES_AT_END = "what refers to rows of its own table is looked at after all actions here, after those of each row there"


def meant(sql, ours, theirs):
    """Why an engine means something else, or "". Such a statement ends the history, because the tables differ from then on."""
    if re.match(r"UPDATE|DELETE|INSERT.*DO UPDATE", sql) and not ours.error:
        if theirs.error == "23505":
            return KEYS_AT_END
        if theirs.error == "23503" and re.search(r'on table "(\w+)" violates .* not present in table "\1"', theirs.message, re.DOTALL):
            return REFERENCES_AT_END
    if sql.startswith("DROP TABLE") and ours.error == "2BP01" and not theirs.error:
        return "a table that another one refers to can be dropped there while no row does"
    if not ours.error and "database is locked" in theirs.message:
        return "a statement that fails before it begins takes no lock here, but does there"
    if not ours.error and theirs.error == "22012":
        return "division by zero is NULL here, an error there"
    if not ours.error and theirs.error == "55006":
        return "a table whose deferred keys wait can be altered here, not there"
    if not ours.error and theirs.error == "42702" and "ORDER BY" in theirs.message:
        return "ORDER BY takes the first of two columns of the same name here, neither there"
    return ""


class Lock:
    """Whether the other session is a reason to refuse a statement of Tessera's."""

    def __init__(self):
        self.commits = 0
        self.open, self.writes, self.first = [False, False], [False, False], [None, None]  # first: the commits it sees
        self.alters = [False, False]  # the tables

    def is_late(self, at):
        """Whether the other session has committed something since the first statement."""
        return self.open[at] and self.first[at] is not None and self.first[at] < self.commits

    def may_refuse(self, at):
        other = 1 - at
        return self.open[other] and self.writes[other] or self.is_late(at)

    def note(self, at, sql, ok):
        word = sql.split()[0]
        if word == "BEGIN":
            if not self.open[at]:
                self.open[at], self.writes[at], self.first[at], self.alters[at] = True, False, None, False
        elif word in ("COMMIT", "ROLLBACK") and " TO " not in sql:
            self.commits += self.open[at] and self.writes[at] and word == "COMMIT"
            self.open[at] = False
        else:
            changes = word not in ("SELECT", "SAVEPOINT", "RELEASE", "ROLLBACK")
            if self.open[at]:
                self.first[at] = self.commits if self.first[at] is None else self.first[at]
                self.writes[at] |= changes
                self.alters[at] |= word in ("CREATE", "ALTER", "DROP")
            else:
                self.commits += changes and ok


Settings = collections.namedtuple("Settings", "kind tablet_rows sessions distant postgres")


class Engines:
    """Tessera and the others, for one history."""

    def __init__(self, settings):
        self.tessera = history_engines.Tessera(settings.tablet_rows, settings.sessions, settings.distant)
        self.others, self.lock, self.counts = {}, Lock(), collections.Counter()
        self.distant = settings.distant and settings.sessions > 1
        self.defines = False  # there have been foreign keys, or definitions since the tables of the beginning
        # (With two sessions PostgreSQL lets those wait that change tables which others read.)
        if settings.postgres is not None and (settings.sessions == 1 or settings.kind != "plain"):
            settings.postgres.begin(settings.kind == "whole")
            self.others["PostgreSQL"] = settings.postgres
        if settings.kind == "plain":
            self.others["SQLite"] = history_engines.Sqlite(settings.sessions)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tessera.close()
        for engine in self.others.values():
            engine.close()

    def run(self, step):
        """Tessera's answers as (session, statement, answer), what differs or "", and why that is meant or ""."""
        if step.sql == REOPEN:
            for engine in (self.tessera, *self.others.values()):
                engine.reopen()
            self.lock = Lock()
            return [(step.session, REOPEN, Answer())], "", ""
        ran, waited = [], False
        if step.meanwhile:
            # (It may have begun before the other one's end, so its transaction is too late, or its table is another one.)
            waited = self.lock.open[step.session] or self.lock.alters[1 - step.session]
            answers = []
            waiting = threading.Thread(target=lambda: answers.append(self.tessera.run(step.session, step.sql, True)))
            waiting.start()
            time.sleep(0.002)
            ran.append((1 - step.session, step.meanwhile, self.tessera.run(1 - step.session, step.meanwhile)))
            waiting.join()

            ran.append((step.session, step.sql, *answers))
        else:
            ran.append((step.session, step.sql, self.tessera.run(step.session, step.sql)))
        for at, sql, ours in ran:
            what, why = self.compared(at, sql, ours, waited)
            if what:
                return ran, what, why
        return ran, "", ""

    def compared(self, at, sql, ours, waited):
        refused = ours.error in BUSY
        if refused and not (waited or self.lock.may_refuse(at)):
            return f"{ours.error} {ours.message} here, but the other session changes nothing", ""
        by_row = ours.error == "40001" and "has changed a row of" in ours.message
        if ours.error == "40001" and re.match("INSERT|UPDATE|DELETE", sql) and 'has changed table "' in ours.message and not self.defines:
            return f"{ours.message} here, but it has no foreign keys and only its rows were changed", ""
        self.defines |= "REFERENCES" in sql or self.lock.commits > 0 and sql.split()[0] in ("CREATE", "ALTER", "DROP", "VACUUM")
        self.lock.note(at, sql, not ours.error)
        self.counts["refused because of the other session"] += refused
        self.counts["refused because of a row"] += by_row
        for name, engine in self.others.items():
            if refused and not (by_row and engine.knows_states and not waited and not self.distant):
                engine.abort(at)
                continue
            theirs = engine.run(at, sql)
            named = other_state(sql, ours, theirs) if engine.knows_states else ""
            if named:
                self.counts[f"other states: {named}"] += 1
                continue
            what = difference(sql, ours, theirs, engine.knows_states)
            if what:
                why = meant(sql, ours, theirs)
                if "DO NOTHING" in sql and not theirs.error and not ours.error and self.lock.is_late(at):
                    why = ROW_IS_SEEN
                if why in (KEYS_AT_END, REFERENCES_AT_END) and not self.keys_hold(at):
                    return f"{name}: keys do not hold here, {theirs.error} {theirs.message} there", ""
                return f"{name}: {what}", why
        return "", ""

    def keys_hold(self, at):
        """Whether keys are there once, and what foreign keys refer to is there, in the tables that the session sees."""
        def values(table, columns):  # without those with a NULL; counted here, because a plan trusts in keys
            rows = self.tessera.run(at, f"SELECT {', '.join(columns)} FROM {table}").rows
            return [row for row in rows if all(kind != 0 for kind, _, _ in row)]

        names = self.tessera.run(at, "SELECT constraint_name, table_name, column_name FROM information_schema.key_column_usage")
        refers = self.tessera.run(at, "SELECT constraint_name, unique_constraint_name FROM information_schema.referential_constraints")
        keys, tables = collections.defaultdict(list), {}
        for constraint, table, column in ([text for _, _, text in row] for row in names.rows):
            keys[constraint].append(column)
            tables[constraint] = table
        held = {constraint: values(tables[constraint], columns) for constraint, columns in keys.items()}
        parents = {row[0][2]: row[1][2] for row in refers.rows}
        return bool(keys) and all(
            all(row in held[parents[constraint]] for row in rows) if constraint in parents else
            all(one != other for one, other in zip(rows, rows[1:])) for constraint, rows in held.items())


def other_state(sql, ours, theirs):
    """Why two engines refuse a statement with different SQLSTATEs, or ""."""
    if not ours.error or not theirs.error or ours.error == theirs.error:
        return ""
    return next((why for here, there, which, why in STATES
                 if re.fullmatch(here, ours.error) and re.fullmatch(there, theirs.error) and re.search(which, sql)), "")


def difference(sql, ours, theirs, states):
    if ours.error or theirs.error:
        if bool(ours.error) == bool(theirs.error) and (not states or ours.error == theirs.error):
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


def script(settings, steps):
    text, at = f"SET tablet_rows = {settings.tablet_rows};\n" if settings.tablet_rows else "", 0
    for step in steps:
        if step.session != at:
            at = step.session
            text += f"-- session {at + 1}\n"
        text += f"{step.sql};{f'  -- meanwhile {step.meanwhile} of the other session' if step.meanwhile else ''}\n"
    return text


def replay(settings, steps):
    """What differs first, as the number of the step and a text, or None. What is meant ends it."""
    with Engines(settings) as engines:
        for i, step in enumerate(steps):
            _, what, why = engines.run(step)
            if why:
                return None
            if what:
                return i, what
    return None


def kind_of(what):
    """Of a difference: without names and values."""
    return re.sub(r"\d+(?!\w\w)|'[^']*'", "", what.split("\n")[0])[:30]


def shrink(settings, steps, what, seconds=20):
    """The steps that are needed for a difference of the same kind."""
    until = time.monotonic() + seconds
    size = max(1, len(steps) // 2)
    while True:
        at, left_out = 0, False
        while at < len(steps) and time.monotonic() < until:
            fewer = steps[:at] + steps[at + size:]
            found = replay(settings, fewer)
            if found is None or kind_of(found[1]) != kind_of(what):
                at += size
            else:
                steps, left_out = fewer[:found[0] + 1], True
        if time.monotonic() >= until or (size == 1 and not left_out):
            return steps
        size = max(1, size // 2)


class Measure:
    """What the statements of a history do, for the totals."""

    def __init__(self, counts):
        self.counts = counts

    def note(self, generator, at, sql, ours):
        self.counts["statements"] += 1
        self.counts["errors"] += bool(ours.error)
        changed = re.match("(INSERT INTO|UPDATE|DELETE FROM) (\\w+)", sql)
        if not changed:
            return
        hit = not ours.error and (ours.count > 0 or bool(ours.rows))
        self.counts["changes"] += 1
        self.counts["that change rows"] += hit
        self.counts["refused changes"] += bool(ours.error)
        world = generator.sessions[at].world
        table = world.tables.get(changed[2])
        if changed[1] == "DELETE FROM" and table and world.has_children(table):
            self.counts["deletes of parents"] += 1
            self.counts["that hit parents"] += hit or ours.error == "23503"


def history(seed, kinds, postgres, counts):
    """Whether it was the same everywhere."""
    rng = random.Random(seed)
    kind, sessions = rng.choice(kinds)
    settings = Settings(kind, rng.choice([0, 1, 3, 7, 20]), sessions, rng.random() < 0.5, postgres)
    generator, steps, queue, measure = Generator(rng, kind, sessions), [], [], Measure(counts)
    left = rng.randint(25, 60)
    with Engines(settings) as engines:
        while left > 0 or queue:
            reading = bool(queue)
            left -= not reading
            step = queue.pop(0) if reading else generator.next()
            steps.append(step)
            ran, what, why = engines.run(step)
            if why:
                counts[f"meant: {why}"] += 1
                return True
            if what:
                break
            for at, sql, ours in ran:
                measure.note(generator, at, sql, ours)
                generator.done(at, sql, not ours.error)
                if reading and not ours.error:
                    generator.read(at, sql, ours.rows)
            if not reading:
                queue = generator.to_read(step, left == 0)
        else:
            counts.update(engines.counts)
            return True
    counts["differ"] += 1
    report(seed, settings, steps, what, counts["differ"] <= SHRUNK)
    return False


def report(seed, settings, steps, what, small):
    """Prints what differs, and the script if it is made small."""
    shrunk = shrink(settings, steps, what) if small else []
    found = replay(settings, shrunk)
    sessions = "" if settings.sessions == 1 else ", two processes" if settings.distant else ", two sessions"
    print(f"\nFAILED history {seed} ({settings.kind}{sessions}): {found[1] if found else what + (' (not again)' if small else '')}")
    print(script(settings, shrunk), flush=True)


def end(*_):
    """At SIGTERM: the server is ended, and folders are removed."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(1)


def main():
    build, histories, seed = (sys.argv[1:] + ["2000", "1"][len(sys.argv) - 2:])[:3]
    signal.signal(signal.SIGTERM, end)
    postgres = history_engines.start_postgres()
    kinds = [("plain", 1), ("plain", 2), ("full", 1), ("full", 1), ("full", 1), ("full", 2), ("full", 2), ("whole", 1)]
    if postgres is None:
        kinds = [(kind, sessions) for kind, sessions in kinds if kind == "plain"]
    counts, passed = collections.Counter(), 0
    try:
        for i in range(int(histories)):
            passed += history(int(seed) * 1_000_000 + i, kinds, postgres, counts)
    finally:
        history_engines.DistantSession.stop()
        if postgres is not None:
            postgres.stop()
    print(", ".join(f"{n} {what}" for what, n in counts.items()))
    # (Histories that hit no rows find nothing.)
    weak = int(histories) >= 100 and (2 * counts["that change rows"] < counts["changes"] or 2 * counts["that hit parents"] < int(histories))
    if weak:
        print("FAILED: fewer than half of the changes change rows, or fewer deletes hit rows with children than half as many as histories")
    print(f"{passed} passed, {int(histories) - passed + weak} failed")
    sys.exit(weak or passed < int(histories))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if os.path.exists(VENV) and sys.prefix == sys.base_prefix:
        os.execv(VENV, [VENV, *sys.argv])
    os.environ["TESSERA_LIBRARY"] = os.path.join(os.path.abspath(sys.argv[1]), "libtessera.so")
    if not os.path.exists(os.environ["TESSERA_LIBRARY"]):  # with a sanitizer
        print("there is no libtessera.so in this build\n1 passed, 0 failed")
        sys.exit(0)
    warnings.simplefilter("ignore")  # of COMMIT outside of a transaction and the like
    main()
