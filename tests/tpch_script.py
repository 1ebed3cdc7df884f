#!/usr/bin/env python3
"""TPC-H as an SQL test: makes the tables of scale 0.01, and writes a script for sqllogictest that loads them and compares
the 22 queries with tests/tpch_answers.txt.

    tests/tpch_script.py BUILD_DIR             BUILD_DIR/tpch_test/tpch.test, and tpch_distributed.test with the large tables
                                               distributed by their keys; no answers are computed
    tests/tpch_script.py BUILD_DIR --record    computes the answers anew with DuckDB (the Python package), after a change of
                                               tpch_gen

q18 asks for orders of more than 250 pieces here, not 300: there is none at this scale. The answers file has for each query a line with its name and the types of its columns (as of tests/logic_script.h), its
rows, values separated by tabs, and an empty line. Decimals are texts: they must agree in every digit.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QUERIES = [f"q{i}" for i in range(1, 23)]
TABLES = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]
KEYS = {"customer": "c_custkey", "part": "p_partkey", "partsupp": "ps_partkey", "orders": "o_orderkey",
        "lineitem": "l_orderkey"}
ANSWERS = os.path.join(ROOT, "tests", "tpch_answers.txt")


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def statement(text):
    """Without comments, empty lines and the semicolon."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("--")]
    return "\n".join(lines).rstrip(";")


def text_of(query):
    return statement(read("data_gen", "tpch", query + ".sql")).replace("sum(l_quantity) > 300", "sum(l_quantity) > 250")


def record(data):
    import duckdb  # only here: tests run without it
    sys.path.insert(0, os.path.join(ROOT, "bench"))
    import queries_duckdb
    connection = duckdb.connect()
    queries_duckdb.load(connection, data, queries_duckdb.without_keys(read("data_gen", "tpch", "schema.sql")))
    kinds = {"DOUBLE": "R", "FLOAT": "R", "INTEGER": "I", "BIGINT": "I", "HUGEINT": "I", "SMALLINT": "I"}
    with open(ANSWERS, "w", encoding="utf-8") as out:
        for query in QUERIES:
            rows = connection.execute(text_of(query)).fetchall()
            types = "".join(kinds.get(str(column[1]), "T") for column in connection.description)
            print(query, types, file=out)
            for row in rows:
                print("\t".join(map(queries_duckdb.text, row)), file=out)
            print(file=out)


def main():
    build = os.path.abspath(sys.argv[1])
    folder = os.path.join(build, "tpch_test")
    data = os.path.join(folder, "data")
    subprocess.run([os.path.join(build, "tpch_gen"), "--scale", "0.01", "--out", data], check=True, stdout=subprocess.DEVNULL)
    if "--record" in sys.argv:
        record(data)
    answers = dict(block.split(" ", 1) for block in read(ANSWERS).split("\n\n") if block)
    schema = {re.match(r"CREATE TABLE (\w+)", table.strip()).group(1): table.strip()
              for table in statement(read("data_gen", "tpch", "schema.sql")).split(";")}
    for name, keys in (("tpch", {}), ("tpch_distributed", KEYS)):
        with open(os.path.join(folder, name + ".test"), "w", encoding="utf-8") as out:
            for table, text in schema.items():
                options = f" WITH (distribute_by = {keys[table]})" if table in keys else ""
                print(f"statement ok\n{text}{options}\n", file=out)
            for table in TABLES:
                print(f"statement ok\nCOPY {table} FROM '{data}/{table}.tbl' (FORMAT csv, DELIMITER '|')\n", file=out)
            for query in QUERIES:
                types, *rows = answers[query].split("\n")
                print(f"query {types} nosort\n{text_of(query)}\n----", *rows, "", sep="\n", file=out)


main()
