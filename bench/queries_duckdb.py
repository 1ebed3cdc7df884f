"""DuckDB's side of bench/queries.cc: loads the same files, then runs the queries that it is sent, one at a time.

    queries_duckdb.py DATA_DIR SCHEMA_SQL DATABASE_FILE THREADS

Reads one query a line from standard input (its line breaks replaced by blanks), after a word:

    time SQL    answered by: ok <milliseconds until the result is complete>
    rows SQL    answered by: ok <rows> <kinds of the columns: f floating point, d decimal, t other>, and a line for each row

or by: error <message>. Tables have no primary keys here: an index would not help these queries, and DuckDB's own generator
makes none.
"""

import os
import re
import sys
import time
from decimal import Decimal

import duckdb


def load(connection, data, schema):
    """Loads the tables of `schema` from `data`/<table>.tbl, all or none."""
    connection.execute("BEGIN")
    connection.execute(schema)
    for table in re.findall(r"CREATE TABLE (\w+)", schema):
        described = connection.execute(
            f"SELECT column_name, is_nullable FROM duckdb_columns() WHERE table_name = '{table}' ORDER BY column_index"
        ).fetchall()
        names = [name for name, _ in described]
        # Where nothing is NULL, an empty field is an empty text.
        null = "" if any(nullable for _, nullable in described) else "\\N"
        # Each line ends with a delimiter: one more column, always empty.
        columns = ", ".join(f"'{name}': 'VARCHAR'" for name in names + ["end_of_line"])
        selected = ", ".join(names)
        connection.execute(
            f"INSERT INTO {table} SELECT {selected} FROM read_csv('{data}/{table}.tbl', delim = '|', "
            f"header = false, auto_detect = false, quote = '', escape = '', nullstr = '{null}', columns = {{{columns}}})"
        )
    connection.execute("COMMIT")


def without_keys(schema):
    return re.sub(r",\s*PRIMARY KEY \([^)]*\)| PRIMARY KEY", "", schema)


def kind(type_name):
    return "f" if type_name in ("DOUBLE", "FLOAT") else "d" if type_name.startswith("DECIMAL") else "t"


def text(value):
    return "NULL" if value is None else f"{value:f}" if isinstance(value, Decimal) else str(value)


def open_database(data, schema_file, database, threads):
    """The database, made from the files of `data` if it is not there."""
    if not os.path.exists(database):
        part = database + ".part"
        for name in (part, part + ".wal"):
            if os.path.exists(name):
                os.remove(name)
        connection = duckdb.connect(part)
        connection.execute(f"SET threads = {int(threads)}")
        with open(schema_file, encoding="utf-8") as file:
            load(connection, data, without_keys(file.read()))
        connection.close()
        os.rename(part, database)
    connection = duckdb.connect(database, read_only=True)
    connection.execute(f"SET threads = {int(threads)}")
    # As Tessera and PostgreSQL have it: a LIMIT would else cut off other rows.
    connection.execute("SET default_null_order = 'postgres'")
    return connection


def main():
    connection = open_database(*sys.argv[1:5])
    print(f"DuckDB {duckdb.__version__}", flush=True)
    for line in sys.stdin:
        what, query = line.split(" ", 1)
        try:
            start = time.perf_counter()
            connection.execute(query)
            milliseconds = (time.perf_counter() - start) * 1000
            rows = connection.fetchall() if what == "rows" else []
        except duckdb.Error as error:
            print("error", str(error).replace("\n", " "), flush=True)
            continue
        if what == "time":
            print("ok", f"{milliseconds:.4f}", flush=True)
            continue
        print("ok", len(rows), "".join(kind(str(column[1])) for column in connection.description))
        for row in rows:
            print("|".join(map(text, row)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
