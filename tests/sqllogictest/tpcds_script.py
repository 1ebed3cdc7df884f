#!/usr/bin/env python3
"""TPC-DS as SQL tests: makes the tables of scale 0.01 with DuckDB's extension tpcds, asks DuckDB for the answers, and writes scripts
for sqllogictest that load the tables and compare.

    tests/sqllogictest/tpcds_script.py BUILD_DIR      BUILD_DIR/tpcds_test/tpcds.test with 20 of the 99 queries, and tpcds_all.test with all

They are made once, and again when this file or bench/tpcds.py changes. Exit status 3 with a message if build/tpcds_packages lacks the
extension (tests/setup tpcds installs it). Decimals are texts: they must agree in every digit.
"""

import hashlib
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import tpcds  # noqa: E402

# Each has rows at this scale. Among them: WITH read twice, ROLLUP, INTERSECT, EXCEPT, windows, FULL JOIN, UNION ALL, EXISTS.
FEW = ["q1", "q2", "q5", "q7", "q12", "q14", "q18", "q22", "q27", "q35", "q36", "q38", "q47", "q51", "q59", "q67", "q75", "q78", "q87",
       "q97"]
KINDS = {"DOUBLE": "R", "FLOAT": "R", "INTEGER": "I", "BIGINT": "I", "HUGEINT": "I", "SMALLINT": "I"}


def stamp():
    files = [os.path.abspath(__file__), os.path.join(ROOT, "bench", "tpcds.py")]
    return hashlib.sha256(b"".join(open(file, "rb").read() for file in files)).hexdigest()


def value_text(value, text):
    """As tests/sqllogictest/logic_result.cc prints it."""
    shown = text(value)
    return "(empty)" if shown == "" else "".join(chr(b) if 32 <= b <= 126 else "@" for b in shown.encode())


def print_load(schema, data, out):
    for table, statement in schema.items():
        print(f"statement ok\n{statement.rstrip(';')}\n", file=out)
        print(f"statement ok\nCOPY {table} FROM '{data}/{table}.tbl' (FORMAT csv, DELIMITER '|')\n", file=out)


def print_query(connection, query, text, out):
    rows = connection.execute(query).fetchall()
    types = "".join(KINDS.get(str(column[1]), "T") for column in connection.description)
    print(f"query {types} nosort\n{query}\n----", *(value_text(value, text) for row in rows for value in row), "", sep="\n", file=out)


def write(build, folder):
    connection = tpcds.connect(os.path.join(build, "tpcds_packages"))
    from queries_duckdb import text  # it needs the same package
    tpcds.generate(connection, 0.01)
    tpcds.write_tables(connection, folder)
    schema, queries = tpcds.tables(connection), tpcds.queries(connection)
    # The answers are of what the files say: an empty text is NULL there.
    for table in schema:
        texts = [name for name, in connection.execute("SELECT column_name FROM duckdb_columns() WHERE data_type = 'VARCHAR' AND "
                                                      f"table_name = '{table}'").fetchall()]
        for name in texts:
            connection.execute(f"UPDATE {table} SET {name} = NULL WHERE {name} = ''")
    for name, chosen in (("tpcds", FEW), ("tpcds_all", list(queries))):
        with open(os.path.join(folder, name + ".test"), "w", encoding="utf-8") as out:
            print_load(schema, folder, out)
            for query in chosen:
                print_query(connection, queries[query], text, out)


def main():
    build = os.path.abspath(sys.argv[1])
    folder = os.path.join(build, "tpcds_test")
    made = os.path.join(folder, "made")
    if os.path.exists(made) and open(made).read() == stamp():
        return 0
    os.makedirs(folder, exist_ok=True)
    try:
        write(build, folder)
    except ImportError as error:
        print(f"skipped TPC-DS: {error}. It needs DuckDB's extension from PyPI: tests/setup tpcds")
        return 3
    with open(made, "w") as out:
        out.write(stamp())
    return 0


if __name__ == "__main__":
    sys.exit(main())
