#!/usr/bin/env python3
"""tpch_gen beside DuckDB's dbgen: are the columns alike, do the queries return as many rows, do they mean the same?

    bench/tpch_check.py BUILD_DIR [SCALE]        (default 1; needs the Python package duckdb and its extension tpch)

1. Our text of each query gives the same as DuckDB's own text, over dbgen's rows; where DuckDB has the TPC's answers
   (scale 0.01, 0.1, 1), these too.
2. Tessera gives the same as DuckDB over dbgen's rows.
3. The rows that each query returns over both sets of tables.
4. For each column of both: different values; the average length of texts, the average of numbers and dates.

A line that begins with "!" differs by more than 1 %, an average of numbers by more than 1 % of their range. Not part of `make test`. Ends with status 1 if 1 or 2 fail.
"""

import glob
import importlib.util
import os
import subprocess
import sys

import duckdb

import queries_duckdb

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QUERIES = [f"q{i}" for i in range(1, 23)]
TOLERANCE = 0.01


def text_of(query, scale):
    with open(os.path.join(ROOT, "data_gen", "tpch", query + ".sql"), encoding="utf-8") as file:
        return file.read().replace("0.0001000000", f"{0.0001 / scale:.10f}")


def load_extension(connection):
    """From the Python package duckdb_extension_tpch if it is there, else from DuckDB's own place."""
    package = importlib.util.find_spec("duckdb_extension_tpch")
    files = glob.glob(os.path.join(package.submodule_search_locations[0], "**", "*.duckdb_extension"),
                      recursive=True) if package else []
    if not files:
        connection.execute("INSTALL tpch")
    connection.execute(f"LOAD '{files[0]}'" if files else "LOAD tpch")


def dbgen(folder, scale):
    """The tables of DuckDB's dbgen: a database, and text files for Tessera."""
    database = os.path.join(folder, "duckdb")
    if not os.path.exists(database):
        os.makedirs(folder, exist_ok=True)
        connection = duckdb.connect(database + ".part")
        load_extension(connection)
        connection.execute(f"CALL dbgen(sf = {scale})")
        for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            connection.execute(f"COPY {table} TO '{folder}/{table}.tbl' (DELIMITER '|', HEADER false)")
        connection.close()
        os.rename(database + ".part", database)
    connection = duckdb.connect(database, read_only=True)
    load_extension(connection)
    return connection


def near(a, b, tolerance):
    return abs(a - b) <= tolerance * max(abs(a), abs(b))


def same_rows(a, b, tolerance):
    def same(x, y):
        if x is None or y is None:
            return {x, y} <= {None, "", "NULL"}
        try:
            return str(x) == str(y) or near(float(x), float(y), tolerance)
        except (TypeError, ValueError):
            return False
    return len(a) == len(b) and all(len(x) == len(y) and all(map(same, x, y)) for x, y in zip(a, b))


def check_texts(theirs, scale):
    answers = dict(theirs.execute(f"SELECT query_nr, answer FROM tpch_answers() WHERE scale_factor = {scale}").fetchall())
    wrong = []
    for number, query in enumerate(QUERIES, 1):
        ours = theirs.execute(text_of(query, scale)).fetchall()
        # (DuckDB's text of q11 has the fraction of scale 1.)
        (text,) = theirs.execute(f"SELECT query FROM tpch_queries() WHERE query_nr = {number}").fetchone()
        same = same_rows(ours, theirs.execute(text.replace("0.0001000000", f"{0.0001 / scale:.10f}")).fetchall(), 1e-9)
        if number in answers and not (number == 11 and scale != 1):
            # The answers are rounded to some digits.
            same = same and same_rows(ours, [line.split("|") for line in answers[number].splitlines()[1:]], 1e-6)
        if not same:
            wrong.append(query)
    print(f"1. Our texts over dbgen's rows: {len(QUERIES) - len(wrong)} of {len(QUERIES)} give the same as DuckDB's"
          f"{', and the answers of the TPC' if answers else ''}{': not ' + ', '.join(wrong) if wrong else ''}")
    return not wrong


def check_tessera(build, folder, scale):
    database = folder + ".tessera"
    schema = os.path.join(ROOT, "data_gen", "tpch", "schema.sql")
    if not os.path.exists(database):
        with open(schema, encoding="utf-8") as file:
            statements = file.read()
        for name in sorted(glob.glob(folder + "/*.tbl")):
            table = os.path.basename(name).removesuffix(".tbl")
            statements += f"COPY {table} FROM '{name}' (FORMAT csv, DELIMITER '|');\n"
        with open(folder + "/load.sql", "w", encoding="utf-8") as file:
            file.write(statements)
        subprocess.run([build + "/tessera", "-bail", "--device", "host", "-f", folder + "/load.sql", database + ".part"],
                       check=True)
        os.rename(database + ".part", database)
    print("\n2. Tessera beside DuckDB over dbgen's rows\n", flush=True)
    return subprocess.run([build + "/queries_bench", "--benchmark", "tpch", "--scale", str(scale), "--runs", "1", "--database",
                           database, "--data", folder, "--duckdb", sys.executable], cwd=ROOT).returncode == 0


def compare_rows(ours, theirs, scale):
    print("\n3. Rows of the queries: tpch_gen's tables, dbgen's\n")
    for query in QUERIES:
        a, b = (len(c.execute(text_of(query, scale)).fetchall()) for c in (ours, theirs))
        print(" " if near(a, b, TOLERANCE) else "!", f"{query:4} {a:8} {b:8}")


def compare_columns(ours, theirs):
    print("\n4. Columns: different values, average or average length; tpch_gen's, dbgen's\n")
    columns = ours.execute("SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE schema_name = 'main' "
                           "AND NOT internal ORDER BY table_name, column_index").fetchall()
    for table, column, type_name in columns:
        value = (f"length({column})" if type_name == "VARCHAR" else
                 f"{column} - DATE '1992-01-01'" if type_name == "DATE" else column)
        sql = f"SELECT count(DISTINCT {column}), avg({value}), max({value}) - min({value}) FROM {table}"
        (distinct, average, _), (their_distinct, their_average, extent) = (c.execute(sql).fetchone() for c in (ours, theirs))
        size = their_average if type_name == "VARCHAR" else extent
        alike = (near(distinct, their_distinct, TOLERANCE) and
                 abs(float(average) - float(their_average)) <= TOLERANCE * float(size))
        print(" " if alike else "!", f"{column:16} {distinct:9} {their_distinct:9}  {float(average):14.3f} "
                                     f"{float(their_average):14.3f}")


def main():
    build = os.path.abspath(sys.argv[1])
    scale = float(sys.argv[2]) if len(sys.argv) > 2 else 1
    name = f"{scale:g}"
    subprocess.run(["bench/queries.sh", "tpch", "prepare", build, name], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    data = f"{build}/tpch/{name}"
    ours = queries_duckdb.open_database(data, os.path.join(ROOT, "data_gen", "tpch", "schema.sql"), data + "/duckdb",
                                        os.cpu_count())
    theirs = dbgen(f"{build}/tpch/{name}.dbgen", scale)
    good = check_texts(theirs, scale)
    compare_rows(ours, theirs, scale)
    compare_columns(ours, theirs)
    sys.stdout.flush()
    theirs.close()
    ours.close()
    good = check_tessera(build, f"{build}/tpch/{name}.dbgen", scale) and good
    sys.exit(0 if good else 1)


main()
