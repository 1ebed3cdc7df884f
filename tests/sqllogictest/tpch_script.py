#!/usr/bin/env python3
"""TPC-H as an SQL test: makes the tables of scale 0.01, and writes a script for sqllogictest that loads them and compares
the 22 queries with tests/sqllogictest/tpch_answers.txt.

    tpch_script.py BUILD_DIR             BUILD_DIR/tpch_test/tpch.test, and tpch_distributed.test with the large tables
                                         distributed by their keys, and tpch_refresh.test, where pairs of the refresh
                                         functions run after the queries, and then the queries again, with
                                         tpch_refresh_answers.txt; no answers are computed
    tpch_script.py BUILD_DIR --record    computes the answers anew with DuckDB (the Python package), after a change of
                                         tpch_gen

q18 asks for orders of more than 250 pieces here, not 300: there is none at this scale. The answers file has for each query a line with its name and the types of its columns (as of tests/sqllogictest/logic_script.h), its
rows, values separated by tabs, and an empty line. Decimals are texts: they must agree in every digit.
"""

import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
QUERIES = [f"q{i}" for i in range(1, 23)]
TABLES = ["region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem"]
KEYS = {"customer": "c_custkey", "part": "p_partkey", "partsupp": "ps_partkey", "orders": "o_orderkey",
        "lineitem": "l_orderkey"}
ANSWERS = os.path.join(ROOT, "tests", "sqllogictest", "tpch_answers.txt")
REFRESH_ANSWERS = os.path.join(ROOT, "tests", "sqllogictest", "tpch_refresh_answers.txt")
PAIRS = 20  # of refresh functions: a fiftieth of the orders


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def statement(text):
    """Without comments, empty lines and the semicolon."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("--")]
    return "\n".join(lines).rstrip(";")


def text_of(query):
    return statement(read("data_gen", "tpch", query + ".sql")).replace("sum(l_quantity) > 300", "sum(l_quantity) > 250")


def lines_of(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read().splitlines()


def refreshed(data):
    """Writes orders and lineitem as they are after all pairs, as if loaded anew. Returns the numbers of both after each pair."""
    tables = {table: lines_of(data, table + ".tbl") for table in ("orders", "lineitem")}
    counts = []
    for pair in range(1, PAIRS + 1):
        gone = set(lines_of(data, f"delete.{pair}"))
        for table, rows in tables.items():
            rows = rows + lines_of(data, f"{table}.tbl.u{pair}")
            tables[table] = [row for row in rows if row.split("|", 1)[0] + "|" not in gone]
        counts.append((len(tables["orders"]), len(tables["lineitem"])))
    for table, rows in tables.items():
        with open(os.path.join(data, "refreshed", table + ".tbl"), "w", encoding="utf-8") as out:
            out.writelines(row + "\n" for row in rows)
    return counts


def record(data, answers):
    import duckdb  # only here: tests run without it
    sys.path.insert(0, os.path.join(ROOT, "bench"))
    import queries_duckdb
    connection = duckdb.connect()
    queries_duckdb.load(connection, data, queries_duckdb.without_keys(read("data_gen", "tpch", "schema.sql")))
    kinds = {"DOUBLE": "R", "FLOAT": "R", "INTEGER": "I", "BIGINT": "I", "HUGEINT": "I", "SMALLINT": "I"}
    with open(answers, "w", encoding="utf-8") as out:
        for query in QUERIES:
            rows = connection.execute(text_of(query)).fetchall()
            types = "".join(kinds.get(str(column[1]), "T") for column in connection.description)
            print(query, types, file=out)
            for row in rows:
                print("\t".join(map(queries_duckdb.text, row)), file=out)
            print(file=out)


def answers_of(file):
    return dict(block.split(" ", 1) for block in read(file).split("\n\n") if block)


def print_load(schema, keys, data, out):
    for table, text in schema.items():
        options = f" WITH (distribute_by = {keys[table]})" if table in keys else ""
        print(f"statement ok\n{text}{options}\n", file=out)
    for table in TABLES:
        print(f"statement ok\nCOPY {table} FROM '{data}/{table}.tbl' (FORMAT csv, DELIMITER '|')\n", file=out)


def print_queries(answers, out):
    for query in QUERIES:
        types, *rows = answers[query].split("\n")
        print(f"query {types} nosort\n{text_of(query)}\n----", *rows, "", sep="\n", file=out)


def print_refresh(pair, counts, data, out):
    """RF1, new orders, and RF2, old ones that go: each one transaction."""
    print("statement ok\nBEGIN\n", file=out)
    for table in ("orders", "lineitem"):
        print(f"statement ok\nCOPY {table} FROM '{data}/{table}.tbl.u{pair}' (FORMAT csv, DELIMITER '|')\n", file=out)
    print("statement ok\nCOMMIT\n\nstatement ok\nTRUNCATE gone\n", file=out)
    print(f"statement ok\nCOPY gone FROM '{data}/delete.{pair}' (FORMAT csv, DELIMITER '|')\n\nstatement ok\nBEGIN\n", file=out)
    print("statement ok\nDELETE FROM lineitem WHERE l_orderkey IN (SELECT key FROM gone)\n", file=out)
    print("statement ok\nDELETE FROM orders USING gone WHERE o_orderkey = key\n\nstatement ok\nCOMMIT\n", file=out)
    print("query II\nSELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM lineitem)\n----", "{}  {}\n".format(*counts),
          sep="\n", file=out)


def main():
    build = os.path.abspath(sys.argv[1])
    folder = os.path.join(build, "tpch_test")
    data = os.path.join(folder, "data")
    for options in ([], ["--updates", str(PAIRS)]):
        subprocess.run([os.path.join(build, "tpch_gen"), "--scale", "0.01", "--out", data, *options], check=True,
                       stdout=subprocess.DEVNULL)
    os.makedirs(os.path.join(data, "refreshed"), exist_ok=True)
    counts = refreshed(data)
    if "--record" in sys.argv:
        record(data, ANSWERS)
        for table in set(TABLES) - {"orders", "lineitem"}:
            shutil.copy(os.path.join(data, table + ".tbl"), os.path.join(data, "refreshed"))
        record(os.path.join(data, "refreshed"), REFRESH_ANSWERS)
    answers, refresh_answers = answers_of(ANSWERS), answers_of(REFRESH_ANSWERS)
    schema = {re.match(r"CREATE TABLE (\w+)", table.strip()).group(1): table.strip()
              for table in statement(read("data_gen", "tpch", "schema.sql")).split(";")}
    for name, keys in (("tpch", {}), ("tpch_distributed", KEYS)):
        with open(os.path.join(folder, name + ".test"), "w", encoding="utf-8") as out:
            print_load(schema, keys, data, out)
            print_queries(answers, out)
    with open(os.path.join(folder, "tpch_refresh.test"), "w", encoding="utf-8") as out:
        print_load(schema, {}, data, out)
        print("statement ok\nCREATE TABLE gone (key INTEGER)\n", file=out)
        print_queries(answers, out)
        for pair in range(1, PAIRS + 1):
            print_refresh(pair, counts[pair - 1], data, out)
        print_queries(refresh_answers, out)


main()
