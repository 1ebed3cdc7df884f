"""Random histories of statements for tests/differential/differential_histories.py.

A Generator gives one Step after the other, and is told what became of each. It knows the tables that each session sees and the
rows that were last read, so that statements hit rows, new rows refer to rows that are there, and keys clash where they should.
"""

import collections
import copy

REOPEN = "-- the database is opened anew"
TEXTS = ["", "a", "b", "ab", "abc", "it''s", "\u00e4", "null", "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz"]
ACTIONS = ["", "CASCADE", "CASCADE", "CASCADE", "SET NULL", "SET NULL", "RESTRICT", "SET DEFAULT"]
FEW_ROWS, MANY_ROWS = 12, 120  # a table with fewer is filled, one with more gets single rows only

# A statement of a session. `meanwhile` is what ends the transaction of the other session while this one may wait for it.
Step = collections.namedtuple("Step", "session sql meanwhile", defaults=("",))


def literal_of(value):
    """Of a value as the engines give it."""
    kind, number, text = value
    if kind == 0:
        return "NULL"
    if kind == 2:
        return "'" + text.replace("'", "''") + "'"
    return str(number) if number >= 0 else f"({number})"


class Column:
    def __init__(self, name, kind, plain=True):
        self.name, self.kind, self.plain = name, kind, plain  # plain: in no key and no check
        self.filled = False  # NOT NULL
        self.check = None  # (operator, number)
        self.refers = None  # (table, column)
        self.known = []  # values when the table was last read

    def holds(self, number):
        operator, bound = self.check
        return number < bound if operator == "<" else number > bound if operator == ">" else number != bound


class Table:
    def __init__(self, name, columns, keys=()):
        self.name, self.columns = name, columns
        self.keys = list(keys)  # lists of columns, the primary key first
        self.rows = []  # when it was last read

    def of(self, kind):
        return [c for c in self.columns if c.kind == kind]

    def single_keys(self):
        return [key[0] for key in self.keys if len(key) == 1]

    def column(self, name):
        return next((c for c in self.columns if c.name == name), None)

    def read(self, rows):
        self.rows = rows
        for i, c in enumerate(self.columns):
            c.known = [row[i] for row in rows] if rows and len(rows[0]) == len(self.columns) else []

    def copy(self):
        made = {id(c): copy.copy(c) for c in self.columns}
        other = Table(self.name, [made[id(c)] for c in self.columns], [[made[id(c)] for c in key] for key in self.keys])
        other.rows = self.rows
        return other


class World:
    """What is there as far as the generator knows: if it is wrong, there are errors in all engines."""

    def __init__(self):
        self.tables = {}
        self.views = {}  # name: (table, columns)

    def copy(self):
        other = World()
        other.tables = {name: table.copy() for name, table in self.tables.items()}
        other.views = {name: (table, [copy.copy(c) for c in columns]) for name, (table, columns) in self.views.items()}
        return other

    def children(self, t):
        """The columns that refer to the table, each with the key."""
        return [(c, t.column(c.refers[1])) for other in self.tables.values() for c in other.columns
                if c.refers and c.refers[0] == t.name and t.column(c.refers[1])]

    def has_children(self, t):
        """Whether rows of the table were referred to when it was last read."""
        return any(v[0] and v in key.known for c, key in self.children(t) for v in c.known)

    def rename(self, table, new_table, column=None, new_column=None):
        for t in self.tables.values():
            for c in t.columns:
                if c.refers and c.refers[0] == table and column in (None, c.refers[1]):
                    c.refers = (new_table, new_column or c.refers[1])


class Session:
    """What a session sees, and its transaction."""

    def __init__(self):
        self.world, self.stack = World(), []  # stack: (savepoint, the world before)
        self.failed = self.begun = False  # begun: the transaction has seen the database
        self.changed = False  # rows, after the last savepoint


class Generator:
    """One history. `kind`: "plain" means the same in SQLite, "full" is PostgreSQL's, "whole" has keys that move and no
    foreign keys and ON CONFLICT. `sessions`: 1 or 2. With two, histories that are not plain change tables only where no
    transaction is open: readers keep tables as they are here, and are waited for in PostgreSQL."""

    def __init__(self, rng, kind, sessions):
        self.rng, self.kind = rng, kind
        self.sessions, self.at, self.effect = [Session() for _ in range(sessions)], 0, None
        self.number = 0
        self.alters = True  # the next statement may change tables
        self.changes = ""  # the table that the next statement changes, where SQLite's subqueries would see its new rows
        self.waiting = []
        for name in ("t0", "t1", "t2")[:rng.randint(2, 3)]:
            self.waiting += [lambda name=name: self.create(name), lambda name=name: self.fill(self.world.tables[name])]

    @property
    def session(self):
        return self.sessions[self.at]

    @property
    def world(self):
        return self.session.world

    # Parts of statements

    def pick(self, things):
        return self.rng.choice(list(things))

    def some(self, things, most):
        things = list(things)
        return self.rng.sample(things, min(len(things), self.rng.randint(1, most)))

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

    def likely(self, c, null=15):
        """A literal that the column probably has."""
        return literal_of(self.pick(c.known)) if c.known and self.chance(70) else self.literal(c.kind, null)

    def parent_key(self, c):
        """The column that a column refers to, or None."""
        table = self.world.tables.get(c.refers[0]) if c.refers else None
        return table.column(c.refers[1]) if table else None

    def new_key(self, c, used=()):
        """A literal that the column does not have."""
        if c.kind == "text":
            return f"'{self.fresh('k')}'"
        taken = {v[1] for v in c.known if v[0] == 1}
        while True:
            n = self.rng.randint(0, 60 + 3 * len(taken) + 3 * len(used))
            if n not in taken and str(n) not in used:
                return str(n)

    def new_value(self, t, c, used, clash=None):
        """A literal for the column of a new row. `used`: what new rows have in each column. `clash`: a row whose keys it gets."""
        parent, keys = self.parent_key(c), t.single_keys()
        if clash and any(c in key for key in t.keys):
            text = literal_of(clash[t.columns.index(c)])
        elif parent is not None:
            values = [literal_of(v) for v in parent.known if not c.check or c.holds(v[1])]
            if c in keys:
                values = [v for v in values if v not in used[c.name] and v not in map(literal_of, c.known)]
            text = self.pick(values) if values and (c.filled or self.chance(90)) else self.literal(c.kind, 0) if c.filled else "NULL"
        elif c in keys or any(c is key[0] for key in t.keys):
            text = self.new_key(c, used[c.name])
        elif c.check and c.kind == "int":
            n = self.pick([n for n in range(-5, 16) if c.holds(n)])
            text = str(n) if n >= 0 else f"({n})"
        else:
            text = self.literal(c.kind, 0 if c.filled else 15)
        used[c.name].add(text)
        return text

    def narrow(self, t, prefix=""):
        """A condition that holds for a few rows."""
        columns = [c for c in t.single_keys() if c.known] or [c for c in t.columns if c.known]
        if not columns:
            return self.condition(t.columns, prefix)
        c = self.pick(columns)
        values = [literal_of(v) for v in self.some(c.known, 4) if v[0]]
        if not values:
            return f"{prefix}{c.name} IS NULL"
        if c.kind == "int" and self.chance(20):
            return f"{prefix}{c.name} BETWEEN {values[0]} AND {values[0]} + {self.rng.randint(0, 9)}"
        return f"{prefix}{c.name} " + (f"= {values[0]}" if len(values) == 1 else f"IN ({', '.join(values)})")

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
        forms = [f"{name} {self.pick(['=', '=', '<', '>', '<>', '<=', '>='])} {self.likely(c, 5)}",
                 f"{name} {self.pick(['<', '>', '<>', '<=', '>='])} {self.likely(c, 0)}", f"{name} IS NULL",
                 f"{name} IS NOT NULL", f"{name} IN ({self.likely(c)}, {self.likely(c)})",
                 f"{name} BETWEEN {self.likely(c, 0)} AND {self.likely(c, 0)}"]
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
        if self.changes in (table.name, *self.world.views.get(table.name, ())[:1]):
            return []
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
            columns[0].filled = True
            keys.append([columns[0]])
        elif shape == 3:
            parts[0] += " NOT NULL"
            parts[3] += " NOT NULL"
            columns[0].filled = columns[3].filled = True
            last.append(f"PRIMARY KEY ({name}a, {name}d)")
            keys.append([columns[0], columns[3]])
        if self.chance(35):
            parts[1] += " UNIQUE"
            keys.append([columns[1]])
        elif self.chance(20):
            last.append(f"UNIQUE ({name}b, {name}c)")
            keys.append([columns[1], columns[2]])
        if self.chance(40):
            columns[3].check, columns[3].plain = (self.pick(["<", "<>", ">"]), self.rng.randint(-3, 12)), False
            last.append(f"CHECK ({name}d {columns[3].check[0]} {columns[3].check[1]})")
        elif self.chance(20):
            parts[2] += " NOT NULL"
            columns[2].filled = True
        table = Table(name, columns, keys)
        self.foreign_key(table, last)
        for key in keys:
            for c in key:
                c.plain = False

        def effect(world):
            world.tables[name] = table.copy()
        return f"CREATE TABLE {name} ({', '.join(parts + last)})", effect

    def foreign_key(self, table, last):
        """Adds one to `last`, or not."""
        parents = [t for t in self.world.tables.values() if t.single_keys()]
        if table.single_keys() and self.kind != "plain" and self.chance(20):
            parents = [table]  # of its own rows (SQLite's actions would be seen by the rows of the statement after them)
        if self.kind == "whole" or not parents or not self.chance(85):
            return
        parent = self.pick(parents)
        key = self.pick(parent.single_keys())
        own = [c for c in table.columns if c.kind == key.kind and c is not key]
        free = [c for c in own if not c.check and not any(c in key for key in table.keys)]
        own = self.pick((free if self.chance(85) else own) or own or [None])
        if own is None:
            return
        own.plain = False
        own.refers = (parent.name, key.name)
        sql = f"FOREIGN KEY ({own.name}) REFERENCES {parent.name} ({key.name})"
        for event in ("DELETE", "UPDATE"):
            action = self.pick(ACTIONS)
            sql += f" ON {event} {action}" if action else ""
        if self.chance(15):
            sql += " DEFERRABLE INITIALLY DEFERRED"
        last.append(sql)

    def table(self):
        return self.pick(self.world.tables.values())

    def rows_for(self, t, columns, count, clash, wrong):
        """New rows as a list after VALUES. `clash`: the percentage of those with a key that is there, `wrong`: of any values."""
        used, rows = collections.defaultdict(set), []
        for _ in range(count):
            row = self.pick(t.rows) if t.rows and len(t.rows[0]) == len(t.columns) and self.chance(clash) else None
            rows.append([self.literal(c.kind) if self.chance(wrong) else self.new_value(t, c, used, row) for c in columns])
        return ", ".join(f"({', '.join(row)})" for row in rows)

    def fill(self, t):
        rows = self.rows_for(t, t.columns, self.rng.randint(15, 45), 0, 0)
        return f"INSERT INTO {t.name} ({', '.join(c.name for c in t.columns)}) VALUES {rows}", None

    def insert(self):
        t = self.table()
        columns = t.columns if self.chance(70) else [c for c in t.columns if c.filled or self.chance(70)] or t.columns
        names = ", ".join(c.name for c in columns)
        conflict = self.kind != "whole" and self.chance(45)
        if self.chance(25) and len(t.rows) < MANY_ROWS:
            source = self.source()
            outputs = ", ".join(self.copied_value(t, c, source) for c in columns)
            rows = f"SELECT {outputs} FROM {source.name} WHERE {self.condition(source.columns)}"
            if self.kind != "plain" and self.chance(30):
                rows += f" ORDER BY {', '.join(c.name for c in source.columns)}"
        else:
            count = 1 if self.chance(50) else self.rng.randint(2, 9)
            rows = "VALUES " + self.rows_for(t, columns, count, 60 if conflict else 2, 1)
            if count == 1 and self.kind != "plain" and self.chance(10):
                rows = rows.replace("NULL", "DEFAULT")
        return f"INSERT INTO {t.name} ({names}) {rows}{self.conflict(t, rows) if conflict else ''}{self.returning(t)}", None

    def copied_value(self, t, c, source):
        """An expression over another table's columns for a column of a new row."""
        own = [x for x in source.columns if x.kind == c.kind]
        if any(c is key[0] for key in t.keys) and own and self.chance(85):
            key = self.pick([x for x in source.single_keys() if x in own] or own)
            return f"{key.name} + {self.rng.randint(1, 9) * 100}" if c.kind == "int" else f"{key.name} || '{self.fresh('k')}'"
        parent = self.parent_key(c)
        if parent is not None and parent.known and self.chance(85):
            return literal_of(self.pick(parent.known))
        if c.check and self.chance(85):
            return self.new_value(t, c, collections.defaultdict(set))
        text = self.expression(c.kind, source.columns)
        return f"coalesce({text}, {self.literal(c.kind, 0)})" if c.filled else text

    def conflict(self, t, rows):
        # (Which of the new rows with one key stays is a matter of their order.)
        if self.chance(35) and rows.startswith("VALUES"):
            return " ON CONFLICT DO NOTHING"
        if not t.keys or (self.kind == "plain" and rows.startswith("SELECT")) or (self.kind == "plain" and "), (" in rows):
            return ""
        target = f" ON CONFLICT ({', '.join(c.name for c in self.pick(t.keys))}) DO "
        if self.chance(20) and rows.startswith("VALUES"):
            return target + "NOTHING"
        sets = []
        for c in self.some([c for c in t.columns if c.plain] if self.chance(70) else t.columns, 2) or t.columns[-1:]:
            new = f"excluded.{c.name}" if self.chance(60) else self.expression(c.kind, t.columns, f"{t.name}.")
            sets.append(f"{c.name} = {new}")
        where = f" WHERE {self.condition(t.columns, t.name + '.')}" if self.chance(30) else ""
        return f"{target}UPDATE SET {', '.join(sets)}{where}"

    def changed_value(self, t, c):
        """An expression for a column in SET, and whether it is for one row only."""
        parent = self.parent_key(c)
        if parent is not None and parent.known and self.chance(75):
            return literal_of(self.pick(parent.known)), c in t.single_keys()
        if any(c is key[0] for key in t.keys):
            form = self.rng.randint(0, 9)
            if form <= 3:
                return self.new_key(c), True
            if form <= 6 and c.known:
                return literal_of(self.pick(c.known)), self.chance(50)  # a key twice
            if form <= 8 and c.kind == "int":
                return f"{c.name} + {self.rng.randint(1, 9) * 100}", False
        elif c.check and self.chance(75):
            return self.new_value(t, c, collections.defaultdict(set)), False
        text = self.expression(c.kind, t.columns)
        return (f"coalesce({text}, {self.literal(c.kind, 0)})" if c.filled and self.chance(80) else text), False

    def update(self):
        t = self.table()
        parents = [t for t in self.world.tables.values() if self.world.children(t)]
        if parents and self.chance(25):
            t = self.pick(parents)
            changed = [self.pick(self.world.children(t))[1]]  # a key that others refer to
        else:
            changed = self.some(t.columns, 3)
            if not self.chance(40):
                changed = [c for c in changed if c.plain] or changed
        self.changes = t.name if self.kind == "plain" else ""
        others = [o for o in self.world.tables.values() if o is not t and o.single_keys()]
        if others and self.chance(20):
            other = self.pick(others)
            key = self.pick(other.single_keys())
            own = [c for c in t.columns if c.kind == key.kind]
            if own:
                sets = ", ".join(f"{c.name} = {self.expression(c.kind, other.columns, 's.')}" for c in changed)
                own = [c for c in own if c.refers == (other.name, key.name)] or own
                return (f"UPDATE {t.name} SET {sets} FROM {other.name} AS s WHERE s.{key.name} = {t.name}.{self.pick(own).name} AND "
                        f"{self.condition(other.columns, 's.')}" + ("" if self.kind == "plain" else self.returning(t)
                                                                    .replace(" RETURNING *", f" RETURNING {t.name}.*")), None)
        values = [self.changed_value(t, c) for c in changed]
        sets = ", ".join(f"{c.name} = {text}" for c, (text, _) in zip(changed, values))
        where = f" WHERE {self.condition(t.columns, t.name + '.')}" if self.chance(85) else ""
        if any(one for _, one in values) or self.chance(50):
            where = f" WHERE {self.one(t) if any(one for _, one in values) else self.narrow(t)}"
        return f"UPDATE {t.name} SET {sets}{where}{self.returning(t)}", None

    def one(self, t):
        """A condition that holds for one row, one that others refer to if there is such."""
        for c, key in self.rng.sample(self.world.children(t), len(self.world.children(t))):
            values = [v for v in c.known if v[0]]
            if values and self.chance(70):
                return f"{key.name} = {literal_of(self.pick(values))}"
        for key in t.keys:
            if t.rows and len(t.rows[0]) == len(t.columns):
                row = self.pick(t.rows)
                return " AND ".join(f"{c.name} = {literal_of(row[t.columns.index(c)])}" for c in key)
        return self.narrow(t)

    def delete(self):
        t = self.table()
        self.changes = t.name if self.kind == "plain" else ""
        parents = [t for t in self.world.tables.values() if self.world.children(t)]
        where = f"{self.condition(t.columns, t.name + '.')} AND {self.condition(t.columns, t.name + '.')}"
        if parents and self.chance(50):
            t = self.pick(parents)
            where = self.one(t) if self.chance(70) else self.narrow(t)
        elif self.chance(60):
            where = self.narrow(t)
        elif self.chance(5):
            return f"DELETE FROM {t.name}{self.returning(t)}", None
        return f"DELETE FROM {t.name} WHERE {where}{self.returning(t)}", None

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
        if not self.free(t) or self.session.failed:
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
                world.rename(t.name, t.name, c.name, name)
            return f"ALTER TABLE {t.name} RENAME COLUMN {c.name} TO {name}", rename
        if form == 4:
            name = self.fresh("r")

            def rename_table(world):
                world.tables[name] = world.tables.pop(t.name)
                world.tables[name].name = name
                world.rename(t.name, name)
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
            world.tables[name] = Table(name, [copy.copy(c) for c in made])
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
            world.views[name] = (t.name, [copy.copy(c) for c in columns])
        return f"CREATE VIEW {name} AS SELECT {', '.join(c.name for c in columns)} FROM {t.name} WHERE {where}", effect

    def drop(self):
        t = self.table()
        if not self.free(t) or (self.kind == "plain" and self.world.children(t)) or len(self.world.tables) < 3:
            return self.view()
        if self.kind != "plain" and self.chance(40):
            return f"TRUNCATE {t.name}", None
        return f"DROP TABLE {t.name}", lambda world: world.tables.pop(t.name)

    def wrong(self):
        """An error in every engine."""
        t = self.table()
        c, texts = self.pick(t.columns), t.of("text")
        forms = [f"SELECT * FROM {self.fresh('none')}", f"UPDATE {t.name} SET none = 1", f"INSERT INTO {t.name} SELECT 1 WHERE none",
                 "ROLLBACK TO none", "RELEASE none", "DELETE FROM", f"INSERT INTO {t.name} ({c.name}) VALUES (1, 2)",
                 f"SELECT max({c.name}) FROM {t.name} WHERE max({c.name}) > {self.literal(c.kind, 0)}"]
        if self.alters:
            forms += [f"CREATE TABLE {t.name} (a INT)", f"ALTER TABLE {t.name} ADD COLUMN {c.name} INT", "DROP TABLE none", "DROP VIEW none",
                      f"CREATE VIEW {t.name} AS SELECT 1 AS a", f"ALTER TABLE {t.name} DROP COLUMN none", f"DROP VIEW {t.name}"]
        if self.kind != "plain":
            forms += [f"SELECT {c.name}, count(*) FROM {t.name}", f"INSERT INTO {t.name} ({c.name}, {c.name}) VALUES (NULL, NULL)",
                      f"UPDATE {t.name} SET {c.name} = NULL, {c.name} = NULL", f"SELECT none.{c.name} FROM {t.name}",
                      f"INSERT INTO {t.name} ({c.name}) VALUES (NULL) ON CONFLICT (none) DO NOTHING", f"SELECT none({c.name}) FROM {t.name}",
                      "SELECT CAST('one' AS INT)", f"SELECT {c.name} FROM {t.name} UNION ALL SELECT 1, 2", "SELECT 2000000000 + 2000000000",
                      f"SELECT (SELECT {c.name} FROM {t.name} UNION ALL SELECT {c.name} FROM {t.name})",
                      f"SELECT x.{c.name} FROM {t.name} AS x JOIN {t.name} AS x ON TRUE",
                      f"SELECT {c.name} FROM {t.name} AS x JOIN {t.name} AS y ON TRUE", "SELECT substr('abc', 1, -1)"]
            forms += [f"SELECT {x.name} + 1 FROM {t.name}" for x in texts] + [f"UPDATE {t.name} SET {x.name} = 'one'" for x in t.of("int")]
        if self.kind != "plain" and self.alters:
            forms += self.wrong_tables(t, c)
        return self.pick(forms), None

    def wrong_tables(self, t, c):
        other, name, new = self.table(), self.pick(t.columns).name, self.fresh("k")
        forms = [f"ALTER TABLE {t.name} RENAME COLUMN {c.name} TO {name}", f"ALTER TABLE {t.name} RENAME TO {other.name}",
                 f"ALTER TABLE {t.name} ADD CONSTRAINT {new} FOREIGN KEY ({c.name}) REFERENCES none (a)",
                 f"ALTER TABLE {t.name} ADD CONSTRAINT {new} FOREIGN KEY (none) REFERENCES {t.name} ({c.name})",
                 f"ALTER TABLE {t.name} ADD CONSTRAINT {new} CHECK ({c.name} IS NULL AND {c.name} IS NOT NULL)",
                 f"ALTER TABLE {t.name} DROP CONSTRAINT none", f"ALTER TABLE {t.name} ADD CONSTRAINT {new} UNIQUE (none)",
                 f"CREATE TABLE {new} (a INT, a TEXT)", f"CREATE TABLE {new} (a INT PRIMARY KEY, b INT PRIMARY KEY)",
                 f"CREATE TABLE {new} (a INT DEFAULT 'one')", f"CREATE TABLE {new} (a INT, FOREIGN KEY (b) REFERENCES {t.name})",
                 f"CREATE TABLE {new} (a INT CHECK (b > 0))", f"CREATE TABLE {new} (a NONE)", f"CREATE VIEW {new} AS SELECT 1 AS a, 2 AS a",
                 f"DROP TABLE {self.pick(self.world.views)}" if self.world.views else "ROLLBACK TO none"]
        if self.kind != "whole":  # (keys that hold after the statement are not referred to in PostgreSQL)
            forms.append(f"CREATE TABLE {new} (a INT REFERENCES {t.name} ({c.name}))")
        forms += [f"DROP TABLE {t.name}", f"TRUNCATE {t.name}"] if self.world.children(t) else []
        forms += [f"ALTER TABLE {t.name} DROP COLUMN {key.name}" for _, key in self.world.children(t)]
        if t.keys and not self.world.views:
            forms.append(f"ALTER TABLE {t.name} ADD PRIMARY KEY ({c.name})")
        return forms

    def transaction(self):
        if not self.session.stack:
            return "BEGIN", None
        saved = [name for name, _ in self.session.stack if name]
        words = {"SAVEPOINT": 40 if not saved else 15, "ROLLBACK TO": (100 if self.session.changed else 30) * bool(saved),
                 "RELEASE": 8 * bool(saved), "COMMIT": 20, "ROLLBACK": 15}
        word = self.rng.choices(*zip(*words.items()))[0]
        name = self.pick(["s", "s", "p", "q"] if word == "SAVEPOINT" else saved or [""])
        return word if word in ("COMMIT", "ROLLBACK") else f"{word} {name}", None

    def next(self):
        """A Step."""
        if self.waiting:
            sql, self.effect = self.waiting.pop(0)()
            return Step(self.at, sql)
        if len(self.sessions) == 2 and self.chance(40):
            self.at = 1 - self.at
        self.changes = ""
        changes = [(self.insert, 26), (self.update, 22), (self.delete, 14)]
        session = self.session
        others = [(self.select, 6), (self.wrong, 4),
                  (self.transaction, 60 if session.failed else 35 if session.changed else 25 if session.stack else 15)]
        tables = [(self.alter, 6), (self.create_as, 2), (self.view, 3), (self.drop, 1)]
        quiet = not any(session.stack for session in self.sessions)
        self.alters = len(self.sessions) == 1 or self.kind == "plain" or quiet
        if not self.world.tables:
            if not self.alters:
                return Step(self.at, "ROLLBACK")
            sql, self.effect = self.create(self.fresh("t"))
            return Step(self.at, sql)
        few = [t for t in self.world.tables.values() if len(t.rows) < FEW_ROWS]
        if few and not self.session.failed and self.chance(30):
            sql, self.effect = self.fill(self.pick(few))
            return Step(self.at, sql)
        if self.chance(5):
            self.effect = None
            return Step(self.at, REOPEN if self.chance(20) else "VACUUM" if quiet or self.chance(10) else "COMMIT")
        # (In a transaction that has not begun to read, a statement that waits may see what was before the wait or after it.)
        settled = not self.session.stack or self.session.begun
        if len(self.sessions) == 2 and self.sessions[1 - self.at].stack and settled and self.chance(12):
            sql, self.effect = self.rng.choices(*zip(*changes))[0]()
            return Step(self.at, sql, self.pick(["COMMIT", "COMMIT", "ROLLBACK"]))
        if self.alters:
            others += tables
        sql, self.effect = self.rng.choices(*zip(*changes, *others))[0]()
        return Step(self.at, sql)

    def done(self, at, sql, ok):
        """What has become of a statement of a session in Tessera."""
        session, own = self.sessions[at], at == self.at
        effect = self.effect if own else None
        if own:
            self.effect = None
        word = sql.split()[0]
        if sql == REOPEN:
            for each in self.sessions:
                if each.stack:
                    each.world = each.stack[0][1]
                each.stack, each.failed, each.begun, each.changed = [], False, False, False
        elif word in ("COMMIT", "ROLLBACK") and " TO " not in sql:
            kept = session.stack and word == "COMMIT" and ok and not session.failed
            if session.stack and not kept:
                session.world = session.stack[0][1]
            session.stack, session.failed, session.begun, session.changed = [], False, False, False
            self.committed(session if kept else self.sessions[1 - at] if len(self.sessions) == 2 else session)
        elif not ok:
            session.failed = bool(session.stack)
        elif word == "BEGIN" and not session.stack:
            session.stack = [("", session.world.copy())]
        elif word == "SAVEPOINT":
            session.changed = False
            session.stack.append((sql.split()[1], session.world.copy()))
        elif word in ("ROLLBACK", "RELEASE"):
            which = max(i for i, (name, _) in enumerate(session.stack) if name == sql.split()[-1])
            if word == "ROLLBACK":
                session.world, session.failed, session.changed = session.stack[which][1].copy(), False, False
                del session.stack[which + 1:]
            else:
                del session.stack[which:]
        elif word not in ("BEGIN", "VACUUM"):
            session.begun = True
            session.changed |= word in ("INSERT", "UPDATE", "DELETE") and len(session.stack) > 1
            if effect is not None:
                effect(session.world)
                if not session.stack:
                    self.committed(session)

    def committed(self, session):
        """What it sees, those see who have not looked at the database in a transaction."""
        for other in self.sessions:
            if other is not session and not (other.stack and other.begun) and not session.stack:
                other.world = session.world.copy()
                other.stack = [(name, session.world.copy()) for name, _ in other.stack]

    def contents(self, at):
        session = self.sessions[at]
        return [] if session.failed else [Step(at, f"SELECT * FROM {name}") for name in [*session.world.tables, *session.world.views]]

    def to_read(self, step, last):
        """The statements that read what a step has left: at the end, and often before, the tables of each session."""
        ended = step.sql == REOPEN or step.sql.split()[0] in ("VACUUM", "COMMIT", "ROLLBACK")
        if not (last or self.waiting or self.chance(80 if ended else 40)):
            return []
        sessions = [step.session] + [1 - step.session] * (len(self.sessions) == 2 and not self.waiting and (last or self.chance(40)))
        return [read for at in sessions for read in self.contents(at)]

    def read(self, at, sql, rows):
        """What a statement of contents() has given."""
        world, name = self.sessions[at].world, sql.split()[-1]
        if name in world.tables:
            world.tables[name].read(rows)
        elif name in world.views:
            Table(name, world.views[name][1]).read(rows)
