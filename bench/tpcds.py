#!/usr/bin/env python3
"""TPC-DS's tables and queries, by DuckDB's extension tpcds: for bench/queries.sh (make bench-tpcds) and tests/sqllogictest/tpcds_script.py.

    bench/tpcds.py PACKAGES --scale S --out DIR      the tables as DIR/<table>.tbl, schema.sql, and q1.sql to q99.sql

PACKAGES is a folder with the Python packages duckdb and duckdb_extension_tpcds (tests/setup tpcds): one of their own, because the
extension fits one version of DuckDB only, which is older than the one that is measured. Nothing is fetched here.

Fields end with |, none is quoted, and an empty one is NULL, also where the generator has an empty text (c_login). The tables have no keys, as DuckDB's generator makes none.
"""

import argparse
import os
import sys


def connect(packages):
    """A connection in memory that has the extension. Raises ImportError if the packages are not there."""
    sys.path.insert(0, packages)
    import duckdb
    import duckdb_extension_tpcds
    folder = os.path.join(os.path.dirname(duckdb_extension_tpcds.__file__), "extensions", "v" + duckdb.__version__)
    connection = duckdb.connect()
    connection.execute(f"LOAD '{os.path.join(folder, 'tpcds.duckdb_extension')}'")
    # As Tessera and PostgreSQL have it: a LIMIT would else cut off other rows.
    connection.execute("SET default_null_order = 'postgres'")
    return connection


def generate(connection, scale):
    connection.execute(f"CALL dsdgen(sf = {float(scale)})")


def tables(connection):
    """CREATE TABLE of each, by name."""
    return dict(connection.execute("SELECT table_name, sql FROM duckdb_tables() ORDER BY table_name").fetchall())


def queries(connection):
    """The text of each without its semicolon, by name."""
    rows = connection.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY query_nr").fetchall()
    return {f"q{number}": text.strip().rstrip(";") for number, text in rows}


def write_tables(connection, out):
    for table in tables(connection):
        connection.execute(f"COPY (SELECT *, NULL::VARCHAR AS end_of_line FROM {table}) TO '{out}/{table}.tbl' "
                           "(FORMAT csv, DELIMITER '|', HEADER false, QUOTE '', ESCAPE '')")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages")
    parser.add_argument("--scale", type=float, required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    try:
        connection = connect(options.packages)
    except ImportError as error:
        sys.exit(f"bench/tpcds.py: {error}. TPC-DS needs DuckDB's extension: run tests/setup tpcds, with a network")
    os.makedirs(options.out, exist_ok=True)
    generate(connection, options.scale)
    write_tables(connection, options.out)
    with open(os.path.join(options.out, "schema.sql"), "w", encoding="utf-8") as out:
        out.write("\n".join(tables(connection).values()) + "\n")
    for name, text in queries(connection).items():
        with open(os.path.join(options.out, name + ".sql"), "w", encoding="utf-8") as out:
            out.write(text + "\n")


if __name__ == "__main__":
    main()
