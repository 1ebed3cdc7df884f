"""DuckDB's side of bench/ssb.cc: loads the same files, then runs the queries that it is sent, one at a time.

    ssb_duckdb.py DATA_DIR SCHEMA_SQL DATABASE_FILE THREADS

Reads one query a line from standard input (its line breaks replaced by blanks) and answers each with one line:

    ok <milliseconds> <rows> <FNV-1a 64 of the rows' lines, sorted>     or     error <message>
"""

import os
import re
import sys
import time

import duckdb


def load(connection, data, schema):
    """Loads the tables of `schema` from `data`/<table>.tbl, all or none."""
    connection.execute("BEGIN")
    connection.execute(schema)
    for table in re.findall(r"CREATE TABLE (\w+)", schema):
        names = [
            row[0]
            for row in connection.execute(
                f"SELECT column_name FROM duckdb_columns() " f"WHERE table_name = '{table}' ORDER BY column_index"
            ).fetchall()
        ]
        # Each line ends with a delimiter: one more column, always empty.
        columns = ", ".join(f"'{name}': 'VARCHAR'" for name in names + ["end_of_line"])
        selected = ", ".join(names)
        connection.execute(
            f"INSERT INTO {table} SELECT {selected} FROM read_csv('{data}/{table}.tbl', delim = '|', "
            f"header = false, auto_detect = false, quote = '', escape = '', columns = {{{columns}}})"
        )
    connection.execute("COMMIT")


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def main():
    data, schema_file, database, threads = sys.argv[1:5]
    if not os.path.exists(database):
        part = database + ".part"
        for name in (part, part + ".wal"):
            if os.path.exists(name):
                os.remove(name)
        connection = duckdb.connect(part)
        with open(schema_file, encoding="utf-8") as file:
            load(connection, data, file.read())
        connection.close()
        os.rename(part, database)
    connection = duckdb.connect(database, read_only=True)
    connection.execute(f"SET threads = {int(threads)}")
    print(f"DuckDB {duckdb.__version__}", flush=True)
    for query in sys.stdin:
        try:
            start = time.perf_counter()
            rows = connection.execute(query).fetchall()
            milliseconds = (time.perf_counter() - start) * 1000
        except duckdb.Error as error:
            print("error", str(error).replace("\n", " "), flush=True)
            continue
        lines = sorted("|".join(str(value) for value in row) for row in rows)
        print("ok", f"{milliseconds:.4f}", len(rows), f"{fnv1a(chr(10).join(lines)):016x}", flush=True)


main()
